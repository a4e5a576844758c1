"""The policy is that of torch's cross entropy, settled by CE over the product of its arguments."""

import itertools

import pytest
import torch
from cases import OVER_CONSTRUCTIONS, Case, named
from laws import assert_close, law, value_and_gradient
from torch import Tensor
from torch.nn.functional import cross_entropy

from lossforge import BEF, CE

SHAPES = [(5,), (6, 5), (4, 5, 3), (2, 5, 3, 4), (0, 5), (2, 5, 0)]
IGNORED = {"none": -100, "some": -100, "all": -100, "some-2": 2, "some-255": 255}
REDUCTIONS = ["mean", "sum", "none"]
COMBINATIONS = list(itertools.product([False, True], [0.0, 0.1, 1.0], REDUCTIONS))
COMBINATION_IDS = [
    f"{'weighted' if weighted else 'plain'}-eps{eps}-{reduction}"
    for weighted, eps, reduction in COMBINATIONS
]
OVER_SHAPES = pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
OVER_POLICIES = pytest.mark.parametrize(
    ("weighted", "eps", "reduction"), COMBINATIONS, ids=COMBINATION_IDS
)
DTYPES = [torch.bfloat16, torch.float16, torch.float32, torch.float64]


def labels(shape: tuple[int, ...], ignored: str) -> Tensor:
    spatial = shape[:1] + shape[2:] if len(shape) > 1 else ()
    t = torch.randint(5, spatial)
    if ignored.startswith("some") and ignored != "some-2":
        t = torch.where(torch.rand(spatial) < 0.4, IGNORED[ignored], t)
    return torch.full_like(t, -100) if ignored == "all" else t


def assert_equals_torch(z: Tensor, t: Tensor, **policy) -> None:
    expected = value_and_gradient(lambda x: cross_entropy(x, t, **policy), z)
    actual = value_and_gradient(lambda x: CE(**policy)(x, t), z)
    assert actual[0].shape == expected[0].shape
    assert actual[0].dtype == expected[0].dtype
    assert_close(actual[0], expected[0])
    assert_close(actual[1], expected[1])


@OVER_SHAPES
@pytest.mark.parametrize("ignored", IGNORED)
@OVER_POLICIES
def test_index_targets_equal_torch(shape, ignored, weighted, eps, reduction) -> None:
    weight = torch.rand(5) + 0.1 if weighted else None
    assert_equals_torch(
        torch.randn(shape),
        labels(shape, ignored),
        weight=weight,
        ignore_index=IGNORED[ignored],
        label_smoothing=eps,
        reduction=reduction,
    )


@OVER_SHAPES
@OVER_POLICIES
def test_probability_targets_equal_torch(shape, weighted, eps, reduction) -> None:
    weight = torch.rand(5) + 0.1 if weighted else None
    q = torch.rand(shape)
    policy = {"weight": weight, "label_smoothing": eps, "reduction": reduction}
    assert_equals_torch(torch.randn(shape), q, **policy)


@pytest.mark.parametrize("eps", [0.0, 0.2])
def test_gradient_with_respect_to_probability_targets_equals_torch(eps: float) -> None:
    z, weight = torch.randn(6, 5), torch.rand(5)
    q = torch.softmax(torch.randn(6, 5), 1)
    policy = {"weight": weight, "label_smoothing": eps}
    _, expected = value_and_gradient(lambda y: cross_entropy(z, y, **policy), q)
    _, actual = value_and_gradient(lambda y: CE(**policy)(z, y), q)
    assert_close(actual, expected)


@OVER_CONSTRUCTIONS
def test_gradient_with_respect_to_probability_targets_is_the_loss_per_class(case: Case) -> None:
    z, q = torch.randn(3, 4), torch.softmax(torch.randn(3, 4), 1)
    loss = case.make(4).with_policy(reduction="none")
    _, gradient = value_and_gradient(lambda y: loss(z, y), q)
    expected = [[case.naive(row, c) for c in range(4)] for row in z]
    assert_close(gradient, torch.tensor(expected))


@pytest.mark.parametrize("case", named("CE", "BEF", "BR-f1", "TS-f1-tau3"), ids=lambda c: c.id)
def test_weighted_mean_divides_by_the_kept_weights(case: Case) -> None:
    z, t, w = torch.randn(4, 3), torch.tensor([0, 2, -100, 1]), torch.tensor([1.0, 2.0, 5.0])
    values = torch.stack(
        [
            case.naive(row, int(c)) if c >= 0 else row.new_zeros(())
            for row, c in zip(z, t, strict=True)
        ]
    )
    expected = (values[0] + 5 * values[1] + 2 * values[3]) / 8
    assert_close(case.make().with_policy(weight=w)(z, t), expected)


@pytest.mark.parametrize("case", named("CE", "BEF", "BR-f1", "TS-f1-tau3"), ids=lambda c: c.id)
def test_weighted_probability_targets_divide_by_the_number_of_rows(case: Case) -> None:
    z, q, w = torch.randn(2, 3), torch.rand(2, 3), torch.tensor([1.0, 2.0, 5.0])
    expected = sum(w[c] * q[i, c] * case.naive(z[i], c) for i in range(2) for c in range(3)) / 2
    assert_close(case.make().with_policy(weight=w)(z, q), expected)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("make", [CE, BEF], ids=["CE", "BEF"])
def test_output_has_the_dtype_of_the_input(make, dtype: torch.dtype, reduction: str) -> None:
    z, t = torch.randn(6, 5).to(dtype).requires_grad_(), torch.randint(5, (6,))
    value = make(reduction=reduction)(z, t)
    value.sum().backward()
    assert value.dtype == z.grad.dtype == dtype
    if make is CE:
        assert_close(value, cross_entropy(z.double(), t, reduction=reduction), dtype)


@pytest.mark.parametrize("target", DTYPES, ids=str)
@pytest.mark.parametrize("input", DTYPES, ids=str)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_probability_targets_promote_as_in_torch(input, target, weighted) -> None:
    z, q = torch.randn(6, 5).to(input), torch.softmax(torch.randn(6, 5), 1).to(target)
    weight = torch.rand(5, dtype=torch.float32) if weighted else None
    expected = cross_entropy(z, q, weight=weight)
    for loss in (CE(weight=weight), BEF(weight=weight)):
        assert loss(z, q).dtype == expected.dtype


@pytest.mark.parametrize("input", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("kind", ["index", "probabilities"])
def test_autocast_dtype_is_torchs(input: torch.dtype, kind: str) -> None:
    z, weight = torch.randn(6, 5).to(input), torch.rand(5, dtype=torch.float32)
    t = torch.randint(5, (6,)) if kind == "index" else torch.rand(6, 5).to(input)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = cross_entropy(z, t)
        assert CE()(z, t).dtype == BEF()(z, t).dtype == expected.dtype
        if input != torch.float64:
            weighted = cross_entropy(z, t, weight=weight)
            assert_close(CE(weight=weight)(z, t), weighted, torch.float32)


def test_byte_labels_are_accepted() -> None:
    z, t = torch.randn(6, 5), torch.randint(5, (6,))
    assert torch.equal(BEF()(z, t.to(torch.uint8)), BEF()(z, t))
    assert_equals_torch(z, t.to(torch.uint8), ignore_index=2)


def test_unbatched_label_may_have_one_element() -> None:
    z = torch.randn(5)
    expected = cross_entropy(z, torch.tensor([3]))
    assert_close(CE()(z, torch.tensor([3])), expected)


def test_single_class_is_certain() -> None:
    assert CE()(torch.randn(4, 1), torch.zeros(4, dtype=torch.long)) == 0


def test_arguments_may_be_not_contiguous() -> None:
    z, t = torch.randn(3, 5, 4).transpose(1, 2).transpose(1, 2), torch.randint(5, (4, 3)).T
    assert_equals_torch(z, t)
    assert_equals_torch(torch.randn(5, 6).T, torch.randint(5, (12,))[::2])


@OVER_CONSTRUCTIONS
def test_reduction_may_change_after_construction(case: Case) -> None:
    z, t = torch.randn(6, 5), torch.randint(5, (6,))
    loss = case.make()
    mean = loss(z, t)
    loss.reduction = "none"
    assert loss(z, t).shape == (6,)
    assert_close(loss(z, t).mean(), mean)
    loss.reduction = "sum"
    assert_close(loss(z, t), 6 * mean)


def test_ignore_index_and_smoothing_may_change_after_construction() -> None:
    z, t = torch.randn(6, 5), torch.tensor([0, 1, 2, 3, 4, 2])
    loss = CE()
    loss.ignore_index, loss.label_smoothing = 2, 0.3
    assert_close(loss(z, t), cross_entropy(z, t, ignore_index=2, label_smoothing=0.3))


def test_weight_is_a_buffer() -> None:
    weight = torch.rand(5)
    loss = BEF(weight=weight)
    assert list(loss.state_dict()) == ["weight"]
    assert torch.equal(loss.state_dict()["weight"], weight)
    assert BEF().weight is None
    assert not list(loss.parameters())


def test_with_policy_makes_a_copy() -> None:
    loss = BEF()
    twin = loss.with_policy(reduction="sum", ignore_index=255, label_smoothing=0.1)
    assert (loss.reduction, loss.ignore_index, loss.label_smoothing) == ("mean", -100, 0.0)
    assert (twin.reduction, twin.ignore_index, twin.label_smoothing) == ("sum", 255, 0.1)
    assert type(twin) is type(loss)
    z, t = torch.randn(6, 5), torch.randint(5, (6,))
    direct = BEF(reduction="sum", ignore_index=255, label_smoothing=0.1)
    assert_close(twin(z, t), direct(z, t))


@OVER_CONSTRUCTIONS
def test_nothing_kept_is_nan_for_the_mean_and_zero_for_the_sum(case: Case) -> None:
    z, t = torch.randn(3, 5), torch.full((3,), -100)
    loss = case.make()
    assert loss(z, t).isnan()
    assert loss.with_policy(reduction="sum")(z, t) == 0
    assert torch.equal(loss.with_policy(reduction="none")(z, t), torch.zeros(3))
    assert loss(z[:0], t[:0]).isnan()


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_masked_classes_do_what_torch_does(reduction: str) -> None:
    z = torch.randn(4, 5)
    z[0, 1], z[1, 2], z[2, 0] = -torch.inf, -torch.inf, -torch.inf
    t = torch.tensor([0, 2, -100, 3])  # the second target is masked
    loss = CE(reduction=reduction)
    assert_close(loss(z, t), cross_entropy(z, t, reduction=reduction))
    q = torch.softmax(torch.randn(4, 5), 1)
    assert_close(loss(z, q), cross_entropy(z, q, reduction=reduction))
    eps = CE(reduction=reduction, label_smoothing=0.1)
    assert_close(eps(z, t), cross_entropy(z, t, reduction=reduction, label_smoothing=0.1))


@OVER_CONSTRUCTIONS
@law("masked-target")
def test_masked_target_is_infinite_and_masked_probabilities_are_not_finite(case: Case) -> None:
    z = torch.tensor([[0.3, -torch.inf, 1.0]])
    loss = case.make(3)
    assert loss(z, torch.tensor([1])) == torch.inf
    assert not torch.isfinite(loss(z, torch.tensor([[0.5, 0.25, 0.25]])))
