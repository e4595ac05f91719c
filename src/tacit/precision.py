"""How exactly a public model computes where no promise hangs on its rounding.

float32   32 bits
fast      16 bits (bfloat16) where the processor multiplies them by itself, which takes half the time and moves a
          number by some thousandths of it; else 32 bits
"""

from __future__ import annotations

from typing import Literal

Precision = Literal["float32", "fast"]
TrainingPrecision = Literal["float32", "fast", "bf16"]
"""Also of a private training, where `bf16` computes forward and backward passes with 16 bits; weights, norms, clipped
sums and noise stay at 32 (`tacit.training.sixteen`)."""


def in_sixteen_bits(precision: Precision, device: str = "cpu") -> bool:
    """Whether to compute with 16 bits on this kind of device: processors that only imitate it are slower than with
    32, and so are old graphics cards."""
    if precision != "fast":
        return False
    import torch

    if device == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device != "cpu":
        return False

    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(bool(getattr(torch.cpu, name, bool)()) for name in checks)
