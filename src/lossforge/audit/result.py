"""What an audit finds, as plain values."""

import csv
import io
from dataclasses import asdict, dataclass
from typing import Any

from .estimate import Estimated
from .judge import Candidate, Recommendation
from .subject import Subject
from .suspects import Suspect


@dataclass(frozen=True)
class Method:
    """How the probabilities were made.

    Args:
        network: Its name.
        loss: It was trained with.
        folds: Of the cross-validation.
        repeats: How often it was done, with other folds and weights.
        epochs: At which the folds were stopped.
        accuracy: The share of given labels that are the likeliest class out of fold.
        seed: Of everything.
        seconds: The whole audit took.
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
        subject: What was audited.
        method: How.
        noise: What noise there is.
        candidates: Losses, in order of preference.
        recommended: The one to use.
        suspects: Samples that are probably mislabelled, the likeliest first.
    """

    subject: Subject
    method: Method
    noise: Estimated
    candidates: tuple[Candidate, ...]
    recommended: Recommendation
    suspects: tuple[Suspect, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values, which `json.dumps` takes and `lossforge.report.page.audit_page` shows."""
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
            },
            "method": {**asdict(self.method), "epochs": list(self.method.epochs)},
            "noise": {
                "rate": noise.rate.value,
                "low": noise.rate.low,
                "high": noise.rate.high,
                "repeats": list(noise.repeats),
                "resamples": len(noise.resampled),
                "transition": noise.noise.T.tolist(),
                "prior": noise.noise.prior.tolist(),
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
            "losses": [asdict(one) for one in self.candidates],
            "recommended": asdict(self.recommended),
            "suspects": [asdict(one) for one in self.suspects],
        }

    def suspects_csv(self) -> str:
        """The suspects as a table, one a row."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        names = ("index", "where", "given", "suggested", "confidence", "suggested_confidence")
        writer.writerow([*names, "text"])
        for one in self.suspects:
            shares = (f"{one.confidence:.4f}", f"{one.suggested_confidence:.4f}")
            writer.writerow([one.index, one.where, one.given, one.suggested, *shares, one.text])
        return file.getvalue()

    def transition_csv(self) -> str:
        """The transition matrix as `lossforge certify --noise FILE` reads it."""
        rows = (",".join(map(repr, row)) for row in self.noise.noise.T.tolist())
        return "\n".join(rows) + "\n"
