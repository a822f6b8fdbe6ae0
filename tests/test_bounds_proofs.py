"""What the proofs of theorems A and B say of one segment, and how near the bounds come."""

from math import ceil, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pebble
import schedules
from pebble import bounds
from pebble.bounds import segments
from tests.strategies import schedules as some_schedules

ONCE = pebble.Rules(recompute=False)
SHARES = st.lists(st.floats(0, 1), min_size=5, max_size=5).filter(lambda s: sum(s) > 0)


def f(r, d, w):
    """Theorem A's f as a float, written down apart from the exact one."""
    c = (2 * w**3 + 9 * w * r + 2 * (w * w + 3 * r) ** 1.5) / 27 if w * w <= r else w * r
    return max(c, r * r / (4 * (2 * d - w)), 2 * r)


def split(r, shares):
    return [r * share / sum(shares) for share in shares]


# ---- the largest a segment can be: no split of R is above it, and the best split reaches it


@given(SHARES, st.floats(1, 1e6), st.integers(1, 128), st.data())
def test_no_split_of_a_segment_is_above_f(shares, r, d, data):
    w = data.draw(st.integers(0, d))
    charged, operands, values, sums, products = split(r, shares)
    pairs = charged + (operands / (2 * d)) ** 2
    found = 2 * sqrt(pairs * values * sums) + 2 * products + w * pairs
    assert found <= f(r, d, w) * (1 + 1e-9)


@given(SHARES, st.floats(1, 1e6))
def test_no_split_of_a_segment_is_above_g(shares, r):
    charged, queries, keys, values, sums = split(r, shares)
    found = sqrt(queries * keys * charged) + sqrt(charged * values * sums)
    assert found <= (r / 3) ** 1.5 * (1 + 1e-9)


@given(st.floats(1, 1e6), st.integers(1, 128), st.data())
def test_f_is_reached(r, d, data):
    w = data.draw(st.integers(0, d))
    steps = [r * k / 4000 for k in range(4001)]
    charged = max(w * t + sqrt(t) * (r - t) for t in steps)
    full = max(w * (t / (2 * d)) ** 2 + t / (2 * d) * (r - t) for t in steps)
    assert max(charged, full, 2 * r) >= f(r, d, w) * (1 - 1e-3)


@given(st.integers(1, 10**9), st.integers(1, 10**6), st.integers(1, 128), st.data())
def test_fewest_is_the_quotient_by_f(work, r, d, data):
    w = data.draw(st.integers(0, d))
    quotient = work / f(r, d, w)
    assert quotient - 1e-3 <= segments.fewest(work, r, 4 * (2 * d - w), w) < quotient + 1 + 1e-3


# ---- the proofs' inequalities, segment by segment, on real games in which nothing is recomputed


@settings(max_examples=40, deadline=None)
@given(some_schedules(), st.integers(1, 60), st.data())
def test_no_segment_of_a_schedule_does_more_than_is_proved(schedule, x, data):
    """With each vertex computed once, every computing instance is the useful, or chosen, one."""
    p = schedule.problem
    try:
        schedule.replay(ONCE)
    except pebble.IllegalMove:
        return  # it computes scores anew
    w, r = data.draw(st.integers(0, p.d)), schedule.cache + x
    first_score, first_output = ("s", 1) if p.d > 1 else ("x", 0), first_step(p)
    for theorem in "AB":
        loads = work = 0
        for move in schedule.moves():
            family, index = move.vertex if move.op is not pebble.Op.DELETE else ("", ())
            computes = move.op is pebble.Op.COMPUTE
            # The X-th load ends a segment; what is counted by then must fit in one.
            if loads == x:
                loads = work = 0
            loads += move.op is pebble.Op.LOAD
            if computes:
                loads += (family, *index[1:2]) == first_output
                if theorem == "A":
                    work += w * (family == "P") + 2 * output_products(p, family, index)
                else:
                    loads += (family, *index[2:]) == first_score
                    work += 2 * output_products(p, family, index)
                    work += 2 * score_products(p, family, index)
            quadratic, weight = (4 * (2 * p.d - w), w) if theorem == "A" else (None, 0)
            assert segments.fewest(work, r, quadratic, weight) <= 1


def first_step(p):
    """What is made of the first product of an output's chain, and where it stands in it."""
    if p.keys == 1:
        return ("O", 0)
    return ("or", 1) if p.online and p.block == 1 else ("o", 1)


def output_products(p, family, index):
    """How many products y a compute uses."""
    if family == "o":
        both = index[1] == 1 and not (p.online and p.block == 1)
        return 2 if both else 1
    if family == "or":
        return int(p.block == 1 and index[1] == 1)
    return int(family == "O" and p.keys == 1)


def score_products(p, family, index):
    """How many products x a compute adds, or makes where they are the scores."""
    if p.d == 1:
        return int(family == "x")
    return (2 if index[2] == 1 else 1) if family == "s" else 0


# ---- against what schedules cost, by their formulas


def flash2(n, d, cache):
    rows = (cache - 2 * d - 3) // (2 * d + 1)
    return 2 * n * d + 2 * n * d * ceil(n / rows) if rows > 0 else float("inf")


def standard(n, d):
    """Formulas that some papers print: every score is written, read, written and read."""
    return 4 * n * n + 4 * n * d


def small_cache(n, d, side):
    """Square tiles of `side`, which divides n and d."""
    return 4 * n * n * d // side + n * n + n * d + 2 * n


@given(st.integers(1, 3000), st.integers(1, 128), st.integers(8, 10**6))
def test_no_bound_is_above_flash2(n, d, cache):
    p = pebble.Attention(n=n, d=d)
    for rules in (pebble.HONG_KUNG, ONCE):
        assert bounds.lower(p, cache, rules).value <= flash2(n, d, cache)


@given(st.integers(1, 40), st.integers(1, 8), st.integers(1, 40), st.integers(0, 400))
def test_no_bound_is_above_square_tiles(rows, cols, side, more):
    n, d, cache = rows * side, cols * side, 4 * side * side + more % (8 * side + 4)
    p = pebble.Attention(n=n, d=d)
    for rules in (pebble.HONG_KUNG, ONCE):
        assert bounds.lower(p, cache, rules).value <= small_cache(n, d, side)


@given(st.integers(1, 60), st.integers(1, 40), st.integers(0, 5000))
def test_no_bound_is_above_the_standard_schedule(n, d, more):
    p = pebble.Attention(n=n, d=d)
    cache = n * d + 2 * n + d + 8 + more  # a whole operand and what streams beside it
    assert bounds.lower(p, cache, ONCE).value <= standard(n, d)


@given(
    st.integers(1, 5000),
    st.integers(1, 5000),
    st.integers(1, 64),
    st.integers(1, 64),
    st.integers(5, 60_000),
)
def test_no_bound_is_above_any_schedule(n, keys, d, e, cache):
    p = pebble.Attention(n, d, keys=keys, value_dim=e)
    for generator in (schedules.flash1, schedules.flash2, schedules.small_cache):
        try:
            io = generator(p, cache).closed_form.io
        except pebble.SizeError:
            continue
        assert bounds.lower(p, cache, ONCE).value <= io
        assert bounds.lower(p, cache).value <= io


# ---- and how near they come


@pytest.mark.parametrize("quarters", range(12, 65, 2))
def test_large_caches_are_within_8_percent(quarters):
    """n = 65536, d = 64, from M = 3 d^2 to 16 d^2, with and without recomputation."""
    n, d = 65536, 64
    cache = quarters * d * d // 4
    p = pebble.Attention(n=n, d=d)
    known = min(flash2(n, d, cache), small_cache(n, d, 1 << (cache // 4).bit_length() // 2 - 1))
    assert known / bounds.lower(p, cache, ONCE).value <= 1.05
    assert known / bounds.lower(p, cache).value <= 1.05


@pytest.mark.parametrize(("d", "e"), [(64, 1), (64, 8), (64, 32), (64, 48), (192, 128), (576, 512)])
@pytest.mark.parametrize("squares", [4.75, 6, 16])
def test_narrow_values_are_within_4_percent(d, e, squares):
    """For e <= d the leading constant is (d + e)^2, which flash2 has; 4 d e is far less."""
    p = pebble.Attention(n=2**20, d=d, value_dim=e)
    cache = int(squares * d * d)
    bound = bounds.lower(p, cache)
    assert bound.name == "output sums"
    assert bound.value == pytest.approx(p.pairs * (d + e) ** 2 / cache, rel=2e-3)
    assert schedules.flash2(p, cache).closed_form.io / bound.value <= 1.04


def test_wide_values_have_the_constant_4_d_e():
    p = pebble.Attention(n=2**20, d=64, value_dim=256)
    assert bounds.output_sums(p, 2**16).value == pytest.approx(
        p.pairs * 4 * 64 * 256 / 2**16, rel=2e-3
    )


@pytest.mark.parametrize(
    ("squares", "least"), [(2, 1.4905), (3, 1.2110), (4, 0.9851), (4.2, 0.9449)]
)
def test_a_weight_between_is_found(squares, least):
    """Of Z, by the best w of a fine grid; w = 0 gives 1.4142, 1.1547, 0.9755 and 0.9400."""
    p = pebble.Attention(n=2**20, d=64)
    found = bounds.output_sums(p, int(squares * 4096)).value / p.pairs
    assert found == pytest.approx(least, rel=2e-3)


# ---- how they grow


@given(st.integers(1, 200), st.integers(1, 32), st.integers(1, 200), st.integers(1, 5000))
def test_a_larger_cache_has_no_larger_bound_but_for_the_search(n, d, keys, cache):
    """For each X and w the formula falls with M; what is looked for may miss the best by little."""
    p = pebble.Attention(n, d, keys=keys)
    for rules in (pebble.HONG_KUNG, ONCE):
        here, beyond = (bounds.lower(p, c, rules).value for c in (cache, cache + 1))
        assert beyond <= here * 1.01 + 2


@given(st.integers(1, 10**9), st.integers(1, 10**5), st.integers(1, 64), st.data())
def test_segments_grow_with_the_work_and_shrink_with_their_room(work, r, d, data):
    w = data.draw(st.integers(0, d))
    quadratic = 4 * (2 * d - w)
    here = segments.fewest(work, r, quadratic, w)
    assert segments.fewest(work + 1, r, quadratic, w) >= here
    assert segments.fewest(work, r + 1, quadratic, w) <= here
