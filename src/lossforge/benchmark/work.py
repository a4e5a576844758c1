"""Doing one run: claim it, resume it or start it, train, write down what came out."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import torch
from torch import distributed

from ..catalog import parse
from ..data.source import PathLike
from ..training import Diverged, MetricsFile, State, features, train
from ..training.distributed import world
from .outcome import describe, record
from .prepare import prepare_data, prepare_model, samples
from .spec import RunSpec
from .store import RunFolder

Outcome = Literal["done", "finished before", "busy"]
OnEpoch = Callable[[State], object]


def execute(
    store: Path,
    spec: RunSpec,
    *,
    data_dir: PathLike | None = None,
    device: str = "cpu",
    on_epoch: OnEpoch | None = None,
) -> Outcome:
    """Do a run unless it is done or somebody is at it; continue it where it was left.

    Args:
        store: The folder of runs.
        spec: What to do.
        data_dir: Where the data are, instead of the usual folders.
        device: Where to train.
        on_epoch: Called after every epoch.
    """
    folder = RunFolder(store, spec)
    outcome: Outcome
    rank, _ = world()
    if rank > 0:  # rank 0 alone touches the folder, and tells the others
        outcome = _agree(None, device)
        if outcome == "done":
            _work(folder, data_dir, device, None)
        return outcome
    folder.open()
    if folder.finished:
        return _agree("finished before", device)
    with folder.claim() as ours:
        # somebody may have finished it between the two looks
        outcome = _agree(
            "finished before" if folder.finished else "done" if ours else "busy", device
        )
        if outcome == "done":
            _work(folder, data_dir, device, on_epoch)
    return outcome


def _agree(outcome: Outcome | None, device: str) -> Outcome:
    """What rank 0 says."""
    content = [outcome]
    if world()[1] > 1:
        distributed.broadcast_object_list(content, 0, device=torch.device(device))
    assert content[0] is not None
    return content[0]


def _work(
    folder: RunFolder, data_dir: PathLike | None, device: str, on_epoch: OnEpoch | None
) -> None:
    spec, leads, started = folder.spec, world()[0] == 0, time.time()
    torch.set_num_threads(spec.threads)
    dataset = prepare_data(spec, data_dir)
    model = prepare_model(spec, dataset)
    saved = folder.load_checkpoint() if leads else None
    ticks = [time.time()]

    pace, saved_at = checkpoint_seconds(), started

    def save(state: State) -> None:
        nonlocal saved_at
        MetricsFile(folder.path / "metrics.jsonl")(state)  # before what may end the run's life
        if time.time() - saved_at >= pace:
            folder.save_checkpoint(state.epoch, state.to_bytes())
            saved_at = time.time()
        ticks.append(time.time())
        if on_epoch is not None:
            on_epoch(state)

    failed, metrics, held_out = None, [], dataset.validation
    tests = {name: samples(dataset, split) for name, split in dataset.tests.items()}
    try:
        state = train(
            model,
            parse(spec.expression),
            samples(dataset, dataset.train),
            tests,
            spec.settings,
            seed=spec.seed,
            validation=None if held_out is None else samples(dataset, held_out),
            state=None if saved is None else State.from_bytes(saved),
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
        folder.finish(
            record(spec, dataset, model, metrics, failed), describe(spec, device, started, ticks)
        )


def checkpoint_seconds() -> float:
    """The least time between two checkpoints: writing one is most of a small network's epoch."""
    text = os.environ.get("LOSSFORGE_CHECKPOINT_SECONDS", "5")
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"LOSSFORGE_CHECKPOINT_SECONDS must be a number, got {text!r}") from None
