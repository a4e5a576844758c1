"""A search sees no true label and no test set: they may be poison."""

import json
from dataclasses import replace

import pytest
import torch
from tiny_search import NOISE, SETTINGS

from lossforge.benchmark.run import prepare_data
from lossforge.tuning import score, tune
from lossforge.tuning.plan import make_plan
from lossforge.tuning.score import HeldOutScore, blind, visible


class Poison(torch.Tensor):
    """Labels that whoever looks at them notices."""

    armed = False

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if cls.armed and func not in HARMLESS:
            raise AssertionError(f"a hidden tensor was read by {func}")
        return super().__torch_function__(func, types, args, kwargs or {})


HARMLESS = {torch.Tensor.__repr__}


def hidden_parts(dataset):
    """The data with poison for every true label and every test split."""

    def poison(tensor):
        return tensor.clone().as_subclass(Poison)

    def part(split):
        return replace(split, true=poison(split.true))

    tests = {
        name: replace(
            split,
            inputs=poison(split.inputs),
            given=poison(split.given),
            true=None if split.true is None else poison(split.true),
        )
        for name, split in dataset.tests.items()
    }
    return replace(
        dataset, train=part(dataset.train), validation=part(dataset.validation), tests=tests
    )


def shuffled_parts(dataset):
    """The data with other true labels and other tests."""

    def part(split):
        return replace(split, true=(split.true + 1) % dataset.num_classes)

    tests = {
        name: replace(split, inputs=split.inputs * 0 + 7, given=split.given * 0)
        for name, split in dataset.tests.items()
    }
    return replace(
        dataset, train=part(dataset.train), validation=part(dataset.validation), tests=tests
    )


def outcome(store):
    found = tune("digits", NOISE, "GCE", trials=4, settings=SETTINGS, store=store, final_seeds=0)
    return json.dumps([(trial.expression, trial.score) for trial in found.trials])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    torch.set_default_dtype(torch.float32)
    return outcome(tmp_path_factory.mktemp("undisturbed"))


@pytest.mark.parametrize("change", [hidden_parts, shuffled_parts])
def test_true_labels_and_tests_make_no_difference(change, undisturbed, tmp_path, monkeypatch):
    def poisoned(spec, data_dir=None, split=0, noise=None):
        Poison.armed = False
        dataset = change(prepare_data(spec, data_dir, split=split, noise=noise))
        Poison.armed = True
        return dataset

    monkeypatch.setattr(score, "prepare_data", poisoned)
    try:
        assert outcome(tmp_path) == undisturbed
        if change is hidden_parts:
            with pytest.raises(AssertionError, match="hidden tensor"):
                poisoned(make_plan("digits", NOISE, "GCE", settings=SETTINGS).spec).train.true.sum()
    finally:
        Poison.armed = False


def test_a_score_refuses_what_a_search_may_not_see():
    spec = make_plan("digits", NOISE, "GCE", settings=SETTINGS).spec
    dataset = prepare_data(spec)
    assert dataset.train.true is not None
    seen = blind(dataset)
    assert seen.is_blind
    assert seen.parts().keys() == {"train", "validation"}
    assert torch.equal(seen.train.given, dataset.train.given)
    HeldOutScore(spec, [seen])
    for leak in (
        {"train": dataset.train},
        {"validation": dataset.validation},
        {"tests": dataset.tests},
        {"validation": None},
    ):
        with pytest.raises(ValueError, match="neither true labels nor tests"):
            HeldOutScore(spec, [replace(seen, **leak)])
    with pytest.raises(ValueError, match="validation part"):
        blind(replace(dataset, validation=None))


def test_a_score_is_the_mean_over_the_held_out_parts():
    plan = make_plan("digits", NOISE, "GCE", settings=SETTINGS, splits=2)
    assert plan.name != make_plan("digits", NOISE, "GCE", settings=SETTINGS).name
    seen = visible(plan)
    held_out = [one.validation.inputs for one in seen]
    assert not torch.equal(*held_out)
    epochs = []
    both = HeldOutScore(plan.spec, seen)("GCE", lambda epoch, score: epochs.append(epoch))
    alone = [HeldOutScore(plan.spec, [one])("GCE", lambda *_: None) for one in seen]
    assert both == pytest.approx(sum(alone) / 2)
    assert epochs == list(range(1, 2 * SETTINGS["epochs"] + 1))
