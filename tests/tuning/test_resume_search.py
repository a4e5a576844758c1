"""A search that is killed goes on, loses no trial and counts none twice."""

import itertools
import json
import os
import random
import signal
import time

import pytest
from tiny_search import COUNTED, NOISE, SETTINGS, finish, start, stored, wait_for

from lossforge.tuning import tune
from lossforge.tuning.plan import make_plan
from lossforge.tuning.study import StaleTrials, open_study

LONG = {"epochs": 30}  # so that a kill meets a trial at work


def outcome(found: dict) -> str:
    return json.dumps([(trial["expression"], trial["score"]) for trial in found["trials"]])


def check_whole(store, limit=12):
    """As many trials count as there shall be, and every lost one among them, once."""
    trials = stored(store)
    counted = [row.point for row in trials if row.state in COUNTED]
    assert len(counted) == len(set(counted)) == limit
    assert {row.state for row in trials} <= {*COUNTED, "FAIL"}
    for row in trials:
        if row.state == "FAIL" and row.point and "surplus" not in row.attributes:
            assert counted.count(row.point) == 1
    return trials


@pytest.mark.slow
def test_killed_and_continued_is_the_same_search(tmp_path):
    whole = finish(start(tmp_path / "whole", settings=LONG))
    assert len(whole["trials"]) == 12
    delays = random.Random(0)
    for finished in (1, 4, 8):
        process = start(tmp_path / "killed", settings=LONG)
        wait_for(tmp_path / "killed", finished, running=1)
        time.sleep(delays.uniform(0, 0.3))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    again = finish(start(tmp_path / "killed", settings=LONG))
    assert outcome(again) == outcome(whole)
    trials = check_whole(tmp_path / "killed")
    assert any(row.state == "FAIL" for row in trials)
    assert outcome(finish(start(tmp_path / "killed", settings=LONG))) == outcome(whole)
    check_whole(tmp_path / "killed")  # nothing was added


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_worker_is_replaced(tmp_path, signum):
    process = start(tmp_path, settings=LONG, workers=2)
    trials = wait_for(tmp_path, 2, running=2)
    running = next(row for row in trials if row.state == "RUNNING")
    os.kill(int(running.attributes["worker"].split()[-1]), signum)
    assert len(finish(process)["trials"]) == 12
    check_whole(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_says_how_to_go_on(tmp_path, signum):
    process = start(tmp_path, settings=LONG)
    wait_for(tmp_path, 2, running=1)
    process.send_signal(signum)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signum
    assert "the same command continues where this one stopped" in err.splitlines()[-1]
    assert "Traceback" not in err
    assert len(finish(start(tmp_path, settings=LONG))["trials"]) == 12
    check_whole(tmp_path)


@pytest.mark.slow
def test_two_commands_share_a_search(tmp_path):
    rivals = [start(tmp_path, settings=LONG) for _ in range(2)]
    assert outcome(finish(rivals[0])) == outcome(finish(rivals[1]))
    trials = check_whole(tmp_path)
    assert len({row.attributes["worker"] for row in trials}) == 2


def search(store, **changes):
    options = {"trials": 12, "settings": SETTINGS, "final_seeds": 0, **changes}
    return tune("digits", NOISE, "GCE", store=store, **options)


@pytest.mark.slow
def test_the_seed_determines_the_search(tmp_path):
    first, second = search(tmp_path / "1"), search(tmp_path / "2")
    assert first.trials == second.trials
    other = search(tmp_path / "1", seed=1)
    assert other.study != first.study
    assert other.trials[1:] != first.trials[1:]


@pytest.mark.slow
def test_a_search_can_be_prolonged(tmp_path):
    short = search(tmp_path / "1", trials=4)
    assert len(short.trials) == 4
    long = search(tmp_path / "1")
    assert long.trials[:4] == short.trials
    assert long.trials == search(tmp_path / "2").trials


def test_the_default_is_tried_first_and_the_best_is_no_worse(tmp_path):
    found = search(tmp_path)
    assert found.trials[0].origin == "default"
    assert found.trials[0].expression == found.default == "GCE(q=0.7)"
    assert found.score >= found.default_score == found.trials[0].score


def test_a_trial_elsewhere_is_lost_when_it_stops_moving(tmp_path):
    plan = make_plan("digits", NOISE, "GCE", settings=SETTINGS)
    with open_study(plan, f"sqlite:///{tmp_path / 'study.db'}") as study:
        study.prepare(list)
        trial, point = study.take(12)
        trial.set_user_attr("worker", "elsewhere pid:[1] 17")
        stale = StaleTrials(timeout=0.05)
        study.recover(stale.is_stale)  # has only now been seen
        trial.report(50.0, 3)
        time.sleep(0.1)
        study.recover(stale.is_stale)  # has moved
        assert [t.state.name for t in study.trials()] == ["RUNNING"]
        time.sleep(0.1)
        study.recover(stale.is_stale)
        study.recover(stale.is_stale)
        lost, queued = study.trials()
        assert (lost.state.name, queued.state.name) == ("FAIL", "WAITING")
        assert queued.system_attrs["fixed_params"] == point
        assert queued.user_attrs == {"origin": "default", "again": 0}


def test_no_more_trials_are_begun_than_shall_count(tmp_path):
    plan = make_plan("digits", NOISE, "GCE", settings=SETTINGS)
    url = f"sqlite:///{tmp_path / 'study.db'}"
    with open_study(plan, url) as study, open_study(plan, url) as rival:
        study.prepare(list)
        assert study.take(2) is not None
        assert rival.take(2) is not None
        assert study.take(2) is None
        assert rival.take(2) is None
        assert len(study.trials()) == 2


def test_what_two_processes_queue_is_done_once(tmp_path):
    plan = make_plan("digits", NOISE, "GCE", settings=SETTINGS)
    with open_study(plan, f"sqlite:///{tmp_path / 'study.db'}") as study:
        study.prepare(list)
        study._study.enqueue_trial(plan.start, user_attrs={"origin": "default"})
        assert study.take(12) is not None
        assert study.take(12) is None
        assert study.take(12) is not None
        assert [trial.state.name for trial in study.trials()] == ["RUNNING", "FAIL", "RUNNING"]
        study.recover(lambda trial: False)
        assert len(study.trials()) == 3  # the surplus one is not queued again


def test_a_trial_lost_before_it_had_a_point_makes_no_other_twice(tmp_path):
    plan = make_plan("digits", NOISE, "GCE", settings=SETTINGS)
    with open_study(plan, f"sqlite:///{tmp_path / 'study.db'}") as study:
        study.prepare(list)
        assert study.take(12) is not None  # the default
        lost = study._study.ask()  # by a process that is killed at once
        points = [study.take(12)[1]["q"]]
        study.fail(lost.number)
        points += [study.take(12)[1]["q"] for _ in range(3)]
        assert len(set(points)) == 4
        assert [trial.user_attrs.get("turn") for trial in study.trials()] == [0, None, 2, 1, 3, 4]


def test_a_trial_that_is_repeated_keeps_its_point_to_itself(tmp_path):
    plan = make_plan("digits", NOISE, "GCE", settings=SETTINGS)
    with open_study(plan, f"sqlite:///{tmp_path / 'study.db'}") as study:
        study.prepare(list)
        assert study.take(12) is not None  # the default
        lost, point = study.take(12)
        study.fail(lost.number)
        _, other = study.take(12)  # before the lost one is queued again
        study.recover(lambda trial: False)
        _, again = study.take(12)
        _, last = study.take(12)
        assert again == point
        assert len({point["q"], other["q"], last["q"]}) == 3
        assert [trial.user_attrs["turn"] for trial in study.trials()] == [0, 1, 2, 1, 3]


@pytest.mark.parametrize("when", range(4))
def test_a_trial_that_fails_while_another_is_taken_keeps_its_point(tmp_path, monkeypatch, when):
    """Whichever reading of the trials it falls behind."""
    plan = make_plan("digits", NOISE, "GCE", settings=SETTINGS)
    with open_study(plan, f"sqlite:///{tmp_path / 'study.db'}") as study:
        study.prepare(list)
        assert study.take(12) is not None  # the default
        lost, point = study.take(12)
        read, count = study.trials, itertools.count()

        def trials(*states):
            found = read(*states)
            if next(count) == when:
                study.fail(lost.number)
            return found

        monkeypatch.setattr(study, "trials", trials)
        _, other = study.take(12)
        monkeypatch.undo()
        assert other != point
