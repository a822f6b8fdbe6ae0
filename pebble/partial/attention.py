"""Attention in the game with partial computation: its graph, and schedules that are played on it.

A sum is one vertex that aggregates its terms one by one, as kernels accumulate in place. In the
ordinary game's graph it is a chain of sums of two terms, so that adding a term holds the old sum,
the term and the new sum at once; here it holds the term and the sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from pebble.attention import Attention
from pebble.classic.rows import Rows, graph_of, put_inputs, put_sum
from pebble.cost import Cost
from pebble.errors import ProblemError, SizeError
from pebble.graph import Graph
from pebble.moves import Vertex
from pebble.partial.moves import PartialMove
from pebble.partial.replay import replay
from pebble.problem import require
from pebble.rules import Op


def attention_graph(problem: Attention) -> Graph:
    """Give the forward pass with plain softmax, each sum as one vertex.

    The families are those of `pebble.Attention`, but the sums have no index of summation: s[i,j] is
    computed from all x[i,j,k], l[i] from all P[i,j], and o[i,c] from all y[i,j,c]. A sum of one
    term is that term.

    Raises
    ------
    ProblemError
        Another problem than the forward pass with plain softmax.

    Examples
    --------
    Two queries, two keys, d = 2: 12 inputs, 8 products and 4 sums of scores, 4 weights, 2 row sums,
    8 products, 4 sums and 4 quotients. Edges: 16 and 8, 4, 4, 16 and 8, 8.

    >>> attention_graph(Attention(n=2, d=2))
    Graph(46 vertices: 12 inputs, 4 outputs; 64 edges)
    """
    p = plain("attention_graph", problem)
    rows: Rows = {}
    for name, shape in p.operands.items():
        put_inputs(rows, name, *shape)
    ks, js, cs = range(p.d), range(p.keys), range(p.value_dim)
    for i, j in product(range(p.n), js):
        for k in ks:
            rows[Vertex("x", (i, j, k))] = Vertex("Q", (i, k)), Vertex("K", (j, k))
        score = put_sum(rows, "s", (i, j), [Vertex("x", (i, j, k)) for k in ks], "nary")
        rows[Vertex("P", (i, j))] = (score,)
        for c in cs:
            rows[Vertex("y", (i, j, c))] = Vertex("P", (i, j)), Vertex("V", (j, c))
    for i in range(p.n):
        total = put_sum(rows, "l", (i,), [Vertex("P", (i, j)) for j in js], "nary")
        for c in cs:
            value = put_sum(rows, "o", (i, c), [Vertex("y", (i, j, c)) for j in js], "nary")
            rows[Vertex("O", (i, c))] = value, total
        if p.logsumexp:
            rows[Vertex("Lse", (i,))] = (total,)
    return graph_of(rows)


def plain(name: str, problem: Attention) -> Attention:
    """Give a problem back if it is the forward pass with plain softmax.

    Raises
    ------
    ProblemError
        It is another.

    Examples
    --------
    >>> plain("flash2", Attention(n=2, d=2, softmax="online"))
    Traceback (most recent call last):
    pebble.errors.ProblemError: flash2 with partial computation is for the plain softmax, not the
    online one
    """
    require(name, problem, "forward")
    if problem.online:
        raise ProblemError(
            f"{name} with partial computation is for the plain softmax, not the online one"
        )
    return problem


@dataclass(frozen=True)
class PartialSchedule:
    """A schedule in the game with partial computation, on `attention_graph`.

    Parameters
    ----------
    name : str
        The algorithm.
    problem : Attention
        What it computes.
    cache : int
        M, in words.
    blocks : mapping of str to int
        The sizes of its blocks.
    cost : Cost
        What its formula says it costs; the replay must agree.
    write : callable
        Gives the moves.

    Examples
    --------
    >>> from pebble.partial import flash2
    >>> schedule = flash2(Attention(n=4, d=2), cache=14)
    >>> schedule.cost.io, schedule.blocks
    (48, {'rows': 2, 'held': 0})
    >>> schedule.replay() == schedule.cost
    True
    """

    name: str
    problem: Attention
    cache: int
    blocks: Mapping[str, int]
    cost: Cost
    write: Callable[[], Iterator[PartialMove]]

    @cached_property
    def graph(self) -> Graph:
        """What it is played on."""
        return attention_graph(self.problem)

    def moves(self) -> Iterator[PartialMove]:
        """Give the moves one by one."""
        return self.write()

    def replay(self) -> Cost:
        """Have the referee check every move, and give the cost that it counts."""
        return replay(self.graph, self.moves(), self.cache)

    def __repr__(self) -> str:
        sizes = {**self.problem.sizes, "cache": self.cache, **self.blocks}
        return f"partial.{self.name}({', '.join(f'{k}={v}' for k, v in sizes.items())})"


class Pen:
    """Writes moves on the vertices of `attention_graph`, where a sum of one term is that term.

    Examples
    --------
    >>> pen = Pen(Attention(n=2, d=1))
    >>> print(pen.score(0, 1), pen.value(1, 0), pen.load(pen.score(0, 1)))
    x[0,1,0] o[1,0] load x[0,1,0]
    """

    def __init__(self, p: Attention) -> None:
        self.p = p

    def score(self, i: int, j: int) -> Vertex:
        """Give the vertex that holds a score."""
        return Vertex("s", (i, j)) if self.p.d > 1 else Vertex("x", (i, j, 0))

    def row_sum(self, i: int) -> Vertex:
        """Give the vertex that holds a row sum."""
        return Vertex("l", (i,)) if self.p.keys > 1 else Vertex("P", (i, 0))

    def value(self, i: int, c: int) -> Vertex:
        """Give the vertex that holds a sum of values."""
        return Vertex("o", (i, c)) if self.p.keys > 1 else Vertex("y", (i, 0, c))

    def load(self, v: Vertex) -> PartialMove:
        """Load v."""
        return PartialMove(Op.LOAD, v)

    def store(self, v: Vertex) -> PartialMove:
        """Store v."""
        return PartialMove(Op.STORE, v)

    def delete(self, v: Vertex) -> PartialMove:
        """Delete v."""
        return PartialMove(Op.DELETE, v)

    def add(self, v: Vertex, *sources: Vertex) -> Iterator[PartialMove]:
        """Compute v from some predecessors."""
        for u in sources:
            yield PartialMove(Op.COMPUTE, v, u)

    def add_product(self, i: int, j: int, k: int) -> Iterator[PartialMove]:
        """Form x[i,j,k] and add it to the score."""
        x, total = Vertex("x", (i, j, k)), self.score(i, j)
        yield from self.add(x, Vertex("Q", (i, k)), Vertex("K", (j, k)))
        if x != total:
            yield from self.add(total, x)
            yield self.delete(x)

    def weigh(self, i: int, j: int) -> Iterator[PartialMove]:
        """Form P[i,j] from the score."""
        yield from self.add(Vertex("P", (i, j)), self.score(i, j))
        yield self.delete(self.score(i, j))

    def add_weight(self, i: int, j: int) -> Iterator[PartialMove]:
        """Add P[i,j] to the row sum."""
        if self.p.keys > 1:
            yield from self.add(self.row_sum(i), Vertex("P", (i, j)))

    def add_value(self, i: int, j: int, c: int) -> Iterator[PartialMove]:
        """Form y[i,j,c] and add it to the sum of values."""
        y, total = Vertex("y", (i, j, c)), self.value(i, c)
        yield from self.add(y, Vertex("P", (i, j)), Vertex("V", (j, c)))
        if y != total:
            yield from self.add(total, y)
            yield self.delete(y)

    def divide(self, i: int, c: int) -> Iterator[PartialMove]:
        """Form O[i,c] in the place of the sum, and store it."""
        O = Vertex("O", (i, c))
        yield from self.add(O, self.value(i, c))
        yield self.delete(self.value(i, c))
        yield from self.add(O, self.row_sum(i))
        yield self.store(O)
        yield self.delete(O)

    def close(self, i: int) -> Iterator[PartialMove]:
        """Store the logsumexp, if it is asked for, and drop the row sum."""
        if self.p.logsumexp:
            yield from self.add(Vertex("Lse", (i,)), self.row_sum(i))
            yield self.store(Vertex("Lse", (i,)))
            yield self.delete(Vertex("Lse", (i,)))
        yield self.delete(self.row_sum(i))


def cost_of(p: Attention, loads: int, stores: int, peak: int) -> Cost:
    """Give the cost of a schedule that forms each vertex once and takes all red pebbles off.

    Examples
    --------
    >>> tiny = Attention(n=1, d=1)  # x, P, y and O, with 2 + 1 + 2 + 2 edges
    >>> cost_of(tiny, loads=3, stores=1, peak=3)
    Cost(loads=3, stores=1, computes=7, deletes=7, peak=3)
    """
    n, d, e, pairs, ends = p.n, p.d, p.value_dim, p.pairs, p.n if p.logsumexp else 0
    scores, many = (pairs if d > 1 else 0), p.keys > 1
    vertices = pairs * (d + 1 + e) + scores + n * e + ends + (n + n * e if many else 0)
    edges = pairs * (2 * d + 1 + 2 * e) + scores * d + 2 * n * e + ends
    edges += pairs * (1 + e) if many else 0
    return Cost(loads, stores, edges, loads + vertices, peak)


def too_small(name: str, cache: int, least: int) -> SizeError:
    """Give the error of a cache in which no blocks fit.

    Examples
    --------
    >>> print(too_small("flash2", 3, 6))
    flash2 with partial computation: cache = 3 is too small; the least that works is 6
    """
    return SizeError(
        f"{name} with partial computation: cache = {cache} is too small; "
        f"the least that works is {least}"
    )
