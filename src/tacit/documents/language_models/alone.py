"""Whether a row of a batch has numbers of its own on a device: tried on public texts before anything private is read.

The rows of a batch do not mix in a transformer, and in a constant shape a processor adds up in a constant order. Other
devices choose their way of computing by more than the shape, so there it is tried.
"""

from __future__ import annotations

from itertools import cycle, islice

import numpy as np

from tacit.arrays import Floats
from tacit.documents.language_models.generators import CausalModel, Seq2SeqModel
from tacit.documents.language_models.interval import PUBLIC_SENTENCES
from tacit.documents.language_models.models import Frame
from tacit.errors import NoGuaranteeError

STEPS = 3


def check_rows_apart(model: CausalModel | Seq2SeqModel, frame: Frame, rows: int, input_tokens: int) -> None:
    """Refuse a model whose numbers for a text hang on what the other rows of the same shape hold.

    One public text stands in the first and in the last row, among other texts, among empty ones and among copies of a
    long one that need no padding; tokens follow, others in the other rows. Its log-probabilities must be the same bit
    by bit, in both rows each for itself.
    """
    probe, *others = PUBLIC_SENTENCES
    long = " ".join([probe, *others] * (1 + input_tokens // 100))
    places = sorted({0, rows - 1})
    seen: list[Floats] = []
    for turn, filling in enumerate((list(islice(cycle(others), rows)), [""] * rows, [long] * rows)):
        for place in places:
            filling[place] = probe
        running, scores = model.begin(filling, frame, input_tokens)
        kept = [scores[places]]
        first = int(model.support[int(np.argmax(seen[0][0][0] if seen else scores[places[0]]))])
        for step in range(STEPS):
            tokens = np.full(rows, int(model.support[(turn * STEPS + step) % len(model.support)]), dtype=np.int64)
            tokens[places] = first
            kept.append(model.extend(running, tokens)[places])
        seen.append(np.stack(kept))
    if not all(np.array_equal(other, seen[0]) for other in seen):
        raise NoGuaranteeError(
            "rows-differ",
            "this model gives one text other numbers beside other texts (they differ by {difference:g}), so records "
            "are not computed apart from each other here: use another model or machine",
            difference=max(float(np.abs(other - seen[0]).max()) for other in seen),
        )
