"""Passes under a mask as the naive referee reads them: plain loops over a table of booleans."""


def forward(p, table):
    """Give the forward pass: a dict from each label to its predecessors, and the outputs."""
    n, m, d, e = p.n, p.keys, p.d, p.value_dim
    g = inputs(("Q", n, d), ("K", m, d), ("V", m, e))
    ends = []
    for i in range(n):
        keys, l = [j for j in range(m) if table[i][j]], None
        for at, j in enumerate(keys):
            s = score(g, i, j, d)
            weight = g_add(g, ("P", (i, j)), s)
            before = keys[at - 1] if at else None
            l = weight if not at else g_add(g, ("l", (i, j)), l, weight)
            for c in range(e):
                g_add(g, ("y", (i, j, c)), weight, ("V", (j, c)))
                if at:
                    old = ("y" if at == 1 else "o", (i, before, c))
                    g_add(g, ("o", (i, j, c)), old, ("y", (i, j, c)))
        if keys:
            last = keys[-1]
            for c in range(e):
                total = ("o" if len(keys) > 1 else "y", (i, last, c))
                ends.append(g_add(g, ("O", (i, c)), total, l))
            if p.logsumexp:
                ends.append(g_add(g, ("Lse", (i,)), l))
    return g, ends


def inputs(*shapes):
    """Give the labels of some input matrices, without predecessors."""
    return {
        (name, (i, k)): ()
        for name, rows, width in shapes
        for i in range(rows)
        for k in range(width)
    }


def g_add(g, label, *preds):
    """Add a vertex; give its label."""
    g[label] = tuple(preds)
    return label


def score(g, i, j, d):
    """Add the products and sums of a score; give the last."""
    s = g_add(g, ("x", (i, j, 0)), ("Q", (i, 0)), ("K", (j, 0)))
    for k in range(1, d):
        x = g_add(g, ("x", (i, j, k)), ("Q", (i, k)), ("K", (j, k)))
        s = g_add(g, ("s", (i, j, k)), s, x)
    return s
