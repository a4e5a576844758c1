"""The heat maps show the numbers they are given."""

import pytest
import torch

from lossforge import noise
from lossforge.report import transition_heatmaps


def test_every_cell_of_note_is_written(tmp_path):
    figure = transition_heatmaps({"a": noise.pair(4, 0.3), "b": noise.symmetric(4, 0.0)})
    first, second = figure.axes[:2]
    written = sorted((*text.get_position(), text.get_text()) for text in first.texts)
    assert written == sorted(
        [(i, i, "70") for i in range(4)] + [((i + 1) % 4, i, "30") for i in range(4)]
    )
    assert [text.get_text() for text in second.texts] == ["100"] * 4
    assert first.get_title() == "a"
    for kind in ("png", "svg"):
        figure.savefig(tmp_path / f"figure.{kind}")
        assert (tmp_path / f"figure.{kind}").stat().st_size > 1000


def test_a_hundred_classes_are_drawn_without_text():
    figure = transition_heatmaps({"many": noise.symmetric(100, 0.5)})
    assert not figure.axes[0].texts
    assert figure.axes[0].images[0].get_array().shape == (100, 100)


def test_class_names_are_on_the_axes():
    figure = transition_heatmaps({"two": torch.eye(2)}, ["cat", "dog"])
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == ["cat", "dog"]


def test_nothing_to_draw():
    with pytest.raises(ValueError, match="at least one"):
        transition_heatmaps({})
