"""Search for a compute order with little I/O: simulated annealing from the best simple order."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pebble.checks import positive
from pebble.graph import ComputationGraph, explicit
from pebble.orders import breadth_first, depth_first, numbered
from pebble.policies import Player
from pebble.rules import HONG_KUNG, Rules

Ints = NDArray[np.int64]

# A step up by this part of the I/O is taken with probability 1/e at the start of the search.
WARMTH = 0.02


def search_order(
    graph: ComputationGraph,
    cache: int,
    policy: str = "belady",
    rules: Rules = HONG_KUNG,
    budget: int = 1000,
    seed: int = 0,
) -> Ints:
    """Search for an order whose play moves few words; it proves nothing about the least.

    It starts from the best of three orders: by number, depth first, and breadth first. A step
    lets two neighbouring runs of the order change places. It is kept if the I/O does not rise, and
    sometimes if it does, less and less often. The best order that was seen is given, so the
    result is never worse than any of the three.

    Parameters
    ----------
    graph : ComputationGraph
        What to compute.
    cache : int
        The words of fast memory, M.
    policy : str
        The eviction policy that the orders are played with.
    rules : Rules
        Only the weights matter.
    budget : int
        How many orders are played, beyond the first three.
    seed : int
        Equal seeds give equal orders.

    Raises
    ------
    SizeError
        A cache that is too small, or a budget that is no positive integer.
    UnknownName
        A policy that is not known, or a weight of what the graph does not have.

    References
    ----------
    Kirkpatrick, Gelatt and Vecchi, "Optimization by simulated annealing", Science 220, 1983.

    Examples
    --------
    The FFT on 4 points with 4 words: level by level moves 15, and the least is 11.

    >>> from pebble.graph import Graph
    >>> pairs = [(0, 1), (0, 1), (2, 3), (2, 3), (4, 6), (5, 7), (4, 6), (5, 7)]
    >>> fft = Graph([(), (), (), (), *pairs])
    >>> player = Player(fft, 4, "belady")
    >>> [player.play(order)[1] for order in (breadth_first(fft), search_order(fft, 4))]
    [15, 11]
    """
    from pebble import order_kernels  # numba is imported only where it is used

    budget = positive("budget", budget, "the number of orders to play")
    player = Player(graph, cache, policy, rules)
    whole = explicit(graph)
    simple = [numbered(whole), depth_first(whole), breadth_first(whole)]
    least, _, best = min((player.play(order)[1], i, order) for i, order in enumerate(simple))
    now, order = least, best
    warmth, random = WARMTH * least, np.random.default_rng(seed)
    for turn in range(budget):
        draws = random.random(5)
        changed = order_kernels.change(whole.starts, whole.preds, order, draws[:4])
        io = player.play(changed)[1]
        rise = -math.log(1 - draws[4]) * warmth * (1 - turn / budget)
        if io <= now + rise:
            now, order = io, changed
        if now < least:
            least, best = now, order
    return best
