"""A causal language model tuned on questions, 40 % of whose answers are wrong.

    python examples/huggingface_answers.py [--epochs 15] [--loss CE,BEF] [--seeds 3]

Needs `pip install "lossforge[hf]"`. Nothing is downloaded: a tiny Llama starts from random weights.
A question is a subject among five words that do not matter; every subject has one right answer. The
model may learn these, or by the other words learn each wrong answer by heart. Prints how many new
questions it answers rightly with each loss, which is computed without ever making all logits.
"""

import argparse
import statistics

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.utils import logging

import lossforge
from lossforge import noise
from lossforge.integrations.huggingface import use_linear_loss

SUBJECTS, WORDS = 20, 80  # of the vocabulary, with an answer for each subject


def questions(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Tokens (count, 6), and which of the answers is right."""
    subjects = torch.randint(SUBJECTS, (count,), generator=generator)
    words = torch.randint(WORDS, (count, 6), generator=generator) + 2 * SUBJECTS
    places = torch.randint(6, (count,), generator=generator)
    words[torch.arange(count), places] = subjects
    return words, subjects


def train(name: str, seed: int, epochs: int) -> float:
    """Share of new questions that are answered rightly.

    Args:
        name: Name of the loss in the catalogue.
        seed: Of the questions, the wrong answers and the weights.
        epochs: Passes over the training data.
    """
    generator = torch.Generator().manual_seed(seed)
    asked, answers = questions(2000, generator)
    T = noise.symmetric(SUBJECTS, 0.4)
    given = noise.corrupt(answers, T, generator=generator).labels
    sequences = torch.cat([asked, given[:, None] + SUBJECTS], 1)
    labels = sequences.clone()
    labels[:, :-1] = -100  # of the question nothing is predicted

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=2 * SUBJECTS + WORDS,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
    )
    model = LlamaForCausalLM(config)
    use_linear_loss(model, lossforge.make(name))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for _ in range(epochs):
        for part in torch.randperm(len(sequences), generator=generator).split(100):
            loss = model(input_ids=sequences[part], labels=labels[part]).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    asked, answers = questions(2000, generator)
    with torch.no_grad():
        logits = model(input_ids=asked, logits_to_keep=1).logits[:, 0]
    return float((logits.argmax(1) == answers + SUBJECTS).double().mean())


def main() -> None:
    """Train with each loss and print its accuracy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--loss", default="CE,BEF")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    logging.set_verbosity_error()
    for name in options.loss.split(","):
        found = [100 * train(name, seed, options.epochs) for seed in range(options.seeds)]
        spread = statistics.stdev(found) if len(found) > 1 else 0.0
        mean = statistics.mean(found)
        print(f"{name:10}{mean:6.1f} % of the new questions, +- {spread:.1f}", flush=True)


if __name__ == "__main__":
    main()
