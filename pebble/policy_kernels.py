"""The compiled player: one compute order and one eviction policy in, moves out.

Every kernel of orders reads the same two things that `next_uses` finds: when a value is needed
next is known, since the order is.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from pebble.rules import BLUE, OUTPUT, RED

Ints = NDArray[np.int64]
Flags = NDArray[np.uint8]

# The policies, by their place in `pebble.policies.POLICIES`.
BELADY, LRU, FIFO, WRITE_BACK = 0, 1, 2, 3


@njit(cache=True, nogil=True)
def next_uses(starts: Ints, preds: Ints, order: Ints) -> tuple[Ints, Ints]:
    """Give the first step that uses each vertex, and the next step for each edge's tail.

    Step t computes ``order[t]``. The second array has, at the place of an edge in `preds`, the
    next step after that edge's own that uses the same vertex. ``len(order)`` stands for never.
    """
    never = len(order)
    upcoming = np.full(len(starts) - 1, never, np.int64)
    following = np.empty(len(preds), np.int64)
    for t in range(never - 1, -1, -1):
        v = order[t]
        for e in range(starts[v], starts[v + 1]):
            following[e] = upcoming[preds[e]]
            upcoming[preds[e]] = t
    return upcoming, following


@njit(cache=True, nogil=True)
def push(heap: Ints, size: int, key: int) -> None:
    """Put a key into ``heap[:size]``, whose largest key comes first."""
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if heap[above] >= key:
            break
        heap[at] = heap[above]
        at = above
    heap[at] = key


@njit(cache=True, nogil=True)
def pop(heap: Ints, size: int) -> None:
    """Take the largest key out of ``heap[:size]``."""
    key, at = heap[size - 1], 0
    while True:
        below = 2 * at + 1
        if below >= size - 1:
            break
        if below + 1 < size - 1 and heap[below + 1] > heap[below]:
            below += 1
        if heap[below] <= key:
            break
        heap[at] = heap[below]
        at = below
    heap[at] = key


@njit(cache=True, nogil=True)
def simulate(
    starts: Ints,
    preds: Ints,
    weights: Ints,
    start: Flags,
    order: Ints,
    cache: int,
    policy: int,
    codes: Ints,
) -> tuple[int, int]:
    """Write the moves as the referee's codes; give how many they are and their I/O in words.

    `start` is the state of the vertices at the start, `codes` has room for two moves an edge and
    three a step. A heap holds ``next use * size + vertex`` of what is red: one for what is blue
    too, one for what must be stored first, and for Belady, who does not ask, one for all. Keys
    that a use has made old stay in the heap until they are its largest. Lists run from the oldest
    to the newest, in a circle with the number ``size`` at both ends.
    """
    size, steps = len(starts) - 1, len(order)
    upcoming, following = next_uses(starts, preds, order)
    state, weighted, listed = start.copy(), len(weights) > 0, policy in (LRU, FIFO)
    heaps = np.empty((2, 0 if listed else len(preds) + steps + 1), np.int64)
    filled = np.zeros(2, np.int64)
    newer, older = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64)
    newer[size] = older[size] = size
    needed = np.full(size, -1, np.int64)  # the last step that needs the vertex red
    used, at, io = 0, 0, 0
    for t in range(steps):
        v = order[t]
        first, last = starts[v], starts[v + 1]
        for e in range(first, last):
            needed[preds[e]] = t
        for e in range(first, last + 1):
            x = preds[e] if e < last else v
            if state[x] & RED:
                if policy == LRU:
                    newer[older[x]], older[newer[x]] = newer[x], older[x]
                    newer[older[size]], older[x] = x, older[size]
                    newer[x], older[size] = size, x
                continue
            weight = weights[x] if weighted else 1
            while used + weight > cache:
                if listed:
                    out = newer[size]
                    while needed[out] == t:
                        out = newer[out]
                    newer[older[out]], older[newer[out]] = newer[out], older[out]
                else:
                    for h in range(2):
                        while filled[h] > 0:
                            key = heaps[h, 0]
                            out = key % size
                            if state[out] & RED and upcoming[out] == key // size:
                                break
                            pop(heaps[h], filled[h])
                            filled[h] -= 1
                    # The wait until the next use, doubled where there is no store to pay first.
                    h = 0
                    if filled[0] == 0 or (
                        filled[1] > 0 and 2 * (heaps[0, 0] // size - t) < heaps[1, 0] // size - t
                    ):
                        h = 1
                    out = heaps[h, 0] % size
                    pop(heaps[h], filled[h])
                    filled[h] -= 1
                gone = weights[out] if weighted else 1
                if not state[out] & BLUE:
                    codes[at] = 8 * out + 1  # store
                    at += 1
                    io += gone
                codes[at] = 8 * out + 3  # delete
                at += 1
                state[out] = state[out] & ~RED | BLUE
                used -= gone
            codes[at] = 8 * x + (0 if e < last else 2)  # load, compute
            at += 1
            io += weight if e < last else 0
            used += weight
            state[x] |= RED
            if listed:
                newer[older[size]], older[x] = x, older[size]
                newer[x], older[size] = size, x
        if state[v] & OUTPUT:
            codes[at] = 8 * v + 1  # store
            at += 1
            io += weights[v] if weighted else 1
            state[v] |= BLUE
        for e in range(first, last + 1):
            x = v
            if e < last:
                x = preds[e]
                upcoming[x] = following[e]
            if upcoming[x] == steps:
                codes[at] = 8 * x + 3  # delete
                at += 1
                state[x] &= ~RED
                used -= weights[x] if weighted else 1
                if listed:
                    newer[older[x]], older[newer[x]] = newer[x], older[x]
            elif not listed:
                h = 1 if policy == WRITE_BACK and not state[x] & BLUE else 0
                push(heaps[h], filled[h], upcoming[x] * size + x)
                filled[h] += 1
    return at, io
