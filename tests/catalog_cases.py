"""A case for every catalogue entry, and for the wrappers around other losses."""

import math
from collections.abc import Callable
from typing import Any

import naive
from case import Case, Published
from catalog import second
from torch import Tensor, nn

import lossforge
from lossforge import BEF, CE, GCE
from lossforge.constructions import (
    BackwardCorrection,
    EpsSoftmax,
    ForwardCorrection,
    LogitClip,
    Sharpened,
)

# With a detached factor the gradient is not a derivative, so there is no second one to compare.
DETACHED = {"breaks": frozenset({"gradcheck"}), "smooth": False}
OF_LOGITS = frozenset({"shift", "gradient-sum", "floor", "from-probs"})
OF_CLASSES = frozenset({"permutation", "mask", "single-class"})


def entry(
    name: str,
    *,
    id: str | None = None,
    symmetric: bool = False,
    bounded: bool = True,
    floor: Callable[[int], float] | float = 0.0,
    closed: second.Value | None = None,
    breaks: frozenset[str] = frozenset(),
    parameters: dict[str, Any] | None = None,
    **claims: Any,
) -> Case:
    """A catalogue loss; without an id of its own the case stands for the entry, at its defaults."""
    given = parameters or {}
    probs, logits = second.OF_PROBS.get(name), second.OF_LOGITS.get(name)
    return Case(
        id or name,
        lambda: lossforge.make(name, **given),
        (
            Published(
                probs and (lambda u, t: probs(u, t, **given)),
                logits and (lambda z, t: logits(z, t, **given)),
                closed,
            ),
        ),
        symmetric=symmetric,
        bounded=bounded,
        floor=floor if callable(floor) else lambda _: floor,
        breaks=breaks,
        entry="" if id else name,
        **claims,
    )


def corrected(name: str, **claims: Any) -> Case:
    """A correction by the transition matrix of the second derivation."""
    return Case(
        name,
        lambda k: lossforge.make(name, T=second.transition(k)),
        (Published(second.OF_PROBS[name]),),
        symmetric=False,
        sized=True,
        entry=name,
        **claims,
    )


class TwoViews(nn.Module):
    """GJS of the logits and of half the logits: several views as a function of one input."""

    def __init__(self, loss: Any) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, z: Tensor, t: Tensor) -> Tensor:
        return self.loss((z, z / 2), t)

    def per_sample(self, z: Tensor, t: Tensor) -> Tensor:
        return self.loss.with_policy(reduction="none")((z, z / 2), t)

    def from_probs(self, u: Tensor, t: Tensor) -> Tensor:
        return self.loss.from_probs((u, u), t)

    def with_policy(self, **policy: Any) -> "TwoViews":
        return TwoViews(self.loss.with_policy(**policy))

    @property
    def weight(self) -> Tensor | None:
        return self.loss.weight

    @property
    def reduction(self) -> str:
        return self.loss.reduction

    @reduction.setter
    def reduction(self, reduction: str) -> None:
        self.loss.reduction = reduction


VIEWS = (0.4, 0.35, 0.25)


def _two_views(u: Tensor, t: int) -> Tensor:
    return second.gjs_of_probs((u, u.sqrt() / u.sqrt().sum()), t, VIEWS)


def bef(u: Tensor, t: int) -> Tensor:
    """BEF at its defaults, of probabilities."""
    h = naive.exponential(-8, -1, 0.5)
    separated = naive.target_separation(h, u, t, max(1 / (len(u) - 1), 0.2))
    mu = 0.1 * max(1, (len(u) - 1) / 149)
    return 0.9 * separated + mu * naive.binary_reduction(h, u, t)


def amse_floor(a: float, beta: float = 1.0) -> Callable[[int], float]:
    return lambda k: beta * (a - 1) ** 2 / k


STOP = {"stop_gradient": True}

FUNCTIONS_OF_THE_LABEL = [
    entry("FL", bounded=False),
    entry("FL", id="FL-gamma2", bounded=False, parameters={"gamma": 2.0}),
    entry("FL", id="FL-stopped", bounded=False, **DETACHED, parameters=STOP),
    entry("MAE", symmetric=True, closed=second.slope_gradient(lambda p: -1.0)),
    entry("MAE", id="MAE-scale2", symmetric=True, parameters={"scale": 2.0}, scale=2.0),
    entry("RCE", symmetric=True, scale=10.0),
    entry("GCE", closed=second.slope_gradient(lambda p: -(p**-0.3))),
    entry("TGCE", smooth=False),
    entry("SCE", bounded=False, scale=10.0),
    entry("AUL", scale=16.0, closed=second.slope_gradient(lambda p: -((5.5 - p) ** 2))),
    entry("AUL", id="AUL-q0.1", parameters={"a": 3.0, "q": 0.1}),
    entry("AGCE", closed=second.slope_gradient(lambda p: -((0.6 + p) ** -0.4))),
    entry("AGCE", id="AGCE-a1e-5", parameters={"a": 1e-5, "q": 0.5}),
    entry("AEL", floor=math.exp(-1 / 2.5)),
    entry("Taylor-CE"),
    entry("Taylor-CE", id="Taylor-CE-t6", parameters={"t": 6}),
    entry("PHuber-CE", smooth=False, scale=2.0),
    entry("PHuber-GCE", smooth=False),
    entry("NL", bounded=False, breaks=frozenset({"single-class"})),
    entry("NL+", **DETACHED),
    entry("PL+", bounded=False, **DETACHED),
    entry("VCE", floor=-math.log(5)),
    entry("VEL", floor=math.exp(-1 / 2.5)),
    entry("VMSE", floor=9.0, scale=4.0),
]
FUNCTIONS_OF_ALL_CLASSES = [
    entry("MSE"),
    entry("NCE", symmetric=True, closed=second.nce_gradient),
    entry("NFL", symmetric=True),
    entry("NFL", id="NFL-stopped", symmetric=True, **DETACHED, parameters=STOP),
    entry("NGCE", symmetric=True),
    entry("ANorm"),
    entry("ANorm", id="ANorm-p1.5", parameters={"a": 3.0, "p": 1.5}),
    entry("NNCE", symmetric=True),
    entry("NNFL", symmetric=True),
    entry("NNFL", id="NNFL-stopped", symmetric=True, **DETACHED, parameters=STOP),
    entry("AMSE", floor=amse_floor(30), scale=8.0, closed=second.amse_gradient),
    entry("AMSE", id="AMSE-q1.5", floor=lambda k: 2**1.5 / k, parameters={"a": 3.0, "q": 1.5}),
    entry("JS"),
    entry("JS", id="JS-unscaled", parameters={"weights": (0.1, 0.9), "scaled": False}),
    entry("LSR", bounded=False),
    entry("GLS", bounded=False),
    entry("NLS", bounded=False, scale=2.0),
    entry("ECE", bounded=False, breaks=frozenset({"ties"})),
    entry("ECE", id="ECE-m1", bounded=False, breaks=frozenset({"ties"}), parameters={"m": 1.0}),
    entry("EFL", bounded=False, breaks=frozenset({"ties"})),
    entry("EFL", id="EFL-stopped", bounded=False, **DETACHED, parameters={"m": 1.0, **STOP}),
    corrected(
        "forward",
        bounded=True,
        floor=lambda k: -math.log(second.transition(k)[0, 0]),
        breaks=OF_CLASSES,
    ),
    corrected("backward", bounded=False, scale=2.0, breaks=OF_CLASSES),
]
SUMS = [
    entry("NCE+RCE", symmetric=True, scale=10.0),
    entry("NCE+MAE", symmetric=True),
    entry("NFL+RCE", symmetric=True, scale=10.0),
    entry("NFL+MAE", symmetric=True),
    entry("NCE+AUL", scale=8.0),
    entry("NCE+AGCE", scale=8.0),
    entry("NCE+AEL", floor=4 * math.exp(-1 / 5)),
    entry("ANL-CE", symmetric=True, scale=5.0),
    entry("ANL-FL", symmetric=True, scale=5.0),
    entry("ANL-FL", id="ANL-FL-stopped", symmetric=True, **DETACHED, parameters=STOP),
    entry("JAL-CE", floor=amse_floor(30), scale=8.0),
    entry("JAL-FL", floor=amse_floor(30), scale=8.0),
    entry("CEeps+MAE", bounded=False, scale=10.0, breaks=frozenset({"ties"})),
    entry("FLeps+MAE", bounded=False, scale=10.0, breaks=frozenset({"ties"})),
]
LOGIT_LOSSES = [
    entry("CE+LC", breaks=OF_LOGITS),
    entry(
        "CE+LC",
        id="CE+LC-released",
        breaks=OF_LOGITS,
        parameters={"delta": 1 / 1.5, "as_released": True},
    ),
    entry("LDR", breaks=OF_LOGITS),
    entry("SR", breaks=OF_LOGITS | {"ties", "single-class"}),
    entry(
        "SR",
        id="SR-flat",
        bounded=False,
        breaks=frozenset({"single-class", "from-probs"}),
        parameters={"base": "CE", "tau": 2.0, "p": 0.5, "lamb": 2.0, "normalize": False},
    ),
    Case(
        "GJS",
        lambda: TwoViews(lossforge.make("GJS", weights=VIEWS)),
        (Published(_two_views),),
        symmetric=False,
        bounded=True,
        breaks=frozenset({"from-probs", "text"}),
        entry="GJS",
    ),
]
WRAPPED = [
    Case(
        "LogitClip-BEF",
        lambda: LogitClip(BEF(), delta=2.0),
        (
            Published(
                logits=lambda z, t: bef(naive.softmax(second.clipped(z, 2.0, 2.0, False, 0)), t)
            ),
        ),
        symmetric=True,
        bounded=True,
        scale=8.0,
        breaks=OF_LOGITS,
    ),
    Case(
        "EpsSoftmax-GCE",
        lambda: EpsSoftmax(GCE(), m=3.0),
        (Published(lambda u, t: second.eps_softmax(second.gce, u, t, 3.0)),),
        symmetric=False,
        bounded=True,
        breaks=frozenset({"ties"}),
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
        lambda k: ForwardCorrection(BEF(), second.transition(k)),
        (Published(lambda u, t: second.forward(u, t, loss=bef)),),
        symmetric=True,
        bounded=True,
        scale=8.0,
        sized=True,
        breaks=OF_CLASSES | {"floor"},
    ),
    Case(
        "BackwardCorrection-CE",
        lambda k: BackwardCorrection(CE(), second.transition(k)),
        (Published(second.backward),),
        symmetric=False,
        bounded=False,
        scale=2.0,
        sized=True,
        breaks=OF_CLASSES,
    ),
]
CATALOGUE = [
    *FUNCTIONS_OF_THE_LABEL,
    *FUNCTIONS_OF_ALL_CLASSES,
    *SUMS,
    *LOGIT_LOSSES,
    *WRAPPED,
]
