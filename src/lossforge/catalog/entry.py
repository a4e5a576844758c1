"""What the catalogue knows of a loss beside its code."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ..loss import Loss

FOCAL_CAVEAT = (
    "The focal factor carries its gradient here; released code detaches it (stop_gradient)."
)
CLAMP_CAVEAT = "Released code clamps the probability, which kills the gradient below; not here."

Kind = Literal["symmetric", "asymmetric", "neither"]


@dataclass(frozen=True)
class Entry:
    """A named loss.

    Attributes:
        name: The published name.
        make: Builds it; all parameters are keyword-only.
        formula: The value of one sample, in plain text: p the class probabilities, y the label.
        kind: "symmetric" if the sum over labels is constant, "asymmetric" as its paper claims.
        bounded: Whether the value is bounded for a given number of classes.
        reference: Key of the paper in `REFERENCES`.
        aliases: Other names it is known by.
        caveat: What a user should know before comparing with published code.
        unverified: Whether the formula was inferred without the authors' code or text.
    """

    name: str
    make: Callable[..., Loss]
    formula: str
    kind: Kind
    bounded: bool
    reference: str
    aliases: tuple[str, ...] = ()
    caveat: str = ""
    unverified: bool = False

    def parameters(self) -> dict[str, Any]:
        """The keyword parameters of the mathematics, with their defaults."""
        signature = inspect.signature(self.make)
        return {
            name: parameter.default
            for name, parameter in signature.parameters.items()
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY
        }
