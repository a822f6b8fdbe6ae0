"""The rules of the red-blue pebble game, stated once.

`judge` says whether a move is legal and `after` what it does. Both are plain functions on numbers:
`Game` calls them as they stand, and the referee compiles the same two functions, so there is one
statement of the rules in the package and not two.

References
----------
Hong and Kung, "I/O complexity: the red-blue pebble game", STOC 1981.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from pebble.errors import ProblemError, SizeError

# The state of a vertex is one byte: what lies on it now, and what it is.
RED, BLUE, COMPUTED, INPUT, OUTPUT = 1, 2, 4, 8, 16

# The switches of `Rules` that `judge` looks at, as bits of one integer.
RECOMPUTE, SLIDING, REDUNDANT, ERASING = 1, 2, 4, 8


class Op(IntEnum):
    """What a move does.

    ========  ==============================================  ==================  ====
    op        needs                                           effect              cost
    ========  ==============================================  ==================  ====
    LOAD      v blue                                          red on v            1
    STORE     v red                                           blue on v           1
    COMPUTE   v is no input, every predecessor red            red on v            0
    DELETE    v red                                           red off v           0
    SLIDE     as COMPUTE; only under ``Rules(sliding=True)``  red moves to v from
                                                              one predecessor     0
    ERASE     v blue; only under ``Rules(erasing=True)``      blue off v          0
    ========  ==============================================  ==================  ====
    """

    LOAD = 0
    STORE = 1
    COMPUTE = 2
    DELETE = 3
    SLIDE = 4
    ERASE = 5

    def __str__(self) -> str:
        return self.name.lower()


class Breach(IntEnum):
    """Why a move is illegal; `LEGAL` is 0. Where several hold, the first of this order that
    applies to the op is reported."""

    LEGAL = 0
    NOT_IN_THE_GAME = 1
    NO_SUCH_VERTEX = 2
    NOT_BLUE = 3
    NOT_RED = 4
    IS_INPUT = 5
    RECOMPUTED = 6
    ALREADY_RED = 7
    ALREADY_BLUE = 8
    PREDECESSOR_NOT_RED = 9
    NOT_A_PREDECESSOR = 10
    CACHE_FULL = 11


@dataclass(frozen=True)
class Rules:
    """Which published variant of the game is played. The defaults are Hong and Kung's game.

    Parameters
    ----------
    recompute : bool
        Whether a vertex may be computed more than once. Default True ([HK81], [SY24]).
    sliding : bool
        Whether the red pebble of a predecessor may be moved onto the vertex that is computed
        (the move ``slide v from u``). Default False.
    redundant : bool
        Whether moves that change nothing are legal: to load or compute what is red, to store
        what is blue. Default False, since in a schedule they are a bug.
    erasing : bool
        Whether blue pebbles may be taken off (the move ``erase v``). It never lowers the I/O.
        Default False.
    weights : mapping of label or family name to int
        Words that a vertex takes, in cache and when it is moved. A vertex that is not named,
        nor its family, weighs 1.
    compute_cost : int
        What one compute (or slide) adds to `Cost.total`. Default 0.
    partial : bool
        Whether a vertex is computed from its predecessors one by one, each once: the game with
        partial computation of Papp, Sobczyk and Yzelman, which `pebble.partial` plays. Nothing is
        computed twice in it, so `recompute` is then False. Default False.

    Raises
    ------
    SizeError
        A weight that is no positive integer, or a negative cost.
    ProblemError
        Partial computation with sliding, redundant moves, erasing or weights.

    Examples
    --------
    >>> Rules()
    Rules(recompute=True, sliding=False, redundant=False, erasing=False, weights=(), compute_cost=0,
    partial=False)
    >>> Rules(weights={"O": 2}).weight("O", ("O", (0, 0)))
    2
    """

    recompute: bool = True
    sliding: bool = False
    redundant: bool = False
    erasing: bool = False
    weights: Mapping[Hashable, int] | tuple[tuple[Hashable, int], ...] = ()
    compute_cost: int = 0
    partial: bool = False

    def __post_init__(self) -> None:
        table = dict(self.weights)
        for name, weight in table.items():
            if isinstance(weight, bool) or not isinstance(weight, int) or weight < 1:
                raise SizeError(f"weight of {name} = {weight!r}: a weight is a positive integer")
        if not isinstance(self.compute_cost, int) or self.compute_cost < 0:
            raise SizeError(f"compute_cost = {self.compute_cost!r}: it must be an integer >= 0")
        object.__setattr__(self, "weights", tuple(table.items()))
        if self.partial:
            self._check_partial()
            object.__setattr__(self, "recompute", False)

    def _check_partial(self) -> None:
        for name in "sliding", "redundant", "erasing", "weights":
            if value := getattr(self, name):
                raise ProblemError(
                    f"partial = True with {name} = {dict(value) if value is not True else True}: "
                    "the game with partial computation is defined without it"
                )

    @property
    def switches(self) -> int:
        """The four on/off rules as bits, for `judge`.

        Raises
        ------
        ProblemError
            Rules of the game with partial computation: `judge` is for the ordinary one.
        """
        if self.partial:
            raise ProblemError(
                "rules with partial = True: this plays the ordinary game; "
                "pebble.partial plays the game with partial computation"
            )
        return (
            RECOMPUTE * self.recompute
            + SLIDING * self.sliding
            + REDUNDANT * self.redundant
            + ERASING * self.erasing
        )

    def weight(self, family: Hashable, label: Hashable) -> int:
        """Words of a vertex, by its label, else by its family, else 1."""
        table = dict(self.weights)
        return table.get(label, table.get(family, 1))


HONG_KUNG = Rules()


def judge(op: int, now: int, ready: bool, joined: bool, fits: bool, switches: int) -> int:
    """Say whether a move is legal: the `Breach`, as an int, 0 when there is none.

    Parameters
    ----------
    op : int
        What the move does.
    now : int
        The state of its vertex: RED, BLUE, COMPUTED and INPUT bits.
    ready : bool
        Whether every predecessor of the vertex is red.
    joined : bool
        For a slide: whether the pebble comes from a predecessor.
    fits : bool
        Whether the cache holds the red pebble that the move would add.
    switches : int
        `Rules.switches`.

    Examples
    --------
    >>> judge(Op.COMPUTE, 0, ready=False, joined=False, fits=True, switches=1)
    9
    >>> Breach(9)
    <Breach.PREDECESSOR_NOT_RED: 9>
    """
    if op == 2 or op == 4:  # COMPUTE, SLIDE
        if op == 4 and not switches & 2:
            return 1  # NOT_IN_THE_GAME
        if now & 8:
            return 5  # IS_INPUT
        if now & 4 and not switches & 1:
            return 6  # RECOMPUTED
        if now & 1 and not switches & 4:
            return 7  # ALREADY_RED
        if not ready:
            return 9  # PREDECESSOR_NOT_RED
        if op == 4 and not joined:
            return 10  # NOT_A_PREDECESSOR
        if not fits and not now & 1:
            return 11  # CACHE_FULL
    elif op == 3:  # DELETE
        if not now & 1:
            return 4  # NOT_RED
    elif op == 0:  # LOAD
        if not now & 2:
            return 3  # NOT_BLUE
        if now & 1:
            if not switches & 4:
                return 7  # ALREADY_RED
        elif not fits:
            return 11  # CACHE_FULL
    elif op == 1:  # STORE
        if not now & 1:
            return 4  # NOT_RED
        if now & 2 and not switches & 4:
            return 8  # ALREADY_BLUE
    elif op == 5 and switches & 8:  # ERASE
        if not now & 2:
            return 3  # NOT_BLUE
    else:
        return 1  # NOT_IN_THE_GAME
    return 0


def after(op: int, now: int) -> int:
    """Give the state of the vertex of a legal move once it is made.

    (A slide also takes the red pebble off its source.)

    Examples
    --------
    >>> after(Op.COMPUTE, 0) == RED | COMPUTED
    True
    """
    if op == 2 or op == 4:
        return now | 5
    if op == 3:
        return now & ~1
    if op == 0:
        return now | 1
    if op == 1:
        return now | 2
    return now & ~2
