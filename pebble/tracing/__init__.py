"""From NumPy code to its computation graph, by running it on arrays that record what is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pebble.checks import positive
from pebble.errors import TraceError
from pebble.graph import Graph
from pebble.tracing.recorded import Recorded
from pebble.tracing.recorder import Ids, Recorder

__all__ = ["Recorded", "Recorder", "trace"]


def trace(function: Callable[..., Any], /, **shapes: tuple[int, ...]) -> Graph:
    """Run NumPy code on recording arrays, and give the graph of all that it computes.

    Each number that an operation makes is a vertex, computed from the numbers that it is made
    from. Operators and elementwise ufuncs of one result work (+, *, np.exp, np.maximum, ==, also
    in place), with broadcasting; so do @ and np.einsum, np.where, reductions (sum, prod, max, min,
    mean, cumsum, np.add.reduce, ...) with axis and keepdims. What moves numbers makes no vertices:
    slicing, assigning to slices, transposes, reshapes, np.stack, np.concatenate and the like.

    * Reductions are chains in index order, row-major for several axes; the first number is the
      first total. ``A @ B`` is all the products, then such sums. np.einsum multiplies its operands
      from left to right, then sums. A mean is a sum, then a division by a constant.
    * Plain numbers and plain arrays are constants and no vertices: ``2 * x`` is computed from x
      alone, a product with zero too. Nothing is simplified, nothing is shared.
    * What no output depends on is no part of the graph: results that are never used, and those
      numbers of an input array that are never used.

    Parameters
    ----------
    function : callable
        It takes the arrays by their names, and returns an array, a tuple or list of arrays, or a
        dict from names to arrays: the outputs.
    **shapes : tuple of int
        The shape of each input array, () for a number.

    Returns
    -------
    Graph
        Labels are `Vertex` values. Inputs have their array's name and index. Outputs have the name
        of their key; without keys out, or out0, out1, ... All else is named after the ufunc with a
        running number (multiply_1, add_1, exp_1), with the index in that operation's result; a
        product of matrices has its products at [i,j,k], and a sum has the index of the last term.

    Raises
    ------
    TraceError
        Control flow or an index that depends on the data (``if x > 0``); a function of NumPy, or
        an option of it, that is not recorded; an array that is turned into plain numbers; a number
        among the outputs that is an input or a constant; an input that no output depends on.
    SizeError
        A shape with an extent that is no positive integer.

    Errors that the function makes on numbers too, such as shapes that don't fit, are NumPy's own.

    Examples
    --------
    >>> graph = trace(lambda a, b: a @ b, a=(2,), b=(2,))
    >>> [str(graph.label(v)) for v in range(len(graph))]
    ['a[0]', 'a[1]', 'b[0]', 'b[1]', 'multiply_1[0]', 'multiply_1[1]', 'out[]']

    Attention, normalised at the end, is the graph of `pebble.Attention`:

    >>> import numpy as np
    >>> from pebble import Attention, explicit
    >>> def attention(Q, K, V):
    ...     E = np.exp(Q @ K.T)
    ...     return {"O": (E @ V) / E.sum(axis=1, keepdims=True)}
    >>> traced = trace(attention, Q=(3, 2), K=(3, 2), V=(3, 2))
    >>> traced
    Graph(96 vertices: 18 inputs, 6 outputs; 147 edges)
    >>> explicit(Attention(n=3, d=2).graph)
    Graph(96 vertices: 18 inputs, 6 outputs; 147 edges)
    """
    recorder = Recorder()
    arrays = {}
    for name, shape in shapes.items():
        extents = [positive(name, size, "an extent of the array") for size in _extents(name, shape)]
        arrays[name] = Recorded(recorder, recorder.inputs(name, tuple(extents)))
    return recorder.graph(_outputs(recorder, function(**arrays)))


def _extents(name: str, shape: object) -> tuple[Any, ...]:
    if not isinstance(shape, tuple):
        raise TraceError(f"{name} = {shape!r}: a shape is a tuple, such as (4, 2), (4,) or ()")
    return shape


def _outputs(recorder: Recorder, result: object) -> dict[str, Ids]:
    if isinstance(result, Mapping):
        named = dict(result)
    elif isinstance(result, tuple | list):
        named = {f"out{at}": value for at, value in enumerate(result)}
    else:
        named = {"out": result}
    outputs = {}
    for name, value in named.items():
        if not isinstance(value, Recorded) or value.recorder is not recorder:
            raise TraceError(
                f"output {name} is a {type(value).__name__} that depends on no input: a traced "
                "function returns an array, or a tuple, list or dict of arrays, made from its own"
            )
        outputs[name] = value.ids
    return outputs
