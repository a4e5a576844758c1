r"""The ratio tests: what ratio of densities a noise allows, and each part of a loss against it.

Under label weights w that sum to S, the weighted loss of target separation is
:math:`W(u) = \mathrm{const} - \sum_j c_j H(u_j)` with :math:`c_j = (1 + a) w_j - a S`. The ratio of
the largest to the smallest density that a base function may have is then a matter of the c alone.
"""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .bounds import Bounds, Tables, mixture_table
from .forms import Form, Mixture
from .ratios import TRUSTED, Ratios, from_table, ratios, without_bound
from .ties import exact, polynomial, transfers_hold
from .weights import Rows, read_noise

_ROUNDING = 8 * torch.finfo(torch.float64).eps
_SLACK = 1e-12  # relative: what rounding may have done to a ratio
_CLOSE = 1e-6  # relative: where a tie is possible
NO_ENCLOSURE = "no proved bounds of the density; see turning_points and lipschitz of base functions"


def coefficients(weights: Tensor, totals: Tensor, a: float) -> Tensor:
    """Coefficients of classes with these weights; what is 0 up to rounding of its terms is 0."""
    own, rest = (1 + a) * weights, a * totals
    c = own - rest
    # relative to the terms: without a second one, a weight of 1e-18 is not 0
    return torch.where(c.abs() <= _ROUNDING * torch.minimum(own, rest), 0.0, c)


@dataclass(frozen=True)
class Allowed:
    """What target separation tolerates in each row.

    Args:
        ratio: (R,) largest ratio of densities; infinite where any base function will do.
        rival: (R,) the class that binds: the heaviest of the others.
        case_b: (R,) whether the target's own coefficient is negative.
    """

    ratio: Tensor
    rival: Tensor
    case_b: Tensor


def allowed_ratio(rows: Rows, a: float) -> Allowed:
    r"""The ratio of densities that target separation with coefficient `a` tolerates.

    Infinite where :math:`\max_s c_s \le 0 \le c_t`; :math:`c_t / \max_s c_s` where a rival's
    coefficient is positive (case A); :math:`\min_s |c_s| / |c_t|` where the target's is negative
    (case B). In every case only the heaviest rival matters. A small coefficient is what two numbers
    of size 1 + a leave of each other: where its rounding would not be forgiven, the ratio is
    lowered by it.
    """
    own = coefficients(rows.own, rows.totals, a)
    best = coefficients(rows.rivals[0], rows.totals, a)
    free = (best <= 0) & (own >= 0)
    case_b = own < 0
    divisor = torch.where(free, 1.0, torch.where(case_b, own, best))
    ratio = _finite(torch.where(case_b, best, own) / divisor)
    error = _ROUNDING * (1 + a) * (1 / own.abs() + 1 / best.abs())
    ratio = ratio * (1 - (error - TRUSTED).clamp(0, 1))
    return Allowed(torch.where(free, torch.inf, ratio), rows.rivals[1], case_b)


def allowed_in_pairs(rows: Rows) -> Tensor:
    """(R,) the ratio of densities that binary reduction tolerates; infinite without a rival."""
    rival = rows.rivals[0]
    return torch.where(rival > 0, _finite(rows.own / rival), torch.inf)


def _finite(ratio: Tensor) -> Tensor:
    """What overflowed is not infinite: no base function is free to do anything."""
    return ratio.clamp(max=torch.finfo(torch.float64).max)


def threshold_interval(noise: object) -> tuple[float, float]:
    r"""The votes :math:`\theta = a / (1 + a)` at which every decreasing base function is robust.

    From the largest weight of a wrong class to the smallest of a true one, over all rows; empty
    (the first above the second) where no coefficient serves all rows.

    Example:
        >>> low, high = threshold_interval(torch.tensor([[0.6, 0.4], [0.3, 0.7]]))
        >>> round(low, 6), round(high, 6)
        (0.4, 0.6)
    """
    rows = read_noise(noise)
    return float(rows.rivals[0].max()), float(rows.own.min())


def coefficient_interval(rows: Rows, ratio: float) -> tuple[float, float]:
    r"""The coefficients a at which a base function of this ratio is tolerated in all rows.

    In a row, :math:`c_t \ge k c_s` asks for :math:`a \ge (k w_s - w_t) / (k (1-w_s) - (1-w_t))`,
    and :math:`|c_s| \ge k |c_t|` for :math:`a \le (k w_t - w_s) / (k (1-w_t) - (1-w_s))` where that
    denominator is positive, any a where it is not. Empty where the first end is above the second.

    Args:
        rows: The noise.
        ratio: The ratio k of the base function, 1 or more; infinite for any base function.
    """
    own, rival = rows.own, rows.rivals[0]
    rest_own, rest_rival = rows.totals - own, rows.totals - rival
    if math.isinf(ratio):
        low, high = rival / rest_rival, torch.where(rest_own > 0, own / rest_own, torch.inf)
    else:
        low = (ratio * rival - own) / (ratio * rest_rival - rest_own)
        below = ratio * rest_own - rest_rival
        high = torch.where(below > 0, (ratio * own - rival) / below, torch.inf)
    return max(0.0, float(low.max())), float(high.min())


@dataclass(frozen=True)
class RatioTest:
    """A part of a loss against the rows of a noise.

    Args:
        passed: (R,) rows in which it passes.
        rule: The theorem applied.
        ratio: How far the density varies, in the sense of the theorem.
        allowed: (R,) what each row tolerates.
        free: (R,) rows in which every decreasing base function passes.
        case_b: (R,) rows in which the target's coefficient is negative.
        certified: Whether the ratio is proved.
        exact: Whether failing the test refutes.
        cells: Of the table behind the ratio.
    """

    passed: Tensor
    rule: str
    ratio: float | None = None
    allowed: Tensor | None = None
    free: Tensor | None = None
    case_b: Tensor | None = None
    certified: bool = True
    exact: bool = False
    cells: int | None = None

    def pick(self, rows: Tensor) -> "RatioTest":
        """The same test on some of the rows."""
        picked = {
            name: value[rows] for name, value in vars(self).items() if isinstance(value, Tensor)
        }
        return replace(self, **picked)  # type: ignore[arg-type]


def mixture_ratios(mixture: Mixture, cells: int, tables: Tables) -> Ratios:
    """Ratios of one base function by its closed form, of several by their table."""
    base = mixture.only
    if base is not None and base not in tables:
        return ratios(base, cells)
    found = from_table(mixture_table(mixture, cells, tables))
    return found if mixture.bounded else without_bound(found)


def monotone_tests(form: Form, rows: Rows, cells: int, tables: Tables) -> list[RatioTest]:
    """The tests that together prove the claim "monotone"; a sum passes where all parts do."""
    tests = []
    if form.separation is not None and form.separation.a is not None:
        found = mixture_ratios(form.separation.own, cells, tables)
        test = separated(form.separation.a, found, rows)
        tests.append(_with_ties(test, form.separation.own, rows, form.separation.a))
    elif form.separation is not None:
        tests.append(_two_bases(replace(form, reduction=None), rows, cells, tables))
    if form.reduction is not None:
        test = paired(mixture_ratios(form.reduction, cells, tables), rows)
        tests.append(_with_ties(test, form.reduction, rows, 0.0, two=True))
    if form.normalised:
        tests.append(normalised(rows))
    return tests


def separated(a: float, found: Ratios, rows: Rows) -> RatioTest:
    """Target separation of one base function: c_t phi(x) >= c_s phi(y) wherever x and y can be."""
    allowed = allowed_ratio(rows, a)
    two = rows.num_classes == 2
    ratio = found.rho_M if two else found.xi_tri
    where = "x + y = 1" if two else "x + y <= 1"
    return RatioTest(
        within(ratio, allowed.ratio),
        f"target separation: c_t phi(x) >= c_s phi(y) for {where} (lemma 1, repaired)",
        ratio,
        allowed.ratio,
        allowed.ratio.isinf(),
        allowed.case_b,
        found.certified,
        two,
        found.cells,
    )


def paired(found: Ratios, rows: Rows) -> RatioTest:
    """Binary reduction: w_t f(p) >= w_s f(1 - p)."""
    allowed = allowed_in_pairs(rows)
    rule = "binary reduction: w_t f(p) >= w_s f(1 - p) for the target's pairs (theorem B)"
    return RatioTest(
        within(found.rho_M, allowed),
        rule,
        found.rho_M,
        allowed,
        certified=found.certified,
        exact=True,
        cells=found.cells,
    )


def normalised(rows: Rows) -> RatioTest:
    """Symmetric parts that fall with the target's logit: sure where all rivals weigh the same."""
    even = rows.rivals[0] == rows.lightest
    rule = "symmetric loss, equal weights of the others: W is a multiple of the loss itself"
    return RatioTest(even, rule)


def within(ratio: float | Tensor, allowed: Tensor) -> Tensor:
    """Where a ratio is surely at most what is allowed."""
    flat = torch.as_tensor(ratio == 1.0)
    return (ratio * (1 + _SLACK) <= allowed) | (allowed == torch.inf) | flat


def _with_ties(
    test: RatioTest, mixture: Mixture, rows: Rows, a: float, *, two: bool = False
) -> RatioTest:
    """The same test, with rows passed in which ratio and allowed ratio are exactly equal."""
    assert test.ratio is not None
    assert test.allowed is not None
    close = ~test.passed & ((test.allowed / test.ratio - 1).abs() < _CLOSE)
    density = polynomial(mixture) if bool(close.any()) else None
    if density is None:
        return test
    passed = test.passed.clone()
    for row in close.nonzero()[:, 0].tolist():
        numbers = exact(a, *rows.weights[row].tolist())
        if numbers is not None:
            strength, *weights = numbers
            # c = (1 + a) w - a S, and w itself for a binary reduction
            own, rival = (
                (1 + strength) * weights[int(place[row])] - strength * sum(weights)
                for place in (rows.targets, rows.rivals[1])
            )
            here = two or rows.num_classes == 2
            passed[row] = transfers_hold(density, own, rival, two=here)
    return replace(test, passed=passed)


def _two_bases(form: Form, rows: Rows, cells: int, tables: Tables) -> RatioTest:
    """Different base functions or coefficients: the same inequality by enclosure."""
    bounds = Bounds(form, cells, tables)
    numbers = (rows.own.tolist(), rows.rivals[0].tolist(), rows.totals.tolist())
    triples = list(zip(*numbers, strict=True))
    held = {triple: bounds.transfers(*triple) for triple in set(triples)}
    rule = "target separation of several base functions: Theta_t(x) >= Theta_s(y) for x + y <= 1"
    return RatioTest(
        torch.tensor([held[triple] for triple in triples]),
        rule,
        certified=bounds.certified,
        cells=bounds.cells,
    )
