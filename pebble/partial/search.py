"""What the exact search needs of a game with partial computation: a board, and its moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from pebble.graph import Graph
from pebble.partial import astar
from pebble.partial.moves import PartialMove
from pebble.partial.steps import BLUE, COST, EDGE, EVICTED, INTO, MARKS, OUT, RED, rest_of, settle
from pebble.partial.steps import steps as steps_of
from pebble.rules import Op
from pebble.search.driver import Outcome, Position, bits
from pebble.search.steps import COLUMNS

_run: Any = astar.run
_rest: Any = rest_of
_settle: Any = settle
_steps: Any = steps_of


class PartialBoard:
    """What the kernels know of a game: sets of vertices and of edges as bits.

    Parameters
    ----------
    graph : Graph
        A graph of at most 64 vertices and 64 edges.
    cache : int
        The words of fast memory.

    Examples
    --------
    >>> board = PartialBoard(Graph([(), (), (0, 1)]), cache=2)
    >>> board.start, board.rest(board.start)
    ((0, 0, 3), 3)
    """

    recompute = False

    def __init__(self, graph: Graph, cache: int) -> None:
        n, edges = len(graph), len(graph.preds)
        self.heads = np.repeat(np.arange(n), np.diff(graph.starts))
        self.tails = np.array(graph.preds, np.int64)
        table = np.zeros((2, n), np.uint64)
        table[INTO] = [bits(np.flatnonzero(self.heads == v).tolist()) for v in range(n)]
        table[OUT] = [bits(np.flatnonzero(self.tails == v).tolist()) for v in range(n)]
        outputs = np.uint64(bits(graph.outputs))
        self.table, self.outputs, self.cache = table, outputs, min(cache, n)
        self.start: Position = (0, 0, bits(graph.inputs))
        self.order = np.zeros(edges, np.int64)

    @property
    def sets(self) -> tuple[Any, ...]:
        """The first arguments of the kernels."""
        return self.tails, self.heads, self.table, self.outputs, self.cache

    def rest(self, position: Position) -> int:
        """Give I/O that is still to come at least."""
        marks, red, blue = map(np.uint64, position)
        return int(_rest(self.table, self.outputs, marks, blue, red))

    def run(self, *memory: Any) -> tuple[int, int]:
        """Expand nodes; see `pebble.search.astar.run`."""
        *tables, found, greed, upper, quota = memory
        why, node = _run(*self.sets, *tables, found, self.order, greed, upper, quota)
        return why, node

    def steps(self, position: Position) -> list[list[int]]:
        """Give the steps from a position, in the columns of `pebble.partial.steps`."""
        room, count = 1 << 10, -1
        while count < 0:
            room *= 2
            found = np.zeros((room, COLUMNS), np.uint64)
            count = _steps(*self.sets, *map(np.uint64, position), found, self.order)
        rows: list[list[int]] = found[:count].tolist()
        return rows


def beam(board: PartialBoard, width: int, out_of_time: Callable[[], bool]) -> Outcome:
    """Find some game soon: of the positions with as many marks, only the most hopeful go on.

    Parameters
    ----------
    board : PartialBoard
        What is played.
    width : int
        How many go on. They are those of the least I/O so far and still to come at least.
    out_of_time : callable
        Whether to stop.
    """
    edges, expanded = len(board.tails), 0
    lower, end = board.rest(board.start), ((1 << edges) - 1, 0, 0)
    # For every number of marks the positions: what they take at least, what is paid, from where.
    reached: list[dict[Position, tuple[int, int, Position | None]]] = [{} for _ in range(edges + 1)]
    reached[0][board.start] = lower, 0, None
    for level in reached[:-1]:
        for here in sorted(level, key=lambda position: level[position][0])[:width]:
            if out_of_time():
                return Outcome(lower, None, expanded, "seconds")
            expanded += 1
            for row in board.steps(here):
                there, cost = (row[MARKS], row[RED], row[BLUE]), level[here][1] + row[COST]
                known = reached[row[MARKS].bit_count()]
                if there not in known or cost < known[there][1]:
                    known[there] = cost + board.rest(there), cost, here
    path: list[Position] = []
    at: Position | None = end
    while at is not None:
        path.append(at)
        at = reached[at[0].bit_count()][at][2]
    return Outcome(lower, path[::-1], expanded, "")


def moves_of(
    graph: Graph, board: PartialBoard, path: Sequence[Position]
) -> tuple[PartialMove, ...]:
    """Give the moves of a path of positions from the start to an end."""
    pen = _Pen(graph, board)
    for here, there in pairwise(path):
        pen.step(here, there)
    return tuple(pen.moves)


class _Pen:
    # Follows the game as it is played.

    def __init__(self, graph: Graph, board: PartialBoard) -> None:
        self.graph, self.board = graph, board
        self.marks, self.red, self.blue = board.start
        self.moves: list[PartialMove] = []

    def step(self, here: Position, there: Position) -> None:
        rows = [row for row in self.board.steps(here) if (row[MARKS], row[RED], row[BLUE]) == there]
        row = min(rows, key=lambda row: row[COST])
        for v in range(len(self.graph)):
            if row[EVICTED] >> v & 1:
                if not self.blue >> v & 1:
                    self._move(Op.STORE, v)
                self._move(Op.DELETE, v)
        ends = int(self.board.tails[row[EDGE]]), int(self.board.heads[row[EDGE]])
        for v in ends:
            if self.blue >> v & 1 and not self.red >> v & 1:
                self._move(Op.LOAD, v)
        self._compute(row[EDGE])
        order, sets = self.board.order, self.board.sets
        position = np.uint64(self.marks), np.uint64(self.red), np.uint64(self.blue)
        made = _settle(*sets, *position, order)[-1]
        for edge in order[:made].tolist():
            self._compute(edge)

    def _compute(self, edge: int) -> None:
        u, v = int(self.board.tails[edge]), int(self.board.heads[edge])
        self.marks |= 1 << edge
        self._move(Op.COMPUTE, v, u)
        if self._finished(v) and self.graph.is_output(v):
            self._move(Op.STORE, v)
        for w in u, v:
            out = int(self.board.table[OUT, w])
            if self._finished(w) and not out & ~self.marks:
                self._move(Op.DELETE, w)
                self.blue &= ~(1 << w)

    def _finished(self, v: int) -> bool:
        return not int(self.board.table[INTO, v]) & ~self.marks

    def _move(self, op: Op, v: int, u: int | None = None) -> None:
        bit = 1 << v
        if op is Op.DELETE:
            self.red &= ~bit
        elif op is Op.STORE:
            self.blue |= bit
        else:
            self.red |= bit
            self.blue &= ~bit if op is Op.COMPUTE else -1
        label = self.graph.label
        self.moves.append(PartialMove(op, label(v), None if u is None else label(u)))
