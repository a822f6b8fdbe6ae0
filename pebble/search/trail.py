"""Writes the path that a search found as moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from pebble.graph import Graph
from pebble.moves import Move
from pebble.rules import Op
from pebble.search.driver import Board, Position
from pebble.search.steps import (
    BLUE,
    COLUMNS,
    COST,
    DONE,
    EVICTED,
    PREDS,
    RED,
    SLID,
    STORED,
    VERTEX,
    arranged,
    dead_of,
    settle,
    steps,
)

_settle: Any = settle
_steps: Any = steps
_arranged: Any = arranged


def members(bits: int) -> Iterator[int]:
    """Give the vertices of a set, in increasing order.

    Examples
    --------
    >>> list(members(5))
    [0, 2]
    """
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def moves_of(graph: Graph, game: Board, path: Sequence[Position]) -> tuple[Move, ...]:
    """Give the moves of a path of positions from the start to an end."""
    pen = _Pen(graph, game)
    for here, there in pairwise(path):
        pen.step(here, there)
    return tuple(pen.moves)


class _Pen:
    # Follows the game as it is played: `done` is that of the positions; `blue` forgets nothing.
    # A search arranges twins, which change places with that: `who` is the vertex that is meant.

    def __init__(self, graph: Graph, game: Board) -> None:
        self.graph, self.game = graph, game
        self.done, self.red, self.blue = 0, 0, int(game.inputs)
        self.who = list(range(len(graph)))
        self.moves: list[Move] = []

    def step(self, here: Position, there: Position) -> None:
        row = self._row(here, there)
        v, slid = row[VERTEX], row[SLID]
        for u in members(row[STORED]):
            self._move(Op.STORE, u)
        for u in members(row[EVICTED] & ~slid):
            self._move(Op.DELETE, u)
        for u in members(int(self.game.table[PREDS, v]) & ~self.red):
            self._move(Op.LOAD, u)
        self._compute(v, slid)
        order = np.zeros((len(self.graph) * 64, 2), np.int64)
        after = [np.uint64(bits) for bits in (self.done, self.red, self.blue)]
        made = _settle(*self.game.sets, *after, order)[-1]
        for v, source in order[:made].tolist():
            self._compute(v, 0 if source < 0 else 1 << source)
        self._arrange(row)

    def _row(self, here: Position, there: Position) -> list[int]:
        # The cheapest step between two positions.
        room = 1 << 10
        count = -1
        while count < 0:
            room *= 2
            found = np.zeros((room, COLUMNS), np.uint64)
            order = np.zeros((len(self.graph) * 64, 2), np.int64)
            start = [np.uint64(bits) for bits in here]
            count = _steps(*self.game.sets, *start, found, order)
        twins = self.game.twins
        rows = [
            row.tolist()
            for row in found[:count]
            if tuple(map(int, _arranged(twins, row[DONE], row[RED], row[BLUE]))) == there
        ]
        return min(rows, key=lambda row: row[COST])

    def _arrange(self, row: list[int]) -> None:
        # As `arranged` does: what is computed, red and blue comes first among twins.
        place = list(range(len(self.graph)))
        for line in self.game.twins.tolist():
            twins = [v for v in line if v >= 0]
            lies = sorted(twins, key=lambda v: [-(row[at] >> v & 1) for at in (DONE, RED, BLUE)])
            for at, v in zip(twins, lies, strict=True):
                place[v] = at
        self.done, self.red, self.blue = (
            sum(1 << place[v] for v in members(bits)) for bits in (self.done, self.red, self.blue)
        )
        who = self.who
        self.who = [0] * len(who)
        for v, at in enumerate(place):
            self.who[at] = who[v]

    def _compute(self, v: int, slid: int) -> None:
        bit, outputs = 1 << v, int(self.game.outputs)
        fresh = outputs & bit & ~self.done
        self.done |= bit & outputs if self.game.recompute else bit
        if slid:
            self._move(Op.SLIDE, v, next(members(slid)))
        else:
            self._move(Op.COMPUTE, v)
        if fresh:
            self._move(Op.STORE, v)
        red, done = np.uint64(self.red), np.uint64(self.done)
        dead = dead_of(self.game.table, red, done, self.game.outputs, self.game.recompute)
        for u in members(int(dead)):
            self._move(Op.DELETE, u)

    def _move(self, op: Op, v: int, source: int | None = None) -> None:
        if op is Op.STORE:
            self.blue |= 1 << v
        elif op is Op.DELETE:
            self.red &= ~(1 << v)
        else:
            self.red |= 1 << v
        if source is not None:
            self.red &= ~(1 << source)
        slid = None if source is None else self.graph.label(self.who[source])
        self.moves.append(Move(op, self.graph.label(self.who[v]), slid))
