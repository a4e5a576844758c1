"""Text files that list images line by line, with or without a label."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def read_lines(path: Path, layout: str) -> list[str]:
    """The lines of a file, without blank ones at its end.

    Args:
        path: The file.
        layout: How the folder should look, for the user who lacks the file.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; expected layout:\n{layout}")
    # names need not be valid UTF-8; this keeps their bytes
    text = path.read_text(encoding="utf-8", errors="surrogateescape")
    return text.rstrip().splitlines()


def read_names(path: Path, layout: str) -> list[str]:
    """The names in a file that has one on each line."""
    return [_checked(line.strip(), path, i, line) for i, line in _numbered(path, layout)]


def read_labels(path: Path, num_classes: int, layout: str) -> tuple[list[str], list[int]]:
    """The names and labels in a file of lines such as "images/0/00/shirt.jpg 5".

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
    """An error message about a line of a file."""
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
