"""The settings that papers published, as their code states them, per loss and data set."""

from .conditional import CONDITIONAL
from .setting import (
    ANL,
    APL,
    EPS,
    JAL,
    NLNL,
    NLS,
    PHUBER,
    TRUNCATED,
    Setting,
    each,
    focal,
    setting,
)

Presets = dict[str, tuple[Setting, ...]]

SHIPPED = "lossforge's defaults; the paper's own are not available"

_TEN = "the released class assumes 10 classes and fails on this data set"
_OFF = "alpha 0: NCE is switched off"


_ALL = ("cifar10", "cifar100", "webvision", "clothing1m", "mnist")

PUBLISHED: dict[str, Presets] = {
    "CE": {preset: (setting(JAL if preset != "mnist" else EPS),) for preset in _ALL},
    "FL": {preset: (focal(JAL if preset != "mnist" else EPS),) for preset in _ALL},
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
    "BEF": dict.fromkeys(_ALL, (setting(SHIPPED),)),
    "BQF": dict.fromkeys(_ALL, (setting(SHIPPED),)),
    **CONDITIONAL,
}
