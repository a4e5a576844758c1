// What the ratio tests decide under symmetric noise and pair flips, counterexamples, and frontiers.
// PROVED is said only where Python's test passes with room to spare; the rest is Python's to decide.

import { make } from "./base.js";
import { coefficient, lamOf, termsOf } from "./loss.js";

const SLACK = 1e-9; // relative; Python grants 1e-12, so that what passes here passes there
const EPS = 2 ** -52;
const KINKED = ["huber_log", "huber_power", "truncated_power"]; // densities with a kink or a jump are left to Python
const CLEAR = 1e-6; // of the terms' size: a rise that no rounding explains

// Weights of the true class, of the heaviest rival and of each other class.
export function noiseRow(noise, rate, K) {
  if (noise === "pair") return { own: 1 - rate, rival: rate, others: 0 };
  const even = rate / (K - 1);
  return { own: 1 - rate, rival: even, others: even };
}

export const limitOf = (noise, K) => (noise === "pair" ? 0.5 : (K - 1) / K);

// The one ratio that target separation has to have, or null where its parts do not share base and coefficient.
function separation(state, K) {
  if (!(lamOf(state, K) > 0) && !state.extra.length) return { none: true };
  if (state.other && coefficient(state, K) > 0) return null;
  const one = lamOf(state, K) > 0 ? [state.own] : [];
  const bases = [...one, ...state.extra.map(({ base }) => base)].map((base) => make(base).key);
  const strengths = new Set([...one.map(() => coefficient(state, K)), ...state.extra.map(() => 0)]);
  if (new Set(bases).size > 1 || strengths.size > 1) return null;
  const found = make(one.length ? state.own : state.extra[0].base).ratios();
  return { a: [...strengths][0], ratio: K === 2 ? found.rho : found.tri };
}

function separationTest({ a, ratio }, row) {
  const c = (w) => (1 + a) * w - a, own = c(row.own), best = c(row.rival);
  if (best <= 0 && own >= 0) return { part: "target separation", ratio, allowed: Infinity, free: true, passed: true };
  let allowed = Math.abs(own < 0 ? best / own : own / best);
  // a small coefficient is what two numbers of size 1 + a leave of each other
  allowed *= 1 - Math.min(1, 8 * EPS * (1 + a) * (1 / Math.abs(own) + 1 / Math.abs(best)));
  return { part: "target separation", ratio, allowed, passed: within(ratio, allowed) };
}

const within = (ratio, allowed) => ratio === 1 || ratio * (1 + SLACK) <= allowed;

function reductionTest(state, row) {
  const ratio = make(state.pair ?? state.own).ratios().rho;
  const allowed = row.rival > 0 ? row.own / row.rival : Infinity;
  return { part: "binary reduction", ratio, allowed, passed: allowed === Infinity || within(ratio, allowed) };
}

// Whether no part that counts has a kink or a jump.
export const isSmooth = (state) => !termsOf(state, state.K).some(({ base }) => KINKED.includes(base.kind));

// The claim: raising the true class's logit never increases the expected loss.
export function verdict(state) {
  const K = state.K, row = noiseRow(state.noise, state.rate, K);
  if (row.own <= row.rival) return { status: "HOPELESS", tests: [] };
  const parted = separation(state, K), tests = [];
  if (parted && !parted.none) tests.push(separationTest(parted, row));
  if (state.mu > 0) tests.push(reductionTest(state, row));
  if (parted && isSmooth(state) && tests.length && tests.every((test) => test.passed)) {
    const binding = tests.reduce((worst, test) => (test.allowed / test.ratio < worst.allowed / worst.ratio ? test : worst));
    return { status: "PROVED", tests, binding, margin: binding.allowed / binding.ratio - 1 };
  }
  const witness = findRise(state, row, K);
  if (witness) return { status: "REFUTED", tests, witness };
  return { status: "ASK", tests };
}

// dW/dz_t at a prediction: the target's probability x, rivals as groups {y, weight, count}; and its terms' size.
export function slope(terms, x, groups, row, K) {
  let value = 0, size = 0;
  for (const { y, weight, count } of groups) {
    if (!(y > 0) || !count) continue;
    let gain = 0, loss = 0;
    for (const { role, factor, base } of terms) {
      if (role === "target") { gain += factor * row.own * base.phi(x); loss += factor * weight * base.phi(y); }
      else if (role === "others") { loss += factor * (1 - row.own) * base.phi(x); gain += factor * (1 - weight) * base.phi(y); }
      else {
        const sum = x + y, scale = factor / ((K - 1) * sum * sum);
        gain += scale * row.own * base.phi(x / sum);
        loss += scale * weight * base.phi(y / sum);
      }
    }
    value += count * x * y * (gain - loss);
    size += count * x * y * (gain + loss);
  }
  return { value: -value, size };
}

const LEVELS = (() => {
  const found = [];
  for (let s = -9; s <= 9.01; s += 0.45) found.push(1 / (1 + Math.exp(-s)));
  return found;
})();

// A prediction at which raising the target's logit increases the expected loss, if one is found.
function findRise(state, row, K) {
  const terms = termsOf(state, K);
  let best = null;
  for (const x of LEVELS) {
    for (const share of K === 2 ? [1] : [...LEVELS, 1 / (K - 1)]) {
      const y = (1 - x) * share, left = Math.max(0, 1 - x - y);
      // what is left is spread over the other classes, or all in one of them
      for (const count of K > 3 ? [K - 2, 1] : [K - 2]) {
        const rest = count ? left / count : 0;
        const groups = [{ y, weight: row.rival, count: 1 }, { y: rest, weight: row.others, count }];
        const { value, size } = slope(terms, x, groups, row, K);
        if (size > 0 && Number.isFinite(size) && value > CLEAR * size && value > (best?.value ?? 1e-12)) best = { x, y, rest, value };
      }
    }
  }
  return best;
}

// The rate up to which the ratio tests pass, where the heaviest wrong class gets a share `peak` of the wrong labels;
// null for the losses that the tests of this page do not judge.
export function provedRate(state, peak) {
  const K = state.K, parted = separation(state, K), rates = [1 / (1 + peak)];
  if (!parted || !isSmooth(state)) return null;
  if (!parted.none) rates.push(separatedRate(parted.ratio, parted.a, peak));
  if (state.mu > 0) rates.push(1 / (1 + make(state.pair ?? state.own).ratios().rho * peak));
  return rates.length > 1 ? Math.min(...rates) : 0;
}

function separatedRate(ratio, a, peak) {
  if (ratio === Infinity) return a <= peak ? a / ((1 + a) * peak) : 1 / (1 + a);
  if (a <= peak) return (1 + ratio * a) / ((1 + a) * (1 + ratio * peak));
  return (a + ratio) / ((1 + a) * (ratio + peak));
}
