"""The attacks on one model, as sections of a report: membership, canaries, extraction, memorization."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tacit.arrays import Floats
from tacit.auditing.models import membership
from tacit.auditing.models.blind import blind
from tacit.auditing.models.bounds import BoundSettings, Split, bound_of_members, bounds_of_canaries
from tacit.auditing.models.canaries import Canary, CanaryLosses, canary_section, exposures
from tacit.auditing.models.ceilings import ceiling_table
from tacit.auditing.models.difficulty import difficulty_signals
from tacit.auditing.models.extraction import compare, extraction_section, sample
from tacit.auditing.models.in_distribution import is_in_distribution, recognized_section
from tacit.auditing.models.members import LabeledTexts
from tacit.auditing.models.memorization import bleu, memorization_section, repeats
from tacit.auditing.models.min_k import min_k_signal
from tacit.auditing.models.one_run import Observations, changed_records
from tacit.auditing.models.rmia import rmia_log_ratio, rmia_signals
from tacit.auditing.models.scores import (
    AutoencoderScorer,
    CausalScorer,
    ScoredModel,
    Scorer,
    TextLosses,
    load_scorer,
)
from tacit.errors import BadInputError
from tacit.guarantee import Adjacency
from tacit.noise.source import new_source
from tacit.progress import StepProgress
from tacit.report import Section

Side = tuple[list[str], TextLosses, TextLosses | None]
"""Texts, their losses, and those of the reference if there is one."""

WORST = 8
REWRITTEN = 300
REWRITTEN_AT_ONCE = 64
WRITER = "causal language model"
AUTOENCODER = "autoencoder"


@dataclass
class ModelAttacks:
    """A model under attack, a reference that saw none of the texts, and what was noticed on the way (`facts`)."""

    scorer: Scorer
    reference: Scorer | None
    settings: BoundSettings
    bar: Callable[[str], StepProgress]
    facts: dict[str, object] = field(default_factory=dict)

    def membership(self, inside: LabeledTexts, outside: LabeledTexts, split: Split, *, figures: bool) -> list[Section]:
        """The sections about membership: which texts were trained on, by their losses, and the lower bound on
        epsilon."""
        sides = [self._losses("members", inside), self._losses("non-members", outside)]
        signals = {name: (_signal(name, *sides[0]), _signal(name, *sides[1])) for name in self._signals()}
        signals |= self._recent_signals(*sides)
        confidence, seed = self.settings.confidence, self.settings.seed
        attacks = [
            membership.attack(name, *pair, delta=self.settings.delta, confidence=confidence, seed=seed)
            for name, pair in signals.items()
        ]
        blind_test = blind(sides[0][0], sides[1][0], confidence=confidence, seed=seed)
        # Chosen before looking: the signal that the literature finds strongest of those at hand.
        chosen = signals["loss" if self.reference is None else "reference"]
        texts, own, base = sides[0]
        order = sorted(range(len(texts)), key=lambda i: -chosen[0][i])[:WORST]
        worst = [(float(own.mean[i]), None if base is None else float(base.mean[i]), texts[i]) for i in order]
        section = membership.membership_section(attacks, blind_test, worst)
        claim = self.settings.claim
        by_coins = split == "coins" and self.settings.adjacency is Adjacency.ADD_REMOVE
        limits = ceiling_table(
            attacks,
            blind_test,
            None if claim is None else (claim.epsilon, claim.delta),
            changed_records(self.settings.adjacency, coins=by_coins),
        )
        section = replace(section, tables=(section.tables[0], limits, *section.tables[1:]))
        if figures:
            drawing = membership.roc_figure([(name, *pair) for name, pair in signals.items()])
            section = replace(section, figures=(drawing,))
        return [section, *bound_of_members(Observations(*chosen), split, self.settings)]

    def _signals(self) -> list[str]:
        names = ["loss", "zlib", "length"] if self.scorer.of_language else ["loss"]
        return names if self.reference is None else [*names, "reference"]

    def _recent_signals(self, members: Side, non_members: Side) -> dict[str, tuple[Floats, Floats]]:
        """Signals that look at both sides together, or at single tokens."""
        signals = {"quantile": difficulty_signals(members, non_members, seed=self.settings.seed)}
        if members[2] is not None and non_members[2] is not None:
            signals["rmia"] = rmia_signals(
                rmia_log_ratio(members[1], members[2]), rmia_log_ratio(non_members[1], non_members[2])
            )
        if isinstance(self.scorer, CausalScorer):
            signals["min-k++"] = (
                min_k_signal(self.scorer, members[0], self.bar("tokens of members")),
                min_k_signal(self.scorer, non_members[0], self.bar("tokens of non-members")),
            )
        return signals

    def _losses(self, name: str, side: LabeledTexts) -> Side:
        """Texts that have a loss, with it, and with that of the reference."""
        own = self.scorer.losses_of(side, self.bar(f"scoring {name}"))
        base = None
        if self.reference is not None:
            base = self.reference.losses_of(side, self.bar(f"reference on {name}"))
        places = [i for i in range(len(side.texts)) if own.tokens[i] and (base is None or base.tokens[i])]
        if own.cut:
            self.facts[f"cut {name}"] = f"{own.cut:,} texts are longer than the model reads"
        return [side.texts[i] for i in places], own.take(places), None if base is None else base.take(places)

    def canaries(self, canaries: Sequence[Canary]) -> list[Section]:
        """The sections about canaries: how well the model knows made-up secrets, and the lower bounds on epsilon."""
        self._check_canaries(canaries)
        confidence, source = self.settings.confidence, new_source(self.settings.seed)
        own = self._canary_losses(self.scorer, canaries, "scoring canaries")
        base = None
        if self.reference is not None:
            base = self._canary_losses(self.reference, canaries, "reference on canaries")
        of_format = [canary for canary in canaries if not is_in_distribution(canary)]
        others = [canary for canary in canaries if is_in_distribution(canary)]
        sections = []
        if of_format:

            def losses(texts: Sequence[str]) -> Floats:
                return self.scorer.losses(texts, None, self.bar("scoring canaries")).total

            sections.append(canary_section(exposures(losses, of_format, source=source, confidence=confidence)))
        if others:
            signal = -own(others) if base is None else base(others) - own(others)
            about = "The beginning of an ordinary text, then an unlikely secret, put into the training data by a coin."
            title = "Canaries in the distribution"
            sections.append(recognized_section(others, signal, title, about, confidence=confidence))
        return [*sections, *bounds_of_canaries(own, canaries, self.settings, baseline=base)]

    def _check_canaries(self, canaries: Sequence[Canary]) -> None:
        if not self.scorer.of_language and any(canary.label is None for canary in canaries):
            raise BadInputError(
                "canaries-in-a-classifier",
                "{name} is a classifier: canaries for it are rows with labels; make them with 'tacit audit canaries' "
                "from example rows ({option.like}, {option.label_column})",
                name=self.scorer.name,
            )

    def _canary_losses(self, scorer: Scorer, canaries: Sequence[Canary], name: str) -> CanaryLosses:
        """Losses of canaries, worked out once: of the secret after its prefix where the model reads from left to right,
        of the label where it gives labels, else of the whole text."""
        labels = None if scorer.of_language else [str(canary.label) for canary in canaries]
        losses = scorer.losses([canary.text for canary in canaries], labels, self.bar(name)).total
        if isinstance(scorer, CausalScorer) and any(canary.prefix for canary in canaries):
            before = scorer.losses([canary.prefix for canary in canaries], None, self.bar(f"{name}: prefixes")).total
            losses = losses - np.where([bool(canary.prefix) for canary in canaries], before, 0.0)
        known = {canary.text: float(loss) for canary, loss in zip(canaries, losses.tolist(), strict=True)}
        return lambda some: np.array([known[canary.text] for canary in some])

    def extraction(self, inside: LabeledTexts, outside: LabeledTexts, count: int, prompts: Sequence[str]) -> Section:
        """The section about what the model writes by itself, and whether it stands in the training texts."""
        seed = self.settings.seed
        assert isinstance(self.scorer, CausalScorer)
        written = sample(
            self.scorer.model,
            self.scorer.tokenizer,
            list(prompts) or [""],
            samples=count,
            seed=seed,
            progress=self.bar("writing texts"),
        )
        return extraction_section(compare(written, inside.texts, outside.texts, seed=seed), inside.texts)

    def memorization(self, inside: LabeledTexts, outside: LabeledTexts) -> Section:
        """Whether a rewriting model repeats its pre-training text."""
        seen, unseen = inside.texts[:REWRITTEN], outside.texts[:REWRITTEN]
        back = self._rewritten(seen, self.bar("rewriting members"))
        answers = self._rewritten(unseen, self.bar("rewriting non-members"))
        return memorization_section(
            repeats(back, seen, inside.texts),
            repeats(answers, unseen, inside.texts),
            bleu(back, seen),
            bleu(answers, unseen),
            unseen_texts=unseen,
            outputs=answers,
        )

    def _rewritten(self, texts: Sequence[str], update: StepProgress) -> list[str]:
        """The texts as the autoencoder rewrites them, without noise."""
        assert isinstance(self.scorer, AutoencoderScorer)
        autoencoder = self.scorer.autoencoder
        bound = autoencoder.record.trained_bound()
        written: list[str] = []
        for start in range(0, len(texts), REWRITTEN_AT_ONCE):
            latents = autoencoder.encode(texts[start : start + REWRITTEN_AT_ONCE])
            written += autoencoder.decode(latents if bound is None else bound.apply(latents))
            update(len(written), len(texts))
        return written


def load_scorers(model: ScoredModel, reference: ScoredModel | None) -> tuple[Scorer, Scorer | None]:
    """The model, and a reference of the same kind."""
    scorer = load_scorer(model)
    if reference is None:
        return scorer, None
    other = load_scorer(reference)
    if other.kind != scorer.kind:
        raise BadInputError(
            "reference-of-another-kind",
            "the reference is a {other} and the model a {kind}: their losses do not compare; give a reference of the "
            "same kind",
            other=other.kind,
            kind=scorer.kind,
        )
    return scorer, other


def _signal(name: str, texts: Sequence[str], own: TextLosses, base: TextLosses | None) -> Floats:
    if name == "reference":
        assert base is not None
        return membership.reference_signal(own, base)
    if name == "loss":
        return membership.loss_signal(own)
    return (membership.zlib_signal if name == "zlib" else membership.length_signal)(own, texts)
