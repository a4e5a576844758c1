r"""The gradient field of the expected loss on the triangle of three-class predictions.

Under label weights w the expected loss is :math:`W(u) = \sum_i w_i L(u, i)`. A step against its
gradient g in the logits moves the prediction by :math:`\dot u = -(\mathrm{diag}(u) - u u^T) g`.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..loss import Loss
from ..noise import NoiseSpec
from ..theory import certify
from .curves import evaluate
from .style import Theme, ThemeName, caption, find_theme, panels, styled

CORNERS = torch.tensor([[0.5, 3**0.5 / 2], [0.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
_SIDE = 17  # arrows along an edge
_FINE = 90  # points along an edge of the shaded grid
_INSIDE = 2e-3  # the least probability of a stationary point that is shown
_STEPS, _STARTS = 60, 9  # of the search for stationary points
_DELTA = 1e-4  # of a logit, in differences of gradients
_FLAT = 1e-9  # relative: no slope at all
_MARKS = {"minimum": ("o", "full"), "saddle": ("D", "none"), "maximum": ("o", "none")}


@dataclass(frozen=True)
class Stationary:
    """A prediction at which the gradient of the expected loss vanishes.

    Args:
        probs: The prediction.
        kind: "minimum", "saddle" or "maximum", in the logits.
    """

    probs: tuple[float, float, float]
    kind: str


def simplex(
    loss: Loss, noise: object = None, *, axes: Any = None, theme: ThemeName = "light"
) -> Any:
    """Draw where gradient descent takes three-class predictions, under clean or noisy labels.

    The true class is at the top. Shaded is where raising its logit increases the expected loss;
    a star is the prediction by which `lossforge.theory.certify` refutes that it never does. Dots
    are minima inside the triangle, open dots maxima and open diamonds saddles.

    Args:
        loss: A loss of three classes.
        noise: Clean labels if None; a text such as "pair:0.4", a (3, 3) transition matrix, whose
            first row counts, or three weights, the first of them the true class's.
        axes: See `base`.
        theme: See `base`.

    Returns:
        The axes.
    """
    colours, weights = find_theme(theme), read_weights(noise)
    verdict = certify(loss, weights)
    with styled(colours):
        (axis,) = panels(axes, width=0.86, height=1.15)
        _shade(axis, colours, loss, weights)
        grid = _grid(_SIDE, margin=0.028)
        moves = field(loss, grid, weights) @ CORNERS
        length = torch.linalg.vector_norm(moves, dim=1, keepdim=True)
        size = length / length.max().clamp(min=1e-300)
        arrows = torch.where(size > _FLAT, moves / length.clamp(min=1e-300), 0.0)
        arrows = 0.052 * size**0.25 * arrows
        looks = {"angles": "xy", "scale_units": "xy", "scale": 1, "pivot": "mid", "width": 0.0055}
        axis.quiver(*(grid @ CORNERS).T, *arrows.T, color=colours.colours[0], zorder=3, **looks)
        for point in stationary(loss, weights):
            at = torch.tensor(point.probs, dtype=torch.float64) @ CORNERS
            marker, fill = _MARKS[point.kind]
            shape = {"marker": marker, "fillstyle": fill, "markersize": 7.5, "markeredgewidth": 1.6}
            axis.plot(*at.tolist(), color=colours.ink, linestyle="", zorder=6, **shape)
        if verdict.witness is not None:
            at = torch.tensor(verdict.witness.probs, dtype=torch.float64) @ CORNERS
            looks = {"color": colours.alarm, "markeredgecolor": colours.paper}
            axis.plot(*at.tolist(), "*", markersize=15, zorder=7, clip_on=False, **looks)
        _frame(axis, colours, weights)
        axis.set_title(caption(f"{_name(noise)}: {verdict.status.lower()}"))
    return axis


def read_weights(noise: object) -> Tensor:
    """Return the three label weights of a sample whose true class is the first."""
    if noise is None:
        return torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    if isinstance(noise, str | NoiseSpec):
        noise = NoiseSpec.parse(noise).transition(3)
    weights = torch.as_tensor(noise, dtype=torch.float64)
    weights = weights[0] if weights.ndim == 2 else weights
    if weights.shape != (3,):
        raise ValueError(f"noise must be over 3 classes, got shape {tuple(weights.shape)}")
    if int(weights.argmax()) != 0 or float(weights[0]) <= float(weights[1:].max()):
        raise ValueError(
            f"the true class, the first, must have the largest weight, got {weights.tolist()}"
        )
    return weights


def gradients(loss: Loss, logits: Tensor, weights: Tensor) -> Tensor:
    """Return the gradient of the expected loss (N, 3) in the logits."""
    total = torch.zeros_like(logits)
    for label, weight in enumerate(weights.tolist()):
        if weight:
            target = torch.full((len(logits),), label)
            total = total + weight * evaluate(loss, logits, target)[1]
    return total


def field(loss: Loss, probs: Tensor, weights: Tensor) -> Tensor:
    """Return how predictions (N, 3) move under gradient descent in the logits."""
    slopes = gradients(loss, _centred(torch.log(probs)), weights)
    moves: Tensor = -probs * (slopes - (probs * slopes).sum(1, keepdim=True))
    return moves


def stationary(loss: Loss, weights: Tensor) -> list[Stationary]:
    """Find predictions inside the triangle at which the gradient vanishes, by Newton's method."""
    # an orthonormal basis of the centred logits
    basis = torch.tensor([[2.0, -1.0, -1.0], [0.0, 1.0, -1.0]], dtype=torch.float64)
    basis = basis / torch.linalg.vector_norm(basis, dim=1, keepdim=True)

    def slopes(at: Tensor) -> Tensor:
        found: Tensor = gradients(loss, at @ basis, weights) @ basis.T
        return found

    def curvatures(at: Tensor) -> Tensor:
        steps = _DELTA * torch.eye(2, dtype=torch.float64)
        columns = [(slopes(at + step) - slopes(at - step)) / (2 * _DELTA) for step in steps]
        return torch.stack(columns, 2)

    at = _centred(torch.log(_grid(_STARTS, margin=0.02))) @ basis.T
    scale = float(slopes(at).abs().max())
    of_one = float(gradients(loss, at @ basis, read_weights(None)).abs().max())
    if scale <= _FLAT * of_one:
        return []  # the labels cancel everywhere
    for _ in range(_STEPS):
        slope, curvature = slopes(at), curvatures(at)
        step = -(torch.linalg.pinv(curvature) @ slope[:, :, None])[:, :, 0]
        length = torch.linalg.vector_norm(step, dim=1, keepdim=True)
        at = at + step / length.clamp(min=1)
        at = at.clamp(-30, 30)
    found: list[Stationary] = []
    probs, slope = torch.softmax(at @ basis, 1), slopes(at)
    curvature = curvatures(at)
    still = torch.linalg.vector_norm(slope, dim=1) <= 1e-8 * scale
    # where the expected loss is flat in some direction, no single prediction is meant
    apart = torch.linalg.det(curvature).abs() > 1e-8 * scale**2
    for place in (still & apart & (probs.amin(1) > _INSIDE)).nonzero()[:, 0].tolist():
        here = probs[place]
        if all((here - torch.tensor(one.probs)).abs().max() > 1e-4 for one in found):
            up, down = (torch.linalg.eigvalsh(curvature[place]) > 0).tolist()
            kind = "saddle" if up != down else "minimum" if up else "maximum"
            found.append(Stationary(tuple(here.tolist()), kind))
    return found


def _shade(axis: Any, colours: Theme, loss: Loss, weights: Tensor) -> None:
    """Fill where a larger logit of the true class increases the expected loss."""
    grid = _grid(_FINE, margin=1e-4)
    slopes = gradients(loss, _centred(torch.log(grid)), weights)
    rise = slopes[:, 0] / slopes.abs().amax(1).clamp(min=_FLAT * float(slopes.abs().max()) or 1.0)
    if float(rise.max()) > _FLAT:
        x, y = (grid @ CORNERS).T
        looks = {"colors": [colours.alarm], "alpha": 0.2}
        axis.tricontourf(x, y, rise, levels=[_FLAT, 2.0], **looks)


def _frame(axis: Any, colours: Theme, weights: Tensor) -> None:
    closed = torch.cat([CORNERS, CORNERS[:1]])
    axis.plot(*closed.T, color=colours.muted, linewidth=1, zorder=4)
    places = (("center", "bottom", 0.04), ("left", "top", -0.03), ("right", "top", -0.03))
    names = ("true", "wrong", "wrong")
    for place, corner in enumerate(CORNERS.tolist()):
        across, up, shift = places[place]
        text = f"{names[place]}, {float(weights[place]):.0%}"
        looks = {"ha": across, "va": up, "fontsize": 8, "color": colours.muted}
        axis.text(corner[0], corner[1] + shift, text, **looks)
    axis.set(xlim=(-0.03, 1.03), ylim=(-0.09, 0.97), aspect="equal")
    axis.set_axis_off()


def _grid(side: int, *, margin: float) -> Tensor:
    """Return points of the open triangle (N, 3), with at least `margin` of each class."""
    steps = torch.arange(side, dtype=torch.float64) / (side - 1)
    first, second = torch.meshgrid(steps, steps, indexing="ij")
    kept = first + second <= 1 + 1e-12
    probs = torch.stack([first[kept], second[kept], (1 - first - second)[kept].clamp(min=0)], 1)
    return margin + (1 - 3 * margin) * probs


def _centred(logits: Tensor) -> Tensor:
    return logits - logits.mean(1, keepdim=True)


def _name(noise: object) -> str:
    if noise is None:
        return "clean labels"
    return str(noise) if isinstance(noise, str | NoiseSpec) else "given noise"
