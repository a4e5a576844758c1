"""How good a loss is, by held-out noisy labels alone."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from ..benchmark.prepare import prepare_model, samples
from ..benchmark.spec import RunSpec
from ..catalog import parse
from ..data import Dataset
from ..training import State, train
from .blind import is_blind

LAST = 5  # epochs whose mean is the score: neighbouring epochs differ by luck


@dataclass(frozen=True)
class Objective:
    """Trains with a loss, and scores it on the held-out noisy labels.

    Args:
        spec: The run, whose loss is replaced.
        dataset: From `blind`: true labels and tests are refused.
        device: Where to train.
    """

    spec: RunSpec
    dataset: Dataset = field(repr=False)
    device: str = "cpu"

    def __post_init__(self) -> None:
        if not is_blind(self.dataset) or self.dataset.validation is None:
            raise ValueError("dataset must hold out a part, and neither true labels nor tests")

    def __call__(self, expression: str, on_epoch: Callable[[int, float], object]) -> float:
        """The mean accuracy in % on held-out noisy labels over the last epochs.

        Args:
            expression: A loss.
            on_epoch: Called with every epoch, counted from 1, and the accuracy after it.
        """
        assert self.dataset.validation is not None
        torch.set_num_threads(self.spec.threads)

        def tell(state: State) -> None:
            on_epoch(state.epoch, state.metrics[-1]["validation"])

        state = train(
            prepare_model(self.spec, self.dataset),
            parse(expression),
            samples(self.dataset, self.dataset.train),
            {},
            self.spec.settings,
            seed=self.spec.seed,
            validation=samples(self.dataset, self.dataset.validation),
            device=self.device,
            on_epoch=tell,
        )
        return statistics.fmean(row["validation"] for row in state.metrics[-LAST:])
