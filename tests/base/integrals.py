"""Integrals of densities by mpmath, which take seconds, kept in tests/golden/integrals.json.

    python tests/base/integrals.py

writes the file again, after a case was added to tests/bases.py.
"""

import json
import sys
from pathlib import Path

import mpmath

TESTS = Path(__file__).parents[1]
FILE = TESTS / "golden" / "integrals.json"
GOLDEN: dict[str, dict[str, str]] = json.loads(FILE.read_text()) if FILE.is_file() else {}
POINTS = (0.0, 1e-8, 1e-3, 0.1, 0.3, 0.5, 0.7, 0.9, 1 - 1e-8, 1.0)
DIGITS = 25  # kept of 40


def integral(case, low: float, high: float) -> mpmath.mpf:
    """The integral of phi, as it is kept."""
    with mpmath.workdps(40):
        return mpmath.mpf(GOLDEN[case.id][f"{low!r} {high!r}"])


def integrals(case) -> dict[str, str]:
    """Every integral of phi that a test asks for: to 1 and, if it is finite, from 0."""
    bounded = case.naive.bounded
    to_one = [(x, 1.0) for x in POINTS[0 if bounded else 1 :]]
    from_zero = [(0.0, x) for x in POINTS] if bounded else []
    return {f"{low!r} {high!r}": _quad(case, low, high) for low, high in (*to_one, *from_zero)}


def _quad(case, low: float, high: float) -> str:
    """An integral in 40 digits, by decades towards 0 and split at kinks and peaks."""
    with mpmath.workdps(40):
        if low == high:
            return "0.0"
        inner = {10.0**-k for k in range(1, 11)} | {0.25, 0.5, 0.75, 0.9}
        points = [low, *sorted(p for p in inner if low < p < high), high]
        found = mpmath.quad(lambda s: case.naive.phi(mpmath.mpf(s), mpmath), points)
        return mpmath.nstr(found, DIGITS)


if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))
    from bases import BASES

    FILE.write_text(json.dumps({case.id: integrals(case) for case in BASES}, indent=1) + "\n")
