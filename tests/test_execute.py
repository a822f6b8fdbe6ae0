import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pebble import expander
from pebble.attention import Attention
from pebble.errors import DataError, IllegalMove, Incomplete, PebbleError
from pebble.executor import execute
from pebble.expander import Expansion
from pebble.families import Function, family, inputs
from pebble.family_graph import FamilyGraph
from pebble.tapes import Tape
from schedules import flash1, flash2, small_cache, standard
from tests.strategies import GENERATORS, schedules
from tests.test_expander import by_hand

every = pytest.mark.parametrize("generator", GENERATORS, ids=lambda g: g.__name__)


def attention(Q, K, V):
    """The outputs and the logarithms of the row sums, in float64."""
    S = Q @ K.T
    top = S.max(axis=1)
    E = np.exp(S - top[:, None])
    return E @ V / E.sum(axis=1)[:, None], np.log(E.sum(axis=1)) + top


def operands(p, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    shapes = (p.n, p.d), (p.keys, p.d), (p.keys, p.value_dim)
    Q, K, V = (rng.normal(size=shape) for shape in shapes)
    return scale * Q, K, V + 3


@given(schedules(), st.integers(0, 2**32))
def test_a_schedule_computes_attention(schedule, seed):
    p = schedule.problem
    Q, K, V = operands(p, seed)
    given = [Q.copy(), K.copy(), V.copy()]
    results, (O, Lse) = schedule.execute(Q, K, V), attention(Q, K, V)
    assert list(results) == (["O", "Lse"] if p.logsumexp else ["O"])
    np.testing.assert_allclose(results["O"], O, rtol=1e-12, atol=1e-12)
    if p.logsumexp:
        np.testing.assert_allclose(results["Lse"], Lse, rtol=1e-12, atol=1e-12)
    assert all(np.array_equal(a, b) for a, b in zip((Q, K, V), given, strict=True))


@pytest.mark.parametrize("softmax", ["plain", "online"])
@every
def test_larger_attention_is_computed_too(generator, softmax):
    p = Attention(37, 5, keys=29, value_dim=7, softmax=softmax, logsumexp=True)
    Q, K, V = operands(p)
    results, (O, Lse) = generator(p, 80).execute(Q, K, V), attention(Q, K, V)
    np.testing.assert_allclose(results["O"], O, rtol=1e-12)
    np.testing.assert_allclose(results["Lse"], Lse, rtol=1e-12)


@every
def test_numbers_pass_from_buffer_to_buffer(generator, monkeypatch):
    p = Attention(5, 3, keys=6, softmax="online")
    Q, K, V = operands(p)
    whole = generator(p, 60).execute(Q, K, V)["O"]
    monkeypatch.setattr(expander, "BUFFER", 1)
    assert np.array_equal(generator(p, 60).execute(Q, K, V)["O"], whole)


@every
def test_large_scores_are_fine_online(generator):
    p = Attention(6, 3, keys=5, softmax="online", logsumexp=True)
    Q, K, V = operands(p)
    Q *= 1000 / np.abs(Q @ K.T).max()
    results, (O, Lse) = generator(p, 60).execute(Q, K, V), attention(Q, K, V)
    np.testing.assert_allclose(results["O"], O, rtol=1e-11)
    np.testing.assert_allclose(results["Lse"], Lse, rtol=1e-12)


@every
def test_large_scores_overflow_plain(generator):
    p = Attention(2, 1)
    with pytest.raises(DataError) as caught:
        generator(p, 60).execute([[1.0], [1000.0]], [[1.0], [1.0]], [[1.0], [1.0]])
    assert str(caught.value) == (
        "O is not finite: a number overflowed on the way to it "
        "(a plain softmax does where a score exceeds 709; an online one does not)"
    )


def test_one_key_online_has_a_weight_of_one_whatever_its_score():
    p = Attention(1, 1, softmax="online", logsumexp=True)
    results = flash2(p, 20).execute([[1e5]], [[2.0]], [[7.0]])
    assert (results["O"].tolist(), results["Lse"].tolist()) == ([[7.0]], [2e5])


def test_numbers_may_come_as_lists_and_other_types():
    p = Attention(2, 1, keys=1)
    for V in ([[5]], np.array([[5]], np.int8), np.array([[5]], np.float32), [[True * 5]]):
        outputs = flash2(p, 20).execute([[1], [2]], [[3]], V)
        assert outputs["O"].tolist() == [[5.0], [5.0]]
        assert outputs["O"].dtype == np.float64


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("Q", np.zeros((3, 2)), "Q has shape (3, 2): it must be (2, 3)"),
        ("K", np.zeros(12), "K has shape (12,): it must be (4, 3)"),
        ("V", np.zeros((4, 1, 1)), "V has shape (4, 1, 1): it must be (4, 1)"),
        ("V", 3.0, "V has shape (): it must be (4, 1)"),
        ("K", [[0, 0, 0], [0, 0]], "K does not hold real numbers: it must be float64 or safe"),
        ("V", [["a"]] * 4, "V does not hold real numbers: it must be float64 or safe to cast"),
        ("V", [["1"]] * 4, "V does not hold real numbers: it must be float64 or safe to cast"),
        ("V", [[None]] * 4, "V does not hold real numbers: it must be float64 or safe to cast"),
        ("Q", np.zeros((2, 3), complex), "Q is complex: it must be real"),
        ("V", [[1j]] * 4, "V is complex: it must be real"),
        ("Q", [[0, 0, 0], [0, np.nan, 0]], "Q[1, 1] = nan: every number must be finite"),
        ("V", [[0], [0], [np.inf], [-np.inf]], "V[2, 0] = inf: every number must be finite"),
    ],
)
def test_operands_are_checked(name, value, message):
    p = Attention(2, 3, keys=4, value_dim=1)
    Q, K, V = operands(p)
    with pytest.raises(DataError) as caught:
        flash2(p, 40).execute(**{"Q": Q, "K": K, "V": V, name: value})
    assert str(caught.value).startswith(message)


def test_an_operand_is_missing():
    p = Attention(2, 3)
    schedule = flash2(p, 40)
    Q, K, _ = operands(p)
    with pytest.raises(DataError, match=r"^V is missing: it is an array of shape \(2, 3\)$"):
        execute(Expansion(p.graph, schedule.program), 40, {"Q": Q, "K": K})


# What each function is.

functions = {
    Function.PRODUCT: lambda u, v: u * v,
    Function.SUM: lambda u, v: u + v,
    Function.EXP: lambda u, v: np.exp(u),
    Function.EXP_OF_DIFFERENCE: lambda u, v: np.exp(u - v),
    Function.ONE: lambda u, v: 1.0,
    Function.MAX: max,
    Function.QUOTIENT: lambda u, v: u / v,
    Function.LOG: lambda u, v: np.log(u),
    Function.LOG_PLUS: lambda u, v: np.log(u) + v,
    Function.DIFFERENCE: lambda u, v: u - v,
}


def test_all_functions_are_tested():
    assert {*functions, Function.INPUT, Function.SAME} == set(Function)


@pytest.mark.parametrize(("u", "v"), [(0.75, 2.5), (2.5, 0.75)])
@pytest.mark.parametrize("function", functions, ids=lambda f: f.name)
def test_each_function_is_computed(function, u, v):
    a, b = inputs("a", 1), inputs("b", 1)
    alone = function in (Function.EXP, Function.ONE, Function.LOG)
    z = family("z", (1,), function, lambda i: (a[i],) if alone else (a[i], b[i]))
    tape = Tape()
    tape.load(b[0], a[0])
    tape.compute(z[0])
    tape.store(z[0])
    expansion = Expansion(FamilyGraph((a, b, z), (z[:],)), tape.program)
    outputs = execute(expansion, 3, {"a": [u], "b": [v]})
    assert outputs["z"].tolist() == [pytest.approx(functions[function](u, v), rel=1e-15)]


def test_a_square_has_its_operand_twice():
    a = inputs("a", 1)
    z = family("z", (1,), Function.PRODUCT, lambda i: (a[i], a[i]))
    tape = Tape()
    tape.load(a[0])
    tape.compute(z[0])
    tape.store(z[0])
    expansion = Expansion(FamilyGraph((a, z), (z[:],)), tape.program)
    assert execute(expansion, 2, {"a": [3.0]})["z"].tolist() == [9.0]


# A schedule that is wrong is caught. One query, two keys and one dimension:

P2 = Attention(1, 1, keys=2)
G2 = P2.graph
RIGHT = [
    *("load Q 0 0", "load K 0 0", "compute x 0 0 0", "compute P 0 0", "delete x 0 0 0"),
    *("load V 0 0", "compute y 0 0 0", "delete V 0 0", "delete K 0 0"),
    *("load K 1 0", "compute x 0 1 0", "compute P 0 1", "delete x 0 1 0", "delete K 1 0"),
    *("load V 1 0", "compute y 0 1 0", "delete V 1 0"),
    *("compute l 0 1", "compute o 0 1 0", "compute O 0 0", "store O 0 0"),
]


def from_text(moves):
    def write(tape):
        for move in moves:
            op, name, *index = move.split()
            getattr(tape, op)(G2[name][tuple(map(int, index))])

    return by_hand(P2, 10, write)


def refusals(moves):
    """The message of the referee, which execution and replay both raise."""
    told = []
    for run in (
        lambda schedule: schedule.replay(),
        lambda schedule: schedule.execute([[1.0]], [[1.0], [2.0]], [[3.0], [4.0]]),
    ):
        with pytest.raises(PebbleError) as caught:
            run(from_text(moves))
        told.append((type(caught.value), str(caught.value)))
    assert told[0] == told[1]
    return told[0]


def changed(old, *new):
    at = RIGHT.index(old)
    return [*RIGHT[:at], *new, *RIGHT[at + 1 :]]


def test_the_right_moves_by_hand():
    assert from_text(RIGHT).replay().io == 6
    Q, K, V = np.array([[1.0]]), np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]])
    outputs = from_text(RIGHT).execute(Q, K, V)
    np.testing.assert_allclose(outputs["O"], attention(Q, K, V)[0], rtol=1e-12)


def test_a_key_that_is_not_added():
    assert refusals(changed("compute o 0 1 0")) == (
        IllegalMove,
        "move 18, compute O[0,0]: o[0,1,0] is not red (6 of 10 red)",
    )


def test_a_sum_that_is_taken_for_its_first_term():
    # o[0,0,0] names y[0,0,0], and l[0,0] names P[0,0].
    assert refusals(changed("compute l 0 1", "compute l 0 0"))[1].startswith(
        "compute l[0, 0]: index 0 of axis 1 is not among 1 to 1"
    )


def test_a_weight_that_is_stored_in_place_of_the_output():
    assert refusals(changed("store O 0 0", "store P 0 0")) == (
        Incomplete,
        "after 21 moves 1 of 1 outputs is not blue: O[0,0]",
    )


def test_a_load_of_what_was_never_stored():
    assert refusals(changed("compute P 0 1", "load P 0 1")) == (
        IllegalMove,
        "move 11, load P[0,1]: P[0,1] is not blue, so it can't be loaded",
    )


def test_an_input_is_never_computed():
    assert refusals(changed("load V 1 0", "compute V 1 0"))[1] == (
        "move 14, compute V[1,0]: V[1,0] is an input: it is loaded, never computed"
    )


def test_a_key_that_was_deleted_too_early():
    moves = changed("compute x 0 1 0", "delete K 1 0", "compute x 0 1 0")
    assert refusals(moves)[1] == "move 11, compute x[0,1,0]: K[1,0] is not red (3 of 10 red)"


def test_what_is_deleted_twice():
    moves = changed("delete V 0 0", "delete V 0 0", "delete V 0 0")
    assert refusals(moves)[1] == "move 8, delete V[0,0]: V[0,0] is not red, so it can't be deleted"


def test_a_store_of_what_is_blue():
    moves = [*RIGHT, "store O 0 0"]
    assert refusals(moves)[1] == (
        "move 21, store O[0,0]: O[0,0] is blue already; "
        "Rules(redundant=True) let it be stored again"
    )


def test_fast_memory_holds_only_what_is_red():
    # The same moves in a cache of one word less than their peak.
    peak = from_text(RIGHT).replay().peak
    schedule = from_text(RIGHT)
    object.__setattr__(schedule, "cache", peak - 1)
    with pytest.raises(IllegalMove, match=f"the cache is full: {peak - 1} of {peak - 1} red"):
        schedule.execute([[1.0]], [[1.0], [2.0]], [[3.0], [4.0]])


def test_all_four_give_the_same_numbers_within_rounding():
    p = Attention(9, 4)
    Q, K, V = operands(p)
    first, *rest = (g(p, 60).execute(Q, K, V)["O"] for g in (flash1, flash2, small_cache, standard))
    for other in rest:
        np.testing.assert_allclose(other, first, rtol=1e-13)
