"""The explorer as a file: what it starts with, what it refuses, how it is joined."""

import json
import re

import pytest

pytest.importorskip("typer")
from typer.testing import CliRunner

import lossforge
from lossforge.cli.main import app
from lossforge.plot import explorer
from lossforge.plot.explore import MODULES, _read, bundle, describe, presets
from lossforge.theory.forms import take_apart


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def given(page):
    return json.loads(re.search(r'id="given">(.*?)</script>', page, re.DOTALL)[1])


def test_every_separation_reduction_or_sum_of_the_catalogue_is_a_preset():
    known = {
        name
        for name in lossforge.names()
        if name not in ("forward", "backward") and take_apart(lossforge.make(name), 10).understood
    }
    assert set(presets()) == known


def test_the_page_is_one_small_file_without_addresses():
    page = explorer()
    assert len(page.encode()) < 400_000
    code = re.sub(r"http://www\.w3\.org/2000/svg", "", page)
    assert not re.search(r"https?://|\bfetch\(|XMLHttpRequest|import\(|innerHTML|eval\(", code)
    assert "default-src 'none'" in page
    assert given(page)["start"]["name"] == "BEF"


def test_modules_import_only_those_before_them():
    for place, module in enumerate(MODULES):
        wanted = re.findall(r'from "\./(\w+)\.js"', _read(f"{module}.js"))
        assert set(wanted) <= set(MODULES[:place])
        assert len(_read(f"{module}.js").splitlines()) <= 450
    joined = bundle()
    assert not re.search(r"^(import|export) ", joined, re.MULTILINE)
    assert "</script" not in joined


def test_a_loss_is_described_by_its_parts():
    found = describe(lossforge.parse("0.5*TS(power(q=0.3), tau=2) + 0.25*BR(linear())"))
    assert found == {
        "lam": 0.5,
        "tau": 2,
        "a": 0.0,
        "mu": 0.25,
        "most": 0,
        "own": {"kind": "power", "q": 0.3},
        "pair": {"kind": "linear", "scale": 1},
        "other": None,
        "perK": False,
        "extra": [],
    }


def test_beyond_150_classes_the_defaults_are_no_sum_that_the_page_knows():
    found = describe(lossforge.BEF())
    assert (found["lam"], found["mu"], found["most"]) == (0.9, 0.1, 149)
    explorer(num_classes=150)
    explorer(lossforge.BEF(mu=0.1), num_classes=151)
    for loss in (None, lossforge.BQF()):
        with pytest.raises(ValueError, match="num_classes must be up to 150, got 151"):
            explorer(loss, num_classes=151)


@pytest.mark.parametrize(
    "text",
    ["NCE", "CE - 0.5*MAE", "CE + TS(log(), tau=1)", "BR(log()) + BR(linear())", "LDR", "SR"],
)
def test_other_forms_are_refused(text):
    with pytest.raises(ValueError, match="loss must be target separation, binary reduction or"):
        describe(lossforge.parse(text))


def test_the_command_writes_the_file(tmp_path):
    path = tmp_path / "page.html"
    result = run("explore", "gce", "--noise", "pair:0.3", "--classes", 100, "--out", path)
    assert result.exit_code == 0, result.output
    start = given(path.read_text())["start"]
    assert (start["name"], start["noise"], start["rate"], start["K"]) == ("GCE", "pair", 0.3, 100)
    assert start["own"] == {"kind": "power", "q": 0.7}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["NCE"], "loss must be target separation, binary reduction or their sum"),
        (["--noise", "weights:0.5,0.5"], "noise must be symmetric:RATE or pair:RATE"),
        (["BEFF"], "unknown loss"),
        (["--out", "no/such/folder/x.html"], "no/such/folder"),
    ],
)
def test_mistakes_are_answered_in_one_line(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("explore", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


OWN = """
from dataclasses import dataclass

from lossforge import TargetSeparation, base
from lossforge.constructions import Part
from lossforge.loss import ProbabilityLoss


class Unhinged(ProbabilityLoss):
    def from_scores(self, scores, target):
        return 2 - 2 * scores.log_probs.gather(1, target[:, None])[:, 0].exp()

    def parts(self, num_classes):
        return (Part("target", 2.0, base.Linear()),)


class Growing(Unhinged):
    def parts(self, num_classes):
        return (Part("target", 2.0, base.Linear()), Part("others", num_classes, base.Linear()))


class Silent(Unhinged):
    parts = None


class Changed(TargetSeparation):
    def from_scores(self, scores, target):
        return 2 * super().from_scores(scores, target)


@dataclass(frozen=True)
class Power(base.Smooth):
    q: float = 0.5

    def density(self, p):
        return 1 + self.q * p
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_losses.py").write_text(OWN)
    return tmp_path


def test_a_loss_of_ones_own_is_shown_by_the_parts_that_it_declares(own):
    text = "0.5*own_losses.py:Unhinged + 0.25*BR(linear())"
    result = run("explore", text, "--out", "page.html")
    assert result.exit_code == 0, result.output
    start = given((own / "page.html").read_text())["start"]
    assert (start["lam"], start["a"], start["mu"], start["name"]) == (1, 0, 0.25, "")
    assert (start["own"], start["pair"], start["other"]) == (
        {"kind": "linear", "scale": 1},
        None,
        None,
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("own_losses.py:Silent", "declares no parts"),
        ("own_losses.py:Growing", "values are not those of its parts"),
        ("own_losses.py:Changed(linear(), tau=1)", "Changed overrides from_scores"),
        ("TS(own_losses.py:Power, tau=1)", "that the page knows; got TS(power(q=0.5), tau=1)"),
        ("own_losses.py:Missing", "has no 'Missing'"),
    ],
)
def test_a_loss_of_ones_own_that_the_page_cannot_show_is_refused(own, text, reason):
    result = run("explore", text)
    assert result.exit_code == 2
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (own / "explorer.html").exists()


def test_text_in_the_data_cannot_end_the_script():
    page = explorer(lossforge.CE(), name="</script><b>")
    assert "</script><b>" not in page
    assert given(page)["start"]["name"] == "</script><b>"
