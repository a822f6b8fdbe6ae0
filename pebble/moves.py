"""Vertex labels and moves, each with a one-line notation that parses back."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from pebble.errors import NotationError
from pebble.rules import Op

Label = Hashable

_WORD = re.compile(r"[A-Za-z_][\w.]*")
_FAMILY = re.compile(r"[A-Za-z_]\w*")
_INDEXED = re.compile(rf"({_FAMILY.pattern})\[([\d, -]*)\]")
_OPS = {str(op): op for op in Op}


class Vertex(NamedTuple):
    """A vertex of a family: the label that attention's graphs and traced graphs use.

    Examples
    --------
    >>> print(Vertex("s", (0, 1, 3)))
    s[0,1,3]
    """

    family: str
    index: tuple[int, ...]  # type: ignore[assignment]  # tuple.index is not missed

    def __str__(self) -> str:
        return f"{self.family}[{','.join(map(str, self.index))}]"


def notation(label: Label) -> str:
    """Write a label so that `parse_label` reads it back.

    Labels are `Vertex` values, strings, integers, and tuples of strings, integers and tuples.

    Examples
    --------
    >>> notation(Vertex("Q", (3, 0))), notation("a"), notation("two words"), notation((0, 1))
    ('Q[3,0]', 'a', "'two words'", '(0, 1)')

    Raises
    ------
    NotationError
        A label of another type, or a `Vertex` whose family is no word or whose index is not
        made of integers.
    """
    if isinstance(label, Vertex):
        word = type(label.family) is str and _FAMILY.fullmatch(label.family)
        if not word or not all(type(part) is int for part in label.index):
            raise NotationError(
                f"label {tuple(label)!r}: a Vertex is a word such as x and a tuple of integers"
            )
        return str(label)
    if type(label) is str:
        return label if _WORD.fullmatch(label) and label != "from" else repr(label)
    if _is_literal(label):
        return repr(label)
    raise NotationError(
        f"label {label!r} of type {type(label).__name__}: a label with a notation "
        "is a Vertex, a str, an int, or a tuple of str, int and such tuples"
    )


def listed(labels: Iterable[Label], most: int = 4) -> str:
    """Name labels in a sentence, and count those after the first `most`.

    Examples
    --------
    >>> listed(["a", "b"]), listed(range(9))
    ('a, b', '0, 1, 2, 3 and 5 more')
    """
    known = list(labels)
    names = ", ".join(map(notation, known[:most]))
    return names if len(known) <= most else f"{names} and {len(known) - most} more"


def _is_literal(label: Label) -> bool:
    if isinstance(label, tuple):
        return type(label) is tuple and all(_is_literal(part) for part in label)
    return type(label) in (int, str)


def parse_label(text: str) -> Label:
    """Read a label that `notation` wrote.

    Raises
    ------
    NotationError
        A text that is no label.
    """
    text = text.strip()
    if indexed := _INDEXED.fullmatch(text):
        parts = indexed[2].split(",") if indexed[2].strip() else []
        try:
            return Vertex(indexed[1], tuple(int(part) for part in parts))
        except ValueError:
            raise NotationError(f"{text!r}: an index is integers with commas between") from None
    if _WORD.fullmatch(text):
        return text
    try:
        with warnings.catch_warnings():  # a backslash in a text is no concern of the caller's
            warnings.simplefilter("ignore")
            label: Label = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        label = None
    if not _is_literal(label):
        raise NotationError(
            f"{text!r} is no vertex: write x[0,1], a word, 'a quoted string', 3 or (0, 1)"
        )
    return label


@dataclass(frozen=True)
class Move:
    """One move of the game.

    Parameters
    ----------
    op : Op
        What it does.
    vertex : label
        The vertex it acts on.
    source : label, optional
        For a slide: the predecessor whose pebble is moved.

    Examples
    --------
    >>> Move(Op.COMPUTE, Vertex("s", (0, 1, 3)))
    Move('compute s[0,1,3]')
    >>> Move.parse("load a") == Move(Op.LOAD, "a")
    True
    """

    op: Op
    vertex: Label
    source: Label = None

    def __str__(self) -> str:
        slid = f" from {notation(self.source)}" if self.op is Op.SLIDE else ""
        return f"{self.op} {notation(self.vertex)}{slid}"

    def __repr__(self) -> str:
        return f"Move({str(self)!r})"

    @classmethod
    def parse(cls, text: str) -> Move:
        """Read a move from its notation.

        Raises
        ------
        NotationError
            A text that is no move; the message says what is wrong.
        """
        name, _, rest = text.strip().partition(" ")
        if name not in _OPS:
            raise NotationError(f"{text!r}: a move starts with one of {', '.join(_OPS)}")
        if _OPS[name] is not Op.SLIDE:
            return cls(_OPS[name], parse_label(rest))
        # A quoted label may itself contain " from ", so each place to cut is tried.
        for cut in re.finditer(" from ", rest):
            try:
                ends = parse_label(rest[: cut.start()]), parse_label(rest[cut.end() :])
            except NotationError:
                continue
            return cls(Op.SLIDE, *ends)
        raise NotationError(f"{text!r}: a slide is written 'slide v from u'")
