"""What a compute order costs for every cache at once, by stack distances.

Both policies here keep what they keep with one word less: least recently used first, and used last
first, are orders that do not depend on the cache. So the caches in which a use finds its value red
are those from some depth on, and one pass that measures the depths counts all caches. With C words:

* loads are the inputs, each once, and the uses of values that are deeper than C;
* stores are the outputs, each once, and the other computed values that have a use deeper than C
  (what is evicted is used again, and it is stored the first time).

This is the very game of `pebble.play` with every vertex weighing 1: all that a step needs is red
at once, what is used no more is deleted, and nothing is computed twice. The words that deletion
frees do not disturb it. Let B be red with C words and B' with C + 1, where B' holds B and at most
one vertex more. What a step needs joins both; then, while there are too many, the vertices that the
policy ranks last leave. If any leaves B', B is left with C words, so B' with one more, and what
ranks among the first of B ranks among the first of B' when one more may stay. What is deleted was
needed by the step, so it leaves both. (fifo and write_back rank by what their own cache did before,
and have no such curve.)

References
----------
Mattson, Gecsei, Slutz and Traiger, "Evaluation techniques for storage hierarchies", IBM Systems
Journal 9, 1970: stack algorithms, and the priority lists of the best one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pebble.checks import positive
from pebble.cost import Cost
from pebble.errors import SizeError
from pebble.graph import ComputationGraph, Graph, explicit
from pebble.moves import Label
from pebble.orders import compute_order, numbered

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Curve:
    """Loads and stores of one order and one policy, for every cache.

    Parameters
    ----------
    policy : str
        "belady" or "lru".
    caches : range
        From the least cache that works to the least that evicts nothing, or to the last that was
        asked for.
    loads, stores : array of int64
        Words, for each of the caches.
    computes : int
        The vertices that are computed.
    height : int
        The most words that are red at once if nothing is evicted; at least that, if it is
        more than the last cache.

    Examples
    --------
    The dot product of length 2, product by product: 7 with 3 words, 5 with more.

    >>> curve = lru_curve(Graph([(), (), (), (), (0, 1), (2, 3), (4, 5)]))
    >>> curve.caches, curve.io.tolist()
    (range(3, 5), [7, 5])
    >>> curve.cost(100)
    Cost(loads=4, stores=1, computes=3, deletes=7, peak=4)
    """

    policy: str
    caches: range
    loads: Ints
    stores: Ints
    computes: int
    height: int

    @property
    def io(self) -> Ints:
        """Loads and stores, for each of the caches."""
        return self.loads + self.stores

    def cost(self, cache: int) -> Cost:
        """Give what `pebble.play` with this order, policy and cache costs.

        Raises
        ------
        SizeError
            A cache that is too small, or larger than the curve was asked for.
        """
        cache = positive("cache", cache, "the words of fast memory")
        if cache < self.caches[0]:
            raise SizeError(
                f"cache = {cache} is too small; the least that works is {self.caches[0]}"
            )
        if cache > self.caches[-1] and self.height > self.caches[-1]:
            raise SizeError(f"cache = {cache}: the curve ends at {self.caches[-1]} words")
        at = min(cache, self.caches[-1]) - self.caches[0]
        loads, stores = int(self.loads[at]), int(self.stores[at])
        peak = min(cache, self.height)
        return Cost(loads, stores, self.computes, loads + self.computes, peak)


def lru_curve(graph: ComputationGraph, order: Iterable[Label] | Ints | None = None) -> Curve:
    """Give the cost of an order under "lru" for every cache, in one pass.

    Parameters
    ----------
    graph : ComputationGraph
        What is computed; every vertex weighs 1.
    order : labels or vertex numbers, optional
        See `pebble.orders.compute_order`. Default: the least number that can be next.

    Raises
    ------
    GraphError, ProgramError
        An order that is none of this graph's.

    References
    ----------
    Mattson et al. 1970 (see above); Bennett and Kruskal, "LRU stack processing", IBM J. Res. Dev.
    19, 1975, for the tree of sums, which makes it some log(edges) steps a use.

    Examples
    --------
    2 and 3 are computed from 0 and 1, and 4 and 5 from both. With 3 words 2 must leave for 3: a
    store and a load. With 4 words there are only the 2 inputs and the 2 outputs.

    >>> lru_curve(Graph([(), (), (0, 1), (0, 1), (2, 3), (2, 3)])).io.tolist()
    [6, 4]
    """
    from pebble import stack_kernels  # numba is imported only where it is used

    whole = explicit(graph)
    steps = numbered(whole) if order is None else compute_order(whole, order)
    found = stack_kernels.lru_depths(whole.starts, whole.preds, steps)
    return _curve(whole, "lru", found, found[2])


def belady_curve(
    graph: ComputationGraph,
    order: Iterable[Label] | Ints | None = None,
    most: int | None = None,
) -> Curve:
    """Give the cost of an order under "belady" for every cache, in one pass.

    Its loads are the fewest that any policy has with this order and cache; its stores are not.

    Parameters
    ----------
    graph : ComputationGraph
        What is computed; every vertex weighs 1.
    order : labels or vertex numbers, optional
        See `pebble.orders.compute_order`. Default: the least number that can be next.
    most : int, optional
        The last cache to look at. Every use may take so many steps: give it for large graphs.
        Default: the least cache that evicts nothing.

    Raises
    ------
    SizeError
        `most` is less than the least cache that works.
    GraphError, ProgramError
        An order that is none of this graph's.

    References
    ----------
    Mattson et al. 1970 (see above).

    Examples
    --------
    >>> graph = Graph([(), (), (0, 1), (0, 1), (2, 3), (2, 3)])
    >>> belady_curve(graph).io.tolist(), belady_curve(graph, most=3).io.tolist()
    ([6, 4], [6])
    """
    from pebble import stack_kernels

    whole = explicit(graph)
    steps = numbered(whole) if order is None else compute_order(whole, order)
    last = len(whole) if most is None else positive("most", most, "the last cache of the curve")
    last = min(last, len(whole))
    if last < whole.least_cache():
        raise SizeError(
            f"most = {most} is too small; the least that works is {whole.least_cache()}"
        )
    found = stack_kernels.belady_depths(whole.starts, whole.preds, steps, last)
    return _curve(whole, "belady", found, min(last, found[2]))


def _curve(graph: Graph, policy: str, found: tuple[Ints, Ints, int], last: int) -> Curve:
    uses, deepest, height = found
    caches = range(graph.least_cache(), last + 1)
    # How many uses, and values to store, are deeper than each cache.
    stored = np.diff(graph.starts) > 0
    stored[np.array(graph.outputs, np.int64)] = False
    values = np.bincount(deepest[stored], minlength=len(uses))
    deep_uses, deep_values = (
        np.sum(counts) - np.cumsum(counts)[caches.start : caches.stop] for counts in (uses, values)
    )
    inputs, outputs = len(graph.inputs), len(graph.outputs)
    loads, stores = inputs + deep_uses, outputs + deep_values
    for array in (loads, stores):
        array.flags.writeable = False
    return Curve(policy, caches, loads, stores, len(graph) - inputs, int(height))
