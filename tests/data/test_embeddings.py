"""Features from a file or a pretrained network, and what is said of files that do not fit."""

import json
import os
import warnings

import numpy as np
import pytest
import torch
from image_fixtures import save as save_photo
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from lossforge.audit import read_subject
from lossforge.data import embeddings, own
from lossforge.data.embeddings import Sentences, described, embed_texts, read_rows
from lossforge.data.features import scale
from lossforge.data.pipeline import PIPELINES
from lossforge.errors import SpecError

TEXTS = ["my card is lost", "the card was stolen", "send money abroad", "a transfer of money"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path / "cache" / "lossforge" / "features"


def save(path, array):
    np.save(path, array)
    return path


def test_rows_are_read_in_their_order(tmp_path):
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    found = read_rows(save(tmp_path / "a.npy", rows), 4)
    assert found.dtype == torch.float64
    assert found.tolist() == rows.tolist()


@pytest.mark.parametrize(
    ("array", "told"),
    [
        (np.zeros((3, 2)), "a row for each of the 4 rows, in the same order, got 3 rows"),
        (np.zeros(4), "must be numbers of shape (4 rows, features), got float64 of shape (4,)"),
        (np.zeros((4, 2, 2)), "got float64 of shape (4, 2, 2)"),
        (np.zeros((4, 0)), "got float64 of shape (4, 0)"),
        (np.array([["a"]] * 4), "must be numbers of shape (4 rows, features), got <U1"),
        (np.array([[0.0], [1], [np.nan], [2]]), "must be finite, row 2 (counted from 0) is not"),
        (np.array([[np.inf], [1], [1], [2]]), "must be finite, row 0 (counted from 0) is not"),
        (np.array([[{}]] * 4, dtype=object), "must be a .npy file of plain numbers"),
    ],
)
def test_rows_that_do_not_fit_are_told_in_one_line(tmp_path, array, told):
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    with pytest.raises(ValueError, match=r"a\.npy") as error:
        read_rows(tmp_path / "a.npy", 4)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_other_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_rows(tmp_path / "none.npy", 4)
    (tmp_path / "text.npy").write_text("0.5, 0.5")
    with pytest.raises(ValueError, match=r"text\.npy must be a \.npy file of plain numbers"):
        read_rows(tmp_path / "text.npy", 4)
    np.savez(tmp_path / "b.npz", x=np.zeros((4, 2)))
    (tmp_path / "b.npz").rename(tmp_path / "b.npy")
    with pytest.raises(ValueError, match="must hold one array"):
        read_rows(tmp_path / "b.npy", 4)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A real sentence-transformers model, tiny and untrained, on disk."""
    pytest.importorskip("sentence_transformers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library's own imports
        from sentence_transformers import SentenceTransformer, models
        from transformers import BertConfig, BertModel, BertTokenizerFast
    folder = tmp_path_factory.mktemp("model")
    words = sorted({word for text in TEXTS for word in text.split()})
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (folder / "vocab.txt").write_text("\n".join([*special, *words]))
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = BertConfig(vocab_size=len(special) + len(words), intermediate_size=16, **sizes)
    torch.manual_seed(0)
    BertModel(config).float().save_pretrained(folder / "bert")
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder / "bert")
    transformer = models.Transformer(str(folder / "bert"))
    pooling = models.Pooling(transformer.get_word_embedding_dimension())
    SentenceTransformer(modules=[transformer, pooling]).save(str(folder / "sentence"))
    return folder / "sentence"


quiet = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@quiet
def test_texts_are_embedded_once_for_each_model(encoder, cache, monkeypatch):
    told = []
    first = embed_texts(str(encoder), TEXTS, on_progress=lambda *now: told.append(now))
    assert told == [(0, 4), (4, 4)]
    from sentence_transformers import SentenceTransformer

    expected = torch.from_numpy(SentenceTransformer(str(encoder)).encode(TEXTS))
    torch.testing.assert_close(first, expected.float())
    assert [path.name[:12] for path in cache.iterdir()] == ["sentences-1-"]

    def never(*arguments):
        raise AssertionError("kept features are not computed again")

    monkeypatch.setattr(embeddings, "_sentence_encoder", never)
    assert torch.equal(embed_texts(os.path.relpath(encoder), TEXTS), first)
    for other in (TEXTS[::-1], [" ".join(TEXTS[:2]), *TEXTS[2:], ""]):
        with pytest.raises(AssertionError, match="not computed again"):
            embed_texts(str(encoder), other)
    config = encoder / "config_sentence_transformers.json"
    before = config.read_text()
    config.write_text(before + "\n")
    try:
        with pytest.raises(AssertionError, match="not computed again"):
            embed_texts(str(encoder), TEXTS)
    finally:
        config.write_text(before)


def test_a_model_that_cannot_be_loaded_is_told_in_one_line(monkeypatch):
    pytest.importorskip("sentence_transformers")

    def offline(place):
        raise OSError("We couldn't connect to the hub.\nCheck your connection.")

    monkeypatch.setattr(embeddings, "_sentence_encoder", offline)
    with pytest.raises(ValueError, match="'some/name' cannot be loaded: We couldn't") as error:
        embed_texts("some/name", TEXTS)
    assert "\n" not in str(error.value)


def table(tmp_path):
    rows = [f"{TEXTS[n % 4]} {n % 5},{'card' if n % 4 < 2 else 'money'}" for n in range(40)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["message,label", *rows]) + "\n")
    return path


def rebuilt(pipeline):
    """The pipeline after a way through JSON and safetensors."""
    plain, tensors = pipeline.plain()
    kept = load_tensors(save_tensors({name: one.contiguous() for name, one in tensors.items()}))
    return PIPELINES[pipeline.kind].from_plain(json.loads(json.dumps(plain)), kept)


@quiet
def test_own_texts_are_embedded_and_new_ones_alike(encoder, tmp_path):
    path = table(tmp_path)
    data = own.describe(path, features=f"sentence-transformers:{encoder}")
    assert set(data.options) == {"features", "features_hash", "hash"}
    found = own.load(data.place, **data.options)
    assert found.train.inputs.shape == (32, 16)
    lengths = found.train.inputs.norm(dim=1)
    torch.testing.assert_close(lengths, torch.full((32,), 4.0, dtype=torch.float32))
    again = rebuilt(found.pipeline)
    assert again.words == Sentences(str(encoder), data.options["features_hash"])
    rows, _ = again.read(path)
    assert torch.equal(rows, found.pipeline.read(path)[0])
    with pytest.raises(SpecError, match="has changed: its SHA-256 must be 0123"):
        own.load(path, features=data.options["features"], features_hash="0123")


@quiet
def test_an_audit_reads_texts_by_a_model_and_says_so(encoder, tmp_path):
    path = table(tmp_path)
    name = f"sentence-transformers:{encoder}"
    found = read_subject(str(path), features=name)
    texts = [line.rpartition(",")[0] for line in path.read_text().splitlines()[1:]]
    expected = scale(embed_texts(str(encoder), texts))
    torch.testing.assert_close(found.dataset.train.inputs, expected)
    assert found.notes[-1] == f"features {name}"
    assert found.text(0) == texts[0]
    path.write_text("\n".join(["size,label", *(f"{n % 7},{n % 2}" for n in range(60))]) + "\n")
    with pytest.raises(ValueError, match="must have a column of texts for embeddings, got none"):
        read_subject(str(path), features=name)


def test_own_rows_of_a_file_take_the_place_of_columns(tmp_path):
    path = table(tmp_path)
    path.write_text(path.read_text().replace("message", "number"))
    rows = np.random.default_rng(0).normal(3, 7, (40, 5))
    data = own.describe(path, features=str(save(tmp_path / "e.npy", rows)))
    found = own.load(data.place, **data.options)
    order = torch.cat(own.stratify(own.read_own_table(path).given, 0.2))
    inputs = torch.cat([found.train.inputs, found.tests["test"].inputs])
    expected = torch.from_numpy(rows)[order]
    train = expected[:32]
    expected = (expected - train.mean(0)) / train.std(0, correction=0)
    torch.testing.assert_close(inputs.double(), expected, rtol=1e-5, atol=1e-5)
    new, where = rebuilt(found.pipeline).read(tmp_path / "e.npy")
    torch.testing.assert_close(new[order], inputs)
    assert where(2) == "e.npy, row 2"
    save(tmp_path / "e.npy", rows + 1)
    with pytest.raises(SpecError, match=r"e\.npy has changed"):
        own.load(data.place, **data.options)


def test_rows_of_images_are_in_the_order_of_their_paths(tmp_path):
    pytest.importorskip("PIL")
    names = [f"{kind}/{n}.png" for kind in ("b", "b-c") for n in range(5)]
    for place, name in enumerate(names):
        save_photo(tmp_path / "photos" / name, place, height=16, width=16)
    listed = sorted(names)
    assert listed[0] == "b-c/0.png"  # not the order of the classes
    rows = np.arange(10.0)[:, None]
    found = own.load(tmp_path / "photos", features=str(save(tmp_path / "e.npy", rows)))
    labels = torch.cat([found.train.given, found.tests["test"].given])
    inputs = torch.cat([found.train.inputs, found.tests["test"].inputs])[:, 0]
    place = inputs.argsort()
    assert [found.classes[k] for k in labels[place]] == [name.split("/")[0] for name in listed]


@pytest.mark.parametrize(
    ("features", "told"),
    [
        ("patches:8", "features of a table must be a .npy file or 'sentence-transformers:MODEL'"),
        ("timm:resnet18", "features of a table must be a .npy file"),
        ("sentence-transformers:", "must be 'sentence-transformers:MODEL', a folder or a name"),
    ],
)
def test_features_that_a_table_cannot_have_are_refused(tmp_path, features, told):
    with pytest.raises(ValueError, match=told):
        own.load(table(tmp_path), features=features)


def test_a_missing_file_or_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.npy: no such file"):
        described(str(tmp_path / "none.npy"))
    with pytest.raises(FileNotFoundError, match="no folder of a timm model"):
        described("timm:./none")
    assert described("timm:resnet18") == {"features": "timm:resnet18"}
    assert described("patches:100") == {"features": "patches:100"}


def test_images_of_another_shape_are_refused_before_a_network_is_loaded():
    with pytest.raises(ValueError, match=r"images \(N, 1 or 3, height, width\) .*, got shape \(5"):
        embeddings.embed_images("resnet18", torch.zeros(5, 7))
