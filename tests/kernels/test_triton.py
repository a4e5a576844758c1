"""The Triton kernel against the definitions, interpreted on the CPU; and that it compiles."""

import contextlib
import importlib
import math
import os
import random
from dataclasses import dataclass, replace

import naive
import numpy as np
import pytest
import torch

import lossforge
from lossforge import base, kernels
from lossforge.kernels import native
from lossforge.kernels.triton_rows import TritonKernel, covered
from lossforge.loss import Loss

pytest.importorskip(
    "triton", reason="triton cannot be imported here: `make test-integrations` runs this"
)
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip(
        "TRITON_INTERPRET is not 1: `make test-integrations` runs this", allow_module_level=True
    )

# the interpreter computes with numpy, which warns of infinities
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning:triton.*")

INF, NAN = math.inf, math.nan
TOLERANCE = 6e-6  # an exponent x of float32 is wrong by up to x 2^-24, and 88 is the largest
TINY = 1e-37  # below this float32 has fewer digits


@dataclass(frozen=True)
class Case:
    """A loss of the package and, from the definitions, its terms.

    A term is its role, its factor, the naive base function, and two numbers of which the larger is
    its strength, the first divided by the number of rivals.
    """

    loss: Loss
    terms: tuple
    constant: float = 0.0

    def __add__(self, other):
        constant = self.constant + other.constant
        return Case(self.loss + other.loss, self.terms + other.terms, constant)

    def __rmul__(self, factor):
        terms = tuple((role, factor * old, *rest) for role, old, *rest in self.terms)
        return Case(factor * self.loss, terms, factor * self.constant)


def ts(own, tau=0.0, a=0.0, others=None):
    others = others or own
    loss = lossforge.TargetSeparation(own[0], tau=tau, a=a, nontarget=others[0])
    return Case(loss, (("target", 1.0, own[1], 0.0, 1.0), ("others", 1.0, others[1], tau, a)))


def br(pair):
    loss = lossforge.BinaryReduction(pair[0])
    return Case(loss, (("pairs", 1.0, pair[1], 1.0, 0.0),))


def own(pair, scale, offset):
    loss = lossforge.constructions.TargetLoss(pair[0], scale=scale, offset=offset)
    return Case(loss, (("target", scale, pair[1], 0.0, 1.0),), offset)


def exponential(*parameters):
    return base.Exponential(*parameters), naive.exponential(*parameters)


def quadratic(*parameters):
    return base.Quadratic(*parameters), naive.quadratic(*parameters)


def wave(least, height, speed, phase):
    def phi(x, m):
        return least + height * m.sin(speed * x + phase) ** 2

    return base.from_derivative(lambda x: -phi(x, torch)), naive.Base(phi)


PEAK, SKEW = exponential(-8.0, -1.0, 0.5), exponential(-2.0, 1.5, 0.2)
BOWL, FLAT, WAVE = quadratic(7.0, -8.0, 0.4), quadratic(7.0, -8.0, 0.5), wave(0.5, 2.0, 3.0, 1.0)
CASES = {
    # with a given mu, for without one they are covered up to 150 classes only
    "BEF": replace(0.9 * ts(PEAK, 1.0, 0.2) + 0.1 * br(PEAK), loss=lossforge.BEF(mu=0.1)),
    "BQF": replace(0.9 * ts(FLAT, 1.0, 0.2) + 0.1 * br(FLAT), loss=lossforge.BQF(mu=0.1)),
    "two bases": 0.4 * ts(BOWL, 2.5) + 3.0 * br(SKEW),
    "TS": ts(SKEW, 1.0),
    "TS of two bases": ts(WAVE, 0.7, 0.1, others=BOWL),
    "target alone": 2.0 * ts(PEAK),
    "with a constant": own(BOWL, 1.5, 0.3) + 0.5 * own(WAVE, 2.0, -0.1),
    "BR": br(BOWL),
    "five terms": ts(PEAK, 1.0) + 0.5 * ts(SKEW, 1.0) + 2.0 * ts(BOWL, 0.5, 0.1) + br(WAVE),
    "four BR": br(WAVE) + br(PEAK) + 0.2 * br(BOWL) + 0.5 * br(SKEW),
    "a difference": ts(PEAK, 1.0) + -0.3 * ts(SKEW, 0.5) + -0.2 * br(BOWL) + own(WAVE, 1.0, 1.0),
}


def random_base(chance):
    between = chance.uniform
    kind = chance.choice((exponential, quadratic, wave))
    if kind is exponential:
        return kind(-between(1, 9), between(-6, 2), between(0, 1))
    if kind is quadratic:
        return kind(between(-4, 7), -between(8, 12), between(0, 1))
    return kind(between(0.3, 1), between(0, 3), between(0.5, 4), between(0, 6))


def random_part(chance):
    one, two, strength = random_base(chance), random_base(chance), chance.uniform(0.1, 2)
    kind = chance.choice(("TS", "BR", "target"))
    if kind == "TS":
        return ts(one, strength, chance.choice([0.0, 0.2]), others=chance.choice([None, two]))
    if kind == "BR":
        return br(one)
    return own(one, strength, chance.uniform(-1, 1))


def random_case(chance):
    """One to four parts that are covered; a factor may be negative."""
    total = chance.uniform(0.1, 3) * random_part(chance)
    for _ in range(chance.randint(0, 3)):
        total += chance.choice([1.0, chance.uniform(-1, 3)]) * random_part(chance)
    return total if covered(total.loss.fused(5)) else random_case(chance)


def kernel_of(loss, classes):
    form = loss.fused(classes)
    assert covered(form)
    return TritonKernel(form, classes)


def rows(loss, logits, target, by=1.0):
    """Values and gradient by the kernel."""
    values, gradient = torch.full(target.shape, 7.0).float(), torch.full(logits.shape, 7.0).float()
    status = kernel_of(loss, logits.shape[1]).rows(logits, target, values, gradient, by=by)
    assert status == native.DONE
    return values, gradient


def definition(case, z, t):
    """Value and gradient at a row of float64 logits, each with the size of its terms."""
    here = z > -INF
    here[t] = False
    others, r = z[here], max(int(here.sum()), 1)
    u_t, v, u = probabilities(z[t], others)
    p, q = pair_probabilities(z[t] - others)
    values, gradient, size = [case.constant], torch.zeros_like(z), torch.zeros_like(z)

    def add(to_others, to_own):
        gradient[here] += to_others
        size[here] += to_others.abs()
        gradient[t] += to_own
        size[t] += abs(to_own)

    for role, factor, h, shared, least in case.terms:
        each = factor * max(shared / r, least)
        if role == "target":
            slope = u_t * h.phi(u_t, torch)
            values.append(each * falling(h, v))
            add(each * slope * u, -each * slope * v)
        elif role == "others":
            slopes = u * h.phi(u, torch)
            values.append(each * rising(h, u).sum())
            add(each * slopes, 0.0)
            add(-each * slopes.sum() * u, -each * slopes.sum() * u_t)
        else:
            slopes = p * q * h.phi(p, torch)
            values.append(each * falling(h, q).sum())
            add(each * slopes, -each * slopes.sum())
    return float(sum(values)), float(sum(map(abs, values))), gradient, size


def probabilities(own, others):
    """u_t, 1 - u_t as the sum of the other probabilities, and these."""
    top = torch.cat([own[None], others]).max()
    own, others = torch.exp(own - top), torch.exp(others - top)
    total = own + others.sum()
    return own / total, others.sum() / total, others / total


def pair_probabilities(d):
    """The logistic function of d and of -d."""
    odds = torch.exp(-d.abs())
    large, small = 1 / (1 + odds), odds / (1 + odds)
    return torch.where(d >= 0, large, small), torch.where(d >= 0, small, large)


def rising(h, x):
    """h(0) - h(x), the integral of phi over [0, x]."""
    return naive.quadrature(lambda s: h.phi(s, torch), torch.zeros_like(x), x)


def falling(h, y):
    """h(1 - y), the integral of phi over [1 - y, 1]."""
    return naive.quadrature(lambda s: h.phi(1 - s, torch), torch.zeros_like(y), y)


def largest_error(case, logits, target):
    """Of values and gradients, relative to the size of the terms that each is a sum of."""
    worst = 0.0
    found = rows(case.loss, logits, target)
    for z, t, value, slope in zip(logits, target.tolist(), *found, strict=True):
        wanted, size, gradient, sizes = definition(case, z.double(), t)
        assert value.isfinite()
        error = abs(float(value) - wanted) / (size + TINY / TOLERANCE)
        errors = (slope - gradient).abs() / (sizes + TINY / TOLERANCE)
        worst = max(worst, error, float(errors.max()))
    return worst


def batch(generator, n, classes, scale, masked=0.0):
    """Random logits up to 1e4 and labels; some classes are masked, labels never."""
    logits = scale * torch.randn(n, classes, generator=generator, dtype=torch.float32)
    target = torch.randint(classes, (n,), generator=generator)
    hidden = torch.rand(n, classes, generator=generator) < masked
    hidden[torch.arange(n), target] = False
    return logits.clamp(-1e4, 1e4).masked_fill(hidden, -INF), target


@pytest.mark.parametrize("classes", [1, 2, 3, 10, 33, 1000, 4097, 10_000])
@pytest.mark.parametrize("name", CASES)
def test_rows_match_the_definition(name, classes):
    """Logits from all but equal to 10,000 apart; a label that is far below all others."""
    scale = torch.tensor([[0.1], [3.0], [40.0], [3e3], [3.0], [3.0]], dtype=torch.float32)
    logits, target = batch(torch.Generator().manual_seed(classes), 6, classes, scale)
    logits[-2:].scatter_(1, target[-2:, None], torch.tensor([[-100.0], [-1e4]]).float())
    assert largest_error(CASES[name], logits, target) <= TOLERANCE


@pytest.mark.parametrize("seed", range(40))
def test_rows_of_any_loss_shape_and_mask_match_the_definition(seed):
    chance = random.Random(seed)
    classes, scale = int(10 ** chance.uniform(0, 3.5)), 10 ** chance.uniform(-1, 4)
    logits, target = batch(torch.Generator().manual_seed(seed), 4, classes, scale, chance.random())
    case = CASES[chance.choice([*CASES])] if seed % 4 == 0 else random_case(chance)
    assert largest_error(case, logits, target) <= TOLERANCE


def by_other_paths(loss, logits, target):
    """Values and gradients of a loss by its C kernel, if there is one, and by torch operations."""
    loss = loss.with_policy(reduction="none")
    for path in (contextlib.nullcontext, kernels.composed):
        with path():
            leaf = logits.clone().requires_grad_()
            values = loss(leaf, target)
            yield values.detach(), torch.autograd.grad(values.sum(), leaf)[0]


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_those_of_the_other_paths(seed):
    chance = random.Random(seed)
    case, classes = random_case(chance), chance.randint(2, 300)
    logits, target = batch(torch.Generator().manual_seed(seed), 5, classes, 4.0, 0.1)
    values, gradient = rows(case.loss, logits, target)
    for wanted, slopes in by_other_paths(case.loss, logits, target):
        for n, t in enumerate(target.tolist()):
            _, size, _, sizes = definition(case, logits[n].double(), t)
            assert abs(values[n] - wanted[n]) <= TOLERANCE * size
            assert ((gradient[n] - slopes[n]).abs() <= TOLERANCE * sizes + TINY).all()


@pytest.fixture(params=[np.maximum, np.fmax], ids=["as interpreted", "as on a device"])
def _maximum(request, monkeypatch):
    """Of a number and NaN: NaN in the interpreter, the number on a device."""
    builder = importlib.import_module("triton.runtime.interpreter").InterpreterBuilder
    larger = request.param
    monkeypatch.setattr(
        builder, "create_maxnumf", lambda self, one, other: self.binary_op(one, other, larger)
    )


@pytest.mark.usefixtures("_maximum")
@pytest.mark.parametrize(
    ("row", "label"),
    [
        ([1.0, -INF, 2.0, 0.0, -INF], 1),
        ([1.0, -INF], 1),
        ([-INF], 0),
        ([-INF, -INF, -INF], 1),
        ([-INF, 3.0, -INF], 1),
        ([NAN, 1.0, 2.0], 1),
        ([0.0, NAN, 2.0], 1),
        ([NAN, -INF, 2.0], 1),
        ([NAN, 1.0, -INF], 1),
        ([INF, 1.0, 2.0], 1),
        ([0.0, INF, 2.0], 1),
        ([INF, INF, 2.0], 1),
        ([INF, -INF, 2.0], 1),
        ([INF, 1.0, -INF], 1),
        ([3e38, -3e38, 0.0], 0),
        ([3e38, -3e38, 0.0], 1),
        ([1e4, -1e4, -80.0], 2),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", CASES)
def test_masked_infinite_and_undefined_logits_give_what_the_composed_path_gives(name, row, label):
    logits, target = torch.tensor([row], dtype=torch.float32), torch.tensor([label])
    *_, wanted = by_other_paths(CASES[name].loss, logits, target)
    for one, other in zip(rows(CASES[name].loss, logits, target), wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-6, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("label", [-1, -100, 5, 2**40])
@pytest.mark.parametrize("name", CASES)
def test_a_label_that_is_no_class_makes_its_row_nan(name, label):
    logits, target = torch.randn(2, 5, dtype=torch.float32), torch.tensor([label, 3])
    values, gradient = rows(CASES[name].loss, logits, target)
    assert values.isnan().tolist() == [True, False]
    assert gradient.isnan().all(1).tolist() == [True, False]
    assert gradient[1].isfinite().all()


def test_a_label_that_is_no_class_fails_an_assertion_where_these_are_on(monkeypatch):
    builder = importlib.import_module("triton.runtime.interpreter").interpreter_builder
    monkeypatch.setattr(builder, "options", replace(builder.options, debug=True))
    logits = torch.ones(1, 5, dtype=torch.float32)
    rows(lossforge.BEF(), logits, torch.tensor([4]))
    with pytest.raises(Exception, match="target must be a class"):
        rows(lossforge.BEF(), logits, torch.tensor([5]))


@pytest.mark.parametrize("classes", [32_000, 128_256])
def test_sums_over_many_classes_stay_accurate(classes, record_property):
    """Accumulated in float32, compared with float64; the composed path in float32 beside it."""
    logits, target = batch(torch.Generator().manual_seed(0), 2, classes, 2.0)
    logits[0, target[0]] = 14.0  # a label of some probability
    loss = lossforge.BEF(mu=0.1)
    *_, wanted = by_other_paths(loss, logits.double(), target)
    *_, plain = by_other_paths(loss, logits, target)
    found = rows(loss, logits, target)
    value, gradient, *others = (
        float((one - exact).abs().max() / exact.abs().max())
        for one, exact in zip([*found, *plain], [*wanted, *wanted], strict=True)
    )
    errors = " ".join(f"{error:.1e}" for error in (value, gradient, *others))
    line = f"triton, {classes} classes: errors of value and gradient, then of the composed path's:"
    record_property("summary", f"{line} {errors}")
    assert max(value, gradient) < 1e-6


def test_rows_depend_neither_on_strides_nor_on_each_other():
    loss = lossforge.BEF()
    logits, target = batch(torch.Generator().manual_seed(0), 6, 50, 3.0, masked=0.2)
    wanted = rows(loss, logits, target)
    spread = logits.t().contiguous().t()
    assert not spread.is_contiguous()
    labels = torch.stack([target, target], 1)[:, 0]
    for one, other in zip(rows(loss, spread, labels), wanted, strict=True):
        assert torch.equal(one, other)
    alone = [rows(loss, logits[i : i + 1], target[i : i + 1]) for i in range(6)]
    for one, other in zip(zip(*alone, strict=True), wanted, strict=True):
        assert torch.equal(torch.cat(one), other)


@pytest.mark.parametrize("name", CASES)
def test_gradient_and_total_are_multiplied_by_a_factor_and_values_are_not(name):
    loss = CASES[name].loss
    logits, target = batch(torch.Generator().manual_seed(0), 5, 20, 3.0, masked=0.2)
    values, gradient = rows(loss, logits, target)
    kernel, total, same = kernel_of(loss, 20), torch.tensor(7.0).float(), torch.empty_like(values)
    scaled = torch.empty_like(gradient)
    kernel.rows(logits, target, same, scaled, total=total, by=0.25)
    assert torch.equal(same, values)
    assert torch.equal(scaled, gradient / 4)
    torch.testing.assert_close(total, values.double().sum().float() / 4, rtol=1e-7, atol=0)
    kernel.rows(logits, target, same.zero_(), None)
    assert torch.equal(same, values)


def test_a_batch_may_be_empty():
    logits, target = torch.empty(0, 5).float(), torch.empty(0).long()
    values, total = torch.empty(0).float(), torch.tensor(7.0).float()
    kernel = kernel_of(lossforge.BEF(), 5)
    kernel.rows(logits, target, values, torch.empty_like(logits), total=total, by=2.0)
    assert float(total) == 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_logits_must_be_float32(dtype):
    with pytest.raises(TypeError, match="logits must be float32, got torch"):
        rows(lossforge.BEF(), torch.ones(2, 3, dtype=dtype), torch.tensor([0, 1]))
