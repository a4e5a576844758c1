"""The section on how the runs were done, from their specs."""

from collections.abc import Mapping, Sequence
from typing import Any

from results_data import (
    HELD_OUT_DATA,
    HELD_OUT_NOISE,
    MANY,
    MARK,
    OURS,
    Archive,
    depend_on_noise,
    folded,
    listed,
    used_kernel,
)

from lossforge.benchmark.records import Record
from lossforge.report.formats import markdown
from lossforge.report.results import OF_THE_LOSS, noise_label
from lossforge.report.tables import Field, Sheet

HEAD = [
    "grid",
    "classes",
    "network",
    "data",
    "training",
    "noisy validation",
    "noise",
    "losses",
    "seeds",
    "runs",
]
SHOWN = ("epochs", "batch_size", "optimizer", "lr", "schedule", "clip", "fused")


def method(archives: Mapping[str, Archive]) -> list[str]:
    """Write the section."""
    records = [record for archive in archives.values() for record in archive.records]
    hours = sum(archive.core_hours for archive in archives.values())
    noises = listed([noise_label(noise) for noise in HELD_OUT_NOISE])
    whole = [*HELD_OUT_DATA, *([MANY] if MANY in archives else [])]
    held = f"all of {listed(whole)}, and {noises} everywhere"
    points = [
        "For each seed, all losses have the same initial weights, noisy labels and batches, so "
        "runs are compared in pairs. Only the loss differs, and the decay that some losses were "
        "published with; the tables say where.",
        "Accuracy is measured on the true labels of the test set, after the last epoch and after "
        "the epoch that is best on noisy validation labels: training samples that are held out "
        "with their noise. No test label was used to choose an epoch.",
        "Baselines use the parameters published for CIFAR-10 up to 10 classes and for CIFAR-100 "
        "above: the nearest number of classes. Their authors found them on other data. BEF and "
        "BQF use the defaults of this package.",
        "No parameter was tuned for a setting: 0 trials for every loss. But the defaults of BEF "
        f"and BQF were searched on settings without the mark {MARK}, which favours them there. "
        f"Settings with the mark ({held}) were kept out of every search: trust these first.",
        *_noise_is_given(records),
        *_ours(records),
        "Parameters not given there follow from the number of classes. Runs of up to 150 classes "
        "on other than patch features were made when the text of the default still had mu=0.1, and "
        "got their present text and id afterwards; the loss is the same. The runs of BEF and BQF "
        "on digits-triples were repeated after their default for more than 150 classes changed "
        "([how](defaults.md)). They keep their ids; the core-hours are those of the first runs.",
        f"Made on {_circumstances(records)}; {len(records):,} runs, {hours:.1f} core-hours in all. "
        + _kernel_sentence(records),
    ]
    lines = ["## How it was done", "", *(f"- {point}" for point in points), ""]
    lines += folded("All grids", [markdown(_sheet(archives)), ""])
    lines += [*_commands(), *folded("Parameters of every loss", _parameters(archives))]
    return lines


def _noise_is_given(records: Sequence[Record]) -> list[str]:
    """Say which losses have parameters that depend on the noise."""
    depend = depend_on_noise(records)
    if not depend:
        return []
    return [
        f"The published parameters of {listed(depend)} depend on the type or the rate of the "
        "noise (below), which is given here; users must know or estimate it."
    ]


def _ours(records: Sequence[Record]) -> list[str]:
    """Write the parameters of BEF and BQF."""
    points = []
    for loss in OURS:
        runs = [record for record in records if record.spec["loss"] == loss]
        found: dict[str, dict[str, None]] = {}
        for run in runs:
            found.setdefault(run.spec["expression"], {})[run.spec["data"]] = None
        if len(found) == 1:
            points.append(f"{loss} is `{next(iter(found))}` everywhere.")
        elif found:
            parts = [f"`{text}` on {listed(list(data))}" for text, data in found.items()]
            points.append(f"{loss} is {'; '.join(parts)}.")
    return points


def _circumstances(records: Sequence[Record]) -> str:
    found: dict[str, dict[str, None]] = {}
    for record in records:
        known = {"CPU": record.about.get("device"), **record.about.get("versions", {})}
        for name, value in known.items():
            if value is not None:
                found.setdefault(name, {})[str(value)] = None
    cpu = " and ".join(found.pop("CPU", {})) or "an unknown CPU"
    versions = [f"{name} {' and '.join(values)}" for name, values in found.items()]
    return ", ".join([cpu, *versions])


def _kernel_sentence(records: Sequence[Record]) -> str:
    """Say how many runs the kernel was used in, as the last bits depend on it."""
    count = sum(map(used_kernel, records))
    if not count:
        return "Losses were computed by torch operations."
    return (
        f"In {count:,} runs the C kernel computed the losses that it supports, in all others "
        "torch operations did."
    )


def _sheet(archives: Mapping[str, Archive]) -> Sheet:
    names, rows = [], []
    for archive in archives.values():
        parts: dict[tuple[str, int], list[Record]] = {}
        for record in archive.records:
            parts.setdefault((record.spec["data"], record.classes), []).append(record)
        for (data, classes), runs in parts.items():
            spec = runs[0].spec
            names.append(archive.name if archive.name == data else f"{archive.name}, {data}")
            noises = dict.fromkeys(run.spec["noise"] for run in runs)
            texts = [
                f"{classes:,}",
                _with_options(spec["model"], spec["model_options"]),
                _with_options(data, spec["data_options"], spec["subset"]),
                _training(spec["training"]),
                f"{100 * spec['hold_out']:g} %",
                ", ".join(noise_label(noise) for noise in noises),
                str(len({run.spec["loss"] for run in runs})),
                ", ".join(map(str, sorted({run.spec["seed"] for run in runs}))),
                f"{len(runs):,}",
            ]
            rows.append([Field(text) for text in texts])
    return Sheet("Runs", HEAD, names, rows)


def _with_options(name: str, options: Mapping[str, Any], subset: int | None = None) -> str:
    words = [f"{key} {value}" for key, value in options.items()]
    words += [f"{subset:,} samples"] if subset else []
    return f"{name} ({', '.join(words)})" if words else name


def _training(training: Mapping[str, Any]) -> str:
    names = [name for name in SHOWN if training.get(name) not in (None, False)]
    return ", ".join(f"{name.replace('_', ' ')} {training[name]}" for name in names)


def _commands() -> list[str]:
    return [
        "These commands repeat the runs; killed ones are resumed:",
        "",
        "```",
        "make results                             # all, compared with the committed ones",
        'make results ARGS="digits"               # one grid',
        'make results ARGS="digits --sample 10"   # some of its runs',
        "make docs-results                        # this page from results/*.jsonl.gz",
        "```",
        "",
        "The runs are committed as `results/*.jsonl.gz`, with the SHA-256 of the final weights "
        "and the accuracies of every epoch of each; `lossforge report results/NAME.jsonl.gz` "
        "reads such a file. With the same CPU model, instructions, torch version and kernel build, "
        "`make results` requires the same bits. Elsewhere 95 % intervals must contain 0: Welch's "
        "of the shift of every cell with two seeds or more, that of the mean shift of cells with "
        "one seed, and jointly (Bonferroni) those of the mean shift of every loss over the "
        "settings, of every setting over the losses, and of all cells. Of many cells, some fall "
        "outside by chance; a shift of a loss in all settings is found from about half a point on.",
        "",
    ]


def _parameters(archives: Mapping[str, Archive]) -> list[str]:
    """List the parameters of every loss."""
    lines = []
    for archive in archives.values():
        found: dict[tuple[str, str, str], list[Record]] = {}
        for run in archive.records:
            training = run.spec["training"]
            decay = ", ".join(
                f"{name} {training[name]:g}" for name in OF_THE_LOSS if training.get(name)
            )
            found.setdefault((run.spec["loss"], run.spec["expression"], decay), []).append(run)
        order = list(dict.fromkeys(run.spec["loss"] for run in archive.records))
        found = dict(sorted(found.items(), key=lambda item: order.index(item[0][0])))
        rows = [
            [Field(expression, code=True), Field(decay or "none"), Field(_used(runs, archive))]
            for (_, expression, decay), runs in found.items()
        ]
        head, names = ["row", "loss", "decay", "used for"], [loss for loss, _, _ in found]
        lines += [markdown(Sheet(archive.name, head, names, rows)), ""]
    return lines


def _used(runs: Sequence[Record], archive: Archive) -> str:
    """Say under which noise, and with how many classes, these runs of an archive were done."""
    classes = {run.classes for run in runs}
    alike = [run for run in archive.records if run.classes in classes]
    noises = dict.fromkeys(noise_label(run.spec["noise"]) for run in runs)
    parts = []
    if len(alike) < len(archive.records):
        parts.append(f"{listed([f'{number:,}' for number in sorted(classes)])} classes")
    if len(noises) < len({run.spec["noise"] for run in alike}):
        parts.append(", ".join(noises))
    return ": ".join(parts) or "all"
