"""Implicit graphs: families of vertices over boxes of indices, with computed predecessors.

A family is cut along one axis into pieces. Within a piece the predecessors are tiles whose
indices are affine in the index of the vertex, written as a function that reads like the
definition: ``lambda i, j, k: (Q[i, k], K[j, k])``. The same function is called with integers for
one vertex, and with symbols for the compiled tables of a whole piece.

A piece may also say that its vertices are other names for vertices of another family
(`Function.SAME`): the first term of a sum is the sum so far, so ``s[i,j,0]`` names ``x[i,j,0]``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from math import prod
from numbers import Integral
from typing import TYPE_CHECKING, Any

from pebble.affine import Affine
from pebble.errors import ProgramError

if TYPE_CHECKING:
    from pebble.tapes import Block


class Function(IntEnum):
    """What a vertex computes from its predecessors u, v, in order."""

    INPUT = 0
    SAME = 1  # no vertex of its own: another name for u
    PRODUCT = 2  # u v
    SUM = 3  # u + v
    EXP = 4  # exp(u)
    EXP_OF_DIFFERENCE = 5  # exp(u - v)
    ONE = 6  # exp(u - u)
    MAX = 7  # max(u, v)
    QUOTIENT = 8  # u / v
    LOG = 9  # log(u)
    LOG_PLUS = 10  # log(u) + v
    DIFFERENCE = 11  # u - v


@dataclass(frozen=True)
class Tile:
    """A box of vertices of one family: where it starts, and its extent along each axis."""

    family: Family
    starts: tuple[Affine, ...]
    sizes: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of vertices."""
        return prod(self.sizes)

    def __repr__(self) -> str:
        parts = [
            repr(start) if size == 1 else f"{start!r}:+{size}"
            for start, size in zip(self.starts, self.sizes, strict=True)
        ]
        return f"{self.family.name}[{', '.join(parts)}]"


Rule = Callable[..., tuple[Tile, ...]]


@dataclass(frozen=True)
class Piece:
    """The part of a family with ``start <= index[axis] < stop``, under one rule."""

    start: int
    stop: int
    function: Function
    rule: Rule


@dataclass(frozen=True)
class Pieces(Sequence[Piece]):
    """Pieces that are made when they are asked for, since a family may have very many.

    Parameters
    ----------
    length : int
        How many there are.
    make : callable
        Gives the piece at a place.
    """

    length: int
    make: Callable[[int], Piece]

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, at: int) -> Piece:  # type: ignore[override]
        if not -self.length <= at < self.length:
            raise IndexError(at)
        return self.make(at % self.length)


@dataclass(frozen=True, eq=False)
class Family:
    """Vertices ``name[i, j, ...]`` over the box ``shape``, cut along `axis` into pieces.

    Parameters
    ----------
    name : str
        The name that labels start with.
    shape : sequence of int
        The extent of each index.
    pieces : sequence of Piece
        Ascending along `axis` and without overlap. Only the first may be `Function.SAME`.
        Indices before the first piece name no vertex.
    axis : int
        The axis along which the pieces cut.

    Examples
    --------
    >>> a = inputs("a", 3)
    >>> square = family("square", (3,), Function.PRODUCT, lambda i: (a[i], a[i]))
    >>> square[1]
    square[1]
    >>> square[:].size
    3
    """

    name: str
    shape: tuple[int, ...]
    pieces: Sequence[Piece]
    axis: int = 0

    @property
    def start(self) -> int:
        """The first index along `axis` that names a vertex."""
        return self.pieces[0].start if self.pieces else self.shape[self.axis]

    @property
    def is_input(self) -> bool:
        """Whether its vertices are inputs."""
        return bool(self.pieces) and self.pieces[0].function is Function.INPUT

    @cached_property
    def low(self) -> int:
        """The first index along `axis` that is a vertex of this family."""
        own = (p.start for p in self.pieces if p.function is not Function.SAME)
        return next(own, self.shape[self.axis])

    @property
    def owned(self) -> tuple[int, ...]:
        """The shape of the box of vertices that are this family's own."""
        shape = list(self.shape)
        shape[self.axis] -= self.low
        return tuple(shape)

    @property
    def size(self) -> int:
        """The number of vertices; unlike ``len``, it may exceed 64 bits."""
        return prod(self.owned)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, key: Any) -> Tile:
        """Give a tile: an index is an int, an affine expression, a block, or ``:``."""
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) != len(self.shape):
            raise ProgramError(
                f"{self.name}{list(keys)}: "
                f"{self.name} has {len(self.shape)} indices, not {len(keys)}"
            )
        spans = [_span(part, extent) for part, extent in zip(keys, self.shape, strict=True)]
        return Tile(self, tuple(s for s, _ in spans), tuple(size for _, size in spans))

    def piece(self, index: Sequence[int]) -> Piece | None:
        """Give the piece of an index, None where the index names no vertex."""
        if not isinstance(index, tuple) or len(index) != len(self.shape):
            return None
        if not all(isinstance(i, (int, Integral)) for i in index):  # int first: it is quick
            return None
        if not all(0 <= i < extent for i, extent in zip(index, self.shape, strict=True)):
            return None
        at = bisect_right(self.pieces, index[self.axis], key=lambda p: p.start) - 1
        return self.pieces[at] if at >= 0 and index[self.axis] < self.pieces[at].stop else None


def _span(key: Any, extent: int) -> tuple[Affine, int]:
    if isinstance(key, int):
        return Affine(key), 1
    if isinstance(key, Affine):
        return key, 1
    if isinstance(key, slice):
        start, stop, step = key.indices(extent)
        if step != 1:
            raise ProgramError(f"{key}: a tile is contiguous, its step is 1")
        return Affine(start), max(stop - start, 0)
    block: Block = key
    return block.start, block.size


def inputs(name: str, *shape: int) -> Family:
    """Give a family of inputs."""
    return Family(name, shape, (Piece(0, shape[0], Function.INPUT, lambda *_: ()),))


def family(name: str, shape: tuple[int, ...], function: Function, rule: Rule) -> Family:
    """Give a family of one piece."""
    return Family(name, shape, (Piece(0, shape[0], function, rule),))


def chain(
    name: str,
    shape: tuple[int, ...],
    axis: int,
    function: Function,
    first: Callable[..., Tile],
    rule: Callable[..., tuple[Tile, ...]],
) -> Family:
    """Give a chain along an axis: index 0 is another name for the first term."""
    pieces = [Piece(0, 1, Function.SAME, lambda *index: (first(*index),))]
    if shape[axis] > 1:
        pieces.append(Piece(1, shape[axis], function, rule))
    return Family(name, shape, tuple(pieces), axis)


def sums(name: str, term: Family, axis: int) -> Family:
    """Give the sums of a family's vertices along an axis, a chain in index order.

    Examples
    --------
    >>> a = inputs("a", 3, 2)
    >>> total = sums("total", a, 0)
    >>> total.pieces[1].rule(2, 0)
    (total[1, 0], a[2, 0])
    """

    def rule(*index: Any) -> tuple[Tile, ...]:
        before = (*index[:axis], index[axis] - 1, *index[axis + 1 :])
        return total[before], term[index]

    total = chain(name, term.shape, axis, Function.SUM, lambda *index: term[index], rule)
    return total
