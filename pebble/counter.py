"""Counting a program without playing it: loops multiply, nothing is unrolled."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from pebble.cost import Cost
from pebble.families import Function, Tile
from pebble.rules import HONG_KUNG, Op, Rules
from pebble.tapes import Do, Loop, Program


@dataclass(frozen=True)
class _Sum:
    """Counts of a stretch of a program, and its red words relative to those before it."""

    words: tuple[int, int, int, int] = (0, 0, 0, 0)
    net: int = 0
    peak: int = 0

    def then(self, other: _Sum) -> _Sum:
        words = tuple(a + b for a, b in zip(self.words, other.words, strict=True))
        return _Sum(words, self.net + other.net, max(self.peak, self.net + other.peak))  # type: ignore[arg-type]

    def times(self, count: int) -> _Sum:
        words = tuple(count * a for a in self.words)
        climb = max(0, (count - 1) * self.net)
        return _Sum(words, count * self.net, climb + self.peak)  # type: ignore[arg-type]


def count(program: Program, rules: Rules = HONG_KUNG) -> Cost:
    """Add up what a program moves, and the most words that it holds at once.

    It supposes that every move is legal; the referee decides whether that holds.

    Parameters
    ----------
    program : Program
        What a tape recorded.
    rules : Rules
        Only the weights matter.

    Examples
    --------
    >>> from pebble.families import inputs
    >>> from pebble.tapes import Tape
    >>> A, tape = inputs("A", 10**12), Tape()
    >>> for I in tape.blocks(10**12, 7):
    ...     tape.load(A[I])
    ...     tape.delete(A[I])
    >>> count(tape.program)
    Cost(loads=1000000000000, stores=0, computes=0, deletes=1000000000000, peak=7)
    """
    weights = dict(rules.weights)
    total = _body(program, weights, frozenset())
    loads, stores, computes, deletes = total.words
    return Cost(loads, stores, computes, deletes, total.peak)


def _body(body: Program, weights: dict[Hashable, int], zero: frozenset[int]) -> _Sum:
    total = _Sum()
    for node in body:
        total = total.then(_node(node, weights, zero))
    return total


def _node(node: Do | Loop, weights: dict[Hashable, int], zero: frozenset[int]) -> _Sum:
    if isinstance(node, Do):
        return _move(node, weights, zero)
    if weights and _meets_a_name(node.body, node.variable):
        # Where a tile's first vertex is another family's, it may weigh something else: the first
        # round is counted apart.
        first = _body(node.body, weights, zero | {node.variable})
        if node.count == 1:
            return first
        return first.then(_body(node.body, weights, zero).times(node.count - 1))
    return _body(node.body, weights, zero).times(node.count)


def _meets_a_name(body: Program, variable: int) -> bool:
    for node in body:
        if isinstance(node, Loop):
            if _meets_a_name(node.body, variable):
                return True
        elif node.tile.starts[node.tile.family.axis].coefficient(variable):
            return True
    return False


def _move(node: Do, weights: dict[Hashable, int], zero: frozenset[int]) -> _Sum:
    size = node.tile.size
    words = _weigh(node.tile, weights, zero) if weights else size
    if node.op is Op.LOAD:
        taken = 0 if node.again else words
        return _Sum((words, 0, 0, 0), taken, taken)
    if node.op is Op.STORE:
        return _Sum((0, words, 0, 0))
    if node.op is Op.COMPUTE:
        return _Sum((0, 0, size, 0), words, words)
    return _Sum((0, 0, 0, size), -words, 0)


def _weigh(tile: Tile, weights: dict[Hashable, int], zero: frozenset[int]) -> int:
    """Weigh a tile whose loop variables are 0 where `zero` has them, and positive elsewhere."""
    own = weights.get(tile.family.name, 1)
    piece = tile.family.pieces[0]
    if piece.function is not Function.SAME:
        return own * tile.size
    axis = tile.family.axis
    start, extent = tile.starts[axis], tile.sizes[axis]
    if start.constant or any(v not in zero for v, _ in start.terms):
        return own * tile.size
    (target,) = piece.rule(*(0 for _ in tile.starts))
    named = _weigh(target, weights, zero)
    return (named + own * (extent - 1)) * (tile.size // extent)
