"""Sums and multiples of losses, and the text that parses back."""

import pytest
import torch
from bases import ids
from cases import CASES, Case
from laws import assert_close, batch, law, value_and_gradient

import lossforge
from lossforge import BEF, BQF, CE, BinaryReduction, TargetSeparation, base, parse
from lossforge.errors import SpecError
from lossforge.loss import WeightedSum

A = TargetSeparation(base.Exponential(alpha=-8, beta=-8), tau=1)
B = BinaryReduction(base.Quadratic(alpha=12, beta=-8))


def assert_same(first: lossforge.Loss, second: lossforge.Loss) -> None:
    z, t = batch()
    for actual, expected in zip(
        value_and_gradient(lambda x: first(x, t), z),
        value_and_gradient(lambda x: second(x, t), z),
        strict=True,
    ):
        assert_close(actual, expected)


LINEAR = {
    "sum": (A + B, 1, 1),
    "difference": (A - B, 1, -1),
    "multiples": (0.9 * A + 0.1 * B, 0.9, 0.1),
    "right-multiples": (A * 0.9 + B * 2, 0.9, 2),
    "quotient": ((A + B) / 4, 0.25, 0.25),
    "negative": (-A + B, -1, 1),
    "negative-sum": (-(2 * A - B), -2, 1),
    "nested": (0.5 * (A + 2 * (B - 3 * A)) + B, -2.5, 2),
    "sum-of-list": (sum([A, B, A]), 2, 1),
    "integer": (2 * A + 0 * B, 2, 0),
}


@pytest.mark.parametrize(("loss", "a", "b"), LINEAR.values(), ids=LINEAR.keys())
def test_value_and_gradient_are_linear(loss, a: float, b: float) -> None:
    z, t = batch()
    va, ga = value_and_gradient(lambda x: A(x, t), z)
    vb, gb = value_and_gradient(lambda x: B(x, t), z)
    value, gradient = value_and_gradient(lambda x: loss(x, t), z)
    assert_close(value, a * va + b * vb)
    assert_close(gradient, a * ga + b * gb)
    q = torch.rand(6, 5)
    assert_close(loss(z, q), a * A(z, q) + b * B(z, q))


def test_addition_commutes_and_associates() -> None:
    assert_same(A + B, B + A)
    assert_same((A + B) + CE(), A + (B + CE()))
    assert_same(2 * A, A * 2)


def test_nested_sums_flatten_with_multiplied_coefficients() -> None:
    loss = 0.5 * (CE() + 2 * BEF()) - 4 * A
    assert isinstance(loss, WeightedSum)
    coefficients = [coefficient for coefficient, _ in loss.terms]
    assert coefficients == pytest.approx([0.5, 0.9, 1.0, -4.0], rel=1e-15)
    assert isinstance(loss.terms, tuple)
    assert not any(isinstance(term, WeightedSum) for _, term in loss.terms)


@pytest.mark.parametrize("make", [BEF, BQF])
def test_named_sums_are_weighted_sums_of_a_separation_and_a_reduction(make) -> None:
    loss = make(lam=0.7, mu=0.3)
    assert isinstance(loss, WeightedSum)
    (lam, first), (mu, second) = loss.terms
    assert (lam, mu) == (0.7, 0.3)
    assert isinstance(first, TargetSeparation)
    assert isinstance(second, BinaryReduction)


def test_operands_are_unchanged() -> None:
    loss = BEF()
    before = str(loss)
    _ = 3 * loss + loss - A
    assert str(loss) == before


@pytest.mark.parametrize("factor", [torch.tensor(2.0), "2", None, [1.0], 1j, A], ids=repr)
def test_only_plain_numbers_multiply(factor) -> None:
    with pytest.raises(TypeError):
        factor * A
    with pytest.raises(TypeError):
        A * factor


@pytest.mark.parametrize(
    "other", [torch.tensor(2.0), "CE", 1.0, torch.nn.CrossEntropyLoss()], ids=repr
)
def test_only_losses_add(other) -> None:
    with pytest.raises(TypeError):
        A + other
    with pytest.raises(TypeError):
        other + A


@pytest.mark.parametrize("factor", [float("nan"), float("inf")], ids=repr)
def test_coefficients_are_finite(factor: float) -> None:
    with pytest.raises(ValueError, match=str(factor)):
        factor * A


def test_division_by_zero_is_refused() -> None:
    with pytest.raises((ZeroDivisionError, ValueError)):
        A / 0


def test_policy_belongs_to_the_sum() -> None:
    z, t = batch()
    loss = (A + B).with_policy(ignore_index=2, reduction="none")
    assert loss(z, t).shape == (6,)
    assert (loss(z, t)[t == 2] == 0).all()


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
@law("text", SpecError)
def test_text_parses_back_to_the_same_loss(case: Case) -> None:
    loss = case.make()
    assert_same(parse(str(loss)), loss)
    assert str(parse(str(loss))) == str(loss)
    assert repr(loss) == str(loss)


def test_xi_survives_the_text() -> None:
    loss = BinaryReduction(base.Linear(), xi=0.25)
    probs, t = torch.tensor([[0.0, 0.0, 1.0]]), torch.tensor([0])
    assert_close(parse(str(loss)).from_probs(probs, t), loss.from_probs(probs, t))


def test_repr_shows_the_policy() -> None:
    text = repr(BEF(reduction="sum"))
    assert str(BEF()) in text
    assert text.endswith(".with_policy(reduction='sum')")
    assert repr(A.with_policy(ignore_index=255)).endswith(".with_policy(ignore_index=255)")


def test_numbers_in_the_text_keep_every_digit() -> None:
    loss = TargetSeparation(base.Exponential(beta=-1 / 3, gamma=0.1 + 0.2), tau=1 / 7)
    z, t = batch()
    assert torch.equal(parse(str(loss))(z, t), loss(z, t))


TEXTS = {
    "CE": CE(),
    "ce": CE(),
    "BEF": BEF(),
    "bef()": BEF(),
    "BEF(tau=2)": BEF(tau=2),
    "TS(log, tau=1, a=0.2)": TargetSeparation(base.Log(), tau=1, a=0.2),
    "BQF(lam=0.5, mu=0.5)": BQF(lam=0.5, mu=0.5),
    "TS(exponential(beta=-8), tau=1)": TargetSeparation(base.Exponential(beta=-8), tau=1),
    "ts(EXPONENTIAL(beta=-8), a=1e-3)": TargetSeparation(base.Exponential(beta=-8), a=1e-3),
    "BR(linear)": BinaryReduction(base.Linear()),
    "BR(power(q=0.7))": BinaryReduction(base.Power(0.7)),
    "TS(log, tau=0.5)": TargetSeparation(base.Log(), tau=0.5),
    "-2.5e-1 * BR(linear) + 3*CE": -0.25 * BinaryReduction(base.Linear()) + 3 * CE(),
    "CE - 0.5*BR(linear)": CE() - 0.5 * BinaryReduction(base.Linear()),
    "0.5*(CE + 2*BEF)": 0.5 * (CE() + 2 * BEF()),
    "0.9*TS(exponential(alpha=-8, beta=-8, gamma=0.5), tau=1) + 0.1*BR(exponential(beta=-8))": (
        0.9 * TargetSeparation(base.Exponential(alpha=-8, beta=-8, gamma=0.5), tau=1)
        + 0.1 * BinaryReduction(base.Exponential(beta=-8))
    ),
}


@pytest.mark.parametrize(("text", "loss"), TEXTS.items(), ids=TEXTS.keys())
def test_text_means_the_loss(text: str, loss: lossforge.Loss) -> None:
    assert_same(parse(text), loss)


MALFORMED = {
    "empty": ("", None),
    "import": ("__import__('os').system('true')", None),
    "call-import": ("__import__('os')", None),
    "attribute": ("CE.forward", None),
    "attribute-of-base": ("BR(base.Linear())", None),
    "lambda": ("BR(from_derivative(lambda x: -x))", None),
    "comprehension": ("[CE for _ in 'ab']", None),
    "unknown-loss": ("CEE", "BEF.*CE|CE.*BEF"),
    "unknown-base": ("BR(exponentail)", "exponential"),
    "wrong-keyword": ("BR(exponential(delta=1))", "delta"),
    "missing-tau": ("TS(exponential)", "tau"),
    "text-value": ("BR(power(q='0.7'))", None),
    "product-of-losses": ("CE*CE", None),
    "sum-with-number": ("CE + 1", None),
    "number": ("3", None),
    "base-alone": ("exponential", None),
    "loss-as-base": ("BR(CE)", None),
    "base-missing": ("BR()", "base"),
    "power-operator": ("2**3*CE", None),
    "division-by-zero": ("CE/0", None),
    "overflow": ("1e999*CE", None),
    "unclosed": ("BR(linear", None),
    "statement": ("x = 1", None),
    "two": ("CE; CE", None),
    "starred": ("BEF(**{})", None),
    "deep": ("(" * 5000 + "CE" + ")" * 5000, None),
}


@pytest.mark.parametrize(("text", "words"), MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_text_is_refused(text: str, words: str | None) -> None:
    with pytest.raises(SpecError, match=words):
        parse(text)


def test_parameter_out_of_range_in_the_text_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="alpha"):
        parse("BR(exponential(alpha=1))")


def test_parse_takes_text_only() -> None:
    with pytest.raises((TypeError, SpecError)):
        parse(3.0)
    assert issubclass(SpecError, ValueError)
