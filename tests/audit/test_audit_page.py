"""The page of an audit holds everything, asks for nothing, and shows what was found."""

import csv
import io
import json
import re
import sys
from pathlib import Path

import pytest
import torch
from audit_fixtures import finding

from lossforge.noise import flips, symmetric
from lossforge.report.page import audit_page
from lossforge.theory import read_noise

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))
from test_page import Checker


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
        assert address in targets or address.startswith("data:"), address
    assert not re.search(r"@import|url\(", text)
    assert not re.search(r"\b(fetch|XMLHttpRequest|WebSocket|import)\s*\(", text)


def test_it_shows_what_was_found(found, text):
    words = " ".join("".join(Checker(text).words).split())
    assert "lossforge audit animals.csv" in words
    assert found.recommended.code in words
    assert found.recommended.reason in words
    assert f"{100 * found.noise.rate.value:.1f} %" in words
    for one in found.candidates:
        assert f"{one.name} {one.status}" in words
    for one in found.suspects[:60]:
        assert one.where in words


def test_what_users_wrote_is_escaped(text):
    assert "<cow>" not in text
    assert "&lt;cow&gt;" in text
    assert "<b>no" not in text
    assert "&lt;b&gt;no" in text


def test_it_sorts_its_tables_and_looks_like_the_report(text):
    assert "table.sortable" in text
    assert text.count('class="sortable"') == 3
    assert "--accent:" in text
    assert "prefers-color-scheme: dark" in text


def test_pictures_stand_beside_their_suspects(found):
    first = found.suspects[0].index
    text = page(found, pictures={first: "data:image/png;base64,AAAA"})
    assert text.count("<img ") == 1
    assert 'src="data:image/png;base64,AAAA"' in text


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
    plain["data"]["classes"] = [f"c{k}" for k in range(30)]
    plain["noise"]["transition"] = symmetric(30, 0.1).tolist()
    text = audit_page(plain, command="lossforge audit animals.csv")
    assert 'aria-label="Transition matrix"' not in text
