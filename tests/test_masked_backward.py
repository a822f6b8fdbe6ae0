"""The backward pass under a mask: its schedules, what they cost, and the numbers that come out."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

import schedules as package
from pebble import Attention
from pebble.cost import Cost
from pebble.errors import ProblemError, SizeError, UnknownName
from pebble.masked.tapes import counted, written
from pebble.masks import causal, document, from_array, window
from pebble.registry import generators
from pebble.rules import Op
from schedules import (
    flash1_backward,
    flash2_backward,
    small_cache_backward,
    standard_backward,
    two_pass_backward,
)
from schedules.backward import EVERY, peak
from schedules.masked import unfused_backward as unfused
from schedules.masked.backward_products import Cut, products, same_cuts
from tests import laws, naive
from tests.masks_strategies import masks, tables
from tests.tables import as_tuples
from tests.test_backward import chain, dots

FLASH = (flash1_backward, flash2_backward)
PRODUCTS = (standard_backward, small_cache_backward)
GENERATORS = (*FLASH, two_pass_backward, *PRODUCTS)
every = pytest.mark.parametrize("generator", GENERATORS, ids=lambda g: g.__name__)


def masked(mask, d, value_dim=None):
    return Attention(
        mask.n, d, mask.keys, value_dim, direction="backward", mask=mask, empty_rows="zeros"
    )


@st.composite
def problems(draw, most=7):
    if draw(st.booleans()):
        mask = draw(masks(most, most))
    else:
        mask = from_array(draw(tables(draw(st.integers(1, most)), draw(st.integers(1, most)))))
    assume(mask.pairs and not mask.is_full)
    return masked(mask, draw(st.integers(1, 3)), draw(st.integers(1, 3)))


@st.composite
def schedules(draw, generators=GENERATORS, most=7, choices=("best", "published", "given")):
    """Draw a schedule: its generator, problem and cache, and best, published or given blocks."""
    generator, problem = draw(st.sampled_from(generators)), draw(problems(most))
    asked, choice = {}, draw(st.sampled_from(choices))
    if choice == "given":
        asked = {"rows": draw(st.integers(1, most + 1)), "cols": draw(st.integers(1, most + 1))}
    elif generator is not two_pass_backward:
        asked = {"blocks": choice}
    try:
        return generator(problem, draw(st.integers(3, 40) | st.integers(20, 250)), **asked)
    except SizeError:
        reject()


def definition(p):
    """The vertices under a mask, what each is computed from, and the outputs."""
    n, m, d, e = p.n, p.keys, p.d, p.value_dim
    attends = p.mask.to_array()
    pairs = [(i, j) for i, j in product(range(n), range(m)) if attends[i, j]]
    graph = {
        (name, index): ()
        for name, shape in p.operands.items()
        for index in product(*map(range, shape))
    }

    def row(name, i, width):
        return [(name, (i, k)) for k in range(width)]

    delta = {
        i: dots(graph, "zD", (i,), row("dO", i, e), row("O", i, e))
        for i in range(n)
        if attends[i].any()
    }
    for i, j in pairs:
        at = (i, j)
        score = dots(graph, "xs", at, row("Q", i, d), row("K", j, d))
        graph["P", at] = score, ("Lse", (i,))
        dP = dots(graph, ("w", "dP"), at, row("dO", i, e), row("V", j, e))
        graph["G", at] = dP, delta[i]
        graph["dS", at] = ("P", at), ("G", at)
        graph |= {("v", (i, j, c)): (("P", at), ("dO", (i, c))) for c in range(e)}
        graph |= {("q", (i, j, k)): (("dS", at), ("K", (j, k))) for k in range(d)}
        graph |= {("k", (i, j, k)): (("dS", at), ("Q", (i, k))) for k in range(d)}
    outputs = []
    for name, term, axis, size, width in (
        ("dQ", "q", 0, n, d),
        ("dK", "k", 1, m, d),
        ("dV", "v", 1, m, e),
    ):
        for place, k in product(range(size), range(width)):
            along = [pair for pair in pairs if pair[axis] == place]
            if along:
                terms = [((*pair, k), (term, (*pair, k))) for pair in along]
                outputs.append(chain(graph, name, terms))
    return graph, outputs


# What a schedule costs.


@settings(max_examples=max(settings().max_examples, 300))
@given(schedules())
def test_the_count_the_referee_and_the_formula_agree(schedule):
    laws.count_replay_and_formula_agree(schedule)


@given(schedules())
def test_the_peak_is_exact(schedule):
    laws.the_peak_is_exact(schedule)


def played(p, moves, cache):
    """Play moves on the definition; inputs that nothing needs are in it, as whole tiles have them.

    The package's explicit graphs have no such inputs, so the naive referee alone judges them.
    """
    return naive.play(*definition(p), cache, as_tuples(moves))


@settings(max_examples=80)
@given(schedules(most=5))
def test_the_naive_referee_agrees(schedule):
    verdict = played(schedule.problem, schedule.moves(), schedule.cache)
    assert isinstance(verdict, naive.Done), verdict
    assert Cost(*verdict[:5]) == schedule.closed_form
    assert verdict.missing == ()


@given(schedules(most=4), st.data())
def test_no_move_can_be_left_out(schedule, data):
    """The referee objects, or an output is missing, or a word stays red that came off before."""
    moves = list(schedule.moves())
    left_out = moves.pop(data.draw(st.integers(0, len(moves) - 1)))
    verdict = played(schedule.problem, moves, schedule.cache)
    if isinstance(verdict, naive.Done) and not verdict.missing:
        assert left_out.op is Op.DELETE
        assert verdict.deletes == verdict.loads + verdict.computes - 1


@settings(max_examples=60)
@given(st.data(), st.sampled_from(GENERATORS))
def test_the_least_cache_of_the_message_works_and_one_less_does_not(data, generator):
    laws.the_least_cache_of_the_message_works(generator, data.draw(problems()))


@given(problems(), st.sampled_from(GENERATORS), st.integers(1, 8), st.integers(1, 8))
def test_no_blocks_hold_less_than_single_ones(p, generator, rows, cols):
    least = generator(p, 400, rows=1, cols=1).closed_form.peak
    assert least <= generator(p, 400, rows=rows, cols=cols).closed_form.peak


@given(problems(), st.integers(1, 8), st.integers(1, 8))
def test_a_mask_never_makes_a_block_hold_more(p, rows, cols):
    rows, cols = min(rows, p.n), min(cols, p.keys)
    without = Attention(p.n, p.d, p.keys, p.value_dim, direction="backward")
    for generator in (*FLASH, two_pass_backward):
        found, dense = (generator(at, 400, rows=rows, cols=cols) for at in (p, without))
        assert found.closed_form.peak <= dense.closed_form.peak
        assert found.closed_form.io <= dense.closed_form.io
    assert flash1_backward(p, 400, rows=rows, cols=cols).closed_form.peak <= peak(
        without, rows, cols, EVERY
    )


@given(problems(), st.integers(1, 8), st.integers(1, 8), st.integers(1, 4), st.booleans())
def test_no_product_holds_more_than_its_bound(p, rows, cols, depth, keeps_delta):
    parts = products(p, *_takes(keeps_delta), keeps_delta=keeps_delta)

    def holds(part, cut):
        return int(counted(p.graph, lambda tape: part.write(tape, p, cut)).peak)

    for name, cut in same_cuts(p, parts, Cut(rows, cols, depth)).items():
        one = Cut(1, 1, 1)
        assert holds(parts[name], cut) <= parts[name].bound(p, cut)
        assert holds(parts[name], one) == parts[name].bound(p, one)


def _takes(keeps_delta):
    """What the two schedules do with a score and with a dP."""
    return unfused._write_weight, unfused._take_dP if keeps_delta else unfused._write_dP


# The formulas, spelled out in loops over the mask.


class Loops:
    """Counts what a pass reads, pair by pair."""

    def __init__(self, p):
        self.attends = p.mask.to_array()
        self.n, self.m = p.n, p.keys
        self.d, self.e = p.d, p.value_dim
        self.pairs = int(self.attends.sum())
        self.active = int(self.attends.any(1).sum())
        self.touched = int(self.attends.any(0).sum())

    def queries(self, rows, cols):
        """Queries, over the tiles, that have a pair there."""
        return len(
            {(i, i // rows, j // cols) for i, j in zip(*self.attends.nonzero(), strict=True)}
        )

    def keys(self, rows, cols):
        """Keys, over the tiles, that have a pair there."""
        return len(
            {(j, i // rows, j // cols) for i, j in zip(*self.attends.nonzero(), strict=True)}
        )

    def whole_queries(self, rows, cols):
        """Queries in the range of the tiles that have a pair."""
        tiles = {(i // rows, j // cols) for i, j in zip(*self.attends.nonzero(), strict=True)}
        return sum(min(rows, self.n - r * rows) for r, _ in tiles)


sizes = st.integers(1, 8)


@given(problems(), sizes, sizes)
def test_the_words_of_the_flash_schedules(p, rows, cols):
    at, d, e = Loops(p), p.d, p.value_dim
    A, B = at.active, at.touched
    rows, cols = min(rows, p.n), min(cols, p.keys)
    U, W = at.queries(rows, cols), at.whole_queries(rows, cols)
    one = flash1_backward(p, 400, rows=rows, cols=cols).count()
    assert one.loads == B * (d + e) + W * (d + e + 1) + U * e + (U - A) * d
    assert one.stores == U * d + B * (d + e)
    two = flash2_backward(p, 400, rows=rows, cols=cols).count()
    assert two.loads == 2 * A * e + B * (d + e) + W * (d + e + 1) + U + (U - A) * d
    assert two.stores == A + U * d + B * (d + e)
    both = two_pass_backward(p, 400, rows=rows, cols=cols).count()
    assert both.loads == (
        A * (d + 2 * e + 1)
        + at.keys(rows, 1) * (d + e)
        + B * (d + e)
        + at.queries(1, cols) * (d + e + 2)
    )
    assert both.stores == A + A * d + B * (d + e)
    # What is computed again: D where a query goes on in another block; P and dS of each pair.
    assert one.computes - two.computes == (U - A) * (2 * e - 1)
    assert both.computes - two.computes == at.pairs * (2 * d + 2 * e + 1)


@given(problems(), sizes, sizes)
def test_the_words_of_the_products(p, rows, cols):
    at, d, e, Z = Loops(p), p.d, p.value_dim, int(p.mask.pairs)
    rows, cols = min(rows, p.n), min(cols, p.keys)

    def scores(width):
        queries = at.active if width == 1 else at.queries(rows, cols)
        return (queries + at.keys(rows, cols)) * width

    def passes(width, asked):
        return -(-width // min(asked, width))

    # A tile of dV and dK has `rows` keys, one of dQ `rows` queries.
    W = scores(d) + scores(e)
    W += at.queries(1, min(rows, p.keys)) * (d + e) + at.keys(rows, 1) * d
    W += Z * (passes(e, cols) + 2 * passes(d, cols))
    small = small_cache_backward(p, 400, rows=rows, cols=cols).count()
    assert small.loads == W + Z + 2 * at.active * e + 2 * at.active
    assert small.stores == 2 * Z + at.active * (d + 1) + at.touched * (d + e)
    unfused = standard_backward(p, 400, rows=rows, cols=cols).count()
    assert unfused.loads - small.loads == unfused.stores - small.stores == Z


@given(problems())
def test_published_unfused_blocks_read_each_operand_once(p):
    """Q, K, dO (thrice with D), V, K, Q once each, P, dP, dS: 8 Z words, 2 of P, dP, 3 of dS."""
    at, d, e = Loops(p), p.d, p.value_dim
    found = standard_backward(p, 400, blocks="published").count()
    A, B, Z = at.active, at.touched, at.pairs
    W = (A + B) * d + A * e + (A + B) * e + B * d + A * d + 3 * Z
    assert found.loads == W + 2 * Z + 2 * A * e + 2 * A
    assert found.stores == 3 * Z + A * d + B * (d + e) + A
    best = standard_backward(p, 400)
    assert best.closed_form.io == found.io


@pytest.mark.parametrize("shape", [(5, 6), (6, 4), (1, 3), (4, 1)])
def test_all_pairs_but_one(shape):
    """Query 0 does not attend to key 0; the others are as without a mask, in blocks of one key."""
    n, m = shape
    attends = np.ones(shape, bool)
    attends[0, 0] = False
    d, e = 2, 3
    A, B = n - (m == 1), m - (n == 1)
    p = masked(from_array(attends), d, e)
    found = flash2_backward(p, 100, rows=1, cols=1).count()
    visits = n * m - 1
    assert found.loads == 2 * A * e + B * (d + e) + visits * (d + e + 2) + (visits - A) * d
    assert found.stores == A + visits * d + B * (d + e)


def test_four_causal_queries():
    """Blocks of 2 keys: 4 queries meet the first, 2 of them the second too; d = e = 2."""
    p = masked(causal(4), 2)
    found = flash2_backward(p, 28, rows=1, cols=2).count()
    # dO and O; K and V; Q, dO, Lse and D of 6 visits; dQ of the 2 that go on. D; dQ; dK and dV.
    assert found.loads == 2 * 8 + 16 + 6 * 6 + 2 * 2
    assert found.stores == 4 + 6 * 2 + 16
    # 16 for the keys, 6 for the query, 2 for its dQ; a sum, a product and two more.
    assert found.peak == 28
    found = flash1_backward(p, 28, rows=1, cols=2).count()
    assert found.loads == 16 + 6 * 7 + 2 * 2  # O with the visits, no D
    assert found.stores == 6 * 2 + 16
    found = two_pass_backward(p, 99, rows=2, cols=2).count()
    # Q, dO, O and Lse; K and V of 2 and of 4 keys; K and V; Q, dO, Lse and D of 6 visits.
    assert found.loads == 4 * 7 + 6 * 4 + 16 + 6 * 6
    assert found.stores == 4 + 8 + 16
    found = small_cache_backward(p, 99, rows=2, cols=2).count()
    # P and dP: 3 tiles of 2 + 2 vectors; dV, dK and dQ: 6 vectors past the blocks, 10 weights.
    W = 2 * (3 * 4 * 2) + 3 * (6 * 2 + 10)
    assert found.loads == W + 10 + 2 * 8 + 2 * 4  # P as dS is formed; dO and O; Lse and D
    assert found.stores == 2 * 10 + 8 + 16 + 4  # P and dS; dQ; dK and dV; D
    unfused = standard_backward(p, 99, rows=2, cols=2).count()
    assert (unfused.loads, unfused.stores) == (found.loads + 10, found.stores + 10)  # dP


def test_a_query_and_a_key_that_nothing_meets_cost_nothing():
    """Queries 0 and 2 attend to keys 0 and 2; d = e = 1, blocks of 1."""
    attends = np.zeros((3, 3), bool)
    attends[np.ix_([0, 2], [0, 2])] = True
    p = masked(from_array(attends), 1)
    found = flash2_backward(p, 99, rows=1, cols=1).count()
    # Those 2 x 2 alone without a mask, in 2 blocks of one key.
    dense = flash2_backward(Attention(2, 1, direction="backward"), 99, rows=1, cols=1).count()
    assert found == dense
    for generator in (flash1_backward, two_pass_backward, *PRODUCTS):
        found = generator(p, 99, rows=1, cols=1).count()
        without = generator(Attention(2, 1, direction="backward"), 99, rows=1, cols=1).count()
        assert (found.io, found.computes) == (without.io, without.computes)


@pytest.mark.parametrize("mask", [causal(65536), window(65536, 4096, 0)], ids=lambda m: m.name)
def test_long_sequences_are_counted(mask):
    p, cols, d = masked(mask, 64), 256, 64
    found = flash2_backward(p, 70000, rows=1, cols=cols)
    T = 65536 // cols
    if mask.name == "causal":  # the block of keys b is met by the queries from its own on
        visits = sum(65536 - b * cols for b in range(T))
    else:  # and by no query more than 4096 past its last key
        visits = sum(min(65536 - b * cols, cols + 4096) for b in range(T))
    loads = 2 * 65536 * d + 65536 * 2 * d + visits * (2 * d + 2) + (visits - 65536) * d
    assert found.count() == found.closed_form
    assert found.count().loads == loads
    assert found.count().stores == 65536 + visits * d + 65536 * 2 * d
    assert found.count().peak == 2 * cols * 2 * d + 4 * d - d + 2 + 4
    small = small_cache_backward(p, 70000, rows=256, cols=64)
    assert small.count() == small.closed_form


# Moves in vain.


@given(schedules())
def test_nothing_is_in_vain_but_whole_tiles_and_what_is_computed_again(schedule):
    p, found = schedule.problem, schedule.waste()
    vain = 0
    if schedule.name in ("flash1_backward", "flash2_backward"):
        at, (rows, cols) = Loops(p), (schedule.blocks["rows"], schedule.blocks["cols"])
        unused = at.whole_queries(rows, cols) - at.queries(rows, cols)
        vain = unused * (p.d + p.value_dim + 1)
    assert (found.dead_loads, found.dead_stores, found.dead_computes) == (vain, 0, 0)
    graph = p.graph
    assert found.recomputes == schedule.closed_form.computes - graph.size + graph.input_words


@given(schedules(choices=["best"]))
def test_the_best_blocks_do_nothing_in_vain(schedule):
    assert schedule.waste().none or schedule.recomputes
    assert schedule.waste().dead_loads == 0


# Numbers.


def numbers(p, seed):
    """Draw operands; the logsumexp of a query that attends to nothing is never read."""
    rng = np.random.default_rng(seed)
    n, m, d, e = p.n, p.keys, p.d, p.value_dim
    Q, K, V, dO = (rng.normal(size=s) for s in ((n, d), (m, d), (m, e), (n, e)))
    weights = np.where(p.mask.to_array(), np.exp(Q @ K.T), 0)
    sums = weights.sum(1)
    Lse = np.log(np.where(sums > 0, sums, 1))
    return {"Q": Q, "K": K, "V": V, "O": weights / np.exp(Lse)[:, None] @ V, "dO": dO, "Lse": Lse}


def gradients(p, Q, K, V, dO):
    """The gradients of <dO, O>, where rows of O that attend to nothing are zeros."""
    P = np.where(p.mask.to_array(), np.exp(Q @ K.T), 0)
    sums = P.sum(1, keepdims=True)
    P = P / np.where(sums > 0, sums, 1)
    dP = dO @ V.T
    dS = P * (dP - (P * dP).sum(1, keepdims=True))
    return {"dQ": dS @ K, "dK": dS.T @ Q, "dV": P.T @ dO}


@given(schedules(), st.integers(0, 2**32))
def test_the_numbers_are_the_gradients(schedule, seed):
    p = schedule.problem
    operands = numbers(p, seed)
    found = schedule.execute(**operands)
    wanted = gradients(p, *(operands[name] for name in ("Q", "K", "V", "dO")))
    assert set(found) == {"dQ", "dK", "dV"}
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-10, atol=1e-10)
    attends = p.mask.to_array()
    assert (found["dQ"][~attends.any(1)] == 0).all()
    assert (found["dK"][~attends.any(0)] == 0).all()
    assert (found["dV"][~attends.any(0)] == 0).all()


@every
def test_the_numbers_are_finite_differences(generator):
    p = masked(document([2, 3], causal=True), 3, 2)
    operands = numbers(p, 7)
    found = generator(p, 60).execute(**operands)
    attends = p.mask.to_array()

    def loss(Q, K, V):
        P = np.where(attends, np.exp(Q @ K.T), 0)
        return (operands["dO"] * (P @ V / P.sum(1, keepdims=True))).sum()

    at = {name: operands[name] for name in "QKV"}
    for name in "QKV":
        slopes = np.empty_like(at[name])
        for index in np.ndindex(*slopes.shape):
            step = np.zeros_like(slopes)
            step[index] = 1e-5
            ahead, behind = ({**at, name: at[name] + sign * step} for sign in (1, -1))
            slopes[index] = (loss(**ahead) - loss(**behind)) / 2e-5
        np.testing.assert_allclose(found[f"d{name}"], slopes, rtol=1e-6, atol=1e-8)


# The best of all, and arguments.


def test_the_generators_under_a_mask():
    assert set(generators("masked backward")) >= set(GENERATORS)
    p = masked(causal(20), 3)
    for cache in (20, 60, 400, 5000):
        costs = [laws.answer(g, p, cache) for g in generators("masked backward")]
        assert package.best(p, cache).closed_form.io == min(costs)


@every
def test_an_empty_row_or_column_changes_no_block(generator):
    """Keys past the last that is used cost nothing, so the words are those without them."""
    attends = np.tril(np.ones((6, 6), bool))
    wider = np.hstack([attends, np.zeros((6, 3), bool)])
    found, same = (
        generator(masked(from_array(rows), 2), 99, rows=2, cols=3).count()
        for rows in (wider, attends)
    )
    assert found == same


@every
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "8", None])
def test_the_cache_is_a_positive_integer(generator, value):
    with pytest.raises(SizeError) as caught:
        generator(masked(causal(4), 2), value)
    assert str(caught.value) == (
        f"cache = {value!r}: the words of fast memory must be a positive integer"
    )


@every
def test_rows_and_cols_come_together(generator):
    p = masked(causal(4), 2)
    with pytest.raises(SizeError, match=r"^rows = 2, cols = None: give both of them, or none$"):
        generator(p, 99, rows=2)
    with pytest.raises(SizeError, match=r"^cols = 0: the columns of a block must be a positive"):
        generator(p, 99, rows=2, cols=0)


@pytest.mark.parametrize("generator", [g for g in GENERATORS if g is not two_pass_backward])
def test_unknown_rules_for_blocks(generator):
    with pytest.raises(UnknownName, match=r"^blocks = 'square': known are best, published"):
        generator(masked(causal(4), 2), 99, blocks="square")


@every
def test_blocks_that_overflow_the_cache_say_what_they_hold(generator):
    p = masked(causal(8), 4)
    with pytest.raises(SizeError) as caught:
        generator(p, 20, rows=8, cols=8)
    assert str(caught.value).startswith(f"{generator.__name__}, given blocks with rows = 8, cols")
    words = int(str(caught.value).partition(" holds ")[2].split()[0])
    assert generator(p, words, rows=8, cols=8).closed_form.peak == words


def test_published_blocks():
    p = masked(causal(100), 4)
    for generator in FLASH:
        # ceil(M / 4d) keys with K, V, dK and dV fill the cache at d = e, unless all keys fit.
        with pytest.raises(SizeError, match="published blocks with rows = 4, cols = "):
            generator(p, 1000, blocks="published")
        assert generator(p, 1664, blocks="published").blocks == {"rows": 4, "cols": 100}
    assert set(small_cache_backward(p, 403, blocks="published").blocks.values()) == {10, 4}
    assert standard_backward(p, 2000, blocks="published").blocks["dQ_rows"] == 100


def test_the_blocks_of_a_schedule():
    p = masked(causal(12), 2, 3)
    assert flash2_backward(p, 60).blocks == {"rows": 1, "cols": 4}
    # 5 rows fit, but blocks of 4 see 4 + 8 + 12 keys, and those of 5 see 5 + 10 + 12.
    assert two_pass_backward(p, 60).blocks == {"rows": 4, "cols": 4}
    assert standard_backward(p, 60, rows=4, cols=2).blocks == {
        **{"P_rows": 4, "P_cols": 2, "dV_rows": 4, "dV_cols": 2, "dP_rows": 4, "dP_cols": 2},
        **{"dQ_rows": 4, "dQ_cols": 2, "dK_rows": 4, "dK_cols": 2},
    }


@every
def test_a_masked_forward_pass_is_refused(generator):
    p = Attention(4, 2, mask=causal(4))
    with pytest.raises(ProblemError, match=f"^{generator.__name__} is for the backward pass"):
        generator(p, 100)


@every
def test_numpy_integers_are_integers(generator):
    p = masked(causal(6), np.int16(2))
    for asked in ({}, {"rows": np.int32(2), "cols": np.uint8(3)}):
        schedule = generator(p, np.int32(99), **asked)
        assert schedule.count() == schedule.replay() == schedule.closed_form
        found = [*vars(schedule.closed_form).values(), *schedule.blocks.values(), schedule.cache]
        assert {type(number) for number in found} == {int}


# The tape's pieces of a dimension.


@pytest.mark.parametrize(("width", "size"), [(1, 1), (5, 2), (6, 2), (7, 3), (3, 9), (2, 1)])
def test_chunks_are_counted_as_they_are_written(width, size):
    p = masked(causal(3), width)
    V = p.graph["V"]

    def read(tape):
        for J in tape.key_blocks(2, 2):
            for C in tape.chunks(width, size):
                tape.load(V[J.members, C])
                if not C.first:
                    tape.delete(V[J.members, C])
            tape.delete(V[J.members, next(iter(tape.chunks(width, size)))])
            yield

    codes = np.concatenate(list(written(p.graph, read)))
    ops = np.bincount(codes & 7, minlength=4)
    found = counted(p.graph, read)
    assert tuple(ops[:4]) == tuple(found.words) == (3 * width, 0, 0, 3 * width)
    changes = np.where(codes & 7 == 0, 1, -1)
    assert np.cumsum(changes).max() == found.peak
    assert len(set(codes.tolist())) == len(codes)  # every word comes once and goes once
