"""Rewriting models, trained on public text: new ones, pruned ones, ones that know noise, and weights between two.

made = tacit.jobs.pretrain.autoencoder("tatoeba.txt", public="Tatoeba English, CC BY 2.0 FR", output="bart")
made.bleu
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tacit.documents.pretraining.clipping import ClippingSettings
from tacit.documents.pretraining.corpus import read_public
from tacit.documents.pretraining.folders import is_complete, measure_values, save_measured
from tacit.errors import BadParameterError, require
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import (
    Batch,
    Delta,
    Device,
    Epsilons,
    Kind,
    LearningRate,
    Length,
    Model,
    Noise,
    Output,
    PublicName,
    PublicSeed,
    PublicText,
    Resume,
    Start,
    Steps,
    Vectors,
    VocabularySize,
)
from tacit.jobs.pretrain_refusals import (
    embedding_of_vectors,
    only_adept_in_eight_bits,
    vectors_of_another_model,
    vectors_of_word_pieces,
)
from tacit.jobs.running import on_its_device
from tacit.needs import BLEU, MODELS, Ability

if TYPE_CHECKING:
    from tacit.documents.pretraining.loop import OnStep

FEWEST_PIECES = 16
AN_AUTOENCODER = "A built-in name, a folder, or the name of a BART on the hub."

HeldOut = Annotated[int, Field(ge=1, description="Texts kept out of training, to measure on."), Option(Group.TRAINING)]
Batches = Annotated[Steps[int], Field(ge=1, description="Batches to learn from.")]
BatchSize = Annotated[Batch, Field(description="Texts of a batch."), Varied(old_names=("batch_size",))]
LargestRate = Annotated[LearningRate[float], Field(lt=1, description="The largest learning rate.")]
EvaluateEvery = Annotated[int, Field(ge=1, description="Steps between two checkpoints."), Option(Group.TRAINING)]
Patience = Annotated[
    int, Field(ge=1, description="Checkpoints without improvement before training stops."), Option(Group.TRAINING)
]
Dropout = Annotated[
    float | None,
    Field(ge=0, lt=1, description="Share of values that a BART drops while it learns; by default its own."),
    Option(Group.TRAINING),
]
Clip = Annotated[float | None, Field(gt=0, description="The clipping constant C."), Option(Group.TRAINING)]
ClipBy = Annotated[
    Literal["l1", "l2", "value"] | None,
    Field(description="What is clipped; by default what the model knows, for a new one value (bart) or l2."),
    Option(Group.TRAINING, old_names=("bound",)),
]
LatentDelta = Annotated[Delta[float], Field(description="delta of the Gaussian noise."), Varied(group=Group.TRAINING)]
TrainingNoise = Annotated[
    Noise[Literal["gaussian", "laplace"]], Field(description="Noise to train with."), Varied(group=Group.TRAINING)
]


class PublicTraining(Config):
    """Where a model goes, and how it is measured."""

    output: Annotated[Output[Path], Field(description="Folder for the model, its checkpoints and its log.")]
    public: PublicName = None
    held_out: HeldOut = 2_000
    half: Annotated[bool, Field(description="Save the weights in 16 bits."), Option(Group.MODEL)] = False
    device: Device = "auto"

    def needs(self) -> list[Ability]:
        return [MODELS, BLEU]


class Learning(PublicTraining):
    """How a model learns from public text."""

    steps: Batches = 20_000
    batch: BatchSize = 32
    learning_rate: LargestRate = 3e-4
    plain_share: Annotated[
        float,
        Field(ge=0, le=1, description="Share of texts shown in lower case without punctuation."),
        Option(Group.TRAINING),
    ] = 0.0
    mixed_share: Annotated[
        float,
        Field(
            ge=0,
            le=1,
            description="Share of texts with pieces of other texts, to learn copying instead of remembering.",
        ),
        Option(Group.TRAINING),
    ] = 0.0
    seed: PublicSeed = 0
    resume: Resume = False


class AutoencoderConfig(Learning):
    """A new autoencoder with its own vocabulary, or one that is trained on."""

    job: ClassVar[str] = "pretrain autoencoder"

    text: PublicText
    start: Annotated[
        Start[str | None],
        Field(
            description="Go on from this model, whose kind, vocabulary and shape are kept, and its clipping unless "
            "another is given; its length may grow."
        ),
        Varied(name="from", metavar="MODEL"),
    ] = None
    kind: Annotated[
        Kind[Literal["bart", "adept", "narrow"]],
        Field(description="bart, adept (LSTM), or narrow (trained with clipping and noise)."),
    ] = "bart"
    length: Annotated[Length, Field(ge=1, description="Largest number of pieces of a text.")] = 20
    vocabulary_size: Annotated[
        VocabularySize,
        Field(ge=FEWEST_PIECES, description="Number of word pieces, better thousands."),
        Varied(old_names=("vocabulary",)),
    ] = 8000
    whole_words: Annotated[
        bool,
        Field(description="A vocabulary of whole words: every other word is the same unknown one."),
        Option(Group.MODEL, old_names=("words",)),
    ] = False
    lowercase: Annotated[bool, Field(description="A vocabulary without capitals."), Option(Group.MODEL)] = False
    width: Annotated[
        int, Field(ge=1, description="Width of the model (hidden size of an ADePT)."), Option(Group.MODEL)
    ] = 192
    layers: Annotated[int, Field(ge=1, description="Layers of encoder and of decoder."), Option(Group.MODEL)] = 2
    heads: Annotated[int, Field(ge=1, description="Attention heads."), Option(Group.MODEL)] = 4
    feed_forward: Annotated[int, Field(ge=1, description="Width of the feed-forward layers."), Option(Group.MODEL)] = (
        384
    )
    embedding: Annotated[int, Field(ge=1, description="ADePT: width of the word pieces."), Option(Group.MODEL)] = 128
    vectors: Annotated[
        Vectors,
        Field(
            description="ADePT with whole words: public word vectors to begin with, a file in GloVe format or a name; "
            "their width is that of the words."
        ),
        Varied(group=Group.MODEL),
    ] = None
    latent_positions: Annotated[
        int, Field(ge=1, description="narrow: positions of the latent."), Option(Group.MODEL)
    ] = 8
    latent_width: Annotated[int, Field(ge=1, description="narrow: numbers of a position."), Option(Group.MODEL)] = 16
    clip: Clip = None
    clip_by: ClipBy = None
    unclipped: Annotated[
        bool,
        Field(description="Train without clipping; a bart does so by default, an adept with C 1."),
        Option(Group.TRAINING),
    ] = False
    epsilons: Annotated[
        Epsilons, Field(description="narrow: budgets to train for, from the start; may be repeated.")
    ] = ()
    delta: LatentDelta = 1e-5
    noise: TrainingNoise = "gaussian"
    join: Annotated[
        bool, Field(description="Join neighboring texts to longer ones, up to the length."), Option(Group.TRAINING)
    ] = False
    batch: BatchSize = 64
    learning_rate: LargestRate = 1e-3
    evaluate_every: EvaluateEvery = 500
    patience: Patience = 6
    eight_bits: Annotated[bool, Field(description="ADePT: save the weights in 8 bits."), Option(Group.MODEL)] = False

    @property
    def clipping(self) -> ClippingSettings:
        return ClippingSettings(self.clip, self.clip_by, self.unclipped)

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> Self:
        if self.kind != "adept" and self.width % self.heads:
            raise BadParameterError(
                "width-not-shared",
                "a width of {width} cannot be shared by {heads} heads: make {option.width} a multiple of "
                "{option.heads}",
                width=self.width,
                heads=self.heads,
            )
        return self

    @model_validator(mode="after")
    def _bounds_fit_together(self) -> Self:
        if self.unclipped and (self.clip is not None or self.clip_by is not None):
            raise BadParameterError(
                "clipped-and-unclipped",
                "{option.unclipped} and {option.clip} or {option.clip_by} exclude each other: leave one of them out",
            )
        if self.start is not None:
            return self
        if self.clip_by is not None and self.clip is None and self.kind == "bart" and not self.epsilons:
            raise BadParameterError(
                "bound-without-clip",
                "a bart is trained without clipping unless a C is given: add {option.clip} to {option.clip_by}",
            )
        if self.kind == "narrow" and not self.epsilons:
            raise BadParameterError(
                "narrow-without-epsilon",
                "a narrow model is trained for the noise it will meet: give {option.epsilons}, for example 250",
            )
        if self.unclipped and (self.epsilons or self.kind == "narrow"):
            raise BadParameterError(
                "noise-without-bound", "noise needs a bound: leave out {option.unclipped}, or {option.epsilons}"
            )
        return self

    @model_validator(mode="after")
    def _vectors_are_those_of_words(self) -> Self:
        if self.vectors is None:
            return self
        if self.kind != "adept" or self.start is not None:
            raise vectors_of_another_model()
        if not self.whole_words:
            raise vectors_of_word_pieces()
        if "embedding" in self.model_fields_set:
            raise embedding_of_vectors()
        return self

    @model_validator(mode="after")
    def _options_fit_the_model(self) -> Self:
        if self.start is not None and self.epsilons:
            raise BadParameterError(
                "epsilon-of-existing-model",
                "a model that exists is trained for an epsilon with 'tacit pretrain noise'",
            )
        if self.eight_bits and self.start is None and self.kind != "adept":
            raise only_adept_in_eight_bits()
        return self


class PruneConfig(Learning):
    """A BART with fewer encoder neurons (DP-BART-PR)."""

    job: ClassVar[str] = "pretrain prune"

    model: Annotated[
        Model[str], Field(description=f"A BART. {AN_AUTOENCODER}"), Varied(positional=True, metavar="MODEL")
    ]
    text: PublicText
    clip: Clip = None
    stages: Annotated[int, Field(description="Times to prune and train."), Option(Group.TRAINING)] = 6
    quantile: Annotated[
        float, Field(description="Share of what is left that a stage prunes."), Option(Group.TRAINING)
    ] = 0.25
    importance: Annotated[
        Literal["keys", "values", "random", "bottleneck"],
        Field(
            description="Neurons that go first: those that the keys or the values of the decoder's cross-attention "
            "read least, or, for comparison, random ones; 'bottleneck' trains a linear layer of the same width in "
            "place of pruning."
        ),
        Option(Group.TRAINING),
    ] = "keys"
    decoder_layer: Annotated[
        int, Field(ge=1, description="The decoder layer whose cross-attention is looked at."), Option(Group.TRAINING)
    ] = 1
    least_bleu: Annotated[
        float,
        Field(description="Stop with the first stage that repeats held-out texts worse than this BLEU."),
        Option(Group.TRAINING),
    ] = 95.0
    steps: Annotated[Batches, Field(description="Batches after each stage.")] = 500
    learning_rate: LargestRate = 1e-4
    held_out: HeldOut = 1_000
    dropout: Dropout = None

    @model_validator(mode="after")
    def _a_bottleneck_reads_all_layers(self) -> Self:
        if self.importance == "bottleneck" and self.decoder_layer != 1:
            raise BadParameterError(
                "layer-of-a-bottleneck",
                "a bottleneck stands before all layers of the decoder: leave out {option.decoder_layer}",
            )
        return self


class NoiseConfig(Learning):
    """A model that is trained on with clipping and the noise of some epsilons (DP-BART-PR+)."""

    job: ClassVar[str] = "pretrain noise"

    model: Annotated[
        Model[str],
        Field(description="A pruned BART (folder), or any other autoencoder."),
        Varied(positional=True, metavar="MODEL"),
    ]
    text: PublicText
    epsilons: Annotated[Epsilons, Field(min_length=1)]
    delta: LatentDelta = 1e-5
    noise: TrainingNoise = "gaussian"
    clip: Clip = None
    clip_by: ClipBy = None
    content: Annotated[
        float | None,
        Field(
            gt=0,
            description="Let rare pieces count more, for budgets of a few bits: content / (content + frequency).",
        ),
        Option(Group.TRAINING),
    ] = None
    evaluate_every: EvaluateEvery = 500
    patience: Patience = 6
    dropout: Dropout = None


class AverageConfig(PublicTraining):
    """Weights between two models of one shape; the text only serves to measure the result."""

    job: ClassVar[str] = "pretrain average"

    start: Annotated[
        Start[str],
        Field(description="The model before noisy training (folder)."),
        Varied(positional=True, metavar="START"),
    ]
    model: Annotated[
        Model[str], Field(description="The model after it (folder)."), Varied(positional=True, metavar="MODEL")
    ]
    text: PublicText
    share: Annotated[
        float, Field(description="Share of MODEL in the weights; the rest is of START."), Option(Group.MODEL)
    ] = 0.5


PretrainConfig = AutoencoderConfig | PruneConfig | NoiseConfig | AverageConfig


@dataclass(frozen=True)
class Pretrained:
    """The folder of a model, and its BLEU on held-out texts without noise; None if it was complete before."""

    folder: Path
    bleu: float | None

    def __str__(self) -> str:
        if self.bleu is None:
            return f"'{self.folder}' is already complete: there is nothing to resume"
        return f"model in {self.folder}: BLEU {self.bleu:.1f} on held-out texts without noise"


@on_its_device
def run(config: PretrainConfig, progress: OnStep | None = None, command: str | None = None) -> Pretrained:
    """The model that a configuration describes, saved in its folder; `command` says in its record how it was made."""
    corpus = read_public(config.text, config.public)
    if is_complete(config.output, resume=not isinstance(config, AverageConfig) and config.resume):
        return Pretrained(config.output, None)
    require("torch", extra="documents", purpose="training a model")
    from tacit.jobs.pretraining_runs import made as made_by

    made = made_by(config, corpus, progress)
    record = made.model.record
    record.commands = [*record.commands, command or described(config)]
    record.corpora = list(dict.fromkeys([*record.corpora, corpus.name]))
    if isinstance(config, AutoencoderConfig):
        measure_values(made.model, corpus)
    return Pretrained(config.output, save_measured(made.model, corpus, config.output, made.saving, made.facts))


def autoencoder(
    text: object, *, output: str | Path, public: str, progress: OnStep | None = None, **options: Any
) -> Pretrained:
    """A new autoencoder of some public text; options as in `AutoencoderConfig`."""
    return run(AutoencoderConfig(text=text, output=Path(output), public=public, **options), progress)


def described(config: PretrainConfig) -> str:
    """A configuration in one line, without the folders that its files lie in.

    >>> described(AverageConfig(start="here/a", model="here/b", text=["one"], output="there/c", public="me"))
    'job = "pretrain average"; output = "c"; public = "me"; start = "a"; model = "b"; text = "(in memory)"'
    """
    places = {name: getattr(config, name, None) for name in ("text", "start", "model", "output")}
    shown = {name: Path(place).name for name, place in places.items() if isinstance(place, str | Path)}
    return "; ".join(config.model_copy(update=shown).to_toml().splitlines())
