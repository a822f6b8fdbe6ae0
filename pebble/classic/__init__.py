"""Graphs of the pebbling literature, each as a `pebble.Graph` made by a function.

Examples
--------
>>> from pebble import classic
>>> classic.fft(3)
Graph(32 vertices: 8 inputs, 8 outputs; 48 edges)
>>> [str(label) for label in map(classic.dot(2).label, range(7))]
['a[0]', 'a[1]', 'b[0]', 'b[1]', 'x[0]', 'x[1]', 's[1]']
"""

from pebble.classic.fast_products import strassen, strassen_attention
from pebble.classic.products import dot, matmul, matvec, product
from pebble.classic.regular import chain, diamond, fft, hypercube, layered, pyramid, tree

__all__ = [
    "chain",
    "diamond",
    "dot",
    "fft",
    "hypercube",
    "layered",
    "matmul",
    "matvec",
    "product",
    "pyramid",
    "strassen",
    "strassen_attention",
    "tree",
]
