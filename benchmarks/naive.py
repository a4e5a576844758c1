"""The losses as research code writes them: softmax, one-hot labels, formulas, autograd.

With the catalogue's default parameters, so that gradients can be compared. The losses of the
paper's tables and their parts are here; a loss made only of a formula on p_y needs no naive twin.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

Criterion = Callable[[Tensor, Tensor], Tensor]
Rows = Callable[[Tensor, Tensor], Tensor]  # probabilities (N, K), one-hot labels -> (N,)


def of_probs(rows: Rows) -> Criterion:
    """The batch mean of a formula in probabilities and one-hot labels."""

    def criterion(logits: Tensor, target: Tensor) -> Tensor:
        p = F.softmax(logits, dim=1)
        return rows(p, F.one_hot(target, p.shape[1]).to(p.dtype)).mean()

    return criterion


def exponential(x: Tensor) -> Tensor:
    """Integrate -8 exp(-8 (x - 1/2)^2)."""
    root = math.sqrt(8)
    return -8 * math.sqrt(math.pi) / (2 * root) * torch.erf(root * (x - 0.5))


def quadratic(x: Tensor) -> Tensor:
    """Integrate 12 (x - 1/2)^2 - 8."""
    return 4 * (x - 0.5) ** 3 - 8 * x


def balanced(h: Callable[[Tensor], Tensor]) -> Rows:
    """0.9 TS + 0.1 BR as the paper prints them, up to a constant."""

    def rows(p: Tensor, y: Tensor) -> Tensor:
        own = (p * y).sum(1, keepdim=True)
        rivals = p.shape[1] - 1
        separation = h(own).squeeze(1) - ((1 - y) * h(p)).sum(1) / rivals
        reduction = ((1 - y) * h(own / (own + p))).sum(1) / rivals
        return 0.9 * separation + 0.1 * reduction

    return rows


def own(p: Tensor, y: Tensor) -> Tensor:
    return (p * y).sum(1)


def ce(p: Tensor, y: Tensor) -> Tensor:
    return -(y * p.log()).sum(1)


def focal(p: Tensor) -> Tensor:
    return -((1 - p) ** 0.5) * p.log()


def rce(p: Tensor, y: Tensor) -> Tensor:
    return -(p * y.clamp(min=1e-4).log()).sum(1)


def nce(p: Tensor, y: Tensor) -> Tensor:
    logs = p.log()
    return (y * logs).sum(1) / logs.sum(1)


def nfl(p: Tensor, y: Tensor) -> Tensor:
    terms = focal(p)
    return (y * terms).sum(1) / terms.sum(1)


def nnce(p: Tensor, y: Tensor) -> Tensor:
    left = p.clamp(min=1e-7).log() - math.log(1e-7)
    return 1 - (y * left).sum(1) / left.sum(1)


def nnfl(p: Tensor, y: Tensor) -> Tensor:
    top = -((1 - 1e-7) ** 0.5) * math.log(1e-7)
    left = top - focal(p.clamp(min=1e-7))
    return 1 - (y * left).sum(1) / left.sum(1)


def amse(p: Tensor, y: Tensor) -> Tensor:
    return ((30 * y - p) ** 2).mean(1)


def mae(p: Tensor, y: Tensor) -> Tensor:
    return (p - y).abs().sum(1)


def relaxed(p: Tensor) -> Tensor:
    best = F.one_hot(p.argmax(1), p.shape[1]).to(p.dtype)
    return (p + 1e5 * best) / (1 + 1e5)


def total(*terms: tuple[float, Rows]) -> Criterion:
    """A weighted sum as released code has it: every term from the logits, with its own softmax."""
    parts = [(weight, of_probs(rows)) for weight, rows in terms]
    return lambda logits, target: sum(weight * part(logits, target) for weight, part in parts)


def aul(p: Tensor, y: Tensor) -> Tensor:
    return ((6.3 - own(p, y)) ** 1.5 - 5.3**1.5) / 1.5


def agce(p: Tensor, y: Tensor) -> Tensor:
    return (7**1.5 - (6 + own(p, y)) ** 1.5) / 1.5


NAIVE: dict[str, Criterion] = {
    "FL": total((1, lambda p, y: (y * focal(p)).sum(1))),
    "GCE": total((1, lambda p, y: (1 - own(p, y) ** 0.7) / 0.7)),
    "SCE": total((0.1, ce), (1, rce)),
    "NCE": total((1, nce)),
    "NCE+RCE": total((1, nce), (1, rce)),
    "NCE+AUL": total((1, nce), (4, aul)),
    "NCE+AGCE": total((1, nce), (4, agce)),
    "ANL-CE": total((5, nce), (5, nnce)),
    "ANL-FL": total((5, nfl), (5, nnfl)),
    "JAL-CE": total((1, nce), (1, amse)),
    "JAL-FL": total((1, nfl), (1, amse)),
    "CEeps+MAE": total((0.01, lambda p, y: ce(relaxed(p), y)), (5, mae)),
    "BEF": of_probs(balanced(exponential)),
    "BQF": of_probs(balanced(quadratic)),
}
