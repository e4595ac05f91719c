"""A pool that was built from the private file is refused before anything is spent."""

from __future__ import annotations

from pathlib import Path

import pytest

import tacit
from tacit.errors import BadInputError, TacitWarning
from tacit.jobs import pool as pools
from tacit.jobs.private_pools import refuse_private_pools
from tacit.matching.pool import SentencePool, load_pool

TEXTS = [f"the parcel number {row} has not come to my house. My dog {row} is waiting for it." for row in range(50)]
ROWS = [
    {"message": text, "remark": f"call {row} people in the north today", "label": "a"} for row, text in enumerate(TEXTS)
]


def built(texts: list[str], folder: Path, **options: bool) -> SentencePool:
    return pools.build([texts], public="a name", output=folder / "pool.tacit", **options)


@pytest.mark.parametrize(
    ("texts", "options"),
    [
        (TEXTS, {}),
        ([text.upper().replace(".", "!") for text in TEXTS], {}),
        (TEXTS, {"split_sentences": True}),
        ([row["remark"] for row in ROWS], {}),
        (TEXTS[:10] + [f"a public sentence about the weather in {row} towns" for row in range(60)], {}),
    ],
)
def test_texts_of_any_column_are_recognized(tmp_path: Path, texts: list[str], options: dict[str, bool]) -> None:
    with pytest.raises(BadInputError) as raised:
        refuse_private_pools(ROWS, None, [built(texts, tmp_path, **options)])
    assert raised.value.code == "pool-of-private-rows"
    assert "parcel" not in f"{raised.value} {dict(raised.value.fields)}"


def test_a_public_pool_may_share_short_texts_and_a_few_long_ones(tmp_path: Path) -> None:
    public = [sentence for sentence in load_pool("general").sentences if len(sentence.split()) >= 8][:60]
    rows = [{"message": text} for text in ("thank you", public[0], *TEXTS)]
    (line,) = refuse_private_pools(rows, None, [built(["thank you", *public], tmp_path)])
    assert "was compared with them" in line
    assert refuse_private_pools(rows, None, [load_pool()]) == (), "pools that come with Tacit are not compared"


def test_the_card_says_which_pools_were_compared_with_the_rows(tmp_path: Path) -> None:
    built(load_pool("general").sentences[:2_000], tmp_path)
    with pytest.warns(TacitWarning, match="noise"):  # a label has no row
        made = tacit.synthesize(
            ROWS, column="message", label_column="label", labels=["a", "b"], epsilon=1, output=tmp_path / "out.csv",
            pools=[str(tmp_path / "pool.tacit")], rows=20,
        )  # fmt: skip
    assert any("compared" in line for line in made.guarantee.not_covered)


def test_nothing_is_written_or_spent(tmp_path: Path) -> None:
    built(TEXTS, tmp_path)
    with pytest.raises(BadInputError) as raised:
        tacit.synthesize(
            ROWS, column="message", label_column="label", labels=["a", "b"], epsilon=1, output=tmp_path / "out.csv",
            pools=["general", str(tmp_path / "pool.tacit")], ledger=str(tmp_path / "ledger.db"), dataset="rows",
        )  # fmt: skip
    assert raised.value.code == "pool-of-private-rows"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pool.tacit"]


def test_a_sketch_that_was_paid_for_is_named_before_a_corpus_that_can_be_replaced(tmp_path: Path) -> None:
    for name in ("out.csv", "out-sketch.tacit"):
        (tmp_path / name).write_text("")
    with pytest.raises(BadInputError) as raised:
        tacit.synthesize(
            ROWS, column="message", label_column="label", labels=["a"], epsilon=1, output=tmp_path / "out.csv"
        )
    assert raised.value.code == "sketch-exists"
