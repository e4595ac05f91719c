"""`tacit pretrain sanitized`: a model that has seen rewritten text before it is fine-tuned on some."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.errors import BadInputError


def sanitized(
    text: Annotated[Path, typer.Argument(metavar="PUBLIC_TEXT", help="Public text, one per line, UTF-8.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Folder for the model.")],
    epsilon: Annotated[float, typer.Option("-e", "--epsilon", help="The budget that the private texts will have.")],
    public: Annotated[
        str | None,
        typer.Option("--public", metavar="NAME", help="Declare the text public, by the name it is known by."),
    ] = None,
    model: Annotated[str, typer.Option(help="'minilm', a folder, or a name on the hub; an encoder with a mask.")] = (
        "minilm"
    ),
    mechanism: Annotated[str, typer.Option("-m", "--mechanism", help="A word mechanism; see 'tacit mechanisms'.")] = (
        "santext"
    ),
    vectors: Annotated[str | None, typer.Option(help="Public word vectors of the mechanism.")] = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Another option of the mechanism; may be repeated.")
    ] = None,
    length: Annotated[int, typer.Option(help="Word pieces of a text that count.")] = 128,
    epochs: Annotated[float, typer.Option(help="Passes over the text, on average.")] = 1.0,
    batch_size: Annotated[int, typer.Option("--batch-size", help="Texts of a step, on average.")] = 32,
    learning_rate: Annotated[float, typer.Option("--learning-rate", help="The largest learning rate.")] = 5e-5,
    seed: Annotated[int, typer.Option(help="Seed of the (public) randomness.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a training that was stopped.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress bar and no summary.")] = False,
) -> None:
    """Train a masked language model to guess the original words of rewritten public text (Yue et al. 2021).

    Fine-tune it afterwards on texts that were rewritten in the same way: tacit train classify … --released CARD.

    Example: tacit pretrain sanitized wiki.txt --public "WikiText-2" --epsilon 14 --vectors minilm -o aware
    """
    from dataclasses import replace

    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from tacit.catalog import build, find
    from tacit.cli.terminal import error_console
    from tacit.documents.pretraining.corpus import read_public
    from tacit.errors import require
    from tacit.jobs.fields import mechanism_options, named_values
    from tacit.noise.source import Source

    corpus = read_public(text, public)
    torch = require("torch", extra="documents", purpose="training a model")
    from tacit.training.models import load_model, model_folder
    from tacit.training.origin import starting_weights
    from tacit.training.plan import Plan
    from tacit.training.run import Settings, TrainingRun
    from tacit.training.tasks import SanitizedMasking, sanitized_rows
    from tacit.training.tasks.sanitized import check_word_level

    check_word_level(find(mechanism))
    made = build(mechanism, mechanism_options(epsilon, vectors, named_values(option)))
    console = error_console()
    shown = console.is_terminal and not quiet
    columns = (BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    losses: list[float] = []
    with Progress(*columns, console=console, disable=not shown) as bar:
        line = bar.add_task("rewriting the public text", total=None)
        # The text is public, so its noise may be repeatable: a resumed run has to see the same words.
        rows = sanitized_rows(
            corpus.texts,
            made,
            Source.from_test_seed(seed),
            lambda done, total: bar.update(line, completed=done, total=total),
        )
        if batch_size > len(rows):
            raise BadInputError(f"there are {len(rows):,} texts, fewer than a batch: give a smaller --batch-size")
        task = SanitizedMasking(length=length, mechanism=f"{mechanism}, epsilon {epsilon:g}, {vectors or 'default'}")
        task.learn(rows)
        torch.manual_seed(seed)
        network, tokenizer = load_model(task, model)
        settings = Settings(learning_rate=learning_rate, model=model, physical=batch_size)
        plan = Plan.without_privacy(records=len(rows), batch=batch_size, epochs=epochs)
        run = TrainingRun(
            task, network, tokenizer, rows, plan, settings, output, seed, warn=console.print,
            origin=replace(starting_weights(model_folder(model)), public=corpus.name),
        )  # fmt: skip
        bar.reset(line, total=plan.steps)

        def update(now: Any) -> None:
            losses.append(now.facts.loss)
            bar.update(line, completed=now.step, description=f"step {now.step:,}, loss {losses[-1]:.3f}")

        run.run(update, resume=resume)
    if not quiet and losses:
        part = max(1, len(losses) // 10)
        first, last = (sum(some) / part for some in (losses[:part], losses[-part:]))
        console.print(
            f"model in {output}: loss {first:.3f} in the first tenth of the steps, {last:.3f} in the last. Fine-tune "
            f"it with: tacit train classify RELEASED --released CARD --model {output}"
        )
