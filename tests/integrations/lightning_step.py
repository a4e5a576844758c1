"""One step of Lightning's trainer; as a script, in two processes.

python lightning_step.py FOLDER DEVICES
"""

import os
import sys

import lightning
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import lossforge
from lossforge.integrations.distributed import GlobalMean

CLASSES = 3
QUIET = {
    "logger": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "accelerator": "cpu",
}


class Model(lightning.LightningModule):
    """A linear classifier that writes down the gradient of its first step."""

    def __init__(self, loss: lossforge.Loss, lr: float = 0.1, together: bool = False) -> None:
        super().__init__()
        self.layer = nn.Linear(4, CLASSES)
        nn.init.constant_(self.layer.weight, 0.1)
        nn.init.zeros_(self.layer.bias)
        self.loss = GlobalMean(loss) if together else loss
        self.lr = lr
        self.gradients: list[Tensor] = []

    def training_step(self, batch: list[Tensor], index: int) -> Tensor:
        inputs, labels = batch
        value: Tensor = self.loss(self.layer(inputs), labels)
        self.log("loss", value, on_epoch=True, on_step=False, sync_dist=True)
        return value

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        self.gradients.append(self.layer.weight.grad.clone())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=self.lr)


def samples() -> TensorDataset:
    """Eight samples; of each pair that two processes share out, one has no label half the time."""
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(8, 4, generator=generator)
    labels = torch.randint(CLASSES, (8,), generator=generator)
    labels[:6:2] = -100  # processes take turns: the first is left with one label of four
    return TensorDataset(inputs, labels)


def one_step(devices: int, loss: lossforge.Loss, together: bool) -> tuple[Tensor, float]:
    """The first gradient, and the loss that was logged."""
    model = Model(loss, together=together)
    trainer = lightning.Trainer(
        max_steps=1,
        devices=devices,
        strategy="ddp" if devices > 1 else "auto",
        enable_checkpointing=False,
        **QUIET,
    )
    trainer.fit(model, DataLoader(samples(), batch_size=8 // devices))
    return model.gradients[0], float(trainer.callback_metrics["loss"])


def main() -> None:
    folder, devices = sys.argv[1], int(sys.argv[2])
    found = {kind: one_step(devices, lossforge.BEF(), kind) for kind in (True, False)}
    torch.save(found, f"{folder}/{os.environ.get('LOCAL_RANK', '0')}.pt")


if __name__ == "__main__":
    main()
