"""The peer: a decoder of the same dimensions in PyTorch, as a good engineer would train it today.

torch.compile, scaled-dot-product (flash) attention, fused AdamW, bfloat16 autocast over float32 parameters. It
has no position bias and no normalised queries and keys, which is in its favour.
"""

import torch
import torch.nn.functional as F
from torch import nn

from lexinvariant.config import ModelConfig


class Block(nn.Module):
    """Pre-norm attention and ReLU MLP."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.n_heads = config.n_heads
        self.attention_norm = nn.RMSNorm(config.width)
        self.qkv = nn.Linear(config.width, 3 * config.width, bias=False)
        self.out = nn.Linear(config.width, config.width, bias=False)
        self.mlp_norm = nn.RMSNorm(config.width)
        self.up = nn.Linear(config.width, config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, time, width = x.shape
        qkv = self.qkv(self.attention_norm(x)).view(batch, time, 3, self.n_heads, -1)
        q, k, v = (part.transpose(1, 2) for part in qkv.unbind(2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, time, width))
        return x + self.down(F.relu(self.up(self.mlp_norm(x))))


class Decoder(nn.Module):
    """A standard language model with a tied table."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.table = nn.Embedding(config.vocab_size, config.width)
        self.blocks = nn.Sequential(*(Block(config) for _ in range(config.n_layers)))
        self.norm = nn.RMSNorm(config.width)
        self.scale = config.width**-0.5

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        h = self.norm(self.blocks(self.table(tokens)))
        logits = F.linear(h[:, :-1], self.table.weight) * self.scale
        return F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())


class PeerStep:
    """One training step of it, to be timed."""

    def __init__(self, config: ModelConfig, batch_size: int) -> None:
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.manual_seed(0)
        model = Decoder(config).to(self._device)
        self._optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        self._tokens = torch.randint(config.vocab_size, (batch_size, config.context), device=self._device)
        self._model = torch.compile(model)

    def run(self) -> None:
        with torch.autocast(self._device, torch.bfloat16):
            loss = self._model(self._tokens)
        loss.backward()
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)

    def wait(self) -> None:
        if self._device == "cuda":
            torch.cuda.synchronize()

    def peak_bytes(self) -> int | None:
        """Of the steps so far, which are all that this process asks PyTorch for."""
        return torch.cuda.max_memory_allocated() if self._device == "cuda" else None
