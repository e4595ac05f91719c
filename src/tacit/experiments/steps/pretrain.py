"""`pretrain`: a rewriting model for a `rewrite` step, trained on data that is declared public.

    autoencoder   an ADePT from scratch, with a vocabulary of its own (sections 5.3 and 5.4)
    further       a model that is trained on without noise, with another clipping (section 6.3)
    prune         a BART with fewer encoder neurons (DP-BART-PR, Igamberdiev 2023, section 6.3.4)
    noise         trained on with clipping and the noise of one or more epsilons (DP-BART-PR+, section 6.3.5)

`corpus` is the data; `start` is the model that `further`, `prune` and `noise` begin with: an input (another pretrain
step), or the name of a built-in model or of one on the model hub in `start_from`. Everything is a function of the seed.

Data that is not declared public is refused: a model repeats what it was trained on. The study of exactly this mistake
(`experiments/memorization.toml`) plays it with public data.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from pydantic import Field

from tacit.documents.autoencoders.base import load_for_release
from tacit.documents.pretraining.corpus import PublicText
from tacit.documents.pretraining.folders import measure_values
from tacit.documents.pretraining.plan import PretrainingPlan
from tacit.errors import BadInputError, require
from tacit.experiments.config import Parameters
from tacit.experiments.inputs import check_part, data_in
from tacit.experiments.raw import read_json, read_part, write_json
from tacit.experiments.steps import Input, Inputs, Kind, PlannedCell, Progress
from tacit.jobs.pretrain import AutoencoderConfig, NoiseConfig, PretrainConfig, PruneConfig
from tacit.jobs.pretraining_runs import made


class Pretrain(Parameters):
    """public      the name that the text is known by; it is printed on the card of every release
    length      largest number of word pieces of a text
    words       a vocabulary of whole words: every other word is the same unknown one
    clip bound  C and what is clipped: l1 or l2 norm, or each value; an autoencoder without `clip` is trained without it
    vectors     public word vectors that an ADePT with whole words begins with
    importance  the neurons that `prune` prunes first, and of which `decoder_layer`; "bottleneck" prunes none
    keep_stages the stages of a pruning are kept, for `stage` of a rewrite step
    epsilon     the budget to train for (`noise`); as an axis it gives one model for each epsilon
    epsilons    several budgets in its place: one model for all of them
    content     frequent pieces count little (content / (content + frequency)), for budgets of a few bits
    keep        the weights with the "best" held-out loss, or the "last" ones, however much they were learned by heart
    """

    how: Literal["autoencoder", "further", "prune", "noise"] = "autoencoder"
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
    vectors: str | None = None
    importance: Literal["keys", "values", "random", "bottleneck"] = "keys"
    decoder_layer: int = Field(default=1, ge=1)
    keep_stages: bool = False
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

    def job(self, start: str, corpus: PublicText, work: Path) -> PretrainConfig:
        """The job that makes the model, from the name or folder that it starts with."""
        if self.how == "prune":
            return PruneConfig(
                model=start, text=corpus.texts, public=corpus.name, output=work, clip=self.clip, stages=self.stages,
                least_bleu=self.least_bleu, importance=self.importance, decoder_layer=self.decoder_layer,
            )  # fmt: skip
        if self.how == "noise":
            return NoiseConfig(
                model=start, text=corpus.texts, public=corpus.name, output=work, clip=self.clip,
                epsilons=tuple(self.budgets), delta=self.delta,
            )  # fmt: skip
        if self.how == "further":
            return AutoencoderConfig(
                start=start, text=corpus.texts, public=corpus.name, output=work, length=self.length, clip=self.clip,
                clip_by=None if self.clip is None else self.bound, unclipped=self.clip is None,
                held_out=self.held_out, seed=self.seed,
            )  # fmt: skip
        words = {"embedding": self.embedding} if self.vectors is None else {"vectors": self.vectors}
        return AutoencoderConfig(
            kind="adept", text=corpus.texts, public=corpus.name, output=work, length=self.length,
            vocabulary_size=self.vocabulary, lowercase=self.lowercase, whole_words=self.words, width=self.width,
            clip=self.clip, clip_by=None if self.clip is None else self.bound,
            unclipped=self.clip is None, held_out=self.held_out, seed=self.seed, **words,
        )  # fmt: skip

    def plan(self) -> PretrainingPlan:
        """How the model is trained."""
        return PretrainingPlan(
            steps=self.steps, batch_size=self.batch_size, learning_rate=self.learning_rate,
            evaluate_every=max(1, self.steps // (4 if self.keep == "best" else 1)), patience=1_000,
            held_out=self.held_out, plain_share=self.plain_share, mixed_share=self.mixed_share, dropout=self.dropout,
            content=self.content, epsilons=tuple(self.budgets), seed=self.seed,
        )  # fmt: skip


STAGES: Final = "stages"
"""Where the stages of a pruning lie in the folder of its step."""

FACTS: Final = ("steps", "held_out_loss", "training_texts", "stages")
"""What is kept of how a training went. Minutes belong to the costs: equal steps write equal files."""


def run(parameters: Pretrain, inputs: Inputs, folder: Path, progress: Progress) -> None:
    from tacit.documents.autoencoders.bottleneck import BottleneckAutoencoder
    from tacit.documents.pretraining.measures import held_out_bleu

    texts = [text for row in read_part(inputs["corpus"], parameters.part).texts for text in row]
    corpus = PublicText(texts=texts, name=parameters.public)
    work = folder / "training"
    start = str(inputs["start"] / "model") if "start" in inputs else parameters.start_from
    trained = made(
        parameters.job(start, corpus, work), corpus, lambda step: progress(step.done, step.total), parameters.plan()
    )
    model = trained.model
    model.record.corpora = list(dict.fromkeys([*model.record.corpora, corpus.name]))
    model.record.commands = [*model.record.commands, f"a step of the kind pretrain ({parameters.how})"]
    if parameters.how in ("autoencoder", "further"):
        measure_values(model, corpus)
    model.save_pretrained(folder / "model")
    if parameters.keep_stages:
        (folder / STAGES).mkdir()
        for stage in work.glob("stage-*"):
            shutil.move(stage, folder / STAGES / stage.name)
    bleu = held_out_bleu(model, corpus, parameters.held_out, lowercase=parameters.lowercase)
    shutil.rmtree(work, ignore_errors=True)
    facts: dict[str, object] = {name: trained.facts[name] for name in FACTS if name in trained.facts}
    kept = (model.record.bound or {}).get("kept")
    width = model.full_width if isinstance(model, BottleneckAutoencoder) else model.width
    facts |= bleu | {"kept columns": len(kept) if kept else model.width, "width": width}
    write_json(folder / "facts.json", facts)


def score(folder: Path) -> dict[str, float]:
    shown = {"held_out_bleu_without_noise": "held-out BLEU without noise", "held_out_loss": "held-out loss",
             "kept columns": "kept columns", "width": "width"}  # fmt: skip
    facts = read_json(folder / "facts.json")
    scores = {shown[name]: float(value) for name, value in facts.items() if name in shown}
    # In a cube of n numbers the noise grows with sqrt(n) (section 6.6.1).
    return scores | {"noise share": math.sqrt(scores["kept columns"] / scores["width"])}


def check(parameters: Pretrain, inputs: frozenset[str] = frozenset()) -> None:
    require("torch", extra="documents", purpose="training a rewriting model")
    require("sacrebleu", extra="audit", purpose="BLEU")
    if parameters.epsilon is not None and parameters.epsilons:
        raise BadInputError(
            "epsilon-twice",
            "'epsilon' and 'epsilons' are the same twice: leave one of them out",
        )
    if (parameters.how == "noise") != bool(parameters.budgets):
        raise BadInputError(
            "noise-and-epsilons",
            "how = \"noise\" and the 'epsilons' to train for go together: give both, or none",
        )
    if parameters.keep_stages and (parameters.how != "prune" or parameters.importance == "bottleneck"):
        raise BadInputError(
            "stages-without-pruning",
            "only the pruning of neurons has stages to keep: leave out 'keep_stages'",
        )
    if parameters.how == "autoencoder" and "start" in inputs:
        raise BadInputError(
            "autoencoder-with-start",
            "an autoencoder is trained from scratch: leave out 'start', or choose prune or noise",
        )
    if parameters.how != "autoencoder" and "start" not in inputs:
        load_for_release(parameters.start_from)


LATER: Final = ("vectors", "importance", "decoder_layer", "keep_stages")
"""Parameters that came later: they count where they are used, so that no earlier cell is run again."""


def content(parameters: Pretrain) -> dict[str, object]:
    """The values that the key is made from."""
    unused = {name for name in LATER if getattr(parameters, name) == Pretrain.model_fields[name].default}
    return parameters.model_dump(exclude=unused)


def fits(parameters: Pretrain, inputs: Mapping[str, PlannedCell]) -> None:
    check_part(data_in(inputs, "corpus"), parameters.part, "part")


KIND = Kind(
    "pretrain", 2, Pretrain, run, score,
    {"corpus": Input(("data",), public=True), "start": Input(("pretrain",), required=False)}, check, content,
    measures=("held-out BLEU without noise", "held-out loss", "kept columns"), fits=fits,
    further=("width", "noise share"),
)  # fmt: skip
