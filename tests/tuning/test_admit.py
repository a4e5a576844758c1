"""With `admit`, nothing is trained that is not proved robust to the noise."""

import pytest
import torch
from tiny_search import NOISE, SETTINGS

import lossforge
from lossforge.benchmark.run import prepare_data
from lossforge.noise import pair, symmetric
from lossforge.theory import certify
from lossforge.tuning import tune
from lossforge.tuning.plan import make_plan
from lossforge.tuning.score import blind, estimate_transition


def search(store, loss, admit, trials=10):
    options = {"settings": SETTINGS, "final_seeds": 0, "store": store}
    return tune("digits", NOISE, loss, trials=trials, admit=admit, **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "matrix"),
    [("BEF", pair(10, 0.3)), ("BQF", pair(10, 0.45)), ("AGCE", symmetric(10, 0.85))],
    ids=["BEF", "BQF", "AGCE"],
)
def test_trained_losses_are_proved_and_the_others_are_counted(tmp_path, loss, matrix):
    found = search(tmp_path, loss, matrix)
    assert len(found.trials) == 10
    assert found.count("rejected") > 0
    for trial in found.trials:
        verdict = certify(lossforge.parse(trial.expression), matrix, refute=False)
        assert (verdict.status == "PROVED") == (trial.state != "rejected")
    designed = [trial for trial in found.trials if trial.origin == "design"]
    assert len(designed) == (loss != "AGCE")
    assert all(trial.number == 1 and trial.state == "complete" for trial in designed)


def test_where_nothing_is_proved_nothing_is_found(tmp_path):
    found = search(tmp_path, "NLS", symmetric(10, 0.4), trials=3)
    assert found.best is None
    assert found.final == ()
    assert found.count("rejected") == 3


@pytest.mark.parametrize(
    ("admit", "complaint"),
    [
        (pair(10, 0.6), "largest"),
        (symmetric(3, 0.2), "10"),
        ("symmetric:0.4", "admit must be a matrix"),
    ],
)
def test_a_noise_that_admits_nothing_is_refused(tmp_path, admit, complaint):
    with pytest.raises((TypeError, ValueError), match=complaint):
        search(tmp_path, "BEF", admit)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_noise_is_estimated_from_given_labels_alone():
    pytest.importorskip("cleanlab")
    spec = make_plan("digits", "symmetric:0.3", "BEF").spec
    dataset = prepare_data(spec)
    with pytest.raises(ValueError, match="neither true labels nor tests"):
        estimate_transition(spec, dataset)
    found = torch.tensor(estimate_transition(spec, blind(dataset)))
    assert torch.allclose(found.sum(1), torch.ones(10))
    assert 0.1 < 1 - found.diagonal().mean().item() < 0.5
