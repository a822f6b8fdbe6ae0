"""One step of a polynomial of a sparse matrix times a block of vectors, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, fastmath={"contract"})
def advance(
    starts: Any, columns: Any, numbers: Any, now: Any, before: Any, centre: float, scale: float
) -> None:
    """Put scale (A - centre) now - before in the place of `before`, for A in sparse rows.

    In one pass: the block doesn't fit in a cache, and a step in several passes takes twice as long.
    """
    width = now.shape[1]
    row = np.empty(width)
    for i in range(len(starts) - 1):
        for j in range(width):
            row[j] = -centre * now[i, j]
        for at in range(starts[i], starts[i + 1]):
            number, other = numbers[at], columns[at]
            for j in range(width):
                row[j] += number * now[other, j]
        for j in range(width):
            before[i, j] = scale * row[j] - before[i, j]
