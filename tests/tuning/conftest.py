"""Searches train in single precision, as users do."""

import pytest
import torch

pytest.importorskip("optuna")


@pytest.fixture(autouse=True)
def _single(_float64_and_seed):
    torch.set_default_dtype(torch.float32)
