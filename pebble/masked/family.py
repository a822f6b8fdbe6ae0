"""Families of vertices under a mask, and the sums along rows and columns of the pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pebble.families import Function
from pebble.masked.pairs import Pairs
from pebble.masked.places import Inner, Place, Size, Space

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """Some vertices of a family: how many, and which.

    Parameters
    ----------
    size : int or array of int
        How many are moved at once; while counting, one number for each tile.
    numbers : array of int, optional
        Their vertex numbers, on the three axes of `Place`. None while counting.
    """

    size: Size
    numbers: Ints | None = None


Rule = Callable[..., tuple[Cells, ...]]


@dataclass(frozen=True, eq=False)
class Family:
    """Vertices ``name[place, k]``, k < width, for each place of a space.

    Parameters
    ----------
    name : str
        The name that labels start with.
    space : Space
        What it has a row of vertices for.
    width : int
        How many vertices a place has; their labels have an index more if `indexed`.
    indexed : bool
        Whether labels end with k.
    function : Function
        What a vertex computes.
    rule : callable
        Gives the predecessors from the place and k.
    base : int
        The number of its first vertex.
    start : int
        The first k that is in a label: sums over k begin with 1.
    rank : callable, optional
        Gives the row of vertices of each place, where it is not the place's own number.
    """

    name: str
    space: Space
    width: int
    indexed: bool
    function: Function
    rule: Rule
    base: int
    start: int = 0
    rank: Callable[[], Ints] | None = None

    @property
    def is_input(self) -> bool:
        """Whether its vertices are inputs."""
        return self.function is Function.INPUT

    def __getitem__(self, key: Any) -> Cells:
        """Give the vertices at a place; with k, an inner loop's variable or ``:``."""
        place, k = key if isinstance(key, tuple) else (key, slice(None))
        return self.cells(place, k)

    def cells(self, place: Place, k: Inner | slice | int) -> Cells:
        """Give the vertices at a place."""
        inner = self._inner(k)
        size = place.size * inner.size
        if place.numbers is None:
            return Cells(size)
        return Cells(size, self.at(place.numbers, inner))

    def at(self, places: Ints, inner: Inner) -> Ints:
        """Give vertex numbers: all of the indices of k that are moved at once, place by place."""
        row = places if self.rank is None else self.rank()[places]
        rows = (self.base - self.start + row * self.width)[..., None]
        cells = rows + inner.numbers[:, :, None, :]
        return cells.reshape(*cells.shape[:2], -1)

    def _inner(self, k: Inner | slice | int) -> Inner:
        if isinstance(k, Inner):
            return k
        if isinstance(k, int):
            return Inner(1, k == 0, np.full((1, 1, 1), k))
        whole = np.arange(self.start, self.start + self.width)
        return Inner(self.width, False, whole.reshape(1, 1, -1))


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over k of a family: a chain, whose first term is the sum so far."""

    term: Family
    own: Family | None

    def __getitem__(self, key: tuple[Place, Inner]) -> Cells:
        """Give the sum up to k, at a place."""
        place, k = key
        if self.own is None or (isinstance(k, Inner) and k.first):
            return self.term[place, k]
        if not isinstance(k, Inner) or place.numbers is None:
            return self.own[place, k]
        own, term = self.own.at(place.numbers, k), self.term.at(place.numbers, k)
        places = np.zeros_like(place.numbers)[..., None]
        first = (k.numbers[:, :, None, :] + places == 0).reshape(own.shape)
        return Cells(place.size * k.size, np.where(first, term, own))

    @property
    def last(self) -> _Last:
        """The whole sum."""
        return _Last(self)


@dataclass(frozen=True)
class _Last:
    sums: Sums

    def __getitem__(self, place: Place) -> Cells:
        own = self.sums.own
        if own is None:
            return self.sums.term[place, 0]
        return own[place, own.start + own.width - 1]


@dataclass(frozen=True, eq=False)
class ChainSums:
    """Sums of a family along the rows or the columns of the pairs, chains in index order.

    At the first pair of a row (a column) the sum is the term. ``sums[pair, k]`` is the sum up to
    that pair, and ``sums[pair.left, k]`` the one before.
    """

    term: Family
    own: Family
    table: Pairs
    along_rows: bool = field(default=True)

    def __getitem__(self, key: Any) -> Cells:
        """Give the sums up to some pairs."""
        place, k = key if isinstance(key, tuple) else (key, slice(None))
        inner = self.own._inner(k)
        if place.numbers is None:
            return Cells(place.size * inner.size)
        return Cells(place.size * inner.size, self.at(place.numbers, inner))

    def at(self, pairs: Ints, inner: Inner) -> Ints:
        """Give the vertex numbers of the sums up to some pairs."""
        table = self.table
        tail = (table.row_tail if self.along_rows else table.column_tail)[pairs]
        term = self.term.at(pairs, inner)
        own = self.own.at(np.maximum(tail, 0), inner)
        first = np.broadcast_to((tail < 0)[..., None], (*tail.shape, inner.size))
        return np.where(first.reshape(*tail.shape[:2], -1), term, own)

    def last(self, place: Place, k: Inner | slice | int = slice(None)) -> Cells:
        """Give the whole sums of some queries (of keys, for sums along columns)."""
        if place.numbers is None:
            return self[Place(Space.PAIRS, place.size), k]
        table = self.table
        if self.along_rows:
            pairs = table.row_starts[place.numbers + 1] - 1
        else:
            pairs = table.by_column[table.column_starts[place.numbers + 1] - 1]
        return self[Place(Space.PAIRS, place.size, pairs), k]
