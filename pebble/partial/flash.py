"""FlashAttention 2 in the game with partial computation."""

from __future__ import annotations

from collections.abc import Iterator

from pebble.attention import Attention
from pebble.checks import positive
from pebble.errors import SizeError
from pebble.moves import Vertex
from pebble.partial.attention import PartialSchedule, Pen, cost_of, plain, too_small
from pebble.partial.moves import PartialMove


def flash2(problem: Attention, cache: int, *, rows: int | None = None) -> PartialSchedule:
    """Give FlashAttention 2: a block of queries and its sums stay, the keys stream by.

    A row of queries takes d words, its sums value_dim, its row sum 1. Beside them there are two
    ways. The words of K[j,:] and V[j,:] stream by one at a time, each for all rows; then each row
    has a score or a weight too. Or K[j,:] and V[j,:] are held, and the rows are taken one by one.
    Two words more hold what is added and, streaming, the word that passes; held, the score. With
    a rows and keys > 1::

        loads   n d + keys (d + value_dim) ceil(n / a)
        stores  n value_dim  (+ n with the logsumexp)
        peak    streaming, a (d + value_dim + 2) + 2
                held, a (d + value_dim + 1) + d + value_dim + 2

    For keys = 1 they are a (d + value_dim + 1) + 1 and a (d + value_dim + 1) + d + value_dim.

    Parameters
    ----------
    problem : Attention
        What to compute: the forward pass with plain softmax.
    cache : int
        M, in words.
    rows : int, optional
        The queries in a block. Default: the most that fit, in the way in which more do; and
        streaming where as many do.

    Raises
    ------
    ProblemError, SizeError
        Another problem; a cache that is too small; rows that are not positive or don't fit.

    References
    ----------
    Dao, "FlashAttention-2", arXiv 2307.08691, algorithm 1; Papp, Sobczyk, Yzelman, SPAA 2025,
    arXiv 2506.10854 (the game).

    Examples
    --------
    In 14 words two rows of 2 + 2 + 2 words stream: 8 + 8 * 4 / 2 * 2 loads, 8 stores. The ordinary
    game's schedule has a place for one row, and twice the passes.

    >>> import schedules
    >>> problem = Attention(n=4, d=2)
    >>> flash2(problem, cache=14).cost.io, schedules.flash2(problem, cache=14).count().io
    (48, 80)
    """
    p = plain("flash2", problem)
    cache = positive("cache", cache, "the words of fast memory")
    if rows is None:
        fitting = {held: min(p.n, _most(p, cache, held)) for held in (False, True)}
        held = fitting[True] > fitting[False]
        rows = fitting[held]
        if rows < 1:
            raise too_small("flash2", cache, flash_peak(p, 1, held=False))
    else:
        rows = min(p.n, positive("rows", rows, "the queries in a block"))
        held = flash_peak(p, rows, True) < flash_peak(p, rows, False)
    peak = flash_peak(p, rows, held)
    if peak > cache:
        raise SizeError(f"rows = {rows} take {peak} words, more than cache = {cache}")
    loads = p.n * p.d + p.keys * (p.d + p.value_dim) * -(-p.n // rows)
    stores = p.n * p.value_dim + (p.n if p.logsumexp else 0)
    cost = cost_of(p, loads, stores, peak)
    blocks = {"rows": rows, "held": int(held)}
    return PartialSchedule("flash2", p, cache, blocks, cost, lambda: _write(p, rows, held))


def flash_peak(p: Attention, rows: int, held: bool) -> int:
    """Give the most words that it holds with so many rows; see `flash2`.

    Examples
    --------
    >>> problem = Attention(n=64, d=4)
    >>> flash_peak(problem, 10, held=False), flash_peak(problem, 10, held=True)
    (102, 100)
    """
    per_row, more = _line(p, held)
    return rows * per_row + more


def _line(p: Attention, held: bool) -> tuple[int, int]:
    # The peak as a linear function of the rows: what each takes, and what is beside them.
    words = p.d + p.value_dim
    if p.keys == 1:
        return words + 1, words if held else 1
    return (words + 1, words + 2) if held else (words + 2, 2)


def _most(p: Attention, cache: int, held: bool) -> int:
    per_row, more = _line(p, held)
    return max(0, (cache - more) // per_row)


def _write(p: Attention, rows: int, held: bool) -> Iterator[PartialMove]:
    pen = Pen(p)
    for start in range(0, p.n, rows):
        I = range(start, min(start + rows, p.n))
        queries = [Vertex("Q", (i, k)) for i in I for k in range(p.d)]
        yield from map(pen.load, queries)
        for j in range(p.keys):
            yield from (_take_rows if held else _stream)(pen, I, j)
        for i in I:
            for c in range(p.value_dim):
                yield from pen.divide(i, c)
            yield from pen.close(i)
        yield from map(pen.delete, queries)


def _stream(pen: Pen, I: range, j: int) -> Iterator[PartialMove]:
    # The words of a key pass one at a time, each for all rows.
    p = pen.p
    for k in range(p.d):
        yield pen.load(Vertex("K", (j, k)))
        for i in I:
            yield from pen.add_product(i, j, k)
        yield pen.delete(Vertex("K", (j, k)))
    for i in I:
        yield from pen.weigh(i, j)
        yield from pen.add_weight(i, j)
    for c in range(p.value_dim):
        yield pen.load(Vertex("V", (j, c)))
        for i in I:
            yield from pen.add_value(i, j, c)
        yield pen.delete(Vertex("V", (j, c)))
    if p.keys > 1:  # else it is the row sum
        for i in I:
            yield pen.delete(Vertex("P", (i, j)))


def _take_rows(pen: Pen, I: range, j: int) -> Iterator[PartialMove]:
    # The words of a key are held for the rows, one after the other.
    p = pen.p
    words = [Vertex("K", (j, k)) for k in range(p.d)]
    words += [Vertex("V", (j, c)) for c in range(p.value_dim)]
    yield from map(pen.load, words)
    for i in I:
        for k in range(p.d):
            yield from pen.add_product(i, j, k)
        yield from pen.weigh(i, j)
        yield from pen.add_weight(i, j)
        for c in range(p.value_dim):
            yield from pen.add_value(i, j, c)
        if p.keys > 1:
            yield pen.delete(Vertex("P", (i, j)))
    yield from map(pen.delete, words)
