"""Which loss for the noise that was found: certificates first, then how well a network learns."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from torch import Tensor

from ..catalog import find, parse
from ..errors import SpecError
from ..theory import certify
from .estimate import Estimated

# In order of preference, for where certificates and training do not tell them apart. BEF and BQF
# are level over all committed results; that BQF is first was decided with sight of those on digits
# with asymmetric noise, where it is better.
CANDIDATES = (
    *("BQF", "BEF", "ANL-CE", "JAL-CE", "NCE+RCE"),
    *("NCE+AGCE", "CEeps+MAE", "GCE", "SCE", "CE"),
)
LEVEL = 0.01  # shares of held-out labels that are no further apart than chance puts them
LITTLE = 0.02  # a noise rate at which the choice of a loss hardly matters
Status = Literal["PROVED", "REFUTED", "UNDECIDED", "UNCERTIFIED", "HOPELESS"]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A loss, and what is known of it under the noise that was found.

    Args:
        name: As it was asked for.
        expression: With all its parameters.
        code: The line that makes it.
        status: Of the claim "monotone", see `lossforge.theory.certify`; HOPELESS where a wrong
            label is at least as frequent as the right one of a class, so that no loss can have it.
        reason: In one sentence.
        proved_share: The share of resampled transition matrices for which the claim is proved, too;
            None where it is not proved for the estimate itself.
        accuracy: The share of held-out labels, noisy as they are, that networks trained with it
            predict; None if none was trained.
    """

    name: str
    expression: str
    code: str
    status: Status
    reason: str
    proved_share: float | None
    accuracy: float | None = None


@dataclass(frozen=True)
class Recommendation:
    """The loss to use.

    Args:
        name: Of the candidate.
        code: The line to paste.
        proved: Whether it is proved robust to the estimated noise.
        reason: Why this one.
    """

    name: str
    code: str
    proved: bool
    reason: str


def check_candidates(names: Sequence[str]) -> None:
    """Raise unless every loss can be made, before anything is trained."""
    if not names or len(set(names)) < len(names):
        raise ValueError(f"losses must be one or more, each once, got {', '.join(names) or 'none'}")
    for name in names:
        parse(name)


def judge(names: Sequence[str], found: Estimated) -> list[Candidate]:
    """The certificate of each loss for the estimated noise and for its resamples.

    Args:
        names: Losses or expressions.
        found: The noise.
    """
    return [_judge(name, found) for name in names]


def _judge(name: str, found: Estimated) -> Candidate:
    loss = parse(name)
    status: Status = "HOPELESS"
    try:
        verdict = certify(loss, found.noise.T)
        status, reason = verdict.status, verdict.reason
    except ValueError as error:
        if not found.dominated:
            raise
        reason = str(error)
    share = None
    if status == "PROVED" and found.resampled:
        share = sum(_proved(loss, T) for T in found.resampled) / len(found.resampled)
    return Candidate(name, str(loss), code_of(name), status, reason, share)


def _proved(loss: object, T: Tensor) -> bool:
    try:
        return certify(loss, T, refute=False).status == "PROVED"  # type: ignore[call-overload, no-any-return]
    except ValueError:  # a wrong label is the most frequent one of a class
        return False


def code_of(name: str) -> str:
    """The line of code that makes a loss."""
    try:
        entry = find(name)
    except SpecError:
        return f'criterion = lossforge.parse("{name}")'
    if inspect.isclass(entry.make):
        return f"criterion = lossforge.{entry.make.__name__}()"
    return f'criterion = lossforge.make("{entry.name}")'


def admitted(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those worth a training: the losses that are proved, or all if none is."""
    return [one for one in candidates if one.status == "PROVED"] or list(candidates)


def with_accuracies(candidates: Sequence[Candidate], found: Mapping[str, float]) -> list[Candidate]:
    """The candidates with what their networks predicted."""
    return [replace(one, accuracy=found.get(one.name)) for one in candidates]


def recommend(candidates: Sequence[Candidate], found: Estimated) -> Recommendation:
    """The first loss that is proved and predicts held-out labels within a point of the best.

    Where none is proved, all are compared. A loss that is not proved never wins over one that is,
    however well it predicts: where labels are wrong in a way that can be learnt, a network that
    learns it predicts them better.

    Args:
        candidates: In order of preference.
        found: The noise.
    """
    field = admitted(candidates)
    best = max(one.accuracy or 0.0 for one in field)
    chosen = next(one for one in field if (one.accuracy or 0.0) >= best - LEVEL)
    reason = _reason(chosen, field, found)
    return Recommendation(chosen.name, chosen.code, chosen.status == "PROVED", reason)


def _reason(chosen: Candidate, field: Sequence[Candidate], found: Estimated) -> str:
    parts = []
    if chosen.status == "PROVED":
        parts.append(f"{chosen.name} is proved robust to the estimated noise")
        if chosen.proved_share is not None:
            parts[-1] += f", and to {100 * chosen.proved_share:.0f} % of resampled estimates"
    elif found.dominated:
        parts.append(
            "no loss can be robust here, because a class has more wrong labels of one kind"
        )
        parts[-1] += f" than right ones; {chosen.name} is a default, not a cure"
    else:
        parts.append(f"no candidate is proved robust to the estimated noise, {chosen.name} neither")
    if chosen.accuracy is not None:
        parts.append(_learning(chosen, field))
    if found.rate.high < LITTLE:
        parts.append("with so few wrong labels cross entropy would do as well")
    return "; ".join(parts)


def _learning(chosen: Candidate, field: Sequence[Candidate]) -> str:
    said = f"trained with it, a network predicts {100 * (chosen.accuracy or 0):.1f} % of "
    said += "held-out labels, noisy as they are"
    others = [one for one in field if one is not chosen]
    if not others:
        return said
    best = max(others, key=lambda one: one.accuracy or 0.0)
    kind = "proved " if chosen.status == "PROVED" else ""
    said += f"; the best other {kind}loss, {best.name}, {100 * (best.accuracy or 0):.1f} %"
    if (best.accuracy or 0.0) > (chosen.accuracy or 0.0):
        said += ", within a point, where the order of preference decides"
    return said
