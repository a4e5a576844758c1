"""Any folder of class folders."""

import shutil

import pytest
import torch
from image_fixtures import class_folders, one_thread  # noqa: F401

from lossforge.data.folders import load


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("test", ["test", "val", "valid", "validation"])
def test_train_and_test_folders(tmp_path, test):
    class_folders(tmp_path / "train", "dog cat")
    class_folders(tmp_path / test, "cat dog", count=2, start=10)
    data = load(tmp_path, size=64)
    assert data.classes == ("cat", "dog")
    assert data.train.given.tolist() == [0, 0, 0, 1, 1, 1]
    assert data.train.true is None
    assert data.tests["test"].true.tolist() == [0, 0, 1, 1]
    assert data.train.inputs.path(4).name == "1.JPEG"
    for generator in (seeded(0), None):
        batch = data.transform(data.train.inputs, torch.tensor([0, 5]), generator)
        assert batch.shape == (2, 3, 64, 64)
        assert batch.dtype == torch.float32
    assert data.train.inputs[torch.tensor([0])].shape == (1, 3, 64, 64)


def test_several_test_folders_are_all_kept_by_name(tmp_path):
    class_folders(tmp_path / "train")
    for count, name in enumerate(("val", "test"), start=1):
        class_folders(tmp_path / name, count=count, start=10 * count)
    data = load(tmp_path)
    assert data.classes == ("cat", "dog")
    assert {name: len(split) for name, split in data.tests.items()} == {"test": 4, "val": 2}
    assert all(torch.equal(split.true, split.given) for split in data.tests.values())


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("train dev", r"a test folder \(test, val, valid, validation\) beside train"),
        ("train bus", r"a test folder \(test, val, valid, validation\) beside train"),
        ("training test", "must have train beside test"),
        ("test val", "must have train beside test, val"),
    ],
)
def test_the_folders_of_parts_are_not_taken_for_classes(tmp_path, names, message):
    for name in names.split():
        class_folders(tmp_path / name)
    with pytest.raises(ValueError, match=message):
        load(tmp_path, generator=seeded(0))


def test_class_folders_alone_are_split_at_random(tmp_path):
    class_folders(tmp_path, "a b c", count=4)
    first, again, other = (
        load(tmp_path, clean=True, test_fraction=0.25, generator=seeded(s)) for s in (1, 1, 2)
    )
    parts = [list(map(bytes, split.inputs.names)) for split in first.parts().values()]
    assert [len(part) for part in parts] == [9, 3]
    assert len({name for part in parts for name in part}) == 12
    assert (first.train.inputs.names == again.train.inputs.names).all()
    assert (first.train.inputs.names != other.train.inputs.names).any()
    assert torch.equal(first.train.true, first.train.given)
    labels = [bytes(name)[0] - ord("a") for name in first.train.inputs.names]
    assert first.train.given.tolist() == labels


def test_labels_count_as_unknown_unless_they_are_said_to_be_clean(tmp_path):
    class_folders(tmp_path)
    data = load(tmp_path, generator=seeded(0))
    assert data.train.true is None
    assert data.tests["test"].true is None


def test_other_files_and_hidden_ones_are_left_alone(tmp_path):
    class_folders(tmp_path)
    (tmp_path / "cat/notes.txt").write_text("not an image")
    (tmp_path / "cat/._0.jpg").write_bytes(b"resource fork")
    (tmp_path / ".cache").mkdir()
    data = load(tmp_path, generator=seeded(0))
    assert data.classes == ("cat", "dog")
    assert sum(map(len, data.parts().values())) == 6


@pytest.mark.parametrize("place", ["train", "test"])
def test_an_empty_class_is_named(tmp_path, place):
    for part in ("train", "test"):
        class_folders(tmp_path / part)
    shutil.rmtree(tmp_path / place / "dog")
    (tmp_path / place / "dog").mkdir()
    with pytest.raises(ValueError, match=r"class 'dog' has no images in .*dog"):
        load(tmp_path)


def test_a_class_of_the_test_alone_is_named(tmp_path):
    class_folders(tmp_path / "train")
    class_folders(tmp_path / "test", "cat dog emu")
    with pytest.raises(ValueError, match="classes that train has not: emu"):
        load(tmp_path)


def test_wrong_arguments_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="expected layout"):
        load(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="at least 2 class folders, got none"):
        load(tmp_path)
    class_folders(tmp_path)
    with pytest.raises(ValueError, match="generator must be given"):
        load(tmp_path)
    with pytest.raises(ValueError, match=r"test_fraction must be in \(0, 1\), got 1"):
        load(tmp_path, test_fraction=1, generator=seeded(0))
    with pytest.raises(ValueError, match=r"must leave a sample for testing, got 0\.01 of 6"):
        load(tmp_path, test_fraction=0.01, generator=seeded(0))
    with pytest.raises(TypeError, match="test_fraction must be a number, got 'half'"):
        load(tmp_path, test_fraction="half", generator=seeded(0))
    for size, error in ((0, ValueError), (-3, ValueError), (64.0, TypeError), (True, TypeError)):
        with pytest.raises(error, match=f"size must be an integer of 1 or more, got {size}"):
            load(tmp_path, size=size, generator=seeded(0))
