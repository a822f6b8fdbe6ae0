from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pebble.affine import Affine
from pebble.attention import Attention
from pebble.errors import ProgramError, SizeError
from pebble.families import inputs
from pebble.rules import Op
from pebble.tapes import Block, Do, Loop, Tape, show, whole
from schedules import flash2, small_cache

A = inputs("A", 1000)
sizes = st.integers(1, 12)


def unrolled(program, values=None):
    """Give the moves of a program as (op, family, index), its loops run by plain Python."""
    values = values or {}
    for node in program:
        if isinstance(node, Loop):
            for turn in range(node.count):
                yield from unrolled(node.body, {**values, node.variable: turn})
        else:
            starts = [start.at(values) for start in node.tile.starts]
            for offset in product(*map(range, node.tile.sizes)):
                index = tuple(a + b for a, b in zip(starts, offset, strict=True))
                yield node.op, node.tile.family.name, index


def loaded(tape):
    return [index[0] for op, _, index in unrolled(tape.program)]


@given(st.integers(0, 40), sizes)
def test_blocks_are_those_of_a_plain_loop(extent, size):
    tape = Tape()
    for I in tape.blocks(extent, size):
        tape.load(A[I])
        tape.delete(A[I])
    wanted = []
    for start in range(0, extent, size):
        block = range(start, min(start + size, extent))
        wanted += [(Op.LOAD, "A", (i,)) for i in block] + [(Op.DELETE, "A", (i,)) for i in block]
    assert list(unrolled(tape.program)) == wanted


@given(st.integers(1, 60), sizes, sizes)
def test_blocks_within_blocks(extent, size, inner):
    tape = Tape()
    for I in tape.blocks(extent, size):
        for J in tape.blocks(I, inner):
            tape.load(A[J])
            for j in tape.each(J):
                tape.store(A[j])
    wanted = []
    for start in range(0, extent, size):
        stop = min(start + size, extent)
        for at in range(start, stop, inner):
            block = range(at, min(at + inner, stop))
            wanted += [(Op.LOAD, "A", (i,)) for i in block]
            wanted += [(Op.STORE, "A", (i,)) for i in block]
    assert list(unrolled(tape.program)) == wanted


@given(st.integers(1, 60), sizes, sizes)
def test_flags_say_where_the_whole_extent_begins_and_ends(extent, size, inner):
    tape = Tape()
    for I in tape.blocks(extent, size):
        tape.load(*[A[I]] * I.first)
        tape.store(*[A[I]] * I.last)
        for J in tape.blocks(I, inner):
            tape.compute(*[A[J]] * J.first)
            tape.delete(*[A[J]] * J.last)
    moves = list(unrolled(tape.program))

    def having(op):
        return [index[0] for found, _, index in moves if found is op]

    everything = range(extent)
    head, tail = everything[:size], everything[(extent - 1) // size * size :]
    assert having(Op.LOAD) == list(head)
    assert having(Op.STORE) == list(tail)
    assert having(Op.COMPUTE) == list(head[:inner])
    assert having(Op.DELETE) == list(tail[(len(tail) - 1) // inner * inner :])


@given(st.integers(0, 20))
def test_each_runs_over_all_indices_and_marks_the_first(extent):
    tape = Tape()
    for i in tape.each(extent):
        tape.load(A[i])
        if i.first:
            tape.store(A[i])
    moves = [(op, index[0]) for op, _, index in unrolled(tape.program)]
    wanted = [(Op.LOAD, i) for i in range(extent)]
    assert moves == wanted[:1] + [(Op.STORE, 0)] * (extent > 0) + wanted[1:]


@given(sizes, sizes, st.integers(0, 15))
def test_each_over_a_block_marks_only_the_first_of_the_whole_extent(extent, size, drop):
    tape = Tape()
    for I in tape.blocks(extent, size):
        for i in tape.each(I.drop(drop)):
            tape.load(A[i])
            if i.first:
                tape.store(A[i])
    wanted = [i for start in range(0, extent, size) for i in range(start, extent)[:size][drop:]]
    moves = list(unrolled(tape.program))
    assert [index[0] for op, _, index in moves if op is Op.LOAD] == wanted
    firsts = [index[0] for op, _, index in moves if op is Op.STORE]
    assert firsts == ([0] if drop == 0 else [])


def test_a_block_without_its_first_indices():
    block = Block(Affine(4), 3, True, True)
    assert block.end == Affine(6)
    assert block.drop(0) == block
    assert block.drop(2) == Block(Affine(6), 1, False, True)
    assert block.drop(5) == Block(Affine(7), 0, False, True)
    assert whole(7) == Block(Affine(0), 7, True, True)
    tape = Tape()
    for _ in tape.blocks(block.drop(3), 2):
        tape.load(A[0])
    assert tape.program == ()


def test_the_index_of_a_loop_is_affine():
    tape = Tape()
    for i in tape.each(9):
        tape.load(A[3 + i * 2 if i.first else 10 + i * -1])
    assert loaded(tape) == [3, *range(9, 1, -1)]


def test_the_body_runs_at_most_three_times():
    runs = 0
    for _ in Tape().blocks(10**15, 7):
        runs += 1
    for _ in Tape().each(10**15):
        runs += 1
    assert runs == 3 + 2


def test_empty_tiles_and_loops_leave_nothing():
    tape = Tape()
    tape.load(A[3:3])
    for _ in tape.each(5):
        pass
    assert tape.program == ()


def test_a_program_is_nested_loops_of_tile_moves():
    tape = Tape()
    for I in tape.blocks(12, 4):
        tape.load(A[I])
    assert tape.program == (
        Do(Op.LOAD, A[0:4]),
        Loop(0, 1, (Do(Op.LOAD, A[Block(Affine(4, ((0, 4),)), 4, False, False)]),)),
        Do(Op.LOAD, A[8:12]),
    )


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_loop_is_not_left_early(at):
    tape = Tape()
    for run, I in enumerate(tape.blocks(9, 2)):
        tape.load(A[I])
        if run == at:
            break
    with pytest.raises(ProgramError, match="a loop over blocks or indices of a tape was left"):
        _ = tape.program


@pytest.mark.parametrize("at", [0, 1])
def test_a_loop_over_indices_is_not_left_early(at):
    tape = Tape()
    for run, i in enumerate(tape.each(9)):
        tape.load(A[i])
        if run == at:
            break
    tape.load(A[0])
    with pytest.raises(ProgramError, match="a loop over blocks or indices of a tape was left"):
        _ = tape.program


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "2", None])
def test_block_sizes_are_positive_integers(size):
    with pytest.raises(SizeError) as caught:
        list(Tape().blocks(4, size))
    assert str(caught.value) == f"block size {size!r}: it must be a positive integer"


# Golden traces.


def test_flash2_as_text():
    # One row of queries, four keys: the loads of keys 1 and 2 are one loop.
    schedule = flash2(Attention(n=1, d=1, keys=4), cache=8)
    assert show(schedule.program) == "\n".join([
        *("load Q[0, 0]", "load K[0, 0]", "load V[0, 0]"),
        *("compute x[0, 0, 0]", "compute P[0, 0]", "delete s[0, 0, 0]", "compute y[0, 0, 0]"),
        *("delete K[0, 0]", "delete V[0, 0]"),
        "for v0 in 0..1:",
        "  load K[1 + v0, 0]",
        "  load V[1 + v0, 0]",
        "  for v1 in 0..0:",
        "    compute x[0, 1 + v0 + v1, 0]",
        "  for v2 in 0..0:",
        "    compute P[0, 1 + v0 + v2]",
        "    delete s[0, 1 + v0 + v2, 0]",
        "    compute l[0, 1 + v0 + v2]",
        "    delete l[0, v0 + v2]",
        "    compute y[0, 1 + v0 + v2, 0]",
        "    compute o[0, 1 + v0 + v2, 0]",
        "    delete y[0, 1 + v0 + v2, 0]",
        "    delete o[0, v0 + v2, 0]",
        "    delete P[0, 1 + v0 + v2]",
        "  delete K[1 + v0, 0]",
        "  delete V[1 + v0, 0]",
        *("load K[3, 0]", "load V[3, 0]"),
        *("for v3 in 0..0:", "  compute x[0, 3 + v3, 0]"),
        "for v4 in 0..0:",
        *("  compute P[0, 3 + v4]", "  delete s[0, 3 + v4, 0]"),
        *("  compute l[0, 3 + v4]", "  delete l[0, 2 + v4]"),
        *("  compute y[0, 3 + v4, 0]", "  compute o[0, 3 + v4, 0]"),
        *("  delete y[0, 3 + v4, 0]", "  delete o[0, 2 + v4, 0]", "  delete P[0, 3 + v4]"),
        *("delete K[3, 0]", "delete V[3, 0]"),
        *("compute O[0, 0]", "store O[0, 0]", "delete O[0, 0]"),
        *("delete o[0, 3, 0]", "delete l[0, 3]", "delete Q[0, 0]"),
    ])  # fmt: skip


def test_small_cache_move_by_move():
    # One query and two keys of one word, tiles of one weight. At index 0, a sum is its first term.
    schedule = small_cache(Attention(n=1, d=1, keys=2), cache=6, rows=1, cols=1)
    assert [str(move) for move in schedule.moves()] == [
        *("load Q[0,0]", "load K[0,0]", "compute x[0,0,0]"),
        *("compute P[0,0]", "delete x[0,0,0]", "store P[0,0]"),
        *("delete K[0,0]", "delete Q[0,0]", "load Q[0,0]", "load K[1,0]", "compute x[0,1,0]"),
        *("compute P[0,1]", "delete x[0,1,0]", "store P[0,1]"),
        *("compute l[0,1]", "delete P[0,0]", "delete P[0,1]"),
        *("delete K[1,0]", "delete Q[0,0]", "store l[0,1]", "delete l[0,1]"),
        *("load l[0,1]", "load V[0,0]", "load P[0,0]", "compute y[0,0,0]"),
        *("delete P[0,0]", "delete V[0,0]", "load V[1,0]", "load P[0,1]", "compute y[0,1,0]"),
        *("compute o[0,1,0]", "delete y[0,1,0]", "delete y[0,0,0]"),
        *("delete P[0,1]", "delete V[1,0]"),
        *("compute O[0,0]", "store O[0,0]", "delete O[0,0]", "delete o[0,1,0]", "delete l[0,1]"),
    ]
