"""Wrappers: a loss of transformed logits or probabilities, around any loss."""

import math
from abc import abstractmethod
from dataclasses import replace
from typing import Unpack

import torch
from torch import Tensor

from ..base.function import format_arguments
from ..errors import LARGEST, check_factor
from ..kernels import Form, Rescaling
from ..loss import Loss, Policy, ProbabilityLoss, Scores


def check_inner(name: str, loss: object) -> None:
    """Raise unless `loss` can be evaluated inside another one."""
    if not isinstance(loss, Loss):
        raise TypeError(f"{name} must be a lossforge loss, got {loss!r}")
    if loss.has_policy:
        raise ValueError(
            f"a wrapped loss must have no policy of its own, got {loss!r}; set it on the wrapper"
        )


class Wrapper(ProbabilityLoss):
    """A loss evaluated on transformed scores.

    Args:
        loss: Any loss without a policy of its own.
    """

    def __init__(self, loss: Loss, **policy: Unpack[Policy]) -> None:
        super().__init__(**policy)
        check_inner("loss", loss)
        self.loss = loss

    @abstractmethod
    def transform(self, scores: Scores) -> Scores:
        """The scores that the wrapped loss sees."""

    def from_scores(self, scores: Scores, target: Tensor) -> Tensor:
        return self.loss.from_scores(self.transform(scores), target)

    def expected(self, scores: Scores, weights: Tensor) -> Tensor:
        return self.loss.expected(self._inner(scores), weights)

    def label_mean(self, scores: Scores) -> Tensor:
        return self.loss.label_mean(self._inner(scores))

    def _inner(self, scores: Scores) -> Scores:
        inner = self.transform(scores)
        inner.partial = scores.partial
        return inner


class LogitClip(Wrapper):
    r"""Clips the logits: :math:`z \leftarrow \delta z / \|z\|_p` where the norm exceeds delta.

    Args:
        loss: The loss of the clipped logits.
        delta: Largest norm, positive.
        p: Order of the norm, 1 or more; may be infinite.
        as_released: Do what the released code does instead: rescale to delta where the norm
            exceeds 1 / delta, which jumps, and stretches logits for delta > 1.
        norm_eps: What the released code adds to the norm before dividing.

    References:
        Wei et al., Mitigating Memorization of Noisy Labels by Clipping the Model Prediction,
        ICML 2023.
    """

    def __init__(
        self,
        loss: Loss,
        *,
        delta: float = 1.0,
        p: float = 2.0,
        as_released: bool = False,
        norm_eps: float = 1e-7,
        **policy: Unpack[Policy],
    ) -> None:
        super().__init__(loss, **policy)
        check_factor("delta", delta, "positive", lambda v: v > 0)
        if p != math.inf:
            check_factor("p", p, "1 or more", lambda v: v >= 1)
        check_factor("norm_eps", norm_eps, "0 or more", lambda v: v >= 0)
        self.delta = delta
        self.p = p
        self.as_released = as_released
        self.norm_eps = norm_eps

    def transform(self, scores: Scores) -> Scores:
        if self.as_released:
            return _rescaled(scores, self.p, self.delta, above=1 / self.delta, added=self.norm_eps)
        return _rescaled(scores, self.p, self.delta, above=self.delta)

    def fused(self, num_classes: int) -> Form | None:
        if self.p != 2:
            return None
        clip = Rescaling(self.delta, self.delta)
        released = Rescaling(self.delta, 1 / self.delta, self.norm_eps)
        return _of_rescaled(self.loss, num_classes, released if self.as_released else clip)

    def __str__(self) -> str:
        settings: dict[str, object] = {"delta": self.delta, "p": self.p}
        if self.as_released:
            settings |= {"as_released": True, "norm_eps": self.norm_eps}
        return f"logit_clip({self.loss}, {format_arguments(settings)})"


class Sharpened(Wrapper):
    r"""Sharpens the prediction: :math:`z \leftarrow z / (\|z\|_2 \tau)`.

    Args:
        loss: The loss of the sharpened logits.
        tau: Temperature, positive.
        normalize: Divide by the norm; otherwise by the temperature alone.
    """

    def __init__(
        self, loss: Loss, *, tau: float = 0.5, normalize: bool = True, **policy: Unpack[Policy]
    ) -> None:
        super().__init__(loss, **policy)
        check_factor("tau", tau, f"{1 / LARGEST:g} or more", lambda v: v * LARGEST >= 1)
        self.tau = tau
        self.normalize = normalize

    def transform(self, scores: Scores) -> Scores:
        if not self.normalize:
            return Scores(scores.logits / self.tau)
        return _rescaled(scores, 2.0, 1 / self.tau, above=0.0)

    def fused(self, num_classes: int) -> Form | None:
        if not self.normalize:
            return None
        return _of_rescaled(self.loss, num_classes, Rescaling(1 / self.tau, 0.0))

    def __str__(self) -> str:
        settings = {"tau": self.tau, "normalize": self.normalize}
        return f"sharpened({self.loss}, {format_arguments(settings)})"


class EpsSoftmax(Wrapper):
    r"""Relaxes the prediction to a near one-hot: :math:`(u + m\, e_{\arg\max u}) / (1 + m)`.

    The value jumps where the arg-max changes; of tied classes the first counts.

    Args:
        loss: The loss of the relaxed probabilities.
        m: Weight of the arg-max, 0 or more; 0 changes nothing.

    References:
        Wang et al., epsilon-Softmax: Approximating One-Hot Vectors for Mitigating Label Noise,
        NeurIPS 2024.
    """

    def __init__(self, loss: Loss, *, m: float = 1e5, **policy: Unpack[Policy]) -> None:
        super().__init__(loss, **policy)
        check_factor("m", m, "0 or more", lambda v: v >= 0)
        self.m = m

    def transform(self, scores: Scores) -> Scores:
        log_probs = scores.log_probs
        best = log_probs.argmax(-1, keepdim=True)
        top = math.log1p(self.m)
        raised = torch.log(self.m + torch.exp(log_probs.gather(1, best)))
        # rounded up, it would be a probability above 1
        raised = torch.where(raised > top, top, raised)
        relaxed = log_probs.scatter(1, best, raised) - top
        return Scores(relaxed, normalised=scores.normalised, log_probs=relaxed)

    def fused(self, num_classes: int) -> Form | None:
        form = self.loss.fused(num_classes)
        if form is None or form.rescaling or any(term.relaxation for term in form.terms):
            return None
        return replace(form, terms=tuple(replace(t, relaxation=self.m) for t in form.terms))

    def __str__(self) -> str:
        return f"eps_softmax({self.loss}, {format_arguments({'m': self.m})})"


def _of_rescaled(loss: Loss, num_classes: int, rescaling: Rescaling) -> Form | None:
    form = loss.fused(num_classes)
    return None if form is None or form.rescaling else replace(form, rescaling=rescaling)


def _rescaled(
    scores: Scores, p: float, length: float, *, above: float, added: float = 0.0
) -> Scores:
    """Logits rescaled to `length` where their norm exceeds `above`; masked classes stay out.

    A row so short that the derivative, `length` over its norm, overflows counts as zero.
    """
    logits = scores.logits
    masked = logits == -torch.inf
    finite = torch.where(masked, 0.0, logits)
    # Powers of very large or very small logits would leave the number range.
    size = finite.detach().abs().amax(-1, keepdim=True)
    unit = finite / torch.where(size > 0, size, 1.0)
    info = torch.finfo(logits.dtype)
    above = max(above, 1024 * length / info.max)
    long = size * torch.linalg.vector_norm(unit.detach(), p, dim=-1, keepdim=True) > above
    if added == 0:
        # What is rescaled depends on the direction alone: units where squares leave the range.
        extreme = long & ((size < info.tiny**0.4) | (size > info.max**0.4))
        size, finite = torch.where(extreme, 1.0, size), torch.where(extreme, unit, finite)
    # Rows that stay as they are do not enter the norm, whose derivatives fail at 0.
    norm = size * torch.linalg.vector_norm(torch.where(long, unit, 1.0), p, dim=-1, keepdim=True)
    factor = torch.where(long, length / (torch.where(long, norm, 1.0) + added), 1.0)
    return Scores(torch.where(masked, -torch.inf, finite * factor))
