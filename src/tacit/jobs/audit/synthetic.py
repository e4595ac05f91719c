"""Does a sketch, and a corpus made of it, keep what its card promises? Attacks on them and on others made like them.

report = tacit.audit_synthetic("tickets.csv", "synthetic-sketch.tacit", label_column="intent")
report.refuted
"""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from tacit.auditing.models.one_run import one_run_section
from tacit.auditing.models.synthetic import compare_with_private, copies_section
from tacit.auditing.synthetic.artifact import sketch_noise
from tacit.auditing.synthetic.coins import coin_audit
from tacit.auditing.synthetic.corpora import corpus_attack
from tacit.auditing.synthetic.membership import CONFIDENCE, FEWEST_RELEASES, check_releases, membership_attack
from tacit.auditing.synthetic.planted import with_mistake
from tacit.auditing.synthetic.process import release_of
from tacit.auditing.synthetic.report import attack_section, noise_section
from tacit.auditing.synthetic.rows import AuditedRows
from tacit.auditing.synthetic.targets import usual_targets
from tacit.errors import BadInputError, BadParameterError
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import (
    USUAL_POOLS,
    Confidence,
    Data,
    Format,
    LabelColumns,
    Pools,
    SketchFile,
    TestSeed,
    UserColumn,
    UsualColumn,
)
from tacit.jobs.named_labels import with_label_columns
from tacit.jobs.sources import Source, needs_of_source
from tacit.matching.artifact import read_sketch
from tacit.matching.composing import parts_of
from tacit.matching.labels import Topics
from tacit.matching.marginals import JointLabels
from tacit.matching.pool import load_pool
from tacit.matching.sides import lines_per_row
from tacit.matching.sketch import Sketch
from tacit.matching.subjects import without_subjects
from tacit.needs import Ability
from tacit.progress import WorkProgress, steps_of
from tacit.report import Finding, Light, Report, Section
from tacit.text.files import cell_string, choose_columns, open_table, text_value

Mistake = Literal[
    "means-without-noise",
    "counts-without-noise",
    "tables-without-noise",
    "half-sensitivity",
    "users-not-bounded",
    "private-filter",
]
ATTACKS = 4
"""Attacks that can refute: each gets its share of the false-alarm rate."""
FEWEST_COINS = 20


class SyntheticAuditConfig(Config):
    """Private rows, the sketch that was released of them, a corpus drawn from it, and how hard the attacks try."""

    job: ClassVar[str] = "audit synthetic"

    data: Annotated[Data, Field(description="The private rows that the sketch was made of.")]
    sketch: Annotated[
        SketchFile[Path],
        Field(description="The released sketch, with its card inside."),
    ]
    corpus: Annotated[
        Source,
        Field(description="The released corpus: its sentences are looked up in the private rows."),
        Option(Group.DATA, metavar="FILE", private=True),
    ] = None
    column: UsualColumn = None
    label_columns: Annotated[
        LabelColumns,
        Field(description="The column of labels; if the sketch is of several, name them in the same order."),
    ] = ()
    user_column: Annotated[
        UserColumn[str | None], Field(description="The column that says who wrote a row, if the promise is for users.")
    ] = None
    format: Format = None
    pools: Annotated[
        Pools,
        Field(min_length=1, description="Public sentences that shadow corpora are drawn from, a part of them: a name "
              "of 'tacit pool list', or a file of 'tacit pool build'; may be repeated."),
        Varied(group=Group.MEASURES),
    ] = USUAL_POOLS  # fmt: skip
    releases: Annotated[
        int,
        Field(ge=FEWEST_RELEASES, description="Shadow sketches with each target, and as many without."),
        Option(Group.MEASURES, metavar="N"),
    ] = 1_000
    corpora: Annotated[
        int,
        Field(ge=0, description="Shadow corpora with each target, and as many without; 0 leaves them out."),
        Option(Group.MEASURES, metavar="N"),
    ] = 60
    coins: Annotated[
        int,
        Field(ge=FEWEST_COINS, description="Canaries in the one release whose coins are guessed."),
        Option(Group.MEASURES, metavar="N"),
    ] = 500
    planted: Annotated[
        Mistake | None,
        Field(description="Audit releases with this known mistake in place of right ones, to see that the audit finds "
              "it."),
        Option(Group.MEASURES),
    ] = None  # fmt: skip
    confidence: Confidence = CONFIDENCE
    seed: Annotated[
        TestSeed,
        Field(description="Test seed for all noise of the audit; otherwise it is fresh, as in a release."),
        Varied(group=Group.MEASURES),
    ] = None

    def needs(self) -> list[Ability]:
        return needs_of_source(self.data, self.format)

    @model_validator(mode="before")
    @classmethod
    def _one_column_by_its_name(cls, values: object) -> object:
        """Takes `label_column` for one column."""
        return with_label_columns(values)


def run(config: SyntheticAuditConfig, progress: WorkProgress | None = None) -> Report:
    """The report of all attacks. It reads the private rows and is private."""
    if config.corpora:
        check_releases(config.corpora)
    released = read_sketch(config.sketch)
    release = release_of(released)
    rows = read_audited_rows(config, released)
    if config.planted is not None:
        release = with_mistake(release, config.planted)
        released = release.sketch(rows, config.seed)
    pools = [load_pool(name) for name in config.pools]
    steps = steps_of(progress)
    doubt = (1 - config.confidence) / ATTACKS
    confidence = 1 - doubt

    targets = usual_targets(rows, release)
    sections = [
        noise_section(sketch_noise(released, rows, release, targets, doubt)),
        attack_section(
            membership_attack(
                rows, release, releases=config.releases, targets=targets, confidence=confidence, seed=config.seed,
                progress=steps("shadow sketches"),
            ),
            "Membership by shadow sketches",
            "The attacker knows all other rows, the target and every public choice.",
        ),
        one_run_section(
            coin_audit(
                rows, release, pools[0].sentences, canaries=config.coins, confidence=confidence, seed=config.seed
            ),
            release.epsilon,
            title="Coins of canaries in one sketch",
        ),
    ]  # fmt: skip
    if config.corpora:
        sections.append(
            attack_section(
                corpus_attack(
                    rows, release, pools[0], releases=config.corpora, confidence=confidence, seed=config.seed,
                    progress=steps("shadow corpora"),
                ),
                "Membership by shadow corpora",
                "Does a corpus know anything of a row that did not go through the sketch?",
            )
        )  # fmt: skip
    if config.corpus is not None:
        texts = _texts(config.corpus, config.column)
        sections.append(copies_section(compare_with_private(texts, list(rows.texts), progress=steps("copies"))))
        public = {sentence for pool in pools for sentence in pool.sentences}
        sections.append(public_section(without_subjects(texts, released.labels), public))
    facts: dict[str, object] = {
        "sketch": config.sketch.name,
        "rows": len(rows),
        "claimed epsilon": release.epsilon,
        "claimed delta": release.delta,
        "promise for": "users" if release.by_user else "records",
        "planted mistake": config.planted,
        "confidence": config.confidence,
        "this report": "private: it was computed from the private rows, and no card covers it",
    }
    return Report("Audit of a synthetic corpus and its sketch", sections, facts)


def audit_synthetic(
    data: object, sketch: str | Path, *, progress: WorkProgress | None = None, **options: Any
) -> Report:
    """The report of attacks on a released sketch and on others made like it; options as in `SyntheticAuditConfig`.

    report = tacit.audit_synthetic("tickets.csv", "synthetic-sketch.tacit", label_column="intent")
    report.refuted, report.exit_code
    """
    return run(SyntheticAuditConfig(data=data, sketch=Path(sketch), **options), progress)


def public_section(texts: list[str], public: Set[str]) -> Section:
    """Rows of a corpus that are not made of sentences of the public pools."""
    foreign = sum(parts_of(text, public) is None for text in texts)
    return Section(
        "Public sentences",
        findings=(
            Finding(
                "Sentences from elsewhere",
                Light.AMBER if foreign else Light.GREEN,
                f"{foreign:,} of {len(texts):,} rows of the corpus are not made of sentences of the public pools.",
                "Look: a corpus by matching repeats public sentences, so others need an explanation (another pool, or "
                "a model that wrote them).",
                numbers={"foreign": foreign, "rows": len(texts)},
            ),
        ),
    )


def read_audited_rows(config: SyntheticAuditConfig, sketch: Sketch) -> AuditedRows:
    """The private rows with the columns that the sketch needs."""
    expected = 0 if isinstance(sketch.rule, Topics) else lines_per_row(sketch.rule)
    if expected and not config.label_columns:
        raise BadParameterError(
            "labels-without-column", "name the column of the labels with {option.label_column[NAME]}"
        )
    if expected > 1:
        _check_columns(config, sketch)
    by_user = release_of(sketch).by_user
    if by_user and config.user_column is None:
        raise BadParameterError(
            "users-without-column", "this sketch promises privacy to users: name their column with {option.user_column}"
        )
    labels = list(config.label_columns[:expected])
    kept = [*labels, *([config.user_column] if by_user and config.user_column else [])]
    with open_table(config.data, config.format) as table:
        text = choose_columns(table.columns, () if config.column is None else (config.column,), kept).texts[0]
        table.select([text, *kept])
        rows = [(text_value(values[0], row, text), *values[1:]) for row, values in table.rows()]
    if not rows:
        raise BadInputError("no-rows", "{name} has no rows", name=table.name)
    return AuditedRows(
        [str(row[0]) for row in rows],
        [row[1] if expected == 1 else tuple(row[1 : expected + 1]) for row in rows] if expected else (),
        [cell_string(row[-1]) for row in rows] if by_user else (),
    )


def _check_columns(config: SyntheticAuditConfig, sketch: Sketch) -> None:
    """Refuse other label columns than those of the sketch: its lines would be compared with those of others."""
    assert isinstance(sketch.rule, JointLabels)
    wanted = tuple(name for name, _ in sketch.rule.columns)
    if config.label_columns != wanted:
        raise BadParameterError(
            "other-label-columns",
            "this sketch is of the label columns {columns}: name all of them with {option.label_column}, in this order",
            columns=", ".join(wanted),
        )


def _texts(source: object, column: str | None) -> list[str]:
    with open_table(source) as table:
        name = column if column in table.columns else "text" if "text" in table.columns else table.columns[0]
        table.select([name])
        return [text_value(values[0], row, name) for row, values in table.rows()]
