"""The 0/1 program: against the exact search, and against values found by others."""

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pebble.testing
from pebble import classic
from pebble.errors import ProblemError, SizeError
from pebble.graph import Graph
from pebble.milp import optimum_milp
from pebble.optimum import Optimum, Undecided, optimum
from pebble.replay import replay
from pebble.rules import HONG_KUNG, Rules
from tests.tables import rows
from tests.test_optimum import named, told

ONCE = Rules(recompute=False)

# Rows of which HiGHS takes a second or less, and some of which it takes up to a minute.
QUICK = ("product", "dot", "fft(1)", "tree(2,2)", "tree(2,3)", "tree(3,2)", "pyramid(2)")
QUICK = (*QUICK, "pyramid(3)", "matvec(2)")
SLOWER = ("fft(2)", "pyramid(4)", "diamond(4)", "tree(3,3)")


def picked(names):
    """Give the rows of these graphs whose optimum computes each vertex once, and only once."""
    table = [row for row in rows("searched_optima.csv") if row["partial"] == "no"]
    return [row for row in table if row["graph"].startswith(names)]


def agree(row, seconds):
    """Check that both engines find the value of a row, without recomputation."""
    graph, cache = named(row["graph"]), int(row["cache"])
    found = optimum_milp(graph, cache, seconds=seconds)
    assert isinstance(found, Optimum)
    assert found.io == int(row["io"]) == optimum(graph, cache, ONCE).io
    assert replay(graph, found.schedule, cache, ONCE) == found.cost


@pytest.mark.parametrize("row", picked(QUICK), ids=told)
def test_values_of_two_other_searches(row):
    agree(row, 60)


@pytest.mark.slow
@pytest.mark.parametrize("row", picked(SLOWER), ids=told)
def test_more_values_of_two_other_searches(row):
    agree(row, 1800)


def test_the_rows_are_there():
    # product 1, dot 4, fft(1) 1, tree(2,2) 2, tree(2,3) 3, tree(3,2) 2, pyramid(2) 1,
    # pyramid(3) 2, matvec(2) 2; then fft(2) 4, pyramid(4) 2, diamond(4) 2, tree(3,3) 1
    assert len(picked(QUICK)) == 18
    assert len(picked(SLOWER)) == 9


@st.composite
def played(draw, most=7):
    """Draw a small graph, rules, and a cache."""
    graph = draw(pebble.testing.graphs(most))
    rules = Rules(recompute=False, sliding=draw(st.booleans()))
    return graph, rules, draw(pebble.testing.caches(graph, rules, spare=1))


@given(played())
@settings(max_examples=60, deadline=None)
def test_both_engines_agree(drawn):
    graph, rules, cache = drawn
    found = optimum_milp(graph, cache, rules)
    assert isinstance(found, Optimum)
    assert found.io == optimum(graph, cache, rules).io
    assert replay(graph, found.schedule, cache, rules) == found.cost


@given(played(most=6), st.integers(0, 2))
@settings(max_examples=40, deadline=None)
def test_with_recomputation_it_is_an_upper_end(drawn, more):
    graph, rules, cache = drawn
    inner = len(graph) - len(graph.inputs)
    rules = dataclasses.replace(rules, recompute=True)
    found = optimum_milp(graph, cache, rules, computes=inner + more)
    best = optimum(graph, cache, rules)
    assert replay(graph, found.schedule, cache, rules) == found.cost
    assert found.cost.computes <= max(inner + more, best.cost.computes)
    # Where the best game has so many computes, it is found.
    if best.cost.computes <= inner + more:
        assert found.cost.io == best.io
    assert found.cost.io >= best.io
    assert isinstance(found, Optimum) or found.lower <= best.io


# m from a, b from m, c from b and d, f from c and m, in 3 words: with m computed twice, 4 instead
# of 5; see the tests of the search.
AGAIN = Graph.from_edges(["am", "mb", "bc", "dc", "cf", "mf"], labels="abcdmf")


def test_recomputation_can_pay_with_one_compute_more():
    # four vertices are computed; the inputs a and d and the output f move once: 3
    assert optimum_milp(AGAIN, 3).io == 5
    for computes, io in ((4, 5), (5, 4), (6, 4)):
        found = optimum_milp(AGAIN, 3, HONG_KUNG, computes=computes)
        assert isinstance(found, Undecided)
        assert (found.lower, found.upper, found.stopped) == (3, io, "computes")
        assert found.cost.computes <= computes


def test_with_recomputation_inputs_and_outputs_alone_are_a_proof():
    found = optimum_milp(AGAIN, 4, HONG_KUNG)
    assert isinstance(found, Optimum)
    assert found.io == 3


def test_out_of_seconds():
    graph = classic.matmul(2, 2, 2)
    found = optimum_milp(graph, 4, seconds=1e-3)
    assert isinstance(found, Undecided)
    assert found.stopped == "seconds"
    # 8 inputs, 4 outputs; 17 is the optimum
    assert 12 <= found.lower <= 17 <= found.upper
    assert replay(graph, found.schedule, 4, ONCE) == found.cost


def test_a_cache_larger_than_the_graph():
    assert optimum_milp(classic.dot(2), 100).io == 5


def test_an_implicit_graph():
    assert optimum_milp(pebble.Attention(n=1, d=1).graph, 4).io == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cache": 0}, r"cache = 0: the words of fast memory must be a positive integer"),
        ({"cache": 2}, r"cache = 2: the graph can't be pebbled with less than 3 words"),
        ({"seconds": 0}, r"seconds = 0: the time must be a positive number"),
        ({"seconds": float("nan")}, r"seconds = nan: the time must be a positive number"),
        ({"rules": HONG_KUNG, "computes": 0}, r"computes = 0: the most computes must be a pos"),
        ({"rules": HONG_KUNG, "computes": 2}, r"computes = 2: 3 vertices must be computed"),
    ],
)
def test_sizes_that_do_not_work(options, message):
    with pytest.raises(SizeError, match=message):
        optimum_milp(classic.dot(2), **{"cache": 3, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rules": Rules(weights={"a": 2})}, r"rules with weights = "),
        ({"rules": Rules(compute_cost=1)}, r"rules with compute_cost = 1: the program is for"),
        ({"rules": Rules(partial=True)}, r"rules with partial = True: the program is for"),
        ({"computes": 3}, r"computes = 3 without recomputation: each of 3 vertices is computed"),
    ],
)
def test_rules_that_are_not_solved(options, message):
    with pytest.raises(ProblemError, match=message):
        optimum_milp(classic.dot(2), 3, **options)
