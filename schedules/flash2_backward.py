"""FlashAttention-2's backward pass: D in a pass of its own, then key blocks outside."""

from __future__ import annotations

from pebble.attention import Attention
from pebble.cost import Cost
from pebble.registry import register
from pebble.schedule import Schedule
from pebble.tapes import Tape
from schedules.backward import (
    EVERY,
    blocks_by_columns,
    delta_peak,
    differentiate,
    peak,
    write_delta,
)
from schedules.blocks import need
from schedules.masked.flash_backward import flash2_backward as masked_flash2_backward


@register(kinds=("backward", "masked backward"))
def flash2_backward(
    problem: Attention,
    cache: int,
    *,
    blocks: str = "best",
    rows: int | None = None,
    cols: int | None = None,
) -> Schedule:
    """Give FlashAttention-2's backward pass with its blocks.

    A first pass reads dO and O and writes D. Then keys, values and their gradients stay for a
    block; at each of the T = ceil(keys / cols) blocks every query passes with dO, Lse, D and the dQ
    summed so far, read but at the first block and written at each. With e = value_dim::

        loads   2 n e + keys (d + e) + T n (d + e + 2) + (T - 1) n d
        stores  n + T n d + keys (d + e)
        peak    2 cols (d + e) + rows (2 d + e + 2) + 4   (n, keys > 1 and e > 1)

    The peak in general is `schedules.backward.peak`. The best blocks take one row: about
    16 n^2 d^2 / M words for n = keys, d = e. Each vertex is computed once.

    With zeros written first and read at the first block, as the paper has it, that is
    T (4 n d + 2 n) + 4 n d + (2 n d + n) words for n = keys, d = e, and n d more for the zeros.

    Under a mask, tiles that are empty are skipped. Of the others Q, dO and Lse are loaded whole, as
    kernels do; D and the dQ so far are read for the queries alone that have a pair in the tile,
    since others need not have them::

        loads   2 A e + B (d + e) + W (d + e + 1) + T + (T - A) d
        stores  A + T d + B (d + e)

    where A queries attend to something and B keys are attended to, W is the queries of the tiles
    visited and T those of them that have a pair in the tile, over all blocks of keys; with one row,
    W = T. The peak is counted, and is never more than without the mask. The best blocks have one
    row, and a few numbers of keys are tried: the largest, the most even, multiples of 16, 64.

    Parameters
    ----------
    problem : Attention
        What to compute: a backward pass.
    cache : int
        M, in words.
    blocks : {"best", "published"}
        Published: cols = ceil(M / 4d), rows = min(cols, d), the rule of FlashAttention. For d = e,
        K, V, dK and dV of such a block alone fill the cache, so it is refused unless cols is cut
        down to all keys.
    rows, cols : int, optional
        Queries and keys in a block; both or none.

    Raises
    ------
    ProblemError, SizeError, UnknownName
        No backward pass (or with saved weights); blocks that overflow the cache; sizes that are
        not positive; an unknown rule.

    References
    ----------
    Dao, "FlashAttention-2: faster attention with better parallelism and work partitioning",
    arXiv 2307.08691, algorithm 2; the rule for blocks is that of algorithm 4 of arXiv 2205.14135.

    Examples
    --------
    Three keys of 8 words, one row of 8 and 4 words make 36 of 40. The 6 keys pass in 2 blocks:
    24 + 24 + 2 * 6 * 6 + 12 words are read, 6 + 2 * 12 + 24 written.

    >>> import pebble
    >>> problem = pebble.Attention(n=6, d=2, direction="backward")
    >>> schedule = flash2_backward(problem, cache=40)
    >>> schedule.blocks["cols"], schedule.count().loads, schedule.count().stores
    (3, 132, 54)

    With a causal mask of 4 queries, 4 meet the first 2 keys and 2 the others, 6 in all, of which 2
    go on: 2 * 8 + 16 + 6 * 6 + 2 * 2 words are read, 4 + 6 * 2 + 16 written.

    >>> mask = pebble.masks.causal(4)
    >>> problem = pebble.Attention(n=4, d=2, direction="backward", mask=mask)
    >>> cost = flash2_backward(problem, cache=28, rows=1, cols=2).count()
    >>> cost.loads, cost.stores
    (72, 32)
    """
    if getattr(problem, "kind", None) == "masked backward":
        return masked_flash2_backward(problem, cache, (blocks, rows, cols))
    rows, cols = blocks_by_columns("flash2_backward", problem, cache, (blocks, rows, cols))
    p = problem
    loads, stores = _io(p, cols)
    computes = p.graph.size - p.graph.input_words
    most = max(peak(p, rows, cols, EVERY), delta_peak(p))
    cost = Cost(loads, stores, computes, loads + computes, most)

    def write(tape: Tape) -> None:
        write_delta(tape, p)
        _write(tape, p, rows, cols, as_printed=False)

    return Schedule("flash2_backward", p, int(cache), {"rows": rows, "cols": cols}, cost, write)


def flash2_backward_as_printed(
    problem: Attention,
    cache: int,
    *,
    rows: int,
    cols: int,
) -> Schedule:
    """Give algorithm 2 of FlashAttention-2 as it is printed, with two kinds of loads in vain.

    It loads O beside Q and dO, though D is there and O is used no more, and loads dQ a second time
    before it adds to it. A load of what is red is illegal in the default game, and in vain with
    ``Rules(redundant=True)``; `Schedule.waste` reports both. Against `flash2_backward` with the
    same blocks that is T n e + (T - 1) n d loads more, and rows e words in cache.

    It is not among the schedules that `best` and `compare` look at.

    Parameters
    ----------
    problem : Attention
        What to compute: a backward pass.
    cache : int
        M, in words.
    rows, cols : int
        Queries and keys in a block.

    Raises
    ------
    ProblemError, SizeError
        No backward pass; blocks that overflow the cache; sizes that are not positive.

    References
    ----------
    Dao, arXiv 2307.08691, algorithm 2.

    Examples
    --------
    The 6 keys pass in 3 blocks: 3 * 12 words of O are never used, 2 * 12 of dQ are there already.

    >>> import pebble
    >>> problem = pebble.Attention(n=6, d=2, direction="backward")
    >>> schedule = flash2_backward_as_printed(problem, cache=40, rows=1, cols=2)
    >>> schedule.replay()
    Traceback (most recent call last):
    pebble.errors.IllegalMove: move 704, load dQ[0,1,0]: dQ[0,1,0] is red already;
    Rules(redundant=True) let it be loaded again
    >>> schedule.waste(pebble.Rules(redundant=True)).dead_loads
    60
    """
    p = problem
    rows, cols = blocks_by_columns("flash2_backward_as_printed", p, cache, ("best", rows, cols))
    T, spare = -(-p.keys // cols), min(rows, p.n) * p.value_dim
    loads, stores = _io(p, cols)
    loads += T * p.n * p.value_dim + (T - 1) * p.n * p.d
    computes = p.graph.size - p.graph.input_words
    deletes = loads - (T - 1) * p.n * p.d + computes
    most = max(peak(p, rows, cols, EVERY) + spare, delta_peak(p))
    need("flash2_backward_as_printed", most, cache, f"rows = {rows}, cols = {cols}")
    cost = Cost(loads, stores, computes, deletes, most)

    def write(tape: Tape) -> None:
        write_delta(tape, p)
        _write(tape, p, rows, cols, as_printed=True)

    sizes = {"rows": rows, "cols": cols}
    return Schedule("flash2_backward_as_printed", p, int(cache), sizes, cost, write)


def _io(p: Attention, cols: int) -> tuple[int, int]:
    n, m, d, e, T = p.n, p.keys, p.d, p.value_dim, -(-p.keys // cols)
    loads = 2 * n * e + m * (d + e) + T * n * (d + e + 2) + (T - 1) * n * d
    return loads, n + T * n * d + m * (d + e)


def _write(tape: Tape, p: Attention, rows: int, cols: int, as_printed: bool) -> None:
    g, last = p.graph, p.n - 1
    Q, K, V, O, dO, Lse = (g[name] for name in ("Q", "K", "V", "O", "dO", "Lse"))
    dQ, dK, dV = g["dQ"], g["dK"], g["dV"]
    for J in tape.blocks(p.keys, cols):
        tape.load(K[J, :], V[J, :])
        for I in tape.blocks(p.n, rows):
            operands = [Q[I, :], dO[I, :], Lse[I], g["D"][I, p.value_dim - 1]]
            operands += [O[I, :]] if as_printed else []
            tape.load(*operands)
            if not J.first:
                tape.load(dQ[I, J.start - 1, :])
                if as_printed:
                    tape.load_again(dQ[I, J.start - 1, :])
            differentiate(tape, p, I, J, EVERY)
            tape.store(dQ[I, J.end, :])
            tape.delete(dQ[I, J.end, :], *operands)
        tape.store(dK[last, J, :], dV[last, J, :])
        tape.delete(dK[last, J, :], dV[last, J, :], K[J, :], V[J, :])
