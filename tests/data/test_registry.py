"""The list of data, the doctor's findings, and `lossforge data` as a user runs it."""

import io
import json
import pickle
import tarfile
from dataclasses import replace

import numpy as np
import pytest
import torch

pytest.importorskip("typer")
from image_fixtures import clothing1m
from typer.testing import CliRunner

from lossforge import data
from lossforge.cli.main import app
from lossforge.data import registry
from lossforge.data.doctor import histogram
from lossforge.data.source import File, checksum_of


def run(*arguments):
    return CliRunner().invoke(app, ["data", *map(str, arguments)])


def test_every_source_is_listed_with_how_to_get_it():
    lines = run("list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(registry.SOURCES)
    ways = {line.split()[0]: line.split()[1] for line in lines}
    assert ways["digits"] == "embedded"
    assert ways["cifar10"] == "fetch"
    assert ways["clothing1m"] == "by"


@pytest.mark.parametrize("name", [name for name, s in registry.SOURCES.items() if not s.layout])
def test_embedded_data_load_and_pass_the_doctor(name):
    dataset = data.load(name.upper())
    assert dataset.name == name
    result = run("doctor", name)
    assert result.exit_code == 0
    assert "problem" not in result.stdout
    assert f"train: {len(dataset.train):,} samples" in result.stdout


@pytest.mark.parametrize("name", [name for name, s in registry.SOURCES.items() if s.layout])
def test_absent_data_get_the_layout_and_a_way_to_it(name, tmp_path):
    result = run("doctor", name, "--data-dir", tmp_path)
    assert result.exit_code == 1
    assert str(tmp_path) in result.stdout
    source = registry.SOURCES[name]
    assert source.layout in result.stdout
    assert (source.obtain or f"lossforge data fetch {name}") in result.stdout


@pytest.mark.parametrize("name", [name for name, s in registry.SOURCES.items() if s.obtain])
def test_what_cannot_be_downloaded_says_how_to_get_it(name, tmp_path):
    result = run("fetch", name, "--data-dir", tmp_path)
    assert result.exit_code == 2
    assert registry.SOURCES[name].obtain in result.stderr
    assert not list(tmp_path.iterdir())


def test_embedded_data_need_no_download(tmp_path):
    result = run("fetch", "digits", "--data-dir", tmp_path)
    assert result.exit_code == 0
    assert result.stdout == ""
    assert "digits needs no download" in result.stderr


@pytest.mark.parametrize("verb", ["fetch", "doctor"])
def test_an_unknown_name_lists_the_known(verb):
    result = run(verb, "imagenet")
    assert result.exit_code == 2
    assert "unknown data set 'imagenet'; known: digits, digits-pairs" in result.stderr


def test_label_files_are_not_data_sets():
    with pytest.raises(ValueError, match="cifar-n is not a data set of its own"):
        data.load("cifar-n")


def small_cifar100():
    """An archive in the official layout, with three images."""
    pixels = np.zeros((3, 3072), np.uint8)
    files = {
        "train": {b"data": pixels, b"fine_labels": [0, 1, 1]},
        "test": {b"data": pixels, b"fine_labels": [0, 0, 1]},
        "meta": {b"fine_label_names": [b"apple", b"bear"]},
    }
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name, content in files.items():
            packed = pickle.dumps(content, protocol=2)
            info = tarfile.TarInfo(f"cifar-100-python/{name}")
            info.size = len(packed)
            tar.addfile(info, io.BytesIO(packed))
    return stream.getvalue()


@pytest.fixture
def served_cifar100(served, tmp_path, monkeypatch):
    """A place for CIFAR-100, which the list now has from a small archive on this machine."""
    folder, url = served
    archive = folder / "cifar-100-python.tar.gz"
    archive.write_bytes(small_cifar100())
    file = File(archive.name, checksum_of(archive, "md5:"), f"{url}/{archive.name}")
    monkeypatch.setitem(
        registry.SOURCES, "cifar100", replace(registry.SOURCES["cifar100"], archive=file)
    )
    return tmp_path


def test_fetch_then_doctor_then_load(served_cifar100):
    result = run("fetch", "cifar100", "--data-dir", served_cifar100)
    assert result.exit_code == 0, result.stderr
    folder = served_cifar100 / "cifar100" / "cifar-100-python"
    assert result.stdout.split() == [str(folder / name) for name in ("train", "test", "meta")]
    assert "terms: " in result.stderr
    # again: nothing is downloaded or unpacked anew
    before = (folder / "train").stat().st_mtime_ns
    assert run("fetch", "cifar100", "--data-dir", served_cifar100).exit_code == 0
    assert (folder / "train").stat().st_mtime_ns == before

    result = run("doctor", "cifar100", "--data-dir", served_cifar100)
    assert result.exit_code == 1
    # these are not the published files, and far too few
    assert f"{folder / 'train'} has md5:" in result.stdout
    assert "expected is md5:16019d7e3df5f24257cddd939b257f8d" in result.stdout
    assert "train: 3 samples, 50,000 when complete" in result.stdout
    assert data.load("cifar100", data_dir=served_cifar100).train.given.tolist() == [0, 1, 1]


def test_a_half_finished_fetch_is_finished(served_cifar100):
    run("fetch", "cifar100", "--data-dir", served_cifar100)
    folder = served_cifar100 / "cifar100"
    for file in (folder / "cifar-100-python").iterdir():
        file.unlink()
    (folder / "cifar-100-python").rmdir()  # the archive is there, its content is not
    assert run("fetch", "cifar100", "--data-dir", served_cifar100).exit_code == 0
    assert (folder / "cifar-100-python" / "train").exists()


def test_part_of_a_release_is_not_taken_for_the_whole(served_cifar100):
    run("fetch", "cifar100", "--data-dir", served_cifar100)
    missing = served_cifar100 / "cifar100" / "cifar-100-python" / "test"
    missing.unlink()
    result = run("fetch", "cifar100", "--data-dir", served_cifar100)
    assert result.exit_code == 2
    assert f"{missing} is missing; move away" in result.stderr
    assert (
        f"{missing} is missing" in run("doctor", "cifar100", "--data-dir", served_cifar100).stdout
    )


def test_the_doctor_names_missing_lists(tmp_path):
    missing = clothing1m(tmp_path) / "clean_val_key_list.txt"
    missing.unlink()
    result = run("doctor", "clothing1m", "--data-dir", tmp_path)
    assert result.exit_code == 1
    assert f"problem: {missing} is missing" in result.stdout


def test_the_doctor_names_unreadable_images(tmp_path):
    root = clothing1m(tmp_path)
    image = next((root / "images").rglob("*.jpg"))
    image.write_bytes(image.read_bytes()[:200])
    result = run("doctor", "clothing1m", "--data-dir", tmp_path)
    assert result.exit_code == 1
    assert f"problem: {image}: cannot be read as an image" in result.stdout


def test_the_doctor_quotes_a_bad_line(tmp_path):
    root = clothing1m(tmp_path)
    path = root / "noisy_label_kv.txt"
    path.write_text(path.read_text() + "images/0/00/new.jpg seven\n")
    result = run("doctor", "clothing1m", "--data-dir", tmp_path)
    assert result.exit_code == 1
    number = len(path.read_text().splitlines())
    assert f"problem: {path}:{number}" in result.stdout
    assert "seven" in result.stdout


def test_a_bar_for_each_of_few_classes():
    lines = histogram(torch.tensor([0, 0, 0, 0, 2]), 4).splitlines()
    assert [line.split()[:2] for line in lines] == [["0", "4"], ["1", "0"], ["2", "1"], ["3", "0"]]
    assert [line.count("#") for line in lines] == [40, 0, 10, 0]


def test_sizes_of_many_classes():
    labels = torch.repeat_interleave(torch.arange(30), torch.tensor([5] * 20 + [25] * 10))
    lines = histogram(labels, 50).splitlines()
    sizes = {tuple(line.split()[:3]): int(line.split()[3]) for line in lines}
    assert sum(sizes.values()) == 50
    assert sizes["0", "to", "2"] == 20  # the absent ones
    assert sizes["3", "to", "5"] == 20
    assert sizes["24", "to", "26"] == 10


def test_frozen_labels_without_the_true_ones(tmp_path):
    for rate in (0.2, 0.4, 0.6):
        path = tmp_path / f"cifar10_dependent_{rate}.json"
        path.write_text(json.dumps([0] * 50_000))
    result = run("doctor", "cifar10-idn", "--data-dir", tmp_path)
    assert result.exit_code == 0
    assert "0.4: 50,000 samples" in result.stdout
    assert "0.4: the true labels are not known here" in result.stdout


def test_the_real_label_files_pass(real_data):
    result = run("doctor", "cifar-n", "--data-dir", real_data)
    assert result.exit_code == 0
    assert "cifar10 worst: 40.21 %" in result.stdout
    assert "sha256 as expected" in result.stdout


def test_the_real_images_are_complete(cifar10_folder):
    result = run("doctor", "cifar10", "--data-dir", cifar10_folder)
    assert "train: 50,000 samples" in result.stdout
    assert "test: 10,000 samples" in result.stdout
    # images that were compressed on the way have other checksums, and nothing else is wrong
    problems = [line for line in result.stdout.splitlines() if line.startswith("problem")]
    assert all("expected is md5:" in line for line in problems)
    assert result.exit_code == bool(problems)
