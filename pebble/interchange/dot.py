"""Graphs as DOT, the language of Graphviz."""

from __future__ import annotations

from collections.abc import Iterator

from pebble.graph import ComputationGraph
from pebble.interchange.files import Path, write_lines
from pebble.moves import Label, notation


def to_dot(graph: ComputationGraph) -> str:
    r"""Draw a graph in DOT: inputs are boxes, outputs are double ellipses.

    A node is named by its vertex number and shows the notation of its label, so the same graph
    gives the same text.

    Parameters
    ----------
    graph : ComputationGraph
        Any graph.

    Raises
    ------
    NotationError
        A label that has no notation.

    References
    ----------
    https://graphviz.org/doc/info/lang.html; https://graphviz.org/docs/attr-types/escString/

    Examples
    --------
    >>> from pebble.graph import Graph
    >>> print(to_dot(Graph([(), (), (0, 1)], labels=["a", "b", 'say "c"'])), end="")
    digraph {
      0 [label="a", shape=box];
      1 [label="b", shape=box];
      2 [label="'say \"c\"'", peripheries=2];
      0 -> 2;
      1 -> 2;
    }
    """
    return "".join(f"{line}\n" for line in _lines(graph))


def write_dot(graph: ComputationGraph, path: Path) -> None:
    """Write `to_dot` to a file, line by line; nothing is left of a file that fails midway.

    Raises
    ------
    FileError
        The file can't be written.
    NotationError
        A label that has no notation.
    """
    write_lines(path, _lines(graph))


def _lines(graph: ComputationGraph) -> Iterator[str]:
    yield "digraph {"
    goals = set(graph.outputs)
    for v in range(len(graph)):
        shape = ", shape=box" * graph.is_input(v) + ", peripheries=2" * (v in goals)
        yield f'  {v} [label="{_escaped(graph.label(v))}"{shape}];'
    for v in range(len(graph)):
        for u in graph.predecessors(v):
            yield f"  {u} -> {v};"
    yield "}"


def _escaped(label: Label) -> str:
    # A notation has no control characters. In a label of DOT, `\` begins an escape such as `\N`,
    # the name of the node, and `&` an entity such as `&lt;`.
    return notation(label).replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
