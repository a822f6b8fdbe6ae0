"""What was computed from what: operations on arrays of vertex numbers, and the graph in the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from pebble.errors import TraceError
from pebble.graph import Graph
from pebble.moves import Label, Vertex

Ids = NDArray[np.int64]

# The vertex number of a plain number, which is no vertex.
CONSTANT = -1


@dataclass(frozen=True)
class Step:
    """The vertices that one operation made.

    Parameters
    ----------
    operation : str
        Its name; of inputs, the array's name.
    indices : array
        One row for each vertex: its index.
    predecessors : array
        One row for each vertex, with the operands in their order; `CONSTANT` is none. Inputs
        have rows of length 0.
    """

    operation: str
    indices: Ids
    predecessors: Ids

    @property
    def is_input(self) -> bool:
        """Whether it is an array of inputs."""
        return not self.predecessors.shape[1]


class Recorder:
    """All operations of one run. Arrays are arrays of vertex numbers, or of `CONSTANT`.

    Attributes
    ----------
    steps : list of Step
        The inputs and what was done, in the order of vertex numbers.

    Examples
    --------
    >>> recorder = Recorder()
    >>> a = recorder.inputs("a", (3,))
    >>> recorder.chain("add", recorder.elementwise("exp", a), (0,))
    array([3, 6, 7])
    >>> recorder.graph({"total": np.array(7)})
    Graph(8 vertices: 3 inputs, 1 outputs; 7 edges)
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._size = 0

    def inputs(self, name: str, shape: tuple[int, ...]) -> Ids:
        """Record an array of inputs, and give its numbers."""
        made = np.ones(shape, bool)
        self.steps.append(Step(name, _indices(made), np.zeros((made.size, 0), np.int64)))
        return self._number(made)

    def elementwise(self, operation: str, *operands: Ids) -> Ids:
        """Record an operation on each place of some arrays, which are broadcast."""
        places = np.broadcast_arrays(*operands)
        made = np.any([ids >= 0 for ids in places], axis=0)
        preds = np.stack([ids[made] for ids in places], axis=1)
        self.steps.append(Step(operation, _indices(made), preds))
        return self._number(made)

    def chain(self, operation: str, terms: Ids, axes: Sequence[int]) -> Ids:
        """Record totals along axes in index order, and give the total up to each place.

        The first term is the first total. Vertices are numbered row-major by the place of the
        last term.
        """
        ends = tuple(range(-len(axes), 0))
        moved = np.moveaxis(terms, axes, ends)
        flat = (-1, int(np.prod([terms.shape[axis] for axis in axes])))

        def restore(rows: Ids) -> Ids:
            return np.moveaxis(rows.reshape(moved.shape), ends, axes)

        terms_of = moved.reshape(flat)
        makes = np.logical_or.accumulate(terms_of >= 0, axis=1)
        makes[:, :1] = False
        made = restore(makes).astype(bool)
        totals = np.moveaxis(self._number(made), axes, ends).reshape(flat)
        totals[:, :1] = terms_of[:, :1]
        before = np.roll(totals, 1, axis=1)
        preds = np.stack([restore(before)[made], terms[made]], axis=1)
        self.steps.append(Step(operation, _indices(made), preds))
        return restore(totals)

    def _number(self, made: NDArray[np.bool_]) -> Ids:
        ids = np.full(made.shape, CONSTANT, np.int64)
        count = int(made.sum())
        ids[made] = np.arange(self._size, self._size + count)
        self._size += count
        return ids

    def graph(self, outputs: Mapping[str, Ids]) -> Graph:
        """Give the graph of what the outputs depend on.

        Raises
        ------
        TraceError
            See `trace`.
        """
        labels, rows = self._labels(outputs), self._rows()
        goals: dict[int, Label] = {}
        for name, ids in outputs.items():
            for index, number in np.ndenumerate(ids):
                v, label = int(number), Vertex(name, index)
                if v == CONSTANT:
                    raise TraceError(f"output {label} is a constant: it depends on no input")
                if not rows[v]:
                    raise TraceError(
                        f"output {label} is the input {labels[v]}: in the game no input is an "
                        "output, so return computed numbers only"
                    )
                if v not in goals:  # a number returned twice has its first name
                    labels[v] = goals[v] = label
        used = _ancestors(rows, goals)
        self._check_inputs(used)
        number_of = {v: at for at, v in enumerate(used)}
        return Graph(
            [[number_of[u] for u in rows[v]] for v in used],
            [labels[v] for v in used],
            goals.values(),
        )

    def _labels(self, outputs: Mapping[str, Ids]) -> list[Vertex]:
        taken = {step.operation for step in self.steps if step.is_input}
        for name in outputs:
            if name in taken:
                raise TraceError(f"output {name} has the name of an input: give it another")
        taken |= set(outputs)
        labels: list[Vertex] = []
        numbers: dict[str, Iterator[int]] = defaultdict(lambda: count(1))
        for step in self.steps:
            name = step.operation
            if not step.is_input:
                names = (f"{name}_{number}" for number in numbers[name])
                name = next(free for free in names if free not in taken)
            labels += [Vertex(name, tuple(index)) for index in step.indices.tolist()]
        return labels

    def _rows(self) -> list[list[int]]:
        # A number that is used twice by one operation is one predecessor.
        return [
            [u for u in dict.fromkeys(row) if u != CONSTANT]
            for step in self.steps
            for row in step.predecessors.tolist()
        ]

    def _check_inputs(self, used: Sequence[int]) -> None:
        known, start = set(used), 0
        for step in self.steps:
            stop = start + len(step.indices)
            if step.is_input and known.isdisjoint(range(start, stop)):
                raise TraceError(f"no output depends on the input {step.operation}: leave it out")
            start = stop


def _indices(made: NDArray[np.bool_]) -> Ids:
    if made.ndim == 0:  # argwhere has no rows of no columns
        return np.zeros((int(made), 0), np.int64)
    return np.argwhere(made)


def _ancestors(rows: Sequence[Sequence[int]], goals: Mapping[int, Label]) -> list[int]:
    used = [False] * len(rows)
    for v in range(len(rows) - 1, -1, -1):  # predecessors have lower numbers
        used[v] = used[v] or v in goals
        if used[v]:
            for u in rows[v]:
                used[u] = True
    return [v for v in range(len(rows)) if used[v]]
