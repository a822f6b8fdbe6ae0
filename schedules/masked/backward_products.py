"""The five products of the backward pass under a mask, each blocked, with P and dS in slow memory.

A product of one kind gives a sum for each pair: P from Q and K, dP from dO and V. A product of the
other kind adds up along the rows or the columns of the pairs: dQ from dS and K, dV from P and dO,
dK from dS and Q.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isqrt

from pebble.attention import Attention
from pebble.masked.family import Cells
from pebble.masked.places import Inner, Pair, Place
from pebble.masked.tapes import Tape
from pebble.masked.tiles import TileCounts, count_tiles
from pebble.masks import Mask
from schedules.blocks import distinct, too_small
from schedules.masked.settle import sizes_up_to

Take = Callable[[Tape, Attention, Pair], None]

COUNTED = 3  # cuts whose words are counted tile by tile, of those that are looked at


@dataclass(frozen=True)
class Cut:
    """How a product is cut.

    Parameters
    ----------
    rows, cols : int
        The sums that are formed at once. For each pair: of a tile of queries and keys. Along rows
        or columns: of so many queries (keys) and columns of the result.
    depth : int
        Terms that are added to each of them at a time.
    """

    rows: int
    cols: int
    depth: int


@dataclass(frozen=True)
class PairProduct:
    """A product with a sum for each pair, of a query's and a key's vector.

    Where all terms are added at once, the queries of a block stay while the keys pass, and a sum is
    taken as soon as it is formed.

    Parameters
    ----------
    left, right, term, total : str
        The families: of queries, of keys, of products, and the sums.
    width : int
        How many terms a sum has.
    beside : callable, optional
        Gives the words of queries that stay throughout, one for each.
    take : callable
        Told the tape, the problem and each pair whose sum is red; it has to delete it.
    alone : int
        The most words held while a sum is taken, itself included; at most 3.
    """

    left: str
    right: str
    term: str
    total: str
    width: int
    beside: Callable[[Place], Cells] | None
    take: Take
    alone: int

    def settled(self, p: Attention, cut: Cut) -> Cut:
        """Give the cut with no block larger than the product."""
        return Cut(min(cut.rows, p.n), min(cut.cols, p.keys), min(cut.depth, self.width))

    def whole(self, p: Attention) -> Cut:
        """Give a cut that reads each operand once."""
        return Cut(p.n, 1, self.width)

    def loads(self, p: Attention, cut: Cut) -> int:
        """Give the words of operands that pass."""
        mask: Mask = p.graph.mask
        tiles = count_tiles(mask, cut.rows, cut.cols)
        stays = cut.depth == self.width
        queries = mask.touched_rows if stays else tiles.total(tiles.queries)
        return (queries + tiles.total(tiles.keys)) * self.width

    def bound(self, p: Attention, cut: Cut) -> int:
        """Give what `write` holds where tiles are full; it never holds more."""
        words = (cut.rows + cut.cols) * cut.depth + cut.rows * (self.beside is not None)
        if cut.depth == self.width:
            return words + max(3 if self.width > 1 else 1, self.alone)
        return words + cut.rows * cut.cols + 2

    def candidates(self, p: Attention, cache: int) -> Iterator[Cut]:
        """Give cuts to choose from: rows that stay, and tiles near a square."""
        beside = int(self.beside is not None)
        spare = cache - self.bound(p, Cut(0, 1, self.width))
        for rows in sizes_up_to(p.n, spare // (self.width + beside)):
            yield Cut(rows, 1, self.width)
        if self.width > 1:
            for cols in sizes_up_to(p.keys, isqrt(cache)):
                most = (cache - cols - 2) // (cols + 1 + beside)
                yield from (Cut(rows, cols, 1) for rows in sizes_up_to(p.n, most))

    def estimate(self, p: Attention, cut: Cut) -> float:
        """Give about the words of operands that pass, from the number of pairs alone."""
        stays = cut.depth == self.width
        queries = p.n if stays else p.pairs / cut.cols
        return (queries + p.pairs / cut.rows) * self.width

    def write(self, tape: Tape, p: Attention, cut: Cut) -> Iterator[None]:
        """Form the sums of all pairs."""
        left, right, beside = p.graph[self.left], p.graph[self.right], self.beside
        stays = cut.depth == self.width
        for I in tape.query_blocks(cut.rows, cut.cols):
            kept = [beside(I.members)] if beside else []
            kept += [left[I.members]] if stays else []
            tape.load(*kept)
            for T in tape.tiles(I):
                for G in tape.chunks(self.width, cut.depth):
                    passing = [right[T.keys, G]]
                    passing += [] if stays else [left[T.queries, G]]
                    tape.load(*passing)
                    for ij in tape.pairs(T):
                        self._add(tape, p, ij, G)
                        if stays:
                            self.take(tape, p, ij)
                    tape.delete(*passing)
                if not stays:
                    for ij in tape.pairs(T):
                        self.take(tape, p, ij)
            tape.delete(*kept)
            yield

    def _add(self, tape: Tape, p: Attention, ij: Pair, G: Inner) -> None:
        term, total = p.graph[self.term], p.graph[self.total]
        for k in tape.inner(G.size, _start(G)):
            tape.compute(term[ij, k])
            if not k.first:
                tape.compute(total[ij, k])
                tape.delete(term[ij, k], total[ij, k.before])


@dataclass(frozen=True)
class ChainProduct:
    """A product that adds up along rows or columns: of each pair's weight and a vector.

    Parameters
    ----------
    weights, right, term, total : str
        The families: of pairs, of keys (queries, along columns), of products, and the sums.
    width : int
        The columns of the result.
    along_rows : bool
        Whether the result has a row for each query; else for each key.
    """

    weights: str
    right: str
    term: str
    total: str
    width: int
    along_rows: bool

    def settled(self, p: Attention, cut: Cut) -> Cut:
        """Give the cut with no block larger than the product."""
        rows, depth = (p.n, p.keys) if self.along_rows else (p.keys, p.n)
        return Cut(min(cut.rows, rows), min(cut.cols, self.width), min(cut.depth, depth))

    def whole(self, p: Attention) -> Cut:
        """Give a cut that reads each operand once."""
        return Cut(p.n if self.along_rows else p.keys, self.width, 1)

    def _tiles(self, p: Attention, cut: Cut) -> TileCounts:
        mask: Mask = p.graph.mask
        return count_tiles(mask if self.along_rows else mask.T, cut.rows, cut.depth)

    def loads(self, p: Attention, cut: Cut) -> int:
        """Give the words of operands that pass."""
        tiles = self._tiles(p, cut)
        return tiles.total(tiles.keys) * self.width + p.pairs * -(-self.width // cut.cols)

    def bound(self, p: Attention, cut: Cut) -> int:
        """Give what `write` holds where tiles are full; it never holds more.

        That is the sums, the operands and a weight; and, where there is something to add, a
        product and a sum.
        """
        mask: Mask = p.graph.mask
        counts = mask.row_counts if self.along_rows else mask.column_counts
        return (cut.rows + cut.depth) * cut.cols + (3 if counts.max() > 1 else 1)

    def candidates(self, p: Attention, cache: int) -> Iterator[Cut]:
        """Give cuts to choose from, one term at a time."""
        rows = p.n if self.along_rows else p.keys
        for cols in distinct(self.width, cache):
            most = (cache - self.bound(p, Cut(0, cols, 1))) // cols
            yield from (Cut(size, cols, 1) for size in sizes_up_to(rows, most))

    def estimate(self, p: Attention, cut: Cut) -> float:
        """Give about the words of operands that pass, from the number of pairs alone."""
        return p.pairs * (self.width / cut.rows + -(-self.width // cut.cols))

    def write(self, tape: Tape, p: Attention, cut: Cut) -> Iterator[None]:
        """Form the sums and write them."""
        weights, right, total = (p.graph[name] for name in (self.weights, self.right, self.total))
        blocks = tape.query_blocks if self.along_rows else tape.key_blocks
        for B in blocks(cut.rows, cut.depth):
            for C in tape.chunks(self.width, cut.cols):
                for T in tape.tiles(B):
                    operand = right[T.keys if self.along_rows else T.queries, C]
                    tape.load(operand)
                    for ij in tape.pairs(T):
                        tape.load(weights[ij])
                        self._add(tape, p, ij, C)
                        tape.delete(weights[ij])
                    tape.delete(operand)
                tape.store(total.last(B.members, C))
                tape.delete(total.last(B.members, C))
            yield

    def _add(self, tape: Tape, p: Attention, ij: Pair, C: Inner) -> None:
        term, total = p.graph[self.term], p.graph[self.total]
        begins = ij.row_first if self.along_rows else ij.column_first
        before = ij.left if self.along_rows else ij.above
        for k in tape.inner(C.size, _start(C)):
            tape.compute(term[ij, k])
            if not begins:
                tape.compute(total[ij, k])
                tape.delete(term[ij, k], total[before, k])


Products = Mapping[str, PairProduct | ChainProduct]
Cuts = dict[str, Cut]


def products(p: Attention, weights: Take, differences: Take, *, keeps_delta: bool) -> Products:
    """Give the five products, in the order in which they are formed.

    `weights` takes a score, and `differences` a dP: with D of its query beside it, if that is kept.
    """
    d, e, Lse, D = p.d, p.value_dim, p.graph["Lse"], p.graph["D"]
    delta, alone = ((lambda i: D.last[i]), 3) if keeps_delta else (None, 1)
    return {
        "P": PairProduct("Q", "K", "x", "s", d, lambda i: Lse[i], weights, 2),
        "dV": ChainProduct("P", "dO", "v", "dV", e, along_rows=False),
        "dP": PairProduct("dO", "V", "w", "dP", e, delta, differences, alone),
        "dQ": ChainProduct("dS", "K", "q", "dQ", d, along_rows=True),
        "dK": ChainProduct("dS", "Q", "k", "dK", d, along_rows=False),
    }


def best_cuts(name: str, p: Attention, parts: Products, cache: int, other: int) -> Cuts:
    """Give each product the cut that moves the fewest words; the other passes hold `other`.

    Raises
    ------
    SizeError
        The cache is too small for some product or another pass.
    """
    one = Cut(1, 1, 1)
    least = max(other, *(part.bound(p, one) for part in parts.values()))
    if least > cache:
        raise too_small(name, cache, least)
    return {at: _best_cut(p, part, cache) for at, part in parts.items()}


def _best_cut(p: Attention, part: PairProduct | ChainProduct, cache: int) -> Cut:
    """Choose among the cuts of the least estimates; a cache that fits anything fits 1 x 1."""
    found = [cut for cut in part.candidates(p, cache) if part.bound(p, cut) <= cache]
    likely = sorted(found or [Cut(1, 1, 1)], key=lambda cut: part.estimate(p, cut))[:COUNTED]
    return min(likely, key=lambda cut: (part.loads(p, cut), part.bound(p, cut)))


def same_cuts(p: Attention, parts: Products, cut: Cut) -> Cuts:
    """Give each product the same blocks, as far as it fills them."""
    return {name: part.settled(p, cut) for name, part in parts.items()}


def whole_cuts(p: Attention, parts: Products) -> Cuts:
    """Give each product blocks for which each operand is read once."""
    return {name: part.whole(p) for name, part in parts.items()}


def words(p: Attention, parts: Products, cuts: Cuts) -> int:
    """Give the words of operands that the products load."""
    return sum(part.loads(p, cuts[name]) for name, part in parts.items())


def told(cuts: Cuts) -> dict[str, int]:
    """Give the sizes of the products' blocks, the depths where more than 1."""
    return {
        f"{name}_{which}": size
        for name, cut in cuts.items()
        for which, size in vars(cut).items()
        if which != "depth" or size > 1
    }


def _start(part: Inner) -> int:
    return int(part.numbers[0, 0, 0])
