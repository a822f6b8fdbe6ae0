"""The gradient of attention's loss in the theory form, as a problem and a graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pebble.checks import positive
from pebble.families import Family, Function, family, inputs, sums
from pebble.family_graph import FamilyGraph
from pebble.problem import shared_graph


@dataclass(frozen=True)
class AttentionGradient:
    """The gradient g = A1^T p A2 of attention's loss with respect to X, in the theory form.

    With f = softmax(A1 X A2^T), h = A3 Y and q = dO h^T, it is p = f o q - rowsum(f o q) f.

    Parameters
    ----------
    n : int
        Rows of A1, A2, A3 and dO.
    d : int
        Their columns; X and Y are d x d.
    given_h : bool
        Whether h is an input, in place of A3 and Y. (What Li et al. count for the small cache
        supposes that.)

    Notes
    -----
    Vertices, i, j < n and a, k < d, and their predecessors; sums are chains in index order, and at
    index 0 a sum is its first term:

    ==================  =====================================  ============================
    family              what                                   predecessors
    ==================  =====================================  ============================
    A1, A2, A3, X, Y,   inputs (h in place of A3 and Y, if
    dO                  it is given)
    a1[i,k,a]           products                               A1[i,a], X[a,k]
    S1[i,k,a]           their sums over a
    x[i,j,k]            products                               S1[i,k,d-1], A2[j,k]
    s[i,j,k]            their sums over k, the scores
    A[i,j]              exp of the score                       s[i,j,d-1]
    l[i,j]              row sums of A over j
    f[i,j]              A / l                                  A[i,j], l[i,n-1]
    b1[j,k,a]           products                               A3[j,a], Y[a,k]
    h[j,k,a]            their sums over a
    w[i,j,k]            products                               dO[i,k], h[j,k,d-1] (or h[j,k])
    q[i,j,k]            their sums over k
    p1[i,j]             f q                                    f[i,j], q[i,j,d-1]
    v[i,j]              row sums of p1 over j
    p2[i,j]             v f                                    v[i,n-1], f[i,j]
    p[i,j]              p1 - p2                                p1[i,j], p2[i,j]
    t[i,j,k]            products                               p[i,j], A2[j,k]
    T[i,j,k]            their sums over j
    u[i,a,k]            products                               A1[i,a], T[i,n-1,k]
    g[i,a,k]            their sums over i; g[n-1] are the
                        outputs
    ==================  =====================================  ============================

    References
    ----------
    Li et al., "On fine-grained I/O complexity of attention backward passes", arXiv 2410.09397.

    Raises
    ------
    SizeError
        A size that is no positive integer.

    Examples
    --------
    Two products of n^2 d terms with 2 d - 1 vertices an entry, one with d products and n - 1 sums
    for T, and so on; the least of all problems is a line of single vertices.

    >>> AttentionGradient(n=1, d=1).graph.size
    17
    >>> list(AttentionGradient(n=8, d=2, given_h=True).operands)
    ['A1', 'A2', 'X', 'dO', 'h']
    """

    n: int
    d: int
    given_h: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", positive("n", self.n, "the number of rows"))
        object.__setattr__(self, "d", positive("d", self.d, "the number of columns"))
        object.__setattr__(self, "given_h", bool(self.given_h))

    @property
    def kind(self) -> str:
        """Which schedules and bounds are for it."""
        return "gradient"

    @property
    def settled(self) -> AttentionGradient:
        """The problem itself: it leaves nothing open."""
        return self

    @property
    def sizes(self) -> Mapping[str, int]:
        """What tells it from others, for a short notation."""
        return {"n": self.n, "d": self.d, **({"given_h": True} if self.given_h else {})}

    @property
    def title(self) -> str:
        """What is computed, in words."""
        given = ", h given" if self.given_h else ""
        return f"gradient of attention (theory form), n = {self.n}, d = {self.d}{given}"

    def to_dict(self) -> dict[str, object]:
        """Give it as plain values, for JSON."""
        return {"kind": self.kind, "n": self.n, "d": self.d, "given_h": self.given_h}

    @property
    def operands(self) -> Mapping[str, tuple[int, ...]]:
        """The inputs and their shapes, in the order in which an execution takes them."""
        tall, square = (self.n, self.d), (self.d, self.d)
        if self.given_h:
            return {"A1": tall, "A2": tall, "X": square, "dO": tall, "h": tall}
        return {"A1": tall, "A2": tall, "A3": tall, "X": square, "Y": square, "dO": tall}

    @cached_property
    def graph(self) -> FamilyGraph:
        """The computation graph; equal problems have the same one."""
        graph: FamilyGraph = shared_graph(self, lambda: gradient_graph(self))
        return graph


def gradient_graph(problem: AttentionGradient) -> FamilyGraph:
    """Give the graph of the gradient."""
    n, d, last = problem.n, problem.d, problem.n - 1
    pairs = (n, n)
    given = {name: inputs(name, *shape) for name, shape in problem.operands.items()}
    A1, A2, X, dO = (given[name] for name in ("A1", "A2", "X", "dO"))

    def projected(name: str, total: str, left: Family, right: Family) -> tuple[Family, Family]:
        rule = lambda i, k, a: (left[i, a], right[a, k])
        products = family(name, (n, d, d), Function.PRODUCT, rule)
        return products, sums(total, products, 2)

    a1, S1 = projected("a1", "S1", A1, X)
    x = family("x", (n, n, d), Function.PRODUCT, lambda i, j, k: (S1[i, k, d - 1], A2[j, k]))
    s = sums("s", x, 2)
    A = family("A", pairs, Function.EXP, lambda i, j: (s[i, j, d - 1],))
    l = sums("l", A, 1)
    f = family("f", pairs, Function.QUOTIENT, lambda i, j: (A[i, j], l[i, last]))
    formed: tuple[Family, ...] = ()
    if problem.given_h:
        value = given["h"]
        rule = lambda i, j, k: (dO[i, k], value[j, k])
    else:
        formed = projected("b1", "h", given["A3"], given["Y"])
        value = formed[-1]
        rule = lambda i, j, k: (dO[i, k], value[j, k, d - 1])
    w = family("w", (n, n, d), Function.PRODUCT, rule)
    q = sums("q", w, 2)
    p1 = family("p1", pairs, Function.PRODUCT, lambda i, j: (f[i, j], q[i, j, d - 1]))
    v = sums("v", p1, 1)
    p2 = family("p2", pairs, Function.PRODUCT, lambda i, j: (v[i, last], f[i, j]))
    p = family("p", pairs, Function.DIFFERENCE, lambda i, j: (p1[i, j], p2[i, j]))
    t = family("t", (n, n, d), Function.PRODUCT, lambda i, j, k: (p[i, j], A2[j, k]))
    T = sums("T", t, 1)
    u = family("u", (n, d, d), Function.PRODUCT, lambda i, a, k: (A1[i, a], T[i, last, k]))
    g = sums("g", u, 0)
    families = (*given.values(), a1, S1, x, s, A, l, f, *formed, w, q, p1, v, p2, p, t, T, u, g)
    return FamilyGraph(families, (g[last, :, :],))
