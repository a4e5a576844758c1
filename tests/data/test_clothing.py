"""Clothing1M in its official layout, whole and with something wrong."""

import pytest
import torch
from image_fixtures import clothing1m, one_thread, truncate, write  # noqa: F401

from lossforge.data import clothing


@pytest.fixture
def folder(tmp_path):
    return clothing1m(tmp_path)


def test_it_loads_end_to_end(folder):
    data = clothing.load(data_dir=folder.parent)
    assert data.num_classes == 14
    assert data.classes[13] == "Garment 13"
    assert data.train.given.tolist() == [5, 0, 13, 5]
    assert data.train.true is None
    assert data.validation is None
    assert list(data.tests) == ["test"]
    assert data.tests["test"].true.tolist() == [12, 3]
    for split in data.parts().values():
        for generator in (torch.Generator().manual_seed(0), None):
            batch = data.transform(split.inputs, torch.arange(len(split)), generator)
            assert batch.shape == (len(split), 3, 224, 224)
            assert batch.dtype == torch.float32
            assert batch.isfinite().all()


def test_clean_validation_comes_when_asked_for(folder):
    data = clothing.load(clean_val=True, data_dir=folder)
    assert data.tests["clean_val"].true.tolist() == [1]


@pytest.mark.parametrize(
    "name",
    [
        "category_names_eng.txt",
        "noisy_label_kv.txt",
        "clean_label_kv.txt",
        "noisy_train_key_list.txt",
        "clean_test_key_list.txt",
    ],
)
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        clothing.load(data_dir=folder.parent)


@pytest.mark.parametrize(
    ("name", "line", "complaint"),
    [
        ("noisy_label_kv.txt", "images/x.jpg", "the label is missing"),
        ("noisy_label_kv.txt", "images/x.jpg 14", "a whole number in 0..13, got '14'"),
        ("clean_label_kv.txt", "images/x.jpg five", "a whole number in 0..13, got 'five'"),
        ("clean_label_kv.txt", " 5", "the name is missing"),
        ("clean_label_kv.txt", "../x.jpg 5", "leads out of the data's folder"),
        ("clean_label_kv.txt", "images/4/01/4,4.jpg 2", "the image has label 1 already"),
        ("noisy_train_key_list.txt", "images/x.jpg", "no label in noisy_label_kv.txt"),
        ("clean_test_key_list.txt", "images/x.jpg", "no label in clean_label_kv.txt"),
        ("clean_test_key_list.txt", "", "a name is expected, the line is blank"),
    ],
)
def test_a_bad_line_is_named(folder, name, line, complaint):
    path = folder / name
    lines = path.read_text().splitlines()
    write(path, lines[0], line, *lines[1:])
    with pytest.raises(ValueError, match=r"expected|must|label|leads") as caught:
        clothing.load(data_dir=folder)
    message = str(caught.value)
    assert message.startswith(f"{path}:2: ")
    assert complaint in message
    assert message.endswith(f": {line!r}")


def test_an_empty_key_list_is_named(folder):
    path = write(folder / "noisy_train_key_list.txt")
    with pytest.raises(ValueError, match="is empty") as caught:
        clothing.load(data_dir=folder)
    assert str(path) in str(caught.value)


def test_other_classes_are_refused(folder):
    write(folder / "category_names_eng.txt", "T-Shirt", "Shirt")
    with pytest.raises(ValueError, match=r"category_names_eng\.txt must name 14 classes, got 2"):
        clothing.load(data_dir=folder)


@pytest.mark.parametrize("spoil", [truncate, lambda path: path.unlink()])
def test_a_bad_image_is_named(folder, spoil):
    data = clothing.load(data_dir=folder)
    path = data.train.inputs.path(2)
    spoil(path)
    with pytest.raises((ValueError, FileNotFoundError), match=path.name):
        data.transform(data.train.inputs, torch.arange(4), None)
    assert [bad for bad, _ in data.train.inputs.unreadable()] == [path]
