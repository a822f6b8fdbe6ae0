"""The bounds beyond the forward pass: what their proofs say, and what no schedule may undercut."""

from fractions import Fraction
from math import sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pebble
import schedules
from pebble import bounds
from pebble.bounds import gradients
from pebble.registry import generators
from tests import naive
from tests.tables import as_dict

ONCE = pebble.Rules(recompute=False)
POSITIVE = st.floats(1e-3, 1e3)
KINDS = ["backward", "saved backward", "double_backward", "gradient"]


def problem(kind, n, d, keys=None, value_dim=None):
    if kind == "gradient":
        return pebble.AttentionGradient(n, d)
    saved = kind == "saved backward"
    direction = "backward" if saved else kind
    return pebble.Attention(n, d, keys, value_dim, direction=direction, saved_weights=saved)


def in_shares(parts, total):
    return [total * part / sum(parts) for part in parts]


# ---- no split of a segment's words adds more than is proved


@given(st.lists(POSITIVE, min_size=3, max_size=3), st.floats(1, 1e6), st.floats(1e-6, 10))
def test_no_split_is_above_the_largest_product(parts, r, g):
    chains, operands, charged = in_shares(parts, r)
    found = chains * operands * (charged + g * operands**2)
    assert found <= 27 / 256 * r**3 * max(g * r, 9 / 20) * (1 + 1e-9)


def test_the_largest_product_is_reached_for_long_segments():
    g, r = 1.0, 100.0
    found = max((r - t) * g * t**3 for t in (r * k / 1000 for k in range(1001)))
    assert found == pytest.approx(27 / 256 * g * r**4)


@given(st.lists(POSITIVE, min_size=7, max_size=7), st.floats(0, 1e3), st.integers(1, 64))
def test_no_split_of_a_backward_segment_is_above_theorem_c(parts, charged, b):
    Q, K, dO, V, dQ, dK, dV = parts
    p = charged + Q * K / b**2
    r = charged + min(Q, dO) * min(K, V) / b**2
    found = sqrt(p * dO * dV) + sqrt(r * K * dQ) + sqrt(r * Q * dK)
    total = sum(parts) + charged
    g = sqrt(3) / 36 / b**2
    assert found**2 <= 27 / 256 * total**3 * max(g * total, 9 / 20) * (1 + 1e-9)


def test_the_share_of_theorem_c_is_above_the_root_and_near_it():
    share = Fraction(*gradients.SHARE)
    assert 36**2 * share**2 > 3  # share > sqrt(3) / 36
    assert 36**2 * (share - Fraction(1, 10**6)) ** 2 < 3
    # It is reached with a_Q = a_dO = h and a_K = a_V = u, h = (1 - 2u) / 2, u = (3 - sqrt(3)) / 6.
    u = (3 - sqrt(3)) / 6
    h = (1 - 2 * u) / 2
    assert h * u * h + h * u * (u + h) == pytest.approx(sqrt(3) / 36)


@given(st.lists(POSITIVE, min_size=7, max_size=7), POSITIVE, POSITIVE)
def test_no_split_of_a_backward_segment_is_above_theorem_d(parts, first, second):
    Q, K, dO, V, dQ, dK, dV = parts
    found = sqrt(first) * (13 * sqrt(Q * K) + 15 * sqrt(dO * dV))
    found += sqrt(second) * (15 * sqrt(dO * V) + 13 * sqrt(K * dQ) + 13 * sqrt(Q * dK))
    assert found <= 26 / 9 * (sum(parts) + first + second) ** 1.5 * (1 + 1e-9)


def test_theorem_d_is_reached():
    # c = R / 3 of which c2 is twice c1; operands a share, chains the rest of 2R / 3.
    c = 1 / 3
    best = 0.0
    for share in (k / 200 for k in range(1, 200)):
        Q, dQ = share / 3, (1 - share) / 3
        found = 13 * sqrt(c / 3) * Q + 2 * 13 * sqrt(2 * c / 3) * sqrt(Q * dQ)
        best = max(best, found)
    assert best == pytest.approx(26 / 9, rel=1e-3)


@given(st.lists(POSITIVE, min_size=6, max_size=6), POSITIVE, st.integers(1, 64))
def test_no_split_of_a_gradient_segment_is_above_theorem_f(parts, charged, d):
    s, dO, A2, h, T, _ = parts
    pairs = charged + min(s, dO) * min(A2, h) / d**2
    total = s + dO + A2 + h + T + charged
    assert pairs * A2 * T <= 27 / 256 * total**3 * max(total / 54 / d**2, 9 / 20) * (1 + 1e-9)


@given(st.lists(POSITIVE, min_size=5, max_size=5), POSITIVE, POSITIVE)
def test_no_split_of_a_gradient_segment_is_above_theorem_g(parts, first, second):
    S1, A2, T, dO, h = parts
    found = sqrt(first * S1 * A2) + sqrt(second * A2 * T) + sqrt(second * dO * h)
    assert found <= ((sum(parts) + first + second) / 3) ** 1.5 * (1 + 1e-9)


# ---- rounding


@given(st.integers(1, 10**9), st.integers(1, 10**5), st.integers(1, 99), st.integers(1, 10**4))
def test_shares_is_the_quotient(work, r, top, bottom):
    most = sqrt(27 / 256 * r**3 * max(top / bottom * r, 9 / 20))
    quotient = work / max(most, r)
    assert quotient * (1 - 1e-9) <= gradients.shares(work, r, top, bottom)
    assert gradients.shares(work, r, top, bottom) < quotient * (1 + 1e-9) + 1


@given(st.integers(1, 10**9), st.integers(1, 10**5))
def test_products_is_the_quotient(work, r):
    quotient = work / max(26 / 9 * r**1.5, 15 * r)
    assert quotient * (1 - 1e-9) <= gradients.products(work, r) < quotient * (1 + 1e-9) + 1


@given(st.integers(1, 10**5), st.integers(1, 300))
def test_most_is_not_below_any_segment_length_nor_above_all(work, cache):
    count = lambda r: gradients.products(work, r)
    brute = max(x * (count(cache + x) - 1) for x in range(1, work // 15 + 20))
    assert max(brute, 0) * 0.97 - 2 <= gradients.most(count, work, cache) <= max(brute, 0)


# ---- on real games, segment by segment


@settings(deadline=None, max_examples=30)
@given(st.data(), st.integers(1, 60))
def test_no_segment_of_a_backward_schedule_does_more_than_is_proved(data, x):
    n, keys, d, e = (data.draw(st.integers(1, 5)) for _ in range(4))
    p = problem("backward", n, d, keys, e)
    try:
        schedule = data.draw(st.sampled_from(generators("backward")))(p, 70)
    except pebble.SizeError:
        return
    if schedule.recomputes:
        return
    r = schedule.cache + x
    # A chain's first step: its first sum, or its one product; and how many terms a vertex adds.
    chains = {"dQ": ("q", 1, keys), "dK": ("k", 0, n), "dV": ("v", 0, n)}
    pairs = {"s": ("x", 2, d), "dP": ("w", 2, e)}
    for each, weight in (chains, dict.fromkeys("qkv", 1)), (chains | pairs, None):
        loads = work = 0
        for move in schedule.moves():
            if move.op is pebble.Op.DELETE:
                continue
            if loads == x:
                loads = work = 0
            loads += move.op is pebble.Op.LOAD
            if move.op is not pebble.Op.COMPUTE:
                continue
            family, index = move.vertex
            for total, (term, axis, length) in each.items():
                terms = (family == total) * (1 + (index[axis] == 1)) if family == total else 0
                first = family == total and index[axis] == 1
                if length == 1 and family == term:
                    terms, first = 1, True
                loads += first
                work += terms * (1 if weight else {"dV": 15, "dP": 15}.get(total, 13))
            # What a segment did so far fits in one.
            if weight:
                share = (gradients.SHARE[0], gradients.SHARE[1] * min(d, e) ** 2)
                assert gradients.shares(work, r, *share) <= 1
            else:
                assert gradients.products(work, r) <= 1


# ---- against optima and schedules


@pytest.mark.parametrize(
    "kind",
    [
        "saved backward",
        pytest.param("backward", marks=pytest.mark.slow),
        pytest.param("gradient", marks=pytest.mark.slow),
    ],
)
def test_no_bound_is_above_the_optimum_of_the_least_problem(kind):
    p = problem(kind, 1, 1)
    least = pebble.explicit(p.graph).least_cache()
    for cache, recompute in (least, True), (least, False), (least + 3, False):
        best = naive.optimum(*as_dict(p.graph), cache, recompute=recompute)
        for bound in bounds.every(p, cache, pebble.Rules(recompute=recompute)):
            assert bound.value <= best


@given(
    st.sampled_from(KINDS),
    st.integers(1, 5000),
    st.integers(1, 5000),
    st.integers(1, 64),
    st.integers(1, 64),
    st.integers(8, 60_000),
)
@settings(deadline=None)
def test_no_bound_is_above_any_schedule(kind, n, keys, d, e, cache):
    p = problem(kind, n, d, keys, e)
    for generator in generators(kind):
        try:
            schedule = generator(p, cache)
        except pebble.SizeError:
            continue
        rules = pebble.HONG_KUNG if schedule.recomputes else ONCE
        assert bounds.lower(p, cache, rules).value <= schedule.closed_form.io


@pytest.mark.parametrize("squares", [6, 7, 8, 10, 12, 14, 16])
def test_the_cheapest_backward_schedule_is_within_1_45(squares):
    p = problem("backward", 65536, 64)
    cache = squares * 64**2
    ratio = schedules.best(p, cache).closed_form.io / bounds.lower(p, cache).value
    assert 1.3 < ratio <= 1.38


@pytest.mark.parametrize("cache", [2**k for k in range(6, 21)])
def test_every_cache_is_within_1_65(cache):
    p = problem("backward", 65536, 64)
    best = schedules.best(p, cache).closed_form.io
    assert best / bounds.lower(p, cache).value <= 1.65


def test_leading_constants():
    n, d, M = 2**20, 64, 2**17
    p = problem("backward", n, d)
    # 3 Z d times M, by F(2M) = (2M)^2 sqrt(27 sqrt(3) / (36 * 256)) / d: 12 / sqrt(0.75 sqrt(3)).
    assert bounds.gradient_sums(p, M).value * M / (n * d) ** 2 == pytest.approx(10.528, rel=1e-2)
    # 2 d^2 / (M + 4 d^2)
    trees = 2 * n * n * d * d // (M + 4 * d * d)
    assert bounds.gradient_trees(p, M).value == pytest.approx(trees, rel=1e-3)
    small = bounds.all_products_once(p, 1024).value / n**2
    # 69 / (13 * 2 / sqrt(3)) = 4.596 each way
    assert small == pytest.approx(2 * 69 / (26 / sqrt(3)) * d / 32 - 2, rel=1e-3)
    g = problem("gradient", n, d)
    once = bounds.theory_sums_once(g, 1024).value / n**2
    assert once == pytest.approx(6 * d / 32 - 2, rel=1e-3)  # 6 n^2 d / sqrt(M), less 2 n^2
    wanted = 4 * sqrt(2)  # F = R^2 / sqrt(512) / d at R = 2M
    assert bounds.theory_sums(g, M).value * M / (n * d) ** 2 == pytest.approx(wanted, rel=2e-2)


# ---- which apply


def names(kind, cache, rules):
    p = problem(kind, 64, 4)
    return {bound.name for bound in bounds.every(p, cache, rules)}


def test_which_apply():
    slide = pebble.Rules(sliding=True)
    assert "gradient trees" in names("backward", 32, pebble.HONG_KUNG)
    assert "gradient trees" not in names("backward", 32, slide)
    assert names("backward", 8, ONCE) >= {"gradient sums", "all products", "trivial"}
    assert names("saved backward", 8, slide) == {"gradient sums", "trivial"}
    assert names("double_backward", 8, ONCE) >= {"all sums", "trivial"}
    assert "all products" not in names("gradient", 8, pebble.HONG_KUNG)
    assert names("gradient", 8, ONCE) == {"all products", "sums of T", "trivial"}


def test_theorem_d_with_recomputation_needs_a_small_cache():
    assert bounds.all_products(problem("backward", 4096, 64), 4096) is not None  # M <= 3 d^2
    assert bounds.all_products(problem("backward", 4096, 64), 4 * 64**2) is None
    assert bounds.all_products(problem("backward", 4096, 64, value_dim=8), 4096) is None


@pytest.mark.parametrize("kind", KINDS)
def test_recomputation_only_lowers_bounds(kind):
    for cache in (8, 64, 512, 4096):
        p = problem(kind, 300, 16)
        assert bounds.lower(p, cache).value <= bounds.lower(p, cache, ONCE).value


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "8", None])
def test_the_cache_is_a_positive_integer(value):
    p, g = problem("backward", 4, 2), problem("gradient", 4, 2)
    each = [gradients.gradient_trees, gradients.gradient_sums, gradients.all_products]
    each += [gradients.all_products_once, gradients.saved_sums]
    calls = [(bound, p) for bound in each] + [(gradients.theory_sums, g)]
    for bound, of in [*calls, (gradients.theory_sums_once, g)]:
        with pytest.raises(pebble.SizeError, match=r"^cache = .*must be a positive integer$"):
            bound(of, value)
