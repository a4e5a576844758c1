// What the page shows, as plain data: checked when it is read from a link, and written to one.

import { HANDLES, KINDS, problem } from "./base.js";

export const NOISES = ["symmetric", "pair"];
export const LIMITS = { lam: [0, 100], mu: [0, 100], tau: [0, 1000], a: [0, 100], K: [2, 1000], rate: [0, 0.95], rivals: [0, 1e6] };
export const REACH = { lam: 2, mu: 2, tau: 12, a: 2 }; // of the sliders; larger numbers are typed
const MOST_EXTRA = 4;
const POINT = 4; // drawn logarithms of the density lie between -4 and 4

export const START = {
  name: "", own: { kind: "exponential", alpha: -8, beta: -1, gamma: 0.5 }, other: null,
  lam: 0.9, tau: 1, a: 0.2, perK: false, mu: 0.1, pair: null, rivals: 149, extra: [],
  K: 10, noise: "symmetric", rate: 0.4,
};

export function startOf(kind) {
  if (kind === "series") return { kind, points: new Array(HANDLES).fill(0) };
  const found = { kind };
  for (const { name, start } of KINDS[kind].params) found[name] = start;
  return found;
}

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

// A base function from data of unknown origin; null if it is none.
export function readBase(given) {
  if (!given || typeof given !== "object" || !Object.hasOwn(KINDS, given.kind)) return null;
  const found = { kind: given.kind };
  if (given.kind === "series") {
    const points = given.points;
    if (!Array.isArray(points) || points.length !== HANDLES || !points.every(isNumber)) return null;
    return { ...found, points: points.map((one) => Math.min(POINT, Math.max(-POINT, one))) };
  }
  for (const { name, min, max } of KINDS[given.kind].params) {
    if (!isNumber(given[name])) return null;
    found[name] = Math.min(max, Math.max(min, given[name]));
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
    if (isNumber(given[name])) found[name] = Math.min(high, Math.max(low, given[name]));
  }
  found.K = Math.round(found.K);
  found.rivals = Math.round(found.rivals);
  found.perK = given.perK === true;
  if (NOISES.includes(given.noise)) found.noise = given.noise;
  if (typeof given.name === "string") found.name = given.name.slice(0, 40);
  if (Array.isArray(given.extra)) {
    for (const one of given.extra.slice(0, MOST_EXTRA)) {
      const base = readBase(one?.base);
      if (base && isNumber(one.factor) && one.factor > 0) found.extra.push({ factor: one.factor, base });
    }
  }
  if (!(found.lam > 0) && !(found.mu > 0) && !found.extra.length) found.lam = START.lam;
  return found;
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
