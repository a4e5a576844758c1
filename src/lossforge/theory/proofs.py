r"""Proofs for rows in which the ratio tests do not decide.

The derivative of the weighted loss with respect to the target's logit is
:math:`-x \sum_s y_s B_s(x, y_s)` (see `bounds`), and the rivals' probabilities y share 1 - x. If
:math:`y B_s(x, y) \ge \nu y - d_s` for all y, the sum is at least :math:`\nu (1 - x) - \sum_s d_s`.
For every cell of x a slope nu is looked for that makes this nonnegative.
"""

from typing import Literal

import torch
from torch import Tensor

from .bounds import Bounds, Tables, edges
from .forms import Form
from .full_confidence import full_confidence_is_best
from .ratio_tests import RatioTest, mixture_ratios, monotone_tests, normalised, within
from .strips import heaviest_by_itself
from .verdict import Level
from .weights import Rows

HOW: dict[Level, str] = {
    "joint": "the other part makes up for it (joint certificate)",
    "logits": "the sum over all rivals is nonnegative (linear bound)",
}
_SIDE, _SLOPES, _GROUPS = 160, 33, 8


class Prover:
    """Bounds of the parts of a loss, and the proofs they give.

    Parts that are neither target separation nor binary reduction must not fall short themselves:
    what is proved is that the others do not.
    """

    def __init__(self, form: Form, cells: int, tables: Tables) -> None:
        self._form, self._cells, self._tables = form, cells, tables
        self._bounds = Bounds(form, cells, tables)

    @property
    def certified(self) -> bool:
        """Whether the bounds are proved themselves."""
        return self._bounds.certified

    @property
    def strict(self) -> bool:
        """Whether no density vanishes, but perhaps at an end of [0, 1]."""
        return self._bounds.positive

    def monotone(self, row: Rows, tests: list[RatioTest], *, thorough: bool = True) -> Level | None:
        """The level at which the claim "monotone" is proved in a row; None where it is not.

        Args:
            row: One row.
            tests: The ratio tests of this row.
            thorough: Whether to try what takes longer than to look for a counterexample.
        """
        if row.num_classes > 2 and any(test.exact and not bool(test.passed[0]) for test in tests):
            # nothing makes up for a binary reduction that fails: it rules where x + y tends to 0
            return None
        return self._monotone(*_numbers(row), thorough)

    def globally(self, row: Rows) -> bool:
        """Whether full confidence is proved best in a row."""
        tests = monotone_tests(self._form, row, self._cells, self._tables)
        if all(bool(test.passed[0]) for test in tests):
            return True
        if self._form.normalised and not bool(normalised(row).passed[0]):
            return False
        if self._globally(*_numbers(row), True):
            return True
        # where the cells were too wide, those of the logits' proof may do
        return self.monotone(row, tests) is not None

    def proves(
        self,
        claim: Literal["monotone", "global"],
        own: float,
        rivals: Tensor,
        total: float,
        *,
        thorough: bool,
    ) -> bool:
        """Whether a claim is proved of weights that need not sum to `total`.

        Args:
            claim: The claim.
            own: The target's weight.
            rivals: (K - 1,) the others' weights.
            total: What `own` and the others' true weights sum to.
            thorough: Whether to try what takes long.
        """
        if claim == "global":
            return self._globally(own, rivals, total, thorough)
        reduction = self._form.reduction
        if reduction is not None and len(rivals) > 1:
            found = mixture_ratios(reduction, self._cells, self._tables)
            if not bool(within(found.rho_M, own / rivals.max())):
                return False
        return self._monotone(own, rivals, total, thorough) is not None

    def _monotone(self, own: float, rivals: Tensor, total: float, thorough: bool) -> Level | None:
        heaviest = float(rivals.max())
        if len(rivals) == 1:
            return "joint" if self._bounds.transfers(own, heaviest, total) else None
        both = self._form.separation is not None and self._form.reduction is not None
        if both and self._bounds.joint(own, heaviest, total):
            return "joint"
        prove = sum_is_nonnegative if thorough else one_rival_at_a_time
        return "logits" if prove(self._bounds, own, rivals, total) else None

    def _globally(self, own: float, rivals: Tensor, total: float, thorough: bool) -> bool:
        groups = _grouped(rivals)
        return full_confidence_is_best(self._bounds, own, groups, total, thorough=thorough)


def _numbers(row: Rows) -> tuple[float, Tensor, float]:
    """The target's weight, (K - 1,) the others', and their sum."""
    others = row.weights[0, torch.arange(row.num_classes) != row.targets[0]]
    return float(row.own[0]), others, float(row.totals[0])


def sum_is_nonnegative(bounds: Bounds, own: float, rivals: Tensor, total: float) -> bool:
    """Whether raising the target's logit never hurts in a row.

    Args:
        bounds: Of the loss; the effect of a binary reduction must be known not to be negative.
        own: The target's weight.
        rivals: The others' weights.
        total: The sum of all.
    """
    if _separated(bounds, own, rivals, total) or heaviest_by_itself(bounds, own, rivals, total):
        return True
    if not bounds.reduces:
        return False
    effects = _effects(bounds, own, rivals, total)
    return bool((_one_by_itself(effects) | _by_slopes(effects)).all())


def one_rival_at_a_time(bounds: Bounds, own: float, rivals: Tensor, total: float) -> bool:
    """The same by the quicker half of the proof."""
    return bool(_one_by_itself(_effects(bounds, own, rivals, total)).all())


def _by_slopes(effects: list[tuple[int, Tensor]]) -> Tensor:
    """(x cells,) where a slope proves it."""
    step, edge = 1 / _SIDE, edges(_SIDE)
    x, y = edge[:, None, None], edge[None, :, None]
    within = x + y < 1  # cells of y that leave room for x
    values = torch.cat([effect[within[..., 0]] for _, effect in effects])
    values = values[values.isfinite()]
    if not len(values):
        return torch.zeros(len(edge), dtype=torch.bool)
    shares = torch.linspace(0, 1, _SLOPES, dtype=torch.float64)
    slopes = torch.quantile(values[:: max(1, len(values) // 100_000)], shares)
    # the slope that the corner x = 1, y = 0 needs
    corner = torch.stack([effect[-1, 0] for _, effect in effects]).min()[None]
    slopes = torch.cat([slopes, corner])
    spent = torch.zeros(())
    for count, effect in effects:
        excess = effect[..., None] - slopes
        least = torch.where(excess >= 0, y, y + step) * excess
        spent = spent - count * torch.where(within, least, 0.0).amin(1).clamp(max=0)
    room = (1 - edge[:, None] - step * (slopes >= 0)).clamp(min=0)
    return (slopes * room - spent >= 0).any(1)


def _one_by_itself(effects: list[tuple[int, Tensor]]) -> Tensor:
    """(x cells,) where it holds with the heaviest rival as it is, the others by their worst."""
    step, edge = 1 / _SIDE, edges(_SIDE)
    (count, effect), *others = effects
    if count > 1 or not others:
        return torch.zeros(len(edge), dtype=torch.bool)
    x, y = edge[:, None], edge[None]
    within = x + y < 1
    # of the cells that the others can reach
    worst = torch.stack([other for _, other in others]).amin(0).cummin(1).values
    number = torch.arange(len(edge))
    reach = (len(edge) - number[:, None] - number).clamp(0, len(edge) - 1)
    worst = worst.gather(1, reach)
    first = torch.where(effect >= 0, y, y + step) * effect
    left = torch.where(worst >= 0, (1 - x - y - 2 * step).clamp(min=0), 1 - x - y)
    return ((first + left * worst >= 0) | (effect >= 0) & (worst >= 0) | ~within).all(1)


def _separated(bounds: Bounds, own: float, rivals: Tensor, total: float) -> bool:
    """The same for target separation alone, whose x and y come apart: on all cells."""
    start, step = edges(bounds.cells), 1 / bounds.cells
    pull, _ = bounds.theta(own, total, start, start + step)
    groups = _grouped(rivals)
    pushes = [bounds.theta(weight, total, start, start + step)[1] for _, weight in groups]
    # a cell of x leaves room for the cells of y that reach below 1 - x
    last = (bounds.cells - torch.arange(bounds.cells)).clamp(max=bounds.cells - 1)
    steepest = torch.stack([push.cummax(0).values for push in pushes]).amax(0)
    if not bool(steepest.isfinite().all()):
        return False
    if all(bool((push <= 0).all()) for push in pushes[1:]) and groups[0][0] == 1:
        # one rival counts, and what it leaves can go to others at no cost
        most = ((start + step) * pushes[0]).clamp(min=0).cummax(0).values[last]
        room = (1 - start - step * (pull >= 0)).clamp(min=0)
        if bool(((pull * room >= most) | (pull >= steepest[last])).all()):
            return True
    spread = torch.linspace(0, 1, 4 * _SLOPES, dtype=torch.float64)
    low, high = float(torch.stack(pushes).min()), float(steepest[-1])
    places = (bounds.cells * spread.square()).long().clamp(max=bounds.cells - 1)
    slopes = torch.cat([low + (high - low) * spread, steepest[places]])
    spent = torch.zeros(())
    for (count, _), push in zip(groups, pushes, strict=True):
        excess = push[:, None] - slopes
        gain = torch.where(excess >= 0, start[:, None] + step, start[:, None]) * excess
        spent = spent + count * gain.cummax(0).values.clamp(min=0)[last]
    lead = pull[:, None] - slopes
    room = (1 - start[:, None] - step * (lead >= 0)).clamp(min=0)
    return bool((lead * room - spent >= 0).any(1).all())


def _effects(bounds: Bounds, own: float, rivals: Tensor, total: float) -> list[tuple[int, Tensor]]:
    """Bounds of B for each group of rivals, with their number."""
    return [(count, _effect(bounds, own, weight, total)) for count, weight in _grouped(rivals)]


def _effect(bounds: Bounds, own: float, rival: float, total: float) -> Tensor:
    """(x cells, y cells) lower bounds of B, the reductions' part known not to be negative."""
    step, edge = 1 / _SIDE, edges(_SIDE)
    low, _ = bounds.theta(own, total, edge, edge + step)
    _, high = bounds.theta(rival, total, edge, edge + step)
    effect = low[:, None] - high[None]
    x0, y0 = torch.meshgrid(edge, edge, indexing="ij")
    x1, y1 = x0 + step, y0 + step
    start = torch.where(x0 > 0, x0 / (x0 + y1), 0.0)
    stop = torch.where(y0 > 0, x1 / (x1 + y0), 1.0)
    gain, _ = bounds.pair(own, rival, start, stop)
    return effect + gain.clamp(min=0) / ((bounds.num_classes - 1) * (x1 + y1) ** 2)


def _grouped(rivals: Tensor) -> list[tuple[int, float]]:
    """Rivals in a few groups, each counted with its heaviest weight."""
    ordered = rivals.sort(descending=True).values
    distinct = torch.unique_consecutive(ordered)
    if len(distinct) <= _GROUPS:
        return [(int((ordered == weight).sum()), float(weight)) for weight in distinct]
    # the heaviest one by one: they matter most
    heads = [(1, float(weight)) for weight in ordered[: _GROUPS - 2]]
    rest = ordered[_GROUPS - 2 :]
    half = len(rest) // 2
    return [*heads, (half, float(rest[0])), (len(rest) - half, float(rest[half]))]
