// A loss as terms: target h(u_t), others sum H(u_i), pairs mean h(u_t / (u_t + u_i)); values and gradients.

import { make, pythonOf, textOf } from "./base.js";

// a = max(tau / (K - 1), a)
export const coefficient = (state, K) => Math.max(state.tau / (K - 1), state.a);
export const lamOf = (state, K) => (state.perK ? state.lam / K : state.lam);

export function termsOf(state, K) {
  const own = make(state.own), lam = lamOf(state, K), a = coefficient(state, K), mu = state.mu;
  const found = [];
  if (lam > 0) {
    found.push({ role: "target", factor: lam, base: own });
    if (a > 0) found.push({ role: "others", factor: lam * a, base: state.other ? make(state.other) : own });
  }
  for (const { factor, base } of state.extra) found.push({ role: "target", factor, base: make(base) });
  if (mu > 0) found.push({ role: "pairs", factor: mu, base: state.pair ? make(state.pair) : own });
  return found;
}

export function softmax(z) {
  const top = Math.max(...z), e = z.map((one) => Math.exp(one - top)), sum = e.reduce((a, b) => a + b, 0);
  return e.map((one) => one / sum);
}

export function value(terms, z, t) {
  const u = softmax(z), K = z.length;
  let total = 0;
  for (const { role, factor, base } of terms) {
    let term = 0;
    if (role === "target") term = base.h(u[t]);
    else {
      for (let i = 0; i < K; i++) {
        if (i === t) continue;
        term += role === "others" ? base.H(u[i]) : base.h(1 / (1 + Math.exp(z[i] - z[t]))) / (K - 1);
      }
    }
    total += factor * term;
  }
  return total;
}

// Adds weight times the gradient in the logits, at probabilities u and label t, to `into`.
export function addGradient(terms, u, t, weight, into) {
  const K = u.length;
  for (const { role, factor, base } of terms) {
    const scale = weight * factor;
    if (role === "target") {
      const pull = scale * u[t] * base.phi(u[t]);
      for (let k = 0; k < K; k++) into[k] += pull * u[k];
      into[t] -= pull;
    } else if (role === "others") {
      let sum = 0;
      for (let i = 0; i < K; i++) {
        if (i === t) continue;
        const slope = scale * u[i] * base.phi(u[i]);
        into[i] += slope;
        sum += slope;
      }
      for (let k = 0; k < K; k++) into[k] -= sum * u[k];
    } else {
      for (let i = 0; i < K; i++) {
        if (i === t) continue;
        const p = u[t] / (u[t] + u[i]), push = (scale / (K - 1)) * base.phi(p) * p * (1 - p);
        into[i] += push;
        into[t] -= push;
      }
    }
  }
}

// The gradient of the expected loss under label weights.
export function expectedGradient(terms, u, weights) {
  const into = new Array(u.length).fill(0);
  for (let t = 0; t < u.length; t++) if (weights[t] > 0) addGradient(terms, u, t, weights[t], into);
  return into;
}

// Value, and pull on the label's logit, where the label has probability p and the others share the rest.
export function valueAt(terms, K, p) {
  const rest = (1 - p) / (K - 1);
  let total = 0;
  for (const { role, factor, base } of terms) {
    if (role === "target") total += factor * base.h(p);
    else if (role === "others") total += factor * (K - 1) * base.H(rest);
    else total += factor * base.h(p / (p + rest));
  }
  return total;
}

export function pullAt(terms, K, p) {
  const rest = (1 - p) / (K - 1);
  let total = 0;
  for (const { role, factor, base } of terms) {
    if (role === "target") total += factor * base.phi(p) * p * (1 - p);
    else if (role === "others") total += factor * p * (1 - p) * base.phi(rest);
    else { const s = p / (p + rest); total += factor * base.phi(s) * s * (1 - s); }
  }
  return total;
}

function strengthOf(state) {
  const given = [];
  if (state.tau > 0 || !(state.a > 0)) given.push(`tau=${state.tau}`);
  if (state.a > 0) given.push(`a=${state.a}`);
  return given.join(", ");
}

// The text form of the loss for K classes, as lossforge.parse and the command line read it.
export function lossText(state) {
  const found = [], lam = lamOf(state, state.K);
  const other = state.other ? `, nontarget=${textOf(state.other)}` : "";
  if (lam > 0) found.push(`${lam}*TS(${textOf(state.own)}, ${strengthOf(state)}${other})`);
  for (const { factor, base } of state.extra) found.push(`${factor}*TS(${textOf(base)}, tau=0)`);
  if (state.mu > 0) found.push(`${state.mu}*BR(${textOf(state.pair ?? state.own)})`);
  return found.join(" + ");
}

// The same as Python.
export function lossPython(state) {
  const found = [], lam = lamOf(state, state.K);
  const other = state.other ? `, nontarget=${pythonOf(state.other)}` : "";
  if (lam > 0) found.push(`${lam} * lossforge.TargetSeparation(${pythonOf(state.own)}, ${strengthOf(state)}${other})`);
  for (const { factor, base } of state.extra) found.push(`${factor} * lossforge.TargetSeparation(${pythonOf(base)}, tau=0)`);
  if (state.mu > 0) found.push(`${state.mu} * lossforge.BinaryReduction(${pythonOf(state.pair ?? state.own)})`);
  return `loss = ${found.join(" + ")}`;
}
