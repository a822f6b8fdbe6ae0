"""Traced graphs against a slow tracer of single numbers, attention's own graph, and refusals."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pebble import Attention, SizeError, TraceError, classic, explicit, trace
from pebble.graph import Graph


class Number:
    """A single number that remembers what it was computed from; NumPy holds it as an object."""

    def __init__(self, name, *operands):
        self.name = name
        self.operands = [part for part in operands if isinstance(part, Number)]

    def __add__(self, other):
        return Number("add", self, other)

    def __radd__(self, other):  # only einsum's own 0, which is no constant of the code
        return self

    def __sub__(self, other):
        return Number("subtract", self, other)

    def __mul__(self, other):
        return Number("multiply", self, other)

    def __rmul__(self, other):
        return Number("multiply", other, self)

    def __truediv__(self, other):
        return Number("divide", self, other)

    def exp(self):
        return Number("exp", self)


def by_numbers(function, shapes):
    """Run a function on arrays of single numbers: give the edges by structure, and the outputs."""
    arrays = {}
    for name, shape in shapes.items():
        arrays[name] = np.empty(shape, object)
        for index in np.ndindex(*shape):
            arrays[name][index] = Number(f"{name}{list(index)}")
    result = np.asarray(function(**arrays), object)
    seen, structure = {}, {}

    def visit(number):
        if id(number) in seen:
            return seen[id(number)]
        preds = dict.fromkeys(visit(part) for part in number.operands)
        key = (number.name, *preds)
        seen[id(number)] = key
        structure.setdefault(key, []).append(number)
        return key

    outputs = [visit(number) for number in result.ravel()]
    return sorted((repr(key), len(found)) for key, found in structure.items()), outputs


def by_graph(graph, name):
    """Give the same of a traced graph whose output has that name."""
    keys, operations, structure = {}, operations_of(graph), {}
    for v in graph.topological():
        preds = dict.fromkeys(keys[u] for u in graph.predecessors(v))
        keys[v] = (operations[v], *preds)
        structure.setdefault(keys[v], []).append(v)
    ends = {graph.label(v).index: keys[v] for v in graph.outputs if graph.label(v).family == name}
    counts = sorted((repr(key), len(found)) for key, found in structure.items())
    return counts, [ends[index] for index in sorted(ends)]


def operations_of(graph):
    """Name each vertex: an input by its label, another by its operation without the number.

    An output's label hides its operation, which the tests know to be the last one.
    """
    names = {}
    for v in range(len(graph)):
        family, index = graph.label(v)
        names[v] = f"{family}{list(index)}" if v in set(graph.inputs) else family.split("_")[0]
    return names


def out_as(operation):
    """Say which operation makes the outputs, in a traced graph's structure."""
    return lambda text: text.replace("'out'", repr(operation))


FUNCTIONS = {
    # A function, its shapes, and the operation that the outputs come from.
    "matmul": (lambda A, B: A @ B, {"A": (2, 3), "B": (3, 2)}, "add"),
    "matvec": (lambda A, b: A @ b, {"A": (2, 3), "b": (3,)}, "add"),
    "vecmat": (lambda a, B: a @ B, {"a": (3,), "B": (3, 2)}, "add"),
    "dot": (lambda a, b: np.dot(a, b), {"a": (4,), "b": (4,)}, "add"),
    "broadcast": (lambda A, b: A * 2.0 - b, {"A": (2, 3), "b": (3,)}, "subtract"),
    "sums": (lambda A: np.exp(A).sum(axis=1), {"A": (3, 4)}, "add"),
    "sums0": (lambda A: A.sum(axis=0) * 1.0, {"A": (3, 4)}, "multiply"),
    "einsum": (
        lambda A, B: np.einsum("ik,jk->ij", A, B) / 1.0, {"A": (2, 3), "B": (2, 3)}, "divide"
    ),
    "shared": (lambda a: (a + a[0]) * a, {"a": (3,)}, "multiply"),
    "slices": (
        lambda a: np.concatenate([a[1:] + a[:-1], a[:1] + a[-1:]])[::-1], {"a": (4,)}, "add"
    ),
    "stack": (lambda a, b: np.stack([a + b, b + a]).T, {"a": (2,), "b": (2,)}, "add"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_a_graph_has_the_structure_of_single_numbers(name):
    function, shapes, last = FUNCTIONS[name]
    counts, outputs = by_numbers(function, shapes)
    traced, ends = by_graph(trace(function, **shapes), "out")
    named = out_as(last)
    assert sorted((named(key), count) for key, count in traced) == counts
    assert [named(repr(key)) for key in ends] == [repr(key) for key in outputs]


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
def test_any_matrix_product_is_the_classic_one(rows, inner, cols):
    def product(A, B):
        return {"C": A @ B}

    traced = trace(product, A=(rows, inner), B=(inner, cols))
    counts, outputs = by_numbers(lambda A, B: A @ B, {"A": (rows, inner), "B": (inner, cols)})
    last = "add" if inner > 1 else "multiply"
    rename = lambda text: text.replace("'C'", repr(last))
    found, ends = by_graph(traced, "C")
    assert sorted((rename(key), count) for key, count in found) == counts
    assert [rename(repr(key)) for key in ends] == [repr(key) for key in outputs]
    same(traced, classic.matmul(rows, cols, inner))


def same(a: Graph, b: Graph):
    """Check that two graphs are isomorphic, inputs to inputs and outputs to outputs."""
    drawn = []
    for graph in (a, b):
        whole = nx.DiGraph()
        for v in range(len(graph)):
            whole.add_node(v, kind=(graph.is_input(v), graph.is_output(v)))
            whole.add_edges_from((u, v) for u in graph.predecessors(v))
        drawn.append(whole)
    assert nx.is_isomorphic(*drawn, node_match=lambda x, y: x["kind"] == y["kind"])


def attention(Q, K, V):
    E = np.exp(Q @ K.T)
    return {"O": (E @ V) / E.sum(axis=1, keepdims=True)}


@pytest.mark.parametrize(("n", "d", "keys", "e"), [(2, 2, 3, 1), (3, 2, 2, 2), (2, 1, 2, 3)])
def test_attention_is_the_graph_of_attention(n, d, keys, e):
    traced = trace(attention, Q=(n, d), K=(keys, d), V=(keys, e))
    same(traced, explicit(Attention(n, d, keys, e).graph))


def test_a_softmax_before_the_product_is_another_graph():
    # It divides n * keys weights, and not n * d outputs: 2 * 3 instead of 2 * 1.
    def first(Q, K, V):
        E = np.exp(Q @ K.T)
        return (E / E.sum(axis=1, keepdims=True)) @ V

    shapes = {"Q": (2, 1), "K": (3, 1), "V": (3, 1)}
    assert len(trace(first, **shapes)) - len(trace(attention, **shapes)) == 4


def test_labels_are_the_arrays_and_the_operations():
    graph = trace(lambda a, b: (a @ b, np.exp(a)), a=(2,), b=(2,))
    assert [str(graph.label(v)) for v in range(len(graph))] == [
        "a[0]", "a[1]", "b[0]", "b[1]", "multiply_1[0]", "multiply_1[1]", "out0[]", "out1[0]",
        "out1[1]",
    ]  # fmt: skip
    assert [str(graph.label(v)) for v in graph.outputs] == ["out0[]", "out1[0]", "out1[1]"]


def test_a_name_that_is_taken_is_passed_over():
    graph = trace(lambda exp_1: np.exp(exp_1) + 1, exp_1=(1,))
    assert [str(graph.label(v)) for v in range(3)] == ["exp_1[0]", "exp_2[0]", "out[0]"]


def test_constants_are_no_vertices():
    # A lower triangle of 2 x 2 has 3 numbers; a number and a constant make one, 0 and 1 none.
    graph = trace(lambda a: (np.tril(a * 2.0) + np.ones((2, 2))).sum(), a=(2, 2))
    assert len(graph.inputs) == 3
    kinds = [graph.label(v).family for v in range(len(graph)) if graph.predecessors(v)]
    assert kinds.count("multiply_1") == kinds.count("add_1") == 3


def test_comparisons_and_where_are_recorded():
    # where takes three numbers: the comparison, x, and y, which is the constant 0 here.
    graph = trace(lambda x, y: np.where(x > y, x, 0.0), x=(2,), y=(2,))
    rows = {str(graph.label(v)): graph.predecessors(v) for v in range(len(graph))}
    assert [str(graph.label(u)) for u in rows["out[1]"]] == ["greater_1[1]", "x[1]"]


def test_a_loop_of_plain_python_and_places_in_place():
    # The running product of a column, written into an array: one product a step.
    def running(a):
        total = np.zeros_like(a)
        total[0] = a[0] + 0.0
        for i in range(1, len(a)):
            total[i] = total[i - 1] * a[i]
        return total

    graph = trace(running, a=(4,))
    assert len(graph) == 4 + 1 + 3
    last = graph.outputs[-1]
    assert [str(graph.label(u)) for u in graph.predecessors(last)] == ["out[2]", "a[3]"]


def test_an_operation_in_place_is_seen_by_all_names():
    def both(a):
        b = a + 1.0
        c = b
        c *= 2.0
        return b

    assert len(trace(both, a=(1,))) == 3


def test_maxima_means_and_totals():
    # max of 3: 2 vertices. mean of 3: 2 sums and a division. cumsum of 3: 2 sums, and a[0] itself.
    assert len(trace(lambda a: a.max(), a=(3,))) == 3 + 2
    assert len(trace(lambda a: np.mean(a), a=(3,))) == 3 + 3
    assert len(trace(lambda a: np.cumsum(a)[1:], a=(3,))) == 3 + 2
    assert len(trace(lambda a: np.maximum.reduce(a, axis=1), a=(2, 3))) == 6 + 4


def test_several_axes_are_one_chain_in_row_major_order():
    graph = trace(lambda a: a.sum(axis=(0, 1)), a=(2, 2))
    (end,) = graph.outputs
    chain = [end]
    while graph.predecessors(chain[-1]):
        chain.append(graph.predecessors(chain[-1])[0])
    terms = [graph.label(graph.predecessors(v)[-1]) for v in chain[:-1]]
    assert [str(term) for term in terms] == ["a[1,1]", "a[1,0]", "a[0,1]"]


def branch(x):
    return x if x[0] > 0 else -x


MESSAGES = [
    (branch, r"^control flow that depends on the data"),
    (lambda x: np.array([1.0, 2.0, 3.0])[x], r"^a recorded array has no numbers"),
    (lambda x: x[x > 0], r"^an index or a length that depends on the data"),
    (lambda x: np.sort(x), r"^np\.sort can't be recorded: known are elementwise"),
    (lambda x: np.linalg.norm(x), r"^np\.linalg\.norm can't be recorded"),
    (lambda x: np.modf(x)[0], r"^np\.modf can't be recorded"),
    (lambda x: np.sum(x, where=[True, False, True]), r"^np\.sum with where can't be recorded"),
    (lambda x: np.add(x, 1, where=[True, False, True]), r"^np\.add with where can't"),
    (lambda x: np.add(x, 1, out=np.zeros(3)), r"^np\.add into a plain array can't be recorded"),
    (lambda x: np.einsum("...->", x), r"^np\.einsum of '\.\.\.->': only letters"),
    (lambda x: x.argsort(), r"^the array's argsort can't be recorded$"),
    (lambda x: float(x[0]), r"^a recorded number can't be turned into a plain one"),
    (lambda x: np.asarray(x), r"^a recorded array has no numbers"),
    (lambda x: x + "a", r"is not made of numbers"),
    (lambda x: x, r"^output out\[0\] is the input x\[0\]"),
    (lambda x: x * 1 + np.where([True, False, True], 0, 1) * 0 if False else np.zeros_like(x),
     r"^output out\[0\] is a constant"),
    (lambda x: 3.0, r"^output out is a float that depends on no input"),
    (lambda x: {"x": x + 1}, r"^output x has the name of an input"),
    (lambda x: np.vectorize(abs)(x), r"a recorded array has no numbers|can't be recorded"),
    (lambda x: np.frompyfunc(lambda v: v, 1, 1)(x), r"made from a Python function"),
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(MESSAGES)))
def test_what_can_not_be_recorded_fails_by_name(at):
    function, message = MESSAGES[at]
    with pytest.raises(TraceError, match=message):
        trace(function, x=(3,))


def test_inputs_that_do_not_matter_and_shapes():
    with pytest.raises(TraceError, match=r"^no output depends on the input y: leave it out$"):
        trace(lambda x, y: x + 1, x=(2,), y=(2,))
    with pytest.raises(SizeError, match=r"^x = 0: an extent of the array must be"):
        trace(lambda x: x + 1, x=(0,))
    with pytest.raises(TraceError, match=r"^x = 3: a shape is a tuple"):
        trace(lambda x: x + 1, x=3)
    with pytest.raises(ValueError, match=r"matmul"):
        trace(lambda x, y: x @ y, x=(2, 3), y=(2, 3))


def test_an_array_of_another_trace():
    kept = []
    trace(lambda x: kept.append(x) or x + 1, x=(2,))
    with pytest.raises(TraceError, match=r"^an array of another trace can't be used in this one$"):
        trace(lambda y: y + kept[0], y=(2,))


def test_a_graph_of_many_vertices_is_quick_enough_to_use():
    graph = trace(attention, Q=(32, 8), K=(32, 8), V=(32, 8))
    assert len(graph) == len(explicit(Attention(32, 8).graph))
