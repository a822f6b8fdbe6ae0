"""FlashAttention under a mask: key blocks outside; and block-sparse FlashAttention as published."""

from __future__ import annotations

from collections.abc import Iterator

from pebble.attention import Attention
from pebble.masked.schedule import MaskedSchedule
from pebble.masked.tapes import Tape
from pebble.masked.tiles import count_tiles
from schedules.masked.settle import schedule, settle, sizes_up_to
from schedules.masked.steps import add_products, add_values, add_weight, finish

Asked = tuple[str, int | None, int | None]


def flash1(problem: Attention, cache: int, asked: Asked) -> MaskedSchedule:
    """Give FlashAttention: keys that no query attends to are not loaded."""

    def make(rows: int, cols: int) -> MaskedSchedule:
        keys = problem.graph.mask.touched_columns
        return _schedule("flash1", problem, cache, rows, cols, keys)

    return settle("flash1", problem, cache, asked, make, lambda: _candidates(problem, cache))


def block_sparse(problem: Attention, cache: int, asked: Asked) -> MaskedSchedule:
    """Give block-sparse FlashAttention: keys are loaded before their tiles are tested."""

    def make(rows: int, cols: int) -> MaskedSchedule:
        return _schedule("block_sparse", problem, cache, rows, cols, problem.keys)

    return settle("block_sparse", problem, cache, asked, make, lambda: _candidates(problem, cache))


def _candidates(p: Attention, cache: int) -> list[tuple[int, int]]:
    # With one query at a time: cols (d + e) + d + e + 4 words are enough.
    most = (cache - p.d - p.value_dim - 4) // (p.d + p.value_dim)
    return [(1, cols) for cols in sizes_up_to(p.keys, most)]


def _schedule(
    name: str, p: Attention, cache: int, rows: int, cols: int, keys: int
) -> MaskedSchedule:
    """Put it together; `keys` are loaded, once each."""
    tiles = count_tiles(p.graph.mask.T, cols, rows)  # a row of its tiles is a block of keys
    visits = tiles.total(tiles.keys)  # queries, over the tiles
    again = visits - p.graph.mask.touched_rows  # those that have begun, and as many that go on
    sums = p.value_dim + 1
    whole = tiles.total(tiles.widths(p.n))
    loads = keys * (p.d + p.value_dim) + whole * p.d + again * sums
    stores = again * sums + p.graph.mask.touched_rows * (p.value_dim + p.logsumexp)
    everything = name == "block_sparse"
    sizes = {"rows": rows, "cols": cols}
    return schedule(
        name, p, cache, sizes, (loads, stores), lambda tape: _write(tape, p, rows, cols, everything)
    )


def _write(tape: Tape, p: Attention, rows: int, cols: int, everything: bool) -> Iterator[None]:
    Q, K, V, l, o = (p.graph[name] for name in ("Q", "K", "V", "l", "o"))
    for J in tape.key_blocks(cols, rows):
        keys = J.whole if everything else J.members
        tape.load(K[keys], V[keys])
        for T in tape.tiles(J):
            tape.load(Q[T.whole_queries], l[T.sums_before], o[T.sums_before])
            for ij in tape.pairs(T):
                add_products(tape, p, ij)
                add_weight(tape, p, ij)
                add_values(tape, p, ij)
            for i in tape.each(T.rows_finished):
                finish(tape, p, i)
            tape.store(l[T.sums_after], o[T.sums_after])
            tape.delete(l[T.sums_after], o[T.sums_after], Q[T.whole_queries])
        tape.delete(K[keys], V[keys])
        yield
