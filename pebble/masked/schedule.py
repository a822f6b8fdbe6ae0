"""A schedule for a problem with a mask, with the surface of `pebble.Schedule`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pebble.cost import Cost
from pebble.errors import ProgramError
from pebble.masked.tapes import Write, counted, written
from pebble.masked.tiles import count_tiles
from pebble.rules import HONG_KUNG, Rules
from pebble.schedule import Schedule

if TYPE_CHECKING:
    from pebble.tapes import Program


@dataclass(frozen=True, repr=False)
class MaskedSchedule(Schedule):
    """One way to pebble a problem's graph under a mask.

    Parameters are those of `pebble.Schedule`; `write` is a generator over a `pebble.masked.tapes`
    tape. Counting runs each loop's body once, whatever the sizes; replays and executions write the
    moves block by block.
    """

    write: Write  # type: ignore[assignment]

    @cached_property
    def program(self) -> Program:
        """There are no loops to show: the moves depend on the mask.

        Raises
        ------
        ProgramError
            Always.
        """
        raise ProgramError(f"{self.name} under a mask is no tile program: see its moves()")

    def count(self, rules: Rules = HONG_KUNG) -> Cost:
        """Add up the moves; none is checked. Fast for any size, if every vertex weighs 1.

        Parameters
        ----------
        rules : Rules
            Only the weights matter. With weights, the moves are written and weighed one by one.

        Raises
        ------
        UnknownName
            A weight of what is no family of the graph.
        """
        if rules.weights:
            weighed: Cost = self._expansion(rules).count()
            return weighed
        found = counted(self.problem.graph, self.write)
        loads, stores, computes, deletes = (int(words) for words in found.words)
        return Cost(loads, stores, computes, deletes, int(found.peak))

    @property
    def tiles(self) -> int | None:
        """The tiles of its blocks, rows x cols, that aren't empty; None if it has no such."""
        sizes = self.blocks
        if not {"rows", "cols"} <= set(sizes):
            return None
        return count_tiles(self.problem.graph.mask, sizes["rows"], sizes["cols"]).visited

    def _expansion(self, rules: Rules) -> Any:
        from pebble.masked.expansion import CodeExpansion

        self._check_weights(rules)
        graph = self.problem.graph
        return CodeExpansion(graph, lambda: written(graph, self.write), rules)

    def with_cache(self, cache: int) -> MaskedSchedule:
        """Give the same moves in another cache."""
        return replace(self, cache=cache)
