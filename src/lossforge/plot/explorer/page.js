// The page: one state, drawn whenever it changes; a run of training beside it.

import { KINDS, POINT_RANGE, make } from "./base.js";
import { isSmooth, limitOf, noiseRow, provedRate, verdict } from "./certify.js";
import { baseSliders, copyButton, handles, menu, slider } from "./controls.js";
import { chart, field, regions } from "./draw.js";
import { coefficient, lossPython, lossText, pullAt, termsOf, valueAt } from "./loss.js";
import { LIMITS, NOISES, REACH, START, complaint, fromHash, isCut, readState, startOf, toHash } from "./state.js";
import { Network, SAMPLES, STEPS, corrupt, makeData } from "./train.js";

const one = (id) => document.getElementById(id);
const GIVEN = JSON.parse(one("given").textContent); // presets and the state to start with
const POINTS = Array.from({ length: 161 }, (_, i) => 0.002 + (0.996 * i) / 160);
const bare = (own) => readState({ ...START, own, lam: 1, mu: 0, tau: 0, a: 0 });
const REFERENCES = { CE: bare({ kind: "log" }), MAE: bare({ kind: "linear", scale: 1 }), GCE: bare({ kind: "power", q: 0.7 }) };
const WORDS = {
  PROVED: "Proved", REFUTED: "Refuted", ASK: "Ask lossforge certify", HOPELESS: "No loss helps",
};
const MEANING = {
  PROVED: "Whatever a network predicts, on average these labels never lower the true class's score.",
  REFUTED: "There are predictions at which these labels lower the true class's score on average. Training that reaches them may fit wrong labels.",
  ASK: "This page's ratio tests do not decide it. The command below does more:",
  HOPELESS: "A wrong label is at least as frequent as the true one.",
};

const QUIET = 700; // milliseconds without a change before the verdict is read out

const linked = readLink();
let state = linked ?? readState(GIVEN.start);
let pending = false, wrote = location.hash, writing = 0, frames = 0, speaking = 0, spoken = "";

const say = (text) => { one("say").textContent = text; };

// The state of the address, if it has one; it bears the name of a preset only if it is that preset.
function readLink() {
  const found = fromHash(location.hash);
  if (found) {
    const { name, K, noise, rate } = found, preset = Object.hasOwn(GIVEN.presets, name) && readState({ ...GIVEN.presets[name], name, K, noise, rate });
    if (JSON.stringify(preset) !== JSON.stringify(found)) found.name = "";
  }
  return found;
}

function change(changes, rebuild = false) {
  const next = { ...state, ...changes }, wrong = complaint(next);
  one("problem").textContent = wrong;
  if (wrong) return;
  state = next;
  if (!("name" in changes)) state.name = "";
  if (rebuild) build();
  request();
}

function request() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => { pending = false; frames++; draw(); });
}

function writeLink() {
  wrote = toHash(state);
  history.replaceState(null, "", wrote);
}

// Whether somebody else has changed the address since it was read or written here.
const isAddressed = () => location.hash !== wrote && !(wrote === "#" && !location.hash);

function draw() {
  const terms = termsOf(state, state.K), own = make(state.own);
  drawBase(own);
  drawCurves(terms);
  const found = verdict(state);
  drawVerdict(found);
  drawField(found);
  drawFrontier();
  one("text").textContent = lossText(state);
  one("python").textContent = lossPython(state);
  one("command").textContent = `lossforge certify "${lossText(state)}" --noise ${state.noise}:${state.rate} --classes ${state.K}`;
  announce();
  clearTimeout(writing);
  // browsers allow few changes of the address a second; one that is not read yet must not be lost
  writing = setTimeout(() => { if (!isAddressed()) writeLink(); }, 150);
  one("preset").value = sayWhatIsShown() ? state.name : "";
  training.stale();
}

// Reads the verdict out once the sliders rest; every step of one would drown all other speech.
function announce() {
  const text = `${one("status").textContent}. ${one("numbers").textContent}`;
  clearTimeout(speaking);
  if (spoken && text !== spoken) speaking = setTimeout(() => { spoken = text; say(text); }, QUIET);
  spoken ||= text; // what the page opens with is read as part of it
}

// Whether the loss is the preset of its name for so many classes; says what it is if not.
function sayWhatIsShown() {
  const most = GIVEN.presets[state.name]?.most, same = !most || state.K - 1 <= most;
  one("beyond").textContent = same ? "" : `With more than ${most + 1} classes, ${state.name} has a bounded cosine in the place of BR, which this page does not draw. It shows λ TS + μ BR. For ${state.name} itself: lossforge certify ${state.name} --noise ${state.noise}:${state.rate} --classes ${state.K}`;
  return same;
}

const over = (f) => POINTS.map((p) => [p, f(p)]);
const highest = (lines) => Math.max(1e-6, ...lines.flat().map(([, y]) => y).filter(Number.isFinite));

function drawBase(own) {
  const drawn = state.own.kind === "series";
  one("key-h").hidden = drawn;
  if (drawn) {
    chart(one("base"), { x: [0, 1], y: [-POINT_RANGE, POINT_RANGE], xlabel: "x", lines: [{ points: over((x) => Math.log(own.phi(x))), style: "second" }] });
    one("base-title").textContent = "Drag the points: log φ, φ = −h′";
    if (!one("base").querySelector(".handles")) drawHandles();
  } else {
    one("base").querySelector(".handles")?.remove();
    one("base-title").textContent = "Base function h and its density φ = −h′";
    const lines = [over(own.h), over(own.phi)], top = Math.min(highest(lines), 3 * Math.max(own.h(0.1), own.phi(0.1), own.phi(0.9)));
    chart(one("base"), { x: [0, 1], y: [0, 1.05 * top], xlabel: "x", lines: [{ points: lines[0], style: "mine" }, { points: lines[1], style: "second" }] });
  }
}

function drawHandles() {
  handles(one("base"), state.own.points, (i, value) => {
    change({ own: { ...state.own, points: state.own.points.map((old, at) => (at === i ? value : old)) } });
  });
}

function drawCurves(terms) {
  const overlays = Object.entries(REFERENCES).filter(([name]) => one(`show-${name}`).checked);
  for (const [id, f] of [["value", valueAt], ["pull", pullAt]]) {
    const mine = over((p) => f(terms, state.K, p));
    const lines = overlays.map(([name]) => ({ points: reference(name, id, f), style: `reference ${name}` }));
    const low = Math.min(0, ...mine.map(([, y]) => y));
    const top = Math.max(highest([mine]), 1);
    chart(one(id), { x: [0, 1], y: [low, 1.06 * top], xlabel: "probability of the label", lines: [...lines, { points: mine, style: "mine" }] });
  }
}

const kept = new Map(); // curves of the references, which depend on K alone

function reference(name, id, f) {
  const key = `${name} ${id} ${state.K}`, terms = termsOf(REFERENCES[name], state.K);
  if (kept.size > 60) kept.clear();
  if (!kept.has(key)) kept.set(key, over((p) => f(terms, state.K, p)));
  return kept.get(key);
}

function drawVerdict(found) {
  const box = one("verdict");
  box.dataset.status = found.status;
  one("status").textContent = WORDS[found.status];
  const binding = found.binding;
  let numbers = "";
  if (binding) numbers = binding.allowed === Infinity ? `${binding.part}: any decreasing h will do` : `${binding.part}: ratio ${short(binding.ratio)} of ${short(binding.allowed)} allowed, margin ${short(100 * found.margin)}\u00a0%`;
  else numbers = found.tests.filter((test) => !test.passed).map((test) => `${test.part}: ratio ${short(test.ratio)}, allowed ${short(test.allowed)}`).join("; ");
  if (!numbers && found.status === "ASK" && !isSmooth(state)) numbers = "A base function with a kink or a jump is left to Python.";
  if (found.witness) numbers = `At probability ${short(found.witness.x)} of the true class and ${short(found.witness.y)} of its rival a larger logit of the true class raises the expected loss.`;
  one("numbers").textContent = numbers;
  one("meaning").textContent = MEANING[found.status];
}

const short = (value) => (Number.isFinite(value) ? String(Number(value.toPrecision(4))) : "∞");

function drawField(found) {
  const three = { ...state, K: 3 }, rate = Math.min(state.rate, 0.999 * limitOf(state.noise, 3)), row = noiseRow(state.noise, rate, 3);
  const weights = [row.own, row.rival, row.others], here = state.K === 3 ? found : verdict({ ...three, rate });
  const star = here.witness && [here.witness.x, here.witness.y, here.witness.rest];
  const shaded = field(one("field"), termsOf(three, 3), weights, star);
  let said = "No prediction was found at which raising the true class's logit hurts.";
  if (here.status === "PROVED") said = "Nowhere does raising the true class's logit hurt.";
  if (star) said = `Raising the true class's logit hurts ${shaded ? "where it is shaded, most at" : "at"} the star.`;
  const lowered = rate < state.rate ? ` With three classes the rate is cut to ${short(rate)}.` : "";
  one("field-note").textContent = said + lowered;
  one("field").setAttribute("aria-label", `Gradient descent on predictions of three classes under ${state.noise} noise of ${short(rate)}. ${said}`);
}

function drawFrontier() {
  const K = state.K, low = K > 2 ? 1 / (K - 1) : 1, peaks = K > 2 ? Array.from({ length: 60 }, (_, i) => low + ((1 - low) * i) / 59) : [0.99, 1];
  const limit = peaks.map((peak) => [peak, 1 / (1 + peak)]), mine = peaks.map((peak) => [peak, provedRate(state, peak)]), judged = mine[0][1] !== null;
  const here = [state.noise === "pair" ? 1 : low, state.rate], ends = [peaks[0], 1];
  chart(one("frontier"), {
    x: ends, y: [0, 1], xlabel: "share of the wrong labels that go to one class",
    xticks: K > 2 ? [[ends[0], `1/${K - 1} symmetric`, "start"], [1, "all: pair", "end"]] : [[1, "all: symmetric and pair", "end"]],
    fill: [...limit, [1, 1.2], [ends[0], 1.2]],
    lines: [{ points: limit, style: "reference CE" }, ...(judged ? [{ points: mine, style: "mine" }] : [])],
    marks: [{ x: Math.min(1, Math.max(ends[0], here[0])), y: here[1], style: "here" }],
  });
  const rates = [["symmetric", low], ["pair", 1]].map(([name, peak]) => `${name} ${short(Math.floor(1e4 * provedRate(state, peak)) / 1e4)} of ${short(1 / (1 + peak))}`);
  const said = judged ? `Ratio tests prove it below these rates: ${rates.join(", ")}.` : "The ratio tests of this page do not judge this loss; the command below does.";
  one("frontier-note").textContent = `${said} The dot is your noise.`;
  one("key-proved").hidden = !judged;
  one("ask-frontier").hidden = judged;
  one("frontier-command").textContent = `lossforge frontier "${lossText(state)}" --classes ${K}`;
}

// ---- controls

function build() {
  const set = (name, value, more = {}) => change({ [name]: value, ...more });
  const ranged = (name, label, step, hint) => slider({ id: name, label, hint, min: LIMITS[name][0], max: LIMITS[name][1], reach: REACH[name], step, value: state[name], change: (value) => set(name, value) });
  const focused = document.activeElement?.id;
  one("own").replaceChildren(
    menu({
      id: "kind", label: "h′", value: state.own.kind, options: Object.entries(KINDS).map(([key, { label }]) => [key, label]),
      change: (kind) => change({ own: startOf(kind), other: null, extra: [] }, true),
    }),
    ...baseSliders("own", state.own, (name, value) => change({ own: { ...state.own, [name]: value } })),
  );
  if (state.own.kind === "series") drawHandles(); else one("base").querySelector(".handles")?.remove();
  one("parts").replaceChildren(
    ranged("lam", "λ TS", 0.01, "weight of target separation"),
    ranged("tau", "τ", 0.05, "strength of separation, a = τ / (K − 1)"),
    ranged("a", "least a", 0.01, "the least coefficient a, whatever τ and K say"),
    ranged("mu", "μ BR", 0.01, "weight of binary reduction"),
  );
  one("pairs").replaceChildren(
    menu({
      id: "pair", label: "h′ of BR", value: state.pair?.kind ?? "same", options: [["same", "the same"], ...Object.entries(KINDS).filter(([key]) => key !== "series").map(([key, { label }]) => [key, label])],
      change: (kind) => change({ pair: kind === "same" ? null : startOf(kind) }, true),
    }),
    ...(state.pair ? baseSliders("pair", state.pair, (name, value) => change({ pair: { ...state.pair, [name]: value } })) : []),
  );
  one("labels").replaceChildren(
    menu({ id: "noise", label: "noise", value: state.noise, options: NOISES.map((name) => [name, name]), change: (noise) => set("noise", noise, { name: state.name }) }),
    slider({ id: "rate", label: "rate", min: 0, max: 0.95, step: 0.01, value: state.rate, change: (rate) => set("rate", rate, { name: state.name }) }),
    slider({ id: "K", label: "classes K", min: 2, max: 1000, step: 1, value: state.K, change: (K) => set("K", Math.round(K), { name: state.name }) }),
  );
  if (focused) one(focused)?.focus();
}

function setUp() {
  const preset = one("preset");
  for (const name of ["", ...Object.keys(GIVEN.presets)]) {
    const option = document.createElement("option");
    option.value = name;
    option.textContent = name || "your own";
    preset.append(option);
  }
  preset.addEventListener("change", () => {
    if (preset.value) change({ ...readState({ ...GIVEN.presets[preset.value], K: state.K, noise: state.noise, rate: state.rate }), name: preset.value }, true);
  });
  one("draw").addEventListener("click", () => { change({ own: startOf("series"), other: null, extra: [] }, true); one("base").querySelector(".handle")?.focus(); });
  for (const name of Object.keys(REFERENCES)) one(`show-${name}`).addEventListener("change", request);
  for (const id of ["python", "text", "command", "frontier-command"]) copyButton(one(`copy-${id}`), () => one(id).textContent, say);
  copyButton(one("copy-link"), () => { writeLink(); return location.href; }, say);
  one("theme").addEventListener("click", () => {
    const root = document.documentElement, dark = getComputedStyle(root).getPropertyValue("--scheme").trim() === "dark";
    root.dataset.theme = dark ? "light" : "dark";
    request();
    training.show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { request(); training.show(); });
  addEventListener("hashchange", () => {
    if (!isAddressed()) return;
    wrote = location.hash;
    const found = readLink();
    if (found) { state = found; build(); request(); }
  });
  new ResizeObserver(() => { request(); training.show(); }).observe(one("field"));
}

// ---- training

class Training {
  constructor() {
    this.data = makeData(SAMPLES, 1);
    this.tests = makeData(SAMPLES, 2);
    this.running = false;
    this.key = "";
    this.frames = 0;
  }

  // The loss or the noise has changed: a new run starts if one was going on.
  stale() {
    const key = JSON.stringify([state.own, state.other, state.extra, state.pair, state.lam, state.tau, state.a, state.mu, state.noise, state.rate]);
    if (key === this.key) return;
    const labels = JSON.stringify([state.noise, state.rate]), fresh = !this.runs || this.runs[0].network.steps > 0 || labels !== this.labels;
    this.key = key;
    this.labels = labels;
    this.rate = Math.min(state.rate, 0.95 * limitOf(state.noise, 3));
    this.given = corrupt(this.data.true, state.noise, this.rate, 3);
    this.runs = [["ce", REFERENCES.CE], ["own", state]].map(([id, of]) => ({ id, of, network: new Network(5), terms: termsOf({ ...of, K: 3 }, 3) }));
    if (fresh && !this.running) this.show(); // untrained networks all look the same
  }

  toggle() {
    if (this.runs[0].network.steps >= STEPS) { this.key = ""; this.stale(); }
    this.running = !this.running;
    this.label();
    if (this.running) requestAnimationFrame(() => this.frame());
  }

  label() {
    const done = this.runs[0].network.steps >= STEPS;
    one("train").textContent = this.running ? "Pause" : done ? "Train again" : "Train";
  }

  // As many steps as fit into a frame, of both networks alike.
  frame() {
    if (!this.running) return;
    const end = performance.now() + 11;
    do {
      for (const { network, terms } of this.runs) network.step(terms, this.data, this.given);
    } while (performance.now() < end && this.runs[0].network.steps < STEPS);
    this.frames++;
    if (this.runs[0].network.steps >= STEPS) this.running = false;
    this.show();
    if (this.running) requestAnimationFrame(() => this.frame());
  }

  show() {
    if (!this.runs) return;
    const steps = this.runs[0].network.steps;
    for (const { id, network } of this.runs) {
      regions(one(`regions-${id}`), network, this.data, this.given, this.running || !steps ? 28 : 72);
      const right = steps ? `${Math.round(1000 * network.accuracy(this.tests, this.tests.true)) / 10} % right on clean points` : "not trained";
      one(`accuracy-${id}`).textContent = right;
    }
    one("steps").textContent = `step ${steps} of ${STEPS}; ${Math.round(100 * this.rate)} % of labels wrong (${state.noise})`;
    this.label();
  }
}

const training = new Training();
one("train").addEventListener("click", () => training.toggle());
setUp();
build();
draw();
if (!linked && isCut(GIVEN.start, state)) {
  one("problem").textContent = "some numbers were beyond the ranges or the six decimals of this page, and were cut";
}
window.explorer = { state: () => state, frames: () => ({ page: frames, training: training.frames }), coefficient };
