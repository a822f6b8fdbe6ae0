from itertools import product

import pytest

from pebble.errors import SizeError
from pebble.rules import (
    BLUE,
    COMPUTED,
    ERASING,
    INPUT,
    OUTPUT,
    RECOMPUTE,
    RED,
    REDUNDANT,
    SLIDING,
    Breach,
    Op,
    Rules,
    after,
    judge,
)
from tests import naive

BOTH = False, True


def test_the_bits_are_distinct():
    for bits in ([RED, BLUE, COMPUTED, INPUT, OUTPUT], [RECOMPUTE, SLIDING, REDUNDANT, ERASING]):
        assert sorted(bits) == [1 << i for i in range(len(bits))]


def test_switches():
    for recompute, sliding, redundant, erasing in product(BOTH, repeat=4):
        rules = Rules(recompute, sliding, redundant, erasing)
        bits = [RECOMPUTE, SLIDING, REDUNDANT, ERASING]
        assert [bool(rules.switches & bit) for bit in bits] == [
            recompute,
            sliding,
            redundant,
            erasing,
        ]


@pytest.mark.parametrize("op", Op)
def test_judge_agrees_with_the_naive_referee_in_every_situation(op):
    # v has the predecessor u, and x is no predecessor of it; an input has no predecessors.
    for is_input, red, blue, computed, ready, joined, fits in product(BOTH, repeat=7):
        if is_input and not ready:
            continue  # it has no predecessor that could be missing
        graph = {"u": (), "x": (), "v": () if is_input else ("u",), "w": ("u", "x", "v")}
        reds = {"x"} | ({"v"} if red else set()) | ({"u"} if ready else set())
        blues = {"u", "x"} | ({"v"} if blue else set())
        past = {"v"} if computed else set()
        source = "u" if joined else "x"
        growth = 0 if op is Op.SLIDE else 1
        cache = len(reds) + growth - (0 if fits else 1)
        now = RED * red | BLUE * blue | COMPUTED * computed | INPUT * is_input
        move = (str(op), "v", source) if op is Op.SLIDE else (str(op), "v")
        joined = joined and not is_input
        for recompute, sliding, redundant, erasing in product(BOTH, repeat=4):
            rules = Rules(recompute, sliding, redundant, erasing)
            expected = naive.complaint(
                graph, cache, reds, blues, past, move, recompute, sliding, redundant, erasing
            )
            found = Breach(judge(op, now, ready, joined, fits, rules.switches))
            situation = move, now, ready, joined, fits, rules
            assert found.name == (expected or "LEGAL"), situation


@pytest.mark.parametrize("op", [6, 7, -1])
def test_an_unknown_op_is_not_in_the_game(op):
    assert judge(op, RED | BLUE, True, True, True, 15) == Breach.NOT_IN_THE_GAME


def test_after_changes_one_pebble_and_nothing_else():
    for now in range(32):
        assert after(Op.LOAD, now) == now | RED
        assert after(Op.STORE, now) == now | BLUE
        assert after(Op.COMPUTE, now) == after(Op.SLIDE, now) == now | RED | COMPUTED
        assert after(Op.DELETE, now) == (now - RED if now & RED else now)
        assert after(Op.ERASE, now) == (now - BLUE if now & BLUE else now)


@pytest.mark.parametrize("weight", [0, -1, 1.5, True, "2"])
def test_weights_are_positive_integers(weight):
    with pytest.raises(SizeError, match=r"weight of O = .*: a weight is a positive integer"):
        Rules(weights={"O": weight})


@pytest.mark.parametrize("cost", [-1, 0.5])
def test_compute_cost_is_an_integer(cost):
    with pytest.raises(SizeError, match=r"compute_cost = .*: it must be an integer >= 0"):
        Rules(compute_cost=cost)


def test_a_label_weighs_before_its_family():
    rules = Rules(weights={"O": 2, "O0": 3})
    assert [rules.weight("O", "O0"), rules.weight("O", "O1"), rules.weight("P", "P0")] == [3, 2, 1]


def test_rules_are_values():
    assert Rules(weights={"a": 2}) == Rules(weights=(("a", 2),))
    assert hash(Rules(weights={"a": 2})) == hash(Rules(weights={"a": 2}))
    assert str(Op.SLIDE) == "slide"
