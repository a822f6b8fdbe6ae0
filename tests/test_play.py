"""Plays against a slow player, both referees, the optimum, and the curves over all caches."""

from functools import cache as remember
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble import testing
from pebble.attention import Attention
from pebble.cost import Cost
from pebble.curves import belady_curve, lru_curve
from pebble.errors import GraphError, IllegalMove, ProgramError, SizeError, UnknownName
from pebble.graph import Graph
from pebble.play import play
from pebble.policies import POLICIES
from pebble.rules import Op, Rules
from tests import naive
from tests.tables import as_tuples

NO_RECOMPUTE = Rules(recompute=False)
DOT = Graph([(), (), (), (), (0, 1), (2, 3), (4, 5)], labels="abcdxyz")
# FFT on 4 points; each pair of columns computes two values from the same two.
FFT = Graph([(), (), (), (), (0, 1), (0, 1), (2, 3), (2, 3), (4, 6), (4, 6), (5, 7), (5, 7)])
NAMES = st.sampled_from(POLICIES)


@st.composite
def orders(draw, graph):
    """Draw an order in which the vertices can be computed, inputs left out."""
    order, left = [], [v for v in range(len(graph)) if graph.predecessors(v)]
    while left:
        done = set(graph.inputs) | set(order)
        ready = [v for v in left if done.issuperset(graph.predecessors(v))]
        order.append(draw(st.sampled_from(ready)))
        left.remove(order[-1])
    return order


@st.composite
def tables(draw, max_vertices=14, weighted=False, all_blue=False):
    """Draw a graph, an order, a cache and weights; with `all_blue`, all that is computed is stored.

    A chain of many values that are used again evicts more than random graphs do.
    """
    graph = draw(testing.graphs(max_vertices, kinds=()) | reusing_graphs())
    if all_blue:
        rows = [graph.predecessors(v) for v in range(len(graph))]
        graph = Graph(rows, outputs=[v for v, row in enumerate(rows) if row])
    rules = Rules()
    if weighted and draw(st.booleans()):
        rules = Rules(weights={v: draw(st.integers(1, 3)) for v in range(len(graph))})
    return graph, draw(orders(graph)), draw(testing.caches(graph, rules, spare=4)), rules


@st.composite
def reusing_graphs(draw):
    """Draw a graph of a few inputs and many values, each of two things that came before."""
    inputs, values = draw(st.integers(2, 5)), draw(st.integers(4, 12))
    rows = [()] * inputs
    for v in range(inputs, inputs + values):
        rows.append(tuple(draw(st.permutations(range(v)))[:2]))
    used = {u for row in rows for u in row}
    lone = [u for u in range(inputs) if u not in used]
    return Graph([*rows, lone] if lone else rows)


def slow_play(graph, order, cache, policy, weights):
    """Play with plain lists: give the moves as pairs (op, vertex)."""
    weight = lambda v: weights.get(v, 1)
    red, blue, moves = [], set(graph.inputs), []
    entered, touched, clock = {}, {}, 0

    def wait(v, t):
        """Steps until v is needed again; many more than there are if it never is."""
        for later in range(t, len(order)):
            if v in graph.predecessors(order[later]):
                return later - t
        return 10**6

    def value(v, t):
        """The largest goes."""
        if policy == "lru":
            return -touched[v]
        if policy == "fifo":
            return -entered[v]
        if policy == "belady":
            return wait(v, t), v
        return wait(v, t) * (2 if v in blue else 1), v in blue, v

    for t, v in enumerate(order):
        step = [*graph.predecessors(v), v]
        for x in step:
            clock += 1
            touched[x] = clock
            if x in red:
                continue
            while sum(map(weight, red)) + weight(x) > cache:
                # What this step touched or will touch stays; the others have their old times.
                out = max((u for u in red if u not in step), key=lambda u: value(u, t))
                if out not in blue:
                    moves.append((Op.STORE, out))
                    blue.add(out)
                moves.append((Op.DELETE, out))
                red.remove(out)
            moves.append((Op.COMPUTE if x == v else Op.LOAD, x))
            red.append(x)
            entered[x] = clock
        if graph.is_output(v):
            moves.append((Op.STORE, v))
            blue.add(v)
        for x in step:
            if wait(x, t + 1) == 10**6:
                moves.append((Op.DELETE, x))
                red.remove(x)
    return moves


def as_definition(graph):
    return {
        graph.label(v): tuple(map(graph.label, graph.predecessors(v))) for v in range(len(graph))
    }


def labels_of(graph, vertices):
    return [graph.label(v) for v in vertices]


@given(tables(weighted=True), NAMES)
@settings(max_examples=400)
def test_the_moves_are_those_of_the_slow_player(table, policy):
    graph, order, cache, rules = table
    found = play(graph, cache, order, policy, rules)
    slow = slow_play(graph, order, cache, policy, dict(rules.weights))
    assert list(zip(found.ops.tolist(), found.vertices.tolist(), strict=True)) == slow
    assert found.order.tolist() == order


@given(st.data(), NAMES, st.sampled_from([None, "depth_first", "breadth_first"]))
def test_every_play_is_legal_and_complete(data, policy, order):
    graph = data.draw(testing.graphs(12))
    rules = data.draw(testing.rules(graph))
    cache = data.draw(testing.caches(graph, Rules(weights=rules.weights)))
    found = play(graph, cache, order, policy, rules)
    verdict = naive.play(
        as_definition(graph),
        labels_of(graph, graph.outputs),
        cache,
        as_tuples(found.moves()),
        recompute=False,
        weights=dict(rules.weights),
    )
    assert isinstance(verdict, naive.Done), verdict
    assert verdict.missing == ()
    weighted = Rules(recompute=False, weights=rules.weights)
    assert found.replay(weighted) == found.cost == Cost(*verdict[:5])
    assert found.cost.computes == len(graph) - len(graph.inputs)


@given(tables(), NAMES)
def test_nothing_is_done_in_vain(table, policy):
    from pebble.waste import waste

    graph, order, cache, _ = table
    found = play(graph, cache, order, policy)
    assert waste(graph, found.moves(), cache).none
    stored = found.vertices[found.ops == Op.STORE].tolist()
    assert len(stored) == len(set(stored))
    loaded = found.vertices[found.ops == Op.LOAD].tolist()
    assert set(stored) <= set(graph.outputs) | set(loaded)
    assert found.cost.deletes == found.cost.loads + found.cost.computes  # nothing stays red


@given(st.data(), NAMES)
@settings(max_examples=60)
def test_no_play_beats_the_optimum(data, policy):
    graph = data.draw(testing.graphs(7, kinds=()))
    cache = data.draw(testing.caches(graph, spare=1))
    order = data.draw(orders(graph))
    best = naive.optimum(as_definition(graph), graph.outputs, cache, recompute=False)
    assert best <= play(graph, cache, order, policy).cost.io


def fewest_loads(graph, order, cache):
    """Try every way to evict for an order."""
    steps = [(frozenset(graph.predecessors(v)), v) for v in order]

    @remember
    def loads(t, red):
        if t == len(steps):
            return 0
        preds, v = steps[t]
        need = preds | {v}
        rest = red - need
        room = cache - len(need)
        kept = [rest] if len(rest) <= room else map(frozenset, combinations(sorted(rest), room))
        return len(preds - red) + min(loads(t + 1, need | keep) for keep in kept)

    return loads(0, frozenset())


@given(tables(max_vertices=10))
@settings(max_examples=200)
def test_no_policy_loads_less_than_belady(table):
    # A store is no obstacle to an eviction, so loads alone are those of paging with forced loads.
    graph, order, cache, _ = table
    assert play(graph, cache, order, "belady").cost.loads == fewest_loads(graph, order, cache)


@given(tables(all_blue=True), NAMES)
def test_belady_is_best_where_all_is_blue(table, policy):
    graph, order, cache, _ = table
    assert play(graph, cache, order).cost.io <= play(graph, cache, order, policy).cost.io


@pytest.mark.parametrize(("policy", "curve"), [("lru", lru_curve), ("belady", belady_curve)])
@given(table=tables())
@settings(max_examples=300)
def test_a_curve_is_the_play_with_every_cache(policy, curve, table):
    graph, order, _, _ = table
    whole = curve(graph, order)
    plays = [
        play(graph, cache, order, policy).cost for cache in range(whole.caches[0], len(graph) + 3)
    ]
    assert [whole.cost(cache) for cache in range(whole.caches[0], len(graph) + 3)] == plays
    assert whole.caches[0] == graph.least_cache()
    assert list(whole.io) == sorted(whole.io, reverse=True)  # a larger cache holds more
    assert whole.height == plays[-1].peak == max(whole.caches)
    assert [cost.io for cost in plays[: len(whole.caches)]] == whole.io.tolist()
    with pytest.raises(SizeError, match=rf"^cache = {whole.caches[0] - 1} is too small|a positive"):
        whole.cost(whole.caches[0] - 1)


@given(tables(), st.integers(0, 5))
def test_a_curve_that_ends_early_is_the_start_of_the_whole(table, more):
    graph, order, _, _ = table
    whole = belady_curve(graph, order)
    most = graph.least_cache() + more
    part = belady_curve(graph, order, most)
    for cache in range(graph.least_cache(), most + 1):
        assert part.cost(cache) == whole.cost(cache)
    assert part.caches == whole.caches[: more + 1]
    if most < whole.height:
        with pytest.raises(SizeError, match=rf"^cache = 99: the curve ends at {most} words$"):
            part.cost(99)
    else:
        assert part.cost(99) == whole.cost(99)


def test_a_play_by_hand():
    # 3 words: x = a b is computed in three, leaves for c, d and y, and comes back. 4 inputs, the
    # output, and a store and a load of x: 7.
    found = play(DOT, 3)
    assert found.cost == Cost(loads=5, stores=2, computes=3, deletes=8, peak=3)
    assert ", ".join(map(str, found.moves())) == (
        "load a, load b, compute x, delete a, delete b, load c, load d, "
        "store x, delete x, compute y, delete c, delete d, load x, "
        "compute z, store z, delete x, delete y, delete z"
    )
    assert repr(found) == "Play(belady, cache=3, I/O 7: 5 loads, 2 stores)"
    assert play(DOT, 4).cost == Cost(loads=4, stores=1, computes=3, deletes=7, peak=4)


def test_the_policies_differ():
    # a, b, then x = a b, y = b c, z = a x: y needs a word, with 4 in all of which a, x can leave
    # (y = b c: b, c, y and one more). belady, fifo and lru: a and x are both used at z next.
    labels = ["a", "b", "c", "x", "y", "z", "w"]
    graph = Graph([(), (), (), (0, 1), (1, 2), (0, 3), (4, 5)], labels)
    gone = {}
    for policy in POLICIES:
        moves = [str(move) for move in play(graph, 4, policy=policy).moves()]
        at = moves.index("compute y")
        gone[policy] = [move for move in moves[:at] if move.startswith(("store", "delete"))]
    assert gone == {
        "belady": ["store x", "delete x"],  # the larger number of the two
        "lru": ["delete a"],  # a was used before x was computed
        "fifo": ["delete a"],
        "write_back": ["delete a"],  # as far away, and blue
    }


def test_fifo_forgets_that_a_value_was_used():
    # a enters first, and is used again just before a word is needed: then lru lets b go.
    graph = Graph([(), (), (), (0, 1), (0, 3), (2, 4), (0, 5), (1, 6)], labels="abcxyzvw")
    gone = {}
    for policy in ("lru", "fifo"):
        found = play(graph, 4, policy=policy)
        gone[policy] = next(
            str(move) for move in found.moves() if str(move) in ("delete a", "delete b")
        )
    assert gone == {"lru": "delete b", "fifo": "delete a"}


def test_write_back_waits_for_a_value_that_is_far_enough_away():
    # With 3 words, y = b c (step 1) finds a, x or, after a, nothing else: a is blue and needed at
    # step 2, 1 step on, x at step 4, 3 steps on; 2 * 1 < 3, so x is stored. With x at step 3,
    # 2 steps on, a blue one that is 1 step on is as good, and goes.
    near = Graph([(), (), (), (), (0, 1), (2, 3), (0, 5), (4, 6)], labels="abcdxyzw")
    far = Graph([(), (), (), (), (0, 1), (2, 3), (0, 5), (3, 6), (4, 7)], labels="abcdxyzvw")
    for graph, first in (near, "delete a"), (far, "store x"):
        moves = [str(move) for move in play(graph, 4, policy="write_back").moves()]
        assert first in moves[: moves.index("compute y")]
        other = {"delete a": "store x", "store x": "delete a"}[first]
        assert other not in moves[: moves.index("load d")]


def test_belady_with_stores_is_not_the_least_io():
    # Step 1 must let a (blue, next used at step 3) or x (not blue, used at step 4) go: belady
    # pays a store and a load for x, write_back a load for a.
    graph = Graph([(), (), (), (0, 1), (1, 2), (0, 4), (3, 5)])
    costs = {policy: play(graph, 4, policy=policy).cost for policy in ("belady", "write_back")}
    assert costs["belady"].loads <= costs["write_back"].loads
    assert costs["belady"].io == costs["write_back"].io + 1


def test_the_fft_on_4_points():
    # The optima with 3, 4, 5 words are 14, 11, 9, of which the order of the numbers has none. Four
    # values and two that are computed from two of them are 6 words: 4 inputs and 4 outputs move.
    caches = 3, 4, 5, 6
    searched = [play(FFT, cache, "search", "write_back").cost.io for cache in caches]
    assert searched == [14, 11, 9, 8]
    assert [play(FFT, cache).cost.io for cache in caches] == [16, 12, 10, 8]


def test_an_implicit_graph_is_played():
    problem = Attention(n=3, d=2)
    found = play(problem.graph, 8, policy="write_back")
    assert found.replay() == found.cost
    assert found.cost.loads >= problem.graph.input_words


def test_weights_count_words():
    # a weighs 3: with 5 words c = (a, b) fits. 3 + 1 loaded, 1 stored.
    graph = Graph([(), (), (0, 1)], labels=["a", "b", "c"])
    rules = Rules(weights={"a": 3})
    assert play(graph, 5, rules=rules).cost == Cost(4, 1, 1, 3, 5)
    with pytest.raises(IllegalMove, match=r"the cache is full"):
        play(graph, 4).replay(rules)


def test_the_arrays_cannot_be_changed():
    found = play(DOT, 4)
    for array in (found.order, found.codes, lru_curve(DOT).loads, belady_curve(DOT).stores):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize("policy", POLICIES)
def test_a_cache_that_is_too_small(policy):
    message = r"^cache = 2 is too small; the least that works is 3, for x and its 2 predecessors$"
    with pytest.raises(SizeError, match=message):
        play(DOT, 2, policy=policy)


def test_other_caches_that_are_too_small():
    chain = Graph([(), (0,)], labels=["a", "b"])
    with pytest.raises(SizeError, match=r"is 2, for b and its 1 predecessor$"):
        play(chain, 1)
    with pytest.raises(SizeError, match=r"is 2, for b and its 1 predecessor$"):
        play(chain, 1, rules=Rules(sliding=True))  # nothing slides
    with pytest.raises(SizeError, match=r"is 6, for b and its 1 predecessor$"):
        play(chain, 5, rules=Rules(weights={"a": 2, "b": 4}))
    with pytest.raises(SizeError, match=r"^cache = 0: the words of fast memory must be a positive"):
        play(chain, 0)
    with pytest.raises(SizeError, match=r"^most = 1 is too small; the least that works is 2$"):
        belady_curve(chain, most=1)
    with pytest.raises(SizeError, match=r"^most = 0: the last cache of the curve must be"):
        belady_curve(chain, most=0)


def test_names_that_are_not_known():
    with pytest.raises(UnknownName, match=r"^policy = 'clock': known are belady, lru, fifo, write"):
        play(DOT, 4, policy="clock")
    known = "depth_first, breadth_first, search"
    with pytest.raises(UnknownName, match=rf"^order = 'random': known are {known}$"):
        play(DOT, 4, order="random")
    with pytest.raises(UnknownName, match=r"^weight of q: the graph has no such vertex"):
        play(DOT, 4, rules=Rules(weights={"q": 2}))


def test_orders_that_are_none():
    with pytest.raises(
        ProgramError, match=r"^order: z, at place 1, comes before its predecessor y$"
    ):
        play(DOT, 4, order=["x", "z", "y"])
    with pytest.raises(GraphError, match=r"^the graph has no vertex q$"):
        lru_curve(DOT, ["x", "q"])
    assert np.array_equal(play(DOT, 4, order=["y", "x", "z"]).order, [5, 4, 6])
