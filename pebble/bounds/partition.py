"""Hong and Kung's bound with the least partition, by exact search; for small graphs.

An S-partition cuts the vertices into parts such that each part has a dominator of at most S
vertices (a set that meets every path from an input to the part; it may hold inputs and vertices of
the part), a minimum set of at most S vertices (those of the part with no successor in the part),
and no cycle of parts depend on each other. P(S) is the least number of parts, and
Q >= M (P(2M) - 1).

**The search.** Since no parts depend on each other in a cycle, they can be put in an order such
that the first i together hold, with a vertex, its predecessors: a down-set. So P(S) is the length
of a shortest path over down-sets from the empty one to all vertices, a step from I to J being a
part J - I. Only the down-sets that are not within another reached by as few steps matter: if I is
within I', and the rest of I is cut into parts, leaving I' out of them gives parts for the rest of
I'. They have dominators that are no larger, and a vertex outside I' has no successor in I', so
their minimum sets lie in those of before.
"""

from __future__ import annotations

from collections.abc import Iterator

from pebble.bounds.bound import Bound
from pebble.bounds.literature import hong_kung
from pebble.checks import positive
from pebble.errors import ProblemError, SizeError
from pebble.graph import ComputationGraph, Graph, explicit
from pebble.rules import HONG_KUNG, Rules

# A graph of so many vertices has down-sets enough to search for seconds.
MOST_VERTICES = 20


def partition(
    graph: ComputationGraph,
    cache: int,
    rules: Rules = HONG_KUNG,
    vertices: int = MOST_VERTICES,
) -> Bound:
    """Give Hong and Kung's bound, M (P(2M) - 1), P(2M) the least number of parts.

    Parameters
    ----------
    graph : ComputationGraph
        What is computed.
    cache : int
        The words of fast memory, M.
    rules : Rules
        The game: without sliding.
    vertices : int
        The most vertices that the graph may have; the time grows exponentially with them.

    Raises
    ------
    SizeError
        A graph with too many vertices, a cache or a limit that is no positive integer.
    ProblemError
        Rules with sliding or with partial computation.

    References
    ----------
    Hong and Kung, "I/O complexity: the red-blue pebble game", STOC 1981, theorem 3.1.

    Examples
    --------
    Five inputs, each with an output of its own: with M = 2 a part has at most 4 outputs, so there
    are 2 parts. (The least I/O is 10: this bound is for larger graphs.)

    >>> partition(Graph([()] * 5 + [(v,) for v in range(5)]), cache=2).value
    2
    """
    cache = positive("cache", cache, "the words of fast memory")
    if rules.sliding:
        raise ProblemError("partition is for rules without sliding: Rules(sliding=False)")
    if rules.partial:
        raise ProblemError(
            "partition is for rules without partial computation: Rules(partial=False)"
        )
    parts = least_parts(graph, 2 * cache, vertices)
    return Bound(
        hong_kung(parts, cache),
        "partition",
        "recomputation allowed, no sliding",
        "Hong and Kung 1981, theorem 3.1, with the least partition by exact search",
    )


def least_parts(graph: ComputationGraph, most: int, vertices: int = MOST_VERTICES) -> int:
    """Give P(S), the least number of parts of an S-partition.

    Parameters
    ----------
    graph : ComputationGraph
        What is computed.
    most : int
        S, the most vertices in a dominator and in a minimum set.
    vertices : int
        The most vertices that the graph may have.

    Raises
    ------
    SizeError
        A graph with too many vertices, or a number that is no positive integer.

    Examples
    --------
    A part of one vertex has itself as a dominator and as its minimum set, so there always are
    S-partitions.

    >>> vee = Graph([(), (), (0, 1)])
    >>> least_parts(vee, 1), least_parts(vee, 2)
    (3, 1)
    """
    most = positive("most", most, "the most vertices in a dominator")
    vertices = positive("vertices", vertices, "the most vertices of a graph")
    if len(graph) > vertices:
        raise SizeError(f"a graph of {len(graph)} vertices: at most {vertices} are searched")
    search = _Parts(explicit(graph), most)
    reached, parts = [0], 0
    while reached[0] != search.everything:
        found = {after for before in reached for after in search.extensions(before)}
        reached, parts = _largest(found), parts + 1
    return parts


def _largest(sets: set[int]) -> list[int]:
    # Those that are within no other, the largest first; bits are vertices.
    kept: list[int] = []
    for one in sorted(sets, key=lambda each: (-each.bit_count(), each)):
        if all(one & ~other for other in kept):
            kept.append(one)
    return kept


class _Parts:
    # A graph in bits: bit v of a set is vertex v.

    def __init__(self, graph: Graph, most: int) -> None:
        self.most = most
        self.size = len(graph)
        self.everything = (1 << self.size) - 1
        self.before = [sum(1 << u for u in graph.predecessors(v)) for v in range(self.size)]
        self.after = [sum(1 << w for w in graph.successors(v)) for v in range(self.size)]
        self.known: dict[int, bool] = {}

    def extensions(self, base: int) -> Iterator[int]:
        # The down-sets J around a down-set such that J - base may be a part.
        seen, stack = {base}, [base]
        while stack:
            down = stack.pop()
            for v in range(self.size):
                larger = down | 1 << v
                if larger in seen or self.before[v] & ~down:
                    continue
                seen.add(larger)
                part = larger & ~base
                if not self.is_dominated(part):
                    continue  # and no larger part is
                stack.append(larger)
                if self.minimum(part) <= self.most:
                    yield larger

    def minimum(self, part: int) -> int:
        return sum(1 for v in bits(part) if not self.after[v] & part)

    def is_dominated(self, part: int) -> bool:
        # By Menger's theorem: if so many paths from inputs to the part, and no more, are disjoint.
        if part not in self.known:
            self.known[part] = (
                disjoint_paths(self.before, self.after, part, self.most + 1) <= self.most
            )
        return self.known[part]


def bits(number: int) -> Iterator[int]:
    """Give the places of the bits that are set, the lowest first.

    >>> list(bits(0b1101))
    [0, 2, 3]
    """
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


def disjoint_paths(before: list[int], after: list[int], part: int, enough: int) -> int:
    """Give how many paths from inputs to a part share no vertex, counting up to `enough`.

    Parameters
    ----------
    before, after : list of int
        For each vertex its predecessors and its successors, as bits; an input has no predecessors.
    part : int
        The vertices of the part, as bits.
    enough : int
        Where to stop counting.

    Examples
    --------
    Two inputs, one vertex from both, and two from that one.

    >>> disjoint_paths([0, 0, 0b11, 0b100, 0b100], [0b100, 0b100, 0b11000, 0, 0], 0b11000, 5)
    1
    """
    flow: set[tuple[int, int]] = set()
    for found in range(enough):
        path = _augmenting(before, after, part, flow)
        if path is None:
            return found
        for a, b in path:
            if (b, a) in flow:
                flow.remove((b, a))
            else:
                flow.add((a, b))
    return enough


# The ends of the network in which vertex v is entered at 2v and left at 2v + 1.
SOURCE, SINK = -1, -2


def _augmenting(
    before: list[int], after: list[int], part: int, flow: set[tuple[int, int]]
) -> list[tuple[int, int]] | None:
    # The arcs of a path along arcs without flow, and back along arcs that have some.
    def neighbours(node: int) -> tuple[list[int], list[int]]:
        v = node >> 1
        if node == SOURCE:
            return [2 * u for u, row in enumerate(before) if not row], []
        if node & 1:
            ends = [SINK] if part >> v & 1 else []
            return ends + [2 * w for w in bits(after[v])], [node - 1]
        return [node + 1], [2 * u + 1 for u in bits(before[v])]

    came = {SOURCE: SOURCE}
    stack = [SOURCE]
    while stack and SINK not in came:
        node = stack.pop()
        ahead, back = neighbours(node)
        found = [other for other in ahead if (node, other) not in flow]
        found += [other for other in back if (other, node) in flow]
        for other in found:
            if other not in came:
                came[other] = node
                stack.append(other)
    if SINK not in came:
        return None
    path, node = [], SINK
    while node != SOURCE:
        path.append((came[node], node))
        node = came[node]
    return path
