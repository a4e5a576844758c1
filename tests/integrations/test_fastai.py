"""A fastai `Learner` finds in the loss all that it asks for."""

import pytest
import torch
from frameworks import need, torchvision_without_operators
from torch import nn
from torch.utils.data import TensorDataset

import lossforge
from lossforge.integrations.fastai import LossFunc

torchvision_without_operators()
need("fastai.learner", "fastai.callback.mixup")

from fastai.callback.mixup import CutMix, MixUp  # noqa: E402
from fastai.data.core import DataLoaders  # noqa: E402
from fastai.data.load import DataLoader  # noqa: E402
from fastai.learner import Learner, load_learner  # noqa: E402
from fastai.losses import CrossEntropyLossFlat  # noqa: E402
from fastai.metrics import accuracy  # noqa: E402
from fastai.torch_core import TensorCategory, TensorImage, TensorMask  # noqa: E402

pytestmark = [
    pytest.mark.usefixtures("float32"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:fastai.*"),
    pytest.mark.filterwarnings("ignore::UserWarning:fastai.*"),
]
CLASSES, N = 3, 48


class Samples(TensorDataset):
    def new_empty(self):
        """What `export` keeps of them."""
        return Samples(*(tensor[:0] for tensor in self.tensors))


def learner(loss_func, tmp_path, *callbacks, shape=(6,)):
    """Three classes that a linear model can tell apart."""
    labels = torch.arange(N) % CLASSES
    inputs = 0.3 * torch.randn(N, *shape)
    inputs.view(N, -1)[:, :CLASSES] += 2 * nn.functional.one_hot(labels, CLASSES)
    loaders = DataLoaders(
        DataLoader(Samples(inputs, labels), bs=16, shuffle=True),
        DataLoader(Samples(inputs, labels), bs=16),
        device="cpu",
    )
    size = inputs[0].numel()
    model = nn.Sequential(nn.Flatten(), nn.Linear(size, CLASSES))
    cbs, metrics = list(callbacks), accuracy
    return Learner(loaders, model, loss_func, lr=0.1, cbs=cbs, metrics=metrics, path=tmp_path)


def quiet(learn, action, *args, **settings):
    with learn.no_logging():
        return getattr(learn, action)(*args, **settings)


def test_it_learns_and_predicts_probabilities(tmp_path):
    learn = learner(LossFunc(lossforge.BEF()), tmp_path)
    quiet(learn, "fit", 4)
    probs, labels, decoded = quiet(learn, "get_preds", with_decoded=True)
    assert torch.allclose(probs.sum(1), torch.ones(N), atol=1e-6)
    assert torch.equal(decoded, probs.argmax(1))
    assert (decoded == labels).float().mean() > 0.95
    loss, share = quiet(learn, "validate")
    logits = learn.model(learn.dls.valid.dataset.tensors[0])
    assert loss == pytest.approx(lossforge.BEF()(logits, labels).item(), rel=1e-4)
    assert share == pytest.approx(float((decoded == labels).float().mean()))


def test_without_it_predictions_are_logits(tmp_path):
    probs, _ = quiet(learner(lossforge.BEF(), tmp_path), "get_preds")
    assert not torch.allclose(probs.sum(1), torch.ones(N), atol=1e-3)


def test_losses_of_single_samples(tmp_path):
    learn = learner(LossFunc(lossforge.BEF()), tmp_path)
    _, labels, losses = quiet(learn, "get_preds", with_loss=True)
    logits = learn.model(learn.dls.valid.dataset.tensors[0])
    each = lossforge.BEF(reduction="none")(logits, labels)
    torch.testing.assert_close(torch.as_tensor(losses), each.detach())
    assert learn.loss_func.reduction == "mean"


@pytest.mark.parametrize("mix", [MixUp, CutMix])
def test_mixed_batches_are_expected_losses(mix, tmp_path):
    callback = mix(1.0)
    learn = learner(LossFunc(lossforge.BEF()), tmp_path, callback, shape=(1, 4, 4))
    seen = []

    def after_loss(loss):
        share = torch.as_tensor(callback.lam).expand(len(learn.yb[0]))[:, None]
        first, second = (nn.functional.one_hot(torch.as_tensor(y[0]), CLASSES) for y in mixed())
        target = share * second + (1 - share) * first
        seen.append((loss, lossforge.BEF()(torch.as_tensor(learn.pred), target)))

    def mixed():
        return callback.yb1, learn.yb

    learn.add_cb(after_loss_callback(after_loss))
    quiet(learn, "fit", 1)
    assert len(seen) == 3
    for found, expected in seen:
        torch.testing.assert_close(found, expected)
    assert learn.loss_func.reduction == "mean"


def after_loss_callback(function):
    from fastai.callback.core import Callback

    class Watch(Callback):
        def after_loss(self):
            if self.training:
                function(torch.as_tensor(self.learn.loss).detach().clone())

    return Watch()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("shape", "axis"), [((4, 5), -1), ((4, 2, 5), -1), ((4, 5, 3, 2), 1)])
def test_cross_entropy_is_that_of_fastai(shape, axis, reduction):
    labels = torch.randint(5, shape).select(axis, 0).clone()
    labels.view(-1)[0] = -100
    logits = TensorImage(torch.randn(shape))
    theirs = CrossEntropyLossFlat(axis=axis, reduction=reduction)
    ours = LossFunc(lossforge.CE(reduction=reduction), axis=axis)
    for kind in (TensorMask, TensorCategory):
        found, expected = ours(logits, kind(labels)), theirs(logits, kind(labels))
        expected = torch.as_tensor(expected)
        if reduction == "none" and axis == 1:  # theirs are in the order of transposed images
            expected = expected.view(4, 2, 3).transpose(1, 2).flatten()
        torch.testing.assert_close(found, expected)
    torch.testing.assert_close(ours.activation(logits), theirs.activation(logits))
    assert torch.equal(ours.decodes(logits), theirs.decodes(logits))


def test_an_exported_learner_predicts_the_same(tmp_path):
    learn = learner(LossFunc(lossforge.BEF()), tmp_path)
    expected, _ = quiet(learn, "get_preds")
    learn.export("learner.pkl")
    again = load_learner(tmp_path / "learner.pkl")
    again.dls = learn.dls
    torch.testing.assert_close(quiet(again, "get_preds")[0], expected)
