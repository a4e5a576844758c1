"""Patch features against their formula, and as bits that are kept."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from lossforge import data
from lossforge.data import kept, patch_features, patches, with_patches
from lossforge.data.dataset import Dataset, Split, read

SAMPLED = 300
ROUNDS = 10


@pytest.fixture(autouse=True)
def _few_patches_and_an_own_cache(monkeypatch, tmp_path):
    monkeypatch.setattr(patches, "SAMPLED", SAMPLED)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def draw_images(n: int, *shape: int, seed: int = 0) -> torch.Tensor:
    """Smooth images, so that patches have something in common."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.rand(n, *shape, dtype=torch.float64, generator=generator)
    smooth = (noise + noise.roll(1, 2) + noise.roll(1, 3)) / 3
    return (255 * smooth).to(torch.uint8)


# The formula in plain float64, patch by patch.


def naive_contrast(patch: NDArray[np.float64]) -> NDArray[np.float64]:
    x = patch.reshape(-1)
    return (x - x.mean()) / np.sqrt(x.var() + 10 / 255**2)


def naive_dictionary(
    images: NDArray[np.float64], side: int, atoms: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Mean patch, whitening matrix and atoms."""
    n, _, height, width = images.shape
    generator = torch.Generator().manual_seed(0)
    which, top, left = (
        torch.randint(below, (SAMPLED,), generator=generator).numpy()
        for below in (n, height - side + 1, width - side + 1)
    )
    sampled = [
        naive_contrast(images[i, :, a : a + side, b : b + side])
        for i, a, b in zip(np.sort(which), top, left, strict=True)
    ]
    mean = np.mean(sampled, axis=0)
    covariance = np.cov(np.array(sampled).T, bias=True)
    values, vectors = np.linalg.eigh(covariance + 0.1 * np.eye(len(mean)))
    whiten = vectors @ np.diag(values**-0.5) @ vectors.T
    white = [whiten @ (x - mean) for x in sampled]
    found = torch.randn(atoms, len(mean), dtype=torch.float64, generator=generator).numpy()
    found = np.array([atom / np.linalg.norm(atom) for atom in found])
    for _ in range(ROUNDS):
        moved = found.copy()
        for w in white:
            k = np.argmax(np.abs(found @ w))
            moved[k] += (found[k] @ w) * w
        found = np.array([atom / np.linalg.norm(atom) for atom in moved])
    return mean, whiten, found


def naive_halves(length: int) -> list[range]:
    """The positions of both halves; an odd one in the middle belongs to both."""
    return [range((length + 1) // 2), range(length // 2, length)]


def naive_code(image, side, stride, mean, whiten, atoms):
    _, height, width = image.shape
    tops, lefts = range(0, height - side + 1, stride), range(0, width - side + 1, stride)
    z = np.array(
        [
            [
                atoms @ whiten @ (naive_contrast(image[:, a : a + side, b : b + side]) - mean)
                for b in lefts
            ]
            for a in tops
        ]
    )
    found = []
    for sign in (1, -1):
        code = np.maximum(0, sign * z - 0.5)
        for k in range(len(atoms)):
            for rows, columns in itertools.product(
                naive_halves(len(tops)), naive_halves(len(lefts))
            ):
                found.append(np.mean([code[a, b, k] for a in rows for b in columns]))
    return np.array(found)


def naive_features(train, test, atoms):
    train, test = train.astype(np.float64) / 255, test.astype(np.float64) / 255
    side = min(6, min(train.shape[2:]) // 2)
    learnt = naive_dictionary(train, side, atoms)
    codes = [
        np.array([naive_code(image, side, max(1, side // 3), *learnt) for image in images])
        for images in (train, test)
    ]
    mean, deviation = codes[0].mean(0), codes[0].std(0)
    deviation[np.ptp(codes[0], axis=0) == 0] = 1
    return [(code - mean) / deviation for code in codes]


@pytest.mark.parametrize(
    "shape", [(1, 8, 8), (3, 9, 11), (2, 4, 7), (3, 32, 32), (1, 13, 12)], ids=str
)
def test_features_match_the_naive_formula(shape):
    train, test = draw_images(12, *shape), draw_images(3, *shape, seed=1)
    found = patch_features(train, test, atoms=7)
    for ours, naive in zip(found, naive_features(train.numpy(), test.numpy(), 7), strict=True):
        assert ours.dtype == torch.float32
        assert ours.shape == (len(naive), 56)
        np.testing.assert_allclose(ours.numpy(), naive, rtol=0, atol=2e-4)


@pytest.mark.parametrize("n", [3, 500])
def test_bits_do_not_depend_on_the_number_of_threads(n, monkeypatch, tmp_path):
    images, found, before = draw_images(n, 3, 16, 16), [], torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"{threads}"))
            torch.set_num_threads(threads)
            found.append(patch_features(images, images[:2], atoms=20))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    for others in found[1:]:
        assert all(map(torch.equal, found[0], others))


def test_features_of_training_images_do_not_depend_on_other_images():
    images = draw_images(40, 3, 12, 12)
    (alone,), (beside, _) = (
        patch_features(images, atoms=5),
        patch_features(images, draw_images(9, 3, 12, 12, seed=1), atoms=5),
    )
    assert torch.equal(alone, beside)


def test_the_global_generator_neither_matters_nor_moves(monkeypatch, tmp_path):
    images, found = draw_images(5, 1, 8, 8), []
    for seed in (3, 4):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"{seed}"))
        before = torch.manual_seed(seed).get_state()
        found += patch_features(images, atoms=4)
        assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(*found)


def test_blank_images_have_features_of_zero():
    (found,) = patch_features(torch.zeros(6, 3, 8, 8, dtype=torch.uint8), atoms=3)
    assert torch.equal(found, torch.zeros(6, 24, dtype=torch.float32))


def test_bytes_and_fractions_give_the_same_features():
    images = draw_images(20, 1, 8, 8)
    fractions = images.to(torch.float32) / 255
    (found,), (again,) = (
        patch_features(images, atoms=4),
        patch_features(fractions.flatten(1), atoms=4, shape=(1, 8, 8)),
    )
    assert torch.equal(found, again)


# Kept features


def never(*arguments: object, **options: object) -> None:
    raise AssertionError("computed again")


def test_features_are_computed_once_for_the_same_images(monkeypatch):
    images = draw_images(20, 1, 8, 8)
    first = patch_features(images, images[:5], atoms=4)
    monkeypatch.setattr(patches, "learn_and_code", never)
    again = patch_features(images.clone(), images[:5], atoms=4)
    assert all(map(torch.equal, first, again))
    again[0][0] = 0  # a copy: what is kept stays
    assert torch.equal(patch_features(images, images[:5], atoms=4)[0], first[0])
    other = images.clone()
    other[0, 0, 0, 0] ^= 1
    for arguments, atoms in (((other, images[:5]), 4), ((images, other[:5]), 4), ((images,), 4)):
        with pytest.raises(AssertionError, match="computed again"):
            patch_features(*arguments, atoms=atoms)
    with pytest.raises(AssertionError, match="computed again"):
        patch_features(images, images[:5], atoms=5)


def test_features_of_another_division_of_the_same_images_are_not_taken():
    """Which images are training images decides what is learnt; chunks of 250 hide the border."""
    images = draw_images(500, 1, 8, 8)
    patch_features(images[:250], images[250:], atoms=4)
    (kept_as_whole,) = patch_features(images, atoms=4)
    assert kept_as_whole.double().mean(0).abs().max() < 1e-6


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", None], ids=["empty", "start", "half"])
def test_damaged_files_are_made_anew(tmp_path, content):
    images = draw_images(20, 1, 8, 8)
    first = patch_features(images, atoms=4)[0].clone()
    (path,) = (tmp_path / "cache" / "lossforge" / "features").iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if content is None else content)
    with pytest.warns(UserWarning, match="is damaged"):
        assert torch.equal(patch_features(images, atoms=4)[0], first)
    assert path.read_bytes() == whole


def test_a_cache_that_cannot_be_written_is_named_and_done_without(monkeypatch, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))
    with pytest.warns(UserWarning, match=r"file.*cannot be written, features are not kept"):
        (found,) = patch_features(draw_images(20, 1, 8, 8), atoms=4)
    assert found.shape == (20, 32)


# Data sets


def test_a_data_set_keeps_all_but_its_inputs():
    labels = torch.arange(30) % 3
    image = draw_images(30, 3, 8, 8)
    true = labels.roll(1)
    dataset = Dataset(
        "made",
        ("a", "b", "c"),
        Split(image[:15], labels[:15], true[:15]),
        {"test": Split(image[15:20], labels[15:20]), "more": Split(image[25:], labels[25:])},
        Split(image[20:25], labels[20:25], true[20:25]),
        transform=lambda inputs, index, generator: inputs[index].float(),
    )
    found = with_patches(dataset, "patches:4")
    assert found.parts().keys() == dataset.parts().keys()
    assert found.transform is read
    rows = patch_features(*(part.inputs for part in dataset.parts().values()), atoms=4)
    for part, old, features in zip(
        found.parts().values(), dataset.parts().values(), rows, strict=True
    ):
        assert torch.equal(part.inputs, features)
        assert part.given is old.given
        assert part.true is old.true
    assert with_patches(dataset, None) is dataset


def test_labels_do_not_matter():
    images = draw_images(12, 1, 8, 8)
    dataset = Dataset("made", ("a", "b"), Split(images, torch.zeros(12, dtype=torch.int64)), {})
    other = replace(dataset, train=Split(images, torch.ones(12, dtype=torch.int64)))
    found = [with_patches(one, "patches:4").train.inputs for one in (dataset, other)]
    assert torch.equal(*found)


@pytest.mark.parametrize(("name", "width"), [("digits", 8), ("digits-pairs", 16)])
def test_digits_have_patch_features(name, width):
    found = data.load(name, features="patches:10")
    plain = data.load(name)
    (rows, _) = patch_features(
        plain.train.inputs, plain.tests["test"].inputs, atoms=10, shape=(1, 8, width)
    )
    assert torch.equal(found.train.inputs, rows)
    assert torch.equal(found.train.given, plain.train.given)
    moments = rows.double().mean(0), rows.double().var(0, correction=0)
    assert moments[0].abs().max() < 1e-5
    assert ((moments[1] - 1).abs() < 1e-4).logical_or(moments[1] == 0).all()


def test_stored_images_have_the_features_of_their_pixels(tmp_path):
    image = pytest.importorskip("PIL.Image")
    pixels = draw_images(24, 3, 12, 12)
    for i, one in enumerate(pixels):
        path = tmp_path / "data" / f"class{i % 2}" / f"{i:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        image.fromarray(one.permute(1, 2, 0).numpy()).save(path)
    make = torch.Generator().manual_seed
    options = {"size": 12, "test_fraction": 0.25}
    found = data.folder(tmp_path / "data", features="patches:4", generator=make(0), **options)
    plain = data.folder(tmp_path / "data", generator=make(0), **options)
    rows = patch_features(
        *(part.inputs[torch.arange(len(part))] for part in plain.parts().values()), atoms=4
    )
    for part, expected in zip(found.parts().values(), rows, strict=True):
        assert torch.equal(part.inputs, expected)


# Errors and progress


@pytest.mark.parametrize(
    "features",
    ["", "patch", "patches:", "patches:0", "patches:-1", "patches:4.5", "tfidf", "patches:1e2"],
)
def test_other_texts_are_refused(features):
    with pytest.raises(ValueError, match="features of images must be 'patches' or 'patches:ATOMS'"):
        data.load("digits", features=features)


@pytest.mark.parametrize("shape", [(3, 3, 9), (1, 9, 2), (64,), (8, 8)])
def test_what_is_no_image_or_too_small_is_refused(shape):
    with pytest.raises(ValueError, match=r"4 x 4 pixels or more for patch features, got \("):
        patch_features(torch.zeros(5, *shape, dtype=torch.uint8))


def test_images_of_several_shapes_and_no_images_are_refused():
    with pytest.raises(ValueError, match=r"shape \(1, 8, 8\), got \(1, 8, 9\)"):
        patch_features(draw_images(5, 1, 8, 8), draw_images(5, 1, 8, 9))
    with pytest.raises(ValueError, match="one image or more, got none"):
        patch_features(draw_images(0, 1, 8, 8))
    rows = patch_features(draw_images(5, 1, 8, 8), draw_images(0, 1, 8, 8), atoms=2)
    assert [tuple(one.shape) for one in rows] == [(5, 16), (0, 16)]
    flat = torch.rand(5, 64), torch.rand(0, 64)
    rows = patch_features(*flat, atoms=2, shape=(1, 8, 8))
    assert [tuple(one.shape) for one in rows] == [(5, 16), (0, 16)]


@pytest.mark.parametrize(
    ("images", "options", "error", "message"),
    [
        (torch.zeros(5, 1, 8, 8), {"atoms": 0}, ValueError, "atoms must be .* got 0"),
        (torch.zeros(5, 1, 8, 8), {"atoms": 2.5}, TypeError, "atoms must be .* got"),
        (np.zeros((5, 1, 8, 8)), {}, TypeError, "a tensor or stored images"),
        (torch.zeros(5, 1, 8, 8, dtype=torch.int64), {}, TypeError, "got torch.int64"),
        (torch.full((5, 1, 8, 8), 255.0), {}, ValueError, r"in \[0, 1\], got values from 255"),
        (torch.full((5, 1, 8, 8), float("nan")), {}, ValueError, "got values from nan"),
        (torch.zeros(5, 64), {"shape": (1, 8, 9)}, ValueError, r"shape \(1, 8, 9\), got 64"),
    ],
)
def test_bad_arguments_are_named(images, options, error, message):
    with pytest.raises(error, match=message):
        patch_features(images, **options)


@pytest.mark.parametrize(
    ("other", "error"),
    [
        (torch.full((2, 1, 8, 8), 2.0), ValueError),
        (torch.zeros(2, 1, 8, 8, dtype=torch.int64), TypeError),
    ],
)
def test_other_images_are_checked_too(other, error):
    with pytest.raises(error, match="images must be uint8"):
        patch_features(draw_images(5, 1, 8, 8), other)


def test_images_that_require_a_gradient_are_read_without():
    images = torch.rand(5, 1, 8, 8)
    (plain,), (again,) = (
        patch_features(images, atoms=2),
        patch_features(images.clone().requires_grad_(), atoms=2),
    )
    assert torch.equal(plain, again)


def test_data_without_images_take_no_patches():
    with pytest.raises(TypeError, match="features"):
        data.load("breast-cancer", features="patches:400")


def test_progress_reaches_all_images_and_may_end_the_work():
    seen: list[tuple[int, int]] = []
    images = draw_images(800, 1, 32, 32)
    patch_features(images, images[:5], atoms=2, on_progress=lambda *now: seen.append(now))
    assert seen[0] == (0, 805)
    assert seen[-1] == (805, 805)
    assert seen == sorted(seen)
    assert len({done for done, _ in seen}) > 20

    class EnoughError(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if done:
            raise EnoughError

    before = torch.get_num_threads()
    with pytest.raises(EnoughError):
        patch_features(images, atoms=2, on_progress=stop)
    assert torch.get_num_threads() == before


def test_long_work_is_told_on_stderr(monkeypatch, capsys):
    clock = itertools.count(0.0, 0.5)
    monkeypatch.setattr(kept.time, "monotonic", lambda: next(clock))
    patch_features(draw_images(5, 1, 8, 8), atoms=2)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "patch features: 0 of 5 images"
    assert len(lines) < 20
