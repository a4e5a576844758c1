"""Reading pickles from outside without running what is in them.

A pickle is a program. This reader lets it build numbers, strings, lists, tuples, dictionaries and
numpy arrays, and nothing else. Not even numpy's own functions are called: with hostile arguments
they make arrays over memory that is not theirs. What the program says of an array is written
down, checked, and made an array of here.
"""

import io
import math
import pickle
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

KINDS = "biufSU"  # booleans, numbers and text


class _Name:
    """Stands for a name that a pickle may mention; it has no state that one could change."""

    __slots__ = ()


class _Encode(_Name):
    """How protocol 2 spells bytes."""

    __slots__ = ()

    def __call__(self, text: str, encoding: str = "latin1") -> bytes:
        if encoding != "latin1":
            raise ValueError(f"encoding {encoding} is not allowed")
        return text.encode("latin1")


class _NoBytes(_Name):
    """How protocol 2 spells bytes when there are none."""

    __slots__ = ()

    def __call__(self) -> bytes:
        return b""


class _Type:
    """What a pickle says of a dtype."""

    def __init__(self, code: str | bytes, align: object = False, copy: object = True) -> None:
        self.code = code.decode("ascii") if isinstance(code, bytes) else str(code)
        self.order = "|"

    def __setstate__(self, state: Any) -> None:
        order, subarray, names, fields = state[1:5]
        if subarray is not None or names is not None or fields is not None:
            raise ValueError("arrays of records are not allowed")
        self.order = order.decode("ascii") if isinstance(order, bytes) else str(order)

    def resolve(self) -> np.dtype[Any]:
        order = "" if self.order == "|" else self.order
        dtype = np.dtype(order + self.code)
        if dtype.kind not in KINDS:
            raise ValueError(f"arrays of {dtype} are not allowed")
        return dtype


class _Array:
    """What a pickle says of an array; `value` is that array."""

    value: Any = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, data = state
        if dtype.code.startswith("O"):
            if shape not in ((), (len(data),)):
                raise ValueError("tables of objects are not allowed")
            self.value = data if shape else data[0]
        else:
            self.value = _array(data, dtype, shape, "F" if fortran else "C")


class _MakeArray(_Name):
    """`_reconstruct(ndarray, shape, code)`: an empty array, whose state follows."""

    __slots__ = ()

    def __call__(self, subtype: object, shape: object, code: object) -> _Array:
        return _Array()


class _MakeBuffer(_Name):
    """`_frombuffer(data, dtype, shape, order)`, which protocol 5 uses."""

    __slots__ = ()

    def __call__(self, data: bytes, dtype: _Type, shape: Any, order: str) -> _Array:
        made = _Array()
        made.value = _array(data, dtype, shape, order)
        return made


class _MakeScalar(_Name):
    """`scalar(dtype, data)`: one number."""

    __slots__ = ()

    def __call__(self, dtype: _Type, data: bytes) -> Any:
        return _array(data, dtype, (), "C").item()


def _array(data: Any, dtype: _Type, shape: Any, order: str) -> np.ndarray[Any, Any]:
    resolved = dtype.resolve()
    if math.prod(shape) * resolved.itemsize != len(data):
        raise ValueError(f"{len(data)} bytes are no array of shape {shape} and type {resolved}")
    return np.frombuffer(data, resolved).reshape(shape, order="F" if order == "F" else "C")


# numpy moved its modules between versions 1 and 2; both spellings mean the same
_NUMPY = {
    ("multiarray", "_reconstruct"): _MakeArray(),
    ("multiarray", "scalar"): _MakeScalar(),
    ("numeric", "_frombuffer"): _MakeBuffer(),
}
_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Name(),
    ("numpy", "dtype"): _Type,
    ("_codecs", "encode"): _Encode(),
    ("__builtin__", "bytes"): _NoBytes(),
    **{
        (f"numpy.{core}.{module}", name): value
        for core in ("core", "_core")
        for (module, name), value in _NUMPY.items()
    },
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"it asks for {module}.{name}; only numpy arrays and plain containers are read"
            ) from None


def _plain(found: Any) -> Any:
    """The object with its arrays made, the keys of its dictionaries turned to text."""
    if isinstance(found, _Array):
        return _plain(found.value)
    if isinstance(found, list | tuple):
        return type(found)(_plain(item) for item in found)
    if isinstance(found, dict):
        return {_text(key): _plain(value) for key, value in found.items()}
    if isinstance(found, _Name | _Type | type):
        raise ValueError("it holds something else than arrays and containers")
    return found


def _text(key: Any) -> Any:
    return key.decode() if isinstance(key, bytes) else key


def read_pickle(stream: IO[bytes], name: str | Path) -> Any:
    """Read one pickled object, of Python 2 or 3, byte keys of dictionaries turned to text.

    Args:
        stream: The open file.
        name: What to call it in an error.
    """
    try:
        return _plain(_Unpickler(stream, encoding="bytes").load())
    # a broken or hostile program may fail in any way there is
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise ValueError(f"{name} cannot be read: {reason}") from error


def read_torch(path: Path) -> Any:
    """Read what `torch.save` wrote, if it holds numpy arrays and containers, not tensors."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [name for name in archive.namelist() if name.endswith("/data.pkl")]
            content = archive.read(members[0]) if members else b""
    except zipfile.BadZipFile as error:
        raise ValueError(f"{path} cannot be read: {error}") from error
    return read_pickle(io.BytesIO(content), path)


def read_npy(path: Path) -> Any:
    """Read a .npy file; a pickled object, which numpy would read blindly, included."""
    with path.open("rb") as stream:
        try:
            version = np.lib.format.read_magic(stream)
            header = _HEADERS[version](stream)
        except (ValueError, KeyError) as error:
            raise ValueError(f"{path} cannot be read: it is not a .npy file") from error
        if header[2].hasobject:
            return read_pickle(stream, path)
    return np.load(path, allow_pickle=False)


_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
