"""The command ``python -m pebble replay graph.json schedule.json --cache 8``."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass

from pebble.cost import Cost
from pebble.graph import Graph
from pebble.interchange import read_graph, replay_file
from pebble.rules import Rules
from pebble.table import Table

EXAMPLE = """example (the files are as pebble.interchange writes them):
  python -m pebble replay graph.json schedule.json --cache 8"""

# Rules that are off unless they are asked for, by their names in `Rules`, and what they allow.
ALLOWED = {
    "sliding": "a pebble may slide from a predecessor",
    "redundant": "moves that change nothing are legal",
    "erasing": "blue pebbles may be taken off",
}


def add_options(sub: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    sub.add_argument("graph", metavar="GRAPH", help="the file of the graph")
    sub.add_argument("schedule", metavar="SCHEDULE", help="the file of the moves")
    sub.add_argument("--cache", type=int, required=True, help="M, in words")
    sub.add_argument(
        "--no-recompute",
        action="store_true",
        help="the game in which each vertex is computed once",
    )
    for name, what in ALLOWED.items():
        sub.add_argument(f"--{name}", action="store_true", help=f"the game in which {what}")


@dataclass(frozen=True)
class Replayed:
    """What a schedule in a file costs.

    Parameters
    ----------
    graph : Graph
        What is computed.
    cache : int
        M, in words.
    rules : Rules
        The game that was played.
    cost : Cost
        What the referee counted.
    """

    graph: Graph
    cache: int
    rules: Rules
    cost: Cost

    @property
    def table(self) -> Table:
        """One row, the cost."""
        cost = self.cost
        numbers = (cost.io, cost.loads, cost.stores, cost.computes, cost.deletes, cost.peak)
        return Table(
            f"replay, {len(self.graph):,} vertices, cache M = {self.cache} words",
            ("I/O words", "loads", "stores", "computes", "deletes", "peak"),
            (tuple(f"{number:,}" for number in numbers),),
            ("every move is legal, and every output is stored",),
        )

    def to_dict(self) -> dict[str, object]:
        """Give the cost as plain values, for JSON."""
        graph, cost = self.graph, self.cost
        return {
            "graph": {
                "vertices": len(graph),
                "inputs": len(graph.inputs),
                "outputs": len(graph.outputs),
                "edges": len(graph.preds),
            },
            "cache": self.cache,
            "recompute": self.rules.recompute,
            **{name: getattr(self.rules, name) for name in ALLOWED},
            "io_words": cost.io,
            **asdict(cost),
        }


def run_replay(args: argparse.Namespace) -> Replayed:
    """Replay a schedule on a graph, both from files."""
    allowed = {name: getattr(args, name) for name in ALLOWED}
    rules = Rules(recompute=not args.no_recompute, **allowed)
    graph = read_graph(args.graph)
    return Replayed(graph, args.cache, rules, replay_file(graph, args.schedule, args.cache, rules))
