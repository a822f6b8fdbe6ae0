"""Labels as JSON values, and back."""

from __future__ import annotations

from typing import Any

from pebble.errors import NotationError
from pebble.moves import Label, Vertex, notation

KNOWN = 'a label is "a", 3, ["a", 3] or {"x": [0, 1]}'


def to_json(label: Label) -> Any:
    """Give a label as what JSON has: a str, an int, a list of such, or a dict for a `Vertex`.

    Raises
    ------
    NotationError
        A label of another type; see `pebble.moves.notation`.

    Examples
    --------
    >>> to_json("a"), to_json(3), to_json(("a", (3, 4))), to_json(Vertex("x", (0, 1)))
    ('a', 3, ['a', [3, 4]], {'x': [0, 1]})
    """
    if type(label) is str or type(label) is int:
        return label
    if type(label) is Vertex:
        _check(label)
        return {label.family: list(label.index)}
    notation(label)
    assert isinstance(label, tuple)
    return list(map(to_json, label))


def from_json(value: object) -> Label:
    """Give the label that `to_json` made a value of.

    Raises
    ------
    NotationError
        A value that is no label.

    Examples
    --------
    >>> from_json(["a", [3, 4]]), from_json({"x": [0, 1]})
    (('a', (3, 4)), Vertex(family='x', index=(0, 1)))
    >>> from_json(1.5)
    Traceback (most recent call last):
    pebble.errors.NotationError: 1.5 is no label: a label is "a", 3, ["a", 3] or {"x": [0, 1]}
    """
    if type(value) is str or type(value) is int:
        return value
    if type(value) is list and not any(type(part) is dict for part in value):
        return tuple(map(from_json, value))
    if type(value) is dict and len(value) == 1:
        [(family, index)] = value.items()
        if type(index) is list:
            vertex = Vertex(family, tuple(index))
            _check(vertex)
            return vertex
    raise NotationError(f"{value!r} is no label: {KNOWN}")


def _check(vertex: Vertex) -> None:
    # A plain one has a notation, and to write it takes longer than this look.
    family, index = vertex
    plain = type(family) is str and family.isascii() and family.isidentifier()
    if not (plain and set(map(type, index)) <= {int}):
        notation(vertex)
