from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pebble.attention import Attention
from pebble.cost import Cost
from pebble.counter import count
from pebble.expander import Expansion
from pebble.families import Function, chain, inputs
from pebble.family_graph import FamilyGraph
from pebble.playback import replay
from pebble.rules import Rules
from pebble.tapes import Tape
from schedules import flash1, flash2
from tests.strategies import schedules

NAMES = ["Q", "K", "V", "x", "s", "mx", "P", "a", "lr", "or", "l", "y", "o", "O", "Lse"]
weightings = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 5))


def names_of(schedule):
    return {part.name for part in schedule.problem.graph.families}


@given(schedules(), weightings)
def test_weights_are_counted_as_the_referee_does(schedule, weights):
    named = {name: weights[name] for name in names_of(schedule) & set(weights)}
    roomy, rules = replace(schedule, cache=10**6), Rules(weights=named)
    assert roomy.count(rules) == roomy.replay(rules)


@pytest.mark.parametrize("keys", [2, 3, 4])
def test_the_first_row_sum_weighs_what_the_first_weight_does(keys):
    # Blocks of one key: l[i,0], which names P[i,0], is stored and read at 5 words, l[i,j > 0] at 1.
    # o goes with it at 1 word; Q is loaded in each block, K and V once, O is stored.
    schedule = replace(flash1(Attention(1, 1, keys=keys), 100, rows=1, cols=1), cache=200)
    cost = schedule.count(Rules(weights={"P": 5}))
    spilled = 5 + (keys - 2) * 1 + (keys - 1) * 1
    assert (cost.loads, cost.stores) == (2 * keys + keys + spilled, spilled + 1)
    assert cost == schedule.replay(Rules(weights={"P": 5}))


def test_weights_of_names_that_cross_a_tile():
    # A tile of a chain that begins at 0 has one vertex of the first family.
    a = inputs("a", 4)
    s = chain("s", (4,), 0, Function.SUM, lambda k: a[k], lambda k: (s[k - 1], a[k]))
    tape = Tape()
    tape.load(a[:])
    tape.compute(s[1:])
    tape.delete(a[1:])
    tape.store(s[1:])
    tape.delete(s[:])
    tape.load(s[:])
    # Loads: 4 of 3 words, then 3 + 3 * 2. Stores: 3 * 2. Peak: 4 * 3 + 3 * 2.
    cost = count(tape.program, Rules(weights={"a": 3, "s": 2}))
    assert cost == Cost(loads=12 + 9, stores=6, computes=3, deletes=7, peak=18)
    graph, rules = FamilyGraph((a, s), (s[1:],)), Rules(weights={"a": 3, "s": 2})
    assert replay(Expansion(graph, tape.program, rules), 18) == cost


@given(schedules())
def test_a_weight_for_all_families_multiplies_the_words(schedule):
    cost = schedule.count()
    assert schedule.count(Rules(weights=dict.fromkeys(names_of(schedule), 3))) == Cost(
        3 * cost.loads, 3 * cost.stores, cost.computes, cost.deletes, 3 * cost.peak
    )


A = inputs("A", 100)


def test_loops_multiply_and_what_they_leave_red_adds_up():
    # Each of 5 rounds loads 3 words and deletes 1: before the last delete, 4 * 2 + 3 are red.
    tape = Tape()
    tape.load(A[99])
    for i in tape.each(5):
        tape.load(A[i], A[i + 10], A[i + 20])
        tape.delete(A[i])
    assert count(tape.program) == Cost(loads=16, deletes=5, peak=12)


def test_a_loop_that_deletes_has_its_peak_in_the_first_round():
    tape = Tape()
    tape.load(A[:10])
    for i in tape.each(10):
        tape.load(A[i + 20])
        tape.delete(A[i], A[i + 20])
    assert count(tape.program) == Cost(loads=20, deletes=20, peak=11)


def test_nothing_counts_nothing():
    assert count(()) == Cost()


@given(schedules())
def test_the_cache_does_not_matter_to_the_count(schedule):
    assume(schedule.cache > 4)
    assert replace(schedule, cache=1).count() == schedule.closed_form


def test_counts_are_exact_beyond_64_bits():
    # 2nd + 2nd ceil(n / rows) words with n = 2^40 and 2^11 rows: 2^41 d (1 + 2^29).
    n, d = 2**40, 4
    cost = flash2(Attention(n, d), 20000, rows=2**11, cols=1).count()
    assert cost.io == 2 * n * d * (1 + 2**29)
    assert cost.computes > 2**80
