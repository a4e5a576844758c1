"""Damage of any kind is named and never shown; what is damaged is repeated to the same bytes."""

import copy
import gzip
import hashlib
import io
import json
import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from made_records import made, whole_record, write
from tiny_grid import tiny_runs
from typer.testing import CliRunner

from lossforge.benchmark import RunFolder, RunSpec, execute
from lossforge.benchmark.archive import pack, unpack
from lossforge.benchmark.grid import read_grid, save_grid
from lossforge.benchmark.integrity import Damaged, parse_object, read_object, sealed
from lossforge.benchmark.records import read_grids, read_record, read_records
from lossforge.benchmark.store import Forecast
from lossforge.cli.main import app
from lossforge.training import State

SPEC = RunSpec(data="digits", model="mlp", loss="CE", expression="CE", training={"lr": 0.1})
ARCHIVES = sorted((Path(__file__).parents[2] / "results").glob("*.jsonl.gz"))


@pytest.fixture(autouse=True)
def _float32():
    torch.set_default_dtype(torch.float32)  # as outside the tests; conftest sets it back


@pytest.fixture
def folder(tmp_path) -> RunFolder:
    folder = RunFolder(tmp_path, SPEC)
    folder.open()
    folder.finish(whole_record(SPEC), {"seconds": 2.5, "host": "desk"})
    return folder


def change(path: Path, edit, *, seal: bool) -> None:
    """Edit a file of JSON, and perhaps make its seal fit again."""
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(sealed(content) if seal else content))


def accuracy(value):
    return lambda content: content["metrics"][-1]["tests"]["test"].update(top1=value)


def other_loss(content):
    content["spec"]["loss"] = "BEF"


@pytest.mark.parametrize("name", ["record.json", "about.json"])
def test_a_flipped_bit_is_noticed_wherever_it_is(folder, name):
    path, whole = folder.path / name, read_record(folder.path)
    content, harmless = path.read_bytes(), 0
    for place in range(0, 8 * len(content), 101):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        with suppress(Damaged):
            assert read_record(folder.path) == whole  # a blank for another
            harmless += 1
    assert harmless < 10


@pytest.mark.parametrize("edit", [accuracy(99.99), accuracy(500), other_loss])
def test_an_edited_record_is_named(folder, edit):
    change(folder.path / "record.json", edit, seal=False)
    with pytest.raises(Damaged, match=r"record\.json is damaged: its content does not match"):
        read_record(folder.path)


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (accuracy(500), "top1: Input should be less than or equal to 100, got 500"),
        (accuracy(-1), "top1: .*got -1"),
        (accuracy("90"), "top1: .*got '90'"),
        (accuracy(10**400), "top1: .*got 1000000"),
        (other_loss, f"its spec is that of run .*, its id {SPEC.id}"),
        (lambda content: content.update(classes=0), "classes: .*got 0"),
        (lambda content: content.update(noise_rate=1.5), "noise_rate"),
        (lambda content: content.update(metrics={}), "metrics: Input should be a valid list"),
        (lambda content: content["spec"].pop("seed"), "its spec has no seed"),
        (lambda content: content["spec"].update(seed="0"), "its spec cannot be read: seed"),
        (lambda content: content.update(sesl="0"), "sesl: Extra inputs"),
        (lambda content: content.pop("parameters"), "parameters: Field required"),
    ],
)
@pytest.mark.parametrize("seal", [True, False], ids=["sealed", "old"])
def test_what_cannot_be_a_record_is_named_whatever_its_seal(folder, edit, reason, seal):
    def without_seal(content):
        del content["seal"]
        edit(content)

    change(folder.path / "record.json", without_seal, seal=seal)
    with pytest.raises(Damaged, match=reason):
        read_record(folder.path)


MALFORMED = {
    "empty": b"",
    "cut": b'{"id": "a", "metrics": [',
    "a list": b"[]",
    "a text": b'"record"',
    "null": b"null",
    "a key twice": b'{"id": "a", "id": "b"}',
    "NaN": b'{"noise_rate": NaN}',
    "infinite": b'{"noise_rate": 1e999}',
    "a number of 5000 digits": b'{"classes": ' + b"9" * 5000 + b"}",
    "nested 100,000 times": b'{"spec": ' + b"[" * 100_000,
    "nested 900 times": b'{"spec": ' + b"[" * 900 + b"]" * 900 + b"}",
    "not UTF-8": b'{"id": "\xff\xfe"}',
    "UTF-16": '{"id": "a"}'.encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbf{"id": "a"}',
    "a lone surrogate": b'{"id": "\\ud800"}',
    "binary": bytes(range(256)),
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("name", ["record.json", "about.json"])
def test_malformed_files_are_named(folder, text, name):
    (folder.path / name).write_bytes(text)
    with pytest.raises(Damaged, match=rf"{name} is damaged: \S"):
        read_record(folder.path)
    assert not folder.finished


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_not_a_file_is_named_without_waiting(folder, make):
    (folder.path / "record.json").unlink()
    make(folder.path / "record.json")
    with pytest.raises(Damaged, match="it is not a file"):
        read_record(folder.path)


def test_a_folder_in_place_of_a_file_is_said_before_training(folder, tmp_path):
    (folder.path / "record.json").unlink()
    (folder.path / "record.json").mkdir()
    with pytest.raises(IsADirectoryError, match=r"must be a file.*record\.json"):
        execute(tmp_path, SPEC)


def test_a_copied_run_is_named_as_that(folder, tmp_path):
    shutil.copytree(folder.path, tmp_path / "copy")
    found = []
    assert [one.id for one in read_records(tmp_path, on_damage=found.append)] == [SPEC.id]
    (line,) = found
    assert f"copy/record.json is damaged: it is a copy of run {SPEC.id}" in line


def test_files_of_another_run_are_not_taken_for_its_own(folder, tmp_path):
    other = RunFolder(tmp_path, SPEC.model_copy(update={"seed": 1}))
    other.open()
    other.finish(whole_record(other.spec), {"seconds": 9.0})
    shutil.copy(other.path / "about.json", folder.path)
    with pytest.raises(Damaged, match=r"about\.json is damaged: it is that of another run"):
        read_record(folder.path)


def test_a_record_of_an_earlier_version_is_read_and_sealed_when_its_grid_is_run(folder, tmp_path):
    change(folder.path / "about.json", lambda content: content.pop("id"), seal=True)
    written = {name: read_object(folder.path / name) for name in ("record.json", "about.json")}
    record = (folder.path / "record.json").read_bytes()
    for name in written:
        change(folder.path / name, lambda content: content.pop("seal"), seal=False)
    old = read_record(folder.path)
    assert not old.sealed
    assert execute(tmp_path, SPEC) == "finished before"
    assert written == {name: read_object(folder.path / name) for name in written}
    assert record == (folder.path / "record.json").read_bytes()
    assert read_record(folder.path).sealed


@pytest.mark.parametrize("name", ["record.json", "about.json"])
def test_without_its_seal_a_file_is_damaged_and_not_of_an_earlier_version(folder, name):
    change(folder.path / name, lambda content: content.pop("seal"), seal=False)
    with pytest.raises(Damaged, match=rf"{name} is damaged: its seal is missing"):
        read_record(folder.path)
    with pytest.warns(UserWarning, match="its seal is missing; the run is repeated"):
        folder.open()
    assert not folder.finished
    assert "seal" not in json.loads((folder.path / name).read_text())


def test_results_out_of_range_are_not_written(folder):
    record = whole_record(SPEC)
    accuracy(float(101))(record)
    with pytest.raises(ValueError, match=r"top1: .*got 101"):
        folder.finish(record, {})


@pytest.mark.parametrize("content", ["{}", "{", None])
def test_without_times_nothing_is_estimated_wrongly(folder, tmp_path, content):
    about = folder.path / "about.json"
    about.unlink() if content is None else about.write_text(content)
    assert Forecast(tmp_path, [SPEC], 1).left({SPEC.id: "finished"}) is None


# What is repeated


@pytest.fixture(scope="module")
def run() -> RunSpec:
    return tiny_runs()[1]


@pytest.fixture(scope="module")
def finished(run, tmp_path_factory) -> Path:
    store = tmp_path_factory.mktemp("finished")
    assert execute(store, run) == "done"
    return store


@pytest.fixture
def store(finished, tmp_path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "store"))


def test_a_run_with_a_damaged_record_is_repeated_to_the_same_bytes(store, finished, run):
    path = store / run.id / "record.json"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"top1"', b'"top2"'))
    assert RunFolder(store, run).status == "waiting"
    with pytest.warns(UserWarning, match=r"record\.json is damaged: .*; the run is repeated"):
        assert execute(store, run) == "done"
    assert path.read_bytes() == whole
    assert execute(store, run) == "finished before"


@pytest.mark.filterwarnings("default")
def test_the_command_line_names_the_damage_in_one_line(store, run):
    path = store / run.id / "record.json"
    path.write_text("{")
    result = CliRunner().invoke(app, ["run", str(store), run.id])
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{run.id} done\n"
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"note: {path} is damaged: ")
    assert line.endswith("; the run is repeated")


@pytest.mark.parametrize("content", [b"", b"{", b"{}"])
def test_a_damaged_spec_is_written_again(store, run, content):
    path = store / run.id / "spec.json"
    whole = path.read_bytes()
    path.write_bytes(content)
    assert execute(store, run) == "finished before"
    assert path.read_bytes() == whole


# Checkpoints


class Stop(Exception):  # noqa: N818
    """Ends a run after some epochs."""


def stop_after(epochs):
    def on_epoch(state):
        if state.epoch == epochs:
            raise Stop

    return on_epoch


@pytest.fixture(scope="module")
def interrupted(run, tmp_path_factory) -> Path:
    """A store in which the run has checkpoints of its first two epochs."""
    store = tmp_path_factory.mktemp("interrupted")
    with pytest.raises(Stop):
        execute(store, run, on_epoch=stop_after(2))
    assert len(list((store / run.id).glob("checkpoint-*.pt"))) == 2
    return store


def nothing(state):
    return b"nothing of that kind"


def a_list(state):
    return torch_bytes([1, 2, 3])


def another_model(state):
    return replace(state, model={"weight": torch.zeros(2)}).to_bytes()


def other_shapes(state):
    model = {key: value[:1] for key, value in state.model.items()}
    return replace(state, model=model).to_bytes()


def other_precision(state):
    model = {key: value.double() for key, value in state.model.items()}
    return replace(state, model=model).to_bytes()


def not_finite(state):
    model = {key: value * float("nan") for key, value in state.model.items()}
    return replace(state, model=model).to_bytes()


def no_optimizer(state):
    return replace(state, optimizer={}).to_bytes()


def misshapen_moments(state):
    moments = copy.deepcopy(state.optimizer)
    for values in moments["state"].values():
        values["momentum_buffer"] = torch.zeros(3)
    return replace(state, optimizer=moments).to_bytes()


def wrong_epochs(state):
    return replace(state, metrics=[{"epoch": 7}]).to_bytes()


def too_many_epochs(state):
    return replace(state, metrics=[{"epoch": 1 + i} for i in range(100)]).to_bytes()


def metrics_of_text(state):
    return replace(state, metrics="abc").to_bytes()


def torch_bytes(content):
    file = io.BytesIO()
    torch.save(content, file)
    return file.getvalue()


UNUSABLE = [
    *(nothing, a_list, another_model, other_shapes, other_precision, not_finite, no_optimizer),
    *(misshapen_moments, wrong_epochs, too_many_epochs, metrics_of_text),
]


@pytest.mark.parametrize("spoil", UNUSABLE)
@pytest.mark.parametrize("newest", [True, False], ids=["newest", "both"])
def test_an_unusable_checkpoint_with_a_valid_hash_is_named_and_not_used(
    interrupted, finished, run, tmp_path, spoil, newest
):
    store = Path(shutil.copytree(interrupted, tmp_path / "store"))
    folder, resumed = RunFolder(store, run), []
    for epoch in (2,) if newest else (1, 2):
        state = State.from_bytes(folder.load_checkpoint())
        folder.save_checkpoint(epoch, spoil(state))
    with pytest.warns(UserWarning, match=r"checkpoint-00000\d\.pt is damaged and ignored: \S"):
        outcome = execute(store, run, on_epoch=lambda state: resumed.append(state.epoch))
    assert outcome == "done"
    assert resumed == ([2, 3] if newest else [1, 2, 3])
    record = Path(run.id, "record.json")
    assert (store / record).read_bytes() == (finished / record).read_bytes()


def test_a_checkpoint_of_another_run_is_not_used(interrupted, finished, run, tmp_path):
    other = run.model_copy(update={"seed": 5})
    with pytest.raises(Stop):
        execute(tmp_path, other, on_epoch=stop_after(2))
    (tmp_path / run.id).mkdir()
    for path in (tmp_path / other.id).glob("checkpoint-*.pt"):
        shutil.copy(path, tmp_path / run.id)
    with pytest.warns(UserWarning, match="its content does not match its hash"):
        assert execute(tmp_path, run) == "done"
    record = Path(run.id, "record.json")
    assert (tmp_path / record).read_bytes() == (finished / record).read_bytes()


def test_a_checkpoint_of_an_earlier_version_is_used(interrupted, run, tmp_path):
    store = Path(shutil.copytree(interrupted, tmp_path / "store"))
    for path in (store / run.id).glob("checkpoint-*.pt"):
        content = path.read_bytes()[32:]
        path.write_bytes(hashlib.sha256(content).digest() + content)  # the run's id was not hashed
    resumed = []
    execute(store, run, on_epoch=lambda state: resumed.append(state.epoch))
    assert resumed == [3]


# Archives and grids


@pytest.fixture
def archive(tmp_path) -> Path:
    records = [made(loss, "clean", 0, 60.0, classes=10) for loss in ("CE", "GCE", "BEF")]
    pack(write(tmp_path / "packed", records), tmp_path / "packed.jsonl.gz")
    return tmp_path / "packed.jsonl.gz"


@pytest.mark.parametrize("line", range(4))
def test_an_edited_archive_is_refused(archive, line):
    lines = [json.loads(text) for text in gzip.decompress(archive.read_bytes()).splitlines()]
    target = lines[line]["metrics"] if line else lines[line]["about"]["versions"]
    target["loss" if line else "torch"] = [0.0] * 3 if line else "9.9"
    archive.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    with pytest.raises(Damaged, match="does not match its seal"):
        unpack(archive)


@pytest.mark.parametrize("line", range(4))
def test_an_archive_that_lost_a_seal_is_refused(archive, line):
    lines = [json.loads(text) for text in gzip.decompress(archive.read_bytes()).splitlines()]
    del lines[line]["seal"]
    archive.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    with pytest.raises(Damaged, match="lost its seal"):
        unpack(archive)


@pytest.mark.parametrize("path", ARCHIVES, ids=lambda path: path.name.partition(".")[0])
def test_committed_archives_are_sealed(path):
    header, records = unpack(path)
    assert "seal" in header
    assert all(record.sealed for record in records)


def test_the_committed_table_of_tuned_losses_is_sealed():
    lines = (ARCHIVES[0].parent / "tuned.jsonl").read_bytes().splitlines()
    assert lines
    assert all("seal" in parse_object(line) for line in lines)


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_malformed_lines_of_an_archive_are_refused(archive, text):
    lines = gzip.decompress(archive.read_bytes()).splitlines()
    for place in (0, 2):
        changed = [*lines[:place], text.replace(b"\n", b" "), *lines[place + 1 :]]
        archive.write_bytes(gzip.compress(b"\n".join(changed)))
        with pytest.raises(Damaged, match=r"packed\.jsonl\.gz is not"):
            unpack(archive)


@pytest.mark.parametrize(
    "changes",
    [
        {"metrics": 1},
        {"metrics": {"loss": [1.0], "validation": [], "tests": {}}},
        {"metrics": {"loss": [1.0], "validation": [None], "tests": {"test": {"top1": []}}}},
        {"metrics": {"loss": 1, "validation": 1, "tests": 1}},
        {"spec": []},
        {"spec": {"training": 1}},
        {"about": []},
        {"id": []},
    ],
)
def test_a_sealed_archive_of_another_shape_is_refused(archive, changes):
    header, first, *_ = map(json.loads, gzip.decompress(archive.read_bytes()).splitlines())
    lines = [header, sealed({**first, **changes})]
    archive.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    with pytest.raises(Damaged, match=r"packed\.jsonl\.gz is not"):
        unpack(archive)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace(b"digits", b"digit5"),
        lambda text: text[:-20],
        lambda text: b'{"runs": [1]}',
        lambda text: b'{"runs": "ab", "title": 1}',
    ],
)
def test_a_damaged_grid_is_named_and_left_out(folder, tmp_path, damage):
    save_grid(tmp_path, read_grid("digits"), [SPEC])
    (path,) = tmp_path.glob("grid-*.json")
    assert read_grids(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(Damaged, match=path.name):
        read_grids(tmp_path)
    found = []
    assert read_grids(tmp_path, on_damage=found.append) == []
    assert path.name in found[0]
    assert [one.id for one in read_records(tmp_path)] == [SPEC.id]
    save_grid(tmp_path, read_grid("digits"), [SPEC])
    assert read_grids(tmp_path)
