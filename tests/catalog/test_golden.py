"""Values and gradients of the official code of the papers, run in double precision.

A released clamp that is no parameter of the published loss does not exist here, so the cases where
it bites differ; by how much is derived from the clamp, and the number of such cases is printed.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from laws import value_and_gradient
from torch import Tensor

import lossforge

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "losses.json").read_text())
IDS = [f"{case['loss']}-{case['set']}" for case in GOLDEN]
CLAMPED = [case for case in GOLDEN if "CLAMP ACTIVE" in case["note"]]
RTOL = ATOL = 1e-9

# Losses whose released focal factor carries no gradient.
DETACHED = {"FL", "NFL", "NFL+RCE"}


def uniform(k: int, rate: float) -> Tensor:
    T = torch.full((k, k), rate / (k - 1))
    return T.fill_diagonal_(1 - rate)


def pair(k: int, rate: float) -> Tensor:
    eye = torch.eye(k)
    return (1 - rate) * eye + rate * eye.roll(1, 1)  # row i goes to i + 1


def make(case: dict[str, Any]) -> lossforge.Loss:
    """The loss of a golden case: its parameters are ours, with three exceptions.

    | parameter | here |
    |---|---|
    | eps of RCE, GCE, SCE | a clamp, dropped |
    | T: a name | the matrix |
    | (focal factors) | stop_gradient=True |
    """
    name, parameters = case["loss"], dict(case["params"])
    if name in {"RCE", "GCE", "SCE"}:
        parameters.pop("eps")
    if "T" in parameters:
        kind = {"uniform0.2": (uniform, 0.2), "pair0.4": (pair, 0.4)}[parameters["T"]]
        parameters["T"] = kind[0](len(case["logits"][0]), kind[1])
    if name in DETACHED:
        parameters["stop_gradient"] = True
    return lossforge.make(name, **parameters)


def errors(case: dict[str, Any]) -> tuple[float, float]:
    """Our mean minus the released one, and the largest difference in the gradient."""
    target = torch.tensor(case["labels"])
    loss = make(case)
    value, gradient = value_and_gradient(lambda z: loss(z, target), torch.tensor(case["logits"]))
    difference = (gradient - torch.tensor(case["grad"])).abs().max()
    return value.item() - case["value"], difference.item()


def agrees(case: dict[str, Any], value: float, gradient: float) -> bool:
    return abs(value) <= RTOL * abs(case["value"]) and gradient <= ATOL


@pytest.mark.parametrize("case", GOLDEN, ids=IDS)
def test_value_and_gradient_are_the_released_ones(case: dict[str, Any]) -> None:
    value, gradient = errors(case)
    if case in CLAMPED:
        assert abs(value) <= BOUNDS[case["loss"]](case)[0] + RTOL * abs(case["value"])
        assert gradient <= BOUNDS[case["loss"]](case)[1] + ATOL
    else:
        assert abs(value) <= RTOL * abs(case["value"])
        assert gradient <= ATOL


# What the clamped entries can contribute to the mean and to one entry of the gradient.


def probabilities(case: dict[str, Any]) -> tuple[Tensor, Tensor]:
    u = torch.softmax(torch.tensor(case["logits"]), 1)
    return u, u.gather(1, torch.tensor(case["labels"])[:, None])[:, 0]


def reverse(case: dict[str, Any]) -> tuple[float, float]:
    """-ln(1e-4) max(p_k, 1e-8) for every other class: each entry moves by less than 1e-8."""
    clamped = (probabilities(case)[0] < 1e-8).sum(1)
    each = case["params"].get("beta", 1.0) * -math.log(1e-4) * 1e-8
    return each * clamped.double().mean().item(), each * clamped.max().item() / len(clamped)


def generalised(case: dict[str, Any]) -> tuple[float, float]:
    """The value is 1/q at 0 and (1 - eps^q)/q at the clamp; p times the slope is below eps^q."""
    q, eps = case["params"]["q"], case["params"]["eps"]
    clamped = (probabilities(case)[1] < eps).double().mean().item()
    return clamped * eps**q / q, eps**q / len(case["labels"]) * (clamped > 0)


def eps_softmax(case: dict[str, Any]) -> tuple[float, float]:
    """The released log stops at 1e-8, ours goes on: by -ln(q_y / 1e-8), with a gradient below 1."""
    u, p = probabilities(case)
    m, alpha = case["params"]["m"], case["params"]["alpha"]
    top = u.max(1).values
    mapped = torch.where(p == top, p + m, p) / (1 + m)
    beyond = -torch.log(mapped / 1e-8).clamp(max=0)
    return alpha * beyond.mean().item(), alpha / len(p) * bool((beyond > 0).any())


def divergence(case: dict[str, Any]) -> tuple[float, float]:
    """p_k ln(p_k / m_k) for m_k = p_k / 2 below 1e-7 is p_k ln 2; the clamped one is below it."""
    u, _ = probabilities(case)
    few = (u < 2e-7).sum(1).double()
    each = 2 / math.log(2) * 1e-7
    return each * few.mean().item(), 2 * each * few.max().item() / len(u)


def corrected(case: dict[str, Any]) -> tuple[float, float]:
    """Every p_i moves by at most 1e-7 and sum_i p_i T[i, y] is at least 0.2 / (K - 1)."""
    u, _ = probabilities(case)
    k = u.shape[1]
    each = k * 1e-7 / (0.2 / (k - 1))
    return each, 2 * each / len(u)


def none(case: dict[str, Any]) -> tuple[float, float]:
    """The floor is a parameter here too, or lies outside what the loss can see."""
    return 0.0, 0.0


BOUNDS: dict[str, Callable[[dict[str, Any]], tuple[float, float]]] = {
    "RCE": reverse,
    "SCE": reverse,
    "NCE+RCE": reverse,
    "NFL+RCE": reverse,
    "GCE": generalised,
    "ECE+MAE": eps_softmax,
    "JS": divergence,
    "forward": corrected,
    "NNCE": none,
    "ANL-CE": none,
    "SR": none,
}


def test_only_released_clamps_differ(record_property) -> None:
    differing = [case for case in GOLDEN if not agrees(case, *errors(case))]
    assert all(case in CLAMPED for case in differing)
    bounded = {case["loss"] for case in CLAMPED if max(BOUNDS[case["loss"]](case)) > 0}
    assert {case["loss"] for case in differing} == bounded
    worst = max(abs(errors(case)[0] / case["value"]) for case in differing)
    record_property(
        "summary",
        f"golden losses: {len(GOLDEN)} cases, {len(CLAMPED)} with an active released clamp, "
        f"{len(differing)} of these differ, by at most {worst:.1e} of the value",
    )


def test_clamped_eps_softmax_differs_by_exactly_the_missing_logarithm() -> None:
    for case in CLAMPED:
        if case["loss"] == "ECE+MAE":
            assert errors(case)[0] == pytest.approx(eps_softmax(case)[0], rel=1e-9)


def test_golden_file_is_complete() -> None:
    assert len(GOLDEN) == 149
    assert len({case["loss"] for case in GOLDEN}) == 27
    assert len(set(IDS)) == len(IDS)
