"""The public interval that log-probabilities are clipped to, calibrated on public text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.documents.language_models.generators import CausalModel, Seq2SeqModel
from tacit.documents.language_models.masked import MaskedModel
from tacit.errors import BadParameterError, NoGuaranteeError
from tacit.guarantee import Provenance

CANDIDATES = 200
"""How many tokens a context leaves in question by the default interval; the rest counts as equally bad. On public text
this kept the drawn law closest to the model's own (SmolLM2, budgets of 3 to 15 a token)."""

PUBLIC_SENTENCES = (
    "The meeting was moved to Thursday because two of the speakers could not come.",
    "I would like to book a table for four people near the window.",
    "She has taught mathematics at the same school for almost twenty years.",
    "The battery of my new phone hardly lasts until the afternoon.",
    "Heavy rain is expected in the north of the country during the night.",
    "What a dull film, I fell asleep before the second half.",
    "He forgot his umbrella on the train and had to walk home in the rain.",
    "The city council voted against the plan to close the old library.",
    "Please send me the invoice for the month of March again.",
    "After the operation the patient felt well and could leave the hospital early.",
    "Our team won the last game by three goals and everybody was happy.",
    "Prices for fruit and vegetables have gone up again this summer.",
    "Can you tell me how to change the password of my account?",
    "The soup was excellent, but the service could have been a little faster.",
    "A group of students is collecting money for a trip to the mountains.",
    "The company will open two new offices and hire sixty people next year.",
    "My brother plays the drums in a small band on weekends.",
    "The road along the river is closed until the bridge has been repaired.",
    "I have had a headache since yesterday and cannot sleep.",
    "Scientists found traces of water under the surface of the moon.",
    "The parcel arrived two days late and one of the cups was broken.",
    "Turn on the lights in the kitchen and play some quiet music.",
    "The writer spent her childhood on a farm far away from any town.",
    "They say that the old house at the end of the street will be sold soon.",
)
"""Public text of our own, on which the interval of a model is calibrated when nobody gives another."""


@dataclass(frozen=True)
class LogitInterval:
    """The public interval to which log-probabilities are clipped, and where it came from."""

    low: float
    high: float
    source: str = "given by the user"
    public: bool = True
    paid_by: str | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and self.low < self.high <= 0.0):
            raise BadParameterError(
                "bad-interval",
                "an interval for log-probabilities has two finite ends, the lower one first and none above 0, for "
                "example -10:-1, not {low}:{high}",
                low=self.low,
                high=self.high,
            )
        if not self.public and not self.paid_by:
            raise NoGuaranteeError(
                "learned-from-private-text",
                "the interval for logits was learned from private text ({source}) and no private step paid for it: "
                "calibrate it on public text",
                source=self.source,
            )

    @classmethod
    def parse(cls, text: str) -> LogitInterval:
        """From "LOW:HIGH", as a command line gives it."""
        low, colon, high = text.partition(":")
        try:
            if colon:
                return cls(float(low), float(high))
        except BadParameterError:
            raise
        except ValueError:
            pass
        raise BadParameterError(
            "bad-interval",
            "an interval for log-probabilities is written LOW:HIGH, for example -10:-1, not '{text}'",
            text=text,
        )

    @property
    def width(self) -> float:
        return self.high - self.low

    def provenance(self) -> Provenance:
        return Provenance("clipping interval of the logits", self.source, public=self.public, paid_by=self.paid_by)

    def __str__(self) -> str:
        return f"{self.low:.4g}:{self.high:.4g}"


def calibrate_logits(
    model: CausalModel | Seq2SeqModel | MaskedModel,
    public_texts: Sequence[str] | None = None,
    *,
    source: str | None = None,
    public: bool = True,
    prompt: str | None = None,
    low_percentile: float | None = None,
    high_percentile: float = 50.0,
    steps: int = 8,
) -> LogitInterval:
    """The interval for a model, from what it says about public text.

    high   this percentile of the log-probability of the likeliest token of each context (the median)
    low    this percentile of the log-probabilities of all tokens in all contexts; by default the one above which 200
           tokens are left on average (99.6 for 50,000 tokens), or half of a small vocabulary

    Percentiles run from 0 to 100. Everything above `high` counts as equally good and everything below `low` as equally
    bad, so a narrow interval spends no budget on telling hopeless tokens apart.
    """
    if not public:
        raise NoGuaranteeError(
            "text-not-public",
            "the interval for logits must be calibrated on public text: text marked private would be released by it",
        )
    if low_percentile is None:
        low_percentile = max(50.0, 100.0 * (1.0 - CANDIDATES / len(model.support)))
    for name, value in (("low_percentile", low_percentile), ("high_percentile", high_percentile)):
        if not 0.0 <= value <= 100.0:
            raise BadParameterError(
                "impossible-percentile", "{name} lies between 0 and 100, not at {value:g}", name=name, value=value
            )
        if 0.0 < value < 1.0:
            raise BadParameterError(
                "percentile-is-a-share",
                "{name} {value:g} is below one percent: percentiles run from 0 to 100, so write {percent:g} if you "
                "mean the share {value:g}",
                name=name,
                value=value,
                percent=100 * value,
            )
    if public_texts is None:
        public_texts, source = PUBLIC_SENTENCES, source or f"{len(PUBLIC_SENTENCES)} sentences that come with Tacit"
    texts = list(public_texts)
    if not texts:
        raise BadParameterError("no-text", "there is no text to calibrate on: give at least one public text")
    rows = np.concatenate([table.astype(np.float32) for table in model.public_scores(texts, prompt, steps)])
    low = float(np.percentile(rows, low_percentile))
    high = float(np.percentile(rows.max(axis=1), high_percentile))
    if not low < high:
        raise BadParameterError(
            "empty-interval",
            "the percentiles give an empty interval ({low:.4g} to {high:.4g}): lower low_percentile, or calibrate "
            "on more public text",
            low=low,
            high=high,
        )
    return LogitInterval(low, high, source or f"{len(texts)} public texts given by the user")
