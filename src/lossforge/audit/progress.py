"""The progress of an audit."""

from collections.abc import Callable
from typing import NamedTuple

from ..training import Pace


class Progress(NamedTuple):
    """The progress of an audit: the current step, and how much of it is done.

    Args:
        text: The step.
        done: How much of it is done.
        total: Of how much.
        note: Something to tell besides, once.
    """

    text: str
    done: int
    total: int
    note: str = ""


def paced(report: Callable[[Progress], object], text: str) -> Callable[[int, int], None]:
    """Return a function of how much is done of how much, which reports a step and its pace."""
    pace = Pace(text, "its first part")

    def show(done: int, total: int) -> None:
        report(Progress(text, done, total, pace(done, total)))

    return show
