"""Moves that a schedule could have left out: dead loads, dead stores, dead computes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pebble.expander import Expansion
from pebble.graph import ComputationGraph, explicit
from pebble.moves import Label, Move
from pebble.playback import Referee
from pebble.referee import Words
from pebble.replay import encode, replay
from pebble.rules import HONG_KUNG, Rules

Flags = NDArray[np.uint8]

# What is known of a vertex so far: three kinds of moves that are not used yet, and its state.
LOADED, MADE, STORED = 1, 2, 4
ONCE, RED, BLUE = 8, 16, 32

SHOWN = 5  # vertices of each kind that are named


@dataclass(frozen=True)
class Waste:
    """What a legal schedule did in vain, counted move by move.

    A move counts as used when the next move that needs it comes before the pebble goes: nothing is
    traced further, so a load for a compute that is itself dead is used.

    Parameters
    ----------
    dead_loads : int
        Loads after which no compute used the red pebble, and loads of what was red already.
    dead_stores : int
        Stores of what is no output and was never loaded afterwards, and stores of what was blue
        already.
    dead_computes : int
        Computes after which no compute used the red pebble and no store wrote it, and computes of
        what was red already.
    recomputes : int
        Computes of what was computed before.
    loads, stores, computes : tuple of labels
        The vertices of the first five dead moves of each kind.

    Examples
    --------
    >>> from pebble.graph import Graph
    >>> graph = Graph([(), (0,)], labels=["a", "b"])
    >>> again = ["load a", "compute b", "store b", "delete a", "load a"]
    >>> found = waste(graph, again, cache=2)
    >>> found.dead_loads, found.loads, found.none
    (1, ('a',), False)
    """

    dead_loads: int
    dead_stores: int
    dead_computes: int
    recomputes: int
    loads: tuple[Label, ...] = ()
    stores: tuple[Label, ...] = ()
    computes: tuple[Label, ...] = ()

    @property
    def none(self) -> bool:
        """Whether no move was dead and nothing was computed again."""
        return not (self.dead_loads or self.dead_stores or self.dead_computes or self.recomputes)


@njit(cache=True, nogil=True)
def _note(
    words: Words, length: int, output: Flags, flags: Flags, counts: Words, shown: Words
) -> None:
    """Go through a stream of legal moves; see `Waste`.

    `counts` has dead loads, stores, computes, and recomputes; the rows of `shown` the vertices.
    """
    at = 0
    while at < length:
        op, v = words[at] & 7, words[at + 1]
        last = at + 2 + ((words[at] >> 3) & 255)
        now = flags[v]
        if op == 0:
            if now & RED:
                _show(0, v, counts, shown)
            else:
                now = now & ~STORED | LOADED | RED
        elif op == 1:
            if now & BLUE:
                _show(1, v, counts, shown)
            else:
                now = now & ~(MADE | LOADED) | BLUE
                if not output[v]:
                    now |= STORED
        elif op == 2:
            for p in range(at + 2, last):
                flags[words[p]] &= ~(LOADED | MADE)
            if now & ONCE:
                counts[3] += 1
            if now & RED:
                _show(2, v, counts, shown)
            else:
                now |= MADE | RED
            now |= ONCE
        elif op == 5:
            if now & STORED:
                _show(1, v, counts, shown)
            now &= ~(STORED | BLUE)
        else:
            if now & LOADED:
                _show(0, v, counts, shown)
            if now & MADE:
                _show(2, v, counts, shown)
            now &= ~(LOADED | MADE | RED)
        flags[v] = now
        at = last


@njit(cache=True, nogil=True)
def _show(kind: int, v: int, counts: Words, shown: Words) -> None:
    if counts[kind] < shown.shape[1]:
        shown[kind, counts[kind]] = v
    counts[kind] += 1


def _gather(graph: ComputationGraph, streams: Iterator[tuple[Words, int]]) -> Waste:
    size = len(graph)
    output, flags = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
    output[np.array(graph.outputs, np.int64)] = 1
    flags[np.array(graph.inputs, np.int64)] = BLUE
    counts, shown = np.zeros(4, np.int64), np.zeros((3, SHOWN), np.int64)
    for words, length in streams:
        _note(words, length, output, flags, counts, shown)
    for kind, flag in enumerate((LOADED, STORED, MADE)):  # what is left so at the end
        left = np.flatnonzero(flags & flag)
        room = shown[kind, min(counts[kind], SHOWN) :]
        room[: len(left)] = left[: len(room)]
        counts[kind] += len(left)
    loads, stores, computes, again = (int(count) for count in counts)
    names = [
        tuple(graph.label(int(v)) for v in row[:count])
        for row, count in zip(shown, counts, strict=False)
    ]
    return Waste(loads, stores, computes, again, *names)


def waste_of_program(expansion: Expansion, cache: int) -> Waste:
    """Referee a tile program and report what it did in vain; see `Schedule.waste`."""
    return _gather(expansion.graph, iter(Referee(expansion, cache)))


def waste(
    graph: ComputationGraph, moves: Iterable[Move | str], cache: int, rules: Rules = HONG_KUNG
) -> Waste:
    """Referee moves on any graph and report what they did in vain.

    A slide is a compute and a delete of its source.

    Raises
    ------
    IllegalMove, Incomplete
        As `pebble.replay.replay`.
    """
    codes = encode(graph, moves)
    replay(graph, codes, cache, rules)
    whole = explicit(graph)
    words = []
    at = 0
    while at < len(codes):
        op, v = int(codes[at]) & 7, int(codes[at]) >> 3
        preds = whole.predecessors(v) if op in (2, 4) else ()
        words += [(2 if op == 4 else op) | len(preds) << 3, v, *preds]
        if op == 4:
            at += 1
            words += [3, int(codes[at])]
        at += 1
    return _gather(whole, iter([(np.array(words, np.int64), len(words))]))
