"""`LinearLoss` is the loss of the logits of a linear layer, without holding all of them."""

import copy
import itertools
import math
import pickle

import pytest
import torch
from cases import OVER_CONSTRUCTIONS, named
from laws import assert_close, assert_identical
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import lossforge
from lossforge import BEF, CE, LinearLoss

N, D, V = 11, 4, 5
REDUCTIONS = ["mean", "sum", "none"]
POLICIES = {
    "none": {},
    "weight": {"weight": torch.linspace(0.5, 2, V, dtype=torch.float64)},
    "smoothing": {"label_smoothing": 0.2},
    "ignored-class": {"ignore_index": 2},
    "all": {
        "weight": torch.linspace(0.5, 2, V, dtype=torch.float64),
        "label_smoothing": 0.2,
        "ignore_index": 2,
    },
}


def layer(n=N, d=D, v=V, dtype=torch.float64, bias=True):
    """Hidden rows, weight and bias that want gradients, and labels."""
    inputs = [torch.randn(n, d), torch.randn(v, d), torch.randn(v) if bias else None]
    inputs = [None if x is None else x.to(dtype).requires_grad_() for x in inputs]
    return inputs, torch.randint(v, (n,))


def plain(loss, hidden, weight, target, bias=None):
    """What it stands for: all logits, class axis where the loss wants it."""
    logits = F.linear(hidden, weight, bias)
    return loss(logits.movedim(-1, 1) if logits.dim() > 2 else logits, target)


def gradients(value, inputs):
    """Those of a scalar or, with different factors, of values."""
    factor = torch.linspace(-1, 2, value.numel()).view(value.shape).to(value.dtype)
    return torch.autograd.grad(value, [x for x in inputs if x is not None], factor)


def assert_same(criterion, loss, inputs, target, dtype=torch.float64):
    hidden, weight, bias = inputs
    found, expected = (
        criterion(hidden, weight, target, bias),
        plain(loss, hidden, weight, target, bias),
    )
    assert found.shape == expected.shape
    assert_close(found, expected, dtype)
    for mine, theirs in zip(gradients(found, inputs), gradients(expected, inputs), strict=True):
        assert_close(mine, theirs, dtype)


@OVER_CONSTRUCTIONS
def test_every_loss_has_the_value_and_the_gradients_of_the_plain_path(case):
    inputs, target = layer()
    if case.entry == "GJS":  # takes several views, and its case is no loss
        with pytest.raises(ValueError, match="input must hold 2 views"):
            LinearLoss(case.make().loss)(inputs[0], inputs[1], target)
        return
    target[3] = -100
    assert_same(LinearLoss(case.make(), chunk=3), case.make(), inputs, target)


@pytest.mark.parametrize("case", named("CE", "BEF", "BQF", "BEF-parameters"), ids=lambda c: c.id)
def test_gradients_are_those_of_the_definition(case):
    """Row by row, from naive formulas: W^T g, the sum of g x^T and the sum of g."""
    (hidden, weight, bias), target = layer()
    expected = [torch.zeros_like(x) for x in (hidden, weight, bias)]
    value = torch.zeros(())
    for i, t in enumerate(target.tolist()):
        z = torch.stack([sum(w * x for w, x in zip(weight[c], hidden[i], strict=True)) + bias[c]
                         for c in range(V)]).detach()  # fmt: skip
        g = case.closed_form_gradient(z, t)
        value += case.naive(z, t) / N
        for c in range(V):
            expected[0][i] += g[c] * weight[c] / N
            expected[1][c] += g[c] * hidden[i] / N
            expected[2][c] += g[c] / N
    found = LinearLoss(case.make(), chunk=2)(hidden, weight, target, bias)
    torch.testing.assert_close(found, value, rtol=1e-8, atol=1e-9)
    for mine, theirs in zip(torch.autograd.grad(found, (hidden, weight, bias)), expected,
                            strict=True):  # fmt: skip
        torch.testing.assert_close(mine, theirs.detach(), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no-bias"])
@pytest.mark.parametrize("chunk", [1, 4, N, 100, None])
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES.keys())
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_policy_and_chunks(reduction, policy, chunk, bias):
    inputs, target = layer(bias=bias)
    target[:3] = torch.tensor([policy.get("ignore_index", -100), 2, 1])
    for make in (CE, BEF):
        loss = make(reduction=reduction, **policy)
        assert_same(LinearLoss(loss, chunk=chunk), loss, inputs, target)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_cross_entropy_is_torchs(reduction):
    (hidden, weight, bias), target = layer()
    target[4] = -100
    scale = torch.linspace(0.5, 2, V)
    options = {"weight": scale, "label_smoothing": 0.1, "reduction": reduction}
    found = LinearLoss(CE(**options), chunk=3)(hidden, weight, target, bias)
    expected = F.cross_entropy(F.linear(hidden, weight, bias), target, **options)
    assert_close(found, expected)
    inputs = (hidden, weight, bias)
    for mine, theirs in zip(gradients(found, inputs), gradients(expected, inputs), strict=True):
        assert_close(mine, theirs)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", [(), (6,), (2, 3), (2, 1, 3), (0,), (2, 0)], ids=str)
def test_leading_axes(shape, reduction):
    (_, weight, bias), _ = layer()
    hidden, target = torch.randn(*shape, D, requires_grad=True), torch.randint(V, shape)
    loss = BEF(reduction=reduction)
    found = LinearLoss(loss, chunk=4)(hidden, weight, target, bias)
    flat = plain(loss, hidden.reshape(-1, D), weight, target.reshape(-1), bias)
    assert_close(found, flat.view(shape) if reduction == "none" else flat)
    inputs = (hidden, weight, bias)
    for mine, theirs in zip(gradients(found, inputs), gradients(flat, inputs), strict=True):
        assert_close(mine, theirs)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("n", [0, 5], ids=["empty", "all-ignored"])
def test_nothing_kept_is_what_cross_entropy_makes_of_it(n, reduction):
    inputs, _ = layer(n)
    target = torch.full((n,), -100)
    criterion = LinearLoss(CE(reduction=reduction), chunk=2)
    found = criterion(inputs[0], inputs[1], target, inputs[2])
    logits = F.linear(inputs[0], inputs[1], inputs[2]).detach()
    assert_identical(found.detach(), F.cross_entropy(logits, target, reduction=reduction))
    assert math.isnan(found.detach()) if reduction == "mean" else found.sum() == 0
    for gradient, x in zip(gradients(found, inputs), inputs, strict=True):
        assert_identical(gradient, torch.zeros_like(x))


@pytest.mark.parametrize("poison", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_ignored_rows_have_no_gradient_whatever_they_hold(reduction, poison):
    inputs, target = layer()
    target[[0, 5]] = -100
    loss = BEF(reduction=reduction)
    clean = gradients(LinearLoss(loss, chunk=3)(inputs[0], inputs[1], target, inputs[2]), inputs)
    with torch.no_grad():
        inputs[0][[0, 5], 1] = poison
    value = LinearLoss(loss, chunk=3)(inputs[0], inputs[1], target, inputs[2])
    found = gradients(value, inputs)
    for mine, theirs in zip(found, clean, strict=True):
        assert_identical(mine, theirs)
    assert_identical(found[0][[0, 5]], torch.zeros(2, D))


@pytest.mark.parametrize("which", list(itertools.product([True, False], repeat=3)), ids=str)
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_gradients_only_for_what_wants_them(reduction, which):
    inputs, target = layer()
    inputs = [x.detach().requires_grad_(wanted) for x, wanted in zip(inputs, which, strict=True)]
    loss = BEF(reduction=reduction)
    found = LinearLoss(loss, chunk=4)(inputs[0], inputs[1], target, inputs[2])
    assert found.requires_grad == any(which)
    if not any(which):
        return
    wanted = [x for x in inputs if x.requires_grad]
    expected = gradients(plain(loss, inputs[0], inputs[1], target, inputs[2]), wanted)
    for mine, theirs in zip(gradients(found, wanted), expected, strict=True):
        assert_close(mine, theirs)


class Watch(TorchDispatchMode):
    """The operators that are called, and the most elements any result owns."""

    def __init__(self):
        super().__init__()
        self.largest, self.called = 0, set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        self.called.add(function.overloadpacket.__name__)
        for x in tree_leaves(result):
            if isinstance(x, torch.Tensor):
                size = x.untyped_storage().nbytes() // x.element_size()
                self.largest = max(self.largest, size)
        return result


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("make", [CE, BEF], ids=["CE", "BEF"])
def test_no_tensor_has_the_size_of_all_logits(make, reduction):
    n, d, v, chunk = 64, 4, 100, 4
    inputs, target = layer(n, d, v)
    loss = make(reduction=reduction)
    with Watch() as watch:
        value = LinearLoss(loss, chunk=chunk)(inputs[0], inputs[1], target, inputs[2])
        gradients(value, inputs)
    assert watch.largest == max(chunk * v, v * d)
    with Watch() as watch:
        gradients(plain(loss, inputs[0], inputs[1], target, inputs[2]), inputs)
    assert watch.largest >= n * v


def test_a_chunk_is_bounded_by_default():
    inputs, target = layer(600, 2, 60_000)
    with Watch() as watch:
        LinearLoss(CE())(inputs[0], inputs[1], target, inputs[2]).backward()
    assert 2**23 < watch.largest <= 2**24


def test_without_gradients_none_are_computed():
    inputs, target = layer()
    criterion = LinearLoss(BEF(), chunk=4)
    hidden, weight, bias = inputs
    with torch.no_grad(), Watch() as watch:
        found = criterion(hidden, weight, target, bias)
    assert not watch.called & {"mm", "addmm_", "zeros_like"}
    with Watch() as watch:
        expected = criterion(hidden, weight, target, bias)
    assert {"mm", "addmm_", "zeros_like"} <= watch.called
    assert_identical(found, expected.detach())
    with torch.inference_mode():
        assert_identical(criterion(hidden, weight, target, bias), found)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_half_precision_is_raised_before_the_loss(reduction, dtype):
    (hidden, weight, bias), target = layer(dtype=dtype)
    loss = BEF(reduction=reduction, weight=torch.linspace(0.5, 2, V, dtype=torch.float32))
    found = LinearLoss(loss, chunk=4)(hidden, weight, target, bias)
    expected = loss(F.linear(hidden, weight, bias).float(), target)
    assert found.dtype == torch.float32
    assert_close(found, expected, torch.float32)
    inputs = (hidden, weight, bias)
    for mine, theirs in zip(gradients(found, inputs), gradients(expected, inputs), strict=True):
        assert mine.dtype == dtype
        scale = theirs.float().abs().max()
        assert_close(mine.float() / scale, theirs.float() / scale, torch.bfloat16)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_sums_over_chunks_are_in_float32(dtype):
    """In the dtype itself a sum of equal numbers ends at 256 of them, or at 2,048."""
    n = 1000 if dtype == torch.bfloat16 else 4000
    hidden, weight = torch.ones(n, 1, dtype=dtype), torch.zeros(2, 1, dtype=dtype)
    bias = torch.zeros(2, dtype=dtype)
    target = torch.zeros(n, dtype=torch.long)
    for x in (weight, bias):
        x.requires_grad_()
    value = LinearLoss(CE(reduction="sum"), chunk=1)(hidden, weight, target, bias)
    assert value.item() == pytest.approx(n * math.log(2), rel=1e-6)
    value.backward()
    expected = torch.tensor([-n / 2, n / 2])
    assert_close(weight.grad.view(2), expected, dtype)
    assert_close(bias.grad, expected, dtype)


def test_small_gradients_in_float16_survive_until_they_are_scaled():
    """A mean over many rows, as a gradient scaler sees it."""
    hidden = torch.full((4096, 1), 1e-3, dtype=torch.float16, requires_grad=True)
    weight = torch.zeros(2, 1, dtype=torch.float16) + 1e-3
    target = torch.zeros(4096, dtype=torch.long)
    value = LinearLoss(CE(), chunk=512)(hidden, weight.requires_grad_(), target)
    (value * 65536).backward()
    expected = 65536 * 1e-3 * torch.tensor([-0.5, 0.5])
    torch.testing.assert_close(weight.grad.view(2).double(), expected, rtol=1e-3, atol=0)


@pytest.mark.parametrize("half_weights", [False, True], ids=["float32", "half"])
def test_class_weights_may_be_in_half_precision_where_logits_are(half_weights):
    (hidden, weight, bias), target = layer(dtype=torch.bfloat16)
    scale = torch.tensor([0.5, 1, 2, 4, 1], dtype=torch.bfloat16)
    loss = CE(weight=scale if half_weights else scale.float())
    expected = CE(weight=scale.float())(F.linear(hidden, weight, bias).float(), target)
    assert_close(LinearLoss(loss)(hidden, weight, target, bias), expected, torch.float32)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_autocast_is_obeyed_as_by_a_linear_layer(reduction, dtype):
    inputs, target = layer(dtype=dtype)
    hidden, weight, bias = inputs
    loss = BEF(reduction=reduction)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = LinearLoss(loss, chunk=3)(hidden, weight, target, bias)
        expected = plain(loss, hidden, weight, target, bias)
    assert found.dtype == expected.dtype
    assert_close(found, expected, found.dtype)
    for mine, theirs, x in zip(
        gradients(found, inputs), gradients(expected, inputs), inputs, strict=True
    ):
        assert mine.dtype == x.dtype
        scale = theirs.abs().max()
        assert_close(mine / scale, theirs / scale, torch.bfloat16)


def test_autocast_does_not_keep_a_cast_without_gradient():
    head, hidden = nn.Linear(D, V, dtype=torch.float32), torch.randn(N, D, dtype=torch.float32)
    target = torch.randint(V, (N,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        LinearLoss(CE())(hidden, head.weight, target, head.bias)
        head(hidden).sum().backward()
    assert head.weight.grad.abs().sum() > 0


def test_gradients_accumulate_and_a_kept_graph_gives_them_again():
    inputs, target = layer()
    value = 3 * LinearLoss(BEF(), chunk=4)(inputs[0], inputs[1], target, inputs[2])
    once = torch.autograd.grad(value, inputs, retain_graph=True)
    value.backward(retain_graph=True)
    value.backward()
    for x, gradient in zip(inputs, once, strict=True):
        assert_identical(x.grad, 2 * gradient)


def test_a_tied_weight_gets_both_gradients():
    embedding = torch.randn(V, D, requires_grad=True)
    words, target = torch.randint(V, (N,)), torch.randint(V, (N,))
    found = LinearLoss(BEF(), chunk=2)(embedding[words], embedding, target)
    expected = plain(BEF(), embedding[words], embedding, target)
    assert_close(*(torch.autograd.grad(value, embedding)[0] for value in (found, expected)))


def test_a_loss_with_extreme_logits_stays_finite():
    inputs, target = layer(dtype=torch.float32)
    with torch.no_grad():
        inputs[1] *= 1e4
    assert_same(LinearLoss(BEF(), chunk=3), BEF(), inputs, target, torch.float32)


def test_the_reduction_may_be_set_and_the_original_loss_is_left_alone():
    (hidden, weight, bias), target = layer()
    loss = CE(reduction="sum")
    criterion = LinearLoss(loss)
    criterion.reduction = "none"
    assert criterion(hidden, weight, target, bias).shape == (N,)
    assert loss.reduction == "sum"
    criterion.reduction = "median"
    with pytest.raises(ValueError, match="reduction must be one of none, mean, sum, got 'median'"):
        criterion(hidden, weight, target, bias)
    criterion.reduction, criterion.loss.reduction = "sum", "mean"
    with pytest.raises(ValueError, match="inner loss 'none', got 'mean'"):
        criterion(hidden, weight, target, bias)


def test_it_is_a_module_with_the_class_weights_of_its_loss():
    (hidden, weight, bias), target = layer()
    criterion = LinearLoss(BEF(weight=torch.rand(V)), chunk=7)
    assert list(criterion.state_dict()) == ["loss.weight"]
    assert criterion.float().loss.weight.dtype == torch.float32
    criterion.double()
    expected = criterion(hidden, weight, target, bias)
    for again in (pickle.loads(pickle.dumps(criterion)), copy.deepcopy(criterion)):
        assert_identical(again(hidden, weight, target, bias), expected)
    assert "chunk=7" in repr(criterion)
    assert lossforge.LinearLoss is LinearLoss


def test_second_derivatives_are_refused():
    inputs, target = layer()
    for reduction in REDUCTIONS:
        criterion = LinearLoss(CE(reduction=reduction))
        value = criterion(inputs[0], inputs[1], target, inputs[2]).sum()
        with pytest.raises(NotImplementedError, match="create_graph must be False"):
            torch.autograd.grad(value, inputs[0], create_graph=True)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")  # forward mode scripts
def test_function_transforms_are_refused():
    (hidden, weight, bias), target = layer()
    criterion = LinearLoss(CE())
    for transform in (torch.func.grad, torch.func.vmap):
        with pytest.raises(NotImplementedError, match=r"use loss\(F.linear"):
            transform(lambda x: criterion(x, weight, target, bias))(hidden)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(hidden.detach(), torch.ones_like(hidden))
        with pytest.raises(NotImplementedError):
            criterion(dual, weight.detach(), target)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_compiled_code_calls_it_outside_of_its_graphs():
    inputs, target = layer()
    hidden, weight, bias = inputs
    criterion = LinearLoss(BEF(), chunk=4)

    def step(hidden, weight, bias):
        return 3 * criterion(2 * hidden, weight, target, bias)

    torch.compiler.reset()
    found = torch.compile(step, backend="eager")(hidden, weight, bias)
    expected = step(hidden, weight, bias)
    assert_close(found, expected)
    for mine, theirs in zip(gradients(found, inputs), gradients(expected, inputs), strict=True):
        assert_close(mine, theirs)
    criterion.loss.compile(backend="eager")
    assert_close(step(hidden, weight, bias), expected)


class Learnt(lossforge.Loss):
    """A loss with a parameter."""

    def __init__(self):
        super().__init__()
        self.factor = nn.Parameter(torch.ones(()))

    def per_sample(self, logits, target):
        return self.factor * F.cross_entropy(logits, target, reduction="none")


REFUSED = {
    "probabilities": ({"target": torch.full((2, 5), 0.2)}, TypeError, "probabilities are as large"),
    "shape": ({"target": torch.zeros(3, dtype=torch.long)}, ValueError, "hidden without d"),
    "axes": ({"target": torch.zeros(2, 1, dtype=torch.long)}, ValueError, "hidden without d"),
    "label": ({"target": torch.tensor([0, 5])}, IndexError, r"\[0, 5\) or ignore_index.*got 5"),
    "int32": ({"target": torch.tensor([0, 1]).int()}, RuntimeError, "class indices"),
    "no-tensor": ({"target": [0, 1]}, TypeError, "target must be a tensor, got list"),
    "width": ({"hidden": torch.zeros(2, 3)}, ValueError, r"weight must be \(V, d\)"),
    "scalar": ({"hidden": torch.tensor(1.0)}, ValueError, r"weight must be \(V, d\)"),
    "integers": ({"hidden": torch.zeros(2, 4).long()}, NotImplementedError, "floating-point"),
    "weight": ({"weight": torch.zeros(4)}, ValueError, r"weight must be \(V, d\)"),
    "bias": ({"bias": torch.zeros(4)}, ValueError, r"bias must be \(V\)"),
    "weight-dtype": ({"weight": torch.zeros(5, 4).half()}, RuntimeError, "dtype of hidden"),
    "bias-dtype": ({"bias": torch.zeros(5).half()}, RuntimeError, "dtype of hidden"),
    "device": ({"target": torch.zeros(2, device="meta").long()}, RuntimeError, "on the device of"),
}


@pytest.mark.parametrize(("change", "error", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_refusals(change, error, message):
    given = {"hidden": torch.zeros(2, 4), "weight": torch.zeros(5, 4), "target": torch.zeros(2)}
    given["target"] = given["target"].long()
    with pytest.raises(error, match=message):
        LinearLoss(CE())(**given | change)


def test_what_cannot_be_right_is_refused_when_it_is_made_or_called():
    (hidden, weight, _), target = layer()
    with pytest.raises(TypeError, match="loss must be a lossforge loss"):
        LinearLoss(nn.CrossEntropyLoss())
    with pytest.raises(ValueError, match="chunk must be an integer of 1 or more, got 0"):
        LinearLoss(CE(), chunk=0)
    with pytest.raises(RuntimeError, match="one entry for each of the 5 classes"):
        LinearLoss(CE(weight=torch.ones(4)))(hidden, weight, target)
    with pytest.raises(RuntimeError, match="weight must have the dtype of input"):
        LinearLoss(CE(weight=torch.ones(V).float()))(hidden, weight, target)
    with pytest.raises(ValueError, match="nothing to learn"):
        LinearLoss(Learnt())(hidden, weight, target)
