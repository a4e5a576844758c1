"""Label noise of runs, by the seed of the run."""

from torch import Tensor

from ..data import Dataset, check_noise, noisy_labels
from ..data.source import PathLike
from ..noise import NoiseSpec
from ..training import generator as make_generator


def check(text: str, data: str) -> NoiseSpec:
    """Read a noise, or say what is wrong with it for a data set."""
    noise = NoiseSpec.parse(text)
    check_noise(noise, data)
    return noise


def given_labels(
    dataset: Dataset, text: str, seed: int, *, data_dir: PathLike | None = None
) -> Tensor:
    """The training labels of a data set under a noise; they depend on the seed alone."""
    noise, generator = NoiseSpec.parse(text), make_generator(seed, "noise")
    return noisy_labels(dataset, noise, generator=generator, data_dir=data_dir)
