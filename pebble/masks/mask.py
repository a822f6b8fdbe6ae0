"""An attention mask: which query attends to which key, as a value."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pebble.checks import positive
from pebble.errors import MaskError
from pebble.masks import density, intervals
from pebble.masks.arguments import Ints, indices
from pebble.masks.intervals import Rows
from pebble.masks.names import joined, shortened, wrapped
from pebble.masks.pairs import Pairs
from pebble.masks.tiles import Tiles


class Mask(Pairs):
    """A boolean pattern of n queries and some keys, held as intervals of keys, row by row.

    It never changes. Masks of one shape and one pattern are equal, however they were made, and hash
    alike; the name takes no part. ``a & b``, ``a | b`` and ``~a`` combine masks of one shape.

    Parameters
    ----------
    keys : int
        The number of keys.
    row_starts : array of int, of length n + 1
        Query i has intervals ``row_starts[i]`` to ``row_starts[i + 1] - 1``.
    starts, stops : arrays of int
        Interval t holds the keys ``starts[t]`` to ``stops[t] - 1``. Those of one query are sorted
        and don't touch.
    name : str
        What to call it.

    Raises
    ------
    SizeError, MaskError
        No keys or no queries; intervals that are not in this form.

    Examples
    --------
    Most masks are made by a function.

    >>> from pebble.masks import causal, window
    >>> mask = causal(4) & window(4, left=1, right=1)
    >>> mask
    Mask(causal & window(1, 1), 4 x 4, 7 pairs)
    >>> print(mask.to_text())
    #...
    ##..
    .##.
    ..##
    >>> mask == window(4, left=1, right=0)
    True
    """

    name: str

    def __init__(
        self,
        keys: int,
        row_starts: ArrayLike,
        starts: ArrayLike,
        stops: ArrayLike,
        name: str = "mask",
    ) -> None:
        super().__init__(keys, row_starts, starts, stops)
        self.__dict__["name"] = name

    @classmethod
    def of(cls, keys: int, rows: Rows, name: str) -> Mask:
        """Make a mask from rows of intervals, whose arrays are from now on read-only."""
        for part in rows:
            part.flags.writeable = False
        return cls(keys, *rows, name)

    def __reduce__(self) -> tuple[type[Mask], tuple[Any, ...]]:
        return Mask, (self.keys, *self.rows, self.name)

    def __repr__(self) -> str:
        return f"Mask({shortened(self.name)}, {self.n} x {self.keys}, {self.pairs} pairs)"

    def named(self, name: str) -> Mask:
        """Give the same mask under another name.

        Examples
        --------
        >>> from pebble.masks import causal
        >>> causal(3).named("triangle")
        Mask(triangle, 3 x 3, 6 pairs)
        """
        return Mask.of(self.keys, self.rows, name)

    # Combining.

    def __and__(self, other: Mask) -> Mask:
        if not isinstance(other, Mask):
            return NotImplemented
        self._match(other)
        rows = intervals.intersection(self.keys, self.rows, other.rows)
        return Mask.of(self.keys, rows, joined(self.name, "&", other.name))

    def __or__(self, other: Mask) -> Mask:
        if not isinstance(other, Mask):
            return NotImplemented
        self._match(other)
        rows = intervals.union(self.keys, self.rows, other.rows)
        return Mask.of(self.keys, rows, joined(self.name, "|", other.name))

    def __invert__(self) -> Mask:
        rows = intervals.complement(self.keys, self.rows)
        return Mask.of(self.keys, rows, f"~{wrapped(self.name)}")

    def _match(self, other: Mask) -> None:
        if self.shape != other.shape:
            raise MaskError(
                f"{shortened(self.name)} is {self.n} x {self.keys} and {shortened(other.name)} is "
                f"{other.n} x {other.keys}: masks of one shape can be combined"
            )

    def transpose(self) -> Mask:
        """Give the mask with queries and keys exchanged.

        Examples
        --------
        >>> from pebble.masks import causal
        >>> print(causal(2, keys=3).T.to_text())
        ##
        ##
        .#
        """
        rows = intervals.transposed(self.keys, self.rows)
        return Mask.of(self.n, rows, f"{wrapped(self.name)}.T")

    @property
    def T(self) -> Mask:
        """The mask with queries and keys exchanged."""
        return self.transpose()

    def submask(self, rows: Iterable[int] | Ints) -> Mask:
        """Give the mask of the given queries, in that order; all keys stay.

        Raises
        ------
        SizeError, MaskError
            No rows; rows that do not exist.

        Examples
        --------
        >>> from pebble.masks import causal
        >>> print(causal(3).submask([2, 0]).to_text())
        ###
        #..
        """
        order = indices("rows", rows, self.n, "queries")
        if order.ndim != 1:
            raise MaskError(f"rows of shape {order.shape}: they are a one-dimensional array")
        taken = intervals.taken(self.rows, order)
        return Mask.of(self.keys, taken, f"{wrapped(self.name)}.submask({len(order)} rows)")

    def permuted(self, order: Iterable[int] | Ints) -> Mask:
        """Give the mask with its queries in another order; ``order[0]`` comes first.

        Raises
        ------
        MaskError
            Not every query comes once.

        Examples
        --------
        >>> from pebble.masks import causal
        >>> print(causal(3).permuted([1, 2, 0]).to_text())
        ##.
        ###
        #..
        """
        chosen = indices("order", order, self.n, "queries")
        if chosen.shape != (self.n,) or (np.bincount(chosen, minlength=self.n) != 1).any():
            raise MaskError(f"order: each of the {self.n} queries comes once in it")
        return self.submask(chosen).named(f"{wrapped(self.name)}.permuted")

    def tiles(self, rows: int, cols: int) -> Tiles:
        """Cut it into tiles of `rows` queries and `cols` keys; the last ones may be smaller.

        Raises
        ------
        SizeError
            A size is no positive integer.

        Examples
        --------
        >>> from pebble.masks import causal
        >>> causal(4).tiles(2, 2)
        Tiles(2 x 2: 1 full, 2 partial, 1 empty)
        """
        return Tiles(self, rows, cols)

    # The most pairs of few rows and columns.

    def densest(self, a: int, b: int) -> int:
        """Give a number that no `a` rows and `b` columns, wherever they lie, hold more pairs than.

        It is the least of three: all of the `a` rows' pairs, at most b each, for the fullest rows
        (a b, where these are full); all of the `b` columns' pairs, at most a each; and, by
        `density.band`, what the diagonals allow. Each bounds the pairs of any rows and columns, so
        the least does. It never falls when a or b grows.

        Raises
        ------
        SizeError
            A size is no positive integer.

        Examples
        --------
        A window of 3 keys: two rows and two columns can be full, 3 x 3 lack two corners.

        >>> from pebble.masks import window
        >>> mask = window(9, left=1, right=1)
        >>> mask.densest(2, 2), mask.densest(3, 3), mask.densest(9, 9), mask.pairs
        (4, 7, 25, 25)
        """
        a = positive("a", a, "the number of rows")
        b = positive("b", b, "the number of columns")
        return int(self.densities(np.array(min(a, self.n)), np.array(min(b, self.keys))))

    def densities(self, a: Ints, b: Ints) -> Ints:
        """Give `densest` of arrays of row and column numbers, element by element, broadcast.

        Raises
        ------
        MaskError
            An `a` beyond 0 to n, or a `b` beyond 0 to keys.

        Examples
        --------
        >>> from pebble.masks import full
        >>> full(3).densities(np.array([1, 2]), np.array([3, 2]))
        array([3, 4])
        """
        a = indices("a", a, self.n + 1, "numbers of rows")
        b = indices("b", b, self.keys + 1, "numbers of columns")
        a, b = np.broadcast_arrays(a, b)
        by_rows = density.widest(self._by_rows, a, b)
        by_columns = density.widest(self._by_columns, b, a)
        by_band = density.band(np.array(self.diagonals), a, b)
        least: Ints = np.minimum(np.minimum(by_rows, by_columns), by_band)
        return least

    @cached_property
    def _by_rows(self) -> density.Ladder:
        return density.ladder(self.row_counts)

    @cached_property
    def _by_columns(self) -> density.Ladder:
        return density.ladder(self.column_counts)
