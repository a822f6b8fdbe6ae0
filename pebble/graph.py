"""Computation graphs: what every graph answers, and the explicit `Graph` with its arrays."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from pebble.errors import GraphError
from pebble.faults import edge_faults, label_faults, output_faults
from pebble.moves import Label, Vertex, notation
from pebble.rules import HONG_KUNG, Rules
from pebble.start import least_cache

if TYPE_CHECKING:
    import networkx

Ints = NDArray[np.int64]


class ComputationGraph(Protocol):
    """What a graph must answer for the game to be played on it.

    Vertices are the numbers from 0 to ``len(graph) - 1``; people see their labels. Inputs are
    exactly the sources, outputs contain all sinks, and no input is an output.
    """

    def __len__(self) -> int:
        """Give the number of vertices."""

    def predecessors(self, v: int, /) -> tuple[int, ...]:
        """Give the vertices that vertex v is computed from; none for an input."""

    def is_input(self, v: int, /) -> bool:
        """Say whether v starts blue and can't be computed."""

    def is_output(self, v: int, /) -> bool:
        """Say whether v must be blue at the end."""

    def label(self, v: int, /) -> Label:
        """Give the label of vertex v."""

    def vertex(self, label: Label, /) -> int:
        """Give the number of the vertex with this label; GraphError names one that isn't there."""

    def family(self, v: int, /) -> Hashable:
        """Give the family of v, under which `Rules.weights` may name it."""

    @property
    def inputs(self) -> Sequence[int]:
        """The vertices that start blue, in increasing order."""

    @property
    def outputs(self) -> Sequence[int]:
        """The vertices that must end blue, in increasing order."""


class Graph:
    """A computation graph with its predecessors in arrays. It can't be changed.

    Parameters
    ----------
    predecessors : sequence of sequences of int
        For every vertex the numbers of the vertices that it is computed from; empty for an input.
    labels : sequence of labels, optional
        One for every vertex: all str, all int, all `Vertex`, or all tuples of str and int.
        Default: the vertex numbers.
    outputs : iterable of labels, optional
        What must be blue at the end. Default: the sinks.

    Raises
    ------
    GraphError
        For a graph that the game can't be played on. It reports all the faults at once.

    Examples
    --------
    >>> graph = Graph([(), (), (0, 1)], labels=["a", "b", "c"])
    >>> graph
    Graph(3 vertices: 2 inputs, 1 outputs; 2 edges)
    >>> graph.predecessors(graph.vertex("c")), graph.least_cache()
    ((0, 1), 3)
    >>> Graph([(1,), (1, 5), ()])
    Traceback (most recent call last):
    pebble.errors.GraphError: predecessor 5 of 1 does not exist: there are 3 vertices, numbered
    from 0; self loop on 1; 2 is isolated: it would be an input and a sink
    """

    def __init__(
        self,
        predecessors: Iterable[Sequence[int]],
        labels: Iterable[Label] | None = None,
        outputs: Iterable[Label] | None = None,
    ) -> None:
        rows = [tuple(row) for row in predecessors]
        starts = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=starts[1:])
        self._fill(starts, list(chain.from_iterable(rows)), labels, outputs)

    @classmethod
    def from_arrays(
        cls,
        starts: Any,
        preds: Any,
        labels: Iterable[Label] | None = None,
        outputs: Iterable[Label] | None = None,
    ) -> Graph:
        """Make a graph from arrays: ``preds[starts[v]:starts[v + 1]]`` lead to v.

        Examples
        --------
        >>> Graph.from_arrays([0, 0, 0, 2], [0, 1]) == Graph([(), (), (0, 1)])
        True
        """
        starts = np.array(starts)
        sound = (
            starts.ndim == 1
            and len(starts) > 0
            and starts.dtype.kind in "iu"
            and starts[0] == 0
            and starts[-1] == len(preds)
            and bool((np.diff(starts.astype(np.int64)) >= 0).all())
        )
        if not sound:
            raise GraphError(["starts must rise from 0 to the number of predecessors"])
        graph = cls.__new__(cls)
        graph._fill(starts.astype(np.int64), preds, labels, outputs)
        return graph

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[tuple[Label, Label]],
        labels: Iterable[Label] | None = None,
        outputs: Iterable[Label] | None = None,
    ) -> Graph:
        """Make a graph from pairs of labels (u, v): v is computed from u.

        Vertices are numbered in the order of `labels`, else as they are first named.

        Examples
        --------
        >>> Graph.from_edges([("a", "c"), ("b", "c")]).label(1)
        'c'
        """
        pairs = [tuple(edge) for edge in edges]
        wrong = [repr(pair) for pair in pairs if len(pair) != 2]
        if wrong:
            raise GraphError([f"edge {pair}: an edge is a pair of labels" for pair in wrong])
        try:
            known = list(dict.fromkeys(chain.from_iterable(pairs)) if labels is None else labels)
            number = {label: v for v, label in enumerate(known)}
            strangers = [
                end for end in dict.fromkeys(chain.from_iterable(pairs)) if end not in number
            ]
        except TypeError as error:
            raise GraphError([f"a label must be hashable: {error}"]) from None
        if strangers:
            raise GraphError(
                [f"edge with {end!r}, which is not among the labels" for end in strangers]
            )
        rows: list[list[int]] = [[] for _ in known]
        for u, v in pairs:
            rows[number[v]].append(number[u])
        return cls(rows, known, outputs)

    @classmethod
    def from_networkx(cls, graph: Any, outputs: Iterable[Label] | None = None) -> Graph:
        """Make a graph from a networkx DiGraph; see `pebble.networks.from_networkx`."""
        from pebble.networks import from_networkx

        return from_networkx(graph, outputs)

    def to_networkx(self) -> networkx.DiGraph:
        """Give the graph as a networkx DiGraph; see `pebble.networks.to_networkx`."""
        from pebble.networks import to_networkx

        return to_networkx(self)

    def _fill(
        self,
        starts: Ints,
        preds: Any,
        labels: Iterable[Label] | None,
        outputs: Iterable[Label] | None,
    ) -> None:
        n = len(starts) - 1
        table = np.array(preds)
        if len(table) and table.dtype.kind not in "iu":
            raise GraphError(["predecessors are vertex numbers, and so integers"])
        if n == 0:
            raise GraphError(["the graph has no vertices"])
        self._starts, self._preds = starts, table.astype(np.int64).reshape(-1)
        faults, self._labels = [], None
        if labels is not None:
            known = tuple(int(x) if isinstance(x, np.integer) else x for x in labels)
            faults = label_faults(known, n)
            # Labels that say what the default says are the default: equal graphs compare equal.
            self._labels = None if faults or known == tuple(range(n)) else known
        self._number = {label: v for v, label in enumerate(self._labels or ())}
        name = (lambda v: f"vertex {v}") if faults else (lambda v: notation(self.label(v)))
        nameless = bool(faults)
        found, heads, tails = edge_faults(starts, self._preds, name)
        faults += found
        if outputs is None:
            is_sink = np.ones(n, bool)
            is_sink[tails] = False
            self._outputs = np.flatnonzero(is_sink)
        elif not nameless:  # outputs are named by labels
            numbers, strangers = [], []
            for label in outputs:
                try:
                    numbers.append(self.vertex(label))
                except GraphError:
                    strangers.append(label)
            self._outputs = np.unique(np.array(numbers, np.int64))
            faults += output_faults(n, heads, tails, self._outputs, strangers, name)
        if faults:
            raise GraphError(faults)
        for array in (self._starts, self._preds, self._outputs):
            array.flags.writeable = False

    @property
    def starts(self) -> Ints:
        """Where the predecessors of each vertex start in `preds`; one more entry at the end."""
        return self._starts

    @property
    def preds(self) -> Ints:
        """The predecessors of vertex 0, then those of vertex 1, and so on."""
        return self._preds

    def __len__(self) -> int:
        return len(self._starts) - 1

    def predecessors(self, v: int, /) -> tuple[int, ...]:
        """Give the vertices that v is computed from, in the order they were given."""
        return tuple(self._preds[self._starts[v] : self._starts[v + 1]].tolist())

    def successors(self, v: int, /) -> tuple[int, ...]:
        """Give the vertices that are computed from v.

        Examples
        --------
        >>> Graph([(), (0,), (0, 1)]).successors(0)
        (1, 2)
        """
        starts, heads = self._forward
        return tuple(heads[starts[v] : starts[v + 1]].tolist())

    @cached_property
    def _forward(self) -> tuple[Ints, Ints]:
        heads = np.repeat(np.arange(len(self)), np.diff(self._starts))
        starts = np.zeros(len(self) + 1, np.int64)
        np.cumsum(np.bincount(self._preds, minlength=len(self)), out=starts[1:])
        return starts, heads[np.argsort(self._preds, kind="stable")]

    def is_input(self, v: int, /) -> bool:
        """Say whether v has no predecessors."""
        return bool(self._starts[v] == self._starts[v + 1])

    def is_output(self, v: int, /) -> bool:
        """Say whether v must be blue at the end."""
        return v in self._goals

    @cached_property
    def _goals(self) -> frozenset[int]:
        return frozenset(self.outputs)

    def label(self, v: int, /) -> Label:
        """Give the label of v."""
        return v if self._labels is None else self._labels[v]

    def vertex(self, label: Label, /) -> int:
        """Give the number of the vertex with this label.

        Raises
        ------
        GraphError
            If there is none.
        """
        try:
            if self._labels is not None:
                return self._number[label]
            is_number = isinstance(label, int | np.integer) and not isinstance(label, bool)
            if is_number and label in range(len(self)):
                return int(cast(int, label))
        except (KeyError, TypeError):  # a TypeError: the label isn't even hashable
            pass
        raise GraphError([f"the graph has no vertex {label}"])

    def family(self, v: int, /) -> Hashable:
        """Give the family of a `Vertex`, and of other labels the label itself."""
        label = self.label(v)
        return label.family if isinstance(label, Vertex) else label

    @cached_property
    def inputs(self) -> tuple[int, ...]:
        """The vertices without predecessors: the sources."""
        return tuple(np.flatnonzero(np.diff(self._starts) == 0).tolist())

    @cached_property
    def outputs(self) -> tuple[int, ...]:
        """The vertices that must be blue at the end."""
        return tuple(self._outputs.tolist())

    @cached_property
    def sinks(self) -> tuple[int, ...]:
        """The vertices that nothing is computed from."""
        return tuple(np.flatnonzero(np.diff(self._forward[0]) == 0).tolist())

    @property
    def max_in_degree(self) -> int:
        """The most predecessors that a vertex has."""
        return int(np.diff(self._starts).max())

    def least_cache(self, rules: Rules = HONG_KUNG) -> int:
        """Give the least cache in which the graph can be pebbled; see `pebble.start`."""
        if rules.weights:
            return least_cache(self, rules)
        return int(np.diff(self._starts).max()) + (0 if rules.sliding else 1)

    def topological(self) -> tuple[int, ...]:
        """Give the vertices in an order to compute in: always the least number that can be next.

        Examples
        --------
        >>> Graph([(2,), (0, 2), ()]).topological()
        (2, 0, 1)
        """
        heads = np.repeat(np.arange(len(self)), np.diff(self._starts))
        if (self._preds < heads).all():
            return tuple(range(len(self)))
        missing = np.diff(self._starts).tolist()
        ready = [v for v in range(len(self)) if not missing[v]]
        order = []
        while ready:
            order.append(heapq.heappop(ready))
            for v in self.successors(order[-1]):
                missing[v] -= 1
                if not missing[v]:
                    heapq.heappush(ready, v)
        return tuple(order)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return self._labels == other._labels and all(
            np.array_equal(mine, theirs)
            for mine, theirs in (
                (self._starts, other._starts),
                (self._preds, other._preds),
                (self._outputs, other._outputs),
            )
        )

    def __hash__(self) -> int:
        return hash((self._labels, self._starts.tobytes(), self._preds.tobytes(), self.outputs))

    def __repr__(self) -> str:
        inputs, outputs, edges = len(self.inputs), len(self.outputs), len(self._preds)
        return f"Graph({len(self)} vertices: {inputs} inputs, {outputs} outputs; {edges} edges)"


def explicit(graph: ComputationGraph) -> Graph:
    """Give the graph with its predecessors in arrays; a `Graph` as it is.

    Examples
    --------
    >>> graph = Graph([(), (0,)])
    >>> explicit(graph) is graph
    True
    """
    if isinstance(graph, Graph):
        return graph
    vertices = range(len(graph))
    rows = [graph.predecessors(v) for v in vertices]
    labels = [graph.label(v) for v in vertices]
    return Graph(rows, labels, [graph.label(v) for v in graph.outputs])
