"""Writing a schedule down: a tape records loads, stores, computes and deletes of tiles.

A schedule is a function that reads like pseudo-code and runs once, whatever the sizes are: the
loops that a tape hands out run their body for the first block, for one block that stands for all
those in the middle, and for the last block, which may be ragged. What comes out is a `Program`, a
small tree of loops and tile moves, and the interpreters (count, replay, execute) read that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pebble.affine import Affine
from pebble.errors import ProgramError, SizeError
from pebble.families import Tile
from pebble.rules import Op


@dataclass(frozen=True)
class Do:
    """Move every vertex of a tile, in row-major order.

    `again` says that they are red already, so that a load of them changes nothing.
    """

    op: Op
    tile: Tile
    again: bool = False


@dataclass(frozen=True)
class Loop:
    """Run a body `count` times, its variable going 0, 1, ..., count - 1."""

    variable: int
    count: int
    body: tuple[Do | Loop, ...]


Program = tuple[Do | Loop, ...]


@dataclass(frozen=True)
class Block:
    """A range of indices that starts at an affine index and has a known size.

    Parameters
    ----------
    start : Affine
        Its first index.
    size : int
        How many indices it has.
    first, last : bool
        Whether it is the first, and the last, of the whole extent.
    """

    start: Affine
    size: int
    first: bool
    last: bool

    @property
    def end(self) -> Affine:
        """The last index in the block."""
        return self.start + (self.size - 1)

    def drop(self, count: int) -> Block:
        """Give the block without its first `count` indices (possibly empty)."""
        count = min(count, self.size)
        return Block(self.start + count, self.size - count, self.first and not count, self.last)


class Index(Affine):
    """One index of a loop; `first` says whether it is 0, the first of the whole extent."""

    first: bool

    def __init__(self, value: Affine, first: bool) -> None:
        super().__init__(value.constant, value.terms)
        object.__setattr__(self, "first", first)


def whole(extent: int) -> Block:
    """Give the block of all indices of an extent."""
    return Block(Affine(0), extent, True, True)


@dataclass
class Tape:
    """A recorder of tile moves.

    Examples
    --------
    Sixteen words are copied in blocks of five, one load and one store a word.

    >>> from pebble.families import inputs
    >>> A = inputs("A", 16)
    >>> tape = Tape()
    >>> for I in tape.blocks(16, 5):
    ...     tape.load(A[I])
    ...     tape.delete(A[I])
    >>> print(show(tape.program))
    load A[0:+5]
    delete A[0:+5]
    for v0 in 0..1:
      load A[5 + 5*v0:+5]
      delete A[5 + 5*v0:+5]
    load A[15]
    delete A[15]
    """

    _bodies: list[list[Do | Loop]] = field(default_factory=lambda: [[]])
    _variables: int = 0
    _open: int = 0  # loops that have not come to their end

    @property
    def program(self) -> Program:
        """What was recorded.

        Raises
        ------
        ProgramError
            A loop was left before its end.
        """
        if self._open:
            raise ProgramError("a loop over blocks or indices of a tape was left with break")
        return tuple(self._bodies[0])

    def load(self, *tiles: Tile) -> None:
        """Load every vertex of each tile."""
        self._do(Op.LOAD, tiles)

    def load_again(self, *tiles: Tile) -> None:
        """Load every vertex of each tile, though it is red: in vain, if the rules allow it at all.

        A count believes it (the words are moved and no cache is taken); the referee sees for
        itself, and forbids it but under ``Rules(redundant=True)``.
        """
        self._bodies[-1].extend(Do(Op.LOAD, tile, again=True) for tile in tiles if tile.size)

    def store(self, *tiles: Tile) -> None:
        """Store every vertex of each tile."""
        self._do(Op.STORE, tiles)

    def compute(self, *tiles: Tile) -> None:
        """Compute every vertex of each tile, in row-major order."""
        self._do(Op.COMPUTE, tiles)

    def delete(self, *tiles: Tile) -> None:
        """Take the red pebbles off each tile."""
        self._do(Op.DELETE, tiles)

    def _do(self, op: Op, tiles: tuple[Tile, ...]) -> None:
        self._bodies[-1].extend(Do(op, tile) for tile in tiles if tile.size)

    def blocks(self, extent: int | Block, size: int) -> Iterator[Block]:
        """Run over an extent, or within a block, in blocks of a size; the last may be ragged.

        Raises
        ------
        SizeError
            A size that is no positive integer.
        """
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise SizeError(f"block size {size!r}: it must be a positive integer")
        over = whole(extent) if isinstance(extent, int) else extent
        count = -(-over.size // size)
        self._open += 1
        if count:
            yield Block(over.start, min(size, over.size), over.first, over.last and count == 1)
        if count > 2:
            with _Repeat(self, count - 2) as t:
                yield Block(over.start + size + size * t, size, False, False)
        if count > 1:
            rest = over.drop(size * (count - 1))
            yield Block(rest.start, rest.size, False, over.last)
        self._open -= 1

    def each(self, extent: int | Block) -> Iterator[Index]:
        """Run over the indices of an extent or a block, one by one."""
        over = whole(extent) if isinstance(extent, int) else extent
        self._open += 1
        if over.size and over.first:
            yield Index(over.start, True)
            over = over.drop(1)
        if over.size:
            with _Repeat(self, over.size) as t:
                yield Index(over.start + t, False)
        self._open -= 1


@dataclass
class _Repeat:
    """The body of a loop, open while the tape's iterator is suspended in it."""

    tape: Tape
    count: int

    def __enter__(self) -> Affine:
        self.variable = self.tape._variables
        self.tape._variables += 1
        self.tape._bodies.append([])
        return Affine(0, ((self.variable, 1),))

    def __exit__(self, *_: object) -> None:
        body = self.tape._bodies.pop()
        if body:
            self.tape._bodies[-1].append(Loop(self.variable, self.count, tuple(body)))


def show(program: Program, indent: str = "") -> str:
    """Write a program as text, one tile move a line."""
    lines = []
    for node in program:
        if isinstance(node, Do):
            lines.append(f"{indent}{node.op} {node.tile!r}")
        else:
            lines.append(f"{indent}for v{node.variable} in 0..{node.count - 1}:")
            lines.append(show(node.body, indent + "  "))
    return "\n".join(lines)
