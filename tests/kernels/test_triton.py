"""The Triton kernel against the definitions, interpreted on the CPU; and that it compiles."""

import importlib
import math
import os
import subprocess
import sys

import naive
import numpy as np
import pytest
import torch

import lossforge
from lossforge import base
from lossforge.kernels.triton_rows import Form, rows
from lossforge.numerics import Positive

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


def polynomials(function):
    """The density and its two means, as `Form` wants them."""
    powers = [Positive.fit(function.density), *function.means]
    assert all(one.line is None for one in powers)
    return [one.single for one in powers]


def form(separated=None, paired=None, *, lam=0.0, tau=0.0, a=0.0, mu=0.0, rivals=None):
    density, up, down = polynomials(separated) if separated else ((), (), ())
    pair_density, _, pair_down = polynomials(paired) if paired else ((), (), ())
    return Form(lam, tau, a, density, up, down, mu, rivals, pair_density, pair_down)


PEAK = base.Exponential(-8.0, -1.0, 0.5), naive.exponential(-8.0, -1.0, 0.5)
SKEW = base.Exponential(-2.0, 1.5, 0.2), naive.exponential(-2.0, 1.5, 0.2)
BOWL = (
    base.from_derivative(lambda x: 7 * (x - 0.4) ** 2 - 8),
    naive.quadratic(7.0, -8.0, 0.4),
)
# each part with its base function, that of the package and the naive one
FORMS = {
    "BEF": (PEAK, PEAK, {"lam": 0.9, "tau": 1.0, "a": 0.2, "mu": 0.1, "rivals": 149}),
    "two bases": (BOWL, SKEW, {"lam": 0.4, "tau": 2.5, "mu": 3.0}),
    "TS": (SKEW, None, {"lam": 1.0, "tau": 1.0}),
    "target alone": (PEAK, None, {"lam": 2.0}),
    "BR": (None, BOWL, {"mu": 1.0, "rivals": 7}),
}


def made(name):
    separated, paired, numbers = FORMS[name]
    return form(separated and separated[0], paired and paired[0], **numbers)


def definition(name, z, t):
    """Value and gradient at a row of float64 logits, and the size of the gradient's terms."""
    separated, paired, numbers = FORMS[name]
    here = z > -INF
    here[t] = False
    others, r = z[here], int(here.sum())
    value, gradient, size = 0.0, torch.zeros_like(z), torch.zeros_like(z)
    if separated:
        h, a = separated[1], max(numbers.get("tau", 0.0) / max(r, 1), numbers.get("a", 0.0))
        u_t, v, u = probabilities(z[t], others)
        rising = naive.quadrature(lambda s: h.phi(s, torch), torch.zeros_like(u), u)
        value += numbers["lam"] * float(falling(h, v) + a * rising.sum())
        pull, A = u_t * h.phi(u_t, torch), (u * h.phi(u, torch)).sum()
        parts = a * u * h.phi(u, torch), u * pull, -u * a * A
        gradient[here] += numbers["lam"] * sum(parts)
        size[here] += numbers["lam"] * sum(map(abs, parts))
        gradient[t] -= numbers["lam"] * (pull * v + u_t * a * A)
    if paired:
        h, factor = paired[1], numbers["mu"] / min(max(r, 1), numbers.get("rivals") or INF)
        odds = torch.exp(-(z[t] - others).abs())
        large, small = 1 / (1 + odds), odds / (1 + odds)
        p, q = torch.where(z[t] >= others, torch.stack([large, small]), torch.stack([small, large]))
        value += factor * float(falling(h, q).sum())
        gradient[here] += factor * h.phi(p, torch) * p * q
        size[here] += factor * h.phi(p, torch) * p * q
        gradient[t] -= factor * (h.phi(p, torch) * p * q).sum()
    size[t] = gradient[t].abs()
    return value, gradient, size


def probabilities(own, others):
    """u_t, 1 - u_t as the sum of the other probabilities, and these."""
    top = torch.cat([own[None], others]).max()
    own, others = torch.exp(own - top), torch.exp(others - top)
    total = own + others.sum()
    return own / total, others.sum() / total, others / total


def falling(h, y):
    """h(1 - y), the integral of phi over [1 - y, 1]."""
    return naive.quadrature(lambda s: h.phi(1 - s, torch), torch.zeros_like(y), y)


def judge(name, logits, target):
    """Assert that values and gradients are those of the definition, each term of them."""
    values, gradient = rows(logits, target, made(name))
    worst = [0.0, 0.0]
    for z, t, value, slope in zip(logits, target.tolist(), values, gradient, strict=True):
        wanted, wanted_slope, size = definition(name, z.double(), t)
        errors = (
            abs(float(value) - wanted) / (wanted + TINY / TOLERANCE),
            float(((slope - wanted_slope).abs() / (size + TINY / TOLERANCE)).max()),
        )
        worst = [*map(max, worst, errors)]
    assert max(worst) <= TOLERANCE, worst


def batch(generator, n, classes, scale, masked=0.0):
    """Random logits up to 1e4 and labels; some classes are masked, labels never."""
    logits = scale * torch.randn(n, classes, generator=generator, dtype=torch.float32)
    target = torch.randint(classes, (n,), generator=generator)
    hidden = torch.rand(n, classes, generator=generator) < masked
    hidden[torch.arange(n), target] = False
    return logits.clamp(-1e4, 1e4).masked_fill(hidden, -INF), target


@pytest.mark.parametrize("scale", [0.1, 3.0, 40.0, 3e3])
@pytest.mark.parametrize("classes", [1, 2, 3, 10, 1000, 5000])
@pytest.mark.parametrize("name", FORMS)
def test_rows_match_the_definition(name, classes, scale):
    judge(name, *batch(torch.Generator().manual_seed(classes), 3, classes, scale))


@pytest.mark.parametrize("seed", range(40))
def test_rows_of_any_shape_and_mask_match_the_definition(seed):
    generator = torch.Generator().manual_seed(seed)
    width, size, masked = torch.rand(3, generator=generator).tolist()
    classes, scale = int(10 ** (3.5 * width)), 10 ** (5 * size - 1)
    judge([*FORMS][seed % len(FORMS)], *batch(generator, 4, classes, scale, masked))


WHOLE = {
    "BEF": lossforge.BEF(reduction="none"),
    "target alone": 2 * lossforge.TargetSeparation(PEAK[0], tau=0.0),
    "TS": lossforge.TargetSeparation(SKEW[0], tau=1.0, reduction="none"),
    "BR": lossforge.BinaryReduction(BOWL[0], rivals=7, reduction="none"),
}


def composed(name, logits, target):
    """Values and gradients of the same loss by torch's operations."""
    logits = logits.clone().requires_grad_()
    values = WHOLE[name].with_policy(reduction="none")(logits, target)
    values.sum().backward()
    return values.detach(), logits.grad


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
@pytest.mark.parametrize("name", WHOLE)
def test_masked_infinite_and_undefined_logits_give_what_the_composed_path_gives(name, row, label):
    logits, target = torch.tensor([row], dtype=torch.float32), torch.tensor([label])
    wanted = composed(name, logits, target)
    for one, other in zip(rows(logits, target, made(name)), wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-6, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("label", [-1, -100, 5, 2**40])
@pytest.mark.parametrize("name", FORMS)
def test_a_label_outside_of_the_classes_ignores_its_row(name, label):
    logits = torch.tensor([[1.0, 2, 3, 4, 5], [NAN, INF, -INF, 0, 0]], dtype=torch.float32)
    values, gradient = rows(logits, torch.tensor([label, label]), made(name))
    assert values.tolist() == [0, 0]
    assert gradient.eq(0).all()


@pytest.mark.parametrize("classes", [32_000, 128_256])
def test_sums_over_many_classes_stay_accurate(classes, record_property):
    """Accumulated in float32, compared with float64; the composed path in float32 beside it."""
    logits, target = batch(torch.Generator().manual_seed(0), 2, classes, 2.0)
    logits[0, target[0]] = 14.0  # a label of some probability
    wanted = composed("BEF", logits.double(), target)
    found, plain = rows(logits, target, made("BEF")), composed("BEF", logits, target)
    value, gradient, *others = (
        float((one - exact).abs().max() / exact.abs().max())
        for one, exact in zip([*found, *plain], [*wanted, *wanted], strict=True)
    )
    errors = " ".join(f"{error:.1e}" for error in (value, gradient, *others))
    line = f"triton, {classes} classes: errors of value and gradient, then of the composed path's:"
    record_property("summary", f"{line} {errors}")
    assert max(value, gradient) < 1e-6


def test_rows_depend_neither_on_strides_nor_on_each_other():
    logits, target = batch(torch.Generator().manual_seed(0), 6, 50, 3.0, masked=0.2)
    wanted = rows(logits, target, made("BEF"))
    spread = logits.t().contiguous().t()
    assert not spread.is_contiguous()
    labels = torch.stack([target, target], 1)[:, 0]
    for one, other in zip(rows(spread, labels, made("BEF")), wanted, strict=True):
        assert one.is_contiguous()
        assert torch.equal(one, other)
    alone = [rows(logits[i : i + 1], target[i : i + 1], made("BEF")) for i in range(6)]
    for one, other in zip(zip(*alone, strict=True), wanted, strict=True):
        assert torch.equal(torch.cat(one), other)


@pytest.mark.parametrize("shape", [(0, 5), (2, 0)], ids=str)
def test_a_batch_may_be_empty(shape):
    logits = torch.ones(shape, dtype=torch.float32)
    values, gradient = rows(logits, torch.zeros(shape[0]).long(), made("BEF"))
    assert torch.equal(values, torch.zeros(shape[0], dtype=torch.float32))
    assert gradient.shape == shape


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_logits_must_be_float32(dtype):
    with pytest.raises(TypeError, match="logits must be float32, got torch"):
        rows(torch.ones(2, 3, dtype=dtype), torch.tensor([0, 1]), made("BEF"))


COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from lossforge.kernels.triton_kernel import rows_kernel

types = ["*fp32", "*i64", "*fp32", "*fp32", "i32", *["fp32"] * 5]
signature = dict(zip(rows_kernel.arg_names, types + ["constexpr"] * 8))
for capability in (75, 80, 90):
    for on in ((True, True), (True, False), (False, True)):
        for block in (1, 4096):
            ts, br = ((1.0, 0.5, 0.25) if part else () for part in on)
            constants = [on[0], ts, ts, ts, on[1], br, br, block]
            constants = dict(zip(rows_kernel.arg_names[-8:], constants))
            source = ASTSource(rows_kernel, signature, constants)
            made = triton.compile(source, target=GPUTarget("cuda", capability, 32))
            assert made.asm["cubin"]
print("compiled")
"""


@pytest.mark.slow
def test_the_kernel_compiles_for_devices_without_one(tmp_path):
    """The interpreter forgives what the compiler refuses, such as a name that changes its shape."""
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    del environment["TRITON_INTERPRET"]
    done = subprocess.run(
        [sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True
    )
    assert done.stdout.split() == ["compiled"], done.stderr
