"""The compiled referee of the game with partial computation.

A move is one 64-bit integer, ``8 * x + op``: x is the number of the vertex, and for a compute that
of the edge, its place in the graph's array of predecessors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from pebble.partial.rules import after, judge
from pebble.rules import RED

# A tally holds one counter for each of load, store, compute and delete, then these.
USED, PEAK, INDEX, TALLY_SIZE = 4, 5, 6, 7

_judge: Any = njit(judge, cache=True, nogil=True, inline="always")
_after: Any = njit(after, cache=True, nogil=True, inline="always")


@njit(cache=True, nogil=True)
def run_codes(
    codes: Any, tails: Any, heads: Any, state: Any, marked: Any, into: Any, out: Any,
    tally: Any, cache: Any,
) -> Any:  # fmt: skip
    """Referee moves; give the breach, 0 if there is none.

    The state of the game and the tally are changed in place. The moves that were made are
    ``tally[INDEX]`` more.
    """
    used, peak = tally[USED], tally[PEAK]
    for at in range(len(codes)):
        op, x = codes[at] & 7, codes[at] >> 3
        given = whole = marked_ = False
        if not 0 <= x < (len(tails) if op == 2 else len(state)):
            tally[USED], tally[PEAK] = used, peak
            return 2  # NO_SUCH_VERTEX
        v = x
        if op == 2:
            u, v = tails[x], heads[x]
            given, whole, marked_ = state[u] & RED != 0, into[u] == 0, marked[x]
        now = np.int64(state[v])
        needed = into[v] > 0 or out[v] > 0
        breach = _judge(op, now, given, whole, marked_, needed, used < cache)
        if breach != 0:
            tally[USED], tally[PEAK] = used, peak
            return breach
        if op == 2:
            marked[x] = True
            into[v] -= 1
            out[tails[x]] -= 1
        new = _after(op, now)
        state[v] = new
        used += (new & RED) - (now & RED)
        peak = max(peak, used)
        tally[op] += 1
        tally[INDEX] += 1
    tally[USED], tally[PEAK] = used, peak
    return 0
