"""The page of an audit holds everything, asks for nothing, and shows what was found."""

import csv
import html
import io
import json
import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from audit_fixtures import finding

import lossforge.audit.folder as audit_folder
from lossforge.audit.folder import write_audit
from lossforge.noise import flips, symmetric
from lossforge.report.page import audit_page
from lossforge.theory import read_noise

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))
from test_page import Checker

FILES = ("suspects.csv", "transition.csv", "audit.json")


def review(text):
    """What the script of a page reads."""
    return json.loads(re.search(r'id="review-data">(.*?)</script>', text, re.DOTALL)[1])


def page(found, **options):
    return audit_page(found.to_dict(), command="lossforge audit animals.csv", **options)


@pytest.fixture(scope="module")
def found():
    return finding()


@pytest.fixture(scope="module")
def text(found):
    return page(found)


def test_it_is_well_formed_and_refers_to_nothing_outside(text):
    checked = Checker(text)
    assert len(checked.ids) == len(set(checked.ids))
    targets = {f"#{name}" for name in checked.ids}
    for address in checked.addresses:
        assert address in {*targets, *FILES} or address.startswith("data:"), address
    assert not re.search(r"@import|url\(", text)
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|import)\s*\(", text)


def test_it_shows_what_was_found(found, text):
    words = " ".join("".join(Checker(text).words).split())
    assert "lossforge audit animals.csv" in words
    assert found.recommended.code in words
    assert found.recommended.reason in words
    assert f"{100 * found.noise.rate.value:.1f} %" in words
    shown = {"PROVED": "proved", "REFUTED": "no guarantee for this noise"}
    for one in found.candidates:
        assert f"{one.name} {shown[one.status]} {one.reason}" in words
    assert "REFUTED" not in text
    assert [one["where"] for one in review(text)["suspects"]] == [
        one.where for one in found.suspects
    ]


def test_a_witness_is_one_click_away(found, text):
    refuted = next(one for one in found.candidates if one.status == "REFUTED")
    shown = re.search(rf'<th scope="row">{refuted.name}</th>.*?</details>', text, re.DOTALL)[0]
    assert '<details class="why">' in shown  # closed
    name = html.escape(found.subject.dataset.classes[refuted.witness.target])
    assert f"for a sample of class {name} predicted u[{name}]" in shown
    assert f"by {refuted.witness.value:.2g} per unit" in shown


def test_the_rate_is_drawn_with_its_interval(text, found):
    rate = found.noise.rate
    top = 0.4  # the next round end of the line
    assert 0.3 < rate.high <= top
    style = "; ".join(
        f"--{name}: {100 * value / top:.1f}%"
        for name, value in (("low", rate.low), ("high", rate.high), ("at", rate.value))
    )
    assert f'style="{style}"' in text


def test_pages_link_the_files_beside_them(found, tmp_path):
    page = write_audit(found, tmp_path / "out", "lossforge audit animals.csv")
    links = {
        one for one in Checker(page.read_text()).addresses if not one.startswith(("#", "data"))
    }
    assert links == set(FILES)
    for name in links:
        assert (page.parent / name).stat().st_size > 20


def test_what_users_wrote_is_escaped(text):
    assert "<cow>" not in text
    assert "&lt;cow&gt;" in text
    assert "<b>no" not in text
    assert review(text)["suspects"][0]["text"].startswith("<b>no")


def test_the_data_of_the_review_cannot_end_their_element():
    plain = finding(text=lambda row: "</script><script>alert(1)</script><!--").to_dict()
    text = audit_page(plain, command="lossforge audit animals.csv")
    assert "</script><script>" not in text
    assert "<!--" not in text
    assert review(text)["suspects"][0]["text"] == plain["suspects"][0]["text"]


def test_cells_of_suspects_count_them_and_name_their_pair(found, text):
    counts = Counter((one.given, one.suggested) for one in found.suspects)
    classes = found.subject.dataset.classes
    cells = re.findall(r'class="pair" value="(\d+) (\d+)"[^>]*review (\d+) suspects', text)
    assert {(classes[int(g)], classes[int(s)]): int(n) for g, s, n in cells} == counts


def test_the_command_that_cleans_is_quoted_and_left_out_where_there_is_none(found, tmp_path):
    assert "--decisions decisions.csv" not in page(found)
    data = tmp_path / "my pets.csv"
    named = replace(found, subject=replace(found.subject, path=data))
    text = html.unescape(write_audit(named, tmp_path / "out", "").read_text())
    assert f"lossforge clean '{data}' --audit {tmp_path / 'out'} --decisions decisions.csv" in text
    assert "--out 'my pets-clean.csv'" in text


def test_pictures_end_where_the_page_would_become_too_large(found, tmp_path, monkeypatch):
    monkeypatch.setattr(audit_folder, "PICTURES", 100)
    subject = replace(found.subject, picture=lambda row: f"data:image/png;base64,{row:040}")
    told, shown = [], replace(found, subject=subject)
    page = write_audit(shown, tmp_path, "", on_picture=lambda *at: told.append(at))
    text, total = page.read_text(), len(found.suspects)
    assert told == [(1, total), (2, total)]
    assert len(found.suspects) > 3
    assert [bool(one["picture"]) for one in review(text)["suspects"][:4]] == [
        True,
        True,
        False,
        False,
    ]


def test_it_sorts_its_tables_and_looks_like_the_report(text):
    assert "table.sortable" in text
    assert text.count('class="sortable"') == 2
    assert "--accent:" in text
    assert "prefers-color-scheme: dark" in text


def test_pictures_stand_beside_their_suspects(found):
    first = found.suspects[0].index
    suspects = review(page(found, pictures={first: "data:image/png;base64,AAAA"}))["suspects"]
    assert suspects[0]["picture"] == "data:image/png;base64,AAAA"
    assert {one["picture"] for one in suspects[1:]} == {""}


def test_a_dominated_class_is_a_warning_and_design_is_named():
    plain = finding(T=flips(3, {1: 2}, 0.4)).to_dict()
    plain["noise"]["dominated"] = [{"true": "dog", "given": "<cow>"}]
    plain["recommended"]["proved"] = False
    text = audit_page(plain, command="lossforge audit animals.csv")
    assert 'class="banner"' in text
    assert "lossforge design --noise transition.csv" in text
    Checker(text)


def test_clean_labels_have_a_page():
    text = page(finding(T=torch.eye(3, dtype=torch.float64)))
    Checker(text)
    assert "No label stands out as wrong" in text


def test_findings_are_plain_values(found):
    plain = found.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["data"]["classes"] == ["cat", "dog", "<cow>"]
    assert sum(plain["data"]["counts"]) == plain["data"]["rows"] == 150
    assert {one["name"] for one in plain["losses"]} == {"BEF", "GCE", "CE"}


def test_the_suspects_are_a_table(found):
    rows = list(csv.DictReader(io.StringIO(found.suspects_csv())))
    assert len(rows) == len(found.suspects)
    assert int(rows[0]["index"]) == found.suspects[0].index
    assert rows[0]["text"] == found.suspects[0].text


def test_the_matrix_reads_back(found, tmp_path):
    from lossforge.noise import NoiseSpec

    path = tmp_path / "transition.csv"
    path.write_text(found.transition_csv())
    noise = NoiseSpec.parse(str(path))
    assert torch.equal(noise.transition(), found.noise.estimate.T)
    assert noise.classes == found.subject.dataset.classes
    read_noise(found.noise.estimate.T, 3)


def test_many_classes_are_not_drawn_as_a_matrix(found):
    plain = found.to_dict()
    plain["data"]["classes"] = [*plain["data"]["classes"], *(f"c{k}" for k in range(27))]
    plain["noise"]["transition"] = symmetric(30, 0.1).tolist()
    text = audit_page(plain, command="lossforge audit animals.csv")
    assert 'aria-label="Transition matrix"' not in text
