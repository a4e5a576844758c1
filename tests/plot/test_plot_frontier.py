"""The figure of frontiers shows the numbers it is given."""

import math

import pytest

pytest.importorskip("matplotlib")
from lossforge import BEF, CE, plot, theory
from lossforge.plot.frontier import draw_rates, peaks

PEAKS = [0.25, 0.5, 0.75, 1.0]
RATES = {
    "all": [1 / (1 + peak) for peak in PEAKS],
    "some": [0.5, 0.3, 0.0, 0.0],
    "dot": [0.8, 0.0, 0.0, 0.0],
    "none": [0.0] * 4,
}


def drawn():
    return draw_rates(PEAKS, RATES, title="Tolerated")


def test_lines_are_the_rates_where_something_is_proved():
    axis = drawn()
    lines = {line.get_label(): line for line in axis.lines}
    assert list(lines["all"].get_ydata()) == RATES["all"]
    seen = [rate for rate in lines["some"].get_ydata() if not math.isnan(rate)]
    assert seen == [0.5, 0.3]
    assert "none" not in lines
    assert lines["dot"].get_marker() == "o"
    assert lines["all"].get_marker() == "None"
    assert axis.get_title(loc="left") == "Tolerated"


def test_the_limit_is_dashed_and_what_is_not_proved_is_said():
    axis = drawn()
    limit = axis.lines[-1]
    assert list(limit.get_ydata()) == RATES["all"]
    assert limit.is_dashed()
    assert any(
        text.get_text() == "nothing is proved: some elsewhere, dot elsewhere, none"
        for text in axis.texts
    )


def test_the_ends_of_the_axis_are_named():
    axis = drawn()
    ticks = [tick.get_text() for tick in axis.get_xticklabels()]
    assert ticks[0] == "0.25\nsymmetric"
    assert ticks[-1] == "1\npair flips"


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_same_figure_is_the_same_file(tmp_path, kind):
    paths = [tmp_path / f"{name}.{kind}" for name in "ab"]
    for path in paths:
        plot.save(drawn(), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_what_is_refused(tmp_path):
    with pytest.raises(ValueError, match="at least one"):
        draw_rates(PEAKS, {}, title="")
    with pytest.raises(ValueError, match=r"\.png or \.svg"):
        plot.save(drawn(), tmp_path / "a.pdf")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        plot.save(drawn(), tmp_path / "missing" / "a.png")
    with pytest.raises(ValueError, match="num_classes must be an integer of 3 or more"):
        plot.frontier(BEF(), num_classes=2)


@pytest.mark.slow
def test_rates_are_those_of_the_theory():
    seen = []
    axis = plot.frontier(
        {"BEF": BEF(), "CE": CE()}, num_classes=4, on_point=lambda *at: seen.append(at)
    )
    lines = {line.get_label(): line for line in axis.lines}
    shares = peaks(4)
    assert shares[0] == pytest.approx(1 / 3)
    assert shares[-1] == pytest.approx(1)
    for place, kind in ((0, "symmetric"), (-1, "pair")):
        expected = theory.frontier(BEF(), 4, kind).rate
        assert lines["BEF"].get_ydata()[place] == pytest.approx(expected, rel=5e-3)
    assert "CE" not in lines
    assert len(seen) == 2 * len(shares)
