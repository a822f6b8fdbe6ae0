"""Moves of the game with partial computation, in the same notation."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pebble.errors import NotationError
from pebble.moves import Move, notation, parse_label
from pebble.rules import Op

OPS = (Op.LOAD, Op.STORE, Op.COMPUTE, Op.DELETE)


@dataclass(frozen=True, repr=False)
class PartialMove(Move):
    """One move of the game with partial computation: a compute is of one edge.

    Parameters
    ----------
    op : Op
        What it does: load, store, compute or delete.
    vertex : label
        The vertex it acts on.
    source : label
        For a compute: the predecessor that is aggregated.

    Examples
    --------
    >>> PartialMove(Op.COMPUTE, "c", "a")
    PartialMove('compute c from a')
    >>> PartialMove.parse("load a") == PartialMove(Op.LOAD, "a")
    True
    """

    def __str__(self) -> str:
        source = f" from {notation(self.source)}" if self.source is not None else ""
        return f"{self.op} {notation(self.vertex)}{source}"

    def __repr__(self) -> str:
        return f"PartialMove({str(self)!r})"

    @classmethod
    def parse(cls, text: str) -> PartialMove:
        """Read a move from its notation.

        Raises
        ------
        NotationError
            A text that is no move; the message says what is wrong.
        """
        name, _, rest = text.strip().partition(" ")
        op = next((op for op in OPS if str(op) == name), None)
        if op is None:
            raise NotationError(f"{text!r}: a move starts with one of {', '.join(map(str, OPS))}")
        if op is not Op.COMPUTE:
            return cls(op, parse_label(rest))
        # A quoted label may itself contain " from ", so each place to cut is tried.
        for cut in re.finditer(" from ", rest):
            try:
                return cls(op, parse_label(rest[: cut.start()]), parse_label(rest[cut.end() :]))
            except NotationError:
                continue
        raise NotationError(f"{text!r}: a compute is of one edge, and written 'compute v from u'")
