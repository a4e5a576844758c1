"""timm's own Mixup and task, with our losses."""

import numpy as np
import pytest
import torch
from frameworks import need, torchvision_without_operators

import lossforge
from lossforge.integrations.timm import MixupLoss

torchvision_without_operators()
need("timm")

import timm  # noqa: E402
from timm.data import Mixup  # noqa: E402
from timm.loss import SoftTargetCrossEntropy  # noqa: E402
from timm.optim import create_optimizer_v2  # noqa: E402
from timm.task import ClassificationTask  # noqa: E402

pytestmark = pytest.mark.usefixtures("float32")
CLASSES = 5


def batch():
    return torch.rand(8, 3, 32, 32), torch.randint(CLASSES, (8,))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("mode", ["batch", "pair", "elem"])
@pytest.mark.parametrize("alphas", [(0.8, 0.0), (0.0, 1.0)], ids=["mixup", "cutmix"])
def test_targets_of_timm_are_taken(alphas, mode, smoothing):
    np.random.seed(0)
    mixup = Mixup(*alphas, mode=mode, label_smoothing=smoothing, num_classes=CLASSES)
    _, target = mixup(*batch())
    assert target.shape == (8, CLASSES)
    logits = torch.randn(8, CLASSES)
    found, loss = MixupLoss(lossforge.BEF())(logits, target), lossforge.BEF()
    torch.testing.assert_close(found, loss(logits, target))
    # and by hand, class for class
    values = [loss(logits[i : i + 1], torch.tensor([k])) for i in range(8) for k in range(CLASSES)]
    expected = (torch.stack(values).view(8, CLASSES) * target).sum(1).mean()
    torch.testing.assert_close(found, expected)


def test_cross_entropy_is_that_of_timm():
    _, target = Mixup(0.8, num_classes=CLASSES)(*batch())
    logits = torch.randn(8, CLASSES)
    expected = SoftTargetCrossEntropy()(logits, target)
    torch.testing.assert_close(MixupLoss(lossforge.CE())(logits, target), expected)


def test_a_task_trains_with_it():
    images, labels = batch()
    model = timm.create_model("test_resnet.r160_in1k", num_classes=CLASSES)
    task = ClassificationTask(model, MixupLoss(lossforge.BEF()))
    optimizer = create_optimizer_v2(model, opt="adamw", lr=1e-2)
    mixup = Mixup(0.2, label_smoothing=0.0, num_classes=CLASSES)
    values = []
    for _ in range(12):
        optimizer.zero_grad()
        result = task(*mixup(images.clone(), labels))
        result["loss"].backward()
        optimizer.step()
        values.append(result["loss"].item())
    assert result["output"].shape == (8, CLASSES)
    assert np.mean(values[-3:]) < 0.8 * values[0]


def test_autocast_trains_with_it():
    model = timm.create_model("test_resnet.r160_in1k", num_classes=CLASSES)
    task = ClassificationTask(model, MixupLoss(lossforge.BEF()))
    with torch.autocast("cpu", torch.bfloat16):
        result = task(*Mixup(0.8, label_smoothing=0.0, num_classes=CLASSES)(*batch()))
    assert result["output"].dtype == torch.bfloat16
    assert result["loss"].dtype == torch.float32
    result["loss"].backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters())
