import pytest
from hypothesis import given
from hypothesis import strategies as st

from pebble import expander
from pebble.affine import Affine
from pebble.attention import Attention
from pebble.cost import Cost
from pebble.errors import IllegalMove, Incomplete, ProgramError
from pebble.expander import Expansion
from pebble.families import Family, Function, Piece, Tile, chain, family, inputs
from pebble.family_graph import FamilyGraph
from pebble.moves import Vertex
from pebble.playback import replay
from pebble.rules import Op, Rules
from pebble.schedule import Schedule
from pebble.tapes import Do, Loop, Tape
from tests.strategies import problems, schedules
from tests.test_tapes import unrolled

closed = problems(blocks=("some",), most=7)


def by_hand(problem, cache, write):
    """Give a schedule that is written on a tape here, with no stated cost."""
    return Schedule("by_hand", problem, cache, {}, Cost(), write)


def slow_words(graph, program, rules):
    """The words of a program's stream, one vertex at a time by the rules of the families."""
    words = []
    for op, name, index in unrolled(program):
        v = graph.vertex(Vertex(name, index))
        preds = graph.predecessors(v) if op is Op.COMPUTE else ()
        function = graph[graph.family(v)].piece(graph.label(v).index).function
        weight = rules.weight(graph.family(v), None)
        words.append((op, function, weight, v, preds))
    return words


def fast_words(expansion):
    words = []
    for stream, length in expansion.streams():
        at = 0
        while at < length:
            head, v, degree = int(stream[at]), int(stream[at + 1]), int(stream[at]) >> 3 & 255
            preds = tuple(stream[at + 2 : at + 2 + degree].tolist())
            words.append((head & 7, head >> 11 & 255, head >> 19, v, preds))
            at += 2 + degree
        assert at == length
    return words


def same(fast, slow):
    """Compare; the function counts only where something is computed."""
    assert len(fast) == len(slow)
    for (op, function, *rest), (slow_op, slow_function, *slow_rest) in zip(fast, slow, strict=True):
        assert (op, *rest) == (slow_op, *slow_rest)
        assert op != Op.COMPUTE or function == slow_function


@st.composite
def programs(draw, graph, loops=(), depth=3):
    """Draw any program over a graph: loops within loops, tiles at affine places, all in range."""
    body = []
    for _ in range(draw(st.integers(1, 3))):
        if depth and draw(st.booleans()):
            count = draw(st.integers(1, 4))
            variable = len(loops) + 10 * len(body) + 100 * depth
            inner = draw(programs(graph, (*loops, (variable, count)), depth - 1))
            body.append(Loop(variable, count, inner))
            continue
        part = draw(st.sampled_from([part for part in graph.families if len(part)]))
        op = Op.LOAD if part.is_input else draw(st.sampled_from(list(Op)[:4]))
        starts, sizes = [], []
        for axis, extent in enumerate(part.shape):
            least = part.start if axis == part.axis else 0
            if op is Op.COMPUTE and axis == part.axis:
                least = part.low
            terms = [(v, draw(st.integers(-2, 2))) for v, _ in loops]
            start = Affine(0, tuple(sorted((v, c) for v, c in terms if c)))
            low, high = start.range(dict(loops))
            if high - low >= extent - least:
                start, low, high = Affine(0), 0, 0
            size = draw(st.integers(1, min(3, extent - least - (high - low))))
            shift = draw(st.integers(least - low, extent - size - high))
            starts.append(start + shift)
            sizes.append(size)
        body.append(Do(op, Tile(part, tuple(starts), tuple(sizes))))
    return tuple(body)


@st.composite
def expansions(draw):
    graph = draw(closed).graph
    names = [part.name for part in graph.families]
    weights = draw(st.dictionaries(st.sampled_from(names), st.integers(1, 9), max_size=4))
    return Expansion(graph, draw(programs(graph)), Rules(weights=weights))


@given(expansions(), st.sampled_from([1, 11, 64, 1 << 15]))
def test_a_program_is_expanded_as_plain_loops_say(expansion, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expander, "BUFFER", size)
        fast = fast_words(expansion)
    same(fast, slow_words(expansion.graph, expansion.program, expansion.rules))


@given(schedules(), st.integers(1, 40))
def test_a_schedule_is_expanded_as_plain_loops_say(schedule, size):
    expansion = Expansion(schedule.problem.graph, schedule.program)
    slow = slow_words(expansion.graph, expansion.program, expansion.rules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expander, "BUFFER", size)
        same(fast_words(expansion), slow)
        assert schedule.replay() == schedule.closed_form
    moves = list(schedule.moves())
    assert [(move.op, expansion.graph.vertex(move.vertex)) for move in moves] == [
        (op, v) for op, _, _, v, _ in slow
    ]


def test_progress_is_told_after_each_buffer(monkeypatch):
    monkeypatch.setattr(expander, "BUFFER", 1)
    told = []
    A = inputs("A", 20)
    tape = Tape()
    for i in tape.each(20):
        tape.load(A[i])
        tape.delete(A[i])
    replay(Expansion(FamilyGraph((A,), ()), tape.program), 1, told.append)
    assert told[-1] == 40
    assert len(told) > 3
    assert told == sorted(told)


# Indices that are not simple.


def moves_of(graph, program):
    return [str(move) for move in Expansion(graph, program).moves()]


def test_strides_and_backward_loops_across_a_name():
    g = Attention(1, 1, keys=4).graph
    l, tape = g["l"], Tape()
    for j in tape.each(4):
        tape.load(l[0, 3 + j * -1])
    for j in tape.each(2):
        tape.store(l[0, 2 * j])
    assert moves_of(g, tape.program) == [
        *("load l[0,3]", "load l[0,2]", "load l[0,1]", "load P[0,0]"),
        *("store P[0,0]", "store l[0,2]"),
    ]


def test_tiles_are_row_major():
    A = inputs("A", 2, 3, 2)
    assert moves_of(FamilyGraph((A,), ()), (Do(Op.LOAD, A[:, 1:, :]),)) == [
        f"load A[{i},{j},{k}]" for i in range(2) for j in (1, 2) for k in range(2)
    ]


def test_an_empty_program_makes_no_moves():
    assert moves_of(Attention(2, 2).graph, ()) == []
    with pytest.raises(Incomplete, match=r"^after 0 moves 1 of 1 outputs is not blue: O"):
        by_hand(Attention(1, 1), 3, lambda tape: None).replay()


def test_a_name_of_a_name():
    a = inputs("a", 3)
    s = chain("s", (3,), 0, Function.SUM, lambda k: a[k], lambda k: (s[k - 1], a[k]))
    t = chain("t", (3,), 0, Function.SUM, lambda k: s[k], lambda k: (t[k - 1], s[k]))
    graph = FamilyGraph((a, s, t), (t[1:],))
    tape = Tape()
    tape.load(a[:])
    tape.compute(s[1:], t[1:])
    tape.delete(t[:])
    same(
        fast_words(Expansion(graph, tape.program)),
        slow_words(graph, tape.program, Rules()),
    )
    assert moves_of(graph, tape.program)[-3:] == ["delete a[0]", "delete t[1]", "delete t[2]"]


def test_a_predecessor_may_run_across_a_name_with_a_stride():
    # z[k] is computed from s[2 - k] and s[2k]: both meet s[0], which names a[0].
    a = inputs("a", 5)
    s = chain("s", (5,), 0, Function.SUM, lambda k: a[k], lambda k: (s[k - 1], a[k]))
    z = family("z", (3,), Function.SUM, lambda k: (s[2 + k * -1], s[2 * k]))
    graph = FamilyGraph((a, s, z), (z[:],))
    program = (Do(Op.COMPUTE, z[:]),)
    same(fast_words(Expansion(graph, program)), slow_words(graph, program, Rules()))


def test_a_predecessor_that_is_named_twice_counts_once():
    a = inputs("a", 2)
    z = family("z", (2,), Function.PRODUCT, lambda i: (a[i], a[i]))
    graph, program = FamilyGraph((a, z), (z[:],)), (Do(Op.COMPUTE, z[:]),)
    words = fast_words(Expansion(graph, program))
    assert [preds for *_, preds in words] == [(0,), (1,)]


# Errors.


def refusal(problem, write):
    with pytest.raises(ProgramError) as caught:
        by_hand(problem, 100, write).replay()
    return str(caught.value)


P4 = Attention(4, 3, keys=5)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda t, g: t.load(g["Q"][4, 0]), "load Q[4, 0]: index 4 of axis 0 is not among 0 to 3"),
        (
            lambda t, g: t.load(g["Q"][0, Affine(-1)]),
            "load Q[0, -1]: index -1 of axis 1 is not among 0 to 2",
        ),
        (
            lambda t, g: t.load(g["K"][Affine(2), :], Tile(g["K"], (Affine(3), Affine(0)), (3, 1))),
            "load K[3:+3, 0]: index 5 of axis 0 is not among 0 to 4",
        ),
        (
            lambda t, g: [t.load(g["K"][i + 1, 0]) for i in t.each(5)],
            "load K[2 + v0, 0]: index 5 of axis 0 is not among 0 to 4",
        ),
        (
            lambda t, g: [t.load(g["K"][3 + i * -2, 0]) for i in t.each(3)],
            "load K[1 + -2*v0, 0]: index -1 of axis 0 is not among 0 to 4",
        ),
        (
            lambda t, g: t.compute(g["s"][0, 0, 0]),
            "compute s[0, 0, 0]: index 0 of axis 2 is not among 1 to 2",
        ),
        (
            lambda t, g: t.compute(g["s"][0, 0, :]),
            "compute s[0, 0, 0:+3]: index 0 of axis 2 is not among 1 to 2",
        ),
        (
            lambda t, g: t.load(inputs("Z", 2)[0]),
            "load Z[0]: the graph has no such family",
        ),
        (
            lambda t, g: t.load(Attention(6, 3).graph["Q"][0, 0]),
            "load Q[0, 0]: the graph has no such family",
        ),
    ],
)
def test_programs_that_name_what_is_not_there(write, message):
    assert refusal(P4, lambda tape: write(tape, P4.graph)) == message


def test_indices_before_the_first_piece_are_not_there():
    p = Attention(1, 1, keys=3, softmax="online", block=1)
    told = refusal(p, lambda tape: tape.load(p.graph["a"][0, 0]))
    assert told == "load a[0, 0]: index 0 of axis 1 is not among 1 to 2"


def test_a_tile_needs_all_its_indices():
    told = refusal(P4, lambda tape: tape.load(P4.graph["Q"][0]))
    assert told == "Q[0]: Q has 2 indices, not 1"


def test_families_have_at_most_three_indices():
    A = inputs("A", 1, 1, 1, 1)
    with pytest.raises(ProgramError, match="A has 4 indices; the most is 3"):
        list(Expansion(FamilyGraph((A,), ()), ()).streams())


def test_an_index_that_crosses_names_follows_the_cut_axis():
    a = inputs("a", 3)
    s = chain("s", (3,), 0, Function.SUM, lambda k: a[k], lambda k: (s[k - 1], a[k]))
    z = family("z", (3, 3), Function.EXP, lambda i, j: (s[j],))
    with pytest.raises(ProgramError, match="an index that crosses names must follow the cut axis"):
        list(Expansion(FamilyGraph((a, s, z), (z[:, :],)), (Do(Op.COMPUTE, z[:, :]),)).streams())


def test_pieces_may_change_the_function():
    a = inputs("a", 4)
    pieces = (
        Piece(0, 2, Function.EXP, lambda i: (a[i],)),
        Piece(2, 4, Function.SUM, lambda i: (a[i], a[i - 2])),
    )
    z = Family("z", (4,), pieces)
    graph = FamilyGraph((a, z), (z[:],))
    program = (Do(Op.COMPUTE, z[:]),)
    same(fast_words(Expansion(graph, program)), slow_words(graph, program, Rules()))


# Refereeing.


def test_an_illegal_move_deep_in_a_loop_is_named(monkeypatch):
    # Key 3 is loaded, and then keys 0, 1, 2, 3: move 4 loads what is red.
    g = P4.graph

    def write(tape):
        tape.load(g["K"][3, 0])
        for j in tape.each(5):
            tape.load(g["K"][j, 0])

    for size in (1, 1 << 15):
        monkeypatch.setattr(expander, "BUFFER", size)
        with pytest.raises(IllegalMove) as caught:
            by_hand(P4, 100, write).replay()
        assert str(caught.value) == (
            "move 4, load K[3,0]: K[3,0] is red already; "
            "Rules(redundant=True) let it be loaded again"
        )
        assert caught.value.index == 4


def test_a_full_cache_says_the_least_that_works():
    g = P4.graph
    with pytest.raises(IllegalMove) as caught:
        by_hand(P4, 2, lambda tape: tape.load(g["Q"][0, :])).replay()
    assert str(caught.value) == (
        "move 2, load Q[0,2]: the cache is full: 2 of 2 red, and Q[0,2] takes 1 more; "
        "the least cache for this graph is 3"
    )


def test_missing_outputs_are_counted():
    with pytest.raises(Incomplete) as caught:
        by_hand(Attention(4, 3), 3, lambda tape: None).replay()
    assert str(caught.value) == (
        "after 0 moves 12 of 12 outputs are not blue: O[0,0], O[0,1], O[0,2], O[1,0] and 8 more"
    )


def test_the_buffer_holds_the_longest_block():
    # A loop body of more words than the buffer goes through all the same.
    A, tape = inputs("A", 50), Tape()
    for _ in tape.each(3):
        for i in range(50):
            tape.load(A[i])
        for i in range(50):
            tape.delete(A[i])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expander, "BUFFER", 1)
        cost = replay(Expansion(FamilyGraph((A,), ()), tape.program), 50)
    assert cost == Cost(loads=150, deletes=150, peak=50)


def test_a_vertex_with_too_many_predecessors_is_named():
    a = inputs("a", 5)
    wide = family("wide", (1,), Function.SUM, lambda i: tuple(a[k] for k in range(4)))
    graph, tape = FamilyGraph((a, wide), (wide[:],)), Tape()
    tape.load(a[:])
    with pytest.raises(
        ProgramError, match=r"wide\[v0\] has 4 predecessors; the most in a family is 3"
    ):
        list(Expansion(graph, tape.program).streams())
