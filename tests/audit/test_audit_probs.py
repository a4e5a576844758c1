"""An audit of probabilities that the user has, and of features from a file."""

import numpy as np
import pytest
import torch
from audit_fixtures import CLASSES, animals, labels, posterior, subject, write_csv

from lossforge.audit import audit, read_subject
from lossforge.audit.probs import with_probs
from lossforge.noise import symmetric
from lossforge.training import Pace
from lossforge.training import pace as timing

pytest.importorskip("cleanlab")
T = symmetric(3, 0.2)


@pytest.fixture
def known():
    """Labels of a noise that is known, and the probabilities of a model that knows it."""
    true, given = labels(600, T)
    return true, given, posterior(true, T)


def never(*arguments, **options):
    raise AssertionError("no network must be trained")


@pytest.mark.slow
def test_rate_matrix_suspects_and_certificates_come_from_the_probabilities(known, monkeypatch):
    true, given, probs = known
    monkeypatch.setattr("lossforge.training.folds.train", never)
    about = with_probs(subject(given), probs)
    found = audit(about, losses=["BEF", "CE"])
    wrong = float((true != given).double().mean())
    assert found.noise.rate.value == pytest.approx(wrong, abs=0.03)
    assert torch.allclose(found.noise.estimate.T, T, atol=0.05)
    hits = [true[one.index] != given[one.index] for one in found.suspects]
    assert len(hits) > 0.8 * wrong * len(given)
    assert sum(hits) > 0.9 * len(hits)
    assert [one.status for one in found.candidates] == ["PROVED", "REFUTED"]
    assert all(one.accuracy is None for one in found.candidates)  # nothing was trained
    assert found.recommended.name == "BEF"
    assert found.noise.rate.low < found.noise.rate.high
    method = found.to_dict()["method"]
    assert (method["network"], method["folds"], method["epochs"]) == ("", 0, [])
    assert method["accuracy"] == pytest.approx(float((probs.argmax(1) == given).double().mean()))
    assert any("losses are compared by certificate alone" in note for note in about.notes)


def test_suspects_are_those_of_cleanlab_itself(known):
    _, given, probs = known
    find = pytest.importorskip("cleanlab.filter").find_label_issues
    found = audit(with_probs(subject(given), probs.float().numpy()), losses=["CE"])
    expected = find(
        given.numpy(), probs.numpy(), return_indices_ranked_by="normalized_margin", n_jobs=1
    )
    assert [one.index for one in found.suspects] == expected.tolist()


def test_the_order_of_columns_is_sorted_listed_or_named(known, tmp_path):
    _, given, probs = known
    about = subject(given)
    plain = with_probs(about, probs).probs
    order = [2, 0, 1]
    turned = probs[:, order].numpy()
    names = tmp_path / "names.txt"
    names.write_text("\n".join(CLASSES[k] for k in order) + "\n\n", encoding="utf-8-sig")
    np.save(tmp_path / "p.npy", turned)
    torch.testing.assert_close(with_probs(about, tmp_path / "p.npy", names).probs, plain)
    rows = [[f"{value:.17g}" for value in row] for row in turned]
    path = write_csv(tmp_path / "p.csv", rows, [CLASSES[k] for k in order])
    torch.testing.assert_close(with_probs(about, str(path)).probs, plain)
    with pytest.raises(ValueError, match="names its columns itself"):
        with_probs(about, path, names)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_rounded_rows_are_scaled_to_1(known, dtype):
    _, given, probs = known
    found = with_probs(subject(given), probs.numpy().astype(dtype)).probs
    torch.testing.assert_close(found.sum(1), torch.ones(len(given)))
    torch.testing.assert_close(found, probs, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda p: p[:-1], "a row for each of the 600 labelled samples, in the same order, got sh"),
        (lambda p: p[0], "a row for each of the 600 labelled samples"),
        (lambda p: p[:, :2], "a column for each of the 3 classes of the labels ('cat', 'dog', '<c"),
        (lambda p: np.log(p), "sum to 1, row 0 (counted from 0) sums to"),
        (lambda p: 1.01 * p, "sum to 1, row 0 (counted from 0) sums to 1.01"),
        (lambda p: np.where(p == p.max(), np.nan, p), "sums to nan"),
        (lambda p: p + np.array([0.2, -0.2, 0]), "with a least value of -0"),
        (lambda p: p.astype(str), "probabilities must be numbers, got <U"),
    ],
)
def test_what_are_no_probabilities_is_told_in_one_line(known, change, told):
    _, given, probs = known
    with pytest.raises(ValueError, match="pred_probs: ") as error:
        with_probs(subject(given), change(probs.numpy()))
    assert told in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["cat", "dog", "yak"], "'yak' are unknown"),
        (["cat", "dog"], "'<cow>' are missing"),
        (["cat", "cat", "dog", "<cow>"], "one comes twice"),
    ],
)
def test_classes_that_are_not_those_of_the_labels_are_named(known, tmp_path, names, told):
    _, given, probs = known
    (tmp_path / "names.txt").write_text("\n".join(names))
    with pytest.raises(ValueError, match="must be the 3 classes of the labels") as error:
        with_probs(subject(given), probs, tmp_path / "names.txt")
    assert told in str(error.value)


def test_probabilities_that_agree_with_every_label_are_remarked(known):
    _, given, _ = known
    certain = torch.eye(3)[given] * 0.9 + 0.1 / 3
    notes = with_probs(subject(given), certain).notes
    assert "they predict every label" in notes[-1]
    assert "cross-validation" in notes[-1]


def test_a_table_needs_no_features_for_them(tmp_path):
    rows = [(f"A-{n * 7}", name) for n, (_, _, name) in enumerate(animals())]
    path = write_csv(tmp_path / "animals.csv", rows, ("id", "label"))
    with pytest.raises(ValueError, match="there are no features besides 'label'"):
        read_subject(str(path))
    probs = np.full((120, 3), 1 / 3)
    found = read_subject(str(path), pred_probs=probs)
    assert found.probs.shape == (120, 3)
    assert found.ids(2) == {"id": "A-14"}
    with pytest.raises(ValueError, match="give one of the two"):
        read_subject(str(path), pred_probs=probs, features="e.npy")
    with pytest.raises(ValueError, match="classes_file is for the columns of pred_probs"):
        read_subject(str(path), classes_file="names.txt")


@pytest.mark.slow
@pytest.mark.usefixtures("single")
def test_features_of_a_file_are_what_the_network_learns_from(tmp_path):
    """The columns say nothing of the labels, the file does."""
    rows = animals(240)
    path = write_csv(tmp_path / "a.csv", [(n % 7, name) for n, (_, _, name) in enumerate(rows)],
                     ("week", "label"))  # fmt: skip
    np.save(tmp_path / "e.npy", np.array([(float(a), float(b)) for a, b, _ in rows]))
    about = read_subject(str(path), features=str(tmp_path / "e.npy"))
    assert about.dataset.train.inputs.shape == (240, 2)
    assert about.notes[-1] == "features e.npy"
    assert about.text(3) == "week=3"
    found = audit(about, folds=3, repeats=1, epochs=15, trials=False, losses=["CE"])
    assert found.method.accuracy > 0.8
    blind = audit(read_subject(str(path)), folds=3, repeats=1, epochs=15, trials=False,
                  losses=["CE"])  # fmt: skip
    assert blind.method.accuracy < 0.6
    np.save(tmp_path / "e.npy", np.zeros((239, 2)))
    with pytest.raises(ValueError, match="a row for each of the 240 rows, in the same order"):
        read_subject(str(path), features=str(tmp_path / "e.npy"))


@pytest.fixture
def single(_float64_and_seed):
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    ("data", "features", "told"),
    [
        ("digits", "bert", "features must be a .npy file, 'sentence-transformers:MODEL', 'timm:M"),
        ("digits", "timm:resnet18", "can only be chosen for images, digits has none"),
        ("digits", "sentence-transformers:x", "can only be chosen for texts, digits has none"),
        ("photos", "sentence-transformers:x", "can only be chosen for texts, photos has none"),
        ("a.npz", "sentence-transformers:x", "can only be chosen for texts, a.npz has none"),
    ],
)
def test_features_that_do_not_fit_are_refused(data, features, told):
    with pytest.raises(ValueError, match=r"features|can only") as error:
        read_subject(data, features=features)
    assert told in str(error.value)


def test_what_takes_over_a_minute_is_announced_once(monkeypatch):
    clock = iter([0.0, 5.0, 30.0, 31.0, 60.0])
    monkeypatch.setattr(timing.time, "monotonic", lambda: next(clock))
    pace = Pace("cross-validation", "its first fold")
    assert [pace(done, 15) for done in (0, 0, 1, 1, 2)] == [
        *("", ""),
        "cross-validation takes about 7 min more, as measured on its first fold",
        *("", ""),
    ]


def test_what_takes_less_is_not(monkeypatch):
    clock = iter([100.0, 103.0, 200.0])
    monkeypatch.setattr(timing.time, "monotonic", lambda: next(clock))
    pace = Pace("cross-validation", "its first fold")
    # finished folds of an interrupted audit do not count as fast ones
    assert [pace(done, 15) for done in (4, 5, 6)] == ["", "", ""]


@pytest.mark.usefixtures("single")
def test_the_estimate_is_reported_with_the_progress(tmp_path, monkeypatch):
    monkeypatch.setattr(timing, "LONG", 0.0)
    about = read_subject(str(write_csv(tmp_path / "a.csv", animals())))
    told = []
    audit(about, folds=2, repeats=2, epochs=2, trials=False, losses=["CE"],
          on_progress=told.append)  # fmt: skip
    notes = [one.note for one in told if one.note]
    assert len(notes) == 1
    assert notes[0].startswith("cross-validation takes about ")
