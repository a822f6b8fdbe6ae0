"""Hypothesis strategies for attention problems, and for schedules with their caches and blocks."""

from hypothesis import reject
from hypothesis import strategies as st

from pebble.attention import Attention
from pebble.errors import SizeError
from schedules import flash1, flash2, small_cache, standard

FLASH = (flash1, flash2)
GENERATORS = (*FLASH, small_cache, standard)
BOTH = ("plain", "online")


@st.composite
def problems(draw, softmax=BOTH, most=6, blocks=("open", "some")):
    """Draw a problem of at most `most` queries and keys, with all its options.

    The block of an online softmax is "open" (None), "some", or "whole": all keys.
    """
    n, keys = draw(st.integers(1, most)), draw(st.integers(1, most))
    d, value_dim = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    kind = draw(st.sampled_from(softmax))
    block = None
    if kind == "online":
        kinds = {"open": st.none(), "some": st.integers(1, keys), "whole": st.just(keys)}
        block = draw(st.one_of(*(kinds[name] for name in blocks)))
    return Attention(n, d, keys, value_dim, kind, block, draw(st.booleans()))


@st.composite
def schedules(draw, generators=GENERATORS, softmax=BOTH, most=6):
    """Draw a schedule: its generator, problem and cache, and best, published or given blocks."""
    generator = draw(st.sampled_from(generators))
    blocks = ("open", "some") if generator in FLASH else ("open", "whole")
    problem = draw(problems(softmax, most, blocks))
    choice = draw(st.sampled_from(["best", "published", "given"]))
    asked = {"blocks": choice}
    if choice == "given":
        unit = (problem.block or 1) if generator in FLASH else 1
        cols = unit * draw(st.integers(1, problem.keys // unit + 1))
        asked = {"rows": draw(st.integers(1, problem.n + 1)), "cols": cols}
    cache = draw(st.integers(4, 40) | st.integers(20, 250))
    try:
        return generator(problem, cache, **asked)
    except SizeError:
        reject()
