"""The paper's grids resolve, run by run, to the published protocol."""

from dataclasses import asdict
from functools import cache
from typing import Any, NamedTuple

import pytest

from lossforge.benchmark import RunSpec, presets, read_grid
from lossforge.training import Settings


class Protocol(NamedTuple):
    """Network, its options, the weights it starts from, and how it is trained."""

    model: str
    options: dict[str, Any]
    weights: str | None
    settings: Settings


PROTOCOLS = {
    "cifar10": Protocol(
        "cnn8",
        {},
        None,
        Settings(
            epochs=120,
            batch_size=128,
            optimizer="sgd",
            lr=0.01,
            momentum=0.9,
            nesterov=False,
            weight_decay=1e-4,
            schedule="cosine",
            clip=5.0,
        ),
    ),
    "cifar100": Protocol(
        "resnet34",
        {},
        None,
        Settings(
            epochs=200,
            batch_size=128,
            optimizer="sgd",
            lr=0.1,
            momentum=0.9,
            nesterov=False,
            weight_decay=1e-5,
            schedule="cosine",
            clip=5.0,
        ),
    ),
    "webvision": Protocol(
        "resnet50",
        {"zero_init_residual": True},
        None,
        Settings(
            epochs=250,
            batch_size=256,
            optimizer="sgd",
            lr=0.4,
            momentum=0.9,
            nesterov=True,
            weight_decay=3e-5,
            schedule="exponential:0.97",
            clip=5.0,
            precision="bf16",
        ),
    ),
    "clothing1m": Protocol(
        "resnet50",
        {},
        "imagenet1k_v2",
        Settings(
            epochs=10,
            batch_size=256,
            optimizer="sgd",
            lr=5e-3,
            momentum=0.9,
            nesterov=False,
            weight_decay=1e-3,
            schedule="steps:0.1@5",
            clip=None,
            precision="bf16",
        ),
    ),
}
# The decay that takes the place of weight decay for the losses published with it.
L1_DECAY = {
    ("cifar10", "ANL-CE"): 5e-5,
    ("cifar10", "ANL-FL"): 5e-5,
    ("cifar10", "JAL-CE"): 5e-5,
    ("cifar10", "JAL-FL"): 5e-5,
    ("cifar100", "ANL-CE"): 5e-7,
    ("cifar100", "ANL-FL"): 5e-7,
    ("cifar100", "JAL-CE"): 5e-6,
    ("cifar100", "JAL-FL"): 5e-6,
}
PAPER = [name for name in presets() if name.startswith("paper/")]


@cache
def runs_of(name: str) -> list[RunSpec]:
    return read_grid(name).runs()


def published(name: str, run: RunSpec) -> Protocol:
    """What the literature trains this loss with on these data."""
    found = PROTOCOLS[run.data]
    training = asdict(found.settings)
    decay = L1_DECAY.get((run.data, run.loss))
    if decay is not None:
        training |= {"l1_decay": decay, "weight_decay": 0.0}
    if name == "paper/heatmaps":  # the labels alone are looked at
        training["epochs"] = 0
    return found._replace(settings=Settings(**training))


@pytest.mark.parametrize("name", PAPER)
def test_every_run_follows_the_published_protocol(name):
    runs = runs_of(name)
    found = {
        run.id: Protocol(run.model, run.model_options, run.weights, run.settings) for run in runs
    }
    assert found == {run.id: published(name, run) for run in runs}


@pytest.mark.parametrize("name", PAPER)
def test_nothing_is_held_out_or_left_out(name):
    for run in runs_of(name):
        assert (run.hold_out, run.subset, run.data_options, run.protocol) == (0, None, {}, "paper")


@pytest.mark.parametrize("name", presets())
def test_no_run_comes_twice(name):
    runs = runs_of(name)
    assert len({run.id for run in runs}) == len(runs) > 0


@pytest.mark.parametrize(("dataset", "shared"), [("cifar10", 48), ("cifar100", 48)])
def test_curves_share_their_runs_with_the_tables(dataset, shared):
    def ids(name: str) -> set[str]:
        return {run.id for run in runs_of(name)}

    curves = ids(f"paper/curves-{dataset}")
    assert len(curves & ids(f"paper/{dataset}")) == shared
    assert curves <= ids(f"paper/{dataset}") | ids("paper/idn-human")
