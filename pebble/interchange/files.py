"""Files of JSON lines: written whole or not at all, read with errors that name the place.

The first line of a file is a header, an object with its format, the version of that format, and
how many lines follow. So a file that was cut short is told from a whole one.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from json import JSONDecodeError, JSONDecoder, JSONEncoder
from typing import IO, Any

from pebble.errors import FileError, NotationError
from pebble.interchange.labels import from_json
from pebble.moves import Label, notation

Path = str | os.PathLike[str]
Object = dict[str, Any]

VERSION = 1

# Plain UTF-8, so that a search for a label finds it.
encode = JSONEncoder(ensure_ascii=False).encode


def header(kind: str, counted: str, count: int) -> str:
    """Write the first line of a file.

    Examples
    --------
    >>> header("schedule", "moves", 12)
    '{"format": "pebble schedule", "version": 1, "moves": 12}'
    """
    return encode({"format": f"pebble {kind}", "version": VERSION, counted: count})


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a file whole, or leave what is there as it was.

    The lines go to a new file in the same folder, which then takes the place of the old one.

    Parameters
    ----------
    path : path
        Where to. A link is followed.
    lines : iterable of str
        The lines, without their ends.

    Raises
    ------
    FileError
        It can't be written.
    NotationError
        A text that UTF-8 has no code for.
    """
    with _replacing(os.fspath(path)) as file:
        for line in lines:
            try:
                file.write(line.encode())
            except UnicodeEncodeError as error:
                raise NotationError(
                    f"{line!r}: UTF-8 has no code for {line[error.start]!r}, half of a character"
                ) from None
            file.write(b"\n")


@contextmanager
def _replacing(path: str) -> Iterator[IO[bytes]]:
    target = os.path.realpath(path)
    part = os.path.join(os.path.dirname(target), f".{secrets.token_hex(8)}.part")
    try:
        if os.path.exists(target) and not os.path.isfile(target):  # a replaced device is gone
            raise FileError(path, "can't be written: it is no regular file")
        try:
            with open(part, "xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if os.path.exists(target):
                shutil.copymode(target, part)
            os.replace(part, target)
        finally:
            with suppress(FileNotFoundError):  # it has taken its place
                os.remove(part)
    except OSError as error:
        raise FileError(path, f"can't be written: {error.strerror or error}") from error


class Lines:
    """The lines of a file after its header. Iterating gives each one as bytes, without its end.

    Parameters
    ----------
    path : path
        The file.
    kind : str
        What its header must say: "graph" or "schedule".
    counted : str
        What follows the header: "vertices" or "moves".

    Raises
    ------
    FileError
        While iterating, for a file that can't be read, or is no such file, or has more or fewer
        lines than its header says.
    """

    def __init__(self, path: Path, kind: str, counted: str) -> None:
        self.path, self.kind, self.counted = os.fspath(path), kind, counted
        self.number = 0
        self._ended = True

    def __iter__(self) -> Iterator[bytes]:
        try:
            with open(self.path, "rb") as file:
                raws = self._raws(file)
                count = self._count(next(raws, b""))
                for raw in raws:
                    if self.number <= count + 1:
                        yield raw
                    elif raw.strip():
                        raise self.error(
                            f"the header says {count} {self.counted}: this is one more"
                        )
                if self.number <= count:
                    raise self.error(
                        f"the header says {count} {self.counted}, and there are {self.number - 1}: "
                        "the file is cut short"
                    )
        except OSError as error:
            raise FileError(self.path, f"can't be read: {error.strerror or error}") from error

    def _raws(self, file: IO[bytes]) -> Iterator[bytes]:
        self.number, self._ended = 0, True
        for raw in file:
            self.number += 1
            self._ended = raw.endswith(b"\n")
            if self.number == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")  # a byte order mark
            yield raw.rstrip(b"\r\n")

    def _count(self, raw: bytes) -> int:
        if not self.number:
            raise self.error("the file is empty")
        head = self.parse(raw)
        wanted = header(self.kind, self.counted, 0).replace("0}", "N}")
        form = head.get("format")
        if form in ("pebble graph", "pebble schedule") and form != f"pebble {self.kind}":
            raise self.error(f"this is a {form}, not a pebble {self.kind}")
        if form != f"pebble {self.kind}" or "version" not in head or self.counted not in head:
            raise self.error(f"the first line must be {wanted}")
        if type(head["version"]) is not int or head["version"] != VERSION:
            raise self.error(f"version {head['version']!r}: what can be read is version {VERSION}")
        self.check_keys(head, ("format", "version", self.counted), "a header")
        count = head[self.counted]
        if type(count) is not int or count < 0:
            raise self.error(f"{self.counted} = {count!r}: it must be an integer >= 0")
        return count

    def parse(self, raw: bytes) -> Object:
        """Read a line, which must be a JSON object."""
        try:
            value = _decode(raw.decode())
        except UnicodeDecodeError as error:
            column = len(raw[: error.start].decode()) + 1
            raise self.error(f"byte 0x{raw[error.start]:02x} is not UTF-8", column) from None
        except JSONDecodeError as error:
            cut = "" if self._ended else "; the last line has no end: the file may be cut short"
            what = error.msg[0].lower() + error.msg[1:]
            raise self.error(f"not JSON: {what}{cut}", error.colno) from None
        except RecursionError:
            raise self.error("not JSON that can be read: it is nested too deep") from None
        except ValueError as error:  # of `_object`, `_constant` and int
            raise self.error(f"not JSON that can be read: {error}") from None
        if type(value) is not dict:
            raise self.error("a line must be one JSON object: {...}")
        return value

    def check_keys(self, entry: Object, known: tuple[str, ...], whose: str) -> None:
        """Check that a line has no other keys than those."""
        for key in entry:
            if key not in known:
                raise self.error(f"unknown key {key!r}: {whose} has {', '.join(known)}")

    def label(self, value: object) -> Label:
        """Read a label."""
        try:
            label = from_json(value)
            if type(label) is tuple:
                notation(label)  # whoever shows it must get that far too
        except NotationError as error:
            raise self.error(str(error)) from None
        except RecursionError:
            raise self.error("a label is nested too deep") from None
        return label

    def error(self, why: str, column: int | None = None, line: int | None = None) -> FileError:
        """Give an error at the line that was read last, or at another one."""
        return FileError(self.path, why, line or self.number or None, column)


def place(index: int) -> int:
    """Give the line of a vertex or a move, from its number.

    Examples
    --------
    >>> place(0)  # line 1 is the header
    2
    """
    return index + 2


def _object(pairs: list[tuple[str, Any]]) -> Object:
    entry = dict(pairs)
    if len(entry) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {twice!r} is there twice")
    return entry


def _constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_decode = JSONDecoder(object_pairs_hook=_object, parse_constant=_constant).decode
