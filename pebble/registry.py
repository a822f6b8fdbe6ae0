"""The generators of schedules that are known: `compare` and `best` look at these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar, overload

from pebble.checks import positive
from pebble.errors import PebbleError, SizeError, UnknownName
from pebble.problem import KINDS, Problem
from pebble.rules import HONG_KUNG, Rules
from pebble.schedule import Schedule


class Generator(Protocol):
    """A function that gives a schedule for a problem and a cache."""

    __name__: str

    def __call__(self, problem: Any, cache: int) -> Schedule:
        """Give the schedule with its best blocks; SizeError where the cache is too small."""


_GENERATORS: dict[str, tuple[Generator, tuple[str, ...]]] = {}
F = TypeVar("F", bound=Callable[..., Schedule])


@overload
def register(generator: F) -> F: ...
@overload
def register(*, kinds: tuple[str, ...]) -> Callable[[F], F]: ...
def register(
    generator: F | None = None, *, kinds: tuple[str, ...] = ("forward",)
) -> F | Callable[[F], F]:
    """Make a generator known to `compare` and `best`; a decorator.

    A later generator of the same name takes the place of an earlier one.

    Parameters
    ----------
    generator : callable
        Takes a problem and a cache, and gives a schedule.
    kinds : tuple of str
        The kinds of problems that it is for, see `pebble.problem.KINDS`: "forward" if it is not
        said.

    Raises
    ------
    UnknownName
        A kind that is not known.

    Examples
    --------
    >>> import schedules
    >>> sorted(generator.__name__ for generator in generators("forward"))
    ['flash1', 'flash2', 'small_cache', 'standard']
    """
    for kind in kinds:
        if kind not in KINDS:
            raise UnknownName(f"kind = {kind!r}: known are {', '.join(KINDS)}")

    def known(function: F) -> F:
        _GENERATORS[function.__name__] = (function, tuple(kinds))
        return function

    return known if generator is None else known(generator)


def generators(kind: str = "forward") -> tuple[Generator, ...]:
    """Give the registered generators for a kind of problem.

    Raises
    ------
    PebbleError
        None is registered yet.
    """
    found = tuple(generator for generator, kinds in _GENERATORS.values() if kind in kinds)
    if not found:
        raise PebbleError(f"no schedule is registered for {kind!r}: import schedules first")
    return found


def best(problem: Problem, cache: int, rules: Rules = HONG_KUNG) -> Schedule:
    """Give the cheapest known schedule: the least I/O, the first registered among equals.

    Parameters
    ----------
    problem : Attention or AttentionGradient
        What to compute.
    cache : int
        M, in words.
    rules : Rules
        The game. Without recomputation, only schedules that compute each vertex once are looked at.

    Raises
    ------
    SizeError
        No schedule fits the cache; the message has what each of them needs.

    Examples
    --------
    >>> import pebble, schedules
    >>> problem = pebble.Attention(n=64, d=8)
    >>> schedules.best(problem, cache=32).name, schedules.best(problem, cache=1024).name
    ('small_cache', 'flash2')
    """
    positive("cache", cache, "the words of fast memory")
    found, refusals = [], []
    for generator in generators(problem.kind):
        try:
            schedule = generator(problem, cache)
        except SizeError as error:
            refusals.append(str(error))
            continue
        if schedule.recomputes and not rules.recompute:
            refusals.append(f"{schedule.name} computes some vertices more than once")
        else:
            found.append(schedule)
    if not found:
        raise SizeError("; ".join(refusals))
    return min(found, key=lambda schedule: schedule.closed_form.io)
