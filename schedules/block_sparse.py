"""Block-sparse FlashAttention as published: keys are loaded before their tiles are tested."""

from __future__ import annotations

from pebble.attention import Attention
from pebble.problem import require
from pebble.registry import register
from pebble.schedule import Schedule
from schedules.masked.flash1 import block_sparse as masked_block_sparse


@register(kinds=("masked forward",))
def block_sparse(
    problem: Attention,
    cache: int,
    *,
    blocks: str = "best",
    rows: int | None = None,
    cols: int | None = None,
) -> Schedule:
    """Give block-sparse FlashAttention.

    The outer loop loads each block of keys and values, and the inner one then tests which tiles are
    empty; so keys that no query attends to are loaded too. `flash1` under a mask does not load
    those::

        I/O   keys (d + value_dim) + W d + 2 (T - A) (value_dim + 1) + A value_dim
              (+ A with the logsumexp)

    where A queries attend to something, W is the queries of the tiles visited and T those of them
    that have a pair in the tile, over all blocks of keys.

    The paper keeps the sums normalised, and reads and writes those of a whole tile; here they are
    those of the queries that have begun, as in `flash1`.

    Parameters
    ----------
    problem : Attention
        A forward pass under a mask.
    cache : int
        M, in words.
    blocks : {"best", "published"}
        Published: cols = ceil(M / 4d), rows = min(cols, d).
    rows, cols : int, optional
        Queries and keys in a tile; both or none.

    Raises
    ------
    ProblemError, SizeError, UnknownName
        No forward pass under a mask; blocks that overflow the cache; sizes that are not positive;
        an unknown rule.

    References
    ----------
    Dao et al., "FlashAttention: fast and memory-efficient exact attention with IO-awareness",
    arXiv 2205.14135, algorithm 5.

    Examples
    --------
    Four keys, the first two of which nothing attends to: 2 * 2 words in vain.

    >>> import pebble, schedules
    >>> mask = pebble.masks.from_array([[False, False, True, True]] * 2)
    >>> problem = pebble.Attention(n=2, d=1, keys=4, mask=mask)
    >>> [g(problem, 32, rows=2, cols=2).count().io for g in (block_sparse, schedules.flash1)]
    [12, 8]
    """
    require("block_sparse", problem, "masked forward")
    return masked_block_sparse(problem, cache, (blocks, rows, cols))
