"""FlashAttention: key blocks outside, queries stream past them with their sums."""

from __future__ import annotations

from collections.abc import Callable

from pebble.attention import Attention
from pebble.registry import register
from pebble.schedule import Schedule
from pebble.tapes import Tape
from schedules import flash
from schedules.blocks import largest
from schedules.flash import Tiling
from schedules.masked.flash1 import flash1 as masked_flash1


@register(kinds=("forward", "masked forward"))
def flash1(
    problem: Attention,
    cache: int,
    *,
    blocks: str = "best",
    rows: int | None = None,
    cols: int | None = None,
) -> Schedule:
    """Give FlashAttention with its blocks.

    Keys and values are read once. At each of the T = ceil(keys / cols) blocks every query passes,
    and with it what it has summed so far: value_dim + L words, L = 1 (the row sum) or online 2
    (and the maximum), read but at the first block and written but at the last::

        I/O   keys (d + value_dim) + T n d + 2 (T - 1) n (value_dim + L) + n value_dim
              (+ n with the logsumexp)
        peak  cols (d + value_dim) + rows (d + value_dim + 1) + 3   (plain, keys > 1, best blocks)

    The peak in general is `schedules.flash.peak`. The I/O does not depend on `rows`; the best
    blocks take one, so that as many keys fit as can: about 6 n^2 d^2 / M words for n = keys,
    d = value_dim.

    The paper counts T (3 n d + 4 n) + 2 n d + (n d + 2 n) words (online): it writes zeros first,
    reads them at the first block, and writes the row sum and the maximum at the last block too.
    Here a sum begins with its first term: that is 2 (n d + 2 n) + 2 n words less.

    Under a mask, tiles that are empty are skipped, and so are keys that nothing attends to; sums
    are read and written for the queries alone that have a pair in the tile::

        I/O   B (d + value_dim) + W d + 2 (T - A) (value_dim + 1) + A value_dim
              (+ A with the logsumexp)

    where A queries attend to something and B keys are attended to, W is the queries of the tiles
    visited and T those of them that have a pair in the tile, over all blocks of keys.

    Parameters
    ----------
    problem : Attention
        What to compute.
    cache : int
        M, in words.
    blocks : {"best", "published"}
        Published: cols = ceil(M / 4d), rows = min(cols, d), with the scores of a whole tile held
        at once, as the paper has it; that overflows below about M = 8 d^2 + 16 d.
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
    Dao et al., "FlashAttention: fast and memory-efficient exact attention with IO-awareness",
    arXiv 2205.14135, algorithm 1 and theorem 2.

    Examples
    --------
    Five keys of 2 + 2 words, one row of 2 + 2 + 1 words, and 3 words make 28 of 30. The 12 keys
    pass in 3 blocks: 48 + 3 * 24 + 2 * 2 * 12 * 3 + 24 words move.

    >>> import pebble
    >>> schedule = flash1(pebble.Attention(n=12, d=2), cache=30)
    >>> schedule.blocks["cols"], schedule.count().io
    (5, 288)
    """

    if getattr(problem, "kind", None) == "masked forward":
        return masked_flash1(problem, cache, (blocks, rows, cols))

    def peak(p: Attention, t: Tiling) -> int:
        return flash.peak(p, t, cols_held_at_the_end=True)

    def choose(p: Attention, fits: Callable[[int, int], bool], unit: int) -> tuple[int, int]:
        units = largest(-(-p.keys // unit), lambda count: fits(1, min(count * unit, p.keys)))
        return 1, min(units * unit, p.keys)

    p, t = flash.tile("flash1", problem, cache, (blocks, rows, cols), peak, choose)
    passes = -(-p.keys // t.cols)
    spilled = (passes - 1) * p.n * (p.value_dim + len(flash.row_sums(p)))
    loads = p.keys * (p.d + p.value_dim) + passes * p.n * p.d + spilled
    stores = spilled + p.n * p.value_dim + (p.n if p.logsumexp else 0)
    return flash.schedule(
        "flash1", p, cache, t, (loads, stores), peak, lambda tape: _write(tape, p, t)
    )


def _write(tape: Tape, p: Attention, t: Tiling) -> None:
    Q, K, V, o = (p.graph[name] for name in ("Q", "K", "V", "o"))
    for J in tape.blocks(p.keys, t.cols):
        tape.load(K[J, :], V[J, :])
        for I in tape.blocks(p.n, t.rows):
            tape.load(Q[I, :])
            if not J.first:
                before = J.start - 1
                tape.load(o[I, before, :], *(sums[I, before] for sums in flash.row_sums(p)))
            flash.attend(tape, p, I, J, t)
            if J.last:
                for i in tape.each(I):
                    flash.finish(tape, p, i)
            else:
                state = [o[I, J.end, :], *(sums[I, J.end] for sums in flash.row_sums(p))]
                tape.store(*state)
                tape.delete(*state)
            tape.delete(Q[I, :])
        tape.delete(K[J, :], V[J, :])
