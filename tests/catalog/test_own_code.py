"""Losses of the user's own files, modules and packages are read once they are admitted."""

import hashlib
import sys
import traceback

import pytest
import torch

from lossforge import parse
from lossforge.catalog import (
    Code,
    admit,
    code,
    factory,
    find,
    outside,
    read,
    receive,
    restore,
    spell,
)
from lossforge.catalog.ranges import log
from lossforge.errors import SpecError

FILE = '''
"""Losses of a user."""

from dataclasses import dataclass

import torch
from lossforge import CE, base
from lossforge.catalog import factory
from lossforge.catalog.ranges import log
from lossforge.loss import Loss, ProbabilityLoss

with open({marker!r}, "a") as file:
    file.write("imported\\n")


class Spherical(ProbabilityLoss):
    tune = {{"gamma": log(1, 4)}}

    def __init__(self, *, gamma=2.0, **policy):
        super().__init__(**policy)
        self.gamma = gamma

    def from_scores(self, scores, target):
        own = scores.log_probs.gather(1, target[:, None])[:, 0]
        norm = torch.logsumexp(self.gamma * scores.log_probs, 1) / self.gamma
        return -torch.expm1(own - norm)


class Plain(torch.nn.Module):
    def forward(self, logits, target):
        return torch.nn.functional.cross_entropy(logits, target)


@dataclass(frozen=True)
class Cosine(base.Smooth):
    c: float = 0.25

    def density(self, p):
        return 1 + self.c * torch.cos(torch.pi * p)


@factory
def half(*, of=1.0):
    return 0.5 * of * CE()


@factory
def number():
    return 3


def unregistered():
    return CE()


class Abstract(Loss):
    pass


instance = CE()
'''


@pytest.fixture(autouse=True)
def _nothing_is_admitted(monkeypatch):
    """Other tests of this process may have admitted a file of the same name."""
    monkeypatch.setattr(code, "_ADMITTED", {})


@pytest.fixture
def own(tmp_path):
    """A file of losses, and the file that grows whenever it is imported."""
    path, marker = tmp_path / "losses" / "mine.py", tmp_path / "marker"
    path.parent.mkdir()
    path.write_text(FILE.format(marker=str(marker)))
    return path, marker


def imports(marker) -> int:
    return len(marker.read_text().splitlines()) if marker.exists() else 0


def spherical(logits, target, gamma):
    p = torch.softmax(logits.double(), 1)
    return torch.stack(
        [1 - row[y] / (row**gamma).sum() ** (1 / gamma) for row, y in zip(p, target, strict=True)]
    ).mean()


def test_a_text_alone_imports_nothing(own):
    path, marker = own
    for text in (f"{path}:Spherical", f"0.5*{path}:Spherical + MAE", "this:Loss"):
        with pytest.raises(SpecError, match="a text alone does not run it"):
            parse(text)
        with pytest.raises(SpecError):
            find(text)
        assert outside(text)
    assert imports(marker) == 0
    assert "this" not in sys.modules


def test_a_loss_of_a_file_is_read_with_its_parameters_and_hash(own):
    path, marker = own
    text = f"0.25*MAE + 0.5*{path}:Spherical(gamma=3)"
    admit([text])
    found = read(text)
    logits = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    target = torch.tensor([0, 1, 2, 3, 0, 1])
    p = torch.softmax(logits, 1)[range(6), target]
    expected = 0.25 * (1 - p).mean() + 0.5 * spherical(logits, target, 3)
    torch.testing.assert_close(found.loss(logits, target), expected)
    assert found.text == "0.25 * MAE + 0.5 * mine.py:Spherical(gamma=3)"
    (code,) = found.code
    assert (code.name, code.hash) == ("mine.py", hashlib.sha256(path.read_bytes()).hexdigest())
    again = read(found.text)  # the text of a record is one that can be read
    assert again.text == found.text
    assert torch.equal(again.loss(logits, target), found.loss(logits, target))
    assert imports(marker) == 1


def test_base_functions_and_registered_functions_are_read_too(own):
    path, _ = own
    admit([f"TS({path}:Cosine(c=0.3), tau=1)", f"{path}:half(of=3)"])
    assert read("TS(mine.py:Cosine(c=0.3), tau=1)").text == "TS(mine.py:Cosine(c=0.3), tau=1)"
    logits, target = torch.tensor([[2.0, 0.0, 1.0]]), torch.tensor([1])
    expected = 1.5 * torch.nn.functional.cross_entropy(logits, target)
    torch.testing.assert_close(parse("mine.py:half(of=3)")(logits, target), expected)


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("unregistered", "must be a class of losses"),
        ("Abstract", "must be a class of losses"),
        ("instance", "must be a class of losses"),
        ("torch", "must be a class of losses"),
        ("Plain", r"Plain is a plain torch module: derive it from lossforge\.Loss .* per_sample"),
        ("Missing", "has no 'Missing'"),
    ],
)
def test_nothing_else_of_a_file_is_called(own, name, match):
    with pytest.raises(SpecError, match=match):
        admit([f"{own[0]}:{name}()"])


@pytest.mark.parametrize("text", ["os:system", "os:system('true')", "builtins:print", "os:path"])
def test_what_is_no_loss_is_refused_before_it_is_called(text):
    with pytest.raises(SpecError, match="must be a class of losses"):
        admit([text])
    with pytest.raises(SpecError, match="must be a class of losses"):
        parse(text)


def test_a_registered_function_must_return_a_loss(own):
    admit([f"{own[0]}:number"])
    with pytest.raises(SpecError, match="must return a loss or a base function, got 3"):
        parse("mine.py:number()")


def test_wrong_parameters_and_places_are_told_in_one_line(own, tmp_path):
    path, _ = own
    admit([f"{path}:Spherical"])
    with pytest.raises(SpecError, match="has no parameter 'q'"):
        parse("mine.py:Spherical(q=1)")
    for text, match in (
        ("nowhere.py:Loss", "nowhere.py: no such file"),
        ("nowhere:Loss", "there is no module nowhere; a file is written nowhere.py:Name"),
        ("no-module:Loss", "must be file.py:Name or package.module:Name"),
    ):
        with pytest.raises(SpecError, match=match):
            admit([text])
    broken = tmp_path / "broken.py"
    broken.write_text("import neighbour_of_mine\n")
    with pytest.raises(SpecError, match=r"broken.py: ModuleNotFoundError.*not its neighbours"):
        admit([f"{broken}:Loss"])
    broken.write_text("raise SystemExit(3)\n")
    with pytest.raises(SpecError, match=r"broken.py: SystemExit: 3"):
        admit([f"{broken}:Loss"])
    broken.write_text("1 +\n")
    with pytest.raises(SpecError, match=r"broken.py: SyntaxError"):
        admit([f"{broken}:Loss"])


def test_a_traceback_names_the_file(own, tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("\n\nraise KeyError('here')\n")
    with pytest.raises(SpecError) as raised:
        admit([f"{broken}:Loss"])
    last = traceback.extract_tb(raised.value.__cause__.__traceback__)[-1]
    assert (last.filename, last.lineno) == ("broken.py", 3)


@pytest.mark.parametrize("unit", ["a", "a-", "./"])
def test_long_texts_are_searched(unit):
    """In time that grows with their length: a quadratic search would take half an hour."""
    assert code.places(200_000 * unit + "(") == []


def test_no_name_stands_in_for_hidden_code(own):
    path, _ = own
    admit([f"{path}:Spherical"])
    with pytest.raises(SpecError, match="unknown name '_0_'"):
        parse("mine.py:Spherical + _0_")


def test_two_files_of_one_name_are_refused_together_and_replace_each_other_in_turn(own, tmp_path):
    path, _ = own
    other = tmp_path / "mine.py"
    other.write_text(path.read_text().replace("gamma=2.0", "gamma=5.0"))
    with pytest.raises(SpecError, match=r"mine\.py must be one file, got two that differ"):
        admit([f"{path}:Spherical + {other}:Spherical"])
    admit([f"{path}:Spherical"])
    first = read("mine.py:Spherical")
    admit([f"{other}:Spherical"])
    second = read("mine.py:Spherical")
    assert (first.loss.gamma, second.loss.gamma) == (2, 5)
    assert first.code != second.code


def test_stored_code_needs_trust_and_its_hash(own, tmp_path):
    path, marker = own
    good = {"mine.py": hashlib.sha256(path.read_bytes()).hexdigest()}
    with pytest.raises(SpecError, match=r"not typed here; read it, then add --trust"):
        restore(good, path.parent, trust=False)
    with pytest.raises(SpecError, match=r"mine\.py must have SHA-256 00, got"):
        restore({"mine.py": "00"}, path.parent, trust=True)
    with pytest.raises(SpecError, match="must have SHA-256 00"):
        admit([f"{path}:Spherical"], hashes={"mine.py": "00"})
    assert imports(marker) == 0
    restore(
        {f"elsewhere/../{name}": value for name, value in good.items()}, path.parent, trust=True
    )
    assert imports(marker) == 1
    assert parse("mine.py:Spherical").gamma == 2


def test_a_process_receives_the_code_of_another(own):
    path, _ = own
    source = path.read_bytes().replace(b"gamma=2.0", b"gamma=7.0")
    receive([Code("mine.py", hashlib.sha256(source).hexdigest(), source)])
    assert parse("mine.py:Spherical").gamma == 7


@pytest.fixture
def package(own, tmp_path, monkeypatch):
    """An installed package that offers a loss by an entry point."""
    path, marker = own
    site = tmp_path / "site"
    (site / "their_losses").mkdir(parents=True)
    (site / "their_losses" / "__init__.py").write_text("")
    (site / "their_losses" / "scores.py").write_text(path.read_text())
    about = site / "their_losses-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: their-losses\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[lossforge.losses]\nTheirSpherical = their_losses.scores:Spherical\n"
        "MAE = their_losses.scores:Spherical\n"
    )
    monkeypatch.syspath_prepend(str(site))
    yield site, marker
    for name in [name for name in sys.modules if name.startswith("their_losses")]:
        del sys.modules[name]


def test_a_package_offers_a_loss_under_a_name_of_its_own(package):
    _, marker = package
    with pytest.raises(SpecError, match="unknown loss 'TheirSpherical'"):
        parse("TheirSpherical")
    assert imports(marker) == 0
    admit(["0.5*TheirSpherical(gamma=3) + MAE"])
    found = read("0.5*TheirSpherical(gamma=3) + MAE")
    assert found.text == "0.5 * their_losses.scores:Spherical(gamma=3) + MAE"
    assert [code.name for code in found.code] == ["their_losses.scores"]
    assert parse("TheirSpherical").gamma == 2
    assert find("TheirSpherical").name == "their_losses.scores:Spherical"
    assert not read("2*MAE").code  # a name of ours is ours


@pytest.mark.parametrize("text", ["GCE(TheirSpherical=0.5)", "GCE(q='TheirSpherical')", "GCE +"])
def test_only_a_name_that_stands_for_a_loss_is_imported(package, text):
    _, marker = package
    admit([text])
    assert imports(marker) == 0


def test_a_module_that_differs_is_not_received(package):
    _, marker = package
    with pytest.raises(SpecError, match=r"their_losses\.scores must have SHA-256 00"):
        receive([Code("their_losses.scores", "00")])
    assert imports(marker) == 0


def test_a_module_is_read_by_its_dotted_name(package):
    site, _ = package
    admit(["their_losses.scores:Spherical(gamma=2)"])
    (code,) = read("their_losses.scores:Spherical(gamma=2)").code
    content = (site / "their_losses" / "scores.py").read_bytes()
    assert (code.hash, code.source) == (hashlib.sha256(content).hexdigest(), None)


def test_a_loss_of_a_file_has_an_entry_for_tuning(own):
    path, _ = own
    admit([f"{path}:Spherical"])
    entry = find(f"{path}:Spherical")
    assert entry.name == "mine.py:Spherical"
    assert entry.parameters() == {"gamma": 2.0}
    assert entry.tune == {"gamma": log(1, 4)}
    text = spell(entry.name, {"gamma": 2.5})
    assert text == "mine.py:Spherical(gamma=2.5)"
    assert parse(text).gamma == 2.5
    admit([f"{path}:Cosine"])
    with pytest.raises(SpecError, match="must be a loss, got a base function"):
        find("mine.py:Cosine")


def test_factory_returns_the_function_itself():
    def made():
        return None

    assert factory(made) is made
