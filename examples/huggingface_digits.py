"""Hugging Face Trainer: a small vision transformer on digits, 40 % of whose labels are wrong.

    python examples/huggingface_digits.py [--epochs 60] [--loss CE,BEF]

Needs `pip install "lossforge[bench,hf]"`. Nothing is downloaded: the transformer starts from random
weights, the images are scikit-learn's. Prints the test accuracy with each loss.
"""

import argparse
import tempfile

import numpy as np
import torch
from torch import Tensor
from transformers import (
    EvalPrediction,
    PrinterCallback,
    Trainer,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
    set_seed,
)
from transformers.utils import logging

import lossforge
from lossforge import data, noise
from lossforge.integrations.huggingface import loss_func


def accuracy(prediction: EvalPrediction) -> dict[str, float]:
    """The share of right predictions."""
    hits = np.asarray(prediction.predictions).argmax(1) == prediction.label_ids
    return {"accuracy": float(hits.mean())}


def rows(inputs: Tensor, labels: Tensor) -> list[dict[str, Tensor]]:
    """Samples by the names of the model's arguments."""
    images = inputs.unflatten(1, (1, 8, 8))
    pairs = zip(images, labels, strict=True)
    return [{"pixel_values": image, "labels": label} for image, label in pairs]


def train(name: str, epochs: int, folder: str) -> float:
    """Test accuracy after training with a loss.

    Args:
        name: Name of the loss in the catalogue.
        epochs: Passes over the training data.
        folder: Where `Trainer` may write.
    """
    digits = data.load("digits")
    generator = torch.Generator().manual_seed(0)
    T = noise.symmetric(10, 0.4)
    given = noise.corrupt(digits.train.true, T, generator=generator).labels
    test = digits.tests["test"]
    set_seed(0)
    config = ViTConfig(
        image_size=8,
        patch_size=2,
        num_channels=1,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        num_labels=10,
    )
    args = TrainingArguments(
        output_dir=folder,
        num_train_epochs=epochs,
        learning_rate=5e-4,
        warmup_steps=50,
        per_device_train_batch_size=32,
        gradient_accumulation_steps=2,  # the steps are those of batches of 64
        per_device_eval_batch_size=359,
        use_cpu=not torch.cuda.is_available(),
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    trainer = Trainer(
        ViTForImageClassification(config),
        args,
        train_dataset=rows(digits.train.inputs, given),
        compute_loss_func=loss_func(lossforge.make(name)),
        compute_metrics=accuracy,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return float(trainer.evaluate(rows(test.inputs, test.true))["eval_accuracy"])


def main() -> None:
    """Train with each loss and print its accuracy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--loss", default="CE,BEF")
    options = parser.parse_args()
    logging.set_verbosity_error()
    with tempfile.TemporaryDirectory() as folder:
        for name in options.loss.split(","):
            found = train(name, options.epochs, folder)
            print(f"{name:10}{100 * found:6.1f} % of the test digits", flush=True)


if __name__ == "__main__":
    main()
