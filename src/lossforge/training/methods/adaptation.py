"""The noise-adaptation layer: a transition matrix that is learnt with the network."""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from ...errors import check_integer
from ..evaluate import predict
from ..method import Batch, Epoch, Method
from .transition import label_shares, noisy_log_probs

LEAST = 1e-8  # added to the counted shares before their logarithm, of the released code
LAYER = "layer"  # its name in the memory, in which the state of its optimizer follows it


@dataclass(frozen=True, kw_only=True)
class NoiseAdaptation(Method):
    r"""Train the network and a transition matrix on top of it, :math:`T = \mathrm{softmax}(W)`.

    The network is first trained with the loss alone. W is then set to the logarithm of the shares
    of given labels among the training samples of each predicted class, and both are trained
    together with the loss of :math:`u T`; tests are of u. W is trained by an optimizer like that of
    the network, without decay.

    Args:
        warm_up: Epochs without the layer, 1 or more.

    References:
        Goldberger and Ben-Reuven, Training Deep Neural-networks Using a Noise Adaptation Layer,
        ICLR 2017. https://openreview.net/forum?id=H12GRgcxg
    """

    name: ClassVar[str] = "adaptation"
    distributed: ClassVar[bool] = False
    warm_up: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("warm_up", self.warm_up, 1)

    def begin(self, epoch: Epoch) -> None:
        if epoch.number != self.warm_up:
            return
        network, given = epoch.networks[0], epoch.samples.given
        labelled = given != epoch.loss.ignore_index
        logits = predict(network.model, epoch.samples)[labelled]
        shares = label_shares(logits.argmax(1), given[labelled], logits.shape[1])
        weights = (shares + LEAST).log().to(logits.dtype)
        epoch.memory[LAYER] = weights.to(network.device)

    def values(self, epoch: Epoch, batch: Batch, logits: Tensor) -> Tensor:
        if epoch.number < self.warm_up:
            return super().values(epoch, batch, logits)
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        layer = nn.Parameter(epoch.memory[LAYER].clone())
        values = epoch.loss(noisy_log_probs(wide, layer.log_softmax(1)), batch.target)
        mean = values.sum() / (batch.kept if epoch.loss.mean else 1)
        (layer.grad,) = torch.autograd.grad(mean, layer, retain_graph=True)
        # The graph of the values keeps the matrix that they were made with.
        step_in_memory(epoch, layer)
        return values


def step_in_memory(epoch: Epoch, layer: nn.Parameter) -> None:
    """Take a step of a layer along its gradient, by an optimizer whose state is in the memory."""
    settings = epoch.networks[0].settings
    lr = settings.learning_rate(epoch.number)
    moved = nn.Parameter(layer.detach().clone())
    moved.grad = layer.grad
    optimizer = replace(settings, weight_decay=0.0).make_optimizer([moved])
    prefix = f"{LAYER}."
    saved = {
        name.removeprefix(prefix): value
        for name, value in epoch.memory.items()
        if name.startswith(prefix)
    }
    if saved:
        optimizer.state[moved] = saved
    optimizer.param_groups[0]["lr"] = lr
    optimizer.step()
    epoch.memory[LAYER] = moved.detach()
    for name, value in optimizer.state[moved].items():
        if value is not None:  # SGD without momentum keeps none
            epoch.memory[prefix + name] = value
