"""The gradient field, its stationary points and witnesses; the shares of the gradient."""

import pytest
import torch

pytest.importorskip("matplotlib")
import lossforge
from lossforge import noise, plot, theory
from lossforge.plot.shares import wrong_share
from lossforge.plot.simplex import CORNERS, field, read_weights, stationary

PROBS = torch.tensor([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1], [0.05, 0.05, 0.9]], dtype=torch.float64)


def test_the_field_is_the_motion_of_gradient_descent():
    weights, step = torch.tensor([0.6, 0.3, 0.1]), 1e-5
    moved = field(lossforge.CE(), PROBS, weights)
    # cross entropy: the gradient in the logits is u - w
    logits = PROBS.log() - step * (PROBS - weights)
    assert torch.allclose(moved, (torch.softmax(logits, 1) - PROBS) / step, atol=1e-4)


def test_cross_entropy_rests_at_the_weights_of_the_labels():
    weights = torch.tensor([0.5, 0.3, 0.2])
    (found,) = stationary(lossforge.CE(), weights)
    assert found.probs == pytest.approx(weights.tolist())
    assert found.kind == "minimum"


def test_gce_rests_where_its_formula_says():
    # W = sum w (1 - u^q) / q: w u^(q-1) is the same in all classes
    q, weights = 0.5, torch.tensor([0.5, 0.3, 0.2])
    (found,) = stationary(lossforge.GCE(q=q), weights)
    expected = weights ** (1 / (1 - q))
    assert found.probs == pytest.approx((expected / expected.sum()).tolist())


def test_a_rising_density_has_a_saddle_or_a_maximum_inside():
    loss = lossforge.TargetSeparation(lossforge.base.Exponential(beta=2, gamma=0), tau=0)
    kinds = {point.kind for point in stationary(loss, torch.tensor([0.4, 0.3, 0.3]))}
    assert kinds
    assert "minimum" not in kinds


def test_clean_labels_and_flat_losses_have_no_stationary_point():
    clean = torch.tensor([1.0, 0.0, 0.0])
    assert stationary(lossforge.BEF(), clean) == []
    even = torch.full((3,), 1 / 3)
    assert stationary(lossforge.MAE(), even) == []  # its sum over all labels is constant


def test_the_star_is_the_witness_of_the_certificate():
    axis = plot.simplex(lossforge.GCE(), "symmetric:0.6")
    (star,) = [line for line in axis.lines if line.get_marker() == "*"]
    verdict = theory.certify(lossforge.GCE(), noise.symmetric(3, 0.6)[0])
    assert verdict.status == "REFUTED"
    at = torch.tensor(verdict.witness.probs) @ CORNERS
    assert [star.get_xdata()[0], star.get_ydata()[0]] == pytest.approx(at.tolist())
    assert axis.get_title(loc="left") == "symmetric:0.6: refuted"


@pytest.mark.slow
def test_what_is_proved_has_no_star_and_no_shade():
    axis = plot.simplex(lossforge.BEF(), "symmetric:0.6")
    assert not [line for line in axis.lines if line.get_marker() == "*"]
    assert axis.get_title(loc="left") == "symmetric:0.6: proved"
    shaded = plot.simplex(lossforge.CE(), "symmetric:0.6")
    assert len(shaded.collections) > len(axis.collections)


def test_a_noise_is_a_text_a_matrix_or_weights():
    expected = [0.6, 0.4, 0.0]
    for given in ("pair:0.4", noise.pair(3, 0.4), torch.tensor(expected)):
        assert read_weights(given).tolist() == pytest.approx(expected)
    assert read_weights(None).tolist() == [1, 0, 0]
    with pytest.raises(ValueError, match="over 3 classes, got shape"):
        read_weights(noise.pair(4, 0.4))
    with pytest.raises(ValueError, match="must have the largest weight"):
        read_weights(torch.tensor([0.3, 0.4, 0.3]))


def test_shares_are_those_of_the_gradients():
    logits = torch.tensor([[2.0, 0.0], [2.0, 0.0], [-1.0, 1.0]])
    given, true = torch.tensor([0, 1, 0]), torch.tensor([0, 0, 0])
    u = torch.softmax(logits, 1)
    sizes = 2 * (1 - u[torch.arange(3), given])  # of cross entropy: |u_k - [k = y]| summed over k
    share = float(sizes[1] / sizes.sum())
    assert wrong_share(lossforge.CE(), logits, given, given != true) == pytest.approx(share)
    axis = plot.shares({"CE": lossforge.CE(), "MAE": lossforge.MAE()}, logits, given, true)
    assert axis.patches[2].get_width() == pytest.approx(share)
    assert axis.patches[0].get_width() == pytest.approx(1 - share)
    with pytest.raises(ValueError, match="some labels must be wrong"):
        plot.shares(lossforge.CE(), logits, true, true)
    with pytest.raises(ValueError, match="two vectors of labels"):
        plot.shares(lossforge.CE(), logits, given, true[:2])
