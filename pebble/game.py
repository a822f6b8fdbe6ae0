"""The game, move by move: `Game` is for people, small graphs and searches that backtrack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pebble.checks import positive
from pebble.cost import Cost
from pebble.errors import GraphError, IllegalMove, PebbleError
from pebble.explain import absent, explain
from pebble.graph import ComputationGraph
from pebble.moves import Label, Move, listed
from pebble.rules import BLUE, HONG_KUNG, RED, Breach, Op, Rules, after, judge
from pebble.start import start_state, weights_of


@dataclass(frozen=True)
class Status:
    """Where a game stands.

    Parameters
    ----------
    cost : Cost
        What the moves so far cost.
    used : int
        The words that are red.
    cache : int
        The words that may be red.
    missing : tuple of labels
        The outputs that are not blue yet.

    Examples
    --------
    >>> Status(Cost(), used=0, cache=3, missing=("c",)).complete
    False
    """

    cost: Cost
    used: int
    cache: int
    missing: tuple[Label, ...]

    @property
    def complete(self) -> bool:
        """Whether every output is blue."""
        return not self.missing


class Game:
    """A game in progress on a graph.

    Parameters
    ----------
    graph : ComputationGraph
        What is computed.
    cache : int
        The words of fast memory, M. It may be too small for the graph: `IllegalMove` then says
        the least cache that works.
    rules : Rules
        The variant that is played. Default: Hong and Kung's.

    Raises
    ------
    SizeError
        A cache that is no positive integer.

    Examples
    --------
    >>> from pebble.graph import Graph
    >>> game = Game(Graph([(), (), (0, 1)], labels=["a", "b", "c"]), cache=3)
    >>> list(game.legal_moves)
    [Move('load a'), Move('load b')]
    >>> for move in "load a", "load b", "compute c":
    ...     game.push(move)
    >>> print(game)
    after 3 moves: I/O 2 (2 loads, 0 stores), 3 of 3 words red
    red: a, b, c
    blue: a, b
    still to store: c
    >>> game.pop(), "store c" in game.legal_moves
    (Move('compute c'), False)
    >>> game.push("store c")
    Traceback (most recent call last):
    pebble.errors.IllegalMove: move 2, store c: c is not red, so it can't be stored
    """

    def __init__(self, graph: ComputationGraph, cache: int, rules: Rules = HONG_KUNG) -> None:
        self.graph = graph
        self.cache = positive("cache", cache, "the words of fast memory")
        self.rules = rules
        self._switches = rules.switches
        self._weights: list[int] = weights_of(graph, rules).tolist()
        self._state = bytearray(start_state(graph))
        self._used = 0
        self._cost = Cost()
        # For every move: itself, its vertex and source, and all that it changed, as it was.
        self._played: list[tuple[Move, int, int, int, int, int, Cost]] = []

    def breach(self, move: Move | str) -> Breach:
        """Give the rule that a move would break now; `Breach.LEGAL` if none.

        Examples
        --------
        >>> from pebble.graph import Graph
        >>> Game(Graph([(), (0,)]), cache=2).breach("compute 1")
        <Breach.PREDECESSOR_NOT_RED: 9>
        """
        return self._look(Move.parse(move) if isinstance(move, str) else move)[0]

    def push(self, move: Move | str) -> None:
        """Make a move, a `Move` or its text.

        Raises
        ------
        IllegalMove
            With the index of the move, the breach, and what was missing.
        NotationError
            A text that is no move.
        """
        move = Move.parse(move) if isinstance(move, str) else move
        breach, v, source = self._look(move)
        if breach:
            why = explain(breach, move, self.graph, self._state, self._used, self.cache, self.rules)
            raise IllegalMove(len(self._played), move, breach, why)
        op, now, was = move.op, self._state[v], self._state[source]
        self._played.append((move, v, source, now, was, self._used, self._cost))
        if op is Op.SLIDE:
            self._state[source] &= ~RED
            self._used -= self._weight(source)
        self._state[v] = after(op, now)
        self._used += self._weight(v) * ((self._state[v] & RED) - (now & RED))
        self._cost += Cost(
            loads=self._weight(v) if op is Op.LOAD else 0,
            stores=self._weight(v) if op is Op.STORE else 0,
            computes=int(op in (Op.COMPUTE, Op.SLIDE)),
            deletes=int(op is Op.DELETE),
            peak=self._used,
        )

    def pop(self) -> Move:
        """Take the last move back and give it.

        Raises
        ------
        PebbleError
            There is none.
        """
        if not self._played:
            raise PebbleError("no move to take back: the game is at its start")
        move, v, source, now, was, self._used, self._cost = self._played.pop()
        self._state[source] = was
        self._state[v] = now
        return move

    @property
    def moves(self) -> tuple[Move, ...]:
        """The moves made so far."""
        return tuple(entry[0] for entry in self._played)

    @property
    def legal_moves(self) -> LegalMoves:
        """The moves that are legal now, as a lazy view that follows the game."""
        return LegalMoves(self)

    @property
    def cost(self) -> Cost:
        """What the moves so far cost."""
        return self._cost

    @property
    def red(self) -> frozenset[Label]:
        """The labels of what is in fast memory."""
        return frozenset(self._on(RED))

    @property
    def blue(self) -> frozenset[Label]:
        """The labels of what is in slow memory."""
        return frozenset(self._on(BLUE))

    @property
    def status(self) -> Status:
        """Where the game stands, as a value."""
        missing = [v for v in self.graph.outputs if not self._state[v] & BLUE]
        return Status(
            self._cost, self._used, self.cache, tuple(self.graph.label(v) for v in missing)
        )

    def state(self, v: int) -> int:
        """Give what lies on vertex number v, as bits of `pebble.rules`.

        Examples
        --------
        >>> from pebble.graph import Graph
        >>> from pebble.rules import BLUE, INPUT
        >>> Game(Graph([(), (0,)]), cache=2).state(0) == BLUE | INPUT
        True
        """
        return self._state[v]

    def __str__(self) -> str:
        played, status, cost = len(self._played), self.status, self._cost
        return (
            f"after {played} move{'s' * (played != 1)}: I/O {cost.io} "
            f"({cost.loads} loads, {cost.stores} stores), "
            f"{self._used} of {self.cache} words red\n"
            f"red: {listed(self._on(RED), 24) or '-'}\n"
            f"blue: {listed(self._on(BLUE), 24) or '-'}\n"
            f"still to store: {listed(status.missing, 24) or '-'}"
        )

    def __repr__(self) -> str:
        return f"<Game {str(self).splitlines()[0]}>"

    def _on(self, colour: int) -> list[Label]:
        return [self.graph.label(v) for v, now in enumerate(self._state) if now & colour]

    def _weight(self, v: int) -> int:
        return self._weights[v] if self._weights else 1

    def _look(self, move: Move) -> tuple[Breach, int, int]:
        # The breach of a move, its vertex and the vertex that it slides from (else its vertex).
        try:
            v = self.graph.vertex(move.vertex)
            source = self.graph.vertex(move.source) if move.op is Op.SLIDE else v
        except GraphError:
            return absent(move.op, self._switches), 0, 0
        return self._judge(move.op, v, source), v, source

    def _judge(self, op: Op, v: int, source: int) -> Breach:
        ready, joined, growth = True, False, self._weight(v)
        if op in (Op.COMPUTE, Op.SLIDE):
            preds = self.graph.predecessors(v)
            ready = all(self._state[u] & RED for u in preds)
            joined = source in preds
            growth -= self._weight(source) if op is Op.SLIDE else 0
        fits = self._used + growth <= self.cache
        return Breach(judge(op, self._state[v], ready, joined, fits, self._switches))


class LegalMoves:
    """The legal moves of a game: iterate, ask ``move in``, ``len`` or truth.

    The order is by vertex number, then by op, then by the predecessor that is slid from. The view
    is lazy and follows the game: make a list of it before pushing moves while iterating.

    Examples
    --------
    >>> from pebble.graph import Graph
    >>> game = Game(Graph([(), (0,)], ["a", "b"]), cache=2)
    >>> game.push("load a")
    >>> game.legal_moves, len(game.legal_moves)
    (<LegalMoves: delete a, compute b>, 2)
    """

    def __init__(self, game: Game) -> None:
        self._game = game

    def __iter__(self) -> Iterator[Move]:
        game = self._game
        for v in range(len(game.graph)):
            for op in Op:
                sources = game.graph.predecessors(v) if op is Op.SLIDE else (v,)
                for source in sources:
                    if not game._judge(op, v, source):
                        label = game.graph.label(v)
                        slid = game.graph.label(source) if op is Op.SLIDE else None
                        yield Move(op, label, slid)

    def __contains__(self, move: Move | str) -> bool:
        return not self._game.breach(move)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return any(True for _ in self)

    def __repr__(self) -> str:
        return f"<LegalMoves: {', '.join(map(str, self)) or 'none'}>"
