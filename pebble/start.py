"""What a game starts from: the weights of the vertices, the cache they need, the first state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pebble.rules import BLUE, HONG_KUNG, INPUT, OUTPUT, Rules

if TYPE_CHECKING:
    from pebble.graph import ComputationGraph


def weights_of(graph: ComputationGraph, rules: Rules) -> NDArray[np.int64]:
    """Give the words that each vertex takes; an empty array when that is 1 for all.

    Examples
    --------
    >>> from pebble.graph import Graph
    >>> weights_of(Graph([(), (0,)], ["a", "b"]), Rules(weights={"b": 4})).tolist()
    [1, 4]
    """
    if not rules.weights:
        return np.zeros(0, np.int64)
    table = dict(rules.weights)
    vertices = range(len(graph))
    return np.array([table.get(graph.label(v), table.get(graph.family(v), 1)) for v in vertices])


def least_cache(graph: ComputationGraph, rules: Rules = HONG_KUNG) -> int:
    """Give the least cache in which a graph can be pebbled.

    A vertex and its predecessors must fit; when sliding, the vertex takes the place of one. With
    every vertex weighing 1, that is 1 more than the largest in-degree, or just that in-degree.

    Examples
    --------
    >>> from pebble.graph import Graph
    >>> sum_of_two = Graph([(), (), (0, 1)])
    >>> least_cache(sum_of_two), least_cache(sum_of_two, Rules(sliding=True))
    (3, 2)
    """
    weights = weights_of(graph, rules)
    least = 1
    for v in range(len(graph)):
        taken = [int(weights[u]) if len(weights) else 1 for u in graph.predecessors(v)]
        own = int(weights[v]) if len(weights) else 1
        if rules.sliding and taken:
            own = max(0, own - max(taken))
        least = max(least, sum(taken) + own)
    return least


def start_state(graph: ComputationGraph) -> NDArray[np.uint8]:
    """Give the state at the start, one byte a vertex: blue on the inputs, and nothing red.

    Examples
    --------
    >>> from pebble.graph import Graph
    >>> start_state(Graph([(), (0,)])).tolist() == [BLUE | INPUT, OUTPUT]
    True
    """
    state = np.zeros(len(graph), np.uint8)
    state[np.array(graph.inputs, np.int64)] = BLUE | INPUT
    state[np.array(graph.outputs, np.int64)] |= OUTPUT
    return state
