"""What a search found."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

State = Literal["complete", "pruned", "rejected", "diverged"]
Origin = Literal["default", "design", "search"]


@dataclass(frozen=True)
class Trial:
    """One loss that was tried.

    Args:
        number: In the order of the search, from 0.
        expression: The loss.
        coordinates: Where it lies in the search space.
        state: "complete"; or why it has no score: "pruned" (in the worst quarter in the
            second half of training), "rejected" (not proved robust) or "diverged".
        score: Mean accuracy in % on held-out noisy labels over the last epochs.
        origin: Whether it is the published setting, theory's proposal, or from the search.
    """

    number: int
    expression: str
    coordinates: dict[str, float]
    state: State
    score: float | None
    origin: Origin


@dataclass(frozen=True)
class Comparison:
    """Test accuracy with tuned and with default parameters, seed by seed.

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
    """The outcome of a search.

    Args:
        loss: The loss's name in the catalogue.
        best: The best loss found, as `lossforge.parse` reads it; None if no trial is complete.
        default: The loss with its published parameters.
        study: The name of the search in its storage.
        folder: Where the final runs are, as `lossforge report` takes it.
        trials: All that count, in the order of the search.
        importance: Share of each coordinate in the differences between trials, if it can be told.
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
        """The complete trials, best first; of equals, the earlier."""
        return ranked(self.trials)

    @property
    def score(self) -> float | None:
        """The score of the best."""
        return self.top[0].score if self.top else None

    @property
    def default_score(self) -> float | None:
        """The score of the published parameters; None if they were not trained with."""
        scores = [trial.score for trial in self.trials if trial.origin == "default"]
        return scores[0] if scores else None

    def count(self, state: State) -> int:
        """How many trials ended in a way."""
        return sum(trial.state == state for trial in self.trials)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        own = {"score": self.score, "default_score": self.default_score}
        return {**asdict(self), **own}


def ranked(trials: Sequence[Trial]) -> list[Trial]:
    """The complete trials, best first; of equals, the earlier."""
    complete = [trial for trial in trials if trial.score is not None]
    return sorted(complete, key=lambda trial: (-(trial.score or 0.0), trial.number))
