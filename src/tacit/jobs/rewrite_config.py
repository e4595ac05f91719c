"""All options of rewriting, and what they mean together."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from tacit.catalog import DEFAULT_MECHANISM, DEFAULT_OF_LEVEL, find, mechanism_names, needs_of_mechanism
from tacit.engines.shuffling import shuffle_needs_local_engine
from tacit.errors import BadParameterError
from tacit.jobs.config import Group, Option
from tacit.jobs.fields import Columns, Epsilon, Input, MechanismName, Randomize
from tacit.jobs.row_release import RowReleaseConfig, call_text, shown_release, without_folder
from tacit.jobs.running import EngineOptions
from tacit.jobs.sources import needs_of_source
from tacit.jobs.values import mechanism_options
from tacit.labels import labels_need_local_engine
from tacit.needs import Ability, needs_of_ledger, needs_of_place


class RewriteConfig(EngineOptions, RowReleaseConfig):
    """Texts, how they are rewritten, and where the release, its card and what it spent are written."""

    job: ClassVar[str] = "rewrite"

    input: Annotated[Input, Field(description="The file to rewrite, or - for standard input.")]
    columns: Annotated[
        Columns,
        Field(description="A column of texts to rewrite; may be repeated. By default the only column, or 'text'."),
    ] = ()
    mechanism: Annotated[
        MechanismName[str | None],
        Field(description=f"See 'tacit mechanisms'. By default {DEFAULT_MECHANISM}, or that of the level."),
    ] = None
    epsilon: Annotated[
        Epsilon[float | None],
        Field(description="The privacy budget of one token, document or user; smaller is more private."),
    ] = None
    randomize: Annotated[
        Randomize,
        Field(description="A column of labels to release with noise; needs the list of labels. 'codebook' draws text "
              "and label together, covered by one epsilon; others need a label epsilon."),
    ] = None  # fmt: skip
    shuffle: Annotated[
        bool,
        Field(description="Release the rows in a secret random order, which earns a second promise for the data set as "
              "a whole (document level; no kept columns)."),
        Option(Group.PRIVACY),
    ] = False  # fmt: skip

    @model_validator(mode="after")
    def _options_fit_together(self) -> Self:
        mechanism_options(self.epsilon, self.vectors, self.options)
        self.check_card_file()
        self._check_labels()
        self._check_shuffle()
        self.check_ledger_options()
        return self

    def _check_labels(self) -> None:
        if not self.check_labels_stated():
            return
        if self.label_epsilon is None and not find(self._mechanism_name).joint_labels:
            raise BadParameterError(
                "label-budget-missing",
                "{mechanism} does not cover labels: give them a budget of their own with {option.label_epsilon[E]}, or "
                "take {option.mechanism[codebook]}, which draws text and label together",
                mechanism=self._mechanism_name,
            )
        if self.randomize is not None and self.on_cluster:
            raise labels_need_local_engine()

    def _check_shuffle(self) -> None:
        if self.shuffle and self.on_cluster:
            raise shuffle_needs_local_engine()

    def needs(self) -> list[Ability]:
        name = self._mechanism_name
        only_the_card = self.dry_run and name in mechanism_names("document")  # most cards need no model
        vectors = {} if self.vectors is None else {"vectors": self.vectors}
        return [
            *super().needs(),
            *([] if only_the_card else needs_of_mechanism(name, {**self.options, **vectors})),
            *needs_of_source(self.input, self.format),
            *needs_of_place(self.output),
            *needs_of_ledger(self.ledger),
        ]

    def identity(self) -> dict[str, Any]:
        """The values that decide what is released, without the folders of files."""
        return {
            **super().identity(),
            "mechanism": self._mechanism_name,
            "vectors": without_folder(self.vectors),
        }

    @property
    def is_shuffled(self) -> bool:
        return self.shuffle

    @property
    def _mechanism_name(self) -> str:
        return self.mechanism or DEFAULT_OF_LEVEL[self.level or "word"]

    # What is derived from the options -----------------------------------------------------------------------------

    def chosen_mechanism(self) -> str:
        """The name of the mechanism: the one that is named, or that of the level."""
        if self.mechanism is None:
            return self._mechanism_name
        level = find(self.mechanism).level
        if self.level is not None and level != self.level:
            raise BadParameterError(
                "another-level",
                "{mechanism} works at the {level} level: leave out {option.level}",
                mechanism=self.mechanism,
                level=level,
            )
        return self.mechanism

    def usual_options(self) -> dict[str, Any]:
        return mechanism_options(self.epsilon, self.vectors, self.options)


def shown_options(config: RewriteConfig) -> list[tuple[str, str]]:
    """The options that the promise depends on, each with its value."""
    return shown_release(config, ("epsilon", "vectors"))


def python_call(config: RewriteConfig) -> str:
    """The call of `tacit.rewrite` that a card shows."""
    return call_text("rewrite", config, shown_options(config))
