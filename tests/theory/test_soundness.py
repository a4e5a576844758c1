"""Verdicts against a search that knows only the definitions: what is proved has no counterexample.

Also the other way round: what is refuted comes with numbers that contradict the claim by
themselves, and few problems are left open. That the search would notice a wrong verdict is tested
beside it.
"""

import json
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
import torch
from problems import Problem, draw_confusion, draw_loss, highest_rate, problems, row_at
from search import reproduce, search, search_rows

from lossforge import BinaryReduction, TargetSeparation
from lossforge.base import ExponentialDecay, Linear, Log
from lossforge.loss import Loss
from lossforge.theory import certify

FEW = 30  # problems that `make test` poses
FIRST, CHUNK, CHUNKS = 200, 250, 8  # problems whose shares of verdicts are checked, in parts
OPEN = 0.02  # the largest share of problems without a verdict
GLOBAL_CLASSES = 30  # W of binary reduction is a sum over all pairs
Summary = Callable[[str, object], None]


def judge(problem: Problem, claim: str) -> str:
    """The status of a problem, once it is checked against the search or its own witness."""
    verdict = certify(problem.loss, problem.noise, claim=claim)
    assert verdict.claim == claim
    if verdict.status == "PROVED":
        assert verdict.witness is None
        found = search_rows(problem.loss, *problem.rows(), claim)
        assert found is None, f"{problem.description}: proved ({verdict.rule}), but {found}"
    if verdict.status == "REFUTED":
        printed = json.loads(json.dumps(verdict.to_dict()))["witness"]
        assert printed is not None, problem.description
        check_row(problem, printed)
        value, relative = reproduce(printed, problem.loss, claim)
        what = f"{problem.description}: {claim} refuted by {printed}, which gives {value}"
        assert relative > 1e-13, what
        if claim != "global":
            assert value == pytest.approx(printed["value"], rel=1e-6), what
        else:
            # the limit at the target is bounded below here, and may be larger
            assert printed["value"] > 0, what
    return str(verdict.status)


def check_row(problem: Problem, printed: dict) -> None:
    """A witness must be about a row of the problem."""
    rows, targets = problem.rows()
    distance = (rows - torch.tensor(printed["weights"])).abs().amax(1)
    row = int(distance.argmin())
    assert float(distance[row]) < 1e-12
    assert int(targets[row]) == printed["target"]


def judge_all(first: int, count: int, claim: str, summary: Summary) -> Counter[str]:
    chosen = problems(count, start=first)
    if claim == "global":
        chosen = (problem for problem in chosen if problem.num_classes <= GLOBAL_CLASSES)
    counts = Counter(judge(problem, claim) for problem in chosen)
    text = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    summary("summary", f"certify, claim {claim}, problems from {first}: {text}")
    return counts


def check_shares(counts: Counter[str]) -> None:
    total = counts.total()
    assert counts["UNDECIDED"] + counts["UNCERTIFIED"] <= OPEN * total, counts
    assert counts["PROVED"] >= 0.3 * total, counts
    assert counts["REFUTED"] >= 0.15 * total, counts


def test_monotone_fast(record_property: Summary) -> None:
    counts = judge_all(0, FEW, "monotone", record_property)
    assert counts["PROVED"] > 0
    assert counts["REFUTED"] > 0


@pytest.mark.slow
def test_shares_of_the_first_problems(record_property: Summary) -> None:
    check_shares(judge_all(0, FIRST, "monotone", record_property))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_monotone(chunk: int, record_property: Summary) -> None:
    check_shares(judge_all(FIRST + chunk * CHUNK, CHUNK, "monotone", record_property))


@pytest.mark.parametrize("claim", ["global", "transfers"])
def test_other_claims_fast(claim: str, record_property: Summary) -> None:
    counts = judge_all(0, FEW, claim, record_property)
    assert counts["PROVED"] > 0
    assert counts["REFUTED"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(4))
@pytest.mark.parametrize("claim", ["global", "transfers"])
def test_other_claims(claim: str, chunk: int, record_property: Summary) -> None:
    counts = judge_all(FEW + 120 * chunk, 120, claim, record_property)
    assert counts["PROVED"] > 0
    assert counts["REFUTED"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(4))
def test_monotone_where_the_search_turns(chunk: int, record_property: Summary) -> None:
    """Rates around the one at which the search begins to find something: the true frontier.

    That of `problems` is of transfers, and lies lower for some target separation.
    """
    counts = Counter[str]()
    for number in range(6):
        random = np.random.default_rng((2, chunk, number))
        classes = int(random.integers(3, 30))
        loss, *_ = draw_loss(random, classes)
        kind, confusion = draw_confusion(random, classes)
        edge = turning_rate(loss, confusion[0])
        for factor in (0.99, 0.999, 1.001, 1.01):
            eta = min(factor * edge, highest_rate(confusion[0]))
            row = row_at(eta, confusion[0])
            text = f"{loss} under {kind} noise {eta}, {classes} classes, {factor} of the edge"
            problem = Problem(loss, row, classes, text, eta, edge, near=True)
            counts[judge(problem, "monotone")] += 1
    text = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    record_property("summary", f"certify, claim monotone, where the search turns: {text}")
    assert counts["PROVED"] > 0
    assert counts["REFUTED"] > 0


def turning_rate(loss: Loss, confusion: torch.Tensor) -> float:
    """The smallest rate at which the search finds a contradiction, by bisection."""
    low, high = 0.0, highest_rate(confusion)
    if search(loss, row_at(high, confusion), 0) is None:
        return high
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        if search(loss, row_at(middle, confusion), 0) is None:
            low = middle
        else:
            high = middle
    return high


@pytest.mark.parametrize(
    "loss",
    [
        BinaryReduction(ExponentialDecay(2.0), label_smoothing=0.5),
        BinaryReduction(Linear(), weight=torch.tensor([1.0, 9.0, 1.0])),
    ],
    ids=["smoothed labels", "class weights"],
)
def test_nothing_is_proved_that_a_policy_undoes(loss: Loss) -> None:
    """Both are monotone at this row without their policy, and not with it."""
    row = torch.tensor([0.6, 0.3, 0.1])
    z = torch.log(torch.tensor([[0.946, 0.054, 1e-9]])).requires_grad_()
    (gradient,) = torch.autograd.grad(loss(z, row[None]), z)
    assert float(gradient[0, 0]) > 1e-4
    try:
        verdict = certify(loss, row)
    except (TypeError, ValueError):
        return
    assert verdict.status != "PROVED"


def test_unbounded_below_at_the_target_is_no_infinite_cost() -> None:
    """With tau = 1 cross entropy is linear in the logits, and W falls without end towards e_t."""
    row = torch.tensor([0.6, 0.35, 0.05])
    verdict = certify(TargetSeparation(Log(), tau=1), row, claim="global")
    assert verdict.status != "PROVED"
    assert verdict.witness is None or verdict.witness.value < float("inf")
