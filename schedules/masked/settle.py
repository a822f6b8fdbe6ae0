"""What the generators under a mask share in choosing blocks and in putting a schedule together."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pebble.attention import Attention
from pebble.checks import positive
from pebble.cost import Cost
from pebble.masked.schedule import MaskedSchedule
from pebble.masked.tapes import Write, counted
from schedules.blocks import need, rule_or_sizes, too_small

# Block sizes that patterns like: what is aligned with a pattern's blocks visits fewer tiles.
GRAINS = (16, 64)


def schedule(
    name: str,
    p: Attention,
    cache: int,
    sizes: dict[str, int],
    io: tuple[int, int],
    write: Write,
) -> MaskedSchedule:
    """Put a schedule together: each vertex is computed once, and all red pebbles come off.

    The peak depends on the pattern, and is counted.
    """
    loads, stores = io
    computes = p.graph.size - p.graph.input_words
    peak = int(counted(p.graph, write).peak)
    cost = Cost(loads, stores, computes, loads + computes, peak)
    return MaskedSchedule(name, p, cache, sizes, cost, write)


def settle(
    name: str,
    problem: Attention,
    cache: int,
    asked: tuple[str, int | None, int | None],
    make: Callable[[int, int], MaskedSchedule],
    candidates: Callable[[], Iterable[tuple[int, int]]],
) -> MaskedSchedule:
    """Give the schedule with the blocks that are asked for.

    Parameters
    ----------
    name, problem, cache
        The algorithm, what it computes and M.
    asked : tuple
        The arguments ``blocks``, ``rows`` and ``cols``.
    make : callable
        Gives the schedule with rows and cols.
    candidates : callable
        Gives the rows and cols that the best are chosen from.

    Raises
    ------
    SizeError
        Blocks that overflow the cache, or none that fit.
    """
    cache = positive("cache", cache, "the words of fast memory")
    rule, rows, cols = rule_or_sizes(*asked)
    if rule == "best":
        made = [make(*sizes) for sizes in candidates()]
        fitting = [each for each in made if each.closed_form.peak <= cache]
        if fitting:
            return min(fitting, key=lambda each: each.closed_form.io)
        least = make(1, 1)
        if least.closed_form.peak > cache:
            raise too_small(name, cache, least.closed_form.peak)
        return least
    if rule == "published":
        cols = -(-cache // (4 * problem.d))
        rows = min(cols, problem.d)
    rows, cols = min(rows, problem.n), min(cols, problem.keys)
    found = make(rows, cols)
    need(f"{name}, {rule} blocks", found.closed_form.peak, cache, f"rows = {rows}, cols = {cols}")
    return found


def sizes_up_to(extent: int, most: int) -> list[int]:
    """Give sizes to cut an extent into: the largest, the most even, and those with a grain.

    Examples
    --------
    >>> sizes_up_to(1024, 380)
    [380, 342, 368, 320]
    >>> sizes_up_to(100, 3)
    [3]
    """
    if most < 1:
        return []
    most = min(most, extent)
    even = -(-extent // -(-extent // most))
    grained = [most // grain * grain for grain in GRAINS]
    return [size for size in dict.fromkeys([most, even, *grained]) if size]
