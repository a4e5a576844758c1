"""The measurement of the audit tells a good recommendation from a bad one."""

import importlib.util
import json
from pathlib import Path

import pytest
import torch

FILE = Path(__file__).parents[2] / "benchmarks" / "audit.py"
ARCHIVE = FILE.parents[1] / "results" / "digits.jsonl.gz"


def load_file(path):
    spec = importlib.util.spec_from_file_location(f"{path.stem}_benchmark", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def benchmark():
    return load_file(FILE)


@pytest.fixture(autouse=True)
def _single(_float64_and_seed):
    torch.set_default_dtype(torch.float32)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def rows(benchmark, loss, error=0.0, noise="symmetric:0.4"):
    """What five audits would say that recommend a loss with its published parameters."""
    found = []
    for seed in benchmark.SEEDS:
        (spec,) = benchmark.runs_of(noise, seed, [loss])
        row = {"noise": noise, "seed": seed, "truth": 0.4, "rate": 0.4 + error}
        row |= {"low": 0.38, "high": 0.42, "loss": loss, "expression": spec.expression}
        found.append({**row, "seconds": 1.0})
    return found


@pytest.mark.parametrize(
    ("loss", "error", "expected"),
    [
        ("SCE", 0.0, (True, True, True)),  # the best there
        ("BEF", 0.049, (True, True, False)),
        ("NCE", 0.0, (True, False, False)),  # 8 points worse
        ("SCE", -0.06, (False, True, True)),
    ],
)
def test_verdicts_follow_the_committed_runs(benchmark, tmp_path, loss, error, expected):
    runs = benchmark.Runs(tmp_path, ARCHIVE)
    line = benchmark.compare("symmetric:0.4", rows(benchmark, loss, error), runs)
    assert line["best"] == "SCE"
    assert benchmark.verdicts(line) == expected
    assert not list(tmp_path.iterdir())  # nothing had to be trained


def test_finished_audits_are_not_done_again(benchmark, tmp_path, monkeypatch, capsys):
    done = rows(benchmark, "NCE")
    (tmp_path / "audits.jsonl").write_text("".join(json.dumps(row) + "\n" for row in done[:-1]))
    again = []
    monkeypatch.setattr(benchmark, "audit_once", lambda *at: again.append(at) or done[-1])
    words = ["--noise", "symmetric:0.4", "--store", str(tmp_path)]
    assert benchmark.main(words) == 1
    assert benchmark.main(words) == 1
    assert again == [("symmetric:0.4", benchmark.SEEDS[-1])]
    assert "| symmetric:0.4 | 40.0 % | +0.0 | 5 of 5 | NCE 5 | 88.0 | SCE 96.0 |" in (
        capsys.readouterr().out
    )


@pytest.mark.slow
def test_on_digits_the_rate_is_near_and_the_loss_is_not_shown_to_be_worse(benchmark, tmp_path):
    words = ["--noise", "symmetric:0.4", "--seeds", "0,1,2", "--store", str(tmp_path)]
    assert benchmark.main(words) == 0


def test_a_fifth_of_the_digits_lies_in_a_wrong_folder(tmp_path):
    images = load_file(FILE.with_name("audit_images.py"))
    wrong = images.write_folders(tmp_path, seed=0)
    files = [str(path) for path in tmp_path.rglob("*.png")]
    assert len(files) == 1797
    assert sum(map(images.is_wrong, files)) == wrong == 359
