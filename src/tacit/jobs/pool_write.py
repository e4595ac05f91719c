"""A pool of public sentences that a public language model writes from public prompts.

pool = write(about="questions to a bank", labels=["lost card", "fees"], rows=2000, output="bank.tacit")

Nothing private goes in: prompts are words of the user, of a recipe, or names of labels, which are public. So the pool
costs no budget. The model has to be public itself; one that was trained on private text is refused, since its sentences
would be drawn word for word into corpora whose promise says nothing of that text.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, Self

from pydantic import BeforeValidator, Field, model_validator

from tacit.errors import BadInputError, BadParameterError, TacitWarning
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import (
    Device,
    Force,
    FromSketch,
    Labels,
    License,
    Model,
    Output,
    PublicName,
    PublicSeed,
    SyntheticRowCount,
)
from tacit.jobs.pool import Likeness
from tacit.jobs.running import on_its_device
from tacit.jobs.values import split_at_commas
from tacit.matching.near_duplicates import USUAL_LIKENESS, NearDuplicates
from tacit.matching.pool import PoolSource, SentencePool, read_pool, words_key, write_pool
from tacit.matching.prompts import Prompt, PromptKind, prompts_in_turn, sentences_in
from tacit.matching.record import WorkRecord, record_key
from tacit.needs import Ability, needs_of_language_model
from tacit.places import refuse_taken_file
from tacit.progress import WorkProgress

if TYPE_CHECKING:
    from tacit.documents.language_models.writing import PromptedWriter

SMOLLM2 = "smollm2"
LICENSES = {SMOLLM2: "Apache-2.0"}
"""Licenses of models that Tacit knows."""
CONTINUATIONS, TOKENS, TEMPERATURE = 64, 40, 0.8
FEWEST_NEW = 0.02
"""The writing ends when of all sentences of a turn through the subjects less than this part is new."""
SHORTEST_TURN = 4


class Writer(Protocol):
    """A public language model that continues prompts."""

    @property
    def source(self) -> str: ...

    def requested(self, request: str, seed: int) -> list[str]: ...

    def continuations(self, prompt: str, seed: int) -> list[str]: ...


class PoolWriteConfig(Config):
    """The subjects of sentences, the model that writes them, and where the pool goes."""

    job: ClassVar[str] = "pool write"

    output: Annotated[Output[Path], Field(description="The pool.")] = Path("written.tacit")
    about: Annotated[
        str | None,
        Field(description="What the sentences are, in plain words: 'questions to a bank'."),
        Option(Group.WRITING, metavar="TEXT"),
    ] = None
    recipe: Annotated[
        str | None,
        Field(description="Take the prompts of a recipe; see 'tacit pool recipe list'."),
        Option(Group.WRITING, metavar="NAME"),
    ] = None
    labels: Annotated[
        Labels[tuple[str, ...]],
        BeforeValidator(split_at_commas),
        Field(description="Subjects to write about, such as the public names of labels."),
        Varied(group=Group.WRITING),
    ] = ()
    from_sketch: Annotated[FromSketch, Field(description="Write about the public names of the labels of a sketch.")] = (
        None
    )
    examples: Annotated[
        tuple[str, ...],
        Field(description="A sentence in the style that is wanted, 'SUBJECT: SENTENCE', public; may be repeated."),
        Option(Group.WRITING, name="example", metavar="TEXT"),
    ] = ()
    rows: Annotated[SyntheticRowCount[int], Field(ge=1, description="Sentences to write.")] = 5_000
    model: Annotated[
        Model[str], Field(description="The public causal model that writes: 'smollm2', a folder, or a hub name.")
    ] = SMOLLM2
    public: Annotated[
        PublicName, Field(description="Declare the model public, by the name it is known by; 'smollm2' is.")
    ] = None
    license: Annotated[License, Field(description="License of what the model writes; that of 'smollm2' is known.")] = ""
    likeness: Likeness = USUAL_LIKENESS
    device: Device = "auto"
    seed: PublicSeed = 0
    force: Force = False

    def needs(self) -> list[Ability]:
        return needs_of_language_model(self.model)

    @model_validator(mode="after")
    def _prompts_and_a_public_model(self) -> Self:
        if (self.about is None) == (self.recipe is None):
            raise BadParameterError(
                "about-or-recipe",
                "say what the sentences are with {option.about[TEXT]}, or take the prompts of {option.recipe[NAME]}",
            )
        if self.recipe is not None and (self.labels or self.from_sketch or self.examples):
            raise BadParameterError(
                "subjects-of-a-recipe", "a recipe has subjects and examples of its own: use {option.about} for yours"
            )
        if self.model != SMOLLM2 and not (self.public or "").strip():
            raise BadParameterError(
                "model-not-public",
                "what the model writes is repeated word for word in corpora, so it must have read public text only: if "
                "it has, say so with {option.public[NAME]}",
            )
        if any(":" not in example for example in self.examples):
            raise BadParameterError(
                "example-without-subject", "an example is a subject and a sentence, such as 'a fee: why do i pay this'"
            )
        return self

    def record_path(self, key: str) -> Path:
        """The file that lets an interrupted writing go on."""
        return self.output.with_name(f"{self.output.name.split('.')[0]}-writing-{key}.jsonl")


@dataclass(frozen=True)
class PoolWriteResult:
    """How many sentences are in the pool, how many near-duplicates were left out, and its digest."""

    output: Path
    sentences: int
    near_duplicates: int
    digest: str


def prompt_kinds(config: PoolWriteConfig) -> tuple[PromptKind, ...]:
    """The kinds of sentences that the model writes."""
    if config.recipe is not None:
        from tacit.matching.recipes import load_recipe

        return load_recipe(config.recipe).prompts
    examples = [example.partition(":") for example in config.examples]
    return (
        PromptKind(
            " ".join(str(config.about).split()).rstrip("."),
            tuple(dict.fromkeys([*config.labels, *_names_of_labels(config)])),
            tuple((subject.strip(), sentence.strip()) for subject, _, sentence in examples),
        ),
    )


def _names_of_labels(config: PoolWriteConfig) -> list[str]:
    """The public names of the labels of a sketch, as words; refused if none says anything."""
    if config.from_sketch is None:
        return []
    from tacit.matching.artifact import read_sketch
    from tacit.text.spoken import spoken_label

    names = [name for label in read_sketch(config.from_sketch).labels if (name := spoken_label(label))]
    if not names:
        raise BadInputError(
            "labels-say-nothing",
            "the labels of {path} are no words, so nothing can be written about them: name subjects with "
            "{option.labels}",
            path=config.from_sketch,
        )
    return names


@on_its_device
def run(config: PoolWriteConfig, progress: WorkProgress | None = None) -> PoolWriteResult:
    """The pool of what the model wrote; an interrupted writing goes on where it was."""
    refuse_taken_file(config.output, force=config.force)
    kinds = prompt_kinds(config)
    writer = load_writer(config)
    facts = _facts(config, kinds, writer)
    record = WorkRecord(config.record_path(record_key(facts)), facts)
    near = NearDuplicates(config.likeness)
    written: list[tuple[str, str]] = []
    for sentence, credit in _new_sentences(config, kinds, writer, record, near):
        written.append((sentence, credit))
        if progress is not None:
            progress("writing", len(written), config.rows)
        if len(written) == config.rows:
            break
    if len(written) < config.rows:
        warnings.warn(
            TacitWarning(
                f"the model repeats itself: {len(written):,} different sentences instead of {config.rows:,}. More "
                "subjects, examples, or another model would help"
            ),
            stacklevel=2,
        )
    source = _pool_source(config, kinds, writer)
    name = config.about or str(config.recipe)
    count, digest = write_pool(config.output, name, [source], ((text, 0, credit) for text, credit in written))
    if record.path is not None:
        record.path.unlink(missing_ok=True)
    return PoolWriteResult(config.output, count, near.removed, digest)


def load_writer(config: PoolWriteConfig) -> Writer:
    """The model, ready to write; one that learned from private text is refused."""
    from tacit.documents.language_models.writing import PromptedWriter

    writer = PromptedWriter.of(config.model, rows=CONTINUATIONS, tokens=TOKENS, temperature=TEMPERATURE)
    _refuse_private_model(writer)
    return writer


def _refuse_private_model(writer: PromptedWriter) -> None:
    from tacit.lineage import lineage_of

    folder = writer.model.folder
    if folder is not None and lineage_of(folder).paid is not None:
        raise BadInputError(
            "writer-of-private-text",
            "{model} was trained on private text: what it writes is covered by its own card and is no public pool; "
            "give a public model",
            model=writer.name,
        )


def _new_sentences(
    config: PoolWriteConfig, kinds: tuple[PromptKind, ...], writer: Writer, record: WorkRecord, near: NearDuplicates
) -> Iterator[tuple[str, str]]:
    """Sentences that are not there yet, each with what the model was asked for, until it only repeats itself."""
    turn = max(SHORTEST_TURN, sum(max(1, len(kind.subjects)) for kind in kinds))
    known: set[bytes] = set()
    seen = new = 0
    for number, prompt in enumerate(prompts_in_turn(kinds, config.seed)):
        if number and number % turn == 0:
            if new < FEWEST_NEW * max(seen, 1):
                return
            seen = new = 0
        credit = _wish_of(prompt)
        for sentence in _written(config, writer, record, number, prompt):
            seen += 1
            key = words_key(sentence)
            if key not in known:
                known.add(key)
                if near.admits(sentence):
                    new += 1
                    yield sentence, credit


def _written(config: PoolWriteConfig, writer: Writer, record: WorkRecord, number: int, prompt: Prompt) -> list[str]:
    """The sentences after one prompt: those in the record, or new ones, which are then on the disk."""
    done = record.done(f"prompt {number}")
    if done is not None:
        return list(done)
    ask = writer.requested if prompt.is_request else writer.continuations
    seed = config.seed * 1_000_003 + number
    sentences = list(dict.fromkeys(each for text in ask(prompt.text, seed) for each in sentences_in(text, prompt)))
    record.add(f"prompt {number}", sentences)
    return sentences


def _wish_of(prompt: Prompt) -> str:
    """The wish of a prompt in one line, for the credit of what is written."""
    if prompt.is_request:
        return prompt.text
    title, *_, subject = prompt.text.split("\n")
    return f"{title} {subject.rstrip(':')}"


def _facts(config: PoolWriteConfig, kinds: tuple[PromptKind, ...], writer: Writer) -> dict[str, Any]:
    """All that decides about the sentences but their number: more rows go on with what is written."""
    return {
        "writer": writer.source,
        "prompts": [kind.to_dict() for kind in kinds],
        "seed": config.seed,
        "settings": [CONTINUATIONS, TOKENS, TEMPERATURE],
    }


def _pool_source(config: PoolWriteConfig, kinds: tuple[PromptKind, ...], writer: Writer) -> PoolSource:
    titles = "; ".join(kind.title for kind in kinds)
    return PoolSource(
        f"written by a language model, {writer.source}, from public prompts: {titles}",
        config.license or LICENSES.get(config.model, ""),
        "What the model was asked for:",
        declared=config.model != SMOLLM2,
    )


def write(*, output: str | Path, progress: WorkProgress | None = None, **options: Any) -> SentencePool:
    """The pool that a model writes; options as in `PoolWriteConfig`."""
    return read_pool(run(PoolWriteConfig(output=Path(output), **options), progress).output)
