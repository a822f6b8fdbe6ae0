import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble import networks, testing
from pebble.errors import GraphError
from pebble.graph import Graph, explicit
from pebble.moves import Vertex
from pebble.rules import BLUE, INPUT, OUTPUT, Rules
from pebble.start import least_cache, start_state, weights_of
from tests import naive
from tests.tables import as_dict, as_keywords, small_graph


def faults(*arguments, **keywords):
    make = keywords.pop("make", Graph)
    with pytest.raises(GraphError) as caught:
        make(*arguments, **keywords)
    assert str(caught.value) == "; ".join(caught.value.faults)
    return list(caught.value.faults)


KNOWN = "a label is a str, an int, a Vertex, or a tuple of str and int"
ALIKE = "all are str, or int, or Vertex, or tuple"

# Every fault on its own.


@pytest.mark.parametrize(
    ("preds", "says"),
    [
        ([], "the graph has no vertices"),
        ([()], "0 is isolated: it would be an input and a sink"),
        ([(), (0,), (1, 2)], "self loop on 2"),
        ([(), (0, 0)], "1 has predecessor 0 more than once"),
        ([(), (0, 2)], "predecessor 2 of 1 does not exist: there are 2 vertices, numbered from 0"),
        (
            [(), (0, -1)],
            "predecessor -1 of 1 does not exist: there are 2 vertices, numbered from 0",
        ),
        ([(), (0, 2), (1,), (2,)], "cycle: 1 -> 2 -> 1"),
        ([(3,), (0,), (1,), (2,)], "cycle: 0 -> 1 -> 2 -> 3 -> 0"),
        ([(), (0.5,)], "predecessors are vertex numbers, and so integers"),
        ([(), ("a",)], "predecessors are vertex numbers, and so integers"),
    ],
)
def test_faults_of_edges(preds, says):
    assert faults(preds) == [says]


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ("aa", ["label a is on vertices 0 and 1"]),
        ("abc", ["3 labels for 2 vertices"]),
        ("a", ["1 labels for 2 vertices"]),
        (
            ["a", 1],
            [f"labels of mixed types (1 is int; a is str): {ALIKE}"],
        ),
        (
            [Vertex("x", (0,)), ("x", 1)],
            [f"labels of mixed types (x[0] is Vertex; ('x', 1) is tuple): {ALIKE}"],
        ),
        (
            ["a", 0.5],
            [f"label 0.5 of type float: {KNOWN}"],
        ),
        (
            [True, None],
            [
                f"label None of type NoneType: {KNOWN}",
                f"label True of type bool: {KNOWN}",
            ],
        ),
        (
            [[0], "a"],
            [f"label [0] of type list: {KNOWN}"],
        ),
        (
            [(0,), (None,)],
            [
                "label (None,) of type tuple: a label with a notation "
                "is a Vertex, a str, an int, or a tuple of str, int and such tuples"
            ],
        ),
        (
            [Vertex("x", (0,)), Vertex("a b", (0,))],
            ["label ('a b', (0,)): a Vertex is a word such as x and a tuple of integers"],
        ),
        (
            [Vertex("x", (0,)), Vertex("x", (True,))],
            ["label ('x', (True,)): a Vertex is a word such as x and a tuple of integers"],
        ),
    ],
)
def test_faults_of_labels(labels, says):
    assert faults([(), (0,)], labels) == says


@pytest.mark.parametrize(
    ("outputs", "says"),
    [
        (["b", "c", "a"], ["outputs that are inputs: a"]),
        (["b"], ["sinks that are not outputs: c"]),
        ([], ["sinks that are not outputs: c"]),
        (["c", "z", None, []], ["unknown outputs: z, None, []"]),
    ],
)
def test_faults_of_outputs(outputs, says):
    assert faults([(), (0,), (1,)], "abc", outputs) == says


def test_all_faults_are_reported_at_once():
    preds = [(), (0, 1), (0, 0, 9), (4,), (3,), (), (3,)]
    assert faults(preds, "abcdefg", outputs=["a", "z", "b", "c"]) == [
        "predecessor 9 of c does not exist: there are 7 vertices, numbered from 0",
        "self loop on b",
        "c has predecessor a more than once",
        "cycle: d -> e -> d",
        "f is isolated: it would be an input and a sink",
        "unknown outputs: z",
        "outputs that are inputs: a",
        "sinks that are not outputs: g",
    ]
    # Labels that are no names: vertices are named by their numbers, and outputs by nothing.
    assert faults([(), (0, 1)], "aa", outputs="z") == [
        "label a is on vertices 0 and 1",
        "self loop on vertex 1",
    ]


def test_a_long_list_is_cut_short():
    assert faults([(), *[(0,)] * 9], outputs=[]) == [
        "sinks that are not outputs: 1, 2, 3, 4, 5 and 4 more"
    ]
    assert faults([(20,), *[(v,) for v in range(20)]])[0] == (
        "cycle: 0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> 13 more -> 0"
    )


@settings(max_examples=200)
@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(
            st.lists(st.integers(0, n - 1), max_size=3).map(tuple), min_size=n, max_size=n
        )
    )
)
def test_exactly_the_graphs_without_fault_are_made(preds):
    network = nx.MultiDiGraph()
    network.add_nodes_from(range(len(preds)))
    network.add_edges_from((u, v) for v, before in enumerate(preds) for u in before)
    good = (
        nx.is_directed_acyclic_graph(network)
        and not any(len(set(before)) < len(before) for before in preds)
        and not any(degree == 0 for _, degree in network.degree)
    )
    for make in (lambda: Graph(preds), lambda: networks.from_networkx(network)):
        if good:
            assert len(make()) == len(preds)
        else:
            assert faults(make=make)


# Ways to make a graph.


def test_from_arrays():
    graph = Graph.from_arrays(np.array([0, 0, 0, 2], np.int32), np.array([0, 1], np.uint8), "abc")
    assert graph == Graph([(), (), (0, 1)], "abc")
    assert graph.preds.dtype == graph.starts.dtype == np.int64
    for starts in ([], [1, 2], [0, 1], [0, 2, 1, 2], [[0, 2]], [0.0, 2.0], [0, 3]):
        says = faults(starts, [0, 1], make=Graph.from_arrays)
        assert says == ["starts must rise from 0 to the number of predecessors"]


def test_arrays_are_copies_that_cannot_be_written():
    starts, preds = np.array([0, 0, 1]), np.array([0])
    graph = Graph.from_arrays(starts, preds)
    preds[0] = 1
    assert graph.predecessors(1) == (0,)
    for array in (graph.starts, graph.preds):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_from_edges():
    graph = Graph.from_edges([("a", "c"), ("b", "c"), ("c", "d")], outputs=["c", "d"])
    assert [graph.label(v) for v in range(4)] == ["a", "c", "b", "d"]
    assert as_dict(graph) == ({"a": (), "c": ("a", "b"), "b": (), "d": ("c",)}, ["c", "d"])
    assert Graph.from_edges([("a", "b")], labels=["b", "a"]).label(0) == "b"
    assert faults([("a", "b")], labels="a", make=Graph.from_edges) == [
        "edge with 'b', which is not among the labels"
    ]
    assert faults([("a", "b", "c"), "x"], make=Graph.from_edges) == [
        "edge ('a', 'b', 'c'): an edge is a pair of labels",
        "edge ('x',): an edge is a pair of labels",
    ]
    assert "a label must be hashable" in faults([([], "c")], make=Graph.from_edges)[0]
    assert faults([], make=Graph.from_edges) == ["the graph has no vertices"]


def test_undirected_and_parallel_edges_are_refused():
    assert faults(nx.Graph([(0, 1)]), make=Graph.from_networkx) == [
        "Graph is undirected: edges must lead to what is computed"
    ]
    assert faults(nx.MultiDiGraph([(0, 1), (0, 1)]), make=Graph.from_networkx) == [
        "1 has predecessor 0 more than once"
    ]
    assert Graph.from_networkx(nx.MultiDiGraph([(0, 1)])) == Graph([(), (0,)])


def test_outputs_from_networkx():
    network = nx.DiGraph([("a", "b"), ("b", "c")])
    assert as_dict(Graph.from_networkx(network))[1] == ["c"]
    assert as_dict(Graph.from_networkx(network, outputs=["c", "b"]))[1] == ["b", "c"]
    network.nodes["b"]["output"] = True
    assert faults(network, make=Graph.from_networkx) == ["sinks that are not outputs: c"]
    network.nodes["c"]["output"] = True
    assert as_dict(Graph.from_networkx(network))[1] == ["b", "c"]


def test_labels_of_numpy_become_ints():
    nodes = np.array([7, 9])
    graph = Graph.from_networkx(nx.DiGraph([tuple(nodes)]))
    assert [type(graph.label(v)) for v in range(2)] == [int, int]
    assert graph.vertex(np.int64(9)) == Graph([(), (0,)]).vertex(np.int64(1)) == 1


@given(testing.graphs(max_vertices=10))
def test_networkx_round_trip(graph):
    again = Graph.from_networkx(graph.to_networkx())
    assert again == graph
    assert hash(again) == hash(graph)
    assert [type(again.label(v)) for v in range(len(graph))] == [
        type(graph.label(v)) for v in range(len(graph))
    ]


# What a graph answers.


@given(testing.graphs(max_vertices=10))
def test_a_graph_agrees_with_networkx(graph):
    network = nx.DiGraph()
    network.add_nodes_from(range(len(graph)))
    network.add_edges_from((u, v) for v in range(len(graph)) for u in graph.predecessors(v))
    for v in range(len(graph)):
        assert set(graph.successors(v)) == set(network.successors(v))
        assert graph.is_input(v) == (network.in_degree(v) == 0) == (v in graph.inputs)
        assert graph.is_output(v) == (v in graph.outputs)
        assert graph.vertex(graph.label(v)) == v
    assert graph.sinks == tuple(v for v in range(len(graph)) if network.out_degree(v) == 0)
    assert set(graph.sinks) <= set(graph.outputs)
    assert graph.topological() == tuple(nx.lexicographical_topological_sort(network))
    assert graph.max_in_degree == max(degree for _, degree in network.in_degree)


@pytest.mark.parametrize("label", ["z", 3, None, [], True, -1, ("a",)])
def test_an_unknown_label_is_named(label):
    for graph in (Graph([(), (0,)], "ab"), Graph([(), (0,)])):
        with pytest.raises(GraphError, match="the graph has no vertex") as caught:
            graph.vertex(label)
        assert str(label) in str(caught.value)


def test_families():
    graph = Graph([(), (0,)], [Vertex("Q", (0,)), Vertex("O", (0,))], [Vertex("O", (0,))])
    assert [graph.family(0), graph.family(1)] == ["Q", "O"]
    assert Graph([(), (0,)], "ab").family(1) == "b"
    weights = Rules(weights={"O": 3, Vertex("Q", (0,)): 2})
    assert weights_of(graph, weights).tolist() == [2, 3]
    assert weights_of(graph, Rules()).tolist() == []


def test_equality():
    graph = Graph([(), (), (0, 1)])
    assert graph == Graph([(), (), (0, 1)], labels=[0, 1, 2])
    assert graph != Graph([(), (), (1, 0)])
    assert graph != Graph([(), (), (0, 1)], "abc")
    assert Graph([(), (0,), (1,)]) != Graph([(), (0,), (1,)], outputs=[1, 2])
    assert graph != 3


class Chain:
    """An implicit graph, as short as it can be: x[0] -> x[1] -> ... -> x[n - 1]."""

    def __init__(self, n):
        self.n, self.inputs, self.outputs = n, (0,), (n - 1,)

    def __len__(self):
        return self.n

    def predecessors(self, v):
        return (v - 1,) if v else ()

    def is_input(self, v):
        return v == 0

    def is_output(self, v):
        return v == self.n - 1

    def label(self, v):
        return Vertex("x", (v,))

    def family(self, v):
        return "x"

    def vertex(self, label):
        if isinstance(label, Vertex) and label.family == "x" and label.index[0] in range(self.n):
            return label.index[0]
        raise GraphError([f"the graph has no vertex {label}"])


def test_explicit():
    chain = Chain(3)
    graph = explicit(chain)
    assert graph == Graph([(), (0,), (1,)], [Vertex("x", (v,)) for v in range(3)])
    assert explicit(graph) is graph
    assert Graph.from_networkx(networks.to_networkx(chain)) == graph
    assert least_cache(chain) == graph.least_cache() == 2
    assert start_state(chain).tolist() == [BLUE | INPUT, 0, OUTPUT]


@settings(max_examples=40)
@given(testing.graphs(max_vertices=6), st.data())
def test_the_least_cache_is_the_least_that_works(graph, data):
    rules = data.draw(testing.rules(graph))
    least = graph.least_cache(rules)
    assert least == least_cache(graph, rules)
    keywords = as_keywords(rules)
    keywords = {name: keywords[name] for name in ("recompute", "sliding", "weights")}
    assert naive.optimum(*as_dict(graph), least, **keywords) is not None
    assert naive.optimum(*as_dict(graph), least - 1, **keywords) is None


def test_repr_counts():
    assert repr(small_graph("FFT on 4 points")) == (
        "Graph(12 vertices: 4 inputs, 4 outputs; 16 edges)"
    )


def test_heavy_libraries_are_imported_only_where_they_are_used():
    program = (
        "import sys, pebble.graph, pebble.game, pebble.networks, pebble.replay;"
        "sys.exit(' '.join({'numba', 'networkx', 'scipy', 'hypothesis'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
