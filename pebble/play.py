"""Play a whole game on any graph, from a compute order and an eviction policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pebble.cost import Cost
from pebble.errors import UnknownName
from pebble.graph import ComputationGraph, Graph, explicit
from pebble.moves import Label, Move
from pebble.order_search import search_order
from pebble.orders import breadth_first, compute_order, depth_first, numbered
from pebble.policies import Player
from pebble.replay import decode, replay
from pebble.rules import HONG_KUNG, Rules

Ints = NDArray[np.int64]

ORDERS = ("depth_first", "breadth_first", "search")


@dataclass(frozen=True, eq=False)
class Play:
    """A complete game, as a certificate that the referee has checked.

    Parameters
    ----------
    graph : Graph
        What is computed.
    cache : int
        M, in words.
    policy : str
        The eviction policy, one of `pebble.policies.POLICIES`.
    order : array of int64
        The vertex numbers in the order in which they are computed.
    codes : array of int64
        The moves as `pebble.replay.encode` writes them: ``8 * vertex + op``.
    cost : Cost
        What the referee counted.

    Examples
    --------
    >>> graph = Graph([(), (), (0, 1)], labels=["a", "b", "c"])
    >>> found = play(graph, cache=3)
    >>> found
    Play(belady, cache=3, I/O 3: 2 loads, 1 stores)
    >>> print(*found.moves(), sep=", ")
    load a, load b, compute c, store c, delete a, delete b, delete c
    >>> found.ops.tolist(), found.vertices.tolist()
    ([0, 0, 2, 1, 3, 3, 3], [0, 1, 2, 2, 0, 1, 2])
    """

    graph: Graph
    cache: int
    policy: str
    order: Ints
    codes: Ints
    cost: Cost

    @property
    def ops(self) -> NDArray[np.int8]:
        """What each move does, as `pebble.Op` numbers it."""
        return (self.codes & 7).astype(np.int8)

    @property
    def vertices(self) -> Ints:
        """The vertex number of each move."""
        return self.codes >> 3

    def moves(self) -> Iterator[Move]:
        """Give the moves one by one."""
        return decode(self.graph, self.codes)

    def replay(self, rules: Rules = HONG_KUNG) -> Cost:
        """Have the referee check every move, and give the cost that it counts.

        Parameters
        ----------
        rules : Rules
            The game's rules. Without recomputation the moves are legal too.

        Raises
        ------
        IllegalMove
            The first move that the rules forbid, such as a move that heavier weights have no
            room for.
        UnknownName
            A weight of what the graph does not have.
        """
        return replay(self.graph, self.codes, self.cache, rules)

    def __repr__(self) -> str:
        cost = self.cost
        told = f"I/O {cost.io}: {cost.loads} loads, {cost.stores} stores"
        return f"Play({self.policy}, cache={self.cache}, {told})"


def play(
    graph: ComputationGraph,
    cache: int,
    order: str | Iterable[Label] | Ints | None = None,
    policy: str = "belady",
    rules: Rules = HONG_KUNG,
) -> Play:
    """Play a complete game: compute each vertex once, in an order, and evict by a policy.

    See `pebble.policies` for what is loaded, stored, deleted and evicted, and when.

    Parameters
    ----------
    graph : ComputationGraph
        What to compute. A graph that isn't explicit is made so first.
    cache : int
        The words of fast memory, M. ``graph.least_cache()`` is enough.
    order : labels, vertex numbers, or a name, optional
        The vertices in the order to compute them in, see `pebble.orders.compute_order`; or
        "depth_first" or "breadth_first" of `pebble.orders`; or "search", which tries a thousand
        orders (`pebble.order_search.search_order` has a budget and a seed, and gives an order).
        Default: the least vertex number that can be next.
    policy : str
        "belady", "lru", "fifo" or "write_back".
    rules : Rules
        The game's rules. The moves use none that are optional: no vertex is computed twice, and
        nothing slides (so the cache is that of a game without sliding). Weights are honoured.

    Raises
    ------
    SizeError
        A cache that is too small; the message has the least that works.
    UnknownName
        An order or a policy of an unknown name, or a weight of what the graph does not have.
    GraphError, ProgramError
        An order that is none of this graph's.

    References
    ----------
    Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal
    5, 1966, for the policy whose loads are the fewest for its order.

    Examples
    --------
    A dot product of length 2: with 3 words one product is stored and loaded, with 4 it stays.

    >>> graph = Graph([(), (), (), (), (0, 1), (2, 3), (4, 5)])
    >>> [play(graph, cache).cost.io for cache in (3, 4)]  # 4 + 1, and 2 for the product
    [7, 5]
    >>> play(graph, 4, policy="random")
    Traceback (most recent call last):
    pebble.errors.UnknownName: policy = 'random': known are belady, lru, fifo, write_back
    """
    whole = explicit(graph)
    player = Player(whole, cache, policy, rules)
    steps = _order(whole, player.cache, order, policy, rules)
    codes, _ = player.play(steps)
    cost = replay(whole, codes, player.cache, rules)
    for array in (steps, codes):
        array.flags.writeable = False
    return Play(whole, player.cache, policy, steps, codes, cost)


def _order(
    graph: Graph,
    cache: int,
    order: str | Iterable[Label] | Ints | None,
    policy: str,
    rules: Rules,
) -> Ints:
    if order is None:
        return numbered(graph)
    if not isinstance(order, str):
        return compute_order(graph, order)
    if order == "depth_first":
        return depth_first(graph)
    if order == "breadth_first":
        return breadth_first(graph)
    if order == "search":
        return search_order(graph, cache, policy, rules)
    raise UnknownName(f"order = {order!r}: known are {', '.join(ORDERS)}")
