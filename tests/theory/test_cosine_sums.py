"""The bounded cosine and sums with it: every verdict against the definition in plain float64."""

import math
from collections.abc import Callable

import naive
import pytest
import torch
from torch import Tensor

from lossforge import BEF, CE, BinaryReduction, TargetSeparation, base, parse
from lossforge.catalog import NCE
from lossforge.constructions import BoundedCosine, Part
from lossforge.loss import Loss, ProbabilityLoss
from lossforge.noise import flips, pair, symmetric
from lossforge.theory import certify, certify_instances, frontier, is_symmetric

Value = Callable[[Tensor, Tensor], Tensor]
C = BoundedCosine()
STEEP = base.Exponential(alpha=-8, beta=-1.5, gamma=0.5)
NAIVE_STEEP = naive.exponential(-8, -1.5, 0.5)
RULE = 0.9 * TargetSeparation(STEEP, tau=1, a=0.2) + 2.4 * BoundedCosine(rivals=149)


def weighted(z: Tensor, w: Tensor) -> Tensor:
    """sum_i w_i C(z, i) by the definition, for each row of logits."""
    k = z.shape[-1]
    centred = z - z.mean(-1, keepdim=True)
    n = torch.sqrt((centred**2).sum(-1, keepdim=True) + 1)
    return (w * (1 - math.sqrt(k / (k - 1)) * centred / n)).sum(-1)


def separated(h: naive.Base, z: Tensor, w: Tensor, a: float) -> Tensor:
    """sum_i w_i TS(u, i) by the definition, for each row of logits."""
    losses = h.h(torch.softmax(z, -1))
    others = losses.sum(-1, keepdim=True) - losses - (z.shape[-1] - 1) * h.h(0.0)
    return (w * (losses - a * others)).sum(-1)


def weighted_rule(z: Tensor, w: Tensor) -> Tensor:
    """The same of `RULE`, for up to 150 classes."""
    a = max(1 / (z.shape[-1] - 1), 0.2)
    return 0.9 * separated(NAIVE_STEEP, z, w, a) + 2.4 * weighted(z, w)


def slopes(f: Value, z: Tensor, w: Tensor, t: int = 0) -> Tensor:
    """Derivatives of a weighted loss by the logit of class t."""
    z = z.detach().clone().requires_grad_()
    return torch.autograd.grad(f(z, w).sum(), z)[0][..., t]


def random_row(k: int) -> Tensor:
    """Weights whose first is the largest."""
    w = torch.rand(k) ** 2
    w[0] = w.max() + 0.1 * torch.rand(()) + 0.01
    return w / w.sum()


def logits(k: int, n: int = 200) -> Tensor:
    return torch.randn(n, k) * torch.logspace(-1, 2, n)[:, None]


# The weighted term alone


@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_largest_derivative_is_that_along_the_bisector(k: int) -> None:
    w, c = random_row(k), math.sqrt(k / (k - 1))
    e = torch.eye(k)[0] - 1 / k
    pull = w - 1 / k
    most = (e.norm() * pull.norm() + pull[0]) / 2
    x = torch.randn(200_000 if k == 3 else 2000, k)
    x = (x - x.mean(1, keepdim=True)) / (x - x.mean(1, keepdim=True)).norm(dim=1, keepdim=True)
    products = (x @ e) * (x @ pull)
    assert (products <= most + 1e-14).all()
    middle = e / e.norm() + pull / pull.norm()
    middle = middle / middle.norm()
    assert math.isclose(float((middle @ e) * (middle @ pull)), float(most), rel_tol=1e-12)
    for length in (1.0, 5.0, 40.0):
        expected = -c / math.sqrt(length**2 + 1) * (pull[0] - most * length**2 / (length**2 + 1))
        found = float(slopes(weighted, length * middle, w))
        assert math.isclose(found, float(expected), rel_tol=1e-9, abs_tol=1e-15)


@pytest.mark.parametrize("k", [2, 3, 7])
def test_the_infimum_is_approached_in_the_direction_of_the_weights(k: int) -> None:
    w = random_row(k)
    pull = w - 1 / k
    infimum = 1 - math.sqrt(k / (k - 1)) * float(pull.norm())
    assert (weighted(logits(k), w) > infimum).all()
    z = 1e6 * pull / pull.norm()
    assert float(weighted(z, w)) - infimum < 1e-11
    assert naive.softmax(z).argmax() == 0


# Symmetric noise


@pytest.mark.parametrize("k", [2, 3, 10, 40])
@pytest.mark.parametrize("loss", [C, RULE, BEF() + C, NCE() + C], ids=["C", "rule", "BEF", "NCE"])
def test_symmetric_noise_is_proved_below_the_largest_rate(loss: Loss, k: int) -> None:
    loss = loss if k < 40 or loss is not RULE else C  # a = 0.2 allows no such rate there
    rate = 0.7 * (k - 1) / k if loss is not C else 0.999 * (k - 1) / k
    found = certify(loss, symmetric(k, rate))
    assert found.status == "PROVED"
    assert found.level == "logits"
    assert "cosine" in found.rule


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize(("loss", "f"), [(C, weighted), (RULE, weighted_rule)], ids=["C", "rule"])
def test_where_it_is_proved_no_logit_hurts(loss: Loss, f, k: int) -> None:
    for rate in (0.0, 0.3, 0.6 * (k - 1) / k):
        row = symmetric(k, rate)[0].double()
        assert certify(loss, row).status == "PROVED"
        assert (slopes(f, logits(k), row) <= 1e-15).all()


# Other noise


@pytest.mark.parametrize("k", [3, 5, 10])
@pytest.mark.parametrize("rate", [0.1, 0.4])
@pytest.mark.parametrize(("loss", "f"), [(C, weighted), (RULE, weighted_rule)], ids=["C", "rule"])
def test_asymmetric_noise_has_a_witness_that_the_definition_confirms(
    loss: Loss, f, rate: float, k: int
) -> None:
    found = certify(loss, pair(k, rate))
    assert found.status == "REFUTED"
    assert found.witness is not None
    z = torch.tensor(found.witness.probs, dtype=torch.float64).log()
    w = torch.tensor(found.witness.weights, dtype=torch.float64)
    rise = float(slopes(f, z, w, found.witness.target))
    assert rise > 0
    assert math.isclose(rise, found.witness.value, rel_tol=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_unequal_weights_are_refuted_beside_any_bounded_part(seed: int) -> None:
    torch.manual_seed(seed)
    row = random_row(4 + seed)
    for loss in (C, BEF() + 0.5 * C, BinaryReduction(base.Linear()) + C):
        assert certify(loss, row).status == "REFUTED"


def test_a_row_of_a_matrix_is_enough() -> None:
    T = flips(5, {3: 4}, 0.3)
    found = certify(RULE, T)
    assert found.status == "REFUTED"
    assert found.row == 3


def test_what_no_number_can_show_is_left_open() -> None:
    row = torch.tensor([0.4, 0.2, 0.2 + 1e-9, 0.2 - 1e-9], dtype=torch.float64)
    assert certify(C, row).status == "UNDECIDED"
    assert certify(RULE, row, refute=False).status == "UNDECIDED"


@pytest.mark.slow
def test_many_classes() -> None:
    assert certify(RULE, symmetric(300, 0.4)).status == "PROVED"
    assert certify(RULE, pair(300, 0.4)[0]).status == "REFUTED"


# The minimum


def least(f: Value, w: Tensor, k: int, steps: int = 150) -> float:
    """The least value of a weighted loss that random starts and gradient steps from them reach."""
    z = logits(k, 60).requires_grad_()
    optimizer, lowest = torch.optim.Adam([z], lr=0.3), math.inf
    for _ in range(steps):
        optimizer.zero_grad()
        values = f(z, w)
        lowest = min(lowest, float(values.detach().min()))
        values.sum().backward()
        optimizer.step()
    return lowest


@pytest.mark.parametrize("noise", ["pair", "symmetric", "random"])
def test_global_robustness_carries_over(noise: str) -> None:
    k = 4
    row = {
        "pair": pair(k, 0.4)[0],
        "symmetric": symmetric(k, 0.6)[0],
        "random": torch.tensor([0.5, 0.3, 0.15, 0.05]),
    }[noise].double()
    alone = 0.9 * TargetSeparation(STEEP, tau=1, a=0.2)
    assert certify(alone, row, claim="global").status == "PROVED"
    found = certify(RULE, row, claim="global")
    assert found.status == "PROVED"
    assert found.level == "global"
    pull = row - 1 / k
    sure = torch.tensor([0.0, *[-torch.inf] * (k - 1)])
    infimum = 0.9 * float(separated(NAIVE_STEEP, sure, row, 1 / 3))
    infimum += 2.4 * (1 - math.sqrt(k / (k - 1)) * float(pull.norm()))
    assert least(weighted_rule, row, k) > infimum
    far = float(weighted_rule(1e5 * pull / pull.norm(), row))
    assert math.isclose(far, infimum, rel_tol=1e-9)


@pytest.mark.parametrize("k", [2, 3, 8])
def test_the_term_alone_has_its_minimum_at_full_confidence_for_any_noise(k: int) -> None:
    assert certify(C, random_row(k), claim="global").status == "PROVED"


def test_a_better_prediction_of_the_rest_may_stay_one() -> None:
    row = torch.tensor([0.5, 0.45, 0.05], dtype=torch.float64)
    f = base.Quadratic(alpha=-10, beta=-1, gamma=1)
    alone = TargetSeparation(f, a=0.5)
    assert certify(alone, row, claim="global").status == "REFUTED"
    assert certify(alone + 1000 * C, row, claim="global").status == "UNDECIDED"
    found = certify(alone + 5 * C, row, claim="global")
    assert found.status == "REFUTED"
    assert found.witness is not None
    twin, pull = naive.quadratic(-10, -1, 1), row - 1 / 3
    sure = torch.tensor([0.0, -torch.inf, -torch.inf])
    best = separated(twin, sure, row, 0.5) + 5 * (1 - math.sqrt(1.5) * pull.norm())
    z = torch.tensor(found.witness.probs, dtype=torch.float64).log()
    gain = float(best - separated(twin, z, row, 0.5) - 5 * weighted(z, row))
    assert gain > 0
    assert math.isclose(gain, found.witness.value, rel_tol=1e-6)


def test_only_symmetric_reductions_keep_the_minimum() -> None:
    row = torch.tensor([0.5, 0.3, 0.15, 0.05], dtype=torch.float64)
    even = BinaryReduction(base.Exponential(-8, -1, 0.5))
    tilted = BinaryReduction(base.Exponential(-8, -1, 0.45))
    assert certify(tilted, row, claim="global").status == "PROVED"
    assert certify(even + C, row, claim="global").status == "PROVED"
    assert certify(tilted + C, row, claim="global").status == "UNDECIDED"
    assert certify(CE() + C, row, claim="global").status == "UNCERTIFIED"
    assert certify(NCE() + C, symmetric(4, 0.3), claim="global").status != "PROVED"


# The other claim, and what is derived from the verdicts


def test_transfers_are_decided_for_two_classes_alone() -> None:
    assert certify(C, symmetric(2, 0.3), claim="transfers").status == "PROVED"
    for loss in (C, RULE):
        for noise in (symmetric(4, 0.3), pair(4, 0.3)):
            assert certify(loss, noise, claim="transfers").status == "UNCERTIFIED"
    # the term alone breaks it without any noise: s gives to t, and the rest stay as they are
    u = torch.tensor([0.7, 1e-6, 0.299998, 1e-6])
    step = torch.tensor([1e-8, -1e-8, 0, 0])
    assert naive.bounded_cosine((u + step).log(), 0) > naive.bounded_cosine(u.log(), 0)


def test_the_sum_over_labels_is_derived() -> None:
    for loss in (C, BEF(tau=1) + 0.3 * C):
        assert is_symmetric(loss, 10).derived
    assert not is_symmetric(RULE, 10)


def test_frontiers() -> None:
    assert math.isclose(frontier(C, 10, "symmetric").rate, 0.9)
    assert frontier(C, 10, "pair").rate == 0
    assert math.isclose(frontier(C, 10, "pair", claim="global").rate, 0.5)
    both, alone = (frontier(loss, 4, "symmetric", tolerance=0.01) for loss in (BEF() + C, BEF()))
    assert math.isclose(both.rate, alone.rate, rel_tol=0.02)


def test_instances_are_proved_where_single_rows_are() -> None:
    rows = torch.cat([symmetric(4, 0.3), pair(4, 0.3), symmetric(4, 0.9)[:1]]).double()
    true = torch.tensor([0, 1, 2, 3, 0, 1, 2, 3, 0])
    even = [True] * 4 + [False] * 5
    for loss in (C, RULE):
        assert certify_instances(loss, rows, true).proved.tolist() == even
        found = certify_instances(loss, rows, true, claim="global")
        assert found.proved.tolist() == [True] * 8 + [False]
        assert not certify_instances(loss, rows, true, claim="transfers").proved.any()


class Turned(BoundedCosine):
    """Not what it declares."""

    def from_scores(self, scores, target: Tensor) -> Tensor:
        return 2 - super().from_scores(scores, target)


class Squared(ProbabilityLoss):
    """A cosine of a function that is not linear."""

    def from_scores(self, scores, target: Tensor) -> Tensor:
        return ((1 + C.from_scores(scores, target) / 2) ** 2 - 1) / 2

    def parts(self, num_classes: int) -> tuple[Part, ...]:
        return (Part("cosine", 1.0, base.MirroredPower(2.0, 2.0)),)


@pytest.mark.parametrize("loss", [Turned(), Squared(), -1 * C], ids=["turned", "squared", "minus"])
@pytest.mark.parametrize("claim", ["monotone", "global"])
def test_what_is_not_the_term_is_not_proved_as_one(loss: Loss, claim: str) -> None:
    assert certify(loss, symmetric(4, 0.3), claim=claim).status in ("REFUTED", "UNCERTIFIED")


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_proved_that_a_search_refutes(seed: int) -> None:
    torch.manual_seed(100 + seed)
    k = 3 + seed % 3
    beta, a, mu = float(-6 * torch.rand(())), float(torch.rand(())), float(3 * torch.rand(()))
    loss = parse(f"TS(exponential(alpha=-1, beta={beta}), a={a}) + {mu}*bounded_cosine()")
    twin = naive.exponential(-1, beta, 0.5)
    row = random_row(k) if seed % 2 else symmetric(k, 0.6)[0].double()

    def value(z: Tensor, w: Tensor) -> Tensor:
        return separated(twin, z, w, a) + mu * weighted(z, w)

    if certify(loss, row).status == "PROVED":
        assert (slopes(value, logits(k), row) <= 1e-13).all()
    if certify(loss, row, claim="global").status == "PROVED":
        pull = (row - 1 / k) / (row - 1 / k).norm()
        assert least(value, row, k, 60) > float(value(1e6 * pull, row)) - 1e-9
