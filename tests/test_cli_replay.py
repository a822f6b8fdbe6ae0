"""The command `replay` as a shell sees it."""

import json
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest

import pebble
import schedules
from pebble.__main__ import main
from pebble.interchange import write_graph, write_schedule

ROOT = Path(__file__).parents[1]
MOVES = ("load a", "load b", "compute c", "store c", "delete c")


@pytest.fixture
def files(tmp_path):
    """Write a graph and its schedule; give their paths as texts."""
    graph = pebble.Graph([(), (), (0, 1)], labels=["a", "b", "c"])
    paths = tmp_path / "graph.json", tmp_path / "schedule.json"
    write_graph(graph, paths[0])
    write_schedule(MOVES, paths[1])
    return list(map(str, paths))


def test_a_legal_schedule(files, capsys):
    assert main(["replay", *files, "--cache", "3"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines() == [
        "replay, 3 vertices, cache M = 3 words",
        "  I/O words    loads    stores    computes    deletes    peak",
        "-----------  -------  --------  ----------  ---------  ------",
        "          3        2         1           1          1       3",
        "every move is legal, and every output is stored",
    ]


def test_json(files, capsys):
    assert main(["replay", *files, "--cache", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "graph": {"vertices": 3, "inputs": 2, "outputs": 1, "edges": 2},
        "cache": 4,
        "recompute": True,
        "sliding": False,
        "redundant": False,
        "erasing": False,
        "io_words": 3,
        "loads": 2,
        "stores": 1,
        "computes": 1,
        "deletes": 1,
        "peak": 3,
    }


def test_attention_from_a_shell(tmp_path):
    schedule = schedules.flash2(pebble.Attention(n=6, d=2), cache=30)
    write_graph(schedule.problem.graph, tmp_path / "graph.json")
    write_schedule(schedule, tmp_path / "schedule.json")
    command = f"{sys.executable} -m pebble replay graph.json schedule.json --cache 30 --json"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command.split(), cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["io_words"] == schedule.count().io


@pytest.mark.parametrize(
    ("moves", "option", "breach", "cost"),
    [
        (
            ["load a", "load b", "compute c", "delete c", "compute c", "store c"],
            "--no-recompute",
            "line 6: move 4, compute c: c was computed before; "
            "Rules(recompute=True) let it be computed again",
            None,
        ),
        (
            ["load a", "load b", "slide c from a", "store c"],
            "--sliding",
            "line 4: move 2, slide c from a: these rules have no such move; "
            "Rules(sliding=True) have it",
            2,
        ),
        (
            ["load a", "load a", *MOVES[1:]],
            "--redundant",
            "line 3: move 1, load a: a is red already; "
            "Rules(redundant=True) let it be loaded again",
            3,
        ),
        (
            ["load a", "erase a", *MOVES[1:]],
            "--erasing",
            "line 3: move 1, erase a: these rules have no such move; Rules(erasing=True) have it",
            3,
        ),
    ],
)
def test_the_rules(moves, option, breach, cost, files, capsys):
    """Each option changes what is legal: --no-recompute forbids, the others allow."""
    write_schedule(moves, files[1])
    line = ["replay", *files, "--cache", "3"]
    forbids = option == "--no-recompute"
    assert main([*line, option] if forbids else line) == 2
    assert capsys.readouterr() == ("", f"pebble: {files[1]}, {breach}\n")
    line = line if forbids else [*line, option]
    assert main([*line, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["peak"] == (cost or 3)
    assert told["recompute"] is True
    for name in ("sliding", "redundant", "erasing"):
        assert told[name] is (f"--{name}" == option)


def test_the_first_illegal_move_with_its_line(files, capsys):
    write_schedule(["load a", "compute c", "store b"], files[1])
    assert main(["replay", *files, "--cache", "3"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (f"pebble: {files[1]}, line 3: move 1, compute c: b is not red (1 of 3 red)\n")


def test_a_game_that_is_not_complete(files, capsys):
    write_schedule(MOVES[:3], files[1])
    assert main(["replay", *files, "--cache", "3"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"pebble: {files[1]}: after 3 moves 1 of 1 outputs is not blue: c\n"


@pytest.mark.parametrize(
    ("cache", "option", "why"),
    [
        ("2", "--json", "cache = 2 is too small; the least that works is 3, for c and its 2 "),
        ("1", "--sliding", "cache = 1 is too small; the least that works is 2, for c and its 2 "),
        ("0", "--json", "cache = 0: the words of fast memory must be a positive integer"),
        ("many", "--json", "invalid int value: 'many'"),
    ],
)
def test_caches_that_are_none(cache, option, why, files, capsys):
    assert main(["replay", *files, "--cache", cache, option]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("pebble: ")
    assert err.count("\n") == 1
    assert why in err


@pytest.mark.parametrize(
    ("which", "text", "why"),
    [
        (0, None, ": can't be read: No such file or directory"),
        (1, None, ": can't be read: No such file or directory"),
        (0, "", ": the file is empty"),
        (1, "{", ", line 1, column 2: not JSON: expecting property name enclosed in double quotes"),
        (1, '{"format": "pebble graph"}\n', ", line 1: this is a pebble graph, not a pebble sched"),
        (
            0,
            '{"format": "pebble graph", "version": 1, "vertices": 2}\n'
            '{"label": "a", "preds": ["b"]}\n{"label": "b", "preds": ["a"]}\n',
            ": cycle: a -> b -> a\n",
        ),
        (
            0,
            '{"format": "pebble graph", "version": 1, "vertices": 2}\n{"label": "a"}\n',
            ", line 2: the header says 2 vertices, and there are 1: the file is cut short\n",
        ),
    ],
)
def test_bad_files_are_one_line(which, text, why, files, capsys):
    path = Path(files[which])
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    assert main(["replay", *files, "--cache", "3"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"pebble: {path}{why}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("--cache 3", "the following arguments are required: GRAPH, SCHEDULE"),
        ("graph.json schedule.json", "the following arguments are required: --cache"),
        ("graph.json schedule.json --cache 3 --heads 8", "unrecognized arguments: --heads 8"),
    ],
)
def test_arguments_that_are_wrong(arguments, why, capsys):
    assert main(["replay", *arguments.split()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"pebble: {why}")
    assert err.count("\n") == 1


def test_help_shows_an_example(capsys):
    with pytest.raises(SystemExit) as done:
        main(["replay", "--help"])
    assert done.value.code == 0
    assert "python -m pebble replay graph.json schedule.json" in capsys.readouterr().out


def test_a_pipe_that_is_closed_is_no_error(files):
    command = f"{sys.executable} -m pebble replay {' '.join(files)} --cache 3 | true"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True)
    assert done.stderr == ""


def test_a_schedule_from_a_pipe(files):
    text = Path(files[1]).read_text()
    command = [sys.executable, "-m", "pebble", "replay", files[0], "/dev/stdin", "--cache", "3"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, input=text)
    assert (done.returncode, done.stderr) == (0, "")
    assert "every move is legal" in done.stdout


def test_a_narrow_terminal_gets_lines_that_fit(files):
    command = [sys.executable, "-m", "pebble", "replay", *files, "--cache", "3"]
    parent, child = pty.openpty()
    termios.tcsetwinsize(child, (24, 40))
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    done = subprocess.run(command, cwd=ROOT, env=env, stdout=child)
    os.close(child)
    text = os.read(parent, 65536).decode()
    os.close(parent)
    assert done.returncode == 0
    assert max(map(len, text.splitlines())) <= 40
    assert "peak       3" in text.splitlines()
