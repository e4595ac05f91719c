"""Per-example gradients: their norms, and clipped sums.

taps     one backward pass, exact norms from algebra, tied weights included: the default
vmap     torch.func, for models with operations that taps does not know
loop     one example at a time: always right, slow
opacus   the hooks of Opacus, for comparison

`check` compares an engine with the loop; `choose` takes the first that passes. A model for which none passes is
refused, and so is one whose gradients depend on how far a record is filled up (`padding`).
"""

from tacit.training.gradients.check import Checked, Engine, buffers_of, check, choose, restore_buffers
from tacit.training.gradients.examples import Batch, Loss, PerExample, UnsupportedModelError
from tacit.training.gradients.named_units import UNITS
from tacit.training.gradients.padding import Filled, PaddingError

__all__ = [
    "UNITS", "Batch", "Checked", "Engine", "Filled", "Loss", "PaddingError", "PerExample", "UnsupportedModelError",
    "buffers_of", "check", "choose", "restore_buffers",
]  # fmt: skip
