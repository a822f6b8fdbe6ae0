"""Families and programs as tables of integers, for the compiled walker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pebble.affine import Affine
from pebble.errors import ProgramError
from pebble.families import Family, Function, Tile
from pebble.family_graph import FamilyGraph
from pebble.rules import Op, Rules
from pebble.tapes import Do, Loop, Program

Words = NDArray[np.int64]

AXES = 3  # the most indices that a family has
PREDS = 3  # the most predecessors that a vertex of a family has

MOVE, LOOP, END, BLOCK = 0, 1, 2, 3


@dataclass(frozen=True)
class GraphTables:
    """The pieces of a family graph as arrays, one row a piece.

    A row says up to which index (exclusive) it holds, the address of a vertex as an affine map of
    its index, its function, and the addresses of its predecessors as affine maps too.
    """

    first: Words  # per family: its first piece
    axis: Words  # per family: the axis it is cut along
    stop: Words  # per piece
    address: Words  # per piece: constant, then one coefficient per axis
    kind: Words  # per piece: function, or -1 for another name
    degree: Words  # per piece: number of predecessors
    preds: Words  # per piece and predecessor: constant, then one coefficient per axis
    weight: Words  # per piece: words of a vertex


Row = tuple[int, ...]


def graph_tables(graph: FamilyGraph, rules: Rules) -> GraphTables:
    """Compile the families of a graph."""
    first: list[int] = []
    rows: list[tuple[int, Row, int, list[Row], str]] = []
    for part in graph.families:
        if len(part.shape) > AXES:
            raise ProgramError(f"{part.name} has {len(part.shape)} indices; the most is {AXES}")
        first.append(len(rows))
        rows.extend(_rows(graph, part))
    first.append(len(rows))
    none = (0,) * (AXES + 1)
    return GraphTables(
        first=_ints(first),
        axis=_ints([part.axis for part in graph.families]),
        stop=_ints([row[0] for row in rows]),
        address=_ints([row[1] for row in rows]),
        kind=_ints([row[2] for row in rows]),
        degree=_ints([len(row[3]) for row in rows]),
        preds=_ints([row[3] + [none] * (PREDS - len(row[3])) for row in rows]),
        weight=_ints([rules.weight(row[4], None) for row in rows]),
    )


def _ints(values: Any) -> Words:
    return np.array(values, np.int64)


def _rows(graph: FamilyGraph, part: Family) -> Iterator[tuple[int, Row, int, list[Row], str]]:
    """Give (stop, address, kind, predecessors, family) of each piece, cut finer where a
    predecessor changes from another name to a vertex of its own."""
    symbols = [Affine(0, ((axis, 1),)) for axis in range(len(part.shape))]
    if part.pieces and part.start:
        yield part.start, (0,) * (AXES + 1), -2, [], part.name
    for piece in part.pieces:
        at = piece.start
        while at < piece.stop:
            stop = piece.stop
            tiles = piece.rule(*symbols)
            maps = []
            for tile in tiles:
                target, until = _resolve(tile, part.axis, at, stop)
                stop = min(stop, until)
                maps.append(target)
            if piece.function is Function.SAME:
                yield stop, _address(graph, maps[0]), -1, [], maps[0].family.name
            else:
                own = Tile(part, tuple(symbols), (1,) * len(symbols))
                rows = list(dict.fromkeys(_address(graph, tile) for tile in maps))
                if len(rows) > PREDS:
                    raise ProgramError(
                        f"{own!r} has {len(rows)} predecessors; the most in a family is {PREDS}"
                    )
                yield stop, _address(graph, own), int(piece.function), rows, part.name
            at = stop


def _resolve(tile: Tile, axis: int, at: int, stop: int) -> tuple[Tile, int]:
    """Follow other names at index `at` of the axis; say up to which index the answer holds."""
    part = tile.family
    along = tile.starts[part.axis]
    slope = along.coefficient(axis)
    if any(v != axis for v, _ in along.terms) and part.low:
        raise ProgramError(f"{tile!r}: an index that crosses names must follow the cut axis")
    if along.constant + slope * at >= part.low or not part.low:
        if slope < 0 and part.low:
            stop = min(stop, (along.constant - part.low) // -slope + 1)
        return tile, stop
    if slope:
        stop = at + 1
        start = Affine(along.constant + slope * at)
        tile = Tile(
            part, (*tile.starts[: part.axis], start, *tile.starts[part.axis + 1 :]), tile.sizes
        )
    (named,) = part.pieces[0].rule(*tile.starts)
    return _resolve(named, axis, at, stop)


def _address(graph: FamilyGraph, tile: Tile) -> Row:
    part = tile.family
    total = Affine(0)
    for axis, (start, extent) in enumerate(zip(tile.starts, part.owned, strict=True)):
        total = total * extent + start - (part.low if axis == part.axis else 0)
    total = total + graph.base(part.name)
    return (total.constant, *(total.coefficient(axis) for axis in range(AXES)))


@dataclass(frozen=True)
class ProgramTables:
    """A program as arrays: loops, ends of loops and moves of single vertices, in order."""

    kind: Words
    depth: Words
    count: Words
    end: Words  # of a LOOP or a BLOCK: the node after its body; of an END: its LOOP
    op: Words
    family: Words
    index: Words  # per node and axis: constant, then one coefficient per loop depth
    depths: int


def program_tables(graph: FamilyGraph, program: Program) -> ProgramTables:
    """Compile a program: tiles become loops over their vertices, all indices are checked.

    Raises
    ------
    ProgramError
        A tile that reaches beyond its family, or computes what has no rule of its own.
    """
    number = {part.name: at for at, part in enumerate(graph.families)}
    nodes: list[list[Any]] = []
    deepest = 0

    def emit(kind: int, depth: int, count: int = 1) -> int:
        nodes.append([kind, depth, count, 0, 0, 0, ()])
        return len(nodes) - 1

    def walk(body: Program, loops: tuple[int, ...], counts: dict[int, int]) -> None:
        nonlocal deepest
        deepest = max(deepest, len(loops))
        straight = -1
        for node in body:
            if isinstance(node, Loop):
                straight = -1
                inner = (*loops, node.variable)
                simple = all(isinstance(n, Do) and n.tile.size == 1 for n in node.body)
                at = emit(BLOCK if simple else LOOP, len(loops), node.count)
                deepest = max(deepest, len(inner))
                if simple:
                    for step in node.body:
                        assert isinstance(step, Do)
                        move(step, inner, {**counts, node.variable: node.count})
                else:
                    walk(node.body, inner, {**counts, node.variable: node.count})
                    end = emit(END, len(loops), node.count)
                    nodes[end][3] = at
                nodes[at][3] = len(nodes)
            elif node.tile.size == 1:
                if straight < 0:
                    straight = emit(BLOCK, len(loops))
                move(node, (*loops, -1), counts)
                nodes[straight][3] = len(nodes)
                deepest = max(deepest, len(loops) + 1)
            else:
                straight = -1
                check(node, counts)
                walk((_unroll(node),), loops, counts)

    def check(step: Do, counts: dict[int, int]) -> None:
        part, tile = step.tile.family, step.tile
        if number.get(part.name) is None or graph.families[number[part.name]] is not part:
            raise ProgramError(f"{step.op} {tile!r}: the graph has no such family")
        for axis, (start, size) in enumerate(zip(tile.starts, tile.sizes, strict=True)):
            low, high = start.range(counts)
            high += size - 1
            least = part.start if axis == part.axis else 0
            if step.op is Op.COMPUTE and axis == part.axis:
                least = part.low
            if low < least or high >= part.shape[axis]:
                raise ProgramError(
                    f"{step.op} {tile!r}: index {low if low < least else high} of axis {axis} is "
                    f"not among {least} to {part.shape[axis] - 1}"
                )

    def move(step: Do, loops: tuple[int, ...], counts: dict[int, int]) -> None:
        check(step, counts)
        index = [(s.constant, *(s.coefficient(v) for v in loops)) for s in step.tile.starts]
        nodes.append([MOVE, len(loops), 1, 0, int(step.op), number[step.tile.family.name], index])

    walk(program, (), {})
    index = np.zeros((len(nodes), AXES, deepest + 2), np.int64)
    for at, node in enumerate(nodes):
        for axis, row in enumerate(node[6]):
            index[at, axis, : len(row)] = row
    columns = _ints([node[:6] for node in nodes]).reshape(-1, 6).T.copy()
    kind, depth, count, end, op, family = columns
    return ProgramTables(kind, depth, count, end, op, family, index, deepest + 1)


def _unroll(node: Do) -> Loop:
    """Write a move of a tile as loops over its vertices. The new variables are negative."""
    starts = list(node.tile.starts)
    spans = [(axis, size) for axis, size in enumerate(node.tile.sizes) if size > 1]
    for axis, _ in spans:
        starts[axis] = starts[axis] + Affine(0, ((-2 - axis, 1),))
    body: Do | Loop = replace(node, tile=Tile(node.tile.family, tuple(starts), (1,) * len(starts)))
    for axis, size in reversed(spans):
        body = Loop(-2 - axis, size, (body,))
    assert isinstance(body, Loop)
    return body
