"""The command line as a shell sees it."""

import json
import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest

import pebble
from pebble.__main__ import _load_kernels, main

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
    real = pebble.Schedule.replay
    monkeypatch.setattr(
        "pebble.Schedule.replay", lambda self, *a: calls.append((self.name, a[0])) or real(self, *a)
    )
    sizes = ["--n", "10", "--d", "2", "--cache", "40"]
    assert main(["compare", *sizes, "--json"]) == 0
    counted = json.loads(capsys.readouterr().out)
    assert not calls
    assert main(["compare", *sizes, "--json", "--verify"]) == 0
    replayed = json.loads(capsys.readouterr().out)
    assert counted == replayed
    assert calls == [(name, pebble.HONG_KUNG) for name, _ in calls]
    assert len(calls) == len(counted["schedules"])
    calls.clear()
    assert main(["compare", *sizes, "--json", "--verify", "--no-recompute"]) == 0
    assert calls
    assert all(rules == pebble.Rules(recompute=False) for _, rules in calls)


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


def test_the_kernels_are_ready_before_a_bar_runs(monkeypatch):
    """Compiling takes longer than the bar's delay: whatever it is for, it comes first."""
    from pebble import expander, referee

    order = []

    class Bar:
        n = 0

        def __init__(self, **_):
            order.append("bar")

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def update(self, moves):
            self.n += moves

    for module, name in ((expander, "_walk"), (referee, "run_stream")):
        kernel = getattr(module, name)
        told = lambda *a, k=kernel, n=name: order.append(n) or k(*a)
        monkeypatch.setattr(module, name, told)
        if name == "run_stream":
            monkeypatch.setattr("pebble.playback.run_stream", told)
    monkeypatch.setattr("tqdm.tqdm", Bar)
    _load_kernels.cache_clear()
    assert main("compare --n 4 --d 2 --cache 40 --verify".split()) == 0
    assert {"_walk", "run_stream"} <= set(order[: order.index("bar")])


@pytest.mark.parametrize("code", ["_walk", "run_stream"])
def test_the_kernels_have_one_signature(code):
    """So the least schedule compiles all that any other one needs."""
    from pebble import expander, referee

    kernel = {"_walk": expander._walk, "run_stream": referee.run_stream}[code]
    if not hasattr(kernel, "signatures"):
        pytest.skip("the compiler is off")
    _load_kernels.cache_clear()
    _load_kernels()
    before = list(kernel.signatures)
    for direction in ("forward", "double_backward"):
        problem = pebble.Attention(n=7, d=3, keys=5, value_dim=2, direction=direction)
        pebble.best(problem, 100).replay(pebble.Rules(weights={"Q": 2}))
    pebble.best(pebble.AttentionGradient(n=5, d=2), 60).replay()
    assert kernel.signatures == before


def test_no_recompute_raises_the_bound(capsys):
    sizes = ["--n", "64", "--d", "16", "--cache", "512", "--json"]
    main(["compare", *sizes])
    allowed = json.loads(capsys.readouterr().out)
    main(["compare", *sizes, "--no-recompute"])
    once = json.loads(capsys.readouterr().out)
    assert once["recompute"] is False
    assert once["bound"]["words"] > allowed["bound"]["words"]


DIRECTIONS = {
    "forward": ("forward", {"keys": 5, "value_dim": 3, "softmax": "online", "logsumexp": True}),
    "backward": ("backward", {"keys": 5, "value_dim": 3}),
    "saved": ("backward", {"keys": 5, "value_dim": 3, "saved_weights": True}),
    "double": ("double_backward", {"keys": 5, "value_dim": 3}),
    "gradient": ("gradient", {"given_h": True}),
}


@pytest.mark.parametrize("command", ["compare", "sweep", "bounds"])
@pytest.mark.parametrize("case", DIRECTIONS)
def test_every_direction_and_its_options(command, case, capsys):
    direction, options = DIRECTIONS[case]
    flags = []
    for name, value in options.items():
        flags += ["--" + name.replace("_", "-"), *([] if value is True else [str(value)])]
    if direction == "gradient":
        problem = pebble.AttentionGradient(6, 2, **options)
    else:
        problem = pebble.Attention(6, 2, direction=direction, **options)
    caches = ["--caches" if command == "sweep" else "--cache", "60"]
    line = [command, "--n", "6", "--d", "2", "--direction", direction, *flags, *caches]
    assert main(line) == 0
    assert problem.title in capsys.readouterr().out
    assert main([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["problem"] == problem.to_dict()


@pytest.mark.parametrize("command", ["compare", "sweep", "bounds"])
@pytest.mark.parametrize(
    ("direction", "option", "fitting"),
    [
        ("gradient", "--keys 3", "forward, backward or double_backward"),
        ("gradient", "--value-dim 3", "forward, backward or double_backward"),
        ("gradient", "--softmax online", "forward"),
        ("gradient", "--logsumexp", "forward"),
        ("gradient", "--saved-weights", "backward"),
        ("backward", "--softmax plain", "forward"),
        ("backward", "--logsumexp", "forward"),
        ("backward", "--given-h", "gradient"),
        ("double_backward", "--softmax online", "forward"),
        ("double_backward", "--saved-weights", "backward"),
        ("double_backward", "--given-h", "gradient"),
        ("forward", "--saved-weights", "backward"),
        ("forward", "--given-h", "gradient"),
    ],
)
def test_an_option_of_another_direction_is_an_error(command, direction, option, fitting, capsys):
    caches = ["--caches" if command == "sweep" else "--cache", "100"]
    line = [command, "--n", "6", "--d", "2", "--direction", direction, *option.split(), *caches]
    assert main(line) == 2
    out, err = capsys.readouterr()
    assert out == ""
    name = option.split()[0]
    assert err == f"pebble: {name} is for --direction {fitting}, not {direction}\n"


def test_verify_replays_the_other_directions(capsys):
    """flash2_backward and two_pass_backward among them: what is counted is what is replayed."""
    for direction in ("backward", "double_backward", "gradient"):
        line = ["compare", *"--n 5 --d 2 --cache 60 --json --direction".split(), direction]
        assert main(line) == 0
        counted = json.loads(capsys.readouterr().out)
        assert main([*line, "--verify"]) == 0
        assert json.loads(capsys.readouterr().out) == counted


def test_bounds_say_of_which_game_they_are(capsys):
    line = "bounds --n 64 --d 8 --cache 256 --json".split()
    main(line)
    assert json.loads(capsys.readouterr().out)["recompute"] is True
    main([*line, "--no-recompute"])
    assert json.loads(capsys.readouterr().out)["recompute"] is False


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
        ("sweep --n 8 --d 2 --caches 64 0", "cache = 0: "),
        ("compare --n 8 --d 2 --cache 64 --direction up", "invalid choice: 'up'"),
        ("compare --n 8 --d 2 --cache 64 --keys 0", "keys = 0: the number of keys must be"),
        (
            "compare --n 8 --d 2 --cache 64 --direction double_backward --no-recompute",
            "no schedule is left: flashbob, best blocks: it computes some vertices more than once",
        ),
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


def test_a_sweep_in_a_narrow_terminal_is_panels_that_fit():
    command = "sweep --n 64 --d 8 --direction backward --caches 16 64 256".split()
    code, text = in_terminal([sys.executable, "-m", "pebble", *command], "stdout", 80)
    assert code == 0
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    heads = [line for line in lines if line.split()[:1] == ["M"]]
    assert len(heads) > 1
    assert all(sum(line.split()[:1] == [m] for line in lines) == len(heads) for m in ("64", "256"))


@pytest.mark.parametrize("direction", ["forward", "backward", "double_backward", "gradient"])
def test_a_comparison_in_a_terminal_fits(direction):
    command = f"compare --n 64 --d 8 --cache 256 --direction {direction}".split()
    code, text = in_terminal([sys.executable, "-m", "pebble", *command], "stdout", 80)
    assert code == 0
    assert max(map(len, text.splitlines())) <= 80


def test_the_readme_shows_what_the_main_job_prints():
    shown = (ROOT / "README.md").read_text().split("```text\n")[1].split("\n```")[0]
    assert shell(*MAIN_JOB).stdout.rstrip() == shown
