"""Where the numbers of a loss are looked for."""

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Range:
    """An interval that a number is drawn from.

    Args:
        low: Its lower end.
        high: Its upper end.
        log: Whether the logarithm is uniform rather than the number.
        whole: Whether only whole numbers are meant.
        zero: With `log`: whether the lowest twentieth of the interval stands for 0.
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False
    zero: bool = False

    @property
    def _least(self) -> float:
        """Below it a coordinate means 0."""
        return float(self.low * (self.high / self.low) ** 0.05) if self.zero else -math.inf

    def value(self, coordinate: float) -> float:
        """Return the number of a coordinate, rounded to the four digits that are printed."""
        if coordinate < self._least:
            return 0.0
        return int(coordinate) if self.whole else float(f"{coordinate:.4g}")

    def coordinate(self, value: float) -> float:
        """Return a coordinate of a number within the range."""
        return self.low if self.zero and value == 0 else value

    def including(self, value: float) -> "Range":
        """Extend the range to a number that a paper or the theory proposes."""
        if self.log and value == 0:
            return self if self.zero else replace(self, low=self.low / 2, zero=True)
        if self.zero and value < self._least:
            value = value / 2  # stays above what stands for 0
        low, high = min(self.low, value), max(self.high, value)
        return self if (low, high) == (self.low, self.high) else replace(self, low=low, high=high)


def log(low: float, high: float, *, zero: bool = False) -> Range:
    """Make the range of a positive number whose logarithm is uniform."""
    return Range(low, high, log=True, zero=zero)


def uniform(low: float, high: float) -> Range:
    """Make the range of a number, every value equally likely."""
    return Range(low, high)


def whole(low: int, high: int) -> Range:
    """Make the range of a whole number."""
    return Range(low, high, whole=True)


SCALE = log(0.1, 30)
FOCAL = uniform(0, 3)  # exponent of a focal factor in a sum
ACTIVE, PASSIVE = log(0.05, 100), log(0.01, 100)  # of the published sums: 0.05-50, 0.015-10
MARGIN = log(10, 1e6)  # m of the eps-softmax
