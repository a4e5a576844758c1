"""Label noise as text: "symmetric:0.4", "asymmetric:0.4", "human:worst"."""

from typing import Literal

import torch
from torch import Tensor

from ..data import Dataset, human_labels, instance_labels
from ..data.roots import PathLike
from ..errors import SpecError
from ..noise import asymmetric, corrupt, instance_dependent, pair, symmetric
from ..training import generator as make_generator

KINDS = ("clean", "given", "symmetric", "pair", "asymmetric", "instance", "human")
HUMAN = {
    "cifar10": ("aggregate", "random1", "random2", "random3", "worst"),
    "cifar100": ("noisy",),
}
FROZEN = ("cifar10", "cifar100")
MAPS: dict[str, Literal["cifar10", "cifar100", "mnist"]] = {
    "cifar10": "cifar10",
    "cifar100": "cifar100",
    "digits": "mnist",
}


def check(text: str, data: str) -> tuple[str, str]:
    """Read a noise, or say what is wrong with it; returns its kind and its rate or name.

    Args:
        text: "clean", "given" (labels as they come), a kind and a rate such as "symmetric:0.4", or
            "human:" and the name of a label set.
        data: The data set it is for.
    """
    kind, _, detail = text.partition(":")
    rule = f"noise must be clean, given, {', '.join(KINDS[2:-1])} with a rate, or human:NAME"
    if kind not in KINDS or (kind in ("clean", "given")) != (detail == ""):
        raise SpecError(f"{rule}, got {text!r}")
    if kind == "human":
        known = HUMAN.get(data)
        if known is None:
            raise SpecError(f"human labels are known for {', '.join(HUMAN)}, not for {data}")
        if detail not in known:
            raise SpecError(f"human labels of {data} are {', '.join(known)}, got {detail!r}")
    elif detail:
        try:
            rate = float(detail)
        except ValueError:
            raise SpecError(f"{rule}, got {text!r}") from None
        if not 0 < rate <= 1:
            raise SpecError(f"the rate of noise must be in (0, 1], got {text!r}")
        if kind == "instance" and data in FROZEN and rate not in (0.2, 0.4, 0.6):
            raise SpecError(f"instance labels of {data} are 0.2, 0.4 and 0.6, got {text!r}")
    return kind, detail


def given_labels(
    dataset: Dataset, text: str, seed: int, *, data_dir: PathLike | None = None
) -> Tensor:
    """The training labels of a data set under a noise; they depend on the seed alone.

    Asymmetric noise follows the map of the literature where there is one (digits take that of
    MNIST), and moves each class to the next elsewhere.
    """
    kind, detail = check(text, dataset.name)
    true = dataset.train.true
    if kind == "given":
        return dataset.train.given
    if kind == "human":
        labels = human_labels(dataset.name, detail, data_dir=data_dir)  # type: ignore[arg-type]
        return labels.given
    if true is None:
        raise SpecError(f"the true labels of {dataset.name} are not known; noise must be given")
    if kind == "clean":
        return true
    rate = float(detail)
    generator = make_generator(seed, "noise")
    if kind == "instance":
        if dataset.name in FROZEN:
            return instance_labels(dataset.name, rate, data_dir=data_dir)  # type: ignore[arg-type]
        inputs = dataset.train.inputs
        features = inputs if isinstance(inputs, Tensor) else inputs[torch.arange(len(inputs))]
        return instance_dependent(
            features, true, dataset.num_classes, rate, generator=generator
        ).labels
    return corrupt(true, _matrix(kind, dataset, rate), generator=generator).labels


def _matrix(kind: str, dataset: Dataset, rate: float) -> Tensor:
    if kind == "symmetric":
        return symmetric(dataset.num_classes, rate)
    if kind == "asymmetric" and dataset.name in MAPS:
        return asymmetric(MAPS[dataset.name], rate)
    return pair(dataset.num_classes, rate)
