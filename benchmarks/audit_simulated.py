"""Simulated cases for the audit: real data with noise whose truth is known.

Inputs are cached features: pixels of digits, 30 measurements of tumours, and for requests of 20
intents the 64 first singular vectors of their TF-IDF features. Four kinds of noise:

* symmetric: every other class equally likely;
* similar: the class with the nearest centroid (with two classes, one of them is mistaken);
* mixed: two thirds similar, one third symmetric, as in a table of support tickets;
* hard: samples nearer to another class's centroid are mislabelled as it more often.
"""

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Generator, Tensor

from lossforge.data import Dataset, Split, load
from lossforge.data.dataset import subset
from lossforge.noise import corrupt, flips, symmetric

INTENTS, DIMENSIONS, ROWS, TESTS = 20, 64, 640, 500
SIMILAR = 2 / 3  # of mixed noise
HARDNESS, SUREST = 1.5, 0.9


@dataclass(frozen=True)
class Case:
    """A data set, its noise, and the seed of both and of everything else."""

    data: str
    kind: str
    rate: float
    seed: int


@lru_cache
def _load(name: str) -> Dataset:
    return load(name)


def make(case: Case) -> tuple[Dataset, Tensor]:
    """Return the clean data of a case, and the noisy labels of its training part."""
    chance = torch.Generator().manual_seed(case.seed)
    dataset = _features(_part(_load(case.data), chance))
    return dataset, _noisy(dataset, case.kind, case.rate, chance)


def _part(dataset: Dataset, chance: Generator) -> Dataset:
    """Draw 20 intents of many, and at most 640 rows to train and 500 to test."""
    classes = dataset.num_classes
    chosen = torch.arange(classes)
    if classes > INTENTS:
        chosen = torch.randperm(classes, generator=chance)[:INTENTS].sort().values
    number = torch.full((classes,), -1)
    number[chosen] = torch.arange(len(chosen))

    def part(split: Split, most: int) -> Split:
        assert split.true is not None
        rows = (number[split.true] >= 0).nonzero()[:, 0]
        rows = rows[torch.randperm(len(rows), generator=chance)[:most]].sort().values
        found = subset(split, rows)
        labels = number[split.true[rows]]
        return Split(found.inputs, labels, labels)

    names = tuple(dataset.classes[place] for place in chosen)
    tests = {"test": part(dataset.tests["test"], TESTS)}
    return Dataset(dataset.name, names, part(dataset.train, ROWS), tests)


def _features(dataset: Dataset) -> Dataset:
    """Reduce many dimensions to the first singular vectors of the training inputs."""
    train, test = dataset.train, dataset.tests["test"]
    assert isinstance(train.inputs, Tensor)
    assert isinstance(test.inputs, Tensor)
    used = train.inputs.abs().sum(0) > 0
    axes = torch.eye(int(used.sum()))
    if len(axes) > DIMENSIONS:
        with torch.random.fork_rng():
            torch.manual_seed(0)  # torch's algorithm draws from the global generator
            axes = torch.svd_lowrank(train.inputs[:, used], q=DIMENSIONS, niter=4)[2]
    scale = (train.inputs[:, used] @ axes).std()
    seen, unseen = (one.inputs[:, used] @ axes / scale for one in (train, test))  # type: ignore[index]
    tests = {"test": Split(unseen, test.given, test.true)}
    return Dataset(dataset.name, dataset.classes, Split(seen, train.given, train.true), tests)


def _noisy(dataset: Dataset, kind: str, rate: float, chance: Generator) -> Tensor:
    true, classes = dataset.train.true, dataset.num_classes
    assert true is not None
    distances = _distances(dataset)
    if kind == "hard":
        return _hard(distances, true, rate, chance)
    matrix = symmetric(classes, rate)
    if kind != "symmetric":
        near = _nearest(distances, true, classes)
        similar = flips(classes, near, rate)
        share = SIMILAR if kind == "mixed" else 1.0
        matrix = share * similar + (1 - share) * matrix
    return corrupt(true, matrix, generator=chance).labels


def _distances(dataset: Dataset) -> Tensor:
    """Distance of each training sample to the centroid of each class (N, K)."""
    inputs, true = dataset.train.inputs, dataset.train.true
    assert isinstance(inputs, Tensor)
    centroids = [inputs[true == k].mean(0) for k in range(dataset.num_classes)]
    return torch.cdist(inputs, torch.stack(centroids))


def _nearest(distances: Tensor, true: Tensor, classes: int) -> dict[int, int]:
    """The class that each class is mistaken for; with two, only the first is mistaken."""
    if classes == 2:
        return {0: 1}
    means = torch.stack([distances[true == k].mean(0) for k in range(classes)])
    means.fill_diagonal_(float("inf"))
    return dict(enumerate(means.argmin(1).tolist()))


def _hard(distances: Tensor, true: Tensor, rate: float, chance: Generator) -> Tensor:
    own = distances.gather(1, true[:, None])[:, 0]
    near, other = distances.scatter(1, true[:, None], float("inf")).min(1)
    score = own - near
    odds = torch.sigmoid(HARDNESS * (score - score.mean()) / score.std())
    odds = (odds * rate / odds.mean()).clamp(max=SUREST)
    return torch.where(torch.rand(len(true), generator=chance) < odds, other, true)
