"""Batched operations equal the plain loop; recipes are those of the protocols."""

import colorsys
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from image_fixtures import one_thread, photographs  # noqa: F401
from PIL import Image

from lossforge.data import colour, geometry
from lossforge.data.augment import CIFAR10_TRANSFORM, CIFAR100_TRANSFORM, TensorTransform

SEEDS = st.integers(0, 2**32)
DTYPES = [torch.uint8, torch.float32, torch.float64]


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def photos(n: int = 6, height: int = 9, width: int = 12, dtype=torch.uint8) -> torch.Tensor:
    """Real pixels; floats lie in [0, 1]."""
    source = photographs()[0]
    pieces = [source[20 * i : 20 * i + height, 30 * i : 30 * i + width] for i in range(n)]
    images = torch.from_numpy(np.stack(pieces)).permute(0, 3, 1, 2).contiguous()
    return images if dtype == torch.uint8 else images.to(dtype) / 255


def crops(image: torch.Tensor, padding: int) -> list[torch.Tensor]:
    """Every crop of the old size out of the padded image."""
    channels, height, width = image.shape
    padded = image.new_zeros(channels, height + 2 * padding, width + 2 * padding)
    padded[:, padding : padding + height, padding : padding + width] = image
    shifts = range(2 * padding + 1)
    return [padded[:, y : y + height, x : x + width] for y in shifts for x in shifts]


@pytest.mark.parametrize("dtype", DTYPES)
@given(seed=SEEDS, padding=st.integers(0, 3))
def test_pad_crop_is_a_crop_of_the_padded_image(dtype, seed, padding):
    images = photos(dtype=dtype)
    moved = geometry.pad_crop(images, padding, generator=seeded(seed))
    assert moved.dtype == dtype
    for image, result in zip(images, moved, strict=True):
        assert any(torch.equal(result, crop) for crop in crops(image, padding))


@pytest.mark.parametrize("dtype", DTYPES)
@given(seed=SEEDS)
def test_flip_mirrors_or_leaves(dtype, seed):
    images = photos(dtype=dtype)
    flipped = geometry.flip(images, generator=seeded(seed))
    for image, result in zip(images, flipped, strict=True):
        assert torch.equal(result, image) or torch.equal(result, image.flip(2))


def test_every_shift_and_both_sides_occur_equally_often():
    image = torch.arange(1, 10, dtype=torch.uint8).view(1, 1, 3, 3).expand(18000, 1, 3, 3)
    moved = geometry.pad_crop_flip(image, 1, generator=seeded(3))
    expected = [c for crop in crops(image[0], 1) for c in (crop, crop.flip(2))]
    counts = torch.stack([(moved == crop).all(3).all(2).sum() for crop in expected])
    assert counts.sum() == 18000
    assert ((counts - 1000).abs() < 5 * 31).all()


def test_crop_and_flip_in_one_pass_draw_as_one_after_the_other():
    images = photos()
    both = geometry.pad_crop_flip(images, 2, generator=seeded(1))
    generator = seeded(1)
    cropped = geometry.pad_crop(images, 2, generator=generator)
    assert torch.equal(both, geometry.flip(cropped, generator=generator))


def turned(image: torch.Tensor, angle: float) -> torch.Tensor:
    """Each pixel from the one that lies where it came from."""
    result = torch.zeros_like(image)
    height, width = image.shape[1:]
    cos, sin = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
    for y in range(height):
        for x in range(width):
            right, down = x + 0.5 - width / 2, y + 0.5 - height / 2
            column = int(np.floor(cos * right - sin * down + width / 2))
            row = int(np.floor(sin * right + cos * down + height / 2))
            if 0 <= row < height and 0 <= column < width:
                result[:, y, x] = image[:, row, column]
    return result


@given(angle=st.floats(-180, 180).filter(lambda angle: min(angle % 45, -angle % 45) > 1e-3))
def test_turn_equals_a_loop_over_pixels(angle):
    images = photos(2)
    expected = torch.stack([turned(images[0], angle), turned(images[1], -angle)])
    assert torch.equal(geometry.turn(images, torch.tensor([angle, -angle])), expected)


@pytest.mark.parametrize("angle", [-20, -7.3, 3.1, 12, 20, 90])
def test_turn_is_pillows_rotation(angle):
    image = photos(1, 32, 32)
    array = image[0].permute(1, 2, 0).numpy()
    expected = torch.from_numpy(np.array(Image.fromarray(array).rotate(angle))).permute(2, 0, 1)
    differing = (geometry.turn(image, torch.tensor([angle]))[0] != expected).any(0)
    # Pillow computes positions in fixed point, which decides a few pixels the other way
    assert differing.double().mean() < 0.01


def test_angles_fill_the_range():
    image = photos(1, 15, 15).expand(400, -1, -1, -1)
    turned_by = geometry.rotate(image, 20, generator=seeded(0))
    angles = geometry.uniform(-20, 20, (400,), seeded(0))
    assert torch.equal(turned_by, geometry.turn(image, angles))
    assert angles.abs().max() <= 20
    assert angles.min() < -18
    assert angles.max() > 18


def naive_jitter(image: torch.Tensor, order: list[int], factors: list[float]) -> torch.Tensor:
    """One image, by the definitions; hue through Python's own colour conversion."""
    for number in order:
        factor = factors[number]
        grey = 0.2989 * image[0] + 0.587 * image[1] + 0.114 * image[2]
        if number == 0:
            image = (factor * image).clamp(0, 1)
        elif number == 1:
            image = (factor * image + (1 - factor) * grey.mean()).clamp(0, 1)
        elif number == 2:
            image = (factor * image + (1 - factor) * grey).clamp(0, 1)
        else:
            pixels = image.flatten(1).T.tolist()
            hsv = [colorsys.rgb_to_hsv(*pixel) for pixel in pixels]
            rgb = [colorsys.hsv_to_rgb((h + factor) % 1, s, v) for h, s, v in hsv]
            image = torch.tensor(rgb).T.view(image.shape)
    return image


@given(seed=SEEDS)
def test_jitter_equals_a_loop_over_images(seed):
    images = photos(dtype=torch.float64)
    strengths = (0.4, 0.3, 0.6, 0.2)
    result = colour.jitter(images, *strengths, generator=seeded(seed))
    # the documented draws: four factors, then the order
    generator = seeded(seed)
    bounds = [(1 - s, 1 + s) for s in strengths[:3]] + [(-0.2, 0.2)]
    factors = torch.stack([geometry.uniform(*b, (6,), generator) for b in bounds], 1)
    order = geometry.uniform(0, 1, (6, 4), generator).argsort(1)
    expected = torch.stack(
        [naive_jitter(x, o, f) for x, o, f in zip(images, order.tolist(), factors.tolist())]  # noqa: B905
    )
    torch.testing.assert_close(result, expected, atol=1e-9, rtol=0)
    assert len(set(map(tuple, order.tolist()))) > 1


def test_jitter_of_bytes_is_that_of_floats_rounded():
    images = photos(8)
    of_bytes = colour.jitter(images, 0.4, 0.4, 0.4, 0.2, generator=seeded(5))
    of_floats = colour.jitter(images.float() / 255, 0.4, 0.4, 0.4, 0.2, generator=seeded(5))
    assert of_bytes.dtype == torch.uint8
    assert torch.equal(of_bytes, (of_floats * 255).round().to(torch.uint8))


def test_jitter_of_no_strength_changes_nothing():
    images = photos(dtype=torch.float64)
    assert torch.equal(colour.jitter(images, generator=seeded(0)), images)


@pytest.mark.parametrize(
    ("turns", "expected"), [(1 / 3, (0, 1, 0)), (-1 / 3, (0, 0, 1)), (1, (1, 0, 0))]
)
def test_hue_of_red_turns_around_the_circle(turns, expected):
    red = torch.tensor([1.0, 0, 0]).view(1, 3, 1, 1)
    result = colour.shift_hue(red, torch.tensor([turns]))
    torch.testing.assert_close(result.flatten(), torch.tensor(expected, dtype=red.dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_normalise_equals_its_formula(dtype):
    images = photos(dtype=dtype)
    mean, std = (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)
    result = colour.normalise(images, mean, std)
    assert result.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    unit = images.double() / (255 if dtype == torch.uint8 else 1)
    expected = (unit - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)
    torch.testing.assert_close(result.double(), expected, atol=1e-5, rtol=0)


SIZES = st.lists(st.tuples(st.integers(1, 900), st.integers(1, 900)), min_size=1, max_size=20)


@given(sizes=SIZES, seed=SEEDS)
def test_resized_boxes_lie_inside_and_keep_area_and_ratio(sizes, seed):
    sizes = torch.tensor(sizes)
    drawn = geometry.random_resized_boxes(sizes, generator=seeded(seed))
    left, top, right, bottom = drawn.unbind(1)
    height, width = sizes.double().unbind(1)
    wide, high = right - left, bottom - top
    assert torch.equal(drawn, drawn.round())
    assert ((left >= 0) & (top >= 0) & (right <= width) & (bottom <= height)).all()
    assert ((wide >= 1) & (high >= 1)).all()
    # sides are rounded to whole pixels
    assert (wide <= (high + 0.5) * 4 / 3 + 0.5).all()
    assert (high <= (wide + 0.5) * 4 / 3 + 0.5).all()
    usual = (height / width > 0.8) & (width / height > 0.8)
    assert ((wide + 0.5) * (high + 0.5) >= 0.08 * height * width)[usual].all()


def test_resized_boxes_fill_the_ranges():
    sizes = torch.tensor([[300, 400]]).expand(3000, 2)
    left, top, right, bottom = geometry.random_resized_boxes(sizes, generator=seeded(0)).unbind(1)
    area = (right - left) * (bottom - top) / 120000
    shape = (right - left) / (bottom - top)
    assert area.min() < 0.1
    assert area.max() > 0.95
    assert shape.min() < 0.76
    assert shape.max() > 1.32
    assert left.min() == 0
    assert right.max() == 400


@pytest.mark.parametrize(
    ("size", "expected"), [((10, 1000), (494, 0, 507, 10)), ((1000, 10), (0, 494, 10, 507))]
)
def test_where_no_draw_fits_the_box_is_central(size, expected):
    drawn = geometry.random_resized_boxes(
        torch.tensor([size]), scale=(0.9, 1.0), generator=seeded(0)
    )
    assert drawn[0].tolist() == list(expected)


def test_centre_box_is_resize_then_central_crop():
    # 427 x 640 becomes 256 x 383; the crop starts at row 16, column 80 (79.5 rounded to even)
    box = geometry.centre_boxes(torch.tensor([[427, 640]]))[0]
    rows, columns = 427 / 256, 640 / 383
    expected = torch.tensor([80 * columns, 16 * rows, 304 * columns, 240 * rows])
    torch.testing.assert_close(box, expected.double())


@given(sizes=SIZES, seed=SEEDS)
def test_random_crops_lie_inside_and_are_as_large_as_the_central_one(sizes, seed):
    sizes = torch.tensor(sizes)
    drawn = geometry.random_crop_boxes(sizes, generator=seeded(seed))
    central = geometry.centre_boxes(sizes)
    torch.testing.assert_close(drawn[:, 2:] - drawn[:, :2], central[:, 2:] - central[:, :2])
    assert (drawn >= 0).all()
    assert (drawn[:, 2:] <= sizes.flip(1) * (1 + 1e-12)).all()


@pytest.mark.parametrize(
    "box", [(0, 0, 60, 50), (10, 5, 40, 45), (3.3, 7.1, 58.9, 49.2), (20, 20, 24, 23)]
)
@pytest.mark.parametrize("size", [16, 64])
def test_crop_resize_is_pillows(box, size):
    image = photos(1, 50, 60)
    pillow = Image.fromarray(image[0].permute(1, 2, 0).numpy())
    expected = pillow.resize((size, size), Image.Resampling.BILINEAR, box=box)
    expected = torch.from_numpy(np.array(expected)).permute(2, 0, 1)
    result = geometry.crop_resize(image, torch.tensor([box], dtype=torch.float64), size)[0]
    # Pillow rounds to bytes between the two axes
    assert (result.int() - expected.int()).abs().max() <= 1


CALLS = {
    "pad_crop": lambda x, g: geometry.pad_crop(x, 4, generator=g),
    "flip": lambda x, g: geometry.flip(x, generator=g),
    "rotate": lambda x, g: geometry.rotate(x, 20, generator=g),
    "jitter": lambda x, g: colour.jitter(x, 0.4, 0.4, 0.4, 0.2, generator=g),
    "cifar10": lambda x, g: CIFAR10_TRANSFORM(x, torch.arange(len(x)), g),
    "cifar100": lambda x, g: CIFAR100_TRANSFORM(x, torch.arange(len(x)), g),
}


@pytest.mark.parametrize("name", CALLS)
def test_same_generator_same_batch(name):
    images = photos(16)
    first, again = (CALLS[name](images, seeded(8)) for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, CALLS[name](images, seeded(9)))
    assert torch.equal(images, photos(16))


@pytest.mark.parametrize("recipe", [CIFAR10_TRANSFORM, CIFAR100_TRANSFORM])
def test_without_a_generator_a_recipe_only_normalises(recipe):
    images = photos(5)
    index = torch.tensor([3, 0])
    batch = recipe(images, index, None)
    assert batch.dtype == torch.float32
    assert torch.equal(batch, colour.normalise(images[index], recipe.mean, recipe.std))
    assert torch.equal(pickle.loads(pickle.dumps(recipe))(images, index, None), batch)


def test_zeros_come_before_the_mean_is_subtracted():
    white = torch.full((200, 3, 8, 8), 255, dtype=torch.uint8)
    batch = TensorTransform((0.5,) * 3, (0.25,) * 3, padding=2)(white, torch.arange(200), seeded(0))
    assert set(batch.unique().tolist()) == {-2.0, 2.0}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, g: geometry.pad_crop(x, -1, generator=g), "padding must be at least 0, got -1"),
        (lambda x, g: geometry.rotate(x, 200, generator=g), "degrees must be in"),
        (lambda x, g: colour.jitter(x, hue=0.6, generator=g), "hue must be in"),
        (lambda x, g: colour.jitter(x, contrast=-1, generator=g), "contrast must be at least 0"),
        (lambda x, g: colour.jitter(x[:, :1], generator=g), "3 channels, got 1"),
        (lambda x, g: colour.normalise(x, (0.5,), (0.5,)), "3 values, one for each channel"),
        (lambda x, g: geometry.centre_boxes(torch.tensor([[9, 9]]), 10, 12), "crop must be in"),
        (
            lambda x, g: geometry.random_resized_boxes(torch.tensor([[9, 9]]), (0, 1), generator=g),
            "scale must be 0 < low <= high",
        ),
    ],
)
def test_wrong_settings_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(photos(), seeded(0))


def test_a_transform_of_tensors_wants_a_tensor():
    with pytest.raises(TypeError, match="inputs must be a tensor, got list"):
        CIFAR10_TRANSFORM([1, 2], torch.tensor([0]), None)
