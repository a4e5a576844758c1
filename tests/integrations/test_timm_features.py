"""Features of a real network of timm, tiny and untrained, saved in a folder."""

import json

import pytest
import torch
from frameworks import need, torchvision_without_operators

torchvision_without_operators()
need("timm", "PIL")

import numpy as np  # noqa: E402
import timm  # noqa: E402
from PIL import Image  # noqa: E402
from safetensors.torch import load as load_tensors  # noqa: E402
from safetensors.torch import save as save_tensors  # noqa: E402
from timm.data import create_transform, resolve_model_data_config  # noqa: E402
from timm.models import save_for_hf  # noqa: E402

from lossforge.audit import read_subject  # noqa: E402
from lossforge.data import embeddings, own  # noqa: E402
from lossforge.data.embeddings import embed_images  # noqa: E402
from lossforge.data.features import standardise  # noqa: E402
from lossforge.data.pipeline import PIPELINES  # noqa: E402

pytestmark = pytest.mark.usefixtures("float32")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path / "cache" / "lossforge" / "features"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    torch.manual_seed(0)
    network = timm.create_model("test_resnet", num_classes=5).float()
    folder = tmp_path_factory.mktemp("model")
    save_for_hf(network, str(folder), safe_serialization=True)
    return folder


@pytest.fixture
def photos(tmp_path):
    chance = np.random.default_rng(0)
    for n in range(20):
        down, across = np.mgrid[:200, :180]
        waves = np.sin(down[..., None] / chance.uniform(9, 40, 3) + across[..., None] / 30)
        pixels = (60 + 50 * waves).astype(np.uint8)
        pixels[:, :, n % 2] += 100
        folder = tmp_path / "photos" / ("red", "green")[n % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / f"{n:02}.png")
    return tmp_path / "photos"


def test_features_are_what_the_network_has_before_its_last_layer(model, photos):
    found = read_subject(str(photos), features=f"timm:{model}")
    network = timm.create_model(f"local-dir:{model}", pretrained=True, num_classes=0).eval().float()
    config = resolve_model_data_config(network)
    transform = create_transform(**{**config, "interpolation": "bilinear"}, is_training=False)
    paths = sorted(photos.rglob("*.png"))
    with torch.no_grad():
        batch = torch.stack([transform(Image.open(path).convert("RGB")) for path in paths])
        rows = network(batch.float())
    files = read_subject(str(photos), pred_probs=np.full((20, 2), 0.5)).dataset.train.inputs
    ours = embed_images(str(model), files)
    # resizing and cutting in one step differs from two in the last bits of pixels
    assert ((ours - rows).norm(dim=1) < 0.1 * (rows - rows.mean(0)).norm(dim=1)).all()
    (scaled,) = standardise(ours.double())
    torch.testing.assert_close(found.dataset.train.inputs, scaled)
    assert found.notes[-1] == f"features timm:{model}"
    assert found.where(0) == str(photos / "green" / "01.png")


def test_they_are_kept_by_the_content_of_images_and_network(model, photos, cache, monkeypatch):
    files = read_subject(str(photos), pred_probs=np.full((20, 2), 0.5)).dataset.train.inputs
    told = []
    first = embed_images(str(model), files, on_progress=lambda *now: told.append(now))
    assert told == [(0, 20), (20, 20)]
    assert [path.name[:7] for path in cache.iterdir()] == ["timm-1-"]

    def never(place):
        raise AssertionError("kept features are not computed again")

    monkeypatch.setattr(embeddings, "_image_encoder", never)
    assert torch.equal(embed_images(str(model), files), first)
    path = photos / "red" / "00.png"
    Image.new("RGB", (50, 40)).save(path)
    with pytest.raises(AssertionError, match="not computed again"):
        embed_images(str(model), files)


def test_pixels_in_memory_of_one_or_three_channels(model):
    grey = torch.randint(256, (6, 1, 20, 20), dtype=torch.uint8)
    found = embed_images(str(model), grey)
    assert torch.equal(found, embed_images(str(model), grey.expand(-1, 3, -1, -1)))
    torch.testing.assert_close(found, embed_images(str(model), grey.float() / 255))


def test_own_images_are_embedded_and_new_ones_alike(model, photos):
    data = own.describe(photos, features=f"timm:{model}")
    found = own.load(data.place, **data.options)
    assert found.pipeline.kind == "timm"
    plain, tensors = found.pipeline.plain()
    kept = load_tensors(save_tensors({name: one.contiguous() for name, one in tensors.items()}))
    again = PIPELINES["timm"].from_plain(json.loads(json.dumps(plain)), kept)
    rows, where = again.read(photos)
    assert torch.equal(rows, found.pipeline.read(photos)[0])
    assert where(0) == str(photos / "green" / "01.png")
    (model / "note.txt").write_text("another")
    try:
        with pytest.raises(ValueError, match="has changed"):
            again.read(photos)
    finally:
        (model / "note.txt").unlink()
