"""Which loss is recommended, and why."""

import re

import pytest
import torch
from audit_fixtures import finding, labels, posterior

import lossforge
from lossforge.audit import CANDIDATES, estimate
from lossforge.audit.candidates import (
    CLEAR,
    USUAL,
    certify_candidates,
    check_candidates,
    code_of,
    procedure,
    recommend,
    with_trials,
)
from lossforge.audit.recipes import PROCEDURES
from lossforge.audit.trials import Trial
from lossforge.noise import flips, symmetric
from lossforge.theory import certify


def noise(T):
    true, given = labels(900, T)
    probs = posterior(true, symmetric(3, 0.1))
    return estimate([probs], given, generator=torch.Generator().manual_seed(0), resamples=10)


@pytest.fixture(scope="module")
def found():
    return noise(symmetric(3, 0.2))


def tried(candidates, **scores):
    best = max(scores.values())
    found = {name: Trial(0.6, score, 300, score >= best - 0.01) for name, score in scores.items()}
    return with_trials(candidates, found)


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


@pytest.mark.parametrize(
    ("other", "chosen"), [(0.6, "BEF"), (0.709, "BEF"), (0.711, "GCE"), (0.9, "GCE")]
)
def test_a_proof_decides_between_equals_and_no_further(found, other, chosen):
    candidates = certify_candidates(["GCE", "BEF"], found)
    advice = recommend(tried(candidates, GCE=other, BEF=0.7), found)
    assert (advice.name, advice.proved) == (chosen, chosen == "BEF")
    words = "is proved robust" if chosen == "BEF" else "no guarantee for this noise; BEF would"
    assert words in advice.reason


def test_a_procedure_is_a_candidate_like_any_loss(found):
    dropped = next(one for one in PROCEDURES if one.suspects == "drop" and not one.linear)
    candidates = certify_candidates(["BEF", "CE"], found)
    candidates.append(procedure(dropped, ("lossforge clean a.csv", "lossforge train")))
    scores = {"BEF": 0.7, "CE": 0.6, dropped.name: 0.75}
    advice = recommend(tried(candidates, **scores), found)
    assert (advice.name, advice.proved) == (dropped.name, False)
    assert advice.commands == ("lossforge clean a.csv", "lossforge train")
    assert "about 75.0 % of 300 held-out samples; next is BEF with 70.0 %" in advice.reason


def test_the_usual_procedure_is_chosen_unless_another_is_clearly_better(found):
    candidates = certify_candidates(["BEF", "GCE"], found)
    candidates += [procedure(one, ("lossforge clean",)) for one in PROCEDURES]
    scores = {"BEF": 0.7 + CLEAR - 0.001, "GCE": 0.7, USUAL: 0.7}
    advice = recommend(tried(candidates, **scores), found)
    assert (advice.name, advice.commands) == (USUAL, ("lossforge clean",))
    assert "of 300 held-out samples; BEF with 77.9 % leads by less than 8 points" in advice.reason
    later = with_trials(tried(candidates, **scores), {"GCE": Trial(0.6, 0.75, 900, True)})
    assert "GCE with 75.0 % of 900 leads by less than 8 points" in recommend(later, found).reason
    assert "no guarantee for this noise; BEF would have one" in advice.reason
    scores |= {"BEF": 0.7 + CLEAR + 0.001, "GCE": 0.7 + CLEAR + 0.002}
    assert recommend(tried(candidates, **scores), found).name == "BEF"  # level, and proved
    scores["GCE"] = 0.9
    assert recommend(tried(candidates, **scores), found).name == "GCE"
    del scores[USUAL]  # it was not tried
    assert recommend(tried(candidates, **scores), found).name == "GCE"


def test_only_those_of_the_last_round_are_compared(found):
    candidates = tried(certify_candidates(["BEF", "GCE"], found), BEF=0.7)
    candidates = with_trials(candidates, {"GCE": Trial(0.6, 0.9, 100, False)})
    assert recommend(candidates, found).name == "BEF"


def test_where_nothing_is_proved_the_best_score_wins(found):
    candidates = certify_candidates(["CE", "GCE"], found)
    assert {one.status for one in candidates} == {"REFUTED"}
    advice = recommend(tried(candidates, CE=0.6, GCE=0.605), found)
    assert (advice.name, advice.proved) == ("GCE", False)
    assert "no candidate is proved robust" in advice.reason
    assert recommend(candidates, found).name == "CE"


def test_without_trials_no_procedure_is_recommended(found):
    candidates = [procedure(PROCEDURES[0], ()), *certify_candidates(["CE", "BEF"], found)]
    assert recommend(candidates, found).name == "BEF"


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
