"""Real data that come with scikit-learn, without a download: digits and breast cancer."""

import torch
from torch import Generator, Tensor

from ..errors import check_integer, extra
from .dataset import Dataset, Split, deal, members, stratify
from .features import standardise
from .patches import with_patches
from .source import Source

TEST_FRACTION = 0.2
_NAMES = {1: "digits", 2: "digits-pairs", 3: "digits-triples"}
_SIZES = {1: (None, None), 2: (50, 20), 3: (20, 5)}


def digits(
    copies: int = 1,
    *,
    classes: int | None = None,
    per_class: int | None = None,
    test_per_class: int | None = None,
    features: str | None = None,
    generator: Generator | None = None,
) -> Dataset:
    """Handwritten digits, 8x8 pixels in [0, 1], alone or as numbers of two or three digits.

    The 1,797 images are first divided into 1,438 for training and 359 for testing (a fifth of each
    digit, evenly spaced in scikit-learn's order); pairs and triples are then put together within
    each part, so no image is on both sides. Every number has equally many samples, all different,
    and at each of its places an image comes back only after all images of that digit had a turn.

    Inputs are float32 rows of 64, 128 or 192 features; `unflatten(1, (1, 8, 8 * copies))` gives
    images with the digits side by side.

    Args:
        copies: 1, 2 or 3 digits: 10, 100 or 1,000 classes, "0".."9", "00".."99", "000".."999".
        classes: Only the first so many of the pairs or triples; all if None.
        per_class: Training samples of each class. By default every image once for single digits,
            50 for pairs (5,000 in all), 20 for triples (20,000 in all).
        test_per_class: The same for the test part: all, 20 (2,000) and 5 (5,000).
        features: "patches" or "patches:ATOMS" for features in place of pixels, see `with_patches`.
        generator: Draws another division and other numbers than the fixed ones.

    References:
        Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning
        Repository, 1998. https://doi.org/10.24432/C50P49
    """
    check_integer("copies", copies, 1)
    if copies not in _NAMES:
        raise ValueError(f"copies must be 1, 2 or 3, got {copies!r}")
    number = 10**copies if classes is None else classes
    check_integer("classes", number, 2)
    if number > 10**copies or (copies == 1 and number < 10):
        raise ValueError(
            f"classes must be at most {10**copies}, and 10 of single digits, got {number}"
        )
    source = extra("sklearn.datasets", "bench").load_digits()
    images = torch.from_numpy(source.images).to(torch.float32) / 16
    labels = torch.from_numpy(source.target).to(torch.int64)
    parts = stratify(labels, TEST_FRACTION, generator=generator)
    counts = {"per_class": per_class, "test_per_class": test_per_class}
    for (name, count), usual in zip(counts.items(), _SIZES[copies], strict=True):
        if count is None:
            counts[name] = usual
        else:
            check_integer(name, count, 1)
    # Fixed numbers need some fixed permutation; a generator of our own leaves torch's alone.
    draw = torch.Generator().manual_seed(0) if generator is None else generator
    splits = [
        _split(images[part], labels[part], copies, number, name, count, draw)
        for part, (name, count) in zip(parts, counts.items(), strict=True)
    ]
    names = tuple(f"{one:0{copies}d}" for one in range(number))
    dataset = Dataset(_NAMES[copies], names, splits[0], {"test": splits[1]})
    return with_patches(dataset, features, shape=(1, 8, 8 * copies))


def breast_cancer(*, generator: Generator | None = None) -> Dataset:
    """Breast tumours, malignant or benign: 569 samples, 30 features standardised on training ones.

    456 samples are for training and 113 for testing, a fifth of each class, evenly spaced in
    scikit-learn's order.

    Args:
        generator: Draws another division than the fixed one.

    References:
        Wolberg, Mangasarian, Street and Street, Breast Cancer Wisconsin (Diagnostic), UCI Machine
        Learning Repository, 1993. https://doi.org/10.24432/C5DW2B
    """
    source = extra("sklearn.datasets", "bench").load_breast_cancer()
    values = torch.from_numpy(source.data)
    labels = torch.from_numpy(source.target).to(torch.int64)
    parts = stratify(labels, TEST_FRACTION, generator=generator)
    inputs = standardise(*(values[part] for part in parts))
    train, test = (
        Split(rows, labels[part], labels[part]) for rows, part in zip(inputs, parts, strict=True)
    )
    classes = tuple(str(name) for name in source.target_names)
    return Dataset("breast-cancer", classes, train, {"test": test})


def _split(
    images: Tensor,
    labels: Tensor,
    copies: int,
    classes: int,
    name: str,
    count: int | None,
    generator: Generator,
) -> Split:
    """All images as they are, or `count` numbers of each class made of them."""
    if count is None:
        return Split(images.flatten(1), labels, labels)
    pools = members(labels)
    most = min(len(pool) for pool in pools) ** copies
    if count > most:
        raise ValueError(f"{name} must be at most {most} for different samples, got {count}")
    rows = []
    for number in range(classes):
        pool = [pools[int(digit)] for digit in f"{number:0{copies}d}"]
        turns = deal([len(images_of_digit) for images_of_digit in pool], count)
        slots = [
            images[one[torch.randperm(len(one), generator=generator)][turn]]
            for one, turn in zip(pool, turns, strict=True)
        ]
        rows.append(torch.cat(slots, dim=2).flatten(1))
    given = torch.arange(classes).repeat_interleave(count)
    return Split(torch.cat(rows), given, given)


SOURCES = (
    Source(
        "digits",
        "8 x 8 digits of scikit-learn, 10 classes; no download",
        10,
        digits,
        counts={"train": 1438, "test": 359},
        class_map="mnist",
    ),
    Source(
        "digits-pairs",
        "two digits side by side, 100 classes; no download",
        100,
        lambda **options: digits(2, **options),
    ),
    Source(
        "digits-triples",
        "three digits side by side, 1,000 classes; no download",
        1000,
        lambda **options: digits(3, **options),
    ),
    Source(
        "breast-cancer",
        "30 measurements of scikit-learn, 2 classes; no download",
        2,
        breast_cancer,
    ),
)
