"""Fixtures of tests that open a page: a browser, and where screenshots go."""

import os
from pathlib import Path

import pytest
from chromium import Browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as found:
        yield found


@pytest.fixture(scope="module")
def artefacts(tmp_path_factory):
    """The folder that LOSSFORGE_ARTEFACTS names, or a temporary one."""
    named = os.environ.get("LOSSFORGE_ARTEFACTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
