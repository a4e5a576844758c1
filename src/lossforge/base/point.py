"""A probability seen three ways, each accurate where the others are not."""

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid


class Point:
    r"""A probability p given by its logarithm, with :math:`q = 1 - p` free of cancellation.

    Base functions read whichever of `p`, `q`, `log_p` their formula needs: near p = 1 that is q,
    near p = 0 it is p or its logarithm. What the caller already knows is passed in.
    """

    def __init__(self, log_p: Tensor, p: Tensor | None = None, q: Tensor | None = None) -> None:
        self.log_p = log_p
        self._p = p
        self._q = q

    @property
    def p(self) -> Tensor:
        return torch.exp(self.log_p) if self._p is None else self._p

    @property
    def q(self) -> Tensor:
        return -torch.expm1(self.log_p) if self._q is None else self._q


class Margin(Point):
    r"""The probability :math:`p = \sigma(d)` of winning a pair by the logit difference d.

    Both :math:`p = \sigma(d)` and :math:`q = \sigma(-d)` keep full relative accuracy. Compiled code
    takes them from one exponential, the odds :math:`q/p = \exp(-d)`, which may overflow to the
    right limits; a second derivative would not survive that, so eager code does not.
    """

    def __init__(self, d: Tensor) -> None:
        self._d = d
        self._odds = torch.exp(-d) if torch.compiler.is_compiling() else None

    @property
    def p(self) -> Tensor:
        if self._odds is None:
            return torch.sigmoid(self._d)
        return torch.reciprocal(1 + self._odds)

    @property
    def q(self) -> Tensor:
        if self._odds is None:
            return torch.sigmoid(-self._d)
        return torch.reciprocal(1 + torch.reciprocal(self._odds))

    @property
    def log_p(self) -> Tensor:  # type: ignore[override]
        return logsigmoid(self._d)
