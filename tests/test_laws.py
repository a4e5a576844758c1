"""Laws every loss obeys, over the list of cases: value, gradient, invariance, shapes."""

import copy
import pickle
from typing import Any

import naive
import pytest
import torch
from bases import ids
from cases import CASES, OVER_CASES, OVER_CONSTRUCTIONS, Case
from laws import assert_close, assert_identical, batch, law, rows, value_and_gradient
from torch.autograd import gradcheck, gradgradcheck
from torch.autograd.gradcheck import GradcheckError
from torch.func import grad, jacrev, vmap

from lossforge import CE
from lossforge.loss import Loss

SMOOTH = [case for case in CASES if case.smooth]
BOUNDED = [case for case in CASES if case.bounded]
CLOSED = [case for case in CASES if case.has_closed_form_gradient]


@OVER_CASES
@pytest.mark.parametrize("k", [2, 3, 10])
def test_value_matches_naive_formula(case: Case, k: int) -> None:
    z, t = batch(k=k)
    loss = case.make(k).with_policy(reduction="none")
    assert_close(loss(z, t), rows(case.naive, z, t))


@OVER_CASES
def test_soft_target_value_is_the_expected_loss(case: Case) -> None:
    z, _ = batch()
    q = torch.rand(6, 5)  # need not sum to one, as for cross entropy
    loss = case.make().with_policy(reduction="none")
    expected = torch.stack([naive.expected(case.naive, a, b) for a, b in zip(z, q, strict=True)])
    assert_close(loss(z, q), expected)


@OVER_CASES
def test_soft_target_gradient_matches_autograd_of_naive_formula(case: Case) -> None:
    z, _ = batch(n=3, k=4)
    q = torch.softmax(torch.randn(3, 4), 1)
    q[0] = torch.tensor([0.0, 1.0, 0.0, 0.0])

    def expected(x):
        return torch.stack([naive.expected(case.naive, a, b) for a, b in zip(x, q, strict=True)])

    loss = case.make(4).with_policy(reduction="sum")
    assert_close(value_and_gradient(lambda x: loss(x, q), z)[1], value_and_gradient(expected, z)[1])


@OVER_CONSTRUCTIONS
def test_label_smoothing_is_the_smoothed_target(case: Case) -> None:
    z, t = batch()
    q = 0.8 * torch.nn.functional.one_hot(t, 5) + 0.2 / 5
    smoothed = case.make().with_policy(label_smoothing=0.2)(z, t)
    expected = sum(naive.expected(case.naive, a, b) for a, b in zip(z, q, strict=True)) / len(z)
    assert_close(smoothed, expected)


@OVER_CASES
@pytest.mark.parametrize("k", [2, 5])
def test_gradient_matches_autograd_of_naive_formula(case: Case, k: int) -> None:
    z, t = batch(k=k)
    loss = case.make(k).with_policy(reduction="none")
    _, actual = value_and_gradient(lambda x: loss(x, t), z)
    _, expected = value_and_gradient(lambda x: rows(case.naive, x, t), z)
    assert_close(actual, expected)


@pytest.mark.parametrize("case", CLOSED, ids=ids(CLOSED))
def test_gradient_matches_closed_form(case: Case) -> None:
    z, t = batch(k=7)
    loss = case.make(7).with_policy(reduction="none")
    _, actual = value_and_gradient(lambda x: loss(x, t), z)
    assert_close(actual, rows(case.closed_form_gradient, z, t))


@OVER_CASES
@law("gradcheck", GradcheckError)
def test_gradcheck(case: Case) -> None:
    z, t = batch(n=2, k=4, scale=1.0)
    loss = case.make(4).with_policy(reduction="none")
    assert gradcheck(lambda x: loss(x, t), z.requires_grad_())


@pytest.mark.parametrize("case", SMOOTH, ids=ids(SMOOTH))
@law("gradgradcheck", GradcheckError)
def test_gradgradcheck(case: Case) -> None:
    z, t = batch(n=2, k=3, scale=1.0)
    loss = case.make(3)
    assert gradgradcheck(lambda x: loss(x, t), z.requires_grad_())


@pytest.mark.parametrize("case", SMOOTH, ids=ids(SMOOTH))
@law("ties", GradcheckError)
def test_gradgradcheck_at_ties(case: Case) -> None:
    z, t = batch(n=2, k=3, scale=0.0)
    loss = case.make(3)
    assert gradgradcheck(lambda x: loss(x, t), z.requires_grad_())


@pytest.mark.parametrize("case", BOUNDED, ids=ids(BOUNDED))
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@law("floor")
def test_bounded_loss_is_least_at_the_correct_one_hot(case: Case, dtype: torch.dtype) -> None:
    margin = torch.linspace(5, 120, 300, dtype=dtype)
    t = torch.randint(5, (300,))
    noise = torch.randn(300, 5).to(dtype)
    z = noise + margin[:, None] * torch.nn.functional.one_hot(t, 5)
    loss = case.make().with_policy(reduction="none")
    floor = case.floor(5)
    rounding = 8 * torch.finfo(dtype).eps * abs(floor)  # none where the floor is zero
    assert (loss(z, t) >= floor - rounding).all()
    at_one_hot = loss(1e4 * torch.eye(5, dtype=dtype), torch.arange(5))
    assert ((at_one_hot - floor).abs() <= rounding).all()


@OVER_CASES
@law("shift")
def test_value_is_invariant_to_a_constant_added_to_the_logits(case: Case) -> None:
    z, t = batch()
    loss = case.make()
    for actual, expected in zip(
        value_and_gradient(lambda x: loss(x, t), z + 37.5),
        value_and_gradient(lambda x: loss(x, t), z),
        strict=True,
    ):
        assert_close(actual, expected)


@OVER_CASES
@law("gradient-sum")
def test_gradient_sums_to_zero_over_classes(case: Case) -> None:
    z, t = batch(n=50, k=20)
    loss = case.make(20).with_policy(reduction="sum")
    _, gradient = value_and_gradient(lambda x: loss(x, t), z)
    assert gradient.abs().max() > 1e-3
    assert_close(gradient.sum(1), torch.zeros(50))


@OVER_CASES
@law("permutation")
def test_permuting_classes_permutes_the_gradient(case: Case) -> None:
    z, t = batch()
    loss = case.make().with_policy(reduction="none")
    order = torch.tensor([3, 0, 4, 1, 2])
    value, gradient = value_and_gradient(lambda x: loss(x, t), z)
    permuted_value, permuted = value_and_gradient(
        lambda x: loss(x, order.argsort()[t]), z[:, order]
    )
    assert_close(permuted_value, value)
    assert_close(permuted, gradient[:, order])


@OVER_CONSTRUCTIONS
def test_batch_equals_loop_over_samples(case: Case) -> None:
    z, t = batch()
    loss = case.make().with_policy(reduction="none")
    assert_close(loss(z, t), torch.stack([loss(a, b) for a, b in zip(z, t, strict=True)]))
    assert_close(loss.per_sample(z, t), loss(z, t))


@OVER_CONSTRUCTIONS
@pytest.mark.parametrize("soft", [False, True], ids=["index", "probabilities"])
def test_dense_shape_equals_flattened(case: Case, soft: bool) -> None:
    z = torch.randn(2, 5, 3, 4)
    t = torch.rand(2, 5, 3, 4) if soft else torch.randint(5, (2, 3, 4))
    loss = case.make().with_policy(reduction="none")
    flat_z = z.movedim(1, -1).reshape(-1, 5)
    flat_t = t.movedim(1, -1).reshape(-1, 5) if soft else t.reshape(-1)
    assert_close(loss(z, t), loss(flat_z, flat_t).reshape(2, 3, 4))


@OVER_CONSTRUCTIONS
def test_ignored_rows_have_zero_gradient_and_do_not_count(case: Case) -> None:
    z, t = batch()
    ignored = torch.tensor([True, False, False, True, False, False])
    loss = case.make().with_policy(ignore_index=255)
    value, gradient = value_and_gradient(lambda x: loss(x, t.where(~ignored, 255)), z)
    kept_value, kept = value_and_gradient(lambda x: loss(x, t[~ignored]), z[~ignored])
    assert_close(value, kept_value)
    assert_close(gradient[~ignored], kept)
    assert (gradient[ignored] == 0).all()


POISON = {"masked": -torch.inf, "infinite": torch.inf, "nan": torch.nan}
POLICIES = {
    "plain": {},
    "weighted": {"weight": torch.tensor([0.5, 2.0, 1.0, 0.0, 3.0], dtype=torch.float64)},
    "smoothed": {"label_smoothing": 0.2},
}


@OVER_CASES
@pytest.mark.parametrize("poison", POISON.values(), ids=POISON.keys())
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES.keys())
def test_an_ignored_row_counts_for_nothing_whatever_its_logits(
    case: Case, poison: float, policy: dict
) -> None:
    z, t = batch(n=12)
    ignored = torch.arange(12) % 3 != 1
    z[~ignored] = z[~ignored].masked_fill(torch.rand(4, 5) < 0.2, -torch.inf)
    z[ignored] = z[ignored].masked_fill(torch.rand(8, 5) < 0.5, poison)
    z[0], z[2, 0] = poison, poison  # a whole row, and the class that stands in for the label
    t = t.where(~ignored, -100)
    blank = z.where(~ignored[:, None], 0.0)
    for reduction in ("none", "sum", "mean"):
        loss = case.make().with_policy(reduction=reduction, **policy)
        value, gradient = value_and_gradient(lambda x, loss=loss: loss(x, t), z)
        expected, slope = value_and_gradient(lambda x, loss=loss: loss(x, t), blank)
        alone, kept = value_and_gradient(lambda x, loss=loss: loss(x, t[~ignored]), z[~ignored])
        assert torch.equal(gradient[ignored], torch.zeros(8, 5))
        assert_identical(gradient, slope)
        assert_identical(value, expected)
        assert_close(gradient[~ignored], kept)
        assert_close(value[~ignored] if reduction == "none" else value, alone)


@OVER_CONSTRUCTIONS
@pytest.mark.parametrize("poison", POISON.values(), ids=POISON.keys())
def test_an_ignored_row_counts_for_nothing_under_transforms(case: Case, poison: float) -> None:
    z, t = batch()
    z[::2, 0], t[::2] = poison, -100
    loss = case.make().with_policy(reduction="sum")
    _, expected = value_and_gradient(lambda x: loss(x, t), z)
    gradients = vmap(grad(loss))(z, t)
    assert_close(gradients, expected)
    assert (gradients[::2] == 0).all()
    assert (vmap(jacrev(jacrev(loss)))(z, t)[::2] == 0).all()
    x = z.requires_grad_()
    (gradient,) = torch.autograd.grad(loss(x, t), x, create_graph=True)
    (second,) = torch.autograd.grad(gradient.square().sum(), x)
    assert (second[::2] == 0).all()


@OVER_CONSTRUCTIONS
@law("from-probs", TypeError)
def test_an_ignored_row_of_probabilities_may_hold_anything(case: Case) -> None:
    z, t = batch()
    probs = z.softmax(1)
    probs[0], probs[1], probs[2], t[:3] = 0.0, torch.nan, -3.0, -100
    loss = case.make()
    value, gradient = value_and_gradient(lambda u: loss.from_probs(u, t), probs)
    alone, kept = value_and_gradient(lambda u: loss.from_probs(u, t[3:]), probs[3:])
    assert_close(value, alone)
    assert_close(gradient[3:], kept)
    assert (gradient[:3] == 0).all()


@OVER_CASES
@pytest.mark.parametrize("poison", [torch.inf, torch.nan], ids=["infinite", "nan"])
@pytest.mark.parametrize("soft", [False, True], ids=["index", "probabilities"])
def test_nan_or_an_infinite_logit_gives_nan_as_in_cross_entropy(
    case: Case, poison: float, soft: bool
) -> None:
    z = torch.randn(4, 5)
    z[0, 0], z[1, 1], z[2, [0, 4]] = poison, poison, poison
    t = torch.zeros(4, dtype=torch.long)
    q = torch.nn.functional.one_hot(t, 5).double()
    q[1] = 0.0  # no weight hides them
    loss = case.make().with_policy(reduction="none")
    assert loss(z, q if soft else t).isnan().tolist() == [True, True, True, False]


def _with_a_difference(case: Case) -> list[Any]:
    """The loss, and its difference from another if it is one."""
    loss = case.make()
    return [loss, CE() - 0.5 * loss] if isinstance(loss, Loss) else [loss]


@OVER_CASES
@pytest.mark.parametrize("soft", [False, True], ids=["index", "probabilities"])
def test_a_masked_label_is_infinite_without_nan_in_the_gradient(case: Case, soft: bool) -> None:
    z, t = batch(n=4)
    z[0, [0, 3]], z[1, 0], z[2], t[:3] = -torch.inf, -torch.inf, -torch.inf, 0
    z[2, 4] = 0.3  # the only class left
    q = torch.rand(4, 5)
    for loss in _with_a_difference(case):
        loss = loss.with_policy(reduction="none")
        value, gradient = value_and_gradient(lambda x, f=loss: f(x, q if soft else t), z)
        assert value.isposinf().tolist() == [True, True, True, False]
        assert value[3].isfinite()
        assert not gradient.isnan().any()


@OVER_CASES
@law("mask", (AssertionError, ValueError, RuntimeError))
def test_masked_classes_equal_the_loss_on_the_remaining_classes(case: Case) -> None:
    z, _ = batch(n=3, k=6)
    z[0, [1, 4]], z[1, 0], z[2, [3, 4, 5]] = -torch.inf, -torch.inf, -torch.inf
    t = torch.tensor([2, 5, 0])
    loss = case.make(6).with_policy(reduction="none")
    value, gradient = value_and_gradient(lambda x: loss(x, t), z)
    for i, label in enumerate(t):
        kept = torch.isfinite(z[i])
        target = kept[:label].sum()
        expected, slope = value_and_gradient(lambda x, target=target: loss(x, target), z[i, kept])
        assert_close(value[i], expected)
        assert_close(gradient[i, kept], slope)
        assert (gradient[i, ~kept] == 0).all()


@OVER_CASES
def test_bits_do_not_depend_on_the_default_dtype(case: Case) -> None:
    z, t = batch()
    masked = z.masked_fill(torch.rand(6, 5) < 0.2, -torch.inf)
    probs = z.softmax(1)
    probs[:4] = torch.tensor([0.0, 0.0, 0.75, 0.0, 0.25])
    calls: list[tuple[torch.Tensor, torch.Tensor, dict[str, Any]]] = [
        (z, t, {}),
        (masked, t, {"weight": torch.rand(5), "ignore_index": 1}),
        (z, t, {"label_smoothing": 0.1, "reduction": "mean"}),
        (masked, torch.rand(6, 5), {}),
    ]

    def bits(dtype: torch.dtype) -> list[torch.Tensor]:
        torch.set_default_dtype(dtype)
        loss = case.make().with_policy(reduction="none")
        pairs = [
            value_and_gradient(lambda x, a=a: loss.with_policy(**a[2])(x, a[1]), a[0])
            for a in calls
        ]
        if "from-probs" not in case.breaks:
            pairs += [
                value_and_gradient(lambda u, a=a: loss.from_probs(u, a), probs)
                for a in (t, calls[-1][1])
            ]
        return [tensor for pair in pairs for tensor in pair]

    double, single = bits(torch.float64), bits(torch.float32)
    for one, other in zip(double, single, strict=True):
        assert_identical(one, other)


@OVER_CASES
def test_symmetric_exactly_if_it_claims_to_be(case: Case) -> None:
    loss = case.make().with_policy(reduction="sum")
    sums = torch.stack([loss(z.expand(5, 5), torch.arange(5)) for z in 2 * torch.randn(20, 5)])
    spread = (sums.max() - sums.min()) / case.scale
    assert spread < 1e-12 if case.symmetric else spread > 1e-3


@OVER_CONSTRUCTIONS
def test_pickle_and_deepcopy_keep_value_and_policy(case: Case) -> None:
    z, t = batch()
    loss = case.make().with_policy(weight=torch.rand(5), label_smoothing=0.1, ignore_index=2)
    for twin in (pickle.loads(pickle.dumps(loss)), copy.deepcopy(loss)):
        assert torch.equal(twin(z, t), loss(z, t))


@OVER_CONSTRUCTIONS
def test_weight_follows_the_module(case: Case) -> None:
    z, t = batch()
    loss = case.make().with_policy(weight=torch.rand(5))
    expected = loss(z, t)
    loss = loss.to(torch.float32)
    assert loss.weight.dtype == torch.float32
    assert_close(loss(z.float(), t), expected, torch.float32)
    assert loss.to("meta").weight.device.type == "meta"


@OVER_CONSTRUCTIONS
def test_vmap_and_grad_transform_equal_the_batch(case: Case) -> None:
    z, t = batch()
    loss = case.make()
    batched = loss.with_policy(reduction="none")
    value, gradient = value_and_gradient(lambda x: batched(x, t), z)
    assert_close(vmap(loss)(z, t), value)
    assert_close(vmap(grad(loss))(z, t), gradient)


@OVER_CONSTRUCTIONS
def test_hessian_by_jacrev_equals_double_backward(case: Case) -> None:
    z, t = batch(n=3, k=4)
    loss = case.make(4)
    hessians = vmap(jacrev(jacrev(loss)))(z, t)
    for row, label, hessian in zip(z, t, hessians, strict=True):
        x = row.clone().requires_grad_()
        (g,) = torch.autograd.grad(loss(x, label), x, create_graph=True)
        double = torch.stack([torch.autograd.grad(g_i, x, retain_graph=True)[0] for g_i in g])
        assert_close(hessian, double)
        naive_hessian = torch.autograd.functional.hessian(
            lambda y, c=int(label): case.naive(y, c), row
        )
        if case.smooth:
            assert_close(hessian, naive_hessian)


@OVER_CASES
@law("single-class", (AssertionError, ValueError, RuntimeError))
def test_only_class_left_costs_nothing(case: Case) -> None:
    z, floor = torch.tensor([[0.3, -torch.inf, -torch.inf]]), torch.tensor(case.floor(1))
    torch.testing.assert_close(case.make(3)(z, torch.tensor([0])), floor, rtol=1e-15, atol=0)
    alone = case.make(1)(z[:, :1], torch.tensor([0]))
    torch.testing.assert_close(alone, floor, rtol=1e-15, atol=0)


@OVER_CASES
def test_only_class_left_has_no_nan_in_the_gradient(case: Case) -> None:
    z = torch.tensor([[0.3, -torch.inf, -torch.inf]])
    loss = case.make(3)
    _, gradient = value_and_gradient(lambda x: loss(x, torch.tensor([0])), z)
    assert not gradient.isnan().any()
