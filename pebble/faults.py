"""What can be wrong with a graph: every fault of it, as one sentence each.

`edge_faults`, `label_faults` and `output_faults` are what `Graph` checks when it is made; all the
sentences go into one `GraphError`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from pebble.errors import NotationError
from pebble.moves import Label, Vertex, notation

Ints = NDArray[np.int64]
Name = Callable[[int], str]


def label_faults(labels: Sequence[Label], vertices: int) -> list[str]:
    """Say what is wrong with the labels of a graph of so many vertices.

    Examples
    --------
    >>> label_faults(["a", "b", "a"], 3)
    ['label a is on vertices 0 and 2']
    >>> label_faults(["a", 1], 2)
    ['labels of mixed types (1 is int; a is str): all are str, or int, or Vertex, or tuple']
    """
    faults = []
    if len(labels) != vertices:
        faults.append(f"{len(labels)} labels for {vertices} vertices")
    kinds = set(map(type, labels))
    first = {kind: next(x for x in labels if type(x) is kind) for kind in kinds}
    shown = sorted(first, key=lambda kind: kind.__name__)
    foreign = [kind for kind in shown if kind not in (str, int, Vertex, tuple)]
    for kind in foreign:
        known = "a label is a str, an int, a Vertex, or a tuple of str and int"
        faults.append(f"label {first[kind]!r} of type {kind.__name__}: {known}")
    if foreign:
        return faults
    silent = _without_notation(labels, kinds)
    if silent:
        return faults + silent
    if len(kinds) > 1:
        each = "; ".join(f"{notation(first[kind])} is {kind.__name__}" for kind in shown)
        faults.append(f"labels of mixed types ({each}): all are str, or int, or Vertex, or tuple")
    if len(set(labels)) < len(labels):
        seen: dict[Label, int] = {}
        for v, label in enumerate(labels):
            if label in seen:
                faults.append(f"label {notation(label)} is on vertices {seen[label]} and {v}")
            seen[label] = v
    return faults


def _without_notation(labels: Sequence[Label], kinds: set[type]) -> list[str]:
    # A look at the parts of all labels together is ten times as fast as a look at each label.
    if Vertex in kinds or tuple in kinds:
        tuples = [label for label in labels if isinstance(label, tuple)]
        pairs = [label for label in tuples if isinstance(label, Vertex)]
        plain = [label for label in tuples if not isinstance(label, Vertex)]
        families = {label.family for label in pairs if isinstance(label.family, str)}
        ok = all(isinstance(label.index, tuple) for label in pairs) and (
            set(map(type, chain.from_iterable(label.index for label in pairs))) <= {int}
            and set(map(type, (label.family for label in pairs))) <= {str}
            and all(map(str.isidentifier, families))
            and all(map(str.isascii, families))
            and set(map(type, chain.from_iterable(plain))) <= {int, str}
        )
        if not ok:
            return list(dict.fromkeys(chain.from_iterable(map(_speech_fault, tuples))))
    return []


def _speech_fault(label: Label) -> list[str]:
    try:
        notation(label)
    except NotationError as error:
        return [str(error)]
    return []


def edge_faults(starts: Ints, preds: Ints, name: Name) -> tuple[list[str], Ints, Ints]:
    """Say what is wrong with the edges; also give, for each edge that has both ends, those ends.

    Parameters
    ----------
    starts, preds : arrays of int64
        ``preds[starts[v]:starts[v + 1]]`` are the predecessors of v.
    name : callable
        Gives the name of a vertex number.

    Examples
    --------
    >>> edge_faults(np.array([0, 1, 2]), np.array([1, 0]), str)[0]
    ['cycle: 0 -> 1 -> 0']
    >>> edge_faults(np.array([0, 0, 2]), np.array([0, 7]), str)[0]
    ['predecessor 7 of 1 does not exist: there are 2 vertices, numbered from 0']
    """
    n = len(starts) - 1
    faults = []
    heads = np.repeat(np.arange(n), np.diff(starts))
    exists = (preds >= 0) & (preds < n)
    if not exists.all():
        for edge in np.flatnonzero(~exists).tolist():
            faults.append(
                f"predecessor {preds[edge]} of {name(int(heads[edge]))} does not exist: "
                f"there are {n} vertices, numbered from 0"
            )
        heads, preds = heads[exists], preds[exists]
    for v in heads[heads == preds].tolist():
        faults.append(f"self loop on {name(v)}")
    edges = np.sort(heads * n + preds)
    for edge in np.unique(edges[1:][edges[1:] == edges[:-1]]).tolist():
        faults.append(f"{name(edge // n)} has predecessor {name(edge % n)} more than once")
    cycle = find_cycle(n, heads, preds)
    if cycle:
        shown = list(map(name, cycle if len(cycle) < 12 else [*cycle[:8], cycle[-1]]))
        if len(cycle) >= 12:
            shown.insert(8, f"{len(cycle) - 9} more")
        faults.append(f"cycle: {' -> '.join(shown)}")
    touched = np.zeros(n, bool)
    touched[heads] = touched[preds] = True
    for v in np.flatnonzero(~touched).tolist():
        faults.append(f"{name(v)} is isolated: it would be an input and a sink")
    return faults, heads, preds


def find_cycle(n: int, heads: Ints, tails: Ints) -> list[int]:
    """Give the vertices of one cycle, the first again at the end; empty if there is none.

    Self loops are not counted as cycles.

    Examples
    --------
    >>> find_cycle(3, np.array([1, 2, 0]), np.array([0, 1, 2]))
    [0, 1, 2, 0]
    """
    if (tails <= heads).all():  # numbered in an order to compute in, as most graphs are
        return []
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(heads), np.int8)
    matrix = coo_array((ones, (heads, tails)), shape=(n, n)).tocsr()
    parts, part = connected_components(matrix, directed=True, connection="strong")
    if parts == n:
        return []
    inside = (part[heads] == part[tails]) & (heads != tails)
    # Every vertex of a component has a predecessor in it: walk back until one is met again.
    back = dict(zip(heads[inside].tolist(), tails[inside].tolist(), strict=True))
    v, met = min(back), dict[int, int]()
    while v not in met:
        met[v] = len(met)
        v = back[v]
    cycle = list(met)[met[v] :][::-1]
    least = cycle.index(min(cycle))
    cycle = cycle[least:] + cycle[:least]
    return [*cycle, cycle[0]]


def output_faults(
    n: int, heads: Ints, tails: Ints, outputs: Ints, strangers: Sequence[Label], name: Name
) -> list[str]:
    """Say what is wrong with the outputs that were asked for.

    Parameters
    ----------
    n : int
        The number of vertices.
    heads, tails : arrays of int64
        The edges, from each tail to its head.
    outputs : array of int64
        The outputs, as vertex numbers.
    strangers : sequence of labels
        What was named as an output and is no vertex.
    name : callable
        Gives the name of a vertex number.

    Examples
    --------
    >>> edge = np.array([1]), np.array([0])
    >>> output_faults(2, *edge, np.array([0]), ["z"], str)
    ['unknown outputs: z', 'outputs that are inputs: 0', 'sinks that are not outputs: 1']
    """
    is_source, is_sink, is_output = np.ones(n, bool), np.ones(n, bool), np.zeros(n, bool)
    is_source[heads], is_sink[tails], is_output[outputs] = False, False, True
    linked = ~(is_source & is_sink)  # an isolated vertex is a fault of its own
    faults = []
    if strangers:
        faults.append(f"unknown outputs: {', '.join(map(str, strangers))}")
    for says, which in (
        ("outputs that are inputs", is_source & is_output & linked),
        ("sinks that are not outputs", is_sink & ~is_output & linked),
    ):
        if which.any():
            names = [name(v) for v in np.flatnonzero(which)[:5].tolist()]
            more = int(which.sum()) - len(names)
            faults.append(f"{says}: {', '.join(names)}{f' and {more} more' if more else ''}")
    return faults
