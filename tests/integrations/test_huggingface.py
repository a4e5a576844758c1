"""`Trainer` takes the same steps however a batch is divided."""

import math
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from frameworks import need

import lossforge
from lossforge.integrations.huggingface import loss_func

need("transformers", "accelerate")

import one_step  # noqa: E402
from one_step import CASES, dataset, gradients, make_model, make_trainer  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch.*")


def close(found, expected, rtol=1e-9):
    assert found.keys() == expected.keys()
    return all(torch.allclose(found[name], expected[name], rtol=rtol) for name in expected)


@pytest.mark.parametrize("loss", [lossforge.CE(), lossforge.BEF()], ids=["CE", "BEF"])
@pytest.mark.parametrize("case", CASES)
def test_gradients_do_not_depend_on_accumulation(case, loss, tmp_path):
    one = gradients(case, loss, tmp_path, batch=16, accumulate=1)
    four = gradients(case, loss, tmp_path, batch=4, accumulate=4)
    assert any(gradient.abs().max() > 0 for gradient in one.values())
    assert close(four, one)


def test_a_mean_would_depend_on_it(tmp_path):
    def mean(outputs, labels, num_items_in_batch=None):
        return lossforge.CE()(outputs["logits"], labels)

    one = gradients("sequence", mean, tmp_path, batch=16, accumulate=1)
    four = gradients("sequence", mean, tmp_path, batch=4, accumulate=4)
    assert close(four, {name: 4 * gradient for name, gradient in one.items()})


@pytest.mark.parametrize("case", ["sequence", "tokens", "causal"])
def test_cross_entropy_is_the_loss_that_models_have_themselves(case, tmp_path):
    own = gradients(case, None, tmp_path, batch=16, accumulate=1)
    found = gradients(case, lossforge.CE(), tmp_path, batch=4, accumulate=4)
    # that of language models computes in float32, whatever the model's dtype
    if case == "causal":
        own, found = ({k: v.float() for k, v in part.items()} for part in (own, found))
    assert close(found, own, rtol=1e-3 if case == "causal" else 1e-9)


@pytest.mark.parametrize("across", [True, False])
def test_several_devices_of_one_process(across, tmp_path):
    # without a GPU nn.DataParallel runs the model as it is, which is what it returns with GPUs
    one = gradients("tokens", lossforge.CE(), tmp_path, batch=16, accumulate=1)
    several = gradients(
        "tokens", lossforge.CE(), tmp_path, batch=8, accumulate=1, devices=2, across=across
    )
    if across:
        assert close(several, one)
    else:  # Trainer rounds the number of labels a device has
        labels = sum(int((row["labels"] != -100).sum()) for row in dataset("tokens"))
        factor = labels / (labels // 2 * 2)
        assert close(several, {name: factor * gradient for name, gradient in one.items()})


@pytest.mark.slow
def test_two_processes_take_the_step_of_one(tmp_path):
    script = Path(one_step.__file__)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]
    command += ["--master-port=0", "--standalone", str(script), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    for rank in range(2):
        found = torch.load(tmp_path / f"{rank}.pt")
        assert close(found, gradients("tokens", lossforge.CE(), tmp_path, batch=16, accumulate=1))


def test_evaluation_reports_the_mean_loss(tmp_path):
    trainer = make_trainer("tokens", lossforge.BEF(), tmp_path, batch=16, accumulate=1)
    found = trainer.evaluate(dataset("tokens"))["eval_loss"]
    rows = dataset("tokens")
    batch = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
    with torch.no_grad():
        logits = make_model("tokens")(input_ids=batch["input_ids"]).logits
        expected = lossforge.BEF()(logits.movedim(-1, 1), batch["labels"])
    assert found == pytest.approx(float(expected), rel=1e-9)


@pytest.mark.parametrize("loss", [lossforge.CE(), lossforge.BEF()], ids=["CE", "BEF"])
@pytest.mark.parametrize("accumulate", [1, 4])
def test_a_model_without_logits_takes_the_same_step(loss, accumulate, tmp_path):
    expected = gradients("causal", loss, tmp_path, batch=16, accumulate=1)
    settings = {"batch": 16 // accumulate, "accumulate": accumulate, "linear": True}
    assert close(gradients("causal", loss, tmp_path, **settings), expected)


def test_a_model_without_logits_trains_and_is_evaluated_in_mixed_precision(tmp_path):
    settings = {"batch": 8, "accumulate": 2, "bf16": True}
    losses = {}
    for linear in (True, False):
        trainer = make_trainer("causal", lossforge.BEF(), tmp_path, linear=linear, **settings)
        trainer.model.float()
        trainer.train()
        losses[linear] = trainer.evaluate(dataset("causal"))["eval_loss"]
        assert (trainer.model(torch.zeros(1, 3).long()).get("logits")) is not None
    assert losses[True] == pytest.approx(losses[False], rel=1e-2)


@pytest.mark.parametrize("items", [None, 3, torch.tensor(3)], ids=["none", "int", "tensor"])
def test_the_sum_is_divided_by_the_items(items):
    logits, labels = torch.randn(2, 2, 5), torch.tensor([[1, -100], [4, 0]])
    found = loss_func(lossforge.BEF())({"logits": logits}, labels, num_items_in_batch=items)
    expected = lossforge.BEF()(logits.movedim(-1, 1), labels)  # a mean over the three that count
    assert torch.allclose(found, expected)
    tuples = loss_func(lossforge.BEF())((logits,), labels, num_items_in_batch=items)
    assert torch.equal(tuples, found)


def test_sums_in_half_precision_do_not_overflow():
    logits = torch.zeros(60_000, 8, dtype=torch.float16)
    labels = torch.zeros(60_000, dtype=torch.long)
    found = loss_func(lossforge.CE())({"logits": logits}, labels, num_items_in_batch=60_000)
    assert found.item() == pytest.approx(math.log(8), rel=1e-5)


def test_class_weights_go_where_the_logits_are():
    compute = loss_func(lossforge.CE(weight=torch.ones(3)))
    labels = torch.zeros(2, dtype=torch.long, device="meta")
    found = compute({"logits": torch.zeros(2, 3, device="meta")}, labels, num_items_in_batch=2)
    assert found.device.type == "meta"


def test_it_pickles():
    logits, labels = torch.randn(4, 3), torch.tensor([0, 1, 2, 0])
    compute = loss_func(lossforge.BEF(), shift=False)
    again = pickle.loads(pickle.dumps(compute))
    assert torch.equal(again((logits,), labels), compute((logits,), labels))


def test_what_cannot_be_right_is_refused():
    with pytest.raises(ValueError, match="ignore_index must be -100"):
        loss_func(lossforge.CE(ignore_index=255))
    compute = loss_func(lossforge.CE(), shift=True)
    with pytest.raises(ValueError, match="labels must be in the batch"):
        compute((torch.zeros(2, 3),), None)
    with pytest.raises(ValueError, match=r"got \(2, 4, 4\) and \(2, 3, 4, 4\)"):
        compute((torch.zeros(2, 3, 4, 4),), torch.zeros(2, 4, 4, dtype=torch.long))
    with pytest.raises(ValueError, match="must be class indices where they are shifted"):
        compute((torch.zeros(2, 3, 4),), torch.zeros(2, 3, 4))
