"""Schedules for attention: one algorithm a module, each a generator of `pebble.Schedule` values.

Every generator takes a problem and a cache, and chooses the cheapest blocks that fit
(``blocks="best"``), takes those of the paper, where it has a rule (``blocks="published"``), or
those that are given (``rows=``, ``cols=``). `best` picks the cheapest of all.
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
from schedules.block_sparse import block_sparse
from schedules.flash1 import flash1
from schedules.flash1_backward import flash1_backward
from schedules.flash2 import flash2
from schedules.flash2_backward import flash2_backward, flash2_backward_as_printed
from schedules.flash_gradient import flash_gradient
from schedules.flashbob import flashbob, three_pass_double_backward
from schedules.gather import gather
from schedules.reordered import Reordered, reordered
from schedules.small_cache import small_cache
from schedules.small_cache_backward import small_cache_backward
from schedules.small_cache_gradient import small_cache_gradient
from schedules.standard import standard
from schedules.standard_backward import standard_backward
from schedules.two_pass_backward import two_pass_backward

__all__ = [
    "Reordered",
    "Schedule",
    "best",
    "block_sparse",
    "flash1",
    "flash1_backward",
    "flash2",
    "flash2_backward",
    "flash2_backward_as_printed",
    "flash_gradient",
    "flashbob",
    "gather",
    "reordered",
    "small_cache",
    "small_cache_backward",
    "small_cache_gradient",
    "standard",
    "standard_backward",
    "three_pass_double_backward",
    "two_pass_backward",
]
