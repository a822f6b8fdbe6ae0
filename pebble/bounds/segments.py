r"""Bounds by cutting a game into segments and counting the sums that one of them can add.

The two theorems are for the forward pass with either softmax, sums being chains in any order, any
set of Z pairs, with sliding allowed, and with or without the logsumexp as an output. Write
R = M + X. The score chain of a pair (i, j) is its sums s (its product, where d = 1) and its weight
P; with its products x it is the score tree.

**Tracing.** A red pebble comes from a compute, or from a load of a blue pebble that a store of a
red one made; followed back, it has one computing instance. (A pebble that slides to a vertex is a
compute of that vertex.) So from what a game stores as O[i,c] one can go back step by step: to the
instance of the last o, of the one before, down to the first step of the chain, which is what is
made of the first product (a sum; a rescaled product; the quotient, where there is one key). These
are the *useful* instances: one for every vertex of the n e output chains, e = value_dim. The times
of a chain's instances increase along it.

**Segments.** A game is cut after every X-th load, the virtual ones that a proof charges included,
so that all segments but the last have X of them; the last may have none. In a segment let A hold
what is red at its start, what it loads, and for each virtual load its chain: |A| <= M + X = R.

**Theorem A (output sums).** For all integers X >= 1 and 0 <= w <= d, recomputation allowed::

    Q >= X (ceil(Z (2e + w) / f(R)) - 1) + L,    f(R) = max{ c(R),  R^2 / (4 (2d - w)),  2R },
    c(R) = max of w t + sqrt(t) (R - t) over 0 <= t <= R,

L = n with the logsumexp as an output and 0 without. With w = 0, c(R) is 2 (R/3)^(3/2). At X = M,
where M is so large that the second term of f is the largest, that is Z (2e + w) (2d - w) / M - M.
For e <= d the best w is d - e, which gives Z (d + e)^2 / M - M, the leading term of
FlashAttention-2; for e = d it is 4 Z d^2 / M - M, from M = 4.75 d^2 on. For e > d it is w = 0, with
4 Z d e / M - M. A larger w is better below those M, where c is the largest.

*Proof.* Charge one virtual load at the first step of each useful chain, n e in all. The game has
at least n e + L stores, so Q >= L' + L with L' = loads + virtual loads. Let W hold the (i, j, c)
whose product y[i,j,c] is used in the segment by a useful step of its chain: Z e over all segments.
Choose also one computing instance of P[i,j] for each pair, and let W' hold the pairs whose chosen
instance is in the segment: Z over all segments.

1. For each (i, c) that W touches, A has a vertex of that chain: go back from the step; either it
   uses a pebble whose useful instance is older than the segment, which is red at the start or
   loaded, or the first step is in the segment and was charged. Let there be a_o of those.
2. For (i, j, c) in W, y[i,j,c] is in A, which serves this element alone (a_y of those); or it was
   computed in the segment, so V[j,c] is in A (a_v of those) and P[i,j] is red in the segment.
3. If P[i,j] is red in the segment or computed in it, a vertex of its score tree is in A (call the
   pair charged; there are at most a_c), or the whole tree is computed in the segment and all d
   entries of Q[i,:] and of K[j,:] are in A. With a_q entries of Q and K in A the second kind lies
   in (rows) x (columns), and d rows + d columns <= a_q: at most (a_q / 2d)^2 pairs.

So W' and the pairs of elements of W whose y is computed in the segment lie in one set of at most
p = a_c + (a_q / 2d)^2 pairs. By Loomis and Whitney those elements number at most the root of the
product of their projections, so::

    2 |W| + w |W'| <= 2 sqrt(p a_v a_o) + 2 a_y + w p <= sqrt(p) (a_v + a_o) + w p + 2 a_y.

For a fixed t = a_c + a_q, p is convex in a_q, so it is largest where a_c or a_q is 0. Without 2 a_y
and with R' = R - a_y the right side is then at most c(R'), or w t^2 / (4 d^2) + t (R' - t) / (2d),
which is largest at t = d R' / (2d - w) <= R', where it is R'^2 / (4 (2d - w)). With t a fixed part
of R' both are convex in R', so their maxima over the part are, and these plus 2 (R - R') are: the
largest is at R' = R or R' = 0. Hence 2 |W| + w |W'| <= f(R), there are at least Z (2e + w) / f(R)
segments, and all but the last have X of L'. []

The maximum c is at sqrt(t) = (w + sqrt(w^2 + 3R)) / 3, if that t is not above R, that is, for w^2
<= R; it is (2 w^3 + 9 w R + 2 (w^2 + 3R)^(3/2)) / 27. For w^2 >= R it is w R, at t = R.

**Theorem B (all sums).** If each vertex is computed at most once, for every integer X >= 1::

    Q >= X (ceil(Z (d + e) / g(R)) - 1) - Z + L,    g(R) = max{ (R/3)^(3/2),  R }.

If recomputation is allowed, for every integer X >= 1 with d X >= g(R)::

    Q >= X Z (d + e) / g(R) - X - Z + L.

At X = 2M both are about 2 Z (d + e) / sqrt(M) - Z - 2M; there the condition says M <= 4 d^2 (for
M >= 9, d >= 2).

*Proof, each vertex computed once.* As for A, with one more virtual load for the first step of each
score chain (its first sum; the product itself where d = 1): Q >= L' - Z + L. Count the products of
the score chains too, each in the segment that adds it. Now every pair that a counted product
touches has a vertex of its score chain, or its virtual load, in A: going back along the chain ends
at a pebble older than the segment or at the first step. So with a_c of these, a_q and a_k entries
of Q and of K, and a_x and a_y products x and y in A that serve one element each (no x where d = 1:
there the product is counted when it is computed), the segment counts at most::

    sqrt(a_q a_k a_c) + sqrt(a_c a_v a_o) + a_x + a_y
        <= sqrt(a_c) (R' - a_c) / 2 + a_x + a_y <= max{ (R/3)^(3/2), R }. []

*Proof, recomputation allowed.* A pair's score may now be formed anew many times, and charging each
time is too dear; but forming it anew adds more sums to count. From each useful step that uses a
y computed from P[i,j], trace P and go back along its score chain. The instances so met form, for
each pair, a forest: two paths that meet are one from there back to the first step, the root.
Choose for each root one path of d products from it to a P; paths of different roots are disjoint.
Go through the game in order, and charge a virtual load at a root whose pair has no vertex of its
score chain, and no virtual load, in A so far in this segment. Let v_p be the charges of pair p, w_p
the stores of vertices of its score chain, and U_p the number of different (segment, k) such that
the segment adds the product k of p on a chosen path. As before every pair that a counted product
touches has a vertex or a charge in A, so a segment counts at most g(R), and::

    Q >= loads + n e + L + sum w_p >= X (sum U_p + Z e) / g(R) - X + L - sum (v_p - w_p).

It suffices that (U_p - d) X / g(R) + w_p >= v_p - 1 for each pair. Take a charged root, in segment
t. If its path goes from some segment to a later one by a store and a load, that store pays for the
charge; different roots have different paths, so different stores. Otherwise the path runs through
the segments t, t+1, ..., t+u with a red pebble from each to the next, so p has a vertex in A from
the start of each of t+1, ..., t+u and no other root of p is charged there: the d different
(segment, k) of this path are counted for no other such root. So if a of the v_p charges are of this
second kind, a >= 1, then U_p >= d a, and d X >= g(R) gives (U_p - d) X / g(R) >= a - 1, while
w_p >= v_p - a. If a = 0, then w_p >= v_p, and U_p >= d since one path has d different k. []
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from pebble.bounds.bound import Bound, Sizes, below, ceil_div, ceil_sqrt
from pebble.checks import positive

FORWARD = "forward pass, sums in chains, sliding allowed"


def output_sums(problem: Sizes, cache: int) -> Bound:
    """Give theorem A: by the output sums and pairs of a segment; recomputation allowed.

    Examples
    --------
    >>> from pebble.attention import Attention
    >>> output_sums(Attention(n=65536, d=64), cache=65536).value  # near 4 n^2 d^2 / M
    1073741820
    >>> output_sums(Attention(n=65536, d=64, value_dim=32), cache=65536).value  # n^2 (d + e)^2 / M
    603979200
    """
    cache = positive("cache", cache, "the words of fast memory")
    d, e = problem.d, problem.value_dim

    def parameters(w: int) -> tuple[int, int, int]:
        return problem.pairs * (2 * e + w), 4 * (2 * d - w), w

    def rough(w: int) -> int:
        work, quadratic, w = parameters(w)
        lengths = (cache * quarters // 4 + 1 for quarters in range(3, 9))
        return max(x * fewest(work, cache + x, quadratic, w) for x in lengths)

    # Any w is proved; these are the one for large caches, the one for none, and a good one between.
    large = max(d - e, 0)
    between = max(range(large, d + 1, max((d - large) // 16, 1)), key=rough)
    value = max(
        best_cut(work, cache, quadratic, w)
        for work, quadratic, w in map(parameters, {0, large, between})
    )
    return Bound(
        value + (problem.n if problem.logsumexp else 0),
        "output sums",
        f"{FORWARD}, recomputation allowed",
        "proved in pebble.bounds.segments, theorem A",
    )


def all_sums_once(problem: Sizes, cache: int) -> Bound:
    """Give theorem B where each vertex is computed at most once."""
    cache = positive("cache", cache, "the words of fast memory")
    work = problem.pairs * (problem.d + problem.value_dim)
    value = best_cut(2 * work, cache) - problem.pairs
    return Bound(
        value + (problem.n if problem.logsumexp else 0),
        "all sums",
        f"{FORWARD}, each vertex computed at most once",
        "proved in pebble.bounds.segments, theorem B",
    )


def all_sums(problem: Sizes, cache: int) -> Bound | None:
    """Give theorem B where recomputation is allowed; None where its condition holds for no X."""
    cache = positive("cache", cache, "the words of fast memory")
    work, pairs, d = problem.pairs * (problem.d + problem.value_dim), problem.pairs, problem.d

    def applies(x: int) -> bool:
        r = cache + x
        return d * x >= r and 27 * (d * x) ** 2 >= r**3

    def value(x: int) -> int:
        r = cache + x
        return min(ceil_sqrt(27 * (x * work) ** 2, r**3), ceil_div(x * work, r)) - x - pairs

    # X / (R/3)^(3/2) is largest at X = 2M: the condition holds there if it holds anywhere. X / R
    # grows beyond, and counts while R < 27.
    top = 2 * cache
    if not applies(top):
        return None
    least = 1 + bisect_left(range(1, top + 1), True, key=applies)
    best = max(peak(value, least, top), *(value(x) for x in range(top, top + 28) if applies(x)))
    return Bound(
        best + (problem.n if problem.logsumexp else 0),
        "all sums",
        f"{FORWARD}, recomputation allowed, d X >= g(M + X)",
        "proved in pebble.bounds.segments, theorem B",
    )


def fewest(work: int, r: int, quadratic: int | None = None, w: int = 0) -> int:
    """Give work / f(r) rounded up, for f(R) = max{ c(R), R^2 / quadratic, 2R } of theorem A.

    With `quadratic` None the middle one is left out, and with w = 0 that is twice the g of
    theorem B. The quotient by c(R) is rationalised, which leaves one root: with D = w^2 + 3R,

    27 W / (2w^3 + 9wR + 2 D^(3/2)) = (2 W D^(3/2) - W (2w^3 + 9wR)) / (R^2 (w^2 + 4R)).

    Examples
    --------
    c(12) = 2 (12/3)^(3/2) = 16 < 2 * 12, and c(48) = 2 * 16^(3/2) = 128 > 2 * 48.

    >>> fewest(240, 12), fewest(1280, 48), fewest(1281, 48)
    (10, 10, 11)
    """
    if r <= w * w:
        charged = ceil_div(work, w * r)
    else:
        root = ceil_sqrt(4 * work**2 * (w * w + 3 * r) ** 3, 1)
        charged = ceil_div(root - work * w * (2 * w * w + 9 * r), r * r * (w * w + 4 * r))
    segments = min(charged, ceil_div(work, 2 * r))
    return segments if quadratic is None else min(segments, ceil_div(quadratic * work, r * r))


def best_cut(work: int, cache: int, quadratic: int | None = None, w: int = 0) -> int:
    """Give the largest X (ceil(work / f(M + X)) - 1) over X, 0 if there is none above.

    f is that of `fewest`. Where segments are few, the best is looked for by their number: there are
    more than q while f(R) < work / q, and q (R - M) is the bound for the largest such R. Where they
    are many, by X.

    Examples
    --------
    With work = 200 and M = 10: f(R) < 200 / 2 up to R = 40, where c = 2 (40/3)^(3/2) = 97.4, so
    there are two full segments of 30 words; f(R) < 200 / 3 up to R = 31 makes 3 * 21, the best.

    >>> best_cut(200, 10)
    63
    """

    def by_number(q: int) -> int:
        guesses = [3 * (work / (2 * q)) ** (2 / 3), work / (2 * q)]
        guesses += [(quadratic * work / q) ** 0.5] if quadratic else []
        r = below(lambda r: not r or fewest(work, r, quadratic, w) > q, int(min(guesses)))
        return q * (r - cache)

    def by_length(x: int) -> int:
        return x * (fewest(work, cache + x, quadratic, w) - 1)

    # X / R^(3/2) falls beyond X = 2M; X / R grows, and counts while R < 27 or so.
    most = ceil_div(work, 2 * cache)
    return max(peak(by_number, 1, most), peak(by_length, 1, 4 * cache + 28), 0)


def peak(value: Callable[[int], int], low: int, high: int, window: int = 256) -> int:
    """Give the largest value over integers of a function with one peak, but for rounding.

    The search narrows by thirds, then looks at every point of a window and at the smallest
    arguments, where rounding weighs most. What it returns is the value at some point.
    """
    few = min(high, low + window)
    best = max(map(value, range(low, few + 1)))
    while high - low > window:
        third = (high - low) // 3
        if value(low + third) < value(high - third):
            low += third
        else:
            high -= third
    return max(best, *map(value, range(low, high + 1)))
