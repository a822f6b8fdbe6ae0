"""The tiles that a kernel visits by its own loop bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pebble.checks import positive
from pebble.masks.arguments import sizes, whole


@dataclass(frozen=True)
class TileCount:
    """How many tiles a kernel visits, of how many.

    Parameters
    ----------
    visited, total : int
    """

    visited: int
    total: int

    def __str__(self) -> str:
        return f"{self.visited} of {self.total} tiles"


def flash2_tiles(
    n: int,
    rows: int = 128,
    cols: int = 64,
    keys: int | None = None,
    left: int | None = None,
    right: int | None = None,
) -> TileCount:
    """Count the tiles that FlashAttention-2's forward kernel visits.

    For tile row m it loops from ``max(0, (m rows + keys - n - left) // cols)`` to, not including
    it, ``min(ceil(keys / cols), ceil(((m + 1) rows + keys - n + right) / cols))``. Causal is
    ``right=0``. It never skips a tile in between.

    Parameters
    ----------
    n : int
        The number of queries.
    rows, cols : int
        The queries and keys of a tile, the kernel's kBlockM and kBlockN. The defaults are those of
        head dimensions 96 and, without dropout, 128 on A100 and H100; at dimension 64 without
        dropout it is 128 x 128.
    keys : int, optional
        The number of keys. Default `n`.
    left, right : int or None
        The window, as in `pebble.masks.window`. None: no bound on that side.

    Notes
    -----
    It equals ``window(n, left, right, keys).tiles(rows, cols).hull_visited`` for every size, which
    the tests check: the rule is exact, and visits no tile of a window that is empty. (The kernel's
    host code sets a missing side of a window to `keys`; that is the same unless there are more
    queries than keys.)

    References
    ----------
    FlashAttention-2's ``flash_fwd_kernel.h``, n_block_min and n_block_max, and
    ``flash_fwd_launch_template.h`` for the tiles.

    Raises
    ------
    SizeError
        A size is no positive integer, `left` or `right` no integer that is 0 or more.

    Examples
    --------
    8 tile rows of 128, causal: the first visits 2 tiles of 64 keys, the next 4, up to 16.

    >>> print(flash2_tiles(1024, right=0))
    72 of 128 tiles
    """
    n, keys = sizes(n, keys)
    rows = min(positive("rows", rows, "the queries of a tile"), n)
    cols = min(positive("cols", cols, "the keys of a tile"), keys)
    across = -(-keys // cols)
    m = np.arange(-(-n // rows), dtype=np.int64)
    first, last = np.zeros_like(m), np.full_like(m, across)
    if right is not None:
        right = min(whole("right", right, "the keys after a query's own"), n + keys)
        last = np.minimum(last, -(-((m + 1) * rows + keys - n + right) // cols))
    if left is not None:
        left = min(whole("left", left, "the keys before a query's own"), n + keys)
        first = np.maximum(first, (m * rows + keys - n - left) // cols)
    return TileCount(int(np.maximum(last - first, 0).sum()), len(m) * across)
