"""Base functions against mpmath quadrature; their derivatives; their parameters."""

import copy
import pickle

import mpmath
import pytest
import torch
from bases import BASES, DERIVATIVES, ELEMENTARY, BaseCase, exponential_case, ids, quadratic_case
from integrals import DIGITS, GOLDEN, POINTS, integral, integrals

from lossforge import base

RELATIVE = {torch.float64: 1e-13, torch.float32: 2e-6}
OVER_BASES = pytest.mark.parametrize("case", BASES, ids=ids(BASES))
SMOOTH = [case for case in BASES if case.smooth]


def assert_relative(actual: torch.Tensor, exact: list, dtype: torch.dtype = torch.float64) -> None:
    assert actual.dtype == dtype
    for x, got, want in zip(POINTS, actual.tolist(), exact, strict=True):
        error = abs(mpmath.mpf(got) - want)
        assert error <= RELATIVE[dtype] * abs(want), f"at x = {x}: {got}, exactly {want}"


@OVER_BASES
def test_h_is_the_integral_of_the_density_to_one(case: BaseCase) -> None:
    h = case.make().h(torch.tensor(POINTS))
    start = 0 if case.naive.bounded else 1
    exact = [integral(case, x, 1.0) for x in POINTS[start:]]
    if not case.naive.bounded:
        assert h[0] == torch.inf
        exact = [mpmath.mpf(0), *exact]
        h = torch.cat([h.new_zeros(1), h[1:]])
    assert_relative(h, exact)


@OVER_BASES
def test_integral_from_zero_is_accurate_also_near_zero(case: BaseCase) -> None:
    f = case.make()
    x = torch.tensor(POINTS)
    if case.naive.bounded:
        assert_relative(f.H(x), [integral(case, 0.0, p) for p in POINTS])
    else:
        torch.testing.assert_close(f.H(x), -f.h(x), rtol=0, atol=0)


@pytest.mark.slow
@OVER_BASES
def test_the_kept_integrals_are_those_of_the_density(case: BaseCase) -> None:
    kept, found = GOLDEN[case.id], integrals(case)
    assert kept.keys() == found.keys()
    with mpmath.workdps(40):
        for bounds, text in kept.items():
            exact = mpmath.mpf(found[bounds])
            assert abs(mpmath.mpf(text) - exact) <= 10.0 ** (2 - DIGITS) * abs(exact), bounds


def test_the_kept_integrals_are_of_the_cases() -> None:
    assert GOLDEN.keys() == {case.id for case in BASES}, "run `python tests/base/integrals.py`"


@OVER_BASES
def test_density_is_the_given_one(case: BaseCase) -> None:
    x = torch.tensor(POINTS[1:-1])
    with mpmath.workdps(40):
        exact = [case.naive.phi(mpmath.mpf(p), mpmath) for p in POINTS[1:-1]]
    for p, got, want in zip(x.tolist(), case.make().phi(x).tolist(), exact, strict=True):
        assert abs(got - want) <= 1e-13 * abs(want), f"at x = {p}: {got}, exactly {want}"


@OVER_BASES
def test_value_is_zero_at_one_and_decreases(case: BaseCase) -> None:
    f = case.make()
    assert f.h(torch.tensor(1.0)) == 0
    h = f.h(torch.linspace(1e-3, 1, 200))
    assert (h.diff() < 4 * torch.finfo(h.dtype).eps * h[0]).all()  # flat where phi underflows
    assert (h[::40].diff() < 0).sum() >= 2


@OVER_BASES
def test_bounded_says_whether_the_value_at_zero_is_finite(case: BaseCase) -> None:
    f = case.make()
    assert f.bounded is case.naive.bounded
    assert bool(torch.isfinite(f.h(torch.tensor(0.0)))) is f.bounded


@pytest.mark.parametrize(
    ("f", "symmetric"),
    [
        (base.Exponential(-8, -8, 0.5), True),
        (base.Exponential(-8, 3, 0.5), True),
        (base.Exponential(-8, 0, 0.2), True),
        (base.Exponential(-8, -8, 0.4), False),
        (base.Quadratic(7, -8, 0.5), True),
        (base.Quadratic(0, -8, 0.1), True),
        (base.Quadratic(7, -8, 0.6), False),
        (base.Linear(3.0), True),
        (base.Log(), False),
        (base.Series((2.0, 0.0, 0.5)), True),
        (base.Series((2.0, 0.0, 0.5), logarithmic=True), True),
        (base.Series((2.0, 1e-9, 0.5)), False),
    ],
    ids=str,
)
def test_symmetric_says_whether_the_formula_is(f: base.BaseFunction, symmetric: bool) -> None:
    assert f.symmetric is symmetric


@OVER_BASES
def test_values_of_a_symmetric_density_mirror_each_other(case: BaseCase) -> None:
    f, x = case.make(), torch.tensor(POINTS)
    if f.symmetric:  # none may claim it by mistake; who is and does not claim it, loses time
        torch.testing.assert_close(f.phi(x), f.phi(1 - x))
        torch.testing.assert_close(f.h(x) + f.h(1 - x), (2 * f.h(0.5)).expand_as(x))


def test_a_density_of_its_own_is_not_taken_for_symmetric() -> None:
    class Tilted(base.Linear):
        def density(self, p):
            return 1 + p

    class Renamed(base.Linear):
        pass

    assert not Tilted().symmetric
    assert Renamed().symmetric


@OVER_BASES
def test_gradient_of_the_value_is_minus_the_density(case: BaseCase) -> None:
    f = case.make()
    x = torch.tensor([0.07, 0.2, 0.45, 0.8, 0.93], requires_grad=True)
    (gradient,) = torch.autograd.grad(f.h(x).sum(), x)
    torch.testing.assert_close(gradient, -f.phi(x.detach()), rtol=1e-13, atol=0)
    (gradient,) = torch.autograd.grad(f.H(x).sum(), x)
    torch.testing.assert_close(gradient, f.phi(x.detach()), rtol=1e-13, atol=0)
    assert torch.autograd.gradcheck(f.h, x)


@pytest.mark.parametrize("case", SMOOTH, ids=ids(SMOOTH))
def test_value_is_twice_differentiable(case: BaseCase) -> None:
    x = torch.tensor([0.07, 0.2, 0.45, 0.8, 0.93], requires_grad=True)
    assert torch.autograd.gradgradcheck(case.make().h, x)


@OVER_BASES
def test_float32_is_accurate(case: BaseCase) -> None:
    x = torch.tensor([0.0625, 0.125, 0.25, 0.5, 0.75, 0.875, 1.0], dtype=torch.float32)
    f = case.make()
    h = f.h(x)
    assert h.dtype == torch.float32
    relative = RELATIVE[torch.float32]
    if case.id.startswith("exponential") and "-60" in case.id:
        relative *= 30  # 60 (x - gamma)^2 in the exponent multiplies the rounding of x - gamma
    torch.testing.assert_close(h.double(), f.h(x.double()), rtol=relative, atol=0)


@pytest.mark.parametrize("method", ["h", "H", "phi"])
def test_a_float_is_as_good_as_a_tensor(method: str) -> None:
    f = base.Exponential()
    assert float(getattr(f, method)(0.3)) == getattr(f, method)(torch.tensor(0.3)).item()


@OVER_BASES
def test_pickle_and_copy_keep_value_equality_and_hash(case: BaseCase) -> None:
    f, x = case.make(), torch.linspace(0.01, 1, 9)
    for twin in (pickle.loads(pickle.dumps(f)), copy.deepcopy(f), case.make()):
        assert twin == f
        assert hash(twin) == hash(f)
        assert torch.equal(twin.h(x), f.h(x))


def test_different_parameters_are_different_functions() -> None:
    everything = [case.make() for case in (*ELEMENTARY, *DERIVATIVES)]
    everything += [exponential_case(-1, -1, 0.5).make(), quadratic_case(1, -1, 0.5).make()]
    for i, f in enumerate(everything):
        assert all(f != g for g in everything[i + 1 :])


def test_parameters_are_frozen() -> None:
    with pytest.raises(AttributeError):
        base.Exponential().beta = -3.0


OUT_OF_RANGE = {
    "exponential-alpha-positive": ("alpha", lambda: base.Exponential(alpha=1.0)),
    "exponential-alpha-zero": ("alpha", lambda: base.Exponential(alpha=0.0)),
    "exponential-gamma-below": ("gamma", lambda: base.Exponential(gamma=-0.1)),
    "exponential-gamma-above": ("gamma", lambda: base.Exponential(gamma=1.1)),
    "exponential-beta-nan": ("beta", lambda: base.Exponential(beta=float("nan"))),
    "exponential-beta-inf": ("beta", lambda: base.Exponential(beta=float("inf"))),
    "exponential-vanishes": ("beta", lambda: base.Exponential(beta=-1000.0, gamma=0.0)),
    "quadratic-beta-zero": ("beta", lambda: base.Quadratic(beta=0.0)),
    "quadratic-gamma": ("gamma", lambda: base.Quadratic(gamma=2.0)),
    "quadratic-sign": ("alpha", lambda: base.Quadratic(alpha=4.0, beta=-1.0, gamma=0.5)),
    "linear-scale": ("scale", lambda: base.Linear(scale=0.0)),
    "power-q": ("q", lambda: base.Power(0.0)),
    "shifted_power-a": ("a", lambda: base.ShiftedPower(0.0, 0.5)),
    "shifted_power-q": ("q", lambda: base.ShiftedPower(1.0, 0.0)),
    "mirrored_power-a": ("a", lambda: base.MirroredPower(1.0, 0.5)),
    "mirrored_power-q": ("q", lambda: base.MirroredPower(2.0, -1.0)),
    "decay-a": ("a", lambda: base.ExponentialDecay(0.0)),
    "taylor-t": ("t", lambda: base.Taylor(0)),
    "taylor-t-fraction": ("t", lambda: base.Taylor(1.5)),
    "focal-gamma": ("gamma", lambda: base.Focal(-1.0)),
    "huber_log-tau": ("tau", lambda: base.HuberLog(0.5)),
}


@pytest.mark.parametrize(("name", "make"), OUT_OF_RANGE.values(), ids=OUT_OF_RANGE.keys())
def test_parameter_out_of_range_is_refused_by_name(name: str, make) -> None:
    with pytest.raises(ValueError, match=rf"\b{name}\b.*must.*got"):
        make()


WRONG_KIND = {
    "exponential": ("beta", lambda: base.Exponential(beta="steep")),
    "quadratic": ("gamma", lambda: base.Quadratic(gamma=None)),
    "power": ("q", lambda: base.Power("0.7")),
}


@pytest.mark.parametrize(("name", "make"), WRONG_KIND.values(), ids=WRONG_KIND.keys())
def test_parameter_of_the_wrong_kind_is_a_type_error(name: str, make) -> None:
    with pytest.raises(TypeError, match=rf"\b{name}\b"):
        make()
