"""How a game goes on from a position: the steps of a normal form, compiled.

Some best game is made of steps like this: choose a vertex v to compute; take just so many red
pebbles off that its missing predecessors and v itself fit, storing some of them first; load what
is missing; compute v; store v if it is an output. For a load can wait until the compute that needs
it, a delete until the place is needed, and a store until the delete, except that an output, which
is stored once anyway, may as well be stored at once.

What no longer matters is forgotten, so that positions that play alike are equal:

* where each vertex is computed once, a vertex whose successors are all computed;
* where recomputation is allowed, a vertex that leads to no output that is still to be stored; and
  what was computed is then no part of the position, except that it says which outputs are done.

Computes that can do no harm are made at once (`settle`).

* An output without successors needs a place only for a moment.
* Where each vertex is computed once, v may be computed early if a predecessor u is then dead,
  and v is blue or u is not. From then on v stands for u: at any time one of the two is needed, and
  a store or load of the one is a store or load of the other.
* Where recomputation is allowed, one more red pebble does no harm while there is room, since it
  can be deleted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Bits = NDArray[np.uint64]

ZERO, ONE = np.uint64(0), np.uint64(1)

# The columns of a step: the position after it, what it costs, and how it is made.
DONE, RED, BLUE, COST, VERTEX, EVICTED, STORED, SLID, COLUMNS = 0, 1, 2, 3, 4, 5, 6, 7, 8

# The rows of the table of a graph: for every vertex three sets, as bits.
PREDS, SUCCS, AIMS = 0, 1, 2


@njit(cache=True, nogil=True, inline="always")
def size(bits: Any) -> Any:
    """Count the vertices of a set."""
    count = 0
    while bits != ZERO:
        bits &= bits - ONE
        count += 1
    return count


@njit(cache=True, nogil=True, inline="always")
def first(bits: Any) -> Any:
    """Give the least vertex of a set that is not empty."""
    return size((bits & (~bits + ONE)) - ONE)


@njit(cache=True, nogil=True)
def arranged(twins: Any, done: Any, red: Any, blue: Any) -> Any:
    """Give the position in which twins are in order: computed, red, blue first.

    Twins have the same predecessors and the same successors, so that a game stays a game if they
    change places. A row of `twins` has some of them, ascending, and -1 in the end.
    """
    for row in range(len(twins)):
        for i in range(1, twins.shape[1]):  # insertion, by what lies on them
            j = i
            while j > 0 and twins[row, j] >= 0:
                a, b = np.uint64(twins[row, j - 1]), np.uint64(twins[row, j])
                above = (done >> a & ONE) * 4 + (red >> a & ONE) * 2 + (blue >> a & ONE)
                below = (done >> b & ONE) * 4 + (red >> b & ONE) * 2 + (blue >> b & ONE)
                if above >= below:
                    break
                both = ONE << a | ONE << b
                if (above ^ below) & np.uint64(4) != ZERO:
                    done ^= both
                if (above ^ below) & np.uint64(2) != ZERO:
                    red ^= both
                if (above ^ below) & ONE != ZERO:
                    blue ^= both
                j -= 1
    return done, red, blue


@njit(cache=True, nogil=True)
def dead_of(table: Any, vertices: Any, done: Any, outputs: Any, recompute: Any) -> Any:
    """Give those of some vertices that no best game needs again."""
    dead, rest = ZERO, vertices
    while rest != ZERO:
        u = first(rest)
        rest &= rest - ONE
        bit = ONE << np.uint64(u)
        if recompute:
            if table[AIMS, u] & outputs & ~done == ZERO:
                dead |= bit
        elif table[SUCCS, u] & ~done == ZERO:
            dead |= bit
    return dead


@njit(cache=True, nogil=True)
def settle(
    table: Any,
    inner: Any,
    outputs: Any,
    cache: Any,
    sliding: Any,
    recompute: Any,
    done: Any,
    red: Any,
    blue: Any,
    order: Any,
) -> Any:
    """Make the computes that do no harm.

    Give the position, how many stores they cost, and the number of computes; `order` gets them,
    each with the vertex that it slides from, or -1.
    """
    cost, made = 0, 0
    again = True
    while again:
        again = False
        room = size(red) < cache
        if not room and not sliding:
            break
        rest = inner & ~red & ~done if not recompute else inner & ~red
        while rest != ZERO:
            v = first(rest)
            rest &= rest - ONE
            bit, preds = ONE << np.uint64(v), table[PREDS, v]
            if preds & ~red != ZERO:
                continue
            fresh = outputs & bit & ~done != ZERO
            if recompute:
                if not room or not (fresh or table[AIMS, v] & outputs & ~done != ZERO):
                    continue
                done |= outputs & bit
                dead = dead_of(table, red | blue | bit, done, outputs, True) if fresh else ZERO
                slid = -1
            else:
                dead = dead_of(table, preds, done | bit, outputs, False)
                sink = table[SUCCS, v] == ZERO
                if not (sink or (dead & ~blue != ZERO) or (fresh and dead != ZERO)):
                    continue
                if not room and dead == ZERO:
                    continue
                slid = -1 if room else first(dead)
                done |= bit
                if sink:
                    dead |= bit
            red, blue = (red | bit) & ~dead, blue & ~dead
            if fresh:
                cost += 1
                blue |= bit & ~dead
            order[made, 0], order[made, 1] = v, slid
            made += 1
            again = True
            break
    return done, red, blue, cost, made


@njit(cache=True, nogil=True)
def rest_of(
    table: Any, inner: Any, outputs: Any, recompute: Any, done: Any, red: Any, blue: Any
) -> Any:
    """Give I/O that is still to come at least.

    Each output that isn't done is stored. Where each vertex is computed once, each vertex that is
    an input or computed, not red and not dead is loaded. With recomputation, that holds for the
    inputs whose successors must still be computed; see `needed`.
    """
    left = size(outputs & ~done)
    if recompute:
        return left + size(needed(table, inner, outputs, done, red, blue) & ~inner & ~red)
    return left + size(blue & ~red)


@njit(cache=True, nogil=True)
def needed(table: Any, inner: Any, outputs: Any, done: Any, red: Any, blue: Any) -> Any:
    """Give vertices that must become red again, where recomputation is allowed.

    A vertex that is neither red nor blue, and is needed, must be computed, so its predecessors
    must be red. It starts with the outputs that are to be stored.
    """
    must = outputs & ~done
    front = must & ~red
    while front != ZERO:
        v = first(front)
        front &= front - ONE
        more = table[PREDS, v] & ~must
        must |= more
        front |= more & inner & ~red & ~blue
    return must


@njit(cache=True, nogil=True)
def steps(
    table: Any,
    inner: Any,
    outputs: Any,
    cache: Any,
    sliding: Any,
    recompute: Any,
    done: Any,
    red: Any,
    blue: Any,
    found: Any,
    order: Any,
) -> Any:
    """Write the steps from a position into `found`; give their number, or -1 if they don't fit."""
    count = 0
    rest = inner & ~red if recompute else inner & ~done
    while rest != ZERO:
        v = first(rest)
        rest &= rest - ONE
        bit, preds = ONE << np.uint64(v), table[PREDS, v]
        missing = preds & ~red
        if missing & ~blue != ZERO:
            continue
        fresh = outputs & bit & ~done != ZERO
        if recompute and not fresh and table[AIMS, v] & outputs & ~done == ZERO:
            continue
        after = done | (bit & outputs if recompute else bit)
        dead = ZERO
        if not recompute:
            dead = dead_of(table, preds, after, outputs, False)
            if table[SUCCS, v] == ZERO:
                dead |= bit
        elif fresh:
            dead = dead_of(table, red | blue | preds | bit, after, outputs, True)
        paid = size(missing) + (1 if fresh else 0)
        over = size(red | preds) + 1 - cache
        # What may be taken off to make room; and with sliding, one predecessor of v more.
        slides = preds if sliding and over > 0 else ZERO
        dying = slides & dead
        ways = 1 + size(slides) if dying == ZERO else 1
        for way in range(ways):
            k = over if over > 0 else 0
            slid = ZERO
            if slides != ZERO and (way > 0 or dying != ZERO):
                k -= 1
                if dying != ZERO:
                    slid = dying & (~dying + ONE)
                else:
                    slid = slides & (~slides + ONE)
                    slides &= slides - ONE
            free = red & ~preds
            n = size(free)
            if k > n:
                continue
            # Every choice of k vertices out of n: the bits of `choice`, in Gosper's order.
            choice = (ONE << np.uint64(k)) - ONE
            while True:
                evicted, pool, picks = slid & ~dead, free, choice
                while picks != ZERO:
                    low = pool & (~pool + ONE)
                    if picks & ONE != ZERO:
                        evicted |= low
                    pool &= pool - ONE
                    picks >>= ONE
                bare = evicted & ~blue & ~dead
                stored = bare
                while True:  # with recomputation, every subset of them may be stored
                    if count == len(found):
                        return -1
                    d, r = after, ((red & ~evicted) | preds | bit) & ~slid & ~dead
                    b = (blue | stored | (bit if fresh else ZERO)) & ~dead
                    d, r, b, more, _ = settle(
                        table, inner, outputs, cache, sliding, recompute, d, r, b, order
                    )
                    row = found[count]
                    row[DONE], row[RED], row[BLUE] = d, r, b
                    row[COST] = np.uint64(paid + size(stored) + more)
                    row[VERTEX], row[EVICTED] = np.uint64(v), evicted
                    row[STORED], row[SLID] = stored, slid
                    count += 1
                    if not recompute or stored == ZERO:
                        break
                    stored = (stored - ONE) & bare
                if k == 0:
                    break
                low = choice & (~choice + ONE)
                ripple = choice + low
                choice = (((choice ^ ripple) >> np.uint64(2)) // low) | ripple
                if choice >> np.uint64(n) != ZERO:
                    break
    return count
