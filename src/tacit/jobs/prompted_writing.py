"""Rows written by prompting, from the options to the file: counts, plan, batches, waves of texts, card."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tacit.account.zcdp import pure_rho, rho_of_epsilon
from tacit.documents.language_models import PUBLIC_SENTENCES
from tacit.documents.language_models.models import Frame
from tacit.documents.language_models.reading import FramedReader
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Adjacency, Guarantee, Model
from tacit.jobs.charging import charging
from tacit.jobs.keyed_draft import KeyedDraft, remove_draft
from tacit.jobs.prompted_rows import (
    SECRET_KEY,
    chosen_delta,
    label_lines,
    load_reader,
    notion_of,
    number_line,
    private_records,
    promised_unit,
    without_seed,
)
from tacit.jobs.released_rows import card_of_rows, write_rows_with_card
from tacit.jobs.synthesize_prompting import LABEL, LabelPlan, PromptedTexts, PromptingConfig, PromptingPlan
from tacit.noise.laplace import add_laplace
from tacit.noise.source import Source, StreamKey, public_generator
from tacit.progress import WorkProgress
from tacit.rounding import rounded_up
from tacit.text.spoken import spoken_label
from tacit.training.prompting.batches import PrivateRecord, digest_of_records, first_of_users, in_batches, seated
from tacit.training.prompting.generation import Writing, next_wave, write_wave
from tacit.training.prompting.law import AveragedLaw
from tacit.training.prompting.plan import BatchPlan, plan_label
from tacit.training.prompting.reading import check_rows
from tacit.training.synthesis.codes import ControlCodes
from tacit.training.synthesis.counts import L1_SENSITIVITY, LabelCounts
from tacit.training.synthesis.filters import Filters, Sieve

if TYPE_CHECKING:
    from tacit.documents.language_models import CausalModel

COUNTS, TEXTS = 0, 1
"""The streams of a run: of the label counts, and of the texts of a batch."""
NO_SUBJECT = "anything"
RELEASED_REFUSALS = ("budget-buys-nothing", "nothing-written")
"""Errors that follow from noisy counts or drawn texts: they are releases, too, and nothing is left to go on with."""
WAVE_BYTES = 2 << 30
"""About how much memory the attention caches of the prompts may take."""
MOST_ROWS = 640
"""Records read side by side at most: more fill the rows hardly better."""
FILLED = 0.6
"""The share of rows that usually hold a record."""


# The budget ---------------------------------------------------------------------------------------------------------


def tokens_rho(config: PromptingConfig, delta: float) -> float:
    """The part of the budget that is left for the tokens of a record."""
    rho = rho_of_epsilon(config.epsilon, delta) - pure_rho(config.epsilon * config.count_share)
    if rho <= 0:
        raise BadParameterError(
            "counts-take-all", "the label counts take the whole budget: give a smaller {option.count_share}"
        )
    return rho


def planned(config: PromptingConfig, counts: dict[str, int], candidates: int, delta: float) -> list[BatchPlan]:
    """The plan of each label with about so many records; labels for which the budget buys nothing are left out."""
    law = AveragedLaw(config.bound, config.temperature, 1, config.bounding, 2 if config.replace_one else 1)
    rho = tokens_rho(config, delta)
    shares = LabelCounts({(label,): count for label, count in counts.items()}, None).shares(config.rows)
    plans = (
        plan_label(
            label, law, count=count, rows=shares[label,], length=config.length, candidates=candidates, rho=rho,
            batch=config.batch_records,
        )
        for label, count in counts.items()
    )  # fmt: skip
    return [plan for plan in plans if plan is not None]


def shown_plan(config: PromptingConfig, plans: Sequence[BatchPlan], delta: float) -> PromptingPlan:
    """The plan as people and programs read it."""
    labels = tuple(LabelPlan(p.label, p.batches, p.law.batch, p.tokens, p.rows) for p in plans)
    return PromptingPlan(config.epsilon, delta, labels, config.rows, sum(p.readings for p in plans))


def dry_plan(config: PromptingConfig) -> PromptingPlan:
    """The plan for the exact counts of the records, for their holder alone: nothing is drawn or spent."""
    records, labels = private_records(config, config.data, config.label_column)
    if config.user_column is not None:
        records = first_of_users(records, StreamKey.from_os().key)
    counts = Counter(record.label for record in records)
    delta = chosen_delta(config, max(1, len(records)))
    return shown_plan(
        config, planned(config, {label: counts[label] for label in labels}, config.candidates, delta), delta
    )


# The work -----------------------------------------------------------------------------------------------------------


def written_rows(config: PromptingConfig, progress: WorkProgress | None) -> PromptedTexts:
    """Synthetic rows in the file of a configuration, with their card."""
    model = load_reader(config.model)  # before anything is paid for: a name that is wrong costs nothing
    check_rows(reader_of(config, model, ""), PUBLIC_SENTENCES)
    records, labels = private_records(config, config.data, config.label_column)
    tokens_rho(config, chosen_delta(config, max(1, len(records))))
    if config.force and not config.resume:
        remove_draft(config.output)
    draft = KeyedDraft(config.output, config.identity(), resume=config.resume, seed=config.seed)
    try:
        draft.known_records(digest_of_records(records, draft.key.key))
        if config.user_column is not None:
            records = first_of_users(records, draft.key.key)
        delta = chosen_delta(config, max(1, len(records)))
        with charging(config, "tacit synthesize", draft.token) as charge:
            promised = promise(config, model, delta)
            charge.reserve(promised)
            try:
                made = _released(config, model, (records, labels), draft, promised, delta, progress)
            except BadInputError as error:
                if error.code in RELEASED_REFUSALS:
                    charge.commit()
                    draft.delete()
                raise
            charge.commit()
    except BaseException:
        draft.close()
        raise
    draft.delete()
    return made


def _released(
    config: PromptingConfig,
    model: CausalModel,
    private: tuple[Sequence[PrivateRecord], Sequence[str]],
    draft: KeyedDraft,
    promised: Guarantee,
    delta: float,
    progress: WorkProgress | None,
) -> PromptedTexts:
    records, labels = private
    support = model.support
    counts = _noisy_counts(config, records, labels, draft.key)
    plans = planned(config, counts, min(config.candidates, len(support)), delta)
    if not plans:
        raise BadInputError(
            "budget-buys-nothing",
            "epsilon {epsilon:g} buys no text of {length} tokens for any label: give a larger {option.epsilon}, more "
            "records, a smaller {option.logit_bound} or {option.length}",
            epsilon=config.epsilon,
            length=config.length,
        )
    draft.known_plan([dataclasses.asdict(plan) for plan in plans])
    work = _Work(config, model, draft, sum(plan.usual_draws for plan in plans), progress)
    written = {plan.label: work.texts_of(plan, [r for r in records if r.label == plan.label]) for plan in plans}
    texts, of_labels, refused = _kept(config, plans, written)
    column = config.column or ("text" if config.label_column != "text" else "texts")
    columns = {column: texts}
    if config.label_column is not None:
        columns[config.label_column] = of_labels
    plan = shown_plan(config, plans, delta)
    card = card_of_rows(config, _with_numbers(promised, plans), texts, command="tacit synthesize")
    write_rows_with_card(config.output, columns, card)
    return PromptedTexts(columns, column, card, config.output, plan, refused)


class _Work:
    """The texts of all labels, batch by batch, written down in the draft as they are finished."""

    def __init__(
        self, config: PromptingConfig, model: CausalModel, draft: KeyedDraft, total: int, progress: WorkProgress | None
    ) -> None:
        self.config, self.model, self.draft = config, model, draft
        self._finished = {(p["label"], p["batch"]): p["texts"] for p in draft.pieces if "batch" in p}
        self._total, self._end, self._done, self._progress = total, 0, 0, progress
        words = model.texts_of_tokens()
        self._stops = np.array(["\n" in word for word in words]) | (model.support == model.end)

    def texts_of(self, plan: BatchPlan, records: Sequence[PrivateRecord]) -> list[str]:
        """The texts of a label, in the order of its batches."""
        config = self.config
        key = self.draft.key.key
        batches = [seated(batch, key) for batch in in_batches(records, plan.batches, key)]
        reader = reader_of(config, self.model, plan.label)
        writing = Writing(
            plan.law,
            self.model.support,
            self._stops,
            plan.tokens,
            config.length,
            min(2, config.length),
            plan.candidates,
        )
        self._end += plan.usual_draws
        most_rows = rows_in_memory(reader, plan.tokens)
        texts: list[str] = []
        start, kept = 0, 0
        while start < plan.batches and kept < plan.rows:
            wave = next_wave(
                start, plan.batches, plan.law.batch, most_rows=most_rows, usual=_usual_batches(plan, start, kept)
            )
            missing = [number for number in wave if (plan.label, number) not in self._finished]
            if missing:
                drawn = write_wave(
                    [batches[number] for number in missing],
                    [self._stream(plan.label, number) for number in missing],
                    reader,
                    writing,
                    partial(self._step, len(missing)),
                    self._read,
                )
                for number, tokens in zip(missing, drawn, strict=True):
                    self.draft.add({"label": plan.label, "batch": number, "texts": tokens})
                    self._finished[plan.label, number] = tokens
            texts += [self._text(ids) for number in wave for ids in self._finished[plan.label, number]]
            self._step((len(wave) - len(missing)) * plan.tokens)
            start, kept = wave.stop, self._kept(plan, texts)
        self._done = self._end
        return texts

    def _kept(self, plan: BatchPlan, texts: Sequence[str]) -> int:
        """How many texts pass the filters: released texts alone decide when no further batch has to write."""
        return sum(_sieve(self.config).keep([(plan.label,)] * len(texts), texts))

    def _stream(self, label: str, batch: int) -> Source:
        return self.draft.key.stream(TEXTS, f"{batch}\n{label}".encode())

    def _text(self, ids: Sequence[int]) -> str:
        kept = [token for token in ids if token != self.model.end]
        return self.model.text(kept).split("\n", 1)[0].strip()

    def _read(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress("reading records", done, total)

    def _step(self, tokens: int) -> None:
        self._done = min(self._end, self._done + tokens)
        if self._progress is not None:
            self._progress("drawing tokens", self._done, self._total)


def rows_in_memory(reader: FramedReader, tokens: int) -> int:
    """How many records are held in memory at a time: by public numbers alone."""
    return max(reader.rows, min(MOST_ROWS, int(FILLED * WAVE_BYTES / reader.row_bytes(tokens))))


def _usual_batches(plan: BatchPlan, done: int, kept: int) -> int:
    """About how many more batches there have to be, by the plan or, after some are written, by what they gave."""
    if done == 0 or kept == 0:
        return plan.usual_draws // plan.tokens
    return math.ceil((plan.rows - kept) * done / kept)


def _noisy_counts(
    config: PromptingConfig, records: Sequence[PrivateRecord], labels: Sequence[str], key: StreamKey
) -> dict[str, int]:
    """Released numbers of records by label, never below 0."""
    exact = Counter(record.label for record in records)
    adjacency = Adjacency.REPLACE_ONE if config.replace_one else Adjacency.ADD_REMOVE
    noisy = add_laplace(
        [exact[label] for label in labels],
        epsilon=config.epsilon * config.count_share,
        l1_sensitivity=L1_SENSITIVITY[adjacency],
        source=key.stream(COUNTS, b"label counts"),
    )
    return {label: max(0, int(count)) for label, count in zip(labels, np.rint(noisy), strict=True)}


def _kept(
    config: PromptingConfig, plans: Sequence[BatchPlan], written: dict[str, list[str]]
) -> tuple[list[str], list[str], dict[str, int]]:
    """Texts that pass the filters, at most as many of a label as planned, in a random public order."""
    sieve = _sieve(config)
    rows: list[tuple[str, str]] = []
    for plan in plans:
        texts = written[plan.label]
        passed = sieve.keep([(plan.label,)] * len(texts), texts)
        rows += [(text, plan.label) for text, good in zip(texts, passed, strict=True) if good][: plan.rows]
    if not rows:
        raise BadInputError("nothing-written", "no text passed the filters: give a larger budget or another model")
    order = public_generator(0).permutation(len(rows))
    return [rows[i][0] for i in order], [rows[i][1] for i in order], dict(sieve.refused)


def _sieve(config: PromptingConfig) -> Sieve:
    return Sieve(Filters(shortest=config.shortest, codes=False), ControlCodes())


def reader_of(config: PromptingConfig, model: CausalModel, label: str) -> FramedReader:
    """The model behind the prompt of a label."""
    spoken = spoken_label(label) or label or NO_SUBJECT
    frame = model.frame(config.prompt.replace(LABEL, spoken))
    model.check_lengths(frame, config.input_tokens, config.length)
    ids = model.special_frame().before + model.plain(config.public_prompt.replace(LABEL, spoken))
    return FramedReader(model, frame, Frame(ids[:-1], ids[-1:]), config.physical, config.input_tokens, config.length)


# The promise --------------------------------------------------------------------------------------------------------


def promise(config: PromptingConfig, model: CausalModel, delta: float) -> Guarantee:
    """The guarantee of the whole release; tokens and counts are paid from one zero-concentrated budget."""
    unit = promised_unit(config)
    parameters = {
        "model": model.name,
        "bounded": f"{config.bounding}, at most {config.bound:g}",
        "temperature": f"{config.temperature:g}",
        "tokens to choose among": config.candidates,
        "longest text": f"{config.length} tokens",
        "epsilon of the label counts": rounded_up(config.epsilon * config.count_share),
        "zero-concentrated budget": f"rho {rounded_up(rho_of_epsilon(config.epsilon, delta))}",
    }
    promised = Guarantee(
        notion=notion_of(delta),
        epsilon=config.epsilon,
        delta=delta,
        model=Model.CENTRAL,
        unit=unit,
        adjacency=Adjacency.REPLACE_ONE if config.replace_one else Adjacency.ADD_REMOVE,
        mechanism="text by prompting: tokens drawn from clipped, averaged predictions of disjoint batches",
        parameters=parameters,
        not_covered=(
            "people whose text was used to train the language model",
            "how long the run took and how much memory it used",
            *(() if config.user_column is not None else ("a person who has several records: their budgets add up",)),
            *(("what the public list of labels itself says",) if config.label_column is not None else ()),
            *number_line(config),
        ),
        assumptions=(
            SECRET_KEY,
            "the language model, its tokenizer and the prompts were fixed without looking at the records",
            f"prompts are computed in constant shapes of {config.physical} rows, a record always in the row that a "
            "keyed hash of itself names, so that its numbers depend neither on other records nor on how many there "
            "are; that they do not depend on what other rows hold was checked with public text, bit by bit",
            *label_lines(config, config.label_column),
            *(("one row of each user is read, chosen by a keyed hash",) if config.user_column is not None else ()),
        ),
        provenance=(model.provenance(),),
    )
    return without_seed(config, promised)


def _with_numbers(promised: Guarantee, plans: Sequence[BatchPlan]) -> Guarantee:
    """The promise with the numbers of the plan, which follows from released counts."""
    widths = [plan.law.width(plan.candidates) for plan in plans]
    largest = max(plans, key=lambda plan: plan.law.width(plan.candidates))
    sizes = sorted({plan.law.batch for plan in plans})
    between = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    shown = {
        "planned records of a batch": between,
        "batches": sum(plan.batches for plan in plans),
        "tokens of a batch": f"at most {max(plan.tokens for plan in plans)}",
        "epsilon of a token": f"at most {rounded_up(max(widths))} (rounding of the choice included)",
        "rho of a token": f"at most {rounded_up(largest.law.rho(largest.candidates))}",
    }
    return replace(promised, parameters={**promised.parameters, **shown})
