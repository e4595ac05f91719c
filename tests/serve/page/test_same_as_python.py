"""The small functions of the page that repeat a rule of the package say the same as the package."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tacit
from tacit.card import Card, odds, strength
from tacit.errors import NoGuaranteeError
from tests.conftest import small_table
from tests.serve.page.conftest import Opener, Service

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

QUICK = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def script(browser: Browser, service: Service) -> Iterator[Page]:
    """A page whose modules can be called."""
    page = browser.new_page()
    page.goto(service.address + "assets/mark.svg")
    yield page
    page.close()


def call(script: Page, module: str, expression: str, given: Any = None) -> Any:
    return script.evaluate(
        f"async (given) => {{ const m = await import('/assets/{module}'); return {expression}; }}", given
    )


def test_odds_and_strength_are_those_of_the_card(script: Page) -> None:
    exponents = [
        0.0,
        1e-4,
        0.009,
        0.5,
        1.0,
        math.log(3),
        1.2,
        3.99,
        4.0,
        4.01,
        6.9,
        7.5,
        9.99,
        10.1,
        19.9,
        25.0,
        4321.0,
    ]
    shown = call(script, "card.js", "given.map((x) => [m.odds(x), m.strength(x)])", exponents)
    for exponent, (factor, word) in zip(exponents, shown, strict=True):
        assert word == strength(exponent).sentence
        if exponent < 20:
            assert float(factor.replace(",", "")) == pytest.approx(float(odds(exponent).replace(",", "")), rel=1e-9)
        else:
            assert factor == odds(exponent)
    assert call(script, "card.js", "[m.odds(null), m.strength(null)]") == [odds(math.inf), strength(math.inf).sentence]


def test_c8_the_lines_of_the_card_are_those_of_the_package(script: Page) -> None:
    promised = tacit.SanTextPlus(vectors=small_table(), epsilon=2.0).guarantee()
    answer = {"guarantee": Card(promised).to_dict(), "document_guarantee": None, "units": [3]}
    shown = call(script, "card.js", "m.content(given)", answer)
    assert [tuple(line) for line in shown["numbers"]] == Card(promised).content().rows
    assert [total["what"] for total in shown["totals"]] == ["one word, typical distance", "one word, largest distance"]


def test_promises_add_up_on_the_page_exactly_where_they_compose(script: Page) -> None:
    table, other = small_table(), small_table(seed=1)
    promises = [
        tacit.SanText(vectors=table, epsilon=1.0).guarantee(),
        tacit.SanText(vectors=table, epsilon=2.0).guarantee(),
        tacit.SanText(vectors=other, epsilon=1.0).guarantee(),
        tacit.CusText(vectors=table, epsilon=1.0, set_size=4).guarantee(),
        tacit.CusText(vectors=table, epsilon=1.0, set_size=5).guarantee(),
        tacit.SanText(vectors=table, epsilon=1.0).guarantee().for_document(3),
        tacit.SanText(vectors=table, epsilon=1.0).guarantee().for_document(3).over_diameter(),
    ]
    kinds = call(script, "budget.js", "given.map(m.kind)", [promise.to_dict() for promise in promises])
    for (a, first), (b, second) in itertools.product(zip(kinds, promises, strict=True), repeat=2):
        try:
            together = first.then(second)
        except NoGuaranteeError:
            assert a != b
            continue
        assert a == b
        totals = call(
            script, "budget.js", "given.reduce((all, g) => m.added(all, g, 1), [])", [first.to_dict(), second.to_dict()]
        )
        assert totals[0]["epsilon"] == pytest.approx(together.epsilon)
        assert totals[0]["draws"] == 2


def test_every_stop_of_the_slider_is_a_new_round_number(script: Page) -> None:
    for low, high in [(0.1, 20.0), (0.5, 50.0), (10.0, 5000.0), (1.0, 1.05)]:
        values = call(script, "epsilon.js", "m.stops(...given)", [low, high])
        assert values == sorted(set(values))
        assert len(values) >= 2
        assert values[0] == pytest.approx(low)
        assert values[-1] == pytest.approx(high, rel=0.06)
    assert {1, 2, 4, 5, 8, 10} <= set(call(script, "epsilon.js", "m.stops(0.1, 100)"))


def test_a_calibrated_epsilon_is_never_rounded_up(script: Page) -> None:
    exact = [0.03822, 0.038226, 0.0382251, 19.99999, 0.99996, 1.0, 123456.0, 3e-9]
    for epsilon, rounded in zip(
        exact, call(script, "dom.js", "given.map((x) => m.roundedDown(x))", exact), strict=True
    ):
        assert rounded <= epsilon
        assert rounded == pytest.approx(epsilon, rel=1.1e-3)


tokens = st.lists(
    st.sampled_from(["a", "it", "'s", "don", "n't", ",", ".", "...", "(", "$", "u.s.", "élan", "x-y"]), max_size=12
)


@given(tokens)
@QUICK
def test_the_marked_text_reads_like_the_released_one(script: Page, given: list[str]) -> None:
    from tacit.text.tokens import join

    text = join(given)
    gaps = call(
        script, "words.js", "m.gaps(given.text, given.pieces)", {"text": text, "pieces": [["x", t] for t in given]}
    )
    assert "".join(gap + token for gap, token in zip(gaps, given, strict=True)) == text


names = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=8), min_size=2, max_size=5)


@given(names)
@QUICK
def test_columns_are_read_from_a_csv_header(script: Page, given: list[str]) -> None:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerow(given)
    answer = call(script, "columns.js", "m.headerColumns(given, ',')", written.getvalue() + "1,2\n")
    assert answer == given


def columns(script: Page, name: str, data: bytes) -> list[str] | None:
    given = {"name": name, "bytes": list(data)}
    answer: list[str] | None = call(
        script, "columns.js", "await m.columnsOf(new File([new Uint8Array(given.bytes)], given.name))", given
    )
    return answer


def test_columns_are_read_from_every_format(script: Page) -> None:
    table = b"id\ttext\n1\thello\n"
    assert columns(script, "a.tsv", table) == ["id", "text"]
    assert columns(script, "a.TSV.gz", gzip.compress(table)) == ["id", "text"]
    assert columns(script, "a.csv", b'\xef\xbb\xbfid,"the ""text"""\r\n1,x\r\n') == ["id", 'the "text"']
    assert columns(script, "a.jsonl", b'\n{"id": 1, "text": "x", "more": {"a": 1}}\n{"no": 1}') == [
        "id",
        "text",
        "more",
    ]
    assert columns(script, "a.txt", b"hello\n") == []
    # What cannot be read is asked for instead of guessed.
    assert columns(script, "a.jsonl", b"no json\n") is None
    assert columns(script, "a.parquet", b"PAR1 not really") is None
    assert columns(script, "a.csv.gz", b"not gzip") is None
    assert columns(script, "a.docx", b"") is None


def test_columns_are_read_from_a_parquet_footer(script: Page) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = arrow.table(
        {
            "id": [1],
            "nested": [{"a": {"b": 1}, "c": ["x"]}],
            "tags": [["x", "y"]],
            "text": ["hello"],
            **{f"column {number}": [number] for number in range(30)},
        }
    )
    written = io.BytesIO()
    parquet.write_table(rows, written)
    assert columns(script, "a.parquet", written.getvalue()) == rows.column_names


def test_server_sent_events_are_read(script: Page) -> None:
    answer = call(
        script, "api.js", "given.map(m.parseEvent)", ['event: done\ndata: {"a": 1}', ": still there", "data: 2"]
    )
    assert answer == [{"name": "done", "data": {"a": 1}}, None, {"name": "message", "data": 2}]


def test_options_are_read_as_json_where_they_are(open_page: Opener, script: Page) -> None:
    assert call(script, "settings.js", "given.map(m.parsed)", ["0.3", "true", "", "hash"]) == [0.3, True, None, "hash"]


def test_c4_white_space_alone_is_shown_as_json(script: Page) -> None:
    shown = call(script, "settings.js", "given.map(m.shownAs)", ["\n", "", None, "a\nb", 0.7, "hash"])
    assert shown == ['"\\n"', "", "", "a\nb", "0.7", "hash"]
    assert call(script, "settings.js", "m.parsed(m.shownAs('\\n'))") == "\n"
