"""One claim for many rows: a few proofs, each for all the rows that are no harder.

What the proofs compare rises with the weight of the target and falls with that of a rival (see
`bounds` and `full_confidence`). So a proof at some weights holds wherever the target weighs as much
or more and the rivals, in the order of weight, as much or less.

Rows that the ratio tests leave open are settled in rounds: as if every rival weighed as much as the
heaviest, as if all but the heaviest weighed as much as the second, and so on; in the last, as they
are. A round tries the row in the middle of those still open. Where that is proved, so are all that
are no harder; where not, those at least as hard are left to the next round. The number of proofs is
bounded, whatever the number of rows; what is open after the last is not proved.
"""

from typing import Literal

import torch
from torch import Tensor

from .bounds import Tables
from .cosine import keeps_proofs, rest_of
from .forms import Form
from .global_claim import global_tests
from .proofs import Prover
from .ratio_tests import RatioTest, monotone_tests, normalised
from .verdict import Claim
from .weights import Rows

# of each round: rivals whose weight counts (0: all), the most proofs, whether they may take long
ROUNDS = ((1, 64, False), (2, 256, False), (3, 256, False), (0, 64, True))
_SLACK = 1e-12


def prove_rows(form: Form, rows: Rows, claim: Claim, cells: int, tables: Tables) -> Tensor:
    """(R,) rows in which a claim is proved; the target must lead in all of them."""
    if form.cosine:
        rest, kept = rest_of(form), keeps_proofs(form, rows, claim)
        return kept if rest is None else kept & prove_rows(rest, rows, claim, cells, tables)
    if claim == "global":
        return _globally(form, rows, cells, tables)
    two = rows.num_classes == 2
    if claim == "transfers" and not two and (form.reduction or not form.separation):
        return torch.zeros(len(rows.weights), dtype=torch.bool)
    tests = monotone_tests(form, rows, cells, tables)
    proved = _passed(tests)
    if claim == "transfers" and not two:
        return proved
    # nothing makes up for a binary reduction or a normalised part that fails
    needed = [test.passed for test in tests if test.exact and not two]
    left = torch.stack([~proved, _even(form, rows), *needed]).all(0)
    return proved | _settled(Prover(form, cells, tables), rows, left, "monotone")


def _globally(form: Form, rows: Rows, cells: int, tables: Tables) -> Tensor:
    prover = Prover(form, cells, tables)
    none = torch.zeros(len(rows.weights), dtype=torch.bool)
    if (form.separation is None and form.reduction is None) or not prover.strict:
        return none
    several = form.separation is not None and form.separation.a is None
    proved = none if several else _passed(global_tests(form, rows, cells, tables))
    return proved | _settled(prover, rows, ~proved & _even(form, rows), "global")


def _even(form: Form, rows: Rows) -> Tensor:
    """(R,) rows in which the normalised parts, if there are any, do not fall short."""
    return normalised(rows).passed | (not form.normalised)


def _passed(tests: list[RatioTest]) -> Tensor:
    """(R,) rows that pass all tests, by proved ratios or with any base function."""
    free = (torch.zeros_like(test.passed) if test.free is None else test.free for test in tests)
    sure = [test.passed & (test.certified | any_) for test, any_ in zip(tests, free, strict=True)]
    return torch.stack(sure).all(0)


def _settled(
    prover: Prover, rows: Rows, left: Tensor, claim: Literal["monotone", "global"]
) -> Tensor:
    """(R,) rows among those left that are proved in the rounds."""
    proved = torch.zeros_like(left)
    if not prover.certified or not bool(left.any()):
        return proved
    others = rows.weights.scatter(1, rows.targets[:, None], -1.0)
    rivals = others.sort(1, descending=True).values[:, :-1]
    # sums of rows differ from 1 by rounding; as much on every weight makes up for it
    slack = float((rows.totals - 1).abs().max()) + _SLACK
    keys = torch.cat([-rows.own[:, None], rivals], 1)
    order = (rivals[:, 0] / rows.own).argsort(stable=True)
    order = order[left[order]]
    for heads, most, thorough in ROUNDS:
        heads = heads or rows.num_classes - 1
        open_ = order[~proved[order]]
        for _ in range(most):
            if not len(open_):
                break
            middle = open_[len(open_) // 2]
            weights = rivals[middle].clone()
            weights[heads:] = weights[heads - 1 : heads].clone()
            own = float(rows.own[middle]) - slack
            holds = prover.proves(claim, own, weights + slack, 1.0, thorough=thorough)
            mine, theirs = keys[middle, : heads + 1], keys[open_, : heads + 1]
            alike = ((theirs <= mine) if holds else (theirs >= mine)).all(1)
            proved[open_[alike]] = holds
            open_ = open_[~alike]
    return proved
