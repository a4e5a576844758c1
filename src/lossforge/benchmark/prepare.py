"""The data and the network of a run."""

import json
import os
from dataclasses import replace
from functools import lru_cache, partial

import torch
from torch import nn

from ..data import Dataset, Split, load, subset
from ..data.dataset import members
from ..data.source import PathLike
from ..errors import SpecError
from ..models import load_weights
from ..models import make as make_model
from ..training import Samples, generator
from . import noises
from .spec import RunSpec


def samples(dataset: Dataset, split: Split) -> Samples:
    """A split as training takes it."""
    return Samples(partial(dataset.transform, split.inputs), split.given, split.true)


@lru_cache(maxsize=1)
def _load(name: str, options: str, data_dir: str | None) -> Dataset:
    """A worker does many runs on one data set, and reads it once."""
    return load(name, data_dir=data_dir, **json.loads(options))


def prepare_data(spec: RunSpec, data_dir: PathLike | None = None, *, split: int = 0) -> Dataset:
    """The data of a run: loaded, made noisy, cut down, its validation part held out.

    Args:
        spec: The run.
        data_dir: Where the data are, instead of the usual folders.
        split: Which of the possible parts is held out; 0 is that of the run.
    """
    folder = None if data_dir is None else os.fspath(data_dir)
    dataset = _load(spec.data, json.dumps(spec.data_options, sort_keys=True), folder)
    given = noises.given_labels(dataset, spec.noise, spec.seed, data_dir=data_dir)
    dataset = dataset.with_noise(given)
    if spec.subset is not None:
        dataset = replace(dataset, train=_balanced(dataset, spec.subset))
    if spec.hold_out:
        chance = generator(spec.seed, "hold out", *([split] if split else []))
        dataset = dataset.hold_out(spec.hold_out, generator=chance)
    return dataset


def _balanced(dataset: Dataset, size: int) -> Split:
    """The first samples of each class, equally many."""
    train = dataset.train
    labels = train.given if train.true is None else train.true
    share = size // dataset.num_classes
    chosen = torch.cat([group[:share] for group in members(labels)])
    if len(chosen) != size:
        raise SpecError(
            f"subset must be a multiple of the {dataset.num_classes} classes of {dataset.name}, "
            f"with at most as many samples as each has, got {size}"
        )
    return subset(train, chosen.sort().values)


def prepare_model(spec: RunSpec, dataset: Dataset) -> nn.Module:
    """The network of a run; its initial weights depend on the seed alone."""
    probe = dataset.transform(dataset.train.inputs, torch.tensor([0]), None)
    model = make_model(
        spec.model,
        dataset.num_classes,
        inputs=tuple(probe.shape[1:]),
        generator=generator(spec.seed, "init"),
        **spec.model_options,
    )
    if spec.weights is not None:
        load_weights(model, spec.weights, head="new")
    return model
