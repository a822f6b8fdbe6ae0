"""How a game with partial computation goes on from a position: a normal form, compiled.

A position is three sets, each the bits of one unsigned 64-bit integer: the edges that are marked,
the vertices that are red, and those that are blue. Some best game is made of steps like this:
choose an edge (u, v) to compute; take just so many red pebbles off that u and v fit, storing those
first that are dark; load what is missing of u and of a v that is blue; compute; store v if it is
an output and finished. For a load can wait until the compute that needs it, a delete until the
place is needed, and a store until the delete, except that a finished output, which is stored once
anyway, may as well be stored at once. So v is dark whenever it is red and not finished.

A vertex is forgotten when it is finished and all edges out of it are marked. Then positions that
play alike are equal, and what is finished and not forgotten is red or blue.

Computes that can do no harm are made at once (`settle`), if u is red and finished:

* where v is red: the edge must be computed some time, and v stays dark;
* where v is bare, there is room, u is not blue and (u, v) is its last edge: v then takes the place
  of u. At any time one of the two is needed, and a store or load of the one is one of the other;
* where v is bare, there is room, and v is a sink with no other edge: it needs the place only for a
  moment.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from pebble.search.steps import ONE, ZERO, first, size

# The columns of a step: the position after it, what it costs, the edge, and what is taken off.
MARKS, RED, BLUE, COST, EDGE, EVICTED = 0, 1, 2, 3, 4, 5

# The rows of the table of a graph: for every vertex the edges into it and out of it, as bits.
INTO, OUT = 0, 1


@njit(cache=True, nogil=True)
def mark(tails: Any, heads: Any, table: Any, outputs: Any, e: Any, m: Any, r: Any, b: Any) -> Any:
    """Compute an edge whose ends are red or fit; give the position and what is stored for it."""
    u, v, cost = tails[e], heads[e], 0
    u_bit, v_bit = ONE << np.uint64(u), ONE << np.uint64(v)
    m, r, b = m | (ONE << np.uint64(e)), r | u_bit | v_bit, b & ~v_bit
    dead = u_bit if table[OUT, u] & ~m == ZERO else ZERO
    if table[INTO, v] & ~m == ZERO:
        if outputs & v_bit != ZERO:
            cost = 1
            b |= v_bit
        if table[OUT, v] == ZERO:
            dead |= v_bit
    return m, r & ~dead, b & ~dead, cost


@njit(cache=True, nogil=True)
def settle(
    tails: Any, heads: Any, table: Any, outputs: Any, cache: Any, m: Any, r: Any, b: Any, order: Any
) -> Any:
    """Make the computes that do no harm.

    Give the position, how many stores they cost, and the number of computes; `order` gets their
    edges.
    """
    cost, made = 0, 0
    again = True
    while again:
        again = False
        for e in range(len(tails)):
            bit, u, v = ONE << np.uint64(e), tails[e], heads[e]
            u_bit, v_bit = ONE << np.uint64(u), ONE << np.uint64(v)
            if m & bit != ZERO or r & u_bit == ZERO or table[INTO, u] & ~m != ZERO:
                continue
            if r & v_bit == ZERO:
                if b & v_bit != ZERO or size(r) >= cache:
                    continue
                last = table[OUT, u] & ~m == bit and b & u_bit == ZERO
                if not last and (table[OUT, v] != ZERO or table[INTO, v] != bit):
                    continue
            m, r, b, more = mark(tails, heads, table, outputs, e, m, r, b)
            cost += more
            order[made] = e
            made += 1
            again = True
    return m, r, b, cost, made


@njit(cache=True, nogil=True)
def rest_of(table: Any, outputs: Any, m: Any, b: Any, r: Any) -> Any:
    """Give I/O that is still to come at least.

    Each output that isn't finished is stored. What is blue and not red is needed, since it isn't
    forgotten: it has edges that are not marked, and must be red for those.
    """
    left, rest = 0, outputs
    while rest != ZERO:
        v = first(rest)
        rest &= rest - ONE
        if table[INTO, v] & ~m != ZERO:
            left += 1
    return left + size(b & ~r)


@njit(cache=True, nogil=True)
def steps(
    tails: Any, heads: Any, table: Any, outputs: Any, cache: Any,
    marks: Any, red: Any, blue: Any, found: Any, order: Any,
) -> Any:  # fmt: skip
    """Write the steps from a position to `found`; give their number, -1 if they don't fit."""
    count = 0
    for e in range(len(tails)):
        u, v = tails[e], heads[e]
        u_bit, v_bit = ONE << np.uint64(u), ONE << np.uint64(v)
        if marks & (ONE << np.uint64(e)) != ZERO or table[INTO, u] & ~marks != ZERO:
            continue
        ends = u_bit | v_bit
        loads = size(ends & blue & ~red)
        pool = red & ~ends
        k = size(red | ends) - cache
        # Subsets of the pool of k vertices, k <= 2: first and second are the two, if so many.
        firsts = pool if k > 0 else ONE
        while firsts != ZERO:
            one = firsts & (~firsts + ONE)
            firsts &= firsts - ONE
            seconds = firsts if k > 1 else ONE
            while seconds != ZERO:
                two = seconds & (~seconds + ONE)
                seconds &= seconds - ONE
                evicted = (one if k > 0 else ZERO) | (two if k > 1 else ZERO)
                if count == len(found):
                    return -1
                stored = evicted & ~blue
                m, r, b, paid = mark(
                    tails, heads, table, outputs, e, marks, red & ~evicted, blue | stored
                )
                m, r, b, more, _ = settle(tails, heads, table, outputs, cache, m, r, b, order)
                row = found[count]
                row[MARKS], row[RED], row[BLUE] = m, r, b
                row[COST] = np.uint64(loads + size(stored) + paid + more)
                row[EDGE], row[EVICTED] = np.uint64(e), evicted
                count += 1
    return count
