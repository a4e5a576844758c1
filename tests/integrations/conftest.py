"""What the tests against frameworks share."""

from collections.abc import Iterator

import pytest
import torch

# no tests, and not to be imported for doctests where its framework is not installed
collect_ignore = ["lightning_step.py"]


@pytest.fixture
def float32(_float64_and_seed) -> Iterator[None]:
    """The default dtype that users of the frameworks have."""
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(torch.float64)
