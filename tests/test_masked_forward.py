"""The forward pass under masks: graphs, schedules and counts, against loops and NumPy."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pebble
import schedules
from pebble import Attention, explicit, masks
from pebble.cost import Cost
from pebble.errors import IllegalMove, Incomplete, ProblemError, ProgramError, SizeError
from pebble.masked.passes import backward_graph, forward_graph
from pebble.replay import replay
from pebble.rules import Rules
from tests import masked_definitions, naive
from tests.masks_strategies import told_masks
from tests.tables import as_tuples

GENERATORS = {
    "block_sparse": schedules.block_sparse,
    "flash1": schedules.flash1,
    "flash2": schedules.flash2,
    "gather": schedules.gather,
    "small_cache": schedules.small_cache,
    "standard": schedules.standard,
}
NAMES = sorted(GENERATORS)


@st.composite
def problems(draw, most=7):
    """Draw a problem under a mask that isn't full, and the mask's table."""
    mask, table = draw(told_masks(most, most).filter(lambda told: told[0].pairs > 0))
    d, e = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    lse = draw(st.booleans())
    p = Attention(mask.n, d, mask.keys, e, logsumexp=lse, mask=mask, empty_rows="zeros")
    return (p, table) if p.mask else draw(problems(most))


@st.composite
def some_schedules(draw, names=NAMES, most=7):
    """Draw a schedule with the best blocks or given ones, and the mask's table."""
    p, table = draw(problems(most))
    generator = GENERATORS[draw(st.sampled_from(names))]
    if draw(st.booleans()):
        rows, cols = draw(st.integers(1, most + 1)), draw(st.integers(1, most + 1))
        return generator(p, 1000, rows=rows, cols=cols), table
    least = least_cache(generator, p)
    return generator(p, least + draw(st.integers(0, 40))), table


def least_cache(generator, p):
    with pytest.raises(
        SizeError, match=r"cache = 1 is too small; the least that works is "
    ) as told:
        generator(p, 1)
    return int(str(told.value).rpartition(" ")[2])


# Graphs


@given(problems())
def test_the_graph_is_the_definition(told):
    p, table = told
    graph, (definition, ends) = p.graph, masked_definitions.forward(p, table)
    made = {
        graph.label(v): tuple(graph.label(u) for u in graph.predecessors(v))
        for v in range(len(graph))
    }
    assert made == definition
    assert {graph.label(v) for v in graph.outputs} == set(ends)
    assert graph.size == len(definition)
    assert graph.input_words == len(graph.inputs)
    assert graph.output_words == len(graph.outputs)
    for v in range(len(graph)):
        assert graph.vertex(graph.label(v)) == v
        assert graph.is_output(v) == (v in graph.outputs)
        assert graph.is_input(v) == (v in graph.inputs)
        assert graph.family(v) == graph.label(v).family


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("sizes", [(2, 1, 3, 2), (3, 2, 2, 1), (1, 1, 1, 1), (3, 3, 3, 3)])
def test_all_pairs_are_the_graph_without_a_mask(direction, sizes):
    p = Attention(*sizes, direction=direction)
    build = forward_graph if direction == "forward" else backward_graph
    whole, plain = build(p, masks.full(p.n, p.keys)).to_graph(), explicit(p.graph)
    edges = [
        {graph.label(v): tuple(map(graph.label, graph.predecessors(v))) for v in range(len(graph))}
        for graph in (whole, plain)
    ]
    assert edges[0] == edges[1]
    assert {whole.label(v) for v in whole.outputs} == {plain.label(v) for v in plain.outputs}


def test_sums_have_other_names_where_they_begin():
    p = Attention(3, 2, mask=masks.window(3, left=1, right=0))
    graph = p.graph
    assert graph.label(graph.vertex(("l", (2, 1)))) == ("P", (2, 1))
    assert graph.label(graph.vertex(("o", (2, 1, 0)))) == ("y", (2, 1, 0))
    assert graph.label(graph.vertex(("s", (2, 1, 0)))) == ("x", (2, 1, 0))
    for wrong in [("P", (2, 0)), ("l", (0, 2)), ("O", (3, 0)), ("O", (0,)), ("U", (0,)), "P", 3]:
        with pytest.raises(pebble.GraphError, match=r"does not exist under Mask\(window"):
            graph.vertex(wrong)


# Schedules


@settings(max_examples=250)
@given(some_schedules())
def test_count_replay_and_formula_agree(told):
    schedule, _ = told
    cost = schedule.count()
    assert cost == schedule.replay() == schedule.closed_form
    assert schedule.replay(Rules(recompute=False)) == cost
    assert all(type(number) is int for number in vars(cost).values())
    assert cost.peak <= schedule.cache
    assert cost.loads + cost.computes == cost.deletes  # nothing is red at the end


@given(some_schedules())
def test_the_peak_is_exact(told):
    schedule, _ = told
    peak = schedule.closed_form.peak
    assert replace(schedule, cache=peak).replay().peak == peak
    with pytest.raises(IllegalMove, match="the cache is full"):
        replace(schedule, cache=peak - 1).replay()


@given(some_schedules(most=5))
def test_the_naive_referee_agrees(told):
    schedule, table = told
    definition, ends = masked_definitions.forward(schedule.problem, table)
    verdict = naive.play(definition, ends, schedule.cache, as_tuples(schedule.moves()))
    assert isinstance(verdict, naive.Done), verdict
    assert verdict.missing == ()
    assert Cost(*verdict[:5]) == schedule.closed_form


@given(some_schedules(), st.integers(0, 2**32 - 1))
def test_execution_is_masked_attention(told, seed):
    schedule, table = told
    p, random = schedule.problem, np.random.default_rng(seed)
    Q, K, V = (random.normal(size=shape) for shape in p.operands.values())
    out = schedule.execute(Q, K, V)
    P = np.where(table, np.exp(Q @ K.T), 0)
    L = P.sum(axis=1)
    attends = L > 0
    O = np.zeros((p.n, p.value_dim))
    O[attends] = (P @ V)[attends] / L[attends, None]
    np.testing.assert_allclose(out["O"], O, rtol=1e-11, atol=1e-13)
    if p.logsumexp:
        np.testing.assert_allclose(out["Lse"][attends], np.log(L[attends]), rtol=1e-11, atol=1e-12)
        assert (out["Lse"][~attends] == 0).all()


@given(some_schedules(["gather", "small_cache", "standard"]))
def test_nothing_is_done_in_vain(told):
    schedule, _ = told
    assert schedule.waste().none


@given(some_schedules(most=4), st.data())
def test_no_move_can_be_left_out(told, data):
    schedule, _ = told
    if not schedule.waste().none:
        return
    moves = list(schedule.moves())
    at = data.draw(st.integers(0, len(moves) - 1))
    left = moves[:at] + moves[at + 1 :]
    graph = schedule.problem.graph.to_graph()
    try:
        cost = replay(graph, left, len(graph))
    except (IllegalMove, Incomplete):
        return
    assert moves[at].op.name == "DELETE"  # then a word stays red
    assert cost.deletes < cost.loads + cost.computes


@given(problems())
def test_the_least_cache_of_the_message_works(told):
    p, _ = told
    for generator in GENERATORS.values():
        least = least_cache(generator, p)
        assert generator(p, least).closed_form.peak <= least
        with pytest.raises(SizeError, match=rf"cache = {least - 1} is too small"):
            generator(p, least - 1)


@given(problems(5), st.sampled_from(["P", "V", "o", "Q"]))
def test_weights_are_counted(told, name):
    p, _ = told
    schedule = schedules.gather(p, 200)
    rules = Rules(weights={name: 3})
    assert schedule.count(rules) == schedule.replay(rules)


# Values by hand


def test_causal_by_hand():
    # n = 4, d = e = 1, 2 queries in a block. Q and O: 4 each. The first block uses 2 keys, the
    # second 4: 6 * 2 words.
    p = Attention(4, 1, mask=masks.causal(4))
    assert schedules.flash2(p, 100, rows=2, cols=1).count().io == 4 + 12 + 4
    # Keys outside, 2 in a block: 8 words of K and V. All 4 queries visit the first block, 2 the
    # second, in tiles of one: 6 words of Q. Queries 2 and 3 leave 2 sums and take them up again.
    cost = schedules.flash1(p, 100, rows=1, cols=2).count()
    assert (cost.loads, cost.stores) == (8 + 6 + 2 * 2, 2 * 2 + 4)
    # In tiles of 4 queries the second block brings queries 0 and 1 in vain.
    assert schedules.flash1(p, 100, rows=4, cols=2).count().loads == 8 + 8 + 2 * 2


def test_block_sparse_pays_for_columns_that_are_empty():
    # Keys 2 and 3 of 6 attend nowhere; d = e = 2: 2 * 4 words more.
    table = np.zeros((4, 6), bool)
    table[:, [0, 1, 4, 5]] = True
    p = Attention(4, 2, 6, mask=masks.from_array(table))
    published, better = (
        g(p, 64, rows=2, cols=2) for g in (schedules.block_sparse, schedules.flash1)
    )
    assert published.count().io == better.count().io + 8
    assert published.waste().dead_loads == 8
    assert better.waste().none


def test_gather_takes_only_the_keys_that_are_used():
    # In tiles of 2 x 4 both tiles of each block hold one used key: 2 blocks * 2 keys, not 2 * 8.
    table = np.zeros((4, 8), bool)
    table[:, [1, 6]] = True
    p = Attention(4, 1, 8, mask=masks.from_array(table))
    whole, used = (g(p, 64, rows=2, cols=4) for g in (schedules.flash2, schedules.gather))
    assert whole.count().loads == 4 + 2 * 8 * 2
    assert used.count().loads == 4 + 2 * 2 * 2


def test_rows_of_one_key_divide_a_weight_by_itself():
    p = Attention(3, 2, mask=masks.window(3, left=0, right=0))
    V = np.arange(6.0).reshape(3, 2)
    for generator in GENERATORS.values():
        found = generator(p, 64).execute(np.ones((3, 2)), np.ones((3, 2)), V)["O"]
        np.testing.assert_allclose(found, V, rtol=1e-15)


def test_rows_without_a_key_are_refused_or_zeros():
    table = [[True, False], [False, False]]
    with pytest.raises(ProblemError, match=r"^mask: 1 of 2 queries attend to no key \(1\)"):
        Attention(2, 1, mask=masks.from_array(table))
    p = Attention(2, 1, mask=masks.from_array(table), empty_rows="zeros")
    out = schedules.best(p, 32).execute([[1.0], [1.0]], [[1.0], [1.0]], [[5.0], [7.0]])["O"]
    assert out.tolist() == [[5.0], [0.0]]


def test_masks_that_do_not_fit():
    causal = masks.causal(4)
    with pytest.raises(ProblemError, match=r"^mask is 4 x 4: with n = 3 and keys = 3 it is 3 x 3$"):
        Attention(3, 1, mask=causal)
    for options in ({"softmax": "online"}, {"direction": "double_backward"}):
        with pytest.raises(ProblemError, match=r"^a mask is for the forward pass with the plain"):
            Attention(4, 1, mask=causal, **options)
    with pytest.raises(ProblemError, match=r"^mask = 'causal': a mask is made by pebble\.masks"):
        Attention(4, 1, mask="causal")
    with pytest.raises(ProblemError, match=r"^mask: no query attends to any key"):
        Attention(2, 1, mask=masks.from_array(np.zeros((2, 2), bool)), empty_rows="zeros")
    with pytest.raises(pebble.UnknownName, match=r"^empty_rows = 'nan': known are error, zeros$"):
        Attention(4, 1, mask=causal, empty_rows="nan")
    assert Attention(4, 1, mask=masks.full(4)) == Attention(4, 1)


def test_only_passes_under_a_mask_gather():
    with pytest.raises(ProblemError, match=r"^gather is for the forward pass of attention under a"):
        schedules.gather(Attention(4, 1), 64)
    with pytest.raises(
        ProblemError, match=r"^block_sparse is for the forward pass of attention und"
    ):
        schedules.block_sparse(Attention(4, 1), 64)
    with pytest.raises(ProgramError, match=r"^gather under a mask is no tile program"):
        _ = schedules.gather(Attention(4, 1, mask=masks.causal(4)), 64).program


def test_long_sequences_are_counted():
    # Blocks of 125 queries; all but the first 33 use 125 + 4096 keys.
    p = Attention(131072, 64, mask=masks.window(131072, 4096, 0))
    schedule = schedules.flash2(p, 16384)
    assert schedule.blocks["rows"] == 125
    blocks = -(-131072 // 125)
    keys = sum(min(131072, 125 * t + 125) - max(0, 125 * t - 4096) for t in range(blocks))
    assert schedule.count().io == 2 * 131072 * 64 + keys * 128
    assert schedule.count() == schedule.closed_form


def test_a_comparison_tells_tiles_and_words():
    p = Attention(1024, 64, mask=masks.document([64] * 16))
    told = pebble.compare(p, cache=49152)
    # 16 tiles of 64 x 64 hold nothing else; 8 of 128 x 128 hold twice as many pairs.
    assert (
        "64 x 64 tiles: 16 of 256 visited, with 65,536 pairs for 65,536; a forward pass of "
        "FlashAttention-2 in them moves 262,144 words" in told.notes
    )
    assert (
        "128 x 128 tiles: 8 of 64 visited, with 131,072 pairs for 65,536; a forward pass of "
        "FlashAttention-2 in them moves 262,144 words" in told.notes
    )
    assert told.table.head[2] == "tiles"
    by_name = {
        row["name"]: row for row in told.to_dict()["schedules"] if row["rule"] == "published"
    }
    assert by_name["flash2"]["tiles"] == 16  # 64 x 192
    assert schedules.flash2(p, 49152, rows=128, cols=128).count().io == 262144


# Bounds


@settings(max_examples=150)
@given(some_schedules(), st.booleans())
def test_no_schedule_beats_a_bound(told, recompute):
    schedule, _ = told
    rules = Rules(recompute=recompute)
    for bound in pebble.bounds.every(schedule.problem, schedule.closed_form.peak, rules):
        assert bound.value <= schedule.closed_form.io


def test_causal_is_within_a_tenth_of_its_bound():
    p = Attention(65536, 64, mask=masks.causal(65536))
    for cache in (4 * 64**2, 8 * 64**2, 16 * 64**2):
        best = schedules.flash2(p, cache).closed_form.io
        assert best <= 1.10 * pebble.bounds.lower(p, cache).value
