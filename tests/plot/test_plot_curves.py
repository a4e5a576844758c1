"""Curves show the numbers of the losses; axes go in and come out; themes can be told apart."""

import math

import pytest
import torch

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

import lossforge
from lossforge import plot
from lossforge.plot.balance import dip, pulls
from lossforge.plot.curves import probabilities, values_and_pulls
from lossforge.plot.style import THEMES

X = probabilities()


def lines(axis):
    return {line.get_label(): torch.as_tensor(line.get_ydata()) for line in axis.lines}


def test_a_base_function_is_drawn_with_its_density():
    axis = plot.base(lossforge.base.Quadratic(alpha=0.5, beta=-1, gamma=0.25))
    drawn = lines(axis)
    density = 1 - 0.5 * (X - 0.25) ** 2
    assert torch.allclose(drawn["φ = −h′"], density)
    # h is the integral of the density from x to 1
    primitive = X - 0.5 * (X - 0.25) ** 3 / 3
    assert torch.allclose(drawn["h"], 1 - 0.5 * 0.75**3 / 3 - primitive)


def test_value_and_pull_stand_beside_cross_entropy_and_mae():
    value, pull = plot.loss(lossforge.GCE(q=0.5), name="GCE", num_classes=4)
    assert torch.allclose(lines(value)["GCE"], (1 - X.sqrt()) / 0.5)
    assert torch.allclose(lines(pull)["GCE"], X.sqrt() * (1 - X))
    assert torch.allclose(lines(value)["CE"], -X.log())
    assert torch.allclose(lines(pull)["CE"], 1 - X)
    assert torch.allclose(lines(value)["MAE"], 1 - X)
    assert torch.allclose(lines(pull)["MAE"], X * (1 - X))


def test_pulls_of_several_losses_have_their_names():
    axis = plot.pull({"mine": lossforge.GCE(q=0.5), "CE": lossforge.CE()}, num_classes=3)
    drawn = lines(axis)
    assert list(drawn) == ["MAE", "mine", "CE"]
    assert torch.allclose(drawn["CE"], 1 - X)


def test_axes_go_in_and_come_out():
    figure = Figure()
    one, two, three = figure.subplots(1, 3)
    assert plot.base(lossforge.base.Linear(), axes=one) is one
    assert plot.loss(lossforge.CE(), axes=[two, three]) == (two, three)
    assert plot.pull(lossforge.CE(), axes=one) is one
    assert plot.simplex(lossforge.CE(), axes=one) is one
    with pytest.raises(ValueError, match="axes must be 2 axes, got 1"):
        plot.loss(lossforge.CE(), axes=one)


@pytest.mark.parametrize("draw", [plot.pull, plot.loss])
def test_what_is_no_loss_is_refused(draw):
    with pytest.raises((TypeError, ValueError), match=r"must be a loss|at least one|has no len"):
        draw([])
    with pytest.raises(TypeError):
        draw(["CE"])


def test_the_dip_of_the_balance_deepens_with_the_number_of_classes():
    loss = lossforge.BEF(mu=0.1, tau=1)
    ratios = []
    for count in (10, 1000):
        p, parts = pulls(loss, count)
        whole = values_and_pulls(loss, count, p)[1]
        total = sum(parts.values())
        assert torch.allclose(total, whole)
        assert float(p[0]) == pytest.approx(1 / count)
        place = dip(total)
        ratios.append(1.0 if place is None else float(total[place] / total.max()))
    # docs/defaults.md: the depth goes like (lam mu / K)^(1/2) beside a peak of lam / 4
    assert ratios[1] < 0.2 < ratios[0]
    assert ratios[1] == pytest.approx(8 * math.sqrt(0.9 * 0.1 / 1000) / 0.9, rel=0.35)


def test_the_balance_is_drawn_for_three_numbers_of_classes():
    drawn = plot.balance(lossforge.BEF())
    assert [axis.get_title(loc="left") for axis in drawn] == [
        "10 classes",
        "100 classes",
        "1,000 classes",
    ]
    names = [[line.get_label() for line in axis.lines][:3] for axis in drawn]
    assert names[1] == ["target separation", "binary reduction", "sum"]
    assert names[2] == ["target separation", "bounded cosine", "sum"]
    shown = [text.get_text() for text in drawn[0].get_legend().get_texts()]
    assert shown == ["target separation", "binary reduction", "bounded cosine", "sum"]
    with pytest.raises(ValueError, match="a sum of target separation and binary reduction"):
        plot.balance(lossforge.NCE())
    with pytest.raises(ValueError, match="must be a sum of target separation and binary"):
        plot.balance(lossforge.CE())


def test_a_dip_is_an_inner_minimum():
    assert dip(torch.tensor([3.0, 1.0, 2.0, 0.5, 4.0])) == 3
    assert dip(torch.tensor([3.0, 2.0, 1.0])) is None
    assert dip(torch.tensor([1.0, 2.0, 1.0])) is None


# Machado, Oliveira and Fernandes, A Physiologically-based Model for Simulation of Color Vision
# Deficiency, 2009: severity 1.0
DEFICIENCIES = {
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
    "none": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
}


def linear(colour):
    parts = torch.tensor([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return torch.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """CIE 1976 L*a*b* of linear sRGB under D65."""
    matrix = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = torch.tensor(matrix) @ rgb.clamp(0, 1) / torch.tensor([0.9505, 1.0, 1.089])
    f = torch.where(xyz > 0.008856, xyz ** (1 / 3), 7.787 * xyz + 16 / 116)
    return torch.stack([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def luminance(colour):
    return float(torch.tensor([0.2126, 0.7152, 0.0722]) @ linear(colour))


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
@pytest.mark.parametrize("theme", THEMES)
def test_the_first_three_colours_differ_for_every_eye(theme, deficiency):
    matrix = torch.tensor(DEFICIENCIES[deficiency])
    seen = [lab(matrix @ linear(colour)) for colour in THEMES[theme].colours[:3]]
    gaps = [float((a - b).norm()) for at, a in enumerate(seen) for b in seen[:at]]
    # 2.3 is just noticeable; what is legible on white and on black has less room
    assert min(gaps) > (13 if theme == "clear" else 18)


@pytest.mark.parametrize("theme", THEMES)
def test_lines_and_letters_stand_out_from_the_background(theme):
    look = THEMES[theme]
    papers = ["#ffffff", "#131619"] if look.paper == "none" else [look.paper]
    for paper in papers:
        for colour in (*look.colours, look.alarm, look.muted, look.ink):
            low, high = sorted([luminance(colour), luminance(paper)])
            assert (high + 0.05) / (low + 0.05) >= 3, (colour, paper)  # WCAG 1.4.11


def test_a_theme_decides_the_background():
    colours = {
        theme: plot.base(lossforge.base.Log(), theme=theme).figure.get_facecolor()
        for theme in THEMES
    }
    assert colours["light"] == (1.0, 1.0, 1.0, 1.0)
    assert max(colours["dark"][:3]) < 0.15
    assert colours["clear"][3] == 0
    with pytest.raises(ValueError, match="theme must be one of light, dark, clear, got 'blue'"):
        plot.base(lossforge.base.Log(), theme="blue")
