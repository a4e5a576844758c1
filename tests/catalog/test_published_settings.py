"""Published settings: they build, they select by noise, and errors say what there is."""

import pytest

import lossforge
from lossforge.catalog import ENTRIES, PRESETS, Setting, select, settings
from lossforge.catalog.published import PUBLISHED
from lossforge.noise import NoiseSpec

ALL = [
    (name, preset, one)
    for name, presets in PUBLISHED.items()
    for preset, found in presets.items()
    for one in found
]
PAPER = (
    *("CE", "FL", "GCE", "SCE", "NCE", "CE+LC", "CEeps+MAE", "FLeps+MAE", "NCE+RCE", "NCE+AUL"),
    *("NCE+AGCE", "ANL-CE", "ANL-FL", "JAL-CE", "JAL-FL", "BEF", "BQF"),
)


def label(value: object) -> str | None:
    return (value.noise or "any") if isinstance(value, Setting) else None


def a_noise(noise: str | None) -> str | None:
    """A noise that asks for a setting published for `noise`."""
    return noise and noise.replace(":<0.5", ":0.4").replace(":>=0.5", ":0.5")


def test_published_settings_belong_to_the_catalogue():
    assert set(PUBLISHED) <= set(ENTRIES)
    assert all(set(presets) <= set(PRESETS) for presets in PUBLISHED.values())


@pytest.mark.parametrize(("name", "preset", "setting"), ALL, ids=label)
def test_every_setting_builds_its_loss_and_names_its_source(name, preset, setting):
    assert set(setting.parameters) <= set(ENTRIES[name].parameters())
    assert setting.source
    alone = len(settings(preset, name)) == 1
    noise = a_noise(setting.noise) if setting.noise or alone else "instance"
    assert select(preset, name, noise) == setting
    loss = lossforge.make(name, preset=preset, noise=noise)
    assert str(loss) == str(ENTRIES[name].make(**setting.parameters))


@pytest.mark.parametrize("name", PAPER)
@pytest.mark.parametrize("preset", ["cifar10", "cifar100"])
def test_every_loss_of_the_papers_tables_has_its_settings(name, preset):
    assert settings(preset, name)


def test_a_parameter_overrides_the_preset():
    made = lossforge.make("GCE", preset="webvision", q=0.5)
    assert str(made) == str(lossforge.GCE(q=0.5))


@pytest.mark.parametrize(
    ("noise", "parameters"),
    [
        ("symmetric:0.2", {"delta": 1.0}),
        ("symmetric:0.49", {"delta": 1.0}),
        ("symmetric:0.5", {"delta": 1.5}),
        ("SYMMETRIC:0.8", {"delta": 1.5}),
        ("clean", {"delta": 1.0}),
        ("symmetric:0.0", {"delta": 1.0}),
        ("asymmetric:0.3", {"delta": 2.5}),
        ("asymmetric", {"delta": 2.5}),
        ("dependent:0.6", {"delta": 2.0}),
        ("instance:0.6", {"delta": 2.0}),
        (NoiseSpec.parse("instance:0.6"), {"delta": 2.0}),
        ("pair:0.3", {"delta": 2.5}),
        ("asymmetric:cifar10:0.3", {"delta": 2.5}),
        ("human", {"delta": 2.5}),
        ("human:worse", {"delta": 2.5}),
    ],
)
def test_noise_selects_the_logit_clip(noise, parameters):
    released = {"as_released": True, "norm_eps": 1e-8}
    assert select("cifar10", "CE+LC", noise).parameters == parameters | released


@pytest.mark.parametrize(
    ("preset", "name", "noise", "expected"),
    [
        ("cifar100", "CEeps+MAE", "symmetric:0.4", {"alpha": 0.03, "beta": 1.0, "m": 1e4}),
        ("cifar100", "CEeps+MAE", "symmetric:.40", {"alpha": 0.03, "beta": 1.0, "m": 1e4}),
        ("cifar100", "CEeps+MAE", "asymmetric:0.3", {"alpha": 0.005, "beta": 1.0, "m": 1e2}),
        ("cifar100", "CEeps+MAE", "clean", {"alpha": 0.1, "beta": 1.0, "m": 1e4}),
        ("cifar10", "CEeps+MAE", "clean", {"alpha": 0.01, "beta": 5.0, "m": 1e5}),
        ("webvision", "CEeps+MAE", "human", {"alpha": 0.015, "beta": 0.3, "m": 1e3}),
        ("cifar100", "GJS", "asymmetric:0.4", {"weights": (0.1, 0.45, 0.45), "scaled": True}),
        ("webvision", "JS", None, {"weights": (0.1, 0.9), "scaled": False}),
    ],
)
def test_noise_selects_the_most_specific_setting(preset, name, noise, expected):
    assert select(preset, name, noise).parameters == expected


def test_a_probable_typo_is_kept_and_marked():
    found = select("cifar100", "CEeps+MAE", "symmetric:0.6")
    assert found.parameters["alpha"] == 0.00125
    assert "typo" in found.source


@pytest.mark.parametrize("noise", [None, "human", "symmetric:0.5", "symmetric"])
def test_a_noise_that_selects_nothing_lists_what_there_is(noise):
    with pytest.raises(ValueError, match=r"noise must say which.*clean, symmetric:0\.2.*:0\.4"):
        select("cifar100", "CEeps+MAE", noise)


def test_no_noise_does_not_pick_the_setting_for_all_other_noise():
    with pytest.raises(ValueError, match="any other, asymmetric"):
        select("cifar100", "CE+LC")
    assert select("cifar100", "CE+LC", "human").parameters["delta"] == 0.5


@pytest.mark.parametrize(
    ("noise", "answer"),
    [
        ("symetric:0.4", "did you mean symmetric or asymmetric"),
        ("", "noise must be one of clean, given, symmetric:RATE"),
        ("symmetric:x", "symmetric noise must be symmetric:RATE"),
        ("symmetric:40", r"rate of noise must be in \[0, 1\]"),
        ("symmetric:nan", r"rate of noise must be in \[0, 1\]"),
        ("clean:0.2", "clean takes no rate"),
    ],
)
def test_a_malformed_noise_is_refused(noise, answer):
    with pytest.raises(ValueError, match=answer):
        select("cifar10", "GCE", noise)


def test_human_noise_falls_back_on_instance_dependent_noise():
    found = select("cifar10", "CEeps+MAE", "human:worse")
    assert found == select("cifar10", "CEeps+MAE", "instance")
    assert found.noise == "instance"


def test_labels_as_given_are_of_unknown_noise():
    assert select("webvision", "CEeps+MAE", "given") == select("webvision", "CEeps+MAE")
    with pytest.raises(ValueError, match=r"noise must say which.*got 'given'"):
        select("cifar10", "CE+LC", "given")


def test_missing_settings_say_which_presets_there_are():
    with pytest.raises(ValueError, match=r"'clothing1m'; it has cifar10, cifar100, mnist"):
        lossforge.make("AUL", preset="clothing1m")
    with pytest.raises(ValueError, match="it has none at all"):
        lossforge.make("VCE", preset="cifar10")
    with pytest.raises(ValueError, match=r"preset must be one of cifar10, .*got 'imagenet'"):
        lossforge.make("GCE", preset="imagenet")


def test_released_behaviour_is_marked_and_said():
    for name, preset, one in ALL:
        switches = {"stop_gradient", "as_released"} & set(ENTRIES[name].parameters())
        assert one.released == bool(switches), (name, preset)
        assert all(one.parameters[switch] for switch in switches)
        assert ("released behaviour" in one.source) == one.released


@pytest.mark.parametrize(
    ("name", "decays"),
    [
        ("ANL-CE", (5e-5, 5e-7, 5e-6, None, 1e-6)),
        ("ANL-FL", (5e-5, 5e-7, None, None, 1e-6)),
        ("JAL-CE", (5e-5, 5e-6, None, None)),
        ("JAL-FL", (5e-5, 5e-6, None, None)),
        ("NCE+AGCE", (None,) * 5),
    ],
)
def test_the_coupled_l1_decay_is_part_of_the_setting(name, decays):
    found = [one.l1_decay for preset in PRESETS for one in settings(preset, name)]
    assert tuple(found) == decays


@pytest.mark.parametrize("name", ["BEF", "BQF"])
@pytest.mark.parametrize("preset", PRESETS)
def test_our_own_presets_are_the_defaults(name, preset):
    assert str(lossforge.make(name, preset=preset)) == str(lossforge.make(name))
