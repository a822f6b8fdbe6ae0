"""Rows of keys as sorted, disjoint, half-open intervals, and their algebra, vectorised.

Every function is a few NumPy passes over the intervals; none loops over rows, and none holds the
keys one by one unless it gives them back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Rows(NamedTuple):
    """The intervals of all rows, one after the other.

    Row i has intervals ``row_starts[i]`` to ``row_starts[i + 1] - 1``; interval t holds the keys
    ``starts[t]`` to ``stops[t] - 1``. In a row they are sorted, not empty, and don't touch: so one
    set of pairs has one form.

    Parameters
    ----------
    row_starts, starts, stops : arrays of int64
    """

    row_starts: Ints
    starts: Ints
    stops: Ints

    @property
    def number(self) -> int:
        """How many rows there are."""
        return len(self.row_starts) - 1


def row_of_each(rows: Rows) -> Ints:
    """Give the row of each interval.

    Examples
    --------
    >>> row_of_each(Rows(np.array([0, 2, 2, 3]), np.array([0, 4, 1]), np.array([2, 5, 3])))
    array([0, 0, 2])
    """
    return np.repeat(np.arange(rows.number, dtype=np.int64), np.diff(rows.row_starts))


def prefix(counts: Ints) -> Ints:
    """Give the sums of the first 0, 1, 2, ... counts.

    Examples
    --------
    >>> prefix(np.array([3, 1]))
    array([0, 3, 4])
    """
    sums = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=sums[1:])
    return sums


def expanded(starts: Ints, stops: Ints) -> Ints:
    """Give the integers of half-open intervals, one interval after the other.

    Examples
    --------
    >>> expanded(np.array([0, 7, 4]), np.array([2, 7, 7]))
    array([0, 1, 4, 5, 6])
    """
    ends = prefix(stops - starts)
    return np.arange(ends[-1], dtype=np.int64) + np.repeat(starts - ends[:-1], stops - starts)


def grouped(number: int, row_of: Ints, starts: Ints, stops: Ints) -> Rows:
    """Give rows from intervals that are sorted by row and in order already.

    Examples
    --------
    >>> grouped(3, np.array([0, 2]), np.array([1, 0]), np.array([2, 2])).row_starts
    array([0, 1, 1, 2])
    """
    return Rows(prefix(np.bincount(row_of, minlength=number)), starts, stops)


def one_each(starts: Ints, stops: Ints) -> Rows:
    """Give rows of one interval each, or none where it is empty.

    Examples
    --------
    >>> one_each(np.array([0, 3, 1]), np.array([2, 3, 4])).row_starts
    array([0, 1, 1, 2])
    """
    some = stops > starts
    return Rows(prefix(some.astype(np.int64)), starts[some], stops[some])


def united(number: int, keys: int, row_of: Ints, starts: Ints, stops: Ints) -> Rows:
    """Give rows from any intervals, in any order; they may overlap, touch or be empty.

    Examples
    --------
    >>> united(1, 9, np.array([0, 0, 0]), np.array([4, 0, 2]), np.array([6, 3, 4]))
    Rows(row_starts=array([0, 1]), starts=array([0]), stops=array([6]))
    """
    base = row_of * (keys + 1)
    return _covered(number, keys, [base + starts], [base + stops], 1)


def union(keys: int, *parts: Rows) -> Rows:
    """Give what is in any of the parts."""
    return _covered(parts[0].number, keys, *_places(keys, parts), 1)


def intersection(keys: int, left: Rows, right: Rows) -> Rows:
    """Give what is in both."""
    return _covered(left.number, keys, *_places(keys, (left, right)), 2)


def _places(keys: int, parts: tuple[Rows, ...]) -> tuple[list[Ints], list[Ints]]:
    # One number for a row and a key. A row has keys + 1 places, the last for what ends there.
    bases = [row_of_each(part) * (keys + 1) for part in parts]
    starts = [base + part.starts for base, part in zip(bases, parts, strict=True)]
    return starts, [base + part.stops for base, part in zip(bases, parts, strict=True)]


def _covered(number: int, keys: int, starts: list[Ints], stops: list[Ints], depth: int) -> Rows:
    # The places that at least `depth` intervals cover. At one place starts sort before stops, so
    # that intervals which touch become one; a depth reached at a single place is an empty interval.
    edges = np.concatenate([2 * part for part in starts] + [2 * part + 1 for part in stops])
    edges.sort(kind="stable")  # a merge: the parts are sorted, or nearly
    closing = (edges & 1).astype(bool)
    cover = np.cumsum(np.where(closing, -1, 1))
    first = edges[~closing & (cover == depth)] >> 1
    last = edges[closing & (cover == depth - 1)] >> 1
    some = last > first
    row_of, starts_in_row = np.divmod(first[some], keys + 1)
    return grouped(number, row_of, starts_in_row, last[some] - row_of * (keys + 1))


def complement(keys: int, rows: Rows) -> Rows:
    """Give what is in none of a row's intervals.

    Examples
    --------
    >>> complement(5, Rows(np.array([0, 1]), np.array([1]), np.array([3])))
    Rows(row_starts=array([0, 2]), starts=array([0, 3]), stops=array([1, 5]))
    """
    starts = np.insert(rows.stops, rows.row_starts[:-1], 0)
    stops = np.insert(rows.starts, rows.row_starts[1:], keys)
    some = stops > starts
    gaps = prefix(some.astype(np.int64))[rows.row_starts + np.arange(rows.number + 1)]
    return Rows(gaps, starts[some], stops[some])


def transposed(keys: int, rows: Rows) -> Rows:
    """Give the columns as rows.

    A column's interval starts at each row that has the key while the row before has not, and stops
    where it is the other way round. Both are found as intervals of keys, so the work grows with the
    intervals that go in and come out, and not with the pairs.
    """
    if (rows.stops - rows.starts).sum() <= 2 * len(rows.starts):
        return runs(keys, *_by_column(rows))  # so few that the pairs themselves are less work
    nothing = np.zeros(1, np.int64)
    before = Rows(np.concatenate([nothing, rows.row_starts]), rows.starts, rows.stops)
    now = Rows(np.append(rows.row_starts, rows.row_starts[-1]), rows.starts, rows.stops)
    columns, starts = _by_column(intersection(keys, now, complement(keys, before)))
    _, stops = _by_column(intersection(keys, before, complement(keys, now)))
    return grouped(keys, columns, starts, stops)


def _by_column(rows: Rows) -> tuple[Ints, Ints]:
    # The pairs' columns and rows, column by column.
    places = expanded(rows.starts, rows.stops)
    places *= rows.number
    places += np.repeat(row_of_each(rows), rows.stops - rows.starts)
    places.sort()
    columns, row_of = np.divmod(places, rows.number)
    return columns, row_of


def taken(rows: Rows, order: Ints) -> Rows:
    """Give the rows with the given numbers, in that order.

    Examples
    --------
    >>> taken(Rows(np.array([0, 1, 2]), np.array([0, 5]), np.array([1, 7])), np.array([1, 0, 1]))
    Rows(row_starts=array([0, 1, 2, 3]), starts=array([5, 0, 5]), stops=array([7, 1, 7]))
    """
    starts, stops = rows.row_starts[order], rows.row_starts[order + 1]
    chosen = expanded(starts, stops)
    return Rows(prefix(stops - starts), rows.starts[chosen], rows.stops[chosen])


def runs(number: int, row_of: Ints, columns: Ints) -> Rows:
    """Give rows from pairs, sorted by row and column, each once.

    Examples
    --------
    >>> runs(2, np.array([0, 0, 1]), np.array([3, 4, 5]))
    Rows(row_starts=array([0, 1, 2]), starts=array([3, 5]), stops=array([5, 6]))
    """
    follows = (np.diff(columns) == 1) & (np.diff(row_of) == 0)
    first = np.ones(len(columns), bool)
    first[1:] = ~follows
    last = np.ones(len(columns), bool)
    last[:-1] = ~follows
    return grouped(number, row_of[first], columns[first], columns[last] + 1)


def stretched(rows: Rows, tall: int, wide: int, number: int, keys: int) -> Rows:
    """Give each pair as a block of `tall` rows and `wide` keys, cut to `number` rows and `keys`.

    Examples
    --------
    >>> stretched(Rows(np.array([0, 1]), np.array([1]), np.array([2])), 2, 3, 2, 5)
    Rows(row_starts=array([0, 1, 2]), starts=array([3, 3]), stops=array([5, 5]))
    """
    large = taken(rows, np.arange(number, dtype=np.int64) // tall)
    return Rows(large.row_starts, large.starts * wide, np.minimum(large.stops * wide, keys))


def fault(keys: int, rows: Rows) -> str | None:
    """Say why rows are not in the one form that they must have, or give None.

    Examples
    --------
    >>> fault(4, Rows(np.array([0, 2]), np.array([0, 2]), np.array([2, 3])))
    'row 0: interval 2 to 3 touches or overlaps the one before, 0 to 2, or is out of order'
    """
    row_starts, starts, stops = rows
    if any(part.ndim != 1 for part in rows) or not len(row_starts):
        return "row_starts, starts and stops are one-dimensional, and row_starts is not empty"
    if len(starts) != len(stops):
        return f"{len(starts)} starts and {len(stops)} stops: each interval has both"
    if row_starts[0] != 0 or row_starts[-1] != len(starts) or (np.diff(row_starts) < 0).any():
        return f"row_starts does not rise from 0 to {len(starts)}, the number of intervals"
    wrong = (starts < 0) | (stops <= starts) | (stops > keys)
    row_of = row_of_each(rows)
    if wrong.any():
        t = int(np.argmax(wrong))
        return (
            f"row {row_of[t]}: interval {starts[t]} to {stops[t]} is empty, or goes beyond the "
            f"{keys} keys"
        )
    meets = (row_of[1:] == row_of[:-1]) & (starts[1:] <= stops[:-1])
    if meets.any():
        t = int(np.argmax(meets)) + 1
        return (
            f"row {row_of[t]}: interval {starts[t]} to {stops[t]} touches or overlaps the one "
            f"before, {starts[t - 1]} to {stops[t - 1]}, or is out of order"
        )
    return None
