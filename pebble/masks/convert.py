"""Masks from what others have: boolean arrays, sparse matrices and functions of indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pebble.errors import MaskError
from pebble.masks import intervals
from pebble.masks.arguments import Ints, sizes
from pebble.masks.mask import Mask

Booleans = NDArray[np.bool_]

# Booleans that are held at once; more rows are taken in parts.
AT_ONCE = 1 << 22


def from_array(array: ArrayLike) -> Mask:
    """Give the mask of a boolean array: true where a query (row) attends to a key (column).

    Parameters
    ----------
    array : 2-d array of bool
        Numbers are refused: a mask that is added to the scores has 0 where it attends.

    Raises
    ------
    MaskError
        It is not boolean, not two-dimensional, or empty.

    Examples
    --------
    >>> from_array([[True, False, True], [False, False, False]])
    Mask(from_array, 2 x 3, 2 pairs)
    """
    given = np.asarray(array)
    if given.ndim != 2 or not given.size:
        raise MaskError(f"an array of shape {given.shape}: a mask has queries and keys, 1 or more")
    if given.dtype != bool:
        raise MaskError(f"an array of type {given.dtype}: a mask is of booleans, true to attend")
    n, keys = given.shape
    parts = (given[i0:i1] for i0, i1 in _parts(n, keys))
    return Mask.of(keys, _rows_of(parts), "from_array")


def from_scipy(matrix: Any) -> Mask:
    """Give the mask of a SciPy sparse matrix or array: its entries that are not 0.

    Parameters
    ----------
    matrix : scipy.sparse matrix or array
        In any format. Entries of one place are added up; stored zeros don't attend.

    Raises
    ------
    MaskError
        It is none, not two-dimensional, or empty.

    Examples
    --------
    >>> from scipy.sparse import coo_array
    >>> from_scipy(coo_array([[0.5, 0.0, 2.0]]))
    Mask(from_scipy, 1 x 3, 2 pairs)
    """
    from scipy.sparse import csr_array, issparse

    if not issparse(matrix):
        raise MaskError(f"a {type(matrix).__name__}: from_scipy takes a SciPy sparse matrix")
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise MaskError(f"a matrix of shape {matrix.shape}: a mask has queries and keys, 1 or more")
    csr = csr_array(matrix, copy=True)
    csr.sum_duplicates()
    csr.eliminate_zeros()
    n, keys = csr.shape
    row_of = np.repeat(np.arange(n, dtype=np.int64), np.diff(csr.indptr))
    return Mask.of(keys, intervals.runs(n, row_of, csr.indices.astype(np.int64)), "from_scipy")


def from_function(function: Callable[[Ints, Ints], Any], n: int, keys: int | None = None) -> Mask:
    """Give the mask of a function of a query's and a key's number, as FlexAttention's mask_mod is.

    Parameters
    ----------
    function : callable
        Takes query numbers, a column, and key numbers, a row, and gives booleans of the broadcast
        shape, or of a shape that broadcasts to it. It is called for some rows at a time.
    n : int
        The number of queries.
    keys : int, optional
        The number of keys. Default `n`.

    References
    ----------
    PyTorch, ``torch.nn.attention.flex_attention``: ``mask_mod(b, h, q_idx, kv_idx)`` with batch and
    head left out.

    Raises
    ------
    SizeError, MaskError
        A size is no positive integer; what the function gives is not boolean, or has another shape.

    Examples
    --------
    >>> from_function(lambda q, k: (k <= q) & (k % 2 == 0), n=4).row_counts
    array([1, 1, 2, 2])
    """
    n, keys = sizes(n, keys)
    name = getattr(function, "__name__", type(function).__name__)
    name = "from_function" if name == "<lambda>" else name
    columns = np.arange(keys, dtype=np.int64)[None, :]
    parts = (
        _answer(function, name, np.arange(i0, i1, dtype=np.int64)[:, None], columns)
        for i0, i1 in _parts(n, keys)
    )
    return Mask.of(keys, _rows_of(parts), name)


def _answer(function: Callable[[Ints, Ints], Any], name: str, q: Ints, k: Ints) -> Booleans:
    shape = (len(q), k.shape[1])
    given = np.asarray(function(q, k))
    if given.dtype != bool:
        raise MaskError(f"{name} gives {given.dtype}: a mask is of booleans, true to attend")
    try:
        return np.broadcast_to(given, shape)
    except ValueError:
        raise MaskError(
            f"{name} gives shape {given.shape} for queries {q.shape} and keys {k.shape}: "
            f"it must broadcast to {shape}"
        ) from None


def _parts(n: int, keys: int) -> Iterator[tuple[int, int]]:
    step = max(1, AT_ONCE // keys)
    return ((i0, min(i0 + step, n)) for i0 in range(0, n, step))


def _rows_of(parts: Iterator[Booleans]) -> intervals.Rows:
    # The intervals of booleans that come some rows at a time.
    found = []
    for part in parts:
        padded = np.zeros((len(part), part.shape[1] + 2), bool)
        padded[:, 1:-1] = part
        row_of, edges = np.nonzero(padded[:, 1:] != padded[:, :-1])
        found.append(intervals.grouped(len(part), row_of[::2], edges[::2], edges[1::2]))
    counts = np.concatenate([np.diff(rows.row_starts) for rows in found])
    return intervals.Rows(
        intervals.prefix(counts),
        np.concatenate([rows.starts for rows in found]),
        np.concatenate([rows.stops for rows in found]),
    )
