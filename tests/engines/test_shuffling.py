"""Shuffled rows: one secret order of the whole file, also after a stop, and a second promise on the card."""

from __future__ import annotations

import collections
import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from scipy import stats

import tacit
from tacit.account.delta import automatic_delta
from tacit.account.shuffling import TwoWeights, blanket_epsilon, clones_epsilon
from tacit.card import Card, json_schema
from tacit.cli.main import run
from tacit.documents.staircase import staircase_shares
from tacit.engines import shuffling
from tacit.engines.job import RewriteJob
from tacit.engines.local import rewrite_file
from tacit.engines.shuffling import secret_order
from tacit.engines.users import UserRule
from tacit.errors import BadInputError, NoGuaranteeError
from tacit.guarantee import Adjacency, Guarantee, Model, Notion, Unit
from tacit.labels import LabelRule
from tacit.mechanism import Mechanism, Rewritten
from tacit.noise.source import Source, StreamKey

ROWS = 40
WEIGHTS = staircase_shares(3.0, 100, 7)


class Marked(Mechanism):
    """Releases each text with a mark, so that rows are recognized: a stand-in, whose promise is made up."""

    title, paper, level, notion, unit = "Marked", "a test", "document", "pure", "document"
    block_characters = 60

    def __init__(self, epsilon: float = 3.0, seed: int | None = None, exact: bool = True) -> None:
        self.epsilon, self.seed, self.exact = epsilon, seed, exact

    def get_params(self, deep: bool = True) -> dict[str, object]:
        return {"epsilon": self.epsilon}

    def prepare(self) -> None:
        return

    def guarantee(self, *, secure: bool | None = None) -> Guarantee:
        promised = Guarantee(
            notion=Notion.PURE,
            epsilon=self.epsilon,
            unit=Unit.DOCUMENT,
            adjacency=Adjacency.ANY_TWO,
            mechanism="marked",
        )
        return promised if secure else promised.voided("a test seed")

    def rewrite_texts(self, texts: object, source: Source) -> Rewritten:
        return Rewritten([f"{text}!" for text in texts], [1] * len(texts))  # type: ignore[attr-defined,arg-type]

    def two_weights(self) -> TwoWeights | None:
        return TwoWeights(7, 100, *WEIGHTS) if self.exact else None


Marked.name = "marked"  # set later, so that no catalog lists it


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "in.csv"
    with path.open("w", newline="") as file:
        rows = [(f'text "{i}"\nof two lines, here', "ab"[i % 2], f"u{i}") for i in range(ROWS)]
        csv.writer(file).writerows([("text", "topic", "who"), *rows])
    return path


def job(path: Path, output: str = "out.csv", **more: object) -> RewriteJob:
    known = {"mechanism": Marked(), "columns": ("text",), "shuffle": True}
    return RewriteJob(input=str(path), output=str(path.with_name(output)), **{**known, **more})  # type: ignore[arg-type]


def texts_of(path: Path) -> list[str]:
    with path.open(newline="") as file:
        return [row["text"] for row in csv.DictReader(file)]


def expected() -> list[str]:
    return [f'text "{i}"\nof two lines, here!' for i in range(ROWS)]


def test_orders_are_uniform():
    """Chi-square over all orders of four rows; a right shuffle fails once in a million."""
    counts = collections.Counter(tuple(secret_order(4, StreamKey.from_test_seed(i)).tolist()) for i in range(6_000))
    assert len(counts) == 24
    assert stats.chisquare(list(counts.values())).pvalue > 1e-6
    fresh = {tuple(secret_order(30, StreamKey.from_os()).tolist()) for _ in range(5)}
    assert len(fresh) == 5


def test_all_rows_come_out_in_another_order(table: Path):
    rewrite_file(job(table))
    released = texts_of(table.with_name("out.csv"))
    assert released != expected()
    assert sorted(released) == sorted(expected())
    assert sorted(path.name for path in table.parent.iterdir()) == [
        "in.csv", "out.csv", "out.csv.card.json", "out.csv.card.md",
    ]  # fmt: skip


def test_the_order_reaches_over_blocks(table: Path):
    """Rows of the first block are found in the whole file."""
    places = []
    for seed in range(20):
        rewrite_file(job(table, seed=seed, force=True))
        places.append(texts_of(table.with_name("out.csv")).index(expected()[0]))
    assert min(places) < 10
    assert max(places) > 30


@pytest.mark.parametrize("name", ["out.jsonl", "out.csv.gz", "out.tsv", "out.parquet", "out.txt"])
def test_every_format(table: Path, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shuffling, "PASS_ROWS", 7)
    monkeypatch.setattr(shuffling, "BLOCK_ROWS", 3)
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    labels = None if name.endswith("txt") else LabelRule(("a", "b"), 1.0, "topic")
    plain = rewrite_file(job(table, name, seed=5, labels=labels, shuffle=False, force=True))
    before = _rows(table.with_name(name))
    shuffled = rewrite_file(job(table, name, seed=5, labels=labels, force=True))
    after = _rows(table.with_name(name))
    assert after != before
    assert sorted(map(str, after)) == sorted(map(str, before)), "the same rows, text and label together"
    assert plain.facts.rows == shuffled.facts.rows == ROWS


def _rows(path: Path) -> list[list[object]]:
    from tacit.text.files import cell_string, open_table

    with open_table(str(path)) as table:
        return [[cell_string(value) for value in values] for _, values in table.rows()]


def test_in_memory(table: Path):
    published = rewrite_file(replace(job(table), output=None))
    assert published.columns is not None
    assert published.columns["text"] != expected()
    assert sorted(map(str, published.columns["text"])) == sorted(expected())


def test_a_run_that_was_stopped_has_one_order(table: Path):
    rewrite_file(job(table, seed=3))
    whole = table.with_name("out.csv").read_bytes()

    def stop(texts: list[str], released: list[str] | None) -> None:
        if any('"20"' in text for text in texts):
            raise KeyboardInterrupt

    with pytest.raises(Exception, match="stopped"):
        rewrite_file(job(table, seed=3, force=True), on_block=stop)
    with pytest.raises(BadInputError, match="shuffled was True and is now False"):
        rewrite_file(job(table, seed=3, shuffle=False, resume=True))
    rewrite_file(job(table, seed=3, resume=True))
    assert table.with_name("out.csv").read_bytes() == whole


def test_stopped_while_rows_are_put_in_order(table: Path, monkeypatch: pytest.MonkeyPatch):
    rewrite_file(job(table, seed=3))
    whole = table.with_name("out.csv").read_bytes()

    def broken(*given: object) -> None:
        Path(str(given[1])).write_bytes(b"half of it")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("tacit.engines.outputs.shuffled_file", broken)
        with pytest.raises(Exception, match="stopped"):
            rewrite_file(job(table, seed=3, force=True))
    rewrite_file(job(table, seed=3, resume=True, force=True))
    assert table.with_name("out.csv").read_bytes() == whole
    assert not list(table.parent.glob("*.partial*"))


# The card -----------------------------------------------------------------------------------------------------------


def test_the_card_carries_both_promises(table: Path):
    jsonschema = pytest.importorskip("jsonschema")
    card = rewrite_file(job(table)).card
    assert (card.guarantee.epsilon, card.guarantee.model) == (3.0, Model.LOCAL)
    second = card.shuffled
    assert second is not None
    assert (second.notion, second.model, second.adjacency) == (Notion.APPROXIMATE, Model.CENTRAL, Adjacency.REPLACE_ONE)
    assert second.delta == automatic_delta(ROWS)
    assert second.epsilon == blanket_epsilon(TwoWeights(7, 100, *WEIGHTS), ROWS, second.delta) < 3.0
    assert second.parameters["rows"] == ROWS
    assert any("shuffled" in line for line in second.assumptions)
    assert not any("their order" in line for line in card.guarantee.not_covered)
    written = table.with_name("out.csv.card.json").read_text()
    jsonschema.validate(json.loads(written), json_schema())
    assert Card.from_json(written).shuffled == second
    for text in (card.to_text(), card.to_markdown(), card.to_html()):
        assert "second promise" in text


def test_other_laws_have_the_general_bound(table: Path):
    general = rewrite_file(job(table, mechanism=Marked(exact=False))).card.shuffled
    delta = automatic_delta(ROWS)
    assert general is not None
    assert general.epsilon == clones_epsilon(3.0, ROWS, delta)
    labeled = rewrite_file(job(table, labels=LabelRule(("a", "b"), 1.0, "topic"), force=True)).card.shuffled
    assert labeled is not None
    assert labeled.epsilon == clones_epsilon(4.0, ROWS, delta)
    both = rewrite_file(job(table, columns=("text", "who"), force=True)).card.shuffled
    assert both is not None
    assert both.epsilon == clones_epsilon(6.0, ROWS, delta)
    assert rewrite_file(job(table, seed=1, force=True)).card.shuffled is None, "a test seed promises nothing"


def test_what_would_still_show_the_order(table: Path):
    with pytest.raises(BadInputError, match="can tell which row is whose"):
        rewrite_file(job(table, keep=("topic",)))
    with pytest.raises(BadInputError, match="one row of each person"):
        rewrite_file(job(table, users=UserRule("who")))
    with pytest.raises(BadInputError, match="name a file"):
        rewrite_file(replace(job(table), output="-"))
    assert run(["rewrite", str(table), "--column", "text", "--shuffle", "--epsilon", "2", "-o", f"{table}.x.csv"]) != 0
    tokens = Marked()
    of_token = replace(tokens.guarantee(secure=True), unit=Unit.TOKEN)
    tokens.guarantee = lambda *, secure=None: of_token  # type: ignore[method-assign]
    with pytest.raises(NoGuaranteeError, match="pure local promise"):
        rewrite_file(job(table, mechanism=tokens))
    assert not table.with_name("out.csv").exists()


def test_an_audit_of_pairs_is_refused(table: Path):
    """Row i of a shuffled release was not made from row i of the original: attacks on pairs would find nothing."""
    rewrite_file(job(table))
    with pytest.raises(BadInputError) as raised:
        tacit.audit_text(str(table), str(table.with_name("out.csv")), attacks="entities")
    assert raised.value.code == "rows-were-shuffled"


def test_an_evaluation_of_pairs_is_refused(table: Path):
    rewrite_file(job(table))
    with pytest.raises(BadInputError) as raised:
        tacit.evaluate(str(table), str(table.with_name("out.csv")), metrics="kept-words")
    assert raised.value.code == "shuffled-release"
