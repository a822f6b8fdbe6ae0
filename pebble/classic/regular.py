"""Chains, trees, grids, butterflies, hypercubes, and random graphs in layers."""

from __future__ import annotations

from itertools import product as cartesian
from random import Random

from pebble.checks import positive
from pebble.classic.rows import Rows, graph_of
from pebble.errors import SizeError
from pebble.graph import Graph
from pebble.moves import Vertex


def chain(n: int) -> Graph:
    """Give the graph in which x[t] is computed from x[t-1], for t = 1 to n.

    n + 1 vertices, n edges, one input x[0], one output x[n]. With cache 2 the optimum is 2.

    Raises
    ------
    SizeError
        An n that is no positive integer.

    Examples
    --------
    >>> chain(2)
    Graph(3 vertices: 1 inputs, 1 outputs; 2 edges)
    """
    n = positive("n", n, "the number of steps")
    before = [(Vertex("x", (t - 1,)),) if t else () for t in range(n + 1)]
    return graph_of({Vertex("x", (t,)): row for t, row in enumerate(before)})


def tree(arity: int, depth: int) -> Graph:
    """Give the complete in-tree: the leaves are inputs, the root is the output.

    t[h,i] at height h is computed from t[h-1, arity i + c], c = 0 to arity - 1. There are
    arity^(depth - h) vertices at height h, arity^depth leaves at height 0, and one edge less than
    vertices.

    Parameters
    ----------
    arity : int
        The predecessors of a vertex that is no leaf; 2 for a binary tree.
    depth : int
        The edges from a leaf to the root.

    Raises
    ------
    SizeError
        A number that is no positive integer.

    References
    ----------
    Papp, Sobczyk, Yzelman, "The impact of partial computations on the red-blue pebble game", SPAA
    2025, arXiv 2506.10854.

    Examples
    --------
    4 leaves, 2 vertices above them, the root.

    >>> tree(2, 2)
    Graph(7 vertices: 4 inputs, 1 outputs; 6 edges)
    """
    arity = positive("arity", arity, "the predecessors of a vertex")
    depth = positive("depth", depth, "the edges from a leaf to the root")
    rows: Rows = {}
    for h in range(depth + 1):
        for i in range(arity ** (depth - h)):
            below = [Vertex("t", (h - 1, arity * i + c)) for c in range(arity)]
            rows[Vertex("t", (h, i))] = tuple(below) if h else ()
    return graph_of(rows)


def pyramid(height: int) -> Graph:
    """Give the pyramid: p[h,i] is computed from p[h-1,i] and p[h-1,i+1].

    height + 1 inputs p[0,i], height + 1 - h vertices at height h, one output on top: in all
    (height + 1)(height + 2)/2 vertices and height (height + 1) edges.

    Raises
    ------
    SizeError
        A height that is no positive integer.

    References
    ----------
    Cook, "An observation on time-storage trade off", Journal of Computer and System Sciences 9,
    1974.

    Examples
    --------
    >>> pyramid(2)
    Graph(6 vertices: 3 inputs, 1 outputs; 6 edges)
    """
    height = positive("height", height, "the height of the pyramid")
    rows: Rows = {}
    for h in range(height + 1):
        for i in range(height + 1 - h):
            below = Vertex("p", (h - 1, i)), Vertex("p", (h - 1, i + 1))
            rows[Vertex("p", (h, i))] = below if h else ()
    return graph_of(rows)


def diamond(n: int) -> Graph:
    """Give the n x n grid with edges right and down: one input in a corner, one output opposite.

    g[i,j] is computed from g[i-1,j] and g[i,j-1], as far as they exist: n^2 vertices and
    2 n (n - 1) edges.

    Parameters
    ----------
    n : int
        The vertices along a side, at least 2.

    Raises
    ------
    SizeError
        Another n.

    References
    ----------
    Aggarwal, Chandra, Snir, "Communication complexity of PRAMs", Theoretical Computer Science 71,
    1990 (the diamond).

    Examples
    --------
    >>> graph = diamond(2)
    >>> graph, graph.inputs, graph.outputs
    (Graph(4 vertices: 1 inputs, 1 outputs; 4 edges), (0,), (3,))
    """
    n = positive("n", n, "the vertices along a side")
    if n == 1:
        raise SizeError("n = 1: a diamond of one vertex has an input that is its output; n >= 2")
    rows: Rows = {}
    for i, j in cartesian(range(n), repeat=2):
        above = [Vertex("g", (i - 1, j))] if i else []
        beside = [Vertex("g", (i, j - 1))] if j else []
        rows[Vertex("g", (i, j))] = (*above, *beside)
    return graph_of(rows)


def fft(levels: int) -> Graph:
    """Give the butterfly graph of the fast Fourier transform on 2^levels points.

    x[t,i] is computed from x[t-1,i] and x[t-1, i with bit t-1 flipped]. With k levels, 2^k (k + 1)
    vertices, 2^(k+1) k edges, 2^k inputs and as many outputs.

    Parameters
    ----------
    levels : int
        k, the binary logarithm of the number of points.

    Raises
    ------
    SizeError
        A number of levels that is no positive integer.

    References
    ----------
    Hong and Kung, "I/O complexity: the red-blue pebble game", STOC 1981.

    Examples
    --------
    >>> graph = fft(2)
    >>> graph
    Graph(12 vertices: 4 inputs, 4 outputs; 16 edges)
    >>> [str(graph.label(u)) for u in graph.predecessors(graph.vertex(Vertex("x", (2, 1))))]
    ['x[1,1]', 'x[1,3]']
    """
    levels = positive("levels", levels, "the binary logarithm of the number of points")
    rows: Rows = {}
    for t, i in cartesian(range(levels + 1), range(2**levels)):
        if t == 0:
            rows[Vertex("x", (t, i))] = ()
        else:
            flip = 1 << (t - 1)
            low, high = i & ~flip, i | flip
            rows[Vertex("x", (t, i))] = (Vertex("x", (t - 1, low)), Vertex("x", (t - 1, high)))
    return graph_of(rows)


def hypercube(k: int) -> Graph:
    """Give the graph of Bellman, Held and Karp's dynamic program over the subsets of k things.

    Vertices are the subsets, each computed from those with one element less: 2^k vertices and
    k 2^(k-1) edges. The empty set is the input, the whole set is the output. A subset's number,
    which is its label, has bit i set if element i is in it.

    Raises
    ------
    SizeError
        A k that is no positive integer.

    References
    ----------
    Held and Karp, "A dynamic programming approach to sequencing problems", Journal of SIAM 10,
    1962; Jain and Zaharia, "Spectral lower bounds on the I/O complexity of computation graphs",
    SPAA 2020.

    Examples
    --------
    >>> hypercube(3)
    Graph(8 vertices: 1 inputs, 1 outputs; 12 edges)
    >>> hypercube(3).predecessors(0b110)
    (4, 2)
    """
    k = positive("k", k, "the number of things")
    return Graph([[v ^ (1 << i) for i in range(k) if v >> i & 1] for v in range(2**k)])


def layered(layers: int, width: int, in_degree: int, *, seed: int) -> Graph:
    """Give a random graph in layers; the first layer is the inputs, the last is the outputs.

    v[t,i] is computed from `in_degree` different vertices of layer t - 1: from one that a random
    permutation of that layer gives, so that each vertex is used, and from a random choice of the
    others. layers * width vertices and (layers - 1) width in_degree edges.

    Parameters
    ----------
    layers, width : int
        The number of layers, at least 2, and the vertices in each.
    in_degree : int
        The predecessors of each vertex that is no input, at most `width`.
    seed : int
        Of Python's `random.Random`: the same numbers give the same graph.

    Raises
    ------
    SizeError
        A size that is no positive integer, one layer only, or an in-degree above the width.

    Examples
    --------
    >>> layered(3, 4, 2, seed=0)
    Graph(12 vertices: 4 inputs, 4 outputs; 16 edges)
    """
    layers = positive("layers", layers, "the number of layers")
    width = positive("width", width, "the vertices in a layer")
    in_degree = positive("in_degree", in_degree, "the predecessors of a vertex")
    if layers == 1:
        raise SizeError("layers = 1: the inputs would be the outputs; there are at least 2 layers")
    if in_degree > width:
        raise SizeError(f"in_degree = {in_degree}: a layer has only width = {width} vertices")
    random = Random(seed)
    rows: Rows = {Vertex("v", (0, i)): () for i in range(width)}
    for t in range(1, layers):
        first = random.sample(range(width), width)
        for i in range(width):
            others = [u for u in range(width) if u != first[i]]
            chosen = sorted([first[i], *random.sample(others, in_degree - 1)])
            rows[Vertex("v", (t, i))] = tuple(Vertex("v", (t - 1, u)) for u in chosen)
    return graph_of(rows)
