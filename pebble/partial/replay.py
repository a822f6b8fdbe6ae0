"""Replay games with partial computation through their compiled referee."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from pebble.cost import Cost
from pebble.errors import IllegalMove, ProgramError
from pebble.explain import unfinished
from pebble.graph import ComputationGraph, explicit
from pebble.moves import Move
from pebble.partial.game import PartialGame, explain, misfit
from pebble.partial.moves import OPS, PartialMove
from pebble.partial.rules import PartialBreach
from pebble.rules import Op

Words = NDArray[np.int64]

# Stands for a vertex or edge that doesn't exist: the referee stops there, if not before.
NOWHERE = -1


def encode(graph: ComputationGraph, moves: Iterable[Move | str]) -> Words:
    """Write moves as the referee's codes: ``8 * x + op``, x a vertex or, for a compute, an edge.

    Parameters
    ----------
    graph : ComputationGraph
        Gives the numbers; edges are numbered as the predecessors in an explicit graph's array.
    moves : iterable of PartialMove or text
        The moves; they need not be legal.

    Raises
    ------
    IllegalMove
        For the first move of a vertex or an edge that does not exist.

    Examples
    --------
    >>> from pebble.graph import Graph
    >>> graph = Graph([(), (0,)], labels=["a", "b"])
    >>> encode(graph, ["load a", "compute b from a", "store b"]).tolist()
    [0, 2, 9]
    """
    codes, stranger = _encode(graph, moves)
    if stranger is not None:
        raise _illegal(PartialGame(graph, 1), len(codes) - 1, stranger, misfit(graph, stranger))
    return codes


def _encode(graph: ComputationGraph, moves: Iterable[Move | str]) -> tuple[Words, Move | None]:
    # The codes up to the first move that fits no place in the graph, and that move.
    graph = explicit(graph)
    edges = {
        (u, v): graph.starts[v] + i
        for v in range(len(graph))
        for i, u in enumerate(graph.predecessors(v))
    }
    codes: list[int] = []
    for move in moves:
        move = PartialMove.parse(move) if isinstance(move, str) else move
        if misfit(graph, move):
            return np.array([*codes, 8 * NOWHERE], np.int64), move
        x = graph.vertex(move.vertex)
        if move.op is Op.COMPUTE:
            x = edges[graph.vertex(move.source), x]
        codes.append(8 * x + move.op)
    return np.array(codes, np.int64), None


def decode(graph: ComputationGraph, codes: Words) -> Iterator[PartialMove]:
    """Read moves back from codes.

    Raises
    ------
    ProgramError
        A code whose op is none, or whose vertex or edge does not exist.

    Examples
    --------
    >>> from pebble.graph import Graph
    >>> list(decode(Graph([(), (0,)], labels=["a", "b"]), np.array([0, 2, 9])))
    [PartialMove('load a'), PartialMove('compute b from a'), PartialMove('store b')]
    """
    graph = explicit(graph)
    heads = np.repeat(np.arange(len(graph)), np.diff(graph.starts))
    for code in codes.tolist():
        op, x = code & 7, code >> 3
        if op >= len(OPS):
            raise ProgramError(f"code {code}: its op {op} is none of 0 (load) to 3 (delete)")
        kind, many = ("edge", len(heads)) if op == Op.COMPUTE else ("vertex", len(graph))
        if not 0 <= x < many:
            raise ProgramError(f"code {code}: {kind} {x} does not exist; they number {many}")
        if op == Op.COMPUTE:
            ends = graph.label(int(heads[x])), graph.label(int(graph.preds[x]))
            yield PartialMove(Op.COMPUTE, *ends)
        else:
            yield PartialMove(Op(op), graph.label(x))


def replay(graph: ComputationGraph, moves: Iterable[Move | str] | Words, cache: int) -> Cost:
    """Referee a whole game: every rule of every move, and the outputs at the end.

    Parameters
    ----------
    graph : ComputationGraph
        What is computed. A graph that isn't explicit is made so first.
    moves : iterable of PartialMove or text, or array of int64
        The moves, or their codes as `encode` gives them.
    cache : int
        The words of fast memory, M.

    Returns
    -------
    Cost
        Its computes are of one edge each.

    Raises
    ------
    IllegalMove
        For the first move that the rules forbid; the same as `PartialGame.push` raises.
    Incomplete
        When all moves are legal, but outputs are not finished and blue at the end.
    ProgramError
        An array that can't be codes.

    References
    ----------
    Papp, Sobczyk, Yzelman, "The impact of partial computations on the red-blue pebble game", SPAA
    2025, arXiv 2506.10854.

    Examples
    --------
    >>> from pebble.graph import Graph
    >>> graph = Graph([(), (), (0, 1)], labels=["a", "b", "c"])
    >>> moves = ["load a", "compute c from a", "delete a", "load b", "compute c from b", "store c"]
    >>> replay(graph, moves, cache=2)
    Cost(loads=2, stores=1, computes=2, deletes=1, peak=2)
    >>> replay(graph, moves[:5], cache=2)
    Traceback (most recent call last):
    pebble.errors.Incomplete: after 5 moves 1 of 1 outputs is not blue: c
    >>> replay(graph, ["load a", "compute c from b"], cache=2)
    Traceback (most recent call last):
    pebble.errors.IllegalMove: move 1, compute c from b: b is not red (1 of 2 red)
    """
    from pebble.partial import referee  # numba is imported only where it is used

    game = PartialGame(graph, cache)
    stranger = None
    if isinstance(moves, np.ndarray):
        codes = _checked(moves)
    else:
        codes, stranger = _encode(game.graph, moves)
    tally = np.zeros(referee.TALLY_SIZE, np.int64)
    arrays = game.state, game.marked, game.into, game.out
    breach = PartialBreach(
        referee.run_codes(codes, game.graph.preds, game.heads, *arrays, tally, game.cache)
    )
    index, game.used = int(tally[referee.INDEX]), int(tally[referee.USED])
    if breach:
        if stranger is not None and index == len(codes) - 1:
            raise _illegal(game, index, stranger, misfit(game.graph, stranger))
        move = next(decode(game.graph, codes[index : index + 1]))
        raise _illegal(game, index, move, breach)
    if game.missing:
        raise unfinished(index, game.missing, len(game.graph.outputs))
    loads, stores, computes, deletes = tally[:4].tolist()
    return Cost(loads, stores, computes, deletes, int(tally[referee.PEAK]))


def _illegal(game: PartialGame, index: int, move: Move, breach: PartialBreach) -> IllegalMove:
    return IllegalMove(index, move, breach, explain(game, move, breach))


def _checked(codes: NDArray[np.generic]) -> Words:
    if codes.ndim != 1 or (codes.dtype.kind not in "iu" and len(codes)):
        raise ProgramError(
            f"codes of shape {codes.shape} and type {codes.dtype}: "
            "they are a one-dimensional array of int64"
        )
    return np.ascontiguousarray(codes, np.int64)
