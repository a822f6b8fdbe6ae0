"""The gradient in a large cache: three passes over blocks of rows, with nothing of n^2 written."""

from __future__ import annotations

from dataclasses import dataclass

from pebble.affine import Affine
from pebble.checks import positive
from pebble.cost import Cost
from pebble.gradient import AttentionGradient
from pebble.problem import require
from pebble.registry import register
from pebble.schedule import Schedule
from pebble.tapes import Index, Tape, whole
from schedules.blocked import add
from schedules.blocks import largest, need, rule_or_sizes
from schedules.small_cache_gradient import (
    add_to_row,
    best_cuts,
    operand_loads,
    products,
    told,
    value,
    write_product,
)


@register(kinds=("gradient",))
def flash_gradient(
    problem: AttentionGradient, cache: int, *, rows: int | None = None, cols: int | None = None
) -> Schedule:
    """Give the gradient for a large cache: what belongs to a pair is formed anew in each pass.

    S1 = A1 X and, where it is not given, h = A3 Y are formed and written. Then rows stay in cache,
    a block at a time, while all keys stream past, in three passes::

        pass l  S1 and the sums l stay; A2 streams                 1 block of r1 rows
        pass v  S1, dO, l and the sums v stay; A2 and h stream     r2 rows
        pass T  S1, dO, l, v and the sums T stay; A2 and h stream  r3 rows

    At last g = A1^T T. The sums l of whole rows are needed for any f = A / l, and those v for any
    p = p1 - v f, so each takes a pass of its own. With W the words of operands that the products
    S1, h and g load (`schedules.blocked.loads`) and n > 1::

        loads     W + n d ceil(n / r1) + 2 n d ceil(n / r2) + 2 n d ceil(n / r3) + 5 n d + 3 n
        stores    2 n d + 2 n + d^2  (+ n d where h is formed)
        computes  those of the graph, and n^2 (6 d + 1) again
        peak      the largest of the products' and
                  pass l  cols d + r1 (d + 1) + h - 1
                  pass v  2 cols d + r2 (2 d + 2) + h
                  pass T  2 cols d + r3 (3 d + 2) + h
                  h = 4 for d > 1, else 3  (pass l: h - 1 is 3, else 2)

    With one row l is A and v is p1, so pass T alone is made: it loads 4 d words and computes
    nothing again, and holds 4 d + max(h, d + 1).

    The best blocks have one key and as many rows as fit, about M / d, M / (2 d) and M / (3 d): for
    a large n that is about 11 n^2 d^2 / M words. (One pass over blocks with S1, dO, l, v and T in
    cache throughout would take 15 n^2 d^2 / M.)

    Parameters
    ----------
    problem : AttentionGradient
        What to compute.
    cache : int
        M, in words.
    rows, cols : int, optional
        Rows in a block of every pass, and keys that stream at once; both or none.

    Raises
    ------
    ProblemError, SizeError
        No gradient; blocks that overflow the cache; sizes that are not positive.

    References
    ----------
    This package, after Dao, arXiv 2307.08691; the phases are those of Li et al., "On fine-grained
    I/O complexity of attention backward passes", arXiv 2410.09397.

    Examples
    --------
    Blocks of 3 rows make 2 passes of the keys, d = 2: 5 * 12 * 2 words stream, 5 * 12 + 3 * 6 stay
    in turn, and W = 24 + 4 for S1 and for g with X and a part of g in cache. 24 + 12 + 4 are
    written.

    >>> import pebble
    >>> problem = pebble.AttentionGradient(n=6, d=2, given_h=True)
    >>> cost = flash_gradient(problem, cache=32, rows=3, cols=1).count()
    >>> cost.loads, cost.stores, cost.peak
    (238, 40, 32)
    """
    require("flash_gradient", problem, "gradient")
    rule, height, width = rule_or_sizes("best", rows, cols)
    cache = positive("cache", cache, "the words of fast memory")
    n, d, found = problem.n, problem.d, passes(problem)
    if rule == "best":
        height, width = 1, 1
    height, width = min(height, n), min(width, n)
    least = max(each.peak(height, width) for each in found)
    if rule == "given":
        need("flash_gradient, given blocks", least, cache, f"rows = {height}, cols = {width}")
    parts = {name: part for name, part in products(problem).items() if name in ("h", "S1", "g")}
    cuts = best_cuts("flash_gradient", parts, cache, other=least)
    tall = {each.name: each.most_rows(n, cache) if rule == "best" else height for each in found}

    words = operand_loads(parts, cuts) + sum(each.loads(n, tall[each.name]) for each in found)
    stores = n * d * (len(parts) - 1) + d * d + sum(n * each.sums for each in found)
    computes = problem.graph.size - problem.graph.input_words
    computes += n * n * (6 * d + 1) if n > 1 else 0
    peaks = [part.peak(cuts[name]) for name, part in parts.items()]
    peaks += [each.peak(tall[each.name], width) for each in found]
    cost = Cost(words, stores, computes, words + computes, max(peaks))

    def write(tape: Tape) -> None:
        for name in parts:
            if name != "g":
                write_product(tape, parts[name], cuts[name])
        for each in found:
            _write_pass(tape, problem, each.name, tall[each.name], width)
        write_product(tape, parts["g"], cuts["g"])

    sizes = {f"{name}_rows": size for name, size in tall.items()}
    sizes = {"cols": width, **sizes, **told(parts, cuts)}
    return Schedule("flash_gradient", problem, cache, sizes, cost, write)


@dataclass(frozen=True)
class Pass:
    """What a pass over blocks of rows holds, in words.

    Parameters
    ----------
    name : str
        The sums that it forms: "l", "v" or "T".
    key : int
        What a key that streams takes.
    row : int
        What is loaded for a row.
    sums : int
        The sums of a row.
    pair : int
        The most that a pair takes beside those.
    """

    name: str
    key: int
    row: int
    sums: int
    pair: int

    def peak(self, rows: int, cols: int) -> int:
        """The most words that it holds, exactly.

        All of a block's rows have their sums when their second key, of the block's most keys at
        once, is worked on.
        """
        return cols * self.key + rows * (self.row + self.sums) + self.pair

    def loads(self, n: int, rows: int) -> int:
        """The words that it loads."""
        return n * self.row + n * self.key * -(-n // rows)

    def most_rows(self, n: int, cache: int) -> int:
        """The rows of the largest block that fits, the keys streaming one by one."""
        return largest(n, lambda rows: self.peak(rows, 1) <= cache)


def passes(problem: AttentionGradient) -> list[Pass]:
    """Give the passes, in their order."""
    d = problem.d
    # f, and the sum, product and new sum of q; or f, q and p1
    pair = 4 if d > 1 else 3
    if problem.n == 1:  # the first terms become the sums T: they are not there before
        return [Pass("T", 2 * d, 2 * d, d, max(pair - d, 1))]
    return [
        Pass("l", d, d, 1, pair - 1),
        Pass("v", 2 * d, 2 * d + 1, 1, pair),
        Pass("T", 2 * d, 2 * d + 2, d, pair),
    ]


def _write_pass(tape: Tape, problem: AttentionGradient, name: str, rows: int, cols: int) -> None:
    """Form the sums "l", "v" or "T" of all rows, and write them."""
    g, n, d, h = problem.graph, problem.n, problem.d, value(problem)
    S1, A2, dO, l, v, T = (g[each] for each in ("S1", "A2", "dO", "l", "v", "T"))
    pairs = products(problem)
    scores, q = pairs["A"].product, pairs["q"].product

    def form_A(i: Affine, j: Index) -> None:
        add(tape, scores, j, i, whole(d))
        tape.compute(g["A"][i, j])
        tape.delete(g["s"][i, j, d - 1])

    def form_p1(i: Affine, j: Index) -> None:
        """Leave f and p1 = f o q."""
        form_A(i, j)
        tape.compute(g["f"][i, j])
        tape.delete(g["A"][i, j])
        add(tape, q, j, i, whole(d))
        tape.compute(g["p1"][i, j])
        tape.delete(g["q"][i, j, d - 1])

    def add_l(i: Affine, j: Index) -> None:
        form_A(i, j)
        add_to_row(tape, l, g["A"], i, j)

    def add_v(i: Affine, j: Index) -> None:
        form_p1(i, j)
        tape.delete(g["f"][i, j])
        add_to_row(tape, v, g["p1"], i, j)

    def add_T(i: Affine, j: Index) -> None:
        form_p1(i, j)
        tape.compute(g["p2"][i, j])
        tape.delete(g["f"][i, j])
        tape.compute(g["p"][i, j])
        tape.delete(g["p1"][i, j], g["p2"][i, j])
        for k in tape.each(d):
            tape.compute(g["t"][i, j, k])
            if not j.first:
                tape.compute(T[i, j, k])
                tape.delete(g["t"][i, j, k], T[i, j - 1, k])
        tape.delete(g["p"][i, j])

    step = {"l": add_l, "v": add_v, "T": add_T}[name]
    for I in tape.blocks(n, rows):
        stay = [S1[I, :, d - 1]]
        if name != "l":
            stay.append(dO[I, :])
            if n > 1:  # else l is A, and v is p1
                stay += [l[I, n - 1], v[I, n - 1]] if name == "T" else [l[I, n - 1]]
        tape.load(*stay)
        for J in tape.blocks(n, cols):
            keys = [A2[J, :]] if name == "l" else [A2[J, :], h(J, whole(d))]
            tape.load(*keys)
            for j in tape.each(J):
                for i in tape.each(I):
                    step(i, j)
            tape.delete(*keys)
        sums = {"l": l[I, n - 1], "v": v[I, n - 1], "T": T[I, n - 1, :]}[name]
        tape.store(sums)
        tape.delete(sums, *stay)
