"""`tacit experiment`, end to end, killed ten times and resumed."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import pytest
from click.testing import CliRunner
from rich.console import Console

from tacit.cli.experiment import command as experiment
from tacit.cli.experiment import live_table
from tacit.errors import BadInputError
from tacit.experiments import started
from tacit.experiments.report import KEPT
from tacit.experiments.runner import Status
from tacit.experiments.steps import RUN_FOLDER
from tests.experiments.small import plan_of, small, write_files


def run(*arguments: object) -> str:
    called = CliRunner().invoke(experiment, [str(argument) for argument in arguments], catch_exceptions=False)
    assert called.exit_code == 0, called.output
    return called.output


def toml_of(value: object) -> str:
    """Enough of TOML for the small experiment: JSON is TOML but for its tables."""

    def inline(item: object) -> str:
        if isinstance(item, dict):
            return "{" + ", ".join(f"{json.dumps(key)} = {inline(each)}" for key, each in item.items()) + "}"
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
    run("compare", out, out, out, "-o", tmp_path / "both.md")
    assert "out (3)" in (tmp_path / "both.md").read_text()
    run("compare", out, out / "results.json", "--experiment", file, "-o", tmp_path / "both.html")
    assert "Scores side by side" in (tmp_path / "both.html").read_text()
    run("summary", out / "results.json", "-o", tmp_path / "page.md")
    assert "(page/small.md)" in (tmp_path / "page.md").read_text()
    assert "# Small" in (tmp_path / "page" / "small.md").read_text()
    with pytest.raises(BadInputError, match="exists"):
        run("summary", out, "-o", tmp_path / "page.md")
    (tmp_path / "page.md").unlink()
    with pytest.raises(BadInputError, match=r"small\.md exists"):
        run("summary", out, "-o", tmp_path / "page.md")
    assert not (tmp_path / "page.md").exists()
    for name in ("without_ending", "page/small.md/x.md"):
        with pytest.raises(BadInputError, match=r"name of a file|does not exist"):
            run("summary", out, "-o", tmp_path / name)
    # without the test seed, releases are others; the statistics are the same
    assert "small.toml" in run("list", tmp_path, "--cache", cache)


def test_results_of_another_configuration_are_not_replaced(file: Path, tmp_path: Path):
    options = ("-o", tmp_path / "out", "--cache", tmp_path / "cache", "--only", "words", "-q")
    run("run", file, *options)
    file.write_text(file.read_text().replace('"words" = 10', '"words" = 12'))
    with pytest.raises(BadInputError, match="holds the results of another configuration"):
        run("run", file, *options)
    assert "words (statistics): 2 cells, 0 of them finished" in run("run", file, *options, "--force", "--check")


@pytest.fixture(scope="module")
def ran_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Where the releases and the statistics were run, and a copy of what was there afterwards."""
    place = tmp_path_factory.mktemp("finished")
    write_files(place)
    (place / "small.toml").write_text(toml_of(small(place)))
    only = ("--only", "rewritten", "--only", "words")
    run("run", place / "small.toml", "-o", place / "out", "--cache", place / "cache", *only, "-q")
    return place, Path(shutil.copytree(place, tmp_path_factory.mktemp("copy") / "finished"))


@pytest.fixture
def finished(ran_once: tuple[Path, Path]) -> Path:
    """The folder of a run of the releases and the statistics: six cells of ten. Its data and its cache are beside it,
    all as they were after the run."""
    place, copy = ran_once
    shutil.rmtree(place)
    shutil.copytree(copy, place)
    return place / "out"


def change_rows(folder: Path) -> None:
    rows = folder / "rows.csv"
    rows.write_text(rows.read_text().replace("w1 ", "w2 ", 1))


@pytest.mark.parametrize("command", ["report", "resume"])
def test_changed_data_replaces_no_results(command: str, finished: Path):
    before = {path.name: path.read_bytes() for path in finished.iterdir()}
    change_rows(finished.parent)
    with pytest.raises(BadInputError, match=r"^the data set 'rows' has changed since the run in .*force") as error:
        run(command, finished)
    assert "\n" not in str(error.value)
    assert {path.name: path.read_bytes() for path in finished.iterdir()} == before
    run("report", finished, "--force")
    assert "2 of 10 cells have a result" in run("report", finished)  # what was forced is the run from now on


def test_what_has_changed_is_told(finished: Path, monkeypatch: pytest.MonkeyPatch):
    copy = finished / "experiment.toml"
    copy.write_text(copy.read_text().replace('"words" = 10', '"words" = 12'))
    with pytest.raises(BadInputError, match=r"^the step 'words' has changed"):
        run("report", finished)
    monkeypatch.setattr(started, "__version__", "9.9")
    with pytest.raises(BadInputError, match=r"^Tacit has changed from version .* to 9\.9"):
        run("report", finished)


def without(settings: Path, *keys: str) -> None:
    kept = json.loads(settings.read_text())
    settings.write_text(json.dumps({key: value for key, value in kept.items() if key not in keys}))


def test_a_run_that_has_no_digest_is_compared_with_its_results(finished: Path):
    without(finished / "run.json", "digest", "parts", "version")
    assert "6 of 10 cells have a result" in run("report", finished)
    without(finished / "run.json", "digest", "parts", "version")
    change_rows(finished.parent)
    with pytest.raises(BadInputError, match="the data, the code or the experiment has changed"):
        run("report", finished)
    (finished / "results.json").unlink()
    assert "2 of 10 cells have a result" in run("report", finished)  # nothing to compare with, nothing to lose


@pytest.mark.parametrize("command", ["report", "resume"])
def test_results_that_the_cache_has_lost_are_not_replaced(command: str, finished: Path):
    shutil.rmtree(finished.parent / "cache" / "rewrite")
    with pytest.raises(BadInputError, match=r"^4 of the 6 cells with a result in .* are no longer in the cache"):
        run(command, finished)
    assert "2 of 10 cells have a result" in run("report", finished, "--force")


@pytest.mark.parametrize("text", ["{", "{}", "[]", "", '{"file": 3}'])
def test_settings_that_tell_nothing_are_one_sentence(text: str, finished: Path):
    (finished / "run.json").write_text(text)
    for command in ("report", "resume"):
        with pytest.raises(BadInputError, match="does not tell how the run was started: run the experiment again"):
            run(command, finished)


def test_a_run_keeps_its_data_folder(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    data, moved = tmp_path / "data", tmp_path / "moved"
    data.mkdir()
    (tmp_path / "rows.csv").rename(data / "rows.csv")
    monkeypatch.setenv("TACIT_DATA", str(data))
    out = tmp_path / "out"
    run("run", file, "-o", out, "--cache", tmp_path / "cache", "--only", "words", "-q")
    monkeypatch.setenv("TACIT_DATA", str(tmp_path / "elsewhere"))
    assert "2 of 10 cells" in run("report", out)
    data.rename(moved)
    with pytest.raises(BadInputError, match="which is not in"):
        run("report", out)
    assert "2 of 10 cells" in run("resume", out, "--data", moved, "-q")
    assert "2 of 10 cells" in run("report", out)  # and keeps the one that was given last


def test_only_the_owner_may_read_the_page(finished: Path):
    page = finished / "report.html"
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    page.chmod(0o644)
    (finished / ".report.html.draft").touch(0o644)  # a killed run can leave one
    run("report", finished)
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert stat.S_IMODE((finished / "results.json").stat().st_mode) != 0o600


def test_failed_cells_end_with_code_1_and_their_error(file: Path, tmp_path: Path):
    rows = tmp_path / "rows.csv"
    rows.write_text(rows.read_text().replace("even", "odd"))  # nothing to learn
    value = small(tmp_path)
    value["steps"]["task"] = {"kind": "downstream", "texts": "rewritten", "learner": "tfidf"}
    file.write_text(toml_of(value))
    arguments = ["run", str(file), "-o", str(tmp_path / "out"), "--cache", str(tmp_path / "cache"), "-q"]
    called = CliRunner().invoke(experiment, arguments, catch_exceptions=False)
    assert called.exit_code == 1
    assert "failed: task data=rows mechanism=none: the training rows have one label only" in called.output
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


NURSERY = """
import os, sys
import dp_accounting, matplotlib.figure, scipy.stats
import tacit.experiments.report
from tacit.cli.main import main
from tacit.experiments.steps.train import check_network
check_network("bilstm-1x8")
for line in sys.stdin:
    process = os.fork()
    if process == 0:
        sys.argv = ["tacit", *line.rstrip().split("\\t")]
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        main()
        os._exit(0)
    print(process, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""


class Nursery:
    """Starts the command again and again from a process that has loaded everything already; each is a process of its
    own, and its workers are started by itself as always."""

    def __init__(self) -> None:
        self._parent = subprocess.Popen([sys.executable, "-c", NURSERY], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # fmt: skip

    def start(self, *arguments: str) -> int:
        assert self._parent.stdin is not None
        self._parent.stdin.write("\t".join(arguments) + "\n")
        self._parent.stdin.flush()
        return self._number()

    def ended(self) -> int:
        """How the last one ended: its exit code, or minus the signal."""
        return self._number()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._parent.communicate()

    def _number(self) -> int:
        assert self._parent.stdout is not None
        return int(self._parent.stdout.readline())


TRAINING = {"kind": "train", "data": "rows", "model": "bilstm-1x8", "strategy": "full", "epochs": 25.0, "batch": 16,
            "length": 16, "over": {"epsilon": [4.0]}}  # fmt: skip


def test_killed_six_times_with_two_workers_and_resumed_gives_the_same_bytes(tmp_path: Path):
    """SIGKILL of the runner: four times soon after a file appeared, twice while a model is trained."""
    write_files(tmp_path)
    value = small(tmp_path)
    value["steps"]["trained"] = TRAINING
    file = tmp_path / "small.toml"
    file.write_text(toml_of(value))

    def command(verb: str, folder: str) -> list[str]:
        out = str(tmp_path / folder)
        start = ["experiment", verb, out if verb == "resume" else str(file), "--workers", "2", "-q"]
        return start if verb == "resume" else [*start, "-o", out, "--cache", f"{out}-cache", "--test-seed", "3"]

    cache = tmp_path / "killed-cache"
    with Nursery() as nursery:
        nursery.start(*command("run", "undisturbed"))
        assert nursery.ended() == 0
        chance = random.Random(1)
        for number in range(6):
            begun, before = time.time(), _files(cache)
            process = nursery.start(*command("run" if number == 0 else "resume", "killed"))
            more = chance.randint(1, 3)
            while not (_files(cache) >= before + more if number < 4 else _trains(cache, begun)):
                os.kill(process, 0)  # it is still there
                time.sleep(0.002)
            time.sleep(chance.uniform(0, 0.03 if number < 4 else 0.15))
            os.kill(process, signal.SIGKILL)
            assert nursery.ended() == -signal.SIGKILL, f"the run was over before kill {number + 1}"
        assert not (tmp_path / "killed" / "results.json").exists()
        nursery.start(*command("resume", "killed"))
        assert nursery.ended() == 0
    for name in KEPT:
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "undisturbed" / name).read_bytes(), name
    assert '"trained"' in (tmp_path / "killed" / "results.json").read_text()
    assert not list(cache.rglob("noise.key"))
    assert not list(cache.rglob(RUN_FOLDER))


def _files(cache: Path) -> int:
    """How many files are in the folders of steps; folders may vanish while they are counted."""
    return sum(len(files) for _, _, files in os.walk(cache))


def _trains(cache: Path, since: float) -> bool:
    """Whether a training has written something (a checkpoint, its log) since then."""
    for folder, _, files in os.walk(cache / "train"):
        for name in files:
            with contextlib.suppress(FileNotFoundError):
                if f"/{RUN_FOLDER}" in folder and (Path(folder) / name).stat().st_mtime > since:
                    return True
    return False


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
