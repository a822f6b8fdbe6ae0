"""What a lower bound is, and the exact arithmetic that bounds are rounded with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Protocol


class Sizes(Protocol):
    """What a bound reads off attention; `pebble.Attention` is such.

    Each query and each key is in some pair, so that each input is needed and each output computed.
    """

    @property
    def n(self) -> int:
        """Queries."""

    @property
    def keys(self) -> int:
        """Keys."""

    @property
    def d(self) -> int:
        """Dimension of Q and K."""

    @property
    def value_dim(self) -> int:
        """Dimension of V."""

    @property
    def pairs(self) -> int:
        """Pairs of a query and a key that attend."""

    @property
    def logsumexp(self) -> bool:
        """Whether the logarithms of the row sums are outputs too."""


@dataclass(frozen=True)
class Touched:
    """The sizes of what a mask touches: queries that attend, and keys that are attended to.

    A pass under a mask is one on these, with Z pairs: what the mask leaves out is no part of it.

    Parameters
    ----------
    n, keys, d, value_dim, pairs, logsumexp
        As in `Sizes`.

    Examples
    --------
    >>> from pebble.attention import Attention
    >>> from pebble.masks import from_array
    >>> mask = from_array([[True, True, False], [False, False, False]])
    >>> Touched.of(Attention(n=2, d=4, keys=3, mask=mask, empty_rows="zeros"))
    Touched(n=1, keys=2, d=4, value_dim=4, pairs=2, logsumexp=False)
    """

    n: int
    keys: int
    d: int
    value_dim: int
    pairs: int
    logsumexp: bool

    @classmethod
    def of(cls, problem: Sizes) -> Touched:
        """Give what a problem's mask touches."""
        mask = problem.mask  # type: ignore[attr-defined]
        sizes = mask.touched_rows, mask.touched_columns, problem.d, problem.value_dim
        return cls(*sizes, mask.pairs, problem.logsumexp)


@dataclass(frozen=True)
class Bound:
    """A proved lower bound on the I/O.

    Parameters
    ----------
    value : int
        Words that every legal schedule moves, at least.
    name : str
        What the proof counts.
    assumes : str
        The games and graphs that it holds for.
    reference : str
        Where the proof is.
    """

    value: int
    name: str
    assumes: str
    reference: str


def ceil_div(a: int, b: int) -> int:
    """Give a / b rounded up.

    >>> ceil_div(7, 2), ceil_div(8, 2)
    (4, 4)
    """
    return -(-a // b)


def ceil_sqrt(a: int, b: int) -> int:
    """Give the square root of a / b rounded up, for a >= 0 and b > 0.

    The least k with k^2 >= a / b is the least with k^2 >= ceil(a / b).

    >>> ceil_sqrt(9, 4), ceil_sqrt(16, 4), ceil_sqrt(0, 5)
    (2, 2, 0)
    """
    whole = ceil_div(a, b)
    return isqrt(whole - 1) + 1 if whole else 0


def below(holds: Callable[[int], bool], guess: int) -> int:
    """Give the largest integer >= 0 for which a property holds that fails from some point on.

    Parameters
    ----------
    holds : callable
        True up to the answer and False beyond; it need not hold anywhere.
    guess : int
        Where the search starts; a good one makes it quick.

    >>> below(lambda r: r**3 < 1000, guess=10)
    9
    """
    if not holds(0):
        return 0
    low, step = max(guess, 0), 1
    while low and not holds(low):
        low, step = max(low - step, 0), 2 * step
    high, step = low + 1, 1
    while holds(high):
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
