"""Every catalogue entry has a case and a second derivation, and says where it comes from."""

import inspect

import pytest
import torch
from bases import ids
from cases import CASES
from catalog import second
from laws import assert_close, rows, value_and_gradient

import lossforge
from lossforge.catalog import ENTRIES

OVER_ENTRIES = pytest.mark.parametrize("entry", ENTRIES.values(), ids=lambda entry: entry.name)
OUTSIDE = {"BEF", "BQF", "GJS"}  # derived in cases.py and in test_wrappers.py


def test_every_entry_has_exactly_one_case_at_its_defaults() -> None:
    entries = [case.entry for case in CASES if case.entry]
    assert sorted(entries) == sorted(lossforge.names())
    assert len(set(ids(CASES))) == len(CASES)


def test_every_entry_has_a_second_derivation() -> None:
    assert {*second.OF_PROBS, *second.OF_LOGITS, *OUTSIDE} == set(lossforge.names())


@OVER_ENTRIES
def test_entry_is_described(entry) -> None:
    assert ENTRIES[entry.name] is entry
    assert entry.formula
    assert entry.kind in {"symmetric", "asymmetric", "neither"}
    assert isinstance(entry.bounded, bool)
    assert callable(entry.make)
    assert entry.make.__doc__
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


# Every parameter at values other than its default: published settings and odd ones.
SETTINGS = [
    ("FL", {"gamma": 0.0}),
    ("FL", {"gamma": 3.5}),
    ("FL", {"gamma": 2.0, "stop_gradient": True}),
    ("MAE", {"scale": 2.0}),
    ("RCE", {"scale": 0.3, "A_clamp": 1e-2}),
    ("GCE", {"q": 0.01}),
    ("GCE", {"q": 1.0}),
    ("TGCE", {"q": 0.05, "k": 0.1}),
    ("TGCE", {"q": 0.95, "k": 0.3}),
    ("SCE", {"alpha": 6.0, "beta": 0.1, "A_clamp": 1e-3}),
    ("SCE", {"alpha": 0.0, "beta": 1.0}),
    ("NCE", {"scale": 10.0}),
    ("NFL", {"gamma": 2.0, "scale": 10.0}),
    ("NFL", {"gamma": 0.0}),
    ("NFL", {"gamma": 0.3, "stop_gradient": True}),
    ("NGCE", {"q": 0.1, "scale": 3.0}),
    ("NCE+RCE", {"alpha": 10.0, "beta": 0.1, "A_clamp": 1e-6}),
    ("NCE+MAE", {"alpha": 50.0, "beta": 1.0}),
    ("NFL+RCE", {"alpha": 10.0, "beta": 0.1, "gamma": 1.5}),
    ("NFL+RCE", {"alpha": 2.0, "gamma": 0.5, "stop_gradient": True}),
    ("NFL+MAE", {"alpha": 10.0, "beta": 0.1, "gamma": 1.0, "stop_gradient": True}),
    ("AUL", {"a": 3.0, "q": 0.1}),
    ("AUL", {"a": 1.5, "q": 1.0}),
    ("AGCE", {"a": 1e-5, "q": 0.5}),
    ("AGCE", {"a": 4.0, "q": 0.2}),
    ("AGCE", {"a": 1.8, "q": 3.0}),
    ("AEL", {"a": 0.4}),
    ("ANorm", {"a": 4.0, "p": 3.0}),
    ("ANorm", {"a": 2.0, "p": 1.3}),
    ("NCE+AUL", {"alpha": 10.0, "beta": 0.015, "a": 6.0, "q": 3.0}),
    ("NCE+AUL", {"alpha": 0.0, "beta": 1.0, "a": 3.0, "q": 0.1}),
    ("NCE+AGCE", {"alpha": 50.0, "beta": 0.1, "a": 2.5, "q": 3.0}),
    ("NCE+AGCE", {"alpha": 0.0, "beta": 1.0, "a": 4.0, "q": 0.2}),
    ("NCE+AEL", {"alpha": 10.0, "beta": 0.1, "a": 1.5}),
    ("NNCE", {"eps": 1e-8}),
    ("NNCE", {"eps": 0.05}),
    ("NNFL", {"gamma": 2.0, "eps": 0.05}),
    ("NNFL", {"gamma": 0.5, "eps": 1e-8, "stop_gradient": True}),
    ("ANL-CE", {"alpha": 10.0, "beta": 1.0, "eps": 0.02}),
    ("ANL-FL", {"alpha": 20.0, "beta": 1.0, "eps": 0.02, "gamma": 1.0}),
    ("ANL-FL", {"alpha": 5.0, "beta": 0.1, "stop_gradient": True}),
    ("AMSE", {"a": 1.0}),
    ("AMSE", {"a": 5.0, "q": 3.0, "scale": 0.5}),
    ("AMSE", {"a": 2.0, "q": 1.5}),
    ("JAL-CE", {"alpha": 5.0, "beta": 0.1, "a": 5.0}),
    ("JAL-FL", {"alpha": 50.0, "beta": 1.0, "a": 20.0, "gamma": 1.5}),
    ("JAL-FL", {"alpha": 5.0, "stop_gradient": True}),
    ("CE+LC", {"delta": 2.5}),
    ("CE+LC", {"delta": 1.5, "p": 1.0}),
    ("CE+LC", {"delta": 2.5, "as_released": True, "norm_eps": 1e-2}),
    ("CE+LC", {"delta": 0.5, "as_released": True}),
    ("ECE", {"m": 10.0}),
    ("EFL", {"m": 10.0, "gamma": 2.0}),
    ("EFL", {"m": 1e3, "gamma": 0.5, "stop_gradient": True}),
    ("CEeps+MAE", {"alpha": 0.02, "beta": 1.0, "m": 1e2}),
    ("FLeps+MAE", {"alpha": 0.5, "beta": 0.3, "m": 1e1, "gamma": 0.7, "stop_gradient": True}),
    ("LDR", {"threshold": 2.0, "Lambda": 1.0}),
    ("LDR", {"threshold": 0.0, "Lambda": 0.3}),
    ("Taylor-CE", {"t": 1}),
    ("Taylor-CE", {"t": 9}),
    ("JS", {"weights": (0.1, 0.9), "scaled": False}),
    ("JS", {"weights": (0.9, 0.1)}),
    ("SR", {"base": "CE", "tau": 0.1, "p": 0.1, "lamb": 4.0}),
    ("SR", {"base": "GCE", "tau": 0.5, "p": 0.01, "lamb": 10.0, "normalize": False}),
    ("SR", {"base": "FL", "tau": 1.0, "p": 0.5}),
    ("PHuber-CE", {"tau": 2.0}),
    ("PHuber-CE", {"tau": 50.0}),
    ("PHuber-GCE", {"q": 0.5, "tau": 2.0}),
    ("LSR", {"smooth_rate": 0.4}),
    ("GLS", {"smooth_rate": 0.8, "wa": 0.3, "wb": 0.7}),
    ("NLS", {"smooth_rate": -8.0}),
    ("GLS", {"smooth_rate": -0.4, "wa": 1.0, "wb": 2.0}),
    ("forward", {"T": second.transition(6)}),
    ("forward", {"T": torch.eye(6, dtype=torch.float64).roll(1, 1)}),
    ("backward", {"T": second.transition(6)}),
    ("VCE", {"a": 10.0}),
    ("VEL", {"a": 1.0}),
    ("VMSE", {"a": 1.5}),
]


def _label(setting: tuple[str, dict]) -> str:
    name, parameters = setting
    shown = (f"{k}={'...' if isinstance(v, torch.Tensor) else v}" for k, v in parameters.items())
    return f"{name}({', '.join(shown)})"


@pytest.mark.parametrize("setting", SETTINGS, ids=_label)
def test_other_parameters_match_the_second_derivation(setting) -> None:
    name, parameters = setting
    formula = second.OF_LOGITS.get(name) or second.of_logits(second.OF_PROBS[name])
    z = torch.cat([scale * torch.randn(5, 6) for scale in (0.3, 1.0, 4.0)])
    t = torch.randint(6, (15,))
    loss = lossforge.make(name, reduction="none", **parameters)
    actual = value_and_gradient(lambda x: loss(x, t), z)
    naive = value_and_gradient(lambda x: rows(lambda a, b: formula(a, b, **parameters), x, t), z)
    assert_close(actual[0], naive[0])
    assert_close(actual[1], naive[1])


def test_settings_cover_every_parameter() -> None:
    policy = {"weight", "ignore_index", "reduction", "label_smoothing", "policy"}
    given = {(name, key) for name, parameters in SETTINGS for key in parameters}
    known = {
        (entry.name, key)
        for entry in ENTRIES.values()
        for key, parameter in inspect.signature(entry.make).parameters.items()
        if key not in policy and parameter.kind is not inspect.Parameter.VAR_KEYWORD
    }
    missing = {(name, key) for name, key in known - given if name not in OUTSIDE}
    assert missing <= {("forward", "loss"), ("backward", "loss")}
