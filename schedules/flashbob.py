"""FlashBoB: the double backward pass in two passes over its pairs, and a control in three."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.affine import Affine
from pebble.attention import Attention
from pebble.checks import positive
from pebble.cost import Cost
from pebble.families import Family
from pebble.problem import require
from pebble.registry import register
from pebble.schedule import Schedule
from pebble.tapes import Index, Tape
from schedules.blocks import largest, need, rule_or_sizes, too_small

Pair = tuple[Affine, Affine]


@dataclass(frozen=True)
class Passes:
    """The block of each pass; `alpha_rows` is 0 where the row pass forms alpha."""

    rows: int
    cols: int
    alpha_rows: int


@register(kinds=("double_backward",))
def flashbob(
    problem: Attention, cache: int, *, rows: int | None = None, cols: int | None = None
) -> Schedule:
    """Give FlashBoB with its blocks.

    Row pass: Q, dO, UQ, Lse and D of a block of queries stay, with the row's sums A, B, E, U,
    alpha and eps, while K, V, UK and UV pass, one key at a time; at the end O passes and Qt, dOt,
    alpha and eps are stored. Column pass: K, V, UK and UV of a block of keys stay, with the sums
    Kt and Vt, while Q, dO, UQ, Lse, D, alpha and eps pass, one query at a time; the weights and
    all that is formed from a pair alone are computed again. With e = value_dim::

        I/O       3 n (d + e) + 2 n + 2 keys (d + e) ceil(n / rows)
                  + 3 keys (d + e) + (2 d + e + 2) n ceil(keys / cols)
                  + 2 n + 2 n ceil(keys / cols)   (alpha and eps, for keys > 1)
        computes  those of the graph + n keys (6 d + 4 e + 3)
        peak      the larger of  rows (5 d + 2 e + 4) + 2 (d + e) + h   (for keys > 1)
                           and   3 cols (d + e) + 2 d + e + 4 + h   (for n, keys > 1)
                  h = 5 for e = 1, else 6

    That is 12 n d + 4 n + 4 d n^2 / rows + (3 d + 4) n^2 / cols words for n = keys, d = e and
    blocks that divide n, as published. With one key, alpha and eps are its PF and PH: they are
    computed again, so they do not move. The peak in general is `row_peak` and `column_peak`.

    The paper has O in fast memory with Q, dO and UQ throughout. It is needed for dOt alone, so
    here it comes at the end, row by row: that moves the same words, and a row takes e words less.

    Parameters
    ----------
    problem : Attention
        What to compute.
    cache : int
        M, in words.
    rows, cols : int, optional
        Queries in a block of the row pass and keys in a block of the column pass; both or none.
        If none are given each pass takes the largest that fits, which moves the fewest words.

    Raises
    ------
    ProblemError, SizeError
        No double backward pass; blocks that overflow the cache; sizes that are not positive.

    References
    ----------
    "FlashBoB", arXiv 2609.24089.

    Examples
    --------
    Two rows of 5 + 2 + 4 words, a key of 4 words and 5 more are 31; four keys of 6 words, a query
    of 3 + 4 words and 5 more are 36. In 2 blocks of rows and 1 of keys
    12 * 4 + 4 * 4 + 4 * 4 * 2 + 7 * 4 * 1 words move.

    >>> import pebble
    >>> cost = flashbob(pebble.Attention(n=4, d=1, direction="double_backward"), cache=36).count()
    >>> cost.io, cost.peak
    (124, 36)
    """
    return _schedule("flashbob", problem, cache, rows, cols, apart=False)


@register(kinds=("double_backward",))
def three_pass_double_backward(
    problem: Attention, cache: int, *, rows: int | None = None, cols: int | None = None
) -> Schedule:
    """Give the double backward pass that forms alpha before all else: FlashBoB's control.

    A first pass forms alpha: Q, UQ and Lse of a block of queries stay while K and UK pass, one key
    at a time. Then come FlashBoB's two passes, but the row pass loads alpha, at its end, in place
    of forming and storing it. With the blocks of `flashbob` that is more by::

        I/O       2 n d + 2 n + 2 keys d ceil(n / alpha_rows)
        computes  6 n keys d

    and a row of the row pass takes a word less. The first pass holds::

        alpha_rows (2 d + 2) + 2 d + 3   (+ 1 for d > 1)

    words, never more than the row pass with as many rows. With one key, alpha is its PF, so there
    is no first pass and this is FlashBoB. Given rows are those of the first pass too; the rest is
    as in `flashbob`.

    Examples
    --------
    FlashBoB's 124 words with these blocks, and 2 * 4 + 2 * 4 + 2 * 4 more, for all 4 rows pass
    at once: 4 * 4 + 2 + 3 words.

    >>> import pebble
    >>> problem = pebble.Attention(n=4, d=1, direction="double_backward")
    >>> schedule = three_pass_double_backward(problem, cache=36)
    >>> schedule.blocks, schedule.count().io
    ({'rows': 2, 'cols': 4, 'alpha_rows': 4}, 148)
    """
    return _schedule("three_pass_double_backward", problem, cache, rows, cols, apart=True)


def row_peak(p: Attention, rows: int, forms_alpha: bool) -> int:
    """Give the most words that the row pass holds, exactly.

    A row takes 2 d + e + 2 words of operands, and once it has met a key its sums: 3 d + e + 2, or
    one less where it does not form alpha; a pair takes 5 words, 6 for e > 1. The peak is at a
    later key, when all rows have their sums; with one key at the last row, as they are formed.
    """
    d, e, wide = p.d, p.value_dim, int(p.value_dim > 1)
    operands, sums = 2 * d + e + 2, 3 * d + e + 1 + forms_alpha
    if p.keys > 1:
        return rows * (operands + sums) + 2 * (d + e) + 5 + wide
    # The stages are: H is formed, with E, U and alpha there; A, with eps too; and B.
    last = max(d + e + 6 + wide, 2 * d + e + 5, 3 * d + e + 3)
    return rows * operands + (rows - 1) * sums + 2 * (d + e) + last


def column_peak(p: Attention, cols: int) -> int:
    """Give the most words that the column pass holds, exactly.

    A key takes 2 (d + e) words of operands, and once it has met a query its sums: d + e; a query
    takes 2 d + e + 4, and a pair 5, 6 for e > 1. The peak is at a later query, when all keys have
    their sums; with one query at the last key, as they are formed. With one key alpha and eps are
    not loaded, and a pair keeps PF as alpha.
    """
    d, e, wide, alone = p.d, p.value_dim, int(p.value_dim > 1), int(p.keys == 1)
    query, pair = 2 * d + e + 4 - 2 * alone, 5 + wide + alone
    if p.n > 1:
        return 3 * cols * (d + e) + query + pair
    # The stages are: H is formed, with Vt there; and Kt.
    last = max(e + pair, d + e + 3)
    return 2 * cols * (d + e) + (cols - 1) * (d + e) + query + last


def alpha_peak(p: Attention, rows: int) -> int:
    """Give the most words that a pass for alpha alone holds, exactly; there are 2 keys or more.

    A row takes 2 d + 1 words and alpha, a key 2 d, and a pair 3, 4 for d > 1.
    """
    return rows * (2 * p.d + 2) + 2 * p.d + 3 + int(p.d > 1)


def peak(p: Attention, cut: Passes) -> int:
    """Give the most words that the passes hold, exactly."""
    peaks = [row_peak(p, cut.rows, not cut.alpha_rows), column_peak(p, cut.cols)]
    return max(*peaks, alpha_peak(p, cut.alpha_rows) if cut.alpha_rows else 0)


def cost(p: Attention, cut: Passes) -> Cost:
    """Give the cost in closed form."""
    n, m, d, e = p.n, p.keys, p.d, p.value_dim
    row_blocks, col_blocks = -(-n // cut.rows), -(-m // cut.cols)
    spilled = 2 if m > 1 else 0  # alpha and eps
    loads = n * (2 * d + 2 * e + 2) + row_blocks * m * 2 * (d + e)
    loads += m * 2 * (d + e) + col_blocks * n * (2 * d + e + 2 + spilled)
    stores = n * (d + e + spilled) + m * (d + e)
    computes = p.graph.size - p.graph.input_words + p.pairs * (6 * d + 4 * e + 3)
    if cut.alpha_rows:
        loads += n * (2 * d + 1) + n + -(-n // cut.alpha_rows) * m * 2 * d
        computes += p.pairs * 6 * d
    return Cost(loads, stores, computes, loads + computes, peak(p, cut))


def _schedule(
    name: str, problem: Attention, cache: int, rows: int | None, cols: int | None, apart: bool
) -> Schedule:
    """Settle the blocks and put a schedule together; `apart`: alpha has a pass of its own."""
    require(name, problem, "double_backward")
    rule, r, c = rule_or_sizes("best", rows, cols)
    p, cache = problem, positive("cache", cache, "the words of fast memory")
    apart = apart and p.keys > 1
    if rule == "given":
        r, c = min(r, p.n), min(c, p.keys)
        cut = Passes(r, c, r if apart else 0)
        need(f"{name}, given blocks", peak(p, cut), cache, f"rows = {r}, cols = {c}")
    else:
        least = peak(p, Passes(1, 1, int(apart)))
        if cache < least:
            raise too_small(name, cache, least)
        cut = Passes(
            largest(p.n, lambda rows: row_peak(p, rows, not apart) <= cache),
            largest(p.keys, lambda cols: column_peak(p, cols) <= cache),
            largest(p.n, lambda rows: alpha_peak(p, rows) <= cache) if apart else 0,
        )
    sizes = {"rows": cut.rows, "cols": cut.cols}
    sizes |= {"alpha_rows": cut.alpha_rows} if apart else {}

    def write(tape: Tape) -> None:
        if apart:
            alpha_pass(tape, p, cut.alpha_rows)
        row_pass(tape, p, cut.rows, not apart)
        column_pass(tape, p, cut.cols)

    return Schedule(name, p, int(cache), sizes, cost(p, cut), write)


def alpha_pass(tape: Tape, p: Attention, rows: int) -> None:
    """Form alpha and store it."""
    g = p.graph
    P, F, PF, alpha = (g[name] for name in ("P", "F", "PF", "alpha"))
    for I in tape.blocks(p.n, rows):
        operands = g["Q"][I, :], g["UQ"][I, :], g["Lse"][I]
        tape.load(*operands)
        for j in tape.each(p.keys):
            tape.load(g["K"][j, :], g["UK"][j, :])
            for i in tape.each(I):
                tangent(tape, p, i, j)
                weight(tape, p, i, j)
                tape.compute(PF[i, j])
                tape.delete(P[i, j], F[i, j, p.d - 1])
                if not j.first:  # PF[i,0] is the first sum
                    tape.compute(alpha[i, j])
                    tape.delete(PF[i, j], alpha[i, j - 1])
            tape.delete(g["K"][j, :], g["UK"][j, :])
        tape.store(alpha[I, p.keys - 1])
        tape.delete(alpha[I, p.keys - 1], *operands)


def row_pass(tape: Tape, p: Attention, rows: int, forms_alpha: bool) -> None:
    """Form Qt and dOt, and eps and alpha for the columns; or take an alpha that is formed."""
    g, last = p.graph, p.keys - 1
    for I in tape.blocks(p.n, rows):
        operands = [*(g[name][I, :] for name in ("Q", "dO", "UQ")), g["Lse"][I], g["D"][I]]
        tape.load(*operands)
        for j in tape.each(p.keys):
            key = [g[name][j, :] for name in ("K", "V", "UK", "UV")]
            tape.load(*key)
            for i in tape.each(I):
                row_pair(tape, p, i, j, forms_alpha)
            tape.delete(*key)
        tape.delete(*operands)
        for i in tape.each(I):  # the keys are gone: from here on no peak is reached
            alpha, eps, O = g["alpha"][i, last], g["eps"][i, last], g["O"][i, :]
            formed = [g[name][i, :] for name in ("aB", "AB", "eE", "Qt", "aO", "dOt")]
            tape.load(O, *([] if forms_alpha else [alpha]))
            tape.compute(*formed)
            tape.store(g["Qt"][i, :], g["dOt"][i, :])
            tape.delete(O, *formed, *(g[name][i, last, :] for name in "ABEU"))
            if p.keys > 1:  # else the column pass computes them, as PF and PH
                tape.store(eps, *([alpha] if forms_alpha else []))
            tape.delete(alpha, eps)


def row_pair(tape: Tape, p: Attention, i: Affine, j: Index, forms_alpha: bool) -> None:
    """Add a pair's terms to the sums of its row."""
    g, d, e = p.graph, p.d, p.value_dim
    at, before = (i, j), None if j.first else (i, j - 1)
    PF, alpha, eps = g["PF"], g["alpha"], g["eps"]

    # E += P K, U += P UV + PF V, alpha += PF
    weight(tape, p, i, j)
    add(tape, g["g"], g["E"], g["E"], at, before, d)
    add(tape, g["u1"], g["U1"], g["U"], at, before, e)
    tangent(tape, p, i, j)
    tape.compute(PF[i, j])
    if forms_alpha and not j.first:
        tape.compute(alpha[i, j])
        tape.delete(alpha[i, j - 1])
    add(tape, g["u2"], g["U"], g["U1"], at, at, e)
    if not (forms_alpha and j.first):  # PF[i,0] is the first sum of alpha
        tape.delete(PF[i, j])

    # eps += PH, A += PH K + dS UK, B += dS K
    gradients(tape, p, i, j)
    tape.delete(g["P"][i, j])
    add(tape, g["a1"], g["A1"], g["A"], at, before, d)
    if not j.first:  # PH[i,0] is the first sum of eps
        tape.compute(eps[i, j])
        tape.delete(eps[i, j - 1], g["PH"][i, j])
    add(tape, g["a2"], g["A"], g["A1"], at, at, d)
    add(tape, g["b"], g["B"], g["B"], at, before, d)
    tape.delete(g["dS"][i, j])


def column_pass(tape: Tape, p: Attention, cols: int) -> None:
    """Form Kt and Vt."""
    g, last = p.graph, p.keys - 1
    for J in tape.blocks(p.keys, cols):
        keys = [g[name][J, :] for name in ("K", "V", "UK", "UV")]
        tape.load(*keys)
        for i in tape.each(p.n):
            query = [*(g[name][i, :] for name in ("Q", "dO", "UQ")), g["Lse"][i], g["D"][i]]
            if p.keys > 1:  # else they are PF and PH, which are computed
                query += [g["alpha"][i, last], g["eps"][i, last]]
            tape.load(*query)
            for j in tape.each(J):
                column_pair(tape, p, i, j)
            tape.delete(*query)
        tape.delete(*keys)
        outputs = g["Kt"][p.n - 1, J, :], g["Vt"][p.n - 1, J, :]
        tape.store(*outputs)
        tape.delete(*outputs)


def column_pair(tape: Tape, p: Attention, i: Index, j: Affine) -> None:
    """Add a pair's terms to the sums of its column."""
    g, alone = p.graph, p.keys == 1
    at, before = (i, j), None if i.first else (i - 1, j)
    P, PF, PH, dS = (g[name][at] for name in ("P", "PF", "PH", "dS"))
    aP, W, aS, HS, eP, St = (g[name][at] for name in ("aP", "W", "aS", "HS", "eP", "St"))

    # W = PF - alpha P, Vt += W dO; with one key PF is alpha, which aS needs too
    weight(tape, p, i, j)
    tangent(tape, p, i, j)
    tape.compute(PF, aP, W)
    tape.delete(aP, *([] if alone else [PF]))
    add(tape, g["r"], g["Vt"], g["Vt"], at, before, p.value_dim)
    tape.delete(W)

    # St = PH - alpha dS - eps P, Kt += St Q + dS UQ; with one key PH is eps, which eP needs too
    gradients(tape, p, i, j)
    tape.compute(aS, HS)
    tape.delete(aS, PF if alone else PH)
    tape.compute(eP, St)
    tape.delete(P, HS, eP, *([PH] if alone else []))
    add(tape, g["t1"], g["T1"], g["Kt"], at, before, p.d)
    tape.delete(St)
    add(tape, g["t2"], g["Kt"], g["T1"], at, at, p.d)
    tape.delete(dS)


# What the passes share: steps on a pair, each of which leaves red only what is still needed.


def weight(tape: Tape, p: Attention, i: Affine, j: Affine) -> None:
    """Form the weight P of a pair."""
    dot(tape, p.graph["x"], p.graph["s"], i, j, p.d)
    tape.compute(p.graph["P"][i, j])
    tape.delete(p.graph["s"][i, j, p.d - 1])


def tangent(tape: Tape, p: Attention, i: Affine, j: Affine) -> None:
    """Form F of a pair, the score's change along UQ and UK."""
    f1, f2, F1, F = (p.graph[name] for name in ("f1", "f2", "F1", "F"))
    for k in tape.each(p.d):
        tape.compute(f1[i, j, k])
        if not k.first:
            tape.compute(F1[i, j, k])
            tape.delete(f1[i, j, k], F[i, j, k - 1])
        tape.compute(f2[i, j, k], F[i, j, k])
        tape.delete(f2[i, j, k], F1[i, j, k])


def gradients(tape: Tape, p: Attention, i: Affine, j: Affine) -> None:
    """Form dS and PH of a pair from its P, which stays, and its F, which goes."""
    g, last = p.graph, p.value_dim - 1
    F, C, dP, G, FG, H = (g[name] for name in ("F", "C", "dP", "G", "FG", "H"))
    dot(tape, g["w"], dP, i, j, p.value_dim)
    tape.compute(G[i, j], FG[i, j])
    tape.delete(dP[i, j, last], F[i, j, p.d - 1])
    tape.compute(g["dS"][i, j])
    tape.delete(G[i, j])
    dot(tape, g["c"], C, i, j, p.value_dim)
    tape.compute(H[i, j])
    tape.delete(C[i, j, last], FG[i, j])
    tape.compute(g["PH"][i, j])
    tape.delete(H[i, j])


def dot(tape: Tape, term: Family, total: Family, i: Affine, j: Affine, extent: int) -> None:
    """Form a pair's sum over its last index."""
    for k in tape.each(extent):
        tape.compute(term[i, j, k])
        if not k.first:
            tape.compute(total[i, j, k])
            tape.delete(term[i, j, k], total[i, j, k - 1])


def add(
    tape: Tape, term: Family, new: Family, old: Family, at: Pair, before: Pair | None, extent: int
) -> None:
    """Add the terms of the pair `at` to the sums `old` at `before`; None: there are none yet."""
    for k in tape.each(extent):
        tape.compute(term[*at, k])
        if before is not None:
            tape.compute(new[*at, k])
            tape.delete(term[*at, k], old[*before, k])
