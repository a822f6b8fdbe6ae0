"""All known schedules for a problem and a cache, beside the best lower bound."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeGuard

from pebble import bounds
from pebble.bounds import Bound
from pebble.checks import positive
from pebble.cost import Cost
from pebble.errors import SizeError, UnknownName
from pebble.masked.schedule import MaskedSchedule
from pebble.masked.tiles import count_tiles
from pebble.problem import Problem
from pebble.registry import generators
from pebble.rules import HONG_KUNG, Rules
from pebble.schedule import Schedule
from pebble.table import Table

# The sides of the square tiles that a comparison under a mask tells of.
KERNEL_TILES = (64, 128)
WORD_BYTES = {"fp8": 1, "fp16": 2, "bf16": 2, "fp32": 4, "fp64": 8}


@dataclass(frozen=True)
class Row:
    """One schedule of a comparison.

    Parameters
    ----------
    schedule : Schedule
        The schedule.
    rule : str
        How its blocks were chosen: "best" or "published".
    cost : Cost
        What it costs for one head.
    ratio : float
        Its I/O over the best lower bound.
    """

    schedule: Schedule
    rule: str
    cost: Cost
    ratio: float

    @property
    def label(self) -> str:
        """The schedule and how its blocks were chosen."""
        return f"{self.schedule.name}, {self.rule}"


@dataclass(frozen=True)
class Comparison:
    """Schedules beside the best lower bound; a table in a terminal and in a notebook.

    Parameters
    ----------
    problem : Attention or AttentionGradient
        What one head computes.
    cache : int
        M, in words.
    rules : Rules
        The game in which the bound holds; the schedules are legal in it.
    bound : Bound
        The largest lower bound that applies, for one head.
    rows : sequence of Row
        The schedules that fit the cache, cheapest first.
    refused : mapping of str to str
        The others, and why they are left out.
    copies : int
        Heads times batch. Each plays its own game, so words and bounds multiply.
    word_bytes : int
        Bytes of a word.
    """

    problem: Problem
    cache: int
    rules: Rules
    bound: Bound
    rows: tuple[Row, ...]
    refused: tuple[tuple[str, str], ...]
    copies: int = 1
    word_bytes: int = 2

    @property
    def table(self) -> Table:
        """The rows as a table: words of all heads and batches, the peak of one cache."""
        head = "schedule|blocks|loads|stores|I/O words|I/O bytes|peak|computes|I/O / bound".split(
            "|"
        )
        if self.masked:
            head.insert(2, "tiles")
        return Table(self.title, tuple(head), tuple(map(self._cells, self.rows)), tuple(self.notes))

    def _cells(self, row: Row) -> tuple[str, ...]:
        cost, by = row.cost, self.copies
        sizes = " ".join(f"{name}={size}" for name, size in row.schedule.blocks.items())
        words = (cost.loads * by, cost.stores * by, cost.io * by, cost.io * by * self.word_bytes)
        visited = _tiles(row.schedule, by)
        tiles = ("-" if visited is None else f"{visited:,}",) if self.masked else ()
        return (
            row.label,
            sizes,
            *tiles,
            *(f"{number:,}" for number in (*words, cost.peak, cost.computes * by)),
            f"{row.ratio:.4f}",
        )

    @property
    def masked(self) -> bool:
        """Whether the problem has a mask: then the tiles that schedules visit are counted too."""
        return any(_is_masked(row.schedule) for row in self.rows)

    @property
    def title(self) -> str:
        """What is compared, in one line."""
        told = f"{self.problem.title}, cache M = {self.cache} words of {self.word_bytes} bytes"
        return told + (f", {self.copies} copies (heads x batch)" if self.copies > 1 else "")

    @property
    def notes(self) -> list[str]:
        """The bound, and schedules that compute anew or are left out, a line each."""
        game = "recomputation allowed" if self.rules.recompute else "each vertex computed once"
        bound = self.bound
        total = f"{bound.value * self.copies:,} words"
        lines = [
            f"lower bound: {total} ({game}) by {bound.name}; {bound.reference}",
            f"it assumes: {bound.assumes}",
        ]
        lines += [
            f"{row.label} blocks: computes {times(row.schedule):.3f} times what the graph has"
            for row in self.rows
            if row.schedule.recomputes
        ]
        if self.masked:
            lines += [_told_tiles(self.problem, side, self.copies) for side in KERNEL_TILES]
        return lines + [f"left out: {why}" for _, why in self.refused]

    def to_dict(self) -> dict[str, object]:
        """Give everything as plain values, for JSON."""
        by = self.copies
        return {
            "problem": self.problem.to_dict(),
            "cache": self.cache,
            "copies": by,
            "word_bytes": self.word_bytes,
            "recompute": self.rules.recompute,
            "bound": {
                "words": self.bound.value * by,
                "name": self.bound.name,
                "assumes": self.bound.assumes,
                "reference": self.bound.reference,
            },
            "schedules": [
                {
                    "name": row.schedule.name,
                    "rule": row.rule,
                    "blocks": dict(row.schedule.blocks),
                    "loads": row.cost.loads * by,
                    "stores": row.cost.stores * by,
                    "io_words": row.cost.io * by,
                    "io_bytes": row.cost.io * by * self.word_bytes,
                    "peak": row.cost.peak,
                    "computes": row.cost.computes * by,
                    "recomputes": row.schedule.recomputes,
                    "ratio": row.ratio,
                }
                | ({"tiles": _tiles(row.schedule, by)} if self.masked else {})
                for row in self.rows
            ],
            "refused": dict(self.refused),
        }

    def __str__(self) -> str:
        return self.table.text()

    def _repr_html_(self) -> str:
        return self.table.html()


def _is_masked(schedule: Schedule) -> TypeGuard[MaskedSchedule]:
    return isinstance(schedule, MaskedSchedule)


def _tiles(schedule: Schedule, copies: int) -> int | None:
    visited = schedule.tiles if _is_masked(schedule) else None
    return None if visited is None else visited * copies


def _told_tiles(problem: Any, side: int, copies: int) -> str:
    """Say what square tiles of kernels make of a mask: tiles, pairs in them, and words."""
    tiles = problem.mask.tiles(side, side)
    visited, all_tiles = tiles.visited * copies, tiles.shape[0] * tiles.shape[1] * copies
    counted_tiles = count_tiles(problem.mask, side, side)
    keys = counted_tiles.total(counted_tiles.widths(problem.keys))
    outputs = problem.mask.touched_rows * (problem.value_dim + problem.logsumexp)
    words = problem.mask.touched_rows * problem.d + keys * (problem.d + problem.value_dim) + outputs
    return (
        f"{side} x {side} tiles: {visited:,} of {all_tiles:,} visited, with "
        f"{tiles.touched_pairs * copies:,} pairs for {problem.pairs * copies:,}; a forward pass of "
        f"FlashAttention-2 in them moves {words * copies:,} words"
    )


def times(schedule: Schedule) -> float:
    """How often a schedule computes a vertex, on average: 1 if it computes each once.

    Examples
    --------
    One row and one key, d = 1: each vertex is computed once.

    >>> import pebble, schedules
    >>> times(schedules.flash_gradient(pebble.AttentionGradient(n=1, d=1), cache=16))
    1.0
    """
    graph = schedule.problem.graph
    computed: int = graph.size - graph.input_words
    return schedule.closed_form.computes / computed


Judge = Callable[[Schedule], Cost]


def counted(schedule: Schedule) -> Cost:
    """Give a schedule's count."""
    return schedule.count()


def compare(
    problem: Problem,
    cache: int,
    *,
    rules: Rules = HONG_KUNG,
    heads: int = 1,
    batch: int = 1,
    dtype: str = "fp16",
    judge: Judge = counted,
) -> Comparison:
    """Set every registered schedule that fits beside the best lower bound.

    Parameters
    ----------
    problem : Attention or AttentionGradient
        What one head computes.
    cache : int
        M, in words.
    rules : Rules
        The game of the bound. With ``recompute=False`` bounds are larger, and schedules that
        compute some vertices more than once are left out, which the notes say.
    heads, batch : int
        How many times the problem is solved.
    dtype : {"fp8", "fp16", "bf16", "fp32", "fp64"}
        What a word is, for bytes.
    judge : callable
        Gives a schedule's cost: `counted` (default), or `Schedule.replay` to have the
        referee check every move.

    Raises
    ------
    SizeError, UnknownName
        Sizes that are not positive integers; an unknown dtype; no schedule that fits the cache and
        is legal in the game.

    Examples
    --------
    >>> import pebble, schedules
    >>> comparison = pebble.compare(pebble.Attention(n=64, d=8), cache=512)
    >>> [(row.schedule.name, row.cost.io) for row in comparison.rows][0]
    ('flash2', 4096)
    """
    copies = positive("heads", heads, "the number of heads")
    copies *= positive("batch", batch, "the batch size")
    if dtype not in WORD_BYTES:
        raise UnknownName(f"dtype = {dtype!r}: known are {', '.join(WORD_BYTES)}")
    bound = bounds.lower(problem, cache, rules)
    rows, refused = [], []
    for name, rule, make in _variants(problem, cache):
        try:
            schedule = make()
        except SizeError as error:
            refused.append((f"{name}, {rule}", str(error)))
            continue
        if schedule.recomputes and not rules.recompute:
            why = f"{name}, {rule} blocks: it computes some vertices more than once"
            refused.append((f"{name}, {rule}", why))
            continue
        cost = judge(schedule)
        rows.append(Row(schedule, rule, cost, cost.io / bound.value))
    if not rows:
        raise SizeError(f"no schedule is left: {'; '.join(why for _, why in refused)}")
    rows.sort(key=lambda row: row.cost.io)
    return Comparison(
        problem, cache, rules, bound, tuple(rows), tuple(refused), copies, WORD_BYTES[dtype]
    )


def _variants(problem: Problem, cache: int) -> Iterable[tuple[str, str, Callable[[], Schedule]]]:
    """Give each generator with its best blocks, and with those of its paper if it has them."""
    for generator in generators(problem.kind):
        yield generator.__name__, "best", lambda g=generator: g(problem, cache)  # type: ignore[misc]
        if "blocks" in inspect.signature(generator).parameters:
            yield (
                generator.__name__,
                "published",
                lambda g=generator: g(problem, cache, blocks="published"),  # type: ignore[misc]
            )
