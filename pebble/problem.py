"""What schedules, bounds and reports need to know of a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple
from typing import Any, Protocol
from weakref import WeakValueDictionary

from pebble.errors import ProblemError

KINDS = {
    "forward": "the forward pass of attention",
    "backward": "the backward pass of attention",
    "saved backward": "the backward pass of attention with saved_weights",
    "double_backward": "the double backward pass of attention",
    "masked forward": "the forward pass of attention under a mask",
    "masked backward": "the backward pass of attention under a mask",
    "gradient": "the gradient of attention in the theory form",
}


class Problem(Protocol):
    """What is computed; `pebble.Attention` and `pebble.AttentionGradient` are such."""

    @property
    def kind(self) -> str:
        """Which schedules and bounds are for it: one of `KINDS`."""

    @property
    def settled(self) -> Any:
        """The problem with nothing left open to the schedule, so that it has a graph."""

    @property
    def sizes(self) -> Mapping[str, int | str]:
        """What tells it from others, for a short notation."""

    @property
    def title(self) -> str:
        """What is computed, in words."""

    def to_dict(self) -> dict[str, object]:
        """Give it as plain values, for JSON."""

    @property
    def operands(self) -> Mapping[str, tuple[int, ...]]:
        """The inputs and their shapes, in the order in which an execution takes them."""

    @property
    def graph(self) -> Any:
        """The computation graph: a `FamilyGraph`, or a `MaskedGraph`."""

    @property
    def d(self) -> int:
        """The dimension that a cache is measured against."""


def require(name: str, problem: Problem, *kinds: str) -> None:
    """Refuse a problem that a schedule or a bound is not for.

    Raises
    ------
    ProblemError
        The problem is of none of the kinds.

    Examples
    --------
    >>> from pebble.attention import Attention
    >>> require("flash2", Attention(n=4, d=2, direction="backward"), "forward")
    Traceback (most recent call last):
    pebble.errors.ProblemError: flash2 is for the forward pass of attention, not for the backward
    pass of attention
    """
    kind = getattr(problem, "kind", None)
    if kind not in kinds:
        wanted = " or ".join(KINDS[each] for each in kinds)
        found = KINDS.get(kind, f"problem = {problem!r}") if kind else f"problem = {problem!r}"
        raise ProblemError(f"{name} is for {wanted}, not for {found}")


# Graphs that are in use, by their problem: tiles belong to the families of one graph, and a tile
# of one problem is to be a tile of an equal one.
_GRAPHS: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()


def shared_graph(problem: Any, build: Callable[[], Any]) -> Any:
    """Give the graph of a problem (a dataclass), the same one for equal problems."""
    key = (type(problem), *astuple(problem))
    made = _GRAPHS.get(key)
    if made is None:
        made = _GRAPHS[key] = build()
    return made
