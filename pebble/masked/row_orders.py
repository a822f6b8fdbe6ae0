"""Orders of the queries of a mask in which neighbours share keys.

Queries that share a block share its loads of keys, so their order decides the I/O of what has
query blocks outside. An order is an array of queries: ``order[0]`` comes first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pebble.checks import positive
from pebble.errors import SizeError
from pebble.masks import Mask

Ints = NDArray[np.int64]

# `greedy` looks at all queries for each place, and holds n x keys booleans.
MOST_GREEDY = 4096


def by_center(mask: Mask) -> Ints:
    """Give the queries by the mean of their keys, ties by number.

    Examples
    --------
    >>> from pebble.masks import from_array
    >>> by_center(from_array([[False, False, True], [True, False, False], [False, True, True]]))
    array([1, 2, 0])
    """
    starts, stops = mask.starts, mask.stops
    sums = np.zeros(len(starts) + 1)
    np.cumsum((starts + stops - 1) * (stops - starts) / 2, out=sums[1:])
    totals = sums[mask.row_starts[1:]] - sums[mask.row_starts[:-1]]
    return np.argsort(totals / np.maximum(mask.row_counts, 1), kind="stable")


def cuthill_mckee(mask: Mask) -> Ints:
    """Give the queries in the reverse Cuthill-McKee order of the graph of queries and keys.

    It walks from query to key to query, level by level, so that what is far apart in the order
    shares no key. It holds all pairs.

    References
    ----------
    Cuthill and McKee, "Reducing the bandwidth of sparse symmetric matrices", 1969; as SciPy has it.

    Examples
    --------
    >>> from pebble.masks import from_array
    >>> mask = from_array([[True, False], [False, True], [True, False], [False, True]])
    >>> sorted(map(sorted, cuthill_mckee(mask).reshape(2, 2).tolist()))
    [[0, 2], [1, 3]]
    """
    from scipy.sparse import block_array, csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    pairs = csr_array(mask.to_scipy())
    both = csr_array(block_array([[None, pairs], [pairs.T, None]]))
    order = np.asarray(reverse_cuthill_mckee(both, symmetric_mode=True), np.int64)
    return order[order < mask.n]


def greedy(mask: Mask, rows: int) -> Ints:
    """Give the queries in blocks of `rows`, each filled with those that bring the fewest new keys.

    A block begins with the query that has the fewest keys that are left, the first among equals.

    Raises
    ------
    SizeError
        More than 4096 queries or keys; a block that is no positive integer.

    Examples
    --------
    >>> from pebble.masks import from_array
    >>> mask = from_array([[True, False], [False, True], [True, False], [False, True]])
    >>> greedy(mask, rows=2).tolist()
    [0, 2, 1, 3]
    """
    rows = positive("rows", rows, "the queries in a block")
    if max(mask.shape) > MOST_GREEDY:
        raise SizeError(
            f"a mask of {mask.n} x {mask.keys}: the greedy order takes at most {MOST_GREEDY} "
            "queries and keys"
        )
    table = mask.to_array()
    left, order = np.ones(mask.n, bool), np.empty(mask.n, np.int64)
    for place in range(mask.n):
        if place % rows == 0:
            fresh = table.copy()
            new = fresh.sum(axis=1)
        chosen = int(np.argmin(np.where(left, new, mask.keys + 1)))
        order[place], left[chosen] = chosen, False
        brought = fresh[chosen].nonzero()[0]
        new = new - fresh[:, brought].sum(axis=1)
        fresh[:, brought] = False
    return order
