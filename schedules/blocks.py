"""What the generators share in choosing blocks, and in saying no."""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt

from pebble.checks import positive
from pebble.errors import SizeError, UnknownName

RULES = ("best", "published")


def rule_or_sizes(blocks: str, rows: int | None, cols: int | None) -> tuple[str, int, int]:
    """Say which was asked for: "best", "published" or "given"; with it the given rows and cols.

    Raises
    ------
    UnknownName
        A rule that is not known.
    SizeError
        Only one of rows and cols, or one that is no positive integer.
    """
    if blocks not in RULES:
        raise UnknownName(
            f"blocks = {blocks!r}: known are {', '.join(RULES)}; or give rows and cols"
        )
    if rows is None and cols is None:
        return blocks, 0, 0
    if rows is None or cols is None:
        raise SizeError(f"rows = {rows!r}, cols = {cols!r}: give both of them, or none")
    rows = positive("rows", rows, "the rows of a block")
    return "given", rows, positive("cols", cols, "the columns of a block")


def largest(limit: int, fits: Callable[[int], bool]) -> int:
    """Give the largest size from 1 to `limit` that fits, 0 if none; what fits does so downwards.

    Examples
    --------
    >>> largest(100, lambda size: size * size <= 50)
    7
    """
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


def distinct(extent: int, limit: int) -> list[int]:
    """Give the least size for each number of blocks an extent can be cut into, up to a limit.

    Examples
    --------
    >>> distinct(10, 10), distinct(10, 4)
    ([1, 2, 3, 4, 5, 10], [1, 2, 3, 4])
    """
    root = isqrt(extent) + 1
    sizes = {-(-extent // -(-extent // size)) for size in range(1, min(root, limit) + 1)}
    sizes |= {-(-extent // count) for count in range(-(-extent // limit), root + 1)}
    return sorted(sizes)


def need(name: str, peak: int, cache: int, what: str) -> None:
    """Refuse blocks that overflow the cache.

    Raises
    ------
    SizeError
        The peak is more than the cache.
    """
    if peak > cache:
        raise SizeError(f"{name} with {what} holds {peak} words: cache = {cache} is too small")


def too_small(name: str, cache: int, least: int) -> SizeError:
    """Give the error of a cache in which no blocks fit."""
    return SizeError(f"{name}: cache = {cache} is too small; the least that works is {least}")
