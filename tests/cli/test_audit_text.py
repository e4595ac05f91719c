"""`tacit audit text`, end to end: real files, the card beside them, and everything that can be wrong with them."""

from __future__ import annotations

import csv
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tacit.cli.audit.text import command
from tacit.cli.main import run as tacit
from tacit.errors import BadInputError, BadParameterError, TacitError
from tacit.noise.source import public_generator
from tests.cli.sentences import refused

SENTENCE = (
    "the film was good but a long evening with old friends in london would be better than this bad movie and nobody "
    "here asked for more of it"
)
WORDS = SENTENCE.split()
FAST = ("--encoder", "none", "-q")


def audit(*arguments: object, code: int = 0) -> str:
    called = CliRunner().invoke(command, [str(argument) for argument in arguments], catch_exceptions=False)
    assert called.exit_code == code, called.output
    return called.stdout


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    """Six authors with words of their own, in 48 rows."""
    generator = public_generator(11)
    results = []
    for i in range(48):
        author = i % 6
        own = WORDS[5 * author : 5 * author + 5]
        words = [*generator.choice(own, size=6), *generator.choice(WORDS, size=4), "Paris", str(generator.integers(99))]
        label = "young" if author < 3 else "old"
        results.append({"id": str(i), "text": " ".join(words), "author": f"a{author}", "age": label})
    return results


@pytest.fixture(scope="module")
def files(rows: list[dict[str, str]], tmp_path_factory: pytest.TempPathFactory, default_table) -> tuple[Path, Path]:
    """The original and a release of it with its card, made by the command itself."""
    folder = tmp_path_factory.mktemp("audit")
    original, private = folder / "original.csv", folder / "private.csv"
    write(original, rows)
    options = ["-c", "text", "-k", "id", "-e", "6", "-m", "santext", "--option", "limit=1500", "-q"]
    made = tacit(["rewrite", str(original), *options, "-o", str(private)])
    assert made == 0
    return original, private


def write(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def findings(report: dict) -> dict[str, dict]:
    return {finding["name"]: finding for section in report["sections"] for finding in section["findings"]}


COLUMNS = ("--author-column", "author", "--attribute-column", "age")
WITHOUT_MODEL = ("--attacks", "inversion,authorship,attributes,entities,linkage")


def test_everything_from_the_card(files: tuple[Path, Path]):
    report = json.loads(audit(*files, "--key-column", "id", *COLUMNS, *WITHOUT_MODEL, *FAST, "--json"))
    assert report["facts"]["mechanism"] == "santext"
    assert report["facts"]["epsilon"] == 6.0
    assert report["facts"]["mechanism known from"] == "the privacy card"
    assert "odds" in report["facts"]["promise on the card"]
    by_name = findings(report)
    assert not by_name["does the release fit the claimed mechanism"]["refuted"]
    assert {"words recovered", "author named (static attacker)", "age inferred (adaptive attacker)"} <= set(by_name)
    assert {"entities that survive (patterns)", "released texts linked to their originals"} <= set(by_name)
    for finding in by_name.values():
        numbers = finding["numbers"]
        if "rate" in numbers:
            assert 0 <= numbers["low"] <= numbers["rate"] <= numbers["high"] <= 1
    assert report["private"]


def test_page_and_json_file_and_nothing_overwritten(files: tuple[Path, Path], tmp_path: Path):
    pytest.importorskip("matplotlib")
    page, numbers = tmp_path / "audit.html", tmp_path / "audit.json"
    shown = audit(*files, "--attacks", "entities,linkage", *FAST, "--html", page, "--json-file", numbers)
    assert "entities that survive" in shown
    written = page.read_text(encoding="utf-8")
    assert "<svg" in written
    assert "quotes the original text" in written
    assert json.loads(numbers.read_text(encoding="utf-8"))["facts"]["rows"] == 48
    before = page.read_bytes()
    with refused(BadInputError, match="--force"):
        audit(*files, "--attacks", "linkage", *FAST, "--html", page)
    assert page.read_bytes() == before
    audit(*files, "--attacks", "linkage", *FAST, "--html", page, "--force")
    assert page.read_bytes() != before
    with refused(BadParameterError, match="page"):
        audit(*files, "--html", tmp_path / "audit2.json")


def test_a_card_that_claims_too_much_is_refuted(files: tuple[Path, Path], tmp_path: Path):
    original, private = files
    copy = tmp_path / "copy.csv"
    copy.write_bytes(private.read_bytes())
    card = card_of(private)
    card["release"]["configuration"]["epsilon"] = 0.5
    Path(f"{copy}.card.json").write_text(json.dumps(card), encoding="utf-8")
    report = json.loads(audit(original, copy, "--attacks", "inversion", *FAST, "--json", code=3))
    assert report["refuted"]
    report = json.loads(audit(original, copy, "--attacks", "inversion", "-e", "6", *FAST, "--json"))
    assert not report["refuted"]


def test_the_command_quoted_on_the_card_decides_nothing(files: tuple[Path, Path], tmp_path: Path):
    original, private = files
    copy = tmp_path / "copy.csv"
    copy.write_bytes(private.read_bytes())
    card = card_of(private)
    card["release"]["command"] = "x"
    Path(f"{copy}.card.json").write_text(json.dumps(card), encoding="utf-8")
    report = json.loads(audit(original, copy, "--attacks", "inversion", *FAST, "--json"))
    assert (report["facts"]["mechanism"], report["facts"]["epsilon"]) == ("santext", 6.0)
    assert report["facts"]["mechanism known from"] == "the privacy card"


def test_a_card_of_version_1_says_what_is_needed(files: tuple[Path, Path], tmp_path: Path):
    original, private = files
    copy = tmp_path / "copy.csv"
    copy.write_bytes(private.read_bytes())
    card = card_of(private)
    card["card_version"] = 1
    del card["release"]["configuration"]
    Path(f"{copy}.card.json").write_text(json.dumps(card), encoding="utf-8")
    with refused(BadInputError, match="--mechanism NAME"):
        audit(original, copy, "--attacks", "inversion", *FAST)
    options = ("-m", "santext", "-e", "6", "--option", "limit=1500")
    report = json.loads(audit(original, copy, "--attacks", "inversion", *options, *FAST, "--json"))
    assert (report["facts"]["mechanism"], report["facts"]["mechanism known from"]) == ("santext", "the command line")
    assert "odds" in report["facts"]["promise on the card"]


def card_of(private: Path) -> dict:
    card: dict = json.loads(Path(f"{private}.card.json").read_text(encoding="utf-8"))
    return card


def test_without_a_card_the_user_says_what_made_it(files: tuple[Path, Path], tmp_path: Path):
    original, private = files
    copy = tmp_path / "copy.csv"
    copy.write_bytes(private.read_bytes())
    options = ("-m", "santext", "-e", "6", "--option", "limit=1500")
    report = json.loads(audit(original, copy, "--attacks", "inversion", *options, *FAST, "--json"))
    assert report["facts"]["mechanism known from"] == "the command line"
    with refused(BadParameterError, match="--mechanism"):
        audit(original, copy, "--attacks", "inversion", *FAST)
    with refused(BadParameterError, match="which mechanism"):
        audit(original, copy, "--attacks", "inversion", "-e", "6", *FAST)
    with refused(BadInputError, match="did not make this file"):
        audit(original, copy, "--attacks", "inversion", "-m", "santext", "-e", "6", "--option", "limit=100", *FAST)


def test_other_vectors_than_those_of_the_card_are_refused(files: tuple[Path, Path]):
    with refused(BadInputError, match="fingerprints"):
        audit(*files, "--attacks", "inversion", "--option", "limit=1400", *FAST)


def test_all_says_what_was_not_run(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch):
    from tacit.auditing.text import plan

    monkeypatch.setattr(plan, "_mask", lambda run: run.skip("mask", "no language model is installed"))
    report = json.loads(audit(*files, *FAST, "--json"))
    last = report["sections"][-1]
    assert last["title"] == "Not run"
    for attack in ("mask", "authorship", "attributes"):
        assert f"{attack}: " in last["text"]


def test_rows_that_do_not_align(files: tuple[Path, Path], rows: list[dict[str, str]], tmp_path: Path):
    original, _ = files
    short = write(tmp_path / "short.csv", [{"id": row["id"], "text": row["text"]} for row in rows[:-3]])
    with refused(BadInputError, match="row 46 of the original"):
        audit(original, short, *FAST)
    turned = [{"id": row["id"], "text": row["text"]} for row in rows]
    turned[6], turned[7] = turned[7], turned[6]
    other = write(tmp_path / "turned.csv", turned)
    with refused(BadInputError, match="'id' differs in row 7"):
        audit(original, other, "--key-column", "id", *FAST)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({5: {"author": " "}}, "row 6 has no label in the column 'author'"),
        ({5: {"author": "alone"}}, "author of row 6 has one text only"),
        ({key: {"author": "same"} for key in range(48)}, "one value only"),
    ],
)
def test_bad_labels(files: tuple[Path, Path], rows, tmp_path: Path, change: dict, message: str):
    wrong = [{**row, **change.get(i, {})} for i, row in enumerate(rows)]
    path = write(tmp_path / "wrong.csv", wrong)
    page = tmp_path / "audit.html"
    with refused(BadInputError, match=message):
        audit(path, files[1], "--author-column", "author", "--attacks", "authorship", *FAST, "--html", page)
    assert not page.exists()


def test_bad_parameters(files: tuple[Path, Path], tmp_path: Path):
    for wrong, message in (
        (("--attacks", "magic"), "inversion, mask"),
        (("--attacks", "authorship"), "--author-column"),
        (("--sample", "3"), "at least 10"),
        (("--attacks", "inversion", "--option", "limit"), "name=value"),
        (("--json-file", tmp_path / "a.html"), ".json"),
        (("--column", "txt"), "did you mean"),
        (("--author-column", "autor"), "did you mean"),
    ):
        with refused(TacitError, match=message):
            audit(*files, *wrong, *FAST)


def test_known_spans_and_other_formats(tmp_path: Path):
    original, private = tmp_path / "o.jsonl", tmp_path / "p.txt"
    people = ("Ann Lee", "Bob Ray", "Cleo Fox")
    spans = [[{"type": "PERSON", "value": name, "start": 4, "end": 11}] for name in people]
    lines = [{"text": f"was {name} here", "spans": each} for name, each in zip(people, spans, strict=True)]
    original.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    private.write_text("is ann lee there\nis someone there\nnobody\n", encoding="utf-8")
    report = json.loads(audit(original, private, "--spans-column", "spans", "--attacks", "entities", *FAST, "--json"))
    known = findings(report)["entities that survive (known spans)"]["numbers"]
    assert known["rate"] == pytest.approx(1 / 3)
    assert known["cases"] == 3
    lines[1]["spans"] = [{"kind": "PERSON"}]
    original.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    with refused(BadInputError, match="row 2, column 'spans'"):
        audit(original, private, "--spans-column", "spans", "--attacks", "entities", *FAST)


def test_the_program_itself_exits_with_2(files: tuple[Path, Path], tmp_path: Path):
    command = [sys.executable, "-m", "tacit.cli.main", "audit", "text", str(files[0]), str(tmp_path / "missing.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: there is no file")


def test_b8_and_c5_reports_are_for_their_owner_and_an_audit_can_fail(files, tmp_path):
    """A release with epsilon 6 is linked to its originals at once: red."""
    original, private = files
    page, data = tmp_path / "page.html", tmp_path / "data.json"
    before = os.umask(0o022)
    try:
        common = ("--attacks", "linkage", *FAST)
        called = CliRunner().invoke(
            command, [*map(str, (original, private, *common, "--html", page, "--json-file", data, "--fail-on", "bad"))]
        )
    finally:
        os.umask(before)
    assert called.exit_code == 3
    assert "FAILED (--fail-on bad)" in called.output
    assert "readable by you only" in called.output
    assert [stat.S_IMODE(path.stat().st_mode) for path in (page, data)] == [0o600, 0o600]
    audit(original, private, *common)
