"""Runs the search: gives it memory and time, and reads its path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pebble.graph import Graph
from pebble.rules import Rules
from pebble.search import astar
from pebble.search.steps import AIMS, COLUMNS, PREDS, SUCCS, Bits, rest_of

# What is computed, red and blue, as bits: see `steps`. With partial computation, the edges that
# are computed stand for the vertices.
Position = tuple[int, int, int]

# Nodes expanded between two looks at the time.
CHUNK = 5000

# What the tables have room for at first: positions, and steps from one of them. They grow.
ROOM, WIDTH = 1 << 12, 1 << 10

_run: Any = astar.run
_rest: Any = rest_of


class Searched(Protocol):
    """What the search needs of a game."""

    @property
    def recompute(self) -> bool:
        """Whether what is computed may be computed again."""

    @property
    def start(self) -> Position:
        """The first position."""

    def rest(self, position: Position) -> int:
        """Give I/O that is still to come at least."""

    def run(self, *memory: Any) -> tuple[int, int]:
        """Expand nodes; see `pebble.search.astar.run`, whose arguments from `keys` on it takes."""


@dataclass(frozen=True)
class Board:
    """What the kernels know of a game: sets of vertices as bits, and the rules.

    Parameters
    ----------
    table : array of uint64
        The predecessors, successors and `aims` of each vertex; its aims are the outputs that it
        leads to.
    inner, inputs, outputs : uint64
        The vertices that are computed, the inputs, and the outputs.
    cache : int
        The words of fast memory.
    sliding, recompute : bool
        The rules.
    twins : array of int64
        A row for each set of vertices of the same predecessors and successors, ascending, filled
        up with -1.
    """

    table: Bits
    inner: np.uint64
    inputs: np.uint64
    outputs: np.uint64
    cache: int
    sliding: bool
    recompute: bool
    twins: NDArray[np.int64]

    @property
    def sets(self) -> tuple[Any, ...]:
        """The first arguments of the kernels."""
        return self.table, self.inner, self.outputs, self.cache, self.sliding, self.recompute

    @property
    def start(self) -> Position:
        """The first position: only the inputs are blue."""
        return 0, 0, int(self.inputs)

    def rest(self, position: Position) -> int:
        """Give I/O that is still to come at least."""
        done, red, blue = map(np.uint64, position)
        return int(_rest(self.table, self.inner, self.outputs, self.recompute, done, red, blue))

    def run(self, *memory: Any) -> tuple[int, int]:
        """Expand nodes; see `pebble.search.astar.run`."""
        *tables, found, greed, upper, quota = memory
        order = np.zeros((len(self.table[0]) * 64, 2), np.int64)
        why, node = _run(*self.sets, self.twins, *tables, found, order, greed, upper, quota)
        return why, node


def board(graph: Graph, cache: int, rules: Rules) -> Board:
    """Write a graph and rules as a board.

    Examples
    --------
    >>> from pebble.rules import HONG_KUNG
    >>> board(Graph([(), (), (0, 1)]), 3, HONG_KUNG).table[0].tolist()
    [0, 0, 3]
    """
    n = len(graph)
    preds, succs, aims = ([0] * n for _ in range(3))
    for v in reversed(graph.topological()):
        preds[v] = bits(graph.predecessors(v))
        succs[v] = bits(graph.successors(v))
        for w in graph.successors(v):
            aims[v] |= aims[w] | (graph.is_output(w) << w)
    table = np.zeros((3, n), np.uint64)
    table[PREDS], table[SUCCS], table[AIMS] = preds, succs, aims
    inputs = bits(graph.inputs)
    return Board(
        table,
        np.uint64((1 << n) - 1 - inputs),
        np.uint64(inputs),
        np.uint64(bits(graph.outputs)),
        min(cache, n),
        rules.sliding,
        rules.recompute,
        twins_of(graph),
    )


def twins_of(graph: Graph) -> NDArray[np.int64]:
    """Give the sets of vertices that no game tells apart: alike in predecessors and successors.

    Examples
    --------
    Two inputs of both sums, and the two sums.

    >>> twins_of(Graph([(), (), (0, 1), (0, 1)])).tolist()
    [[0, 1], [2, 3]]
    """
    alike: dict[Any, list[int]] = {}
    for v in range(len(graph)):
        sides = frozenset(graph.predecessors(v)), frozenset(graph.successors(v))
        alike.setdefault((*sides, graph.is_output(v)), []).append(v)
    rows = [row for row in alike.values() if len(row) > 1]
    longest = max(map(len, rows), default=0)
    padded = [row + [-1] * (longest - len(row)) for row in rows]
    return np.array(padded, np.int64).reshape(len(rows), longest)


def bits(vertices: Any) -> int:
    """Give a set of vertices as an int with their bits.

    Examples
    --------
    >>> bits([0, 2])
    5
    """
    return sum(1 << v for v in vertices)


@dataclass(frozen=True)
class Outcome:
    """What a search found out.

    Parameters
    ----------
    lower : int
        Every game that the search was to find has at least this I/O. It's the `upper` that was
        given if there is none below that.
    path : list of Position, or None
        The positions of the game that was found.
    expanded : int
        The positions expanded.
    stopped : str
        What ran out, "states" or "seconds"; empty if nothing did.
    """

    lower: int
    path: list[Position] | None
    expanded: int
    stopped: str


def search(
    game: Searched, upper: int, greed: int, states: int, out_of_time: Callable[[], bool]
) -> Outcome:
    """Look for a game of less I/O than `upper`: with a greed of 1, for a best one.

    Parameters
    ----------
    game : Searched
        What is played: a `Board`, or a board of the game with partial computation.
    upper : int
        Games of this I/O or more are of no interest.
    greed : int
        Weighs the I/O that is still to come: more than 1 finds some game sooner.
    states : int
        The most positions kept.
    out_of_time : callable
        Whether to stop.
    """
    room = min(states, ROOM)
    keys, costs = np.zeros((room, 3), np.uint64), np.zeros(room, np.int32)
    links = np.zeros((room, 3), np.int32)
    table, groups = _table(room), _table(room)
    found = np.zeros((WIDTH, COLUMNS), np.uint64)
    clock = np.zeros(astar.CLOCK_SIZE, np.int64)

    done, red, blue = map(np.uint64, game.start)
    rest = game.rest(game.start)
    if rest >= upper:
        return Outcome(upper, None, 0, "")
    buckets = np.full(greed * upper + 1, -1, np.int32)
    at = astar.seat(keys, table, done, red, blue)
    clock[astar.BUCKET] = greed * rest
    astar.push(keys, costs, links, table, buckets, clock, at, done, red, blue, 0, greed * rest, -1)
    while True:
        why, node = game.run(
            keys, costs, links, table, groups, buckets, clock, found, greed, upper, CHUNK
        )
        expanded = int(clock[astar.EXPANDED])
        # The least bucket bounds all that is open; with greed it says nothing.
        lower = min(int(clock[astar.BUCKET]), upper) if greed == 1 else rest
        if why == astar.EMPTY:
            return Outcome(upper, None, expanded, "")
        if why == astar.FOUND:
            path: list[Position] = []
            cost = int(costs[node])
            while node >= 0:
                path.append((int(keys[node, 0]), int(keys[node, 1]), int(keys[node, 2])))
                node = int(links[node, astar.PARENT])
            return Outcome(cost if greed == 1 else lower, path[::-1], expanded, "")
        if why == astar.WIDEN:
            found = np.zeros((2 * len(found), COLUMNS), np.uint64)
        elif why == astar.GROW:
            if room >= states:
                return Outcome(lower, None, expanded, "states")
            room = min(states, 2 * room)
            keys, costs, links = (_longer(array, room) for array in (keys, costs, links))
            table = _table(room)
            astar.reseat(keys, costs, int(clock[astar.NODES]), table)
            old, groups = groups, _table(room)
            astar.regroup(keys, old, groups, game.recompute)
        if out_of_time():
            return Outcome(lower, None, expanded, "seconds")


def compile_kernels(make: Callable[[Graph], Searched]) -> None:
    """Have the kernels compiled, so that this takes none of a search's time.

    `make` gives the board of a graph in two words.
    """
    search(make(Graph([(), (0,)])), 9, 1, 64, lambda: False)


def _table(room: int) -> Any:
    return np.full(1 << (2 * room).bit_length(), -1, np.int32)


def _longer(array: Any, room: int) -> Any:
    longer = np.zeros((room, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
