"""What the training loop does in one process."""

import copy
import json
import shutil

import pytest
import torch
from torch import nn
from training_problems import (
    assert_identical,
    convolutional,
    images,
    mlp,
    plain_samples,
    run,
    tensor_samples,
    two_moons,
)

import lossforge
from lossforge.training import Diverged, Samples, Settings, generator
from lossforge.training.fit import batches

SMALL = Settings(epochs=3, batch_size=16, lr=0.05, probe=50)


@pytest.mark.parametrize("loss", [nn.CrossEntropyLoss(), lossforge.BEF()], ids=["CE", "BEF"])
def test_two_moons_are_learnt(loss):
    train_set, test = plain_samples(*two_moons(400)), plain_samples(*two_moons(200, seed=1))
    settings = Settings(epochs=30, batch_size=32, lr=0.3)
    state, _ = run(mlp(2, 2), loss, train_set, settings, tests={"moons": test})
    first, last = state.metrics[0], state.metrics[-1]
    assert last["tests"]["moons"]["top1"] > 97
    assert last["accuracy"] > 97
    assert last["loss"] < first["loss"]


def test_the_same_seed_gives_the_same_bits_and_another_does_not():
    one, _ = run(convolutional(), lossforge.GCE(), images(90), SMALL)
    again, _ = run(convolutional(), lossforge.GCE(), images(90), SMALL)
    other, _ = run(convolutional(), lossforge.GCE(), images(90), SMALL, seed=1)
    assert_identical(again, one)
    assert not torch.equal(one.model["5.weight"], other.model["5.weight"])


def test_the_global_random_state_is_neither_read_nor_changed():
    before = torch.get_rng_state()
    one, _ = run(convolutional(), lossforge.CE(), images(40), SMALL)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(99)
    assert_identical(run(convolutional(), lossforge.CE(), images(40), SMALL)[0], one)


def test_loss_and_caller_are_left_alone():
    loss = lossforge.BEF(weight=torch.rand(7))
    text, samples = repr(loss), images(40)
    given = samples.given.clone()
    run(convolutional(), loss, samples, SMALL)
    assert repr(loss) == text
    assert torch.equal(samples.given, given)


def by_hand(model, loss, inputs, labels, settings, seed):
    """The same training, written out with torch alone."""
    options = {"momentum": settings.momentum, "weight_decay": settings.weight_decay}
    optimizer = torch.optim.SGD(model.parameters(), settings.lr, **options)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, settings.epochs)
    for epoch in range(settings.epochs):
        order = torch.randperm(len(labels), generator=generator(seed, "order", epoch))
        for batch in order.split(settings.batch_size):
            optimizer.zero_grad()
            value = loss(model(inputs[batch]), labels[batch])
            value = value + settings.l1_decay * sum(p.abs().sum() for p in model.parameters())
            value.backward()
            if settings.clip:
                nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
            optimizer.step()
        schedule.step()
    return model


@pytest.mark.parametrize(
    "loss",
    [
        nn.CrossEntropyLoss(),
        nn.CrossEntropyLoss(weight=torch.tensor([0.2, 1.7]).double(), label_smoothing=0.1),
        nn.CrossEntropyLoss(ignore_index=1),
        lossforge.BEF(weight=torch.tensor([0.2, 1.7]).double()),
        lossforge.BQF(reduction="sum"),
    ],
    ids=["CE", "weights", "ignored", "BEF", "sum"],
)
@pytest.mark.parametrize(
    "options",
    [{}, {"l1_decay": 1e-2}, {"clip": 0.1, "l1_decay": 1e-2, "weight_decay": 0.01}],
    ids=str,
)
def test_parameters_are_those_of_a_loop_written_by_hand(loss, options):
    inputs, labels = two_moons(70)  # batches of 16, 16, 16, 16 and 6
    settings = Settings(epochs=3, batch_size=16, lr=0.01, **options)
    expected = by_hand(mlp(2, 2), loss, inputs, labels, settings, seed=0)
    model = mlp(2, 2)
    run(model, loss, plain_samples(inputs, labels), settings)
    for actual, value in zip(model.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(actual, value, rtol=1e-10, atol=1e-12)


def test_every_sample_is_used_once_in_an_epoch():
    seen = []
    inputs, labels = two_moons(37)

    def read(positions, generator):
        if generator is not None:
            seen.append(positions)
        return inputs[positions]

    run(mlp(2, 2), lossforge.CE(), Samples(read, labels, labels), Settings(epochs=2, batch_size=16))
    assert [len(batch) for batch in seen] == [16, 16, 5] * 2
    first, second = torch.cat(seen[:3]), torch.cat(seen[3:])
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(37))
    assert not torch.equal(first, second)


@pytest.mark.parametrize(
    ("n", "size", "lengths"),
    [(33, 16, [16, 17]), (34, 16, [16, 16, 2]), (3, 1, [1, 1, 1]), (1, 16, [1]), (8, 4, [4, 4])],
)
def test_a_single_sample_left_over_joins_the_batch_before(n, size, lengths):
    parts = batches(torch.arange(n), size)
    assert [len(part) for part in parts] == lengths
    assert torch.equal(torch.cat(parts), torch.arange(n))


def test_no_epochs_leave_the_model_as_it_is():
    model = mlp(2, 2)
    before = copy.deepcopy(model.state_dict())
    state, _ = run(model, lossforge.CE(), plain_samples(*two_moons(9)), Settings(epochs=0))
    assert_identical(state.model, before)
    assert (state.epoch, state.metrics) == (0, [])


def test_a_batch_without_labels_makes_no_step():
    inputs, labels = two_moons(40)
    labels = torch.where(torch.arange(40) < 1, labels, -100)
    state, _ = run(mlp(2, 2), nn.CrossEntropyLoss(), plain_samples(inputs, labels), SMALL, tests={})
    assert all(p.isfinite().all() for p in state.model.values())
    with pytest.raises(ValueError, match="does not ignore"):
        run(mlp(2, 2), lossforge.CE(), plain_samples(inputs, labels * 0 - 100), SMALL)


def test_images_and_their_weights_keep_the_channels_last():
    layouts = []
    model = convolutional()
    model[0].register_forward_hook(
        lambda module, args, output: layouts.extend([args[0], output, module.weight])
    )
    run(model, lossforge.CE(), images(20), SMALL)
    assert layouts
    assert all(x.is_contiguous(memory_format=torch.channels_last) for x in layouts)


def test_a_loss_may_change_from_epoch_to_epoch():
    epochs = []
    grow = lossforge.SRSchedule(lamb=0.5, rho=2.0)

    def loss(epoch):
        epochs.append((epoch, grow(epoch)))
        return lossforge.CE() + grow(epoch) * lossforge.MAE()

    samples = plain_samples(*two_moons(40))
    state, states = run(mlp(2, 2), loss, samples, SMALL)
    assert epochs == [(0, 0.5), (1, 1.0), (2, 2.0)]
    resumed, _ = run(mlp(2, 2, seed=5), loss, samples, SMALL, state=states[0])
    assert_identical(resumed, state)


@pytest.mark.parametrize(
    "loss", [nn.BCELoss(), nn.CrossEntropyLoss(reduction="none"), nn.Linear(2, 2)], ids=repr
)
def test_a_loss_without_the_contract_is_refused(loss):
    with pytest.raises(TypeError, match="loss must have reduction"):
        run(mlp(2, 2), loss, plain_samples(*two_moons(10)), SMALL)


def test_divergence_says_when_and_what_to_try():
    inputs, labels = two_moons(40)
    samples = plain_samples(inputs, labels)
    settings = Settings(epochs=3, batch_size=16, lr=1e300, momentum=0.0)
    with pytest.raises(Diverged, match=r"in epoch 1: .*lr below 1e\+300 or clip=5"):
        run(mlp(2, 2), lossforge.MSE() * 1e12, samples, settings)
    good, broken = lossforge.CE(), nn.CrossEntropyLoss(weight=torch.tensor([1.0, torch.nan]))
    with pytest.raises(Diverged, match="in epoch 2") as caught:
        run(mlp(2, 2), lambda epoch: broken if epoch else good, samples, SMALL)
    assert [row["epoch"] for row in caught.value.metrics] == [1]


def test_metrics_are_ready_for_json_and_complete():
    samples = images(60)
    unknown = tensor_samples(torch.randn(10, 3, 8, 8), torch.randint(7, (10,)))
    state, _ = run(
        convolutional(), lossforge.BEF(), samples, SMALL,
        tests={"a": samples, "b": unknown}, validation=unknown,
    )  # fmt: skip
    assert json.loads(json.dumps(state.metrics, allow_nan=False)) == state.metrics
    assert [row["epoch"] for row in state.metrics] == [1, 2, 3]
    assert [row["lr"] for row in state.metrics] == [SMALL.learning_rate(e) for e in range(3)]
    assert list(state.metrics[0]) == [
        "epoch", "lr", "loss", "accuracy", "tests", "validation",
        "noise_fit", "noise_recovered", "clean_fit",
    ]  # fmt: skip
    assert list(state.metrics[0]["tests"]) == ["a", "b"]
    nobody = plain_samples(*two_moons(0))
    row, _ = run(mlp(2, 2), lossforge.CE(), plain_samples(*two_moons(20)), SMALL, validation=nobody)
    assert row.metrics[0]["tests"]["test"]["top5"] is None
    assert row.metrics[0]["validation"] is row.metrics[0]["noise_fit"] is None


def test_training_loss_and_accuracy_are_means_over_the_epoch():
    inputs, labels = two_moons(37)
    labels[::5] = -100
    loss = lossforge.CE(weight=torch.tensor([0.5, 2.0]))
    settings = Settings(epochs=1, batch_size=16, lr=1e-30)  # the model stays as it is
    model = mlp(2, 2)
    logits = model(inputs)
    state, _ = run(model, loss, plain_samples(inputs, labels), settings, tests={})
    assert state.metrics[0]["loss"] == pytest.approx(loss(logits, labels).item(), rel=1e-12)
    kept = labels >= 0
    right = (logits.argmax(1) == labels)[kept]
    assert state.metrics[0]["accuracy"] == 100 * int(right.sum()) / len(right)


def test_bf16_trains():
    torch.set_default_dtype(torch.float32)
    settings = Settings(epochs=3, batch_size=16, lr=0.05, precision="bf16")
    state, _ = run(convolutional(), lossforge.BEF(), images(90), settings)
    assert all(v.dtype == torch.float32 for v in state.model.values() if v.is_floating_point())
    plain, _ = run(convolutional(), lossforge.BEF(), images(90), SMALL)
    assert not torch.equal(state.model["0.weight"], plain.model["0.weight"])
    assert state.metrics[-1]["loss"] == pytest.approx(plain.metrics[-1]["loss"], rel=0.05)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.skipif(
    shutil.which("c++") is None and shutil.which("g++") is None,
    reason="torch.compile needs a C++ compiler, and none is installed",
)
def test_a_compiled_model_trains_alike():
    settings = Settings(epochs=2, batch_size=16, lr=0.05)
    model = mlp(2, 2)
    twin = copy.deepcopy(model)
    samples = plain_samples(*two_moons(40))
    eager, _ = run(model, lossforge.BEF(), samples, settings)
    torch._dynamo.reset()
    options = {**vars(settings), "compile": True}
    compiled, states = run(twin, lossforge.BEF(), samples, Settings(**options))
    torch._dynamo.reset()
    assert list(compiled.model) == list(eager.model)
    for name, value in eager.model.items():
        torch.testing.assert_close(compiled.model[name], value)
    assert states[0].epoch == 1
