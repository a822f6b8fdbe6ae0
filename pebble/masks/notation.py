"""Masks from a line of text, as the command line takes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from pebble.errors import MaskError
from pebble.masks.mask import Mask
from pebble.masks.patterns import causal, dilated, document, full, window
from pebble.masks.published import bigbird, fixed, longformer, strided

Make = Callable[..., Mask]


class Pattern(NamedTuple):
    """A pattern that has a notation.

    Parameters
    ----------
    parameters : sequence of str
        The names of its numbers.
    make : callable
        Gives the mask from n, keys and the numbers.
    square : bool
        Whether there are as many keys as queries.
    """

    parameters: tuple[str, ...]
    make: Make
    square: bool = True


def _documents(n: int, keys: int, length: int) -> Mask:
    whole, rest = divmod(n, max(length, 1))
    return document([length] * whole + ([rest] if rest else []) if length > 0 else [length])


PATTERNS = {
    "full": Pattern((), full, square=False),
    "causal": Pattern((), causal, square=False),
    "window": Pattern(
        ("left", "right"), lambda n, m, left, right: window(n, left, right, m), square=False
    ),
    "dilated": Pattern(("window", "dilation"), lambda n, m, *sizes: dilated(n, *sizes)),
    "document": Pattern(("length",), _documents),
    "longformer": Pattern(
        ("window", "globals"), lambda n, m, size, count: longformer(n, size, range(count))
    ),
    "bigbird": Pattern(
        ("block", "window", "globals", "random", "seed"), lambda n, m, *sizes: bigbird(n, *sizes)
    ),
    "strided": Pattern(("stride",), lambda n, m, stride: strided(n, stride)),
    "fixed": Pattern(("stride", "summary"), lambda n, m, *sizes: fixed(n, *sizes)),
}

KNOWN = ", ".join(
    name + (f":{','.join(pattern.parameters)}" if pattern.parameters else "")
    for name, pattern in PATTERNS.items()
)


def parse_mask(text: str, n: int, keys: int | None = None) -> Mask:
    """Read a mask: patterns such as ``causal`` or ``window:512,0``, joined by ``&`` and ``|``.

    ``&`` binds closer. Numbers are the parameters of the pattern's function, in its order;
    ``document`` has the length of each document, ``longformer`` how many tokens at the start are
    global.

    Parameters
    ----------
    text : str
        The notation.
    n, keys : int
        The queries and the keys (default: n).

    Raises
    ------
    MaskError
        A pattern or numbers that don't have this form, or that need as many keys as queries.
    SizeError
        As the pattern's function.

    Examples
    --------
    >>> parse_mask("causal & window:2,0 | longformer:0,1", 4)
    Mask(causal & window(2, 0) | longformer(0, 1 global), 4 x 4, 13 pairs)
    >>> parse_mask("band:3", 4)
    Traceback (most recent call last):
    pebble.errors.MaskError: mask 'band:3': known are full, causal, window:left,right,
    dilated:window,dilation, document:length, longformer:window,globals,
    bigbird:block,window,globals,random,seed, strided:stride, fixed:stride,summary
    """
    m = n if keys is None else keys
    whole: Mask | None = None
    for part in text.split("|"):
        both: Mask | None = None
        for word in part.split("&"):
            mask = _pattern(word.strip(), n, m)
            both = mask if both is None else both & mask
        assert both is not None
        whole = both if whole is None else whole | both
    assert whole is not None
    return whole


def _pattern(word: str, n: int, keys: int) -> Mask:
    name, _, rest = word.partition(":")
    pattern = PATTERNS.get(name)
    if pattern is None:
        raise MaskError(f"mask {word!r}: known are {KNOWN}")
    numbers = [part.strip() for part in rest.split(",")] if rest else []
    if len(numbers) != len(pattern.parameters) or not all(
        re.fullmatch(r"-?\d+", number) for number in numbers
    ):
        wanted = f"{name}:{','.join(pattern.parameters)}" if pattern.parameters else name
        raise MaskError(f"mask {word!r}: it is written {wanted}, with integers")
    if pattern.square and n != keys:
        raise MaskError(f"mask {word!r} with n = {n} and keys = {keys}: it needs as many of both")
    return pattern.make(n, keys, *map(int, numbers))
