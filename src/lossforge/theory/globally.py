r"""The claim "global": the weighted loss is smallest only at full confidence in the true class.

This is the paper's "asymmetric" made strict: every minimising sequence of predictions tends to the
one-hot vector. It says where the minimum is, not that training finds it; "monotone" does.
"""

import torch

from .bounds import Tables
from .coefficients import allowed_ratio, coefficients
from .energy import find_better
from .form import Form
from .monotone import ASSUMPTIONS, facts, failed_rows
from .parts import NO_ENCLOSURE, RatioTest, mixture_ratios, normalised, within
from .prover import Prover
from .ratios import Ratios
from .verdict import Verdict
from .weights import Rows


def certify_global(form: Form, rows: Rows, cells: int, tables: Tables, refute: bool) -> Verdict:
    """Whether the weighted loss has its only minimum at the true class, in every row."""
    if form.separation is None and form.reduction is None:
        reason = "the noise does not move its minima; whether there is only one is not known."
        return Verdict("UNCERTIFIED", "global", normalised(rows).rule, reason)
    tests = _tests(form, rows, cells, tables)
    passed = torch.ones(len(rows.weights), dtype=torch.bool)
    for test in tests:
        passed &= test.passed
    prover = Prover(form, cells, tables)
    if form.separation is not None and form.separation.a is None:
        passed &= False
    # where a density vanishes there may be other minima beside the one that the tests prove
    strict = prover.strict
    passed &= strict
    rule = "; ".join(test.rule for test in tests) or "no ratio test for several base functions"
    certified = all(test.certified for test in tests)
    left = None
    for place in failed_rows(rows, tests, passed):
        row = rows.pick(place)
        shared = facts(tests, place) if tests else {}
        shared |= {"row": int(rows.targets[place]), "rival": int(rows.rivals[1][place])}
        witness = find_better(form, row, cells, tables) if refute and form.understood else None
        if witness is not None:
            reason = "another prediction than full confidence in the true class is better."
            return Verdict("REFUTED", "global", rule, reason, "global", witness=witness, **shared)
        if strict and prover.globally(row):
            certified &= prover.certified
        else:
            reason = "neither a proof nor a better prediction than full confidence was found."
            left = left or Verdict("UNDECIDED", "global", rule, reason, "global", **shared)
    if left is not None:
        return left
    binding = max(range(len(rows.weights)), key=lambda r: _tightness(tests, r)) if tests else 0
    verdict = Verdict(
        "PROVED",
        "global",
        rule,
        "full confidence in the true class is the only minimum of the expected loss.",
        "global",
        row=int(rows.targets[binding]),
        rival=int(rows.rivals[1][binding]),
        assumptions=(*ASSUMPTIONS, "the minimum is where it should be; training may miss it"),
        **(facts(tests, torch.tensor([binding])) if tests else {}),
    )
    if certified:
        return verdict
    reason = f"all tests pass on samples, but there are {NO_ENCLOSURE}."
    return verdict.having(status="UNCERTIFIED", reason=reason)


def _tests(form: Form, rows: Rows, cells: int, tables: Tables) -> list[RatioTest]:
    tests = []
    if form.separation is not None and form.separation.a is not None:
        found = mixture_ratios(form.separation.own, cells, tables)
        tests.append(_separated(form.separation.a, found, rows))
    if form.reduction is not None:
        found = mixture_ratios(form.reduction, cells, tables)
        allowed = rows.own / rows.rivals[0]
        rule = "binary reduction: R_G < w_t / w_s (theorem B)"
        tests.append(
            RatioTest(
                within(found.R_G, allowed),
                rule,
                found.R_G,
                allowed,
                certified=found.certified,
                cells=found.cells,
            )
        )
    if form.normalised:
        tests.append(normalised(rows))
    return tests


def _separated(a: float, found: Ratios, rows: Rows) -> RatioTest:
    """Target separation: the ratio that each row's case needs."""
    allowed = allowed_ratio(rows, a)
    single = (coefficients(rows.weights, rows.totals[:, None], a) > 0).sum(1) <= 2
    in_b = found.R_mirror if rows.num_classes == 2 else found.kappa_B
    needed = torch.full_like(allowed.ratio, found.kappa_A)
    needed = needed.masked_fill(single, found.R_G).masked_fill(allowed.case_b, in_b)
    passed = within(needed, allowed.ratio)
    # one ratio is reported: that of the row that binds
    binding = int((needed / allowed.ratio).argmax())
    return RatioTest(
        passed,
        "target separation: kappa <= allowed ratio (theorem A)",
        float(needed[binding]),
        allowed.ratio,
        allowed.ratio.isinf(),
        allowed.case_b,
        found.certified,
        cells=found.cells,
    )


def _tightness(tests: list[RatioTest], row: int) -> float:
    scores = [
        float(test.ratio / test.allowed[row])
        for test in tests
        if test.ratio is not None and test.allowed is not None
    ]
    return max(scores, default=0.0)
