"""A user's own table, folder or arrays: read as an audit reads them, and again for new samples."""

import csv
import json

import numpy as np
import pytest
import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from lossforge.audit import read_subject
from lossforge.data import own, patches
from lossforge.data.features import featurise
from lossforge.data.pipeline import PIPELINES
from lossforge.data.tables import encode, read_columns
from lossforge.errors import SpecError

image = pytest.importorskip("PIL.Image")

SENTENCES = {
    "refund": ("please give my money back {}", "i want a refund for order {}"),
    "login": ("cannot sign in to account {}", "password {} does not work at all"),
}


def write(path, header, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


@pytest.fixture
def tickets(tmp_path):
    """Forty sentences of two classes, every fifth label wrong, with ids, numbers and categories."""
    rows = []
    for n in range(40):
        true = ("refund", "login")[n % 2]
        given = true if n % 5 else ("login", "refund")[n % 2]
        text = SENTENCES[true][n % 4 // 2].format(f"number{n % 7}")
        rows.append((f"T-{n * 3}", text, n * 0.5, ("web", "mail", "phone")[n % 3], given, true))
    header = ("id", "message", "minutes", "channel", "category", "truth")
    return write(tmp_path / "tickets.csv", header, rows)


def test_a_table_has_the_features_that_its_columns_are_read_as(tickets):
    found = own.load(tickets, label="category", true="truth")
    assert found.name == "tickets.csv"
    assert found.classes == ("login", "refund")
    assert (len(found.train), len(found.tests["test"])) == (32, 8)
    whole = read_columns(tickets)
    train = own.stratify(whole.labels("category", found.classes), 0.2)[0]
    part = whole.take(train)
    texts, *_ = featurise(part.texts("message"))
    numbers, *_ = encode(["minutes", "channel"], part)
    assert torch.equal(found.train.inputs, torch.cat([texts, numbers], 1))
    assert found.train.given.tolist() == part.labels("category", found.classes).tolist()
    assert found.train.true.tolist() == part.labels("truth", found.classes).tolist()
    assert (found.train.given != found.train.true).any()


def test_the_label_column_and_the_roles_are_those_of_an_audit(tickets):
    guessed = own.read_own_table(tickets)
    assert guessed.label == "category"
    assert "truth" in guessed.others  # nobody said that it is no feature
    said = own.read_own_table(tickets, true="truth")
    assert (said.texts, said.others) == (("message",), ("minutes", "channel"))
    assert any("'id'" in note for note in said.notes)
    subject = read_subject(str(tickets), columns=["message"])
    table = own.read_own_table(tickets, columns=["message"])
    assert subject.notes == table.notes
    assert torch.equal(subject.given, table.given)


def rebuilt(pipeline):
    """The pipeline after a way through JSON and safetensors."""
    plain, tensors = pipeline.plain()
    content = save_tensors({name: one.contiguous() for name, one in tensors.items()} or {})
    plain = json.loads(json.dumps(plain))
    return PIPELINES[pipeline.kind].from_plain(plain, load_tensors(content))


def test_a_table_is_read_alike_after_a_way_through_plain_files(tickets, tmp_path):
    pipeline = own.load(tickets, true="truth").pipeline
    again = rebuilt(pipeline)
    columns = ("message", "minutes", "channel")
    new = write(
        tmp_path / "new.csv",
        columns,
        [("my refund please", 3, "web"), ("words unheard of", 100.5, "pigeon")],
    )
    rows, where = again.read(new)
    assert torch.equal(rows, pipeline.read(new)[0])
    assert where(1) == f"{new}:3"
    assert rows[1, -3:].tolist() == [0, 0, 0]  # a category that training had not
    other = write(tmp_path / "other.csv", ("message", "channel"), [("a refund", "web")])
    with pytest.raises(ValueError, match="has no column 'minutes'"):
        again.read(other)


@pytest.fixture
def photos(tmp_path):
    """Two classes of small pictures, bright above or bright below."""
    chance = np.random.default_rng(0)
    for n in range(24):
        pixels = chance.integers(0, 90, (12, 12, 3)).astype(np.uint8)
        name = ("above", "below")[n % 2]
        pixels[: 6 if n % 2 == 0 else 12, :, :][-6:] += 150
        folder = tmp_path / "photos" / name
        folder.mkdir(parents=True, exist_ok=True)
        image.fromarray(pixels).save(folder / f"{n}.png")
    return tmp_path / "photos"


def test_a_folder_is_read_alike_after_a_way_through_plain_files(photos):
    found = own.load(photos, size=12, features="patches:8")
    assert found.name == "photos/"
    assert found.classes == ("above", "below")
    assert found.train.inputs.shape == (20, 64)
    torch.testing.assert_close(
        found.train.inputs.mean(0), torch.zeros(64, dtype=torch.float32), atol=1e-4, rtol=0
    )
    again = rebuilt(found.pipeline)
    rows, where = again.read(photos)
    assert torch.equal(rows, found.pipeline.read(photos)[0])
    assert where(0) == str(photos / "above" / "0.png")
    one, _ = again.read(photos / "below" / "1.png")
    torch.testing.assert_close(one[0], rows[12])
    with pytest.raises(FileNotFoundError, match="no image there"):
        again.read(photos / "nothing")


def test_arrays_are_read_with_their_truth(tmp_path):
    chance = np.random.default_rng(0)
    y = np.array(["cat", "dog"] * 15)
    x = chance.normal(3, 5, (30, 4))
    np.savez(tmp_path / "a.npz", x=x, y=y[::-1], true=y)
    found = own.load(tmp_path / "a.npz")
    assert found.classes == ("cat", "dog")
    assert (found.train.given != found.train.true).all()
    torch.testing.assert_close(
        found.train.inputs.mean(0), torch.zeros(4, dtype=torch.float32), atol=1e-5, rtol=0
    )
    again = rebuilt(found.pipeline)
    torch.testing.assert_close(again.read(tmp_path / "a.npz")[0], found.pipeline.encode(
        torch.from_numpy(x)))  # fmt: skip
    assert own.load(tmp_path / "a.npz", label="true").train.true is not None
    subject = read_subject(str(tmp_path / "a.npz"))
    assert subject.dataset.is_blind
    assert subject.where(3) == "a.npz, row 3"


def draw_pixels(n=30):
    return np.random.default_rng(0).integers(0, 256, (n, 3, 12, 12), dtype=np.uint8)


@pytest.mark.parametrize("change", [np.int64, np.uint16, lambda x: x / np.float32(255)])
def test_images_in_an_array_are_the_same_whatever_their_type(tmp_path, change):
    pixels, y = draw_pixels(), np.arange(30) % 2
    np.savez(tmp_path / "a.npz", x=pixels, y=y)
    np.savez(tmp_path / "b.npz", x=change(pixels), y=y)
    first, other = (own.load(tmp_path / name).train.inputs for name in ("a.npz", "b.npz"))
    assert torch.equal(first, other)


def test_an_interrupt_ends_learning_and_coding_of_images(monkeypatch):
    """They take minutes on a large folder, and signals are deferred meanwhile."""

    def coding(*arguments):
        raise AssertionError("learning was not ended")

    images = torch.from_numpy(draw_pixels(100))
    pipeline = own.image_pipeline(images, "patches:2", 12)

    def stop():
        raise KeyboardInterrupt

    monkeypatch.setattr(patches.interrupts, "check", stop)
    with pytest.raises(KeyboardInterrupt):
        pipeline.encode(images)
    monkeypatch.setattr(patches, "code_all", coding)
    with pytest.raises(KeyboardInterrupt):
        own.image_pipeline(images, "patches:2", 12)


@pytest.mark.parametrize(
    ("arrays", "match"),
    [
        ({"y": np.zeros(3, int)}, "must have inputs under x or X"),
        ({"x": np.zeros((3, 2))}, "must have labels under label or labels"),
        ({"x": np.zeros((3, 2)), "y": np.zeros(4, int)}, "labels must be 3 whole numbers"),
        ({"x": np.zeros((3, 2)), "y": np.zeros(3)}, "labels must be 3 whole numbers or texts"),
        ({"x": np.full((3, 2), np.nan), "y": np.arange(3)}, "no missing or infinite value"),
        ({"x": np.zeros((3, 2)), "y": np.zeros(3, int)}, "two classes or more, got only '0'"),
        ({"x": np.array([{}, {}], object), "y": np.arange(2)}, "must be a .npz file of plain"),
        ({"x": np.zeros((4, 16, 16, 3)), "y": np.arange(4) % 2}, r"transpose\(0, 3, 1, 2\)"),
        ({"x": np.full((4, 8, 8), 2.5), "y": np.arange(4) % 2}, "0 to 1, got float64 from 2.5 to"),
        ({"x": np.full((4, 8, 8), -1), "y": np.arange(4) % 2}, "0 to 255 or floats .* from -1"),
    ],
)
def test_arrays_that_cannot_be_used_are_told_in_one_line(tmp_path, arrays, match):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match=match) as told:
        own.load(tmp_path / "a.npz")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("tickets.csv", "tickets"),
        ("tickets.v2.parquet", "tickets.v2"),
        ("my photos/", "my-photos"),
        ("photos.2026/", "photos.2026"),
        ("(.csv", "data"),
    ],
)
def test_a_folder_can_be_named_after_the_data(name, stem):
    assert own.OwnData(name, f"/somewhere/{name}").stem == stem


@pytest.mark.parametrize(
    "times",
    [
        lambda n: f"2026-03-{1 + n % 28:02} 09:{n % 60:02}:00",
        lambda n: f"2026-03-{1 + n % 28:02}T09:{n % 60:02}:00.123456Z" if n % 7 else "",
        lambda n: f"2026-{1 + n % 12:02}-{1 + n % 28:02}",
    ],
)
def test_times_are_left_out_unless_they_are_named(tmp_path, times):
    path = tmp_path / "times.csv"
    kinds = ["fruit", "metal"]
    rows = [f"{times(n)},an {kinds[n % 2]} of kind {n},{kinds[n % 2]}" for n in range(60)]
    path.write_text("\n".join(["created,message,label", *rows]))
    found = own.read_own_table(path)
    assert "left out: 'created' holds dates or times" in found.notes
    assert found.texts == ("message",)
    assert found.ids == ()
    assert not any("repeats" in note for note in found.notes)
    named = own.read_own_table(path, columns=["created", "message"])
    assert "created" in (*named.texts, *named.others)


def test_sentences_with_dates_are_text(tmp_path):
    path = tmp_path / "sentences.csv"
    rows = [f"2026-03-{1 + n % 28:02} was day {n},{'ab'[n % 2]}" for n in range(60)]
    path.write_text("\n".join(["message,label", *rows]))
    assert own.read_own_table(path).texts == ("message",)


def test_other_content_has_another_hash_and_is_refused(tickets, photos):
    described = own.describe(tickets, label="category", true=None)
    assert described.name == "tickets.csv"
    assert described.place == str(tickets.resolve())
    assert set(described.options) == {"label", "hash"}
    own.load(described.place, **described.options)
    tickets.write_text(tickets.read_text().replace("phone", "fax"))
    with pytest.raises(SpecError, match=r"tickets\.csv has changed"):
        own.load(described.place, **described.options)
    before = own.describe(photos)
    assert before.name == "photos/"
    (photos / "above" / "0.png").rename(photos / "below" / "0.png")
    assert own.describe(photos).options != before.options


def test_what_is_no_data_is_told(tmp_path):
    with pytest.raises(SpecError, match="neither a data set"):
        own.describe(tmp_path / "nothing.csv")
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(SpecError, match=r"must be a folder or a file of type \.csv"):
        own.describe(tmp_path / "notes.txt")
    (tmp_path / "photos").mkdir()
    with pytest.raises(SpecError, match="a folder has its labels as folders, got label='a'"):
        own.load(tmp_path / "photos", label="a")


def weighted(path, values):
    """The same table with a column of weights."""
    header, *rows = path.read_text().splitlines()
    rows = [f"{row},{value}" for row, value in zip(rows, values, strict=True)]
    path.write_text("\n".join([f"{header},label_weight", *rows]) + "\n")
    return path


def test_weights_of_clean_are_found_and_can_be_left_out(tickets):
    before = own.describe(tickets, label="category", true="truth")
    assert "weight" not in before.options  # the id of such a run stays as it was
    values = [round(0.1 + 0.02 * n, 2) for n in range(40)]
    weighted(tickets, values)
    data = own.describe(tickets, label="category", true="truth")
    assert data.options["weight"] == "label_weight"
    found = own.load(data.place, **data.options)
    rows = own.stratify(own.read_own_table(tickets, label="category").given, 0.2)
    for split, part in zip((found.train, found.tests["test"]), rows, strict=True):
        assert split.weight.tolist() == pytest.approx([values[row] for row in part.tolist()])
    without = own.describe(tickets, label="category", true="truth", weight="none")
    assert set(without.options) == {"label", "true", "hash"}
    plain = own.load(without.place, **without.options)
    assert plain.train.weight is None
    assert torch.equal(plain.train.inputs, found.train.inputs)  # a weight is no feature


def test_any_column_of_numbers_may_hold_the_weights(tickets):
    found = own.load(tickets, label="category", true="truth", weight="minutes")
    assert found.train.weight.max() > 1
    plain = own.load(tickets, label="category", true="truth")
    assert found.train.inputs.shape[1] == plain.train.inputs.shape[1] - 1
    assert found.with_noise(found.train.given).train.weight is found.train.weight
    held = found.hold_out(0.25, generator=torch.Generator().manual_seed(0))
    assert len(held.train.weight) == len(held.train) == 24


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (
            [1.0] * 39 + [-0.5],
            r"tickets\.csv:41: the weight in 'label_weight' must be .*, got -0.5",
        ),
        ([1.0, "inf"] + [1.0] * 38, r"tickets\.csv:3: the weight in 'label_weight' must be a num"),
        ([1.0, ""] + [1.0] * 38, r"tickets\.csv:3: .* must be a number of 0 or more, got nan"),
        (["much"] * 40, "the weights in 'label_weight' must be numbers"),
        ([0] * 40, "a weight in 'label_weight' must be positive, all are 0"),
    ],
)
def test_weights_that_cannot_be_used_are_named(tickets, values, told):
    weighted(tickets, values)
    with pytest.raises(ValueError, match=told):
        own.load(tickets, label="category", true="truth", weight="label_weight")


def test_arrays_may_have_weights_and_folders_may_not(tmp_path, photos):
    x, y = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 3
    np.savez(tmp_path / "a.npz", x=x, y=y, label_weight=np.linspace(0, 1, 30))
    data = own.describe(tmp_path / "a.npz")
    assert data.options["weight"] == "label_weight"
    assert own.load(data.place, **data.options).train.weight.dtype == torch.float64
    with pytest.raises(ValueError, match="must have weights under importance"):
        own.load(tmp_path / "a.npz", weight="importance")
    np.savez(tmp_path / "b.npz", x=x, y=y, w=np.ones(29))
    with pytest.raises(ValueError, match="weights must be 30 numbers"):
        own.load(tmp_path / "b.npz", weight="w")
    with pytest.raises(SpecError, match="a folder has its labels as folders, got weight='w'"):
        own.load(photos, weight="w")


@pytest.mark.parametrize("damage", ["cut", "array"])
def test_a_file_that_holds_no_arrays_is_named(tmp_path, damage):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.zeros((20, 3)), y=np.arange(20) % 2)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:200])
    else:
        with path.open("wb") as file:
            np.save(file, np.zeros((20, 3)))
    with pytest.raises(ValueError, match=r"must be a \.npz file of plain arrays"):
        own.load(path)


@pytest.mark.parametrize("row", range(10))
def test_a_word_among_numbers_makes_categories_wherever_it_stands(tmp_path, row):
    """Also in a row that is set aside for testing."""
    rows = [f"{n % 3},{'unknown' if n == row else n % 4}" for n in range(30)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["label,size", *rows]) + "\n")
    assert own.load(path).train.inputs.shape[1] in (4, 5)


def test_given_and_true_labels_are_two_columns(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("size,label\n" + "".join(f"{n % 4},{n % 2}\n" for n in range(20)))
    with pytest.raises(ValueError, match="must be two columns, got 'label' twice"):
        own.load(path, label="label", true="label")


def test_a_trained_pipeline_takes_cells_without_a_value(tmp_path):
    rows = [(i % 13, "xyz"[i % 3], "ab"[i % 2]) for i in range(60)]
    path = write(tmp_path / "t.csv", ("size", "kind", "label"), rows)
    pipeline = own.load(path, label="label").pipeline
    new = tmp_path / "new.csv"
    new.write_text("size,kind\n,x\n3,\n")
    with pytest.warns(UserWarning, match="is missing in 1 of 2 rows") as warned:
        inputs, _ = pipeline.read(new)
    assert [str(one.message) for one in warned] == [
        "'size' is missing in 1 of 2 rows, the first at new.csv:2; it counts as the mean there",
        "'kind' is missing in 1 of 2 rows, the first at new.csv:3; it counts as none of its "
        "values there",
    ]
    assert inputs[0].tolist() == [0, 1, 0, 0]
    assert inputs[1, 1:].tolist() == [0, 0, 0]
    new.write_text("size,kind\nlarge,x\n")
    with pytest.raises(ValueError, match=r"new\.csv:2: 'size' must be a number, as all are"):
        pipeline.read(new)


def test_a_column_without_a_value_in_the_training_rows_has_no_features(tmp_path):
    rows = [(i % 13, "", "ab"[i // 2 % 2]) for i in range(60)]
    path = write(tmp_path / "t.csv", ("size", "rare", "label"), rows)
    given = torch.tensor([i // 2 % 2 for i in range(60)])
    held_out = own.stratify(given, own.TEST_FRACTION)[1].tolist()
    rows = [(size, 5000 if i in held_out else "", label) for i, (size, _, label) in enumerate(rows)]
    write(path, ("size", "rare", "label"), rows)
    found = own.load(path, label="label", columns=["size", "rare"])
    assert found.tests["test"].inputs.shape[1] == 1
    new = tmp_path / "new.csv"
    new.write_text("size\n3\n")
    assert found.pipeline.read(new)[0].shape == (1, 1)
    with pytest.raises(ValueError, match="no column has a value in the training rows"):
        own.load(path, label="label", columns=["rare"])
