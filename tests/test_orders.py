"""Compute orders: what is given is checked, what is made is topological, what is found is good."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble import testing
from pebble.errors import GraphError, ProgramError, SizeError, UnknownName
from pebble.graph import Graph
from pebble.order_search import search_order
from pebble.orders import breadth_first, compute_order, depth_first, numbered
from pebble.play import play
from pebble.policies import POLICIES

SIMPLE = (numbered, depth_first, breadth_first)
GRAPH = Graph([(), (), (0, 1), (2,), (1, 3)], labels=["a", "b", "c", "d", "e"])


def is_an_order(graph, order):
    done = set(graph.inputs)
    for v in order:
        if v in done or not done.issuperset(graph.predecessors(v)):
            return False
        done.add(v)
    return len(done) == len(graph)


@pytest.mark.parametrize("make", SIMPLE)
@given(graph=testing.graphs(14, 4))
def test_a_made_order_is_one(make, graph):
    order = make(graph)
    assert is_an_order(graph, order.tolist())
    assert compute_order(graph, order).tolist() == order.tolist()


@given(testing.graphs(14, 4))
def test_breadth_first_goes_by_level(graph):
    level = {}
    for v in graph.topological():
        level[v] = max((level[u] + 1 for u in graph.predecessors(v)), default=0)
    computed = [v for v in range(len(graph)) if level[v]]
    assert breadth_first(graph).tolist() == sorted(computed, key=lambda v: (level[v], v))


def slow_words(graph, v):
    """Sethi and Ullman's number for a graph that is read as a tree."""
    below = sorted((slow_words(graph, u) for u in graph.predecessors(v)), reverse=True)
    return max([len(below) + 1, *(words + i for i, words in enumerate(below))])


@given(testing.graphs(10))
def test_depth_first_goes_down_to_the_hardest_first(graph):
    order = []

    def visit(v):
        for u in sorted(graph.predecessors(v), key=lambda u: -slow_words(graph, u)):
            visit(u)
        if graph.predecessors(v) and v not in order:
            order.append(v)

    for v in graph.outputs:
        visit(v)
    assert depth_first(graph).tolist() == order


@st.composite
def trees(draw):
    """Draw a tree whose edges lead to the root, vertex 0, in no good order."""
    size = draw(st.integers(2, 12))
    rows = [[] for _ in range(size)]
    for v in range(1, size):
        rows[draw(st.integers(0, v - 1))].append(v)
    return Graph(rows)


@given(trees())
def test_depth_first_needs_the_least_words_for_a_tree(tree):
    # With the words of Sethi and Ullman's number nothing is stored but the root, and with one
    # word less (if the tree can be computed) something is, or is loaded twice.
    least = slow_words(tree, 0)
    trivial = len(tree.inputs) + 1
    assert play(tree, least, "depth_first").cost.io == trivial
    if least > tree.least_cache():
        assert play(tree, least - 1, "search").cost.io > trivial


def test_a_deep_graph_is_walked():
    size = 100_000
    chain = Graph.from_arrays(np.maximum(np.arange(-1, size), 0), np.arange(size - 1))
    for make in SIMPLE:
        assert np.array_equal(make(chain), np.arange(1, size))


@pytest.mark.parametrize(
    "given_order",
    [
        ["c", "d", "e"],
        ("a", "c", "d", "e", "b"),  # inputs are passed over, wherever they are
        [2, 3, 4],
        np.array([0, 1, 2, 3, 4], np.int32),
        iter(["c", "d", "e"]),
        [np.int64(2), 3, 4],
    ],
)
def test_orders_can_be_given_in_several_ways(given_order):
    assert compute_order(GRAPH, given_order).tolist() == [2, 3, 4]


def test_integers_that_are_labels_are_read_as_labels():
    graph = Graph([(), (0,), (1,)], labels=[7, 2, 1])
    assert compute_order(graph, [2, 1]).tolist() == [1, 2]
    assert compute_order(graph, np.array([1, 2])).tolist() == [1, 2]  # an array has numbers
    with pytest.raises(GraphError, match=r"^the graph has no vertex 0$"):
        compute_order(graph, [0, 1])


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (["c", "e", "d"], ProgramError, r"e, at place 1, comes before its predecessor d"),
        (["a", "e", "d", "c"], ProgramError, r"e, at place 1, comes before its predecessor d"),
        (["d", "e", "c"], ProgramError, r"d, at place 0, comes before its predecessor c"),
        (["c", "d", "d", "e"], ProgramError, r"d is there twice, at places 1 and 2"),
        (["a", "c", "a", "d", "e"], ProgramError, r"a is there twice, at places 0 and 2"),
        (["e"], ProgramError, r"2 of 3 vertices to compute are missing: c, d"),
        ([], ProgramError, r"3 of 3 vertices to compute are missing: c, d, e"),
        (["c", "d"], ProgramError, r"1 of 3 vertices to compute is missing: e"),
        (["c", "q", "d"], GraphError, r"^the graph has no vertex q$"),
        ([2, 3, 5], GraphError, r"^the graph has no vertex 5$"),
        ([2, 3, -1], GraphError, r"^the graph has no vertex -1$"),
        ([2, True, 4], GraphError, r"^the graph has no vertex 2$"),
        (np.array([2.0, 3.0]), ProgramError, r"^order of shape \(2,\) and type float64"),
        (np.array([[2, 3]]), ProgramError, r"^order of shape \(1, 2\) and type int64"),
    ],
)
def test_wrong_orders(wrong, error, message):
    with pytest.raises(error, match=message):
        compute_order(GRAPH, wrong)


@given(testing.graphs(12), st.data())
@settings(max_examples=60)
def test_a_search_is_never_worse_than_the_simple_orders(graph, data):
    cache = data.draw(testing.caches(graph, spare=1))
    policy = data.draw(st.sampled_from(POLICIES))
    budget, seed = data.draw(st.integers(1, 30)), data.draw(st.integers(0, 9))
    found = search_order(graph, cache, policy, budget=budget, seed=seed)
    assert is_an_order(graph, found.tolist())
    least = min(play(graph, cache, make(graph), policy).cost.io for make in SIMPLE)
    assert play(graph, cache, found, policy).cost.io <= least
    again = search_order(graph, cache, policy, budget=budget, seed=seed)
    assert found.tolist() == again.tolist()


def test_a_change_can_reach_every_order():
    from pebble import order_kernels

    # Four values of one input each, and their sum: 4! orders.
    graph = Graph([(), (0,), (0,), (0,), (0,), (1, 2, 3, 4)])
    random, order, seen = np.random.default_rng(0), numbered(graph), set()
    for _ in range(2000):
        order = order_kernels.change(graph.starts, graph.preds, order, random.random(4))
        assert is_an_order(graph, order.tolist())
        seen.add(tuple(order.tolist()))
    assert len(seen) == 24


@given(testing.graphs(14, 4), st.lists(st.floats(0, 1, exclude_max=True), min_size=4, max_size=4))
def test_a_change_keeps_an_order_one(graph, draws):
    from pebble import order_kernels

    for make in SIMPLE:
        changed = order_kernels.change(graph.starts, graph.preds, make(graph), np.array(draws))
        assert is_an_order(graph, changed.tolist())


def test_a_search_finds_better_orders():
    # The FFT on 8 points with 3 words: 64 in each simple order. Two butterflies a step of the way
    # need not wait for the others of their level.
    rows = [()] * 8
    for level in range(3):
        rows += [(8 * level + i, 8 * level + (i ^ 1 << level)) for i in range(8)]
    fft = Graph(rows)
    assert [play(fft, 3, make(fft)).cost.io for make in SIMPLE] == [64, 64, 64]
    assert play(fft, 3, "search").cost.io <= 48


def test_errors_of_the_search():
    with pytest.raises(SizeError, match=r"^budget = 0: the number of orders to play must be"):
        search_order(GRAPH, 3, budget=0)
    with pytest.raises(SizeError, match=r"^cache = 2 is too small; the least that works is 3"):
        search_order(GRAPH, 2)
    with pytest.raises(UnknownName, match=r"^policy = 'clock'"):
        search_order(GRAPH, 3, "clock")
