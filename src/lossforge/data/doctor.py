"""Checks of a data set: which files exist, which are missing, and whether all can be read."""

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from ..noise import noise_rate
from .images import ImageFiles
from .registry import find
from .source import PathLike, Source, checksum_of

Progress = Callable[[str, int, int], object]
LISTED_CLASSES = 25
BINS = 10


class Finding(NamedTuple):
    """One result of the checks; a "problem" means that the data are incomplete or wrong."""

    kind: Literal["ok", "note", "problem"]
    text: str


def diagnose(
    name: str, *, data_dir: PathLike | None = None, progress: Progress | None = None
) -> Iterator[Finding]:
    """Examine a data set file by file, then read all of it.

    Args:
        name: The name of a data set or of label files.
        data_dir: The folder to search instead of the usual ones.
        progress: Called while images are decoded: with the part, images decoded, images in total.
    """
    source = find(name)
    yield from _examine_files(source, data_dir)
    try:
        parts = source.parts(data_dir)
        labels = source.labels(data_dir) if source.labels is not None else {}
    except (OSError, ValueError) as error:
        yield Finding("problem", str(error))
        if source.layout not in str(error):
            yield Finding("note", f"expected layout:\n{source.layout}")
        yield Finding("note", source.obtain or f"`lossforge data fetch {name}` downloads it")
        return
    for label_set, (given, true) in labels.items():
        yield from _examine_labels(label_set, given, true, len(given), source.num_classes)
    for part, split in parts.items():
        expected = source.counts.get(part, len(split))
        yield from _examine_labels(part, split.given, split.true, expected, source.num_classes)
        if isinstance(split.inputs, ImageFiles):
            yield from _examine_images(part, split.inputs, progress)


def _examine_files(source: Source, data_dir: PathLike | None) -> Iterator[Finding]:
    files = source.files
    unpacked = any(source.place(file, data_dir).exists() for file in files)
    if source.archive is not None and not unpacked:
        files = (source.archive,)
    for file in files:
        path = source.place(file, data_dir)
        if not path.exists():
            yield Finding("problem", f"{path} is missing")
        elif not file.checksum:
            yield Finding("ok", f"{path} is there")
        elif (found := checksum_of(path, file.checksum)) == file.checksum:
            yield Finding("ok", f"{path} is there, {file.checksum.split(':')[0]} as expected")
        else:
            yield Finding("problem", f"{path} has {found}, expected is {file.checksum}")


def _examine_labels(
    part: str, given: Tensor, true: Tensor | None, expected: int, num_classes: int
) -> Iterator[Finding]:
    if len(given) == expected:
        yield Finding("ok", f"{part}: {len(given):,} samples")
    else:
        yield Finding("problem", f"{part}: {len(given):,} samples, {expected:,} when complete")
    if true is None:
        yield Finding("note", f"{part}: the true labels are not known here")
    else:
        rate = noise_rate(true, given)
        yield Finding("ok", f"{part}: {100 * rate:.2f} % of the labels are wrong")
    yield Finding("ok", f"{part}: samples per class\n{histogram(given, num_classes)}")


def _examine_images(part: str, images: ImageFiles, progress: Progress | None) -> Iterator[Finding]:
    report = None if progress is None else lambda done, total: progress(part, done, total)
    bad = images.unreadable(report)
    for path, reason in bad:
        yield Finding("problem", f"{path}: {reason}")
    if not bad:
        yield Finding("ok", f"{part}: every image can be read")


def histogram(labels: Tensor, num_classes: int) -> str:
    """Draw the samples of each class as bars; for many classes, a histogram of class sizes."""
    counts = torch.bincount(labels, minlength=max(num_classes, 1))
    if len(counts) <= LISTED_CLASSES:
        return "\n".join(
            f"  {label:>4}{count:>9,}  {_bar(count, int(counts.max()))}"
            for label, count in enumerate(counts.tolist())
        )
    low, high = int(counts.min()), int(counts.max())
    width = (high - low) // BINS + 1
    sizes = torch.bincount((counts - low) // width).tolist()
    return "\n".join(
        f"  {low + i * width:>7,} to {low + (i + 1) * width - 1:<7,}"
        f"{number:>6} classes  {_bar(number, max(sizes))}"
        for i, number in enumerate(sizes)
    )


def _bar(value: int, largest: int) -> str:
    return "#" * round(40 * value / max(largest, 1))
