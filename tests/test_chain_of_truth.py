"""Every bound <= the least I/O <= every schedule and every play, on all kinds of small graphs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pebble
import schedules
from pebble import Attention, AttentionGradient, Rules, bounds, classic, masks, testing
from pebble.graph import explicit
from pebble.optimum import MOST_EDGES
from pebble.policies import POLICIES

ONCE, ANEW, PARTIAL = Rules(recompute=False), Rules(), Rules(partial=True)
GAMES = (ONCE, ANEW, PARTIAL)

CLASSIC = {
    "product": classic.product(),
    "dot": classic.dot(2),
    "chain": classic.chain(4),
    "tree": classic.tree(2, 2),
    "pyramid": classic.pyramid(3),
    "diamond": classic.diamond(3),
    "fft": classic.fft(2),
    "hypercube": classic.hypercube(3),
    "matvec": classic.matvec(2, 2),
    "matmul": classic.matmul(1, 2, 2),
}

PROBLEMS = {
    "forward": Attention(2, 1, 1),
    "forward, one query": Attention(1, 1, 2),
    "forward, d = 2": Attention(1, 2, 1),
    "forward, causal": Attention(2, 1, mask=masks.causal(2)),
    "forward, diagonal": Attention(2, 1, mask=masks.document([1, 1])),
    "forward, online": Attention(1, 1, 2, softmax="online", block=1),
    "backward": Attention(1, 1, direction="backward"),
    "backward, diagonal": Attention(2, 1, mask=masks.document([1, 1]), direction="backward"),
    "backward, saved": Attention(1, 1, direction="backward", saved_weights=True),
    "double backward": Attention(1, 1, direction="double_backward"),
    "gradient": AttentionGradient(1, 1),
}


def ends(graph, cache, rules):
    """Give what is proved of the least I/O from both sides."""
    if rules.partial and len(graph.preds) > MOST_EDGES:
        return 0, float("inf")
    found = pebble.optimum(graph, cache, rules, seconds=4)
    upper = found.cost.io
    return (upper, upper) if isinstance(found, pebble.Optimum) else (found.lower, upper)


def check(graph, caches, of_problem=None, costs=()):
    """Check the chain for a graph; `costs` are further schedules' (cache, I/O)."""
    before = dict.fromkeys(GAMES, float("inf"))
    for cache in caches:
        least = {rules: ends(graph, cache, rules) for rules in GAMES}
        for rules, (_, upper) in least.items():
            known = list(bounds.every(graph, cache, rules))
            if of_problem is not None:
                known += bounds.every(of_problem, cache, rules)
            for bound in known:
                assert bound.value <= upper, (bound, cache, rules)
            # More cache is never worse, as far as it is proved.
            assert least[rules][0] <= before[rules]
            before[rules] = min(before[rules], upper)
        assert least[PARTIAL][0] <= least[ONCE][1]
        assert least[ANEW][0] <= least[ONCE][1]
        for policy in POLICIES:
            for order in (None, "depth_first", "breadth_first"):
                io = pebble.play(graph, cache, order, policy).cost.io
                assert io >= least[ONCE][0]
                assert io >= least[ANEW][0]
        for at, io in costs:
            if at <= cache:
                assert io >= least[ANEW][0]


@settings(max_examples=40)
@given(st.data())
def test_random_graphs(data):
    graph = data.draw(testing.graphs(8))
    least = graph.least_cache()
    check(graph, range(least, least + 3))


@pytest.mark.parametrize("name", list(CLASSIC))
def test_classic_graphs(name):
    graph = CLASSIC[name]
    least = graph.least_cache()
    check(graph, range(least, least + 2))


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_tiny_attentions(name):
    problem = PROBLEMS[name]
    whole = problem.graph
    graph = whole.to_graph() if problem.kind.startswith("masked") else explicit(whole)
    if len(graph) > 64:
        pytest.skip("more vertices than the search takes")
    costs = []
    for generator in pebble.generators(problem.kind):
        for cache in (8, 12, 20):
            try:
                cost = generator(problem, cache).replay()
            except pebble.SizeError:
                continue
            costs.append((cost.peak, cost.io))
    assert costs
    least = graph.least_cache()
    check(graph, (least, least + 2, 12), of_problem=problem, costs=costs)
    assert schedules.best(problem, 24).replay().io >= ends(graph, 24, ANEW)[0]
