"""The four trainings on public text, from their options to a model that is not yet saved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tacit.documents.autoencoders.base import Autoencoder, Record, load_for_release
from tacit.documents.autoencoders.vocabulary import train_vocabulary
from tacit.documents.bounds import AnalyticGaussian, Laplace, LatentNoise
from tacit.documents.pretraining.average import average_weights
from tacit.documents.pretraining.clipping import ClippingSettings
from tacit.documents.pretraining.corpus import PublicText
from tacit.documents.pretraining.folders import Saving
from tacit.documents.pretraining.plan import PretrainingPlan
from tacit.documents.pretraining.prune import BOTTLENECK, PruningRule, narrowed, prune
from tacit.errors import BadParameterError
from tacit.jobs.pretrain import (
    AutoencoderConfig,
    AverageConfig,
    Learning,
    NoiseConfig,
    PretrainConfig,
    PruneConfig,
    PublicTraining,
    described,
)
from tacit.jobs.pretrain_refusals import only_adept_in_eight_bits
from tacit.vectors.load import load_vectors

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from tacit.documents.pretraining.loop import OnStep


@dataclass(frozen=True)
class Made:
    """A model that is trained and not yet saved; `facts` say how it went."""

    model: Autoencoder
    facts: dict[str, object]
    saving: Saving


def made(
    config: PretrainConfig, corpus: PublicText, progress: OnStep | None, plan: PretrainingPlan | None = None
) -> Made:
    """The model of a configuration; `plan` says how it is trained where that is not as the configuration says."""
    match config:
        case AutoencoderConfig(start=None):
            return _new(config, corpus, progress, plan)
        case AutoencoderConfig():
            return _trained_on(config, corpus, progress, plan)
        case PruneConfig():
            return _pruned(config, corpus, progress, plan)
        case NoiseConfig():
            return _with_noise(config, corpus, progress, plan)
        case AverageConfig():
            return _average(config)


def _new(config: AutoencoderConfig, corpus: PublicText, progress: OnStep | None, plan: PretrainingPlan | None) -> Made:
    import torch

    from tacit.documents.autoencoders.lstm import LstmAutoencoder
    from tacit.documents.pretraining.loop import train
    from tacit.documents.pretraining.word_vectors import begin_with_vectors

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
    tokenizer = train_vocabulary(texts, config.vocabulary_size, lowercase=config.lowercase, words=config.whole_words)
    model = _new_model(config, tokenizer, record)
    begun = begin_with_vectors(model, config.vectors) if isinstance(model, LstmAutoencoder) and config.vectors else {}
    facts = train(
        model, corpus, plan or _plan(config), config.output, bound=limit,
        noise=_noise(config) if config.epsilons else None, resume=config.resume, progress=progress,
    )  # fmt: skip
    return Made(model, {**facts, **begun}, _saving(config, lowercase=config.lowercase))


def _new_model(config: AutoencoderConfig, tokenizer: Tokenizer, record: Record) -> Autoencoder:
    from tacit.documents.autoencoders.bart import BartAutoencoder
    from tacit.documents.autoencoders.lstm import LstmAutoencoder
    from tacit.documents.autoencoders.narrow import NarrowAutoencoder

    if config.kind == "adept":
        width = config.embedding if config.vectors is None else load_vectors(config.vectors).dimension
        return LstmAutoencoder.create(tokenizer, record, length=config.length, embedding=width, hidden=config.width)
    shape = {name: getattr(config, name) for name in ("width", "layers", "heads", "feed_forward")}
    if config.kind == "narrow":
        return NarrowAutoencoder.create_narrow(
            tokenizer, record, length=config.length, latent_width=config.latent_width, **shape
        )
    return BartAutoencoder.create(tokenizer, record, **shape)


def _trained_on(
    config: AutoencoderConfig, corpus: PublicText, progress: OnStep | None, plan: PretrainingPlan | None
) -> Made:
    """A model that is trained on without noise, on texts of its own length or longer ones."""
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
    facts = train(
        model, corpus, plan or _plan(config), config.output, bound=limit, resume=config.resume, progress=progress
    )
    return Made(model, facts, _saving(config, lowercase=_lowercase(model)))


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


def _pruned(config: PruneConfig, corpus: PublicText, progress: OnStep | None, plan: PretrainingPlan | None) -> Made:
    from tacit.documents.autoencoders.bart import BartAutoencoder

    model = BartAutoencoder.from_pretrained(config.model)
    plan = plan or _plan(config, evaluate_every=max(1, config.steps // 2), patience=1_000)
    limit_of_values = ClippingSettings(config.clip).for_pruning(model, corpus)
    if config.importance == BOTTLENECK:
        narrow = narrowed(
            model, corpus, config.output, plan, C=limit_of_values, stages=config.stages, quantile=config.quantile,
            resume=config.resume, progress=progress,
        )  # fmt: skip
        return Made(narrow, {"stages": config.stages, "kept": narrow.width}, _saving(config))
    limit = prune(
        model, corpus, config.output, plan, C=limit_of_values, stages=config.stages, quantile=config.quantile,
        least_bleu=config.least_bleu, rule=PruningRule(config.importance, config.decoder_layer),
        command=described(config), resume=config.resume, progress=progress,
    )  # fmt: skip
    facts = {"stages": (model.record.pruning or {}).get("stages"), "kept": len(limit.kept or ())}
    return Made(model, facts, _saving(config))


def _with_noise(config: NoiseConfig, corpus: PublicText, progress: OnStep | None, plan: PretrainingPlan | None) -> Made:
    from tacit.documents.pretraining.loop import train

    model = load_for_release(config.model)
    limit, other = ClippingSettings(config.clip, config.clip_by).for_noise(model)
    known = None if other else min(model.record.epsilons(), default=None)
    model.record = replace(model.record, bound=limit.to_dict(), trained_for=_trained_for(config))
    facts = train(
        model, corpus, plan or _plan(config, known_epsilon=known), config.output, bound=limit, noise=_noise(config),
        resume=config.resume, progress=progress,
    )  # fmt: skip
    return Made(model, facts, _saving(config, lowercase=_lowercase(model)))


def _average(config: AverageConfig) -> Made:
    model = average_weights(load_for_release(config.start), load_for_release(config.model), config.share)
    return Made(model, {"share": config.share}, _saving(config, lowercase=_lowercase(model)))


# Parts ----------------------------------------------------------------------------------------------------------------

_OF_THE_PLAN = (
    "steps", "learning_rate", "evaluate_every", "patience", "held_out", "plain_share", "mixed_share",
    "join", "dropout", "content", "epsilons", "seed",
)  # fmt: skip


def _plan(config: Learning, **more: Any) -> PretrainingPlan:
    """How to train: what the configuration says, and the plan's own value where it has no such option."""
    shared = {name: getattr(config, name) for name in _OF_THE_PLAN if name in type(config).model_fields}
    return PretrainingPlan(batch_size=config.batch, **shared, **more)


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
    return AnalyticGaussian(config.delta) if config.noise == "gaussian" else Laplace()


def _trained_for(config: AutoencoderConfig | NoiseConfig) -> dict[str, object] | None:
    if not config.epsilons:
        return None
    delta = config.delta if config.noise == "gaussian" else 0.0
    return {"noise": config.noise, "delta": delta, "epsilons": list(config.epsilons)}
