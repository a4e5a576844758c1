// A tiny network trained on two-dimensional points of three classes, some labels wrong.

import { addGradient } from "./loss.js";

export const SAMPLES = 300;
export const STEPS = 600; // of a run: the rate falls to 0 like a cosine, as in the published protocols
const HIDDEN = 32, RATE = 0.01, WEIGHT_DECAY = 0.1, DECAY = [0.9, 0.99], TINY = 1e-6, LEAST = 1e-12;

// A small generator with a seed: the same seed, the same points, labels and initial weights.
export function generator(seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  return { uniform, normal };
}

// Three arms that bend around the centre; x in about [-1.2, 1.2].
export function makeData(count, seed) {
  const random = generator(seed), x = new Float64Array(2 * count), true_ = new Uint8Array(count);
  for (let i = 0; i < count; i++) {
    const label = i % 3, radius = 0.15 + 0.95 * Math.sqrt(random.uniform());
    const angle = (2 * Math.PI * label) / 3 + 1.5 * radius + 0.24 * random.normal();
    x[2 * i] = radius * Math.cos(angle);
    x[2 * i + 1] = radius * Math.sin(angle);
    true_[i] = label;
  }
  return { x, true: true_, count };
}

// Labels of which exactly a share is wrong in each class: to a random other class, or to the next one.
export function corrupt(labels, noise, rate, seed) {
  const random = generator(seed), given = Uint8Array.from(labels);
  for (let label = 0; label < 3; label++) {
    const members = [...labels.keys()].filter((i) => labels[i] === label);
    for (let i = members.length - 1; i > 0; i--) {
      const j = Math.floor(random.uniform() * (i + 1));
      [members[i], members[j]] = [members[j], members[i]];
    }
    members.slice(0, Math.round(rate * members.length)).forEach((i, place) => {
      given[i] = (label + (noise === "pair" ? 1 : 1 + (place % 2))) % 3;
    });
  }
  return given;
}

export class Network {
  constructor(seed) {
    const random = generator(seed), sizes = [2, HIDDEN, HIDDEN, 3];
    this.layers = [];
    for (let at = 0; at < 3; at++) {
      const [n, m] = [sizes[at], sizes[at + 1]], weights = new Float64Array((n + 1) * m);
      const scale = Math.sqrt((at ? 2 : 4) / n);
      for (let i = 0; i < n * m; i++) weights[i] = scale * random.normal();
      this.layers.push({ n, m, weights, slopes: new Float64Array(weights.length), first: new Float64Array(weights.length), second: new Float64Array(weights.length) });
    }
    this.values = sizes.map((n) => new Float64Array(n));
    this.deltas = sizes.map((n) => new Float64Array(n));
    this.steps = 0;
  }

  // Probabilities of one point; the same array every time.
  predict(a, b) {
    this.values[0][0] = a;
    this.values[0][1] = b;
    this.layers.forEach(({ n, m, weights }, at) => {
      const input = this.values[at], output = this.values[at + 1];
      for (let j = 0; j < m; j++) {
        let sum = weights[n * m + j];
        for (let i = 0, w = j * n; i < n; i++, w++) sum += weights[w] * input[i];
        output[j] = at < 2 ? Math.max(0, sum) : sum;
      }
    });
    const u = this.values[3], top = Math.max(u[0], u[1], u[2]);
    let total = 0;
    for (let k = 0; k < 3; k++) total += u[k] = Math.exp(u[k] - top);
    for (let k = 0; k < 3; k++) u[k] = Math.max(LEAST, u[k] / total);
    return u;
  }

  // One step of Adam on all points.
  step(terms, { x, count }, given) {
    for (const layer of this.layers) layer.slopes.fill(0);
    for (let i = 0; i < count; i++) {
      const u = this.predict(x[2 * i], x[2 * i + 1]);
      this.deltas[3].fill(0);
      addGradient(terms, u, given[i], 1 / count, this.deltas[3]);
      this.backward();
    }
    this.steps++;
    const rates = DECAY.map((decay) => 1 - decay ** this.steps);
    const rate = (RATE * (1 + Math.cos((Math.PI * Math.min(1, this.steps / STEPS))))) / 2;
    for (const { weights, slopes, first, second } of this.layers) {
      for (let i = 0; i < weights.length; i++) {
        first[i] += (1 - DECAY[0]) * (slopes[i] - first[i]);
        second[i] += (1 - DECAY[1]) * (slopes[i] * slopes[i] - second[i]);
        weights[i] -= rate * (first[i] / rates[0] / (Math.sqrt(second[i] / rates[1]) + TINY) + WEIGHT_DECAY * weights[i]);
      }
    }
  }

  backward() {
    for (let at = 2; at >= 0; at--) {
      const { n, m, weights, slopes } = this.layers[at], input = this.values[at], below = this.deltas[at];
      below.fill(0);
      for (let j = 0; j < m; j++) {
        const delta = this.deltas[at + 1][j];
        if (delta === 0) continue;
        slopes[n * m + j] += delta;
        for (let i = 0, w = j * n; i < n; i++, w++) {
          slopes[w] += delta * input[i];
          below[i] += delta * weights[w];
        }
      }
      if (at) for (let i = 0; i < n; i++) if (!(input[i] > 0)) below[i] = 0;
    }
  }

  // The share of points whose most probable class is their label.
  accuracy({ x, count }, labels) {
    let hits = 0;
    for (let i = 0; i < count; i++) {
      const u = this.predict(x[2 * i], x[2 * i + 1]);
      hits += (u[0] >= u[1] ? (u[0] >= u[2] ? 0 : 2) : u[1] >= u[2] ? 1 : 2) === labels[i];
    }
    return hits / count;
  }
}
