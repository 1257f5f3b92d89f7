"use strict";

const VERTEX = `#version 300 es
in vec3 before; in vec3 after; in vec3 colour; in float weight;
uniform mat3 view; uniform float mix_, scale, size; uniform bool unit; uniform int picked;
out vec3 shade; out float depth; out float ring;
void main() {
  vec3 p = mix(before, after, mix_);
  if (unit && dot(p, p) > 1e-6) p = normalize(p);
  vec3 q = view * p;
  bool chosen = gl_VertexID == picked;
  gl_Position = vec4(q.xy * scale, clamp(-q.z * 0.5, -1.0, 1.0) - (chosen ? 0.4 : 0.0), 1.0);
  gl_PointSize = size * weight * (chosen ? 1.7 : 1.0) * (1.0 + 0.2 * q.z);
  shade = colour; depth = q.z; ring = chosen ? 1.0 : 0.0;
}`;

const FRAGMENT = `#version 300 es
precision highp float;
in vec3 shade; in float depth; in float ring;
uniform float opacity; uniform vec3 paper, ink;
out vec4 result;
void main() {
  float r = 2.0 * length(gl_PointCoord - 0.5);
  float edge = fwidth(r);
  float cover = 1.0 - smoothstep(1.0 - edge, 1.0, r);
  if (cover <= 0.0) discard;
  vec3 c = mix(shade, ink, (ring > 0.5 ? 1.0 : 0.35) * smoothstep(0.72, 0.9, r) * (opacity > 0.99 ? 1.0 : 0.0));
  c = mix(c, paper, 0.62 * smoothstep(0.02, -0.12, depth));
  result = vec4(c, 1.0) * (cover * opacity); // premultiplied
}`;

/** Tokens by WebGL2: all frames lie in one buffer, positions between two frames are mixed on the GPU. */
class GLPoints {
  constructor(canvas) {
    const gl = (this.gl = canvas.getContext("webgl2", { antialias: false }));
    if (!gl) throw new Error("no WebGL2");
    this.canvas = canvas;
    const program = (this.program = gl.createProgram());
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program) || "shaders do not link");
    gl.useProgram(program);
    this.at = (name) => gl.getAttribLocation(program, name);
    this.uniform = (name) => gl.getUniformLocation(program, name);
    this.buffers = [gl.createBuffer(), gl.createBuffer(), gl.createBuffer()];
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.depthFunc(gl.LEQUAL);
  }

  load(run) {
    const { gl } = this;
    this.run = run;
    [run.x, run.colours, run.sizes].forEach((array, k) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[k]);
      gl.bufferData(gl.ARRAY_BUFFER, array, gl.STATIC_DRAW);
      const name = [null, "colour", "weight"][k];
      if (!name) return;
      gl.enableVertexAttribArray(this.at(name));
      gl.vertexAttribPointer(this.at(name), [0, 3, 1][k], k === 1 ? gl.UNSIGNED_BYTE : gl.FLOAT, k === 1, 0, 0);
    });
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffers[0]);
    gl.enableVertexAttribArray(this.at("before"));
    gl.enableVertexAttribArray(this.at("after"));
  }

  draw(time, look) {
    const { gl, run } = this;
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.uniformMatrix3fv(this.uniform("view"), true, look.matrix.flat());
    gl.uniform1f(this.uniform("scale"), look.scale);
    gl.uniform1i(this.uniform("unit"), run.unit ? 1 : 0);
    gl.uniform3fv(this.uniform("paper"), look.paper);
    gl.uniform3fv(this.uniform("ink"), look.ink);
    gl.disable(gl.DEPTH_TEST);
    for (let k = look.trail; k > 0; k--) {
      const past = time - 0.3 * k;
      if (past >= 0) this.pass(past, look.size * 0.45, 0.5 * (1 - k / (look.trail + 1)), -1);
    }
    gl.enable(gl.DEPTH_TEST);
    this.pass(time, look.size, 1, look.picked);
  }

  pass(time, size, opacity, picked) {
    const { gl, run } = this;
    const frame = Math.min(Math.floor(time), run.frames - 1);
    const next = Math.min(frame + 1, run.frames - 1);
    const bytes = 2 * run.axes * run.n;
    gl.vertexAttribPointer(this.at("before"), run.axes, gl.SHORT, true, 0, frame * bytes);
    gl.vertexAttribPointer(this.at("after"), run.axes, gl.SHORT, true, 0, next * bytes);
    gl.uniform1f(this.uniform("mix_"), time - frame);
    gl.uniform1f(this.uniform("size"), size);
    gl.uniform1f(this.uniform("opacity"), opacity);
    gl.uniform1i(this.uniform("picked"), picked);
    gl.drawArrays(gl.POINTS, 0, run.n);
  }
}

/** The same by a plain canvas, where there is no WebGL2; without trails. */
class CanvasPoints {
  constructor(canvas) {
    Object.assign(this, { canvas, context: canvas.getContext("2d") });
  }

  load(run) {
    this.run = run;
    this.fills = Array.from({ length: run.n }, (_, i) => `rgb(${run.colours.subarray(3 * i, 3 * i + 3).join(" ")})`);
  }

  draw(time, look) {
    const { context, canvas, run } = this;
    const half = canvas.width / 2;
    context.clearRect(0, 0, canvas.width, canvas.height);
    const places = run.places(time, look.matrix);
    for (const front of [false, true]) {
      context.globalAlpha = front ? 1 : 0.35;
      for (let i = 0; i < run.n; i++) {
        if (places[3 * i + 2] >= -1e-6 !== front) continue;
        const r = (look.size * run.sizes[i] * (i === look.picked ? 1.7 : 1)) / 2;
        context.fillStyle = this.fills[i];
        context.beginPath();
        context.arc(half * (1 + look.scale * places[3 * i]), half * (1 - look.scale * places[3 * i + 1]), r, 0, 7);
        context.fill();
      }
    }
  }
}
