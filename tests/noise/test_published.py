"""Labels of released code, and of the frozen generators' known faults."""

import json
from pathlib import Path

import pytest
import torch

from lossforge import noise
from lossforge.noise import published

CASES = json.loads((Path(__file__).parents[1] / "golden" / "noise.json").read_text())


def reproduce(case, labels):
    """The labels of one released generator, by the function that stands for it."""
    params, text = case["params"], case["generator"]
    num_classes, rate = params["K"], params["rate"]
    if "PDN" in text:
        features = torch.tensor(case["features"])
        std, seed = params["norm_std"], params["seed"]
        return published.part_dependent(features, labels, num_classes, rate, std=std, seed=seed)
    if text.startswith("method2"):
        T = noise.symmetric(num_classes, rate)
        if "asym" in text:
            T = noise.asymmetric(text.split()[-1], rate, blocks="alphabetical")
        return published.truncated_counts(labels, T, seed=params["numpy_seed"])
    if text == "method1/APL asym cifar10":
        return published.reflipped(labels, rate, seed=params["numpy_seed"])
    if text.startswith("method1/APL symmetric"):
        return published.equal_counts(labels, num_classes, rate, seed=params["numpy_seed"])
    T = noise.symmetric(num_classes, rate)
    if "asym" in text:
        name = "cifar100" if "cifar100" in text else "mnist"
        T = noise.asymmetric(name, rate, blocks="alphabetical")
    # APL's CIFAR-100 takes seed 0 whatever the user says
    return published.independent_draws(labels, T, seed=params.get("random_state", 0))


def name_of(case):
    params = case["params"]
    return f"{case['generator']} {params['rate']}"


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_released_labels_are_reproduced(case):
    labels = torch.tensor(case["clean"])
    result = reproduce(case, labels)
    assert result.labels.tolist() == case["noisy"]
    assert torch.equal(result.flipped, result.labels != labels)


def test_there_are_sixteen_cases():
    assert len(CASES) == 16


@pytest.mark.slow
@pytest.mark.parametrize(
    ("num_classes", "rates"),
    [(10, [0.1998, 0.3996, 0.5994, 0.7992]), (100, [0.198, 0.396, 0.594, 0.792])],
)
def test_truncation_loses_noise_as_stated(num_classes, rates):
    labels = torch.arange(num_classes).repeat(50_000 // num_classes)
    for nominal, real in zip((0.2, 0.4, 0.6, 0.8), rates, strict=True):
        T = noise.symmetric(num_classes, nominal)
        result = published.truncated_counts(labels, T)
        assert result.flipped.double().mean().item() == pytest.approx(real, abs=1e-9)
        right = noise.corrupt(labels, T, generator=torch.Generator().manual_seed(0), exact=True)
        assert right.flipped.double().mean().item() == pytest.approx(nominal, abs=1e-9)


@pytest.mark.parametrize(
    ("nominal", "real"), [(0.1, 0.0488), (0.2, 0.0957), (0.3, 0.1414), (0.4, 0.184)]
)
def test_flipping_back_loses_noise_as_stated(nominal, real):
    labels = torch.arange(10).repeat(5000)
    result = published.reflipped(labels, nominal)
    assert result.flipped.double().mean().item() == pytest.approx(real, abs=2e-3)


def test_flipping_back_spares_the_cats():
    labels = torch.arange(10).repeat(5000)
    result = published.reflipped(labels, 0.4)
    rates = 1 - noise.empirical_transition(labels, result.labels, 10).diagonal()
    assert rates[3].item() == pytest.approx(0.24, abs=0.01)
    assert rates[5].item() == pytest.approx(0.40, abs=0.01)


@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_our_part_dependent_noise_follows_the_released_law(scale):
    # one sample many times over: the law of its label is the average over weights and rates
    features = (scale * torch.linspace(-1, 1, 6)).expand(200, 6)
    labels = torch.full((200,), 2)
    draws = range(40)
    ours = [
        noise.part_dependent(
            features, labels, 4, 0.5, generator=torch.Generator().manual_seed(seed)
        ).labels
        for seed in draws
    ]
    theirs = [
        published.part_dependent(features, labels, 4, 0.5, seed=seed).labels for seed in draws
    ]

    def determination(results):
        """How much of the wrong labels falls on the favourite wrong class, on average."""
        shares = []
        for given in results:
            wrong = torch.bincount(given, minlength=4).double()[[0, 1, 3]]
            shares.append((wrong.max() / wrong.sum()).item())
        return sum(shares) / len(shares)

    assert determination(ours) == pytest.approx(determination(theirs), abs=0.08)
    for results in (ours, theirs):
        rate = torch.cat(results).ne(2).double().mean().item()
        assert rate == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda y: published.reflipped(y + 50, 0.4), r"labels must lie in 0\.\.9"),
        (lambda y: published.part_dependent(torch.zeros(20, 2), y, 10, 1.5), "rate must be"),
        (lambda y: published.part_dependent(torch.zeros(20, 2), y, 10, 0.2, std=0), "std must be"),
        (
            lambda y: published.equal_counts(torch.cat([y, torch.zeros_like(y)]), 10, 1.0),
            "4 labels of every class are to be flipped, and a class has 2",
        ),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(torch.arange(10).repeat(2))
