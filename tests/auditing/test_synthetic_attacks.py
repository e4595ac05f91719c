"""Attacks on the released sketch, on coins of canaries and on shadow corpora; planted mistakes are refuted.

A seed fixes all noise, so a test passes or fails always.
"""

from __future__ import annotations

import pytest

from tacit.auditing.synthetic import AuditedRows, MatchingRelease, corpora, usual_targets
from tacit.auditing.synthetic.artifact import sketch_noise
from tacit.auditing.synthetic.coins import coin_audit
from tacit.auditing.synthetic.corpora import PUBLIC_SENTENCE, corpus_attack
from tacit.auditing.synthetic.membership import membership_attack
from tacit.auditing.synthetic.planted import with_mistake
from tacit.auditing.synthetic.process import release_of
from tacit.auditing.synthetic.report import attack_section, noise_section
from tacit.matching.labels import ListedLabels
from tacit.matching.pool import load_pool
from tacit.matching.pure import pure_map
from tests.auditing.test_synthetic_membership import private_rows, release

DOUBT = 0.001


@pytest.mark.parametrize(
    ("kind", "refuted"),
    [("", False), ("means-without-noise", True), ("counts-without-noise", True), ("half-sensitivity", True)],
)
def test_the_noise_of_a_single_sketch(kind: str, refuted: bool) -> None:
    rows, audited = private_rows(), release(kind)
    noise = sketch_noise(audited.sketch(rows, seed=7), rows, audited, usual_targets(rows, audited), DOUBT)
    assert noise.refuted is refuted
    finding = noise_section(noise).findings[0]
    assert finding.refuted is refuted


def test_a_sketch_of_other_rows_is_recognized_and_refutes_nothing() -> None:
    rows, audited = private_rows(), release(epsilon=8.0)
    others = AuditedRows([text[::-1] for text in rows.texts] * 20, list(rows.labels) * 20)
    noise = sketch_noise(audited.sketch(others, seed=7), rows, audited, usual_targets(rows, audited), DOUBT)
    assert noise.foreign
    assert not noise.refuted


def test_coins_are_guessed_without_noise_and_not_with_it() -> None:
    sentences = load_pool().sentences
    for kind, refuted in (("", False), ("means-without-noise", True)):
        audit = coin_audit(private_rows(), release(kind), sentences, canaries=120, confidence=1 - DOUBT, seed=4)
        assert audit.refutes(1.0) is refuted
        assert (audit.accuracy > 0.9) is refuted


def test_users_have_coins_too() -> None:
    audit = coin_audit(
        private_rows(users=12), release(by_user=True), load_pool().sentences, canaries=60, confidence=0.95, seed=4
    )
    assert not audit.refutes(1.0)


@pytest.mark.parametrize(("kind", "releases", "refuted"), [("", 48, False), ("private-filter", 120, True)])
def test_a_private_filter_shows_in_shadow_corpora_only(
    kind: str, releases: int, refuted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpora, "TRIALS", 4)
    rows: AuditedRows = private_rows(40)
    audited: MatchingRelease = release(kind)
    attack = corpus_attack(rows, audited, load_pool(), releases=releases, confidence=1 - DOUBT, seed=2)
    assert attack.refuted is refuted
    section = attack_section(attack, "Membership by shadow corpora", "")
    assert section.findings[0].refuted is refuted
    assert PUBLIC_SENTENCE in {each.target for each in attack.attacks}


def test_a_promise_without_delta_is_audited_too() -> None:
    made = MatchingRelease(ListedLabels(("good", "bad", "other")), pure_map(), 1.0, 0.0, by_user=False)
    assert release_of(made.sketch(private_rows())) == made
    right = membership_attack(private_rows(), made, releases=30, seed=3)
    assert not right.refuted
    assert right.allowed_accuracy == pytest.approx(0.731, abs=0.001)
    wrong = with_mistake(made, "counts-without-noise")
    noise = sketch_noise(
        wrong.sketch(private_rows(), seed=3), private_rows(), wrong, usual_targets(private_rows(), wrong), DOUBT
    )
    assert noise.refuted
