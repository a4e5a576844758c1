"""The trials of a search in a database: which are done, which are lost, which comes next."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from ..errors import extra
from ..theory import design
from ..theory.design import Family
from ..training import generator
from .life import is_gone, owner
from .plan import Plan
from .spaces import Numbers, Space

FAMILIES: dict[str, Family] = {"BEF": "exponential", "BQF": "quadratic"}
LIVE = ("COMPLETE", "PRUNED", "RUNNING")
STARTUP = 10  # trials before the search learns from them


class Study:
    """A search as the database has it; any number of processes may hold one.

    Args:
        plan: What is searched.
        study: Optuna's.
    """

    def __init__(self, plan: Plan, study: Any) -> None:
        self.plan = plan
        self._study = study
        self._optuna = extra("optuna", "tune")

    def prepare(self, estimate: Callable[[], list[Any]]) -> None:
        """Settle what is admitted and what is tried first, and take up what others lost.

        Args:
            estimate: Finds the noise in the labels, if that is asked for.
        """
        if "first" not in self._study.user_attrs:
            admit = self.plan.admit
            noise = estimate() if isinstance(admit, str) else admit
            self._study.set_user_attr("noise", noise)
            self._study.set_user_attr("first", self._first(noise))
        there = {trial.user_attrs.get("origin") for trial in self.trials()}
        for origin, point in self._study.user_attrs["first"].items():
            if origin not in there:
                self._study.enqueue_trial(point, user_attrs={"origin": origin})
        self.recover(is_gone)

    def _first(self, noise: list[Any] | None) -> dict[str, Numbers]:
        """What is tried first: the published parameters, then what theory proposes."""
        first = {"default": self.plan.start}
        family = FAMILIES.get(self.plan.loss)
        if noise is not None and family is not None:
            found = design(self.plan.num_classes, noise, family)
            scale = 8.0
            shape: dict[str, Any] = {"alpha": -scale, "beta": found.curvature}
            if family == "quadratic":
                shape = {"alpha": -scale * found.curvature, "beta": -scale}
            parameters = {**shape, "gamma": 0.5, "tau": found.tau, "lam": 0.9, "mu": None}
            space = self.plan.space()
            numbers = space.find(parameters, self.plan.num_classes)
            ranges = space.including(numbers).ranges
            first["design"] = {key: ranges[key].coordinate(v) for key, v in numbers.items()}
        return first

    @property
    def noise(self) -> list[Any] | None:
        """The noise for which a loss must be proved robust."""
        found: list[Any] | None = self._study.user_attrs["noise"]
        return found

    @property
    def space(self) -> Space:
        return self.plan.space(*self._study.user_attrs["first"].values())

    @property
    def name(self) -> str:
        return str(self._study.study_name)

    def trials(self, *states: str) -> list[Any]:
        """The trials in some states, such as "COMPLETE", or all."""
        kinds = self._optuna.trial.TrialState
        wanted = tuple(kinds[state] for state in states) or None
        return list(self._study.get_trials(deepcopy=False, states=wanted))

    @property
    def finished(self) -> int:
        """How many trials count."""
        return len(self.trials("COMPLETE", "PRUNED"))

    def take(self, limit: int) -> tuple[Any, Numbers] | None:
        """The next trial, ours from now on, and its point; None if there is none left to begin.

        What is proposed depends on the seed, on what is known, and on how many trials come before;
        not on the process. So a search that was killed goes on as if it had not been.

        Args:
            limit: How many trials are to count.
        """
        if len(self.trials(*LIVE)) >= limit:
            return None
        samplers = self._optuna.samplers
        self._study.sampler = samplers.RandomSampler()  # is asked for nothing
        trial = self._study.ask()
        try:
            trial.set_user_attr("worker", owner())
        except self._optuna.exceptions.UpdateFinishedTrialError:  # taken for dead
            return None
        ahead = [other for other in self.trials(*LIVE) if other.number < trial.number]
        if len(ahead) >= limit or any(_is_same(trial, other) for other in ahead):
            # somebody was faster
            trial.set_user_attr("surplus", True)
            self.fail(trial.number)
            return None
        turn = self._turn(trial, ahead)
        trial.set_user_attr("turn", turn)
        seed = generator(self.plan.spec.seed, "search", turn).initial_seed() % 2**32
        self._study.sampler = samplers.TPESampler(seed=seed, n_startup_trials=STARTUP)
        trial = self._optuna.trial.Trial(self._study, trial._trial_id)
        return trial, self._suggest(trial)

    def _turn(self, trial: Any, ahead: Sequence[Any]) -> int:
        """The first number that no living trial has; those ahead that have none yet go first.

        How many are ahead would not do: where one of them was lost before it had a point, the next
        trial would be proposed the point of the last.
        """
        living = [other for other in self.trials(*LIVE) if other.number != trial.number]
        taken = {other.user_attrs.get("turn") for other in living}
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
        """Fail running trials that are lost, and put every lost point at the head of the queue."""
        for trial in self.trials("RUNNING"):
            if is_lost(trial):
                self.fail(trial.number)
        there = {trial.user_attrs.get("again") for trial in self.trials()}
        complete = set(self.space.ranges)
        for trial in self.trials("FAIL"):
            point = trial.params or trial.system_attrs.get("fixed_params", {})
            # one without a point lost nothing: the same is proposed again
            if trial.number not in there and complete == set(point) and not _surplus(trial):
                known = {"origin": trial.user_attrs.get("origin"), "again": trial.number}
                self._study.enqueue_trial(point, user_attrs=known)

    def fail(self, number: int) -> None:
        """Give a trial up, unless somebody finished it."""
        state = self._optuna.trial.TrialState.FAIL
        with suppress(self._optuna.exceptions.UpdateFinishedTrialError):
            self._study.tell(number, state=state, skip_if_finished=True)

    def finish(self, trial: Any, score: float | None, **facts: Any) -> None:
        """Write down what came out of a trial: a score, or none if it was stopped."""
        for key, value in facts.items():
            trial.set_user_attr(key, value)
        state = self._optuna.trial.TrialState
        self._study.tell(trial, score, state=state.PRUNED if score is None else state.COMPLETE)

    def importance(self) -> dict[str, float]:
        """How much each coordinate mattered; empty where that cannot be told."""
        scores = {trial.value for trial in self.trials("COMPLETE")}
        if len(self.space.ranges) < 2 or len(scores) < 4:
            return {}
        module = extra("optuna.importance", "tune")
        found = module.get_param_importances(
            self._study, evaluator=module.PedAnovaImportanceEvaluator()
        )
        return {name: float(share) for name, share in found.items()}


def _surplus(trial: Any) -> bool:
    return "surplus" in trial.user_attrs


def _is_same(trial: Any, other: Any) -> bool:
    """Whether two processes put the same trial into the queue."""
    ours, theirs = trial.user_attrs, other.user_attrs
    return any(
        ours.get(key) is not None and ours[key] == theirs.get(key) for key in ("origin", "again")
    )
