"""Steps that several algorithms take on one row of queries, written as the graphs define them.

Each step leaves red only what is still needed. Forming a product and adding it holds the old sum,
the product and the new sum at once.
"""

from __future__ import annotations

from pebble.affine import Affine
from pebble.attention import Attention
from pebble.tapes import Block, Index, Tape


def add_products(tape: Tape, p: Attention, i: Affine, j: Affine, ks: Block) -> None:
    """Add the products of Q[i,k] and K[j,k], k in `ks`, to the score of (i, j)."""
    x, s = p.graph["x"], p.graph["s"]
    for k in tape.each(ks):
        tape.compute(x[i, j, k])
        if not k.first:
            tape.compute(s[i, j, k])
            tape.delete(x[i, j, k], s[i, j, k - 1])


def add_values(tape: Tape, p: Attention, i: Affine, j: Index, cs: Block) -> None:
    """Add the products of P[i,j] and V[j,c], c in `cs`, to the row's sums o."""
    y, o = p.graph["y"], p.graph["o"]
    for c in tape.each(cs):
        tape.compute(y[i, j, c])
        if not j.first:
            tape.compute(o[i, j, c])
            tape.delete(y[i, j, c], o[i, j - 1, c])


def add_weight(tape: Tape, p: Attention, i: Affine, j: Index) -> None:
    """Add P[i,j] to the row sum l; the first term is the sum so far."""
    l = p.graph["l"]
    if not j.first:
        tape.compute(l[i, j])
        tape.delete(l[i, j - 1])


def normalise(tape: Tape, p: Attention, i: Affine, cs: Block) -> None:
    """Divide the row's sums o by the row sum and store them as outputs."""
    o, O = p.graph["o"], p.graph["O"]
    for c in tape.each(cs):
        tape.compute(O[i, c])
        tape.store(O[i, c])
        tape.delete(O[i, c], o[i, p.keys - 1, c])


def store_logsumexp(tape: Tape, p: Attention, i: Affine) -> None:
    """Store the logarithm of the row sum, if the problem asks for it."""
    if p.logsumexp:
        Lse = p.graph["Lse"]
        tape.compute(Lse[i])
        tape.store(Lse[i])
        tape.delete(Lse[i])
