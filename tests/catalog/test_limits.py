"""Limits and special parameters: the named simpler loss, in value and in gradient."""

import math

import pytest
import torch
from laws import batch, value_and_gradient
from torch import Tensor

from lossforge import (
    AEL,
    AGCE,
    AMSE,
    AUL,
    CE,
    FL,
    GCE,
    JS,
    LDR,
    MAE,
    MSE,
    NCE,
    NFL,
    NL,
    NNCE,
    NNFL,
    RCE,
    TGCE,
    VEL,
    ANorm,
    NLPlus,
    PHuberCE,
    PHuberGCE,
    TaylorCE,
    make,
)
from lossforge.constructions import (
    BackwardCorrection,
    EpsSoftmax,
    ForwardCorrection,
    LogitClip,
    Sharpened,
)

EYE = torch.eye(5, dtype=torch.float64)
LIMITS = {
    "GCE q->0 is CE": (GCE(q=1e-9), CE(), 1e-7),
    "GCE q=1 is MAE": (GCE(q=1.0), MAE(), 0),
    "FL gamma=0 is CE": (FL(gamma=0.0), CE(), 0),
    "stopped FL gamma=0 is CE": (FL(gamma=0.0, stop_gradient=True), CE(), 0),
    "AGCE a->0 is GCE": (AGCE(a=1e-13, q=0.7), GCE(q=0.7), 1e-10),
    "AGCE q=1 is MAE": (AGCE(a=3.0, q=1.0), MAE(), 0),
    "AUL q=1 is MAE": (AUL(a=2.5, q=1.0), MAE(), 0),
    "VEL is AEL": (VEL(a=1.7), AEL(a=1.7), 0),
    "TGCE k->0 is GCE": (TGCE(q=0.4, k=1e-12), GCE(q=0.4), 0),
    "Taylor t=1 is MAE": (TaylorCE(t=1), MAE(), 0),
    "Taylor t large is CE": (TaylorCE(t=2000), CE(), 1e-11),
    "PHuber-CE tau large is CE": (PHuberCE(tau=1e9), CE(), 0),
    "PHuber-CE tau=1 is MAE": (PHuberCE(tau=1.0), MAE(), 0),
    "PHuber-GCE tau large is GCE": (PHuberGCE(q=0.7, tau=1e9), GCE(q=0.7), 0),
    "RCE is a multiple of MAE": (RCE(A_clamp=math.exp(-3)), 3.0 * MAE(), 0),
    "MAE scale": (MAE(scale=2.0), 2 * MAE(), 0),
    "NCE scale": (NCE(scale=10.0), 10 * NCE(), 0),
    "NFL gamma=0 is NCE": (NFL(gamma=0.0), NCE(), 0),
    "NNFL gamma=0 is NNCE": (NNFL(gamma=0.0), NNCE(), 0),
    "AMSE a=1 is MSE": (AMSE(a=1.0), MSE(), 0),
    "SCE alpha=0 is RCE": (make("SCE", alpha=0.0), RCE(), 0),
    "SCE is a sum": (make("SCE", alpha=2.0, beta=3.0), 2 * CE() + 3 * RCE(), 0),
    "NCE+AGCE beta=0 is NCE": (make("NCE+AGCE", alpha=3.0, beta=0.0), 3 * NCE(), 0),
    "NCE+AUL alpha=0 is AUL": (
        make("NCE+AUL", alpha=0.0, beta=2.0, a=3.0, q=0.1),
        2 * AUL(a=3.0, q=0.1),
        0,
    ),
    "ANL-CE beta=0 is NCE": (make("ANL-CE", alpha=5.0, beta=0.0), 5 * NCE(), 0),
    "JAL-CE beta=0 is NCE": (make("JAL-CE", alpha=5.0, beta=0.0), 5 * NCE(), 0),
    "JAL-CE is a sum": (make("JAL-CE"), NCE() + AMSE(a=30.0), 0),
    "CEeps+MAE is a sum": (make("CEeps+MAE"), 0.01 * make("ECE") + 10 * MAE(), 0),
    "eps-softmax m=0 of CE": (make("ECE", m=0.0), CE(), 0),
    "eps-softmax m=0 of FL": (make("EFL", m=0.0, gamma=0.1), FL(gamma=0.1), 0),
    "eps-softmax m=0 of GCE": (EpsSoftmax(GCE(), m=0.0), GCE(), 0),
    "forward by identity is CE": (make("forward", T=EYE), CE(), 0),
    "backward by identity is CE": (make("backward", T=EYE), CE(), 0),
    "forward of GCE by identity": (ForwardCorrection(GCE(), EYE), GCE(), 0),
    "backward of GCE by identity": (BackwardCorrection(GCE(), EYE), GCE(), 0),
    "LogitClip delta large is CE": (make("CE+LC", delta=1e9), CE(), 0),
    "LogitClip delta large is the inner loss": (LogitClip(NCE(), delta=1e9), NCE(), 0),
    "Sharpened tau=1 is the inner loss": (Sharpened(GCE(), tau=1.0, normalize=False), GCE(), 0),
    "SR lamb=0 is the sharpened base": (make("SR", lamb=0.0), Sharpened(CE(), tau=0.5), 0),
    "GLS rate 0 is CE": (make("GLS", smooth_rate=0.0), CE(), 0),
    "LSR is label smoothing": (
        make("LSR", smooth_rate=0.3),
        torch.nn.CrossEntropyLoss(label_smoothing=0.3),
        0,
    ),
    "GLS is LSR": (make("GLS", smooth_rate=0.3), make("LSR", smooth_rate=0.3), 0),
    "NLS is GLS": (make("NLS", smooth_rate=-2.0), make("GLS", smooth_rate=-2.0), 0),
    "GLS wb=0 is CE": (make("GLS", smooth_rate=0.4, wa=1.0, wb=0.0), CE(), 0),
    "JS label weight -> 0 is CE": (JS(weights=(1e-7, 1 - 1e-7)), CE(), 1e-4),
    "LDR Lambda large": (LDR(threshold=0.1, Lambda=1e7), None, 1e-6),
}


def mean_margin(z: Tensor, t: Tensor) -> Tensor:
    """LDR as Lambda -> infinity: the mean of the margins."""
    soft = torch.nn.functional.softplus(z)
    s = soft / soft.mean(1, keepdim=True)
    k = z.shape[1]
    return (0.1 * (k - 1) / k + s.mean(1) - s.gather(1, t[:, None])[:, 0]).mean()


@pytest.mark.parametrize(("loss", "limit", "rtol"), LIMITS.values(), ids=LIMITS.keys())
def test_limit_is_the_simpler_loss(loss, limit, rtol: float) -> None:
    z, t = batch(n=8, scale=0.6)
    limit = limit or mean_margin
    for actual, expected in zip(
        value_and_gradient(lambda x: loss(x, t), z),
        value_and_gradient(lambda x: limit(x, t), z),
        strict=True,
    ):
        torch.testing.assert_close(actual, expected, rtol=max(rtol, 1e-11), atol=max(rtol, 1e-13))


def test_decay_is_affine_to_mae_as_it_flattens() -> None:
    z, t = batch(n=8)
    a = 1e5
    value, gradient = value_and_gradient(lambda x: AEL(a=a)(x, t), z)
    mae, slope = value_and_gradient(lambda x: MAE()(x, t), z)
    torch.testing.assert_close(a * (value - math.exp(-1 / a)), mae, rtol=0, atol=2 / a)
    torch.testing.assert_close(a * gradient, slope, rtol=0, atol=2 / a)


@pytest.mark.parametrize("rest", [1e-3, 1e-6, 1e-12])
def test_divergence_tends_to_mae_as_the_label_takes_all_the_weight(rest: float) -> None:
    z, t = batch(n=8)
    loss = JS(weights=(1 - rest, rest))
    error = (loss(z, t) - MAE()(z, t)).abs()
    assert error <= 2 / math.log(1 / rest)  # what is left is of that order


def test_norm_loss_is_a_shifted_multiple_of_amse() -> None:
    z, t = batch(k=7)
    expected = (7 * AMSE(a=2.5, q=3.0)(z, t) - 1.5**3) / 3
    torch.testing.assert_close(ANorm(a=2.5, p=3.0)(z, t), expected, rtol=1e-12, atol=0)


def test_small_lambda_is_the_largest_margin() -> None:
    z, t = batch()
    soft = torch.nn.functional.softplus(z)
    s = soft / soft.mean(1, keepdim=True)
    other = 1 - torch.nn.functional.one_hot(t, 5)
    margins = 0.1 * other + s - s.gather(1, t[:, None])
    value = LDR(threshold=0.1, Lambda=1e-4, reduction="none")(z, t)
    torch.testing.assert_close(value, margins.max(1).values, rtol=0, atol=1e-3)


def test_negative_learning_of_two_classes_is_cross_entropy_of_the_other() -> None:
    z, t = batch(k=2)
    torch.testing.assert_close(NL()(z, t), CE()(z, 1 - t), rtol=1e-12, atol=0)
    weight = 1 - torch.softmax(z, 1).gather(1, t[:, None])[:, 0]
    expected = weight * NL(reduction="none")(z, t)
    torch.testing.assert_close(NLPlus(reduction="none")(z, t), expected, rtol=1e-12, atol=0)
