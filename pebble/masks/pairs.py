"""A set of pairs of queries and keys, held as intervals of keys: its counts and what is in it."""

from __future__ import annotations

import hashlib
from dataclasses import FrozenInstanceError
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pebble.checks import positive
from pebble.errors import MaskError
from pebble.masks import intervals
from pebble.masks.arguments import Ints, indices, span
from pebble.masks.intervals import Rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Booleans = NDArray[np.bool_]


class Pairs:
    """The pairs of n queries and some keys that attend. It never changes.

    Sets of one shape with the same pairs are equal, however they were made, and hash alike.
    `pebble.masks.Mask` is such a set with a name, and says more.

    Parameters
    ----------
    keys : int
        The number of keys.
    row_starts : array of int, of length n + 1
        Query i has intervals ``row_starts[i]`` to ``row_starts[i + 1] - 1``.
    starts, stops : arrays of int
        Interval t holds the keys ``starts[t]`` to ``stops[t] - 1``. Those of one query are sorted
        and don't touch.

    Raises
    ------
    SizeError, MaskError
        No keys or no queries; intervals that are not in this form.

    Examples
    --------
    >>> pairs = Pairs(4, [0, 1, 3], [0, 0, 3], [2, 1, 4])
    >>> print(pairs.to_text())
    ##..
    #..#
    """

    keys: int
    rows: Rows

    def __init__(
        self, keys: int, row_starts: ArrayLike, starts: ArrayLike, stops: ArrayLike
    ) -> None:
        keys = positive("keys", keys, "the number of keys")
        rows = Rows(_frozen(row_starts), _frozen(starts), _frozen(stops))
        complaint = intervals.fault(keys, rows)
        if complaint:
            raise MaskError(complaint)
        positive("n", rows.number, "the number of queries")
        self.__dict__.update(keys=keys, rows=rows)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to {name!r}: a mask does not change")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete {name!r}: a mask does not change")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pairs):
            return NotImplemented
        if self is other:
            return True
        return self.shape == other.shape and all(map(np.array_equal, self.rows, other.rows))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        digest = hashlib.blake2b(digest_size=8)
        for part in self.rows:
            digest.update(part.data)
        return hash((self.keys, digest.digest()))

    # Sizes and counts.

    @property
    def n(self) -> int:
        """The number of queries."""
        return self.rows.number

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of queries and keys."""
        return self.n, self.keys

    @property
    def row_starts(self) -> Ints:
        """Where each query's intervals start; one more than there are queries."""
        return self.rows.row_starts

    @property
    def starts(self) -> Ints:
        """The first key of each interval."""
        return self.rows.starts

    @property
    def stops(self) -> Ints:
        """One more than the last key of each interval."""
        return self.rows.stops

    @cached_property
    def pairs(self) -> int:
        """Z: pairs of a query and a key that attend."""
        return int((self.stops - self.starts).sum())

    @cached_property
    def row_counts(self) -> Ints:
        """The keys of each query.

        >>> from pebble.masks import causal
        >>> causal(3).row_counts, causal(3).column_counts
        (array([1, 2, 3]), array([3, 2, 1]))
        """
        return _frozen(np.diff(intervals.prefix(self.stops - self.starts)[self.row_starts]))

    @cached_property
    def column_counts(self) -> Ints:
        """The queries of each key."""
        return _frozen(_coverage(self.starts, self.stops, self.keys))

    @cached_property
    def touched_rows(self) -> int:
        """How many queries attend to something."""
        return int(np.count_nonzero(self.row_counts))

    @cached_property
    def touched_columns(self) -> int:
        """How many keys are attended to."""
        return int(np.count_nonzero(self.column_counts))

    @cached_property
    def empty_rows(self) -> Ints:
        """The queries that attend to nothing; their softmax has no value."""
        return _frozen(np.flatnonzero(self.row_counts == 0))

    @property
    def is_full(self) -> bool:
        """Whether every query attends to every key."""
        return self.pairs == self.n * self.keys

    @cached_property
    def diagonals(self) -> int:
        """How many values i - j has: the width of a band, however wide its gaps.

        >>> from pebble.masks import window
        >>> window(9, left=1, right=1).diagonals
        3
        """
        shift = self.n - 1 - intervals.row_of_each(self.rows)
        number = self.n + self.keys - 1
        cover = _coverage(self.starts + shift, self.stops + shift, number)
        return int(np.count_nonzero(cover))

    # Looking inside.

    def row(self, i: int) -> Ints:
        """Give the keys of query i.

        Raises
        ------
        MaskError
            There is no such query.

        Examples
        --------
        >>> from pebble.masks import window
        >>> window(9, left=2, right=1).row(4)
        array([2, 3, 4, 5])
        """
        at = int(indices("i", i, self.n, "queries"))
        part = slice(self.row_starts[at], self.row_starts[at + 1])
        return intervals.expanded(self.starts[part], self.stops[part])

    def columns_of(self, i0: int, i1: int) -> tuple[Ints, Ints]:
        """Give the keys of queries i0 to i1 - 1 together, as starts and stops of intervals.

        Raises
        ------
        MaskError
            There are no such queries.

        Examples
        --------
        >>> from pebble.masks import window
        >>> window(9, left=1, right=0).columns_of(3, 6)
        (array([2]), array([6]))
        """
        i0, i1 = span("i0, i1", i0, i1, self.n, "queries")
        part = slice(self.row_starts[i0], self.row_starts[i1])
        starts, stops = self.starts[part], self.stops[part]
        found = intervals.united(1, self.keys, np.zeros_like(starts), starts, stops)
        return found.starts, found.stops

    def pairs_in(self, i0: int, i1: int, j0: int, j1: int) -> int:
        """Count the pairs of queries i0 to i1 - 1 and keys j0 to j1 - 1.

        Raises
        ------
        MaskError
            There are no such queries or keys.

        Examples
        --------
        >>> from pebble.masks import causal
        >>> causal(4).pairs_in(1, 3, 1, 4)
        3
        """
        i0, i1 = span("i0, i1", i0, i1, self.n, "queries")
        j0, j1 = span("j0, j1", j0, j1, self.keys, "keys")
        part = slice(self.row_starts[i0], self.row_starts[i1])
        inside = np.minimum(self.stops[part], j1) - np.maximum(self.starts[part], j0)
        return int(np.maximum(inside, 0).sum())

    def contains(self, i: ArrayLike, j: ArrayLike) -> Booleans:
        """Tell whether queries i attend to keys j, element by element, broadcast.

        Raises
        ------
        MaskError
            There is no such query or key.

        Examples
        --------
        >>> from pebble.masks import causal
        >>> causal(4).contains(2, [1, 2, 3])
        array([ True,  True, False])
        """
        queries = indices("i", i, self.n, "queries")
        keys = indices("j", j, self.keys, "keys")
        if not len(self.starts):
            return np.zeros(np.broadcast_shapes(queries.shape, keys.shape), bool)
        places = self._places
        asked = queries * (self.keys + 1) + keys
        last = np.searchsorted(places, asked, side="right") - 1
        # Before the first interval, last = -1 names the last one, which starts after what is asked.
        inside = asked - places[last]
        found: Booleans = (inside >= 0) & (inside < (self.stops - self.starts)[last])
        return found

    @cached_property
    def _places(self) -> Ints:
        return intervals.row_of_each(self.rows) * (self.keys + 1) + self.starts

    def coordinates(self) -> tuple[Ints, Ints]:
        """Give the queries and the keys of all pairs, row by row.

        Examples
        --------
        >>> from pebble.masks import causal
        >>> causal(2).coordinates()
        (array([0, 1, 1]), array([0, 0, 1]))
        """
        columns = intervals.expanded(self.starts, self.stops)
        return np.repeat(np.arange(self.n, dtype=np.int64), self.row_counts), columns

    # In other forms.

    def to_array(self) -> Booleans:
        """Give it as an n x keys array of booleans.

        Examples
        --------
        >>> from pebble.masks import causal
        >>> causal(2).to_array().tolist()
        [[True, False], [True, True]]
        """
        array = np.zeros(self.shape, bool)
        base = intervals.row_of_each(self.rows) * self.keys
        array.reshape(-1)[intervals.expanded(base + self.starts, base + self.stops)] = True
        return array

    def to_scipy(self) -> csr_array:
        """Give it as a SciPy array in CSR form.

        Examples
        --------
        >>> from pebble.masks import causal
        >>> causal(2).to_scipy().indices.tolist()
        [0, 0, 1]
        """
        from scipy.sparse import csr_array

        columns = intervals.expanded(self.starts, self.stops)
        ends = intervals.prefix(self.row_counts)
        return csr_array((np.ones(len(columns), bool), columns, ends), shape=self.shape)

    def to_text(self) -> str:
        """Draw it, a line for each query: ``#`` where it attends, ``.`` where not.

        Examples
        --------
        >>> from pebble.masks import document
        >>> print(document([1, 2]).to_text())
        #..
        .##
        .##
        """
        return "\n".join("".join(".#"[pair] for pair in row) for row in self.to_array().tolist())


def _coverage(starts: Ints, stops: Ints, size: int) -> Ints:
    # How many intervals hold each of 0 to size - 1.
    steps = np.bincount(starts, minlength=size + 1) - np.bincount(stops, minlength=size + 1)
    return np.cumsum(steps)[:size]


def _frozen(values: ArrayLike) -> Ints:
    # What is frozen and no view is no one else's: masks can share it.
    if isinstance(values, np.ndarray) and values.dtype == np.int64:
        whole = values.base is None and values.flags.c_contiguous
        if whole and not values.flags.writeable:
            return values
    given = np.asarray(values)
    if given.size and given.dtype.kind not in "iu":
        raise MaskError(f"an array of type {given.dtype}: rows and keys are integers")
    array = np.array(given, np.int64, order="C")
    array.flags.writeable = False
    return array
