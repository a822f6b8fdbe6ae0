"""The generators of schedules that are known: `compare` and `best` look at these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from pebble.attention import Attention
from pebble.checks import positive
from pebble.errors import PebbleError, SizeError
from pebble.schedule import Schedule


class Generator(Protocol):
    """A function that gives a schedule for a problem and a cache."""

    __name__: str

    def __call__(self, problem: Attention, cache: int) -> Schedule:
        """Give the schedule with its best blocks; SizeError where the cache is too small."""


_GENERATORS: dict[str, Generator] = {}
F = TypeVar("F", bound=Callable[..., Schedule])


def register(generator: F) -> F:
    """Make a generator known to `compare` and `best`; a decorator.

    A later generator of the same name takes the place of an earlier one.
    """
    _GENERATORS[generator.__name__] = generator
    return generator


def generators() -> tuple[Generator, ...]:
    """Give the registered generators.

    Raises
    ------
    PebbleError
        None is registered yet.
    """
    if not _GENERATORS:
        raise PebbleError("no schedule is registered: import schedules first")
    return tuple(_GENERATORS.values())


def best(problem: Attention, cache: int) -> Schedule:
    """Give the cheapest known schedule: the least I/O, the first registered among equals.

    Parameters
    ----------
    problem : Attention
        What to compute.
    cache : int
        M, in words.

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
    for generator in generators():
        try:
            found.append(generator(problem, cache))
        except SizeError as error:
            refusals.append(str(error))
    if not found:
        raise SizeError("; ".join(refusals))
    return min(found, key=lambda schedule: schedule.closed_form.io)
