"""The database of a search."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import extra
from .plan import Plan
from .study import Study

KEPT = 75.0  # % of trials that go on: the median stops good ones where few labels are held out
COMPARED = 5  # complete trials before one may be stopped early


@contextmanager
def open_study(plan: Plan, url: str) -> Iterator[Study]:
    """Open the search in a database, or begin it.

    Args:
        plan: What is searched; its name names the study.
        url: Of the database, as SQLAlchemy takes it.
    """
    optuna = extra("optuna", "tune")
    errors = (
        extra("sqlalchemy.exc", "tune").SQLAlchemyError,
        optuna.exceptions.StorageInternalError,
    )
    loud = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = None
    try:
        storage = _connect(url)
        pruner = optuna.pruners.PercentilePruner(
            KEPT, n_startup_trials=COMPARED, n_warmup_steps=patience(plan)
        )
        study = optuna.create_study(
            storage=storage,
            study_name=plan.name,
            pruner=pruner,
            direction="maximize",
            load_if_exists=True,
        )
        yield Study(plan, study)
    except errors as error:
        said = " ".join(str(error).split("\n")[0].split())
        raise RuntimeError(f"the storage does not work: {said}") from None
    finally:
        optuna.logging.set_verbosity(loud)
        if storage is not None:
            storage.remove_session()
            storage.engine.dispose()


def _connect(url: str) -> Any:
    """The database, its tables made; where another process makes them just now, after that."""
    storages = extra("optuna.storages", "tune")
    errors = extra("sqlalchemy.exc", "tune").DBAPIError
    patient = {"connect_args": {"timeout": 60}} if url.startswith("sqlite") else {}
    for wait in (0.3, 1.0, 3.0):
        try:
            return storages.RDBStorage(url, engine_kwargs=patient)
        except (errors, extra("optuna", "tune").exceptions.StorageInternalError):
            time.sleep(wait)
    return storages.RDBStorage(url, engine_kwargs=patient)


def patience(plan: Plan) -> int:
    """Epochs in which no trial is stopped, nor its accuracy remembered.

    Robust losses begin slowly, and losses that fit noise are best early: what a loss does in the
    first half of training says little about where it ends.
    """
    return plan.spec.settings.epochs // 2
