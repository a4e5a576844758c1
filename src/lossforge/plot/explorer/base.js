// Base functions: density phi = -h', value h, integral H from 0, and the ratios of phi.
// The mathematics is that of lossforge.base and lossforge.theory.ratios; tests compare the two.

const range = (name, min, max, step, start) => ({ name, min, max, step, start });

// label: what the menu calls it; params: in the order of the Python constructor
export const KINDS = {
  exponential: {
    label: "f1: α exp(β (x − γ)²)",
    params: [range("alpha", -12, -0.1, 0.1, -8), range("beta", -16, 16, 0.1, -1), range("gamma", 0, 1, 0.01, 0.5)],
  },
  quadratic: {
    label: "f2: α (x − γ)² + β",
    params: [range("alpha", -30, 30, 0.1, 7), range("beta", -12, -0.1, 0.1, -8), range("gamma", 0, 1, 0.01, 0.5)],
  },
  series: { label: "drawn by hand", params: [] },
  log: { label: "−log x (CE)", params: [] },
  linear: { label: "1 − x (MAE)", params: [range("scale", 0.1, 10, 0.1, 1)] },
  power: { label: "(1 − x^q) / q (GCE)", params: [range("q", 0.05, 3, 0.05, 0.7)] },
  shifted_power: { label: "AGCE", params: [range("a", 0.05, 10, 0.05, 0.6), range("q", 0.05, 5, 0.05, 0.6)] },
  mirrored_power: { label: "AUL", params: [range("a", 1.05, 40, 0.05, 5.5), range("q", 0.1, 5, 0.1, 3)] },
  exponential_decay: { label: "AEL", params: [range("a", 0.1, 20, 0.1, 2.5)] },
  taylor: { label: "Taylor series of −log x", params: [range("t", 1, 12, 1, 2)] },
  focal: { label: "focal", params: [range("gamma", 0, 5, 0.1, 0.5)] },
  huber_log: { label: "Huberised −log x", params: [range("tau", 1, 50, 0.5, 10)] },
  huber_power: { label: "Huberised GCE", params: [range("q", 0.05, 0.95, 0.05, 0.7), range("tau", 1, 50, 0.5, 10)] },
  shifted_log: { label: "log((a + 1) / (a + x))", params: [range("a", 0.05, 20, 0.05, 4)] },
  jensen_shannon: { label: "Jensen–Shannon", params: [range("pi0", 0.01, 0.99, 0.01, 0.5)] },
  truncated_power: { label: "truncated GCE", params: [range("q", 0.05, 3, 0.05, 0.7), range("eps", 0.05, 0.95, 0.05, 0.5)] },
};

// Where the points of a drawn curve stand: Chebyshev-Lobatto, so that the series passes through them.
export const HANDLES = 6;
export const POINT_RANGE = 3; // the logarithms that can be drawn lie between -3 and 3
export const NODES = Array.from({ length: HANDLES }, (_, i) => (1 - Math.cos((Math.PI * i) / (HANDLES - 1))) / 2);
const FEWEST_CELLS = 1000; // of the table that bounds a drawn density; Python's has four times as many

// Gauss-Legendre nodes and weights on [0, 1].
const GAUSS = (() => {
  const n = 16, nodes = [], weights = [];
  for (let i = 0; i < n; i++) {
    let x = Math.cos((Math.PI * (i + 0.75)) / (n + 0.5)), slope = 1;
    for (let round = 0; round < 60; round++) {
      let before = 1, p = x;
      for (let k = 2; k <= n; k++) [before, p] = [p, ((2 * k - 1) * x * p - (k - 1) * before) / k];
      slope = (n * (x * p - before)) / (x * x - 1);
      x -= p / slope;
    }
    nodes.push((1 + x) / 2);
    weights.push(1 / ((1 - x * x) * slope * slope));
  }
  return { nodes, weights };
})();

function integrate(phi, from, to, panels) {
  const width = (to - from) / panels;
  let total = 0;
  for (let panel = 0; panel < panels; panel++) {
    const start = from + panel * width;
    for (let i = 0; i < GAUSS.nodes.length; i++) total += GAUSS.weights[i] * phi(start + width * GAUSS.nodes[i]);
  }
  return total * width;
}

// Coefficients of the Chebyshev series through values at NODES, to four decimals: what is shown is what is used.
export function coefficients(points) {
  const n = points.length - 1;
  return points.map((_, k) => {
    let total = 0;
    for (let i = 0; i <= n; i++) {
      const end = i === 0 || i === n ? 0.5 : 1;
      // the nodes run from s = -1 to 1: T_k(s_i) = cos(k (pi - pi i / n))
      total += end * points[i] * Math.cos(k * (Math.PI - (Math.PI * i) / n));
    }
    const scale = k === 0 || k === n ? 1 / n : 2 / n;
    return Math.round(scale * total * 1e4) / 1e4 || 0;
  });
}

export function clenshaw(series, x) {
  const s = 2 * x - 1;
  let newer = 0, older = 0;
  for (let k = series.length - 1; k > 0; k--) [newer, older] = [2 * s * newer - older + series[k], newer];
  return s * newer - older + series[0];
}

function differentiated(series) {
  const result = new Array(series.length + 1).fill(0);
  for (let k = series.length - 1; k > 0; k--) result[k - 1] = result[k + 1] + 2 * k * series[k];
  result[0] /= 2;
  return result.slice(0, Math.max(1, series.length - 1));
}

// Why a base function does not exist; "" if it does.
export function problem(base) {
  if (base.kind !== "quadratic") return "";
  const reach = Math.max(base.gamma, 1 - base.gamma) ** 2;
  if (base.alpha * reach + base.beta < 0) return "";
  return `alpha must be below ${(-base.beta / reach).toPrecision(3)}, so that h falls everywhere`;
}

const bounded = (phi, h, H, monotone = true) => ({ phi, h, H, bounded: true, monotone });
const unbounded = (phi, h) => ({ phi, h, H: (x) => -h(x), bounded: false, monotone: true });

function smooth(phi, panels, monotone = false) {
  return bounded(phi, (x) => integrate(phi, x, 1, panels), (x) => integrate(phi, 0, x, panels), monotone);
}

const powerChange = (origin, step, q) => (origin ** q / q) * Math.expm1(q * Math.log1p(step / origin));

const MAKERS = {
  exponential: ({ alpha, beta, gamma }) => smooth((x) => -alpha * Math.exp(beta * (x - gamma) * (x - gamma)), 3),
  quadratic: ({ alpha, beta, gamma }) => {
    const from = (x, g) => x * (-beta - alpha * g * g + x * (alpha * g - (alpha / 3) * x));
    return bounded((x) => -beta - alpha * (x - gamma) * (x - gamma), (x) => from(1 - x, 1 - gamma), (x) => from(x, gamma), false);
  },
  series: ({ points }) => {
    const series = coefficients(points);
    return { ...smooth((x) => Math.exp(clenshaw(series, x)), 3), series };
  },
  log: () => unbounded((x) => 1 / x, (x) => -Math.log(x)),
  linear: ({ scale }) => bounded(() => scale, (x) => scale * (1 - x), (x) => scale * x),
  power: ({ q }) => bounded((x) => x ** (q - 1), (x) => -Math.expm1(q * Math.log(x)) / q, (x) => x ** q / q),
  shifted_power: ({ a, q }) =>
    bounded((x) => (a + x) ** (q - 1), (x) => -powerChange(a + 1, x - 1, q), (x) => powerChange(a, x, q)),
  mirrored_power: ({ a, q }) =>
    bounded((x) => (a - x) ** (q - 1), (x) => powerChange(a - 1, 1 - x, q), (x) => -powerChange(a, -x, q)),
  exponential_decay: ({ a }) =>
    bounded((x) => Math.exp(-x / a) / a, (x) => -Math.exp(-x / a) * Math.expm1((x - 1) / a), (x) => -Math.expm1(-x / a)),
  taylor: ({ t }) => {
    const phi = (x) => { let sum = 1; for (let j = 1; j < t; j++) sum += (1 - x) ** j; return sum; };
    const h = (x) => { let sum = 0; for (let j = 1; j <= t; j++) sum += (1 - x) ** j / j; return sum; };
    return bounded(phi, h, (x) => h(0) - h(x));
  },
  focal: ({ gamma }) =>
    unbounded(
      (x) => { const q = 1 - x; return q ** gamma * (1 / x - gamma * (q === 0 ? -1 : Math.log(x) / q)); },
      (x) => -((1 - x) ** gamma) * Math.log(x),
    ),
  huber_log: ({ tau }) => {
    const top = Math.log(tau) + 1, above = (x) => x * tau > 1;
    const h = (x) => (above(x) ? -Math.log(x) : top - tau * x);
    return bounded((x) => (above(x) ? 1 / x : tau), h, (x) => top - h(x));
  },
  huber_power: ({ q, tau }) => {
    const knee = tau ** (1 / (q - 1)), top = (1 - knee ** q) / q + tau * knee;
    const h = (x) => (x > knee ? -Math.expm1(q * Math.log(x)) / q : top - tau * x);
    return bounded((x) => Math.max(x, knee) ** (q - 1), h, (x) => top - h(x));
  },
  shifted_log: ({ a }) =>
    bounded((x) => 1 / (a + x), (x) => -Math.log1p((x - 1) / (a + 1)), (x) => Math.log1p(x / a)),
  jensen_shannon: ({ pi0 }) => {
    const pi1 = 1 - pi0, entropy = -pi0 * Math.log(pi0) - pi1 * Math.log(pi1);
    const h = (x) => {
      const m = pi0 + pi1 * x;
      return -m * Math.log(m) + (x > 0 ? pi1 * x * Math.log(x) : 0) - pi1 * (1 - x) * Math.log(pi1);
    };
    return bounded((x) => pi1 * Math.log1p(pi0 / (pi1 * x)), h, (x) => entropy - h(x));
  },
  truncated_power: ({ q, eps }) => {
    const h = (x) => -Math.expm1(q * Math.log(Math.max(x, eps))) / q;
    return bounded((x) => (x > eps ? x ** (q - 1) : 0), h, (x) => h(0) - h(x), false);
  },
};

const made = new Map();

// A base function ready to be evaluated: {kind, phi, h, H, bounded, ratios()}.
export function make(base) {
  const key = JSON.stringify(base);
  if (!made.has(key)) {
    if (made.size > 200) made.clear();
    const found = MAKERS[base.kind](base);
    made.set(key, { ...found, kind: base.kind, key, ratios: () => (found.kept ??= ratiosOf(base, found)) });
  }
  return made.get(key);
}

const either = (ratio) => Math.max(ratio, 1 / ratio);

// xi_tri = sup phi(y) / phi(x) over x + y <= 1, and rho_M = sup phi(1 - p) / phi(p).
// Upper bounds; infinite where this page knows none.
function ratiosOf(base, { phi, monotone, series }) {
  if (base.kind === "exponential") {
    const b = Math.abs(base.beta), g = base.gamma;
    return { tri: Math.exp(b * Math.max(1 - 2 * g, g * g)), rho: Math.exp(b * Math.abs(1 - 2 * g)) };
  }
  if (base.kind === "quadratic") return ofQuadratic(base);
  if (series) return ofTable(series);
  if (monotone) {
    const ends = [phi(0), phi(1)], whole = Math.max(...ends) / Math.min(...ends);
    const ratio = Number.isFinite(whole) ? whole : Infinity;
    return { tri: ratio, rho: ratio };
  }
  return { tri: Infinity, rho: Infinity };
}

function ofQuadratic({ alpha, beta, gamma }) {
  const r = alpha / beta, density = (d) => 1 + r * d * d;
  // where the density nearly vanishes these sums cancel, and only Python's exact arithmetic is right
  if (density(Math.max(gamma, 1 - gamma)) < 1e-6) return { tri: Infinity, rho: Infinity };
  const away = Math.abs(gamma - 0.5), square = r > 0 ? 1 / r + away * away : 0.5;
  let across = density(away + 0.5) / density(away - 0.5);
  if (square < 0.25) across = away ? r * (Math.sqrt(square) + away) ** 2 : 1;
  const tri = Math.max(either(density(gamma)), gamma < 0.5 ? either(across) : 1);
  return { tri, rho: Math.min(tri, either(across)) };
}

// Bounds of log phi on cells, by its slope and a bound of its second derivative.
function ofTable(series) {
  const n = FEWEST_CELLS, radius = 0.5 / n, slopes = differentiated(series);
  const curvature = (4 / 3) * series.reduce((sum, c, k) => sum + Math.abs(c) * k * k * (k * k - 1), 0);
  const low = new Float64Array(n), high = new Float64Array(n), least = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    const x = (i + 0.5) / n, middle = clenshaw(series, x);
    const reach = 2 * Math.abs(clenshaw(slopes, x)) * radius + (curvature * radius * radius) / 2 + 1e-12;
    low[i] = middle - reach;
    high[i] = middle + reach;
    least[i] = i ? Math.min(least[i - 1], low[i]) : low[i];
  }
  let tri = 0, rho = 0;
  for (let i = 0; i < n; i++) {
    tri = Math.max(tri, high[i] - least[Math.min(n - 1, n - i)]);
    rho = Math.max(rho, high[n - 1 - i] - low[i]);
  }
  return { tri: Math.exp(tri), rho: Math.exp(Math.min(rho, tri)) };
}

// The text form that lossforge.parse reads, with every digit of the state.
export function textOf(base) {
  if (base.kind === "series") return `series(coefficients=[${coefficients(base.points).join(", ")}], logarithmic=True)`;
  if (base.kind === "truncated_power") return `truncated(power(q=${base.q}), eps=${base.eps})`;
  const given = KINDS[base.kind].params.map(({ name }) => `${name}=${base[name]}`);
  return `${base.kind}(${given.join(", ")})`;
}

// The same as a call of the Python constructor.
export function pythonOf(base) {
  if (base.kind === "series") return `lossforge.base.Series((${coefficients(base.points).join(", ")}), logarithmic=True)`;
  if (base.kind === "truncated_power") return `lossforge.base.Truncated(lossforge.base.Power(q=${base.q}), eps=${base.eps})`;
  const name = base.kind.replace(/(^|_)(.)/g, (_, dash, letter) => letter.toUpperCase());
  const given = KINDS[base.kind].params.map((one) => `${one.name}=${base[one.name]}`);
  return `lossforge.base.${name}(${given.join(", ")})`;
}
