"""Wrappers take any loss and keep its contract; what they do to the logits is what they say."""

import copy
import math
import pickle

import pytest
import torch
from bases import ids
from cases import named
from catalog import classwise, pointwise, wrapped
from laws import assert_close, batch, rows, value_and_gradient
from naive import softmax
from torch import Tensor

import lossforge
from lossforge import BEF, CE, GCE, GJS, JS, NL
from lossforge.constructions import (
    BackwardCorrection,
    EpsSoftmax,
    ForwardCorrection,
    LogitClip,
    Sharpened,
    complementary_labels,
)

CASES = named(
    "LogitClip-BEF",
    "EpsSoftmax-GCE",
    "Sharpened-BEF",
    "ForwardCorrection-BEF",
    "BackwardCorrection-CE",
)
OVER_WRAPPERS = pytest.mark.parametrize("case", CASES, ids=ids(CASES))
PAIR = torch.tensor([[0.6, 0.4, 0.0], [0.0, 0.6, 0.4], [0.4, 0.0, 0.6]], dtype=torch.float64)


@OVER_WRAPPERS
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_policy_of_the_wrapper_is_that_of_cross_entropy(case, reduction: str) -> None:
    z, t, weight = torch.randn(2, 5, 3), torch.randint(5, (2, 3)), torch.rand(5)
    t[0, 1] = 255
    loss = case.make().with_policy(weight=weight, ignore_index=255, reduction=reduction)
    flat_z, flat_t = z.movedim(1, -1).reshape(-1, 5), t.reshape(-1)
    kept = flat_t != 255
    w = torch.where(kept, weight[flat_t.where(kept, 0)], 0)
    values = w * rows(case.naive, flat_z, flat_t.where(kept, 0))
    expected = {"none": values.reshape(2, 3), "sum": values.sum(), "mean": values.sum() / w.sum()}
    assert_close(loss(z, t), expected[reduction])


@OVER_WRAPPERS
def test_policy_may_be_given_on_construction_and_survives_copies(case) -> None:
    z, t = batch()
    loss = case.make().with_policy(label_smoothing=0.2, reduction="sum")
    q = 0.8 * torch.nn.functional.one_hot(t, 5) + 0.2 / 5
    expected = sum(q[i, c] * case.naive(z[i], c) for i in range(6) for c in range(5))
    for twin in (loss, copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert_close(twin(z, t), expected)


def test_wrappers_take_policy_keywords() -> None:
    T = wrapped.transition(5)
    for loss in (
        LogitClip(CE(), delta=1.0, reduction="sum"),
        EpsSoftmax(CE(), m=1.0, reduction="sum"),
        Sharpened(CE(), tau=1.0, reduction="sum"),
        ForwardCorrection(CE(), T, reduction="sum"),
        BackwardCorrection(CE(), T, reduction="sum"),
    ):
        assert loss.reduction == "sum"


@pytest.mark.parametrize(
    "wrap",
    [
        lambda loss: LogitClip(loss, delta=1.0),
        lambda loss: EpsSoftmax(loss, m=1.0),
        lambda loss: Sharpened(loss, tau=1.0),
        lambda loss: ForwardCorrection(loss, wrapped.transition(5)),
        lambda loss: BackwardCorrection(loss, wrapped.transition(5)),
    ],
    ids=["clip", "eps", "sharpened", "forward", "backward"],
)
def test_inner_loss_may_have_no_policy_and_must_be_a_loss(wrap) -> None:
    with pytest.raises(ValueError, match="policy"):
        wrap(CE(reduction="sum"))
    with pytest.raises(TypeError, match="loss"):
        wrap(torch.nn.CrossEntropyLoss())


def test_wrappers_nest() -> None:
    z, t = batch()
    loss = LogitClip(EpsSoftmax(GCE(), m=2.0), delta=1.5, reduction="none")

    def nested(row: Tensor, label: int) -> Tensor:
        u = softmax(wrapped.clipped(row, 1.5, 2.0, False, 0))
        return wrapped.eps_softmax(pointwise.gce, u, label, 2.0)

    assert_close(loss(z, t), rows(nested, z, t))
    assert_close(lossforge.parse(str(loss))(z, t), loss(z, t).mean())


def seen_norm(z: Tensor, **parameters) -> Tensor:
    """The norm after clipping, read off cross entropy of two opposite logits."""
    loss = LogitClip(CE(), reduction="none", **parameters)
    value = loss(z, torch.zeros(len(z), dtype=torch.long))
    return -torch.log(torch.expm1(value)) / math.sqrt(2)  # z = (r, -r) / sqrt 2


OPPOSITE = torch.tensor([1.0, -1.0], dtype=torch.float64) / math.sqrt(2)


def test_clip_leaves_short_logits_alone_and_shortens_long_ones() -> None:
    length = torch.linspace(0.01, 12, 400)
    for delta in (0.5, 1.0, 2.5):
        assert_close(seen_norm(length[:, None] * OPPOSITE, delta=delta), length.clamp(max=delta))


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_clip_equals_cross_entropy_of_clipped_logits(p: float) -> None:
    z, t = torch.cat([s * torch.randn(10, 5) for s in (0.01, 0.3, 1, 100)]), torch.randint(5, (40,))
    norms = z.abs().pow(p).sum(1, keepdim=True) ** (1 / p)
    clipped = z * (1.3 / norms).clamp(max=1)
    loss = LogitClip(CE(), delta=1.3, p=p, reduction="none")
    assert_close(loss(z, t), torch.nn.functional.cross_entropy(clipped, t, reduction="none"))


@pytest.mark.parametrize("temp", [0.4, 1.5])
def test_released_clip_jumps(temp: float) -> None:
    """Above a norm of temp = 1/delta the released code rescales to 1/temp, up or down."""
    delta, step = 1 / temp, 1e-9
    length = torch.tensor([temp * (1 - step), temp * (1 + step), 5 * temp])
    below, above, far = seen_norm(
        length[:, None] * OPPOSITE, delta=delta, as_released=True, norm_eps=1e-12
    )
    torch.testing.assert_close(below, torch.tensor(temp), rtol=1e-8, atol=0)
    torch.testing.assert_close(above, torch.tensor(delta), rtol=1e-8, atol=0)
    torch.testing.assert_close(far, torch.tensor(delta), rtol=1e-8, atol=0)
    assert abs(above - below) > 0.5  # 0.4 -> 2.5 grows, 1.5 -> 0.667 shrinks


@pytest.mark.parametrize("delta", [0.5, 2.0])
def test_clip_of_zero_logits_has_the_gradient_of_the_inner_loss(delta: float) -> None:
    z, t = torch.zeros(2, 4), torch.tensor([0, 3])
    for as_released in (False, True):
        loss = LogitClip(CE(), delta=delta, as_released=as_released)
        _, actual = value_and_gradient(lambda x, loss=loss: loss(x, t), z)
        _, expected = value_and_gradient(lambda x: CE()(x, t), z)
        assert_close(actual, expected)


def test_eps_softmax_takes_the_first_of_ties() -> None:
    z = torch.zeros(3, 3)
    value = EpsSoftmax(CE(), m=2.0, reduction="none")(z, torch.arange(3))
    assert_close(value, -torch.log(torch.tensor([(1 / 3 + 2) / 3, 1 / 9, 1 / 9])))


def test_eps_softmax_jumps_where_the_largest_class_changes() -> None:
    z = torch.tensor([[1e-9, 0.0], [0.0, 1e-9]])
    high, low = EpsSoftmax(CE(), m=1.0, reduction="none")(z, torch.tensor([0, 0])).tolist()[::-1]
    assert high == pytest.approx(-math.log(0.25), rel=1e-6)
    assert low == pytest.approx(-math.log(0.75), rel=1e-6)


BAD_MATRICES = {
    "rows": torch.tensor([[0.9, 0.2, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    "columns": PAIR.T @ torch.diag(torch.tensor([1.0, 0.5, 1.5], dtype=torch.float64)),
    "negative": torch.tensor([[1.1, -0.1, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    "nan": torch.full((3, 3), math.nan),
    "flat": torch.ones(3),
    "wide": torch.full((2, 3), 1 / 3),
}


@pytest.mark.parametrize("make", [ForwardCorrection, BackwardCorrection])
@pytest.mark.parametrize("T", BAD_MATRICES.values(), ids=BAD_MATRICES.keys())
def test_matrix_that_is_not_stochastic_is_refused(make, T: Tensor) -> None:
    with pytest.raises(ValueError, match=r"\bT\b"):
        make(CE(), T)


def test_singular_matrix_is_refused_backward_only() -> None:
    T = torch.full((3, 3), 1 / 3)
    with pytest.raises(ValueError, match=r"\bT\b"):
        BackwardCorrection(CE(), T)
    ForwardCorrection(CE(), T)


@pytest.mark.parametrize("make", [ForwardCorrection, BackwardCorrection])
def test_matrix_of_the_wrong_size_is_refused_at_the_call(make) -> None:
    with pytest.raises(ValueError, match=r"\bT\b"):
        make(CE(), PAIR)(torch.randn(2, 4), torch.tensor([0, 1]))


@pytest.mark.parametrize("make", [ForwardCorrection, BackwardCorrection])
def test_matrix_moves_with_the_module_and_is_not_trained(make) -> None:
    loss = make(CE(), PAIR)
    assert not list(loss.parameters())
    z, t = torch.randn(4, 3), torch.tensor([0, 1, 2, 0])
    expected = loss(z, t)
    value = loss.to(torch.float32)(z.float(), t)
    assert value.dtype == torch.float32
    assert_close(value, expected, torch.float32)


def test_matrix_rows_are_true_classes() -> None:
    z = torch.tensor([[50.0, 0.0, 0.0]])  # surely of class 0, which is given label 1 with 0.4
    value = ForwardCorrection(CE(), PAIR)(z, torch.tensor([1]))
    assert_close(value, torch.tensor(-math.log(0.4)))


def test_backward_correction_is_unbiased() -> None:
    z, T = torch.randn(1, 3), wrapped.transition(3)
    loss = BackwardCorrection(CE(), T)
    for true in range(3):
        noisy = sum(T[true, given] * loss(z, torch.tensor([given])) for given in range(3))
        assert_close(noisy, CE()(z, torch.tensor([true])))


def test_complementary_label_is_never_the_label_and_uniform_over_the_others() -> None:
    k, rows_, n = 7, 2000, 20
    target = torch.randint(k, (rows_,))
    labels = complementary_labels(target, k, n, generator=torch.Generator().manual_seed(1))
    assert labels.shape == (rows_, n)
    assert labels.dtype == torch.long
    assert (labels != target[:, None]).all()
    offset = (labels - target[:, None]) % k
    counts = torch.bincount(offset.flatten(), minlength=k)[1:]
    p = 1 / (k - 1)
    spread = math.sqrt(rows_ * n * p * (1 - p))
    assert ((counts - rows_ * n * p).abs() < 5 * spread).all()


def test_complementary_labels_follow_the_generator() -> None:
    target = torch.randint(5, (50,))
    draw = [
        complementary_labels(target, 5, 3, generator=torch.Generator().manual_seed(seed))
        for seed in (0, 0, 1)
    ]
    assert torch.equal(draw[0], draw[1])
    assert not torch.equal(draw[0], draw[2])
    state = torch.get_rng_state()
    complementary_labels(target, 5, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(torch.get_rng_state(), state)


def test_complementary_labels_of_two_classes_are_the_other() -> None:
    target = torch.tensor([0, 1, 1])
    generator = torch.Generator().manual_seed(0)
    assert complementary_labels(target, 2, 1, generator=generator)[:, 0].tolist() == [1, 0, 0]
    with pytest.raises(ValueError, match="num_classes"):
        complementary_labels(torch.tensor([0]), 1, 1, generator=generator)


def test_negative_learning_takes_complementary_labels() -> None:
    z, target = batch(n=4)
    labels = complementary_labels(target, 5, 3, generator=torch.Generator().manual_seed(0))
    values = NL(reduction="none")(z[:, :, None].expand(-1, -1, 3), labels)
    expected = torch.stack([rows(lambda a, c: classwise.nl(softmax(a), c), z, labels[:, j])
                            for j in range(3)], 1)  # fmt: skip
    assert_close(values, expected)


@pytest.mark.parametrize(
    ("lamb", "rho", "freq"), [(1.2, 1.03, 1), (4.0, 2.0, 5), (10.0, 1.02, 1)], ids=str
)
def test_schedule_multiplies_every_freq_epochs(lamb: float, rho: float, freq: int) -> None:
    schedule = lossforge.catalog.SRSchedule(lamb, rho, freq)
    for epoch in (0, 1, 4, 5, 9, 10, 37):
        assert schedule(epoch) == pytest.approx(lamb * rho ** (epoch // freq), rel=1e-12)
    z, t = batch()
    assert_close(
        lossforge.make("SR", lamb=schedule(5), reduction="none")(z, t),
        rows(lambda a, c: wrapped.sr(a, c, lamb=schedule(5)), z, t),
    )


VIEWS = {2: (0.4, 0.35, 0.25), 3: (0.1, 0.5, 0.2, 0.2)}


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("weights", VIEWS.values(), ids=["two", "three"])
def test_views_follow_the_definition(weights: tuple[float, ...], scaled: bool) -> None:
    t = torch.randint(5, (6,))
    views = [(2 * torch.randn(6, 5)).requires_grad_() for _ in weights[1:]]
    loss = GJS(weights=weights, scaled=scaled, reduction="none")
    expected = torch.stack(
        [
            classwise.gjs(tuple(view[i] for view in views), int(t[i]), weights, scaled)
            for i in range(6)
        ]
    )
    actual = loss(views, t)
    assert_close(actual, expected)
    slopes = zip(
        torch.autograd.grad(actual.sum(), views),
        torch.autograd.grad(expected.sum(), views),
        strict=True,
    )
    for a, b in slopes:
        assert_close(a, b)


def test_one_view_is_the_divergence_of_two() -> None:
    z, t = batch()
    for weights in ((0.5, 0.5), (0.1, 0.9)):
        assert_close(GJS(weights=weights)([z], t), JS(weights=weights)(z, t))


def test_equal_views_are_one_view() -> None:
    z, t = batch()
    assert_close(GJS(weights=(0.3, 0.5, 0.2))([z, z], t), JS(weights=(0.3, 0.7))(z, t))


def test_number_and_shape_of_views_are_checked() -> None:
    z, t = batch()
    loss = GJS(weights=(0.4, 0.3, 0.3))
    with pytest.raises(ValueError, match="view"):
        loss([z], t)
    with pytest.raises(ValueError, match=r"view|shape"):
        loss([z, z[:3]], t)
    with pytest.raises((TypeError, ValueError)):
        loss(z[0, 0], t)


def test_views_keep_the_policy_and_soft_targets() -> None:
    a, b = torch.randn(2, 5, 3), torch.randn(2, 5, 3)
    t, q = torch.randint(5, (2, 3)), torch.rand(2, 5, 3)
    t[0, 1] = 255
    loss = GJS(weights=(0.4, 0.3, 0.3), ignore_index=255, reduction="none")
    flat = [x.movedim(1, -1).reshape(-1, 5) for x in (a, b, q)]
    assert_close(loss([a, b], t).reshape(-1), loss(flat[:2], t.reshape(-1)))
    assert loss([a, b], t)[0, 1] == 0
    loss = GJS(weights=(0.4, 0.3, 0.3), reduction="none")
    expected = sum(q[:, c] * loss([a, b], torch.full((2, 3), c)) for c in range(5))
    assert_close(loss([a, b], q), expected)
    assert_close(pickle.loads(pickle.dumps(loss))([a, b], q), expected)


def test_inner_bef_of_a_clip_equals_bef_below_the_threshold() -> None:
    z, t = batch(scale=0.01)
    assert_close(LogitClip(BEF(), delta=1.0)(z, t), BEF()(z, t))
