"""Every grid of the paper starts and trains, with its true networks and image sizes."""

import math
import shutil
from typing import NamedTuple

import pytest
import torch
from paper_data import make_all

from lossforge.benchmark import RunSpec, choose, execute, prepare, presets, read_grid
from lossforge.benchmark.records import read_record
from lossforge.data import subset

pytestmark = pytest.mark.slow

# In bfloat16, a CPU without instructions for it takes minutes for a step of these networks.
FEW_STEPS = {"epochs": 1, "batch_size": 4, "threads": 1, "probe": 4, "precision": "float32"}
IMAGES = 8  # two steps
FILES = ("webvision", "clothing1m")
TESTS = {"webvision": ["ilsvrc12", "webvision"]}
LABELS_ALONE = "paper/heatmaps"
TRAINED = [name for name in presets() if name.startswith("paper/") and name != LABELS_ALONE]


class Chosen(NamedTuple):
    """A run of a part of a preset."""

    preset: str
    part: int
    noise: str
    loss: str


def chosen() -> list[Chosen]:
    """Each part of each preset, and within a data set each kind of noise; one loss of a part."""
    found, seen = [], set()
    for name in TRAINED:
        for i, part in enumerate(read_grid(name).parts):
            fresh = {}
            for noise in part.noise:
                kind = (part.data, part.model, noise.partition(":")[0])
                if kind not in seen:
                    fresh[kind] = noise
                    seen.add(kind)
            loss = part.losses[0]
            row = loss if isinstance(loss, str) else loss.name
            found += [Chosen(name, i, noise, row) for noise in fresh.values() or part.noise[:1]]
    found += [Chosen("paper/cifar10", 0, "symmetric:0.4", loss) for loss in ("BEF", "JAL-CE")]
    # a process keeps the data set that it read last
    return sorted(found, key=lambda run: read_grid(run.preset).parts[run.part].data)


@pytest.fixture(scope="session")
def made_up(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper-data")
    yield make_all(folder)
    shutil.rmtree(folder)  # half a gigabyte


@pytest.fixture(autouse=True)
def _as_outside_the_tests():
    torch.set_default_dtype(torch.float32)  # conftest sets it back
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def spec_of(run: Chosen, weights: str) -> RunSpec:
    grid = read_grid(run.preset)
    part = grid.parts[run.part]
    settings = dict(FEW_STEPS)
    if part.data not in FILES:
        settings["subset"] = IMAGES
    if part.weights is not None:
        settings["weights"] = weights
    narrowed = choose.narrow(
        grid.model_copy(update={"parts": [part]}),
        losses=[run.loss],
        noise=[run.noise],
        seeds=[0],
        settings=settings,
    )
    (spec,) = narrowed.runs()
    return spec


@pytest.mark.parametrize("run", chosen(), ids=lambda run: " ".join(map(str, run)))
def test_a_few_steps(run, made_up, tmp_path, monkeypatch):
    def first(dataset, size):
        return subset(dataset.train, torch.arange(size))

    # one image of each of 100 classes would be 25 steps
    monkeypatch.setattr(prepare, "_balanced", first)
    spec = spec_of(run, str(made_up / "resnet50.pt"))
    assert execute(tmp_path, spec, data_dir=made_up) == "done"
    record = read_record(tmp_path / spec.id)
    assert record.failed is None
    assert record.spec["protocol"] == "reduced"
    (epoch,) = record.metrics
    assert math.isfinite(epoch["loss"])
    assert sorted(epoch["tests"]) == TESTS.get(spec.data, ["test"])
    for accuracy in epoch["tests"].values():
        assert 0 <= accuracy["top1"] <= accuracy["top5"] <= 100
    assert (tmp_path / spec.id / "features.npz").exists() == spec.keep_features


@pytest.mark.parametrize("spec", read_grid(LABELS_ALONE).runs(), ids=lambda spec: spec.noise)
def test_labels_alone(spec, made_up, tmp_path):
    assert execute(tmp_path, spec, data_dir=made_up) == "done"
    record = read_record(tmp_path / spec.id)
    assert record.spec["protocol"] == "paper"
    assert record.metrics == []
    assert sum(map(sum, record.transition)) == 50_000


def test_every_preset_part_and_kind_of_noise_is_among_them():
    parts = [(name, i) for name in TRAINED for i in range(len(read_grid(name).parts))]
    assert {run[:2] for run in chosen()} == set(parts)
    kinds = {
        (spec.data, spec.model, spec.noise.partition(":")[0])
        for name in TRAINED
        for spec in read_grid(name).runs()
    }
    specs = [spec_of(run, "resnet50.pt") for run in chosen()]
    assert {(spec.data, spec.model, spec.noise.partition(":")[0]) for spec in specs} == kinds
