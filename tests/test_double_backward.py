from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from pebble.attention import Attention
from pebble.errors import ProblemError, SizeError
from pebble.gradient import AttentionGradient
from pebble.graph import explicit
from pebble.registry import generators
from pebble.waste import Waste
from schedules.flashbob import flashbob, three_pass_double_backward
from tests import laws

GENERATORS = (flashbob, three_pass_double_backward)
every = pytest.mark.parametrize("generator", GENERATORS, ids=lambda g: g.__name__)
few = settings(max_examples=max(settings().max_examples // 5, 30))


def attention(n, d, keys=None, value_dim=None):
    return Attention(n, d, keys, value_dim, direction="double_backward")


@st.composite
def problems(draw, most=5, widest=3):
    n, keys = draw(st.integers(1, most)), draw(st.integers(1, most))
    return attention(n, draw(st.integers(1, widest)), keys, draw(st.integers(1, widest)))


@st.composite
def schedules(draw, most=5):
    """Draw a schedule with its best or given blocks, in a cache drawn or much larger."""
    generator, p = draw(st.sampled_from(GENERATORS)), draw(problems(most))
    if draw(st.booleans()):
        rows, cols = draw(st.integers(1, p.n + 1)), draw(st.integers(1, p.keys + 1))
        return generator(p, 400, rows=rows, cols=cols)
    try:
        return generator(p, draw(st.integers(20, 60) | st.integers(40, 200)))
    except SizeError:
        reject()


# The graph.


def definition(p):
    """The vertices of the double backward pass, and what each is computed from."""
    n, m, d, e = p.n, p.keys, p.d, p.value_dim
    graph = {}
    shapes = {
        **{"Q": (n, d), "K": (m, d), "V": (m, e), "O": (n, e), "dO": (n, e)},
        **{"Lse": (n,), "D": (n,), "UQ": (n, d), "UK": (m, d), "UV": (m, e)},
    }
    for name, shape in shapes.items():
        graph |= {(name, index): () for index in product(*map(range, shape))}

    def put(name, index, *before):
        graph[name, index] = before
        return name, index

    def plus(so_far, term, name, index):
        return put(name, index, so_far, term) if so_far else term

    last = {}  # the sums so far, by their name and place
    rows = {}  # what the columns need of a pair, once alpha and eps are known
    for i in range(n):
        for j in range(m):
            at, s, F, C, dP = (i, j), None, None, None, None
            for k in range(d):
                x = put("x", (i, j, k), ("Q", (i, k)), ("K", (j, k)))
                s = plus(s, x, "s", (i, j, k))
                along = put("f1", (i, j, k), ("UQ", (i, k)), ("K", (j, k)))
                F = plus(F, along, "F1", (i, j, k))
                along = put("f2", (i, j, k), ("Q", (i, k)), ("UK", (j, k)))
                F = plus(F, along, "F", (i, j, k))
            for c in range(e):
                C = plus(C, put("c", (i, j, c), ("dO", (i, c)), ("UV", (j, c))), "C", (i, j, c))
                dP = plus(dP, put("w", (i, j, c), ("dO", (i, c)), ("V", (j, c))), "dP", (i, j, c))
            P = put("P", at, s, ("Lse", (i,)))
            G = put("G", at, dP, ("D", (i,)))
            dS, PF = put("dS", at, P, G), put("PF", at, P, F)
            PH = put("PH", at, P, put("H", at, C, put("FG", at, F, G)))
            rows[at] = P, PF, PH, dS
            for name, term in ("alpha", PF), ("eps", PH):
                last[name, i] = plus(last.get((name, i)), term, name, at)
            for k in range(d):
                index, K = (i, j, k), ("K", (j, k))
                A = plus(last.get(("A", i, k)), put("a1", index, PH, K), "A1", index)
                last["A", i, k] = plus(A, put("a2", index, dS, ("UK", (j, k))), "A", index)
                for name, term in ("B", put("b", index, dS, K)), ("E", put("g", index, P, K)):
                    last[name, i, k] = plus(last.get((name, i, k)), term, name, index)
            for c in range(e):
                index = (i, j, c)
                U = plus(last.get(("U", i, c)), put("u1", index, P, ("UV", (j, c))), "U1", index)
                last["U", i, c] = plus(U, put("u2", index, PF, ("V", (j, c))), "U", index)
        alpha, eps = last["alpha", i], last["eps", i]
        for k in range(d):
            AB = put("AB", (i, k), last["A", i, k], put("aB", (i, k), alpha, last["B", i, k]))
            put("Qt", (i, k), AB, put("eE", (i, k), eps, last["E", i, k]))
        for c in range(e):
            put("dOt", (i, c), last["U", i, c], put("aO", (i, c), alpha, ("O", (i, c))))
        for j in range(m):
            at, (P, PF, PH, dS) = (i, j), rows[i, j]
            HS = put("HS", at, PH, put("aS", at, alpha, dS))
            St = put("St", at, HS, put("eP", at, eps, P))
            W = put("W", at, PF, put("aP", at, alpha, P))
            for k in range(d):
                index = (i, j, k)
                Kt = plus(last.get(("Kt", j, k)), put("t1", index, St, ("Q", (i, k))), "T1", index)
                last["Kt", j, k] = plus(Kt, put("t2", index, dS, ("UQ", (i, k))), "Kt", index)
            for c in range(e):
                r = put("r", (i, j, c), W, ("dO", (i, c)))
                last["Vt", j, c] = plus(last.get(("Vt", j, c)), r, "Vt", (i, j, c))
    ends = [end for (name, *_), end in last.items() if name in ("Kt", "Vt")]
    return graph, [label for label in graph if label[0] in ("Qt", "dOt")] + ends


@few
@given(problems(most=4))
def test_the_graph_is_its_definition(p):
    graph, (wanted, outputs) = p.graph, definition(p)
    labels = [graph.label(v) for v in range(len(graph))]
    assert len(labels) == len(wanted)
    assert {
        label: tuple(map(graph.label, graph.predecessors(v))) for v, label in enumerate(labels)
    } == wanted
    assert {graph.label(v) for v in graph.outputs} == set(outputs)
    assert len(graph.outputs) == graph.output_words == len(outputs)
    assert {graph.label(v) for v in graph.inputs} == {v for v in wanted if not wanted[v]}
    stored = explicit(graph)
    assert list(stored.outputs) == graph.outputs
    for v in range(len(graph)):
        assert stored.label(v) == graph.label(v)
        assert stored.predecessors(v) == graph.predecessors(v)


def test_the_names_of_first_sums():
    # With one query and one key every sum but the alternating ones is its one term.
    graph = attention(1, 1).graph
    assert " ".join(str(graph.label(v)) for v in graph.outputs) == (
        "Qt[0,0] dOt[0,0] Kt[0,0,0] r[0,0,0]"
    )
    before = [str(graph.label(v)) for v in graph.predecessors(graph.vertex(("aS", (0, 0))))]
    assert before == ["PF[0,0]", "dS[0,0]"]


# What the schedules cost.


@few
@given(schedules())
def test_count_replay_and_formula_agree(schedule):
    laws.count_replay_and_formula_agree(schedule)


@every
def test_the_smallest_problems(generator):
    for n, keys, d, e in product((1, 2), (1, 2), (1, 2), (1, 2)):
        p = attention(n, d, keys, e)
        for rows, cols in product(range(1, n + 1), range(1, keys + 1)):
            schedule = generator(p, 100, rows=rows, cols=cols)
            assert schedule.count() == schedule.closed_form
        laws.count_replay_and_formula_agree(schedule)


@few
@given(schedules())
def test_the_peak_is_exact(schedule):
    laws.the_peak_is_exact(schedule)


@few
@given(schedules(most=3))
def test_the_naive_referee_agrees(schedule):
    laws.the_naive_referee_agrees(schedule, *definition(schedule.problem))


@given(schedules(most=4), st.data())
def test_no_move_can_be_left_out(schedule, data):
    laws.no_move_can_be_left_out(schedule, data)


def formula(p, rows, cols, alpha_rows=0):
    """Loads, stores, computes and peak, pass by pass and tensor by tensor: two keys or more."""
    n, m, d, e = p.n, p.keys, p.d, p.value_dim
    row_blocks, col_blocks = -(-n // rows), -(-m // cols)
    F, P, C, dP = 4 * d - 1, 2 * d, 2 * e - 1, 2 * e - 1  # computes of a pair
    pair = F + P + C + dP + 6  # and G, dS, PF, FG, H, PH
    row = 4 * d + 2 * d + 2 * d + 4 * e + 2  # terms and sums of A, B, E and U, alpha and eps
    col = 6 + 4 * d + 2 * e  # aS, HS, eP, St, aP, W, terms and sums of Kt and Vt
    firsts = n * (d + 2 * d + e + 2) + m * (d + e)  # first sums, which are their terms
    computes = n * m * (2 * pair + row + col) - firsts + n * (4 * d + 2 * e)
    loads = n * (2 * d + e) + n * e + 2 * n  # Q, UQ, dO; O; Lse, D
    loads += row_blocks * m * (2 * d + 2 * e)  # K, UK, V, UV
    loads += m * (2 * d + 2 * e) + col_blocks * n * (2 * d + e + 4)
    stores = n * d + n * e + 2 * n + m * d + m * e  # Qt, dOt; alpha, eps; Kt, Vt
    wide = 1 if e > 1 else 0
    row_words = 5 * d + 2 * e + 4
    peaks = [3 * cols * (d + e) + 2 * d + e + 9 + wide]
    if alpha_rows:
        loads += 2 * n * d + 2 * n + 2 * m * d * -(-n // alpha_rows)
        computes += 6 * n * m * d
        peaks.append(alpha_rows * (2 * d + 2) + 2 * d + (4 if d > 1 else 3))
        row_words -= 1
    peaks.append(rows * row_words + 2 * d + 2 * e + 5 + wide)
    return loads, stores, computes, loads + computes, max(peaks)


SIZES = [  # n, keys, d, e, and blocks that divide and blocks that do not
    (12, 12, 2, 2, 4, 3),
    (12, 18, 3, 5, 6, 9),
    (13, 7, 4, 1, 5, 3),
    (10, 11, 1, 4, 7, 11),
    (9, 5, 1, 1, 9, 2),
]


@every
@pytest.mark.parametrize(("n", "keys", "d", "e", "rows", "cols"), SIZES)
def test_the_formula(generator, n, keys, d, e, rows, cols):
    p = attention(n, d, keys, e)
    schedule = generator(p, 2000, rows=rows, cols=cols)
    apart = generator is three_pass_double_backward
    wanted = formula(p, rows, cols, rows if apart else 0)
    assert tuple(vars(schedule.closed_form).values()) == wanted
    assert schedule.count() == schedule.closed_form
    best = generator(p, 90)
    wanted = formula(p, *best.blocks.values())
    assert tuple(vars(best.count()).values()) == wanted


@pytest.mark.parametrize(
    ("n", "d", "rows", "cols"), [(12, 2, 4, 3), (64, 8, 16, 8), (60, 5, 60, 1), (1024, 64, 16, 32)]
)
def test_the_published_count(n, d, rows, cols):
    io = 12 * n * d + 4 * n + 4 * d * n * n // rows + (3 * d + 4) * n * n // cols
    assert flashbob(attention(n, d), 100_000, rows=rows, cols=cols).count().io == io
    control = three_pass_double_backward(attention(n, d), 100_000, rows=rows, cols=cols)
    assert control.count().io == io + 2 * n * d + 2 * n + 2 * n * n * d // rows


@every
def test_with_one_key_alpha_and_eps_do_not_move(generator):
    # Q, UQ, dO, O, Lse, D and twice the key; the key, and Q, UQ, dO, Lse, D again.
    p = attention(6, 3, keys=1, value_dim=2)
    cost = generator(p, 400, rows=2, cols=1).count()
    assert cost.loads == 6 * (6 + 4 + 2) + 3 * 10 + 10 + 6 * (6 + 2 + 2)
    assert cost.stores == 6 * 5 + 5
    assert cost == flashbob(p, 400, rows=2, cols=1).closed_form


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("keys", [1, 2, 5])
def test_waste(n, keys):
    # Computed again: what the two passes form of a pair, F, P, C, dP and six more; in the
    # control's first pass F, P and PF.
    for d, e in (1, 1), (2, 3):
        p = attention(n, d, keys, e)
        again = n * keys * (4 * d - 1 + 2 * d + 2 * (2 * e - 1) + 6)
        assert flashbob(p, 70).waste() == Waste(0, 0, 0, again)
        again += n * keys * (4 * d - 1 + 2 * d + 1) if keys > 1 else 0
        assert three_pass_double_backward(p, 70).waste() == Waste(0, 0, 0, again)


# Best blocks.


@few
@given(problems(), st.sampled_from(GENERATORS), st.integers(20, 170))
def test_best_blocks_are_not_worse_than_any_given_ones(p, generator, cache):
    found = laws.answer(generator, p, cache)
    assume(found < float("inf"))
    for rows, cols in product(range(1, p.n + 1), range(1, p.keys + 1)):
        assert found <= laws.answer(generator, p, cache, rows=rows, cols=cols)


@few
@given(problems(), st.sampled_from(GENERATORS))
def test_more_cache_is_never_worse(p, generator):
    laws.more_cache_is_never_worse(generator, p, (*range(2, 200), 5000))


@few
@given(problems(), st.sampled_from(GENERATORS))
def test_the_least_cache_of_the_message_works(p, generator):
    laws.the_least_cache_of_the_message_works(generator, p)


@few
@given(problems(), st.integers(40, 200))
def test_the_control_moves_more(p, cache):
    least = laws.answer(flashbob, p, cache)
    control = laws.answer(three_pass_double_backward, p, cache, rows=1, cols=1)
    assert least <= control
    rows, cols = flashbob(p, 400).blocks.values()
    control = three_pass_double_backward(p, 400, rows=rows, cols=cols).closed_form.io
    more = 2 * p.n * (p.d + 1) + 2 * p.keys * p.d * -(-p.n // rows) if p.keys > 1 else 0
    assert control == flashbob(p, 400).closed_form.io + more


# What they compute.


def backward(Q, K, V, dO):
    """The gradients, and the output, the logarithms of the row sums, and D."""
    S = Q @ K.T
    top = S.max(axis=1, keepdims=True)
    E = np.exp(S - top)
    P = E / E.sum(axis=1, keepdims=True)
    O = P @ V
    D = (dO * O).sum(axis=1)
    dS = P * (dO @ V.T - D[:, None])
    Lse = (np.log(E.sum(axis=1, keepdims=True)) + top)[:, 0]
    return dS @ K, dS.T @ Q, P.T @ dO, O, Lse, D


def published(Q, K, V, O, dO, Lse, D, UQ, UK, UV):
    """The double backward pass as it is published, with E the row sum of P o Pt."""
    P = np.exp(Q @ K.T - Lse[:, None])
    F, C, dP = UQ @ K.T + Q @ UK.T, dO @ UV.T, dO @ V.T
    dS = P * (dP - D[:, None])
    alpha = (P * F).sum(axis=1)[:, None]
    Pt = C + F * (dP - D[:, None]) - alpha * dP
    E = (P * Pt).sum(axis=1)[:, None]
    St = P * (Pt - E)
    W = P * (F - alpha)
    return {
        "Qt": St @ K + dS @ UK,
        "Kt": St.T @ Q + dS.T @ UQ,
        "Vt": W.T @ dO,
        "dOt": P @ UV + W @ V,
    }


def operands(p, seed):
    """Random operands in the order of `Attention.operands`, with O, Lse and D as they are."""
    rng = np.random.default_rng(seed)
    rows, cols = (p.n, p.keys), (p.d, p.value_dim)
    Q, dO = (rng.normal(size=(rows[0], width)) for width in cols)
    K, V = (rng.normal(size=(rows[1], width)) for width in cols)
    UQ, UK, UV = (rng.normal(size=array.shape) for array in (Q, K, V))
    _, _, _, O, Lse, D = backward(Q, K, V, dO)
    return Q, K, V, O, dO, Lse, D, UQ, UK, UV


def run(schedule, given):
    outputs = schedule.execute(*given)
    p = schedule.problem
    shapes = {"Qt": (p.n, p.d), "Kt": (p.keys, p.d), "Vt": (p.keys, p.value_dim)}
    shapes["dOt"] = (p.n, p.value_dim)
    assert set(outputs) == set(shapes)
    return {name: outputs[name].reshape(shape) for name, shape in shapes.items()}


@few
@given(schedules(), st.integers(0, 2**32))
def test_the_published_form_is_computed(schedule, seed):
    given = operands(schedule.problem, seed)
    found, wanted = run(schedule, given), published(*given)
    for name in wanted:
        scale = 1 + np.abs(wanted[name]).max()
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-10, atol=1e-12 * scale)


@every
@pytest.mark.parametrize(
    ("n", "keys", "d", "e"), [(5, 4, 3, 2), (3, 6, 2, 4), (1, 4, 2, 2), (4, 1, 2, 3), (1, 1, 1, 1)]
)
def test_it_is_the_derivative_of_the_backward_pass(generator, n, keys, d, e):
    p, step = attention(n, d, keys, e), 1e-5
    given = operands(p, seed=n + keys)
    Q, K, V, _, dO, _, _, UQ, UK, UV = given
    found = run(generator(p, 150), given)

    def change():  # of dQ, dK and dV along UQ, UK and UV
        dQ, dK, dV, *_ = backward(Q, K, V, dO)
        return (UQ * dQ).sum() + (UK * dK).sum() + (UV * dV).sum()

    for name, array in ("Qt", Q), ("Kt", K), ("Vt", V), ("dOt", dO):
        wanted = np.empty_like(array)
        for index in np.ndindex(array.shape):
            at = array[index]
            array[index] = at + step
            above = change()
            array[index] = at - step
            wanted[index] = (above - change()) / (2 * step)
            array[index] = at
        scale = max(np.abs(wanted).max(), 1)
        np.testing.assert_allclose(found[name], wanted, rtol=1e-6, atol=1e-8 * scale)


@every
def test_a_larger_one_is_computed_too(generator):
    p = attention(37, 5, keys=29, value_dim=7)
    given = operands(p, 1)
    found, wanted = run(generator(p, 400), given), published(*given)
    for name in wanted:
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-10, atol=1e-11)


# Arguments.


@every
def test_other_problems_are_refused(generator):
    others = {
        "the forward pass of attention": Attention(4, 2),
        "the backward pass of attention": Attention(4, 2, direction="backward"),
        "the backward pass of attention with saved_weights": Attention(
            4, 2, direction="backward", saved_weights=True
        ),
        "the gradient of attention in the theory form": AttentionGradient(4, 2),
    }
    for told, p in others.items():
        with pytest.raises(ProblemError) as caught:
            generator(p, 1000)
        assert str(caught.value) == (
            f"{generator.__name__} is for the double backward pass of attention, not for {told}"
        )


@every
@pytest.mark.parametrize("value", [0, -1, 1.5, 64.0, True, "8", None])
def test_the_cache_is_a_positive_integer(generator, value):
    with pytest.raises(SizeError) as caught:
        generator(attention(4, 2), value)
    assert str(caught.value) == (
        f"cache = {value!r}: the words of fast memory must be a positive integer"
    )


@every
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "8"])
def test_rows_and_cols_are_positive_integers(generator, value):
    for name, meaning in ("rows", "the rows of a block"), ("cols", "the columns of a block"):
        with pytest.raises(SizeError) as caught:
            generator(attention(4, 2), 99, **{"rows": 1, "cols": 1, name: value})
        assert str(caught.value) == f"{name} = {value!r}: {meaning} must be a positive integer"


@every
def test_rows_and_cols_come_together(generator):
    with pytest.raises(SizeError, match=r"^rows = 2, cols = None: give both of them, or none$"):
        generator(attention(4, 2), 99, rows=2)
    with pytest.raises(SizeError, match=r"^rows = None, cols = 2: give both of them, or none$"):
        generator(attention(4, 2), 99, cols=2)


def test_blocks_that_overflow_the_cache_say_what_they_hold():
    # 3 rows of 5 + 2 + 4 words, a key of 4 and 5 more; the control's rows take a word less.
    for generator, words in (flashbob, 42), (three_pass_double_backward, 39):
        with pytest.raises(SizeError) as caught:
            generator(attention(8, 1), words - 1, rows=3, cols=2)
        assert str(caught.value) == (
            f"{generator.__name__}, given blocks with rows = 3, cols = 2 holds {words} words: "
            f"cache = {words - 1} is too small"
        )
        assert generator(attention(8, 1), words, rows=3, cols=2).count().peak == words


@every
def test_numpy_integers_are_integers(generator):
    schedule = generator(
        attention(np.int64(6), np.int16(2)), np.int32(99), rows=np.int32(2), cols=np.uint8(3)
    )
    assert schedule.count() == schedule.replay() == schedule.closed_form
    assert schedule.closed_form == generator(attention(6, 2), 99, rows=2, cols=3).closed_form
    numbers = [*vars(schedule.closed_form).values(), *schedule.blocks.values(), schedule.cache]
    assert {type(number) for number in numbers} == {int}


def test_schedules_are_written_with_their_sizes():
    p = attention(12, 2, keys=10, value_dim=3)
    assert repr(flashbob(p, 400, rows=50, cols=2)) == (
        "flashbob(n=12, d=2, keys=10, value_dim=3, cache=400, rows=12, cols=2)"
    )
    assert three_pass_double_backward(p, 60).blocks == {"rows": 2, "cols": 2, "alpha_rows": 8}
    assert "alpha_rows" not in three_pass_double_backward(attention(4, 2, keys=1), 60).blocks


def test_they_are_known_for_this_kind_of_problem():
    known = {generator.__name__ for generator in generators("double_backward")}
    assert known >= {"flashbob", "three_pass_double_backward"}
    others = {generator.__name__ for generator in generators("forward")}
    assert not others & {generator.__name__ for generator in GENERATORS}
