"""Images on disk: decoded exactly, whatever their colours, and named when they cannot be."""

import pickle

import numpy as np
import pytest
import torch
from image_fixtures import one_thread, photograph, save, truncate  # noqa: F401
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from lossforge.data.augment import (
    CLOTHING1M_TRANSFORM,
    WEBVISION_TRANSFORM,
    FileTransform,
    random_resized_boxes,
)
from lossforge.data.dataset import Split, subset
from lossforge.data.images import ImageFiles

RECIPES = {"webvision": WEBVISION_TRANSFORM, "clothing1m": CLOTHING1M_TRANSFORM}


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture
def files(tmp_path):
    sizes = [(90, 120), (120, 90), (300, 280), (64, 200)]
    names = [f"a/{i}, größe.jpg" for i in range(4)]
    for i, (height, width) in enumerate(sizes):
        save(tmp_path / names[i], i, height=height, width=width)
    return ImageFiles.under(tmp_path, names)


def test_sizes_are_height_and_width(files):
    assert files.sizes(torch.tensor([3, 1])).tolist() == [[64, 200], [120, 90]]
    assert files.sizes(torch.tensor([], dtype=torch.int64)).shape == (0, 2)


def test_indexing_is_resize_then_central_crop(files):
    batch = files[torch.tensor([2])]
    assert batch.shape == (1, 3, 224, 224)
    assert batch.dtype == torch.uint8
    with Image.open(files.path(2)) as image:  # 300 x 280 becomes 274 x 256
        resized = image.resize((256, 274), Image.Resampling.BILINEAR)
    expected = np.array(resized.crop((16, 25, 240, 249)))
    difference = batch[0].permute(1, 2, 0).int() - torch.from_numpy(expected).int()
    assert difference.abs().max() <= 1


def test_crop_of_whole_pixels_is_the_pixels(files):
    cut = files.crop(torch.tensor([0]), torch.tensor([[10, 20, 42, 52]]), 32)
    with Image.open(files.path(0)) as image:
        expected = np.array(image.crop((10, 20, 42, 52)))
    assert torch.equal(cut[0].permute(1, 2, 0), torch.from_numpy(expected))


@pytest.mark.parametrize("mode", ["L", "LA", "P", "RGBA", "CMYK", "1"])
def test_any_colours_become_rgb(tmp_path, mode):
    path = tmp_path / ("image.tif" if mode == "CMYK" else "image.png")
    original = photograph(0).convert(mode)
    original.save(path)
    batch = ImageFiles.under(tmp_path, [path.name], size=90, resize=90)[torch.tensor([0])]
    expected = np.array(original.convert("RGB").crop((15, 0, 105, 90)))
    assert torch.equal(batch[0].permute(1, 2, 0), torch.from_numpy(expected))


def test_grey_of_16_bits_is_scaled_not_cut(tmp_path):
    grey = np.array(photograph(0).convert("L"))
    Image.fromarray(grey.astype(np.uint16) * 257).save(tmp_path / "image.png")
    batch = ImageFiles.under(tmp_path, ["image.png"], size=90, resize=90)[torch.tensor([0])]
    assert torch.equal(batch[0, 1], torch.from_numpy(grey[:, 15:105]))


def test_a_palette_with_transparency_is_read_without_a_warning(tmp_path):
    image = photograph(1).quantize(16)
    image.info["transparency"] = bytes(range(16))
    image.save(tmp_path / "image.png")
    batch = ImageFiles.under(tmp_path, ["image.png"], size=90, resize=90)[torch.tensor([0])]
    expected = np.array(image.convert("RGBA").convert("RGB").crop((15, 0, 105, 90)))
    assert torch.equal(batch[0].permute(1, 2, 0), torch.from_numpy(expected))


@pytest.mark.parametrize("name", RECIPES)
def test_training_batches_are_random_and_evaluation_is_not(files, name):
    recipe, index = RECIPES[name], torch.tensor([1, 1, 0, 3])
    first, again = (recipe(files, index, seeded(4)) for _ in range(2))
    assert first.shape == (4, 3, 224, 224)
    assert first.dtype == torch.float32
    assert torch.equal(first, again)
    assert not torch.equal(first[0], first[1])
    evaluated = recipe(files, index, None)
    assert torch.equal(evaluated[0], evaluated[1])
    scale = torch.tensor(recipe.std, dtype=torch.float32)[:, None, None]
    shift = torch.tensor(recipe.mean, dtype=torch.float32)[:, None, None]
    pixels = (evaluated * scale + shift) * 255
    torch.testing.assert_close(pixels, files[index].float(), atol=1e-3, rtol=0)


def test_a_transform_without_colours_shows_pieces_of_the_image(files):
    recipe = FileTransform((0.0,) * 3, (1.0,) * 3, size=32)
    index = torch.tensor([0, 2])
    batch = recipe(files, index, seeded(7))
    boxes = random_resized_boxes(files.sizes(index), generator=seeded(7))
    pieces = files.crop(index, boxes, 32).float() / 255
    for result, piece in zip(batch, pieces, strict=True):
        assert any(torch.allclose(result, side) for side in (piece, piece.flip(2)))


def test_a_transform_of_files_wants_files():
    with pytest.raises(TypeError, match="inputs must be ImageFiles, got Tensor"):
        WEBVISION_TRANSFORM(torch.zeros(2, 3, 4, 4), torch.tensor([0]), None)


def test_a_subset_reads_its_own_files(files):
    part = subset(Split(files, torch.arange(4)), torch.tensor([3, 1]))
    assert isinstance(part.inputs, ImageFiles)
    assert part.given.tolist() == [3, 1]
    assert torch.equal(part.inputs[torch.tensor([1])], files[torch.tensor([1])])
    chosen = WEBVISION_TRANSFORM(part.inputs, torch.tensor([0]), seeded(0))
    assert torch.equal(chosen, WEBVISION_TRANSFORM(files, torch.tensor([3]), seeded(0)))


class Batches(Dataset):
    """One batch per position, prepared where the loader wants it."""

    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        return WEBVISION_TRANSFORM(self.files, torch.tensor([i]), seeded(i))


def test_workers_prepare_the_same_batches(files):
    torch.set_default_dtype(torch.float32)
    here = list(DataLoader(Batches(files), batch_size=None))
    there = list(DataLoader(Batches(files), batch_size=None, num_workers=1))
    assert all(torch.equal(a, b) for a, b in zip(here, there, strict=True))
    copy = pickle.loads(pickle.dumps(files))
    assert torch.equal(copy[torch.tensor([0])], files[torch.tensor([0])])


def test_a_truncated_image_is_named(files):
    path = truncate(files.path(1))
    with pytest.raises(ValueError, match=r"cannot be read as an image: .*truncated") as caught:
        files[torch.tensor([0, 1])]
    assert str(path) in str(caught.value)


def test_what_is_no_image_is_named(files):
    files.path(1).write_text("<html>404</html>")
    with pytest.raises(ValueError, match="not an image") as caught:
        files.sizes(torch.tensor([1]))
    assert str(files.path(1)) in str(caught.value)


def test_a_missing_image_is_named(files):
    files.path(1).unlink()
    with pytest.raises(FileNotFoundError) as caught:
        WEBVISION_TRANSFORM(files, torch.tensor([1]), None)
    assert str(files.path(1)) in str(caught.value)


def test_unreadable_lists_every_bad_file_with_its_reason(files):
    truncate(files.path(0))
    files.path(2).unlink()
    files.path(3).write_bytes(b"")
    seen = []
    bad = files.unreadable(lambda done, total: seen.append((done, total)))
    assert [path for path, _ in bad] == [files.path(i) for i in (0, 2, 3)]
    assert "truncated" in bad[0][1]
    assert bad[1][1] == "there is no such file"
    assert bad[2][1] == "not an image"
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("ending", ["jpg", "png", "gif", "bmp", "tif", "webp"])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.5, 0.9])
def test_an_image_cut_anywhere_is_refused_by_name(tmp_path, ending, share):
    path = tmp_path / f"x.{ending}"
    photograph(0).save(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    files = ImageFiles.under(tmp_path, [path.name])
    with pytest.raises(ValueError, match=f"x.{ending}: "):
        files[torch.tensor([0])]
