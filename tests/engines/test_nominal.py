"""Nominal releases are refused before any noise is drawn, and what a mechanism cannot read is noticed (item C5)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tacit.card import Card, ReleaseFacts
from tacit.engines.job import RewriteJob
from tacit.engines.local import rewrite_file
from tacit.engines.nominal import refuse_nominal_dataset, refuse_nominal_file, refuse_nominal_job
from tacit.engines.notices import SAMPLE_TEXTS, Notices
from tacit.errors import BadInputError, NominalError
from tacit.reading import Reading, read_by_pieces
from tacit.text.files import FileFormat, choose_columns
from tacit.words.santext import SanText
from tests.conftest import small_table
from tests.engines.fakes import NoiseShown
from tests.test_guarantee import approximate, metric, pure

FACTS = ReleaseFacts(rows=1, documents=1, units=4, longest_document=4, longest_row=4)


@pytest.mark.parametrize(
    ("guarantee", "facts", "nominal"),
    [
        (pure(2.0), FACTS, False),  # 8 for the row: weak
        (pure(2.6), FACTS, True),  # 10.4
        (approximate(9.0), None, False),
        (approximate(11.0), None, True),
        (metric(0.001), FACTS, False),
        (pure(0.1).voided("a test"), None, True),
    ],
)
def test_c5_a_card_is_nominal_if_its_worst_line_is(guarantee, facts, nominal):
    card = Card(guarantee, facts)
    assert card.is_nominal is nominal
    assert ("nominal" in card.to_text()) is (nominal and guarantee.is_private)


@pytest.mark.parametrize(
    ("exponent", "color"), [(0.5, "strong"), (3.0, "moderate"), (7.0, "weak"), (12.0, "nominal"), (None, "void")]
)
def test_c5_the_title_bar_of_the_page_has_the_color_of_the_worst_line(exponent, color):
    guarantee = approximate(1.0).voided("a test") if exponent is None else approximate(exponent)
    page = Card(guarantee).to_html()
    assert f'<body class="{color}">' in page
    assert ".weak h1{border-color:var(--warn)}.nominal h1,.void h1{border-color:var(--bad)}" in page


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "in.csv"
    path.write_text("text,title\na b c,d\n" + "a b c d e f g h,i j\n" * 3 + "a,b\n")
    return path


def job_of(file: Path, **changes) -> RewriteJob:
    log = file.with_name("log")
    mechanism = NoiseShown(epsilon=changes.pop("epsilon", 1.0), log=str(log))
    return RewriteJob(
        mechanism=mechanism, input=str(file), output=str(file.with_name("out.csv")),
        columns=("text", "title"), refuse_nominal=True, **changes,
    )  # fmt: skip


def test_c5_the_longest_row_decides_and_nothing_is_drawn(file):
    """8 words in one column and 2 in the other are one row of 10 words: epsilon 1 is weak, 1.1 nominal."""
    with pytest.raises(NominalError, match="10 words"):
        rewrite_file(job_of(file, epsilon=1.1))
    assert not file.with_name("log").exists(), "no noise was drawn"
    assert [path.name for path in file.parent.iterdir()] == ["in.csv"], "nothing is left behind"
    facts = rewrite_file(job_of(file, epsilon=1.0)).facts
    assert facts.longest_row == 10


def test_c5_a_test_seed_promises_nothing_and_is_refused(file):
    job = job_of(file, seed=1)
    mechanism = SanText(epsilon=1e-9, vectors=small_table())
    with pytest.raises(NominalError, match="promise nothing"):
        refuse_nominal_file(replace(job, mechanism=mechanism))


def test_c5_where_the_rows_cannot_be_counted_the_run_is_refused(file):
    piped = RewriteJob(mechanism=NoiseShown(), input="-", refuse_nominal=True)
    with pytest.raises(BadInputError, match="give a file"):
        refuse_nominal_job(piped, choose_columns(["text"], (), ()), FileFormat("csv"))
    with pytest.raises(BadInputError, match="cluster"):
        refuse_nominal_dataset(job_of(file), choose_columns(["text"], (), ()))


def test_c5_an_input_that_grew_after_the_count_is_not_released(file, monkeypatch):
    import tacit.engines.local as local

    monkeypatch.setattr(local, "refuse_nominal_job", lambda *given: None)
    with pytest.raises(NominalError):
        rewrite_file(job_of(file, epsilon=1.1))
    assert not file.with_name("out.csv").exists()


# What a mechanism cannot read -----------------------------------------------------------------------------------


def test_c5_unknown_words_are_noticed_once_and_only_where_they_are_many():
    mechanism = SanText(epsilon=1, vectors=small_table())
    said: list[str] = []
    notices = Notices(mechanism, said.append)
    for _ in range(3):
        notices.add(["w1 w2 strange fremd étranger 12 34 ."] * SAMPLE_TEXTS)
    notices.finish()
    assert len(said) == 1
    assert "60% of the words" in said[0]
    assert "not on the card" in said[0]
    assert "fremd" not in said[0]
    for texts in (["w1 w2 w3"] * 100, ["strange"], ["12 . 34 ;"] * 100):
        quiet = Notices(mechanism, said.append)
        quiet.add(texts)
        quiet.finish()
    assert len(said) == 1


def test_c5_the_share_of_unknown_words_is_on_no_card():
    mechanism = SanText(epsilon=1, vectors=small_table())
    before = Card(mechanism.guarantee()).to_json()
    mechanism.rewrite(["completely strange words here"] * 50)
    mechanism.reading(["completely strange words here"] * 50)
    assert Card(mechanism.guarantee()).to_json() == before


def tokenizer_of(words):
    library = pytest.importorskip("tokenizers")
    vocabulary = {piece: i for i, piece in enumerate(["[UNK]", *words, *(f"##{c}" for c in "abcdefghijklmnop")])}
    made = library.Tokenizer(library.models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = library.pre_tokenizers.Whitespace()
    return made


def test_c5_a_model_knows_words_that_are_one_piece_and_reads_so_many():
    tokenizer = tokenizer_of(["the", "film", "was", "f"])
    texts = ["the film was the film", "the filma", "the zzz", "the " * 9]
    reading = read_by_pieces(tokenizer, 4, texts)
    assert (reading.words, reading.unknown) == (18, 2)
    assert (reading.documents, reading.cut, reading.limit) == (4, 1, 4)
    assert "1 of 4 texts are more than 2 times as long as the 4 pieces" in reading.warnings()[0]
    assert Reading().plus(reading) == reading
    assert read_by_pieces(tokenizer, 4, []).warnings() == []
    # A text of a hundred thousand words costs no more than what is looked at of it.
    assert read_by_pieces(tokenizer, 4, ["the " * 100_000]).words == 40 * 2 * 4 // 4


@pytest.mark.parametrize("language", [0, 1])
def test_c5_german_is_noticed_and_english_is_not(language, data_folder, default_table):
    """Real sentences: the same captions in English and in German."""
    rows = (data_folder / "multi30k-en-de" / "test2016.tsv").read_text(encoding="utf-8").splitlines()[1:300]
    texts = [row.split("\t")[language] for row in rows]
    warnings_shown = SanText(epsilon=1, vectors=default_table).reading(texts).warnings()
    assert bool(warnings_shown) is (language == 1)
