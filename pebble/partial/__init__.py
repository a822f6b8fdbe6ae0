"""The game with partial computation: a vertex aggregates its predecessors one by one.

`pebble.optimum` finds its least I/O under ``Rules(partial=True)``.

References
----------
Papp, Sobczyk, Yzelman, "The impact of partial computations on the red-blue pebble game", SPAA
2025, arXiv 2506.10854.
"""

from pebble.partial.attention import PartialSchedule, attention_graph
from pebble.partial.convert import from_ordinary, plain_schedule
from pebble.partial.flash import flash2
from pebble.partial.game import PartialGame
from pebble.partial.moves import PartialMove
from pebble.partial.replay import decode, encode, replay
from pebble.partial.rules import PartialBreach
from pebble.partial.tiles import small_cache

__all__ = [
    "PartialBreach",
    "PartialGame",
    "PartialMove",
    "PartialSchedule",
    "attention_graph",
    "decode",
    "encode",
    "flash2",
    "from_ordinary",
    "plain_schedule",
    "replay",
    "small_cache",
]
