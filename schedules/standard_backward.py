"""Unfused backward pass: its products one by one, P, dP and dS written and read."""

from __future__ import annotations

from pebble.affine import Affine
from pebble.attention import Attention
from pebble.checks import positive
from pebble.cost import Cost
from pebble.problem import require
from pebble.registry import register
from pebble.schedule import Schedule
from pebble.tapes import Tape
from schedules.backward import delta_peak, write_delta
from schedules.backward_products import (
    best_cuts,
    checked_peak,
    phases,
    same_cuts,
    told,
    words,
    write_gradient,
    write_weights,
)
from schedules.blocked import Cut
from schedules.blocks import rule_or_sizes
from schedules.masked.unfused_backward import standard_backward as masked_standard_backward


@register(kinds=("backward", "saved backward", "masked backward"))
def standard_backward(
    problem: Attention,
    cache: int,
    *,
    blocks: str = "best",
    rows: int | None = None,
    cols: int | None = None,
) -> Schedule:
    """Give the unfused backward pass: each product and each elementwise step in a pass of its own.

    The products dV = P^T dO, dP = dO V^T, dQ = dS K and dK = dS^T Q are blocked; dS is formed from
    P and dP in a pass of its own. With W the words of operands that the products load
    (`schedules.blocked.loads`) and e = value_dim::

        saved weights   loads   W + 2 n keys
                        stores  2 n keys + n d + keys (d + e)
        without         loads   W + 2 n keys + 2 n e + 2 n
                        stores  3 n keys + n d + keys (d + e) + n

    With saved weights, where a row of P and dP does not fit, 2 keys + 3 words, it is read twice,
    once for D = rowsum(P o dP): 2 n keys words more. Where each operand is read once and
    n = keys, d = e, that is 7 n^2 + 8 n d in all. Without saved weights P is formed from Q, K and
    Lse and written first, and D = rowsum(dO o O): 8 n^2 + 12 n d + 3 n. The peak is that of the
    product that holds the most, see `schedules.blocked.peak`. Each vertex is computed once.

    Under a mask of Z pairs only those are formed and moved, and tiles that are empty are skipped:
    it is `small_cache_backward` with dP written, Z words, and read, Z words. Published blocks are
    then all of a result, which reads each operand once.

    Parameters
    ----------
    problem : Attention
        What to compute: a backward pass.
    cache : int
        M, in words.
    blocks : {"best", "published"}
        Published: one operand of each product stays, so that each is read once, which the count
        Theta(n d + n^2) of the paper supposes.
    rows, cols : int, optional
        The shape of the tiles of every product, one term of each sum at a time; both or none.

    Raises
    ------
    ProblemError, SizeError, UnknownName
        No backward pass; blocks that overflow the cache; sizes that are not positive; an unknown
        rule.

    References
    ----------
    Dao et al., "FlashAttention: fast and memory-efficient exact attention with IO-awareness",
    arXiv 2205.14135, algorithm 3 and theorem 5.

    Examples
    --------
    7 * 36 + 8 * 12 words, all operands read once.

    >>> import pebble
    >>> problem = pebble.Attention(n=6, d=2, direction="backward", saved_weights=True)
    >>> standard_backward(problem, cache=64).count().io
    348
    """
    if getattr(problem, "kind", None) == "masked backward":
        return masked_standard_backward(problem, cache, (blocks, rows, cols))
    require("standard_backward", problem, "backward", "saved backward")
    rule, height, width = rule_or_sizes(blocks, rows, cols)
    cache = positive("cache", cache, "the words of fast memory")
    p = problem
    parts = phases(p, {"P": 2, "dP": 1})
    other = middle_peak(p, cache) if p.saved_weights else max(4, delta_peak(p))
    if rule == "best":
        cuts = best_cuts("standard_backward", parts, cache, other)
    elif rule == "published":
        whole = max(p.n, p.keys, p.d, p.value_dim)
        cuts = same_cuts(parts, Cut(whole, whole, whole))
    else:
        cuts = {
            name: Cut(width, height, 1) if name in ("P", "dP") else Cut(height, width, 1)
            for name in parts
        }
    most = checked_peak(f"standard_backward, {rule} blocks", parts, cuts, cache, other)

    n, m, d, e, pairs = p.n, p.keys, p.d, p.value_dim, p.pairs
    loads, stores = words(parts, cuts), n * d + m * (d + e) + 2 * pairs
    if p.saved_weights:
        loads += 2 * pairs * (1 if _row_fits(p, cache) else 2)
    else:
        loads += 2 * pairs + 2 * n * e + 2 * n
        stores += pairs + n
    computes = p.graph.size - p.graph.input_words
    cost = Cost(loads, stores, computes, loads + computes, most)

    def write(tape: Tape) -> None:
        if not p.saved_weights:
            write_delta(tape, p)
            write_weights(tape, p, parts["P"], cuts["P"])
        write_gradient(tape, parts["dV"], cuts["dV"])
        write_gradient(tape, parts["dP"], cuts["dP"])
        if p.saved_weights:
            _write_dS_and_delta(tape, p, cache)
        else:
            _write_dS(tape, p)
        write_gradient(tape, parts["dQ"], cuts["dQ"])
        write_gradient(tape, parts["dK"], cuts["dK"])

    return Schedule("standard_backward", p, cache, told(parts, cuts), cost, write)


def _row_fits(p: Attention, cache: int) -> bool:
    return p.keys == 1 or 2 * p.keys + 3 <= cache


def middle_peak(p: Attention, cache: int) -> int:
    """Give the most words that the pass for dS holds with saved weights."""
    return 2 * p.keys + 3 if p.keys > 1 and _row_fits(p, cache) else 4


def _write_dS(tape: Tape, p: Attention) -> None:
    """The gradient dS = P o (dP - D), from P, dP and D in slow memory."""
    D, end = p.graph["D"], p.value_dim - 1
    for i in tape.each(p.n):
        tape.load(D[i, end])
        for j in tape.each(p.keys):
            _load_and_form(tape, p, i, j)
        tape.delete(D[i, end])


def _load_and_form(tape: Tape, p: Attention, i: Affine, j: Affine) -> None:
    g = p.graph
    P, dP, G, end = g["P"], g["dP"], g["G"], p.value_dim - 1
    tape.load(dP[i, j, end])
    tape.compute(G[i, j])
    tape.delete(dP[i, j, end])
    tape.load(P[i, j])
    _form(tape, p, i, j)


def _form(tape: Tape, p: Attention, i: Affine, j: Affine) -> None:
    P, G, dS = p.graph["P"], p.graph["G"], p.graph["dS"]
    tape.compute(dS[i, j])
    tape.delete(P[i, j], G[i, j])
    tape.store(dS[i, j])
    tape.delete(dS[i, j])


def _write_dS_and_delta(tape: Tape, p: Attention, cache: int) -> None:
    """D = rowsum(P o dP) and dS = P o (dP - D), a row at a time, which stays if it fits."""
    g, end, last = p.graph, p.value_dim - 1, p.keys - 1
    P, dP, z, D, G = g["P"], g["dP"], g["z"], g["D"], g["G"]
    stays = _row_fits(p, cache)
    for i in tape.each(p.n):
        if stays:
            tape.load(P[i, :], dP[i, :, end])
        for j in tape.each(p.keys):
            if not stays:
                tape.load(P[i, j], dP[i, j, end])
            tape.compute(z[i, j])
            if not stays:
                tape.delete(P[i, j], dP[i, j, end])
            if not j.first:
                tape.compute(D[i, j])
                tape.delete(z[i, j], D[i, j - 1])
        for j in tape.each(p.keys):
            if stays:
                tape.compute(G[i, j])
                tape.delete(dP[i, j, end])
                _form(tape, p, i, j)
            else:
                _load_and_form(tape, p, i, j)
        tape.delete(D[i, last])
