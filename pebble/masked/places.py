"""Where a family's vertices lie under a mask: at queries, at keys, or at pairs that attend.

A place is one of two kinds. A *block* is a set of queries, keys or pairs that is moved at once. A
*loop variable* stands for each of them in turn. The tape that counts needs only how many there are,
and gives places without numbers; the tape that writes moves gives numbers, in arrays of three axes:
what the outer loop runs over, what the inner loop runs over, what is moved at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from pebble.masked.pairs import Pairs

Ints = NDArray[np.int64]
# How many; while counting, one number for each block or tile that is counted at once.
Size = int | Ints


class Space(Enum):
    """What a family has a row of vertices for."""

    QUERIES = "queries"
    ACTIVE = "queries that attend to something"
    KEYS = "keys"
    PAIRS = "pairs"
    ROW_TAIL = "pairs but the first of each query"
    COLUMN_TAIL = "pairs but the first of each key"


@dataclass(frozen=True)
class Place:
    """Some queries, keys or pairs.

    Parameters
    ----------
    space : Space
        What they are.
    size : int or array of int
        How many are moved at once: 1 for a loop variable.
    numbers : array of int, optional
        Which, of shape (1, 1, size), or (rounds, 1, 1) for a loop variable. None while counting.
    """

    space: Space
    size: Size
    numbers: Ints | None = None


@dataclass(frozen=True)
class Pair(Place):
    """A loop variable over pairs, all of one class; or all pairs, where a graph is built.

    Parameters
    ----------
    row_first, column_first : bool
        Whether the key is the first of its query, and the query the first of its key.
    table : Pairs, optional
        What is known of the pairs. None while counting.
    """

    row_first: bool = False
    column_first: bool = False
    table: Pairs | None = None

    def _place(self, space: Space, of: str) -> Place:
        if self.numbers is None or self.table is None:
            return Place(space, self.size)
        found: Ints = getattr(self.table, of)[self.numbers]
        return Place(space, self.size, found)

    @property
    def query(self) -> Place:
        """The query of the pair."""
        return self._place(Space.QUERIES, "queries")

    @property
    def key(self) -> Place:
        """The key of the pair."""
        return self._place(Space.KEYS, "keys")

    @property
    def left(self) -> Place:
        """The pair before it in its row."""
        return self._place(Space.PAIRS, "before_in_row")

    @property
    def above(self) -> Place:
        """The pair before it in its column."""
        return self._place(Space.PAIRS, "before_in_column")


@dataclass(frozen=True)
class Inner:
    """A loop variable over a dimension, or some of its indices at once.

    Parameters
    ----------
    size : int
        How many are moved at once: 1 for a loop variable.
    first : bool
        Whether it is index 0.
    numbers : array of int
        Which, of shape (1, rounds, 1) or (1, 1, size).
    """

    size: int
    first: bool
    numbers: Ints

    @property
    def before(self) -> Inner:
        """The index before it."""
        return Inner(self.size, False, self.numbers - 1)


def chunks(width: int, size: int) -> list[Inner]:
    """Cut the indices of a dimension into pieces of `size`; the last may have fewer.

    Examples
    --------
    >>> [part.numbers.ravel().tolist() for part in chunks(5, 2)]
    [[0, 1], [2, 3], [4]]
    """
    found = []
    for start in range(0, width, size):
        part = np.arange(start, min(width, start + size))
        found.append(Inner(len(part), start == 0, part.reshape(1, 1, -1)))
    return found
