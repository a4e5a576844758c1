"""What a batch of network outputs says about the classes."""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

from .policy import readable


class Rivalry(NamedTuple):
    """A batch seen from its labels: each row's own class against the others."""

    own: Tensor
    """(N,) score of the labelled class."""
    others: Tensor
    """(N, C) scores with the labelled class removed, that is, set to -inf."""
    share: Tensor
    """(N,) one over the number of rivals, or 1 where there is none."""


class Scores:
    """(N, C) unnormalised log-probabilities: logits, or logarithms of given probabilities.

    A sum of losses hands one `Scores` to all its members, so that what several of them need is
    computed once. A logit of -inf masks its class: it is no rival to any other. A probability of 0
    does not, the class is still counted.

    Args:
        values: The log-weights.
        normalised: Whether they are logarithms of probabilities that a user gave.
        log_probs: Their log-softmax, where it is already known.
        partial: Whether masked classes are left out of expected losses, and not of infinite cost.
        views: Scores of the same samples seen differently, for losses of several views.
    """

    def __init__(
        self,
        values: Tensor,
        *,
        normalised: bool = False,
        log_probs: Tensor | None = None,
        partial: bool = False,
        views: "tuple[Scores, ...]" = (),
    ) -> None:
        self.values = values
        self.normalised = normalised
        self.partial = partial
        self.views = views
        self._log_probs = values if normalised else log_probs
        self._seen: tuple[Tensor, Rivalry] | None = None

    @property
    def logits(self) -> Tensor:
        """The logits, for losses that are not functions of the probabilities."""
        if self.normalised:
            raise TypeError("this loss needs logits: probabilities do not determine it")
        return self.values

    @property
    def log_probs(self) -> Tensor:
        """(N, C) log-softmax, computed once."""
        if self._log_probs is None:
            self._log_probs = torch.log_softmax(self.values, -1)
        return self._log_probs

    def rivals_of(self, target: Tensor) -> Rivalry:
        """The batch seen from the labels `target` (N,), computed once for the same labels."""
        if self._seen is None or self._seen[0] is not target:
            own, others = _Split.apply(self.values, target)  # type: ignore[no-untyped-call]
            share = self._share(_present(others), self.values.shape[1] - 1)
            self._seen = target, Rivalry(own, others, share)
        return self._seen[1]

    def rival_share(self) -> Tensor:
        """(N,) one over the number of rivals, whatever the label."""
        return self._share(_present(self.values) - 1, self.values.shape[1] - 1)

    def class_share(self) -> Tensor:
        """(N,) one over the number of classes."""
        return self._share(_present(self.values), self.values.shape[1])

    def over_classes(self, terms: Tensor) -> Tensor:
        """(N,) sums of terms (N, C) over the classes that are not masked."""
        if self.normalised:
            return terms.sum(-1)
        return torch.where(self.values == -math.inf, 0.0, terms).sum(-1)

    def weighed(self, weights: Tensor, terms: Tensor) -> Tensor:
        """Terms times weights; an infinite term of a given probability 0 counts by its weight 0."""
        product = weights * terms
        if not (self.normalised or self.partial):
            return product
        return torch.where((weights == 0) & ~terms.isnan(), 0.0, product)

    def labelled(self, weights: Tensor) -> Tensor | None:
        """(P, 2) rows and labels of the weights that are not 0, if these are half of all or fewer.

        None also where values cannot be read, where a derivative by the weights is asked for, which
        weights of 0 have too, and where 0 times an infinite loss may be NaN.
        """
        if not (readable(weights) and readable(self.values)):
            return None
        watched = unpack_dual(weights).tangent is not None  # type: ignore[no-untyped-call]
        if weights.requires_grad or watched:
            return None
        few = 2 * int(weights.count_nonzero()) <= weights.numel()
        if few and (self.normalised or self.values.isfinite().all()):
            return weights.nonzero()
        return None

    def _share(self, unmasked: Tensor, given: int) -> Tensor:
        """One over a count of classes: the unmasked of logits, all the given of probabilities."""
        count = torch.full_like(unmasked, given) if self.normalised else unmasked
        # Without a class to count, what is multiplied by the share is an empty sum.
        return 1 / count.clamp(min=1).to(self.values.dtype)


def _present(values: Tensor) -> Tensor:
    """(N,) number of classes that are not masked."""
    return (values > -math.inf).sum(-1, dtype=torch.int32)


class _Split(torch.autograd.Function):
    """Separate the labelled entry of each row from the rest.

    As one function because its backward is a single scatter, which compilers do in place; gather
    and scatter apart would fill two logit-sized tensors with zeros.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(values: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        index = target[:, None]
        return values.gather(1, index)[:, 0], values.scatter(1, index, -math.inf)

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx, own: Tensor, others: Tensor):  # type: ignore[no-untyped-def]
        (target,) = ctx.saved_tensors
        return others.scatter(1, target[:, None], own[:, None]), None
