"""What every training method must do: resume to the bit, train every loss, say where it works."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn
from training_problems import assert_identical, convolutional, images, run

import lossforge
from lossforge.training import Settings, State, make_method
from lossforge.training.methods import METHODS

# each with options that make it change what it does within four epochs
CASES = {
    "plain": "plain",
    "soft_bootstrap": "soft_bootstrap(beta=0.7)",
    "hard_bootstrap": "hard_bootstrap(beta=0.7)",
    "mixup": "mixup(alpha=0.5)",
    "elr": "elr(beta=0.5, lam=2)",
    "coteaching": "coteaching(forget_rate=0.4, gradual=2)",
    "decoupling": "decoupling(warm_up=2)",
    "mixture": "mixture(warm_up=1)",
    "mentornet_pd": "mentornet_pd(percentile=0.6)",
    "forward": "forward(warm_up=1, estimate='dual')",
    "backward": "backward(warm_up=1)",
    "adaptation": "adaptation(warm_up=1)",
    "dmi": "dmi(warm_up=1)",
    "entropy": "entropy(lam=0.5)",
}
SETTINGS = Settings(epochs=4, batch_size=16, lr=0.05, probe=30, clip=0.5, weight_decay=1e-3)
PAGE = (Path(__file__).parents[2] / "docs" / "methods.md").read_text()


def train_by(name, loss=None, samples=None, seed=0, **options):
    method = make_method(CASES[name])
    models = [convolutional(seed=seed + number) for number in range(method.networks)]
    return run(
        models[0], loss or lossforge.BEF(), samples or images(70), SETTINGS,
        method=method, peers=models[1:], **options,
    )  # fmt: skip


def test_every_method_has_a_case_and_a_paragraph():
    assert list(CASES) == list(METHODS)
    assert re.findall(r"^`(\w+)[^`]*`\n: ", PAGE, re.MULTILINE) == list(METHODS)


def test_the_page_names_the_methods_that_work_in_several_processes():
    line = re.search(r"Supported here: (.*)\.$", PAGE, re.MULTILINE)[1]
    works = [name for name, method in METHODS.items() if method.distributed]
    assert re.findall(r"`(\w+)`", line) == works


@pytest.mark.parametrize("name", CASES)
def test_text_form_is_read_back(name):
    method = make_method(CASES[name])
    assert make_method(str(method)) == method


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_continued_from_every_epoch_to_the_bit(name, dtype):
    torch.set_default_dtype(dtype)
    whole, states = train_by(name)
    assert_identical(states[-1], whole)
    for state in states:
        saved = State.from_bytes(state.to_bytes())
        resumed, later = train_by(name, seed=7, state=saved)
        assert_identical(resumed, whole)
        assert_identical(later, states[state.epoch :])


@pytest.mark.parametrize("name", [name for name in CASES if name != "plain"])
def test_it_is_not_the_plain_loop(name):
    plain, _ = train_by("plain")
    other, _ = train_by(name)
    assert not torch.equal(plain.model["5.weight"], other.model["5.weight"])


LOSSES = [
    nn.CrossEntropyLoss(weight=torch.linspace(0.5, 2, 7).double()),
    lossforge.GCE(),
    lossforge.parse("JAL-CE"),
    (0.01 * lossforge.BQF()).with_policy(reduction="sum"),
]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("loss", LOSSES, ids=["CE", "GCE", "JAL-CE", "sum"])
def test_every_loss_trains(name, loss):
    state, _ = train_by(name, loss)
    assert all(value.isfinite().all() for value in state.model.values())
    assert state.epoch == SETTINGS.epochs


# in mixup the inputs of another sample are part of the step
@pytest.mark.parametrize("name", [name for name in CASES if name != "mixup"])
def test_ignored_labels_change_nothing(name):
    """A sample without label has no influence, whatever its input is."""
    samples = images(70)
    given = torch.where(torch.arange(70) % 5 == 0, -100, samples.given)

    def with_inputs(noise):
        def read(positions, generator):
            batch = samples.read(positions, None)
            return torch.where((given[positions] == -100)[:, None, None, None], noise, batch)

        return type(samples)(read, given)

    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 7))  # no batch norm, which mixes rows
    found = []
    for noise in (0.0, 3.0):
        method = make_method(CASES[name])
        networks = [nn.Sequential(nn.Flatten(), nn.Linear(192, 7)) for _ in range(method.networks)]
        for number, network in enumerate(networks):
            weights = {key: value + 0.01 * number for key, value in model.state_dict().items()}
            network.load_state_dict(weights)
        state, _ = run(
            networks[0], lossforge.CE(), with_inputs(noise), SETTINGS, tests={}, method=method,
            peers=networks[1:],
        )  # fmt: skip
        found.append(state.model)
    assert_identical(*found)
