"""FlashAttention-2: query blocks outside, keys stream past them."""

from __future__ import annotations

from collections.abc import Callable

from pebble.attention import Attention
from pebble.registry import register
from pebble.schedule import Schedule
from pebble.tapes import Tape
from schedules import flash
from schedules.blocks import largest
from schedules.flash import Tiling
from schedules.masked.flash2 import flash2 as masked_flash2


@register(kinds=("forward", "masked forward"))
def flash2(
    problem: Attention,
    cache: int,
    *,
    blocks: str = "best",
    rows: int | None = None,
    cols: int | None = None,
) -> Schedule:
    """Give FlashAttention-2 with its blocks.

    The queries of a block, their sums o and l (online: and the maximum) stay; for each of the
    ceil(n / rows) blocks all keys and values pass once::

        I/O   n d + keys (d + value_dim) ceil(n / rows) + n value_dim  (+ n with the logsumexp)
        peak  cols (d + value_dim) + rows (d + value_dim + 1) + 3   (plain, keys > 1, best blocks)

    The peak in general is `schedules.flash.peak`. The best blocks take one key at a time, so that
    as many rows fit as can: about 4 n^2 d^2 / M words for n = keys, d = value_dim.

    Under a mask, tiles that are empty are skipped and the others are loaded whole; `gather` loads
    of each tile the keys alone that its queries use, which is the same with one key at a time::

        I/O   A d + U (d + value_dim) + A value_dim  (+ A with the logsumexp)

    where A queries attend to something, and U is the keys of the tiles visited, over all blocks.
    The best blocks are chosen among a few heights: the largest, the most even, multiples of 16, 64.

    Parameters
    ----------
    problem : Attention
        What to compute.
    cache : int
        M, in words.
    blocks : {"best", "published"}
        Published: cols = ceil(M / 4d), rows = min(cols, d), with the scores of a whole tile held
        at once, as the papers have it; that overflows below about M = 8 d^2 + 16 d.
    rows, cols : int, optional
        Queries and keys in a block; both or none. With an online softmax that has no block of its
        own, `cols` becomes its block.

    Raises
    ------
    ProblemError, SizeError, UnknownName
        No forward pass; blocks that overflow the cache; sizes that are not positive; an unknown
        rule.

    References
    ----------
    Dao, "FlashAttention-2: faster attention with better parallelism and work partitioning",
    arXiv 2307.08691, algorithm 1; the rule for blocks is that of algorithm 1 of arXiv 2205.14135.

    Examples
    --------
    Four rows of 2 + 2 + 1 words, one key and its value of 4 words, and 3 words make 27 of 30; the
    12 queries pass in 3 blocks, so 24 + 48 * 3 + 24 words move.

    >>> import pebble
    >>> cost = flash2(pebble.Attention(n=12, d=2), cache=30).count()
    >>> cost.io, cost.peak
    (192, 27)
    """

    if getattr(problem, "kind", None) == "masked forward":
        return masked_flash2(problem, cache, (blocks, rows, cols))

    def peak(p: Attention, t: Tiling) -> int:
        return flash.peak(p, t, cols_held_at_the_end=False)

    def choose(p: Attention, fits: Callable[[int, int], bool], unit: int) -> tuple[int, int]:
        return largest(p.n, lambda rows: fits(rows, unit)), unit

    p, t = flash.tile("flash2", problem, cache, (blocks, rows, cols), peak, choose)
    passes = -(-p.n // t.rows)
    loads = p.n * p.d + p.keys * (p.d + p.value_dim) * passes
    stores = p.n * p.value_dim + (p.n if p.logsumexp else 0)
    return flash.schedule(
        "flash2", p, cache, t, (loads, stores), peak, lambda tape: _write(tape, p, t)
    )


def _write(tape: Tape, p: Attention, t: Tiling) -> None:
    Q, K, V = p.graph["Q"], p.graph["K"], p.graph["V"]
    for I in tape.blocks(p.n, t.rows):
        tape.load(Q[I, :])
        for J in tape.blocks(p.keys, t.cols):
            tape.load(K[J, :], V[J, :])
            flash.attend(tape, p, I, J, t)
            tape.delete(K[J, :], V[J, :])
        for i in tape.each(I):
            flash.finish(tape, p, i)
        tape.delete(Q[I, :])
