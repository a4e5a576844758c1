"""Every target of the Makefile works: each is run in a copy of the project, on little."""

import re
import shutil

import pytest
from project import ROOT, copy_project, make

from lossforge.benchmark.records import read_records
from lossforge.catalog.entry import TABLES
from lossforge.kernels import COMPOSED

TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
BENCHMARKS = {
    f"bench-{name}" for name in ("speed", "linear", "training", "loading", "certify", "audit")
}
HERE = {"help", "soak", "demo", "docs-catalog", "docs-results", "results", *BENCHMARKS}
ELSEWHERE = {"docs"}  # tests/docs/test_docs_site.py
# `make test-all` is made of them, or they are no more than a command
NOT_RUN = {"test", "test-all", "test-integrations", "lint", "package", "publish", "clean"}
ROW = re.compile(r"^(?P<name>\S.*?)  +(?P<rest>\S.*\d.*)$", re.MULTILINE)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed"),
]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return copy_project(tmp_path_factory.mktemp("targets"))


def names(table: str) -> list[str]:
    """The first column of a table's rows of numbers."""
    return [row["name"] for row in ROW.finditer(table)]


def judged(done) -> bool:
    """Whether a benchmark ended as its verdicts say: 1 if a promise was missed, else 0.

    Speed promises are for a quiet machine, so that either will do here.
    """
    assert "Traceback" not in done.stderr, done.stderr
    verdicts = re.findall(r"^(met|MISSED) ", done.stdout, re.MULTILINE)
    return bool(verdicts) and (done.returncode != 0) == ("MISSED" in verdicts)


def test_help_lists_the_targets(project):
    done = make(project, "help")
    assert done.returncode == 0, done.stderr
    assert set(re.findall(r"^  make (\S+)", done.stdout, re.MULTILINE)) == TARGETS


def test_soak_counts_problems_and_faults(project):
    done = make(project, "soak", "losses --seeds 0:6:2 --workers 1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "losses: 3 problems, 0 faults" in done.stdout


def test_speed_compares_every_loss_with_its_naive_twin(project):
    done = make(project, "bench-speed", "--eager --repeats 1 --shapes 16x10 300x5 --threads 1 2")
    assert done.returncode == 0, done.stderr
    twins = [f"naive {loss}" for loss in TABLES if loss != "CE"]
    for table in done.stdout.split("memory\n")[1:]:
        assert names(table.split("\n\n")[0]) == [
            *("F.cross_entropy", *TABLES, "even density", "tilted density"),
            *twins,
        ]
    assert done.stdout.count("targets met") == 4


@pytest.mark.skipif(
    shutil.which("c++") is None and shutil.which("g++") is None,
    reason="torch.compile needs a C++ compiler, and none is installed",
)
def test_speed_compiles_and_judges(project):
    done = make(project, "bench-speed", "--repeats 1 --shapes 16x10 --loss BEF --threads 1")
    assert done.returncode == 0, done.stderr
    table = done.stdout.split("memory\n")[1]
    assert re.findall(r"^(?:BEF|F.cross_entropy) +compiled ", table, re.MULTILINE)
    assert len(names(table.split("\n\n")[0])) == 5
    assert re.search(r"^16 x 10: \d of 3 targets met", table, re.MULTILINE)


def test_speed_writes_its_tables_from_thirty_rounds(project):
    page = project / "page.md"
    page.write_text("before\n<!-- speed: begin -->\nold\n<!-- speed: end -->\nafter\n")
    run = "--eager --shapes 16x10 --loss BEF --threads 1 2 --write page.md --repeats"
    assert "at least 30 rounds, got 29" in make(project, "bench-speed", f"{run} 29").stderr
    done = make(project, "bench-speed", f"{run} 30")
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    assert re.fullmatch(r"before\n<!-- .* -->\nafter\n", text, re.DOTALL)
    assert "old" not in text
    assert re.findall(r"^\| (\d) threads? \|", text, re.MULTILINE) == ["1", "2"]
    assert len(re.findall(r"^\| BEF \| eager \| \d+\.\d\d \| \d\.\d \|$", text, re.MULTILINE)) == 2


def test_linear_compares_chunks_with_all_logits(project):
    done = make(project, "bench-linear", "--repeats 1 --rows 70 --classes 300000 --width 4")
    assert done.returncode == 0, done.stderr
    table = done.stdout.split("difference\n")[1]
    assert names(table) == ["CE plain", "CE chunked", "BEF plain", "BEF chunked"]


def test_training_compares_two_networks(project):
    done = make(project, "bench-training", "--repeats 1")
    assert judged(done), done.stdout + done.stderr
    assert names(done.stdout.split("loss share\n")[1].split("\n\n")[0]) == ["cnn8", "cnn8-narrow"]


def test_loading_compares_two_recipes(project):
    done = make(project, "bench-loading", "--repeats 1")
    assert judged(done), done.stdout + done.stderr
    rows = names(done.stdout.split("ratio\n")[1].split("\n\n")[0])
    assert rows == ["crop, mirror", "crop, mirror, rotation"]


def test_certify_times_every_case(project):
    done = make(project, "bench-certify", "--repeats 1")
    assert judged(done), done.stdout + done.stderr
    rows = names(done.stdout.split("verdict\n")[1].split("\n\n")[0])
    assert rows == ["BEF"] * 3 + ["BQF"] * 3 + ["arbitrary"] * 9 + ["peaked"] * 9


def test_audit_starts(project):
    """Tables of the committed records; tests/audit/test_audit_benchmark.py does a case."""
    done = make(project, "bench-audit", "--limit 0")
    assert done.returncode == 0, done.stderr
    assert "within a point of the best" in done.stdout


def test_demo_trains_and_reports(project):
    done = make(project, "demo", "--loss CE,BEF --seeds 0 --set epochs=1")
    assert done.returncode == 0, done.stderr
    page = (project / "runs" / "digits" / "report" / "index.html").read_text()
    assert "BEF" in page
    seen, sure, following = done.stdout.splitlines()[-3:]
    assert re.match("seen  (CE|BEF|CE and BEF) (has|share) the highest accuracy of 2 losses", seen)
    assert sure == "sure  1 seed: no difference can be told from luck here."
    assert following.startswith("next  the same `lossforge bench` with --seeds 0:5 adds to these")


def test_generated_pages_are_the_committed_ones(project):
    for target in ("docs-catalog", "docs-results"):
        done = make(project, target)
        assert done.returncode == 0, done.stderr
    for page in ("catalog.md", "results.md"):
        assert (project / "docs" / page).read_bytes() == (ROOT / "docs" / page).read_bytes()


def test_a_sample_of_the_results_is_found_again(project):
    """JAL-CE at instance 0.6 varies much with the seed, CE+LC at symmetric 0.4 little."""
    done = make(project, "results", "digits --sample 10 --workers 1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "results/digits, kernel off: 10 of 10 runs" in done.stderr
    assert "digits: as committed (10 runs; " in done.stdout
    found = read_records(project / "runs" / "results" / "digits-sample")
    assert [record.about["kernel"].startswith(COMPOSED) for record in found] == [True] * 10


def test_every_target_is_run() -> None:
    assert HERE | NOT_RUN | ELSEWHERE == TARGETS
