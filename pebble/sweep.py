"""The cheapest schedule against the best lower bounds, cache by cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pebble import bounds
from pebble.attention import Attention
from pebble.bounds import Bound
from pebble.errors import PebbleError
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
    """

    cache: int
    schedule: Schedule
    io: int
    bound: Bound
    once: Bound


@dataclass(frozen=True)
class Sweep:
    """The cheapest schedule against the best bound, over caches.

    Parameters
    ----------
    problem : Attention
        What is computed.
    points : sequence of Point
        One for each cache.
    """

    problem: Attention
    points: tuple[Point, ...]

    @property
    def table(self) -> Table:
        """A row for each cache: the ratio in both games."""
        p = self.problem
        head = "M|M / d^2|schedule|I/O words|bound|ratio|by|bound, once|ratio, once|by".split("|")
        rows = [
            (
                f"{q.cache:,}",
                f"{q.cache / p.d**2:.3f}",
                q.schedule.name,
                f"{q.io:,}",
                f"{q.bound.value:,}",
                f"{q.io / q.bound.value:.4f}",
                q.bound.name,
                f"{q.once.value:,}",
                f"{q.io / q.once.value:.4f}",
                q.once.name,
            )
            for q in self.points
        ]
        title = f"cheapest schedule over best bound, n = {p.n}, keys = {p.keys}, d = {p.d}"
        title += f", value_dim = {p.value_dim}, {p.softmax} softmax"
        notes = (
            "bound: recomputation allowed; bound, once: each vertex computed once, "
            "as every schedule here does",
        )
        return Table(title, tuple(head), tuple(rows), notes)

    def to_dict(self) -> dict[str, object]:
        """Give everything as plain values, for JSON."""
        p = self.problem
        return {
            "problem": {"n": p.n, "keys": p.keys, "d": p.d, "value_dim": p.value_dim},
            "points": [
                {
                    "cache": q.cache,
                    "schedule": q.schedule.name,
                    "blocks": dict(q.schedule.blocks),
                    "io_words": q.io,
                    "bound": q.bound.value,
                    "bound_name": q.bound.name,
                    "once_bound": q.once.value,
                    "once_bound_name": q.once.name,
                }
                for q in self.points
            ],
        }

    def __str__(self) -> str:
        return self.table.text()

    def _repr_html_(self) -> str:
        return self.table.html()


def sweep(problem: Attention, caches: Sequence[int]) -> Sweep:
    """Find the cheapest schedule and the best bounds at each of several caches.

    Parameters
    ----------
    problem : Attention
        What is computed.
    caches : sequence of int
        Values of M, in words.

    Raises
    ------
    PebbleError
        A cache that no schedule fits; no caches at all.

    Examples
    --------
    >>> import pebble, schedules
    >>> found = pebble.sweep(pebble.Attention(n=64, d=8), [32, 1024])
    >>> [point.schedule.name for point in found.points]
    ['small_cache', 'flash2']
    """
    if not caches:
        raise PebbleError("caches is empty: give at least one")
    points = []
    for cache in caches:
        schedule = best(problem, cache)
        points.append(
            Point(
                cache,
                schedule,
                schedule.count().io,
                bounds.lower(problem, cache),
                bounds.lower(problem, cache, Rules(recompute=False)),
            )
        )
    return Sweep(problem, tuple(points))
