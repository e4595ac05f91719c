"""Per-example clipping in one backward pass: exact norms, shared and tied weights included, nothing stored per example.

Every use of a trainable parameter W of shape (R, C) in a transformer adds outer products to an example's gradient:

    linear         W x_t        gradient of W:  sum over t of  g_t x_t^T
    embedding      W[id_t]      gradient of W:  sum over t of  e(id_t) g_t^T,   e one-hot

with x the input, g the gradient of the loss at the output, t the position. So the gradient of example b is
sum over t of r_t c_t^T, and its squared norm needs no gradient at all (Goodfellow 2015; Li et al. 2022, ghost norms):

    |sum_t r_t c_t^T|^2 = sum over t, t' of (r_t . r_t') (c_t . c_t')

If W is used several times (an embedding that is also the output layer, a recurrent weight), t runs over the positions
of all uses, and the cross terms are part of the sum. For an embedding against a linear use, r_t . r_t' is the gradient
of the logits of position t' at the token of position t: a gather, not a product.

Once the norms are known, the clipped sum over all examples is one matrix product per parameter, as in ordinary training
(book-keeping, Bu et al. 2023), with each example's side scaled by its factor. There is no second backward pass.

How uses are found: while the loss is computed, calls of torch functions are intercepted *by parameter*. A use with
known algebra runs with the parameter detached, and its output carries a tap that receives g. Every other way from a
trainable parameter to the loss leaves an ordinary gradient on the parameter after the backward pass, and then the
engine refuses, naming the operation. So a parameter cannot be missed: its gradient either went through taps or stops
the run.

Which axis is the batch is decided once for each use (`learn`), from batches of two sizes, and never guessed from the
shape of a training batch: a batch as large as a sequence is long cannot be mistaken.
"""

from __future__ import annotations

from tacit.training.gradients.taps.engine import Taps

__all__ = ["Taps"]
