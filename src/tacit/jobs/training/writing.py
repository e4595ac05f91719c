"""A private writer, from its options to a file of synthetic rows. Loads the libraries of neural models."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from tacit.auditing.models.canary_files import load_canaries
from tacit.auditing.models.synthetic import release_report
from tacit.auditing.models.writers import writer_losses
from tacit.devices import device_named
from tacit.errors import BadInputError
from tacit.jobs.released_rows import card_of_rows, write_rows_with_card
from tacit.jobs.synthesize_training import SynthesisProgress, SyntheticRows, TrainedSynthesisConfig
from tacit.jobs.training.planning import plan_for_records
from tacit.jobs.training.public_models import load_public
from tacit.jobs.training.rows_of_users import plan_by_user, read_rows_of_users
from tacit.jobs.training.running import charging_run, read_rows, run_options
from tacit.report import Report
from tacit.rounding import rounded_up
from tacit.text.files import partial_path, read_columns
from tacit.training.origin import starting_weights
from tacit.training.run import TrainingSettings
from tacit.training.start import usual_rate
from tacit.training.strategies import apply_strategy
from tacit.training.synthesis import (
    Budget,
    ControlledWriting,
    Draft,
    Filters,
    PrivateWriter,
    Sampling,
    WriterTraining,
    Written,
    causal_perplexity,
    corpus_guarantee,
    draft_settings,
    learn_codes,
    model_writer,
    write_rows,
)
from tacit.training.users import Users

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def train_writer(config: TrainedSynthesisConfig, progress: SynthesisProgress) -> None:
    """Train the model and count the labels, into the folder of a configuration."""
    rows, users = _private_rows(config)
    codes = learn_codes(rows, list(config.label_columns), {column: list(names) for column, names in config.labels})
    assert config.epsilon is not None
    budget = Budget(config.epsilon, config.count_share)
    counted = bool(config.label_columns) and not config.balanced
    spent = budget.for_training(counted=counted)
    planned = None if users is None else plan_by_user(config, spent, users)
    plan = plan_for_records(config, spent, len(rows)) if planned is None else planned.plan
    usual = usual_rate(config.strategy, private=plan.private)
    settings = TrainingSettings(
        learning_rate=usual if config.learning_rate is None else config.learning_rate,
        bound=config.bound,
        physical=config.physical,
        strategy=config.strategy,
        model=config.model,
        precision=config.precision,
        gradient_checkpointing=config.gradient_checkpointing,
    )
    task = ControlledWriting(length=config.length, columns={"text": config.column}, codes=codes)
    # New weights start the same in a resumed run; weights before training are public.
    torch.manual_seed(config.seed or 0)
    network, tokenizer = load_public(task, config.model, progress.warned)
    training = WriterTraining(
        task=task,
        model=apply_strategy(network, config.strategy),
        tokenizer=tokenizer,
        rows=rows,
        plan=plan,
        settings=settings,
        origin=starting_weights(config.model),
        budget=budget,
        text_column=config.column,
        balanced=config.balanced,
        user_rows=None if planned is None else planned.rows,
        **run_options(config, config.folder, progress),
    )
    training.check_folder(resume=config.resume)
    price = f"label counts for epsilon {rounded_up(budget.for_counts(counted=True), 3)}"
    notes = () if planned is None else planned.notes
    progress.planned(plan, (*notes, price) if counted else notes)
    with charging_run(config, training.private) as training.charge:
        training.run(progress.stepped, resume=config.resume)


def write_release(config: TrainedSynthesisConfig, progress: SynthesisProgress) -> SyntheticRows:
    """Synthetic rows of the model in the folder of a configuration, written to its file with their card."""
    writer = PrivateWriter.open(config.folder)
    filters = Filters(shortest=config.shortest, duplicates=not config.keep_duplicates, perplexity=config.perplexity)
    place = partial_path(config.output)
    sampling = Sampling(config.temperature, config.top_p, seed=_sample_seed(config, place))
    if config.force and not config.resume:
        place.unlink(missing_ok=True)
    settings = draft_settings(
        rows=config.rows, counts=writer.counts, filters=filters, sampling=sampling, task=writer.task,
        weights=writer.weights(),
    )  # fmt: skip
    device = device_named(config.device)
    model, tokenizer = writer.load()
    model.to(device)
    judge = None
    if filters.perplexity is not None:
        public, pieces = load_public(writer.task, writer.base_model, progress.warned)
        judge = causal_perplexity(public.to(device), pieces)  # type: ignore[arg-type]
    draft = Draft(place, settings, resume=config.resume)
    written = write_rows(
        model_writer(model, tokenizer, writer.task, sampling),
        writer.counts,
        config.rows,
        task=writer.task,
        filters=filters,
        sampling=sampling,
        judge=judge,
        draft=draft,
        progress=lambda done, total: progress.worked("writing", done, total),
    )
    columns = _columns(writer, written)
    kept = "" if config.from_model is None else ", with a model that was there already"
    card = card_of_rows(
        config,
        corpus_guarantee(writer.guarantee, filters, sampling),
        columns[writer.text_column],
        command=f"tacit synthesize training -n {config.rows}{kept}",
    )
    write_rows_with_card(config.output, columns, card)
    draft.remove()
    report = None
    if config.check is not None:
        report = _checked(config, writer, columns[writer.text_column], (model, tokenizer), progress)
        report.save(config.check, force=config.force, private=True)
    return SyntheticRows(
        columns=columns,
        text_column=writer.text_column,
        card=card,
        output=config.output,
        folder=config.folder,
        refused=written.refused,
        missing=written.missing,
        report=report,
    )


def _private_rows(config: TrainedSynthesisConfig) -> tuple[list[dict[str, str]], Users | None]:
    """The private rows, and whose they are, if the promise is made to users."""
    roles = {"text": config.column, **{column: column for column in config.label_columns}}
    if config.user_column is None:
        return read_rows(config.data, roles), None
    return read_rows_of_users(config.data, roles, config.user_column)


def _sample_seed(config: TrainedSynthesisConfig, place: Path) -> int:
    """The public seed of a writing: the one that was given, that of the stopped run, or a new one."""
    kept = Draft.seed_of(place) if config.resume and config.sample_seed is None else config.sample_seed
    return secrets.randbelow(1 << 31) if kept is None else kept


def _columns(writer: PrivateWriter, written: Written) -> dict[str, list[str]]:
    if not written.rows:
        raise BadInputError(
            "nothing-passed-the-filters",
            "none of {generated:,} texts passed the filters: raise epsilon or epochs, or lower {option.shortest}",
            generated=written.generated,
        )
    names = writer.task.codes.columns
    columns = {name: [labels[place] for labels, _ in written.rows] for place, name in enumerate(names)}
    return {**columns, writer.text_column: [text for _, text in written.rows]}


def _checked(
    config: TrainedSynthesisConfig,
    writer: PrivateWriter,
    texts: list[str],
    loaded: tuple[PreTrainedModel, PreTrainedTokenizerBase],
    progress: SynthesisProgress,
) -> Report:
    """An audit for the holder of the private rows; it changes nothing of what was written."""
    return release_report(
        texts,
        read_columns(config.data, [writer.text_column])[writer.text_column],
        canaries=None if config.canaries is None else load_canaries(config.canaries),
        losses=writer_losses(writer, *loaded),
        progress=lambda done, total: progress.worked("comparing", done, total),
    )
