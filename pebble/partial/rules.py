"""The rules of the game with partial computation, stated once.

A vertex is bare; blue; blue and red ("light red": fast and slow memory agree); or red alone ("dark
red": what is in fast memory is newer, or the only copy). An edge (u, v) is marked once v has
aggregated u, and a vertex is finished when all edges into it are marked.

===============  ====================================================  ======================  ====
move             needs                                                 effect                  cost
===============  ====================================================  ======================  ====
load v           v blue, not red                                       v light red             1
store v          v dark red                                            v light red             1
compute v from   (u, v) is not marked; u is red and finished; v is     v dark red, so no more
u                red or bare                                           blue; (u, v) is marked  0
delete v         v light red; or dark red, finished, and every edge    red off v
                 out of it marked                                                              0
===============  ====================================================  ======================  ====

It starts with blue on the inputs. It ends when every output is finished and blue; all edges are
then marked, since each leads to an output. Each edge is marked once: there is no recomputation.

A dark red sink has no edges out of it. That it must be finished to be deleted keeps a half-formed
sum from being thrown away, and then gone on with as if it were whole.

References
----------
Papp, Sobczyk, Yzelman, "The impact of partial computations on the red-blue pebble game", SPAA
2025, arXiv 2506.10854.
"""

from __future__ import annotations

from enum import IntEnum


class PartialBreach(IntEnum):
    """Why a move is illegal; `LEGAL` is 0. Names and numbers are those of `pebble.Breach` where
    both games have such a rule."""

    LEGAL = 0
    NOT_IN_THE_GAME = 1
    NO_SUCH_VERTEX = 2
    NOT_BLUE = 3
    NOT_RED = 4
    IS_INPUT = 5
    ALREADY_RED = 7
    ALREADY_BLUE = 8
    PREDECESSOR_NOT_RED = 9
    NOT_A_PREDECESSOR = 10
    CACHE_FULL = 11
    NOT_LOADED = 12
    PREDECESSOR_UNFINISHED = 13
    ALREADY_ADDED = 14
    STILL_NEEDED = 15


def judge(
    op: int, now: int, given: bool, whole: bool, marked: bool, needed: bool, fits: bool
) -> int:
    """Say whether a move is legal: the `PartialBreach`, as an int, 0 when there is none.

    Parameters
    ----------
    op : int
        What the move does: an `Op` of the four from LOAD to DELETE.
    now : int
        The state of its vertex: RED and BLUE bits.
    given, whole, marked : bool
        For a compute: whether the predecessor is red, whether it is finished, and whether the edge
        is marked.
    needed : bool
        For a delete: whether an edge into or out of the vertex is not marked.
    fits : bool
        Whether the cache holds one more red pebble.

    Examples
    --------
    >>> from pebble.rules import RED, Op
    >>> PartialBreach(judge(Op.DELETE, RED, False, False, False, needed=True, fits=True))
    <PartialBreach.STILL_NEEDED: 15>
    """
    if op == 2:  # COMPUTE
        if marked:
            return 14  # ALREADY_ADDED
        if not given:
            return 9  # PREDECESSOR_NOT_RED
        if not whole:
            return 13  # PREDECESSOR_UNFINISHED
        if now & 2 and not now & 1:
            return 12  # NOT_LOADED
        if not now & 1 and not fits:
            return 11  # CACHE_FULL
    elif op == 0:  # LOAD
        if not now & 2:
            return 3  # NOT_BLUE
        if now & 1:
            return 7  # ALREADY_RED
        if not fits:
            return 11  # CACHE_FULL
    elif op == 1:  # STORE
        if not now & 1:
            return 4  # NOT_RED
        if now & 2:
            return 8  # ALREADY_BLUE
    elif op == 3:  # DELETE
        if not now & 1:
            return 4  # NOT_RED
        if not now & 2 and needed:
            return 15  # STILL_NEEDED
    else:
        return 1  # NOT_IN_THE_GAME
    return 0


def after(op: int, now: int) -> int:
    """Give the state of the vertex of a legal move once it is made.

    Examples
    --------
    >>> after(2, 3), after(1, 1)  # a compute takes the blue off, a store puts it on
    (1, 3)
    """
    if op == 2:
        return 1
    if op == 3:
        return now & 2
    return 3
