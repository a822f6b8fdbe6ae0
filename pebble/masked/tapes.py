"""Writing a schedule under a mask: one text, and two tapes that read it.

A schedule is a generator that takes a tape. Its loops over blocks and tiles are the tape's: the
tape that writes moves runs a body for each block, the tape that counts once in all, with arrays for
sizes. A schedule yields after each block, where the moves so far may be taken.

    >>> from pebble.attention import Attention
    >>> from pebble.masked.passes import forward_graph
    >>> from pebble.masks import causal
    >>> graph = forward_graph(Attention(n=4, d=1), causal(4))
    >>> Q, K = graph["Q"], graph["K"]
    >>> def read(tape):
    ...     for I in tape.query_blocks(2, 1):
    ...         tape.load(Q[I.members])
    ...         for T in tape.tiles(I):
    ...             tape.load(K[T.keys])
    ...             tape.delete(K[T.keys])
    ...         tape.delete(Q[I.members])
    ...         yield
    >>> counted(graph, read)  # 2 queries and 2 keys, then 2 queries and 4 keys
    Profile(words=(10, 0, 0, 10), net=0, peak=3)
    >>> sum(len(codes) for codes in written(graph, read))
    20
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pebble.masked.family import Cells
from pebble.masked.graph import MaskedGraph
from pebble.masked.places import Inner, Pair, Place
from pebble.masked.profile import Profile
from pebble.rules import Op

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Block:
    """A block of queries (or of keys) that the tiles of a row (a column) of tiles share.

    Parameters
    ----------
    members : Place
        Its queries that attend to something; its keys that are attended to.
    whole : Place
        All its queries or keys.
    at : object
        What the tape knows of it.
    """

    members: Place
    whole: Place
    at: object


@dataclass(frozen=True)
class Tile:
    """A tile that is not empty.

    Parameters
    ----------
    block : Place
        The members of the block that it lies in.
    whole_queries, whole_keys : Place
        All in its range, as a kernel loads them.
    queries, keys : Place
        Those that have a pair in it.
    pairs, later_pairs, shared_pairs : Place
        Its pairs; those that are not the first of their row; those that are not the only one.
    rows_started, rows_going, rows_finished, rows_left : Place
        Of its queries, those whose first pair it has, the others; those whose last pair it has,
        the others.
    columns_started, columns_going, columns_finished, columns_left : Place
        The same of its keys.
    sums_before, sums_after : Place
        The pairs that the sums of rows have come to: of `rows_going`, the last before the tile; of
        `rows_left`, the last in the tile.
    at : object
        What the tape knows of it.
    """

    block: Place
    whole_queries: Place
    whole_keys: Place
    queries: Place
    keys: Place
    pairs: Place
    later_pairs: Place
    shared_pairs: Place
    rows_started: Place
    rows_going: Place
    rows_finished: Place
    rows_left: Place
    columns_started: Place
    columns_going: Place
    columns_finished: Place
    columns_left: Place
    sums_before: Place
    sums_after: Place
    at: object


class Tape(ABC):
    """What a schedule under a mask writes on."""

    def __init__(self, graph: MaskedGraph) -> None:
        self.graph = graph

    def load(self, *cells: Cells) -> None:
        """Load vertices."""
        self._do(Op.LOAD, cells)

    def store(self, *cells: Cells) -> None:
        """Store vertices."""
        self._do(Op.STORE, cells)

    def compute(self, *cells: Cells) -> None:
        """Compute vertices, in their order."""
        self._do(Op.COMPUTE, cells)

    def delete(self, *cells: Cells) -> None:
        """Take the red pebbles off vertices."""
        self._do(Op.DELETE, cells)

    @abstractmethod
    def _do(self, op: Op, cells: tuple[Cells, ...]) -> None: ...

    @abstractmethod
    def query_blocks(self, rows: int, cols: int) -> Iterator[Block]:
        """Run over the queries in blocks of `rows`, whose tiles have `cols` keys."""

    @abstractmethod
    def key_blocks(self, cols: int, rows: int) -> Iterator[Block]:
        """Run over the keys in blocks of `cols`, whose tiles have `rows` queries."""

    @abstractmethod
    def tiles(self, block: Block) -> Iterator[Tile]:
        """Run over the tiles of a block that are not empty, keys (or queries) ascending."""

    @abstractmethod
    def pairs(self, tile: Tile) -> Iterator[Pair]:
        """Run over the pairs of a tile: row by row in a block of queries, else column by column.

        The body is run for each class of pairs; see `Pair`.
        """

    @abstractmethod
    def each(self, place: Place) -> Iterator[Place]:
        """Run over the members of a block one by one."""

    @abstractmethod
    def chunks(self, width: int, size: int) -> Iterator[Inner]:
        """Run over the indices of a dimension, `size` at a time; outside of loops over members."""

    @abstractmethod
    def _rounds(self, numbers: Ints) -> Iterator[Inner]: ...

    def inner(self, width: int, start: int = 0) -> Iterator[Inner]:
        """Run over the indices from `start` to ``start + width - 1``, one by one."""
        if width and start == 0:
            yield Inner(1, True, np.zeros((1, 1, 1), np.int64))
            start, width = 1, width - 1
        if width:
            yield from self._rounds(np.arange(start, start + width).reshape(1, -1, 1))


Write = Callable[[Tape], Iterator[None]]


def counted(graph: MaskedGraph, write: Write) -> Profile:
    """Count what a schedule does, without writing its moves."""
    from pebble.masked.count_tape import CountTape

    tape = CountTape(graph)
    for _ in write(tape):
        pass
    return tape.profile


def written(graph: MaskedGraph, write: Write) -> Iterator[Ints]:
    """Give a schedule's moves as the referee's codes, some at a time."""
    from pebble.masked.move_tape import MoveTape

    tape = MoveTape(graph)
    for _ in write(tape):
        yield tape.take()
    rest = tape.take()
    if len(rest):
        yield rest
