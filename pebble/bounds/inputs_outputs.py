"""The trivial bound for any graph."""

from __future__ import annotations

from pebble.bounds.bound import Bound
from pebble.graph import ComputationGraph
from pebble.rules import HONG_KUNG, Rules
from pebble.start import weights_of


def inputs_outputs(graph: ComputationGraph, rules: Rules = HONG_KUNG) -> Bound:
    """Give the bound that each input is loaded and each output stored; `trivial` for any graph.

    In a graph that the game can be played on each input has a successor, and each vertex leads to
    an output, so each input is loaded. Weights are counted.

    Raises
    ------
    UnknownName
        A weight of what is neither a vertex nor a family.

    Examples
    --------
    >>> from pebble.graph import Graph
    >>> graph = Graph([(), (), (0, 1)], labels=["a", "b", "c"])
    >>> inputs_outputs(graph).value, inputs_outputs(graph, Rules(weights={"b": 5})).value
    (3, 7)
    """
    moved = [*graph.inputs, *graph.outputs]
    weights = weights_of(graph, rules)
    value = sum(int(weights[v]) for v in moved) if len(weights) else len(moved)
    return Bound(value, "trivial", "any game", "each input is loaded, each output stored")
