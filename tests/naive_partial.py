"""The game with partial computation, slow and obvious: written separately, to test the fast one.

It shares no code with `pebble`. A graph is a dict from each label to the tuple of its
predecessors, and a move is ``("load", v)``, ``("store", v)``, ``("delete", v)`` or
``("compute", v, u)``. Where the game stands is three sets: ``light`` and ``dark`` and ``blue``
vertices (what is light is blue too), and the edges ``(u, v)`` that are marked.
"""

import heapq
from itertools import count
from typing import NamedTuple


class Done(NamedTuple):
    """A game whose moves are all legal: what it costs, and the outputs that aren't done."""

    loads: int
    stores: int
    computes: int
    deletes: int
    peak: int
    missing: tuple


class Illegal(NamedTuple):
    """The first illegal move: its index, and the name of the rule, as `Breach` names it."""

    index: int
    reason: str


def start(graph):
    """Give the sets at the start: light, dark, blue, marked."""
    return frozenset(), frozenset(), frozenset(v for v in graph if not graph[v]), frozenset()


def finished(graph, marked, v):
    """Say whether all has been added to v."""
    return all((u, v) in marked for u in graph[v])


def used_up(graph, marked, v):
    """Say whether v has been added to all."""
    return all((v, w) in marked for w in graph if v in graph[w])


def complaint(graph, cache, state, move):
    """Give the rule that a move breaks, or None."""
    light, dark, blue, marked = state
    op, v, *source = move
    if op not in ("load", "store", "compute", "delete") or (op == "compute") != bool(source):
        return "NOT_IN_THE_GAME"
    if any(end not in graph for end in move[1:]):
        return "NO_SUCH_VERTEX"
    red = light | dark
    full = len(red) >= cache
    if op == "load":
        if v not in blue:
            return "NOT_BLUE"
        if v in red:
            return "ALREADY_RED"
        return "CACHE_FULL" if full else None
    if op == "store":
        if v not in red:
            return "NOT_RED"
        return "ALREADY_BLUE" if v in light else None
    if op == "delete":
        if v not in red:
            return "NOT_RED"
        if v in dark and not (finished(graph, marked, v) and used_up(graph, marked, v)):
            return "STILL_NEEDED"
        return None
    u = source[0]
    if not graph[v]:
        return "IS_INPUT"
    if u not in graph[v]:
        return "NOT_A_PREDECESSOR"
    if (u, v) in marked:
        return "ALREADY_ADDED"
    if u not in red:
        return "PREDECESSOR_NOT_RED"
    if not finished(graph, marked, u):
        return "PREDECESSOR_UNFINISHED"
    if v not in red and v in blue:
        return "NOT_LOADED"
    return "CACHE_FULL" if v not in red and full else None


def made(state, move):
    """Give the sets after a legal move."""
    light, dark, blue, marked = state
    op, v, *source = move
    if op == "load":
        return light | {v}, dark, blue, marked
    if op == "store":
        return light | {v}, dark - {v}, blue | {v}, marked
    if op == "delete":
        return light - {v}, dark - {v}, blue, marked
    return light - {v}, dark | {v}, blue - {v}, marked | {(source[0], v)}


def complete(graph, outputs, state):
    """Say whether every output is finished and blue."""
    return all(v in state[2] and finished(graph, state[3], v) for v in outputs)


def play(graph, outputs, cache, moves):
    """Play the moves; give a `Done`, or an `Illegal` for the first move that breaks a rule.

    >>> graph = {"a": (), "b": ("a",)}
    >>> play(graph, ["b"], 2, [("load", "a"), ("compute", "b", "a"), ("store", "b")])
    Done(loads=1, stores=1, computes=1, deletes=0, peak=2, missing=())
    """
    state, peak = start(graph), 0
    total = dict.fromkeys(["load", "store", "compute", "delete"], 0)
    for index, move in enumerate(moves):
        reason = complaint(graph, cache, state, move)
        if reason:
            return Illegal(index, reason)
        state = made(state, move)
        total[move[0]] += 1
        peak = max(peak, len(state[0] | state[1]))
    missing = tuple(v for v in graph if v in outputs and not complete(graph, [v], state))
    return Done(*total.values(), peak, missing)


def all_moves(graph):
    """Give every move of the game, legal or not."""
    moves = [(op, v) for v in graph for op in ("load", "store", "delete")]
    return moves + [("compute", v, u) for v in graph for u in graph[v]]


def optimum(graph, outputs, cache):
    """Give the least I/O of a complete game. For tiny graphs only: Dijkstra over all positions.

    >>> optimum({"a": (), "b": (), "c": ("a", "b")}, ["c"], 2)
    3
    """
    moves, order = all_moves(graph), count()
    first = start(graph)
    best, queue = {first: 0}, [(0, next(order), first)]
    while queue:
        cost, _, state = heapq.heappop(queue)
        if cost > best[state]:
            continue
        if complete(graph, outputs, state):
            return cost
        for move in moves:
            if complaint(graph, cache, state, move) is None:
                after = made(state, move)
                paid = cost + (move[0] in ("load", "store"))
                if paid < best.get(after, paid + 1):
                    best[after] = paid
                    heapq.heappush(queue, (paid, next(order), after))
    return None
