"""Lightning keeps a loss as it keeps any module, makes it from the command line, and syncs it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from frameworks import need

import lossforge

need("lightning", "jsonargparse")

import lightning  # noqa: E402
import lightning_step  # noqa: E402
from lightning.pytorch.cli import LightningCLI  # noqa: E402
from lightning_step import CLASSES, QUIET, Model, one_step, samples  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

pytestmark = [
    pytest.mark.usefixtures("float32"),
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    pytest.mark.filterwarnings("ignore:The number of training batches:UserWarning"),
    pytest.mark.filterwarnings("ignore:LightningCLI's args parameter:UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:lightning.*"),
    pytest.mark.filterwarnings("ignore::FutureWarning:lightning.*"),
]


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_a_module_trains_and_logs(precision, tmp_path):
    torch.manual_seed(0)
    settings = {"precision": precision, "default_root_dir": tmp_path, **QUIET}
    model = Model(lossforge.BEF())
    loader = DataLoader(samples(), batch_size=8)
    seen = []
    for _ in range(2):
        trainer = lightning.Trainer(max_epochs=15, enable_checkpointing=False, **settings)
        trainer.fit(model, loader)
        seen.append(float(trainer.callback_metrics["loss"]))
    assert seen[1] < seen[0]


def test_class_weights_are_in_checkpoints(tmp_path):
    weight = torch.tensor([1.0, 2.0, 3.0])
    trainer = lightning.Trainer(max_steps=1, default_root_dir=tmp_path, **QUIET)
    trainer.fit(Model(lossforge.CE(weight=weight)), DataLoader(samples(), batch_size=8))
    path = tmp_path / "model.ckpt"
    trainer.save_checkpoint(path)
    unlike = lossforge.CE(weight=torch.ones(CLASSES))
    again = Model.load_from_checkpoint(path, loss=unlike, weights_only=True)
    assert torch.equal(again.loss.weight, weight)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--model.loss=lossforge.BEF"], lossforge.BEF()),
        (["--model.loss=lossforge.BEF", "--model.loss.beta=-4"], lossforge.BEF(beta=-4.0)),
        (
            ["--model.loss=lossforge.GCE", "--model.loss.q=0.5", "--model.loss.ignore_index=255"],
            lossforge.GCE(q=0.5, ignore_index=255),
        ),
    ],
    ids=["default", "parameter", "policy"],
)
def test_a_loss_is_named_on_the_command_line(arguments, expected, tmp_path):
    cli = LightningCLI(
        Model,
        args=arguments,
        run=False,
        save_config_callback=None,
        seed_everything_default=0,
        trainer_defaults={"default_root_dir": str(tmp_path), **QUIET},
    )
    assert repr(cli.model.loss) == repr(expected)


@pytest.mark.slow
def test_two_processes_take_the_step_of_one(tmp_path):
    command = [sys.executable, str(Path(lightning_step.__file__)), str(tmp_path), "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, env=environment)
    assert done.returncode == 0, done.stderr
    alone, value = one_step(1, lossforge.BEF(), together=False)
    for rank in range(2):
        found = torch.load(tmp_path / f"{rank}.pt")
        torch.testing.assert_close(found[True][0], alone)
        assert found[True][1] == pytest.approx(value, rel=1e-5)
        # the mean of means, which DDP gives by itself, weighs labels by their process
        assert not torch.allclose(found[False][0], alone, rtol=1e-2)
