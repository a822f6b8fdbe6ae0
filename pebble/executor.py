"""Executing a program on real numbers, in a fast memory that holds only what is red."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from pebble.errors import DataError
from pebble.expander import Expansion
from pebble.playback import Referee
from pebble.referee import Words

Floats = NDArray[np.float64]


@njit(cache=True, nogil=True, error_model="numpy")
def _run(
    words: Words,
    length: int,
    fast: Floats,
    slow: Floats,
    slots: Words,
    free: Words,
    top: int,
) -> int:
    """Do what the moves of a stream say; the referee has found them legal.

    ``slots[v]`` is the place of v in fast memory, ``free[:top]`` are the places not taken.
    """
    at = 0
    while at < length:
        head, v = words[at], words[at + 1]
        op, degree, function = head & 7, (head >> 3) & 255, (head >> 11) & 255
        if op == 3:
            free[top] = slots[v]
            top += 1
        elif op == 1:
            slow[v] = fast[slots[v]]
        else:
            value = 0.0
            if op == 0:
                value = slow[v]
            else:
                a = fast[slots[words[at + 2]]]
                b = fast[slots[words[at + 1 + degree]]]
                if function == 2:
                    value = a * b
                elif function == 3:
                    value = a + b
                elif function == 4:
                    value = math.exp(a)
                elif function == 5:
                    value = math.exp(a - b)
                elif function == 6:
                    value = 1.0
                elif function == 7:
                    value = max(a, b)
                elif function == 8:
                    value = a / b
                elif function == 9:
                    value = math.log(a)
                elif function == 10:
                    value = math.log(a) + b
                else:
                    value = a - b
            top -= 1
            slots[v] = free[top]
            fast[free[top]] = value
        at += 2 + degree
    return top


class NumberedGraph(Protocol):
    """A graph that knows its input and output arrays."""

    @property
    def operand_numbers(self) -> Mapping[str, NDArray[np.int64]]:
        """The vertex numbers of each input array, in its shape."""

    @property
    def output_numbers(self) -> Mapping[str, NDArray[np.int64]]:
        """The vertex numbers of each output array; negative where it has a zero by definition."""


def execute(
    expansion: Expansion, cache: int, operands: Mapping[str, ArrayLike]
) -> dict[str, Floats]:
    """Run a program's moves on numbers, each move refereed first.

    Parameters
    ----------
    expansion : Expansion
        The program and its graph.
    cache : int
        M, in words: so large is the fast memory.
    operands : mapping of str to array
        One array for each family of inputs, in its shape.

    Returns
    -------
    dict of str to array
        One float64 array for each array of outputs, read from slow memory; 0 where there is no
        vertex.

    Raises
    ------
    DataError
        Operands of the wrong shape, not real, or not finite; or outputs that are not finite.
    IllegalMove, Incomplete
        As the referee finds.
    """
    graph = expansion.graph
    slow = np.full(len(graph), np.nan)
    for name, numbers in graph.operand_numbers.items():
        slow[numbers] = _operand(name, numbers.shape, operands)
    referee = Referee(expansion, cache)
    words = min(cache, len(graph))
    fast, slots = np.full(words, np.nan), np.zeros(len(graph), np.int64)
    free, top = np.arange(words, dtype=np.int64), words
    for stream, length in referee:
        top = _run(stream, length, fast, slow, slots, free, top)
    return _outputs(graph, slow)


def _operand(name: str, shape: tuple[int, ...], operands: Mapping[str, ArrayLike]) -> Floats:
    if name not in operands:
        raise DataError(f"{name} is missing: it is an array of shape {shape}")
    try:
        given = np.asarray(operands[name])
    except (TypeError, ValueError):  # rows of several lengths
        given = np.array(None)
    if given.dtype.kind == "c":
        raise DataError(f"{name} is complex: it must be real")
    if given.dtype.kind not in "biuf":
        raise DataError(f"{name} does not hold real numbers: it must be float64 or safe to cast")
    values = given.astype(np.float64)
    if values.shape != shape:
        raise DataError(f"{name} has shape {values.shape}: it must be {shape}")
    if not np.isfinite(values).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        raise DataError(f"{name}{list(where)} = {values[where]}: every number must be finite")
    return values


def _outputs(graph: NumberedGraph, slow: Floats) -> dict[str, Floats]:
    outputs = {}
    for name, numbers in graph.output_numbers.items():
        values = np.where(numbers < 0, 0.0, slow[numbers])
        if not np.isfinite(values).all():
            raise DataError(
                f"{name} is not finite: a number overflowed on the way to it "
                "(a plain softmax does where a score exceeds 709; an online one does not)"
            )
        outputs[name] = values
    return outputs
