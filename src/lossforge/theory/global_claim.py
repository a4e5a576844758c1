r"""The claim "global": the weighted loss is smallest only at full confidence in the true class.

This is the paper's "asymmetric" made strict: every minimising sequence of predictions tends to the
one-hot vector. It says where the minimum is, not that training finds it; "monotone" does.

A prediction refutes it by the weighted loss itself, relative to full confidence.
Normalised so that every base function is 0 at full confidence: with A and B the integrals of the
densities of target separation and F that of binary reduction,

.. math::
    W(u) - W(e_t) = \Psi_t(1) - \sum_j \Psi_j(u_j) + \frac{1}{K-1} \Big( \sum_{i<j}
        \Phi_{ij}(p_{ij}) - \mathrm{limit} \Big), \qquad \Psi_j = w_j A - (S - w_j) B.

The limit of the pairs at the one-hot vector depends on how the other classes vanish. Its smallest
value is bounded from below pair by pair, so a prediction found better is better than all of them.
"""

import torch
from torch import Tensor

from ..base import Exponential, Quadratic
from .bounds import Tables, mixture_table
from .forms import Form, Mixture
from .monotone import ASSUMPTIONS, facts, failed_rows, if_certified
from .predictions import Slots, candidates, fill_slots
from .proofs import Prover
from .ratio_tests import (
    RatioTest,
    allowed_in_pairs,
    allowed_ratio,
    coefficients,
    mixture_ratios,
    normalised,
    within,
)
from .ratios import Ratios
from .verdict import Verdict, Witness
from .weights import Rows

_RELATIVE = 1e-11
_BATCH = 1 << 24
_STEPS, _STARTS = 80, 16


def certify_global(form: Form, rows: Rows, cells: int, tables: Tables, refute: bool) -> Verdict:
    """Whether the weighted loss has its only minimum at the true class, in every row."""
    if form.separation is None and form.reduction is None:
        reason = "the noise does not move its minima; whether there is only one is not known."
        return Verdict("UNCERTIFIED", "global", normalised(rows).rule, reason)
    tests = global_tests(form, rows, cells, tables)
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
            rule = "counterexample: W(u) < W(e_t) at the witness u, W the expected loss"
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
    return if_certified(verdict, certified)


def global_tests(form: Form, rows: Rows, cells: int, tables: Tables) -> list[RatioTest]:
    """The tests that together prove the claim, unless densities vanish or A and B differ."""
    tests = []
    if form.separation is not None and form.separation.a is not None:
        found = mixture_ratios(form.separation.own, cells, tables)
        tests.append(_separated(form.separation.a, found, rows))
    if form.reduction is not None:
        found = mixture_ratios(form.reduction, cells, tables)
        allowed = allowed_in_pairs(rows)
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


def find_better(form: Form, row: Rows, cells: int, tables: Tables) -> Witness | None:
    """A prediction whose weighted loss is below that of full confidence in the target."""
    slots = fill_slots(row)
    logits = _starts(form, slots)
    floor = torch.zeros((), dtype=torch.float64)
    if form.reduction is not None:
        floor = _limit(form.reduction, row, cells, tables)
    gain, size = _gain(form, slots, logits, floor)
    best = logits[(gain / size).argsort(descending=True)[:_STARTS]]
    if float((gain - _RELATIVE * size).max()) <= 0:
        best = _climb(form, slots, best, floor)
    gain, size = _gain(form, slots, best, floor)
    gain = gain.nan_to_num(nan=-torch.inf)
    place = int((gain - _RELATIVE * size).argmax())
    if not float(gain[place] - _RELATIVE * size[place]) > 0:
        return None
    probs = tuple(slots.full(slots.softmax(best[place : place + 1]))[0].tolist())
    weights = tuple(row.weights[0].tolist())
    return Witness(weights, int(row.targets[0]), probs, float(gain[place]))


def _starts(form: Form, slots: Slots) -> Tensor:
    """(B, J) logits: candidates, also with the absent slots in a chain by their weight."""
    logits = torch.log(candidates(slots))
    if form.reduction is None:
        return logits
    rank = torch.arange(len(slots.weights), dtype=torch.float64)
    return torch.cat([logits, torch.where(logits < -60, -70 - 20 * rank, logits)])


def _gain(form: Form, slots: Slots, logits: Tensor, floor: Tensor) -> tuple[Tensor, Tensor]:
    """(B,) how much better than full confidence predictions are, and the terms' size."""
    weights, total = slots.weights, slots.total
    gain = size = torch.zeros(len(logits), dtype=torch.float64)
    if form.separation is not None:
        probs = slots.softmax(logits)
        integrals = form.separation.own.integral, form.separation.others.integral
        one = torch.ones((), dtype=torch.float64)
        own, rest = (integral(probs) for integral in integrals)
        own, rest = slots.counts * weights * own, slots.counts * (total - weights) * rest
        full_own, full_rest = (integral(one) for integral in integrals)
        full_own, full_rest = weights[0] * full_own, (total - weights[0]) * full_rest
        gain = gain + (own - rest).sum(1) - (full_own - full_rest)
        # a coefficient may be a small difference: both its terms count
        size = size + (own.abs() + rest.abs()).sum(1) + full_own.abs() + full_rest.abs()
    if form.reduction is not None:
        pairs = _pairs(form.reduction, slots, logits) / (form.num_classes - 1)
        gain = gain + floor / (form.num_classes - 1) - pairs
        size = size + pairs
    return gain, size


def _pairs(reduction: Mixture, slots: Slots, logits: Tensor) -> Tensor:
    """(B,) sums over ordered pairs of classes i != j of w_i l(p_ij), l(p) = F(1) - F(p)."""
    p = torch.sigmoid(logits[:, :, None] - logits[:, None, :])
    losses = reduction.integral(torch.ones((), dtype=torch.float64)) - reduction.integral(p)
    number = slots.counts[:, None] * slots.counts - torch.diag(slots.counts)
    return (slots.weights[:, None] * number * losses).sum((1, 2))


def _limit(reduction: Mixture, row: Rows, cells: int, tables: Tables) -> Tensor:
    """A lower bound of the pairs' sum along predictions that tend to the one-hot vector."""
    target, weights = int(row.targets[0]), row.weights[0]
    top = reduction.integral(torch.ones((), dtype=torch.float64))
    keep = torch.arange(len(weights)) != target
    rivals, counts = torch.unique_consecutive(weights[keep].sort().values, return_counts=True)
    number = counts[:, None] * counts[None] - torch.diag(counts)
    light, heavy = torch.minimum(rivals[:, None], rivals), torch.maximum(rivals[:, None], rivals)
    # a pair that falls towards its heavier class all the way has its minimum there
    falls = heavy >= light * mixture_ratios(reduction, cells, tables).rho_M
    steepest = float(mixture_table(reduction, cells, tables).high.max())
    lowest = torch.where(falls, light * top, _lowest_pairs(reduction, heavy, light, top, steepest))
    # no pair, or two labels that never occur, cost nothing however steep the density is
    lowest = torch.where((number > 0) & (heavy > 0), number * lowest, 0.0)
    total: Tensor = weights[keep].sum() * top + lowest.sum() / 2
    return total


def _lowest_pairs(
    reduction: Mixture, heavy: Tensor, light: Tensor, top: Tensor, steepest: float
) -> Tensor:
    """Lower bounds of min over p of w_i l(p) + w_j l(1 - p), elementwise over pairs of weights."""
    size = max(3, min(4097, _BATCH // heavy.numel()) | 1)
    loss = top - reduction.integral(torch.linspace(0, 1, size, dtype=torch.float64))
    lowest = (heavy[..., None] * loss + light[..., None] * loss.flip(0)).amin(-1)
    # between two points of the grid a pair falls by at most half a step of the steepest slope
    sure = lowest - heavy * steepest / (2 * (size - 1))
    if not isinstance(reduction.only, Exponential | Quadratic):
        return sure
    # of these l(p) + l(1 - p) has its extremes at the ends and in the middle: on the grid
    return torch.where(heavy == light, lowest, sure)


def _climb(form: Form, slots: Slots, logits: Tensor, floor: Tensor) -> Tensor:
    """Gradient steps in the logits towards a better prediction."""
    logits = logits.clone().requires_grad_()
    optimizer = torch.optim.Adam([logits], lr=0.1)
    with torch.enable_grad():
        for _ in range(_STEPS):
            gain, _ = _gain(form, slots, logits, floor)
            optimizer.zero_grad()
            (-gain.sum()).backward()  # type: ignore[no-untyped-call]
            if logits.grad is None or not bool(logits.grad.isfinite().all()):
                break
            optimizer.step()
    return logits.detach()
