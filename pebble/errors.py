"""Every exception of the package. They share the base class `PebbleError`."""

from __future__ import annotations

from collections.abc import Iterable


class PebbleError(Exception):
    """The base of every exception that `pebble` and `schedules` raise on purpose.

    Examples
    --------
    >>> from pebble.attention import Attention
    >>> try:
    ...     Attention(n=0, d=64)
    ... except PebbleError as error:
    ...     print(error)
    n = 0: the number of queries must be a positive integer
    """


class SizeError(PebbleError, ValueError):
    """A size, a cache or a block that is no positive integer, or is too small or too large."""


class UnknownName(PebbleError, ValueError):
    """A name that is none of the known ones; the message lists those."""


class ProblemError(PebbleError, ValueError):
    """A problem that a schedule or a bound is not for, or options that don't go together."""


class GraphError(PebbleError, ValueError):
    """A graph that the game can't be played on. `faults` lists all that is wrong with it."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(self.faults))


class NotationError(PebbleError, ValueError):
    """A text that is no move, or a vertex label that has no notation."""


class ProgramError(PebbleError, ValueError):
    """A tile program that names vertices which do not exist, or is not well formed."""


class TraceError(PebbleError):
    """Code whose computation graph can't be recorded; the message names the operation."""


class DataError(PebbleError, ValueError):
    """Numbers handed to an execution that have the wrong shape, or are not finite."""


class FileError(PebbleError, ValueError):
    """A file that can't be read or written, or does not hold what it should.

    Attributes
    ----------
    path : str
        The file.
    why : str
        What is wrong.
    line, column : int or None
        Where, both counted from 1.

    Examples
    --------
    >>> print(FileError("graph.json", "not JSON", line=7, column=12))
    graph.json, line 7, column 12: not JSON
    """

    def __init__(
        self, path: str, why: str, line: int | None = None, column: int | None = None
    ) -> None:
        self.path, self.why, self.line, self.column = path, why, line, column
        places = [path if path.isprintable() else repr(path)]
        places += [f"line {line}"] if line is not None else []
        places += [f"column {column}"] if column is not None else []
        super().__init__(f"{', '.join(places)}: {why}")


class MaskError(PebbleError, ValueError):
    """An attention mask that is not well formed, or masks that don't go together."""


class IllegalMove(PebbleError):
    """A move that the rules forbid.

    Attributes
    ----------
    index : int
        The place of the move in its schedule, counted from 0.
    move : Move
        The move itself.
    breach : Breach
        The rule that it breaks.
    """

    def __init__(self, index: int, move: object, breach: object, why: str) -> None:
        self.index, self.move, self.breach, self.why = index, move, breach, why
        super().__init__(f"move {index}, {move}: {why}")


class Incomplete(PebbleError):
    """A schedule whose moves are all legal, but that ends with outputs that are not blue."""
