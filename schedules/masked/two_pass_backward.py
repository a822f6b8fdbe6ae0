"""The backward pass in two under a mask: rows for dQ, columns for dK and dV."""

from __future__ import annotations

from collections.abc import Iterator

from pebble.attention import Attention
from pebble.masked.schedule import MaskedSchedule
from pebble.masked.tapes import Tape
from pebble.masked.tiles import count_tiles
from schedules.backward import COLUMNS, ROWS, pair_computes, peak
from schedules.blocks import largest
from schedules.masked.backward_steps import add_delta, differentiate, with_recomputes
from schedules.masked.settle import schedule, settle, sizes_up_to


def two_pass_backward(
    problem: Attention, cache: int, rows: int | None, cols: int | None
) -> MaskedSchedule:
    """Give both passes: what streams past a block is what its pairs use."""
    p, e = problem, problem.value_dim

    def make(rows: int, cols: int) -> MaskedSchedule:
        active, touched = p.graph.mask.touched_rows, p.graph.mask.touched_columns
        loads = active * (p.d + 2 * e + 1) + touched * (p.d + e)
        loads += _of_rows(p, rows) + _of_columns(p, cols)
        stores = active + active * p.d + touched * (p.d + e)

        def write(tape: Tape) -> Iterator[None]:
            yield from _write_rows(tape, p, rows)
            yield from _write_columns(tape, p, cols)

        sizes = {"rows": rows, "cols": cols}
        made = schedule("two_pass_backward", p, int(cache), sizes, (loads, stores), write)
        return with_recomputes(made, p.pairs * pair_computes(p))

    def candidates() -> list[tuple[int, int]]:
        # Without a mask, a block holds at least as much as under it.
        height = largest(p.n, lambda rows: peak(p, rows, 1, ROWS) <= cache)
        width = largest(p.keys, lambda cols: peak(p, 1, cols, COLUMNS) <= cache)
        if not (height and width):
            return []
        rows = min(sizes_up_to(p.n, height), key=lambda rows: _of_rows(p, rows))
        return [(rows, min(sizes_up_to(p.keys, width), key=lambda cols: _of_columns(p, cols)))]

    return settle("two_pass_backward", p, cache, ("best", rows, cols), make, candidates)


def _of_rows(p: Attention, rows: int) -> int:
    """Give the words of K and V that stream past blocks of so many queries."""
    tiles = count_tiles(p.graph.mask, rows, 1)
    return tiles.total(tiles.keys) * (p.d + p.value_dim)


def _of_columns(p: Attention, cols: int) -> int:
    """Give the words of Q, dO, Lse and D that stream past blocks of so many keys."""
    tiles = count_tiles(p.graph.mask.T, cols, 1)  # a row of its tiles is a block of keys
    return tiles.total(tiles.keys) * (p.d + p.value_dim + 2)


def _write_rows(tape: Tape, p: Attention, rows: int) -> Iterator[None]:
    """Pass 1: D and dQ."""
    Q, K, V, dO, Lse = (p.graph[name] for name in ("Q", "K", "V", "dO", "Lse"))
    D, dQ = p.graph["D"], p.graph["dQ"]
    for I in tape.query_blocks(rows, 1):
        tape.load(Q[I.members], dO[I.members], Lse[I.members])
        for i in tape.each(I.members):
            add_delta(tape, p, i)
        tape.store(D.last[I.members])
        for T in tape.tiles(I):
            tape.load(K[T.keys], V[T.keys])
            differentiate(tape, p, T, ROWS)
            tape.delete(K[T.keys], V[T.keys])
        tape.store(dQ.last(I.members))
        tape.delete(dQ.last(I.members), Q[I.members], dO[I.members], Lse[I.members])
        tape.delete(D.last[I.members])
        yield


def _write_columns(tape: Tape, p: Attention, cols: int) -> Iterator[None]:
    """Pass 2: dK and dV."""
    Q, K, V, dO, Lse = (p.graph[name] for name in ("Q", "K", "V", "dO", "Lse"))
    D, dK, dV = p.graph["D"], p.graph["dK"], p.graph["dV"]
    for J in tape.key_blocks(cols, 1):
        tape.load(K[J.members], V[J.members])
        for T in tape.tiles(J):
            I = T.queries
            tape.load(Q[I], dO[I], Lse[I], D.last[I])
            differentiate(tape, p, T, COLUMNS)
            tape.delete(Q[I], dO[I], Lse[I], D.last[I])
        tape.store(dK.last(J.members), dV.last(J.members))
        tape.delete(dK.last(J.members), dV.last(J.members), K[J.members], V[J.members])
        yield
