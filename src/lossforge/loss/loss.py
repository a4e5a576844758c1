"""The loss contract, the algebra of losses, and reduction in exactly one place."""

import copy
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Never, Self, Unpack

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ..errors import check_factor
from ..kernels import Form
from . import policy as rules
from . import shortcut
from .policy import Policy, Reduction
from .scores import Scores

_DENSE_BLOCK = 1 << 22  # elements a block of classes may take in a dense expected loss


class Loss(nn.Module, ABC):
    """A multiclass loss with the contract of `torch.nn.CrossEntropyLoss`.

    A loss of the class probabilities, which nearly all are, derives from `ProbabilityLoss` and
    implements `from_scores`; one that needs the logits themselves implements `per_sample`. Losses
    combine: ``0.9 * a + 0.1 * b`` is a loss, evaluated with one softmax. The policy below may be
    set at any time; parameters of the mathematics are fixed when a loss is made.

    Args:
        weight: (C,) rescaling weight of each class.
        ignore_index: A label that contributes neither loss nor gradient, whatever its logits are.
            (Torch's gradient is NaN there if they are infinite or NaN.)
        reduction: "none", "mean" (over the kept weights; NaN if none is kept) or "sum".
        label_smoothing: Share of the target spread evenly over all classes, in [0, 1].
    """

    weight: Tensor | None
    _fixed: ClassVar[frozenset[str]] = frozenset()  # what may be set only once

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # a class from elsewhere answers for its own attributes
        if "__init__" in vars(cls) and shortcut.is_from_library(cls):
            taken = inspect.signature(cls.__init__).parameters
            cls._fixed |= taken.keys() - Policy.__annotations__.keys()
        if "expected" in vars(cls) and "label_mean" not in vars(cls):
            cls.label_mean = Loss.label_mean  # type: ignore[method-assign]  # by its own `expected`

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._fixed and hasattr(self, name):
            kind = type(self).__name__
            raise AttributeError(f"{name} is fixed when a loss is made; make another {kind}")
        super().__setattr__(name, value)
        if name in shortcut.METHODS:
            shortcut.forget()

    def __delattr__(self, name: str) -> None:
        if name in self._fixed:
            raise AttributeError(f"{name} is fixed when a loss is made")
        super().__delattr__(name)

    def __init__(
        self,
        *,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        label_smoothing: float = 0.0,
        **unknown: Never,
    ) -> None:
        super().__init__()
        for name in unknown:
            raise rules.no_parameter(type(self).__name__, name, rules.parameters_of(type(self)))
        rules.check_policy(weight, ignore_index, reduction, label_smoothing)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.reduction: Reduction = reduction
        self.label_smoothing = label_smoothing

    @abstractmethod
    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        """(N,) losses of logits (N, C) at labels (N,), before any policy."""

    def from_scores(self, scores: Scores, target: Tensor) -> Tensor:
        """(N,) losses of a batch whose softmax other losses may share."""
        return self.per_sample(scores.logits, target)

    def fused(self, num_classes: int) -> Form | None:
        """This loss as data for a kernel, if there is one for K classes."""
        return None

    def _operator_form(self, classes: int, dtype: torch.dtype, *guarded: object) -> str:
        """Not traced by a compiler but called, and called again if an argument has changed."""
        from .graphs import operator_form  # which marks this method so

        return operator_form(self, classes, dtype)

    def expected(self, scores: Scores, weights: Tensor) -> Tensor:
        r"""(N,) sums :math:`\sum_c w_c L(u, c)` under weights (N, C) of the labels.

        This default evaluates the loss for every class, K times the cost of one label; where
        `Scores.labelled` finds few labels with weight (mixup, cutmix), for these alone. Blocks of
        bounded memory are evaluated again in the backward pass instead of being kept.
        """
        n, classes = weights.shape
        labelled = scores.labelled(weights)
        size = max(1, classes if labelled is not None else n * classes)
        # A compiled graph must not depend on the batch size, and is fused anyway.
        step = classes if torch.compiler.is_compiling() else max(1, _DENSE_BLOCK // size)
        block: Callable[..., Tensor] = self._expected_block
        blocks: list[tuple[Any, ...]]
        if labelled is None:
            blocks = [(weights[:, i : i + step], i) for i in range(0, classes, step)]
        else:
            block = self._labelled_block
            blocks = [(weights, pairs) for pairs in torch.split(labelled, step)]
        # Transforms and compilers decide for themselves what to keep.
        direct = rules.transformed(scores.values) or not torch.is_grad_enabled()
        if len(blocks) > 1 and not direct:
            block = partial(_recomputed, block)
        return _total(block(scores, *each) for each in blocks)

    def _expected_block(self, scores: Scores, weights: Tensor, start: int) -> Tensor:
        n, width = weights.shape
        classes = scores.values.shape[1]
        repeated = scores.values[:, None].expand(n, width, classes).reshape(-1, classes)
        labels = torch.arange(start, start + width, device=weights.device).repeat(n)
        values = self.from_scores(Scores(repeated, normalised=scores.normalised), labels)
        return scores.weighed(weights, values.view(n, width)).sum(-1)

    def _labelled_block(self, scores: Scores, weights: Tensor, pairs: Tensor) -> Tensor:
        rows, labels = pairs.unbind(1)
        chosen = Scores(scores.values.index_select(0, rows), normalised=scores.normalised)
        values = weights[rows, labels] * self.from_scores(chosen, labels)
        return values.new_zeros(len(weights)).index_add(0, rows, values)

    def label_mean(self, scores: Scores) -> Tensor:
        r"""(N,) means :math:`\frac1K \sum_c L(u, c)` over all labels, which smoothing mixes in.

        A class that overrides `expected` and not this has the mean of its own `expected`.
        """
        return self.expected(scores, _even(scores))

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of logits, as `torch.nn.CrossEntropyLoss` would reduce it.

        Args:
            input: Logits (C), (N, C) or (N, C, d1, ...). A logit of -inf masks its class.
            target: Class indices, in the shape of `input` without C; or class probabilities in the
                shape of `input`, giving the expected loss under them.

        Returns:
            A scalar, or for reduction "none" the shape of the class indices.
        """
        quick = shortcut.common_call(self, input, target)
        return self._reduced(input, target, normalised=False) if quick is None else quick

    def __getstate__(self) -> dict[str, Any]:
        """Return what is copied and pickled: not the kernels, which hold addresses."""
        return {name: value for name, value in vars(self).items() if name != shortcut.KERNELS}

    def from_probs(self, probs: Tensor, target: Tensor) -> Tensor:
        """The loss of class probabilities, for models that end in a softmax.

        Prefer logits where you have them: they resolve what rounds to 0 or 1 here. A probability of
        0 is allowed; its own gradient is taken as 0, as behind the softmax that made it.

        Args:
            probs: Probabilities in the shape of `forward`'s input; classes must sum to one.
            target: As for `forward`.
        """
        if not isinstance(probs, Tensor) or not probs.is_floating_point() or probs.dim() == 0:
            raise TypeError(f"probs must be a floating-point tensor with classes, got {probs!r}")
        return self._reduced(probs, target, normalised=True)

    def _reduced(
        self, input: Tensor, target: Tensor, *, normalised: bool, views: Sequence[Tensor] = ()
    ) -> Tensor:
        if not torch.compiler.is_compiling():
            # The attributes may have been set since construction.
            rules.check_policy(self.weight, self.ignore_index, self.reduction, self.label_smoothing)
        soft, ignoring = rules.check_call(input, target, self.weight, self.ignore_index)
        dtype = rules.output_dtype(input, target, self.weight, soft)
        wide = torch.float32 if dtype in rules.HALF else dtype
        values, *others = (rules.rows(one) for one in (input, *views))
        keep = target.reshape(-1).long() != self.ignore_index if ignoring else None
        if keep is not None:
            # A constant stands in for what is ignored: whatever was there, its gradient is 0.
            blank = 1 / values.shape[1] if normalised else 0.0
            values, *others = (torch.where(keep[:, None], one, blank) for one in (values, *others))
        if normalised:
            rules.check_probs(values)
        values = rules.safe_log(values.to(wide)) if normalised else values.to(wide)
        seen = tuple(Scores(other.to(wide)) for other in others)
        scores = Scores(values, normalised=normalised, views=seen)
        weight = None if self.weight is None else self.weight.to(wide)
        if soft:
            values = self._soft(scores, rules.rows(target).to(wide), weight)
            kept: Tensor | int = values.shape[0]
            shape = torch.Size() if input.dim() == 1 else input.shape[:1] + input.shape[2:]
        else:
            values, kept = self._hard(scores, target.reshape(-1).long(), weight, keep)
            shape = target.shape if input.dim() > 1 else torch.Size()
        if self.reduction == "none":
            return values.view(shape).to(dtype)
        if self.reduction == "sum":
            return values.sum().to(dtype)
        return (values.sum() / kept).to(dtype)

    def _hard(
        self, scores: Scores, target: Tensor, weight: Tensor | None, keep: Tensor | None
    ) -> tuple[Tensor, Tensor | int]:
        """Values at class indices, and the total weight that a mean divides by.

        Args:
            scores: Of the batch, constant where the label is ignored.
            target: (N,) class indices.
            weight: Of the classes.
            keep: (N,) which labels count; all if None.
        """
        label = target if keep is None else torch.where(keep, target, 0)
        values = None
        if not scores.normalised:
            values = shortcut.by_kernel(self, scores.values, label, "none")
        if values is None:
            values = self.at_labels(scores, label)
        row_weight = None if weight is None else weight[label]
        if row_weight is not None:
            values = values * row_weight
        if self.label_smoothing:
            spread = self._spread(scores, weight)
            values = (1 - self.label_smoothing) * values + self.label_smoothing * spread
        if keep is None:
            return values, len(label) if row_weight is None else row_weight.sum()
        kept = keep if row_weight is None else torch.where(keep, row_weight, 0)
        return torch.where(keep, values, 0), kept.sum()

    def at_labels(self, scores: Scores, label: Tensor) -> Tensor:
        """(N,) values by torch operations, before any policy, with the rule for masked labels."""
        values = self.from_scores(scores, label)
        if scores.normalised:
            return values
        # A masked class cannot be the right one: infinite, as in cross entropy.
        masked = scores.values.gather(1, label[:, None])[:, 0] == -math.inf
        # Where it is infinite already, its gradient is kept.
        return torch.where(masked & (values < math.inf), math.inf, values)

    def _soft(self, scores: Scores, target: Tensor, weight: Tensor | None) -> Tensor:
        """Expected values under class probabilities."""
        if self.label_smoothing:
            even = self.label_smoothing / target.shape[1]
            target = target * (1 - self.label_smoothing) + even
        return self._expected_with_masks(scores, target if weight is None else target * weight)

    def _spread(self, scores: Scores, weight: Tensor | None) -> Tensor:
        """The mean over all classes, each with its weight: what label smoothing mixes in."""
        even = _even(scores)
        if weight is not None:
            return self._expected_with_masks(scores, even * weight)
        return _with_masks(self.label_mean(scores), scores, even)

    def _expected_with_masks(self, scores: Scores, weights: Tensor) -> Tensor:
        return _with_masks(self.expected(scores, weights), scores, weights)

    @property
    def has_policy(self) -> bool:
        """Whether any policy differs from the defaults."""
        return bool(self._policy_text())

    def with_policy(self, **policy: Unpack[Policy]) -> Self:
        """A copy of this loss with another policy; what is not named stays as it is."""
        new = copy.deepcopy(self)
        for name, value in policy.items():
            if name not in Policy.__annotations__:
                raise rules.no_parameter("with_policy", name, tuple(Policy.__annotations__))
            setattr(new, name, value)
        rules.check_policy(new.weight, new.ignore_index, new.reduction, new.label_smoothing)
        return new

    def _policy_text(self) -> str:
        parts = []
        if self.weight is not None:
            parts.append(f"weight={self.weight.tolist()}")
        if self.ignore_index != -100:
            parts.append(f"ignore_index={self.ignore_index}")
        if self.reduction != "mean":
            parts.append(f"reduction={self.reduction!r}")
        if self.label_smoothing != 0:
            parts.append(f"label_smoothing={self.label_smoothing}")
        return ", ".join(parts)

    def __str__(self) -> str:
        """The text form of the mathematics, without policy."""
        return type(self).__name__

    def __repr__(self) -> str:
        policy = self._policy_text()
        if not policy:
            return str(self)
        text = f"({self})" if isinstance(self, WeightedSum) else str(self)
        return f"{text}.with_policy({policy})"

    def __add__(self, other: "Loss | int") -> "WeightedSum":
        if isinstance(other, Loss):
            return WeightedSum([(1.0, self), (1.0, other)])
        # sum() starts from 0
        return self * 1.0 if _is_number(other) and other == 0 else NotImplemented

    __radd__ = __add__

    def __mul__(self, factor: float) -> "WeightedSum":
        return WeightedSum([(factor, self)]) if _is_number(factor) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> "WeightedSum":
        return self * (1.0 / divisor) if _is_number(divisor) else NotImplemented

    def __neg__(self) -> "WeightedSum":
        return self * -1.0

    def __sub__(self, other: "Loss") -> "WeightedSum":
        return self + -other if isinstance(other, Loss) else NotImplemented


class ProbabilityLoss(Loss):
    """A loss of the class probabilities: `from_scores` is its one abstract method."""

    @abstractmethod
    def from_scores(self, scores: Scores, target: Tensor) -> Tensor: ...

    def per_sample(self, logits: Tensor, target: Tensor) -> Tensor:
        return self.from_scores(Scores(logits), target)


class _Members(nn.ModuleList):
    """The losses of a sum."""

    def __setitem__(self, index: int, module: nn.Module) -> None:
        raise AttributeError("the losses of a sum are fixed when it is made; make another sum")


class WeightedSum(ProbabilityLoss):
    """A sum of losses with coefficients; what ``0.9 * a + 0.1 * b`` builds.

    Of a masked label it is +inf, also where coefficients are negative.

    Args:
        terms: Pairs of a coefficient and a loss. Sums among them are flattened.
    """

    _fixed = frozenset({"coefficients", "members"})

    def __init__(self, terms: Iterable[tuple[float, Loss]], **policy: Unpack[Policy]) -> None:
        super().__init__(**policy)
        flat: list[tuple[float, Loss]] = []
        for coefficient, loss in terms:
            check_factor("a coefficient", coefficient)
            if loss.has_policy:
                raise ValueError(
                    f"a member of a sum must have no policy of its own, got {loss!r}; "
                    "set it on the sum: (a + b).with_policy(...)"
                )
            inner = loss.terms if isinstance(loss, WeightedSum) else ((1.0, loss),)
            flat += [(float(coefficient) * factor, member) for factor, member in inner]
        for coefficient, _ in flat:
            check_factor("a coefficient", coefficient)
        self.coefficients = tuple(coefficient for coefficient, _ in flat)
        self.members = _Members(member for _, member in flat)

    @property
    def terms(self) -> tuple[tuple[float, Loss], ...]:
        """The coefficients with their losses."""
        return tuple(zip(self.coefficients, self.members, strict=True))  # type: ignore[arg-type]

    def from_scores(self, scores: Scores, target: Tensor) -> Tensor:
        values = [c * member.from_scores(scores, target) for c, member in self._active()]
        if not self._cancels(scores):
            return _total(values)
        return _infinite_where(scores.values.gather(1, target[:, None]) == -math.inf, values)

    def expected(self, scores: Scores, weights: Tensor) -> Tensor:
        values = [c * member.expected(scores, weights) for c, member in self._active()]
        if not self._cancels(scores):
            return _total(values)
        return _infinite_where((scores.values == -math.inf) & (weights > 0), values)

    def fused(self, num_classes: int) -> Form | None:
        forms = [member.fused(num_classes) for _, member in self._active()]
        known = [form for form in forms if form is not None and form.rescaling is None]
        if len(known) < len(forms):
            return None
        scaled = [form * c for form, (c, _) in zip(known, self._active(), strict=True)]
        return sum(scaled[1:], start=scaled[0])

    def label_mean(self, scores: Scores) -> Tensor:
        values = [c * member.label_mean(scores) for c, member in self._active()]
        if not self._cancels(scores):
            return _total(values)
        return _infinite_where(scores.values == -math.inf, values)

    def _cancels(self, scores: Scores) -> bool:
        """Whether the infinities of a masked label may have either sign."""
        return not scores.normalised and min(self.coefficients) < 0

    def _active(self) -> tuple[tuple[float, Loss], ...]:
        """The terms that count; one of them if none does."""
        return tuple(term for term in self.terms if term[0] != 0) or self.terms[:1]

    def __str__(self) -> str:
        text = " + ".join(f"{c!r}*{member}" for c, member in self.terms)
        return text.replace(".0*", "*").replace("+ -", "- ")


def _total(values: Iterable[Tensor]) -> Tensor:
    first, *rest = values
    return sum(rest, start=first)


def _even(scores: Scores) -> Tensor:
    """(N, C) weights that spread a label over all classes."""
    return torch.full_like(scores.values, 1 / scores.values.shape[1])


def _with_masks(values: Tensor, scores: Scores, weights: Tensor) -> Tensor:
    """Expected values with what masked classes add to them."""
    if scores.normalised:
        return values
    return values + rules.mask_penalty(scores.values, weights)


def _infinite_where(masked: Tensor, values: Sequence[Tensor]) -> Tensor:
    """The sum, but +inf in rows where a class that counts is masked, unless a value is NaN."""
    unknown = torch.stack([value.isnan() for value in values]).any(0)
    return torch.where(masked.any(-1) & ~unknown, math.inf, _total(values))


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _recomputed(function: Callable[..., Tensor], *args: object) -> Tensor:
    """Call, keeping nothing for the backward pass."""
    result: Tensor = checkpoint(function, *args, use_reentrant=False, preserve_rng_state=False)
    return result
