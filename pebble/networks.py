"""To networkx and back. Nothing else in the package imports networkx."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pebble.errors import GraphError
from pebble.graph import ComputationGraph, Graph
from pebble.moves import Label

if TYPE_CHECKING:
    import networkx


def from_networkx(graph: Any, outputs: Iterable[Label] | None = None) -> Graph:
    """Make a graph from a networkx DiGraph: nodes are labels, an edge leads to what is computed.

    Parameters
    ----------
    graph : networkx.DiGraph
        Vertices are numbered in the order of its nodes.
    outputs : iterable of labels, optional
        What must be blue at the end. Default: the nodes with the attribute ``output=True``, and
        the sinks if no node has that attribute.

    Raises
    ------
    GraphError
        For an undirected graph, and for any that the game can't be played on; see `Graph`.

    Examples
    --------
    >>> import networkx as nx
    >>> graph = from_networkx(nx.DiGraph([("a", "c"), ("b", "c")]))
    >>> [graph.label(v) for v in range(3)], graph.outputs
    (['a', 'c', 'b'], (1,))
    """
    if not graph.is_directed():
        raise GraphError(
            [f"{type(graph).__name__} is undirected: edges must lead to what is computed"]
        )
    nodes = list(graph.nodes)
    number = {node: v for v, node in enumerate(nodes)}
    rows: list[list[int]] = [[] for _ in nodes]
    for edge in graph.in_edges():  # a multigraph gives parallel edges once each
        rows[number[edge[1]]].append(number[edge[0]])
    if outputs is None:
        marked = [node for node, is_output in graph.nodes(data="output") if is_output]
        outputs = marked or None
    return Graph(rows, nodes, outputs)


def to_networkx(graph: ComputationGraph) -> networkx.DiGraph:
    """Give any graph as a networkx DiGraph whose nodes are the labels, in the same order.

    Outputs carry the attribute ``output=True``, so that `from_networkx` gives an equal graph.

    Examples
    --------
    >>> network = to_networkx(Graph([(), (0,), (1,)], labels=["a", "b", "c"]))
    >>> list(network.edges), network.nodes["c"]
    ([('a', 'b'), ('b', 'c')], {'output': True})
    """
    import networkx

    network = networkx.DiGraph()
    network.add_nodes_from(graph.label(v) for v in range(len(graph)))
    network.add_nodes_from([graph.label(v) for v in graph.outputs], output=True)
    network.add_edges_from(
        (graph.label(u), graph.label(v)) for v in range(len(graph)) for u in graph.predecessors(v)
    )
    return network
