"""What backward schedules under a mask share: the steps on a pair or a query, and their costs.

As in `schedules.backward`, at a pair P and dS are formed anew, and added to those of dV, dQ and dK
that a schedule is after; each chain begins at the first pair of its row or column.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from pebble.attention import Attention
from pebble.masked.places import Pair, Place
from pebble.masked.schedule import MaskedSchedule
from pebble.masked.tapes import Tape, Tile
from schedules.masked.steps import add_products

DELTA_ROWS = 1024  # queries whose D is formed between two yields; the moves are the same for any


def add_delta(tape: Tape, p: Attention, i: Place) -> None:
    """D = rowsum(dO o O) for a query; dO[i,:] is red, and O passes word by word."""
    O, z, D = p.graph["O"], p.graph["z"], p.graph["D"]
    for c in tape.inner(p.value_dim):
        tape.load(O[i, c])
        tape.compute(z[i, c])
        tape.delete(O[i, c])
        if not c.first:
            tape.compute(D[i, c])
            tape.delete(z[i, c], D[i, c.before])


def write_delta(tape: Tape, p: Attention) -> Iterator[None]:
    """D = rowsum(dO o O), written: a pass that reads dO and O of the queries that attend."""
    O, dO, z, D = (p.graph[name] for name in ("O", "dO", "z", "D"))
    for I in tape.query_blocks(DELTA_ROWS, p.keys):
        for i in tape.each(I.members):
            for c in tape.inner(p.value_dim):
                tape.load(dO[i, c], O[i, c])
                tape.compute(z[i, c])
                tape.delete(dO[i, c], O[i, c])
                if not c.first:
                    tape.compute(D[i, c])
                    tape.delete(z[i, c], D[i, c.before])
            tape.store(D.last[i])
            tape.delete(D.last[i])
        yield


def form_weight(tape: Tape, p: Attention, ij: Pair) -> None:
    """P = exp(Q K^T - Lse) for a pair."""
    s, P = p.graph["s"], p.graph["P"]
    add_products(tape, p, ij)
    tape.compute(P[ij])
    tape.delete(s.last[ij])


def form_dP(tape: Tape, p: Attention, ij: Pair) -> None:
    """dP = dO V^T for a pair."""
    w, dP = p.graph["w"], p.graph["dP"]
    for c in tape.inner(p.value_dim):
        tape.compute(w[ij, c])
        if not c.first:
            tape.compute(dP[ij, c])
            tape.delete(w[ij, c], dP[ij, c.before])


def form_dS(tape: Tape, p: Attention, ij: Pair) -> None:
    """dS = P o (dO V^T - D) for a pair; P[i,j] is red and goes."""
    dP, G, P, dS = (p.graph[name] for name in ("dP", "G", "P", "dS"))
    form_dP(tape, p, ij)
    tape.compute(G[ij])
    tape.delete(dP.last[ij])
    tape.compute(dS[ij])
    tape.delete(P[ij], G[ij])


def add_dV(tape: Tape, p: Attention, ij: Pair) -> None:
    """dV += P^T dO for a pair."""
    v, dV = p.graph["v"], p.graph["dV"]
    for c in tape.inner(p.value_dim):
        tape.compute(v[ij, c])
        if not ij.column_first:  # the column's first product is its first sum
            tape.compute(dV[ij, c])
            tape.delete(v[ij, c], dV[ij.above, c])


def add_dQ(tape: Tape, p: Attention, ij: Pair) -> None:
    """dQ += dS K for a pair."""
    q, dQ = p.graph["q"], p.graph["dQ"]
    for k in tape.inner(p.d):
        tape.compute(q[ij, k])
        if not ij.row_first:
            tape.compute(dQ[ij, k])
            tape.delete(q[ij, k], dQ[ij.left, k])


def add_dK(tape: Tape, p: Attention, ij: Pair) -> None:
    """dK += dS^T Q for a pair."""
    products, dK = p.graph["k"], p.graph["dK"]
    for k in tape.inner(p.d):
        tape.compute(products[ij, k])
        if not ij.column_first:
            tape.compute(dK[ij, k])
            tape.delete(products[ij, k], dK[ij.above, k])


def differentiate(tape: Tape, p: Attention, T: Tile, sums: Collection[str]) -> None:
    """Go through the pairs of a tile; Q, dO, Lse, D and K, V of those that have one are red."""
    dS = p.graph["dS"]
    for ij in tape.pairs(T):
        form_weight(tape, p, ij)
        if "dV" in sums:
            add_dV(tape, p, ij)
        form_dS(tape, p, ij)
        if "dQ" in sums:
            add_dQ(tape, p, ij)
        if "dK" in sums:
            add_dK(tape, p, ij)
        tape.delete(dS[ij])


def with_recomputes(schedule: MaskedSchedule, computes: int) -> MaskedSchedule:
    """Give the schedule with as many computes, and deletes, more in its closed form."""
    cost = schedule.closed_form
    more = replace(cost, computes=cost.computes + computes, deletes=cost.deletes + computes)
    return replace(schedule, closed_form=more)
