"""`perturb`: noise on word vectors, with a bounding map before and a mapping to words after it (Riecker 2023).

    word x --> phi(x) --> f (bounding) --> mechanism --> g (mapping) --> vectors for a learner

The arms of the thesis:  A nothing   B f   C mechanism   D f + mechanism   E noise + g   F f + noise + g

    none                copies the words; their vectors are f(phi(x)), so this is arm A or B
    laplace             multivariate Laplace noise on f(phi(x)); the noisy vectors are released, or the words g finds
    univariate-laplace  independent noise on each number, for all differences of two words: its epsilon is per token,
                        whatever the words are
    mahalanobis         the same with elliptical noise (lam); its epsilon is per unit of another distance
    truncated-gumbel    a choice among near words in the space after f; its mapping is built in

As in the thesis the noise depends on epsilon alone ("uncalibrated"), so the promise is epsilon * Delta_f per unit of
the original distance. "epsilon in the original distance" tells it for all mechanisms alike.

Truncated Gumbel is defined for large epsilons only. Outside that domain a cell fails, or, with outside = "real-part",
runs as some published code does; "inside the domain" is then 0 and the card says that there is no guarantee. Inside,
the anchored (proven) form runs.

Released numbers are stored in half precision, which is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from tacit.arrays import Ids
from tacit.auditing import binomial
from tacit.card import Card, ReleaseFacts
from tacit.engines.blocks import content_digest
from tacit.errors import BadInputError, BadParameterError
from tacit.evaluation.scores import Interval
from tacit.experiments.config import Parameters
from tacit.experiments.inputs import check_texts, data_in
from tacit.experiments.raw import parts_of, read_json, read_part, write_json
from tacit.experiments.steps import Input, Kind, PlannedCell, Progress
from tacit.experiments.steps.rewrite import NONE, REPEATED, step_key
from tacit.text.lexicon import Lexicon
from tacit.text.tokens import split
from tacit.vectors import VectorTable, load_vectors
from tacit.vectors.bounding import Sensitivity, bounding
from tacit.vectors.geometry import diameter, smallest_positive_distance
from tacit.words.mahalanobis import Mahalanobis, inverse_root
from tacit.words.multivariate_laplace import MultivariateLaplace
from tacit.words.noisy import NoisyWords
from tacit.words.truncated_gumbel import TruncatedGumbel
from tacit.words.univariate_laplace import UnivariateLaplace

OF_VECTORS = ("laplace", "univariate-laplace", "mahalanobis")
"""Mechanisms that make noisy vectors; a mapping makes words of them."""

LARGEST_HALF = float(np.finfo(np.float16).max)


class Perturb(Parameters):
    """bounding   f: none, unit, adapted-unit, minus-one-to-one, observed-range, clip, jl (its options behind a colon)
    mapping    g: "none" releases noisy vectors; "nearest" and "first-or-second" release words
    tokens     how many tokens of a text are read
    t          of the mapping "first-or-second": near 1 it prefers the second
    neighbors  of the same mapping: how many words it chooses among
    lam        of Mahalanobis noise: 0 is round, 1 follows the covariance of the vocabulary entirely
    outside    truncated Gumbel outside its domain: "refuse", or "real-part" for reproduction (no guarantee)
    """

    mechanism: Literal["none", "laplace", "univariate-laplace", "mahalanobis", "truncated-gumbel"]
    epsilon: float | None = Field(default=None, gt=0)
    bounding: str = "none"
    mapping: Literal["none", "nearest", "first-or-second"] = "none"
    t: float = Field(default=0.75, ge=0, le=1)
    neighbors: int = Field(default=2, ge=2)
    lam: float = Field(default=0.2, ge=0, le=1)
    outside: Literal["refuse", "real-part"] = "refuse"
    vectors: str = "default"
    limit: int | None = None
    tokens: int = Field(default=48, ge=1)
    seed: int = 1
    test_seed: int | None = None

    def build(self) -> MultivariateLaplace | UnivariateLaplace | Mahalanobis | TruncatedGumbel:
        assert self.epsilon is not None
        space = spaces(self.vectors, self.limit, self.bounding)
        mapping = "nearest" if self.mapping == "none" else self.mapping
        if self.mechanism == "laplace":
            return MultivariateLaplace(
                epsilon=self.epsilon,
                vectors=space.table,
                bounding=self.bounding,
                calibrated=False,
                mapping=mapping,
                t=self.t,
                neighbors=self.neighbors,
            )
        if self.mechanism == "univariate-laplace":
            return UnivariateLaplace(epsilon=self.epsilon, vectors=space.table, bounding=self.bounding, mapping=mapping)
        if self.mechanism == "mahalanobis":
            return Mahalanobis(epsilon=self.epsilon, vectors=space.table, lam=self.lam, mapping=mapping)
        real_part = self.outside == "real-part" and self.epsilon <= space.smallest_gumbel_epsilon
        return TruncatedGumbel(
            epsilon=self.epsilon, vectors=space.mapped_table, mode="real-part" if real_part else "anchored"
        )


class Space:
    """The public vocabulary before and after a bounding map."""

    def __init__(self, table: VectorTable, name: str) -> None:
        fitted = bounding(name).fit(table)
        self.table = table
        self.vectors = np.asarray(fitted.transform(table.vectors), dtype=np.float32)
        self.sensitivity: Sensitivity = fitted.sensitivity()
        self.mapped_table = table if name == "none" else VectorTable(
            table.words, self.vectors, f"{table.name} after {name}", table.source
        )  # fmt: skip
        if len(self.mapped_table) != len(table):
            raise BadParameterError(
                "map-to-zero",
                "the map '{name}' turns a word vector into zero: choose another map, or other vectors",
                name=name,
            )
        self.lexicon = Lexicon(table.words)

    @property
    def smallest_gumbel_epsilon(self) -> float:
        """Below it the noise scale of truncated Gumbel does not exist (spec of the mechanism)."""
        return (3.0 + 2.0 * (1.0 + math.log(len(self.table)))) / smallest_positive_distance(self.mapped_table)


@lru_cache(maxsize=8)
def spaces(vectors: str, limit: int | None, name: str) -> Space:
    return Space(load_vectors(vectors, limit=limit), name)


# Running ----------------------------------------------------------------------------------------------------------


def run(parameters: Perturb, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    space = spaces(parameters.vectors, parameters.limit, parameters.bounding)
    parts = parts_of(inputs["data"])
    texts = {part: read_part(inputs["data"], part).joined for part in parts}
    rows = {part: [space.lexicon.ids(split(text)[: parameters.tokens]) for text in texts[part]] for part in parts}
    lengths = {part: [len(row) for row in rows[part]] for part in parts}
    ids = {part: np.array([i for row in rows[part] for i in row], dtype=np.int64) for part in parts}
    for part in parts:
        np.save(folder / f"{part}.lengths.npy", np.array(lengths[part], dtype=np.int32))
    facts = facts_of(parameters, space)
    if parameters.mechanism == NONE:
        drawn = ids
    else:
        counts = [count for part in parts for count in lengths[part]]
        drawn = _released(parameters, texts, ids, counts, folder, progress)
    for part, words in drawn.items():
        np.save(folder / f"{part}.words.npy", words.astype(np.int32))
    if drawn:
        everything = np.concatenate([drawn[part] == ids[part] for part in parts])
        facts["words kept"] = float(everything.mean())
    write_json(folder / "parts.json", parts)
    write_json(folder / "facts.json", facts)


def _released(
    parameters: Perturb, texts: Mapping[str, list[str]], ids: Mapping[str, Ids], lengths: list[int], folder: Path,
    progress: Progress,
) -> dict[str, Ids]:  # fmt: skip
    """The private step: the drawn words of each part, or none where the noisy vectors themselves are released."""
    mechanism = parameters.build()
    mechanism.prepare()
    key = step_key(folder, parameters.test_seed)
    as_vectors = parameters.mapping == "none" and isinstance(mechanism, NoisyWords)
    drawn: dict[str, Ids] = {}
    for index, part in enumerate(ids):
        settings = {name: value for name, value in content(parameters).items() if name != "test_seed"}
        job = str([settings, part]).encode()
        source = key.stream(index, content_digest(texts[part], job))
        if isinstance(mechanism, NoisyWords) and as_vectors:
            noisy = np.clip(mechanism.noisy_vectors(ids[part], source), -LARGEST_HALF, LARGEST_HALF)
            np.save(folder / f"{part}.vectors.npy", noisy.astype(np.float16))
        else:
            drawn[part] = mechanism.draw(ids[part], source)
        progress(index + 1, len(ids))
    if isinstance(mechanism, NoisyWords) and as_vectors:
        promise = mechanism.guarantee_of_vectors(secure=key.secure)
    else:
        promise = mechanism.guarantee(secure=key.secure)
    longest = max(lengths)
    facts = ReleaseFacts(rows=len(lengths), documents=len(lengths), units=sum(lengths), longest_document=longest,
                         longest_row=longest)  # fmt: skip
    write_json(folder / "card.json", Card(promise.also_not_covered(REPEATED), facts).to_dict())
    return drawn


def facts_of(parameters: Perturb, space: Space) -> dict[str, float]:
    """Public numbers of a cell: how much noise, which promise, and whether the mechanism is defined there."""
    facts = {"sensitivity of the map": space.sensitivity.value, "diameter after the map": diameter(space.mapped_table)}
    epsilon = parameters.epsilon
    if epsilon is None:
        return facts
    if parameters.mechanism == "univariate-laplace":  # a promise about any two words, in no distance
        mechanism = parameters.build()
        assert isinstance(mechanism, UnivariateLaplace)
        return facts | {"l1 sensitivity": mechanism.l1_sensitivity}
    stretch = space.sensitivity.value
    if parameters.mechanism == "mahalanobis":
        root = inverse_root(np.asarray(space.table.vectors, dtype=np.float64), parameters.lam)
        stretch = float(np.linalg.norm(root, 2))
    facts["epsilon in the original distance"] = epsilon * stretch
    if parameters.mechanism == "truncated-gumbel":
        smallest = space.smallest_gumbel_epsilon
        facts |= {"smallest epsilon of the domain": smallest, "inside the domain": float(epsilon > smallest)}
    elif parameters.mechanism == "laplace":
        facts["noise over diameter"] = space.vectors.shape[1] / epsilon / facts["diameter after the map"]
    return facts


def score(folder: Path) -> dict[str, float]:
    facts = {name: float(value) for name, value in read_json(folder / "facts.json").items()}
    if "words kept" in facts and (folder / "card.json").is_file():
        lengths = np.concatenate([np.load(folder / f"{part}.lengths.npy") for part in parts_of(folder)])
        facts |= kept_interval(facts["words kept"], lengths).named("words kept")
    return facts


def kept_interval(share: float, lengths: NDArray[np.int32]) -> Interval:
    """Which words were kept is not stored, so it holds for texts that keep all their words or none: the share varies
    like that of (sum of n_i)^2 / (sum of n_i^2) independent words, for texts of n_i words, or less."""
    words = lengths.astype(np.float64)
    texts = max(1, int(words.sum() ** 2 / (words @ words)))
    return Interval(share, *binomial.interval(share * texts, texts), texts)


# What other steps read ----------------------------------------------------------------------------------------------


def read_vectors(folder: Path, part: str) -> list[NDArray[np.float32]]:
    """The vectors of each text as a learner sees them: the noisy ones, or those of the released words after f."""
    lengths = np.load(folder / f"{part}.lengths.npy")
    path = folder / f"{part}.vectors.npy"
    if path.is_file():
        flat = np.load(path).astype(np.float32)
    else:
        flat = _space_of(folder).vectors[np.load(folder / f"{part}.words.npy")]
    return [np.asarray(rows) for rows in np.split(flat, np.cumsum(lengths)[:-1])]


def read_words(folder: Path, part: str) -> list[str]:
    """Each text as its released words."""
    path = folder / f"{part}.words.npy"
    if not path.is_file():
        raise BadInputError(
            "learner-needs-words",
            "a learner that reads text needs words: give the perturb step a 'mapping'",
        )
    words = _space_of(folder).table.words
    lengths = np.load(folder / f"{part}.lengths.npy")
    return [" ".join(words[i] for i in row) for row in np.split(np.load(path), np.cumsum(lengths)[:-1])]


def _space_of(folder: Path) -> Space:
    made = read_json(folder / "parameters.json")
    return spaces(made["vectors"], made["limit"], made["bounding"])


# Before anything runs -----------------------------------------------------------------------------------------------


def check(parameters: Perturb, inputs: frozenset[str] = frozenset()) -> None:
    if (parameters.mechanism == NONE) != (parameters.epsilon is None):
        advice = (
            "copies the words and has no epsilon: leave it out" if parameters.mechanism == NONE else "needs an epsilon"
        )
        raise BadInputError(
            "epsilon-and-mechanism",
            "the mechanism '{mechanism}' {advice}",
            mechanism=parameters.mechanism,
            advice=advice,
        )
    if parameters.mapping != "none" and parameters.mechanism not in OF_VECTORS:
        raise BadInputError(
            "mapping-built-in",
            "'{mechanism}' gives words by itself: leave out 'mapping'",
            mechanism=parameters.mechanism,
        )
    if content(parameters).keys() & set(LATER) and (
        parameters.mechanism != "laplace" or parameters.mapping != "first-or-second"
    ):
        raise BadInputError(
            "neighbors-without-choice",
            "'t' and 'neighbors' are options of the mapping 'first-or-second' of 'laplace': leave them out",
        )
    if parameters.mechanism == "mahalanobis" and parameters.bounding != "none":
        raise BadInputError(
            "bounding-with-mahalanobis",
            "Mahalanobis noise is defined on the vectors as they are: leave out 'bounding'",
        )
    try:
        spaces(parameters.vectors, parameters.limit, parameters.bounding)
    except BadParameterError as error:
        raise BadInputError(
            "bad-map",
            "{error}",
            error=error,
        ) from None


LATER: Final = ("t", "neighbors")
"""Parameters that came later: they count where they are used, so that no earlier cell is run again."""


def content(parameters: Perturb) -> dict[str, object]:
    """The values that the key is made from."""
    unused = {name for name in LATER if getattr(parameters, name) == Perturb.model_fields[name].default}
    return parameters.model_dump(exclude=unused)


def fits(parameters: Perturb, inputs: Mapping[str, PlannedCell]) -> None:
    check_texts(data_in(inputs))


def gives_words(parameters: Perturb) -> bool:
    """Whether a learner that reads text can go on from here."""
    return parameters.mapping != "none" or parameters.mechanism not in OF_VECTORS


def meaning(parameters: Perturb) -> str:
    if parameters.mechanism == "mahalanobis":
        return f"per token and unit of Mahalanobis distance (lam {parameters.lam:g})"
    if parameters.mechanism == "univariate-laplace":
        return "per token"
    return "per token and unit of distance after the bounding map"


KIND = Kind(
    "perturb", 1, Perturb, run, score, {"data": Input(("data",))}, check, content, epsilon=meaning,
    measures=("words kept", "epsilon in the original distance", "inside the domain", "noise over diameter"), fits=fits,
    further=("sensitivity of the map", "l1 sensitivity", "diameter after the map", "smallest epsilon of the domain"),
)  # fmt: skip
