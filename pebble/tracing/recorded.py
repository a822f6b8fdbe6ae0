"""The array that stands in for a NumPy array while a function is traced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from pebble.errors import TraceError
from pebble.tracing.recorder import CONSTANT, Ids, Recorder
from pebble.tracing.sums import axes_of, last_totals, multiply_and_sum, sum_of_products

REDUCTIONS: dict[Any, np.ufunc] = {
    np.sum: np.add,
    np.prod: np.multiply,
    np.max: np.maximum,
    np.amax: np.maximum,
    np.min: np.minimum,
    np.amin: np.minimum,
}
TOTALS: dict[Any, np.ufunc] = {np.cumsum: np.add, np.cumprod: np.multiply}
# Functions that only move numbers; the first argument is the array, or the arrays.
MOVES = {
    *(np.reshape, np.ravel, np.transpose, np.swapaxes, np.moveaxis, np.squeeze, np.expand_dims),
    *(np.broadcast_to, np.repeat, np.tile, np.flip, np.roll, np.take, np.diagonal, np.copy),
    *(np.concatenate, np.stack, np.vstack, np.hstack, np.column_stack, np.block),
    *(np.split, np.array_split),
}
FILLED = {np.zeros_like, np.ones_like, np.empty_like, np.full_like}
ASKED = {np.shape, np.ndim, np.size}
MOVING_METHODS = {
    *("reshape", "ravel", "flatten", "transpose", "swapaxes", "squeeze", "repeat", "take"),
    *("diagonal", "copy"),
}
METHODS = {"sum", "prod", "max", "min", "mean", "cumsum", "cumprod", "dot"}


class Recorded(NDArrayOperatorsMixin):
    """An array of vertices: NumPy's functions and operators on it are recorded.

    Parameters
    ----------
    recorder : Recorder
        Where operations are recorded.
    ids : array of int64
        The vertex number at each place, `CONSTANT` for a plain number.

    Examples
    --------
    >>> recorder = Recorder()
    >>> x = Recorded(recorder, recorder.inputs("x", (2, 3)))
    >>> (np.exp(x) + x[0]).sum(axis=1)
    Recorded(shape=(2,))
    >>> bool(x[0, 0] > 0)
    Traceback (most recent call last):
    pebble.errors.TraceError: control flow that depends on the data, such as if x > 0,
    can't be recorded: what is computed would differ from input to input; see np.where
    """

    def __init__(self, recorder: Recorder, ids: Any) -> None:
        self.recorder, self.ids = recorder, np.asarray(ids)

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents."""
        return self.ids.shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.ids.ndim

    @property
    def size(self) -> int:
        """The number of places."""
        return self.ids.size

    @property
    def dtype(self) -> np.dtype[np.float64]:
        """Numbers stand for float64."""
        return np.dtype(np.float64)

    @property
    def T(self) -> Recorded:
        """The transpose."""
        return Recorded(self.recorder, self.ids.T)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[Recorded]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"Recorded(shape={self.shape})"

    def __getitem__(self, key: Any) -> Recorded:
        return Recorded(self.recorder, self.ids[_plain_key(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.ids[_plain_key(key)] = self._ids(value)

    def __getattr__(self, name: str) -> Any:
        if name in MOVING_METHODS:
            method = getattr(self.ids, name)
            return lambda *args, **options: Recorded(self.recorder, method(*args, **options))
        if name in METHODS:
            return partial(getattr(np, name), self)
        if hasattr(np.ndarray, name) and not name.startswith("_"):
            raise TraceError(f"the array's {name} can't be recorded")
        raise AttributeError(name)

    def __bool__(self) -> NoReturn:
        raise TraceError(
            "control flow that depends on the data, such as if x > 0, can't be recorded: what is "
            "computed would differ from input to input; see np.where"
        )

    def __index__(self) -> NoReturn:
        raise TraceError("an index or a length that depends on the data can't be recorded")

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise TraceError(
            "a recorded array has no numbers, so it can't be turned into a plain array, nor be put "
            "into one: fill an array made by np.zeros_like, or use np.stack"
        )

    def __float__(self) -> NoReturn:
        raise TraceError(
            "a recorded number can't be turned into a plain one; use NumPy's functions"
        )

    __int__ = __complex__ = __float__

    def _ids(self, value: Any) -> Ids:
        if isinstance(value, Recorded):
            if value.recorder is not self.recorder:
                raise TraceError("an array of another trace can't be used in this one")
            return value.ids
        plain = np.asarray(value)
        if plain.dtype.kind not in "biufc":
            raise TraceError(f"{value!r} is not made of numbers: a constant is")
        return np.full(plain.shape, CONSTANT, np.int64)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Record a ufunc, or a reduction by it."""
        out = options.pop("out", None)
        name = f"np.{ufunc.__name__}{'' if method == '__call__' else '.' + method}"
        operands = [self._ids(value) for value in inputs]
        if method == "__call__" and ufunc is np.matmul:
            ids = multiply_and_sum(self.recorder, *operands)
        elif method == "__call__" and ufunc.signature is None and ufunc.nout == 1:
            if not ufunc.__name__.isidentifier():
                raise TraceError(f"{name} can't be recorded: it is made from a Python function")
            ids = self.recorder.elementwise(ufunc.__name__, *operands)
        elif method in ("reduce", "accumulate") and (ufunc.nin, ufunc.nout) == (2, 1):
            axis = options.pop("axis", 0)
            totals, axes = self._totals(ufunc, operands[0], axis)
            ids = totals
            if method == "reduce":
                ids = last_totals(totals, axes, options.pop("keepdims", False))
        else:
            raise TraceError(f"{name} can't be recorded: {_WHICH}")
        _refuse(name, options)
        if out is None:
            return Recorded(self.recorder, ids)
        if not isinstance(out[0], Recorded):
            raise TraceError(
                f"{name} into a plain array can't be recorded: fill one made by np.zeros_like"
            )
        out[0].ids[...] = ids
        return out[0]

    def _totals(self, ufunc: np.ufunc, terms: Ids, axis: Any) -> tuple[Ids, tuple[int, ...]]:
        axes = axes_of(terms, axis)
        return self.recorder.chain(ufunc.__name__, terms, axes), axes

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...], options: Any
    ) -> Any:
        """Record a function of NumPy that is no ufunc."""
        name = f"{function.__module__}.{function.__name__}".replace("numpy", "np", 1)
        if not args:
            raise TraceError(f"{name}: give the array as the first argument")
        handler = HANDLERS.get(function)
        if handler is not None:
            return handler(self, *args, **options)
        if function in ASKED:
            return function(args[0].ids, *args[1:])
        if any(isinstance(value, Recorded) for value in (*args[1:], *options.values())):
            raise TraceError(f"{name}: only its first argument may depend on the data")
        if function in FILLED:
            _refuse(name, {key: value for key, value in options.items() if key != "dtype"})
            return Recorded(self.recorder, np.full(args[0].shape, CONSTANT, np.int64))
        if function in REDUCTIONS or function in TOTALS:
            return self._reduction(function, name, *args, **options)
        if function not in MOVES:
            raise TraceError(f"{name} can't be recorded: {_WHICH}")
        moved = function(_nested(self._ids, args[0]), *args[1:], **options)
        return _nested(partial(Recorded, self.recorder), moved)

    def _reduction(
        self, function: Any, name: str, array: Recorded, axis: Any = None, **options: Any
    ) -> Recorded:
        keepdims = options.pop("keepdims", False)
        _refuse(name, options)
        if function in REDUCTIONS:
            totals, axes = self._totals(REDUCTIONS[function], array.ids, axis)
            return Recorded(self.recorder, last_totals(totals, axes, keepdims))
        terms = array.ids.ravel() if axis is None else array.ids
        return Recorded(self.recorder, self._totals(TOTALS[function], terms, axis or 0)[0])

    def _mean(self, array: Recorded, axis: Any = None, **options: Any) -> Any:
        return np.sum(array, axis, **options) / 1.0  # any constant: it is no vertex

    def _where(self, condition: Any, *values: Any) -> Recorded:
        if len(values) != 2:
            raise TraceError("np.where of a condition alone: where it holds depends on the data")
        chosen = [self._ids(value) for value in values]
        if isinstance(condition, Recorded):
            return Recorded(
                self.recorder, self.recorder.elementwise("where", self._ids(condition), *chosen)
            )
        return Recorded(self.recorder, np.where(condition, *chosen))

    def _triangle(self, cut: Callable[..., Any], array: Recorded, k: int = 0) -> Recorded:
        return Recorded(self.recorder, cut(array.ids - CONSTANT, k) + CONSTANT)

    def _einsum(self, subscripts: Any, *operands: Any, **options: Any) -> Recorded:
        _refuse("np.einsum", options)
        ids = [self._ids(value) for value in operands]
        return Recorded(self.recorder, sum_of_products(self.recorder, subscripts, *ids))

    def _dot(self, a: Any, b: Any) -> Any:
        sides = self._ids(a), self._ids(b)
        if any(side.ndim > 2 for side in sides):
            raise TraceError("np.dot of more than two axes can't be recorded: use @ or np.einsum")
        return a * b if 0 in (sides[0].ndim, sides[1].ndim) else np.matmul(a, b)

    def _outer(self, a: Any, b: Any) -> Recorded:
        left, right = (self._ids(side).ravel() for side in (a, b))
        return Recorded(self.recorder, self.recorder.elementwise("multiply", left[:, None], right))


_WHICH = (
    "known are elementwise ufuncs of one result, @, np.einsum, np.where, reductions, "
    "and what reshapes or joins arrays"
)

HANDLERS: dict[Any, Callable[..., Any]] = {
    np.mean: Recorded._mean,
    np.where: Recorded._where,
    np.einsum: Recorded._einsum,
    np.dot: Recorded._dot,
    np.outer: Recorded._outer,
    np.tril: lambda self, *args, **options: self._triangle(np.tril, *args, **options),
    np.triu: lambda self, *args, **options: self._triangle(np.triu, *args, **options),
}


def _refuse(name: str, options: dict[str, Any]) -> None:
    if options:
        raise TraceError(f"{name} with {', '.join(options)} can't be recorded: leave it out")


def _plain_key(key: Any) -> Any:
    parts = key if isinstance(key, tuple) else (key,)
    if any(isinstance(part, Recorded) for part in parts):
        raise TraceError("an index or a length that depends on the data can't be recorded")
    return key


def _nested(change: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_nested(change, part) for part in value]
    return change(value)
