"""Pools: public sentences with their licenses, built as a stream."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from tacit.cli.main import run as run_command
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import ProvenanceKind
from tacit.jobs.pool import PoolConfig, build, run
from tacit.jobs.registry import config_from
from tacit.matching import pool_encyclopedia
from tacit.matching.pool import (
    Cleaning,
    PoolSource,
    attribution_of,
    bundled_pools,
    distinct,
    load_pool,
    read_pool,
    words_key,
    write_pool,
)
from tacit.matching.pool_default import SOURCE, counted_vocabulary
from tacit.matching.words import load_vocabulary
from tacit.text.sentence_packages import REPEATED_NAMES


def test_the_general_pool_comes_with_credits() -> None:
    pool = load_pool()
    assert bundled_pools() == ["encyclopedia", "general", "requests"]
    assert len(pool) == 123_155
    assert len({words_key(sentence) for sentence in pool.sentences}) == len(pool)
    assert not any(REPEATED_NAMES.search(sentence) for sentence in pool.sentences)
    assert pool.sources == (SOURCE,)
    numbers = [credit.partition(" ")[0] for credit in pool.credits]
    assert all(number.isdigit() for number in numbers)
    assert all(credit.partition(" ")[2] for credit in pool.credits[:1_000])


def test_the_encyclopedia_comes_with_licenses_and_credits() -> None:
    pool = load_pool("encyclopedia")
    assert len({words_key(sentence) for sentence in pool.sentences}) == len(pool) > 150_000
    assert pool.sources == pool_encyclopedia.SOURCES
    assert set(pool.source_ids.tolist()) == set(range(len(pool.sources)))
    assert all(source.license for source in pool.sources)
    assert all(credit for credit, number in zip(pool.credits, pool.source_ids, strict=True) if number in (0, 1))
    lengths = [len(sentence.split()) for sentence in pool.sentences]
    assert pool_encyclopedia.SHORTEST <= min(lengths) <= max(lengths) <= pool_encyclopedia.MOST_WORDS


def test_the_vocabulary_is_counted_on_the_general_pool() -> None:
    vocabulary = load_vocabulary()
    counts = dict(counted_vocabulary(load_pool().sentences))
    assert vocabulary.words == list(counts)
    assert vocabulary.weights[vocabulary.places["the"]] < vocabulary.weights[vocabulary.places["volcano"]]


def test_same_words_are_the_same_sentence_whatever_their_dress() -> None:
    lines = ["A café, please!", "a CAFE please", "“A cafe please?”", "A coffee, please!", "please a cafe"]
    assert [line for line, _ in distinct((line, "") for line in lines)] == [lines[0], lines[3], lines[4]]


def test_cleaning_splits_and_bounds() -> None:
    text = "It is late.  We go\nhome! " + "x" * 400 + ". Ok."
    assert (
        list(Cleaning(split=True, shortest=2).sentences(text)) == ["It is late.", "We go home! " + "x" * 400 + "."][:1]
    )
    assert list(Cleaning(longest=5).sentences("short")) == ["short"]
    assert list(Cleaning(longest=5).sentences("longer")) == []
    assert list(Cleaning().sentences("  ")) == []
    assert list(Cleaning().sentences("a \ud800 b")) == ["a ? b"]


def test_a_pool_of_files_is_built_from_a_stream(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("Hello there.\nhello, there\nAnother line\n\n")
    (tmp_path / "two.csv").write_text("text,id\nA third one,1\nAnother LINE!,2\n")
    with gzip.open(tmp_path / "three.jsonl.gz", "wt") as file:
        file.write('{"text": "Fourth: ünï"}\n{"text": null}\n')
    built = run(
        PoolConfig(
            public_files=tuple(str(tmp_path / name) for name in ("one.txt", "two.csv", "three.jsonl.gz")),
            public="three files", license="CC0", output=tmp_path / "p.tacit",
        )
    )  # fmt: skip
    pool = load_pool(tmp_path / "p.tacit")
    assert list(pool.sentences) == ["Hello there.", "Another line", "A third one", "Fourth: ünï"]
    assert (built.sentences, built.rows, built.digest) == (4, 8, pool.digest)
    assert pool.provenance()[0].kind is ProvenanceKind.DECLARED_PUBLIC
    assert pool.source_of(2) == PoolSource("three files", "CC0", declared=True)
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".tacit") == ["p.tacit"]
    with pytest.raises(BadInputError, match="exists"):
        run(PoolConfig(public_files=(str(tmp_path / "one.txt"),), public="x", output=tmp_path / "p.tacit"))


def test_parquet_and_memory_are_read(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    parquet.write_table(pyarrow.table({"text": ["from parquet", None]}), tmp_path / "rows.parquet")
    pool = build([str(tmp_path / "rows.parquet"), ["in memory"]], public="both", output=tmp_path / "p.tacit")
    assert list(pool.sentences) == ["from parquet", "in memory"]


def test_text_that_is_not_declared_public_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadParameterError, match="never build a pool from the texts"):
        PoolConfig(public_files=("a.txt",))
    (tmp_path / "empty.csv").write_text('text\n""\n')
    with pytest.raises(BadInputError, match="no sentence is left"):
        build([str(tmp_path / "empty.csv")], public="x", output=tmp_path / "p.tacit")
    assert not (tmp_path / "p.tacit").exists()


def test_changed_and_foreign_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.tacit"
    write_pool(path, "mine", [PoolSource("a", "b")], [("first", 0, "x"), ("second", 0, "y")])
    first = path.read_bytes()
    write_pool(path, "mine", [PoolSource("a", "b")], [("first", 0, "x"), ("second", 0, "y")])
    assert path.read_bytes() == first, "equal pools are equal files"
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    for name, data, words in (
        ("sentences.txt", b"first\nother\n", "was changed"),
        ("credits.txt", b"0\tx\n0\tz\n", "was changed"),
        ("sentences.txt", b"first\n", "no pool"),
        ("pool.json", json.dumps({**json.loads(files["pool.json"]), "version": 9}).encode(), "another version"),
    ):
        with zipfile.ZipFile(path, "w") as archive:
            for other, content in {**files, name: data}.items():
                archive.writestr(other, content)
        with pytest.raises(BadInputError, match=words):
            read_pool(path)
    path.write_bytes(b"no zip")
    with pytest.raises(BadInputError, match="no pool"):
        read_pool(path)
    with pytest.raises(BadInputError, match="general"):
        load_pool("nowhere")


def test_licenses_travel_with_the_sentences(tmp_path: Path) -> None:
    mine = build([["one line", "two lines"]], public="my lines", license="CC BY 4.0", output=tmp_path / "p.tacit")
    general = load_pool()
    text = attribution_of([(general, 5), (mine, 0), (general, 5), (general, 9)])
    assert text.count(general.credits[5]) == 1
    assert general.credits[9] in text
    assert "CC BY 2.0 FR" in text
    assert "my lines\nLicense: CC BY 4.0" in text
    assert general.credits[7] not in general.attribution([5])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("Hello there. How are you?\n")
    assert (
        run_command(
            ["pool", "build", "a.txt", "--public", "mine", "--license", "CC0", "--split-sentences", "-o", "p.tacit"]
        )
        == 0
    )
    assert "2 sentences of 1 rows" in capsys.readouterr().err
    assert run_command(["pool", "show", "p.tacit"]) == 0
    assert "How are you?" in capsys.readouterr().out
    assert run_command(["pool", "show", "p.tacit", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sentences"] == 2
    assert run_command(["pool", "list"]) == 0
    assert "general" in capsys.readouterr().out
    assert run_command(["pool", "build", "a.txt"]) == 2
    assert "--public NAME" in capsys.readouterr().err
    values = {"job": "pool", "public_files": ["a.txt"], "public": "mine", "output": "q.tacit"}
    assert config_from(values).to_toml().startswith('job = "pool"')
