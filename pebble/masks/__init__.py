"""Attention masks as values: which query attends to which key, and what tiles that touches.

Examples
--------
>>> from pebble import masks
>>> mask = masks.causal(1024) & masks.window(1024, left=512, right=512)
>>> mask
Mask(causal & window(512, 512), 1024 x 1024, 393984 pairs)
>>> mask.tiles(128, 64)
Tiles(8 x 16: 36 full, 24 partial, 68 empty)
"""

from pebble.masks.convert import from_array, from_function, from_scipy
from pebble.masks.kernels import TileCount, flash2_tiles
from pebble.masks.mask import Mask
from pebble.masks.notation import parse_mask
from pebble.masks.patterns import blocks, causal, dilated, document, full, window
from pebble.masks.published import bigbird, fixed, longformer, strided
from pebble.masks.tiles import Tiles

__all__ = [
    "Mask",
    "TileCount",
    "Tiles",
    "bigbird",
    "blocks",
    "causal",
    "dilated",
    "document",
    "fixed",
    "flash2_tiles",
    "from_array",
    "from_function",
    "from_scipy",
    "full",
    "longformer",
    "parse_mask",
    "strided",
    "window",
]
