"""The paper's statements on random exact inputs: true where they are true, both ways if claimed.

The centre of f2 is drawn from the grid the statements look at, so that a condition on all slopes
is decided there exactly.
"""

from fractions import Fraction as Q
from itertools import product

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from paper_statements import (
    Check,
    Curve,
    coefficients,
    corollary_1,
    corollary_2,
    corollary_3,
    curve,
    lemma_1,
    lemma_2,
    lemma_3,
    quadratic,
    reduced,
    separated,
    simplex,
    theorem_1,
    theorem_2,
    theorem_3,
    theorem_4,
    theorem_5,
    theorem_5_restated,
    weighted,
)
from rational_proofs import f2, nonnegative, reduced_loss, separated_loss

from lossforge import base

few = settings(max_examples=25, suppress_health_check=list(HealthCheck), deadline=None)
STEP = Q(1, 10**12)
points = st.integers(0, 20).map(lambda i: Q(i, 20))
others = st.integers(-30, 30).map(lambda i: Q(i, 10))


@st.composite
def centres(draw: st.DrawFn, gamma: st.SearchStrategy[Q] = points) -> tuple[Q, Q]:
    """r and gamma of an f2 whose density is positive."""
    centre = draw(gamma)
    reach = max(centre, 1 - centre) ** 2
    return Q(draw(st.integers(-19, 120)), 20) / reach, centre


quadratics = centres().map(lambda both: quadratic(*both))


@st.composite
def rows(draw: st.DrawFn, low: int = 2, high: int = 4) -> list[Q]:
    """Weights that sum to one, the first the largest, not clean."""
    counts = draw(st.lists(st.integers(0, 20), min_size=low - 1, max_size=high - 1))
    assume(max(counts) > 0)
    top = max(counts) + draw(st.integers(1, 30))
    return [Q(v, top + sum(counts)) for v in (top, *counts)]


coefficient = st.one_of(
    st.integers(0, 60).map(lambda i: Q(i, 20)), st.sampled_from([Q(1), Q(1, 2), Q(1, 3)])
)


@st.composite
def predictions(draw: st.DrawFn, k: int) -> list[Q]:
    counts = draw(st.lists(st.integers(0, 9), min_size=k, max_size=k))
    assume(sum(counts) > 0)
    return [Q(v, sum(counts)) for v in counts]


def test_holds_is_the_implication_or_the_equivalence():
    for first, second in product((True, False), repeat=2):
        assert Check(first, second, "").holds is (second if first else True)
        assert Check(first, second, "", equivalence=True).holds is (first == second)


@few
@given(quadratics, rows(), coefficient, st.data())
def test_the_weighted_losses_are_the_definitions(f, w, a, data):
    u = data.draw(predictions(len(w)))
    value = weighted(w, separated([f.h(x) for x in u], a))
    assert value == separated_loss(f.h, w, a, u)
    assert value == sum(c * f.h(x) for c, x in zip(coefficients(w, a), u, strict=True))
    assert weighted(w, reduced(f.h, u, Q(7))) == reduced_loss(f.h, w, u, Q(7))


@few
@given(quadratics, st.integers(2, 5), coefficient, others)
def test_theorem_1_and_its_converse(f, k, a, tilt):
    assume(f.dh(0) != f.dh(Q(1, 2)) or f.dh(1) != f.dh(0))  # a straight line is symmetric anyway
    assume(k > 2 or f.dh(0) != f.dh(1))  # and so is an even density where there are two classes
    check = theorem_1(lambda u: [f.h(x) + tilt * u[0] for x in u], k, a)
    assert check.holds
    if tilt == 0:
        assert check.conclusion == check.hypothesis
    assert theorem_1(lambda u: [f.h(x) + tilt * u[0] for x in u], k, Q(1, k - 1)).conclusion


@few
@given(centres(), rows(), coefficient)
def test_lemma_1_the_slopes_decide_the_transfers(both, w, a):
    phi, _ = f2(*both)
    c = coefficients(w, a)
    heaviest = max(c[1:])
    low, high = min(map(phi, (Q(0), both[1], Q(1)))), max(map(phi, (Q(0), both[1], Q(1))))
    assume(min(c[0] * low, c[0] * high) >= max(heaviest * low, heaviest * high))
    check = lemma_1(quadratic(*both), w, a)
    assert check.hypothesis
    assert check.conclusion


@few
@given(quadratics, rows(low=3), coefficient, points, points)
def test_lemma_1_a_bad_slope_on_the_simplex_is_a_bad_transfer(f, w, a, x, y):
    c = coefficients(w, a)
    heaviest = max(c[1:])
    assume(0 < y <= 1 - x)
    assume(heaviest * f.dh(y) < c[0] * f.dh(x))
    check = lemma_1(f, w, a, on_simplex=True, points=(x, y, STEP))
    assert not check.hypothesis
    assert not check.conclusion


@few
@given(quadratics, rows(high=2), coefficient, points)
def test_lemma_1_with_two_classes_only_the_edge_counts(f, w, a, x):
    c = coefficients(w, a)
    assume(x < 1)
    bad = c[1] * f.dh(1 - x) < c[0] * f.dh(x)
    check = lemma_1(f, w, a, on_simplex=True, points=(x, 1 - x, STEP, 1 - STEP))
    if bad:
        assert not check.hypothesis
        assert not check.conclusion


@few
@given(quadratics, rows(), coefficient)
def test_theorem_2_holds_for_f2_and_weights_that_sum_to_one(f, w, a):
    assert theorem_2(f, w, a).holds


@few
@given(quadratics, rows())
def test_theorem_2_without_separation_ignores_the_scale_of_the_weights(f, w):
    once, twice = theorem_2(f, w, 0), theorem_2(f, [2 * v for v in w], 0)
    assert (once.hypothesis, once.conclusion) == (twice.hypothesis, twice.conclusion)


def test_theorem_2_fails_for_a_constant_base():
    flat = Curve(lambda x: Q(0), lambda x: Q(0))
    assert not theorem_2(flat, [Q(2, 3), Q(1, 3)], 0).holds
    assert theorem_2(flat, [Q(2, 3), Q(1, 3)], 0, unique=False).holds


@few
@given(quadratics, rows(), coefficient)
def test_corollary_1_and_3_are_theorem_2_by_cases(f, w, a):
    condition = theorem_2(f, w, a).hypothesis
    ranges, ratio = corollary_1(f, w, a), corollary_3(f, w, a)
    assert bool({1, 2, 3} & set(ranges.cases)) is condition
    assert bool({1, 2} & set(ratio.cases)) is condition
    assert (4 in ranges.cases) is (3 in ratio.cases) is (a * (len(w) - 1) == 1)
    assert ranges.conclusion or not condition


@few
@given(quadratics, st.integers(2, 5), st.integers(1, 9), st.integers(1, 9))
def test_corollary_1_4_holds_for_symmetric_noise(f, k, rest, more):
    total = k * rest + more
    w = [Q(rest + more, total), *[Q(rest, total)] * (k - 1)]
    check = corollary_1(f, w, Q(1, k - 1))
    assert 4 in check.cases
    assert check.conclusion


@few
@given(rows(low=3), st.integers(2, 40))
def test_corollary_1_4_fails_for_a_steep_base_once_a_rival_passes_the_threshold(w, steep):
    k = len(w)
    c = coefficients(w, Q(1, k - 1))
    f = quadratic(Q(steep), 1)  # phi(0) = 1 + steep, phi(1) = 1
    assume(max(c[1:]) * (1 + steep) > c[0] > 0)
    x = Q(1, 10**9)
    s = c.index(max(c[1:]), 1)
    near = tuple(1 - x if i == 0 else x if i == s else Q(0) for i in range(k))
    check = corollary_1(f, w, Q(1, k - 1), points=[near])
    assert 4 in check.cases
    assert check.witness == near


@few
@given(centres(st.sampled_from([Q(1, 2), Q(1, 2), Q(1, 4), Q(2, 5), Q(1)])), st.integers(2, 4))
def test_theorems_3_and_4_and_corollary_2_both_ways(both, k):
    f = quadratic(*both)
    symmetric = both[0] == 0 or both[1] == Q(1, 2)
    for check in (theorem_3(f, k), theorem_4(f), corollary_2(f, k)):
        assert check.holds
        assert check.conclusion is symmetric


@few
@given(st.lists(others, min_size=1, max_size=4), st.booleans(), st.integers(2, 4))
def test_theorems_3_and_4_need_no_monotone_loss(c, odd, k):
    def l(p):  # noqa: E743
        x = p - Q(1, 2)
        return 1 + sum(v * x ** (2 * n + 1 if odd else n + 1) for n, v in enumerate(c))

    f = Curve(l, lambda p: Q(0))
    assert theorem_3(f, k).holds
    assert theorem_4(f).holds
    assert corollary_2(f, k).holds
    assert theorem_4(f).conclusion or not odd


def test_theorem_3_needs_its_constant():
    l, w = quadratic(4, Q(1, 2)).h, list(simplex(3, 6))  # noqa: E741
    assert len({sum(reduced(l, u, l(Q(1, 2)))) for u in w}) == 1
    assert len({sum(reduced(l, u, l(Q(1, 3)))) for u in w}) > 1


def every_pair_prefers_its_heavier_class(both, w) -> bool:
    f, _ = f2(*both)
    return all(
        nonnegative(lambda p, v=v, x=x: v * f(p) - x * f(1 - p), 2)
        for i, v in enumerate(w)
        for j, x in enumerate(w)
        if i != j and v >= x
    )


pair_flip = st.integers(1, 9).map(lambda i: [Q(20 - i, 20), Q(i, 20), Q(0)])


@few
@given(
    st.one_of(st.tuples(centres(st.just(Q(1, 2))), rows()), st.tuples(centres(), pair_flip)),
)
def test_lemma_2_and_theorem_5_hold_where_all_pairs_prefer_their_heavier_class(case):
    both, w = case
    assume(every_pair_prefers_its_heavier_class(both, w))
    for check in (lemma_2(quadratic(*both), w), theorem_5(quadratic(*both), w)):
        assert check.hypothesis
        assert check.conclusion


@few
@given(centres(), st.integers(1, 20), st.integers(0, 20), points)
def test_lemma_3_both_ways(both, heavy, light, p):
    f, phi = quadratic(*both), f2(*both)[0]
    if nonnegative(lambda q: heavy * phi(q) - light * phi(1 - q), 2):
        check = lemma_3(f, heavy, light)
        assert check.hypothesis
        assert check.conclusion
    elif heavy * phi(p) < light * phi(1 - p):
        near = p + STEP if p < 1 else p - STEP
        check = lemma_3(f, heavy, light, points=(p, near))
        assert not check.hypothesis
        assert not check.conclusion


@few
@given(centres(), st.integers(3, 5), st.integers(1, 9), st.integers(1, 9))
def test_theorem_5_under_symmetric_noise_admits_symmetric_bases_only(both, k, rest, more):
    w = [Q(v, k * rest + more) for v in (rest + more, *[rest] * (k - 1))]
    symmetric = both[0] == 0 or both[1] == Q(1, 2)
    assert theorem_5(quadratic(*both), w, points=simplex(k, 2)).hypothesis is symmetric


slopes = st.lists(st.integers(-4, 1), min_size=21, max_size=21)


@few
@given(slopes, rows(), st.booleans())
def test_theorem_5_restated_holds_with_a_second_positive_weight(table, w, mirrored):
    if mirrored:  # otherwise the condition would hardly ever be met
        table = [min(v, 0) for v in table[:11]] + [min(v, 0) for v in table[9::-1]]
    f = Curve(lambda p: Q(0), lambda p: Q(table[int(p * 20)]))
    check = theorem_5_restated(f, w)
    assert check.holds
    assert check.hypothesis or not mirrored


@pytest.mark.parametrize(
    "f",
    [
        base.Exponential(beta=-2, gamma=0.3),
        base.Exponential(beta=1.5, gamma=0.9),
        base.Quadratic(alpha=0.5, beta=-1, gamma=0.2),
        base.Quadratic(alpha=-3, beta=-1, gamma=0.5),
    ],
    ids=str,
)
def test_the_librarys_f1_and_f2(f):
    made = curve(f)
    slopes = [made.dh(Q(i, 1000)) for i in range(1001)]
    assert made.xi == pytest.approx(min(slopes) / max(slopes), rel=1e-12)
    w = [0.6, 0.3, 0.1]
    for a in (0.0, 0.2, 0.5, 2.0):
        assert theorem_2(f, w, a).holds
        assert corollary_3(f, w, a).holds or corollary_3(f, w, a).cases == (3,)
    for check in (theorem_3(f, 3), theorem_4(f), corollary_2(f, 3)):
        assert check.conclusion is (f.gamma == 0.5)
        assert check.holds
    assert lemma_1(f, w, 0.5).holds
    assert corollary_1(f, w, 0.5).cases == (1, 4)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="one largest entry"):
        theorem_2(quadratic(1, 1), [Q(1, 2), Q(1, 2)], 0)
    with pytest.raises(ValueError, match="finite at 0"):
        theorem_2(base.Log(), [Q(2, 3), Q(1, 3)], 0)
    with pytest.raises(ValueError, match="ratio xi"):
        corollary_3(base.Linear(), [Q(2, 3), Q(1, 3)], 0)
