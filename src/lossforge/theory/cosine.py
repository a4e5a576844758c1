r"""The bounded cosine term C beside the other parts of a loss.

Let w be the label weights of a row and S their sum, and let a tilde mean "less its mean". With
:math:`e = \tilde e_t`, whose length is :math:`1/c`, the weighted term is

.. math::
    W_C = S - \frac{c}{n} \langle \tilde w, \tilde z \rangle, \qquad
    \frac{\partial W_C}{\partial z_t} = -\frac{c}{n} \left( \tilde w_t -
        \frac{\langle e, \tilde z \rangle \langle \tilde w, \tilde z \rangle}{n^2} \right), \qquad
    n^2 = |\tilde z|^2 + 1.

**Monotone.** Over unit vectors x, :math:`\langle e, x \rangle \langle \tilde w, x \rangle` is at
most :math:`(|e| |\tilde w| + \tilde w_t) / 2`, at the bisector of e and :math:`\tilde w`. So the
derivative is nowhere positive exactly if :math:`|e| |\tilde w| \le \tilde w_t`, and as
:math:`\tilde w_t = \langle e, \tilde w \rangle`, exactly if the two vectors are parallel: if all
rivals weigh the same. Two classes and symmetric noise at any rate below (K - 1)/K are such. In any
other row C rises along the bisector, far enough out. Its largest entry is the target's, so what
target separation and binary reduction have against it vanishes there exponentially, and the rise of
C like 1/n: a sum with C is not monotone either. A counterexample is measured on the loss itself.

**Global.** The infimum :math:`S - c |\tilde w|` is approached exactly by those z whose length grows
beyond all bounds while their direction tends to that of :math:`\tilde w`. The target's entry is its
largest, so their softmax tends to the one-hot vector, in every row. Let W be the rest of the loss,
for which the claim is proved. A target separation is continuous, and takes its limit at the one-hot
vector along :math:`z = R \tilde w` too. So does a binary reduction with symmetric l: a pair of
rivals costs :math:`(w_i - w_j) l(p_{ij})` and a constant, which along this z tends to its infimum.
Both infima are then approached together, and whatever approaches that of the sum approaches that of
C, and so the one-hot vector.

Moving probability from one class to another is not decided, but with two classes, where it is the
same as raising a logit.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor

from .forms import Form
from .monotone import ASSUMPTIONS
from .ratio_tests import mixture_ratios, normalised
from .verdict import CLAIMS, Claim, Level, Verdict, Witness
from .weights import Rows

_LENGTHS = torch.logspace(0.5, 3, 8, dtype=torch.float64)  # of logits along the bisector
_ROUNDING = 1e-11
_MOST_ROWS = 4  # searched for a counterexample
_RULES: dict[Claim, str] = {
    "monotone": "bounded cosine: symmetric, equal weights of the others",
    "transfers": "bounded cosine: two classes",
    "global": "bounded cosine: its infimum is full confidence, approached with that of the rest",
}
_OPEN = "beside a bounded cosine, only rows whose wrong labels are equally likely are monotone."
_NOT_GLOBAL = "beside a bounded cosine, the claim is decided for bounded target separations and "
_NOT_GLOBAL += "symmetric binary reductions, and must be proved of them."
_NOT_MOVED = "of three classes or more, transfers are not decided beside a bounded cosine."


def rest_of(form: Form) -> Form | None:
    """The form without the cosine; None if there is nothing else."""
    rest = replace(form, cosine=0.0)
    parts = (rest.separation, rest.reduction, *rest.normalised, *rest.unknown)
    return rest if any(part is not None for part in parts) else None


def keeps_proofs(form: Form, rows: Rows, claim: Claim) -> Tensor:
    """(R,) rows in which the sum has the claim if the rest has."""
    if claim != "global":
        even = normalised(rows).passed
        return even & (claim == "monotone" or rows.num_classes == 2)
    reduced = form.reduction is None
    if form.reduction is not None:
        found = mixture_ratios(form.reduction, 8, {})
        reduced = found.exact and found.rho_M == 1.0
    return torch.full((len(rows.weights),), reduced and not form.normalised)


def beside_cosine(form: Form, rows: Rows, claim: Claim, rest: Verdict | None) -> Verdict:
    """The verdict on a sum, given that on the rest of it; None if there is none."""
    kept = bool(keeps_proofs(form, rows, claim).all())
    if kept and (rest is None or rest.status == "PROVED"):
        rule, reason = _RULES[claim], f"{CLAIMS[claim]}."
        level: Level = "logits" if claim == "monotone" else claim
        if rest is None:
            assumed = (*ASSUMPTIONS, *form.assumptions)
            return Verdict("PROVED", claim, rule, reason, level, assumptions=assumed)
        return rest.having(rule=f"{rest.rule}; {rule}", reason=reason, level=level)
    if claim == "global":
        witness = None if rest is None or rest.witness is None else _still(form, rest.witness)
        if rest is not None and witness is not None:
            return rest.having(witness=witness)
        return Verdict("UNDECIDED", claim, _RULES[claim], _NOT_GLOBAL)
    if claim == "transfers" and rows.num_classes > 2:
        return Verdict("UNCERTIFIED", claim, "none", _NOT_MOVED)
    return Verdict("UNDECIDED", claim, _RULES[claim], _OPEN if not kept else _unproved(rest))


def _unproved(rest: Verdict | None) -> str:
    return "nothing is proved." if rest is None else f"of the rest of the sum, {rest.reason}"


def _still(form: Form, witness: Witness) -> Witness | None:
    """A prediction better than full confidence for the rest, if it is for the sum too."""
    if math.isinf(witness.value) or min(witness.probs) <= 0:
        return None
    weights = torch.tensor(witness.weights, dtype=torch.float64)
    z = torch.tensor(witness.probs, dtype=torch.float64).log()
    centred, pull = z - z.mean(), weights - weights.mean()
    c = math.sqrt(len(z) / (len(z) - 1))
    length = torch.linalg.vector_norm(pull)
    # how far C is above its infimum there
    above = c * (length - (pull @ centred) / torch.sqrt(centred @ centred + 1))
    value = witness.value - form.cosine * float(above)
    sure = value > _ROUNDING * (witness.value + form.cosine * c)
    return replace(witness, value=value) if sure else None


def least_even(rows: Rows) -> list[Tensor]:
    """The rows in which C rises the most, relative to its fall at equal logits."""
    pull = rows.weights - rows.weights.mean(1, keepdim=True)
    c = math.sqrt(rows.num_classes / (rows.num_classes - 1))
    own = pull.gather(1, rows.targets[:, None])[:, 0]
    order = (torch.linalg.vector_norm(pull, dim=1) / (c * own)).argsort(descending=True)
    return [order[place : place + 1] for place in range(min(_MOST_ROWS, len(order)))]


def along_bisector(row: Rows) -> Tensor:
    """(B, K) logits of one row along the bisector of its centred target and weights."""
    own = torch.zeros_like(row.weights[0])
    own[row.targets[0]] = 1.0
    both = torch.stack([own, row.weights[0]])
    both = both - both.mean(1, keepdim=True)
    middle = (both / torch.linalg.vector_norm(both, dim=1, keepdim=True)).sum(0)
    unit: Tensor = middle / torch.linalg.vector_norm(middle)
    return _LENGTHS[:, None] * unit
