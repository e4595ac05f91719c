"""Distances, wording, fluency and facts of a synthetic corpus, and the report of all of them."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.errors import BadInputError, BadParameterError
from tacit.evaluation.corpus import Labeled
from tacit.evaluation.corpus.clouds import cloud_distances, energy_distance
from tacit.evaluation.corpus.facts import facts_in, present_in, strings_of
from tacit.evaluation.corpus.fluency import POOL_TRIPLES, WordTriples, fluency
from tacit.evaluation.corpus.wording import label_shares, wordings
from tacit.report import Report
from tests.evaluation.test_corpus_learning import rows


def unlabeled(texts: list[str]) -> Labeled:
    return Labeled(texts, [""] * len(texts))


def test_the_energy_distance_is_zero_for_one_law_and_right_for_two_points() -> None:
    generator = np.random.default_rng(0)
    first, second = generator.standard_normal((2, 400, 3))
    assert abs(energy_distance(first, second)) < 0.02
    # All mass in one point each: 2 E|X - Y| = 2 * distance, and nothing within.
    assert energy_distance(np.zeros((5, 2)), np.tile([3.0, 4.0], (5, 1))) == pytest.approx(10.0)


def test_clouds_of_one_law_are_at_the_floor_and_foreign_ones_far() -> None:
    real, same = rows(300, 1), rows(300, 2)
    foreign = unlabeled([f"bond yields fell by {n} basis points" for n in range(300)])
    near, far = cloud_distances(real, same).together, cloud_distances(real, foreign, foreign.texts).together
    assert near.distance < 3 * near.floor + 0.005
    assert far.distance > 20 * near.floor
    assert far.way == pytest.approx(1.0, abs=0.1)
    assert set(cloud_distances(real, same).labels) == {"food", "music", "weather"}


def test_shares_of_labels() -> None:
    shares = label_shares(["a"] * 3 + ["b"], ["a"] * 2 + ["c"] * 2)
    assert shares.distance == pytest.approx(0.5)
    assert shares.missing == ("b",)


def test_repeated_rows_and_distinct_words() -> None:
    original, released = wordings(unlabeled(["one two", "three four"]), unlabeled(["one one", "One one!"[:7]]))
    assert original.duplicates == 0
    assert released.duplicates == 0.5
    assert original.distinct_words == 1.0
    assert released.distinct_words == 0.25


def test_word_triples_are_a_law_over_words() -> None:
    model = WordTriples(["the cat sat", "the dog sat", "a cat ran"])
    known = ["the", "a", "cat", "dog", "sat", "ran", ""]
    for history in [(), ("the",), ("the", "cat"), ("never", "seen")]:
        total = sum(model.probability(word, history) for word in known) + model.probability("unknown", history)
        assert total == pytest.approx(1.0)


def test_language_is_more_fluent_than_its_words_in_random_order() -> None:
    subjects, verbs, objects = ("the man", "my sister", "our dog"), ("sees", "likes", "knows"), ("a cat", "the sea")
    pool = [f"{s} {v} {o}" for s, v, o in product(subjects, verbs, objects)]
    drawn = pool[:4]
    measured = fluency(unlabeled(pool[4:]), unlabeled(drawn), pool)
    assert measured is not None
    assert measured.model == POOL_TRIPLES
    assert measured.released < measured.salad
    assert fluency(unlabeled(pool), unlabeled(pool), pool) is None  # nothing of the pool is left to count
    assert fluency(unlabeled(pool), unlabeled(drawn)) is None


def test_strings_that_name_something() -> None:
    strings = strings_of(["Call Anna Meyer at 0711-123456 or zzyzxqq, order AB12345, mail a.b@example.org please"])
    assert strings["anna meyer"] == "name"
    assert strings["zzyzxqq"] == "rare word"
    assert strings["ab12345"] == "code"
    assert "number" in strings.values()
    assert "address" in strings.values()
    assert "please" not in strings
    assert present_in({"anna meyer", "meyer anna"}, ["I met Anna Meyer."]) == {"anna meyer"}


def test_a_release_that_repeats_private_names_is_found_and_one_that_does_not_is_not() -> None:
    private = [f"Parcel for Qv{n}x Zk{n}y today" for n in range(100)]
    held_out = [f"Parcel for Wr{n}x Zp{n}y today" for n in range(100)]
    innocent = facts_in(private, held_out, ["Parcel for nobody today"], ["Parcel for nobody today"])
    assert not innocent.more_than_chance
    assert innocent.everywhere == 0
    repeating = facts_in(private, held_out, private[:30], ["Parcel for nobody today"])
    assert repeating.more_than_chance
    assert repeating.beyond_pool
    assert repeating.held_out_seen == 0


@pytest.fixture(scope="module")
def report_of_good_rows() -> Report:
    real, released, test = rows(150, 1), rows(150, 2), rows(80, 3)
    files = [
        [{"text": text, "topic": label} for text, label in zip(part.texts, part.labels, strict=True)]
        for part in (real, released, test)
    ]
    return tacit.evaluate(
        files[0], files[1], aligned=False, test=files[2], label_column="topic", learners="words,letters",
        pools=["none"], language_model="none", figures=True,
    )  # fmt: skip


def test_the_report_says_that_it_is_private(report_of_good_rows: Report) -> None:
    report = report_of_good_rows
    assert report.sections[0].title == "This report is private"
    assert report.private
    assert report.exit_code == 0
    names = [finding.name for finding in report.findings]
    assert "The worst of 2 learners" in names
    assert "Facts and names" in names
    worst = next(finding for finding in report.findings if finding.name.startswith("The worst"))
    assert worst.light.value == "green"


def test_the_report_is_kept_readable_by_its_owner_only(
    report_of_good_rows: Report,
    tmp_path: Path,
) -> None:
    for name in ("report.html", "report.json"):
        report_of_good_rows.save(tmp_path / name)
        assert (tmp_path / name).stat().st_mode & 0o077 == 0
    assert json.loads((tmp_path / "report.json").read_text())["private"] is True
    assert "<svg" in (tmp_path / "report.html").read_text()


def test_several_corpora_at_once_are_an_error() -> None:
    with pytest.raises(BadParameterError) as error:
        tacit.evaluate(["a b"], ["a b"], ["a b"], aligned=False)
    assert error.value.code == "several-corpora"


def test_without_labels_and_test_file_the_rest_is_measured() -> None:
    texts = list(rows(60, 1).texts)
    report = tacit.evaluate_corpus(texts, texts[:40], pools=["none"], language_model="none")
    names = [finding.name for finding in report.findings]
    assert "No learners" in names
    assert "No test file" in names
    assert "Distance of the clouds" in names


def test_numbers_meet_the_bins_of_a_corpus_and_rows_without_a_label_are_left_out() -> None:
    made = rows(60, 1)
    stars = {"weather": 1, "music": "3.0", "food": None}
    original = [{"text": text, "stars": stars[label]} for text, label in zip(made.texts, made.labels, strict=True)]
    names = {1: "0 to 2", "3.0": "2 to 5"}
    corpus = [{**row, "stars": names[row["stars"]]} for row in original if row["stars"] is not None]
    options = {"label_column": "stars", "learners": "words", "pools": ["none"], "language_model": "none"}
    report = tacit.evaluate_corpus(original, corpus, bins=[0, 2, 5], **options)
    said = {finding.name: finding.sentence for finding in report.findings}
    assert f"{60 - len(corpus)} of 60 originals have no label" in said["Rows without a label"]
    assert "0.0%" in said["Proportions of labels"]
    with pytest.raises(BadInputError, match=r"no label of the originals occurs in the corpus.*bins=0,2,4"):
        tacit.evaluate_corpus(original, corpus, **options)
    with pytest.raises(BadInputError, match="no row of the data in memory has a label in 'stars'"):
        tacit.evaluate_corpus([{"text": "a", "stars": None}, {"text": "b", "stars": None}], corpus, **options)
