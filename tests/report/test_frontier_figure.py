"""The figure of frontiers shows the numbers it is given."""

import math

import pytest

pytest.importorskip("matplotlib")
from lossforge.report.frontier import frontiers
from lossforge.report.style import check_picture, write_picture

PEAKS = [0.25, 0.5, 0.75, 1.0]
RATES = {
    "all": [1 / (1 + peak) for peak in PEAKS],
    "some": [0.5, 0.3, 0.0, 0.0],
    "dot": [0.8, 0.0, 0.0, 0.0],
    "none": [0.0] * 4,
}


def drawn():
    return frontiers(PEAKS, RATES, title="Tolerated")


def test_lines_are_the_rates_where_something_is_proved():
    (axis,) = drawn().axes
    lines = {line.get_label(): line for line in axis.lines}
    assert list(lines["all"].get_ydata()) == RATES["all"]
    seen = [rate for rate in lines["some"].get_ydata() if not math.isnan(rate)]
    assert seen == [0.5, 0.3]
    assert "none" not in lines
    assert lines["dot"].get_marker() == "o"
    assert lines["all"].get_marker() == "None"
    assert axis.get_title(loc="left") == "Tolerated"


def test_the_limit_is_dashed_and_what_is_not_proved_is_said():
    (axis,) = drawn().axes
    limit = axis.lines[-1]
    assert list(limit.get_ydata()) == RATES["all"]
    assert limit.is_dashed()
    assert any(
        text.get_text() == "nothing is proved: some elsewhere, dot elsewhere, none"
        for text in axis.texts
    )


def test_the_ends_of_the_axis_are_named():
    (axis,) = drawn().axes
    ticks = [tick.get_text() for tick in axis.get_xticklabels()]
    assert ticks[0] == "0.25\nsymmetric"
    assert ticks[-1] == "1\npair flips"


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_same_figure_is_the_same_file(tmp_path, kind):
    paths = [tmp_path / f"{name}.{kind}" for name in "ab"]
    for path in paths:
        write_picture(drawn(), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_what_is_refused(tmp_path):
    with pytest.raises(ValueError, match="at least one"):
        frontiers(PEAKS, {}, title="")
    with pytest.raises(ValueError, match=r"\.png or \.svg"):
        check_picture(tmp_path / "a.pdf")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        check_picture(tmp_path / "missing" / "a.png")
