"""The numbers of the explorer are the package's: values, ratios, verdicts and rates, under Node."""

import json
import math
import random
import shutil
import subprocess
import sys
from collections import Counter

import pytest
import torch

import lossforge
from lossforge import theory
from lossforge.plot.explore import MODULES, bundle, describe, presets

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="Node is not installed")
RATIOS = 1e-9  # relative: how far a ratio of the page may be off, by rounding

PURE = (*MODULES[:4], "train")  # what needs no page
RUNNER = """
import { readFileSync } from "node:fs";
const problems = JSON.parse(readFileSync(0, "utf8"));
const { make, textOf } = baseModule, { verdict, provedRate } = certifyModule;
const { lossText, lossPython, termsOf, value, pullAt, valueAt } = lossModule;
const { readState, toHash, fromHash } = stateModule;
const plain = (x) => (Number.isFinite(x) ? x : String(x));
console.log(JSON.stringify(problems.map(({ state: given, logits, label, p }) => {
  const state = readState(given), terms = termsOf(state, state.K), base = make(state.own);
  const { tri, rho } = base.ratios(), found = verdict(state);
  return {
    text: lossText(state), python: lossPython(state), value: plain(value(terms, logits, label)),
    tri: plain(tri), rho: plain(rho), rate: state.rate,
    status: found.status, witness: found.witness ?? null,
    rates: [state.K > 2 ? 1 / (state.K - 1) : 1, 1].map((peak) => provedRate(state, peak)),
    curve: [valueAt(terms, state.K, p), pullAt(terms, state.K, p)].map(plain),
    back: JSON.stringify(fromHash(toHash(state))) === JSON.stringify(state), own: textOf(state.own),
  };
})));
"""
RANGES = {
    "exponential": {"alpha": (-12, -0.1), "beta": (-16, 16), "gamma": (0, 1)},
    "quadratic": {"alpha": (-30, 30), "beta": (-12, -0.1), "gamma": (0, 1)},
    "log": {},
    "linear": {"scale": (0.1, 10)},
    "power": {"q": (0.05, 3)},
    "shifted_power": {"a": (0.05, 10), "q": (0.05, 5)},
    "mirrored_power": {"a": (1.05, 40), "q": (0.1, 5)},
    "exponential_decay": {"a": (0.1, 20)},
    "taylor": {"t": (1, 12)},
    "focal": {"gamma": (0, 5)},
    "huber_log": {"tau": (1, 50)},
    "huber_power": {"q": (0.05, 0.95), "tau": (1, 50)},
    "shifted_log": {"a": (0.05, 20)},
    "jensen_shannon": {"pi0": (0.01, 0.99)},
    "truncated_power": {"q": (0.05, 3), "eps": (0.05, 0.95)},
}


def run_node(code, given, tmp_path):
    file = tmp_path / "run.mjs"
    file.write_text(bundle(PURE) + code)
    done = subprocess.run(
        [NODE, str(file)], input=json.dumps(given), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def random_base(source):
    kind = source.choice(["exponential", "quadratic", "series"] * 4 + [*RANGES])
    if kind == "series":
        return {"kind": kind, "points": [round(source.uniform(-1, 1), 2) for _ in range(6)]}
    while True:
        numbers = {name: round(source.uniform(*ends), 3) for name, ends in RANGES[kind].items()}
        if kind == "taylor":
            numbers["t"] = round(numbers["t"])
        reach = max(numbers.get("gamma", 0), 1 - numbers.get("gamma", 0)) ** 2
        if kind != "quadratic" or numbers["alpha"] * reach + numbers["beta"] < 0:
            return {"kind": kind, **numbers}


def random_extra(source, own):
    """Further target terms, sometimes of the same base function."""
    bases = [source.choice([own, random_base(source)]) for _ in range(source.choice([1, 1, 2]))]
    return [{"factor": round(source.uniform(0.01, 2), 3), "base": base} for base in bases]


def random_problem(source):
    classes, noise = source.choice([2, 3, 5, 10, 100]), source.choice(["symmetric", "pair"])
    limit = 0.5 if noise == "pair" else (classes - 1) / classes
    own = random_base(source)
    state = {
        "own": own,
        "pair": source.choice([None, random_base(source)]),
        "other": random_base(source) if source.random() < 0.15 else None,
        "extra": random_extra(source, own) if source.random() < 0.15 else [],
        "perK": source.random() < 0.2,
        "lam": source.choice([0, 0.9, round(source.uniform(0.01, 2), 3)]),
        "mu": source.choice([0, 0.1, round(source.uniform(0.01, 2), 3)]),
        "tau": source.choice([0, 1, round(source.uniform(0, 2 * (classes - 1)), 3)]),
        "a": source.choice([0, 0.2, round(source.uniform(0, 1.5), 3)]),
        "K": classes,
        "noise": noise,
        "rate": round(min(0.95, source.uniform(0, 1.02) * limit), 4),
    }
    if not (state["lam"] or state["mu"]):
        state["lam"] = 1
    logits = [source.gauss(0, 3) for _ in range(classes)]
    label, p = source.randrange(classes), round(source.uniform(0.01, 0.99), 3)
    return {"state": state, "logits": logits, "label": label, "p": p}


def row_of(state):
    """Label weights of one instance; the true class is the first."""
    classes, rate = state["K"], state["rate"]
    row = torch.zeros(classes)
    row[1:] = rate / (classes - 1) if state["noise"] == "symmetric" else 0.0
    if state["noise"] == "pair":
        row[1] = rate
    row[0] = 1 - rate
    return row


def compare(problem, found):
    """The differences of one problem, and the two verdicts."""
    state = problem["state"]
    loss = lossforge.parse(found["text"])
    logits, label = torch.tensor([problem["logits"]]), torch.tensor([problem["label"]])
    expected = float(loss(logits, label))
    off = abs(float(found["value"]) - expected) / max(1.0, abs(expected))
    ratio = 0.0
    known = theory.ratios(lossforge.parse(f"TS({found['own']}, tau=0)").base)
    for ours, exact in ((found["tri"], known.xi_tri), (found["rho"], known.rho_M)):
        if ours != "Infinity":
            # a table of fewer cells may be above Python's, never below
            slack = 0.02 if state["own"]["kind"] == "series" else RATIOS
            assert exact * (1 - RATIOS) <= ours <= exact * (1 + slack), (state["own"], ours, exact)
            ratio = max(ratio, 0.0 if slack > RATIOS else abs(ours / exact - 1))
    row = row_of(state)
    if float(row[0]) <= float(row[1:].max()):
        assert found["status"] == "HOPELESS"
        return off, ratio, ("HOPELESS", "HOPELESS")
    return off, ratio, (found["status"], theory.certify(loss, row, refute=False).status)


def agreement(count, seed, tmp_path):
    source = random.Random(seed)
    problems = [random_problem(source) for _ in range(count)]
    found = run_node(RUNNER, problems, tmp_path)
    assert all(one["back"] for one in found)  # a link carries the state
    return [compare(*both) for both in zip(problems, found, strict=True)]


@pytest.mark.parametrize(("count", "seed"), [(60, 1), pytest.param(600, 0, marks=pytest.mark.slow)])
def test_values_ratios_and_verdicts_agree(count, seed, tmp_path, record_property):
    results = agreement(count, seed, tmp_path)
    values, ratios, verdicts = zip(*results, strict=True)
    table = Counter(verdicts)
    text = "; ".join(f"{page} here, {ours} in Python: {n}" for (page, ours), n in table.items())
    worst = f"values differ by {max(values):.1e}, ratios by {max(ratios):.1e}"
    record_property("summary", f"explorer, {count} problems: {worst}; {text}")
    assert max(values) < 1e-9
    assert max(ratios) < 1e-9
    # none may say PROVED where Python does not, nor REFUTED where Python proves it
    assert {ours for page, ours in table if page == "PROVED"} <= {"PROVED"}
    assert "PROVED" not in {ours for page, ours in table if page == "REFUTED"}
    assert table["PROVED", "PROVED"] > count / 10
    assert sum(n for (page, _), n in table.items() if page == "REFUTED") > count / 10


@pytest.mark.parametrize(("count", "seed"), [(12, 2), pytest.param(200, 5, marks=pytest.mark.slow)])
def test_no_rate_of_the_page_is_above_the_frontier(count, seed, tmp_path, record_property):
    source = random.Random(seed)
    problems = [random_problem(source) for _ in range(count)]
    found, shown, left = run_node(RUNNER, problems, tmp_path), [], 0
    for problem, one in zip(problems, found, strict=True):
        loss, classes = lossforge.parse(one["text"]), problem["state"]["K"]
        for way, rate in zip(("symmetric", "pair"), one["rates"], strict=True):
            left += rate is None
            if rate:
                # no bisection: what Python proves beyond the ratio tests does not matter here
                proved = theory.frontier(loss, classes, way, tolerance=1.0).rate
                # a rate like 1 / (1 + R m) is off by no more than its ratio R is
                assert rate <= proved * (1 + RATIOS), (one["text"], classes, way)
                shown.append(rate)
    words = f"{len(shown)} rates, none above Python's; {left} left to Python"
    record_property("summary", f"explorer frontier: {words}")
    assert len(shown) > count / 2
    assert left > count / 20


@pytest.mark.parametrize(
    "base",
    [
        {"kind": "huber_power", "q": 0.373, "tau": 34.832},
        {"kind": "huber_log", "tau": 2},
        {"kind": "truncated_power", "q": 0.5, "eps": 0.3},
    ],
    ids=lambda base: base["kind"],
)
@pytest.mark.parametrize("place", ["own", "pair", "extra"])
def test_verdict_and_rates_of_a_kink_are_left_to_python(base, place, tmp_path):
    smooth = {"kind": "linear", "scale": 1}
    state = {"own": smooth, "lam": 1, "mu": 0.5, "tau": 1, "a": 0.2, "K": 100, "rate": 0.01}
    state |= {"extra": [{"factor": 1, "base": base}]} if place == "extra" else {place: base}
    hidden = {"own": smooth, "pair": base, "lam": 1, "mu": 0, "tau": 1, "a": 0, "K": 3, "rate": 0.1}
    problems = [{"state": one, "logits": [0, 1], "label": 0, "p": 0.5} for one in (state, hidden)]
    kinked, unused = run_node(RUNNER, problems, tmp_path)
    assert kinked["status"] != "PROVED"
    assert kinked["rates"] == [None, None]
    # a base function that the loss does not use is no reason to doubt it
    assert unused["status"] == "PROVED"
    assert unused["rates"] == pytest.approx([2 / 3, 0.5])


def test_what_is_judged_is_what_is_printed(tmp_path):
    tiny = {"own": {"kind": "linear", "scale": 1}, "lam": 1e-8, "mu": 0.25, "K": 10}
    long = {"own": {"kind": "power", "q": 0.12345678}, "lam": 1 / 3, "mu": 1e-8, "tau": 2 / 3}
    long |= {"a": 1e-7, "rate": 0.3151524, "extra": [{"factor": 1e-9, "base": tiny["own"]}]}
    few = {"own": {"kind": "linear", "scale": 1}, "lam": 0.0001, "perK": True, "mu": 0, "K": 1000}
    states = [tiny | {"rate": 0.1}, long, few]
    problems = [{"state": one, "logits": [0, 1], "label": 0, "p": 0.5} for one in states]
    found = run_node(RUNNER, problems, tmp_path)
    assert found[0]["text"] == "0.25*BR(linear(scale=1))"
    assert found[1]["text"] == "0.333333*TS(power(q=0.123457), tau=0.666667)"
    assert found[1]["rate"] == 0.315152
    assert lossforge.parse(found[2]["text"]).terms[0][0] == 0.0001 / 1000
    assert [one["back"] for one in found] == [True] * 3


PRESET_CLASSES, PRESET_POINTS = (2, 3, 10, 100), (0.03, 0.4, 0.9)


@pytest.fixture(scope="module")
def shown_presets(tmp_path_factory):
    """What the page computes of every preset, by name and number of classes."""
    known = presets()
    wanted = [(name, count) for name in known for count in PRESET_CLASSES]
    problems = [
        {
            "state": known[name] | {"K": count, "noise": "pair", "rate": 0.3},
            "logits": [math.log(p)] + [math.log((1 - p) / (count - 1))] * (count - 1),
            "label": 0,
            "p": p,
        }
        for name, count in wanted
        for p in PRESET_POINTS
    ]
    found = run_node(RUNNER, problems, tmp_path_factory.mktemp("presets"))
    rows = zip(problems, found, strict=True)
    return {key: [next(rows) for _ in PRESET_POINTS] for key in wanted}


@pytest.mark.parametrize("count", PRESET_CLASSES)
@pytest.mark.parametrize("name", presets())
def test_a_preset_is_the_loss_of_the_catalogue(name, count, shown_presets):
    problems, found = zip(*shown_presets[name, count], strict=True)
    loss = lossforge.make(name)
    again = lossforge.parse(found[0]["text"])
    logits = torch.tensor([one["logits"] for one in problems], requires_grad=True)
    target = torch.zeros(3, dtype=torch.int64)
    values = loss.with_policy(reduction="none")(logits, target)
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    values = values.detach()
    offset = values - again.with_policy(reduction="none")(logits, target).detach()
    assert float(offset.max() - offset.min()) < 1e-5  # numbers of the page have six decimals
    for one, value, pull in zip(found, values - offset, -gradient[:, 0], strict=True):
        assert one["value"] == pytest.approx(float(value), rel=1e-5, abs=1e-6)
        assert one["curve"][0] == pytest.approx(float(value), rel=1e-5, abs=1e-6)
        assert one["curve"][1] == pytest.approx(float(pull), rel=1e-5, abs=1e-6)


@pytest.mark.slow
def test_the_python_of_every_preset_builds_the_loss_of_its_text(tmp_path):
    source = random.Random(3)
    states = [one | {"K": 10} for one in presets().values()]
    problems = [random_problem(source) | {"state": state} for state in states]
    problems += [random_problem(source) for _ in range(30)]
    for problem in problems:
        problem["logits"] = problem["logits"][:2]
        problem["label"] = 0
    found = run_node(RUNNER, problems, tmp_path)
    lines = "".join(f"{one['python']}; print(loss)\n" for one in found)
    done = subprocess.run(
        [sys.executable, "-c", f"import lossforge\n{lines}"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(lossforge.parse(one["text"])) for one in found]


def test_a_drawn_curve_is_the_series_that_python_builds(tmp_path):
    points = [0.4, -0.8, 1.2, 0.1, -0.5, 0.9]
    state = {
        "own": {"kind": "series", "points": points},
        "lam": 1,
        "mu": 0,
        "K": 5,
        "tau": 1,
        "a": 0,
    }
    state |= {"rate": 0.2, "noise": "symmetric"}
    problem = {"state": state, "logits": [1.0, 0.3, -0.2, 0.0, 2.0], "label": 4, "p": 0.5}
    (found,) = run_node(RUNNER, [problem], tmp_path)
    base = lossforge.parse(found["text"]).terms[0][1].base
    nodes = [(1 - math.cos(math.pi * i / 5)) / 2 for i in range(6)]
    drawn = [float(torch.log(base.phi(x))) for x in nodes]
    assert drawn == pytest.approx(points, abs=5e-4)
    assert describe(lossforge.parse(found["text"]))["own"]["points"] == pytest.approx(drawn)


def test_a_link_of_unknown_origin_is_checked(tmp_path):
    code = """
const { readState, fromHash, START } = stateModule;
const bad = [
  null, 3, "x", { own: { kind: "__proto__" } }, { own: { kind: "exponential", alpha: "<b>" } },
  { K: 1e9, rate: -4, lam: NaN, extra: [{ factor: -1 }], noise: "evil", mu: 1e99 },
  { own: { kind: "quadratic", alpha: 30, beta: -1, gamma: 0 } }, { lam: 0, mu: 0 },
  { own: { kind: ["series"] } }, { own: { kind: ["huber_log"], tau: 2 } }, { own: [] },
  { own: { kind: "huber_log", tau: [2] } },
  { own: { kind: "series", points: [[0], 0, 0, 0, 0, 0] } },
  { lam: [1], mu: "2", K: [5], rate: null, tau: {}, rivals: true,
    perK: "yes", noise: ["pair"], name: ["BEF"] },
  { pair: { kind: ["linear"], scale: 1 }, other: { kind: ["log"] },
    extra: [null, 1, { factor: "1", base: { kind: "log" } },
      { factor: 1, base: { kind: ["log"] } }] },
  { extra: { length: 1, 0: { factor: 1, base: { kind: "log" } } } },
];
const hashes = ["#", "#%", "#{}x", "#%7B%7D"].map(fromHash);
const states = bad.map(readState), shown = states.map(certifyModule.verdict);
const far = readState({ own: { kind: "series", points: [9, -9, 3, 0, 0, 0] } }).own.points;
console.log(JSON.stringify({ states, shown, hashes, start: START, far }));
"""
    found = run_node(code, None, tmp_path)
    start = found["start"]
    assert [one["own"] for one in found["states"]] == [start["own"]] * 16
    sixth = found["states"][5]
    assert (sixth["K"], sixth["rate"], sixth["lam"], sixth["extra"]) == (1000, 0, 0.9, [])
    assert sixth["noise"] == "symmetric"
    assert found["states"][7]["lam"] == 0.9
    assert found["states"][8:] == [start] * 8
    assert {one["status"] for one in found["shown"]} == {"PROVED"}
    assert found["far"] == [3, -3, 3, 0, 0, 0]  # within the chart on which they are drawn
    assert found["hashes"] == [None, None, None, start]


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "rate"), [("symmetric", 0.4), ("pair", 0.3)])
def test_the_tiny_network_fits_wrong_labels_with_cross_entropy_only(noise, rate, tmp_path):
    code = """
const { Network, STEPS, corrupt, makeData } = trainModule;
const { termsOf } = lossModule, { START } = stateModule;
const bare = { ...START, own: { kind: "log" }, lam: 1, mu: 0, tau: 0, a: 0 };
const data = makeData(300, 1), tests = makeData(900, 2);
const given = corrupt(data.true, NOISE, RATE, 3);
const wrong = given.filter((label, i) => label !== data.true[i]).length / 300;
const right = [bare, START].map((state) => {
  const network = new Network(5), terms = termsOf({ ...state, K: 3 }, 3);
  for (let step = 0; step < STEPS; step++) network.step(terms, data, given);
  return network.accuracy(tests, tests.true);
});
console.log(JSON.stringify({ wrong, right }));
"""
    code = code.replace("NOISE", repr(noise)).replace("RATE", str(rate))
    found = run_node(code, None, tmp_path)
    assert found["wrong"] == pytest.approx(rate, abs=0.01)
    assert found["right"][0] < 0.88
    assert found["right"][1] > 0.95


def test_the_gradient_that_trains_is_the_gradient_of_python(tmp_path):
    code = """
const { addGradient, softmax, termsOf } = lossModule, { readState } = stateModule;
import { readFileSync } from "node:fs";
const { state, logits, label } = JSON.parse(readFileSync(0, "utf8")), into = [0, 0, 0];
addGradient(termsOf(readState(state), 3), softmax(logits), label, 1, into);
console.log(JSON.stringify(into));
"""
    logits = [0.3, -1.1, 0.8]
    state = presets()["BQF"] | {"K": 3}
    into = run_node(code, {"state": state, "logits": logits, "label": 1}, tmp_path)
    z = torch.tensor([logits], requires_grad=True)
    lossforge.BQF()(z, torch.tensor([1])).backward()
    assert into == pytest.approx(z.grad[0].tolist(), abs=1e-9)
