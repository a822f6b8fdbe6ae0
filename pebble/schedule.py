"""A schedule: a tile program for a problem and a cache, with its stated cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pebble.cost import Cost
from pebble.counter import count
from pebble.errors import DataError
from pebble.moves import Move
from pebble.problem import Problem
from pebble.rules import HONG_KUNG, Rules
from pebble.start import check_weights
from pebble.tapes import Program, Tape

if TYPE_CHECKING:
    from pebble.expander import Expansion
    from pebble.waste import Waste


@dataclass(frozen=True)
class Schedule:
    """One way to pebble a problem's graph, as a certificate that the referee can check.

    Parameters
    ----------
    name : str
        The algorithm.
    problem : Problem
        What it computes.
    cache : int
        M, in words.
    blocks : mapping of str to int
        The sizes of its blocks.
    closed_form : Cost
        What its formula says it costs; the count and the replay must agree.
    write : callable
        Writes the tile moves on a tape.

    Examples
    --------
    >>> import pebble, schedules
    >>> schedule = schedules.flash2(pebble.Attention(n=12, d=2), cache=30)
    >>> schedule
    flash2(n=12, d=2, cache=30, rows=4, cols=1)
    >>> schedule.count().io
    192
    >>> schedule.count() == schedule.replay() == schedule.closed_form
    True
    """

    name: str
    problem: Problem
    cache: int
    blocks: Mapping[str, int]
    closed_form: Cost
    write: Callable[[Tape], None]

    @cached_property
    def program(self) -> Program:
        """The loops and tile moves."""
        tape = Tape()
        self.write(tape)
        return tape.program

    def count(self, rules: Rules = HONG_KUNG) -> Cost:
        """Add up the tiles of the program; no move is checked. Fast for any size.

        Parameters
        ----------
        rules : Rules
            Only the weights matter, and those of whole families alone.

        Raises
        ------
        UnknownName
            A weight of what is no family of the graph.
        """
        self._check_weights(rules)
        return count(self.program, rules)

    def replay(
        self, rules: Rules = HONG_KUNG, progress: Callable[[int], None] | None = None
    ) -> Cost:
        """Have the referee check every move, and give the cost that it counts.

        Parameters
        ----------
        rules : Rules
            The game's rules.
        progress : callable, optional
            Called now and then with the number of moves judged so far.

        Raises
        ------
        IllegalMove, Incomplete
            The first move that the rules forbid; outputs that do not end blue.
        UnknownName
            A weight of what is no family of the graph.
        """
        from pebble.playback import replay

        return replay(self._expansion(rules), self.cache, progress)

    @cached_property
    def recomputes(self) -> bool:
        """Whether it computes some vertex more than once."""
        graph = self.problem.graph
        return bool(self.closed_form.computes > graph.size - graph.input_words)

    def execute(self, *operands: ArrayLike, **named: ArrayLike) -> dict[str, NDArray[np.float64]]:
        """Run the moves on numbers, in a fast memory that holds only what is red.

        Parameters
        ----------
        *operands, **named : array_like
            The inputs, in the order of ``problem.operands`` (which has their shapes) or by name;
            finite real numbers. Forward: Q, K, V. Backward: Q, K, V, O, dO, Lse.

        Returns
        -------
        dict of str to array
            The outputs by name. Forward: ``"O"``, of shape (n, value_dim), and ``"Lse"``, of shape
            (n,), if the problem has it. Backward: ``"dQ"``, ``"dK"``, ``"dV"``.

        Raises
        ------
        DataError
            Operands that are missing, unknown or given twice; wrong shapes, numbers that are not
            finite, or an overflow on the way.
        IllegalMove, Incomplete
            The moves are refereed too.

        Examples
        --------
        With one key, attention returns that key's value.

        >>> import pebble, schedules
        >>> schedule = schedules.best(pebble.Attention(n=2, d=1, keys=1), cache=16)
        >>> schedule.execute([[1.0], [2.0]], [[3.0]], [[5.0]])["O"].tolist()
        [[5.0], [5.0]]
        """
        from pebble.executor import execute

        return execute(self._expansion(HONG_KUNG), self.cache, self._by_name(operands, named))

    def _by_name(
        self, operands: tuple[ArrayLike, ...], named: Mapping[str, ArrayLike]
    ) -> dict[str, ArrayLike]:
        names = list(self.problem.operands)
        if len(operands) > len(names):
            raise DataError(f"{len(operands)} operands: there are {len(names)}, {', '.join(names)}")
        given = dict(zip(names, operands, strict=False))
        for name in named:
            if name not in names:
                raise DataError(f"{name} is no operand: they are {', '.join(names)}")
            if name in given:
                raise DataError(f"{name} is given twice, by its place and by its name")
        return given | dict(named)

    def waste(self, rules: Rules = HONG_KUNG) -> Waste:
        """Report what the schedule does in vain: dead loads, stores, computes, and recomputation.

        Parameters
        ----------
        rules : Rules
            The game's rules. With ``Rules(redundant=True)``, moves that change nothing are legal,
            and reported as dead.

        Raises
        ------
        IllegalMove, Incomplete
            The moves are refereed too.

        Examples
        --------
        >>> import pebble, schedules
        >>> schedules.flash2(pebble.Attention(n=6, d=2), cache=30).waste().none
        True
        """
        from pebble.waste import waste_of_program

        return waste_of_program(self._expansion(rules), self.cache)

    def moves(self) -> Iterator[Move]:
        """Give the moves one by one.

        Examples
        --------
        >>> import pebble, schedules
        >>> schedule = schedules.flash2(pebble.Attention(n=1, d=1), cache=8)
        >>> [str(move) for move in schedule.moves()][:4]
        ['load Q[0,0]', 'load K[0,0]', 'load V[0,0]', 'compute x[0,0,0]']
        """
        return self._expansion(HONG_KUNG).moves()

    def _expansion(self, rules: Rules) -> Expansion:
        from pebble.expander import Expansion

        self._check_weights(rules)
        return Expansion(self.problem.graph, self.program, rules)

    def _check_weights(self, rules: Rules) -> None:
        if rules.weights:
            check_weights(rules, {family.name for family in self.problem.graph.families})

    def __repr__(self) -> str:
        told = {**self.problem.sizes, "cache": self.cache, **self.blocks}
        return f"{self.name}({', '.join(f'{k}={v}' for k, v in told.items())})"
