"""Lower bounds on the I/O, exact integers that say what they assume."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pebble.attention import Attention
from pebble.bounds import curves
from pebble.bounds.bound import Bound
from pebble.bounds.gradients import (
    all_products,
    all_products_once,
    embedded,
    gradient_sums,
    gradient_trees,
    saved_sums,
    theory_sums,
    theory_sums_once,
)
from pebble.bounds.literature import (
    any_multiplication,
    fft,
    hong_kung,
    product_hong_kung,
    product_reduction,
    product_segments,
    product_smith,
    product_trivial,
    score_trees,
    trivial,
)
from pebble.bounds.segments import all_sums, all_sums_once, output_sums
from pebble.checks import positive
from pebble.gradient import AttentionGradient
from pebble.problem import Problem
from pebble.rules import HONG_KUNG, Rules

__all__ = [
    "Bound",
    "all_products",
    "all_products_once",
    "all_sums",
    "all_sums_once",
    "any_multiplication",
    "curves",
    "embedded",
    "every",
    "fft",
    "gradient_sums",
    "gradient_trees",
    "hong_kung",
    "lower",
    "output_sums",
    "product_hong_kung",
    "product_reduction",
    "product_segments",
    "product_smith",
    "product_trivial",
    "saved_sums",
    "score_trees",
    "theory_sums",
    "theory_sums_once",
    "trivial",
]


def every(problem: Problem, cache: int, rules: Rules = HONG_KUNG) -> tuple[Bound, ...]:
    """Give all lower bounds that apply and are positive, the largest first.

    Weights above 1 only add I/O and take cache, so every bound holds with them too; only the
    trivial one counts them.

    Parameters
    ----------
    problem : Attention or AttentionGradient
        The problem.
    cache : int
        M, in words. Bounds are given for a cache too small for any game too: they hold of none.
    rules : Rules
        The game. Without recomputation theorem B is stronger; with sliding, bounds that rest on
        Hong and Kung's partitions are left out.

    Raises
    ------
    SizeError
        A cache that is no positive integer.

    Examples
    --------
    >>> from pebble.attention import Attention
    >>> [bound.name for bound in every(Attention(n=64, d=4), cache=32)]
    ['all sums', 'output sums', 'product reduction', 'trivial', 'score trees']
    """
    cache = positive("cache", cache, "the words of fast memory")
    found = [trivial(problem, rules), *APPLY[problem.kind](problem, cache, rules)]
    kept = [bound for bound in found if bound.value > 0]
    return tuple(sorted(kept, key=lambda bound: -bound.value))


def forward(problem: Attention, cache: int, rules: Rules) -> list[Bound]:
    """Give those that hold for the forward pass."""
    found = [output_sums(problem, cache)]
    sums = [bound for bound in [all_sums(problem, cache)] if bound]
    if not rules.recompute:  # what holds with recomputation holds without it too
        sums.append(all_sums_once(problem, cache))
    found += sorted(sums, key=lambda bound: -bound.value)[:1]
    if not rules.sliding:
        found.append(score_trees(problem, cache))
    if problem.pairs == problem.n * problem.keys:
        found.append(product_reduction(problem, cache))
    return found


def backward(problem: Attention, cache: int, rules: Rules) -> list[Bound]:
    """Give those that hold for the backward pass."""
    products = [bound for bound in [all_products(problem, cache)] if bound]
    if not rules.recompute:
        products.append(all_products_once(problem, cache))
    found = sorted(products, key=lambda bound: -bound.value)[:1]
    if not rules.sliding:
        found.append(gradient_trees(problem, cache))
    return [gradient_sums(problem, cache), *found]


def saved_backward(problem: Attention, cache: int, rules: Rules) -> list[Bound]:
    """Give those that hold for the backward pass with saved weights."""
    return [saved_sums(problem, cache)]


def double_backward(problem: Attention, cache: int, rules: Rules) -> list[Bound]:
    """Give those that hold for the double backward pass."""
    return embedded(problem, cache, rules.recompute)


def gradient(problem: AttentionGradient, cache: int, rules: Rules) -> list[Bound]:
    """Give those that hold for the gradient in the theory form."""
    found = [theory_sums(problem, cache)]
    return found if rules.recompute else [*found, theory_sums_once(problem, cache)]


APPLY: dict[str, Callable[[Any, int, Rules], list[Bound]]] = {
    "forward": forward,
    "backward": backward,
    "saved backward": saved_backward,
    "double_backward": double_backward,
    "gradient": gradient,
}


def lower(problem: Problem, cache: int, rules: Rules = HONG_KUNG) -> Bound:
    """Give the best lower bound that applies; see `every`.

    Examples
    --------
    >>> from pebble.attention import Attention
    >>> bound = lower(Attention(n=4, d=2), cache=1000)
    >>> bound.value, bound.name
    (32, 'trivial')
    """
    return every(problem, cache, rules)[0]
