"""`pretrain`: a rewriting model for a `rewrite` step, trained on data that is declared public.

    autoencoder   an ADePT from scratch, with a vocabulary of its own (sections 5.3 and 5.4)
    prune         a BART with fewer encoder neurons (DP-BART-PR, Igamberdiev 2023, section 6.3.4)
    noise         trained on with clipping and the noise of one or more epsilons (DP-BART-PR+, section 6.3.5)

`corpus` is the data; `start` is the model that `prune` and `noise` begin with: an input (another pretrain step), or
the name of a built-in model or of one on the model hub in `start_from`. Everything is a function of the seed.

Data that is not declared public is refused: a model repeats what it was trained on. The study of exactly this mistake
(`experiments/memorization.toml`) plays it with public data.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from tacit.errors import BadInputError, require
from tacit.experiments.config import Parameters
from tacit.experiments.inputs import check_part, data_in
from tacit.experiments.raw import read_json, read_part, write_json
from tacit.experiments.steps import Cell, Input, Kind, Progress


class Pretrain(Parameters):
    """public      the name that the text is known by; it is printed on the card of every release
    length      largest number of word pieces of a text
    words       a vocabulary of whole words: every other word is the same unknown one
    clip bound  C and what is clipped: l1 or l2 norm, or each value
    epsilon     the budget to train for (`noise`); as an axis it gives one model for each epsilon
    epsilons    several budgets in its place: one model for all of them
    content     frequent pieces count little (content / (content + frequency)), for budgets of a few bits
    keep        the weights with the "best" held-out loss, or the "last" ones, however much they were learned by heart
    """

    how: Literal["autoencoder", "prune", "noise"] = "autoencoder"
    public: str
    part: str = "train"
    start_from: str = "bart-20"
    length: int = Field(default=20, ge=2)
    vocabulary: int = Field(default=4000, ge=300)
    lowercase: bool = True
    words: bool = False
    width: int = Field(default=192, ge=4)
    embedding: int = Field(default=128, ge=2)
    clip: float | None = Field(default=None, gt=0)
    bound: Literal["l1", "l2", "value"] = "l2"
    epsilon: float | None = Field(default=None, gt=0)
    epsilons: list[float] = Field(default=[])
    delta: float = Field(default=1e-5, gt=0, lt=1)
    stages: int = Field(default=6, ge=2)
    least_bleu: float = Field(default=0.0, ge=0)
    steps: int = Field(default=1000, ge=1)
    batch_size: int = Field(default=64, ge=1)
    learning_rate: float = Field(default=1e-3, gt=0, lt=1)
    plain_share: float = Field(default=0.0, ge=0, le=1)
    mixed_share: float = Field(default=0.0, ge=0, le=1)
    content: float | None = Field(default=None, gt=0)
    dropout: float | None = Field(default=None, ge=0, lt=1)
    held_out: int = Field(default=200, ge=1)
    keep: Literal["best", "last"] = "best"
    seed: int = 1

    @property
    def budgets(self) -> list[float]:
        return self.epsilons if self.epsilon is None else [self.epsilon]

    def plan(self) -> Any:
        from tacit.documents.pretraining.plan import PretrainingPlan

        return PretrainingPlan(
            steps=self.steps, batch_size=self.batch_size, learning_rate=self.learning_rate,
            evaluate_every=max(1, self.steps // (4 if self.keep == "best" else 1)), patience=1_000,
            held_out=self.held_out, plain_share=self.plain_share, mixed_share=self.mixed_share, dropout=self.dropout,
            content=self.content, epsilons=tuple(self.budgets), seed=self.seed,
        )  # fmt: skip


def run(parameters: Pretrain, inputs: Mapping[str, Path], folder: Path, progress: Progress) -> None:
    from tacit.documents.pretraining import PublicText
    from tacit.documents.pretraining.measures import held_out_bleu

    texts = [text for row in read_part(inputs["corpus"], parameters.part).texts for text in row]
    corpus = PublicText(texts=texts, name=parameters.public)
    work = folder / "training"
    trained = {"autoencoder": _from_scratch, "prune": _pruned, "noise": _with_noise}[parameters.how]
    start = str(inputs["start"] / "model") if "start" in inputs else parameters.start_from
    model, facts = trained(parameters, start, corpus, work, progress)
    model.record.corpora = list(dict.fromkeys([*model.record.corpora, corpus.name]))
    model.record.commands = [*model.record.commands, f"a step of the kind pretrain ({parameters.how})"]
    model.save_pretrained(folder / "model")
    bleu = held_out_bleu(model, corpus, parameters.held_out, lowercase=parameters.lowercase)
    shutil.rmtree(work, ignore_errors=True)
    kept = (model.record.bound or {}).get("kept")
    facts |= bleu | {"kept columns": len(kept) if kept else model.width, "width": model.width}
    write_json(folder / "facts.json", facts)


def _from_scratch(parameters: Pretrain, start: str, corpus: Any, work: Path, progress: Progress) -> tuple[Any, Any]:
    import torch

    from tacit.documents.autoencoders.base import Record
    from tacit.documents.autoencoders.lstm import LstmAutoencoder
    from tacit.documents.autoencoders.vocabulary import train_vocabulary
    from tacit.documents.bounds import bound_from_dict

    limit = None if parameters.clip is None else bound_from_dict({"kind": parameters.bound, "C": parameters.clip})
    tokenizer = train_vocabulary(
        corpus.split(parameters.held_out)[0], parameters.vocabulary, lowercase=parameters.lowercase,
        words=parameters.words,
    )  # fmt: skip
    record = Record(kind="adept", positions=2, bound=None if limit is None else limit.to_dict())
    torch.manual_seed(parameters.seed)
    model = LstmAutoencoder.create(
        tokenizer, record, length=parameters.length, embedding=parameters.embedding, hidden=parameters.width
    )
    return model, _train(model, parameters, corpus, work, progress, limit, None)


def _pruned(parameters: Pretrain, start: str, corpus: Any, work: Path, progress: Progress) -> tuple[Any, Any]:
    from tacit.documents.autoencoders.bart import BartAutoencoder
    from tacit.documents.bounds import ClipValue
    from tacit.documents.dp_bart import estimate_clip
    from tacit.documents.pretraining.prune import prune

    model = BartAutoencoder.from_pretrained(start)
    record, own = model.record, model.record.trained_bound()
    value = own.C if isinstance(own, ClipValue) else None  # the C of a norm is no bound of a value
    C = parameters.clip or value or record.sigma or 2 * estimate_clip(model, corpus).C
    prune(
        model, corpus, work, parameters.plan(), C=float(C), stages=parameters.stages,
        least_bleu=parameters.least_bleu, progress=_told(progress),
    )  # fmt: skip
    return model, {"stages": (model.record.pruning or {})["stages"]}


def _with_noise(parameters: Pretrain, start: str, corpus: Any, work: Path, progress: Progress) -> tuple[Any, Any]:
    from tacit.documents.autoencoders.base import load_for_release
    from tacit.documents.bounds import AnalyticGaussian, bound_from_dict

    model = load_for_release(start)
    if model.record.bound is None and parameters.clip is None:
        raise BadInputError("this model was not trained with clipping: give its C with 'clip', for example 0.1")
    bound = dict(model.record.bound or {"kind": parameters.bound})
    if parameters.clip is not None:
        bound["C"] = parameters.clip
    limit = bound_from_dict(bound)
    trained_for = {"noise": "gaussian", "delta": parameters.delta, "epsilons": parameters.budgets}
    model.record = replace(model.record, bound=limit.to_dict(), trained_for=trained_for)
    return model, _train(model, parameters, corpus, work, progress, limit, AnalyticGaussian(parameters.delta))


def _train(
    model: Any, parameters: Pretrain, corpus: Any, work: Path, progress: Progress, limit: Any, noise: Any
) -> dict[str, Any]:
    from tacit.documents.pretraining.loop import train

    found = train(model, corpus, parameters.plan(), work, bound=limit, noise=noise, progress=_told(progress))
    # Minutes belong to the costs: equal steps write equal files.
    return {name: found[name] for name in ("steps", "held_out_loss", "training_texts")}


def _told(progress: Progress) -> Any:
    return lambda step: progress(step.done, step.total)


def score(folder: Path) -> dict[str, float]:
    shown = {"held_out_bleu_without_noise": "held-out BLEU without noise", "held_out_loss": "held-out loss",
             "kept columns": "kept columns", "width": "width"}  # fmt: skip
    facts = read_json(folder / "facts.json")
    found = {shown[name]: float(value) for name, value in facts.items() if name in shown}
    # In a cube of n numbers the noise grows with sqrt(n) (section 6.6.1).
    return found | {"noise share": math.sqrt(found["kept columns"] / found["width"])}


def check(parameters: Pretrain, inputs: frozenset[str] = frozenset()) -> None:
    require("torch", extra="documents", purpose="training a rewriting model")
    require("sacrebleu", extra="audit", purpose="BLEU")
    if parameters.epsilon is not None and parameters.epsilons:
        raise BadInputError("'epsilon' and 'epsilons' are the same twice: leave one of them out")
    if (parameters.how == "noise") != bool(parameters.budgets):
        raise BadInputError("how = \"noise\" and the 'epsilons' to train for go together: give both, or none")
    if parameters.how == "autoencoder" and "start" in inputs:
        raise BadInputError("an autoencoder is trained from scratch: leave out 'start', or choose prune or noise")
    if parameters.how != "autoencoder" and "start" not in inputs:
        from tacit.documents.autoencoders.base import load_for_release

        load_for_release(parameters.start_from)


def fits(parameters: Pretrain, inputs: Mapping[str, Cell]) -> None:
    check_part(data_in(inputs, "corpus"), parameters.part, "part")


KIND = Kind(
    "pretrain", 2, Pretrain, run, score,
    {"corpus": Input(("data",), public=True), "start": Input(("pretrain",), required=False)}, check,
    measures=("held-out BLEU without noise", "held-out loss", "kept columns"), fits=fits,
    further=("width", "noise share"),
)  # fmt: skip
