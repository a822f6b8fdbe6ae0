"""The slow, obvious referee: written separately, out of sets and dicts, to test the fast one.

It shares no code with `pebble`. A graph is a dict from each label to the tuple of its
predecessors (inputs have none), and a move is a tuple of the op's name and one or two labels::

    graph = {"a": (), "b": (), "c": ("a", "b")}
    play(graph, ["c"], 3, [("load", "a"), ("load", "b"), ("compute", "c"), ("store", "c")])

The rules are keywords: ``recompute=True, sliding=False, redundant=False, erasing=False,
weights=None`` with the meaning of `pebble.Rules`; here weights are by label only.
"""

import heapq
from itertools import count
from typing import NamedTuple


class Done(NamedTuple):
    """A game whose moves are all legal: what it costs, and the outputs that aren't blue."""

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


def play(graph, outputs, cache, moves, **rules):
    """Play the moves; give a `Done`, or an `Illegal` for the first move that breaks a rule.

    >>> play({"a": (), "b": ("a",)}, ["b"], 2, [("load", "a"), ("compute", "b"), ("store", "b")])
    Done(loads=1, stores=1, computes=1, deletes=0, peak=2, missing=())
    >>> play({"a": (), "b": ("a",)}, ["b"], 2, [("load", "a"), ("store", "b")])
    Illegal(index=1, reason='NOT_RED')
    """
    weights = rules.get("weights") or {}
    red, blue, computed = set(), {v for v in graph if not graph[v]}, set()
    total = dict.fromkeys(["load", "store", "compute", "delete", "slide", "erase"], 0)
    peak = 0
    for index, move in enumerate(moves):
        reason = complaint(graph, cache, red, blue, computed, move, **rules)
        if reason:
            return Illegal(index, reason)
        make(move, red, blue, computed)
        op, vertex = move[0], move[1]
        total[op] += weights.get(vertex, 1) if op in ("load", "store") else 1
        peak = max(peak, sum(weights.get(v, 1) for v in red))
    missing = tuple(v for v in graph if v in set(outputs) and v not in blue)
    computes = total["compute"] + total["slide"]
    return Done(total["load"], total["store"], computes, total["delete"], peak, missing)


def make(move, red, blue, computed):
    """Make a legal move: change the three sets in place."""
    op, vertex = move[0], move[1]
    if op == "load":
        red.add(vertex)
    elif op == "store":
        blue.add(vertex)
    elif op == "compute":
        red.add(vertex)
        computed.add(vertex)
    elif op == "delete":
        red.remove(vertex)
    elif op == "slide":
        red.remove(move[2])
        red.add(vertex)
        computed.add(vertex)
    elif op == "erase":
        blue.remove(vertex)


def complaint(
    graph,
    cache,
    red,
    blue,
    computed,
    move,
    recompute=True,
    sliding=False,
    redundant=False,
    erasing=False,
    weights=None,
):
    """Give the rule that a move breaks, or None; of several, the first as written here."""
    op, vertex = move[0], move[1]
    if op == "slide" and not sliding:
        return "NOT_IN_THE_GAME"
    if op == "erase" and not erasing:
        return "NOT_IN_THE_GAME"
    if any(v not in graph for v in move[1:]):
        return "NO_SUCH_VERTEX"
    if op in ("load", "erase") and vertex not in blue:
        return "NOT_BLUE"
    if op in ("store", "delete") and vertex not in red:
        return "NOT_RED"
    if op in ("compute", "slide"):
        if graph[vertex] == ():
            return "IS_INPUT"
        if vertex in computed and not recompute:
            return "RECOMPUTED"
    if op in ("load", "compute", "slide") and vertex in red and not redundant:
        return "ALREADY_RED"
    if op == "store" and vertex in blue and not redundant:
        return "ALREADY_BLUE"
    if op in ("compute", "slide"):
        if not red.issuperset(graph[vertex]):
            return "PREDECESSOR_NOT_RED"
        if op == "slide" and move[2] not in graph[vertex]:
            return "NOT_A_PREDECESSOR"
    red_after = set(red)
    make(move, red_after, set(blue), set())
    grows = op in ("load", "compute", "slide") and vertex not in red
    if grows and sum((weights or {}).get(v, 1) for v in red_after) > cache:
        return "CACHE_FULL"
    return None


def all_moves(graph, sliding=False, erasing=False):
    """Give every move that can be written down, legal or not."""
    moves = [(op, v) for v in graph for op in ("load", "store", "compute", "delete")]
    moves += [("slide", v, u) for v in graph for u in graph[v] if sliding]
    return moves + [("erase", v) for v in graph if erasing]


def perft(graph, cache, length, **rules):
    """Count the legal move sequences of a length from the start.

    >>> [perft({"a": (), "b": (), "c": ("a", "b")}, 3, length) for length in (1, 2, 3)]
    [2, 4, 10]
    """
    moves = all_moves(graph, rules.get("sliding"), rules.get("erasing"))

    def sequences(red, blue, computed, left):
        if left == 0:
            return 1
        found = 0
        for move in moves:
            if complaint(graph, cache, red, blue, computed, move, **rules) is None:
                state = set(red), set(blue), set(computed)
                make(move, *state)
                found += sequences(*state, left - 1)
        return found

    return sequences(set(), {v for v in graph if not graph[v]}, set(), length)


def optimum(graph, outputs, cache, recompute=True, sliding=False, weights=None):
    """Give the least I/O of a complete game, or None if there is none. For tiny graphs only.

    Dijkstra over the states of the game: what is red, what is blue and, if each vertex may be
    computed only once, what was computed. 12 vertices take seconds.

    >>> optimum({"a": (), "b": (), "c": ("a", "b")}, ["c"], 3)
    3
    """
    vertices = list(graph)
    bit = {v: 1 << i for i, v in enumerate(vertices)}
    weight = {v: (weights or {}).get(v, 1) for v in vertices}
    needs = {v: sum(bit[u] for u in graph[v]) for v in vertices}
    goal = sum(bit[v] for v in set(outputs))
    start = (0, sum(bit[v] for v in vertices if not graph[v]), 0)
    best, order = {start: 0}, count()
    queue = [(0, next(order), start, 0)]
    while queue:
        cost, _, state, used = heapq.heappop(queue)
        red, blue, computed = state
        if cost > best[state]:
            continue
        if blue & goal == goal:
            return cost
        following = []
        for v in vertices:
            b, w = bit[v], weight[v]
            if red & b:
                following.append((0, red & ~b, blue, computed, used - w))
                if not blue & b:
                    following.append((w, red, blue | b, computed, used))
                continue
            if blue & b and used + w <= cache:
                following.append((w, red | b, blue, computed, used + w))
            if not graph[v] or computed & b or red & needs[v] != needs[v]:
                continue
            seen = computed if recompute else computed | b
            if used + w <= cache:
                following.append((0, red | b, blue, seen, used + w))
            for u in graph[v] if sliding else ():
                if used + w - weight[u] <= cache:
                    following.append((0, red & ~bit[u] | b, blue, seen, used + w - weight[u]))
        for price, *after, used_after in following:
            after = tuple(after)
            if cost + price < best.get(after, cost + price + 1):
                best[after] = cost + price
                heapq.heappush(queue, (cost + price, next(order), after, used_after))
    return None
