"""Bounds for any graph: against published numbers, exact optima, and slow separate versions."""

import csv
from functools import cache as memo
from itertools import chain, combinations, product
from math import comb
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pebble import Graph, Op, ProblemError, Rules, SizeError, bounds, classic, optimum, testing
from pebble.bounds import eigenvalues
from pebble.bounds.partition import disjoint_paths
from pebble.bounds.spectral import laplacian, needs_store, weighted
from pebble.bounds.wavefront import least_front
from pebble.errors import GraphError
from pebble.moves import Vertex
from pebble.optimum import Optimum

ONCE = Rules(recompute=False)
DATA = Path(__file__).parent / "data" / "graph_bounds.csv"
# Published numbers that are 3% to 12% above what the formula gives: the solver missed some of the
# multiple eigenvalues. All others agree.
TOO_HIGH = {("bhk", 15, 16), *product(["bhk"], [16, 17, 18, 19], [16, 32])}
# The sizes that are solved without the `slow` marker.
FAST_SPECTRAL = {"fft": 9, "bhk": 10, "matmul_nary": 16, "matmul_chain": 11, "strassen": 8}
FAST_CUTS = {"fft": 10, "bhk": 11, "strassen": 8}
# fft(13) has 114,688 vertices, strassen(64) 803,063.
SLOW_SPECTRAL = {"fft": 13, "bhk": 15, "matmul_nary": 40, "matmul_chain": 17, "strassen": 64}
SLOW_CUTS = {"fft": 12, "bhk": 15, "strassen": 16}


def published(method):
    lines = [line for line in DATA.read_text().splitlines() if not line.startswith("#")]
    rows = [row for row in csv.DictReader(lines) if row["method"] == method]
    keys = ("graph", "size", "cache", "value", "parts")
    return [
        tuple(row[key] if key in ("graph", "value") else int(row[key]) for key in keys)
        for row in rows
    ]


def between(rows, low, high):
    return [row for row in rows if low.get(row[0], 0) < row[1] <= high.get(row[0], 0)]


def strassen(n):
    """Give Strassen's graph as it was measured: the outermost sums of four are one vertex each."""
    whole = classic.strassen(n)
    gone = {v for v in range(len(whole)) if is_partial(whole.label(v))}
    left = [v for v in range(len(whole)) if v not in gone]
    number = {v: at for at, v in enumerate(left)}

    def terms(v):
        found = []
        for u in whole.predecessors(v):
            found += terms(u) if u in gone else [number[u]]
        return found

    return Graph([terms(v) for v in left], [whole.label(v) for v in left])


def is_partial(label):
    # C[q,t,i,j] without a path: quadrants 0 and 3 have the terms 1 to 3.
    return (
        label.family == "C"
        and len(label.index) == 4
        and label.index[0] in (0, 3)
        and label.index[1] < 3
    )


MAKE = {
    "fft": classic.fft,
    "bhk": classic.hypercube,
    "matmul_nary": lambda n: classic.matmul(n, n, n, sums="nary"),
    "matmul_chain": lambda n: classic.matmul(n, n, n),
    "strassen": strassen,
}


@memo
def made(name, size):
    return MAKE[name](size)


@memo
def solved(name, size, parts):
    graph = made(name, size)
    return eigenvalues.estimated(laplacian(graph, np.ones(len(graph))), parts)


def bound_of(values, n, cache, parts):
    ks = range(2, min(parts, len(values)) + 1)
    return max([0.0, *(weighted(values, n, k) - 2 * k * cache for k in ks)])


def agrees(value, printed):
    digits = len(printed.partition(".")[2])
    return abs(value - float(printed)) <= 0.51 * 10.0**-digits


# ---- The published numbers


def check_spectral(name, size, cache, printed, parts):
    true = bound_of(solved(name, size, parts), len(made(name, size)), cache, parts)
    assert agrees(true, printed) or ((name, size, cache) in TOO_HIGH and true < float(printed))


@pytest.mark.parametrize("row", between(published("spectral"), {}, FAST_SPECTRAL), ids=str)
def test_published_spectral_numbers(row):
    check_spectral(*row)


@pytest.mark.slow
@pytest.mark.parametrize(
    "row", between(published("spectral"), FAST_SPECTRAL, SLOW_SPECTRAL), ids=str
)
def test_published_spectral_numbers_of_large_graphs(row):
    check_spectral(*row)


def test_published_spectral_is_what_the_rows_are_checked_with():
    for name, size, cache, printed, parts in [
        ("fft", 7, 4, "6.376856849", 39),
        ("fft", 6, 4, "0", 39),
        ("bhk", 9, 16, "36.42663095", 99),
    ]:
        assert agrees(bounds.published_spectral(made(name, size), cache, parts), printed)


def butterfly_values(k):
    """Give all eigenvalues of the FFT's Laplacian: it splits into paths.

    In the Walsh basis of a set s of bits the levels t - 1 and t are joined if bit t - 1 is not in
    s, with weight 1; the diagonal is 1 at both ends and 2 between.
    """
    found = []
    for a, b in combinations(range(k + 2), 2):  # levels a to b - 1 are joined
        diagonal = [1.0 if t in (0, k) else 2.0 for t in range(a, b)]
        path = np.diag(diagonal) - np.eye(b - a, k=1) - np.eye(b - a, k=-1)
        fixed = (b - 1 - a) + (a > 0) + (b <= k)
        found += [*np.linalg.eigvalsh(path)] * 2 ** (k - fixed)
    return np.sort(found)


def hypercube_values(k):
    """Give all eigenvalues of the hypercube's Laplacian: it splits into paths.

    A path begins at level r, once for each of C(k,r) - C(k,r-1), and ends at level k - r; edges out
    of level j weigh 1 / (k - j).
    """
    found = []
    for r in range(k // 2 + 1):
        levels = np.arange(r, k - r + 1)
        diagonal = (levels < k) + levels / (k - levels + 1)
        j = levels[:-1]
        joined = -np.sqrt((j - r + 1.0) * (k - r - j)) / (k - j)
        path = np.diag(diagonal) + np.diag(joined, 1) + np.diag(joined, -1)
        found += [*np.linalg.eigvalsh(path)] * (comb(k, r) - (comb(k, r - 1) if r else 0))
    return np.sort(found)


def product_values(n):
    """Give the smallest eigenvalues of the Laplacian of the product with sums of in-degree n.

    Functions of each of i, j and l split into the constants and those that sum to 0, of dimension
    n - 1. A[i,l] meets x[i,j,l] in the functions constant in j, B[l,j] those in i, s[i,j] those in
    l. Edges out of inputs weigh 1 / n, edges into a sum weigh 1.
    """
    found = []
    for constant in product([True, False], repeat=3):
        # x, and A if constant in j, B if in i, s if in l: (degree, what joins it to x)
        others = [(1.0, n**-0.5), (1.0, n**-0.5), (float(n), n**0.5)]
        others = [other for other, there in zip(others, constant, strict=True) if there]
        block = np.diag([1 + 2 / n, *(degree for degree, _ in others)])
        for at, (_, joined) in enumerate(others, 1):
            block[0, at] = block[at, 0] = -joined
        found += [*np.linalg.eigvalsh(block)] * (n - 1) ** (3 - sum(constant))
    return np.sort(found)


CLOSED = {"fft": butterfly_values, "bhk": hypercube_values, "matmul_nary": product_values}
closed = memo(lambda name, size: CLOSED[name](size))


@pytest.mark.parametrize("row", [row for row in published("spectral") if row[0] in CLOSED], ids=str)
def test_published_spectral_numbers_by_known_eigenvalues(row):
    name, size, cache, printed, parts = row
    values = closed(name, size)
    true = bound_of(values, len(values), cache, parts)
    if (name, size, cache) in TOO_HIGH:
        assert 1.03 * true < float(printed) < 1.12 * true
    else:
        assert agrees(true, printed)


@pytest.mark.parametrize(
    ("name", "size"),
    [("fft", 4), ("fft", 7), ("bhk", 6), ("bhk", 10), ("matmul_nary", 3), ("matmul_nary", 6)],
)
def test_known_eigenvalues_are_those_of_the_graph(name, size):
    graph = made(name, size)
    dense = np.linalg.eigvalsh(laplacian(graph, np.ones(len(graph))).toarray())
    np.testing.assert_allclose(closed(name, size), dense, atol=1e-10)


def kinds(name, graph, size):
    """Give one vertex of each kind of a symmetric graph, or all."""
    if name == "fft":
        return [Vertex("x", (t, 0)) for t in range(size + 1)]
    if name == "bhk":
        return [2**t - 1 for t in range(size + 1)]
    # Of sizes 4 and 8 the widest cuts are at M[1,..,1]; all vertices of 16 would take minutes.
    return [Vertex("M", (1,) * 4)] if size == 16 else None


@memo
def cut_of(name, size):
    # 2 (W - 1) with one word, for the widest cut W; 0 for W <= 1
    graph = made(name, size)
    return bounds.published_wavefront(graph, 1, kinds(name, graph, size)) // 2 + 1


def check_cut(name, size, cache, printed):
    assert max(0, 2 * (cut_of(name, size) - cache)) == int(printed)


@pytest.mark.parametrize("row", between(published("mincut"), {}, FAST_CUTS), ids=str)
def test_published_wavefront_numbers(row):
    check_cut(*row[:4])


@pytest.mark.slow
@pytest.mark.parametrize("row", between(published("mincut"), FAST_CUTS, SLOW_CUTS), ids=str)
def test_published_wavefront_numbers_of_large_graphs(row):
    check_cut(*row[:4])


@pytest.mark.parametrize("size", [3, 4])
def test_vertices_of_one_kind_have_equal_cuts(size):
    for name in ("fft", "bhk"):
        graph = made(name, size)
        for cache in range(1, 5):
            some = bounds.published_wavefront(graph, cache, kinds(name, graph, size))
            assert bounds.published_wavefront(graph, cache) == some


def test_strassen_as_measured_has_six_sums_less_a_quadrant():
    # n = 4: 2 quadrants of 4 numbers, and in each 2 partial sums fewer.
    assert len(strassen(4)) == len(classic.strassen(4)) - 2 * 4 * 2
    assert len(strassen(4).outputs) == 16


# ---- Soundness in our game


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_no_bound_is_above_the_optimum(data):
    graph = data.draw(testing.graphs(max_vertices=10, kinds=()))
    rules = Rules(recompute=data.draw(st.booleans()), sliding=data.draw(st.booleans()))
    cache = data.draw(testing.caches(graph, rules, spare=1))
    best = optimum(graph, cache, rules, seconds=10)
    assume(isinstance(best, Optimum))
    for bound in bounds.every(graph, cache, rules):
        assert bound.value <= best.io, bound


def test_no_bound_is_above_the_optimum_of_classic_graphs():
    graphs = [
        classic.fft(2),
        classic.tree(2, 3),
        classic.pyramid(4),
        classic.diamond(4),
        classic.hypercube(4),
        classic.dot(3),
        classic.matvec(2, 2),
        classic.chain(5),
    ]
    for graph in graphs:
        for cache in range(graph.least_cache(), graph.least_cache() + 3):
            best = optimum(graph, cache, ONCE)
            assert isinstance(best, Optimum)
            found = bounds.every(graph, cache, ONCE)
            assert max(bound.value for bound in found) <= best.io


def test_the_published_model_is_not_ours():
    # 4-point FFT, M = 4: least I/O 11, of it 8 trivial. A bound of 4 on the rest, which is right
    # in the other model, would be wrong here.
    graph = classic.fft(2)
    assert optimum(graph, 4, ONCE).io - bounds.inputs_outputs(graph).value == 3
    assert bounds.lower(graph, 4, ONCE).value <= 11


def placed(graph, moves):
    """Give the vertices in the order of the proofs: inputs by first load, others by compute."""
    order = {}
    for move in moves:
        v = graph.vertex(move.vertex)
        if move.op in (Op.COMPUTE, Op.SLIDE) or (move.op is Op.LOAD and graph.is_input(v)):
            order.setdefault(v, len(order))
    return order


def boundary_sum(graph, part):
    """Give |R(S)| + |W'(S)|, and the weights on the boundary, summed over the parts."""
    free = {*graph.inputs, *graph.outputs}
    moved, weight = 0, 0.0
    for u in range(len(graph)):
        later = [part[w] for w in graph.successors(u)]
        apart = {p for p in later if p != part[u]}
        moved += len(apart) + (bool(apart) and u not in free)
        share = (1 + (u not in free)) / 2 / max(len(later), 1)
        weight += 2 * share * sum(p != part[u] for p in later)
    return moved, weight


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_each_step_of_the_spectral_proof_holds_in_best_games(data):
    graph = data.draw(testing.graphs(max_vertices=10, kinds=()))
    rules = Rules(recompute=False, sliding=data.draw(st.booleans()))
    cache = data.draw(testing.caches(graph, rules, spare=1))
    best = optimum(graph, cache, rules, seconds=10)
    order = placed(graph, best.schedule)
    n, trivial = len(graph), len(graph.inputs) + len(graph.outputs)
    assert len(order) == n
    values = eigenvalues.proved(laplacian(graph, (1 + needs_store(graph)) / 2), n)
    for k in range(1, n + 1):
        sizes = [n // k + (p < n % k) for p in range(k)]
        ends = np.cumsum(sizes)
        part = [int(np.searchsorted(ends, order[v], side="right")) for v in range(n)]
        moved, weight = boundary_sum(graph, part)
        assert trivial + moved - 2 * (k - 1) * cache <= best.io
        assert weighted(values, n, k) <= weight + 1e-9
        assert weight <= moved + 1e-9


def test_the_spectral_bound_is_more_than_trivial():
    # With half weights out of inputs the 2^7-point FFT still has 11 words more than 256.
    assert bounds.spectral(made("fft", 7), 4).value == 267
    graph = made("bhk", 10)
    assert bounds.spectral(graph, 16, parts=99).value > 2 + 140


def test_the_spectral_bound_counts_weights():
    graph = classic.fft(2)
    heavy = Rules(recompute=False, weights={Vertex("x", (0, 0)): 3})
    assert bounds.spectral(graph, 4, heavy).value == bounds.spectral(graph, 4).value + 2
    assert bounds.wavefront(graph, 4, heavy).value == bounds.wavefront(graph, 4).value + 2


# ---- Eigenvalues


@pytest.mark.parametrize(("name", "size"), [("fft", 8), ("fft", 9), ("bhk", 11)])
def test_proved_numbers_are_just_below_the_eigenvalues(name, size):
    graph = made(name, size)
    matrix = laplacian(graph, np.ones(len(graph)))
    assert len(graph) > eigenvalues.DENSE
    true = closed(name, size)[:40]
    below = eigenvalues.proved(matrix, 40)
    assert (below <= true).all()
    assert (below >= true - 0.01).all()
    assert (np.diff(below) >= 0).all()


@pytest.mark.parametrize("missed", [0, 3, 7])
def test_an_eigenvalue_that_the_solver_missed_is_noticed(missed, monkeypatch):
    matrix = laplacian(made("fft", 8), np.ones(2304))
    true = closed("fft", 8)
    honest = eigenvalues.solve

    def forgetful(laplacian, count, top):
        basis, values = honest(laplacian, count + 1, top)
        kept = [at for at in range(count + 1) if at != missed]
        return np.ascontiguousarray(basis[:, kept]), values[kept]

    monkeypatch.setattr(eigenvalues, "solve", forgetful)
    assert (eigenvalues.estimated(matrix, 20) > true[:20] + 1e-4).any()
    assert (eigenvalues.proved(matrix, 20) <= true[:20]).all()


def test_a_solver_that_is_not_done_proves_less_and_nothing_wrong(monkeypatch):
    matrix, true = laplacian(made("fft", 8), np.ones(2304)), closed("fft", 8)[:20]
    monkeypatch.setattr(eigenvalues, "STEPS", 2)
    below = eigenvalues.proved(matrix, 20)
    assert (below <= true).all()
    assert (below < true - 1e-4).any()


def test_there_are_as_many_numbers_as_vertices_and_no_more():
    matrix = laplacian(classic.tree(2, 2), np.ones(7))
    assert len(eigenvalues.estimated(matrix, 99)) == len(eigenvalues.proved(matrix, 99)) == 7


@settings(deadline=None)
@given(testing.graphs(max_vertices=12))
def test_no_eigenvalue_is_above_the_largest(graph):
    matrix = laplacian(graph, np.ones(len(graph)))
    dense = matrix.toarray()
    np.testing.assert_allclose(dense, dense.T)
    np.testing.assert_allclose(dense.sum(axis=0), 0, atol=1e-12)
    assert np.linalg.eigvalsh(dense)[-1] <= eigenvalues.largest(matrix) + 1e-9


# ---- Cuts, the slow way


def subsets(items):
    items = list(items)
    return chain.from_iterable(combinations(items, size) for size in range(len(items) + 1))


def naive_front(graph, x, prices):
    digraph = graph.to_networkx()
    label = graph.label(x)
    inside, outside = nx.ancestors(digraph, label) | {label}, nx.descendants(digraph, label)
    best = None
    for more in subsets(set(digraph) - inside - outside):
        cut = inside | set(more)
        if all(set(digraph.predecessors(v)) <= cut for v in cut):
            front = [u for u in cut - {label} if set(digraph.successors(u)) - cut]
            price = sum(int(prices[graph.vertex(u)]) for u in front)
            best = price if best is None else min(best, price)
    return best


@settings(max_examples=60, deadline=None)
@given(testing.graphs(max_vertices=9), st.data())
def test_fronts_are_the_least_of_all_cuts(graph, data):
    x = data.draw(st.sampled_from([v for v in range(len(graph)) if not graph.is_input(v)]))
    prices = np.array(
        data.draw(st.lists(st.integers(0, 2), min_size=len(graph), max_size=len(graph)))
    )
    assert least_front(graph, x, prices) == naive_front(graph, x, prices)


def test_the_wavefront_bound_is_the_optimum_somewhere():
    # d needs c, which needs a and b; both are used again, and only one word beside c is free.
    graph = Graph([(), (), (), (0, 1), (3, 2), (4, 0), (5, 1), (6, 2), (7, 3)])
    best = optimum(graph, 3, ONCE).io
    assert 4 < bounds.wavefront(graph, 3).value <= best
    assert bounds.wavefront(graph, 3, vertices=[8]).value == 4


# ---- Partitions, the slow way


def naive_dominator(graph, part):
    digraph = graph.to_networkx()
    inputs = [graph.label(v) for v in graph.inputs]
    for cut in subsets(digraph):
        rest = digraph.subgraph(set(digraph) - set(cut))
        met = {v for u in inputs if u in rest for v in [u, *nx.descendants(rest, u)]}
        if not met & part:
            return len(cut)
    raise AssertionError


def partitions(items):
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [{items[0]}, *rest]
        for at, part in enumerate(rest):
            yield [*rest[:at], part | {items[0]}, *rest[at + 1 :]]


def naive_parts(graph, most):
    digraph = graph.to_networkx()
    dominator = memo(lambda part: naive_dominator(graph, part))
    best = len(graph)
    for parts in partitions(list(digraph)):
        if len(parts) >= best:
            continue
        blocks = nx.quotient_graph(digraph, [frozenset(part) for part in parts])
        small = all(
            sum(not set(digraph.successors(v)) & part for v in part) <= most
            and dominator(frozenset(part)) <= most
            for part in parts
        )
        if small and nx.is_directed_acyclic_graph(blocks):
            best = len(parts)
    return best


@settings(max_examples=40, deadline=None)
@given(testing.graphs(max_vertices=6, kinds=()), st.integers(1, 3))
def test_least_partitions_are_the_least_of_all(graph, most):
    assert bounds.least_parts(graph, most) == naive_parts(graph, most)


@settings(max_examples=60, deadline=None)
@given(testing.graphs(max_vertices=8, kinds=()), st.data())
def test_dominators_are_the_least_of_all(graph, data):
    part = data.draw(st.sets(st.integers(0, len(graph) - 1), min_size=1))
    before = [sum(1 << u for u in graph.predecessors(v)) for v in range(len(graph))]
    after = [sum(1 << w for w in graph.successors(v)) for v in range(len(graph))]
    found = disjoint_paths(before, after, sum(1 << v for v in part), 99)
    assert found == naive_dominator(graph, part)


@pytest.mark.parametrize(
    ("graph", "most", "parts"),
    [
        (classic.chain(5), 1, 1),  # the input dominates all, and the end is the minimum set
        (classic.fft(2), 4, 1),
        (classic.tree(2, 3), 2, 5),  # 4 pairs of leaves with their sums, then the other 3
        (classic.fft(2), 2, 4),  # 4 butterflies of two points
    ],
)
def test_least_partitions_of_classic_graphs(graph, most, parts):
    assert bounds.least_parts(graph, most) == parts


# ---- The front door, and mistakes


def test_lower_takes_graphs_and_problems():
    graph = classic.fft(2)
    assert bounds.lower(graph, 4).name == "trivial"
    assert bounds.lower(graph, 4).value == 8
    found = bounds.every(classic.hypercube(7), 8, ONCE)
    assert {bound.name for bound in found} == {"wavefront", "spectral", "trivial"}
    assert [bound.value for bound in found] == sorted((b.value for b in found), reverse=True)
    assert bounds.lower(classic.hypercube(7), 8, ONCE) == found[0]
    with pytest.raises(SizeError, match=r"cache = 0: the words of fast memory must be"):
        bounds.every(graph, 0)


def test_expensive_bounds_are_left_out():
    graph = classic.layered(4, 400, 2, seed=0)
    assert [bound.name for bound in bounds.graph_bounds(graph, 4, ONCE)] == ["trivial", "spectral"]
    graph = classic.layered(2, 3000, 2, seed=0)
    assert [bound.name for bound in bounds.graph_bounds(graph, 4, ONCE)] == ["trivial"]


def test_bounds_say_what_they_assume():
    graph = classic.fft(2)
    assert "at most once" in bounds.spectral(graph, 4).assumes
    assert "at most once" in bounds.wavefront(graph, 4).assumes
    assert bounds.partition(graph, 4).assumes == "recomputation allowed, no sliding"
    sliding = Rules(recompute=False, sliding=True)
    assert "partition" not in [bound.name for bound in bounds.graph_bounds(graph, 4, sliding)]


def test_mistakes_are_named():
    graph = classic.fft(2)
    for function, cache in product(
        [
            bounds.spectral,
            bounds.wavefront,
            bounds.partition,
            bounds.published_spectral,
            bounds.published_wavefront,
        ],
        [0, 1.5],
    ):
        with pytest.raises(SizeError, match=rf"cache = {cache}: the words of fast memory must be"):
            function(graph, cache)
    for function in (bounds.spectral, bounds.published_spectral):
        with pytest.raises(SizeError, match=r"parts = 0: the most parts must be a positive"):
            function(graph, 4, parts=0)
    for name in ("spectral", "wavefront"):
        with pytest.raises(ProblemError, match=rf"{name} is for rules without recomputation"):
            getattr(bounds, name)(graph, 4, Rules())
    partial = Rules(recompute=False, partial=True)
    for name in ("spectral", "wavefront", "partition"):
        with pytest.raises(ProblemError, match=rf"{name} is for rules without partial"):
            getattr(bounds, name)(graph, 4, partial)
    assert [bound.name for bound in bounds.graph_bounds(graph, 4, partial)] == ["trivial"]
    with pytest.raises(ProblemError, match=r"partition is for rules without sliding"):
        bounds.partition(graph, 4, Rules(sliding=True))
    with pytest.raises(SizeError, match=r"a graph of 32 vertices: at most 20 are searched"):
        bounds.partition(classic.fft(3), 4)
    with pytest.raises(SizeError, match=r"vertices = 0: the most vertices of a graph must be"):
        bounds.partition(graph, 4, vertices=0)
    with pytest.raises(SizeError, match=r"most = 0: the most vertices in a dominator must be"):
        bounds.least_parts(graph, 0)
    for function in (bounds.wavefront, bounds.published_wavefront):
        with pytest.raises(GraphError, match=r"the graph has no vertex nowhere"):
            function(graph, 4, vertices=["nowhere"])
