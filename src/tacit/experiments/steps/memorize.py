"""`memorize`: does a rewriting model answer with sentences of its pre-training text? (Igamberdiev 2023, section 5.4)

Each released text is compared with its original and with the nearest sentence of the text the model was pretrained on
(`tacit.auditing.models.memorization`), by token edits:

    copies     released texts within 20 % token edits of a pre-training sentence that is not their original
    strayed    copies that lie nearer to that sentence than to their original: the signature of the leak
    nearer     released texts nearer to a pre-training sentence than to their original

Shares of the released texts, with 95 % intervals. A small share does not show that nothing was memorized. BLEU has no
interval, because the texts are not kept here: a step of the kind `similarity` gives one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from pydantic import Field

from tacit.auditing.models.memorization import NEAR, bleu, repeats
from tacit.errors import require
from tacit.evaluation.scores import mean_interval, t_interval
from tacit.experiments.config import Parameters
from tacit.experiments.inputs import check_part, data_in
from tacit.experiments.raw import read_json, read_lines, read_part, read_released, write_json, write_lines
from tacit.experiments.steps import Input, Kind, PlannedCell, Progress
from tacit.experiments.steps.downstream import RESAMPLES, with_interval
from tacit.experiments.steps.rewrite import check_both


class Memorize(Parameters):
    part: str = "train"
    pretraining_part: str = "train"
    texts_at_most: int = Field(default=300, ge=2)


def run(parameters: Memorize, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    many = parameters.texts_at_most
    originals = [text for row in read_part(inputs["data"], parameters.part).texts for text in row][:many]
    released = [text for row in read_released(inputs["texts"], parameters.part) for text in row][:many]
    pretraining = [text for row in read_part(inputs["corpus"], parameters.pretraining_part).texts for text in row]
    repeated = repeats(released, originals, pretraining)
    write_lines(
        folder / "nearest.jsonl",
        ({"to the original": own, "to pre-training": other, "sentence": s} for own, other, s in repeated.nearest),
    )
    write_json(folder / "bleu.json", bleu(released, originals))
    progress(1, 1)


def score(folder: Path) -> dict[str, float]:
    rows = list(read_lines(folder / "nearest.jsonl"))
    own = np.array([row["to the original"] for row in rows])
    other = np.array([row["to pre-training"] for row in rows])
    shares = {"strayed": (other >= NEAR) & (other > own), "copies": other >= NEAR, "nearer": other > own}
    result = {"BLEU": float(read_json(folder / "bleu.json"))}
    for name, hits in shares.items():
        result |= with_interval(name, mean_interval(hits.astype(np.float64), resamples=RESAMPLES), 0.0)
    for name, similarity in (("the original", own), ("pre-training", other)):
        result |= t_interval(similarity.tolist()).named(f"similarity to {name}")
    return result


def check(parameters: Memorize, inputs: frozenset[str] = frozenset()) -> None:
    require("sacrebleu", extra="audit", purpose="BLEU")


def fits(parameters: Memorize, inputs: Mapping[str, PlannedCell]) -> None:
    check_both(inputs, parameters.part)
    check_part(data_in(inputs, "corpus"), parameters.pretraining_part, "pretraining_part")


KIND = Kind(
    "memorize", 1, Memorize, run, score,
    {"data": Input(("data",)), "texts": Input(("rewrite",)), "corpus": Input(("data",))}, check,
    measures=("strayed", "copies", "nearer", "BLEU"), fits=fits,
    further=("similarity to the original", "similarity to pre-training"),
)  # fmt: skip
