"""Checks of the arguments of masks, so that each kind of mistake has one message."""

from __future__ import annotations

import numbers
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pebble.checks import positive
from pebble.errors import MaskError, SizeError

Ints = NDArray[np.int64]


def whole(name: str, value: object, meaning: str) -> int:
    """Give an integer that is 0 or more back as an int.

    Raises
    ------
    SizeError
        It is none; the message names it.

    Examples
    --------
    >>> whole("left", 0, "the keys to the left")
    0
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 0:
        raise SizeError(f"{name} = {value!r}: {meaning} must be an integer, 0 or more")
    return int(value)


def even(name: str, value: object, meaning: str) -> int:
    """Give an even integer that is 0 or more back as an int.

    Raises
    ------
    SizeError
        It is none; the message names it.

    Examples
    --------
    >>> even("window", 4, "the window")
    4
    """
    window = whole(name, value, meaning)
    if window % 2:
        raise SizeError(f"{name} = {window}: {meaning} must be even, half of it on each side")
    return window


def sizes(n: object, keys: object) -> tuple[int, int]:
    """Give the numbers of queries and keys; None keys are as many as queries.

    Raises
    ------
    SizeError
        One is no positive integer.

    Examples
    --------
    >>> sizes(4, None)
    (4, 4)
    """
    n = positive("n", n, "the number of queries")
    return n, n if keys is None else positive("keys", keys, "the number of keys")


def span(names: str, first: object, last: object, size: int, what: str) -> tuple[int, int]:
    """Give a half-open range of rows or columns, ``0 <= first <= last <= size``.

    Raises
    ------
    MaskError
        It is none; the message names it.

    Examples
    --------
    >>> span("i0, i1", 1, 3, 4, "queries")
    (1, 3)
    """
    ends = (first, last)
    if any(isinstance(end, bool) or not isinstance(end, numbers.Integral) for end in ends) or not (
        0 <= first <= last <= size  # type: ignore[operator]
    ):
        raise MaskError(
            f"{names} = {first!r}, {last!r}: a range of the {size} {what} has 0 <= start <= stop "
            f"<= {size}"
        )
    return int(first), int(last)  # type: ignore[call-overload]


def indices(name: str, values: object, size: int, what: str) -> Ints:
    """Give indices below `size` as an array.

    Raises
    ------
    MaskError
        They are no integers, or out of range.

    Examples
    --------
    >>> indices("rows", [2, 0], 3, "queries")
    array([2, 0])
    """
    if not isinstance(values, np.ndarray):
        values = list(values) if isinstance(values, Iterable) else values
    given = np.asarray(values)
    if not given.size:
        return np.zeros(given.shape, np.int64)
    if given.dtype.kind not in "iu":
        raise MaskError(f"{name} of type {given.dtype}: they are integers, numbers of {what}")
    wrong = (given < 0) | (given >= size)
    if wrong.any():
        first = int(given[wrong].flat[0])
        raise MaskError(f"{name} has {first}: the {size} {what} are numbered 0 to {size - 1}")
    return given.astype(np.int64)
