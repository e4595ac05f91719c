"""DP-MLM (Meisenbacher et al., Findings of ACL 2024): every token is replaced by one that a masked language model finds
likely in its place.

    Pr[z_i = y]  proportional to  exp( a * clip(s_y, low, high) / width ),       width = high - low

where s_y is the log-probability of y at position i, hidden in  z_1 ... z_{i-1} [MASK] x_{i+1} ... x_m:  the tokens
already released, then the rest of the document. With context "pair" (as in the paper) the whole document x stands
beside it. The draw, and the choice of a from epsilon_token, are those of `paraphrase`.

Guarantee: pure, with `tokens` = n and epsilon_token = epsilon / n,

    length "hidden"     epsilon for any two documents. Every document takes n draws. Behind its last token an
                        extra outcome, "nothing", gets the score `high` and all tokens get `low`; before, "nothing" gets
                        `low`.
    length "visible"    epsilon for any two documents with the same number of tokens (at most n: longer ones are cut). A
                        document of m tokens takes m draws and loses at most m * epsilon_token. The number is visible.

Proof. Whatever the document is, each clipped score lies in [low, high], so each draw loses at most epsilon_token (see
`paraphrase`); the draws of one document are composed sequentially and adaptively.

What does not hold, though papers print it: a guarantee of epsilon_token for one token. A change of one token of the
document changes the context, and so the scores, at *every* position; the only proven bound for it is the one of the
whole document. Nor is anything left out of the draw here: stop words, punctuation, capitals and unknown words are
replaced like all others, and the output is any token of the vocabulary but the special ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.documents.language_models import (
    LogitInterval,
    MaskedModel,
    calibrate_logits,
    load_masked,
)
from tacit.documents.paraphrase_loss import spread_for, step_slack, token_loss, uniform_weights
from tacit.documents.token_draws import TokenDraws
from tacit.guarantee import Adjacency, Guarantee, Notion
from tacit.noise.choice import (
    draw_rows,
    probabilities,
)
from tacit.noise.source import Source
from tacit.parameters import EpsilonRange, parameter
from tacit.rounding import rounded_up


@dataclass(kw_only=True, eq=False)
class DPMLM(TokenDraws):
    """Every token is replaced by one that a masked language model finds likely in its place.

    Word order stays. A token needs a budget (epsilon / tokens) above the logarithm of the vocabulary, 10 or so, to be
    better than random.

    model      the folder of a masked language model (BERT, RoBERTa ...) or its name on the model hub
    tokens     how many model tokens of a document are rewritten and paid for; the rest is cut off
    length     "hidden": any two documents are neighbors; "visible": only those with the same number of tokens
    context    "pair": the model sees the document beside the text it fills; "single": it sees only that text
    interval   to which log-probabilities are clipped, LOW:HIGH; default: calibrated on public sentences that come with
               Tacit
    """

    model: str | MaskedModel = "FacebookAI/roberta-base"
    tokens: int = parameter(32, service_most=512)
    length: str = parameter("hidden", choices=("hidden", "visible"))
    context: str = parameter("pair", choices=("pair", "single"))
    interval: str | LogitInterval | None = None

    name: ClassVar[str] = "dp-mlm"
    title: ClassVar[str] = "DP-MLM"
    paper: ClassVar[str] = "Meisenbacher et al. 2024"
    model_needed: ClassVar[str] = "masked language model (give one)"
    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(480.0, 32.0, 960.0)
    """1 to 30 for each token: below 5, such a text says nothing of its document."""

    # Public data --------------------------------------------------------------------------------------------

    @cached_property
    def language_model(self) -> MaskedModel:
        with self.on_device():
            model = load_masked(self.model)
        model.provenance()
        model.check_lengths(self.tokens, pair=self.context == "pair")
        return model

    @property
    def reader(self) -> tuple[Any, int] | None:
        return self.language_model.tokenizer, self.tokens

    def usual_interval(self) -> LogitInterval:
        return calibrate_logits(self.language_model)

    def load_public(self) -> None:
        assert self.clipping is not None

    @property
    def outcomes(self) -> int:
        return len(self.language_model.support) + (1 if self.length == "hidden" else 0)

    # The private step ---------------------------------------------------------------------------------------

    def weights(self, documents: Sequence[list[int]], released: Sequence[list[int]], position: int) -> Integers:
        """The law at one position of each document, as integers; "nothing" is the last outcome."""
        # A document that has ended is filled as well, and the numbers are thrown away: same shapes, same time.
        working = [[*done[:position], *(ids[position:] or [self.language_model.pad])]
                   for ids, done in zip(documents, released, strict=True)]  # fmt: skip
        beside = documents if self.context == "pair" else None
        scores = self.language_model.fill(working, position, self.tokens, beside)
        ended = np.array([position >= len(ids) for ids in documents]) if self.length == "hidden" else None
        return uniform_weights(scores, self.clipping, self.epsilon_token, ended)

    def law(self, text: str, released: Sequence[int] = ()) -> Floats:
        """Exact probabilities of what comes after these released tokens: the support, then (hidden length) "nothing".

        "Nothing" among the released tokens is written as -1.
        """
        self.prepare()
        document = self.language_model.tokens(text, self.tokens)
        law: Floats = probabilities(self.weights([document], [self._shown(released)], len(released)))[0]
        return law

    def _shown(self, released: Sequence[int]) -> list[int]:
        """Released tokens as the model reads them: "nothing" keeps its place as padding."""
        return [self.language_model.pad if token < 0 else int(token) for token in released]

    def rewrite_batch(self, texts: Sequence[str], source: Source) -> list[str]:
        model = self.language_model
        names = np.append(model.support, -1)
        documents = [model.tokens(text, self.tokens) for text in texts]
        released: list[list[int]] = [[] for _ in texts]
        longest = self.tokens if self.length == "hidden" else max(map(len, documents), default=0)
        once = np.ones(len(texts), dtype=np.int64)
        for position in range(longest):
            weights = self.weights(documents, [self._shown(ids) for ids in released], position)
            drawn = draw_rows(weights, once, source)
            for ids, token in zip(released, names[drawn].tolist(), strict=True):
                ids.append(token)
        if self.length == "visible":
            released = [ids[: len(document)] for ids, document in zip(released, documents, strict=True)]
        return [model.text([token for token in ids if token >= 0]).strip() for ids in released]

    # The guarantee ------------------------------------------------------------------------------------------

    def promise(self) -> Guarantee:
        self.prepare()
        model, hidden = self.language_model, self.length == "hidden"
        return self._promise(
            Notion.PURE,
            self.tokens * token_loss(self.epsilon_token, self.outcomes),
            slack=self.tokens * step_slack(self.outcomes),
            adjacency=Adjacency.ANY_TWO if hidden else Adjacency.EQUAL_LENGTH,
            parameters=self._card_parameters(),
            not_covered=(
                *(() if hidden else (f"how many tokens a text has, up to {self.tokens:,}",)),
                "people whose text was used to train the language model",
            ),
            assumptions=(
                "the language model and its tokenizer were fixed without looking at the text",
                f"only the first {self.tokens:,} tokens of a text are read, as the model's tokenizer counts them",
                "one token changes the context of all others, so it has no better guarantee than the whole text",
                "each text is computed alone, in a constant shape",
            ),
            provenance=(model.provenance(), self.clipping.provenance()),
        )

    def _card_parameters(self) -> dict[str, object]:
        slope = spread_for(self.epsilon_token, self.clipping, self.outcomes) / self.clipping.width
        return {
            "model": self.language_model.name,
            "epsilon per token": f"{rounded_up(token_loss(self.epsilon_token, self.outcomes))}, {self.tokens:,} times",
            "tokens": self.tokens,
            "vocabulary": len(self.language_model.support),
            "length": self.length,
            "context": self.context,
            "interval": f"{self.clipping}, width {self.clipping.width:.4g}",
            "temperature": f"{1.0 / slope:.4g} (from epsilon)",
        }
