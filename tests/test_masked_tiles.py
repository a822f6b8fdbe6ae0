"""Tiles, profiles and tapes under masks, against loops over a table of booleans."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble import Attention, masks
from pebble.errors import ProgramError
from pebble.masked.pairs import Pairs
from pebble.masked.profile import Profile, mixed
from pebble.masked.tapes import counted, written
from pebble.masked.tiles import count_tiles
from pebble.rules import Op
from tests.masks_strategies import told_masks

SIZES = st.integers(1, 6)


def naive_tiles(table, rows, cols):
    """Count tile by tile; None for a tile that is empty."""
    n, m = len(table), len(table[0])
    keys_of = [[j for j in range(m) if table[i][j]] for i in range(n)]
    queries_of = [[i for i in range(n) if table[i][j]] for j in range(m)]
    found = []
    for top in range(0, n, rows):
        for left in range(0, m, cols):
            pairs = [
                (i, j)
                for i in range(top, min(n, top + rows))
                for j in range(left, min(m, left + cols))
                if table[i][j]
            ]
            if not pairs:
                continue
            last, rows_started, columns_started = [[-1, -1] for _ in range(4)], 0, 0
            for i, j in pairs:
                first, column_first = keys_of[i][0] == j, queries_of[j][0] == i
                rows_started += first
                columns_started += column_first
                last[first + 2 * column_first] = [rows_started, columns_started]
            found.append(
                {
                    "columns": left // cols,
                    "pairs": len(pairs),
                    "queries": len({i for i, _ in pairs}),
                    "keys": len({j for _, j in pairs}),
                    "rows_started": rows_started,
                    "rows_finished": sum(keys_of[i][-1] == j for i, j in pairs),
                    "columns_started": columns_started,
                    "columns_finished": sum(queries_of[j][-1] == i for i, j in pairs),
                    "both_started": sum(
                        keys_of[i][0] == j and queries_of[j][0] == i for i, j in pairs
                    ),
                    "only": sum(len(keys_of[i]) == 1 for i, _ in pairs),
                    "last": last,
                }
            )
    return found


@settings(max_examples=400)
@given(told_masks(14, 14), SIZES, SIZES)
def test_tiles_are_counted(told, rows, cols):
    mask, table = told
    tiles, naive = count_tiles(mask, rows, cols), naive_tiles(table, rows, cols)
    assert tiles.visited == len(naive) == mask.tiles(rows, cols).visited
    for name in naive[0] if naive else ():
        values = getattr(tiles, name)
        if name == "columns":
            strips = zip(tiles.columns, tiles.repeats, strict=True)
            each = [at for start, count in strips for at in range(start, start + count)]
        else:
            each = np.repeat(values, tiles.repeats, axis=0).tolist()
        assert each == [tile[name] for tile in naive], name
    assert tiles.total(tiles.pairs) == mask.pairs


def test_tiles_that_are_alike_are_a_strip():
    # 1024 queries, one block, the last of whose rows of tiles has one strip of full tiles.
    tiles = count_tiles(masks.causal(65536), 128, 64)
    assert len(tiles.columns) < 3000
    assert tiles.visited == sum(2 * t + 2 for t in range(512))


@given(told_masks())
def test_pairs_know_their_neighbours(told):
    mask, table = told
    pairs = Pairs(mask)
    where = [(i, j) for i, row in enumerate(table) for j, on in enumerate(row) if on]
    assert list(zip(pairs.queries.tolist(), pairs.keys.tolist(), strict=True)) == where
    for at, (i, j) in enumerate(where):
        left = [b for b in range(j) if table[i][b]]
        above = [a for a in range(i) if table[a][j]]
        assert pairs.first_in_row[at] == (not left)
        assert pairs.first_in_column[at] == (not above)
        assert pairs.before_in_row[at] == (where.index((i, left[-1])) if left else -1)
        assert pairs.before_in_column[at] == (where.index((above[-1], j)) if above else -1)
        assert pairs.find(i, j) == at
    assert pairs.find(-1, 0) == pairs.find(0, mask.keys) == -1


moves = st.lists(
    st.tuples(st.sampled_from([Op.LOAD, Op.STORE, Op.COMPUTE, Op.DELETE]), st.integers(0, 3)),
    max_size=5,
)


def profile_of(steps):
    found = Profile()
    for op, size in steps:
        found = found.move(op, size)
    return found


@given(moves, moves, st.integers(0, 4))
def test_profiles_add_up(a, b, count):
    assert profile_of(a).then(profile_of(b)) == profile_of(a + b)
    assert profile_of(a).times(count) == profile_of(a * count)


@given(st.lists(moves, max_size=6), st.data())
def test_profiles_in_turn_are_those_of_each_run(steps, data):
    cut = data.draw(st.integers(0, len(steps)))
    each = [profile_of(step) for step in steps]
    many = Profile(
        tuple(np.array([p.words[at] for p in each], np.int64) for at in range(4)),
        np.array([p.net for p in each], np.int64),
        np.array([p.peak for p in each], np.int64),
    )
    runs = many.in_turn(np.array([0, cut, len(steps)]))
    for at, part in enumerate((steps[:cut], steps[cut:])):
        whole = profile_of([move for step in part for move in step])
        assert (runs.net[at], runs.peak[at]) == (whole.net, whole.peak)
        assert [words[at] for words in runs.words] == list(whole.words)


@given(st.data())
def test_mixed_pairs_are_those_in_order(data):
    # Rows keep a words, columns b; each class needs some more for a while.
    a, b = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
    classes = []
    for kind in range(4):
        kept = a * (kind & 1) + b * (kind >> 1)
        more = data.draw(st.integers(0, 4))
        classes.append(Profile().move(Op.COMPUTE, kept + more).move(Op.DELETE, more))
    kinds = data.draw(st.lists(st.integers(0, 3), max_size=8))
    last, rows, columns = [[-1, -1] for _ in range(4)], 0, 0
    whole = Profile()
    for kind in kinds:
        rows, columns = rows + (kind & 1), columns + (kind >> 1)
        last[kind] = [rows, columns]
        whole = whole.then(classes[kind])
    counts = [np.array([kinds.count(kind)]) for kind in range(4)]
    found = mixed(classes, counts, np.array([last]))
    assert (found.net[0], found.peak[0]) == (whole.net, whole.peak)
    assert [int(words[0]) for words in found.words] == list(whole.words)


def test_pairs_that_keep_words_elsewhere_are_refused():
    step = Profile().move(Op.COMPUTE, 1)
    counts, last = [np.array([1])] * 4, np.zeros((1, 4, 2), np.int64)
    with pytest.raises(ProgramError, match=r"^a step over pairs keeps words elsewhere than where"):
        mixed([step, step.times(2), step, step], counts, last)


@given(told_masks(8, 8).filter(lambda told: told[0].pairs), SIZES, SIZES, st.booleans())
def test_both_tapes_see_the_same_tiles(told, rows, cols, by_queries):
    # Each part of a tile is loaded and dropped: what the one tape counts the other one writes.
    mask, _ = told
    p = Attention(mask.n, 2, mask.keys, mask=mask, empty_rows="zeros")
    if p.mask is None:
        return
    graph = p.graph
    Q, K, l, P, o = (graph[name] for name in ("Q", "K", "l", "P", "o"))

    def write(tape):
        outer = tape.query_blocks(rows, cols) if by_queries else tape.key_blocks(cols, rows)
        for block in outer:
            family = Q if by_queries else K
            tape.load(family[block.members], family[block.whole])
            for T in tape.tiles(block):
                tape.load(family[T.block], Q[T.queries], K[T.keys])
                tape.load(Q[T.whole_queries], K[T.whole_keys], P[T.pairs])
                tape.store(P[T.later_pairs], P[T.shared_pairs])
                tape.store(Q[T.rows_started], Q[T.rows_going], Q[T.rows_finished], Q[T.rows_left])
                tape.store(K[T.columns_started], K[T.columns_going])
                tape.store(K[T.columns_finished], K[T.columns_left])
                tape.store(l[T.sums_before], o[T.sums_after])
                for i in tape.each(T.rows_finished):
                    tape.store(l.last(i))
            yield

    found = counted(graph, write)
    codes = np.concatenate(list(written(graph, write)))
    assert found.words[:2] == tuple(int(((codes & 7) == op).sum()) for op in (0, 1))


@given(told_masks(8, 8).filter(lambda told: told[0].pairs), SIZES, SIZES, st.booleans())
def test_pairs_come_row_by_row_or_column_by_column(told, rows, cols, by_queries):
    mask, table = told
    p = Attention(mask.n, 1, mask.keys, mask=mask, empty_rows="zeros")
    if p.mask is None:
        return
    P = p.graph["P"]

    def write(tape):
        outer = tape.query_blocks(rows, cols) if by_queries else tape.key_blocks(cols, rows)
        for block in outer:
            for T in tape.tiles(block):
                for ij in tape.pairs(T):
                    tape.store(P[ij])
            yield

    codes = np.concatenate(list(written(p.graph, write)))
    found = [p.graph.label(v).index for v in (codes >> 3).tolist()]
    every = [(i, j) for i in range(mask.n) for j in range(mask.keys) if table[i][j]]
    by_rows = lambda pair: (pair[0] // rows, pair[1] // cols, *pair)
    by_columns = lambda pair: (pair[1] // cols, pair[0] // rows, pair[1], pair[0])
    assert found == sorted(every, key=by_rows if by_queries else by_columns)
