import cmath
import itertools
import math
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble import classic
from pebble.attention import Attention
from pebble.errors import SizeError, UnknownName
from pebble.graph import explicit
from pebble.moves import Vertex
from tests import naive
from tests.tables import as_dict

SIZES = st.integers(1, 5)


def counts(graph):
    """Give the numbers of vertices, edges, inputs and outputs."""
    return len(graph), len(graph.preds), len(graph.inputs), len(graph.outputs)


def families(graph):
    return Counter(graph.family(v) for v in range(len(graph)))


def isomorphic(graph, other):
    """Say whether two graphs are the same but for their labels; outputs fall on outputs."""
    alike = nx.algorithms.isomorphism.categorical_node_match("output", False)
    sides = [one.to_networkx() for one in (graph, other)]
    return nx.is_isomorphic(*sides, node_match=alike)


def evaluate(graph, inputs, value):
    """Give the value of each label; value(label, operands) computes those that are no inputs."""
    values = {}
    for v in graph.topological():
        label = graph.label(v)
        operands = [values[graph.label(u)] for u in graph.predecessors(v)]
        values[label] = inputs[label] if graph.is_input(v) else value(label, operands)
    return values


def product_or_sum(label, operands):
    return math.prod(operands) if label.family in "xyM" else sum(operands)


def entries(**arrays):
    return {
        Vertex(name, at): x for name, array in arrays.items() for at, x in np.ndenumerate(array)
    }


# Counts, against the formulas of the docstrings.


@given(SIZES, st.sampled_from(["chain", "nary"]))
def test_counts_of_dot(n, sums):
    vertices = 4 * n - 1 if sums == "chain" else 3 * n + (n > 1)
    edges = 4 * n - 2 if sums == "chain" else 2 * n + n * (n > 1)
    assert counts(classic.dot(n, sums=sums)) == (vertices, edges, 2 * n, 1)


@given(SIZES, SIZES, st.sampled_from(["chain", "nary"]))
def test_counts_of_matvec(m, n, sums):
    chained = (3 * m * n + n - m, 4 * m * n - 2 * m)
    nary = (2 * m * n + n + m * (n > 1), 2 * m * n + m * n * (n > 1))
    expected = chained if sums == "chain" else nary
    assert counts(classic.matvec(m, n, sums=sums)) == (*expected, m * n + n, m)


@given(SIZES, SIZES, SIZES, st.sampled_from(["chain", "nary"]))
def test_counts_of_matmul(m, n, k, sums):
    graph = classic.matmul(m, n, k, sums=sums)
    inputs = m * k + k * n
    chained = (inputs + m * n * (2 * k - 1), m * n * (4 * k - 2))
    nary = (inputs + m * n * k + m * n * (k > 1), 2 * m * n * k + m * n * k * (k > 1))
    assert counts(graph) == (*(chained if sums == "chain" else nary), inputs, m * n)
    assert graph.max_in_degree == (2 if sums == "chain" else max(2, k))


@pytest.mark.parametrize("n", [1, 2, 4, 8])
def test_counts_of_strassen(n):
    graph = classic.strassen(n)
    products = 7 ** int(math.log2(n))
    computed = 7 * products - 6 * n * n
    assert counts(graph) == (computed + 2 * n * n, 2 * computed, 2 * n * n, n * n)
    assert families(graph)["M"] == products
    # Of the 18 sums of two in a call, 5 are of A, 5 of B and 8 of products.
    assert (computed - products) % 18 == 0
    each = (computed - products) // 18
    of = families(graph)
    assert (of["S"], of["T"], of["C"]) == (5 * each, 5 * each, 8 * each)


@pytest.mark.parametrize(("n", "d"), [(1, 1), (3, 1), (2, 2), (4, 2), (6, 2), (4, 4)])
def test_counts_of_strassen_attention(n, d):
    of = families(classic.strassen_attention(n, d))
    blocks, strassen = (n // d) ** 2, families(classic.strassen(d))
    for name in "STMC":
        assert of[name] == blocks * strassen[name]
    assert (of["Q"], of["K"], of["V"]) == (n * d,) * 3
    assert (of["P"], of["l"]) == (n * n, n * (n - 1))
    assert (of["y"], of["o"], of["O"]) == (n * n * d, n * (n - 1) * d, n * d)


@given(st.integers(1, 9))
def test_counts_of_chain(n):
    assert counts(classic.chain(n)) == (n + 1, n, 1, 1)


@given(st.integers(1, 4), st.integers(1, 4))
def test_counts_of_tree(arity, depth):
    vertices = sum(arity**h for h in range(depth + 1))
    assert counts(classic.tree(arity, depth)) == (vertices, vertices - 1, arity**depth, 1)


@given(st.integers(1, 9))
def test_counts_of_pyramid(h):
    expected = ((h + 1) * (h + 2) // 2, h * (h + 1), h + 1, 1)
    assert counts(classic.pyramid(h)) == expected


@given(st.integers(2, 9))
def test_counts_of_diamond(n):
    assert counts(classic.diamond(n)) == (n * n, 2 * n * (n - 1), 1, 1)


@given(st.integers(1, 6))
def test_counts_of_fft(k):
    assert counts(classic.fft(k)) == (2**k * (k + 1), 2 ** (k + 1) * k, 2**k, 2**k)


@given(st.integers(1, 7))
def test_counts_of_hypercube(k):
    assert counts(classic.hypercube(k)) == (2**k, k * 2 ** (k - 1), 1, 1)


@given(st.integers(2, 5), st.integers(1, 5), st.integers(0, 9), st.data())
def test_layered_graphs(layers, width, seed, data):
    degree = data.draw(st.integers(1, width))
    graph = classic.layered(layers, width, degree, seed=seed)
    assert counts(graph) == (layers * width, (layers - 1) * width * degree, width, width)
    for v in range(width, len(graph)):
        layer, i = graph.label(v).index
        assert v == layer * width + i
        before = [graph.label(u).index[0] for u in graph.predecessors(v)]
        assert before == [layer - 1] * degree
    assert graph == classic.layered(layers, width, degree, seed=seed)


def test_a_seed_chooses_the_layered_graph():
    assert len({classic.layered(4, 6, 2, seed=seed) for seed in range(5)}) == 5


# Vertices of the graphs whose optima and bounds are published.


@pytest.mark.parametrize(
    ("graph", "vertices"),
    [
        (classic.product(), 3),
        (classic.dot(3), 11),
        (classic.fft(3), 32),
        (classic.tree(2, 4), 31),
        (classic.tree(3, 3), 40),
        (classic.pyramid(4), 15),
        (classic.diamond(4), 16),
        (classic.matmul(2, 2, 2), 20),
        (classic.matvec(2, 2, sums="nary"), 12),
        # 9 + 3 inputs, 9 products, 3 sums of in-degree 3
        (classic.matvec(3, 3, sums="nary"), 24),
        (classic.hypercube(6), 64),
        # 2 * 36 inputs, 216 products, 36 * 5 sums
        (classic.matmul(6, 6, 6), 468),
        # 2 * 16 inputs, 64 products, 16 sums of in-degree 4
        (classic.matmul(4, 4, 4, sums="nary"), 112),
        # 49 products, 7 * 18 + 18 * 4 sums, 32 inputs
        (classic.strassen(4), 279),
    ],
)
def test_vertices_of_published_graphs(graph, vertices):
    assert len(graph) == vertices


@pytest.mark.parametrize(
    ("graph", "cache", "least"),
    [
        (classic.product(), 3, 3),
        (classic.dot(2), 3, 7),
        (classic.dot(2), 4, 5),
        (classic.fft(1), 3, 4),
        (classic.tree(2, 2), 3, 7),
        (classic.tree(2, 2), 4, 5),
        (classic.pyramid(2), 3, 6),
        (classic.chain(4), 2, 2),
    ],
)
def test_published_optima(graph, cache, least):
    assert naive.optimum(*as_dict(graph), cache) == least


def spectral(graph, cache):
    """Give the bound of Jain and Zaharia, SPAA 2020, as their code computes it."""
    n = len(graph)
    uses = np.bincount(graph.preds, minlength=n)
    laplacian = np.zeros((n, n))
    for v in range(n):
        for u in graph.predecessors(v):
            laplacian[[u, v], [u, v]] += 1 / uses[u]
            laplacian[[u, v], [v, u]] -= 1 / uses[u]
    small = np.linalg.eigvalsh(laplacian)

    def bound(k):
        parts = np.full(k, n // k)
        parts[: n % k] += 1
        return parts @ small[:k] - 2 * k * cache

    return max(bound(k) for k in range(2, 100))


@pytest.mark.parametrize(
    ("graph", "published"), [(classic.fft(7), 6.376856849), (classic.matmul(6, 6, 6), 2.693217)]
)
def test_published_spectral_bounds_hold_for_the_same_graphs(graph, published):
    """The eigenvalues of a graph are its fingerprint; cache 4."""
    assert spectral(graph, 4) == pytest.approx(published, abs=1e-6)


# Structure.


def test_the_same_graph_by_other_names():
    assert isomorphic(classic.dot(3), classic.matvec(1, 3))
    assert isomorphic(classic.matvec(3, 2), classic.matmul(3, 1, 2))
    assert isomorphic(classic.product(), classic.dot(1))
    assert isomorphic(classic.product(), classic.tree(2, 1))
    assert isomorphic(classic.product(), classic.pyramid(1))
    assert isomorphic(classic.chain(3), classic.tree(1, 3))
    assert isomorphic(classic.diamond(2), classic.hypercube(2))
    assert isomorphic(classic.strassen(1), classic.product())
    assert isomorphic(classic.strassen_attention(3, 1), explicit(Attention(n=3, d=1).graph))


@pytest.mark.parametrize("n", [2, 4])
def test_the_grid_of_networkx(n):
    grid = nx.DiGraph(
        (u, v) for u in np.ndindex(n, n) for v in ((u[0] + 1, u[1]), (u[0], u[1] + 1)) if max(v) < n
    )
    assert nx.is_isomorphic(classic.diamond(n).to_networkx(), grid)


def test_the_hypercube_of_networkx():
    ours = classic.hypercube(4).to_networkx().to_undirected()
    assert nx.is_isomorphic(ours, nx.hypercube_graph(4))


@pytest.mark.parametrize(("arity", "depth"), [(2, 3), (3, 2)])
def test_the_tree_of_networkx(arity, depth):
    theirs = nx.balanced_tree(arity, depth, create_using=nx.DiGraph).reverse()
    assert nx.is_isomorphic(classic.tree(arity, depth).to_networkx(), theirs)


def test_a_hypercube_goes_from_subsets_to_larger_ones():
    graph = classic.hypercube(5)
    for v in range(len(graph)):
        less = {v & ~(1 << i) for i in range(5)} - {v}
        assert set(graph.predecessors(v)) == less


def test_a_butterfly_joins_every_input_to_every_output_by_one_path():
    graph = classic.fft(4).to_networkx()
    for i, j in itertools.product(range(0, 16, 5), range(0, 16, 3)):
        paths = nx.all_simple_paths(graph, Vertex("x", (0, i)), Vertex("x", (4, j)))
        assert len(list(paths)) == 1


def test_a_pyramid_has_binomial_numbers_of_paths():
    graph = classic.pyramid(5)
    ones = {Vertex("p", (0, i)): int(i == 2) for i in range(6)}
    values = evaluate(graph, ones, lambda _, operands: sum(operands))
    assert values[Vertex("p", (5, 0))] == math.comb(5, 2)


# Values.


@pytest.mark.parametrize("sums", ["chain", "nary"])
def test_a_matrix_product_by_its_graph(sums):
    random = np.random.default_rng(1)
    a, b = random.integers(-9, 9, (2, 3)), random.integers(-9, 9, (3, 4))
    graph = classic.matmul(2, 4, 3, sums=sums)
    values = evaluate(graph, entries(A=a, B=b), product_or_sum)
    got = [values[graph.label(v)] for v in graph.outputs]
    assert [graph.label(v).index[:2] for v in graph.outputs] == list(np.ndindex(2, 4))
    assert np.array_equal(np.reshape(got, (2, 4)), a @ b)


# Which of Strassen's sums are differences: products M3 and so on, by number, and for the result
# the quadrant (11 is 0) and the place of the term.
MINUS = {"S": {6, 7}, "T": {3, 4}, "C": {(0, 2), (3, 1)}}


def strassen_value(label, operands):
    if label.family == "M":
        return operands[0] * operands[1]
    *_, q, r, _, _ = (0, *label.index)
    place = (q, r) if label.family == "C" else r
    sign = -1 if place in MINUS[label.family] else 1
    return operands[0] + sign * operands[1]


@pytest.mark.parametrize("n", [1, 2, 4, 8])
def test_strassens_product_by_its_graph(n):
    random = np.random.default_rng(n)
    a, b = random.integers(-9, 9, (2, n, n))
    graph = classic.strassen(n)
    values = evaluate(graph, entries(A=a, B=b), strassen_value)
    expected = a @ b
    h = n // 2
    for v in graph.outputs:
        label = graph.label(v)
        if n == 1:
            row, column = 0, 0
        else:
            q, _, i, j = label.index
            row, column = q // 2 * h + i, q % 2 * h + j
        assert values[label] == expected[row, column]


@pytest.mark.parametrize(("n", "d"), [(2, 1), (2, 2), (4, 2), (4, 4)])
def test_strassens_attention_by_its_graph(n, d):
    random = np.random.default_rng(n + d)
    Q, K, V = random.uniform(-1, 1, (3, n, d))

    def value(label, operands):
        if label.family in "STMC":
            return strassen_value(label, operands)
        if label.family == "P":
            return math.exp(*operands)
        if label.family == "O":
            return operands[0] / operands[1]
        return product_or_sum(label, operands)

    graph = classic.strassen_attention(n, d)
    values = evaluate(graph, entries(Q=Q, K=K, V=V), value)
    weights = np.exp(Q @ K.T)
    expected = (weights @ V) / weights.sum(axis=1, keepdims=True)
    assert [graph.label(v) for v in graph.outputs] == [
        Vertex("O", index) for index in np.ndindex(n, d)
    ]
    got = [values[graph.label(v)] for v in graph.outputs]
    assert np.allclose(np.reshape(got, (n, d)), expected)


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_a_fourier_transform_by_its_graph(k):
    """Decimation in time: the inputs come in the order of their reversed bits."""
    n = 2**k
    numbers = np.random.default_rng(k).uniform(-1, 1, n)
    inputs = {Vertex("x", (0, i)): numbers[int(f"{i:0{k}b}"[::-1], 2)] for i in range(n)}

    def value(label, operands):
        t, i = label.index
        return operands[0] + cmath.exp(-2j * math.pi * (i % 2**t) / 2**t) * operands[1]

    values = evaluate(classic.fft(k), inputs, value)
    got = [values[Vertex("x", (k, i))] for i in range(n)]
    assert np.allclose(got, np.fft.fft(numbers))


# Attention by Strassen is attention from the exponentials on.


@settings(max_examples=10)
@given(st.sampled_from([(2, 1), (2, 2), (4, 2), (3, 1)]))
def test_strassens_attention_ends_like_attention(size):
    ours, theirs = classic.strassen_attention(*size), explicit(Attention(*size).graph)
    mine = {ours.label(v): v for v in range(len(ours))}
    for v in range(len(theirs)):
        label = theirs.label(v)
        if label.family in "lyoO":
            names = [theirs.label(u) for u in theirs.predecessors(v)]
            assert [ours.label(u) for u in ours.predecessors(mine[label])] == names


# Errors.


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: classic.dot(0), "n = 0: the length of the vectors must be a positive integer"),
        (lambda: classic.matvec(0, 1), "m = 0: the rows of the matrix must be"),
        (lambda: classic.matvec(1, 1.5), "n = 1.5: the columns of the matrix must be"),
        (lambda: classic.matmul(1, 2, -1), "k = -1: the length of the dot products must be"),
        (lambda: classic.matmul(0, 2, 1), "m = 0: the rows of the product must be"),
        (lambda: classic.matmul(1, 0, 1), "n = 0: the columns of the product must be"),
        (lambda: classic.strassen(6), "n = 6: the rows of Strassen's matrices must be a power of"),
        (lambda: classic.strassen(0), "n = 0: the rows of Strassen's matrices must be a positive"),
        (lambda: classic.strassen_attention(6, 3), "d = 3: the dimension must be a power of two"),
        (
            lambda: classic.strassen_attention(6, 4),
            "n = 6: the queries are cut into blocks of d = 4 rows, so d divides n",
        ),
        (lambda: classic.chain(0), "n = 0: the number of steps must be a positive integer"),
        (lambda: classic.tree(0, 2), "arity = 0: the predecessors of a vertex must be"),
        (lambda: classic.tree(2, 0), "depth = 0: the edges from a leaf to the root must be"),
        (lambda: classic.pyramid(0), "height = 0: the height of the pyramid must be"),
        (lambda: classic.diamond(1), "n = 1: a diamond of one vertex has an input that is its out"),
        (lambda: classic.fft(0), "levels = 0: the binary logarithm of the number of points must"),
        (lambda: classic.hypercube(True), "k = True: the number of things must be"),
        (lambda: classic.layered(1, 2, 1, seed=0), "layers = 1: the inputs would be the outputs"),
        (lambda: classic.layered(2, 0, 1, seed=0), "width = 0: the vertices in a layer must be"),
        (
            lambda: classic.layered(2, 2, 3, seed=0),
            "in_degree = 3: a layer has only width = 2 vertices",
        ),
    ],
)
def test_sizes_that_make_no_graph(make, says):
    with pytest.raises(SizeError) as caught:
        make()
    assert str(caught.value).startswith(says)


def test_kinds_of_sums():
    for make in (classic.dot, lambda n, sums: classic.matmul(1, 1, n, sums=sums)):
        with pytest.raises(UnknownName, match=r"^sums = 'tree': known are chain, nary$"):
            make(2, sums="tree")
