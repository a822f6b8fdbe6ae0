"""A mask cut into tiles: which are empty, partial and full."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from pebble.checks import positive
from pebble.masks.arguments import indices
from pebble.masks.intervals import Ints, expanded, prefix

if TYPE_CHECKING:
    from pebble.masks.mask import Mask

# Intervals that are cut into tiles at once; a bound on the memory that this takes.
AT_ONCE = 1 << 21


@dataclass(frozen=True)
class Tiles:
    """The tiles of a mask. Nothing is held for an empty tile, and little for runs of equal ones.

    Parameters
    ----------
    mask : Mask
        What is cut.
    rows, cols : int
        The queries and keys of a tile; the last ones may have fewer. What is larger than the mask
        is cut to it.

    Raises
    ------
    SizeError
        A size is no positive integer.

    Examples
    --------
    A block-diagonal mask fits its own tiles, and wastes half of larger ones.

    >>> from pebble.masks import document
    >>> mask = document([64] * 16)
    >>> mask.tiles(64, 64)
    Tiles(16 x 16: 16 full, 0 partial, 240 empty)
    >>> mask.tiles(128, 128)
    Tiles(8 x 8: 0 full, 8 partial, 56 empty)
    >>> mask.pairs, mask.tiles(128, 128).touched_pairs
    (65536, 131072)
    """

    mask: Mask
    rows: int
    cols: int

    def __post_init__(self) -> None:
        rows = positive("rows", self.rows, "the queries of a tile")
        cols = positive("cols", self.cols, "the keys of a tile")
        object.__setattr__(self, "rows", min(rows, self.mask.n))
        object.__setattr__(self, "cols", min(cols, self.mask.keys))

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of tile rows and tile columns."""
        return -(-self.mask.n // self.rows), -(-self.mask.keys // self.cols)

    @property
    def total(self) -> int:
        """How many tiles there are."""
        return self.shape[0] * self.shape[1]

    @cached_property
    def runs(self) -> Runs:
        """The tiles that are not empty, as runs of equal pairs."""
        return _runs(self.mask, self.rows, self.cols)

    @cached_property
    def visited(self) -> int:
        """How many tiles have a pair."""
        return int((self.runs.stops - self.runs.starts).sum())

    @property
    def empty(self) -> int:
        """How many tiles have none."""
        return self.total - self.visited

    @cached_property
    def full(self) -> int:
        """How many tiles have all their pairs; those at the edges have fewer to have."""
        edge = self._at_edge
        inner = self.runs.stops - self.runs.starts - edge
        heights = self._heights(self.runs.row_of)
        whole = inner * (self.runs.pairs == heights * self.cols)
        whole += edge * (self.runs.pairs == heights * self._last_width)
        return int(whole.sum())

    @property
    def partial(self) -> int:
        """How many tiles have some pairs and lack some."""
        return self.visited - self.full

    @cached_property
    def touched_pairs(self) -> int:
        """The places of the visited tiles, what a kernel computes that skips the empty ones."""
        widths = (self.runs.stops - self.runs.starts) * self.cols
        widths -= self._at_edge * (self.cols - self._last_width)
        return int((self._heights(self.runs.row_of) * widths).sum())

    @property
    def _last_width(self) -> int:
        return self.mask.keys - (self.shape[1] - 1) * self.cols

    @property
    def _at_edge(self) -> Ints:
        at_edge: Ints = (self.runs.stops == self.shape[1]).astype(np.int64)
        return at_edge

    def _heights(self, tile_rows: Ints) -> Ints:
        heights: Ints = np.minimum(self.rows, self.mask.n - tile_rows * self.rows)
        return heights

    # The tiles one by one.

    @cached_property
    def row_starts(self) -> Ints:
        """Where each tile row starts in `columns` and `pairs`; one more than there are rows."""
        lengths = self.runs.stops - self.runs.starts
        ends = np.searchsorted(self.runs.row_of, np.arange(self.shape[0] + 1))
        return prefix(lengths)[ends]

    @cached_property
    def columns(self) -> Ints:
        """The tile columns of the visited tiles, row by row.

        >>> from pebble.masks import causal
        >>> tiles = causal(4).tiles(2, 2)
        >>> tiles.row_starts, tiles.columns, tiles.pairs
        (array([0, 1, 3]), array([0, 0, 1]), array([3, 4, 3]))
        """
        return expanded(self.runs.starts, self.runs.stops)

    @cached_property
    def pairs(self) -> Ints:
        """The pairs in each visited tile, in the order of `columns`."""
        return np.repeat(self.runs.pairs, self.runs.stops - self.runs.starts)

    def count(self, r: int, c: int) -> int:
        """Count the pairs of one tile.

        Raises
        ------
        MaskError
            There is no such tile.
        """
        i0, i1, j0, j1 = self._box(r, c)
        return self.mask.pairs_in(i0, i1, j0, j1)

    def kind(self, r: int, c: int) -> Literal["empty", "partial", "full"]:
        """Tell what one tile is.

        Raises
        ------
        MaskError
            There is no such tile.

        Examples
        --------
        >>> from pebble.masks import causal
        >>> tiles = causal(4).tiles(2, 2)
        >>> tiles.kind(0, 0), tiles.kind(0, 1), tiles.kind(1, 0)
        ('partial', 'empty', 'full')
        """
        i0, i1, j0, j1 = self._box(r, c)
        pairs = self.mask.pairs_in(i0, i1, j0, j1)
        if not pairs:
            return "empty"
        return "full" if pairs == (i1 - i0) * (j1 - j0) else "partial"

    def _box(self, r: int, c: int) -> tuple[int, int, int, int]:
        r = int(indices("r", r, self.shape[0], "tile rows"))
        c = int(indices("c", c, self.shape[1], "tile columns"))
        i1 = min((r + 1) * self.rows, self.mask.n)
        return r * self.rows, i1, c * self.cols, min((c + 1) * self.cols, self.mask.keys)

    # What a loop from a first to a last tile visits.

    @cached_property
    def hulls(self) -> tuple[Ints, Ints]:
        """Each tile row's first visited column, and one more than its last; 0 and 0 if none."""
        ends = np.searchsorted(self.runs.row_of, np.arange(self.shape[0] + 1))
        some = ends[1:] > ends[:-1]
        first, last = np.zeros(self.shape[0], np.int64), np.zeros(self.shape[0], np.int64)
        first[some] = self.runs.starts[ends[:-1][some]]
        last[some] = self.runs.stops[ends[1:][some] - 1]
        return first, last

    def hull(self, r: int) -> tuple[int, int]:
        """Give a tile row's first visited column, and one more than its last; 0 and 0 if none.

        Raises
        ------
        MaskError
            There is no such tile row.

        Examples
        --------
        >>> from pebble.masks import window
        >>> window(8, left=2, right=0).tiles(2, 2).hull(2)
        (1, 3)
        """
        r = int(indices("r", r, self.shape[0], "tile rows"))
        return int(self.hulls[0][r]), int(self.hulls[1][r])

    @cached_property
    def hull_visited(self) -> int:
        """How many tiles a kernel visits that loops from each row's first to its last.

        >>> from pebble.masks import from_array
        >>> tiles = from_array([[True, False, True]]).tiles(1, 1)
        >>> tiles.visited, tiles.hull_visited
        (2, 3)
        """
        return int((self.hulls[1] - self.hulls[0]).sum())

    def __repr__(self) -> str:
        grid = f"{self.shape[0]} x {self.shape[1]}"
        return f"Tiles({grid}: {self.full} full, {self.partial} partial, {self.empty} empty)"


class Runs(NamedTuple):
    """Visited tiles: run t is the tile columns starts[t] to stops[t] - 1 of one tile row.

    Parameters
    ----------
    row_of, starts, stops : arrays of int64
        The tile row and the tile columns, row by row in order. Runs that touch differ in `pairs`.
    pairs : array of int64
        The pairs in each tile of the run.
    """

    row_of: Ints
    starts: Ints
    stops: Ints
    pairs: Ints


def _runs(mask: Mask, rows: int, cols: int) -> Runs:
    parts = [_runs_of(mask, i0, i1, rows, cols) for i0, i1 in _chunks(mask, rows)]
    return Runs(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _chunks(mask: Mask, rows: int) -> Iterator[tuple[int, int]]:
    # Whole tile rows, some AT_ONCE intervals at a time.
    i0 = 0
    while i0 < mask.n:
        limit = np.searchsorted(mask.row_starts, mask.row_starts[i0] + AT_ONCE, side="right") - 1
        i1 = min(max(int(limit) // rows * rows, i0 + rows), mask.n)
        yield i0, i1
        i0 = i1


def _runs_of(mask: Mask, i0: int, i1: int, rows: int, cols: int) -> Runs:
    # An interval adds a step function of the tile column: its part of the first tile, `cols` in
    # those between, its part of the last one. The steps of all are sorted and added up.
    part = slice(mask.row_starts[i0], mask.row_starts[i1])
    starts, stops = mask.starts[part], mask.stops[part]
    row_of = np.repeat(np.arange(i0, i1) // rows, np.diff(mask.row_starts[i0 : i1 + 1]))
    width = -(-mask.keys // cols) + 1  # one more place, for the steps down at the right end
    c0, c1 = row_of * width + starts // cols, row_of * width + (stops - 1) // cols
    one, more = c0 == c1, c0 != c1
    size = (stops - starts)[one]
    head = cols - (starts % cols)[more]
    tail = (stops - 1)[more] % cols + 1
    at = np.concatenate([c0[one], c0[one] + 1, c0[more], c0[more] + 1, c1[more], c1[more] + 1])
    step = np.concatenate([size, -size, head, cols - head, tail - cols, -tail])
    at, level = _summed(at, step, i0 // rows * width, -(-i1 // rows) * width)
    some = np.flatnonzero(level)  # the last level is 0: every run has a next place
    found, first = np.divmod(at[some], width)
    return Runs(found, first, at[some + 1] - found * width, level[some])


def _summed(at: Ints, step: Ints, first: int, last: int) -> tuple[Ints, Ints]:
    # The places from `first` to `last` where the sum of the steps so far changes, and that sum.
    if last - first <= len(at):
        steps = np.bincount(at - first, step, minlength=last - first).astype(np.int64)
        at = np.flatnonzero(steps)
        return at + first, np.cumsum(steps[at])
    # Few steps on a large grid. Place and step in one number, so as to sort plain integers.
    low = int(step.min(initial=0))
    spread = int(step.max(initial=0)) - low + 1
    packed = at * spread + (step - low)
    packed.sort()
    at, step = np.divmod(packed, spread)
    final = np.ones(len(at), bool)
    final[:-1] = at[1:] != at[:-1]
    at, level = at[final], np.cumsum(step + low)[final]
    changed = np.diff(level, prepend=0) != 0
    return at[changed], level[changed]
