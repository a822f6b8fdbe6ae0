"""Red-blue pebble games on attention's computation graphs, with every I/O counted exactly.

Examples
--------
>>> import pebble, schedules
>>> problem = pebble.Attention(n=1024, d=64)
>>> schedule = schedules.flash2(problem, cache=16384)
>>> schedule.count().io
1310720
>>> round(schedule.count().io / pebble.bounds.lower(problem, cache=16384).value, 2)
1.27
"""

from pebble import bounds, classic, errors, interchange, masks, partial
from pebble.attention import Attention
from pebble.bounds import Bound
from pebble.compare import Comparison, compare
from pebble.cost import Cost
from pebble.curves import Curve, belady_curve, lru_curve
from pebble.errors import (
    DataError,
    FileError,
    GraphError,
    IllegalMove,
    Incomplete,
    MaskError,
    NotationError,
    PebbleError,
    ProblemError,
    ProgramError,
    SizeError,
    TraceError,
    UnknownName,
)
from pebble.game import Game
from pebble.gradient import AttentionGradient
from pebble.graph import Graph, explicit
from pebble.milp import optimum_milp
from pebble.moves import Move, Vertex
from pebble.optimum import Optimum, Undecided, optimum
from pebble.play import Play, play
from pebble.registry import best, generators, register
from pebble.rules import HONG_KUNG, Breach, Op, Rules
from pebble.schedule import Schedule
from pebble.sweep import Sweep, sweep
from pebble.tapes import Tape
from pebble.tracing import trace

__all__ = [
    "HONG_KUNG",
    "Attention",
    "AttentionGradient",
    "Bound",
    "Breach",
    "Comparison",
    "Cost",
    "Curve",
    "DataError",
    "FileError",
    "Game",
    "Graph",
    "GraphError",
    "IllegalMove",
    "Incomplete",
    "MaskError",
    "Move",
    "NotationError",
    "Op",
    "Optimum",
    "PebbleError",
    "Play",
    "ProblemError",
    "ProgramError",
    "Rules",
    "Schedule",
    "SizeError",
    "Sweep",
    "Tape",
    "TraceError",
    "Undecided",
    "UnknownName",
    "Vertex",
    "belady_curve",
    "best",
    "bounds",
    "classic",
    "compare",
    "errors",
    "explicit",
    "generators",
    "interchange",
    "lru_curve",
    "masks",
    "optimum",
    "optimum_milp",
    "partial",
    "play",
    "register",
    "sweep",
    "trace",
]
