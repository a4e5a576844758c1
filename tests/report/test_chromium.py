"""The page in a browser: nothing complains, everything is seen, tables sort."""

import numpy as np
import pytest
from chromium import PROGRAM
from record_fixtures import grid, record, write

from lossforge.report import make_report, write_report

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed"),
]
WIDTHS = (360, 1440)
COLUMN = "[...document.querySelector('#results tbody').rows].map(row => row.cells[{}].innerText)"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    balances = [
        record(f"BEF {lam}", "clean", seed, expression=f"BEF(lam={lam}, mu={1 - lam})")
        for seed in (0, 1, 2)
        for lam in (0.0, 0.5, 1.0)
    ]
    records = grid()[:-1] + balances
    store = write(folder / "store", records, name="digits", title="Four losses on digits")
    source = np.random.default_rng(0)
    labels = np.arange(400) % 10  # enough for pixels instead of shapes
    spread = source.normal(size=(400, 8)) + 6 * source.normal(size=(10, 8))[labels]
    np.savez(store / records[0].id / "features.npz", features=spread, labels=labels)
    return write_report(make_report(store), folder / "out", "lossforge report runs")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_without_complaint_and_alone(page, browser, artefacts, width, scheme):
    browser.open(page, width, scheme)
    path = artefacts / f"report-{width}-{scheme}.png"
    browser.screenshot(path)
    assert path.stat().st_size > 10_000
    assert browser.complaints() == []
    outside = [url for url in browser.requests() if not url.startswith("data:")]
    assert outside == [page.resolve().as_uri()]
    background = browser.run("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(19, 22, 25)") == (scheme == "dark")


@pytest.mark.parametrize("width", WIDTHS)
def test_all_figures_are_seen(page, browser, width):
    browser.open(page, width)
    sizes = browser.run(
        "[...document.querySelectorAll('.panel')].map(panel => {"
        " const box = panel.querySelector('svg').getBoundingClientRect();"
        " const drawn = panel.querySelector('svg > g').getBBox();"
        " return [box.width, box.height, drawn.width, drawn.height, box.left, box.right] })"
    )
    assert len(sizes) >= 10
    for box in sizes:
        assert min(box[:4]) > 50
        assert box[4] >= 0
        assert box[5] <= width
    pictures = browser.run(
        "Promise.all([...document.querySelectorAll('.panel image')].map(async image => {"
        " const copy = new Image(); copy.src = image.href.baseVal; await copy.decode();"
        " return copy.naturalWidth }))"
    )
    assert pictures
    assert min(pictures) > 0


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_overflows_but_inside_its_own_frame(page, browser, width):
    browser.open(page, width)
    browser.run("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert browser.run("document.documentElement.scrollWidth") <= width
    wide = browser.run(
        "[...document.querySelectorAll('body *')]"
        ".filter(one => !one.closest('.scroll *, pre *, svg')"
        " && one.getBoundingClientRect().right > document.documentElement.clientWidth + 0.5)"
        ".map(one => one.outerHTML.slice(0, 80))"
    )
    assert wide == []


@pytest.mark.parametrize("width", WIDTHS)
def test_letters_are_large_enough_to_read(page, browser, width):
    browser.open(page, width)
    sizes = browser.run(
        "[...document.querySelectorAll('.panel text')].map(text => text.getBoundingClientRect())"
        ".map(box => Math.min(box.width, box.height)).filter(size => size > 0)"
    )
    assert sorted(sizes)[len(sizes) // 2] >= 5  # digits are narrower than they are high


@pytest.mark.parametrize("width", WIDTHS)
def test_tables_sort_when_a_head_is_pressed(page, browser, width):
    browser.open(page, width)
    head = "document.querySelectorAll('#results thead th')[{}]"
    before = browser.run(COLUMN.format(0))
    orders = []
    for _ in range(3):
        browser.run(head.format(2) + ".querySelector('button').click()")
        values = browser.run(COLUMN.format(2))
        orders.append((browser.run(head.format(2) + ".ariaSort"), values))
    numbers = [[float(v.split()[0]) for v in values if v[0] != "–"] for _, values in orders]
    assert [order for order, _ in orders] == ["descending", "ascending", None]
    assert numbers[0] == sorted(numbers[0], reverse=True)
    assert numbers[1] == sorted(numbers[1])
    # what is missing comes last either way
    assert all(values[-1].startswith("–") for _, values in orders[:2])
    assert browser.run(COLUMN.format(0)) == before
    browser.run(head.format(0) + ".querySelector('button').click()")
    names = browser.run(COLUMN.format(0))
    assert names == sorted(names)


def test_tables_sort_with_the_keyboard(page, browser):
    browser.open(page, 1440)
    browser.run("document.querySelectorAll('#results thead button')[1].focus()")
    for kind in ("keyDown", "keyUp"):
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
        browser.call("Input.dispatchKeyEvent", type=kind, **key)
    assert browser.run("document.querySelectorAll('#results thead th')[1].ariaSort") == "descending"


def test_the_legend_points_a_line_out(page, browser):
    browser.open(page, 1440)
    browser.run("document.querySelector('#accuracy .legend [data-series=\"1\"]').click()")
    dimmed = browser.run(
        "[...document.querySelectorAll('#accuracy .dim')].map(one => one.id.split('-').pop())"
    )
    assert "0" in dimmed
    assert "1" not in dimmed
    path = "document.querySelector('#accuracy [id*=\"-series-1\"] path')"
    assert browser.run(f"getComputedStyle({path}).strokeOpacity") == "1"
