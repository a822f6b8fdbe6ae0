"""Strassen's matrix product, alone and as the product that makes attention's scores."""

from __future__ import annotations

from itertools import product as cartesian

from pebble.checks import positive
from pebble.classic.rows import Rows, graph_of, put_chain, put_inputs
from pebble.errors import SizeError
from pebble.graph import Graph
from pebble.moves import Vertex

Matrix = list[list[Vertex]]

# The two quadrants (11 is 0, 12 is 1, 21 is 2, 22 is 3), or the one, that each of M1 to M7
# multiplies. Additions and subtractions are vertices alike, so the signs don't matter here.
LEFT = ((0, 3), (2, 3), (0,), (3,), (0, 1), (2, 0), (1, 3))
RIGHT = ((0, 3), (0,), (1, 3), (2, 0), (3,), (0, 1), (2, 3))
# The products that are added up, in this order, to the quadrants of the result.
RESULT = ((1, 4, 5, 7), (3, 5), (2, 4), (1, 2, 3, 6))


def strassen(n: int) -> Graph:
    """Give the graph of Strassen's product of two n x n matrices, down to single numbers.

    M1 = (A11 + A22)(B11 + B22), M2 = (A21 + A22) B11, M3 = A11 (B12 - B22), M4 = A22 (B21 - B11),
    M5 = (A11 + A12) B22, M6 = (A21 - A11)(B11 + B12), M7 = (A12 - A22)(B21 + B22);
    C11 = ((M1 + M4) - M5) + M7, C12 = M3 + M5, C21 = M2 + M4, C22 = ((M1 - M2) + M3) + M6.

    The 10 additions before and the 8 after the seven products of halves are chains of sums of two.
    So w(n) = 7 w(n/2) + 18 (n/2)^2 vertices are computed, w(1) = 1: with 7^t products, n = 2^t,
    7 * 7^t - 6 n^2 are computed, and there are 7 * 7^t - 4 n^2 vertices with the 2 n^2 inputs.
    Each has 2 predecessors.

    Labels: inputs A[i,j] and B[i,j]. A call inside others has a path, the numbers 1 to 7 of the
    products that lead to it. Its sums of A before product r are S[path,r,i,j], those of B are
    T[path,r,i,j]; its sums after are C[path,q,t,i,j] with the quadrant q (0 to 3) of the result
    and the last term t (from 1) that was added. A product of two numbers is M[path].

    Parameters
    ----------
    n : int
        The rows of the matrices, a power of two.

    Raises
    ------
    SizeError
        An n that is no power of two.

    References
    ----------
    Strassen, "Gaussian elimination is not optimal", Numerische Mathematik 13, 1969; Jain and
    Zaharia, "Spectral lower bounds on the I/O complexity of computation graphs", SPAA 2020.

    Examples
    --------
    n = 2: 8 inputs, 10 sums before, 7 products, 8 sums after, so 33 vertices.

    >>> graph = strassen(2)
    >>> graph
    Graph(33 vertices: 8 inputs, 4 outputs; 50 edges)
    >>> [str(graph.label(v)) for v in graph.outputs]
    ['C[0,3,0,0]', 'C[1,1,0,0]', 'C[2,1,0,0]', 'C[3,3,0,0]']
    """
    n = _power_of_two("n", n, "the rows of Strassen's matrices")
    rows: Rows = {}
    put_inputs(rows, "A", n, n)
    put_inputs(rows, "B", n, n)
    _multiply(rows, (), _matrix("A", 0, n), _matrix("B", 0, n))
    return graph_of(rows)


def strassen_attention(n: int, d: int) -> Graph:
    """Give the graph of attention whose scores Q K^T are made by Strassen's product.

    Q, K and V are n x d. Q and K are cut into n/d blocks of d x d; each block of the scores is a
    Strassen product of its own, of a block of Q and a transposed block of K. From there on the
    graph is that of `pebble.Attention` with the plain softmax: P[i,j] is the exponential of a
    score, and chains add up the row sums l and the products y = P V, divided at the end.

    With w(d) as in `strassen` there are 3 n d inputs, (n/d)^2 w(d) vertices for the scores,
    n^2 exponentials, n (n - 1) row sums, n^2 d products, n (n - 1) d sums and n d quotients.

    Labels: as in `strassen`, with the block's row and column before the path; all others as in
    `pebble.Attention`.

    Parameters
    ----------
    n : int
        The number of queries, and of keys: a multiple of d.
    d : int
        The dimension, a power of two.

    Raises
    ------
    SizeError
        A d that is no power of two, or does not divide n.

    References
    ----------
    Saha and Ye, "The I/O complexity of attention, or how optimal is FlashAttention?", ICML 2024,
    theorem 4.8 (attention by any matrix product).

    Examples
    --------
    n = d = 1: Q, K, V, one product, its exponential, the product with V, a quotient.

    >>> graph = strassen_attention(1, 1)
    >>> [str(graph.label(v)) for v in range(len(graph))]
    ['Q[0,0]', 'K[0,0]', 'V[0,0]', 'M[0,0]', 'P[0,0]', 'y[0,0,0]', 'O[0,0]']

    n = d = 2: 12 inputs, 25 for the scores, 4 exponentials, 2 row sums, 8 products, 4 sums, 4
    quotients.

    >>> strassen_attention(2, 2)
    Graph(59 vertices: 12 inputs, 4 outputs; 90 edges)
    """
    n = positive("n", n, "the number of queries and of keys")
    d = _power_of_two("d", d, "the dimension")
    if n % d:
        raise SizeError(f"n = {n}: the queries are cut into blocks of d = {d} rows, so d divides n")
    rows: Rows = {}
    for name in "QKV":
        put_inputs(rows, name, n, d)
    score: dict[tuple[int, int], Vertex] = {}
    for I, J in cartesian(range(n // d), repeat=2):
        transposed = list(map(list, zip(*_matrix("K", J * d, d), strict=True)))
        block = _multiply(rows, (I, J), _matrix("Q", I * d, d), transposed)
        for i, j in cartesian(range(d), repeat=2):
            score[I * d + i, J * d + j] = block[i][j]
    for i, j in cartesian(range(n), repeat=2):
        rows[Vertex("P", (i, j))] = (score[i, j],)
    weights: list[Vertex] = []
    for i in range(n):
        terms = [Vertex("P", (i, j)) for j in range(n)]
        weights.append(put_chain(rows, "l", terms))
    for i, j, c in cartesian(range(n), range(n), range(d)):
        rows[Vertex("y", (i, j, c))] = (Vertex("P", (i, j)), Vertex("V", (j, c)))
    values: dict[tuple[int, int], Vertex] = {}
    for i, c in cartesian(range(n), range(d)):
        terms = [Vertex("y", (i, j, c)) for j in range(n)]
        values[i, c] = put_chain(rows, "o", terms)
    for (i, c), value in values.items():
        rows[Vertex("O", (i, c))] = (value, weights[i])
    return graph_of(rows)


def _power_of_two(name: str, value: int, meaning: str) -> int:
    value = positive(name, value, meaning)
    if value & (value - 1):
        raise SizeError(f"{name} = {value}: {meaning} must be a power of two")
    return value


def _matrix(name: str, start: int, n: int) -> Matrix:
    return [[Vertex(name, (i, j)) for j in range(n)] for i in range(start, start + n)]


def _multiply(rows: Rows, path: tuple[int, ...], left: Matrix, right: Matrix) -> Matrix:
    n = len(left)
    if n == 1:
        number = Vertex("M", path)
        rows[number] = (left[0][0], right[0][0])
        return [[number]]
    lefts, rights = _quadrants(left), _quadrants(right)
    products = []
    for r in range(7):
        within = (*path, r + 1)
        a = _pre_sum(rows, "S", within, [lefts[q] for q in LEFT[r]])
        b = _pre_sum(rows, "T", within, [rights[q] for q in RIGHT[r]])
        products.append(_multiply(rows, within, a, b))
    quadrants = []
    for q, terms in enumerate(RESULT):
        total = products[terms[0] - 1]
        for t, r in enumerate(terms[1:], 1):
            total = _add(rows, "C", (*path, q, t), total, products[r - 1])
        quadrants.append(total)
    upper = [a + b for a, b in zip(quadrants[0], quadrants[1], strict=True)]
    return upper + [a + b for a, b in zip(quadrants[2], quadrants[3], strict=True)]


def _quadrants(matrix: Matrix) -> list[Matrix]:
    h = len(matrix) // 2
    parts = slice(0, h), slice(h, None)
    return [[row[columns] for row in matrix[some]] for some, columns in cartesian(parts, repeat=2)]


def _pre_sum(rows: Rows, name: str, index: tuple[int, ...], parts: list[Matrix]) -> Matrix:
    return parts[0] if len(parts) == 1 else _add(rows, name, index, parts[0], parts[1])


def _add(rows: Rows, name: str, index: tuple[int, ...], a: Matrix, b: Matrix) -> Matrix:
    n = len(a)
    total = [[Vertex(name, (*index, i, j)) for j in range(n)] for i in range(n)]
    for i, j in cartesian(range(n), repeat=2):
        rows[total[i][j]] = (a[i][j], b[i][j])
    return total
