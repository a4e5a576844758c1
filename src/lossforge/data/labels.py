"""The training labels of a data set under a label noise."""

import torch
from torch import Generator, Tensor

from ..errors import SpecError, unknown
from ..noise import NoiseSpec, corrupt, instance_dependent
from .dataset import Dataset
from .human import human_labels, instance_labels
from .registry import SOURCES
from .source import PathLike, Source

_UNLISTED = Source("", "", 0)  # a user's own data set


def check_noise(noise: NoiseSpec, data: str) -> None:
    """Raise a `SpecError` unless a data set can have this noise, before anything is loaded."""
    source = SOURCES.get(data, _UNLISTED)
    if noise.kind == "matrix":
        noise.transition(source.num_classes or None)
    if noise.weights is not None and noise.weights.ndim == 1:
        raise SpecError(f"{noise} describes one instance, not the labels of {data}")
    if noise.kind == "human":
        if not source.human_labels:
            annotated = ", ".join(name for name, one in SOURCES.items() if one.human_labels)
            raise SpecError(f"human labels are known for {annotated}, not for {data}")
        if noise.name is None:
            example = f"human:{source.human_labels[0]}"
            raise SpecError(f"human noise needs the name of a set of labels, such as {example}")
        if noise.name not in source.human_labels:
            raise unknown(f"human labels of {data}", noise.name, source.human_labels)
    elif noise.kind not in ("clean", "given", "matrix") and noise.rate is None:
        raise SpecError(f"{noise} needs a rate, such as {noise}:0.4")
    frozen = source.instance_rates
    if noise.kind == "instance" and frozen and noise.rate not in frozen:
        rates = ", ".join(map(str, frozen))
        raise SpecError(f"instance labels of {data} are {rates}, got {str(noise)!r}")


def label_files(noise: NoiseSpec, data: str) -> str | None:
    """Name the data source whose files hold the labels of this noise, if files hold them."""
    if noise.kind == "human":
        return "cifar-n"
    if noise.kind == "instance" and SOURCES.get(data, _UNLISTED).instance_rates:
        return f"{data}-idn"
    return None


def noisy_labels(
    dataset: Dataset,
    noise: NoiseSpec,
    *,
    generator: Generator,
    data_dir: PathLike | None = None,
) -> Tensor:
    """Return the given training labels of a data set under a noise.

    Asymmetric noise follows the class map of the data set where the noise names none (digits take
    that of MNIST), and moves each class to the next where the data set has none either.

    Args:
        dataset: With its true labels, unless the noise is "given" or "human".
        noise: See `lossforge.noise.NoiseSpec`.
        generator: The source of randomness: the same state gives the same labels.
        data_dir: Where files of labels are, instead of the usual folders.
    """
    check_noise(noise, dataset.name)
    source = SOURCES.get(dataset.name, _UNLISTED)
    if noise.kind == "given":
        return dataset.train.given
    if noise.kind == "human":
        found = human_labels(dataset.name, noise.name, data_dir=data_dir)  # type: ignore[arg-type]
        return found.given
    true = dataset.train.true
    if true is None:
        raise SpecError(f"the true labels of {dataset.name} are not known; noise must be given")
    if noise.kind == "clean":
        return true
    if noise.kind == "instance":
        assert noise.rate is not None
        if source.instance_rates:
            return instance_labels(dataset.name, noise.rate, data_dir=data_dir)  # type: ignore[arg-type]
        inputs = dataset.train.inputs
        features = inputs if isinstance(inputs, Tensor) else inputs[torch.arange(len(inputs))]
        return instance_dependent(
            features, true, dataset.num_classes, noise.rate, generator=generator
        ).labels
    matrix = noise.transition(dataset.num_classes, source.class_map)
    return corrupt(true, matrix, generator=generator).labels
