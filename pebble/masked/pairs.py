"""What is known of each pair of a mask: its query, its key, and its place in row and column."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pebble.masks import Mask

Ints = NDArray[np.int64]
Booleans = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of a mask, numbered row by row; arrays have one entry a pair.

    Parameters
    ----------
    mask : Mask
        Which pairs there are.

    Examples
    --------
    Three queries, each attends to itself and to the one before.

    >>> from pebble.masks import window
    >>> pairs = Pairs(window(3, left=1, right=0))
    >>> pairs.queries, pairs.keys
    (array([0, 1, 1, 2, 2]), array([0, 0, 1, 1, 2]))
    >>> pairs.first_in_row.tolist(), pairs.first_in_column.tolist()
    ([True, True, False, True, False], [True, False, True, False, True])
    >>> pairs.row_tail  # numbers those that are not the first of their row
    array([-1, -1,  0, -1,  1])
    >>> int(pairs.before_in_column[1])
    0
    """

    mask: Mask

    @cached_property
    def _coordinates(self) -> tuple[Ints, Ints]:
        return self.mask.coordinates()

    @property
    def queries(self) -> Ints:
        """The query of each pair."""
        return self._coordinates[0]

    @property
    def keys(self) -> Ints:
        """The key of each pair."""
        return self._coordinates[1]

    @cached_property
    def row_starts(self) -> Ints:
        """The first pair of each query; one more entry at the end."""
        return _prefix(self.mask.row_counts)

    @cached_property
    def column_starts(self) -> Ints:
        """The first place of each key in `by_column`; one more entry at the end."""
        return _prefix(self.mask.column_counts)

    @cached_property
    def by_column(self) -> Ints:
        """The pairs column by column."""
        return np.argsort(self.keys, kind="stable")

    @cached_property
    def _column_place(self) -> Ints:
        place = np.empty_like(self.by_column)
        place[self.by_column] = np.arange(len(place))
        return place

    @cached_property
    def first_in_row(self) -> Booleans:
        """Whether the key is the first of its query."""
        first: Booleans = np.arange(len(self.queries)) == self.row_starts[self.queries]
        return first

    @cached_property
    def first_in_column(self) -> Booleans:
        """Whether the query is the first of its key."""
        first: Booleans = self._column_place == self.column_starts[self.keys]
        return first

    @cached_property
    def before_in_row(self) -> Ints:
        """The pair before it in its row; -1 if there is none."""
        return np.where(self.first_in_row, -1, np.arange(len(self.queries)) - 1)

    @cached_property
    def before_in_column(self) -> Ints:
        """The pair before it in its column; -1 if there is none."""
        before = self.by_column[np.maximum(self._column_place - 1, 0)]
        return np.where(self.first_in_column, -1, before)

    @cached_property
    def active(self) -> Ints:
        """The queries that attend to something."""
        return np.flatnonzero(self.mask.row_counts)

    @cached_property
    def active_place(self) -> Ints:
        """The place of each query among those that attend to something; -1 for the others."""
        return _tail(self.mask.row_counts == 0)

    @cached_property
    def later_in_row(self) -> Ints:
        """The pairs that are not the first of their row."""
        return np.flatnonzero(~self.first_in_row)

    @cached_property
    def later_in_column(self) -> Ints:
        """The pairs that are not the first of their column, row by row."""
        return np.flatnonzero(~self.first_in_column)

    def find(self, i: int, j: int) -> int:
        """Give the number of a pair; -1 if query i does not attend to key j."""
        if not (0 <= i < self.mask.n and 0 <= j < self.mask.keys):
            return -1
        start, stop = self.row_starts[i], self.row_starts[i + 1]
        at = int(start + np.searchsorted(self.keys[start:stop], j))
        return at if at < stop and self.keys[at] == j else -1

    @cached_property
    def row_tail(self) -> Ints:
        """The place among the pairs that are not the first of their row; -1 for those that are."""
        return _tail(self.first_in_row)

    @cached_property
    def column_tail(self) -> Ints:
        """The place among those that are not the first of their column; -1 for those that are."""
        return _tail(self.first_in_column)


def _prefix(counts: Ints) -> Ints:
    sums = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=sums[1:])
    return sums


def _tail(first: Booleans) -> Ints:
    return np.where(first, -1, np.cumsum(~first) - 1)
