"""Every grid of the paper starts and trains, with its true networks and image sizes."""

import math
import shutil
from contextlib import nullcontext
from typing import NamedTuple

import pytest
import torch
from bf16_kernels import QuickConvolutions
from paper_data import make_all
from torch import nn

from lossforge.benchmark import RunSpec, execute, narrow, presets, read_grid
from lossforge.benchmark import run as one_run
from lossforge.benchmark.records import read_record
from lossforge.data import subset

pytestmark = pytest.mark.slow

FEW_STEPS = {"epochs": 1, "batch_size": 4, "threads": 1, "probe": 4}
IMAGES = 8  # two steps
STEPS = {"webvision": 2, "clothing1m": 1}
LAYERS = 53  # convolutions of ResNet-50
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
    changes = dict(FEW_STEPS)
    if part.data not in FILES:
        changes["subset"] = IMAGES
    if part.weights is not None:
        changes["weights"] = weights
    narrowed = narrow(
        grid.model_copy(update={"parts": [part]}),
        losses=[run.loss],
        noise=[run.noise],
        seeds=[0],
        changes=changes,
    )
    (spec,) = narrowed.runs()
    return spec


@pytest.mark.parametrize("run", chosen(), ids=lambda run: " ".join(map(str, run)))
def test_a_few_steps(run, made_up, tmp_path, monkeypatch):
    def first(dataset, size):
        return subset(dataset.train, torch.arange(size))

    # one image of each of 100 classes would be 25 steps
    monkeypatch.setattr(one_run, "_balanced", first)
    spec = spec_of(run, str(made_up / "resnet50.pt"))
    with QuickConvolutions() as bf16:
        assert execute(tmp_path, spec, data_dir=made_up) == "done"
    assert spec.training.get("precision", "float32") == (
        "bf16" if spec.data in FILES else "float32"
    )
    assert bf16.backward == STEPS.get(spec.data, 0) * LAYERS
    assert bf16.forward > bf16.backward or not bf16.backward  # it is tested too
    record = read_record(tmp_path / spec.id)
    assert record.failed is None
    assert record.spec["protocol"] == "reduced"
    (epoch,) = record.metrics
    assert math.isfinite(epoch["loss"])
    assert sorted(epoch["tests"]) == TESTS.get(spec.data, ["test"])
    for accuracy in epoch["tests"].values():
        assert 0 <= accuracy["top1"] <= accuracy["top5"] <= 100
    assert (tmp_path / spec.id / "features.npz").exists() == spec.keep_features


@pytest.mark.parametrize(("side", "stride"), [(7, 2), (3, 1), (3, 2), (1, 1), (1, 2)])
def test_quick_convolutions_are_those_of_the_cpu(side, stride):
    layer = nn.Conv2d(24, 40, side, stride, padding=side // 2, bias=False)
    layer.to(memory_format=torch.channels_last)
    images = torch.randn(4, 24, 28, 28).contiguous(memory_format=torch.channels_last)
    images.requires_grad_()
    steps = []
    for context in (nullcontext(), QuickConvolutions()):
        with context, torch.autocast("cpu", torch.bfloat16):
            values = layer(images)
        with context:
            slopes = torch.autograd.grad(values.float().square().sum(), [images, layer.weight])
        steps.append([values.float(), *slopes])
    for slow, quick in zip(*steps, strict=True):
        assert (slow - quick).norm() < 2**-7 * slow.norm()


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
