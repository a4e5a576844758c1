"""The ratio tests: each part of a loss on its own, all rows at once."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from .bounds import Bounds, Tables, mixture_table
from .coefficients import allowed_ratio
from .form import Form, Mixture
from .ratios import Ratios, from_table, ratios, without_bound
from .weights import Rows

_SLACK = 1e-12  # relative: what rounding may have done to a ratio
NO_ENCLOSURE = "no proved bounds of the density; see turning_points and lipschitz of base functions"


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
        tests.append(separated(form.separation.a, found, rows))
    elif form.separation is not None:
        tests.append(_two_bases(replace(form, reduction=None), rows, cells, tables))
    if form.reduction is not None:
        tests.append(paired(mixture_ratios(form.reduction, cells, tables), rows))
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
    allowed = rows.own / rows.rivals[0]
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
