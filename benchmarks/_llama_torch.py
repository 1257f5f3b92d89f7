"""The usual way, for comparison: a LLaMA in PyTorch eager mode that keeps all attention matrices, as Hugging Face's does."""

import numpy as np
import torch


class EagerLlama:
    """Forward with `output_attentions` and hidden states, influence by autograd; weights as NumPy arrays of one layer each."""

    def __init__(self, spec, embedding: np.ndarray, gain: np.ndarray, layers: list[dict[str, np.ndarray]]):
        self.spec = spec
        self.embedding, self.gain = torch.from_numpy(embedding.copy()), torch.from_numpy(gain.copy())
        self.layers = [{name: torch.from_numpy(array.copy()) for name, array in layer.items()} for layer in layers]

    def influence(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[torch.Tensor]]:
        """(λ by layer, influence by sequence and position, attentions)."""
        e = self.embedding[torch.tensor(ids).long()].requires_grad_(True)
        x, attentions, mixing = e, [], []
        cos, sin, mask = self._tables(ids.shape[1])
        for layer in self.layers:
            a, probs = self._attention(layer, self._norm(x, layer["norm1/scale"]), cos, sin, mask)
            attentions.append(probs)
            with torch.no_grad():
                nx, na = x.norm(dim=-1), a.norm(dim=-1)
                mixing.append((na / (nx + na)).mean())
            x = x + a
            h = self._norm(x, layer["norm2/scale"])
            gate, up = h @ layer["mlp/gate/weight"].T, h @ layer["mlp/up/weight"].T
            x = x + (torch.nn.functional.silu(gate) * up) @ layer["mlp/down/weight"].T
        probabilities = (self._norm(x[:, -1], self.gain) @ self.embedding.T).softmax(dim=-1)
        gradient = torch.autograd.grad(probabilities.max(dim=-1).values.sum(), e)[0]
        return torch.stack(mixing).numpy(), gradient.norm(dim=-1).numpy(), attentions

    def _attention(self, layer, h, cos, sin, mask):
        spec, (batch, n, _) = self.spec, h.shape

        def heads(name: str, count: int) -> torch.Tensor:
            return (h @ layer[f"attention/{name}/weight"].T).view(batch, n, count, spec.head_dim).transpose(1, 2)

        q, k, v = heads("query", spec.heads), heads("key", spec.kv_heads), heads("value", spec.kv_heads)
        q, k = self._rotate(q, cos, sin), self._rotate(k, cos, sin)
        k, v = k.repeat_interleave(spec.group, dim=1), v.repeat_interleave(spec.group, dim=1)
        probs = (q @ k.transpose(2, 3) * spec.scale + mask).softmax(dim=-1)
        mixed = (probs @ v).transpose(1, 2).reshape(batch, n, -1)
        return mixed @ layer["attention/out/weight"].T, probs

    def _norm(self, x, gain):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.spec.eps) * gain

    @staticmethod
    def _rotate(x, cos, sin):
        first, second = x.chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)

    def _tables(self, n: int):
        angles = np.arange(n)[:, None] * self.spec.rotary.frequencies()
        cos, sin = (torch.from_numpy(f(angles).astype(np.float32)) for f in (np.cos, np.sin))
        return cos, sin, torch.full((n, n), float("-inf")).triu(1)
