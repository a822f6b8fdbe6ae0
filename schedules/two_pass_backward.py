"""The backward pass in two: rows for dQ, columns for dK and dV, with nothing read and written."""

from __future__ import annotations

from pebble.attention import Attention
from pebble.checks import positive
from pebble.cost import Cost
from pebble.problem import require
from pebble.registry import register
from pebble.schedule import Schedule
from pebble.tapes import Tape
from schedules.backward import (
    COLUMNS,
    ROWS,
    add_delta,
    differentiate,
    pair_computes,
    peak,
)
from schedules.blocks import largest, need, rule_or_sizes, too_small
from schedules.masked.two_pass_backward import two_pass_backward as masked_two_pass_backward


@register(kinds=("backward", "masked backward"))
def two_pass_backward(
    problem: Attention,
    cache: int,
    *,
    rows: int | None = None,
    cols: int | None = None,
) -> Schedule:
    """Give the backward pass in two passes, each output summed in cache from first to last.

    Pass 1 keeps Q, dO, Lse and dQ of a block of rows, reads O once to form D and writes D, and lets
    K and V stream past. Pass 2 keeps K, V, dK and dV of a block of keys and lets Q, dO, Lse and D
    stream past. With e = value_dim::

        loads   n (d + 2 e + 1) + keys (d + e) ceil(n / rows)
                + keys (d + e) + n (d + e + 2) ceil(keys / cols)
        stores  n + n d + keys (d + e)
        peak    the larger of pass 1, rows (2 d + e + 2) + d + e + 4, and pass 2,
                2 cols (d + e) + d + e + 6   (n, keys > 1 and e > 1)

    The peak in general is `schedules.backward.peak`. About 14 n^2 d^2 / M words for n = keys,
    d = e: less than the 16 of FlashAttention-2, for 7 products instead of 5, since the scores and
    dP are formed in both passes. That is n keys (2 d + 2 e + 1) computes more.

    Under a mask, what streams past a block is what has a pair there::

        loads   A (d + 2 e + 1) + U (d + e) + B (d + e) + T (d + e + 2)
        stores  A + A d + B (d + e)

    where A queries attend to something and B keys are attended to, U is the keys that a block of
    rows uses, over all blocks of pass 1, and T the queries that use a block of keys, over all of
    pass 2. Z (2 d + 2 e + 1) computes are more than need be, for Z pairs. The peak is counted, and
    is never more than without the mask. Of the best blocks a few sizes are tried: the largest, the
    most even, multiples of 16, 64.

    Parameters
    ----------
    problem : Attention
        What to compute: a backward pass.
    cache : int
        M, in words.
    rows, cols : int, optional
        Queries in a block of pass 1 and keys in a block of pass 2; both or none. The best blocks
        are as large as fit.

    Raises
    ------
    ProblemError, SizeError
        No backward pass (or with saved weights); blocks that overflow the cache; sizes that are
        not positive.

    References
    ----------
    This package; the order of pass 2 is that of Dao, arXiv 2307.08691, algorithm 2.

    Examples
    --------
    Pass 1: 3 rows of 8 words, a key of 4, and 4. Pass 2: 3 keys of 8 words, a row of 6, and 4. So
    6 * 7 + 24 * 2 + 24 + 6 * 6 * 2 words are read and 6 + 12 + 24 written.

    >>> import pebble
    >>> problem = pebble.Attention(n=6, d=2, direction="backward")
    >>> schedule = two_pass_backward(problem, cache=34)
    >>> dict(schedule.blocks), schedule.count().loads, schedule.count().stores
    ({'rows': 3, 'cols': 3}, 186, 42)
    """
    if getattr(problem, "kind", None) == "masked backward":
        return masked_two_pass_backward(problem, cache, rows, cols)
    require("two_pass_backward", problem, "backward")
    rule, height, width = rule_or_sizes("best", rows, cols)
    cache = positive("cache", cache, "the words of fast memory")
    p = problem
    if rule == "best":
        least = max(peak(p, 1, 1, ROWS), peak(p, 1, 1, COLUMNS))
        if cache < least:
            raise too_small("two_pass_backward", cache, least)
        height = largest(p.n, lambda rows: peak(p, rows, 1, ROWS) <= cache)
        width = largest(p.keys, lambda cols: peak(p, 1, cols, COLUMNS) <= cache)
    height, width = min(height, p.n), min(width, p.keys)
    most = max(peak(p, height, 1, ROWS), peak(p, 1, width, COLUMNS))
    need(f"two_pass_backward, {rule} blocks", most, cache, f"rows = {height}, cols = {width}")

    n, m, d, e = p.n, p.keys, p.d, p.value_dim
    loads = n * (d + 2 * e + 1) + m * (d + e) * -(-n // height)
    loads += m * (d + e) + n * (d + e + 2) * -(-m // width)
    stores = n + n * d + m * (d + e)
    computes = p.graph.size - p.graph.input_words + p.pairs * pair_computes(p)
    cost = Cost(loads, stores, computes, loads + computes, most)

    def write(tape: Tape) -> None:
        write_rows(tape, p, height)
        write_columns(tape, p, width)

    sizes = {"rows": height, "cols": width}
    return Schedule("two_pass_backward", p, cache, sizes, cost, write)


def write_rows(tape: Tape, p: Attention, rows: int) -> None:
    """Pass 1: D and dQ."""
    g, e, last = p.graph, p.value_dim, p.keys - 1
    Q, K, V, dO, Lse, D, dQ = (g[name] for name in ("Q", "K", "V", "dO", "Lse", "D", "dQ"))
    for I in tape.blocks(p.n, rows):
        tape.load(Q[I, :], dO[I, :], Lse[I])
        for i in tape.each(I):
            add_delta(tape, p, i)
        tape.store(D[I, e - 1])
        for J in tape.blocks(p.keys, 1):
            tape.load(K[J, :], V[J, :])
            differentiate(tape, p, I, J, ROWS)
            tape.delete(K[J, :], V[J, :])
        tape.store(dQ[I, last, :])
        tape.delete(dQ[I, last, :], Q[I, :], dO[I, :], Lse[I], D[I, e - 1])


def write_columns(tape: Tape, p: Attention, cols: int) -> None:
    """Pass 2: dK and dV."""
    g, e, last = p.graph, p.value_dim, p.n - 1
    Q, K, V, dO, Lse, D = (g[name] for name in ("Q", "K", "V", "dO", "Lse", "D"))
    dK, dV = g["dK"], g["dV"]
    for J in tape.blocks(p.keys, cols):
        tape.load(K[J, :], V[J, :])
        for I in tape.blocks(p.n, 1):
            tape.load(Q[I, :], dO[I, :], Lse[I], D[I, e - 1])
            differentiate(tape, p, I, J, COLUMNS)
            tape.delete(Q[I, :], dO[I, :], Lse[I], D[I, e - 1])
        tape.store(dK[last, J, :], dV[last, J, :])
        tape.delete(dK[last, J, :], dV[last, J, :], K[J, :], V[J, :])
