"""Moves that are written as codes, as the stream that the referee and the executor read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pebble.cost import Cost
from pebble.graph import ComputationGraph
from pebble.moves import Move
from pebble.replay import decode
from pebble.rules import HONG_KUNG, Op, Rules

Ints = NDArray[np.int64]

PIECE = 1 << 18  # codes that are expanded at once


@njit(cache=True, nogil=True)
def _expand(
    codes: Ints, starts: Ints, preds: Ints, functions: Ints, weights: Ints, words: Ints
) -> int:
    """Write a stream; see `pebble.referee`."""
    at = 0
    for code in codes:
        op, v = code & 7, code >> 3
        first, last = starts[v], starts[v]
        if op == 2:
            last = starts[v + 1]
        weight = weights[v] if len(weights) else 1
        words[at] = op | (last - first) << 3 | functions[v] << 11 | weight << 19
        words[at + 1] = v
        at += 2
        for p in range(first, last):
            words[at] = preds[p]
            at += 1
    return at


class CodedGraph(ComputationGraph, Protocol):
    """A graph with its edges and functions in arrays, which moves are expanded with."""

    @property
    def edges(self) -> tuple[Ints, Ints]:
        """Where the predecessors of each vertex start, and the predecessors, vertex by vertex."""

    @property
    def functions(self) -> Ints:
        """What each vertex computes, as `Function` numbers it."""

    def weights(self, rules: Rules, /) -> Ints:
        """Give the words that each vertex takes; an empty array when that is 1."""


@dataclass(frozen=True)
class CodeExpansion:
    """A schedule as codes, ready to be expanded: what `pebble.expander.Expansion` is to tiles.

    Parameters
    ----------
    graph : CodedGraph
        Where the moves happen.
    codes : callable
        Gives the moves as the referee's codes, ``8 * vertex + op``, some at a time.
    rules : Rules
        The game's rules.
    """

    graph: CodedGraph
    codes: Callable[[], Iterator[Ints]]
    rules: Rules = HONG_KUNG

    def count(self) -> Cost:
        """Add up the moves and their words, one by one; none is checked."""
        weights = self.graph.weights(self.rules)
        totals, used, peak = np.zeros(6, np.int64), 0, 0
        for codes in self.codes():
            ops = codes & 7
            words = weights[codes >> 3] if len(weights) else np.ones(len(codes), np.int64)
            counts = np.where((ops == Op.LOAD) | (ops == Op.STORE), words, 1)
            totals += np.bincount(ops, counts, minlength=6).astype(np.int64)
            change = np.where(ops == Op.STORE, 0, np.where(ops == Op.DELETE, -words, words))
            heights = used + np.cumsum(change)
            peak, used = max(peak, int(heights.max(initial=0))), int(used + change.sum())
        loads, stores, computes, deletes = (int(total) for total in totals[:4])
        return Cost(loads, stores, computes, deletes, peak)

    def streams(self) -> Iterator[tuple[Ints, int]]:
        """Give the moves, a buffer at a time: the buffer and the words that count in it."""
        starts, preds = self.graph.edges
        weights = self.graph.weights(self.rules)
        degree = int(np.diff(starts).max())
        words = np.empty(PIECE * (2 + degree), np.int64)
        for codes in self.codes():
            for at in range(0, len(codes), PIECE):
                piece = codes[at : at + PIECE]
                yield (
                    words,
                    _expand(piece, starts, preds, self.graph.functions, weights, words),
                )

    def moves(self) -> Iterator[Move]:
        """Give the moves one by one, as values."""
        for codes in self.codes():
            yield from decode(self.graph, codes)

    def move(self, head: int, vertex: int) -> Move:
        """Read a move off its first two words."""
        return Move(Op(head & 7), self.graph.label(vertex))
