"""CE1 to CE14 of docs/theory.md, and the paper's worked example, in exact rational arithmetic.

Losses are evaluated term by term from their definitions. A claim about all points is proved:
by Bernstein coefficients where a polynomial decides, by the inequalities of a short argument else.
Where the base is f1, powers of e and 3 are compared through integers or partial sums.
"""

from fractions import Fraction as Q

import pytest
import torch
from paper_statements import (
    Curve,
    corollary_1,
    corollary_3,
    lemma_1,
    lemma_2,
    quadratic,
    theorem_1,
    theorem_2,
    theorem_5,
    theorem_5_restated,
)
from rational_proofs import (
    bernstein,
    exp_above,
    exp_below,
    f2,
    grid,
    nonnegative,
    reduced_loss,
    separated_loss,
)

from lossforge import AGCE
from lossforge.theory import certify


def weights(*values: str) -> list[Q]:
    return [Q(value) for value in values]


def separation(H, w, a):
    """W as a function of u, with h = -H."""
    return lambda *u: separated_loss(lambda x: -H(x), w, Q(a), [Q(x) for x in u])


def test_the_prover_accepts_and_refuses():
    assert nonnegative(lambda x: (x - Q(1, 4)) ** 2, 2)
    assert not nonnegative(lambda x: (x - Q(1, 4)) ** 2 - Q(1, 10**6), 2)
    assert not nonnegative(lambda x: x - Q(1, 3), 1)
    assert bernstein(lambda x: x**2, 2, Q(0), Q(1)) == [0, 0, 1]
    assert exp_below(Q(1)) < Q("2.718281829")
    assert exp_above(Q(1)) > Q("2.718281828")


def test_ce1_weights_that_do_not_sum_to_one():
    w, a = weights("3/100", "2/100"), Q(1, 40)
    assert w[1] / (1 - w[1]) <= a <= w[0] / (1 - w[0])
    W = separation(f2("-9/10", 0)[1], w, a)
    gap = W(1, 0) - W("67/100", "33/100")
    assert gap == Q(103928451, 40000000000) > Q("0.00259")
    check = corollary_1(quadratic(Q(-9, 10), 0), w, a)
    assert 1 in check.cases
    assert check.hypothesis
    assert not check.conclusion
    assert not theorem_2(quadratic(Q(-9, 10), 0), w, a).holds
    # divided by their sum the same weights fall outside the range, and a inside it works
    normalised = [v / sum(w) for v in w]
    assert not corollary_1(quadratic(Q(-9, 10), 0), normalised, a).cases
    assert corollary_1(quadratic(Q(-9, 10), 0), normalised, Q(1)).conclusion


def test_ce2_no_transfer_rises_while_the_square_condition_fails():
    w = weights("37/57", "20/57")
    phi, _ = f2(-1, "3/10")

    def edge(y):
        return w[0] * phi(1 - y) - w[1] * phi(y)

    assert nonnegative(edge, 2)
    # concave in u_t, so on the triangle the ends u_t = 0 and u_t = 1 - u_s decide
    assert nonnegative(lambda y: w[0] * phi(Q(0)) - w[1] * phi(y), 2)
    assert w[0] * phi(Q(1)) < w[1] * phi(Q(3, 10))
    assert phi(Q(3, 10)) / phi(Q(1)) == Q(100, 51) > Q(37, 20)
    assert phi(Q(0)) / phi(Q(1)) == Q(91, 51) < Q(37, 20)
    for row in (w, [*w, Q(0)]):
        printed = lemma_1(quadratic(-1, Q(3, 10)), row, 0)
        assert printed.hypothesis
        assert not printed.conclusion
        assert lemma_1(quadratic(-1, Q(3, 10)), row, 0, on_simplex=True).holds


def kinked() -> Curve:
    """phi = 2 on [0, .4], straight down to 1 at .6, 1 on [.6, 1]; h(0) = 0."""

    def H(x):
        middle = min(max(x - Q(2, 5), 0), Q(1, 5))
        return 2 * min(x, Q(2, 5)) + middle * (2 - 5 * middle / 2) + max(x - Q(3, 5), 0)

    return Curve(lambda x: -H(x), lambda x: -(2 - 5 * min(max(x - Q(2, 5), 0), Q(1, 5))))


def test_ce3_equality_allows_a_second_minimiser():
    w, base = weights("2/3", "1/3"), kinked()
    assert [-base.dh(x) for x in (Q(0), Q(2, 5), Q(1, 2), Q(3, 5), Q(1))] == [2, 2, Q(3, 2), 1, 1]
    # 1 <= phi <= 2 and w_t >= 2 w_s: the inequality of theorem 2 holds on the whole square
    assert w[0] * 1 >= w[1] * 2
    W = [separated_loss(base.h, w, Q(0), (x, 1 - x)) for x in (Q(1), Q(3, 5))]
    assert W == [-1, -1]
    for statement in (theorem_2, corollary_1):
        assert not statement(base, w, 0).holds
        assert statement(base, w, 0, unique=False).holds
    assert 2 in corollary_1(base, w, 0).cases
    for statement in (lemma_2, theorem_5):  # two classes: the reduced loss of h is h(u_t)
        assert not statement(base, w).holds
        assert statement(base, w, unique=False).holds


def test_ce4_a_symmetric_separated_loss_that_is_not_asymmetric():
    w, a = weights("1/2", "9/20", "1/20"), Q(1, 2)
    W = separation(f2(10, 1)[1], w, a)
    assert [(1 + a) * v - a for v in w] == weights("1/4", "7/40", "-17/40")
    assert W(1, 0, 0) == Q(-13, 12)
    assert W("14/25", "11/25", 0) < Q("-1.4601") < W(1, 0, 0)
    for statement, case in ((corollary_1, 4), (corollary_3, 3)):
        check = statement(quadratic(10, 1), w, a)
        assert check.cases == (case,)
        assert not check.conclusion
    assert theorem_1(lambda u: [quadratic(10, 1).h(x) for x in u], 3, a).conclusion


def test_ce5_the_papers_own_asymmetric_noise():
    w, a = [Q(3, 5), Q(2, 5), *[Q(0)] * 8], Q(1, 9)
    W = separation(f2(10, 1)[1], w, a)
    rest = [0] * 8
    assert W(1, 0, *rest) == Q(-65, 27)
    assert W("59/100", "41/100", *rest) == Q(-4146629, 1350000) < W(1, 0, *rest)
    for statement, case in ((corollary_1, 4), (corollary_3, 3)):
        check = statement(quadratic(10, 1), w, a)
        assert check.cases == (case,)
        assert not check.conclusion


@pytest.mark.parametrize(("k", "ratio"), [(10, Q(5, 3)), (100, Q(59, 39))])
def test_ce5_the_ratio_that_tau_one_leaves_for_pair_flips(k, ratio):
    a = Q(1, k - 1)
    assert ((1 + a) * Q(3, 5) - a) / ((1 + a) * Q(2, 5) - a) == ratio
    at_the_limit = quadratic(ratio - 1, 1)
    w = [Q(3, 5), Q(2, 5), *[Q(0)] * (k - 2)]
    few = [(1 - x, x, *[Q(0)] * (k - 2)) for x in grid(20)]
    check = corollary_3(at_the_limit, w, a, points=few)
    assert 1 in check.cases
    assert check.conclusion
    assert 1 not in corollary_3(quadratic(ratio - Q(99, 100), 1), w, a, points=few).cases


def test_ce6_symmetry_says_nothing_about_the_minimiser():
    def losses(u):
        return [u[t] - Q(1, 2) * (sum(u) - u[t]) for t in range(3)]

    assert all(sum(losses((x, y, 1 - x - y))) == 0 for x in grid(9) for y in grid(9) if x + y <= 1)
    assert losses((1, 0, 0))[0] == 1 > losses((0, 1, 0))[0] == Q(-1, 2)
    assert theorem_1(lambda u: u, 3, Q(1, 2)).holds


def test_ce7_no_minimiser_on_the_closed_simplex():
    w = weights("6/10", "3/10", "1/10")
    _, F = f2(7, "1/2")
    total = F(Q(1))

    def l(p):  # noqa: E743
        return total - F(p)

    xi = l(Q(1, 2))

    def W(*u):
        return reduced_loss(l, w, u, xi)

    assert W(1, 0, 0) == Q("0.475")
    bound = total / 4
    assert bound == Q(19, 48)
    # Phi_ij(p) = (w_i - w_j) l(p) + w_j l(0) >= w_j l(0), with equality at p = 1 only
    pairs = [(w[0], w[1]), (w[0], w[2]), (w[1], w[2])]
    assert sum(light for _, light in pairs) * total / 2 == bound
    for heavy, light in pairs:
        for p in grid(8):
            assert heavy * l(p) + light * l(1 - p) == (heavy - light) * l(p) + light * total
        assert (heavy + light) * xi > light * total
    assert nonnegative(lambda p: f2(7, "1/2")[0](p) - 1, 2)  # l falls strictly
    # equality in (1, 2) and (1, 3) means u_2 = u_3 = 0, and then the pair (2, 3) costs more
    for e in (Q(1, 10**3), Q(1, 10**6)):
        assert bound < W(1 - e - e * e, e, e * e) < bound + 3 * e
    assert lemma_2(quadratic(7, Q(1, 2)), w).holds  # with xi = l(1)
    assert not lemma_2(quadratic(7, Q(1, 2)), w, xi=xi).conclusion


def test_ce8_clean_weights_break_the_restatement_of_theorem_5():
    base = Curve(lambda p: 1 - p * p, lambda p: -2 * p)
    check = theorem_5_restated(base, [1, 0, 0])
    assert check.hypothesis
    assert not check.conclusion
    assert check.witness == (0,)
    assert theorem_5(base, [1, 0, 0], unique=False).hypothesis
    assert theorem_5_restated(base, weights("9/10", "1/10", "0")).holds


def test_ce9_two_classes_need_less_than_the_triangle():
    w = weights("55/100", "45/100")
    ratio = w[0] / w[1]
    assert ratio == Q(11, 9)
    beta, gamma = Q(-8), Q(1, 2)

    def exponent(x):
        return beta * (x - gamma) ** 2

    # phi(1/2) / phi(0) = e^2, a point (u_t, u_s) = (0, 1/2) of the triangle
    assert exp_below(exponent(gamma) - exponent(Q(0)), 2) == 3 > ratio
    # phi(x) = phi(1 - x), so dW/du_t = -(w_t - w_s) phi < 0
    assert all(exponent(x) == exponent(1 - x) for x in grid(50))
    # the same in numbers that are exact throughout
    rational = quadratic(-3, Q(1, 2))
    assert rational.dh(Q(1, 2)) / rational.dh(Q(0)) == 4 > ratio
    two, three = lemma_1(rational, w, 0, on_simplex=True), lemma_1(rational, [*w, Q(0)], 0)
    assert two.hypothesis
    assert two.conclusion
    assert not three.hypothesis


def test_ce10_a_transfer_can_rise_while_no_logit_step_does():
    w = weights("6/10", "4/10", "0")
    phi, H = f2("-3/2", "1/2")
    assert w[0] * phi(Q(0)) == Q("0.375") < w[1] * phi(Q(1, 2)) == Q("0.4")
    W = separation(H, w, 0)
    assert W("1/100", "49/100", "1/2") > W(0, "1/2", "1/2")
    assert not lemma_1(quadratic(Q(-3, 2), Q(1, 2)), w, 0).hypothesis
    # -dW/dz_t = u_t (w_t (1 - x) phi(x) - w_s y phi(y)) with x = u_t, y = u_s <= 1 - x.
    # y phi(y) grows up to 5/6, where it is 25/36, its maximum.
    peak = Q(5, 6)
    assert nonnegative(lambda y: Q(5, 8) + 3 * y - Q(9, 2) * y * y, 2, 0, peak)
    assert Q(5, 8) + 3 * peak - Q(9, 2) * peak**2 == 0
    assert peak * phi(peak) == Q(25, 36)
    assert nonnegative(lambda y: -(Q(5, 8) + 3 * y - Q(9, 2) * y * y), 2, peak, 1)
    assert nonnegative(lambda x: w[0] * (1 - x) * phi(x) - w[1] * Q(25, 36), 3, 0, 1 - peak)
    assert nonnegative(lambda x: w[0] * phi(x) - w[1] * phi(1 - x), 2, 1 - peak, 1)


def test_ce11_the_target_pair_condition_is_not_necessary_f2():
    w_t, w_1, w_2 = weights("61/100", "21/100", "18/100")
    phi, F = f2(2, 1)
    assert phi(Q(0)) / phi(Q(1)) == 3 > w_t / w_1

    def gain(q, light):  # Phi_tj(1 - q) - Phi_tj(1)
        return w_t * (F(Q(1)) - F(1 - q)) - light * F(q)

    assert gain(Q(1, 100), w_1) < 0  # the condition of theorem B fails for class 1
    # Every q_1, q_2: gain_1 >= -q_1/50 + 21/50 q_1^2, gain_2 >= 7/100 q_2 + 9/25 q_2^2.
    assert nonnegative(lambda q: gain(q, w_1) + q / 50 - Q(21, 50) * q * q, 3)
    assert nonnegative(lambda q: gain(q, w_2) - Q(7, 100) * q - Q(9, 25) * q * q, 3)

    def rest(p):  # the pair (1, 2), up to a constant
        return -w_1 * F(p) - w_2 * F(1 - p)

    # q_2 >= 2/7 q_1 makes the linear parts non-negative. Otherwise u_1/(u_1 + u_2) > 7/9, where
    # the pair (1, 2) is at least rest(7/9) - rest(14/25) above its minimum.
    assert nonnegative(lambda p: w_2 * phi(1 - p) - w_1 * phi(p), 2, Q(7, 9), 1)
    margin = rest(Q(7, 9)) - rest(Q(14, 25))
    assert margin > Q(1, 20) / 50  # more than class 1 can gain while q_1 <= 1/20
    # beyond q_1 = 1/20 its gain is positive
    assert nonnegative(lambda q: -q / 50 + Q(21, 50) * q * q - Q(1, 100000), 2, Q(1, 20), 1)


def test_ce11_the_target_pair_condition_is_not_necessary_f1():
    # f = 3^((1 - p)^2): beta = ln 3, gamma = 1
    w_t, w_1, w_2 = weights("61/100", "21/100", "18/100")
    assert w_t / w_1 < 3  # f(0) / f(1)
    # at q = 1/100: w_1 F(q) >= w_1 q 3^(.9801), w_t (F(1) - F(1-q)) <= w_t q 3^(.0001)
    assert (w_t / w_1) ** 50 < 3**49
    # f is convex: f(x) <= 3 - 2x, F(q) <= 3q - q^2, and F(1) - F(1-q) >= q. Hence
    # gain_1 >= -q/50 + 21/100 q^2 and gain_2 >= 7/100 q + 18/100 q^2.
    assert w_t - 3 * w_1 == Q(-1, 50)
    assert w_t - 3 * w_2 == Q(7, 100)
    # The pair (1, 2) rises with p where 3^(2p-1) > w_1/w_2 = 7/6: from 3/5 on.
    assert w_1 / w_2 == Q(7, 6)
    assert Q(7, 6) ** 5 < 3
    # On [2/3, 7/9] its slope is at least w_2 3^(1/3) - w_1, and 3^(1/3) > 1.44.
    assert Q("1.44") ** 3 < 3
    margin = Q(1, 9) * (w_2 * Q("1.44") - w_1)
    assert margin > Q(1, 10) / 50  # more than class 1 can gain while q_1 <= 1/10
    assert nonnegative(lambda q: -q / 50 + Q(21, 100) * q * q - Q(1, 10000), 2, Q(1, 10), 1)


def test_ce11_second_class_below_two_sevenths_means_a_share_above_seven_ninths():
    for q_1 in grid(40)[1:20]:
        q_2 = Q(2, 7) * q_1
        odds_1, odds_2 = q_1 / (1 - q_1), q_2 / (1 - q_2)
        assert odds_1 / (odds_1 + odds_2) > Q(7, 9)


def test_ce12_equality_at_an_interior_supremum():
    phi, F = f2(24, "3/4")

    def upper(x):  # F(1) - F(1 - x)
        return F(Q(1)) - F(1 - x)

    assert phi(Q(0)) / phi(Q(1)) == Q(29, 5)
    assert F(Q(1, 4)) == 7 * upper(Q(1, 4))
    assert nonnegative(lambda x: 7 * upper(x) - F(x), 3)  # so the supremum is 7
    tie = separation(F, weights("7/8", "1/8"), 0)
    assert tie("3/4", "1/4") == tie(1, 0)
    assert nonnegative(lambda x: tie(1 - x, x) - tie(1, 0), 3)
    lost = separation(F, weights("13/15", "2/15"), 0)
    assert lost("3/4", "1/4") < lost(1, 0)
    assert nonnegative(lambda x: lost(1 - x, x) - lost(1, 0), 3, 0, Q(1, 100))
    assert all(lost(1 - x, x) > lost(1, 0) for x in (Q(1, 100), Q(1, 1000)))


ROW_A = weights("5/10", "45/100", "5/100", "0", "0")
ROW_B = weights("3/10", "175/1000", "175/1000", "175/1000", "175/1000")


def test_ce13_rows_of_one_matrix_in_different_cases_f1():
    c_a, c_b = ([Q(3, 2) * v - Q(1, 2) for v in row] for row in (ROW_A, ROW_B))
    assert c_a[0] / c_a[1] == Q(10, 7)
    assert c_b[1] / c_b[0] == Q(19, 4)
    assert c_b[0] < 0
    # phi = e^(2 x^2) increases, so kappa_A = 1 <= 10/7. Row B at u = (.9, .1, 0, 0, 0):
    # W(e_t) - W(u) = |c_t| (H(1) - H(.9)) - |c_s| H(.1)
    gain = Q(1, 10) * exp_below(2 * Q("0.81"))
    cost = Q(1, 10) * exp_above(2 * Q("0.01"))
    assert -c_b[0] * gain > -c_b[1] * cost


def test_ce13_rows_of_one_matrix_in_different_cases_exactly():
    phi, H = f2(7, 0)
    assert nonnegative(lambda x: phi(x) - phi(Q(0)), 2)
    W = separation(H, ROW_B, "1/2")
    assert W(1, 0, 0, 0, 0) > W("9/10", "1/10", 0, 0, 0)
    # Row A: H is superadditive (H(x+y) - H(x) - H(y) = 7 x y (x+y)), so the rivals together
    # are worth at most c_1 H(m), m = 1 - u_t, and the target pays c_t (H(1) - H(1-m)).
    assert all(H(x + y) - H(x) - H(y) == 7 * x * y * (x + y) for x in grid(6) for y in grid(6))
    assert nonnegative(lambda m: Q(1, 4) * (H(Q(1)) - H(1 - m)) - Q(7, 40) * H(m), 3)


def test_ce14_a_rising_density_is_asymmetric_without_theorem_2():
    """AGCE with a = 1/2 and q = 2, whose density is 1/2 + x."""

    def H(x):
        return (x + x * x) / 2

    w = weights("3/5", "2/5")
    assert w[0] * Q(1, 2) < w[1] * Q(3, 2)  # Theorem 2 asks for the contrary at (u_t, u_s) = (0, 1)
    value = separation(H, w, 0)
    assert value("2/10", "8/10") > value("1/10", "9/10")  # mass moved to t hurts
    for x in grid(3):  # polynomials of degree 2; the right one is positive for x > 0
        assert value(1 - x, x) - value(1, 0) == x * (Q(7, 10) - x / 2)
    loss, row = AGCE(a=0.5, q=2), torch.tensor([0.6, 0.4])
    assert certify(loss, row).status == "REFUTED"
    assert certify(loss, row, claim="global").status == "PROVED"


def test_the_worked_example_allows_exactly_234_over_79():
    w, a, limit = [Q(1, 5), *[Q(4, 45)] * 9], Q(1, 30), Q(234, 79)

    def lower_end(xi):
        return (w[0] - w[1] * xi) / ((1 - w[0]) - (1 - w[1]) * xi)

    assert lower_end(limit) == a
    assert lower_end(limit - Q(1, 10**9)) < a < lower_end(limit + Q(1, 10**9))
    c = [(1 + a) * v - a for v in w]
    assert c[0] / c[1] == limit
    # the same ratio allows a up to the upper end of the third range
    top = (limit * w[0] - w[1]) / (limit * (1 - w[0]) - (1 - w[1]))
    assert corollary_3(quadratic(limit - 1, 1), w, top).cases == (2,)
    assert Q("0.345") < top < Q("0.3453")
    assert not corollary_3(quadratic(limit - 1, 1), w, top + Q(1, 10**6)).cases


def test_a_constant_below_the_infimum_breaks_the_reduced_loss():
    w = weights("6/10", "3/10", "1/10")

    def W(*u):
        return reduced_loss(lambda p: 1 - p, w, u, Q(-3, 2))

    assert W(1, 0, 0) == Q("-0.1") > W(0, 0, 1) == Q("-0.225")
    low = Q(0) - Q(1) / (3 - 2)  # inf l - D / (K - 2)
    assert reduced_loss(lambda p: 1 - p, w, (1, 0, 0), low) == reduced_loss(
        lambda p: 1 - p, w, (0, 0, 1), low
    )


def test_a_flat_middle_lets_the_reduced_loss_tie():
    def l(p):  # noqa: E743
        x = p - Q(1, 2)
        return -(x**3) + Q(9, 10) * abs(x) ** 3

    for x in grid(20)[1:11]:
        assert l(Q(1, 2) + x) < l(Q(1, 2)) < l(Q(1, 2) - x)
        for p, factor in ((Q(1, 2) + x, Q(7, 10)), (Q(1, 2) - x, Q(11, 10))):
            assert Q(3, 5) * l(p) + Q(2, 5) * l(1 - p) == factor * x**3


def test_a_flat_reduction_rescues_a_steep_separation_up_to_five_twenty_sevenths():
    # ten classes, 0.8 symmetric noise, tau = 0, phi(0) = 3 phi(1) = 3, f = 1
    w_t, w_s = Q(1, 5), Q(4, 45)
    assert w_t / w_s == Q(9, 4) < 3

    def slope(mixture):  # of W along the edge to a rival at e_t, times K - 1
        return 9 * mixture * (w_t - 3 * w_s) + (w_t - w_s)

    assert slope(Q(5, 27)) == 0
    assert slope(Q(5, 27) + Q(1, 1000)) < 0
