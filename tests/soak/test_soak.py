"""Every fiftieth problem of each attack; `make soak` poses all of them."""

import subprocess
import sys
from pathlib import Path

import pytest

from soak import ATTACKS

HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_fiftieth_of_the_soak_finds_no_fault(attack: str) -> None:
    command = [sys.executable, str(HERE), attack, "--seeds", "::50", "--workers", "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
