"""The game with partial computation, move by move, with errors that say what was missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pebble.checks import positive
from pebble.cost import Cost
from pebble.errors import GraphError, IllegalMove
from pebble.graph import ComputationGraph, explicit
from pebble.moves import Label, Move, listed, notation
from pebble.partial.moves import OPS, PartialMove
from pebble.partial.rules import PartialBreach, after, judge
from pebble.rules import BLUE, RED, Op


class PartialGame:
    """A game with partial computation, in progress on a graph.

    Parameters
    ----------
    graph : ComputationGraph
        What is computed. A graph that isn't explicit is made so first.
    cache : int
        The words of fast memory, M. Any graph can be pebbled with 2.

    Attributes
    ----------
    state : array of uint8
        What lies on every vertex: RED and BLUE bits of `pebble.rules`.
    marked : array of bool
        Whether every edge is marked, in the order of ``graph.preds``.
    into, out : array of int64
        How many edges into and out of every vertex are not marked.

    Raises
    ------
    SizeError
        A cache that is no positive integer.

    Examples
    --------
    The sum of a and b in two words: a makes room for b.

    >>> from pebble.graph import Graph
    >>> game = PartialGame(Graph([(), (), (0, 1)], labels=["a", "b", "c"]), cache=2)
    >>> for move in "load a", "compute c from a", "delete a", "load b":
    ...     game.push(move)
    >>> list(game.legal_moves)
    [PartialMove('delete b'), PartialMove('store c'), PartialMove('compute c from b')]
    >>> game.push("delete c")
    Traceback (most recent call last):
    pebble.errors.IllegalMove: move 4, delete c: c is not blue and 1 of 2 predecessors is not added
    to it: b
    """

    def __init__(self, graph: ComputationGraph, cache: int) -> None:
        self.graph = explicit(graph)
        self.cache = positive("cache", cache, "the words of fast memory")
        starts = self.graph.starts
        self.heads = np.repeat(np.arange(len(self.graph)), np.diff(starts))
        self.state = np.zeros(len(self.graph), np.uint8)
        self.state[list(self.graph.inputs)] = BLUE
        self.marked = np.zeros(len(self.graph.preds), np.bool_)
        self.into: Any = np.diff(starts)
        self.out: Any = np.bincount(self.graph.preds, minlength=len(self.graph))
        self.used = 0
        self.cost = Cost()
        self._moves: list[PartialMove] = []

    @property
    def moves(self) -> tuple[PartialMove, ...]:
        """The moves made so far."""
        return tuple(self._moves)

    @property
    def missing(self) -> tuple[Label, ...]:
        """The outputs that are not finished and blue."""
        open_ = [v for v in self.graph.outputs if self.into[v] or not self.state[v] & BLUE]
        return tuple(self.graph.label(v) for v in open_)

    @property
    def legal_moves(self) -> Iterator[PartialMove]:
        """The moves that are legal now, by vertex, then by op, then by predecessor."""
        for v in range(len(self.graph)):
            label = self.graph.label(v)
            for op in OPS:
                ends = self.graph.predecessors(v) if op is Op.COMPUTE else (None,)
                for u in ends:
                    move = PartialMove(op, label, None if u is None else self.graph.label(u))
                    if not self.breach(move):
                        yield move

    def edge(self, v: int, u: int) -> int:
        """Give the number of the edge (u, v): its place in ``graph.preds``.

        Examples
        --------
        >>> from pebble.graph import Graph
        >>> PartialGame(Graph([(), (), (1, 0)]), cache=2).edge(2, 0)
        1
        """
        return int(self.graph.starts[v]) + self.graph.predecessors(v).index(u)

    def breach(self, move: Move | str) -> PartialBreach:
        """Give the rule that a move would break now; `PartialBreach.LEGAL` if none."""
        move = PartialMove.parse(move) if isinstance(move, str) else move
        unsound = misfit(self.graph, move)
        return unsound or self._judge(move)

    def push(self, move: Move | str) -> None:
        """Make a move, a `PartialMove` or its text.

        Raises
        ------
        IllegalMove
            With the index of the move, the breach, and what was missing.
        NotationError
            A text that is no move.
        """
        move = PartialMove.parse(move) if isinstance(move, str) else move
        breach = self.breach(move)
        if breach:
            raise IllegalMove(len(self._moves), move, breach, explain(self, move, breach))
        op, v = move.op, self.graph.vertex(move.vertex)
        was = int(self.state[v])
        if op is Op.COMPUTE:
            u = self.graph.vertex(move.source)
            self.marked[self.edge(v, u)] = True
            self.into[v] -= 1
            self.out[u] -= 1
        self.state[v] = after(op, was)
        self.used += int(self.state[v] & RED) - (was & RED)
        self.cost += Cost(
            loads=int(op is Op.LOAD),
            stores=int(op is Op.STORE),
            computes=int(op is Op.COMPUTE),
            deletes=int(op is Op.DELETE),
            peak=self.used,
        )
        self._moves.append(PartialMove(op, move.vertex, move.source))

    def __repr__(self) -> str:
        count = len(self._moves)
        return (
            f"<PartialGame after {count} move{'s' * (count != 1)}: I/O {self.cost.io}, "
            f"{self.used} of {self.cache} words red>"
        )

    def _judge(self, move: Move) -> PartialBreach:
        v = self.graph.vertex(move.vertex)
        given = whole = marked = False
        if move.op is Op.COMPUTE:
            u = self.graph.vertex(move.source)
            given, whole = bool(self.state[u] & RED), not self.into[u]
            marked = bool(self.marked[self.edge(v, u)])
        needed = bool(self.into[v] or self.out[v])
        fits = self.used < self.cache
        return PartialBreach(judge(move.op, int(self.state[v]), given, whole, marked, needed, fits))


def misfit(graph: ComputationGraph, move: Move) -> PartialBreach:
    """Give the rule that a move breaks wherever the game stands; `PartialBreach.LEGAL` if none.

    Examples
    --------
    >>> from pebble.graph import Graph
    >>> misfit(Graph([(), (0,)]), PartialMove(Op.COMPUTE, 0, 1))
    <PartialBreach.IS_INPUT: 5>
    """
    if move.op not in OPS or (move.op is Op.COMPUTE) != (move.source is not None):
        return PartialBreach.NOT_IN_THE_GAME
    try:
        v = graph.vertex(move.vertex)
        u = v if move.source is None else graph.vertex(move.source)
    except GraphError:
        return PartialBreach.NO_SUCH_VERTEX
    if move.op is Op.COMPUTE:
        if graph.is_input(v):
            return PartialBreach.IS_INPUT
        if u not in graph.predecessors(v):
            return PartialBreach.NOT_A_PREDECESSOR
    return PartialBreach.LEGAL


def explain(game: PartialGame, move: Move, breach: PartialBreach) -> str:
    """Say what was missing for an illegal move.

    Examples
    --------
    >>> from pebble.graph import Graph
    >>> game = PartialGame(Graph([(), (0,)], labels=["a", "b"]), cache=2)
    >>> explain(game, PartialMove(Op.COMPUTE, "b", "a"), PartialBreach.PREDECESSOR_NOT_RED)
    'a is not red (0 of 2 red)'
    """
    graph = game.graph
    if breach is PartialBreach.NOT_IN_THE_GAME:
        return "the moves are load v, store v, compute v from u, and delete v"
    if breach is PartialBreach.NO_SUCH_VERTEX:
        named = [move.vertex, *([] if move.source is None else [move.source])]
        strangers = [label for label in named if not _exists(graph, label)]
        return f"the graph has no vertex {' and no vertex '.join(map(notation, strangers))}"
    name, v = notation(move.vertex), graph.vertex(move.vertex)
    if breach is PartialBreach.IS_INPUT:
        return f"{name} is an input: it is loaded, never computed"
    done = {Op.LOAD: "loaded", Op.STORE: "stored"}.get(move.op, "deleted")
    if breach is PartialBreach.NOT_BLUE:
        return f"{name} is not blue, so it can't be {done}"
    if breach is PartialBreach.NOT_RED:
        return f"{name} is not red, so it can't be {done}"
    if breach is PartialBreach.ALREADY_RED:
        return f"{name} is red already"
    if breach is PartialBreach.ALREADY_BLUE:
        return f"{name} is light red: what is blue on it is up to date"
    if breach is PartialBreach.NOT_LOADED:
        return f"{name} is blue and not red: load it before more is added to it"
    if breach is PartialBreach.CACHE_FULL:
        return f"the cache is full: {game.used} of {game.cache} red; any graph can do with 2"
    if breach is PartialBreach.STILL_NEEDED:
        return f"{name} is not blue and {_needs(game, v)}"
    source = notation(move.source)
    if breach is PartialBreach.NOT_A_PREDECESSOR:
        preds = [graph.label(u) for u in graph.predecessors(v)]
        return f"{source} is no predecessor of {name}; those are {listed(preds)}"
    if breach is PartialBreach.ALREADY_ADDED:
        return f"{source} was added to {name} before; each edge is computed once"
    if breach is PartialBreach.PREDECESSOR_NOT_RED:
        return f"{source} is not red ({game.used} of {game.cache} red)"
    assert breach is PartialBreach.PREDECESSOR_UNFINISHED
    return f"{source} is not finished: {_needs(game, graph.vertex(move.source))}"


def _needs(game: PartialGame, v: int) -> str:
    # What is still to be added to a vertex, else what it is still to be added to.
    graph = game.graph
    preds = graph.predecessors(v)
    lacks = [u for u in preds if not game.marked[game.edge(v, u)]]
    if lacks:
        names = listed([graph.label(u) for u in lacks])
        is_not = "is not" if len(lacks) == 1 else "are not"
        return f"{len(lacks)} of {len(preds)} predecessors {is_not} added to it: {names}"
    heads = [w for w in graph.successors(v) if not game.marked[game.edge(w, v)]]
    return f"it is not added yet to {listed([graph.label(w) for w in heads])}"


def _exists(graph: ComputationGraph, label: Label) -> bool:
    try:
        graph.vertex(label)
    except GraphError:
        return False
    return True
