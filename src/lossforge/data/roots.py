"""Where data lie on disk."""

import os
from pathlib import Path

PathLike = str | os.PathLike[str]
VARIABLE = "LOSSFORGE_DATA"


def roots(data_dir: PathLike | None = None) -> list[Path]:
    """The folders to look in: the one given, else those of LOSSFORGE_DATA, else the user's cache.

    LOSSFORGE_DATA may name several, separated as in PATH; downloads go to the first.
    """
    if data_dir is not None:
        return [Path(data_dir)]
    named = [Path(part) for part in os.environ.get(VARIABLE, "").split(os.pathsep) if part]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return named or [cache / "lossforge"]


def candidates(name: str, *parts: str, data_dir: PathLike | None = None) -> list[Path]:
    """Where `parts` of a data set may lie: in its own folder, loose, or named by the user."""
    found = []
    for root in roots(data_dir):
        found += [root.joinpath(name, *parts), root.joinpath(*parts)]
        if root.name == parts[0]:
            found.append(root.joinpath(*parts[1:]))
    return found


def existing(name: str, *parts: str, data_dir: PathLike | None = None) -> Path | None:
    """The first of the candidates that exists, if one does."""
    places = candidates(name, *parts, data_dir=data_dir)
    return next((place for place in places if place.exists()), None)


def locate(name: str, *parts: str, data_dir: PathLike | None = None) -> Path:
    """The first of the candidates that exists, or an error that says where one was looked for.

    Args:
        name: The data set, which is also the name of its folder.
        parts: The path of the file or folder below that.
        data_dir: The only folder to look in, instead of the usual ones.
    """
    path = existing(name, *parts, data_dir=data_dir)
    if path is not None:
        return path
    places = " or ".join(str(root) for root in roots(data_dir))
    raise FileNotFoundError(
        f"{name}: no {os.path.join(*parts)} in {places}; `lossforge data doctor {name}` shows the "
        f"expected layout, --data-dir or {VARIABLE} names another folder"
    )
