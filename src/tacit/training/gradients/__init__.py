"""Per-example gradients: their norms, and clipped sums.

taps     one backward pass, exact norms from algebra, tied weights included: the default
vmap     torch.func, for models with operations that taps does not know
loop     one example at a time: always right, slow
opacus   the hooks of Opacus, for comparison

`check` compares an engine with the loop; `choose` takes the first that passes. A model for which none passes is
refused.
"""

from tacit.training.gradients.check import Checked, Engine, buffers_of, check, choose, restore_buffers
from tacit.training.gradients.examples import Batch, Loss, PerExample, UnsupportedModelError

__all__ = [
    "Batch", "Checked", "Engine", "Loss", "PerExample", "UnsupportedModelError", "buffers_of", "check", "choose",
    "restore_buffers",
]  # fmt: skip
