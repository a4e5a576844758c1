"""The measurement of the audit: networks as the library trains them, figures of the records."""

import importlib.util
import json
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

from lossforge.audit.cross_validation import cross_validate
from lossforge.audit.recipes import PROCEDURES, Recipe, Schedule, Suspicion, fit_recipe
from lossforge.benchmark.run import samples
from lossforge.training.folds import Fold, select

FOLDER = Path(__file__).parents[2] / "benchmarks"


def load_file(name):
    spec = importlib.util.spec_from_file_location(f"{name}_benchmark", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def cases():
    before = list(sys.path)
    sys.path.insert(0, str(FOLDER))
    yield load_file("audit_cases")
    sys.path[:] = before


@pytest.fixture(scope="module")
def benchmark(cases):
    return load_file("audit")


@pytest.fixture(autouse=True)
def _single(_float64_and_seed):
    torch.set_default_dtype(torch.float32)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def noisy(cases):
    torch.set_default_dtype(torch.float32)
    clean, given = cases.make(cases.Case("digits", "mixed", 0.3, 5))
    return clean.with_noise(given).without_truth()


@pytest.mark.parametrize(
    "recipe", [Recipe("BQF", "BQF"), Recipe("CE"), *PROCEDURES], ids=lambda one: one.name
)
def test_networks_side_by_side_are_those_of_the_library(cases, noisy, recipe):
    rows, held = torch.arange(0, 500), torch.arange(500, 640)
    draw = torch.Generator().manual_seed(0)
    found = Suspicion(
        torch.rand(500, generator=draw) < 0.3,
        torch.randint(10, (500,), generator=draw),
        torch.rand(500, generator=draw),
    )
    schedule = Schedule(3, 2, 640, 1.0)
    whole = samples(noisy, noisy.train)
    fold = Fold(0, held, select(whole, rows), select(whole, held))
    expected = fit_recipe(recipe, noisy, fold, found, schedule, seed=7, hidden=cases.HIDDEN)
    ours = cases.job(recipe, noisy, rows, held, found, schedule, 7)
    # others in the same stack, of other lengths and losses, change nothing
    more = [
        cases.job(Recipe("GCE", "GCE"), noisy, rows[:77], held, found, schedule, 3),
        cases.job(Recipe("CE"), noisy, rows[:300], held[:9], found, schedule, 4),
    ]
    cases.train_all([*more, ours], noisy.train.inputs)
    torch.testing.assert_close(ours.logits, expected.logits, atol=1e-4, rtol=1e-4)


@pytest.mark.slow
def test_probabilities_are_those_of_the_library(cases, noisy, monkeypatch):
    monkeypatch.setattr(cases, "EPOCHS", 12)
    (ours,), epochs = cases.probabilities(noisy, 1, 3)
    theirs = cross_validate(noisy, folds=5, epochs=12, seed=3, hidden=cases.HIDDEN)
    assert tuple(epochs) == theirs.epochs
    torch.testing.assert_close(ours, theirs.probs, atol=1e-3, rtol=1e-2)


@pytest.mark.slow
def test_rounds_side_by_side_are_those_of_the_library(cases, noisy):
    from lossforge.audit.trials import Trials

    schedule = Schedule(3, 2, 640, 1.0)
    recipes = [Recipe("CE"), next(one for one in PROCEDURES if one.suspects == "drop")]
    ours = cases.StackedTrials(noisy, schedule, 2, hidden=cases.HIDDEN)
    ours.run(recipes)
    theirs = Trials(noisy, schedule, 2, hidden=cases.HIDDEN)
    for recipe in recipes:
        one, other = ours.predict(recipe, 1), theirs.predict(recipe, 1)
        assert one.rows.equal(other.rows)
        assert (one.predicted == other.predicted).double().mean() > 0.99


def test_noise_has_the_rate_and_kind_of_the_case(cases):
    for kind in ("symmetric", "similar", "mixed", "hard"):
        clean, given = cases.make(cases.Case("digits", kind, 0.3, 3))
        wrong = given != clean.train.true
        assert float(wrong.double().mean()) == pytest.approx(0.3, abs=0.06), kind
        pairs = {*zip(clean.train.true[wrong].tolist(), given[wrong].tolist(), strict=True)}
        assert (len(pairs) == 10) == (kind == "similar"), kind
    clean, given = cases.make(cases.Case("breast-cancer", "similar", 0.3, 3))
    assert {*clean.train.true[given != clean.train.true].tolist()} == {0}


def test_the_cases_are_as_many_as_the_page_says_and_all_differ(benchmark):
    listed = benchmark.read_cases(benchmark.CASES)
    assert len(listed) == len({case for _, case in listed}) == 346
    kinds = [what for what, _ in listed]
    counts = {"full": 40, "fresh": 26, "last": 40, "scaled": 40, "rate": 200}
    assert Counter(kinds) == counts
    assert len({case.data for _, case in listed}) == 4
    assert min(case.seed for _, case in listed) >= 100  # those below were used for design


def test_wilsons_interval(benchmark):
    """Newcombe, Statistics in Medicine 1998, table I."""
    assert benchmark.wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert benchmark.wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)


def record(benchmark, what, seed, **fields):
    about = {"what": what, "data": "digits", "kind": "hard", "rate_set": 0.1, "seed": seed}
    rate = {"truth": 0.1, "rate": 0.12, "low": 0.08, "high": 0.15, "sure": 0.09, "most": 0.15}
    return {**about, **rate, **fields}


FULL = {
    "recommended": "CE",
    "accuracy": {"CE": [0.8, 0.8, 0.8], "BQF": [0.82, 0.82, 0.82]},
    "scores": {"CE": 0.7, "BQF": 0.75},
    "noisy": {"CE": 0.7, "BQF": 0.65},
    "suspects": [10, 8, 16],
    "cleanlab": [10, 8, 16],
    "bayes": [8, 8, 16],
}


def test_the_tables_follow_the_records(benchmark):
    full = [record(benchmark, "full", 1, **FULL)]
    full += [record(benchmark, "full", 2, **{**FULL, "recommended": "BQF"})]
    rates = [record(benchmark, "rate", 3), record(benchmark, "rate", 4, truth=0.2)]
    text = benchmark.tables([*full, *rates], [("full", None)] * 2 + [("rate", None)] * 5)
    assert "2 of 2 cases with a first rule, before all of these" in text
    assert "| all | 2 | 1 of 2, 50 % [9, 91] | 1.0 | 2.0 | 1.00 | -1.00 |" in text
    assert "| always BQF | 2 of 2, 100 % [34, 100] | 0.0 | 0.0 |" in text
    assert "2 of 5 rate-only cases" in text
    assert "| all | 2 | 1 of 2, 50 % [9, 91] | 7.0 | -3.0 |" in text
    assert "| all | 80.0 % | 50.0 % |" in text


def test_finished_cases_are_not_done_again(benchmark, tmp_path, monkeypatch, capsys):
    done = []

    def rate_case(case):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(case.seed)
        return dict.fromkeys(("truth", "rate", "low", "high", "sure", "most"), 0.1)

    monkeypatch.setitem(benchmark.DO, "rate", rate_case)
    listed = tmp_path / "cases.json"
    listed.write_text(json.dumps([["rate", "digits", "hard", 0.1, seed] for seed in (1, 2, 3)]))
    words = ["--cases", str(listed), "--work", str(tmp_path / "work.jsonl")]
    words += ["--records", str(tmp_path / "records.gz")]
    with pytest.raises(KeyboardInterrupt):
        benchmark.main(words)
    with (tmp_path / "work.jsonl").open("a") as file:
        file.write('{"what": "rate", "da')  # a kill in the middle of a line
        file.write("\n")
    done.clear()
    assert benchmark.main([*words, "--pack"]) == 0
    assert done == [3]
    first = (tmp_path / "records.gz").read_bytes()
    (tmp_path / "work.jsonl").unlink()
    assert benchmark.main([*words, "--pack"]) == 0
    assert done == [3]
    assert (tmp_path / "records.gz").read_bytes() == first
    assert "3 of 3 rate-only cases" in capsys.readouterr().out


def test_the_page_has_the_tables_of_the_committed_records(benchmark):
    records = benchmark.read_records(benchmark.RECORDS, Path("nowhere"))
    assert records
    text = benchmark.tables(records, benchmark.read_cases(benchmark.CASES))
    assert text in benchmark.PAGE.read_text(encoding="utf-8")


def test_a_fifth_of_the_digits_lies_in_a_wrong_folder(tmp_path):
    images = load_file("audit_images")
    wrong = images.write_folders(tmp_path, seed=0)
    files = [str(path) for path in tmp_path.rglob("*.png")]
    assert len(files) == 1797
    assert sum(map(images.is_wrong, files)) == wrong == 359
