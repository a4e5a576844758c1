"""How good a loss is, by held-out noisy labels alone."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from ..benchmark.prepare import prepare_data, prepare_model, samples
from ..benchmark.spec import RunSpec
from ..catalog import parse
from ..data import Dataset
from ..data.source import PathLike
from ..training import State, train
from .blind import blind

LAST = 5  # epochs whose mean is the score: neighbouring epochs differ by luck


@dataclass(frozen=True)
class Objective:
    """Trains with a loss, and scores it on the held-out noisy labels.

    Args:
        spec: The run, whose loss is replaced.
        datasets: From `blind`, one for each held-out part: true labels and tests are refused.
        device: Where to train.
    """

    spec: RunSpec
    datasets: Sequence[Dataset] = field(repr=False)
    device: str = "cpu"

    def __post_init__(self) -> None:
        if not all(one.is_blind and one.validation is not None for one in self.datasets):
            raise ValueError("datasets must hold out a part, and neither true labels nor tests")

    def __call__(self, expression: str, on_epoch: Callable[[int, float], object]) -> float:
        """The mean accuracy in % on held-out noisy labels over the last epochs and all parts.

        Args:
            expression: A loss.
            on_epoch: Called with every epoch, counted from 1 and on from one held-out part to the
                next, and the score as it then stands.
        """
        torch.set_num_threads(self.spec.threads)
        scores: list[float] = []

        def tell(state: State) -> None:
            epoch = len(scores) * self.spec.settings.epochs + state.epoch
            on_epoch(epoch, statistics.fmean([*scores, state.metrics[-1]["validation"]]))

        for dataset in self.datasets:
            assert dataset.validation is not None
            state = train(
                prepare_model(self.spec, dataset),
                parse(expression),
                samples(dataset, dataset.train),
                {},
                self.spec.settings,
                seed=self.spec.seed,
                validation=samples(dataset, dataset.validation),
                device=self.device,
                on_epoch=tell,
            )
            scores.append(statistics.fmean(row["validation"] for row in state.metrics[-LAST:]))
        return statistics.fmean(scores)


def visible(spec: RunSpec, splits: int, data_dir: PathLike | None = None) -> list[Dataset]:
    """What a search may see: the noisy labels of a run, with each of several parts held out."""
    return [blind(prepare_data(spec, data_dir, split=split)) for split in range(splits)]
