"""Whether a loss is robust to a noise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, get_args, overload

import torch
from torch import Tensor

from ..base import BaseFunction
from ..constructions import Negative, ViewsDivergence
from ..errors import check_integer
from ..loss import Loss
from .cosine import along_bisector, beside_cosine, least_even, rest_of
from .counterexamples import find_rise_of
from .device import on_cpu
from .enclosure import CELLS, Table
from .forms import Form, take_apart
from .global_claim import certify_global
from .instances import prove_rows
from .monotone import ASSUMPTIONS, certify_monotone, certify_transfers
from .ratio_tests import coefficients, normalised
from .verdict import Claim, Verdict, Witness
from .weights import Rows, dominant, instance_rows, read_noise

_OTHER = (Negative, ViewsDivergence)  # their labels or inputs are not those of a noise
_DECIDE = {
    "monotone": certify_monotone,
    "transfers": certify_transfers,
    "global": certify_global,
}


@dataclass(frozen=True)
class InstanceVerdict:
    """For how many instances a claim is proved.

    Args:
        proved: (N,) whether it is, instance by instance.
        dominated: (N,) whether another label is at least as likely as the true one: no loss helps.
        claim: The claim.
    """

    proved: Tensor
    dominated: Tensor
    claim: Claim

    @property
    def fraction(self) -> float:
        """The share of instances for which the claim is proved."""
        return float(self.proved.double().mean())

    def __str__(self) -> str:
        share = float(self.dominated.double().mean())
        text = f"{self.claim}: proved for {self.fraction:.1%} of {len(self.proved)} instances"
        return text + (f"; in {share:.1%} a wrong label dominates" if share else "")


class Instances(Protocol):
    """A noise of instances, such as `lossforge.noise.InstanceNoise`."""

    @property
    def rows(self) -> Tensor:
        """(N, K) label distributions."""

    @property
    def true(self) -> Tensor:
        """(N,) true classes."""


@overload
def certify(  # type: ignore[overload-overlap]
    loss: Loss,
    noise: Instances,
    *,
    num_classes: int | None = None,
    claim: Claim = "monotone",
    cells: int = CELLS,
    tables: Mapping[BaseFunction, Table] | None = None,
    refute: bool = True,
) -> InstanceVerdict: ...


@overload
def certify(
    loss: Loss,
    noise: object,
    *,
    num_classes: int | None = None,
    claim: Claim = "monotone",
    cells: int = CELLS,
    tables: Mapping[BaseFunction, Table] | None = None,
    refute: bool = True,
) -> Verdict: ...


@on_cpu
def certify(
    loss: Loss,
    noise: object,
    *,
    num_classes: int | None = None,
    claim: Claim = "monotone",
    cells: int = CELLS,
    tables: Mapping[BaseFunction, Table] | None = None,
    refute: bool = True,
) -> Verdict | InstanceVerdict:
    """Decide a claim about the weighted loss under a noise, with a proof or a counterexample.

    Args:
        loss: Target separations, binary reductions and their sums are decided; normalised losses
            under symmetric noise; a bounded cosine by itself and beside these; of other losses,
            only a counterexample can be found.
        noise: A transition matrix, a vector of label weights, or an object that carries one; see
            `read_noise`. For instance-dependent noise (an object with ``rows`` and ``true``) the
            answer is that of `certify_instances`.
        num_classes: What the number of classes must be, if it is known.
        claim: "monotone" (the default: raising the true class's logit never increases the expected
            loss), "transfers" or "global"; see `CLAIMS`.
        cells: Of the enclosure table where a base function has no closed form.
        tables: Enclosures of densities by base function, e.g. from `from_intervals`.
        refute: Whether to look for a counterexample where the quick tests fail.

    Example:
        >>> from lossforge import BEF
        >>> from lossforge.noise import symmetric
        >>> certify(BEF(), symmetric(10, 0.8)).status
        'PROVED'
    """
    check_claim(claim)
    check_integer("cells", cells, 8)
    rows = read_noise(noise, num_classes)
    if rows.kind == "instances":
        return certify_instances(
            loss, rows.weights, rows.targets, claim=claim, cells=cells, tables=tables
        )
    check_loss(loss, rows.num_classes)
    form = take_apart(loss, rows.num_classes)
    return decide(loss, form, rows, claim, cells, dict(tables or {}), refute)


@on_cpu
def certify_instances(
    loss: Loss,
    noise: object,
    true: Tensor | None = None,
    *,
    claim: Claim = "monotone",
    cells: int = CELLS,
    tables: Mapping[BaseFunction, Table] | None = None,
) -> InstanceVerdict:
    """The share of instances for which a claim is proved.

    The ratio tests decide most rows at once. For the others 640 proofs at most are tried, each of
    which serves all rows that are no harder, so that 50,000 instances take less than a minute.
    What is then open counts as not proved, though `certify` may prove some of it row by row.

    Args:
        loss: A loss.
        noise: (N, K) label distributions of the instances, or an object with ``rows`` and ``true``.
        true: (N,) true classes; the largest weight of each row if None.
        claim: See `certify`.
        cells: See `certify`.
        tables: See `certify`.
    """
    check_claim(claim)
    check_integer("cells", cells, 8)
    if hasattr(noise, "rows") and hasattr(noise, "true"):
        rows = instance_rows(noise.rows, noise.true if true is None else true)
    else:
        rows = instance_rows(noise, true)
    check_loss(loss, rows.num_classes)
    clear = dominant(rows)
    proved = torch.zeros_like(clear)
    form = take_apart(loss, rows.num_classes)
    kept = clear.nonzero()[:, 0]
    if len(kept) and not form.unknown and (claim != "global" or _bounded(form)):
        proved[kept] = prove_rows(form, rows.pick(kept), claim, cells, dict(tables or {}))
    return InstanceVerdict(proved, ~clear, claim)


def check_claim(claim: str) -> None:
    """Raise unless it is one of the claims."""
    if claim not in get_args(Claim):
        raise ValueError(f"claim must be one of {', '.join(get_args(Claim))}, got {claim!r}")


def check_loss(loss: object, num_classes: int) -> None:
    """Raise unless it is a loss without a policy that changes the weights of labels."""
    if not isinstance(loss, Loss):
        raise TypeError(f"loss must be a Loss, got {loss!r}; lossforge.parse reads a text")
    if loss.weight is not None or loss.label_smoothing:
        raise ValueError(
            "loss must have no class weights and no label smoothing: these change the noise that "
            f"the loss sees; put them into the noise, and certify the loss without; got {loss!r}"
        )
    if 0 <= loss.ignore_index < num_classes:
        raise ValueError(
            "loss must not ignore the labels of a class, which changes the noise that it sees; "
            f"ignore_index must not be in 0..{num_classes - 1}, got {loss.ignore_index}"
        )


def decide(
    loss: Loss,
    form: Form,
    rows: Rows,
    claim: Claim,
    cells: int,
    tables: dict[BaseFunction, Table],
    refute: bool,
) -> Verdict:
    """The verdict on a loss whose form is known, or is known to be unknown; see `certify`."""
    if claim == "global" and not _bounded(form):
        return _unbounded(form, rows)
    found = None
    if form.cosine and not form.unknown:
        rest = rest_of(form)
        if rest is not None:
            found = decide(loss, rest, rows, claim, cells, tables, refute and claim == "global")
        found = beside_cosine(form, rows, claim, found)
        if found.status in ("PROVED", "REFUTED"):
            return found
    elif not form.unknown and (form.understood or bool(normalised(rows).passed.all())):
        found = _DECIDE[claim](form, rows, cells, tables, refute)
        found = found.having(assumptions=(*found.assumptions, *form.assumptions))
        if form.understood or found.status == "PROVED":
            return found
    others = any(isinstance(part, _OTHER) for part in form.unknown)
    searched = refute and claim == "monotone" and not others
    if searched:
        for row in least_even(rows) if form.cosine else _sample(rows):
            one = rows.pick(row)
            witness = find_rise_of(loss, one, along_bisector(one) if form.cosine else None)
            if witness is not None:
                return Verdict(
                    "REFUTED",
                    claim,
                    "gradient of the loss itself",
                    "there is a prediction at which a larger logit of the true class hurts.",
                    "logits",
                    row=int(rows.targets[row]),
                    witness=witness,
                    assumptions=ASSUMPTIONS,
                )
    limits = ("normalised losses are decided where all wrong labels are equally likely",)
    why = "; ".join((*form.doubts, *(limits if form.normalised else ())))
    tried = ", and no counterexample was found" if searched else ""
    reason = f"no theorem applies{tried} ({why})."
    return found or Verdict("UNCERTIFIED", claim, "none", reason)


def _sample(rows: Rows) -> list[Tensor]:
    """A few rows: the most difficult, and some others."""
    order = (rows.own / rows.rivals[0]).argsort()
    return [order[place : place + 1] for place in range(min(4, len(order)))]


def _bounded(form: Form) -> bool:
    mixtures = [form.reduction]
    if form.separation is not None:
        mixtures += [form.separation.own, form.separation.others]
    return all(mixture is None or mixture.bounded for mixture in mixtures)


def _unbounded(form: Form, rows: Rows) -> Verdict:
    """An unbounded base function: full confidence costs infinitely much, or nothing is known."""
    rule = "values at full confidence"
    separation = form.separation
    if form.understood and separation is not None and separation.a is not None:
        c = coefficients(rows.weights, rows.totals[:, None], separation.a)
        c = c.scatter(1, rows.targets[:, None], 0.0)
        worst = int(c.amax(1).argmax())
        # with negative coefficients among them the sum may tend to anything
        if float(c[worst].max()) > 0 and float(c[worst].min()) >= 0 and form.reduction is None:
            weights = tuple(rows.weights[worst].tolist())
            probs = (rows.weights[worst] + 1e-3) / (1 + 1e-3 * rows.num_classes)
            total = tuple((probs / probs.sum()).tolist())
            target = int(rows.targets[worst])
            reason = "full confidence costs infinitely much where a label is wrong."
            witness = Witness(weights, target, total, float("inf"))
            return Verdict("REFUTED", "global", rule, reason, "global", row=target, witness=witness)
    reason = "the loss is unbounded; nothing is proved about its minimum."
    return Verdict("UNCERTIFIED", "global", rule, reason)
