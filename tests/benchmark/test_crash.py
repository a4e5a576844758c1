"""Workers killed at any moment: what they leave is finished by others, to the same byte."""

import json
import os
import random
import signal
import time

import pytest
from tiny_grid import KEPT, records, tiny_runs

from lossforge.training import make_method
from lossforge.training.methods import METHODS

pytestmark = pytest.mark.slow

KILLS = 25
KILLED = -signal.SIGKILL


def check(store, undisturbed) -> None:
    """All records are there, equal to the byte, none beside them, and nothing else that lasts."""
    assert records(store) == undisturbed
    assert {path.name for path in store.iterdir()} == set(undisturbed)
    for folder in store.iterdir():
        for name in {path.name for path in folder.iterdir()} - KEPT:
            assert name.startswith("."), f"{folder.name}/{name}"
        assert json.loads((folder / "about.json").read_text())["command"]


def age(store) -> None:
    """Make everything older than a living worker's files can be."""
    for path in store.glob("*/*"):
        os.utime(path, (time.time() - 1000,) * 2)


class Workers:
    """Two workers on a store; any that is killed is replaced at once."""

    def __init__(self, drill, store, runs) -> None:
        self.drill, self.store, self.runs = drill, store, runs
        self.pids = [self.start(), self.start()]

    def start(self) -> int:
        return self.drill.start(self.store, self.runs)

    def live_until(self, moment: float) -> bool:
        """Whether any of them is still at work then."""
        while time.monotonic() < moment and self.pids:
            time.sleep(0.002)
            self.pids = [pid for pid in self.pids if self.drill.wait(pid, 0) is None]
        return bool(self.pids)

    def kill(self, chance: random.Random) -> bool:
        """Kill one; whether it was alive to the last."""
        pid = self.pids.pop(chance.randrange(len(self.pids)))
        os.kill(pid, signal.SIGKILL)
        killed = self.drill.wait(pid) == KILLED
        self.pids.append(self.start())
        return killed


def test_killed_at_random_moments(drill, undisturbed, tmp_path, record_property):
    chance = random.Random(20250511)
    runs = tiny_runs()
    began = time.monotonic()
    Workers(drill, tmp_path / "measured", runs).live_until(began + 60)
    duration = time.monotonic() - began
    check(tmp_path / "measured", undisturbed)

    kills, stores = 0, []
    while kills < KILLS:  # a grid that ends early is followed by another
        store = tmp_path / f"life{len(stores)}"
        stores.append(store)
        moments = sorted(chance.uniform(0, duration) for _ in range(KILLS - kills))
        began = time.monotonic()
        workers = Workers(drill, store, runs)
        for moment in moments:
            if workers.live_until(began + moment):
                kills += workers.kill(chance)
        workers.live_until(began + 120)
    for store in stores:
        check(store, undisturbed)
    record_property(
        "summary",
        f"killed {kills} times at random, in {len(stores)} grid(s) of {duration:.1f} s undisturbed",
    )


@pytest.fixture(scope="module")
def points(drill, undisturbed, tmp_path_factory) -> list[str]:
    """Every point of writing that an undisturbed run passes, in the order of the first time."""
    folder = tmp_path_factory.mktemp("traced")
    passed = folder / "passed"
    assert drill.work(folder / "store", tiny_runs()[:1], passed=str(passed)) == 0
    return list(dict.fromkeys(passed.read_text().splitlines()))


def test_the_points_are_all_there(points):
    verbs = [f"{when} {verb}" for verb in ("open", "fsync") for when in ("before", "after")]
    verbs += [f"{when} write" for when in ("before", "inside", "after")]
    files = [f"checkpoint-00000{epoch}.pt" for epoch in (1, 2, 3)] + ["record.json", "about.json"]
    wanted = {f"{verb} draft of {file}" for verb in verbs for file in files}
    wanted |= {f"{when} replace {file}" for when in ("before", "after") for file in files}
    wanted |= {f"{when} fsync folder of {file}" for when in ("before", "after") for file in files}
    wanted |= {f"{verb} draft of claim" for verb in verbs if "fsync" not in verb}
    wanted |= {f"{verb} draft of spec.json" for verb in verbs} | {"after replace spec.json"}
    wanted |= {
        f"{when} {verb} claim" for verb in ("link", "unlink") for when in ("before", "after")
    }
    assert wanted <= set(points)


def test_killed_once_at_every_point(drill, undisturbed, points, tmp_path, record_property):
    """The points are dealt to the runs; what a resumed run does not pass goes to the next."""
    runs, left = tiny_runs(), set()
    store, passed = tmp_path / "store", tmp_path / "passed"
    for number, run in enumerate(runs):
        left |= set(points[number :: len(runs) - 1] if number < len(runs) - 1 else [])
        while drill.work(store, [run], faults=list(left), passed=str(passed)) == KILLED:
            left.remove(passed.read_text().splitlines()[-1])
        assert (store / run.id / "record.json").exists()
    hit = passed.read_text().splitlines()
    assert left == set()
    assert sorted(hit) == sorted(points)
    check(store, undisturbed)
    age(store)
    assert drill.work(store, runs) == 0
    assert {path.name for path in store.glob("*/*")} == KEPT
    assert records(store) == undisturbed
    record_property("summary", f"killed once at each of {len(hit)} points of writing")


def test_a_truncated_checkpoint_falls_back_to_the_one_before(
    drill, undisturbed, tmp_path, tmp_path_factory
):
    run = tiny_runs()[0]
    fault = "after fsync folder of checkpoint-000003.pt"
    passed = tmp_path_factory.mktemp("passed") / "passed"
    assert drill.work(tmp_path, [run], faults=[fault], passed=str(passed)) == KILLED
    newest = tmp_path / run.id / "checkpoint-000003.pt"
    newest.write_bytes(newest.read_bytes()[:-100])
    assert drill.work(tmp_path, [run]) == 0
    assert records(tmp_path) == {run.id: undisturbed[run.id]}


# options with which a method is past its warm-up before the last of three epochs
OPTIONS = {"coteaching": "forget_rate=0.3, gradual=2"} | dict.fromkeys(
    ("decoupling", "mixture", "forward", "backward", "adaptation", "dmi"), "warm_up=1"
)


@pytest.mark.parametrize("method", [f"{name}({OPTIONS.get(name, '')})" for name in METHODS])
def test_methods_killed_after_every_checkpoint(drill, tmp_path, tmp_path_factory, method):
    run = tiny_runs()[0].model_copy(update={"method": str(make_method(method))})
    assert drill.work(tmp_path / "whole", [run]) == 0
    for epoch in (1, 2, 3):
        store, passed = tmp_path / f"killed{epoch}", tmp_path_factory.mktemp("passed") / "passed"
        fault = f"after fsync folder of checkpoint-00000{epoch}.pt"
        assert drill.work(store, [run], faults=[fault], passed=str(passed)) == KILLED
        assert drill.work(store, [run]) == 0
        assert records(store) == records(tmp_path / "whole")
