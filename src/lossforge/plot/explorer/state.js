// What the page shows, as plain data: checked when it is read from a link, and written to one.

import { HANDLES, KINDS, POINT_RANGE, problem } from "./base.js";

export const NOISES = ["symmetric", "pair"];
export const LIMITS = { lam: [0, 100], mu: [0, 100], tau: [0, 1000], a: [0, 100], K: [2, 1000], rate: [0, 0.95] };
export const REACH = { lam: 2, mu: 2, tau: 12, a: 2 }; // of the sliders; larger numbers are typed
const MOST_EXTRA = 4;
const DECIMALS = 1e6;

export const START = {
  name: "", own: { kind: "exponential", alpha: -8, beta: -1, gamma: 0.5 }, other: null,
  lam: 0.9, tau: 1, a: 0.2, perK: false, mu: 0.1, pair: null, extra: [],
  K: 10, noise: "symmetric", rate: 0.4,
};

export function startOf(kind) {
  if (kind === "series") return { kind, points: new Array(HANDLES).fill(0) };
  const found = { kind };
  for (const { name, start } of KINDS[kind].params) found[name] = start;
  return found;
}

// The state has no more decimals than its texts: what is judged is what is printed, copied and linked.
export const tidy = (value) => Math.round(value * DECIMALS) / DECIMALS;

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const within = (value, low, high) => tidy(Math.min(high, Math.max(low, value)));

// A base function from data of unknown origin; null if it is none.
export function readBase(given) {
  if (typeof given?.kind !== "string" || !Object.hasOwn(KINDS, given.kind)) return null;
  const found = { kind: given.kind };
  if (given.kind === "series") {
    const points = given.points;
    if (!Array.isArray(points) || points.length !== HANDLES || !points.every(isNumber)) return null;
    return { ...found, points: points.map((one) => within(one, -POINT_RANGE, POINT_RANGE)) };
  }
  for (const { name, min, max } of KINDS[given.kind].params) {
    if (!isNumber(given[name])) return null;
    found[name] = within(given[name], min, max);
  }
  if (given.kind === "taylor") found.t = Math.round(found.t);
  return problem(found) ? null : found;
}

// A state from data of unknown origin: what is missing or wrong is as at the start.
export function readState(given) {
  const found = { ...START, extra: [] };
  if (!given || typeof given !== "object") return found;
  found.own = readBase(given.own) ?? START.own;
  found.other = readBase(given.other);
  found.pair = readBase(given.pair);
  for (const [name, [low, high]] of Object.entries(LIMITS)) {
    if (isNumber(given[name])) found[name] = within(given[name], low, high);
  }
  found.K = Math.round(found.K);
  found.perK = given.perK === true;
  if (NOISES.includes(given.noise)) found.noise = given.noise;
  if (typeof given.name === "string") found.name = given.name.slice(0, 40);
  if (Array.isArray(given.extra)) {
    for (const one of given.extra.slice(0, MOST_EXTRA)) {
      const base = readBase(one?.base), factor = isNumber(one?.factor) ? within(one.factor, ...LIMITS.lam) : 0;
      if (base && factor > 0) found.extra.push({ factor, base });
    }
  }
  if (isEmpty(found)) found.lam = START.lam;
  return found;
}

const isEmpty = ({ lam, mu, extra }) => !(lam > 0) && !(mu > 0) && !extra.length;

// Why a state cannot be shown; "" if it can.
export function complaint(state) {
  return problem(state.own) || (state.pair ? problem(state.pair) : "") || (isEmpty(state) ? "λ or μ must be above 0" : "");
}

// Whether more than rounding was lost of given data when it was read.
export function isCut(given, kept) {
  if (isNumber(given)) return !(Math.abs(given - kept) <= 1e-9 + 1e-5 * Math.abs(given));
  if (given && typeof given === "object") return Object.keys(given).some((key) => isCut(given[key], kept?.[key]));
  return given !== kept;
}

export function toHash(state) {
  const changed = Object.entries(state).filter(([name, value]) => JSON.stringify(value) !== JSON.stringify(START[name]));
  return changed.length ? `#${encodeURIComponent(JSON.stringify(Object.fromEntries(changed)))}` : "#";
}

export function fromHash(hash) {
  try {
    return readState({ ...START, ...JSON.parse(decodeURIComponent(hash.replace(/^#/, ""))) });
  } catch {
    return null;
  }
}
