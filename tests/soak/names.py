"""Hostile names through every output: each format shows them, and obeys none.

A problem draws names (of classes, files, columns, losses, tests, titles) from fragments that some
format would obey, and puts them through an audit and a report. The same outputs with tame names
must have the same structure. Every tenth problem opens its pages in Chromium, if there is one.
"""

import csv
import html
import io
import json
import os
import random
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import cache, partial
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import torch
import typer
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "report"))
import chromium
import record_fixtures

from lossforge.audit import Audit, Method, Subject, estimate
from lossforge.audit.audit import find_suspects
from lossforge.audit.candidates import certify_candidates, recommend
from lossforge.audit.folder import write_audit
from lossforge.audit.read import read_folder
from lossforge.audit.table import read_table
from lossforge.benchmark import RunSpec
from lossforge.catalog import parse
from lossforge.cli import audit as audit_command
from lossforge.cli.options import one_line_errors
from lossforge.cli.output import echo_styled, visible_controls
from lossforge.data import Dataset, Split
from lossforge.data.tables import read_columns
from lossforge.noise import NoiseSpec, corrupt, symmetric
from lossforge.report import make_report, write_report
from lossforge.report.formats import BREAK, LATEX
from lossforge.text import csv_cell, encodable, from_csv_cell, printable

SIZE = 200
IN_BROWSER = 10
CLASSES, ROWS = 4, 48
HIT = "window.hit=1"
FRAGMENTS = (
    *(f"<script>{HIT}</script>", f"</script><script>{HIT}//", f"<img src=x onerror={HIT}>", "<b>"),
    *(f'" onmouseover="{HIT}', f"' onload='{HIT}", f"</title><svg onload={HIT}>", "<!--", "-->"),
    *("]]>", "&lt;", "&amp;", "&#60;", "</style>", "</code></pre>", "<plaintext>", "javascript:1"),
    *("{{ 7 * 7 }}", "{% raw %}", "${1+1}", "%s%n", "'", '"', "\\", "`", "``", "|", "||", "\\|"),
    *("*", "**", "_", "__x__", "~~", "[a](http://x.example)", "![i](x)", "[", "]", "$", "$$"),
    *(r"$\frac{$", r"\input{/etc/passwd}", r"\end{table}", r"\\[3cm]", "^", "#", "%", "&", "~"),
    *("{", "}", "--", "±", "=1+1", "=cmd|' /C calc'!A1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"),
    *("'=1", "''", "-", "\uff1d1", "\x1b[31m", "\x1b[1m", "\x1b[2J", "\x1b]0;title\x07", "\x9b31m"),
    *("\x1b]8;;http://x.example\x1b\\", "\r", "\n", "\r\n", "\n\n", "\t", "\x0b", "\x0c", "\x00"),
    *("\x07", "\x08", "\x7f", "\x85", "\u2028", "\u202e", "\u2066", "\u200f", "\u200b", "\ufeff"),
    *("é", "猫", "🐈", "\u0301", "ﷺ", "\udcff\udc80", "\ud800", " ", "  ", ",", ";", "a" * 300),
    *("x", ":heart:", "[bold]", "[/]", "0", "nan", 'id="', "url(#a)", "#22262b", "<metadata>"),
)
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
STYLE = re.compile("\x1b\\[[01]m")


def attack(seed: int) -> list[str]:
    """Return the faults that some random names lead to, a line each."""
    chance = random.Random(seed)
    names = [_name(chance, place) for place in range(16)]
    faults, pages = [], []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fonts lack glyphs, and panels are narrow
        for check in (_audit_faults, _report_faults, _table_faults, _image_faults, _error_faults):
            place = Path(folder) / check.__name__
            place.mkdir()
            try:
                faults += [f"{check.__name__}: {fault}" for fault in check(place, names)]
            except Exception as error:  # whatever it is, a name caused it
                faults.append(f"{check.__name__}: {type(error).__name__}: {error}")
            pages += place.glob("index.html")
        if seed % IN_BROWSER == 0 and chromium.PROGRAM is not None:
            faults += _browser_faults(Path(folder), pages, names)
    return [printable(fault)[:400] for fault in faults]


def _name(chance: random.Random, place: int) -> str:
    """Draw a name that is unlike the others of the problem."""
    parts = [*chance.choices(FRAGMENTS, k=chance.randint(1, 5)), f"n{place}"]
    chance.shuffle(parts)
    return "".join(parts) + ("y" * 10_000 if chance.random() < 0.03 else "")


# An audit


def _audit(names: Sequence[str]) -> Audit:
    """Make an audit whose every name is one of `names`."""
    draw = torch.Generator().manual_seed(0)
    true = torch.arange(ROWS) % CLASSES
    T = symmetric(CLASSES, 0.25)
    given = corrupt(true, T, generator=draw, exact=True).labels
    probs = T[true] + 0.05 * torch.rand(ROWS, CLASSES, generator=draw, dtype=torch.float64)
    probs = probs / probs.sum(1, keepdim=True)
    classes = tuple(names[:CLASSES])
    subject = Subject(
        names[4],
        "table",
        Dataset(names[5], classes, Split(torch.zeros(ROWS, 2), given), {}),
        where=lambda row: names[6 + row % 4],
        text=lambda row: names[10 + row % 3],
        notes=(names[13], names[14]),
    )
    found = estimate([probs], given, generator=draw, resamples=3)
    candidates = certify_candidates(["CE"], found)
    method = Method("mlp", "CE", 5, 1, (4, 9), 0.8, 0, 1.5)
    suspects = tuple(find_suspects(probs, subject))
    advice = recommend(candidates, found)
    return Audit(subject, method, found, tuple(candidates), advice, suspects)


def _audit_faults(place: Path, names: Sequence[str]) -> Iterator[str]:
    found = _audit(names)
    page = write_audit(found, place, f"lossforge audit {names[15]}")
    # JSON joins two halves of a character, which no file name and no UTF-8 text has side by side
    expected = json.loads(json.dumps(found.to_dict()))
    if json.loads((place / "audit.json").read_text()) != expected:
        yield "audit.json reads otherwise"
    words = [(one.where, one.given, one.suggested, one.text) for one in found.suspects]
    yield from _csv_faults(place / "suspects.csv", words)
    table = read_columns(place / "suspects.csv")
    columns = zip(*(table[name] for name in ("where", "given", "suggested", "text")), strict=True)
    if [tuple(map(from_csv_cell, row)) for row in columns] != [
        tuple(map(encodable, row)) for row in words
    ]:
        yield "suspects.csv is read otherwise by read_columns"
    matrix = NoiseSpec.parse(str(place / "transition.csv"))
    if not torch.equal(matrix.transition(), found.noise.estimate.T):
        yield "transition.csv has another matrix"
    stripped = [csv_cell(name).strip() for name in matrix.classes or ()]
    if stripped != [csv_cell(name).strip() for name in found.subject.dataset.classes]:
        yield f"transition.csv has other classes: {matrix.classes}"
    yield from _page_faults(page.read_text(), _tame_pages()[0], [*names[:5], *names[6:15]])

    lines = audit_command.lines(found.to_dict(), Path("out") / names[4])
    write = partial(echo_styled, "\n".join(lines))
    shown = _output(write)
    yield from _terminal_faults(shown)
    yield from _terminal_faults(_output(write, isatty=True), isatty=True)
    for one in found.to_dict()["confusions"][: audit_command.PAIRS]:
        if len(printable(one["true"])) <= 30 and printable(one["true"]).strip() not in shown:
            yield f"the terminal lacks class {one['true']!r}"


# A report


def _report_store(store: Path, names: Sequence[str]) -> Path:
    names = [*map(encodable, names)]  # a record with halves of characters is damaged
    data, noise, test = names[4:7]
    records = [
        record_fixtures.record(f"{place}", "pair:0.4", seed, tests=(test, names[7]), classes=3)
        for seed in (0, 1)
        for place in range(4)
    ]
    for record in records:
        loss = names[int(record.spec["loss"])]
        record.spec.update(loss=loss, expression=loss, noise=noise, data=data)
        object.__setattr__(record, "id", RunSpec(**record.spec).id)
        record.about.update(command=names[8], host=names[9], device=names[10])
    object.__setattr__(records[-1], "failed", names[11])
    return record_fixtures.write(store, records, name=names[12], title=names[13])


def _report_faults(place: Path, names: Sequence[str]) -> Iterator[str]:
    report = make_report(_report_store(place / "store", names))
    page = write_report(report, place, f"lossforge report {names[14]}")
    yield from _page_faults(page.read_text(), _tame_pages()[1], names[:11])
    shown = [printable(name) for name in (*names[:5], *names[6:8])]  # the noise is abbreviated
    tame = _tame_report()
    for form, read in (("terminal", str), ("markdown", _from_markdown), ("latex", _from_latex)):
        text = report.text(form)
        yield from _lines_faults(form, text, tame.text(form))
        yield from (f"{form} lacks {name!r}" for name in shown if name not in read(text))
        yield from _terminal_faults(_output(partial(print, text)))
    styled = partial(echo_styled, report.text("terminal", 90))
    yield from _terminal_faults(_output(styled, isatty=True), isatty=True)
    rows = [
        (table.data, column.label, column.noise, column.test, table.k, table.measure, loss)
        for table in report.tables
        for loss in table.losses
        for column in table.columns
    ]
    yield from _csv_faults(place / "tables.csv", rows)
    for path in (place / "figures").glob("*.svg"):
        root = ElementTree.parse(path).getroot()
        if any(element.tag.endswith("}script") for element in root.iter()):
            yield f"{path.name} has a script"


def _from_markdown(text: str) -> str:
    return html.unescape(re.sub(r"\\([\\`*|$~_\]])", r"\1", text.replace(BREAK, "")))


def _from_latex(text: str) -> str:
    back = {written: letter for letter, written in LATEX.items()} | {"-{}": "-"}
    pattern = "|".join(re.escape(word) for word in sorted(back, key=len, reverse=True))
    return re.sub(pattern, lambda found: back[found[0]], text)


def _lines_faults(form: str, text: str, tame: str) -> Iterator[str]:
    """Compare the structure of two texts: their lines, and the marks that no escape precedes."""
    if text.count("\n") != tame.count("\n"):
        yield f"{form} has {text.count(chr(10))} lines, tame names give {tame.count(chr(10))}"
        return
    if form == "terminal":
        return
    marks, bare, escape = ("|", "[<>`$~]", r"\\.")
    if form == "latex":
        marks, bare, escape = ("&", r"[<>|\"`#%_^~$]", r"\\[&%_#${}]")
    for line, usual in zip(text.splitlines(), tame.splitlines(), strict=True):
        plain, usual = (re.sub(escape, "", one).replace(r"$\pm$", "") for one in (line, usual))
        if plain.count(marks) != usual.count(marks):
            yield f"{form} has {plain.count(marks)} {marks} in {line[:80]!r}"
        if found := re.search(bare, plain):
            yield f"{form} leaves {found[0]!r} in {line[:80]!r}"
        if form == "latex" and plain.count("{") != plain.count("}"):
            yield f"latex leaves a brace open in {line[:80]!r}"


# Tables, images and errors


def _table_faults(place: Path, names: Sequence[str]) -> Iterator[str]:
    """Read a table that has hostile names for its columns and classes."""
    columns, classes = [encodable(name) for name in names[:2]], [*map(encodable, names[2:5])]
    path = place / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*columns, "label"])
        for row in range(60):
            writer.writerow([row * row % 7, row % 5, classes[row % 3]])
    found = read_table(path)
    if set(found.dataset.classes) != set(classes):
        yield f"the classes are read as {found.dataset.classes}"
    for name in columns:
        if not any(repr(name)[1:-1] in note for note in found.notes):
            yield f"no note names the column {name!r}"


def _image_faults(place: Path, names: Sequence[str]) -> Iterator[str]:
    """Read a folder of images that has hostile names, as far as the file system takes them."""
    possible = [re.sub("[\x00/\ud800]", "", name)[:40].strip() for name in names[:6]]
    made = {}
    for number, folder in enumerate(possible[:4]):
        os.mkdir(place / f"c{folder}")
        for image, name in enumerate(possible[4:]):
            path = place / f"c{folder}" / f"i{name}{image}.png"
            Image.new("RGB", (4, 4), (60 * number, 0, 90 * image)).save(path)
            made[str(path)] = f"c{folder}"
    found = read_folder(place, size=4)
    given = found.given.tolist()
    read = {found.where(row): found.dataset.classes[k] for row, k in enumerate(given)}
    if read != made:
        yield f"the images are read as {read}"


def _error_faults(place: Path, names: Sequence[str]) -> Iterator[str]:
    """Print the errors of names where a file, a column or a loss is expected."""
    path = place / "t.csv"
    path.write_text("a,b,label\n1,2,x\n")
    for name in names:
        for use in (
            lambda name=name: parse(name),
            lambda name=name: read_columns(place / f"{name[:80]}.csv"),
            lambda name=name: read_table(path, label=name),
            lambda name=name: NoiseSpec.parse(name),
        ):

            def fail(use=use) -> None:
                with suppress(typer.Exit), one_line_errors():
                    use()

            yield from _terminal_faults(_output(fail))


# What the outputs are held against


def _output(write: Callable[[], object], isatty: bool = False) -> str:
    """Return what is printed, as the command line lets it through."""
    stream = io.StringIO()
    stream.isatty = lambda: isatty  # type: ignore[method-assign]
    with redirect_stdout(stream), redirect_stderr(stream), visible_controls():
        write()
    return stream.getvalue()


def _terminal_faults(text: str, isatty: bool = False) -> Iterator[str]:
    plain = STYLE.sub("", text) if isatty else text
    if found := HIDDEN.search(plain):
        yield f"the terminal is sent {found[0]!r} in {plain[max(0, found.start() - 30) :][:60]!r}"


def _csv_faults(path: Path, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Check that no cell is a formula, and that the names are there."""
    with path.open(newline="", encoding="utf-8") as file:
        _, *found = csv.reader(file)
    for row in found:
        for cell in row:
            bare = cell.lstrip()
            if bare[:1] in tuple("=+-@\uff1d") and not re.fullmatch(r"[+-]?[\d.]+(e-?\d+)?", bare):
                yield f"{path.name} has the formula {cell[:40]!r}"
    if len(found) != len(rows):
        yield f"{path.name} has {len(found)} rows, expected {len(rows)}"
    for row, names in zip(found, rows, strict=False):
        yield from (f"{path.name} lacks {name!r}" for name in names if csv_cell(name) not in row)


class _Page(HTMLParser):
    """The elements of a page with the names of their attributes, figures aside, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.words: list[str] = []
        self.drawn: set[str] = set()
        self.depth, self.holds_json = 0, False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = " ".join(name for name, _ in attrs)
        self.holds_json = ("type", "application/json") in attrs
        if tag == "svg" or self.depth:
            self.depth += tag == "svg"
            self.drawn.add(f"{tag} {names}")
        else:
            self.elements.append(f"{tag} {names}")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.depth -= tag == "svg"

    def handle_endtag(self, tag: str) -> None:
        self.holds_json = False
        self.depth -= tag == "svg"

    def handle_data(self, data: str) -> None:
        if self.holds_json:
            for one in json.loads(data)["suspects"]:
                self.words += [one["where"], one["text"]]
        else:
            self.words.append(data)


@cache
def _tame_report() -> object:
    with tempfile.TemporaryDirectory() as folder:
        return make_report(_report_store(Path(folder), [f"tame{k}" for k in range(16)]))


@cache
def _tame_pages() -> tuple[_Page, _Page]:
    """Return the pages of an audit and a report whose names are tame."""
    names = [f"tame{place}" for place in range(16)]
    with tempfile.TemporaryDirectory() as folder:
        audited = write_audit(_audit(names), Path(folder), "lossforge audit tame15").read_text()
        reported = write_report(_tame_report(), Path(folder), "lossforge report tame14").read_text()
    return _Page(audited), _Page(reported)


def _page_faults(text: str, tame: _Page, names: Sequence[str]) -> Iterator[str]:
    if found := HIDDEN.search(text):
        yield f"the page holds {found[0]!r}"
    page = _Page(text)
    if page.elements != tame.elements:
        pairs = zip(page.elements, tame.elements, strict=False)
        first = next((pair for pair in pairs if pair[0] != pair[1]), "more or fewer")
        yield f"the page has other elements than a tame one: {first}"
    for drawn in page.drawn:
        tag, *attributes = drawn.split()
        if tag in ("script", "foreignobject", "iframe") or any(n[:2] == "on" for n in attributes):
            yield f"a figure has an element {drawn}"
    words = "".join(page.words)
    yield from (f"the page lacks {name!r}" for name in names if printable(name, "\n") not in words)


def _browser_faults(folder: Path, pages: Sequence[Path], names: Sequence[str]) -> Iterator[str]:
    with chromium.Browser(folder / "profile") as browser:
        for page in pages:
            browser.open(page, 1200)
            yield from (f"Chromium complains: {line}" for line in browser.complaints())
            if browser.run("window.hit") is not None:
                yield f"a script of a name ran in {page}"
            ours = "document.querySelectorAll('script:not([type])').length"  # others hold data
            if (scripts := browser.run(ours)) != 1:
                yield f"{page} has {scripts} scripts"
            for url in browser.requests():
                if not url.startswith("data:") and url != page.resolve().as_uri():
                    yield f"{page} asks for {url}"
            words = str(browser.run("document.body.textContent"))
            for name in (*names[:5], *names[6:11]):
                if printable(name, "\n") not in words:
                    yield f"Chromium does not show {name!r} of {page}"
