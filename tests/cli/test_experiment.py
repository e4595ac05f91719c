"""`tacit experiment`, end to end, killed at ten moments and resumed."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from tacit.cli.experiment import app, live_table
from tacit.errors import BadInputError
from tacit.experiments.report import KEPT
from tacit.experiments.runner import Status
from tests.experiments.small import plan_of, small, write_files


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def toml_of(value: object) -> str:
    """Enough of TOML for the small experiment: JSON is TOML but for its tables."""

    def inline(item: object) -> str:
        if isinstance(item, dict):
            return "{" + ", ".join(f"{json.dumps(key)} = {inline(one)}" for key, one in item.items()) + "}"
        if isinstance(item, list):
            return "[" + ", ".join(map(inline, item)) + "]"
        return json.dumps(item)

    assert isinstance(value, dict)
    return "\n".join(f"{json.dumps(key)} = {inline(item)}" for key, item in value.items()) + "\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_files(tmp_path)
    path = tmp_path / "small.toml"
    path.write_text(toml_of(small(tmp_path)))
    return path


def test_run_report_compare_summary_and_list(file: Path, tmp_path: Path):
    out, cache = tmp_path / "out", tmp_path / "cache"
    options = ("--cache", cache, "--test-seed", 1)
    assert "rewritten (rewrite): 4 cells, 0 of them finished" in run("run", file, "--check", *options)
    assert not out.exists()
    assert "10 of 10 cells have a result" in run("run", file, "-o", out, *options)
    before = {name: (out / name).read_bytes() for name in KEPT}
    page = (out / "report.html").read_text()
    assert "Examples of released text" in page

    run("report", out, "--rescore")
    assert {name: (out / name).read_bytes() for name in KEPT} == before
    run("resume", out)
    assert {name: (out / name).read_bytes() for name in KEPT} == before

    assert "words changed" in run("compare", out, out / "results.json")
    run("compare", out, out, "-o", tmp_path / "both.csv")
    assert "words changed" in (tmp_path / "both.csv").read_text()
    run("summary", out / "results.json", "-o", tmp_path / "page.md")
    assert "## Small" in (tmp_path / "page.md").read_text()
    with pytest.raises(BadInputError, match="exists"):
        run("summary", out, "-o", tmp_path / "page.md")
    # without the test seed, releases are others; the statistics are the same
    assert "small.toml" in run("list", tmp_path, "--cache", cache)


def test_results_of_another_configuration_are_not_replaced(file: Path, tmp_path: Path):
    options = ("-o", tmp_path / "out", "--cache", tmp_path / "cache", "--only", "words", "-q")
    run("run", file, *options)
    file.write_text(file.read_text().replace('"words" = 10', '"words" = 12'))
    with pytest.raises(BadInputError, match="holds the results of another configuration"):
        run("run", file, *options)
    assert "words (statistics): 2 cells, 0 of them finished" in run("run", file, *options, "--force", "--check")


def test_failed_cells_end_with_code_1_and_their_error(file: Path, tmp_path: Path):
    file.write_text(file.read_text().replace('"texts" = "rewritten"', '"texts" = "rewritten", "part" = "gone"'))
    arguments = ["run", str(file), "-o", str(tmp_path / "out"), "--cache", str(tmp_path / "cache"), "-q"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 1
    assert "failed: kept data=rows mechanism=none: the data has no part 'gone'" in result.output
    assert "What did not run" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "nothing.toml"), "there is no experiment file"),
        (("run", "FILE", "--only", "nothing"), "the steps are rewritten, kept, words"),
        (("run", "FILE", "--size", "huge"), "choose from quick, full"),
        (("resume", "FOLDER"), "no run was started in"),
        (("report", "FOLDER"), "no run was started in"),
        (("compare", "FOLDER", "FOLDER"), "cannot be read"),
        (("list", "FOLDER"), "there is no experiment file"),
    ],
)
def test_mistakes_are_one_sentence(arguments: tuple[str, ...], said: str, file: Path, tmp_path: Path):
    (tmp_path / "empty").mkdir()
    places = {"FILE": str(file), "FOLDER": str(tmp_path / "empty")}
    with pytest.raises(BadInputError) as error:
        run(*(places.get(argument, argument) for argument in arguments))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_killed_at_ten_moments_and_resumed_gives_the_same_bytes(file: Path, tmp_path: Path):
    """SIGKILL of the runner whenever the cache has grown to another number of files, plus a few random milliseconds."""

    def command(folder: str, verb: str) -> list[str]:
        out = str(tmp_path / folder)
        start = [sys.executable, "-m", "tacit", "experiment", verb]
        if verb == "resume":
            return [*start, out, "--workers", "1"]
        return [*start, str(file), "-o", out, "--cache", f"{out}-cache", "--test-seed", "3", "--workers", "1"]

    subprocess.run(command("undisturbed", "run"), check=True, capture_output=True)
    chance = random.Random(1)
    moments = sorted(chance.sample(range(1, _files(tmp_path / "undisturbed-cache") - 5), 10))
    kills = 0
    for number, moment in enumerate(moments):
        process = subprocess.Popen(command("killed", "run" if number == 0 else "resume"), stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)  # fmt: skip
        while process.poll() is None and _files(tmp_path / "killed-cache") < moment:
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.05))
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.wait()
    assert kills >= 8  # the last moments can come after the end, when a step was finished in between
    subprocess.run(command("killed", "resume"), check=True, capture_output=True)
    for name in KEPT:
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes(), name
    assert not list((tmp_path / "killed-cache").rglob("noise.key"))


def _files(cache: Path) -> int:
    """How many files are in the folders of steps; folders may vanish while they are counted."""
    return sum(len(files) for _, _, files in os.walk(cache))


def test_the_live_table_tells_what_runs_now(tmp_path: Path):
    write_files(tmp_path)
    plan = plan_of(small(tmp_path), tmp_path)
    cells = {step.key: step for step in plan.steps}
    status = Status(plan, cells)
    first, second, third = plan.named("rewritten")[:3]
    status.cached.add(first.key)
    status.finished.add(second.key)
    status.running[third.key] = 0.0
    status.progress[third.key] = (1, 4)
    console = Console(width=120, file=io.StringIO())
    console.print(live_table(status, 30.0))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "rows santext 1 25%" in text
    assert f"1 of {len(cells) - 1} cells in 30 s, about" in text
