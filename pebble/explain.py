"""Why a move is illegal, in words: one sentence for each `Breach`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pebble.errors import GraphError, Incomplete
from pebble.graph import ComputationGraph
from pebble.moves import Label, Move, listed, notation
from pebble.rules import RED, Breach, Op, Rules, judge
from pebble.start import least_cache


def absent(op: int, switches: int) -> Breach:
    """Give the breach of a move on a vertex that doesn't exist.

    Examples
    --------
    >>> absent(Op.LOAD, switches=1), absent(Op.SLIDE, switches=1)
    (<Breach.NO_SUCH_VERTEX: 2>, <Breach.NOT_IN_THE_GAME: 1>)
    """
    foreign = judge(op, 0, True, True, True, switches) == Breach.NOT_IN_THE_GAME
    return Breach.NOT_IN_THE_GAME if foreign else Breach.NO_SUCH_VERTEX


def explain(
    breach: Breach,
    move: Move,
    graph: ComputationGraph,
    state: Sequence[int] | NDArray[np.uint8],
    used: int,
    cache: int,
    rules: Rules,
) -> str:
    """Say what was missing for an illegal move.

    Parameters
    ----------
    breach : Breach
        The rule that the move breaks.
    move : Move
        The move.
    graph : ComputationGraph
        The graph that is played on.
    state : sequence of int
        The state of every vertex, as bits of `pebble.rules`.
    used, cache : int
        How many words are red, and how many may be. Messages show them as "5 of 8 red".
    rules : Rules
        The rules that are played.

    Examples
    --------
    >>> from pebble.graph import Graph
    >>> from pebble.rules import HONG_KUNG
    >>> graph = Graph([(), (0,)], labels=["a", "b"])
    >>> explain(Breach.PREDECESSOR_NOT_RED, Move.parse("compute b"), graph, [2, 0], 0, 2, HONG_KUNG)
    'a is not red (0 of 2 red)'
    """
    if breach is Breach.NOT_IN_THE_GAME:
        switch = {Op.SLIDE: "sliding", Op.ERASE: "erasing"}[move.op]
        return f"these rules have no such move; Rules({switch}=True) have it"
    if breach is Breach.NO_SUCH_VERTEX:
        named = [move.vertex, *([move.source] if move.op is Op.SLIDE else [])]
        strangers = [label for label in named if not _exists(graph, label)]
        return f"the graph has no vertex {' and no vertex '.join(map(notation, strangers))}"
    name = notation(move.vertex)
    v = graph.vertex(move.vertex)
    preds = [graph.label(u) for u in graph.predecessors(v)]
    verb = {Op.LOAD: "loaded", Op.STORE: "stored", Op.DELETE: "deleted", Op.ERASE: "erased"}
    done = verb.get(move.op, "computed")
    if breach is Breach.NOT_BLUE:
        return f"{name} is not blue, so it can't be {done}"
    if breach is Breach.NOT_RED:
        return f"{name} is not red, so it can't be {done}"
    if breach is Breach.IS_INPUT:
        return f"{name} is an input: it is loaded, never computed"
    if breach is Breach.RECOMPUTED:
        return f"{name} was computed before; Rules(recompute=True) let it be computed again"
    if breach is Breach.ALREADY_RED:
        return f"{name} is red already; Rules(redundant=True) let it be {done} again"
    if breach is Breach.ALREADY_BLUE:
        return f"{name} is blue already; Rules(redundant=True) let it be stored again"
    if breach is Breach.PREDECESSOR_NOT_RED:
        dark = [label for label in preds if not state[graph.vertex(label)] & RED]
        verb_is = "is" if len(dark) == 1 else "are"
        return f"{listed(dark)} {verb_is} not red ({used} of {cache} red)"
    if breach is Breach.NOT_A_PREDECESSOR:
        return f"{notation(move.source)} is no predecessor of {name}; those are {listed(preds)}"
    assert breach is Breach.CACHE_FULL
    takes = rules.weight(graph.family(v), move.vertex)
    if move.op is Op.SLIDE:
        takes -= rules.weight(graph.family(graph.vertex(move.source)), move.source)
    own = getattr(graph, "least_cache", None)  # quicker than asking for all predecessors
    least = own(rules) if own else least_cache(graph, rules)
    return (
        f"the cache is full: {used} of {cache} red, and {name} takes {takes} more; "
        f"the least cache for this graph is {least}"
    )


def unfinished(moves: int, missing: Sequence[Label], outputs: int) -> Incomplete:
    """Give the error of a game whose moves are legal, but that leaves outputs not blue.

    Examples
    --------
    >>> print(unfinished(3, ["c"], outputs=2))
    after 3 moves 1 of 2 outputs is not blue: c
    """
    is_not = "is not" if len(missing) == 1 else "are not"
    return Incomplete(
        f"after {moves} moves {len(missing)} of {outputs} outputs {is_not} blue: {listed(missing)}"
    )


def _exists(graph: ComputationGraph, label: Label) -> bool:
    try:
        graph.vertex(label)
    except GraphError:
        return False
    return True
