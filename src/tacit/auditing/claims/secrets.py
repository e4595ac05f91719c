"""A check that made-up secrets do not come back. It catches mechanisms that pass unknown words through, at any epsilon.

Draw a secret x uniformly from N strings, release M(x), and look for x among the first T words of the release. If any
two inputs are promised a loss of at most epsilon (up to delta), then for a fixed x' and the average over the secrets

    Pr[x in M(x)]  <=  e^epsilon * (1 / N) * sum over x of Pr[x in M(x')] + delta  <=  e^epsilon * T / N + delta,

because M(x') shows at most T words. If the promise holds only within each of m public sets, the bound is m times as
large. So r returns in n trials refute every epsilon below ln((p - delta) N / (T m)), p the Clopper-Pearson bound: with
20 letters and digits N is e^71, and one return is worth more than any number of samples of two inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tacit.auditing.binomial import at_least
from tacit.auditing.claims.sampling import CONFIDENCE
from tacit.errors import BadInputError, BadParameterError
from tacit.noise.source import new_source
from tacit.report import Finding, Light, Section
from tacit.rounding import rounded_down, rounded_up

ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
WORDS_LOOKED_AT = 1000
SPARE = 40.0
"""The secrets are long enough to refute claims up to so much above the claimed epsilon."""


@dataclass(frozen=True)
class SecretsResult:
    claimed: float
    delta: float
    trials: int
    returned: int
    epsilon: float
    confidence: float
    example: str | None

    @property
    def refuted(self) -> bool:
        return self.epsilon > self.claimed


def made_up_secrets(count: int, length: int, seed: int | None = None) -> list[str]:
    """Strings of letters and digits, uniform and independent; the first is a letter, so that each is one word. Without
    a test seed nobody can know them beforehand."""
    generator = new_source(seed).generator
    first = generator.integers(0, 26, size=count)
    rest = generator.integers(0, len(ALPHABET), size=(count, length - 1))
    return [
        ALPHABET[a] + "".join(ALPHABET[i] for i in row) for a, row in zip(first.tolist(), rest.tolist(), strict=True)
    ]


def secrets_check(
    rewrite: Callable[[list[str]], Sequence[str]],
    epsilon: float,
    *,
    delta: float = 0.0,
    sets: int = 1,
    trials: int = 200,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> SecretsResult:
    """Rewrite made-up secrets, each once, and count those that come back."""
    if not (epsilon >= 0 and math.isfinite(epsilon)):
        raise BadParameterError("impossible-claim", "the claimed epsilon must be a finite number of at least 0")
    length = 2 + math.ceil((epsilon + SPARE + math.log(sets)) / math.log(len(ALPHABET)))
    secrets = made_up_secrets(trials, length, seed)
    released = list(rewrite(secrets))
    if len(released) != trials or not all(isinstance(text, str) for text in released):
        raise BadInputError(
            "wrong-number-of-outputs", "a rewriting function returns one text for each text: check what it returns"
        )
    back = [s for s, text in zip(secrets, released, strict=True) if s in text.lower().split()[:WORDS_LOOKED_AT]]
    low = float(at_least(len(back), trials, 1.0 - confidence)) - delta
    log_secrets = math.log(26) + (length - 1) * math.log(len(ALPHABET))
    shown = math.log(low) + log_secrets - math.log(WORDS_LOOKED_AT * sets) if low > 0 else -math.inf
    return SecretsResult(epsilon, delta, trials, len(back), shown, confidence, back[0] if back else None)


def secrets_section(result: SecretsResult) -> Section:
    if result.refuted:
        light, sentence = (
            Light.RED,
            (
                f"Refuted: {result.returned:,} of {result.trials:,} made-up words came back as they were, for example "
                f"'{result.example}'. With confidence {result.confidence:g} the loss is at least "
                f"{rounded_down(result.epsilon, 4)}, "
                f"and {rounded_up(result.claimed, 4)} is claimed."
            ),
        )
    else:
        light, sentence = (
            Light.GREEN,
            (f"Not refuted: {result.returned:,} of {result.trials:,} made-up words came back as they were."),
        )
    finding = Finding(
        "Unknown words",
        light,
        sentence,
        "A word that nobody can guess must not come back; one return refutes any reasonable epsilon.",
        refuted=result.refuted,
        numbers={
            "trials": result.trials,
            "returned": result.returned,
            "epsilon_at_least": result.epsilon,
            "claimed": result.claimed,
            "confidence": result.confidence,
        },
    )
    return Section("Made-up secrets", "Random strings, unknown to everybody, are rewritten one by one.", [finding])
