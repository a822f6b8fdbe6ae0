"""The command line: ``python -m pebble compare --n 1024 --d 64 --cache 49152``."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NoReturn

import schedules  # noqa: F401  (registers its generators)
from pebble import bounds, replay_command
from pebble.attention import DIRECTIONS, EMPTY_ROWS, SOFTMAXES, Attention
from pebble.compare import WORD_BYTES, Comparison, compare, counted
from pebble.cost import Cost
from pebble.errors import PebbleError, ProblemError
from pebble.gradient import AttentionGradient
from pebble.masks.notation import KNOWN, parse_mask
from pebble.problem import Problem
from pebble.registry import best
from pebble.rules import Rules
from pebble.schedule import Schedule
from pebble.sweep import Sweep, sweep
from pebble.table import Table

BAR_DELAY = 1  # seconds before a progress bar shows

GRADIENT = "gradient"  # a direction of the command line alone: it is a problem of its own
# Options of a problem, under the names of its parameters, and the directions that each is for.
OPTIONS = {
    "keys": DIRECTIONS,
    "value_dim": DIRECTIONS,
    "softmax": ("forward",),
    "logsumexp": ("forward",),
    "saved_weights": ("backward",),
    "given_h": (GRADIENT,),
    "mask": ("forward", "backward"),
    "empty_rows": ("forward", "backward"),
}

COMPARE_EXAMPLE = """example (GPT-2 medium on a GPU with 96 KiB of shared memory):
  python -m pebble compare --n 1024 --d 64 --cache 49152 --heads 16 --batch 64 --dtype fp16"""
SWEEP_EXAMPLE = """example (how far the cheapest schedule is from the bound, over caches):
  python -m pebble sweep --n 65536 --d 64"""
BOUNDS_EXAMPLE = """example:
  python -m pebble bounds --n 1024 --d 64 --cache 16384"""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and whose options are not abbreviated."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options | {"allow_abbrev": False})

    def error(self, message: str) -> NoReturn:
        """Write the error and exit with 2."""
        raise PebbleError(f"{message} (see {self.prog} --help)")


def parser() -> Parser:
    """Give the parser of the command line."""
    top = Parser(prog="pebble", description="Red-blue pebble games on attention, counted exactly.")
    commands = top.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=Parser
    )

    def command(
        name: str,
        what: str,
        example: str,
        add_options: Callable[[argparse.ArgumentParser], None] = _problem_options,
    ) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name,
            help=what,
            description=what,
            epilog=example,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        add_options(sub)
        sub.add_argument("--json", action="store_true", help="print JSON")
        return sub

    sub = command("compare", "all schedules beside the best lower bound", COMPARE_EXAMPLE)
    sub.add_argument("--cache", type=int, required=True, help="M, in words")
    sub.add_argument("--heads", type=int, default=1, help="heads (default: 1)")
    sub.add_argument("--batch", type=int, default=1, help="batch size (default: 1)")
    sub.add_argument("--dtype", choices=WORD_BYTES, default="fp16", help="a word (default: fp16)")
    sub.add_argument("--verify", action="store_true", help="replay every schedule move by move")
    _once(sub)
    sub.set_defaults(run=run_compare)

    sub = command(
        "sweep", "the cheapest schedule over the best bound, cache by cache", SWEEP_EXAMPLE
    )
    sub.add_argument(
        "--caches", type=int, nargs="+", metavar="M", help="words (default: 64 to 2^20, by sqrt(2))"
    )
    sub.set_defaults(run=run_sweep)

    sub = command("bounds", "all lower bounds that apply", BOUNDS_EXAMPLE)
    sub.add_argument("--cache", type=int, required=True, help="M, in words")
    _once(sub)
    sub.set_defaults(run=run_bounds)

    sub = command(
        "replay",
        "referee a schedule from a file: its cost, or its first illegal move",
        replay_command.EXAMPLE,
        replay_command.add_options,
    )
    sub.set_defaults(run=replay_command.run_replay)
    return top


def _once(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--no-recompute",
        action="store_true",
        help="the game in which each vertex is computed once: its bounds and its schedules",
    )


def _problem_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--n", type=int, required=True, help="queries")
    sub.add_argument("--d", type=int, required=True, help="dimension of Q and K")
    sub.add_argument(
        "--direction",
        choices=(*DIRECTIONS, GRADIENT),
        default="forward",
        help="what is computed; gradient is the backward pass in the theory form, "
        "with n rows of d columns (default: forward)",
    )

    def option(name: str, what: str, **how: Any) -> None:
        # Without a default, so that what is not given is not in the arguments.
        sub.add_argument(name, default=argparse.SUPPRESS, help=what, **how)

    option("--keys", "keys (default: n)", type=int)
    option("--value-dim", "dimension of V (default: d)", type=int)
    option("--softmax", "forward: default plain", choices=SOFTMAXES)
    option("--logsumexp", "forward: the logsumexp is an output too", action="store_true")
    option("--saved-weights", "backward: the weights are an input", action="store_true")
    option("--mask", f"forward and backward: patterns joined by & and |: {KNOWN}")
    option("--empty-rows", "queries that the mask leaves no key: default error", choices=EMPTY_ROWS)
    option("--given-h", "gradient: h is an input, not A3 and Y", action="store_true")


def _problem(args: argparse.Namespace) -> Problem:
    given = {name: value for name, value in vars(args).items() if name in OPTIONS}
    for name in given:
        if args.direction not in OPTIONS[name]:
            *others, last = OPTIONS[name]
            fitting = f"{', '.join(others)} or {last}" if others else last
            option = name.replace("_", "-")
            raise ProblemError(f"--{option} is for --direction {fitting}, not {args.direction}")
    if args.direction == GRADIENT:
        return AttentionGradient(args.n, args.d, **given)
    if "mask" in given:
        given["mask"] = parse_mask(given["mask"], args.n, given.get("keys"))
    return Attention(args.n, args.d, direction=args.direction, **given)


def run_compare(args: argparse.Namespace) -> Comparison:
    """Compare all schedules, replayed if asked for."""
    rules = Rules(recompute=not args.no_recompute)
    return compare(
        _problem(args),
        args.cache,
        rules=rules,
        heads=args.heads,
        batch=args.batch,
        dtype=args.dtype,
        judge=partial(verified, rules=rules) if args.verify else counted,
    )


def verified(schedule: Schedule, rules: Rules) -> Cost:
    """Replay a schedule move by move, with a bar in a terminal if it takes more than a second."""
    from tqdm import tqdm

    _load_kernels()
    total = schedule.count().moves
    with tqdm(
        total=total,
        desc=schedule.name,
        unit=" moves",
        unit_scale=True,
        delay=BAR_DELAY,
        disable=None,
    ) as bar:

        def progress(moves: int) -> None:
            bar.update(moves - bar.n)

        return schedule.replay(rules, progress)


@cache
def _load_kernels() -> None:
    """Have the referee compiled, or loaded: a bar measures moves, not the compiler."""
    from pebble.expander import Expansion
    from pebble.playback import replay

    least = best(Attention(n=1, d=1), cache=16)
    replay(Expansion(least.problem.graph, least.program), least.cache)


def run_sweep(args: argparse.Namespace) -> Sweep:
    """Sweep over caches."""
    caches = args.caches or sorted({round(2 ** (half / 2)) for half in range(12, 41)})
    return sweep(_problem(args), caches)


class BoundList:
    """All bounds that apply, as a table."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.problem, self.cache = _problem(args), args.cache
        self.rules = Rules(recompute=not args.no_recompute)
        self.found = bounds.every(self.problem, args.cache, self.rules)

    @property
    def table(self) -> Table:
        """A row for each bound, largest first."""
        title = f"lower bounds, {self.problem.title}, cache M = {self.cache} words"
        rows = tuple((f"{b.value:,}", b.name, b.assumes, b.reference) for b in self.found)
        return Table(title, ("I/O words", "bound", "assumes", "reference"), rows)

    def to_dict(self) -> dict[str, object]:
        """Give the bounds as plain values, for JSON."""
        return {
            "problem": self.problem.to_dict(),
            "cache": self.cache,
            "recompute": self.rules.recompute,
            "bounds": [
                {"words": b.value, "name": b.name, "assumes": b.assumes, "reference": b.reference}
                for b in self.found
            ],
        }


def run_bounds(args: argparse.Namespace) -> BoundList:
    """List the bounds."""
    return BoundList(args)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; give the exit code: 0, or 2 after an error (one line on stderr)."""
    try:
        args = parser().parse_args(arguments)
        result = args.run(args)
        if args.json:
            print(json.dumps(result.to_dict(), indent=2))
        else:
            width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
            print(result.table.text(width))
        sys.stdout.flush()
    except PebbleError as error:
        print(f"pebble: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
