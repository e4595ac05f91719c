"""Public language models, and the logits they give: causal, sequence-to-sequence and masked.

A model is named by its name on the model hub, by a folder, or as "smollm2" (installed with pip). Each wrapper has a
small face: texts in, one row of log-probabilities per text out. All rows of a batch have the same public shape whatever
the texts are, so that a text cannot show in the shape, in the time, or in the numbers of the text beside it (the
mechanisms also fill up the batch to a constant number of rows, because processors add up in another order for few):

    public prompt before | padding | text, cut to a fixed number of tokens | public prompt after | released tokens

The padding is masked and takes no position, so the law of a text does not depend on it. The tokens before the padding
are the same for all texts and are computed once.

Logits are only defined up to a constant that differs from context to context. Here they are always shifted so that the
probabilities add up to one over the *support*: the tokens that may come out, a fixed public set (the whole vocabulary
without special tokens, but with the end token). An interval [low, high] then means the same in every context. What is
calibrated here, the interval, is calibrated on public text and remembers where it came from.
"""

from tacit.documents.language_models.generators import PLACE, CausalModel, Seq2SeqModel
from tacit.documents.language_models.guide import Guide
from tacit.documents.language_models.interval import CANDIDATES, PUBLIC_SENTENCES, LogitInterval, calibrate_logits
from tacit.documents.language_models.loading import (
    SMOLLM2,
    SMOLLM2_INSTALL,
    Generator,
    load_causal,
    load_generator,
    load_language_model,
    load_masked,
)
from tacit.documents.language_models.masked import MaskedModel
from tacit.documents.language_models.models import Continuation, Frame, LanguageModel

__all__ = [
    "CANDIDATES",
    "PLACE",
    "PUBLIC_SENTENCES",
    "SMOLLM2",
    "SMOLLM2_INSTALL",
    "CausalModel",
    "Continuation",
    "Floats",
    "Frame",
    "Generator",
    "Guide",
    "Ids",
    "LanguageModel",
    "LogitInterval",
    "MaskedModel",
    "Seq2SeqModel",
    "calibrate_logits",
    "load_causal",
    "load_generator",
    "load_language_model",
    "load_masked",
]  # fmt: skip
