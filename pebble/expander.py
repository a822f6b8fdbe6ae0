"""Expanding a program to the stream of single moves that the referee reads.

The families and the program are turned into tables once; a compiled walker then runs the loops
and writes moves into a buffer, predecessors included, a buffer at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit

from pebble.family_graph import FamilyGraph
from pebble.moves import Move
from pebble.rules import HONG_KUNG, Op, Rules
from pebble.tables import AXES, END, LOOP, MOVE, PREDS, Words, graph_tables, program_tables
from pebble.tapes import Program

BUFFER = 1 << 15  # words; small enough to stay in a processor's second-level cache


@njit(cache=True, nogil=True)
def _walk(
    words: Words,
    at: Words,
    counters: Words,
    scratch: Words,
    # the program
    kind: Words,
    depth: Words,
    count: Words,
    end: Words,
    op: Words,
    family: Words,
    index: Words,
    # the graph
    first: Words,
    axis: Words,
    stop: Words,
    address: Words,
    function: Words,
    degree: Words,
    preds: Words,
    weight: Words,
) -> int:
    """Write moves into `words` until it is full or the program ends; give the words written.

    ``at[0]`` is the node to go on with. A BLOCK runs its moves once per round of its innermost
    variable; the addresses of all of them are affine in it, up to the next change of a piece.
    """
    written = 0
    node = at[0]
    room = len(words)
    while node < len(kind):
        d = depth[node]
        if kind[node] == LOOP:
            counters[d] = 0
            node += 1
            continue
        if kind[node] == END:
            counters[d] += 1
            if counters[d] < count[node]:
                node = end[node] + 1
            else:
                counters[d] = 0
                node += 1
            continue
        # A block: counters[d] is the round to go on with (0 unless the buffer was full).
        begin, finish = node + 1, end[node]
        moves = finish - begin
        t, rounds = counters[d], count[node]
        while t < rounds:
            until = rounds
            longest = 0
            for m in range(moves):
                s = begin + m
                f = family[s]
                cut = axis[f]
                value = index[s, cut, 0] + index[s, cut, d + 1] * t
                for q in range(d):
                    value += index[s, cut, q + 1] * counters[q]
                low, high = first[f], first[f + 1] - 1
                while low < high:  # the first piece that stops after value
                    middle = (low + high) // 2
                    if stop[middle] > value:
                        high = middle
                    else:
                        low = middle + 1
                slope = index[s, cut, d + 1]
                if slope > 0:
                    until = min(until, t + (stop[low] - value + slope - 1) // slope)
                elif slope < 0:
                    before = stop[low - 1] if low > first[f] else 0
                    until = min(until, t + (value - before) // -slope + 1)
                start, step = address[low, 0], 0
                pred_count = degree[low] if op[s] == 2 else 0
                for p in range(pred_count):
                    scratch[m, 4 + 2 * p] = preds[low, p, 0]
                    scratch[m, 5 + 2 * p] = 0
                for c in range(AXES):
                    here = index[s, c, 0] + index[s, c, d + 1] * t
                    for q in range(d):
                        here += index[s, c, q + 1] * counters[q]
                    slope = index[s, c, d + 1]
                    start += address[low, c + 1] * here
                    step += address[low, c + 1] * slope
                    for p in range(pred_count):
                        scratch[m, 4 + 2 * p] += preds[low, p, c + 1] * here
                        scratch[m, 5 + 2 * p] += preds[low, p, c + 1] * slope
                scratch[m, 0] = (
                    op[s] | pred_count << 3 | max(function[low], 0) << 11 | weight[low] << 19
                )
                scratch[m, 1], scratch[m, 2], scratch[m, 3] = pred_count, start, step
                longest += 2 + pred_count
            while t < until:
                if written + longest > room:
                    counters[d] = t
                    at[0] = node
                    return written
                for m in range(moves):
                    words[written] = scratch[m, 0]
                    words[written + 1] = scratch[m, 2]
                    scratch[m, 2] += scratch[m, 3]
                    written += 2
                    for p in range(scratch[m, 1]):
                        words[written] = scratch[m, 4 + 2 * p]
                        scratch[m, 4 + 2 * p] += scratch[m, 5 + 2 * p]
                        written += 1
                t += 1
        counters[d] = 0
        node = finish
    at[0] = node
    return written


@dataclass(frozen=True)
class Expansion:
    """A program over a graph, compiled, ready to be expanded.

    Parameters
    ----------
    graph : FamilyGraph
        Where the moves happen.
    program : Program
        What a tape recorded.
    rules : Rules
        Only the weights matter, and only those of families.
    """

    graph: FamilyGraph
    program: Program
    rules: Rules = HONG_KUNG

    def streams(self) -> Iterator[tuple[Words, int]]:
        """Give the moves, a buffer at a time: the buffer and the words that count in it.

        The buffer is the same array each time.
        """
        p, g = program_tables(self.graph, self.program), graph_tables(self.graph, self.rules)
        moves = int(max(np.diff(np.flatnonzero(np.append(p.kind != MOVE, True))), default=0))
        words = np.zeros(max(BUFFER, (2 + PREDS) * moves), np.int64)
        at, counters = np.zeros(1, np.int64), np.zeros(p.depths + 2, np.int64)
        scratch = np.zeros((max(moves, 1), 4 + 2 * PREDS), np.int64)
        while at[0] < len(p.kind):
            written = _walk(
                words, at, counters, scratch,
                p.kind, p.depth, p.count, p.end, p.op, p.family, p.index,
                g.first, g.axis, g.stop, g.address, g.kind, g.degree, g.preds, g.weight,
            )  # fmt: skip
            yield words, written

    def moves(self) -> Iterator[Move]:
        """Give the moves one by one, as values."""
        for words, length in self.streams():
            at = 0
            while at < length:
                head = int(words[at])
                yield self.move(head, int(words[at + 1]))
                at += 2 + (head >> 3 & 255)

    def move(self, head: int, vertex: int) -> Move:
        """Read a move off its first two words."""
        return Move(Op(head & 7), self.graph.label(vertex))
