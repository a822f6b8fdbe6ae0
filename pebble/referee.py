"""The compiled referee: it checks every rule of every move, and nothing else counts I/O.

Moves reach it in one of two forms, arrays of 64-bit integers both:

*stream*
    a move is ``header, vertex, [source of a slide,] predecessor, predecessor, ...``; the header
    packs the op, the number of predecessors, the function of the vertex and its weight (see
    `header`). Tile programs are expanded to streams, since the predecessors of an implicit graph
    are computed and not stored.
*codes*
    a move is ``8 * vertex + op``, and a slide is followed by the vertex that it slides from. The
    predecessors are read from the arrays of an explicit graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pebble.cost import Cost
from pebble.rules import RED, Op, after, judge

Words = NDArray[np.int64]
State = NDArray[np.uint8]

# A tally holds one counter per op, then these.
USED, PEAK, INDEX, TALLY_SIZE = 6, 7, 8, 9

_judge: Any = njit(judge, cache=True, nogil=True, inline="always")
_after: Any = njit(after, cache=True, nogil=True, inline="always")


def header(op: int, preds: int, function: int = 0, weight: int = 1) -> int:
    """Pack the first word of a move in a stream.

    Examples
    --------
    >>> header(2, preds=2, function=1, weight=3) == 2 + 8 * 2 + 2**11 * 1 + 2**19 * 3
    True
    """
    return op | preds << 3 | function << 11 | weight << 19


@njit(cache=True, nogil=True)
def run_stream(
    words: Words, length: int, state: State, tally: Words, cache: int, switches: int
) -> tuple[int, int]:
    """Referee ``words[:length]``; give the breach (0: none) and the place where it stopped.

    `state` and `tally` are changed in place, so that a schedule can come in pieces. Tile programs
    have no slides: in a stream they are judged as foreign to the game.
    """
    at, count, breach = 0, 0, 0
    used, peak = tally[USED], tally[PEAK]
    while at < length:
        # unsigned indices are not tested for counting from the end
        head, v = words[np.uint64(at)], np.uint64(words[np.uint64(at + 1)])
        op, weight = head & 7, head >> 19
        last = at + 2 + ((head >> 3) & 255)
        ready = True
        for p in range(at + 2, last):
            ready &= state[np.uint64(words[np.uint64(p)])] & RED != 0
        now = int(state[v])
        breach = _judge(op, now, ready, False, used + weight <= cache, switches)
        if breach != 0:
            break
        state[v] = _after(op, now)
        if op == 3:
            used -= weight
        elif (op == 0 or op == 2) and not now & RED:
            used += weight
            peak = max(peak, used)
        tally[op] += weight if op < 2 else 1
        count += 1
        at = last
    tally[USED], tally[PEAK], tally[INDEX] = used, peak, tally[INDEX] + count
    return breach, at


@njit(cache=True, nogil=True)
def run_codes(
    codes: Words,
    starts: Words,
    preds: Words,
    weights: Words,
    state: State,
    tally: Words,
    cache: int,
    switches: int,
) -> tuple[int, int]:
    """Referee moves on an explicit graph; give the breach (0: none) and the place it stopped.

    ``preds[starts[v]:starts[v + 1]]`` are the predecessors of v. `weights` is empty when every
    vertex weighs 1. A vertex of `codes` that does not exist is a breach like any other.
    """
    at, count, breach, size, weighted = 0, 0, 0, len(state), len(weights) > 0
    used, peak = tally[USED], tally[PEAK]
    while at < len(codes):
        code = codes[np.uint64(at)]
        op, vertex = code & 7, code >> 3
        source, step, joined, ready = 0, 1, False, True
        if op == 4:
            source, step = codes[at + 1] if at + 1 < len(codes) else -1, 2
        if not (0 <= vertex < size and 0 <= source < size):
            breach = 2  # NO_SUCH_VERTEX
            break
        v = np.uint64(vertex)  # an unsigned index is not tested for counting from the end
        weight = weights[v] if weighted else 1
        growth = weight
        if op == 4:
            growth -= weights[source] if weighted else 1
        if op == 2 or op == 4:
            first, last = starts[v], starts[np.uint64(vertex + 1)]
            for p in range(first, last):
                ready &= state[np.uint64(preds[np.uint64(p)])] & RED != 0
            if op == 4:
                for p in range(first, last):
                    joined |= preds[p] == source
        now = int(state[v])
        breach = _judge(op, now, ready, joined, used + growth <= cache, switches)
        if breach != 0:
            break
        state[v] = _after(op, now)
        if op == 3:
            used -= weight
        elif op == 4:
            state[source] = _after(3, int(state[source]))
            used += growth if not now & RED else growth - weight
            peak = max(peak, used)
        elif (op == 0 or op == 2) and not now & RED:
            used += weight
            peak = max(peak, used)
        tally[op] += weight if op < 2 else 1
        count += 1
        at += step
    tally[USED], tally[PEAK], tally[INDEX] = used, peak, tally[INDEX] + count
    return breach, at


def new_tally() -> Words:
    """Give a tally of zeros."""
    return np.zeros(TALLY_SIZE, np.int64)


def cost_of(tally: Any) -> Cost:
    """Read the cost off a tally."""
    return Cost(
        loads=int(tally[Op.LOAD]),
        stores=int(tally[Op.STORE]),
        computes=int(tally[Op.COMPUTE] + tally[Op.SLIDE]),
        deletes=int(tally[Op.DELETE]),
        peak=int(tally[PEAK]),
    )
