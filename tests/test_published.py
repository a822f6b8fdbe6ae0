"""Values that others published, and formulas in closed form."""

import csv
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pebble.attention import Attention
from pebble.errors import SizeError
from schedules import flash1, flash2, small_cache, standard
from tests.strategies import GENERATORS, problems


@pytest.mark.parametrize(
    ("n", "d", "cache", "io"),
    [(12, 2, 30, 192), (16, 4, 60, 640), (20, 4, 200, 320), (24, 8, 96, 2688)],
)
def test_flash2_with_one_key_at_a_time(n, d, cache, io):
    # a = floor((M - 2d - 3) / (2d + 1)) rows fit; 2nd + 2nd ceil(n / a) words move.
    fit = (cache - 2 * d - 3) // (2 * d + 1)
    rows = min(fit, n)
    schedule = flash2(Attention(n, d), cache)
    cost = schedule.replay()
    assert cost.io == io == 2 * n * d + 2 * n * d * -(-n // rows)
    assert cost.peak == rows * (2 * d + 1) + 2 * d + 3
    assert schedule.blocks == {"rows": rows, "cols": 1}


@given(problems(), st.integers(8, 200))
def test_flash2_reads_all_keys_once_a_block_of_rows(p, cache):
    try:
        schedule = flash2(p, cache)
    except SizeError:
        assume(False)
    passes = -(-p.n // schedule.blocks["rows"])
    loads = p.n * p.d + p.keys * (p.d + p.value_dim) * passes
    cost = schedule.count()
    assert (cost.loads, cost.stores) == (loads, p.n * p.value_dim + p.n * p.logsumexp)


@given(problems(), st.integers(8, 200))
def test_flash1_reads_keys_once_and_moves_the_sums_between_blocks(p, cache):
    try:
        schedule = flash1(p, cache)
    except SizeError:
        assume(False)
    passes = -(-p.keys // schedule.blocks["cols"])
    sums = p.value_dim + (2 if p.online else 1)
    cost = schedule.count()
    assert cost.loads == (
        p.keys * (p.d + p.value_dim) + passes * p.n * p.d + (passes - 1) * p.n * sums
    )
    assert cost.stores == (passes - 1) * p.n * sums + p.n * (p.value_dim + p.logsumexp)


@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 9), st.integers(1, 9))
def test_flash1_and_the_count_of_its_paper(n, d, rows, cols):
    # The paper: Tc (3nd + 4n) + 2nd + (nd + 2n). It also writes zeros of O, l and m and reads them
    # at the first block, nd + 2n each, and writes l and m at the last block, 2n.
    cost = flash1(Attention(n, d, softmax="online"), 10**4, rows=rows, cols=cols).count()
    blocks = -(-n // cols)
    paper = blocks * (3 * n * d + 4 * n) + 2 * n * d + (n * d + 2 * n)
    assert cost.io == paper - 2 * (n * d + 2 * n) - 2 * n


@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 3), st.integers(0, 20))
def test_small_cache_with_published_tiles(B, tiles, depths, spare):
    # 4 n^2 d / B + n^2 + nd + 2n where B = floor(sqrt(M / 4)) divides n and d.
    n, d = B * max(tiles, 2 if B == 1 else 1), B * depths
    cache = min(4 * B * B + spare, 4 * (B + 1) ** 2 - 1)
    try:
        cost = small_cache(Attention(n, d), cache, blocks="published").count()
    except SizeError:
        assume(False)
    assert cost.io == 4 * n * n * d // B + n * n + n * d + 2 * n


def test_small_cache_of_saha_and_ye():
    # B = 16 at M = 1024: 4 * 256^2 * 64 / 16 + 256^2 + 256 * 64 + 512.
    cost = small_cache(Attention(256, 64), 1024, blocks="published").replay()
    assert cost.io == 1048576 + 65536 + 16384 + 512
    # The best tiles have nearly M words and move little more than half of that.
    assert small_cache(Attention(256, 64), 1024).closed_form.io < 0.62 * cost.io


@given(st.integers(2, 40), st.integers(1, 9))
def test_standard_with_keys_and_values_in_cache(n, d):
    # S and P written and read, 4n^2, and Q, K, V and O once, 4nd.
    cache = n * d + 2 * d + 9
    cost = standard(Attention(n, d), cache, blocks="published").count()
    assert cost.io == 4 * n * n + 4 * n * d
    assert standard(Attention(n, d), cache).count().io == cost.io


@pytest.mark.parametrize(("cache", "reads"), [(13, 2), (14, 1)])
def test_a_row_of_scores_is_read_once_where_it_fits(cache, reads):
    # 12 scores, the next maximum and the one before, or the weight: 14 words.
    n, keys = 3, 12
    online, plain = Attention(n, 1, keys=keys, softmax="online"), Attention(n, 1, keys=keys)
    extra = standard(online, cache, rows=1, cols=1).count().loads
    extra -= standard(plain, cache, rows=1, cols=1).count().loads
    assert extra == (reads - 1) * n * keys


@given(st.sampled_from(GENERATORS), st.integers(1, 6), st.integers(1, 4))
def test_no_schedule_beats_reading_and_writing_everything_once(generator, n, d):
    p = Attention(n, d)
    assert generator(p, 10**5).count().io >= 4 * n * d


def test_with_room_for_everything_flash_moves_everything_once():
    p = Attention(7, 3, keys=5, value_dim=2)
    # Q, K and V of 21 + 15 + 10 words, O of 14.
    assert flash1(p, 1000).count().io == flash2(p, 1000).count().io == 60


@pytest.mark.parametrize("generator", [flash1, flash2], ids=["flash1", "flash2"])
def test_the_published_blocks_need_8_d_squared_and_16_d(generator):
    # Half of M for K and V, a quarter for the scores, and 2 d^2 for rows; and lower terms.
    d = 64
    p = Attention(10**6, d)

    def fits(cache):
        try:
            generator(p, cache, blocks="published")
        except SizeError:
            return False
        return True

    stated = 8 * d * d + 16 * d
    first = next(cache for cache in range(stated * 9 // 10, 2 * stated) if fits(cache))
    assert abs(first - stated) < 0.03 * stated
    assert not any(fits(cache) for cache in range(4 * d, first, 97))
    assert all(fits(cache) for cache in range(first * 103 // 100, 2 * stated, 97))
    message = "published blocks with rows = 64, cols = 128 holds [0-9]+ words: cache = 32768"
    with pytest.raises(SizeError, match=message):
        generator(p, 8 * d * d, blocks="published")


# Traffic to memory, as simulated for FuseMax.


def fusemax():
    lines = (Path(__file__).parent / "data" / "fusemax_traffic.csv").read_text().splitlines()
    table = csv.DictReader(line for line in lines if not line.startswith("#"))
    return [
        {key: value if key == "model" else int(value) for key, value in row.items()}
        for row in table
    ]


def words(row, column):
    """The words of one head, exactly."""
    count, rest = divmod(row[column], row["batch"] * row["heads"] * row["word_bytes"])
    assert rest == 0
    return count


def named(row):
    return f"{row['model']}-{row['n']}"


@pytest.mark.parametrize("row", fusemax(), ids=named)
def test_fusemax_unfused(row):
    n, d = row["n"], row["head_dim"]
    io = standard(Attention(n, d), n * d + 2 * d + 9).count().io
    published = words(row, "unfused_bytes")
    if n <= 65536:
        assert io == published
    else:  # operands no longer fit there
        assert io < published < 1.004 * io


@pytest.mark.parametrize("column", ["cascade_bytes", "arch_bytes"])
@pytest.mark.parametrize("row", fusemax(), ids=named)
def test_fusemax_one_pass(row, column):
    n, d = row["n"], row["head_dim"]
    # 2nd + 2nd T words a head, T the blocks of rows that it was cut into.
    passes, rest = divmod(words(row, column) - 2 * n * d, 2 * n * d)
    assert rest == 0
    rows = -(-n // passes)
    assert -(-n // rows) == passes
    schedule = flash2(Attention(n, d), 2 * n * d + 4 * n, rows=rows, cols=1)
    assert schedule.count().io == words(row, column)


# Large sizes.


@pytest.mark.parametrize("cache", [600, 4096, 49152, 131072 * 128 * 3])
@pytest.mark.parametrize("softmax", ["plain", "online"])
@pytest.mark.parametrize("generator", GENERATORS, ids=lambda g: g.__name__)
def test_large_problems_are_counted(generator, softmax, cache):
    schedule = generator(Attention(131072, 128, softmax=softmax), cache)
    assert schedule.count() == schedule.closed_form


@pytest.mark.parametrize("generator", [small_cache, standard], ids=["small_cache", "standard"])
def test_unfused_schedules_work_in_256_words(generator):
    schedule = generator(Attention(131072, 128), 256)
    assert schedule.count() == schedule.closed_form
