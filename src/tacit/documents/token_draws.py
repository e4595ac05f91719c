"""The base of mechanisms that draw a text token by token from the predictions of a public language model.

Every token is one private draw of epsilon / tokens, and the draws of one document are composed; the proofs stand with
the mechanisms (`paraphrase`, `dp_mlm`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

from tacit.arrays import Floats
from tacit.checks import Check, TokenLaw
from tacit.documents.base import DocumentMechanism, check_count
from tacit.documents.language_models import Generator, LogitInterval, MaskedModel
from tacit.guarantee import Notion
from tacit.needs import MODELS, Ability


class TokenDraws(DocumentMechanism):
    """A mechanism that pays for a public number of tokens. Its class declares these two parameters.

    tokens     how many tokens are drawn and paid for
    interval   to which log-probabilities are clipped, LOW:HIGH; None: the usual one of the model
    """

    tokens: int
    interval: str | LogitInterval | None

    notion: ClassVar[str] = Notion.PURE.value
    block_characters: ClassVar[int] = 20_000
    abilities: ClassVar[tuple[Ability, ...]] = (MODELS,)

    @property
    @abstractmethod
    def language_model(self) -> MaskedModel | Generator:
        """The public model whose predictions are drawn from."""

    @abstractmethod
    def law(self, text: str, released: Sequence[int] = ()) -> Floats:
        """Exact probabilities of what comes after these released tokens."""

    @abstractmethod
    def usual_interval(self) -> LogitInterval:
        """The interval where none was given; from public data only."""

    def check_parameters(self) -> None:
        super().check_parameters()
        check_count("tokens", self.tokens)
        if isinstance(self.interval, str):
            LogitInterval.parse(self.interval)

    @cached_property
    def clipping(self) -> LogitInterval:
        """The interval to which log-probabilities are clipped."""
        if isinstance(self.interval, str):
            return LogitInterval.parse(self.interval)
        return self.usual_interval() if self.interval is None else self.interval

    @property
    def epsilon_token(self) -> float:
        return self.epsilon / self.tokens

    def checks(self) -> tuple[Check, ...]:
        promised, tokens = self.promise(), self.tokens
        return (TokenLaw(promised.epsilon / tokens, self.law, self.language_model.support, promised.slack / tokens),)
