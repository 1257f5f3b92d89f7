"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);

function bytes(text) {
  const raw = atob(text);
  const array = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) array[i] = raw.charCodeAt(i);
  return array;
}

/** One trajectory as the page needs it. */
class Run {
  constructor(record) {
    Object.assign(this, record);
    this.x = new Int16Array(bytes(record.x).buffer);
    this.colours = bytes(record.colours);
    this.sizes = new Float32Array(bytes(record.sizes).buffer);
    this.frames = this.ts.length;
  }

  /** Page coordinates (right, up, towards the reader) of all tokens at a time between frames. */
  places(time, m) {
    const frame = Math.min(Math.floor(time), this.frames - 1);
    const next = Math.min(frame + 1, this.frames - 1);
    const [f, step] = [time - frame, this.axes * this.n];
    const result = new Float32Array(3 * this.n);
    const p = [0, 0, 0];
    for (let i = 0; i < this.n; i++) {
      for (let k = 0; k < this.axes; k++) {
        const at = this.axes * i + k;
        p[k] = ((1 - f) * this.x[frame * step + at] + f * this.x[next * step + at]) / 32767;
      }
      const norm = this.unit ? Math.hypot(p[0], p[1], p[2]) || 1 : 1;
      for (let k = 0; k < 3; k++) result[3 * i + k] = (m[k][0] * p[0] + m[k][1] * p[1] + m[k][2] * p[2]) / norm;
    }
    return result;
  }

  /** A saved series between two frames. */
  at(series, time) {
    const frame = Math.min(Math.floor(time), this.frames - 2);
    return frame < 0 ? series[0] : series[frame] + (time - frame) * (series[frame + 1] - series[frame]);
  }
}

class App {
  constructor() {
    this.stage = find("stage");
    this.charts = [];
    this.time = 0;
    this.playing = false;
    this.picked = -1;
    this.drawn = 0;
    this.points = this.renderer(find("points"));
    data.runs.forEach((run, k) => find("run").add(new Option(run.name, k)));
    find("run").hidden = data.runs.length < 2;
    this.open(0);
    this.listen();
  }

  renderer(canvas) {
    if (new URLSearchParams(location.search).get("renderer") !== "canvas") {
      try {
        return new GLPoints(canvas);
      } catch (error) {
        canvas.replaceWith((canvas = canvas.cloneNode())); // a canvas keeps its first kind of context
      }
    }
    return new CanvasPoints(canvas);
  }

  open(index) {
    const run = (this.run = new Run(data.runs[index]));
    this.globe = new Globe(find("globe"), run.axes, run.axes_names, run.view);
    this.points.load(run);
    find("meta").textContent = run.meta;
    find("time").max = run.frames - 1;
    find("trails").checked = run.n <= 2000;
    this.legend(run.legend);
    this.layout();
    this.seek(0);
  }

  layout() {
    const size = Math.round(this.stage.clientWidth * Math.min(devicePixelRatio, 2));
    for (const canvas of this.stage.querySelectorAll("canvas")) canvas.width = canvas.height = size;
    find("charts").replaceChildren();
    const { run } = this;
    const xticks = run.even
      ? ticks(run.ts[0], run.ts[run.frames - 1], 5).map((t) => [((t - run.ts[0]) / (run.ts[run.frames - 1] - run.ts[0] || 1)) * (run.frames - 1), shown(t)])
      : Array.from({ length: 6 }, (_, k) => Math.round((k * (run.frames - 1)) / 5)).map((k) => [k, shown(run.ts[k], 2)]);
    const panels = [["order", "order parameter R", "var(--blue)", [0, 1.05]], ["energy", "energy E", "var(--orange)", null]];
    this.charts = panels.filter(([name]) => run[name]).map(([name, yname, colour, range]) => {
      const xname = run.even ? "time t" : "time t (axis even in saved times)";
      const chart = new Chart(find("charts"), { xname, yname });
      chart.set({ u: run.ts.map((_, k) => k), series: [{ y: run[name], colour }], xticks, range });
      chart.onseek = (u) => this.pause() || this.seek(u);
      return { chart, values: run[name] };
    });
    this.globe.draw();
  }

  legend(legend) {
    const host = find("legend");
    host.replaceChildren();
    if (!legend) return;
    const add = (tag, text, style = {}) => {
      const element = host.appendChild(document.createElement(tag));
      element.textContent = text;
      Object.assign(element.style, style);
      return element;
    };
    add("span", legend.label);
    if (legend.stops) {
      add("span", legend.low);
      add("span", "", { background: `linear-gradient(to right, ${legend.stops.join(",")})` }).className = "bar";
      add("span", legend.high);
    } else {
      for (const [text, colour] of legend.kinds) {
        const entry = add("span", "");
        Object.assign(entry.appendChild(document.createElement("span")), { className: "swatch" }).style.background = colour;
        entry.append(text);
      }
    }
  }

  get look() {
    const style = getComputedStyle(document.documentElement);
    const rgb = (name) => (style.getPropertyValue(name).trim().match(/\w\w/g) || ["ff", "ff", "ff"]).map((v) => parseInt(v, 16) / 255);
    const pixels = find("points").width;
    const size = Math.min(pixels / 38, Math.max(pixels / 190, (0.9 * pixels) / Math.sqrt(this.run.n) / 4));
    const trail = find("trails").checked ? 24 : 0;
    return { matrix: this.globe.matrix, scale: this.globe.scale, size, trail, picked: this.picked, paper: rgb("--paper"), ink: rgb("--ink") };
  }

  draw() {
    this.points.draw(this.time, this.look);
    this.drawn += 1;
  }

  seek(time) {
    this.time = Math.min(Math.max(time, 0), this.run.frames - 1);
    find("time").value = this.time;
    find("now").textContent = `t = ${shown(this.run.at(this.run.ts, this.time))}`;
    for (const { chart, values } of this.charts) chart.point(this.time, shown(this.run.at(values, this.time), 6));
    this.draw();
  }

  play() {
    if (this.time >= this.run.frames - 1) this.seek(0);
    this.playing = true;
    find("play").textContent = "Pause";
    let last = null;
    const step = (now) => {
      if (!this.playing) return;
      const rate = ((this.run.frames - 1) / 10) * Number(find("speed").value); // frames a second: a run takes ten seconds
      if (last !== null) this.seek(this.time + (rate * (now - last)) / 1000);
      last = now;
      if (this.time >= this.run.frames - 1) this.pause();
      else requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  }

  pause() {
    this.playing = false;
    find("play").textContent = "Play";
  }

  /** The token drawn nearest to a point of the stage, or −1; one on the near side wins. */
  pick(x, y) {
    const places = this.run.places(this.time, this.globe.matrix);
    const half = this.stage.clientWidth / 2;
    let [best, nearest] = [-1, 12];
    for (let i = 0; i < this.run.n; i++) {
      const away = Math.hypot(half * (1 + this.globe.scale * places[3 * i]) - x, half * (1 - this.globe.scale * places[3 * i + 1]) - y);
      const cost = away + (places[3 * i + 2] < 0 ? 5 : 0);
      if (cost < nearest) [best, nearest] = [i, cost];
    }
    return best;
  }

  hover(event) {
    const box = this.stage.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const tip = find("tip");
    this.picked = this.pick(x, y);
    tip.hidden = this.picked < 0;
    if (this.picked >= 0) {
      const p = this.run.places(this.time, [[1, 0, 0], [0, 1, 0], [0, 0, 1]]).subarray(3 * this.picked, 3 * this.picked + this.run.axes);
      const name = this.run.names ? `\n${this.run.names[this.picked]}` : "";
      tip.textContent = `token ${this.picked}${name}\n${data.label}: ${this.run.texts[this.picked]}\n(${Array.from(p, (v) => v.toFixed(3)).join(", ")})`;
      tip.style.left = `${Math.min(x + 14, box.width - tip.offsetWidth)}px`;
      tip.style.top = `${Math.min(y + 14, box.height - tip.offsetHeight)}px`;
    }
    this.draw();
  }

  listen() {
    find("play").addEventListener("click", () => (this.playing ? this.pause() : this.play()));
    find("time").addEventListener("input", (event) => this.pause() || this.seek(Number(event.target.value)));
    find("run").addEventListener("change", (event) => this.pause() || this.open(Number(event.target.value)));
    find("trails").addEventListener("change", () => this.draw());
    find("reset").addEventListener("click", () => this.globe.reset() || this.turned());
    this.stage.addEventListener("pointerdown", (event) => this.stage.setPointerCapture(event.pointerId));
    this.stage.addEventListener("pointermove", (event) => {
      if (!event.buttons) return this.hover(event);
      this.globe.turn(event.movementX / 180, event.movementY / 180);
      this.turned();
    });
    this.stage.addEventListener("pointerleave", () => {
      find("tip").hidden = true;
      this.picked = -1;
      this.draw();
    });
    this.stage.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.globe.zoom = Math.min(40, Math.max(0.5, this.globe.zoom * Math.exp(-event.deltaY / 600)));
      this.turned();
    }, { passive: false });
    document.addEventListener("keydown", (event) => {
      if (["INPUT", "SELECT", "BUTTON"].includes(event.target.tagName)) return;
      if (event.key === " ") (event.preventDefault(), this.playing ? this.pause() : this.play());
      if (event.key === "ArrowRight") this.pause() || this.seek(Math.floor(this.time) + 1);
      if (event.key === "ArrowLeft") this.pause() || this.seek(Math.ceil(this.time) - 1);
    });
    new ResizeObserver(() => this.layout() || this.seek(this.time)).observe(this.stage);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.turned());
  }

  turned() {
    this.globe.draw();
    this.draw();
  }
}

window.meanfield = new App();
