import numpy as np
import pytest

from pebble.affine import Affine
from pebble.attention import Attention
from pebble.errors import GraphError, ProgramError
from pebble.families import (
    Family,
    Function,
    Piece,
    Pieces,
    chain,
    family,
    inputs,
)
from pebble.family_graph import FamilyGraph
from pebble.moves import Vertex
from pebble.rules import Rules


def dot(length):
    """Give the graph of a dot product: two vectors, their products x and the sums s."""
    a, b = inputs("a", length), inputs("b", length)
    x = family("x", (length,), Function.PRODUCT, lambda k: (a[k], b[k]))
    s = chain("s", (length,), 0, Function.SUM, lambda k: x[k], lambda k: (s[k - 1], x[k]))
    return FamilyGraph((a, b, x, s), (s[1:],))


# Affine expressions.


def test_affine_expressions_add_multiply_and_divide():
    i, j = Affine(0, ((1, 1),)), Affine(2, ((2, 3),))
    total = 5 + i * 4 - j + 1
    assert total == Affine(4, ((1, 4), (2, -3)))
    assert (total - total, i - i) == (Affine(0), Affine(0))
    assert 2 * j == j + j == Affine(4, ((2, 6),))
    assert j * 0 == Affine(0)
    assert (2 * j) // 2 == j
    assert (total.coefficient(1), total.coefficient(2), total.coefficient(3)) == (4, -3, 0)
    assert total.at({1: 10, 2: 7}) == 4 + 40 - 21
    assert repr(total) == "4 + 4*v1 + -3*v2"
    assert (repr(i), repr(Affine(0))) == ("v1", "0")


def test_the_range_of_an_affine_expression():
    # 4 + 4 i - 3 j for i < 10 and j < 3: from 4 - 3 * 2 to 4 + 4 * 9.
    assert Affine(4, ((1, 4), (2, -3))).range({1: 10, 2: 3}) == (-2, 40)


@pytest.mark.parametrize("expression", [Affine(3, ((1, 4),)), Affine(4, ((1, 3),))])
def test_only_exact_divisions_of_affine_expressions(expression):
    with pytest.raises(ProgramError, match=r"// 2: the division is not exact"):
        expression // 2


# Tiles.


def test_tiles_have_starts_and_sizes():
    A = inputs("A", 4, 5)
    tile = A[1:3, :]
    assert (tile.size, tile.sizes) == (10, (2, 5))
    assert repr(tile) == "A[1:+2, 0:+5]"
    assert repr(A[2, Affine(1, ((7, 2),))]) == "A[2, 1 + 2*v7]"
    assert A[3:1, :].size == 0
    assert A[:, -2:].starts == (Affine(0), Affine(3))


def test_a_tile_needs_all_indices_and_no_steps():
    A = inputs("A", 4, 5)
    with pytest.raises(ProgramError, match=r"^A\[1\]: A has 2 indices, not 1$"):
        A[1]
    with pytest.raises(ProgramError, match=r"^A\[1, 2, 3\]: A has 2 indices, not 3$"):
        A[1, 2, 3]
    with pytest.raises(ProgramError, match="a tile is contiguous, its step is 1"):
        A[::2, 0]


# Graphs.


def test_a_dot_product():
    graph = dot(3)
    assert [str(graph.label(v)) for v in range(len(graph))] == [
        *("a[0]", "a[1]", "a[2]", "b[0]", "b[1]", "b[2]"),
        *("x[0]", "x[1]", "x[2]", "s[1]", "s[2]"),
    ]
    assert [graph.predecessors(v) for v in range(len(graph))] == [
        *[()] * 6,
        *[(0, 3), (1, 4), (2, 5)],
        *[(6, 7), (9, 8)],
    ]
    assert (graph.inputs, graph.outputs) == ([0, 1, 2, 3, 4, 5], [9, 10])
    assert (graph.input_words, graph.output_words) == (6, 2)
    assert graph.base("x") == 6
    assert [graph.family(v) for v in (0, 3, 8, 9)] == ["a", "b", "x", "s"]
    assert [graph.is_input(v) for v in (5, 6)] == [True, False]
    assert [graph.is_output(v) for v in (8, 9)] == [False, True]


def test_another_name_names_the_same_vertex():
    graph = dot(3)
    assert graph.vertex(Vertex("s", (0,))) == graph.vertex(Vertex("x", (0,))) == 6


def test_a_chain_of_one_has_no_vertices_of_its_own():
    graph = dot(1)
    assert (len(graph), len(graph["s"])) == (3, 0)
    assert graph.vertex(Vertex("s", (0,))) == 2


def test_a_predecessor_counts_once():
    a = inputs("a", 2)
    q = family("q", (2,), Function.PRODUCT, lambda i: (a[i], a[i]))
    graph = FamilyGraph((a, q), (q[:],))
    assert graph.predecessors(3) == (1,)
    assert graph.least_cache() == 2


@pytest.mark.parametrize(
    "label",
    [
        *(("x", (3,)), ("x", (-1,)), ("x", ()), ("x", (0, 0)), ("z", (0,)), ("x", None)),
        *(("x", (0.5,)), ("x", "a"), ("x", [0]), ([], (0,)), "x", 3, None, ("x", (0,), 1)),
    ],
)
def test_labels_that_name_nothing(label):
    with pytest.raises(GraphError) as caught:
        dot(3).vertex(label)
    assert str(caught.value) == (
        f"vertex {label} does not exist: families are a[3], b[3], x[3], s[3]"
    )


def test_an_index_may_be_a_numpy_integer():
    assert dot(3).vertex(("x", (np.int64(2),))) == 8


@pytest.mark.parametrize("v", [-1, 11])
def test_numbers_of_no_vertex(v):
    with pytest.raises(GraphError, match=f"vertex {v} does not exist: vertices are 0 to 10"):
        dot(3).label(v)


def test_indices_before_the_first_piece_name_no_vertex():
    a = inputs("a", 4)
    late = Family("late", (4,), (Piece(2, 4, Function.EXP, lambda i: (a[i],)),))
    graph = FamilyGraph((a, late), (late[2:],))
    assert (late.start, late.low, late.owned, len(late)) == (2, 2, (2,), 2)
    assert graph.label(4) == ("late", (2,))
    assert graph.vertex(("late", (3,))) == 5
    with pytest.raises(GraphError, match=r"vertex \('late', \(1,\)\) does not exist"):
        graph.vertex(("late", (1,)))


def test_indices_after_the_last_piece_name_no_vertex():
    a = inputs("a", 4)
    early = Family("early", (4,), (Piece(0, 2, Function.EXP, lambda i: (a[i],)),))
    assert early.piece((1,)) is not None
    assert early.piece((2,)) is None


def test_a_family_without_pieces_is_empty():
    empty = Family("none", (3, 2), (), 1)
    assert (len(empty), empty.start, empty.low, empty.is_input) == (0, 2, 2, False)
    assert empty.piece((0, 0)) is None


def test_pieces_are_made_when_asked_for():
    made = []

    def make(at):
        made.append(at)
        return Piece(at, at + 1, Function.INPUT, lambda *_: ())

    pieces = Pieces(10**12, make)
    assert (len(pieces), pieces[7].start, pieces[-1].start) == (10**12, 7, 10**12 - 1)
    assert made == [7, 10**12 - 1]
    for beyond in (10**12, -(10**12) - 1):
        with pytest.raises(IndexError):
            pieces[beyond]


def test_the_least_cache_is_a_vertex_and_what_it_needs():
    graph = dot(3)
    assert graph.least_cache() == 3
    # s[1] of 5 words and its x[0] and x[1] of 7 each; x[0] of 7 needs a[0] and b[0].
    assert graph.least_cache(Rules(weights={"x": 7, "s": 5})) == 19
    assert graph.least_cache(Rules(weights={"a": 9})) == 11


def test_the_least_cache_of_attention_in_closed_form():
    assert Attention(3, 2).graph.least_cache() == 3
    assert Attention(1, 1).graph.least_cache() == 3
    only_inputs = FamilyGraph((inputs("a", 3),), ())
    assert only_inputs.least_cache() == 1
