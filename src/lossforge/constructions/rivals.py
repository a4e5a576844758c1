"""One loss for rows with few rivals, another for rows with many."""

from collections.abc import Callable
from dataclasses import replace
from typing import Unpack

import torch
from torch import Tensor

from ..base.function import format_arguments
from ..errors import check_factor, check_integer
from ..kernels import Form
from ..loss import Loss, Policy, ProbabilityLoss, Scores, WeightedSum
from ..loss.policy import readable
from .parts import Declared, Part
from .wrappers import check_inner


class ByRivals(ProbabilityLoss):
    """The loss `few` of rows with up to `most` rivals, the loss `many` of all others.

    Rivals are the classes beside the label that are not masked, so a row with masked classes still
    has the loss of its remaining ones. Where torch operations compute the loss, both are evaluated
    for a batch whose masks cannot be read: on a GPU, and where a function is compiled or mapped.

    Args:
        few: The first loss, without a policy of its own.
        many: The second one.
        most: The largest number of rivals at which the first one counts, 1 or more.
    """

    def __init__(self, few: Loss, many: Loss, *, most: int, **policy: Unpack[Policy]) -> None:
        super().__init__(**policy)
        check_inner("few", few)
        check_inner("many", many)
        check_integer("most", most, 1)
        check_factor("most", most)
        self.few = few
        self.many = many
        self.most = most

    def at(self, num_classes: int) -> Loss:
        """The loss of a row of K classes, none of them masked."""
        return self.few if num_classes - 1 <= self.most else self.many

    def from_scores(self, scores: Scores, target: Tensor) -> Tensor:
        return self._by_row(scores, lambda loss: loss.from_scores(scores, target))

    def expected(self, scores: Scores, weights: Tensor) -> Tensor:
        return self._by_row(scores, lambda loss: loss.expected(scores, weights))

    def label_mean(self, scores: Scores) -> Tensor:
        return self._by_row(scores, lambda loss: loss.label_mean(scores))

    def _by_row(self, scores: Scores, values: Callable[[Loss], Tensor]) -> Tensor:
        classes = scores.values.shape[1]
        if scores.normalised or classes - 1 <= self.most:  # all are counted, or few in any case
            return values(self.at(classes))
        # between two whole numbers, where rounding decides nothing
        many = scores.rival_share() * (self.most + 0.5) < 1
        if readable(scores.values):
            if bool(many.all()):
                return values(self.many)
            if not bool(many.any()):
                return values(self.few)
        return torch.where(many, values(self.many), values(self.few))

    def parts(self, num_classes: int) -> tuple[Part, ...]:
        """The terms for K classes; none if a loss does not declare its own."""
        loss = self.at(num_classes)
        terms = loss.terms if isinstance(loss, WeightedSum) else ((1.0, loss),)
        found: list[Part] = []
        for scale, member in terms:
            if not isinstance(member, Declared):
                return ()
            parts = member.parts(num_classes)
            found += [replace(part, factor=scale * part.factor) for part in parts]
        return tuple(found)

    def fused(self, num_classes: int) -> Form | None:
        if num_classes - 1 <= self.most:
            return self.few.fused(num_classes)
        few, many = self.few.fused(num_classes), self.many.fused(num_classes)
        if few is None or many is None or few.rescaling or many.rescaling:
            return None
        if few.constant != many.constant:  # a kernel adds one constant to every row
            return None
        return few.within(most=self.most) + replace(many.within(fewest=self.most + 1), constant=0.0)

    def __str__(self) -> str:
        return f"by_rivals({self.few}, {self.many}, {format_arguments({'most': self.most})})"
