"""Unfused attention under a mask: the weights go to slow memory between two blocked products."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt

import numpy as np

from pebble.attention import Attention
from pebble.checks import positive
from pebble.masked.places import Inner, Pair
from pebble.masked.schedule import MaskedSchedule
from pebble.masked.tapes import Tape, Tile, counted
from pebble.masked.tiles import count_tiles
from schedules.blocks import need, rule_or_sizes, too_small
from schedules.masked.settle import schedule, sizes_up_to
from schedules.masked.steps import add_products

Asked = tuple[str, int | None, int | None]


@dataclass(frozen=True)
class Shape:
    """How the two products are cut.

    Parameters
    ----------
    rows, cols, depth : int
        A tile of the weights, and the terms of each score that are added at once. Where that is
        all of them, the queries of a block stay while its keys pass.
    value_rows, value_cols : int
        A tile of the outputs.
    """

    rows: int
    cols: int
    depth: int
    value_rows: int
    value_cols: int


def small_cache(problem: Attention, cache: int, asked: Asked) -> MaskedSchedule:
    """Give the algorithm for a small cache: only the weights are written in between."""
    return _settle("small_cache", problem, cache, asked)


def standard(problem: Attention, cache: int, asked: Asked) -> MaskedSchedule:
    """Give unfused attention: scores are written and read, then weights."""
    return _settle("standard", problem, cache, asked)


def _settle(name: str, p: Attention, cache: int, asked: Asked) -> MaskedSchedule:
    cache = positive("cache", cache, "the words of fast memory")
    rule, rows, cols = rule_or_sizes(*asked)
    if rule == "best":
        found = _best(name, p, cache)
        least = max(_peaks(name, p, Shape(1, 1, 1, 1, 1)))
        if found is None:
            raise too_small(name, cache, least)
        return _schedule(name, p, cache, found)
    if rule == "published":
        side = isqrt(cache // 4) if name == "small_cache" else 1
        if name == "small_cache":
            shape = Shape(side, side, min(side, p.d), side, min(side, p.value_dim))
        else:
            shape = Shape(1, p.keys, p.d, 1, p.value_dim)
    else:
        shape = Shape(rows, cols, 1, rows, min(cols, p.value_dim))
    shape = Shape(
        min(shape.rows, p.n), min(shape.cols, p.keys), shape.depth,
        min(shape.value_rows, p.n), shape.value_cols,
    )  # fmt: skip
    peak = max(_peaks(name, p, shape))
    need(f"{name}, {rule} blocks", peak, cache, f"rows = {shape.rows}, cols = {shape.cols}")
    return _schedule(name, p, cache, shape)


def _best(name: str, p: Attention, cache: int) -> Shape | None:
    """Choose the two products apart: of those that fit, the one of the fewest words."""
    scores = [Shape(rows, cols, 1, 1, 1) for rows, cols in _squares(cache, p.n, p.keys)]
    panel = (cache - p.d - 3) // p.d
    scores += [Shape(rows, 1, p.d, 1, 1) for rows in sizes_up_to(p.n, panel)]
    values = [Shape(1, 1, 1, *sizes) for sizes in _squares(cache, p.n, p.value_dim)]
    one = Shape(1, 1, 1, 1, 1)
    fitting = [s for s in [*scores, one] if _peaks(name, p, s)[0] <= cache]
    chosen = [v for v in [*values, one] if _peaks(name, p, v)[1] <= cache]
    if not fitting or not chosen:
        return None
    s = min(fitting, key=lambda s: _scores_io(p, s))
    v = min(chosen, key=lambda v: _values_io(p, v))
    return Shape(s.rows, s.cols, s.depth, v.value_rows, v.value_cols)


def _squares(cache: int, rows: int, cols: int) -> list[tuple[int, int]]:
    """Give shapes that hold about a cache: near a square, a narrow one where cols are few."""
    side = max(1, isqrt(cache))
    wide = sizes_up_to(cols, side)
    # rows cols + 2 (rows + cols) + 3 words
    return [
        (height, width)
        for width in wide
        for height in sizes_up_to(rows, (cache - 2 * width - 3) // (width + 2))
    ]


def _scores_io(p: Attention, t: Shape) -> int:
    """Give the words of Q and K that the first product loads."""
    tiles = count_tiles(p.graph.mask, t.rows, t.cols)
    queries = p.graph.mask.touched_rows if t.depth == p.d else tiles.total(tiles.queries)
    return (queries + tiles.total(tiles.keys)) * p.d


def _values_io(p: Attention, t: Shape) -> int:
    """Give the words of P and V that the second product loads."""
    tiles = count_tiles(p.graph.mask, t.value_rows, 1)
    passes = -(-p.value_dim // t.value_cols)
    alone = int(np.count_nonzero(p.graph.mask.row_counts == 1))  # a row's only weight stays
    return tiles.total(tiles.keys) * p.value_dim + p.pairs * passes - alone * (passes - 1)


def _peaks(name: str, p: Attention, t: Shape) -> tuple[int, int]:
    """Give the most words that each of the two products holds."""
    first = counted(p.graph, lambda tape: _scores(tape, p, t, name == "standard")).peak
    second = counted(p.graph, lambda tape: _values(tape, p, t)).peak
    return int(first), int(second)


def _schedule(name: str, p: Attention, cache: int, t: Shape) -> MaskedSchedule:
    spills = name == "standard"
    loads = _scores_io(p, t) + _values_io(p, t) + (p.pairs if spills else 0)
    stores = p.pairs * (2 if spills else 1) + p.graph.mask.touched_rows * (
        p.value_dim + p.logsumexp
    )

    def write(tape: Tape) -> Iterator[None]:
        yield from _scores(tape, p, t, spills)
        if spills:
            yield from _exponentials(tape, p, t)
        yield from _values(tape, p, t)

    return schedule(name, p, cache, dict(vars(t)), (loads, stores), write)


def _chunks(width: int, size: int) -> Iterator[Inner]:
    """Run over the indices of a dimension, some at a time."""
    for start in range(0, width, size):
        part = np.arange(start, min(width, start + size)).reshape(1, 1, -1)
        yield Inner(part.size, start == 0, part)


def _scores(tape: Tape, p: Attention, t: Shape, spills: bool) -> Iterator[None]:
    """Form the scores, S = Q K^T, and write them; or the weights, P = exp(S)."""
    Q, K = p.graph["Q"], p.graph["K"]
    stays = t.depth == p.d
    for I in tape.query_blocks(t.rows, t.cols):
        if stays:
            tape.load(Q[I.members])
        for T in tape.tiles(I):
            if stays:
                tape.load(K[T.keys])
                for ij in tape.pairs(T):
                    add_products(tape, p, ij)
                tape.delete(K[T.keys])
            else:
                for G in _chunks(p.d, t.depth):
                    tape.load(Q[T.queries, G], K[T.keys, G])
                    _add_terms(tape, p, T, G)
                    tape.delete(Q[T.queries, G], K[T.keys, G])
            _write_out(tape, p, T, spills)
        if stays:
            tape.delete(Q[I.members])
        yield


def _add_terms(tape: Tape, p: Attention, T: Tile, G: Inner) -> None:
    x, s = p.graph["x"], p.graph["s"]
    for ij in tape.pairs(T):
        for k in tape.inner(G.size, int(G.numbers[0, 0, 0])):
            tape.compute(x[ij, k])
            if not k.first:
                tape.compute(s[ij, k])
                tape.delete(x[ij, k], s[ij, k.before])


def _write_out(tape: Tape, p: Attention, T: Tile, spills: bool) -> None:
    s, P = p.graph["s"], p.graph["P"]
    if not spills:
        for ij in tape.pairs(T):
            tape.compute(P[ij])
            tape.delete(s.last[ij])
    found = s.last[T.pairs] if spills else P[T.pairs]
    tape.store(found)
    tape.delete(found)


def _exponentials(tape: Tape, p: Attention, t: Shape) -> Iterator[None]:
    """P = exp(S), read and written."""
    s, P = p.graph["s"], p.graph["P"]
    for I in tape.query_blocks(t.rows, t.cols):
        for T in tape.tiles(I):
            for ij in tape.pairs(T):
                tape.load(s.last[ij])
                tape.compute(P[ij])
                tape.delete(s.last[ij])
                tape.store(P[ij])
                tape.delete(P[ij])
        yield


def _values(tape: Tape, p: Attention, t: Shape) -> Iterator[None]:
    """O = P V / l; the row sums are formed as the weights are first read."""
    V, P, l, o, O = (p.graph[name] for name in ("V", "P", "l", "o", "O"))
    for I in tape.query_blocks(t.value_rows, 1):
        for C in _chunks(p.value_dim, t.value_cols):
            for T in tape.tiles(I):
                # The first weight of a row is its first sum; an only one stays throughout.
                tape.load(V[T.keys, C], P[T.pairs if C.first else T.shared_pairs])
                for ij in tape.pairs(T):
                    _add_values(tape, p, C, ij)
                tape.delete(V[T.keys, C], P[T.later_pairs if C.first else T.shared_pairs])
            for i in tape.each(I.members):
                for c in tape.inner(C.size, int(C.numbers[0, 0, 0])):
                    tape.compute(O[i, c])
                    tape.store(O[i, c])
                    tape.delete(O[i, c], o.last(i, c))
        if p.logsumexp:
            Lse = p.graph["Lse"]
            for i in tape.each(I.members):
                tape.compute(Lse[i])
                tape.store(Lse[i])
                tape.delete(Lse[i])
        tape.delete(l.last(I.members))
        yield


def _add_values(tape: Tape, p: Attention, C: Inner, ij: Pair) -> None:
    y, o, l = p.graph["y"], p.graph["o"], p.graph["l"]
    if C.first and not ij.row_first:
        tape.compute(l[ij])
        tape.delete(l[ij.left])
    for c in tape.inner(C.size, int(C.numbers[0, 0, 0])):
        tape.compute(y[ij, c])
        if not ij.row_first:
            tape.compute(o[ij, c])
            tape.delete(y[ij, c], o[ij.left, c])
