"""Reading pickles from outside without running what is in them.

A pickle is a program. This reader lets it build numbers, strings, containers and numpy arrays,
and refuses every other name it asks for before anything is called.
"""

import io
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import IO, Any

import numpy as np


def _encode_latin1(text: str, encoding: str = "latin1") -> bytes:
    """How protocol 2 spells bytes; the real `codecs.encode` would accept any codec."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"encoding {encoding} is not allowed")
    return text.encode("latin1")


# numpy moved its modules between versions 1 and 2; both spellings mean the same functions
_ARRAY = np.empty(0).__reduce__()[0]
_BUFFER = np.empty(0).__reduce_ex__(5)[0]
_SCALAR = np.float64(0).__reduce__()[0]
_ALLOWED = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("numpy.core.multiarray", "_reconstruct"): _ARRAY,
    ("numpy._core.multiarray", "_reconstruct"): _ARRAY,
    ("numpy.core.numeric", "_frombuffer"): _BUFFER,
    ("numpy._core.numeric", "_frombuffer"): _BUFFER,
    ("numpy.core.multiarray", "scalar"): _SCALAR,
    ("numpy._core.multiarray", "scalar"): _SCALAR,
    ("_codecs", "encode"): _encode_latin1,
    ("collections", "OrderedDict"): OrderedDict,
}

_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"it asks for {module}.{name}; only numpy arrays and plain containers are read"
            ) from None


def read_pickle(stream: IO[bytes], name: str | Path) -> Any:
    """Read one pickled object, of Python 2 or 3, its byte keys turned to text.

    Args:
        stream: The open file.
        name: What to call it in an error.
    """
    try:
        found = _Unpickler(stream, encoding="bytes").load()
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, IndexError) as error:
        raise ValueError(f"{name} cannot be read: {error or 'it ends too early'}") from error
    if not isinstance(found, dict):
        return found
    return {key.decode() if isinstance(key, bytes) else key: found[key] for key in found}


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
    """Read a .npy file; an array of objects, which numpy would unpickle blindly, included."""
    with path.open("rb") as stream:
        try:
            version = np.lib.format.read_magic(stream)
            header = _HEADERS[version](stream)
        except (ValueError, KeyError) as error:
            raise ValueError(f"{path} cannot be read: it is not a .npy file") from error
        if not header[2].hasobject:
            return np.load(path, allow_pickle=False)
        found = read_pickle(stream, path)
    return found.item() if isinstance(found, np.ndarray) and found.ndim == 0 else found
