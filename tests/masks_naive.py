"""Masks the slow, obvious way: tables of booleans, filled pair by pair, and loops over them.

It shares no code with `pebble.masks`. A table is a list of rows of booleans.
"""

from itertools import combinations


def table(n, keys, rule):
    """Give the table of a rule for a query's and a key's number."""
    return [[bool(rule(i, j)) for j in range(keys)] for i in range(n)]


def window(n, left, right, keys):
    """A query's own key is i + keys - n."""

    def rule(i, j):
        own = i + keys - n
        return (left is None or j >= own - left) and (right is None or j <= own + right)

    return table(n, keys, rule)


def blocks(pattern, rows, cols, n, keys):
    return table(n, keys, lambda i, j: pattern[i // rows][j // cols])


def strided(n, stride):
    first = table(n, n, lambda i, j: max(0, i - stride) <= j <= i)
    second = table(n, n, lambda i, j: j <= i and (i - j) % stride == 0)
    return either(first, second)


def fixed(n, stride, summary):
    first = table(n, n, lambda i, j: j <= i and i // stride == j // stride)
    second = table(n, n, lambda i, j: j <= i and j % stride in range(stride - summary, stride))
    return either(first, second)


def dilated(n, half, dilation, causal):
    attended = {
        (i, i + t * dilation) for i in range(n) for t in range(-half, 1 if causal else half + 1)
    }
    return table(n, n, lambda i, j: (i, j) in attended)


def longformer(n, half, tokens):
    return table(n, n, lambda i, j: abs(i - j) <= half or i in tokens or j in tokens)


def document(lengths, causal):
    owner = [t for t, length in enumerate(lengths) for _ in range(length)]
    n = len(owner)
    return table(n, n, lambda i, j: owner[i] == owner[j] and (j <= i or not causal))


def both(left, right):
    return [[a and b for a, b in zip(*rows, strict=True)] for rows in zip(left, right, strict=True)]


def either(left, right):
    return [[a or b for a, b in zip(*rows, strict=True)] for rows in zip(left, right, strict=True)]


def neither(rows):
    return [[not a for a in row] for row in rows]


def transposed(rows):
    return [list(column) for column in zip(*rows, strict=True)]


def pairs_of(rows):
    return [(i, j) for i, row in enumerate(rows) for j, a in enumerate(row) if a]


def tiles(rows, tall, wide):
    """Count pairs and places in each tile: a dict from (r, c) to both."""
    found = {}
    for i, row in enumerate(rows):
        for j, a in enumerate(row):
            pairs, places = found.get((i // tall, j // wide), (0, 0))
            found[i // tall, j // wide] = pairs + a, places + 1
    return found


def densest(rows, a, b):
    """Try every choice of `a` rows, with the best `b` columns for it."""
    most = 0
    for chosen in combinations(rows, min(a, len(rows))):
        columns = sorted((sum(column) for column in zip(*chosen, strict=True)), reverse=True)
        most = max(most, sum(columns[:b]))
    return most
