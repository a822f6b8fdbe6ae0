from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import schedules as package
from pebble.attention import Attention
from pebble.cost import Cost
from pebble.errors import IllegalMove, Incomplete, PebbleError, SizeError, UnknownName
from pebble.moves import Vertex
from pebble.registry import _GENERATORS, best, generators, register
from pebble.replay import replay
from pebble.rules import Op, Rules
from pebble.tapes import Do, Loop
from schedules import flash1, flash2, small_cache, standard
from schedules.blocks import distinct, largest
from schedules.products import (
    Tiles,
    best_scores,
    best_values,
    scores_io,
    scores_peak,
    values_io,
    values_peak,
)
from tests import naive
from tests.strategies import FLASH, GENERATORS, problems, schedules
from tests.tables import as_tuples
from tests.test_attention import definition

ONCE = Rules(recompute=False)
every = pytest.mark.parametrize("generator", GENERATORS, ids=lambda g: g.__name__)


# What a schedule costs.


@settings(max_examples=max(settings().max_examples, 300))
@given(schedules())
def test_the_count_the_referee_and_the_formula_agree(schedule):
    cost = schedule.count()
    assert cost == schedule.replay() == schedule.closed_form
    assert cost.peak <= schedule.cache
    assert schedule.replay(ONCE) == cost
    assert all(type(number) is int for number in vars(schedule.closed_form).values())


@every
@pytest.mark.parametrize("softmax", ["plain", "online"])
@pytest.mark.parametrize("keys", [1, 2, 3])
def test_the_smallest_problems_in_every_cache(generator, softmax, keys):
    for n, d, value_dim in product((1, 5), (1, 2), (1, 2)):
        p = Attention(n, d, keys, value_dim, softmax, logsumexp=n > 1)
        for cache in range(3, 24):
            try:
                schedule = generator(p, cache)
            except SizeError:
                continue
            assert schedule.count() == schedule.closed_form
            assert schedule.closed_form.peak <= cache
        assert schedule.replay() == schedule.closed_form


@given(schedules())
def test_the_peak_is_exact(schedule):
    peak = schedule.closed_form.peak
    assert replace(schedule, cache=peak).replay().peak == peak
    with pytest.raises(IllegalMove, match="the cache is full"):
        replace(schedule, cache=peak - 1).replay()


@given(schedules(most=4))
def test_the_explicit_graph_and_the_naive_referee_agree(schedule):
    p, moves = schedule.problem, list(schedule.moves())
    assert replay(p.graph, moves, schedule.cache) == schedule.closed_form
    families = ("O", "Lse")
    graph = definition(p)
    outputs = [label for label in graph if label[0] in families]
    verdict = naive.play(graph, outputs, schedule.cache, as_tuples(moves), recompute=False)
    assert isinstance(verdict, naive.Done)
    assert Cost(*verdict[:5]) == schedule.closed_form
    assert verdict.missing == ()


@given(schedules())
def test_nothing_is_red_at_the_end(schedule):
    cost = schedule.count()
    assert cost.loads + cost.computes == cost.deletes


@given(schedules())
def test_the_problem_is_the_one_asked_for_with_its_block_settled(schedule):
    p = schedule.problem
    assert p.block is None if p.softmax == "plain" else 1 <= p.block <= p.keys
    assert schedule.count().computes == sum(1 for row in definition(p).values() if row)


def without(program, place):
    """A program without its move at a place, in the order of the text."""
    body, count = [], 0
    for node in program:
        if isinstance(node, Loop):
            inner, size = without(node.body, place - count)
            body.append(replace(node, body=inner))
        else:
            size = 1
            if count != place:
                body.append(node)
        count += size
    return tuple(body), count


@given(schedules(), st.data())
def test_no_move_can_be_left_out(schedule, data):
    _, size = without(schedule.program, -1)
    program, _ = without(schedule.program, data.draw(st.integers(0, size - 1)))
    broken = replace(schedule)
    broken.__dict__["program"] = program
    if [*ops(program)].count(Op.DELETE) == [*ops(schedule.program)].count(Op.DELETE):
        with pytest.raises((IllegalMove, Incomplete)):
            broken.replay()
    else:
        assert broken.count().deletes < schedule.count().deletes


def ops(program):
    for node in program:
        if isinstance(node, Do):
            yield node.op
        else:
            yield from ops(node.body)


# Best blocks.


def answer(generator, problem, cache, **blocks):
    """The I/O, or infinity where the cache is too small."""
    try:
        return generator(problem, cache, **blocks).closed_form.io
    except SizeError:
        return float("inf")


@given(st.data(), st.sampled_from(GENERATORS))
def test_best_blocks_are_not_worse_than_any_given_ones(data, generator):
    problem = data.draw(problems(blocks=("open", "some" if generator in FLASH else "whole")))
    cache = data.draw(st.integers(4, 60))
    found = answer(generator, problem, cache)
    assume(found < float("inf"))
    for rows, cols in product(range(1, problem.n + 1), range(1, problem.keys + 1)):
        assert found <= answer(generator, problem, cache, rows=rows, cols=cols)
    assert found <= answer(generator, problem, cache, blocks="published")


@pytest.mark.parametrize("generator", [small_cache, standard], ids=lambda g: g.__name__)
@pytest.mark.parametrize("cache", [20, 30, 47, 60])
@pytest.mark.parametrize("keys", [1, 2, 5, 47])
def test_best_tiles_where_there_are_more_rows_than_words_of_cache(generator, cache, keys):
    # 61 rows in 5 blocks are 13 each, which is no size that 30 or 47 rows are cut into.
    problem = Attention(61, 20, keys=keys, value_dim=3)
    least = generator(problem, cache).closed_form.io
    for rows, cols in product(range(1, 62), range(1, keys + 1)):
        assert least <= answer(generator, problem, cache, rows=rows, cols=cols)


@given(problems(blocks=("whole",), most=9), st.integers(3, 70), st.integers(0, 2))
def test_the_best_tiles_of_a_product_are_the_best_of_all(p, cache, running):
    def s_peak(t):
        return scores_peak(p, t, min(running, 1), alone=1)

    def v_peak(t):
        return values_peak(p, t, running)

    def v_io(t):
        return values_io(p, t) + p.pairs * -(-p.value_dim // t.cols)

    def least(peak, io, extents):
        boxes = [Tiles(*box) for box in product(*(range(1, size + 1) for size in extents))]
        boxes.append(Tiles(1, extents[1], extents[2], True))
        return min((io(t) for t in boxes if peak(t) <= cache), default=None)

    s, v = best_scores(p, s_peak, cache), best_values(p, v_peak, v_io, cache)
    assert (s and scores_io(p, s)) == least(s_peak, lambda t: scores_io(p, t), (p.n, p.keys, p.d))
    assert (v and v_io(v)) == least(v_peak, v_io, (p.n, p.value_dim, p.keys))


@given(st.data(), st.sampled_from([*GENERATORS, best]))
def test_more_cache_is_never_worse(data, generator):
    blocks = ("open", "some" if generator in FLASH else "whole")
    problem = data.draw(problems(blocks=blocks, most=9))
    costs = [answer(generator, problem, cache) for cache in (*range(2, 90), 1000)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < float("inf")


@given(st.data(), st.sampled_from(GENERATORS))
def test_the_least_cache_of_the_message_works_and_one_less_does_not(data, generator):
    blocks = ("open", "some" if generator in FLASH else "whole")
    problem = data.draw(problems(blocks=blocks))
    with pytest.raises(SizeError, match=f"^{generator.__name__}: cache = 1 is too small") as caught:
        generator(problem, 1)
    least = int(str(caught.value).rpartition(" ")[2])
    schedule = generator(problem, least)
    assert schedule.replay() == schedule.closed_form
    assert schedule.closed_form.peak == least
    with pytest.raises(SizeError) as again:
        generator(problem, least - 1)
    assert str(again.value) == (
        f"{generator.__name__}: cache = {least - 1} is too small; the least that works is {least}"
    )


def test_blocks_that_overflow_the_cache_say_what_they_hold():
    # 2 keys of 4 + 4 words, 3 rows of 4 + 4 + 1, and 3 words.
    with pytest.raises(SizeError) as caught:
        flash2(Attention(8, 4), 45, rows=3, cols=2)
    assert str(caught.value) == (
        "flash2, given blocks with rows = 3, cols = 2 holds 46 words: cache = 45 is too small"
    )
    assert flash2(Attention(8, 4), 46, rows=3, cols=2).count().peak == 46


def test_distinct_sizes_are_the_least_for_each_number_of_blocks():
    for extent, limit in product(range(1, 80), (1, 2, 5, 9, 30, 100)):
        sizes = {-(-extent // count) for count in range(1, extent + 1)}
        assert distinct(extent, limit) == sorted(size for size in sizes if size <= limit)


@given(st.integers(0, 100), st.integers(-5, 120))
def test_largest_finds_the_last_that_fits(limit, bound):
    assert largest(limit, lambda size: size <= bound) == max(min(limit, bound), 0)


# What a schedule says of itself.


def test_the_blocks_of_a_schedule():
    p = Attention(12, 2, keys=10, value_dim=3)
    online = Attention(12, 2, keys=10, softmax="online")
    assert flash1(p, 60, rows=5, cols=3).blocks == {"rows": 5, "cols": 3}
    assert flash2(p, 900, rows=50, cols=30).blocks == {"rows": 12, "cols": 10}
    assert flash2(online, 60).blocks == {"rows": 8, "cols": 1, "block": 1}
    assert flash2(online, 900, rows=2, cols=4).blocks == {"rows": 2, "cols": 4, "block": 4}
    assert small_cache(p, 60, blocks="published").blocks == {
        **{"rows": 3, "cols": 3, "depth": 2, "value_rows": 3, "value_cols": 3},
    }
    assert standard(online, 60).problem.block == 10


def test_schedules_are_written_with_their_sizes():
    p = Attention(12, 2, keys=10, value_dim=3)
    assert repr(flash2(p, 60, rows=5, cols=3)) == (
        "flash2(n=12, d=2, keys=10, value_dim=3, cache=60, rows=5, cols=3)"
    )
    assert repr(flash1(Attention(12, 2), 30)) == "flash1(n=12, d=2, cache=30, rows=1, cols=5)"


def test_published_blocks():
    # ceil(M / 4d) keys, and at most d rows; B = floor(sqrt(M / 4)); K and V resident.
    p = Attention(100, 4)
    assert flash2(p, 1000, blocks="published").blocks == {"rows": 4, "cols": 63}
    assert flash1(p, 1001, blocks="published").blocks == {"rows": 4, "cols": 63}
    assert set(small_cache(p, 403, blocks="published").blocks.values()) == {10, 4}
    assert standard(p, 500, blocks="published").blocks == {
        **{"rows": 1, "cols": 100, "depth": 4, "value_rows": 1, "value_cols": 4},
        **{"keeps_K": 1, "keeps_V": 1},
    }


# Arguments.


@every
@pytest.mark.parametrize("value", [0, -1, 1.5, 64.0, True, "8", None])
def test_the_cache_is_a_positive_integer(generator, value):
    with pytest.raises(SizeError) as caught:
        generator(Attention(4, 2), value)
    assert str(caught.value) == (
        f"cache = {value!r}: the words of fast memory must be a positive integer"
    )


@every
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "8"])
def test_rows_and_cols_are_positive_integers(generator, value):
    for name, meaning in ("rows", "the rows of a block"), ("cols", "the columns of a block"):
        with pytest.raises(SizeError) as caught:
            generator(Attention(4, 2), 99, **{"rows": 1, "cols": 1, name: value})
        assert str(caught.value) == f"{name} = {value!r}: {meaning} must be a positive integer"


@every
def test_rows_and_cols_come_together(generator):
    with pytest.raises(SizeError, match=r"^rows = 2, cols = None: give both of them, or none$"):
        generator(Attention(4, 2), 99, rows=2)
    with pytest.raises(SizeError, match=r"^rows = None, cols = 2: give both of them, or none$"):
        generator(Attention(4, 2), 99, cols=2)


@every
def test_unknown_rules_for_blocks(generator):
    with pytest.raises(UnknownName) as caught:
        generator(Attention(4, 2), 99, blocks="square")
    assert str(caught.value) == (
        "blocks = 'square': known are best, published; or give rows and cols"
    )


@every
def test_numpy_integers_are_integers(generator):
    p, sizes = Attention(np.int64(6), np.int16(2)), {"rows": np.int32(2), "cols": np.uint8(3)}
    schedule = generator(p, np.int32(99), **sizes)
    assert schedule.count() == schedule.replay() == schedule.closed_form
    assert schedule.closed_form == generator(p, 99, rows=2, cols=3).closed_form
    numbers = [*vars(schedule.closed_form).values(), *schedule.blocks.values(), schedule.cache]
    assert {type(number) for number in numbers} == {int}
    assert type(generator(p, np.int64(99)).closed_form.peak) is int


@pytest.mark.parametrize("generator", FLASH, ids=lambda g: g.__name__)
def test_cols_are_a_multiple_of_the_block(generator):
    p = Attention(8, 2, keys=7, softmax="online", block=2)
    with pytest.raises(SizeError) as caught:
        generator(p, 99, rows=1, cols=3)
    assert str(caught.value) == "cols = 3: it must be a multiple of the softmax's block = 2"
    assert generator(p, 99, rows=1, cols=4).blocks["block"] == 2
    assert generator(p, 99, rows=1, cols=9).blocks["cols"] == 7  # all keys: the last is ragged


@pytest.mark.parametrize("generator", [small_cache, standard], ids=lambda g: g.__name__)
def test_whole_rows_need_one_block(generator):
    p = Attention(8, 2, keys=7, softmax="online", block=2)
    with pytest.raises(SizeError) as caught:
        generator(p, 99)
    assert str(caught.value) == (
        f"{generator.__name__}: block = 2: it takes the maximum over whole rows, "
        "so the block must be None or keys = 7"
    )
    assert generator(p.with_block(7), 99).problem.block == 7


# The registry.


def test_the_best_of_all_is_the_least():
    for p, cache in product((Attention(20, 3), Attention(9, 4, softmax="online")), (20, 60, 400)):
        costs = [answer(generator, p, cache) for generator in GENERATORS]
        assert package.best(p, cache).closed_form.io == min(costs)


def test_the_generators_are_known_in_the_order_of_their_names():
    assert generators() == (flash1, flash2, small_cache, standard)


@pytest.fixture
def _registry():
    before = dict(_GENERATORS)
    yield
    _GENERATORS.clear()
    _GENERATORS.update(before)


@pytest.mark.usefixtures("_registry")
def test_a_registered_generator_is_among_the_best():
    p = Attention(6, 2)

    def mine(problem, cache):
        schedule = flash2(problem, cache)
        return replace(schedule, name="mine", closed_form=Cost(loads=1))

    assert register(mine) is mine
    assert generators()[-1] is mine
    assert best(p, 60).name == "mine"

    def again(problem, cache):
        raise SizeError("again: never fits")

    again.__name__ = "mine"
    register(again)
    assert generators()[-1] is again
    assert best(p, 60).name != "mine"
    with pytest.raises(SizeError, match=r"standard: cache = 1 is too small.*; again: never fits$"):
        best(p, 1)


@pytest.mark.usefixtures("_registry")
def test_among_equals_the_first_registered_is_best():
    p = Attention(6, 2)
    assert flash1(p, 1000).closed_form.io == flash2(p, 1000).closed_form.io
    assert best(p, 1000).name == "flash1"
    _GENERATORS["flash1"] = _GENERATORS.pop("flash1")
    assert best(p, 1000).name == "flash2"


@pytest.mark.usefixtures("_registry")
def test_without_generators_there_is_no_best():
    _GENERATORS.clear()
    with pytest.raises(
        PebbleError, match=r"no schedule is registered for .forward.: import schedules first"
    ):
        best(Attention(6, 2), 60)


def test_no_schedule_fits():
    # A key of 2 + 2 words, a row of 2 + 2 + 1, and 3; a tile of one sum, its operands, and so on.
    least = {"flash1": 12, "flash2": 12, "small_cache": 6, "standard": 6}
    with pytest.raises(SizeError) as caught:
        best(Attention(6, 2), 4)
    assert str(caught.value) == "; ".join(
        f"{name}: cache = 4 is too small; the least that works is {words}"
        for name, words in least.items()
    )


@pytest.mark.parametrize("value", [0, True, "8"])
def test_best_needs_a_positive_cache(value):
    with pytest.raises(SizeError, match="the words of fast memory must be a positive integer"):
        best(Attention(6, 2), value)


def test_weights_must_name_families():
    schedule = flash2(Attention(4, 2), 40)
    for weights in ({"Z": 2}, {Vertex("Q", (0, 0)): 2}):
        for ask in (schedule.count, schedule.replay):
            with pytest.raises(UnknownName, match="the graph has no such vertex or family"):
                ask(Rules(weights=weights))


@pytest.mark.slow
@pytest.mark.parametrize("softmax", ["plain", "online"])
@pytest.mark.parametrize("cache", [64, 700, 4096, 20000])
def test_large_schedules_are_replayed_too(cache, softmax):
    for generator in (standard, small_cache, flash1, flash2):
        try:
            schedule = generator(Attention(300, 32, keys=260, value_dim=48, softmax=softmax), cache)
        except SizeError:
            continue
        assert schedule.replay() == schedule.closed_form
