"""The gradient in the theory form: its graph, its schedules, and the numbers that come out."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

import schedules as package
from pebble.attention import Attention
from pebble.errors import DataError, ProblemError, SizeError, UnknownName
from pebble.gradient import AttentionGradient
from pebble.graph import explicit
from pebble.registry import generators
from pebble.rules import Rules
from pebble.waste import Waste
from schedules import flash_gradient, small_cache_gradient
from tests import laws

GENERATORS = (small_cache_gradient, flash_gradient)
every = pytest.mark.parametrize("generator", GENERATORS, ids=lambda g: g.__name__)
with_and_without_h = pytest.mark.parametrize("given_h", [False, True], ids=["A3 Y", "h"])
few = settings(max_examples=max(settings().max_examples // 5, 30))


@st.composite
def problems(draw, most=5, widest=3):
    n, d = draw(st.integers(1, most)), draw(st.integers(1, widest))
    return AttentionGradient(n, d, draw(st.booleans()))


@st.composite
def schedules(draw, most=5):
    """Draw a schedule: its generator, problem and cache, and best, published or given blocks."""
    generator, p = draw(st.sampled_from(GENERATORS)), draw(problems(most))
    choice, asked = draw(st.sampled_from(["best", "published", "given"])), {}
    if choice == "given":
        asked = {"rows": draw(st.integers(1, most + 1)), "cols": draw(st.integers(1, most + 1))}
    elif generator is small_cache_gradient:
        asked = {"blocks": choice}
    # From 4 words for single vertices to 36 for the last pass over blocks of a row, and more.
    try:
        return generator(p, draw(st.integers(4, 40) | st.integers(20, 150)), **asked)
    except SizeError:
        reject()


# The problem.


def test_a_problem_and_what_is_told_of_it():
    p, formed = AttentionGradient(4, 2, given_h=True), AttentionGradient(n=4, d=2)
    assert p.kind == formed.kind == "gradient"
    assert p.settled is p
    assert p.sizes == {"n": 4, "d": 2, "given_h": True}
    assert formed.sizes == {"n": 4, "d": 2}
    assert p.title == "gradient of attention (theory form), n = 4, d = 2, h given"
    assert formed.title == "gradient of attention (theory form), n = 4, d = 2"
    assert p.to_dict() == {"kind": "gradient", "n": 4, "d": 2, "given_h": True}
    assert formed.to_dict() == {"kind": "gradient", "n": 4, "d": 2, "given_h": False}
    assert list(p.operands.items()) == [
        *[("A1", (4, 2)), ("A2", (4, 2)), ("X", (2, 2)), ("dO", (4, 2)), ("h", (4, 2))],
    ]
    assert list(formed.operands.items()) == [
        *[("A1", (4, 2)), ("A2", (4, 2)), ("A3", (4, 2)), ("X", (2, 2)), ("Y", (2, 2))],
        ("dO", (4, 2)),
    ]


def test_equal_problems_have_one_graph():
    p = AttentionGradient(3, 2)
    assert p.graph is AttentionGradient(np.int64(3), np.int8(2), np.False_).graph
    assert p.graph is not AttentionGradient(3, 2, given_h=True).graph


@pytest.mark.parametrize("value", [0, -1, 1.5, 4.0, True, "8", None])
def test_the_sizes_of_a_problem_are_positive_integers(value):
    for name, meaning in ("n", "the number of rows"), ("d", "the number of columns"):
        with pytest.raises(SizeError) as caught:
            AttentionGradient(**{"n": 4, "d": 2, name: value})
        assert str(caught.value) == f"{name} = {value!r}: {meaning} must be a positive integer"


# The graph.


def definition(p):
    """The vertices of the gradient, and what each is computed from; the outputs."""
    n, d = p.n, p.d
    tall, square = (n, d), (d, d)
    shapes = {"A1": tall, "A2": tall, "X": square, "dO": tall}
    shapes |= {"h": tall} if p.given_h else {"A3": tall, "Y": square}
    graph = {}
    for name, shape in shapes.items():
        graph |= {(name, index): () for index in product(*map(range, shape))}

    def put(name, index, *before):
        graph[name, index] = tuple(dict.fromkeys(before))  # with one row, A / l is A / A
        return name, index

    def plus(so_far, term, name, index):
        return put(name, index, so_far, term) if so_far else term

    S1, h = {}, {}
    for i, k in product(range(n), range(d)):
        for a in range(d):
            term = put("a1", (i, k, a), ("A1", (i, a)), ("X", (a, k)))
            S1[i, k] = plus(S1.get((i, k)), term, "S1", (i, k, a))
        if p.given_h:
            h[i, k] = "h", (i, k)
            continue
        for a in range(d):
            term = put("b1", (i, k, a), ("A3", (i, a)), ("Y", (a, k)))
            h[i, k] = plus(h.get((i, k)), term, "h", (i, k, a))
    T = {}
    for i in range(n):
        A, f, p1, l, v = {}, {}, {}, None, None
        for j in range(n):
            s = None
            for k in range(d):
                s = plus(s, put("x", (i, j, k), S1[i, k], ("A2", (j, k))), "s", (i, j, k))
            A[j] = put("A", (i, j), s)
            l = plus(l, A[j], "l", (i, j))
        for j in range(n):
            f[j], q = put("f", (i, j), A[j], l), None
            for k in range(d):
                q = plus(q, put("w", (i, j, k), ("dO", (i, k)), h[j, k]), "q", (i, j, k))
            p1[j] = put("p1", (i, j), f[j], q)
            v = plus(v, p1[j], "v", (i, j))
        for j in range(n):
            weight = put("p", (i, j), p1[j], put("p2", (i, j), v, f[j]))
            for k in range(d):
                term = put("t", (i, j, k), weight, ("A2", (j, k)))
                T[i, k] = plus(T.get((i, k)), term, "T", (i, j, k))
    g = {}
    for i, a, k in product(range(n), range(d), range(d)):
        term = put("u", (i, a, k), ("A1", (i, a)), T[i, k])
        g[a, k] = plus(g.get((a, k)), term, "g", (i, a, k))
    return graph, list(g.values())


@few
@given(problems(most=4))
def test_the_graph_is_its_definition(p):
    graph, (wanted, outputs) = p.graph, definition(p)
    labels = [graph.label(v) for v in range(len(graph))]
    assert len(labels) == graph.size == len(wanted)
    assert {
        label: tuple(map(graph.label, graph.predecessors(v))) for v, label in enumerate(labels)
    } == wanted
    assert {graph.label(v) for v in graph.outputs} == set(outputs)
    assert len(graph.outputs) == graph.output_words == len(outputs) == p.d**2
    inputs = {label for label, before in wanted.items() if not before}
    assert {graph.label(v) for v in graph.inputs} == inputs
    assert graph.input_words == len(inputs)
    assert {(label.family, label.index) for label in map(graph.label, graph.inputs)} == {
        (name, index) for name, shape in p.operands.items() for index in product(*map(range, shape))
    }
    stored = explicit(graph)
    assert list(stored.outputs) == graph.outputs
    for v in range(len(graph)):
        assert stored.label(v) == graph.label(v)
        assert stored.predecessors(v) == graph.predecessors(v)


@pytest.mark.parametrize(("n", "d"), [(1, 1), (1, 3), (4, 1), (3, 2), (5, 4)])
def test_the_number_of_vertices(n, d):
    # Per pair s and q take 2 d - 1 each, then A, f, p1, p2, p; t and T 2 n - 1 an entry, l and v
    # n - 1 a row; S1, and h, 2 d - 1 an entry, g 2 n - 1.
    computed = n * n * (2 * (2 * d - 1) + 5) + n * d * (2 * n - 1) + 2 * n * (n - 1)
    computed += n * d * (2 * d - 1) + d * d * (2 * n - 1)
    graph = AttentionGradient(n, d, given_h=True).graph
    assert (graph.input_words, graph.output_words) == (4 * n * d + d * d, d * d)
    assert graph.size - graph.input_words == computed
    graph = AttentionGradient(n, d).graph
    assert (graph.input_words, graph.output_words) == (4 * n * d + 2 * d * d, d * d)
    assert graph.size - graph.input_words == computed + n * d * (2 * d - 1)


def test_the_names_of_first_sums():
    # With one row and one column each sum is its one term.
    graph = AttentionGradient(1, 1).graph
    assert [str(graph.label(v)) for v in graph.outputs] == ["u[0,0,0]"]

    def before(name, *index):
        return [str(graph.label(u)) for u in graph.predecessors(graph.vertex((name, index)))]

    assert before("x", 0, 0, 0) == ["a1[0,0,0]", "A2[0,0]"]
    assert before("w", 0, 0, 0) == ["dO[0,0]", "b1[0,0,0]"]
    assert before("f", 0, 0) == ["A[0,0]"]
    assert before("p2", 0, 0) == ["p1[0,0]", "f[0,0]"]
    assert before("u", 0, 0, 0) == ["A1[0,0]", "t[0,0,0]"]
    assert str(graph.label(graph.vertex(("g", (0, 0, 0))))) == "u[0,0,0]"


# What the schedules cost.


@given(schedules())
def test_count_replay_and_formula_agree(schedule):
    laws.count_replay_and_formula_agree(schedule)


@every
@with_and_without_h
def test_the_smallest_problems(generator, given_h):
    for n, d in product((1, 2, 3), (1, 2)):
        p = AttentionGradient(n, d, given_h)
        for rows, cols in product(range(1, n + 1), range(1, n + 1)):
            schedule = generator(p, 100, rows=rows, cols=cols)
            laws.count_replay_and_formula_agree(schedule)
        for cache in range(4, 40):
            try:
                schedule = generator(p, cache)
            except SizeError:
                continue
            assert schedule.count() == schedule.closed_form
            assert schedule.closed_form.peak <= cache
        laws.count_replay_and_formula_agree(schedule)


@given(schedules())
def test_the_peak_is_exact(schedule):
    laws.the_peak_is_exact(schedule)


@few
@given(schedules(most=4))
def test_the_naive_referee_agrees(schedule):
    laws.the_naive_referee_agrees(schedule, *definition(schedule.problem))


@given(schedules(most=4), st.data())
def test_no_move_can_be_left_out(schedule, data):
    laws.no_move_can_be_left_out(schedule, data)


@few
@given(problems(most=7, widest=4), st.sampled_from(GENERATORS))
def test_more_cache_is_never_worse(p, generator):
    laws.more_cache_is_never_worse(generator, p, (*range(2, 150), 2000))


@few
@given(problems(), st.sampled_from(GENERATORS))
def test_the_least_cache_of_the_message_works(p, generator):
    laws.the_least_cache_of_the_message_works(generator, p)


@few
@given(problems(most=7), st.sampled_from(GENERATORS), st.integers(4, 110))
def test_best_blocks_are_not_worse_than_any_given_ones(p, generator, cache):
    found = laws.answer(generator, p, cache)
    assume(found < float("inf"))
    for rows, cols in product(range(1, p.n + 2), repeat=2):
        assert found <= laws.answer(generator, p, cache, rows=rows, cols=cols)
    if generator is small_cache_gradient:
        assert found <= laws.answer(generator, p, cache, blocks="published")


# The formulas, spelled out.


@pytest.mark.parametrize(("cache", "io"), [(256, 2_246_656), (1024, 1_394_688)])
def test_the_published_counts(cache, io):
    p = AttentionGradient(256, 32, given_h=True)
    schedule = small_cache_gradient(p, cache, blocks="published")
    assert schedule.count().io == schedule.closed_form.io == io


@pytest.mark.parametrize(
    ("n", "d", "B"), [(8, 4, 2), (6, 4, 1), (12, 6, 3), (12, 6, 2), (16, 8, 4), (1024, 64, 32)]
)
def test_the_small_cache_with_published_blocks(n, d, B):
    # B = 1 takes 6 words: a word of each operand, a sum l or v, and the sum, product and new sum.
    cache = max(4 * B * B, 6)
    count = small_cache_gradient(AttentionGradient(n, d, True), cache, blocks="published").count()
    assert count.io == (6 * n * n * d + 4 * n * d * d) // B + 8 * n * n + 2 * n * d + d * d + 4 * n
    formed = small_cache_gradient(AttentionGradient(n, d), cache, blocks="published").count()
    assert formed.io == count.io + 2 * n * d * d // B + n * d


def test_published_blocks_are_as_large_as_the_root_of_a_quarter():
    p = AttentionGradient(64, 16, given_h=True)
    sizes = small_cache_gradient(p, 143, blocks="published").blocks
    names = product(("S1", "A", "q", "T", "g"), ("rows", "cols", "depth"))
    assert sizes == {f"{name}_{extent}": 5 for name, extent in names}  # 4 * 25 <= 143 < 4 * 36
    assert set(small_cache_gradient(p, 144, blocks="published").blocks.values()) == {6}


def blocked(rows, cols, terms, height, width):
    """Loads and peak of left right in tiles of height x width, a block of columns at a time."""
    height, width = min(height, rows), min(width, cols)
    words = rows * terms * -(-cols // width)
    if terms == 1:  # the block of right stays while all of left passes: each product is finished
        return words + cols, width + 1 + 1
    # a tile, a word of right for each column and one of left, the product and the new sum
    return words + terms * cols * -(-rows // height), height * width + width + 1 + 2


def with_sums(n, d, height, width, taken):
    """Loads and peak of rows keys^T in such tiles, a block of rows at a time, with a sum a row."""
    height, width = min(height, n), min(width, n)
    words = n * d * -(-n // height)  # keys
    if d == 1:
        return words + n, height + 1 + (height if n > 1 else 0) + taken
    words += n * d * -(-n // width)
    widths = [min(width, n - at) for at in range(0, n, width)]
    held = [height * (wide + (place > 0)) for place, wide in enumerate(widths)]
    return words, height + 1 + 2 + max(held)


SIZES = [  # n, d, and blocks that divide and blocks that do not
    (12, 4, 4, 3),
    (12, 4, 2, 2),
    (13, 3, 5, 4),
    (11, 5, 3, 7),
    (10, 1, 4, 3),
    (5, 3, 5, 4),
    (7, 2, 9, 9),
    (2, 1, 1, 2),
    (1, 3, 1, 1),
    (1, 1, 1, 1),
]


@with_and_without_h
@pytest.mark.parametrize(("n", "d", "rows", "cols"), SIZES)
def test_the_formula_of_the_small_cache(n, d, rows, cols, given_h):
    p = AttentionGradient(n, d, given_h)
    found = small_cache_gradient(p, 400, rows=rows, cols=cols)
    phases = [
        blocked(n, d, d, rows, cols),  # S1 = A1 X
        with_sums(n, d, rows, cols, 2),  # S1 A2^T; A and the new sum l
        with_sums(n, d, rows, cols, 3),  # dO h^T; q, f and p1
        blocked(n, d, n, rows, cols),  # T = p A2
        blocked(d, d, n, rows, cols),  # g = A1^T T
    ]
    phases += [] if given_h else [blocked(n, d, d, rows, cols)]  # h = A3 Y
    loads = sum(words for words, _ in phases)
    sums = 2 * n if n > 1 else 0
    loads += 4 * n * n + sums  # A to divide it by l; f beside q; f, v and p1 (1: l is A, v is p1)
    stores = 4 * n * n + sums + 2 * n * d + d * d  # A, f, p1, p; l, v; S1, T; g
    stores += 0 if given_h else n * d
    cost = found.count()
    assert (cost.loads, cost.stores, cost.peak) == (loads, stores, max(peak for _, peak in phases))
    assert cost.computes == p.graph.size - p.graph.input_words
    assert cost == found.closed_form


@with_and_without_h
@pytest.mark.parametrize(("n", "d", "rows", "cols"), SIZES)
def test_the_formula_of_the_large_cache(n, d, rows, cols, given_h):
    # The cache has room for X, and Y, and for g: each operand of a product passes once.
    p = AttentionGradient(n, d, given_h)
    found = flash_gradient(p, 400, rows=rows, cols=cols)
    height, width, wide = min(rows, n), min(cols, n), int(d > 1)
    row_blocks = -(-n // height)
    score, q = 2 * d - 1, 2 * d - 1
    projections = 1 if given_h else 2
    loads = projections * (n * d + d * d) + 2 * n * d
    stores = projections * n * d + n * d + d * d  # S1, h; T; g
    computes = projections * n * d * (2 * d - 1) + d * d * (2 * n - 1)
    # S1 and h: all of X and a row that streams by, or all of S1 and a row of X; and a product with
    # its sum. g: all of T and a column of A1, or all of g, a row of T and a word of A1.
    least = min(n, d)
    peaks = [d * least + d + 3 if d > 1 else 3, least * d + least + 3 if n > 1 else d + 2]
    # Pass l, where n > 1: what streams, what stays with the sums, and a pair's s or A and l.
    if n > 1:
        loads += n * d * row_blocks + n * d  # A2; S1
        stores += n
        computes += n * n * (score + 1) + n * (n - 1)  # A; l
        peaks.append(width * d + height * (d + 1) + 2 + wide)
    # Pass v, where n > 1: a pair's f and q, or f, q and p1.
    if n > 1:
        loads += 2 * n * d * row_blocks + n * (2 * d + 1)  # A2, h; S1, dO, l
        stores += n
        computes += n * n * (score + q + 3) + n * (n - 1)  # A, f, p1; v
        peaks.append(2 * width * d + height * (2 * d + 2) + 3 + wide)
    # Pass T: with one row there is neither l nor v, and a sum T is its one term.
    loads += 2 * n * d * row_blocks + 2 * n * d + (2 * n if n > 1 else 0)  # A2, h; S1, dO; l, v
    computes += n * n * (score + q + 5 + d) + n * (n - 1) * d  # A, f, p1, p2, p, t; T
    if n > 1:
        peaks.append(2 * width * d + height * (3 * d + 2) + 3 + wide)
    else:
        peaks.append(4 * d + max(3 + wide, d + 1))
    cost = found.count()
    assert (cost.loads, cost.stores, cost.computes) == (loads, stores, computes)
    assert cost.deletes == loads + computes
    assert cost == found.closed_form
    assert cost.peak == max(peaks)


@pytest.mark.parametrize("factor", range(6, 17))
def test_the_large_cache_takes_about_eleven(factor):
    # 1 + 2 * 2 + 2 * 3 words of d a key, over blocks of M / d, M / 2d and M / 3d rows, a little
    # less than that fitting beside the sums.
    n, d = 65_536, 64
    cache = factor * d * d
    found = flash_gradient(AttentionGradient(n, d, given_h=True), cache)
    assert found.count() == found.closed_form
    assert 11.2 < found.closed_form.io * cache / (n * n * d * d) < 11.4


def test_the_large_cache_fits_as_many_rows_as_it_can():
    p = AttentionGradient(40, 3, given_h=True)
    sizes = flash_gradient(p, 99).blocks
    # A key of d words and 3 more, d + 1 a row; 2 d and 4, 2 d + 2 a row; 3 d + 2 a row.
    assert sizes["cols"] == 1
    assert [sizes[f"{name}_rows"] for name in "lvT"] == [93 // 4, 89 // 8, 89 // 11]


# Moves in vain.


@given(schedules())
def test_nothing_is_in_vain_but_what_is_computed_again(schedule):
    p = schedule.problem
    # In two passes more: a score and its A twice, and f, q and p1 once.
    again = p.n**2 * (2 * (2 * p.d - 1 + 1) + 1 + (2 * p.d - 1) + 1)
    assert again == p.n**2 * (6 * p.d + 1)
    if p.n == 1 or schedule.name == "small_cache_gradient":
        again = 0
    assert schedule.waste() == Waste(0, 0, 0, again)
    assert schedule.recomputes == (again > 0)


# What they compute.


def softmax(A1, A2, X):
    E = np.exp(A1 @ X @ A2.T)
    return E / E.sum(axis=1, keepdims=True)


def direct(A1, A2, X, dO, h):
    """The gradient as it is defined."""
    f, q = softmax(A1, A2, X), dO @ h.T
    p = f * q - (f * q).sum(axis=1, keepdims=True) * f
    return A1.T @ p @ A2


def operands(p, seed):
    """Random operands by name; where h is not given, A3 and Y of which it is the product."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.normal(size=shape) / (p.d if name == "X" else 1)
        for name, shape in p.operands.items()
    }


def values(given):
    return given["h"] if "h" in given else given["A3"] @ given["Y"]


def wanted(given):
    return direct(*(given[name] for name in ("A1", "A2", "X", "dO")), values(given))


def run(schedule, given):
    found = schedule.execute(*given.values())
    assert set(found) == {"g"}
    assert found["g"].shape == (schedule.problem.d,) * 2
    return found["g"]


@few
@given(schedules(), st.integers(0, 2**32))
def test_the_direct_formula_is_computed(schedule, seed):
    given = operands(schedule.problem, seed)
    right = wanted(given)
    scale = 1 + np.abs(right).max()
    np.testing.assert_allclose(run(schedule, given), right, rtol=1e-10, atol=1e-12 * scale)


@every
@with_and_without_h
@pytest.mark.parametrize(("n", "d"), [(5, 3), (4, 2), (6, 1), (1, 2)])
def test_it_is_the_derivative_of_the_loss(generator, given_h, n, d):
    p, step = AttentionGradient(n, d, given_h), 1e-5
    given = operands(p, seed=n + d)
    slopes = np.empty((d, d))

    def loss(X):
        return (given["dO"] * (softmax(given["A1"], given["A2"], X) @ values(given))).sum()

    for index in np.ndindex(d, d):
        change = np.zeros((d, d))
        change[index] = step
        slopes[index] = (loss(given["X"] + change) - loss(given["X"] - change)) / (2 * step)
    found = run(generator(p, 60), given)
    np.testing.assert_allclose(found, slopes, rtol=1e-6, atol=1e-8)
    if n > 1:  # with one row the softmax is 1, whatever X is
        assert np.abs(found).max() > 1e-3


@every
@with_and_without_h
@pytest.mark.parametrize("cache", [40, 200, 2000])
def test_a_larger_one_is_computed_too(generator, given_h, cache):
    p = AttentionGradient(37, 5, given_h)
    given = operands(p, 1)
    np.testing.assert_allclose(
        run(generator(p, cache), given), wanted(given), rtol=1e-10, atol=1e-11
    )


def test_operands_by_place_and_by_name():
    p = AttentionGradient(3, 2, given_h=True)
    given = operands(p, 2)
    schedule = small_cache_gradient(p, 60)
    arrays = list(given.values())
    first = run(schedule, given)
    assert (schedule.execute(*arrays[:2], **dict(list(given.items())[2:]))["g"] == first).all()
    with pytest.raises(DataError, match=r"^h is missing: it is an array of shape \(3, 2\)$"):
        schedule.execute(*arrays[:4])
    with pytest.raises(DataError, match=r"^6 operands: there are 5, A1, A2, X, dO, h$"):
        schedule.execute(*arrays, arrays[0])
    with pytest.raises(DataError, match=r"^A3 is no operand: they are A1, A2, X, dO, h$"):
        schedule.execute(*arrays, A3=arrays[0])


# The best of all.


def test_the_generators_of_the_gradient():
    assert set(generators("gradient")) == set(GENERATORS)
    for kind in "forward", "backward", "double_backward":
        assert not set(generators(kind)) & set(GENERATORS)


@with_and_without_h
@pytest.mark.parametrize(
    ("cache", "name"),
    [
        (10, "small_cache_gradient"),
        (25, "small_cache_gradient"),
        (60, "flash_gradient"),
        (5000, "flash_gradient"),
    ],
)
def test_the_best_of_all_is_the_cheapest(cache, name, given_h):
    p = AttentionGradient(20, 3, given_h)
    found = package.best(p, cache)
    costs = {g.__name__: laws.answer(g, p, cache) for g in GENERATORS}
    assert found.name == name
    assert found.closed_form.io == costs[name] == min(costs.values())
    assert costs[name] < max(costs.values())
    assert package.best(p, cache, Rules(recompute=False)).name == "small_cache_gradient"


def test_a_cache_that_is_too_small_for_all_says_what_each_needs():
    with pytest.raises(SizeError) as caught:
        package.best(AttentionGradient(4, 2), 5)
    # q: a word of dO and of h, a sum, v of its row, a product and the new sum. T: 2 d words of a
    # key, 3 d + 2 of a row and 4 of a pair.
    assert str(caught.value) == (
        "small_cache_gradient: cache = 5 is too small; the least that works is 6; "
        "flash_gradient: cache = 5 is too small; the least that works is 16"
    )


# Arguments.


@every
def test_other_problems_are_refused(generator):
    others = {
        "the forward pass of attention": Attention(4, 2),
        "the backward pass of attention": Attention(4, 2, direction="backward"),
        "the backward pass of attention with saved_weights": Attention(
            4, 2, direction="backward", saved_weights=True
        ),
        "the double backward pass of attention": Attention(4, 2, direction="double_backward"),
        "problem = None": None,
    }
    for told, p in others.items():
        with pytest.raises(ProblemError) as caught:
            generator(p, 1000)
        assert str(caught.value) == (
            f"{generator.__name__} is for the gradient of attention in the theory form, "
            f"not for {told}"
        )


@pytest.mark.parametrize(
    "name", ["flash2", "standard", "flash2_backward", "small_cache_backward", "flashbob"]
)
def test_other_schedules_refuse_the_gradient(name):
    with pytest.raises(ProblemError, match=r", not for the gradient of attention in the theory fo"):
        getattr(package, name)(AttentionGradient(4, 2), 1000)


@every
@pytest.mark.parametrize("value", [0, -1, 1.5, 64.0, True, "8", None])
def test_the_cache_is_a_positive_integer(generator, value):
    for blocks in {}, {"rows": 2, "cols": 2}:
        with pytest.raises(SizeError) as caught:
            generator(AttentionGradient(4, 2), value, **blocks)
        assert str(caught.value) == (
            f"cache = {value!r}: the words of fast memory must be a positive integer"
        )


@every
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "8"])
def test_rows_and_cols_are_positive_integers(generator, value):
    for name, meaning in ("rows", "the rows of a block"), ("cols", "the columns of a block"):
        with pytest.raises(SizeError) as caught:
            generator(AttentionGradient(4, 2), 99, **{"rows": 1, "cols": 1, name: value})
        assert str(caught.value) == f"{name} = {value!r}: {meaning} must be a positive integer"


@every
def test_rows_and_cols_come_together(generator):
    with pytest.raises(SizeError, match=r"^rows = 2, cols = None: give both of them, or none$"):
        generator(AttentionGradient(4, 2), 99, rows=2)
    with pytest.raises(SizeError, match=r"^rows = None, cols = 2: give both of them, or none$"):
        generator(AttentionGradient(4, 2), 99, cols=2)


def test_an_unknown_rule_for_blocks():
    with pytest.raises(UnknownName) as caught:
        small_cache_gradient(AttentionGradient(4, 2), 99, blocks="square")
    assert (
        str(caught.value) == "blocks = 'square': known are best, published; or give rows and cols"
    )


def test_blocks_that_overflow_the_cache_say_what_they_hold():
    # q: 3 x 2 sums, then 3 x 2 with 3 sums v; 3 words of dO and 1 of h, a product and a new sum.
    # T: keys of 2 d words, rows of 3 d + 2, and a pair's 4.
    p = AttentionGradient(8, 2)
    for generator, words in (small_cache_gradient, 6 + 3 + 4 + 2), (flash_gradient, 8 + 24 + 4):
        with pytest.raises(SizeError) as caught:
            generator(p, words - 1, rows=3, cols=2)
        assert str(caught.value) == (
            f"{generator.__name__}, given blocks with rows = 3, cols = 2 holds {words} words: "
            f"cache = {words - 1} is too small"
        )
        assert generator(p, words, rows=3, cols=2).count().peak == words


def test_published_blocks_that_overflow_the_cache():
    with pytest.raises(SizeError) as caught:
        small_cache_gradient(AttentionGradient(8, 2), 5, blocks="published")
    assert str(caught.value) == (
        "small_cache_gradient, published blocks with rows = 1, cols = 1 holds 6 words: "
        "cache = 5 is too small"
    )


@every
def test_numpy_integers_are_integers(generator):
    p = AttentionGradient(np.int64(6), np.int16(2), np.True_)
    schedule = generator(p, np.int32(99), rows=np.int32(2), cols=np.uint8(3))
    assert schedule.count() == schedule.replay() == schedule.closed_form
    same = generator(AttentionGradient(6, 2, given_h=True), 99, rows=2, cols=3)
    assert schedule.closed_form == same.closed_form
    assert repr(schedule) == repr(same)
    numbers = [*vars(schedule.closed_form).values(), *schedule.blocks.values(), schedule.cache]
    assert {type(number) for number in numbers} == {int}


def test_schedules_are_written_with_their_sizes():
    p = AttentionGradient(12, 2, given_h=True)
    # All terms of S1 at a time, and X stays; with one term at a time a depth is not told. Blocks
    # are no larger than what they cut.
    assert repr(flash_gradient(p, 400, rows=50, cols=2)) == (
        "flash_gradient(n=12, d=2, given_h=True, cache=400, cols=2, l_rows=12, v_rows=12, "
        "T_rows=12, S1_rows=12, S1_cols=2, S1_depth=2, g_rows=2, g_cols=2)"
    )
    assert flash_gradient(AttentionGradient(1, 2), 60).blocks == {
        **{"cols": 1, "T_rows": 1, "h_rows": 1, "h_cols": 2, "S1_rows": 1, "S1_cols": 2},
        **{"g_rows": 2, "g_cols": 2},
    }
    assert small_cache_gradient(p, 99, rows=3, cols=50).blocks == {
        **{"S1_rows": 3, "S1_cols": 2, "A_rows": 3, "A_cols": 12, "q_rows": 3, "q_cols": 12},
        **{"T_rows": 3, "T_cols": 2, "g_rows": 2, "g_cols": 2},
    }


@pytest.mark.slow
@every
@with_and_without_h
@pytest.mark.parametrize("cache", [300, 3000, 30_000])
def test_large_schedules_are_replayed_too(generator, given_h, cache):
    schedule = generator(AttentionGradient(150, 24, given_h), cache)
    assert schedule.count() == schedule.replay() == schedule.closed_form
