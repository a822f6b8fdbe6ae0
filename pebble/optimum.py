"""The least I/O of a small graph, with a schedule that has it: `optimum`."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from pebble.checks import positive
from pebble.cost import Cost
from pebble.errors import ProblemError, SizeError
from pebble.graph import ComputationGraph, Graph, explicit
from pebble.moves import Move
from pebble.replay import replay
from pebble.rules import HONG_KUNG, Op, Rules

# The vertices of a graph are the bits of a word.
MOST_VERTICES = 64


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
    schedule is one that the referee replays at that cost under the same rules.

    Parameters
    ----------
    graph : ComputationGraph
        What is computed.
    cache : int
        The words of fast memory, M.
    rules : Rules
        With or without recomputation, with or without sliding. Moves that change nothing and
        erasing never lower the I/O: they may be legal, and are not made.
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
        A graph with too many vertices, a cache in which it can't be pebbled (the message says the
        least that works), or a limit that is not positive.
    ProblemError
        Rules with weights or with a cost for computing.

    References
    ----------
    The game: Hong and Kung, "I/O complexity: the red-blue pebble game", STOC 1981, section 2.

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
    least = graph.least_cache(rules)
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


class _Hunt:
    # A search in stages, each for less than the best game so far.

    def __init__(self, graph: Graph, cache: int, rules: Rules, seconds: float, states: int) -> None:
        self.graph, self.cache, self.rules = graph, cache, rules
        self.seconds, self.states = seconds, states
        self.expanded, self.spent = 0, 0.0
        self._take(plain_schedule(graph, rules))

    def result(self) -> Optimum | Undecided:
        # A game that is found soon, then a best one that computes each vertex once, then, if it
        # matters, a best one: its search is much longer, and shorter if there is less to find.
        self._search(False, greed=4, states=min(self.states, 100_000), seconds=self.seconds / 4)
        limit = self.seconds / 2 if self.rules.recompute else self.seconds
        lower, stopped = self._search(False, 1, self.states, limit)
        if self.rules.recompute:
            lower, stopped = self._search(True, 1, self.states, self.seconds)
        if stopped:
            return Undecided(lower, self.cost, self.schedule, self.expanded, stopped)
        return Optimum(self.cost, self.schedule, self.expanded)

    def _search(self, recompute: bool, greed: int, states: int, seconds: float) -> tuple[int, str]:
        # Give the proved end of the interval, and what ran out.
        from pebble.search import driver, trail  # numba is imported only where it is used

        rules = Rules(recompute, self.rules.sliding)
        game = driver.board(self.graph, self.cache, rules)
        driver.compile_kernels()
        begun = time.monotonic() - self.spent
        found = driver.search(
            game, self.cost.io, greed, states, lambda: time.monotonic() - begun > seconds
        )
        self.spent = time.monotonic() - begun
        self.expanded += found.expanded
        if found.path is not None:
            self._take(trail.moves_of(self.graph, game, found.path))
        return found.lower, found.stopped

    def _take(self, moves: tuple[Move, ...]) -> None:
        self.schedule = moves
        self.cost: Cost = replay(self.graph, moves, self.cache, self.rules)
