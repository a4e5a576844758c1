"""Published settings of losses by data set and label noise, as the papers' code states them.

`make(name, preset="cifar10", noise="symmetric:0.4")` takes them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..noise import NoiseSpec

PRESETS = ("cifar10", "cifar100", "webvision", "clothing1m", "mnist")
"""The data sets that losses have published settings for."""

JAL = "cswjl/joint-asymmetric-loss@0f9eb7b"
EPS = "cswjl/eps-softmax@f81685c"
APL = "HanxunH/Active-Passive-Losses@04bce53"
ANL = "Virusdoll/Active-Negative-Loss@0c50009"
GJS = "ErikEnglesson/GJS@1a3c9e0"
SR = "hitcszx/lnl_sr@cd3ed32"
NLS = "UCSC-REAL/negative-label-smoothing@05078f6"
NLNL = "ydkim1293/NLNL-Negative-Learning-for-Noisy-Labels@921dec4"
TRUNCATED = "AlanChou/Truncated-Loss@fef5908 (unofficial)"
PHUBER = "dmizr/phuber@56e5f71 (unofficial reproduction)"

SHIPPED = "lossforge's defaults; the paper's own are not available"
_FROZEN = "released behaviour: the focal factor carries no gradient"
_CLIP = "released behaviour: logits are rescaled, not clipped"
_TEN = "the released class assumes 10 classes and fails on this data set"
_OFF = "alpha 0: NCE is switched off"
_TYPO = "less than at rate 0.8: probably a typo there"
_FOCAL = {"gamma": 0.1, "stop_gradient": True}


@dataclass(frozen=True)
class Setting:
    """Parameters that a published experiment gave a loss.

    Args:
        parameters: Keyword arguments of the loss.
        noise: The label noise they are for: a kind ("asymmetric"), a kind and a rate
            ("symmetric:0.4"), a kind and a bound ("symmetric:<0.5", "symmetric:>=0.5"), or None
            for any.
        l1_decay: Coefficient of the sum of absolute values of all network parameters that the
            protocol adds to the loss, in place of weight decay; None if it adds none.
        source: Repository and commit, and what is worth knowing about the figures.
        released: Whether `parameters` ask for behaviour of the released code that differs from the
            published formula, because the published table was made with it.
    """

    parameters: dict[str, Any]
    noise: str | None
    l1_decay: float | None
    source: str
    released: bool


def settings(preset: str, loss_name: str) -> tuple[Setting, ...]:
    """Return all published settings of a loss for a data set; none if there is no such publication.

    Args:
        preset: One of `PRESETS`.
        loss_name: A catalogue name, spelt as in the catalogue.
    """
    if preset not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}, got {preset!r}")
    return PUBLISHED.get(loss_name, {}).get(preset, ())


def select(preset: str, loss_name: str, noise: str | NoiseSpec | None = None) -> Setting:
    """Select the published setting of a loss for a data set that fits the label noise best.

    Noise at rate 0 is clean, and clean counts as symmetric noise at rate 0; pair noise counts as
    asymmetric. Human noise takes the setting for instance-dependent noise where it has none of its
    own: people, too, err where a sample is hard. Labels as given are of unknown noise, like None.

    Args:
        preset: One of `PRESETS`.
        loss_name: A catalogue name, spelt as in the catalogue.
        noise: The label noise, as `lossforge.noise.NoiseSpec` reads it, or a kind without a rate.
            Needed only where the published setting depends on it.
    """
    wanted = None if noise is None else NoiseSpec.parse(noise)
    found = settings(preset, loss_name)
    if not found:
        known = [preset for preset in PRESETS if settings(preset, loss_name)]
        there = f"it has {', '.join(known)}" if known else "it has none at all"
        raise ValueError(f"{loss_name} has no published setting for preset {preset!r}; {there}")
    if wanted is None or wanted.kind == "given":
        fits = [int(len(found) == 1 and found[0].noise is None)]
    else:
        fits = [_closeness(one.noise, wanted) for one in found]
        if wanted.kind == "human" and not any(fits):
            fits = [_closeness(one.noise, NoiseSpec("instance")) for one in found]
    if not any(fits):
        got = "" if noise is None else f", got {str(noise)!r}"
        raise ValueError(
            f"noise must say which published setting of {loss_name} for {preset} is meant: "
            f"{', '.join(one.noise or 'any other' for one in found)}{got}"
        )
    return found[fits.index(max(fits))]


def _closeness(published: str | None, noise: NoiseSpec) -> int:
    """Rate how closely a published noise fits: 0 not at all, 1 as any noise, up to 4 exactly."""
    if published is None:
        return 1
    if published == "clean" and noise.is_clean:
        return 4
    kind = "symmetric" if noise.is_clean else noise.kind.replace("pair", "asymmetric")
    published_kind, _, bound = published.partition(":")
    if published_kind != kind:
        return 0
    if not bound:
        return 2
    if noise.rate is None:
        return 0
    if bound.startswith(">="):
        return 3 if noise.rate >= float(bound[2:]) else 0
    if bound.startswith("<"):
        return 3 if noise.rate < float(bound[1:]) else 0
    return 4 if noise.rate == float(bound) else 0


def setting(
    source: str,
    *notes: str,
    noise: str | None = None,
    l1_decay: float | None = None,
    **parameters: Any,
) -> Setting:
    """Make the setting with these parameters; recognise and note released behaviour."""
    released = [
        note
        for switch, note in (("stop_gradient", _FROZEN), ("as_released", _CLIP))
        if parameters.get(switch)
    ]
    text = "; ".join((source, *notes, *released))
    return Setting(parameters, noise, l1_decay, text, bool(released))


def focal(source: str, *notes: str, **parameters: Any) -> Setting:
    """Make the setting of a loss with a focal factor, which every released version detaches."""
    return setting(source, *notes, **{"gamma": 0.5, "stop_gradient": True, **parameters})


def each(**by_preset: Setting | list[Setting]) -> dict[str, tuple[Setting, ...]]:
    """Collect the settings of one loss by data set."""
    return {
        preset: tuple(found) if isinstance(found, list) else (found,)
        for preset, found in by_preset.items()
    }


def _clip(noise: str | None, delta: float, *notes: str) -> Setting:
    return setting(EPS, *notes, noise=noise, delta=delta, as_released=True, norm_eps=1e-8)


def _eps_mae(**focal_factor: Any) -> dict[str, tuple[Setting, ...]]:
    def of(noise: str | None, alpha: float, beta: float, m: float, *notes: str) -> Setting:
        return setting(EPS, *notes, noise=noise, alpha=alpha, beta=beta, m=m, **focal_factor)

    ten = [
        of("symmetric", 0.01, 5.0, 1e5),
        of("asymmetric", 0.02, 5.0, 1e3),
        of("instance", 0.045, 10.0, 1e5),
    ]
    hundred = [of("clean", 0.1, 1.0, 1e4)]
    for kind in ("symmetric", "instance"):
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
        cifar10=[of("symmetric", 1e5), of("asymmetric", 1e3), of("instance", 1e5)],
        cifar100=[of("symmetric", 1e4), of("asymmetric", 1e2), of("instance", 1e4)],
        webvision=of(None, 1e3),
        clothing1m=of(None, 1e3),
    )


def _divergence(
    views: int, label_weights: Mapping[str, Mapping[str, float]]
) -> dict[str, tuple[Setting, ...]]:
    """Make settings from the label's weight by data set and noise; the views share the rest."""

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
    """Name values at no noise, at symmetric rates 0.2, 0.4, 0.6, 0.8, and for other noise."""
    symmetric = zip(("0.2", "0.4", "0.6", "0.8"), rates, strict=True)
    return {"clean": clean} | {f"symmetric:{rate}": value for rate, value in symmetric} | others


def _sparse(rho: float, every: int, gce: str, **given: Any) -> Setting:
    """Make a setting for base CE, which FL shares; `gce` is what differs for GCE."""
    schedule = f"lamb grows by SRSchedule(lamb={given['lamb']:g}, rho={rho:g}, freq={every})"
    return setting(SR, schedule, f"with {gce}", base="CE", **given)


PUBLISHED: dict[str, dict[str, tuple[Setting, ...]]] = {
    "CE": {preset: (setting(JAL if preset != "mnist" else EPS),) for preset in PRESETS},
    "FL": {preset: (focal(JAL if preset != "mnist" else EPS),) for preset in PRESETS},
    "MAE": each(
        cifar10=setting(JAL, "scale 1 in the code of APL and ANL", scale=2.0),
        cifar100=setting(JAL, "scale 1 in the code of APL and ANL", scale=2.0),
        mnist=setting(EPS, "scale 1 in the code of APL and ANL", scale=2.0),
    ),
    "RCE": each(
        cifar10=setting(JAL, scale=1.0),
        cifar100=setting(JAL, scale=1.0),
        mnist=setting(EPS, scale=1.0),
    ),
    "GCE": each(
        cifar10=setting(JAL, q=0.7),
        cifar100=setting(JAL, q=0.7),
        webvision=setting(JAL, "0.7 in the code of eps-softmax, APL and ANL", q=0.6),
        clothing1m=setting(JAL, q=0.6),
        mnist=setting(EPS, q=0.7),
    ),
    "TGCE": each(
        cifar10=setting(TRUNCATED, q=0.7, k=0.5), cifar100=setting(TRUNCATED, q=0.7, k=0.5)
    ),
    "SCE": each(
        cifar10=setting(JAL, alpha=0.1, beta=1.0),
        cifar100=setting(JAL, alpha=6.0, beta=0.1),
        webvision=setting(JAL, alpha=10.0, beta=1.0),
        clothing1m=setting(JAL, alpha=10.0, beta=1.0),
        mnist=setting(EPS, alpha=0.01, beta=1.0),
    ),
    "NCE": each(
        cifar10=setting(JAL, scale=1.0),
        cifar100=setting(JAL, scale=1.0),
        mnist=setting(APL, scale=10.0),
    ),
    "NFL": each(
        cifar10=focal(JAL, "scale 10 for symmetric noise in APL's code", scale=1.0),
        cifar100=focal(JAL, scale=1.0),
    ),
    "NGCE": each(
        cifar10=setting(APL, q=0.1), cifar100=setting(APL, q=0.7), mnist=setting(APL, q=0.1)
    ),
    "NCE+RCE": each(
        cifar10=setting(JAL, alpha=1.0, beta=1.0),
        cifar100=setting(JAL, "beta 1 in the code of ALFs and lnl_sr", alpha=10.0, beta=0.1),
        webvision=setting(JAL, alpha=50.0, beta=0.1),
        clothing1m=setting(JAL, alpha=10.0, beta=1.0),
        mnist=setting(APL, "beta 100 in the code of ALFs and lnl_sr", alpha=1.0, beta=10.0),
    ),
    "NCE+MAE": each(
        cifar10=setting(JAL, alpha=1.0, beta=1.0),
        cifar100=setting(JAL, "beta 1 in the code of APL and ALFs", alpha=10.0, beta=0.1),
        webvision=setting(APL, alpha=50.0, beta=1.0),
        mnist=setting(APL, alpha=1.0, beta=10.0),
    ),
    "NFL+RCE": each(
        cifar10=focal(JAL, alpha=1.0, beta=1.0),
        cifar100=focal(JAL, alpha=10.0, beta=0.1),
        webvision=focal(APL, alpha=50.0, beta=0.1),
        mnist=focal(APL, alpha=1.0, beta=10.0),
    ),
    "NFL+MAE": each(
        cifar10=focal(APL, alpha=1.0, beta=1.0),
        cifar100=focal(APL, alpha=10.0, beta=1.0),
        webvision=focal(APL, alpha=50.0, beta=1.0),
        mnist=focal(APL, alpha=1.0, beta=10.0),
    ),
    "AUL": each(
        cifar10=setting(JAL, a=5.5, q=3.0),
        cifar100=setting(JAL, _TEN, a=5.5, q=3.0),
        mnist=setting(EPS, a=3.0, q=0.1),
    ),
    "AGCE": each(
        cifar10=setting(JAL, a=0.6, q=0.6),
        cifar100=setting(JAL, a=0.6, q=0.6),
        webvision=setting(JAL, "in effect GCE(q=0.5)", a=1e-5, q=0.5),
        clothing1m=setting(JAL, "in effect GCE(q=0.5)", a=1e-5, q=0.5),
        mnist=setting(EPS, a=4.0, q=0.2),
    ),
    "AEL": each(
        cifar10=setting(JAL, a=2.5), cifar100=setting(JAL, a=2.5), mnist=setting(EPS, a=3.5)
    ),
    "NCE+AUL": each(
        cifar10=setting(JAL, alpha=1.0, beta=4.0, a=6.3, q=1.5),
        cifar100=setting(JAL, _TEN, alpha=10.0, beta=0.015, a=6.0, q=3.0),
        mnist=setting(EPS, _OFF, alpha=0.0, beta=1.0, a=3.0, q=0.1),
    ),
    "NCE+AGCE": each(
        cifar10=setting(JAL, alpha=1.0, beta=4.0, a=6.0, q=1.5),
        cifar100=setting(JAL, alpha=10.0, beta=0.1, a=1.8, q=3.0),
        webvision=setting(JAL, alpha=50.0, beta=0.1, a=2.5, q=3.0),
        clothing1m=setting(JAL, alpha=50.0, beta=0.1, a=2.5, q=3.0),
        mnist=setting(EPS, _OFF, alpha=0.0, beta=1.0, a=4.0, q=0.2),
    ),
    "NCE+AEL": each(
        cifar10=setting(JAL, alpha=1.0, beta=4.0, a=5.0),
        cifar100=setting(JAL, alpha=10.0, beta=0.1, a=1.5),
        mnist=setting(EPS, _OFF, alpha=0.0, beta=1.0, a=3.5),
    ),
    "NNCE": each(
        cifar10=setting(JAL, "eps 1e-7 in ANL's code", l1_decay=5e-5, eps=1e-8),
        cifar100=setting(JAL, "eps 1e-7 in ANL's code", l1_decay=5e-7, eps=1e-8),
    ),
    "NNFL": each(
        cifar10=focal(JAL, "eps 1e-7 in ANL's code", l1_decay=5e-5, eps=1e-8),
        cifar100=focal(JAL, "eps 1e-7 in ANL's code", l1_decay=5e-7, eps=1e-8),
    ),
    "ANL-CE": each(
        cifar10=setting(ANL, l1_decay=5e-5, alpha=5.0, beta=5.0, eps=1e-7),
        cifar100=setting(ANL, l1_decay=5e-7, alpha=10.0, beta=1.0, eps=1e-7),
        webvision=setting(
            ANL,
            "JAL's code: weight decay 3e-5 instead",
            l1_decay=5e-6,
            alpha=20.0,
            beta=1.0,
            eps=1e-7,
        ),
        clothing1m=setting(JAL, "with weight decay 1e-3", alpha=5.0, beta=0.1, eps=1e-8),
        mnist=setting(ANL, l1_decay=1e-6, alpha=1.0, beta=1.0, eps=1e-7),
    ),
    "ANL-FL": each(
        cifar10=focal(ANL, l1_decay=5e-5, alpha=5.0, beta=5.0, eps=1e-7),
        cifar100=focal(ANL, l1_decay=5e-7, alpha=10.0, beta=1.0, eps=1e-7),
        webvision=focal(JAL, "with weight decay 3e-5", alpha=20.0, beta=1.0, eps=1e-8),
        clothing1m=focal(JAL, "with weight decay 1e-3", alpha=5.0, beta=0.1, eps=1e-8),
        mnist=focal(ANL, l1_decay=1e-6, alpha=1.0, beta=1.0, eps=1e-7),
    ),
    "AMSE": each(
        cifar10=setting(JAL, l1_decay=5e-5, a=30.0),
        cifar100=setting(JAL, l1_decay=5e-6, a=20.0),
        webvision=setting(JAL, "with weight decay 3e-5", a=30.0),
        clothing1m=setting(JAL, "with weight decay 1e-3", a=5.0),
    ),
    "JAL-CE": each(
        cifar10=setting(JAL, l1_decay=5e-5, alpha=1.0, beta=1.0, a=30.0),
        cifar100=setting(JAL, l1_decay=5e-6, alpha=5.0, beta=1.0, a=20.0),
        webvision=setting(JAL, "with weight decay 3e-5", alpha=50.0, beta=1.0, a=30.0),
        clothing1m=setting(JAL, "with weight decay 1e-3", alpha=5.0, beta=0.1, a=5.0),
    ),
    "JAL-FL": each(
        cifar10=focal(JAL, l1_decay=5e-5, alpha=1.0, beta=1.0, a=30.0),
        cifar100=focal(JAL, l1_decay=5e-6, alpha=5.0, beta=1.0, a=20.0),
        webvision=focal(JAL, "with weight decay 3e-5", alpha=50.0, beta=1.0, a=30.0),
        clothing1m=focal(JAL, "with weight decay 1e-3", alpha=5.0, beta=0.1, a=5.0),
    ),
    "LDR": each(
        cifar10=setting(JAL, threshold=0.1, Lambda=10.0),
        cifar100=setting(JAL, threshold=0.1, Lambda=1.0),
        webvision=setting(JAL, threshold=0.1, Lambda=1.0),
        clothing1m=setting(JAL, threshold=0.1, Lambda=1.0),
        mnist=setting(EPS, threshold=0.1, Lambda=10.0),
    ),
    "PHuber-CE": each(
        cifar10=setting(PHUBER, tau=2.0),
        cifar100=setting(PHUBER, "50 is tried there as well", tau=10.0),
        mnist=setting(PHUBER, tau=10.0),
    ),
    "PHuber-GCE": each(
        cifar10=setting(PHUBER, q=0.7, tau=10.0),
        cifar100=setting(PHUBER, q=0.7, tau=10.0),
        mnist=setting(PHUBER, q=0.7, tau=10.0),
    ),
    "LSR": each(cifar10=setting(NLS, smooth_rate=0.1)),
    "GLS": each(cifar10=setting(NLS, smooth_rate=0.1, wa=0.0, wb=1.0)),
    "NL": each(
        cifar10=setting(NLNL, "1 complementary label per image and step"),
        cifar100=setting(NLNL, "110 complementary labels per image and step"),
        mnist=setting(NLNL, "1 complementary label per image and step"),
    ),
    "BEF": dict.fromkeys(PRESETS, (setting(SHIPPED),)),
    "BQF": dict.fromkeys(PRESETS, (setting(SHIPPED),)),
    # those that depend on the noise
    "CE+LC": each(
        cifar10=[
            _clip("symmetric:<0.5", 1.0),
            _clip("symmetric:>=0.5", 1.5),
            _clip("asymmetric", 2.5, "JAL's code takes it for all noise"),
            _clip("human", 2.5, "JAL's code takes it for all noise"),
            _clip("instance", 2.0),
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
        cifar10=_sparse(1.03, 1, "GCE its q is 0.01", tau=0.5, p=0.1, lamb=1.2, normalize=True),
        cifar100=[
            _sparse(
                1.02,
                1,
                "GCE its q is 0.001",
                noise=noise,
                tau=0.5,
                p=0.01,
                lamb=lamb,
                normalize=True,
            )
            for noise, lamb in (("symmetric", 4.0), ("asymmetric", 10.0))
        ],
        mnist=_sparse(
            2.0, 5, "GCE q 0.01, tau 0.5, lamb 3", tau=0.1, p=0.1, lamb=4.0, normalize=False
        ),
    ),
}
