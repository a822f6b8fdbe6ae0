"""What an import brings in, and from where."""

import subprocess
import sys
from pathlib import Path

import pytest

import pebble
import schedules

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("package", [pebble, schedules])
def test_the_packages_of_this_repository_are_tested(package):
    assert Path(package.__file__).parent.parent == ROOT


def test_import_is_light():
    code = "import sys, pebble, schedules; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    heavy = {"numba", "scipy", "networkx", "matplotlib", "hypothesis", "tqdm"}
    assert heavy.isdisjoint(run.stdout.split())


def test_pebble_does_not_import_schedules():
    code = "import sys, pebble; print('schedules' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "False"


def test_another_pebble_is_named_in_the_error(tmp_path):
    (tmp_path / "pebble.py").write_text("")
    (tmp_path / "schedules").symlink_to(ROOT / "schedules")
    run = subprocess.run(
        [sys.executable, "-c", "import schedules"], cwd=tmp_path, capture_output=True, text=True
    )
    assert run.returncode == 1
    assert "schedules needs the pebble of attention-pebbling" in run.stderr


def test_every_exception_has_the_one_root():
    for name in vars(pebble.errors):
        value = getattr(pebble.errors, name)
        if isinstance(value, type) and issubclass(value, Exception):
            assert issubclass(value, pebble.PebbleError)


def test_all_names_exist():
    assert all(hasattr(pebble, name) for name in pebble.__all__)
    assert all(hasattr(schedules, name) for name in schedules.__all__)


def test_ci_runs_the_test_command_of_the_readme():
    (command,) = [
        line for line in (ROOT / "README.md").read_text().splitlines() if "-m pytest -n" in line
    ]
    assert command == (ROOT / ".ci" / "run").read_text().splitlines()[-1]
