"""Labels for CIFAR that come in files of their own: human annotations, frozen synthetic noise."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .pickles import read_npy, read_torch
from .source import File, Labels, PathLike, Source, existing, locate

SAMPLES = 50_000
INSTANCE_RATES = (0.2, 0.4, 0.6)


class HumanLabels(NamedTuple):
    """Labels by annotators and the official ones, in the order of the official files."""

    given: Tensor
    true: Tensor


Name = Literal["cifar10", "cifar100"]
Kind = Literal["aggregate", "random1", "random2", "random3", "worst", "noisy"]


class _Release(NamedTuple):
    file: File
    ordered: str
    order: str
    keys: Mapping[Kind, tuple[str, ...]]  # the files of one release differ in their spelling


_SOURCE = "https://github.com/UCSC-REAL/cifar-10-100n/raw/main/data/"
# The authors publish no checksums; these are of their files as we have them.
RELEASES: Mapping[str, _Release] = {
    "cifar10": _Release(
        File(
            "CIFAR-10_human.pt",
            "sha256:873e69c39cb9b5e97fb6bae2d60bb59b38a5cbc31d2b868f7903dcb2b9dd2310",
            _SOURCE + "CIFAR-10_human.pt",
        ),
        "CIFAR-10_human_ordered.npy",
        "image_order_c10.npy",
        {
            "aggregate": ("aggre_label",),
            "random1": ("random_label1",),
            "random2": ("random_label2",),
            "random3": ("random_label3",),
            "worst": ("worse_label",),
        },
    ),
    "cifar100": _Release(
        File(
            "CIFAR-100_human.pt",
            "sha256:bd2d80409754d420292d622e15e25248ba21e37d27429efac49c8da723f44394",
            _SOURCE + "CIFAR-100_human.pt",
        ),
        "CIFAR-100_human_ordered.npy",
        "image_order_c100.npy",
        {"noisy": ("noisy_label", "noise_label")},
    ),
}


def human_labels(
    name: Name,
    kind: Kind,
    *,
    data_dir: PathLike | None = None,
) -> HumanLabels:
    """Read the human annotations of the CIFAR training images, CIFAR-10N and CIFAR-100N.

    Args:
        name: Which images.
        kind: For CIFAR-10, three annotators "random1" to "random3", their majority "aggregate",
            and "worst", a wrong one of the three wherever there is one; for CIFAR-100, "noisy".
        data_dir: A folder with the authors' `CIFAR-10_human.pt`, or with the pair
            `CIFAR-10_human_ordered.npy` and `image_order_c10.npy`.

    References:
        Wei et al., Learning with Noisy Labels Revisited, ICLR 2022. https://arxiv.org/abs/2110.12088
    """
    release = _release(name)
    if kind not in release.keys:
        raise ValueError(f"kind must be one of {', '.join(release.keys)} for {name}, got {kind!r}")
    path, table = _read(release, data_dir)
    given = next((table[key] for key in release.keys[kind] if key in table), None)
    if given is None or "clean_label" not in table:
        raise ValueError(
            f"{path} lacks clean_label or {release.keys[kind][0]}; it has {', '.join(table)}"
        )
    return HumanLabels(_labels(given, path), _labels(table["clean_label"], path))


def instance_labels(
    name: Name,
    rate: float,
    *,
    data_dir: PathLike | None = None,
) -> Tensor:
    """Read the frozen instance-dependent labels behind the tables of eps-softmax and JAL.

    Their generator cannot reproduce them (it was given randomly augmented images), so these files
    are the only way to the published setting.

    Args:
        name: Which images; labels are in the order of the official training files.
        rate: Share of wrong labels: 0.2, 0.4 or 0.6.
        data_dir: A folder with `cifar10_dependent_0.2.json` and so on, or one that has them in
            `cifar10-idn`.

    References:
        Wang et al., epsilon-Softmax, NeurIPS 2024. https://github.com/cswjl/eps-softmax
    """
    _release(name)
    if rate not in INSTANCE_RATES:
        raise ValueError(f"rate must be 0.2, 0.4 or 0.6, the published ones, got {rate}")
    path = locate(f"{name}-idn", f"{name}_dependent_{rate}.json", data_dir=data_dir)
    try:
        return _labels(json.loads(path.read_text()), path)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno} cannot be read: {error}") from error


def _release(name: Name) -> _Release:
    if name not in RELEASES:
        raise ValueError(f"name must be one of {', '.join(RELEASES)}, got {name!r}")
    return RELEASES[name]


def _read(release: _Release, data_dir: PathLike | None) -> tuple[Path, dict[str, Any]]:
    main = existing("cifar-n", release.file.path, data_dir=data_dir)
    ordered = existing("cifar-n", release.ordered, data_dir=data_dir)
    if main is not None or ordered is None:
        path = main or locate("cifar-n", release.file.path, data_dir=data_dir)
        return path, _table(read_torch(path), path)
    # position i of the ordered file is image order[i] of the official ones
    order = _labels(read_npy(locate("cifar-n", release.order, data_dir=data_dir)), ordered)
    if not torch.equal(order.sort().values, torch.arange(SAMPLES)):
        raise ValueError(f"{release.order} must be a permutation of 0..{SAMPLES - 1}")
    table = _table(read_npy(ordered), ordered)
    return ordered, {
        key: torch.empty_like(order).scatter_(0, order, _labels(values, ordered))
        for key, values in table.items()
    }


def _table(found: Any, path: Path) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise ValueError(f"{path} must hold a dictionary of labels, got {type(found).__name__}")
    return found


def _labels(values: Any, path: Path) -> Tensor:
    array = np.asarray(values)
    if array.shape != (SAMPLES,) or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            f"{path} must hold {SAMPLES} whole numbers per label set, "
            f"got {array.dtype} of shape {array.shape}"
        )
    return torch.from_numpy(array.astype(np.int64))


def _all_human(data_dir: PathLike | None) -> dict[str, Labels]:
    return {
        f"{name} {kind}": human_labels(name, kind, data_dir=data_dir)  # type: ignore[arg-type]
        for name, release in RELEASES.items()
        for kind in release.keys
    }


def _instance_source(name: Name) -> Source:
    def labels(data_dir: PathLike | None) -> dict[str, Labels]:
        try:
            # the official labels come with the human ones, so that no image need be there
            kind: Kind = "noisy" if name == "cifar100" else "worst"
            true = human_labels(name, kind, data_dir=data_dir).true
        except FileNotFoundError:
            true = None
        return {
            str(rate): (instance_labels(name, rate, data_dir=data_dir), true)
            for rate in INSTANCE_RATES
        }

    files = [f"{name}_dependent_{rate}.json" for rate in INSTANCE_RATES]
    return Source(
        f"{name}-idn",
        f"frozen instance-dependent labels of {name.upper()}, rates 0.2, 0.4, 0.6",
        100 if name == "cifar100" else 10,
        labels=labels,
        layout="\n".join([f"{name}-idn/", *(f"  {file}" for file in files)]),
        files=tuple(File(file) for file in files),
        obtain="copy them from datasets/data_dependent/config of "
        "https://github.com/cswjl/eps-softmax",
    )


SOURCES = (
    Source(
        "cifar-n",
        "human labels of the CIFAR training images, CIFAR-10N and CIFAR-100N",
        0,
        labels=_all_human,
        layout="cifar-n/\n  CIFAR-10_human.pt\n  CIFAR-100_human.pt\n"
        "or for each\n  CIFAR-10_human_ordered.npy and image_order_c10.npy",
        files=tuple(release.file for release in RELEASES.values()),
        terms="CC BY-NC 4.0; cite Wei et al., ICLR 2022",
    ),
    _instance_source("cifar10"),
    _instance_source("cifar100"),
)
