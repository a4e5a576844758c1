"""Small training problems, models and comparisons that several tests share."""

import copy
import math

import torch
from torch import Tensor, nn

from lossforge.benchmark import one_run
from lossforge.benchmark.run import prepare_data, prepare_networks, samples
from lossforge.training import Samples, Settings, State, train


def tensor_samples(inputs: Tensor, given: Tensor, true: Tensor | None = None) -> Samples:
    """Samples that are moved at random when they are read with a generator."""

    def read(positions, generator):
        batch = inputs[positions]
        if generator is None:
            return batch
        return batch + 0.1 * torch.randn(batch.shape, generator=generator, dtype=batch.dtype)

    return Samples(read, given, true)


def plain_samples(inputs: Tensor, given: Tensor, true: Tensor | None = None) -> Samples:
    """Samples without augmentation."""
    return Samples(lambda positions, generator: inputs[positions], given, true)


def two_moons(n: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Two half circles that reach into one another."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % 2
    angle = math.pi * torch.rand(n, generator=generator)
    x = torch.where(labels == 0, angle.cos(), 1 - angle.cos())
    y = torch.where(labels == 0, angle.sin(), 0.5 - angle.sin())
    noise = 0.1 * torch.randn(n, 2, generator=generator)
    return torch.stack([x, y], 1) + noise, labels


def images(n: int, classes: int = 7, seed: int = 0) -> Samples:
    """Noise images with a class pattern; a third of the given labels is wrong."""
    generator = torch.Generator().manual_seed(seed)
    true = torch.arange(n) % classes
    patterns = torch.randn(classes, 3, 8, 8, generator=generator)
    inputs = patterns[true] + torch.randn(n, 3, 8, 8, generator=generator)
    shift = torch.randint(1, classes, (n,), generator=generator)
    wrong = torch.rand(n, generator=generator) < 1 / 3
    return tensor_samples(inputs, torch.where(wrong, (true + shift) % classes, true), true)


def mlp(inputs: int, classes: int, seed: int = 0) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(inputs, 16), nn.Tanh(), nn.Linear(16, classes))


def convolutional(classes: int = 7, seed: int = 0) -> nn.Module:
    """With batch norm and dropout, whose state and draws a resumed run must get right."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(3, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Flatten(),
            nn.Linear(4 * 6 * 6, classes),
        )


def run(model, loss, samples, settings: Settings, **options) -> tuple[State, list[State]]:
    """The last state, and those after every epoch."""
    states: list[State] = []
    options = {"seed": 0, "on_epoch": states.append, **options}
    tests = options.pop("tests", {"test": samples})
    return train(model, loss, samples, tests, settings, **options), states


def assert_identical(actual, expected) -> None:
    """Equal to the bit, whatever is nested in what."""
    if isinstance(expected, State):
        assert_identical(vars(actual), vars(expected))
    elif isinstance(expected, Tensor):
        assert actual.dtype == expected.dtype
        assert torch.equal(actual, expected)
    elif isinstance(expected, dict):
        assert list(actual) == list(expected)
        for key in expected:
            assert_identical(actual[key], expected[key])
    elif isinstance(expected, list | tuple):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_identical(one, other)
    else:
        assert actual == expected


def one_step(method, loss, models, inputs: Tensor, given: Tensor, **options) -> State:
    """Take one step on all samples as one batch, by SGD with learning rate 0.5."""
    settings = Settings(
        **{"epochs": 1, "batch_size": len(given), "lr": 0.5, "momentum": 0.0, "probe": 0, **options}
    )
    model, *peers = models
    samples = plain_samples(inputs, given)
    return train(model, loss, samples, {}, settings, seed=0, method=method, peers=peers)


def descended(model: nn.Module, objective) -> dict[str, Tensor]:
    """The weights of a model after that step, from the objective as a function of the model."""
    copied = copy.deepcopy(model)
    objective(copied).backward()
    with torch.no_grad():
        for p in copied.parameters():
            p -= 0.5 * p.grad
    return copied.state_dict()


def assert_weights(actual: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Equal to rounding."""
    assert actual.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(actual[name], expected[name], rtol=1e-9, atol=1e-11)


def digits_accuracy(method: str, noise: str, loss: str = "CE", seed: int = 3, **changes) -> float:
    """Accuracy in % on clean digits after the last epoch by the protocol of digits."""
    run_ = one_run("digits", noise, loss, method=method, seed=seed, changes=changes)
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        dataset = prepare_data(run_.spec)
        model, *peers = prepare_networks(run_.spec, dataset, run_.method)
        state = train(
            model, run_.loss, samples(dataset, dataset.train),
            {"test": samples(dataset, dataset.tests["test"])}, run_.spec.settings,
            seed=seed, method=run_.method, peers=peers,
        )  # fmt: skip
    finally:
        torch.set_default_dtype(dtype)
    return state.metrics[-1]["tests"]["test"]["top1"]
