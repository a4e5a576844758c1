"""How long something takes, from the first part of it."""

import time

from ..text import duration

LONG = 60.0  # seconds; what takes less is not announced


class Pace:
    """Estimate once how long a step will take, from the first part of it.

    Args:
        what: The step, as a sentence names it.
        part: What the estimate is measured on.
    """

    def __init__(self, what: str, part: str) -> None:
        self._what, self._part = what, part
        self._start: tuple[float, float] | None = None
        self._told = False

    def __call__(self, done: float, total: float) -> str:
        """Return what to tell: the time left, if the step takes over a minute; else nothing.

        Args:
            done: How much is done. The first call starts the clock.
            total: Of how much.
        """
        now = time.monotonic()
        if self._start is None:
            self._start = now, done
        began, before = self._start
        if self._told or done == before:
            return ""
        self._told = True
        spent = now - began
        left = spent / (done - before) * (total - done)
        if spent + left < LONG:
            return ""
        return f"{self._what} takes about {duration(left)} more, as measured on {self._part}"
