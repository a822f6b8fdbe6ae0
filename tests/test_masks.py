"""Masks against tables of booleans that are filled pair by pair."""

import copy
import pickle
from dataclasses import FrozenInstanceError, astuple, dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from pebble.errors import MaskError, SizeError
from pebble.masks import (
    Mask,
    bigbird,
    blocks,
    causal,
    dilated,
    document,
    fixed,
    flash2_tiles,
    from_array,
    from_function,
    from_scipy,
    full,
    longformer,
    parse_mask,
    strided,
    window,
)
from pebble.masks import convert as convert_module
from pebble.masks import tiles as tiles_module
from tests import masks_naive as naive
from tests.masks_strategies import masks as some_masks
from tests.masks_strategies import plain, tables, told_masks, told_masks_of

# Constructors, and what they make


@settings(max_examples=400)
@given(st.data())
def test_a_constructor_makes_what_its_rule_says(data):
    n, keys = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 9))
    if data.draw(st.booleans()):
        keys = n
    mask, rows = data.draw(plain(n, keys))
    assert mask.to_array().tolist() == rows


@settings(max_examples=300)
@given(told_masks())
def test_combinations_are_those_of_booleans(told):
    mask, rows = told
    assert mask.to_array().tolist() == rows


@given(told_masks())
def test_a_pattern_has_one_form(told):
    mask, rows = told
    same = from_array(rows)
    assert mask == same
    assert hash(mask) == hash(same)
    assert {mask: 1}[same] == 1
    assert mask == mask.T.T


@given(told_masks(), tables(2, 2))
def test_masks_of_other_pairs_or_keys_differ(told, other):
    mask, rows = told
    assert (mask == from_array(other)) == (rows == other)
    assert mask != from_array([[*row, False] for row in rows])
    assert mask != ~mask
    assert mask != rows


@given(some_masks(), st.data())
def test_laws_of_the_algebra(mask, data):
    other, _ = data.draw(told_masks_of(*mask.shape))
    third, _ = data.draw(told_masks_of(*mask.shape, depth=0))
    assert mask & other == other & mask
    assert mask | other == other | mask
    assert mask & (other | third) == (mask & other) | (mask & third)
    assert ~(mask & other) == ~mask | ~other
    assert mask & ~mask == ~full(*mask.shape)
    assert (mask & other).T == mask.T & other.T
    assert (mask & other).pairs + (mask | other).pairs == mask.pairs + other.pairs


def test_strided_by_hand():
    # Row 7: 7 - 2 to 7, and 3 and 1; row 0 itself alone.
    assert strided(8, 2).row(7).tolist() == [1, 3, 5, 6, 7]
    assert strided(8, 2).row(0).tolist() == [0]
    # Row i of stride 3 has min(i, 3) + 1 keys and i // 3 - 1 more: 1 2 3 4 4 4 5 5 5.
    assert strided(9, 3).row_counts.tolist() == [1, 2, 3, 4, 4, 4, 5, 5, 5]


def test_fixed_by_hand():
    # Row 8 of blocks of 4, the last two of each: 2, 3, 6, 7 and itself.
    assert fixed(12, 4, 2).row(8).tolist() == [2, 3, 6, 7, 8]
    assert fixed(12, 4, 4) == causal(12)


def test_dilated_by_hand():
    assert dilated(12, window=4, dilation=3).row(5).tolist() == [2, 5, 8, 11]
    assert dilated(12, window=4, dilation=3, causal=True).row(7).tolist() == [1, 4, 7]
    assert dilated(9, window=4, dilation=1) == window(9, 2, 2)


HUGE = 10**30


@pytest.mark.parametrize(
    ("mask", "same"),
    [
        (window(4, HUGE, HUGE, keys=2), full(4, 2)),
        (window(4, HUGE, 0), causal(4)),
        (strided(4, HUGE), causal(4)),
        (fixed(4, HUGE, 1), causal(4)),
        (dilated(4, HUGE, 1), full(4)),
        (dilated(4, HUGE, HUGE), window(4, 0, 0)),
        (longformer(4, HUGE, []), full(4)),
        (blocks([[True]], HUGE, 4, 3), full(4, 3)),
        (bigbird(4, HUGE, 1, 0, 0, 0), full(4)),
        (bigbird(4, 1, HUGE + 1, 0, 0, 0), full(4)),
        (bigbird(4, 1, 1, HUGE, 0, 0), full(4)),
        (bigbird(4, 1, 1, 0, HUGE, 0), full(4)),
        (bigbird(4, 1, 1, 0, 0, HUGE), window(4, 0, 0)),
    ],
    ids=repr,
)
def test_sizes_beyond_the_mask_reach_no_further(mask, same):
    assert mask == same


def test_tiles_beyond_the_mask_are_cut_to_it():
    assert causal(4).tiles(HUGE, HUGE) == causal(4).tiles(4, 4)
    assert causal(4).tiles(HUGE, 2).touched_pairs == 16
    assert causal(4).densest(HUGE, HUGE) == 10
    counted = flash2_tiles(4, HUGE, HUGE, left=HUGE, right=HUGE)
    assert (counted.visited, counted.total) == (1, 1)


def test_causal_aligns_the_ends():
    assert causal(2, keys=4).to_array().tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert causal(4, keys=2).to_array().tolist() == [[0, 0], [0, 0], [1, 0], [1, 1]]
    assert causal(4, keys=2).empty_rows.tolist() == [0, 1]


@given(
    st.integers(1, 40),
    st.integers(1, 5),
    st.integers(0, 3),
    st.integers(0, 4),
    st.integers(0, 5),
    st.integers(0, 9),
)
def test_bigbird_is_its_window_its_globals_and_the_random_blocks(n, size, half, g, random, seed):
    mask = bigbird(n, size, 2 * half + 1, g, random, seed)
    assert mask == bigbird(n, size, 2 * half + 1, g, random, seed)
    number = -(-n // size)
    array = mask.to_array()
    found = array[::size, ::size]
    assert array.tolist() == naive.blocks(found, size, size, n, n)
    for r in range(number):
        sure = {c for c in range(number) if abs(r - c) <= half or r < g or c < g}
        row = set(np.flatnonzero(found[r]).tolist())
        assert row >= sure
        assert len(row - sure) == min(random, number - len(sure))


def test_bigbird_draws_every_block_that_it_may_about_as_often():
    # Block row 9 of 12 has 0 and 8 to 10; it draws 2 of the other 8. In 400 masks each block is
    # drawn 100 times on average, with a standard deviation of sqrt(400 * 3 / 16) = 8.7.
    times = np.zeros(12, int)
    for seed in range(400):
        times[bigbird(12, 1, 3, 1, 2, seed).row(9)] += 1
    assert (times[[0, 8, 9, 10]] == 400).all()
    rest = np.delete(times, [0, 8, 9, 10])
    assert rest.sum() == 800
    assert (abs(rest - 100) < 44).all()


def test_bigbird_with_other_seeds_differs():
    assert bigbird(64, 2, 3, 1, 2, seed=0) != bigbird(64, 2, 3, 1, 2, seed=1)


def test_a_function_is_called_for_some_rows_at_a_time(monkeypatch):
    monkeypatch.setattr(convert_module, "AT_ONCE", 20)
    called = []

    def near(q, k):
        called.append((q.shape, k.shape))
        return abs(q - k) <= 1

    assert from_function(near, n=7) == window(7, 1, 1)
    assert called == [((2, 1), (1, 7))] * 3 + [((1, 1), (1, 7))]
    array = window(7, 2, 1).to_array()
    assert from_array(array) == window(7, 2, 1)


def test_a_function_may_ignore_an_index():
    assert from_function(lambda q, k: k < 2, n=3, keys=4).row_counts.tolist() == [2, 2, 2]
    assert from_function(lambda q, k: q > 0, n=3, keys=4).row_counts.tolist() == [0, 4, 4]
    assert from_function(lambda q, k: True, n=3).is_full


# Counts and what is inside


@given(told_masks())
def test_counts(told):
    mask, rows = told
    pairs = naive.pairs_of(rows)
    assert mask.shape == (len(rows), len(rows[0])) == (mask.n, mask.keys)
    assert mask.pairs == len(pairs)
    assert mask.row_counts.tolist() == [sum(row) for row in rows]
    assert mask.column_counts.tolist() == [sum(column) for column in naive.transposed(rows)]
    assert mask.touched_rows == len({i for i, _ in pairs})
    assert mask.touched_columns == len({j for _, j in pairs})
    assert mask.empty_rows.tolist() == [i for i, row in enumerate(rows) if not any(row)]
    assert mask.is_full == all(map(all, rows))
    assert mask.diagonals == len({i - j for i, j in pairs})


@given(told_masks(), st.data())
def test_looking_inside(told, data):
    mask, rows = told
    i0, i1 = sorted(data.draw(st.lists(st.integers(0, mask.n), min_size=2, max_size=2)))
    j0, j1 = sorted(data.draw(st.lists(st.integers(0, mask.keys), min_size=2, max_size=2)))
    pairs = naive.pairs_of(rows)
    inside = [(i, j) for i, j in pairs if i0 <= i < i1 and j0 <= j < j1]
    assert mask.pairs_in(i0, i1, j0, j1) == len(inside)
    starts, stops = mask.columns_of(i0, i1)
    columns = [j for a, b in zip(starts, stops, strict=True) for j in range(a, b)]
    assert columns == sorted({j for i, j in pairs if i0 <= i < i1})
    assert (starts[1:] > stops[:-1]).all()
    assert [mask.row(i).tolist() for i in range(mask.n)] == [
        [j for j, a in enumerate(row) if a] for row in rows
    ]
    i, j = np.indices(mask.shape)
    assert mask.contains(i, j).tolist() == rows
    assert mask.contains(mask.n - 1, range(mask.keys)).tolist() == rows[-1]
    assert list(zip(*(part.tolist() for part in mask.coordinates()), strict=True)) == pairs


@given(told_masks())
def test_scipy_and_back(told):
    mask, rows = told
    matrix = mask.to_scipy()
    assert matrix.shape == mask.shape
    assert matrix.toarray().tolist() == rows
    assert from_scipy(matrix) == mask


def test_a_sparse_matrix_may_be_untidy_and_stays_as_it_is():
    # One row, its columns out of order, column 2 twice, and a stored 0 in column 1.
    matrix = csr_array((np.array([1.0, 1, 0, 1]), [2, 0, 1, 2], [0, 4]), shape=(1, 4))
    assert from_scipy(matrix).row(0).tolist() == [0, 2]
    assert matrix.indices.tolist() == [2, 0, 1, 2]
    assert matrix.nnz == 4
    tidy = csr_array((np.array([1.0, 0, 1]), [0, 1, 2], [0, 3]), shape=(1, 4))
    assert from_scipy(tidy).row(0).tolist() == [0, 2]
    assert tidy.nnz == 3
    with pytest.raises(MaskError, match=r"a matrix of shape \(0, 3\): a mask has queries"):
        from_scipy(csr_array((0, 3)))


@given(told_masks(), st.data())
def test_a_submask_has_the_rows_asked_for(told, data):
    mask, rows = told
    order = data.draw(st.lists(st.integers(0, mask.n - 1), min_size=1, max_size=12))
    assert mask.submask(order).to_array().tolist() == [rows[i] for i in order]


def test_large_masks_are_counted_by_formula():
    n, w = 131_072, 4096
    assert causal(n).pairs == n * (n + 1) // 2
    mask = window(n, w, w)
    # Each of n rows has 2 w + 1 keys, less what is cut off at the two corners.
    assert mask.pairs == n * (2 * w + 1) - w * (w + 1)
    assert mask == mask.T
    assert len(mask.starts) == n
    assert (mask & causal(n)) == window(n, w, 0)
    assert (window(n, w, 0) | window(n, 0, w)) == mask
    assert document([n // 2] * 2).tiles(128, 64).full == n // 128 * (n // 64) // 2


# A value


def test_a_mask_does_not_change():
    mask = causal(3)
    with pytest.raises(FrozenInstanceError, match=r"cannot assign to 'keys': a mask does not"):
        mask.keys = 4
    with pytest.raises(FrozenInstanceError, match=r"cannot delete 'name': a mask does not change"):
        del mask.name
    for array in (*mask.rows, mask.row_counts, mask.column_counts, mask.empty_rows):
        with pytest.raises(ValueError, match=r"read-only"):
            array[...] = 0


def test_a_mask_does_not_share_arrays_with_its_maker():
    starts = np.array([0, 0])
    mask = Mask(3, [0, 1, 2], starts, [1, 2])
    starts[0] = 1
    assert mask == causal(3).submask([0, 1])
    view = np.array([0, 0, 9])[:2]
    view.flags.writeable = False
    mask = Mask(3, [0, 1, 2], view, [1, 2])
    assert mask.starts.base is None


def test_a_mask_can_be_copied_and_pickled():
    mask = causal(3) & window(3, 1, 1)
    assert mask.pairs == 5
    assert copy.copy(mask) is mask
    assert copy.deepcopy(mask) is mask
    again = pickle.loads(pickle.dumps(mask))
    assert again == mask
    assert again.name == mask.name
    assert not again.starts.flags.writeable


def test_a_mask_can_be_part_of_a_frozen_dataclass():
    @dataclass(frozen=True)
    class Problem:
        n: int
        mask: Mask

    assert Problem(3, causal(3)) == Problem(3, window(3, None, 0))
    assert len({Problem(3, causal(3)), Problem(3, window(3, 9, 0))}) == 1
    assert {astuple(Problem(3, causal(3))): 1}[3, window(3, None, 0)] == 1


def test_names_and_notations():
    mask = causal(4) & window(4, 2, 0)
    assert mask.name == "causal & window(2, 0)"
    assert (mask | full(4)).name == "causal & window(2, 0) | full"
    assert ((causal(4) | full(4)) & ~mask).name == "(causal | full) & ~(causal & window(2, 0))"
    assert (~causal(4)).T.name == "~causal.T"
    assert mask.T.name == "(causal & window(2, 0)).T"
    assert mask.submask([1]).name == "(causal & window(2, 0)).submask(1 rows)"
    assert causal(4).permuted([1, 0, 2, 3]).name == "causal.permuted"
    assert causal(4).named("mine") == causal(4)
    assert repr(causal(4).named("mine")) == "Mask(mine, 4 x 4, 10 pairs)"
    assert repr(Mask(2, [0, 1], [0], [2])) == "Mask(mask, 1 x 2, 2 pairs)"
    assert len(repr(full(2).named("x" * 500))) < 90
    assert repr(causal(4).tiles(2, 3)) == "Tiles(2 x 2: 1 full, 2 partial, 1 empty)"


def test_names_of_constructors():
    assert full(2).name == "full"
    assert causal(2, 3).name == "causal"
    assert window(4, None, 2).name == "window(None, 2)"
    assert window(4, 1, 2, causal=True).name == "window(1, 0)"
    assert blocks([[True]], 2).name == "blocks(2)"
    assert blocks(causal(2), (2, 3)).name == "blocks(causal, (2, 3))"
    assert dilated(4, 2, 1).name == "dilated(2, 1)"
    assert dilated(4, 2, 1, causal=True).name == "dilated(2, 1, causal=True)"
    assert document([2, 2]).name == "document(2 of 2)"
    assert document([2, 1], causal=True).name == "document(2 sequences, causal=True)"
    assert longformer(4, 2, [0, 0, 1]).name == "longformer(2, 2 global)"
    assert bigbird(4, 1, 1, 1, 1, 7).name == "bigbird(1, 1, 1, 1, seed=7)"
    assert strided(4, 1).name == "strided(1)"
    assert fixed(4, 2, 1).name == "fixed(2, 1)"
    assert fixed(4, 2, 2).name == "fixed(2, 2)"

    def even_keys(q, k):
        return k % 2 == 0

    assert from_function(even_keys, 2).name == "even_keys"
    assert from_function(lambda q, k: k >= 0, 2).name == "from_function"


# Tiles


@settings(max_examples=300)
@given(told_masks(), st.integers(1, 10), st.integers(1, 10), st.sampled_from([1, 3, 1 << 20]))
def test_tiles_are_those_of_the_table(told, tall, wide, at_once):
    mask, rows = told
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiles_module, "AT_ONCE", at_once)
        tiles = mask.tiles(tall, wide)
        assert tiles.runs  # cut while the patch holds
    check_tiles(tiles, rows, tall, wide)


def check_tiles(tiles, rows, tall, wide):
    found = naive.tiles(rows, tall, wide)
    visited = {at: pairs for at, (pairs, _) in found.items() if pairs}
    assert tiles.shape == tuple(max(at[axis] for at in found) + 1 for axis in (0, 1))
    assert tiles.total == len(found)
    assert tiles.visited == len(visited)
    assert tiles.empty == len(found) - len(visited)
    assert tiles.full == sum(pairs == places for pairs, places in found.values())
    assert tiles.partial == sum(0 < pairs < places for pairs, places in found.values())
    assert tiles.touched_pairs == sum(places for pairs, places in found.values() if pairs)
    row_of = np.repeat(np.arange(tiles.shape[0]), np.diff(tiles.row_starts)).tolist()
    listed = zip(row_of, tiles.columns.tolist(), strict=True)
    assert list(zip(listed, tiles.pairs.tolist(), strict=True)) == sorted(visited.items())
    for (r, c), (pairs, places) in found.items():
        assert tiles.count(r, c) == pairs
        kind = "full" if pairs == places else "partial" if pairs else "empty"
        assert tiles.kind(r, c) == kind
    hulls = []
    for r in range(tiles.shape[0]):
        columns = [c for at, c in visited if at == r]
        hulls.append((min(columns), max(columns) + 1) if columns else (0, 0))
        assert tiles.hull(r) == hulls[-1]
    assert tiles.hull_visited == sum(last - first for first, last in hulls)


@given(some_masks(), st.integers(1, 10), st.integers(1, 10))
def test_runs_of_tiles_that_touch_differ(mask, tall, wide):
    runs = mask.tiles(tall, wide).runs
    touch = (runs.row_of[1:] == runs.row_of[:-1]) & (runs.starts[1:] == runs.stops[:-1])
    assert (runs.pairs[1:] != runs.pairs[:-1])[touch].all()
    assert (runs.stops > runs.starts).all()


def test_tiles_are_values():
    assert causal(4).tiles(2, 2) == window(4, None, 0).tiles(2, 2)
    assert hash(causal(4).tiles(2, 2)) == hash(window(4, None, 0).tiles(2, 2))
    assert causal(4).tiles(2, 2) != causal(4).tiles(2, 1)


def test_a_block_diagonal_fills_its_own_tiles_and_half_of_larger_ones():
    mask = document([64] * 16)
    assert mask.pairs == 16 * 64 * 64 == 65_536
    assert mask == blocks(np.eye(16, dtype=bool), 64)
    tiles = mask.tiles(64, 64)
    assert (tiles.full, tiles.partial, tiles.touched_pairs) == (16, 0, 65_536)
    tiles = mask.tiles(128, 128)
    assert (tiles.full, tiles.partial, tiles.touched_pairs) == (0, 8, 131_072)


def test_tiles_of_one_pair_are_the_pairs_and_take_little_memory():
    n = 131_072
    tiles = window(n, 8, 0).tiles(1, 1)
    assert tiles.visited == tiles.full == window(n, 8, 0).pairs
    assert len(tiles.runs.starts) == n
    tiles = causal(n).tiles(n, 1)
    assert tiles.pairs.tolist() == list(range(n, 0, -1))


# FlashAttention-2's rule


@pytest.mark.parametrize(
    ("n", "left", "right", "visited"),
    [
        # Causal: tile row m visits 2 (m + 1) tiles; 8 rows: 2 + 4 + ... + 16 = 72.
        (1024, None, 0, 72),
        (2048, None, 0, 272),
        (2048, 512, 0, 140),
        (2048, 1, 0, 47),
        # 128 rows: 128 * 129.
        (16_384, None, 0, 16_512),
        # 2, 4, 6, 8 and then 10 for each of 124 rows.
        (16_384, 512, 0, 1260),
        (2048, None, None, 512),
    ],
)
def test_known_numbers_of_visited_tiles(n, left, right, visited):
    counted = flash2_tiles(n, left=left, right=right)
    assert (counted.visited, counted.total) == (visited, n // 128 * (n // 64))
    assert window(n, left, right).tiles(128, 64).hull_visited == visited
    assert window(n, left, right).tiles(128, 64).visited == visited
    assert str(counted) == f"{visited} of {counted.total} tiles"


@settings(max_examples=300)
@given(st.data())
def test_the_rule_visits_just_the_tiles_of_the_window(data):
    n, keys, rows, cols = (data.draw(st.integers(1, 30)) for _ in range(4))
    left, right = (data.draw(st.none() | st.integers(0, 40)) for _ in range(2))
    counted = flash2_tiles(n, rows, cols, keys, left, right)
    tiles = window(n, left, right, keys).tiles(rows, cols)
    assert counted.visited == tiles.hull_visited == tiles.visited
    assert counted.total == tiles.total


# The most pairs of few rows and columns


@given(told_masks(6, 6), st.integers(1, 7), st.integers(1, 7))
def test_densest_is_never_too_small(told, a, b):
    mask, rows = told
    assert mask.densest(a, b) >= naive.densest(rows, a, b)
    assert mask.densest(a, b) <= min(a * b, mask.pairs)


@given(some_masks())
def test_densest_grows_with_either_number(mask):
    a, b = np.arange(mask.n + 1)[:, None], np.arange(mask.keys + 1)[None, :]
    most = mask.densities(a, b)
    assert (np.diff(most, axis=0) >= 0).all()
    assert (np.diff(most, axis=1) >= 0).all()
    assert most[0].tolist() == [0] * (mask.keys + 1)
    assert most[:, 0].tolist() == [0] * (mask.n + 1)
    assert most[-1, -1] == mask.pairs
    assert mask.T.densities(b, a).tolist() == most.tolist()


@pytest.mark.parametrize("mask", [full(4, 5), causal(6), document([3, 3])], ids=repr)
def test_densest_is_the_truth_where_it_is_simple(mask):
    rows = mask.to_array().tolist()
    exact = 0
    for a in range(1, mask.n + 1):
        for b in range(1, mask.keys + 1):
            # 4 rows and 4 columns of two documents of 3 hold 9 + 1 pairs; the bound is 4 * 3.
            if mask == document([3, 3]) and a in (4, 5) and b in (4, 5):
                assert mask.densest(a, b) > naive.densest(rows, a, b)
            else:
                assert mask.densest(a, b) == naive.densest(rows, a, b), (a, b)
                exact += 1
    assert exact >= 20


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
def test_densest_of_a_band_is_the_truth_away_from_the_corners(width):
    # The band has room for a + b rows and columns around its middle.
    mask = window(9, width // 2, (width - 1) // 2)
    rows = mask.to_array().tolist()
    for a in range(1, 6):
        for b in range(1, 6):
            # The longest diagonals of an a x b rectangle, as many as the band has.
            longest = sorted(
                (sum(i - j == k for i in range(a) for j in range(b))) for k in range(-b + 1, a)
            )[::-1]
            assert naive.densest(rows, a, b) == sum(longest[:width]) == mask.densest(a, b), (a, b)


def test_densest_by_hand():
    # Longformer: the global row has 9 keys, and its key all 9 rows; 3 x 3 can be full.
    assert longformer(9, 2, [0]).densest(3, 3) == 9
    # One row of 9 and 8 of at most 4 keys; 9 x 1: the global column.
    assert longformer(9, 2, [0]).densest(9, 1) == 9
    assert longformer(9, 2, [0]).densest(1, 9) == 9
    # Every second diagonal of 9: 5 of them, at most 5 + 4 + 4 + 3 + 3 of 5 x 5.
    assert dilated(20, 4, 2).diagonals == 5
    assert dilated(20, 4, 2).densest(5, 5) == 19
    # All rows and columns, and more than there are.
    assert causal(4).densest(100, 100) == 10
    assert (~full(3)).densest(2, 2) == 0


# Mistakes


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: causal(0), SizeError, "n = 0: the number of queries must be a positive integer"),
        (
            lambda: full(2, keys=2.0),
            SizeError,
            "keys = 2.0: the number of keys must be a positive integer",
        ),
        (
            lambda: window(4, -1, 0),
            SizeError,
            "left = -1: the keys before a query's own must be an integer, 0 or more",
        ),
        (
            lambda: window(4, 1, True),
            SizeError,
            "right = True: the keys after a query's own must be an integer, 0 or more",
        ),
        (
            lambda: dilated(4, 3, 1),
            SizeError,
            "window = 3: the window must be even, half of it on each side",
        ),
        (
            lambda: dilated(4, 2, 0),
            SizeError,
            "dilation = 0: the step of a dilated window must be a positive integer",
        ),
        (
            lambda: longformer(4, -2, []),
            SizeError,
            "window = -2: the window must be an integer, 0 or more",
        ),
        (
            lambda: longformer(4, 2, [4]),
            MaskError,
            "globals has 4: the 4 tokens are numbered 0 to 3",
        ),
        (
            lambda: longformer(4, 2, [0.5]),
            MaskError,
            "globals of type float64: they are integers, numbers of tokens",
        ),
        (
            lambda: bigbird(8, 2, 2, 1, 1, 0),
            SizeError,
            "window = 2: it must be odd, the blocks on both sides and its own",
        ),
        (
            lambda: bigbird(8, 2, 1, -1, 1, 0),
            SizeError,
            "globals = -1: the global blocks must be an integer, 0 or more",
        ),
        (
            lambda: bigbird(8, 2, 1, 1, 1, seed=-1),
            SizeError,
            "seed = -1: the seed must be an integer, 0 or more",
        ),
        (
            lambda: strided(4, 0),
            SizeError,
            "stride = 0: the stride must be a positive integer",
        ),
        (lambda: fixed(4, 2, 3), SizeError, "summary = 3: a block has 2 keys"),
        (
            lambda: document([2, 0]),
            SizeError,
            "lengths[1] = 0: a length must be a positive integer",
        ),
        (lambda: document([]), MaskError, "lengths = []: there must be one sequence or more"),
        (
            lambda: blocks([[1, 0]], 2),
            MaskError,
            "an array of type int64: a mask is of booleans, true to attend",
        ),
        (
            lambda: blocks([[True, False]], 2, n=3),
            MaskError,
            "n = 3: 1 block rows of 2 hold 1 to 2",
        ),
        (
            lambda: blocks([[True, False]], (1, 4), keys=4),
            MaskError,
            "keys = 4: 2 block columns of 4 hold 5 to 8",
        ),
        (
            lambda: blocks([[True]], (1, 2, 3)),
            MaskError,
            "size = (1, 2, 3): it is one number, or the rows and cols of a block",
        ),
        (lambda: blocks([[True]], 0), SizeError, "size = 0: the queries of a block must be a"),
        (lambda: blocks([[True]], (1, 0)), SizeError, "cols = 0: the keys of a block must be a"),
        (
            lambda: from_array([True]),
            MaskError,
            "an array of shape (1,): a mask has queries and keys, 1 or more",
        ),
        (
            lambda: from_array(np.zeros((0, 3), bool)),
            MaskError,
            "an array of shape (0, 3): a mask has queries and keys, 1 or more",
        ),
        (
            lambda: from_scipy(np.eye(2)),
            MaskError,
            "a ndarray: from_scipy takes a SciPy sparse matrix",
        ),
        (
            lambda: from_function(lambda q, k: q - k, 2),
            MaskError,
            "from_function gives int64: a mask is of booleans, true to attend",
        ),
        (
            lambda: from_function(lambda q, k: np.ones((2, 4), bool), 2, 3),
            MaskError,
            "from_function gives shape (2, 4) for queries (2, 1) and keys (1, 3): "
            "it must broadcast to (2, 3)",
        ),
        (
            lambda: causal(2) & full(2, 3),
            MaskError,
            "causal is 2 x 2 and full is 2 x 3: masks of one shape can be combined",
        ),
        (
            lambda: causal(2) | full(3, 2),
            MaskError,
            "causal is 2 x 2 and full is 3 x 2: masks of one shape can be combined",
        ),
        (
            lambda: causal(3).permuted([0, 1, 1]),
            MaskError,
            "order: each of the 3 queries comes once in it",
        ),
        (lambda: causal(3).permuted([0, 1]), MaskError, "order: each of the 3 queries comes once"),
        (
            lambda: causal(3).submask([3]),
            MaskError,
            "rows has 3: the 3 queries are numbered 0 to 2",
        ),
        (lambda: causal(3).submask([[1]]), MaskError, "rows of shape (1, 1): they are a one-dim"),
        (
            lambda: causal(3).submask([]),
            SizeError,
            "n = 0: the number of queries must be a positive integer",
        ),
        (lambda: causal(3).row(-1), MaskError, "i has -1: the 3 queries are numbered 0 to 2"),
        (lambda: causal(3).contains(0, 3), MaskError, "j has 3: the 3 keys are numbered 0 to 2"),
        (
            lambda: causal(3).pairs_in(0, 4, 0, 1),
            MaskError,
            "i0, i1 = 0, 4: a range of the 3 queries has 0 <= start <= stop <= 3",
        ),
        (
            lambda: causal(3).pairs_in(0, 1, 2, 1),
            MaskError,
            "j0, j1 = 2, 1: a range of the 3 keys has 0 <= start <= stop <= 3",
        ),
        (lambda: causal(3).columns_of(0, 1.5), MaskError, "i0, i1 = 0, 1.5: a range of the 3"),
        (lambda: causal(3).tiles(0, 1), SizeError, "rows = 0: the queries of a tile must be a"),
        (lambda: causal(3).tiles(1, -1), SizeError, "cols = -1: the keys of a tile must be a"),
        (
            lambda: causal(3).tiles(2, 1).kind(2, 0),
            MaskError,
            "r has 2: the 2 tile rows are numbered 0 to 1",
        ),
        (lambda: causal(3).tiles(2, 1).count(0, 3), MaskError, "c has 3: the 3 tile columns are"),
        (lambda: causal(3).tiles(2, 1).hull(-1), MaskError, "r has -1: the 2 tile rows are"),
        (lambda: causal(3).densest(0, 1), SizeError, "a = 0: the number of rows must be a"),
        (lambda: causal(3).densest(1, 0), SizeError, "b = 0: the number of columns must be a"),
        (lambda: flash2_tiles(0), SizeError, "n = 0: the number of queries must be a"),
        (lambda: flash2_tiles(9, cols=0), SizeError, "cols = 0: the keys of a tile must be a"),
        (lambda: flash2_tiles(9, left=-1), SizeError, "left = -1: the keys before a query's own"),
        (lambda: flash2_tiles(9, right=-1), SizeError, "right = -1: the keys after a query's own"),
        (lambda: Mask(0, [0, 0], [], []), SizeError, "keys = 0: the number of keys must be a"),
        (lambda: Mask(3, [0], [], []), SizeError, "n = 0: the number of queries must be a"),
        (
            lambda: Mask(3, [0, 1], [0.5], [1]),
            MaskError,
            "an array of type float64: rows and keys are integers",
        ),
        (lambda: Mask(3, [0, 1], [[0]], [1]), MaskError, "row_starts, starts and stops are one-"),
        (
            lambda: Mask(3, [0, 1], [0], [1, 2]),
            MaskError,
            "1 starts and 2 stops: each interval has both",
        ),
        (
            lambda: Mask(3, [0, 2], [0], [1]),
            MaskError,
            "row_starts does not rise from 0 to 1, the number of intervals",
        ),
        (
            lambda: Mask(3, [0, 1, 0, 1], [0], [1]),
            MaskError,
            "row_starts does not rise from 0 to 1, the number of intervals",
        ),
        (
            lambda: Mask(3, [0, 0, 1], [2], [2]),
            MaskError,
            "row 1: interval 2 to 2 is empty, or goes beyond the 3 keys",
        ),
        (lambda: Mask(3, [0, 1], [2], [4]), MaskError, "row 0: interval 2 to 4 is empty, or goes"),
        (lambda: Mask(3, [0, 1], [-1], [1]), MaskError, "row 0: interval -1 to 1 is empty, or"),
        (
            lambda: Mask(5, [0, 2], [0, 2], [2, 3]),
            MaskError,
            "row 0: interval 2 to 3 touches or overlaps the one before, 0 to 2, or is out of order",
        ),
    ],
)
def test_mistakes_are_named(make, error, message):
    with pytest.raises(error) as caught:
        make()
    assert message in str(caught.value)


def test_masks_combine_with_masks_alone():
    with pytest.raises(TypeError):
        causal(2) & True
    with pytest.raises(TypeError):
        causal(2) | [[True]]


# Notation


def test_a_notation_is_the_functions_mask():
    n = 12
    told = {
        "full": full(n),
        "causal": causal(n),
        "window:3,1": window(n, 3, 1),
        "dilated:4,2": dilated(n, 4, 2),
        "document:5": document([5, 5, 2]),
        "longformer:2,2": longformer(n, 2, [0, 1]),
        "bigbird:2,3,1,1,7": bigbird(n, 2, 3, 1, 1, 7),
        "strided:4": strided(n, 4),
        "fixed:4,1": fixed(n, 4, 1),
        " causal&window:2,0 |strided:3 ": causal(n) & window(n, 2, 0) | strided(n, 3),
        "strided:3 | causal & window:2,0": strided(n, 3) | (causal(n) & window(n, 2, 0)),
    }
    for text, mask in told.items():
        assert parse_mask(text, n) == mask, text
    assert parse_mask("window:2,0", 3, 9) == window(3, 2, 0, 9)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("band", r"^mask 'band': known are full, causal, window:left,right, dilated:window,dila"),
        ("", r"^mask '': known are full"),
        ("causal &", r"^mask '': known are full"),
        ("window:2", r"^mask 'window:2': it is written window:left,right, with integers$"),
        ("window:2,x", r"^mask 'window:2,x': it is written window:left,right, with integers$"),
        ("causal:1", r"^mask 'causal:1': it is written causal, with integers$"),
        ("strided:2", r"^mask 'strided:2' with n = 4 and keys = 5: it needs as many of both$"),
    ],
)
def test_a_text_that_is_no_notation(text, message):
    with pytest.raises(MaskError, match=message):
        parse_mask(text, 4, 5)


def test_numbers_of_a_notation_are_checked_by_the_function():
    with pytest.raises(SizeError, match=r"^right = -1: the keys after a query's own must be"):
        parse_mask("window:1,-1", 4)
    with pytest.raises(SizeError, match=r"must be a positive integer"):
        parse_mask("document:0", 4)
