"""Compiled walks over a graph: depth first from the outputs, levels, and changes of an order."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@njit(cache=True, nogil=True)
def postorder(starts: Ints, preds: Ints, goals: Ints) -> Ints:
    """Give the vertices that the goals need, each right after its last predecessor."""
    size = len(starts) - 1
    at = starts[:-1].copy()  # the next edge to go down
    seen = np.zeros(size, np.uint8)
    stack, found, count = np.empty(size, np.int64), np.empty(size, np.int64), 0
    for goal in goals:
        height = 0
        if not seen[goal]:
            stack[0], height, seen[goal] = goal, 1, 1
        while height > 0:
            v = stack[height - 1]
            if at[v] == starts[v + 1]:
                found[count] = v
                count += 1
                height -= 1
                continue
            u = preds[at[v]]
            at[v] += 1
            if not seen[u]:
                stack[height] = u
                height += 1
                seen[u] = 1
    return found[:count]


@njit(cache=True, nogil=True)
def hardest_first(starts: Ints, preds: Ints, order: Ints) -> tuple[Ints, Ints]:
    """Give the words that each vertex needs were the graph a tree, and predecessors by them.

    `order` has all vertices, each after its predecessors.
    """
    words, sorted_preds = np.ones(len(starts) - 1, np.int64), preds.copy()
    for v in order:
        first, last = starts[v], starts[v + 1]
        if first == last:
            continue
        below = words[preds[first:last]]
        rank = np.argsort(-below, kind="mergesort")
        most = last - first + 1
        for i in range(last - first):
            sorted_preds[first + i] = preds[first + rank[i]]
            most = max(most, below[rank[i]] + i)
        words[v] = most
    return words, sorted_preds


@njit(cache=True, nogil=True)
def levels(starts: Ints, preds: Ints, order: Ints) -> Ints:
    """Give the length of the longest path that leads to each vertex."""
    level = np.zeros(len(starts) - 1, np.int64)
    for v in order:
        for e in range(starts[v], starts[v + 1]):
            level[v] = max(level[v], level[preds[e]] + 1)
    return level


@njit(cache=True, nogil=True)
def change(starts: Ints, preds: Ints, order: Ints, draws: NDArray[np.float64]) -> Ints:
    """Let a run of vertices change places with the run beside it, if no edge is between them.

    `draws` are four numbers from 0 to 1: where the first run starts and how long it is (short
    runs are as likely as long ones), how far it goes, and whether it goes back. An order in which
    nothing can be changed there comes back as it is.
    """
    steps = len(order)
    start = int(draws[0] * steps)
    length = int((steps - start) ** draws[1])
    place = np.full(len(starts) - 1, -1, np.int64)
    for t in range(steps):
        place[order[t]] = t
    lower, upper = start, start + length
    if draws[3] < 0.5:  # forth: as long as nothing that it passes is computed from the run
        stop = upper
        while stop < steps:
            v = order[stop]
            free = True
            for e in range(starts[v], starts[v + 1]):
                free &= not (lower <= place[preds[e]] < upper)
            if not free:
                break
            stop += 1
        first, middle, last = lower, upper, upper + int(np.ceil(draws[2] * (stop - upper)))
    else:  # back: down to the last vertex that the run is computed from
        stop = 0
        for t in range(lower, upper):
            v = order[t]
            for e in range(starts[v], starts[v + 1]):
                if place[preds[e]] < lower:
                    stop = max(stop, place[preds[e]] + 1)
        first, middle, last = lower - int(np.ceil(draws[2] * (lower - stop))), lower, upper
    changed = order.copy()
    changed[first : first + last - middle] = order[middle:last]
    changed[first + last - middle : last] = order[first:middle]
    return changed
