"""Trial after trial, until there are enough."""

import time
from collections.abc import Callable
from typing import Any

import torch

from ..catalog import parse
from ..errors import extra
from ..theory import certify
from ..training import Diverged
from .life import Watch, beating
from .objective import Objective
from .storage import patience
from .study import Study

POLL = 1.0
OnTrial = Callable[[Study], object]


def search(study: Study, objective: Objective, limit: int, *, on_trial: OnTrial) -> None:
    """Do trials until as many are done or begun as there shall be.

    Args:
        study: Where the trials are.
        objective: Scores a loss.
        limit: How many trials are to count.
        on_trial: Called after every trial.
    """
    while (taken := study.take(limit)) is not None:
        _try(study, *taken, objective)
        on_trial(study)


def search_all(
    study: Study, objective: Objective, limit: int, *, on_trial: OnTrial, watch: Watch | None = None
) -> None:
    """Do trials until all are finished, those of other processes included."""
    watch = watch or Watch()
    while True:
        search(study, objective, limit, on_trial=on_trial)
        if study.finished >= limit:
            return
        time.sleep(POLL)
        study.recover(watch.is_lost)
        on_trial(study)


def _try(study: Study, trial: Any, point: dict[str, float], objective: Objective) -> None:
    optuna = extra("optuna", "tune")
    plan = study.plan
    expression = plan.expression(study.space.make(point, plan.num_classes))
    known = {"expression": expression}

    def report(epoch: int, accuracy: float) -> None:
        if (epoch - 1) % plan.spec.settings.epochs < patience(plan):
            return
        trial.report(accuracy, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned

    try:
        with beating(trial):
            if not is_admitted(expression, study.noise):
                study.finish(trial, None, stopped="rejected", **known)
                return
            score = objective(expression, report)
        study.finish(trial, score, **known)
    except optuna.TrialPruned:
        study.finish(trial, None, stopped="pruned", **known)
    except Diverged:
        study.finish(trial, None, stopped="diverged", **known)
    except optuna.exceptions.UpdateFinishedTrialError:
        return  # taken for dead, and done by somebody else
    except BaseException:
        study.fail(trial.number)  # the next process puts it in the queue again
        raise


def is_admitted(expression: str, noise: list[Any] | None) -> bool:
    """Whether a loss is proved to be robust to a noise; anything is, if there is none."""
    if noise is None:
        return True
    matrix = torch.tensor(noise, dtype=torch.float64)
    return certify(parse(expression), matrix, refute=False).status == "PROVED"
