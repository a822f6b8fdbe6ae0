"""The tape that counts: each body runs once, with arrays for sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pebble.masked.family import Cells
from pebble.masked.graph import MaskedGraph
from pebble.masked.places import Inner, Pair, Place, Space, chunks
from pebble.masked.profile import Profile, mixed
from pebble.masked.tapes import Block, Tape, Tile
from pebble.masked.tiles import TileCounts, count_tiles
from pebble.masks import Mask
from pebble.rules import Op

Ints = NDArray[np.int64]

CLASSES = [(False, False), (True, False), (False, True), (True, True)]


@dataclass(frozen=True)
class _Counts:
    """The tiles of all blocks, of queries or of keys."""

    tiles: TileCounts
    of_queries: bool

    @cached_property
    def owner(self) -> Ints:
        """The block of each strip."""
        return np.repeat(np.arange(len(self.tiles.starts) - 1), np.diff(self.tiles.starts))


class CountTape(Tape):
    """Adds up a schedule's words and follows what is red. `profile` has the sum.

    Parameters
    ----------
    graph : MaskedGraph
        Only its mask matters.
    """

    def __init__(self, graph: MaskedGraph) -> None:
        super().__init__(graph)
        self._open = [Profile()]

    @property
    def profile(self) -> Profile:
        """What was counted so far."""
        return self._open[-1]

    def _do(self, op: Op, cells: tuple[Cells, ...]) -> None:
        for each in cells:
            self._open[-1] = self._open[-1].move(op, each.size)

    def _close(self) -> Profile:
        return self._open.pop()

    def _add(self, profile: Profile) -> None:
        self._open[-1] = self._open[-1].then(profile)

    def query_blocks(self, rows: int, cols: int) -> Iterator[Block]:
        """Run once for all blocks."""
        mask = self.graph.mask
        active = mask.row_counts > 0
        return self._blocks(
            Space.QUERIES, active, rows, _Counts(count_tiles(mask, rows, cols), True)
        )

    def key_blocks(self, cols: int, rows: int) -> Iterator[Block]:
        """Run once for all blocks."""
        mask = self.graph.mask
        touched = mask.column_counts > 0
        counts = _Counts(count_tiles(mask.T, cols, rows), False)
        return self._blocks(Space.KEYS, touched, cols, counts)

    def _blocks(
        self, space: Space, kept: NDArray[np.bool_], size: int, counts: _Counts
    ) -> Iterator[Block]:
        starts = np.arange(0, len(kept), size)
        sizes = np.add.reduceat(kept, starts, dtype=np.int64)
        whole = np.minimum(size, len(kept) - starts)
        self._open.append(Profile())
        yield Block(Place(space, sizes), Place(space, whole), counts)
        self._add(self._close().total_of(len(sizes)))

    def tiles(self, block: Block) -> Iterator[Tile]:
        """Run once for all tiles."""
        counts = block.at
        assert isinstance(counts, _Counts)
        t = counts.tiles
        members = Place(block.members.space, np.asarray(block.members.size)[counts.owner])
        rows = t.queries, t.rows_started, t.rows_finished
        columns = t.keys, t.columns_started, t.columns_finished
        only = t.only
        if not counts.of_queries:
            rows, columns, only = columns, rows, self._only(counts)
        self._open.append(Profile())
        whole = _whole(self.graph.mask, counts)
        yield Tile(
            members,
            Place(Space.QUERIES, whole[0]),
            Place(Space.KEYS, whole[1]),
            Place(Space.QUERIES, rows[0]),
            Place(Space.KEYS, columns[0]),
            Place(Space.PAIRS, t.pairs),
            Place(Space.PAIRS, t.pairs - rows[1]),
            Place(Space.PAIRS, t.pairs - only),
            *_split(Space.QUERIES, *rows),
            *_split(Space.KEYS, *columns),
            Place(Space.PAIRS, rows[0] - rows[1]),
            Place(Space.PAIRS, rows[0] - rows[2]),
            counts,
        )
        self._add(self._close().times(t.repeats).in_turn(t.starts))

    def _only(self, counts: _Counts) -> Ints:
        """Give the pairs of each strip's tiles that are the only one of their query.

        A tile of a block of keys is counted by columns, so these are looked up one by one.
        """
        mask, t = self.graph.mask, counts.tiles
        alone = np.flatnonzero(mask.row_counts == 1)
        keys = mask.starts[mask.row_starts[alone]]
        across = -(-mask.n // t.cols)
        # A strip of several tiles has none or the same in each: its first tile has them all.
        places = counts.owner * across + t.columns
        found = np.searchsorted(places, (keys // t.rows) * across + alone // t.cols, side="right")
        inside = t.columns[found - 1] == alone // t.cols
        return np.bincount(found[inside] - 1, minlength=len(t.columns))

    def pairs(self, tile: Tile) -> Iterator[Pair]:
        """Run once for each class."""
        counts = tile.at
        assert isinstance(counts, _Counts)
        t, profiles = counts.tiles, []
        for row_first, column_first in CLASSES:
            self._open.append(Profile())
            yield Pair(Space.PAIRS, 1, None, row_first, column_first)
            profiles.append(self._close())
        both, rows, columns = t.both_started, t.rows_started, t.columns_started
        sizes = [t.pairs - rows - columns + both, rows - both, columns - both, both]
        if not counts.of_queries:  # a row of the tiles is a column of the mask
            profiles = [profiles[kind] for kind in (0, 2, 1, 3)]
        self._add(mixed(profiles, sizes, t.last))

    def each(self, place: Place) -> Iterator[Place]:
        """Run once."""
        self._open.append(Profile())
        yield Place(place.space, 1)
        self._add(self._close().times(place.size))

    def chunks(self, width: int, size: int) -> Iterator[Inner]:
        """Run for the first, once for all others that are whole, and for what is left."""
        first, *later = chunks(width, size)
        yield first
        whole = [part for part in later if part.size == size]
        if whole:
            self._open.append(Profile())
            yield whole[0]
            self._add(self._close().times(len(whole)))
        yield from later[len(whole) :]

    def _rounds(self, numbers: Ints) -> Iterator[Inner]:
        self._open.append(Profile())
        yield Inner(1, False, numbers)
        self._add(self._close().times(numbers.shape[1]))


def _whole(mask: Mask, counts: _Counts) -> tuple[Ints, Ints]:
    """Give the queries and the keys in the range of each tile."""
    t, (n, keys) = counts.tiles, mask.shape
    outer, inner = (n, keys) if counts.of_queries else (keys, n)
    sizes = (
        np.minimum(t.rows, outer - counts.owner * t.rows),
        np.minimum(t.cols, inner - t.columns * t.cols),
    )
    return sizes if counts.of_queries else sizes[::-1]


def _split(
    space: Space, some: Ints, started: Ints, finished: Ints
) -> tuple[Place, Place, Place, Place]:
    begun, going = Place(space, started), Place(space, some - started)
    return begun, going, Place(space, finished), Place(space, some - finished)
