"""Which of two losses counts is a question for each row: masked classes are no rivals."""

import copy
import math
import pickle

import pytest
import torch
from cases import named
from laws import assert_close
from torch import Tensor

import lossforge
from lossforge import BEF, BQF, CE, BinaryReduction, base, kernels
from lossforge.constructions import BoundedCosine, ByRivals
from lossforge.kernels import triton_rows
from lossforge.loss import Loss, shortcut

OURS = {case.id: case for case in named("BEF", "BQF")}
LEFT = [3, 150, 151, 170]  # classes that are not masked
F1 = base.Exponential(-8, -1, 0.5)
INNER = 2.0 * BoundedCosine(rivals=20)
NESTED = ByRivals(ByRivals(BinaryReduction(F1), INNER, most=30), CE(), most=90)


def masked(left: list[int], classes: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Logits with this many classes left in each row, at random places, and labels among them."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(len(left), classes, generator=generator, dtype=torch.float64)
    target = torch.empty(len(left), dtype=torch.int64)
    for row, count in enumerate(left):
        order = torch.randperm(classes, generator=generator)
        logits[row, order[count:]] = -math.inf
        target[row] = order[0]
    return logits, target


def value_and_gradient(loss: Loss, logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    logits = logits.clone().requires_grad_()
    values = loss.with_policy(reduction="none")(logits, target)
    return values.detach(), torch.autograd.grad(values.sum(), logits)[0]


@pytest.fixture(params=["kernel", "composed"])
def path(request):
    if request.param == "kernel":
        yield
        return
    with kernels.composed():
        yield


@pytest.mark.parametrize("case", OURS.values(), ids=OURS)
def test_a_row_has_the_loss_of_its_remaining_classes(case, path):
    logits, target = masked(LEFT, 170)
    values, gradient = value_and_gradient(case.make(), logits, target)
    for row, label in enumerate(target.tolist()):
        kept = logits[row] > -math.inf
        left, place = logits[row][kept], int(kept[:label].sum())
        assert_close(values[row], case.naive(left, place))
        assert_close(gradient[row][kept], case.closed_form_gradient(left, place))
        assert not gradient[row][~kept].any()


@pytest.mark.parametrize("loss", [BEF(), BQF(), NESTED], ids=["BEF", "BQF", "nested"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_kernel_is_the_composed_path(loss, dtype):
    logits, target = masked([2, 30, 31, 32, 90, 91, 92, 140, 149, 150, 151, 170], 170)
    logits = logits.to(dtype)
    found = value_and_gradient(loss, logits, target)
    with kernels.composed():
        expected = value_and_gradient(loss, logits, target)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.skipif(not kernels.is_built(), reason="the kernel is not built")
def test_the_kernel_covers_both_sides():
    for classes in (150, 151, 1000):
        assert shortcut._kernel_of(BEF(), classes, torch.float32) is not None
    assert BEF().fused(150) == BEF(mu=0.1).fused(150)


def test_triton_leaves_rows_that_differ_to_torch():
    assert triton_rows.covered(BEF().fused(150))
    assert not triton_rows.covered(BEF().fused(151))
    both = ByRivals(BinaryReduction(F1), 2 * BinaryReduction(F1), most=3)
    assert triton_rows.covered(both.fused(4))
    assert not triton_rows.covered(both.fused(5))


@pytest.mark.parametrize("case", OURS.values(), ids=OURS)
def test_soft_targets_and_smoothing_are_the_expected_loss(case):
    z, q = torch.randn(151, dtype=torch.float64), torch.zeros(151, dtype=torch.float64)
    q[:4] = torch.tensor([0.1, 0.2, 0.3, 0.4])
    loss = case.make()
    assert_close(loss(z[None], q[None]), sum(q[label] * case.naive(z, label) for label in range(4)))
    each = loss.with_policy(reduction="none")(z.expand(151, 151), torch.arange(151))
    smoothed = loss.with_policy(label_smoothing=0.1)(z[None], torch.tensor([3]))
    assert_close(smoothed, 0.9 * each[3] + 0.1 * each.mean())
    spread = torch.softmax(z.flip(0), 0)
    assert_close(loss(z[None], spread[None]), spread @ each)
    few, given = z[None, :150], torch.softmax(z[None, :150].flip(1), 1)
    assert torch.equal(loss(few, given), lossforge.make(case.id, mu=0.1)(few, given))


@pytest.mark.parametrize("case", OURS.values(), ids=OURS)
def test_given_probabilities_are_all_counted(case):
    u = torch.softmax(torch.randn(151, dtype=torch.float64), 0)
    assert_close(case.make().from_probs(u[None], torch.tensor([4])), case.naive_of_probs(u, 4))


@pytest.mark.parametrize("loss", [BEF(), NESTED], ids=["BEF", "nested"])
def test_a_map_over_rows_is_the_batch(loss):
    logits, target = masked([30, 31, 32, 90, 150, 151, 160], 160)
    each = torch.vmap(lambda z, t: loss(z[None], t[None]))(logits, target)
    assert_close(each, loss.with_policy(reduction="none")(logits, target))


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_a_compiled_loss_decides_row_by_row(name, path):
    torch.compiler.reset()
    loss = lossforge.make(name, reduction="none")
    logits, target = masked([2, 149, 150, 151, 160], 160)
    compiled = torch.compile(loss, fullgraph=True)
    logits = logits.requires_grad_()
    values = compiled(logits, target)
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    wanted = value_and_gradient(loss, logits.detach(), target)
    assert_close(values.detach(), wanted[0])
    assert_close(gradient, wanted[1])


@pytest.mark.parametrize("classes", [40, 151, 300])
def test_the_scale_of_one_part_is_that_of_all(classes):
    logits, target = masked([classes] * 5, classes)
    for whole, half in ((BEF(), BEF(alpha=-4)), (BQF(), BQF(alpha=3.5, beta=-4))):
        assert_close(2 * half(logits, target), whole(logits, target))


@pytest.mark.parametrize("make", [BEF, BQF])
def test_a_given_mu_is_of_binary_reduction_at_any_number_of_classes(make):
    logits, target = masked([150, 151, 300], 300)
    (lam, separated), (mu, reduced) = make(mu=0.3).terms
    assert (mu, type(reduced)) == (0.3, BinaryReduction)
    expected = lam * separated(logits, target) + mu * reduced(logits, target)
    assert_close(make(mu=0.3)(logits, target), expected)


@pytest.mark.parametrize("loss", [2 * BEF(), NESTED], ids=["BEF", "nested"])
def test_the_text_reads_as_the_same_loss(loss):
    again = lossforge.parse(str(loss))
    assert str(again) == str(loss)
    logits, target = masked([30, 31, 32, 90, 150, 151, 160], 160)
    for copied in (again, pickle.loads(pickle.dumps(loss)), copy.deepcopy(loss)):
        assert torch.equal(copied(logits, target), loss(logits, target))


def test_a_masked_label_is_infinite_and_teaches_nothing(path):
    logits, target = masked([150, 151], 160)
    logits[torch.arange(2), target] = -math.inf
    values, gradient = value_and_gradient(BEF(), logits, target)
    assert values.tolist() == [math.inf, math.inf]
    assert not gradient.any()


def test_the_parts_are_those_of_the_loss_that_counts():
    (few,), (many,) = (BEF().terms[1][1].parts(classes) for classes in (150, 151))
    assert (few.role, few.factor) == ("pairs", 0.1)
    assert (many.role, many.factor) == ("cosine", pytest.approx(2 * 2.4 * math.sqrt(150 / 149)))
    assert ByRivals(CE(), lossforge.LDR(), most=2).parts(5) == ()
