"""Two labels weighed are the expected loss under a mixed target."""

import pytest
import torch

import lossforge
from lossforge import Loss
from lossforge.integrations.timm import MixupLoss

N, CLASSES = 6, 7
LOSSES = {
    "BEF": lossforge.BEF(),
    "GCE": lossforge.GCE(),
    "sum": 0.5 * lossforge.CE() + lossforge.BQF(),
    "weight": lossforge.BEF(weight=torch.linspace(0.5, 2, CLASSES, dtype=torch.float64)),
    "smoothing": lossforge.BEF(label_smoothing=0.2),
    "reduction sum": lossforge.BEF(reduction="sum"),
    "reduction none": lossforge.BEF(reduction="none"),
}


class Forbidden(Loss):
    """A loss that refuses to be evaluated for every class."""

    def per_sample(self, logits, target):
        return -logits.log_softmax(1).gather(1, target[:, None])[:, 0]

    def expected(self, scores, weights):
        raise AssertionError("every class was evaluated")


def mixed(share=0.3):
    """Targets as timm makes them, among them a sample mixed with one of its own class."""
    first, second = torch.randint(CLASSES, (N,)), torch.randint(CLASSES, (N,))
    second[0] = first[0]
    one, other = (torch.nn.functional.one_hot(y, CLASSES).double() for y in (first, second))
    return (1 - share) * one + share * other


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5])
@pytest.mark.parametrize("name", LOSSES)
def test_value_and_gradient_are_those_of_probability_targets(name, share):
    logits, target = torch.randn(N, CLASSES, requires_grad=True), mixed(share)
    loss = LOSSES[name]
    found, expected = MixupLoss(loss)(logits, target), loss(logits, target)
    torch.testing.assert_close(found, expected)
    pair = (torch.autograd.grad(value.sum(), logits)[0] for value in (found, expected))
    torch.testing.assert_close(*pair)


def test_only_two_labels_are_evaluated():
    logits = torch.randn(N, CLASSES)
    assert torch.isfinite(MixupLoss(Forbidden())(logits, mixed()))
    with pytest.raises(AssertionError, match="every class"):
        MixupLoss(Forbidden())(logits, 0.9 * mixed() + 0.1 / CLASSES)


@pytest.mark.parametrize(
    "target",
    [
        torch.randint(CLASSES, (N,)),
        torch.full((N, CLASSES), 1 / CLASSES, dtype=torch.float64),
        torch.zeros(N, CLASSES, dtype=torch.float64),
    ],
    ids=["indices", "three and more labels", "no label"],
)
def test_other_targets_go_to_the_loss(target):
    logits = torch.randn(N, CLASSES)
    assert torch.equal(MixupLoss(LOSSES["BEF"])(logits, target), LOSSES["BEF"](logits, target))


def test_what_the_loss_refuses_is_refused():
    logits = torch.randn(N, CLASSES)
    with pytest.raises(RuntimeError, match="ignore_index must be negative"):
        MixupLoss(lossforge.BEF(ignore_index=3))(logits, mixed())
    with pytest.raises(ValueError, match="target must hold probabilities"):
        MixupLoss(lossforge.BEF())(logits, -mixed())


def test_class_weights_move_with_it():
    criterion = MixupLoss(lossforge.CE(weight=torch.ones(CLASSES))).to("meta")
    assert {buffer.device.type for buffer in criterion.buffers()} == {"meta"}
