"""Images on disk, decoded when they are indexed, and the text files that list them."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import extra
from .geometry import centre_boxes

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Image files as inputs of a `Split`; indexing decodes them, in RGB.

    Colours of any kind (grey, palette, CMYK) become RGB, transparency is dropped, and the
    orientation that a camera may have noted is not applied, as in the published loaders.

    Args:
        root: The folder that the names are relative to.
        names: The names as an array of bytes; `under` makes one. A million Python strings would
            be copied into every worker process, one by one, as they are touched.
        size: Height and width of what indexing returns.
        resize: Length that indexing gives the short side before it takes the middle.
    """

    root: Path
    names: NDArray[np.bytes_]
    size: int = 224
    resize: int = 256

    @classmethod
    def under(cls, root: Path, names: Sequence[str], **sizes: int) -> "ImageFiles":
        """Name files of a folder, such as "0/00/shirt.jpg"."""
        return cls(root, np.array([os.fsencode(name) for name in names], dtype=np.bytes_), **sizes)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: Tensor) -> Tensor:
        """Read the images at some positions as for evaluation: uint8, (N, 3, size, size)."""
        boxes = centre_boxes(self.sizes(index), self.resize, self.size)
        return self.crop(index, boxes, self.size)

    def subset(self, index: Tensor) -> "ImageFiles":
        """Select the files at some positions; nothing is read."""
        return replace(self, names=self.names[index.cpu().numpy()])

    def path(self, position: int) -> Path:
        """Return the path of an image."""
        return self.root / os.fsdecode(self.names[position])

    def sizes(self, index: Tensor) -> Tensor:
        """Read height and width of the images at some positions, (N, 2), from the headers."""
        sizes = [_read(self.path(position), _size) for position in index.tolist()]
        return torch.tensor(sizes, dtype=torch.int64).view(-1, 2)

    def crop(self, index: Tensor, boxes: Tensor, size: int) -> Tensor:
        """Read a box of each image, resized with antialiasing.

        Args:
            index: (N,), positions.
            boxes: (N, 4), left, top, right, bottom in the image's pixels, fractions allowed.
            size: Height and width of the result.

        Returns:
            uint8, (N, 3, size, size).
        """
        bilinear = extra("PIL.Image", "bench").Resampling.BILINEAR
        pixels = np.empty((len(index), size, size, 3), dtype=np.uint8)
        for i, (position, box) in enumerate(zip(index.tolist(), boxes.tolist(), strict=True)):
            image = _read(self.path(position), _rgb)
            # boxes are computed, so their last digit may lie outside the image
            edges = [min(side, end) for side, end in zip(box, 2 * image.size, strict=True)]
            pixels[i] = image.resize((size, size), bilinear, box=edges)
        return torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous()

    def reduced(self, position: int, longest: int) -> Any:
        """Read a whole image as Pillow's, in RGB, made smaller if a side is longer than that."""

        def use(image: Any) -> Any:
            image.draft("RGB", (longest, longest))  # JPEG files are decoded smaller, and faster
            found = _rgb(image)
            found.thumbnail((longest, longest))
            return found

        return _read(self.path(position), use)

    def unreadable(
        self, progress: Callable[[int, int], object] | None = None
    ) -> list[tuple[Path, str]]:
        """Decode every image and list those that cannot be, with the reason.

        Args:
            progress: Called after each image with how many are done and how many there are.
        """
        bad = []
        for position in range(len(self)):
            path = self.path(position)
            try:
                _read(path, _rgb)
            except FileNotFoundError:
                bad.append((path, "there is no such file"))
            except (OSError, ValueError) as error:
                bad.append((path, str(error).removeprefix(f"{path}: ")))
            if progress is not None:
                progress(position + 1, len(self))
        return bad


def _read(path: Path, use: Callable[[Any], T]) -> T:
    """Open an image and use it; an error about its content names the file."""
    pillow = extra("PIL.Image", "bench")
    if path.exists() and not path.is_file():  # opening a pipe would wait for ever
        raise ValueError(f"{path}: not a regular file")
    with path.open("rb") as stream:
        try:
            with pillow.open(stream) as image:
                return use(image)
        except pillow.UnidentifiedImageError as error:
            raise ValueError(f"{path}: not an image") from error
        # decoders of broken files raise OSError, SyntaxError, struct.error, IndexError, ...
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise ValueError(f"{path}: cannot be read as an image: {reason}") from error


def _size(image: Any) -> tuple[int, int]:
    return image.height, image.width


def _rgb(image: Any) -> Any:
    if image.mode.startswith("I;16"):
        # Pillow would cut 16 bits of grey off at 255 instead of scaling them
        grey = np.asarray(image, dtype=np.uint16) >> 8
        return extra("PIL.Image", "bench").fromarray(grey.astype(np.uint8)).convert("RGB")
    # Pillow warns where a palette holds transparency, unless the alpha channel is named first
    has_alpha = image.mode == "P" and "transparency" in image.info
    return (image.convert("RGBA") if has_alpha else image).convert("RGB")


def read_lines(path: Path, layout: str) -> list[str]:
    """Read the lines of a file, without blank ones at its end.

    Args:
        path: The file.
        layout: The expected layout of the folder, for the error if the file is missing.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; expected layout:\n{layout}")
    # names need not be valid UTF-8; this keeps their bytes
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    return text.rstrip().splitlines()


def read_names(path: Path, layout: str) -> list[str]:
    """Read a file with one name on each line."""
    return [_checked(line.strip(), path, i, line) for i, line in _numbered(path, layout)]


def read_labels(path: Path, num_classes: int, layout: str) -> tuple[list[str], list[int]]:
    """Read names and labels from a file of lines such as "images/0/00/shirt.jpg 5".

    Args:
        path: The file.
        num_classes: Labels must lie in 0..num_classes - 1.
        layout: As for `read_lines`.
    """
    names, labels = [], []
    known = {str(label): label for label in range(num_classes)}
    for i, line in _numbered(path, layout):
        name, _, text = line.strip().rpartition(" ")
        label = known.get(text)
        if label is None or not name:
            raise ValueError(at(path, i, line, _complaint(name, text, num_classes)))
        names.append(_checked(name.rstrip(), path, i, line))
        labels.append(label)
    return names, labels


def at(path: Path, number: int, line: str, complaint: str) -> str:
    """Write an error message about a line of a file."""
    return f"{path}:{number}: {complaint}: {line!r}"


def _numbered(path: Path, layout: str) -> Iterator[tuple[int, str]]:
    return enumerate(read_lines(path, layout), start=1)


def _checked(name: str, path: Path, number: int, line: str) -> str:
    if not name:
        raise ValueError(at(path, number, line, "a name is expected, the line is blank"))
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts:
        raise ValueError(at(path, number, line, "the name leads out of the data's folder"))
    return name


def _complaint(name: str, text: str, num_classes: int) -> str:
    if not text:
        return "a name and a label are expected, the line is blank"
    if not name:
        part = "name" if text.isdecimal() else "label"
        return f"a name and a label are expected, the {part} is missing"
    return f"the label must be a whole number in 0..{num_classes - 1}, got {text!r}"
