"""Steps that several algorithms take on a pair of a query and a key, or on a query, under a mask.

Each step leaves red only what is still needed. Forming a product and adding it holds the old sum,
the product and the new sum at once.
"""

from __future__ import annotations

from pebble.attention import Attention
from pebble.masked.places import Pair, Place
from pebble.masked.tapes import Tape


def add_products(tape: Tape, p: Attention, ij: Pair) -> None:
    """Form the score of a pair: the products of Q[i,k] and K[j,k], added in order."""
    x, s = p.graph["x"], p.graph["s"]
    for k in tape.inner(p.d):
        tape.compute(x[ij, k])
        if not k.first:
            tape.compute(s[ij, k])
            tape.delete(x[ij, k], s[ij, k.before])


def add_weight(tape: Tape, p: Attention, ij: Pair) -> None:
    """Take a score to its weight, P = exp(S), and add it to the row sum l."""
    s, P, l = p.graph["s"], p.graph["P"], p.graph["l"]
    tape.compute(P[ij])
    tape.delete(s.last[ij])
    if not ij.row_first:  # the row's first weight is its first sum
        tape.compute(l[ij])
        tape.delete(l[ij.left])


def add_values(tape: Tape, p: Attention, ij: Pair) -> None:
    """Add the products of P[i,j] and V[j,c] to the row's sums o, and drop the weight."""
    P, y, o = p.graph["P"], p.graph["y"], p.graph["o"]
    for c in tape.inner(p.value_dim):
        tape.compute(y[ij, c])
        if not ij.row_first:
            tape.compute(o[ij, c])
            tape.delete(y[ij, c], o[ij.left, c])
    if not ij.row_first:
        tape.delete(P[ij])


def finish(tape: Tape, p: Attention, i: Place) -> None:
    """Divide a row's sums by the row sum, store the outputs, and drop the sums."""
    l, o, O = p.graph["l"], p.graph["o"], p.graph["O"]
    for c in tape.inner(p.value_dim):
        tape.compute(O[i, c])
        tape.store(O[i, c])
        tape.delete(O[i, c], o.last(i, c))
    if p.logsumexp:
        Lse = p.graph["Lse"]
        tape.compute(Lse[i])
        tape.store(Lse[i])
        tape.delete(Lse[i])
    tape.delete(l.last(i))
