"""The picture of a search."""

from types import SimpleNamespace

import pytest

from lossforge.report.search import search_figure

RANGES = {"q": (0.0, 1.0, False), "a": (0.1, 10.0, True)}


def trial(score, origin="search", q=0.5):
    return SimpleNamespace(coordinates={"q": q, "a": 1.0}, score=score, origin=origin)


def test_history_and_slices_show_every_trial():
    trials = [trial(70.0, "default"), trial(None), trial(65.0), trial(72.0, "design", q=0.2)]
    figure = search_figure(trials, RANGES, title="GCE")
    history, first, second = figure.axes
    assert history.get_title(loc="left") == "GCE"
    best = history.lines[0]
    assert best.get_ydata().tolist() == [70, 70, 72, 72]
    assert history.lines[1].get_xdata().tolist() == [1]  # has no score
    assert [first.get_xlabel(), second.get_xlabel()] == ["q", "a"]
    assert [first.get_xscale(), second.get_xscale()] == ["linear", "log"]
    assert sum(len(dots.get_offsets()) for dots in first.collections) == 3
    assert first.lines[0].get_xdata() == [0.2, 0.2]  # where the best is


def test_without_a_score_there_is_nothing_to_draw():
    with pytest.raises(ValueError, match="at least one with a score"):
        search_figure([trial(None)], RANGES, title="GCE")
