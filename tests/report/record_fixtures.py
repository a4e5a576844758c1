"""Records as a grid on digits would leave them, made up but of the right shape and size."""

import json
import math
import random
from pathlib import Path

from lossforge.benchmark import RunSpec
from lossforge.benchmark.integrity import sealed
from lossforge.benchmark.records import Record

LOSSES = {
    "CE": "CE()",
    "GCE": "GCE(q=0.7)",
    "JAL-CE": "NCE() + AMSE(a=30)",
    "BEF": "BEF(alpha=-8, beta=-8, gamma=0.5, tau=1, lam=0.9, mu=0.1, br_beta=-8, br_gamma=0.5)",
}
NOISES = ("clean", "symmetric:0.4", "asymmetric:0.4")
FINAL = {"CE": (96, 64, 78), "GCE": (96, 81, 78), "JAL-CE": (97, 94, 77), "BEF": (97, 94.5, 88)}
EPOCHS = 20


def spec(loss: str, noise: str, seed: int, **changes) -> dict:
    decay = {"l1_decay": 5e-5, "weight_decay": 0.0} if loss == "JAL-CE" else {}
    return {
        "data": "digits",
        "data_options": {},
        "subset": None,
        "model": "mlp",
        "model_options": {},
        "weights": None,
        "noise": noise,
        "loss": loss,
        "expression": LOSSES.get(loss, loss),
        "seed": seed,
        "training": {"epochs": EPOCHS, "lr": 0.01, "l1_decay": 0.0, "weight_decay": 1e-4} | decay,
        "threads": 1,
        "hold_out": 0.0,
        "keep_features": False,
        "protocol": "reduced",
    } | changes


def metrics(final: float, noisy: bool, seed: int, name: str, tests=("test",), top5=False) -> list:
    source = random.Random(f"{name} {seed}")
    luck = source.gauss(0, 0.8)
    rows = []
    for epoch in range(1, EPOCHS + 1):
        peak = min(97.5, final + (8 if noisy else 0))
        rise = peak * (1 - math.exp(-epoch / 2))
        fall = (peak - final) * (epoch / EPOCHS) ** 2
        accuracy = round(min(100, max(0, rise - fall + luck + source.gauss(0, 0.4))), 4)
        fit = round(100 - final - 20 * math.exp(-epoch / 6), 4)
        rows.append(
            {
                "epoch": epoch,
                "lr": 0.01,
                "loss": 1 / epoch,
                "accuracy": accuracy,
                "tests": {
                    test: {"top1": accuracy - i, "top5": min(100, accuracy + 3) if top5 else None}
                    for i, test in enumerate(tests)
                },
                "validation": None,
                "noise_fit": max(0.0, fit) if noisy else None,
                "noise_recovered": min(100.0, final) if noisy else None,
                "clean_fit": accuracy,
            }
        )
    return rows


def record(loss: str, noise: str, seed: int, *, final=None, tests=("test",), classes=10, **changes):
    what = spec(loss, noise, seed, **changes)
    made = RunSpec(**what).id
    if final is None:
        final = FINAL.get(loss, (90,) * 3)[NOISES.index(noise) if noise in NOISES else 0]
    rate = 0.4 if noise != "clean" else 0.0
    diagonal = 1 - rate
    matrix = [
        [100 * (diagonal if i == j else rate / (classes - 1)) for j in range(classes)]
        for i in range(classes)
    ]
    return Record(
        id=made,
        spec=what,
        metrics=metrics(final, noise != "clean", seed, loss + noise, tests, classes > 5),
        classes=classes,
        noise_rate=rate,
        parameters="0" * 64,
        about={
            "seconds": 4.0 + len(loss) / 10 + seed / 10,
            "epoch_seconds": [0.2 + len(loss) / 200] * EPOCHS,
            "versions": {"lossforge": "0.1.0", "torch": "2.13.0", "python": "3.11.9"},
            "commit": "b56a772",
            "clean_tree": True,
            "host": "desk",
            "device": "cpu",
            "command": f"lossforge train --noise {noise} --loss '{loss}' --seed {seed}",
        },
        transition=matrix if classes <= 100 else None,
    )


def grid(losses=tuple(LOSSES), noises=NOISES, seeds=(0, 1, 2), **changes) -> list[Record]:
    """4 losses x 3 noises x 3 seeds x 20 epochs, seed by seed as a grid runs them."""
    return [
        record(loss, noise, seed, **changes)
        for seed in seeds
        for noise in noises
        for loss in losses
    ]


def write(store: Path, records: list[Record], **grid_fields) -> Path:
    """Put records into a folder as the store writes them."""
    store.mkdir(parents=True, exist_ok=True)
    for one in records:
        folder = store / one.id
        folder.mkdir()
        names = ("id", "spec", "classes", "noise_rate", "metrics", "parameters")
        content = {name: getattr(one, name) for name in (*names, "transition", "failed")}
        content |= {"tested_as_given": True} if one.tested_as_given else {}
        for file, value in (("spec", one.spec), ("record", sealed(content)), ("about", one.about)):
            (folder / f"{file}.json").write_text(json.dumps(value))
    if grid_fields:
        content = {"runs": [one.id for one in records], **grid_fields}
        (store / "grid-digits.json").write_text(json.dumps(content))
    return store
