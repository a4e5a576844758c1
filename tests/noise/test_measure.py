"""Estimating noise without the truth, on real images with noise that we put there."""

import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from lossforge import noise


def out_of_sample(inputs, labels):
    model = LogisticRegression(max_iter=200, C=0.1)
    return torch.as_tensor(
        cross_val_predict(model, inputs, labels.numpy(), cv=5, method="predict_proba")
    )


@pytest.mark.parametrize(
    ("T", "rate"),
    [
        (noise.symmetric(10, 0.2), 0.2),
        (noise.symmetric(10, 0.4), 0.4),
        (noise.asymmetric("mnist", 0.4), 0.2),
    ],
    ids=["symmetric 0.2", "symmetric 0.4", "asymmetric 0.4"],
)
def test_the_noise_of_digits_is_found(T, rate):
    inputs, classes = load_digits(return_X_y=True)
    true = torch.as_tensor(classes, dtype=torch.int64)
    generator = torch.Generator().manual_seed(0)
    given = noise.corrupt(true, T, generator=generator, exact=True).labels
    found = noise.estimate_noise(out_of_sample(inputs / 16, given), given)
    assert found.rate == pytest.approx(rate, abs=0.05)
    assert found.T.sum(1).allclose(torch.ones(10))
    assert (found.T - T).abs().max() < 0.2
    assert found.prior.sum().item() == pytest.approx(1)


def test_a_class_nobody_was_given_is_named():
    with pytest.raises(ValueError, match=r"every class must occur in given, absent: \[1\]"):
        noise.estimate_noise(torch.full((4, 3), 1 / 3), torch.tensor([0, 2, 0, 2]))


def test_lengths_must_agree():
    with pytest.raises(ValueError, match=r"each of the 2 labels, got shape \(4, 2\)"):
        noise.estimate_noise(torch.full((4, 2), 0.5), torch.tensor([0, 1]))


def test_logits_are_not_probabilities():
    with pytest.raises(ValueError, match="are these logits"):
        noise.estimate_noise(torch.tensor([[3.0, -1.0], [0.0, 2.0]]), torch.tensor([0, 1]))


def test_a_class_that_is_never_predicted_is_named():
    """300 classes with 3 samples each: nothing can be learnt of most of them."""
    pytest.importorskip("cleanlab")
    given = torch.arange(300).repeat(3)
    probs = torch.randn(900, 300).softmax(1)
    with pytest.raises(ValueError, match=r"class .* and \d+ more cannot be estimated.*label more"):
        noise.estimate_noise(probs, given)
