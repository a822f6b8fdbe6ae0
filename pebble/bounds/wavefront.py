"""Wavefront bounds for any graph: by what is still needed when a vertex has been computed.

**The published bound** (`published_wavefront`) is for the game of `published_spectral`: inputs are
not blue. When x is computed, its ancestors are behind and its descendants ahead; what is behind and
has a successor ahead is needed again. If that is always w vertices or more, w - M of them are
stored and loaded: 2 (w - M).

**The bound in our game** (`wavefront`). Let each vertex be computed at most once, sliding allowed;
T the trivial bound; c(u) = 0 for inputs and outputs and c(u) = 1 for other vertices. For a computed
vertex x let a cut be a set S that holds x and, with a vertex, its predecessors, but no descendant
of x; its front is all vertices of S other than x that have a successor outside S. Then ::

    Q >= T + (least number of vertices of a front) - (M - 1),
    Q >= T + (least sum of 1 + c(u) over a front) - 2 (M - 1).

*Proof.* Look at the game right after the compute of x. Let S be what has been computed, and the
inputs that have been loaded. It is a cut: predecessors are there before a vertex, descendants
after. A vertex u of its front is red again later, when its successor is computed. If u is not red
now, it is blue now, and it is loaded later: for an input not the first load. If c(u) = 1, u was
stored before, and that is no store of an output. So u costs 1 + c(u) moves that T does not count.
Now x is red, so at most M - 1 others are; each of those saves 1 in the first sum, and at most 2 in
the second. []

Here a least front is a least cut: a vertex u is split in two, u behind and u used up, with an arc
of the price of u between them, and arcs that can't be cut hold the rules of a cut together.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pebble.bounds.bound import Bound
from pebble.bounds.inputs_outputs import inputs_outputs
from pebble.bounds.spectral import ONCE, needs_store, once
from pebble.checks import positive
from pebble.graph import ComputationGraph, Graph, explicit
from pebble.moves import Label
from pebble.rules import Rules

Ints = NDArray[np.int64]


def published_wavefront(
    graph: ComputationGraph, cache: int, vertices: Iterable[Label] | None = None
) -> int:
    """Give the convex min-cut bound as Jain and Zaharia computed it, which is no bound in ours.

    Their network differs from the cut that the module describes: descendants of x are left out, x
    need not be behind, and every arc that leads on can be cut at a price of 1, so that the cut may
    be smaller. (They also leave out ancestors that only lead to ancestors, which changes nothing:
    flow leaves the ancestors through others, and each of those has an arc from the source.)

    Parameters
    ----------
    graph : ComputationGraph
        What is computed.
    cache : int
        The words of fast memory, M.
    vertices : iterable of labels, optional
        The vertices x to look at. Default: all. In a symmetric graph one of each kind will do.

    Raises
    ------
    SizeError
        A cache that is no positive integer.
    GraphError
        A label of no vertex.

    References
    ----------
    Elango, Rastello, Pouchet, Ramanujam and Sadayappan, "On characterizing the data access
    complexity of programs", POPL 2015; computed as for Jain and Zaharia, "Spectral lower bounds on
    the I/O complexity of computation graphs", SPAA 2020.

    Examples
    --------
    All sets of one size are alike in the hypercube; when one of 6 of the 9 elements is computed,
    43 vertices are needed again: 2 (43 - 32).

    >>> from pebble.classic import hypercube
    >>> published_wavefront(hypercube(9), cache=32, vertices=[0b111111])
    22
    """
    cache = positive("cache", cache, "the words of fast memory")
    graph = explicit(graph)
    widest = max((published_cut(graph, x) for x in _chosen(graph, vertices)), default=0)
    return max(0, 2 * (widest - cache))


def wavefront(
    graph: ComputationGraph,
    cache: int,
    rules: Rules = ONCE,
    vertices: Iterable[Label] | None = None,
) -> Bound:
    """Give the wavefront bound in our game, proved in `pebble.bounds.wavefront`.

    Parameters
    ----------
    graph : ComputationGraph
        What is computed.
    cache : int
        The words of fast memory, M.
    rules : Rules
        The game: without recomputation.
    vertices : iterable of labels, optional
        The vertices x to look at; fewer may prove less. Default: all. Each takes two maximum flows.

    Raises
    ------
    SizeError
        A cache that is no positive integer.
    ProblemError
        Rules with recomputation or with partial computation.
    GraphError
        A label of no vertex.

    References
    ----------
    Elango et al., "On characterizing the data access complexity of programs", POPL 2015, in another
    model.

    Examples
    --------
    c is computed from a and b, d from c and a, e from d and b, f from e and c. When d has been
    computed, b and c are needed again, c with a store; with M = 2 one of them may be red beside d.
    So two moves at most are saved, of three.

    >>> graph = Graph([(), (), (0, 1), (2, 0), (3, 1), (4, 2)], list("abcdef"))
    >>> wavefront(graph, cache=2).value  # 3 trivial, 1 more
    4
    """
    cache = positive("cache", cache, "the words of fast memory")
    once("wavefront", rules)
    graph = explicit(graph)
    ones, prices = np.ones(len(graph), np.int64), 1 + needs_store(graph)
    beyond = 0
    for x in _chosen(graph, vertices):
        if not graph.is_input(x):
            most = least_front(graph, x, prices) - 2 * (cache - 1)
            fewest = least_front(graph, x, ones) - (cache - 1)
            beyond = max(beyond, most, fewest)
    return Bound(
        inputs_outputs(graph, rules).value + beyond,
        "wavefront",
        "each vertex computed at most once, sliding allowed",
        "proved in pebble.bounds.wavefront, after Elango et al. 2015",
    )


def _chosen(graph: Graph, vertices: Iterable[Label] | None) -> list[int]:
    return list(range(len(graph))) if vertices is None else [graph.vertex(v) for v in vertices]


def least_front(graph: Graph, x: int, prices: Ints) -> int:
    """Give the least price of a front when x has been computed; x itself is not paid for.

    Examples
    --------
    c is computed from a and b; a is used again, and b is not.

    >>> graph = Graph([(), (), (0, 1), (0, 2)])
    >>> least_front(graph, 2, np.array([1, 1, 2, 2]))
    1
    """
    n, source, sink = len(graph), 2 * len(graph), 2 * len(graph) + 1
    never = int(prices.sum()) + 1
    after = reachable(graph._forward, [x])
    after[x] = False
    own = prices.copy()
    own[x] = 0
    ahead = np.flatnonzero(after)
    heads = np.repeat(np.arange(n), np.diff(graph.starts))
    arcs = [
        (np.arange(n), n + np.arange(n), own),  # behind and used again: the price of u
        (n + graph.preds, heads, np.full(len(heads), never)),  # used up: all successors behind
        (heads, graph.preds, np.full(len(heads), never)),  # behind: all predecessors too
        (np.array([source]), np.array([x]), np.array([never])),
        (ahead, np.full(len(ahead), sink), np.full(len(ahead), never)),
    ]
    return _flow(arcs, 2 * n + 2, source, sink)


def published_cut(graph: Graph, x: int) -> int:
    """Give the cut of `published_wavefront` for one vertex.

    >>> from pebble.classic import hypercube
    >>> published_cut(hypercube(3), 0b001)
    1
    """
    n, source, sink = len(graph), 2 * len(graph), 2 * len(graph) + 1
    before = reachable((graph.starts, graph.preds), [x])
    after = reachable(graph._forward, [x])
    before[x] = after[x] = False
    heads, tails = np.repeat(np.arange(n), np.diff(graph.starts)), graph.preds
    there = ~after
    inside = there[heads] & there[tails]
    ends = np.unique(tails[there[tails] & after[heads]])
    kept, begins = np.flatnonzero(there), np.flatnonzero(before)
    arcs = [
        (kept, n + kept, np.ones(len(kept), np.int64)),
        (n + tails[inside], heads[inside], np.ones(inside.sum(), np.int64)),
        (heads[inside], tails[inside], np.full(inside.sum(), n + 1)),
        (np.full(len(begins), source), begins, np.ones(len(begins), np.int64)),
        (n + ends, np.full(len(ends), sink), np.ones(len(ends), np.int64)),
    ]
    return _flow(arcs, 2 * n + 2, source, sink)


def reachable(rows: tuple[Ints, Ints], begin: list[int]) -> NDArray[np.bool_]:
    """Say for each vertex whether it can be reached along rows of neighbours.

    >>> graph = Graph([(), (0,), (1,), (0,)])
    >>> reachable((graph.starts, graph.preds), [2]).tolist()
    [True, True, True, False]
    """
    starts, others = rows
    seen = np.zeros(len(starts) - 1, bool)
    seen[begin] = True
    layer = np.array(begin, np.int64)
    while len(layer):
        found = [others[starts[v] : starts[v + 1]] for v in layer]
        layer = np.unique(np.concatenate(found))
        layer = layer[~seen[layer]]
        seen[layer] = True
    return seen


def _flow(arcs: list[tuple[Any, Any, Any]], nodes: int, source: int, sink: int) -> int:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import maximum_flow

    tails, heads, capacities = (np.concatenate(part) for part in zip(*arcs, strict=True))
    shape = nodes, nodes
    network = coo_array((capacities.astype(np.int32), (tails, heads)), shape=shape).tocsr()
    return int(maximum_flow(network, source, sink).flow_value)
