// Drawing: line charts in SVG, the triangle and the trained regions on canvases. Colours come from the page.

import { expectedGradient } from "./loss.js";

const SVG = "http://www.w3.org/2000/svg";
const SIZE = { width: 400, height: 250, left: 40, right: 12, top: 12, bottom: 40 };
const ARROWS = 15, SHADES = 56; // points along an edge

export function element(name, attributes = {}, text = "") {
  const found = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
  if (text) found.textContent = text;
  return found;
}

function ticks(low, high, most = 5) {
  const rough = (high - low) / most, size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * size).find((one) => one >= rough);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + 1e-9 * step; at += step) found.push(at);
  return found;
}

// The places of data in a chart, and back.
export function scales([x0, x1], [y0, y1]) {
  const { width, height, left, right, top, bottom } = SIZE;
  return {
    x: (value) => left + ((value - x0) / (x1 - x0)) * (width - left - right),
    y: (value) => height - bottom - ((value - y0) / (y1 - y0)) * (height - top - bottom),
    valueOfY: (place) => y0 + ((height - bottom - place) / (height - top - bottom)) * (y1 - y0),
  };
}

// Lines over x: [{points: [[x, y], ...], style, name}]; keeps what else is in the chart in `.over`.
export function chart(svg, { lines, x: xs, y: ys, xlabel, marks = [], fill = null, xticks = null }) {
  const { width, height, left, right, top, bottom } = SIZE, at = scales(xs, ys), layer = element("g");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  if (fill) layer.append(element("path", { d: path(fill, at) + "Z", class: "forbidden" }));
  for (const tick of ticks(...ys)) {
    layer.append(element("line", { x1: left, x2: width - right, y1: at.y(tick), y2: at.y(tick), class: "grid" }));
    layer.append(element("text", { x: left - 6, y: at.y(tick) + 4, class: "tick", "text-anchor": "end" }, short(tick)));
  }
  for (const tick of xticks ?? ticks(...xs).map((one) => [one, short(one)])) {
    layer.append(element("text", { x: at.x(tick[0]), y: height - bottom + 16, class: "tick", "text-anchor": tick[2] ?? "middle" }, tick[1]));
  }
  layer.append(element("line", { x1: left, x2: width - right, y1: height - bottom, y2: height - bottom, class: "axis" }));
  layer.append(element("text", { x: width - right, y: height - 3, class: "label", "text-anchor": "end" }, xlabel));
  const clip = `clip-${svg.id}`, frame = element("clipPath", { id: clip });
  frame.append(element("rect", { x: left, y: top - 6, width: width - left - right + 1, height: height - top - bottom + 7 }));
  layer.append(frame);
  const drawn = element("g", { "clip-path": `url(#${clip})` });
  for (const { points, style } of lines) drawn.append(element("path", { d: path(points, at), class: `line ${style}` }));
  layer.append(drawn);
  for (const { x, y, style } of marks) layer.append(element("circle", { cx: at.x(x), cy: at.y(y), r: 5, class: style }));
  svg.querySelector(".chart")?.remove();
  layer.classList.add("chart");
  svg.prepend(layer);
}

const short = (value) => String(Math.round(value * 1e6) / 1e6);

const path = (points, at) =>
  points.map(([x, y], i) => `${i ? "L" : "M"}${at.x(x).toFixed(1)} ${Math.max(-1e4, Math.min(1e4, at.y(y))).toFixed(1)}`).join("");

// Colours of the page, as the theme has them.
export function palette() {
  const style = getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue(`--${name}`).trim();
  return Object.fromEntries(["ink", "muted", "rule", "paper", "card", "mine", "second", "third", "alarm"].map((name) => [name, of(name)]));
}

// Sizes of canvases, kept up to date: to ask for one while drawing would make the browser lay out the page.
const sizes = new WeakMap();
const watcher = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) sizes.set(target, [contentRect.width, contentRect.height]);
});

export function prepare(canvas) {
  if (!sizes.has(canvas)) {
    sizes.set(canvas, [canvas.clientWidth, canvas.clientHeight]);
    watcher.observe(canvas);
  }
  const ratio = window.devicePixelRatio || 1, [width, height] = sizes.get(canvas);
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}

const LABELS = [30, 26]; // pixels above and below the triangle, for its labels

// The largest triangle that leaves room for its labels.
function frameOf(width, height) {
  const side = Math.min(width - 24, (height - LABELS[0] - LABELS[1]) / Math.sqrt(0.75));
  return { left: (width - side) / 2, top: LABELS[0], side };
}

// Where a prediction stands: the first class at the top, the others left and right.
const place = (u, { left, top, side }) => [left + side * (u[0] / 2 + u[2]), top + side * Math.sqrt(0.75) * (1 - u[0])];

function* triangle(side, margin) {
  for (let i = 0; i < side; i++) {
    for (let j = 0; j < side - i; j++) {
      const u = [i, j, side - 1 - i - j].map((one) => margin + (1 - 3 * margin) * (one / (side - 1)));
      yield u;
    }
  }
}

// How a prediction moves under gradient descent in the logits: -(diag u - u u^T) g.
export function motion(terms, u, weights) {
  const g = expectedGradient(terms, u, weights), mean = g.reduce((sum, one, k) => sum + u[k] * one, 0);
  return { g, move: u.map((one, k) => -one * (g[k] - mean)) };
}

// Arrows of gradient descent on three-class predictions; shaded where a larger logit of the true class hurts.
export function field(canvas, terms, weights, star) {
  const { context, width, height } = prepare(canvas), frame = frameOf(width, height), colours = palette();
  const radius = frame.side / (SHADES - 1) / 1.6;
  context.fillStyle = colours.alarm;
  context.globalAlpha = 0.24;
  context.beginPath(); // one path, so that what overlaps is no darker
  let shaded = 0;
  for (const u of triangle(SHADES, 0.004)) {
    const { g } = motion(terms, u, weights);
    if (g[0] > 1e-7 * Math.max(...g.map(Math.abs))) {
      const [x, y] = place(u, frame);
      context.rect(x - radius, y - radius, 2 * radius, 2 * radius);
      shaded++;
    }
  }
  context.fill();
  context.globalAlpha = 1;
  arrows(context, terms, weights, frame, colours);
  context.strokeStyle = colours.muted;
  context.lineWidth = 1.2;
  context.beginPath();
  [0, 1, 2].forEach((k) => { const [x, y] = place([0, 1, 2].map((one) => +(one === k)), frame); context[k ? "lineTo" : "moveTo"](x, y); });
  context.closePath();
  context.stroke();
  names(context, weights, frame, colours);
  if (star) drawStar(context, ...place(star, frame), colours);
  return shaded;
}

function arrows(context, terms, weights, frame, colours) {
  const points = [...triangle(ARROWS, 0.03)].map((u) => ({ u, move: motion(terms, u, weights).move }));
  const lengths = points.map(({ move }) => Math.hypot(...move)), most = Math.max(...lengths);
  context.strokeStyle = context.fillStyle = colours.mine;
  context.lineWidth = 1.4;
  points.forEach(({ u, move }, i) => {
    if (!(lengths[i] > 1e-9 * most)) return;
    const [x, y] = place(u, frame), [ex, ey] = place(u.map((one, k) => one + move[k] / lengths[i] / 100), frame);
    const angle = Math.atan2(ey - y, ex - x), length = 0.048 * frame.side * (lengths[i] / most) ** 0.25;
    context.save();
    context.translate(x, y);
    context.rotate(angle);
    context.beginPath();
    context.moveTo(-length / 2, 0);
    context.lineTo(length / 2 - 3, 0);
    context.stroke();
    context.beginPath();
    context.moveTo(length / 2, 0);
    context.lineTo(length / 2 - 5, -2.8);
    context.lineTo(length / 2 - 5, 2.8);
    context.fill();
    context.restore();
  });
}

function names(context, weights, frame, colours) {
  context.fillStyle = colours.muted;
  context.font = "12px system-ui, sans-serif";
  const percent = (w) => `${Math.round(1000 * w) / 10} %`;
  const texts = [`true class: ${percent(weights[0])} of labels`, `wrong: ${percent(weights[1])}`, `wrong: ${percent(weights[2])}`];
  texts.forEach((text, k) => {
    const [x, y] = place([0, 1, 2].map((one) => +(one === k)), frame);
    context.textAlign = ["center", "left", "right"][k];
    context.fillText(text, x, y + (k ? 18 : -14));
  });
}

function drawStar(context, x, y, colours) {
  context.beginPath();
  for (let i = 0; i < 10; i++) {
    const r = i % 2 ? 4 : 9.5, angle = (Math.PI * i) / 5 - Math.PI / 2;
    context[i ? "lineTo" : "moveTo"](x + r * Math.cos(angle), y + r * Math.sin(angle));
  }
  context.closePath();
  context.fillStyle = colours.alarm;
  context.strokeStyle = colours.card;
  context.lineWidth = 1.5;
  context.fill();
  context.stroke();
}

const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
const sheet = document.createElement("canvas"); // one pixel a cell, drawn larger

// Regions of a network's most probable class, and the points: filled by their given label, ringed where it is wrong.
export function regions(canvas, network, data, given, cells) {
  const { context, width, height } = prepare(canvas), colours = palette(), shown = [colours.mine, colours.second, colours.third];
  const size = Math.min(width, height), reach = 1.3, at = (value) => ((value + reach) / (2 * reach)) * size;
  const tints = shown.map(rgb), card = rgb(colours.card);
  sheet.width = sheet.height = cells;
  const ink = sheet.getContext("2d"), picture = ink.createImageData(cells, cells);
  for (let j = 0; j < cells; j++) {
    for (let i = 0; i < cells; i++) {
      const u = network.predict(((i + 0.5) / cells) * 2 * reach - reach, ((j + 0.5) / cells) * 2 * reach - reach);
      const best = u[0] >= u[1] ? (u[0] >= u[2] ? 0 : 2) : u[1] >= u[2] ? 1 : 2, share = 0.08 + 0.3 * Math.max(0, 1.5 * u[best] - 0.5);
      for (let k = 0; k < 3; k++) picture.data[4 * (j * cells + i) + k] = card[k] + share * (tints[best][k] - card[k]);
      picture.data[4 * (j * cells + i) + 3] = 255;
    }
  }
  ink.putImageData(picture, 0, 0);
  context.translate((width - size) / 2, 0);
  context.drawImage(sheet, 0, 0, size, size);
  const scale = Math.max(0.75, size / 400);
  for (let i = 0; i < data.count; i++) mark(context, at(data.x[2 * i]), at(data.x[2 * i + 1]), given[i], given[i] !== data.true[i], shown, colours, scale);
}

// A shape for each class, so that colour is not needed.
function mark(context, x, y, label, wrong, shown, colours, scale) {
  const r = scale * (wrong ? 4 : 3.2);
  context.beginPath();
  if (label === 0) context.arc(x, y, r, 0, 7);
  else if (label === 1) context.rect(x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r);
  else { context.moveTo(x, y - 1.25 * r); context.lineTo(x + 1.15 * r, y + 0.85 * r); context.lineTo(x - 1.15 * r, y + 0.85 * r); context.closePath(); }
  context.fillStyle = shown[label];
  context.fill();
  context.strokeStyle = wrong ? colours.ink : colours.card;
  context.lineWidth = wrong ? 1.3 : 0.7;
  context.stroke();
}
