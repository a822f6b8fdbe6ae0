"""Schedules on networkx graphs. Graphs alone are in `pebble.networks`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pebble.errors import GraphError, ProgramError
from pebble.graph import ComputationGraph
from pebble.interchange.schedules import counted
from pebble.moves import Label, Move
from pebble.networks import to_networkx
from pebble.rules import Op

if TYPE_CHECKING:
    import networkx

_OPS = {str(op): op for op in Op}


def schedule_to_networkx(graph: ComputationGraph, source: Any) -> networkx.DiGraph:
    """Give a graph as a networkx DiGraph whose nodes carry their moves.

    A node has the attribute ``moves``, a list of pairs (place, op) in order, such as
    ``[(0, "load"), (4, "delete")]``; a slide is a triple with the label that it slides from. So
    ``nodes[label]["moves"]`` shows how long a value is red, and how often it is loaded.

    Parameters
    ----------
    graph : ComputationGraph
        What is computed.
    source : Schedule, Play, Optimum, Undecided, Game, or iterable of Move or text
        Whose moves. They need not be legal.

    Raises
    ------
    ProgramError
        A move of a vertex that does not exist.

    Examples
    --------
    >>> from pebble.graph import Graph
    >>> graph = Graph([(), (), (0, 1)], labels=["a", "b", "c"])
    >>> moves = ["load a", "load b", "compute c", "store c", "delete c"]
    >>> network = schedule_to_networkx(graph, moves)
    >>> network.nodes["c"]
    {'output': True, 'moves': [(2, 'compute'), (3, 'store'), (4, 'delete')]}
    >>> [str(move) for move in schedule_from_networkx(network)] == moves
    True
    """
    network = to_networkx(graph)
    for label in network:
        network.nodes[label]["moves"] = []
    for at, given in enumerate(counted(source)[1]):
        move = Move.parse(given) if isinstance(given, str) else given
        try:
            name = graph.label(graph.vertex(move.vertex))
            slid = [graph.label(graph.vertex(move.source))] if move.op is Op.SLIDE else []
        except GraphError as error:
            raise ProgramError(f"move {at}, {move}: {error}") from None
        network.nodes[name]["moves"].append((at, str(move.op), *slid))
    return network


def schedule_from_networkx(network: Any) -> tuple[Move, ...]:
    """Give the moves that `schedule_to_networkx` put on the nodes of a networkx graph.

    Raises
    ------
    ProgramError
        Places that are not each number from 0 once, or an entry that is no move.
    """
    entries: dict[int, Move] = {}
    for label, given in network.nodes(data="moves", default=()):
        for entry in given:
            at, move = _entry(label, entry)
            if at in entries:
                raise ProgramError(f"two moves are at place {at}: {entries[at]} and {move}")
            entries[at] = move
    for at in range(len(entries)):
        if at not in entries:
            raise ProgramError(
                f"{len(entries)} moves, and none is at place {at}: places are 0, 1, 2, ..."
            )
    return tuple(entries[at] for at in range(len(entries)))


def _entry(label: Label, entry: Any) -> tuple[int, Move]:
    try:
        at, name, *slid = entry
        op = _OPS[name]
        if type(at) is int and len(slid) == (op is Op.SLIDE):
            return at, Move(op, label, *slid)
    except (TypeError, ValueError, KeyError):
        pass
    raise ProgramError(
        f"moves of {label!r}: {entry!r} is none; write (0, 'load'), or (0, 'slide', source)"
    )
