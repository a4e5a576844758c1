"""The claims "monotone" and "transfers": proofs row by row, and witnesses."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .bounds import Tables
from .counterexamples import find_rise
from .forms import Form
from .predictions import (
    FLOOR,
    fill_slots,
    pair_predictions,
    spread_predictions,
    worst_pair,
    worst_transfer,
)
from .proofs import HOW, Prover
from .ratio_tests import NO_ENCLOSURE, RatioTest, monotone_tests
from .verdict import Level, Verdict, Witness
from .weights import Rows

ASSUMPTIONS = (
    "the expected loss at one instance, over all predictions; nothing on networks or samples",
    "the noise is as given, up to the rounding of its numbers",
)
_ENDS = torch.logspace(-5, -1.5, 8, dtype=torch.float64)
_PAIR_SHARES = torch.cat([_ENDS, torch.linspace(0.05, 0.95, 19, dtype=torch.float64), 1 - _ENDS])
_NUDGE = 1e-6
_TS_ONLY = "of three classes or more, transfers are decided for target separation alone; the claim "
_TS_ONLY += "monotone is decided for sums with binary reduction too."
_RISE = "counterexample: dW/dz_t > 0 at the witness, W the expected loss"
_MOVED = "counterexample: dW/du_t > dW/du_s at the witness, W the expected loss"


def certify_monotone(form: Form, rows: Rows, cells: int, tables: Tables, refute: bool) -> Verdict:
    """Whether raising the true class's logit never increases the weighted loss, in every row."""
    tests = monotone_tests(form, rows, cells, tables)
    passed = torch.stack([test.passed for test in tests]).all(0)
    if bool(passed.all()):
        return proved(form, rows, tests)
    prover = Prover(form, cells, tables)
    levels: list[Level] = []
    left = None
    for place in failed_rows(rows, tests, passed):
        row, here = rows.pick(place), [test.pick(place) for test in tests]
        shared = facts(tests, place)
        shared |= {"row": int(row.targets[0]), "rival": int(row.rivals[1][0])}
        rule = "; ".join(test.rule for test in here if not bool(test.passed[0]))
        level, witness = prover.monotone(row, here, thorough=False), None
        # a part that is not understood may turn a rise of the others into a fall
        hints = _hints(form, row, cells) if refute and form.understood and level is None else []
        if hints:
            witness = find_rise(form, row, hints)
        if level is None and witness is None:
            level = prover.monotone(row, here)
        if hints and level is None and witness is None:
            witness = find_rise(form, row, hints, climb=True)
        if witness is not None:
            reason = "there is a prediction at which a larger logit of the true class hurts."
            return Verdict(
                "REFUTED", "monotone", _RISE, reason, "logits", witness=witness, **shared
            )
        if level is None:
            reason = "neither a proof nor a prediction at which it fails was found."
            left = left or Verdict("UNDECIDED", "monotone", rule, reason, **shared)
        else:
            levels.append(level)
    if left is not None:
        return left
    level = "logits" if "logits" in levels else "joint"
    reason = "raising the true class's logit never increases the expected loss."
    rule = "; ".join(test.rule for test in tests) + f"; where that fails, {HOW[level]}"
    verdict = Verdict(
        "PROVED", "monotone", rule, reason, level, assumptions=ASSUMPTIONS, cells=cells
    )
    return if_certified(verdict, prover.certified)


def certify_transfers(form: Form, rows: Rows, cells: int, tables: Tables, refute: bool) -> Verdict:
    """Whether moving probability to the true class never increases the weighted loss."""
    if rows.num_classes == 2:
        # one rival: a transfer is a change of the target's logit
        found = certify_monotone(form, rows, cells, tables, refute)
        return found.having(claim="transfers", witness=_per_mass(found.witness))
    if form.reduction is not None or form.separation is None:
        return Verdict("UNCERTIFIED", "transfers", "none", _TS_ONLY)
    tests = monotone_tests(form, rows, cells, tables)
    passed = tests[0].passed
    if bool(passed.all()):
        found = proved(form, rows, tests)
        level: Level = "any-h" if found.level == "any-h" else "transfers"
        return found.having(claim="transfers", level=level)
    binding = int(badness(tests)[~passed].argmax())
    row = (~passed).nonzero()[binding]
    one = rows.pick(row)
    # a part that is not understood may turn a rise of the others into a fall
    witness = _transfer(form, one, cells) if refute and form.understood else None
    shared = facts(tests, row)
    shared |= {"row": int(one.targets[0]), "rival": int(one.rivals[1][0])}
    if witness is None:
        reason = "the claim holds or fails by less than the bounds of the density can tell."
        return Verdict("UNDECIDED", "transfers", tests[0].rule, reason, **shared)
    reason = "there is a prediction from which moving probability to the true class hurts."
    return Verdict("REFUTED", "transfers", _MOVED, reason, "transfers", witness=witness, **shared)


def _per_mass(witness: Witness | None) -> Witness | None:
    """With two classes, dW/dz_t = u_t u_s times the rise per unit of probability moved."""
    if witness is None:
        return None
    moved = witness.probs[0] * witness.probs[1]
    return replace(witness, value=witness.value / moved, rival=1 - witness.target)


def proved(form: Form, rows: Rows, tests: list[RatioTest]) -> Verdict:
    """The verdict where every part passes in every row."""
    binding = int(badness(tests).argmax())
    level: Level = "logits"
    reason = "raising the true class's logit never increases the expected loss."
    if form.reduction is None and form.understood:
        free = tests[0].free
        level = "any-h" if free is not None and bool(free.all()) else "transfers"
        reason = "moving probability to the true class never increases the expected loss."
    if level == "any-h":
        reason = "robust for every decreasing base function: the votes separate the classes."
    rule = "; ".join(test.rule for test in tests)
    verdict = Verdict(
        "PROVED",
        "monotone",
        rule,
        reason,
        level,
        assumptions=ASSUMPTIONS,
        **facts(tests, torch.tensor([binding])),
    ).having(row=int(rows.targets[binding]), rival=int(rows.rivals[1][binding]))
    return if_certified(verdict, all(test.certified for test in tests) or level == "any-h")


def if_certified(verdict: Verdict, certified: bool) -> Verdict:
    """A proof that rests on sampled bounds is none."""
    if certified:
        return verdict
    reason = f"all tests pass on samples, but there are {NO_ENCLOSURE}."
    return verdict.having(status="UNCERTIFIED", reason=reason)


def badness(tests: list[RatioTest]) -> Tensor:
    """(R,) how close to failing, or how far beyond, each row is: the largest ratio over allowed."""
    size = max((len(test.passed) for test in tests), default=1)
    scores = [torch.zeros(1, dtype=torch.float64)]
    for test in tests:
        if test.ratio is None or test.allowed is None:
            scores.append(torch.where(test.passed, 0.0, torch.inf).double())
        else:
            score = (test.ratio / test.allowed).nan_to_num(nan=1.0)
            scores.append(torch.where(test.passed & test.allowed.isinf(), 0.0, score))
    return torch.stack([score.expand(size) for score in scores]).amax(0)


def facts(tests: list[RatioTest], place: Tensor) -> dict[str, Any]:
    """The numbers of the part that binds in a row."""
    picked = [test.pick(place) for test in tests]
    binding = max(picked, key=lambda test: float(badness([test])[0]))
    case = None
    if binding.case_b is not None and binding.free is not None and not bool(binding.free[0]):
        case = "B" if bool(binding.case_b[0]) else "A"
    return {
        "ratio": binding.ratio,
        "allowed": None if binding.allowed is None else float(binding.allowed[0]),
        "case": case,
        "cells": binding.cells,
    }


def failed_rows(rows: Rows, tests: list[RatioTest], passed: Tensor) -> Iterator[Tensor]:
    """Rows that failed, the worst first, one of each set of equal ones."""
    failed = (~passed).nonzero()[:, 0]
    scores = badness(tests).expand(len(passed))
    order = failed[scores[failed].argsort(descending=True, stable=True)]
    # with one rival, or with rivals of one weight, two numbers describe a row
    single = (rows.weights > 0).sum(1) <= 2
    even = rows.rivals[0] == rows.lightest
    numbers = torch.stack([rows.own, rows.rivals[0], single, even], 1)[order].tolist()
    seen: dict[tuple[float, ...], list[Tensor]] = {}
    # rows that differ by the names of classes are equal
    for index, key in zip(order.tolist(), numbers, strict=True):
        known = seen.setdefault(tuple(key), [])
        if known and any(key[2:]):
            continue
        ordered = rows.weights[index].sort().values
        if not any(torch.equal(ordered, other) for other in known):
            known.append(ordered)
            yield torch.tensor([index])


def _hints(form: Form, row: Rows, cells: int) -> list[Tensor]:
    """Predictions at which the parts come closest to failing."""
    slots = fill_slots(row)
    sizes = torch.logspace(-20, 0, 11, dtype=torch.float64)
    hints = []
    if form.separation is not None:
        x, y = _worst_of(form, row, cells)
        probs = torch.zeros(1, len(slots.weights), dtype=torch.float64)
        probs[0, -1] = max(0.0, 1 - x - y)
        probs[0, 0], probs[0, 1] = x, y
        hints.append(slots.inside(probs))
    shares = [_PAIR_SHARES]
    for mixture in (form.separation and form.separation.own, form.reduction):
        for base in {base for _, base in mixture.parts} if mixture else ():
            p = worst_pair(base, cells)
            # beside a jump of the density too
            near = torch.tensor([p, p - _NUDGE, p + _NUDGE], dtype=torch.float64).clamp(0, 1)
            shares += [near, 1 - near]
    pairs = pair_predictions(slots, torch.cat(shares), sizes)
    return [*hints, pairs, spread_predictions(slots)]


def _worst_of(form: Form, row: Rows, cells: int) -> tuple[float, float]:
    """Where a transfer from the heaviest rival comes closest to hurting: u_t, u_s."""
    separation = form.separation
    assert separation is not None
    base = separation.own.only
    if base is not None and separation.a is not None:
        x, y = worst_transfer(base, cells)
        own = float((1 + separation.a) * row.own[0] - separation.a * row.totals[0])
        # with negative coefficients the roles are exchanged
        return (x, y) if own >= 0 else (y, x)
    grid = torch.linspace(0, 1, 400, dtype=torch.float64).clamp(min=1e-9)
    pull, _ = separation.effect(row.own[0], row.totals[0], grid)
    push, _ = separation.effect(row.rivals[0][0], row.totals[0], grid)
    gap = torch.where(grid[:, None] + grid <= 1, pull[:, None] - push, torch.inf)
    place = int(gap.argmin())
    return float(grid[place // 400]), float(grid[place % 400])


def _transfer(form: Form, row: Rows, cells: int) -> Witness | None:
    """The witness that a transfer from the heaviest rival hurts at a prediction."""
    assert form.separation is not None
    target, rival = int(row.targets[0]), int(row.rivals[1][0])
    x, y = (max(part, FLOOR) for part in _worst_of(form, row, cells))
    probs = torch.zeros(row.num_classes, dtype=torch.float64)
    lightest = row.weights[0].clone()
    lightest[[target, rival]] = torch.inf
    probs[lightest.argmin()] = max(0.0, 1 - x - y)
    probs[target], probs[rival] = x, y
    pull, above = form.separation.effect(row.own[0], row.totals[0], probs[target])
    push, below = form.separation.effect(row.rivals[0][0], row.totals[0], probs[rival])
    rise = float(push - pull)
    if rise <= 1e-12 * float(above + below):
        return None
    weights = tuple(row.weights[0].tolist())
    return Witness(weights, target, tuple(probs.tolist()), rise, rival)
