"""The losses as research code writes them: softmax, one-hot labels, formulas, autograd.

Each formula reads its parameters from the loss that it copies, so that gradients can be compared.
The losses of the paper's tables and their parts are here.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

import lossforge
from lossforge import BinaryReduction, TargetSeparation, base
from lossforge.constructions import BoundedCosine, ByRivals, EpsSoftmax, LogitClip
from lossforge.loss import Loss, WeightedSum

Criterion = Callable[[Tensor, Tensor], Tensor]
Rows = Callable[[Tensor, Tensor], Tensor]  # probabilities (N, K), one-hot labels -> (N,)
Elementwise = Callable[[Tensor], Tensor]


def twin(loss: Loss) -> Criterion | None:
    """The batch mean of the naive formula of a loss, up to a constant; None if there is none."""
    if isinstance(loss, LogitClip):
        return clipped(loss) if isinstance(loss.loss, lossforge.CE) and loss.p < math.inf else None
    rows = _rows(loss)
    if rows is not None:
        return of_probs(rows)
    if not isinstance(loss, WeightedSum):
        return None
    parts = [(weight, _rows(member)) for weight, member in loss.terms]
    if any(rows is None for _, rows in parts):
        return None
    return total(*parts)


def clipped(loss: LogitClip) -> Criterion:
    """Cross entropy of logits that are rescaled where their norm exceeds delta."""

    def criterion(logits: Tensor, target: Tensor) -> Tensor:
        norms = torch.norm(logits, p=loss.p, dim=-1, keepdim=True)
        rescaled = torch.div(logits, norms) * loss.delta
        return F.cross_entropy(torch.where(norms > loss.delta, rescaled, logits), target)

    return criterion


def of_probs(rows: Rows) -> Criterion:
    """The batch mean of a formula in probabilities and one-hot labels."""

    def criterion(logits: Tensor, target: Tensor) -> Tensor:
        p = F.softmax(logits, dim=1)
        return rows(p, F.one_hot(target, p.shape[1]).to(p.dtype)).mean()

    return criterion


def total(*terms: tuple[float, Rows]) -> Criterion:
    """A weighted sum as released code has it: every term from the logits, with its own softmax."""
    parts = [(weight, of_probs(rows)) for weight, rows in terms]
    return lambda logits, target: sum(weight * part(logits, target) for weight, part in parts)


def _rows(loss: Loss) -> Rows | None:
    """The formula of a loss that is not a sum, or of a balanced one, which has one softmax."""
    if getattr(getattr(loss, "base", None), "stop_gradient", False):
        return None
    if isinstance(loss, EpsSoftmax):
        inner = _rows(loss.loss)
        return relaxed(inner, loss.m) if inner else None
    make = FORMULAS.get(type(loss))
    return make(loss) if make else None


def own(p: Tensor, y: Tensor) -> Tensor:
    return (p * y).sum(1)


def of_own(h: Elementwise) -> Rows:
    return lambda p, y: h(own(p, y))


def ce(p: Tensor, y: Tensor) -> Tensor:
    return -(y * p.log()).sum(1)


def focal(gamma: float) -> Elementwise:
    return lambda p: -((1 - p) ** gamma) * p.log()


def fl(loss: lossforge.FL) -> Rows:
    terms = focal(loss.base.gamma)
    return lambda p, y: (y * terms(p)).sum(1)


def mae(loss: lossforge.MAE) -> Rows:
    return lambda p, y: loss.scale / 2 * (p - y).abs().sum(1)


def rce(loss: lossforge.RCE) -> Rows:
    clamp = math.exp(-loss.scale)
    return lambda p, y: -(p * y.clamp(min=clamp).log()).sum(1)


def gce(loss: lossforge.GCE) -> Rows:
    q = loss.base.q
    return of_own(lambda p: (1 - p**q) / q)


def aul(loss: lossforge.AUL) -> Rows:
    a, q = loss.base.a, loss.base.q
    return of_own(lambda p: ((a - p) ** q - (a - 1) ** q) / q)


def agce(loss: lossforge.AGCE) -> Rows:
    a, q = loss.base.a, loss.base.q
    return of_own(lambda p: ((a + 1) ** q - (a + p) ** q) / q)


def nce(loss: lossforge.NCE) -> Rows:
    def rows(p: Tensor, y: Tensor) -> Tensor:
        logs = p.log()
        return loss.scale * (y * logs).sum(1) / logs.sum(1)

    return rows


def nfl(loss: lossforge.NFL) -> Rows:
    def rows(p: Tensor, y: Tensor) -> Tensor:
        terms = focal(loss.base.gamma)(p)
        return loss.scale * (y * terms).sum(1) / terms.sum(1)

    return rows


def nnce(loss: lossforge.NNCE) -> Rows:
    eps = loss.base.eps

    def rows(p: Tensor, y: Tensor) -> Tensor:
        left = p.clamp(min=eps).log() - math.log(eps)
        return 1 - (y * left).sum(1) / left.sum(1)

    return rows


def nnfl(loss: lossforge.NNFL) -> Rows:
    eps, gamma = loss.base.eps, loss.base.base.gamma
    top = -((1 - eps) ** gamma) * math.log(eps)

    def rows(p: Tensor, y: Tensor) -> Tensor:
        left = top - focal(gamma)(p.clamp(min=eps))
        return 1 - (y * left).sum(1) / left.sum(1)

    return rows


def amse(loss: lossforge.AMSE) -> Rows:
    return lambda p, y: loss.scale * ((loss.a * y - p).abs() ** loss.r).mean(1)


def relaxed(rows: Rows, m: float) -> Rows:
    """A formula of the eps-softmax."""

    def of_relaxed(p: Tensor, y: Tensor) -> Tensor:
        best = F.one_hot(p.argmax(1), p.shape[1]).to(p.dtype)
        return rows((p + m * best) / (1 + m), y)

    return of_relaxed


def exponential(h: base.Exponential) -> Elementwise:
    """Integrate alpha exp(beta (x - gamma)^2), beta < 0."""
    root = math.sqrt(-h.beta)
    factor = h.alpha * math.sqrt(math.pi) / (2 * root)
    return lambda x: factor * torch.erf(root * (x - h.gamma))


def quadratic(h: base.Quadratic) -> Elementwise:
    """Integrate alpha (x - gamma)^2 + beta."""
    return lambda x: h.alpha / 3 * (x - h.gamma) ** 3 + h.beta * x


def balanced(loss: lossforge.BEF | lossforge.BQF) -> Rows:
    """lam TS + mu BR as the paper prints them, up to a constant; the cosine beyond 150 classes."""
    (lam, ts), (mu, second) = loss.terms
    assert isinstance(ts, TargetSeparation)
    integrate = exponential if isinstance(loss, lossforge.BEF) else quadratic
    h = integrate(ts.base)

    def rows(p: Tensor, y: Tensor) -> Tensor:
        rivals = p.shape[1] - 1
        a = max((ts.tau or 0.0) / rivals, ts.a or 0.0)
        own = (p * y).sum(1, keepdim=True)
        separation = h(own).squeeze(1) - a * ((1 - y) * h(p)).sum(1)
        part, factor = second, mu
        if isinstance(part, ByRivals):
            chosen = part.at(rivals + 1)
            assert isinstance(chosen, WeightedSum)
            ((factor, part),) = chosen.terms
        if isinstance(part, BoundedCosine):
            return lam * separation + factor * cosine(part, p, y)
        assert isinstance(part, BinaryReduction)
        paired = integrate(part.base)
        reduction = ((1 - y) * paired(own / (own + p))).sum(1) / rivals
        return lam * separation + factor * reduction

    return rows


def cosine(loss: BoundedCosine, p: Tensor, y: Tensor) -> Tensor:
    """1 - c z_t / n of centred logits z, which are logarithms of probabilities."""
    rivals = p.shape[1] - 1
    z = torch.log(p)
    z = z - z.mean(1, keepdim=True)
    n = torch.sqrt((z**2).sum(1) + 1)
    factor = math.sqrt(max(1.0, rivals / loss.rivals)) if loss.rivals else 1.0
    return factor * (1 - math.sqrt((rivals + 1) / rivals) * (z * y).sum(1) / n)


FORMULAS: dict[type[Loss], Callable[..., Rows]] = {
    lossforge.CE: lambda loss: ce,
    lossforge.FL: fl,
    lossforge.MAE: mae,
    lossforge.RCE: rce,
    lossforge.GCE: gce,
    lossforge.AUL: aul,
    lossforge.AGCE: agce,
    lossforge.NCE: nce,
    lossforge.NFL: nfl,
    lossforge.NNCE: nnce,
    lossforge.NNFL: nnfl,
    lossforge.AMSE: amse,
    lossforge.BEF: balanced,
    lossforge.BQF: balanced,
}
