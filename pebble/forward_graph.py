"""The forward pass as a graph, with plain and online softmax; `Attention` lists its vertices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pebble.families import (
    Family,
    Function,
    Piece,
    Pieces,
    Rule,
    Tile,
    chain,
    family,
    inputs,
    sums,
)
from pebble.family_graph import FamilyGraph

if TYPE_CHECKING:
    from pebble.attention import Attention

Unit = Callable[..., Tile]


def forward_graph(p: Attention) -> FamilyGraph:
    """Give the graph of the forward pass."""
    return _online(p) if p.online else _plain(p)


def scores(p: Attention) -> tuple[Family, Family, Family, Family]:
    """Give Q and K, and the products and the sums of the scores Q K^T."""
    Q, K = inputs("Q", p.n, p.d), inputs("K", p.keys, p.d)
    size = (p.n, p.keys, p.d)
    x = family("x", size, Function.PRODUCT, lambda i, j, k: (Q[i, k], K[j, k]))
    return Q, K, x, sums("s", x, 2)


def _plain(p: Attention) -> FamilyGraph:
    last, size = p.keys - 1, (p.n, p.keys)
    Q, K, x, s = scores(p)
    V = inputs("V", p.keys, p.value_dim)
    P = family("P", size, Function.EXP, lambda i, j: (s[i, j, p.d - 1],))
    l = sums("l", P, 1)
    y = family("y", (*size, p.value_dim), Function.PRODUCT, lambda i, j, c: (P[i, j], V[j, c]))
    o = sums("o", y, 1)
    O = family("O", (p.n, p.value_dim), Function.QUOTIENT, lambda i, c: (o[i, last, c], l[i, last]))
    Lse = family("Lse", (p.n,), Function.LOG, lambda i: (l[i, last],))
    return _graph(p, Q, K, V, x, s, P, l, y, o, O, Lse)


def _online(p: Attention) -> FamilyGraph:
    b, e, size = p.block or 0, p.value_dim, (p.n, p.keys)
    last, blocks = p.keys - 1, -(-p.keys // b)
    Q, K, x, s = scores(p)
    V = inputs("V", p.keys, e)

    def score(i: int, j: int) -> Tile:
        return s[i, j, p.d - 1]

    def end(t: int) -> int:
        return min(t * b + b, p.keys) - 1

    mx = chain("mx", size, 1, Function.MAX, score, lambda i, j: (mx[i, j - 1], score(i, j)))

    def exponentials(t: int) -> Piece:
        if not end(t):  # the maximum over a first block of one key is its score
            return Piece(0, 1, Function.ONE, lambda i, j: (score(i, j),))
        rule: Rule = lambda i, j: (score(i, j), mx[i, end(t)])
        return Piece(t * b, end(t) + 1, Function.EXP_OF_DIFFERENCE, rule)

    P = Family("P", size, Pieces(blocks, exponentials), 1)

    # The last block may be ragged, so the index of its end is a piece of its own.
    steps = [(1, blocks - 1), (blocks - 1, blocks)] if blocks > 2 else [(1, blocks)]
    factors = [
        Piece(
            start,
            stop,
            Function.EXP_OF_DIFFERENCE,
            lambda i, t, final=stop == blocks: (
                mx[i, t * b - 1],
                mx[i, last if final else t * b + (b - 1)],
            ),
        )
        for start, stop in steps
        if start < stop
    ]
    a = Family("a", (p.n, blocks), tuple(factors), 1)
    lr = Family(
        "lr",
        (p.n, blocks),
        _from_one(blocks, Function.PRODUCT, lambda i, t: (l[i, t * b - 1], a[i, t])),
        1,
    )
    r = Family(
        "or",
        (p.n, blocks, e),
        _from_one(blocks, Function.PRODUCT, lambda i, t, c: (o[i, t * b - 1, c], a[i, t])),
        1,
    )
    y = family("y", (*size, e), Function.PRODUCT, lambda i, j, c: (P[i, j], V[j, c]))
    l = Family("l", size, _rescaled(p.keys, b, lambda i, j: P[i, j], lambda i, j: l[i, j], lr), 1)
    o = Family(
        "o",
        (*size, e),
        _rescaled(p.keys, b, lambda i, j, c: y[i, j, c], lambda i, j, c: o[i, j, c], r),
        1,
    )
    O = family("O", (p.n, e), Function.QUOTIENT, lambda i, c: (o[i, last, c], l[i, last]))
    Lse = family("Lse", (p.n,), Function.LOG_PLUS, lambda i: (l[i, last], mx[i, last]))
    return _graph(p, Q, K, V, x, s, mx, P, a, lr, r, l, y, o, O, Lse)


def _from_one(stop: int, function: Function, rule: Rule) -> tuple[Piece, ...]:
    return (Piece(1, stop, function, rule),) if stop > 1 else ()


def _rescaled(keys: int, b: int, term: Unit, total: Unit, scaled: Family) -> Pieces:
    """Give the pieces of a chain over keys that goes on from a rescaled sum at each block.

    They are: the first term; the rest of block 0; the head of block 1; the rest of block 1; ...
    Blocks of one key have no rest.
    """
    blocks, ragged = -(-keys // b), keys % b or b
    rests = 0 if b == 1 else blocks - (ragged == 1)

    def go_on(i: int, j: int, *c: int) -> tuple[Tile, ...]:
        return total(i, j - 1, *c), term(i, j, *c)

    def make(at: int) -> Piece:
        if at == 0:
            return Piece(0, 1, Function.SAME, lambda *index: (term(*index),))
        t, rest = divmod(at, 2) if rests else (at, 0)
        if rest:
            return Piece(t * b + 1, min(t * b + b, keys), Function.SUM, go_on)
        head: Rule = lambda i, j, *c: (scaled[(i, t, *c)], term(i, j, *c))
        return Piece(t * b, t * b + 1, Function.SUM, head)

    return Pieces(blocks + rests, make)


def _graph(p: Attention, *families: Family) -> FamilyGraph:
    *_, O, Lse = families
    if p.logsumexp:
        return FamilyGraph(families, (O[:, :], Lse[:]))
    return FamilyGraph(families[:-1], (O[:, :],))
