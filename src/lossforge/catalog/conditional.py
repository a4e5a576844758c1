"""Published settings that depend on the label noise."""

from collections.abc import Mapping
from typing import Any

from .setting import EPS, GJS, SR, Setting, each, setting

_TYPO = "less than at rate 0.8: probably a typo there"
_FOCAL = {"gamma": 0.1, "stop_gradient": True}


def _clip(noise: str | None, delta: float, *notes: str) -> Setting:
    return setting(EPS, *notes, noise=noise, delta=delta, as_released=True, norm_eps=1e-8)


def _eps_mae(**focal_factor: Any) -> dict[str, tuple[Setting, ...]]:
    def of(noise: str | None, alpha: float, beta: float, m: float, *notes: str) -> Setting:
        return setting(EPS, *notes, noise=noise, alpha=alpha, beta=beta, m=m, **focal_factor)

    ten = [
        of("symmetric", 0.01, 5.0, 1e5),
        of("asymmetric", 0.02, 5.0, 1e3),
        of("dependent", 0.045, 10.0, 1e5),
    ]
    hundred = [of("clean", 0.1, 1.0, 1e4)]
    for kind in ("symmetric", "dependent"):
        hundred += [
            of(f"{kind}:0.2", 0.05, 1.0, 1e4),
            of(f"{kind}:0.4", 0.03, 1.0, 1e4),
            of(f"{kind}:0.6", 0.00125, 1.0, 1e4, _TYPO),
            of(f"{kind}:0.8", 0.0075, 1.0, 1e4),
        ]
    for rate, alpha in {"0.1": 0.015, "0.2": 0.007, "0.3": 0.005, "0.4": 0.004}.items():
        hundred.append(of(f"asymmetric:{rate}", alpha, 1.0, 1e2))
    return each(
        cifar10=ten,
        cifar100=hundred,
        webvision=of(None, 0.015, 0.3, 1e3),
        clothing1m=of(None, 0.012, 0.1, 1e3),
    )


def _eps_alone(**focal_factor: Any) -> dict[str, tuple[Setting, ...]]:
    def of(noise: str | None, m: float) -> Setting:
        return setting(EPS, "the m of the sum with MAE", noise=noise, m=m, **focal_factor)

    return each(
        cifar10=[of("symmetric", 1e5), of("asymmetric", 1e3), of("dependent", 1e5)],
        cifar100=[of("symmetric", 1e4), of("asymmetric", 1e2), of("dependent", 1e4)],
        webvision=of(None, 1e3),
        clothing1m=of(None, 1e3),
    )


def _divergence(
    views: int, label_weights: Mapping[str, Mapping[str, float]]
) -> dict[str, tuple[Setting, ...]]:
    """The label's weight by preset and noise; the views share the rest evenly."""

    def of(noise: str | None, label: float, *notes: str, scaled: bool = True) -> Setting:
        weights = (label, *[round((1 - label) / views, 12)] * views)
        return setting(GJS, *notes, noise=noise, weights=weights, scaled=scaled)

    return each(
        **{
            preset: [of(noise, label) for noise, label in by_noise.items()]
            for preset, by_noise in label_weights.items()
        },
        webvision=of(None, 0.1, "without the scale there", scaled=False),
    )


def _by_rate(clean: float, *rates: float, **others: float) -> dict[str, float]:
    """Values at no noise, at symmetric rates 0.2, 0.4, 0.6, 0.8, and for other noise."""
    symmetric = zip(("0.2", "0.4", "0.6", "0.8"), rates, strict=True)
    return {"clean": clean} | {f"symmetric:{rate}": value for rate, value in symmetric} | others


def _sparse(noise: str | None, rho: float, every: int, gce: str, **parameters: Any) -> Setting:
    """A setting for base CE, which FL shares, and what differs `gce` says for GCE."""
    schedule = f"lamb grows by SRSchedule(lamb={parameters['lamb']:g}, rho={rho:g}, freq={every})"
    return setting(SR, schedule, f"with {gce}", noise=noise, base="CE", **parameters)


CONDITIONAL: dict[str, dict[str, tuple[Setting, ...]]] = {
    "CE+LC": each(
        cifar10=[
            _clip("symmetric:<0.5", 1.0),
            _clip("symmetric:>=0.5", 1.5),
            _clip("asymmetric", 2.5, "JAL's code takes it for all noise"),
            _clip("human", 2.5, "JAL's code takes it for all noise"),
            _clip("dependent", 2.0),
        ],
        cifar100=[_clip(None, 0.5, "JAL's code takes it for all noise"), _clip("asymmetric", 2.5)],
        webvision=_clip(None, 1.2),
    ),
    "ECE": _eps_alone(),
    "EFL": _eps_alone(**_FOCAL),
    "CEeps+MAE": _eps_mae(),
    "FLeps+MAE": _eps_mae(**_FOCAL),
    "JS": _divergence(
        1,
        {
            "cifar10": _by_rate(0.1, 0.7, 0.7, 0.9, 0.9, asymmetric=0.3),
            "cifar100": _by_rate(0.1, 0.1, 0.3, 0.5, 0.3, asymmetric=0.5),
        },
    ),
    "GJS": _divergence(
        2,
        {
            "cifar10": _by_rate(0.5, 0.3, 0.9, 0.1, 0.1, asymmetric=0.3),
            "cifar100": _by_rate(0.3, 0.3, 0.5, 0.9, 0.1)
            | {"asymmetric:0.2": 0.5, "asymmetric:0.4": 0.1},
        },
    ),
    "SR": each(
        cifar10=_sparse(
            None, 1.03, 1, "GCE its q is 0.01", tau=0.5, p=0.1, lamb=1.2, normalize=True
        ),
        cifar100=[
            _sparse(
                "symmetric",
                1.02,
                1,
                "GCE its q is 0.001",
                tau=0.5,
                p=0.01,
                lamb=4.0,
                normalize=True,
            ),
            _sparse(
                "asymmetric",
                1.02,
                1,
                "GCE its q is 0.001",
                tau=0.5,
                p=0.01,
                lamb=10.0,
                normalize=True,
            ),
        ],
        mnist=_sparse(
            None, 2.0, 5, "GCE q 0.01, tau 0.5, lamb 3", tau=0.1, p=0.1, lamb=4.0, normalize=False
        ),
    ),
}
