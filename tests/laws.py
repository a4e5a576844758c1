"""Tolerances per dtype, and assertions that several test files share."""

import functools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

TOLERANCE = {
    torch.float64: {"rtol": 1e-11, "atol": 1e-12},
    torch.float32: {"rtol": 1e-5, "atol": 1e-6},
    torch.bfloat16: {"rtol": 2**-8, "atol": 2**-8},
    torch.float16: {"rtol": 2**-10, "atol": 2**-11},
}


# What a case may declare to break by its nature; the test of that law must then fail.
LAWS = frozenset(
    {
        "shift",  # a constant added to the logits changes nothing
        "gradient-sum",  # the gradient sums to zero over the classes
        "permutation",  # permuting the classes permutes the gradient
        "gradcheck",  # the gradient is the derivative of the value
        "gradgradcheck",  # the second derivative is that of the gradient
        "ties",  # also where all logits are equal
        "floor",  # the least value is at the correct one-hot
        "mask",  # masked classes equal the loss on the remaining classes
        "masked-target",  # a masked target costs infinity
        "single-class",  # a single class costs no more than the floor
        "from-probs",  # probabilities may stand in for logits
        "text",  # the text parses back
    }
)


def law(name: str, failure: type[Exception] | tuple[type[Exception], ...] = AssertionError):
    """A test over cases that must fail for those which declare to break the law."""
    assert name in LAWS

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(*args, **kwargs) -> None:
            if name not in kwargs["case"].breaks:
                return test(*args, **kwargs)
            with pytest.raises(failure):
                test(*args, **kwargs)
            return None

        return run

    return decorate


def assert_close(actual: Tensor, expected: Tensor, dtype: torch.dtype = torch.float64) -> None:
    """Equal within the tolerance of the dtype; NaN equals NaN."""
    torch.testing.assert_close(
        actual.to(torch.float64),
        expected.to(torch.float64),
        equal_nan=True,
        **TOLERANCE[dtype],
    )


def assert_identical(actual: Tensor, expected: Tensor) -> None:
    """Equal in every bit; NaN equals NaN."""
    torch.testing.assert_close(actual, expected, equal_nan=True, rtol=0, atol=0)


def value_and_gradient(loss: Callable[[Tensor], Tensor], logits: Tensor) -> tuple[Tensor, Tensor]:
    """The detached value and the gradient of its sum with respect to the logits."""
    logits = logits.detach().clone().requires_grad_()
    value = loss(logits)
    (gradient,) = torch.autograd.grad(value.sum(), logits)
    return value.detach(), gradient


def rows(f: Callable[[Tensor, int], Tensor], logits: Tensor, target: Tensor) -> Tensor:
    """A naive loss, sample by sample."""
    return torch.stack([f(z, int(t)) for z, t in zip(logits, target, strict=True)])


def ulp(x: Tensor, dtype: torch.dtype) -> Tensor:
    """The spacing of dtype at x, at least that of its subnormals."""
    info = torch.finfo(dtype)
    exponent = torch.floor(torch.log2(x.abs().clamp_min(info.tiny)))
    return torch.exp2(exponent) * info.eps


def batch(n: int = 6, k: int = 5, scale: float = 2.0) -> tuple[Tensor, Tensor]:
    """Random logits (n, k) and labels (n,)."""
    return scale * torch.randn(n, k), torch.randint(k, (n,))
