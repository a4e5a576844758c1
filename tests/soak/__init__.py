"""Attacks with random problems, one module each: they find what no list of cases thinks of.

An attack is a module that is named in `ATTACKS` and offers

    SIZE: int                         the number of problems of a whole round
    attack(seed: int) -> list[str]    the faults found in problem `seed`, a line each

`python tests/soak` runs the whole round, test_soak.py every fiftieth problem of it.
"""

import importlib
import signal
from types import ModuleType

ATTACKS = ("losses", "kernel", "signals", "certificates", "stores", "names")


def load(name: str) -> ModuleType:
    """The module of an attack."""
    return importlib.import_module(f"soak.{name}")


def solve(name: str, seeds: range) -> tuple[int, list[tuple[int, str]]]:
    """Pose these problems; return their number, and each fault with its seed."""
    attack, faults = load(name).attack, []
    for seed in seeds:
        try:
            found = attack(seed)
        except Exception as error:  # a problem that cannot be posed must not end the round
            found = [f"the attack itself failed: {type(error).__name__}: {error}"]
        faults += [(seed, " ".join(line.split())) for line in found]
    return len(seeds), faults


def leave_interrupts_to_the_parent() -> None:
    """Finish the problem at hand on Ctrl-C.

    SIG_IGN would be inherited by the commands that an attack starts; a handler is not.
    """
    signal.signal(signal.SIGINT, lambda *_: None)
