"""Rewriting models, trained on public text: new ones, pruned ones, ones that know noise, and weights between two.

made = tacit.jobs.pretrain.autoencoder("tatoeba.txt", public="Tatoeba English, CC BY 2.0 FR", output="bart")
made.bleu
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from tacit.documents.pretraining.clipping import Clipping
from tacit.documents.pretraining.corpus import PublicText, read_public
from tacit.documents.pretraining.folders import Saving, is_complete, measure_values, save_measured
from tacit.errors import BadParameterError, require
from tacit.jobs.config import Config, Group, Option
from tacit.jobs.fields import Batch, LearningRate, Output, PublicName, PublicSeed, Resume, Source
from tacit.needs import BLEU, MODELS, Ability

if TYPE_CHECKING:
    from tacit.documents.autoencoders.base import Autoencoder
    from tacit.documents.bounds import LatentNoise
    from tacit.documents.pretraining.loop import OnStep

FEWEST_PIECES = 16
AN_AUTOENCODER = "A built-in name, a folder, or the name of a BART on the hub."

Text = Annotated[
    Source, Field(description="Public text, one per line, UTF-8."), Option(Group.DATA, positional=True, metavar="TEXT")
]
HeldOut = Annotated[int, Field(ge=1, description="Texts kept out of training, to measure on."), Option(Group.TRAINING)]
Steps = Annotated[int, Field(ge=1, description="Batches to learn from."), Option(Group.TRAINING)]
BatchSize = Annotated[
    Batch, Field(ge=1, description="Texts of a batch."), Option(Group.TRAINING, old_names=("--batch-size",))
]
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
Bound = Annotated[
    Literal["l1", "l2", "value"] | None,
    Field(description="What is clipped; by default what the model knows, for a new one value (bart) or l2."),
    Option(Group.TRAINING),
]
LatentDelta = Annotated[float, Field(description="delta of the Gaussian noise."), Option(Group.TRAINING)]
NoiseName = Annotated[Literal["gaussian", "laplace"], Field(description="Noise to train with."), Option(Group.TRAINING)]
Budgets = tuple[Annotated[float, Field(gt=0)], ...]


class PublicTraining(Config):
    """Where a model goes, and how it is measured."""

    output: Annotated[Output, Field(description="Folder for the model, its checkpoints and its log.")]
    public: PublicName = None
    held_out: HeldOut = 2_000
    half: Annotated[bool, Field(description="Save the weights in 16 bits."), Option(Group.MODEL)] = False

    def needs(self) -> list[Ability]:
        return [MODELS, BLEU]


class Learning(PublicTraining):
    """How a model learns from public text."""

    steps: Steps = 20_000
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

    text: Text
    start: Annotated[
        str | None,
        Field(
            description="Go on from this model, whose kind, vocabulary and shape are kept, and its clipping unless "
            "another is given; its length may grow."
        ),
        Option(Group.MODEL, name="from", metavar="MODEL"),
    ] = None
    kind: Annotated[
        Literal["bart", "adept", "narrow"],
        Field(description="bart, adept (LSTM), or narrow (trained with clipping and noise)."),
        Option(Group.MODEL),
    ] = "bart"
    length: Annotated[int, Field(ge=1, description="Largest number of pieces of a text."), Option(Group.MODEL)] = 20
    vocabulary: Annotated[
        int, Field(ge=FEWEST_PIECES, description="Number of word pieces, better thousands."), Option(Group.MODEL)
    ] = 8000
    words: Annotated[
        bool,
        Field(description="A vocabulary of whole words: every other word is the same unknown one."),
        Option(Group.MODEL),
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
    latent_positions: Annotated[
        int, Field(ge=1, description="narrow: positions of the latent."), Option(Group.MODEL)
    ] = 8
    latent_width: Annotated[int, Field(ge=1, description="narrow: numbers of a position."), Option(Group.MODEL)] = 16
    clip: Clip = None
    bound: Bound = None
    unclipped: Annotated[
        bool,
        Field(description="Train without clipping; a bart does so by default, an adept with C 1."),
        Option(Group.TRAINING),
    ] = False
    epsilons: Annotated[
        Budgets,
        Field(description="narrow: budgets to train for, from the start; may be repeated."),
        Option(Group.TRAINING),
    ] = ()
    delta: LatentDelta = 1e-5
    noise: NoiseName = "gaussian"
    join: Annotated[
        bool, Field(description="Join neighboring texts to longer ones, up to the length."), Option(Group.TRAINING)
    ] = False
    batch: BatchSize = 64
    learning_rate: LargestRate = 1e-3
    evaluate_every: EvaluateEvery = 500
    patience: Patience = 6
    eight_bits: Annotated[bool, Field(description="ADePT: save the weights in 8 bits."), Option(Group.MODEL)] = False

    @property
    def clipping(self) -> Clipping:
        return Clipping(self.clip, self.bound, self.unclipped)

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
        if self.unclipped and (self.clip is not None or self.bound is not None):
            raise BadParameterError(
                "clipped-and-unclipped",
                "{option.unclipped} and {option.clip} or {option.bound} exclude each other: leave one of them out",
            )
        if self.start is not None:
            return self
        if self.bound is not None and self.clip is None and self.kind == "bart" and not self.epsilons:
            raise BadParameterError(
                "bound-without-clip",
                "a bart is trained without clipping unless a C is given: add {option.clip} to {option.bound}",
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
        str, Field(description=f"A BART. {AN_AUTOENCODER}"), Option(Group.MODEL, positional=True, metavar="MODEL")
    ]
    text: Text
    clip: Clip = None
    stages: Annotated[int, Field(description="Times to prune and train."), Option(Group.TRAINING)] = 6
    quantile: Annotated[
        float, Field(description="Share of what is left that a stage prunes."), Option(Group.TRAINING)
    ] = 0.25
    least_bleu: Annotated[
        float,
        Field(description="Stop with the first stage that repeats held-out texts worse than this BLEU."),
        Option(Group.TRAINING),
    ] = 95.0
    steps: Annotated[int, Field(ge=1, description="Batches after each stage."), Option(Group.TRAINING)] = 500
    learning_rate: LargestRate = 1e-4
    held_out: HeldOut = 1_000
    dropout: Dropout = None


class NoiseConfig(Learning):
    """A model that is trained on with clipping and the noise of some epsilons (DP-BART-PR+)."""

    job: ClassVar[str] = "pretrain noise"

    model: Annotated[
        str,
        Field(description="A pruned BART (folder), or any other autoencoder."),
        Option(Group.MODEL, positional=True, metavar="MODEL"),
    ]
    text: Text
    epsilons: Annotated[
        Budgets,
        Field(min_length=1, description="The budget to train for; several make one model for all."),
        Option(Group.TRAINING),
    ]
    delta: LatentDelta = 1e-5
    noise: NoiseName = "gaussian"
    clip: Clip = None
    bound: Bound = None
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
        str,
        Field(description="The model before noisy training (folder)."),
        Option(Group.MODEL, positional=True, metavar="START"),
    ]
    model: Annotated[
        str, Field(description="The model after it (folder)."), Option(Group.MODEL, positional=True, metavar="MODEL")
    ]
    text: Text
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


@dataclass(frozen=True)
class _Made:
    """A model that is trained and not yet saved; `facts` say how it went."""

    model: Autoencoder
    facts: dict[str, Any]
    saving: Saving


def run(config: PretrainConfig, progress: OnStep | None = None, command: str | None = None) -> Pretrained:
    """The model that a configuration describes, saved in its folder; `command` says in its record how it was made."""
    corpus = read_public(config.text, config.public)
    if is_complete(config.output, resume=not isinstance(config, AverageConfig) and config.resume):
        return Pretrained(config.output, None)
    require("torch", extra="documents", purpose="training a model")
    made = _made(config, corpus, progress)
    record = made.model.record
    record.commands = [*record.commands, command or described(config)]
    record.corpora = list(dict.fromkeys([*record.corpora, corpus.name]))
    if isinstance(config, AutoencoderConfig):
        measure_values(made.model, corpus)
    return Pretrained(config.output, save_measured(made.model, corpus, config.output, made.saving, made.facts))


def autoencoder(
    text: Any, *, output: str | Path, public: str, progress: OnStep | None = None, **options: Any
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


# The four trainings ---------------------------------------------------------------------------------------------------


def _made(config: PretrainConfig, corpus: PublicText, progress: OnStep | None) -> _Made:
    match config:
        case AutoencoderConfig(start=None):
            return _new(config, corpus, progress)
        case AutoencoderConfig():
            return _trained_on(config, corpus, progress)
        case PruneConfig():
            return _pruned(config, corpus, progress)
        case NoiseConfig():
            return _with_noise(config, corpus, progress)
        case AverageConfig():
            return _average(config)


def _new(config: AutoencoderConfig, corpus: PublicText, progress: OnStep | None) -> _Made:
    import torch

    from tacit.documents.autoencoders.base import Record
    from tacit.documents.autoencoders.vocabulary import train_vocabulary
    from tacit.documents.pretraining.loop import train

    limit = config.clipping.of_new(config.kind, noisy=bool(config.epsilons))
    positions = {"bart": config.length, "adept": 2, "narrow": config.latent_positions}
    record = Record(
        kind=config.kind,
        positions=positions[config.kind],
        bound=None if limit is None else limit.to_dict(),
        trained_for=_trained_for(config),
    )
    torch.manual_seed(config.seed)
    texts = corpus.split(config.held_out)[0]
    tokenizer = train_vocabulary(texts, config.vocabulary, lowercase=config.lowercase, words=config.words)
    model = _new_model(config, tokenizer, record)
    facts = train(
        model, corpus, _plan(config), config.output, bound=limit, noise=_noise(config) if config.epsilons else None,
        resume=config.resume, progress=progress,
    )  # fmt: skip
    return _Made(model, facts, _saving(config, lowercase=config.lowercase))


def _new_model(config: AutoencoderConfig, tokenizer: Any, record: Any) -> Autoencoder:
    from tacit.documents.autoencoders.bart import BartAutoencoder
    from tacit.documents.autoencoders.lstm import LstmAutoencoder
    from tacit.documents.autoencoders.narrow import NarrowAutoencoder

    if config.kind == "adept":
        return LstmAutoencoder.create(
            tokenizer, record, length=config.length, embedding=config.embedding, hidden=config.width
        )
    shape = {name: getattr(config, name) for name in ("width", "layers", "heads", "feed_forward")}
    if config.kind == "narrow":
        return NarrowAutoencoder.create_narrow(
            tokenizer, record, length=config.length, latent_width=config.latent_width, **shape
        )
    return BartAutoencoder.create(tokenizer, record, **shape)


def _trained_on(config: AutoencoderConfig, corpus: PublicText, progress: OnStep | None) -> _Made:
    """A model that is trained on without noise, on texts of its own length or longer ones."""
    from tacit.documents.autoencoders.base import load_for_release
    from tacit.documents.pretraining.loop import train

    model = load_for_release(str(config.start))
    if config.eight_bits and model.kind != "adept":
        raise only_adept_in_eight_bits()
    if model.record.trained_for is not None:
        raise BadParameterError(
            "model-knows-noise",
            "this model was trained with noise, which it would forget: use 'tacit pretrain noise'",
        )
    if config.length > model.length:
        model = _lengthened(model, config)
    limit = config.clipping.of(model)
    model.record = replace(model.record, bound=None if limit is None else limit.to_dict())
    facts = train(model, corpus, _plan(config), config.output, bound=limit, resume=config.resume, progress=progress)
    return _Made(model, facts, _saving(config, lowercase=_lowercase(model)))


def _lengthened(model: Autoencoder, config: AutoencoderConfig) -> Autoencoder:
    import torch

    from tacit.documents.autoencoders.bart import BartAutoencoder

    if not isinstance(model, BartAutoencoder) or model.kind != "bart":
        raise BadParameterError(
            "only-bart-grows",
            "only a BART can be made longer: leave out {option.length}, or give {length}",
            length=model.length,
        )
    torch.manual_seed(config.seed)
    return model.lengthened(config.length)


def _pruned(config: PruneConfig, corpus: PublicText, progress: OnStep | None) -> _Made:
    from tacit.documents.autoencoders.bart import BartAutoencoder
    from tacit.documents.pretraining.prune import prune

    model = BartAutoencoder.from_pretrained(config.model)
    limit = prune(
        model, corpus, config.output, _plan(config, evaluate_every=max(1, config.steps // 2), patience=1_000),
        C=Clipping(config.clip).for_pruning(model, corpus), stages=config.stages, quantile=config.quantile,
        least_bleu=config.least_bleu, resume=config.resume, progress=progress,
    )  # fmt: skip
    facts = {"stages": (model.record.pruning or {}).get("stages"), "kept": len(limit.kept or ())}
    return _Made(model, facts, _saving(config))


def _with_noise(config: NoiseConfig, corpus: PublicText, progress: OnStep | None) -> _Made:
    from tacit.documents.autoencoders.base import load_for_release
    from tacit.documents.pretraining.loop import train

    model = load_for_release(config.model)
    limit, other = Clipping(config.clip, config.bound).for_noise(model)
    known = None if other else min(model.record.epsilons(), default=None)
    model.record = replace(model.record, bound=limit.to_dict(), trained_for=_trained_for(config))
    facts = train(
        model, corpus, _plan(config, known_epsilon=known), config.output, bound=limit, noise=_noise(config),
        resume=config.resume, progress=progress,
    )  # fmt: skip
    return _Made(model, facts, _saving(config, lowercase=_lowercase(model)))


def _average(config: AverageConfig) -> _Made:
    from tacit.documents.autoencoders.base import load_for_release
    from tacit.documents.pretraining.average import average_weights

    model = average_weights(load_for_release(config.start), load_for_release(config.model), config.share)
    return _Made(model, {"share": config.share}, _saving(config, lowercase=_lowercase(model)))


# Parts ----------------------------------------------------------------------------------------------------------------

_OF_THE_PLAN = (
    "steps", "learning_rate", "evaluate_every", "patience", "held_out", "plain_share", "mixed_share",
    "join", "dropout", "content", "epsilons", "seed",
)  # fmt: skip


def _plan(config: Learning, **more: Any) -> Any:
    """How to train: what the configuration says, and the plan's own value where it has no such option."""
    from tacit.documents.pretraining.loop import Plan

    shared = {name: getattr(config, name) for name in _OF_THE_PLAN if name in type(config).model_fields}
    return Plan(batch_size=config.batch, **shared, **more)


def _saving(config: PublicTraining, *, lowercase: bool = False) -> Saving:
    return Saving(
        held_out=config.held_out,
        join=isinstance(config, AutoencoderConfig) and config.join,
        lowercase=lowercase,
        half=config.half,
        eight_bits=isinstance(config, AutoencoderConfig) and config.eight_bits,
    )


def _lowercase(model: Autoencoder) -> bool:
    """Whether the BLEU of a model was measured without capitals."""
    return bool(model.record.results.get("bleu_lowercase", False))


def _noise(config: AutoencoderConfig | NoiseConfig) -> LatentNoise:
    from tacit.documents.bounds import AnalyticGaussian, Laplace

    return AnalyticGaussian(config.delta) if config.noise == "gaussian" else Laplace()


def _trained_for(config: AutoencoderConfig | NoiseConfig) -> dict[str, Any] | None:
    if not config.epsilons:
        return None
    delta = config.delta if config.noise == "gaussian" else 0.0
    return {"noise": config.noise, "delta": delta, "epsilons": list(config.epsilons)}


def only_adept_in_eight_bits() -> BadParameterError:
    return BadParameterError(
        "only-adept-in-eight-bits",
        "only an ADePT ({option.kind[adept]}) can be saved in 8 bits: use {option.half}",
    )
