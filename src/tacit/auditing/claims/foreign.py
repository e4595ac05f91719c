"""Checks of what somebody else made: a matrix of probabilities, or a function.

A matrix, and a function that returns probabilities, are checked exactly. A function that returns samples, or one text
for a text, is drawn from; then a claim can be refuted and never be proven.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tacit.auditing.claims.claim import Claim, Distance, TableDistance, VectorDistance
from tacit.auditing.claims.exact import ExactResult, check_all, check_pairs, exact_section, words_of
from tacit.auditing.claims.laws import MatrixLaw, Stranger, law_of, load_stranger, matrix_law, read_matrix, read_table
from tacit.auditing.claims.sampling import sampled_check, sampled_section
from tacit.auditing.claims.scores import Agreement, MeanDirection, NearerTo, OutputRatio, Score
from tacit.auditing.claims.secrets import secrets_check, secrets_section
from tacit.auditing.claims.settings import SAMPLES, ClaimAuditSettings, listed
from tacit.errors import BadInputError, BadParameterError
from tacit.noise.source import public_generator
from tacit.report import Section
from tacit.text.files.memory import is_in_memory
from tacit.vectors import load_vectors

SAMPLED_PAIRS = 10
REWRITER_SAMPLES = 1_000
CLOSEST = "closest:"

ClaimOf = Callable[[Sequence[str]], Claim]
"""What is claimed about these inputs."""


def stated_claim(
    inputs: Sequence[str], epsilon: float | None, delta: float = 0.0, metric: Any = None, vectors: str | None = None
) -> Claim:
    """The claim about the inputs of a matrix or a function: epsilon, or epsilon times a distance that a table
    (`metric`, a file or numbers in the order of the inputs) or public word vectors give."""
    if epsilon is None:
        raise BadParameterError("no-claim", "say what is claimed, for example {option.epsilon[2]}")
    if metric is not None and vectors is not None:
        raise BadParameterError(
            "two-distances", "{option.metric} and {option.vectors} both give distances: leave one out"
        )
    distance: Distance | None = None
    if metric is not None:
        distance = TableDistance(
            np.asarray(metric, dtype=np.float64) if is_in_memory(metric) else _ordered(metric, inputs)
        )
    elif vectors is not None:
        table = load_vectors(vectors).subset([str(name) for name in inputs])
        distance = VectorDistance(table.vectors, f"Euclidean distance of {table.name} vectors")
    return Claim(epsilon, delta=delta, distance=distance)


def _ordered(path: str | Path, inputs: Sequence[str]) -> Any:
    """The distances of a CSV file, rows and columns in the order of the inputs."""
    rows, columns, values = read_table(path)
    places = {row: i for i, row in enumerate(rows)}, {column: i for i, column in enumerate(columns)}
    missing = [name for name in inputs if name not in places[0] or name not in places[1]]
    if missing:
        raise BadInputError(
            "no-distance",
            "{path} has no distances for '{name}': give a row and a column for each input",
            path=path,
            name=missing[0],
        )
    return values[np.ix_(*[np.array([place[name] for name in inputs]) for place in places])]


def audit_matrix(matrix: Any, claim_of: ClaimOf, settings: ClaimAuditSettings) -> Section:
    """The exact check of a law: a CSV file with outputs in the header and a row per input, or rows of numbers."""
    law = matrix_law(matrix) if is_in_memory(matrix) else read_matrix(matrix)
    return exact_section(_exact(law, claim_of(law.inputs), settings))


def _exact(law: MatrixLaw, claim: Claim, settings: ClaimAuditSettings) -> ExactResult:
    words, bar = settings.words, settings.bar("exact law")
    if words is None or words == "all" or (words.isdigit() and int(words) >= len(law.inputs)):
        return check_all(law, claim, tolerance=settings.tolerance, progress=bar)
    count = words.removeprefix(CLOSEST)
    if words.startswith(CLOSEST) and count.isdigit() and int(count) > 0:
        if claim.distance is None:
            raise BadParameterError(
                "closest-without-distance",
                "closest pairs need distances: give {option.metric[FILE]} or {option.vectors[NAME]}",
            )
        return check_pairs(law, claim, claim.distance.closest(int(count)), tolerance=settings.tolerance)
    if words.isdigit():
        return check_all(law, claim, np.arange(int(words)), tolerance=settings.tolerance, progress=bar)
    return check_all(law, claim, words_of(law, listed(words)), tolerance=settings.tolerance, progress=bar)


def audit_function(
    function: str | Callable[..., Any], words: Sequence[str], claim_of: ClaimOf, settings: ClaimAuditSettings
) -> list[Section]:
    """The check that fits what a function returns for these words."""
    claim = claim_of(words)
    stranger = load_stranger(function)
    if stranger.samples:
        return [_sampled(lambda i, count: np.asarray(list(stranger(words[i], count))), words, claim, settings)]
    first = stranger(words[0])
    if isinstance(first, str):
        return _rewriter(stranger, words, claim, settings)
    law = law_of(stranger, words, first=first)
    return [exact_section(_exact(law, claim, replace(settings, words="all")))]


def _rewriter(stranger: Stranger, words: Sequence[str], claim: Claim, settings: ClaimAuditSettings) -> list[Section]:
    """text -> text: its outputs are counted, and made-up words are tried."""

    def texts(inputs: list[str]) -> list[str]:
        answers = [stranger(text) for text in inputs]
        if not all(isinstance(answer, str) for answer in answers):
            raise BadInputError(
                "not-always-a-text",
                "{function} returns a text for some inputs and not for others: always return one",
                function=stranger.name,
            )
        return answers

    few = replace(settings, samples=settings.samples or REWRITER_SAMPLES)
    counted = _sampled(lambda i, count: np.asarray(texts([words[i]] * count)), words, claim, few)
    if claim.is_metric:
        return [counted]
    returned = secrets_check(
        texts, claim.epsilon, delta=claim.delta, confidence=settings.confidence, seed=settings.seed
    )
    return [counted, secrets_section(returned)]


def _sampled(
    sample: Callable[[int, int], Any], words: Sequence[str], claim: Claim, settings: ClaimAuditSettings
) -> Section:
    if claim.distance is not None:
        pairs = claim.distance.closest(SAMPLED_PAIRS)
    else:
        pairs = np.stack(np.triu_indices(len(words), 1), axis=1)
        pairs = public_generator(0).permutation(pairs)[:SAMPLED_PAIRS]
    trial = np.asarray(sample(0, 1))
    scores: list[Score] = [OutputRatio()]
    if trial.dtype.kind == "f":
        scores = [MeanDirection(), NearerTo(1), NearerTo(2)]
    if trial.ndim >= 2 and trial.shape[1] == 2:
        scores.append(Agreement())
    return sampled_section(
        sampled_check(
            sample,
            claim,
            pairs,
            scores,
            samples=settings.samples or SAMPLES,
            confidence=settings.confidence,
            names=words,
            progress=settings.bar("sampling"),
        )
    )
