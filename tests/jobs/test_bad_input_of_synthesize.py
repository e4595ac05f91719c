"""Rows that nobody hopes for, through the command: a clear sentence each, nothing lost, nothing spent twice."""

from __future__ import annotations

import csv
import json
import warnings
from collections.abc import Iterable
from pathlib import Path

import pytest

import tacit
from tacit.account.ledger import open_ledger
from tacit.cli.main import run as run_command
from tacit.errors import BadInputError, BadParameterError
from tacit.jobs import bought_labels as buying
from tacit.jobs.bought_labels import bought_labels, held_labels, price_of_labels
from tacit.jobs.sketched_rows import SketchConfig
from tacit.matching import corpus, drawable
from tacit.matching.artifact import read_sketch
from tacit.matching.merging import merge_sketches
from tacit.matching.pool import PoolSource, load_pool, write_pool

TEXTS = {"weather": "Will it rain in Paris tomorrow?", "music": "Play a song by Bach."}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("pool") / "small.tacit"
    chosen = load_pool().sentences[::40]
    write_pool(path, "small", [PoolSource("Tatoeba", "CC BY 2.0 FR")], ((sentence, 0, "") for sentence in chosen))
    return str(path)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TACIT_LEDGER_KEY", "a key for tests, nothing more")
    return tmp_path


def write(rows: Iterable[tuple[str, object]], users: int | None = None) -> None:
    with Path("rows.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["text", "label", "who"])
        for place, row in enumerate(rows):
            table.writerow([*row, f"u{place if users is None else place % users}"])


def usual(count: int = 600) -> list[tuple[str, object]]:
    return [(TEXTS[label], label) for label in ("weather", "music") for _ in range(count // 2)]


def synthesize(pool: str, *options: str, labels: str = "weather,music", epsilon: str = "2") -> int:
    named = () if not labels else ("--labels", labels)
    return run_command(["synthesize", "rows.csv", "-c", "text", "-l", "label", *named, "-e", epsilon, "-n", "100",
                        "--pool", pool, "-o", "out.csv", "-q", *options])  # fmt: skip


def released() -> list[dict[str, str]]:
    with Path("out.csv").open() as file:
        return list(csv.DictReader(file))


# Labels -------------------------------------------------------------------------------------------------------------


def test_thousands_of_labels_are_refused_before_anything_is_spent(
    pool: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write((TEXTS["music"], f"label {place}") for place in range(3_000))
    monkeypatch.setattr(drawable, "MOST_SCORES", 1_000_000)
    assert synthesize(pool, "--declare-labels-public", labels="") == 2
    assert "3,000 labels are more than can be compared" in capsys.readouterr().err
    assert {path.name for path in Path().iterdir()} == {"rows.csv"}


def test_a_class_with_three_rows_and_one_row_per_label(pool: str, capsys: pytest.CaptureFixture[str]) -> None:
    write([*usual(), *[("Book a table.", "rare")] * 3])
    assert synthesize(pool, labels="weather,music,rare") == 0
    assert "1 of 3 labels cannot be told from noise" in capsys.readouterr().err
    assert {row["label"] for row in released()} >= {"weather", "music"}
    write((sentence, f"l{place}") for place, sentence in enumerate(load_pool().sentences[:40]))
    assert synthesize(pool, "--declare-labels-public", "--force", labels="") == 0
    assert "of 40 labels cannot be told from noise" in capsys.readouterr().err


def test_epsilon_of_a_hundredth(pool: str, capsys: pytest.CaptureFixture[str]) -> None:
    write(usual())
    assert synthesize(pool, epsilon="0.01") == 0
    assert "2 of 2 labels cannot be told from noise" in capsys.readouterr().err
    assert json.loads(Path("out.csv.card.json").read_text())["guarantee"]["epsilon"] == 0.01
    assert synthesize(pool, "--pure", "--force", epsilon="0.01") == 0


# Labels that only the rows know ---------------------------------------------------------------------------------------


def test_labels_that_only_the_rows_know_are_paid_for(pool: str, capsys: pytest.CaptureFixture[str]) -> None:
    write([*usual(), *[("Book a table.", "rare")] * 3])
    assert synthesize(pool, "--labels-from-data", "private", "--ledger", "budget.db", labels="") == 0
    assert "3 of 603 rows" in capsys.readouterr().err
    sketch = read_sketch("out-sketch.tacit")
    assert sketch.labels == ("music", "weather")
    assert sketch.guarantee.epsilon == pytest.approx(2.0)
    assert "private list of labels" in sketch.guarantee.mechanism
    assert not any("public knowledge" in line for line in sketch.guarantee.assumptions)
    assert "rare" not in sketch.card.to_json()
    with open_ledger("budget.db", create=False) as ledger:
        spent = list(ledger.releases(dataset="rows.csv"))
    assert [release.guarantee.epsilon for release in spent] == [2.0]


def test_the_price_of_labels_is_a_part_of_the_promise() -> None:
    write(usual(), users=50)
    config = SketchConfig(data="rows.csv", epsilon=1.0, column="text", label_column="label", labels_from_data="private",
                          delta=1e-6)  # fmt: skip
    price = price_of_labels(config, 1.0, held_labels(config))
    assert price.guarantee.epsilon + price.sketch_epsilon == pytest.approx(1.0, rel=1e-15)
    assert price.guarantee.delta + price.sketch_delta == pytest.approx(1e-6, rel=1e-12)
    by_user = config.model_copy(update={"user_column": "who"})
    held = held_labels(by_user)
    assert len(held.units) == 50
    assert price_of_labels(by_user, 1.0, held).contribution.words == buying.MOST_OF_USER
    assert price_of_labels(by_user, 1.0, held).guarantee.unit.value == "user"


def test_labels_and_sums_together_cost_no_more_than_was_asked_for() -> None:
    """A card of 2.85001 for an epsilon of 2.85 would also be more than a ledger has charged."""
    rows = [{"text": "a text", "label": "a"}] * 1_000
    built = tacit.sketch(rows, epsilon=2.85, label_column="label", labels_from_data="private")
    assert 2.85 * (1 - 1e-12) <= built.guarantee.epsilon <= 2.85


def test_a_label_of_one_row_comes_out_as_seldom_as_delta_says() -> None:
    """A lone label passes the threshold with probability delta / 2 at most."""
    write([*usual(200), ("secret", "lone")])
    config = SketchConfig(data="rows.csv", epsilon=4.0, column="text", label_column="label", labels_from_data="private",
                          delta=0.004)  # fmt: skip
    held = held_labels(config)
    price = price_of_labels(config, 4.0, held)
    assert price.noise.delta == 0.002
    seen = sum("lone" in bought_labels(config, held, price)[0]["label"].names for _ in range(600))
    assert seen <= 6, "1.2 are expected; more than 6 have a probability below 1 in 1,000"


def test_several_columns_find_their_labels_together() -> None:
    rows = [{"text": text, "label": label, "way": "mail"} for text, label in usual(2_000)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        built = tacit.sketch(rows, epsilon=3, column="text", label_columns=["label", "way"], labels_from_data="private")
    assert built.sketch.labels == ("label=music", "label=weather", "way=mail")
    assert built.guarantee.epsilon == pytest.approx(3.0)


def test_if_no_label_is_found_the_ledger_knows_and_the_sentence_says_what_to_do(
    pool: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write((TEXTS["music"], f"l{place}") for place in range(300))
    # With the usual delta one of 300 labels of one row passes in 3 of 100 runs; with this one in 1 of 6 million.
    few = ["--delta", "1e-9", "--ledger", "budget.db"]
    assert synthesize(pool, "--labels-from-data", "private", *few, labels="") == 2
    said = capsys.readouterr().err
    assert "no label of the column 'label' has enough rows" in said
    assert "--labels" in said
    with open_ledger("budget.db", create=False) as ledger:
        assert len(list(ledger.releases(dataset="rows.csv"))) == 1


def test_sketches_with_paid_labels_compose_by_their_sums() -> None:
    rows = [{"text": text, "label": label} for text, label in usual(2_000)]
    options = {"epsilon": 1, "column": "text", "label_column": "label", "delta": 1e-6}
    paid = [tacit.sketch(rows, labels_from_data="private", **options).sketch for _ in range(2)]
    assert merge_sketches(paid).guarantee.epsilon == pytest.approx(2.0)
    assert merge_sketches(paid, disjoint=True).guarantee.epsilon == pytest.approx(1.0)
    with pytest.raises(BadParameterError, match="one label column"):
        tacit.sketch(rows, epsilon=1, column="text", label_column="label", labels_from_data="private", pure=True)


# Texts --------------------------------------------------------------------------------------------------------------


def test_empty_texts_and_very_long_ones(pool: str, capsys: pytest.CaptureFixture[str]) -> None:
    write([*usual(200), *[("", "music"), ("   ", "weather")] * 5, ("rain " * 100_000, "weather")])
    assert synthesize(pool) == 0
    said = capsys.readouterr().err
    assert "10 of 211 rows have no text" in said
    assert "1 of 211 texts are longer than 20,000 characters" in said
    assert said.count("this line is private") == 2
    for text in (Path("out.csv.card.md").read_text(), Path("out-sketch.tacit.card.json").read_text()):
        assert "no text" not in text
        assert "211" not in text
    write([("", "music")] * 30 + [("", "weather")] * 30)
    assert synthesize(pool, "--force") == 0, "nothing but empty texts is still a release"


def test_other_languages_are_told_to_the_holder_before_anything_is_spent(
    pool: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(
        [
            ("明日のパリの天気はどうですか 雨 降り ます", "weather"),
            ("Wird es morgen in Paris regnen oder schneien", "music"),
        ]
        * 100
    )

    def stopped(*_: object) -> None:
        assert "seem not to be English" in capsys.readouterr().err
        raise KeyboardInterrupt

    monkeypatch.setattr("tacit.matching.sketch.noisy_totals", stopped)
    assert synthesize(pool) == 130
    assert {path.name for path in Path().iterdir()} == {"rows.csv"}
    write(usual())
    monkeypatch.undo()


def test_english_texts_are_not_taken_for_others(pool: str, capsys: pytest.CaptureFixture[str]) -> None:
    write([(sentence, "music") for sentence in load_pool().sentences[:400]] + usual(200))
    assert synthesize(pool) == 0
    assert "English" not in capsys.readouterr().err


# Interruptions --------------------------------------------------------------------------------------------------------


def test_a_job_that_is_stopped_while_it_reads_has_spent_nothing(
    pool: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(usual())

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tacit.matching.sketch.exact_sums", stopped)
    assert synthesize(pool, "--ledger", "budget.db") == 130
    assert "nothing was released" in capsys.readouterr().err
    with open_ledger("budget.db", create=False) as ledger:
        assert not list(ledger.releases(dataset="rows.csv"))
    assert not Path("out-sketch.tacit").exists()


def test_a_job_that_is_stopped_while_it_draws_keeps_what_was_paid_for(
    pool: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(usual())

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(corpus, "scored_pool", stopped)
        assert synthesize(pool, "--ledger", "budget.db") == 130
    assert "draw from it with --from" in capsys.readouterr().err
    assert not Path("out.csv").exists()
    assert synthesize(pool, "--ledger", "budget.db") == 2, "not paid for a second time by accident"
    assert "paid for" in capsys.readouterr().err
    assert (
        run_command(["synthesize", "--from", "out-sketch.tacit", "--pool", pool, "-n", "100", "-o", "out.csv", "-q"])
        == 0
    )
    assert len(released()) == 100
    with open_ledger("budget.db", create=False) as ledger:
        assert len(list(ledger.releases(dataset="rows.csv"))) == 1


def test_a_missing_column_and_a_file_without_rows(pool: str, capsys: pytest.CaptureFixture[str]) -> None:
    write([])
    assert synthesize(pool) == 2
    assert "no rows" in capsys.readouterr().err
    write(usual())
    assert run_command(["synthesize", "rows.csv", "-c", "text", "-l", "nothing", "--labels", "a", "-e", "1"]) == 2
    assert "no column 'nothing'" in capsys.readouterr().err
    with pytest.raises(BadInputError):
        tacit.synthesize("rows.csv", epsilon=1, column="text", label_column="nothing", labels=["a"])


@pytest.mark.parametrize("labels", [{"labels": ("a", "b")}, {"labels_from_data": "private"}])
def test_a_row_without_a_user_is_refused_however_it_says_so(folder: Path, labels: dict[str, object]) -> None:
    rows = [{"text": "a text", "label": "ab"[row % 2], "user": f"u{row}"} for row in range(60)]
    lines = [json.dumps(row if place != 7 else {"text": "a", "label": "a"}) for place, row in enumerate(rows)]
    Path("rows.jsonl").write_text("\n".join(lines))
    missing = [{**row, "user": value} for row, value in zip(rows, [None, float("nan"), "", "\u200b"], strict=False)]
    for data in ("rows.jsonl", [*rows, missing[0]], [*rows, missing[1]], [*rows, missing[2]], [*rows, missing[3]]):
        with pytest.raises(BadInputError, match="has no user: every row must belong to one"):
            tacit.sketch(data, epsilon=1, label_column="label", user_column="user", **labels)  # type: ignore[arg-type]


def test_users_have_one_budget_whatever_the_type_of_their_cells() -> None:
    names = [7, 7.0, "7", " 7", "Ann Lee", "Ann  Lee", "Ann\u00a0Lee", "Ann Lee\u200b"]
    rows = [{"text": "a text", "user": name} for name in names]
    assert tacit.sketch(rows, epsilon=1, user_column="user").findings.users == 2


def test_a_key_that_a_row_does_not_have_is_no_label(folder: Path) -> None:
    Path("rows.jsonl").write_text('{"text": "one", "label": "a"}\n{"text": "two"}\n{"text": "three", "label": "b"}\n')
    with pytest.warns(match="1 of 3 rows have a label that is not in the public list"):
        built = tacit.sketch("rows.jsonl", epsilon=1, label_column="label", declare_labels_public=True)
    assert built.sketch.labels == ("a", "b")


def test_a_column_without_any_label_is_said_in_a_sentence() -> None:
    for rows in ([{"text": "a", "label": None}], [{"text": "a", "label": " "}, {"text": "b", "label": float("nan")}]):
        with pytest.raises(BadInputError, match="no row of the data in memory has a label in 'label'"):
            tacit.sketch(rows, epsilon=1, label_column="label", declare_labels_public=True)
