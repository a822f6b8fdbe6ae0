"""Graphs as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator

from pebble.errors import FileError, GraphError
from pebble.graph import ComputationGraph, Graph
from pebble.interchange.files import Lines, Object, Path, encode, header, place, write_lines
from pebble.interchange.labels import to_json
from pebble.moves import Label, notation

KEYS = ("label", "preds", "output")


def write_graph(graph: ComputationGraph, path: Path) -> None:
    """Write a graph to a file; see `pebble.interchange` for the format.

    Parameters
    ----------
    graph : ComputationGraph
        Any graph. One that isn't explicit is not made so.
    path : path
        A file that is there already is replaced once the new one is whole.

    Raises
    ------
    FileError
        The file can't be written.
    NotationError
        A label that has no notation.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "graph.json")
    >>> write_graph(Graph([(), (), (0, 1)], labels=["a", "b", "c"]), path)
    >>> print(path.read_text(), end="")
    {"format": "pebble graph", "version": 1, "vertices": 3}
    {"label": "a"}
    {"label": "b"}
    {"label": "c", "preds": ["a", "b"], "output": true}
    >>> read_graph(path)
    Graph(3 vertices: 2 inputs, 1 outputs; 2 edges)
    >>> folder.cleanup()
    """
    write_lines(path, _lines(graph))


def _lines(graph: ComputationGraph) -> Iterator[str]:
    yield header("graph", "vertices", len(graph))
    goals = set(graph.outputs)
    for v in range(len(graph)):
        entry: Object = {"label": to_json(graph.label(v))}
        if preds := graph.predecessors(v):
            entry["preds"] = [to_json(graph.label(u)) for u in preds]
        if v in goals:
            entry["output"] = True
        yield encode(entry)


def read_graph(path: Path) -> Graph:
    """Read a graph from a file; see `pebble.interchange` for the format.

    Vertices are numbered as they stand in the file, so a predecessor may come later than what is
    computed from it. If no line says ``"output": true``, the sinks are the outputs.

    Raises
    ------
    FileError
        The file can't be read, is cut short or malformed, names a vertex twice or one that is not
        there, or has a graph that the game can't be played on (a cycle is named).

    Examples
    --------
    >>> read_graph("nowhere.json")
    Traceback (most recent call last):
    pebble.errors.FileError: nowhere.json: can't be read: No such file or directory
    """
    lines = Lines(path, "graph", "vertices")
    number: dict[Label, int] = {}
    rows: list[tuple[Label, ...]] = []
    outputs = []
    for raw in lines:
        label, row, output = _vertex(lines, lines.parse(raw))
        if label in number:
            first = place(number[label])
            raise lines.error(f"label {notation(label)} is on line {first} already")
        if output:
            outputs.append(label)
        number[label] = len(rows)
        rows.append(row)
    labels = list(number)
    for v, row in enumerate(rows):
        strangers = [u for u in row if u not in number]
        if strangers:
            raise lines.error(
                f"predecessor {notation(strangers[0])} of {notation(labels[v])}: "
                "no line has that label",
                line=place(v),
            )
    try:
        return Graph([[number[u] for u in row] for row in rows], labels, outputs or None)
    except GraphError as error:
        raise FileError(lines.path, str(error)) from error


def _vertex(lines: Lines, entry: Object) -> tuple[Label, tuple[Label, ...], bool]:
    lines.check_keys(entry, KEYS, "a vertex")
    if "label" not in entry:
        raise lines.error('a vertex has no label; write {"label": "c", "preds": ["a", "b"]}')
    preds, output = entry.get("preds", []), entry.get("output", False)
    if type(preds) is not list:
        raise lines.error(f"preds = {preds!r}: it must be a list of labels")
    if type(output) is not bool:
        raise lines.error(f"output = {output!r}: it must be true or false")
    return lines.label(entry["label"]), tuple(map(lines.label, preds)), output
