"""Graphs under construction: from each vertex to its predecessors, in the order of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as cartesian

from pebble.errors import UnknownName
from pebble.graph import Graph
from pebble.moves import Vertex

Rows = dict[Vertex, tuple[Vertex, ...]]

SUMS = ("chain", "nary")


def graph_of(rows: Rows) -> Graph:
    """Give the graph; its outputs are the sinks.

    Examples
    --------
    >>> a, b = Vertex("a", (0,)), Vertex("b", (0,))
    >>> graph_of({a: (), b: (a,)})
    Graph(2 vertices: 1 inputs, 1 outputs; 1 edges)
    """
    number = {label: v for v, label in enumerate(rows)}
    return Graph([[number[u] for u in row] for row in rows.values()], rows)


def put_inputs(rows: Rows, name: str, *shape: int) -> None:
    """Put in an array of inputs, row-major.

    Examples
    --------
    >>> rows = {}
    >>> put_inputs(rows, "A", 1, 2)
    >>> print(*rows)
    A[0,0] A[0,1]
    """
    for index in cartesian(*map(range, shape)):
        rows[Vertex(name, index)] = ()


def put_chain(rows: Rows, name: str, terms: Sequence[Vertex]) -> Vertex:
    """Put in the sums of a chain, each with the index of the term that it adds.

    Give the vertex that holds the last sum: for one term, the term.

    Examples
    --------
    >>> rows = {}
    >>> put_inputs(rows, "x", 3)
    >>> print(put_chain(rows, "s", list(rows)), len(rows))
    s[2] 5
    """
    total = terms[0]
    for term in terms[1:]:
        partial = Vertex(name, term.index)
        rows[partial] = (total, term)
        total = partial
    return total


def put_sum(
    rows: Rows, name: str, index: tuple[int, ...], terms: Sequence[Vertex], sums: str = "chain"
) -> Vertex:
    """Put in the sum of some terms, and give the vertex that holds it.

    Parameters
    ----------
    rows : dict
        The graph under construction.
    name, index : str, tuple of int
        The label of an n-ary sum; the sums of a chain have the index of the term they add.
    terms : sequence of Vertex
        What is added. One term is its own sum, and nothing is put in.
    sums : str
        "chain" adds the terms one by one in their order, each time as a vertex of its own;
        "nary" adds all of them in one vertex.

    Raises
    ------
    UnknownName
        Another kind of sum.

    Examples
    --------
    >>> rows = {}
    >>> put_inputs(rows, "x", 3)
    >>> print(put_sum(rows, "s", (), list(rows), "nary"), len(rows))
    s[] 4
    """
    if sums not in SUMS:
        raise UnknownName(f"sums = {sums!r}: known are {', '.join(SUMS)}")
    if sums == "chain":
        return put_chain(rows, name, terms)
    if len(terms) == 1:
        return terms[0]
    total = Vertex(name, index)
    rows[total] = tuple(terms)
    return total
