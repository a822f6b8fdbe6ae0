"""Compiled stack distances: how deep each use of a value lies in the stack of a policy.

A stack lists vertices so that its first C places are what is red with a cache of C words, whatever
C is. Where a value was deleted, a hole stays: a word that is free in all caches that reach it. What
enters on top pushes the others down, as far as the first hole, or as far as the place it left.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pebble.policy_kernels import next_uses, pop, push

Ints = NDArray[np.int64]

HOLE = -1


@njit(cache=True, nogil=True)
def _add(counts: Ints, at: int, step: int) -> None:
    """Add to one of the numbers from place 1 on, of which `counts` holds sums (Fenwick 1994)."""
    while at < len(counts):
        counts[at] += step
        at += at & -at


@njit(cache=True, nogil=True)
def _sum(counts: Ints, at: int) -> int:
    total = 0
    while at > 0:
        total += counts[at]
        at -= at & -at
    return total


@njit(cache=True, nogil=True)
def lru_depths(starts: Ints, preds: Ints, order: Ints) -> tuple[Ints, Ints, int]:
    """Give the number of uses at each depth, the deepest use of each vertex, and the height.

    A vertex's place in the stack is told by the time it entered: the depth is the number of
    places, holes too, that entered later or with it. Places to be counted are summed in a tree.
    """
    size, steps = len(starts) - 1, len(order)
    upcoming, following = next_uses(starts, preds, order)
    uses, deepest = np.zeros(size + 2, np.int64), np.zeros(size, np.int64)
    entered = np.zeros(size, np.int64)  # 0: never
    counts = np.zeros(len(preds) + steps + 1, np.int64)
    holes, free = np.empty(len(preds) + steps + size + 1, np.int64), 0
    clock, total, height = 1, 0, 0
    for t in range(steps):
        v = order[t]
        first, last = starts[v], starts[v + 1]
        for e in range(first, last):
            u = preds[e]
            if entered[u] > 0:
                depth = total - _sum(counts, entered[u] - 1)
                uses[depth] += 1
                deepest[u] = max(deepest[u], depth)
        for e in range(first, last + 1):
            x = preds[e] if e < last else v
            old = entered[x]
            if free > 0 and holes[0] > old:
                _add(counts, holes[0], -1)
                pop(holes, free)
                free -= 1
                if old > 0:
                    push(holes, free, old)
                    free += 1
            elif old > 0:
                _add(counts, old, -1)
            else:
                total += 1
            entered[x] = clock
            _add(counts, clock, 1)
            clock += 1
        height = max(height, total)
        for e in range(first, last + 1):
            x = preds[e] if e < last else v
            if (following[e] if e < last else upcoming[v]) == steps:
                push(holes, free, entered[x])
                free += 1
    return uses, deepest, height


@njit(cache=True, nogil=True)
def belady_depths(starts: Ints, preds: Ints, order: Ints, most: int) -> tuple[Ints, Ints, int]:
    """As `lru_depths`, for Belady's stack, of which only `most` places are kept.

    What falls out has depth ``most + 1``. What enters takes the top; what it pushes down takes a
    place from a vertex that is used later, which goes on down. What this step needs is used now.
    """
    size, steps = len(starts) - 1, len(order)
    upcoming, following = next_uses(starts, preds, order)
    uses, deepest = np.zeros(most + 2, np.int64), np.zeros(size, np.int64)
    seen = np.zeros(size, np.uint8)
    stack = np.full(most + 2, HOLE, np.int64)
    place = np.full(size, most + 1, np.int64)
    height = 0
    for t in range(steps):
        v = order[t]
        first, last = starts[v], starts[v + 1]
        for e in range(first, last):
            u = preds[e]
            if seen[u]:
                uses[place[u]] += 1
                deepest[u] = max(deepest[u], place[u])
        for e in range(first, last + 1):
            x = preds[e] if e < last else v
            seen[x] = 1
            carried, end = stack[1], place[x]
            if end > 1:
                place[x], stack[1] = 1, x
                height = max(height, 1)
                at = 2
                while carried != HOLE and at < end and at <= most:
                    y = stack[at]
                    if (
                        y == HOLE
                        or upcoming[carried] < upcoming[y]
                        or (upcoming[carried] == upcoming[y] and carried < y)
                    ):
                        stack[at], place[carried] = carried, at
                        carried = y
                        height = max(height, at)
                    at += 1
                if end <= most:
                    stack[end] = carried
                if carried != HOLE:
                    place[carried] = end
                    height = max(height, min(end, most + 1))
        for e in range(first, last + 1):
            x = v
            if e < last:
                x = preds[e]
                upcoming[x] = following[e]
            if upcoming[x] == steps and place[x] <= most:
                stack[place[x]] = HOLE
                place[x] = most + 1
    return uses, deepest, height
