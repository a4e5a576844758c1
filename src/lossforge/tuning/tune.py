"""`tune`: search the parameters of a loss, then compare the best with the published ones."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from ..benchmark import Run, RunFolder, execute, resolve
from ..benchmark.executors import run_all
from ..benchmark.records import Record, read_record
from ..benchmark.statistics import interval, paired_differences
from ..data.own import OwnData
from ..data.source import PathLike
from ..errors import check_integer, extra
from .plan import Plan, make_plan
from .score import HeldOutScore, estimate_transition, visible
from .search import search_all, search_in_processes
from .study import Study, open_study

TrialState = Literal["complete", "pruned", "rejected", "diverged"]
Origin = Literal["default", "design", "search"]


@dataclass(frozen=True)
class Trial:
    """One loss that was tried.

    Args:
        number: In the order of the search, from 0.
        expression: The loss.
        coordinates: Its point in the search space.
        state: "complete"; or why it has no score: "pruned" (in the worst quarter in the
            second half of training), "rejected" (not proved robust) or "diverged".
        score: Mean accuracy in % on held-out noisy labels over the last epochs.
        origin: The published setting, the proposal of the theory, or the search.
    """

    number: int
    expression: str
    coordinates: dict[str, float]
    state: TrialState
    score: float | None
    origin: Origin


@dataclass(frozen=True)
class Comparison:
    """Test accuracy with tuned and with default parameters, paired by seed.

    Args:
        test: Name of the test set.
        seeds: Of the runs.
        tuned: Accuracy after the last epoch in %; None where a run diverged.
        default: The same with the published parameters.
        mean: Mean difference over the pairs; None without any.
        low: Lower end of its 95 % t interval; None for fewer than two pairs.
        high: Its upper end.
    """

    test: str
    seeds: tuple[int, ...]
    tuned: tuple[float | None, ...]
    default: tuple[float | None, ...]
    mean: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Tuned:
    """The result of a search.

    Args:
        loss: The loss's name in the catalogue.
        best: The best loss found, as `lossforge.parse` reads it; None if no trial is complete.
        default: The loss with its published parameters.
        study: The name of the search in its storage.
        folder: The folder of the final runs, for `lossforge report`.
        trials: All trials that count, in the order of the search.
        importance: Share of each coordinate in the differences between trials; empty if unknown.
        ranges: Lower end, upper end and whether logarithmic, by coordinate.
        noise: The noise for which the losses are proved robust, if one was given or estimated.
        final: Tuned against default, one for each test set; empty if there were no final runs.
    """

    loss: str
    best: str | None
    default: str
    study: str
    folder: str
    trials: tuple[Trial, ...]
    importance: dict[str, float]
    ranges: dict[str, tuple[float, float, bool]]
    noise: list[Any] | None
    final: tuple[Comparison, ...]

    @property
    def top(self) -> list[Trial]:
        """The complete trials, best first; the earlier first among equals."""
        return _ranked(self.trials)

    @property
    def score(self) -> float | None:
        """The score of the best trial."""
        return self.top[0].score if self.top else None

    @property
    def default_score(self) -> float | None:
        """The score of the published parameters; None if they have no complete trial."""
        scores = [trial.score for trial in self.trials if trial.origin == "default"]
        return scores[0] if scores else None

    def count(self, state: TrialState) -> int:
        """Count the trials in `state`."""
        return sum(trial.state == state for trial in self.trials)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {**asdict(self), "score": self.score, "default_score": self.default_score}


@dataclass(frozen=True)
class SearchProgress:
    """The progress of a search.

    Args:
        finished: Trials that count.
        trials: Trials that shall count.
        best: The best score so far.
        final: Finished final runs.
    """

    finished: int
    trials: int
    best: float | None
    final: int = 0


def tune(
    data: str | OwnData,
    noise: str,
    loss: str,
    *,
    method: str = "plain",
    trials: int = 50,
    splits: int = 1,
    seed: int = 0,
    settings: dict[str, Any] | None = None,
    admit: object = None,
    store: Path = Path("runs/tune"),
    storage: str | None = None,
    workers: int = 1,
    final_seeds: int = 3,
    data_dir: PathLike | None = None,
    device: str = "cpu",
    on_progress: Callable[[SearchProgress], object] | None = None,
) -> Tuned:
    """Search the parameters of a loss on noisy labels, and test the best against the default.

    The search trains on noisy labels and scores on other, held-out noisy labels; true labels and
    test sets are removed from the data before it starts. The same call continues an interrupted
    search; with a larger `trials` it extends a finished one.

    Args:
        data: Name of a data set, or what `lossforge.data.own.describe` returns.
        noise: Label noise, as for `lossforge train`.
        loss: Name of a catalogue loss, or of a loss in admitted code whose class has its ranges
            in the attribute `tune`.
        method: The training method of every run, as for `lossforge train`.
        trials: The number of losses to try, including those stopped early or not admitted.
        splits: Held-out parts; every trial is trained and scored on each, and its score is the
            mean. n splits take n times as long, and depend less on chance.
        seed: Of noise, weights, held-out part and search; final runs have the seeds that follow.
        settings: Of the run, as `--set` takes them; `hold_out` is 0.1 unless given.
        admit: Try only losses that `lossforge.theory.certify` proves for a noise: a matrix as for
            that function, or "estimate" to estimate it from the labels.
        store: Folder of the search and of the final runs.
        storage: URL of a database that several machines can reach, instead of a file in `store`.
        workers: Processes that do trials; a search is reproducible only with one.
        final_seeds: Pairs of final runs; 0 reads no true labels and no test sets.
        data_dir: Where the data are, instead of the usual folders.
        device: Where to train.
        on_progress: Called after every trial and every final run.
    """
    for name, value, least in (
        ("trials", trials, 1),
        ("splits", splits, 1),
        ("workers", workers, 1),
        ("final_seeds", final_seeds, 0),
    ):
        check_integer(name, value, least)
    extra("optuna", "tune")
    plan = make_plan(
        data,
        noise,
        loss,
        method=method,
        splits=splits,
        seed=seed,
        settings=settings,
        admit=admit,
        data_dir=data_dir,
    )
    store.mkdir(parents=True, exist_ok=True)
    url = storage or f"sqlite:///{(store / 'study.db').resolve()}"
    report = on_progress or (lambda progress: None)
    seen = visible(plan, data_dir)
    score = HeldOutScore(plan.spec, seen, device)

    def on_trial(study: Study) -> None:
        scores = [trial.value for trial in study.trials("COMPLETE")]
        report(SearchProgress(study.finished, trials, max(scores, default=None)))

    with open_study(plan, url) as study:
        study.prepare(partial(estimate_transition, plan.spec, seen[0], device=device))
        on_trial(study)
        if workers == 1:
            search_all(study, score, trials, on_trial=on_trial)
        else:
            search_in_processes(
                study,
                url,
                trials,
                workers=workers,
                data_dir=data_dir,
                device=device,
                on_trial=on_trial,
            )
        found, importance = _read_trials(study), study.importance()
        ranges = {key: (one.low, one.high, one.log) for key, one in study.space.ranges.items()}
        admitted = study.noise
    top = _ranked(found)
    folder = store / plan.name
    final: tuple[Comparison, ...] = ()
    if top and final_seeds:
        final = compare(
            plan,
            top[0].expression,
            [seed + 1 + number for number in range(final_seeds)],
            folder,
            workers=workers,
            data_dir=data_dir,
            device=device,
            on_run=lambda done: report(SearchProgress(len(found), trials, top[0].score, done)),
        )
    return Tuned(
        loss=plan.loss,
        best=top[0].expression if top else None,
        default=plan.spec.expression,
        study=plan.name,
        folder=str(folder),
        trials=tuple(found),
        importance=importance,
        ranges=ranges,
        noise=admitted,
        final=final,
    )


def _read_trials(study: Study) -> list[Trial]:
    """Return the trials that count, numbered in their order."""
    return [
        Trial(
            number=number,
            expression=trial.user_attrs["expression"],
            coordinates={key: trial.params[key] for key in study.space.ranges},
            state=trial.user_attrs.get("stopped", "complete"),
            score=trial.value if trial.state.name == "COMPLETE" else None,
            origin=trial.user_attrs.get("origin") or "search",
        )
        for number, trial in enumerate(study.trials("COMPLETE", "PRUNED"))
    ]


def _ranked(trials: Sequence[Trial]) -> list[Trial]:
    complete = [trial for trial in trials if trial.score is not None]
    return sorted(complete, key=lambda trial: (-(trial.score or 0.0), trial.number))


def compare(
    plan: Plan,
    best: str,
    seeds: Sequence[int],
    folder: Path,
    *,
    workers: int = 1,
    data_dir: PathLike | None = None,
    device: str = "cpu",
    on_run: Callable[[int], object] | None = None,
) -> tuple[Comparison, ...]:
    """Train with the best and the published parameters, and test on true labels.

    These are runs of a benchmark by the protocol of the search: paired by seed, kept in a folder,
    and not repeated.

    Args:
        plan: The search.
        best: The best loss that it found.
        seeds: Of the runs.
        folder: The folder of the runs.
        workers: Runs at a time.
        data_dir: Where the data are, instead of the usual folders.
        device: Where to train.
        on_run: Called with the number of finished runs.
    """
    tuned = [_final_run(plan, f"{plan.loss} tuned", best, seed) for seed in seeds]
    default = [_final_run(plan, plan.loss, plan.spec.expression, seed) for seed in seeds]
    runs = [run for pair in zip(tuned, default, strict=True) for run in pair]
    if workers > 1:
        gpus = () if device == "cpu" else None
        run_all("local", folder, runs, workers=workers, data_dir=data_dir, gpus=gpus, trust=True)
    for number, run in enumerate(runs):
        if execute(folder, run, data_dir=data_dir, device=device) == "busy":
            path = RunFolder(folder, run.spec).path
            raise ValueError(f"another process is already doing a final run; see {path}")
        if on_run is not None:
            on_run(number + 1)
    records = [
        [read_record(RunFolder(folder, run.spec).path) for run in runs] for runs in (tuned, default)
    ]
    tests = dict.fromkeys(test for group in records for one in group for test in one.tests)
    return tuple(_compare(test, seeds, *records) for test in tests)


def _final_run(plan: Plan, name: str, expression: str, seed: int) -> Run:
    changes = {"loss": name, "expression": expression, "seed": seed}
    return resolve(plan.spec.model_copy(update=changes), noise=plan.label_noise())


def _compare(
    test: str, seeds: Sequence[int], tuned: list[Record], default: list[Record]
) -> Comparison:
    ours, theirs = (
        {
            seed: last
            for seed, record in zip(seeds, group, strict=True)
            if (last := record.last(test)) is not None
        }
        for group in (tuned, default)
    )
    pairs = paired_differences(ours, theirs)
    mean = statistics.fmean(pairs) if pairs else None
    low, high = interval(pairs)
    return Comparison(
        test=test,
        seeds=tuple(seeds),
        tuned=tuple(ours.get(seed) for seed in seeds),
        default=tuple(theirs.get(seed) for seed in seeds),
        mean=mean,
        low=low,
        high=high,
    )
