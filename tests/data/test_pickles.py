"""Pickles from outside: arrays come through, programs do not."""

import io
import pickle
import zipfile

import numpy as np
import pytest
import torch

from lossforge.data.pickles import read_npy, read_pickle, read_torch

CONTENT = {
    "pixels": np.arange(12, dtype=np.uint8).reshape(3, 4),
    "labels": [1, 2, 3],
    "names": (b"cat", "dog", None),
    "share": np.float64(0.5),
}


class Program:
    """Pickles as a call of `os.system`."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        import os

        return os.system, (self.command,)


def programs(victim):
    """Pickles that would create a file when read by `pickle.load`."""
    import builtins

    class Call:
        def __init__(self, function, *arguments):
            self.call = function, arguments

        def __reduce__(self):
            return self.call

    return {
        "os.system": Program(f"touch {victim}"),
        "eval": Call(builtins.eval, f"open({str(victim)!r}, 'w')"),
        "open": Call(builtins.open, str(victim), "w"),
        "numpy.load": Call(np.load, str(victim)),
        "in an array": np.array([Program(f"touch {victim}")], dtype=object),
        "in a list in a dictionary": {"data": [1, {"labels": Program(f"touch {victim}")}]},
    }


NAMES = list(programs("x"))


@pytest.mark.parametrize("protocol", range(2, 6))
def test_arrays_and_containers_are_read(tmp_path, protocol):
    path = tmp_path / "batch"
    content = {key: CONTENT[key] for key in ("pixels", "labels", "names")}
    path.write_bytes(pickle.dumps(content, protocol=protocol))
    with path.open("rb") as stream:
        found = read_pickle(stream, path)
    assert np.array_equal(found["pixels"], CONTENT["pixels"])
    assert found["labels"] == [1, 2, 3]
    assert found["names"] == (b"cat", "dog", None)


def test_keys_of_python_2_become_text(tmp_path):
    path = tmp_path / "batch"
    # what Python 2 wrote for {"labels": [3]}: a byte string, opcode U
    path.write_bytes(b"\x80\x02}q\x00U\x06labelsq\x01]q\x02K\x03as.")
    with path.open("rb") as stream:
        assert read_pickle(stream, path) == {"labels": [3]}


@pytest.mark.parametrize("name", NAMES)
def test_a_program_is_refused_and_not_run(tmp_path, name):
    victim = tmp_path / "victim"
    path = tmp_path / "batch"
    path.write_bytes(pickle.dumps(programs(victim)[name]))
    with path.open("rb") as stream, pytest.raises(ValueError, match="only numpy arrays"):
        read_pickle(stream, path)
    assert not victim.exists()


def test_other_codecs_are_refused(tmp_path):
    path = tmp_path / "batch"
    path.write_bytes(b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00utf-8\x86R.")
    with path.open("rb") as stream, pytest.raises(ValueError, match="utf-8 is not allowed"):
        read_pickle(stream, path)


@pytest.mark.parametrize("cut", [0, 1, 20, 60])
def test_a_truncated_pickle_is_named(tmp_path, cut):
    path = tmp_path / "batch"
    path.write_bytes(pickle.dumps(CONTENT)[:cut])
    with path.open("rb") as stream, pytest.raises(ValueError, match="batch cannot be read"):
        read_pickle(stream, path)


def test_what_torch_saved_is_read(tmp_path):
    path = tmp_path / "labels.pt"
    torch.save({"clean_label": np.arange(5), "coarse": [1, 2]}, path)
    found = read_torch(path)
    assert found["clean_label"].tolist() == [0, 1, 2, 3, 4]
    assert found["coarse"] == [1, 2]


def test_a_program_that_torch_saved_is_refused(tmp_path):
    victim, path = tmp_path / "victim", tmp_path / "labels.pt"
    torch.save({"clean_label": Program(f"touch {victim}")}, path)
    with pytest.raises(ValueError, match="it asks for"):
        read_torch(path)
    assert not victim.exists()


def test_tensors_and_other_archives_are_refused(tmp_path):
    torch.save({"a": torch.ones(2)}, tmp_path / "tensors.pt")
    with pytest.raises(ValueError, match="cannot be read"):
        read_torch(tmp_path / "tensors.pt")
    (tmp_path / "text.pt").write_text("not an archive")
    with pytest.raises(ValueError, match=r"text\.pt cannot be read"):
        read_torch(tmp_path / "text.pt")
    with zipfile.ZipFile(tmp_path / "other.pt", "w") as archive:
        archive.writestr("readme.txt", "no labels here")
    with pytest.raises(ValueError, match=r"other\.pt cannot be read"):
        read_torch(tmp_path / "other.pt")


def test_npy_of_numbers_and_of_objects(tmp_path):
    np.save(tmp_path / "order.npy", np.arange(4))
    assert read_npy(tmp_path / "order.npy").tolist() == [0, 1, 2, 3]
    np.save(tmp_path / "labels.npy", {"clean_label": np.arange(3)}, allow_pickle=True)
    assert read_npy(tmp_path / "labels.npy")["clean_label"].tolist() == [0, 1, 2]


def test_a_program_in_an_npy_is_refused(tmp_path):
    victim = tmp_path / "victim"
    np.save(tmp_path / "labels.npy", {"a": Program(f"touch {victim}")}, allow_pickle=True)
    with pytest.raises(ValueError, match="it asks for"):
        read_npy(tmp_path / "labels.npy")
    assert not victim.exists()
    (tmp_path / "text.npy").write_text("not an array")
    with pytest.raises(ValueError, match=r"text\.npy cannot be read"):
        read_npy(tmp_path / "text.npy")


def name(module, attribute):
    return b"c" + module.encode() + b"\n" + attribute.encode() + b"\n"


def text(value):
    return b"X" + len(value).to_bytes(4, "little") + value.encode()


DTYPE = name("numpy", "dtype")
EMPTY = (
    name("numpy.core.multiarray", "_reconstruct")
    + name("numpy", "ndarray")
    + b"(I0\nt"
    + b"C\x01b\x87R"
)
RECORD = (
    b"(K\x03"
    + text("|")
    + b"N("
    + text("a")
    + b"t}"
    + text("a")
    + b"("
    + DTYPE
    + text("f8")
    + b"\x85RJ\xff\xff\xff\x0ftsK\x08K\x01K\x00t"
)
HOSTILE = {
    # each would have numpy hand out memory that is not the array's
    "an array over forged pointers": name("numpy", "ndarray")
    + b"((I1\nt"
    + DTYPE
    + text("O")
    + b"\x85RC\x08AAAAAAAAtR.",
    "strides out of bounds": name("numpy", "ndarray")
    + b"((I10\nt"
    + text("u1")
    + b"C\x08AAAAAAAAI0\n(J\xff\xff\xff\x0fttR.",
    "pointers as bytes": EMPTY
    + b"(K\x01(K\x01t"
    + DTYPE
    + text("O")
    + b"\x85R\x89C\x08AAAAAAAAtb.",
    "a field out of bounds": EMPTY
    + b"(K\x01(K\x01t"
    + DTYPE
    + text("V8")
    + b"\x85R"
    + RECORD
    + b"b\x89C\x08AAAAAAAAtb.",
    "objects from a buffer": name("numpy.core.numeric", "_frombuffer")
    + b"(C\x08AAAAAAAA"
    + DTYPE
    + text("O")
    + b"\x85R(I1\nt"
    + text("C")
    + b"tR.",
    "more elements than bytes": EMPTY
    + b"(K\x01(J\xff\xff\xff\x0ft"
    + DTYPE
    + text("f8")
    + b"\x85R\x89C\x08AAAAAAAAtb.",
    # each would change a function or a type for the whole process
    "new defaults for a function": name("numpy.core.numeric", "_frombuffer")
    + b"N}"
    + text("__defaults__")
    + b"K\x01\x85s\x86b.",
    "new state for a class": DTYPE + b"N}" + text("resolve") + b"K\x01s\x86b.",
    "new state for the encoder": name("_codecs", "encode") + b"}" + text("x") + b"K\x01sb.",
    # and these are no programs at all
    "append to a number": b"K\x01K\x02a.",
    "a promise of 2**62 bytes": b"\x8e" + (2**62).to_bytes(8, "little") + b"x.",
    "a key that is no text": b"}C\x01\xffK\x01s.",
    "a list in itself": b"]q\x00h\x00a.",
    "a type": DTYPE + b".",
    "a name": name("numpy", "ndarray") + b".",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_hostile_use_of_what_is_allowed_is_refused(tmp_path, content):
    path = tmp_path / "batch"
    path.write_bytes(b"\x80\x04" + content)
    from lossforge.data import pickles

    before = {key: vars(pickles._Type)[key] for key in vars(pickles._Type)}
    with path.open("rb") as stream, pytest.raises(ValueError, match="batch cannot be read"):
        read_pickle(stream, path)
    assert {key: vars(pickles._Type)[key] for key in vars(pickles._Type)} == before


@pytest.mark.parametrize("dtype", ["u1", "<i8", ">i4", "f4", "?", "S3", "U2"])
@pytest.mark.parametrize("protocol", [2, 5])
def test_arrays_of_numbers_and_text_in_either_order(dtype, protocol):
    array = np.arange(12).reshape(3, 4).astype(dtype)
    for layout in (array, np.asfortranarray(array), array[0], array[:0], np.array(array[1, 2])):
        found = read_pickle(io.BytesIO(pickle.dumps(layout, protocol=protocol)), "array")
        assert found.dtype == layout.dtype
        assert np.array_equal(found, layout)


def test_a_number_of_numpy():
    assert read_pickle(io.BytesIO(pickle.dumps(np.float32(0.25))), "number") == 0.25
