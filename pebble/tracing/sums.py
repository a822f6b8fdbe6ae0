"""Sums of products and other reductions, on arrays of vertex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from pebble.errors import TraceError
from pebble.tracing.recorder import Ids, Recorder


def axes_of(terms: Ids, axis: Any) -> tuple[int, ...]:
    """Give the axes that a reduction runs along, in increasing order; for None all of them.

    Raises
    ------
    TraceError
        There is nothing to reduce.

    Examples
    --------
    >>> axes_of(np.zeros((2, 3), int), -1), axes_of(np.zeros((2, 3), int), None)
    ((1,), (0, 1))
    """
    np.sum(np.zeros(terms.shape, np.int8), axis=axis)  # NumPy's checks
    if 0 in terms.shape:
        raise TraceError(f"a reduction of an array of shape {terms.shape}: it has no numbers")
    given = range(terms.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return tuple(sorted(range(terms.ndim)[one] for one in given))


def last_totals(totals: Ids, axes: tuple[int, ...], keepdims: bool) -> Ids:
    """Give the totals at the last place along some axes.

    Examples
    --------
    >>> last_totals(np.array([[0, 4], [1, 5]]), (1,), keepdims=False)
    array([4, 5])
    """
    index = [-1 if axis in axes else slice(None) for axis in range(totals.ndim)]
    last = np.asarray(totals[tuple(index)])
    return np.expand_dims(last, axes) if keepdims else last


def multiply_and_sum(recorder: Recorder, a: Ids, b: Ids) -> Ids:
    """Record a product of matrices or vectors: the products [i,j,k], then their sums over k."""
    shape = np.matmul(*(np.zeros(side.shape, np.int8) for side in (a, b))).shape
    left = (a[None, :] if a.ndim == 1 else a)[..., :, None, :]
    right = np.swapaxes(b[:, None] if b.ndim == 1 else b, -1, -2)[..., None, :, :]
    if a.ndim == 1:  # an axis that has no place in the result has none in the labels
        left = left[..., 0, :, :]
        right = right[..., 0, :, :]
    if b.ndim == 1:
        left, right = left[..., 0, :], right[..., 0, :]
    products = recorder.elementwise("multiply", left, right)
    totals = recorder.chain("add", products, (products.ndim - 1,))
    return last_totals(totals, (products.ndim - 1,), keepdims=False).reshape(shape)


def sum_of_products(recorder: Recorder, subscripts: Any, *operands: Ids) -> Ids:
    """Record np.einsum: products from left to right, then sums over the letters not kept.

    Raises
    ------
    TraceError
        Subscripts with an ellipsis, or that are no string.
    """
    if not isinstance(subscripts, str) or "." in subscripts:
        raise TraceError(f"np.einsum of {subscripts!r}: only letters, commas and -> are recorded")
    np.einsum(subscripts, *(np.zeros(ids.shape, np.int8) for ids in operands))  # NumPy's checks
    given, arrow, kept = subscripts.replace(" ", "").partition("->")
    terms = given.split(",")
    if not arrow:
        letters = sorted(set(given) - {","})
        kept = "".join(letter for letter in letters if given.count(letter) == 1)
    order = "".join(dict.fromkeys(kept + given.replace(",", "")))
    have, ids = _in_order(order, terms[0], operands[0])
    for term, operand in zip(terms[1:], operands[1:], strict=True):
        more, factor = _in_order(order, term, operand)
        union = "".join(letter for letter in order if letter in have + more)
        sides = _spread(ids, have, union), _spread(factor, more, union)
        have, ids = union, recorder.elementwise("multiply", *sides)
    axes = tuple(axis for axis, letter in enumerate(have) if letter not in kept)
    if not axes:
        return ids
    return last_totals(recorder.chain("add", ids, axes_of(ids, axes)), axes, keepdims=False)


def _in_order(order: str, term: str, ids: Ids) -> tuple[str, Ids]:
    # A letter that is there twice takes the diagonal.
    letters = "".join(letter for letter in order if letter in term)
    return letters, np.einsum(f"{term}->{letters}", ids)


def _spread(ids: Ids, have: str, want: str) -> Ids:
    return ids[tuple(slice(None) if letter in have else None for letter in want)]
