"""All that the paper's grids read: made-up images and labels in the official layouts."""

import json
import pickle
import sys
from pathlib import Path

import numpy as np
import torch

from lossforge import models
from lossforge.data.cifar import CIFAR10, CIFAR100, CifarLayout
from lossforge.data.human import INSTANCE_RATES, RELEASES, SAMPLES

sys.path.append(str(Path(__file__).parents[1] / "data"))
from image_fixtures import clothing1m, ilsvrc12_folders, webvision

TESTED = 8  # test images of CIFAR, of which the releases have 10,000


def make_all(root: Path) -> Path:
    """All data in one folder, as `data_dir` takes it; and `resnet50.pt`, as if from ImageNet."""
    for layout, num_classes in ((CIFAR10, 10), (CIFAR100, 100)):
        _images(root, layout, num_classes)
        _labels(root, layout, num_classes)
    webvision(root)
    ilsvrc12_folders(root)
    clothing1m(root)
    network = models.make("resnet50", 1000, inputs=(3, 224, 224))
    torch.save(network.state_dict(), root / "resnet50.pt")
    return root


def _images(root: Path, layout: CifarLayout, num_classes: int) -> None:
    folder = root / layout.name / layout.folder
    folder.mkdir(parents=True)
    size = SAMPLES // len(layout.train)
    counts = {**{file.path: size for file in layout.train}, layout.test.path: TESTED}
    for name, count in counts.items():
        few = np.random.default_rng(count).integers(0, 256, (min(count, 500), 3072), np.uint8)
        pixels = np.tile(few, (count // len(few), 1))
        batch = {
            b"data": pixels,
            layout.label_key.encode(): [i % num_classes for i in range(count)],
        }
        (folder / name).write_bytes(pickle.dumps(batch, protocol=2))
    names = {layout.names_key.encode(): [b"class %d" % i for i in range(num_classes)]}
    (folder / layout.meta.path).write_bytes(pickle.dumps(names, protocol=2))


def _labels(root: Path, layout: CifarLayout, num_classes: int) -> None:
    """Human labels and frozen instance-dependent ones, which are drawn at random here."""
    rng = np.random.default_rng(num_classes)
    release = RELEASES[layout.name]
    table = {key: rng.integers(0, num_classes, SAMPLES) for key, *_ in release.keys.values()}
    table["clean_label"] = np.arange(SAMPLES) % num_classes
    human, frozen = root / "cifar-n" / release.file.path, root / f"{layout.name}-idn"
    human.parent.mkdir(exist_ok=True)
    torch.save(table, human)
    frozen.mkdir()
    for rate in INSTANCE_RATES:
        labels = rng.integers(0, num_classes, SAMPLES).tolist()
        (frozen / f"{layout.name}_dependent_{rate}.json").write_text(json.dumps(labels))
