import pytest
from hypothesis import given
from hypothesis import strategies as st

from pebble.errors import NotationError
from pebble.moves import Move, Vertex, listed, notation, parse_label
from pebble.rules import Op

WORDS = st.from_regex(r"[A-Za-z_]\w*", fullmatch=True).filter(str.isascii)
TEXTS = st.text(max_size=8) | st.sampled_from(
    ["from", "a from b", "' from '", "x[0]", "3", "", " "]
)
PARTS = st.integers() | TEXTS
LABELS = st.one_of(
    st.builds(Vertex, WORDS, st.lists(st.integers(), max_size=4).map(tuple)),
    TEXTS,
    st.integers(),
    st.recursive(PARTS, lambda part: st.lists(part, max_size=3).map(tuple), max_leaves=6),
)
PLAIN_OPS = st.sampled_from([op for op in Op if op is not Op.SLIDE])
MOVES = st.builds(Move, PLAIN_OPS, LABELS) | st.builds(Move, st.just(Op.SLIDE), LABELS, LABELS)


@given(LABELS)
def test_labels_round_trip(label):
    again = parse_label(notation(label))
    assert again == label
    assert type(again) is type(label)


@given(MOVES)
def test_moves_round_trip(move):
    assert Move.parse(str(move)) == move
    assert repr(move) == f"Move({str(move)!r})"


@given(
    st.builds(
        "{} {}".format,
        st.sampled_from(["load", "store", "slide", "delete", "lod", ""]),
        st.text("abx019,-_[]()' \"\\from", max_size=20) | st.text(),
    )
)
def test_parse_gives_a_move_or_a_notation_error(text):
    try:
        move = Move.parse(text)
    except NotationError:
        return
    assert Move.parse(str(move)) == move


@given(st.text() | st.text("abx019,-_[]()' \"\\", max_size=20))
def test_parse_label_gives_a_label_or_a_notation_error(text):
    try:
        label = parse_label(text)
    except NotationError:
        return
    assert parse_label(notation(label)) == label


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "a move starts with one of load, store, compute, delete, slide, erase"),
        ("push a", "a move starts with one of"),
        ("load", "'' is no vertex: write x[0,1], a word, 'a quoted string', 3 or (0, 1)"),
        ("load a b", "'a b' is no vertex"),
        ("load 1.5", "'1.5' is no vertex"),
        ("load (1, None)", "is no vertex"),
        ("load x[1,]", "'x[1,]': an index is integers with commas between"),
        ("slide a", "'slide a': a slide is written 'slide v from u'"),
        ("slide a b from", "a slide is written"),
        ("load " + "(" * 5000, "is no vertex"),
        ("load " + "9" * 5000, "is no vertex"),
    ],
)
def test_what_is_wrong_with_a_text(text, says):
    with pytest.raises(NotationError) as caught:
        Move.parse(text)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "label", [None, 1.5, True, b"a", frozenset(), (1, None), (1, (2.0,)), (True,)]
)
def test_labels_of_other_types_have_no_notation(label):
    with pytest.raises(NotationError, match="a label with a notation is a Vertex, a str, an int"):
        notation(label)


@pytest.mark.parametrize(
    "label", [Vertex("two words", (0,)), Vertex("é", (0,)), Vertex("x", (0.5,)), Vertex(3, (0,))]
)
def test_a_vertex_is_a_word_and_integers(label):
    with pytest.raises(NotationError, match="a Vertex is a word such as x and a tuple of integers"):
        notation(label)


def test_examples_of_notation():
    assert notation(Vertex("s", (0, -1))) == "s[0,-1]"
    assert parse_label("s[0, -1]") == Vertex("s", (0, -1))
    assert parse_label("t[]") == Vertex("t", ())
    assert notation("from") == "'from'"
    assert str(Move(Op.SLIDE, "a from b", "from")) == "slide 'a from b' from 'from'"
    assert Move.parse("  compute   s[0,1] ") == Move(Op.COMPUTE, Vertex("s", (0, 1)))


def test_listed_counts_the_rest():
    assert listed([]) == ""
    assert listed(range(4)) == "0, 1, 2, 3"
    assert listed(range(5)) == "0, 1, 2, 3 and 1 more"
    assert listed(range(5), most=1) == "0 and 4 more"
