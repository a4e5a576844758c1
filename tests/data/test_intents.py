"""CLINC150, Banking77 and the features of texts."""

import itertools
import json
import os
import warnings

import pytest
import torch

pytest.importorskip("sklearn")

from lossforge.data.features import featurise
from lossforge.data.intents import banking77, clinc150, clinc150_pairs

# A few requests of CLINC150 and Banking77, shortened lists in the authors' formats.
REQUESTS = {
    "train": [
        ["what expression would i use to say i love you if i were an italian", "translate"],
        ["can you tell me how to say 'i do not speak much spanish', in spanish", "translate"],
        ["i need you to schedule a transfer of 100 dollars from checking to savings", "transfer"],
        ["transfer ten dollars from checking to my savings account", "transfer"],
        ["set a timer for ten minutes please", "timer"],
        ["i want a timer for five minutes", "timer"],
    ],
    "val": [["how do you say hello in italian", "translate"]],
    "test": [["move 50 dollars from savings to checking", "transfer"], ["timer please", "timer"]],
    "oos_train": [["a show on broadway", "oos"]],
    "oos_val": [["who has the best record in the nfl", "oos"]],
    "oos_test": [["how many onions do i have on hand", "oos"]],
}
QUESTIONS = {
    "train": "text,category\n"
    "I am still waiting on my card?,card_arrival\n"
    '"I still have not received my new card,\nI ordered over a week ago.",card_arrival\n'
    "What is the age limit?,age_limit\n",
    "test": "text,category\nHow do I locate my card?,card_arrival\n",
}


@pytest.fixture
def clinc_folder(tmp_path):
    (tmp_path / "clinc150").mkdir()
    (tmp_path / "clinc150" / "data_full.json").write_text(json.dumps(REQUESTS, indent=2))
    return tmp_path


@pytest.fixture
def banking_folder(tmp_path):
    (tmp_path / "banking77").mkdir()
    for name, text in QUESTIONS.items():
        (tmp_path / "banking77" / f"{name}.csv").write_text(text)
    return tmp_path


def test_clinc_from_its_layout(clinc_folder):
    data = clinc150(data_dir=clinc_folder)
    assert data.classes == ("timer", "transfer", "translate")
    assert {part: len(split) for part, split in data.parts().items()} == {
        "train": 6, "test": 2, "val": 1,
    }  # fmt: skip
    assert data.train.given.tolist() == [2, 2, 1, 1, 0, 0]
    assert data.tests["test"].given.tolist() == [1, 0]
    assert data.validation is None


def test_clinc_with_requests_out_of_scope(clinc_folder):
    data = clinc150(out_of_scope=True, data_dir=clinc_folder)
    assert data.classes == ("oos", "timer", "transfer", "translate")
    assert data.train.given.tolist() == [3, 3, 2, 2, 1, 1, 0]
    assert data.tests["test"].given.tolist() == [2, 1, 0]


def three_intents(tmp_path):
    """Requests of one word each: `timer3` of the part train is "timertrain3"."""
    (tmp_path / "clinc150").mkdir()
    intents = {"alarm": 4, "timer": 3, "transfer": 6}
    parts = {
        part: [[f"{name}{part}{i}", name] for name, n in intents.items() for i in range(n)]
        for part in ("train", "test")
    }
    (tmp_path / "clinc150" / "data_full.json").write_text(json.dumps(parts))
    return tmp_path


@pytest.fixture
def joined(tmp_path, monkeypatch):
    """Load pairs with their texts in place of features."""
    kept = {}

    def keep(*texts, features):
        kept.update(zip(("train", "test"), texts, strict=True))
        return [torch.zeros(len(one), 1) for one in texts]

    monkeypatch.setattr("lossforge.data.intents.featurise", keep)
    folder = three_intents(tmp_path)

    def load(**options):
        return clinc150_pairs(data_dir=folder, **options), dict(kept)

    return load


def test_pairs_join_requests_of_two_intents_of_one_part(joined):
    data, texts = joined(classes=3, per_class=12, test_per_class=2)
    assert data.name == "clinc150-pairs"
    assert data.classes == ("alarm + timer", "alarm + transfer", "timer + transfer")
    assert data.train.given.tolist() == [0] * 12 + [1] * 12 + [2] * 12
    assert data.tests["test"].given.tolist() == [0, 0, 1, 1, 2, 2]
    for part, split in data.parts().items():
        for text, label in zip(texts[part], split.given.tolist(), strict=True):
            names = data.classes[label].split(" + ")
            assert [word.rstrip("0123456789") for word in text.split()] == [
                f"{n}{part}" for n in names
            ]


def test_samples_of_a_pair_differ_and_requests_take_turns(joined):
    _, texts = joined(classes=3, per_class=12, test_per_class=1)
    for start, sizes in ((0, (4, 3)), (12, (4, 6)), (24, (3, 6))):
        own = texts["train"][start : start + 12]
        assert len(set(own)) == 12
        for words, size in zip(zip(*map(str.split, own), strict=True), sizes, strict=True):
            for turn in range(0, 12, size):
                assert len(set(words[turn : turn + size])) == size


def test_pairs_are_the_same_each_time_and_fewer_are_among_more(joined):
    first, again = (joined(classes=3, per_class=5, test_per_class=1)[1] for _ in range(2))
    assert first == again
    two, _ = joined(classes=2, per_class=1, test_per_class=1)
    three, _ = joined(classes=3, per_class=1, test_per_class=1)
    assert set(two.classes) < set(three.classes)
    other = joined(classes=3, generator=torch.Generator().manual_seed(5), per_class=5)[1]
    assert other != first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": 4}, "classes must be at most 3, got 4"),
        ({"classes": 1}, "classes must be an integer of 2 or more, got 1"),
        ({"classes": 3, "per_class": 13}, "per_class must be at most 12"),
        ({"classes": 3, "per_class": 2, "test_per_class": 0}, "test_per_class must be"),
    ],
    ids=str,
)
def test_impossible_pairs_are_refused(joined, options, message):
    with pytest.raises(ValueError, match=message):
        joined(**options)


def test_banking_from_its_layout(banking_folder):
    data = banking77(data_dir=banking_folder)
    assert data.classes == ("age_limit", "card_arrival")
    assert data.train.given.tolist() == [1, 1, 0]
    assert data.tests["test"].given.tolist() == [1]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text.replace("[", "(", 3), r"data_full\.json:\d+: "),
        (lambda text: "[]", "must hold an object of lists, got list"),
        (lambda text: text.replace('"val"', '"eval"'), "must have a list 'val', got 'train'"),
        (lambda text: text.replace('"timer"', "7", 1), r"train\[4\] must be \[text, intent\], got"),
        (lambda text: text.replace('"timer please"', '" "'), r"test\[1\]: 'text' must not be"),
        (lambda text: text.replace('"timer please",\n      "timer"', '"timer please", "time"'),
         r"test\[1\]: label 'intent' must be one of the 3 classes .* got 'time'"),
    ],
    ids=["syntax", "kind", "key", "entry", "empty", "unknown"],
)  # fmt: skip
def test_bad_clinc_file_is_named(clinc_folder, damage, message):
    path = clinc_folder / "clinc150" / "data_full.json"
    path.write_text(damage(path.read_text()))
    with pytest.raises(ValueError, match=message) as raised:
        clinc150(data_dir=clinc_folder)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("What is the age limit?", r"train\.csv:5: expected 2 fields as in the header, got 1"),
        ("Well, what is it?,age_limit", r"train\.csv:5: expected 2 fields .*, got 3"),
        ('"Never closed,age_limit', r"train\.csv:5: unexpected end of data"),
        (",age_limit", r"train\.csv:5: 'text' must not be empty"),
        ("What is the age limit?,", r"train\.csv:5: label 'category' must not be empty"),
    ],
)
def test_bad_banking_line_is_named(banking_folder, line, message):
    path = banking_folder / "banking77" / "train.csv"
    path.write_text(path.read_text().replace("What is the age limit?,age_limit", line))
    with pytest.raises(ValueError, match=message):
        banking77(data_dir=banking_folder)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"clinc150: no data_full\.json in"):
        clinc150(data_dir=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"banking77: no train\.csv in"):
        banking77(data_dir=tmp_path)


TEXTS = [text for text, _ in REQUESTS["train"]]


class TestFeaturise:
    def test_rows_have_length_root_of_size_and_unknown_words_none(self):
        train, other = featurise(TEXTS, ["timer zzz", "qqq zzz"])
        assert train.dtype == torch.float32
        assert train.shape == (6, 6)
        torch.testing.assert_close(train.norm(dim=1), torch.full((6,), 6**0.5, dtype=torch.float32))
        assert other[0].norm() > 2
        assert not other[1].any()

    def test_fitted_to_the_first_texts_alone(self):
        alone = featurise(TEXTS)[0]
        torch.testing.assert_close(featurise(TEXTS, ["other words entirely"] * 9)[0], alone)

    def test_deterministic_without_torch_randomness(self):
        before = torch.get_rng_state()
        assert torch.equal(featurise(TEXTS)[0], featurise(TEXTS)[0])
        assert torch.equal(before, torch.get_rng_state())

    def test_number_of_threads_changes_nothing(self):
        limits = pytest.importorskip("threadpoolctl").threadpool_limits
        texts = [f"{first} {second}" for first in TEXTS for second in TEXTS] * 10
        found = []
        for threads in (1, 2):
            with limits(threads, user_api="blas"):
                found.append(featurise(texts)[0])
        assert torch.equal(*found)

    def test_size(self):
        assert featurise(TEXTS, features="tfidf:3")[0].shape == (6, 3)

    @pytest.mark.parametrize(
        "features", ["bert", "tfidf:", "tfidf:0", "tfidf:-3", "embed", "embed:", ""]
    )
    def test_unknown_kind(self, features):
        with pytest.raises(
            ValueError, match="features must be 'tfidf', 'tfidf:SIZE' or 'embed:MODEL'"
        ):
            featurise(TEXTS, features=features)


@pytest.fixture(scope="module")
def encoder_folder(tmp_path_factory):
    """A real sentence-transformers model, tiny and untrained, on disk."""
    pytest.importorskip("sentence_transformers")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the library's own imports
        from sentence_transformers import SentenceTransformer, models
        from transformers import BertConfig, BertModel, BertTokenizerFast
    folder = tmp_path_factory.mktemp("model")
    words = sorted({word for text in TEXTS for word in text.replace("'", "").split()})
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ","]
    (folder / "vocab.txt").write_text("\n".join([*special, *words]))
    config = BertConfig(
        vocab_size=len(special) + len(words), hidden_size=32, num_hidden_layers=2,
        num_attention_heads=2, intermediate_size=64,
    )  # fmt: skip
    BertModel(config).float().save_pretrained(folder / "bert")
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder / "bert")
    transformer = models.Transformer(str(folder / "bert"))
    pooling = models.Pooling(transformer.get_word_embedding_dimension())
    SentenceTransformer(modules=[transformer, pooling]).save(str(folder / "sentence"))
    return folder / "sentence"


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_sentence_embeddings_of_a_model_on_disk(encoder_folder, clinc_folder, monkeypatch):
    monkeypatch.setitem(os.environ, "HF_HUB_OFFLINE", "1")
    before = torch.get_rng_state()
    data = clinc150(features=f"embed:{encoder_folder}", data_dir=clinc_folder)
    assert torch.equal(before, torch.get_rng_state())
    assert data.train.inputs.shape == (6, 32)
    assert data.train.inputs.dtype == torch.float32
    lengths = data.train.inputs.norm(dim=1)
    torch.testing.assert_close(lengths, torch.full((6,), 32**0.5, dtype=torch.float32))

    from sentence_transformers import SentenceTransformer

    expected = torch.from_numpy(SentenceTransformer(str(encoder_folder)).encode(TEXTS))
    cosine = torch.nn.functional.cosine_similarity(data.train.inputs, expected.float())
    torch.testing.assert_close(cosine, torch.ones(6, dtype=torch.float32))


def test_absent_model_folder_is_named():
    pytest.importorskip("sentence_transformers")
    with pytest.raises(
        FileNotFoundError, match=r"\./nowhere: no folder of a sentence-transformers"
    ):
        featurise(TEXTS, features="embed:./nowhere")


@pytest.fixture
def one_thread():
    """Small products on a busy machine spend their time waiting for a second thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_real_clinc(real_data):
    if not (real_data / "clinc150").is_dir():
        pytest.skip(f"{real_data} holds no CLINC150")
    data = clinc150(data_dir=real_data)
    assert data.num_classes == 150
    assert {part: len(split) for part, split in data.parts().items()} == {
        "train": 15000, "val": 3000, "test": 4500,
    }  # fmt: skip
    assert (data.train.given.bincount() == 100).all()
    assert data.train.inputs.shape == (15000, 512)
    assert accuracy(data) > 0.85


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
@pytest.mark.slow
def test_real_pairs(real_data):
    if not (real_data / "clinc150").is_dir():
        pytest.skip(f"{real_data} holds no CLINC150")
    data = clinc150_pairs(features="tfidf:32", data_dir=real_data)
    assert (len(data.train), len(data.tests["test"]), data.num_classes) == (20_000, 5_000, 1_000)
    assert data.classes[0] == "accept_reservations + balance"
    assert len(set(data.classes)) == 1_000
    # by the next class, as asymmetric noise has it, one intent of two changes
    first = [name.split(" + ")[0] for name in data.classes]
    assert sum(a == b for a, b in itertools.pairwise(first)) > 800


def test_real_banking(real_data):
    if not (real_data / "banking77").is_dir():
        pytest.skip(f"{real_data} holds no Banking77")
    data = banking77(data_dir=real_data)
    assert data.num_classes == 77
    assert (len(data.train), len(data.tests["test"])) == (10003, 3080)
    assert (data.tests["test"].given.bincount() == 40).all()
    assert accuracy(data) > 0.83


def accuracy(data) -> float:
    """Of logistic regression, five epochs of stochastic gradient descent."""
    generator = torch.Generator().manual_seed(0)
    inputs, labels, test = data.train.inputs, data.train.given, data.tests["test"]
    weight = torch.zeros(data.num_classes, inputs.shape[1], dtype=torch.float32)
    weight.requires_grad_()
    for _ in range(5):
        for batch in torch.randperm(len(labels), generator=generator).split(64):
            logits = inputs[batch] @ weight.T
            loss = torch.nn.functional.cross_entropy(logits, labels[batch])
            (slope,) = torch.autograd.grad(loss, weight)
            weight.data -= 0.1 * slope
    return ((test.inputs @ weight.T).argmax(1) == test.given).double().mean().item()
