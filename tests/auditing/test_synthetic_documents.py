"""The audit of sketches with several label columns and of long documents, and its test by means.

A seed fixes all noise, so a test passes or fails always.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from tacit.auditing.synthetic import AuditedRows, MatchingRelease, corpora, membership_attack, usual_targets
from tacit.auditing.synthetic.artifact import sketch_noise
from tacit.auditing.synthetic.bounds import separation, shift_by_means
from tacit.auditing.synthetic.coins import coin_audit
from tacit.auditing.synthetic.corpora import corpus_attack
from tacit.auditing.synthetic.label_values import label_in_corpus, label_values
from tacit.auditing.synthetic.planted import PLANTED
from tacit.cli.main import run as run_command
from tacit.matching.composing import parts_of
from tacit.matching.documents import with_lengths
from tacit.matching.features import default_map
from tacit.matching.labels import Bins, ListedLabels, PublicLabels
from tacit.matching.marginals import joint_labels, map_beside
from tacit.matching.pool import PoolSource, load_pool, write_pool

NAMES = ("good", "bad", "other")
SENTENCES = load_pool().sentences
USUAL = with_lengths(default_map())
COLUMNS = joint_labels([("kind", ListedLabels(NAMES)), ("stars", Bins((0, 2, 4)))], USUAL)
DOUBT = 0.001


def long_rows(count: int = 90, *, columns: bool = False) -> AuditedRows:
    texts = [" ".join(SENTENCES[row : row + 6]) for row in range(count)]
    kinds = [NAMES[row % 3] for row in range(count)]
    return AuditedRows(texts, [(kind, row % 4) for row, kind in enumerate(kinds)] if columns else kinds)


def release(kind: str = "", *, columns: bool = False, epsilon: float = 1.0) -> MatchingRelease:
    made = PLANTED[kind] if kind else MatchingRelease
    rule: PublicLabels = COLUMNS if columns else ListedLabels(NAMES)
    return made(rule, map_beside(COLUMNS, USUAL) if columns else USUAL, epsilon, 1e-5, False)


# The test by means --------------------------------------------------------------------------------------------------


def test_the_bound_by_means_is_right_as_often_as_it_says() -> None:
    """2,000 pairs of normal samples 0.4 deviations apart: the bound is above that in 5 % of them. 100 are expected,
    with a deviation of 10; the seed is fixed."""
    generator = np.random.default_rng(0)
    bounds = [
        shift_by_means(generator.normal(0.4, 1.0, 60) * 3, generator.normal(0.0, 1.0, 40) * 3, 0.05)
        for _ in range(2_000)
    ]
    above = sum(bound > 0.4 for bound in bounds)
    assert 50 < above < 130
    assert np.mean(bounds) > 0.05


def test_the_bound_by_means_shows_nothing_where_there_is_nothing() -> None:
    ones = np.ones(30)
    assert shift_by_means(ones, ones, 0.01) == 0
    assert shift_by_means(np.arange(30.0), np.arange(30.0) + 5, 0.01) == 0
    far = np.arange(400.0) % 7
    assert shift_by_means(far + 1_000, far, 0.001) > 300


def test_half_of_the_noise_is_refuted_by_shadow_sketches_alone() -> None:
    """At epsilon 4, where few releases are enough; the default number is enough at epsilon 1."""
    rows = long_rows()
    targets = usual_targets(rows, release())[:1]
    half = membership_attack(rows, release("half-sensitivity", epsilon=4.0), releases=100, targets=targets, seed=3)
    assert half.refuted
    assert half.shift > half.claimed_shift  # type: ignore[operator]
    assert not membership_attack(rows, release(epsilon=4.0), releases=100, targets=targets, seed=3).refuted


def test_only_a_score_that_is_linear_in_the_noise_may_use_means() -> None:
    generator = np.random.default_rng(1)
    scores = {"likelihood": generator.normal(size=300)}, {"likelihood": generator.normal(size=300) - 0.6}
    assert separation(*scores, 1e-5, 0.01, "likelihood").shift > separation(*scores, 1e-5, 0.01).shift


# Labels -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [ListedLabels(NAMES), Bins((0, 2, 4, 5)), COLUMNS])
def test_values_of_the_audit_count_under_all_labels(rule: PublicLabels) -> None:
    values = label_values(rule)
    lines = rule.places([""] * len(values), values)
    assert set(lines.reshape(-1).tolist()) == set(range(len(rule.names)))
    assert label_in_corpus(COLUMNS, "", [("bad", 3)]) == f"bad / {COLUMNS.columns[1][1].names[1]}"


# Attacks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize(("kind", "refuted"), [("", False), ("tables-without-noise", True), ("half-sensitivity", True)])
def test_the_noise_beside_the_sums_is_measured(kind: str, refuted: bool, columns: bool) -> None:
    rows, audited = long_rows(columns=columns), release(kind, columns=columns)
    noise = sketch_noise(audited.sketch(rows, seed=7), rows, audited, usual_targets(rows, audited), DOUBT)
    assert noise.refuted is refuted
    assert [group.name for group in noise.groups] == ["features", "counts", "beside the sums"]


@pytest.mark.parametrize(("kind", "refuted"), [("", False), ("tables-without-noise", True)])
def test_shadow_sketches_of_several_columns(kind: str, refuted: bool) -> None:
    attack = membership_attack(long_rows(columns=True), release(kind, columns=True), releases=40, seed=3)
    assert attack.refuted is refuted
    assert len(attack.attacks) == 4


def test_coins_of_several_columns() -> None:
    rows = long_rows(columns=True)
    for kind, refuted in (("", False), ("means-without-noise", True)):
        audit = coin_audit(rows, release(kind, columns=True), SENTENCES, canaries=120, confidence=1 - DOUBT, seed=4)
        assert audit.refutes(1.0) is refuted


def test_shadow_corpora_of_long_documents_with_several_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "TRIALS", 2)
    monkeypatch.setattr(corpora, "ROWS", 60)
    monkeypatch.setattr(corpora, "SENTENCES", 1_000)
    audited = release(columns=True, epsilon=20.0)
    attack = corpus_attack(long_rows(60, columns=True), audited, load_pool(), releases=20, confidence=1 - DOUBT, seed=2)
    assert not attack.refuted


# The command --------------------------------------------------------------------------------------------------------


def test_the_command_takes_several_label_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small_pool = tmp_path / "small.tacit"
    entries = ((sentence, 0, "") for sentence in SENTENCES[::40])
    write_pool(small_pool, "small", [PoolSource("Tatoeba", "CC BY 2.0 FR")], entries)
    data, sketch, corpus = tmp_path / "rows.csv", tmp_path / "s-sketch.tacit", tmp_path / "s.csv"
    rows = long_rows(300, columns=True)
    with data.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "kind", "stars"])
        writer.writerows([text, *label] for text, label in zip(rows.texts, rows.labels, strict=True))  # type: ignore
    columns = ["-l", "kind", "-l", "stars"]
    released = [*columns, "--labels-of", "kind=good,bad,other", "--bins-of", "stars=0,2,4", "--epsilon", "8"]
    pool = ["--pool", str(small_pool)]
    assert run_command(["synthesize", str(data), *released, "-n", "50", *pool, "-o", str(corpus)]) == 0
    few = ["--releases", "20", "--corpora", "0", "--coins", "20", "--quiet"]
    capsys.readouterr()
    command = ["audit", "synthetic", str(data), str(sketch)]
    assert run_command([*command, *columns, *few, "--corpus", str(corpus), *pool]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    with corpus.open() as file:
        drawn = sum(1 for _ in csv.DictReader(file))  # fewer than 50 when a label wants more than the small pool has
    assert f" 0 of {drawn} rows of the corpus are not made of" in shown
    assert run_command([*command, "-l", "stars", "-l", "kind", *few]) == 2
    assert "kind, stars" in " ".join(capsys.readouterr().err.split())


def test_a_text_is_taken_apart_into_public_sentences() -> None:
    public = {"It is late.", "It is late. We go.", "who goes home", "Nobody.", "No. 5"}
    assert parts_of("It is late. We go. who goes home. No. 5", public) is not None
    assert parts_of("Nobody.", public) == ["Nobody."]
    assert parts_of("It is late. Nobody knows.", public) is None
    assert parts_of("", public) is None
