"""docs/results.md and its figures, from the archives only."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from results_balance import balance_section
from results_cifar import paper_sentences, whole_section
from results_claims import short
from results_data import (
    ABLATION,
    BALANCE,
    CIFAR,
    EXTREMES,
    FLATNESS,
    MAIN,
    MANY,
    MANY_SEARCH,
    PARAMETERS,
    RATE,
    WHOLE,
    Archive,
    Figures,
    main_records,
    read_archives,
    results_of,
)
from results_flatness import flatness_section
from results_many import many_section, many_sentences
from results_method import method
from results_tables import cifar_section, data_section, mark_note, rank_section
from results_tuned import FILE, tuned_section

from lossforge.style import style

PAGE = "results.md"
IMAGES = "images"
PATTERN = "results-*.svg"
CIFARS = (CIFAR, WHOLE, RATE, BALANCE, PARAMETERS)
GRIDS = (*MAIN, *EXTREMES, MANY, MANY_SEARCH, ABLATION, FLATNESS, *CIFARS)
NOT_RANKED = "These settings do not count in the mean ranks above."
OPENING = [
    "# Results",
    "",
    "Written by `make docs-results` from `results/*.jsonl.gz`; every number and every verdict "
    "below is computed from these runs, unless it says otherwise. They are small: data sets and "
    "networks that one core trains in seconds to a minute and a half. They show how losses compare "
    "under this protocol, and nothing about the scale of the paper.",
    "",
]


def make_page(folder: Path) -> dict[str, bytes]:
    """Make all files of the page, by their path below docs/.

    Args:
        folder: The folder of the archives.
    """
    text, figures = make_text(folder)
    files = {f"{IMAGES}/{name}": svg(draw()) for name, draw in figures.items()}
    return {PAGE: text.encode(), **files}


def make_text(folder: Path) -> tuple[str, Figures]:
    """Write the page, and return the functions that draw its figures."""
    archives = read_archives(folder)
    if not archives:
        raise FileNotFoundError(f"there is no archive in {folder}; `results.py pack` makes them")
    known = {name: archives[name] for name in GRIDS if name in archives}
    sections, figures = _sections(known, folder)
    lines = [*OPENING, *sections, *_missing(known)]
    return "\n".join(lines).rstrip() + "\n", figures


def write_page(folder: Path, docs: Path) -> list[Path]:
    """Write the page and its figures, and remove figures it no longer uses."""
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
    """Write a figure as SVG without date and matplotlib version."""
    stream = io.BytesIO()
    with style():
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return stream.getvalue()


def _sections(archives: dict[str, Archive], folder: Path) -> tuple[list[str], Figures]:
    summary, first = short(archives, [*many_sentences(archives), *paper_sentences(archives)])
    lines = [*summary, *method(archives), mark_note(), ""]
    records = main_records(archives)
    whole, drawn = whole_section(archives)
    lines, figures = lines + whole, first | drawn
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
    lines += many_section(archives)
    lines += cifar_section(archives[CIFAR]) if CIFAR in archives else []
    return [*lines, *tuned_section(folder / FILE)], figures


def _missing(archives: Mapping[str, Archive]) -> list[str]:
    absent = [name for name in GRIDS if name not in archives]
    if not absent:
        return []
    commands = [f'- {name}: `make results ARGS="{name}"`' for name in absent]
    return [
        "## Not run",
        "",
        "These grids have no committed runs; these commands make them:",
        "",
        *commands,
        "",
    ]
