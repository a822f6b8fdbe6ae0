"""The command line as a shell sees it."""

import json
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from pebble.__main__ import main

ROOT = Path(__file__).parents[1]
MAIN_JOB = "compare --n 1024 --d 64 --cache 49152 --heads 16 --batch 64 --dtype fp16".split()


def shell(*arguments, **options):
    command = [sys.executable, "-m", "pebble", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, **options)


def in_terminal(command, stream, columns, **env):
    """Run a command with one stream on a terminal; give its exit code and what came there."""
    parent, child = pty.openpty()
    termios.tcsetwinsize(child, (24, columns))
    others = dict.fromkeys({"stdout", "stderr"} - {stream}, subprocess.DEVNULL)
    env = {**os.environ, **env}
    running = subprocess.Popen(command, cwd=ROOT, env=env, **{stream: child}, **others)
    os.close(child)
    text = b""
    while True:
        try:
            part = os.read(parent, 65536)
        except OSError:  # the end, on Linux
            part = b""
        if not part:
            os.close(parent)
            return running.wait(), text.decode().replace("\r\n", "\n")
        text += part


def test_main_job():
    done = shell(*MAIN_JOB)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "flash2, best" in done.stdout
    assert "536,870,912" in done.stdout  # 524288 words a head, 1024 heads
    assert "lower bound: " in done.stdout


def test_json(capsys):
    assert main([*MAIN_JOB, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schedules"][0]["io_words"] == 536870912
    assert told["problem"]["n"] == 1024


def test_verify_replays(capsys, monkeypatch):
    calls = []
    real = __import__("pebble").Schedule.replay
    monkeypatch.setattr(
        "pebble.Schedule.replay", lambda self, **k: calls.append(self.name) or real(self, **k)
    )
    sizes = ["--n", "10", "--d", "2", "--cache", "40"]
    assert main(["compare", *sizes, "--json"]) == 0
    counted = json.loads(capsys.readouterr().out)
    assert not calls
    assert main(["compare", *sizes, "--json", "--verify"]) == 0
    replayed = json.loads(capsys.readouterr().out)
    assert counted == replayed
    assert len(calls) == len(counted["schedules"])


def test_verify_is_silent_where_stderr_is_no_terminal():
    done = shell("compare", "--n", "160", "--d", "32", "--cache", "4096", "--verify")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "flash2, best" in done.stdout


def test_verify_shows_a_bar_in_a_terminal_when_it_takes_long():
    """The bar's delay is cut to nothing, so that the test need not take seconds."""
    code = (
        "import functools, tqdm; import pebble.__main__ as m; m.BAR_DELAY = 0\n"
        "tqdm.tqdm = functools.partial(tqdm.tqdm, mininterval=0, miniters=1)\n"
        "m.main('compare --n 160 --d 32 --cache 4096 --verify'.split())"
    )
    code, text = in_terminal([sys.executable, "-c", code], "stderr", 100)
    assert code == 0
    assert "moves/s" in text


def test_verify_leaves_nothing_in_a_terminal_when_it_is_quick():
    command = [sys.executable, "-m", "pebble", *"compare --n 10 --d 2 --cache 40 --verify".split()]
    assert in_terminal(command, "stderr", 100) == (0, "")


def test_no_recompute_raises_the_bound(capsys):
    sizes = ["--n", "64", "--d", "16", "--cache", "512", "--json"]
    main(["compare", *sizes])
    allowed = json.loads(capsys.readouterr().out)
    main(["compare", *sizes, "--no-recompute"])
    once = json.loads(capsys.readouterr().out)
    assert once["recompute"] is False
    assert once["bound"]["words"] > allowed["bound"]["words"]


def test_sweep_and_bounds(capsys):
    assert main("sweep --n 64 --d 8 --caches 32 1024".split()) == 0
    assert "small_cache" in capsys.readouterr().out
    assert main("sweep --n 64 --d 8 --caches 32 1024 --json".split()) == 0
    assert [p["cache"] for p in json.loads(capsys.readouterr().out)["points"]] == [32, 1024]
    assert main("bounds --n 64 --d 8 --cache 256".split()) == 0
    assert "assumes" in capsys.readouterr().out
    assert main("bounds --n 64 --d 8 --cache 256 --json".split()) == 0
    words = [b["words"] for b in json.loads(capsys.readouterr().out)["bounds"]]
    assert words == sorted(words, reverse=True)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("compare --n 0 --d 64 --cache 100", "n = 0: the number of queries must be a positive"),
        ("compare --n 8 --d 2 --cache -1", "cache = -1: "),
        ("compare --n 8 --d 2 --cache 3", "cache = 3 is too small; the least that works is"),
        ("compare --n eight --d 2 --cache 3", "invalid int value: 'eight'"),
        ("compare --n 8 --d 2", "the following arguments are required: --cache"),
        ("compare --n 8 --d 2 --cache 64 --dtype int4", "invalid choice: 'int4'"),
        ("compare --n 8 --d 2 --cache 64 --softmax soft", "invalid choice: 'soft'"),
        ("compare --n 8 --d 2 --cache 64 --heads 0", "heads = 0: "),
        ("sweep --n 8 --d 2 --caches 2", "cache = 2 is too small"),
        ("bounds --n 8 --d 2 --cache 0", "cache = 0: "),
        ("guess", "invalid choice: 'guess'"),
        ("", "the following arguments are required: COMMAND"),
    ],
)
def test_errors_are_one_line_on_stderr(arguments, why, capsys):
    assert main(arguments.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("pebble: ")
    assert why in err


@pytest.mark.parametrize("command", ["compare", "sweep", "bounds"])
def test_help_shows_an_example(command, capsys):
    with pytest.raises(SystemExit) as done:
        main([command, "--help"])
    assert done.value.code == 0
    assert f"python -m pebble {command}" in capsys.readouterr().out


def test_a_pipe_that_closes_early_is_no_error():
    command = f"{sys.executable} -m pebble sweep --n 64 --d 8 | head -n 1"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1


def test_a_narrow_terminal_gets_one_block_a_schedule():
    code, text = in_terminal([sys.executable, "-m", "pebble", *MAIN_JOB], "stdout", 60)
    assert code == 0
    lines = text.splitlines()
    block = lines.index("schedule     flash2, best")
    assert lines[block + 4] == "I/O words    536,870,912"


def test_the_readme_shows_what_the_main_job_prints():
    shown = (ROOT / "README.md").read_text().split("```text\n")[1].split("\n```")[0]
    assert shell(*MAIN_JOB).stdout.rstrip() == shown
