"""Write data without their suspicious labels: dropped, relabelled or weighted.

The original is only read. A file is written in one step; a tree of images file by file, so that the
same call completes an interrupted one.
"""

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ..data.own import SUFFIXES, WEIGHT, content_hash
from ..data.source import PathLike, files_below
from ..data.tables import label_name, read_columns
from ..errors import extra
from ..files import check_not_read, draft_of, write_atomically
from ..text import csv_text, encodable, from_csv_cell
from .folder import FINDINGS
from .read import list_images

How = Literal["drop", "relabel", "weights"]
DECISIONS = ("accept", "keep", "skip")
MARK = ".lossforge-clean.json"  # in a tree that this module wrote


@dataclass(frozen=True)
class Change:
    """What to do with one sample whose label is wrong.

    Args:
        index: Its position, counted from 0.
        given: Its label.
        label: The label it gets if it is relabelled.
        confidence: The probability of its label out of fold, its weight if it is weighted.
    """

    index: int
    given: str
    label: str
    confidence: float


@dataclass(frozen=True)
class Cleaned:
    """What was written.

    Args:
        out: Where.
        total: The number of samples of the original.
        changed: How many of them are dropped, relabelled or weighted.
        undecided: Suspects that the decisions leave open, unchanged.
    """

    out: Path
    total: int
    changed: int
    undecided: int


def clean(
    data: PathLike,
    *,
    audit: PathLike,
    how: How,
    out: PathLike,
    decisions: PathLike | None = None,
    on_progress: Callable[[int, int], object] | None = None,
) -> Cleaned:
    """Write data without the wrong labels that an audit found.

    Args:
        data: The audited table (.csv, .tsv, .parquet) or folder of images, unchanged since.
        audit: The folder of the audit.
        how: "drop" leaves the samples out, "relabel" gives them the suggested label, "weights" adds
            a column with the probability of the given label for them and 1 for all others.
        out: The file to write, of the same type as a table. For a folder of images a .csv file that
            lists them, or a folder for copies.
        decisions: A CSV file with the columns index and decision, one of accept, keep and skip,
            and perhaps label, the label to give instead of the suggested one, and given, the label
            that was decided on. The page of the audit exports such a file. Only accepted suspects
            are changed. Without it all suspects are.
        on_progress: Called with the number of files copied so far, and of all files of a folder.
    """
    source, target = Path(data), Path(out)
    if not source.is_dir() and source.suffix.lower() not in SUFFIXES:
        raise ValueError(f"clean takes a table ({', '.join(SUFFIXES)}) or a folder, got {source}")
    found = _read_audit(Path(audit), source)
    changes, undecided = _changes(found, decisions)
    _check_target(source, target)
    check_not_read(target, [Path(decisions)] if decisions is not None else [])
    if strange := {one.label for one in changes.values()} - set(found["data"]["classes"]):
        raise ValueError(f"labels must be classes of the audit, got {min(strange)!r}")
    if source.is_dir():
        report = on_progress or (lambda done, total: None)
        total = _clean_folder(source, target, found, changes, how, report)
    else:
        total = _clean_table(source, target, found, changes, how)
    return Cleaned(target, total, len(changes), undecided)


def _read_audit(folder: Path, source: Path) -> dict[str, Any]:
    path = folder / FINDINGS
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: `lossforge audit {source}` writes it")
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        expected = found["data"]["sha256"]
        found["suspects"][:0], found["data"]["classes"][:0], found["data"]["label"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} must be the file of an audit: {error!r}; repeat it") from None
    if not source.exists():
        raise FileNotFoundError(f"{source}: no such file or folder")
    if content_hash(source) != expected:
        raise ValueError(f"{source} is not what {folder} is about, or has changed; audit it again")
    return found


def _changes(found: Mapping[str, Any], decisions: PathLike | None) -> tuple[dict[int, Change], int]:
    """Return the accepted suspects by index, and the number of those without a decision."""
    suspects = {
        one["index"]: Change(one["index"], one["given"], one["suggested"], one["confidence"])
        for one in found["suspects"]
    }
    if decisions is None:
        return suspects, 0
    decided = _read_decisions(Path(decisions), suspects, found["data"]["classes"])
    accepted = {
        index: Change(index, one.given, decided[index][1] or one.label, one.confidence)
        for index, one in suspects.items()
        if index in decided and decided[index][0] == "accept"
    }
    kept = sum(decision == "keep" for decision, _ in decided.values())
    return accepted, len(suspects) - len(accepted) - kept


def _read_decisions(
    path: Path, suspects: Mapping[int, Change], classes: Sequence[str]
) -> dict[int, tuple[str, str]]:
    """Read the decision and the label, if any, on each suspect by index; the last one counts."""
    table = read_columns(path)
    names = {encodable(name): name for name in classes}  # as a CSV file can hold them
    labels = table.values.get("label", [""] * len(table))
    given = table.values.get("given", [""] * len(table))
    found = {}
    for row, (index, decision) in enumerate(zip(table["index"], table["decision"], strict=True)):
        if not str(index).isdecimal() or int(index) not in suspects:
            raise ValueError(f"{table.where(row)}: index must be that of a suspect, got {index!r}")
        if decision not in DECISIONS:
            known = ", ".join(DECISIONS)
            raise ValueError(f"{table.where(row)}: decision must be {known}, got {decision!r}")
        label, before = (from_csv_cell(str(cells[row] or "")) for cells in (labels, given))
        if label and label not in names:
            raise ValueError(
                f"{table.where(row)}: label must be a class of the audit, got {label!r}"
            )
        if before and names.get(before) != suspects[int(index)].given:
            raise ValueError(
                f"{table.where(row)}: sample {index} was given {suspects[int(index)].given!r} when "
                f"it was audited, and {before!r} when this was decided; review the new audit"
            )
        found[int(index)] = (decision, names.get(label, ""))
    return found


def _check_target(source: Path, target: Path) -> None:
    """Raise if writing the target would touch the original."""
    resolved, original = target.resolve(), source.resolve()
    if target.exists() and target.samefile(source):
        raise ValueError(f"out must not be the original, got {target}")
    if source.is_dir() and (resolved == original or resolved.is_relative_to(original)):
        raise ValueError(f"out must lie outside the original {source}, got {target}")


# Tables


def _clean_table(
    source: Path, target: Path, found: Mapping[str, Any], changes: Mapping[int, Change], how: How
) -> int:
    kind = source.suffix.lower()
    if target.suffix.lower() != kind:
        raise ValueError(f"out must be a {kind} file as the original is, got {target}")
    label = found["data"]["label"]
    table = read_columns(source)
    if how == "weights" and WEIGHT in table.values:
        raise ValueError(f"{source} has a column {WEIGHT!r} already; rename it first")
    values = {label_name(value): value for value in table[label]}  # as the file writes them
    if strange := {one.label for one in changes.values()} - values.keys():
        raise ValueError(f"{source} has no label {min(strange)!r}, which the audit names")
    if kind in (".parquet", ".pq"):
        content = _parquet(source, label, values, changes, how)
    else:
        content = _text(source, "\t" if kind == ".tsv" else ",", label, values, changes, how)
    write_atomically(target, content)
    _remove_drafts(target.parent.iterdir(), target.name)
    return len(table)


def _remove_drafts(paths: Iterable[Path], name: str | None = None) -> None:
    """Remove what killed calls left, of all files or of one; a call that still writes it fails."""
    for path in paths:
        draft = draft_of(path)
        if draft is not None and name in (None, draft):
            path.unlink(missing_ok=True)


def _text(
    source: Path,
    delimiter: str,
    label: str,
    values: Mapping[str, Any],
    changes: Mapping[int, Change],
    how: How,
) -> bytes:
    """Return the text of a cleaned table; cells that are not changed keep their content."""
    raw = source.read_bytes()
    text = raw.decode("utf-8-sig")
    header, *rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
                     if row]  # fmt: skip
    place = header.index(label)
    stream = io.StringIO(newline="")
    ending = "\r\n" if b"\r\n" in raw else "\n"
    writer = csv.writer(stream, delimiter=delimiter, lineterminator=ending)
    writer.writerow([*header, WEIGHT] if how == "weights" else header)
    for index, row in enumerate(rows):
        change = changes.get(index)
        if how == "weights":
            row = [*row, "1" if change is None else f"{change.confidence:.4f}"]
        elif change is not None and how == "drop":
            continue
        elif change is not None:
            row = [*row[:place], values[change.label], *row[place + 1 :]]
        writer.writerow(row)
    return stream.getvalue().encode("utf-8-sig" if raw.startswith(b"\xef\xbb\xbf") else "utf-8")


def _parquet(
    source: Path,
    label: str,
    values: Mapping[str, Any],
    changes: Mapping[int, Change],
    how: How,
) -> bytes:
    arrow, parquet = extra("pyarrow", "bench"), extra("pyarrow.parquet", "bench")
    table = parquet.read_table(source)
    if how == "drop":
        table = table.take([row for row in range(len(table)) if row not in changes])
    elif how == "relabel":
        place = table.schema.get_field_index(label)
        column = table.column(place).to_pylist()
        for index, change in changes.items():
            column[index] = values[change.label]
        field = table.schema.field(place)
        table = table.set_column(place, field, arrow.array(column, type=field.type))
    else:
        weights = [changes[row].confidence if row in changes else 1.0 for row in range(len(table))]
        table = table.append_column(WEIGHT, arrow.array(weights))
    stream = io.BytesIO()
    parquet.write_table(table, stream)
    return stream.getvalue()


# Folders of images


def _clean_folder(
    source: Path,
    target: Path,
    found: Mapping[str, Any],
    changes: Mapping[int, Change],
    how: How,
    report: Callable[[int, int], object],
) -> int:
    files, given, classes = list_images(source)
    # a label of the audit becomes a folder, so it must be one
    if sorted(found["data"]["classes"]) != sorted(classes):
        raise ValueError("the classes of the audit are not those of the folder; audit it again")
    names = [classes[k] for k in given.tolist()]
    if target.suffix.lower() == ".csv":
        rows = [
            _listed(str(files.path(row)), name, changes.get(row), how)
            for row, name in enumerate(names)
        ]
        header = ("path", "label", *([WEIGHT] if how == "weights" else []))
        write_atomically(target, csv_text([header, *filter(None, rows)]).encode())
        _remove_drafts(target.parent.iterdir(), target.name)
        return len(names)
    if how == "weights":
        raise ValueError(f"weights need a list, out must be a .csv file, got {target}")
    paths = [files.path(index) for index in range(len(names))]
    _claim_tree(target, found, changes, how)
    _copy_tree(source, target, _targets(files.root, paths, changes, how), report)
    return len(names)


def _listed(path: str, name: str, change: Change | None, how: How) -> tuple[object, ...] | None:
    """Return the line of an image in a list; None for a dropped one."""
    if how == "weights":
        return path, name, 1 if change is None else round(change.confidence, 4)
    if change is None:
        return path, name
    return None if how == "drop" else (path, change.label)


def _targets(
    root: Path, paths: Sequence[Path], changes: Mapping[int, Change], how: How
) -> dict[Path, Path | None]:
    """Return where each image goes below its root; None for a dropped one.

    A relabelled image whose name is taken gets the name of its former class behind its own.
    """
    taken = {path.relative_to(root) for path in paths}
    found: dict[Path, Path | None] = {}
    for index, path in enumerate(paths):
        change, own = changes.get(index), path.relative_to(root)
        if change is None:
            found[path] = own
        elif how == "drop":
            found[path] = None
        elif change.label == own.parts[0]:
            found[path] = own
        else:
            inside, number = own.parts[1:-1], 0
            moved = Path(change.label, *inside, own.name)
            while moved in taken:
                number += 1
                more = change.given if number == 1 else f"{change.given}-{number}"
                moved = Path(change.label, *inside, f"{own.stem}-{more}{own.suffix}")
            taken.add(moved)
            found[path] = moved
    return found


def _is_empty(folder: Path) -> bool:
    """Check whether a folder holds nothing, or only what a call left that was killed at once."""
    return folder.is_dir() and all(draft_of(path) for path in folder.iterdir())


def _claim_tree(
    target: Path, found: Mapping[str, Any], changes: Mapping[int, Change], how: How
) -> None:
    """Note in a folder what it is a copy of; raise unless it is new, or an interrupted one."""
    plan = [found["data"]["sha256"], how, [(k, one.label) for k, one in sorted(changes.items())]]
    mark = {"plan": hashlib.sha256(json.dumps(plan).encode()).hexdigest()}
    note = target / MARK
    if note.is_file() and json.loads(note.read_text()) != mark:
        raise ValueError(
            f"{target} holds another cleaned copy; choose another folder, or delete it"
        )
    if not note.is_file() and target.exists() and not _is_empty(target):
        raise ValueError(f"out must be a new or empty folder, got {target}")
    target.mkdir(parents=True, exist_ok=True)
    write_atomically(note, json.dumps(mark).encode())
    _remove_drafts([*target.rglob(".*.part")])


def _copy_tree(
    source: Path,
    target: Path,
    moved: Mapping[Path, Path | None],
    report: Callable[[int, int], object],
) -> None:
    """Copy a tree file by file, except what is there already."""
    root = source / "train" if (source / "train").is_dir() else source
    paths = [path for path in files_below(source) if not draft_of(path)]
    for done, path in enumerate(paths):
        report(done, len(paths))
        below = moved.get(path, path.relative_to(root) if path.is_relative_to(root) else None)
        if below is not None:
            place = target / root.relative_to(source) / below
        elif path in moved:
            continue  # dropped
        else:
            place = target / path.relative_to(source)
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(place, path.read_bytes())
