"""The compiled kernel: when it is chosen, what it leaves alone, and that it computes the same.

Its numbers are compared with torch operations by the attack `soak/kernel.py`, and with the naive
formulas by all tests of losses, which take it where it is built.
"""

import copy
import math
import os
import pickle
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from soak.kernel import ERROR, largest_error
from torch.autograd import forward_ad
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

import lossforge
from lossforge import kernels
from lossforge.catalog.entry import TABLES
from lossforge.kernels import native
from lossforge.loss import shortcut
from lossforge.numerics import Positive, positive

ALONE = ("BR(exponential(alpha=-1, beta=-2, gamma=0.5))", "bounded_cosine()")
built = pytest.mark.skipif(not kernels.is_built(), reason="the kernel was not built: no C compiler")
ROOT = Path(lossforge.__file__).parents[2]


def batch(rows: int = 6, classes: int = 5, dtype: torch.dtype = torch.float64):
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(rows, classes, generator=generator, dtype=dtype)
    return logits.requires_grad_(), torch.randint(classes, (rows,), generator=generator)


def value_and_gradient(loss, logits, target):
    logits = logits.clone().requires_grad_()
    values = loss(logits, target)
    return values, torch.autograd.grad(values.sum(), logits)[0]


def chosen(loss, classes: int = 5, dtype: torch.dtype = torch.float64) -> bool:
    return shortcut._kernel_of(loss, classes, dtype) is not None


@built
@pytest.mark.parametrize("name", TABLES)
def test_the_losses_of_the_tables_have_a_kernel(name):
    assert chosen(lossforge.make(name))


@built
@pytest.mark.parametrize(
    "start",  # those marked have a loss whose form takes seconds to prepare
    [pytest.param(n, marks=pytest.mark.slow if n in (60, 160) else []) for n in range(0, 200, 20)],
)
def test_kernel_and_torch_operations_agree(start):
    assert max(largest_error(seed) for seed in range(start, start + 20)) <= ERROR


@built
def test_a_series_has_a_kernel_and_a_steep_one_has_none():
    gentle = lossforge.base.from_derivative(lambda x: -torch.exp(-4 * (x - 0.5) ** 2))
    steep = lossforge.base.Exponential(-8, -60)
    assert chosen(lossforge.TargetSeparation(gentle, tau=1) + lossforge.BinaryReduction(gentle))
    assert not chosen(lossforge.BinaryReduction(steep))


@pytest.mark.parametrize("reach", [1.0, 2**-4, 2**-7])
@pytest.mark.parametrize("density", [lambda x: torch.exp(-6 * (x - 0.5) ** 2), lambda x: 1 + x**9])
def test_a_shortened_polynomial_keeps_its_relative_error(density, reach):
    function = Positive.fit(density)
    powers = function.economised(reach, 2**-24)
    x = reach * torch.linspace(0, 1, 1001, dtype=torch.float64)
    found = sum(power * (2 * x / reach - 1) ** k for k, power in enumerate(powers))
    assert ((found / function(x) - 1).abs() <= 1.01 * 2**-24).all()
    assert len(powers) <= len(function.single)


def test_an_even_density_is_one_of_even_powers():
    function = Positive.fit(lambda x: torch.exp(-4 * (x - 0.5) ** 2))
    assert not any(function.economised(1.0, 2**-24)[1::2])


@built
def test_the_switch_forces_torch_operations():
    logits, target = batch()
    loss = lossforge.BEF()
    with_kernel = loss(logits, target).grad_fn
    with kernels.composed():
        assert "Reduced" not in type(loss(logits, target).grad_fn).__name__
        assert kernels.describe() == "composed"
    assert "Reduced" in type(with_kernel).__name__


def test_the_environment_forces_torch_operations():
    script = "import lossforge; print(lossforge.kernels.describe(), lossforge.kernels.is_on())"
    env = {**os.environ, "LOSSFORGE_KERNEL": "off"}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    assert done.stdout.startswith("composed")
    assert done.stdout.endswith("False\n")


@built
@pytest.mark.parametrize("name", ["BEF", "JAL-CE"])
def test_the_gradient_can_be_differentiated(name):
    loss = lossforge.make(name)
    logits, target = batch()
    assert torch.autograd.gradcheck(lambda z: loss(z, target), logits)
    assert torch.autograd.gradgradcheck(lambda z: loss(z, target), logits)


@built
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_a_second_backward_pass_gives_the_same(reduction):
    loss = lossforge.BEF(reduction=reduction)
    logits, target = batch()
    value = loss(logits, target).sum()
    first, second = (torch.autograd.grad(value, logits, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)


@built
@pytest.mark.parametrize(("rows", "classes"), [(20_000, 10), (64, 100_000)])
def test_the_bits_do_not_depend_on_the_number_of_threads(rows, classes):
    logits, target = batch(rows, classes, torch.float32)
    loss = lossforge.BEF(reduction="none")
    threads, found = torch.get_num_threads(), []
    for number in (1, 2, 3, 7):
        torch.set_num_threads(number)
        values = loss(logits, target)
        found.append((values, torch.autograd.grad(values.sum(), logits)[0]))
    torch.set_num_threads(threads)
    for one in found[1:]:
        assert torch.equal(one[0], found[0][0])
        assert torch.equal(one[1], found[0][1])


@built
@pytest.mark.parametrize("first", ["parent", "child"])
def test_a_forked_process_computes_the_same_bits(first):
    script = """
import hashlib, os, torch, lossforge
from lossforge.loss.shortcut import _kernel_of
torch.set_num_threads(2)
logits, target = torch.randn(256, 1000), torch.randint(1000, (256,))
kernel = _kernel_of(lossforge.BEF(), 1000, torch.float32)
def bits():
    values, gradient = torch.empty(256), torch.empty(256, 1000)
    assert kernel.rows(logits, target, values, gradient) == lossforge.kernels.native.DONE
    return values.numpy().tobytes() + gradient.numpy().tobytes()
def digest():
    return hashlib.sha256(bits()).digest()
logits.exp()  # by torch's threads, which the child does not have
if FIRST == "parent":
    bits()
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, digest())
    os._exit(0)
os.close(writer)
assert os.read(reader, 32) == digest()
"""
    script = f"FIRST = {first!r}" + script
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)


@built
def test_many_threads_compute_the_same_bits_at_once():
    loss = lossforge.BEF(reduction="none")
    logits, target = batch(512, 100, torch.float32)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    expected = value_and_gradient(loss, logits.detach(), target)

    def is_same(_: int) -> bool:
        torch.set_num_threads(2)  # a setting of each thread
        found = value_and_gradient(loss, logits.detach(), target)
        return all(map(torch.equal, found, expected))

    with ThreadPoolExecutor(6) as pool:
        same = list(pool.map(is_same, range(60)))
    torch.set_num_threads(threads)
    assert all(same)


@built
def test_all_threads_flush_denormals_if_the_caller_does():
    script = """
import torch, lossforge
if not torch.set_flush_denormal(True):
    raise SystemExit  # not on this processor
torch.set_flush_denormal(False)
logits, target = torch.zeros(256, 1000), torch.zeros(256, dtype=torch.int64)
logits[:, 0] = 92.0
loss, found = lossforge.BEF(mu=0.1, reduction="none"), []
for threads, flush in [(2, False), (2, True), (1, True)]:
    torch.set_num_threads(threads)
    torch.set_flush_denormal(flush)
    z = logits.clone().requires_grad_()
    found.append(torch.autograd.grad(loss(z, target).sum(), z)[0].view(torch.int32))
kept, flushed, alone = found
assert torch.equal(flushed, alone) and not torch.equal(kept, flushed)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@built
@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_a_kept_graph_keeps_its_gradient(reduction):
    logits, target = batch()
    value = lossforge.BEF(reduction=reduction)(logits, target).sum() * 3
    first = torch.autograd.grad(value, logits, retain_graph=True)[0]
    expected = first.clone()
    first.zero_()
    batched = torch.autograd.grad(
        value, logits, torch.ones(2, dtype=torch.float64), retain_graph=True, is_grads_batched=True
    )[0]
    assert_close(batched, expected.expand(2, -1, -1))
    assert torch.equal(torch.autograd.grad(value, logits)[0], expected)


@built
def test_a_jacobian_is_taken_at_once():
    logits, target = batch()
    loss = lossforge.BEF(reduction="none")
    jacobian = torch.autograd.functional.jacobian
    found = jacobian(lambda z: loss(z, target), logits.detach(), vectorize=True)
    assert_close(found, jacobian(lambda z: loss(z, target), logits.detach()))


@built
def test_denormals_and_infinities_survive():
    script = """
import torch, lossforge
z = torch.randn(4, 3, requires_grad=True)
lossforge.BEF()(z, torch.tensor([0, 1, 2, 0])).backward()
assert lossforge.kernels.is_on()
tiny = torch.tensor([1e-40, 3e-42])
assert (tiny / 2 > 0).all() and (tiny.double() * 1e-280 > 0).all()
assert (1 / torch.zeros(2)).isinf().all()
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@built
@pytest.mark.parametrize("name", ["BEF", "MAE", "NCE", "ANL-FL", "CEeps+MAE", *ALONE])
@pytest.mark.parametrize("logit", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("place", [0, 1], ids=["label", "rival"])
def test_logits_that_are_not_finite_give_what_torch_operations_give(name, logit, place):
    loss = lossforge.parse(name).with_policy(reduction="none")
    logits, target = torch.zeros(3, 4), torch.tensor([0, 0, 2])
    logits[0, place] = logit
    values, gradient = value_and_gradient(loss, logits, target)
    with kernels.composed():
        composed, expected = value_and_gradient(loss, logits, target)
    assert_close(values, composed, equal_nan=True)
    assert_close(gradient, expected, equal_nan=True)


@built
@pytest.mark.parametrize("label", [-1, 5, -101, 1 << 40])
@pytest.mark.parametrize("name", ["CE", "BEF"])
def test_a_label_out_of_range_is_refused(name, label):
    logits, target = batch()
    target[2] = label
    with pytest.raises(IndexError, match=rf"in \[0, 5\).*got {label}"):
        lossforge.make(name)(logits, target)


@built
def test_ignored_labels_count_for_nothing():
    logits, target = batch()
    kept = lossforge.BEF()(logits[:4], target[:4])
    target[4:] = -100
    broken = logits.detach().clone()
    broken[4:] = math.nan
    broken.requires_grad_()
    value = lossforge.BEF()(broken, target)
    value.backward()
    assert_close(value, kept)
    assert (broken.grad[4:] == 0).all()


@built
def test_a_class_of_a_user_is_not_passed_over():
    class Doubled(lossforge.BEF):
        def from_scores(self, scores, target):
            return 2 * super().from_scores(scores, target)

    logits, target = batch()
    assert_close(Doubled()(logits, target), 2 * lossforge.BEF()(logits, target))
    loss = lossforge.BEF()
    loss(logits, target)  # a kernel is chosen
    loss.from_scores = lambda scores, target: scores.values[:, 0]
    assert_close(loss(logits, target), logits[:, 0].mean())


@built
def test_a_base_function_of_a_user_is_not_passed_over():
    class Other(lossforge.base.Log):
        def value(self, at):
            return 2 * super().value(at)

    logits, target = batch()
    loss = lossforge.constructions.TargetLoss(Other())
    assert not chosen(loss)
    assert_close(loss(logits, target), 2 * F.cross_entropy(logits, target))


@built
def test_a_loss_that_was_called_can_be_copied_and_pickled():
    logits, target = batch()
    loss = lossforge.BEF()
    value = loss(logits, target)
    for again in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss)), loss.with_policy()):
        assert torch.equal(again(logits, target), value)


@built
def test_a_copy_of_a_loss_takes_its_polynomials(monkeypatch):
    logits, target = batch(dtype=torch.float32)
    loss = lossforge.BEF(beta=-1.2345)
    value = loss(logits, target)
    monkeypatch.setattr(positive, "_powers", lambda *_: pytest.fail("shortened again"))
    assert torch.equal(copy.deepcopy(loss)(logits, target), value)


@built
def test_modes_see_torch_operations():
    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.add(func.overloadpacket.__name__)
            return func(*args, **(kwargs or {}))

    seen: set[str] = set()
    logits, target = batch()
    with Names():
        lossforge.BEF()(logits, target)
    assert "exp" in seen


@pytest.mark.parametrize("shape", [(0, 5), (3, 1), (1, 2)])
def test_small_batches(shape):
    logits = torch.randn(shape, requires_grad=True)
    target = torch.zeros(shape[0], dtype=torch.int64)
    value = lossforge.BEF()(logits, target)
    value.backward()
    assert value.isnan() == (shape[0] == 0)
    assert logits.grad.shape == shape


@pytest.mark.slow
def test_without_a_compiler_the_package_is_built_without_the_kernel(tmp_path):
    if not (ROOT / "setup.py").exists():
        pytest.skip("no checkout")
    shutil.copytree(
        ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("_rows*", "*.egg*")
    )
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, tmp_path)
    env = {**os.environ, "CC": "/nowhere/cc"}
    build = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    done = subprocess.run(build, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    script = "import lossforge; print(lossforge.kernels.describe())"
    env = {**os.environ, "PYTHONPATH": str(tmp_path / "src")}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)
    assert done.stdout == "composed\n"


@built
@pytest.mark.parametrize("name", ["CE", "BEF", "NCE"])
def test_a_compiled_graph_has_no_break(name):
    logits, target = batch()
    loss = lossforge.make(name)
    graph = torch.compile(loss, fullgraph=True, backend="eager")
    assert_close(graph(logits, target), loss(logits, target))


@built
def test_a_member_that_computes_otherwise_is_not_passed_over():
    logits, target = batch()
    loss = 0.5 * lossforge.GCE() + 0.5 * lossforge.MAE()
    loss(logits, target)  # a kernel is chosen
    with pytest.raises(AttributeError, match="fixed"):
        loss.members[0] = lossforge.BEF()
    loss.members[0].from_scores = lambda scores, target: scores.values[:, 0]
    expected = 0.5 * logits[:, 0].mean() + 0.5 * lossforge.MAE()(logits, target)
    assert_close(loss(logits, target), expected)

    class Other(lossforge.base.Log):
        def value(self, at):
            return 2 * super().value(at)

    truncated = lossforge.constructions.NormalisedNegative(lossforge.base.Truncated(Other(), 1e-7))
    assert not chosen(truncated)


@built
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
def test_tangents_are_not_lost():
    logits, target = batch()
    with forward_ad.dual_level(), pytest.raises(NotImplementedError):
        lossforge.BEF()(forward_ad.make_dual(logits.detach(), torch.ones_like(logits)), target)


@built
@pytest.mark.parametrize("name", ["BEF", "NCE"])
def test_a_masked_label_has_the_same_gradient_with_and_without_a_graph(name):
    loss = lossforge.make(name, reduction="none")
    logits, target = batch()
    logits = logits.detach().clone()
    logits[0, target[0]] = -math.inf
    logits.requires_grad_()
    values = loss(logits, target)
    plain, graph = (
        torch.autograd.grad(values.sum(), logits, create_graph=kept, retain_graph=True)[0]
        for kept in (False, True)
    )
    assert_close(plain, graph)


@built
def test_what_changes_after_the_call_is_noticed_or_does_not_matter():
    logits, target = batch()
    doubled, label = logits * 2, target.clone()
    expected = torch.autograd.grad(lossforge.BEF()(logits * 2, target), logits)[0]
    value = lossforge.BEF()(doubled, label)
    doubled.detach().zero_()
    assert_close(torch.autograd.grad(value, logits, retain_graph=True)[0], expected)
    with pytest.raises(RuntimeError, match="changed in place"):
        torch.autograd.grad(value, logits, create_graph=True)
    label.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(value, logits)


@built
def test_tensors_whose_memory_is_not_what_they_stand_for():
    logits, target = batch()
    negative = torch._neg_view(logits.detach())
    assert_close(lossforge.BEF()(negative, target), lossforge.BEF()(-logits.detach(), target))
    zeros = torch._efficientzerotensor((6, 5))
    expected = lossforge.BEF()(torch.zeros(6, 5), target)
    assert_close(lossforge.BEF()(zeros, target), expected)


@built
def test_a_transform_of_something_else_is_no_obstacle():
    logits, target = batch()
    scaled = torch.func.grad(lambda w: w * lossforge.BEF()(logits, target))
    assert_close(scaled(torch.ones(())), lossforge.BEF()(logits, target))


@built
@pytest.mark.parametrize("name", ["BEF", "NCE", "JAL-CE", *ALONE])
@pytest.mark.parametrize("label", [0, 1])
def test_gaps_that_overflow_and_rows_without_a_class(name, label):
    loss = lossforge.parse(name).with_policy(reduction="none")
    target = torch.tensor([label, 0])
    logits = torch.tensor([[3e38, -3e38, 0.0], [-math.inf] * 3], dtype=torch.float32)
    values, gradient = value_and_gradient(loss, logits, target)
    with kernels.composed():
        composed, expected = value_and_gradient(loss, logits, target)
    if label == 0:
        assert_close(values, composed, equal_nan=True)
        assert_close(gradient[0], expected[0])
    assert_close(values[1], composed[1], equal_nan=True)
    assert gradient[1].isnan().all()
    assert expected[1].isnan().all()


@built
def test_a_weight_may_be_a_parameter():
    logits, target = batch()
    loss = lossforge.BEF()
    loss.weight = torch.nn.Parameter(torch.ones(5))
    assert_close(loss(logits, target), lossforge.BEF()(logits, target))


@built
def test_a_block_of_torch_operations_is_one_of_its_thread():
    seen = []
    inside, leave = threading.Event(), threading.Event()

    def other():
        with kernels.composed():
            inside.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(60)
    seen.append(kernels.is_on())
    leave.set()
    thread.join()
    assert [*seen, kernels.is_on()] == [True, True]


@built
def test_a_library_of_another_layout_is_not_used(monkeypatch):
    native.library.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(native, "LAYOUT", -1)
        assert native.library() is None
        native.library.cache_clear()
    assert native.library() is not None
