"""`similarity`: how much of the original texts is left in the released ones (see `tacit.evaluation.similarity`).

Each measure comes with its floor (the release of another text) and its ceiling (the original itself). The share of
changed words is 1 - kept in place.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from tacit.errors import require
from tacit.evaluation.similarity import MEASURES, METRICS, measure_similarity
from tacit.evaluation.vectors import TextVectors, with_pieces
from tacit.experiments.config import Parameters
from tacit.experiments.raw import read_json, read_part, read_released, write_json, write_lines
from tacit.experiments.steps import Input, Kind, PlannedCell, Progress
from tacit.experiments.steps.downstream import code_of_encoder, encoder
from tacit.experiments.steps.rewrite import check_both
from tacit.plugins import source_digest

NEURAL = {"bertscore", "cosine"}


def _is_measure(name: str) -> str:
    known = (*METRICS, *MEASURES)
    if name not in known:
        raise ValueError(f"must be one of {', '.join(known)}")
    return name


class Similarity(Parameters):
    """pieces   compare with the first so many word pieces of an original (as `encoder` cuts it), which is what a
    document mechanism reads, and not with all of a long text
    """

    measures: list[Annotated[str, AfterValidator(_is_measure)]] = Field(default=["bleu", "cosine", "kept-words"])
    encoder: str = "minilm"
    part: str = "test"
    texts_at_most: int = Field(default=500, ge=2)
    pieces: int | None = Field(default=None, ge=1)


def run(parameters: Similarity, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    originals = [t for row in read_part(inputs["data"], parameters.part).texts for t in row][: parameters.texts_at_most]
    released = [t for row in read_released(inputs["texts"], parameters.part) for t in row][: parameters.texts_at_most]
    if parameters.pieces is not None:
        tokenizer = with_pieces(encoder(parameters.encoder), "pieces").tokenizer
        originals = [first_pieces(tokenizer, text, parameters.pieces) for text in originals]
    vectors = TextVectors(encoder(parameters.encoder))
    # The data sets are tokenized, which BLEU warns about for every cell.
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)
    measured = measure_similarity(
        originals, released, parameters.measures, vectors=vectors, progress=lambda _, done, total: progress(done, total)
    )
    write_json(
        folder / "measures.json",
        [
            {"name": m.name, "value": m.value, "low": m.interval.low, "high": m.interval.high, "floor": m.floor,
             "ceiling": m.ceiling, "texts": m.texts, "note": m.note}
            for m in measured.measures
        ],
    )  # fmt: skip
    per_text = {m.name: m.per_text for m in measured.measures if m.per_text is not None}
    write_lines(folder / "texts.jsonl", (dict(zip(per_text, values, strict=True)) for values in
                                         zip(*(v.tolist() for v in per_text.values()), strict=False)))  # fmt: skip


def first_pieces(tokenizer: Any, text: str, pieces: int) -> str:
    """A text up to the end of its first so many word pieces."""
    offsets = tokenizer(text, truncation=True, max_length=pieces, add_special_tokens=False, return_offsets_mapping=True)
    ends = [end for _, end in offsets["offset_mapping"]]
    return text[: ends[-1]] if ends else text


def score(folder: Path) -> dict[str, float]:
    result: dict[str, float] = {}
    for m in read_json(folder / "measures.json"):
        numbers = {end: float(m[end]) for end in ("low", "high", "floor", "ceiling")}
        result |= {m["name"]: float(m["value"]), **{f"{m['name']}.{end}": x for end, x in numbers.items()}}
        if m["name"] == "words kept in place":
            result |= {"words changed": 1 - float(m["value"]), "words changed.low": 1 - numbers["high"],
                      "words changed.high": 1 - numbers["low"], "words changed.floor": 0.0,
                      "words changed.ceiling": 1 - numbers["floor"]}  # fmt: skip
    return result


def check(parameters: Similarity, inputs: frozenset[str] = frozenset()) -> None:
    if {"bleu", "chrf"} & set(parameters.measures):
        require("sacrebleu", extra="audit", purpose="BLEU")
    if NEURAL & set(parameters.measures) or parameters.pieces is not None:
        encoder(parameters.encoder).dimension  # noqa: B018  # loads it, or says what is missing
    if "bertscore" in parameters.measures or parameters.pieces is not None:
        with_pieces(encoder(parameters.encoder), "pieces" if parameters.pieces is not None else "BERTScore")


def fits(parameters: Similarity, inputs: Mapping[str, PlannedCell]) -> None:
    check_both(inputs, parameters.part)


def content(parameters: Similarity) -> dict[str, Any]:
    """The values of the key. A parameter that came later counts where it is used: no earlier cell is run again."""
    values = parameters.model_dump(exclude={"pieces"} if parameters.pieces is None else set())
    plugins = {name: source_digest(MEASURES[name]) for name in parameters.measures if name in MEASURES}
    return {**values, **({"plugins": plugins} if plugins else {}), **code_of_encoder(parameters.encoder)}


KIND = Kind(
    "similarity", 2, Similarity, run, score, {"data": Input(("data",)), "texts": Input(("rewrite",))}, check, content,
    measures=("BLEU", "cosine", "words changed"), fits=fits,
    further=lambda: ("chrF", "BERTScore", "perplexity", "words kept in place", "words kept anywhere", "verbatim copies",
                     "length change", *MEASURES),
)  # fmt: skip
