"""FlashAttention-2 under a mask, with the keys gathered that each block of queries uses."""

from __future__ import annotations

from pebble.attention import Attention
from pebble.problem import require
from pebble.registry import register
from pebble.schedule import Schedule
from schedules.masked.flash2 import gather as masked_gather


@register(kinds=("masked forward",))
def gather(
    problem: Attention,
    cache: int,
    *,
    rows: int | None = None,
    cols: int | None = None,
) -> Schedule:
    """Give FlashAttention-2 that loads, of each tile, the keys alone that its queries use.

    With the queries of a block in fast memory, keys pass `cols` at a time, without those that no
    query of the block attends to::

        I/O   A d + U (d + value_dim) + A value_dim  (+ A with the logsumexp)

    where A queries attend to something, and U is the number of keys that a block uses, over all
    blocks. Which queries share a block decides it: see `schedules.reordered`.

    Parameters
    ----------
    problem : Attention
        A forward pass under a mask.
    cache : int
        M, in words.
    rows, cols : int, optional
        Queries and keys in a tile; both or none.

    Raises
    ------
    ProblemError, SizeError
        No forward pass under a mask; blocks that overflow the cache; sizes that are not positive.

    Examples
    --------
    Two queries attend to keys 0 and 2, in one block: 2 * 1 + 2 * 2 + 2 words, where a tile of all
    three keys makes `flash2` load 2 words more.

    >>> import pebble, schedules
    >>> mask = pebble.masks.from_array([[True, False, True]] * 2)
    >>> problem = pebble.Attention(n=2, d=1, keys=3, mask=mask)
    >>> [g(problem, 32, rows=2, cols=3).count().io for g in (gather, schedules.flash2)]
    [8, 10]
    """
    require("gather", problem, "masked forward")
    return masked_gather(problem, cache, ("best", rows, cols))
