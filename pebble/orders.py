"""Orders to compute the vertices of a graph in: given, depth first, or level by level.

An order is an array of the vertices that are computed, which are all but the inputs.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pebble.errors import GraphError, ProgramError
from pebble.graph import ComputationGraph, Graph, explicit
from pebble.moves import Label, listed, notation

Ints = NDArray[np.int64]


def numbered(graph: ComputationGraph) -> Ints:
    """Give the order of the vertex numbers: always the least number that can be next.

    Examples
    --------
    >>> numbered(Graph([(), (2,), (0,)])).tolist()
    [2, 1]
    """
    whole = explicit(graph)
    return _computed(whole, np.array(whole.topological(), np.int64))


def depth_first(graph: ComputationGraph) -> Ints:
    """Give the order that computes a vertex right after its predecessors, the hardest one first.

    It walks down from each output in turn. The hardest predecessor is that which would need the
    most words if nothing were shared: an input needs 1; a vertex needs all its predecessors and
    itself, or, if that is more, the words of its i-th hardest predecessor and i (from 0) for those
    before. On a tree this order needs the least cache in which no value is stored on the way.

    References
    ----------
    Sethi and Ullman, "The generation of optimal code for arithmetic expressions", J. ACM 17, 1970.

    Examples
    --------
    The sum 4 = 2 + 3 where 2 is computed from one input and 3 from two: 3 is first.

    >>> depth_first(Graph([(), (), (0,), (0, 1), (2, 3)])).tolist()
    [3, 2, 4]
    """
    from pebble import order_kernels  # numba is imported only where it is used

    whole = explicit(graph)
    goals = np.array(whole.outputs, np.int64)
    order = order_kernels.postorder(whole.starts, whole.preds, goals)
    _, preds = order_kernels.hardest_first(whole.starts, whole.preds, order)
    return _computed(whole, order_kernels.postorder(whole.starts, preds, goals))


def breadth_first(graph: ComputationGraph) -> Ints:
    """Give the order by level, the longest path from an input, and in a level by number.

    Examples
    --------
    >>> breadth_first(Graph([(), (0,), (1,), (0,), (2, 3)])).tolist()
    [1, 3, 2, 4]
    """
    from pebble import order_kernels

    whole = explicit(graph)
    goals = np.array(whole.outputs, np.int64)
    order = order_kernels.postorder(whole.starts, whole.preds, goals)
    level = order_kernels.levels(whole.starts, whole.preds, order)
    return _computed(whole, np.argsort(level, kind="stable"))


def compute_order(graph: ComputationGraph, order: Iterable[Label] | Ints) -> Ints:
    """Check an order that is given, and give it as an array of the vertices that are computed.

    Parameters
    ----------
    graph : ComputationGraph
        What is computed.
    order : iterable of labels, or array of integers
        Labels; or vertex numbers, where the labels are not integers themselves. A NumPy array
        has vertex numbers in any case. Inputs may be among them and are passed over: they are
        loaded when they are needed.

    Raises
    ------
    GraphError
        A vertex that does not exist.
    ProgramError
        A vertex that is there twice, or is missing, or comes before one of its predecessors.

    Examples
    --------
    >>> graph = Graph([(), (0,), (1,)], labels=["a", "b", "c"])
    >>> compute_order(graph, ["a", "b", "c"]).tolist(), compute_order(graph, [1, 2]).tolist()
    ([1, 2], [1, 2])
    >>> compute_order(graph, ["c", "b"])
    Traceback (most recent call last):
    pebble.errors.ProgramError: order: c, at place 0, comes before its predecessor b
    >>> compute_order(graph, ["c"])
    Traceback (most recent call last):
    pebble.errors.ProgramError: order: 1 of 2 vertices to compute is missing: b
    """
    whole = explicit(graph)
    given = _numbers(whole, order)
    twice = np.flatnonzero(np.bincount(given, minlength=len(whole)) > 1)
    if len(twice):
        v = int(twice[0])
        places = np.flatnonzero(given == v)
        name = notation(whole.label(v))
        raise ProgramError(f"order: {name} is there twice, at places {places[0]} and {places[1]}")
    computed = _computed(whole, given)
    inputs = np.diff(whole.starts) == 0
    absent = ~inputs
    absent[computed] = False
    if absent.any():
        names = listed(whole.label(v) for v in np.flatnonzero(absent).tolist())
        some, all_ = np.count_nonzero(absent), np.count_nonzero(~inputs)
        be = "is" if some == 1 else "are"
        raise ProgramError(f"order: {some} of {all_} vertices to compute {be} missing: {names}")
    place = np.full(len(whole), -1, np.int64)
    place[given] = np.arange(len(given))
    place[inputs] = -1  # an input may be named after it is used
    heads = np.repeat(np.arange(len(whole)), np.diff(whole.starts))
    early = np.flatnonzero(place[whole.preds] > place[heads])
    if len(early):
        edge = early[np.argmin(place[heads[early]])]
        head, tail = int(heads[edge]), int(whole.preds[edge])
        raise ProgramError(
            f"order: {notation(whole.label(head))}, at place {place[head]}, "
            f"comes before its predecessor {notation(whole.label(tail))}"
        )
    return computed


def _numbers(graph: Graph, order: Iterable[Label] | Ints) -> Ints:
    if isinstance(order, np.ndarray):
        if order.ndim != 1 or (order.dtype.kind not in "iu" and len(order)):
            raise ProgramError(
                f"order of shape {order.shape} and type {order.dtype}: "
                "an array has vertex numbers, in one dimension"
            )
        numbers = np.ascontiguousarray(order, np.int64)
    else:
        names = list(order)
        ints = all(isinstance(x, int | np.integer) and not isinstance(x, bool) for x in names)
        # Labels are all of one type, so one of them tells whether an integer is a label.
        if not ints or isinstance(graph.label(0), int):
            return np.array([graph.vertex(label) for label in names], np.int64)
        numbers = np.array(names, np.int64)
    strangers = numbers[(numbers < 0) | (numbers >= len(graph))]
    if len(strangers):
        raise GraphError([f"the graph has no vertex {strangers[0]}"])
    return numbers


def _computed(graph: Graph, order: Ints) -> Ints:
    return order[np.diff(graph.starts)[order] > 0]
