"""Spectral bounds for any graph: by cutting an order of its vertices into parts of equal size.

**The published bound** (`published_spectral`) is for a game in which inputs are free and are not
blue, outputs need not be stored, and each vertex is computed once; it counts what is stored and
loaded in between. Cut the order of the vertices into k parts. With n_1 >= ... >= n_k the sizes and
l_1 <= l_2 <= ... the eigenvalues of the Laplacian L of the undirected graph, where an edge out of u
weighs 1 / (out-degree of u), the bound is the largest of ::

    n_1 l_1 + ... + n_k l_k - 2 k M,      k = 2, 3, ...

It is no bound in our game, not even on what exceeds the trivial I/O: our inputs are blue, so they
need not be stored to be loaded again. For the 4-point FFT with M = 4 the least I/O is 11 here, 8 of
it trivial, and 4 there.

**The bound in our game** (`spectral`). Let each vertex be computed at most once, and sliding be
allowed. Let T be the trivial bound, c(u) = 0 if u is an input or an output and c(u) = 1 otherwise,
and let each edge out of u weigh (1 + c(u)) / (2 (out-degree of u)) in L. Then for every k ::

    Q >= T + n_1 l_1 + ... + n_k l_k - 2 (k - 1) M.

*Proof.* Every vertex leads to an output, so each is computed once, or is an input and loaded. Order
the vertices by these times, an input by its first load, and cut the order, and with it the game,
into parts S_1, ..., S_k. For a part S let R(S) be the vertices before S with a successor in S, and
W(S) those in S with a successor after S.

1. A vertex of R(S) is red at some time in the part. So it is red at the start or loaded in the
   part, by no first load of an input: at least |R(S)| - M loads besides those. R(S_1) is empty.
2. A vertex u of W(S) is red at some time after the part. If it is not red at the end, it is blue
   then. Computed in S, it was stored in S: with W'(S) the u of W(S) that are neither inputs nor
   outputs, at least |W'(S)| - M stores, of no output. W(S_k) is empty.
3. T counts first loads of inputs and stores of outputs, so none of these moves. Hence
   Q >= T + sum of |R(S)| + |W'(S)| - 2 (k - 1) M.
4. In the sum, u counts once for each later part with a successor of u, and c(u) times more if there
   is such a part; at least 1 + c(u) if some successor is in a later part. The edges out of u that
   join different parts weigh at most (1 + c(u)) / 2 together, and they are on the boundary of two
   parts each. So the sum is at least the sum of the weights of the boundaries, x'Lx for the
   indicator vector x of each part.
5. Scaled to length 1 the indicators are orthonormal, so any j of them have a sum of x'Lx of at
   least l_1 + ... + l_j. With the sizes as factors, summation by parts, the largest first, gives
   n_1 l_1 + ... + n_k l_k at least. []

A weight above 1 makes a move dearer and leaves fewer red, so the bound holds with weights too.
"""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pebble.bounds.bound import Bound
from pebble.bounds.eigenvalues import estimated, proved
from pebble.bounds.inputs_outputs import inputs_outputs
from pebble.checks import positive
from pebble.errors import ProblemError
from pebble.graph import ComputationGraph, Graph, explicit
from pebble.rules import Rules

Floats = NDArray[np.float64]

ONCE = Rules(recompute=False)

# The most parts that are tried, unless more are asked for.
PARTS = 40


def published_spectral(graph: ComputationGraph, cache: int, parts: int = PARTS) -> float:
    """Give the bound of Jain and Zaharia in their model, which is no bound in ours.

    Parameters
    ----------
    graph : ComputationGraph
        What is computed.
    cache : int
        The words of fast memory, M.
    parts : int
        The most parts that are tried. Each needs an eigenvalue.

    Returns
    -------
    float
        What must be stored and loaded besides inputs and outputs, where inputs are not blue; 0 if
        no number of parts gives more. It is as exact as the eigenvalues, which are computed in
        double precision.

    Raises
    ------
    SizeError
        A cache or a number of parts that is no positive integer.

    References
    ----------
    Jain and Zaharia, "Spectral lower bounds on the I/O complexity of computation graphs", SPAA
    2020, arXiv 1909.09791, theorem 4 (k from 2).

    Examples
    --------
    >>> from pebble.classic import fft
    >>> round(published_spectral(fft(7), cache=4), 6)
    6.376857
    """
    cache = positive("cache", cache, "the words of fast memory")
    parts = positive("parts", parts, "the most parts")
    graph = explicit(graph)
    values = estimated(laplacian(graph, np.ones(len(graph))), parts)
    tried = range(2, len(values) + 1)
    return max([0.0, *(weighted(values, len(graph), k) - 2 * k * cache for k in tried)])


def spectral(graph: ComputationGraph, cache: int, rules: Rules = ONCE, parts: int = PARTS) -> Bound:
    """Give the spectral bound in our game, proved in `pebble.bounds.spectral`.

    Parameters
    ----------
    graph : ComputationGraph
        What is computed. 10^5 vertices take about half a minute.
    cache : int
        The words of fast memory, M.
    rules : Rules
        The game: without recomputation.
    parts : int
        The most parts that are tried. More parts are better for smaller caches.

    Raises
    ------
    SizeError
        A cache or a number of parts that is no positive integer.
    ProblemError
        Rules with recomputation or with partial computation.

    References
    ----------
    Jain and Zaharia, "Spectral lower bounds on the I/O complexity of computation graphs", SPAA
    2020, arXiv 1909.09791, in another model.

    Examples
    --------
    The FFT on 2^7 points: 2 * 128 of these words are trivial.

    >>> from pebble.classic import fft
    >>> spectral(fft(7), cache=4).value
    267
    """
    cache = positive("cache", cache, "the words of fast memory")
    parts = positive("parts", parts, "the most parts")
    once("spectral", rules)
    graph = explicit(graph)
    counts = 1 + needs_store(graph)
    values = proved(laplacian(graph, counts / 2), parts)
    tried = range(1, len(values) + 1)
    least = max(weighted(values, len(graph), k) - 2 * (k - 1) * cache for k in tried)
    beyond = max(ceil(least), 0)
    return Bound(
        inputs_outputs(graph, rules).value + beyond,
        "spectral",
        "each vertex computed at most once, sliding allowed; more than 1500 vertices: checked with "
        "random vectors that err with chance 1e-12",
        "proved in pebble.bounds.spectral, after Jain and Zaharia 2020",
    )


def once(name: str, rules: Rules) -> None:
    """Refuse rules with recomputation, and those with partial computation.

    >>> once("spectral", Rules())
    Traceback (most recent call last):
    pebble.errors.ProblemError: spectral is for rules without recomputation: Rules(recompute=False)
    """
    if rules.recompute:
        raise ProblemError(f"{name} is for rules without recomputation: Rules(recompute=False)")
    if rules.partial:
        raise ProblemError(f"{name} is for rules without partial computation: Rules(partial=False)")


def needs_store(graph: Graph) -> NDArray[np.int64]:
    """Give 1 for each vertex that is neither input nor output, and 0 for those.

    >>> needs_store(Graph([(), (0,), (1,)])).tolist()
    [0, 1, 0]
    """
    inner = np.ones(len(graph), np.int64)
    inner[list(graph.inputs)] = 0
    inner[list(graph.outputs)] = 0
    return inner


def laplacian(graph: Graph, shares: Floats) -> Any:
    """Give the Laplacian of the graph without directions, where u shares a weight among its edges.

    Parameters
    ----------
    graph : Graph
        The graph.
    shares : array
        For each vertex u what the edges out of u weigh together.

    Examples
    --------
    >>> laplacian(Graph([(), (0,), (0,)]), np.ones(3)).toarray().tolist()
    [[1.0, -0.5, -0.5], [-0.5, 0.5, 0.0], [-0.5, 0.0, 0.5]]
    """
    from scipy.sparse import coo_array

    n, tails = len(graph), graph.preds
    heads = np.repeat(np.arange(n), np.diff(graph.starts))
    weights = (shares / np.maximum(np.bincount(tails, minlength=n), 1))[tails]
    degrees = np.bincount(heads, weights, n) + np.bincount(tails, weights, n)
    numbers = np.concatenate([-weights, -weights, degrees])
    rows = np.concatenate([heads, tails, np.arange(n)])
    columns = np.concatenate([tails, heads, np.arange(n)])
    return coo_array((numbers, (rows, columns)), shape=(n, n)).tocsr()


def weighted(values: Floats, n: int, k: int) -> float:
    """Give n_1 l_1 + ... + n_k l_k for n things in k parts of equal size, the larger parts first.

    >>> weighted(np.array([0.0, 1, 2]), 7, 2), weighted(np.array([0.0, 1, 2]), 7, 3)
    (3.0, 6.0)
    """
    size, more = divmod(n, k)
    return float(size * values[:k].sum() + values[:more].sum())
