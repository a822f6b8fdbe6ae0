"""The least I/O of a small graph by a 0/1 program: a second engine beside `pebble.optimum`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pebble.checks import positive
from pebble.errors import ProblemError, SizeError
from pebble.graph import ComputationGraph, Graph, explicit
from pebble.moves import Move
from pebble.optimum import Optimum, Undecided, plain_schedule
from pebble.replay import replay
from pebble.rules import Op, Rules

ONCE = Rules(recompute=False)

# What HiGHS may be wrong by in a bound, more than its tolerances of 1e-6 for the constraints.
ERROR = 1e-4

# The blocks of variables: for every step and vertex, whether v is computed in it; red in it;
# loaded before its compute; blue after it; stored after its compute; slid from in it.
COMPUTED, RED, LOADED, BLUE, STORED, SLID = range(6)


def optimum_milp(
    graph: ComputationGraph,
    cache: int,
    rules: Rules = ONCE,
    computes: int | None = None,
    seconds: float = 60.0,
) -> Optimum | Undecided:
    """Find the least I/O of a small graph by a 0/1 program, through SciPy's HiGHS.

    It shares nothing with `pebble.optimum` but the referee, so that each checks the other; it is
    much slower. The game is cut into steps of one compute each. In a step, what is no longer wanted
    is deleted, then some vertices are loaded, then one is computed, then some are stored. Any game
    can be put in this order: a load may wait until the next compute, and a store may be made right
    after the last compute before it, since what is red is red since then, or blue already.

    Parameters
    ----------
    graph : ComputationGraph
        What is computed.
    cache : int
        The words of fast memory, M.
    rules : Rules
        With or without recomputation, with or without sliding. Default: without either.
    computes : int, optional
        The most computes of a game. Default: one for each vertex that is no input. Without
        recomputation no game has more or fewer. With recomputation the least I/O of all games with
        at most so many computes is only an upper end: nothing is known of longer games.
    seconds : float
        The time that HiGHS is given.

    Returns
    -------
    Optimum or Undecided
        The latter where the time runs out (stopped: "seconds"), and with recomputation where the
        least I/O of games with so many computes is found, and is more than the inputs and outputs
        (stopped: "computes"). Their `states` are the nodes of HiGHS's search tree.

    Raises
    ------
    SizeError
        A cache in which the graph can't be pebbled, or a limit that is not positive or, for the
        computes, less than each vertex needs.
    ProblemError
        Rules with weights, a cost for computing or partial computation; a number of computes
        without recomputation.

    Notes
    -----
    HiGHS computes in floating point. Its lower bound is rounded up to an integer after 0.0001 is
    subtracted; its schedule is replayed by the referee.

    References
    ----------
    Huangfu and Hall, "Parallelizing the dual revised simplex method", Mathematical Programming
    Computation 10, 2018 (HiGHS).

    Examples
    --------
    >>> dot = Graph([(), (), (), (), (0, 1), (2, 3), (4, 5)], labels=list("abcdxys"))
    >>> optimum_milp(dot, cache=3).io, optimum_milp(dot, cache=4).io
    (7, 5)
    """
    cache = positive("cache", cache, "the words of fast memory")
    if not seconds > 0 or math.isnan(seconds):
        raise SizeError(f"seconds = {seconds!r}: the time must be a positive number")
    for name in "weights", "compute_cost", "partial":
        if value := getattr(rules, name):
            raise ProblemError(
                f"rules with {name} = {value}: the program is for the ordinary game's least I/O"
            )
    graph = explicit(graph)
    inner = len(graph) - len(graph.inputs)
    if computes is None:
        computes = inner
    elif not rules.recompute:
        raise ProblemError(
            f"computes = {computes} without recomputation: each of {inner} vertices is computed "
            "once, so the number is no choice"
        )
    computes = positive("computes", computes, "the most computes")
    if computes < inner:
        raise SizeError(f"computes = {computes}: {inner} vertices must be computed")
    least = graph.least_cache(rules)
    if cache < least:
        raise SizeError(f"cache = {cache}: the graph can't be pebbled with less than {least} words")
    return _solve(_Program(graph, min(cache, len(graph)), rules, computes), cache, seconds)


def _solve(program: _Program, cache: int, seconds: float) -> Optimum | Undecided:
    from scipy.optimize import Bounds, LinearConstraint, milp

    graph, rules = program.graph, program.rules
    moves = plain_schedule(graph, rules)
    cost = replay(graph, moves, cache, rules)
    low, high = program.bounds()
    found = milp(
        program.objective(),
        integrality=np.ones(len(low)),
        bounds=Bounds(low, high),
        constraints=LinearConstraint(*program.constraints()),
        options={"time_limit": seconds, "mip_rel_gap": 0.0},
    )
    if found.x is not None:
        written = program.moves(found.x > 0.5)
        paid = replay(graph, written, cache, rules)
        if paid.io <= cost.io:
            moves, cost = written, paid
    trivial = len(graph.inputs) + len(graph.outputs)
    proved = found.get("mip_dual_bound")
    within = trivial
    if proved is not None and math.isfinite(proved):
        within = max(trivial, math.ceil(proved - ERROR))
    nodes = int(found.get("mip_node_count") or 0)
    if cost.io == trivial or (within >= cost.io and not rules.recompute):
        return Optimum(cost, moves, nodes)
    if not rules.recompute:
        return Undecided(within, cost, moves, nodes, "seconds")
    # No bound on games of so many computes is one on longer games.
    stopped = "computes" if within >= cost.io else "seconds"
    return Undecided(trivial, cost, moves, nodes, stopped)


@dataclass
class _Program:
    # The 0/1 program of a graph. Variables are numbered by block, step and vertex.

    graph: Graph
    cache: int
    rules: Rules
    steps: int

    def __post_init__(self) -> None:
        self.blocks = 6 if self.rules.sliding else 5
        self.rows: list[tuple[list[int], list[float], float, float]] = []

    def at(self, block: int, step: int, v: int) -> int:
        return (block * self.steps + step) * len(self.graph) + v

    def objective(self) -> Any:
        cost = np.zeros((self.blocks, self.steps, len(self.graph)))
        cost[[LOADED, STORED]] = 1
        return cost.ravel()

    def bounds(self) -> tuple[Any, Any]:
        graph, steps = self.graph, self.steps
        low = np.zeros((self.blocks, steps, len(graph)))
        high = np.ones_like(low)
        for v in range(len(graph)):
            if graph.is_input(v):
                high[[COMPUTED, STORED], :, v] = 0
                low[BLUE, :, v] = 1
                continue
            # Its ancestors are computed before it; after it, once more than for its descendants.
            before, behind = len(self._reach(v, back=True)), len(self._reach(v, back=False))
            high[COMPUTED : STORED + 1, :before, v] = 0
            if not self.rules.recompute:
                high[COMPUTED, steps - behind :, v] = 0
            if graph.is_output(v):
                low[BLUE, -1, v] = 1
        high[LOADED, 0] = [graph.is_input(v) for v in range(len(graph))]
        return low.ravel(), high.ravel()

    def _reach(self, v: int, back: bool) -> set[int]:
        # The vertices that are no inputs and lead to v, or that v leads to; v itself is not one.
        step = self.graph.predecessors if back else self.graph.successors
        found: set[int] = set()
        front = [v]
        while front:
            more = {u for w in front for u in step(w) if not self.graph.is_input(u)} - found
            found |= more
            front = list(more)
        return found

    def constraints(self) -> tuple[Any, Any, Any]:
        from scipy.sparse import coo_array

        graph, once = self.graph, not self.rules.recompute
        vertices, steps = range(len(graph)), range(self.steps)
        for v in vertices:
            if not graph.is_input(v):
                each = {self.at(COMPUTED, t, v): 1 for t in steps}
                self._row(each, 1, 1 if once else self.steps)
            if graph.is_output(v):
                self._row({self.at(STORED, t, v): 1 for t in steps}, 1, 1)
            elif graph.is_input(v):
                self._row({self.at(LOADED, t, v): 1 for t in steps}, 1, self.steps)
        for t in steps:
            self._row({self.at(COMPUTED, t, v): 1 for v in vertices}, 1 if once else 0, 1)
            slid = {self.at(SLID, t, v): -1 for v in vertices} if self.rules.sliding else {}
            self._row({self.at(RED, t, v): 1 for v in vertices} | slid, -np.inf, self.cache)
            for v in vertices:
                self._vertex(t, v)
        columns = [column for row in self.rows for column in row[0]]
        values = [value for row in self.rows for value in row[1]]
        numbers = [i for i, row in enumerate(self.rows) for _ in row[0]]
        size = self.blocks * self.steps * len(graph)
        matrix = coo_array((values, (numbers, columns)), shape=(len(self.rows), size)).tocsr()
        return matrix, [row[2] for row in self.rows], [row[3] for row in self.rows]

    def _vertex(self, t: int, v: int) -> None:
        # What holds of a vertex in a step: what is red comes from somewhere, and so on.
        at, sliding = self.at, self.rules.sliding
        computed, red, loaded = at(COMPUTED, t, v), at(RED, t, v), at(LOADED, t, v)
        before = {at(RED, t - 1, v): -1} if t else {}
        if sliding and t:
            before[at(SLID, t - 1, v)] = 1
        self._at_most({red: 1, loaded: -1, computed: -1} | before, 0)
        self._at_most({computed: 1, red: -1}, 0)
        for u in self.graph.predecessors(v):
            self._at_most({computed: 1, at(RED, t, u): -1}, 0)
        if t:
            self._at_most({loaded: 1, at(BLUE, t - 1, v): -1}, 0)
        blue, stored = at(BLUE, t, v), at(STORED, t, v)
        if not self.graph.is_input(v):
            self._at_most({blue: 1, stored: -1} | ({at(BLUE, t - 1, v): -1} if t else {}), 0)
        if not sliding:
            self._at_most({stored: 1, red: -1}, 0)
            return
        slid = at(SLID, t, v)
        self._at_most({stored: 1, slid: 1, red: -1}, 0)
        heads = {at(COMPUTED, t, w): -1 for w in self.graph.successors(v)}
        self._at_most({slid: 1} | heads, 0)
        if v == 0:
            self._at_most({at(SLID, t, u): 1 for u in range(len(self.graph))}, 1)

    def _at_most(self, terms: dict[int, int], most: int) -> None:
        self._row(terms, -np.inf, most)

    def _row(self, terms: dict[int, int], low: float, high: float) -> None:
        self.rows.append((list(terms), list(terms.values()), low, high))

    def moves(self, chosen: Any) -> tuple[Move, ...]:
        # The game of a solution. What changes nothing is left out.
        graph = self.graph
        chosen = chosen.reshape(self.blocks, self.steps, len(graph))
        red: set[int] = set()
        blue = set(graph.inputs)
        moves: list[Move] = []

        def make(op: Op, v: int, source: int | None = None) -> None:
            slid = None if source is None else graph.label(source)
            moves.append(Move(op, graph.label(v), slid))

        for step in chosen.swapaxes(0, 1):
            wanted = set(np.flatnonzero(step[RED]).tolist())
            computed = set(np.flatnonzero(step[COMPUTED]).tolist()) - red  # one at most
            for v in sorted(red - wanted):
                make(Op.DELETE, v)
            for v in sorted(wanted - red - computed):
                make(Op.LOAD, v)
            red = wanted
            slid = np.flatnonzero(step[SLID]).tolist() if self.rules.sliding else []
            for v in computed:
                make(Op.SLIDE if slid else Op.COMPUTE, v, *slid)
                red -= set(slid)
            for v in np.flatnonzero(step[STORED]).tolist():
                if v not in blue:
                    make(Op.STORE, v)
                    blue.add(v)
        return tuple(moves)
