"""The gradient in a small cache: seven phases, each a blocked product or an elementwise pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt

from pebble.affine import Affine
from pebble.checks import positive
from pebble.cost import Cost
from pebble.families import Family
from pebble.gradient import AttentionGradient
from pebble.problem import require
from pebble.registry import register
from pebble.schedule import Schedule
from pebble.tapes import Block, Index, Tape
from schedules.blocked import Cut, Operand, Product, best_cut, loads, multiply, peak, settle
from schedules.blocks import need, rule_or_sizes, too_small


@register(kinds=("gradient",))
def small_cache_gradient(
    problem: AttentionGradient,
    cache: int,
    *,
    blocks: str = "best",
    rows: int | None = None,
    cols: int | None = None,
) -> Schedule:
    """Give the gradient for a small cache, every intermediate matrix written once.

    Where h is not given, h = A3 Y is formed first. Then S1 = A1 X; A = exp(S1 A2^T) and its row
    sums l; f = A / l; q = dO h^T, p1 = f o q and its row sums v; p = p1 - v f; T = p A2; and
    g = A1^T T. With W the words of operands that the products load (`schedules.blocked.loads`)::

        loads   W + 4 n^2 + 2 n                   (n = 1: W + 4)
        stores  4 n^2 + 2 n d + d^2 + 2 n         (n = 1: 4 + 2 d + d^2)
                + n d where h is formed

    The 2 n are l and v, which are A and p1 where n = 1. Each vertex is computed once. The peak is
    that of the product that holds the most, `schedules.blocked.peak`, with a word a row for l or v,
    and 2 or 3 words for a finished score or q; the elementwise passes hold 4 at most, less than
    any q.

    Published blocks of B x B x B, B < n and B < d dividing both, make W = (6 n^2 d + 4 n d^2) / B,
    and 2 n d^2 / B more to form h: in all, with h given::

        I/O     (6 n^2 d + 4 n d^2) / B + 8 n^2 + 2 n d + d^2 + 4 n

    Parameters
    ----------
    problem : AttentionGradient
        What to compute.
    cache : int
        M, in words.
    blocks : {"best", "published"}
        Best: each product in the tiles or panels that move the fewest words. Published:
        B = floor(sqrt(M / 4)) for rows, columns and terms of every product.
    rows, cols : int, optional
        The shape of the tiles of every product, one term of each sum at a time; both or none.

    Raises
    ------
    ProblemError, SizeError, UnknownName
        No gradient; blocks that overflow the cache; sizes that are not positive; an unknown rule.

    References
    ----------
    Li et al., "On fine-grained I/O complexity of attention backward passes", arXiv 2410.09397: the
    phases and B; Saha and Ye, ICML 2024, algorithm 1, for each product.

    Examples
    --------
    B = 2 divides n = 8 and d = 4: (6 * 256 + 4 * 128) / 2 + 8 * 64 + 64 + 16 + 32 words.

    >>> import pebble
    >>> problem = pebble.AttentionGradient(n=8, d=4, given_h=True)
    >>> small_cache_gradient(problem, cache=16, blocks="published").count().io
    1648
    """
    require("small_cache_gradient", problem, "gradient")
    rule, height, width = rule_or_sizes(blocks, rows, cols)
    cache = positive("cache", cache, "the words of fast memory")
    parts = products(problem)
    if rule == "best":
        cuts = best_cuts("small_cache_gradient", parts, cache, other=0)
    else:
        depth = 1
        if rule == "published":
            height = width = depth = max(isqrt(cache // 4), 1)
        cuts = {name: part.cut(height, width, depth) for name, part in parts.items()}
    most = max(part.peak(cuts[name]) for name, part in parts.items())
    need(f"small_cache_gradient, {rule} blocks", most, cache, f"rows = {height}, cols = {width}")

    n, d, formed = problem.n, problem.d, not problem.given_h
    sums = 2 * n if n > 1 else 0  # l and v
    words = operand_loads(parts, cuts) + 4 * n * n + sums
    stores = 4 * n * n + 2 * n * d + d * d + sums + (n * d if formed else 0)
    computes = problem.graph.size - problem.graph.input_words
    cost = Cost(words, stores, computes, words + computes, most)

    def write(tape: Tape) -> None:
        if formed:
            write_product(tape, parts["h"], cuts["h"])
        write_product(tape, parts["S1"], cuts["S1"])
        _write_A(tape, problem, parts["A"], cuts["A"])
        _write_f(tape, problem)
        _write_p1(tape, problem, parts["q"], cuts["q"])
        _write_p(tape, problem)
        write_product(tape, parts["T"], cuts["T"])
        write_product(tape, parts["g"], cuts["g"])

    return Schedule("small_cache_gradient", problem, cache, told(parts, cuts), cost, write)


@dataclass(frozen=True)
class Part:
    """A blocked product of the gradient, and what is held beside it.

    Parameters
    ----------
    product : Product
        The product.
    rows_held : bool
        Whether rows of the result are held, so that a block of them is finished before the next;
        if not, its columns are.
    running, alone : int
        See `schedules.blocked.peak`.
    """

    product: Product
    rows_held: bool = False
    running: int = 0
    alone: int = 1

    def cut(self, rows: int, cols: int, depth: int) -> Cut:
        """Give the cut into tiles of rows x cols of the result."""
        streams, helds = (cols, rows) if self.rows_held else (rows, cols)
        return settle(self.product, Cut(streams, helds, depth))

    def peak(self, cut: Cut) -> int:
        """The most words that it holds."""
        return peak(self.product, cut, self.running, self.alone)


Parts = Mapping[str, Part]
Cuts = Mapping[str, Cut]


def products(problem: AttentionGradient) -> dict[str, Part]:
    """Give the products by what they form, in the order in which they are formed."""
    g, n, d = problem.graph, problem.n, problem.d
    A1, A2, dO, S1, p, T = (g[name] for name in ("A1", "A2", "dO", "S1", "p", "T"))
    t, u = g["t"], g["u"]
    found = {} if problem.given_h else {"h": _projection(g["A3"], g["Y"], g["b1"], g["h"])}
    scores = _pairs(lambda i, k: S1[i, k, d - 1], lambda j, k: A2[j, k], g["x"], g["s"])
    q = _pairs(lambda i, k: dO[i, k], value(problem), g["w"], g["q"])
    return found | {
        "S1": _projection(A1, g["X"], g["a1"], S1),
        # beside a finished score its A, then A and the new row sum; with q, f and p1
        "A": Part(scores, rows_held=True, running=1, alone=2),
        "q": Part(q, rows_held=True, running=1, alone=3),
        "T": Part(
            Product(
                streams=n,
                helds=d,
                depth=n,
                stream=lambda i, j: p[i, j],
                held=lambda k, j: A2[j, k],
                term=lambda i, k, j: t[i, j, k],
                total=lambda i, k, j: T[i, j, k],
            )
        ),
        "g": Part(
            Product(
                streams=d,
                helds=d,
                depth=n,
                stream=lambda a, i: A1[i, a],
                held=lambda k, i: T[i, n - 1, k],
                term=lambda a, k, i: u[i, a, k],
                total=lambda a, k, i: g["g"][i, a, k],
            )
        ),
    }


def value(problem: AttentionGradient) -> Operand:
    """Give the tiles of h, an input or formed."""
    h, last = problem.graph["h"], problem.d - 1
    return (lambda j, k: h[j, k]) if problem.given_h else (lambda j, k: h[j, k, last])


def _projection(left: Family, right: Family, term: Family, total: Family) -> Part:
    """Give left right: rows of `left` stream past columns of `right`."""
    return Part(
        Product(
            streams=left.shape[0],
            helds=right.shape[1],
            depth=right.shape[0],
            stream=lambda i, a: left[i, a],
            held=lambda k, a: right[a, k],
            term=lambda i, k, a: term[i, k, a],
            total=lambda i, k, a: total[i, k, a],
        )
    )


def _pairs(rows: Operand, keys: Operand, term: Family, total: Family) -> Product:
    """Give rows keys^T: keys stream past rows."""
    n, _, d = term.shape
    return Product(
        streams=n,
        helds=n,
        depth=d,
        stream=keys,
        held=rows,
        term=lambda j, i, k: term[i, j, k],
        total=lambda j, i, k: total[i, j, k],
    )


def best_cuts(name: str, parts: Parts, cache: int, other: int) -> dict[str, Cut]:
    """Give each product the cut that moves the fewest words.

    Parameters
    ----------
    name : str
        The algorithm.
    parts : mapping
        The products.
    cache : int
        M, in words.
    other : int
        The least words that the other passes hold.

    Raises
    ------
    SizeError
        The cache is too small for a product or another pass.
    """
    found = {at: best_cut(part.product, cache, part.peak) for at, part in parts.items()}
    cuts = {at: cut for at, cut in found.items() if cut}
    if len(cuts) < len(parts) or cache < other:
        least = max(other, *(part.peak(Cut(1, 1, 1)) for part in parts.values()))
        raise too_small(name, cache, least)
    return cuts


def operand_loads(parts: Parts, cuts: Cuts) -> int:
    """Give the words of operands that products load."""
    return sum(sum(loads(part.product, cuts[name])) for name, part in parts.items())


def told(parts: Parts, cuts: Cuts) -> dict[str, int]:
    """Give the sizes of the tiles of the results, and where more than one, of terms at a time."""
    sizes = {}
    for name, part in parts.items():
        cut = settle(part.product, cuts[name])
        shape = (cut.helds, cut.streams) if part.rows_held else (cut.streams, cut.helds)
        sizes[f"{name}_rows"], sizes[f"{name}_cols"] = shape
        if cut.depth > 1:
            sizes[f"{name}_depth"] = cut.depth
    return sizes


def write_product(tape: Tape, part: Part, cut: Cut) -> None:
    """Form a product and write it."""
    total, last = part.product.total, part.product.depth - 1

    def take(s: Index, h: Index) -> None:
        tape.store(total(s, h, last))
        tape.delete(total(s, h, last))

    multiply(tape, part.product, cut, take)


def add_to_row(tape: Tape, total: Family, term: Family, i: Affine, j: Index) -> None:
    """Add term[i,j] to the row's sum; the first term is the sum so far."""
    if not j.first:
        tape.compute(total[i, j])
        tape.delete(total[i, j - 1], term[i, j])


def _write_A(tape: Tape, problem: AttentionGradient, part: Part, cut: Cut) -> None:
    """A = exp(S1 A2^T) and its row sums l, written."""
    g, n, end = problem.graph, problem.n, problem.d - 1
    s, A, l = g["s"], g["A"], g["l"]

    def take(j: Index, i: Index) -> None:
        tape.compute(A[i, j])
        tape.delete(s[i, j, end])
        tape.store(A[i, j])
        add_to_row(tape, l, A, i, j)

    multiply(tape, part.product, cut, take, close=lambda I: _store_sums(tape, l, I, n))


def _write_p1(tape: Tape, problem: AttentionGradient, part: Part, cut: Cut) -> None:
    """p1 = f o (dO h^T) and its row sums v, written; f is read when q is finished."""
    g, n, end = problem.graph, problem.n, problem.d - 1
    q, f, p1, v = g["q"], g["f"], g["p1"], g["v"]

    def take(j: Index, i: Index) -> None:
        tape.load(f[i, j])
        tape.compute(p1[i, j])
        tape.delete(f[i, j], q[i, j, end])
        tape.store(p1[i, j])
        add_to_row(tape, v, p1, i, j)

    multiply(tape, part.product, cut, take, close=lambda I: _store_sums(tape, v, I, n))


def _store_sums(tape: Tape, sums: Family, I: Block, n: int) -> None:
    """Write the sums of a block of rows; with n = 1 they are the terms, which are written."""
    if n > 1:
        tape.store(sums[I, n - 1])
    tape.delete(sums[I, n - 1])


def _write_f(tape: Tape, problem: AttentionGradient) -> None:
    """f = A / l, written: a pass that reads A and l (which is A where n = 1)."""
    g, n = problem.graph, problem.n
    A, l, f = g["A"], g["l"], g["f"]
    for i in tape.each(n):
        tape.load(l[i, n - 1])
        for j in tape.each(n):
            if n > 1:
                tape.load(A[i, j])
            tape.compute(f[i, j])
            tape.store(f[i, j])
            tape.delete(f[i, j])
            if n > 1:
                tape.delete(A[i, j])
        tape.delete(l[i, n - 1])


def _write_p(tape: Tape, problem: AttentionGradient) -> None:
    """p = p1 - v f, written: a pass that reads f, p1 and v (which is p1 where n = 1)."""
    g, n = problem.graph, problem.n
    f, p1, v, p2, p = (g[name] for name in ("f", "p1", "v", "p2", "p"))
    for i in tape.each(n):
        tape.load(v[i, n - 1])
        for j in tape.each(n):
            tape.load(f[i, j])
            tape.compute(p2[i, j])
            tape.delete(f[i, j])
            if n > 1:
                tape.load(p1[i, j])
            tape.compute(p[i, j])
            tape.store(p[i, j])
            tape.delete(p2[i, j], p[i, j])
            if n > 1:
                tape.delete(p1[i, j])
        tape.delete(v[i, n - 1])
