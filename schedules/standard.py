"""Unfused attention: the scores are written, read, exponentiated, written and read again."""

from __future__ import annotations

from pebble.affine import Affine
from pebble.attention import Attention
from pebble.checks import positive
from pebble.cost import Cost
from pebble.errors import SizeError
from pebble.registry import register
from pebble.schedule import Schedule
from pebble.tapes import Block, Index, Tape, whole
from schedules.blocks import need, rule_or_sizes
from schedules.masked.products import standard as masked_standard
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
def standard(
    problem: Attention,
    cache: int,
    *,
    blocks: str = "best",
    rows: int | None = None,
    cols: int | None = None,
) -> Schedule:
    """Give unfused attention: S = Q K^T, P = exp(S), O = P V / l, each in a pass of its own.

    Each product is blocked; the row sums are formed while P is read. With c = value_cols and
    keys > 1::

        loads   n d ceil(keys / cols) + keys d ceil(n / rows)
                + n keys + n keys ceil(value_dim / c) + keys value_dim ceil(n / value_rows)
        stores  2 n keys + n value_dim  (+ n with the logsumexp)

    where an operand that stays in cache is loaded once. When each is, and n = keys,
    d = value_dim, that is 4 n^2 + 4 n d. The peak is that of the larger product, as in
    `schedules.products`, at least 2.

    With the online softmax (one block of all keys) the middle pass finds the maximum of each row
    first; where a row of scores does not fit (keys + 2 words), it reads the row twice, n keys
    words more. With the logsumexp, the maxima are written and read, 2 n words more.

    Under a mask of Z pairs only those are formed and moved: it is `small_cache` with the scores
    written, Z words, and read, Z words.

    Parameters
    ----------
    problem : Attention
        What to compute. An online softmax must have all keys in one block (or leave it open).
    cache : int
        M, in words.
    blocks : {"best", "published"}
        Published: K, and later V, stay in cache, which the count Theta(n d + n^2) of the paper
        supposes.
    rows, cols : int, optional
        The shape of a tile of S, and of O (with at most value_dim columns); both or none.

    Raises
    ------
    ProblemError, SizeError, UnknownName
        No forward pass; blocks that overflow the cache; sizes that are not positive; an unknown
        rule; an online softmax in several blocks.

    References
    ----------
    Dao et al., "FlashAttention: fast and memory-efficient exact attention with IO-awareness",
    arXiv 2205.14135, algorithm 0 and theorem 2.

    Examples
    --------
    >>> import pebble
    >>> standard(pebble.Attention(n=8, d=2), cache=64).count().io  # 4 * 64 + 4 * 16
    320
    """
    if getattr(problem, "kind", None) == "masked forward":
        return masked_standard(problem, cache, (blocks, rows, cols))
    rule, height, width = rule_or_sizes(blocks, rows, cols)
    cache = positive("cache", cache, "the words of fast memory")
    p = one_block("standard", problem)

    def s_peak(t: Tiles) -> int:
        return scores_peak(p, t, running=0, alone=1)

    def v_peak(t: Tiles) -> int:
        return values_peak(p, t, running=1)

    def weight_loads(t: Tiles) -> int:
        return p.pairs * column_passes(p, t) if p.keys > 1 else p.n

    if rule == "best":
        s = best_scores(p, s_peak, cache)
        v = best_values(p, v_peak, lambda t: values_io(p, t) + weight_loads(t), cache)
        least = softmax_peak(p, 1)
        if s is None or v is None or cache < least:
            one = Tiles(1, 1, 1)
            least = max(least, min(s_peak(one), s_peak(Tiles(1, p.keys, p.d))), v_peak(one))
            raise SizeError(
                f"standard: cache = {cache} is too small; the least that works is {least}"
            )
    elif rule == "published":
        s, v = Tiles(1, p.keys, p.d, True), Tiles(1, p.value_dim, p.keys, True)
    else:
        s, v = Tiles(height, width, 1), Tiles(height, width, 1)
    peak = max(s_peak(s), v_peak(v), softmax_peak(p, cache))
    need(f"standard, {rule} blocks", peak, cache, f"rows = {s.rows}, cols = {s.cols}")

    row_twice = p.online and not _row_fits(p, cache)
    maxima = p.n if p.online and p.logsumexp else 0
    loads = scores_io(p, s) + p.pairs * (2 if row_twice else 1)
    loads += weight_loads(v) + values_io(p, v) + maxima
    stores = 2 * p.pairs + p.n * p.value_dim + (p.n if p.logsumexp else 0)
    stores += maxima if p.keys > 1 else 0
    computes = p.graph.size - p.graph.input_words
    cost = Cost(loads, stores, computes, loads + computes, peak)

    def write(tape: Tape) -> None:
        write_scores(tape, p, s)
        write_softmax(tape, p, cache)
        write_values(tape, p, v)

    return Schedule("standard", p, cache, told(p, s, v), cost, write)


def _row_fits(p: Attention, cache: int) -> bool:
    return p.keys == 1 or p.keys + 2 <= cache


def softmax_peak(p: Attention, cache: int) -> int:
    """Give the most words that the middle pass holds in a cache."""
    if not p.online or p.keys == 1:
        return 2
    return p.keys + 2 if _row_fits(p, cache) else 3


def write_scores(tape: Tape, p: Attention, t: Tiles) -> None:
    """S = Q K^T, written."""
    S = p.graph["s"]

    def take(i: Affine, j: Index) -> None:
        tape.store(S[i, j, p.d - 1])
        tape.delete(S[i, j, p.d - 1])

    scores(tape, p, t, take, lambda I: None)


def write_softmax(tape: Tape, p: Attention, cache: int) -> None:
    """P = exp(S), read and written; online after the maximum of the row was found."""
    S, P, d, last = p.graph["s"], p.graph["P"], p.d, p.keys - 1
    stays = p.online and _row_fits(p, cache)
    for i in tape.each(p.n):
        if stays:
            tape.load(S[i, :, d - 1])
        if p.online:
            _find_maximum(tape, p, i, stays)
        for j in tape.each(p.keys):
            if not stays:
                tape.load(S[i, j, d - 1])
            tape.compute(P[i, j])
            if not (p.online and last == 0):  # else the score is the maximum
                tape.delete(S[i, j, d - 1])
            tape.store(P[i, j])
            tape.delete(P[i, j])
        if p.online:
            mx = p.graph["mx"]
            if p.logsumexp and last:
                tape.store(mx[i, last])
            tape.delete(mx[i, last])


def _find_maximum(tape: Tape, p: Attention, i: Affine, stays: bool) -> None:
    """Leave mx[i,keys-1] red; the scores stay red, or pass one by one."""
    S, mx, d = p.graph["s"], p.graph["mx"], p.d
    if stays:  # mx[i,0] is the first score, which stays too
        if p.keys > 1:
            tape.compute(mx[i, 1])
        for j in tape.each(whole(p.keys).drop(2)):
            tape.compute(mx[i, j])
            tape.delete(mx[i, j - 1])
    else:
        tape.load(S[i, 0, d - 1])
        for j in tape.each(whole(p.keys).drop(1)):
            tape.load(S[i, j, d - 1])
            tape.compute(mx[i, j])
            tape.delete(S[i, j, d - 1], mx[i, j - 1])


def write_values(tape: Tape, p: Attention, t: Tiles) -> None:
    """O = P V / l, the row sums formed in the first pass over P."""
    P, l, last, many = p.graph["P"], p.graph["l"], p.keys - 1, p.keys > 1

    def weigh(i: Affine, j: Index, C: Block) -> None:
        if many or C.first:
            tape.load(P[i, j])
        if C.first:
            add_weight(tape, p, i, j)

    def drop(i: Affine, j: Index, C: Block) -> None:
        if many and not (C.first and j.first):  # P[i,0] is the first row sum
            tape.delete(P[i, j])

    def close(I: Block) -> None:
        for i in tape.each(I):
            maximum = [p.graph["mx"][i, last]] if p.online and p.logsumexp else []
            tape.load(*maximum)
            store_logsumexp(tape, p, i)
            tape.delete(l[i, last], *maximum)

    values(tape, p, t, lambda I: None, weigh, drop, close)
