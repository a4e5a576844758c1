"""Weights: round trips, other heads, addresses with hashes, and files that must be refused."""

import hashlib
import os
import pickle

import pytest
import safetensors.torch
import torch

from lossforge.models import load_weights, make


@pytest.fixture(autouse=True)
def _float32():
    torch.set_default_dtype(torch.float32)


def network(seed, num_classes=10):
    generator = torch.Generator().manual_seed(seed)
    return make("cnn8-narrow", num_classes, inputs=(3, 8, 8), generator=generator)


def photographs(seed, num_classes):
    generator = torch.Generator().manual_seed(seed)
    return make("resnet50", num_classes, inputs=(3, 224, 224), generator=generator)


def same(state, other):
    return state.keys() == other.keys() and all(torch.equal(state[k], other[k]) for k in state)


def snapshot(model):
    return {key: value.clone() for key, value in model.state_dict().items()}


@pytest.fixture
def hub(tmp_path):
    before = torch.hub.get_dir()
    torch.hub.set_dir(str(tmp_path / "hub"))
    yield tmp_path / "hub" / "checkpoints"
    torch.hub.set_dir(before)


@pytest.mark.parametrize("suffix", [".pth", ".pt", ".safetensors"])
@pytest.mark.parametrize("as_text", [False, True], ids=["path", "text"])
def test_state_dicts_go_through_files(tmp_path, suffix, as_text):
    path = tmp_path / f"weights{suffix}"
    saved, loaded = network(1), network(2)
    save = safetensors.torch.save_file if suffix == ".safetensors" else torch.save
    save(saved.state_dict(), path)
    load_weights(loaded, str(path) if as_text else path)
    assert same(loaded.state_dict(), saved.state_dict())


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_a_1000_class_resnet50_starts_a_14_class_one(tmp_path, suffix):
    path = tmp_path / f"resnet50{suffix}"
    state = photographs(1, 1000).state_dict()
    assert len(state) == 320
    save = safetensors.torch.save_file if suffix == ".safetensors" else torch.save
    save(state, path)
    model = photographs(2, 14)
    fresh = snapshot(model)
    with pytest.raises(
        ValueError, match=r"fc.weight is \(1000, 2048\), must be \(14, 2048\).*'new'"
    ):
        load_weights(model, path)
    assert same(model.state_dict(), fresh)
    load_weights(model, path, head="new")
    after = model.state_dict()
    changed = {key for key in after if torch.equal(after[key], state[key])}
    assert changed == set(state) - {"fc.weight", "fc.bias"}
    assert torch.equal(after["fc.weight"], fresh["fc.weight"])
    assert torch.equal(after["fc.bias"], fresh["fc.bias"])


def test_a_new_head_stays_new_even_where_the_old_one_would_fit():
    model, other = network(1), network(2)
    fresh = model.fc.weight.clone()
    load_weights(model, other.state_dict(), head="new")
    assert torch.equal(model.fc.weight, fresh)
    assert torch.equal(model.hidden[0].weight, other.hidden[0].weight)


def test_a_backbone_without_a_head_loads_under_a_new_one():
    model, state = network(1), network(2).state_dict()
    backbone = {key: value for key, value in state.items() if not key.startswith("fc.")}
    load_weights(model, backbone, head="new")
    assert torch.equal(model.hidden[0].weight, state["hidden.0.weight"])
    with pytest.raises(ValueError, match=r"missing: fc.weight, fc.bias"):
        load_weights(model, backbone)


@pytest.mark.parametrize(
    "prefix", ["module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module."]
)
def test_prefixes_of_wrappers_are_dropped(prefix):
    model, state = network(1), network(2).state_dict()
    load_weights(model, {prefix + key: value for key, value in state.items()})
    assert same(model.state_dict(), state)


def test_files_from_before_batches_were_counted_load():
    model, state = network(1), network(2).state_dict()
    old = {key: value for key, value in state.items() if "num_batches" not in key}
    load_weights(model, old)
    assert same(model.state_dict(), state)


def test_what_does_not_fit_is_listed_and_nothing_changes():
    model, state = network(1), dict(network(2).state_dict())
    before = snapshot(model)
    del state["hidden.0.bias"]
    state["extra.weight"] = torch.zeros(1)
    state["convolutions.0.0.weight"] = torch.zeros(16, 1, 3, 3)
    with pytest.raises(ValueError, match="do not fit") as caught:
        load_weights(model, state)
    message = str(caught.value)
    assert "missing: hidden.0.bias" in message
    assert "unexpected: extra.weight" in message
    assert "convolutions.0.0.weight is (16, 1, 3, 3), must be (16, 3, 3, 3)" in message
    assert "head=" not in message
    assert same(model.state_dict(), before)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda weight: weight.to_sparse(), "floating, sparse_coo"),
        (lambda weight: weight.to_sparse_csr(), "floating, sparse_csr"),
        (lambda weight: weight.long(), "whole numbers, strided"),
        (lambda weight: weight > 0, "whole numbers, strided"),
        (lambda weight: weight.to(torch.complex64), "complex, strided"),
        (lambda weight: weight.to("meta"), r"floating, strided, without values \(meta\)"),
    ],
    ids=["sparse", "csr", "integers", "booleans", "complex", "meta"],
)
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state")
@pytest.mark.parametrize("key", ["hidden.0.weight", "fc.weight"])
def test_tensors_of_another_kind_are_refused_and_nothing_changes(change, found, key):
    model, state = network(1), dict(network(2).state_dict())
    before = snapshot(model)
    state[key] = change(state[key])
    with pytest.raises(ValueError, match=f"{key} is {found}, must be floating, strided"):
        load_weights(model, state)
    assert same(model.state_dict(), before)


def test_values_are_not_loaded_into_a_model_without_memory():
    with pytest.raises(ValueError, match=r"must be floating, strided, without values \(meta\)"):
        load_weights(network(1).to("meta"), network(2).state_dict())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_another_precision_is_converted(dtype):
    model, state = network(1), network(2).state_dict()
    other = {key: value.to(dtype) if value.ndim else value for key, value in state.items()}
    load_weights(model, other)
    assert model.fc.weight.dtype == torch.float32
    assert torch.equal(model.fc.weight, other["fc.weight"].float())


def test_keys_that_are_no_names_are_shown():
    model = network(1)
    before = snapshot(model)
    with pytest.raises(ValueError, match=r"a tensor for every name; not so 7, \('fc',\)"):
        load_weights(model, {**network(2).state_dict(), 7: torch.zeros(1), ("fc",): 3})
    assert same(model.state_dict(), before)


def test_a_long_list_is_cut_and_counted():
    with pytest.raises(ValueError, match=r"missing: .* and \d+ more"):
        load_weights(network(1), {})


def test_a_training_checkpoint_is_told_apart_from_a_state_dict(tmp_path):
    path = tmp_path / "checkpoint.pt"
    torch.save({"model": network(1).state_dict(), "epoch": 3}, path)
    with pytest.raises(ValueError, match="not so model, epoch"):
        load_weights(network(2), path)
    torch.save(torch.zeros(3), path)
    with pytest.raises(ValueError, match="must be a state dict, got a Tensor"):
        load_weights(network(2), path)


class Harmful:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("write", ["torch", "pickle"])
def test_a_pickle_that_would_run_code_is_refused(tmp_path, write):
    path, trace = tmp_path / "weights.pth", tmp_path / "harm"
    harmful = {**network(1).state_dict(), "hook": Harmful(trace)}
    if write == "torch":
        torch.save(harmful, path)
    else:
        path.write_bytes(pickle.dumps({"hook": Harmful(trace)}, protocol=2))
    with pytest.raises(ValueError, match=r"refused.*can run code") as caught:
        load_weights(network(2), path)
    assert "weights_only=False" not in str(caught.value)
    assert not trace.exists()


def test_an_address_is_refused_code_too(tmp_path, hub):
    path, trace = tmp_path / "weights.pth", tmp_path / "harm"
    torch.save({"hook": Harmful(trace)}, path)
    with pytest.raises(ValueError, match="refused"):
        load_weights(network(2), path.as_uri())
    assert not trace.exists()


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
@pytest.mark.parametrize("content", [b"", b"<html>not found</html>", "half"])
def test_broken_files_are_named(tmp_path, suffix, content):
    path = tmp_path / f"weights{suffix}"
    if content == "half":
        save = safetensors.torch.save_file if suffix == ".safetensors" else torch.save
        save(network(1).state_dict(), path)
        content = path.read_bytes()[: path.stat().st_size // 2]
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"weights{suffix}"):
        load_weights(network(1), path)


def addressed(folder, model, digits=None):
    """The model's weights under a name that ends in (these or the right) hash digits."""
    plain = folder / "plain.pth"
    torch.save(model.state_dict(), plain)
    digits = digits or hashlib.sha256(plain.read_bytes()).hexdigest()[:8]
    return plain.rename(folder / f"cnn-{digits}.pth")


@pytest.mark.parametrize("given", [True, False], ids=["cache given", "torch.hub's cache"])
def test_an_address_with_the_right_hash_loads_and_is_kept(tmp_path, hub, given):
    saved, loaded = network(1), network(2)
    path = addressed(tmp_path, saved)
    cache = tmp_path / "cache" if given else None
    load_weights(loaded, path.as_uri(), cache=cache)
    assert same(loaded.state_dict(), saved.state_dict())
    assert (cache or hub).joinpath(path.name).is_file()
    path.unlink()
    again = network(3)
    load_weights(again, path.as_uri(), cache=cache)
    assert same(again.state_dict(), saved.state_dict())


def test_an_address_with_a_wrong_hash_is_refused_and_leaves_nothing(tmp_path, hub):
    model = network(2)
    before = snapshot(model)
    path = addressed(tmp_path, network(1), "0123abcd")
    with pytest.raises(ValueError, match=r'not the file that its name says.*expected "0123abcd"'):
        load_weights(model, path.as_uri())
    assert list(hub.iterdir()) == []
    assert path.is_file()
    assert same(model.state_dict(), before)


def test_a_spoilt_file_in_the_cache_is_noticed_and_not_deleted(tmp_path, hub):
    path = addressed(tmp_path, network(1))
    hub.mkdir(parents=True)
    (hub / path.name).write_bytes(b"half a download")
    with pytest.raises(ValueError, match="must have a SHA-256 that begins with"):
        load_weights(network(2), path.as_uri())
    assert (hub / path.name).read_bytes() == b"half a download"


def test_equal_names_without_a_hash_are_not_confused(tmp_path, hub):
    for seed in (1, 2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        torch.save(network(seed).state_dict(), folder / "model-2.pth")
    loaded = network(3)
    for seed in (1, 2):
        load_weights(loaded, (tmp_path / str(seed) / "model-2.pth").as_uri())
        assert same(loaded.state_dict(), network(seed).state_dict())


@pytest.mark.parametrize("url", ["file:///nowhere/cnn-0123abcd.pth", "https://127.0.0.1:9/a.pth"])
def test_a_download_that_fails_names_the_address(tmp_path, url):
    with pytest.raises(OSError, match=f"{url} could not be downloaded to {tmp_path}"):
        load_weights(network(1), url, cache=tmp_path)


@pytest.mark.parametrize(
    ("name", "file"),
    [("imagenet1k_v1", "resnet50-0676ba61.pth"), ("IMAGENET1K_V2", "resnet50-11ad3fa6.pth")],
)
def test_known_names_ask_torchvision_for_the_file_and_its_hash(monkeypatch, hub, name, file):
    asked = []

    def download(url, path, digits):
        asked.append((url, digits))
        raise RuntimeError("no network here")

    monkeypatch.setattr(torch.hub, "download_url_to_file", download)
    with pytest.raises(ValueError, match="no network here"):
        load_weights(network(1), name)
    assert asked == [(f"https://download.pytorch.org/models/{file}", file[9:17])]


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        ("nowhere.pth", {}, FileNotFoundError, "nowhere.pth.*imagenet1k_v1, imagenet1k_v2"),
        ("http://example.org/a.pth", {}, ValueError, "https:// or file://"),
        (7, {}, TypeError, "source must be a file"),
        ({}, {"head": "keep"}, ValueError, "head must be 'load' or 'new', got 'keep'"),
    ],
)
def test_wrong_sources_are_named(source, options, error, message):
    with pytest.raises(error, match=message):
        load_weights(network(1), source, **options)


@pytest.mark.parametrize("text", ["", "hello weights\n", "epochs,loss\n1,2\n", "}", "\x80\x02."])
def test_a_text_in_place_of_weights_is_named(tmp_path, text):
    path = tmp_path / "weights.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"weights\.txt (is not a readable|was refused)"):
        load_weights(make("mlp", 3, inputs=(4,)), path)
