"""How a mask falls into tiles: what is in each, counted without holding the pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pebble.masks import Mask

Ints = NDArray[np.int64]

# What the kernel counts, in its order.
NAMES = (
    "pairs",
    "queries",
    "keys",
    "rows_started",
    "rows_finished",
    "columns_started",
    "columns_finished",
    "both_started",
    "only",
)


@dataclass(frozen=True, eq=False)
class TileCounts:
    """What is in each tile that is not empty; tiles are in row-major order.

    Neighbours that are alike are counted once, as a strip: arrays have one entry a strip.

    Parameters
    ----------
    rows, cols : int
        Queries and keys in a tile; the last may have fewer.
    starts : array of int
        Where each row of tiles starts; one more entry at the end.
    columns : array of int
        The column of the strip's first tile.
    repeats : array of int
        How many tiles the strip has.
    pairs, queries, keys : array of int
        Pairs in one of its tiles; queries and keys that have one.
    rows_started, rows_finished, columns_started, columns_finished : array of int
        Queries whose first and whose last pair such a tile has, and keys.
    both_started : array of int
        Pairs that are the first of their query and of their key.
    only : array of int
        Pairs that are the only one of their query.
    last : array of int, of shape (strips, 4, 2)
        For each class of pairs, ``row_first + 2 * column_first``: the rows and the columns that
        the tile has started once it has done its last pair of that class, row by row; -1 if there
        is none.

    Examples
    --------
    A causal mask of 6 queries in tiles of 2 x 1. The two last queries have 2 pairs in each of the
    keys before; those tiles are alike, but those that a row of pairs starts or ends in.

    >>> from pebble.masks import causal
    >>> tiles = count_tiles(causal(6), rows=2, cols=1)
    >>> tiles.starts, tiles.columns, tiles.repeats
    (array([ 0,  2,  6, 10]), array([0, 1, 0, 1, 2, 3, 0, 1, 4, 5]),
     array([1, 1, 1, 1, 1, 1, 1, 3, 1, 1]))
    >>> tiles.pairs, tiles.visited
    (array([2, 1, 2, 2, 2, 1, 2, 2, 2, 1]), 12)
    """

    rows: int
    cols: int
    starts: Ints
    columns: Ints
    repeats: Ints
    pairs: Ints
    queries: Ints
    keys: Ints
    rows_started: Ints
    rows_finished: Ints
    columns_started: Ints
    columns_finished: Ints
    both_started: Ints
    only: Ints
    last: Ints

    @property
    def visited(self) -> int:
        """The tiles that are not empty."""
        return int(self.repeats.sum())

    def widths(self, keys: int) -> Ints:
        """Give the keys in the range of each tile."""
        return np.minimum(self.cols, keys - self.columns * self.cols)

    def total(self, per_tile: Ints) -> int:
        """Add something up over all tiles."""
        return int((per_tile * self.repeats).sum())


@lru_cache(maxsize=32)
def count_tiles(mask: Mask, rows: int, cols: int) -> TileCounts:
    """Count what is in each tile of a mask.

    Parameters
    ----------
    mask : Mask
        The pattern.
    rows, cols : int
        Queries and keys in a tile.
    """
    from pebble.masked import tile_kernels  # numba is imported only where it is used

    pattern = mask.row_starts, mask.starts, mask.stops
    new, done = _columns_by(mask, first=True), _columns_by(mask, first=False)
    starts, columns, repeats, counts = tile_kernels.count_tiles(
        *pattern, mask.keys, *new, *done, rows, cols
    )
    numbers = np.ascontiguousarray(counts[:, : tile_kernels.COUNTS].T)
    last = counts[:, tile_kernels.COUNTS :].reshape(-1, tile_kernels.CLASSES, 2)
    named = dict(zip(NAMES, numbers, strict=True))
    return TileCounts(rows, cols, starts, columns, repeats, **named, last=last)


def _columns_by(mask: Mask, first: bool) -> tuple[Ints, Ints]:
    """Give the keys by their first (or last) query: where each query's start, and the keys."""
    query_of = np.repeat(np.arange(mask.n), np.diff(mask.row_starts))
    order = slice(None) if first else slice(None, None, -1)
    owner = np.full(mask.keys, -1, np.int64)
    _fill_owner(owner, query_of[order], mask.starts[order], mask.stops[order])
    touched = np.flatnonzero(owner >= 0)
    by_query = touched[np.argsort(owner[touched], kind="stable")]
    starts = np.zeros(mask.n + 1, np.int64)
    np.cumsum(np.bincount(owner[touched], minlength=mask.n), out=starts[1:])
    return starts, by_query


def _fill_owner(owner: Ints, queries: Ints, starts: Ints, stops: Ints) -> None:
    from pebble.masked import tile_kernels

    tile_kernels.first_owner(owner, queries, starts, stops)
