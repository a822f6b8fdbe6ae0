"""The blocked product that many schedules are made of, on a graph of nothing else."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.cost import Cost
from pebble.families import Function, family, inputs, sums
from pebble.family_graph import FamilyGraph
from pebble.schedule import Schedule
from schedules.blocked import Cut, Product, best_cut, loads, multiply, nothing, peak, settle
from tests import laws

few = settings(max_examples=max(settings().max_examples // 5, 30))


@dataclass(frozen=True)
class Shape:
    """A product of matrices, as a problem: s x h sums of `depth` terms.

    With `alone` = 2 and 3 the results are vertices that are computed from a sum, and from both.
    """

    streams: int
    helds: int
    depth: int
    alone: int = 1

    @property
    def graph(self):
        return matmul(self)

    @property
    def sizes(self):
        return {"streams": self.streams, "helds": self.helds, "depth": self.depth}

    @property
    def product(self):
        g = self.graph
        return Product(
            streams=self.streams,
            helds=self.helds,
            depth=self.depth,
            stream=lambda s, k: g["left"][s, k],
            held=lambda h, k: g["right"][h, k],
            term=lambda s, h, k: g["x"][s, h, k],
            total=lambda s, h, k: g["sum"][s, h, k],
        )


@cache
def matmul(shape):
    """Give the graph; one of its own for each shape, since tiles belong to a graph."""
    last, results = shape.depth - 1, (shape.streams, shape.helds)
    left, right = (
        inputs("left", shape.streams, shape.depth),
        inputs("right", *results[1:], last + 1),
    )
    x = family(
        "x", (*results, last + 1), Function.PRODUCT, lambda s, h, k: (left[s, k], right[h, k])
    )
    total = sums("sum", x, 2)
    one = family("one", results, Function.EXP, lambda s, h: (total[s, h, last],))
    two = family("two", results, Function.PRODUCT, lambda s, h: (total[s, h, last], one[s, h]))
    ends = [total[:, :, last], one[:, :], two[:, :]]
    extra = [one, two][: shape.alone - 1]
    return FamilyGraph((left, right, x, total, *extra), (ends[shape.alone - 1],))


def definition(shape):
    """The vertices and what each is computed from, and the results."""
    graph, ends = {}, []
    for k in range(shape.depth):
        graph |= {("left", (s, k)): () for s in range(shape.streams)}
        graph |= {("right", (h, k)): () for h in range(shape.helds)}
    for s, h in product(range(shape.streams), range(shape.helds)):
        end = None
        for k in range(shape.depth):
            term = "x", (s, h, k)
            graph[term] = ("left", (s, k)), ("right", (h, k))
            if end:
                graph["sum", (s, h, k)] = end, term
            end = ("sum", (s, h, k)) if end else term
        if shape.alone > 1:
            graph["one", (s, h)] = (end,)
        if shape.alone > 2:
            graph["two", (s, h)] = end, ("one", (s, h))
        ends.append(end if shape.alone == 1 else (("one", "two")[shape.alone - 2], (s, h)))
    return graph, ends


def multiplied(shape, cut, running=0):
    """Give the schedule of a product that says what it costs by `loads` and `peak`.

    Where a word is running, the first result of each h stays to the end of its block.
    """
    g, part = shape.graph, shape.product

    def words(s, h):
        names = [part.total(s, h, shape.depth - 1)]
        return names + [g[name][s, h] for name in ("one", "two")[: shape.alone - 1]]

    def write(tape):
        def take(s, h):
            *before, result = words(s, h)
            for vertex in [*before, result][1:]:
                tape.compute(vertex)
            tape.store(result)
            tape.delete(*before)
            if not (running and s.first):
                tape.delete(result)

        def close(H):
            if running:
                tape.delete(words(0, H)[-1])

        multiply(tape, part, cut, take, close=close)

    moved = sum(loads(part, cut))
    results = shape.streams * shape.helds
    computes = results * (2 * shape.depth - 1 + shape.alone - 1)
    cost = Cost(
        loads=moved,
        stores=results,
        computes=computes,
        deletes=moved + computes,
        peak=peak(part, cut, running, shape.alone),
    )
    return Schedule("multiplied", shape, cost.peak, vars(cut), cost, write)


shapes = st.builds(
    Shape, st.integers(1, 8), st.integers(1, 6), st.integers(1, 6), st.integers(1, 3)
)
cuts = st.builds(Cut, st.integers(1, 9), st.integers(1, 7), st.integers(1, 7))
running = st.integers(0, 1)


@st.composite
def multiplications(draw, shapes=shapes):
    shape, cut, kept = draw(shapes), draw(cuts), draw(running)
    return multiplied(shape, cut, kept)


# What a product moves and holds.


@given(multiplications())
def test_count_replay_and_formula_agree(schedule):
    laws.count_replay_and_formula_agree(schedule)


@given(multiplications())
def test_the_peak_is_exact(schedule):
    laws.the_peak_is_exact(schedule)


@given(shapes, running, st.data())
def test_whole_depth_panels(shape, running, data):
    """No tile is held: what stays is a block of one operand, and a row of the other."""
    helds = data.draw(st.integers(1, shape.helds))
    schedule = multiplied(shape, Cut(1, helds, shape.depth), running)
    laws.count_replay_and_formula_agree(schedule)
    laws.the_peak_is_exact(schedule)
    blocks = -(-shape.helds // helds)
    cost = schedule.count()
    assert cost.loads == shape.depth * (shape.helds + shape.streams * blocks)
    alone = max(shape.alone, 3 if shape.depth > 1 else 1)
    kept = helds if shape.streams > 1 else helds - 1  # the last h's word is its only sum's
    assert cost.peak == (helds + 1) * shape.depth + running * kept + alone


def test_the_peak_of_one_row_with_running_words():
    # 2 x 3 words and 3 that stream, the first h's running word, and the second's sums.
    schedule = multiplied(Shape(1, 4, 3), Cut(1, 2, 3), running=1)
    assert schedule.count().peak == 6 + 3 + 1 + 3
    assert schedule.closed_form.peak == 6 + 3 + 1 + 3


def test_every_cut_of_small_products():
    for streams, helds, depth in product(range(1, 6), range(1, 4), range(1, 4)):
        for alone, running in product((1, 2, 3), (0, 1)):
            shape = Shape(streams, helds, depth, alone)
            for s, h, k in product(range(1, streams + 1), range(1, helds + 1), range(1, depth + 1)):
                schedule = multiplied(shape, Cut(s, h, k), running)
                assert schedule.count() == schedule.closed_form, (schedule, alone, running)


small = st.builds(Shape, st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))


@few
@given(multiplications(small))
def test_the_naive_referee_agrees(schedule):
    laws.the_naive_referee_agrees(schedule, *definition(schedule.problem))


@few
@given(multiplications(), st.data())
def test_no_move_can_be_left_out(schedule, data):
    laws.no_move_can_be_left_out(schedule, data)


@given(shapes, cuts)
def test_the_words_of_each_operand(shape, cut):
    schedule = multiplied(shape, cut)
    loaded = Counter(m.vertex.family for m in schedule.moves() if str(m.op) == "load")
    assert (loaded["left"], loaded["right"]) == loads(shape.product, cut)
    passes = -(-shape.helds // cut.helds)
    assert loaded["left"] == shape.streams * shape.depth * passes
    tall = shape.streams if cut.depth >= shape.depth else cut.streams
    assert loaded["right"] == shape.helds * shape.depth * -(-shape.streams // tall)


PEAKS = [  # streams, helds, depth; the cut; running, alone; words of operands, tiles, the rest
    ((6, 4, 3), (3, 2, 1), (0, 1), 2 + 1, 3 * 2, 2),  # a product and the new sum
    ((6, 4, 3), (3, 2, 2), (0, 1), 4 + 2, 3 * 2, 2),
    ((6, 4, 3), (3, 2, 1), (1, 3), 2 + 1, 3 * 2 + 2, 2),  # a word for each h, in the second tile
    ((5, 4, 3), (3, 2, 1), (1, 3), 2 + 1, 2 * 2 + 2, 2),  # which has 2 rows left: as in the first
    ((5, 4, 3), (4, 2, 1), (1, 1), 2 + 1, 4 * 2, 2),  # or 1 row: the first has most
    ((8, 4, 3), (3, 2, 1), (1, 1), 2 + 1, 3 * 2 + 2, 2),  # the tile in the middle has all 3
    ((3, 4, 3), (3, 2, 1), (1, 1), 2 + 1, 3 * 2, 2),  # one tile: a sum's word is its result's
    ((6, 4, 3), (3, 2, 3), (0, 1), 6 + 3, 0, 3),  # no tile: a sum, a product and the new sum
    ((6, 4, 3), (3, 2, 3), (1, 2), 6 + 3, 2, 3),
    ((1, 4, 3), (1, 1, 3), (1, 3), 3 + 3, 0, 3),  # one sum in a block: its word is the running one
    ((6, 4, 1), (3, 2, 1), (0, 1), 2 + 1, 0, 1),  # a product is its sum
    ((6, 4, 1), (3, 2, 1), (1, 3), 2 + 1, 2, 3),
]


@pytest.mark.parametrize(("shape", "cut", "kept", "operands", "tile", "more"), PEAKS)
def test_peaks_by_hand(shape, cut, kept, operands, tile, more):
    shape, cut, (running, alone) = Shape(*shape, alone=kept[1]), Cut(*cut), kept
    wanted = operands + tile + more
    assert peak(shape.product, cut, running, alone) == wanted
    assert multiplied(shape, cut, running).count().peak == wanted


def test_a_product_is_read_a_block_at_a_time():
    # The innermost moves of a 2 x 2 result: one term at a time, and two of three.
    schedule = multiplied(Shape(2, 2, 3), Cut(2, 1, 2))
    told = " ".join(str(move) for move in schedule.moves()).replace("compute ", "")
    assert told.startswith(
        "load right[0,0] load right[0,1] load left[0,0] load left[0,1] "
        "x[0,0,0] x[0,0,1] sum[0,0,1] delete x[0,0,1] delete x[0,0,0] "
        "delete left[0,0] delete left[0,1] load left[1,0]"
    )
    # The last term waits for both rows' first two: then a sum is finished and goes.
    assert told.count("load right[0,2] load left[0,2] x[0,0,2] sum[0,0,2] delete x[0,0,2]") == 1


# What the caller of a product is told.


@few
@given(shapes, cuts)
def test_each_sum_is_taken_once_and_between_its_block_opens_and_closes(shape, cut):
    """An input of each h is loaded as its block opens, read as its sums are taken, and goes."""
    shape = replace(shape, alone=1)
    last = shape.depth - 1
    g, weights = shape.graph, inputs("weight", shape.helds)
    scaled = family(
        "scaled",
        (shape.streams, shape.helds),
        Function.PRODUCT,
        lambda s, h: (g["sum"][s, h, last], weights[h]),
    )
    graph = FamilyGraph((*g.families, weights, scaled), (scaled[:, :],))
    told = []

    def write(tape):
        def take(s, h):
            tape.compute(scaled[s, h])
            tape.store(scaled[s, h])
            tape.delete(scaled[s, h], g["sum"][s, h, last])

        def open(H):
            told.append(("open", H))
            tape.load(weights[H])

        def close(H):
            told.append(("close", H))
            tape.delete(weights[H])

        multiply(tape, shape.product, cut, take, open=open, close=close)

    helds, results = settle(shape.product, cut).helds, shape.streams * shape.helds
    moved, computes = sum(loads(shape.product, cut)) + shape.helds, results * 2 * shape.depth
    most = peak(shape.product, cut, alone=2) + helds
    schedule = Schedule(
        *("scaled", Problem(graph), most, {}),
        Cost(moved, results, computes, moved + computes, most),
        write,
    )
    laws.count_replay_and_formula_agree(schedule)
    laws.the_peak_is_exact(schedule)
    opened, closed = told[::2], told[1::2]
    assert {what for what, _ in opened} == {"open"}
    assert [("open", H) for _, H in closed] == opened
    assert opened[0][1].first
    assert closed[-1][1].last


@dataclass(frozen=True)
class Problem:
    """What a schedule needs to know of what it computes."""

    graph: FamilyGraph


@few
@given(shapes, cuts)
def test_what_streams_by_can_be_made_instead_of_loaded(shape, cut):
    """Entries of the left operand are exponentials: their logarithm is loaded in their place."""
    shape = replace(shape, alone=1)
    last, extent = shape.depth - 1, (shape.streams, shape.depth)
    logs, right = inputs("log", *extent), inputs("right", shape.helds, shape.depth)
    left = family("left", extent, Function.EXP, lambda s, k: (logs[s, k],))
    x = family(
        "x",
        (shape.streams, shape.helds, shape.depth),
        Function.PRODUCT,
        lambda s, h, k: (left[s, k], right[h, k]),
    )
    total = sums("sum", x, 2)
    graph = FamilyGraph((logs, right, left, x, total), (total[:, :, last],))
    part = Product(
        *(shape.streams, shape.helds, shape.depth, nothing),  # never asked for
        held=lambda h, k: right[h, k],
        term=lambda s, h, k: x[s, h, k],
        total=lambda s, h, k: total[s, h, k],
    )
    sizes = []

    def write(tape):
        def take(s, h):
            tape.store(total[s, h, last])
            tape.delete(total[s, h, last])

        def bring(s, G, H):
            sizes.append((G.size, H.size))
            for k in tape.each(G):
                tape.load(logs[s, k])
                tape.compute(left[s, k])
                tape.delete(logs[s, k])

        def drop(s, G, H):
            assert (G.size, H.size) == sizes[-1]
            tape.delete(left[s, G])

        multiply(tape, part, cut, take, bring=bring, drop=drop)

    stream, held = loads(part, cut)
    results, moved = shape.streams * shape.helds, stream + held
    computes = results * (2 * shape.depth - 1) + stream
    # A logarithm beside its exponential takes no more than a product does.
    cost = Cost(moved, results, computes, moved + computes, peak(part, cut))
    schedule = Schedule("made", Problem(graph), cost.peak, {}, cost, write)
    laws.count_replay_and_formula_agree(schedule)
    laws.the_peak_is_exact(schedule)
    settled = settle(part, cut)
    assert max(sizes) == (settled.depth, settled.helds)


# How a product is cut.


@given(shapes, cuts)
def test_a_cut_is_settled(shape, cut):
    found = settle(shape.product, cut)
    assert found == settle(shape.product, found)
    assert found.helds == min(cut.helds, shape.helds)
    assert found.depth == min(cut.depth, shape.depth)
    if cut.depth < shape.depth:
        assert found.streams == min(cut.streams, shape.streams)
    else:
        assert found.streams == shape.streams
    for running, alone in product((0, 1), (1, 2, 3)):
        told = peak(shape.product, cut, running, alone)
        assert told == peak(shape.product, found, running, alone)
    assert loads(shape.product, cut) == loads(shape.product, found)


def test_settled_cuts_by_hand():
    shape = Product(6, 4, 3, *[nothing] * 4)
    assert settle(shape, Cut(2, 3, 2)) == Cut(2, 3, 2)
    assert settle(shape, Cut(7, 5, 2)) == Cut(6, 4, 2)
    assert settle(shape, Cut(2, 3, 3)) == Cut(6, 3, 3)
    assert settle(shape, Cut(2, 9, 9)) == Cut(6, 4, 3)
    assert settle(Product(6, 4, 1, *[nothing] * 4), Cut(1, 1, 1)) == Cut(6, 1, 1)


def every_cut(shape):
    return [
        Cut(*sizes)
        for sizes in product(*(range(1, size + 1) for size in list(shape.sizes.values())))
    ]


@given(
    st.builds(Shape, st.integers(1, 12), st.integers(1, 9), st.integers(1, 5)),
    running,
    st.integers(1, 3),
    st.integers(1, 80),
)
def test_the_best_cut_is_the_best_of_all(shape, running, alone, cache):
    part = shape.product

    def held(cut):
        return peak(part, cut, running, alone)

    fitting = [cut for cut in every_cut(shape) if held(cut) <= cache]
    found = best_cut(part, cache, held)
    if not fitting:
        assert found is None
        return
    assert held(found) <= cache
    assert found.depth in (1, shape.depth)
    assert sum(loads(part, found)) == min(sum(loads(part, cut)) for cut in fitting)


@few
@given(
    st.builds(Shape, st.integers(1, 12), st.integers(1, 9), st.integers(1, 5)),
    st.integers(0, 9),
    st.integers(0, 9),
    st.integers(1, 3),
    st.integers(5, 80),
)
def test_the_best_cut_for_other_words(shape, stream, held, beside, cache):
    """Words of one operand may cost more than of the other, and rows may keep words beside."""
    part = shape.product

    def io(cut):
        left, right = loads(part, cut)
        return stream * left + held * right

    def most(cut):
        return peak(part, cut) + beside * settle(part, cut).helds

    fitting = [io(cut) for cut in every_cut(shape) if most(cut) <= cache]
    found = best_cut(part, cache, most, io)
    assert (io(found) if found else None) == min(fitting, default=None)
    assert found is None or most(found) <= cache


def test_of_cuts_that_move_as_much_the_smallest_is_taken():
    # All 6 + 6 words of operands pass once, in a panel or in a tile: 6 words, 2 of the stream and
    # 3 more, or 9 words, 3 + 1 and 2 more.
    shape = Product(3, 3, 2, *[nothing] * 4)
    assert best_cut(shape, 100, lambda cut: peak(shape, cut)) == Cut(3, 3, 2)
    # With more terms a panel is 12 words, 4 and 3; the tile takes as much as before.
    shape = Product(3, 3, 4, *[nothing] * 4)
    assert best_cut(shape, 100, lambda cut: peak(shape, cut)) == Cut(3, 3, 1)


def test_the_best_cut_of_a_large_product():
    # 31 x 31 + 31 + 1 + 2 words: 2 * 10^15 / 31 pass, if 31 divided 10^6.
    shape = Product(10**6, 10**6, 10**3, *[nothing] * 4)
    found = best_cut(shape, 1024, lambda cut: peak(shape, cut))
    assert found.depth == 1
    assert peak(shape, found) <= 1024
    assert 2 * 10**15 / 32 < sum(loads(shape, found)) < 2.1 * 10**15 / 32


def test_nothing_fits():
    shape = Product(4, 4, 3, *[nothing] * 4)
    assert best_cut(shape, 4, lambda cut: peak(shape, cut)) is None
    # A sum, a word of each operand, a product and the new sum.
    assert best_cut(shape, 5, lambda cut: peak(shape, cut)) == Cut(1, 1, 1)
