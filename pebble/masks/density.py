"""The most pairs that a few rows and a few columns of a mask can hold, bounded from above."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pebble.masks.intervals import Ints, prefix


class Ladder(NamedTuple):
    """The pairs of each row, or of each column, sorted once for many questions.

    Parameters
    ----------
    rising : array of int64
        The counts, sorted.
    sums : array of int64
        The sums of the largest 0, 1, 2, ... of them.
    """

    rising: Ints
    sums: Ints


def ladder(counts: Ints) -> Ladder:
    """Sort counts.

    Examples
    --------
    >>> ladder(np.array([4, 1, 3]))
    Ladder(rising=array([1, 3, 4]), sums=array([0, 4, 7, 8]))
    """
    rising = np.sort(counts)
    return Ladder(rising, prefix(rising[::-1]))


def widest(counts: Ladder, lines: Ints, cap: Ints) -> Ints:
    """Give the sum of the largest `lines` of min(count, cap), for arrays of lines and caps.

    Parameters
    ----------
    counts : Ladder
        The pairs in each row, say.
    lines, cap : arrays of int, of one shape
        How many rows, at most all, and the most that one of them can give.

    Examples
    --------
    Of 4, 1, 3, 3 the largest three, cut at 3: 3 + 3 + 3. The largest two, cut at 9: 4 + 3.

    >>> widest(ladder(np.array([4, 1, 3, 3])), np.array([3, 2]), np.array([3, 9]))
    array([9, 7])
    """
    rising, sums = counts
    # How many of the largest are cut.
    cut = np.minimum(lines, len(rising) - np.searchsorted(rising, cap, side="left"))
    total: Ints = cut * cap + sums[lines] - sums[cut]
    return total


def band(width: Ints, a: Ints, b: Ints) -> Ints:
    """Give the most pairs of `a` rows and `b` columns on `width` diagonals.

    With m = min(a, b) it is the sum over k < m of min(width, a + b - 1 - 2 k).

    Notes
    -----
    A diagonal is the pairs with one value of i - j. Take rows i_1 < ... < i_a and columns
    j_1 > ... > j_b (falling). Along any path of cells (p, q) on which p or q rises at each step,
    i_p - j_q rises strictly, so each cell lies on another diagonal, and at most `width` cells of
    the path are pairs. The a x b cells are cut into m such paths: path k is row k from column 1
    to b - k, and from there column b - k down to row a (k counted from 0, rows from k + 1). It has
    a + b - 1 - 2 k cells. Adding up gives the bound.

    It is reached by rows and columns without gaps where the diagonals have none and run through
    the middle: a x b has a + b - 1 - 2 k diagonals of more than k cells, so the `width` longest
    hold just that many.

    Examples
    --------
    Three rows and three columns on the 3 middle diagonals: 2 + 3 + 2. On 5: all 9.

    >>> band(np.array([3, 5]), np.array([3, 3]), np.array([3, 3]))
    array([7, 9])
    """
    m = np.minimum(a, b)
    # The first t paths have at least `width` cells, and the rest fewer.
    t = np.clip((a + b - 1 - width) // 2 + 1, 0, m)
    total: Ints = t * width + (m - t) * (a + b - m - t)
    return total
