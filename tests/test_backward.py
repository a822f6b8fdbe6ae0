"""The backward pass: its graph, its schedules, and the numbers that come out of them."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import schedules as package
from pebble import Attention, AttentionGradient, Rules, bounds, explicit
from pebble.cost import Cost
from pebble.errors import DataError, IllegalMove, ProblemError, SizeError, UnknownName
from pebble.registry import generators
from schedules import (
    flash1_backward,
    flash2_backward,
    flash2_backward_as_printed,
    small_cache_backward,
    standard_backward,
    two_pass_backward,
)
from schedules.backward import delta_peak
from tests import laws
from tests.laws import answer
from tests.tables import as_dict

FLASH = (flash1_backward, flash2_backward, two_pass_backward)
PRODUCTS = (standard_backward, small_cache_backward)
GENERATORS = (*FLASH, *PRODUCTS)
every = pytest.mark.parametrize("generator", GENERATORS, ids=lambda g: g.__name__)
REDUNDANT = Rules(redundant=True)


def chain(graph, name, terms):
    """Add up terms [(label index, vertex), ...] in order; give the last sum."""
    total = None
    for index, term in terms:
        if total is None:
            total = term
        else:
            graph[name, index] = total, term
            total = (name, index)
    return total


def dots(graph, names, index, left, right):
    """Add the products of two lists of vertices and their sums; give the last sum."""
    x, s = names
    terms = []
    for k, pair in enumerate(zip(left, right, strict=True)):
        graph[x, (*index, k)] = pair
        terms.append(((*index, k), (x, (*index, k))))
    return chain(graph, s, terms)


def definition(p):
    """The vertices of the backward pass, what each is computed from, and the outputs."""
    n, m, d, e = p.n, p.keys, p.d, p.value_dim
    graph = {(name, index): () for name, shape in p.operands.items() for index in boxes(shape)}

    def row(name, i, width):
        return [(name, (i, k)) for k in range(width)]

    P, dP, dS = {}, {}, {}
    for i, j in product(range(n), range(m)):
        if p.saved_weights:
            P[i, j] = ("P", (i, j))
        else:
            score = dots(graph, "xs", (i, j), row("Q", i, d), row("K", j, d))
            P[i, j] = ("P", (i, j))
            graph[P[i, j]] = score, ("Lse", (i,))
        dP[i, j] = dots(graph, ("w", "dP"), (i, j), row("dO", i, e), row("V", j, e))
    for i in range(n):
        if p.saved_weights:
            graph |= {("z", (i, j)): (P[i, j], dP[i, j]) for j in range(m)}
            delta = chain(graph, "D", [((i, j), ("z", (i, j))) for j in range(m)])
        else:
            delta = dots(graph, "zD", (i,), row("dO", i, e), row("O", i, e))
        for j in range(m):
            graph["G", (i, j)] = dP[i, j], delta
            dS[i, j] = ("dS", (i, j))
            graph[dS[i, j]] = P[i, j], ("G", (i, j))
    outputs = []
    for (i, j), weight in P.items():
        graph |= {("v", (i, j, c)): (weight, ("dO", (i, c))) for c in range(e)}
        graph |= {("q", (i, j, k)): (dS[i, j], ("K", (j, k))) for k in range(d)}
        graph |= {("k", (i, j, k)): (dS[i, j], ("Q", (i, k))) for k in range(d)}
    for j in range(m):
        for c in range(e):
            terms = [((i, j, c), ("v", (i, j, c))) for i in range(n)]
            outputs.append(chain(graph, "dV", terms))
        for k in range(d):
            terms = [((i, j, k), ("k", (i, j, k))) for i in range(n)]
            outputs.append(chain(graph, "dK", terms))
    for i, k in product(range(n), range(d)):
        outputs.append(chain(graph, "dQ", [((i, j, k), ("q", (i, j, k))) for j in range(m)]))
    return graph, outputs


def boxes(shape):
    return product(*map(range, shape))


@st.composite
def problems(draw, most=5, kinds=(False, True)):
    n, keys = draw(st.integers(1, most)), draw(st.integers(1, most))
    d, value_dim = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    return Attention(
        n, d, keys, value_dim, direction="backward", saved_weights=draw(st.sampled_from(kinds))
    )


def of(generator, most=5):
    return problems(most, (False, True) if generator is standard_backward else (False,))


@st.composite
def schedules(draw, generators=GENERATORS, most=5):
    """Draw a schedule: its generator, problem and cache, and best, published or given blocks."""
    generator = draw(st.sampled_from(generators))
    problem = draw(of(generator, most))
    asked = {}
    choice = draw(st.sampled_from(["best", "published", "given"]))
    if choice == "given":
        asked = {"rows": draw(st.integers(1, most + 1)), "cols": draw(st.integers(1, most + 1))}
    elif generator is not two_pass_backward:
        asked = {"blocks": choice}
    try:
        return generator(problem, draw(st.integers(3, 40) | st.integers(20, 250)), **asked)
    except SizeError:
        reject()


# The graph.


@given(problems(most=4))
def test_the_implicit_graph_is_its_definition(p):
    wanted, outputs = definition(p)
    found, ends = as_dict(p.graph)
    assert found == wanted
    assert sorted(ends) == sorted(outputs)
    inputs = {p.graph.label(v) for v in p.graph.inputs}
    assert inputs == {label for label, before in wanted.items() if not before}
    assert p.graph.input_words == len(inputs)
    assert p.graph.output_words == len(outputs)
    whole = explicit(p.graph)
    assert list(whole.outputs) == p.graph.outputs
    assert [whole.predecessors(v) for v in range(len(whole))] == [
        p.graph.predecessors(v) for v in range(len(whole))
    ]


def test_the_number_of_vertices():
    """2 pairs, d = e = 1: x, P, w, G, dS, v, q and k each, z a row, and a sum of dK and dV."""
    graph = Attention(2, 1, keys=1, direction="backward").graph
    assert graph.input_words == 2 + 1 + 1 + 2 + 2 + 2
    assert graph.size - graph.input_words == 2 * 8 + 2 + 2


# What a schedule costs.


@settings(max_examples=max(settings().max_examples, 300))
@given(schedules())
def test_the_count_the_referee_and_the_formula_agree(schedule):
    laws.count_replay_and_formula_agree(schedule)


@given(schedules())
def test_the_peak_is_exact(schedule):
    laws.the_peak_is_exact(schedule)


@settings(max_examples=60)
@given(schedules(most=4))
def test_the_naive_referee_agrees(schedule):
    laws.the_naive_referee_agrees(schedule, *definition(schedule.problem))


@given(schedules(), st.data())
def test_no_move_can_be_left_out(schedule, data):
    laws.no_move_can_be_left_out(schedule, data)


@every
@pytest.mark.parametrize("keys", [1, 2, 3])
def test_the_smallest_problems_in_every_cache(generator, keys):
    for n, d, value_dim in product((1, 4), (1, 2), (1, 2)):
        p = Attention(n, d, keys, value_dim, direction="backward")
        for cache in range(3, 30):
            try:
                schedule = generator(p, cache)
            except SizeError:
                continue
            assert schedule.count() == schedule.closed_form
            assert schedule.closed_form.peak <= cache
        assert schedule.replay() == schedule.closed_form


@given(st.data(), st.sampled_from(GENERATORS))
def test_more_cache_is_never_worse(data, generator):
    problem = data.draw(of(generator, most=8))
    laws.more_cache_is_never_worse(generator, problem, (*range(3, 120), 2000))


@given(st.data(), st.sampled_from(GENERATORS))
def test_the_least_cache_of_the_message_works_and_one_less_does_not(data, generator):
    laws.the_least_cache_of_the_message_works(generator, data.draw(of(generator)))


@settings(max_examples=60)
@given(st.data(), st.sampled_from(GENERATORS))
def test_best_blocks_are_not_worse_than_any_given_ones(data, generator):
    problem, cache = data.draw(of(generator)), data.draw(st.integers(4, 90))
    found = answer(generator, problem, cache)
    for rows, cols in product(range(1, 7), range(1, 7)):
        assert found <= answer(generator, problem, cache, rows=rows, cols=cols)
    if generator is not two_pass_backward:
        assert found <= answer(generator, problem, cache, blocks="published")


# The formulas, spelled out.


def sizes(p):
    return p.n, p.keys, p.d, p.value_dim


@pytest.mark.parametrize("cols", [1, 3, 4, 7, 12])
@pytest.mark.parametrize("shape", [(12, 3, 12, 3), (9, 2, 7, 5)])
def test_the_words_of_the_flash_schedules(shape, cols):
    n, d, m, e = shape
    p = Attention(n, d, m, e, direction="backward")
    T = -(-m // cols)
    one = flash1_backward(p, 1000, rows=2, cols=cols).count()
    assert one.loads == m * (d + e) + T * n * (d + 2 * e + 1) + (T - 1) * n * d
    assert one.stores == T * n * d + m * (d + e)
    two = flash2_backward(p, 1000, rows=2, cols=cols).count()
    assert two.loads == 2 * n * e + m * (d + e) + T * n * (d + e + 2) + (T - 1) * n * d
    assert two.stores == n + T * n * d + m * (d + e)
    both = two_pass_backward(p, 1000, rows=cols, cols=2).count()
    rows, columns = -(-n // cols), -(-m // 2)
    assert both.loads == (
        n * (d + 2 * e + 1) + m * (d + e) * rows + m * (d + e) + n * (d + e + 2) * columns
    )
    assert both.stores == n + n * d + m * (d + e)
    # What is computed again: D at each block but the first; P and dS of each pair.
    assert one.computes - two.computes == (T - 1) * n * (2 * e - 1)
    assert both.computes - two.computes == n * m * (2 * d + 2 * e + 1)


def test_the_published_count_of_flash_attention_2():
    """T (4nd + 2n) + 4nd + (2nd + n), zeros read at the first block: here that is nd less."""
    n, d, cols = 24, 4, 6
    T = n // cols
    found = flash2_backward(Attention(n, d, direction="backward"), 500, rows=4, cols=cols).count()
    published = T * (4 * n * d + 2 * n) + 4 * n * d + (2 * n * d + n)
    assert found.io == published - n * d


def test_the_published_count_of_flash_attention_1():
    """T (5nd + 2n) + 4nd: here nd less, and Lse for the row sum and the maximum."""
    n, d, cols = 24, 4, 6
    T = n // cols
    found = flash1_backward(Attention(n, d, direction="backward"), 500, rows=4, cols=cols).count()
    assert found.io == T * (5 * n * d + 2 * n) + 4 * n * d - n * d - T * n


@pytest.mark.parametrize("e", [2, 3])
def test_the_peaks_of_the_flash_schedules(e):
    d = 3
    p = Attention(12, d, keys=10, value_dim=e, direction="backward")
    for rows, cols in product((1, 2, 5), (1, 2, 4)):
        words = 2 * cols * (d + e) + rows * (2 * d + e + 2) + 4
        assert flash1_backward(p, 999, rows=rows, cols=cols).closed_form.peak == words
        assert flash2_backward(p, 999, rows=rows, cols=cols).closed_form.peak == words
        assert two_pass_backward(p, 999, rows=rows, cols=cols).closed_form.peak == max(
            rows * (2 * d + e + 2) + d + e + 4, 2 * cols * (d + e) + d + e + 6
        )


@pytest.mark.parametrize(("n", "d"), [(12, 2), (30, 4), (17, 3)])
def test_unfused_with_saved_weights_moves_seven_squares_and_eight_operands(n, d):
    p = Attention(n, d, direction="backward", saved_weights=True)
    for blocks in "best", "published":
        assert standard_backward(p, 1000, blocks=blocks).count().io == 7 * n * n + 8 * n * d
    # A row of P and dP takes 2 n + 3 words; where it does not fit it is read twice.
    tight = standard_backward(p, 2 * n + 2).closed_form.io
    assert tight - standard_backward(p, 2 * n + 3).closed_form.io >= 2 * n * n


@pytest.mark.parametrize(("n", "d"), [(12, 2), (30, 4)])
def test_unfused_without_saved_weights(n, d):
    p = Attention(n, d, direction="backward")
    found = standard_backward(p, 1000, blocks="published").count()
    assert found.io == 8 * n * n + 12 * n * d + 3 * n


@pytest.mark.parametrize(("n", "d", "B"), [(12, 4, 2), (12, 3, 3), (16, 4, 4)])
def test_the_small_cache_with_published_blocks(n, d, B):
    """Five products of 2 n^2 d / B words; P and dS; dO, O, D twice, Lse and three outputs."""
    p = Attention(n, d, direction="backward")
    found = small_cache_backward(p, 4 * B * B, blocks="published").count()
    # Where the terms of a sum fill one block no tile is held, and an operand passes once.
    whole = 2 if d == B else 0
    products = 5 * 2 * n * n * d // B - whole * (n * n * d // B - n * d)
    assert found.io == products + 3 * n * n + 2 * n * d + 3 * n * d + 3 * n


def test_the_small_cache_near_ten_over_the_root():
    n, d, M = 4096, 64, 1024
    found = small_cache_backward(Attention(n, d, direction="backward"), M).closed_form
    assert 10 <= (found.io - 3 * n * n) * M**0.5 / (n * n * d) < 10.8


def test_published_blocks():
    p = Attention(100, 4, direction="backward")
    # ceil(M / 4d) keys with K, V, dK and dV fill the cache at d = e ...
    for generator in (flash1_backward, flash2_backward):
        for cache in (200, 1000, 1590):
            with pytest.raises(SizeError, match="published blocks with rows = 4, cols = "):
                generator(p, cache, blocks="published")
        # ... unless all 100 keys fit.
        assert generator(p, 1664, blocks="published").blocks == {"rows": 4, "cols": 100}
    assert set(small_cache_backward(p, 403, blocks="published").blocks.values()) == {100, 10, 4}


def test_the_blocks_of_a_schedule():
    p = Attention(12, 2, keys=10, value_dim=3, direction="backward")
    assert flash2_backward(p, 60).blocks == {"rows": 1, "cols": 4}
    assert two_pass_backward(p, 60).blocks == {"rows": 5, "cols": 4}
    assert standard_backward(p, 60, rows=4, cols=2).blocks == {
        **{"P_rows": 4, "P_cols": 2, "dV_rows": 4, "dV_cols": 2, "dP_rows": 4, "dP_cols": 2},
        **{"dQ_rows": 4, "dQ_cols": 2, "dK_rows": 4, "dK_cols": 2},
    }
    assert repr(flash2_backward(p, 60)) == (
        "flash2_backward(n=12, d=2, keys=10, value_dim=3, cache=60, rows=1, cols=4)"
    )


# Moves in vain.


@given(schedules())
def test_nothing_is_in_vain_but_what_is_computed_again(schedule):
    found = schedule.waste()
    assert (found.dead_loads, found.dead_stores, found.dead_computes) == (0, 0, 0)
    graph = schedule.problem.graph
    assert found.recomputes == schedule.closed_form.computes - graph.size + graph.input_words


@given(problems(kinds=(False,)), st.integers(1, 6), st.integers(1, 6))
def test_the_printed_algorithm_loads_in_vain(p, rows, cols):
    """O at each of the T blocks, and dQ a second time at all but the first."""
    n, m, d, e = sizes(p)
    schedule = flash2_backward_as_printed(p, 400, rows=rows, cols=cols)
    T = -(-m // cols)
    assert schedule.count() == schedule.replay(REDUNDANT) == schedule.closed_form
    found = schedule.waste(REDUNDANT)
    assert found.dead_loads == T * n * e + (T - 1) * n * d
    assert (found.dead_stores, found.dead_computes, found.recomputes) == (0, 0, 0)
    assert {label[0] for label in found.loads} <= {"O", "dQ", "q"}
    right = flash2_backward(p, 400, rows=rows, cols=cols)
    assert schedule.closed_form.io - right.closed_form.io == found.dead_loads
    if T > 1:
        with pytest.raises(IllegalMove, match=r"^move .* is red already"):
            schedule.replay()
    else:
        assert schedule.replay() == schedule.closed_form


def test_the_printed_algorithm_is_not_among_the_generators():
    assert flash2_backward_as_printed not in generators("backward")
    p = Attention(9, 3, direction="backward")
    with pytest.raises(SizeError, match=r"as_printed.* with rows = 9, cols = 9 holds"):
        flash2_backward_as_printed(p, 200, rows=9, cols=9)


# Numbers.


def numbers(p, seed):
    rng = np.random.default_rng(seed)
    n, m, d, e = sizes(p)
    Q, K, V, dO = (rng.normal(size=s) for s in ((n, d), (m, d), (m, e), (n, e)))
    S = Q @ K.T
    Lse = np.log(np.exp(S).sum(1))
    P = np.exp(S - Lse[:, None])
    return {"Q": Q, "K": K, "V": V, "O": P @ V, "dO": dO, "Lse": Lse, "P": P}


def gradients(Q, K, V, dO):
    """The gradients of <dO, softmax(Q K^T) V>, in float64."""
    P = np.exp(Q @ K.T)
    P /= P.sum(1, keepdims=True)
    dP = dO @ V.T
    dS = P * (dP - (P * dP).sum(1, keepdims=True))
    return {"dQ": dS @ K, "dK": dS.T @ Q, "dV": P.T @ dO}


@settings(max_examples=60)
@given(schedules(), st.integers(0, 2**32))
def test_the_numbers_are_the_gradients(schedule, seed):
    p = schedule.problem
    given_ = numbers(p, seed)
    found = schedule.execute(**{name: given_[name] for name in p.operands})
    wanted = gradients(*(given_[name] for name in ("Q", "K", "V", "dO")))
    assert set(found) == {"dQ", "dK", "dV"}
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-10, atol=1e-12)


@every
def test_the_numbers_are_finite_differences(generator):
    p = Attention(5, 3, keys=4, value_dim=2, direction="backward")
    given_ = numbers(p, 7)
    found = generator(p, 60).execute(*(given_[name] for name in p.operands))

    def loss(Q, K, V):
        P = np.exp(Q @ K.T)
        return (given_["dO"] * (P @ V / P.sum(1, keepdims=True))).sum()

    at = {name: given_[name] for name in "QKV"}
    for name in "QKV":
        slopes = np.empty_like(at[name])
        for index in np.ndindex(*slopes.shape):
            step = np.zeros_like(slopes)
            step[index] = 1e-5
            ahead, behind = ({**at, name: at[name] + sign * step} for sign in (1, -1))
            slopes[index] = (loss(**ahead) - loss(**behind)) / 2e-5
        np.testing.assert_allclose(found[f"d{name}"], slopes, rtol=1e-6, atol=1e-8)


def test_operands_by_place_and_by_name():
    p = Attention(3, 2, direction="backward")
    given_ = numbers(p, 1)
    schedule = two_pass_backward(p, 60)
    values = [given_[name] for name in p.operands]
    first = schedule.execute(*values)
    second = schedule.execute(
        *values[:2],
        **{name: given_[name] for name in ("V", "O")},
        dO=given_["dO"],
        Lse=given_["Lse"],
    )
    assert all((first[name] == second[name]).all() for name in first)
    with pytest.raises(DataError, match=r"^Lse is missing: it is an array of shape \(3,\)$"):
        schedule.execute(*values[:5])
    with pytest.raises(DataError, match=r"^7 operands: there are 6, Q, K, V, O, dO, Lse$"):
        schedule.execute(*values, given_["P"])
    with pytest.raises(DataError, match=r"^P is no operand: they are Q, K, V, O, dO, Lse$"):
        schedule.execute(*values, P=given_["P"])
    with pytest.raises(DataError, match=r"^Q is given twice, by its place and by its name$"):
        schedule.execute(*values, Q=given_["Q"])
    with pytest.raises(DataError, match=r"^O has shape \(2, 3\): it must be \(3, 2\)$"):
        schedule.execute(*values[:3], given_["O"].T, *values[4:])


# The best of all, and arguments.


def test_the_generators_of_the_backward_pass():
    assert set(generators("backward")) == set(GENERATORS)
    assert generators("saved backward") == (standard_backward,)


@pytest.mark.parametrize("cache", [20, 60, 400, 5000])
def test_the_best_of_all_is_the_least(cache):
    p = Attention(20, 3, direction="backward")
    costs = {g.__name__: answer(g, p, cache) for g in GENERATORS}
    assert package.best(p, cache).closed_form.io == min(costs.values())
    once = package.best(p, cache, Rules(recompute=False))
    assert not once.recomputes
    # Two passes always compute again, FlashAttention where it has several blocks.
    anew = {"two_pass_backward"} | ({"flash1_backward"} if cache < 255 else set())
    assert once.closed_form.io == min(io for name, io in costs.items() if name not in anew)


WRONG = [
    Attention(4, 2),
    Attention(4, 2, softmax="online"),
    Attention(4, 2, direction="double_backward"),
    AttentionGradient(4, 2),
]


@every
@pytest.mark.parametrize("problem", WRONG, ids=repr)
def test_other_problems_are_refused(generator, problem):
    with pytest.raises(ProblemError, match=f"^{generator.__name__} is for the backward pass"):
        generator(problem, 100)


@pytest.mark.parametrize("generator", [g for g in GENERATORS if g is not standard_backward])
def test_saved_weights_are_for_the_unfused_pass(generator):
    with pytest.raises(ProblemError, match="not for the backward pass of attention with saved_we"):
        generator(Attention(4, 2, direction="backward", saved_weights=True), 100)


@pytest.mark.parametrize("name", ["flash1", "flash2", "small_cache", "standard"])
def test_the_forward_schedules_refuse_a_backward_pass(name):
    with pytest.raises(ProblemError, match=f"^{name} is for the forward pass of attention, not"):
        getattr(package, name)(Attention(4, 2, direction="backward"), 100)


@every
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "8", None])
def test_the_cache_is_a_positive_integer(generator, value):
    with pytest.raises(SizeError) as caught:
        generator(Attention(4, 2, direction="backward"), value)
    assert str(caught.value) == (
        f"cache = {value!r}: the words of fast memory must be a positive integer"
    )


@every
def test_rows_and_cols_come_together(generator):
    p = Attention(4, 2, direction="backward")
    with pytest.raises(SizeError, match=r"^rows = 2, cols = None: give both of them, or none$"):
        generator(p, 99, rows=2)
    with pytest.raises(SizeError, match=r"^cols = 0: the columns of a block must be a positive"):
        generator(p, 99, rows=2, cols=0)


@pytest.mark.parametrize("generator", [g for g in GENERATORS if g is not two_pass_backward])
def test_unknown_rules_for_blocks(generator):
    with pytest.raises(UnknownName, match=r"^blocks = 'square': known are best, published"):
        generator(Attention(4, 2, direction="backward"), 99, blocks="square")


@every
def test_blocks_that_overflow_the_cache_say_what_they_hold(generator):
    p = Attention(8, 4, direction="backward")
    with pytest.raises(SizeError) as caught:
        generator(p, 20, rows=8, cols=8)
    name = generator.__name__
    assert str(caught.value).startswith(f"{name}, given blocks with ")
    words = int(str(caught.value).partition(" holds ")[2].split()[0])
    assert generator(p, words, rows=8, cols=8).closed_form.peak == words


def test_the_delta_pass_holds_four_words():
    assert [delta_peak(Attention(3, 2, value_dim=e, direction="backward")) for e in (1, 2)] == [
        3,
        4,
    ]


@every
def test_numpy_integers_are_integers(generator):
    p = Attention(np.int64(6), np.int16(2), direction="backward")
    schedule = generator(p, np.int32(99), rows=np.int32(2), cols=np.uint8(3))
    assert schedule.count() == schedule.replay() == schedule.closed_form
    numbers = [*vars(schedule.closed_form).values(), *schedule.blocks.values(), schedule.cache]
    assert {type(number) for number in numbers} == {int}
    assert type(schedule.closed_form) is Cost


@pytest.mark.slow
@pytest.mark.parametrize("cache", [64, 700, 4096, 20000])
def test_large_schedules_are_replayed_too(cache):
    p = Attention(200, 32, keys=180, value_dim=48, direction="backward")
    for generator in GENERATORS:
        try:
            schedule = generator(p, cache)
        except SizeError:
            continue
        assert schedule.count() == schedule.replay() == schedule.closed_form
        assert bounds.lower(p, cache).value <= schedule.closed_form.io
