"""The noise in the labels that a search sees, from predictions out of sample."""

from dataclasses import replace
from typing import Any

import torch

from ..benchmark.prepare import logits_of, prepare_model, samples
from ..benchmark.spec import RunSpec
from ..catalog import parse
from ..data import Dataset, subset
from ..noise import estimate_noise
from ..theory import read_noise
from ..training import generator, train

FOLDS = 4
EPOCHS = 10  # cross entropy fits noise later


def estimate(spec: RunSpec, dataset: Dataset, *, device: str = "cpu") -> list[Any]:
    """The transition matrix of the training labels: cross entropy, trained briefly on folds.

    Args:
        spec: The run whose network and optimizer are used, for at most ten epochs.
        dataset: From `blind`.
        device: Where to train.

    Raises:
        ValueError: If a wrong class is estimated to be the most frequent label of a class.
    """
    if not dataset.is_blind:
        raise ValueError("dataset must hold neither true labels nor tests")
    torch.set_num_threads(spec.threads)
    split = dataset.train
    folds = torch.randperm(len(split), generator=generator(spec.seed, "folds")) % FOLDS
    probs = torch.zeros(len(split), dataset.num_classes)
    settings = replace(spec.settings, epochs=min(EPOCHS, spec.settings.epochs), l1_decay=0.0)
    for fold in range(FOLDS):
        outside, inside = ((folds != fold).nonzero()[:, 0], (folds == fold).nonzero()[:, 0])
        model = prepare_model(spec, dataset)
        seen = samples(dataset, subset(split, outside))
        train(model, parse("CE"), seen, {}, settings, seed=spec.seed, device=device)
        unseen = samples(dataset, subset(split, inside))
        probs[inside] = logits_of(model, unseen, device).float().softmax(1)
    found = estimate_noise(probs, split.given)
    try:
        return list(read_noise(found.T, dataset.num_classes).weights.tolist())
    except ValueError as error:
        raise ValueError(
            f"the noise in these labels cannot be estimated well enough to admit losses: {error}"
        ) from None
