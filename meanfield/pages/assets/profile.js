"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);
const mean = (values) => values.reduce((sum, v) => sum + v, 0) / values.length;

/** Σ |CDF difference| / (n − 1), as propagation.wasserstein. */
function wasserstein(p, q) {
  const total = q.reduce((sum, v) => sum + v, 0);
  let [gap, sum] = [0, 0];
  for (let j = 0; j < p.length; j++) sum += Math.abs((gap += p[j] - q[j] / total));
  return sum / (p.length - 1);
}

class ProfilePage {
  constructor() {
    this.chart = new Chart(find("chart"), { xname: "position j (0 first)", yname: "influence p on the last position", height: 380 });
    this.shapes = new Chart(find("shapes"), { xname: "layer t", yname: "mixing λ", height: 150 });
    Object.keys(data.architectures).forEach((name) => find("name").add(new Option(name, name)));
    find("name").value = data.selected;
    find("name").addEventListener("change", () => this.reset());
    find("restore").addEventListener("click", () => this.reset());
    for (const id of ["length", "total", "flat", "factor", "content", "log"]) find(id).addEventListener("input", () => this.later());
    new ResizeObserver(() => this.later()).observe(find("chart"));
    this.reset();
  }

  reset() {
    const arch = (this.arch = data.architectures[find("name").value]);
    const total = arch.mixing.reduce((sum, v) => sum + v, 0);
    Object.assign(find("total"), { step: "any", min: 0, max: Math.max(2 * total, Math.min(arch.mixing.length, 8)), value: total });
    find("length").value = Math.log2(data.length);
    find("flat").value = flatShare(arch.slopes, arch.weights);
    find("factor").value = find("content").value = 0;
    this.compute();
  }

  later() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = null;
      this.compute();
    });
  }

  compute() {
    const value = Object.fromEntries(["length", "total", "flat", "factor", "content"].map((id) => [id, Number(find(id).value)]));
    const n = Math.max(2, Math.round(2 ** value.length));
    const factor = 2 ** value.factor;
    const mixing = scaledMixing(this.arch.mixing, value.total);
    const weights = mixedWeights(this.arch.slopes, this.arch.weights, value.flat);
    const diagonal = this.arch.diagonal.map((row) => row.map((d) => d + value.content));
    this.profile = lastRow({ mixing, weights, diagonal, slopes: this.arch.slopes.map((m) => m * factor) }, n);
    const sum = mixing.reduce((s, v) => s + v, 0);
    const texts = { length: n, total: shown(sum), flat: shown(value.flat, 3), factor: `× ${shown(factor, 3)}`, content: shown(value.content, 3) };
    for (const [id, text] of Object.entries(texts)) find(`${id}-value`).textContent = text;
    this.draw(n, mixing);
  }

  draw(n, mixing) {
    const p = this.profile;
    const log = find("log").checked;
    const measured = n === 256 ? data.measured[find("name").value] : undefined;
    const series = [{ y: p, colour: "var(--blue)" }];
    if (measured) series.unshift({ y: measured, colour: "var(--orange)", dash: "4 3" });
    const positions = Array.from(p, (_, j) => j);
    const top = Math.max(...p, ...(measured || []));
    const xticks = ticks(0, n - 1, 6).map((v) => [v, shown(v)]);
    this.chart.set({ u: positions, series, xticks, log, range: log ? null : [0, 1.05 * top] });
    const layers = mixing.map((_, t) => t + 1);
    this.shapes.set({ u: layers, series: [{ y: mixing, colour: "var(--blue)" }], xticks: ticks(1, layers.length, 6).map((v) => [v, shown(v)]), range: [0, Math.max(...mixing, 0.01) * 1.05] });
    find("measured").hidden = !measured;
    this.table(p, measured);
  }

  table(p, measured) {
    const n = p.length;
    const middle = mean(Array.from(p).slice(Math.floor(n / 3), Math.max(Math.floor(n / 3) + 1, n - Math.floor(n / 3))));
    const ends = (level) => (p[0] > level && p[n - 1] > level ? "yes" : "no");
    const rows = [
      ["first token", shown(p[0])],
      ["last token", shown(p[n - 1])],
      ["mean position (0 first … 1 last)", shown(p.reduce((s, v, j) => s + v * j, 0) / (n - 1))],
      ["U-shaped: ends above the middle third", ends(middle)],
      ["U-shaped: ends above 1/n", ends(1 / n)],
    ];
    if (measured) rows.push(["Wasserstein distance to the measured influence", shown(wasserstein(p, measured))]);
    const body = find("table");
    body.replaceChildren();
    for (const row of rows) {
      const line = body.insertRow();
      for (const text of row) line.insertCell().textContent = text;
    }
  }
}

window.meanfield = new ProfilePage();
