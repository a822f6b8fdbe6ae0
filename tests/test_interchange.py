"""Graphs and schedules as files, as networkx graphs and as DOT."""

import errno
import html
import json
import os
import re
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import pebble
import schedules
from pebble import Game, Graph, Move, Rules, Vertex, testing
from pebble.errors import (
    FileError,
    GraphError,
    IllegalMove,
    Incomplete,
    NotationError,
    ProgramError,
    SizeError,
)
from pebble.interchange import (
    read_graph,
    read_schedule,
    replay_file,
    schedule_from_networkx,
    schedule_to_networkx,
    to_dot,
    write_dot,
    write_graph,
    write_schedule,
)
from pebble.moves import notation
from pebble.play import play
from pebble.replay import replay

ROOT = Path(__file__).parents[1]
SUM = Graph([(), (), (0, 1)], labels=["a", "b", "c"])
SUM_MOVES = ("load a", "load b", "compute c", "store c", "delete c")
SUM_TEXT = """\
{"format": "pebble graph", "version": 1, "vertices": 3}
{"label": "a"}
{"label": "b"}
{"label": "c", "preds": ["a", "b"], "output": true}
"""
SUM_MOVES_TEXT = """\
{"format": "pebble schedule", "version": 1, "moves": 5}
{"load": "a"}
{"load": "b"}
{"compute": "c"}
{"store": "c"}
{"delete": "c"}
"""

# Words of the notation and of JSON, quotes, backslashes, line ends of all kinds, other scripts.
WORDS = ["", " ", "from", "Q[0,0]", "3", "null", '"', "'", "\\", "\\N", "\x00", "\x85", "\ufeff"]
HARD = ["a\nb", "a\r\nb", "\u2028", "α", "𝒳", "&lt;", "<b>", "{}", "a\tb", "q]", *WORDS]
TEXTS = st.sampled_from(HARD) | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
INTS = st.integers() | st.integers(-(10**40), 10**40)
LABELS = {
    "str": TEXTS,
    "int": INTS,
    "vertex": st.builds(
        Vertex,
        st.from_regex(r"[A-Za-z_]\w{0,3}", fullmatch=True),
        st.lists(st.integers(), max_size=3).map(tuple),
    ),
    "tuple": st.lists(
        st.recursive(TEXTS | INTS, lambda part: st.lists(part, max_size=2).map(tuple)), max_size=3
    ).map(tuple),
}


@st.composite
def graphs(draw):
    """Draw a graph of `pebble.testing`, often with labels that are hard to write."""
    graph = draw(testing.graphs(max_vertices=7))
    kind = draw(st.sampled_from([None, *LABELS]))
    if kind is None:
        return graph
    size = len(graph)
    labels = draw(st.lists(LABELS[kind], min_size=size, max_size=size, unique=True))
    rows = [graph.predecessors(v) for v in range(size)]
    return Graph(rows, labels, [labels[v] for v in graph.outputs])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("interchange")


def types(label):
    """Give the types of a label and its parts: 1 and True are equal, and so are (1,) and Vertex."""
    return type(label), [types(part) for part in label] if isinstance(label, tuple) else None


def lines_of(kind, *rest, count=None):
    """Write a file's text: a header of this kind, and the rest."""
    counted = {"graph": "vertices", "schedule": "moves"}[kind]
    head = {
        "format": f"pebble {kind}",
        "version": 1,
        counted: len(rest) if count is None else count,
    }
    return "".join(f"{line}\n" for line in (json.dumps(head), *rest))


# Graphs.


def test_a_graph_file(tmp_path):
    path = tmp_path / "graph.json"
    write_graph(SUM, path)
    assert path.read_text() == SUM_TEXT
    assert read_graph(path) == SUM


@given(graphs())
def test_graphs_round_trip(folder, graph):
    path = folder / "graph.json"
    write_graph(graph, str(path))
    again = read_graph(str(path))
    assert again == graph
    for v in range(len(graph)):
        assert types(again.label(v)) == types(graph.label(v))
        assert again.predecessors(v) == graph.predecessors(v)
    text = path.read_bytes()
    write_graph(again, path)
    assert path.read_bytes() == text


@given(testing.graphs())
def test_a_graph_file_is_plain_json(folder, graph):
    """What another program reads: one object a line, as many as the header says."""
    write_graph(graph, folder / "graph.json")
    head, *rest = map(json.loads, (folder / "graph.json").read_text().splitlines())
    assert head == {"format": "pebble graph", "version": 1, "vertices": len(graph)}
    assert len(rest) == len(graph)
    for v, entry in enumerate(rest):
        assert len(entry.get("preds", [])) == len(graph.predecessors(v))
        assert ("preds" in entry) == (not graph.is_input(v))
        assert ("output" in entry) == graph.is_output(v)


@pytest.mark.parametrize("direction", ["forward", "backward", "double_backward"])
def test_the_graphs_of_attention_round_trip(direction, tmp_path):
    graph = pebble.Attention(3, 2, direction=direction).graph
    write_graph(graph, tmp_path / "graph.json")
    assert read_graph(tmp_path / "graph.json") == pebble.explicit(graph)


def test_without_marks_the_sinks_are_the_outputs(tmp_path):
    path = tmp_path / "graph.json"
    chain = '{"label": 1}', '{"label": 2, "preds": [1]}', '{"label": 3, "preds": [2]}'
    path.write_text(lines_of("graph", *chain))
    assert read_graph(path) == Graph([(), (0,), (1,)], [1, 2, 3])
    marked = chain[1].replace("}", ', "output": true}')
    path.write_text(lines_of("graph", chain[0], marked, chain[2].replace("}", ', "output": true}')))
    assert read_graph(path) == Graph([(), (0,), (1,)], [1, 2, 3], [2, 3])
    plain = chain[1].replace("}", ', "output": false}')
    path.write_text(lines_of("graph", chain[0], plain, chain[2]))
    assert read_graph(path) == Graph([(), (0,), (1,)], [1, 2, 3])


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.removesuffix("\n"),
        lambda text: "\ufeff" + text,
        lambda text: text + "\n  \n",
        lambda text: text.replace('": ', '":').replace(', "', ',"'),
        lambda text: text.replace('"b"', '"\\u0062"'),
    ],
    ids=["CRLF", "no last line end", "byte order mark", "blank end", "compact", "escapes"],
)
def test_other_ways_to_write_the_same(change, tmp_path):
    (tmp_path / "graph.json").write_bytes(change(SUM_TEXT).encode())
    (tmp_path / "schedule.json").write_bytes(change(SUM_MOVES_TEXT).encode())
    assert read_graph(tmp_path / "graph.json") == SUM
    assert read_schedule(tmp_path / "schedule.json") == tuple(map(Move.parse, SUM_MOVES))


VERTEX_FAULTS = {
    '{"label": "a"': (2, 14, "not JSON: expecting ',' delimiter"),
    '{"label": "a': (2, 11, "not JSON: unterminated string starting at"),
    '{"label": "a"} {}': (2, 16, "not JSON: extra data"),
    '{"label": }': (2, 11, "not JSON: expecting value"),
    "": (2, 1, "not JSON: expecting value"),
    '{"label": "a", "label": "b"}': (
        *(2, None),
        "not JSON that can be read: key 'label' is there twice",
    ),
    '{"label": NaN}': (2, None, "not JSON that can be read: NaN is no JSON"),
    '{"label": ' + 5000 * "1" + "}": (
        *(2, None),
        "not JSON that can be read: Exceeds the limit (4300 digits) for integer string conversion: "
        "value has 5000 digits; use sys.set_int_max_str_digits() to increase the limit",
    ),
    50_000 * "[": (2, None, "not JSON that can be read: it is nested too deep"),
    '{"label": ' + 700 * "[" + 700 * "]" + "}": (2, None, "a label is nested too deep"),
    '["a"]': (2, None, "a line must be one JSON object: {...}"),
    "{}": (2, None, 'a vertex has no label; write {"label": "c", "preds": ["a", "b"]}'),
    '{"label": "a", "pred": []}': (
        *(2, None),
        "unknown key 'pred': a vertex has label, preds, output",
    ),
    '{"label": "a", "preds": "b"}': (2, None, "preds = 'b': it must be a list of labels"),
    '{"label": "a", "output": 1}': (2, None, "output = 1: it must be true or false"),
}
KNOWN = 'is no label: a label is "a", 3, ["a", 3] or {"x": [0, 1]}'
LABEL_FAULTS = {
    "1.5": f"1.5 {KNOWN}",
    "null": f"None {KNOWN}",
    "true": f"True {KNOWN}",
    "[true]": f"True {KNOWN}",
    '[{"x": [0]}]': f"[{{'x': [0]}}] {KNOWN}",
    '{"x": 0}': f"{{'x': 0}} {KNOWN}",
    '{"x": [0], "y": [0]}': f"{{'x': [0], 'y': [0]}} {KNOWN}",
    '{"x y": [0]}': "label ('x y', (0,)): a Vertex is a word such as x and a tuple of integers",
    '{"x": [true]}': "label ('x', (True,)): a Vertex is a word such as x and a tuple of integers",
    '{"x": ["0"]}': "label ('x', ('0',)): a Vertex is a word such as x and a tuple of integers",
}


@pytest.mark.parametrize("line", VERTEX_FAULTS)
def test_a_vertex_that_is_none(line, tmp_path):
    number, column, why = VERTEX_FAULTS[line]
    path = tmp_path / "graph.json"
    path.write_text(lines_of("graph", line, '{"label": "z"}'))
    with pytest.raises(FileError) as caught:
        read_graph(path)
    place = f"{path}, line {number}" + (f", column {column}" if column else "")
    assert str(caught.value) == f"{place}: {why}"
    assert (caught.value.line, caught.value.column, caught.value.why) == (number, column, why)
    assert caught.value.path == str(path)


@pytest.mark.parametrize("text", LABEL_FAULTS)
def test_a_label_that_is_none(text, tmp_path):
    vertex = f'{{"label": {text}}}'
    for kind, line in (
        ("graph", vertex),
        ("graph", f'{{"label": "a", "preds": [{text}]}}'),
        ("schedule", f'{{"load": {text}}}'),
        ("schedule", f'{{"slide": {text}, "from": "a"}}'),
        ("schedule", f'{{"slide": "a", "from": {text}}}'),
    ):
        path = tmp_path / "file.json"
        path.write_text(lines_of(kind, line))
        with pytest.raises(FileError) as caught:
            {"graph": read_graph, "schedule": read_schedule}[kind](path)
        assert str(caught.value) == f"{path}, line 2: {LABEL_FAULTS[text]}"


@pytest.mark.parametrize(
    ("lines", "number", "why"),
    [
        (
            ['{"label": "a"}', '{"label": "b", "preds": ["a"]}', '{"label": "a"}'],
            *(4, "label a is on line 2 already"),
        ),
        (
            ['{"label": "a"}', '{"label": "b", "preds": ["a", "two words"]}'],
            *(3, "predecessor 'two words' of b: no line has that label"),
        ),
        (
            ['{"label": 1}', '{"label": 2, "preds": ["1"]}', '{"label": 3, "preds": [1]}'],
            *(3, "predecessor '1' of 2: no line has that label"),
        ),
        (
            ['{"label": "a", "preds": ["b"]}', '{"label": "b", "preds": ["a"]}'],
            *(None, "cycle: a -> b -> a"),
        ),
        (
            ['{"label": "a"}', '{"label": "b", "preds": ["a", "b"]}', '{"label": "c"}'],
            *(None, "self loop on b; c is isolated: it would be an input and a sink"),
        ),
        (
            ['{"label": "a"}', '{"label": "b", "preds": ["a", "a"]}'],
            *(None, "b has predecessor a more than once"),
        ),
        (
            ['{"label": "a"}', '{"label": 1, "preds": ["a"]}'],
            None,
            "labels of mixed types (1 is int; a is str): all are str, or int, or Vertex, or tuple",
        ),
        (
            ['{"label": "a", "output": true}', '{"label": "b", "preds": ["a"]}'],
            *(None, "outputs that are inputs: a; sinks that are not outputs: b"),
        ),
        ([], None, "the graph has no vertices"),
    ],
)
def test_lines_that_are_no_graph(lines, number, why, tmp_path):
    path = tmp_path / "graph.json"
    path.write_text(lines_of("graph", *lines))
    with pytest.raises(FileError) as caught:
        read_graph(path)
    assert str(caught.value) == f"{path}{f', line {number}' if number else ''}: {why}"
    assert isinstance(caught.value.__cause__, GraphError) == (number is None)


HEAD = '{"format": "pebble graph", "version": 1, "vertices": 3}'
FORM = 'the first line must be {"format": "pebble graph", "version": 1, "vertices": N}'


@pytest.mark.parametrize(
    ("head", "why"),
    [
        ('{"label": "a"}', FORM),
        (HEAD.replace("graph", "grape"), FORM),
        (HEAD.replace('"version": 1, ', ""), FORM),
        (HEAD.replace(', "vertices": 3', ""), FORM),
        (
            HEAD.replace("pebble graph", "pebble schedule"),
            "this is a pebble schedule, not a pebble graph",
        ),
        (HEAD.replace('"pebble graph"', "[]"), FORM),
        (HEAD.replace("1,", "2,"), "version 2: what can be read is version 1"),
        (HEAD.replace("1,", "true,"), "version True: what can be read is version 1"),
        (
            HEAD.replace("1,", '1, "cache": 3,'),
            "unknown key 'cache': a header has format, version, vertices",
        ),
        (HEAD.replace("3", "-1"), "vertices = -1: it must be an integer >= 0"),
        (HEAD.replace("3", "3.0"), "vertices = 3.0: it must be an integer >= 0"),
        (HEAD.replace("3", "true"), "vertices = True: it must be an integer >= 0"),
        ("3", "a line must be one JSON object: {...}"),
    ],
)
def test_a_header_that_is_none(head, why, tmp_path):
    path = tmp_path / "graph.json"
    path.write_text(SUM_TEXT.replace(HEAD, head))
    with pytest.raises(FileError) as caught:
        read_graph(path)
    assert str(caught.value) == f"{path}, line 1: {why}"


def test_a_schedule_is_no_graph_and_a_graph_no_schedule(tmp_path):
    write_graph(SUM, tmp_path / "graph.json")
    write_schedule(SUM_MOVES, tmp_path / "schedule.json")
    with pytest.raises(FileError, match=r"line 1: this is a pebble schedule, not a pebble graph$"):
        read_graph(tmp_path / "schedule.json")
    with pytest.raises(FileError, match=r"line 1: this is a pebble graph, not a pebble schedule$"):
        read_schedule(tmp_path / "graph.json")


@pytest.mark.parametrize("read", [read_graph, read_schedule])
def test_files_that_are_none(read, tmp_path):
    missing = tmp_path / "missing.json"
    with pytest.raises(FileError, match=r"missing.json: can't be read: No such file or directory$"):
        read(missing)
    with pytest.raises(FileError) as caught:
        read(tmp_path)
    assert str(caught.value) == f"{tmp_path}: can't be read: Is a directory"
    assert caught.value.line is None
    missing.write_bytes(b"")
    with pytest.raises(FileError) as caught:
        read(missing)
    assert str(caught.value) == f"{missing}: the file is empty"
    missing.write_bytes(b'{"format": "\xc3\xa9\xff"}')
    with pytest.raises(FileError) as caught:  # the two bytes of e acute are one column
        read(missing)
    assert str(caught.value) == f"{missing}, line 1, column 14: byte 0xff is not UTF-8"


def test_a_path_that_can_not_be_shown_is_quoted(tmp_path):
    with pytest.raises(FileError, match=r"^'.*a\\nb': can't be read: No such file or directory$"):
        read_graph(tmp_path / "a\nb")


@pytest.mark.parametrize(
    ("text", "read"), [(SUM_TEXT, read_graph), (SUM_MOVES_TEXT, read_schedule)]
)
def test_a_file_cut_anywhere_is_refused(text, read, tmp_path):
    """At every byte; only the last line end may be missing."""
    path = tmp_path / "cut.json"
    total = text.count("\n") - 1
    for size in range(len(text) - 1):
        path.write_text(text[:size])
        with pytest.raises(FileError) as caught:
            read(path)
        line = text[:size].count("\n")
        if size == 0:
            assert caught.value.why == "the file is empty"
        elif text[size - 1] == "\n" or text[size] == "\n":
            whole = line if text[size - 1] == "\n" else line + 1
            assert caught.value.line == whole
            what = "vertices" if total == 3 else "moves"
            assert caught.value.why == (
                f"the header says {total} {what}, and there are {whole - 1}: the file is cut short"
            )
        else:
            assert caught.value.line == line + 1
            assert caught.value.column is not None
            assert caught.value.why.endswith(
                "; the last line has no end: the file may be cut short"
            )


def test_more_lines_than_the_header_says(tmp_path):
    path = tmp_path / "file.json"
    path.write_text(SUM_TEXT.replace('"vertices": 3', '"vertices": 2'))
    with pytest.raises(FileError) as caught:
        read_graph(path)
    assert str(caught.value) == f"{path}, line 4: the header says 2 vertices: this is one more"
    path.write_text(SUM_MOVES_TEXT + '\n{"load": "a"}\n')
    with pytest.raises(FileError) as caught:
        read_schedule(path)
    assert str(caught.value) == f"{path}, line 8: the header says 5 moves: this is one more"


@given(st.integers(0, len(SUM_TEXT) - 1), st.binary(max_size=2), st.booleans())
def test_damage_is_a_file_error_or_none(folder, at, bytes_, insert):
    for text, read in ((SUM_TEXT, read_graph), (SUM_MOVES_TEXT, read_schedule)):
        raw = text.encode()
        (folder / "file.json").write_bytes(raw[:at] + bytes_ + raw[at + (not insert) :])
        with suppress(FileError):
            read(folder / "file.json")


# Schedules.


def test_a_schedule_file(tmp_path):
    path = tmp_path / "schedule.json"
    write_schedule(SUM_MOVES, path)
    assert path.read_text() == SUM_MOVES_TEXT
    assert read_schedule(path) == tuple(map(Move.parse, SUM_MOVES))
    write_schedule([], path)
    assert path.read_text() == '{"format": "pebble schedule", "version": 1, "moves": 0}\n'
    assert read_schedule(path) == ()


@st.composite
def moves(draw):
    """Draw any moves, of labels of all kinds at once."""
    label = st.one_of(*LABELS.values())
    plain = st.builds(
        Move, st.sampled_from([op for op in pebble.Op if op != pebble.Op.SLIDE]), label
    )
    slide = st.builds(Move, st.just(pebble.Op.SLIDE), label, label)
    return draw(st.lists(plain | slide, max_size=8))


# Two labels that are equal, and of different types.
@example([Move(pebble.Op.LOAD, ("x", (1,))), Move(pebble.Op.LOAD, Vertex("x", (1,)))])
@example([Move(pebble.Op.LOAD, "1"), Move(pebble.Op.LOAD, 1)])
@given(moves())
def test_moves_round_trip(folder, given):
    path = folder / "schedule.json"
    write_schedule(given, path)
    again = read_schedule(path)
    assert again == tuple(given)
    for mine, theirs in zip(again, given, strict=True):
        assert types(mine.vertex) == types(theirs.vertex)
        assert types(mine.source) == types(theirs.source)
    # as another program reads it
    head, *rest = [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1]]
    assert head["moves"] == len(rest) == len(given)
    for entry, move in zip(rest, given, strict=True):
        assert list(entry) == [str(move.op), *(["from"] if move.op is pebble.Op.SLIDE else [])]


@given(testing.games())
def test_games_replay_from_their_files(folder, played):
    paths = folder / "graph.json", folder / "schedule.json"
    write_graph(played.graph, paths[0])
    write_schedule(played, paths[1])
    cost = replay(played.graph, played.moves, played.cache, played.rules)
    assert replay_file(read_graph(paths[0]), paths[1], played.cache, played.rules) == cost


@given(testing.illegal_games())
def test_the_line_of_the_first_illegal_move(folder, played):
    path = folder / "schedule.json"
    write_schedule(played.moves, path)
    if played.cache < played.graph.least_cache(played.rules):
        with pytest.raises(SizeError, match=r"too small; the least that works is"):
            replay_file(played.graph, path, played.cache, played.rules)
        return
    with pytest.raises(FileError) as caught:
        replay_file(played.graph, path, played.cache, played.rules)
    with pytest.raises(IllegalMove) as plain:
        replay(played.graph, played.moves, played.cache, played.rules)
    error = caught.value
    assert str(error) == f"{path}, line {error.line}: {plain.value}"
    assert isinstance(error.__cause__, IllegalMove)
    assert error.__cause__.breach == played.breach
    # The line is the text of that very move.
    entry = json.loads(path.read_text("utf-8").split("\n")[error.line - 1])
    move = played.moves[played.index]
    assert next(iter(entry)) == str(move.op)
    assert error.__cause__.move == move


def test_what_has_moves(tmp_path):
    path = tmp_path / "schedule.json"
    game = Game(SUM, cache=3)
    for move in SUM_MOVES:
        game.push(move)
    expected = tuple(map(Move.parse, SUM_MOVES))
    for source in (game, list(expected), expected, iter(SUM_MOVES), game.moves):
        write_schedule(source, path)
        assert read_schedule(path) == expected
    found = play(SUM, cache=3)
    write_schedule(found, path)
    assert read_schedule(path) == tuple(found.moves())
    best = pebble.optimum(SUM, cache=3)
    write_schedule(best, path)
    assert read_schedule(path) == best.schedule
    undecided = pebble.Undecided(1, best.cost, best.schedule, 1, "states")
    write_schedule(undecided, path)
    assert read_schedule(path) == best.schedule


def test_a_schedule_of_attention_replays_from_its_files(tmp_path):
    schedule = schedules.flash2(pebble.Attention(n=6, d=2), cache=30)
    write_graph(schedule.problem.graph, tmp_path / "graph.json")
    write_schedule(schedule, tmp_path / "schedule.json")
    graph = read_graph(tmp_path / "graph.json")
    assert read_schedule(tmp_path / "schedule.json") == tuple(schedule.moves())
    assert replay_file(graph, tmp_path / "schedule.json", 30) == schedule.count()


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (5, r"^5 has no moves: give a schedule, a game or a list of moves$"),
        ("load a", r"^'load a' has no moves: "),
        (pebble.Cost(loads=3), r"^Cost\(loads=3, .*\) has no moves: "),
        ([5], r"^5 of type int is no Move$"),
        (["lode a"], r"^'lode a': a move starts with one of load, store"),
        ([Move(pebble.Op.LOAD, 1.5)], r"^label 1\.5 of type float: "),
        ([Move(pebble.Op.LOAD, 1), Move(pebble.Op.LOAD, True)], r"^label True of type bool: "),
        ([Move(pebble.Op.LOAD, Vertex("x y", ()))], r"^label \('x y', \(\)\): a Vertex is"),
        ([Move(pebble.Op.LOAD, Vertex("x", (1.0,)))], r"^label \('x', \(1\.0,\)\): a Vertex is"),
        (["load a", "load 'é\\ud800'"], r"UTF-8 has no code for '\\ud800', half of a character$"),
    ],
)
def test_what_is_no_schedule(source, why, tmp_path):
    with pytest.raises(NotationError, match=why):
        write_schedule(source, tmp_path / "schedule.json")
    assert list(tmp_path.iterdir()) == []


MOVE = (
    'a move is such as {"load": "a"}; its key is one of load, store, compute, delete, slide, erase'
)
SLIDE = 'a slide, and no other move, has a source: {"slide": "c", "from": "a"}'


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"fetch": "a"}', MOVE),
        ('{"load": "a", "store": "a"}', MOVE),
        ("{}", MOVE),
        ('{"from": "a"}', MOVE),
        ('{"slide": "a"}', SLIDE),
        ('{"load": "a", "from": "b"}', SLIDE),
        ('{"load": "a", "from": null}', SLIDE),
        ('"load a"', "a line must be one JSON object: {...}"),
    ],
)
def test_a_move_that_is_none(line, why, tmp_path):
    path = tmp_path / "schedule.json"
    path.write_text(lines_of("schedule", '{"load": "a"}', '{"load": "b"}', line))
    with pytest.raises(FileError) as caught:
        read_schedule(path)
    assert str(caught.value) == f"{path}, line 4: {why}"


# Replay.


def test_replay_of_a_file(tmp_path):
    path = tmp_path / "schedule.json"
    write_schedule(SUM_MOVES, path)
    # 2 loads and 1 store, and all three are red at once
    cost = pebble.Cost(loads=2, stores=1, computes=1, deletes=1, peak=3)
    assert replay_file(SUM, path, cache=3) == cost


def test_replay_names_the_line(tmp_path):
    path = tmp_path / "schedule.json"
    write_schedule(["load a", "compute c"], path)
    with pytest.raises(FileError) as caught:
        replay_file(SUM, path, cache=3)
    assert str(caught.value) == f"{path}, line 3: move 1, compute c: b is not red (1 of 3 red)"
    write_schedule(["load a", "load z"], path)
    with pytest.raises(FileError, match=r", line 3: move 1, load z: the graph has no vertex z$"):
        replay_file(SUM, path, cache=3)


def test_replay_names_outputs_that_are_not_blue(tmp_path):
    path = tmp_path / "schedule.json"
    write_schedule(SUM_MOVES[:3], path)
    with pytest.raises(FileError) as caught:
        replay_file(SUM, path, cache=3)
    assert str(caught.value) == f"{path}: after 3 moves 1 of 1 outputs is not blue: c"
    assert isinstance(caught.value.__cause__, Incomplete)


def test_replay_by_other_rules(tmp_path):
    path = tmp_path / "schedule.json"
    write_schedule(["load a", "load b", "slide c from a", "store c"], path)
    with pytest.raises(FileError, match=r"line 4: .* Rules\(sliding=True\) have it$"):
        replay_file(SUM, path, cache=3)
    assert replay_file(SUM, path, cache=2, rules=Rules(sliding=True)).peak == 2


@pytest.mark.parametrize(
    ("rules", "cache", "why"),
    [
        (
            Rules(),
            2,
            "cache = 2 is too small; the least that works is 3, for c and its 2 predecessors",
        ),
        (
            Rules(sliding=True),
            1,
            "cache = 1 is too small; the least that works is 2, for c and its 2 predecessors",
        ),
        (Rules(weights={"b": 2}), 3, "cache = 3 is too small; the least that works is 4"),
        (Rules(), 0, "cache = 0: the words of fast memory must be a positive integer"),
    ],
)
def test_a_cache_that_is_too_small_is_named_before_any_move(rules, cache, why, tmp_path):
    with pytest.raises(SizeError) as caught:
        replay_file(SUM, tmp_path / "missing.json", cache, rules)
    assert str(caught.value) == why


def test_one_predecessor_is_one(tmp_path):
    with pytest.raises(SizeError, match=r"the least that works is 2, for 1 and its 1 predecessor$"):
        replay_file(Graph([(), (0,)]), tmp_path / "missing.json", 1)


# Nothing half-written.


class Failing:
    """A graph of which the last vertex can't be asked about."""

    def __init__(self, error):
        self.error = error

    def __getattr__(self, name):
        return getattr(SUM, name)

    def __len__(self):
        return len(SUM)

    def predecessors(self, v):
        if v == 2:
            raise self.error
        return SUM.predecessors(v)


def half_full(_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


WRITERS = [write_graph, write_dot]


@pytest.mark.parametrize("old", [None, "what was there\n"])
@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_what_fails_midway_leaves_nothing(write, error, old, tmp_path):
    path = tmp_path / "file"
    if old is not None:
        path.write_text(old)
    with pytest.raises(error):
        write(Failing(error), path)
    assert list(tmp_path.iterdir()) == ([path] if old else [])
    assert old is None or path.read_text() == old


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_what_was_there(step, tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_text("what was there\n")
    monkeypatch.setattr(os, step, lambda *_: half_full(_))
    for write, what in ((write_graph, SUM), (write_dot, SUM), (write_schedule, SUM_MOVES)):
        with pytest.raises(FileError) as caught:
            write(what, path)
        assert str(caught.value) == f"{path}: can't be written: No space left on device"
        assert [child.name for child in tmp_path.iterdir()] == ["file"]
        assert path.read_text() == "what was there\n"


def test_the_file_is_whole_before_it_takes_the_place(tmp_path, monkeypatch):
    path, real, seen = tmp_path / "file", os.replace, []
    path.write_text("what was there\n")

    def replace(part, target):
        with open(part) as file:
            seen.append((file.read(), path.read_text()))
        real(part, target)

    monkeypatch.setattr(os, "replace", replace)
    write_graph(SUM, path)
    assert seen == [(SUM_TEXT, "what was there\n")]
    assert [child.name for child in tmp_path.iterdir()] == ["file"]


def test_a_bad_move_midway_leaves_what_was_there(tmp_path):
    path = tmp_path / "file"
    path.write_text("what was there\n")
    with pytest.raises(NotationError):
        write_schedule([*SUM_MOVES, Move(pebble.Op.LOAD, 1.5)], path)
    assert path.read_text() == "what was there\n"
    assert list(tmp_path.iterdir()) == [path]


def test_places_that_are_none(tmp_path):
    (tmp_path / "file").write_text("")
    for path, why in (
        (tmp_path / "no" / "graph.json", "No such file or directory"),
        (tmp_path / "file" / "graph.json", "Not a directory"),
        (tmp_path, "it is no regular file"),
    ):
        with pytest.raises(FileError) as caught:
            write_graph(SUM, path)
        assert str(caught.value) == f"{path}: can't be written: {why}"
    assert [child.name for child in tmp_path.iterdir()] == ["file"]


def test_a_pipe_is_not_replaced(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(FileError, match=r"can't be written: it is no regular file$"):
        write_graph(SUM, path)
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "far" / "graph.json")
    for _ in range(2):
        write_graph(SUM, tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "far" / "graph.json").read_text() == SUM_TEXT


def test_permissions_are_those_of_any_file(tmp_path):
    plain, path = tmp_path / "plain", tmp_path / "graph.json"
    plain.write_text("")
    write_graph(SUM, path)
    assert path.stat().st_mode == plain.stat().st_mode
    path.chmod(0o640)
    write_graph(SUM, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


# DOT.


def parsed_dot(text):
    """Read what `to_dot` writes by the lexical rules of DOT; give labels, attributes and edges.

    A quoted string ends at a quote that no backslash stands before; a pair of backslashes stands
    for itself. In a label a backslash begins an escape, and an entity is one character.
    """
    first, *body, last = text.splitlines()
    assert (first, last) == ("digraph {", "}")
    labels, attributes, edges = {}, {}, []
    for line in body:
        if edge := re.fullmatch(r"  (\d+) -> (\d+);", line):
            edges.append((int(edge[1]), int(edge[2])))
            continue
        node = re.fullmatch(r'  (\d+) \[label="((?:\\.|[^"\\])*)"(.*)\];', line)
        escapes = set(re.findall(r"\\(.)", node[2]))
        assert escapes <= {"\\", '"'}
        label = re.sub(r"\\(.)", r"\1", node[2])
        v = int(node[1])
        labels[v], attributes[v] = html.unescape(label), node[3]
    return labels, attributes, edges


@given(graphs())
def test_dot(graph):
    text = to_dot(graph)
    labels, attributes, edges = parsed_dot(text)
    vertices = range(len(graph))
    assert list(labels) == list(vertices)
    assert list(labels.values()) == [notation(graph.label(v)) for v in vertices]
    assert edges == [(u, v) for v in vertices for u in graph.predecessors(v)]
    for v in vertices:
        assert ("shape=box" in attributes[v]) == graph.is_input(v)
        assert ("peripheries=2" in attributes[v]) == graph.is_output(v)


def test_dot_of_labels_that_need_escapes():
    labels = ['say "hi"', "a\\", "&lt;", "a\nb", "\\N"]
    lines = to_dot(Graph([(), (0,), (0,), (0,), (0,)], labels)).splitlines()
    # The notation is Python's, so a backslash and a line end are two characters of it already;
    # each backslash of it is doubled for DOT.
    assert lines[1:6] == [
        r"""  0 [label="'say \"hi\"'", shape=box];""",
        r"""  1 [label="'a\\\\'", peripheries=2];""",
        r"""  2 [label="'&amp;lt;'", peripheries=2];""",
        r"""  3 [label="'a\\nb'", peripheries=2];""",
        r"""  4 [label="'\\\\N'", peripheries=2];""",
    ]


def test_dot_of_attention_in_a_file(tmp_path):
    graph = pebble.Attention(n=2, d=2).graph
    write_dot(graph, tmp_path / "graph.dot")
    text = (tmp_path / "graph.dot").read_text()
    assert text == to_dot(graph) == to_dot(pebble.explicit(graph))
    assert '  0 [label="Q[0,0]", shape=box];\n' in text


# networkx.


@given(testing.games())
def test_schedules_on_networkx(played):
    network = schedule_to_networkx(played.graph, played)
    assert schedule_from_networkx(network) == played.moves
    assert Graph.from_networkx(network) == played.graph
    # by vertex, the same entries: each move once, in order
    for label, entries in network.nodes(data="moves"):
        assert entries == sorted(entries, key=lambda entry: entry[0])
        assert all(played.moves[at].vertex == label for at, *_ in entries)


def test_the_moves_of_a_node():
    moves = ["load a", "load b", "slide c from a", "store c"]
    network = schedule_to_networkx(SUM, moves)
    assert network.nodes["a"] == {"moves": [(0, "load")]}
    assert network.nodes["c"] == {"output": True, "moves": [(2, "slide", "a"), (3, "store")]}
    assert Graph.from_networkx(network) == SUM


def test_a_network_that_went_through_json():
    """Its pairs come back as lists."""
    network = schedule_to_networkx(SUM, SUM_MOVES)
    for label in network:
        network.nodes[label]["moves"] = json.loads(json.dumps(network.nodes[label]["moves"]))
    assert schedule_from_networkx(network) == tuple(map(Move.parse, SUM_MOVES))


def test_a_network_without_moves():
    assert schedule_from_networkx(SUM.to_networkx()) == ()


def test_moves_of_no_vertex_of_a_network():
    with pytest.raises(ProgramError, match=r"^move 1, load z: the graph has no vertex z$"):
        schedule_to_networkx(SUM, ["load a", "load z"])
    with pytest.raises(ProgramError, match=r"^move 0, slide c from z: the graph has no vertex z$"):
        schedule_to_networkx(SUM, ["slide c from z"])


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        ([(0, "load"), (2, "store")], r"^2 moves, and none is at place 1: places are 0, 1, 2, "),
        ([(0, "load"), (0, "store")], r"^two moves are at place 0: load a and store a$"),
        ([(-1, "load")], r"^1 moves, and none is at place 0"),
        (
            [(True, "load")],
            r"^moves of 'a': \(True, 'load'\) is none; write \(0, 'load'\), or \(0, ",
        ),
        ([(0, "lode")], r"^moves of 'a': \(0, 'lode'\) is none"),
        ([(0, "slide")], r"^moves of 'a': \(0, 'slide'\) is none"),
        ([(0, "load", "b")], r"^moves of 'a': \(0, 'load', 'b'\) is none"),
        ([(0, [])], r"^moves of 'a': \(0, \[\]\) is none"),
        ([0], r"^moves of 'a': 0 is none"),
        ([()], r"^moves of 'a': \(\) is none"),
    ],
)
def test_a_network_whose_moves_are_none(entries, why):
    network = SUM.to_networkx()
    network.nodes["a"]["moves"] = entries
    with pytest.raises(ProgramError, match=why):
        schedule_from_networkx(network)


def test_the_import_is_light():
    code = "import sys, pebble.interchange, pebble.replay_command; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert {"numba", "scipy", "networkx", "matplotlib"}.isdisjoint(run.stdout.split())
