"""Speed and memory of replay, count, bounds and import; no test asserts any of it.

Run from the top of the repository::

    python tests/benchmarks/speed.py

Every figure is taken after a first run that compiles. The machine's speed drifts, so compare
figures of one run only: the plain-Python referee of tests/naive.py is timed beside the compiled
ones on the same moves.
"""

import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import naive  # noqa: E402
import numpy as np  # noqa: E402

import pebble  # noqa: E402
import schedules  # noqa: E402
from pebble.graph import explicit  # noqa: E402
from pebble.replay import encode, replay  # noqa: E402


def timed(work):
    """Give the seconds that the quickest of three runs takes, and the result."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def line(what, seconds, moves):
    print(f"{what:58} {moves:13,} moves {seconds:9.3f} s {moves / seconds:16,.0f} moves/s")


def peak_gib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def implicit():
    """The whole of flash2 on a graph of 2.7 10^8 vertices."""
    schedule = schedules.flash2(pebble.Attention(n=1024, d=64), cache=16384)
    start = time.perf_counter()
    cost = schedule.replay()
    line("replay of flash2, n = 1024, d = 64, M = 16384", time.perf_counter() - start, cost.moves)
    print(f"  {len(schedule.problem.graph):,} vertices; peak memory {peak_gib():.2f} GiB")


def same_moves():
    """One schedule through all referees: implicit, explicit, and plain Python."""
    schedule = schedules.flash2(pebble.Attention(n=24, d=8), cache=96)
    graph = explicit(schedule.problem.graph)
    moves = list(schedule.moves())
    codes = encode(graph, moves)
    labels = {
        graph.label(v): tuple(map(graph.label, graph.predecessors(v))) for v in range(len(graph))
    }
    outputs = [graph.label(v) for v in graph.outputs]
    plain = [(str(move.op), move.vertex) for move in moves]
    slow, done = timed(lambda: naive.play(labels, outputs, 96, plain))
    fast, cost = timed(lambda: replay(graph, codes, 96))
    stream, _ = timed(schedule.replay)
    assert (done.loads, done.stores, done.peak) == (cost.loads, cost.stores, cost.peak)
    line("plain Python, flash2, n = 24, d = 8, M = 96", slow, len(moves))
    line("  explicit graph, the same moves", fast, len(moves))
    line("  implicit graph, the same moves, tables built anew", stream, len(moves))
    print(f"  the compiled referee is {slow / fast:,.0f} times as fast as plain Python")


def sums(terms, rounds):
    """Long chains of sums of in-degree 2 over in-degree-3 vertices: graph and codes."""
    # Vertices: three inputs, then per term one vertex of in-degree 3 and one sum of in-degree 2.
    count = 3 + 2 * terms
    degree = np.zeros(count, np.int64)
    degree[3::2], degree[4::2] = 3, 2
    starts = np.concatenate([[0], np.cumsum(degree)])
    preds = np.empty(starts[-1], np.int64)
    for v in range(3, count):
        if v % 2:
            preds[starts[v] : starts[v + 1]] = (0, 1, 2)
        else:
            preds[starts[v] : starts[v + 1]] = (max(v - 2, 0), v - 1)
    graph = pebble.Graph.from_arrays(starts, preds)
    load, store, compute, delete = 0, 1, 2, 3
    codes = [8 * v + load for v in range(3)]
    for v in range(3, count, 2):
        codes += [8 * v + compute, 8 * (v + 1) + compute, 8 * v + delete]
        codes += [8 * (v - 1) + delete] if v > 3 else []
    codes += [8 * (count - 1) + store]
    codes += [8 * (count - 1) + delete]
    one = np.array(codes, np.int64)
    again = one[3:-2].copy()  # recomputation: the same sums over and over
    last = np.array([8 * (count - 1) + delete], np.int64)
    return graph, np.concatenate([one] + [again, last] * rounds)


def explicit_graph():
    graph, codes = sums(terms=250_000, rounds=100)
    seconds, cost = timed(lambda: replay(graph, codes, 8))
    line("explicit graph, in-degree up to 3, 500,003 vertices", seconds, cost.moves)


def directions():
    """Every direction beside the forward's flash2, in rounds: the machine's speed drifts."""
    n, d, cache = 160, 32, 4096
    problems = {
        kind: pebble.Attention(n, d, direction=kind)
        for kind in ("forward", "backward", "double_backward")
    }
    problems["gradient"] = pebble.AttentionGradient(n, d)
    made = [
        schedules.flash2(problems["forward"], cache),
        schedules.flash2_backward(problems["backward"], cache),
        schedules.two_pass_backward(problems["backward"], cache),
        schedules.flashbob(problems["double_backward"], cache),
        schedules.flash_gradient(problems["gradient"], cache),
        schedules.small_cache_gradient(problems["gradient"], cache),
    ]
    random = np.random.default_rng(0)
    numbers = {
        name: {key: random.normal(size=shape) for key, shape in problem.operands.items()}
        for name, problem in problems.items()
    }
    for given in numbers.values():  # exp(score - Lse) is to stay finite, and need not be a weight
        given.update({key: given[key] + 30 for key in ("Lse",) if key in given})
    ways = {
        "count": lambda schedule: schedule.count(),
        "replay": lambda schedule: schedule.replay(),
        "execute": lambda schedule: schedule.execute(**numbers[schedule.problem.kind]),
    }
    best = {(s.name, way): float("inf") for s in made for way in ways}
    for _ in range(5):
        for schedule in made:
            for way, work in ways.items():
                start = time.perf_counter()
                work(schedule)
                taken = time.perf_counter() - start
                best[schedule.name, way] = min(best[schedule.name, way], taken)
    moves = {schedule.name: schedule.count().moves for schedule in made}
    print(f"n = {n}, d = {d}, M = {cache}; moves/s, and time for a move over that of flash2:")
    for name, total in moves.items():
        cells = []
        for way in ways:
            ratio = best[name, way] / total / (best["flash2", way] / moves["flash2"])
            cells.append(f"{way} {total / best[name, way]:15,.0f} ({ratio:5.2f})")
        print(f"  {name:21} {total:12,} moves  {'  '.join(cells)}")


def counts():
    for softmax in ("plain", "online"):
        problem = pebble.Attention(n=131072, d=128, softmax=softmax)
        for name in ("standard", "small_cache", "flash1", "flash2"):
            slowest = 0.0
            for cache in (256, 1024, 4096, 16384, 65536, 2**20):
                try:
                    seconds, _ = timed(
                        lambda p=problem, n=name, c=cache: getattr(schedules, n)(p, c).count()
                    )
                except pebble.SizeError:
                    continue
                slowest = max(slowest, seconds)
            print(
                f"{name}({softmax}).count(), n = 131072, d = 128, M = 256 .. 2^20: {slowest:.3f} s"
            )


def lower_bounds():
    slowest = 0.0
    for cache in (64, 1024, 4096, 16384, 65536, 2**20):
        for problem in (pebble.Attention(n=65536, d=64), pebble.Attention(n=131072, d=128)):
            slowest = max(slowest, timed(lambda p=problem, c=cache: pebble.bounds.lower(p, c))[0])
    print(f"bounds.lower, the slowest of 12: {slowest:.3f} s")


def imports():
    code = "import time; t = time.perf_counter(); import pebble; print(time.perf_counter() - t)"
    runs = [
        float(
            subprocess.run(
                [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(5)
    ]
    print(f"import pebble: {min(runs):.3f} s")


if __name__ == "__main__":
    warm = schedules.flash2(pebble.Attention(n=4, d=2), cache=30)
    warm.replay()
    replay(explicit(warm.problem.graph), warm.moves(), 30)
    implicit()
    explicit_graph()
    same_moves()
    directions()
    counts()
    lower_bounds()
    imports()
