"""`attack`: what an attacker gets out of released text (see `tacit.auditing.text`).

    mask         a language model guesses each word from the released words around it (Yue et al. 2021, section 5.3)
    inversion    the Bayes-optimal guess of each word from the exact law of the mechanism, and the released word itself
    attributes   a classifier names a column (gender, age group) from the text; static and adaptive attacker
    authorship   the same for the author
    linkage      which original does a released text belong to?
    entities     which names, places and numbers are still there?

"rate" is the success of the strongest variant that was run, with its interval, its floor (a blind guess) and its
ceiling (the same attack on the original text); "defended" is 1 - rate. An attack that fails proves nothing about better
ones. macro-F1 has no interval: which cases were right is not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from tacit import catalog
from tacit.auditing.text import attributes, authorship, entities, inversion, linkage, mask_inference
from tacit.auditing.text.pairs import TextPairs
from tacit.auditing.text.plan import some_authors
from tacit.auditing.text.scale import Success
from tacit.errors import BadInputError, require
from tacit.experiments.config import Parameters
from tacit.experiments.inputs import check_column, data_in
from tacit.experiments.raw import read_json, read_part, read_released, write_json
from tacit.experiments.steps import Input, Kind, PlannedCell, Progress
from tacit.experiments.steps.downstream import encoder
from tacit.experiments.steps.rewrite import NONE, Rewrite, check_both
from tacit.words.base import WordMechanism


class Attack(Parameters):
    """column   what `attributes` infers, or the author of `authorship`
    author   rows of one author never stand on both sides of a split of `attributes`
    model    the language model of `mask`
    encoder  the sentence encoder of `linkage`, or "none": words and length only
    """

    attack: Literal["mask", "inversion", "attributes", "authorship", "linkage", "entities"]
    part: str = "test"
    column: str | None = None
    author: str | None = None
    model: str = "smollm2"
    encoder: str = "none"
    sample: int = Field(default=600, ge=10)
    seed: int = 0


def run(parameters: Attack, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    rows = read_part(inputs["data"], parameters.part)
    released = read_released(inputs["texts"], parameters.part)
    texts, shown = ([t for row in some for t in row] for some in (rows.texts, released))
    width = len(texts) // max(1, len(rows))
    columns = {name: [row[name] for row in rows.columns for _ in range(width)] for name in (rows.columns[0] or {})}
    pairs = TextPairs(texts, shown, columns)
    made = Rewrite.model_validate(read_json(inputs["texts"] / "parameters.json"))
    write_json(folder / "successes.json", successes(parameters, pairs, made, progress))


def successes(parameters: Attack, pairs: TextPairs, made: Rewrite, progress: Progress) -> dict[str, dict[str, object]]:
    """The success of each variant of an attack, by name."""
    kind, seed = parameters.attack, parameters.seed
    if kind == "mask":
        inferred = mask_inference.infer_masked(
            pairs, parameters.model, tokens=parameters.sample, seed=seed, progress=progress
        )
        return {"context": inferred.recovered.numbers()}
    if kind == "inversion":
        return _inverted(pairs.some(parameters.sample, seed), made, seed, progress)
    if kind == "linkage":
        by = None if parameters.encoder == "none" else encoder(parameters.encoder)
        linked = linkage.link(pairs.some(parameters.sample, seed), encoder=by, progress=progress)
        return {each.attacker: each.top1.numbers() for each in linked}
    if kind == "entities":
        survivors = entities.survival(pairs, entities.from_patterns(pairs.originals), source="patterns", seed=seed)
        return {"whole entity": survivors.by_kind["all types"].whole.numbers()}
    if parameters.column is None:
        raise BadInputError(
            "attack-needs-column",
            "the attack '{kind}' needs a 'column'",
            kind=kind,
        )
    if kind == "authorship":
        some = some_authors(pairs, parameters.column, parameters.sample, seed)
        named = authorship.authorship(some, some.labels[parameters.column], seed=seed, progress=progress)
    else:
        author = parameters.author
        some = some_authors(pairs, author, parameters.sample, seed) if author else pairs.some(parameters.sample, seed)
        named = attributes.infer_attribute(
            some, parameters.column, some.labels[parameters.column], authors=some.labels[author] if author else None,
            seed=seed, progress=progress,
        )  # fmt: skip
    return {
        name: {**named.top1[name].numbers(), "macro-F1": named.macro_f1[name],
               "macro-F1.floor": named.macro_f1["majority"], "macro-F1.ceiling": named.macro_f1["non-private"]}
        for name in named.top1
    }  # fmt: skip


def _inverted(pairs: TextPairs, made: Rewrite, seed: int, progress: Progress) -> dict[str, dict[str, object]]:
    if made.mechanism == NONE:
        same = Success(1.0, 1.0, 1.0, 0.0, 1.0, len(pairs))
        return {"released word": same.numbers()}
    mechanism = made.build()
    if not isinstance(mechanism, WordMechanism):
        raise BadInputError(
            "attack-on-documents",
            "'{mechanism}' rewrites whole documents, which shows no word by itself: leave it out",
            mechanism=made.mechanism,
        )
    mechanism.prepare()
    prior = inversion.frequency_prior(mechanism.vocabulary)
    inverted = inversion.invert(pairs, mechanism, prior, seed=seed, progress=progress)
    return {"best guess": inverted.bayes.numbers(), "released word": inverted.nearest.numbers()}


def score(folder: Path) -> dict[str, float]:
    of_variants = read_json(folder / "successes.json")
    result: dict[str, float] = {}
    best = max(of_variants.values(), key=lambda success: float(success["rate"]))
    for name, success in (("rate", best), *((f"rate of {name}", each) for name, each in of_variants.items())):
        result[name] = float(success["rate"])
        result |= {f"{name}.{end}": float(success[end]) for end in ("low", "high", "floor", "ceiling")}
    result |= {"defended": 1 - result["rate"], "defended.low": 1 - result["rate.high"],
               "defended.high": 1 - result["rate.low"], "cases": float(best["cases"])}  # fmt: skip
    if "macro-F1" in best:
        strongest = max(of_variants.values(), key=lambda success: float(success["macro-F1"]))
        result |= {name: float(strongest[name]) for name in ("macro-F1", "macro-F1.floor", "macro-F1.ceiling")}
    return result


def check(parameters: Attack, inputs: frozenset[str] = frozenset()) -> None:
    if parameters.attack in ("attributes", "authorship"):
        require("sklearn", extra="audit", purpose="a classifier that attacks texts")
        if parameters.column is None:
            raise BadInputError(
                "attack-needs-column",
                "the attack '{attack}' needs a 'column' that the data set keeps ('keep')",
                attack=parameters.attack,
            )
    if parameters.attack == "mask":
        mask_inference.load(parameters.model)


def fits(parameters: Attack, inputs: Mapping[str, PlannedCell]) -> None:
    check_both(inputs, parameters.part)
    if parameters.attack in ("attributes", "authorship") and parameters.column is not None:
        check_column(data_in(inputs), parameters.column, "column")
    if parameters.attack == "attributes" and parameters.author is not None:
        check_column(data_in(inputs), parameters.author, "author")
    made = inputs["texts"].parameters
    assert isinstance(made, Rewrite)  # `Input.kinds` lets nothing else stand there
    known = made.mechanism in catalog.mechanism_names()  # of another one the rewrite step says that it does not exist
    if parameters.attack == "inversion" and known and not issubclass(catalog.find(made.mechanism), WordMechanism):
        raise BadInputError(
            "attack-on-documents",
            "the attack 'inversion' is about words, and '{mechanism}' rewrites whole documents: leave it out with skip"
            ' = [{{ mechanism = "{mechanism}" }}]',
            mechanism=made.mechanism,
        )


KIND = Kind(
    "attack", 1, Attack, run, score, {"data": Input(("data",)), "texts": Input(("rewrite",))}, check,
    measures=("rate", "macro-F1"), fits=fits,
    further=("rate of *", "defended", "cases"),
)  # fmt: skip
