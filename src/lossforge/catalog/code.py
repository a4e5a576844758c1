"""Losses and base functions in the user's own code: a file, a module, or an installed package.

They are named ``my_losses.py:Spherical`` and ``package.module:Name``. To name one runs that code,
so a text alone never does: `lossforge.catalog.admit` imports what the user typed, or what a hash
identifies, and a text that names anything else cannot be read.
"""

import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.abc import InspectLoader
from importlib.metadata import entry_points
from pathlib import Path
from types import CodeType, ModuleType
from typing import TypeVar

from torch import nn

from ..base import BaseFunction
from ..errors import SpecError
from ..loss import Loss

GROUP = "lossforge.losses"
"""The group of entry points by which an installed package offers losses under names of their own.
"""

Maker = Callable[..., Loss] | type[BaseFunction]
Factory = TypeVar("Factory", bound=Callable[..., object])

# a quoted text, which is passed over, or a name with its place; of bounded length, because every
# character of a text of unknown origin may begin one
_TOKEN = re.compile(
    r"'[^']*'|\"[^\"]*\"|"
    r"(?<![\w./\\~])(?P<place>[\w./\\~][^\s'\"()\[\]*+,=:]{0,1000}):(?P<name>[^\W\d]\w*)"
)
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class Code:
    """A file or module that was imported.

    Args:
        name: The name of the file, or the dotted name of the module.
        hash: The SHA-256 of its source.
        source: What a file holds, to be imported elsewhere; None for a module.
    """

    name: str
    hash: str
    source: bytes | None = None


_ADMITTED: dict[str, tuple[Code, ModuleType]] = {}
_OFFERED: dict[str, str] = {}  # names that packages offer, as admitted: name -> module:Name
_FACTORIES: list[Callable[..., object]] = []


def factory(make: Factory) -> Factory:
    """Register a function that returns a loss or a base function, so that texts may call it.

    A class of either kind needs no registration. No other function is ever called by a text.
    """
    _FACTORIES.append(make)
    return make


def places(text: str) -> list[tuple[str, str]]:
    """Return the names of own code in a text, as (file or module, name); nothing is imported.

    >>> places("0.5*losses/mine.py:Spherical(gamma=2) + MAE")
    [('losses/mine.py', 'Spherical')]
    """
    return [(found["place"], found["name"]) for found in _TOKEN.finditer(text) if found["place"]]


def short(place: str) -> str:
    """Return the name of a file without its folders; a module keeps its name."""
    return Path(place).name if place.endswith(".py") else place


def replaced(text: str, by: Callable[[str], str]) -> str:
    """Return a text with every name of own code replaced; folders are no part of such a name."""

    def one(found: re.Match[str]) -> str:
        return by(f"{short(found['place'])}:{found['name']}") if found["place"] else found[0]

    return _TOKEN.sub(one, text)


def offered() -> dict[str, str]:
    """Return the losses that installed packages offer, as name -> module:Name."""
    return {one.name: one.value for one in entry_points(group=GROUP)}


def load(places: Iterable[str], *, hashes: Mapping[str, str] | None = None) -> None:
    """Import files and modules, which texts may then name.

    Args:
        places: Files and dotted names of modules.
        hashes: The SHA-256 that the source of a file or module must have, by its name.
    """
    found: dict[str, Code] = {}
    for place in places:
        code, run = _find(place)
        if found.setdefault(code.name, code) != code:
            raise SpecError(f"{code.name} must be one file, got two that differ")
        _check(code, (hashes or {}).get(code.name, code.hash))
        _keep(code, run)


def offer(names: Mapping[str, str]) -> None:
    """Let texts name what packages offer, as name -> module:Name; its module is loaded."""
    _OFFERED.update(names)


def restore(hashes: Mapping[str, str], folder: Path, *, trust: bool) -> None:
    """Import the code of a stored run: files from its folder, modules where they are installed.

    Args:
        hashes: The SHA-256 of every file and module, by name.
        folder: Where the files were kept.
        trust: Whether the user trusts this code; without it nothing is imported.
    """
    for name, expected in hashes.items():
        place = str(folder / short(name)) if name.endswith(".py") else name
        if not trust:
            raise SpecError(
                f"this run executes {place}, which was not typed here; read it, then add --trust"
            )
        load([place], hashes={short(name): expected})


def receive(codes: Iterable[Code]) -> None:
    """Import code that another process of the same user has admitted and handed over."""
    for code in codes:
        if code.source is not None:
            _keep(code, partial(_execute, code))
        else:
            load([code.name], hashes={code.name: code.hash})


def named(text: str) -> tuple[Code, ...]:
    """Return the admitted code that a text names, each once."""
    names = dict.fromkeys(short(place) for place, _ in places(text))
    return tuple(_admitted(name)[0] for name in names)


def member(name: str) -> Maker:
    """Return what ``file.py:Name`` or ``module:Name`` stands for, if it may be called."""
    place, _, attribute = name.rpartition(":")
    _, module = _admitted(place)
    if not hasattr(module, attribute):
        raise SpecError(f"{place} has no {attribute!r}")
    found = getattr(module, attribute)
    if inspect.isclass(found) and issubclass(found, Loss | BaseFunction):
        if not inspect.isabstract(found):
            return found
    elif inspect.isclass(found) and issubclass(found, nn.Module):
        raise SpecError(
            f"{name} is a plain torch module: derive it from lossforge.Loss in place of nn.Module, "
            "and write per_sample(logits, target), a value for each row, in place of forward; "
            "docs/extend.md has examples"
        )
    elif any(found is one for one in _FACTORIES):
        return found  # type: ignore[no-any-return]
    raise SpecError(
        f"{name} must be a class of losses or base functions, or a function registered by "
        f"lossforge.catalog.factory, got {found!r:.80}"
    )


def full_name(name: str) -> str | None:
    """Return module:Name for a name that an installed package offers and the user has typed."""
    return _OFFERED.get(name)


def _admitted(name: str) -> tuple[Code, ModuleType]:
    if name not in _ADMITTED:
        raise SpecError(
            f"{name} is code outside the package, and a text alone does not run it: type the loss "
            "as an option of a command, or call lossforge.catalog.admit"
        )
    return _ADMITTED[name]


def _check(code: Code, expected: str) -> None:
    if code.hash != expected:
        raise SpecError(f"{code.name} must have SHA-256 {expected}, got {code.hash}")


def _keep(code: Code, run: Callable[[], ModuleType]) -> None:
    """Import code unless it is imported already; another file of its name takes its place."""
    if code.name not in _ADMITTED or _ADMITTED[code.name][0] != code:
        try:
            _ADMITTED[code.name] = code, run()
        except (Exception, SystemExit) as error:  # whatever the user's code raises
            hint = ""
            if isinstance(error, ModuleNotFoundError) and code.source is not None:
                hint = "; a file of losses may import what is installed, not its neighbours"
            raise SpecError(f"{code.name}: {type(error).__name__}: {error}{hint}") from error


def _find(place: str) -> tuple[Code, Callable[[], ModuleType]]:
    """Read the source of a file or module, and return it with the function that imports it."""
    if place.endswith(".py"):
        path = Path(place).expanduser()
        if not path.is_file():
            raise SpecError(f"{place}: no such file")
        source = path.read_bytes()
        code = Code(path.name, hashlib.sha256(source).hexdigest(), source)
        return code, partial(_execute, code)
    if not _MODULE.fullmatch(place):
        raise SpecError(f"own code must be file.py:Name or package.module:Name, got {place!r}")
    try:
        found = importlib.util.find_spec(place)
    except (ImportError, ValueError) as error:
        raise SpecError(f"{place}: {error}") from None
    if found is None:
        raise SpecError(f"there is no module {place}; a file is written {place}.py:Name")
    content = b""
    if found.has_location and found.origin is not None:
        content = Path(found.origin).read_bytes()
    code = Code(place, hashlib.sha256(content).hexdigest())
    return code, partial(importlib.import_module, place)


class _Source(InspectLoader):
    """Imports the bytes that were hashed: neither the file again nor a cache beside it."""

    def __init__(self, code: Code) -> None:
        assert code.source is not None
        self._name, self._source = code.name, code.source

    def get_source(self, fullname: str) -> str:
        return importlib.util.decode_source(self._source)

    def get_code(self, fullname: str) -> CodeType:
        """Compile the source under the file's name, which tracebacks then show."""
        return self.source_to_code(self.get_source(fullname), self._name)


def _execute(code: Code) -> ModuleType:
    name = f"lossforge_code_{code.hash[:16]}"
    spec = importlib.util.spec_from_loader(name, _Source(code), origin=code.name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look it up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
