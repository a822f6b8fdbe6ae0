"""Saha and Ye's algorithm for a small cache: square tiles of the weights, written once."""

from __future__ import annotations

from math import isqrt

from pebble.affine import Affine
from pebble.attention import Attention
from pebble.checks import positive
from pebble.cost import Cost
from pebble.errors import SizeError
from pebble.registry import register
from pebble.schedule import Schedule
from pebble.tapes import Block, Index, Tape
from schedules.blocks import need, rule_or_sizes
from schedules.masked.products import small_cache as masked_small_cache
from schedules.products import (
    Tiles,
    best_scores,
    best_values,
    column_passes,
    one_block,
    scores,
    scores_io,
    scores_peak,
    told,
    values,
    values_io,
    values_peak,
)
from schedules.steps import add_weight, store_logsumexp


@register(kinds=("forward", "masked forward"))
def small_cache(
    problem: Attention,
    cache: int,
    *,
    blocks: str = "best",
    rows: int | None = None,
    cols: int | None = None,
) -> Schedule:
    """Give the algorithm for a small cache (SquareTiling) with its tiles.

    Phase 1 forms the weights P = exp(Q K^T), a tile of rows x cols at a time, writes them, and
    keeps the row sums, written per block of rows. Phase 2 forms the outputs a tile at a time from
    P and V. With c = value_cols and keys > 1::

        loads   n d ceil(keys / cols) + keys d ceil(n / rows)
                + n keys ceil(value_dim / c) + keys value_dim ceil(n / value_rows) + n
        stores  n keys + n + n value_dim  (+ n with the logsumexp)
        peak    the larger of phase 1, rows cols + rows depth + depth + rows + 2, and phase 2,
                value_rows c + c + value_rows + 3 (in general `schedules.products` has them)

    The paper's B = floor(sqrt(M / 4)) makes that 4 n^2 d / B + n^2 + n d + 2 n words for
    n = keys, d = value_dim and B dividing both, about 8 n^2 d / sqrt(M). The best blocks take one
    term of each sum at a time, so that a tile has nearly M words: about 4 n^2 d / sqrt(M).

    With the online softmax (one block of all keys) phase 1 writes the scores and the maximum of
    each row instead; phase 2 forms P and the row sum when it first reads a score, and writes P
    where another pass over it follows.

    Under a mask of Z pairs only those are formed, and tiles that are empty are skipped. The row
    sums are formed in phase 2, from the weights as they are first read, which saves 2n words::

        loads   T d + Z ceil(value_dim / c) - z (ceil(value_dim / c) - 1) + K value_dim
        stores  Z + A value_dim  (+ A with the logsumexp)

    where T is the queries and the keys that have a pair in a tile, over all tiles of phase 1 (if
    depth = d, the queries that attend once, and the keys); K is the keys that a block of value_rows
    queries uses, over all blocks; A queries attend to something, z of them to one key.

    Parameters
    ----------
    problem : Attention
        What to compute. An online softmax must have all keys in one block (or leave it open).
    cache : int
        M, in words.
    blocks : {"best", "published"}
        Published: B = floor(sqrt(M / 4)) for rows, cols and depth of both products.
    rows, cols : int, optional
        The shape of a tile of P, and of O (with at most value_dim columns); both or none.

    Raises
    ------
    ProblemError, SizeError, UnknownName
        No forward pass; blocks that overflow the cache; sizes that are not positive; an unknown
        rule; an online softmax in several blocks.

    References
    ----------
    Saha and Ye, "The I/O complexity of attention, or how optimal is FlashAttention?", ICML 2024,
    algorithm 1 and theorem 3.4.

    Examples
    --------
    B = 2 divides n = 4 and d = 2: 4 * 16 * 2 / 2 + 16 + 8 + 8 words.

    >>> import pebble
    >>> small_cache(pebble.Attention(n=4, d=2), cache=16, blocks="published").count().io
    96
    """
    if getattr(problem, "kind", None) == "masked forward":
        return masked_small_cache(problem, cache, (blocks, rows, cols))
    rule, height, width = rule_or_sizes(blocks, rows, cols)
    cache = positive("cache", cache, "the words of fast memory")
    p = one_block("small_cache", problem)
    kept = 2 if p.online else 1

    def s_peak(t: Tiles) -> int:
        return scores_peak(p, t, running=1, alone=1 if p.online and p.keys == 1 else 2)

    def v_peak(t: Tiles) -> int:
        return values_peak(p, t, running=kept)

    def v_io(t: Tiles) -> int:
        return values_io(p, t) + sum(_weights_io(p, t))

    if rule == "best":
        s, v = best_scores(p, s_peak, cache), best_values(p, v_peak, v_io, cache)
        if s is None or v is None:
            one = Tiles(1, 1, 1)
            least = max(min(s_peak(one), s_peak(Tiles(1, p.keys, p.d))), v_peak(one))
            raise SizeError(
                f"small_cache: cache = {cache} is too small; the least that works is {least}"
            )
    elif rule == "published":
        B = max(isqrt(cache // 4), 1)
        s, v = Tiles(B, B, B), Tiles(B, B, B)
    else:
        s, v = Tiles(height, width, 1), Tiles(height, width, 1)
    peak = max(s_peak(s), v_peak(v))
    need(f"small_cache, {rule} blocks", peak, cache, f"rows = {s.rows}, cols = {s.cols}")

    pairs, many = p.pairs, p.keys > 1
    weight_loads, weight_stores = _weights_io(p, v)
    loads = scores_io(p, s) + values_io(p, v) + weight_loads + p.n
    stores = pairs + (p.n if many else 0) + weight_stores + p.n * p.value_dim
    stores += p.n if p.logsumexp else 0
    computes = p.graph.size - p.graph.input_words
    cost = Cost(loads, stores, computes, loads + computes, peak)
    return Schedule(
        "small_cache", p, cache, told(p, s, v), cost, lambda tape: _write(tape, p, s, v)
    )


def _weights_io(p: Attention, v: Tiles) -> tuple[int, int]:
    """Give the loads and stores of scores and weights in phase 2, but for row sums and maxima."""
    passes = column_passes(p, v)
    if p.keys == 1:  # the weight is the row sum, and the score the maximum
        return 0, 0
    return p.pairs * passes, p.pairs if p.online and passes > 1 else 0


def _write(tape: Tape, p: Attention, s: Tiles, v: Tiles) -> None:
    g, last, many = p.graph, p.keys - 1, p.keys > 1
    S, P, l = g["s"], g["P"], g["l"]
    running = g["mx"] if p.online else l
    passes = column_passes(p, v)

    def take_weight(i: Affine, j: Index) -> None:
        tape.compute(P[i, j])
        tape.delete(S[i, j, p.d - 1])
        tape.store(P[i, j])
        add_weight(tape, p, i, j)
        if not j.first or not many:  # P[i,0] is the first row sum
            tape.delete(P[i, j])

    def take_score(i: Affine, j: Index) -> None:
        tape.store(S[i, j, p.d - 1])
        if not j.first:
            tape.compute(running[i, j])
            tape.delete(running[i, j - 1])
        if not j.first or not many:  # the first score is the first maximum
            tape.delete(S[i, j, p.d - 1])

    def close_scores(I: Block) -> None:
        if many:
            tape.store(running[I, last])
            tape.delete(running[I, last])

    scores(tape, p, s, take_score if p.online else take_weight, close_scores)

    def open_rows(I: Block) -> None:
        tape.load(running[I, last])

    def load_weight(i: Affine, j: Index, C: Block) -> None:
        if many:
            tape.load(P[i, j])

    def form_weight(i: Affine, j: Index, C: Block) -> None:
        if not C.first:
            load_weight(i, j, C)
            return
        if many:
            tape.load(S[i, j, p.d - 1])
        tape.compute(P[i, j])
        if many:
            tape.delete(S[i, j, p.d - 1])
            if passes > 1:
                tape.store(P[i, j])
        add_weight(tape, p, i, j)

    def drop_weight(i: Affine, j: Index, C: Block) -> None:
        begins_sum = p.online and C.first and j.first
        if many and not begins_sum:
            tape.delete(P[i, j])

    def close_rows(I: Block) -> None:
        for i in tape.each(I):
            store_logsumexp(tape, p, i)
        tape.delete(l[I, last])
        if p.online:
            tape.delete(running[I, last])

    weigh = form_weight if p.online else load_weight
    values(tape, p, v, open_rows, weigh, drop_weight, close_rows)
