"""Indices that are known up to loop variables: a constant plus multiples of variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pebble.errors import ProgramError


@dataclass(frozen=True)
class Affine:
    """``constant + sum of coefficient * variable``; the variables are numbered.

    Examples
    --------
    >>> i = Affine(0, ((7, 4),))
    >>> 3 + i
    3 + 4*v7
    >>> (8 + i) // 4
    2 + v7
    >>> (3 + i).range({7: 10})
    (3, 39)
    """

    constant: int
    terms: tuple[tuple[int, int], ...] = ()

    def __add__(self, other: Affine | int) -> Affine:
        if isinstance(other, int):
            return Affine(self.constant + other, self.terms)
        terms = dict(self.terms)
        for variable, coefficient in other.terms:
            terms[variable] = terms.get(variable, 0) + coefficient
        kept = tuple(sorted((v, c) for v, c in terms.items() if c))
        return Affine(self.constant + other.constant, kept)

    __radd__ = __add__

    def __sub__(self, other: Affine | int) -> Affine:
        return self + (-other if isinstance(other, int) else other * -1)

    def __mul__(self, factor: int) -> Affine:
        if not factor:
            return Affine(0)
        return Affine(self.constant * factor, tuple((v, c * factor) for v, c in self.terms))

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Affine:
        """Divide by an integer that divides the constant and every coefficient.

        Raises
        ------
        ProgramError
            It does not divide all of them.
        """
        parts = [self.constant, *(c for _, c in self.terms)]
        if any(part % divisor for part in parts):
            raise ProgramError(f"{self} // {divisor}: the division is not exact")
        return Affine(self.constant // divisor, tuple((v, c // divisor) for v, c in self.terms))

    def range(self, counts: Mapping[int, int]) -> tuple[int, int]:
        """Give the least and the largest value, when variable v runs over 0 .. counts[v] - 1."""
        ends = [c * (counts[v] - 1) for v, c in self.terms]
        low = sum(end for end in ends if end < 0)
        high = sum(end for end in ends if end > 0)
        return self.constant + low, self.constant + high

    def at(self, values: Mapping[int, int]) -> int:
        """Give the value for values of all its variables."""
        return self.constant + sum(c * values[v] for v, c in self.terms)

    def coefficient(self, variable: int) -> int:
        """Give what the variable is multiplied by, 0 where it does not occur."""
        return dict(self.terms).get(variable, 0)

    def __repr__(self) -> str:
        parts = [f"v{v}" if c == 1 else f"{c}*v{v}" for v, c in self.terms]
        if self.constant or not parts:
            parts.insert(0, str(self.constant))
        return " + ".join(parts)
