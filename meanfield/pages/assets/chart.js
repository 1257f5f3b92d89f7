"use strict";

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes, appended to a parent. */
function draw(parent, name, attributes = {}, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return parent.appendChild(element);
}

/** At most about `count` round numbers between low and high. */
function ticks(low, high, count = 5) {
  const raw = (high - low) / count;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = unit * [1, 2, 5, 10].find((m) => m * unit >= raw * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(k * step);
  return found;
}

/** A number as an axis or a table shows it. */
function shown(value, digits = 4) {
  if (!Number.isFinite(value)) return "—";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) return value.toExponential(Math.min(digits - 1, 2)).replace("e+", "e").replace("-", "−");
  return String(+value.toPrecision(digits)).replace("-", "−");
}

/** Lines over a common horizontal axis, with a cursor. `series`: [{y, colour, dash, name}]; `xticks`: [[u, text]]. */
class Chart {
  constructor(host, { xname, yname, height = 190 }) {
    Object.assign(this, { host, xname, yname, height, onseek: null });
    this.figure = host.appendChild(document.createElement("figure"));
    this.figure.addEventListener("pointerdown", (event) => {
      this.figure.setPointerCapture(event.pointerId);
      this.seek(event);
    });
    this.figure.addEventListener("pointermove", (event) => event.buttons && this.seek(event));
  }

  set({ u, series, xticks, range, log = false }) {
    const width = (this.width = Math.max(this.host.clientWidth, 240));
    const box = (this.box = { left: 58, right: width - 12, top: 24, bottom: this.height - 34 });
    const all = series.flatMap((line) => Array.from(line.y)).filter((v) => Number.isFinite(v) && (!log || v > 0));
    let [low, high] = range || [Math.min(...extent(all)), Math.max(...extent(all))];
    if (!(high > low)) [low, high] = [low - Math.max(1e-6, Math.abs(low) * 1e-3), low + Math.max(1e-6, Math.abs(low) * 1e-3)];
    if (!range && !log) [low, high] = [low - 0.04 * (high - low), high + 0.04 * (high - low)];
    const scale = log ? Math.log10 : (v) => v;
    const [a, b] = [scale(low), scale(high)];
    this.y = (v) => box.bottom - ((scale(v) - a) / (b - a)) * (box.bottom - box.top);
    this.ends = [u[0], u[u.length - 1]];
    const span = this.ends[1] - this.ends[0] || 1;
    this.x = (v) => box.left + ((v - this.ends[0]) / span) * (box.right - box.left);
    this.figure.replaceChildren();
    const svg = draw(this.figure, "svg", { width, height: this.height, viewBox: `0 0 ${width} ${this.height}`, role: "img" });
    svg.setAttribute("aria-label", `${this.yname} against ${this.xname}`);
    const rows = log ? decades(a, b) : ticks(low, high);
    for (const v of rows) {
      draw(svg, "path", { class: "axis", d: `M${box.left} ${this.y(v)}H${box.right}` });
      draw(svg, "text", { x: box.left - 6, y: this.y(v) + 4, "text-anchor": "end" }, shown(v));
    }
    for (const [v, text] of xticks)
      draw(svg, "text", { x: this.x(v), y: box.bottom + 15, "text-anchor": "middle" }, text);
    draw(svg, "text", { class: "name", x: (box.left + box.right) / 2, y: this.height - 4, "text-anchor": "middle" }, this.xname);
    draw(svg, "text", { class: "name", x: 4, y: 13 }, this.yname);
    this.value = draw(svg, "text", { class: "name", x: box.right, y: 13, "text-anchor": "end" });
    for (const line of series) {
      let path = "";
      for (let i = 0, pen = "M"; i < u.length; i++) {
        const ok = Number.isFinite(line.y[i]) && (!log || line.y[i] > 0);
        if (ok) path += `${pen}${this.x(u[i]).toFixed(1)} ${this.y(line.y[i]).toFixed(1)}`;
        pen = ok ? "L" : "M";
      }
      draw(svg, "path", { d: path, fill: "none", stroke: line.colour, "stroke-width": 1.8, "stroke-dasharray": line.dash || "none" });
    }
    this.cursor = draw(svg, "path", { class: "cursor", visibility: "hidden" });
  }

  /** Puts the cursor at u and writes the value beside the name. */
  point(u, text) {
    this.cursor.setAttribute("visibility", "visible");
    this.cursor.setAttribute("d", `M${this.x(u)} ${this.box.top}V${this.box.bottom}`);
    this.value.textContent = text;
  }

  seek(event) {
    if (!this.onseek) return;
    const place = (event.clientX - this.figure.getBoundingClientRect().left - this.box.left) / (this.box.right - this.box.left);
    this.onseek(this.ends[0] + Math.min(1, Math.max(0, place)) * (this.ends[1] - this.ends[0]));
  }
}

function extent(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const v of values) [low, high] = [Math.min(low, v), Math.max(high, v)];
  return low <= high ? [low, high] : [0, 1];
}

function decades(a, b) {
  const step = Math.max(1, Math.ceil((b - a) / 5));
  const found = [];
  for (let k = Math.ceil(a - 1e-9); k <= b + 1e-9; k += step) found.push(10 ** k);
  return found.length > 1 ? found : [10 ** a, 10 ** b];
}
