"""Which loss is recommended, and why."""

import re
from dataclasses import replace

import pytest
import torch
from audit_fixtures import finding, labels, posterior

import lossforge
from lossforge.audit import CANDIDATES, estimate
from lossforge.audit.candidates import (
    admitted,
    certify_candidates,
    check_candidates,
    code_of,
    recommend,
)
from lossforge.noise import flips, symmetric
from lossforge.theory import certify


def noise(T):
    true, given = labels(900, T)
    probs = posterior(true, symmetric(3, 0.1))
    return estimate([probs], given, generator=torch.Generator().manual_seed(0), resamples=10)


@pytest.fixture(scope="module")
def found():
    return noise(symmetric(3, 0.2))


def trained(candidates, **accuracies):
    return [replace(one, accuracy=accuracies[one.name]) for one in candidates]


def test_a_candidate_has_the_certificate_of_the_theory(found):
    for one in certify_candidates(CANDIDATES, found):
        verdict = certify(lossforge.parse(one.name), found.estimate.T)
        assert (one.status, one.reason) == (verdict.status, verdict.reason)
        assert lossforge.parse(one.expression)
    assert certify_candidates(["BEF"], found)[0].status == "PROVED"
    assert certify_candidates(["CE"], found)[0].status == "REFUTED"
    assert certify_candidates(["CE"], found)[0].proved_share is None


def test_the_share_of_resamples_is_that_of_proofs(found):
    (one,) = certify_candidates(["BEF"], found)
    proofs = [certify(lossforge.BEF(), T).status == "PROVED" for T in found.resampled]
    assert one.proved_share == sum(proofs) / len(proofs)


@pytest.mark.parametrize("name", [*CANDIDATES, "gce", "0.5*GCE(q=0.7) + 0.5*MAE", "GCE(q=0.5)"])
def test_the_line_to_paste_makes_the_loss(name):
    line = code_of(name)
    function, argument = re.fullmatch(r'criterion = lossforge\.(\w+)\((?:"(.*)")?\)', line).groups()
    made = getattr(lossforge, function)(*([] if argument is None else [argument]))
    assert str(made) == str(lossforge.parse(name))


def test_the_default_is_bqf_where_it_is_proved(found):
    advice = recommend(certify_candidates(CANDIDATES, found), found)
    assert advice.name == "BQF"
    assert advice.code == "criterion = lossforge.BQF()"
    assert advice.proved
    assert "BQF is proved robust to the estimated noise" in advice.reason


def test_a_certificate_comes_before_accuracy(found):
    candidates = certify_candidates(["CE", "BEF"], found)
    assert recommend(trained(candidates, CE=0.9, BEF=0.7), found).name == "BEF"


@pytest.mark.parametrize(("better", "chosen"), [(0.6, "BEF"), (0.709, "BEF"), (0.711, "BQF")])
def test_among_proved_losses_one_that_learns_better_by_a_point_wins(found, better, chosen):
    candidates = certify_candidates(["BEF", "BQF"], found)
    advice = recommend(trained(candidates, BEF=0.7, BQF=better), found)
    assert (advice.name, advice.proved) == (chosen, True)
    assert "% of held-out labels" in advice.reason
    other = "BQF" if chosen == "BEF" else "BEF"
    assert f"the best other proved loss, {other}, " in advice.reason


def test_where_nothing_is_proved_the_one_that_learns_is_taken(found):
    candidates = certify_candidates(["CE", "GCE"], found)
    assert {one.status for one in candidates} == {"REFUTED"}
    advice = recommend(trained(candidates, CE=0.6, GCE=0.7), found)
    assert (advice.name, advice.proved) == ("GCE", False)
    assert "no candidate is proved robust" in advice.reason
    assert recommend(candidates, found).name == "CE"


def test_no_loss_is_robust_where_a_wrong_label_dominates():
    found = noise(flips(3, {1: 2}, 0.6))
    candidates = certify_candidates(["BEF", "CE"], found)
    assert {one.status for one in candidates} == {"HOPELESS"}
    advice = recommend(candidates, found)
    assert not advice.proved
    assert "no loss can be robust here" in advice.reason


def test_clean_labels_need_no_other_loss():
    found = noise(torch.eye(3, dtype=torch.float64))
    assert (
        "cross entropy would do as well"
        in recommend(certify_candidates(["BEF"], found), found).reason
    )


def test_only_losses_worth_the_time_are_trained(found):
    judged = certify_candidates(CANDIDATES, found)
    proved = [one.name for one in judged if one.status == "PROVED"]
    assert "BEF" in proved
    assert "SCE" not in proved
    assert [one.name for one in admitted(judged)] == proved
    assert [one.name for one in admitted(certify_candidates(["GCE", "SCE"], found))] == [
        "GCE",
        "SCE",
    ]


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        ([], "losses must be one or more"),
        (["BEF", "BEF"], "each once"),
        (["BEFF"], "unknown loss 'BEFF'; did you mean"),
        (["GCE(q=3)"], "q must be"),
    ],
)
def test_a_loss_that_cannot_be_made_is_named_early(names, complaint):
    with pytest.raises(ValueError, match=complaint):
        check_candidates(names)


def test_suspects_are_those_whose_label_is_wrong():
    audit = finding()
    true, given = labels()
    rows = [one.index for one in audit.suspects]
    assert len(rows) == len(set(rows))
    wrong = given != true
    assert wrong[rows].double().mean() > 0.9
    assert len(rows) > 0.7 * int(wrong.sum())
    for one in audit.suspects:
        assert one.given != one.suggested
        assert one.where == f"animals.csv:{one.index + 2}"
        assert 0 <= one.confidence < one.suggested_confidence <= 1
    margins = [one.confidence - one.suggested_confidence for one in audit.suspects]
    assert margins == sorted(margins)
