"""Proofs for rows in which the ratio tests do not decide."""

import torch

from .bounds import Bounds, Tables
from .form import Form
from .linear import full_confidence_is_best, one_rival_at_a_time, sum_is_nonnegative
from .parts import RatioTest, monotone_tests
from .verdict import Level
from .weights import Rows

HOW: dict[Level, str] = {
    "joint": "the other part makes up for it (joint certificate)",
    "logits": "the sum over all rivals is nonnegative (linear bound)",
}


class Prover:
    """Bounds of the parts of a loss, and the proofs they give.

    Parts that are neither target separation nor binary reduction must not fall short themselves:
    what is proved is that the others do not.
    """

    def __init__(self, form: Form, cells: int, tables: Tables) -> None:
        self._form, self._cells, self._tables = form, cells, tables
        self._bounds = Bounds(form, cells, tables)

    @property
    def certified(self) -> bool:
        """Whether the bounds are proved themselves."""
        return self._bounds.certified

    @property
    def strict(self) -> bool:
        """Whether no density vanishes, but perhaps at an end of [0, 1]."""
        return self._bounds.positive

    def monotone(self, row: Rows, tests: list[RatioTest], *, thorough: bool = True) -> Level | None:
        """The level at which the claim "monotone" is proved in a row; None where it is not.

        Args:
            row: One row.
            tests: The ratio tests of this row.
            thorough: Whether to try what takes longer than to look for a counterexample.
        """
        own, rival, total = (float(part[0]) for part in (row.own, row.rivals[0], row.totals))
        if row.num_classes == 2:
            return "joint" if self._bounds.transfers(own, rival, total) else None
        if any(test.exact and not bool(test.passed[0]) for test in tests):
            # nothing makes up for a binary reduction that fails: it rules where x + y tends to 0
            return None
        both = self._form.separation is not None and self._form.reduction is not None
        if both and self._bounds.joint(own, rival, total):
            return "joint"
        prove = sum_is_nonnegative if thorough else one_rival_at_a_time
        return "logits" if prove(self._bounds, own, rivals_of(row), total) else None

    def globally(self, row: Rows) -> bool:
        """Whether full confidence is proved best in a row."""
        tests = monotone_tests(self._form, row, self._cells, self._tables)
        if all(bool(test.passed[0]) for test in tests) or self.monotone(row, tests) is not None:
            return True
        if self._form.reduction is not None or not self._form.understood:
            return False
        own, total = float(row.own[0]), float(row.totals[0])
        return full_confidence_is_best(self._bounds, own, rivals_of(row), total)


def rivals_of(row: Rows) -> torch.Tensor:
    """(K - 1,) weights of the other classes of one row."""
    return row.weights[0, torch.arange(row.num_classes) != row.targets[0]]
