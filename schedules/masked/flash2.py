"""FlashAttention-2 under a mask, and with the keys gathered that a block of queries uses."""

from __future__ import annotations

from collections.abc import Iterator

from pebble.attention import Attention
from pebble.masked.schedule import MaskedSchedule
from pebble.masked.tapes import Tape
from pebble.masked.tiles import count_tiles
from schedules.masked.settle import schedule, settle, sizes_up_to
from schedules.masked.steps import add_products, add_values, add_weight, finish

Asked = tuple[str, int | None, int | None]


def flash2(problem: Attention, cache: int, asked: Asked) -> MaskedSchedule:
    """Give FlashAttention-2: tiles that are not empty are loaded whole."""

    def make(rows: int, cols: int) -> MaskedSchedule:
        tiles = count_tiles(problem.graph.mask, rows, cols)
        keys = tiles.total(tiles.widths(problem.keys))
        return _schedule("flash2", problem, cache, rows, cols, keys, gathers=False)

    return settle("flash2", problem, cache, asked, make, lambda: _candidates(problem, cache))


def gather(problem: Attention, cache: int, asked: Asked) -> MaskedSchedule:
    """Give FlashAttention-2 with the keys alone that the block's queries use."""

    def make(rows: int, cols: int) -> MaskedSchedule:
        tiles = count_tiles(problem.graph.mask, rows, cols)
        keys = tiles.total(tiles.keys)
        return _schedule("gather", problem, cache, rows, cols, keys, gathers=True)

    return settle("gather", problem, cache, asked, make, lambda: _candidates(problem, cache))


def _candidates(p: Attention, cache: int) -> list[tuple[int, int]]:
    # With one key at a time: rows (d + e + 1) + d + e + 3 words are enough.
    most = (cache - p.d - p.value_dim - 3) // (p.d + p.value_dim + 1)
    return [(rows, 1) for rows in sizes_up_to(p.n, most)]


def _schedule(
    name: str, p: Attention, cache: int, rows: int, cols: int, keys: int, *, gathers: bool
) -> MaskedSchedule:
    """Put it together; `keys` are loaded, over all tiles."""
    active = p.graph.mask.touched_rows
    loads = active * p.d + keys * (p.d + p.value_dim)
    stores = active * (p.value_dim + p.logsumexp)
    sizes = {"rows": rows, "cols": cols}
    return schedule(
        name, p, cache, sizes, (loads, stores), lambda tape: _write(tape, p, rows, cols, gathers)
    )


def _write(tape: Tape, p: Attention, rows: int, cols: int, gathers: bool) -> Iterator[None]:
    Q, K, V = p.graph["Q"], p.graph["K"], p.graph["V"]
    for I in tape.query_blocks(rows, cols):
        tape.load(Q[I.members])
        for T in tape.tiles(I):
            J = T.keys if gathers else T.whole_keys
            tape.load(K[J], V[J])
            for ij in tape.pairs(T):
                add_products(tape, p, ij)
                add_weight(tape, p, ij)
                add_values(tape, p, ij)
            tape.delete(K[J], V[J])
        for i in tape.each(I.members):
            finish(tape, p, i)
        tape.delete(Q[I.members])
        yield
