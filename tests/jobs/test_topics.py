"""Topics end to end: files with cards, users, ledger, refusals before anything is spent, nothing of one text alone."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from tacit.account.ledger import open_ledger
from tacit.cli.topics import command
from tacit.errors import BadInputError, BadParameterError, TacitWarning
from tacit.guarantee import Unit
from tacit.jobs.topics import ReleasedTopics, topics

SUBJECTS = ["my credit card was declined at the shop", "how will the weather be in Paris tomorrow",
            "please book a table at the restaurant", "which bus goes to the airport",
            "play a song by my favorite singer"]  # fmt: skip
SECRET = "Zebediah Quagmire owes the bakery"


def rows(count: int = 1_500) -> list[dict[str, str]]:
    listed = [{"text": SUBJECTS[place % 5], "who": f"user {place % 300}"} for place in range(count)]
    return [*listed, {"text": SECRET, "who": "zeb"}, {"text": "", "who": "nobody"}]


@pytest.fixture(scope="module")
def made() -> ReleasedTopics:
    with pytest.warns(TacitWarning, match="cannot be told from noise"), pytest.warns(TacitWarning, match="no text"):
        return topics(rows(), epsilon=4, topics=8)


def test_counts_words_and_sentences_say_what_texts_are_about(made: ReleasedTopics) -> None:
    assert len(made) == 8
    largest = made.topics[:5]
    # About 170 cells each with noise of deviation 1.8: 150 are more than 6 deviations.
    assert all(abs(topic.count - 300) < 150 for topic in largest)
    assert all((topic.low or 0) < topic.count < (topic.high or 0) for topic in made.topics)
    words = {word for topic in largest for word in topic.words}
    assert {"card", "weather", "restaurant", "airport"} <= words
    assert made.guarantee.epsilon == 4
    assert "zebediah" not in json.dumps(made.to_dict()).lower()
    assert "Topics" in str(made)


def test_files_stand_beside_their_cards(made: ReleasedTopics, tmp_path: Path) -> None:
    config = made.config.model_copy(
        update={"output": tuple(tmp_path / f"t{ending}" for ending in (".html", ".csv", ".json"))}
    )
    replace(made, config=config).save()
    for ending in (".html", ".csv", ".json"):
        for beside in ("", ".card.json", ".card.md", ".ATTRIBUTION.txt"):
            assert (tmp_path / f"t{ending}{beside}").stat().st_size > 0
    page = (tmp_path / "t.html").read_text()
    assert page.count("<circle") == 8
    assert "zebediah" not in page.lower()
    assert "http" not in re.sub(r"https?://[^\s<]+", "", page).replace("http://www.w3.org/2000/svg", "")
    read = json.loads((tmp_path / "t.json").read_text())
    assert len(read["topics"]) == 8
    assert read["card"]["guarantee"]["epsilon"] == 4


def test_the_command_charges_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACIT_LEDGER_KEY", "a key for tests, nothing more")
    data = tmp_path / "in.csv"
    data.write_text("text,who\n" + "".join(f"{row['text']},{row['who']}\n" for row in rows(600)))
    book = str(tmp_path / "book.sqlite")
    arguments = [str(data), "-c", "text", "--user-column", "who", "-e", "2", "-o", str(tmp_path / "t.csv"),
                 "--topics", "6", "--ledger", book]  # fmt: skip
    with pytest.warns(TacitWarning):  # a new ledger, an empty text, topics that are noise
        called = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert called.exit_code == 0, called.output
    assert (tmp_path / "t.csv").read_text().startswith("topic,name,noisy_users")
    with open_ledger(book) as ledger:
        assert [each.guarantee.epsilon for each in ledger.releases(dataset="in.csv")] == [2]
    called = CliRunner().invoke(command, arguments)  # the file exists: refused before anything is spent
    assert isinstance(called.exception, BadInputError)
    with open_ledger(book) as ledger:
        assert [each.guarantee.epsilon for each in ledger.releases(dataset="in.csv")] == [2]


def test_users_are_promised_something_as_users() -> None:
    with pytest.warns(TacitWarning):
        made = topics(rows(600), epsilon=2, topics=6, user_column="who")
    assert made.guarantee.unit is Unit.USER
    assert abs(sum(topic.count for topic in made.topics) - 301) < 8 * 10 * (2 * 1024) ** 0.5 / 4


def test_lda_fits_words_of_a_public_list(tmp_path: Path) -> None:
    listed = [{"text": SUBJECTS[place % 5], "who": f"user {place}"} for place in range(2_000)]
    made = topics(listed, epsilon=8, by="lda", topics=6, output=[tmp_path / "t.html", tmp_path / "t.csv"])
    assert {"weather", "restaurant", "airport"} & {word for topic in made.topics for word in topic.words}
    assert made.guarantee.epsilon <= 8
    assert all(topic.low is None for topic in made.topics)
    assert (tmp_path / "t.html.card.json").exists()
    assert sum(topic.count for topic in made.topics) == pytest.approx(2_000)


def test_a_seed_repeats_and_promises_nothing() -> None:
    with pytest.warns(TacitWarning):
        first, second = (topics(rows(300), epsilon=2, topics=5, seed=3) for _ in range(2))
    assert [topic.count for topic in first.topics] == [topic.count for topic in second.topics]
    assert not first.guarantee.is_private


def test_other_endings_and_unnamed_data_are_refused_before_reading() -> None:
    with pytest.raises(BadParameterError) as raised:
        topics("missing.csv", epsilon=1, output="topics.pdf")
    assert raised.value.code == "unknown-ending"
    with pytest.raises(BadParameterError) as raised:
        topics(["a text"], epsilon=1, ledger="book.sqlite")
    assert raised.value.code == "dataset-without-name"
