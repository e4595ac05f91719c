"""The audit of a mechanism: its privacy claim is checked exactly where its law is known, from samples where it is not.

report = tacit.audit_mechanism("santext", epsilon=2)
report = tacit.audit_mechanism(callable=their_function, words=["yes", "no"], epsilon=1)
report.refuted
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, cast

from pydantic import Field, model_validator

from tacit.auditing.claims.claim import Claim
from tacit.auditing.claims.documents import audit_latents
from tacit.auditing.claims.foreign import audit_function, audit_matrix, stated_claim
from tacit.auditing.claims.mechanisms import audit_mechanism as checks_of_mechanism
from tacit.auditing.claims.settings import ClaimAuditSettings, listed
from tacit.catalog import build, mechanism_names, needs_of_mechanism
from tacit.documents.adept import PublishedAdept
from tacit.errors import BadParameterError
from tacit.evaluation.deniability import EPSILONS, deniability_section, over_epsilon
from tacit.jobs.config import Config, Group, Option, Varied
from tacit.jobs.fields import (
    Confidence,
    Delta,
    MechanismEpsilon,
    MechanismName,
    MechanismOptions,
    Seed,
    Vectors,
)
from tacit.jobs.sources import Source
from tacit.jobs.values import mechanism_options
from tacit.mechanism import Mechanism
from tacit.needs import MODELS, Ability
from tacit.progress import WorkProgress, steps_of
from tacit.report import Report, Section

if TYPE_CHECKING:
    from tacit.words.base import WordMechanism

PUBLISHED_ADEPT = "published-adept"
PUBLISHED_OPTIONS = {"epsilon": float, "model": str, "clip": float}


class MechanismAuditConfig(Config):
    """A mechanism of ours, a matrix or a function, and how thoroughly its claim is checked."""

    job: ClassVar[str] = "audit mechanism"

    mechanism: Annotated[
        MechanismName[Source],
        Field(description="A mechanism of 'tacit mechanisms', or published-adept."),
        Varied(positional=True, metavar="[NAME]"),
    ] = None
    matrix: Annotated[
        Source,
        Field(description="Check this CSV of probabilities: outputs in the header, a row per input, its name first."),
        Option(Group.DATA, metavar="FILE"),
    ] = None
    callable: Annotated[
        Source,
        Field(
            description="Check a function: word -> probabilities, text -> text, or (word, count) -> outputs. It is run."
        ),
        Option(Group.DATA, metavar="FILE.py:FUNCTION"),
    ] = None
    metric: Annotated[
        Source,
        Field(description="With a matrix or a function: a CSV of distances; the claim is epsilon times distance."),
        Option(Group.PRIVACY, metavar="FILE"),
    ] = None
    epsilon: MechanismEpsilon = None
    delta: Annotated[Delta[float | None], Field(description="With a matrix or a function: the claimed delta.")] = None
    vectors: Vectors = None
    options: MechanismOptions = Field(default_factory=dict)
    words: Annotated[
        str | tuple[str, ...] | None,
        Field(description="Inputs to check: all, a number, closest:K pairs, or a file with one per line."),
        Option(Group.MEASURES),
    ] = None
    samples: Annotated[
        int | None, Field(description="Also draw so many samples of each input."), Option(Group.MEASURES)
    ] = None
    confidence: Confidence = 0.999
    tolerance: Annotated[
        float, Field(description="What arithmetic may add to an exact loss."), Option(Group.MEASURES)
    ] = 1e-9
    deniability: Annotated[
        bool,
        Field(description="Also how often words stay, and among how many they hide."),
        Option(Group.MEASURES),
    ] = False
    seed: Annotated[
        Seed[int | None], Field(description="Repeatable samples, for tests."), Varied(group=Group.MEASURES)
    ] = None

    def needs(self) -> list[Ability]:
        if not isinstance(self.mechanism, str):
            return []
        vectors = {} if self.vectors is None else {"vectors": self.vectors}
        broken = [MODELS] if self.mechanism == PUBLISHED_ADEPT else []  # not in the catalog: it releases nothing
        releases = _releases_vectors(self.mechanism)
        return [*broken, *needs_of_mechanism(self.mechanism, {**self.options, **vectors}, vectors=releases)]

    @model_validator(mode="after")
    def _one_thing_is_audited(self) -> Self:
        if sum(each is not None for each in (self.mechanism, self.matrix, self.callable)) != 1:
            raise BadParameterError(
                "nothing-to-audit",
                "say what to audit: the name of a mechanism, or {option.matrix[FILE]}, or {option.callable[FUNCTION]}",
            )
        if self.mechanism is not None and (self.delta is not None or self.metric is not None):
            raise BadParameterError(
                "claim-of-a-named-mechanism",
                "what {name} claims is on its card: leave out {option.delta} and {option.metric} "
                "(or use {option.options})",
                name=_name(self),
            )
        if self.mechanism is None and (self.deniability or self.options):
            raise BadParameterError(
                "options-without-mechanism",
                "{option.deniability} and {option.options} need the name of a mechanism",
            )
        stated = self.epsilon is not None or self.vectors is not None or self.options
        if isinstance(self.mechanism, Mechanism) and stated:
            raise BadParameterError(
                "options-of-a-built-mechanism",
                "this mechanism has its options already: leave out {option.epsilon}, {option.vectors} and "
                "{option.options}, or give its name in its place",
            )
        if isinstance(self.words, tuple) and self.callable is None:
            raise BadParameterError(
                "words-in-memory", "a list of words is for a function: give other words in a file, one per line"
            )
        if self.callable is not None and self.words is None:
            raise BadParameterError(
                "function-without-words",
                "give the words to try the function with: {option.words[FILE]}, one per line",
            )
        return self


def run(config: MechanismAuditConfig, progress: WorkProgress | None = None, *, figures: bool = False) -> Report:
    """The report of all checks that fit; with `figures`, drawings as well."""
    words = config.words if isinstance(config.words, str) else None
    settings = ClaimAuditSettings(
        words, config.samples, config.confidence, config.tolerance, config.seed, steps_of(progress)
    )
    report = Report(f"Audit of {_name(config)}")
    report.facts = {
        "epsilon": config.epsilon,
        "confidence": config.confidence,
        "words": config.words,
        "samples": config.samples,
    }
    claim_of = partial(
        stated_claim, epsilon=config.epsilon, delta=config.delta or 0.0, metric=config.metric, vectors=config.vectors
    )
    if config.mechanism is not None:
        report.sections += _of_mechanism(config, settings, figures)
    elif config.matrix is not None:
        report.sections.append(audit_matrix(config.matrix, claim_of, settings))
    else:
        report.sections += audit_function(config.callable, _words(config), claim_of, settings)
    return report


def audit_mechanism(
    mechanism: Mechanism | str | None = None,
    *,
    progress: WorkProgress | None = None,
    figures: bool = False,
    **options: Any,
) -> Report:
    """The report on a claim of a mechanism, by name or built already; options as in `MechanismAuditConfig`.

    >>> import tacit
    >>> report = tacit.audit_mechanism(matrix=[[0.75, 0.25], [0.25, 0.75]], epsilon=1)
    >>> report.refuted
    True
    """
    return run(MechanismAuditConfig(mechanism=mechanism, **options), progress, figures=figures)


def _name(config: MechanismAuditConfig) -> str:
    """The name of what is audited."""
    if config.mechanism is not None:
        return config.mechanism if isinstance(config.mechanism, str) else str(config.mechanism.name)
    if config.matrix is not None:
        return Path(config.matrix).name if isinstance(config.matrix, str | Path) else "a matrix"
    if isinstance(config.callable, str):
        return Path(config.callable.rpartition(":")[0]).name
    return getattr(config.callable, "__name__", "a function")


def _releases_vectors(name: str) -> bool:
    """Whether this is the name of a mechanism that releases vectors, and of none that releases texts."""
    return name in mechanism_names(vectors=True) and name not in mechanism_names()


def _words(config: MechanismAuditConfig) -> Sequence[str]:
    return listed(config.words) if isinstance(config.words, str) else list(config.words or ())


def _of_mechanism(config: MechanismAuditConfig, settings: ClaimAuditSettings, figures: bool) -> list[Section]:
    options = mechanism_options(config.epsilon, config.vectors, config.options)
    if config.mechanism == PUBLISHED_ADEPT:
        return _published_adept(options, settings)
    if isinstance(config.mechanism, Mechanism):
        mechanism = config.mechanism
    else:
        mechanism = build(config.mechanism, options, vectors=_releases_vectors(config.mechanism))
    if config.deniability and mechanism.level != "word":
        raise BadParameterError(
            "deniability-of-documents",
            "{option.deniability} is about words, and {name} rewrites whole documents: leave it out",
            name=mechanism.name,
        )
    sections = checks_of_mechanism(mechanism, settings)
    if config.deniability:
        sections.append(_deniability(cast("WordMechanism", mechanism), settings, figures))
    return sections


def _published_adept(options: dict[str, object], settings: ClaimAuditSettings) -> list[Section]:
    """ADePT as it was published, held against what its paper claims."""
    if "epsilon" not in options:
        raise BadParameterError("no-epsilon", "published-adept needs epsilon, for example {option.epsilon[2]}")
    unknown = [name for name in options if name not in PUBLISHED_OPTIONS]
    if unknown:
        raise BadParameterError(
            "unknown-mechanism-option",
            "published-adept has no option '{name}': its options are model and clip",
            name=unknown[0],
        )
    broken = PublishedAdept(**{name: PUBLISHED_OPTIONS[name](value) for name, value in options.items()})
    return audit_latents(broken, Claim(broken.epsilon), settings)


def _deniability(mechanism: WordMechanism, settings: ClaimAuditSettings, figures: bool) -> Section:
    epsilons = sorted({*EPSILONS, mechanism.epsilon}) if mechanism.every_epsilon else [mechanism.epsilon]
    measured = over_epsilon(mechanism, epsilons, seed=settings.seed, progress=settings.bar("deniability"))
    return deniability_section(measured, shown=mechanism.epsilon, draw=figures)
