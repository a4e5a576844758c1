"""The proof of the claim "global": what it rests on, what it reaches, and where it must stop."""

import numpy as np
import pytest
import torch
from problems import draw_base, highest_rate, row_at
from search import search
from test_search import one_hot
from torch import Tensor

from lossforge import BinaryReduction, TargetSeparation
from lossforge.base import Exponential, Quadratic
from lossforge.loss import Loss
from lossforge.theory import certify, enclose, ratios
from lossforge.theory.forms import Form, take_apart

STEEP = Exponential(-0.7, -1.3, 0.1)
RISING = Exponential(-0.6, 1.35, 1.0)
BELL, DIP = Quadratic(1.0, -0.28, 0.5), Quadratic(-53.0, -2.1, 0.64)
PAIR, ODD, EVEN = (0.0, 1.0, 0.0), (0.0, 0.9, 0.1), (0.0, *(1 / 6,) * 6)
# a loss, where labels go, and the rate at which another prediction becomes better
SUMS = [
    (8.85 * TargetSeparation(STEEP, tau=0.6) + 0.69 * BinaryReduction(RISING), EVEN, 0.787),
    (1.83 * TargetSeparation(BELL, tau=1.63) + 0.77 * BinaryReduction(STEEP), PAIR, 0.346),
    (7.9 * TargetSeparation(DIP, a=0.55) + BinaryReduction(STEEP), ODD, 0.459),
]


@pytest.mark.parametrize("seed", range(4))
def test_tables_of_means_enclose_the_means(seed: int) -> None:
    base = draw_base(np.random.default_rng(seed))
    cells = 300
    table = enclose(base, cells)
    x = torch.rand(4000).clamp(min=1e-6)
    place = (x * cells).long()
    for means, mean in (
        (table.means(), base.H(x) / x),
        (table.mirrored().means(), base.h(1 - x) / x),
    ):
        assert bool((means.low[place] <= mean * (1 + 1e-12)).all())
        assert bool((means.high[place] >= mean * (1 - 1e-12)).all())
        assert float((means.high / means.low).max()) < 1.5


def gain(form: Form, weights: Tensor, u: Tensor) -> Tensor:
    """G of the module's text, by integrals; class 0 is the target."""
    assert form.separation is not None
    assert form.reduction is not None
    total, x, y = weights.sum(), u[..., :1], u[..., 1:]
    own, rest = form.separation.own.integral, form.separation.others.integral

    def psi(weight: Tensor, p: Tensor) -> Tensor:
        return weight * own(p) - (total - weight) * rest(p)

    one = torch.ones(())
    kept = psi(weights[0], one) - psi(weights[0], x[..., 0])
    r = y / (x + y)
    F = form.reduction.integral
    pairs = weights[0] * (F(one) - F(1 - r)) - weights[1:] * F(r)
    return kept - psi(weights[1:], y).sum(-1) + pairs.sum(-1) / (form.num_classes - 1)


@pytest.mark.parametrize("loss", [loss for loss, *_ in SUMS])
def test_heavier_rivals_with_larger_shares_are_the_worst(loss: Loss) -> None:
    classes = 5
    form = take_apart(loss, classes)
    generator = torch.Generator().manual_seed(0)
    weights = torch.rand(classes, generator=generator).sort(descending=True).values
    weights = weights / weights.sum()
    u = torch.softmax(3 * torch.randn(2000, classes, generator=generator), 1)
    ordered = torch.cat([u[:, :1], u[:, 1:].sort(1, descending=True).values], 1)
    assert bool((gain(form, weights, ordered) <= gain(form, weights, u) + 1e-12).all())


@pytest.mark.parametrize(("loss", "confusion", "rate"), SUMS)
def test_sums_are_proved_close_to_where_they_break(
    loss: Loss, confusion: tuple[float, ...], rate: float
) -> None:
    """Raising the logit does hurt there, and neither part is proved by itself."""
    where = torch.tensor(confusion)
    for factor in (0.9, 0.95):
        verdict = certify(loss, row_at(factor * rate, where), claim="global", refute=False)
        assert verdict.status == "PROVED"
    assert certify(loss, row_at(0.95 * rate, where)).status == "REFUTED"
    for factor in (1.01, 1.1):
        row = row_at(min(factor * rate, highest_rate(where)), where)
        assert certify(loss, row, claim="global", refute=False).status != "PROVED"
        assert certify(loss, row, claim="global").status == "REFUTED"


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "confusion", "rate"), SUMS)
def test_the_search_breaks_no_sum_that_is_proved(
    loss: Loss, confusion: tuple[float, ...], rate: float
) -> None:
    row = row_at(0.95 * rate, torch.tensor(confusion))
    assert search(loss, row, 0, "global") is None


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_proved_beyond_the_exact_frontier(seed: int) -> None:
    """Two classes and pair flips, whose frontier is a closed form; the proofs reach to below it."""
    loss, confusion, rate = one_hot(np.random.default_rng((5, seed)))
    for factor, sure in ((0.97, True), (1.0005, False), (1.02, False)):
        if factor * rate < highest_rate(confusion):
            verdict = certify(loss, row_at(factor * rate, confusion), claim="global", refute=False)
            assert (verdict.status == "PROVED") == sure, (loss, factor)


@pytest.mark.parametrize("seed", range(6))
def test_the_condition_on_pairs_is_necessary_for_symmetric_noise(seed: int) -> None:
    """With f1 and f2: beyond R_G there is a better prediction, all rivals equal or in a chain."""
    random = np.random.default_rng((6, seed))
    classes, gamma = int(random.integers(3, 9)), float(random.random())
    size = float(random.uniform(1, 3)) / max(gamma, 1 - gamma) ** 2
    base = Exponential(-1.0, size if gamma > 0.5 else -size, gamma)
    if seed % 2:
        base = Quadratic(-4.0, -1.0, gamma) if gamma > 0.5 else Quadratic(0.9, -1.0, gamma)
    least = ratios(base).R_G
    assert least > 1
    for factor, status in ((0.98, "REFUTED"), (1.02, "PROVED")):
        weights = torch.ones(classes)
        weights[0] = factor * least
        if factor * least > 1:
            verdict = certify(BinaryReduction(base), weights / weights.sum(), claim="global")
            assert verdict.status == status
