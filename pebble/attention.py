"""Attention as a problem: its forward, backward and double backward pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pebble.backward_graph import backward_graph
from pebble.checks import positive
from pebble.double_backward_graph import double_backward_graph
from pebble.errors import ProblemError, SizeError, UnknownName
from pebble.forward_graph import forward_graph
from pebble.masked.passes import masked_graph
from pebble.masks import Mask
from pebble.moves import listed
from pebble.problem import shared_graph

SOFTMAXES = ("plain", "online")
BUILDERS = {
    "forward": forward_graph,
    "backward": backward_graph,
    "double_backward": double_backward_graph,
}
DIRECTIONS = tuple(BUILDERS)
EMPTY_ROWS = ("error", "zeros")


@dataclass(frozen=True)
class Attention:
    """One head of attention, O = softmax(Q K^T) V: its forward, backward or double backward pass.

    Parameters
    ----------
    n : int
        Queries: rows of Q and O.
    d : int
        Dimension of Q and K.
    keys : int, optional
        Keys: rows of K and V. Default `n`.
    value_dim : int, optional
        Dimension of V and O. Default `d`.
    softmax : {"plain", "online"}
        Plain: exponentials of the scores, normalised at the end, as Saha and Ye analyse it.
        Online: each block of keys subtracts the maximum so far, as kernels do.
    block : int, optional
        Keys in a block of the online softmax, at most `keys`. The graph depends on it and the
        value does not. None leaves it to the schedule.
    logsumexp : bool
        Whether the logarithm of each row sum (plus the maximum, online) is an output too.
    direction : {"forward", "backward", "double_backward"}
        Backward: dQ, dK and dV from dO, by the logsumexp of the forward pass. Double backward: the
        gradient of <UQ, dQ> + <UK, dK> + <UV, dV> with respect to Q, K, V and dO.
    saved_weights : bool
        Backward only: whether the weights P are an input, as unfused attention saves them, in
        place of O and the logsumexp.
    mask : Mask, optional
        Which query attends to which key, of n queries and `keys` keys (see `pebble.masks`); with
        the plain softmax, forward or backward. A full mask is none.
    empty_rows : {"error", "zeros"}
        What becomes of queries that the mask lets attend to nothing, whose softmax has no value:
        they are refused, or their rows of O and dQ are zeros by definition. Those are no vertices
        and nothing of them is stored.

    Notes
    -----
    Vertices of the forward pass, i < n, j < keys, k < d, c < value_dim, and their predecessors,
    plain:

    ========  ===========================  =========================
    family    what                         predecessors
    ========  ===========================  =========================
    Q, K, V   inputs
    x[i,j,k]  products of scores           Q[i,k], K[j,k]
    s[i,j,k]  sums of scores, k >= 1       s[i,j,k-1], x[i,j,k]
    P[i,j]    exp of the score             s[i,j,d-1]
    l[i,j]    row sums, j >= 1             l[i,j-1], P[i,j]
    y[i,j,c]  products with values         P[i,j], V[j,c]
    o[i,j,c]  sums of those, j >= 1        o[i,j-1,c], y[i,j,c]
    O[i,c]    outputs, the quotients       o[i,keys-1,c], l[i,keys-1]
    Lse[i]    optional outputs, the log    l[i,keys-1]
    ========  ===========================  =========================

    At index 0 a sum is its first term: ``s[i,j,0]`` names ``x[i,j,0]``, ``l[i,0]`` names
    ``P[i,0]`` and ``o[i,0,c]`` names ``y[i,0,c]``. Online, with T blocks, the following change:

    ========  ===========================  =========================================
    mx[i,j]   running maximum, j >= 1      mx[i,j-1], s[i,j,d-1]
    P[i,j]    exp of the difference        s[i,j,d-1], mx[i,e], e the end of j's block
    a[i,t]    rescaling factor, t >= 1     mx at the ends of blocks t-1 and t
    lr[i,t]   rescaled row sum, t >= 1     l at the end of block t-1, a[i,t]
    or[i,t,c] rescaled o, t >= 1           o at the end of block t-1, a[i,t]
    l, o      at the start of a block      lr or or instead of the previous one
    Lse[i]    log of the sum plus maximum  l[i,keys-1], mx[i,keys-1]
    ========  ===========================  =========================================

    Backward, with e = value_dim; every sum is a chain in index order and begins with its first
    term, so that at n = 1 or keys = 1 an output is that term:

    ================  ======================================  ===========================
    family            what                                    predecessors
    ================  ======================================  ===========================
    Q, K, V, O, dO,   inputs
    Lse
    x, s              scores, as above
    P[i,j]            exp of the difference                   s[i,j,d-1], Lse[i]
    z[i,c]            products                                dO[i,c], O[i,c]
    D[i,c]            their sums over c
    w[i,j,c]          products                                dO[i,c], V[j,c]
    dP[i,j,c]         their sums over c
    G[i,j]            difference                              dP[i,j,e-1], D[i,e-1]
    dS[i,j]           product                                 P[i,j], G[i,j]
    v[i,j,c]          products; sums over i are dV[i,j,c]     P[i,j], dO[i,c]
    q[i,j,k]          products; sums over j are dQ[i,j,k]     dS[i,j], K[j,k]
    k[i,j,k]          products; sums over i are dK[i,j,k]     dS[i,j], Q[i,k]
    dQ[:,keys-1,:]    outputs; dK[n-1,:,:], dV[n-1,:,:] too
    ================  ======================================  ===========================

    Under a mask there are only the pairs (i, j) that attend, each chain runs over those of its row
    or its column, and begins with the first of them.

    With saved weights P is an input and there are no O, Lse, x, s; z[i,j] are the products of
    P[i,j] and dP[i,j,e-1], and D[i,j] their sums over j.

    Double backward, with D[i] an input: F = UQ K^T + Q UK^T, C = dO UV^T, H = C + F o G, alpha and
    eps the row sums of P o F and P o H; then ::

        Qt  = sum over j of (P o H) K + dS UK, less alpha (sum of dS K), less eps (sum of P K)
        dOt = sum over j of P UV + (P o F) V, less alpha O
        Kt  = sum over i of St Q + dS UQ,  St = P o H - alpha dS - eps P
        Vt  = sum over i of (P o F - alpha P) dO

    `pebble.double_backward_graph` writes it out, vertex by vertex. That is the published form, with
    St = P o (C + F o G - alpha dP - E) and E the row sum of P o (C + F o G - alpha dP), multiplied
    out: E = eps - alpha D. The scale of the scores is 1.

    References
    ----------
    Saha and Ye, "The I/O complexity of attention, or how optimal is FlashAttention?", ICML 2024
    (plain); Dao, "FlashAttention-2", arXiv 2307.08691 (online, backward); "FlashBoB", arXiv
    2609.24089 (double backward).

    Raises
    ------
    SizeError, UnknownName, ProblemError
        A size that is no positive integer; a block given for the plain softmax, or larger than
        `keys`; an unknown softmax or direction; options of the forward pass for another, or saved
        weights for another than the backward pass.

    Examples
    --------
    One query, one key, dimension 1: the graph is Q, K, V, a product, an exponential, a product
    and a quotient.

    >>> tiny = Attention(n=1, d=1)
    >>> [str(tiny.graph.label(v)) for v in range(len(tiny.graph))]
    ['Q[0,0]', 'K[0,0]', 'V[0,0]', 'x[0,0,0]', 'P[0,0]', 'y[0,0,0]', 'O[0,0]']
    >>> Attention(n=1024, d=64).pairs
    1048576
    """

    n: int
    d: int
    keys: int = None  # type: ignore[assignment]
    value_dim: int = None  # type: ignore[assignment]
    softmax: str = "plain"
    block: int | None = None
    logsumexp: bool = False
    direction: str = "forward"
    saved_weights: bool = False
    mask: Mask | None = None
    empty_rows: str = "error"

    def __post_init__(self) -> None:
        n = positive("n", self.n, "the number of queries")
        d = positive("d", self.d, "the dimension of Q and K")
        keys = n if self.keys is None else positive("keys", self.keys, "the number of keys")
        e = d if self.value_dim is None else positive("value_dim", self.value_dim, "V's dimension")
        for name, value in (("n", n), ("d", d), ("keys", keys), ("value_dim", e)):
            object.__setattr__(self, name, value)
        if self.softmax not in SOFTMAXES:
            raise UnknownName(f"softmax = {self.softmax!r}: known are {', '.join(SOFTMAXES)}")
        if self.block is not None:
            if self.softmax == "plain":
                raise SizeError(f"block = {self.block!r}: only an online softmax has blocks")
            block = positive("block", self.block, "the keys in a block")
            if block > keys:
                raise SizeError(f"block = {block}: there are only {keys} keys")
            object.__setattr__(self, "block", block)
        object.__setattr__(self, "logsumexp", bool(self.logsumexp))
        object.__setattr__(self, "saved_weights", bool(self.saved_weights))
        self._check_direction()
        if self.empty_rows not in EMPTY_ROWS:
            raise UnknownName(
                f"empty_rows = {self.empty_rows!r}: known are {', '.join(EMPTY_ROWS)}"
            )
        if self.mask is not None:
            self._check_mask(self.mask)

    def _check_mask(self, mask: object) -> None:
        if not isinstance(mask, Mask):
            raise ProblemError(f"mask = {mask!r}: a mask is made by pebble.masks, as from_array is")
        if mask.shape != (self.n, self.keys):
            raise ProblemError(
                f"mask is {mask.n} x {mask.keys}: with n = {self.n} and keys = {self.keys} it is "
                f"{self.n} x {self.keys}"
            )
        if self.online or self.saved_weights or self.direction == "double_backward":
            raise ProblemError(
                "a mask is for the forward pass with the plain softmax and for the backward pass "
                f"from the logsumexp, not for the {self.title}"
            )
        if not mask.pairs:
            raise ProblemError("mask: no query attends to any key, so nothing is computed")
        if len(mask.empty_rows) and self.empty_rows == "error":
            raise ProblemError(
                f"mask: {len(mask.empty_rows)} of {self.n} queries attend to no key "
                f"({listed(mask.empty_rows.tolist())}), and their softmax has no value; "
                "empty_rows = 'zeros' makes their outputs zeros"
            )
        if mask.is_full:
            object.__setattr__(self, "mask", None)

    def _check_direction(self) -> None:
        if self.direction not in DIRECTIONS:
            raise UnknownName(
                f"direction = {self.direction!r}: known are {', '.join(DIRECTIONS)} "
                "(and pebble.AttentionGradient is the theory form)"
            )
        if self.direction != "forward" and (self.online or self.logsumexp):
            option = "softmax = 'online'" if self.online else "logsumexp = True"
            raise ProblemError(
                f"{option} with direction = {self.direction!r}: it is an option of the forward "
                "pass; the others take the logsumexp as an input, so no maximum is looked for"
            )
        if self.saved_weights and self.direction != "backward":
            raise ProblemError(
                f"saved_weights = True with direction = {self.direction!r}: only the backward pass "
                "can take the weights as an input"
            )

    @property
    def pairs(self) -> int:
        """Z: pairs of a query and a key that attend."""
        return self.n * self.keys if self.mask is None else self.mask.pairs

    @property
    def online(self) -> bool:
        """Whether the softmax is online."""
        return self.softmax == "online"

    def with_block(self, block: int) -> Attention:
        """Give the same problem with the online softmax in blocks of at most `block` keys."""
        return replace(self, block=min(block, self.keys))

    @property
    def kind(self) -> str:
        """Which schedules and bounds are for it."""
        kind = "saved backward" if self.saved_weights else self.direction
        return kind if self.mask is None else f"masked {kind}"

    @property
    def settled(self) -> Attention:
        """The problem with blocks of one key, if an online softmax leaves them to the schedule."""
        return self.with_block(1) if self.online and self.block is None else self

    @property
    def sizes(self) -> Mapping[str, int | str]:
        """What tells it from others, for a short notation."""
        sizes: dict[str, int | str] = {"n": self.n, "d": self.d}
        if self.keys != self.n:
            sizes["keys"] = self.keys
        if self.value_dim != self.d:
            sizes["value_dim"] = self.value_dim
        if self.mask is not None:
            sizes["mask"] = self.mask.name
        return sizes

    @property
    def title(self) -> str:
        """What is computed, in words."""
        what = {
            "forward": "attention",
            "backward": "backward pass of attention",
            "double_backward": "double backward pass of attention",
        }[self.direction]
        told = f"{what}, n = {self.n}, keys = {self.keys}, d = {self.d}"
        told += f", value_dim = {self.value_dim}"
        if self.direction == "forward":
            told += f", {self.softmax} softmax"
        if self.mask is not None:
            told += f", {self.mask.name} mask of {self.pairs:,} pairs"
        return told + (", weights saved" if self.saved_weights else "")

    def to_dict(self) -> dict[str, object]:
        """Give it as plain values, for JSON."""
        told: dict[str, object] = {
            "kind": self.kind,
            "n": self.n,
            "keys": self.keys,
            "d": self.d,
            "value_dim": self.value_dim,
        }
        if self.direction == "forward":
            told |= {"softmax": self.softmax, "logsumexp": self.logsumexp}
        if self.mask is not None:
            told |= {"mask": self.mask.name, "pairs": self.pairs}
        return told

    @property
    def operands(self) -> Mapping[str, tuple[int, ...]]:
        """The inputs and their shapes, in the order in which an execution takes them.

        >>> list(Attention(n=2, d=1, direction="backward").operands)
        ['Q', 'K', 'V', 'O', 'dO', 'Lse']
        """
        n, m, d, e = self.n, self.keys, self.d, self.value_dim
        shapes: dict[str, tuple[int, ...]] = {"Q": (n, d), "K": (m, d), "V": (m, e)}
        if self.saved_weights:
            return {**shapes, "P": (n, m), "dO": (n, e)}
        if self.direction != "forward":
            shapes |= {"O": (n, e), "dO": (n, e), "Lse": (n,)}
        if self.direction == "double_backward":
            shapes |= {"D": (n,), "UQ": (n, d), "UK": (m, d), "UV": (m, e)}
        return shapes

    @cached_property
    def graph(self) -> Any:
        """The computation graph, a `FamilyGraph`; equal problems have the same one.

        Under a mask it is a `pebble.masked.MaskedGraph`.

        Raises
        ------
        SizeError
            An online softmax whose block is not given.
        """
        if self.online and self.block is None:
            raise SizeError("block = None: an online softmax's graph needs its block of keys")
        if self.mask is not None:
            return shared_graph(self, lambda: masked_graph(self))
        return shared_graph(self, lambda: BUILDERS[self.direction](self))
