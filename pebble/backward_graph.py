"""The backward pass as a graph; `Attention` lists its vertices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pebble.families import Family, Function, family, inputs, sums
from pebble.family_graph import FamilyGraph
from pebble.forward_graph import scores

if TYPE_CHECKING:
    from pebble.attention import Attention


def backward_graph(p: Attention) -> FamilyGraph:
    """Give the graph of the backward pass."""
    return _from_weights(p) if p.saved_weights else _from_logsumexp(p)


def _from_logsumexp(p: Attention) -> FamilyGraph:
    n, m, d, e = p.n, p.keys, p.d, p.value_dim
    Q, K, x, s = scores(p)
    V, O, dO = inputs("V", m, e), inputs("O", n, e), inputs("dO", n, e)
    Lse = inputs("Lse", n)
    P = family("P", (n, m), Function.EXP_OF_DIFFERENCE, lambda i, j: (s[i, j, d - 1], Lse[i]))
    z = family("z", (n, e), Function.PRODUCT, lambda i, c: (dO[i, c], O[i, c]))
    D = sums("D", z, 1)
    w = family("w", (n, m, e), Function.PRODUCT, lambda i, j, c: (dO[i, c], V[j, c]))
    dP = sums("dP", w, 2)
    G = family("G", (n, m), Function.DIFFERENCE, lambda i, j: (dP[i, j, e - 1], D[i, e - 1]))
    return _graph((Q, K, V, O, dO, Lse, x, s, P, z, D, w, dP), Q, K, dO, P, G)


def _from_weights(p: Attention) -> FamilyGraph:
    n, m, d, e = p.n, p.keys, p.d, p.value_dim
    Q, K, V = inputs("Q", n, d), inputs("K", m, d), inputs("V", m, e)
    P, dO = inputs("P", n, m), inputs("dO", n, e)
    w = family("w", (n, m, e), Function.PRODUCT, lambda i, j, c: (dO[i, c], V[j, c]))
    dP = sums("dP", w, 2)
    z = family("z", (n, m), Function.PRODUCT, lambda i, j: (P[i, j], dP[i, j, e - 1]))
    D = sums("D", z, 1)
    G = family("G", (n, m), Function.DIFFERENCE, lambda i, j: (dP[i, j, e - 1], D[i, m - 1]))
    return _graph((Q, K, V, P, dO, w, dP, z, D), Q, K, dO, P, G)


def _graph(
    before: tuple[Family, ...], Q: Family, K: Family, dO: Family, P: Family, G: Family
) -> FamilyGraph:
    (n, d), (m, _), (_, e) = Q.shape, K.shape, dO.shape
    dS = family("dS", (n, m), Function.PRODUCT, lambda i, j: (P[i, j], G[i, j]))
    v = family("v", (n, m, e), Function.PRODUCT, lambda i, j, c: (P[i, j], dO[i, c]))
    q = family("q", (n, m, d), Function.PRODUCT, lambda i, j, k: (dS[i, j], K[j, k]))
    k = family("k", (n, m, d), Function.PRODUCT, lambda i, j, k: (dS[i, j], Q[i, k]))
    dV, dQ, dK = sums("dV", v, 0), sums("dQ", q, 1), sums("dK", k, 0)
    outputs = dQ[:, m - 1, :], dK[n - 1, :, :], dV[n - 1, :, :]
    return FamilyGraph((*before, G, dS, v, q, k, dV, dQ, dK), outputs)
