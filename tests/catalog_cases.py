"""A case for every catalogue entry, and for the wrappers around other losses."""

import naive
from case import Case, Published
from catalog import classwise, pointwise, sums, wrapped
from torch import Tensor

from lossforge import BEF, CE, GCE
from lossforge.constructions import (
    BackwardCorrection,
    EpsSoftmax,
    ForwardCorrection,
    LogitClip,
    Sharpened,
)


def bef(u: Tensor, t: int) -> Tensor:
    """BEF at its defaults, of probabilities."""
    h = naive.exponential(-8, -1, 0.5)
    separated = naive.target_separation(h, u, t, max(1 / (len(u) - 1), 0.2))
    mu = 0.1 * max(1, (len(u) - 1) / 149)
    return 0.9 * separated + mu * naive.binary_reduction(h, u, t)


WRAPPED = [
    Case(
        "LogitClip-BEF",
        lambda: LogitClip(BEF(), delta=2.0),
        (
            Published(
                logits=lambda z, t: bef(naive.softmax(wrapped.clipped(z, 2.0, 2.0, False, 0)), t)
            ),
        ),
        symmetric=True,
        bounded=True,
        scale=8.0,
        breaks=classwise.OF_LOGITS,
    ),
    Case(
        "EpsSoftmax-GCE",
        lambda: EpsSoftmax(GCE(), m=3.0),
        (Published(lambda u, t: wrapped.eps_softmax(pointwise.gce, u, t, 3.0)),),
        symmetric=False,
        bounded=True,
        breaks=wrapped.TIES,
    ),
    Case(
        "Sharpened-BEF",
        lambda: Sharpened(BEF(), tau=2.0, normalize=False),
        (Published(logits=lambda z, t: bef(naive.softmax(z / 2.0), t)),),
        symmetric=True,
        bounded=True,
        scale=8.0,
        breaks=frozenset({"from-probs"}),
    ),
    Case(
        "ForwardCorrection-BEF",
        lambda k: ForwardCorrection(BEF(), wrapped.transition(k)),
        (Published(lambda u, t: wrapped.forward(u, t, loss=bef)),),
        symmetric=True,
        bounded=True,
        scale=8.0,
        sized=True,
        breaks=wrapped.OF_CLASSES | {"floor"},
    ),
    Case(
        "BackwardCorrection-CE",
        lambda k: BackwardCorrection(CE(), wrapped.transition(k)),
        (Published(wrapped.backward),),
        symmetric=False,
        bounded=False,
        scale=2.0,
        sized=True,
        breaks=wrapped.OF_LABELS,
    ),
]
CATALOGUE = [*pointwise.CASES, *classwise.CASES, *sums.CASES, *wrapped.CASES, *WRAPPED]
