import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble import testing
from pebble.cost import Cost
from pebble.errors import IllegalMove, NotationError, PebbleError, SizeError, UnknownName
from pebble.game import Game
from pebble.graph import Graph
from pebble.moves import Move, Vertex
from pebble.replay import replay
from pebble.rules import Breach, Rules
from tests import naive
from tests.tables import as_dict, as_keywords, as_tuples, rows, small, small_graph

THREE = Graph([(), (), (0, 1)], labels=["a", "b", "c"])


def perft(game, length):
    """Count the legal move sequences of a length from here."""
    if length == 0:
        return 1
    found = 0
    for move in list(game.legal_moves):
        game.push(move)
        found += perft(game, length - 1)
        game.pop()
    return found


def named(row):
    return f"{row['graph']}, {row['cache']}"


@pytest.mark.parametrize("row", rows("perft.csv"), ids=named)
def test_perft(row):
    counts = [int(row[str(length)]) for length in range(1, 7)]
    cache = int(row["cache"])
    game = Game(small_graph(row["graph"]), cache)
    assert [perft(game, length) for length in range(1, 7)] == counts
    preds, _ = small(row["graph"])
    assert [naive.perft(preds, cache, length) for length in range(1, 6)] == counts[:5]


@pytest.mark.parametrize("row", rows("optima.csv"), ids=named)
def test_naive_optima(row):
    preds, outputs = small(row["graph"])
    cache, io = int(row["cache"]), int(row["io"])
    assert naive.optimum(preds, outputs, cache) == io
    if len(preds) * cache < 48:  # here nothing is gained by computing a vertex twice
        assert naive.optimum(preds, outputs, cache, recompute=False) == io


def play(*moves, graph=THREE, cache=3, rules=None):
    game = Game(graph, cache, rules or Rules())
    for move in moves:
        game.push(move)
    return game


# One sentence for every breach: what was played, the move that is illegal, and why.

SLIDING = Rules(sliding=True)
SENTENCES = [
    ([], "slide c from a", Rules(), "NOT_IN_THE_GAME",
     "these rules have no such move; Rules(sliding=True) have it"),
    ([], "erase a", Rules(), "NOT_IN_THE_GAME",
     "these rules have no such move; Rules(erasing=True) have it"),
    ([], "slide z from a", Rules(), "NOT_IN_THE_GAME",
     "these rules have no such move; Rules(sliding=True) have it"),
    ([], "load z", Rules(), "NO_SUCH_VERTEX", "the graph has no vertex z"),
    ([], "slide c from z", SLIDING, "NO_SUCH_VERTEX", "the graph has no vertex z"),
    ([], "slide y from z", SLIDING, "NO_SUCH_VERTEX", "the graph has no vertex y and no vertex z"),
    ([], "load c", Rules(), "NOT_BLUE", "c is not blue, so it can't be loaded"),
    ([], "erase c", Rules(erasing=True), "NOT_BLUE", "c is not blue, so it can't be erased"),
    ([], "store c", Rules(), "NOT_RED", "c is not red, so it can't be stored"),
    ([], "delete a", Rules(), "NOT_RED", "a is not red, so it can't be deleted"),
    ([], "compute a", Rules(), "IS_INPUT", "a is an input: it is loaded, never computed"),
    (["load a", "load b", "compute c", "delete c"], "compute c", Rules(recompute=False),
     "RECOMPUTED", "c was computed before; Rules(recompute=True) let it be computed again"),
    (["load a"], "load a", Rules(), "ALREADY_RED",
     "a is red already; Rules(redundant=True) let it be loaded again"),
    (["load a", "load b", "compute c"], "compute c", Rules(), "ALREADY_RED",
     "c is red already; Rules(redundant=True) let it be computed again"),
    (["load a"], "store a", Rules(), "ALREADY_BLUE",
     "a is blue already; Rules(redundant=True) let it be stored again"),
    (["load a"], "compute c", Rules(), "PREDECESSOR_NOT_RED", "b is not red (1 of 3 red)"),
    ([], "slide c from a", SLIDING, "PREDECESSOR_NOT_RED", "a, b are not red (0 of 3 red)"),
    (["load a", "load b"], "slide c from c", SLIDING, "NOT_A_PREDECESSOR",
     "c is no predecessor of c; those are a, b"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "move", "rules", "breach", "why"), SENTENCES)
def test_every_breach_has_a_sentence(before, move, rules, breach, why):
    game = play(*before, rules=rules)
    assert game.breach(move) is Breach[breach]
    assert move not in game.legal_moves
    with pytest.raises(IllegalMove) as caught:
        game.push(move)
    error = caught.value
    assert str(error) == f"move {len(before)}, {move}: {why}"
    assert (error.index, error.move, error.breach) == (
        len(before),
        Move.parse(move),
        Breach[breach],
    )
    assert game.moves == tuple(map(Move.parse, before))
    with pytest.raises(IllegalMove) as again:
        replay(THREE, [*before, move], 3, rules)
    assert str(again.value) == str(error)
    assert (again.value.index, again.value.breach) == (error.index, error.breach)


def test_no_breach_is_without_a_sentence():
    tested = {Breach[case[3]] for case in SENTENCES} | {Breach.CACHE_FULL}
    assert tested == set(Breach) - {Breach.LEGAL}


@pytest.mark.parametrize(
    ("cache", "rules", "before", "move", "numbers"),
    [
        (2, Rules(), ["load a", "load b"], "compute c", (2, 1, 3)),
        (3, Rules(weights={"b": 3}), ["load b"], "load a", (3, 1, 5)),
        (3, Rules(weights={"b": 3}), ["load a"], "load b", (1, 3, 5)),
        (1, SLIDING, ["load a"], "load b", (1, 1, 2)),
        (
            3,
            Rules(sliding=True, weights={"c": 3}),
            ["load a", "load b"],
            "slide c from a",
            (2, 2, 4),
        ),
    ],
)
def test_a_full_cache_says_the_least_that_works(cache, rules, before, move, numbers):
    used, takes, least = numbers
    why = (
        f"the cache is full: {used} of {cache} red, and {Move.parse(move).vertex} takes "
        f"{takes} more; the least cache for this graph is {least}"
    )
    game = play(*before, cache=cache, rules=rules)
    for player in game.push, lambda last: replay(THREE, [*before, last], cache, rules):
        with pytest.raises(IllegalMove) as caught:
            player(move)
        assert (caught.value.breach, caught.value.why) == (Breach.CACHE_FULL, why)


def test_the_example_of_a_missing_predecessor():
    labels = [Vertex(family, (i,)) for family in "QK" for i in range(4)] + [Vertex("S", (3, 0))]
    graph = Graph([()] * 8 + [tuple(range(8))], labels)
    with pytest.raises(IllegalMove, match=r"move 6, compute S\[3,0\]: Q\[3\], K\[3\] are not red"):
        play(*(f"load {f}[{i}]" for f in "QK" for i in range(3)), "compute S[3,0]", graph=graph,
             cache=9)  # fmt: skip


@pytest.mark.parametrize("cache", [0, -1, 2.0, True, "3", None])
def test_a_cache_is_a_positive_integer(cache):
    for player in (lambda: Game(THREE, cache), lambda: replay(THREE, [], cache)):
        with pytest.raises(SizeError, match=r"cache = .* must be a positive integer"):
            player()


def test_a_text_that_is_no_move():
    with pytest.raises(NotationError):
        Game(THREE, 3).push("lod a")


def test_a_game_shows_its_state():
    game = play("load a", "load b", "compute c", "delete a")
    assert game.red == {"b", "c"}
    assert game.blue == {"a", "b"}
    assert game.cost == Cost(loads=2, computes=1, deletes=1, peak=3)
    assert not game.status.complete
    assert (game.status.used, game.status.cache, game.status.missing) == (2, 3, ("c",))
    assert str(game) == (
        "after 4 moves: I/O 2 (2 loads, 0 stores), 2 of 3 words red\n"
        "red: b, c\nblue: a, b\nstill to store: c"
    )
    assert repr(game.legal_moves) == "<LegalMoves: load a, delete b, store c, delete c>"
    game.push(Move.parse("store c"))
    assert game.status.complete
    assert str(game).endswith("blue: a, b, c\nstill to store: -")
    assert repr(game) == ("<Game after 5 moves: I/O 3 (2 loads, 1 stores), 2 of 3 words red>")
    with pytest.raises(PebbleError, match="no move to take back: the game is at its start"):
        play().pop()


def test_sliding_moves_a_pebble():
    game = play("load a", "load b", "slide c from a", cache=2, rules=SLIDING)
    assert game.red == {"b", "c"}
    assert game.cost == Cost(loads=2, computes=1, peak=2)
    assert game.pop() == Move.parse("slide c from a")
    assert game.red == {"a", "b"}


def test_weights_count_in_the_cache_and_in_the_io():
    rules = Rules(weights={"c": 2, "a": 3})
    game = play("load a", "load b", "compute c", "store c", "delete a", cache=6, rules=rules)
    assert game.cost == Cost(loads=4, stores=2, computes=1, deletes=1, peak=6)
    assert game.status.used == 3


def test_redundant_moves_cost_but_take_no_room():
    rules = Rules(redundant=True)
    moves = ["load a", "load a", "store a", "load b", "compute c", "compute c", "store c"]
    assert play(*moves, rules=rules).cost == Cost(loads=3, stores=2, computes=2, peak=3)


def snapshot(game):
    return game.red, game.blue, game.cost, game.status, game.moves, tuple(game.legal_moves)


@given(testing.games(max_vertices=6), st.data())
def test_pop_undoes_push(played, data):
    game = Game(played.graph, played.cache, played.rules)
    stop = data.draw(st.integers(0, len(played.moves)))
    for move in played.moves[:stop]:
        game.push(move)
    before = snapshot(game)
    for move in played.moves[stop:]:
        game.push(move)
    for move in reversed(played.moves[stop:]):
        assert game.pop() == move
    assert snapshot(game) == before


@settings(max_examples=100)
@given(testing.games(max_vertices=6), st.data())
def test_legal_moves_are_those_that_the_naive_referee_allows(played, data):
    game = Game(played.graph, played.cache, played.rules)
    for move in played.moves[: data.draw(st.integers(0, len(played.moves)))]:
        game.push(move)
    preds, outputs = as_dict(played.graph)
    allowed = []
    for move in testing.every_move(played.graph):
        verdict = naive.play(
            preds,
            outputs,
            played.cache,
            as_tuples([*game.moves, move]),
            **as_keywords(played.rules),
        )
        reason = verdict.reason if isinstance(verdict, naive.Illegal) else "LEGAL"
        assert game.breach(move).name == reason
        assert (move in game.legal_moves) == (str(move) in game.legal_moves) == (reason == "LEGAL")
        if reason == "LEGAL":
            allowed.append(move)
    assert len(game.legal_moves) == len(list(game.legal_moves)) == len(allowed)
    assert set(game.legal_moves) == set(allowed)
    assert bool(game.legal_moves) == bool(allowed)


def test_a_weight_of_what_is_not_there_is_refused():
    graph = Graph([(), (0,)], labels=["a", "b"])
    for ask in (
        lambda rules: Game(graph, 4, rules),
        lambda rules: replay(graph, ["load a"], 4, rules),
    ):
        with pytest.raises(
            UnknownName, match="weight of c: the graph has no such vertex or family"
        ):
            ask(Rules(weights={"c": 2}))
