"""A* over positions, compiled. It stops when it must grow, when it is told to, or when it is done.

Nodes are rows of arrays. `links` holds for every node: its parent, the next of the same bucket of
open nodes, and the next expanded one of the same group. Nodes of a group differ in their pebbles
only: where each vertex is computed once, they have computed the same; with recomputation, the same
is blue. A position that is open twice, since it was reached at less cost later, has two nodes; the
table of positions knows the better one.

References
----------
Hart, Nilsson and Raphael, "A formal basis for the heuristic determination of minimum cost paths",
1968.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from pebble.search.steps import BLUE, COST, DONE, RED, ZERO, arranged, rest_of, size, steps

# Why a run stops.
FOUND, EMPTY, GROW, WIDEN, PAUSE = 0, 1, 2, 3, 4

# The clock: the number of nodes, the least bucket that may hold an open node, the nodes expanded.
NODES, BUCKET, EXPANDED, CLOCK_SIZE = 0, 1, 2, 3

# The columns of `links`.
PARENT, NEXT, PEER = 0, 1, 2

_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


@njit(cache=True, nogil=True, inline="always")
def _hash(a: Any, b: Any, c: Any, mask: Any) -> Any:
    x = (a ^ (a >> _SHIFT)) * _MIX
    x = (x ^ b ^ (x >> _SHIFT)) * _MIX
    x = (x ^ c ^ (x >> _SHIFT)) * _MIX
    return np.int64((x ^ (x >> _SHIFT)) & mask)


@njit(cache=True, nogil=True)
def seat(keys: Any, table: Any, done: Any, red: Any, blue: Any) -> Any:
    """Give the place of a position in the table of positions: its own, or the free one for it."""
    mask = np.uint64(len(table) - 1)
    at = _hash(done, red, blue, mask)
    while table[at] >= 0:
        key = keys[table[at]]
        if key[0] == done and key[1] == red and key[2] == blue:
            break
        at = (at + 1) & np.int64(mask)
    return at


@njit(cache=True, nogil=True)
def group_of(keys: Any, groups: Any, done: Any, blue: Any, recompute: Any) -> Any:
    """Give the place of a group in the table of groups, which holds their newest nodes."""
    mask = np.uint64(len(groups) - 1)
    shared = blue if recompute else ZERO
    at = _hash(done, shared, ZERO, mask)
    while groups[at] >= 0:
        key = keys[groups[at]]
        if key[0] == done and (not recompute or key[2] == blue):
            break
        at = (at + 1) & np.int64(mask)
    return at


@njit(cache=True, nogil=True)
def reseat(keys: Any, costs: Any, count: Any, table: Any) -> None:
    """Fill a new, larger table of positions."""
    for node in range(count):
        at = seat(keys, table, keys[node, 0], keys[node, 1], keys[node, 2])
        if table[at] < 0 or costs[node] < costs[table[at]]:
            table[at] = node


@njit(cache=True, nogil=True)
def regroup(keys: Any, old: Any, groups: Any, recompute: Any) -> None:
    """Fill a new, larger table of groups."""
    for place in range(len(old)):
        if old[place] >= 0:
            key = keys[old[place]]
            groups[group_of(keys, groups, key[0], key[2], recompute)] = old[place]


@njit(cache=True, nogil=True)
def push(
    keys: Any, costs: Any, links: Any, table: Any, buckets: Any, clock: Any, at: Any,
    done: Any, red: Any, blue: Any, cost: Any, bucket: Any, parent: Any,
) -> None:  # fmt: skip
    """Add an open node, and seat it."""
    node = clock[NODES]
    clock[NODES] = node + 1
    keys[node, 0], keys[node, 1], keys[node, 2] = done, red, blue
    costs[node] = cost
    links[node, PARENT], links[node, NEXT], links[node, PEER] = parent, buckets[bucket], -1
    buckets[bucket] = node
    table[at] = node
    clock[BUCKET] = min(clock[BUCKET], bucket)


@njit(cache=True, nogil=True)
def dominated(keys: Any, costs: Any, links: Any, newest: Any, node: Any) -> Any:
    """Say whether an expanded node of the group is as good as a node.

    It is if what it lacks can be loaded and stored at no more than the difference of the costs.
    From there on it can do all that the node can, in as many steps.
    """
    red, blue = keys[node, 1], keys[node, 2]
    while newest >= 0:
        spare = costs[node] - costs[newest]
        if spare >= 0:
            lacks = red & ~keys[newest, 1]
            unsaved = blue & ~keys[newest, 2]
            if lacks & ~keys[newest, 2] == ZERO and size(lacks) + size(unsaved) <= spare:
                return True
        newest = links[newest, PEER]
    return False


@njit(cache=True, nogil=True)
def run(
    graph: Any, inner: Any, outputs: Any, cache: Any, sliding: Any, recompute: Any, twins: Any,
    keys: Any, costs: Any, links: Any, table: Any, groups: Any, buckets: Any, clock: Any,
    found: Any, order: Any, greed: Any, upper: Any, quota: Any,
) -> Any:  # fmt: skip
    """Expand up to `quota` nodes; give why it stopped, and the node of the end if that is found.

    Nodes of at least `upper` I/O are dropped. The bucket of a node is its cost plus `greed` times
    the I/O that is still to come at least. With a greed of 1, the first end is a best one.
    """
    for _ in range(quota):
        while clock[BUCKET] < len(buckets) and buckets[clock[BUCKET]] < 0:
            clock[BUCKET] += 1
        if clock[BUCKET] == len(buckets):
            return EMPTY, -1
        bucket = clock[BUCKET]
        node = buckets[bucket]
        done, red, blue = keys[node, 0], keys[node, 1], keys[node, 2]
        if outputs & ~done == ZERO:
            return FOUND, node
        group = group_of(keys, groups, done, blue, recompute)
        skip = table[seat(keys, table, done, red, blue)] != node
        if skip or dominated(keys, costs, links, groups[group], node):
            buckets[bucket] = links[node, NEXT]
            continue
        count = steps(
            graph, inner, outputs, cache, sliding, recompute, done, red, blue, found, order
        )
        if count < 0:
            return WIDEN, -1
        if clock[NODES] + count > len(costs):
            return GROW, -1
        buckets[bucket] = links[node, NEXT]
        links[node, PEER] = groups[group]
        groups[group] = node
        clock[EXPANDED] += 1
        for i in range(count - 1, -1, -1):  # so that the first step is tried first
            done, red, blue = arranged(twins, found[i, DONE], found[i, RED], found[i, BLUE])
            cost = costs[node] + np.int64(found[i, COST])
            rest = rest_of(graph, inner, outputs, recompute, done, red, blue)
            if cost + rest >= upper:
                continue
            at = seat(keys, table, done, red, blue)
            if table[at] >= 0 and costs[table[at]] <= cost:
                continue
            push(
                keys, costs, links, table, buckets, clock, at,
                done, red, blue, cost, cost + greed * rest, node,
            )  # fmt: skip
    return PAUSE, -1
