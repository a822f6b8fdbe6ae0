"""Schedules as JSON lines, and the replay of one from its file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from pebble.checks import positive
from pebble.cost import Cost
from pebble.errors import FileError, IllegalMove, Incomplete, NotationError, SizeError
from pebble.graph import ComputationGraph, explicit
from pebble.interchange.files import Lines, Path, encode, header, place, write_lines
from pebble.interchange.labels import to_json
from pebble.moves import Label, Move, notation
from pebble.replay import replay
from pebble.rules import HONG_KUNG, Op, Rules
from pebble.schedule import Schedule

_OPS = {str(op): op for op in Op}


def write_schedule(source: Any, path: Path) -> None:
    """Write the moves of a schedule to a file; see `pebble.interchange` for the format.

    Parameters
    ----------
    source : Schedule, Play, Optimum, Undecided, Game, or iterable of Move or text
        Whose moves. They need not be legal.
    path : path
        A file that is there already is replaced once the new one is whole.

    Raises
    ------
    FileError
        The file can't be written.
    NotationError
        What is no move, or a label that has no notation.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "schedule.json")
    >>> write_schedule(["load a", "compute x[0,1]"], path)
    >>> print(path.read_text(), end="")
    {"format": "pebble schedule", "version": 1, "moves": 2}
    {"load": "a"}
    {"compute": {"x": [0, 1]}}
    >>> read_schedule(path)
    (Move('load a'), Move('compute x[0,1]'))
    >>> folder.cleanup()
    """
    count, moves = counted(source)
    write_lines(path, chain([header("schedule", "moves", count)], _lines(moves)))


def counted(source: Any) -> tuple[int, Iterable[Any]]:
    """Give the number of moves and the moves of all that has some.

    Those of a `Schedule` are never all in memory.

    Raises
    ------
    NotationError
        What has no moves.

    Examples
    --------
    >>> counted(["load a"])
    (1, ['load a'])
    """
    if isinstance(source, Schedule):
        return source.count().moves, source.moves()
    moves = getattr(source, "moves", getattr(source, "schedule", source))
    moves = moves() if callable(moves) else moves
    if isinstance(moves, str | bytes) or not isinstance(moves, Iterable):
        raise NotationError(f"{source!r} has no moves: give a schedule, a game or a list of moves")
    known = moves if isinstance(moves, list | tuple) else list(moves)
    return len(known), known


def _lines(moves: Iterable[Any]) -> Iterator[str]:
    texts: dict[tuple[type, Label], str] = {}

    def text(label: Label) -> str:
        key = type(label), label  # a Vertex is equal to a tuple
        known = texts.get(key)
        if known is None:
            known = texts[key] = encode(to_json(label))
        return known

    for move in moves:
        move = Move.parse(move) if isinstance(move, str) else move
        if not isinstance(move, Move):
            raise NotationError(f"{move!r} of type {type(move).__name__} is no Move")
        slid = f', "from": {text(move.source)}' if move.op is Op.SLIDE else ""
        yield f'{{"{move.op}": {text(move.vertex)}{slid}}}'


def read_schedule(path: Path) -> tuple[Move, ...]:
    """Read the moves of a schedule from a file; see `pebble.interchange` for the format.

    Move number i, counted from 0, is on line i + 2.

    Raises
    ------
    FileError
        The file can't be read, is cut short or malformed.
    """
    lines = Lines(path, "schedule", "moves")
    known: dict[bytes, Move] = {}  # a move is often made again
    moves = []
    for raw in lines:
        move = known.get(raw)
        if move is None:
            move = known[raw] = _move(lines, raw)
        moves.append(move)
    return tuple(moves)


def _move(lines: Lines, raw: bytes) -> Move:
    entry = lines.parse(raw)
    slid = "from" in entry
    source = entry.pop("from", None)
    name, value = next(iter(entry.items())) if len(entry) == 1 else ("", None)
    if name not in _OPS:
        raise lines.error(f'a move is such as {{"load": "a"}}; its key is one of {", ".join(_OPS)}')
    if slid != (_OPS[name] is Op.SLIDE):
        raise lines.error('a slide, and no other move, has a source: {"slide": "c", "from": "a"}')
    return Move(_OPS[name], lines.label(value), lines.label(source) if slid else None)


def replay_file(graph: ComputationGraph, path: Path, cache: int, rules: Rules = HONG_KUNG) -> Cost:
    """Referee the schedule in a file.

    Parameters
    ----------
    graph : ComputationGraph
        What is computed.
    path : path
        The schedule, as `write_schedule` writes it.
    cache : int
        The words of fast memory, M.
    rules : Rules
        The variant that is played.

    Raises
    ------
    SizeError
        A cache in which no schedule can pebble the graph; the message names a vertex.
    FileError
        A file that can't be read, the first illegal move, with its line, or outputs that are not
        blue at the end. The latter two have the `IllegalMove` or `Incomplete` as their cause.
    """
    whole = explicit(graph)
    check_cache(whole, cache, rules)
    moves = read_schedule(path)
    try:
        return replay(whole, moves, cache, rules)
    except IllegalMove as error:
        raise FileError(os.fspath(path), str(error), place(error.index)) from error
    except Incomplete as error:
        raise FileError(os.fspath(path), str(error)) from error


def check_cache(graph: ComputationGraph, cache: int, rules: Rules = HONG_KUNG) -> None:
    """Check that a cache is large enough for some schedule.

    Raises
    ------
    SizeError
        It is not; the message has the least that is and a vertex that needs it.

    Examples
    --------
    >>> from pebble.graph import Graph
    >>> check_cache(Graph([(), (), (0, 1)], labels=["a", "b", "c"]), 2)
    Traceback (most recent call last):
    pebble.errors.SizeError: cache = 2 is too small; the least that works is 3, for c and its
    2 predecessors
    """
    whole, cache = explicit(graph), positive("cache", cache, "the words of fast memory")
    least = whole.least_cache(rules)
    if cache >= least:
        return
    why = f"cache = {cache} is too small; the least that works is {least}"
    if not rules.weights:
        v = int(np.argmax(np.diff(whole.starts)))
        count = len(whole.predecessors(v))
        why += f", for {notation(whole.label(v))} and its {count} predecessor{'s' * (count != 1)}"
    raise SizeError(why)
