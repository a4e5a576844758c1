"""What is measured equals what a naive loop counts."""

import pytest
import torch
from torch import nn
from training_problems import convolutional, images, mlp, plain_samples, run, two_moons

import lossforge
from lossforge.training import Samples, Settings, accuracy, features, memorisation, top_classes


def ranking(model, samples, positions):
    """The classes of each sample in the order of their logits, one sample at a time."""
    model.eval()
    with torch.no_grad():
        logits = [model(samples.read(torch.tensor([i]), None))[0].tolist() for i in positions]
    return [sorted(range(len(row)), key=row.__getitem__, reverse=True) for row in logits]


def share(flags):
    flags = list(flags)
    return 100 * sum(flags) / len(flags)


@pytest.mark.parametrize("probe", [25, 1000])
def test_metrics_of_an_epoch_equal_a_naive_loop(probe):
    samples, test, held_out = images(70), images(40, seed=1), images(30, seed=2)
    settings = Settings(epochs=2, batch_size=16, lr=0.05, probe=probe)
    model = convolutional()
    state, _ = run(
        model, lossforge.CE(), samples, settings, tests={"t": test}, validation=held_out
    )  # fmt: skip
    row = state.metrics[-1]
    ranks = ranking(model, test, range(40))
    true = test.true.tolist()
    assert row["tests"]["t"]["top1"] == share(t == r[0] for t, r in zip(true, ranks, strict=True))
    assert row["tests"]["t"]["top5"] == share(t in r[:5] for t, r in zip(true, ranks, strict=True))
    ranks = ranking(model, held_out, range(30))
    given = held_out.given.tolist()
    assert row["validation"] == share(g == r[0] for g, r in zip(given, ranks, strict=True))

    generator = lossforge.training.generator(0, "probe")
    chosen = torch.randperm(70, generator=generator)[:probe].tolist()
    predicted = [r[0] for r in ranking(model, samples, chosen)]
    rows = [
        (p, int(samples.given[i]), int(samples.true[i]))
        for p, i in zip(predicted, chosen, strict=True)
    ]
    assert row["noise_fit"] == share(p == g for p, g, t in rows if g != t)
    assert row["noise_recovered"] == share(p == t for p, g, t in rows if g != t)
    assert row["clean_fit"] == share(p == t for p, g, t in rows if g == t)


def test_memorisation_by_hand():
    given = torch.tensor([0, 1, 2, 2, 1, -100])
    true = torch.tensor([0, 1, 0, 1, 2, 1])
    predicted = torch.tensor([0, 2, 2, 1, 0, 1])
    assert memorisation(predicted, given, true) == {
        "noise_fit": pytest.approx(100 / 3),
        "noise_recovered": pytest.approx(100 / 3),
        "clean_fit": 50.0,
    }
    assert memorisation(true, true, true)["noise_fit"] is None
    assert memorisation(predicted, given, None)["clean_fit"] is None
    assert memorisation((true + 1) % 3, (true + 1) % 3, true)["clean_fit"] is None


@pytest.mark.parametrize(("classes", "several"), [(2, False), (5, False), (6, True), (40, True)])
def test_top_five_needs_more_than_five_classes(classes, several):
    inputs = torch.randn(33, 4)
    samples = plain_samples(inputs, torch.randint(classes, (33,)))
    model = mlp(4, classes)
    top = top_classes(model, samples, batch_size=8)
    assert torch.equal(top[:, 0], model(inputs).argmax(1))
    result = accuracy(top, samples.labels)
    assert (result["top5"] is not None) == several
    if several:
        assert torch.equal(top, model(inputs).topk(5).indices)
        assert result["top5"] >= result["top1"]


def test_tests_are_judged_by_the_truth_and_validation_by_what_is_given():
    inputs, true = two_moons(50)
    wrong = plain_samples(inputs, 1 - true, true)
    settings = Settings(epochs=20, batch_size=16, lr=0.3)
    state, _ = run(
        mlp(2, 2), lossforge.CE(), plain_samples(inputs, true), settings,
        tests={"test": wrong}, validation=wrong,
    )  # fmt: skip
    row = state.metrics[-1]
    assert row["tests"]["test"]["top1"] == 100 - row["validation"] > 90


def test_the_mode_of_the_model_comes_back_and_nothing_is_augmented():
    samples, model = images(20), convolutional()
    model.train()
    first = top_classes(model, samples)
    assert model.training
    model.eval()
    assert torch.equal(top_classes(model, samples), first)
    assert not model.training


def test_features_are_those_of_the_model():
    model = lossforge.models.MLP(2, 3, (5,))
    inputs, labels = two_moons(23)
    samples = plain_samples(inputs, labels)
    assert torch.equal(features(model, samples, batch_size=23), model.features(inputs).detach())
    chosen = torch.tensor([4, 2])
    some = features(model, samples, chosen, batch_size=1)
    torch.testing.assert_close(some, model.features(inputs[chosen]).detach())
    with pytest.raises(TypeError, match="method `features`"):
        features(nn.Linear(2, 2), samples)


def test_samples_of_the_wrong_kind_are_refused():
    def read(positions, generator):
        return torch.zeros(len(positions), 2)

    with pytest.raises(TypeError, match="int64 labels"):
        Samples(read, torch.zeros(3))
    with pytest.raises(ValueError, match="true must be int64 labels of shape"):
        Samples(read, torch.zeros(3).long(), torch.zeros(4).long())
    with pytest.raises(ValueError, match="samples must not be empty"):
        run(mlp(2, 2), lossforge.CE(), Samples(read, torch.zeros(0).long()), Settings())
