"""Comparisons and sweeps: what they hold, and how they print."""

import json
from dataclasses import replace

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


BACKWARD = pebble.Attention(n=64, d=8, direction="backward")
SAVED = pebble.Attention(n=64, d=8, direction="backward", saved_weights=True)
DOUBLE = pebble.Attention(n=64, d=8, direction="double_backward")
GRADIENT = pebble.AttentionGradient(n=64, d=8)
ONCE = pebble.Rules(recompute=False)
# The schedules that fit 256 words, and those of them that compute some vertices again.
FITTING = [
    (
        BACKWARD,
        [
            "flash1_backward",
            "flash2_backward",
            "small_cache_backward",
            "standard_backward",
            "two_pass_backward",
        ],
        ["flash1_backward", "two_pass_backward"],
    ),
    (SAVED, ["standard_backward"], []),
    (
        DOUBLE,
        ["flashbob", "three_pass_double_backward"],
        ["flashbob", "three_pass_double_backward"],
    ),
    (GRADIENT, ["flash_gradient", "small_cache_gradient"], ["flash_gradient"]),
]


@pytest.mark.parametrize(("problem", "known", "anew"), FITTING)
def test_schedules_that_recompute_are_left_out_of_the_other_game(problem, known, anew):
    both = pebble.compare(problem, 256)
    assert sorted({row.schedule.name for row in both.rows}) == known
    assert sorted({row.schedule.name for row in both.rows if row.schedule.recomputes}) == anew
    if anew == known:
        with pytest.raises(pebble.SizeError, match=r"no schedule is left: .*more than once"):
            pebble.compare(problem, 256, rules=ONCE)
        return
    once = pebble.compare(problem, 256, rules=ONCE)
    assert [row.label for row in once.rows] == [
        row.label for row in both.rows if not row.schedule.recomputes
    ]
    for name in anew:
        said = f"left out: {name}, best blocks: it computes some vertices more than once"
        assert said in once.notes
        assert said not in both.notes


@pytest.mark.parametrize(("problem", "known", "anew"), FITTING)
def test_kept_schedules_are_legal_in_their_game(problem, known, anew):
    small = replace(problem, n=6, d=2) if problem is GRADIENT else SMALL[problem.kind]
    for rules in (pebble.Rules(), ONCE):
        try:
            found = pebble.compare(small, 60, rules=rules)
        except pebble.SizeError:
            assert anew == known
            assert rules is ONCE
            continue
        replayed = pebble.compare(small, 60, rules=rules, judge=lambda s, r=rules: s.replay(r))
        assert [row.cost for row in found.rows] == [row.cost for row in replayed.rows]
        told = found.to_dict()["schedules"]
        assert [one["recomputes"] for one in told] == [
            row.schedule.recomputes for row in found.rows
        ]
        for row in found.rows:
            assert row.cost.io >= found.bound.value
            if row.schedule.recomputes:
                with pytest.raises(pebble.IllegalMove):
                    row.schedule.replay(ONCE)


SMALL = {
    kind: pebble.Attention(6, 2, keys=5, value_dim=3, direction=direction, saved_weights=saved)
    for kind, direction, saved in (
        ("backward", "backward", False),
        ("saved backward", "backward", True),
        ("double_backward", "double_backward", False),
    )
}


def test_two_passes_trade_computes_for_words():
    """Both columns are there to be read, M = 256, n = keys = 64, d = e = 8.

    A pair has 15 vertices for its score, 1 for P, 15 for dP, 2 for G and dS, and 24 products of dV,
    dQ and dK, whose sums are 3 * 63 * 64 * 8; those of D are 64 * 15. So the graph computes
    64^2 * 57 + 96,768 + 960 = 331,200. The second pass forms score, P, dP, G and dS of each pair
    again: 64^2 * 33 = 135,168.
    """
    found = pebble.compare(BACKWARD, 256, heads=2)
    rows = {row.label: row for row in found.rows}
    two, flash2 = rows["two_pass_backward, best"], rows["flash2_backward, best"]
    assert (two.cost.io, two.cost.computes) == (23_936, 331_200 + 135_168)
    assert (flash2.cost.io, flash2.cost.computes) == (24_384, 331_200)
    lines = str(found).splitlines()
    assert lines[1].split()[-5:] == ["peak", "computes", "I/O", "/", "bound"]
    for line in lines:  # twice, for two heads
        if line.startswith("two_pass_backward, best  "):
            assert "47,872" in line
            assert "932,736" in line
        if line.startswith("flash2_backward, best  "):
            assert "48,768" in line
            assert "662,400" in line
    # 466368 / 331200 = 1.40811...
    assert "two_pass_backward, best blocks: computes 1.408 times what the graph has" in lines
    assert not any(line.startswith("flash2_backward, best blocks") for line in lines)
    told = {s["name"]: s for s in found.to_dict()["schedules"] if s["rule"] == "best"}
    assert told["two_pass_backward"]["recomputes"] is True
    assert told["flash2_backward"]["recomputes"] is False


CACHES = [32, 256, 4096]
SWEPT = [  # at each cache the cheapest schedule, and the cheapest that computes nothing again
    (
        BACKWARD,
        ["small_cache_backward", "two_pass_backward", "flash1_backward"],
        ["small_cache_backward", "flash2_backward", "flash1_backward"],
    ),
    (SAVED, ["standard_backward"] * 3, ["standard_backward"] * 3),
    (DOUBLE, ["flashbob"] * 2, [None] * 2),  # nothing fits 32 words
    (
        GRADIENT,
        ["small_cache_gradient", "flash_gradient", "flash_gradient"],
        ["small_cache_gradient"] * 3,
    ),
]


@pytest.mark.parametrize(("problem", "cheapest", "careful"), SWEPT)
def test_a_sweep_keeps_the_games_apart(problem, cheapest, careful):
    found = pebble.sweep(problem, CACHES)
    assert [q.schedule.name for q in found.points] == cheapest
    assert [q.once_schedule and q.once_schedule.name for q in found.points] == careful
    for q in found.points:
        assert q.bound.value <= q.io == q.schedule.count().io
        if q.once_schedule:
            assert not q.once_schedule.recomputes
            assert q.once.value <= q.once_schedule.count().io
            assert q.once_schedule.count() == pebble.best(problem, q.cache, ONCE).count()
        else:
            assert q.once_ratio is None
    told = json.loads(json.dumps(found.to_dict()))["points"]
    assert [p["computes"] for p in told] == [q.schedule.count().computes for q in found.points]
    assert [p["once_computes"] for p in told] == [
        q.once_schedule and q.once_schedule.count().computes for q in found.points
    ]


def test_a_sweep_says_what_is_left_out():
    notes = {p.kind: pebble.sweep(p, CACHES).table.notes for p, _, _ in SWEPT}
    game = "bound: recomputation allowed; once: each vertex computed once"
    assert notes["backward"] == (
        game,
        "two_pass_backward: computes up to 1.408 times what the graph has, so it is left out of "
        "once",
    )
    assert notes["saved backward"] == (f"{game}, as they all do",)
    # 64^2 (6 * 8 + 1) computes again of 239,936: 200704 / 239936 = 0.83649
    assert notes["gradient"] == (
        game,
        "flash_gradient: computes up to 1.836 times what the graph has, so it is left out of once",
    )
    first, again, none, small = notes["double_backward"]
    assert first == game
    assert again.startswith("flashbob: computes up to 1.")
    assert none == "-: no known schedule that fits computes each vertex once"
    assert small == "left out: M = 32, too small"


def test_a_sweep_leaves_out_caches_that_nothing_fits():
    found = pebble.sweep(GPT2, [2, 4096, 3])
    assert [q.cache for q in found.points] == [4096]
    assert found.refused == (2, 3)
    assert found.to_dict()["refused"] == [2, 3]
    assert "left out: M = 2, 3, too small" in str(found)
    with pytest.raises(pebble.SizeError, match="cache = 3 is too small"):
        pebble.sweep(GPT2, [2, 3])
    with pytest.raises(pebble.SizeError, match=r"cache = 0: .* must be a positive integer"):
        pebble.sweep(GPT2, [4096, 0])


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


def test_a_wide_table_with_a_key_is_panels():
    rows = (("1", "aaaaaaaa", "10,000,000", "x"), ("20", "b", "-", "y"))
    table = Table("t", ("M", "name", "words", "by"), rows, ("a note",), key=1)
    assert table.text(26) == "\n".join(
        [
            "t",
            "  M  name           words",
            "---  --------  ----------",
            "  1  aaaaaaaa  10,000,000",
            " 20  b                  -",
            "",
            "  M  by",
            "---  ----",
            "  1  x",
            " 20  y",
            "",
            "a note",
        ]
    )
    assert table.text(31) == table.text()  # 25 characters, and 6 for the last column
    # A column that doesn't fit beside the key: blocks of lines.
    long = Table("t", ("M", "name"), (("1", "a" * 30), ("2", "b")), key=1)
    assert long.text(25).splitlines() == [
        "t",
        "M     1",
        f"name  {'a' * 30}",
        "",
        *["M     2", "name  b"],
    ]


def test_long_cells_and_notes_are_lines():
    table = Table("t", ("name", "what"), (("a", "word " * 20), ("b", "c")), ("note " * 9,))
    lines = table.text().splitlines()
    assert max(map(len, lines[:-1])) <= len("name    ") + 60
    assert [line.count("word") for line in lines] == [0, 0, 0, 12, 8, 0, 0]
    assert lines[4].startswith(" " * 8 + "word")
    assert lines[-1] == "note " * 9  # whole, where there is no width
    narrow = table.text(30).splitlines()
    assert max(map(len, narrow)) <= 30
    assert narrow[-2:] == ["note note note note note note", "note note note"]
    assert narrow[1:3] == ["name  a", "what  word word word word word"]  # 24 of 24 characters


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
