"""The five products of the backward pass one by one, each blocked, with P and dS in slow memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isqrt

from pebble.attention import Attention
from pebble.families import Family
from pebble.tapes import Index, Tape
from schedules.blocked import Cut, Product, best_cut, loads, multiply, peak, settle
from schedules.blocks import need, too_small


@dataclass(frozen=True)
class Phase:
    """A blocked product among others: what it forms, and what is held beside it.

    Parameters
    ----------
    name : str
        What it forms.
    product : Product
        The product.
    beside : int
        Words that a row of the block keeps throughout: its Lse, or its D.
    alone : int
        The most words held while a finished sum is taken, see `schedules.blocked.peak`.
    """

    name: str
    product: Product
    beside: int = 0
    alone: int = 1

    def peak(self, cut: Cut) -> int:
        """The most words that it holds."""
        beside = self.beside * settle(self.product, cut).helds
        return peak(self.product, cut, alone=self.alone) + beside


def products_of_rows(left: Family, right: Family, term: Family, total: Family) -> Product:
    """Give left right^T, as the scores Q K^T are: rows of `left` are held, of `right` stream."""
    return Product(
        streams=right.shape[0],
        helds=left.shape[0],
        depth=left.shape[1],
        stream=lambda j, k: right[j, k],
        held=lambda i, k: left[i, k],
        term=lambda j, i, k: term[i, j, k],
        total=lambda j, i, k: total[i, j, k],
    )


def products_of_weights(weights: Family, right: Family, term: Family, total: Family) -> Product:
    """Give weights right, as dQ = dS K is: the weights stream, and columns of `right` are held."""
    return Product(
        streams=weights.shape[0],
        helds=right.shape[1],
        depth=weights.shape[1],
        stream=lambda i, j: weights[i, j],
        held=lambda k, j: right[j, k],
        term=lambda i, k, j: term[i, j, k],
        total=lambda i, k, j: total[i, j, k],
    )


def products_of_columns(weights: Family, right: Family, term: Family, total: Family) -> Product:
    """Give weights^T right, as dV = P^T dO is: the weights stream, and columns of `right` stay."""
    return Product(
        streams=weights.shape[1],
        helds=right.shape[1],
        depth=weights.shape[0],
        stream=lambda j, i: weights[i, j],
        held=lambda k, i: right[i, k],
        term=lambda j, k, i: term[i, j, k],
        total=lambda j, k, i: total[i, j, k],
    )


def phases(p: Attention, alone: Mapping[str, int]) -> dict[str, Phase]:
    """Give the five products (four with saved weights), in the order in which they are formed.

    `alone` has the words that P and dP hold while one of them is taken; dP keeps D of its rows
    where it needs more than one.
    """
    g = p.graph
    Q, K, V, P, dO, dS = (g[name] for name in ("Q", "K", "V", "P", "dO", "dS"))
    found = [] if p.saved_weights else [Phase("P", _scores(p), 1, alone["P"])]
    found.append(Phase("dV", products_of_columns(P, dO, g["v"], g["dV"])))
    dP = products_of_rows(dO, V, g["w"], g["dP"])
    found.append(Phase("dP", dP, int(alone["dP"] > 1), alone["dP"]))
    found.append(Phase("dQ", products_of_weights(dS, K, g["q"], g["dQ"])))
    found.append(Phase("dK", products_of_columns(dS, Q, g["k"], g["dK"])))
    return {phase.name: phase for phase in found}


def _scores(p: Attention) -> Product:
    g = p.graph
    return products_of_rows(g["Q"], g["K"], g["x"], g["s"])


Cuts = dict[str, Cut]


def best_cuts(name: str, parts: Mapping[str, Phase], cache: int, other: int) -> Cuts:
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
        Words that the other passes hold.

    Raises
    ------
    SizeError
        The cache is too small for some product or another pass.
    """
    found = {at: best_cut(part.product, cache, part.peak) for at, part in parts.items()}
    cuts = {at: cut for at, cut in found.items() if cut}
    if len(cuts) < len(parts) or cache < other:
        raise too_small(name, cache, max(other, *map(_least, parts.values())))
    return cuts


def _least(part: Phase) -> int:
    return min(part.peak(Cut(1, 1, 1)), part.peak(Cut(1, 1, part.product.depth)))


def same_cuts(parts: Mapping[str, Phase], cut: Cut) -> Cuts:
    """Give each product the same blocks, as far as it fills them."""
    return {name: settle(part.product, cut) for name, part in parts.items()}


def square_cuts(parts: Mapping[str, Phase], cache: int) -> Cuts:
    """Give each product blocks of B in all three directions, B = floor(sqrt(M / 4))."""
    B = max(isqrt(cache // 4), 1)
    return same_cuts(parts, Cut(B, B, B))


def checked_peak(name: str, parts: Mapping[str, Phase], cuts: Cuts, cache: int, other: int) -> int:
    """Give the most words held in all passes.

    Raises
    ------
    SizeError
        They overflow the cache; the message names the product that does so most.
    """
    peaks = {part.peak(cuts[at]): at for at, part in parts.items()}
    most = max(peaks)
    cut = settle(parts[peaks[most]].product, cuts[peaks[most]])
    what = f"streams = {cut.streams}, helds = {cut.helds}, depth = {cut.depth} for {peaks[most]}"
    need(name, most, cache, what)
    need(name, other, cache, "a row")
    return max(most, other)


def words(parts: Mapping[str, Phase], cuts: Cuts) -> int:
    """Give the words of operands that the products load."""
    return sum(sum(loads(part.product, cuts[name])) for name, part in parts.items())


def told(parts: Mapping[str, Phase], cuts: Cuts) -> dict[str, int]:
    """Give the sizes of the tiles of the results, and where more than one, of terms at a time."""
    sizes: dict[str, int] = {}
    for name, part in parts.items():
        cut = settle(part.product, cuts[name])
        first, second = ("cols", "rows") if name in ("P", "dP") else ("rows", "cols")
        sizes |= {f"{name}_{first}": cut.streams, f"{name}_{second}": cut.helds}
        if cut.depth > 1:
            sizes[f"{name}_depth"] = cut.depth
    return dict(sorted(sizes.items(), key=lambda item: _place(parts, item[0])))


def _place(parts: Mapping[str, Phase], size: str) -> tuple[int, int]:
    name, _, which = size.partition("_")
    return list(parts).index(name), ("rows", "cols", "depth").index(which)


def write_weights(tape: Tape, p: Attention, part: Phase, cut: Cut) -> None:
    """P = exp(Q K^T - Lse), written."""
    s, P, Lse = p.graph["s"], p.graph["P"], p.graph["Lse"]

    def take(j: Index, i: Index) -> None:
        tape.compute(P[i, j])
        tape.delete(s[i, j, p.d - 1])
        tape.store(P[i, j])
        tape.delete(P[i, j])

    multiply(
        tape,
        part.product,
        cut,
        take,
        open=lambda I: tape.load(Lse[I]),
        close=lambda I: tape.delete(Lse[I]),
    )


def write_gradient(tape: Tape, part: Phase, cut: Cut) -> None:
    """One of dV = P^T dO, dQ = dS K and dK = dS^T Q, written."""
    last = part.product.depth - 1

    def take(s: Index, h: Index) -> None:
        tape.store(part.product.total(s, h, last))
        tape.delete(part.product.total(s, h, last))

    multiply(tape, part.product, cut, take)
