r"""Bounds for the backward pass, the gradient in the theory form and the double backward pass.

They cut a game into segments as `pebble.bounds.segments` does: tracing, useful instances, virtual
loads and A, with |A| <= R = M + X, are defined there. Sums are in chains in any order, the Z pairs
are any, and sliding is allowed. An output of a single term counts as its chain's first step, and a
product counts in the segment where it is added.

**The largest product of shares.** For g >= 0 let F(R)^2 be the maximum of C T (c + g T^2) over
C + T + c = R, all >= 0. Then ::

    F(R)^2 <= (27/256) R^3 max{ g R, 9/20 },      F(b R) <= b^(3/2) F(R) for 0 <= b <= 1.

*Proof.* The second holds since b C, b T, b c give b^3 C T (c + b g T^2). For the first fix T. With
g T^2 >= R - T the best c is 0: (R - T) g T^3, which is 27 g R^4 / 256 at most, at T = 3R/4. Else
it is T (g T^2 + R - T)^2 / 4, whose slope has the sign of 5 g T^2 - 3 T + R: if 20 g R >= 9 it
rises up to g T^2 = R - T, where it is what the other case has. So F(R)^2 <= 27 g R^4 / 256 for
R >= R0 = 9 / (20 g), and below it is at most (R / R0)^3 F(R0)^2 = (27/256) (9/20) R^3. []

So F(R - y) + y <= max{ F(R), R } for 0 <= y <= R: it is so for b^(3/2) F(R) + (1 - b) R, convex.

**Theorem C (backward, output sums).** With b = min(d, e), recomputation allowed, for all X >= 1::

    Q >= X (ceil(Z (2d + e) / max{ F(R), R }) - 1),      g = sqrt(3) / (36 b^2).

At X = M, for d = e and M > 4.7 d^2, that is 10.5 Z d^2 / M - M.

*Proof.* Charge one virtual load at the first step of each useful chain of dQ, dK and dV; the game
has as many stores, so Q >= L' = loads + virtual loads. Let the useful steps of a segment add the
products v[i,j,c], q[i,j,k] and k[i,j,k], Z (2d + e) over all segments.

1. For each output entry to which a product is added A has a vertex of its chain: C of those in all.
2. A product is in A, which serves it alone (y of those), or computed in the segment. Then a v has
   dO[i,c] in A and P[i,j] red in the segment; a q has K[j,k] in A and a k has Q[i,k] in A, and
   dS[i,j] is red in the segment.
3. Call a pair charged if one of its vertices x, s, P, w, dP, G, dS is in A: c pairs at most. If a
   pair is not, and P is red in the segment, all d entries of Q[i,:] and of K[j,:] are in A; if dS
   is red, all e entries of dO[i,:] and of V[j,:] are as well. With a_Q, ... entries of Q, ... in A
   the pairs of the first kind number at most a_Q a_K / b^2, and those of the second at most
   min(a_Q, a_dO) min(a_K, a_V) / b^2. Let p and r be these, plus c.

By Loomis and Whitney, then Cauchy and Schwarz, the products that are not in A number at most::

    sqrt(p a_dO a_dV) + sqrt(r a_K a_dQ) + sqrt(r a_Q a_dK) <= sqrt(C (p a_dO + r (a_K + a_Q))).

Let T = a_Q + a_K + a_dO + a_V. The bracket is at most c T + U / b^2 with::

    U = a_Q a_K a_dO + min(a_Q, a_dO) min(a_K, a_V) (a_K + a_Q) <= sqrt(3) T^3 / 36.

For with h the mean of a_Q and a_dO it is a_Q a_dO <= h^2 and min(a_Q, a_dO) (a_K + a_Q) <=
h (a_K + h), so U <= h (h a_K + a_V a_K + a_V h) <= h (h t + t^2 / 4), t = a_K + a_V = T - 2h. With
t = 2 u T that is u (1 - 2u) (1 - u) T^3 / 2, the largest at u = (3 - sqrt(3)) / 6. So the products
number at most F(R - y) + y. []

**Theorem D (backward, all sums).** With G(R) = max{ (26/9) R^(3/2), 15 R }, W = Z (39 d + 30 e),
each vertex computed once, for all X >= 1::

    Q >= X (ceil(W / G(R)) - 1) - 2Z,

and with recomputation, where 13 d X >= G(R) and 15 e X >= G(R)::

    Q >= X W / G(R) - X - 2Z.

At X = 2M and d = e both are about 9.19 Z d / sqrt(M) - 2Z - 2M.

*Proof, each vertex computed once.* As for C, with a virtual load more for the first step of each
score chain (s and P) and of each chain dP, G, dS: Q >= L' - 2Z. Count 13 for a product that is
added to a score, to dQ or to dK, and 15 for one of dP or of dV; all of them are W. A pair whose
score or whose P a counted product uses has a vertex or a virtual load of its score chain in A, c1
pairs at most; one whose dP or dS is used has one of the other chain, c2 at most. A segment counts
at most 15 y and::

    sqrt(c1) (13 sqrt(a_Q a_K) + 15 sqrt(a_dO a_dV))
        + sqrt(c2) (15 sqrt(a_dO a_V) + 13 sqrt(a_K a_dQ) + 13 sqrt(a_Q a_dK)).

That is a quadratic form in the roots of the seven arrays, on two paths: V, dO, dV with the largest
eigenvalue 15 sqrt(c1 + c2) / 2, and dQ, K, Q, dK with 13 (sqrt(c1) + sqrt(c1 + 4 c2)) / 4, which
is at most 13 sqrt((c1 + c2) / 3), at c2 = 2 c1. Since 15 / 2 < 13 / sqrt(3) it is at most
13 sqrt(c / 3) (R' - c) with c = c1 + c2 and R' = R - y, and so (26/9) R'^(3/2), at c = R' / 3. []

*Proof, recomputation allowed.* As theorem B's, for both kinds of chains: trace P from the useful
steps that use a v computed from it, trace dS from those that use a q or a k, and P from that dS.
A path of a root of the first kind counts 13 d, one of the second 15 e. []

**Theorem E (backward with saved weights).** Each pair that a v, q or k computed in the segment
uses has P or dS in A, since P is an input. So with c of these at most sqrt(c) (R' - c) / 2 + y <=
max{ (R/3)^(3/2), R } = g(R) products are added, and with recomputation, for all X >= 1::

    Q >= X (ceil(Z (2d + e) / g(R)) - 1).

**Theorem F (gradient, sums of T).** Recomputation allowed, for all X >= 1::

    Q >= X (ceil(n^2 d / max{ F(R), R }) - 1) - n d + d^2,      g = 1 / (54 d^2).

At X = M, for M > 12.2 d^2, that is 5.65 n^2 d^2 / M - M - n d + d^2.

*Proof.* Choose an instance of each T[i,n-1,k] and trace its chain; charge a virtual load at its
first step, n d in all. d^2 entries are stored, so Q >= L' - n d + d^2. A product t that is not in A
has A2[j,k] in A and p[i,j] red. A pair is charged, c at most, if one of its vertices x, s, A, f, w,
q, p1, p2, p is in A. If it is not, its s and its q are computed in the segment, so all entries of
A2[j,:] and dO[i,:] are in A, and all of S1[i,:] and h[j,:] are red in it. Each S1[i,k] then has a
vertex of its tree in A, or A1[i,:] is in A whole: d words at least belong to this row, and
likewise d to h[j,:]. With a_s of the words of S1 and A1, a_h of h and A3, the rows of such pairs
number at most (a_s + a_dO) / 2d and the keys at most a_h / d. With a_T words of chains of T the
products are at most the root of a_T a_A2 (c + a_h (a_s + a_dO) / (2 d^2)), and with T the words of
operands a_A2 a_h (a_s + a_dO) <= (T/3)^3. []

**Theorem G (gradient, all sums).** If each vertex is computed once, for all X >= 1::

    Q >= X (ceil(3 n^2 d / g(R)) - 1) - 2 n^2 - 3 n d + d^2,

with g as in E; where h is given it is 2 n d.

*Proof.* Charge virtual loads also at the first steps of the chains of s (with A and f), q (with p1
and p), S1, and h where it is formed, and count the products x, w and t. With c1 and c2 the pairs
that have a vertex or a virtual load of the first and of the second kind of pairs' chains in A::

    sqrt(c1 a_S1 a_A2) + sqrt(c2 a_A2 a_T) + sqrt(c2 a_dO a_h) <= sqrt(c1 + c2) (R' - c1 - c2) / 2,

a form on two paths, as in D. []

**Double backward.** Its P and dOt = P UV + ... - alpha O hold the forward pass of Q, K, UV: the
sums U are chains that begin with a product of P and UV, dOt takes the place of the quotient O, so
theorems A and B hold, and n d + keys (d + e) entries of Qt, Kt and Vt are stored besides.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace

from pebble.bounds.bound import Bound, Sizes, below, ceil_div, ceil_sqrt
from pebble.bounds.segments import all_sums, all_sums_once, best_cut, output_sums, peak
from pebble.checks import positive
from pebble.gradient import AttentionGradient

BACKWARD = "backward pass, sums in chains, sliding allowed"
GRADIENT = "gradient in the theory form, sums in chains, sliding allowed"
PROOFS = "proved in pebble.bounds.gradients, "
# g of theorem C is at most this many millionths, over min(d, e)^2: sqrt(3) / 36 = 0.04811252...
SHARE = (48_113, 1_000_000)


def gradient_trees(problem: Sizes, cache: int) -> Bound:
    """Give Saha and Ye's argument for the trees of scores and of dP.

    As in `pebble.bounds.literature.score_trees` a part of a 2M-partition meets at most 4M trees
    that end in it or have a vertex in its dominator, and of the others at most (a / 2d)^2 of scores
    and (a' / 2e)^2 of dP with a + a' <= 2M: M^2 / b^2 for b = min(d, e). There are 2 Z trees.

    References
    ----------
    Saha and Ye, ICML 2024, lemma 3.3; Li et al., arXiv 2410.09397.

    Examples
    --------
    M = 16, d = 4, Z = 1024^2: 2^21 * 16 / (256 + 1024) = 26214.4 parts, so 16 * 26214 words.

    >>> from pebble.attention import Attention
    >>> gradient_trees(Attention(n=1024, d=4, direction="backward"), cache=16).value
    419424
    """
    cache = positive("cache", cache, "the words of fast memory")
    square = min(problem.d, problem.value_dim) ** 2
    parts = ceil_div(2 * problem.pairs * square, cache * cache + 4 * cache * square)
    return Bound(
        cache * (parts - 1),
        "gradient trees",
        "backward pass, any order of summation, recomputation allowed, no sliding",
        "after Saha and Ye 2024, lemma 3.3, with Hong and Kung 1981, theorem 3.1",
    )


def gradient_sums(problem: Sizes, cache: int) -> Bound:
    """Give theorem C: by the sums of dQ, dK and dV in a segment; recomputation allowed.

    Examples
    --------
    >>> from pebble.attention import Attention
    >>> bound = gradient_sums(Attention(n=65536, d=64, direction="backward"), cache=65536)
    >>> round(bound.value / (65536 * 64**2), 2)  # near 10.53 n^2 d^2 / M
    10.53
    """
    cache = positive("cache", cache, "the words of fast memory")
    d, e = problem.d, problem.value_dim
    work, (top, bottom) = problem.pairs * (2 * d + e), SHARE
    value = most(lambda r: shares(work, r, top, bottom * min(d, e) ** 2), work, cache)
    name, assumes = "gradient sums", f"{BACKWARD}, recomputation allowed"
    return Bound(value, name, assumes, PROOFS + "theorem C")


def all_products(problem: Sizes, cache: int) -> Bound | None:
    """Give theorem D where recomputation is allowed; None where its condition holds for no X.

    Examples
    --------
    >>> from pebble.attention import Attention
    >>> bound = all_products(Attention(n=65536, d=64, direction="backward"), cache=1024)
    >>> round(bound.value / 65536**2, 2)  # near 9.19 * 64 / 32 - 2
    16.39
    """
    cache = positive("cache", cache, "the words of fast memory")
    work, least = _weighted(problem), min(13 * problem.d, 15 * problem.value_dim)

    def applies(x: int) -> bool:
        r = cache + x
        return least * x >= 15 * r and 81 * (least * x) ** 2 >= 676 * r**3

    def value(x: int) -> int:
        r = cache + x
        quotient = min(ceil_sqrt(81 * (x * work) ** 2, 676 * r**3), ceil_div(x * work, 15 * r))
        return quotient - x - 2 * problem.pairs

    # X / R^(3/2) is largest at X = 2M: the condition holds there if it holds anywhere.
    top = 2 * cache
    if not applies(top):
        return None
    best = peak(value, 1 + bisect_left(range(1, top + 1), True, key=applies), top)
    assumes = f"{BACKWARD}, recomputation allowed, 13 d X, 15 e X >= G(M + X)"
    return Bound(best, "all products", assumes, PROOFS + "theorem D")


def all_products_once(problem: Sizes, cache: int) -> Bound:
    """Give theorem D where each vertex is computed at most once."""
    cache, work = positive("cache", cache, "the words of fast memory"), _weighted(problem)
    value = most(lambda r: products(work, r), work, cache) - 2 * problem.pairs
    assumes = f"{BACKWARD}, each vertex computed at most once"
    return Bound(value, "all products", assumes, PROOFS + "theorem D")


def _weighted(problem: Sizes) -> int:
    return problem.pairs * (39 * problem.d + 30 * problem.value_dim)


def saved_sums(problem: Sizes, cache: int) -> Bound:
    """Give theorem E, for the backward pass with saved weights; recomputation allowed.

    Examples
    --------
    >>> from pebble.attention import Attention
    >>> problem = Attention(n=4096, d=64, direction="backward", saved_weights=True)
    >>> round(saved_sums(problem, cache=1024).value / 4096**2, 2)  # near 6 * 64 / 32
    12.0
    """
    cache = positive("cache", cache, "the words of fast memory")
    work = problem.pairs * (2 * problem.d + problem.value_dim)
    name, assumes = "gradient sums", f"{BACKWARD}, saved weights, recomputation allowed"
    return Bound(best_cut(2 * work, cache), name, assumes, PROOFS + "theorem E")


def theory_sums(problem: AttentionGradient, cache: int) -> Bound:
    """Give theorem F, for the gradient in the theory form; recomputation allowed.

    Examples
    --------
    >>> bound = theory_sums(AttentionGradient(n=65536, d=64), cache=65536)
    >>> round((bound.value + 65536 * 64) / (65536 * 64**2), 2)
    5.66
    """
    cache = positive("cache", cache, "the words of fast memory")
    n, d = problem.n, problem.d
    work = n * n * d
    value = most(lambda r: shares(work, r, 1, 54 * d * d), work, cache) - n * d + d * d
    name, assumes = "sums of T", f"{GRADIENT}, recomputation allowed"
    return Bound(value, name, assumes, PROOFS + "theorem F")


def theory_sums_once(problem: AttentionGradient, cache: int) -> Bound:
    """Give theorem G, for the gradient where each vertex is computed at most once.

    Examples
    --------
    >>> bound = theory_sums_once(AttentionGradient(n=4096, d=64, given_h=True), cache=1024)
    >>> round(bound.value / 4096**2, 2)  # near 6 * 64 / 32 - 2, less 2 * 64 / 4096
    9.97
    """
    cache = positive("cache", cache, "the words of fast memory")
    n, d = problem.n, problem.d
    charged = 2 * n * n + (2 if problem.given_h else 3) * n * d
    value = best_cut(6 * n * n * d, cache) - charged + d * d
    name, assumes = "all products", f"{GRADIENT}, each vertex computed at most once"
    return Bound(value, name, assumes, PROOFS + "theorem G")


def embedded(problem: Sizes, cache: int, recompute: bool) -> list[Bound]:
    """Give theorems A and B for the forward pass in the double backward pass.

    Examples
    --------
    >>> from pebble.attention import Attention
    >>> problem = Attention(n=65536, d=64, direction="double_backward")
    >>> [bound.name for bound in embedded(problem, 65536, recompute=True)]
    ['output sums']
    """
    found = [output_sums(problem, cache), all_sums(problem, cache)]
    if not recompute:
        found.append(all_sums_once(problem, cache))
    d, e = problem.d, problem.value_dim
    stores = problem.n * d + problem.keys * (d + e)
    assumes = "double backward pass"
    return [
        replace(
            bound,
            value=bound.value + stores,
            assumes=bound.assumes.replace("forward pass", assumes),
            reference=PROOFS + "double backward",
        )
        for bound in found
        if bound
    ]


def shares(work: int, r: int, top: int, bottom: int) -> int:
    """Give work / max{ F(r), r } rounded up, with g = top / bottom in F.

    Examples
    --------
    g = 1 and R = 4: F^2 = 27 * 256 / 256 = 27, so 6 / F = 1.15 and, as R is less, 2 segments.

    >>> shares(6, 4, 1, 1), shares(5, 4, 1, 1)
    (2, 1)
    """
    square = 256 * work * work
    large = ceil_sqrt(square * bottom, 27 * top * r**4)
    return min(large, ceil_sqrt(20 * square, 243 * r**3), ceil_div(work, r))


def products(work: int, r: int) -> int:
    """Give work / G(r) rounded up, for the G of theorem D.

    Examples
    --------
    G(81) = 26 / 9 * 729 = 2106.

    >>> products(2106, 81), products(2107, 81)
    (1, 2)
    """
    return min(ceil_sqrt(81 * work * work, 676 * r**3), ceil_div(work, 15 * r))


def most(segments: Callable[[int], int], work: int, cache: int) -> int:
    """Give the largest X (segments(M + X) - 1) over X, 0 if there is none above.

    Examples
    --------
    100 sums, a segment of R words having R of them, M = 2: at R = 99 one of 97 words is full.

    >>> most(lambda r: -(-100 // r), 100, 2)
    97
    """

    def by_number(q: int) -> int:
        guess = 3 * int((work / q) ** (2 / 3)) + 1
        return q * (below(lambda r: not r or segments(r) > q, guess) - cache)

    def by_length(x: int) -> int:
        return x * (segments(cache + x) - 1)

    few = max(segments(cache + 1), 1)
    return max(peak(by_number, 1, few), peak(by_length, 1, 8 * cache + 64), 0)
