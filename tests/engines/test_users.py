"""Group privacy: the rows of one user share one budget."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from tacit.documents.base import DocumentMechanism
from tacit.engines.job import RewriteJob, check_delta
from tacit.engines.local import rewrite_file
from tacit.engines.users import UserRule
from tacit.errors import BadInputError, BadParameterError, NoGuaranteeError
from tacit.guarantee import Guarantee, Notion, Unit
from tacit.mechanism import Mechanism
from tacit.noise.source import Source
from tests.engines.fakes import NoiseShown


@dataclass(kw_only=True, eq=False)
class Counted(DocumentMechanism):
    """Releases how many characters a document has: no mechanism at all, but it shows what reached it."""

    delta: float = 0.0

    name: ClassVar[str] = "counted"
    title: ClassVar[str] = "Counted"
    paper: ClassVar[str] = "none"
    notion: ClassVar[str] = "pure"
    block_characters: ClassVar[int] = 20

    def prepare(self) -> None:
        return

    def rewrite_batch(self, texts: Sequence[str], source: Source) -> list[str]:
        return [str(len(text)) for text in texts]

    def promise(self) -> Guarantee:
        return self._promise(Notion.APPROXIMATE if self.delta else Notion.PURE, self.epsilon, delta=self.delta)


Mechanism.registry.pop(Counted.name, None)  # not for the catalog


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("who,text,stars\na,one,1\na,three,2\nb,seven,3\na,nine9,4\nc,,5\n")
    return path


def job(path, users, **more):
    defaults = {"mechanism": Counted(epsilon=1.0), "columns": ("text",), "output": str(path.with_name("out.csv"))}
    return RewriteJob(input=str(path), users=users, **{**defaults, **more})


def written(path):
    with path.with_name("out.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_divide_keeps_the_first_rows_of_each_user(table):
    rule = UserRule("who", "divide", 2)
    facts = rewrite_file(job(table, rule, keep=("stars",))).facts
    assert [row["stars"] for row in written(table)] == ["1", "2", "3", "5"]
    assert rule.left_out == 1
    assert facts.rows == 4
    assert facts.dropped_columns == 1


def test_white_space_makes_no_second_user(table):
    table.write_text("who,text\na,one\n a,two\na\t,three\nb,four\n")
    rule = UserRule("who", "divide", 1)
    assert rewrite_file(job(table, rule)).facts.rows == 2
    assert rule.left_out == 2
    assert rewrite_file(job(table, UserRule("who", "concatenate"), force=True)).facts.rows == 2
    table.write_text("who,text\n  ,one\n")
    with pytest.raises(BadInputError, match="row 1 has no value in 'who'"):
        rewrite_file(job(table, rule, force=True))


def test_the_user_column_can_be_kept(table):
    rewrite_file(job(table, UserRule("who", "divide", 1), keep=("who",)))
    assert [row["who"] for row in written(table)] == ["a", "b", "c"]


def test_concatenate_makes_one_document_of_each_user(table):
    table.write_text("who,text\na,one\na,three\nb,seven\nc,\n")
    rewrite_file(job(table, UserRule("who", "concatenate")))
    assert [row["text"] for row in written(table)] == [str(len("one\nthree")), "5", "0"]


def test_concatenate_refuses_rows_that_are_not_together(table):
    with pytest.raises(BadInputError, match="row 4 belongs to a user whose rows ended earlier: sort the file"):
        rewrite_file(job(table, UserRule("who", "concatenate")))
    assert not table.with_name("out.csv").exists()
    with pytest.raises(BadInputError, match="keep does not go with"):
        rewrite_file(job(table, UserRule("who", "concatenate"), keep=("stars",), force=True))


def test_the_promise_is_made_to_the_user():
    document = Counted(epsilon=0.5).guarantee()
    divided = UserRule("who", "divide", 4).promise(document)
    assert divided.unit is Unit.USER
    assert divided.epsilon == 2.0
    assert any("at most 4 rows" in item for item in divided.not_covered)
    assert UserRule("who", "concatenate").promise(document).epsilon == 0.5
    assert UserRule("who", "divide", 4).epsilon_of_document(2.0) == 0.5
    assert UserRule("who", "concatenate").epsilon_of_document(2.0) == 2.0


def test_the_word_level_has_no_budget_per_user(table):
    with pytest.raises(NoGuaranteeError, match="whole documents"):
        rewrite_file(job(table, UserRule("who"), mechanism=NoiseShown()))


def test_bad_rules_and_columns(table):
    with pytest.raises(BadParameterError, match="divide, concatenate"):
        UserRule("who", "merge")
    with pytest.raises(BadParameterError, match="at least 1"):
        UserRule("who", "divide", 0)
    with pytest.raises(BadInputError, match="did you mean"):
        rewrite_file(job(table, UserRule("whoo")))
    with pytest.raises(BadInputError, match="cannot be rewritten and say who"):
        rewrite_file(job(table, UserRule("text")))
    table.write_text("who,text\n,one\n")
    with pytest.raises(BadInputError, match="row 1 has no value in 'who'"):
        rewrite_file(job(table, UserRule("who")))


def test_a_delta_that_is_too_large_for_the_file_is_refused(table):
    with pytest.raises(BadParameterError, match="choose it well below 1/rows"):
        rewrite_file(job(table, None, mechanism=Counted(epsilon=1.0, delta=0.25)))
    assert [file.name for file in table.parent.iterdir()] == ["in.csv"], "no released row is left behind"
    rewrite_file(job(table, UserRule("who"), mechanism=Counted(epsilon=1.0, delta=0.25)))
    assert len(written(table)) == 3, "rows that are left out do not count"
    check_delta(1e-6, 1000)


def test_a_delta_that_is_too_large_is_found_before_the_first_of_many_blocks(table):
    table.write_text("text\n" + "a text of some length\n" * 6)
    seen: list[str] = []
    with pytest.raises(BadParameterError, match="choose it well below 1/rows"):
        rewrite_file(
            job(table, None, mechanism=Counted(epsilon=1.0, delta=0.25)), on_block=lambda texts, _: seen.extend(texts)
        )
    assert not seen
    assert [file.name for file in table.parent.iterdir()] == ["in.csv"]


def test_a_delta_that_is_too_large_for_a_pipe_leaves_nothing_to_resume(table, monkeypatch, capsys):
    lines = b"text\n" + b"a text of some length\n" * 6  # one block each, so rows are released before the last is seen
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines)))
    piped = job(table, None, mechanism=Counted(epsilon=1.0, delta=0.25))
    with pytest.raises(BadParameterError, match="choose it well below 1/rows") as refused:
        rewrite_file(replace(piped, input="-", input_format="csv"))
    assert not getattr(refused.value, "__notes__", ()), "nothing is there to go on with"
    assert [file.name for file in table.parent.iterdir()] == ["in.csv"]


def test_document_rows_hide_which_texts_are_empty(table):
    rewrite_file(job(table, None))
    assert [row["text"] for row in written(table)][-1] == "0", "an empty text reaches the mechanism like any other"


@pytest.mark.parametrize("kind", ["int64", "double", "timestamp[s]"])
def test_users_of_a_typed_column_are_told_apart_by_their_values(table, kind):
    """Not by where a value lies in its file: each row would be a user of its own."""
    arrow = pytest.importorskip("pyarrow")
    path = table.with_name("in.parquet")
    who = arrow.array([1, 1, 1, 2], arrow.int64()).cast({"double": arrow.float64()}.get(kind, arrow.int64()))
    if kind.startswith("timestamp"):
        who = who.cast(arrow.timestamp("s"))
    pytest.importorskip("pyarrow.parquet").write_table(arrow.table({"who": who, "text": list("abcd")}), path)
    rule = UserRule("who", "divide", 1)
    assert rewrite_file(job(path, rule)).facts.rows == 2
    assert rule.left_out == 2
    assert rewrite_file(job(path, UserRule("who", "concatenate"), force=True)).facts.rows == 2


def test_a_row_of_a_jsonl_file_without_its_user_is_refused(table):
    path = table.with_name("in.jsonl")
    path.write_text('{"who": 1, "text": "a"}\n{"text": "b"}\n')
    with pytest.raises(BadInputError, match="row 2 has no value in 'who'"):
        rewrite_file(job(path, UserRule("who")))


@pytest.mark.parametrize("documents", [1, 2])
def test_numbers_of_users_in_a_parquet_file_are_users(tmp_path, documents):
    """Each row of a parquet file was a user of its own unless the column held strings: nobody's rows were left out."""
    arrow = pytest.importorskip("pyarrow")
    store = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "in.parquet"
    store.write_table(arrow.table({"who": [7, 7, 8, 7], "text": ["a", "bb", "c", "dd"]}), path)
    rule = UserRule("who", "divide", documents)
    rewrite_file(job(path, rule))
    assert [row["text"] for row in written(path)] == {1: ["1", "1"], 2: ["1", "2", "1"]}[documents]
    with pytest.raises(BadInputError, match="sort the file"):
        rewrite_file(job(path, UserRule("who", "concatenate"), force=True))
