"""Lightning: a module that holds a loss, trained on digits, 40 % of whose labels are wrong.

    python examples/lightning_digits.py [--epochs 50] [--loss CE,BEF]
    torchrun is not needed: --devices 2 trains in two processes

Needs `pip install "lossforge[bench,lightning]"`. Prints the test accuracy with each loss. For the
command line that Lightning makes of such a module, `LightningCLI(Classifier)`, a loss is
``--model.loss lossforge.BEF --model.loss.beta -4``.

The network, Adam's learning rate, batches and epochs are those of the `digits` benchmark:
long enough for cross entropy to learn wrong labels. Stopped early, it does nearly as well.
"""

import argparse
import logging

import lightning
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import lossforge
from lossforge import data, noise
from lossforge.integrations.distributed import GlobalMean


class Classifier(lightning.LightningModule):
    """A perceptron that learns by any loss.

    Args:
        loss: The loss; its class weights, if any, are saved in checkpoints.
        lr: Adam's learning rate.
    """

    def __init__(self, loss: lossforge.Loss, lr: float = 4e-3) -> None:
        super().__init__()
        self.network = nn.Sequential(
            nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)
        )
        self.loss = GlobalMean(loss)  # with equal batches and no ignored labels, `loss` does
        self.lr = lr

    def training_step(self, batch: list[Tensor], index: int) -> Tensor:
        """Lightning's hook: the loss of a batch."""
        inputs, labels = batch
        value: Tensor = self.loss(self.network(inputs), labels)
        self.log("loss", value, on_step=False, on_epoch=True, sync_dist=True)
        return value

    def test_step(self, batch: list[Tensor], index: int) -> None:
        """Lightning's hook: the accuracy on a batch."""
        inputs, labels = batch
        hits = self.network(inputs).argmax(1) == labels
        self.log("accuracy", hits.float().mean(), sync_dist=True)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Lightning's hook."""
        return torch.optim.Adam(self.parameters(), lr=self.lr)


def main() -> None:
    """Train with each loss and print its accuracy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--loss", default="CE,BEF")
    parser.add_argument("--devices", type=int, default=1)
    options = parser.parse_args()
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    digits = data.load("digits")
    generator = torch.Generator().manual_seed(0)
    T = noise.symmetric(10, 0.4)
    given = noise.corrupt(digits.train.true, T, generator=generator).labels
    test = digits.tests["test"]
    for name in options.loss.split(","):
        lightning.seed_everything(0, verbose=False)
        trainer = lightning.Trainer(
            max_epochs=options.epochs,
            accelerator="cpu",
            devices=options.devices,
            strategy="ddp" if options.devices > 1 else "auto",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        model = Classifier(lossforge.make(name))
        loader = DataLoader(TensorDataset(digits.train.inputs, given), batch_size=256, shuffle=True)
        trainer.fit(model, loader)
        held_out = DataLoader(TensorDataset(test.inputs, test.true), batch_size=64)
        (found,) = trainer.test(model, held_out, verbose=False)
        if trainer.is_global_zero:
            print(f"{name:10}{100 * found['accuracy']:6.1f} % of the test digits", flush=True)


if __name__ == "__main__":
    main()
