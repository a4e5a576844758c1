"""What certification answers, and the evidence that comes with it."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

Status = Literal["PROVED", "REFUTED", "UNDECIDED", "UNCERTIFIED"]
Claim = Literal["monotone", "transfers", "global"]
Level = Literal["any-h", "transfers", "logits", "joint", "global"]

CLAIMS: dict[Claim, str] = {
    "monotone": "raising the true class's logit never increases the expected loss",
    "transfers": "moving probability to the true class never increases the expected loss",
    "global": "the expected loss is smallest only at full confidence in the true class",
}
_VALUES: dict[Claim, str] = {
    "monotone": "slope along the true class's logit",
    "transfers": "rise per probability moved",
    "global": "below the loss at full confidence by",
}
_SHOWN, _NEGLIGIBLE = 4, 1e-9  # of a witness's classes, in words


@dataclass(frozen=True)
class Witness:
    """A prediction at which a claim fails, in numbers that anyone can check.

    Args:
        weights: The label distribution of the row.
        target: Its true class.
        probs: The prediction u.
        value: How much the claim fails there: the derivative of the expected loss with respect to
            the target's logit ("monotone"), its rise per unit of probability moved from `rival` to
            the target ("transfers"), or W(e_t) - W(u) ("global"). Positive.
        rival: The class that probability is taken from, for "transfers".
        logits: The logits, where the loss depends on more than their softmax `probs`.
    """

    weights: tuple[float, ...]
    target: int
    probs: tuple[float, ...]
    value: float
    rival: int | None = None
    logits: tuple[float, ...] | None = None

    def __str__(self) -> str:
        return self.text()

    def text(self, name: Callable[[int], str] = str) -> str:
        """The prediction: its target, its rival, and the largest of the rest.

        Args:
            name: What a class is called.
        """
        size = self.probs if self.logits is None else tuple(map(abs, self.logits))
        order = sorted(range(len(size)), key=lambda k: -size[k])
        named = [k for k in (self.target, self.rival) if k is not None]
        named += [k for k in order if k not in named and size[k] > _NEGLIGIBLE]
        shown = [self._text(k, name(k)) for k in named[:_SHOWN]]
        more = len(self.probs) - len(shown)
        return ", ".join(shown) + (f" and {more} smaller" if more else "")

    def _text(self, k: int, name: str) -> str:
        if self.logits is not None:
            return f"z[{name}] = {self.logits[k]:.4g}"
        rest = math.fsum(p for j, p in enumerate(self.probs) if j != k)
        # 1 to four digits says nothing
        return f"u[{name}] = " + (f"1 - {rest:.2g}" if rest < 1e-4 else f"{self.probs[k]:.4g}")


@dataclass(frozen=True)
class Verdict:
    """Whether a claim about a loss under a noise holds.

    Args:
        status: PROVED; REFUTED, with a witness; UNDECIDED, where neither was reached; or
            UNCERTIFIED, where the theory does not apply and no witness was found.
        claim: What was asked, see `CLAIMS`.
        level: The strongest fact established, or the one denied: "any-h" (holds for every
            decreasing base function), "transfers", "logits", "joint" (the parts of a sum help each
            other), "global".
        ratio: How far the density of the base function varies, in the sense of the ratio test. At
            most what is allowed is sufficient for the claim, and in general not necessary: where
            the claim is refuted or open these two numbers did not decide.
        allowed: The largest ratio that the noise tolerates.
        row: The row of the noise that binds.
        rival: The class that binds in it.
        case: "A" where the target's coefficient is positive, "B" where it is negative.
        witness: Where the claim fails.
        rule: The theorem that decided; what the witness contradicts, where the claim is refuted.
        reason: The answer in one sentence.
        assumptions: What it rests on.
        cells: Of the enclosure table, where one was used.
    """

    status: Status
    claim: Claim
    rule: str
    reason: str
    level: Level | None = None
    ratio: float | None = None
    allowed: float | None = None
    row: int | None = None
    rival: int | None = None
    case: Literal["A", "B"] | None = None
    witness: Witness | None = None
    assumptions: tuple[str, ...] = ()
    cells: int | None = None

    @property
    def margin(self) -> float | None:
        """How much larger the ratio could be, relatively; negative where it is too large."""
        if self.ratio is None or self.allowed is None:
            return None
        if math.isinf(self.ratio):
            return math.inf if math.isinf(self.allowed) else -1.0
        return self.allowed / self.ratio - 1

    def having(self, **changes: Any) -> Self:
        """A copy with other fields."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; infinite numbers as "inf"."""
        witness = None
        if self.witness is not None:
            witness = {name: _plain(value) for name, value in vars(self.witness).items()}
        fields = {name: _plain(value) for name, value in vars(self).items()}
        return {**fields, "margin": _plain(self.margin), "witness": witness}

    def __str__(self) -> str:
        lines = [f"{self.status}: {self.reason}"]
        return "\n".join(lines + [f"{label}: {text}" for label, text in self.facts()])

    def facts(self, name: Callable[[int], str] = str) -> list[tuple[str, str]]:
        """What is known beside the status and the reason, as labels and texts.

        Args:
            name: What a class is called.
        """
        found = [("claim", CLAIMS[self.claim])]
        if self.ratio is not None and self.allowed is not None:
            found += self._ratio_test(self.ratio, self.allowed)
        if self.row is not None:
            against = "" if self.rival is None else f" against class {name(self.rival)}"
            found.append(("binding", f"class {name(self.row)}{against}"))
        if self.witness is not None:
            value = f"{_VALUES[self.claim]} {self.witness.value:.4g}"
            found.append(("witness", f"{self.witness.text(name)}; {value}"))
        found.append(("rule", self.rule))
        if self.cells is not None:
            found.append(("cells", str(self.cells)))
        return found + [("assumes", text) for text in self.assumptions]

    def _ratio_test(self, ratio: float, allowed: float) -> list[tuple[str, str]]:
        """The test that proved the claim, or that failed where nothing was decided."""
        free = math.isinf(allowed)
        numbers = f"{ratio:.6g}, allowed {'any' if free else f'{allowed:.6g}'}"
        if self.status == "REFUTED":
            return []  # the witness decides: to pass the test is sufficient, not necessary
        if self.status == "UNDECIDED":
            return [("ratio", f"{numbers}; to pass is sufficient only, so this decides nothing")]
        margin = self.margin
        spare = "" if margin is None or free else f", margin {100 * margin:+.1f} %"
        return [("ratio", numbers + spare)]


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
