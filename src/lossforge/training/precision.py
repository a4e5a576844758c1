"""A trial of bf16 in a child process, before it is used on a CPU.

Some virtual machines advertise instructions (AMX) that they cannot execute. A convolution in bf16
then kills the process, or leaves it unable to run even float32 convolutions.
"""

import functools
import signal
import subprocess
import sys

import torch

TIMEOUT = 300.0
"""Seconds; loading torch takes most of it, on a busy machine or a slow disk."""

TRIAL = """
try:
    import torch
except ImportError:
    raise SystemExit  # this interpreter cannot try it
from torch import nn
layers = nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2, padding=1)
model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 16, 10))
model.to(memory_format=torch.channels_last)
with torch.autocast("cpu", torch.bfloat16):
    logits = model(torch.ones(16, 3, 8, 8).contiguous(memory_format=torch.channels_last))
logits.float().sum().backward()
"""


def check_precision(precision: str, device: torch.device) -> None:
    """Raise a RuntimeError if training in bf16 does not work on this CPU."""
    if precision == "bf16" and device.type == "cpu" and (failure := bf16_failure()) is not None:
        raise RuntimeError(
            f"bf16 does not work on this CPU: a trial {failure}; set "
            'ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in the environment, or precision = "float32"'
        )


@functools.cache
def bf16_failure() -> str | None:
    """Describe how small layers in bf16 failed in a child process; None if they worked.

    The child is run once for each process and has its environment.
    """
    if not sys.executable:  # an embedded interpreter
        return None
    # -P: no file of the working directory is imported in place of a module
    command = [sys.executable, "-P", "-c", TRIAL]
    try:
        done = subprocess.run(command, capture_output=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        return f"did not finish within {TIMEOUT:g} seconds"
    if done.returncode == 0:
        return None
    if done.returncode < 0:
        return f"was killed by {signal.Signals(-done.returncode).name}"
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return f"failed with {lines[-1]!r}" if lines else f"exited with status {done.returncode}"
