"""Random calls of losses, against the contract of torch's cross entropy and naive formulas.

One problem is one call: a loss, logits with masks, infinities and NaN, a target, a policy, a dtype,
and in every eighth call a mistake. Torch's cross entropy says what shape, dtype or exception the
same call has; naive float64 formulas say the value and the gradient of a row; each row's kind says
whether it is finite, infinite, NaN or ignored.
"""

import functools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

import lossforge
from soak.random_losses import Subject, random_loss

SIZE = 1_000_000
LOSSES = 1500  # random ones, each of which is built once
DTYPES = (torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16)
SCALES = (1.0, 1.0, 1.0, 4.0, 4.0, 0.1, 1e4, 1e-8, 1e-20, 1e-30, 1e-40, 0.0)
MODERATE = 20.0  # logits at which a naive formula is accurate


@dataclass(frozen=True)
class Call:
    """The arguments of one call."""

    logits: Tensor
    target: Tensor
    policy: dict[str, Any]
    autocast: torch.dtype | None
    flat: bool  # whether logits may tie, or nearly so

    def __str__(self) -> str:
        weight = self.policy["weight"]
        policy = {**self.policy, "weight": None if weight is None else weight.tolist()}
        kinds = f"{_text(self.logits)}, {_text(self.target)}"
        return f"{kinds}, {policy}" + (f", autocast {self.autocast}" if self.autocast else "")


@dataclass(frozen=True)
class Rows:
    """A call that is no mistake, row by row in float64, and what must become of each row."""

    logits: Tensor  # (R, C)
    coefficients: Tensor  # (R, C), of the loss at each label
    divisor: float  # of the mean
    ignored: Tensor  # (R,), and so are all below: value and gradient 0
    poisoned: Tensor  # a logit is NaN or +inf: NaN
    masked: Tensor  # a class that counts is masked: not finite
    infinite: Tensor  # it is the label: +inf
    finite: Tensor  # all other rows


class Dice(random.Random):
    """Random choices and tensors, all from one seed."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.generator = torch.Generator().manual_seed(seed)

    def chance(self, share: float) -> bool:
        return self.random() < share

    def uniforms(self, *shape: int) -> Tensor:
        return torch.rand(shape, generator=self.generator)


def attack(seed: int) -> list[str]:
    """Make one call; return what is wrong with it."""
    dice = Dice(seed)
    call = _draw(dice)
    subject = random_loss(dice.randrange(LOSSES), _classes(call))
    if dice.chance(1 / 8) and call.target.numel():  # torch checks less where there is nothing
        call = dice.choice(MISTAKES)(_policy(call, weight=None))  # one mistake at a time
    faults = dict.fromkeys(_compare(subject, call, dice))  # several checks may find the same
    return [f"{fault}: {str(subject.loss)[:300]}({call})"[:2000] for fault in faults]


# The calls


def _draw(dice: Dice) -> Call:
    """Arguments that cross entropy takes."""
    classes = dice.choice((1, *(2, 3, 4, 5, 6, 7, 10) * 5, 19, 260))
    n, d, e = dice.choice((1, 1, 2, 2, 3, 4, 6, 0)), dice.choice((1, 2, 3, 0)), dice.choice((1, 2))
    shape = dice.choice(((), (n,), (n,), (n,), (n, d), (n, d, e)))
    dtype = dice.choice(DTYPES)
    z, flat = _logits(dice, math.prod(shape), classes)
    ignore_index = -100
    if dice.chance(1 / 4):
        target = _shaped(dice, _probabilities(dice, *z.shape, dtype), shape)
    else:
        ignore_index = dice.choice((-100, -100, -100, -1, 0, 255, classes + 3))
        target = _labels(dice, z, ignore_index).reshape(shape)
    policy = {
        "weight": _weight(dice, classes, dtype),
        "ignore_index": ignore_index,
        "reduction": dice.choice(("none", "none", "sum", "mean", "mean")),
        "label_smoothing": dice.choice((0.0,) * 6 + (0.1, 0.5, 1.0)),
    }
    autocast = dice.choice((None,) * 8 + (torch.bfloat16, torch.float16))
    return Call(_shaped(dice, z.to(dtype), shape), target, policy, autocast, flat)


def _logits(dice: Dice, rows: int, classes: int) -> tuple[Tensor, bool]:
    """Logits (R, C) with masks, infinities and NaN, and whether they may tie or nearly so."""
    scale, rounded = dice.choice(SCALES), dice.chance(0.15)
    z = scale * torch.randn(rows, classes, generator=dice.generator, dtype=torch.float64)
    z = z.round() if rounded else z
    if dice.chance(0.3):
        z[dice.uniforms(rows, classes) < 0.3] = -math.inf
    if dice.chance(0.1) and rows:
        z[dice.randrange(rows), dice.randrange(classes)] = dice.choice((math.inf, math.nan))
    return z, rounded or scale < 0.1


def _probabilities(dice: Dice, rows: int, classes: int, dtype: torch.dtype) -> Tensor:
    """Targets (R, C), which need not sum to one."""
    target = dice.uniforms(rows, classes)
    if dice.chance(0.5):
        target = target / target.sum(1, keepdim=True)
    target = target.round() if dice.chance(0.2) else target
    return target.to(dice.choice((dtype, dtype, torch.float32)))


def _labels(dice: Dice, z: Tensor, ignore_index: int) -> Tensor:
    """Labels (R,), some of them ignored; the logits of those become anything, in place."""
    rows, classes = z.shape
    target = torch.randint(classes, (rows,), generator=dice.generator)
    if dice.chance(0.5):
        ignored = dice.uniforms(rows) < dice.choice((0.4, 0.4, 1.0))
        target[ignored] = ignore_index
        if dice.chance(0.5):
            hit = ignored[:, None] & (dice.uniforms(rows, classes) < 0.5)
            z[hit] = dice.choice((-math.inf, -math.inf, math.inf, math.nan))
    bytes_hold = bool(((target >= 0) & (target < 256)).all())
    return target.to(torch.uint8) if bytes_hold and dice.chance(0.1) else target


def _weight(dice: Dice, classes: int, dtype: torch.dtype) -> Tensor | None:
    if dice.chance(0.6):
        return None
    weight = 2 * dice.uniforms(classes)
    if dice.chance(0.3):
        weight[dice.uniforms(classes) < 0.4] = dice.choice((0.0, 1e-4, 1e-30))
    return weight.to(dtype)


def _shaped(dice: Dice, rows: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Rows (R, C) as (C), (N, C) or (N, C, ...), sometimes not contiguous."""
    if not shape:
        return rows[0]
    tensor = rows.reshape(*shape, rows.shape[1]).movedim(-1, 1)
    if dice.chance(0.25):
        return torch.stack([tensor, tensor], -1)[..., 0]
    return tensor if dice.chance(0.25) else tensor.contiguous()


def _text(tensor: Tensor) -> str:
    values = tensor.tolist() if tensor.numel() <= 20 else "..."
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)} {values}"


def _spoilt(call: Call, index: int) -> Call:
    """Give one row an index that is no class."""
    if call.target.is_floating_point():
        return call
    target = call.target.long().clone()
    target.view(-1)[0] = index
    return replace(call, target=target)


def _policy(call: Call, **changes: Any) -> Call:
    return replace(call, policy={**call.policy, **changes})


def _classes(call: Call) -> int:
    return call.logits.shape[min(1, call.logits.dim() - 1)]


MISTAKES: tuple[Callable[[Call], Call], ...] = (
    lambda call: replace(call, target=call.target.double()),
    lambda call: replace(call, target=call.target.int()),
    lambda call: replace(call, target=call.target.bool()),
    lambda call: replace(call, target=torch.stack([call.target, call.target])),
    lambda call: replace(call, target=torch.stack([call.target, call.target], -1)),
    lambda call: replace(call, target=call.target[:1] if call.target.dim() else call.target),
    lambda call: replace(call, logits=call.logits.nan_to_num().long()),
    lambda call: replace(call, logits=call.logits.sum(), target=torch.tensor(0)),
    lambda call: replace(call, logits=call.logits[None]),
    lambda call: _spoilt(call, _classes(call)),
    lambda call: _spoilt(call, -1),
    lambda call: _spoilt(call, 10**9),
    lambda call: _policy(call, weight=torch.ones(_classes(call) + 1, dtype=call.logits.dtype)),
    lambda call: _policy(call, weight=torch.ones(_classes(call), dtype=torch.float64)),
    lambda call: _policy(call, weight=torch.ones(_classes(call), dtype=torch.int64)),
    lambda call: _policy(call, ignore_index=1),
    lambda call: _policy(call, reduction="average"),
)


# The oracle


def _compare(subject: Subject, call: Call, dice: Dice) -> list[str]:
    """Make the call, and hold it against torch, the naive formula and itself in float64."""
    logits = call.logits.detach()
    differentiated = logits.is_floating_point() and dice.chance(0.7)
    logits.requires_grad_(differentiated)
    # torch takes bytes, but not for dense targets
    target = call.target.long() if call.target.dtype == torch.uint8 else call.target
    expected = _outcome(call, lambda: cross_entropy(logits, target, **call.policy))
    actual = _outcome(call, lambda: subject(logits, call.target, call.policy))
    if isinstance(expected, Exception) or isinstance(actual, Exception):
        same = isinstance(actual, type(expected))
        return [] if same else [f"{_kind(actual)} where cross entropy gives {_kind(expected)}"]
    if _kind(actual) != _kind(expected):
        return [f"{_kind(actual)}, of cross entropy {_kind(expected)}"]
    rows = _read(subject, call)
    values, slope, cancelled = _exact(subject, call)
    faults = [*_check_values(rows, values), *_check_slope(subject, rows, slope)]
    faults += _check_reduction(subject, call, rows, values, actual.detach())
    if differentiated:
        (gradient,) = torch.autograd.grad(actual.sum(), logits)
        faults += _check_gradient(subject, call, rows, slope, cancelled, _rows(gradient))
    if isinstance(subject.loss, lossforge.CE):
        faults += _check_torch(call, rows, values, slope)
    elif dice.chance(0.5):
        faults += _check_formula(subject, call, rows, values, slope, dice)
    if dice.chance(0.1):
        faults += _check_probs(subject, call, rows, values, slope)
    return faults


def _outcome(call: Call, function: Callable[[], Tensor]) -> Tensor | Exception:
    try:
        with torch.autocast("cpu", call.autocast, enabled=call.autocast is not None):
            return function()
    except Exception as error:
        return error


def _kind(outcome: Tensor | Exception) -> str:
    if isinstance(outcome, Exception):
        return repr(outcome)[:200]
    constant = "" if outcome.requires_grad else " without gradient"
    return f"{outcome.dtype} {tuple(outcome.shape)}{constant}"


def _rows(tensor: Tensor) -> Tensor:
    return tensor[None] if tensor.dim() == 1 else tensor.movedim(1, -1).flatten(0, -2)


def _read(subject: Subject, call: Call) -> Rows:
    """What each row of a call is."""
    z = _rows(call.logits.detach()).double()
    n, classes = z.shape
    weight, smoothing = call.policy["weight"], call.policy["label_smoothing"]
    weights = z.new_ones(classes) if weight is None else weight.double()
    masked = z == -math.inf
    counted = masked.any(1)
    ignored = label_masked = torch.zeros(n, dtype=torch.bool)
    if call.target.is_floating_point():
        share, divisor = _rows(call.target).double(), float(n)
    else:
        target = call.target.reshape(-1).long()
        ignored = target == call.policy["ignore_index"]
        label = torch.where(ignored, 0, target)
        share, divisor = one_hot(label, classes).double(), float(weights[label][~ignored].sum())
        if not smoothing:
            counted = label_masked = masked.gather(1, label[:, None])[:, 0]
    share = share * (1 - smoothing) + smoothing / classes
    poisoned = ~ignored & (z.isnan() | (z == math.inf)).any(1)
    fine = ~ignored & ~poisoned
    present = (~masked).sum(1)
    finite = fine & ~counted & (present > ("single-class" in subject.breaks))
    infinite = fine & label_masked & (present > 0) & (share * weights != 0).any(1)
    return Rows(z, share * weights, divisor, ignored, poisoned, fine & counted, infinite, finite)


def _exact(subject: Subject, call: Call) -> tuple[Tensor, Tensor, Tensor]:
    """The values (R,), the gradient of their sum (R, C), and what cancels in it, in float64.

    Gradients of several views are rounded before they are added, in the dtype of the logits. What
    cancels (R,) is by how much the sizes of all that is added exceed that of the sum.
    """
    logits = _rows(call.logits.detach()).double().requires_grad_()
    views = subject.inputs(logits)
    leaves = [view.detach().requires_grad_() for view in views]
    values = subject.of_views(leaves, *_double(call))
    slopes = torch.autograd.grad(values.sum(), leaves)
    pairs = zip(views, slopes, strict=True)
    parts = torch.stack([torch.autograd.grad(view, logits, slope)[0] for view, slope in pairs])
    gradient = parts.sum(0)
    return values.detach(), gradient, (parts.abs().sum(0) - gradient.abs()).sum(1)


def _double(call: Call) -> tuple[Tensor, dict[str, Any]]:
    """The target by rows, and the policy without reduction, in float64."""
    soft, weight = call.target.is_floating_point(), call.policy["weight"]
    target = _rows(call.target).double() if soft else call.target.reshape(-1).long()
    weight = None if weight is None else weight.double()
    return target, {**call.policy, "weight": weight, "reduction": "none"}


def _check_values(rows: Rows, values: Tensor) -> list[str]:
    rules = {
        "an ignored row has a value": values[rows.ignored] != 0,
        "a row with NaN or +inf is not NaN": ~values[rows.poisoned].isnan(),
        "a masked class counts nothing": values[rows.masked].isfinite(),
        "a masked label is not +inf": values[rows.infinite] != math.inf,
        "a value is not finite": ~values[rows.finite].isfinite(),
    }
    return [rule for rule, broken in rules.items() if broken.any()]


def _check_slope(subject: Subject, rows: Rows, slope: Tensor) -> list[str]:
    absent = rows.finite[:, None] & (rows.logits == -math.inf)
    rules = {
        "an ignored row has a gradient": slope[rows.ignored] != 0,
        "a gradient is not finite": ~slope[rows.finite].isfinite(),
        "a masked label has NaN gradient": slope[rows.infinite].isnan(),
        "a masked class has a gradient": (slope[absent] != 0) & ("mask" not in subject.breaks),
    }
    return [rule for rule, broken in rules.items() if broken.any()]


def _check_torch(call: Call, rows: Rows, values: Tensor, slope: Tensor) -> list[str]:
    """Compare cross entropy with torch's: all values, and the gradient of rows that are kept."""
    logits = rows.logits.clone().requires_grad_()
    target, policy = _double(call)
    expected = cross_entropy(logits, target, **policy)
    (gradient,) = torch.autograd.grad(expected.sum(), logits)
    kept = ~rows.ignored
    near = functools.partial(torch.allclose, rtol=1e-12, atol=1e-12, equal_nan=True)
    faults = [] if near(values, expected.detach()) else ["values are not torch's"]
    return faults if near(slope[kept], gradient[kept]) else [*faults, "a gradient is not torch's"]


def _check_formula(
    subject: Subject, call: Call, rows: Rows, values: Tensor, slope: Tensor, dice: Dice
) -> list[str]:
    """Compare one row of moderate logits with the naive formula."""
    z = rows.logits
    present = (z > -math.inf).sum(1)
    able = rows.finite & (z <= MODERATE).all(1) & ((z >= -MODERATE) | (z == -math.inf)).all(1)
    able &= (present > 1) & (present <= 10)
    if "mask" in subject.breaks:
        able &= present == z.shape[1]
    if not able.any() or (call.flat and "ties" in subject.breaks):
        return []
    row = dice.choice(able.nonzero()[:, 0].tolist())
    labels = rows.coefficients[row].nonzero()[:, 0].tolist()
    if not 0 < len(labels) < 6:
        return []
    kept = (z[row] > -math.inf).nonzero()[:, 0]
    x = z[row, kept].requires_grad_()
    place = {label: i for i, label in enumerate(kept.tolist())}
    expected = sum(rows.coefficients[row, c] * subject.formula(x, place[c]) for c in labels)
    (gradient,) = torch.autograd.grad(expected, x)
    slack = 1e-9 * subject.scale * rows.coefficients[row].sum()
    faults = _near(values[row], expected.detach(), slack, "value", "the formula")
    if subject.smooth or not call.flat:  # else it may jump here
        faults += _near(slope[row, kept], gradient, slack, "gradient", "the formula")
    return faults


def _check_probs(
    subject: Subject, call: Call, rows: Rows, values: Tensor, slope: Tensor
) -> list[str]:
    """Compare with the loss of the probabilities, in rows of moderate logits."""
    jumps = "ties" in subject.breaks or not subject.smooth
    if "from-probs" in subject.breaks or subject.views or (call.flat and jumps):
        return []
    able = rows.finite & (rows.logits.abs() <= MODERATE).all(1)
    target, policy = _double(call)
    logits = rows.logits[able].requires_grad_()
    actual = subject.from_probs(logits.softmax(1), target[able], policy)
    (gradient,) = torch.autograd.grad(actual.sum(), logits)
    slack = 1e-9 * subject.scale * rows.coefficients[able].sum(1)
    faults = _near(actual.detach(), values[able], slack, "value from probabilities", "logits")
    source = "that of logits"
    return faults + _near(gradient, slope[able], slack[:, None], "gradient from them", source)


def _near(actual: Tensor, expected: Tensor, slack: Tensor, name: str, source: str) -> list[str]:
    """Compare with a float64 number where it is finite; it may overflow in the actual dtype."""
    info, wide = torch.finfo(actual.dtype), actual.double()
    slack = slack + 2 * info.eps * expected.abs() + info.tiny
    same = (wide == expected) | ((wide - expected).abs() <= slack) | ~expected.isfinite()
    same |= (expected.abs() + slack > info.max) & ~wide.isnan()
    if same.all():
        return []
    i = int((~same).flatten().nonzero()[0, 0])
    return [f"{name} {wide.flatten()[i]:.9g} is {expected.flatten()[i]:.9g} by {source}"]


def _rounding(subject: Subject, call: Call, rows: Rows) -> Tensor:
    """(R,) what rounding may change in a row; where it breaks ties the value may jump."""
    total = subject.scale * rows.coefficients.sum(1)
    if call.flat and "ties" in subject.breaks:
        return 100 * total
    dtype = torch.float64 if call.logits.dtype == torch.float64 else torch.float32
    size = torch.where(rows.logits.isfinite(), rows.logits.abs(), 0.0).sum(1)
    return 64 * torch.finfo(dtype).eps * (1 + size) * total


def _check_reduction(
    subject: Subject, call: Call, rows: Rows, values: Tensor, actual: Tensor
) -> list[str]:
    """Compare with the float64 values, reduced here."""
    slack = torch.where(rows.ignored, 0.0, _rounding(subject, call, rows))
    if call.policy["reduction"] == "none":
        actual = actual.flatten()
        largest = torch.finfo(actual.dtype).max
        overflow = values.isfinite() & (1.01 * values.abs() > largest)
        faults = _check_values(rows, actual.masked_fill(overflow, 0))
        return faults + _near(actual, values, slack, "value", "float64")
    divisor = rows.divisor if call.policy["reduction"] == "mean" else 1.0
    expected = values.sum() / torch.tensor(divisor, dtype=torch.float64)
    if expected.isnan() or expected.isinf():
        same = torch.equal(expected.nan_to_num(0.5), actual.double().nan_to_num(0.5))
        return [] if same else [f"{actual:.9g} is the reduction to {expected:.9g}"]
    slack = (slack.sum() + 1e-6 * values.abs().sum()) / divisor
    return _near(actual, expected, slack, "reduction", "float64")


def _check_gradient(
    subject: Subject, call: Call, rows: Rows, slope: Tensor, cancelled: Tensor, gradient: Tensor
) -> list[str]:
    """Compare with the float64 gradient, and its sum over the classes with zero."""
    divisor = rows.divisor if call.policy["reduction"] == "mean" else 1.0
    if divisor == 0:
        return ["an ignored row has a gradient"] if gradient[rows.ignored].any() else []
    info, expected = torch.finfo(gradient.dtype), slope / divisor
    overflow = (expected.abs() > info.max).any(1)
    faults = _check_slope(subject, rows, gradient.masked_fill(overflow[:, None], 0))
    able = rows.finite & ~overflow & expected.isfinite().all(1)
    gradient, expected = gradient[able], expected[able]
    slack = _rounding(subject, call, rows)[able] / divisor + 1e-4 * expected.abs().sum(1)
    slack += info.eps * cancelled[able] / divisor
    if not call.flat or (subject.smooth and "ties" not in subject.breaks):
        faults += _near(gradient, expected, slack[:, None], "gradient", "float64")
    bound = slack + info.eps * gradient.double().abs().sum(1) + gradient.shape[1] * info.tiny
    if "gradient-sum" not in subject.breaks and (gradient.double().sum(1).abs() > bound).any():
        faults.append("a gradient does not sum to zero")
    return faults
