"""Trial after trial until enough are finished, in this process or in several."""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from .. import interrupts
from ..benchmark.pool import FAILED, Pool, Worker
from ..catalog import parse, read
from ..data.source import PathLike
from ..errors import extra
from ..theory import certify
from ..training import Diverged
from .score import HeldOutScore
from .study import StaleTrials, Study, keep_trial_alive, warmup

POLL = 1.0
OnTrial = Callable[[Study], object]


def search(
    study: Study,
    score: HeldOutScore,
    limit: int,
    *,
    on_trial: OnTrial,
    on_epoch: Callable[[], object] | None = None,
) -> None:
    """Do trials until `limit` trials are finished or running.

    Args:
        study: The trials.
        score: Scores a loss.
        limit: The number of trials that shall count.
        on_trial: Called after every trial.
        on_epoch: Called after every epoch of a trial.
    """
    with interrupts.deferred():
        while (taken := study.take(limit)) is not None:
            _run_trial(study, *taken, score, on_epoch)
            on_trial(study)
            interrupts.check()


def search_all(study: Study, score: HeldOutScore, limit: int, *, on_trial: OnTrial) -> None:
    """Do trials until `limit` are finished, including those of other processes."""
    stale = StaleTrials()
    while True:
        search(study, score, limit, on_trial=on_trial)
        if study.finished >= limit:
            return
        time.sleep(POLL)
        study.recover(stale.is_stale)
        on_trial(study)


def search_in_processes(
    study: Study,
    url: str,
    limit: int,
    *,
    workers: int,
    data_dir: PathLike | None,
    device: str,
    on_trial: OnTrial,
) -> None:
    """Let worker processes do the trials; one that dies is replaced, and its trial repeated."""
    task = {
        "plan": study.plan.model_dump(),
        "url": url,
        "limit": limit,
        "parent": os.getpid(),
        "data_dir": None if data_dir is None else os.fspath(data_dir),
        "device": device,
        "code": [
            (code.name, code.hash, None if code.source is None else code.source.decode("latin-1"))
            for code in read(study.plan.spec.expression).code
        ],
    }
    command = [sys.executable, "-m", "lossforge.tuning.worker"]
    environment = {"OMP_NUM_THREADS": str(study.plan.spec.threads)}

    def start(slot: int) -> Worker:
        return Worker(command, json.dumps(task), environment)

    stale = StaleTrials()
    with interrupts.deferred(), Pool(workers, start, lambda: study.finished) as pool:
        while study.finished < limit:
            interrupts.check()
            for worker in pool.remove_ended():
                if worker.process.returncode == FAILED:
                    raise RuntimeError(worker.last_line)
            pool.fill(lambda: True)
            time.sleep(POLL)
            study.recover(stale.is_stale)
            on_trial(study)


def _run_trial(
    study: Study,
    trial: Any,
    point: dict[str, float],
    score: HeldOutScore,
    on_epoch: Callable[[], object] | None,
) -> None:
    optuna = extra("optuna", "tune")
    plan = study.plan
    expression = plan.expression(study.space.make(point))

    def report(epoch: int, accuracy: float) -> None:
        if on_epoch is not None:
            on_epoch()
        if (epoch - 1) % plan.spec.settings.epochs < warmup(plan):
            return
        trial.report(accuracy, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned

    try:
        with keep_trial_alive(trial):
            if not is_admitted(expression, study.noise):
                study.finish(trial, None, stopped="rejected", expression=expression)
                return
            found = score(expression, report)
        study.finish(trial, found, expression=expression)
    except optuna.TrialPruned:
        study.finish(trial, None, stopped="pruned", expression=expression)
    except Diverged:
        study.finish(trial, None, stopped="diverged", expression=expression)
    except optuna.exceptions.UpdateFinishedTrialError:
        return  # considered stale, and repeated by another process
    except BaseException:
        study.fail(trial.number)  # the next process queues it again
        raise


def is_admitted(expression: str, noise: list[Any] | None) -> bool:
    """Check whether a loss is proved robust to a noise; always true if there is none."""
    if noise is None:
        return True
    matrix = torch.tensor(noise, dtype=torch.float64)
    return certify(parse(expression), matrix, refute=False).status == "PROVED"
