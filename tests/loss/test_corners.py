"""Corners that once went wrong: each test failed before its mend."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from laws import assert_close
from torch._subclasses.fake_tensor import FakeTensorMode

import lossforge
from lossforge import BEF, CE, BinaryReduction, TargetSeparation, base
from lossforge.errors import SpecError


def test_second_derivative_of_separated_focal_loss() -> None:
    loss = TargetSeparation(base.Focal(2.0), tau=0.5)
    logits = torch.randn(3, 4, requires_grad=True)
    target = torch.tensor([0, 1, 2])
    assert torch.autograd.gradgradcheck(lambda z: loss(z, target), logits)


@pytest.mark.parametrize(
    "derivative",
    [
        lambda x: -torch.exp(-10 * x),
        lambda x: -torch.exp(-40 * x),
        lambda x: -torch.exp(-200 * (x - 0.5) ** 2),
        lambda x: -(1 - x) - 1e-6,
    ],
    ids=["decay-10", "decay-40", "narrow", "almost-zero"],
)
def test_derivatives_of_wide_range_are_resolved(derivative) -> None:
    function = base.from_derivative(derivative)
    x = torch.linspace(0, 1, 33)
    assert_close(function.phi(x), -derivative(x))
    nodes, weights = np.polynomial.legendre.leggauss(400)
    grid = torch.tensor((nodes + 1) / 2)
    area = float((-derivative(grid) * torch.tensor(weights / 2)).sum())
    assert float(function.h(0.0)) == pytest.approx(area, rel=1e-10)
    assert float(function.H(1.0)) == pytest.approx(area, rel=1e-10)


@pytest.mark.parametrize("classes", [256, 300])
def test_byte_labels_with_many_classes(classes: int) -> None:
    logits = torch.randn(4, classes)
    target = torch.tensor([100, 1, 2, 255], dtype=torch.uint8)
    assert_close(CE()(logits, target), F.cross_entropy(logits, target))


def test_gradient_of_a_masked_label_is_that_of_torch() -> None:
    logits = torch.tensor([[0.3, -math.inf, 1.0], [0.1, 0.2, 0.3]], requires_grad=True)
    target = torch.tensor([1, 0])
    (ours,) = torch.autograd.grad(CE()(logits, target), logits)
    (reference,) = torch.autograd.grad(F.cross_entropy(logits, target), logits)
    assert_close(ours, reference)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_probabilities_are_rounded_once(dtype: torch.dtype) -> None:
    probs = (3 * torch.randn(64, 10)).softmax(1).to(dtype)
    target = torch.randint(10, (64,))
    loss = BEF(reduction="none")
    expected = loss(probs.float().log(), target).to(dtype)
    assert torch.equal(loss.from_probs(probs, target), expected)


def test_a_zero_probability_counts_for_nothing_under_a_zero_weight() -> None:
    probs = target = torch.tensor([[1.0, 0.0]])
    assert CE().from_probs(probs, target) == 0
    assert BinaryReduction(base.Log()).from_probs(probs, target) == 0


def test_numpy_parameters_print_as_numbers() -> None:
    loss = np.float64(0.5) * BEF(beta=np.float64(-4.0), lam=np.float64(0.75), tau=np.float64(2.0))
    assert "np." not in str(loss)
    logits, target = torch.randn(3, 4), torch.tensor([0, 1, 2])
    assert_close(lossforge.parse(str(loss))(logits, target), loss(logits, target))


def test_fake_tensors_pass_through() -> None:
    with FakeTensorMode():
        assert BEF()(torch.randn(3, 4), torch.randint(4, (3,))).shape == ()


def test_default_device_does_not_matter() -> None:
    probs, target = torch.randn(3, 4).softmax(1), torch.tensor([0, 1, 2])
    reference = BEF().from_probs(probs, target)
    with torch.device("meta"):
        assert float(base.Exponential().h(0.5)) > 0
        assert_close(BEF().from_probs(probs, target), reference)


def test_single_sample_has_a_scalar_loss() -> None:
    logits, target = torch.randn(5), torch.tensor([2])
    ours = CE(reduction="none")(logits, target)
    assert ours.shape == F.cross_entropy(logits, target, reduction="none").shape


def test_ignore_index_may_be_any_integer() -> None:
    logits, target = torch.randn(3, 4), torch.tensor([0, 3, 2])
    expected = F.cross_entropy(logits, target, ignore_index=3)
    assert_close(CE(ignore_index=np.int64(3))(logits, target), expected)


@pytest.mark.parametrize(
    "text", ["1" + "0" * 400 + "*CE()", "-" * 5000 + "CE"], ids=["big", "deep"]
)
def test_monstrous_text_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="characters"):
        lossforge.parse(text)


def test_numbers_in_text_may_be_computed() -> None:
    assert str(lossforge.parse("2*3*TS(linear(), tau=1/2)")) == "6*TS(linear(scale=1), tau=0.5)"


def test_names_that_differ_by_a_sign_stay_apart() -> None:
    assert str(lossforge.parse("0.5*NL")) == "0.5*NL"
    assert str(lossforge.parse("NL+")) == "NLPlus"


def test_a_term_without_weight_is_not_evaluated() -> None:
    class Refuses(lossforge.Loss):
        def per_sample(self, logits, target):
            raise AssertionError

    loss = CE() + 0.0 * Refuses()
    logits, target = torch.randn(3, 4), torch.tensor([0, 1, 2])
    assert_close(loss(logits, target), F.cross_entropy(logits, target))


def test_an_unresolvable_beta_is_named() -> None:
    with pytest.raises(ValueError, match=r"beta must be .*, got -100000"):
        base.Exponential(beta=-1e5)
