"""What the network of a finished run says of the samples it was trained on."""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from ..data.source import PathLike
from ..loss import Loss
from ..training.evaluate import predict
from .model import load
from .run import prepare_data, samples
from .spec import resolve
from .store import RunFolder, read_spec


@dataclass(frozen=True, eq=False)
class Outputs:
    """The training samples of a run as its network sees them.

    Args:
        name: The loss's name in tables.
        loss: The loss it was trained with.
        logits: (N, K) outputs of the network after training.
        given: (N,) labels it was trained on.
        true: (N,) true labels, or None if the data have none.
    """

    name: str
    loss: Loss
    logits: Tensor
    given: Tensor
    true: Tensor | None


def training_outputs(
    run: PathLike, *, data_dir: PathLike | None = None, trust: bool = False
) -> Outputs:
    """Evaluate the network that `lossforge train` left on its own training samples.

    Args:
        run: The folder of the run.
        data_dir: Where the data are, instead of the usual folders.
        trust: Whether the user's own code that the run names may be executed.
    """
    place = Path(run).resolve()
    network = load(place).network
    folder = RunFolder(place.parent, read_spec(place.parent, place.name))
    folder.admit_code(trust=trust)
    resolved = resolve(folder.spec, noise=folder.read_noise())
    dataset = prepare_data(folder.spec, data_dir, noise=resolved.noise)
    train = dataset.train
    logits = predict(network, samples(dataset, train))
    return Outputs(folder.spec.loss, resolved.loss, logits, train.given, train.true)
