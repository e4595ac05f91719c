"""Kept punctuation marks are copied: the promise, the law and the audit say so (item A3)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tacit
from tacit.auditing.claims.claim import claim_of
from tacit.auditing.claims.mechanisms import audit_mechanism
from tacit.auditing.claims.settings import ClaimAuditSettings
from tacit.auditing.text.inversion import posterior
from tacit.card import Card, plain_sentence
from tacit.catalog import mechanism_names
from tacit.errors import BadParameterError, NoGuaranteeError
from tacit.evaluation.deniability import deniability
from tacit.guarantee import Adjacency, Guarantee
from tacit.noise.source import Source
from tacit.serve.catalog import _counted_stays
from tacit.vectors import VectorTable
from tests.words.exactness import euclidean, worst_excess

MARKS = [".", ",", "!", "..."]
WORDS = [*MARKS, *(f"w{i}" for i in range(26)), "☂", "?!"]
EVERYTHING = np.arange(len(WORDS))
IS_MARK = np.array([word in MARKS for word in WORDS])


@pytest.fixture(scope="module")
def table() -> VectorTable:
    vectors = np.random.default_rng(3).standard_normal((len(WORDS), 3)).astype(np.float32)
    return VectorTable(WORDS, vectors, name="tiny", source="test")


def mechanism_of(name: str, table: VectorTable, **options):
    more: dict[str, object] = {"sensitive_share": 0.6} if name in ("santext+", "two-budgets") else {}
    more |= {"epsilon": 400.0} if name == "truncated-gumbel" else {}
    more |= {"bits": 6} if name == "brr" else {}
    more |= {"set_size": 5} if name == "custext" else {}
    return tacit.build(name, {"epsilon": 1.0, "vectors": table, "punctuation": "keep", **more, **options})


def without_the_copy(adjacency: Adjacency) -> Adjacency:
    return next(plain for plain in Adjacency if not plain.keeps_punctuation and _kept(plain) is adjacency)


def _kept(plain: Adjacency) -> Adjacency | None:
    try:
        return plain.with_kept_punctuation
    except NoGuaranteeError:
        return None


@pytest.mark.parametrize("name", mechanism_names("word"))
def test_a3_every_word_mechanism_has_an_adjacency_of_its_own_for_kept_punctuation(name, table):
    kept, rewritten = mechanism_of(name, table), mechanism_of(name, table, punctuation="rewrite")
    promised = kept.guarantee(secure=True)
    assert promised.adjacency is rewritten.guarantee(secure=True).adjacency.with_kept_punctuation
    assert promised.adjacency.keeps_punctuation
    whole = promised.for_document(7)
    assert whole.adjacency.keeps_punctuation
    assert whole.adjacency is not rewritten.guarantee(secure=True).for_document(7).adjacency
    assert "copied" in plain_sentence(promised)
    for text in (Card(whole).to_text(), Card(whole).to_markdown(), Card(whole).to_html()):
        assert "copied" in text
    with pytest.raises(NoGuaranteeError, match="different adjacency"):
        promised.then(rewritten.guarantee(secure=True))
    assert Guarantee.from_dict(promised.to_dict()) == promised


def test_a3_random_words_no_longer_claim_that_a_copied_mark_is_hidden(table):
    kept = mechanism_of("random", table)
    assert kept.distribution(".")[WORDS.index(".")] == 1.0
    np.testing.assert_array_equal(kept.distribution("w1"), np.full(len(WORDS), 1 / len(WORDS)))
    assert "neither of them a punctuation mark" in plain_sentence(kept.guarantee(secure=True))


@pytest.mark.parametrize("name", mechanism_names("word"))
def test_a3_the_law_holds_the_copy_and_is_what_the_pipeline_releases(name, table):
    mechanism = mechanism_of(name, table, joining="spaces")
    source = Source.from_test_seed(1)
    for text, output in (("w1 . w2 ...", {1: ".", 3: "..."}), ("w1, !", {1: ",", 2: "!"})):
        for _ in range(20):
            tokens = mechanism.rewrite_texts([text], source).texts[0].split(" ")
            assert all(tokens[place] == mark for place, mark in output.items())
    assert (mechanism.released_ids(EVERYTHING, source)[IS_MARK] == EVERYTHING[IS_MARK]).all()
    try:
        law = mechanism.laws(EVERYTHING)
    except NoGuaranteeError:
        return
    np.testing.assert_array_equal(law[IS_MARK], np.eye(len(WORDS))[IS_MARK])
    np.testing.assert_array_equal(law[~IS_MARK], mechanism.laws_of_draw(EVERYTHING[~IS_MARK]))
    # A token that is no kept mark is drawn, even where the public rule treats it as one.
    assert mechanism.lexicon.id("☂") == WORDS.index("☂")
    assert mechanism.distribution("☂").max() < 1.0


def test_a3_a_mark_outside_the_vocabulary_and_a_dropped_one_have_no_law(table):
    with pytest.raises(BadParameterError, match="copied"):
        mechanism_of("santext", table).distribution("--")
    with pytest.raises(BadParameterError, match="left out"):
        mechanism_of("santext", table, punctuation="drop").distribution(".")


@pytest.mark.parametrize("name", ["santext", "tem", "two-budgets"])
def test_a3_the_promise_holds_exactly_between_all_words_that_are_no_kept_mark(name, table):
    """The proof obligation on a small domain: all pairs of inputs with the same marks, all outputs."""
    mechanism = mechanism_of(name, table)
    promised = mechanism.guarantee(secure=True)
    bound = promised.epsilon * euclidean(table.vectors) + promised.offset + promised.slack
    law = mechanism.laws(EVERYTHING)
    assert worst_excess(law, bound) == np.inf  # the old claim, between any two tokens, is false
    same = ~IS_MARK[:, None] & ~IS_MARK[None, :] | np.eye(len(WORDS), dtype=bool)
    assert worst_excess(law, np.where(same, bound, np.inf)) <= 1e-9


@pytest.mark.parametrize("name", mechanism_names("word"))
def test_a3_the_audit_refutes_a_claim_that_forgets_the_copy(name, table):
    """Samples have a seed; a true claim is refuted with probability at most 0.001."""
    settings = ClaimAuditSettings(seed=5, samples=2_000)
    mechanism = mechanism_of(name, table)
    claim = claim_of(mechanism)
    marks = claim.bounds(np.full(len(MARKS), len(MARKS)), np.arange(len(MARKS)))
    assert np.isinf(marks).all(), "nothing is claimed between a mark and a word"
    assert not any(f.refuted for section in audit_mechanism(mechanism, settings) for f in section.findings)

    class Forgetful(type(mechanism)):
        def promise(self):
            promised = super().promise()
            return replace(promised, adjacency=without_the_copy(promised.adjacency))

    forgetful = Forgetful(**mechanism.get_params())
    if name == "truncated-gumbel":  # its epsilon is so large that only the exact law can refute
        settings = replace(settings, samples=None)
    findings = [f for section in audit_mechanism(forgetful, settings) for f in section.findings]
    assert any(f.refuted for f in findings)
    assert any(f.numbers.get("worst", f.numbers.get("witness", {})).get("left") in WORDS for f in findings if f.refuted)


def test_a3_the_command_takes_pipeline_options(tmp_path):
    from click.testing import CliRunner

    from tacit.cli.main import app

    rng = np.random.default_rng(0)
    lines = [f"{word} " + " ".join(f"{x:.5f}" for x in rng.standard_normal(3)) for word in WORDS]
    path = tmp_path / "vectors.txt"
    path.write_text("\n".join(lines) + "\n")
    for name in ("random", "santext", "laplace"):
        for rule in ("keep", "drop"):
            arguments = ["audit", "mechanism", name, "-e", "1", "--vectors", str(path), "--samples", "500", "-q"]
            done = CliRunner().invoke(app, [*arguments, "--option", f"punctuation={rule}"])
            assert done.exit_code == 0, done.output
            assert ("punctuation mark that is kept" in " ".join(done.output.split())) == (rule == "keep")


@pytest.mark.parametrize("measure", ["deniability", "curve", "inversion"])
def test_a3_what_is_counted_by_drawing_counts_the_copy(measure, table):
    """Where there is no closed form, these drew for a mark that is copied; with one they know the copy (`laws`)."""
    mechanism = mechanism_of("laplace", table)
    mechanism.prepare()
    marks = np.flatnonzero(IS_MARK)
    if measure == "deniability":
        stays = deniability(mechanism, EVERYTHING, runs=20, seed=1).stays
    elif measure == "curve":
        stays = _counted_stays(mechanism, EVERYTHING)
    else:
        stays = posterior(mechanism, np.full(len(WORDS), 1 / len(WORDS))).stays
    assert (stays[marks] == 1.0).all()
    assert (stays[~IS_MARK] < 1.0).any()


@pytest.mark.parametrize("name", mechanism_names("word"))
def test_a3_the_card_says_that_a_mark_that_is_left_out_is_told_from_a_word(name, table):
    mechanism = mechanism_of(name, table, punctuation="drop")
    assert mechanism.count_units(["w1 w2", "w1 ."]) == [2, 1]
    assert any("which tokens are punctuation marks" in item for item in mechanism.guarantee(secure=True).not_covered)
