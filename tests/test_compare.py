"""Comparisons and sweeps: what they hold, and how they print."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pebble
import schedules
from pebble.compare import WORD_BYTES
from pebble.registry import _GENERATORS
from pebble.table import Table

GPT2 = pebble.Attention(n=1024, d=64)


def test_gpt2_medium():
    """The README's main job, by hand: M = 49152 holds 378 rows of 129 words, so 3 passes over keys.

    2 n d + 2 n d * 3 = 8 * 65536 = 524288 words a head.
    """
    found = pebble.compare(GPT2, 49152, heads=16, batch=64, dtype="fp16")
    assert found.copies == 1024
    cheapest = found.rows[0]
    assert (cheapest.schedule.name, cheapest.rule, cheapest.cost.io) == ("flash2", "best", 524288)
    assert f"{524288 * 1024:,}" in str(found)
    assert f"{524288 * 1024 * 2:,}" in str(found)


def test_rows_are_sorted_and_name_every_schedule():
    found = pebble.compare(GPT2, 49152)
    ios = [row.cost.io for row in found.rows]
    assert ios == sorted(ios)
    names = {f"{row.schedule.name}, {row.rule}" for row in found.rows} | set(dict(found.refused))
    assert names == {
        f"{name}, {rule}"
        for name in ("standard", "small_cache", "flash1", "flash2")
        for rule in ("best", "published")
    }


@given(st.integers(1, 40), st.integers(1, 8), st.integers(3, 200), st.booleans())
def test_no_schedule_is_below_the_bound(n, d, cache, recompute):
    problem = pebble.Attention(n, d)
    try:
        found = pebble.compare(problem, cache, rules=pebble.Rules(recompute=recompute))
    except pebble.SizeError:
        return
    assert all(row.cost.io >= found.bound.value and row.ratio >= 1 for row in found.rows)
    assert found.bound == pebble.bounds.lower(problem, cache, pebble.Rules(recompute=recompute))


def test_replayed_costs_are_the_counted_ones():
    problem = pebble.Attention(n=12, d=3, keys=10, value_dim=2, softmax="online")
    counted = pebble.compare(problem, 60)
    replayed = pebble.compare(problem, 60, judge=pebble.Schedule.replay)
    assert [row.cost for row in counted.rows] == [row.cost for row in replayed.rows]


def test_json_holds_exact_integers():
    found = pebble.compare(GPT2, 49152, heads=16, batch=64)
    told = json.loads(json.dumps(found.to_dict()))
    assert told["schedules"][0]["io_words"] == 524288 * 1024
    assert told["schedules"][0]["io_bytes"] == 524288 * 2048
    assert told["bound"]["words"] == found.bound.value * 1024
    assert told["copies"] == 1024


@pytest.mark.parametrize(("dtype", "size"), WORD_BYTES.items())
def test_bytes(dtype, size):
    assert pebble.compare(GPT2, 49152, dtype=dtype).word_bytes == size


def test_bad_arguments():
    with pytest.raises(
        pebble.UnknownName, match=r"dtype = 'int4': known are fp8, fp16, bf16, fp32, fp64"
    ):
        pebble.compare(GPT2, 49152, dtype="int4")
    with pytest.raises(pebble.SizeError, match="heads = 0: the number of heads must be a positive"):
        pebble.compare(GPT2, 49152, heads=0)
    with pytest.raises(pebble.SizeError, match=r"batch = 1\.5: the batch size must be a positive"):
        pebble.compare(GPT2, 49152, batch=1.5)
    with pytest.raises(pebble.SizeError, match=r"cache = 0: .* must be a positive integer"):
        pebble.compare(GPT2, 0)
    with pytest.raises(pebble.SizeError, match="cache = 4 is too small; the least that works is"):
        pebble.compare(GPT2, 4)
    with pytest.raises(pebble.PebbleError, match="caches is empty"):
        pebble.sweep(GPT2, [])


def test_without_generators_it_says_what_to_do(monkeypatch):
    monkeypatch.setattr("pebble.registry._GENERATORS", {})
    with pytest.raises(
        pebble.PebbleError, match=r"no schedule is registered for .forward.: import schedules first"
    ):
        pebble.compare(GPT2, 49152)


def test_a_registered_generator_is_compared():
    def mine(problem, cache):
        return schedules.flash2(problem, cache, rows=1, cols=1)

    pebble.register(mine)
    try:
        found = pebble.compare(pebble.Attention(n=6, d=2), 100)
        names = [row.schedule.blocks["rows"] for row in found.rows if row.rule == "best"]
        assert 1 in names
        assert len(found.rows) + len(found.refused) == 2 * 4 + 1  # mine has no published blocks
    finally:
        del _GENERATORS["mine"]


def test_html_is_a_table_with_escaped_notes():
    text = pebble.compare(GPT2, 49152)._repr_html_()
    assert "<table>" in text
    assert text.count("<tr>") >= 5
    assert Table("a < b", ("x",), (("1",),), ("c & d",)).html().startswith("<p>a &lt; b</p>")


def test_a_narrow_table_is_one_block_a_row():
    table = Table("t", ("name", "count"), (("one", "1,000,000"), ("two", "2")))
    assert max(map(len, table.text().splitlines())) == 17
    assert table.text(16).splitlines() == [
        "t",
        "name   one",
        "count  1,000,000",
        "",
        "name   two",
        "count  2",
    ]
    assert table.text(17) == table.text()


def test_sweep_finds_the_cheapest_and_both_bounds():
    problem = pebble.Attention(n=64, d=8)
    found = pebble.sweep(problem, [16, 64, 256, 4096])
    for point in found.points:
        assert point.io == schedules.best(problem, point.cache).count().io
        assert point.bound.value <= point.once.value <= point.io
    assert len(json.loads(json.dumps(found.to_dict()))["points"]) == 4
    assert "<table>" in found._repr_html_()
    assert "ratio, once" in str(found)


def test_large_caches_reach_the_bound():
    """Everything fits: each input is read once and each output written once, 4 * 64 * 8 words."""
    point = pebble.sweep(pebble.Attention(n=64, d=8), [4096]).points[0]
    assert point.io == point.bound.value == 2048


@pytest.mark.parametrize(
    ("low", "high", "most"), [(64, 2**20, 1.75), (3 * 64**2, 16 * 64**2, 1.08)]
)
def test_how_far_the_best_schedule_is_from_the_bound(low, high, most):
    """n = 65536, d = 64, each vertex computed once: at most 1.75, and near 1 from 3 d^2 on."""
    caches = sorted({min(round(low * 2 ** (step / 4)), high) for step in range(57)})
    for point in pebble.sweep(pebble.Attention(n=65536, d=64), caches).points:
        assert point.io / point.once.value <= most, point
