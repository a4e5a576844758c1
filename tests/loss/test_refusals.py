"""Bad input is refused as torch's cross entropy refuses it, in words that name the argument."""

import pytest
import torch
from cases import named
from torch import Tensor
from torch.nn import CrossEntropyLoss

from lossforge import BEF, CE, BinaryReduction, TargetSeparation, base
from lossforge.constructions import ByRivals

Z = torch.linspace(-1, 1, 12, dtype=torch.float64).reshape(4, 3)
T = torch.tensor([0, 2, 1, 0])
Q = torch.softmax(Z.flip(0), 1)
DENSE = torch.zeros(2, 3, 4, dtype=torch.float64)

CALLS: dict[str, tuple[Tensor, Tensor, dict]] = {
    "int32-labels": (Z, T.int(), {}),
    "int16-labels": (Z, T.short(), {}),
    "bool-labels": (Z, T.bool(), {}),
    "float-labels": (Z, T.double(), {}),
    "long-probabilities": (Z, torch.ones(4, 3, dtype=torch.long), {}),
    "bool-probabilities": (Z, torch.ones(4, 3, dtype=torch.bool), {}),
    "wrong-batch-size": (Z, T[:3], {}),
    "wrong-probability-batch-size": (Z, Q[:3], {}),
    "wrong-number-of-classes": (Z, torch.ones(4, 5), {}),
    "wrong-dense-shape": (DENSE, torch.zeros(2, 5, dtype=torch.long), {}),
    "missing-dense-axis": (DENSE[..., None], torch.zeros(2, 4, dtype=torch.long), {}),
    "label-too-large": (Z, torch.tensor([0, 3, 1, 0]), {}),
    "label-too-large-dense": (DENSE, torch.full((2, 4), 3), {}),
    "label-too-large-unbatched": (Z[0], torch.tensor(3), {}),
    "label-negative": (Z, torch.tensor([0, -1, 1, 0]), {}),
    "label-too-large-smoothed": (Z, torch.tensor([0, 3, 1, 0]), {"label_smoothing": 0.1}),
    "label-is-default-ignore-index": (Z, torch.tensor([0, -100, 1, 0]), {"ignore_index": 255}),
    "weight-of-wrong-size": (Z, T, {"weight": torch.ones(4, dtype=torch.float64)}),
    "weight-of-wrong-size-probabilities": (Z, Q, {"weight": torch.ones(4, dtype=torch.float64)}),
    "weight-of-two-axes": (Z, T, {"weight": torch.ones(1, 3, dtype=torch.float64)}),
    "weight-of-wrong-dtype": (Z, T, {"weight": torch.ones(3, dtype=torch.float32)}),
    "weight-of-integers": (Z, T, {"weight": torch.ones(3, dtype=torch.long)}),
    "integer-input": (Z.long(), T, {}),
    "integer-input-probabilities": (Z.long(), Q, {}),
    "complex-input": (Z.to(torch.complex128), T, {}),
    "ignore-index-with-probabilities": (Z, Q, {"ignore_index": 0}),
    "unknown-reduction": (Z, T, {"reduction": "average"}),
    "target-on-another-device": (Z, T.to("meta"), {}),
    "probabilities-on-another-device": (Z, Q.to("meta"), {}),
    "weight-on-another-device": (Z, T, {"weight": torch.ones(3, device="meta")}),
    "scalar-input": (torch.tensor(1.0), torch.tensor(0), {}),
    "two-labels-unbatched": (Z[0], T[:2], {}),
    "labels-of-two-axes-unbatched": (Z[0], T[:1, None], {}),
    "target-is-a-list": (Z, [0, 2, 1, 0], {}),
    "target-is-none": (Z, None, {}),
    "input-is-a-list": ([[0.1, 0.2]], torch.tensor([0]), {}),
}


@pytest.mark.parametrize("make", [CE, BEF], ids=["CE", "BEF"])
@pytest.mark.parametrize(("input", "target", "policy"), CALLS.values(), ids=CALLS.keys())
def test_refused_with_torchs_exception(make, input, target, policy) -> None:
    with pytest.raises(Exception) as torchs:  # noqa: PT011 - whatever torch raises
        CrossEntropyLoss(**policy)(input, target)
    with pytest.raises(torchs.type):
        make(**policy)(input, target)


FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@pytest.mark.parametrize("weight", [*FLOATS, torch.int64], ids=str)
@pytest.mark.parametrize("input", FLOATS, ids=str)
@pytest.mark.parametrize("autocast", [False, True], ids=["plain", "autocast"])
def test_weight_of_another_dtype_is_refused_where_torch_does(input, weight, autocast) -> None:
    def accepts(make) -> bool:
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            try:
                make(weight=torch.ones(3, dtype=weight))(Z.to(input), T)
            except RuntimeError:
                return False
        return True

    assert accepts(CE) == accepts(BEF) == accepts(CrossEntropyLoss)


NAMED = {
    "int32-labels": "target",
    "long-probabilities": "target",
    "wrong-batch-size": "target",
    "wrong-number-of-classes": "target",
    "wrong-dense-shape": "target",
    "weight-of-wrong-size": "weight",
    "weight-of-wrong-dtype": "weight",
    "integer-input": "input",
    "ignore-index-with-probabilities": "ignore_index",
    "unknown-reduction": "reduction",
    "label-too-large": "(?i)target",
    "target-on-another-device": "target|device",
    "target-is-a-list": "target",
}


@pytest.mark.parametrize(("call", "name"), NAMED.items(), ids=NAMED.keys())
def test_message_names_the_argument(call: str, name: str) -> None:
    input, target, policy = CALLS[call]
    with pytest.raises(Exception, match=name):
        BEF(**policy)(input, target)


def test_label_message_gives_the_value() -> None:
    with pytest.raises(IndexError, match="7"):
        BEF()(Z, torch.tensor([0, 7, 1, 0]))


@pytest.mark.parametrize("smoothing", [-0.1, 1.5, float("nan")])
def test_smoothing_outside_the_unit_interval_is_refused(smoothing: float) -> None:
    with pytest.raises((ValueError, RuntimeError), match="label_smoothing"):
        CE(label_smoothing=smoothing)(Z, T)


@pytest.mark.parametrize("smoothing", [-0.1, 1.5, float("nan")])
def test_smoothing_set_later_is_checked_too(smoothing: float) -> None:
    def late() -> Tensor:
        loss = CE()
        loss.label_smoothing = smoothing
        return loss(Z, T)

    with pytest.raises((ValueError, RuntimeError), match="label_smoothing"):
        late()


def test_reduction_set_later_is_checked_too() -> None:
    def late() -> Tensor:
        loss = CE()
        loss.reduction = "average"
        return loss(Z, T)

    with pytest.raises(ValueError, match="reduction"):
        late()


@pytest.mark.parametrize("bad", [-0.25, float("nan")], ids=str)
@pytest.mark.parametrize("case", named("CE", "BEF", "BR-f1", "TS-f1-tau1"), ids=lambda c: c.id)
def test_probability_targets_may_be_neither_negative_nor_nan(case, bad: float) -> None:
    q = Q.clone()
    q[1, 2] = bad
    with pytest.raises(ValueError, match="target"):
        case.make()(Z, q)


@pytest.mark.parametrize(
    "operation",
    [
        lambda member: member + CE(),
        lambda member: CE() + member,
        lambda member: CE() - member,
        lambda member: 2 * member,
        lambda member: -member,
        lambda member: member / 2,
        lambda member: sum([CE(), member]),
    ],
    ids=["left", "right", "minus", "scaled", "negated", "divided", "sum"],
)
@pytest.mark.parametrize(
    "policy",
    [
        {"reduction": "sum"},
        {"ignore_index": 255},
        {"label_smoothing": 0.1},
        {"weight": torch.ones(3)},
    ],
    ids=lambda p: next(iter(p)),
)
def test_member_of_a_sum_may_have_no_policy(operation, policy) -> None:
    with pytest.raises(ValueError, match="policy"):
        operation(BEF(**policy))


F1 = base.Exponential()
CONSTRUCTIONS = {
    "no-coefficient": ((TypeError, ValueError), "tau", lambda: TargetSeparation(F1)),
    "tau-negative": (ValueError, "tau", lambda: TargetSeparation(F1, tau=-1)),
    "a-negative": (ValueError, r"\ba\b", lambda: TargetSeparation(F1, a=-0.1)),
    "tau-nan": (ValueError, "tau", lambda: TargetSeparation(F1, tau=float("nan"))),
    "tau-text": (TypeError, "tau", lambda: TargetSeparation(F1, tau="1")),
    "base-number": (TypeError, "base", lambda: TargetSeparation(3.0, tau=1)),
    "nontarget-number": (TypeError, "nontarget", lambda: TargetSeparation(F1, tau=1, nontarget=2)),
    "reduction-base": (TypeError, "base", lambda: BinaryReduction("exponential")),
    "most-none": (ValueError, "most", lambda: ByRivals(CE(), BEF(), most=0)),
    "most-fraction": (TypeError, "most", lambda: ByRivals(CE(), BEF(), most=2.5)),
    "few-base": (TypeError, "few must be a lossforge loss", lambda: ByRivals(F1, BEF(), most=2)),
    "many-policy": (
        ValueError,
        "no policy of its own",
        lambda: ByRivals(CE(), BEF(reduction="sum"), most=2),
    ),
    "xi-nan": (ValueError, "xi", lambda: BinaryReduction(F1, xi=float("nan"))),
    "bef-alpha": (ValueError, "alpha", lambda: BEF(alpha=1)),
    "bef-gamma": (ValueError, "gamma", lambda: BEF(gamma=2)),
    "bef-tau": (ValueError, "tau", lambda: BEF(tau=-1)),
    "bef-br-gamma": (ValueError, "gamma", lambda: BEF(br_gamma=-1)),
    "bef-lam": (ValueError, "lam", lambda: BEF(lam=float("nan"))),
    "unknown-keyword": (TypeError, "reductoin", lambda: BEF(reductoin="sum")),
    "positional": (TypeError, "positional", lambda: BEF(-8)),
    "positional-tau": (TypeError, "positional", lambda: TargetSeparation(F1, 1.0)),
    "ignore-index-float": (TypeError, "ignore_index", lambda: BEF(ignore_index=1.5)),
    "weight-list": (TypeError, "weight", lambda: BEF(weight=[1.0, 2.0])),
    "with-policy-unknown": (TypeError, "gamma", lambda: BEF().with_policy(gamma=0.1)),
}


@pytest.mark.parametrize(
    ("error", "name", "make"), CONSTRUCTIONS.values(), ids=CONSTRUCTIONS.keys()
)
def test_construction_out_of_range_is_refused_by_name(error, name: str, make) -> None:
    with pytest.raises(error, match=name):
        make()
