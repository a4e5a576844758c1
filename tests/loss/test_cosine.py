"""The bounded cosine: range, limits, relative accuracy, probabilities of 0."""

import math

import naive
import pytest
import torch
from laws import assert_close, batch, rows, value_and_gradient

from lossforge import parse
from lossforge.constructions import BoundedCosine

EACH = BoundedCosine(reduction="none")


@pytest.mark.parametrize("k", [2, 3, 1000])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0, 1e4])
def test_value_and_gradient_match_the_definition(k: int, scale: float) -> None:
    z, t = batch(k=k, scale=scale)
    value, gradient = value_and_gradient(lambda x: EACH(x, t), z)
    assert_close(value, rows(naive.bounded_cosine, z, t))
    assert_close(gradient, rows(naive.bounded_cosine_gradient, z, t))


def test_values_lie_between_0_and_2() -> None:
    towards = torch.eye(4)[:1] * torch.logspace(-2, 6, 40)[:, None]
    label = torch.zeros(40, dtype=torch.long)
    for z, end in ((towards, 0.0), (-towards, 2.0)):
        values = EACH(z, label)
        assert (values > 0).all()
        assert (values < 2).all()
        assert_close(values[-1], torch.tensor(end))


def test_equal_logits_cost_1_with_no_curvature() -> None:
    hessian = torch.func.jacrev(torch.func.jacrev(BoundedCosine()))
    assert EACH(torch.zeros(1, 5), torch.tensor([2])) == 1
    assert_close(hessian(torch.zeros(5), torch.tensor(2)), torch.zeros(5, 5))


@pytest.mark.parametrize("k", [2, 3, 20])
def test_the_norm_of_the_hessian_has_its_bound(k: int) -> None:
    hessian = torch.func.jacrev(torch.func.jacrev(BoundedCosine()))
    for scale in (0.1, 0.4, 1.0, 5.0):
        z, t = batch(n=5, k=k, scale=scale)
        length = (z - z.mean(1, keepdim=True)).norm(dim=1)
        bound = 6 * math.sqrt(k / (k - 1)) * length / (1 + length**2) ** 1.5
        norms = torch.linalg.matrix_norm(torch.vmap(hessian)(z, t), 2)
        assert (norms <= bound).all()


def confident(margin: float, k: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    z, t = batch(n=64, k=k, scale=0.3)
    return (z + margin * torch.nn.functional.one_hot(t, k)).float(), t


@pytest.mark.parametrize("margin", [3.0, -3.0, 300.0, -300.0, 3e4, -3e4])
def test_float32_is_relatively_accurate(margin: float) -> None:
    z, t = confident(margin)
    value, gradient = value_and_gradient(lambda x: EACH(x, t), z)
    exact, slopes = value_and_gradient(lambda x: EACH(x, t), z.double())
    torch.testing.assert_close(value.double(), exact, rtol=1e-6, atol=0)
    own = t[:, None]
    torch.testing.assert_close(
        gradient.gather(1, own).double(), slopes.gather(1, own), rtol=3e-6, atol=0
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("soft", [False, True], ids=["index", "probabilities"])
def test_the_largest_logits_there_are_leave_nothing_infinite(
    dtype: torch.dtype, soft: bool
) -> None:
    most = torch.finfo(dtype).max
    z = torch.tensor([[most, -most, most], [-most, most, 0], [most] * 3], dtype=dtype)
    t = torch.rand(3, 3, dtype=dtype) if soft else torch.tensor([0, 0, 1])
    value, gradient = value_and_gradient(lambda x: EACH(x, t), z)
    assert value.isfinite().all()
    assert gradient.isfinite().all()
    if not soft:
        unit = torch.tensor([[1, -1, 1], [-1, 1, 0], [1, 1, 1]], dtype=dtype)
        assert_close(value, EACH(1e9 * unit, t), torch.float32)


@pytest.mark.parametrize("zeros", [[0], [2], [0, 1], [1, 2, 3], [0, 2, 3]], ids=str)
def test_probabilities_of_0_are_the_limit_as_they_vanish_together(zeros: list[int]) -> None:
    u = torch.softmax(torch.randn(4), 0)
    u[zeros] = 0
    u /= u.sum()
    z = u.log()
    # a finite part beside logits of -1e300 does not count
    z[zeros] = -1e300
    for label in range(4):
        t = torch.tensor([label])
        value, gradient = value_and_gradient(lambda p, t=t: EACH.from_probs(p, t), u[None])
        assert_close(value, EACH(z[None], t))
        assert (gradient == 0).all()
    q = torch.rand(1, 4)
    assert_close(EACH.from_probs(u[None], q), EACH(z[None], q))


def test_a_single_class_costs_nothing_but_nan_if_it_is() -> None:
    z, t = torch.tensor([[0.3], [torch.nan], [torch.inf]]), torch.zeros(3, dtype=torch.long)
    for target in (t, torch.ones(3, 1)):
        assert EACH(z, target)[0] == 0
        assert EACH(z, target)[1:].isnan().all()


@pytest.mark.parametrize("k", [2, 4, 40])
def test_the_sum_over_labels_is_the_number_of_classes_times_the_factor(k: int) -> None:
    z = 7 * torch.randn(k)
    loss = BoundedCosine(rivals=4, reduction="sum")
    total = loss(z.expand(k, k), torch.arange(k))
    assert_close(total, torch.tensor(k * max(1, math.sqrt((k - 1) / 4))))


@pytest.mark.parametrize("text", ["bounded_cosine()", "bounded_cosine(rivals=149)"])
def test_the_text_is_that_of_the_loss(text: str) -> None:
    assert str(parse(text)) == text
    assert isinstance(parse(text), BoundedCosine)


@pytest.mark.parametrize("rivals", [0, -3, 2.5, "many"])
def test_rivals_must_be_a_positive_integer(rivals: object) -> None:
    with pytest.raises((TypeError, ValueError), match="rivals"):
        BoundedCosine(rivals=rivals)  # type: ignore[arg-type]
