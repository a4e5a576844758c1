"""The contract of a training method: what is saved, what is paired, what is refused."""

import io
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from training_problems import assert_identical, convolutional, images, run

import lossforge
from lossforge.errors import SpecError
from lossforge.training import Method, Objective, Settings, State, Step, make_method, method_names

SETTINGS = Settings(epochs=4, batch_size=16, lr=0.05, probe=30)


@dataclass(frozen=True, kw_only=True)
class Draws(Method):
    """The plain loop, which draws and remembers without any use."""

    name: ClassVar[str] = "draws"

    def begin(self, epoch):
        assert epoch.samples.true is None
        torch.rand(3, generator=epoch.generator)
        epoch.memory["drawn"] = torch.rand(5, generator=epoch.generator)


@dataclass(frozen=True, kw_only=True)
class Pair(Method):
    """Two networks; values weighted at random and by what was seen before, in both."""

    name: ClassVar[str] = "pair"
    networks: ClassVar[int] = 2
    distributed: ClassVar[bool] = False
    factor: float = 0.5

    def step(self, epoch, batch):
        seen = epoch.memory.setdefault("seen", torch.zeros(len(epoch.samples)))
        seen[batch.rows] += torch.rand(len(batch.rows), generator=epoch.generator)
        first, second = (network(batch.inputs) for network in epoch.networks)
        one, two = (epoch.loss(logits, batch.target) for logits in (first, second))
        weights = self.factor * seen[batch.rows] + two.detach()
        return Step(first, [Objective(weights * one, batch.kept), Objective(two, batch.kept)])


def train_pair(**options):
    peers = options.pop("peers", [convolutional(seed=1)])
    return run(
        convolutional(), lossforge.BEF(), images(70), SETTINGS, method=Pair(), peers=peers,
        **options,
    )  # fmt: skip


def test_a_method_that_only_draws_leaves_every_bit_of_the_plain_loop():
    plain, _ = run(convolutional(), lossforge.BEF(), images(70), SETTINGS)
    drawn, _ = run(convolutional(), lossforge.BEF(), images(70), SETTINGS, method=Draws())
    assert_identical(drawn.model, plain.model)
    assert_identical(drawn.metrics, plain.metrics)
    assert (plain.peers, plain.memory) == ([], {})


def test_peers_and_memory_continue_to_the_bit_from_every_epoch():
    whole, states = train_pair()
    assert len(whole.peers) == 1
    assert whole.memory["seen"].gt(0).all()
    for state in states:
        saved = State.from_bytes(state.to_bytes())
        assert_identical(saved, state)
        resumed, later = train_pair(state=saved, peers=[convolutional(seed=7)])
        assert_identical(resumed, whole)
        assert_identical(later, states[state.epoch :])
        assert_identical(saved, state)


def test_a_state_fits_the_networks_of_its_method_only():
    state, _ = train_pair()
    pairs = [
        (model, SETTINGS.make_optimizer(model.parameters()))
        for model in (convolutional(), convolutional(seed=1))
    ]
    state.check(pairs)
    with pytest.raises(ValueError, match="does not fit"):
        state.check(pairs[:1])
    plain, _ = run(convolutional(), lossforge.BEF(), images(70), SETTINGS)
    with pytest.raises(ValueError, match="does not fit"):
        plain.check(pairs)


def test_the_plain_state_is_written_as_before():
    state, _ = run(convolutional(), lossforge.BEF(), images(70), SETTINGS)
    content = torch.load(io.BytesIO(state.to_bytes()), weights_only=True)
    assert list(content) == ["model", "optimizer", "metrics"]


def test_networks_must_be_as_many_as_the_method_trains():
    with pytest.raises(ValueError, match=r"peers must be 1 models for pair\(factor=0.5\), got 0"):
        train_pair(peers=[])
    with pytest.raises(ValueError, match="peers must be 0 models for plain, got 1"):
        run(convolutional(), lossforge.CE(), images(30), SETTINGS, peers=[convolutional()])


def test_a_method_for_one_process_is_refused_in_several(monkeypatch):
    monkeypatch.setattr("lossforge.training.distributed.world", lambda: (0, 2))
    with pytest.raises(ValueError, match=r"pair\(factor=0.5\) must run in one process, got 2"):
        train_pair()


def test_text_form():
    assert method_names()[0] == "plain"
    assert make_method(" Plain() ") == Method()
    assert str(Pair(factor=1)) == "pair(factor=1.0)"
    assert Pair(factor=1) == Pair(factor=1.0)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("plane", "did you mean plain"),
        ("plain(alpha=1)", "unknown option of plain 'alpha'"),
        ("plain(1)", "NAME or NAME"),
        ("plain(**{})", "NAME or NAME|unknown option"),
        ("plain(a=print(1))", "NAME or NAME"),
        ("__import__('os')", "NAME or NAME"),
        ("plain +", "NAME or NAME"),
        ("", "NAME or NAME"),
        ("(" * 5000, "NAME or NAME"),
    ],
)
def test_a_wrong_text_is_refused_and_never_executed(text, complaint):
    with pytest.raises(SpecError, match=complaint):
        make_method(text)
