r"""Bounds under a mask that use its pattern: how many pairs a few queries and keys can share.

Write D(s) for the most pairs of the mask that any a queries and b keys hold, a + b <= s. For all
pairs that is s^2 / 4; for a band of w diagonals about s w / 2 where s > 2 w.

**Theorem A under a mask.** For all integers X >= 1 and 0 <= w <= d, recomputation allowed, with
R = M + X::

    Q >= X (ceil(Z (2e + w) / f(R)) - 1) + L,
    f(R) = max over 0 <= t <= R of w P(t) + (R - t) max{ sqrt(P(t)), 2 },
    P(t) = max over 0 <= q <= t of (t - q) + D(q / d),

L being the number of queries that attend to something, with the logsumexp, and 0 without.

*Proof.* As that of theorem A in `pebble.bounds.segments`, up to its step 3: of the pairs whose P is
red in the segment, or computed in it, a_c are charged, and the others have all of Q[i,:] and K[j,:]
in A. With a_q entries of Q and K in A these lie in a queries and b keys, d a + d b <= a_q, so they
are D(a_q / d) at most, where theorem A has (a_q / 2d)^2. With t = a_c + a_q there are p <= P(t)
pairs, and::

    2 |W| + w |W'| <= 2 sqrt(p a_v a_o) + 2 a_y + w p <= sqrt(p) (a_v + a_o) + 2 a_y + w p
                   <= (R - t) max{ sqrt(P(t)), 2 } + w P(t),

since a_v + a_o + a_y <= R - t. []

**Score trees under a mask.** Q >= M (Z / (D(2M / d) + 4M) - 1): a part of a 2M-partition meets at
most 4M score trees by a vertex of its own, and the others whose score is in the part are pairs of
queries and keys of which all entries are in its dominator of 2M vertices; see
`pebble.bounds.literature.score_trees`.

D is bounded from above by `pebble.masks.Mask.densities`. The maxima are taken over cells of a grid:
P and D never fall, so the values at a cell's ends bound f on it from above.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pebble.attention import Attention
from pebble.bounds.bound import Bound, ceil_div, ceil_sqrt
from pebble.bounds.literature import hong_kung
from pebble.checks import positive
from pebble.masks import Mask

Ints = NDArray[np.int64]

# Cells of the grids: twice as many tighten the bound by less than one in a hundred.
CELLS = 256
# Lengths of segments that are tried, in eighths of the cache.
LENGTHS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 20, 24)


@lru_cache(maxsize=4096)
def densest(mask: Mask, size: int) -> int:
    """Give a number that no queries and keys, `size` together, hold more pairs than.

    Examples
    --------
    Three diagonals: two queries and three keys hold 5 pairs of their 6.

    >>> from pebble.masks import full, window
    >>> densest(full(9), 5), densest(window(9, left=1, right=1), 5)
    (6, 5)
    """
    size = min(size, mask.n + mask.keys)
    if size < 2:
        return 0
    low, high = max(1, size - mask.keys), min(mask.n, size - 1)
    ends = np.unique(np.linspace(low - 1, high, CELLS + 1).astype(np.int64))
    # Of a from ends[k] + 1 to ends[k + 1], the most queries and the most keys.
    queries, keys = ends[1:], np.minimum(size - ends[:-1] - 1, mask.keys)
    return int(mask.densities(queries, np.maximum(keys, 0)).max())


def output_sums_of_pattern(problem: Attention, cache: int) -> Bound:
    """Give theorem A under a mask, with its pattern; recomputation allowed.

    Examples
    --------
    Blocks of 16 keys and queries: with M = 512 and d = 4 a segment has all of several blocks, but
    no pair between two of them.

    >>> from pebble.attention import Attention
    >>> from pebble.bounds.segments import output_sums
    >>> from pebble.masks import document
    >>> problem = Attention(n=2048, d=4, mask=document([16] * 128))
    >>> pattern, pairs = output_sums_of_pattern(problem, 512), output_sums(problem, 512)
    >>> pattern.value > 2 * pairs.value
    True
    """
    cache = positive("cache", cache, "the words of fast memory")
    mask, d, e = _mask(problem), problem.d, problem.value_dim
    value = 0
    for length in LENGTHS:
        x = max(1, length * cache // 8)
        for w in {0, max(d - e, 0), d // 2, d}:
            most = _most(mask, d, w, cache + x)
            value = max(value, x * (ceil_div(mask.pairs * (2 * e + w), most) - 1))
    return Bound(
        value + (mask.touched_rows if problem.logsumexp else 0),
        "output sums of the pattern",
        "forward pass, sums in chains, sliding allowed, recomputation allowed",
        "proved in pebble.bounds.patterns",
    )


def _most(mask: Mask, d: int, w: int, r: int) -> int:
    """Give f(R), from above."""
    ends, charged = _charged(mask, d, r)
    most = 1
    for low, pairs in zip(ends[:-1].tolist(), charged[1:].tolist(), strict=True):
        rest = r - low
        most = max(most, w * pairs + max(ceil_sqrt(rest * rest * pairs, 1), 2 * rest))
    return most


@lru_cache(maxsize=64)
def _charged(mask: Mask, d: int, r: int) -> tuple[Ints, Ints]:
    """Give the ends of the cells of t, from 0 to R, and P there, from above."""
    ends = np.unique(np.linspace(0, r, CELLS + 1).astype(np.int64))
    pairs = np.array([densest(mask, t // d) for t in ends.tolist()])
    # For q from ends[k] to ends[k + 1]: t - q is at most t - ends[k].
    gains = np.maximum.accumulate(np.concatenate([[pairs[0]], pairs[1:] - ends[:-1]]))
    return ends, np.minimum(ends + gains, mask.pairs + ends)


def score_trees_of_pattern(problem: Attention, cache: int) -> Bound:
    """Give Saha and Ye's bound under a mask, with its pattern.

    Examples
    --------
    M = 16 and d = 4: 8 queries and keys hold at most 2 * 6 pairs of the window of 2, where they
    could hold 16 of all. 127 pairs need 127 / (12 + 64) parts, so 2.

    >>> from pebble.attention import Attention
    >>> from pebble.masks import window
    >>> problem = Attention(n=64, d=4, mask=window(64, left=1, right=0))
    >>> densest(problem.mask, 8), score_trees_of_pattern(problem, cache=16).value
    (7, 16)
    """
    cache = positive("cache", cache, "the words of fast memory")
    mask = _mask(problem)
    most = densest(mask, 2 * cache // problem.d) + 4 * cache
    return Bound(
        hong_kung(ceil_div(mask.pairs, most), cache),
        "score trees of the pattern",
        "forward pass, any order of summation, recomputation allowed, no sliding",
        "pebble.bounds.patterns, after Saha and Ye 2024, lemma 3.3, and Hong and Kung 1981",
    )


def _mask(problem: Attention) -> Mask:
    assert problem.mask is not None
    return problem.mask
