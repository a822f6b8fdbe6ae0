"""Bounds from the literature, with their constants; and the matrix product and the FFT."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import numpy as np

from pebble.bounds.bound import Bound, Sizes, ceil_div, ceil_sqrt
from pebble.bounds.segments import best_cut
from pebble.checks import positive
from pebble.families import Tile
from pebble.family_graph import own_tile
from pebble.masked.graph import MaskedGraph
from pebble.masked.places import Space
from pebble.problem import Problem
from pebble.rules import Rules


def trivial(problem: Problem, rules: Rules) -> Bound:
    """Give the bound that each input is loaded and each output stored.

    Every input has a successor that an output needs. Weights are counted: of a vertex where one is
    given by its label, else of its family.

    Examples
    --------
    >>> from pebble.attention import Attention
    >>> trivial(Attention(n=3, d=2), Rules()).value  # 4 * 3 * 2
    24
    >>> trivial(Attention(n=3, d=2), Rules(weights={"O": 3, ("O", (0, 0)): 2})).value  # 24 + 12 - 1
    35
    """
    graph = problem.settled.graph
    if isinstance(graph, MaskedGraph):
        return _trivial_under_mask(graph, rules)
    tiles = [part[(slice(None),) * len(part.shape)] for part in graph.families if part.is_input]
    tiles += [own_tile(tile) for tile in graph.output_tiles]
    value = sum(_words(tile, rules) for tile in tiles)
    return Bound(value, "trivial", "any game", "each input is loaded, each output stored")


def _trivial_under_mask(graph: MaskedGraph, rules: Rules) -> Bound:
    """Count what the mask touches: the other inputs need not be loaded."""
    mask = graph.mask
    if rules.weights:
        weights = graph.weights(rules)
        for label, weight in dict(rules.weights).items():
            if isinstance(label, tuple):
                weights[graph.vertex(label)] = weight
        used = np.zeros(graph.size, bool)
        used[graph.edges[1]] = True
        used[np.diff(graph.edges[0]) > 0] = False
        value = int(weights[used].sum() + weights[graph.outputs].sum())
    else:
        touched = {Space.QUERIES: mask.touched_rows, Space.KEYS: mask.touched_columns}
        inputs = [touched[part.space] * part.width for part in graph.families if part.is_input]
        value = sum(inputs) + graph.output_words
    why = "each input of a pair is loaded, each output stored"
    return Bound(value, "trivial", "any game", why)


def _words(tile: Tile, rules: Rules) -> int:
    """Give the weight of all vertices of a tile, by label where the rules name one."""
    weights = dict(rules.weights)
    usual = weights.get(tile.family.name, 1)
    total: int = usual * tile.size
    for label, weight in weights.items():
        if isinstance(label, tuple) and len(label) == 2 and label[0] == tile.family.name:
            index = label[1]
            if isinstance(index, tuple) and len(index) == len(tile.sizes):
                box = zip(index, tile.starts, tile.sizes, strict=True)
                inside = all(i in range(a.constant, a.constant + k) for i, a, k in box)
                total += (weight - usual) * inside
    return total


def hong_kung(parts: int, cache: int) -> int:
    """Give Q >= M (P(2M) - 1) from the least number P(2M) of parts of a 2M-partition.

    It holds for any graph, with recomputation and without sliding.

    References
    ----------
    Hong and Kung, "I/O complexity: the red-blue pebble game", STOC 1981, theorem 3.1.

    Examples
    --------
    >>> hong_kung(parts=5, cache=8)
    32
    """
    positive("parts", parts, "the number of parts")
    return positive("cache", cache, "the words of fast memory") * (parts - 1)


def score_trees(problem: Sizes, cache: int) -> Bound:
    """Give Saha and Ye's bound, Q >= Z d^2 / (M + 4 d^2) - M, its constants made explicit.

    A score tree is the products and sums of a pair up to its score, the last of them. A part of a
    2M-partition meets at most M^2 / d^2 + 4M of them: its dominator has 2M vertices, so at most 2M
    trees have one of their own vertices there; the others whose score is in the part need all of
    Q[i,:] and K[j,:] there, and 2M words of those give (M / d)^2 pairs; of the rest the part ends
    below the score, where each vertex has one successor, hence at a vertex of its minimum set, and
    that has 2M vertices too. (Up to the weight P this would not do: with the online softmax a score
    also has the running maximum as a successor.) So P(2M) >= Z / (M^2 / d^2 + 4M), and Hong and
    Kung's theorem gives the bound. It holds for any set of pairs and any order of summation.

    References
    ----------
    Saha and Ye, "The I/O complexity of attention, or how optimal is FlashAttention?", ICML 2024,
    lemma 3.3 and theorem 3.1.

    Examples
    --------
    M = 16, d = 4, Z = 1024^2: 2^20 * 16 / (256 + 1024) = 13107.2 parts, so 16 * 13107 words.

    >>> from pebble.attention import Attention
    >>> score_trees(Attention(n=1024, d=4), cache=16).value
    209712
    """
    cache = positive("cache", cache, "the words of fast memory")
    square = problem.d * problem.d
    parts = ceil_div(problem.pairs * square, cache * cache + 4 * cache * square)
    return Bound(
        hong_kung(parts, cache),
        "score trees",
        "forward pass, any order of summation, recomputation allowed, no sliding",
        "Saha and Ye 2024, lemma 3.3, with Hong and Kung 1981, theorem 3.1",
    )


def product_reduction(problem: Sizes, cache: int) -> Bound:
    """Give Saha and Ye's bound for a small cache: Q >= (I/O of the product Q K^T) - n keys.

    A game of attention that also stores each score the first time it is computed, unless it is
    stored anyway, is a game of the product, with at most n keys more I/O.

    References
    ----------
    Saha and Ye, ICML 2024, theorem 3.7.

    Examples
    --------
    >>> from pebble.attention import Attention
    >>> product_reduction(Attention(n=64, d=16), cache=16).value  # 2 n^2 d / 4 - 32 - n^2
    28646
    """
    value = product_segments(problem.n, problem.d, problem.keys, cache) - problem.n * problem.keys
    return Bound(
        value,
        "product reduction",
        "forward pass, all pairs, sums in chains, recomputation and sliding allowed",
        "Saha and Ye 2024, theorem 3.7, with pebble.bounds.literature.product_segments",
    )


def any_multiplication(problem: Sizes, cache: int) -> int:
    """Give Saha and Ye's bound for every matrix multiplication algorithm, in field elements.

    Q >= min(n^2 d^2 / (8M), n^2 / 8) - M for n = keys, over a field with more than n elements;
    where there are more of one than of the other, n is the smaller number. That is another model
    than the game on the graphs of this package, where Q K^T is formed by the standard algorithm; it
    is not among `every`, and `output_sums` and `score_trees` say more there.

    References
    ----------
    Saha and Ye, ICML 2024, theorem 4.8; the constant is from their lemma 4.6.

    Examples
    --------
    >>> from pebble.attention import Attention
    >>> any_multiplication(Attention(n=1024, d=4), cache=64)  # 2^20 * 16 / 512 - 64
    32704
    """
    cache = positive("cache", cache, "the words of fast memory")
    square = min(problem.n, problem.keys) ** 2
    return min(ceil_div(square * problem.d**2, 8 * cache), ceil_div(square, 8)) - cache


def product_trivial(r: int, k: int, s: int) -> int:
    """Give rk + ks + rs for the product of r x k and k x s.

    >>> product_trivial(2, 3, 4)
    26
    """
    r, k, s = _sizes((r, k, s))
    return r * k + k * s + r * s


def _sizes(sizes: Iterable[int]) -> list[int]:
    names = ("r", "k", "s")
    meanings = ("the rows of the product", "its inner dimension", "its columns")
    return [positive(*each) for each in zip(names, sizes, meanings, strict=True)]


def product_segments(r: int, k: int, s: int, cache: int) -> int:
    """Give Q >= X (ceil(rks / g(M + X)) - 1), the best X, for the product r x k by k x s.

    It is the standard product, sums in chains, and g(R) = max{(R/3)^(3/2), R}. The proof is that
    of theorem B in `pebble.bounds.segments` for the score chains alone: their r s virtual loads
    cancel against the stores of the results, so it holds with recomputation and sliding. For
    M >= 9 it is at least 2 rks / sqrt(M) - 2M.

    >>> product_segments(100, 100, 100, 64) >= 2 * 100**3 // 8 - 2 * 64
    True
    """
    cache = positive("cache", cache, "the words of fast memory")
    return best_cut(2 * prod(_sizes((r, k, s))), cache)


def product_smith(r: int, k: int, s: int, cache: int) -> int:
    """Give Q >= 2 rks / sqrt(M) - 2M for the product r x k by k x s, rounded up.

    Products are fused with sums in that paper; with products as vertices it follows from
    `product_segments` for M >= 9.

    References
    ----------
    Smith, Lowery, Langou and van de Geijn, "A tight I/O lower bound for matrix multiplication",
    arXiv 1702.02017.

    >>> product_smith(10, 10, 10, 16)
    468
    """
    cache = positive("cache", cache, "the words of fast memory")
    return ceil_sqrt(4 * prod(_sizes((r, k, s))) ** 2, cache) - 2 * cache


def product_hong_kung(r: int, k: int, s: int, cache: int) -> int:
    """Give the larger of Q >= rks / sqrt(2M) - M and Q >= rks / (2 sqrt(M)).

    >>> product_hong_kung(10, 10, 10, 8)
    242
    """
    cache = positive("cache", cache, "the words of fast memory")
    square = prod(_sizes((r, k, s))) ** 2
    return max(ceil_sqrt(square, 2 * cache) - cache, ceil_sqrt(square, 4 * cache))


def fft(k: int, cache: int) -> int:
    """Give the best known bound for the FFT on n = 2^k points.

    The largest of 2n (inputs and outputs), n k / (5 log2 M) and n (k + 1) / (2 log2(4M)) - M.

    References
    ----------
    Hong and Kung, STOC 1981, with explicit constants.

    >>> fft(2, cache=4)
    8
    """
    k = positive("k", k, "the logarithm of the number of points")
    points, cache = 1 << k, positive("cache", cache, "the words of fast memory")
    top, bottom = _log2_above(max(cache, 2))
    by_depth = ceil_div(points * k * bottom, 5 * top)
    top, bottom = _log2_above(4 * cache)
    by_parts = ceil_div(points * (k + 1) * bottom, 2 * top) - cache
    return max(2 * points, by_depth, by_parts)


def _log2_above(number: int) -> tuple[int, int]:
    """Give a fraction just above log2(number), exact for powers of two: of two integers."""
    power = 1024
    bits: int = (number**power - 1).bit_length()
    return bits, power
