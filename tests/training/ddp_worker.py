"""What the processes of the distributed tests do; imported by the test and by each process."""

import os
import pickle
import sys
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import distributed, nn
from training_problems import convolutional, images, plain_samples, run

import lossforge
from lossforge.training import Diverged, Settings, State, launched, make_method

CLASSES = 7


@dataclass(frozen=True)
class Case:
    """A training problem that must not depend on the number of processes."""

    loss: str  # "CE" of torch, or an expression
    policy: dict = field(default_factory=dict)
    n: int = 64
    batch_size: int = 16
    options: dict = field(default_factory=dict)
    ignored: float = 0.0
    dtype: torch.dtype = torch.float64
    method: str = "plain"

    def train(self, **options) -> tuple[State, list[State]]:
        torch.set_default_dtype(self.dtype)
        generator = torch.Generator().manual_seed(5)
        inputs = torch.randn(self.n, 3, 6, 6, generator=generator)
        true = torch.randint(CLASSES, (self.n,), generator=generator)
        given = torch.where(torch.rand(self.n, generator=generator) < 0.3, (true + 1) % 7, true)
        given[torch.rand(self.n, generator=generator) < self.ignored] = -100
        samples = plain_samples(inputs, given, true)
        policy = dict(self.policy)
        if policy.pop("weighted", False):
            policy["weight"] = torch.linspace(0.1, 3.0, CLASSES)
        if self.loss == "CE":
            loss = nn.CrossEntropyLoss(**policy)
        else:
            loss = lossforge.parse(self.loss).with_policy(**policy)
        settings = Settings(
            **{"epochs": 3, "batch_size": self.batch_size, "lr": 0.05, "probe": 21, **self.options}
        )
        options["method"] = make_method(self.method)
        return run(network(), loss, samples, settings, validation=samples, **options)


def network() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.Tanh(), nn.Flatten(), nn.Linear(4 * 4 * 4, CLASSES)
        )


BOTH = {
    "even": {},
    "uneven": {"n": 55},  # the last of the batches has 7
    "odd": {"n": 55, "batch_size": 11},
    "weights": {"policy": {"weighted": True}, "n": 55},
    "ignored": {"ignored": 0.4, "n": 55},
    "weights and ignored": {"policy": {"weighted": True}, "ignored": 0.4, "n": 55},
    "sum": {"policy": {"reduction": "sum"}, "n": 55, "options": {"lr": 0.002}},
    "smoothing": {"policy": {"weighted": True, "label_smoothing": 0.2}, "n": 55},
    "fewer than processes": {"n": 5, "batch_size": 1},
    "mostly ignored": {"n": 30, "batch_size": 2, "ignored": 0.8},
    "decay and clip": {"n": 55, "options": {"l1_decay": 1e-2, "clip": 0.3, "weight_decay": 1e-2}},
    "adam": {"n": 55, "options": {"optimizer": "adam", "lr": 1e-3}},
    "soft bootstrap": {"n": 55, "method": "soft_bootstrap(beta=0.7)"},
    "hard bootstrap": {"n": 55, "ignored": 0.4, "method": "hard_bootstrap(beta=0.7)"},
    "float32": {"n": 55, "policy": {"weighted": True}, "dtype": torch.float32},
}
CASES = {
    f"{loss}, {name}": Case(loss, **options)
    for name, options in BOTH.items()
    for loss in ("CE", "BEF")
}


def extras(rank: int) -> dict[str, object]:
    """What is asked of the processes beside equal parameters."""
    case = CASES["BEF, uneven"]
    whole, states = case.train()
    # only rank 0 has read the checkpoint
    resumed, later = case.train(state=states[0] if rank == 0 else None)
    settings = Settings(epochs=2, batch_size=16, lr=0.05, probe=30)
    normed, _ = run(convolutional(), lossforge.CE(), images(70), settings)
    broken = nn.CrossEntropyLoss(weight=torch.full((CLASSES,), torch.nan))
    try:
        run(convolutional(), broken, images(70), settings)
        diverged = ""
    except Diverged as error:
        diverged = str(error)
    try:
        Case("BEF", method="elr").train()
        refused = ""
    except ValueError as error:
        refused = str(error)
    return {
        "refused": refused,
        "whole": whole,
        "resumed": resumed,
        "callbacks": (len(states), len(later)),
        "normed": normed,
        "diverged": diverged,
    }


def work(rank: int, size: int, folder: str) -> None:
    """Train every case as one of `size` processes."""
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=size
    )
    results: dict[str, object] = {name: case.train()[0] for name, case in CASES.items()}
    results["extras"] = extras(rank)
    distributed.destroy_process_group()
    Path(folder, f"{rank}.pickle").write_bytes(pickle.dumps(results))
    os._exit(0)  # as in tests/integrations/processes.py


if __name__ == "__main__":  # under torchrun
    torch.set_num_threads(1)
    with launched() as device:
        state, _ = CASES["BEF, weights"].train(device=device)
        rank = distributed.get_rank() if distributed.is_initialized() else 0
    Path(sys.argv[1], f"{rank}.state").write_bytes(state.to_bytes())
    os._exit(0)
