"""Names, aliases, parameters and text of the catalogue."""

import math
import re

import pytest
import torch
from cases import CASES
from catalog import wrapped
from laws import assert_close, batch, value_and_gradient
from torch.utils._python_dispatch import TorchDispatchMode

import lossforge
from lossforge import make, parse
from lossforge.catalog import ENTRIES, find
from lossforge.errors import SpecError
from lossforge.loss import WeightedSum

NAMES = lossforge.names()
ALIASES = {alias: entry.name for entry in ENTRIES.values() for alias in entry.aliases}
PROMISED_ALIASES = {
    "ANormLoss": "ANorm",
    "AMSE-q": "AMSE",
    "LogitClip": "CE+LC",
    "ECE+MAE": "CEeps+MAE",
    "EFL+MAE": "FLeps+MAE",
    "LDR-KL": "LDR",
    "TaylorCE": "Taylor-CE",
    "NLNL": "NL",
}
CLASSES = [
    "CE",
    "FL",
    "MAE",
    "MSE",
    "RCE",
    "GCE",
    "TGCE",
    "NCE",
    "NFL",
    "NGCE",
    "NMAE",
    "NRCE",
    "AUL",
    "AGCE",
    "AEL",
    "ANorm",
    "NNCE",
    "NNFL",
    "AMSE",
    "LDR",
    "TaylorCE",
    "JS",
    "GJS",
    "PHuberCE",
    "PHuberGCE",
    "NL",
    "NLPlus",
    "PLPlus",
    "VCE",
    "VEL",
    "VMSE",
    "BEF",
    "BQF",
]


def matrix(name: str) -> dict[str, torch.Tensor]:
    """What an entry needs beyond its defaults."""
    return {"T": wrapped.transition(5)} if name.lower() in {"forward", "backward"} else {}


def default(name: str) -> lossforge.Loss:
    return make(name, **matrix(name))


def outcome(loss, z, t):
    input = (lambda x: (x, x / 2)) if "GJS" in str(loss) else (lambda x: x)
    return value_and_gradient(lambda x: loss(input(x), t), z)


def assert_same(first, second) -> None:
    z, t = batch()
    for actual, expected in zip(outcome(first, z, t), outcome(second, z, t), strict=True):
        assert_close(actual, expected)


@pytest.mark.parametrize("name", NAMES)
def test_case_of_the_name_does_not_matter(name: str) -> None:
    assert str(default(name)) == str(default(name.lower())) == str(default(name.upper()))


@pytest.mark.parametrize(("alias", "name"), {**PROMISED_ALIASES, **ALIASES}.items())
def test_alias_is_the_same_loss(alias: str, name: str) -> None:
    assert str(make(alias)) == str(make(alias.upper())) == str(make(name))


@pytest.mark.parametrize("name", NAMES)
def test_text_of_every_entry_parses_back(name: str) -> None:
    loss = default(name)
    assert_same(parse(str(loss)), loss)
    assert str(parse(str(loss))) == str(loss)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in {"forward", "backward"}])
def test_a_name_wins_over_the_expression(name: str) -> None:
    assert str(parse(name)) == str(parse(name.lower())) == str(make(name))


@pytest.mark.parametrize("name", ["JAL-CE", "NCE+AGCE", "CE+LC", "CEeps+MAE", "NL+", "NCE+RCE"])
def test_expression_like_names_are_names(name: str) -> None:
    assert_same(parse(name), make(name))


def test_expressions_of_catalogue_losses_are_sums() -> None:
    assert_same(parse("2*GCE(q=0.5) + AEL"), 2 * lossforge.GCE(q=0.5) + lossforge.AEL())


def test_released_clip_takes_the_released_letters() -> None:
    released = make("LogitClip-official", temp=1.5, lp=2)
    assert_same(released, make("CE+LC", delta=1 / 1.5, as_released=True))


@pytest.mark.parametrize("name", ["GCEE", "", "NCE+", "cross entropy"])
def test_unknown_name_lists_the_known(name: str) -> None:
    with pytest.raises(ValueError, match=r"GCE.*NCE\+AGCE"):
        make(name)


@pytest.mark.parametrize("name", NAMES)
def test_unknown_parameter_is_named(name: str) -> None:
    with pytest.raises((TypeError, ValueError), match="nonsense"):
        make(name, nonsense=1.0, **matrix(name))


@pytest.mark.parametrize("name", NAMES)
def test_policy_goes_through_make(name: str) -> None:
    weight = torch.rand(5)
    loss = make(name, reduction="sum", ignore_index=255, weight=weight, **matrix(name))
    assert (loss.reduction, loss.ignore_index) == ("sum", 255)
    assert torch.equal(loss.weight, weight)


@pytest.mark.parametrize("name", CLASSES)
def test_identifiers_are_classes_at_top_level(name: str) -> None:
    loss = getattr(lossforge, name)
    assert issubclass(loss, lossforge.Loss)
    assert name in lossforge.__all__


@pytest.mark.parametrize("case", [c for c in CASES if c.entry != "GJS"], ids=lambda c: c.id)
def test_sum_of_a_catalogue_loss_takes_part_in_the_algebra(case) -> None:
    loss, (z, t) = case.make(), batch()
    assert_close((2 * loss + lossforge.CE())(z, t), 2 * loss(z, t) + lossforge.CE()(z, t))


BAD = {
    "GCE": [{"q": 0.0}, {"q": -1.0}, {"q": math.nan}],
    "TGCE": [{"k": -0.1}, {"k": 1.5}, {"q": 0.0}],
    "FL": [{"gamma": -1.0}, {"gamma": math.inf}],
    "MAE": [{"scale": math.nan}],
    "RCE": [{"A_clamp": 0.0}, {"A_clamp": -1.0}],
    "AUL": [{"a": 1.0}, {"a": 0.5}, {"q": 0.0}],
    "AGCE": [{"a": 0.0}, {"q": 0.0}],
    "AEL": [{"a": 0.0}],
    "NNCE": [{"eps": 0.0}, {"eps": 1.0}],
    "NNFL": [{"eps": 0.0}, {"gamma": -0.5}],
    "NFL": [{"gamma": -0.5}],
    "CE+LC": [{"delta": 0.0}, {"delta": -1.0}, {"delta": math.nan}],
    "ECE": [{"m": -1.0}],
    "LDR": [{"Lambda": 0.0}, {"threshold": math.nan}],
    "Taylor-CE": [{"t": 0}],
    "JS": [{"weights": (0.5, 0.6)}, {"weights": (1.0, 0.0)}, {"weights": (0.2, 0.3, 0.5)}],
    "GJS": [{"weights": (0.5, 0.6, 0.1)}, {"weights": (1.0,)}],
    "SR": [{"tau": 0.0}, {"p": 0.0}],
    "PHuber-CE": [{"tau": 0.5}],
    "PHuber-GCE": [{"q": 0.0}, {"tau": 0.5}],
    "SCE": [{"alpha": math.nan}, {"A_clamp": 0.0}],
    "GLS": [{"smooth_rate": math.nan}],
}


@pytest.mark.parametrize(
    ("name", "parameters"),
    [(name, parameters) for name, several in BAD.items() for parameters in several],
    ids=str,
)
def test_parameter_out_of_range_is_refused_by_name(name: str, parameters: dict) -> None:
    with pytest.raises(ValueError, match=rf"\b{next(iter(parameters))}\b"):
        make(name, **parameters)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("GCE", {"q": "0.7"}), ("FL", {"stop_gradient": "yes"}), ("Taylor-CE", {"t": 2.5})],
    ids=str,
)
def test_parameter_of_the_wrong_kind_is_refused_by_name(name: str, parameters: dict) -> None:
    with pytest.raises((TypeError, ValueError), match=next(iter(parameters))):
        make(name, **parameters)


SUMS = [name for name in NAMES if "+" in name[:-1] or name[:3] in {"ANL", "JAL"} or name == "SCE"]


@pytest.mark.parametrize("name", [name for name in SUMS if name != "CE+LC"])
def test_named_sums_are_sums(name: str) -> None:
    assert isinstance(make(name), WeightedSum)


class Count(TorchDispatchMode):
    """Counts the passes that normalise the logits."""

    def __init__(self) -> None:
        super().__init__()
        self.passes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        self.passes += name in {"_log_softmax", "_softmax", "logsumexp"}
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", [*SUMS, "LSR", "SR", "BEF"])
@pytest.mark.parametrize("soft", [False, True], ids=["index", "probabilities"])
def test_a_sum_takes_one_softmax(name: str, soft: bool) -> None:
    z, t = batch()
    target = torch.softmax(torch.randn(6, 5), 1) if soft else t
    with Count() as count:
        make(name)(z, target)
    assert count.passes <= 1


def test_two_softmaxes_are_counted() -> None:
    z, t = batch()
    with Count() as count:
        lossforge.CE()(z, t) + lossforge.MAE()(z, t)
    assert count.passes == 2


SIGNED = {
    alias: name
    for name in NAMES
    for alias in (name, *ENTRIES[name].aliases)
    if re.search(r"\w[+-]", alias)
}


@pytest.mark.parametrize(("spelling", "name"), SIGNED.items())
@pytest.mark.parametrize("between", [" + ", "_", ""])
def test_signs_in_a_name_may_have_blanks_around_or_be_left_out(spelling, name, between) -> None:
    sign = "+" if "+" in spelling else "-"
    written = re.sub(r"\b[+-]\b", between.replace("+", sign), spelling)
    if "+" not in between:
        written = written.replace("+", "Plus")
    assert find(written).name == name
    assert str(parse(written)) == str(make(written)) == str(make(name))


@pytest.mark.parametrize("text", ["2*ANL-CE", "ANL-CE + CE", "0.5*jal-fl"])
def test_a_hyphen_in_an_expression_is_answered_with_the_underscore(text: str) -> None:
    with pytest.raises(SpecError, match=r"write (ANL_CE or ANL_FL|JAL_CE or JAL_FL) in"):
        parse(text)


@pytest.mark.parametrize("name", ["NCE-AGCE", "NCE - AGCE", "ce-lc"])
def test_a_difference_that_resembles_a_name_is_asked_about(name: str) -> None:
    with pytest.raises(
        SpecError, match=r"did you mean \w+\+\w+\? A difference has a factor: \w+ - 1\*\w+$"
    ):
        parse(name)
    with pytest.raises(SpecError, match="unknown loss"):
        make(name)


def test_the_difference_itself_can_be_written() -> None:
    assert str(parse("NCE - 1*AGCE")) == "1*NCE(scale=1) - 1*AGCE(a=0.6, q=0.6)"


def test_a_wrong_keyword_is_answered_with_the_right_ones() -> None:
    answer = r"^BEF has no parameter 'lamda'; it takes alpha, .*lam, mu, .*label_smoothing$"
    with pytest.raises(SpecError, match=answer):
        parse("BEF(lamda=0.5)")
    with pytest.raises(TypeError, match=answer):
        lossforge.BEF(lamda=0.5)
    with pytest.raises(SpecError, match=r"^exponential has no parameter 'a'; .*gamma$"):
        parse("BR(exponential(a=1))")


def test_an_expression_for_a_name_is_sent_to_parse() -> None:
    with pytest.raises(SpecError, match=r"lossforge\.parse reads expressions"):
        make("BEF(lam=0.5)")


@pytest.mark.parametrize("name", ["BEF", "BQF"])
@pytest.mark.parametrize("classes", [2, 150])
def test_the_default_balance_is_a_tenth_of_binary_reduction(name, classes):
    logits, target = torch.randn(7, classes), torch.randint(classes, (7,))
    assert torch.equal(make(name)(logits, target), make(name, mu=0.1)(logits, target))


@pytest.mark.parametrize("name", ["BEF", "BQF"])
@pytest.mark.parametrize("classes", [151, 1000])
def test_with_more_than_150_classes_it_is_a_bounded_cosine(name, classes):
    logits, target = torch.randn(7, classes), torch.randint(classes, (7,))
    (_, separated), _ = make(name).terms
    rule = parse(f"0.9*{separated} + 2.4*bounded_cosine(rivals=149)")
    assert_close(make(name)(logits, target), rule(logits, target))
