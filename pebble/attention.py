"""Attention's computation as a graph: the forward pass, plain and online softmax."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from weakref import WeakValueDictionary

from pebble.checks import positive
from pebble.errors import SizeError, UnknownName
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
)
from pebble.family_graph import FamilyGraph

SOFTMAXES = ("plain", "online")

Unit = Callable[..., Tile]

# Graphs that are in use, by the sizes of their problem: tiles belong to the families of one graph,
# and a tile of one problem is to be a tile of an equal one.
_GRAPHS: WeakValueDictionary[tuple[object, ...], FamilyGraph] = WeakValueDictionary()


@dataclass(frozen=True)
class Attention:
    """The forward pass of one head of attention, O = softmax(Q K^T) V.

    Parameters
    ----------
    n : int
        Queries: rows of Q and O.
    d : int
        Dimension of Q and K.
    keys : int, optional
        Keys: rows of K and V. Default `n`.
    value_dim : int, optional
        Dimension of V and O. Default `d`.
    softmax : {"plain", "online"}
        Plain: exponentials of the scores, normalised at the end, as Saha and Ye analyse it.
        Online: each block of keys subtracts the maximum so far, as kernels do.
    block : int, optional
        Keys in a block of the online softmax, at most `keys`. The graph depends on it and the
        value does not. None leaves it to the schedule.
    logsumexp : bool
        Whether the logarithm of each row sum (plus the maximum, online) is an output too.

    Notes
    -----
    Vertices, i < n, j < keys, k < d, c < value_dim, and their predecessors (plain):

    ========  ===========================  =========================
    family    what                         predecessors
    ========  ===========================  =========================
    Q, K, V   inputs
    x[i,j,k]  products of scores           Q[i,k], K[j,k]
    s[i,j,k]  sums of scores, k >= 1       s[i,j,k-1], x[i,j,k]
    P[i,j]    exp of the score             s[i,j,d-1]
    l[i,j]    row sums, j >= 1             l[i,j-1], P[i,j]
    y[i,j,c]  products with values         P[i,j], V[j,c]
    o[i,j,c]  sums of those, j >= 1        o[i,j-1,c], y[i,j,c]
    O[i,c]    outputs, the quotients       o[i,keys-1,c], l[i,keys-1]
    Lse[i]    optional outputs, the log    l[i,keys-1]
    ========  ===========================  =========================

    At index 0 a sum is its first term: ``s[i,j,0]`` names ``x[i,j,0]``, ``l[i,0]`` names
    ``P[i,0]`` and ``o[i,0,c]`` names ``y[i,0,c]``. Online, with T blocks, the following change:

    ========  ===========================  =========================================
    mx[i,j]   running maximum, j >= 1      mx[i,j-1], s[i,j,d-1]
    P[i,j]    exp of the difference        s[i,j,d-1], mx[i,e], e the end of j's block
    a[i,t]    rescaling factor, t >= 1     mx at the ends of blocks t-1 and t
    lr[i,t]   rescaled row sum, t >= 1     l at the end of block t-1, a[i,t]
    or[i,t,c] rescaled o, t >= 1           o at the end of block t-1, a[i,t]
    l, o      at the start of a block      lr or or instead of the previous one
    Lse[i]    log of the sum plus maximum  l[i,keys-1], mx[i,keys-1]
    ========  ===========================  =========================================

    References
    ----------
    Saha and Ye, "The I/O complexity of attention, or how optimal is FlashAttention?", ICML 2024
    (plain); Dao, "FlashAttention-2", arXiv 2307.08691 (online).

    Raises
    ------
    SizeError, UnknownName
        A size that is no positive integer; a block given for the plain softmax, or larger than
        `keys`; an unknown softmax.

    Examples
    --------
    One query, one key, dimension 1: the graph is Q, K, V, a product, an exponential, a product
    and a quotient.

    >>> tiny = Attention(n=1, d=1)
    >>> [str(tiny.graph.label(v)) for v in range(len(tiny.graph))]
    ['Q[0,0]', 'K[0,0]', 'V[0,0]', 'x[0,0,0]', 'P[0,0]', 'y[0,0,0]', 'O[0,0]']
    >>> Attention(n=1024, d=64).pairs
    1048576
    """

    n: int
    d: int
    keys: int = None  # type: ignore[assignment]
    value_dim: int = None  # type: ignore[assignment]
    softmax: str = "plain"
    block: int | None = None
    logsumexp: bool = False

    def __post_init__(self) -> None:
        n = positive("n", self.n, "the number of queries")
        d = positive("d", self.d, "the dimension of Q and K")
        keys = n if self.keys is None else positive("keys", self.keys, "the number of keys")
        e = d if self.value_dim is None else positive("value_dim", self.value_dim, "V's dimension")
        for name, value in (("n", n), ("d", d), ("keys", keys), ("value_dim", e)):
            object.__setattr__(self, name, value)
        if self.softmax not in SOFTMAXES:
            raise UnknownName(f"softmax = {self.softmax!r}: known are {', '.join(SOFTMAXES)}")
        if self.block is not None:
            if self.softmax == "plain":
                raise SizeError(f"block = {self.block!r}: only an online softmax has blocks")
            block = positive("block", self.block, "the keys in a block")
            if block > keys:
                raise SizeError(f"block = {block}: there are only {keys} keys")
            object.__setattr__(self, "block", block)
        object.__setattr__(self, "logsumexp", bool(self.logsumexp))

    @property
    def pairs(self) -> int:
        """Z: pairs of a query and a key that attend."""
        return self.n * self.keys

    @property
    def online(self) -> bool:
        """Whether the softmax is online."""
        return self.softmax == "online"

    def with_block(self, block: int) -> Attention:
        """Give the same problem with the online softmax in blocks of at most `block` keys."""
        return replace(self, block=min(block, self.keys))

    @cached_property
    def graph(self) -> FamilyGraph:
        """The computation graph; equal problems have the same one.

        Raises
        ------
        SizeError
            An online softmax whose block is not given.
        """
        if self.online and self.block is None:
            raise SizeError("block = None: an online softmax's graph needs its block of keys")
        made = _GRAPHS.get(astuple(self))
        if made is None:
            made = _online(self) if self.online else _plain(self)
            _GRAPHS[astuple(self)] = made
        return made


def _scores(p: Attention) -> tuple[Family, Family, Family, Family]:
    Q, K = inputs("Q", p.n, p.d), inputs("K", p.keys, p.d)
    size = (p.n, p.keys, p.d)
    x = family("x", size, Function.PRODUCT, lambda i, j, k: (Q[i, k], K[j, k]))
    s = chain(
        "s",
        size,
        2,
        Function.SUM,
        lambda i, j, k: x[i, j, k],
        lambda i, j, k: (s[i, j, k - 1], x[i, j, k]),
    )
    return Q, K, x, s


def _plain(p: Attention) -> FamilyGraph:
    last, size = p.keys - 1, (p.n, p.keys)
    Q, K, x, s = _scores(p)
    V = inputs("V", p.keys, p.value_dim)
    P = family("P", size, Function.EXP, lambda i, j: (s[i, j, p.d - 1],))
    l = chain("l", size, 1, Function.SUM, lambda i, j: P[i, j], lambda i, j: (l[i, j - 1], P[i, j]))
    y = family("y", (*size, p.value_dim), Function.PRODUCT, lambda i, j, c: (P[i, j], V[j, c]))
    o = chain(
        "o",
        (*size, p.value_dim),
        1,
        Function.SUM,
        lambda i, j, c: y[i, j, c],
        lambda i, j, c: (o[i, j - 1, c], y[i, j, c]),
    )
    O = family("O", (p.n, p.value_dim), Function.QUOTIENT, lambda i, c: (o[i, last, c], l[i, last]))
    Lse = family("Lse", (p.n,), Function.LOG, lambda i: (l[i, last],))
    return _graph(p, Q, K, V, x, s, P, l, y, o, O, Lse)


def _online(p: Attention) -> FamilyGraph:
    b, e, size = p.block or 0, p.value_dim, (p.n, p.keys)
    last, blocks = p.keys - 1, -(-p.keys // b)
    Q, K, x, s = _scores(p)
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
    if p.logsumexp:
        return FamilyGraph(families, ("O", "Lse"))
    return FamilyGraph(families[:-1], ("O",))
