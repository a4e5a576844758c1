"""Certificates near the frontier, attacked by a search that only calls the loss.

A problem is a random loss, a random noise whose rate lies close to where the claim turns, and one
of the three claims (`near_frontier`). What `certify` proves is searched for counterexamples, what
it refutes must be wrong at its witness, both by the loss as it is called (`called`) and, where
rounding could decide, in fifty digits (`precise`). The search shares no code with
`lossforge.theory`.
"""

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

sys.path.append(str(Path(__file__).resolve().parents[1] / "theory"))

import called
import precise
from near_frontier import Problem, draw

from lossforge.theory import InstanceVerdict, Verdict, certify

SIZE = 10_000
SECONDS = 20.0  # of the processor, for one problem
DOUBTFUL = 1e-7  # relative to what cancels: closer to 0 than this, fifty digits decide
ROUNDING = 1e-13  # in them: what the rounding of coefficients and weights may amount to
CLEAR = 1e-6  # relative to what cancels: far enough from 0 for double precision
GAP = 1e-10  # relative to values of W: a difference that is none of rounding
BESIDE = 1e-7  # relative to the terms of a slope next to full confidence


def attack(seed: int) -> list[str]:
    """The faults of problem `seed`."""
    return _judge(seed)[1]


def _judge(seed: int) -> tuple[str, list[str]]:
    """The status of problem `seed`, and its faults."""
    problem = draw(np.random.default_rng((16, seed)))
    start = time.process_time()
    try:
        found = certify(problem.loss, problem.noise, claim=problem.claim)  # type: ignore[arg-type]
    except Exception as error:
        return "error", [f"{problem.text}: {type(error).__name__}: {error}"]
    spent = time.process_time() - start
    faults = [f"certify took {spent:.0f} s"] if spent > SECONDS else []
    if isinstance(found, InstanceVerdict):
        status = "instances"
        for row in found.proved.nonzero()[:4, 0].tolist():
            faults += _broken(problem, row, seed, "certify_instances")
    else:
        status = found.status
        faults += _faults_of(problem, found, seed)
    return f"{problem.claim} {status}", [f"{problem.text}: {fault}" for fault in faults]


def _faults_of(problem: Problem, verdict: Verdict, seed: int) -> list[str]:
    if verdict.status == "REFUTED":
        return _unfounded(problem, json.loads(json.dumps(verdict.to_dict()))["witness"])
    if verdict.status != "PROVED":
        return []
    top = problem.rows.topk(2, 1).values
    order = (top[:, 1] / top[:, 0]).argsort(descending=True, stable=True).tolist()
    # rows that differ by the names of their classes alone are one
    seen = {tuple(problem.rows[row].sort().values.tolist()): row for row in reversed(order)}
    chosen = sorted(seen.values(), key=order.index)[: 1 + seed % 2]
    return [fault for row in chosen for fault in _broken(problem, row, seed, verdict.rule)]


def _broken(problem: Problem, row: int, seed: int, rule: str) -> list[str]:
    weights, target = problem.rows[row], int(problem.targets[row])
    find = called.search(problem.loss, weights, target, problem.claim, seed)
    measured, least = find.score, GAP
    if problem.claim == "global":
        # beside full confidence differences drown in rounding, and slopes do not
        if _leaves_target(problem, weights, target) > BESIDE:
            measured = 1.0
    elif find.score > -DOUBTFUL:
        measured = _measured(problem, weights, target, find.logits, find.rival)
        least = 0.0 if problem.exact else ROUNDING
    if measured <= least:
        return []
    return [
        f"PROVED ({rule}), but fails by {measured:.3g} of its terms for target {target}, weights "
        f"{weights.tolist()}, logits {find.logits}, rival {find.rival}"
    ]


def _measured(
    problem: Problem,
    weights: Tensor,
    target: int,
    logits: list[float],
    rival: int | None,
    otherwise: float = 0.0,
) -> float:
    """How far a claim fails at logits in fifty digits, relative to what cancels."""
    if problem.claim == "global" or not problem.understood:
        return otherwise
    if problem.claim == "monotone":
        value, size = precise.gradient(problem.loss, weights.tolist(), logits, target)
    else:
        assert rival is not None
        value, size = precise.rise(problem.loss, weights.tolist(), logits, target, rival)
    return float(value / size) if size else 0.0


def _gap(problem: Problem, weights: Tensor, target: int, logits: list[float]) -> float:
    """W at full confidence less W at logits, relative to both."""
    order = [target, *(k for k in range(len(weights)) if k != target)]
    w, z = weights[order], torch.tensor([logits], dtype=torch.float64)[:, order]
    loss = problem.loss.with_policy(reduction="none")
    low, here = called.limit_at_target(loss, w), float(called.values(loss, w, z))
    return (low - here) / (abs(low) + abs(here))


def _leaves_target(problem: Problem, weights: Tensor, target: int) -> float:
    """How far W falls from full confidence towards the strongest rival, relative to its terms."""
    if "BR(" in str(problem.loss):
        return -1.0  # there are many limits at full confidence
    w = weights.clone()
    w[target] = -1
    rival = int(w.argmax())
    logits = [-80.0] * len(w)
    logits[target], logits[rival] = 0.0, -25.0
    value, size = precise.rise(problem.loss, weights.tolist(), logits, target, rival)
    return float(value / size) if size else 0.0


def _unfounded(problem: Problem, witness: dict[str, Any] | None) -> list[str]:
    if witness is None:
        return ["REFUTED without a witness"]
    weights, target = torch.tensor(witness["weights"], dtype=torch.float64), witness["target"]
    if not bool(((problem.rows == weights).all(1) & (problem.targets == target)).any()):
        return [f"REFUTED at a row that the noise does not have: {witness}"]
    logits = witness.get("logits") or [math.log(max(p, 1e-300)) for p in witness["probs"]]
    seen = _as_called(problem, weights, target, logits, witness["rival"])
    sure = _measured(problem, weights, target, logits, witness["rival"], seen)
    if not (sure > 0 and float(witness["value"]) > 0) or (seen < 0 and sure > CLEAR):
        return [f"REFUTED by {witness}, which gives {sure} of its terms, as called {seen}"]
    return []


def _as_called(
    problem: Problem, weights: Tensor, target: int, logits: list[float], rival: int | None
) -> float:
    """How far a claim fails at logits by the loss itself, relative to what cancels."""
    if problem.claim == "global":
        return _gap(problem, weights, target, logits)
    loss = problem.loss.with_policy(reduction="none")
    z = torch.tensor([logits], dtype=torch.float64)
    g = called.slopes(loss, weights, z)[0]
    if problem.claim == "monotone":
        return float(g[target] / g.abs().sum())
    u = torch.softmax(z[0], 0)
    own, other = (float(g[k] / u[k]) for k in (target, rival))
    return (own - other) / (abs(own) + abs(other))
