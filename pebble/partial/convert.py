"""From an ordinary game to one with partial computation, at the same cost."""

from __future__ import annotations

from collections.abc import Iterable

from pebble.errors import ProblemError
from pebble.graph import ComputationGraph
from pebble.moves import Label, Move, notation
from pebble.partial.moves import PartialMove
from pebble.rules import Op


def from_ordinary(graph: ComputationGraph, moves: Iterable[Move | str]) -> tuple[PartialMove, ...]:
    """Write an ordinary game that computes each vertex once as one with partial computation.

    A compute becomes one for each predecessor; all else stays. So if the ordinary game is legal
    and complete in some cache, the other is too, with the same loads, stores, deletes and peak.

    Parameters
    ----------
    graph : ComputationGraph
        What is computed.
    moves : iterable of Move or text
        The ordinary game.

    Raises
    ------
    ProblemError
        A vertex that is computed twice, or a move that is no load, store, compute or delete.

    References
    ----------
    Papp, Sobczyk, Yzelman, "The impact of partial computations on the red-blue pebble game", SPAA
    2025, arXiv 2506.10854: partial computation never costs more than computing each vertex once.

    Examples
    --------
    >>> from pebble.graph import Graph
    >>> graph = Graph([(), (), (0, 1)], labels=["a", "b", "c"])
    >>> moves = from_ordinary(graph, ["load a", "load b", "compute c", "store c"])
    >>> print(*moves, sep=", ")
    load a, load b, compute c from a, compute c from b, store c
    """
    found: list[PartialMove] = []
    seen: set[Label] = set()
    for index, move in enumerate(moves):
        move = Move.parse(move) if isinstance(move, str) else move
        if move.op in (Op.LOAD, Op.STORE, Op.DELETE):
            found.append(PartialMove(move.op, move.vertex))
            continue
        if move.op is not Op.COMPUTE:
            raise ProblemError(
                f"move {index}, {move}: the game with partial computation has no {move.op}"
            )
        if move.vertex in seen:
            raise ProblemError(
                f"move {index}, {move}: {notation(move.vertex)} was computed before; only games "
                "that compute each vertex once can be written with partial computation"
            )
        seen.add(move.vertex)
        for u in graph.predecessors(graph.vertex(move.vertex)):
            found.append(PartialMove(Op.COMPUTE, move.vertex, graph.label(u)))
    return tuple(found)


def plain_schedule(graph: ComputationGraph) -> tuple[PartialMove, ...]:
    """Give a game that works in a cache of 2: each edge on its own, and all stored.

    Examples
    --------
    >>> from pebble.graph import Graph
    >>> print(*plain_schedule(Graph([(), (0,)], ["a", "b"])), sep=", ")
    load a, compute b from a, delete a, store b, delete b
    """
    from pebble.graph import explicit

    graph = explicit(graph)
    moves = []
    for v in graph.topological():
        label, preds = graph.label(v), [graph.label(u) for u in graph.predecessors(v)]
        for name in preds:
            moves += [
                PartialMove(Op.LOAD, name),
                PartialMove(Op.COMPUTE, label, name),
                PartialMove(Op.DELETE, name),
            ]
        if preds:
            moves += [PartialMove(Op.STORE, label), PartialMove(Op.DELETE, label)]
    return tuple(moves)
