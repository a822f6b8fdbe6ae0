"""FlashAttention's backward pass: key blocks outside, O read and D formed anew at each."""

from __future__ import annotations

from pebble.attention import Attention
from pebble.cost import Cost
from pebble.registry import register
from pebble.schedule import Schedule
from pebble.tapes import Tape
from schedules.backward import EVERY, add_delta, blocks_by_columns, differentiate, peak
from schedules.masked.flash_backward import flash1_backward as masked_flash1_backward


@register(kinds=("backward", "masked backward"))
def flash1_backward(
    problem: Attention,
    cache: int,
    *,
    blocks: str = "best",
    rows: int | None = None,
    cols: int | None = None,
) -> Schedule:
    """Give FlashAttention's backward pass with its blocks.

    Keys, values and their gradients stay for a block. At each of the T = ceil(keys / cols) blocks
    every query passes with dO, O, Lse and the dQ summed so far, read but at the first block and
    written at each; D is formed anew. With e = value_dim::

        loads   keys (d + e) + T n (d + 2 e + 1) + (T - 1) n d
        stores  T n d + keys (d + e)
        peak    2 cols (d + e) + rows (2 d + e + 2) + 4   (n, keys > 1 and e > 1)

    The peak in general is `schedules.backward.peak`. The best blocks take one row: about
    20 n^2 d^2 / M words for n = keys, d = e. D is computed T times.

    The paper counts T (5 n d + 2 n) + 4 n d words, and 3 n d to write zeros first: it keeps the row
    sum and the maximum apart, where the logsumexp is one word, and reads zeros at the first block.

    Under a mask, tiles that are empty are skipped. Of the others Q, dO and Lse are loaded whole, as
    kernels do; D is formed, and the dQ so far read and written, for the queries alone that have a
    pair in the tile, since others need not have them::

        loads   B (d + e) + W (d + e + 1) + T e + (T - A) d
        stores  T d + B (d + e)

    where A queries attend to something and B keys are attended to, W is the queries of the tiles
    visited and T those of them that have a pair in the tile, over all blocks of keys; with one row,
    W = T. D is computed T - A times more than it need be. The peak is counted, and is never more
    than without the mask. The best blocks have one row, and a few numbers of keys are tried: the
    largest, the most even, multiples of 16, 64.

    Parameters
    ----------
    problem : Attention
        What to compute: a backward pass.
    cache : int
        M, in words.
    blocks : {"best", "published"}
        Published: cols = ceil(M / 4d), rows = min(cols, d). For d = e, K, V, dK and dV of such a
        block alone fill the cache, so it is refused unless cols is cut down to all keys.
    rows, cols : int, optional
        Queries and keys in a block; both or none.

    Raises
    ------
    ProblemError, SizeError, UnknownName
        No backward pass (or with saved weights); blocks that overflow the cache; sizes that are
        not positive; an unknown rule.

    References
    ----------
    Dao et al., "FlashAttention: fast and memory-efficient exact attention with IO-awareness",
    arXiv 2205.14135, algorithm 4 and theorem 5.

    Examples
    --------
    Three keys of 8 words, one row of 8 and 4 words make 36 of 40. The 6 keys pass in 2 blocks:
    24 + 2 * 6 * 7 + 12 words are read, 2 * 12 + 24 written.

    >>> import pebble
    >>> problem = pebble.Attention(n=6, d=2, direction="backward")
    >>> schedule = flash1_backward(problem, cache=40)
    >>> schedule.blocks["cols"], schedule.count().loads, schedule.count().stores
    (3, 120, 48)
    """
    if getattr(problem, "kind", None) == "masked backward":
        return masked_flash1_backward(problem, cache, (blocks, rows, cols))
    rows, cols = blocks_by_columns("flash1_backward", problem, cache, (blocks, rows, cols))
    p, T = problem, -(-problem.keys // cols)
    n, m, d, e = p.n, p.keys, p.d, p.value_dim
    loads = m * (d + e) + T * n * (d + 2 * e + 1) + (T - 1) * n * d
    stores = T * n * d + m * (d + e)
    computes = p.graph.size - p.graph.input_words + (T - 1) * n * (2 * e - 1)
    cost = Cost(loads, stores, computes, loads + computes, peak(p, rows, cols, EVERY))
    sizes = {"rows": rows, "cols": cols}
    return Schedule(
        "flash1_backward", p, int(cache), sizes, cost, lambda tape: _write(tape, p, rows, cols)
    )


def _write(tape: Tape, p: Attention, rows: int, cols: int) -> None:
    g, last = p.graph, p.n - 1
    Q, K, V, dO, Lse, D = (g[name] for name in ("Q", "K", "V", "dO", "Lse", "D"))
    dQ, dK, dV = g["dQ"], g["dK"], g["dV"]
    for J in tape.blocks(p.keys, cols):
        tape.load(K[J, :], V[J, :])
        for I in tape.blocks(p.n, rows):
            tape.load(Q[I, :], dO[I, :], Lse[I])
            for i in tape.each(I):
                add_delta(tape, p, i)
            if not J.first:
                tape.load(dQ[I, J.start - 1, :])
            differentiate(tape, p, I, J, EVERY)
            tape.store(dQ[I, J.end, :])
            tape.delete(dQ[I, J.end, :], Q[I, :], dO[I, :], Lse[I], D[I, p.value_dim - 1])
        tape.store(dK[last, J, :], dV[last, J, :])
        tape.delete(dK[last, J, :], dV[last, J, :], K[J, :], V[J, :])
