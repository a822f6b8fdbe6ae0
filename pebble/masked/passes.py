"""The forward and the backward pass under a mask; `pebble.Attention` lists their vertices.

Sums over keys run over the keys that a query attends to, sums over queries over the queries that
attend to a key, in increasing order. A query that attends to nothing has no vertices but its inputs
(its rows of the outputs are zeros, by definition), and so has a key that nothing attends to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pebble.families import Function
from pebble.masked.builder import Builder
from pebble.masked.family import ChainSums, Family, Sums
from pebble.masked.graph import NO_VERTEX, MaskedGraph
from pebble.masked.places import Place, Space

if TYPE_CHECKING:
    from pebble.attention import Attention
    from pebble.masks import Mask

Ints = NDArray[np.int64]


def masked_graph(p: Attention) -> MaskedGraph:
    """Give the graph of a pass under its mask."""
    assert p.mask is not None
    return {"forward": forward_graph, "backward": backward_graph}[p.direction](p, p.mask)


def forward_graph(p: Attention, mask: Mask) -> MaskedGraph:
    """Give the graph of the forward pass with the plain softmax."""
    build = Builder(mask)
    _, _, s = _scores(build, p)
    V = build.inputs("V", Space.KEYS, p.value_dim)
    P = build.weights("P", Function.EXP, lambda ij: (s.last[ij],))
    l = build.row_sums("l", P)
    y = build.pairs("y", p.value_dim, Function.PRODUCT, lambda ij, c: (P[ij], V[ij.key, c]))
    o = build.row_sums("o", y)
    O = build.per_query("O", p.value_dim, Function.QUOTIENT, lambda i, c: (o.last(i, c), l.last(i)))
    _per_query_output(build, O)
    if p.logsumexp:
        Lse = build.per_query("Lse", 1, Function.LOG, lambda i, _: (l.last(i),), indexed=False)
        _per_query_output(build, Lse)
    return build.graph()


def backward_graph(p: Attention, mask: Mask) -> MaskedGraph:
    """Give the graph of the backward pass, from the logsumexp."""
    e = p.value_dim
    build = Builder(mask)
    Q, K, s = _scores(build, p)
    V = build.inputs("V", Space.KEYS, e)
    O, dO = build.inputs("O", Space.QUERIES, e), build.inputs("dO", Space.QUERIES, e)
    Lse = build.inputs("Lse", Space.QUERIES, 1, indexed=False)
    P = build.weights("P", Function.EXP_OF_DIFFERENCE, lambda ij: (s.last[ij], Lse[ij.query]))
    z = build.per_query("z", e, Function.PRODUCT, lambda i, c: (dO[i, c], O[i, c]))
    D = build.sums("D", z)
    w = build.pairs("w", e, Function.PRODUCT, lambda ij, c: (dO[ij.query, c], V[ij.key, c]))
    dP = build.sums("dP", w)
    G = build.weights("G", Function.DIFFERENCE, lambda ij: (dP.last[ij], D.last[ij.query]))
    dS = build.weights("dS", Function.PRODUCT, lambda ij: (P[ij], G[ij]))
    v = build.pairs("v", e, Function.PRODUCT, lambda ij, c: (P[ij], dO[ij.query, c]))
    q = build.pairs("q", p.d, Function.PRODUCT, lambda ij, k: (dS[ij], K[ij.key, k]))
    k = build.pairs("k", p.d, Function.PRODUCT, lambda ij, k: (dS[ij], Q[ij.query, k]))
    dV, dQ, dK = build.column_sums("dV", v), build.row_sums("dQ", q), build.column_sums("dK", k)
    for name, sums in (("dQ", dQ), ("dK", dK), ("dV", dV)):
        _chain_output(build, name, sums)
    return build.graph()


def _scores(build: Builder, p: Attention) -> tuple[Family, Family, Sums]:
    Q, K = build.inputs("Q", Space.QUERIES, p.d), build.inputs("K", Space.KEYS, p.d)
    x = build.pairs("x", p.d, Function.PRODUCT, lambda ij, k: (Q[ij.query, k], K[ij.key, k]))
    return Q, K, build.sums("s", x)


def _per_query_output(build: Builder, part: Family) -> None:
    mask, table = build.mask, build.table

    def numbers() -> Ints:
        found = np.full((mask.n, part.width), NO_VERTEX)
        found[table.active] = part.base + np.arange(len(table.active) * part.width).reshape(
            -1, part.width
        )
        return found if part.indexed else found[:, 0]

    build.output(part.name, mask.touched_rows * part.width, numbers)


def _chain_output(build: Builder, name: str, sums: ChainSums) -> None:
    mask, width = build.mask, sums.term.width
    counts = mask.row_counts if sums.along_rows else mask.column_counts
    space = Space.QUERIES if sums.along_rows else Space.KEYS

    def numbers() -> Ints:
        found = np.full((len(counts), width), NO_VERTEX)
        touched = np.flatnonzero(counts)
        cells = sums.last(Place(space, 1, touched.reshape(-1, 1, 1))).numbers
        assert cells is not None
        found[touched] = cells[:, 0, :]
        return found

    build.output(name, int(np.count_nonzero(counts)) * width, numbers)
