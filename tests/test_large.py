"""Large inputs, which may be worked on in blocks, equal the same rows in small pieces."""

import pytest
import torch
from bases import ids
from cases import Case, named
from laws import assert_close, value_and_gradient

CASES = named("CE", "BEF", "BQF", "TS-two-bases", "BR-series", "BR-log", "nested-sum")
OVER_CASES = pytest.mark.parametrize("case", CASES, ids=ids(CASES))


def assert_equal_in_pieces(loss, logits, target, size: int) -> None:
    value, gradient = value_and_gradient(lambda z: loss(z, target), logits)
    pieces = [
        value_and_gradient(lambda z, t=t: loss(z, t), piece)
        for piece, t in zip(logits.split(size), target.split(size), strict=True)
    ]
    assert_close(value, torch.cat([piece[0] for piece in pieces]))
    assert_close(gradient, torch.cat([piece[1] for piece in pieces]))


@OVER_CASES
@pytest.mark.parametrize(("n", "k"), [(3001, 401), (7, 100_003)], ids=["tall", "wide"])
def test_many_rows_or_classes_equal_small_pieces(case: Case, n: int, k: int) -> None:
    z, t = 2 * torch.randn(n, k), torch.randint(k, (n,))
    t[1] = -100
    z[2, (t[2] + 1) % k] = -torch.inf
    assert_equal_in_pieces(case.make().with_policy(reduction="none"), z, t, 1 + n // 40)


@OVER_CASES
def test_many_probability_targets_equal_small_pieces(case: Case) -> None:
    z, q = 2 * torch.randn(60, 150), torch.softmax(torch.randn(60, 150), 1)
    assert_equal_in_pieces(case.make().with_policy(reduction="none"), z, q, 3)


@pytest.mark.slow
@OVER_CASES
def test_large_value_matches_naive_formula(case: Case) -> None:
    z, t = 2 * torch.randn(3001, 401), torch.randint(401, (3001,))
    value = case.make().with_policy(reduction="none")(z, t)
    for i in (0, 1500, 3000):
        assert_close(value[i], case.naive(z[i], int(t[i])))
