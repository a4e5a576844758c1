"""Adapters are imported without their frameworks, and say what to install."""

import subprocess
import sys

import pytest
from torch import nn

import lossforge
from lossforge import integrations
from lossforge.integrations.skorch import classifier


def test_importing_all_adapters_needs_torch_alone():
    script = (
        "import sys, torch, lossforge; before = set(sys.modules)\n"
        "from lossforge import integrations\n"
        "for name in integrations.__all__: getattr(integrations, name)\n"
        "new = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "print(*sorted(new - {'lossforge', 'torch'} - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_a_name_that_is_no_adapter():
    with pytest.raises(AttributeError, match="no attribute 'keras'"):
        _ = integrations.keras


def test_what_to_install_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "skorch", None)
    with pytest.raises(ImportError, match=r"pip install 'lossforge\[skorch\]'"):
        classifier(nn.Identity, lossforge.BEF)
