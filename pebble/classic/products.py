"""Products of numbers, vectors and matrices by their definition."""

from __future__ import annotations

from itertools import product as cartesian

from pebble.checks import positive
from pebble.classic.rows import Rows, graph_of, put_inputs, put_sum
from pebble.graph import Graph
from pebble.moves import Vertex


def product() -> Graph:
    """Give the graph of one product: c is computed from a and b.

    3 vertices, 2 edges. With cache 3 the optimum is 3: load a, load b, store c.

    Examples
    --------
    >>> graph = product()
    >>> graph.predecessors(graph.vertex("c")), graph.inputs, graph.outputs
    ((0, 1), (0, 1), (2,))
    """
    return Graph([(), (), (0, 1)], ["a", "b", "c"])


def dot(n: int, *, sums: str = "chain") -> Graph:
    """Give the graph of a dot product of two vectors of length n.

    2 n inputs a[k] and b[k], n products x[k]; chained: n - 1 sums s[k] of s[k-1] (x[0] for k = 1)
    and x[k], so 4 n - 1 vertices and 4 n - 2 edges; n-ary: one sum s[] if n > 1, so 3 n + 1
    vertices and 3 n edges.

    Parameters
    ----------
    n : int
        The length of the vectors.
    sums : str
        "chain" or "nary": see `matmul`.

    Raises
    ------
    SizeError, UnknownName
        A length that is no positive integer; another kind of sum.

    Examples
    --------
    >>> dot(3), dot(3, sums="nary")
    (Graph(11 vertices: 6 inputs, 1 outputs; 10 edges),
     Graph(10 vertices: 6 inputs, 1 outputs; 9 edges))
    """
    n = positive("n", n, "the length of the vectors")
    rows: Rows = {}
    put_inputs(rows, "a", n)
    put_inputs(rows, "b", n)
    terms = [Vertex("x", (k,)) for k in range(n)]
    for k in range(n):
        rows[terms[k]] = (Vertex("a", (k,)), Vertex("b", (k,)))
    put_sum(rows, "s", (), terms, sums)
    return graph_of(rows)


def matvec(m: int, n: int, *, sums: str = "chain") -> Graph:
    """Give the graph of an m x n matrix times a vector.

    m n + n inputs A[i,j] and v[j], m n products x[i,j]; chained: m (n - 1) sums s[i,j], so
    3 m n + n - m vertices and 4 m n - 2 m edges; n-ary: m sums s[i] if n > 1, so
    2 m n + n + m vertices and 3 m n edges.

    Parameters
    ----------
    m, n : int
        The rows and the columns of the matrix.
    sums : str
        "chain" or "nary": see `matmul`.

    Raises
    ------
    SizeError, UnknownName
        A size that is no positive integer; another kind of sum.

    References
    ----------
    Papp, Sobczyk, Yzelman, "The impact of partial computations on the red-blue pebble game", SPAA
    2025, arXiv 2506.10854 (n-ary).

    Examples
    --------
    A 2 x 2 matrix: 4 + 2 inputs, 4 products, 2 sums.

    >>> matvec(2, 2)
    Graph(12 vertices: 6 inputs, 2 outputs; 12 edges)
    """
    m = positive("m", m, "the rows of the matrix")
    n = positive("n", n, "the columns of the matrix")
    rows: Rows = {}
    put_inputs(rows, "A", m, n)
    put_inputs(rows, "v", n)
    for i, j in cartesian(range(m), range(n)):
        rows[Vertex("x", (i, j))] = (Vertex("A", (i, j)), Vertex("v", (j,)))
    for i in range(m):
        put_sum(rows, "s", (i,), [Vertex("x", (i, j)) for j in range(n)], sums)
    return graph_of(rows)


def matmul(m: int, n: int, k: int, *, sums: str = "chain") -> Graph:
    """Give the graph of an m x k matrix times a k x n matrix, by the definition.

    m k + k n inputs A[i,l] and B[l,j], m n k products x[i,j,l]; chained: m n (k - 1) sums
    s[i,j,l], so m k + k n + m n (2 k - 1) vertices and m n (4 k - 2) edges; n-ary: m n sums
    s[i,j] if k > 1, so m k + k n + m n (k + 1) vertices and 3 m n k edges.

    Parameters
    ----------
    m, n, k : int
        The rows and the columns of the product, and the length of its dot products.
    sums : str
        "chain": s[i,j,l] = s[i,j,l-1] + x[i,j,l], in index order. "nary": s[i,j] is one vertex
        of in-degree k.

    Raises
    ------
    SizeError, UnknownName
        A size that is no positive integer; another kind of sum.

    References
    ----------
    Hong and Kung, "I/O complexity: the red-blue pebble game", STOC 1981; Jain and
    Zaharia, "Spectral lower bounds on the I/O complexity of computation graphs", SPAA 2020 (both
    kinds of sums).

    Examples
    --------
    2 x 2 times 2 x 2: 8 inputs, 8 products, 4 sums.

    >>> matmul(2, 2, 2)
    Graph(20 vertices: 8 inputs, 4 outputs; 24 edges)
    """
    m = positive("m", m, "the rows of the product")
    n = positive("n", n, "the columns of the product")
    k = positive("k", k, "the length of the dot products")
    rows: Rows = {}
    put_inputs(rows, "A", m, k)
    put_inputs(rows, "B", k, n)
    for i, j, l in cartesian(range(m), range(n), range(k)):
        rows[Vertex("x", (i, j, l))] = (Vertex("A", (i, l)), Vertex("B", (l, j)))
    for i, j in cartesian(range(m), range(n)):
        put_sum(rows, "s", (i, j), [Vertex("x", (i, j, l)) for l in range(k)], sums)
    return graph_of(rows)
