"""Saha and Ye's algorithm for a small cache in the game with partial computation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pebble.attention import Attention
from pebble.checks import positive
from pebble.errors import SizeError
from pebble.moves import Vertex
from pebble.partial.attention import PartialSchedule, Pen, cost_of, plain, too_small
from pebble.partial.moves import PartialMove


@dataclass(frozen=True)
class Tile:
    """A tile of scores or of outputs.

    Parameters
    ----------
    rows, cols : int
        Its shape.
    held : bool
        Of scores: whether Q[I,:] stays while the keys pass one by one; then `cols` is 1.
    resident : bool
        Whether all of K (of outputs: V) stays, and the rows pass one by one.

    Examples
    --------
    >>> Tile(3, 2)
    Tile(rows=3, cols=2, held=False, resident=False)
    """

    rows: int
    cols: int
    held: bool = False
    resident: bool = False


def small_cache(
    problem: Attention, cache: int, *, rows: int | None = None, cols: int | None = None
) -> PartialSchedule:
    """Give the algorithm for a small cache: square tiles of the weights, written once.

    Phase 1 forms the weights P = exp(Q K^T), a tile of rows x cols at a time: of each column of Q
    and K the words of the tile's rows are held, and those of K pass one at a time. It writes the
    weights, keeps the row sums, and writes them. Phase 2 forms a tile of outputs of value_rows x
    value_cols from the weights, one at a time, and the words of one V[j,:]. For keys > 1 and d > 1,
    with several tiles a row, all of `cols`::

        loads   n d ceil(keys / cols) + keys d ceil(n / rows)
                + n keys ceil(value_dim / value_cols) + keys value_dim ceil(n / value_rows) + n
        stores  n keys + n + n value_dim  (+ n with the logsumexp)
        peak    the larger of rows cols + 2 rows + 2 and
                value_rows value_cols + value_rows + value_cols + 2

    Where Q[I,:] stays while the keys pass (keeps_Q = 1), Q is loaded once, and the first peak is
    rows (d + 1) + min(rows, d) + 2: there is a score for each row, or K[j,:] is held. Where all of
    K stays (keeps_K = 1), both are loaded once, and it is keys d + d + 3. Where all of V stays
    (keeps_V = 1), V is loaded once, and the second peak is keys value_dim + value_dim + 3.

    Parameters
    ----------
    problem : Attention
        What to compute: the forward pass with plain softmax.
    cache : int
        M, in words.
    rows, cols : int, optional
        The shape of a tile of P, and of O (with at most value_dim columns); both or none. Default:
        those that move the fewest words.

    Raises
    ------
    ProblemError, SizeError
        Another problem; a cache that is too small; sizes that are not positive or don't fit.

    References
    ----------
    Saha and Ye, "The I/O complexity of attention, or how optimal is FlashAttention?", ICML 2024,
    algorithm 1; Papp, Sobczyk, Yzelman, SPAA 2025, arXiv 2506.10854 (the game).

    Examples
    --------
    >>> schedule = small_cache(Attention(n=4, d=2), cache=10, rows=2, cols=2)
    >>> schedule.cost  # phase 1 loads 16 + 16; phase 2 loads 16 + 16 + 4
    Cost(loads=68, stores=28, computes=240, deletes=184, peak=10)
    >>> schedule.replay() == schedule.cost
    True
    """
    p = plain("small_cache", problem)
    cache = positive("cache", cache, "the words of fast memory")
    if (rows is None) != (cols is None):
        raise SizeError(f"rows = {rows}, cols = {cols}: give both, or none")
    if rows is not None and cols is not None:
        rows = positive("rows", rows, "the rows of a tile")
        cols = positive("cols", cols, "the columns of a tile")
        s = Tile(min(rows, p.n), min(cols, p.keys))
        v = Tile(min(rows, p.n), min(cols, p.value_dim))
        peak = max(scores_peak(p, s), values_peak(p, v))
        if peak > cache:
            raise SizeError(
                f"rows = {rows}, cols = {cols} take {peak} words, more than cache = {cache}"
            )
    else:
        least = max(scores_peak(p, Tile(1, 1)), values_peak(p, Tile(1, 1)))
        if cache < least:
            raise too_small("small_cache", cache, least)
        s, v = _best_scores(p, cache), _best_values(p, cache)
        peak = max(scores_peak(p, s), values_peak(p, v))
    many = p.keys > 1
    loads = _scores_io(p, s) + _values_io(p, v) + p.n
    stores = p.pairs + (p.n if many else 0) + p.n * p.value_dim + (p.n if p.logsumexp else 0)
    cost = cost_of(p, loads, stores, peak)
    blocks = {"rows": s.rows, "cols": s.cols, "value_rows": v.rows, "value_cols": v.cols}
    kept = {"keeps_Q": s.held, "keeps_K": s.resident, "keeps_V": v.resident}
    blocks |= {name: 1 for name, keeps in kept.items() if keeps}
    return PartialSchedule("small_cache", p, cache, blocks, cost, lambda: _write(p, s, v))


def scores_peak(p: Attention, t: Tile) -> int:
    """Give the most words that phase 1 holds, exactly.

    Examples
    --------
    >>> scores_peak(Attention(n=8, d=4), Tile(2, 3))  # 6 scores, 2 of Q, 1 of K, 1 of x, 2 of l
    12
    """
    if t.resident:
        return p.keys * p.d + p.d + (3 if p.keys > 1 else 2)
    if t.held and t.rows > p.d:
        return t.rows * p.d + p.d + 2 + (t.rows if p.keys > 1 else 0)
    operands = t.rows * (p.d if t.held else 1) + (2 if p.d > 1 else 1)
    tiles, ragged = -(-p.keys // t.cols), p.keys % t.cols or t.cols
    peak = t.rows * t.cols + operands
    if tiles > 1:  # then the row sums are there
        widest = ragged if tiles == 2 else t.cols
        peak = max(peak, t.rows * widest + operands + t.rows)
    return peak


def values_peak(p: Attention, t: Tile) -> int:
    """Give the most words that phase 2 holds, exactly.

    Examples
    --------
    >>> values_peak(Attention(n=8, d=4), Tile(2, 3))  # 6 sums, 3 of V, 2 of l, 1 of P, 1 of y
    13
    """
    operands = p.keys * p.value_dim if t.resident else t.cols
    # Two for a weight and a product; with one key, one for a quotient, when only all of V is there.
    more = 2 if p.keys > 1 else int(t.resident)
    return t.rows * t.cols + t.rows + operands + more


def _scores_io(p: Attention, t: Tile) -> int:
    passes = 1 if t.held else -(-p.keys // t.cols)
    return p.n * p.d * passes + p.keys * p.d * (1 if t.resident else -(-p.n // t.rows))


def _values_io(p: Attention, t: Tile) -> int:
    weights = p.pairs * -(-p.value_dim // t.cols) if p.keys > 1 else 0
    return weights + p.keys * p.value_dim * (1 if t.resident else -(-p.n // t.rows))


def _best_scores(p: Attention, cache: int) -> Tile:
    found = [Tile(1, p.keys, resident=True)]
    for rows in _even(p.n):
        found.append(Tile(rows, 1, held=True))
        found += [Tile(rows, cols) for cols in _even(p.keys)]
    fitting = [t for t in found if scores_peak(p, t) <= cache]
    return min(fitting, key=lambda t: (_scores_io(p, t), scores_peak(p, t)))


def _best_values(p: Attention, cache: int) -> Tile:
    found = [Tile(1, p.value_dim, resident=True)]
    found += [Tile(rows, cols) for rows in _even(p.n) for cols in _even(p.value_dim)]
    fitting = [t for t in found if values_peak(p, t) <= cache]
    return min(fitting, key=lambda t: (_values_io(p, t), values_peak(p, t)))


def _even(size: int) -> list[int]:
    # The least blocks that cut a size into so many: no other is better, since only their number
    # counts.
    found = [1]
    while found[-1] < size:
        found.append(-(-size // (-(-size // found[-1]) - 1)))
    return found


def _write(p: Attention, s: Tile, v: Tile) -> Iterator[PartialMove]:
    yield from write_scores(p, s)
    yield from write_values(p, v)


def _cut(size: int, block: int) -> list[range]:
    return [range(start, min(start + block, size)) for start in range(0, size, block)]


def _words(name: str, rows: range, cols: range) -> list[Vertex]:
    return [Vertex(name, (row, col)) for row in rows for col in cols]


def write_scores(p: Attention, t: Tile) -> Iterator[PartialMove]:
    """Give the moves of phase 1."""
    pen, all_k = Pen(p), range(p.d)
    resident = _words("K", range(p.keys), all_k) if t.resident else []
    by_row = t.held and t.rows > p.d  # K[j,:] takes less than a score for each row
    yield from map(pen.load, resident)
    for I in _cut(p.n, t.rows):
        held = _words("Q", I, all_k) if t.held or t.resident else []
        yield from map(pen.load, held)
        for J in _cut(p.keys, 1 if t.resident else t.cols):
            if by_row:
                yield from _pass_key(pen, I, J.start)
                continue
            for k in all_k:
                column = [] if held else _words("Q", I, range(k, k + 1))
                yield from map(pen.load, column)
                for j in J:
                    word = [] if resident else [Vertex("K", (j, k))]
                    yield from map(pen.load, word)
                    for i in I:
                        yield from pen.add_product(i, j, k)
                    yield from map(pen.delete, word)
                yield from map(pen.delete, column)
            for i in I:
                for j in J:
                    yield from _write_weight(pen, i, j)
        yield from map(pen.delete, held)
        if p.keys > 1:  # else the weight is the row sum
            yield from (pen.store(pen.row_sum(i)) for i in I)
            yield from (pen.delete(pen.row_sum(i)) for i in I)
    yield from map(pen.delete, resident)


def _pass_key(pen: Pen, I: range, j: int) -> Iterator[PartialMove]:
    words = _words("K", range(j, j + 1), range(pen.p.d))
    yield from map(pen.load, words)
    for i in I:
        for k in range(pen.p.d):
            yield from pen.add_product(i, j, k)
        yield from _write_weight(pen, i, j)
    yield from map(pen.delete, words)


def _write_weight(pen: Pen, i: int, j: int) -> Iterator[PartialMove]:
    P = Vertex("P", (i, j))
    yield from pen.weigh(i, j)
    yield pen.store(P)
    yield from pen.add_weight(i, j)
    yield pen.delete(P)


def write_values(p: Attention, t: Tile) -> Iterator[PartialMove]:
    """Give the moves of phase 2."""
    pen = Pen(p)
    resident = _words("V", range(p.keys), range(p.value_dim)) if t.resident else []
    yield from map(pen.load, resident)
    for I in _cut(p.n, t.rows):
        yield from (pen.load(pen.row_sum(i)) for i in I)
        for C in _cut(p.value_dim, t.cols):
            for j in range(p.keys):
                words = [] if resident else _words("V", range(j, j + 1), C)
                yield from map(pen.load, words)
                for i in I:
                    if p.keys > 1:
                        yield pen.load(Vertex("P", (i, j)))
                    for c in C:
                        yield from pen.add_value(i, j, c)
                    if p.keys > 1:
                        yield pen.delete(Vertex("P", (i, j)))
                yield from map(pen.delete, words)
            for i in I:
                for c in C:
                    yield from pen.divide(i, c)
        for i in I:
            yield from pen.close(i)
    yield from map(pen.delete, resident)
