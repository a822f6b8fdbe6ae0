"""Compiled walks over a mask's intervals, a row of tiles at a time."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]

# What is counted in a tile; the places of `count_tiles`' rows. Then, for each class of pairs
# (row_first + 2 * column_first), the rows and the columns that have started once its last pair in
# the tile is done; -1 where the tile has no pair of the class.
PAIRS, QUERIES, KEYS, ROWS_STARTED, ROWS_FINISHED, COLUMNS_STARTED, COLUMNS_FINISHED = range(7)
BOTH_STARTED, ONLY, COUNTS = 7, 8, 9
CLASSES = 4
WIDTH = COUNTS + 2 * CLASSES


@njit(cache=True, nogil=True)
def count_tiles(
    row_starts: Ints,
    starts: Ints,
    stops: Ints,
    keys: int,
    new_starts: Ints,
    new_columns: Ints,
    done_starts: Ints,
    done_columns: Ints,
    rows: int,
    cols: int,
) -> tuple[Ints, Ints, Ints, Ints]:
    """Count what is in each tile that is not empty, in row-major order of the tiles.

    Neighbours in a row of tiles that no interval starts or stops in, and whose keys are all new
    or all not, and as many done, are alike: they are counted once, as a strip.

    ``new_columns[new_starts[i]:new_starts[i + 1]]`` are the keys, ascending, whose first query is
    i, and `done_columns` those whose last it is.

    Returns
    -------
    starts, columns, repeats, counts : array of int
        Where the strips of each row of tiles start; each strip's first column of tiles, and its
        length; what the names above say, a row a strip.
    """
    n = len(row_starts) - 1
    blocks, across = (n + rows - 1) // rows, (keys + cols - 1) // cols
    strip_starts = np.zeros(blocks + 1, np.int64)
    columns, repeats = np.empty(1024, np.int64), np.empty(1024, np.int64)
    counts = np.zeros((1024, WIDTH), np.int64)
    slot = np.zeros(across + 1, np.int64)
    # Differences of how many intervals touch a tile column and a key; what ends in a tile column.
    touch, cover = np.zeros(across + 1, np.int64), np.zeros(keys + 1, np.int64)
    edged, fresh_in = np.zeros(across + 1, np.int64), np.zeros(across + 1, np.int64)
    done_in = np.zeros(across + 1, np.int64)
    row_seen = np.full(1024, -1, np.int64)
    strips = 0
    for block in range(blocks):
        begin, end = block * rows, min(n, block * rows + rows)
        left, right = across, -1
        for t in range(row_starts[begin], row_starts[end]):
            a, b = starts[t] // cols, (stops[t] - 1) // cols
            touch[a] += 1
            touch[b + 1] -= 1
            cover[starts[t]] += 1
            cover[stops[t]] -= 1
            edged[a] = edged[b] = 1
            left, right = min(left, a), max(right, b)
        for at in range(new_starts[begin], new_starts[end]):
            fresh_in[new_columns[at] // cols] += 1
        for at in range(done_starts[begin], done_starts[end]):
            done_in[done_columns[at] // cols] += 1
        # Strips: tile columns that are touched, alike and neighbours.
        first = strips
        depth, over = 0, 0
        for column in range(left, right + 1):
            depth += touch[column]
            low, high = column * cols, min(keys, column * cols + cols)
            covered = 0
            for j in range(low, high):
                over += cover[j]
                covered += over > 0
            if not depth:
                continue
            if (
                strips > first
                and columns[strips - 1] + repeats[strips - 1] == column
                and not edged[column]
                and not edged[column - 1]
                and fresh_in[column] == fresh_in[column - 1]
                and (fresh_in[column] == 0 or fresh_in[column] == cols)
                and done_in[column] == done_in[column - 1]
            ):
                repeats[strips - 1] += 1
                slot[column] = strips - 1
                continue
            if strips == len(columns):
                columns, repeats = np.append(columns, columns), np.append(repeats, repeats)
                row_seen = np.append(row_seen, row_seen)
                grown = np.zeros((2 * strips, WIDTH), np.int64)
                grown[:strips] = counts
                counts = grown
            columns[strips], repeats[strips], slot[column] = column, 1, strips
            row_seen[strips] = -1
            counts[strips, KEYS], counts[strips, COUNTS:] = covered, -1
            counts[strips, COLUMNS_FINISHED] = done_in[column]
            strips += 1
        for t in range(row_starts[begin], row_starts[end]):
            touch[starts[t] // cols] = touch[(stops[t] - 1) // cols + 1] = 0
            cover[starts[t]] = cover[stops[t]] = 0
            edged[starts[t] // cols] = edged[(stops[t] - 1) // cols] = 0
        for at in range(new_starts[begin], new_starts[end]):
            fresh_in[new_columns[at] // cols] = 0
        for at in range(done_starts[begin], done_starts[end]):
            done_in[done_columns[at] // cols] = 0
        strip_starts[block + 1] = strips
        for i in range(begin, end):
            opening, closing = row_starts[i], row_starts[i + 1] - 1
            new, new_end = new_starts[i], new_starts[i + 1]
            for t in range(opening, closing + 1):
                for at in range(slot[starts[t] // cols], slot[(stops[t] - 1) // cols] + 1):
                    low = max(starts[t], columns[at] * cols)
                    high = min(stops[t], columns[at] * cols + cols)
                    # The row's new keys up to here, in this tile, and in the strip's others.
                    while new < new_end and new_columns[new] < low:
                        new += 1
                    fresh = new
                    while new < new_end and new_columns[new] < high:
                        new += 1
                    begins = t == opening and low == starts[t]
                    ends = t == closing and high == stops[t]
                    seen = row_seen[at] == i
                    row_seen[at] = i
                    _run(counts[at], low, high, begins, ends, seen, new_columns, fresh, new)
    return strip_starts, columns[:strips], repeats[:strips], counts[:strips]


@njit(cache=True, nogil=True)
def _run(
    count: Ints,
    low: int,
    high: int,
    begins: bool,
    ends: bool,
    seen: bool,
    new_columns: Ints,
    fresh: int,
    new: int,
) -> None:
    """Count a run of keys of one query in a tile; ``new_columns[fresh:new]`` of them are new.

    `begins` and `ends` say whether the row's first and last pair are in it.
    """
    count[PAIRS] += high - low
    count[QUERIES] += not seen
    count[ROWS_STARTED] += begins
    count[ROWS_FINISHED] += ends
    count[ONLY] += begins and ends and high - low == 1
    rows_now, before = count[ROWS_STARTED], count[COLUMNS_STARTED]
    count[COLUMNS_STARTED] = before + new - fresh
    if begins:
        both = fresh < new and new_columns[fresh] == low
        count[BOTH_STARTED] += both
        kind = 3 if both else 1
        count[COUNTS + 2 * kind], count[COUNTS + 2 * kind + 1] = rows_now, before + both
    if new > fresh and not (begins and new_columns[new - 1] == low):
        count[COUNTS + 4], count[COUNTS + 5] = rows_now, before + new - fresh
    j = high - 1  # down to the last key that is not new
    while new > fresh and new_columns[new - 1] == j:
        j -= 1
        new -= 1
    if j > low or (j == low and not begins):
        count[COUNTS], count[COUNTS + 1] = rows_now, before + new - fresh


@njit(cache=True, nogil=True)
def first_owner(owner: Ints, queries: Ints, starts: Ints, stops: Ints) -> None:
    """Write at each key the query of the first interval that holds it.

    ``following[j]`` leads to the next key without an owner, with paths halved (Tarjan 1975).
    """
    keys = len(owner)
    following = np.arange(keys + 1)
    for t in range(len(queries)):
        j = starts[t]
        while True:
            while following[j] != j:
                following[j] = following[following[j]]
                j = following[j]
            if j >= stops[t]:
                break
            owner[j] = queries[t]
            following[j] = j + 1
