"""Every catalogue entry has a case and a second derivation, and says where it comes from."""

import copy
import inspect

import pytest
import torch
from bases import ids
from cases import CASES, Case
from laws import assert_close, rows, value_and_gradient

import lossforge
from lossforge.catalog import ENTRIES, REFERENCES, register

OVER_ENTRIES = pytest.mark.parametrize("entry", ENTRIES.values(), ids=lambda entry: entry.name)
OUTSIDE = {"CE", "BEF", "BQF", "GJS"}  # derived in cases.py and in test_wrappers.py


def test_every_entry_has_exactly_one_case_at_its_defaults() -> None:
    entries = [case.entry for case in CASES if case.entry]
    assert sorted(entries) == sorted(lossforge.names())
    assert len(set(ids(CASES))) == len(CASES)


def test_every_entry_has_a_second_derivation() -> None:
    derived = {case.entry for case in CASES if case.entry and case.formula}
    assert derived | OUTSIDE == set(lossforge.names())
    assert not derived & OUTSIDE


@OVER_ENTRIES
def test_entry_is_described(entry) -> None:
    assert ENTRIES[entry.name] is entry
    assert entry.formula
    assert entry.kind in {"symmetric", "asymmetric", "neither"}
    assert isinstance(entry.bounded, bool)
    assert callable(entry.make)
    documented = " ".join(entry.make.__doc__.split())
    assert entry.formula in documented
    reference = REFERENCES[entry.reference]
    assert documented.endswith(f"References: {reference.text} {reference.url}".strip())
    assert entry.unverified == (entry.name in {"NL+", "PL+", "VCE", "VEL", "VMSE"})


@OVER_ENTRIES
def test_parameters_are_keyword_only(entry) -> None:
    parameters = inspect.signature(entry.make).parameters.values()
    assert {parameter.kind for parameter in parameters if parameter.name not in {"loss", "T"}} <= {
        inspect.Parameter.KEYWORD_ONLY,
        inspect.Parameter.VAR_KEYWORD,
    }


def test_names_and_aliases_do_not_collide() -> None:
    spellings = [
        spelling.lower() for entry in ENTRIES.values() for spelling in (entry.name, *entry.aliases)
    ]
    assert len(set(spellings)) == len(spellings)


def test_a_name_is_registered_once() -> None:
    with pytest.raises(ValueError, match="taylorce is the name of another loss"):
        register("New", "0", bounded=True, paper="paper", aliases=("taylorce",))(lossforge.CE)
    assert lossforge.catalog.entry.look_up("New") is None


def test_a_derived_class_prints_the_arguments_of_its_parent() -> None:
    class Half(lossforge.GCE):
        def __init__(self, **policy) -> None:
            super().__init__(q=0.5, **policy)

    assert str(Half()) == str(copy.deepcopy(Half(reduction="sum"))) == "Half(q=0.5)"


SETTINGS = [(case, parameters) for case in CASES for parameters in case.settings]


def _label(setting: tuple[Case, dict]) -> str:
    case, parameters = setting
    shown = (f"{k}={'...' if isinstance(v, torch.Tensor) else v}" for k, v in parameters.items())
    return f"{case.entry}({', '.join(shown)})"


@pytest.mark.parametrize("setting", SETTINGS, ids=_label)
def test_other_parameters_match_the_second_derivation(setting) -> None:
    case, parameters = setting
    z = torch.cat([scale * torch.randn(5, 6) for scale in (0.3, 1.0, 4.0)])
    t = torch.randint(6, (15,))
    loss = lossforge.make(case.entry, reduction="none", **parameters)
    actual = value_and_gradient(lambda x: loss(x, t), z)
    naive = value_and_gradient(
        lambda x: rows(lambda a, b: case.formula(a, b, **parameters), x, t), z
    )
    assert_close(actual[0], naive[0])
    assert_close(actual[1], naive[1])


def test_settings_cover_every_parameter() -> None:
    policy = {"weight", "ignore_index", "reduction", "label_smoothing", "policy"}
    given = {(case.entry, key) for case, parameters in SETTINGS for key in parameters}
    known = {
        (entry.name, key)
        for entry in ENTRIES.values()
        for key, parameter in inspect.signature(entry.make).parameters.items()
        if key not in policy and parameter.kind is not inspect.Parameter.VAR_KEYWORD
    }
    missing = {(name, key) for name, key in known - given if name not in OUTSIDE}
    assert missing <= {("forward", "loss"), ("backward", "loss")}
