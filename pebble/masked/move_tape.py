"""The tape that writes moves: each body runs for every block, and at once for all its members."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pebble.masked.family import Cells
from pebble.masked.graph import MaskedGraph
from pebble.masked.places import Inner, Pair, Place, Space, chunks
from pebble.masked.tapes import Block, Tape, Tile
from pebble.rules import Op

Ints = NDArray[np.int64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class _Members:
    """The pairs of a block, tile by tile and in order within each, and where the tiles start.

    `rows` and `cols` are the sizes of a tile.
    """

    pairs: Ints
    starts: Ints
    rows: int
    cols: int


class MoveTape(Tape):
    """Writes moves as the referee's codes, ``8 * vertex + op``; `take` gives them.

    Within a loop over pairs or members, moves are arrays of three axes: a round of that loop, a
    round of an inner loop, and the vertices that are moved at once.

    Parameters
    ----------
    graph : MaskedGraph
        Numbers the vertices.
    """

    def __init__(self, graph: MaskedGraph) -> None:
        super().__init__(graph)
        self._bodies: list[list[Ints]] = [[]]

    def take(self) -> Ints:
        """Give the codes written since the last time."""
        parts, self._bodies = self._bodies[0], [[]]
        return np.concatenate([np.zeros(0, np.int64), *(part.ravel() for part in parts)])

    def _do(self, op: Op, cells: tuple[Cells, ...]) -> None:
        for each in cells:
            assert each.numbers is not None
            if each.numbers.size:
                self._bodies[-1].append(8 * each.numbers + op)

    # Blocks and tiles.

    def query_blocks(self, rows: int, cols: int) -> Iterator[Block]:
        """Run over the blocks that have a pair."""
        table, mask = self.graph.table, self.graph.mask
        for start in range(0, mask.n, rows):
            stop = min(mask.n, start + rows)
            pairs = np.arange(table.row_starts[start], table.row_starts[stop])
            active = start + np.flatnonzero(mask.row_counts[start:stop])
            tile_of = table.keys[pairs] // cols
            block = _place(Space.QUERIES, active), _range(Space.QUERIES, start, rows, mask.n)
            yield Block(*block, _by_tile(pairs, tile_of, rows, cols))

    def key_blocks(self, cols: int, rows: int) -> Iterator[Block]:
        """Run over the blocks that have a pair."""
        table, mask = self.graph.table, self.graph.mask
        for start in range(0, mask.keys, cols):
            stop = min(mask.keys, start + cols)
            pairs = table.by_column[table.column_starts[start] : table.column_starts[stop]]
            touched = start + np.flatnonzero(mask.column_counts[start:stop])
            tile_of = table.queries[pairs] // rows
            block = _place(Space.KEYS, touched), _range(Space.KEYS, start, cols, mask.keys)
            yield Block(*block, _by_tile(pairs, tile_of, rows, cols))

    def tiles(self, block: Block) -> Iterator[Tile]:
        """Run over the tiles of a block."""
        members, table = block.at, self.graph.table
        assert isinstance(members, _Members)
        ends = table.row_starts[1:][table.queries] - 1
        for low, high in zip(members.starts[:-1], members.starts[1:], strict=True):
            pairs = members.pairs[low:high]
            queries, keys = table.queries[pairs], table.keys[pairs]
            begins, column_begins = table.first_in_row[pairs], table.first_in_column[pairs]
            finishes = pairs == ends[pairs]
            closes = pairs == table.by_column[table.column_starts[keys + 1] - 1]
            n, m = self.graph.mask.shape
            yield Tile(
                block.members,
                _range(Space.QUERIES, int(queries[0]), members.rows, n),
                _range(Space.KEYS, int(keys[0]), members.cols, m),
                _place(Space.QUERIES, np.unique(queries)),
                _place(Space.KEYS, np.unique(keys)),
                _place(Space.PAIRS, pairs),
                _place(Space.PAIRS, pairs[~begins]),
                _place(Space.PAIRS, pairs[~(begins & finishes)]),
                *_split(Space.QUERIES, queries, begins),
                *_split(Space.QUERIES, queries, finishes),
                *_split(Space.KEYS, keys, column_begins),
                *_split(Space.KEYS, keys, closes),
                *_sums_of_rows(pairs, queries, begins, finishes),
                members,
            )

    # Loops over members.

    def pairs(self, tile: Tile) -> Iterator[Pair]:
        """Run for each class that has pairs, and put their moves in order."""
        table, pairs = self.graph.table, _flat(tile.pairs)
        row_first, column_first = table.first_in_row[pairs], table.first_in_column[pairs]
        written: list[tuple[Ints, Ints]] = []
        for kind in range(4):
            rows, columns = bool(kind & 1), bool(kind & 2)
            places = np.flatnonzero((row_first == rows) & (column_first == columns))
            if not len(places):
                continue
            self._bodies.append([])
            numbers = pairs[places].reshape(-1, 1, 1)
            yield Pair(Space.PAIRS, 1, numbers, rows, columns, table)
            written.append((places, self._rows(len(places))))
        self._bodies[-1].append(_in_order(len(pairs), written))

    def each(self, place: Place) -> Iterator[Place]:
        """Run for all members at once."""
        members = _flat(place)
        if len(members):
            self._bodies.append([])
            yield Place(place.space, 1, members.reshape(-1, 1, 1))
            moves = self._rows(len(members))
            self._bodies[-1].append(moves.reshape(1, 1, -1))

    def _rows(self, rounds: int) -> Ints:
        """Close a body: give its moves, one row for each round."""
        parts = [np.broadcast_to(part, (rounds, *part.shape[1:])) for part in self._bodies.pop()]
        return np.concatenate([np.zeros((rounds, 0), np.int64), *(p[:, 0] for p in parts)], axis=1)

    def chunks(self, width: int, size: int) -> Iterator[Inner]:
        """Run over them one after the other."""
        yield from chunks(width, size)

    def _rounds(self, numbers: Ints) -> Iterator[Inner]:
        self._bodies.append([])
        yield Inner(1, False, numbers)
        parts = self._bodies.pop()
        if parts:
            outer = max(part.shape[0] for part in parts)
            shape = (outer, numbers.shape[1])
            whole = [np.broadcast_to(part, (*shape, part.shape[2])) for part in parts]
            self._bodies[-1].append(np.concatenate(whole, axis=2).reshape(outer, 1, -1))


def _by_tile(pairs: Ints, tile_of: Ints, rows: int, cols: int) -> _Members:
    order = np.argsort(tile_of, kind="stable")
    cuts = np.flatnonzero(np.diff(tile_of[order])) + 1
    ends = [len(pairs)] if len(pairs) else []
    return _Members(pairs[order], np.concatenate([[0], cuts, ends]).astype(np.int64), rows, cols)


def _range(space: Space, inside: int, size: int, extent: int) -> Place:
    start = inside // size * size
    return _place(space, np.arange(start, min(extent, start + size)))


def _place(space: Space, members: Ints) -> Place:
    return Place(space, len(members), members.reshape(1, 1, -1))


def _flat(place: Place) -> Ints:
    assert place.numbers is not None
    return place.numbers.ravel()


def _split(space: Space, members: Ints, chosen: Booleans) -> tuple[Place, Place]:
    """Give the members that are chosen somewhere, and the others, each once and ascending."""
    some = np.unique(members[chosen])
    return _place(space, some), _place(space, np.setdiff1d(members, some))


def _sums_of_rows(
    pairs: Ints, queries: Ints, begins: Booleans, finishes: Booleans
) -> tuple[Place, Place]:
    """Give the pairs that `Tile.sums_before` and `Tile.sums_after` stand for."""
    by_row = np.argsort(queries, kind="stable")  # pairs of a row ascend in either order
    rows, first = np.unique(queries[by_row], return_index=True)
    last = np.append(first[1:], len(pairs)) - 1
    going = ~np.isin(rows, queries[begins])
    left = ~np.isin(rows, queries[finishes])
    before, after = pairs[by_row][first[going]] - 1, pairs[by_row][last[left]]
    return _place(Space.PAIRS, before), _place(Space.PAIRS, after)


def _in_order(count: int, written: list[tuple[Ints, Ints]]) -> Ints:
    """Put the moves of each pair at its place; `written` has places and a row of moves for each."""
    lengths = np.zeros(count, np.int64)
    for places, rows in written:
        lengths[places] = rows.shape[1]
    starts = np.cumsum(lengths) - lengths
    codes = np.empty(int(lengths.sum()), np.int64)
    for places, rows in written:
        codes[starts[places][:, None] + np.arange(rows.shape[1])] = rows
    return codes.reshape(1, 1, -1)
