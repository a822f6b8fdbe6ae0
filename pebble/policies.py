"""Eviction policies: what leaves a full fast memory when a compute order needs a word.

All play the same game otherwise. Step t computes the t-th vertex of the order: what it needs and
is not red is loaded, then it is computed, and an output is stored at once (an output is stored
once in any case, and computed once, so a later store would not be cheaper). What no later step
uses is deleted at the end of its last step. What is evicted is stored first if it is not blue: it
is still needed, and is never computed again. The policies choose among what is red and not needed
by the step itself:

belady
    what is used last (the largest vertex number, where one step uses several).
lru
    what was used or computed least recently; a step uses its predecessors in their order, and
    then what it computes.
fifo
    what has been red for longest.
write_back
    what costs the least for each step that its word stays free: the wait until the next use,
    doubled for what is blue, is the largest. Eviction costs a load, and a store too where the value
    is not blue. (The blue one, where these are equal; else as belady.)

References
----------
Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 5,
1966. Sleator and Tarjan, "Amortized efficiency of list update and paging rules", CACM 28, 1985
(lru, fifo).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pebble.checks import positive
from pebble.errors import SizeError, UnknownName
from pebble.graph import ComputationGraph, explicit
from pebble.moves import notation
from pebble.rules import HONG_KUNG, Rules
from pebble.start import start_state, weights_of

Ints = NDArray[np.int64]

POLICIES = ("belady", "lru", "fifo", "write_back")


class Player:
    """Plays many compute orders of one graph with one cache and one policy.

    Parameters
    ----------
    graph : ComputationGraph
        What is computed.
    cache : int
        The words of fast memory, M.
    policy : str
        One of `POLICIES`.
    rules : Rules
        Only the weights matter: no vertex is computed twice, and nothing slides.

    Raises
    ------
    SizeError
        A cache that does not hold some vertex and its predecessors; the message has the least
        that does.
    UnknownName
        A policy that is not known, or a weight of what the graph does not have.

    Examples
    --------
    With three words, 1 leaves while 3 is computed from 0 and 2: it is blue and must not be stored.

    >>> from pebble.graph import Graph
    >>> player = Player(Graph([(), (), (0, 1), (0, 2), (1, 3)]), 3, "belady")
    >>> codes, io = player.play(np.array([2, 3, 4]))
    >>> io, len(codes)  # 3 loads and a store; 3 computes, and 6 deletes of what was red
    (4, 13)
    >>> Player(Graph([(), (), (0, 1)]), 2, "lru")
    Traceback (most recent call last):
    pebble.errors.SizeError: cache = 2 is too small; the least that works is 3, for 2 and its 2
    predecessors
    """

    def __init__(
        self, graph: ComputationGraph, cache: int, policy: str, rules: Rules = HONG_KUNG
    ) -> None:
        self.cache = positive("cache", cache, "the words of fast memory")
        self.policy = policy_number(policy)
        self.graph = explicit(graph)
        # Nothing slides, so the cache that sliding rules would do with may be too small.
        self.weights = weights_of(self.graph, replace(rules, sliding=False))
        _check_cache(self.graph, self.weights, self.cache)
        self._start = start_state(self.graph)

    def play(self, order: Ints) -> tuple[Ints, int]:
        """Give the moves as the referee's codes, and their I/O in words.

        Parameters
        ----------
        order : array of int64
            The vertices to compute, as `pebble.orders.compute_order` gives them.
        """
        from pebble import policy_kernels  # numba is imported only where it is used

        starts, preds = self.graph.starts, self.graph.preds
        codes = np.empty(2 * len(preds) + 3 * len(order), np.int64)
        length, io = policy_kernels.simulate(
            starts, preds, self.weights, self._start, order, self.cache, self.policy, codes
        )
        return codes[:length].copy(), int(io)


def policy_number(policy: str) -> int:
    """Give the place of a policy in `POLICIES`.

    Raises
    ------
    UnknownName
        It is none of them.

    Examples
    --------
    >>> policy_number("lru")
    1
    """
    if policy not in POLICIES:
        raise UnknownName(f"policy = {policy!r}: known are {', '.join(POLICIES)}")
    return POLICIES.index(policy)


def _check_cache(graph: ComputationGraph, weights: Ints, cache: int) -> None:
    whole = explicit(graph)
    own = weights if len(weights) else np.ones(len(whole), np.int64)
    sums = np.concatenate([[0], np.cumsum(own[whole.preds])])
    words = own + sums[whole.starts[1:]] - sums[whole.starts[:-1]]
    v = int(np.argmax(words))  # not an input: what is computed from one takes more
    if cache < words[v]:
        count = len(whole.predecessors(v))
        raise SizeError(
            f"cache = {cache} is too small; the least that works is {words[v]}, for "
            f"{notation(whole.label(v))} and its {count} predecessor{'s' * (count != 1)}"
        )
