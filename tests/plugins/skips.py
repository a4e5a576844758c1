"""No test is skipped in silence: a skip that tests/skips.txt does not expect fails the run.

A line of the list is a pattern of test ids, a bar, and a pattern of reasons, both as in `fnmatch`.
With --no-skips the list counts as empty.
"""

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

LIST = Path(__file__).parents[1] / "skips.txt"
_skipped: dict[tuple[str, str], None] = {}


def pytest_addoption(parser) -> None:
    group = parser.getgroup("skips")
    group.addoption("--no-skips", action="store_true", help="let any skipped test fail the run")
    group.addoption(
        "--skips-list", default=str(LIST), help="expected skips, instead of %(default)s"
    )


def expected(text: str) -> list[tuple[str, str]]:
    """The pairs of patterns in a list."""
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    pairs = [tuple(part.strip() for part in line.split("|")) for line in lines if line]
    for pair in pairs:
        if len(pair) != 2 or not all(pair):
            raise pytest.UsageError(f"a line must be TEST | REASON, got {' | '.join(pair)!r}")
    return pairs


def _record(report) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        _, _, reason = report.longrepr
        reason = " ".join(reason.removeprefix("Skipped: ").split())
        _skipped[report.nodeid, reason] = None


def pytest_runtest_logreport(report) -> None:
    _record(report)


def pytest_collectreport(report) -> None:
    _record(report)


def _unexpected(config) -> list[tuple[str, str]]:
    none = config.getoption("no_skips")
    pairs = [] if none else expected(Path(config.getoption("skips_list")).read_text())
    return [
        (test, reason)
        for test, reason in _skipped
        if not any(fnmatchcase(test, a) and fnmatchcase(reason, b) for a, b in pairs)
    ]


def pytest_sessionfinish(session, exitstatus) -> None:
    is_worker = hasattr(session.config, "workerinput")  # of a parallel run, whose head decides
    quiet = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    if not is_worker and quiet and _unexpected(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter, config) -> None:
    if not _skipped:
        return
    bad = _unexpected(config)
    terminalreporter.section("skipped tests")
    for test, reason in sorted(_skipped):
        mark = "NOT EXPECTED: " if (test, reason) in bad else ""
        terminalreporter.write_line(f"{mark}{test}: {reason}", red=bool(mark))
    if bad:
        where = "none is allowed here" if config.getoption("no_skips") else "see tests/skips.txt"
        terminalreporter.write_line(f"{len(bad)} skips were not expected: {where}", red=True)
