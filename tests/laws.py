"""What every schedule must hold, whatever it computes: called by the tests of each direction.

A definition is a graph as the naive referee reads it, written as plain loops and apart from the
package's: a dict from each label to its predecessors.
"""

from dataclasses import replace

import pytest

from pebble.cost import Cost
from pebble.errors import IllegalMove, Incomplete, SizeError
from pebble.replay import replay
from pebble.rules import Op, Rules
from pebble.tapes import Do, Loop
from tests import naive
from tests.tables import as_tuples


def count_replay_and_formula_agree(schedule):
    cost = schedule.count()
    assert cost == schedule.replay() == schedule.closed_form
    assert all(type(number) is int for number in vars(schedule.closed_form).values())
    assert cost.peak <= schedule.cache
    assert cost.loads + cost.computes == cost.deletes  # nothing is red at the end
    graph = schedule.problem.graph
    assert schedule.recomputes == (cost.computes > graph.size - graph.input_words)
    if schedule.recomputes:
        with pytest.raises(IllegalMove, match="computed before"):
            schedule.replay(Rules(recompute=False))
    else:
        assert schedule.replay(Rules(recompute=False)) == cost


def the_peak_is_exact(schedule):
    peak = schedule.closed_form.peak
    assert replace(schedule, cache=peak).replay().peak == peak
    with pytest.raises(IllegalMove, match="the cache is full"):
        replace(schedule, cache=peak - 1).replay()


def the_naive_referee_agrees(schedule, definition, outputs):
    """Play the moves on a definition; `outputs` are its labels that must be blue at the end."""
    moves = list(schedule.moves())
    assert replay(schedule.problem.graph, moves, schedule.cache) == schedule.closed_form
    verdict = naive.play(definition, outputs, schedule.cache, as_tuples(moves))
    assert isinstance(verdict, naive.Done), verdict
    assert Cost(*verdict[:5]) == schedule.closed_form
    assert verdict.missing == ()


def no_move_can_be_left_out(schedule, data):
    """Leave out a drawn line of the program: the referee objects, or a word stays too long."""
    from hypothesis import strategies as st

    _, size = without(schedule.program, -1)
    program, _ = without(schedule.program, data.draw(st.integers(0, size - 1)))
    broken = replace(schedule)
    broken.__dict__["program"] = program
    if [*ops(program)].count(Op.DELETE) == [*ops(schedule.program)].count(Op.DELETE):
        with pytest.raises((IllegalMove, Incomplete)):
            broken.replay()
    else:
        assert broken.count().deletes < schedule.count().deletes


def without(program, place):
    """Give a program without its move at a place, in the order of the text, and its length."""
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


def ops(program):
    for node in program:
        if isinstance(node, Do):
            yield node.op
        else:
            yield from ops(node.body)


def answer(generator, problem, cache, **blocks):
    """Give the I/O, or infinity where the cache is too small."""
    try:
        return generator(problem, cache, **blocks).closed_form.io
    except SizeError:
        return float("inf")


def more_cache_is_never_worse(generator, problem, caches):
    costs = [answer(generator, problem, cache) for cache in caches]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < float("inf")


def the_least_cache_of_the_message_works(generator, problem):
    name = generator.__name__
    with pytest.raises(SizeError, match=f"^{name}: cache = 1 is too small") as caught:
        generator(problem, 1)
    least = int(str(caught.value).rpartition(" ")[2])
    schedule = generator(problem, least)
    assert schedule.replay() == schedule.closed_form
    assert schedule.closed_form.peak == least
    with pytest.raises(SizeError) as again:
        generator(problem, least - 1)
    assert str(again.value) == (
        f"{name}: cache = {least - 1} is too small; the least that works is {least}"
    )
