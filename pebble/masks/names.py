"""The names of masks that are made of others."""

from __future__ import annotations

LONGEST = 60


def joined(left: str, sign: str, right: str) -> str:
    """Join two names; what binds less is put in brackets.

    Examples
    --------
    >>> joined("causal | full", "&", "window(2, 0)")
    '(causal | full) & window(2, 0)'
    >>> joined("causal & full", "|", "window(2, 0)")
    'causal & full | window(2, 0)'
    """
    if sign == "&":
        left, right = (f"({name})" if "|" in _signs(name) else name for name in (left, right))
    return f"{left} {sign} {right}"


def wrapped(name: str) -> str:
    """Put a name that is joined of others in brackets.

    Examples
    --------
    >>> wrapped("causal & full"), wrapped("window(2, 0)")
    ('(causal & full)', 'window(2, 0)')
    """
    return f"({name})" if _signs(name) else name


def shortened(name: str) -> str:
    """Cut the middle out of a long name.

    Examples
    --------
    >>> shortened("ab" * 40)
    'abababababababababababababababab...babababababababababababab'
    """
    if len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST // 2 + 2]}...{name[-(LONGEST // 2 - 5) :]}"


def _signs(name: str) -> set[str]:
    # The signs outside all brackets.
    depth, found = 0, set()
    for letter in name:
        depth += (letter == "(") - (letter == ")")
        if not depth and letter in "&|":
            found.add(letter)
    return found
