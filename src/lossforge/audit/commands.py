"""The commands that do what a recipe does, for the user's own data."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from ..data.own import SUFFIXES
from .recipes import Recipe, Schedule

WIDTH = 88  # with the indent and the backslash, 100 columns
TREATMENTS = {"drop": "--drop", "relabel": "--relabel", "weigh": "--weights"}


def commands(
    recipe: Recipe,
    source: Sequence[str],
    folder: Path | None,
    schedule: Schedule,
) -> tuple[str, ...]:
    """Return the commands for a recipe, or what to do if no command does it.

    Args:
        recipe: The recipe.
        source: What names the data in a command: a path, then options such as --label.
        folder: The folder of the audit; None if nothing is written.
        schedule: How to train.
    """
    data, *options = source or ("",)
    own = bool(data) and (Path(data).suffix.lower() in SUFFIXES or Path(data).is_dir())
    if recipe.suspects is None:
        return (_train(recipe, data, options, schedule),) if data else (_advice(recipe),)
    if not own or folder is None:
        return (_advice(recipe),)
    path = Path(data)
    suffix = ".csv" if path.is_dir() and recipe.suspects == "weigh" else path.suffix
    cleaned = f"{path.stem if path.suffix else path.name}-clean{suffix}"
    clean = ["lossforge", "clean", data, "--audit", str(folder), TREATMENTS[recipe.suspects]]
    first = _wrapped([*clean, "--out", cleaned])
    if recipe.suspects == "weigh" and path.is_dir():  # a list of images, which no command reads
        return first, f"# {_advice(recipe)}"
    return first, _train(recipe, cleaned, options, schedule)


def _train(recipe: Recipe, data: str, options: Sequence[str], schedule: Schedule) -> str:
    settings = schedule.settings(recipe)
    words = ["lossforge", "train", "--data", data, *options, "--loss", recipe.loss]
    words += [*(["--model", "mlp"] if recipe.linear else []), "--epochs", str(settings.epochs)]
    changes = {"optimizer": settings.optimizer, "lr": f"{settings.lr:g}"}
    changes |= {"schedule": settings.schedule, "batch_size": str(settings.batch_size)}
    if recipe.linear:
        changes |= {"weight_decay": f"{settings.weight_decay:.2g}"}
        changes |= {"model_options": json.dumps({"hidden": []})}
    for name, value in changes.items():
        words += ["--set", f"{name}={value}"]
    return _wrapped(words)


def _advice(recipe: Recipe) -> str:
    """Say in words what to do."""
    model = "a logistic regression" if recipe.linear else "the network"
    about = {
        None: f"train {model} with {recipe.loss}"
        + (", and stop when held-out labels are predicted no better" if recipe.early else ""),
        "drop": f"train {model} with {recipe.loss} on the samples that are not in suspects.csv",
        "relabel": f"train {model} with {recipe.loss} on all samples, those in suspects.csv with "
        "the suggested label",
        "weigh": f"train {model} with {recipe.loss} and these weights: a suspect's is the "
        "probability of its label, that of all others is 1",
    }
    return about[recipe.suspects]


def _wrapped(words: Sequence[str]) -> str:
    r"""Join words to a command, with a backslash where it goes on in the next line."""
    parts: list[str] = []
    for word in map(shlex.quote, words):
        # an option and its value stay together
        if parts and parts[-1].startswith("--") and " " not in parts[-1] and word[:2] != "--":
            parts[-1] += f" {word}"
        else:
            parts.append(word)
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + 1 + len(part) > WIDTH:
            lines.append("   ")
        lines[-1] += f" {part}"
    return " \\\n".join(lines)
