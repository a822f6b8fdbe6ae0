"""A blocked product of two matrices, as the graphs define it: products, added in chains.

``result[s, h] = sum over g of stream[s, g] held[h, g]``, in any of the shapes that attention's
gradients have. The result is cut into tiles; a tile's sums stay while the operands pass, `depth`
terms at a time: of one operand the block's part is held, of the other a row's part at a time
streams by. Where the depth is everything, a sum is finished as soon as it is begun, so no tile is
held and the held operand's block stays while the other passes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pebble.affine import Affine
from pebble.families import Tile
from pebble.tapes import Block, Index, Tape
from schedules.blocks import distinct, largest

Operand = Callable[[Any, Any], Tile]
Term = Callable[[Any, Any, Any], Tile]


@dataclass(frozen=True)
class Product:
    """A product of matrices in a graph.

    Parameters
    ----------
    streams, helds, depth : int
        The extents of s, h and g.
    stream, held : callable
        Give the tiles of operands at (s, g) and (h, g).
    term, total : callable
        Give the vertices at (s, h, g): the product, and the sum up to it. The first sum is another
        name of the first product.
    """

    streams: int
    helds: int
    depth: int
    stream: Operand
    held: Operand
    term: Term
    total: Term


@dataclass(frozen=True)
class Cut:
    """How a product is cut: the most streams and helds of a tile, and the terms at a time."""

    streams: int
    helds: int
    depth: int


def settle(product: Product, cut: Cut) -> Cut:
    """Give the cut with no block larger than the product.

    Where the depth is everything no tile is held, so all streams may pass in one.
    """
    helds, depth = min(cut.helds, product.helds), min(cut.depth, product.depth)
    whole = depth == product.depth
    return Cut(product.streams if whole else min(cut.streams, product.streams), helds, depth)


def nothing(*_: object) -> None:
    """Do nothing."""


def multiply(
    tape: Tape,
    product: Product,
    cut: Cut,
    take: Callable[[Index, Index], None],
    open: Callable[[Block], None] = nothing,
    close: Callable[[Block], None] = nothing,
    bring: Callable[[Index, Block, Block], None] | None = None,
    drop: Callable[[Index, Block, Block], None] | None = None,
) -> None:
    """Form a product.

    Parameters
    ----------
    tape : Tape
        Where it is written.
    product, cut : Product, Cut
        What is formed, and how it is cut (`settle` is applied).
    take : callable
        Told (s, h) of each sum as it is finished and red; it has to delete it, now or later.
    open, close : callable, optional
        Told each block of h before and after its sums are formed.
    bring, drop : callable, optional
        Make the stream's entries red and take them away, given (s, G, H); load and delete are
        what they do if they are not given.
    """
    cut = settle(product, cut)

    def load(s: Index, G: Block, H: Block) -> None:
        tape.load(product.stream(s, G))

    def delete(s: Index, G: Block, H: Block) -> None:
        tape.delete(product.stream(s, G))

    for H in tape.blocks(product.helds, cut.helds):
        open(H)
        for S in tape.blocks(product.streams, cut.streams):
            for G in tape.blocks(product.depth, cut.depth):
                tape.load(product.held(H, G))
                for s in tape.each(S):
                    (bring or load)(s, G, H)
                    for h in tape.each(H):
                        add(tape, product, s, h, G)
                        if G.last:
                            take(s, h)
                    (drop or delete)(s, G, H)
                tape.delete(product.held(H, G))
        close(H)


def add(tape: Tape, product: Product, s: Affine, h: Affine, G: Block) -> None:
    """Add the terms of G to the sum at (s, h)."""
    term, total = product.term, product.total
    for g in tape.each(G):
        tape.compute(term(s, h, g))
        if not g.first:
            tape.compute(total(s, h, g))
            tape.delete(term(s, h, g), total(s, h, g - 1))


def loads(product: Product, cut: Cut) -> tuple[int, int]:
    """Give the words of the stream and of the held operand that pass.

    Examples
    --------
    A 6 x 4 result of inner dimension 3, in tiles of 3 x 2: 18 words twice and 12 twice.

    >>> shape = Product(6, 4, 3, *[nothing] * 4)
    >>> loads(shape, Cut(streams=3, helds=2, depth=1))
    (36, 24)
    >>> loads(shape, Cut(streams=3, helds=2, depth=3))  # no tile is held
    (36, 12)
    """
    cut = settle(product, cut)
    stream = product.streams * product.depth * -(-product.helds // cut.helds)
    return stream, product.helds * product.depth * -(-product.streams // cut.streams)


def peak(product: Product, cut: Cut, running: int = 0, alone: int = 1) -> int:
    """Give the most words that `multiply` holds, exactly.

    Parameters
    ----------
    running : int
        Words that an h of the block keeps from its first sum's end to the close of the block. The
        first of them takes the place of that sum.
    alone : int
        The most words held for a sum while it is taken, itself included, but the running ones.
        At most 3, unless the depth is everything.

    Examples
    --------
    A tile of 3 x 2 sums, 2 words held and 1 that streams by, and the 2 of adding a product.

    >>> peak(Product(6, 4, 3, *[nothing] * 4), Cut(streams=3, helds=2, depth=1))
    11
    """
    cut = settle(product, cut)
    operands = (cut.helds + 1) * cut.depth
    if cut.depth == product.depth:
        # While the last sum of a block is formed the first time, it keeps none yet.
        kept = (cut.helds if product.streams > 1 else cut.helds - 1) * running
        return operands + kept + max(3 if cut.depth > 1 else 1, alone)
    tiles, ragged = -(-product.streams // cut.streams), product.streams % cut.streams or cut.streams
    first = cut.helds * cut.streams
    widest = cut.streams if tiles > 2 or ragged == cut.streams else ragged
    later = cut.helds * (widest + running) if tiles > 1 else 0
    return operands + 2 + max(first, later)


def best_cut(
    product: Product,
    cache: int,
    peak: Callable[[Cut], int],
    io: Callable[[Cut], int] | None = None,
) -> Cut | None:
    """Choose the cut that moves the fewest words, None if none fits the cache.

    Parameters
    ----------
    product : Product
        What is formed.
    cache : int
        M, in words.
    peak : callable
        The words that a cut holds.
    io : callable, optional
        The words that a cut moves; those of `loads` if it is not given.
    """
    moves = io or (lambda cut: sum(loads(product, cut)))
    streams, depth = product.streams, product.depth
    panel = largest(min(product.helds, cache), lambda h: peak(Cut(streams, h, depth)) <= cache)
    found = [Cut(streams, panel, depth)] if panel else []
    if depth > 1:
        for helds in distinct(product.helds, cache):
            fits = lambda s, h=helds: peak(Cut(s, h, 1)) <= cache
            s = largest(min(streams, cache), fits)
            found += [Cut(s, helds, 1)] if s else []
    return min(found, key=lambda cut: (moves(cut), peak(cut)), default=None)
