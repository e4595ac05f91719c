"""The audit of a synthetic corpus from the corpus alone: what does it give away about the texts it was made from?

report = tacit.audit_corpus("synthetic.csv", canaries="coins.jsonl")
report.refuted
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from tacit.arrays import Floats
from tacit.auditing.models.blind import blind
from tacit.auditing.models.bounds import BoundSettings, bound_of_members, bounds_of_canaries
from tacit.auditing.models.canaries import Canary
from tacit.auditing.models.canary_files import load_canaries
from tacit.auditing.models.claimed import ModelClaim, claim_of_card
from tacit.auditing.models.in_distribution import recognized_section
from tacit.auditing.models.members import LabeledTexts, read_members, read_texts
from tacit.auditing.models.membership import attack, membership_section
from tacit.auditing.models.one_run import Observations
from tacit.auditing.synthetic.echo import CorpusEcho, echo_signals
from tacit.jobs.audit.attacked import AttackedTraining, Reference
from tacit.jobs.config import Group, Option, Varied
from tacit.jobs.fields import Data
from tacit.jobs.sources import needs_of_source
from tacit.needs import Ability
from tacit.progress import StepProgress, WorkProgress, steps_of
from tacit.report import Report, Section
from tacit.text.files.memory import is_in_memory, name_of

CHOSEN = "2-gram"
"""The signal that the bound is made of, chosen before looking: the strongest one of the paper."""


class CorpusAuditConfig(AttackedTraining):
    """A synthetic corpus, what is known about the texts it was made from, and what is claimed about it."""

    job: ClassVar[str] = "audit corpus"

    data: Annotated[Data, Field(description="The released synthetic texts."), Varied(metavar="CORPUS")]
    corpus_column: Annotated[
        str | None, Field(description="Their column, if it is called otherwise than that of the members."),
        Option(Group.DATA),
    ] = None  # fmt: skip
    reference: Annotated[
        Reference,
        Field(description="A corpus made in the same way from other texts, to compare with."),
        Varied(group=Group.DATA, metavar="FILE"),
    ] = None

    def needs(self) -> list[Ability]:
        return [*needs_of_source(self.data, None), *super().needs()]


def run(config: CorpusAuditConfig, progress: WorkProgress | None = None) -> Report:
    """The report of the attacks, with a lower bound on epsilon beside the claimed one."""
    claim = config.stated_claim() or _claim_beside(config.data)
    steps = steps_of(progress)
    corpus = _echo(config.data, config)
    reference = None if config.reference is None else _echo(config.reference, config)
    settings = BoundSettings(claim, config.confidence, config.seed)
    facts: dict[str, object] = {
        "corpus": name_of(config.data),
        "texts": len(corpus.texts),
        "reference": None if config.reference is None else name_of(config.reference),
        "confidence": config.confidence,
        "claimed epsilon": None if claim is None else claim.epsilon,
        "claimed delta": None if claim is None else claim.delta,
        "claim from": None if claim is None else claim.source,
    }
    report = Report("Audit of a synthetic corpus, from its texts alone", facts=facts)
    if config.members is not None:
        sides = read_members(config.members, config.non_members, config.column, None, config.format)
        report.sections += _membership(corpus, reference, sides, config, settings, steps("texts"))
    if config.canaries is not None:
        report.sections += _canaries(corpus, reference, load_canaries(config.canaries), settings, steps("canaries"))
    return report


def audit_corpus(data: object, *, progress: WorkProgress | None = None, **options: Any) -> Report:
    """The report of attacks on a synthetic corpus that see nothing but its texts; a file or data in memory, options as
    in `CorpusAuditConfig`.

    >>> import tacit
    >>> known, unknown = [f"{i} paid" for i in range(0, 80, 2)], [f"{i} paid" for i in range(1, 80, 2)]
    >>> tacit.audit_corpus(known, members=known, non_members=unknown, split="random").light.value
    'red'
    """
    return run(CorpusAuditConfig(data=data, **options), progress)


def _echo(source: object, config: CorpusAuditConfig) -> CorpusEcho:
    column = config.corpus_column or config.column
    return CorpusEcho(read_texts(source, column).texts)


def _claim_beside(source: object) -> ModelClaim | None:
    """The claim of the card beside the corpus, if it has one."""
    return None if is_in_memory(source) else claim_of_card(Path(f"{source}.card.json"), "the card beside the corpus")


def _membership(
    corpus: CorpusEcho,
    reference: CorpusEcho | None,
    sides: tuple[LabeledTexts, LabeledTexts],
    config: CorpusAuditConfig,
    settings: BoundSettings,
    progress: StepProgress,
) -> list[Section]:
    inside, outside = sides
    both = [echo_signals(corpus, side.texts, reference=reference, progress=progress) for side in sides]
    signals = {name: (both[0][name], both[1][name]) for name in both[0]}
    attacks = [
        attack(name, *pair, delta=settings.delta, confidence=settings.confidence, seed=settings.seed)
        for name, pair in signals.items()
    ]
    apart = blind(inside.texts, outside.texts, confidence=settings.confidence, seed=settings.seed)
    chosen = signals[CHOSEN]
    order = np.argsort(-chosen[0])[:8].tolist()
    worst = [(float(-chosen[0][place]), None, inside.texts[place]) for place in order]
    return [
        membership_section(attacks, apart, worst),
        *bound_of_members(Observations(*chosen), config.split, settings),
    ]


def _canaries(
    corpus: CorpusEcho,
    reference: CorpusEcho | None,
    canaries: list[Canary],
    settings: BoundSettings,
    progress: StepProgress,
) -> list[Section]:
    signals = echo_signals(
        corpus, [canary.text for canary in canaries], prefixes=[canary.prefix for canary in canaries],
        reference=reference, progress=progress,
    )  # fmt: skip
    about = "Canaries were put into the private texts by fair coins. Does the corpus echo those that were?"
    sections = [
        recognized_section(canaries, signal, f"Echo of canaries ({name})", about, confidence=settings.confidence)
        for name, signal in signals.items()
    ]
    known = dict(zip([canary.text for canary in canaries], (-signals[CHOSEN]).tolist(), strict=True))

    def losses(some: Sequence[Canary]) -> Floats:
        return np.array([known[canary.text] for canary in some])

    return [*sections, *bounds_of_canaries(losses, canaries, settings)]
