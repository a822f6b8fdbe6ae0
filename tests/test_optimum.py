"""The exact search: against a slow one, against values found by others, and its laws."""

import dataclasses
import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pebble.testing
from pebble import classic, partial
from pebble.errors import ProblemError, SizeError
from pebble.graph import Graph
from pebble.moves import Move
from pebble.optimum import Optimum, Undecided, optimum, plain_schedule
from pebble.replay import replay
from pebble.rules import HONG_KUNG, Op, Rules
from pebble.search import driver, steps
from tests import naive
from tests.tables import as_dict, rows, small_graph

ONCE = Rules(recompute=False)
BOTH = [pytest.param(HONG_KUNG, id="recompute"), pytest.param(ONCE, id="once")]

# The names of the table: its matvec is square and adds by one vertex.
CLASSIC = {
    "product": lambda: classic.product(),
    "dot": lambda n: classic.dot(n),
    "fft": lambda levels: classic.fft(levels),
    "tree": lambda arity, depth: classic.tree(arity, depth),
    "pyramid": lambda height: classic.pyramid(height),
    "diamond": lambda side: classic.diamond(side),
    "matmul": lambda n: classic.matmul(n, n, n),
    "matvec": lambda n: classic.matvec(n, n, sums="nary"),
}


def named(text):
    """Give the graph of a name such as tree(2,3)."""
    name, *sizes = re.findall(r"\w+", text)
    return CLASSIC[name](*map(int, sizes))


def told(row):
    rules = [row["recompute"], *["partial"][: row["partial"] == "yes"]] if "partial" in row else []
    return ", ".join([row["graph"], row["cache"], *rules])


def check(graph, cache, rules, found):
    """Check that the game's referee replays a schedule at the cost that is told."""
    if rules.partial:
        assert partial.replay(graph, found.schedule, cache) == found.cost
    else:
        assert replay(graph, found.schedule, cache, rules) == found.cost


@st.composite
def played(draw, most=7):
    """Draw a small graph, rules that are searched, and a cache."""
    graph = draw(pebble.testing.graphs(most))
    rules = draw(pebble.testing.rules())
    rules = dataclasses.replace(rules, compute_cost=0)
    return graph, rules, draw(pebble.testing.caches(graph, rules, spare=2))


@given(played())
def test_it_is_the_optimum_of_the_slow_search(drawn):
    graph, rules, cache = drawn
    found = optimum(graph, cache, rules)
    truth = naive.optimum(*as_dict(graph), cache, rules.recompute, rules.sliding)
    assert isinstance(found, Optimum)
    assert found.io == truth
    check(graph, cache, rules, found)


@st.composite
def twinned(draw):
    """Draw a small graph in which some vertices are alike, rules and a cache."""
    graph = draw(pebble.testing.graphs(5))
    which = draw(st.lists(st.integers(0, len(graph) - 1), min_size=1, max_size=3))
    preds = [list(graph.predecessors(v)) for v in range(len(graph))]
    outputs = list(graph.outputs)
    for v in which:
        twin = len(preds)
        preds.append(list(preds[v]))
        for row in preds:
            row += [twin] * (v in row)
        outputs += [twin] * (v in outputs)
    graph = Graph(preds, outputs=outputs)
    rules = dataclasses.replace(draw(pebble.testing.rules()), compute_cost=0)
    return graph, rules, draw(pebble.testing.caches(graph, rules, spare=1))


@given(twinned())
@settings(max_examples=80, deadline=None)
def test_vertices_that_are_alike_cost_what_they_cost(drawn):
    graph, rules, cache = drawn
    found = optimum(graph, cache, rules)
    assert found.io == naive.optimum(*as_dict(graph), cache, rules.recompute, rules.sliding)
    check(graph, cache, rules, found)


def test_vertices_that_are_alike():
    # Three inputs of three sums; of the sums one has a reader, one is an output besides.
    graph = Graph([(), (), (), (0, 1, 2), (0, 1, 2), (0, 1, 2), (3, 4, 5)], outputs=[4, 6])
    assert driver.twins_of(graph).tolist() == [[0, 1, 2], [3, 5, -1]]
    graph = Graph([(), (), (0,), (0, 1), (0, 1), (0, 1)])
    assert driver.twins_of(graph).tolist() == [[3, 4, 5]]
    assert driver.twins_of(classic.chain(3)).shape == (0, 0)


@pytest.mark.parametrize("lies", list(itertools.product(range(8), repeat=3)), ids=str)
def test_positions_of_vertices_that_are_alike_are_one(lies):
    # Three vertices that are alike, 1, 3 and 4, among others; what lies on each: done, red, blue.
    twins = np.array([[1, 3, 4, -1]])
    seen = set()
    for order in itertools.permutations(lies):
        bits = [
            sum(1 << v for v, at in zip((1, 3, 4), order, strict=True) if at & side) | 0b100101
            for side in (4, 2, 1)
        ]
        done, red, blue = map(int, steps.arranged(twins, *map(np.uint64, bits)))
        after = [(done >> v & 1) * 4 + (red >> v & 1) * 2 + (blue >> v & 1) for v in (1, 3, 4)]
        assert sorted(after) == sorted(lies)  # the same pebbles, in other places
        assert all(side & 0b100101 == 0b100101 for side in (done, red, blue))
        seen.add((done, red, blue))
    assert len(seen) == 1


def test_alike_vertices_are_searched_once():
    # Three layers of four, each joined to all of the next.
    graph = Graph([()] * 4 + [(0, 1, 2, 3)] * 4 + [(4, 5, 6, 7)] * 4)
    joined = driver.board(graph, 5, ONCE)
    plain = dataclasses.replace(joined, twins=np.zeros((0, 0), np.int64))
    found = [driver.search(game, 40, 1, 10**6, lambda: False) for game in (plain, joined)]
    assert found[0].lower == found[1].lower == 14
    assert found[1].expanded * 4 < found[0].expanded


@given(played(most=10))
@settings(max_examples=60)
def test_it_does_not_rise_with_cache_nor_with_more_moves(drawn):
    graph, rules, cache = drawn
    io = optimum(graph, cache, rules).io
    assert optimum(graph, cache + 1, rules).io <= io
    assert optimum(graph, cache, dataclasses.replace(rules, recompute=True)).io <= io
    assert optimum(graph, cache, dataclasses.replace(rules, recompute=False)).io >= io
    if not rules.sliding:
        assert optimum(graph, cache, dataclasses.replace(rules, sliding=True)).io <= io
    # A slide does what a compute does in a cache of one word more.
    if rules.sliding:
        unslid = dataclasses.replace(rules, sliding=False)
        assert optimum(graph, cache + 1, unslid).io <= io


@given(pebble.testing.graphs(10), st.data())
@settings(max_examples=60)
def test_with_room_for_all_only_inputs_and_outputs_move(graph, data):
    rules = data.draw(st.sampled_from([HONG_KUNG, ONCE]))
    found = optimum(graph, len(graph), rules)
    assert found.io == len(graph.inputs) + len(graph.outputs)
    check(graph, len(graph), rules, found)


@given(pebble.testing.games(max_vertices=8, max_random=16))
def test_no_legal_game_has_less(game):
    rules = dataclasses.replace(game.rules, weights=(), compute_cost=0)
    if not game.rules.weights:
        cost = replay(game.graph, game.moves, game.cache, rules)
        assert optimum(game.graph, game.cache, rules).io <= cost.io


@given(played(most=9))
@settings(max_examples=60)
def test_the_numbering_of_the_vertices_does_not_matter(drawn):
    graph, rules, cache = drawn
    n = len(graph)
    back = Graph(
        [[n - 1 - u for u in graph.predecessors(n - 1 - v)] for v in range(n)],
        outputs=[n - 1 - v for v in graph.outputs],
    )
    assert optimum(back, cache, rules).io == optimum(graph, cache, rules).io


@pytest.mark.parametrize("row", rows("optima.csv"), ids=told)
def test_values_of_two_other_searches(row):
    found = optimum(small_graph(row["graph"]), int(row["cache"]))
    assert found.io == int(row["io"])


SEARCHED = rows("searched_optima.csv")


@pytest.mark.parametrize("row", SEARCHED, ids=told)
def test_values_of_another_search(row):
    graph, cache = named(row["graph"]), int(row["cache"])
    rules = Rules(recompute=row["recompute"] == "yes", partial=row["partial"] == "yes")
    found = optimum(graph, cache, rules)
    assert isinstance(found, Optimum)
    assert found.io == int(row["io"])
    check(graph, cache, rules, found)


def test_the_table_has_all_graphs():
    assert len(SEARCHED) == 41
    assert sum(row["partial"] == "yes" for row in SEARCHED) == 5


def test_recomputation_can_pay():
    # m from a, b from m, c from b and d, f from c and m, in 3 words. While c is formed, m has no
    # place. The inputs a and d and the output f move once: 3. Then m is stored and loaded, 2 more,
    # or a is loaded again, 1 more.
    graph = Graph.from_edges(["am", "mb", "bc", "dc", "cf", "mf"], labels="abcdmf")
    assert optimum(graph, 3, ONCE).io == 5
    assert optimum(graph, 3).io == 4


# For each of these some cut of the search that is nearly right misses the optimum, by the game
# with the least cache: predecessors, outputs, recompute, sliding, least I/O.
TRAPS = {
    "v may stand for u only while u is not blue": (
        [(), (), (), (0, 1), (2, 3), (1,), (4, 5)], [6], False, False, 5,
    ),
    "what is blue need not be computed again": (
        [(), (), (0, 1), (1,), (2, 3), (0, 3), (2, 5)], [4, 5, 6], True, True, 7,
    ),
    "a slide may take a pebble that must be loaded again": (
        [(), (), (1,), (0,), (2, 3), (0, 1), (5,)], [4, 5, 6], False, True, 6,
    ),
    "what a better node lacks in slow memory must be stored": (
        [(), (), (0, 1), (1,), (0, 1, 3), (2, 3, 4), (2, 4)], [5, 6], False, True, 6,
    ),
    "what a better node lacks in fast memory must be loaded": (
        [(), (), (0, 1), (1, 2), (0, 1, 3), (2,), (2, 3, 4)], [2, 5, 6], True, False, 5,
    ),
    "of two steps to one position the cheaper counts": (
        [(), (), (0,), (2,), (0, 3), (1, 2), (3,)], [4, 5, 6], True, False, 5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TRAPS)
def test_no_cut_cuts_too_much(name):
    preds, outputs, recompute, sliding, io = TRAPS[name]
    graph, rules = Graph(preds, outputs=outputs), Rules(recompute, sliding)
    cache = graph.least_cache(rules)
    found = optimum(graph, cache, rules)
    assert found.io == io == naive.optimum(*as_dict(graph), cache, recompute, sliding)
    check(graph, cache, rules, found)


@pytest.mark.parametrize("rules", BOTH)
def test_two_calls_give_the_same(rules):
    graph = classic.fft(2)
    assert optimum(graph, 3, rules) == optimum(graph, 3, rules)


@pytest.mark.parametrize("rules", BOTH)
@pytest.mark.parametrize("states", [1, 20, 300])
def test_out_of_states(rules, states):
    graph = classic.fft(3)
    found = optimum(graph, 5, rules, states=states)
    assert isinstance(found, Undecided)
    assert found.stopped == "states"
    # Eight inputs are loaded and eight outputs stored; 27 is the optimum with no recomputation.
    assert 16 <= found.lower <= 27 <= found.upper
    assert found.upper == found.cost.io
    check(graph, 5, rules, found)


@pytest.mark.parametrize("rules", BOTH)
def test_out_of_seconds(rules):
    graph = classic.fft(3)
    found = optimum(graph, 5, rules, seconds=1e-9)
    assert isinstance(found, Undecided)
    assert found.stopped == "seconds"
    assert 16 <= found.lower < found.upper
    check(graph, 5, rules, found)


def test_it_is_undecided_while_recomputation_is():
    # 100 positions are enough without recomputation, but not to prove that it would not help.
    graph = classic.fft(2)
    assert optimum(graph, 4, ONCE, states=100).io == 11
    found = optimum(graph, 4, states=100)
    assert isinstance(found, Undecided)
    assert found.stopped == "states"
    assert found.lower < found.upper == 11


def test_more_states_close_the_interval():
    graph, ends = classic.fft(3), []
    for states in (100, 10_000, 100_000, 1_000_000):
        found = optimum(graph, 6, ONCE, states=states)
        ends.append(
            (found.io, found.io) if isinstance(found, Optimum) else (found.lower, found.upper)
        )
    lower, upper = zip(*ends, strict=True)
    assert list(lower) == sorted(lower)
    assert list(upper) == sorted(upper, reverse=True)
    assert ends[-1] == (24, 24)


@given(played(most=12))
def test_the_plain_schedule_works_in_the_least_cache(drawn):
    graph, rules, _ = drawn
    moves = plain_schedule(graph, rules)
    cost = replay(graph, moves, graph.least_cache(rules), rules)
    assert cost.loads == len(graph.preds)
    assert cost.stores == len(graph) - len(graph.inputs)


def test_a_graph_of_64_vertices():
    # A chain: one load, one store, in two words; the last vertex is the highest bit.
    found = optimum(classic.chain(63), 2)
    assert found.cost == dataclasses.replace(found.cost, loads=1, stores=1, computes=63)


def test_labels_are_those_of_the_graph():
    found = optimum(classic.product(), 3)
    assert found.schedule[:3] == (Move(Op.LOAD, "a"), Move(Op.LOAD, "b"), Move(Op.COMPUTE, "c"))


def test_an_implicit_graph_is_searched_too():
    problem = pebble.Attention(n=1, d=1)
    # One query, one key: Q, K, V loaded, O stored; x, P, y in 3 words.
    assert optimum(problem.graph, 4).io == 4


@pytest.mark.parametrize("rules", BOTH)
def test_the_memory_of_the_search_grows(rules, monkeypatch):
    # Tables that start with room for a few positions find the same.
    graph = classic.matmul(2, 2, 2)
    game = driver.board(graph, 5, rules)
    plain = driver.search(game, 17, 1, 10**6, lambda: False)
    monkeypatch.setattr(driver, "ROOM", 40)
    monkeypatch.setattr(driver, "WIDTH", 1)
    grown = driver.search(game, 17, 1, 10**6, lambda: False)
    assert grown == plain
    assert grown.lower == 14


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cache": 0}, r"cache = 0: the words of fast memory must be a positive integer"),
        ({"cache": 2}, r"cache = 2: the graph can't be pebbled with less than 3 words"),
        ({"vertices": 0}, r"vertices = 0: the most vertices must be a positive integer"),
        ({"vertices": 65}, r"vertices = 65: the search is for at most 64"),
        ({"vertices": 2}, r"a graph of 3 vertices: at most 2 are searched"),
        ({"states": 1.5}, r"states = 1\.5: the most positions kept must be a positive integer"),
        ({"seconds": 0}, r"seconds = 0: the time must be a positive number"),
        ({"seconds": float("nan")}, r"seconds = nan: the time must be a positive number"),
    ],
)
def test_sizes_that_do_not_work(options, message):
    with pytest.raises(SizeError, match=message):
        optimum(classic.product(), **{"cache": 3, **options})


def test_a_graph_that_is_too_large():
    with pytest.raises(SizeError, match=r"a graph of 65 vertices: at most 64 are searched"):
        optimum(classic.chain(64), 2)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (Rules(weights={"a": 2}), r"rules with weights: the search is for vertices that weigh one"),
        (Rules(compute_cost=1), r"rules with compute_cost = 1: the search is for the least I/O"),
    ],
)
def test_rules_that_are_not_searched(rules, message):
    with pytest.raises(ProblemError, match=message):
        optimum(classic.product(), 3, rules)


def test_sliding_has_a_lower_least_cache():
    # load a, load b, slide c from a, store c
    assert optimum(classic.product(), 2, Rules(sliding=True)).io == 3
