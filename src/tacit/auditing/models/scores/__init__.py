"""Per-example losses: what every attack on a model looks at.

    causal                 -sum_t ln p(x_t | x_<t); the first token counts only if the tokenizer puts one before it
    masked                 -sum_t ln p(x_t | the others), with every 7th token hidden at a time (the 15 % of BERT's
                           training; hiding one at a time is the pseudo-likelihood of Salazar et al., ACL 2020)
    sequence-to-sequence   -sum_t ln p(y_t | y_<t, x); y is the target, or the text itself
    classifier             -ln p(label | x), or without labels -ln of the largest probability; models of 'tacit train'
                           read texts as they did in training, and those that guess numbers have squared errors
    autoencoder            -sum_t ln p(x_t | x_<t, latent of x), without noise: models of 'tacit pretrain'
    any callable           texts in, one loss each out

Texts are put into batches of one length, so nothing is ever padded: a text has the same loss alone and in any company,
up to rounding. Texts longer than the model reads are cut; how many is reported.
"""

from __future__ import annotations

from tacit.auditing.models.scores.loading import ScoredModel, load_scorer
from tacit.auditing.models.scores.losses import CallableScorer, Scorer, TextLosses
from tacit.auditing.models.scores.networks import (
    BATCH_TOKENS,
    CELLS,
    HIDDEN_STEP,
    LONGEST,
    AutoencoderScorer,
    CausalScorer,
    ClassifierScorer,
    MaskedScorer,
    Seq2SeqScorer,
)

__all__ = [
    "BATCH_TOKENS",
    "CELLS",
    "HIDDEN_STEP",
    "LONGEST",
    "AutoencoderScorer",
    "CallableScorer",
    "CausalScorer",
    "ClassifierScorer",
    "MaskedScorer",
    "ScoredModel",
    "Scorer",
    "Seq2SeqScorer",
    "TextLosses",
    "load_scorer",
]
