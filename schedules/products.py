"""The two blocked products of unfused attention: scores from Q and K, outputs from P and V.

Each product is cut into tiles of its result. A tile's sums stay while the operands pass, `depth`
terms at a time; where the depth is everything, a sum is finished as soon as it is begun, so no
tile is held and one operand's block stays instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pebble.affine import Affine
from pebble.attention import Attention
from pebble.errors import SizeError
from pebble.problem import require
from pebble.tapes import Block, Index, Tape
from schedules.blocks import distinct, largest
from schedules.steps import add_products, add_values, normalise


@dataclass(frozen=True)
class Tiles:
    """How a product is cut.

    Parameters
    ----------
    rows, cols : int
        The shape of a tile of the result.
    depth : int
        Terms of each sum that are added before the next operands are loaded.
    resident : bool
        Whether the second operand (K, or V) is loaded once and stays.
    """

    rows: int
    cols: int
    depth: int
    resident: bool = False


Take = Callable[[Affine, Index], None]


def told(p: Attention, s: Tiles, v: Tiles) -> dict[str, int]:
    """Give the sizes of both products' tiles, as far as the problem fills them.

    An operand that stays is told by 1 under "keeps_K" or "keeps_V".
    """
    sizes = {
        "rows": min(s.rows, p.n),
        "cols": min(s.cols, p.keys),
        "depth": min(s.depth, p.d),
        "value_rows": min(v.rows, p.n),
        "value_cols": min(v.cols, p.value_dim),
    }
    if s.resident:
        sizes["keeps_K"] = 1
    if v.resident:
        sizes["keeps_V"] = 1
    return sizes


def one_block(name: str, problem: Attention) -> Attention:
    """Give the problem with all keys in one block of an online softmax.

    Raises
    ------
    ProblemError, SizeError
        It is no forward pass; it has several.
    """
    require(name, problem, "forward")
    if not problem.online:
        return problem
    if problem.block is not None and problem.block < problem.keys:
        raise SizeError(
            f"{name}: block = {problem.block}: it takes the maximum over whole rows, "
            f"so the block must be None or keys = {problem.keys}"
        )
    return problem.with_block(problem.keys)


def scores(tape: Tape, p: Attention, t: Tiles, take: Take, close: Callable[[Block], None]) -> None:
    """Form all scores; `take` is told of each as it is finished, `close` of each block of rows."""
    Q, K = p.graph["Q"], p.graph["K"]
    if t.resident:
        tape.load(K[:, :])
    for I in tape.blocks(p.n, t.rows):
        for J in tape.blocks(p.keys, t.cols):
            for G in tape.blocks(p.d, t.depth):
                tape.load(Q[I, G])
                for j in tape.each(J):
                    if not t.resident:
                        tape.load(K[j, G])
                    for i in tape.each(I):
                        add_products(tape, p, i, j, G)
                        if G.last:
                            take(i, j)
                    if not t.resident:
                        tape.delete(K[j, G])
                tape.delete(Q[I, G])
        close(I)
    if t.resident:
        tape.delete(K[:, :])


def scores_io(p: Attention, t: Tiles) -> int:
    """Give the words of Q and K that `scores` loads."""
    q = p.n * p.d * -(-p.keys // t.cols)
    k = p.keys * p.d * (1 if t.resident else -(-p.n // t.rows))
    return q + k


def scores_peak(p: Attention, t: Tiles, running: int, alone: int) -> int:
    """Give the most words that `scores` holds, exactly.

    Parameters
    ----------
    running : int
        Words that a row of queries keeps from its first score to the end of the block of rows.
    alone : int
        The most words held for a pair while its finished score is taken, but for the running ones.
    """
    rows, cols, depth = min(t.rows, p.n), min(t.cols, p.keys), min(t.depth, p.d)
    operands = rows * depth + (p.keys * p.d if t.resident else depth)
    if depth == p.d:
        kept = rows * running if p.keys > 1 else 0
        return operands + kept + max(3 if p.d > 1 else 1, alone)
    tiles, ragged = -(-p.keys // cols), p.keys % cols or cols
    first = rows * cols
    later = rows * (cols if tiles > 2 or ragged == cols else ragged) + rows * running
    return operands + 2 + (max(first, later) if tiles > 1 else first)


def values(
    tape: Tape,
    p: Attention,
    t: Tiles,
    open: Callable[[Block], None],
    weigh: Callable[[Affine, Index, Block], None],
    drop: Callable[[Affine, Index, Block], None],
    close: Callable[[Block], None],
) -> None:
    """Form all outputs.

    For a block of rows, `open` and `close` bring and take away what it needs throughout; for a
    pair and a block of columns, `weigh` makes P[i,j] red and `drop` takes it away.
    """
    V = p.graph["V"]
    if t.resident:
        tape.load(V[:, :])
    for I in tape.blocks(p.n, t.rows):
        open(I)
        for C in tape.blocks(p.value_dim, t.cols):
            for G in tape.blocks(p.keys, t.depth):
                if not t.resident:
                    tape.load(V[G, C])
                for j in tape.each(G):
                    for i in tape.each(I):
                        weigh(i, j, C)
                        add_values(tape, p, i, j, C)
                        drop(i, j, C)
                if not t.resident:
                    tape.delete(V[G, C])
            for i in tape.each(I):
                normalise(tape, p, i, C)
        close(I)
    if t.resident:
        tape.delete(V[:, :])


def column_passes(p: Attention, t: Tiles) -> int:
    """Give how often each weight P[i,j] is used for a block of columns of V."""
    return -(-p.value_dim // t.cols)


def values_io(p: Attention, t: Tiles) -> int:
    """Give the words of V that `values` loads."""
    return p.keys * p.value_dim * (1 if t.resident else -(-p.n // t.rows))


def values_peak(p: Attention, t: Tiles, running: int) -> int:
    """Give the most words that `values` holds, exactly.

    Parameters
    ----------
    running : int
        Words that a row of queries keeps throughout: its row sum, and the maximum.
    """
    rows, cols, depth = min(t.rows, p.n), min(t.cols, p.value_dim), min(t.depth, p.keys)
    kept = rows * cols + rows * running
    operands = p.keys * p.value_dim if t.resident else depth * cols
    if p.keys == 1:
        return kept + operands + (1 if t.resident else 0)
    return kept + operands + 3


def best_scores(p: Attention, peak: Callable[[Tiles], int], cache: int) -> Tiles | None:
    """Choose how to cut the product of Q and K: the fewest words that fit, None if none do."""
    panel = largest(p.n, lambda rows: peak(Tiles(rows, p.keys, p.d)) <= cache)
    found = [Tiles(1, p.keys, p.d, True), Tiles(panel, p.keys, p.d)]
    for rows in distinct(p.n, cache):
        cols = largest(min(p.keys, cache), lambda cols, r=rows: peak(Tiles(r, cols, 1)) <= cache)  # type: ignore[misc]
        found.append(Tiles(rows, cols, 1))
    return _cheapest(found, peak, lambda t: scores_io(p, t), cache)


def best_values(
    p: Attention, peak: Callable[[Tiles], int], io: Callable[[Tiles], int], cache: int
) -> Tiles | None:
    """Choose how to cut the product of P and V: the fewest words that fit, None if none do."""
    found = [Tiles(1, p.value_dim, p.keys, True)]
    for cols in distinct(p.value_dim, cache):
        rows = largest(min(p.n, cache), lambda rows, c=cols: peak(Tiles(rows, c, 1)) <= cache)  # type: ignore[misc]
        found.append(Tiles(rows, cols, 1))
    return _cheapest(found, peak, io, cache)


def _cheapest(
    found: list[Tiles], peak: Callable[[Tiles], int], io: Callable[[Tiles], int], cache: int
) -> Tiles | None:
    fitting = [t for t in found if t.rows and t.cols and peak(t) <= cache]
    return min(fitting, key=lambda t: (io(t), peak(t)), default=None)
