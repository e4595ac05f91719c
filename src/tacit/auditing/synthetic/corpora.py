"""Shadow corpora: is there anything of a row in the drawn sentences that did not go through the sketch?

A corpus is drawn from a sketch and public sentences, so that everything about it is paid for. If the drawing looks at
the private rows once more (a filter, a ranking, a check for near copies), the sketch is right and the corpus is not.
Corpora with and without a target are told apart by

    nearest sentence     how near the nearest sentence of the target's label is to it
    near sentences       the same for the twenty nearest
    its sentences        how many rows hold one of the five public sentences nearest to it
    rows of its label    how many rows have its label (with several columns: all of its labels)
    long rows            how many rows have several sentences

Two targets are tried: the row that is least like the others, and a public sentence that releases of these rows like to
draw and that no row is near, which a filter lets pass only with the target. The pool is a part of the public one, so
that many corpora can be drawn; any public pool has to keep the promise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from tacit.arrays import Floats
from tacit.auditing.synthetic.bounds import separation
from tacit.auditing.synthetic.label_values import label_in_corpus, label_values
from tacit.auditing.synthetic.membership import ShadowAttack, TargetAttack, check_audit
from tacit.auditing.synthetic.planted import part_of
from tacit.auditing.synthetic.process import MatchingRelease
from tacit.auditing.synthetic.rows import AuditedRows, sample_of
from tacit.auditing.synthetic.targets import NEW_USER, Target, features_of, usual_targets
from tacit.matching.corpus import MatchedCorpus
from tacit.matching.labels import PublicLabels, Topics
from tacit.matching.marginals import JointLabels
from tacit.matching.pool import SentencePool
from tacit.noise.source import public_generator
from tacit.progress import StepProgress

BASE_ROWS = 300
SENTENCES = 2_400
ROWS = 1_200
TRIALS = 10
NEAREST, NEAR = 5, 20
PUBLIC_SENTENCE = "a public sentence that no row is near"


def corpus_attack(
    rows: AuditedRows,
    release: MatchingRelease,
    pool: SentencePool,
    *,
    releases: int,
    confidence: float,
    seed: int | None = None,
    progress: StepProgress | None = None,
) -> ShadowAttack:
    """Shadow corpora with and without targets, `releases` of each."""
    check_audit(rows, releases, confidence)
    part = part_of(pool, np.sort(public_generator(1).permutation(len(pool))[:SENTENCES]).tolist())
    strange = usual_targets(rows, release)[1]
    base = sample_of(rows, BASE_ROWS, 0, strange.places)
    targets = (undrawn_sentence(base, release, part, seed), strange)
    scored = {target: _CorpusScores(release, part, target) for target in targets}
    doubt = (1 - confidence) / len(targets)
    total, done = releases * (1 + len(targets)), 0

    def corpora(target: Target | None) -> list[MatchedCorpus]:
        nonlocal done
        made = []
        own = base if target is None else base.with_rows(target.rows)
        for number in range(releases):
            noise = None if seed is None else seed * 7919 + done
            made.append(release.corpus(release.sketch(own, noise), own, part, ROWS, number))
            done += 1
            if progress is not None:
                progress(done, total)
        return made

    without = corpora(None)
    attacks = []
    for target in targets:
        inside, outside = scored[target].columns(corpora(target)), scored[target].columns(without)
        attacks.append(TargetAttack(target.kind, separation(inside, outside, release.delta, doubt)))
    return ShadowAttack(tuple(attacks), release.epsilon, release.delta, release.shift, confidence)


def undrawn_sentence(base: AuditedRows, release: MatchingRelease, pool: SentencePool, seed: int | None) -> Target:
    """The sentence that correct releases of the rows draw in most of several trials, of these the farthest from all
    rows, under the label that it is drawn for."""
    right = MatchingRelease(release.rule, release.feature_map, release.epsilon, release.delta, release.by_user)
    drawn: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for trial in range(TRIALS):
        noise = None if seed is None else seed * 7919 - 1 - trial
        corpus = right.corpus(right.sketch(base, noise), base, pool, ROWS, trial)
        drawn.update(
            {
                (sentence, label)
                for sentences, label in zip(corpus.sentences, _label_cells(corpus), strict=True)
                for sentence in sentences
            }
        )
    most = max(drawn.values())
    often = sorted(pair for pair, times in drawn.items() if times == most)
    nearness = (
        _unit(features_of(release, [text for text, _ in often])) @ _unit(features_of(release, base.texts)).T
    ).max(axis=1)
    text, label = often[int(nearness.argmin())]
    labels = () if isinstance(release.rule, Topics) else [_label_value(release.rule, label)]
    return Target(PUBLIC_SENTENCE, AuditedRows([text], labels, [NEW_USER] if release.by_user else ()))


class _CorpusScores:
    """Scores of corpora for one target, whose likeness to every public sentence is worked out once."""

    def __init__(self, release: MatchingRelease, pool: SentencePool, target: Target) -> None:
        wanted = _unit(features_of(release, target.rows.texts[:1]))[0]
        likeness = _unit(features_of(release, pool.sentences)) @ wanted
        self._likeness = dict(zip(pool.sentences, likeness.tolist(), strict=True))
        self._own = {pool.sentences[place] for place in np.argsort(-likeness)[:NEAREST].tolist()}
        self._label = label_in_corpus(release.rule, target.rows.texts[0], target.rows.labels[:1])

    def columns(self, corpora: Sequence[MatchedCorpus]) -> dict[str, Floats]:
        scores: dict[str, Callable[[MatchedCorpus], float]] = {
            "nearest sentence": lambda corpus: self._near(corpus, 1),
            "near sentences": lambda corpus: self._near(corpus, NEAR),
            "its sentences": lambda corpus: float(
                sum(not self._own.isdisjoint(sentences) for sentences in corpus.sentences)
            ),
            "long rows": _long_rows,
            "rows of its label": lambda corpus: float(sum(label == self._label for label in corpus.labels)),
        }
        return {name: np.array([score(corpus) for corpus in corpora]) for name, score in scores.items()}

    def _near(self, corpus: MatchedCorpus, count: int) -> float:
        pairs = zip(corpus.sentences, corpus.labels, strict=True)
        own = {sentence for sentences, label in pairs if label == self._label for sentence in sentences}
        nearest = sorted((self._likeness[sentence] for sentence in own), reverse=True)[:count]
        return sum(nearest) / len(nearest) if nearest else -1.0


def _long_rows(corpus: MatchedCorpus) -> float:
    """How many rows have several sentences."""
    return float(sum(len(sentences) > 1 for sentences in corpus.sentences))


def _label_cells(corpus: MatchedCorpus) -> list[tuple[str, ...]]:
    """The labels of each row: one, or one of every column."""
    columns = corpus.columns.values() if corpus.columns else [corpus.labels]
    return list(zip(*columns, strict=True))


def _label_value(rule: PublicLabels, names: tuple[str, ...]) -> object:
    """A value of the label column, or columns, that counts under these labels."""
    rules = [of_column for _, of_column in rule.columns] if isinstance(rule, JointLabels) else [rule]
    values = [label_values(each)[each.names.index(name)] for each, name in zip(rules, names, strict=True)]
    return tuple(values) if isinstance(rule, JointLabels) else values[0]


def _unit(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9))
