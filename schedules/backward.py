"""What the FlashAttention-like backward schedules share: the steps on a pair, and their peak.

A schedule goes through pairs of a query i and a key j in blocks of rows I and of columns J. At a
pair it forms P and dS anew, and adds to those of dV, dQ and dK that it is after.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import product

from pebble.attention import Attention
from pebble.checks import positive
from pebble.problem import require
from pebble.tapes import Block, Index, Tape, whole
from schedules.blocks import largest, need, rule_or_sizes, too_small
from schedules.steps import add_products

EVERY = ("dV", "dQ", "dK")
ROWS, COLUMNS = ("dQ",), ("dV", "dK")


def add_delta(tape: Tape, p: Attention, i: Index) -> None:
    """D = rowsum(dO o O) for a row; dO[i,:] is red, and O passes word by word."""
    O, z, D = p.graph["O"], p.graph["z"], p.graph["D"]
    for c in tape.each(p.value_dim):
        tape.load(O[i, c])
        tape.compute(z[i, c])
        tape.delete(O[i, c])
        if not c.first:
            tape.compute(D[i, c])
            tape.delete(z[i, c], D[i, c - 1])


def write_delta(tape: Tape, p: Attention) -> None:
    """D = rowsum(dO o O), written: a pass that reads dO and O."""
    g = p.graph
    O, dO, z, D = g["O"], g["dO"], g["z"], g["D"]
    for i in tape.each(p.n):
        for c in tape.each(p.value_dim):
            tape.load(dO[i, c], O[i, c])
            tape.compute(z[i, c])
            tape.delete(dO[i, c], O[i, c])
            if not c.first:
                tape.compute(D[i, c])
                tape.delete(z[i, c], D[i, c - 1])
        tape.store(D[i, p.value_dim - 1])
        tape.delete(D[i, p.value_dim - 1])


def delta_peak(p: Attention) -> int:
    """Give the most words that `write_delta` holds: the sum so far, two operands, a product."""
    return 4 if p.value_dim > 1 else 3


def form_weight(tape: Tape, p: Attention, i: Index, j: Index) -> None:
    """P = exp(Q K^T - Lse) for a pair."""
    s, P = p.graph["s"], p.graph["P"]
    add_products(tape, p, i, j, whole(p.d))
    tape.compute(P[i, j])
    tape.delete(s[i, j, p.d - 1])


def form_dS(tape: Tape, p: Attention, i: Index, j: Index) -> None:
    """dS = P o (dO V^T - D) for a pair; P[i,j] is red and goes."""
    g = p.graph
    w, dP, G, P, dS = g["w"], g["dP"], g["G"], g["P"], g["dS"]
    for c in tape.each(p.value_dim):
        tape.compute(w[i, j, c])
        if not c.first:
            tape.compute(dP[i, j, c])
            tape.delete(w[i, j, c], dP[i, j, c - 1])
    tape.compute(G[i, j])
    tape.delete(dP[i, j, p.value_dim - 1])
    tape.compute(dS[i, j])
    tape.delete(P[i, j], G[i, j])


def add_dV(tape: Tape, p: Attention, i: Index, j: Index) -> None:
    """dV += P^T dO for a pair."""
    v, dV = p.graph["v"], p.graph["dV"]
    for c in tape.each(p.value_dim):
        tape.compute(v[i, j, c])
        if not i.first:
            tape.compute(dV[i, j, c])
            tape.delete(v[i, j, c], dV[i - 1, j, c])


def add_dQ(tape: Tape, p: Attention, i: Index, j: Index) -> None:
    """dQ += dS K for a pair."""
    q, dQ = p.graph["q"], p.graph["dQ"]
    for k in tape.each(p.d):
        tape.compute(q[i, j, k])
        if not j.first:
            tape.compute(dQ[i, j, k])
            tape.delete(q[i, j, k], dQ[i, j - 1, k])


def add_dK(tape: Tape, p: Attention, i: Index, j: Index) -> None:
    """dK += dS^T Q for a pair."""
    products, dK = p.graph["k"], p.graph["dK"]
    for k in tape.each(p.d):
        tape.compute(products[i, j, k])
        if not i.first:
            tape.compute(dK[i, j, k])
            tape.delete(products[i, j, k], dK[i - 1, j, k])


def differentiate(tape: Tape, p: Attention, I: Block, J: Block, sums: Collection[str]) -> None:
    """Go through the pairs of I and J; Q, dO, Lse, D of I and K, V of J are red."""
    dS = p.graph["dS"]
    for i in tape.each(I):
        for j in tape.each(J):
            form_weight(tape, p, i, j)
            if "dV" in sums:
                add_dV(tape, p, i, j)
            form_dS(tape, p, i, j)
            if "dQ" in sums:
                add_dQ(tape, p, i, j)
            if "dK" in sums:
                add_dK(tape, p, i, j)
            tape.delete(dS[i, j])


def pair_peak(p: Attention, sums: Collection[str], i_first: bool, j_first: bool) -> int:
    """Give the most words that a pair adds to what is held before it.

    The first term of a sum stays as the sum: those of dV and dK at the first query, of dQ at the
    first key. Later a product and the new sum come and go.
    """
    d, e = p.d, p.value_dim
    values = e if "dV" in sums and i_first else 0
    queries = d if "dQ" in sums and j_first else 0
    stages = [
        3 if d > 1 else 1,  # a sum, a product, the new sum of the score
        1 + (2 if "dV" in sums and not i_first else 1),  # P and dV's; P and the score
        values + 1 + (3 if e > 1 else 2),  # P and those of dP; P, dP and G; P, G and dS
    ]
    if "dQ" in sums:
        stages.append(values + 1 + (queries or 2))
    if "dK" in sums:
        stages.append(values + queries + 1 + (d if i_first else 2))
    return max(stages)


def peak(p: Attention, rows: int, cols: int, sums: Collection[str]) -> int:
    """Give the most words that passing through all blocks of rows and cols holds, exactly.

    A key takes d + value_dim words, and as many again for its dK and dV once it has met a query; a
    query takes d + value_dim + 2, with its Lse and D, and d more for its dQ once it has met a key.
    With all these held, a pair takes 4 more (3 where value_dim = 1). What is held grows along a
    block, so the most is met at the first or last pair of a first, a later or the last block.
    """
    d, e = p.d, p.value_dim

    def held(a: int, r: int, i: int, b: int, c: int, j: int) -> int:
        words = c * (d + e) + r * (d + e + 2)
        if "dK" in sums:
            words += (c if i else j - b) * (d + e)
        if "dQ" in sums:
            words += (r if b else i - a + (j > 0)) * d
        return words + pair_peak(p, sums, i == 0, j == 0)

    return max(
        held(a, r, i, b, c, j)
        for (a, r), (b, c) in product(_ends(p.n, rows), _ends(p.keys, cols))
        for i, j in product({a, a + r - 1}, {b, b + c - 1})
    )


def _ends(extent: int, size: int) -> list[tuple[int, int]]:
    """Give start and size of the first, the second and the last block."""
    size = min(size, extent)
    starts = {0, size, (extent - 1) // size * size} - {extent}
    return [(start, min(size, extent - start)) for start in sorted(starts)]


def pair_computes(p: Attention) -> int:
    """Give the computes that form P and dS for a pair."""
    return 2 * p.d + 2 * p.value_dim + 1


def blocks_by_columns(
    name: str, problem: Attention, cache: int, asked: tuple[str, int | None, int | None]
) -> tuple[int, int]:
    """Settle the blocks of a pass for dV, dQ and dK with the columns outside.

    Its words depend on the columns of a block alone, so the best blocks have one row.

    Raises
    ------
    ProblemError, SizeError, UnknownName
        No backward pass; blocks that overflow the cache; an unknown rule.
    """
    require(name, problem, "backward")
    rule, rows, cols = rule_or_sizes(*asked)
    cache = positive("cache", cache, "the words of fast memory")
    p = problem
    if rule == "best":
        least = peak(p, 1, 1, EVERY)
        if cache < least:
            raise too_small(name, cache, least)
        return 1, largest(p.keys, lambda cols: peak(p, 1, cols, EVERY) <= cache)
    if rule == "published":
        cols = -(-cache // (4 * p.d))
        rows = min(cols, p.d)
    rows, cols = min(rows, p.n), min(cols, p.keys)
    words = peak(p, rows, cols, EVERY)
    need(f"{name}, {rule} blocks", words, cache, f"rows = {rows}, cols = {cols}")
    return rows, cols
