"""The findings of an audit, as plain values and as CSV."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..noise.spec import matrix_csv
from ..text import csv_text
from .candidates import Candidate, Recommendation
from .noise import Estimated
from .subject import Subject


@dataclass(frozen=True)
class Suspect:
    """A sample that is probably mislabelled.

    Args:
        index: Its position, counted from 0.
        where: Its location: a line of a file, the path of an image.
        given: Its given label.
        suggested: The class that the network predicts.
        confidence: The probability out of fold of the given label (self-confidence).
        suggested_confidence: That of the suggested class.
        text: A description of the sample.
        ids: Its values in the user's own columns that identify it, by column.
    """

    index: int
    where: str
    given: str
    suggested: str
    confidence: float
    suggested_confidence: float
    text: str
    ids: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """How the probabilities were computed.

    Args:
        network: The name of the network; empty, as `loss`, if the probabilities were given.
        loss: The loss it was trained with.
        folds: Folds of the cross-validation; 0 without one.
        repeats: Cross-validations with other folds and weights.
        epochs: The epoch at which each fold was stopped.
        accuracy: The share of given labels that are the most probable class out of fold.
        seed: Of the audit.
        seconds: Duration of the audit.
    """

    network: str
    loss: str
    folds: int
    repeats: int
    epochs: tuple[int, ...]
    accuracy: float
    seed: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Audit:
    """The findings about a set of labels.

    Args:
        subject: The audited data.
        method: How the probabilities were computed.
        noise: The estimated noise.
        candidates: Losses in order of preference, then procedures.
        recommended: What to train with.
        suspects: Samples that are probably mislabelled, most suspicious first.
    """

    subject: Subject
    method: Method
    noise: Estimated
    candidates: tuple[Candidate, ...]
    recommended: Recommendation
    suspects: tuple[Suspect, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for `json.dumps` and for `lossforge.report.page.audit_page`."""
        subject, noise = self.subject, self.noise
        classes = subject.dataset.classes
        counts = subject.given.bincount(minlength=len(classes)).tolist()
        return {
            "data": {
                "name": subject.name,
                "kind": subject.kind,
                "rows": len(subject.given),
                "classes": list(classes),
                "counts": counts,
                "notes": list(subject.notes),
                "injected": subject.injected,
                "label": subject.label,
                "sha256": subject.sha256,
            },
            "method": {**asdict(self.method), "epochs": list(self.method.epochs)},
            "noise": {
                "rate": noise.rate.value,
                "low": noise.rate.low,
                "high": noise.rate.high,
                "sure": noise.sure_rate,
                "most": noise.most_rate,
                "repeats": list(noise.repeats),
                "resamples": len(noise.resampled),
                "transition": noise.estimate.T.tolist(),
                "prior": noise.estimate.prior.tolist(),
                "dominated": [
                    {"true": classes[true], "given": classes[given]}
                    for true, given in noise.dominated
                ],
            },
            "confusions": [
                {
                    "true": classes[one.true],
                    "given": classes[one.given],
                    "rate": one.rate.value,
                    "low": one.rate.low,
                    "high": one.rate.high,
                    "rows": one.rows,
                }
                for one in noise.confusions
            ],
            "losses": [
                {**_plain(one), "witness": _witness(one, classes)} for one in self.candidates
            ],
            "recommended": _plain(self.recommended),
            "suspects": [asdict(one) for one in self.suspects],
        }

    def suspects_csv(self) -> str:
        """Write the suspects as CSV, one per row; see `lossforge.text.csv_cell`.

        The index counts from 0, the row from 1. Columns of the user's that identify rows follow,
        with `own_` before a name that is taken.
        """
        names = (
            *("index", "row", "where", "given", "suggested"),
            *("confidence", "suggested_confidence", "text"),
        )
        ids = list(self.suspects[0].ids) if self.suspects else []
        own = [f"own_{name}" if name in names else name for name in ids]
        rows: list[tuple[object, ...]] = [(*names, *own)]
        for one in self.suspects:
            place = (one.index, one.index + 1, one.where)
            shares = (f"{one.confidence:.4f}", f"{one.suggested_confidence:.4f}")
            values = [one.ids[name] for name in ids]
            rows.append((*place, one.given, one.suggested, *shares, one.text, *values))
        return csv_text(rows)

    def transition_csv(self) -> str:
        """Write the transition matrix as CSV, for `lossforge certify --noise FILE`."""
        return matrix_csv(self.noise.estimate.T, self.subject.dataset.classes)


def _witness(one: Candidate, classes: Sequence[str]) -> str | None:
    """Describe the prediction at which a loss has no guarantee, in the names of the classes."""
    if one.witness is None:
        return None
    true, prediction = classes[one.witness.target], one.witness.text(lambda k: classes[k])
    return (
        f"for a sample of class {true} predicted {prediction}, the expected loss grows with the "
        f"logit of {true}, by {one.witness.value:.2g} per unit"
    )


def _plain(one: Candidate | Recommendation) -> dict[str, Any]:
    return {**asdict(one), "commands": list(one.commands)}
