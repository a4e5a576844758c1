"""Every loss of the catalogue can be tuned, and whatever is drawn is a loss."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lossforge
from lossforge.catalog import PRESETS, find
from lossforge.catalog import settings as published
from lossforge.catalog.balanced import default_tau
from lossforge.catalog.ranges import Range, log, uniform
from lossforge.constructions.pairs import BALANCE
from lossforge.errors import SpecError
from lossforge.tuning.spaces import DEPENDENT, space

TUNED = sorted({name for name in lossforge.names() if find(name).tune} | set(DEPENDENT))
CLASSES = (2, 10, 100)


@pytest.mark.parametrize("name", lossforge.names())
def test_a_loss_has_a_space_or_no_parameters(name):
    assert (name in TUNED) == bool(find(name).parameters())
    assert not (find(name).tune and name in DEPENDENT)


def test_every_space_belongs_to_a_loss_and_every_range_to_a_parameter():
    assert set(DEPENDENT) <= set(lossforge.names())
    for name in lossforge.names():
        assert set(find(name).tune) <= set(find(name).parameters())


def drawn(one: Range, share: float) -> float:
    if one.log:
        # rounding may step out of the range, which optuna never does
        return min(max(one.low * (one.high / one.low) ** share, one.low), one.high)
    return one.low + share * (one.high - one.low)


@pytest.mark.parametrize("name", TUNED)
@settings(max_examples=25)
@given(data=st.data())
def test_every_point_is_a_loss_that_reads_back(name, data):
    num_classes = data.draw(st.sampled_from(CLASSES[:2]))
    found = space(name, num_classes)
    point = {key: drawn(one, data.draw(st.floats(0, 1))) for key, one in found.ranges.items()}
    kept = {k: v for k, v in find(name).parameters().items() if k != "T"}
    text = str(lossforge.make(name, **{**kept, **found.make(point)}))
    assert str(lossforge.parse(text)) == text


@pytest.mark.parametrize("name", ["BEF", "BQF"])
@pytest.mark.parametrize("num_classes", [2, 150, 300, 1000])
def test_the_default_balance_is_a_point_of_the_same_size(name, num_classes):
    found = space(name, num_classes)
    numbers = found.find(find(name).parameters())
    point = {key: found.ranges[key].coordinate(value) for key, value in numbers.items()}
    again = lossforge.make(name, **found.make(point))
    assert (again.mu is None) is (num_classes > 150)
    logits, target = torch.randn(9, num_classes), torch.randint(num_classes, (9,))
    assert again(logits, target).item() == pytest.approx(
        lossforge.make(name)(logits, target).item(), rel=0.005
    )


@pytest.mark.parametrize("name", TUNED)
@pytest.mark.parametrize("num_classes", CLASSES)
def test_published_settings_are_points_of_the_space(name, num_classes):
    found = space(name, num_classes)
    if found.start is not None:
        return
    defaults = find(name).parameters()
    settings = [{}, *(one.parameters for preset in PRESETS for one in published(preset, name))]
    for setting in settings:
        parameters = {**defaults, **setting}
        numbers = found.find(parameters)
        wide = found.including(numbers)
        point = {key: wide.ranges[key].coordinate(value) for key, value in numbers.items()}
        for key, one in wide.ranges.items():
            assert one.low <= point[key] <= one.high
        again = {**parameters, **wide.make(point)}
        if parameters.get("tau", 0) is None:  # what follows the number of classes
            parameters["tau"] = default_tau(num_classes)
        if parameters.get("mu", 0) is None:
            parameters["mu"] = BALANCE
        assert str(lossforge.make(name, **again)) == str(lossforge.make(name, **parameters))


@pytest.mark.parametrize("name", ["BEF", "BQF"])
def test_beyond_150_classes_both_companions_of_target_separation_are_searched(name):
    assert "cosine" not in space(name, 150).ranges
    found, defaults = space(name, 151), find(name).parameters()
    point = found.find({**defaults, "lam": 0.6})
    assert (point["cosine"], point["balance"]) == (1, 0.6)
    made = found.make(point)
    assert (made["lam"], made["mu"]) == (0.6, None)
    point = found.find({**defaults, "lam": 0.6, "mu": 0.2})
    assert (point["cosine"], point["balance"]) == (0, pytest.approx(0.75))
    assert found.make(point)["mu"] == 0.25


def test_the_lowest_part_of_a_range_may_stand_for_zero():
    one = log(0.1, 10, zero=True)
    assert one.value(0.1) == 0
    assert one.coordinate(0) == 0.1
    assert one.value(0.2) == 0.2
    assert one.including(0.11).value(0.11) == 0.11
    assert log(0.1, 10).including(0).value(0.05) == 0


def test_a_range_grows_to_hold_a_number():
    assert uniform(0, 1).including(3) == uniform(0, 3)
    assert uniform(0, 1).including(0.5) == uniform(0, 1)
    assert math.isclose(log(0.1, 1).including(0.01).low, 0.01)


@pytest.mark.parametrize("name", ["CE", "MSE", "NL"])
def test_a_loss_without_parameters_is_refused(name):
    with pytest.raises(SpecError, match=f"{name} has no parameters to tune"):
        space(name, 10)
