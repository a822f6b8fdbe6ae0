"""A* over the positions of the game with partial computation, compiled.

The nodes, their tables and the way that one node dominates another of the same marks are those of
`pebble.search.astar`: what a node lacks can be loaded and stored, and an edge is marked once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from pebble.partial.steps import BLUE, COST, MARKS, RED, rest_of, steps
from pebble.search.astar import (
    BUCKET,
    EMPTY,
    EXPANDED,
    FOUND,
    GROW,
    NEXT,
    NODES,
    PAUSE,
    PEER,
    WIDEN,
    dominated,
    group_of,
    push,
    seat,
)


@njit(cache=True, nogil=True)
def run(
    tails: Any, heads: Any, graph: Any, outputs: Any, cache: Any,
    keys: Any, costs: Any, links: Any, table: Any, groups: Any, buckets: Any, clock: Any,
    found: Any, order: Any, greed: Any, upper: Any, quota: Any,
) -> Any:  # fmt: skip
    """Expand up to `quota` nodes; see `pebble.search.astar.run`."""
    for _ in range(quota):
        while clock[BUCKET] < len(buckets) and buckets[clock[BUCKET]] < 0:
            clock[BUCKET] += 1
        if clock[BUCKET] == len(buckets):
            return EMPTY, -1
        bucket = clock[BUCKET]
        node = buckets[bucket]
        marks, red, blue = keys[node, 0], keys[node, 1], keys[node, 2]
        if marks == (np.uint64(1) << np.uint64(len(tails))) - np.uint64(1):
            return FOUND, node
        group = group_of(keys, groups, marks, blue, False)
        skip = table[seat(keys, table, marks, red, blue)] != node
        if skip or dominated(keys, costs, links, groups[group], node):
            buckets[bucket] = links[node, NEXT]
            continue
        count = steps(tails, heads, graph, outputs, cache, marks, red, blue, found, order)
        if count < 0:
            return WIDEN, -1
        if clock[NODES] + count > len(costs):
            return GROW, -1
        buckets[bucket] = links[node, NEXT]
        links[node, PEER] = groups[group]
        groups[group] = node
        clock[EXPANDED] += 1
        for i in range(count - 1, -1, -1):  # so that the first step is tried first
            marks, red, blue = found[i, MARKS], found[i, RED], found[i, BLUE]
            cost = costs[node] + np.int64(found[i, COST])
            rest = rest_of(graph, outputs, marks, blue, red)
            if cost + rest >= upper:
                continue
            at = seat(keys, table, marks, red, blue)
            if table[at] >= 0 and costs[table[at]] <= cost:
                continue
            push(
                keys, costs, links, table, buckets, clock, at,
                marks, red, blue, cost, cost + greed * rest, node,
            )  # fmt: skip
    return PAUSE, -1
