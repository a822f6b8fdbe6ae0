"""Checks of arguments, so that each kind of mistake has one message."""

from __future__ import annotations

import numbers

from pebble.errors import SizeError


def positive(name: str, value: object, meaning: str) -> int:
    """Give a positive integer back as an int.

    Raises
    ------
    SizeError
        It is none; the message names it.

    Examples
    --------
    >>> positive("cache", 8, "the cache")
    8
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise SizeError(f"{name} = {value!r}: {meaning} must be a positive integer")
    return int(value)
