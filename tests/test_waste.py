"""Dead moves, against a slow and separate account of them."""

from dataclasses import replace

import pytest
from hypothesis import assume, given

import schedules as package
from pebble import testing
from pebble.attention import Attention
from pebble.errors import IllegalMove, Incomplete
from pebble.graph import Graph
from pebble.waste import waste
from tests.strategies import schedules

CHAIN = Graph([(), (0,), (1,)], labels=["a", "b", "c"])
TIDY = ["load a", "compute b", "compute c", "store c"]


def slow_account(graph, moves):
    """Look forward from each move: is its pebble used before it goes?"""
    preds = {
        graph.label(v): {graph.label(u) for u in graph.predecessors(v)} for v in range(len(graph))
    }
    outputs = {graph.label(v) for v in graph.outputs}
    dead, made, again = {"load": [], "store": [], "compute": []}, set(), 0
    flat = []
    for move in moves:
        slid = str(move.op) == "slide"
        flat.append(("compute" if slid else str(move.op), move.vertex))
        if slid:
            flat.append(("delete", move.source))
    for at, (op, v) in enumerate(flat):
        used = False
        for later, u in flat[at + 1 :]:
            if op == "store":
                used = later == "load" and u == v
                if used or (later in ("store", "erase") and u == v):
                    break
            else:
                used = (later == "compute" and v in preds[u]) or (later, u) == ("store", v)
                if used or (u == v and later in ("delete", "load", "compute")):
                    break
        if op in dead and not used and not (op == "store" and v in outputs):
            dead[op].append(v)
        if op == "compute":
            again += v in made
            made.add(v)
    return *(len(dead[op]) for op in ("load", "store", "compute")), again


@given(testing.games())
def test_random_games_waste_what_the_slow_account_says(played):
    assume(not played.rules.redundant)
    found = waste(played.graph, played.moves, played.cache, played.rules)
    dead = found.dead_loads, found.dead_stores, found.dead_computes, found.recomputes
    assert dead == slow_account(played.graph, played.moves)


@given(schedules())
def test_no_schedule_wastes_a_move(schedule):
    assert schedule.waste().none


@pytest.mark.parametrize(
    ("moves", "kind", "label"),
    [
        ([*TIDY, "delete a", "load a"], "loads", "a"),
        (["load a", "delete a", *TIDY], "loads", "a"),
        (["load a", "compute b", "store b", "compute c", "store c"], "stores", "b"),
        ([*TIDY, "delete b", "compute b"], "computes", "b"),
        (["load a", "compute b", "delete b", *TIDY[1:]], "computes", "b"),
    ],
)
def test_one_dead_move(moves, kind, label):
    found = waste(CHAIN, moves, cache=3)
    assert {k: getattr(found, k) for k in ("loads", "stores", "computes")} == {
        **dict.fromkeys(("loads", "stores", "computes"), ()),
        kind: (label,),
    }
    assert getattr(found, f"dead_{kind}") == 1
    assert not found.none


def test_recomputation_is_counted_and_is_no_dead_move():
    moves = ["load a", "compute b", "compute c", "delete b", "store c", "delete c", "compute b"]
    found = waste(CHAIN, [*moves, "compute c"], cache=3)
    assert found.recomputes == 2
    assert found.computes == ("c",)  # the second c is never used; b is, by it


def test_a_tidy_game_wastes_nothing():
    assert waste(CHAIN, TIDY, cache=3).none


def test_only_the_first_five_are_named():
    graph = Graph([(), *[(0,)] * 9])
    moves = ["load 0"]
    for v in range(1, 10):
        moves += [f"compute {v}", f"store {v}", f"delete {v}", f"load {v}", f"delete {v}"]
    found = waste(graph, moves, cache=2)
    assert (found.dead_loads, found.loads) == (9, (1, 2, 3, 4, 5))
    assert found.dead_stores == 0


def test_illegal_and_incomplete_games_have_no_report():
    with pytest.raises(IllegalMove, match="move 0, compute b: a is not red"):
        waste(CHAIN, ["compute b"], cache=3)
    with pytest.raises(Incomplete):
        waste(CHAIN, ["load a"], cache=3)


def test_a_wasteful_tile_program_is_told():
    schedule = package.flash2(Attention(4, 2), 40)

    def write(tape):
        schedule.write(tape)
        tape.load(schedule.problem.graph["Q"][0, :])

    found = replace(schedule, write=write).waste()
    assert found.dead_loads == 2
    assert [str(label) for label in found.loads] == ["Q[0,0]", "Q[0,1]"]
