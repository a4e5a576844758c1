"""Folders of images, of which none is left out and none is unreadable in silence."""

import base64
import io
import os

import numpy as np
import pytest
import torch
from PIL import Image

from lossforge.audit import audit, read_subject
from lossforge.audit.cross_validation import network_of
from lossforge.audit.read import read_folder
from lossforge.audit.subject import check_labels
from lossforge.data import patch_features, patches


@pytest.fixture(autouse=True)
def _single_and_own_cache(_float64_and_seed, monkeypatch, tmp_path):
    torch.set_default_dtype(torch.float32)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def picture(path, colour, size=(40, 48)):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.randint(0, 60, (*size, 3)) + np.array(colour)
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path)


def photos(root, per_class=30, wrong=()):
    """Red and blue pictures; those at the places `wrong` lie in the other folder."""
    for name, colour in (("blue", (0, 0, 180)), ("red", (180, 0, 0))):
        for i in range(per_class):
            other = (180, 0, 0) if name == "blue" else (0, 0, 180)
            picture(root / name / f"{i:02d}.png", other if i in wrong else colour)
    return root


def test_all_images_are_read_in_the_order_of_their_names(tmp_path):
    told = []
    root = photos(tmp_path / "photos")
    found = read_folder(root, on_read=lambda *at: told.append(at))
    assert found.name == "photos"
    assert found.kind == "images"
    assert found.dataset.classes == ("blue", "red")
    assert found.given.tolist() == [0] * 30 + [1] * 30
    assert found.dataset.train.inputs.shape == (60, 3, 32, 32)
    assert found.dataset.train.true is None
    assert found.where(31) == str(root / "red" / "01.png")
    assert told[-1] == (60, 60)
    # the pixels are those of the file
    blue = found.dataset.train.inputs[:30, 2].double().mean()
    assert blue > 170


def test_a_division_is_respected_and_told(tmp_path):
    root = tmp_path / "photos"
    photos(root / "train")
    photos(root / "test", 3)
    found = read_folder(root)
    assert len(found.given) == 60
    assert "the images of train" in found.notes[0]


def test_a_training_folder_needs_no_other(tmp_path, monkeypatch):
    photos(tmp_path / "photos" / "train")
    monkeypatch.chdir(tmp_path / "photos" / "train")
    assert len(read_folder(tmp_path / "photos").given) == 60
    assert read_folder(".").name == "train"


def test_a_suspect_can_be_looked_at(tmp_path):
    found = read_folder(photos(tmp_path / "photos"))
    picture(tmp_path / "photos" / "blue" / "00.png", (9, 9, 200), (400, 200))
    for row, kind, size in ((0, "jpeg", (112, 224)), (1, "png", (48, 40))):
        head, _, content = found.picture(row).partition(",")
        assert head == f"data:image/{kind};base64"
        image = Image.open(io.BytesIO(base64.b64decode(content)))
        assert image.size == size  # whole, smaller if it was large
        red, _, blue = np.asarray(image).mean((0, 1))
        assert blue > red + 100


def test_unreadable_images_are_named_and_counted(tmp_path):
    root = photos(tmp_path / "photos")
    for name in ("07.png", "09.png"):
        (root / "red" / name).write_bytes(b"no image")
    with pytest.raises(ValueError, match=r"07.png: not an image, and 1 more files.* repair or rem"):
        read_folder(root)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda root: root.mkdir(), "must hold at least 2 class folders, got none"),
        (
            lambda root: picture(root / "red" / "1.png", (9, 9, 9)),
            "at least 2 class folders, got red",
        ),
        (lambda root: (photos(root, 3), (root / "empty").mkdir()), "class 'empty' has no images"),
    ],
)
def test_what_is_wrong_with_a_folder_is_one_line(tmp_path, make, complaint):
    make(tmp_path / "photos")
    with pytest.raises(ValueError, match=complaint) as raised:
        read_folder(tmp_path / "photos")
    assert "\n" not in str(raised.value)


def test_a_handful_of_images_is_too_few(tmp_path):
    found = read_folder(photos(tmp_path / "photos", 5))
    with pytest.raises(ValueError, match="needs 50 labelled images or more, got 10"):
        check_labels(found, 5)


def test_images_are_read_as_patch_features(tmp_path, monkeypatch):
    monkeypatch.setattr(patches, "SAMPLED", 500)
    told = []
    root = photos(tmp_path / "photos")
    found = read_subject(str(root), size=16, features="patches:10", on_progress=told.append)
    pixels = read_folder(root, size=16)
    (rows,) = patch_features(pixels.dataset.train.inputs, atoms=10)
    assert torch.equal(found.dataset.train.inputs, rows)
    assert torch.equal(found.given, pixels.given)
    assert network_of(found.dataset) == "mlp"
    assert found.notes == ("resized to 16 x 16 pixels", "features patches:10")
    assert found.picture(0) == pixels.picture(0)
    texts = [one.text for one in told]
    assert list(dict.fromkeys(texts)) == ["reading images", "computing patch features"]
    assert told[-1].done == told[-1].total == 60
    assert network_of(read_subject(str(root), features="pixels").dataset) == "cnn8-narrow"


def test_unknown_features_are_refused_before_images_are_read(tmp_path):
    with pytest.raises(ValueError, match="'patches', 'patches:ATOMS' or 'pixels', got 'pixel'"):
        read_subject(str(tmp_path), features="pixel")


def test_features_are_refused_where_there_are_no_images():
    with pytest.raises(ValueError, match="can only be chosen for images, breast-cancer has none"):
        read_subject("breast-cancer", features="patches:100")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("features", "network"), [("patches:100", "mlp"), ("pixels", "cnn8-narrow")]
)
def test_pictures_in_the_wrong_folder_are_found(tmp_path, features, network):
    root = photos(tmp_path / "photos", 40, wrong=(3, 17, 29))
    found = audit(
        read_subject(str(root), size=16, features=features),
        losses=["BEF", "CE"],
        folds=3,
        repeats=1,
        epochs=10,
        trials=False,
    )
    assert found.method.network == network
    names = {one.where.removeprefix(f"{root}/") for one in found.suspects}
    expected = {f"{name}/{i:02d}.png" for name in ("blue", "red") for i in (3, 17, 29)}
    assert expected == names
    assert found.noise.rate.value == pytest.approx(6 / 80, abs=0.05)


def test_a_pipe_among_the_images_is_named_and_not_waited_for(tmp_path):
    root = photos(tmp_path / "photos", 3)
    os.mkfifo(root / "red" / "pipe.png")
    with pytest.raises(ValueError, match=r"pipe.png: not a regular file; repair or remove it"):
        read_folder(root)


def test_names_that_are_not_utf8_are_read(tmp_path):
    root = photos(tmp_path / "photos", 3)
    latin = os.fsdecode(b"caf\xe9")
    (root / "red").rename(root / latin)
    (root / latin / "00.png").rename(root / latin / f"{latin}.png")
    found = read_folder(root)
    assert found.dataset.classes == ("blue", latin)
    assert str(root / latin / f"{latin}.png") in [found.where(row) for row in range(6)]
