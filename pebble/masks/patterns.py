"""The plain masks: full, causal, windows, blocks and packed documents."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from pebble.checks import positive
from pebble.errors import MaskError
from pebble.masks import intervals
from pebble.masks.arguments import Ints, even, sizes, whole
from pebble.masks.convert import from_array
from pebble.masks.mask import Mask


def full(n: int, keys: int | None = None) -> Mask:
    """Give the mask in which every query attends to every key.

    Parameters
    ----------
    n : int
        The number of queries.
    keys : int, optional
        The number of keys. Default `n`.

    Raises
    ------
    SizeError
        A size is no positive integer.

    Examples
    --------
    >>> full(2, keys=3)
    Mask(full, 2 x 3, 6 pairs)
    """
    n, keys = sizes(n, keys)
    rows = intervals.one_each(np.zeros(n, np.int64), np.full(n, keys))
    return Mask.of(keys, rows, "full")


def causal(n: int, keys: int | None = None) -> Mask:
    """Give the mask in which a query attends to its own key and those before.

    Query i has key i + keys - n for its own: where there are more keys than queries, the last query
    has the last key, as when new queries come after keys that are cached. With fewer keys than
    queries, the first queries attend to nothing.

    Parameters
    ----------
    n : int
        The number of queries.
    keys : int, optional
        The number of keys. Default `n`.

    Raises
    ------
    SizeError
        A size is no positive integer.

    Examples
    --------
    >>> print(causal(2, keys=4).to_text())
    ###.
    ####
    """
    return window(n, None, 0, keys).named("causal")


def window(
    n: int,
    left: int | None,
    right: int | None,
    keys: int | None = None,
    causal: bool = False,
) -> Mask:
    """Give a sliding window: a query attends to its own key, `left` before it and `right` after.

    Query i attends to key j if ``i + keys - n - left <= j <= i + keys - n + right``, the rule of
    FlashAttention's ``window_size``.

    Parameters
    ----------
    n : int
        The number of queries.
    left, right : int or None
        How many keys before and after its own. None: all that there are.
    keys : int, optional
        The number of keys. Default `n`.
    causal : bool
        Leave out the keys after its own, as if `right` were 0.

    Raises
    ------
    SizeError
        A size is no positive integer, `left` or `right` no integer that is 0 or more.

    Examples
    --------
    >>> print(window(4, left=1, right=0).to_text())
    #...
    ##..
    .##.
    ..##
    """
    n, keys = sizes(n, keys)
    left = None if left is None else whole("left", left, "the keys before a query's own")
    right = None if right is None else whole("right", right, "the keys after a query's own")
    if causal:
        right = 0
    name, most = f"window({left}, {right})", n + keys  # a window that is larger reaches no further
    own = np.arange(n, dtype=np.int64) + (keys - n)
    starts, stops = np.zeros(n, np.int64), np.full(n, keys)
    if left is not None:
        starts = np.maximum(own - min(left, most), 0)
    if right is not None:
        stops = np.clip(own + min(right, most) + 1, 0, keys)
    return Mask.of(keys, intervals.one_each(starts, stops), name)


def dilated(n: int, window: int, dilation: int, causal: bool = False) -> Mask:
    """Give a dilated window: `window` / 2 keys on each side, every `dilation`-th one.

    Query i attends to key i + t dilation for -window / 2 <= t <= window / 2, so to its own key too,
    as far as there are such keys. Dilation 1 is a sliding window.

    Parameters
    ----------
    n : int
        The numbers of queries and of keys.
    window : int
        How many keys besides its own; an even number, half of it on each side.
    dilation : int
        From one of these keys to the next.
    causal : bool
        Leave out the keys after its own.

    References
    ----------
    Beltagy, Peters and Cohan, "Longformer: the long-document transformer", arXiv 2004.05150,
    section 3.1.

    Raises
    ------
    SizeError
        A size is no positive integer, or the window no even one, or below 0.

    Examples
    --------
    >>> print(dilated(6, window=2, dilation=2).to_text())
    #.#...
    .#.#..
    #.#.#.
    .#.#.#
    ..#.#.
    ...#.#
    """
    n = positive("n", n, "the number of queries")
    half = even("window", window, "the window") // 2
    dilation = positive("dilation", dilation, "the step of a dilated window")
    name = f"dilated({window}, {dilation}{', causal=True' if causal else ''})"
    # Beyond n there are no keys.
    half, step = min(half, n), min(dilation, n)
    i = np.arange(n, dtype=np.int64)
    before = np.minimum(half, i // step)
    after = np.zeros_like(i) if causal else np.minimum(half, (n - 1 - i) // step)
    counts = before + after + 1
    row_of = np.repeat(i, counts)
    turns = intervals.expanded(-before, after + 1)
    rows = intervals.runs(n, row_of, row_of + turns * step)
    return Mask.of(n, rows, name)


def blocks(
    pattern: ArrayLike | Mask,
    size: int | tuple[int, int],
    n: int | None = None,
    keys: int | None = None,
) -> Mask:
    """Give a mask of blocks: a query block attends to a key block where the pattern is true.

    Parameters
    ----------
    pattern : 2-d array of bool, or Mask
        Which blocks attend to which.
    size : int or pair of int
        The queries and the keys of a block; one number for both.
    n, keys : int, optional
        The numbers of queries and keys, where the last block is smaller. Default: whole blocks.

    Raises
    ------
    SizeError, MaskError
        A size that is no positive integer; a pattern that is no boolean table, or has too many or
        too few blocks for `n` or `keys`.

    Examples
    --------
    >>> print(blocks([[True, False], [True, True]], size=(1, 2), keys=3).to_text())
    ##.
    ###
    """
    mask = pattern if isinstance(pattern, Mask) else from_array(pattern)
    if isinstance(size, tuple) and len(size) != 2:
        raise MaskError(f"size = {size!r}: it is one number, or the rows and cols of a block")
    rows, cols = size if isinstance(size, tuple) else (size, size)
    rows = positive("rows" if isinstance(size, tuple) else "size", rows, "the queries of a block")
    cols = positive("cols" if isinstance(size, tuple) else "size", cols, "the keys of a block")
    n = _cut("n", n, mask.n, rows, "block rows")
    keys = _cut("keys", keys, mask.keys, cols, "block columns")
    told = f"{rows}" if rows == cols else f"({rows}, {cols})"
    return Mask.of(
        keys,
        intervals.stretched(mask.rows, min(rows, n), min(cols, keys), n, keys),
        f"blocks({mask.name}, {told})" if isinstance(pattern, Mask) else f"blocks({told})",
    )


def _cut(name: str, given: int | None, number: int, size: int, what: str) -> int:
    # The number of queries or keys, which ends in the last of the pattern's blocks.
    if given is None:
        return number * size
    value = positive(name, given, f"the number of {'queries' if name == 'n' else 'keys'}")
    if not (number - 1) * size < value <= number * size:
        raise MaskError(
            f"{name} = {value}: {number} {what} of {size} hold {(number - 1) * size + 1} to "
            f"{number * size}"
        )
    return value


def document(lengths: Iterable[int] | Ints, causal: bool = False) -> Mask:
    """Give the mask of sequences packed one after another: each attends to itself alone.

    Parameters
    ----------
    lengths : iterable of int
        The length of each; their sum is the number of queries and of keys.
    causal : bool
        Whether a query attends to its own key and those before only.

    Raises
    ------
    SizeError, MaskError
        A length is no positive integer; there is none.

    Examples
    --------
    >>> print(document([2, 1], causal=True).to_text())
    #..
    ##.
    ..#
    """
    given = [positive(f"lengths[{t}]", each, "a length") for t, each in enumerate(lengths)]
    if not given:
        raise MaskError("lengths = []: there must be one sequence or more")
    each = np.array(given, np.int64)
    ends = np.cumsum(each)
    n = int(ends[-1])
    starts, stops = np.repeat(ends - each, each), np.repeat(ends, each)
    if causal:
        stops = np.arange(1, n + 1)
    told = f"{len(given)} of {given[0]}" if len(set(given)) == 1 else f"{len(given)} sequences"
    name = f"document({told}{', causal=True' if causal else ''})"
    return Mask.of(n, intervals.one_each(starts, stops), name)
