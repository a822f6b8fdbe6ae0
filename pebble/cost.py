"""What a schedule costs."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.rules import Rules


@dataclass(frozen=True)
class Cost:
    """What a schedule moves and does, as exact integers.

    Parameters
    ----------
    loads, stores : int
        Words moved from slow to fast memory, and back.
    computes, deletes : int
        Moves of those kinds (a slide counts as a compute).
    peak : int
        The most words that were red at once.

    Examples
    --------
    >>> first = Cost(loads=2, stores=1, computes=1, deletes=3, peak=3)
    >>> first.io, first.moves
    (3, 7)
    >>> first + first
    Cost(loads=4, stores=2, computes=2, deletes=6, peak=3)
    """

    loads: int = 0
    stores: int = 0
    computes: int = 0
    deletes: int = 0
    peak: int = 0

    @property
    def io(self) -> int:
        """Q: loads + stores, in words."""
        return self.loads + self.stores

    @property
    def moves(self) -> int:
        """The number of moves, when every vertex weighs one word."""
        return self.loads + self.stores + self.computes + self.deletes

    def total(self, rules: Rules) -> int:
        """The I/O and what the rules charge for the computes."""
        return self.io + rules.compute_cost * self.computes

    def __add__(self, other: Cost) -> Cost:
        """Add the cost of a game played after this one, from a cache that this one left empty."""
        return Cost(
            self.loads + other.loads,
            self.stores + other.stores,
            self.computes + other.computes,
            self.deletes + other.deletes,
            max(self.peak, other.peak),
        )
