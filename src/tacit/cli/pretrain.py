"""`tacit pretrain`: train rewriting models on public text."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.sanitized import sanitized
from tacit.errors import BadInputError, BadParameterError, require

app = typer.Typer(
    help="Train the models behind document-level rewriting, on public text only.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command()(sanitized)

FEWEST_PIECES = 16


class Kind(StrEnum):
    bart = "bart"
    adept = "adept"
    narrow = "narrow"


class NoiseKind(StrEnum):
    gaussian = "gaussian"
    laplace = "laplace"


class BoundKind(StrEnum):
    l1 = "l1"
    l2 = "l2"
    value = "value"


Text = Annotated[Path, typer.Argument(help="Public text, one per line, UTF-8.")]
Output = Annotated[Path, typer.Option("-o", "--output", help="Folder for the model, its checkpoints and its log.")]
Public = Annotated[
    str | None,
    typer.Option("--public", metavar="NAME", help="Declare the text public, by the name and license it is known by."),
]
Steps = Annotated[int, typer.Option(help="Batches to learn from.")]
Batch = Annotated[int, typer.Option("--batch-size", help="Texts of a batch.")]
Rate = Annotated[float, typer.Option("--learning-rate", help="The largest learning rate.")]
Every = Annotated[int, typer.Option("--evaluate-every", help="Steps between two checkpoints.")]
Patience = Annotated[int, typer.Option(help="Checkpoints without improvement before training stops.")]
HeldOut = Annotated[int, typer.Option("--held-out", help="Texts kept out of training, to measure on.")]
Join = Annotated[bool, typer.Option("--join", help="Join neighboring texts to longer ones, up to the length.")]
Plain = Annotated[float, typer.Option(help="Share of texts shown in lower case without punctuation.")]
Mixed = Annotated[
    float, typer.Option(help="Share of texts with pieces of other texts, to learn copying instead of remembering.")
]
Dropout = Annotated[
    float | None, typer.Option(help="Share of values that a BART drops while it learns; by default its own.")
]
Content = Annotated[
    float | None,
    typer.Option(help="Let rare pieces count more, for budgets of a few bits: content / (content + frequency)."),
]
Seed = Annotated[int, typer.Option(help="Seed of the (public) randomness.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with a training that was stopped.")]
Half = Annotated[bool, typer.Option("--half", help="Save the weights in 16 bits.")]
EightBits = Annotated[bool, typer.Option("--eight-bits", help="ADePT: save the weights in 8 bits.")]
Delta = Annotated[float, typer.Option(help="delta of the Gaussian noise.")]


@app.command()
def autoencoder(
    text: Text,
    output: Output,
    public: Public = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="MODEL",
            help="Go on from this model, whose kind, vocabulary and shape are kept, and its clipping unless another is "
            "given; --length may be larger.",
        ),
    ] = None,
    kind: Annotated[Kind, typer.Option(help="bart, adept (LSTM), or narrow (trained with clipping and noise).")] = (
        Kind.bart
    ),
    length: Annotated[int, typer.Option(help="Largest number of pieces of a text.")] = 20,
    vocabulary: Annotated[int, typer.Option(help="Number of word pieces.")] = 8000,
    words: Annotated[
        bool, typer.Option("--words", help="A vocabulary of whole words: every other word is the same unknown one.")
    ] = False,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="A vocabulary without capitals.")] = False,
    width: Annotated[int, typer.Option(help="Width of the model (hidden size of an ADePT).")] = 192,
    layers: Annotated[int, typer.Option(help="Layers of encoder and of decoder.")] = 2,
    heads: Annotated[int, typer.Option(help="Attention heads.")] = 4,
    feed_forward: Annotated[int, typer.Option(help="Width of the feed-forward layers.")] = 384,
    embedding: Annotated[int, typer.Option(help="ADePT: width of the word pieces.")] = 128,
    latent_positions: Annotated[int, typer.Option(help="narrow: positions of the latent.")] = 8,
    latent_width: Annotated[int, typer.Option(help="narrow: numbers of a position.")] = 16,
    clip: Annotated[float | None, typer.Option(help="Train with clipping to this C.")] = None,
    bound: Annotated[BoundKind | None, typer.Option(help="What is clipped; value for bart, else l2.")] = None,
    unclipped: Annotated[
        bool, typer.Option("--unclipped", help="Train without clipping; a bart does so by default, an adept with C 1.")
    ] = False,
    epsilon: Annotated[
        list[float] | None, typer.Option(help="narrow: budgets to train for, from the start; may be repeated.")
    ] = None,
    delta: Delta = 1e-5,
    noise: Annotated[NoiseKind, typer.Option(help="Noise to train with.")] = NoiseKind.gaussian,
    plain_share: Plain = 0.0,
    mixed_share: Mixed = 0.0,
    join: Join = False,
    steps: Steps = 20_000,
    batch_size: Batch = 64,
    learning_rate: Rate = 1e-3,
    evaluate_every: Every = 500,
    patience: Patience = 6,
    held_out: HeldOut = 2_000,
    seed: Seed = 0,
    half: Half = False,
    eight_bits: EightBits = False,
    resume: Resume = False,
) -> None:
    """Train an autoencoder from scratch, with its own vocabulary, or go on from a model.

    Example: tacit pretrain autoencoder tatoeba.txt --public "Tatoeba English, CC BY 2.0 FR" -o bart
    """
    corpus = _public(text, public)
    shape = {"width": width, "layers": layers, "heads": heads, "feed_forward": feed_forward}
    _check_shape(
        {**shape, "length": length, "embedding": embedding, "latent_positions": latent_positions,
         "latent_width": latent_width}, vocabulary, adept=kind is Kind.adept
    )  # fmt: skip
    if _is_complete(output, resume):
        return
    torch = require("torch", extra="documents", purpose="training a model")
    from tacit.documents.autoencoders.base import Record
    from tacit.documents.autoencoders.vocabulary import train_vocabulary
    from tacit.documents.bounds import bound_from_dict
    from tacit.documents.pretraining.loop import Plan, train

    plan = Plan(
        steps=steps,
        batch_size=batch_size,
        learning_rate=learning_rate,
        evaluate_every=evaluate_every,
        patience=patience,
        held_out=held_out,
        plain_share=plain_share,
        mixed_share=mixed_share,
        join=join,
        epsilons=tuple(epsilon or ()),
        seed=seed,
    )
    if unclipped and (clip is not None or bound is not None):
        raise BadParameterError("--unclipped and --clip or --bound exclude each other: leave one of them out")
    if bound is not None and clip is None and start is None and kind is Kind.bart and not plan.epsilons:
        raise BadParameterError("a bart is trained without clipping unless a C is given: add --clip to --bound")
    if start is not None:
        clipping = Clipping(clip, bound, unclipped)
        _go_on(start, corpus, plan, output, length, clipping, resume=resume, half=half, eight_bits=eight_bits)
        return
    if eight_bits and kind is not Kind.adept:
        raise BadParameterError("only an ADePT (--kind adept) can be saved in 8 bits: use --half")
    if kind is Kind.narrow and not plan.epsilons:
        raise BadParameterError("a narrow model is trained for the noise it will meet: give --epsilon, for example 250")
    if unclipped and (plan.epsilons or kind is Kind.narrow):
        raise BadParameterError("noise needs a bound: leave out --unclipped, or --epsilon")
    if clip is None and not unclipped and (plan.epsilons or kind is not Kind.bart):
        clip = 1.0
    chosen = bound or (BoundKind.value if kind is Kind.bart else BoundKind.l2)
    limit = None if clip is None else bound_from_dict({"kind": chosen.value, "C": clip})
    record = Record(
        kind=kind.value,
        positions={Kind.bart: length, Kind.adept: 2, Kind.narrow: latent_positions}[kind],
        corpora=[corpus.name],
        bound=None if limit is None else limit.to_dict(),
        trained_for=_trained_for(plan.epsilons, noise, delta),
        commands=[_command()],
    )
    with _progress("training") as show:
        torch.manual_seed(seed)
        tokenizer = train_vocabulary(corpus.split(held_out)[0], vocabulary, lowercase=lowercase, words=words)
        model = _new_model(kind, tokenizer, record, shape, length, embedding, latent_width)
        facts = train(
            model, corpus, plan, output, bound=limit, noise=_noise(noise, delta) if plan.epsilons else None,
            resume=resume, progress=show,
        )  # fmt: skip
    _measure_values(model, corpus)
    _finish(model, corpus, output, facts, plan, half=half, eight_bits=eight_bits, lowercase=lowercase)


def _measure_values(model: Any, corpus: Any) -> None:
    """What C can be chosen by later, if the model was trained without one."""
    from tacit.documents.dp_bart import estimate_clip

    model.record.sigma = None
    if model.kind in ("bart", "adept") and model.record.bound is None:
        model.record.sigma = round(estimate_clip(model, corpus).sigma, 4)


def _check_shape(shape: dict[str, int], vocabulary: int, *, adept: bool) -> None:
    """Say before the vocabulary is made what no network can have."""
    for name, size in shape.items():
        if size < 1:
            raise BadParameterError(f"--{name.replace('_', '-')} must be at least 1, not {size}")
    if vocabulary < FEWEST_PIECES:
        raise BadParameterError(f"--vocabulary must be at least {FEWEST_PIECES}, better thousands, not {vocabulary}")
    if not adept and shape["width"] % shape["heads"]:
        raise BadParameterError(
            f"--width {shape['width']} cannot be shared by {shape['heads']} heads: give a multiple of --heads"
        )


@dataclass(frozen=True)
class Clipping:
    """What a command says about clipping."""

    C: float | None
    kind: BoundKind | None
    none: bool

    def of(self, model: Any) -> Any:
        """The bound to train this model on with: its own where nothing else is said."""
        from tacit.documents.bounds import bound_from_dict

        own = model.record.bound
        if self.none:
            return None
        if self.C is None and self.kind is None:
            return model.record.trained_bound()
        default = "value" if model.kind == "bart" else "l2"
        kind = self.kind.value if self.kind else (own or {"kind": default})["kind"]
        same = own is not None and own["kind"] == kind
        if self.C is None and not same:
            raise BadParameterError(f"this model was not trained with the bound {kind}: give its C with --clip")
        if own is not None and own.get("kept") is not None and not same:
            raise BadParameterError(f"a pruned model is clamped by value, not by {kind}: leave out --bound")
        return bound_from_dict({**(own if same else {"kind": kind}), **({} if self.C is None else {"C": self.C})})


def _go_on(
    start: str, corpus: Any, plan: Any, output: Path, length: int, clipping: Clipping, *, resume: bool, half: bool,
    eight_bits: bool,
) -> None:  # fmt: skip
    """Train a model on without noise, on texts of its own length or longer ones."""
    from tacit.documents.autoencoders.bart import BartAutoencoder
    from tacit.documents.autoencoders.base import load_for_release
    from tacit.documents.pretraining.loop import train

    if plan.epsilons:
        raise BadParameterError("a model that exists is trained for an epsilon with 'tacit pretrain noise'")
    model = load_for_release(start)
    if eight_bits and model.kind != "adept":
        raise BadParameterError("only an ADePT can be saved in 8 bits: use --half")
    if model.record.trained_for is not None:
        raise BadParameterError("this model was trained with noise, which it would forget: use 'tacit pretrain noise'")
    if length > model.length:
        if model.kind != "bart":
            raise BadParameterError(f"only a BART can be made longer: leave out --length, or give {model.length}")
        assert isinstance(model, BartAutoencoder)
        torch = require("torch", extra="documents", purpose="training a model")
        torch.manual_seed(plan.seed)
        model = model.lengthened(length)
    limit = clipping.of(model)
    model.record = replace(model.record, bound=None if limit is None else limit.to_dict())
    with _progress("training") as show:
        facts = train(model, corpus, plan, output, bound=limit, resume=resume, progress=show)
    _remember(model, corpus)
    _measure_values(model, corpus)
    lowercase = bool(model.record.results.get("bleu_lowercase", False))
    _finish(model, corpus, output, facts, plan, half=half, eight_bits=eight_bits, lowercase=lowercase)


def _new_model(
    kind: Kind, tokenizer: Any, record: Any, shape: dict[str, int], length: int, embedding: int, latent_width: int
) -> Any:
    from tacit.documents.autoencoders.bart import BartAutoencoder
    from tacit.documents.autoencoders.lstm import LstmAutoencoder
    from tacit.documents.autoencoders.narrow import NarrowAutoencoder

    if kind is Kind.adept:
        return LstmAutoencoder.create(tokenizer, record, length=length, embedding=embedding, hidden=shape["width"])
    if kind is Kind.narrow:
        return NarrowAutoencoder.create_narrow(tokenizer, record, length=length, latent_width=latent_width, **shape)
    return BartAutoencoder.create(tokenizer, record, **shape)


@app.command()
def prune(
    model: Annotated[str, typer.Argument(help="A BART: built-in name, folder, or hub name.")],
    text: Text,
    output: Output,
    public: Public = None,
    clip: Annotated[
        float | None, typer.Option(help="C while training; by default the model's own, else one sigma of its values.")
    ] = None,
    stages: Annotated[int, typer.Option(help="Times to prune and train.")] = 6,
    quantile: Annotated[float, typer.Option(help="Share of what is left that a stage prunes.")] = 0.25,
    least_bleu: Annotated[
        float, typer.Option(help="Stop with the first stage that repeats held-out texts worse than this BLEU.")
    ] = 95.0,
    steps: Annotated[int, typer.Option(help="Batches after each stage.")] = 500,
    batch_size: Batch = 32,
    learning_rate: Rate = 1e-4,
    held_out: HeldOut = 1_000,
    plain_share: Plain = 0.0,
    mixed_share: Mixed = 0.0,
    dropout: Dropout = None,
    seed: Seed = 0,
    half: Half = False,
    resume: Resume = False,
) -> None:
    """Prune encoder neurons and retrain (DP-BART-PR).

    Example: tacit pretrain prune bart-20 tatoeba.txt --public "Tatoeba English" -o bart-pruned
    """
    corpus = _public(text, public)
    if _is_complete(output, resume):
        return
    require("torch", extra="documents", purpose="training a model")
    from tacit.documents.autoencoders.bart import BartAutoencoder
    from tacit.documents.bounds import ClipValue
    from tacit.documents.dp_bart import estimate_clip
    from tacit.documents.pretraining.loop import Plan
    from tacit.documents.pretraining.prune import prune as prune_model

    found = BartAutoencoder.from_pretrained(model)
    own = found.record.trained_bound()
    value = own.C if isinstance(own, ClipValue) else None  # the C of a norm is no bound of a value
    C = clip or value or found.record.sigma or 2 * estimate_clip(found, corpus).C
    plan = Plan(
        steps=steps, batch_size=batch_size, learning_rate=learning_rate, evaluate_every=max(1, steps // 2),
        patience=1_000, held_out=held_out, plain_share=plain_share, mixed_share=mixed_share, dropout=dropout, seed=seed,
    )  # fmt: skip
    with _progress("pruning") as show:
        limit = prune_model(
            found, corpus, output, plan, C=float(C), stages=stages, quantile=quantile, least_bleu=least_bleu,
            resume=resume, progress=show,
        )  # fmt: skip
    _remember(found, corpus)
    facts = {"stages": (found.record.pruning or {}).get("stages"), "kept": len(limit.kept or ())}
    _finish(found, corpus, output, facts, plan, half=half)


@app.command()
def noise(
    model: Annotated[str, typer.Argument(help="A pruned BART (folder), or any other autoencoder.")],
    text: Text,
    output: Output,
    epsilon: Annotated[list[float], typer.Option(help="The budget to train for; several make one model for all.")],
    public: Public = None,
    delta: Delta = 1e-5,
    noise: Annotated[NoiseKind, typer.Option(help="Noise to train with.")] = NoiseKind.gaussian,
    clip: Annotated[float | None, typer.Option(help="C; by default the model's own.")] = None,
    bound: Annotated[BoundKind | None, typer.Option(help="What is clipped; by default what the model knows.")] = None,
    content: Content = None,
    steps: Steps = 20_000,
    batch_size: Batch = 32,
    learning_rate: Rate = 3e-4,
    evaluate_every: Every = 500,
    patience: Patience = 6,
    held_out: HeldOut = 2_000,
    plain_share: Plain = 0.0,
    mixed_share: Mixed = 0.0,
    dropout: Dropout = None,
    seed: Seed = 0,
    half: Half = False,
    resume: Resume = False,
) -> None:
    """Train on with clipping and the noise of an epsilon (DP-BART-PR+): one model for each epsilon.

    Example: tacit pretrain noise bart-pruned tatoeba.txt --public "Tatoeba English" --epsilon 500 -o bart-500
    """
    corpus = _public(text, public)
    if _is_complete(output, resume):
        return
    require("torch", extra="documents", purpose="training a model")
    from tacit.documents.autoencoders.base import load_for_release
    from tacit.documents.bounds import bound_from_dict
    from tacit.documents.pretraining.loop import Plan, train

    found = load_for_release(model)
    data = dict(found.record.bound or {"kind": "value" if found.kind == "bart" else "l2"})
    other = bound is not None and bound.value != data["kind"]
    if bound is not None and other:
        data = {"kind": bound.value, "C": data.get("C", 1.0)}
    if clip is not None:
        data["C"] = clip
    if "C" not in data:
        raise BadParameterError("this model was not trained with clipping: give its C with --clip, for example 0.1")
    limit = bound_from_dict(data)
    plan = Plan(
        steps=steps, batch_size=batch_size, learning_rate=learning_rate, evaluate_every=evaluate_every,
        patience=patience, held_out=held_out, plain_share=plain_share, mixed_share=mixed_share, dropout=dropout,
        epsilons=tuple(epsilon), seed=seed,
        known_epsilon=None if other else min(found.record.epsilons(), default=None), content=content,
    )  # fmt: skip
    found.record = replace(found.record, bound=limit.to_dict(), trained_for=_trained_for(plan.epsilons, noise, delta))
    with _progress("training") as show:
        facts = train(
            found, corpus, plan, output, bound=limit, noise=_noise(noise, delta), resume=resume, progress=show
        )
    _remember(found, corpus)
    lowercase = bool(found.record.results.get("bleu_lowercase", False))
    _finish(found, corpus, output, facts, plan, half=half, lowercase=lowercase)


@app.command()
def average(
    start: Annotated[str, typer.Argument(metavar="START", help="The model before noisy training (folder).")],
    model: Annotated[str, typer.Argument(metavar="MODEL", help="The model after it (folder).")],
    text: Text,
    output: Output,
    public: Public = None,
    share: Annotated[float, typer.Option(help="Share of MODEL in the weights; the rest is of START.")] = 0.5,
    held_out: HeldOut = 2_000,
    half: Half = False,
) -> None:
    """Take weights between two models of one shape, for example the pruned BART and its noisy-trained one.

    Training with much noise forgets how to say things; halfway back is often better than either end. What MODEL was
    trained for stays in the record; the text only serves to measure the result.

    Example: tacit pretrain average bart-pruned bart-500 tatoeba.txt --public "Tatoeba English" -o bart-500-half
    """
    corpus = _public(text, public)
    if _is_complete(output, resume=False):
        return
    require("torch", extra="documents", purpose="training a model")
    from tacit.documents.autoencoders.base import load_for_release
    from tacit.documents.pretraining.average import average_weights
    from tacit.documents.pretraining.loop import Plan

    found = average_weights(load_for_release(start), load_for_release(model), share)
    _remember(found, corpus)
    lowercase = bool(found.record.results.get("bleu_lowercase", False))
    _finish(found, corpus, output, {"share": share}, Plan(held_out=held_out), half=half, lowercase=lowercase)


# Parts ------------------------------------------------------------------------------------------------------------


def _public(path: Path, name: str | None) -> Any:
    from tacit.documents.pretraining.corpus import read_public

    return read_public(path, name)


def _noise(kind: NoiseKind, delta: float) -> Any:
    from tacit.documents.bounds import AnalyticGaussian, Laplace

    return AnalyticGaussian(delta) if kind is NoiseKind.gaussian else Laplace()


def _trained_for(epsilons: tuple[float, ...], noise: NoiseKind, delta: float) -> dict[str, Any] | None:
    if not epsilons:
        return None
    return {"noise": noise.value, "delta": delta if noise is NoiseKind.gaussian else 0.0, "epsilons": list(epsilons)}


def _remember(model: Any, corpus: Any) -> None:
    model.record.commands = [*model.record.commands, _command()]
    model.record.corpora = list(dict.fromkeys([*model.record.corpora, corpus.name]))


def _command() -> str:
    """This command, without the folders it was run in."""
    import sys

    words = [Path(word).name if "/" in word and Path(word).exists() else word for word in sys.argv[1:]]
    start = next((place for place, word in enumerate(words) if word in ("autoencoder", "prune", "noise", "average")), 0)
    return "tacit pretrain " + " ".join(shlex.quote(word) for word in words[start:] if word != "--resume")


def _is_complete(output: Path, resume: bool) -> bool:
    """Whether there is nothing left to do. What somebody has trained is never overwritten."""
    if (output / "tacit.json").exists() and not (output / "checkpoint.pt").exists() and not _is_unmeasured(output):
        if resume:
            typer.echo(f"'{output}' is already complete: there is nothing to resume", err=True)
            return True
        raise BadInputError(f"'{output}' holds a model: choose another folder with -o, or delete it first")
    started = (output / "checkpoint.pt").exists() or any(output.glob("stage-*"))
    if started and not resume:
        raise BadInputError(f"an unfinished training is in '{output}': add --resume to go on, or delete the folder")
    return False


def _is_unmeasured(output: Path) -> bool:
    """Whether a pruning was stopped after its last stage, with weights that are saved and not yet measured."""
    import json

    record = json.loads((output / "tacit.json").read_text(encoding="utf-8"))
    return any(output.glob("stage-*")) and "bleu_lowercase" not in record.get("results", {})


def _finish(
    model: Any, corpus: Any, output: Path, facts: dict[str, Any], plan: Any, *, half: bool, eight_bits: bool = False,
    lowercase: bool = False,
) -> None:  # fmt: skip
    """Measure, save, and only then drop the checkpoint."""
    from tacit.documents.autoencoders.base import load_autoencoder
    from tacit.documents.pretraining.loop import CHECKPOINT, held_out_bleu

    model.save_pretrained(output, half=half, eight_bits=eight_bits)
    saved = load_autoencoder(output)  # measured as it will be used, in 16 or 8 bits if so saved
    measured = held_out_bleu(saved, corpus, plan.held_out, join=plan.join, lowercase=lowercase)
    saved.record.results = {**facts, **measured, "bleu_lowercase": lowercase}
    saved.record.write(output)
    (output / CHECKPOINT).unlink(missing_ok=True)
    bleu = measured["held_out_bleu_without_noise"]
    typer.echo(f"model in {output}: BLEU {bleu:.1f} on held-out texts without noise", err=True)


@contextmanager
def _progress(what: str) -> Iterator[Any]:
    """A bar on a terminal, nothing elsewhere: the log has it all."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from tacit.cli.terminal import error_console

    console = error_console()
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[status]}"))
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(what, total=None, status="")

        def show(step: Any) -> None:
            held = "" if step.held_out_loss is None else f", held out {step.held_out_loss:.3f}"
            bar.update(task, completed=step.done, total=step.total, status=f"loss {step.loss:.3f}{held}")

        yield show
