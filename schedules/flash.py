"""What FlashAttention 1 and 2 share: the step on a tile of scores, its peak, the block rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pebble.affine import Affine
from pebble.attention import Attention
from pebble.checks import positive
from pebble.cost import Cost
from pebble.errors import SizeError
from pebble.families import Family
from pebble.problem import require
from pebble.schedule import Schedule
from pebble.tapes import Block, Tape, whole
from schedules.blocks import need, rule_or_sizes
from schedules.steps import add_products, add_values, add_weight, normalise, store_logsumexp


@dataclass(frozen=True)
class Tiling:
    """How a FlashAttention cuts its work.

    Parameters
    ----------
    rows, cols : int
        Queries and keys in a block.
    at_once : int
        Rows whose scores are held together: all of a block in the papers, one in the frugal
        layout, which moves the same words in less cache.
    width : int
        Keys whose scores are held together: a block of the online softmax; with the plain
        softmax, all of a block in the papers and one in the frugal layout.
    """

    rows: int
    cols: int
    at_once: int
    width: int


def attend(tape: Tape, p: Attention, I: Block, J: Block, t: Tiling) -> None:
    """Bring the rows I up to date with the keys J; Q[I,:], K[J,:] and V[J,:] are red."""
    for R in tape.blocks(I, t.at_once):
        for T in tape.blocks(J, t.width):
            for i in tape.each(R):
                for j in tape.each(T):
                    add_products(tape, p, i, j, whole(p.d))
            for i in tape.each(R):
                if p.online:
                    online_row(tape, p, i, T)
                else:
                    plain_row(tape, p, i, T)


def plain_row(tape: Tape, p: Attention, i: Affine, T: Block) -> None:
    """Take a row's scores over T to its sums: P = exp(S), l += P, o += P V."""
    s, P = p.graph["s"], p.graph["P"]
    for j in tape.each(T):
        tape.compute(P[i, j])
        tape.delete(s[i, j, p.d - 1])
        add_weight(tape, p, i, j)
        add_values(tape, p, i, j, whole(p.value_dim))
        if not j.first:  # P[i,0] is the first row sum
            tape.delete(P[i, j])


def online_row(tape: Tape, p: Attention, i: Affine, T: Block) -> None:
    """Take a row's scores over a block of the online softmax to its sums."""
    g = p.graph
    s, mx, P, a, l, y, o = (g[name] for name in ("s", "mx", "P", "a", "l", "y", "o"))
    head, before, block = T.start, T.start - 1, T.start // (p.block or 1)

    # new mx = max(mx, rowmax(S)); mx[i,0] is the first score, and the old maximum stays for a
    later = T.drop(1) if T.first else T
    if later.size:
        tape.compute(mx[i, later.start])
    for j in tape.each(later.drop(1)):
        tape.compute(mx[i, j])
        tape.delete(mx[i, j - 1])

    if not T.first:
        # a = exp(old mx - new mx), l = a l, o = a o
        tape.compute(a[i, block])
        tape.delete(mx[i, before])
        tape.compute(g["lr"][i, block])
        tape.delete(l[i, before])
        for c in tape.each(p.value_dim):
            tape.compute(g["or"][i, block, c])
            tape.delete(o[i, before, c])
        tape.delete(a[i, block])

    # P = exp(S - mx), l += P, o += P V; the first key of the block adds to the rescaled sums
    tape.compute(P[i, head])
    if not (T.first and T.size == 1):  # else the score is the maximum
        tape.delete(s[i, head, p.d - 1])
    if T.first:
        tape.compute(y[i, head, :])
    else:
        tape.compute(l[i, head])
        tape.delete(g["lr"][i, block])
        for c in tape.each(p.value_dim):
            tape.compute(y[i, head, c], o[i, head, c])
            tape.delete(y[i, head, c], g["or"][i, block, c])
        tape.delete(P[i, head])
    plain_row(tape, p, i, T.drop(1))


def finish(tape: Tape, p: Attention, i: Affine) -> None:
    """Store a row's outputs and drop its sums."""
    last = p.keys - 1
    normalise(tape, p, i, whole(p.value_dim))
    store_logsumexp(tape, p, i)
    tape.delete(*(sums[i, last] for sums in row_sums(p)))


def row_sums(p: Attention) -> list[Family]:
    """Give the families of which a row keeps one word: l, and online mx too."""
    return [p.graph["l"], p.graph["mx"]] if p.online else [p.graph["l"]]


def peak(p: Attention, t: Tiling, cols_held_at_the_end: bool) -> int:
    """Give the most words that a FlashAttention holds, exactly.

    A row of queries takes ``q = d`` words, and once it has met a key ``f = value_dim + 1`` more
    (online: + 2, for the maximum). While a later block of b keys is worked on, with r rows at once
    and scores of width w, that makes::

        b (d + value_dim) + rows (q + f) + r min(w, b) + 2

    which is the peak but where there is only one block, or its first is the largest: then the last
    r rows of a block have no sums yet when their first scores are formed.
    """
    d, e, m = p.d, p.value_dim, p.keys
    rows, cols = min(t.rows, p.n), min(t.cols, m)
    r, sums = min(t.at_once, rows), e + (2 if p.online else 1)
    blocks, ragged = -(-m // cols), m % cols or cols

    def later(b: int) -> int:
        return b * (d + e) + rows * (d + sums) + r * min(t.width, b) + 2

    w = min(t.width, cols)
    scores = r * w + (2 if d > 1 else 0)
    row = (r - 1) * max(w, sums) + (w + sums + 1 if w > 1 else sums)
    first = max(scores, row)
    if cols > w:
        first = max(first, r * sums + r * min(w, cols - w) + 2)
    peaks = [cols * (d + e) + (rows - r) * (d + sums) + r * d + first]
    if blocks > 2 or (blocks == 2 and ragged == cols):
        peaks.append(later(cols))
    if blocks > 1:
        peaks.append(later(ragged))
    held = ragged * (d + e) if cols_held_at_the_end else 0
    peaks.append(held + rows * (d + sums) + 1)
    return max(peaks)


Peak = Callable[[Attention, Tiling], int]
Choice = Callable[[Attention, Callable[[int, int], bool], int], tuple[int, int]]


def tile(
    name: str,
    problem: Attention,
    cache: int,
    asked: tuple[str, int | None, int | None],
    peak: Peak,
    choose: Choice,
) -> tuple[Attention, Tiling]:
    """Settle the blocks, and the block of an online softmax that leaves it to the schedule.

    Parameters
    ----------
    name, problem, cache
        The algorithm, what it computes and M.
    asked : tuple
        The arguments ``blocks``, ``rows`` and ``cols``.
    peak : callable
        The words that a tiling holds.
    choose : callable
        Gives the best rows and cols from the problem, a test whether they fit, and the number of
        keys that cols is a multiple of.

    Raises
    ------
    ProblemError
        What it computes is no forward pass.
    """
    require(name, problem, "forward")
    rule, rows, cols = rule_or_sizes(*asked)
    cache = positive("cache", cache, "the words of fast memory")
    if rule == "best":
        p = problem.settled
        unit = p.block or 1

        def tiling(rows: int, cols: int) -> Tiling:
            return Tiling(rows, cols, 1, unit)

        least = peak(p, tiling(1, unit))
        if cache < least:
            raise SizeError(
                f"{name}: cache = {cache} is too small; the least that works is {least}"
            )
        chosen = choose(p, lambda rows, cols: peak(p, tiling(rows, cols)) <= cache, unit)
        return p, tiling(*chosen)
    if rule == "published":
        cols = -(-cache // (4 * problem.d))
        rows = min(cols, problem.d)
    rows, cols = min(rows, problem.n), min(cols, problem.keys)
    p = problem.with_block(problem.block or cols) if problem.online else problem
    if p.block and cols % p.block and cols < p.keys:
        raise SizeError(f"cols = {cols}: it must be a multiple of the softmax's block = {p.block}")
    published = rule == "published"
    t = Tiling(rows, cols, rows if published else 1, p.block or (cols if published else 1))
    need(f"{name}, {rule} blocks", peak(p, t), cache, f"rows = {rows}, cols = {cols}")
    return p, t


def schedule(
    name: str,
    p: Attention,
    cache: int,
    t: Tiling,
    io: tuple[int, int],
    peak: Peak,
    write: Callable[[Tape], None],
) -> Schedule:
    """Put a schedule together: every vertex is computed once, and all red pebbles come off."""
    loads, stores = io
    computes = p.graph.size - p.graph.input_words
    cost = Cost(loads, stores, computes, loads + computes, peak(p, t))
    sizes = {"rows": t.rows, "cols": t.cols}
    if p.online:
        sizes["block"] = p.block or 0
    return Schedule(name, p, int(cache), sizes, cost, write)
