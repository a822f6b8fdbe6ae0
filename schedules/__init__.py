"""Schedules for attention: one algorithm a module, each a generator of `pebble.Schedule` values.

Every generator takes a problem and a cache, and chooses the cheapest blocks that fit
(``blocks="best"``), takes those of the paper (``blocks="published"``), or those that are given
(``rows=``, ``cols=``). `best` picks the cheapest of all.
"""

try:
    from pebble.schedule import Schedule
except ImportError as error:
    error.add_note(
        "schedules needs the pebble of attention-pebbling. PyPI's Pebble (process pools) has the "
        "same import name: install attention-pebbling in an environment without it."
    )
    raise

from pebble.registry import best
from schedules.flash1 import flash1
from schedules.flash2 import flash2
from schedules.small_cache import small_cache
from schedules.standard import standard

__all__ = ["Schedule", "best", "flash1", "flash2", "small_cache", "standard"]
