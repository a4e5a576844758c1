"""One run from spec to record: its data and network, training with checkpoints, the results."""

import json
import os
import platform
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import torch
from torch import distributed, nn

from .. import __version__, interrupts, kernels
from ..data import Dataset, Split, label_files, load, noisy_labels, own, registry, subset
from ..data.dataset import members
from ..data.kept import tensors_hash
from ..data.source import PathLike
from ..errors import SpecError
from ..loss import Loss, WeightedSum
from ..models import load_weights
from ..models import make as make_model
from ..noise import NoiseSpec, confusion_counts, noise_rate
from ..training import Diverged, Method, MetricsFile, Samples, State, features, generator, train
from ..training.distributed import world
from .model import has_model
from .model import save as save_model
from .records import read_record
from .spec import Run, RunSpec, resolve
from .store import RunFolder

Outcome = Literal["done", "finished before", "busy"]
OnEpoch = Callable[[State], object]
COUNTED_CLASSES = 100  # with more classes the record holds no transition counts


def execute(
    store: Path,
    run: Run | RunSpec,
    *,
    data_dir: PathLike | None = None,
    device: str = "cpu",
    on_epoch: OnEpoch | None = None,
    trust: bool = False,
    keep_model: bool = False,
) -> Outcome:
    """Do a run unless finished or claimed by another worker; resume it from its checkpoint.

    Args:
        store: The folder of runs.
        run: The run, or its spec, whose loss and noise are then built here.
        data_dir: Where the data are, instead of the usual folders.
        device: Where to train.
        on_epoch: Called after every epoch.
        trust: Whether a spec may execute the user's own code that it names; a `Run` has done so.
        keep_model: Whether the folder keeps the trained network, for `lossforge.load`.
    """
    folder = RunFolder(store, run if isinstance(run, RunSpec) else run.spec)
    outcome: Outcome
    rank, _ = world()
    if rank > 0:  # rank 0 alone claims the folder, and broadcasts the outcome
        outcome = _agree(None, device)
        if outcome == "done":
            _train(folder, run, data_dir, device, None, trust, False)
        return outcome
    if isinstance(run, RunSpec):
        folder.open()
    else:
        folder.open(run.noise, run.code)
    if _is_finished(folder, keep_model):
        return _agree("finished before", device)
    with interrupts.deferred(), folder.claim() as ours:
        # another worker may have finished it since the first check
        finished = _is_finished(folder, keep_model)
        outcome = _agree("finished before" if finished else "done" if ours else "busy", device)
        if outcome == "done":
            _train(folder, run, data_dir, device, on_epoch, trust, keep_model)
    return outcome


def _is_finished(folder: RunFolder, keep_model: bool) -> bool:
    """Whether a run needs nothing more; one that failed has no network to keep."""
    if not folder.finished or not keep_model:
        return folder.finished
    return has_model(folder.path) or read_record(folder.path).failed is not None


def _agree(outcome: Outcome | None, device: str) -> Outcome:
    """Return the outcome of rank 0 on all ranks."""
    content = [outcome]
    if world()[1] > 1:
        distributed.broadcast_object_list(content, 0, device=torch.device(device))
    assert content[0] is not None
    return content[0]


def _train(
    folder: RunFolder,
    run: Run | RunSpec,
    data_dir: PathLike | None,
    device: str,
    on_epoch: OnEpoch | None,
    trust: bool,
    keep_model: bool,
) -> None:
    """Train a claimed run, and write its results."""
    if isinstance(run, RunSpec):
        folder.admit_code(trust=trust)
        run = resolve(run, noise=folder.read_noise())
    spec, leads, started = run.spec, world()[0] == 0, time.time()
    torch.set_num_threads(spec.threads)
    dataset = prepare_data(spec, data_dir, noise=run.noise)
    model, *peers = networks = prepare_networks(spec, dataset, run.method)
    saved = folder.load_checkpoint(partial(_usable, spec, networks)) if leads else None
    ticks = [time.time()]

    pace, saved_at = checkpoint_seconds(), started

    def save(state: State) -> None:
        nonlocal saved_at
        MetricsFile(folder.path / "metrics.jsonl")(state)  # before the checkpoint it belongs to
        if time.time() - saved_at >= pace:
            folder.save_checkpoint(state.epoch, state.to_bytes())
            saved_at = time.time()
        ticks.append(time.time())
        if on_epoch is not None:
            on_epoch(state)

    failed, held_out = None, dataset.validation
    tests = {name: samples(dataset, split) for name, split in dataset.tests.items()}
    try:
        state = train(
            model,
            run.loss,
            samples(dataset, dataset.train),
            tests,
            spec.settings,
            seed=spec.seed,
            method=run.method,
            peers=peers,
            validation=None if held_out is None else samples(dataset, held_out),
            state=saved,
            device=device,
            on_epoch=save,
        )
        metrics = state.metrics
    except Diverged as error:
        failed, metrics = str(error), error.metrics
    if leads:
        if spec.keep_features and failed is None:
            test = next(iter(tests.values()))
            folder.save_features(features(model, test), test.labels)
        if keep_model and failed is None:
            save_model(folder.path, spec, dataset, model)
        folder.finish(
            record(run, dataset, model, metrics, failed),
            circumstances(spec, device, started, ticks),
        )


def _usable(spec: RunSpec, networks: Sequence[nn.Module], content: bytes) -> State:
    """Read a checkpoint; raise ValueError unless this run can continue from it."""
    state = State.from_bytes(content)
    state.check([(one, spec.settings.make_optimizer(one.parameters())) for one in networks])
    if state.epoch > spec.settings.epochs:
        raise ValueError(f"it must have {spec.settings.epochs} epochs or less, got {state.epoch}")
    return state


def checkpoint_seconds() -> float:
    """Return the least time between checkpoints, which take most of a small network's epoch."""
    text = os.environ.get("LOSSFORGE_CHECKPOINT_SECONDS", "5")
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"LOSSFORGE_CHECKPOINT_SECONDS must be a number, got {text!r}") from None


# The data and the network


def check_data(runs: Iterable[Run], data_dir: PathLike | None) -> None:
    """Raise FileNotFoundError if a file that a run needs is missing, before anything trains."""
    needed = set()
    for run in runs:
        if run.spec.place is None:
            needed.add(run.spec.data)
        elif not Path(run.spec.place).exists():
            raise FileNotFoundError(f"{run.spec.place} is missing: the data of run {run.spec.id}")
        if (labels := label_files(run.noise, run.spec.data)) is not None:
            needed.add(labels)
    for name in sorted(needed):
        missing = registry.find(name).missing(data_dir)
        if missing:
            remedy = f"`lossforge data doctor {name}` says how to get it"
            raise FileNotFoundError(f"{name}: {missing[0]} is missing; {remedy}")


@lru_cache(maxsize=1)
def _load(name: str, options: str, data_dir: str | None, place: str | None) -> Dataset:
    """Load a data set once for all runs of a worker."""
    if place is not None:
        return own.load(place, **json.loads(options))
    return load(name, data_dir=data_dir, **json.loads(options))


def prepare_data(
    spec: RunSpec,
    data_dir: PathLike | None = None,
    *,
    split: int = 0,
    noise: NoiseSpec | None = None,
) -> Dataset:
    """Load the data of a run, add the noise, take the subset, and hold out the validation part.

    Args:
        spec: The run.
        data_dir: Where the data are, instead of the usual folders.
        split: Which of the possible parts is held out; 0 is that of the run.
        noise: The run's noise, if it is built already.
    """
    folder = None if data_dir is None else os.fspath(data_dir)
    dataset = _load(spec.data, json.dumps(spec.data_options, sort_keys=True), folder, spec.place)
    given = noisy_labels(
        dataset,
        NoiseSpec.parse(spec.noise) if noise is None else noise,
        generator=generator(spec.seed, "noise"),
        data_dir=data_dir,
    )
    dataset = dataset.with_noise(given)
    if spec.subset is not None:
        dataset = replace(dataset, train=_balanced(dataset, spec.subset))
    if spec.hold_out:
        chance = generator(spec.seed, "hold out", *([split] if split else []))
        dataset = dataset.hold_out(spec.hold_out, generator=chance)
    return dataset


def _balanced(dataset: Dataset, size: int) -> Split:
    """Return the first samples of each class, equally many."""
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


def prepare_networks(spec: RunSpec, dataset: Dataset, method: Method) -> list[nn.Module]:
    """Make all networks that the training method of a run needs; the first is the run's own."""
    return [prepare_model(spec, dataset, peer=number) for number in range(method.networks)]


def prepare_model(spec: RunSpec, dataset: Dataset, *, peer: int = 0) -> nn.Module:
    """Make the network of a run; its initial weights depend on the seed alone.

    Args:
        spec: The run.
        dataset: Its data.
        peer: Which of the networks of a training method; 0 is the one of every run.
    """
    probe = dataset.transform(dataset.train.inputs, torch.tensor([0]), None)
    model = make_model(
        spec.model,
        dataset.num_classes,
        inputs=tuple(probe.shape[1:]),
        generator=generator(spec.seed, "init", *([peer] if peer else [])),
        **spec.model_options,
    )
    if spec.weights is not None:
        load_weights(model, spec.weights, head="new")
    return model


def samples(dataset: Dataset, split: Split) -> Samples:
    """Return a split as `lossforge.training.train` takes it."""
    read = partial(dataset.transform, split.inputs)
    return Samples(read, split.given, split.true, split.weight)


# The results


def record(
    run: Run,
    dataset: Dataset,
    model: nn.Module,
    metrics: list[dict[str, Any]],
    failed: str | None,
) -> dict[str, Any]:
    """Return the results: the same bits whenever the run is done on one CPU model."""
    train, rate, counts = dataset.train, None, None
    if train.true is not None:
        rate = noise_rate(train.true, train.given)
        if dataset.num_classes <= COUNTED_CLASSES:
            counts = confusion_counts(train.true, train.given, dataset.num_classes).tolist()
    is_own = run.spec.place is not None
    as_given = is_own and any(test.true is None for test in dataset.tests.values())
    return {
        "id": run.spec.id,
        "spec": run.spec.model_dump(exclude={"place"}),  # a path of this machine
        "classes": dataset.num_classes,
        "noise_rate": rate,
        "transition": counts,
        "metrics": metrics,
        "parameters": tensors_hash(model.state_dict()),
        "failed": failed,
        "loss_parameters": loss_parameters(run.loss),
        **({"tested_as_given": True} if as_given else {}),
    }


def loss_parameters(loss: Loss) -> dict[str, Any]:
    """Return the parameters a loss was made with; of a sum those of its terms.

    Parameters left to their default None are left out, as in the text of the loss. Constructions
    outside the catalogue have none: their text describes them.
    """
    settings = getattr(loss, "settings", None)
    if settings is not None:
        return {name: _plain(value) for name, value in settings.items() if value is not None}
    if isinstance(loss, WeightedSum):
        terms = [
            {"coefficient": coefficient, "loss": type(term).__name__, **loss_parameters(term)}
            for coefficient, term in loss.terms
        ]
        return {"terms": terms}
    return {}


def _plain(value: Any) -> Any:
    """Return a parameter as JSON keeps it; 8 and 8.0 are one number."""
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def circumstances(
    spec: RunSpec, device: str, started: float, ticks: Sequence[float]
) -> dict[str, Any]:
    """Return time, versions, machine and command: what the result does not depend on.

    Args:
        spec: The run.
        device: Where it was trained.
        started: When the process that finished it started on it.
        ticks: The ends of that process's epochs, after its start.
    """
    commit, clean = _commit()
    return {
        "seconds": time.time() - started,
        "epoch_seconds": [after - before for before, after in pairwise(ticks)],
        "versions": {
            "lossforge": __version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "commit": commit,
        "clean_tree": clean,
        "host": socket.gethostname(),
        "device": device_name(device),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "kernel": kernels.describe(),
        "processes": world()[1],
        "command": spec.command(),
    }


def device_name(device: str) -> str:
    """Return the model of a GPU or of the CPU, as well as the system names it."""
    if torch.device(device).type == "cuda":
        return torch.cuda.get_device_name(device)
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _commit() -> tuple[str | None, bool | None]:
    """Return the commit of the package's working tree, if it has one, and whether it is clean."""
    try:
        found = [
            subprocess.run(
                ["git", *words],
                cwd=Path(__file__).parent,
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
            ).stdout.strip()
            for words in (["rev-parse", "HEAD"], ["status", "--porcelain"])
        ]
    except (OSError, subprocess.SubprocessError):
        return None, None
    return found[0], not found[1]
