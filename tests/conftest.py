"""Float64 by default, a fresh seed for every test, reproducible hypothesis runs in CI."""

import os
import random
import signal
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

from lossforge import interrupts

pytest_plugins = ["plugins.skips", "plugins.pages"]

settings.register_profile(
    "local", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# every epoch is one that a test may interrupt
os.environ["LOSSFORGE_CHECKPOINT_SECONDS"] = "0"


@pytest.fixture(autouse=True)
def _float64_and_seed() -> Iterator[None]:
    dtype = torch.get_default_dtype()
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()
    handlers = {one: signal.getsignal(one) for one in interrupts.SIGNALS}
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    yield
    torch.set_default_dtype(dtype)
    torch.set_rng_state(states[0])
    np.random.set_state(states[1])
    random.setstate(states[2])
    # a signal that a test left ignored would be ignored by the children of the next one
    for one, handler in handlers.items():
        if handler is not None:
            signal.signal(one, handler)


def pytest_terminal_summary(terminalreporter) -> None:
    """What tests recorded for the reader, also from the workers of a parallel run."""
    for report in terminalreporter.getreports("passed"):
        for key, value in report.user_properties:
            if key == "summary":
                terminalreporter.write_line(value)
