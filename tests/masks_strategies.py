"""Hypothesis strategies for masks, alone or with the table of booleans that they should be."""

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from pebble.masks import (
    blocks,
    causal,
    dilated,
    document,
    fixed,
    from_array,
    from_function,
    from_scipy,
    full,
    longformer,
    strided,
    window,
)
from tests import masks_naive as naive

SQUARE = ("strided", "fixed", "dilated", "longformer", "document")
ANY = ("full", "causal", "window", "blocks", "array", "scipy", "function")


def masks(max_n=9, max_keys=9, depth=2):
    """Draw a mask: one of the constructors, or such masks combined, permuted or transposed."""
    return told_masks(max_n, max_keys, depth).map(lambda told: told[0])


@st.composite
def told_masks(draw, max_n=9, max_keys=9, depth=2):
    """Draw a mask and its table."""
    n, keys = draw(st.integers(1, max_n)), draw(st.integers(1, max_keys))
    if draw(st.booleans()):
        n = keys = min(n, keys)
    return draw(told_masks_of(n, keys, depth))


@st.composite
def told_masks_of(draw, n, keys, depth=2):
    """Draw a mask of this shape, and its table."""
    made = ["plain", "plain", "and", "or", "not", "transposed", "permuted"] if depth else ["plain"]
    how = draw(st.sampled_from(made))
    if how == "plain":
        return draw(plain(n, keys))
    if how == "transposed":
        mask, rows = draw(told_masks_of(keys, n, depth - 1))
        return mask.T, naive.transposed(rows)
    mask, rows = draw(told_masks_of(n, keys, depth - 1))
    if how == "not":
        return ~mask, naive.neither(rows)
    if how == "permuted":
        order = draw(st.permutations(range(n)))
        return mask.permuted(order), [rows[i] for i in order]
    other, other_rows = draw(told_masks_of(n, keys, depth - 1))
    if how == "and":
        return mask & other, naive.both(rows, other_rows)
    return mask | other, naive.either(rows, other_rows)


@st.composite
def plain(draw, n, keys):
    """Draw a mask of this shape from a constructor, and its table."""
    name = draw(st.sampled_from(ANY + SQUARE if n == keys else ANY))
    return draw(globals()[f"_{name}"](n, keys))


def _full(n, keys):
    return st.builds(lambda: (full(n, keys), naive.table(n, keys, lambda i, j: True)))


def _causal(n, keys):
    return st.builds(lambda: (causal(n, keys), naive.window(n, None, 0, keys)))


@st.composite
def _window(draw, n, keys):
    left, right = (draw(st.none() | st.integers(0, n + keys)) for _ in range(2))
    one_way = draw(st.booleans())
    rows = naive.window(n, left, 0 if one_way else right, keys)
    return window(n, left, right, keys, causal=one_way), rows


@st.composite
def _blocks(draw, n, keys):
    rows, cols = draw(st.integers(1, n + 1)), draw(st.integers(1, keys + 1))
    pattern = draw(tables(-(-n // rows), -(-keys // cols)))
    size = rows if rows == cols and draw(st.booleans()) else (rows, cols)
    mask = blocks(from_array(pattern) if draw(st.booleans()) else pattern, size, n, keys)
    return mask, naive.blocks(pattern, rows, cols, n, keys)


@st.composite
def _array(draw, n, keys):
    rows = draw(tables(n, keys))
    return from_array(rows), rows


@st.composite
def _scipy(draw, n, keys):
    from scipy.sparse import coo_array

    rows = draw(tables(n, keys))
    pairs = draw(st.permutations(naive.pairs_of(rows)))
    # A stored zero does not attend, and a pair may come twice.
    pairs = [(i, j, 1.0) for i, j in pairs + pairs[:2]] + [(0, 0, 0.0)]
    i, j, values = zip(*pairs, strict=True)
    matrix = coo_array((values, (i, j)), shape=(n, keys))
    return from_scipy(matrix if draw(st.booleans()) else matrix.tocsr()), rows


@st.composite
def _function(draw, n, keys):
    rows = draw(tables(n, keys))
    array = np.array(rows)
    return from_function(lambda q, k: array[q, k], n, keys), rows


@st.composite
def _strided(draw, n, keys):
    stride = draw(st.integers(1, n + 2))
    return strided(n, stride), naive.strided(n, stride)


@st.composite
def _fixed(draw, n, keys):
    stride = draw(st.integers(1, n + 2))
    summary = draw(st.integers(1, stride))
    return fixed(n, stride, summary), naive.fixed(n, stride, summary)


@st.composite
def _dilated(draw, n, keys):
    half, dilation = draw(st.integers(0, n + 1)), draw(st.integers(1, n + 1))
    one_way = draw(st.booleans())
    rows = naive.dilated(n, half, dilation, one_way)
    return dilated(n, 2 * half, dilation, causal=one_way), rows


@st.composite
def _longformer(draw, n, keys):
    half = draw(st.integers(0, n + 1))
    tokens = draw(st.lists(st.integers(0, n - 1), max_size=3))
    return longformer(n, 2 * half, tokens), naive.longformer(n, half, tokens)


@st.composite
def _document(draw, n, keys):
    cuts = [0, *sorted(draw(st.sets(st.integers(1, max(1, n - 1)), max_size=4)) - {n}), n]
    lengths = [b - a for a, b in pairwise(cuts)]
    one_way = draw(st.booleans())
    return document(lengths, causal=one_way), naive.document(lengths, one_way)


def tables(n, keys):
    """Draw a table of booleans."""
    row = st.lists(st.booleans(), min_size=keys, max_size=keys)
    return st.lists(row, min_size=n, max_size=n)
