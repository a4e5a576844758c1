"""A published setting of a loss, and the code that states it."""

from dataclasses import dataclass
from typing import Any

JAL = "cswjl/joint-asymmetric-loss@0f9eb7b"
EPS = "cswjl/eps-softmax@f81685c"
APL = "HanxunH/Active-Passive-Losses@04bce53"
ANL = "Virusdoll/Active-Negative-Loss@0c50009"
GJS = "ErikEnglesson/GJS@1a3c9e0"
SR = "hitcszx/lnl_sr@cd3ed32"
NLS = "UCSC-REAL/negative-label-smoothing@05078f6"
NLNL = "ydkim1293/NLNL-Negative-Learning-for-Noisy-Labels@921dec4"
TRUNCATED = "AlanChou/Truncated-Loss@fef5908 (unofficial)"
PHUBER = "dmizr/phuber@56e5f71 (unofficial reproduction)"

_FROZEN = "released behaviour: the focal factor carries no gradient"
_CLIP = "released behaviour: logits are rescaled, not clipped"


@dataclass(frozen=True)
class Setting:
    """Parameters that a published experiment gave a loss.

    Args:
        parameters: Keyword arguments of the loss.
        noise: The label noise they are for: a type ("asymmetric"), a type and a rate
            ("symmetric:0.4"), a type and a bound ("symmetric:<0.5", "symmetric:>=0.5"), or None
            for any.
        l1_decay: Coefficient of the sum of absolute values of all network parameters that the
            protocol adds to the loss, in place of weight decay; None if it adds none.
        source: Repository and commit, and what is worth knowing about the figures.
        released: Whether `parameters` ask for behaviour of the released code that differs from the
            published formula, because the published table was made with it.
    """

    parameters: dict[str, Any]
    noise: str | None
    l1_decay: float | None
    source: str
    released: bool


def setting(
    source: str,
    *notes: str,
    noise: str | None = None,
    l1_decay: float | None = None,
    **parameters: Any,
) -> Setting:
    """The setting with these parameters; released behaviour is recognised and noted."""
    frozen, clipped = (bool(parameters.get(name)) for name in ("stop_gradient", "as_released"))
    notes += (_FROZEN,) * frozen + (_CLIP,) * clipped
    return Setting(parameters, noise, l1_decay, "; ".join((source, *notes)), frozen or clipped)


def focal(source: str, *notes: str, **parameters: Any) -> Setting:
    """The setting of a loss with a focal factor, which every released version detaches."""
    return setting(source, *notes, **{"gamma": 0.5, "stop_gradient": True, **parameters})


def each(**by_preset: Setting | list[Setting]) -> dict[str, tuple[Setting, ...]]:
    """The settings of one loss by preset."""
    return {
        preset: tuple(found) if isinstance(found, list) else (found,)
        for preset, found in by_preset.items()
    }
