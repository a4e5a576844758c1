"""The explorer: one HTML file without network access, in which a loss is shaped, seen and trained.

Its source are small ES modules in the folder `explorer`. They are joined when the file is written,
each as a function of its own that returns what it exports; no build tool is needed.
"""

import json
import math
import re
from collections.abc import Sequence
from importlib import resources
from typing import Any

from ..base import (
    BaseFunction,
    Exponential,
    ExponentialDecay,
    Focal,
    HuberLog,
    HuberPower,
    JensenShannon,
    Linear,
    Log,
    MirroredPower,
    Power,
    Quadratic,
    Series,
    ShiftedLog,
    ShiftedPower,
    Taylor,
    Truncated,
)
from ..base.function import text_name
from ..catalog import ENTRIES
from ..constructions import BinaryReduction, ByRivals, Declared, TargetLoss, TargetSeparation
from ..loss import Loss, WeightedSum
from ..noise import NoiseSpec
from ..theory.forms import take_apart
from .sheet import example

MODULES = ("base", "loss", "certify", "state", "draw", "controls", "train", "page")
KINDS = (  # whose parameters are those of the page
    *(Exponential, Quadratic, Log, Linear, Power, ShiftedPower, MirroredPower, ExponentialDecay),
    *(Taylor, HuberLog, HuberPower, ShiftedLog, JensenShannon),
)
_NODES = 6  # points of a drawn curve
_CLASSES, _MORE = 10, 100  # at which the parts of a loss are compared
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (const|function\*?|class) (\w+)", re.MULTILINE)


def explorer(
    loss: Loss | None = None,
    *,
    name: str = "",
    noise: str | NoiseSpec = "symmetric:0.4",
    num_classes: int = 10,
) -> str:
    """Return the explorer as the text of one HTML file.

    Args:
        loss: What it shows at first: target separation, binary reduction or their sum; `BEF` if
            None. The page says so where a number is beyond its ranges.
        name: Of the preset that this loss is, if it is one.
        noise: "symmetric:RATE" or "pair:RATE".
        num_classes: K.

    Raises:
        ValueError: if the page cannot show the loss, or not for so many classes.
    """
    spec = NoiseSpec.parse(noise)
    if spec.kind not in ("symmetric", "pair") or spec.rate is None:
        raise ValueError(f"noise must be symmetric:RATE or pair:RATE, got {noise}")
    shown = example("BEF", num_classes) if loss is None else loss
    start = describe(shown) | {"name": "BEF" if loss is None else name}
    most = start.pop("most")  # no part of the page's state
    if num_classes - 1 > most > 0:
        raise ValueError(
            f"num_classes must be up to {most + 1}, got {num_classes}: beyond, this loss "
            "is no sum of target separation and binary reduction; `lossforge certify` decides it"
        )
    start |= {"noise": spec.kind, "rate": spec.rate, "K": num_classes}
    given = json.dumps({"presets": presets(), "start": start}).replace("<", "\\u003c")
    parts = {"STYLE": _read("page.css"), "GIVEN": given, "SCRIPT": bundle()}
    return re.sub(r"/\*(STYLE|GIVEN|SCRIPT)\*/", lambda found: parts[found[1]], _read("page.html"))


def bundle(modules: Sequence[str] = MODULES) -> str:
    """Join modules, given in the order of their imports."""
    joined = []
    for module in modules:
        source = _read(f"{module}.js")
        exported = ", ".join(name for _, name in _EXPORT.findall(source))
        source = _EXPORT.sub(r"\1 \2", _IMPORT.sub(r"const {\1} = \2Module;\n", source))
        joined.append(f"const {module}Module = (() => {{\n{source}return {{ {exported} }};\n}})();")
    return "\n".join(joined).replace("</script", "<\\/script")


def presets() -> dict[str, dict[str, Any]]:
    """Return the catalogue's losses that are target separation, binary reduction or a sum."""
    found = {}
    for name in ENTRIES:
        try:
            found[name] = describe(example(name, 10))
        except ValueError:  # of another form
            continue
    return found


def describe(loss: Loss) -> dict[str, Any]:
    """Return a loss as the page's data.

    Raises:
        ValueError: if it is not target separation, binary reduction or their sum; `most`, if it is
            not 0, is the number of rivals up to which it is.
    """
    found: dict[str, Any] = {"lam": 0.0, "tau": 0.0, "a": 0.0, "mu": 0.0, "most": 0}
    found |= {"own": None, "other": None, "pair": None, "perK": False, "extra": []}
    fits = _add(found, 1.0, loss)
    # a class of the user's own may override what it inherits
    doubts = take_apart(loss, _CLASSES).doubts
    if doubts or not fits:
        raise ValueError(
            "loss must be target separation, binary reduction or their sum, of base functions "
            f"that the page knows; got {'; '.join(doubts) or loss}"
        )
    found["own"] = found["own"] or found["pair"]
    found["pair"] = None if found["pair"] == found["own"] else found["pair"]
    if found["own"] is None:
        raise ValueError(f"loss must have a part whose coefficient is not 0, got {loss}")
    return found


def _add(found: dict[str, Any], scale: float, member: Loss) -> bool:
    """Add a member to a description; False if it does not fit."""
    if isinstance(member, WeightedSum):
        return all(_add(found, scale * factor, one) for factor, one in member.terms if factor)
    if scale < 0:
        return False
    if isinstance(member, ByRivals):  # the page shows it up to so many rivals
        found["most"] = min(found["most"] or member.most, member.most)
        return _add(found, scale, member.few)
    if isinstance(member, BinaryReduction):
        base = _base(member.base)
        fits = base is not None and found["pair"] is None
        found |= {"mu": scale, "pair": base}
        return fits
    separated = _separated(scale, member)
    if separated is None:
        return False
    if found["own"] is None:
        found |= separated
        return True
    plain = not (separated["tau"] or separated["a"] or separated["perK"])
    found["extra"].append({"factor": separated["lam"], "base": separated["own"]})
    return plain


def _separated(scale: float, member: Loss) -> dict[str, Any] | None:
    """Return a target separation as fields of a description."""
    if isinstance(member, TargetLoss):
        own = _base(member.base)
        plain = {"lam": scale * member.scale, "tau": 0.0, "a": 0.0, "perK": False, "other": None}
        return None if own is None else plain | {"own": own}
    if isinstance(member, TargetSeparation):
        own, other = _base(member.base), _base(member.nontarget)
        same = member.nontarget == member.base
        if own is None or other is None:
            return None
        strengths = {"tau": member.tau or 0.0, "a": member.a or 0.0}
        fields = {"lam": scale, "own": own, "other": None if same else other, "perK": False}
        return fields | strengths
    return _distance(scale, member)


def _distance(scale: float, member: Loss) -> dict[str, Any] | None:
    """Return a loss that declares target and others, whose factors may fall like 1 / K."""
    if not isinstance(member, Declared):
        return None
    few, many = member.parts(_CLASSES), member.parts(_MORE)
    if [part.role for part in few] not in (["target"], ["target", "others"]):
        return None
    bases = [_base(part.base) for part in few]
    # of the others in units of the target
    strengths = [sum(part.factor for part in parts[1:]) / parts[0].factor for parts in (few, many)]
    target, far = few[0].factor, many[0].factor
    constant, falls = math.isclose(far, target), math.isclose(_MORE * far, _CLASSES * target)
    if None in bases or not (constant or falls) or not math.isclose(*strengths):
        return None
    lam = scale * target * (1 if constant else _CLASSES)
    other = bases[1] if len(bases) > 1 and bases[1] != bases[0] else None
    strength = {"a": strengths[0], "tau": 0.0, "perK": not constant}
    return {"lam": lam, "own": bases[0], "other": other} | strength


def _base(base: BaseFunction) -> dict[str, Any] | None:
    """Return a base function as the page's data; None if the page does not know it."""
    kind = text_name(type(base))
    if type(base) is Focal:
        return None if base.stop_gradient else {"kind": kind, "gamma": base.gamma}
    if type(base) is Truncated and type(base.base) is Power:
        return {"kind": "truncated_power", "q": base.base.q, "eps": base.eps}
    if type(base) is Series and base.logarithmic and len(base.coefficients) <= _NODES:
        # Chebyshev-Lobatto points
        last = _NODES - 1
        nodes = ((1 - math.cos(math.pi * place / last)) / 2 for place in range(_NODES))
        return {"kind": kind, "points": [math.log(base.phi(x)) for x in nodes]}
    return {"kind": kind, **base.parameters()} if type(base) in KINDS else None


def _read(file: str) -> str:
    return (resources.files(__package__) / "explorer" / file).read_text(encoding="utf-8")
