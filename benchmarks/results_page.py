"""docs/results.md and its figures, from the archives alone."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from results_balance import balance_section
from results_claims import short
from results_data import (
    ABLATION,
    CIFAR,
    EXTREMES,
    FLATNESS,
    MAIN,
    Archive,
    Figures,
    main_records,
    read_archives,
    results_of,
)
from results_flatness import flatness_section
from results_method import method
from results_tables import cifar_section, data_section, mark_note, rank_section
from results_tuned import FILE, tuned_section

from lossforge.report.style import style

PAGE = "results.md"
IMAGES = "images"
PATTERN = "results-*.svg"
GRIDS = (*MAIN, *EXTREMES, CIFAR, ABLATION, FLATNESS)
NOT_RANKED = "These settings do not count in the mean ranks above."
OPENING = [
    "# Results",
    "",
    "Written by `make docs-results` from `results/*.jsonl.gz`; every number and every verdict "
    "below is computed from these runs. They are small: data sets and networks that one core "
    "trains in seconds to a minute. They say how losses compare under this protocol, and nothing "
    "of how they would at the scale of the paper.",
    "",
]


def make_page(folder: Path) -> dict[str, bytes]:
    """All files of the page by their path below docs/.

    Args:
        folder: Where the archives lie.
    """
    text, figures = make_text(folder)
    files = {f"{IMAGES}/{name}": svg(draw()) for name, draw in figures.items()}
    return {PAGE: text.encode(), **files}


def make_text(folder: Path) -> tuple[str, Figures]:
    """The page, and its figures still to be drawn."""
    archives = read_archives(folder)
    if not archives:
        raise FileNotFoundError(f"there is no archive in {folder}; `results.py pack` makes them")
    known = {name: archives[name] for name in GRIDS if name in archives}
    sections, figures = _sections(known, folder)
    lines = [*OPENING, *sections, *_missing(known)]
    return "\n".join(lines).rstrip() + "\n", figures


def write_page(folder: Path, docs: Path) -> list[Path]:
    """Write the page and its figures, and remove figures that it no longer has."""
    files = make_page(folder)
    for old in (docs / IMAGES).glob(PATTERN):
        if f"{IMAGES}/{old.name}" not in files:
            old.unlink()
    for name, content in files.items():
        path = docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return [docs / name for name in files]


def svg(figure: Any) -> bytes:
    """A figure as a file that neither the day nor the version of matplotlib is written in."""
    stream = io.BytesIO()
    with style():
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return stream.getvalue()


def _sections(archives: dict[str, Archive], folder: Path) -> tuple[list[str], Figures]:
    lines = [*short(archives), *method(archives), mark_note(), ""]
    records, figures = main_records(archives), Figures()
    for name in MAIN:
        lines += data_section(archives[name]) if name in archives else []
    if records:
        ranked, drawn = rank_section(results_of(records))
        lines, figures = lines + ranked, figures | drawn
    if ABLATION in archives:
        balanced, drawn = balance_section(archives)
        lines, figures = lines + balanced, figures | drawn
    lines += flatness_section(archives) if FLATNESS in archives else []
    for name in EXTREMES:
        lines += data_section(archives[name], NOT_RANKED) if name in archives else []
    lines += cifar_section(archives[CIFAR]) if CIFAR in archives else []
    return [*lines, *tuned_section(folder / FILE)], figures


def _missing(archives: Mapping[str, Archive]) -> list[str]:
    absent = [name for name in GRIDS if name not in archives]
    if not absent:
        return []
    commands = [
        f"- {name}: `lossforge bench results/{name} --store runs/results/{name}`" for name in absent
    ]
    return [
        "## Not run",
        "",
        "Sections are left out for want of runs, which these commands make:",
        "",
        *commands,
        "",
    ]
