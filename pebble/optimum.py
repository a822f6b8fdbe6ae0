"""The least I/O of a small graph, with a schedule that has it: `optimum`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pebble import partial
from pebble.checks import positive
from pebble.cost import Cost
from pebble.errors import ProblemError, SizeError
from pebble.graph import ComputationGraph, Graph, explicit
from pebble.moves import Move
from pebble.replay import replay
from pebble.rules import HONG_KUNG, Op, Rules

if TYPE_CHECKING:
    from pebble.search.driver import Outcome

# The vertices of a graph are the bits of a word; with partial computation, its edges are too.
MOST_VERTICES = MOST_EDGES = 64


@dataclass(frozen=True)
class Optimum:
    """The least I/O of any complete game, with a game that has it.

    Parameters
    ----------
    cost : Cost
        What the schedule costs, as the referee counts it.
    schedule : tuple of Move
        The moves of a best game.
    states : int
        The positions that the search expanded.

    Examples
    --------
    >>> Optimum(Cost(loads=2, stores=1, computes=1, peak=3), (), states=2).io
    3
    """

    cost: Cost
    schedule: tuple[Move, ...]
    states: int

    @property
    def io(self) -> int:
        """The least I/O."""
        return self.cost.io


@dataclass(frozen=True)
class Undecided:
    """What is known of the least I/O where the search was stopped.

    Parameters
    ----------
    lower : int
        No game has less I/O than this.
    cost : Cost
        What the schedule costs, as the referee counts it.
    schedule : tuple of Move
        The moves of the best game that is known.
    states : int
        The positions that the search expanded.
    stopped : str
        What ran out: "states" or "seconds".

    Examples
    --------
    >>> undecided = Undecided(4, Cost(loads=4, stores=2, computes=2, peak=3), (), 9, "seconds")
    >>> undecided.lower, undecided.upper
    (4, 6)
    """

    lower: int
    cost: Cost
    schedule: tuple[Move, ...]
    states: int
    stopped: str

    @property
    def upper(self) -> int:
        """The I/O of the best game that is known."""
        return self.cost.io


def optimum(
    graph: ComputationGraph,
    cache: int,
    rules: Rules = HONG_KUNG,
    vertices: int = MOST_VERTICES,
    seconds: float = 60.0,
    states: int = 10_000_000,
) -> Optimum | Undecided:
    """Find the least I/O of a small graph by exact search.

    A* over the positions of a normal form of the game; `pebble.search` says which, and why. The
    schedule is one that the referee replays at that cost under the same rules: with partial
    computation, `pebble.partial.replay`.

    Parameters
    ----------
    graph : ComputationGraph
        What is computed.
    cache : int
        The words of fast memory, M.
    rules : Rules
        With or without recomputation, with or without sliding, or with partial computation. Moves
        that change nothing and erasing never lower the I/O: they may be legal, and are not made.
    vertices : int
        The most vertices that the graph may have; no more than 64.
    seconds : float
        The search stops after about that time. It does not count the time that the kernels take
        to compile, at the first call ever.
    states : int
        The most positions that one search keeps; each takes some 70 bytes.

    Returns
    -------
    Optimum or Undecided
        The latter where the states or the seconds run out: it has both ends of the interval, and
        the best schedule known.

    Raises
    ------
    SizeError
        A graph with too many vertices (with partial computation, also with more than 64 edges), a
        cache in which it can't be pebbled (the message says the least that works), or a limit that
        is not positive.
    ProblemError
        Rules with weights or with a cost for computing.

    References
    ----------
    The game: Hong and Kung, "I/O complexity: the red-blue pebble game", STOC 1981, section 2. With
    partial computation: Papp, Sobczyk, Yzelman, SPAA 2025, arXiv 2506.10854.

    Examples
    --------
    Four inputs, one output; one product must wait in slow memory while the other is formed, unless
    there is a fourth word.

    >>> dot = Graph([(), (), (), (), (0, 1), (2, 3), (4, 5)], labels=list("abcdxys"))
    >>> optimum(dot, cache=3).io, optimum(dot, cache=4).io
    (7, 5)
    >>> print(*optimum(dot, cache=4).schedule[:4], sep=", ")
    load a, load b, compute x, delete a
    >>> optimum(dot, cache=2)
    Traceback (most recent call last):
    pebble.errors.SizeError: cache = 2: the graph can't be pebbled with less than 3 words

    With partial computation, one product can be added before the other is formed.

    >>> optimum(dot, cache=3, rules=Rules(partial=True)).io
    5
    """
    cache = positive("cache", cache, "the words of fast memory")
    most = positive("vertices", vertices, "the most vertices")
    states = positive("states", states, "the most positions kept")
    if not seconds > 0 or math.isnan(seconds):
        raise SizeError(f"seconds = {seconds!r}: the time must be a positive number")
    if most > MOST_VERTICES:
        raise SizeError(f"vertices = {most}: the search is for at most {MOST_VERTICES}")
    if len(graph) > most:
        raise SizeError(f"a graph of {len(graph)} vertices: at most {most} are searched")
    if rules.weights:
        raise ProblemError("rules with weights: the search is for vertices that weigh one word")
    if rules.compute_cost:
        raise ProblemError(
            f"rules with compute_cost = {rules.compute_cost}: the search is for the least I/O, "
            "to which computes add nothing"
        )
    graph = explicit(graph)
    if rules.partial and len(graph.preds) > MOST_EDGES:
        raise SizeError(f"a graph of {len(graph.preds)} edges: at most {MOST_EDGES} are searched")
    least = 2 if rules.partial else graph.least_cache(rules)
    if cache < least:
        raise SizeError(f"cache = {cache}: the graph can't be pebbled with less than {least} words")
    return _Hunt(graph, cache, rules, seconds, states).result()


def plain_schedule(graph: Graph, rules: Rules) -> tuple[Move, ...]:
    """Give a game that works in the least cache: each vertex on its own, and all stored.

    Examples
    --------
    >>> print(*plain_schedule(Graph([(), (0,)], ["a", "b"]), HONG_KUNG), sep=", ")
    load a, compute b, store b, delete a, delete b
    """
    moves = []
    for v in graph.topological():
        preds = [graph.label(u) for u in graph.predecessors(v)]
        if not preds:
            continue
        label = graph.label(v)
        moves += [Move(Op.LOAD, name) for name in preds]
        if rules.sliding:
            moves += [Move(Op.SLIDE, label, preds.pop(0)), Move(Op.STORE, label)]
        else:
            moves += [Move(Op.COMPUTE, label), Move(Op.STORE, label)]
        moves += [Move(Op.DELETE, name) for name in [*preds, label]]
    return tuple(moves)


class _Ordinary:
    # The ordinary game, as the hunt sees it.

    def __init__(self, graph: Graph, rules: Rules) -> None:
        self.graph, self.rules = graph, rules

    def plain(self) -> tuple[Move, ...]:
        return plain_schedule(self.graph, self.rules)

    def replay(self, moves: tuple[Move, ...], cache: int) -> Cost:
        return replay(self.graph, moves, cache, self.rules)

    def board(self, graph: Graph, cache: int, recompute: bool) -> Any:
        from pebble.search import driver  # numba is imported only where it is used

        return driver.board(graph, cache, Rules(recompute, self.rules.sliding))

    def soon(self, board: Any, upper: int, states: int, late: Callable[[], bool]) -> Outcome:
        from pebble.search import driver

        return driver.search(board, upper, 4, min(states, 100_000), late)

    def moves(self, board: Any, path: Any) -> tuple[Move, ...]:
        from pebble.search import trail

        return trail.moves_of(self.graph, board, path)


class _Partial(_Ordinary):
    # The game with partial computation. It recomputes nothing.

    def plain(self) -> tuple[Move, ...]:
        return partial.plain_schedule(self.graph)

    def replay(self, moves: tuple[Move, ...], cache: int) -> Cost:
        return partial.replay(self.graph, moves, cache)

    def board(self, graph: Graph, cache: int, recompute: bool) -> Any:
        from pebble.partial.search import PartialBoard

        return PartialBoard(graph, cache)

    def soon(self, board: Any, upper: int, states: int, late: Callable[[], bool]) -> Outcome:
        from pebble.partial.search import beam

        return beam(board, 100, late)

    def moves(self, board: Any, path: Any) -> tuple[Move, ...]:
        from pebble.partial.search import moves_of

        return moves_of(self.graph, board, path)


class _Hunt:
    # A search in stages, each for less than the best game so far.

    def __init__(self, graph: Graph, cache: int, rules: Rules, seconds: float, states: int) -> None:
        self.game = _Partial(graph, rules) if rules.partial else _Ordinary(graph, rules)
        self.cache, self.recompute = cache, rules.recompute
        self.seconds, self.states = seconds, states
        self.expanded, self.spent = 0, 0.0
        self.schedule: tuple[Move, ...] = ()
        self.cost = Cost()
        self._take(self.game.plain())

    def result(self) -> Optimum | Undecided:
        # A game that is found soon, then a best one that computes each vertex once, then, if it
        # matters, a best one: its search is much longer, and shorter if there is less to find.
        self._search(False, self.seconds / 4, self.game.soon)
        limit = self.seconds / 2 if self.recompute else self.seconds
        found = self._search(False, limit, self._best)
        if self.recompute:
            found = self._search(True, self.seconds, self._best)
        if found.stopped:
            lower, stopped = found.lower, found.stopped
            return Undecided(lower, self.cost, self.schedule, self.expanded, stopped)
        return Optimum(self.cost, self.schedule, self.expanded)

    def _best(self, board: Any, upper: int, states: int, late: Callable[[], bool]) -> Outcome:
        from pebble.search import driver

        return driver.search(board, upper, 1, states, late)

    def _search(self, recompute: bool, seconds: float, look: Callable[..., Outcome]) -> Outcome:
        from pebble.search import driver  # numba is imported only where it is used

        board = self.game.board(self.game.graph, self.cache, recompute)
        driver.compile_kernels(lambda graph: self.game.board(graph, 2, recompute))
        begun = time.monotonic() - self.spent
        found = look(board, self.cost.io, self.states, lambda: time.monotonic() - begun > seconds)
        self.spent = time.monotonic() - begun
        self.expanded += found.expanded
        if found.path is not None:
            self._take(self.game.moves(board, found.path))
        return found

    def _take(self, moves: tuple[Move, ...]) -> None:
        cost = self.game.replay(moves, self.cache)
        if not self.schedule or cost.io < self.cost.io:
            self.schedule, self.cost = moves, cost
