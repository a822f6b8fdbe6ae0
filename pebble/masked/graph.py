"""A graph under a mask: its vertices are counted from the mask, its edges made when asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pebble.errors import GraphError
from pebble.graph import Graph
from pebble.masked.family import ChainSums, Family, Sums
from pebble.masked.pairs import Pairs
from pebble.masked.places import Inner, Pair, Place, Space
from pebble.masks import Mask
from pebble.moves import Label, Vertex
from pebble.rules import HONG_KUNG, Rules

Ints = NDArray[np.int64]

NO_VERTEX = -1


def places(mask: Mask, space: Space) -> int:
    """Give the number of places in a space.

    Examples
    --------
    >>> from pebble.masks import causal
    >>> [places(causal(3), space) for space in (Space.KEYS, Space.PAIRS, Space.ROW_TAIL)]
    [3, 6, 3]
    """
    return {
        Space.QUERIES: mask.n,
        Space.ACTIVE: mask.touched_rows,
        Space.KEYS: mask.keys,
        Space.PAIRS: mask.pairs,
        Space.ROW_TAIL: mask.pairs - mask.touched_rows,
        Space.COLUMN_TAIL: mask.pairs - mask.touched_columns,
    }[space]


@dataclass(frozen=True)
class Output:
    """An output array.

    Parameters
    ----------
    name : str
        Its name.
    words : int
        How many outputs there are in it.
    numbers : callable
        Gives the vertex numbers in the array's shape, `NO_VERTEX` where the array has a zero
        that is not computed.
    """

    name: str
    words: int
    numbers: Callable[[], Ints]


@dataclass(frozen=True, eq=False)
class MaskedGraph:
    """A computation over the pairs of a mask; `pebble.masked.builder` makes it.

    Inputs that nothing is computed from are vertices too: a schedule may load them in vain.

    Parameters
    ----------
    table : Pairs
        What is known of each pair. Its arrays are as long as there are pairs.
    families : sequence of Family
        In the order in which vertices are numbered.
    sums : mapping of str to Sums or ChainSums
        The sums, by name.
    output_arrays : sequence of Output
        The outputs.
    """

    table: Pairs
    families: tuple[Family, ...]
    sums: Mapping[str, Sums | ChainSums]
    output_arrays: tuple[Output, ...]

    @property
    def mask(self) -> Mask:
        """Which pairs there are."""
        return self.table.mask

    @cached_property
    def bases(self) -> list[int]:
        """The first vertex of each family, and the number of vertices."""
        sizes = [places(self.mask, part.space) * part.width for part in self.families]
        return [0, *accumulate(sizes)]

    @cached_property
    def _named(self) -> dict[str, Family]:
        return {part.name: part for part in self.families}

    @property
    def size(self) -> int:
        """The number of vertices; unlike ``len``, it may exceed 64 bits."""
        return self.bases[-1]

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, name: str) -> Family | Sums | ChainSums:
        """Give a family, or sums, by name."""
        return self.sums[name] if name in self.sums else self._named[name]

    @property
    def input_words(self) -> int:
        """The number of inputs."""
        return sum(places(self.mask, f.space) * f.width for f in self.families if f.is_input)

    @property
    def output_words(self) -> int:
        """The number of outputs."""
        return sum(output.words for output in self.output_arrays)

    def _every(self, space: Space) -> Place:
        """Give all places of a space, as a loop variable runs over them."""
        if space in (Space.QUERIES, Space.KEYS):
            return Place(space, 1, np.arange(places(self.mask, space)).reshape(-1, 1, 1))
        table = self.table
        if space is Space.ACTIVE:
            return Place(Space.QUERIES, 1, table.active.reshape(-1, 1, 1))
        members = np.arange(self.mask.pairs)
        if space is not Space.PAIRS:
            members = table.later_in_row if space is Space.ROW_TAIL else table.later_in_column
        return Pair(Space.PAIRS, 1, members.reshape(-1, 1, 1), table=table)

    @cached_property
    def edges(self) -> tuple[Ints, Ints]:
        """Where the predecessors of each vertex start, and the predecessors, vertex by vertex."""
        degrees, tails = [], []
        for part in self.families:
            count = places(self.mask, part.space) * part.width
            found = self._tails(part) if count else np.zeros((0, 0), np.int64)
            degrees.append(np.full(count, found.shape[1], np.int64))
            tails.append(found.ravel())
        starts = np.zeros(self.size + 1, np.int64)
        np.cumsum(np.concatenate(degrees), out=starts[1:])
        return starts, np.concatenate(tails)

    def _tails(self, part: Family) -> Ints:
        place = self._every(part.space)
        k = Inner(1, False, np.arange(part.start, part.start + part.width).reshape(1, -1, 1))
        rows = [cells.numbers for cells in part.rule(place, k)]
        shape = (places(self.mask, part.space), part.width)
        columns = [np.broadcast_to(row[..., 0], shape).ravel() for row in rows if row is not None]
        if not columns:
            return np.zeros((shape[0] * shape[1], 0), np.int64)
        return np.stack(columns, axis=1)

    @cached_property
    def functions(self) -> Ints:
        """What each vertex computes, as `Function` numbers it."""
        counts = [places(self.mask, part.space) * part.width for part in self.families]
        return np.repeat([int(part.function) for part in self.families], counts)

    def weights(self, rules: Rules) -> Ints:
        """Give the words that each vertex takes, by families; an empty array when that is 1."""
        if not rules.weights:
            return np.zeros(0, np.int64)
        counts = [places(self.mask, part.space) * part.width for part in self.families]
        return np.repeat([rules.weight(part.name, None) for part in self.families], counts)

    def predecessors(self, v: int) -> tuple[int, ...]:
        """Give the predecessors of a vertex."""
        starts, preds = self.edges
        return tuple(preds[starts[v] : starts[v + 1]].tolist())

    def _locate(self, v: int) -> tuple[Family, int, int]:
        if not 0 <= v < self.size:
            raise GraphError([f"vertex {v} does not exist: vertices are 0 to {self.size - 1}"])
        at = bisect_right(self.bases, v) - 1
        part = self.families[at]
        place, k = divmod(v - part.base, part.width)
        return part, place, k + part.start

    def label(self, v: int) -> Vertex:
        """Give the label of a vertex: its query, key or both, and k."""
        part, place, k = self._locate(v)
        table, index = self.table, [place]
        if part.space is Space.ACTIVE:
            index = [int(table.active[place])]
        elif part.space not in (Space.QUERIES, Space.KEYS):
            if part.space is Space.ROW_TAIL:
                place = int(table.later_in_row[place])
            elif part.space is Space.COLUMN_TAIL:
                place = int(table.later_in_column[place])
            index = [int(table.queries[place]), int(table.keys[place])]
        return Vertex(part.name, (*index, k) if part.indexed else tuple(index))

    def vertex(self, label: Label) -> int:
        """Give the number of the vertex with a label, or with another name of it.

        Raises
        ------
        GraphError
            There is no such vertex.
        """
        found = self._find(label)
        if found is None:
            raise GraphError([f"vertex {label} does not exist under {self.mask!r}"])
        return found

    def _find(self, label: Label) -> int | None:
        if not (isinstance(label, tuple) and len(label) == 2 and isinstance(label[1], tuple)):
            return None
        name: Any = label[0]
        index: tuple[int, ...] = label[1]
        if not all(isinstance(i, int | np.integer) for i in index):
            return None
        known = self.sums.get(name) or self._named.get(name)
        if known is None:
            return None
        part = known if isinstance(known, Family) else known.term
        k = index[-1] if part.indexed else 0
        rest = index[: len(index) - part.indexed]
        if not part.start <= k < part.start + part.width:
            return None
        place = self._place(part.space, rest)
        if place is None:
            return None
        inner = Inner(1, k == 0, np.full((1, 1, 1), k))
        cells = known[place, inner]
        return None if cells.numbers is None else int(cells.numbers[0, 0, 0])

    def _place(self, space: Space, index: Sequence[int]) -> Place | None:
        if space in (Space.PAIRS, Space.ROW_TAIL, Space.COLUMN_TAIL):
            number = self.table.find(*index) if len(index) == 2 else -1
            kind = Space.PAIRS
        else:
            kind = Space.KEYS if space is Space.KEYS else Space.QUERIES
            number = index[0] if len(index) == 1 and 0 <= index[0] < places(self.mask, kind) else -1
            if space is Space.ACTIVE and number >= 0 and not self.mask.row_counts[number]:
                number = -1
        return None if number < 0 else Place(kind, 1, np.full((1, 1, 1), number))

    def family(self, v: int) -> str:
        """Give the name of the family of a vertex."""
        return self._locate(v)[0].name

    def is_input(self, v: int) -> bool:
        """Say whether a vertex is an input."""
        return self._locate(v)[0].is_input

    def is_output(self, v: int) -> bool:
        """Say whether a vertex is an output."""
        at = int(np.searchsorted(self._ends, v))
        return at < len(self._ends) and int(self._ends[at]) == v

    @cached_property
    def _ends(self) -> Ints:
        found = [numbers[numbers >= 0] for numbers in self.output_numbers.values()]
        return np.sort(np.concatenate(found))

    @property
    def inputs(self) -> Sequence[int]:
        """The inputs, ascending."""
        ranges = [
            range(part.base, part.base + places(self.mask, part.space) * part.width)
            for part in self.families
            if part.is_input
        ]
        return [v for part in ranges for v in part]

    @property
    def outputs(self) -> Sequence[int]:
        """The outputs, ascending."""
        return [int(v) for v in self._ends]

    def least_cache(self, rules: Rules = HONG_KUNG) -> int:
        """Give the least cache in which the graph can be pebbled: a vertex and what it needs."""
        return self.to_graph().least_cache(rules)

    def to_graph(self) -> Graph:
        """Give the graph with its edges in arrays, without the inputs that nothing needs."""
        starts, preds = self.edges
        used = np.diff(starts) > 0
        used[preds] = True
        kept = np.flatnonzero(used)
        number = np.cumsum(used) - 1
        degrees = np.diff(starts)[kept]
        rows = np.zeros(len(kept) + 1, np.int64)
        np.cumsum(degrees, out=rows[1:])
        labels = [self.label(int(v)) for v in kept]
        ends = [self.label(v) for v in self.outputs]
        return Graph.from_arrays(rows, number[preds], labels, ends)

    @property
    def operand_numbers(self) -> Mapping[str, Ints]:
        """The vertex numbers of each input array, in its shape."""
        return {
            part.name: np.arange(
                part.base, part.base + places(self.mask, part.space) * part.width
            ).reshape((-1, part.width) if part.indexed else (-1,))
            for part in self.families
            if part.is_input
        }

    @property
    def output_numbers(self) -> Mapping[str, Ints]:
        """The vertex numbers of each output array, in its shape; `NO_VERTEX` is a zero."""
        return {output.name: output.numbers() for output in self.output_arrays}
