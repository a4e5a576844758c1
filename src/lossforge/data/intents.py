"""Short texts labelled by intent: CLINC150, alone and in pairs, and Banking77."""

import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from torch import Generator

from ..errors import check_integer
from .dataset import Dataset, Split, deal
from .features import featurise
from .source import File, PathLike, Source, locate
from .tables import Columns, in_order, read_columns


def clinc150(
    *, features: str = "tfidf", out_of_scope: bool = False, data_dir: PathLike | None = None
) -> Dataset:
    """CLINC150: requests to an assistant, 150 intents, 15,000 for training and 4,500 for testing.

    The authors' 3,000 validation requests have clean labels whatever noise the training labels are
    given, so they are a second test split, "val", and not the noisy `validation` of a `Dataset`.

    Args:
        features: How texts become numbers, see `featurise`.
        out_of_scope: Adds the class "oos" of requests that are none of the intents: 100 to train,
            100 to val, 1,000 to test.
        data_dir: Where `clinc150/data_full.json` lies, instead of the usual places.

    References:
        Larson et al., An Evaluation Dataset for Intent Classification and Out-of-Scope Prediction,
        EMNLP 2019. https://aclanthology.org/D19-1131
    """
    path = locate("clinc150", "data_full.json", data_dir=data_dir)
    source = _read_json(path)
    parts = {}
    for name in ("train", "test", "val"):
        keys = [name, f"oos_{name}"] if out_of_scope else [name]
        parts[name] = _requests(path, source, keys)
    return _dataset("clinc150", parts, "intent", features)


def clinc150_pairs(
    *,
    classes: int = 1000,
    per_class: int = 20,
    test_per_class: int = 5,
    features: str = "tfidf",
    generator: Generator | None = None,
    data_dir: PathLike | None = None,
) -> Dataset:
    """Pairs of CLINC150's intents, two requests joined: 1,000 classes of 20 + 5 samples.

    A class is an unordered pair of different intents: of single words nobody could tell which of
    two requests came first. Its samples join a request of the one intent, by the alphabet, to one
    of the other, both from the same part of CLINC150, so no request is in training and test. All
    samples of a class differ, and a request comes back in a class only after all of its intent had
    a turn.

    This is a way to many classes without another download, and not what anybody asks an assistant.
    Its classes overlap: to know 150 intents is enough for all of them.

    Args:
        classes: How many of the 11,175 pairs, drawn without replacement; fewer are among more.
        per_class: Training samples of each class.
        test_per_class: Test samples of each class.
        features: How texts become numbers, see `featurise`; fitted to the joined training texts.
        generator: Draws other pairs and samples than the fixed ones.
        data_dir: Where `clinc150/data_full.json` lies, instead of the usual places.
    """
    path = locate("clinc150-pairs", "clinc150", "data_full.json", data_dir=data_dir)
    source = _read_json(path)
    draw = torch.Generator().manual_seed(0) if generator is None else generator
    parts = [_requests(path, source, [name]) for name in ("train", "test")]
    intents = in_order(parts[0].names("intent"))
    pairs = _draw_pairs(len(intents), classes, draw)
    counts = {"per_class": per_class, "test_per_class": test_per_class}
    texts = [
        _joined(part, intents, pairs, option, count, draw)
        for part, (option, count) in zip(parts, counts.items(), strict=True)
    ]
    labels = [torch.arange(classes).repeat_interleave(count) for count in counts.values()]
    splits = [
        Split(rows, given, given)
        for rows, given in zip(featurise(*texts, features=features), labels, strict=True)
    ]
    names = tuple(f"{intents[i]} + {intents[j]}" for i, j in pairs)
    return Dataset("clinc150-pairs", names, splits[0], {"test": splits[1]})


def _draw_pairs(intents: int, count: int, generator: Generator) -> list[tuple[int, int]]:
    """Draw pairs i < j without replacement, and sort them."""
    check_integer("classes", count, 2)
    every = list(combinations(range(intents), 2))
    if count > len(every):
        raise ValueError(f"classes must be at most {len(every)}, got {count}")
    chosen = torch.randperm(len(every), generator=generator)[:count]
    return sorted(every[place] for place in chosen.tolist())


def _joined(
    part: Columns,
    intents: tuple[str, ...],
    pairs: Sequence[tuple[int, int]],
    option: str,
    count: int,
    generator: Generator,
) -> list[str]:
    """Join requests of both intents of each pair, `count` times."""
    texts, labels = part.texts("text"), part.labels("intent", intents)
    groups = [(labels == intent).nonzero()[:, 0] for intent in range(len(intents))]
    check_integer(option, count, 1)
    most = min(len(groups[i]) * len(groups[j]) for i, j in pairs)
    if count > most:
        raise ValueError(f"{option} must be at most {most} for different samples, got {count}")
    joined = []
    for pair in pairs:
        own = [groups[intent] for intent in pair]
        turns = deal([len(group) for group in own], count)
        first, second = (
            group[torch.randperm(len(group), generator=generator)][turn].tolist()
            for group, turn in zip(own, turns, strict=True)
        )
        joined += [f"{texts[i]} {texts[j]}" for i, j in zip(first, second, strict=True)]
    return joined


def banking77(*, features: str = "tfidf", data_dir: PathLike | None = None) -> Dataset:
    """Banking77: questions of bank customers, 77 intents, 10,003 for training, 3,080 for testing.

    Args:
        features: How texts become numbers, see `featurise`.
        data_dir: Where `banking77/train.csv` and `test.csv` lie, instead of the usual places.

    References:
        Casanueva et al., Efficient Intent Detection with Dual Sentence Encoders, NLP for
        Conversational AI 2020. https://aclanthology.org/2020.nlp4convai-1.5
    """
    parts = {
        name: read_columns(locate("banking77", f"{name}.csv", data_dir=data_dir))
        for name in ("train", "test")
    }
    return _dataset("banking77", parts, "category", features)


def _dataset(name: str, parts: Mapping[str, Columns], label: str, features: str) -> Dataset:
    """Make features of the column "text" of each part, fitted to the first, the training part."""
    classes = in_order(parts["train"].names(label))
    texts = [part.texts("text") for part in parts.values()]
    splits = {}
    for part, rows in zip(parts, featurise(*texts, features=features), strict=True):
        labels = parts[part].labels(label, classes)
        splits[part] = Split(rows, labels, labels)
    return Dataset(name, classes, splits.pop("train"), splits)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        source = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}: {error.msg}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be UTF-8 text: {error}") from error
    if not isinstance(source, dict):
        raise ValueError(f"{path} must hold an object of lists, got {type(source).__name__}")
    return source


def _requests(path: Path, source: Mapping[str, Any], keys: list[str]) -> Columns:
    """Read the [text, intent] entries under the keys, in order."""
    texts, intents, places = [], [], []
    for key in keys:
        if not isinstance(source.get(key), list):
            raise ValueError(f"{path} must have a list {key!r}, got {', '.join(map(repr, source))}")
        for number, entry in enumerate(source[key]):
            place = f"{path}: {key}[{number}]"
            if not (
                isinstance(entry, list)
                and len(entry) == 2
                and all(isinstance(field, str) for field in entry)
            ):
                raise ValueError(f"{place} must be [text, intent], got {entry!r}")
            texts.append(entry[0])
            intents.append(entry[1])
            places.append(place)
    return Columns(path, {"text": texts, "intent": intents}, places.__getitem__)


# Neither text publishes checksums; these are of the files as we have them.
_CLINC = "https://raw.githubusercontent.com/clinc/oos-eval/master/data/data_full.json"
_BANKING = (
    "https://raw.githubusercontent.com/PolyAI-LDN/task-specific-datasets/master/banking_data/"
)

_CLINC_SUM = "sha256:36923c3705a59e08fe9c3883d8bc2dd966ef93e22cb78ac41171782a698d56e0"

SOURCES = (
    Source(
        "clinc150",
        "requests to an assistant, text, 150 intents",
        150,
        clinc150,
        counts={"train": 15_000, "test": 4_500, "val": 3_000},
        layout="clinc150/\n  data_full.json",
        files=(File("data_full.json", _CLINC_SUM, _CLINC),),
        terms="CC BY 3.0; cite Larson et al., EMNLP 2019",
    ),
    Source(
        "clinc150-pairs",
        "two requests of clinc150 joined, text, 1,000 pairs of intents",
        1000,
        clinc150_pairs,
        counts={"train": 20_000, "test": 5_000},
        layout="clinc150/\n  data_full.json",
        files=(File("clinc150/data_full.json", _CLINC_SUM, _CLINC),),
        terms="CC BY 3.0; cite Larson et al., EMNLP 2019",
    ),
    Source(
        "banking77",
        "questions to a bank, text, 77 intents",
        77,
        banking77,
        counts={"train": 10_003, "test": 3_080},
        layout="banking77/\n  train.csv   text,category\n  test.csv",
        files=(
            File(
                "train.csv",
                "sha256:b06e26ac675513959a63135f11b94ea7786ed02da65db93a5650d8838cbc664b",
                _BANKING + "train.csv",
            ),
            File(
                "test.csv",
                "sha256:d12d6e3bc4c3103966ae786dc435913c0c563dfa328f5a3646d0e62cfeeb474d",
                _BANKING + "test.csv",
            ),
        ),
        terms="CC BY 4.0; cite Casanueva et al., 2020",
    ),
)
