"""Runs that nobody did, with accuracies as a test wants them."""

import hashlib
import json
from pathlib import Path

from lossforge.benchmark import RunSpec
from lossforge.benchmark.archive import encode
from lossforge.benchmark.integrity import sealed
from lossforge.benchmark.records import Grid, Record

LOSSES = (
    *("CE", "FL", "GCE", "SCE", "NCE", "CE+LC", "CEeps+MAE", "FLeps+MAE", "NCE+RCE", "NCE+AUL"),
    *("NCE+AGCE", "ANL-CE", "ANL-FL", "JAL-CE", "JAL-FL", "BEF", "BQF"),
)
EPOCHS = 3
ABOUT = {
    "seconds": 2.0,
    "epoch_seconds": [0.5] * EPOCHS,
    "versions": {"lossforge": "0.1.0", "torch": "2.13.0", "python": "3.11.9"},
    "device": "A CPU",
    "instructions": "AVX2",
    "processes": 1,
    "host": "desk",
    "command": "lossforge train",
}


def expression(loss: str) -> str:
    return f"{loss}(lam=0.9, mu=0.1)" if loss in ("BEF", "BQF") else loss


def metrics(last: float, selected: float, *, top5: bool, tests: tuple[str, ...]) -> list[dict]:
    """The last epoch has one accuracy, the second, which validation selects, another."""
    return [
        {
            "epoch": epoch,
            "lr": 0.1 / epoch,
            "loss": 1 / 3 / epoch,
            "accuracy": 50.0,
            "validation": 30.0 if epoch == 2 else 20.0,
            "tests": {
                test: {
                    "top1": accuracy - place,
                    "top5": accuracy - place + 1 if top5 else None,
                }
                for place, test in enumerate(tests)
            },
            "noise_fit": 10.0 + epoch,
            "noise_recovered": 20.0 + epoch,
            "clean_fit": 30.0 + epoch,
        }
        for epoch, accuracy in ((1, 10.0), (2, selected), (3, last))
    ]


def made(
    loss: str,
    noise: str,
    seed: int,
    last: float,
    *,
    selected: float | None = None,
    data: str = "digits",
    classes: int = 10,
    tests: tuple[str, ...] = ("test",),
    text: str | None = None,
    about: dict | None = None,
    **changes,
) -> Record:
    """One run."""
    decay = {"l1_decay": 5e-5 if loss.startswith(("ANL", "JAL")) else 0.0, "weight_decay": 0.0}
    spec = {
        "data": data,
        "data_options": {},
        "subset": None,
        "model": "mlp",
        "model_options": {"hidden": [256]},
        "weights": None,
        "noise": noise,
        "loss": loss,
        "expression": text or expression(loss),
        "seed": seed,
        "training": {"epochs": EPOCHS, "lr": 0.1, "batch_size": 256, **decay},
        "threads": 1,
        "hold_out": 0.1,
        "keep_features": False,
        "protocol": "own",
    } | changes
    spec = dict(sorted(spec.items()))
    run = RunSpec(**spec).id
    digest = hashlib.sha256(run.encode()).hexdigest()
    numbers = metrics(last, last if selected is None else selected, top5=classes > 5, tests=tests)
    about = ABOUT if about is None else about
    return Record(run, spec, numbers, classes, 0.4, digest, about=about)


def whole_record(spec: RunSpec) -> dict:
    """The content of a record of a run, as `lossforge.benchmark.run.record` makes it."""
    return {
        "id": spec.id,
        "spec": spec.model_dump(),
        "classes": 10,
        "noise_rate": 0.4,
        "transition": [[60, 40], [40, 60]],
        "metrics": metrics(90.0, 91.5, top5=False, tests=("test",)),
        "parameters": "0" * 64,
        "failed": None,
        "loss_parameters": {},
    }


def write(store: Path, records: list[Record], name: str = "results/digits") -> Path:
    """A store as `lossforge bench` leaves it."""
    store.mkdir(parents=True, exist_ok=True)
    for one in records:
        folder = store / one.id
        folder.mkdir()
        names = ("id", "spec", "classes", "noise_rate", "metrics", "parameters", "failed")
        content = {key: getattr(one, key) for key in names} | {"transition": [[1.0]]}
        for file, value in (("spec", one.spec), ("record", sealed(content)), ("about", one.about)):
            (folder / f"{file}.json").write_text(json.dumps(value))
    grid = {"name": name, "title": "A title", "runs": [one.id for one in records]}
    (store / f"grid-{name.replace('/', '-')}-00.json").write_text(json.dumps(grid))
    return store


def archive(folder: Path, name: str, records: list[Record], unfinished=()) -> Path:
    """A packed file as `results.py pack` leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl.gz"
    planned = (*(one.id for one in records), *unfinished)
    grid = Grid(f"results/{name}", f"About {name}", None, planned)
    path.write_bytes(encode(grid, records))
    return path
