"""Corners of the catalogue that once went wrong, and published numbers read off once more."""

import math

import pytest
import torch
from laws import assert_close, value_and_gradient

import lossforge
from lossforge import CE, NCE, BackwardCorrection, ForwardCorrection, LogitClip, Sharpened, base
from lossforge.catalog.entry import BY_IDENTIFIER
from lossforge.catalog.parse import _BASES, _CONSTRUCTIONS

ZERO_COLUMN = torch.tensor([[0.9, 0.0, 0.1], [0.5, 0.0, 0.5], [0.1, 0.0, 0.9]])


@pytest.mark.parametrize("loss", [CE(), lossforge.BEF()], ids=["CE", "BEF"])
def test_forward_correction_with_a_label_that_is_never_given(loss: lossforge.Loss) -> None:
    logits = torch.randn(4, 3, requires_grad=True)
    value = ForwardCorrection(loss, ZERO_COLUMN.double())(logits, torch.tensor([0, 2, 2, 0]))
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(logits.grad).all()


def test_forward_correction_with_a_masked_class() -> None:
    logits = torch.randn(4, 3)
    logits[:, 1] = -math.inf
    logits.requires_grad_()
    target = torch.tensor([0, 2, 2, 0])
    value = ForwardCorrection(CE(), torch.eye(3))(logits, target)
    value.backward()
    assert_close(value, CE()(logits, target))
    assert torch.isfinite(logits.grad).all()


def test_forward_correction_is_the_same_for_one_label_and_for_all() -> None:
    T = torch.rand(4, 4).softmax(-1)
    logits, target = torch.randn(5, 4), torch.randint(4, (5,))
    loss = ForwardCorrection(lossforge.GCE(), T)
    one_hot = torch.nn.functional.one_hot(target, 4).double()
    assert_close(loss(logits, target), loss(logits, one_hot))


def test_normalised_losses_of_a_zero_probability_share_their_bound() -> None:
    probs = torch.tensor([[0.5, 0.5, 0.0, 0.0]])
    assert NCE(scale=3.0).from_probs(probs, torch.tensor([2])) == 1.5
    assert NCE().from_probs(probs, torch.tensor([0])) == 0
    assert torch.isfinite(lossforge.make("ANL-CE").from_probs(probs, torch.tensor([3])))


def test_wrappers_have_defaults() -> None:
    logits, target = 5 * torch.randn(4, 3), torch.tensor([0, 1, 2, 0])
    assert_close(LogitClip(CE())(logits, target), lossforge.make("CE+LC")(logits, target))


@pytest.mark.parametrize("size", [1e20, 1e-25])
def test_clipping_survives_logits_whose_squares_do_not(size: float) -> None:
    logits = torch.tensor([[size, -size, 0.0]], dtype=torch.float32)
    target = torch.tensor([1])
    for loss in (LogitClip(CE()), Sharpened(CE())):
        expected = loss(logits.double(), target)
        assert loss(logits, target).item() == pytest.approx(expected.item(), rel=1e-6)


def test_complementary_labels_keep_what_is_ignored() -> None:
    target = torch.tensor([-100, 1, 255])
    drawn = lossforge.complementary_labels(target, 3, 5, ignore_index=-100)
    assert (drawn[0] == -100).all()
    assert (drawn[1] != 1).all()
    with pytest.raises(ValueError, match="target must be"):
        lossforge.complementary_labels(target[None], 3)


def test_backward_correction_follows_the_module() -> None:
    T = torch.tensor([[0.8, 0.2], [0.3, 0.7]])
    loss = BackwardCorrection(CE(), T).to(torch.float32)
    logits = torch.randn(4, 2, dtype=torch.float32)
    assert loss(logits, torch.tensor([0, 1, 1, 0])).dtype == torch.float32


def test_only_the_logit_clip_shares_its_name_with_a_construction() -> None:
    assert BY_IDENTIFIER.keys() & (_BASES.keys() | _CONSTRUCTIONS.keys()) == {"logitclip"}


def test_official_logit_clip_takes_no_preset() -> None:
    with pytest.raises(ValueError, match=r"CE\+LC"):
        lossforge.make("LogitClip-official", preset="cifar10")
    with pytest.raises(ValueError, match="temp must be positive"):
        lossforge.make("LogitClip-official", temp=0.0)


@pytest.mark.parametrize(
    ("name", "preset", "noise", "expected"),
    [
        ("GCE", "webvision", None, {"q": 0.6}),
        ("SCE", "cifar10", None, {"alpha": 0.1, "beta": 1.0}),
        ("SCE", "cifar100", None, {"alpha": 6.0, "beta": 0.1}),
        ("SCE", "clothing1m", None, {"alpha": 10.0, "beta": 1.0}),
        ("NCE+RCE", "cifar100", None, {"alpha": 10.0, "beta": 0.1}),
        ("NCE+AUL", "cifar10", None, {"alpha": 1.0, "beta": 4.0, "a": 6.3, "q": 1.5}),
        ("NCE+AUL", "cifar100", None, {"alpha": 10.0, "beta": 0.015, "a": 6.0, "q": 3.0}),
        ("NCE+AGCE", "cifar10", None, {"alpha": 1.0, "beta": 4.0, "a": 6.0, "q": 1.5}),
        ("NCE+AGCE", "cifar100", None, {"alpha": 10.0, "beta": 0.1, "a": 1.8, "q": 3.0}),
        ("NCE+AGCE", "webvision", None, {"alpha": 50.0, "beta": 0.1, "a": 2.5, "q": 3.0}),
        ("ANL-CE", "cifar10", None, {"alpha": 5.0, "beta": 5.0}),
        ("ANL-CE", "cifar100", None, {"alpha": 10.0, "beta": 1.0}),
        ("JAL-CE", "cifar10", None, {"alpha": 1.0, "beta": 1.0, "a": 30.0}),
        ("JAL-CE", "cifar100", None, {"alpha": 5.0, "beta": 1.0, "a": 20.0}),
        ("JAL-CE", "clothing1m", None, {"alpha": 5.0, "beta": 0.1, "a": 5.0}),
        ("CEeps+MAE", "cifar10", "symmetric:0.8", {"alpha": 0.01, "beta": 5.0, "m": 1e5}),
        ("CEeps+MAE", "cifar10", "asymmetric:0.4", {"alpha": 0.02, "beta": 5.0, "m": 1e3}),
        ("CEeps+MAE", "cifar100", "symmetric:0.4", {"alpha": 0.03, "beta": 1.0, "m": 1e4}),
        ("CE+LC", "cifar10", "symmetric:0.4", {"delta": 1.0}),
        ("CE+LC", "cifar10", "symmetric:0.6", {"delta": 1.5}),
        ("CE+LC", "cifar10", "asymmetric:0.4", {"delta": 2.5}),
        ("JS", "cifar10", "symmetric:0.4", {"weights": (0.7, 0.3)}),
        ("AUL", "cifar10", None, {"a": 5.5, "q": 3.0}),
        ("AGCE", "webvision", None, {"a": 1e-5, "q": 0.5}),
        ("AEL", "mnist", None, {"a": 3.5}),
    ],
)
def test_published_settings(name: str, preset: str, noise: str | None, expected: dict) -> None:
    found = lossforge.catalog.select(preset, name, noise).parameters
    for parameter, value in expected.items():
        assert found[parameter] == pytest.approx(value), parameter


def test_truncated_base_has_no_gradient_below() -> None:
    function = base.Truncated(base.Log(), 0.1)
    x = torch.tensor([0.05, 0.5], requires_grad=True)
    (gradient,) = torch.autograd.grad(function.h(x).sum(), x)
    assert_close(gradient, torch.tensor([0.0, -2.0]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("size", [1e30, 1e-10, 1e-20, 1e-30, 1e-40, 0.0])
@pytest.mark.parametrize("loss", [Sharpened(CE()), lossforge.make("SR")], ids=["sharpened", "SR"])
def test_sharpening_depends_on_the_direction_down_to_tiny_logits(loss, size, dtype) -> None:
    direction = torch.randn(3, 5)
    logits, target = (size * direction).to(dtype), torch.tensor([0, 1, 2])
    value, gradient = value_and_gradient(lambda z: loss(z, target), logits)
    assert torch.isfinite(gradient).all()
    if size > torch.finfo(dtype).tiny:
        expected, slope = value_and_gradient(lambda z: loss(z, target), direction)
        assert_close(value, expected, dtype)
        assert_close(gradient.double() * size, slope, dtype)
    else:  # no direction is left, or its derivative is out of range
        assert_close(value, loss(0 * direction, target), dtype)


INNER = {
    "CE": CE(),
    "MAE": lossforge.MAE(),
    "NCE": NCE(),
    "TS": lossforge.TargetSeparation(lossforge.base.Log(), tau=1),
    "BR": lossforge.BinaryReduction(lossforge.base.Log()),
    "eps-softmax": lossforge.EpsSoftmax(CE()),
    "clipped": LogitClip(CE()),
}


@pytest.mark.parametrize("loss", INNER.values(), ids=INNER.keys())
def test_backward_correction_stays_unbiased_on_the_remaining_classes(loss) -> None:
    T = torch.tensor(
        [[0.7, 0.2, 0.1, 0.0], [0.0, 0.8, 0.1, 0.1], [0.1, 0.1, 0.6, 0.2], [0, 0, 0, 1]]
    )
    corrected = lossforge.BackwardCorrection(loss, T)
    logits, kept = torch.tensor([0.3, -1.0, -torch.inf, 0.8]), [0, 1, 3]
    value, gradient = value_and_gradient(lambda z: corrected(z[None], torch.tensor([1])), logits)
    inverse = torch.linalg.inv(T)[1]
    expected = [inverse[c] * loss(logits[kept], torch.tensor(i)) for i, c in enumerate(kept)]
    assert_close(value, sum(expected))
    assert torch.isfinite(gradient).all()
    assert gradient[2] == 0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", ["ECE", "EFL", "FLeps+MAE"])
def test_relaxing_a_confident_prediction_is_finite_for_every_weight(name, dtype) -> None:
    z = torch.tensor([[200.0, 0.0], [40.0, 0.0], [1.0, 0.0]], dtype=dtype)
    for exponent in range(-60, 61):
        loss = lossforge.make(name, m=10 ** (exponent / 10))
        value, gradient = value_and_gradient(lambda x, f=loss: f(x, torch.tensor([0, 0, 0])), z)
        assert value >= 0
        assert gradient.isfinite().all()


@pytest.mark.parametrize("name", ["NNCE", "NNFL", "ANL-CE", "ANL-FL"])
def test_flat_predictions_below_eps_have_a_value_and_a_gradient(name: str) -> None:
    loss, z = lossforge.make(name, eps=0.01), torch.zeros(2, 200)
    for target in (torch.tensor([0, 1]), torch.rand(2, 200)):
        value, gradient = value_and_gradient(lambda x, t=target: loss(x, t), z)
        assert value.isfinite()
        assert gradient.isfinite().all()
