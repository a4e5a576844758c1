"""Published settings by data set: `make(name, preset="cifar10", noise="symmetric:0.4")`."""

from .published import PUBLISHED
from .setting import Setting

PRESETS = ("cifar10", "cifar100", "webvision", "clothing1m", "mnist")
NOISES = ("symmetric", "asymmetric", "dependent", "human", "clean")


def settings(preset: str, loss_name: str) -> tuple[Setting, ...]:
    """All published settings of a loss for a preset; none if there is no such publication.

    Args:
        preset: One of `PRESETS`.
        loss_name: A catalogue name, spelt as in the catalogue.
    """
    if preset not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}, got {preset!r}")
    return PUBLISHED.get(loss_name, {}).get(preset, ())


def select(preset: str, loss_name: str, noise: str | None = None) -> Setting:
    """The published setting of a loss for a preset that fits the label noise most closely.

    Args:
        preset: One of `PRESETS`.
        loss_name: A catalogue name, spelt as in the catalogue.
        noise: A type ("asymmetric", "dependent", "human", "clean") or a type and a rate
            ("symmetric:0.4"); rate 0 is clean, and clean counts as symmetric noise at rate 0.
            Needed only where the published setting depends on it.
    """
    if noise is not None and not isinstance(noise, str):
        raise TypeError(f"noise must be a string such as 'symmetric:0.4', got {noise!r}")
    wanted = None if noise is None else _read(noise)
    found = settings(preset, loss_name)
    if not found:
        known = [preset for preset in PRESETS if settings(preset, loss_name)]
        there = f"it has {', '.join(known)}" if known else "it has none at all"
        raise ValueError(f"{loss_name} has no published setting for preset {preset!r}; {there}")
    if wanted is None:
        fits = [int(len(found) == 1 and found[0].noise is None)]
    else:
        fits = [_specificity(one.noise, *wanted) for one in found]
    if not any(fits):
        got = "" if noise is None else f", got {noise!r}"
        raise ValueError(
            f"noise must say which published setting of {loss_name} for {preset} is meant: "
            f"{', '.join(one.noise or 'any other' for one in found)}{got}"
        )
    return found[fits.index(max(fits))]


def _read(noise: str) -> tuple[str, float | None]:
    kind, colon, rate = noise.strip().lower().partition(":")
    rule = f"noise must be one of {', '.join(NOISES)}, with a rate as in 'symmetric:0.4'"
    if kind not in NOISES:
        raise ValueError(f"{rule}, got {noise!r}")
    if not colon:
        return kind, 0.0 if kind == "clean" else None
    try:
        value = float(rate)
    except ValueError:
        raise ValueError(f"{rule}, got {noise!r}") from None
    if not 0 <= value <= 1 or kind in ("human", "clean"):
        raise ValueError(f"{rule} in [0, 1] and none for human and clean, got {noise!r}")
    return ("clean", 0.0) if value == 0 else (kind, value)


def _specificity(published: str | None, kind: str, rate: float | None) -> int:
    """How closely a published noise fits: 0 not at all, 1 as any noise, up to 4 exactly."""
    if published is None:
        return 1
    if published == kind:
        return 4 if kind == "clean" else 2
    published_kind, _, bound = published.partition(":")
    if published_kind != ("symmetric" if kind == "clean" else kind):
        return 0
    if not bound:
        return 2
    if rate is None:
        return 0
    if bound.startswith(">="):
        return 3 * (rate >= float(bound[2:]))
    if bound.startswith("<"):
        return 3 * (rate < float(bound[1:]))
    return 4 * (rate == float(bound))
