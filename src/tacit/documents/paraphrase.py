"""Private paraphrasing (Mattern et al., Findings of NAACL 2022; DP-Prompt, Utpala et al., Findings of EMNLP 2023): a
public language model reads the document and writes another one, and each token it writes is a private draw.

Let p_y be the probability of token y that the model computes from the prompt, the document x and the tokens released
so far, q_y the one it computes with an *empty* document instead, and V the number of tokens that may come out. One
token is drawn from the whole vocabulary by the exponential mechanism,

    base = "uniform"   Pr[y]  proportional to  exp( a * clip(ln p_y, low, high) / width ),       width = high - low
    base = "model"     Pr[y]  proportional to  clip(p_y, q_y e^-d, q_y e^u)

"uniform" is the published mechanism, with temperature width / a. In "model", q is a public base measure (McSherry &
Talwar, FOCS 2007, define the mechanism with one): the text stays fluent at every epsilon and the document only tilts
it. It is a relative of the optimal private samplers with public data (Park et al., NeurIPS 2024; Ghoukasian et al.,
NeurIPS 2025).

Guarantee: pure epsilon for any two documents, also of different length, with epsilon = tokens * epsilon_token.

Proof, one token. Fix the tokens released so far; x and x' are any two documents. Textbook: the clipped score of each
token lies in the same interval for both, so its weight changes by at most e^a, the sum of the weights too, and the
loss is at most 2a, or 2(u + d) in the second form. Both bounds waste budget, because probabilities add up to one:

    "uniform". Divide all weights by e^(a low / width): a weight is f(p) = 1 up to p = e^low, and e^a from p = e^high
    on. Let S be the maximum over p of (f(p) - 1) / p. Then f(p) <= 1 + S p, so the sum of the weights is at most V + S
    for every document, and a token has probability at most e^a / (e^a + V - 1) and at least 1 / (V + S):

        loss(a) = a + ln(V + S) - ln(V - 1 + e^a),         S = (e^a - 1) e^-high  if a >= width        (`interval_loss`)

    which is a + |high| at most when a >= width: half of 2a, as high is near 0. Only e^-high tokens can be that likely.

    "model". A weight lies between q_y e^-d and q_y e^u. The sum of the weights is at least e^-d. Let s be the public
    probability of the tokens that are clipped from below: their weights add up to s e^-d, the others to at most 1 and
    at most (1 - s) e^u; the worst s is 1 - e^-u, so the sum is at most 1 + e^-d (1 - e^-u):

        loss(d, u) = 2d + u + ln(1 + e^-d - e^-(d + u))                                                  (`tilt_loss`)

    d says how far the document may push a token down, u how far it may lift one. d = max(0, epsilon_token / 4 - 1) is
    a fixed rule that did well on public text; u takes the rest of the budget.

The draw caps exponents at a public constant c (`tacit.noise.choice`), about 18 for 50,000 tokens. In "uniform", f
becomes at most e^min(c, ...), and S is taken of that. In "model", the cap adds at most V e^-c times the largest
weight to their sum, so ln(1 + V e^-c) is added to the loss; the textbook bounds hold as they are. Since all exponents
then lie within c, no token loses more than c + ln(1 + (V - 1) e^c) - ln(e^c + V - 1), about 29, whatever epsilon asks
for: the card counts no more than that.

Nothing else depends on the document: scores are normalized and clipped *as computed*, so the bound does not rest on
the accuracy of the model's arithmetic; no top-k or top-p filter (a token that one document excludes and another does
not has infinite loss); the number of steps charged is the public constant `tokens`; shapes are constant: a batch always
has `batch_size` rows, filled up with empty texts, because with few rows a processor adds up in another order, and how
many texts there are beside a document must not show in its law. On another device than the processor that is tried on
public texts first (`check_rows_apart`).

p and q are what the model says after public rules have spoken (`Guide`): an end among the first `shortest` tokens, or
the third token in a row that repeats the prompt, is made as good as impossible *in the scores*, with and without the
document alike. The rules see the prompt and released tokens only, and the proof holds for every p and q.

Proof, the document. The next token depends on the document and on what is already released: adaptive sequential
composition adds up the losses of the `tokens` steps. Cutting the output after the end token or a stop string is
post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from tacit.arrays import Floats, Integers
from tacit.devices import PROCESSOR
from tacit.documents.base import check_count
from tacit.documents.language_models import (
    SMOLLM2,
    CausalModel,
    Continuation,
    Frame,
    Generator,
    Guide,
    LogitInterval,
    Seq2SeqModel,
    calibrate_logits,
    load_generator,
)
from tacit.documents.language_models.alone import check_rows_apart
from tacit.documents.paraphrase_loss import (
    spread_for,
    step_slack,
    tilt_for,
    tilted_weights,
    token_loss,
    uniform_weights,
)
from tacit.documents.token_draws import TokenDraws
from tacit.errors import BadParameterError
from tacit.guarantee import NOTE, Guarantee, Notion
from tacit.needs import needs_of_language_model
from tacit.noise.choice import (
    draw_rows,
    probabilities,
)
from tacit.noise.source import Source
from tacit.parameters import EpsilonRange, parameter
from tacit.rounding import rounded_up

EXAMPLES_PROMPT = """\
Sentence: The bus was late again this morning.
In other words: This morning the bus did not come on time again.

Sentence: She bought fresh bread and two apples at the market.
In other words: At the market she got two apples and some fresh bread.

Sentence: Many visitors liked the small museum near the river.
In other words: The little museum by the river was popular with its guests.

Sentence: {text}
In other words:"""

KNOWN_INTERVALS = {
    (SMOLLM2, EXAMPLES_PROMPT): LogitInterval(
        -10.3, -0.4, "calibrate_logits on the public sentences of Tacit, rounded"
    ),
}
"""Intervals of models that everybody has, for the built-in prompt, so that they need not be calibrated again."""

WEAK = 5.0
"""Below this budget of a token, an output says next to nothing about its document."""
USEFUL = 15.0
"""From here on, a model writes nearly what it would write without privacy."""


@dataclass(kw_only=True, eq=False)
class Paraphrase(TokenDraws):
    """A public language model writes the document anew; each token is drawn privately.

    The output reads like text at every epsilon. How much of the document is in it depends on the budget of one token,
    epsilon / tokens: little below 5, a hint around 10, nearly what the model would write without privacy from 15.

    model          "smollm2", the folder of a causal or sequence-to-sequence model, or its name on the model hub
    tokens         how many tokens are drawn and paid for; the output is never longer
    input_tokens   how many model tokens of a document are read; the rest is cut off
    prompt         what the model is told, with {text} where the document goes; public
    chat           put the prompt through the chat template of the model
    base           "model": tilt what the model writes without the document; "uniform": the published mechanism;
                   "auto": "model" up to a budget of about 13 a token, "uniform" above, where it strays less
    temperature    of the model itself, with base "model"; public
    interval       to which log-probabilities are clipped with base "uniform", LOW:HIGH; default: calibrated on
                   public sentences that come with Tacit
    stop           the output is cut here (and at the end token)
    shortest       how many tokens are written before the output should end; public
    batch_size     how many texts are computed together, always exactly so many; fewer are filled up with empty ones
    """

    batch_size: int = parameter(8, low=1, service_most=256)
    model: str | CausalModel | Seq2SeqModel = parameter(SMOLLM2, needs=needs_of_language_model)
    tokens: int = parameter(24, service_most=512)
    input_tokens: int = parameter(64, service_most=512)
    prompt: str = EXAMPLES_PROMPT
    chat: bool = False
    base: str = parameter("auto", choices=("auto", "model", "uniform"))
    temperature: float = parameter(0.7, low=0.01, high=100.0)
    interval: str | LogitInterval | None = None
    stop: str = "\n"
    shortest: int = 3

    name: ClassVar[str] = "paraphrase"
    title: ClassVar[str] = "Private paraphrase"
    paper: ClassVar[str] = "Mattern et al. 2022; Utpala et al. 2023"
    model_needed: ClassVar[str] = "language model (SmolLM2, by pip)"
    epsilon_range: ClassVar[EpsilonRange] = EpsilonRange(360.0, 24.0, 720.0)
    """1 to 30 for each token: below 5, such a text says nothing of its document."""

    def check_parameters(self) -> None:
        super().check_parameters()
        check_count("input_tokens", self.input_tokens)
        if not isinstance(self.shortest, int) or isinstance(self.shortest, bool) or self.shortest < 0:
            raise BadParameterError(
                "impossible-length",
                "shortest must be a whole number of at least 0, not {shortest}",
                shortest=self.shortest,
            )

    # Public data --------------------------------------------------------------------------------------------

    @cached_property
    def language_model(self) -> Generator:
        with self.on_device():
            generator = load_generator(self.model)
        generator.provenance()
        return generator

    @property
    def reader(self) -> tuple[Any, int] | None:
        return self.language_model.tokenizer, self.input_tokens

    @cached_property
    def frame(self) -> Frame:
        frame = self.language_model.frame(self.prompt, chat=self.chat)
        self.language_model.check_lengths(frame, self.input_tokens, self.tokens)
        return frame

    def usual_interval(self) -> LogitInterval:
        known = KNOWN_INTERVALS.get((self.language_model.name, self.prompt)) if not self.chat else None
        return known or calibrate_logits(self.language_model, prompt=self.prompt)

    @cached_property
    def stops(self) -> Any:
        """The tokens of the support that end an output."""
        model = self.language_model
        texts = model.texts_of_tokens() if self.stop else [""] * len(model.support)
        return np.array([bool(self.stop) and self.stop in text for text in texts]) | (model.support == model.end)

    @cached_property
    def guide(self) -> Guide:
        """The tokens that should not be written next, by the prompt and the tokens released so far."""
        return Guide.of_prompt(self.frame, self.language_model.support, self.stops, self.shortest)

    def load_public(self) -> None:
        assert self.frame is not None
        assert self.tilted or self.clipping is not None
        if self.language_model.device.type != PROCESSOR:
            check_rows_apart(self.language_model, self.frame, self.batch_size, self.input_tokens)

    def note(self) -> str | None:
        """A note about what the budget is too small for."""
        if self.epsilon_token >= WEAK:
            return None
        return (
            f"an epsilon of {self.epsilon:g} is {self.epsilon_token:.2g} for each of {self.tokens} tokens: the texts "
            "will say next to nothing about the originals, only what the model writes of its own. Give "
            f"{USEFUL * self.tokens:g} ({USEFUL:g} a token) or lower tokens; for small budgets use the private codebook"
        )

    @cached_property
    def tilted(self) -> bool:
        """Whether the base measure is the model's prediction without the document.

        A step goes astray when it draws what the document does not suggest: with probability of about e^-d under base
        "model" and V e^(|high| - epsilon_token) under base "uniform". "auto" takes the smaller one; it looks at public
        numbers only.
        """
        if self.base != "auto":
            return self.base == "model"
        crossing = (math.log(len(self.language_model.support)) - 0.6) * 4.0 / 3.0
        return self.epsilon_token < crossing

    # The private step ---------------------------------------------------------------------------------------

    def weights(self, scores: Floats, reference: Floats | None) -> Integers:
        """The law of the next token of each row, as integers."""
        if reference is None:
            return uniform_weights(scores, self.clipping, self.epsilon_token)
        return tilted_weights(scores, reference, self.temperature, self.epsilon_token)

    def law(self, text: str, released: Sequence[int] = ()) -> Floats:
        """Exact probabilities of the next token after these released tokens, one for each token of the support."""
        self.prepare()
        steps = [int(token) for token in released]
        begun, public = self._begun([text])
        scores, reference = self._after(begun, steps), None if public is None else self._after(public, steps)
        law: Floats = probabilities(self._guided_weights(scores, reference, [steps]))[0]
        return law

    def _after(self, begun: tuple[Continuation, Floats], released: Sequence[int]) -> Floats:
        running, scores = begun
        for token in released:
            scores = self.language_model.extend(running, np.full(self.batch_size, token, dtype=np.int64))
        return scores

    def _begun(self, texts: Sequence[str]) -> tuple[tuple[Continuation, Floats], tuple[Continuation, Floats] | None]:
        """The model before its first token, with the texts and (base "model") without, in `batch_size` rows each."""
        if len(texts) > self.batch_size:
            raise BadParameterError(
                "too-many-texts",
                "at most {batch_size} texts are rewritten at once, not {texts}",
                batch_size=self.batch_size,
                texts=len(texts),
            )
        model, frame = self.language_model, self.frame
        filled = [*texts, *[""] * (self.batch_size - len(texts))]
        # The public side is computed apart, from released tokens only: nothing of a document can get into it.
        public = model.begin_blank(self.batch_size, frame, self.input_tokens) if self.tilted else None
        return model.begin(filled, frame, self.input_tokens), public

    def _guided_weights(self, scores: Floats, reference: Floats | None, released: Sequence[Sequence[int]]) -> Integers:
        """The law of the next token of each row that has released tokens; rows that fill up the batch are left out."""
        rows = len(released)
        guided = self.guide.apply(scores[:rows], released)
        return self.weights(guided, None if reference is None else self.guide.apply(reference[:rows], released))

    def rewrite_batch(self, texts: Sequence[str], source: Source) -> list[str]:
        model, rows = self.language_model, len(texts)
        (running, scores), beside = self._begun(texts)
        public, reference = (None, None) if beside is None else beside
        once = np.ones(rows, dtype=np.int64)
        written: list[list[int]] = [[] for _ in texts]
        released: list[list[int]] = [[] for _ in texts]
        open_rows = np.ones(rows, dtype=bool)
        next_tokens = np.full(self.batch_size, model.support[0])
        for step in range(self.tokens):
            drawn = draw_rows(self._guided_weights(scores, reference, written), once, source)
            next_tokens[:rows] = model.support[drawn]
            for row, token in enumerate(next_tokens[:rows].tolist()):
                written[row].append(token)
                if open_rows[row]:
                    released[row].append(token)
            open_rows &= ~self.stops[drawn]
            if not open_rows.any() or step == self.tokens - 1:
                break
            scores = model.extend(running, next_tokens)
            if public is not None:
                reference = model.extend(public, next_tokens)
        return [self._finished(ids) for ids in released]

    def _finished(self, ids: list[int]) -> str:
        text = self.language_model.text([token for token in ids if token != self.language_model.end])
        return (text.split(self.stop, 1)[0] if self.stop else text).strip()

    # The guarantee ------------------------------------------------------------------------------------------

    def promise(self) -> Guarantee:
        self.prepare()
        model = self.language_model
        outcomes = len(model.support)
        provenance = [model.provenance()]
        if not self.tilted:
            provenance.append(self.clipping.provenance())
        return self._promise(
            Notion.PURE,
            self.tokens * token_loss(self.epsilon_token, outcomes),
            slack=self.tokens * step_slack(outcomes),
            parameters=self._card_parameters(outcomes),
            not_covered=("people whose text was used to train the language model",),
            assumptions=(
                "the language model, its tokenizer and the prompt were fixed without looking at the text",
                f"only the first {self.input_tokens:,} tokens of a text are read",
                f"the texts of one batch are computed apart from each other, in constant shapes of {self.batch_size} "
                "rows",
                *(
                    ("the prediction without the document is a function of released tokens only",)
                    if self.tilted
                    else ()
                ),
            ),
            provenance=tuple(provenance),
        )

    def _card_parameters(self, outcomes: int) -> dict[str, object]:
        shown: dict[str, object] = {
            "model": self.language_model.name,
            "epsilon per token": rounded_up(token_loss(self.epsilon_token, outcomes)),
            "tokens": self.tokens,
            "vocabulary": outcomes,
            "input_tokens": self.input_tokens,
            "base": "model" if self.tilted else "uniform",
        }
        if self.tilted:
            down, up = tilt_for(self.epsilon_token, outcomes)
            shown["temperature"] = f"{self.temperature:g}"
            shown["tilt"] = f"e^-{rounded_up(down, 4)} to e^{rounded_up(up, 4)}"
        else:
            slope = spread_for(self.epsilon_token, self.clipping, outcomes) / self.clipping.width
            shown["interval"] = f"{self.clipping}, width {self.clipping.width:.4g}"
            shown["temperature"] = f"{1.0 / slope:.4g} (from epsilon)"
        if self.prompt != EXAMPLES_PROMPT:
            shown["prompt"] = self.prompt
        if note := self.note():
            shown[NOTE] = note
        return shown
