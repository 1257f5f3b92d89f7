"use strict";

/**
 * Last row of R(T) … R(1), R(t) = (1 − λ_t) I + λ_t Σ_h w_h A(t, h), A the causal softmax of diagonal_th δ_ij − slope_h (i − j).
 * One head's pᵀA is u_j e^diagonal + s_j with u_i = p_i / Z_i and s_j = e^{−slope}(s_{j+1} + u_{j+1}): O(T H n) in all.
 */
function lastRow({ mixing, slopes, diagonal, weights }, length) {
  let p = new Float64Array(length);
  p[length - 1] = 1;
  const sums = slopes.map((slope) => { // Σ_{k=1}^{i} e^{−slope k}
    const sum = new Float64Array(length);
    for (let i = 1; i < length; i++) sum[i] = Math.exp(-slope) * (1 + sum[i - 1]);
    return sum;
  });
  for (let t = mixing.length - 1; t >= 0; t--) {
    const row = diagonal[diagonal.length === 1 ? 0 : t];
    const next = p.map((value) => (1 - mixing[t]) * value);
    for (let h = 0; h < slopes.length; h++) {
      if (weights[h] === 0) continue;
      const d = row[row.length === 1 ? 0 : h];
      const [own, other] = [Math.exp(Math.min(d, 0)), Math.exp(-Math.max(d, 0))]; // both logits less the larger one
      const [decay, share] = [Math.exp(-slopes[h]), mixing[t] * weights[h]];
      let s = 0;
      for (let j = length - 1; j >= 0; j--) {
        const u = p[j] / (own + other * sums[h][j]);
        next[j] += share * (own * u + other * s);
        s = decay * (s + u);
      }
    }
    p = next;
  }
  return p;
}

/** min(1, c λ_t) with the c for which they sum to `total` (at most T). */
function scaledMixing(mixing, total) {
  const sum = (c) => mixing.reduce((s, v) => s + Math.min(1, c * v), 0);
  let [low, high] = [0, 1];
  while (sum(high) < total && high < 1e12) high *= 2;
  for (let k = 0; k < 80; k++) {
    const middle = (low + high) / 2;
    if (sum(middle) < total) low = middle;
    else high = middle;
  }
  return mixing.map((v) => Math.min(1, high * v));
}

/** Head weights with the share `flat` on the half of the heads with the smaller slopes, relative weights inside kept. */
function mixedWeights(slopes, weights, flat) {
  if (slopes.length < 2) return [1];
  const order = slopes.map((_, h) => h).sort((a, b) => slopes[a] - slopes[b]);
  const half = new Set(order.slice(0, Math.floor(slopes.length / 2)));
  const sums = [0, 0];
  weights.forEach((w, h) => (sums[half.has(h) ? 0 : 1] += w));
  return weights.map((w, h) => (half.has(h) ? (flat * w) / (sums[0] || 1) : ((1 - flat) * w) / (sums[1] || 1)));
}

function flatShare(slopes, weights) {
  const order = slopes.map((_, h) => h).sort((a, b) => slopes[a] - slopes[b]);
  return order.slice(0, Math.floor(slopes.length / 2)).reduce((sum, h) => sum + weights[h], 0);
}
