"""Asymptotic forms as curves to draw beside counts. They have no constants and bound nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def forward(n: int, d: int, cache: ArrayLike) -> Floats:
    """Give min(n^2 d^2 / M, n^2 d / sqrt(M)), the forward pass's order of growth.

    References
    ----------
    Saha and Ye, ICML 2024, theorems 1.1 and 1.2.

    Examples
    --------
    The two meet at M = d^2.

    >>> forward(8, 4, [4, 16, 64]).tolist()
    [128.0, 64.0, 16.0]
    """
    M = np.asarray(cache, np.float64)
    return np.minimum(float(n) ** 2 * d**2 / M, float(n) ** 2 * d / np.sqrt(M))


def backward(n: int, d: int, cache: ArrayLike) -> Floats:
    """Give min((n^2 d^2 + n d^3) / M, (n^2 d + n d^2) / sqrt(M)), the backward pass's order.

    References
    ----------
    Li et al., "On fine-grained I/O complexity of attention backward passes", arXiv 2410.09397.

    Examples
    --------
    >>> backward(8, 4, [16]).tolist()
    [96.0]
    """
    M = np.asarray(cache, np.float64)
    work = float(n) ** 2 * d + float(n) * d**2
    return np.minimum(work * d / M, work / np.sqrt(M))


def sparse(inputs: int, scores: int, cache: ArrayLike) -> Floats:
    """Give min(Zin^2 / M, Zin sqrt(Zqk) / sqrt(M)), for sparse inputs.

    Worst case over all matrices with `inputs` nonzeros and `scores` nonzero scores, and not a bound
    for each of them: with dense Q and K and a diagonal mask it exceeds the true cost, which is
    linear in n d.

    References
    ----------
    Li et al., arXiv 2410.09397; by Pagh and Stoeckel, arXiv 1403.3551.

    Examples
    --------
    >>> sparse(64, 16, [16, 256]).tolist()
    [64.0, 16.0]
    """
    M = np.asarray(cache, np.float64)
    worst: Floats = np.minimum(float(inputs) ** 2 / M, inputs * np.sqrt(scores) / np.sqrt(M))
    return worst
