"""The audit of a released text: attacks on it with the original beside it.

report = tacit.audit_text("reviews.csv", "private.csv", author_column="user")
print(report)
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from tacit.auditing.text.pairs import read_pairs
from tacit.auditing.text.plan import ALL, LEAST_SAMPLE, SAMPLE, TextAuditSettings, check_attacks
from tacit.auditing.text.plan import audit_text as attacked
from tacit.auditing.text.release import MadeBy, StatedMechanism, card_beside, made_by, readable_card, refuse_shuffled
from tacit.card import Card
from tacit.catalog import needs_of_mechanism
from tacit.encoders import encoder_needs
from tacit.errors import BadInputError
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import (
    AttributeColumns,
    AuditSeed,
    Device,
    Encoder,
    Format,
    MechanismEpsilon,
    MechanismName,
    MechanismOptions,
    Original,
    Private,
    PrivateColumn,
    PrivateFormat,
    Sample,
    UsualColumn,
)
from tacit.jobs.rewrite_config import RewriteConfig
from tacit.jobs.running import on_its_device
from tacit.jobs.sources import Source, needs_of_source
from tacit.jobs.values import CommaSeparated
from tacit.needs import CLASSIFIERS, FREQUENCIES, Ability, needs_of_language_model
from tacit.progress import WorkProgress
from tacit.report import Report
from tacit.text.files import STANDARD_STREAM, choose_columns, open_table, text_value
from tacit.text.files.memory import name_of

CLASSIFYING = frozenset({"authorship", "attributes", "linkage"})
DECIDING = (
    "mechanism", "level", "epsilon", "vectors", "options", "columns", "user_column", "user_mode", "documents_per_user",
    "randomize", "label_epsilon", "labels",
)  # fmt: skip
"""Options of a rewriting that decide about the mechanism and its parameters."""


class TextAuditConfig(Config):
    """The original, the release made from it, and which attacks are tried."""

    job: ClassVar[str] = "audit text"

    original: Original
    private: Private[Source]
    column: UsualColumn = None
    private_column: Annotated[
        PrivateColumn, Field(description="The column of texts in PRIVATE, if it is called otherwise.")
    ] = None
    key_column: Annotated[
        str | None, Field(description="A column in both files that must be equal row by row."), Option(Group.DATA)
    ] = None
    author_column: Annotated[
        str | None, Field(description="The column of ORIGINAL that says who wrote a row."), Option(Group.DATA)
    ] = None
    attribute_columns: Annotated[
        AttributeColumns, Field(description="A column of ORIGINAL to infer from the texts; may be repeated.")
    ] = ()
    spans_column: Annotated[
        str | None,
        Field(description="A column of ORIGINAL with known entities: a list of {type, value}."),
        Option(Group.DATA),
    ] = None
    format: Format = None
    private_format: PrivateFormat = None
    mechanism: Annotated[
        MechanismName[str | None], Field(description="What made PRIVATE; by default what the card beside it says.")
    ] = None
    epsilon: MechanismEpsilon = None
    options: MechanismOptions = Field(default_factory=dict)
    attacks: Annotated[
        tuple[str, ...],
        CommaSeparated,
        Field(
            description="'all' that are possible, or of: inversion, mask, authorship, attributes, entities, linkage."
        ),
        Option(Group.MEASURES, comma_separated=True),
    ] = (ALL,)
    language_models: Annotated[
        tuple[str, ...],
        Field(description="A masked or causal model that guesses words: a folder, a hub name, 'smollm2'; may be "
              "repeated."),
        Option(Group.MODEL),
    ] = ()  # fmt: skip
    encoder: Annotated[
        Encoder,
        Field(description="Sentence encoder for linkage: 'auto', 'none', 'static', 'minilm', one of a plug-in, a "
              "folder, or a hub name."),
    ] = "auto"  # fmt: skip
    prior: Annotated[
        Source,
        Field(description="A public text whose word counts the inversion knows; by default public word frequencies."),
        Option(Group.MEASURES, metavar="FILE"),
    ] = None
    sample: Annotated[
        Sample,
        Field(ge=LEAST_SAMPLE, description="Rows (and words, for 'mask') that the slower attacks use at most."),
        Varied(metavar="N"),
    ] = SAMPLE
    seed: AuditSeed = 0
    device: Device = "auto"

    def needs(self) -> list[Ability]:
        chosen = set(self.chosen_attacks)
        abilities = [
            *needs_of_source(self.original, self.format),
            *needs_of_source(self.private, self.private_format),
            *needs_of_mechanism(self.mechanism or "", self.options),
        ]
        if chosen & CLASSIFYING:
            abilities.append(CLASSIFIERS)
        if "inversion" in chosen and self.prior is None:
            abilities.append(FREQUENCIES)
        if self.encoder not in ("auto", "none"):
            abilities += encoder_needs(self.encoder)
        for model in self.language_models:
            abilities += needs_of_language_model(model)
        return abilities

    @model_validator(mode="after")
    def _attacks_exist(self) -> Self:
        self.chosen_attacks  # noqa: B018  # a name that does not exist is an error of the configuration
        return self

    @property
    def chosen_attacks(self) -> tuple[str, ...]:
        return check_attacks(self.attacks)

    @property
    def all_attacks(self) -> bool:
        """Whether all possible attacks are tried: what cannot be attacked is then said and no error."""
        return self.attacks == (ALL,)


@on_its_device
def run(config: TextAuditConfig, progress: WorkProgress | None = None, *, figures: bool = False) -> Report:
    """The report of the attacks; it quotes the original text where one succeeded. With `figures`, drawings as well."""
    refuse_shuffled(readable_card(config.private))
    attributes = tuple(dict.fromkeys(config.attribute_columns))
    labels = dict.fromkeys(name for name in (config.author_column, *attributes) if name is not None)
    pairs = read_pairs(
        config.original,
        config.private,
        column=config.column,
        private_column=config.private_column,
        key_column=config.key_column,
        label_columns=list(labels),
        spans_column=config.spans_column,
        original_format=config.format,
        private_format=config.private_format,
    )
    made, why_unknown = _made_by(config)
    settings = TextAuditSettings(
        attacks=config.chosen_attacks,
        chosen=not config.all_attacks,
        author_column=config.author_column,
        attribute_columns=attributes,
        models=config.language_models or None,
        encoder=config.encoder,
        prior_texts=None if config.prior is None else _texts(config.prior),
        sample=config.sample,
        seed=config.seed,
        figures=figures,
    )
    report = attacked(pairs, made, settings, progress=progress, why_no_mechanism=why_unknown)
    report.facts = {"original": name_of(config.original), "private": name_of(config.private), **report.facts}
    return report


def audit_text(
    original: object, private: object, *, progress: WorkProgress | None = None, figures: bool = False, **options: Any
) -> Report:
    """The report of attacks on a release; files or data in memory, options as in `TextAuditConfig`.

    >>> import tacit
    >>> originals = ["Ann Lee lives here", "nobody was at home", "call 0711 123456"]
    >>> report = tacit.audit_text(originals, ["Ann Lee was there", "no", "0711 123456"], attacks="entities")
    >>> report.findings[0].name
    'entities that survive (patterns)'
    """
    return run(TextAuditConfig(original=original, private=private, **options), progress, figures=figures)


def _made_by(config: TextAuditConfig) -> tuple[MadeBy | None, str]:
    """The mechanism of the release; where only the card tells and its files are missing, why not."""
    if "inversion" not in config.chosen_attacks:
        return None, ""
    try:
        card = card_beside(config.private)
        on_card = None if card is None else mechanism_on(card)
        return made_by(card, on_card, config.mechanism, config.epsilon, config.options), ""
    except BadInputError as error:
        if not config.all_attacks or config.mechanism is not None or config.options:
            raise
        return None, str(error)


def mechanism_on(card: Card) -> StatedMechanism | None:
    """The mechanism of a rewritten file as the configuration on its card says; None if the card has no such one."""
    if card.made_by.get("job") != RewriteConfig.job:
        return None
    values = {name: card.made_by[name] for name in DECIDING if name in card.made_by}
    rewriting = RewriteConfig.model_validate({"input": STANDARD_STREAM, **values})
    return StatedMechanism(rewriting.chosen_mechanism(), rewriting.of_mechanism())


def _texts(source: object) -> list[str]:
    with open_table(source) as table:
        names = choose_columns(table.columns, (), ()).texts
        table.select(names)
        return [text_value(value, row, names[0]) for row, values in table.rows() for value in values]
