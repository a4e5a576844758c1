"""What is there of a data set, what is missing, and whether it can be read."""

import os
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from ..noise import noise_rate
from .dataset import Split
from .download import checksum_of
from .images import ImageFiles
from .sources import Source, find

PathLike = str | os.PathLike[str]
Progress = Callable[[str, int, int], object]
LISTED_CLASSES = 25


class Finding(NamedTuple):
    """One thing the doctor saw; "note" may be as intended, "problem" is not."""

    kind: Literal["ok", "note", "problem"]
    text: str


def diagnose(
    name: str, *, data_dir: PathLike | None = None, progress: Progress | None = None
) -> Iterator[Finding]:
    """Examine a data set file by file, then read all of it.

    Args:
        name: A name of the list of data sets.
        data_dir: Where to look instead of the usual folders.
        progress: Called while images are decoded: with the part, images done, images in all.
    """
    source = find(name)
    yield from _examine_files(source, data_dir)
    try:
        parts = source.read(data_dir)
        rates = source.rates(data_dir) if source.rates is not None else {}
    except (OSError, ValueError) as error:
        yield Finding("problem", str(error))
        yield Finding("note", f"expected layout:\n{source.layout}")
        remedy = source.obtain or f"`lossforge data fetch {source.name}` downloads it"
        yield Finding("note", remedy)
        return
    for label_set, rate in rates.items():
        yield Finding("ok", f"{label_set}: {100 * rate:.2f} % of the labels are wrong")
    for part, split in parts.items():
        yield from _examine_split(source, part, split, progress)


def _examine_files(source: Source, data_dir: PathLike | None) -> Iterator[Finding]:
    files = source.files
    if source.archive is not None and not any(
        source.place(file, data_dir).exists() for file in files
    ):
        files = (source.archive,)
    for file in files:
        path = source.place(file, data_dir)
        if not path.exists():
            yield Finding("note", f"{path} is missing")
        elif not file.checksum:
            yield Finding("ok", f"{path} is there; no checksum is published")
        elif (found := checksum_of(path, file.checksum)) == file.checksum:
            yield Finding("ok", f"{path} is there, {file.checksum.split(':')[0]} as published")
        else:
            yield Finding("note", f"{path} has {found}, published is {file.checksum}")


def _examine_split(
    source: Source, part: str, split: Split, progress: Progress | None
) -> Iterator[Finding]:
    expected = source.counts.get(part, len(split))
    if len(split) == expected:
        yield Finding("ok", f"{part}: {len(split):,} samples")
    else:
        yield Finding("note", f"{part}: {len(split):,} samples, {expected:,} when complete")
    if split.true is not None and (rate := noise_rate(split.true, split.given)):
        yield Finding("ok", f"{part}: {100 * rate:.2f} % of the labels are wrong")
    yield Finding("ok", f"{part}: samples per class\n{histogram(split.given)}")
    if isinstance(split.inputs, ImageFiles):
        report = None if progress is None else lambda done, total: progress(part, done, total)
        bad = split.inputs.unreadable(report)
        for path, reason in bad:
            yield Finding("problem", f"{path}: {reason}")
        if not bad:
            yield Finding("ok", f"{part}: every image can be read")


def histogram(labels: Tensor) -> str:
    """Samples per class: a bar each, or the extremes where there are many classes."""
    counts = torch.bincount(labels).tolist()
    order = sorted(range(len(counts)), key=counts.__getitem__)
    if len(counts) > LISTED_CLASSES:
        return "\n".join(
            f"  {word:9}{counts[label]:>9,}  class {label}"
            for word, label in (
                ("fewest", order[0]),
                ("median", order[len(order) // 2]),
                ("most", order[-1]),
            )
        )
    widest = counts[order[-1]]
    return "\n".join(
        f"  {label:>4}{count:>9,}  {'#' * round(40 * count / widest)}"
        for label, count in enumerate(counts)
    )
