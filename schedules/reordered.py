"""Queries in another order, in which those that share a block share more keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pebble.attention import Attention
from pebble.checks import positive
from pebble.cost import Cost
from pebble.errors import UnknownName
from pebble.masked.row_orders import MOST_GREEDY, by_center, cuthill_mckee, greedy
from pebble.masks import Mask
from pebble.problem import require
from pebble.schedule import Schedule

Ints = NDArray[np.int64]

ORDERS = ("by_center", "cuthill_mckee", "greedy", "best")
# What has a row for each query.
PER_QUERY = ("Q", "O", "dO", "Lse", "dQ")


@dataclass(frozen=True, eq=False)
class Reordered:
    """A schedule with the queries in another order, and what it costs in the given one.

    Parameters
    ----------
    name : str
        The order: "given" is that of the problem, "asked" the one asked for, or one of `ORDERS`.
    order : array of int64
        The queries; ``order[0]`` comes first.
    schedule : Schedule
        For the problem with its mask permuted.
    before : Cost
        What the same algorithm costs in the given order.

    Examples
    --------
    >>> import pebble, schedules
    >>> mask = pebble.masks.from_array([[True, False], [False, True]] * 2)
    >>> problem = pebble.Attention(n=4, d=1, keys=2, mask=mask)
    >>> found = reordered(schedules.gather, problem, cache=12, order="by_center")
    >>> found  # in blocks of two, each key is loaded once and not twice
    Reordered(by_center, I/O 16 -> 12: gather(n=4, d=1, keys=2, mask=from_array.permuted, cache=12,
    rows=2, cols=1))
    >>> found.order.tolist(), found.execute([[1]] * 4, [[1]] * 2, [[3], [5]])["O"].ravel().tolist()
    ([0, 2, 1, 3], [3.0, 5.0, 3.0, 5.0])
    """

    name: str
    order: Ints
    schedule: Schedule
    before: Cost

    @property
    def after(self) -> Cost:
        """What the schedule costs."""
        return self.schedule.closed_form

    def execute(self, *operands: ArrayLike, **named: ArrayLike) -> dict[str, NDArray[np.float64]]:
        """Run the schedule on numbers, whose queries are in the given order, as the results are.

        Parameters and errors are those of `Schedule.execute`.
        """
        names = dict(zip(self.schedule.problem.operands, operands, strict=False)) | named
        moved = {
            name: np.asarray(values)[self.order] if name in PER_QUERY else values
            for name, values in names.items()
        }
        back = np.argsort(self.order)
        found = self.schedule.execute(**moved)
        return {
            name: values[back] if name in PER_QUERY else values for name, values in found.items()
        }

    def __repr__(self) -> str:
        change = f"I/O {self.before.io} -> {self.after.io}"
        return f"Reordered({self.name}, {change}: {self.schedule!r})"


def reordered(
    generator: Callable[[Attention, int], Schedule],
    problem: Attention,
    cache: int,
    order: str | Iterable[int] = "best",
) -> Reordered:
    """Give a schedule under a mask with the queries in another order.

    A problem whose queries are permuted is another problem with the same results, in another order.
    Sums over queries (dK, dV) then run in that order too.

    Parameters
    ----------
    generator : callable
        Gives a schedule, such as `schedules.gather`.
    problem : Attention
        A pass under a mask.
    cache : int
        M, in words.
    order : array of int, or {"by_center", "cuthill_mckee", "greedy", "best"}
        The queries, or how to look for an order: see `pebble.masked.row_orders`. "greedy" fills
        blocks of as many queries as the schedule in the given order has. "best" tries all (greedy
        up to 4096 queries and keys) and the given order, and is never worse than that.

    Raises
    ------
    ProblemError
        No pass under a mask.
    SizeError, MaskError, UnknownName
        As the generator; an order in which not every query comes once; a name that is not known.
    """
    require("reordered", problem, "masked forward", "masked backward")
    cache = positive("cache", cache, "the words of fast memory")
    mask: Mask = problem.graph.mask
    given = generator(problem, cache)
    rows = int(given.blocks.get("rows", 1))
    found = [
        Reordered(name, queries, _permuted(generator, problem, cache, queries), given.closed_form)
        for name, queries in _orders(mask, order, rows)
    ]
    if order == "best":
        found.append(Reordered("given", np.arange(mask.n), given, given.closed_form))
    return min(found, key=lambda each: each.after.io)


def _permuted(
    generator: Callable[[Attention, int], Schedule], problem: Attention, cache: int, order: Ints
) -> Schedule:
    mask: Mask = problem.graph.mask
    return generator(replace(problem, mask=mask.permuted(order)), cache)


def _orders(mask: Mask, order: str | Iterable[int], rows: int) -> Iterator[tuple[str, Ints]]:
    if not isinstance(order, str):
        yield "asked", np.asarray(order)
        return
    if order not in ORDERS:
        raise UnknownName(f"order = {order!r}: known are {', '.join(ORDERS)}")
    every = order == "best"
    if order == "by_center" or every:
        yield "by_center", by_center(mask)
    if order == "cuthill_mckee" or every:
        yield "cuthill_mckee", cuthill_mckee(mask)
    if order == "greedy" or (every and max(mask.shape) <= MOST_GREEDY):
        yield "greedy", greedy(mask, rows)
