"""The command line: ``python -m pebble compare --n 1024 --d 64 --cache 49152``."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Sequence
from typing import NoReturn

import schedules  # noqa: F401  (registers its generators)
from pebble import bounds
from pebble.attention import SOFTMAXES, Attention
from pebble.compare import WORD_BYTES, Comparison, compare
from pebble.cost import Cost
from pebble.errors import PebbleError
from pebble.rules import Rules
from pebble.schedule import Schedule
from pebble.sweep import Sweep, sweep
from pebble.table import Table

BAR_DELAY = 1  # seconds before a progress bar shows

COMPARE_EXAMPLE = """example (GPT-2 medium on a GPU with 96 KiB of shared memory):
  python -m pebble compare --n 1024 --d 64 --cache 49152 --heads 16 --batch 64 --dtype fp16"""
SWEEP_EXAMPLE = """example (how far the cheapest schedule is from the bound, over caches):
  python -m pebble sweep --n 65536 --d 64"""
BOUNDS_EXAMPLE = """example:
  python -m pebble bounds --n 1024 --d 64 --cache 16384"""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Write the error and exit with 2."""
        raise PebbleError(f"{message} (see {self.prog} --help)")


def parser() -> Parser:
    """Give the parser of the command line."""
    top = Parser(prog="pebble", description="Red-blue pebble games on attention, counted exactly.")
    commands = top.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=Parser
    )

    def command(name: str, what: str, example: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name,
            help=what,
            description=what,
            epilog=example,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.add_argument("--n", type=int, required=True, help="queries")
        sub.add_argument("--d", type=int, required=True, help="dimension of Q and K")
        sub.add_argument("--keys", type=int, help="keys (default: n)")
        sub.add_argument("--value-dim", type=int, help="dimension of V (default: d)")
        sub.add_argument("--softmax", choices=SOFTMAXES, default="plain", help="default: plain")
        sub.add_argument("--logsumexp", action="store_true", help="the logsumexp is an output too")
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
    return top


def _once(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--no-recompute",
        action="store_true",
        help="bounds of the game in which each vertex is computed once",
    )


def _problem(args: argparse.Namespace) -> Attention:
    return Attention(
        args.n,
        args.d,
        keys=args.keys,
        value_dim=args.value_dim,
        softmax=args.softmax,
        logsumexp=args.logsumexp,
    )


def run_compare(args: argparse.Namespace) -> Comparison:
    """Compare all schedules, replayed if asked for."""
    return compare(
        _problem(args),
        args.cache,
        rules=Rules(recompute=not args.no_recompute),
        heads=args.heads,
        batch=args.batch,
        dtype=args.dtype,
        judge=verified if args.verify else Schedule.count,
    )


def verified(schedule: Schedule) -> Cost:
    """Replay a schedule move by move, with a bar in a terminal if it takes more than a second."""
    from tqdm import tqdm

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

        return schedule.replay(progress=progress)


def run_sweep(args: argparse.Namespace) -> Sweep:
    """Sweep over caches."""
    caches = args.caches or sorted({round(2 ** (half / 2)) for half in range(12, 41)})
    return sweep(_problem(args), caches)


class BoundList:
    """All bounds that apply, as a table."""

    def __init__(self, args: argparse.Namespace) -> None:
        rules = Rules(recompute=not args.no_recompute)
        self.problem, self.cache = _problem(args), args.cache
        self.found = bounds.every(self.problem, args.cache, rules)

    @property
    def table(self) -> Table:
        """A row for each bound, largest first."""
        p = self.problem
        title = f"lower bounds, n = {p.n}, keys = {p.keys}, d = {p.d}, value_dim = {p.value_dim}"
        title += f", cache M = {self.cache} words"
        rows = tuple((f"{b.value:,}", b.name, b.assumes, b.reference) for b in self.found)
        return Table(title, ("I/O words", "bound", "assumes", "reference"), rows)

    def to_dict(self) -> dict[str, object]:
        """Give the bounds as plain values, for JSON."""
        return {
            "cache": self.cache,
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
