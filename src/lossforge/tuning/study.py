"""The trials of a search in a database: which are finished, running or stale, and which is next."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from itertools import count
from typing import Any

from ..benchmark.claim import keep_alive, place, process_exists
from ..constructions import TargetSeparation
from ..errors import extra
from ..theory import design
from ..theory.design import Family
from ..training import generator
from .plan import Plan
from .spaces import Numbers, Space

FAMILIES: dict[str, Family] = {"BEF": "exponential", "BQF": "quadratic"}
LIVE = ("COMPLETE", "PRUNED", "RUNNING")
STARTUP = 10  # random trials before the sampler learns from them
KEPT = 75.0  # % of trials that continue: a median rule stops good ones if few labels are held out
COMPARED = 5  # complete trials before one may be stopped early
HEARTBEAT = 10.0
STALE = 60.0  # seconds without a change after which a trial on another machine is stale
OWNERLESS = 2.0  # seconds; a live process enters itself as the owner at once


@contextmanager
def open_study(plan: Plan, url: str) -> Iterator["Study"]:
    """Open the search in a database, or create it.

    Args:
        plan: The search; its name names the study.
        url: Of the database, as SQLAlchemy takes it.
    """
    optuna = extra("optuna", "tune")
    errors = (
        extra("sqlalchemy.exc", "tune").SQLAlchemyError,
        optuna.exceptions.StorageInternalError,
    )
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = None
    try:
        storage = _connect(url)
        pruner = optuna.pruners.PercentilePruner(
            KEPT, n_startup_trials=COMPARED, n_warmup_steps=warmup(plan)
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
        message = " ".join(str(error).split("\n")[0].split())
        raise RuntimeError(f"the storage does not work: {message}") from None
    finally:
        optuna.logging.set_verbosity(verbosity)
        if storage is not None:
            storage.remove_session()
            storage.engine.dispose()


def _connect(url: str) -> Any:
    """Connect to the database and create its tables; wait if another process is creating them."""
    optuna = extra("optuna", "tune")
    errors = (
        extra("sqlalchemy.exc", "tune").DBAPIError,
        optuna.exceptions.StorageInternalError,
    )
    options = {"connect_args": {"timeout": 60}} if url.startswith("sqlite") else {}
    make = extra("optuna.storages", "tune").RDBStorage
    for wait in (0.3, 1.0, 3.0):
        try:
            return make(url, engine_kwargs=options)
        except errors:
            time.sleep(wait)
    return make(url, engine_kwargs=options)


def warmup(plan: Plan) -> int:
    """Return the number of epochs in which no trial is stopped, nor its accuracy stored.

    Robust losses start slowly, and losses that fit noise are best early: the first half of training
    says little about the final accuracy.
    """
    return plan.spec.settings.epochs // 2


class Study:
    """The trials of a search; any number of processes may have the same study open.

    Args:
        plan: The search.
        study: Optuna's study.
    """

    def __init__(self, plan: Plan, study: Any) -> None:
        self.plan = plan
        self._study = study
        self._optuna = extra("optuna", "tune")

    def prepare(self, estimate: Callable[[], list[Any]]) -> None:
        """Store the admitted noise, queue the first trials, and recover trials of dead processes.

        Args:
            estimate: Estimates the noise in the labels; called if the plan asks for it.
        """
        if "first" not in self._study.user_attrs:
            admit = self.plan.admit
            noise = estimate() if isinstance(admit, str) else admit
            self._study.set_user_attr("noise", noise)
            self._study.set_user_attr("first", self._first(noise))
        origins = {trial.user_attrs.get("origin") for trial in self.trials()}
        for origin, point in self._study.user_attrs["first"].items():
            if origin not in origins:
                self._study.enqueue_trial(point, user_attrs={"origin": origin})
        self.recover(is_orphaned)

    def _first(self, noise: list[Any] | None) -> dict[str, Numbers]:
        """Return the points of the first trials: the published parameters, then the theory's."""
        first = {"default": self.plan.start}
        family = FAMILIES.get(self.plan.loss)
        if noise is not None and family is not None:
            found = design(self.plan.num_classes, noise, family)
            (lam, separated), (mu, _) = found.loss.terms
            assert isinstance(separated, TargetSeparation)
            shape = separated.base.parameters()
            parameters = {**shape, "tau": found.tau, "lam": lam, "mu": mu}
            first["design"] = self.plan.space().point(parameters)
        return first

    @property
    def noise(self) -> list[Any] | None:
        """The noise for which a loss must be proved robust; None for no such condition."""
        found: list[Any] | None = self._study.user_attrs["noise"]
        return found

    @property
    def space(self) -> Space:
        return self.plan.space(*self._study.user_attrs["first"].values())

    def trials(self, *states: str) -> list[Any]:
        """Return the trials in some states, such as "COMPLETE"; all trials if none is given."""
        kinds = self._optuna.trial.TrialState
        wanted = tuple(kinds[state] for state in states) or None
        return list(self._study.get_trials(deepcopy=False, states=wanted))

    @property
    def finished(self) -> int:
        """The number of trials that count: complete or stopped."""
        return len(self.trials("COMPLETE", "PRUNED"))

    def take(self, limit: int) -> tuple[Any, Numbers] | None:
        """Claim the next trial; return it with its point, or None if none is left.

        The point depends on the seed, on the finished trials and on the number of trials before,
        but not on the process. So a killed search continues as if it had not been killed.

        Args:
            limit: The number of trials that shall count.
        """
        if len(self.trials(*LIVE)) >= limit:
            return None
        samplers = self._optuna.samplers
        self._study.sampler = samplers.RandomSampler()  # `ask` needs one, but draws nothing
        trial = self._study.ask()
        try:
            trial.set_user_attr("worker", f"{place()} {os.getpid()}")
        except self._optuna.exceptions.UpdateFinishedTrialError:  # considered orphaned
            return None
        ahead = [other for other in self.trials(*LIVE) if other.number < trial.number]
        if len(ahead) >= limit or any(_is_same(trial, other) for other in ahead):
            # another process was faster
            trial.set_user_attr("surplus", True)
            self.fail(trial.number)
            return None
        turn = self._turn(trial)
        trial.set_user_attr("turn", turn)
        seed = generator(self.plan.spec.seed, "search", turn).initial_seed() % 2**32
        self._study.sampler = samplers.TPESampler(seed=seed, n_startup_trials=STARTUP)
        trial = self._optuna.trial.Trial(self._study, trial._trial_id)
        return trial, self._suggest(trial)

    def _turn(self, trial: Any) -> int:
        """Return the lowest number that no live trial has, after room for trials ahead without one.

        The number of trials ahead would not do: if one of them was lost before it had a point, the
        next trial would get the point of the last one. A failed trial that is repeated keeps its
        number, also before its repetition is queued. All trials are read at once: one that fails
        in between would be neither live nor failed.
        """
        others = [other for other in self.trials() if other.number != trial.number]
        failed = {other.number: other for other in others if other.state.name == "FAIL"}
        lost = failed.get(trial.user_attrs.get("again"))
        if lost is not None and "turn" in lost.user_attrs:
            return int(lost.user_attrs["turn"])
        live = [other for other in others if other.state.name in LIVE]
        repeated = [other for other in failed.values() if self._repeated_point(other) is not None]
        taken = {other.user_attrs.get("turn") for other in [*live, *repeated]}
        ahead = [other for other in live if other.number < trial.number]
        before = sum("turn" not in other.user_attrs for other in ahead)
        return [n for n in range(len(taken) + before + 1) if n not in taken][before]

    def _suggest(self, trial: Any) -> Numbers:
        point = {}
        for name, one in self.space.ranges.items():
            if one.whole:
                point[name] = trial.suggest_int(name, int(one.low), int(one.high))
            else:
                point[name] = trial.suggest_float(name, one.low, one.high, log=one.log)
        return point

    def recover(self, is_lost: Callable[[Any], bool]) -> None:
        """Fail running trials that are lost, and queue the point of every failed trial again."""
        for trial in self.trials("RUNNING"):
            if is_lost(trial):
                self.fail(trial.number)
        queued = {trial.user_attrs.get("again") for trial in self.trials()}
        for trial in self.trials("FAIL"):
            point = self._repeated_point(trial)
            if point is not None and trial.number not in queued:
                attributes = {"origin": trial.user_attrs.get("origin"), "again": trial.number}
                self._study.enqueue_trial(point, user_attrs=attributes)

    def _repeated_point(self, trial: Any) -> Numbers | None:
        """Return the point of a failed trial, or None if the trial is not to be repeated.

        A trial without a whole point needs no repetition: the same point is proposed again.
        """
        point: Numbers = trial.params or trial.system_attrs.get("fixed_params", {})
        if "surplus" in trial.user_attrs or set(point) != set(self.space.ranges):
            return None
        return point

    def fail(self, number: int) -> None:
        """Mark a trial as failed, unless it is finished."""
        state = self._optuna.trial.TrialState.FAIL
        with suppress(self._optuna.exceptions.UpdateFinishedTrialError):
            self._study.tell(number, state=state, skip_if_finished=True)

    def finish(self, trial: Any, score: float | None, **attributes: Any) -> None:
        """Store the score of a trial, or None if it was stopped, and some attributes."""
        for key, value in attributes.items():
            trial.set_user_attr(key, value)
        state = self._optuna.trial.TrialState
        self._study.tell(trial, score, state=state.PRUNED if score is None else state.COMPLETE)

    def importance(self) -> dict[str, float]:
        """Return the importance of each coordinate; empty if there are too few trials."""
        scores = {trial.value for trial in self.trials("COMPLETE")}
        if len(self.space.ranges) < 2 or len(scores) < 4:
            return {}
        module = extra("optuna.importance", "tune")
        found = module.get_param_importances(
            self._study, evaluator=module.PedAnovaImportanceEvaluator()
        )
        return {name: float(share) for name, share in found.items()}


def _is_same(trial: Any, other: Any) -> bool:
    """Check whether two processes queued the same trial."""
    ours, theirs = trial.user_attrs, other.user_attrs
    return any(
        ours.get(key) is not None and ours[key] == theirs.get(key) for key in ("origin", "again")
    )


class StaleTrials:
    """Detect stale trials without comparing clocks across machines.

    Args:
        timeout: Seconds without a change after which a trial is stale.
    """

    def __init__(self, timeout: float = STALE) -> None:
        self._timeout = timeout
        self._seen: dict[int, tuple[object, float]] = {}

    def is_stale(self, trial: Any) -> bool:
        """Check whether a running trial has not changed for too long, or its process has ended."""
        now = time.monotonic()
        content = (trial.user_attrs.get("beat"), len(trial.intermediate_values))
        before, since = self._seen.setdefault(trial.number, (content, now))
        if before != content:
            self._seen[trial.number] = (content, now)
            return False
        if now - since > self._timeout:
            return True
        return "worker" in trial.user_attrs and is_orphaned(trial)


def is_orphaned(trial: Any) -> bool:
    """Check whether a trial's process is known to have ended, or never entered itself as owner."""
    if "worker" not in trial.user_attrs:
        return bool((datetime.now() - trial.datetime_start).total_seconds() > OWNERLESS)
    *where, pid = trial.user_attrs["worker"].split()
    if where != place().split():
        return False
    return int(pid) == os.getpid() or not process_exists(int(pid))


def keep_trial_alive(trial: Any) -> AbstractContextManager[None]:
    """Show other machines that this process works on a trial."""
    beats = count(1)
    return keep_alive(lambda: trial.set_user_attr("beat", next(beats)), HEARTBEAT)
