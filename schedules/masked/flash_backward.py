"""FlashAttention's and FlashAttention-2's backward pass under a mask: key blocks outside."""

from __future__ import annotations

from collections.abc import Iterator

from pebble.attention import Attention
from pebble.masked.schedule import MaskedSchedule
from pebble.masked.tapes import Tape
from pebble.masked.tiles import count_tiles
from pebble.masks import Mask
from schedules.backward import EVERY, peak
from schedules.blocks import largest
from schedules.masked.backward_steps import (
    add_delta,
    differentiate,
    with_recomputes,
    write_delta,
)
from schedules.masked.settle import schedule, settle, sizes_up_to

Asked = tuple[str, int | None, int | None]


def flash1_backward(problem: Attention, cache: int, asked: Asked) -> MaskedSchedule:
    """Give FlashAttention's backward pass: O is read and D formed anew in each tile."""
    p, e = problem, problem.value_dim

    def make(rows: int, cols: int) -> MaskedSchedule:
        loads, stores, visits = _io(p, rows, cols)
        loads += visits * e
        sizes = {"rows": rows, "cols": cols}
        made = schedule(
            "flash1_backward",
            p,
            int(cache),
            sizes,
            (loads, stores),
            lambda tape: _write(tape, p, rows, cols, forms_delta=True),
        )
        return with_recomputes(made, (visits - p.graph.mask.touched_rows) * (2 * e - 1))

    return settle("flash1_backward", p, cache, asked, make, lambda: _candidates(p, cache))


def flash2_backward(problem: Attention, cache: int, asked: Asked) -> MaskedSchedule:
    """Give FlashAttention-2's backward pass: D is written first and read in each tile."""
    p = problem

    def make(rows: int, cols: int) -> MaskedSchedule:
        loads, stores, visits = _io(p, rows, cols)
        active = p.graph.mask.touched_rows
        io = loads + 2 * active * p.value_dim + visits, stores + active
        sizes = {"rows": rows, "cols": cols}

        def write(tape: Tape) -> Iterator[None]:
            yield from write_delta(tape, p)
            yield from _write(tape, p, rows, cols, forms_delta=False)

        return schedule("flash2_backward", p, int(cache), sizes, io, write)

    return settle("flash2_backward", p, cache, asked, make, lambda: _candidates(p, cache))


def _candidates(p: Attention, cache: int) -> list[tuple[int, int]]:
    # Without a mask, a block holds at least as much as under it.
    most = largest(p.keys, lambda cols: peak(p, 1, cols, EVERY) <= cache)
    return [(1, cols) for cols in sizes_up_to(p.keys, most)]


def _io(p: Attention, rows: int, cols: int) -> tuple[int, int, int]:
    """Give the loads and the stores but those of O and D; and the queries, over the tiles."""
    mask: Mask = p.graph.mask
    tiles = count_tiles(mask.T, cols, rows)  # a row of its tiles is a block of keys
    visits, whole = tiles.total(tiles.keys), tiles.total(tiles.widths(p.n))
    resident = mask.touched_columns * (p.d + p.value_dim)
    loads = resident + whole * (p.d + p.value_dim + 1) + (visits - mask.touched_rows) * p.d
    return loads, visits * p.d + resident, visits


def _write(tape: Tape, p: Attention, rows: int, cols: int, *, forms_delta: bool) -> Iterator[None]:
    Q, K, V, dO, Lse = (p.graph[name] for name in ("Q", "K", "V", "dO", "Lse"))
    D, dQ, dK, dV = (p.graph[name] for name in ("D", "dQ", "dK", "dV"))
    for J in tape.key_blocks(cols, rows):
        tape.load(K[J.members], V[J.members])
        for T in tape.tiles(J):
            I = T.whole_queries
            tape.load(Q[I], dO[I], Lse[I])
            if forms_delta:
                for i in tape.each(T.queries):
                    add_delta(tape, p, i)
            else:
                tape.load(D.last[T.queries])
            tape.load(dQ[T.sums_before])
            differentiate(tape, p, T, EVERY)
            for sums in (dQ[T.sums_after], dQ.last(T.rows_finished)):
                tape.store(sums)
                tape.delete(sums)
            tape.delete(Q[I], dO[I], Lse[I], D.last[T.queries])
        tape.store(dK.last(J.members), dV.last(J.members))
        tape.delete(dK.last(J.members), dV.last(J.members), K[J.members], V[J.members])
        yield
