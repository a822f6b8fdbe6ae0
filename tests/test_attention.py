import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pebble.attention import Attention
from pebble.errors import GraphError, SizeError, UnknownName
from pebble.expander import Expansion
from pebble.graph import explicit
from pebble.moves import Vertex, parse_label
from pebble.rules import Op
from pebble.tapes import Tape
from tests.strategies import problems

closed = problems(blocks=("some",))  # problems that have a graph


def definition(p):
    """The vertices of attention's graph, and what each is computed from, as plain loops."""
    graph = {}
    for name, rows, columns in ("Q", p.n, p.d), ("K", p.keys, p.d), ("V", p.keys, p.value_dim):
        graph |= {(name, (r, c)): () for r in range(rows) for c in range(columns)}
    for i in range(p.n):
        graph |= online_row(p, i) if p.softmax == "online" else plain_row(p, i)
    return graph


def scores(p, i):
    """The products and sums of a row's scores, and the score of each key."""
    graph, score = {}, []
    for j in range(p.keys):
        for k in range(p.d):
            graph["x", (i, j, k)] = ("Q", (i, k)), ("K", (j, k))
        total = ("x", (i, j, 0))
        for k in range(1, p.d):
            graph["s", (i, j, k)] = total, ("x", (i, j, k))
            total = ("s", (i, j, k))
        score.append(total)
    return graph, score


def plain_row(p, i):
    graph, score = scores(p, i)
    total, columns = None, [None] * p.value_dim
    for j in range(p.keys):
        weight = ("P", (i, j))
        graph[weight] = (score[j],)
        if total:
            graph["l", (i, j)] = total, weight
        total = ("l", (i, j)) if total else weight
        for c in range(p.value_dim):
            product = ("y", (i, j, c))
            graph[product] = weight, ("V", (j, c))
            if columns[c]:
                graph["o", (i, j, c)] = columns[c], product
            columns[c] = ("o", (i, j, c)) if columns[c] else product
    graph |= {("O", (i, c)): (columns[c], total) for c in range(p.value_dim)}
    return graph | ({("Lse", (i,)): (total,)} if p.logsumexp else {})


def online_row(p, i):
    graph, score = scores(p, i)
    maximum, total, columns = None, None, [None] * p.value_dim
    for t, start in enumerate(range(0, p.keys, p.block)):
        block = range(p.keys)[start : start + p.block]
        old = maximum
        for j in block:
            if maximum:
                graph["mx", (i, j)] = maximum, score[j]
            maximum = ("mx", (i, j)) if maximum else score[j]
        if t:
            factor = ("a", (i, t))
            graph[factor] = old, maximum
            graph["lr", (i, t)] = total, factor
            total = ("lr", (i, t))
            for c in range(p.value_dim):
                graph["or", (i, t, c)] = columns[c], factor
                columns[c] = ("or", (i, t, c))
        for j in block:
            weight = ("P", (i, j))
            graph[weight] = (score[j], maximum) if score[j] != maximum else (maximum,)
            if total:
                graph["l", (i, j)] = total, weight
            total = ("l", (i, j)) if total else weight
            for c in range(p.value_dim):
                product = ("y", (i, j, c))
                graph[product] = weight, ("V", (j, c))
                if columns[c]:
                    graph["o", (i, j, c)] = columns[c], product
                columns[c] = ("o", (i, j, c)) if columns[c] else product
    graph |= {("O", (i, c)): (columns[c], total) for c in range(p.value_dim)}
    return graph | ({("Lse", (i,)): (total, maximum)} if p.logsumexp else {})


@given(closed)
def test_the_implicit_graph_is_its_definition(p):
    graph, wanted = p.graph, definition(p)
    labels = [graph.label(v) for v in range(len(graph))]
    assert len(labels) == len(wanted)
    assert {
        label: tuple(map(graph.label, graph.predecessors(v))) for v, label in enumerate(labels)
    } == wanted
    assert [graph.vertex(label) for label in labels] == list(range(len(graph)))
    assert [label for v, label in enumerate(labels) if graph.is_input(v)] == [
        label for label in labels if not wanted[label]
    ]
    families = ("O", "Lse") if p.logsumexp else ("O",)
    outputs = [v for v, label in enumerate(labels) if label[0] in families]
    assert graph.outputs == outputs == [v for v in range(len(graph)) if graph.is_output(v)]
    assert graph.inputs == [v for v in range(len(graph)) if graph.is_input(v)]
    assert (graph.input_words, graph.output_words) == (len(graph.inputs), len(graph.outputs))
    assert [graph.family(v) for v in range(len(graph))] == [label[0] for label in labels]


@given(closed)
def test_vertices_are_numbered_family_by_family_and_row_major(p):
    graph, order = p.graph, [part.name for part in p.graph.families]
    labels = [graph.label(v) for v in range(len(graph))]
    assert labels == sorted(labels, key=lambda label: (order.index(label[0]), label[1]))


@given(closed)
def test_the_explicit_graph_is_the_implicit_one(p):
    graph = explicit(p.graph)
    assert len(graph) == len(p.graph)
    for v in range(len(graph)):
        assert graph.label(v) == p.graph.label(v)
        assert graph.predecessors(v) == p.graph.predecessors(v)
    assert list(graph.outputs) == p.graph.outputs
    assert list(graph.inputs) == p.graph.inputs
    assert graph.least_cache() == p.graph.least_cache()


@given(closed)
def test_pieces_follow_one_another_up_to_the_extent(p):
    for part in p.graph.families:
        cuts = [(piece.start, piece.stop) for piece in part.pieces]
        stops = [stop for _, stop in cuts]
        assert [start for start, _ in cuts] == [part.start, *stops][: len(cuts)]
        assert all(start < stop for start, stop in cuts)
        assert stops[-1:] in ([], [part.shape[part.axis]])


@pytest.mark.parametrize(
    "label", ["Q[2,0]", "Q[0,3]", "x[1,4,0]", "x[1,0,3]", "y[0,0,5]", "l[2,1]", "O[0,5]", "mx[0,1]"]
)
def test_labels_beyond_the_sizes_name_nothing(label):
    g = Attention(2, 3, keys=4, value_dim=5).graph
    with pytest.raises(
        GraphError, match=r"does not exist: families are Q\[2,3\], K\[4,3\], V\[4,5\]"
    ):
        g.vertex(parse_label(label))


@given(closed)
def test_the_number_of_vertices(p):
    n, m, d, e, Z = p.n, p.keys, p.d, p.value_dim, p.pairs
    count = {
        **{"Q": n * d, "K": m * d, "V": m * e},
        **{"x": Z * d, "s": Z * (d - 1), "P": Z, "l": Z - n},
        **{"y": Z * e, "o": (Z - n) * e, "O": n * e},
    }
    if p.online:
        later = -(-m // p.block) - 1  # blocks after the first
        count |= {"mx": Z - n, "a": n * later, "lr": n * later, "or": n * later * e}
    if p.logsumexp:
        count["Lse"] = n
    assert {part.name: len(part) for part in p.graph.families} == count


def computing_everything(graph, how):
    """A program that computes each vertex once: in tiles, or one by one, forwards or backwards."""
    tape = Tape()
    for part in graph.families:
        if part.is_input or not len(part):
            continue
        low = tuple(part.low if axis == part.axis else 0 for axis in range(len(part.shape)))
        if how == "tiles":
            tape.compute(part[tuple(slice(start, None) for start in low)])
            continue

        def run(axis, index, part=part, low=low):
            if axis == len(low):
                tape.compute(part[tuple(index)])
                return
            extent = part.owned[axis]
            for i in tape.each(extent):
                at = low[axis] + i if how == "forwards" else low[axis] + extent - 1 + i * -1
                run(axis + 1, [*index, at])

        run(0, [])
    return tape.program


@given(closed, st.sampled_from(["tiles", "forwards", "backwards"]))
def test_the_compiled_predecessors_are_those_of_the_rules(p, how):
    graph, found = p.graph, {}
    for words, length in Expansion(graph, computing_everything(graph, how)).streams():
        at = 0
        while at < length:
            head, v = int(words[at]), int(words[at + 1])
            end = at + 2 + (head >> 3 & 255)
            assert head & 7 == Op.COMPUTE
            assert v not in found
            found[v] = tuple(words[at + 2 : end].tolist())
            at = end
    inputs = set(graph.inputs)
    assert found == {v: graph.predecessors(v) for v in range(len(graph)) if v not in inputs}


def test_where_blocks_begin_online():
    # Five keys in blocks of 2, 2 and 1: from j = 2 and j = 4 the sums go on from rescaled ones.
    g = Attention(1, 1, keys=5, softmax="online", block=2, logsumexp=True).graph

    def before(name, *index):
        return " ".join(str(g.label(u)) for u in g.predecessors(g.vertex(Vertex(name, index))))

    assert before("P", 0, 0) == "x[0,0,0] mx[0,1]"
    assert before("P", 0, 4) == "x[0,4,0] mx[0,4]"
    assert before("mx", 0, 1) == "x[0,0,0] x[0,1,0]"
    assert before("a", 0, 1) == "mx[0,1] mx[0,3]"
    assert before("a", 0, 2) == "mx[0,3] mx[0,4]"
    assert before("lr", 0, 2) == "l[0,3] a[0,2]"
    assert before("or", 0, 1, 0) == "o[0,1,0] a[0,1]"
    assert [before("l", 0, j) for j in range(1, 5)] == [
        *("P[0,0] P[0,1]", "lr[0,1] P[0,2]", "l[0,2] P[0,3]", "lr[0,2] P[0,4]"),
    ]
    assert before("o", 0, 4, 0) == "or[0,2,0] y[0,4,0]"
    assert before("Lse", 0) == "l[0,4] mx[0,4]"


def test_the_first_of_blocks_of_one_key_is_its_own_maximum():
    g = Attention(1, 1, keys=3, softmax="online", block=1).graph
    first, second = (g.vertex(Vertex("P", (0, j))) for j in (0, 1))
    assert [str(g.label(u)) for u in g.predecessors(first)] == ["x[0,0,0]"]
    assert [str(g.label(u)) for u in g.predecessors(second)] == ["x[0,1,0]", "mx[0,1]"]
    factor = g.vertex(Vertex("a", (0, 1)))
    assert [str(g.label(u)) for u in g.predecessors(factor)] == ["x[0,0,0]", "mx[0,1]"]


# Arguments.


def test_defaults():
    p = Attention(3, 2)
    assert (p.keys, p.value_dim, p.softmax, p.block, p.logsumexp) == (3, 2, "plain", None, False)
    assert (p.pairs, p.online) == (9, False)
    assert Attention(3, 2, keys=5).pairs == 15
    assert p == Attention(3, 2, keys=3, value_dim=2)


@pytest.mark.parametrize("value", [0, -1, 1.5, 2.0, True, "8"])
@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("n", "the number of queries"),
        ("d", "the dimension of Q and K"),
        ("keys", "the number of keys"),
        ("value_dim", "V's dimension"),
        ("block", "the keys in a block"),
    ],
)
def test_sizes_are_positive_integers(name, meaning, value):
    arguments = {"n": 4, "d": 4, "softmax": "online", name: value}
    with pytest.raises(SizeError) as caught:
        Attention(**arguments)
    assert str(caught.value) == f"{name} = {value!r}: {meaning} must be a positive integer"


@pytest.mark.parametrize("name", ["n", "d"])
def test_some_sizes_must_be_given(name):
    with pytest.raises(SizeError, match=f"^{name} = None: "):
        Attention(**{"n": 4, "d": 4, name: None})


def test_numpy_integers_become_ints():
    sizes = {name: np.int32(4) for name in ("n", "d", "keys", "value_dim", "block")}
    p = Attention(softmax="online", **sizes)
    assert p == Attention(4, 4, softmax="online", block=4)
    assert {type(getattr(p, name)) for name in sizes} == {int}


def test_unknown_softmaxes():
    with pytest.raises(UnknownName, match=r"^softmax = 'causal': known are plain, online$"):
        Attention(4, 4, softmax="causal")


def test_blocks_are_of_an_online_softmax_and_not_larger_than_the_keys():
    with pytest.raises(SizeError, match=r"^block = 2: only an online softmax has blocks$"):
        Attention(4, 4, block=2)
    with pytest.raises(SizeError, match=r"^block = 6: there are only 5 keys$"):
        Attention(4, 4, keys=5, softmax="online", block=6)
    assert Attention(4, 4, keys=5, softmax="online", block=5).block == 5


def test_an_online_graph_needs_its_block():
    p = Attention(4, 4, softmax="online")
    with pytest.raises(SizeError, match="block = None: an online softmax's graph needs its block"):
        _ = p.graph
    assert p.with_block(3).block == 3
    assert p.with_block(9).block == 4


def test_equal_problems_share_their_graph():
    p = Attention(4, 4)
    assert p.graph is p.graph is Attention(4, 4, keys=4).graph
    assert p.graph is not Attention(4, 4, logsumexp=True).graph


def test_equal_problems_have_the_same_graph_while_it_is_in_use():
    """So a tile of one is a tile of the other, however many problems there are besides."""
    first = Attention(n=3, d=2)
    graph = first.graph
    others = [Attention(n=n, d=1).graph for n in range(1, 200)]
    assert Attention(n=3, d=2, keys=3).graph is graph
    assert Attention(n=3, d=2, logsumexp=True).graph is not graph
    assert len({id(other) for other in others}) == 199
