"""Attention under a mask: its graph, the tapes that schedules write on, and their interpreters."""

from pebble.masked.graph import MaskedGraph
from pebble.masked.schedule import MaskedSchedule

__all__ = ["MaskedGraph", "MaskedSchedule"]
