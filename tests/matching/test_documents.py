"""Documents of several sentences: lengths that are paid for, the exact promise on a small domain, the commands."""

from __future__ import annotations

import csv
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.auditing.synthetic.planted import part_of
from tacit.cli.main import run as run_command
from tacit.errors import BadParameterError
from tacit.matching.artifact import read_sketch, save_sketch
from tacit.matching.composing import CANDIDATES, PublicSentences, drawn_documents, joined
from tacit.matching.corpus import corpus_lengths, matched_corpus
from tacit.matching.documents import EDGES, DocumentMap, TextLengths, length_bins, text_lengths, with_lengths
from tacit.matching.features import default_map
from tacit.matching.labels import Bins, ListedLabels
from tacit.matching.maps import map_from
from tacit.matching.marginals import joint_labels, map_beside
from tacit.matching.merging import merge_sketches
from tacit.matching.pool import load_pool
from tacit.matching.sides import check_room
from tacit.matching.sketch import build_sketch
from tacit.matching.sums import ExactSums, exact_sums, rows_in_memory
from tacit.matching.whole_numbers import GRID, bound_of
from tacit.noise.gaussian import gaussian_delta

SENTENCES = load_pool().sentences
LABELS = ListedLabels(("a", "b"))
USUAL = with_lengths(default_map(words=200))
COLUMNS = joint_labels([("letter", LABELS), ("stars", Bins((0, 2, 4)))], USUAL)
SMALL = map_beside(COLUMNS, USUAL)
LONG = " ".join(SENTENCES[:40])
TEXTS = st.sampled_from([*SENTENCES[::20_000], "", " ", "🙂", "the " * 9_000, LONG])


def sums(rows: list[tuple[Any, ...]], *, by_user: bool = False, columns: bool = False) -> ExactSums:
    texts, labels = [row[0] for row in rows], [(row[1], 1) if columns else row[1] for row in rows]
    users = [row[2] for row in rows] if by_user else None
    rule, feature_map = (COLUMNS, SMALL) if columns else (LABELS, USUAL)
    return exact_sums(rows_in_memory(texts, labels, users), rule, feature_map, by_user=by_user)


def squared_distance(first: ExactSums, second: ExactSums | None) -> int:
    moved = [(first.totals, 0 if second is None else second.totals), (first.side, 0 if second is None else second.side)]
    return sum(int(((this - other).astype(object) ** 2).sum()) for this, other in moved)


# What a row adds ----------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(TEXTS, st.sampled_from("ab")), min_size=1, max_size=6), st.booleans(), st.data())
def test_neighbors_differ_by_at_most_one_lengths_included(rows: list[Any], columns: bool, data: st.DataObject) -> None:
    left_out = data.draw(st.integers(0, len(rows) - 1))
    others = [row for place, row in enumerate(rows) if place != left_out]
    without = sums(others, columns=columns) if others else None
    assert squared_distance(sums(rows, columns=columns), without) <= GRID**2


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(TEXTS, st.sampled_from("ab"), st.sampled_from(["u", " u", "v"])), min_size=1, max_size=12),
    st.booleans(),
)
def test_a_user_moves_everything_by_at_most_one(rows: list[Any], columns: bool) -> None:
    others = [row for row in rows if row[2].strip() != "u"]
    without = sums(others, by_user=True, columns=columns) if others else None
    assert squared_distance(sums(rows, by_user=True, columns=columns), without) <= GRID**2


def test_all_neighbors_of_a_small_world_keep_the_promise() -> None:
    """Whatever row is added to any data set of at most two rows: the delta of the Gaussian mechanism at the exact
    distance of everything that is released is at most that of the card."""
    world = [(text, label) for text in ("play", "it rains " * 20, LONG, "") for label in "ab"]
    built = build_sketch(
        rows_in_memory([text for text, _ in world], [label for _, label in world]), LABELS, USUAL, epsilon=1.0,
        delta=1e-5,
    ).sketch  # fmt: skip
    sigma = float(str(built.guarantee.parameters["noise"]).split()[4]) * (1 + 1e-5)
    data_sets = [[row] for row in world] + [list(pair) for pair in itertools.combinations_with_replacement(world, 2)]
    worst = max(
        squared_distance(sums(larger), sums(others) if (others := larger[:place] + larger[place + 1 :]) else None)
        for larger in data_sets
        for place in range(len(larger))
    )
    assert worst > 0.97 * GRID**2
    assert gaussian_delta(1.0, sigma, math.sqrt(worst) / GRID) <= 1e-5 * (1 + 1e-3)
    too_heavy = worst - USUAL.side_squares + bound_of(0.4) ** 2
    assert gaussian_delta(1.0, sigma, math.sqrt(too_heavy) / GRID) > 1.2e-5, "the check would see a heavier length"


def test_a_length_that_has_no_room_is_refused() -> None:
    with pytest.raises(BadParameterError, match="at most 1"):
        DocumentMap(default_map().blocks, default_map().count_weight, 0.1)
    with pytest.raises(BadParameterError, match="at most 1"):
        check_room(COLUMNS, USUAL)


def test_lengths_are_counted_and_empty_texts_are_not() -> None:
    texts = ["x", "", "y" * 64, "y" * 65, "z" * 4_097, "z" * 90_000]
    exact = sums([(text, "a") for text in texts])
    assert (exact.side // bound_of(USUAL.length_weight)).tolist() == [2, 1, 0, 0, 0, 0, 0, 2]
    assert length_bins(texts).tolist() == [0, -1, 0, 1, 7, 7]
    assert sums([("y" * 65, "c")] * 3 + [("x", "a")]).side[1] == 0, "a row without a label adds nothing"


# What is made of the noisy numbers ----------------------------------------------------------------------------------


def test_noise_alone_makes_no_long_texts() -> None:
    """Of 300 releases of short texts none says that some are long. False alarm: 300 x 6 x P(Z > 3) would be 2.4 for
    a threshold of three deviations on the real line; here the seeds are fixed."""
    numbers = np.array([4_000, 500, 0, 0, 0, 0, 0, 0]) * bound_of(USUAL.length_weight)
    generator = np.random.default_rng(0)
    long = 0
    for _ in range(300):
        noisy = np.rint(numbers + generator.normal(0, 4 * GRID, size=8)).astype(np.int64)
        long += not text_lengths(USUAL, noisy, 1, 4.0).one_sentence
    assert long <= 8
    assert text_lengths(USUAL, np.zeros(8, dtype=np.int64), 1, 4.0).shares[0] > 0, "no number at all is no error"
    assert text_lengths(default_map(), np.zeros(0, dtype=np.int64), 1, 4.0).one_sentence


def test_lengths_are_drawn_from_their_bins() -> None:
    lengths = TextLengths(None, (0.5, 0, 0, 0.25, 0, 0.25, 0, 0))
    drawn = lengths.drawn_characters(4_000, np.random.default_rng(0))
    assert abs(np.mean(drawn == 0) - 0.5) < 0.05, "short texts are one sentence"
    assert set(np.searchsorted(EDGES, drawn[drawn > 0]).tolist()) == {3, 5}
    assert not lengths.one_sentence
    assert TextLengths(None, (0.5, 0.5, 0, 0, 0, 0, 0, 0)).one_sentence


def test_sketches_with_lengths_are_saved_and_merged(tmp_path: Path) -> None:
    source = rows_in_memory([LONG] * 400, ["a"] * 400)
    parts = [build_sketch(source, LABELS, USUAL, epsilon=4.0, delta=1e-5, seed=seed).sketch for seed in (1, 2)]
    save_sketch(parts[0], tmp_path / "s.tacit")
    again = read_sketch(tmp_path / "s.tacit")
    assert again.feature_map == USUAL == map_from(json.loads(json.dumps(USUAL.to_dict())))
    assert (again.side == parts[0].side).all()
    merged = merge_sketches(parts, disjoint=True)
    assert corpus_lengths(merged, None).shares[length_bins([LONG])[0]] == 1
    assert "8 public bins" in str(again.guarantee.parameters["features"])


# Documents ----------------------------------------------------------------------------------------------------------


def test_a_document_is_about_as_long_as_it_should_be_and_repeats_no_sentence() -> None:
    characters = np.array([len(sentence) for sentence in SENTENCES[:2_000]])
    topics = np.random.default_rng(1).normal(size=(2_000, 4)).astype(np.float32)
    public = PublicSentences(characters, topics)
    lengths = TextLengths(None, (0, 0, 0, 0.5, 0.5, 0, 0, 0))
    zero = np.zeros(2_000)
    drawn = drawn_documents(zero, zero, 300, lengths, public, np.random.default_rng(2))
    made = np.array([len(joined([SENTENCES[place] for place in document])) for document in drawn.documents])
    assert len(drawn) == 300
    assert abs(made.mean() / lengths.mean_characters - 1) < 0.1
    assert all(len(set(document.tolist())) == len(document) for document in drawn.documents)
    three = drawn_documents(zero, zero, 50, TextLengths(3), public, np.random.default_rng(2))
    assert {len(document) for document in three.documents} == {3}


@pytest.mark.parametrize(
    "lengths", [TextLengths(None, (0, 0, 0, 1, 0, 0, 0, 0)), TextLengths(None, (0.5, 0, 0, 0.5, *[0] * 4))]
)
def test_there_are_as_many_documents_as_were_asked_for_however_few(lengths: TextLengths) -> None:
    generator = np.random.default_rng(1)
    public = PublicSentences(generator.integers(10, 300, size=3_000), np.zeros((3_000, 1), dtype=np.float32))
    zero = np.zeros(3_000)
    for rows in range(1, 31):
        assert len(drawn_documents(zero, zero, rows, lengths, public, np.random.default_rng(rows))) == rows


def test_sentences_of_a_document_lie_near_each_other() -> None:
    topics = np.repeat(np.eye(4, dtype=np.float32), 500, axis=0)
    public = PublicSentences(np.full(2_000, 50), topics)
    zero = np.zeros(2_000)
    drawn = drawn_documents(zero, zero, 200, TextLengths(3), public, np.random.default_rng(2))
    alike = np.mean([len({place // 500 for place in document.tolist()}) == 1 for document in drawn.documents])
    assert CANDIDATES > 8
    assert alike > 0.8, "by chance it would be 1/16"


def test_a_corpus_of_long_texts_has_long_rows_of_its_labels() -> None:
    about = {
        label: [sentence for sentence in SENTENCES if any(f" {word}" in sentence for word in words)]
        for label, words in {"a": ("rain", "snow", "wind"), "b": ("bread", "soup", "cheese")}.items()
    }
    texts = [" ".join(group[at : at + 6]) for group in about.values() for at in range(0, 240)]
    labels = ["a"] * 240 + ["b"] * 240
    sketch = build_sketch(
        rows_in_memory(texts, labels), LABELS, with_lengths(default_map()), epsilon=4.0, delta=1e-6, seed=1
    ).sketch
    corpus = matched_corpus(sketch, [load_pool()], rows=200, seed=1)
    private, released = np.mean([len(text) for text in texts]), np.mean([len(text) for text in corpus.texts])
    assert 0.7 < released / private < 1.4
    assert all(set(parts) <= set(SENTENCES) for parts in map(set, corpus.sentences))
    assert [joined(parts) for parts in corpus.sentences] == list(corpus.texts)
    weather = [
        sum(sentence in set(about["a"]) for sentence in parts) > sum(sentence in set(about["b"]) for sentence in parts)
        for parts in corpus.sentences
    ]
    agree = np.mean([is_weather == (label == "a") for is_weather, label in zip(weather, corpus.labels, strict=True)])
    assert agree > 0.8
    part = part_of(load_pool(), list(range(0, len(SENTENCES), 40)))
    assert {len(parts) for parts in matched_corpus(sketch, [part], rows=50, sentences=2).sentences} == {2}


# Commands -----------------------------------------------------------------------------------------------------------


def test_the_command_releases_documents(tmp_path: Path, small_pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = tmp_path / "rows.csv"
    with rows.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["review", "kind"])
        writer.writerows([" ".join(SENTENCES[at : at + 8]), "ab"[at % 2]] for at in range(600))
    usual = ["--column", "review", "--label-column", "kind", "--labels", "a,b", "--epsilon", "4", "-n", "60"]
    usual += ["--pool", str(small_pool)]
    assert run_command(["synthesize", str(rows), *usual, "-o", str(tmp_path / "long.csv")]) == 0
    with (tmp_path / "long.csv").open() as file:
        long = [row["review"] for row in csv.DictReader(file)]
    assert np.mean([len(text) for text in long]) > 150
    card = json.loads((tmp_path / "long.csv.card.json").read_text())
    assert "private lengths" in json.dumps(card["guarantee"]["parameters"])
    fixed = ["--from", str(tmp_path / "long-sketch.tacit"), "--pool", str(small_pool), "-n", "20", "--sentences", "1"]
    assert run_command(["synthesize", *fixed, "-o", str(tmp_path / "short.csv")]) == 0
    known = set(load_pool(small_pool).sentences)
    with (tmp_path / "short.csv").open() as file:
        assert all(row["review"] in known and row["kind"] in "ab" for row in csv.DictReader(file)), "as they were typed"
    capsys.readouterr()
    assert run_command(["synthesize", str(rows), *usual, "--sentences", "many", "-o", str(tmp_path / "x.csv")]) == 2
    assert "--sentences" in capsys.readouterr().err
    assert not (tmp_path / "x-sketch.tacit").exists()


def test_a_public_number_of_sentences_costs_nothing(tmp_path: Path, small_pool: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\n" + "It rains in the garden,a\n" * 300)
    command = ["synthesize", str(rows), "--label-column", "label", "--labels", "a", "--epsilon", "4", "-n", "30"]
    output = tmp_path / "three.csv"
    assert run_command([*command, "--pool", str(small_pool), "--sentences", "3", "-o", str(output)]) == 0
    sketch = read_sketch(tmp_path / "three-sketch.tacit")
    assert not isinstance(sketch.feature_map, DocumentMap)
    assert len(sketch.side) == 0
