"""Candidates for the estimated noise: what is proved about each, and what was measured."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from torch import Tensor

from ..catalog import find, outside, parse, read
from ..errors import SpecError
from ..theory import Witness, certify
from .noise import Estimated
from .recipes import Recipe
from .trials import Trial

# In order of preference, which decides between losses that certificates and training cannot
# separate. BEF and BQF are level over all committed results; BQF was put first after seeing those
# on digits with asymmetric noise, where it is better.
CANDIDATES = (
    *("BQF", "BEF", "ANL-CE", "JAL-CE", "NCE+RCE"),
    *("NCE+AGCE", "CEeps+MAE", "GCE", "SCE", "CE"),
)
# What was nearest to the best most often, and never far from it, in 66 simulated cases; the lead
# that another needs, since smaller ones were luck or noise that looks like signal (docs/audit.md).
USUAL, CLEAR = "linear, suspects dropped", 0.08
LITTLE = 0.02  # noise rates below this make the choice of a loss unimportant
Kind = Literal["loss", "procedure"]
Status = Literal["PROVED", "REFUTED", "UNDECIDED", "UNCERTIFIED", "HOPELESS"]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A loss or a procedure, and its results for the estimated noise.

    Args:
        name: As given by the caller.
        expression: The loss with all its parameters.
        code: The line of code that makes the loss.
        status: Of the claim "monotone", see `lossforge.theory.certify`; HOPELESS if a wrong label
            of a class is at least as frequent as the correct one, so that the claim holds for no
            loss.
        reason: For the status, in one sentence.
        proved_share: The share of resampled transition matrices for which the claim is also proved;
            None if it is not proved for the estimate itself.
        accuracy: The share of held-out noisy labels that networks trained with it predict; None if
            none was trained.
        witness: A prediction at which the claim fails, if one was found.
        score: The estimated share of held-out samples whose true class they predict.
        judged: The number of held-out samples.
        level: Whether it was judged on all of them, and its score is that of the best or within one
            standard error of the difference.
        kind: A loss, or a procedure with cross entropy, about which nothing is proved.
        commands: That do what was measured; empty for a loss.
    """

    name: str
    expression: str
    code: str
    status: Status
    reason: str
    proved_share: float | None
    accuracy: float | None = None
    witness: Witness | None = None
    score: float | None = None
    judged: int = 0
    level: bool = False
    kind: Kind = "loss"
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recommendation:
    """What to train with.

    Args:
        name: Of the candidate.
        code: The line of code that makes the loss.
        proved: Whether it is proved robust to the estimated noise.
        reason: For this choice.
        commands: That do what was measured; empty for a loss.
    """

    name: str
    code: str
    proved: bool
    reason: str
    commands: tuple[str, ...] = ()


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


def procedure(recipe: Recipe, commands: tuple[str, ...]) -> Candidate:
    """Return a procedure as a candidate, about which nothing is proved."""
    reason = "certificates are about losses; nothing is proved about a procedure"
    code = code_of(recipe.loss)
    text = read(recipe.loss).text
    return Candidate(
        recipe.name, text, code, "UNCERTIFIED", reason, None, kind="procedure", commands=commands
    )


def with_trials(candidates: Sequence[Candidate], found: Mapping[str, Trial]) -> list[Candidate]:
    """Add what was measured to the candidates that were tried."""
    return [
        replace(one, **asdict(found[one.name])) if one.name in found else one for one in candidates
    ]


def recommend(candidates: Sequence[Candidate], found: Estimated) -> Recommendation:
    """Choose `USUAL`, unless another candidate is clearly better or it was not tried.

    Then it is the first proved loss that is level with the best, or else the best. Without trials,
    the first proved loss is chosen, or the first loss if none is.

    Args:
        candidates: In order of preference.
        found: The estimated noise.
    """
    level = [one for one in candidates if one.level]
    losses = [one for one in candidates if one.kind == "loss"]
    usual = [one for one in candidates if one.name == USUAL and one.score is not None]
    first = [one for one in usual if max(map(_score, level)) <= _score(one) + CLEAR]
    first += [one for one in level or losses if one.status == "PROVED"]
    chosen = first[0] if first else max(level, key=_score) if level else losses[0]
    reason = _reason(chosen, candidates, found)
    return Recommendation(
        chosen.name, chosen.code, chosen.status == "PROVED", reason, chosen.commands
    )


def _score(one: Candidate) -> float:
    return one.score or 0.0


def _reason(chosen: Candidate, candidates: Sequence[Candidate], found: Estimated) -> str:
    parts = [_measured(chosen, candidates)] if chosen.score is not None else []
    parts.append(_proof(chosen, candidates, found))
    if found.rate.high < LITTLE:
        parts.append("with so few wrong labels plain cross entropy would do as well")
    return "; ".join(parts)


def _proof(chosen: Candidate, candidates: Sequence[Candidate], found: Estimated) -> str:
    if chosen.status == "PROVED":
        proof = f"{chosen.name} is proved robust to the estimated noise"
        if chosen.proved_share is not None:
            proof += f", and to {100 * chosen.proved_share:.0f} % of resampled estimates"
        return proof
    if found.dominated:
        return (
            "no loss can be robust here, because a class has more wrong labels of one kind than "
            f"correct ones; {chosen.name} is a default, not a cure"
        )
    proved = [one.name for one in candidates if one.status == "PROVED"]
    if not proved:
        return f"no candidate is proved robust to the estimated noise, {chosen.name} included"
    return f"it has no guarantee for this noise; {' and '.join(proved[:2])} would have one"


def _measured(chosen: Candidate, candidates: Sequence[Candidate]) -> str:
    text = (
        f"trained so, a model predicts the true class of about {100 * _score(chosen):.1f} % of "
        f"{chosen.judged:,} held-out samples"
    )
    others = [one for one in candidates if one.judged >= chosen.judged and one is not chosen]
    if not others:
        return text
    best = max(others, key=lambda one: (one.judged, _score(one)))  # of those tried longest
    share = f"{best.name} with {100 * _score(best):.1f} %"
    if best.judged > chosen.judged:
        share += f" of {best.judged:,}"
    if _score(best) > _score(chosen):
        if chosen.name == USUAL:
            return f"{text}; {share} leads by less than {100 * CLEAR:.0f} points"
        return f"{text}; {share} is not clearly better"
    return f"{text}; next is {share}"
