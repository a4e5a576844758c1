"""An interrupted audit continues: finished folds and trials are kept beside its files."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from audit_fixtures import CLASSES

from lossforge.audit import Subject, audit, cross_validation
from lossforge.audit.audit import _Training
from lossforge.audit.folder import FILES, check_folder, default_folder
from lossforge.audit.kept import unfinished
from lossforge.audit.recipes import Schedule
from lossforge.data import Dataset, Split
from lossforge.training import folds as training_folds

OPTIONS = {"losses": ["BEF", "CE"], "folds": 3, "repeats": 2, "epochs": 3, "procedures": False}


@pytest.fixture(autouse=True)
def _single(_float64_and_seed):
    torch.set_default_dtype(torch.float32)


def subject(n=90, shift=0.0, name="animals.csv"):
    draw = torch.Generator().manual_seed(0)
    true = torch.arange(n) % 3
    centres = torch.tensor([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    inputs = centres[true] + 0.5 * torch.randn(n, 2, generator=draw) + shift
    given = true.clone()
    given[:9] = (given[:9] + 1) % 3
    dataset = Dataset("animals", CLASSES, Split(inputs, given), {})
    return Subject(name, "table", dataset, where=lambda row: f"{name}:{row + 2}")


@pytest.fixture
def trainings(monkeypatch):
    """Counts the networks that are trained, and interrupts the one after `limit`."""
    counts = {"done": 0, "limit": None}
    original = training_folds.train

    def train(*arguments, **options):
        if counts["done"] == counts["limit"]:
            raise KeyboardInterrupt
        counts["done"] += 1
        return original(*arguments, **options)

    monkeypatch.setattr(training_folds, "train", train)
    return counts


def plain(found):
    content = found.to_dict() if not isinstance(found, dict) else found
    return {**content, "method": {**content["method"], "seconds": 0}}


def interrupted(trainings, limit, folder, about=None, **changes):
    trainings |= {"done": 0, "limit": limit}
    with pytest.raises(KeyboardInterrupt):
        audit(about or subject(), folder=folder, **(OPTIONS | changes))
    trainings |= {"done": 0, "limit": None}


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 1, 4, 7])
def test_it_continues_to_the_same_findings(tmp_path, trainings, limit):
    whole = audit(subject(), **OPTIONS)
    total = trainings["done"]
    assert total == 2 * 3 + 3 * len([one for one in whole.candidates if one.accuracy is not None])
    interrupted(trainings, limit, tmp_path / "out")
    assert len(list((tmp_path / "out" / "unfinished").glob("*.npz"))) == limit
    found = audit(subject(), folder=tmp_path / "out", **OPTIONS)
    assert trainings["done"] == total - limit
    assert plain(found) == plain(whole)
    assert {path.name for path in (tmp_path / "out").iterdir()} == set(FILES)
    assert plain(json.loads((tmp_path / "out" / "audit.json").read_text())) == plain(whole)


@pytest.mark.slow
def test_procedures_and_the_networks_that_find_their_suspects_continue_too(tmp_path, trainings):
    options = OPTIONS | {"losses": ["BEF"], "repeats": 1, "procedures": True}
    whole = audit(subject(), **options)
    total = trainings["done"]
    interrupted(trainings, 14, tmp_path, **options)
    found = audit(subject(), folder=tmp_path, **options)
    assert trainings["done"] == total - 14
    assert plain(found) == plain(whole)


@pytest.mark.parametrize(
    ("seconds", "budget", "told"), [(1, None, []), (60, None, ["4"]), (60, 120, ["2"]), (60, 9, [])]
)
def test_trials_of_more_than_a_minute_are_announced(seconds, budget, told):
    """20 epochs of 4/5 took 0.8 `seconds`; 2 candidates of 20 epochs in 3 rounds of 2/3 follow."""
    heard = []
    method = SimpleNamespace(folds=5, epochs=(14,))
    candidates = [SimpleNamespace(name=name, kind="loss") for name in ("CE", "BEF")]
    found = SimpleNamespace(method=method, candidates=candidates)
    training = _Training(60, 0, "cpu", None, None, heard.append)
    training.announce(found, Schedule(20, 5, 1000, 1.0), seconds * 0.8, budget)
    # 60 s / 20 epochs * 2 candidates * 3 rounds * 20 epochs * 2/3 = 240 s
    assert [one.text for one in heard] == [f"trying 2 candidates, about {n} minutes" for n in told]


@pytest.mark.slow
def test_the_suspects_are_written_before_the_trials(tmp_path, trainings):
    interrupted(trainings, 6, tmp_path)
    found = json.loads((tmp_path / "audit.json").read_text())
    assert found["suspects"]
    assert all(one["accuracy"] is None for one in found["losses"])
    assert len((tmp_path / "suspects.csv").read_text().splitlines()) == 1 + len(found["suspects"])
    assert (tmp_path / "transition.csv").exists()
    assert (tmp_path / "index.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("about", "changes", "used"),
    [
        ({}, {"losses": ["CE"]}, 6),  # the candidates do not change the folds
        ({"name": "renamed.csv"}, {}, 6),
        ({}, {"repeats": 1}, 3),
        ({"shift": 0.01}, {}, 0),  # an edited table
        ({"n": 93}, {}, 0),
        ({}, {"epochs": 4}, 0),
        ({}, {"folds": 4}, 0),
        ({}, {"seed": 5}, 0),
    ],
)
def test_parts_are_used_where_nothing_that_determines_them_changed(
    tmp_path, trainings, about, changes, used
):
    interrupted(trainings, 6, tmp_path)
    options = OPTIONS | changes | {"trials": False}
    found = audit(subject(**about), folder=tmp_path, **options)
    assert trainings["done"] == options["folds"] * options["repeats"] - used
    assert plain(found) == plain(audit(subject(**about), **options))
    assert not (tmp_path / "unfinished").exists()


@pytest.mark.slow
def test_a_damaged_part_is_made_again(tmp_path, trainings):
    interrupted(trainings, 4, tmp_path)
    part = sorted((tmp_path / "unfinished").glob("*.npz"))[0]
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    with pytest.warns(UserWarning, match=r"is damaged and ignored"):
        found = audit(subject(), folder=tmp_path, **(OPTIONS | {"trials": False}))
    assert trainings["done"] == 6 - 3
    assert plain(found) == plain(audit(subject(), **(OPTIONS | {"trials": False})))


@pytest.mark.slow
def test_two_audits_do_not_share_a_folder(tmp_path, trainings, monkeypatch):
    inner = []
    original = cross_validation.fit_fold

    def fit_fold(*arguments, **options):
        if not inner:
            inner.append(1)
            with pytest.raises(ValueError, match="another process is already writing an audit"):
                audit(subject(), folder=tmp_path, **OPTIONS)
        return original(*arguments, **options)

    monkeypatch.setattr(cross_validation, "fit_fold", fit_fold)
    audit(subject(), folder=tmp_path, **(OPTIONS | {"trials": False}))
    assert inner


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda root: (root / "out").write_text(""), "must be written to a folder.*is a file"),
        (lambda root: (root / "out/index.html").mkdir(parents=True), "it is a folder"),
    ],
)
def test_a_folder_that_cannot_be_written_is_found_before_the_work(
    tmp_path, trainings, make, complaint
):
    make(tmp_path)
    with pytest.raises(ValueError, match=complaint):
        audit(subject(), folder=tmp_path / "out" / ("" if complaint[0] == "m" else "."), **OPTIONS)
    assert trainings["done"] == 0


def test_a_read_only_place_is_named_before_the_work(tmp_path, monkeypatch):
    def refuse(**options):
        raise PermissionError(13, "Permission denied", str(options["dir"]))

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(OSError, match=r"cannot write: Permission denied.*"):
        check_folder(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []


def test_a_name_too_long_is_found_before_the_work(tmp_path):
    with pytest.raises(OSError, match="File name too long"):
        check_folder(tmp_path / ("x" * 5000))


@pytest.mark.parametrize(
    ("data", "name"),
    [("a/animals.csv", "animals.csv"), ("photos/", "photos"), ("a b\x1b.csv", "a-b-.csv")],
)
def test_the_default_folder_is_named_after_the_data(data, name):
    assert default_folder(data) == Path("runs/audit") / name


def test_nothing_of_the_user_is_deleted(tmp_path):
    place = tmp_path / "unfinished"
    place.mkdir()
    (place / "thesis.tex").write_text("")
    with pytest.raises(ValueError, match="parts of an audit alone, it holds 'thesis"):
        check_folder(tmp_path)
    with unfinished(tmp_path) as kept:
        (kept / f"{'0a' * 8}.npz").write_bytes(b"")
        (kept / f".{'0a' * 8}.npz.{'0a' * 16}.part").write_bytes(b"")
        (kept / "claim.7").write_text("")
    assert [path.name for path in place.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("name", ["index.html", "transition.csv"])
def test_a_file_of_the_user_is_not_overwritten(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(ValueError, match=f"{name}' is not from an audit"):
        check_folder(tmp_path)
    (tmp_path / "audit.json").write_text("{}")
    check_folder(tmp_path)


def test_a_file_in_the_way_of_the_parts_is_named_first(tmp_path):
    (tmp_path / "unfinished").write_text("")
    with pytest.raises(ValueError, match="unfinished' must be a folder or absent"):
        check_folder(tmp_path)
