"""The unfused backward passes under a mask: product by product, with P and dS in slow memory."""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

from pebble.attention import Attention
from pebble.checks import positive
from pebble.masked.places import Pair
from pebble.masked.schedule import MaskedSchedule
from pebble.masked.tapes import Tape
from schedules.backward import delta_peak
from schedules.blocks import need, rule_or_sizes
from schedules.masked.backward_products import (
    Cut,
    Cuts,
    Products,
    best_cuts,
    products,
    same_cuts,
    told,
    whole_cuts,
    words,
)
from schedules.masked.backward_steps import write_delta
from schedules.masked.settle import schedule

Asked = tuple[str, int | None, int | None]


def standard_backward(problem: Attention, cache: int, asked: Asked) -> MaskedSchedule:
    """Give the unfused backward pass: dP is written too, and dS formed in a pass of its own."""
    p = problem
    cache = positive("cache", cache, "the words of fast memory")
    rule, rows, cols = rule_or_sizes(*asked)
    parts = products(p, _write_weight, _write_dP, keeps_delta=False)
    if rule == "best":
        cuts = best_cuts("standard_backward", p, parts, cache, delta_peak(p))
    elif rule == "published":
        cuts = whole_cuts(p, parts)
    else:
        cuts = same_cuts(p, parts, Cut(rows, cols, 1))
    loads, stores = _io(p, parts, cuts)

    def write(tape: Tape) -> Iterator[None]:
        yield from write_delta(tape, p)
        for name in ("P", "dV", "dP"):
            yield from parts[name].write(tape, p, cuts[name])
        yield from _write_dS(tape, p, cuts["P"])
        for name in ("dQ", "dK"):
            yield from parts[name].write(tape, p, cuts[name])

    io = loads + p.pairs, stores + p.pairs  # dP
    made = schedule("standard_backward", p, cache, told(cuts), io, write)
    return _checked(p, made, rule, parts, cuts)


def small_cache_backward(problem: Attention, cache: int, asked: Asked) -> MaskedSchedule:
    """Give the backward pass for a small cache: dS is formed as each dP is finished."""
    p = problem
    cache = positive("cache", cache, "the words of fast memory")
    rule, rows, cols = rule_or_sizes(*asked)
    parts = products(p, _write_weight, _take_dP, keeps_delta=True)
    if rule == "best":
        cuts = best_cuts("small_cache_backward", p, parts, cache, delta_peak(p))
    elif rule == "published":
        B = max(isqrt(cache // 4), 1)
        cuts = same_cuts(p, parts, Cut(B, B, B))
    else:
        cuts = same_cuts(p, parts, Cut(rows, cols, 1))

    def write(tape: Tape) -> Iterator[None]:
        yield from write_delta(tape, p)
        for name, part in parts.items():
            yield from part.write(tape, p, cuts[name])

    io = _io(p, parts, cuts)
    made = schedule("small_cache_backward", p, cache, told(cuts), io, write)
    return _checked(p, made, rule, parts, cuts)


def _io(p: Attention, parts: Products, cuts: Cuts) -> tuple[int, int]:
    """Give the loads and stores of all passes, but those of dP."""
    active, touched, d, e = (
        p.graph.mask.touched_rows,
        p.graph.mask.touched_columns,
        p.d,
        p.value_dim,
    )
    loads = words(p, parts, cuts) + p.pairs + 2 * active * e + 2 * active
    return loads, 2 * p.pairs + active * d + touched * (d + e) + active


def _checked(
    p: Attention, made: MaskedSchedule, rule: str, parts: Products, cuts: Cuts
) -> MaskedSchedule:
    """Refuse blocks that overflow the cache; the message names the product that may hold most."""
    most = max(parts, key=lambda name: parts[name].bound(p, cuts[name]))
    cut = cuts[most]
    what = f"rows = {cut.rows}, cols = {cut.cols}, depth = {cut.depth} for {most}"
    need(f"{made.name}, {rule} blocks", made.closed_form.peak, made.cache, what)
    return made


def _write_weight(tape: Tape, p: Attention, ij: Pair) -> None:
    """P = exp(S - Lse) for a score, written."""
    s, P = p.graph["s"], p.graph["P"]
    tape.compute(P[ij])
    tape.delete(s.last[ij])
    tape.store(P[ij])
    tape.delete(P[ij])


def _write_dP(tape: Tape, p: Attention, ij: Pair) -> None:
    dP = p.graph["dP"]
    tape.store(dP.last[ij])
    tape.delete(dP.last[ij])


def _take_dP(tape: Tape, p: Attention, ij: Pair) -> None:
    """dS = P o (dP - D) for a dP, written; P is read."""
    dP, G, P, dS = (p.graph[name] for name in ("dP", "G", "P", "dS"))
    tape.compute(G[ij])
    tape.delete(dP.last[ij])
    tape.load(P[ij])
    tape.compute(dS[ij])
    tape.delete(P[ij], G[ij])
    tape.store(dS[ij])
    tape.delete(dS[ij])


def _write_dS(tape: Tape, p: Attention, cut: Cut) -> Iterator[None]:
    """dS = P o (dP - D), from P, dP and D in slow memory.

    It goes through the tiles of P, whose product holds more: a query's D and 3 words are held here.
    """
    dP, D = p.graph["dP"], p.graph["D"]
    for I in tape.query_blocks(cut.rows, cut.cols):
        tape.load(D.last[I.members])
        for T in tape.tiles(I):
            for ij in tape.pairs(T):
                tape.load(dP.last[ij])
                _take_dP(tape, p, ij)
        tape.delete(D.last[I.members])
        yield
