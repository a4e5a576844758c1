"""Rank candidate losses for the estimated noise: by certificate first, then by accuracy."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from torch import Tensor

from ..catalog import find, outside, parse, read
from ..errors import SpecError
from ..theory import Witness, certify
from .noise import Estimated

# In order of preference, which decides between losses that certificates and training cannot
# separate. BEF and BQF are level over all committed results; BQF was put first after seeing those
# on digits with asymmetric noise, where it is better.
CANDIDATES = (
    *("BQF", "BEF", "ANL-CE", "JAL-CE", "NCE+RCE"),
    *("NCE+AGCE", "CEeps+MAE", "GCE", "SCE", "CE"),
)
LEVEL = 0.01  # differences in accuracy on held-out labels up to this are chance
LITTLE = 0.02  # noise rates below this make the choice of a loss unimportant
Status = Literal["PROVED", "REFUTED", "UNDECIDED", "UNCERTIFIED", "HOPELESS"]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A loss, and its results for the estimated noise.

    Args:
        name: As given by the caller.
        expression: With all its parameters.
        code: The line of code that makes it.
        status: Of the claim "monotone", see `lossforge.theory.certify`; HOPELESS if a wrong label
            of a class is at least as frequent as the correct one, so that the claim holds for no
            loss.
        reason: For the status, in one sentence.
        proved_share: The share of resampled transition matrices for which the claim is also proved;
            None if it is not proved for the estimate itself.
        accuracy: The share of held-out noisy labels that networks trained with it predict; None if
            none was trained.
        witness: A prediction at which the claim fails, if one was found.
    """

    name: str
    expression: str
    code: str
    status: Status
    reason: str
    proved_share: float | None
    accuracy: float | None = None
    witness: Witness | None = None


@dataclass(frozen=True)
class Recommendation:
    """The loss to use.

    Args:
        name: Of the candidate.
        code: The line of code that makes it.
        proved: Whether it is proved robust to the estimated noise.
        reason: For this choice.
    """

    name: str
    code: str
    proved: bool
    reason: str


def check_candidates(names: Sequence[str]) -> None:
    """Raise unless every loss is valid and occurs once."""
    if not names or len(set(names)) < len(names):
        raise ValueError(f"losses must be one or more, each once, got {', '.join(names) or 'none'}")
    for name in names:
        parse(name)


def certify_candidates(names: Sequence[str], found: Estimated) -> list[Candidate]:
    """Certify each loss for the estimated noise and for its resamples.

    Args:
        names: Losses or expressions.
        found: The estimated noise.
    """
    return [_certify(name, found) for name in names]


def _certify(name: str, found: Estimated) -> Candidate:
    reading = read(name)
    loss = reading.loss
    status: Status = "HOPELESS"
    witness = None
    try:
        verdict = certify(loss, found.estimate.T)
        status, reason, witness = verdict.status, verdict.reason, verdict.witness
    except ValueError as error:
        if not found.dominated:
            raise
        reason = str(error)
    share = None
    if status == "PROVED" and found.resampled:
        share = sum(_proved(loss, T) for T in found.resampled) / len(found.resampled)
    return Candidate(name, reading.text, code_of(name), status, reason, share, witness=witness)


def _proved(loss: object, T: Tensor) -> bool:
    try:
        return certify(loss, T, refute=False).status == "PROVED"  # type: ignore[call-overload, no-any-return]
    except ValueError:  # a wrong label is the most frequent label of a class
        return False


def code_of(name: str) -> str:
    """Return the line of code that makes a loss."""
    if outside(name):
        return f'lossforge.catalog.admit(["{name}"]); criterion = lossforge.parse("{name}")'
    try:
        entry = find(name)
    except SpecError:
        return f'criterion = lossforge.parse("{name}")'
    if inspect.isclass(entry.make):
        return f"criterion = lossforge.{entry.make.__name__}()"
    return f'criterion = lossforge.make("{entry.name}")'


def admitted(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Select the candidates to train with: those that are proved, or all if none is."""
    return [one for one in candidates if one.status == "PROVED"] or list(candidates)


def with_accuracies(candidates: Sequence[Candidate], found: Mapping[str, float]) -> list[Candidate]:
    """Add the accuracies of their networks to the candidates."""
    return [replace(one, accuracy=found.get(one.name)) for one in candidates]


def recommend(candidates: Sequence[Candidate], found: Estimated) -> Recommendation:
    """Choose the first proved loss whose accuracy is within a point of the best proved one.

    If none is proved, all are compared. A loss that is not proved never wins over one that is,
    however accurate it is: if the noise is systematic, a network that learns the noise predicts
    held-out labels better.

    Args:
        candidates: In order of preference.
        found: The estimated noise.
    """
    field = admitted(candidates)
    best = max(one.accuracy or 0.0 for one in field)
    chosen = next(one for one in field if (one.accuracy or 0.0) >= best - LEVEL)
    reason = _reason(chosen, field, found)
    return Recommendation(chosen.name, chosen.code, chosen.status == "PROVED", reason)


def _reason(chosen: Candidate, field: Sequence[Candidate], found: Estimated) -> str:
    parts = []
    if chosen.status == "PROVED":
        proof = f"{chosen.name} is proved robust to the estimated noise"
        if chosen.proved_share is not None:
            proof += f", and to {100 * chosen.proved_share:.0f} % of resampled estimates"
        parts.append(proof)
    elif found.dominated:
        parts.append(
            "no loss can be robust here, because a class has more wrong labels of one kind than "
            f"correct ones; {chosen.name} is a default, not a cure"
        )
    else:
        parts.append(
            f"no candidate is proved robust to the estimated noise, {chosen.name} included"
        )
    if chosen.accuracy is not None:
        parts.append(_accuracies(chosen, field))
    if found.rate.high < LITTLE:
        parts.append("with so few wrong labels cross entropy would do as well")
    return "; ".join(parts)


def _accuracies(chosen: Candidate, field: Sequence[Candidate]) -> str:
    accuracy = chosen.accuracy or 0.0
    text = f"a network trained with it predicts {100 * accuracy:.1f} % of held-out labels, "
    text += "which are noisy too"
    others = [one for one in field if one is not chosen]
    if not others:
        return text
    best = max(others, key=lambda one: one.accuracy or 0.0)
    kind = "proved " if chosen.status == "PROVED" else ""
    text += f"; the best other {kind}loss, {best.name}, {100 * (best.accuracy or 0):.1f} %"
    if (best.accuracy or 0.0) > accuracy:
        text += ", within a point, so that the order of preference decides"
    return text
