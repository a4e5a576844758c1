"""Metrics reach the file, TensorBoard and trackers."""

import errno
import json
import os

import pytest
from training_problems import mlp, plain_samples, run, two_moons

import lossforge
from lossforge.training import MetricsFile, Settings, TensorBoard, Tracker
from lossforge.training.track import flat

SETTINGS = Settings(epochs=3, batch_size=16)


def follow(*trackers, state=None):
    def on_epoch(now):
        for tracker in trackers:
            tracker(now)

    samples = plain_samples(*two_moons(20))
    return run(mlp(2, 2), lossforge.CE(), samples, SETTINGS, state=state, on_epoch=on_epoch)[0]


def test_the_file_has_a_line_for_each_epoch_also_of_a_continued_run(tmp_path):
    path = tmp_path / "metrics.jsonl"
    states = []
    whole = follow(MetricsFile(path), states.append)
    lines = path.read_text()
    assert [json.loads(line) for line in lines.splitlines()] == whole.metrics
    path.write_text(lines[: len(lines) // 2])
    follow(MetricsFile(path), state=states[0])
    assert path.read_text() == lines
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_names_the_file_and_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "metrics.jsonl"
    state = follow(MetricsFile(path))
    before = path.read_text()

    def full(draft, lines, **_):
        draft.touch()
        raise OSError(errno.ENOSPC, "No space left on device")  # as write() says it, with no name

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="cannot write: No space left") as caught:
        MetricsFile(path)(state)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_gone_names_the_file(tmp_path):
    path = tmp_path / "gone" / "metrics.jsonl"
    with pytest.raises(FileNotFoundError, match="cannot write") as caught:
        follow(MetricsFile(path))
    assert caught.value.filename == str(path)


def test_no_two_drafts_share_a_name(tmp_path, monkeypatch):
    drafts, replace = [], os.replace
    monkeypatch.setattr(os, "replace", lambda old, new: (drafts.append(old), replace(old, new)))
    follow(MetricsFile(tmp_path / "metrics.jsonl"))
    assert len(set(drafts)) == SETTINGS.epochs
    assert {(draft.name[0], draft.suffix) for draft in drafts} == {
        (".", ".part")
    }  # by which a store knows what is left


def test_a_tracker_receives_flat_numbers():
    calls = []

    class Run:
        def log(self, data, step=None):
            calls.append((data, step))

    state = follow(Tracker(Run()))
    assert [step for _, step in calls] == [1, 2, 3]
    assert [data for data, _ in calls] == [flat(row) for row in state.metrics]
    assert calls[0][0]["tests/test/top1"] == state.metrics[0]["tests"]["test"]["top1"]
    assert "validation" not in calls[0][0]
    assert all(isinstance(value, int | float) for value in calls[0][0].values())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_events_hold_every_epoch_once(tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    states = []
    board = TensorBoard(tmp_path)
    whole = follow(board, states.append)
    board.close()
    again = TensorBoard(tmp_path)
    follow(again, state=states[0])
    again.close()
    events = EventAccumulator(str(tmp_path)).Reload()
    for name in flat(whole.metrics[0]):
        found = events.Scalars(name)
        assert [event.step for event in found] == [1, 2, 3]
        expected = [flat(row)[name] for row in whole.metrics]
        assert [event.value for event in found] == pytest.approx(expected, rel=1e-6)
