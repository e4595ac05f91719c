"""The kinds of steps: what they write, and scores that follow from it."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.auditing.text.pairs import TextPairs
from tacit.card import Card
from tacit.errors import BadInputError
from tacit.experiments.config import DataSet, Part
from tacit.experiments.execution import StepTask, execute, is_finished
from tacit.experiments.raw import read_json, read_lines, read_part, read_released, write_json
from tacit.experiments.steps import KEY_FILE, attack, downstream, kinds, rewrite, similarity
from tests.experiments.small import write_files


def nothing(_done: int, _total: int) -> None:
    return


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_files(tmp_path)
    file = str(tmp_path / "rows.csv")
    parts = {"train": Part(file=file, rows=16), "test": Part(file=file, rows=8, skip=16)}
    parameters = DataSet(task="classification", text="text", label="label", keep=["writer"], parts=parts)
    return done("data", parameters.model_dump(), {}, tmp_path / "data")


def done(kind: str, parameters: dict[str, object], inputs: dict[str, Path], folder: Path) -> Path:
    execute(StepTask(kind, parameters, inputs, folder), nothing)
    assert is_finished(folder)
    return folder


def santext(tmp_path: Path, **more: object) -> dict[str, object]:
    return {"mechanism": "santext", "epsilon": 1.0, "options": {"vectors": str(tmp_path / "vectors.txt")}, **more}


# data -------------------------------------------------------------------------------------------------------------


def test_parts_of_one_file_have_no_row_in_common(data: Path):
    train, test = read_part(data, "train"), read_part(data, "test")
    assert (len(train), len(test)) == (16, 8)
    assert not {tuple(row) for row in train.texts} & {tuple(row) for row in test.texts}
    assert {row["writer"] for row in train.columns} <= {"a0", "a1", "a2", "a3"}


def test_where_takes_matching_rows_only(tmp_path: Path):
    write_files(tmp_path)
    part = Part(file=str(tmp_path / "rows.csv"), where={"label": "odd"})
    folder = done("data", DataSet(text="text", label="label", parts={"a": part}).model_dump(), {}, tmp_path / "data")
    assert set(read_part(folder, "a").labels) == {"odd"}
    assert len(read_part(folder, "a")) == 12


def test_a_part_without_rows(tmp_path: Path):
    write_files(tmp_path)
    part = Part(file=str(tmp_path / "rows.csv"), skip=1000)
    with pytest.raises(BadInputError, match="the part 'a' has no rows"):
        done("data", DataSet(text="text", parts={"a": part}).model_dump(), {}, tmp_path / "data")


# rewrite ----------------------------------------------------------------------------------------------------------


def test_a_release_has_a_card_and_no_key_is_left(data: Path, tmp_path: Path):
    folder = done("rewrite", santext(tmp_path), {"data": data}, tmp_path / "out")
    card = Card.from_json((folder / "card.json").read_text())
    assert card.guarantee.is_private
    assert any("adds up" in item for item in card.guarantee.not_covered)
    assert not (folder / KEY_FILE).exists()
    originals, released = read_part(data, "test").texts, read_released(folder, "test")
    assert [len(a[0].split()) for a in originals] == [len(b[0].split()) for b in released]
    assert originals != released


def test_a_step_that_was_killed_draws_the_same_noise_again(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "out"
    drawn: list[object] = []
    draw = rewrite.released_parts

    def killed(*arguments: Any) -> Any:
        drawn.append(draw(*arguments))
        raise KeyboardInterrupt

    monkeypatch.setattr(rewrite, "released_parts", killed)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            execute(StepTask("rewrite", santext(tmp_path), {"data": data}, folder), nothing)
        assert stat.S_IMODE((folder / KEY_FILE).stat().st_mode) == 0o600
    monkeypatch.setattr(rewrite, "released_parts", draw)
    done("rewrite", santext(tmp_path), {"data": data}, folder)
    assert drawn[0][0] == drawn[1][0] == {part: read_released(folder, part) for part in ("train", "test")}


def test_two_releases_of_the_same_texts_are_independent(data: Path, tmp_path: Path):
    for seed in (None, 7):  # also with a test seed, where both have the same key
        first, second = (
            read_released(done("rewrite", santext(tmp_path, seed=n, test_seed=seed), {"data": data},
                               tmp_path / f"out{seed}{n}"), "train")
            for n in (1, 2)
        )  # fmt: skip
        assert first != second


def test_a_test_seed_repeats_and_voids_the_card(data: Path, tmp_path: Path):
    folders = [done("rewrite", santext(tmp_path, test_seed=3), {"data": data}, tmp_path / f"out{n}") for n in (1, 2)]
    assert read_released(folders[0], "test") == read_released(folders[1], "test")
    assert not Card.from_json((folders[0] / "card.json").read_text()).guarantee.is_private


def test_blocks_hold_every_row_once():
    rows = [["x" * n] for n in range(20)]
    assert [row for block in rewrite.blocks(rows, 30) for row in block] == rows
    assert len(rewrite.blocks(rows, 30)) > 3


# downstream -------------------------------------------------------------------------------------------------------


def test_scores_of_predictions_known_by_hand():
    scores = downstream.scores_of("classification", ["a", "a", "b"], ["a", "a", "b", "b"], ["a", "b", "b", "b"])
    assert scores["accuracy"] == 0.75
    assert scores["accuracy.floor"] == 0.5
    assert scores["macro-F1"] == pytest.approx((2 / 3 + 0.8) / 2)
    assert scores["accuracy.low"] <= 0.75 <= scores["accuracy.high"]


def test_scores_of_similarities():
    scores = downstream.scores_of("similarity", [1.0, 2.0], [1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 8.0])
    assert scores["pearson"] == pytest.approx(1.0)
    assert scores["score"] == scores["pearson"]
    assert scores["mean absolute error"] == pytest.approx(2.5)


def test_a_learner_reads_the_originals_and_not_the_noise(data: Path, tmp_path: Path):
    noisy = done("rewrite", {"mechanism": "random", "options": {"vectors": str(tmp_path / "vectors.txt")},
                             "test_seed": 5}, {"data": data}, tmp_path / "noisy")  # fmt: skip
    plain = done("downstream", {"learner": "tfidf"}, {"data": data}, tmp_path / "plain")
    assert kinds()["downstream"].score(plain)["accuracy"] == 1.0
    blind = done("downstream", {"learner": "tfidf"}, {"data": data, "texts": noisy}, tmp_path / "blind")
    assert kinds()["downstream"].score(blind)["accuracy"] < 1.0
    mixed = {"learner": "tfidf", "train_on": "original", "test_on": "original"}
    same = done("downstream", mixed, {"data": data, "texts": noisy}, tmp_path / "same")
    assert list(read_lines(same / "predictions.jsonl")) == list(read_lines(plain / "predictions.jsonl"))


def test_two_axes_can_each_set_options_and_no_earlier_key_changes(tmp_path: Path):
    made = rewrite.Rewrite(mechanism="santext+", epsilon=1, options={"p": 0.3}, more={"sensitive_share": 0.5})
    assert made.settings == {"p": 0.3, "sensitive_share": 0.5}
    key_of = kinds()["rewrite"].content
    assert key_of is not None
    assert "more" not in key_of(rewrite.Rewrite(mechanism="santext", epsilon=1))
    assert key_of(made)["more"] == {"sensitive_share": 0.5}


# similarity, attack, statistics -----------------------------------------------------------------------------------


def test_copied_texts_keep_all_their_words(data: Path, tmp_path: Path):
    copied = done("rewrite", {"mechanism": "none"}, {"data": data}, tmp_path / "copied")
    assert not (copied / "card.json").exists()
    kept = done("similarity", {"measures": ["kept-words"]}, {"data": data, "texts": copied}, tmp_path / "kept")
    scores = read_json(kept / "scores.json")
    assert (scores["words changed"], scores["words kept in place"]) == (0, 1)


@pytest.mark.parametrize("kind", ["attributes", "linkage", "inversion"])
def test_attacks_on_copied_texts_succeed(kind: str, data: Path, tmp_path: Path):
    copied = done("rewrite", {"mechanism": "none"}, {"data": data}, tmp_path / "copied")
    parameters = {"attack": kind, "part": "train", "column": "label" if kind == "attributes" else None}
    if kind == "attributes":  # the label is no kept column: it stands for one here
        lines = [{**row, "columns": {"label": row["label"]}} for row in read_lines(data / "train.jsonl")]
        (data / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    folder = done("attack", parameters, {"data": data, "texts": copied}, tmp_path / "attack")
    scores = read_json(folder / "scores.json")
    assert scores["rate"] > 0.9
    assert scores["defended"] == pytest.approx(1 - scores["rate"])


def test_entities_that_are_still_there():
    pairs = TextPairs(
        ["call me at 555-1234 now", "meet Dr. Smith today"] * 5, ["call w1 at 555-1234 w2", "w3 w4 w5"] * 5
    )
    rates = attack.successes(attack.Attack(attack="entities"), pairs, rewrite.Rewrite(mechanism="none"), nothing)
    assert 0 < rates["whole entity"]["rate"] < 1


def test_the_strongest_variant_counts(tmp_path: Path):
    weak = {"rate": 0.2, "low": 0.1, "high": 0.3, "floor": 0.1, "ceiling": 0.9, "cases": 10, "macro-F1": 0.3}
    strong = {**weak, "rate": 0.6, "macro-F1": 0.2}
    both = {"static": weak, "adaptive": strong}
    for each in both.values():
        each |= {"macro-F1.floor": 0.1, "macro-F1.ceiling": 0.8}
    write_json(tmp_path / "successes.json", both)
    scores = attack.score(tmp_path)
    assert (scores["rate"], scores["rate of static"], scores["macro-F1"]) == (0.6, 0.2, 0.3)


def test_statistics_of_a_large_epsilon(tmp_path: Path):
    write_files(tmp_path)
    parameters = {**santext(tmp_path, epsilon=500.0), "words": 10}
    scores = read_json(done("statistics", parameters, {}, tmp_path / "words") / "scores.json")
    assert scores["word stays"] == pytest.approx(1.0, abs=1e-6)
    assert scores["outputs of a word"] == pytest.approx(1.0, abs=1e-3)
    assert np.isclose(scores["exact"], 1.0)


def test_every_kind_says_what_it_is():
    for name, kind in kinds().items():
        assert kind.name == name
        assert kind.version >= 1
        assert kind.measures or name == "data"


class FakeTokenizer:
    """Two characters are a piece."""

    def __call__(self, text: str, max_length: int, **_: object) -> dict[str, list[tuple[int, int]]]:
        return {"offset_mapping": [(i, min(i + 2, len(text))) for i in range(0, len(text), 2)][:max_length]}


@pytest.mark.parametrize(("text", "cut"), [("abcdefg", "abcd"), ("abc", "abc"), ("", "")])
def test_a_long_original_is_compared_up_to_the_pieces_that_were_read(text: str, cut: str):
    assert similarity.first_pieces(FakeTokenizer(), text, 2) == cut


def test_vectors_of_a_list_are_computed_once_and_are_those_of_a_fresh_process(monkeypatch: pytest.MonkeyPatch):
    """Another list with the same texts is computed anew: by rounding, vectors depend on what is in their batch."""
    from tacit.documents.encoder import SentenceEncoder
    from tacit.experiments.steps.downstream import RememberingEncoder

    computed: list[tuple[str, ...]] = []

    def encode(self: SentenceEncoder, texts: Any, progress: Any = None) -> Any:
        computed.append(tuple(texts))
        return np.full((len(texts), 2), len(texts), dtype=np.float32)

    monkeypatch.setattr(SentenceEncoder, "encode", encode)
    encoder = RememberingEncoder("minilm")
    first = encoder.encode(["a", "b"])
    first[:] = 0  # nobody can change what is remembered
    assert (encoder.encode(["a", "b"]) == 2).all()
    assert computed == [("a", "b")]
    encoder.encode(["a"])
    assert computed == [("a", "b"), ("a",)]
    monkeypatch.setattr(RememberingEncoder, "MOST_VECTORS", 2)
    encoder.encode(["c", "d"])
    encoder.encode(["a", "b"])
    assert computed[2:] == [("c", "d"), ("a", "b")]


def test_fast_vectors_are_for_probes_only():
    with pytest.raises(BadInputError, match="leave it out"):
        downstream.check(downstream.Downstream(learner="tfidf", precision="fast"))
