"""What fastai's adapter does that needs no fastai."""

import pickle

import pytest
import torch

import lossforge
from lossforge.integrations.fastai import LossFunc


def test_axis_says_where_the_classes_are():
    logits, labels = torch.randn(2, 3, 4), torch.randint(3, (2, 4))
    expected = lossforge.BEF()(logits, labels)
    assert torch.allclose(LossFunc(lossforge.BEF(), axis=1)(logits, labels), expected)
    last = logits.movedim(1, -1)
    assert torch.allclose(LossFunc(lossforge.BEF())(last, labels.int()), expected)
    target = logits.softmax(1)
    expected = lossforge.BEF()(logits, target)
    assert torch.allclose(LossFunc(lossforge.BEF(), axis=1)(logits, target), expected)


def test_reduction_is_the_losses_own_and_can_be_set():
    loss_func = LossFunc(lossforge.BEF(), axis=1)
    assert loss_func.reduction == "mean"
    loss_func.reduction = "none"
    assert loss_func(torch.randn(2, 3, 4), torch.randint(3, (2, 4))).shape == (8,)
    loss_func.reduction = "median"
    with pytest.raises(ValueError, match="reduction must be one of"):
        loss_func(torch.randn(2, 3), torch.tensor([0, 1]))


def test_it_pickles_and_moves():
    loss_func = LossFunc(lossforge.CE(weight=torch.ones(3)), axis=1)
    again = pickle.loads(pickle.dumps(loss_func))
    assert (again.axis, again.y_int) == (1, True)
    assert again.to("meta").loss.weight.device.type == "meta"
