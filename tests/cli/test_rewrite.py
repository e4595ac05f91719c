"""`tacit rewrite` end to end: real files, a real mechanism, small vectors."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tacit.card import Card, json_schema
from tacit.cli.bars import rewriting_line
from tacit.cli.generated import with_numbers
from tacit.cli.main import run
from tacit.cli.rewrite import shown_command
from tacit.cli.terminal import readable_bytes, readable_seconds, side_by_side
from tacit.engines.job import RewriteProgress
from tacit.engines.resume import resume_path
from tacit.errors import TacitError
from tacit.jobs.rewrite import RewriteConfig
from tacit.jobs.rewrite_config import shown_options
from tacit.text.digest import file_digest
from tacit.text.files import open_table
from tacit.text.tokens import split

ROOT = Path(__file__).parent.parent.parent
SECRET = "zanzibar"
WORDS = [
    "the",
    "a",
    "movie",
    "film",
    "plot",
    "actor",
    "was",
    "is",
    "and",
    "good",
    "bad",
    "great",
    "boring",
    ".",
    ",",
    "!",
]
TEXTS = [f"The movie was good, and the {SECRET} plot is great!", "", "A boring film ."]

Tacit = Callable[..., tuple[int, str, str]]
"""Runs a command; its exit code, standard output and standard error."""


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("vectors") / "small.txt"
    rng = np.random.default_rng(0)
    lines = (" ".join([word, *(f"{x:.4f}" for x in rng.standard_normal(8))]) for word in WORDS)
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture
def tacit(vectors: str, capfd: pytest.CaptureFixture[str]) -> Tacit:
    """Runs `tacit rewrite` and returns (exit code, standard output, standard error)."""

    def call(*arguments: str | Path, epsilon: str = "2") -> tuple[int, str, str]:
        code = run(["rewrite", "--vectors", vectors, "--epsilon", epsilon, *map(str, arguments)])
        sys.stdout.flush()
        out, err = capfd.readouterr()
        return code, out, err

    return call


def save(path: Path, texts: list[str] = TEXTS) -> Path:
    """The texts in the format that the suffix says, with an id and a label."""
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    rows = [(number, text, "yes" if number % 2 else "no") for number, text in enumerate(texts)]
    if kind == "parquet":
        pa = pytest.importorskip("pyarrow")
        import pyarrow.parquet as pq

        ids, column, labels = zip(*rows, strict=True)
        pq.write_table(pa.table({"id": ids, "text": column, "label": labels}), path)
        return path
    if kind == "txt":
        data = "".join(f"{text}\n" for text in texts)
    elif kind == "jsonl":
        data = "".join(json.dumps({"id": a, "text": b, "label": c}) + "\n" for a, b, c in rows)
    else:
        mark = "," if kind == "csv" else "\t"
        data = mark.join(["id", "text", "label"]) + "\n"
        data += "".join(f'{a}{mark}"{b}"{mark}{c}\n' for a, b, c in rows)
    path.write_bytes(gzip.compress(data.encode()) if path.suffix == ".gz" else data.encode())
    return path


def read(path: Path, *columns: str) -> list[list[object]]:
    with open_table(path, columns=columns) as table:
        return [values for _, values in table.rows()]


# Every format -----------------------------------------------------------------------------------------------

FORMATS = ["txt", "txt.gz", "csv", "csv.gz", "tsv", "tsv.gz", "jsonl", "jsonl.gz", "parquet"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format(tacit: Tacit, tmp_path: Path, suffix: str) -> None:
    source, output = save(tmp_path / f"in.{suffix}"), tmp_path / f"out.{suffix}"
    keep = () if suffix.startswith("txt") else ("--keep", "label")
    code, out, err = tacit(source, "-o", output, *keep)
    assert (code, out) == (0, ""), err
    rewritten = [values[0] for values in read(output, "text")]
    assert len(rewritten) == 3
    assert rewritten[1] == ""
    for before, after in zip(TEXTS, rewritten, strict=True):
        assert set(split(after)) <= set(WORDS)
        assert len(after.split()) <= len(split(before))
    if keep:
        with open_table(output) as table:
            assert table.columns == ("text", "label")
        assert [values[0] for values in read(output, "label")] == ["no", "yes", "no"]
    assert "3 rows, 16 tokens" in err
    assert "odds" in err
    assert sorted(path.name for path in tmp_path.glob("out*")) == [
        f"out.{suffix}", f"out.{suffix}.card.json", f"out.{suffix}.card.md",
    ]  # fmt: skip


def test_formats_convert(tacit: Tacit, tmp_path: Path) -> None:
    source = save(tmp_path / "in.csv")
    for suffix in ("jsonl", "parquet", "tsv.gz"):
        assert tacit(source, "-o", tmp_path / f"out.{suffix}", "--keep", "id")[0] == 0
        assert [values[0] for values in read(tmp_path / f"out.{suffix}", "id")] == ["0", "1", "2"]
    code, _, err = tacit(source, "-o", tmp_path / "out.txt", "--keep", "id")
    assert code == 2
    assert "a txt file holds one column" in err


def test_standard_input_and_output(vectors: str, tmp_path: Path) -> None:
    data = save(tmp_path / "in.jsonl").read_bytes()
    command = [sys.executable, "-m", "tacit.cli.main", "rewrite", "-", "--format", "jsonl", "-e", "2"]
    command += ["--vectors", vectors, "--keep", "id"]
    done = subprocess.run(command, input=data, capture_output=True, env=environment(), check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["id"] for row in rows] == [0, 1, 2]
    assert b"# Privacy card" in done.stderr
    assert SECRET.encode() not in done.stdout + done.stderr


def test_card_to_a_file_instead_of_standard_error(tacit: Tacit, tmp_path: Path) -> None:
    card = tmp_path / "card.json"
    code, out, err = tacit(save(tmp_path / "in.txt"), "--card-file", card, "--quiet")
    assert code == 0
    assert len(err.splitlines()) == 1, "nothing but that the card is nominal"
    assert len(out.splitlines()) == 3
    assert Card.from_json(card.read_text()).facts is not None
    assert tacit(save(tmp_path / "in.txt"), "--card-file", tmp_path / "card.pdf")[0] == 2


def test_gone_reader_is_no_error(vectors: str, tmp_path: Path) -> None:
    """As in `tacit rewrite ... | head`."""
    command = [sys.executable, "-m", "tacit.cli.main", "rewrite", str(save(tmp_path / "in.txt"))]
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        done = subprocess.run(
            [*command, "-e", "2", "--vectors", vectors],
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == ""


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OPENBLAS_NUM_THREADS": "1"}


# The card ---------------------------------------------------------------------------------------------------


def test_card_says_what_happened(tacit: Tacit, tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    source, output = save(tmp_path / "in.csv"), tmp_path / "out.csv"
    code, _, _ = tacit(source, "-o", output, "-c", "text", "--keep", "label", "--card", "json,html")
    assert code == 0
    data = json.loads(Path(f"{output}.card.json").read_text())
    jsonschema.validate(data, json_schema())
    release = data["release"]
    assert (release["rows"], release["units"], release["longest_document"]) == (3, 16, 12)
    assert (release["columns"], release["kept_columns"], release["dropped_columns"]) == (["text"], ["label"], 1)
    assert release["output"] == "out.csv"
    assert release["digest"] == file_digest(output)
    assert any("'label'" in item for item in data["guarantee"]["not_covered"])
    assert "--keep label" in release["command"]
    page = Path(f"{output}.card.html").read_text()
    assert page.startswith("<!doctype html>")
    for text in (json.dumps(data), page):
        assert str(tmp_path) not in text
        assert SECRET not in text
        assert "in.csv" not in text
    assert not Path(f"{output}.card.md").exists()


def test_command_on_the_card_names_no_folders() -> None:
    config = RewriteConfig(
        input="/home/me/in.csv", mechanism="santext+", epsilon=2.0, vectors="/home/me/v.txt", seed=3,
        options={"words": "/home/me/a b.txt"}, columns=("my text",), keep=("label",),
    )  # fmt: skip
    assert "/home" not in json.dumps(config.identity())
    assert "in.csv" not in json.dumps(config.identity())
    assert shown_command("rewrite", shown_options(config)) == (
        "tacit rewrite --column 'my text' --keep label --mechanism santext+ --epsilon 2 --vectors v.txt "
        "--option words='a b.txt' --seed 3"
    )


def test_seeds_repeat_and_void_the_card(tacit: Tacit, tmp_path: Path) -> None:
    source = save(tmp_path / "in.csv")
    outputs = []
    for name, workers in (("one.csv", "1"), ("two.csv", "2")):
        code, _, err = tacit(source, "-o", tmp_path / name, "--seed", "5", "--workers", workers)
        assert code == 0
        assert "no privacy guarantee" in err
        outputs.append((tmp_path / name).read_bytes())
        assert json.loads((tmp_path / f"{name}.card.json").read_text())["guarantee"]["notion"] == "none"
    assert outputs[0] == outputs[1]
    assert tacit(source, "-o", tmp_path / "three.csv", "--option", "seed=5")[0] == 2


def test_dry_run_reads_no_text(tacit: Tacit, tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_bytes(b"id,text,label\n1,\xff broken,yes\n")
    code, out, _ = tacit(source, "-o", tmp_path / "out.csv", "--keep", "label", "--dry-run")
    assert code == 0
    assert "Privacy card" in out
    assert "Columns rewritten: text" in out
    assert "NOT covered: label" in out
    assert "Columns dropped: id" in out
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]
    assert tacit(source, "-c", "txt", "--dry-run")[0] == 2


# Bad input: a sentence, exit code 2, and nothing lost ---------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "1e9"])
def test_bad_epsilon(tacit: Tacit, tmp_path: Path, epsilon: str) -> None:
    code, _, err = tacit(save(tmp_path / "in.csv"), "-o", tmp_path / "out.csv", epsilon=epsilon)
    assert code == 2
    assert re.fullmatch(r"error: epsilon [^\n]+\n", err)
    assert not (tmp_path / "out.csv.partial").exists()


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "is empty"),
        (b"id,text,label\n", "has no rows"),
        (b"id,review,label\n1,a,b\n", "say which column holds the text"),
        (b"id,text,label\n1,a " + SECRET.encode() + b" \xff,b\n", r"line 2 is not valid UTF-8 \(byte 27"),
        (b'id,text,label\n1,"a ' + SECRET.encode() + b",b\n2,c,d\n", r"row 1 \(line 2\) opens a quote"),
        (b"id,text,label\n1,a " + SECRET.encode() + b"\n", r"row 1 \(line 2\) has 2 fields"),
    ],
)
def test_bad_files(tacit: Tacit, tmp_path: Path, data: bytes, sentence: str) -> None:
    (tmp_path / "in.csv").write_bytes(data)
    code, out, err = tacit(tmp_path / "in.csv", "-o", tmp_path / "out.csv")
    assert (code, out) == (2, "")
    assert re.search(f"^error: .*{sentence}", err)
    assert err.count("\n") == 1
    assert SECRET not in err
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["-c", "txt"], r"there is no column 'txt' \(did you mean 'text'\?\): this file has the columns 'id', 'text'"),
        (["--keep", "labels"], "there is no column 'labels'"),
        (["-c", "text", "--keep", "text"], "each column has one use"),
        (["--mechanism", "santex"], "did you mean 'santext'"),
        (["--option", "epsilom=2"], "did you mean 'epsilon'"),
        (["--option", "limit"], "name=value"),
        (["--option", "epsilon=3"], "given twice"),
        (["--card", "pdf"], "json, md, html"),
        (["--format", "xml"], "there is no format 'xml'"),
        (["--workers", "0"], "at least 1"),
        (["--vectors", "/none/such.txt"], "there is no vector file"),
    ],
)
def test_bad_options(tacit: Tacit, tmp_path: Path, arguments: list[str], sentence: str) -> None:
    code, _, err = tacit(save(tmp_path / "in.csv"), "-o", tmp_path / "out.csv", *arguments)
    assert code == 2
    assert re.search(f"^error: .*{sentence}", err)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv"]


def test_broken_vectors(tacit: Tacit, tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    for lines in ("good 1 2 3\nbad 1 2\n", "good 1 2 3\nbad 1 2 x\n"):
        bad.write_text(lines)
        code, _, err = tacit(save(tmp_path / "in.csv"), "-o", tmp_path / "out.csv", "--vectors", bad)
        assert code == 2
        assert err.startswith("error: ")


def test_existing_output(tacit: Tacit, tmp_path: Path) -> None:
    source, output = save(tmp_path / "in.csv"), tmp_path / "out.csv"
    output.write_text("precious")
    code, _, err = tacit(source, "-o", output)
    assert code == 2
    assert "--force" in err
    assert output.read_text() == "precious"
    assert tacit(source, "-o", output, "--force")[0] == 0
    code, _, err = tacit(source, "-o", output, "--resume")
    assert code == 0
    assert "already complete" in err


def test_broken_row_can_be_corrected(tacit: Tacit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.words.santext import SanText

    monkeypatch.setattr(SanText, "block_characters", 100)
    source, output = save(tmp_path / "in.jsonl", TEXTS * 20), tmp_path / "out.jsonl"
    good = source.read_text()
    source.write_text(good.replace('"id": 50', '"id": }'))
    code, _, err = tacit(source, "-o", output)
    assert code == 2
    assert "row 51 (line 51) is not valid JSON" in err
    assert "rows are in out.jsonl.partial; run the same command with --resume to go on" in err
    written = Path(f"{output}.partial").read_bytes()
    source.write_text(good)
    code, _, err = tacit(source, "-o", output, "--resume")
    assert code == 0, err
    assert output.read_bytes().startswith(written)
    assert len(read(output, "text")) == 60
    assert json.loads(Path(f"{output}.card.json").read_text())["release"]["rows"] == 60


def test_full_disk_on_standard_output(vectors: str, tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    source = save(tmp_path / "in.csv")
    command = [sys.executable, "-m", "tacit.cli.main", "rewrite", str(source), "-e", "2", "--vectors", vectors]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment(), check=False)
    assert done.returncode == 2
    assert "the disk is full" in done.stderr
    assert "Traceback" not in done.stderr


def test_unexpected_errors_quote_nothing(tacit: Tacit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"about {SECRET}")

    monkeypatch.setattr("tacit.jobs.rewrite.rewrite_file", broken)
    code, _, err = tacit(save(tmp_path / "in.csv"), "-o", tmp_path / "out.csv")
    assert code == 1
    assert "unexpected RuntimeError in test_rewrite.py" in err
    assert SECRET not in err


def listen() -> None:
    """A shell starts background jobs deaf to Ctrl-C; the program under test must hear it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_ctrl_c_and_resume(vectors: str, tmp_path: Path) -> None:
    """The real command, the real signal: exit code 130, the partial output stays, and --resume finishes it."""
    source, output = save(tmp_path / "in.txt", [TEXTS[0]] * 40_000), tmp_path / "out.txt"
    command = [sys.executable, "-m", "tacit.cli.main", "rewrite", str(source), "-o", str(output)]
    command += ["-e", "2", "--vectors", vectors, "--workers", "2", "--mechanism", "laplace"]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=environment(), start_new_session=True, preexec_fn=listen
    )
    for _ in range(12_000):
        if resume_path(output).exists() and resume_path(output).read_bytes().count(b"\n") > 1:
            break
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert re.fullmatch(
        r"stopped: [\d,]+ rows are in out\.txt\.partial; run the same command with --resume to go on\n", err
    )
    written = Path(f"{output}.partial").read_bytes()
    assert not output.exists()
    again = subprocess.run([*command, "--resume"], capture_output=True, text=True, env=environment(), check=False)
    assert again.returncode == 0, again.stderr
    released = output.read_bytes()
    assert released.startswith(written)
    assert released.count(b"\n") == 40_000


# What people see --------------------------------------------------------------------------------------------


def test_diff_shows_the_released_text(tacit: Tacit, tmp_path: Path) -> None:
    source, output = save(tmp_path / "in.csv"), tmp_path / "out.csv"
    code, _, err = tacit(source, "-o", output, "--diff", "1")
    assert code == 0
    assert "This view shows private text" in err
    assert SECRET in err
    shown = set(re.findall(r"[a-z]+", err.partition("rewritten")[2]))
    for word in split(read(output, "text")[0][0]):
        assert not word.isalpha() or word in shown
    assert "boring film" not in err.partition("rewritten")[0]


def test_diff_after_a_resumed_run(tacit: Tacit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.words.santext import SanText

    monkeypatch.setattr(SanText, "block_characters", 10)
    source, output = save(tmp_path / "in.csv"), tmp_path / "out.csv"
    good = source.read_text()
    source.write_text(good + "broken\n")
    assert tacit(source, "-o", output)[0] == 2
    first = Path(f"{output}.partial").read_text().splitlines()[1]
    source.write_text(good)
    code, _, err = tacit(source, "-o", output, "--resume", "--diff")
    assert code == 0
    assert output.read_text().splitlines()[1] == first
    assert all(word in err for word in split(first) if word.isalpha())


def test_diff_needs_somewhere_private(tacit: Tacit, tmp_path: Path) -> None:
    code, out, err = tacit(save(tmp_path / "in.csv"), "--diff")
    assert (code, out) == (2, "")
    assert "--diff shows private text" in err


def test_diff_alone_or_with_a_number() -> None:
    alone = {"--diff": 10}
    assert with_numbers(["--diff", "3", "a.csv"], alone) == ["--diff", "3", "a.csv"]
    assert with_numbers(["--diff", "a.csv"], alone) == ["--diff", "10", "a.csv"]
    assert with_numbers(["a.csv", "--diff"], alone) == ["a.csv", "--diff", "10"]


def test_side_by_side_is_safe_to_print() -> None:
    left, right = side_by_side(["same", "old\x1b[31m"], ["same", "new", "more"])
    assert left.plain.split() == ["same", "old\N{REPLACEMENT CHARACTER}[31m"]
    assert right.plain.split() == ["same", "new", "more"]
    assert [str(span.style) for span in left.spans] == ["dim", "red", "red"][: len(left.spans)]


def test_progress_in_words() -> None:
    first, now = RewriteProgress(0, 2_000_000, 100, 1000), RewriteProgress(500_000, 2_000_000, 1100, 11_000)
    assert rewriting_line(first, now, 10.0) == ("500 kB of 2.0 MB, 1,100 rows, 100 rows/s, 1,000 tokens/s, 30 s left")
    assert rewriting_line(now, now, 0.0) == "500 kB of 2.0 MB, 1,100 rows"
    assert readable_bytes(999) == "999 bytes"
    assert readable_bytes(25_300_000_000) == "25.3 GB"
    assert readable_seconds(3.21) == "3.2 s"
    assert readable_seconds(125) == "2 min 05 s"
    assert readable_seconds(7300) == "2 h 01 min"


def test_progress_bar_on_a_terminal(tmp_path: Path, vectors: str) -> None:
    import pty

    source, output = save(tmp_path / "in.csv"), tmp_path / "out.csv"
    command = [sys.executable, "-m", "tacit.cli.main", "rewrite", str(source), "-o", str(output)]
    leader, follower = pty.openpty()
    process = subprocess.Popen([*command, "-e", "2", "--vectors", vectors], stderr=follower, env=environment())
    os.close(follower)
    seen = io.BytesIO()
    while True:
        try:
            data = os.read(leader, 4096)
        except OSError:
            break
        if not data:
            break
        seen.write(data)
    os.close(leader)
    assert process.wait(timeout=20) == 0
    assert b"preparing" in seen.getvalue() or b"rows" in seen.getvalue()


# The command itself -----------------------------------------------------------------------------------------


def test_help_is_light() -> None:
    code = (
        "import sys\nfrom tacit.cli.main import run\nassert run(['--help']) == 0\n"
        "heavy = {'numpy', 'scipy', 'pyarrow', 'rich', 'multiprocessing'} & set(sys.modules)\nassert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=False)
    assert done.returncode == 0, done.stderr
    for name in ("rewrite", "mechanisms", "calibrate"):
        assert name in done.stdout


def test_version_and_unknown_commands(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert re.fullmatch(r"tacit \d+\.\d+\.\d+\S*\n", capfd.readouterr().out)
    assert run(["rewrit"]) == 2
    assert "did you mean 'rewrite'" in capfd.readouterr().err


def test_every_error_has_an_exit_code() -> None:
    def everything(kind: type[TacitError]) -> list[type[TacitError]]:
        return [kind, *(deeper for child in kind.__subclasses__() for deeper in everything(child))]

    assert {kind.exit_code for kind in everything(TacitError)} == {0, 2, 3, 130}


# Files of other programs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("x.xlsx", "a spreadsheet"),
        ("x.docx", "a document of an office program"),
        ("X.PDF", "a PDF"),
        ("x.json", "JSON"),
    ],
)
def test_c7_files_of_other_programs_are_named_with_what_is_supported(
    tacit: Tacit, tmp_path: Path, name: str, what: str
) -> None:
    source = save(tmp_path / "in.csv")
    code, _, err = tacit(source, "-c", "text", "-o", tmp_path / name)
    assert (code, list(tmp_path.iterdir())) == (2, [source]), "nothing that only looks like one is written"
    assert what in err
    assert ".txt (one text per line), .csv, .tsv, .jsonl or .parquet" in err
    (tmp_path / name).write_bytes(b"PK\x03\x04")
    code, _, err = tacit(tmp_path / name, "-o", tmp_path / "out.csv")
    assert code == 2
    assert f"'{name}' is " in err
    assert what in err
    assert ".jsonl or .parquet" in err
    code, _, err = tacit(source, "-c", "text", "-o", tmp_path / name, "--dry-run")
    assert code == 2


def test_c7_a_folder_as_input_says_what_to_give(tacit: Tacit, tmp_path: Path) -> None:
    for name, more in (("letters", ()), ("letters.csv", ()), ("more", ("--format", "csv")), ("last", ("--dry-run",))):
        (tmp_path / name).mkdir()
        code, _, err = tacit(tmp_path / name, "-o", tmp_path / "out.csv", *more)
        assert code == 2
        assert f"{name}' is a folder: give one file in it (.txt" in err
        assert "--engine ray" in err


@pytest.mark.parametrize(
    "content", [b"PK\x03\x04\n", b"%PDF-1.7\n\xff", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"{\\rtf1 a"]
)
def test_c7_a_file_that_is_something_else_is_recognized_by_its_beginning(
    tacit: Tacit, tmp_path: Path, content: bytes
) -> None:
    for name in ("in.txt", "in.csv", "in.jsonl"):
        (tmp_path / name).write_bytes(content)
        code, _, err = tacit(tmp_path / name, "-o", tmp_path / "out.csv")
        assert code == 2
        assert "whatever its name says: save the texts as .txt" in err


# Silent dangers get a voice (item C5) -----------------------------------------------------------------------


def test_c5_a_nominal_release_says_so_in_one_loud_line_quiet_or_not(tacit, tmp_path):
    source = save(tmp_path / "in.csv")
    for number, arguments in enumerate(([], ["-q"], ["-q", "--workers", "2"])):
        code, _, err = tacit(source, "-c", "text", "-o", tmp_path / f"out{number}.csv", *arguments, epsilon="20")
        assert code == 0
        loud = [line for line in err.splitlines() if line.startswith("NOMINAL: ")]
        assert len(loud) == 1
        assert err.splitlines()[-1] == loud[0], "at the end"
        assert "the longest row here" in loud[0]
    code, _, err = tacit(source, "-c", "text", "-m", "random", "-o", tmp_path / "strong.csv", "-q")
    assert (code, err) == (0, "")


def test_c5_refuse_nominal_stops_before_any_noise(tacit, tmp_path, monkeypatch):
    source = save(tmp_path / "in.csv")
    before = {path.name for path in tmp_path.iterdir()}
    for arguments in (["--refuse-nominal"], []):
        if not arguments:
            monkeypatch.setenv("TACIT_REFUSE_NOMINAL", "1")
        code, out, err = tacit(source, "-c", "text", "-o", tmp_path / "out.csv", *arguments)
        assert code == 3
        assert "nominal releases are refused" in err
        assert SECRET not in out + err
        assert {path.name for path in tmp_path.iterdir()} == before
    code, _, _ = tacit(source, "-c", "text", "-m", "random", "-o", tmp_path / "out.csv")
    assert code == 0


def test_c5_texts_of_another_language_are_noticed_on_the_terminal_only(tacit, tmp_path):
    source = save(tmp_path / "in.csv", [f"der {SECRET} film war leider nicht sehr gut"] * 20)
    code, out, err = tacit(source, "-c", "text", "-m", "random", "-o", tmp_path / "out.csv", "-q")
    assert code == 0
    assert "88% of the words are not known" in err
    assert SECRET not in out + err
    for path in tmp_path.glob("out.csv*"):
        assert "not known to the vectors" not in path.read_text()
