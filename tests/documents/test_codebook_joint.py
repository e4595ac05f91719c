"""The joint code of a label and a text: its exact law, its draws, and its way through a file."""

from __future__ import annotations

import csv
import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import tacit
from tacit.account.ledger import Subject, open_ledger
from tacit.documents.codebook import Codebook
from tacit.documents.codebook_build import build_codebook
from tacit.documents.codebook_joint import draw_pairs, label_and_text, named_records, pair_law
from tacit.documents.staircase import staircase_shares
from tacit.encoders import ENCODERS
from tacit.errors import BadInputError, BadParameterError, TacitError, TacitWarning
from tacit.guarantee import Adjacency, Notion, Unit
from tacit.noise.source import Source
from tests.documents.test_codebook import FALSE_ALARM, PUBLIC, WordEncoder, sentences

LABELS = ("a", "b", "c")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("codebooks") / "made-up"
    build_codebook(sentences(), PUBLIC, WordEncoder(), sizes=(8, 16, 64)).save(path)
    return path


@pytest.fixture(autouse=True)
def words_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The encoder of these tests, as one of a plug-in."""
    monkeypatch.setitem(ENCODERS._registered, "words", WordEncoder)


def mechanism(folder: Path, **options: object) -> Codebook:
    made = Codebook(**{"epsilon": 2.0, "seed": 1, "codebook": str(folder), "labels": LABELS, **options})
    made.__dict__["sentence_encoder"] = WordEncoder()
    return made


# The law ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 3.0, 12.0])
def test_the_whole_matrix_of_a_small_domain_keeps_the_bound(epsilon: float):
    """Every label, every set of near cells, every pair of records, every output."""
    for count, k in itertools.product((2, 3), (2, 3, 4)):
        for s in range(1, k + 1):
            if s == k * count:
                continue
            laws = np.stack(
                [
                    pair_law(near, label, count, k, epsilon)
                    for label in range(count)
                    for near in itertools.combinations(range(k), s)
                ]
            )
            np.testing.assert_allclose(laws.sum(axis=1), 1.0, rtol=1e-12)
            worst = np.log(laws.max(axis=0) / laws.min(axis=0)).max()
            assert worst <= epsilon * (1 + 1e-12)
            assert worst > 0.99 * epsilon, "and the budget is used"
            t, w = staircase_shares(epsilon, count * k, s)
            assert Fraction(t, w) <= Fraction(math.exp(epsilon)), "whole numbers, without slack"


def test_near_sets_that_depend_on_the_label_are_caught():
    """The same check fails if a label has more near pairs than another: the normalizer then depends on the record."""
    k, epsilon = 4, 1.0
    few, many = pair_law([0], 0, 2, k, epsilon), pair_law([0, 1, 2, 3], 1, 2, k, epsilon)
    assert np.log(np.maximum(few / many, many / few)).max() > epsilon


@pytest.mark.parametrize(
    ("count", "k", "s", "epsilon"), [(2, 4, 1, 1.0), (3, 8, 3, 0.5), (5, 6, 6, 2.0), (2, 3, 2, 4.0)]
)
def test_draws_follow_the_law(count: int, k: int, s: int, epsilon: float):
    rng = np.random.default_rng(1)
    for label in range(count):
        order = rng.permutation(k)
        rows = 60_000
        drawn, cells = draw_pairs(
            np.repeat(order[None], rows, axis=0), np.full(rows, label), count, s, epsilon, Source.from_test_seed(label)
        )
        observed = np.bincount(drawn * k + cells, minlength=count * k)
        expected = pair_law(order[:s], label, count, k, epsilon) * rows
        assert stats.chisquare(observed, expected).pvalue > FALSE_ALARM


def test_the_mechanism_draws_by_its_law(folder: Path):
    made = mechanism(folder, k=8, s=3, epsilon=1.5)
    text = "the doctor needs a ticket"
    drawn, cells = made.draw_records([text] * 30_000, np.full(30_000, 2), Source.from_test_seed(5))
    observed = np.bincount(drawn * 8 + cells[:, 0], minlength=24)
    assert stats.chisquare(observed, made.law(text, 2) * 30_000).pvalue > FALSE_ALARM


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 9.0])
def test_matrix_of_the_mechanism_keeps_the_bound(folder: Path, epsilon: float):
    for options in ({"k": 8, "s": 3}, {"k": 16}, {}):
        made = mechanism(folder, epsilon=epsilon, **options)
        matrix = made.matrix()
        assert matrix.shape == (3 * made.choice.k,) * 2
        np.testing.assert_allclose(matrix.sum(axis=1), 1.0, rtol=1e-12)
        assert np.log(matrix.max(axis=0) / matrix.min(axis=0)).max() <= epsilon * (1 + 1e-12)


def test_several_symbols_and_a_label_share_the_budget(folder: Path):
    """The joint law of label and two sentences for many records."""
    epsilon = 2.0
    made = mechanism(folder, k=8, s=2, symbols=2, epsilon=epsilon)
    laws = []
    for label, text in itertools.product(range(3), sentences()[::40]):
        rounded = made._rounded(made.sentence_encoder.encode([text]), [text])
        first = made.law(text, label).reshape(3, 8)
        second = np.empty((8, 8))
        for cell in range(8):
            near = made._near(rounded, np.array([[cell]]))[0, :2]
            second[cell] = pair_law(near, 0, 1, 8, made.symbol_epsilon)
        laws.append((first[:, :, None] * second).ravel())
    table = np.array(laws)
    np.testing.assert_allclose(table.sum(axis=1), 1.0, rtol=1e-12)
    assert epsilon / 2 < np.log(table.max(axis=0) / table.min(axis=0)).max() <= epsilon * (1 + 1e-12)
    drawn = made.rewrite_labeled(sentences()[:9], list("abcabcabc"), Source.from_test_seed(1))
    assert drawn.labels is not None
    assert set(drawn.labels) <= set(LABELS)


def test_more_labels_want_more_near_cells(folder: Path):
    public = mechanism(folder).public
    for epsilon in (1.0, 3.0):
        chosen = [public.choose(epsilon, k=64, labels=count).s for count in (1, 3, 10, 50)]
        assert chosen == sorted(chosen)
    level = public.level(64)
    near, chance = level.nearness[0], level.chance()
    gain = math.expm1(3.0)
    expected = gain * (near - level.steps * chance) / (gain * level.steps + 7 * 64)
    np.testing.assert_allclose(level.gains(3.0, labels=7), expected[:-1], atol=1e-12)


def test_records_of_an_audit_are_read_back():
    names = ("a", "a: b", "c")
    for record, place in zip(named_records(names, ["x: y", "z", ""]), range(3), strict=True):
        assert label_and_text(names, record) == (place, ("x: y", "z", "")[place])


# The card -----------------------------------------------------------------------------------------------------------


def test_card_says_that_text_length_and_label_are_covered(folder: Path):
    promised = mechanism(folder, seed=None, epsilon=3.0).guarantee()
    assert (promised.notion, promised.epsilon, promised.delta) == (Notion.PURE, 3.0, 0.0)
    assert (promised.unit, promised.adjacency) == (Unit.RECORD, Adjacency.ANY_TWO)
    assert "text, length and label" in str(promised.parameters["labels"])
    assert not any("label" in line and "beside" not in line for line in promised.not_covered)
    assert any("public knowledge" in line for line in promised.assumptions)


@pytest.mark.parametrize("labels", [(), ("a",), ("a", "a"), "abc"])
def test_lists_that_are_no_lists_of_labels(folder: Path, labels: object):
    with pytest.raises(BadParameterError, match="two different"):
        mechanism(folder, labels=labels)


def test_texts_without_their_labels_are_refused(folder: Path):
    with pytest.raises(BadParameterError, match="together"):
        mechanism(folder).rewrite(["the cat"])
    with pytest.raises(BadParameterError, match="no list of labels"):
        mechanism(folder, labels=None).rewrite_labeled(["the cat"], ["a"], Source.from_test_seed(1))


# Files --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "in.csv"
    with path.open("w", newline="") as file:
        rows = [(text, LABELS[i % 3], f"u{i // 2}") for i, text in enumerate(sentences()[:60])]
        csv.writer(file).writerows([("text", "topic", "who"), *rows])
    return path


def released(path: Path) -> list[tuple[str, str]]:
    with path.open(newline="") as file:
        return [(row["text"], row["topic"]) for row in csv.DictReader(file)]


def options(table: Path, folder: Path, **more: object) -> dict[str, object]:
    return {
        "input": str(table), "mechanism": "codebook", "epsilon": 3.0, "columns": "text", "randomize": "topic",
        "labels": LABELS, "options": {"codebook": str(folder)}, "output": table.with_name("out.csv"), **more,
    }  # fmt: skip


def test_a_file_is_released_with_its_labels_by_one_budget(table: Path, folder: Path):
    release = tacit.rewrite(**options(table, folder))
    card = json.loads(Path(f"{release.output}.card.json").read_text())
    assert card["guarantee"]["epsilon"] == 3.0
    assert card["guarantee"]["unit"] == "record"
    assert card["release"]["randomized_columns"] == ["topic"]
    assert card["release"]["kept_columns"] == []
    assert len(card["totals"]) == 1
    rows = released(table.with_name("out.csv"))
    assert len(rows) == 60
    assert {label for _, label in rows} <= set(LABELS)
    assert [label for _, label in rows] != [LABELS[i % 3] for i in range(60)]
    assert {text for text, _ in rows} <= set(sentences())


def test_workers_and_memory_draw_the_same_pairs(table: Path, folder: Path):
    tacit.rewrite(**options(table, folder, seed=3))
    expected = released(table.with_name("out.csv"))
    rows = [{"text": text, "topic": LABELS[i % 3]} for i, text in enumerate(sentences()[:60])]
    again = tacit.rewrite(**options(table, folder, seed=3, input=rows, output=None))
    assert [(row["text"], row["topic"]) for row in again.data] == expected
    swapped = [{**row, "topic": "b"} for row in rows]
    other = tacit.rewrite(**options(table, folder, seed=3, input=swapped, output=None))
    assert [row["text"] for row in other.data] != [text for text, _ in expected], "other labels get independent noise"


def test_what_does_not_go_together(table: Path, folder: Path):
    with pytest.raises(TacitError, match="does not cover labels"):
        tacit.rewrite(**{**options(table, folder), "mechanism": "santext", "options": {}})
    with pytest.raises(TacitError, match="known publicly"):
        tacit.rewrite(**options(table, folder, labels=()))
    with pytest.raises(BadInputError, match="choice of one text"):
        tacit.rewrite(**options(table, folder, columns=("text", "who")))
    with pytest.raises(BadInputError, match="not among the 2"):
        tacit.rewrite(**options(table, folder, labels=("a", "b")))
    assert not table.with_name("out.csv").exists()


def test_users_and_the_ledger_are_charged_once(table: Path, folder: Path, tmp_path: Path):
    shared = tacit.rewrite(**options(table, folder, user_column="who", documents_per_user=2))
    assert (shared.guarantee.unit, shared.guarantee.epsilon) == (Unit.USER, 3.0)
    place = str(tmp_path / "ledger.db")
    with pytest.warns(TacitWarning, match="NEW LEDGER"):
        tacit.rewrite(**options(table, folder, ledger=place, dataset="d", force=True))
    with open_ledger(place) as ledger:
        assert ledger.spent(Subject("document", sentences()[0])).epsilon == 3.0, "text and label together"
        assert ledger.spent(Subject("dataset", "d")).epsilon == 3.0
    own = tacit.rewrite(**options(table, folder, label_epsilon=1.0, force=True))
    assert own.guarantee.epsilon == 4.0, "a label with a budget of its own adds up"
