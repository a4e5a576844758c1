// Controls: a slider with a typed value, a menu, the points of a drawn curve, buttons that copy.

import { HANDLES, KINDS, NODES, POINT_RANGE } from "./base.js";
import { element, scales } from "./draw.js";
import { tidy } from "./state.js";

const LETTERS = { alpha: "α", beta: "β", gamma: "γ", tau: "τ", lam: "λ", mu: "μ", pi0: "π₀", eps: "ε" };

const KEYS = {
  ArrowUp: 0.1, ArrowRight: 0.1, ArrowDown: -0.1, ArrowLeft: -0.1, PageUp: 0.5, PageDown: -0.5, Home: -Infinity, End: Infinity,
};

// One number by slider and by typing; `change` hears of every valid one.
export function slider({ id, label, hint = "", min, max, reach = max, step, value, change }) {
  const row = document.createElement("div"), name = document.createElement("label");
  const track = document.createElement("input"), box = document.createElement("input");
  row.className = "slider";
  name.textContent = label;
  name.htmlFor = id;
  if (hint) name.title = hint;
  Object.assign(track, { type: "range", id, min, max: reach, step, value });
  Object.assign(box, { type: "number", id: `${id}-value`, min, max, step: "any", value });
  box.setAttribute("aria-label", `${label}, typed`);
  track.addEventListener("input", () => { box.value = track.value; change(Number(track.value)); });
  box.addEventListener("input", () => {
    const typed = Number(box.value), good = box.value !== "" && typed >= min && typed <= max;
    box.setAttribute("aria-invalid", String(!good));
    if (good) { track.value = typed; change(tidy(typed)); }
  });
  box.addEventListener("change", () => { if (box.value !== "") box.value = tidy(Number(box.value)); });
  row.append(name, track, box);
  return row;
}

export function menu({ id, label, options, value, change }) {
  const row = document.createElement("div"), name = document.createElement("label"), select = document.createElement("select");
  row.className = "menu";
  name.textContent = label;
  name.htmlFor = select.id = id;
  for (const [key, text] of options) {
    const option = document.createElement("option");
    option.value = key;
    option.textContent = text;
    select.append(option);
  }
  select.value = value;
  select.addEventListener("change", () => change(select.value));
  row.append(name, select);
  return row;
}

// Sliders for the parameters of a base function.
export function baseSliders(prefix, base, change) {
  return KINDS[base.kind].params.map(({ name, min, max, step }) =>
    slider({ id: `${prefix}-${name}`, label: LETTERS[name] ?? name, min, max, step, value: base[name], change: (value) => change(name, value) }));
}

// The points of a drawn curve, over the logarithm of the density; by mouse, finger or arrow keys.
export function handles(svg, points, change) {
  svg.querySelector(".handles")?.remove();
  const layer = element("g", { class: "handles" }), at = scales([0, 1], [-POINT_RANGE, POINT_RANGE]);
  const clamp = (value) => Math.round(100 * Math.max(-POINT_RANGE, Math.min(POINT_RANGE, value))) / 100;
  for (let i = 0; i < HANDLES; i++) {
    const dot = element("circle", {
      r: 8, cx: at.x(NODES[i]), cy: at.y(points[i]), tabindex: 0, role: "slider", class: "handle",
      "aria-label": `logarithm of the density at x = ${NODES[i].toFixed(2)}`,
      "aria-valuemin": -POINT_RANGE, "aria-valuemax": POINT_RANGE, "aria-valuenow": points[i], "aria-orientation": "vertical",
    });
    const move = (value) => {
      const next = clamp(value);
      dot.setAttribute("cy", at.y(next));
      dot.setAttribute("aria-valuenow", next);
      change(i, next);
    };
    dot.addEventListener("pointerdown", (event) => { dot.setPointerCapture(event.pointerId); event.preventDefault(); dot.focus(); });
    dot.addEventListener("pointermove", (event) => {
      if (!dot.hasPointerCapture(event.pointerId)) return;
      const frame = svg.getBoundingClientRect(), box = svg.viewBox.baseVal;
      move(at.valueOfY(((event.clientY - frame.top) / frame.height) * box.height));
    });
    dot.addEventListener("keydown", (event) => {
      const step = KEYS[event.key];
      if (step === undefined) return;
      event.preventDefault();
      move(Number(dot.getAttribute("aria-valuenow")) + step);
    });
    layer.append(dot);
  }
  svg.append(layer);
}

// A button that copies the text of another element, and says so.
export function copyButton(button, text, say) {
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
    } catch { // files opened from a disk may not have a clipboard
      const area = document.createElement("textarea");
      area.value = text();
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    say("copied");
    button.classList.add("done");
    setTimeout(() => button.classList.remove("done"), 900);
  });
}
