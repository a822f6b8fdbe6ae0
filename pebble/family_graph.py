"""Graphs made of families: vertices are numbered family by family, and no edge is stored."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pebble.errors import GraphError
from pebble.families import Family, Function, Tile
from pebble.moves import Label, Vertex
from pebble.rules import HONG_KUNG, Rules
from pebble.tapes import Block

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FamilyGraph:
    """A graph made of families; it stores no edges.

    Parameters
    ----------
    families : sequence of Family
        In an order such that vertices are numbered family by family, row-major.
    output_tiles : sequence of Tile
        The outputs: tiles at fixed indices, of different families. Where a chain has one term
        only, its last sum is another name of that term, and the term is the output.

    Examples
    --------
    >>> from pebble.families import chain, family, inputs
    >>> a, b = inputs("a", 2), inputs("b", 2)
    >>> x = family("x", (2,), Function.PRODUCT, lambda k: (a[k], b[k]))
    >>> s = chain("s", (2,), 0, Function.SUM, lambda k: x[k], lambda k: (s[k - 1], x[k]))
    >>> dot = FamilyGraph((a, b, x, s), (s[1],))
    >>> len(dot), [str(dot.label(v)) for v in dot.outputs]
    (7, ['s[1]'])
    >>> [str(dot.label(u)) for u in dot.predecessors(dot.vertex(Vertex("s", (1,))))]
    ['x[0]', 'x[1]']
    """

    families: tuple[Family, ...]
    output_tiles: tuple[Tile, ...]
    bases: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        bases = [0]
        for part in self.families:
            bases.append(bases[-1] + part.size)
        object.__setattr__(self, "bases", tuple(bases))

    @property
    def size(self) -> int:
        """The number of vertices; unlike ``len``, it may exceed 64 bits."""
        return self.bases[-1]

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, name: str) -> Family:
        """Give a family by its name."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Family]:
        return {part.name: part for part in self.families}

    @cached_property
    def _number(self) -> dict[str, int]:
        return {part.name: at for at, part in enumerate(self.families)}

    def base(self, name: str) -> int:
        """Give the number of the first vertex of a family."""
        return self.bases[self._number[name]]

    def _locate(self, v: int) -> tuple[Family, tuple[int, ...]]:
        if not 0 <= v < len(self):
            raise GraphError([f"vertex {v} does not exist: vertices are 0 to {len(self) - 1}"])
        at = bisect_right(self.bases, v) - 1
        part, rest, index = self.families[at], v - self.bases[at], []
        for extent in reversed(part.owned):
            rest, i = divmod(rest, extent)
            index.append(i)
        index.reverse()
        index[part.axis] += part.low
        return part, tuple(index)

    def label(self, v: int) -> Vertex:
        """Give the label of a vertex."""
        part, index = self._locate(v)
        return Vertex(part.name, index)

    def vertex(self, label: Label) -> int:
        """Give the number of the vertex with a label (or with another name of it).

        Raises
        ------
        GraphError
            There is no such vertex.
        """
        named = isinstance(label, tuple) and len(label) == 2 and isinstance(label[0], str)
        part = self._by_name.get(label[0]) if named else None  # type: ignore[index]
        piece = part.piece(label[1]) if part is not None else None  # type: ignore[index]
        if part is None or piece is None:
            raise GraphError([f"vertex {label} does not exist: families are {self._shapes}"])
        index: tuple[int, ...] = label[1]  # type: ignore[index]
        if piece.function is Function.SAME:
            return self._unit(piece.rule(*index)[0])
        at = 0
        for axis, (i, extent) in enumerate(zip(index, part.owned, strict=True)):
            at = at * extent + i - (part.low if axis == part.axis else 0)
        return self.base(part.name) + at

    @property
    def _shapes(self) -> str:
        return ", ".join(
            f"{part.name}[{','.join(map(str, part.shape))}]" for part in self.families if len(part)
        )

    def _unit(self, tile: Tile) -> int:
        return self.vertex(Vertex(tile.family.name, tuple(s.constant for s in tile.starts)))

    def predecessors(self, v: int) -> tuple[int, ...]:
        """Give the predecessors of a vertex, each once."""
        part, index = self._locate(v)
        piece = part.piece(index)
        assert piece is not None
        return tuple(dict.fromkeys(self._unit(tile) for tile in piece.rule(*index)))

    def family(self, v: int) -> str:
        """Give the name of the family of a vertex."""
        return self._locate(v)[0].name

    def is_input(self, v: int) -> bool:
        """Say whether a vertex is an input."""
        return self._locate(v)[0].is_input

    def is_output(self, v: int) -> bool:
        """Say whether a vertex is an output."""
        part, index = self._locate(v)
        return any(
            all(low <= i < low + size for i, low, size in zip(index, lows, tile.sizes, strict=True))
            for tile, lows in self._ends
            if tile.family is part
        )

    @cached_property
    def _ends(self) -> tuple[tuple[Tile, tuple[int, ...]], ...]:
        """The outputs as tiles of vertices of their families' own, and where those start."""
        tiles = [own_tile(tile) for tile in self.output_tiles]
        return tuple((tile, tuple(start.constant for start in tile.starts)) for tile in tiles)

    def numbers(self, tile: Tile) -> Ints:
        """Give the numbers of the vertices of a tile at fixed indices, in the tile's shape."""
        tile = own_tile(tile)
        found = np.full((1,) * len(tile.sizes), self.base(tile.family.name), np.int64)
        stride = 1
        for axis in reversed(range(len(tile.sizes))):
            low = tile.family.low if axis == tile.family.axis else 0
            along = np.arange(tile.sizes[axis], dtype=np.int64) + tile.starts[axis].constant - low
            found = found + stride * along.reshape(-1, *(1,) * (len(tile.sizes) - axis - 1))
            stride *= tile.family.owned[axis]
        return found

    @property
    def operand_numbers(self) -> Mapping[str, Ints]:
        """The vertex numbers of each input array, in its shape."""
        return {p.name: self.numbers(p[(slice(None),) * len(p.shape)]) for p in self._inputs}

    @property
    def output_numbers(self) -> Mapping[str, Ints]:
        """The vertex numbers of each output array, in its shape; the ends of chains have no axis
        for the chain.
        """
        found = {}
        for tile in self.output_tiles:
            part, numbers = tile.family, self.numbers(tile)
            if part.pieces[0].function is Function.SAME:
                shape = [size for axis, size in enumerate(tile.sizes) if axis != part.axis]
                numbers = numbers.reshape(shape)
            found[part.name] = numbers
        return found

    @property
    def _inputs(self) -> list[Family]:
        return [p for p in self.families if p.is_input]

    def _ids(self, parts: list[Family]) -> list[int]:
        return [v for p in parts for v in range(self.base(p.name), self.base(p.name) + len(p))]

    @property
    def inputs(self) -> list[int]:
        """The inputs, ascending."""
        return self._ids(self._inputs)

    @property
    def outputs(self) -> list[int]:
        """The outputs, ascending."""
        ids = [self.numbers(tile).ravel() for tile, _ in self._ends]
        return [int(v) for v in np.sort(np.concatenate(ids))] if ids else []

    def least_cache(self, rules: Rules = HONG_KUNG) -> int:
        """Give the least cache in which the graph can be pebbled: a vertex and what it needs."""
        least = 1
        for part in self.families:
            own = rules.weight(part.name, None)
            for piece in part.pieces:
                if piece.function is Function.SAME:
                    continue
                index = [piece.start if axis == part.axis else 0 for axis in range(len(part.shape))]
                v = self.vertex(Vertex(part.name, tuple(index))) if len(part) else -1
                taken = (
                    [rules.weight(self.family(u), None) for u in self.predecessors(v)]
                    if len(part)
                    else []
                )
                least = max(least, sum(taken) + own)
        return least

    @cached_property
    def input_words(self) -> int:
        """The number of inputs."""
        return sum(p.size for p in self._inputs)

    @cached_property
    def output_words(self) -> int:
        """The number of outputs."""
        return sum(tile.size for tile in self.output_tiles)


def own_tile(tile: Tile) -> Tile:
    """Follow other names: give the tile of vertices that are a family's own.

    Raises
    ------
    GraphError
        The tile is in part another family's.

    Examples
    --------
    >>> from pebble.families import chain, inputs
    >>> a = inputs("a", 4, 2)
    >>> s = chain("s", (4, 2), 0, Function.SUM, lambda i, c: a[i, c], lambda i, c: (s[i - 1, c],))
    >>> own_tile(s[0, :]), own_tile(s[3, :])
    (a[0, 0:+2], s[3, 0:+2])
    """
    part = tile.family
    start = tile.starts[part.axis].constant
    if start >= part.low:
        return tile
    if tile.sizes[part.axis] != 1:
        raise GraphError([f"{tile!r}: its first vertices are other names, so it is no one box"])
    keys = [Block(*box, False, False) for box in zip(tile.starts, tile.sizes, strict=True)]
    (named,) = part.pieces[0].rule(*keys)
    return own_tile(named)
