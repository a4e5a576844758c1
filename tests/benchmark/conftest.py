"""What the undisturbed grid gives, and a process that forks workers."""

import pytest
from tiny_grid import Drill, records, tiny_runs


@pytest.fixture(scope="session")
def drill():
    drill = Drill()
    yield drill
    drill.close()


@pytest.fixture(scope="session")
def undisturbed(drill, tmp_path_factory) -> dict[str, bytes]:
    """The records of the grid, done by one worker whom nobody disturbs."""
    store = tmp_path_factory.mktemp("undisturbed")
    runs = tiny_runs()
    assert drill.work(store, runs) == 0
    found = records(store)
    assert set(found) == {run.id for run in runs}
    assert len(found) == 12
    return found
