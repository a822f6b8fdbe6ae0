"""Queries in other orders: what they cost, and that the results stay the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import schedules
from pebble import Attention, MaskError, ProblemError, SizeError, UnknownName, masks
from pebble.masked.row_orders import by_center, cuthill_mckee, greedy
from schedules.reordered import ORDERS
from tests.masks_strategies import told_masks

FORWARD = (schedules.gather, schedules.flash1, schedules.small_cache)


@st.composite
def problems(draw, direction="forward"):
    mask, _ = draw(told_masks(7, 7).filter(lambda told: told[0].pairs and not told[0].is_full))
    return Attention(mask.n, 2, mask.keys, 1, mask=mask, empty_rows="zeros", direction=direction)


def shuffled_documents(seed=0):
    """Give a mask of 8 groups of 8 keys, its 64 queries in any order."""
    random = np.random.default_rng(seed)
    return masks.document([8] * 8).permuted(random.permutation(64))


@given(told_masks(9, 9).filter(lambda told: told[0].pairs), st.integers(1, 5))
def test_orders_have_each_query_once(told, rows):
    mask, _ = told
    for order in by_center(mask), cuthill_mckee(mask), greedy(mask, rows):
        assert sorted(order.tolist()) == list(range(mask.n))


@given(problems(), st.sampled_from(FORWARD), st.sampled_from(ORDERS), st.integers(0, 99))
def test_results_are_in_the_given_order(p, generator, order, seed):
    random = np.random.default_rng(seed)
    Q, K, V = (random.normal(size=shape) for shape in p.operands.values())
    found = schedules.reordered(generator, p, 60, order)
    plain = generator(p, 60)
    np.testing.assert_allclose(
        found.execute(Q, K, V=V)["O"], plain.execute(Q, K, V)["O"], rtol=1e-12, atol=1e-14
    )
    assert found.before == plain.closed_form
    assert found.after == found.schedule.replay()
    if order == "best":
        assert found.after.io <= found.before.io


def test_documents_that_were_shuffled_are_found_again():
    # d = 4 and blocks of 8 queries (8 * 9 + 8 + 3 = 83 words): one group a block is every key once.
    p = Attention(64, 4, mask=shuffled_documents())
    least = 4 * 64 * 4
    for order in ORDERS:
        found = schedules.reordered(schedules.gather, p, 83, order)
        assert found.schedule.blocks["rows"] == 8
        assert found.before.io > 3 * least
        assert found.after.io == least, order


def test_an_order_that_is_given():
    p = Attention(4, 1, mask=masks.causal(4))
    found = schedules.reordered(schedules.gather, p, 14, [3, 2, 1, 0])
    assert found.name == "asked"
    assert found.order.tolist() == [3, 2, 1, 0]
    # Q and O are 8 words. Queries 0 and 1 use 2 keys, 2 and 3 use 4: 6 * 2 words. In the other
    # order 3, 2 and 1 make a block with 4 keys, and 0 has one: 5 * 2 words.
    assert (found.before.io, found.after.io) == (20, 18)


def test_the_backward_pass_is_reordered_too():
    p = Attention(6, 1, mask=masks.window(6, 1, 1), direction="backward")
    random = np.random.default_rng(3)
    operands = {name: random.normal(size=shape) for name, shape in p.operands.items()}
    found = schedules.reordered(schedules.two_pass_backward, p, 60, [5, 0, 3, 1, 4, 2])
    plain = schedules.two_pass_backward(p, 60).execute(**operands)
    for name, values in found.execute(**operands).items():
        np.testing.assert_allclose(values, plain[name], rtol=1e-12, atol=1e-13)


def test_what_can_not_be_reordered():
    p = Attention(4, 1, mask=masks.causal(4))
    with pytest.raises(UnknownName, match=r"^order = 'rcm': known are by_center, cuthill_mckee"):
        schedules.reordered(schedules.gather, p, 20, "rcm")
    with pytest.raises(MaskError, match=r"^order: each of the 4 queries comes once in it$"):
        schedules.reordered(schedules.gather, p, 20, [0, 1, 2, 2])
    with pytest.raises(
        ProblemError, match=r"^reordered is for the forward pass of attention under"
    ):
        schedules.reordered(schedules.flash2, Attention(4, 1), 20)
    with pytest.raises(SizeError, match=r"^gather: cache = 3 is too small"):
        schedules.reordered(schedules.gather, p, 3)
    with pytest.raises(SizeError, match=r"the greedy order takes at most 4096 queries and keys$"):
        greedy(masks.causal(5000), 8)
    with pytest.raises(SizeError, match=r"^rows = 0: the queries in a block must be"):
        greedy(masks.causal(4), 0)
