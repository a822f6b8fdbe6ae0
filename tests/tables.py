"""Reads the small graphs and the tables of values in ``tests/data``."""

import csv
import json
from pathlib import Path

from pebble.graph import Graph

DATA = Path(__file__).parent / "data"


def rows(name):
    """Give the rows of a table as dicts; lines that start with # say where the values are from."""
    lines = [line for line in (DATA / name).read_text().splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines, delimiter=";"))


def small(name):
    """Give a graph of ``graphs.json`` as a dict from labels to predecessors, and its sinks."""
    graph = json.loads((DATA / "graphs.json").read_text())[name]
    preds = {v: tuple(before) for v, before in graph.items()}
    used = {u for before in preds.values() for u in before}
    return preds, [v for v in preds if v not in used]


def small_graph(name):
    """Give the same graph as a `Graph`."""
    preds, outputs = small(name)
    number = {label: v for v, label in enumerate(preds)}
    return Graph([[number[u] for u in before] for before in preds.values()], preds, outputs)


def as_dict(graph):
    """Give a computation graph as the naive referee reads it: a dict, and the outputs."""
    preds = {
        graph.label(v): tuple(graph.label(u) for u in graph.predecessors(v))
        for v in range(len(graph))
    }
    return preds, [graph.label(v) for v in graph.outputs]


def as_tuples(moves):
    """Give moves as the naive referee reads them."""
    return [
        (str(move.op), move.vertex, *([move.source] if str(move.op) == "slide" else []))
        for move in moves
    ]


def as_keywords(rules):
    """Give rules, with weights by label, as the naive referee reads them."""
    return {
        "recompute": rules.recompute,
        "sliding": rules.sliding,
        "redundant": rules.redundant,
        "erasing": rules.erasing,
        "weights": dict(rules.weights),
    }
