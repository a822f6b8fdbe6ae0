"""Replay moves on an explicit graph through the compiled referee."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from pebble.checks import positive
from pebble.cost import Cost
from pebble.errors import GraphError, IllegalMove, ProgramError
from pebble.explain import absent, explain, unfinished
from pebble.graph import ComputationGraph, explicit
from pebble.moves import Label, Move
from pebble.rules import BLUE, HONG_KUNG, Breach, Op, Rules
from pebble.start import start_state, weights_of

Words = NDArray[np.int64]

# Stands for a vertex that doesn't exist: the referee stops there, if nothing else stopped it.
NOWHERE = -1


def encode(graph: ComputationGraph, moves: Iterable[Move | str]) -> Words:
    """Write moves as the referee's codes, ``8 * vertex + op``; a slide's source follows it.

    Parameters
    ----------
    graph : ComputationGraph
        Gives the vertex numbers.
    moves : iterable of Move or text
        The moves; they need not be legal.

    Raises
    ------
    IllegalMove
        For the first move of a vertex that does not exist.

    Examples
    --------
    >>> from pebble.graph import Graph
    >>> graph = Graph([(), (0,)], labels=["a", "b"])
    >>> encode(graph, ["load a", "compute b", "slide b from a"]).tolist()
    [0, 10, 12, 0]
    """
    codes, stranger = _encode(graph, moves)
    if stranger is not None:
        at = sum(1 for _ in decode(graph, codes)) - 1
        rules = Rules(sliding=True, erasing=True)
        why = explain(Breach.NO_SUCH_VERTEX, stranger, graph, (), 0, 0, rules)
        raise IllegalMove(at, stranger, Breach.NO_SUCH_VERTEX, why)
    return codes


def _encode(graph: ComputationGraph, moves: Iterable[Move | str]) -> tuple[Words, Move | None]:
    # The codes up to the first move whose vertex does not exist, and that move.
    codes: list[int] = []
    vertex = graph.vertex
    for move in moves:
        move = Move.parse(move) if isinstance(move, str) else move
        sliding = move.op is Op.SLIDE
        try:
            words = [8 * vertex(move.vertex) + move.op]
            words += [vertex(move.source)] if sliding else []
        except GraphError:
            codes += [8 * NOWHERE + move.op, *([NOWHERE] if sliding else [])]
            return np.array(codes, np.int64), move
        codes += words
    return np.array(codes, np.int64), None


def decode(graph: ComputationGraph, codes: Words) -> Iterator[Move]:
    """Read moves back from codes. A vertex that does not exist is named by its number.

    Raises
    ------
    ProgramError
        A code whose op is none.

    Examples
    --------
    >>> from pebble.graph import Graph
    >>> list(decode(Graph([(), (0,)], labels=["a", "b"]), np.array([0, 10, 12, 0])))
    [Move('load a'), Move('compute b'), Move('slide b from a')]
    """
    words = iter(codes.tolist())
    for word in words:
        if word & 7 not in tuple(Op):
            raise ProgramError(f"code {word}: its op {word & 7} is none of 0 (load) to 5 (erase)")
        source = _label(graph, next(words, NOWHERE)) if word & 7 == Op.SLIDE else None
        yield Move(Op(word & 7), _label(graph, word >> 3), source)


def _label(graph: ComputationGraph, v: int) -> Label:
    return graph.label(v) if 0 <= v < len(graph) else v


def replay(
    graph: ComputationGraph,
    moves: Iterable[Move | str] | Words,
    cache: int,
    rules: Rules = HONG_KUNG,
) -> Cost:
    """Referee a whole game: every rule of every move, and the outputs at the end.

    Parameters
    ----------
    graph : ComputationGraph
        What is computed. A graph that isn't explicit is made so first.
    moves : iterable of Move or text, or array of int64
        The moves, or their codes as `encode` gives them.
    cache : int
        The words of fast memory, M.
    rules : Rules
        The variant that is played. Default: Hong and Kung's.

    Raises
    ------
    IllegalMove
        For the first move that the rules forbid; the same as `Game.push` raises.
    Incomplete
        When all moves are legal, but outputs are not blue at the end.
    ProgramError
        An array that can't be codes.

    Examples
    --------
    >>> from pebble.graph import Graph
    >>> graph = Graph([(), (), (0, 1)], labels=["a", "b", "c"])
    >>> moves = ["load a", "load b", "compute c", "store c"]
    >>> replay(graph, moves, cache=3)
    Cost(loads=2, stores=1, computes=1, deletes=0, peak=3)
    >>> replay(graph, moves[:3], cache=3)
    Traceback (most recent call last):
    pebble.errors.Incomplete: after 3 moves 1 of 1 outputs is not blue: c
    >>> replay(graph, ["load a", "compute c"], cache=3)
    Traceback (most recent call last):
    pebble.errors.IllegalMove: move 1, compute c: b is not red (1 of 3 red)
    """
    from pebble import referee  # numba is imported only where it is used

    cache = positive("cache", cache, "the words of fast memory")
    stranger = None
    if isinstance(moves, np.ndarray):
        codes = _checked_codes(moves)
    else:
        codes, stranger = _encode(graph, moves)
    graph = explicit(graph)
    state, tally = start_state(graph), referee.new_tally()
    weights = weights_of(graph, rules)
    number, at = referee.run_codes(
        codes, graph.starts, graph.preds, weights, state, tally, cache, rules.switches
    )
    index = int(tally[referee.INDEX])
    if number:
        op = int(codes[at]) & 7
        if op not in tuple(Op):
            move, why = f"op {op} on vertex {codes[at] >> 3}", "the ops are 0 (load) to 5 (erase)"
            raise IllegalMove(index, move, Breach.NOT_IN_THE_GAME, why)
        if stranger is not None and codes[at] >> 3 == NOWHERE:
            made = stranger
        else:
            made = next(decode(graph, codes[at : at + 2]))
        breach = Breach(number)
        if breach is Breach.NO_SUCH_VERTEX:
            breach = absent(op, rules.switches)
        used = int(tally[referee.USED])
        raise IllegalMove(
            index, made, breach, explain(breach, made, graph, state, used, cache, rules)
        )
    missing = [graph.label(v) for v in graph.outputs if not state[v] & BLUE]
    if missing:
        raise unfinished(index, missing, len(graph.outputs))
    return referee.cost_of(tally)


def _checked_codes(codes: NDArray[np.generic]) -> Words:
    if codes.ndim != 1 or (codes.dtype.kind not in "iu" and len(codes)):
        raise ProgramError(
            f"codes of shape {codes.shape} and type {codes.dtype}: "
            "they are a one-dimensional array of int64"
        )
    return np.ascontiguousarray(codes, np.int64)
