import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble import referee, testing
from pebble.cost import Cost
from pebble.errors import IllegalMove, Incomplete, ProgramError
from pebble.game import Game
from pebble.graph import Graph
from pebble.moves import Move
from pebble.replay import decode, encode, replay
from pebble.rules import Breach, Op, Rules
from pebble.start import start_state, weights_of
from tests import naive
from tests.tables import as_dict, as_keywords, as_tuples
from tests.test_graph import Chain

THREE = Graph([(), (), (0, 1)], labels=["a", "b", "c"])
SLIDING = Rules(sliding=True)


def naive_verdict(played):
    preds, outputs = as_dict(played.graph)
    return naive.play(
        preds, outputs, played.cache, as_tuples(played.moves), **as_keywords(played.rules)
    )


@settings(max_examples=150)
@given(testing.games())
def test_legal_games_cost_the_same_everywhere(played):
    verdict = naive_verdict(played)
    cost = Cost(*verdict[:5])
    assert verdict.missing == ()
    assert replay(played.graph, played.moves, played.cache, played.rules) == cost
    codes = encode(played.graph, played.moves)
    assert replay(played.graph, codes, played.cache, played.rules) == cost
    assert tuple(decode(played.graph, codes)) == played.moves
    game = Game(played.graph, played.cache, played.rules)
    for move in played.moves:
        game.push(move)
    assert game.cost == cost
    assert game.status.complete


@settings(max_examples=300)
@given(testing.illegal_games())
def test_illegal_games_are_caught_at_the_same_move_for_the_same_reason(played):
    assert naive_verdict(played) == naive.Illegal(played.index, played.breach.name)
    with pytest.raises(IllegalMove) as caught:
        replay(played.graph, played.moves, played.cache, played.rules)
    error = caught.value
    move = played.moves[played.index]
    assert (error.index, error.breach, error.move) == (played.index, played.breach, move)
    game = Game(played.graph, played.cache, played.rules)
    for earlier in played.moves[: played.index]:
        game.push(earlier)
    with pytest.raises(IllegalMove) as again:
        game.push(move)
    assert str(again.value) == str(error)


@given(testing.games(), st.data())
def test_a_game_that_stops_early_is_incomplete(played, data):
    moves = played.moves[: data.draw(st.integers(0, len(played.moves)))]
    game = Game(played.graph, played.cache, played.rules)
    for move in moves:
        game.push(move)
    if game.status.complete:
        assert replay(played.graph, moves, played.cache, played.rules) == game.cost
    else:
        with pytest.raises(Incomplete) as caught:
            replay(played.graph, moves, played.cache, played.rules)
        assert f"after {len(moves)} moves {len(game.status.missing)} of" in str(caught.value)


def test_incomplete_names_a_few_outputs():
    fan = Graph([(), *[(0,)] * 6])
    with pytest.raises(Incomplete) as caught:
        replay(fan, ["load 0", "compute 3", "store 3"], 2)
    assert str(caught.value) == "after 3 moves 5 of 6 outputs are not blue: 1, 2, 4, 5 and 1 more"


# Streams: what tile programs are expanded to.


def stream(graph, moves, rules):
    words, ends = [], []
    weights = weights_of(graph, rules)
    for move in moves:
        v = graph.vertex(move.vertex)
        preds = graph.predecessors(v) if move.op is Op.COMPUTE else ()
        weight = int(weights[v]) if len(weights) else 1
        words += [referee.header(move.op, len(preds), function=3, weight=weight), v, *preds]
        ends.append(len(words))
    return np.array(words, np.int64), ends


@settings(max_examples=150)
@given(testing.games() | testing.illegal_games(), st.data())
def test_streams_are_judged_as_codes_are(played, data):
    moves = [move for move in played.moves if move.op is not Op.SLIDE and move.vertex != "nowhere"]
    graph, rules = played.graph, played.rules
    played = testing.first_breach(testing.Played(graph, played.cache, rules, tuple(moves)))
    words, ends = stream(graph, moves, rules)
    cut = data.draw(st.sampled_from([0, *ends]))
    state, tally = start_state(graph), referee.new_tally()
    stops = state, tally, played.cache, rules.switches
    breach, at = referee.run_stream(words, cut, *stops)
    if not breach:  # the second piece lies in a longer buffer
        rest = np.concatenate([words[cut:], [8, -1, -1]])
        breach, at = referee.run_stream(rest, len(words) - cut, *stops)
        at += cut
    assert breach == played.breach
    index = int(tally[referee.INDEX])
    assert index == (len(moves) if played.index is None else played.index)
    assert at == [0, *ends][index]
    game = Game(graph, played.cache, rules)
    for move in moves[:index]:
        game.push(move)
    assert referee.cost_of(tally) == game.cost
    assert int(tally[referee.USED]) == game.status.used
    assert state.tolist() == [game.state(v) for v in range(len(graph))]


def test_a_stream_has_no_slides():
    words = np.array([referee.header(Op.LOAD, 0), 0, referee.header(Op.SLIDE, 0), 0], np.int64)
    tally = referee.new_tally()
    breach, at = referee.run_stream(words, 4, start_state(THREE), tally, 3, Rules().switches)
    assert (breach, at, int(tally[referee.INDEX])) == (Breach.NOT_IN_THE_GAME, 2, 1)


def test_a_stream_counts_weights_in_the_cache():
    # a weighs 2 and b weighs 2: together 4 words.
    words = np.array([2**20 + Op.LOAD, 0, 2**20 + Op.LOAD, 1], np.int64)
    for cache, breach, cost in ((4, 0, Cost(loads=4, peak=4)), (3, 11, Cost(loads=2, peak=2))):
        tally = referee.new_tally()
        found, _ = referee.run_stream(words, 4, start_state(THREE), tally, cache, 1)
        assert (found, referee.cost_of(tally)) == (breach, cost)


@given(testing.games() | testing.illegal_games(), st.data())
def test_codes_may_come_in_pieces(played, data):
    moves = [move for move in played.moves if move.vertex != "nowhere"]
    graph, rules = played.graph, played.rules
    cut = data.draw(st.integers(0, len(moves)))
    arrays = graph.starts, graph.preds, weights_of(graph, rules)
    verdicts = []
    for pieces in ([moves], [moves[:cut], moves[cut:]]):
        state, tally = start_state(graph), referee.new_tally()
        for piece in pieces:
            codes = encode(graph, piece)
            breach, _ = referee.run_codes(
                codes, *arrays, state, tally, played.cache, rules.switches
            )
            if breach:
                break
        verdicts.append((breach, state.tolist(), tally.tolist()))
    assert verdicts[0] == verdicts[1]


def test_a_slide_onto_a_heavier_vertex_can_be_the_peak():
    rules = Rules(sliding=True, weights={"c": 3})
    moves = ["load a", "load b", "slide c from a", "store c"]
    cost = Cost(loads=2, stores=3, computes=1, peak=4)  # b and c, which weigh 1 + 3
    assert replay(THREE, moves, 4, rules) == cost
    game = Game(THREE, 4, rules)
    for move in moves:
        game.push(move)
    assert game.cost == cost


# Codes that did not come from moves.


@pytest.mark.parametrize(
    ("codes", "index", "breach", "says"),
    [
        ([8 * 3], 0, "NO_SUCH_VERTEX", "move 0, load 3: the graph has no vertex 3"),
        ([0, -8], 1, "NO_SUCH_VERTEX", "move 1, load -1: the graph has no vertex -1"),
        ([2**62], 0, "NO_SUCH_VERTEX", "the graph has no vertex 576460752303423488"),
        ([20, 3], 0, "NO_SUCH_VERTEX", "move 0, slide c from 3: the graph has no vertex 3"),
        ([20, -1], 0, "NO_SUCH_VERTEX", "move 0, slide c from -1: the graph has no vertex -1"),
        ([20], 0, "NO_SUCH_VERTEX", "move 0, slide c from -1: the graph has no vertex -1"),
        ([0, 8, 20, 0, 20, 0], 3, "ALREADY_RED", "move 3, slide c from a: c is red already"),
        ([6], 0, "NOT_IN_THE_GAME", "move 0, op 6 on vertex 0: the ops are 0 (load) to 5 (erase)"),
        ([0, 7 + 8 * 99], 1, "NOT_IN_THE_GAME", "move 1, op 7 on vertex 99: the ops are"),
        ([9, 3], 0, "NOT_RED", "move 0, store b: b is not red, so it can't be stored"),
    ],
)
def test_codes_are_checked(codes, index, breach, says):
    with pytest.raises(IllegalMove) as caught:
        replay(THREE, np.array(codes), 3, SLIDING)
    assert says in str(caught.value)
    assert (caught.value.index, caught.value.breach) == (index, Breach[breach])


def test_a_slide_of_nowhere_is_foreign_where_there_are_no_slides():
    with pytest.raises(IllegalMove) as caught:
        replay(THREE, np.array([8 * 99 + 4, 99]), 3)
    assert caught.value.breach is Breach.NOT_IN_THE_GAME


@pytest.mark.parametrize("codes", [np.zeros((2, 2), np.int64), np.array([0.0]), np.array(["a"])])
def test_codes_are_an_array_of_integers(codes):
    with pytest.raises(ProgramError, match="they are a one-dimensional array of int64"):
        replay(THREE, codes, 3)


def test_decode_refuses_an_unknown_op():
    with pytest.raises(ProgramError, match="code 14: its op 6 is none of 0"):
        list(decode(THREE, np.array([0, 14])))


def test_encode_names_the_first_move_of_no_vertex():
    with pytest.raises(IllegalMove, match="move 2, load z: the graph has no vertex z") as caught:
        encode(THREE, ["load a", "slide c from b", "load z", "load y"])
    assert caught.value.index == 2
    with pytest.raises(IllegalMove, match="move 0, slide c from z: the graph has no vertex z"):
        encode(THREE, ["slide c from z"])


def test_an_earlier_breach_comes_before_an_unknown_vertex():
    with pytest.raises(IllegalMove, match="move 0, store a: a is not red"):
        replay(THREE, ["store a", "load z"], 3)


def test_other_integers_are_codes_too():
    codes = np.array([0, 8, 18, 17, 99], np.uint32)[:4]
    assert replay(THREE, codes, 3) == replay(THREE, codes[::1].astype(np.int64), 3)
    spaced = np.array([0, 77, 8, 77, 18, 77, 17, 77])[::2]
    assert replay(THREE, spaced, 3) == Cost(loads=2, stores=1, computes=1, peak=3)


def test_an_implicit_graph_is_replayed():
    moves = ["load x[0]", "compute x[1]", "delete x[0]", "compute x[2]", "store x[2]"]
    assert replay(Chain(3), moves, 2) == Cost(loads=1, stores=1, computes=2, deletes=1, peak=2)
    with pytest.raises(IllegalMove, match=r"move 0, load x\[9\]: the graph has no vertex x\[9\]"):
        replay(Chain(3), ["load x[9]"], 2)


def test_moves_may_come_from_a_generator():
    moves = (Move.parse(text) for text in ("load a", "load b", "compute c", "store c"))
    assert replay(THREE, moves, 3).io == 3


def test_header_packs_four_numbers():
    word = referee.header(Op.COMPUTE, preds=255, function=254, weight=2**40)
    assert [word & 7, word >> 3 & 255, word >> 11 & 255, word >> 19] == [2, 255, 254, 2**40]


def test_a_hundred_thousand_moves_by_hand():
    # x[i] is computed from x[i - 1] in two words of cache: load, then compute and delete in turn.
    n = 50_000
    graph = Graph.from_arrays([0, *range(n)], range(n - 1))
    v = np.arange(1, n)
    steps = np.stack([8 * v + 2, 8 * (v - 1) + 3], axis=1).reshape(-1)
    codes = np.concatenate([[0], steps, [8 * (n - 1) + 1]])
    cost = Cost(loads=1, stores=1, computes=n - 1, deletes=n - 1, peak=2)
    assert replay(graph, codes, 2) == cost
