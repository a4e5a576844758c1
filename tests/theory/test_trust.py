"""What is certified is what is computed: nothing may stand between a loss and its declared form."""

import types
from dataclasses import dataclass, field

import pytest
import torch

import lossforge
from lossforge import BEF, CE, MAE, NCE, BinaryReduction, TargetSeparation, base
from lossforge.constructions import Part, TargetLoss
from lossforge.loss import ProbabilityLoss, WeightedSum
from lossforge.noise import symmetric
from lossforge.theory import certify, certify_instances, frontier, is_symmetric
from lossforge.theory.forms import take_apart

WEIGHTS = [0.6, 0.3, 0.1]


def negated(method):
    """A method that returns the opposite of the inherited one's result."""

    def replaced(self, *args, **kwargs):
        result = getattr(super(type(self), self), method)(*args, **kwargs)
        if isinstance(result, tuple):
            return tuple(-part if isinstance(part, torch.Tensor) else part for part in result)
        return -result

    return replaced


def subclass(kind, method):
    return type("Changed", (kind,), {method: negated(method)})


@pytest.mark.parametrize(
    ("kind", "method", "arguments"),
    [
        *((MAE, name, ()) for name in ("forward", "__call__", "_reduced", "_hard", "from_scores")),
        (MAE, "from_log_p", ()),
        (MAE, "expected", ()),
        *(
            (TargetSeparation, name, (base.Exponential(),))
            for name in ("coefficient", "_coefficient", "forward")
        ),
        (BinaryReduction, "from_scores", (base.Exponential(),)),
        (NCE, "_terms", ()),
        (BEF, "_active", ()),
        (BEF, "from_scores", ()),
    ],
)
def test_a_class_that_overrides_a_method_is_not_what_it_inherits(kind, method, arguments):
    given = {"tau": 1.0} if kind is TargetSeparation else {}
    changed = subclass(kind, method)(*arguments, **given)
    assert certify(kind(*arguments, **given), symmetric(3, 0.1)).status == "PROVED"
    form = take_apart(changed, 3)
    assert form.unknown
    assert f"Changed overrides {method}" in form.doubts[0]
    assert certify(changed, symmetric(3, 0.1), refute=False).status == "UNCERTIFIED"
    assert not certify_instances(changed, [WEIGHTS]).proved.any()
    assert frontier(changed, 3).rate == 0


@pytest.mark.parametrize("method", ["value", "slope", "density", "cumulative"])
def test_a_base_function_that_overrides_a_method_is_unknown(method):
    def doubled(self, at):
        return 2 * getattr(base.Exponential, method)(self, at)

    kind = type("Doubled", (base.Exponential,), {method: doubled})
    loss = TargetSeparation(kind(-1.0, -1.0, 0.5), tau=1.0)
    assert "Doubled overrides" in take_apart(loss, 3).doubts[0]
    assert certify(loss, WEIGHTS, refute=False).status == "UNCERTIFIED"


@pytest.mark.parametrize("kind", [base.Exponential, base.Quadratic])
@pytest.mark.parametrize("changed", [-5.0, -1.001])
def test_a_base_function_changed_behind_its_back_is_not_certified_as_made(kind, changed):
    function = kind(-1.0, -1.0, 0.5)
    loss = TargetSeparation(function, tau=1.0)
    object.__setattr__(function, "beta", changed)
    form = take_apart(loss, 10)
    # an integral that is computed anew follows its parameter
    computed = kind is base.Quadratic
    assert bool(form.unknown) is not computed
    if computed:
        assert form.separation.own.only == base.Quadratic(-1.0, changed, 0.5)


def test_a_parameter_that_the_constructor_refuses_is_not_certified():
    function = base.Quadratic(-1.0, -1.0, 0.5)
    object.__setattr__(function, "beta", 0.1)
    assert take_apart(TargetSeparation(function, tau=1.0), 10).unknown


@pytest.mark.parametrize("name", ["forward", "from_scores", "_reduced"])
def test_an_attribute_in_place_of_a_method_is_noticed(name):
    loss = MAE()
    original = getattr(loss, name)
    setattr(loss, name, types.MethodType(lambda self, *a, **k: -original(*a, **k), loss))
    assert f"stands in for its method {name}" in take_apart(loss, 3).doubts[0]


@pytest.mark.parametrize(
    "register",
    ["register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook"],
)
def test_hooks_are_noticed(register):
    loss = MAE()
    getattr(loss, register)(lambda *args: None)
    assert "hooks" in take_apart(loss, 3).doubts[0]
    handle = (member := CE()).register_forward_hook(lambda *args: None)
    assert take_apart(WeightedSum([(1.0, member)]), 3).unknown
    handle.remove()
    assert not take_apart(member, 3).unknown


def test_a_mixin_after_the_construction_counts_too():
    class Negates(ProbabilityLoss):
        def forward(self, input, target):
            return -super().forward(input, target)

    class Mixed(TargetLoss, Negates):
        pass

    assert "Negates overrides forward" in take_apart(Mixed(base.Linear()), 3).doubts[0]


@pytest.mark.parametrize("loss", [MAE(), NCE(), TargetLoss(base.Linear())], ids=str)
def test_a_factor_cannot_be_changed_and_would_be_noticed(loss):
    with pytest.raises(AttributeError, match="scale is fixed when a loss is made"):
        loss.scale = -1
    object.__setattr__(loss, "scale", -1)
    assert take_apart(loss, 3).unknown
    assert certify(loss, WEIGHTS, refute=False).status == "UNCERTIFIED"


@pytest.mark.parametrize("loss", [MAE(), BEF(), NCE(), lossforge.make("NCE+RCE")], ids=str)
def test_a_policy_that_changes_the_noise_is_refused(loss):
    for policy in ({"ignore_index": 0}, {"ignore_index": 2}, {"label_smoothing": 0.1}):
        with pytest.raises(ValueError, match="noise"):
            certify(loss.with_policy(**policy), WEIGHTS)
        with pytest.raises(ValueError, match="noise"):
            frontier(loss.with_policy(**policy), 3)
        with pytest.raises(ValueError, match="noise"):
            certify_instances(loss.with_policy(**policy), [WEIGHTS])
    with pytest.raises(ValueError, match="noise"):
        certify(loss.with_policy(weight=torch.ones(3)), WEIGHTS)
    assert certify(loss.with_policy(ignore_index=3), symmetric(3, 0.1)).status == "PROVED"


def test_a_subclass_that_only_constructs_is_what_it_inherits():
    class Softer(BEF):
        """A choice of parameters."""

        def __init__(self):
            super().__init__(beta=-0.5)
            self.calls = 0

    loss = Softer()
    loss.calls += 1
    assert certify(loss, symmetric(10, 0.6)).status == "PROVED"


class Own(ProbabilityLoss):
    """A loss of somebody else that declares what it computes."""

    factor = 2.0

    def from_scores(self, scores, target):
        p = scores.log_probs.exp().gather(1, target[:, None])[:, 0]
        return 3 + self.factor * (1 - p)

    def parts(self, num_classes):
        return (Part("target", 2.0, base.Linear()),)


def test_a_class_may_declare_its_own_form():
    verdict = certify(Own(), symmetric(3, 0.5))
    assert verdict.status == "PROVED"
    assert any("Own" in assumption for assumption in verdict.assumptions)
    assert certify(0.5 * Own() + MAE(), symmetric(3, 0.5)).status == "PROVED"


def test_a_declaration_that_is_not_kept_is_noticed():
    loss = Own()
    loss.factor = 2.1
    assert "values" in take_apart(loss, 3).doubts[0]
    assert certify(0.5 * loss + MAE(), symmetric(3, 0.5), refute=False).status == "UNCERTIFIED"


def test_a_gradient_that_is_not_the_values_is_noticed():
    class Held(Own):
        def from_scores(self, scores, target):
            value = super().from_scores(scores, target)
            return value.detach() + 0 * scores.values.sum(1)

        def parts(self, num_classes):
            return super().parts(num_classes)

    assert "gradients" in take_apart(Held(), 3).doubts[0]
    assert take_apart(lossforge.make("FL", gamma=2.0, stop_gradient=True), 3).unknown


def test_a_base_function_of_ones_own_is_tried():
    @dataclass(frozen=True)
    class Wrong(base.Smooth):
        def density(self, p):
            return 1 + p

        def value(self, at):
            return 2 * at.q

    assert "not those of its density" in take_apart(TargetLoss(Wrong()), 3).doubts[0]


@pytest.mark.parametrize("tau", [1.0, 1.7, 3.3, 9.1, 16.2, 57.0, 1234.5])
def test_a_kink_anywhere_is_no_contradiction(tau):
    for kinked in (base.HuberLog(tau), base.HuberPower(0.7, tau)):
        assert not take_apart(TargetLoss(kinked), 3).unknown


@pytest.mark.parametrize("place", [1e-4, 0.0617, 0.5, 0.97])
def test_a_step_in_the_value_alone_is_noticed(place):
    """At a single place, as narrow as a kink."""

    @dataclass(frozen=True)
    class Stepped(base.Smooth):
        def density(self, p):
            return 1 + 0.0 * p

        def value(self, at):
            return at.q + 1e-3 * (at.p < place)

    assert "not those of its density" in take_apart(TargetLoss(Stepped()), 3).doubts[0]


def test_what_a_series_was_fitted_to_is_not_what_is_certified():
    fitted = base.from_derivative(lambda x: -1 - x)
    verdict = certify(TargetSeparation(fitted, tau=1.0), symmetric(3, 0.1))
    assert any("fitted series" in assumption for assumption in verdict.assumptions)


@pytest.mark.parametrize("name", ["CE", "FL", "NFL", "NNFL", "AMSE", "JS", "TGCE", "PHuber-GCE"])
@pytest.mark.parametrize("num_classes", [2, 10, 2000])
def test_losses_of_the_library_are_what_they_declare(name, num_classes):
    assert not take_apart(lossforge.make(name), num_classes).unknown


def test_symmetry_is_derived_of_what_is_computed():
    assert is_symmetric(MAE(), 5).derived
    assert not is_symmetric(subclass(MAE, "from_scores")(), 5).derived


def test_a_counterexample_is_one_of_the_loss_as_it_is_called():
    class Negated(MAE):
        def forward(self, input, target):
            return -super().forward(input, target)

    verdict = certify(Negated(), symmetric(3, 0.1))
    assert verdict.status == "REFUTED"
    assert certify(-MAE(), symmetric(3, 0.1)).status == "REFUTED"


def test_a_remainder_of_an_unbounded_function_is_no_robust_loss():
    class Rises(ProbabilityLoss):
        def from_scores(self, scores, target):
            terms = -scores.log_probs
            return terms.gather(1, target[:, None])[:, 0] / terms.sum(1)

        def parts(self, num_classes):
            return (Part("remainder", 1.0, base.Log()),)

    assert "unbounded" in take_apart(Rises(), 3).doubts[0]


def test_a_base_function_inside_another_is_looked_at():
    class Evil(base.Exponential):
        def turning_points(self):
            return ()

    wrapped = base.Truncated(Evil(-8.0, -4.0, 0.5625), 1e-9)
    loss = TargetSeparation(base.Linear(1.0), a=1.0, nontarget=wrapped)
    assert "Evil overrides turning_points" in take_apart(loss, 3).doubts[0]


def test_base_functions_that_are_equal_and_differ_are_not_taken_for_one():
    @dataclass(frozen=True)
    class Tilted(base.BaseFunction):
        k: float = field(compare=False)

        def density(self, p):
            return 1 + self.k * p

        def value(self, at):
            return at.q * (1 + self.k * (1 + at.p) / 2)

        def cumulative(self, at):
            return at.p * (1 + self.k * at.p / 2)

        def turning_points(self):
            return ()

    both = TargetLoss(Tilted(0.0)) + TargetLoss(Tilted(50.0))
    assert "equals another" in take_apart(both, 3).doubts[0]
    assert not take_apart(TargetLoss(Tilted(50.0)), 3).unknown


def test_a_sum_of_ones_own_is_an_assumption():
    class Sum(WeightedSum):
        @property
        def terms(self):
            return super().terms

    loss = Sum([(1.0, MAE())])
    assert any("Sum" in assumption for assumption in take_apart(loss, 3).assumptions)


def test_a_compiled_call_is_not_what_was_looked_at():
    loss = MAE()
    loss._compiled_call_impl = lambda logits, target: -CE()(logits, target)
    assert "compiled" in take_apart(loss, 3).doubts[0]


def test_a_parameter_cannot_be_deleted():
    with pytest.raises(AttributeError, match="fixed"):
        del MAE().scale
