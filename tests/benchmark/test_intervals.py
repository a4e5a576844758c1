"""Intervals of paired differences against scipy's own test."""

import pytest
import scipy.stats

from lossforge.benchmark.statistics import interval, paired_differences


def test_the_interval_is_that_of_the_t_test():
    values = [1.0, 2.5, 2.0, 7.0]
    assert interval(values) == pytest.approx(
        tuple(scipy.stats.ttest_1samp(values, 0.0).confidence_interval(0.95))
    )
    assert interval([3.0, 3.0]) == (3, 3)


@pytest.mark.parametrize("values", [[], [1.0]])
def test_fewer_than_two_values_have_no_interval(values):
    assert interval(values) == (None, None)


def test_only_seeds_that_both_have_are_paired():
    assert paired_differences({2: 5.0, 0: 3.0, 1: 1.0}, {0: 1.0, 2: 1.0, 7: 9.0}) == [4.0, 2.0]
