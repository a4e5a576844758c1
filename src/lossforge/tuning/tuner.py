"""A search from its beginning to the comparison at its end."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..data.source import PathLike
from ..errors import check_integer, extra
from .estimate import estimate
from .final import compare
from .objective import Objective, visible
from .plan import make_plan
from .pool import search_together
from .result import Comparison, Trial, Tuned, ranked
from .search import search_all
from .storage import open_study
from .study import Study


@dataclass(frozen=True)
class Progress:
    """How far a search is.

    Args:
        finished: Trials that count.
        trials: How many there shall be.
        best: The best score so far.
        final: Final runs done.
    """

    finished: int
    trials: int
    best: float | None
    final: int = 0


OnProgress = Callable[[Progress], object]


def tune(
    data: str,
    noise: str,
    loss: str,
    *,
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
    on_progress: OnProgress | None = None,
) -> Tuned:
    """Search the parameters of a loss on noisy labels, and test the best against the default.

    The search trains on noisy labels and judges by other noisy labels, held out; true labels and
    test sets are taken out of the data before it begins. The same call continues a search that was
    interrupted; with a larger `trials` it prolongs one that is done.

    Args:
        data: Name of a data set.
        noise: Label noise, as for `lossforge train`.
        loss: Name of a catalogue loss.
        trials: How many losses are tried, those stopped early or not admitted included.
        splits: Held-out parts on each of which every trial is trained and judged; the score is
            their mean. More cost as many times the time, and leave less to luck.
        seed: Of noise, weights, held-out part and search; final runs have the seeds that follow.
        settings: Of the run, as `--set` takes them; `hold_out` is 0.1 if it is not among them.
        admit: Try only losses that `lossforge.theory.certify` proves for a noise: a matrix as that
            takes, or "estimate" to estimate it from the labels.
        store: Folder of the search and of the final runs.
        storage: URL of a database that many machines can reach, instead of a file in `store`.
        workers: Processes that do trials; only with one is a search reproducible.
        final_seeds: Pairs of final runs; 0 leaves true labels and tests alone.
        data_dir: Where the data are, instead of the usual folders.
        device: Where to train.
        on_progress: Called after every trial and every final run.
    """
    for name, value, least in (
        ("trials", trials, 1),
        ("splits", splits, 1),
        ("workers", workers, 1),
    ):
        check_integer(name, value, least)
    check_integer("final_seeds", final_seeds, 0)
    extra("optuna", "tune")
    plan = make_plan(
        data,
        noise,
        loss,
        splits=splits,
        seed=seed,
        settings=settings,
        admit=admit,
        data_dir=data_dir,
    )
    store.mkdir(parents=True, exist_ok=True)
    url = storage or f"sqlite:///{(store / 'study.db').resolve()}"
    tell = on_progress or (lambda progress: None)
    seen = visible(plan.spec, splits, data_dir)
    objective = Objective(plan.spec, seen, device)

    def on_trial(study: Study) -> None:
        scores = [trial.value for trial in study.trials("COMPLETE")]
        tell(Progress(study.finished, trials, max(scores, default=None)))

    with open_study(plan, url) as study:
        study.prepare(partial(estimate, plan.spec, seen[0], device=device))
        on_trial(study)
        if workers == 1:
            search_all(study, objective, trials, on_trial=on_trial)
        else:
            search_together(
                study,
                url,
                trials,
                workers=workers,
                data_dir=data_dir,
                device=device,
                on_trial=on_trial,
            )
        found, importance = _read(study), study.importance()
        ranges = {key: (one.low, one.high, one.log) for key, one in study.space.ranges.items()}
        admitted = study.noise
    top = ranked(found)
    folder = store / plan.name
    final: tuple[Comparison, ...] = ()
    if top and final_seeds:
        final = compare(
            plan,
            top[0].expression,
            [seed + 1 + place for place in range(final_seeds)],
            folder,
            workers=workers,
            data_dir=data_dir,
            device=device,
            on_run=lambda done: tell(Progress(len(found), trials, top[0].score, done)),
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


def _read(study: Study) -> list[Trial]:
    """The trials that count, numbered in their order."""
    return [
        Trial(
            number=place,
            expression=trial.user_attrs["expression"],
            coordinates={key: trial.params[key] for key in study.space.ranges},
            state=trial.user_attrs.get("stopped", "complete"),
            score=trial.value if trial.state.name == "COMPLETE" else None,
            origin=trial.user_attrs.get("origin") or "search",
        )
        for place, trial in enumerate(study.trials("COMPLETE", "PRUNED"))
    ]
