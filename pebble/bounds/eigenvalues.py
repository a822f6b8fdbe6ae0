"""The smallest eigenvalues of a sparse Laplacian, and numbers that are proved to be below them.

A solver finds Ritz values, which are never below the eigenvalues, and says nothing of one that it
missed; a lower bound on the I/O needs the contrary. So what the solver found is checked.

**What is proved.** Let V have m orthonormal columns, T = V'LV be diagonal with t_1 <= ... <= t_m,
and R = LV - VT. With E = -(RV' + VR'), L + E maps the span of V to itself, so its eigenvalues are
t_1, ..., t_m and those of PLP on the complement of V, P = I - VV'. Let mu be the least of the
latter. Since V'R = 0, |E| = |R| in the spectral norm, so by Weyl's inequality the i-th eigenvalue
of L is at least min(t_i, mu) - |R| for i <= m.

**The least eigenvalue of the complement** is bounded with random vectors. The spectrum of L lies
in [0, s], s the largest sum of the degrees of two neighbours. Let p be the Chebyshev polynomial of
degree q for [a, s]: at most 1 in absolute value there, and rising towards 0 below a. Let x_1, ...,
x_r be vectors of independent standard normal numbers, y_j = p(PLP) P x_j, and u a unit vector of
the complement with PLPu = mu u. If mu < a, then |y_j| >= p(mu) |<u, x_j>|, and the sum of the
squares of <u, x_j> is distributed as chi squared with r degrees, which is less than c with
probability at most (c/2)^(r/2) / (r/2)!. Let S = |y_1|^2 + ... + |y_r|^2. Unless an event of that
probability happened, p(mu)^2 <= S / c, so mu >= z for the z <= a with p(z)^2 = S / c. Here c makes
it 10^-12. The vectors come from a generator with a fixed seed: equal graphs have equal bounds.

All this is in double precision. `ROUNDING` times n s is taken off each number, several times the
backward error of LAPACK, which gets the matrices of up to `DENSE` rows and misses nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from math import acosh, ceil, cosh, factorial, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Up to so many rows all eigenvalues are computed, by LAPACK.
DENSE = 1500
# Taken off for each row and each unit of |L|.
ROUNDING = 4 * float(np.finfo(np.float64).eps)
# Of a proof: the random vectors, an even number; the chance that it is wrong; the degree of p.
WITNESSES, CHANCE, DEGREE = 8, 1e-12, 400
# Of the solver: the residual that is good enough, the most steps, the logarithm of how much a step
# favours the least eigenvalue, and how far above the block's last value a step begins to damp, as a
# part of that value.
GOOD, STEPS, FAVOUR = 1e-7, 40, 14
MARGINS = (0.25, 0.06, 0.015, 0.004)


def estimated(laplacian: Any, count: int) -> Floats:
    """Give the `count` smallest eigenvalues of a Laplacian, or all, as a solver finds them.

    Parameters
    ----------
    laplacian : scipy.sparse.csr_array
        Symmetric, rows that sum to 0, no positive number off the diagonal.
    count : int
        How many are wanted.

    Examples
    --------
    A path of three vertices: 0, 1 and 3.

    >>> from scipy.sparse import csr_array
    >>> path = csr_array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]])
    >>> bool(np.allclose(estimated(path, 2), [0, 1]))
    True
    """
    n = laplacian.shape[0]
    if n <= DENSE:
        return _dense(laplacian, count)
    values: Floats = solve(laplacian, min(count, n), largest(laplacian))[1]
    return values


def proved(laplacian: Any, count: int) -> Floats:
    """Give numbers, in increasing order, that the smallest eigenvalues are not below.

    Parameters
    ----------
    laplacian, count
        As for `estimated`; `count` numbers, or one for each row if there are fewer.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> path = csr_array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]])
    >>> bool((proved(path, 3) <= [0, 1, 3]).all()), bool(np.allclose(proved(path, 3), [0, 1, 3]))
    (True, True)
    """
    n, top = laplacian.shape[0], largest(laplacian)
    slack = ROUNDING * n * top
    if n <= DENSE:
        below: Floats = _dense(laplacian, count) - slack
        return below
    basis, values = solve(laplacian, min(count, n), top)
    wrong = float(np.linalg.norm(laplacian @ basis - basis * values))
    level = complement(laplacian, basis, float(values[-1]), top)
    below = np.minimum(values, level) - wrong - slack
    return below


def _dense(laplacian: Any, count: int) -> Floats:
    from scipy.linalg import eigvalsh

    n = laplacian.shape[0]
    values: Floats = eigvalsh(laplacian.toarray(), subset_by_index=(0, min(count, n) - 1))
    return values


def largest(laplacian: Any) -> float:
    """Give a number that no eigenvalue is above: the largest sum of two neighbours' degrees.

    With B the incidence matrix and W the weights, the eigenvalues of L = B W B' other than 0 are
    those of B'B W, where the absolute values of a row sum to the degrees of the edge's two ends.

    References
    ----------
    Anderson and Morley, "Eigenvalues of the Laplacian of a graph", Linear and Multilinear Algebra
    18, 1985 (without weights).

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> largest(csr_array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]]))  # the eigenvalues: 0, 1, 3
    3.0
    """
    degrees = laplacian.diagonal()
    rows = np.repeat(np.arange(len(degrees)), np.diff(laplacian.indptr))
    apart = rows != laplacian.indices
    sums = degrees[rows] + degrees[laplacian.indices]
    return float(sums[apart].max())


def chebyshev(
    laplacian: Any,
    block: Floats,
    degree: int,
    low: float,
    high: float,
    project: Callable[[Floats], None] | None = None,
) -> Floats:
    """Give p(L) times a block of vectors, p the Chebyshev polynomial of a degree for [low, high].

    With `project`, which takes its part off a block in place, it is p(PLP).

    Examples
    --------
    T_2(x) = 2 x^2 - 1. On [1, 3] the eigenvalue 0 is x = -2: 7.

    >>> from scipy.sparse import csr_array
    >>> edge = csr_array([[1.0, -1], [-1, 1]])
    >>> chebyshev(edge, np.array([[1.0], [1.0]]), 2, 1, 3).tolist()
    [[7.0], [7.0]]
    """
    from pebble.bounds.spectral_kernels import advance

    centre, half = (high + low) / 2, (high - low) / 2
    parts = laplacian.indptr, laplacian.indices, laplacian.data
    before, now = block.copy(), np.zeros_like(block)
    advance(*parts, before, now, centre, 1 / half)
    for _ in range(degree - 1):
        if project:
            project(now)
        advance(*parts, now, before, centre, 2 / half)
        before, now = now, before
    if project:
        project(now)
    return now


def solve(laplacian: Any, count: int, top: float) -> tuple[Floats, Floats]:
    """Give orthonormal vectors and Ritz values near the `count` smallest eigenvalues.

    Subspace iteration, where each step is a Chebyshev polynomial that damps what lies above the
    values of the block: it holds all vectors of an eigenvalue of high multiplicity, which these
    graphs have. How well it works decides how good the proved numbers are, and not that they hold.

    References
    ----------
    Zhou, Saad, Tiago and Chelikowsky, "Self-consistent-field calculations using Chebyshev-filtered
    subspace iteration", Journal of Computational Physics 219, 2006.
    """
    from scipy.linalg import eigh

    n = laplacian.shape[0]
    width = min(count + 8 + count // 4, n)
    block = np.random.default_rng(0).standard_normal((n, width))
    level, margins, before = top / 8, cycle(MARGINS), inf
    margin = next(margins)
    for _ in range(STEPS):
        degree = ceil(FAVOUR / 2 * (top / level) ** 0.5)
        block = chebyshev(laplacian, block, degree, level, top)
        block = orthonormal(block)
        values, turn = eigh(block.T @ (laplacian @ block), driver="evd")
        block = np.ascontiguousarray(block @ turn)
        some = block[:, :count]
        wrong = np.linalg.norm(laplacian @ some - some * values[:count], axis=0).max()
        if wrong < GOOD:
            break
        # Where the block ends inside a multiple eigenvalue, the next one is above the last value,
        # by nobody knows how much: a margin that gains little is exchanged for another.
        if wrong > before / 2:
            margin = next(margins)
        before = wrong
        level = min(max((1 + margin) * float(values[-1]), 1e-5 * top), top / 2)
    return block[:, :count], values[:count]


def orthonormal(block: Floats) -> Floats:
    """Give orthonormal vectors with the span of a block's columns.

    Cholesky's factor of the Gram matrix, repeated until it is the identity, takes a fraction of the
    time of Householder's method, which steps in where the columns depend too much on each other.

    Examples
    --------
    >>> orthonormal(np.array([[3.0, 3.0], [0.0, 2.0]])).round(6).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    from scipy.linalg import LinAlgError, cholesky, qr, solve_triangular

    length = np.linalg.norm(block, axis=0)
    result = block / np.where(length > 0, length, 1)
    identity = np.eye(block.shape[1])
    for _ in range(4):
        gram = result.T @ result
        if np.abs(gram - identity).max() < 1e-13:
            return result
        try:
            factor = cholesky(gram)
        except LinAlgError:
            break
        result = result @ solve_triangular(factor, identity)
    vectors: Floats = qr(block, mode="economic", check_finite=False)[0]
    return vectors


def complement(laplacian: Any, basis: Floats, level: float, top: float) -> float:
    """Give a number that the least eigenvalue on the complement of a basis is not below.

    The module says how, and with what chance it is wrong. Where that eigenvalue is above `level` it
    is some (10 / DEGREE)^2 top / 4 below `level`.
    """

    def project(block: Floats) -> None:
        block -= basis @ (basis.T @ block)

    half = WITNESSES // 2
    images = np.random.default_rng(1).standard_normal((len(basis), WITNESSES))
    project(images)
    images = chebyshev(laplacian, images, DEGREE, level, top, project)
    rare = 2 * (CHANCE * factorial(half)) ** (1 / half)
    growth = max(float(np.linalg.norm(images)) / rare**0.5, 1.0)
    # p(z) = growth for the z that is this far below [level, top]:
    return level - (cosh(acosh(growth) / DEGREE) - 1) * (top - level) / 2
