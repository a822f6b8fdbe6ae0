"""The cheapest schedule against the best lower bounds, cache by cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pebble import bounds
from pebble.bounds import Bound
from pebble.checks import positive
from pebble.compare import times
from pebble.errors import PebbleError, SizeError
from pebble.problem import Problem
from pebble.registry import best
from pebble.rules import Rules
from pebble.schedule import Schedule
from pebble.table import Table


@dataclass(frozen=True)
class Point:
    """The cheapest schedule at one cache, and the best bounds in both games.

    Parameters
    ----------
    cache : int
        M, in words.
    schedule : Schedule
        The cheapest known.
    io : int
        Its I/O, in words.
    bound : Bound
        The best lower bound with recomputation allowed.
    once : Bound
        The best lower bound when each vertex is computed once.
    once_schedule : Schedule or None
        The cheapest known that computes each vertex once; None if none that is known fits.
    """

    cache: int
    schedule: Schedule
    io: int
    bound: Bound
    once: Bound
    once_schedule: Schedule | None

    @property
    def ratio(self) -> float:
        """The I/O over the bound, recomputation allowed."""
        return self.io / self.bound.value

    @property
    def once_ratio(self) -> float | None:
        """The same where each vertex is computed once."""
        once = self.once_schedule
        return once.closed_form.io / self.once.value if once else None


@dataclass(frozen=True)
class Sweep:
    """The cheapest schedule against the best bound, over caches.

    Parameters
    ----------
    problem : Attention or AttentionGradient
        What is computed.
    points : sequence of Point
        One for each cache that some schedule fits.
    refused : sequence of int
        The other caches.
    """

    problem: Problem
    points: tuple[Point, ...]
    refused: tuple[int, ...] = ()

    @property
    def table(self) -> Table:
        """A row for each cache: the ratio in both games."""
        anew = any(q.once_schedule is not q.schedule for q in self.points)
        head = "M|M / d^2|schedule|I/O words|ratio|bound|bound by".split("|")
        head += ["schedule, once", "I/O words, once"] if anew else []
        head += ["ratio, once", "bound, once", "bound by, once"]
        rows = tuple(tuple(self._cells(q, anew)) for q in self.points)
        title = f"cheapest schedule over best bound, {self.problem.title}"
        return Table(title, tuple(head), rows, tuple(self._notes(anew)), key=1)

    def _cells(self, q: Point, anew: bool) -> Iterator[str]:
        once = q.once_schedule
        yield f"{q.cache:,}"
        yield f"{q.cache / self.problem.d**2:.3f}"
        yield q.schedule.name
        yield f"{q.io:,}"
        yield f"{q.ratio:.4f}"
        yield f"{q.bound.value:,}"
        yield q.bound.name
        if anew:
            yield once.name if once else "-"
            yield f"{once.closed_form.io:,}" if once else "-"
        yield "-" if q.once_ratio is None else f"{q.once_ratio:.4f}"
        yield f"{q.once.value:,}"
        yield q.once.name

    def _notes(self, anew: bool) -> Iterator[str]:
        told = "bound: recomputation allowed; once: each vertex computed once"
        yield told if anew else f"{told}, as they all do"
        factors: dict[str, float] = {}
        for q in self.points:
            if q.schedule.recomputes:
                name = q.schedule.name
                factors[name] = max(factors.get(name, 1), times(q.schedule))
        for name, factor in factors.items():
            most = f"computes up to {factor:.3f} times what the graph has"
            yield f"{name}: {most}, so it is left out of once"
        if any(q.once_schedule is None for q in self.points):
            yield "-: no known schedule that fits computes each vertex once"
        if self.refused:
            yield f"left out: M = {', '.join(f'{cache:,}' for cache in self.refused)}, too small"

    def to_dict(self) -> dict[str, object]:
        """Give everything as plain values, for JSON."""
        return {
            "problem": self.problem.to_dict(),
            "points": [
                {
                    "cache": q.cache,
                    "schedule": q.schedule.name,
                    "blocks": dict(q.schedule.blocks),
                    "io_words": q.io,
                    "computes": q.schedule.closed_form.computes,
                    "bound": q.bound.value,
                    "bound_name": q.bound.name,
                    "once_schedule": q.once_schedule.name if q.once_schedule else None,
                    "once_io_words": q.once_schedule.closed_form.io if q.once_schedule else None,
                    "once_computes": (
                        q.once_schedule.closed_form.computes if q.once_schedule else None
                    ),
                    "once_bound": q.once.value,
                    "once_bound_name": q.once.name,
                }
                for q in self.points
            ],
            "refused": list(self.refused),
        }

    def __str__(self) -> str:
        return self.table.text()

    def _repr_html_(self) -> str:
        return self.table.html()


def sweep(problem: Problem, caches: Sequence[int]) -> Sweep:
    """Find the cheapest schedule and the best bounds at each of several caches.

    Parameters
    ----------
    problem : Attention or AttentionGradient
        What is computed.
    caches : sequence of int
        Values of M, in words. Those that no schedule fits are left out, which the notes say.

    Raises
    ------
    SizeError, PebbleError
        A cache that is no positive integer; caches that no schedule fits, all of them; no caches
        at all.

    Examples
    --------
    >>> import pebble, schedules
    >>> found = pebble.sweep(pebble.Attention(n=64, d=8), [32, 1024])
    >>> [point.schedule.name for point in found.points]
    ['small_cache', 'flash2']
    """
    if not caches:
        raise PebbleError("caches is empty: give at least one")
    points, refused, why = [], [], []
    for cache in caches:
        positive("cache", cache, "the words of fast memory")
        try:
            points.append(_point(problem, cache))
        except SizeError as error:
            refused.append(cache)
            why.append(str(error))
    if not points:
        raise SizeError(why[-1])
    return Sweep(problem, tuple(points), tuple(refused))


def _point(problem: Problem, cache: int) -> Point:
    once = Rules(recompute=False)
    schedule = best(problem, cache)
    careful: Schedule | None = schedule
    if schedule.recomputes:
        try:
            careful = best(problem, cache, once)
        except SizeError:
            careful = None
    bound, once_bound = bounds.lower(problem, cache), bounds.lower(problem, cache, once)
    return Point(cache, schedule, schedule.count().io, bound, once_bound, careful)
