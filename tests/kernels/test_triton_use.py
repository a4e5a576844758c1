"""Where the Triton kernel is chosen, that losses keep their policy by it, and that it compiles."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

import lossforge
from lossforge import base, kernels
from lossforge.kernels import triton_rows
from lossforge.kernels.triton_rows import TritonKernel, covered
from lossforge.loss import shortcut

interpreted = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1",
    reason="TRITON_INTERPRET is not 1: `make test-integrations` runs this",
)
FLAT, CUDA = base.Quadratic(7.0, -8.0, 0.5), torch.device("cuda")
COVERED = {
    "BEF": lossforge.BEF(),
    "BQF": lossforge.BQF(),
    "TS": lossforge.TargetSeparation(base.from_derivative(lambda x: -1 - x * x), tau=1.0),
    "BR": lossforge.BinaryReduction(FLAT),
    "a sum": lossforge.BEF() + lossforge.BQF() + 0.5 * lossforge.BinaryReduction(FLAT),
    "a difference": lossforge.BEF() - 0.5 * lossforge.TargetSeparation(FLAT, tau=0.0),
    "a constant": lossforge.constructions.TargetLoss(FLAT, offset=2.0),
}
OTHERS = {
    "no polynomial": lossforge.GCE(),
    "a sum with one": lossforge.BEF() + lossforge.CE(),
    "a steep base": lossforge.BinaryReduction(base.Exponential(-8.0, -60.0)),
    "rescaled logits": lossforge.LogitClip(lossforge.BEF(), delta=2.0),
    "an eps-softmax": lossforge.constructions.EpsSoftmax(lossforge.BEF(), m=2.0),
}


@pytest.mark.parametrize("name", COVERED)
def test_sums_of_polynomials_are_covered(name):
    assert covered(COVERED[name].fused(5))


@pytest.mark.parametrize("name", OTHERS)
def test_nothing_else_is_covered(name):
    form = OTHERS[name].fused(5)
    assert form is None or not covered(form)


@pytest.mark.parametrize("form", [{"rescaling": kernels.Rescaling(1.0, 1.0)}, {"relaxation": 1.0}])
def test_rescaled_and_relaxed_forms_are_not_covered(form):
    term = COVERED["BEF"].fused(5).terms[0]
    relaxed = kernels.Term(term.role, 1.0, term.formula, relaxation=form.pop("relaxation", 0.0))
    assert covered(kernels.Form((term,)))
    assert not covered(kernels.Form((relaxed,), **form))


@pytest.mark.parametrize(("switch", "asked"), [("", 0), ("on", 0), ("off", 0), ("cuda", 1)])
def test_losses_elsewhere_ask_for_it_if_it_is_switched_on(switch, asked, monkeypatch):
    calls = []
    monkeypatch.setattr(kernels.native, "_switched", switch)
    monkeypatch.setattr(triton_rows, "choose", lambda *words: calls.append(words[1:]))
    device = torch.device("meta")
    logits = torch.zeros(4, 7, dtype=torch.float32, device=device)
    loss = lossforge.BEF()
    assert loss(logits, torch.zeros(4, dtype=torch.int64, device=device)).device == device
    assert calls == [(7, torch.float32, device)] * asked


@pytest.fixture
def _device(monkeypatch):
    """As if torch were built for CUDA and Triton could launch anything."""
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(triton_rows, "version", lambda: "3.7.1")
    monkeypatch.setattr(triton_rows, "_can_launch", lambda kernel, device: True)


def chosen(loss=COVERED["BEF"], classes=5, dtype=torch.float32, device=CUDA):
    return triton_rows.choose(loss.fused, classes, dtype, device)


@pytest.mark.usefixtures("_device")
def test_a_kernel_is_for_covered_losses_of_float32_on_a_cuda_device(monkeypatch):
    assert isinstance(chosen(), TritonKernel)
    assert chosen(OTHERS["no polynomial"]) is None
    assert chosen(OTHERS["a steep base"]) is None
    assert chosen(classes=1) is None
    assert chosen(dtype=torch.float64) is None
    assert chosen(device=torch.device("cpu")) is None
    monkeypatch.setattr(torch.version, "cuda", None)  # a build for AMD calls its devices cuda too
    assert chosen() is None


@pytest.mark.usefixtures("_device")
@pytest.mark.parametrize("lacking", [{"version": lambda: None}, {"_can_launch": lambda *_: False}])
def test_there_is_no_kernel_where_triton_does_not_work(monkeypatch, lacking):
    for name, answer in lacking.items():
        monkeypatch.setattr(triton_rows, name, answer)
    assert chosen() is None


@pytest.mark.parametrize("error", [RuntimeError("Failed to find C compiler"), OSError("no ptxas")])
def test_a_kernel_that_fails_to_launch_is_found_out(monkeypatch, error):
    def rows(self, *tensors):
        raise error

    monkeypatch.setattr(TritonKernel, "rows", rows)
    kernel = TritonKernel(COVERED["BEF"].fused(5), 5)
    with pytest.warns(UserWarning, match=str(error)):
        assert not triton_rows._can_launch(kernel, torch.device("cpu"))


@interpreted
def test_a_kernel_is_tried_out():
    kernel = TritonKernel(COVERED["BEF"].fused(5), 5)
    assert triton_rows._can_launch(kernel, torch.device("cpu"))


@pytest.mark.parametrize(("version", "known"), [("3.3.1", False), ("3.4.0+git1", True)])
def test_triton_must_be_new_enough(monkeypatch, version, known):
    language = SimpleNamespace(constexpr=lambda value: value)
    fake = SimpleNamespace(__version__=version, jit=lambda function: function, language=language)
    monkeypatch.setitem(sys.modules, "triton", fake)
    monkeypatch.setitem(sys.modules, "triton.language", language)
    # set before it is deleted: what was there, if anything, comes back
    monkeypatch.setitem(sys.modules, "lossforge.kernels.triton_kernel", None)
    monkeypatch.setattr(kernels, "triton_kernel", None, raising=False)
    del sys.modules["lossforge.kernels.triton_kernel"]
    assert triton_rows.version.__wrapped__() == (version if known else None)


class ByTriton(torch.autograd.Function):
    """A loss of all rows by the kernel, as `loss.shortcut` differentiates it."""

    @staticmethod
    def forward(ctx, logits, target, loss):
        values, gradient = logits.new_empty(len(target)), torch.empty_like(logits)
        kernel = TritonKernel(loss.fused(logits.shape[1]), logits.shape[1])
        kernel.rows(logits, target, values, gradient)
        ctx.save_for_backward(gradient)
        return values

    @staticmethod
    def backward(ctx, grad):
        return ctx.saved_tensors[0] * grad[:, None], None, None


@pytest.fixture
def _by_triton(monkeypatch):
    """Evaluate losses on the CPU as on a device: no label is read, and this kernel is taken."""

    def by_kernel(loss, logits, target, reduction):
        assert reduction == "none"
        return ByTriton.apply(logits, target, loss) if logits.dtype == torch.float32 else None

    monkeypatch.setattr("lossforge.loss.policy.readable", lambda tensor: False)
    monkeypatch.setattr(shortcut, "common_call", lambda *_: None)
    monkeypatch.setattr(shortcut, "by_kernel", by_kernel)


@interpreted
@pytest.mark.usefixtures("_by_triton")
@pytest.mark.filterwarnings("ignore::RuntimeWarning:triton.*")
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_a_loss_keeps_its_policy(reduction, weighted, smoothing):
    """Against float64, which has no such kernel; ignored rows hold NaN and infinities."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(6, 7, generator=generator).float()
    target = torch.tensor([3, 99, 0, 99, 6, 1])
    logits[1], logits[3] = torch.nan, torch.inf
    logits, target = logits.view(2, 3, 7).movedim(-1, 1), target.view(2, 3)
    weight = torch.rand(7, generator=generator) + 0.5 if weighted else None
    loss = COVERED["a sum"].with_policy(
        reduction=reduction, ignore_index=99, label_smoothing=smoothing, weight=weight
    )
    exact = value_and_gradient(loss, logits.double(), target)
    found = value_and_gradient(loss.float(), logits, target)
    for one, other in zip(found, exact, strict=True):
        size = float(other.abs().max())
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-6 * size)
    if not weighted:
        half, _ = value_and_gradient(loss, logits.bfloat16(), target)
        assert half.dtype == torch.bfloat16
        torch.testing.assert_close(half.double(), exact[0], rtol=0.03, atol=0.03)


def value_and_gradient(loss, logits, target):
    logits = logits.clone().requires_grad_()
    value = loss(logits, target)
    return value.detach(), torch.autograd.grad(value.sum(), logits)[0]


COMPILE = """
import re

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

import lossforge
from lossforge.kernels.triton_rows import TritonKernel

class Device:
    def __init__(self, capability):
        self.capability = capability

    def get_current_device(self):
        return self.capability  # its number: kernels are kept for each

    def get_current_stream(self, device):
        return 0

    def get_current_target(self):
        return GPUTarget("cuda", self.capability, 32)

made, run = [], triton.JITFunction.run
triton.JITFunction.run = lambda *a, **k: made.append(run(*a, **{**k, "warmup": True}))

base = lossforge.base.Quadratic(7.0, -8.0, 0.5)
ts, br = lossforge.TargetSeparation(base, tau=0.0), lossforge.BinaryReduction(base)
many = lossforge.BEF() + lossforge.BQF(mu=1.0) + lossforge.TargetSeparation(base, tau=2.0)
cases = [(lossforge.BEF(), 5000, True), (many, 2, True), (ts, 1000, True), (br, 1000, True)]
for capability in (75, 80, 90):
    driver.set_active(Device(capability))
    for loss, classes, derived in [*cases, (many, 5000, False)]:
        logits, target, values = torch.zeros(1, classes), torch.zeros(1).long(), torch.zeros(1)
        kernel = TritonKernel(loss.fused(classes), classes)
        kernel.rows(logits, target, values, logits if derived else None)
        assert made[-1].metadata.target.arch == capability and made[-1].asm["cubin"]
        (call,) = re.findall(r"^\\s*call.*", made[-1].asm["ptx"], re.MULTILINE)
        assert "__assertfail" in call
print(len(made), "compiled")
"""


@interpreted
@pytest.mark.slow
def test_the_kernel_compiles_for_devices_without_one(tmp_path):
    """The interpreter forgives what the compiler refuses, such as a name that changes its shape.

    All is as at a launch, but for the launch. The one call in it is the assertion on labels.
    """
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    del environment["TRITON_INTERPRET"]
    done = subprocess.run(
        [sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True
    )
    assert done.stdout == "15 compiled\n", done.stderr
