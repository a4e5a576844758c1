"""The review of suspects in a browser: keys, filters, decisions that stay and reach `clean`."""

import csv
import hashlib
import time

import pytest
import torch
from audit_fixtures import finding_about, posterior
from chromium import PROGRAM
from PIL import Image
from typer.testing import CliRunner

from lossforge.audit.folder import write_audit
from lossforge.audit.read import read_folder
from lossforge.audit.table import read_table
from lossforge.cli.main import app
from lossforge.noise import corrupt, symmetric
from lossforge.report.page import audit_page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed"),
]
WIDTHS = (390, 1440)
PATIENCE = 60.0
CLASSES = (
    "=cmd|' /C calc'!A0",
    'a "quoted", one',
    "<script>window.hit = 1</script>",
    "two\nlines",
    "plain",
)
ROWS = 150


def noisy(count, classes):
    """True and given labels, and what a network says that knows the former."""
    T = symmetric(classes, 0.25)
    true = torch.arange(count) % classes
    draw = torch.Generator().manual_seed(0)
    return corrupt(true, T, generator=draw, exact=True).labels, posterior(true, T)


@pytest.fixture(scope="module")
def pets(tmp_path_factory):
    """A table with hostile names, its audit, and the page of it."""
    folder = tmp_path_factory.mktemp("pets")
    given, probs = noisy(ROWS, len(CLASSES))
    order = sorted(CLASSES)
    rows = [
        (f"P-{3 * n}", f"<b>words</b> of number {n} & more", order[k])
        for n, k in enumerate(given.tolist())
    ]
    path = folder / "my pets.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("pet", "say", "kind"), *rows])
    found = finding_about(read_table(path, label="kind", columns=["say"]), probs)
    return path, found, write_audit(found, folder / "audit", "lossforge audit 'my pets.csv'")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Images of three colours in class folders, and the page of their audit."""
    root = tmp_path_factory.mktemp("photos")
    given, probs = noisy(90, 3)
    colours = ("blue", "green", "red")
    for n, k in enumerate(sorted(given.tolist())):
        place = root / "all" / colours[k]
        place.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (300, 200), (n, 80, 120)).save(place / f"{n:03}.png")
    order = torch.sort(given, stable=True).indices
    found = finding_about(read_folder(root / "all"), probs[order])
    return found, write_audit(found, root / "audit", "lossforge audit all")


def fresh(browser, page, width=1440, scheme="light"):
    """Open a page in a browser that has never seen it."""
    browser.open(page, width, scheme)
    browser.run("localStorage.clear()")
    browser.open(page, width, scheme)


def press(browser, *keys):
    for key in keys:
        for kind in ("keyDown", "keyUp"):
            browser.call("Input.dispatchKeyEvent", type=kind, key=key)


def start(browser):
    browser.run("document.getElementById('start').click()")


def text(browser, name):
    return browser.run(f"document.getElementById('{name}').textContent")


def focused(browser):
    """The place of the card that has the focus."""
    return browser.run("Number(document.activeElement.dataset.place ?? -1)")


def cards(browser, part):
    return browser.run(
        f"[...document.querySelectorAll('#cards article {part}')].map(one => one.textContent)"
    )


def stored(browser):
    """Decisions as the browser keeps them, by index."""
    script = "Object.values(localStorage).flatMap(one => Object.entries(JSON.parse(one)))"
    return {int(index): tuple(decision) for index, decision in browser.run(script)}


def exported(browser, folder):
    """Press the button, and return the file that it downloads."""
    browser.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    browser.run("document.getElementById('export').click()")
    path, end = folder / "decisions.csv", time.monotonic() + PATIENCE
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.05)
    return path


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["pets", "photos"])
def test_it_opens_without_complaint_and_alone(request, browser, artefacts, kind, width, scheme):
    page = request.getfixturevalue(kind)[-1]
    fresh(browser, page, width, scheme)
    browser.screenshot(artefacts / f"review-{kind}-{width}-{scheme}.png")
    assert browser.complaints() == []
    assert browser.run("window.hit") is None
    outside = [url for url in browser.requests() if not url.startswith("data:")]
    assert outside == [page.resolve().as_uri()]
    background = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(19, 22, 25)") == (scheme == "dark")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ["pets", "photos"])
def test_nothing_overflows_but_inside_its_own_frame(request, browser, kind, width):
    fresh(browser, request.getfixturevalue(kind)[-1], width)
    start(browser)
    press(browser, "a", "k", "s")
    browser.run("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert browser.run("document.documentElement.scrollWidth") <= width
    wide = browser.run(
        "[...document.querySelectorAll('body *')].filter(one => !one.closest('.scroll *, pre *')"
        " && one.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)"
        ".map(one => one.outerHTML.slice(0, 80))"
    )
    assert wide == []


@pytest.mark.parametrize("kind", ["pets", "photos"])
def test_on_a_phone_text_or_picture_come_first_and_large(request, browser, kind):
    fresh(browser, request.getfixturevalue(kind)[-1], 390)
    tops = browser.run(
        "(() => { const card = document.querySelector('#cards article');"
        " return [...card.children].map(one => one.getBoundingClientRect()).map(b => b.top) })()"
    )
    assert tops[0] == min(tops)
    part = ".words" if kind == "pets" else "img"
    box = browser.run(
        f"(() => {{ const one = document.querySelector('#cards article .sample {part}');"
        " const box = one.getBoundingClientRect();"
        " return [box.width, box.height, parseFloat(getComputedStyle(one).fontSize)] })()"
    )
    assert box[0] > 250
    assert box[1] > 150 if kind == "photos" else box[2] > 18


def test_decisions_are_made_by_keys_and_undone(pets, browser):
    _, found, page = pets
    fresh(browser, page)
    total = len(found.suspects)
    assert text(browser, "progress") == f"0 of {total} decided"
    assert browser.run("document.getElementById('export').disabled") is True
    press(browser, "a")  # no card has the focus
    assert stored(browser) == {}
    start(browser)
    assert focused(browser) == 0
    assert browser.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    press(browser, "a", "k", "S")
    assert focused(browser) == 3
    assert text(browser, "progress") == f"2 of {total} decided, 1 skipped"
    decided = [one.index for one in found.suspects[:3]]
    kinds = [stored(browser)[index][0] for index in decided]
    assert kinds == ["accept", "keep", "skip"]
    pressed = browser.run(
        "[...document.querySelectorAll('#cards [aria-pressed=true]')].map(one => one.value)"
    )
    assert pressed == kinds
    press(browser, "u")
    assert focused(browser) == 2
    assert text(browser, "progress") == f"2 of {total} decided"
    press(browser, "ArrowLeft", "ArrowLeft", "k")  # another decision; on to the next open one
    assert stored(browser)[decided[0]][0] == "keep"
    assert focused(browser) == 2
    press(browser, "ArrowRight")
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="a", modifiers=2)  # Ctrl
    assert len(stored(browser)) == 2


def test_keys_lead_through_all_pages_and_decisions_outlive_a_visit(pets, browser):
    _, found, page = pets
    fresh(browser, page)
    start(browser)
    total = len(found.suspects)
    assert total > 24
    press(browser, *"ak" * 7)
    assert focused(browser) == 14
    assert text(browser, "place") == f"13–24 of {total}"
    browser.open(page, 1440)
    assert text(browser, "progress") == f"14 of {total} decided"
    assert text(browser, "place") == f"13–24 of {total}"  # where the first open one is
    browser.run("document.getElementById('previous').click()")
    assert browser.run("document.querySelectorAll('#cards [aria-pressed=true]').length") == 12
    start(browser)
    press(browser, *"a" * (total - 14))
    assert text(browser, "progress") == f"{total} of {total} decided"


def test_buttons_decide_and_take_back(photos, browser):
    found, page = photos
    fresh(browser, page, 390)
    first = found.suspects[0].index
    button = "document.querySelector('#cards button[value=keep]')"
    browser.run(f"{button}.click()")
    assert stored(browser) == {first: ("keep", "")}
    browser.run(f"{button}.click()")
    assert stored(browser) == {}


def test_another_label_can_be_chosen(photos, browser):
    found, page = photos
    fresh(browser, page)
    one = found.suspects[0]
    classes = found.subject.dataset.classes
    other = next(name for name in classes if name not in (one.given, one.suggested))
    choose = (
        "(() => {{ const select = document.querySelector('#cards select'); select.value = {};"
        " select.dispatchEvent(new Event('change')) }})()"
    )
    browser.run(choose.format(classes.index(other)))
    assert stored(browser) == {one.index: ("accept", other)}
    assert cards(browser, ".suggested")[0] == other
    browser.run(choose.format(classes.index(one.given)))
    assert stored(browser) == {one.index: ("keep", "")}


def test_a_cell_of_the_matrix_filters_and_there_is_a_way_back(pets, browser):
    _, found, page = pets
    fresh(browser, page)
    one = found.suspects[5]
    names = found.subject.dataset.classes
    pair = f"{names.index(one.given)} {names.index(one.suggested)}"
    expected = [two.text for two in found.suspects
                if (two.given, two.suggested) == (one.given, one.suggested)]  # fmt: skip
    cell = f"document.querySelector('.matrix button.pair[value=\"{pair}\"]')"
    assert browser.run(f"{cell}.ariaLabel").endswith(f"review {len(expected)} suspects")
    assert browser.run("document.getElementById('clear').hidden") is True
    browser.run(f"{cell}.click()")
    assert cards(browser, ".words") == expected[:12]
    assert focused(browser) == 0
    assert browser.run(f"{cell}.ariaPressed") == "true"
    assert browser.run("document.getElementById('pair').value") == pair
    start(browser)
    press(browser, *"a" * len(expected))
    assert len(stored(browser)) == len(expected)
    browser.run("document.getElementById('clear').click()")
    assert browser.run(f"{cell}.ariaPressed") == "false"
    assert text(browser, "place") == f"1–12 of {len(found.suspects)}"
    browser.run(
        "(() => { const state = document.getElementById('state'); state.value = 'accept';"
        " state.dispatchEvent(new Event('change')) })()"
    )
    assert cards(browser, ".words") == expected[:12]


def test_what_is_exported_is_what_clean_takes(pets, browser, tmp_path):
    path, found, page = pets
    fresh(browser, page)
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    start(browser)
    press(browser, *"aakas")
    classes = found.subject.dataset.classes
    named = found.suspects[8]
    chosen = next(name for name in classes if name not in (named.given, named.suggested))
    browser.run(
        "(() => { const select = document.querySelectorAll('#cards select')[8];"
        f" select.value = {classes.index(chosen)}; select.dispatchEvent(new Event('change')) }})()"
    )
    decisions, out = exported(browser, tmp_path), tmp_path / "clean.csv"
    options = ["--audit", str(page.parent), "--decisions", str(decisions)]
    done = CliRunner().invoke(app, ["clean", str(path), *options, "--relabel", "--out", str(out)])
    assert done.exit_code == 0, done.stderr
    assert done.stderr.splitlines() == [
        f"4 of {ROWS} samples are relabelled",
        f"{len(found.suspects) - 5} suspects are undecided and unchanged",
    ]
    with path.open(newline="", encoding="utf-8") as file:
        expected = list(csv.reader(file))
    for place, label in ((0, None), (1, None), (3, None), (8, chosen)):
        one = found.suspects[place]
        expected[one.index + 1][2] = label or one.suggested
    with out.open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == expected
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    for line in decisions.read_text().splitlines():
        assert not line.startswith(("=", "+", "-", "@"))


def test_all_hostile_names_come_back_as_they_were(pets, browser, tmp_path):
    path, found, page = pets
    fresh(browser, page)
    start(browser)
    press(browser, *"a" * len(found.suspects))
    decisions = exported(browser, tmp_path)
    options = ["--audit", str(page.parent), "--relabel"]
    for name, more in (("all.csv", []), ("reviewed.csv", ["--decisions", str(decisions)])):
        words = ["clean", str(path), *options, *more, "--out", str(tmp_path / name)]
        assert CliRunner().invoke(app, words).exit_code == 0
    assert {one.suggested for one in found.suspects} == set(CLASSES)
    assert (tmp_path / "all.csv").read_bytes() == (tmp_path / "reviewed.csv").read_bytes()
    with decisions.open(newline="") as file:
        cells = {row["label"] for row in csv.DictReader(file)}
    assert "'" + CLASSES[0] in cells  # no spreadsheet runs it


def test_thousands_of_suspects_stay_quick(pets, browser, tmp_path, record_property):
    _, found, _ = pets
    plain = found.to_dict()
    first = plain["suspects"]
    plain["suspects"] = [{**first[k % len(first)], "index": k} for k in range(6000)]
    path = tmp_path / "many.html"
    path.write_text(audit_page(plain, command="lossforge audit many.csv"))
    fresh(browser, path)
    assert text(browser, "place") == "1–12 of 6000"
    assert browser.run("document.querySelectorAll('#cards article').length") == 12
    assert browser.run("document.querySelectorAll('*').length") < 2000
    start(browser)
    begin = time.perf_counter()
    press(browser, *"ak" * 50)
    seconds = (time.perf_counter() - begin) / 100
    loaded = browser.run("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    record_property(
        "summary", f"review of 6,000: open in {loaded:.0f} ms, {1000 * seconds:.0f} ms a decision"
    )
    assert text(browser, "progress") == "100 of 6000 decided"


def test_a_browser_that_keeps_nothing_says_so_and_still_exports(pets, browser, tmp_path):
    _, _, page = pets
    script = "Storage.prototype.setItem = () => { throw new Error('full') }"
    name = browser.call("Page.addScriptToEvaluateOnNewDocument", source=script)["identifier"]
    try:
        fresh(browser, page)
        assert browser.run("document.getElementById('unkept').hidden") is True
        start(browser)
        press(browser, "a")
        assert browser.run("document.getElementById('unkept').hidden") is False
        assert len(exported(browser, tmp_path).read_text().splitlines()) >= 2
    finally:
        browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=name)


def test_everything_has_a_name_and_is_reached_by_tab(pets, browser):
    fresh(browser, pets[-1])
    nameless = browser.run(
        "[...document.querySelectorAll('select, button, article, [role=img], img')]"
        ".filter(one => !(one.getAttribute('aria-label') || one.labels?.length || one.alt ||"
        " one.textContent.trim())).map(one => one.outerHTML.slice(0, 80))"
    )
    assert nameless == []
    browser.run("document.getElementById('pair').focus()")
    reached = []
    for _ in range(12):
        browser.call("Input.dispatchKeyEvent", type="keyDown", key="Tab", windowsVirtualKeyCode=9)
        reached.append(
            browser.run("document.activeElement.id || document.activeElement.value ||"
                        " document.activeElement.localName")
        )  # fmt: skip
    for name in ("state", "start", "article", "accept", "keep", "skip"):
        assert name in reached
