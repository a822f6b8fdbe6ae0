"""Lower bounds on the I/O, exact integers that say what they assume."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard, cast

from pebble.attention import Attention
from pebble.bounds import curves
from pebble.bounds.bound import Bound, Sizes, Touched
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
from pebble.bounds.graphs import graph_bounds
from pebble.bounds.inputs_outputs import inputs_outputs
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
from pebble.bounds.partition import least_parts, partition
from pebble.bounds.patterns import output_sums_of_pattern, score_trees_of_pattern
from pebble.bounds.segments import all_sums, all_sums_once, output_sums
from pebble.bounds.spectral import published_spectral, spectral
from pebble.bounds.wavefront import published_wavefront, wavefront
from pebble.checks import positive
from pebble.gradient import AttentionGradient
from pebble.graph import ComputationGraph
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
    "graph_bounds",
    "hong_kung",
    "inputs_outputs",
    "least_parts",
    "lower",
    "output_sums",
    "output_sums_of_pattern",
    "partition",
    "product_hong_kung",
    "product_reduction",
    "product_segments",
    "product_smith",
    "product_trivial",
    "published_spectral",
    "published_wavefront",
    "saved_sums",
    "score_trees",
    "score_trees_of_pattern",
    "spectral",
    "theory_sums",
    "theory_sums_once",
    "trivial",
    "wavefront",
]


def every(
    problem: Problem | ComputationGraph, cache: int, rules: Rules = HONG_KUNG
) -> tuple[Bound, ...]:
    """Give all lower bounds that apply and are positive, the largest first.

    Weights above 1 only add I/O and take cache, so every bound holds with them too; only the
    trivial one counts them.

    Parameters
    ----------
    problem : Attention, AttentionGradient or a graph
        The problem; of a graph, `graph_bounds` says which bounds are tried up to which size.
    cache : int
        M, in words. Bounds are given for a cache too small for any game too: they hold of none.
    rules : Rules
        The game. Without recomputation theorem B is stronger; with sliding, bounds that rest on
        Hong and Kung's partitions are left out; with partial computation there is only the trivial
        one.

    Raises
    ------
    SizeError
        A cache that is no positive integer.

    Examples
    --------
    >>> from pebble.attention import Attention
    >>> [bound.name for bound in every(Attention(n=64, d=4), cache=32)]
    ['all sums', 'output sums', 'product reduction', 'trivial', 'score trees']
    >>> from pebble.classic import fft
    >>> [bound.name for bound in every(fft(6), cache=4, rules=Rules(recompute=False))]
    ['wavefront', 'spectral', 'trivial']
    """
    cache = positive("cache", cache, "the words of fast memory")
    if rules.partial:  # the other proofs are of games that compute a vertex at once
        known = trivial if _is_problem(problem) else inputs_outputs
        found = [known(problem, rules)]  # type: ignore[arg-type]
    elif _is_problem(problem):
        found = [trivial(problem, rules), *APPLY[problem.kind](problem, cache, rules)]
    else:
        found = graph_bounds(cast(ComputationGraph, problem), cache, rules)
    kept = [bound for bound in found if bound.value > 0]
    return tuple(sorted(kept, key=lambda bound: -bound.value))


def _is_problem(problem: Problem | ComputationGraph) -> TypeGuard[Problem]:
    return hasattr(problem, "kind")


def forward(problem: Sizes, cache: int, rules: Rules) -> list[Bound]:
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


def backward(problem: Sizes, cache: int, rules: Rules) -> list[Bound]:
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


def masked_forward(problem: Attention, cache: int, rules: Rules) -> list[Bound]:
    """Give those that hold for the forward pass under a mask."""
    found = [output_sums_of_pattern(problem, cache)]
    if not rules.sliding:
        found.append(score_trees_of_pattern(problem, cache))
    return [*forward(Touched.of(problem), cache, rules), *found]


def masked_backward(problem: Attention, cache: int, rules: Rules) -> list[Bound]:
    """Give those that hold for the backward pass under a mask."""
    return backward(Touched.of(problem), cache, rules)


APPLY: dict[str, Callable[[Any, int, Rules], list[Bound]]] = {
    "forward": forward,
    "backward": backward,
    "saved backward": saved_backward,
    "double_backward": double_backward,
    "gradient": gradient,
    "masked forward": masked_forward,
    "masked backward": masked_backward,
}


def lower(problem: Problem | ComputationGraph, cache: int, rules: Rules = HONG_KUNG) -> Bound:
    """Give the best lower bound that applies; see `every`.

    Examples
    --------
    >>> from pebble.attention import Attention
    >>> bound = lower(Attention(n=4, d=2), cache=1000)
    >>> bound.value, bound.name
    (32, 'trivial')
    """
    return every(problem, cache, rules)[0]
