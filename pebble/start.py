"""What a game starts from: the weights of the vertices, the cache they need, the first state."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pebble.errors import UnknownName
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

    Raises
    ------
    UnknownName
        A weight of what is neither a vertex nor a family.
    """
    if not rules.weights:
        return np.zeros(0, np.int64)
    vertices = range(len(graph))
    families, names = [graph.family(v) for v in vertices], [graph.label(v) for v in vertices]
    check_weights(rules, {*families, *names})
    return np.array([rules.weight(*pair) for pair in zip(families, names, strict=True)], np.int64)


def check_weights(rules: Rules, known: Collection[Hashable]) -> None:
    """Check that everything that is weighed is there.

    Raises
    ------
    UnknownName
        A weight of what is none of the known names.

    Examples
    --------
    >>> check_weights(Rules(weights={"Z": 2}), {"Q", "K"})
    Traceback (most recent call last):
    pebble.errors.UnknownName: weight of Z: the graph has no such vertex or family
    """
    for name in dict(rules.weights):
        if name not in known:
            raise UnknownName(f"weight of {name}: the graph has no such vertex or family")


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
