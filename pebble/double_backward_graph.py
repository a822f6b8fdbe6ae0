"""The backward pass of the backward pass as a graph; `Attention` lists its vertices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pebble.families import Family, Function, Piece, chain, family, inputs, sums
from pebble.family_graph import FamilyGraph
from pebble.forward_graph import scores

if TYPE_CHECKING:
    from pebble.attention import Attention


def double_backward_graph(p: Attention) -> FamilyGraph:
    """Give the graph of the double backward pass.

    The row sum E enters the rest linearly: E = eps - alpha D with eps the row sum of P o H, and so
    St = P o H - alpha dS - eps P. In this form no term of a row's outputs has to wait for the
    row's alpha and eps, which is what lets one pass over a row form all of them.
    """
    n, m, d, e = p.n, p.keys, p.d, p.value_dim
    pairs = (n, m)
    Q, K, x, s = scores(p)
    V, O, dO = inputs("V", m, e), inputs("O", n, e), inputs("dO", n, e)
    Lse, D = inputs("Lse", n), inputs("D", n)
    UQ, UK, UV = inputs("UQ", n, d), inputs("UK", m, d), inputs("UV", m, e)

    P = family("P", pairs, Function.EXP_OF_DIFFERENCE, lambda i, j: (s[i, j, d - 1], Lse[i]))
    # F = UQ K^T + Q UK^T, one chain of the terms UQ[i,0] K[j,0], Q[i,0] UK[j,0], UQ[i,1] K[j,1] ...
    f1 = family("f1", (n, m, d), Function.PRODUCT, lambda i, j, k: (UQ[i, k], K[j, k]))
    f2 = family("f2", (n, m, d), Function.PRODUCT, lambda i, j, k: (Q[i, k], UK[j, k]))
    F1, F = alternating("F1", "F", f1, f2, 2)
    c = family("c", (n, m, e), Function.PRODUCT, lambda i, j, c: (dO[i, c], UV[j, c]))
    C = sums("C", c, 2)
    w = family("w", (n, m, e), Function.PRODUCT, lambda i, j, c: (dO[i, c], V[j, c]))
    dP = sums("dP", w, 2)

    G = family("G", pairs, Function.DIFFERENCE, lambda i, j: (dP[i, j, e - 1], D[i]))
    dS = family("dS", pairs, Function.PRODUCT, lambda i, j: (P[i, j], G[i, j]))
    PF = family("PF", pairs, Function.PRODUCT, lambda i, j: (P[i, j], F[i, j, d - 1]))
    FG = family("FG", pairs, Function.PRODUCT, lambda i, j: (F[i, j, d - 1], G[i, j]))
    H = family("H", pairs, Function.SUM, lambda i, j: (C[i, j, e - 1], FG[i, j]))
    PH = family("PH", pairs, Function.PRODUCT, lambda i, j: (P[i, j], H[i, j]))
    alpha, eps = sums("alpha", PF, 1), sums("eps", PH, 1)

    # Rows: Qt = sum of (PH K + dS UK) - alpha (sum of dS K) - eps (sum of P K),
    #       dOt = sum of (P UV + PF V) - alpha O.
    def over(name: str, left: Family, right: Family) -> Family:
        shape = (*pairs, right.shape[1])
        return family(name, shape, Function.PRODUCT, lambda i, j, k: (left[i, j], right[j, k]))

    a1, a2 = over("a1", PH, K), over("a2", dS, UK)
    A1, A = alternating("A1", "A", a1, a2, 1)
    b, g = over("b", dS, K), over("g", P, K)
    B, E = sums("B", b, 1), sums("E", g, 1)
    u1, u2 = over("u1", P, UV), over("u2", PF, V)
    U1, U = alternating("U1", "U", u1, u2, 1)
    last = m - 1
    aB = family("aB", (n, d), Function.PRODUCT, lambda i, k: (alpha[i, last], B[i, last, k]))
    AB = family("AB", (n, d), Function.DIFFERENCE, lambda i, k: (A[i, last, k], aB[i, k]))
    eE = family("eE", (n, d), Function.PRODUCT, lambda i, k: (eps[i, last], E[i, last, k]))
    Qt = family("Qt", (n, d), Function.DIFFERENCE, lambda i, k: (AB[i, k], eE[i, k]))
    aO = family("aO", (n, e), Function.PRODUCT, lambda i, c: (alpha[i, last], O[i, c]))
    dOt = family("dOt", (n, e), Function.DIFFERENCE, lambda i, c: (U[i, last, c], aO[i, c]))

    # Columns: Kt = sum of (St Q + dS UQ), Vt = sum of (PF - alpha P) dO.
    aS = family("aS", pairs, Function.PRODUCT, lambda i, j: (alpha[i, last], dS[i, j]))
    HS = family("HS", pairs, Function.DIFFERENCE, lambda i, j: (PH[i, j], aS[i, j]))
    eP = family("eP", pairs, Function.PRODUCT, lambda i, j: (eps[i, last], P[i, j]))
    St = family("St", pairs, Function.DIFFERENCE, lambda i, j: (HS[i, j], eP[i, j]))
    aP = family("aP", pairs, Function.PRODUCT, lambda i, j: (alpha[i, last], P[i, j]))
    W = family("W", pairs, Function.DIFFERENCE, lambda i, j: (PF[i, j], aP[i, j]))

    def down(name: str, left: Family, right: Family) -> Family:
        shape = (*pairs, right.shape[1])
        return family(name, shape, Function.PRODUCT, lambda i, j, k: (left[i, j], right[i, k]))

    t1, t2 = down("t1", St, Q), down("t2", dS, UQ)
    T1, Kt = alternating("T1", "Kt", t1, t2, 0)
    r = down("r", W, dO)
    Vt = sums("Vt", r, 0)

    families = (
        *(Q, K, V, O, dO, Lse, D, UQ, UK, UV),
        *(x, s, P, f1, f2, F1, F, c, C, w, dP, G, dS, PF, FG, H, PH, alpha, eps),
        *(a1, a2, A1, A, b, B, g, E, u1, u2, U1, U, aB, AB, eE, Qt, aO, dOt),
        *(aS, HS, eP, St, aP, W, t1, t2, T1, Kt, r, Vt),
    )
    return FamilyGraph(families, (Qt[:, :], Kt[n - 1, :, :], Vt[n - 1, :, :], dOt[:, :]))


def alternating(
    odd: str, even: str, first: Family, second: Family, axis: int
) -> tuple[Family, Family]:
    """Give the two families of a chain that adds first[0], second[0], first[1], second[1], ...

    The sums after a term of `first` are `odd` (its index 0 is another name of the first term),
    those after a term of `second` are `even`.
    """

    def rule(*index: int) -> tuple[object, ...]:
        before = (*index[:axis], index[axis] - 1, *index[axis + 1 :])
        return total[before], first[index]

    half = chain(odd, first.shape, axis, Function.SUM, lambda *index: first[index], rule)  # type: ignore[arg-type]
    # Cut along the chain, where `half` changes from another name to sums of its own.
    both = Piece(0, first.shape[axis], Function.SUM, lambda *index: (half[index], second[index]))
    total = Family(even, first.shape, (both,), axis)
    return half, total
