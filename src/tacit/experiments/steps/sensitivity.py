"""`sensitivity`: how far the published ADePT is from its own promise (Krishna et al. 2021; Habernal 2021).

It cuts the latent of a text to a length of C in the l2 norm and adds Laplace noise for an l1 sensitivity of 2 C. Two
latents of length C can be 2 C sqrt(n) apart in the l1 norm. Latents are only computed: nothing is released.

    true over assumed   sqrt(n), an exact number: two texts can be told apart with a loss of epsilon times that
    not protected       share of the texts for which another text of the data is farther away than what is assumed, so
                        that the promise does not hold between the two
    reached             the largest l1 distance of two of these texts over what is assumed
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from pydantic import Field

from tacit.arrays import Floats
from tacit.errors import require
from tacit.evaluation.scores import mean_interval
from tacit.experiments.config import Parameters
from tacit.experiments.inputs import check_part, check_texts, data_in
from tacit.experiments.raw import read_json, read_part, write_json
from tacit.experiments.steps import Input, Kind, PlannedCell, Progress
from tacit.experiments.steps.downstream import RESAMPLES, with_interval


class LatentDistances(Parameters):
    """model: an ADePT in the package, or the folder of one."""

    model: str = "adept-20"
    part: str = "test"
    texts_at_most: int = Field(default=500, ge=2)


def run(parameters: LatentDistances, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    from tacit.documents.adept import published_adept

    mechanism = published_adept(1.0, model=parameters.model)
    texts = read_part(inputs["data"], parameters.part).joined[: parameters.texts_at_most]
    cut = mechanism.bound.apply(mechanism.autoencoder.encode(texts)).reshape(len(texts), -1)
    farthest = farthest_l1(cut) / (2 * mechanism.bound.C)
    write_json(folder / "distances.json", {"numbers": cut.shape[1], "farthest": farthest.tolist()})
    progress(1, 1)


def farthest_l1(latents: Floats) -> Floats:
    """The l1 distance of each latent to the one that is farthest from it."""
    return np.array([np.abs(latents - latent).sum(axis=1).max() for latent in latents])


def score(folder: Path) -> dict[str, float]:
    measured = read_json(folder / "distances.json")
    farthest = np.array(measured["farthest"])
    outside = (farthest > 1).astype(np.float64)
    numbers = {"true over assumed": math.sqrt(measured["numbers"]), "reached": float(farthest.max())}
    return numbers | with_interval("not protected", mean_interval(outside, resamples=RESAMPLES), 0.0)


def check(parameters: LatentDistances, inputs: frozenset[str] = frozenset()) -> None:
    require("torch", extra="documents", purpose="the latents of an autoencoder")


def fits(parameters: LatentDistances, inputs: Mapping[str, PlannedCell]) -> None:
    check_texts(data_in(inputs))
    check_part(data_in(inputs), parameters.part, "part")


KIND = Kind(
    "sensitivity", 1, LatentDistances, run, score, {"data": Input(("data",))}, check,
    measures=("true over assumed", "not protected", "reached"), fits=fits,
)  # fmt: skip
