"""Building a graph under a mask, family by family."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pebble.families import Function
from pebble.masked.family import Cells, ChainSums, Family, Rule, Sums
from pebble.masked.graph import MaskedGraph, Output, places
from pebble.masked.pairs import Pairs
from pebble.masked.places import Inner, Pair, Place, Space
from pebble.masks import Mask

Ints = NDArray[np.int64]


class Builder:
    """Collects families and outputs; vertices are numbered in the order of the families.

    Parameters
    ----------
    mask : Mask
        Which pairs there are.

    Examples
    --------
    Two queries; the second attends to both keys. One word each.

    >>> from pebble.masks import causal
    >>> build = Builder(causal(2))
    >>> Q, K = build.inputs("Q", Space.QUERIES, 1), build.inputs("K", Space.KEYS, 1)
    >>> x = build.pairs("x", 1, Function.PRODUCT, lambda p, k: (Q[p.query, k], K[p.key, k]))
    >>> row = build.row_sums("row", x)
    >>> graph = build.graph()
    >>> graph.size, [str(graph.label(v)) for v in range(4, graph.size)]
    (8, ['x[0,0,0]', 'x[1,0,0]', 'x[1,1,0]', 'row[1,1,0]'])
    >>> graph.predecessors(7)
    (5, 6)
    """

    def __init__(self, mask: Mask) -> None:
        self.mask, self.table = mask, Pairs(mask)
        self._families: list[Family] = []
        self._size = 0
        self._sums: dict[str, Sums | ChainSums] = {}
        self._outputs: list[Output] = []

    def graph(self) -> MaskedGraph:
        """Give the graph of what was added."""
        return MaskedGraph(self.table, tuple(self._families), self._sums, tuple(self._outputs))

    def _add(
        self,
        name: str,
        space: Space,
        width: int,
        function: Function,
        rule: Rule,
        indexed: bool = True,
        start: int = 0,
    ) -> Family:
        rank = (lambda: self.table.active_place) if space is Space.ACTIVE else None
        made = Family(name, space, width, indexed, function, rule, self._size, start, rank)
        self._families.append(made)
        self._size += places(self.mask, space) * width
        return made

    def inputs(self, name: str, space: Space, width: int, *, indexed: bool = True) -> Family:
        """Add a family of inputs."""
        return self._add(name, space, width, Function.INPUT, lambda *_: (), indexed)

    def pairs(self, name: str, width: int, function: Function, rule: Rule) -> Family:
        """Add a family over all pairs, with an index k more: ``rule(pair, k)``."""
        return self._add(name, Space.PAIRS, width, function, rule)

    def weights(self, name: str, function: Function, rule: Rule) -> Family:
        """Add a family of one vertex a pair: ``rule(pair)``."""
        return self._add(name, Space.PAIRS, 1, function, lambda p, _: rule(p), indexed=False)

    def sums(self, name: str, term: Family) -> Sums:
        """Add the sums of a family over k, a chain in index order at each place."""
        own = None
        if term.width > 1:

            def rule(place: Place, k: Inner) -> tuple[Cells, ...]:
                return made[place, k.before], term[place, k]

            own = self._add(name, term.space, term.width - 1, Function.SUM, rule, start=1)
        made = Sums(term, own)
        self._sums[name] = made
        return made

    def row_sums(self, name: str, term: Family) -> ChainSums:
        """Add the sums of a family along each row, keys ascending."""
        return self._chain(name, term, Space.ROW_TAIL)

    def column_sums(self, name: str, term: Family) -> ChainSums:
        """Add the sums of a family along each column, queries ascending."""
        return self._chain(name, term, Space.COLUMN_TAIL)

    def _chain(self, name: str, term: Family, space: Space) -> ChainSums:
        along_rows = space is Space.ROW_TAIL

        def rule(pair: Pair, k: Inner) -> tuple[Cells, ...]:
            return made[pair.left if along_rows else pair.above, k], term[pair, k]

        own = self._add(name, space, term.width, Function.SUM, rule, term.indexed)
        made = ChainSums(term, own, self.table, along_rows)
        self._sums[name] = made
        return made

    def per_query(
        self, name: str, width: int, function: Function, rule: Rule, *, indexed: bool = True
    ) -> Family:
        """Add a family over the queries that attend to something: ``rule(query, k)``."""
        return self._add(name, Space.ACTIVE, width, function, rule, indexed)

    def output(self, name: str, words: int, numbers: Callable[[], Ints]) -> None:
        """Say what is an output, and how it lies in an array.

        Parameters
        ----------
        name : str
            The array's name.
        words : int
            How many outputs there are in it.
        numbers : callable
            Gives the vertex numbers in the array's shape, `NO_VERTEX` where the array has a zero
            that is not computed.
        """
        self._outputs.append(Output(name, words, numbers))
