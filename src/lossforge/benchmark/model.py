"""A trained network that predicts: weights and features as safetensors, the rest as JSON.

Nothing is pickled, and neither the loss nor any other code of the user is needed to predict.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..data import Dataset
from ..data.pipeline import PIPELINES, Pipeline, Place
from ..data.source import PathLike
from ..errors import extra
from ..files import write_atomically
from ..models import make
from .integrity import parse_object
from .spec import RunSpec

FORMAT = "lossforge model 1"
WEIGHTS, ABOUT = "model.safetensors", "model.json"
BATCH = 1024


@dataclass(frozen=True)
class Prediction:
    """What a model says of one sample.

    Args:
        where: Its place: a line of a file, the path of an image.
        label: The most probable class.
        confidence: Its probability.
    """

    where: str
    label: str
    confidence: float


@dataclass(frozen=True, eq=False)
class Model:
    """A trained network with its class names, and the features it was trained on.

    Args:
        network: The network, for evaluation.
        classes: The class names, in the order of its logits.
        pipeline: Prepares a user's samples; None for a network trained on a named data set, which
            takes its inputs as that data set has them.
    """

    network: nn.Module
    classes: tuple[str, ...]
    pipeline: Pipeline | None = None

    def predict(self, path: PathLike) -> list[Prediction]:
        """Predict the samples of a file or folder like the one it was trained on, without labels.

        Args:
            path: A table with the same feature columns; an image, a folder of images; or a .npz
                file with inputs x.
        """
        if self.pipeline is None:
            raise ValueError("this model was trained on a named data set; call probabilities(...)")
        inputs, where = self.pipeline.read(path)
        return list(self._predictions(self.probabilities(inputs), where))

    def _predictions(self, probs: Tensor, where: Place) -> Iterator[Prediction]:
        best = probs.max(1)
        for row, (share, label) in enumerate(
            zip(best.values.tolist(), best.indices.tolist(), strict=True)
        ):
            yield Prediction(where(row), self.classes[label], share)

    @torch.no_grad()
    def probabilities(self, inputs: Tensor) -> Tensor:
        """Return class probabilities (N, C) of inputs as the network takes them."""
        batches = [self.network(batch).softmax(1) for batch in torch.split(inputs, BATCH)]
        return torch.cat(batches)


def save(folder: Path, spec: RunSpec, dataset: Dataset, network: nn.Module) -> None:
    """Keep a trained network in the folder of its run.

    Args:
        folder: The folder.
        spec: The run.
        dataset: The data it was trained on.
        network: The network.
    """
    probe = dataset.transform(dataset.train.inputs, torch.tensor([0]), None)
    plain, fitted = ({}, {}) if dataset.pipeline is None else dataset.pipeline.plain()
    tensors = {f"network.{name}": value for name, value in network.state_dict().items()}
    tensors |= {f"pipeline.{name}": value for name, value in fitted.items()}
    content = extra("safetensors.torch", "bench").save(
        {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    )
    about = {
        "format": FORMAT,
        "run": spec.id,
        "network": spec.model,
        "options": spec.model_options,
        "inputs": list(probe.shape[1:]),
        "classes": list(dataset.classes),
        "pipeline": None if dataset.pipeline is None else {"kind": dataset.pipeline.kind, **plain},
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    write_atomically(folder / WEIGHTS, content)
    write_atomically(folder / ABOUT, (json.dumps(about, indent=1) + "\n").encode())


def load(run: PathLike) -> Model:
    """Load the network that `lossforge train` left in the folder of a run.

    ::

        model = lossforge.load("runs/train/0123456789abcdef")
        model.predict("new.csv")[0].label

    Args:
        run: The folder.
    """
    folder = Path(run)
    if not (folder / ABOUT).is_file():
        raise FileNotFoundError(
            f"{folder} holds no model; `lossforge train` leaves one where the run is finished"
        )
    unreadable = extra("safetensors", "bench").SafetensorError
    try:
        about, content = _read(folder)
        return _made(about, extra("safetensors.torch", "bench").load(content))
    except (KeyError, TypeError, ValueError, RuntimeError, unreadable) as error:
        raise ValueError(f"the model in {folder} is damaged: {error}") from error


def has_model(folder: Path) -> bool:
    """Check whether the folder of a run holds a model whose files belong together."""
    try:
        _read(folder)
    except (OSError, KeyError, TypeError, ValueError):
        return False
    return True


def _read(folder: Path) -> tuple[dict[str, Any], bytes]:
    """Read the description of a model and the file of its tensors, which must fit it."""
    content = (folder / WEIGHTS).read_bytes()
    about = parse_object((folder / ABOUT).read_bytes())
    if about["format"] != FORMAT:
        raise ValueError(f"its format must be {FORMAT!r}, got {about['format']!r}")
    if about["sha256"] != hashlib.sha256(content).hexdigest():
        raise ValueError(f"{WEIGHTS} is not the file that {ABOUT} describes")
    return about, content


def _made(about: dict[str, Any], tensors: dict[str, Tensor]) -> Model:
    def part(name: str) -> dict[str, Tensor]:
        return {
            key.removeprefix(f"{name}."): value
            for key, value in tensors.items()
            if key.startswith(f"{name}.")
        }

    classes = tuple(map(str, about["classes"]))
    network = make(
        about["network"], len(classes), inputs=tuple(about["inputs"]), **about["options"]
    )
    network.load_state_dict(part("network"), assign=True)  # in the precision it was trained in
    network.eval()
    described, pipeline = about["pipeline"], None
    if described is not None:
        pipeline = PIPELINES[described["kind"]].from_plain(described, part("pipeline"))
    return Model(network, classes, pipeline)
