"""The backward pass in a small cache: five blocked products, P and dS written."""

from __future__ import annotations

from pebble.attention import Attention
from pebble.checks import positive
from pebble.cost import Cost
from pebble.problem import require
from pebble.registry import register
from pebble.schedule import Schedule
from pebble.tapes import Block, Index, Tape
from schedules.backward import delta_peak, write_delta
from schedules.backward_products import (
    Phase,
    best_cuts,
    checked_peak,
    phases,
    square_cuts,
    told,
    words,
    write_gradient,
    write_weights,
)
from schedules.blocked import Cut, multiply
from schedules.blocks import rule_or_sizes
from schedules.masked.unfused_backward import small_cache_backward as masked_small_cache_backward


@register(kinds=("backward", "masked backward"))
def small_cache_backward(
    problem: Attention,
    cache: int,
    *,
    blocks: str = "best",
    rows: int | None = None,
    cols: int | None = None,
) -> Schedule:
    """Give the backward pass for a small cache: square tiles of its five products.

    D = rowsum(dO o O) and P = exp(Q K^T - Lse) are formed and written; then dV = P^T dO,
    dS = P o (dO V^T - D), for which P is read as dP is finished, dQ = dS K and dK = dS^T Q. With W
    the words of operands that the five products load (`schedules.blocked.loads`) and
    e = value_dim::

        loads   W + n keys + 2 n e + 2 n
        stores  2 n keys + n d + keys (d + e) + n

    A product of n keys d terms in tiles of a x b loads about n keys d (1 / a + 1 / b) words. The
    best blocks take one term of each sum at a time, so that a tile has nearly M words: about
    10 n^2 d / sqrt(M) + 3 n^2 in all for n = keys, d = e. B = floor(sqrt(M / 4)) for all three
    sizes of a block makes that 20 n^2 d / sqrt(M). The peak is that of the product that holds the
    most: `schedules.blocked.peak`, and a word a row for Lse or D. Each vertex is computed once.

    Under a mask of Z pairs only those are formed and moved, and tiles that are empty are skipped::

        loads   W + Z + 2 A e + 2 A
        stores  2 Z + A d + B (d + e) + A

    where A queries attend to something and B keys are attended to. To W, P adds d, and dP adds e
    words for each query and each key that has a pair in a tile, over all tiles; where all terms of
    a sum are added at once, for the A queries once. dQ adds d words for each key that a block of
    rows uses, over all blocks, and Z for each block of columns; dV (with e) and dK likewise for
    each query that uses a block of keys. A tile of P or dP holds its part of both operands, not of
    one. The peak is counted, and the best blocks are the best of a few.

    Parameters
    ----------
    problem : Attention
        What to compute: a backward pass.
    cache : int
        M, in words.
    blocks : {"best", "published"}
        Published: B = floor(sqrt(M / 4)) for rows, columns and terms of every product.
    rows, cols : int, optional
        The shape of the tiles of every product, one term of each sum at a time; both or none.

    Raises
    ------
    ProblemError, SizeError, UnknownName
        No backward pass (or with saved weights); blocks that overflow the cache; sizes that are
        not positive; an unknown rule.

    References
    ----------
    Saha and Ye, ICML 2024, algorithm 1, for each product; Li et al., "On fine-grained I/O
    complexity of attention backward passes", arXiv 2410.09397, for the phases.

    Examples
    --------
    Tiles of 2 x 2 pass 4 * 4 * 2 (1 / 2 + 1 / 2) = 32 words for each of five products; 3 * 16 of P
    and dS are read or written besides, 2 * 8 of dO and O, 3 * 8 of outputs, 3 * 4 of D and Lse.

    >>> import pebble
    >>> problem = pebble.Attention(n=4, d=2, direction="backward")
    >>> small_cache_backward(problem, cache=16, rows=2, cols=2).count().io
    260
    """
    if getattr(problem, "kind", None) == "masked backward":
        return masked_small_cache_backward(problem, cache, (blocks, rows, cols))
    require("small_cache_backward", problem, "backward")
    rule, height, width = rule_or_sizes(blocks, rows, cols)
    cache = positive("cache", cache, "the words of fast memory")
    p = problem
    parts, other = phases(p, {"P": 2, "dP": 3}), delta_peak(p)
    if rule == "best":
        cuts = best_cuts("small_cache_backward", parts, cache, other)
    elif rule == "published":
        cuts = square_cuts(parts, cache)
    else:
        cuts = {
            name: Cut(width, height, 1) if name in ("P", "dP") else Cut(height, width, 1)
            for name in parts
        }
    most = checked_peak(f"small_cache_backward, {rule} blocks", parts, cuts, cache, other)

    n, m, d, e, pairs = p.n, p.keys, p.d, p.value_dim, p.pairs
    loads = words(parts, cuts) + pairs + 2 * n * e + 2 * n
    stores = 2 * pairs + n * d + m * (d + e) + n
    computes = p.graph.size - p.graph.input_words
    cost = Cost(loads, stores, computes, loads + computes, most)

    def write(tape: Tape) -> None:
        write_delta(tape, p)
        write_weights(tape, p, parts["P"], cuts["P"])
        write_gradient(tape, parts["dV"], cuts["dV"])
        _write_dS(tape, p, parts["dP"], cuts["dP"])
        write_gradient(tape, parts["dQ"], cuts["dQ"])
        write_gradient(tape, parts["dK"], cuts["dK"])

    return Schedule("small_cache_backward", p, cache, told(parts, cuts), cost, write)


def _write_dS(tape: Tape, p: Attention, part: Phase, cut: Cut) -> None:
    """The gradient dS = P o (dO V^T - D), written; P is read when dP is finished."""
    g, end = p.graph, p.value_dim - 1
    P, dP, G, dS, D = g["P"], g["dP"], g["G"], g["dS"], g["D"]

    def take(j: Index, i: Index) -> None:
        tape.compute(G[i, j])
        tape.delete(dP[i, j, end])
        tape.load(P[i, j])
        tape.compute(dS[i, j])
        tape.delete(P[i, j], G[i, j])
        tape.store(dS[i, j])
        tape.delete(dS[i, j])

    def open(I: Block) -> None:
        tape.load(D[I, end])

    def close(I: Block) -> None:
        tape.delete(D[I, end])

    multiply(tape, part.product, cut, take, open=open, close=close)
