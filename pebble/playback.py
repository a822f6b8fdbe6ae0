"""The referee over a tile program: a buffer of moves at a time, with errors that name the move."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pebble.checks import positive
from pebble.cost import Cost
from pebble.errors import IllegalMove
from pebble.expander import Expansion
from pebble.explain import explain, unfinished
from pebble.referee import INDEX, USED, Words, cost_of, new_tally, run_stream
from pebble.rules import BLUE, Breach
from pebble.start import start_state

Progress = Callable[[int], None]


class Referee:
    """Plays a program's moves under the rules. Iterating gives each buffer once it is judged.

    Parameters
    ----------
    expansion : Expansion
        The program, its graph and the rules.
    cache : int
        M, in words.
    """

    def __init__(self, expansion: Expansion, cache: int) -> None:
        self.expansion, self.cache = expansion, positive("cache", cache, "the words of fast memory")
        self.state = start_state(expansion.graph)
        self.tally = new_tally()

    def __iter__(self) -> Iterator[tuple[Words, int]]:
        switches = self.expansion.rules.switches
        for words, length in self.expansion.streams():
            breach, at = run_stream(words, length, self.state, self.tally, self.cache, switches)
            if breach:
                raise self._illegal(Breach(breach), words, at)
            yield words, length
        graph = self.expansion.graph
        missing = [graph.label(v) for v in graph.outputs if not self.state[v] & BLUE]
        if missing:
            raise unfinished(int(self.tally[INDEX]), missing, graph.output_words)

    def _illegal(self, breach: Breach, words: Words, at: int) -> IllegalMove:
        graph, rules = self.expansion.graph, self.expansion.rules
        move = self.expansion.move(int(words[at]), int(words[at + 1]))
        used, index = int(self.tally[USED]), int(self.tally[INDEX])
        why = explain(breach, move, graph, self.state, used, self.cache, rules)
        return IllegalMove(index, move, breach, why)


def replay(expansion: Expansion, cache: int, progress: Progress | None = None) -> Cost:
    """Referee every move of a program and give its cost.

    Parameters
    ----------
    expansion : Expansion
        The program, its graph and the rules.
    cache : int
        M, in words.
    progress : callable, optional
        Called with the number of moves judged so far, after each buffer.

    Raises
    ------
    IllegalMove
        The first move that the rules forbid.
    Incomplete
        The program ends before every output is blue.
    """
    referee = Referee(expansion, cache)
    for _ in referee:
        if progress is not None:
            progress(int(referee.tally[INDEX]))
    return cost_of(referee.tally)
