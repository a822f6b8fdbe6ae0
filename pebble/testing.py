"""Hypothesis strategies: graphs, rules, complete legal games and games with one illegal move.

For the tests of this package, and for those of code that makes schedules. Nothing else in the
package imports hypothesis.

Examples
--------
A property that every legal game has::

    @given(pebble.testing.games())
    def test_every_output_is_stored(played):
        cost = replay(played.graph, played.moves, played.cache, played.rules)
        assert cost.stores >= len(played.graph.outputs)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from pebble.game import Game
from pebble.graph import ComputationGraph, Graph
from pebble.moves import Label, Move, Vertex
from pebble.rules import BLUE, COMPUTED, HONG_KUNG, INPUT, RED, Breach, Op, Rules

KINDS = ("int", "str", "vertex", "tuple")


@dataclass(frozen=True)
class Played:
    """A game from its start: the graph, the cache, the rules and the moves.

    Parameters
    ----------
    graph : Graph
        What is computed.
    cache : int
        The words of fast memory.
    rules : Rules
        The variant that is played.
    moves : tuple of Move
        The moves.
    index : int, optional
        The first illegal move of an illegal game.
    breach : Breach
        The rule that this move breaks; `Breach.LEGAL` for a legal game.

    Examples
    --------
    >>> Played(Graph([(), (0,)]), 2, HONG_KUNG, ()).breach
    <Breach.LEGAL: 0>
    """

    graph: Graph
    cache: int
    rules: Rules
    moves: tuple[Move, ...]
    index: int | None = None
    breach: Breach = Breach.LEGAL


def labels(size: int, kind: str) -> list[Label]:
    """Give so many labels of one kind: "int", "str", "vertex" or "tuple".

    Examples
    --------
    >>> labels(2, "int"), labels(2, "vertex")
    ([3, 13], [Vertex(family='x', index=(0, 0)), Vertex(family='y', index=(0, 1))])
    """
    numbers = range(size)
    if kind == "int":
        return [3 + 10 * v for v in numbers]
    if kind == "str":  # the words of the notation and blanks are labels too
        return ["abcdefghijklmnopqrstuvwxyz"[v % 26] + " from" * (v // 26 + v % 2) for v in numbers]
    if kind == "vertex":
        return [Vertex("xyz"[v % 3], (v // 3, v)) for v in numbers]
    return [("ab"[v % 2], v) for v in numbers]


@st.composite
def graphs(
    draw: st.DrawFn, max_vertices: int = 8, max_in_degree: int = 3, kinds: tuple[str, ...] = KINDS
) -> Graph:
    """Draw a graph that the game can be played on.

    Parameters
    ----------
    max_vertices : int
        The most vertices, at least 2.
    max_in_degree : int
        The most predecessors of a vertex; an input that nothing used may add one more.
    kinds : tuple of str
        The kinds of labels to draw from, see `labels`; default labels (the vertex numbers) are
        always among them. Vertex numbers are in no order that the graph could be computed in.
    """
    size = draw(st.integers(2, max_vertices), label="vertices")
    fed = draw(st.integers(1, size - 1), label="inputs")
    rows: list[set[int]] = [set() for _ in range(fed)]
    for v in range(fed, size):
        rows.append(draw(st.sets(st.integers(0, v - 1), min_size=1, max_size=max_in_degree)))
    used = set().union(*rows)
    for v in range(fed):
        if v not in used:
            rows[draw(st.integers(fed, size - 1))].add(v)
    used = set().union(*rows)
    place = draw(st.permutations(range(size)), label="numbers")
    preds: list[tuple[int, ...]] = [()] * size
    for v, row in enumerate(rows):
        preds[place[v]] = tuple(draw(st.permutations([place[u] for u in sorted(row)])))
    kind = draw(st.sampled_from([None, *kinds]), label="labels")
    names = list(range(size)) if kind is None else labels(size, kind)
    more = draw(st.sets(st.integers(fed, size - 1)), label="outputs that are no sinks")
    ends = [names[place[v]] for v in range(size) if v not in used or v in more]
    return Graph(preds, None if kind is None else names, ends if more else None)


@st.composite
def rules(draw: st.DrawFn, graph: ComputationGraph | None = None, weighted: bool = True) -> Rules:
    """Draw rules; if weighted, some vertices of the graph may weigh 2 or 3 words."""
    weights: dict[Label, int] = {}
    if graph is not None and weighted and draw(st.booleans(), label="weights"):
        names = [graph.label(v) for v in range(len(graph))]
        weights = draw(st.dictionaries(st.sampled_from(names), st.integers(2, 3), max_size=4))
    switches = [draw(st.booleans(), label=name) for name in ("recompute", "sliding")]
    more = [draw(st.booleans(), label=name) for name in ("redundant", "erasing")]
    return Rules(switches[0], switches[1], more[0], more[1], weights, draw(st.integers(0, 2)))


@st.composite
def caches(draw: st.DrawFn, graph: Graph, rules: Rules = HONG_KUNG, spare: int = 3) -> int:
    """Draw a cache in which the graph can be pebbled, at most so many words above the least."""
    return graph.least_cache(rules) + draw(st.integers(0, spare), label="spare words")


def every_move(graph: ComputationGraph) -> Iterator[Move]:
    """Give all moves that can be written down for a graph, legal or not.

    Examples
    --------
    >>> sum(1 for _ in every_move(Graph([(), (0,)])))  # 2 x 5, and 2 x 2 slides
    14
    """
    names = [graph.label(v) for v in range(len(graph))]
    for name in names:
        for op in Op:
            for source in names if op is Op.SLIDE else [None]:
                yield Move(op, name, source)


@st.composite
def games(draw: st.DrawFn, max_vertices: int = 8, max_random: int = 24) -> Played:
    """Draw a complete legal game: some random legal moves, then what is left to do.

    Parameters
    ----------
    max_vertices : int
        The most vertices of the graph.
    max_random : int
        The most random moves; then `finish` ends the game.
    """
    graph = draw(graphs(max_vertices))
    played_by = draw(rules(graph))
    game = Game(graph, draw(caches(graph, played_by)), played_by)
    for _ in range(draw(st.integers(0, max_random), label="random moves")):
        choices = [move for move in game.legal_moves if not _loses(game, move)]
        if choices:
            game.push(draw(st.sampled_from(choices)))
    finish(game)
    return Played(graph, game.cache, played_by, game.moves)


def finish(game: Game) -> None:
    """Play a game to its end: store all, then compute each vertex that isn't blue on its own.

    It needs the least cache of the graph, and a copy left of all that can't be computed again;
    else the game raises `IllegalMove`.

    Examples
    --------
    >>> game = Game(Graph([(), (0,)], labels=["a", "b"]), cache=2)
    >>> finish(game)
    >>> print(*game.moves, sep=", ")
    load a, compute b, store b, delete a, delete b
    """
    graph = game.graph
    _clear(game)
    for v in _order(graph):
        label = graph.label(v)
        if label in game.blue:
            continue
        preds = [graph.label(u) for u in graph.predecessors(v)]
        for name in preds:
            game.push(Move(Op.LOAD, name))
        tries = [Move(Op.COMPUTE, label), *(Move(Op.SLIDE, label, name) for name in preds)]
        game.push(next((move for move in tries if move in game.legal_moves), tries[0]))
        _clear(game)


def _clear(game: Game) -> None:
    red = [game.graph.label(v) for v in range(len(game.graph)) if game.state(v) & RED]
    for op in Op.STORE, Op.DELETE:
        for name in red:
            if op is Op.DELETE or name not in game.blue:
                game.push(Move(op, name))


def _order(graph: ComputationGraph) -> list[int]:
    order: dict[int, None] = {}
    while len(order) < len(graph):
        for v in range(len(graph)):
            if all(u in order for u in graph.predecessors(v)):
                order.setdefault(v)
    return list(order)


def _loses(game: Game, move: Move) -> bool:
    # Whether a move takes away the last copy of what can't be computed again.
    taken = {Op.DELETE: RED, Op.ERASE: BLUE, Op.SLIDE: RED}.get(move.op, 0)
    now = game.state(game.graph.vertex(move.source if move.op is Op.SLIDE else move.vertex))
    gone = bool(taken) and not now & (RED | BLUE) & ~taken
    return gone and bool(now & INPUT or (now & COMPUTED and not game.rules.recompute))


@st.composite
def illegal_games(draw: st.DrawFn, max_vertices: int = 8) -> Played:
    """Draw a game that breaks a rule: a complete legal game with a random mutation.

    A move is left out, made twice, changed, turned into a slide, swapped with another, or put in
    from nowhere, or the cache is made too small. If the game happens to stay legal, a move that is
    illegal at that place is put in.
    """
    played = draw(games(max_vertices))
    moves = list(played.moves)
    at, other = (draw(st.integers(0, len(moves) - 1)) for _ in range(2))
    anything = st.sampled_from([*every_move(played.graph), Move(Op.LOAD, "nowhere")])
    ways = ["leave out", "repeat", "change", "swap", "put in", "slide", "squeeze"]
    mutation = draw(st.sampled_from(ways), label="mutation")
    if mutation == "leave out":
        del moves[at]
    elif mutation == "repeat":
        moves.insert(at, moves[at])
    elif mutation == "change":
        moves[at] = draw(anything)
    elif mutation == "swap":
        moves[at], moves[other] = moves[other], moves[at]
    elif mutation == "slide":
        slides = [move for move in every_move(played.graph) if move.op is Op.SLIDE]
        moves[at] = draw(st.sampled_from(slides))
    elif mutation == "squeeze":
        game = Game(played.graph, played.cache, played.rules)
        for move in moves:
            game.push(move)
        played = replace(played, cache=max(1, game.cost.peak - 1))
    else:
        moves.insert(at, draw(anything))
    found = first_breach(replace(played, moves=tuple(moves)))
    if not found.breach:
        game = Game(played.graph, played.cache, played.rules)
        for move in moves[:at]:
            game.push(move)
        wrong = [move for move in every_move(played.graph) if game.breach(move)]
        moves.insert(at, draw(st.sampled_from([*wrong, Move(Op.STORE, "nowhere")])))
        found = first_breach(replace(played, moves=tuple(moves)))
    return found


def first_breach(played: Played) -> Played:
    """Give the same game with the index and the breach of its first illegal move filled in.

    Examples
    --------
    >>> moves = Move.parse("load a"), Move.parse("store a")
    >>> found = first_breach(Played(Graph([(), (0,)], labels=["a", "b"]), 2, HONG_KUNG, moves))
    >>> found.index, found.breach
    (1, <Breach.ALREADY_BLUE: 8>)
    """
    game = Game(played.graph, played.cache, played.rules)
    for index, move in enumerate(played.moves):
        if breach := game.breach(move):
            return replace(played, index=index, breach=breach)
        game.push(move)
    return replace(played, index=None, breach=Breach.LEGAL)
