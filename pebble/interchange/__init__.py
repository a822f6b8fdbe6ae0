"""Graphs and schedules as files, and on networkx graphs.

A file is JSON lines, in UTF-8: an object a line. The first line is a header; it says how many
lines follow, so that a file that was cut short is found out.

*A graph* (`write_graph`, `read_graph`) has a line for each vertex, in the order of their numbers::

    {"format": "pebble graph", "version": 1, "vertices": 3}
    {"label": "a"}
    {"label": "b"}
    {"label": "c", "preds": ["a", "b"], "output": true}

``preds`` are what it is computed from, by their labels; a vertex without any is an input. They
may come later in the file. ``output`` marks what must be blue at the end; if no line has it, the
sinks must.

*A schedule* (`write_schedule`, `read_schedule`, `replay_file`) has a line for each move::

    {"format": "pebble schedule", "version": 1, "moves": 5}
    {"load": "a"}
    {"load": "b"}
    {"compute": "c"}
    {"store": "c"}
    {"delete": "c"}

The ops are load, store, compute, delete, slide and erase; a slide says what it takes the pebble
from, ``{"slide": "c", "from": "a"}``. Move number i, counted from 0, is on line i + 2. The cache
and the rules are none of the file's: the same moves may be legal under several.

*A label* that is a string or an integer is written as that, a tuple as a list, and a `Vertex` as
an object: ``x[0,1]`` is ``{"x": [0, 1]}``. Each reads back as what it was.

A file is written whole or not at all: what was there before is there until the new one is whole.

`to_dot` and `write_dot` draw a graph for Graphviz. `pebble.networks` takes graphs to networkx and
back, `schedule_to_networkx` and `schedule_from_networkx` graphs with their moves.
"""

from pebble.interchange.dot import to_dot, write_dot
from pebble.interchange.graphs import read_graph, write_graph
from pebble.interchange.networks import schedule_from_networkx, schedule_to_networkx
from pebble.interchange.schedules import read_schedule, replay_file, write_schedule

__all__ = [
    "read_graph",
    "read_schedule",
    "replay_file",
    "schedule_from_networkx",
    "schedule_to_networkx",
    "to_dot",
    "write_dot",
    "write_graph",
    "write_schedule",
]
