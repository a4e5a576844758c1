"""WebVision and ILSVRC12 in their official layouts, whole and with something wrong."""

import shutil

import pytest
import torch
from image_fixtures import (
    SYNSETS,
    ilsvrc12_flat,
    ilsvrc12_folders,
    one_thread,  # noqa: F401
    truncate,
    webvision,
    write,
)

from lossforge.data import webvision as module
from lossforge.data.webvision import load_ilsvrc12

LIST = "info/train_filelist_google.txt"


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    webvision(root)
    ilsvrc12_folders(root)
    return root


@pytest.fixture
def data(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "copy")


def test_it_loads_end_to_end(whole):
    data = module.load(data_dir=whole)
    assert data.num_classes == 50
    assert data.classes[0] == f"class {SYNSETS[0]}"
    assert data.train.given.tolist() == [0, 0, 1, 1, 49, 49]
    assert data.train.true is None
    assert {name: len(split) for name, split in data.tests.items()} == {
        "webvision": 2,
        "ilsvrc12": 50,
    }
    assert data.tests["webvision"].given.tolist() == [3, 7]
    assert data.tests["ilsvrc12"].true.tolist() == list(range(50))
    for split in data.parts().values():
        index = torch.arange(len(split))[-2:]
        for generator in (seeded(0), None):
            batch = data.transform(split.inputs, index, generator)
            assert batch.shape == (2, 3, 224, 224)
            assert batch.isfinite().all()


def test_a_noisy_part_can_be_held_out(whole):
    data = module.load(data_dir=whole).hold_out(1 / 3, generator=seeded(0))
    assert (len(data.train), len(data.validation)) == (4, 2)
    batch = data.transform(data.validation.inputs, torch.tensor([1]), seeded(0))
    assert batch.shape == (1, 3, 224, 224)


def test_the_folder_itself_may_be_named(whole):
    data = module.load(tests=("webvision",), data_dir=whole / "webvision")
    assert list(data.tests) == ["webvision"]


def test_original_validation_images_serve_too(data):
    (data / "webvision/val_images_256").rename(data / "webvision/val_images")
    assert len(module.load(data_dir=data).tests["webvision"].inputs[torch.tensor([0, 1])]) == 2


def test_without_ilsvrc12_it_says_what_to_do(data):
    shutil.rmtree(data / "ilsvrc12")
    with pytest.raises(
        FileNotFoundError, match=r"val/n01440764.*\n(.*\n)*tests=\(\"webvision\",\)"
    ):
        module.load(data_dir=data)
    assert list(module.load(tests=("webvision",), data_dir=data).tests) == ["webvision"]


@pytest.mark.parametrize("tests", [("imagenet",), ()])
def test_unknown_tests_are_refused(whole, tests):
    with pytest.raises(ValueError, match="tests must be some of webvision, ilsvrc12"):
        module.load(tests=tests, data_dir=whole)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("google/q0001/b.jpg", "a name and a label are expected, the label is missing"),
        ("7", "a name and a label are expected, the name is missing"),
        ("", "a name and a label are expected, the line is blank"),
        ("google/q0001/b.jpg one", "the label must be a whole number in 0..999, got 'one'"),
        ("google/q0001/b.jpg 1000", "the label must be a whole number in 0..999, got '1000'"),
        ("google/q0001/b.jpg -1", "the label must be a whole number in 0..999, got '-1'"),
        ("google/q0001/b.jpg 1.0", "the label must be a whole number in 0..999, got '1.0'"),
        ("../../secret.jpg 1", "the name leads out of the data's folder"),
        ("/etc/secret.jpg 1", "the name leads out of the data's folder"),
    ],
)
def test_a_bad_line_is_named(data, line, complaint):
    path = write(data / "webvision" / LIST, "google/q0001/a.jpg 0", line, "google/q0002/c.jpg 1")
    with pytest.raises(ValueError, match=r"expected|must|leads") as caught:
        module.load(data_dir=data)
    assert str(caught.value) == f"{path}:2: {complaint}: {line!r}"


def test_names_may_hold_spaces_and_lines_may_end_as_on_windows(data):
    path = data / "webvision" / LIST
    (data / "webvision/google/q0001/a.jpg").rename(data / "webvision/google/q0001/a b.jpg")
    path.write_bytes(b"google/q0001/a b.jpg 0\r\ngoogle/q0002/c.jpg 1\r\n\r\n")
    train = module.load(data_dir=data).train
    assert train.given.tolist() == [0, 1]
    assert train.inputs[torch.tensor([0, 1])].shape == (2, 3, 224, 224)


@pytest.mark.parametrize("name", ["info/synsets.txt", "info/val_filelist.txt", LIST])
def test_a_missing_file_is_named(data, name):
    (data / "webvision" / name).unlink()
    with pytest.raises(FileNotFoundError, match=name.split("/")[1]):
        module.load(data_dir=data)


def test_a_missing_folder_of_images_is_named(data):
    shutil.rmtree(data / "webvision/val_images_256")
    with pytest.raises(FileNotFoundError, match="val_images_256 is missing; expected layout"):
        module.load(data_dir=data)


def test_a_short_or_broken_list_of_synsets_is_refused(data):
    path = write(data / "webvision/info/synsets.txt", *(f"{name} thing" for name in SYNSETS[:49]))
    with pytest.raises(ValueError, match="must list at least 50 synsets, got 49"):
        module.load(data_dir=data)
    write(path, *(f"{name} thing" for name in SYNSETS[:49]), "tench")
    with pytest.raises(ValueError, match=r"synsets\.txt:50: a synset and its names .*: 'tench'"):
        module.load(data_dir=data)


def test_a_truncated_image_is_named_by_the_transform(data):
    path = truncate(data / "webvision/google/q0002/c.jpg")
    loaded = module.load(data_dir=data)
    with pytest.raises(ValueError, match="truncated") as caught:
        loaded.transform(loaded.train.inputs, torch.tensor([1, 2]), seeded(0))
    assert str(path) in str(caught.value)


def test_ilsvrc12_alone_takes_the_first_50_in_order(tmp_path):
    ilsvrc12_folders(tmp_path)
    split = load_ilsvrc12(data_dir=tmp_path)
    assert split.given.tolist() == list(range(50))
    assert split.inputs.path(49).parent.name == SYNSETS[49]
    assert torch.equal(load_ilsvrc12(data_dir=tmp_path / "ilsvrc12").given, split.given)


def test_ilsvrc12_as_on_kaggle(tmp_path):
    ilsvrc12_flat(tmp_path)
    split = load_ilsvrc12(SYNSETS[:50], data_dir=tmp_path)
    assert split.true.tolist() == list(range(50))
    assert split.inputs.path(0).name == "ILSVRC2012_val_00000051.JPEG"
    assert split.inputs[torch.tensor([0, 49])].shape == (2, 3, 224, 224)


def test_ilsvrc12_of_other_classes_is_refused(tmp_path):
    ilsvrc12_folders(tmp_path, SYNSETS[:3])
    with pytest.raises(ValueError, match=r"must hold the 1000 synsets .* it holds 3"):
        load_ilsvrc12(data_dir=tmp_path)
    with pytest.raises(FileNotFoundError, match=f"no images of {SYNSETS[3]}"):
        load_ilsvrc12(SYNSETS[:4], data_dir=tmp_path)


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (["a,b"], ":1: the header must be ImageId,PredictionString: 'a,b'"),
        (["ImageId,PredictionString", "x"], ":2: an image and its synset are expected: 'x'"),
        (["ImageId,PredictionString", "x,7"], ":2: an image and its synset are expected: 'x,7'"),
    ],
)
def test_a_bad_solution_file_is_named(tmp_path, lines, complaint):
    path = write(tmp_path / "ilsvrc12/LOC_val_solution.csv", *lines)
    with pytest.raises(ValueError, match=r"must|expected") as caught:
        load_ilsvrc12(data_dir=tmp_path)
    assert str(caught.value) == f"{path}{complaint}"
