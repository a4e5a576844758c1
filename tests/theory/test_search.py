"""That the searches for contradictions work by the right formulas, and find what is planted."""

from collections.abc import Callable

import called
import numpy as np
import precise
import pytest
import torch
from definitions import derivative, rises, terms_of, values
from problems import draw_base, draw_confusion, frontier, highest_rate, problems, row_at
from search import reproduce, search

from lossforge import BinaryReduction, TargetSeparation, base
from lossforge.constructions import Normalised, NormalisedNegative, PowerDistance, TargetLoss
from lossforge.loss import Loss

Planted = tuple[Loss, torch.Tensor, float]  # a loss, where labels go, the rate it bears
Summary = Callable[[str, object], None]


@pytest.mark.slow
def test_definitions_agree_with_the_losses() -> None:
    for problem in problems(40):
        rows, targets = problem.rows()
        row = len(rows) // 2
        order = rows[row].argsort(descending=True, stable=True)
        assert order[0] == targets[row]
        w, classes = rows[row][order], problem.num_classes
        z = (3 * torch.randn(4, classes)).requires_grad_()
        terms = terms_of(problem.loss, classes)
        loss = problem.loss.with_policy(reduction="none")
        expected = loss(z, w.expand(4, classes))
        (gradient,) = torch.autograd.grad(expected.sum(), z)
        value, size = derivative(terms, w, z)
        assert torch.all((value - gradient[:, 0]).abs() <= 1e-12 * size.max())
        offset = values(terms, w, z) - expected
        torch.testing.assert_close(offset, offset[:1].expand(4), rtol=1e-10, atol=1e-10)


def test_rises_are_derivatives_by_mass() -> None:
    for problem in problems(20):
        rows, _ = problem.rows()
        w = rows[0].sort(descending=True).values
        u = torch.softmax(torch.randn(problem.num_classes), 0).requires_grad_()
        terms = terms_of(problem.loss, problem.num_classes)
        # W by its own formula in u, which may leave the simplex
        total = torch.tensor(0.0)
        for term in terms:
            if term.a is None:
                h = term.base.h(u[:, None] / (u[:, None] + u))
                losses = (h - torch.diag(h.diag())).sum(1) / (len(w) - 1)
            else:
                h = term.base.h(u)
                losses = h - term.a * (h.sum() - h)
            total = total + term.factor * (w * losses).sum()
        (slope,) = torch.autograd.grad(total, u)
        rise, size = rises(terms, w, torch.log(u))
        assert torch.all((rise - (slope[0] - slope[1:])).abs() <= 1e-10 * size)


BASES = [
    base.Exponential(-1.5, 3.0, 0.3),
    base.Quadratic(-2.0, -1.0, 0.7),
    base.from_derivative(lambda x: -1 - x.sin() ** 2),
    base.from_derivative(lambda x: -torch.exp(9 * x * (x - 1))),
    base.Log(),
    base.Linear(2.0),
    base.Power(0.7),
    base.ShiftedPower(0.5, 1.7),
    base.MirroredPower(1.5, 2.5),
    base.ExponentialDecay(0.4),
    base.Taylor(4),
    base.HuberLog(3.0),
    base.ShiftedLog(0.2),
    base.JensenShannon(0.3),
]


@pytest.mark.parametrize("one", BASES, ids=lambda one: type(one).__name__)
def test_fifty_digits_agree_with_the_losses(one: base.BaseFunction) -> None:
    losses = [
        0.3 * TargetSeparation(one, a=0.4, nontarget=base.Linear()) + 2 * BinaryReduction(one),
        TargetLoss(one, scale=3.0),
        Normalised(one, scale=2.0),
        *([NormalisedNegative(one)] if one.bounded else []),
        PowerDistance(a=1.5, r=2.5, average=True),
    ]
    w, z = torch.tensor([0.5, 0.3, 0.0, 0.2]), torch.tensor([[0.3, -0.2, 1.1, -2.0]])
    for loss in losses:
        single = loss.with_policy(reduction="none")
        gradient = called.slopes(single, w, z)[0]
        for k in range(4):
            value, size = precise.gradient(loss, w.tolist(), z[0].tolist(), k)
            assert float(value) == pytest.approx(float(gradient[k]), abs=1e-12 * float(size))
        by_mass = gradient / torch.softmax(z[0], 0)
        value, size = precise.rise(loss, w.tolist(), z[0].tolist(), 0, 2)
        assert float(value) == pytest.approx(float(by_mass[0] - by_mass[2]), abs=1e-11)


def reduction(random: np.random.Generator) -> Planted:
    """Binary reduction, or a sum with it: its frontier is exact at every row."""
    classes = int(random.integers(2, 60))
    base = draw_base(random)
    _, confusion = draw_confusion(random, classes)
    edge = frontier(None, 0.0, base, classes, float(confusion[0].max()))
    loss: Loss = BinaryReduction(base)
    if classes > 2 and random.random() < 0.5:
        # target separation cannot save it: both classes may be small beside a third
        loss = float(random.uniform(0.1, 10)) * TargetSeparation(draw_base(random), tau=1) + loss
    return loss, confusion[0], edge


def separation(random: np.random.Generator) -> Planted:
    """Target separation at rows where k equal rivals, or one, already contradict it.

    With u_t = x and (1 - x) / k on each of k rivals of one weight, dW/dz_t has the sign of
    c_s phi((1 - x) / k) - c_t phi(x).
    """
    base = draw_base(random)
    kind = random.choice(["two", "pair", "symmetric"])
    classes = 2 if kind == "two" else int(random.integers(3, 60))
    confusion = torch.zeros(classes)
    confusion[1 : 2 if kind == "pair" else classes] = 1.0
    confusion /= confusion.sum()
    m, x = float(confusion.max()), torch.linspace(0, 1, 2001)
    a = float(random.uniform(0, 0.8 * m))
    counts = range(1, classes if kind == "symmetric" else 2)
    k = max(float((base.phi((1 - x) / count) / base.phi(x)).max()) for count in counts)
    return TargetSeparation(base, a=a), confusion, (1 + k * a) / ((1 + a) * (1 + k * m))


def one_hot(random: np.random.Generator) -> Planted:
    """Two classes or pair flips at which W(1 - x, x, 0, ...) falls below its value at x = 0.

    c_s H(x) > c_t h(1 - x) does it for target separation, and c = w for binary reduction.
    """
    base = draw_base(random)
    classes = int(random.choice([2, 3, 8, 20]))
    confusion = torch.zeros(classes)
    confusion[1] = 1.0
    x = torch.linspace(0, 1, 2001)[1:-1]
    k = float((base.H(x) / base.h(1 - x)).max())
    a = float(random.uniform(0, 0.8))
    loss = random.choice([BinaryReduction(base), TargetSeparation(base, a=a)])
    a = a if isinstance(loss, TargetSeparation) else 0.0
    return loss, confusion, (1 + k * a) / ((1 + a) * (1 + k))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "claim"),
    [(reduction, "monotone"), (separation, "monotone"), (one_hot, "global")],
)
def test_search_finds_planted_faults(
    plant: Callable[[np.random.Generator], Planted], claim: str, record_property: Summary
) -> None:
    random = np.random.default_rng(1)
    outcomes: list[bool] = []
    while len(outcomes) < 60:
        loss, confusion, edge = plant(random)
        eta = edge * random.uniform(1.01, 1.05)
        if eta >= 0.99 * highest_rate(confusion):
            continue  # it bears nearly all there is
        row = row_at(eta, confusion)
        found = search(loss, row, 0, claim)
        outcomes.append(found is not None)
        if found is not None:
            # the same numbers by the way that witnesses of verdicts are read
            value, relative = reproduce(vars(found), loss, claim)
            assert relative > 0
            assert value == pytest.approx(found.value, rel=1e-5)
    record_property("summary", f"{plant.__name__}: {sum(outcomes)} of {len(outcomes)} faults found")
    assert sum(outcomes) >= 0.95 * len(outcomes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plant", "claim"),
    [(reduction, "monotone"), (separation, "monotone"), (separation, "transfers")],
)
def test_calling_the_loss_finds_planted_faults(
    plant: Callable[[np.random.Generator], Planted], claim: str
) -> None:
    random = np.random.default_rng(2)
    found: list[bool] = []
    while len(found) < 30:
        loss, confusion, edge = plant(random)
        eta = edge * random.uniform(1.01, 1.05)
        if eta >= 0.99 * highest_rate(confusion) or len(confusion) > 25:
            continue
        row = row_at(eta, confusion)
        find = called.search(loss, row, 0, claim, seed=len(found))
        if claim == "monotone":
            value, size = precise.gradient(loss, row.tolist(), find.logits, 0)
        else:
            value, size = precise.rise(loss, row.tolist(), find.logits, 0, find.rival)
        found.append(value > 1e-13 * size)
    assert sum(found) >= 0.9 * len(found)


@pytest.mark.slow
def test_calling_the_loss_finds_planted_minima() -> None:
    random = np.random.default_rng(3)
    found: list[bool] = []
    while len(found) < 30:
        loss, confusion, edge = one_hot(random)
        eta = edge * random.uniform(1.01, 1.05)
        if eta >= 0.99 * highest_rate(confusion):
            continue
        find = called.search(loss, row_at(eta, confusion), 0, "global", seed=len(found))
        found.append(find.score > 1e-10)
    assert sum(found) >= 0.9 * len(found)
