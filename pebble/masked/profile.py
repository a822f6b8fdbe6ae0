"""Counts of a stretch of moves: words, and how many are red relative to those before it.

Numbers may be arrays: one entry for each block or tile that the stretch is repeated for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pebble.errors import ProgramError
from pebble.masked.places import Size
from pebble.rules import Op

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Profile:
    """What a stretch of moves counts to.

    Parameters
    ----------
    words : sequence of int or array
        Loads, stores, computes and deletes.
    net : int or array
        Red words after it, less those before.
    peak : int or array
        The most red words within it, less those before; at least 0.

    Examples
    --------
    A word is loaded and another computed, then both are dropped; three times over.

    >>> once = Profile().move(Op.LOAD, 1).move(Op.COMPUTE, 1).move(Op.DELETE, 2)
    >>> once.times(3)
    Profile(words=(3, 0, 3, 6), net=0, peak=2)
    """

    words: tuple[Size, Size, Size, Size] = (0, 0, 0, 0)
    net: Size = 0
    peak: Size = 0

    def move(self, op: Op, size: Size) -> Profile:
        """Give the profile with a move of some words at its end."""
        words = list(self.words)
        words[op] = words[op] + size
        net = self.net
        if op in (Op.LOAD, Op.COMPUTE):
            net = net + size
        elif op is Op.DELETE:
            net = net - size
        return Profile(tuple(words), net, _larger(self.peak, net))  # type: ignore[arg-type]

    def then(self, other: Profile) -> Profile:
        """Give the profile of this, then another stretch."""
        words = tuple(a + b for a, b in zip(self.words, other.words, strict=True))
        peak = _larger(self.peak, self.net + other.peak)
        return Profile(words, self.net + other.net, peak)  # type: ignore[arg-type]

    def times(self, count: Size) -> Profile:
        """Give the profile of as many rounds; of nothing, where that is 0."""
        words = tuple(part * count for part in self.words)
        climb = self.peak + (count - 1) * _larger(self.net, 0)
        if isinstance(count, int):
            return Profile(words, self.net * count, climb if count else 0)  # type: ignore[arg-type]
        return Profile(words, self.net * count, np.where(count > 0, climb, 0))  # type: ignore[arg-type]

    def in_turn(self, starts: Ints) -> Profile:
        """Give the profiles of runs of entries, one entry after the other.

        Parameters
        ----------
        starts : array of int
            Where each run starts among the entries; one more entry at the end.

        Examples
        --------
        >>> steps = Profile((0, 0, 0, 0), np.array([2, -2, 1]), np.array([3, 0, 4]))
        >>> run = steps.in_turn(np.array([0, 3, 3]))
        >>> run.net, run.peak
        (array([1, 0]), array([4, 0]))
        """
        size = int(starts[-1])
        net = np.broadcast_to(self.net, size)
        before = _prefix(net)
        runs = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        heights = before[:-1] - before[starts[:-1]][runs] + np.broadcast_to(self.peak, size)
        peak = np.zeros(len(starts) - 1, np.int64)
        np.maximum.at(peak, runs, heights)
        words = tuple(_sums(np.broadcast_to(part, size), starts) for part in self.words)
        return Profile(words, _sums(net, starts), peak)  # type: ignore[arg-type]

    def total_of(self, count: int) -> Profile:
        """Give the profile of all of `count` entries in turn, as numbers."""
        whole = self.in_turn(np.array([0, count]))
        words = tuple(int(part[0]) for part in whole.words)  # type: ignore[index]
        return Profile(words, int(whole.net[0]), int(whole.peak[0]))  # type: ignore[arg-type, index]


def mixed(classes: Sequence[Profile], counts: Sequence[Ints], last: Ints) -> Profile:
    """Give the profile of pairs of several classes in some order, tile by tile.

    Pairs of all classes do the same; or a pair adds words to what is red only where a row or a
    column starts. Then what is red never falls from pair to pair, and the peak is at the last pair
    of some class.

    Parameters
    ----------
    classes : sequence of Profile
        What a pair of each class does: ``row_first + 2 * column_first``.
    counts : sequence of array
        How many pairs of each class a tile has.
    last : array of int, of shape (tiles, 4, 2)
        See `pebble.masked.tiles.TileCounts`.

    Raises
    ------
    ProgramError
        The pairs add words otherwise.

    Examples
    --------
    In the one tile a row starts, which keeps two words, and then another pair comes, which needs
    three for a while.

    >>> start, later = Profile().move(Op.COMPUTE, 2), Profile().move(Op.COMPUTE, 3)
    >>> classes = [later.move(Op.DELETE, 3), start, later.move(Op.DELETE, 3), start]
    >>> one, none = np.array([1]), np.array([0])
    >>> last = np.array([[[1, 0], [1, 0], [-1, -1], [-1, -1]]])
    >>> mixed(classes, [one, one, none, none], last).peak
    array([5])
    """
    if all(each == classes[0] for each in classes):
        return classes[0].times(sum(counts))
    plain, row, column, both = (each.net for each in classes)
    if plain != 0 or row < 0 or column < 0 or both != row + column:
        raise ProgramError(
            "a step over pairs keeps words elsewhere than where a row or a column starts: "
            f"{plain} at others, {row} at a row's, {column} at a column's, {both} at both"
        )
    sums: list[Size] = [0, 0, 0, 0]
    net: Size = 0
    peak: Size = 0
    for kind, (step, count) in enumerate(zip(classes, counts, strict=True)):
        sums = [total + count * words for total, words in zip(sums, step.words, strict=True)]
        net = net + count * step.net
        after = last[:, kind, 0] * row + last[:, kind, 1] * column
        here = np.where(last[:, kind, 0] >= 0, after - step.net + step.peak, 0)
        peak = _larger(peak, here)
    return Profile(tuple(sums), net, peak)  # type: ignore[arg-type]


def _larger(a: Size, b: Size) -> Size:
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else np.maximum(a, b)


def _prefix(values: Ints) -> Ints:
    sums = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=sums[1:])
    return sums


def _sums(values: Ints, starts: Ints) -> Ints:
    sums = _prefix(values)
    return sums[starts[1:]] - sums[starts[:-1]]
