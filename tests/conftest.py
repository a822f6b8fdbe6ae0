"""Hypothesis profiles: ``HYPOTHESIS_PROFILE=thorough pytest`` looks longer."""

import os
from pathlib import Path

from hypothesis import HealthCheck, settings

# Where CI is set the same examples are tried each time: what a change broke is then its own.
settings.register_profile(
    "modest",
    deadline=None,
    max_examples=150,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", settings.get_profile("modest"), max_examples=3000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "modest"))

# numba keeps a compiled kernel until the kernel's own file changes, though it has compiled the
# rules into it: kernels that are older than the rules would test the rules of yesterday.
PEBBLE = Path(__file__).parent.parent / "pebble"
RULES = "rules.py", "referee.py", "search/steps.py", "partial/rules.py", "partial/steps.py"
NEWEST = max((PEBBLE / name).stat().st_mtime for name in RULES)
for index in PEBBLE.glob("**/__pycache__/*.nbi"):
    if index.stat().st_mtime < NEWEST:
        index.unlink(missing_ok=True)
