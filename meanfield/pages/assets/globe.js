"use strict";

/** The sphere under the tokens: orientation, zoom, outline, graticule and named axes, on a plain canvas. */
class Globe {
  constructor(canvas, axes, names, view) {
    Object.assign(this, { canvas, axes, names, view });
    this.reset();
  }

  reset() {
    this.zoom = 1;
    const [e, a] = this.view; // elevation and azimuth
    this.matrix =
      this.axes === 2
        ? [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
        : [
            [-Math.sin(a), Math.cos(a), 0],
            [-Math.sin(e) * Math.cos(a), -Math.sin(e) * Math.sin(a), Math.cos(e)],
            [Math.cos(e) * Math.cos(a), Math.cos(e) * Math.sin(a), Math.sin(e)],
          ];
  }

  get scale() {
    return 0.8 * this.zoom;
  }

  /** Turns by angles about the page's vertical and horizontal axes; a circle stays in its plane. */
  turn(right, up) {
    if (this.axes === 2) return;
    const [c, s, d, t] = [Math.cos(right), Math.sin(right), Math.cos(up), Math.sin(up)];
    const turn = [[c, 0, s], [t * s, d, -t * c], [-d * s, t, d * c]];
    const turned = turn.map((row) => [0, 1, 2].map((j) => row.reduce((sum, v, k) => sum + v * this.matrix[k][j], 0)));
    this.matrix = orthonormal(turned);
  }

  place(p) {
    return this.matrix.map((row) => row[0] * p[0] + row[1] * p[1] + row[2] * p[2]);
  }

  draw() {
    const context = this.canvas.getContext("2d");
    const half = this.canvas.width / 2;
    const radius = half * this.scale;
    const style = getComputedStyle(document.documentElement);
    const [line, quiet, panel, paper] = ["--line", "--quiet", "--panel", "--paper"].map((name) => style.getPropertyValue(name).trim());
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.lineWidth = half / 400;
    if (this.axes === 3) {
      const light = context.createRadialGradient(half - radius / 3, half - radius / 3, radius / 10, half, half, radius);
      light.addColorStop(0, paper);
      light.addColorStop(1, panel);
      context.fillStyle = light;
      context.beginPath();
      context.arc(half, half, radius, 0, 7);
      context.fill();
      for (const curve of GRATICULE) this.curve(context, curve, half, radius, line);
    }
    context.strokeStyle = quiet;
    context.beginPath();
    context.arc(half, half, radius, 0, 7);
    context.stroke();
    context.fillStyle = quiet;
    context.font = `${Math.round(half / 22)}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    this.names.forEach((name, k) => {
      const [x, y, z] = this.place([0, 1, 2].map((j) => +(j === k)));
      context.globalAlpha = z < -0.01 ? 0.4 : 1;
      context.beginPath();
      context.moveTo(half + radius * x, half - radius * y);
      context.lineTo(half + radius * 1.1 * x, half - radius * 1.1 * y);
      context.stroke();
      context.fillText(name, half + radius * 1.17 * x, half - radius * 1.17 * y);
    });
    context.globalAlpha = 1;
  }

  curve(context, points, half, radius, colour) {
    context.strokeStyle = colour;
    for (const front of [false, true]) {
      context.globalAlpha = front ? 0.9 : 0.35;
      context.beginPath();
      let pen = false;
      for (const p of points) {
        const [x, y, z] = this.place(p);
        if (z >= 0 === front) context[pen ? "lineTo" : "moveTo"](half + radius * x, half - radius * y);
        pen = z >= 0 === front;
      }
      context.stroke();
    }
    context.globalAlpha = 1;
  }
}

const GRATICULE = (() => {
  const turn = Array.from({ length: 91 }, (_, k) => (2 * Math.PI * k) / 90);
  const parallels = [-60, -30, 0, 30, 60].map((v) => (v * Math.PI) / 180).map((v) => turn.map((a) => [Math.cos(v) * Math.cos(a), Math.cos(v) * Math.sin(a), Math.sin(v)]));
  const meridians = [0, 30, 60, 90, 120, 150].map((v) => (v * Math.PI) / 180).map((v) => turn.map((a) => [Math.cos(v) * Math.cos(a), Math.sin(v) * Math.cos(a), Math.sin(a)]));
  return [...parallels, ...meridians];
})();

/** Gram–Schmidt on the rows, so that many small turns stay a rotation. */
function orthonormal(rows) {
  const made = [];
  for (const row of rows) {
    let v = [...row];
    for (const u of made) {
      const inner = v[0] * u[0] + v[1] * u[1] + v[2] * u[2];
      v = v.map((c, k) => c - inner * u[k]);
    }
    const norm = Math.hypot(...v);
    made.push(v.map((c) => c / norm));
  }
  return made;
}
