"""Sparse masks of the literature: Sparse Transformers, Longformer and BigBird."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pebble.checks import positive
from pebble.errors import SizeError
from pebble.masks import intervals
from pebble.masks.arguments import Ints, even, indices, whole
from pebble.masks.mask import Mask
from pebble.masks.patterns import blocks, causal, window


def strided(n: int, stride: int) -> Mask:
    """Give strided attention: the last `stride` keys, and every `stride`-th one before.

    Query i attends to key j if j <= i, and i - j <= stride or i - j is a multiple of stride. It is
    the union of the paper's two heads, {max(0, i - l), ..., i} and {j <= i : (i - j) mod l = 0}.

    Parameters
    ----------
    n : int
        The numbers of queries and of keys.
    stride : int
        The paper's l, near sqrt(n).

    References
    ----------
    Child, Gray, Radford and Sutskever, "Generating long sequences with sparse transformers", arXiv
    1904.10509, section 4.3.

    Raises
    ------
    SizeError
        A size is no positive integer.

    Examples
    --------
    >>> print(strided(6, stride=2).to_text())
    #.....
    ##....
    ###...
    .###..
    #.###.
    .#.###
    """
    n = positive("n", n, "the number of queries")
    stride = positive("stride", stride, "the stride")
    if stride == 1:
        return causal(n).named("strided(1)")
    i = np.arange(n, dtype=np.int64)
    # Single keys i - t stride, t from the most down to 2, and then the interval from i - stride on.
    turns = i // min(stride, n)
    singles = np.maximum(turns - 1, 0)
    row_of = np.repeat(i, singles + 1)
    t = -intervals.expanded(-np.maximum(turns, 1), np.zeros_like(i))
    starts = np.maximum(row_of - t * min(stride, n), 0)
    stops = np.where(t == 1, row_of + 1, starts + 1)
    return Mask.of(n, intervals.grouped(n, row_of, starts, stops), f"strided({stride})")


def fixed(n: int, stride: int, summary: int) -> Mask:
    """Give fixed attention: the query's own block, and the last `summary` keys of each before.

    Query i attends to key j if j <= i, and i // stride = j // stride or j mod stride >= stride -
    summary. It is the union of the paper's two heads.

    Parameters
    ----------
    n : int
        The numbers of queries and of keys.
    stride : int
        The paper's l, the keys of a block.
    summary : int
        The paper's c, at most `stride`.

    References
    ----------
    Child, Gray, Radford and Sutskever, "Generating long sequences with sparse transformers", arXiv
    1904.10509, section 4.3.

    Raises
    ------
    SizeError
        A size is no positive integer, or `summary` exceeds `stride`.

    Examples
    --------
    >>> print(fixed(6, stride=3, summary=1).to_text())
    #.....
    ##....
    ###...
    ..##..
    ..###.
    ..####
    """
    n = positive("n", n, "the number of queries")
    stride = positive("stride", stride, "the stride")
    summary = positive("summary", summary, "the keys that sum up a block")
    if summary > stride:
        raise SizeError(f"summary = {summary}: a block has {stride} keys")
    name = f"fixed({stride}, {summary})"
    if summary == stride or stride >= n:
        return causal(n).named(name)
    i = np.arange(n, dtype=np.int64)
    block = i // stride
    # The summary of the block before runs on into the query's own block.
    earlier = np.maximum(block - 1, 0)
    row_of = np.repeat(i, earlier + 1)
    t = intervals.expanded(np.zeros_like(i), earlier + 1)
    starts = np.where(row_of < stride, 0, (t + 1) * stride - summary)
    stops = np.where(t == earlier[row_of], row_of + 1, (t + 1) * stride)
    return Mask.of(n, intervals.grouped(n, row_of, starts, stops), name)


def longformer(n: int, window: int, globals: Iterable[int] | Ints) -> Mask:
    """Give a sliding window with global tokens: these attend to all, and all attend to them.

    Query i attends to key j if |i - j| <= window / 2, or i or j is global.

    Parameters
    ----------
    n : int
        The numbers of queries and of keys.
    window : int
        How many keys besides its own; an even number, half of it on each side.
    globals : iterable of int
        Which tokens are global; there may be none.

    References
    ----------
    Beltagy, Peters and Cohan, "Longformer: the long-document transformer", arXiv 2004.05150,
    section 3.1.

    Raises
    ------
    SizeError, MaskError
        A size is no positive integer, or the window no even one, or below 0; a token that does not
        exist.

    Examples
    --------
    >>> print(longformer(5, window=2, globals=[0]).to_text())
    #####
    ###..
    ####.
    #.###
    #..##
    """
    n = positive("n", n, "the number of queries")
    half = even("window", window, "the window") // 2
    tokens = np.unique(indices("globals", globals, n, "tokens"))
    rows = _with_globals(_near(n, half), tokens)
    return Mask.of(n, rows, f"longformer({window}, {len(tokens)} global)")


def bigbird(n: int, block: int, window: int, globals: int, random: int, seed: int) -> Mask:
    """Give BigBird's mask of blocks: a window, global blocks at the start, and random ones.

    A block of queries attends to `window` blocks around its own; the first `globals` blocks attend
    to all and all attend to them; every other block attends to `random` blocks besides, drawn
    without repetition from the rest, or to all of the rest where it has fewer.

    Parameters
    ----------
    n : int
        The numbers of queries and of keys. The last block may be smaller.
    block : int
        The tokens of a block.
    window : int
        How many blocks are near, its own among them; an odd number, half the others on each side.
    globals : int
        How many blocks are global.
    random : int
        How many random blocks a block of queries has.
    seed : int
        For NumPy's default generator; equal seeds give equal masks.

    References
    ----------
    Zaheer et al., "Big Bird: transformers for longer sequences", arXiv 2007.14062, section 2: the
    variant whose global tokens are some of the sequence's own.

    Raises
    ------
    SizeError
        `n` or `block` is no positive integer, `window` no odd one, or another number below 0.

    Examples
    --------
    >>> mask = bigbird(12, block=2, window=3, globals=1, random=1, seed=0)
    >>> print(mask.to_text()[:12])
    ############
    >>> [int(mask.row_counts[i]) for i in (0, 2, 6, 10)]
    [12, 8, 10, 8]
    """
    n = positive("n", n, "the number of queries")
    block = positive("block", block, "the tokens of a block")
    window = positive("window", window, "the blocks that are near")
    globals = whole("globals", globals, "the global blocks")
    random = whole("random", random, "the random blocks of a block row")
    seed = whole("seed", seed, "the seed")
    if window % 2 == 0:
        raise SizeError(f"window = {window}: it must be odd, the blocks on both sides and its own")
    name = f"bigbird({block}, {window}, {globals}, {random}, seed={seed})"
    block = min(block, n)
    number = -(-n // block)
    half, first = min(window // 2, number), min(globals, number)
    rows = _with_globals(_near(number, half), np.arange(first, dtype=np.int64))
    draws = _drawn(number, half, first, min(random, number), seed)
    mask = Mask.of(number, intervals.union(number, rows, draws), "")
    return blocks(mask, block, n, n).named(name)


def _near(n: int, half: int) -> intervals.Rows:
    return window(n, half, half).rows


def _with_globals(rows: intervals.Rows, tokens: Ints) -> intervals.Rows:
    # Some keys for all rows, and all keys for some rows.
    n = rows.number
    everywhere = intervals.runs(1, np.zeros_like(tokens), tokens)
    columns = intervals.taken(everywhere, np.zeros(n, np.int64))
    lines = np.zeros(n, np.int64)
    lines[tokens] = n
    return intervals.union(n, rows, columns, intervals.one_each(np.zeros(n, np.int64), lines))


def _drawn(number: int, half: int, globals: int, random: int, seed: int) -> intervals.Rows:
    # Block row r draws from the blocks that are neither global nor near. Floyd's way, for all rows
    # at once: of c, the k-th of m draws takes one of the first c - m + k + 1, or the last of these
    # if it has that one already.
    generator = np.random.default_rng(seed)
    r = np.arange(globals, number, dtype=np.int64)
    near = np.maximum(r - half, globals)
    gap = np.minimum(r + half + 1, number) - near
    rest = number - globals - gap
    drawn = np.full((len(r), random), -1)
    wanted = np.minimum(random, rest)
    for k in range(drawn.shape[1]):
        top = rest - wanted + k
        draw = generator.integers(0, np.maximum(top, 0) + 1)
        draw = np.where((drawn[:, :k] == draw[:, None]).any(axis=1), top, draw)
        drawn[:, k] = np.where(k < wanted, draw, -1)
    row_of, _ = np.nonzero(drawn >= 0)
    chosen = drawn[drawn >= 0] + globals
    chosen += np.where(chosen >= near[row_of], gap[row_of], 0)
    return intervals.united(number, number, row_of + globals, chosen, chosen + 1)
