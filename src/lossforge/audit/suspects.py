"""The samples whose label is probably wrong."""

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from ..errors import extra
from .subject import Subject


@dataclass(frozen=True)
class Suspect:
    """A sample that is probably mislabelled.

    Args:
        index: Its position, counted from 0.
        where: Where a person finds it.
        given: The label it has.
        suggested: The class that the network takes it for.
        confidence: The probability out of fold of the label it has (self-confidence).
        suggested_confidence: That of the suggested one.
        text: What it is recognised by.
    """

    index: int
    where: str
    given: str
    suggested: str
    confidence: float
    suggested_confidence: float
    text: str


def find_suspects(probs: Tensor, subject: Subject) -> Iterator[Suspect]:
    """The samples that cleanlab flags, those whose label loses to another by most first.

    It flags, for each pair of classes, as many samples as the estimated noise has there; those
    with the largest margin of the one class over the other. On digits with asymmetric noise this
    order had more wrong labels at its top than that by self-confidence alone.

    Args:
        probs: (N, K) probabilities out of fold.
        subject: What was audited.
    """
    find = extra("cleanlab.filter", "noise").find_label_issues
    given, classes = subject.given, subject.dataset.classes
    rows = find(
        given.numpy(),
        probs.numpy(),
        return_indices_ranked_by="normalized_margin",
        n_jobs=1,
    )
    for row in rows.tolist():
        label, best = int(given[row]), int(probs[row].argmax())
        yield Suspect(
            row,
            subject.where(row),
            classes[label],
            classes[best],
            float(probs[row, label]),
            float(probs[row, best]),
            subject.text(row),
        )
