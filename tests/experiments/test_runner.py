"""The runner: nothing is run twice, nothing stops at a failure, a process may die."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import BadParameterError
from tacit.experiments import execution
from tacit.experiments.collecting import collect, costs
from tacit.experiments.execution import MARKER, StepTask, execute, folder_of, is_finished, outcome, rescore
from tacit.experiments.raw import read_json
from tacit.experiments.runner import Status, chains_of, next_for, run_plan
from tacit.experiments.steps import KEY_FILE, RUN_FOLDER, kinds
from tests.experiments.small import ExperimentFile, plan_of, run_here, small, write_files


@pytest.fixture
def value(tmp_path: Path) -> ExperimentFile:
    write_files(tmp_path)
    return small(tmp_path)


def times(cache: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in cache.rglob("*") if path.is_file() and path.name != "lock"}


def test_a_run_a_repetition_and_a_change(value: ExperimentFile, tmp_path: Path):
    cache = tmp_path / "cache"
    plan = plan_of(value, tmp_path)
    status = run_plan(plan, cache, workers=2)
    assert not status.failed
    assert len(status.finished) == len({step.key for step in plan.steps})
    assert not list(cache.rglob(KEY_FILE))
    assert cache.stat().st_mode & 0o077 == 0  # only its owner may read it
    assert all(cost.cpu_seconds > 0 and cost.peak_megabytes > 10 for cost in costs(plan, cache))

    before = times(cache)
    again = run_plan(plan, cache)
    assert not again.finished
    some = run_plan(plan, cache, only={"kept"})
    assert {step.name for step in some.steps.values()} == {"rows", "rewritten", "kept"}
    assert times(cache) == before

    value["variants"]["mechanism"]["santext"]["over"]["epsilon"] = [1, 9]
    changed = run_plan(plan_of(value, tmp_path), cache)
    assert {(step.name, step.axes["epsilon"]) for key, step in changed.steps.items() if key in changed.finished} == {
        ("rewritten", 9), ("kept", 9), ("words", 9)
    }  # fmt: skip
    assert all(times(cache)[path] == when for path, when in before.items())


def test_a_cell_that_fails_is_recorded_and_the_rest_goes_on(value: ExperimentFile, tmp_path: Path):
    value["steps"]["rewritten"]["parts"] = ["test"]
    value["steps"]["kept"]["part"] = "train"  # was not rewritten: every cell of this step fails
    value["steps"]["linked"] = {"kind": "attack", "texts": "rewritten", "attack": "linkage"}
    plan = plan_of(value, tmp_path)
    status = run_plan(plan, tmp_path / "cache", workers=2)
    names = {status.steps[key].name for key in status.failed}
    assert names == {"kept"}
    results = collect(plan, tmp_path / "cache")
    assert all("'train' was not rewritten" in cell.problem for cell in results.of("kept"))
    assert all(cell.finished for cell in results.cells if cell.step != "kept")


def test_what_needs_a_failed_step_is_left_out(value: ExperimentFile, tmp_path: Path):
    value["data"]["rows"]["parts"]["test"]["skip"] = 1000
    plan = plan_of(value, tmp_path)
    status = run_plan(plan, tmp_path / "cache")
    assert len(status.failed) == 1
    results = collect(plan, tmp_path / "cache")
    assert {cell.finished for cell in results.of("words")} == {True}
    assert all("left out, because its input 'rows data=rows' failed" in cell.problem for cell in results.of("kept"))


def test_an_unexpected_error_tells_its_place_and_no_text(tmp_path: Path):
    secret = "my name is Ada"
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "about.json").write_text(f'["{secret}"]')
    reason = outcome(StepTask("downstream", {"learner": "tfidf"}, {"data": tmp_path / "data"}, tmp_path / "out"),
                     lambda _done, _total: None)  # fmt: skip
    assert reason is not None
    assert "unexpected TypeError in downstream.py" in reason
    assert secret not in reason
    assert read_json(tmp_path / "out" / "failed.json") == {"error": reason}
    assert not is_finished(tmp_path / "out")


@pytest.mark.parametrize("learner", ["tfidf", "lstm"])
@pytest.mark.parametrize("label", ["text", "constant"])
def test_a_failed_task_tells_no_label(label: str, learner: str, value: ExperimentFile, tmp_path: Path):
    secret = "my name is Ada"
    (tmp_path / "rows.csv").write_text(
        "text,constant\n" + "".join(f"{secret} {number},{secret}\n" for number in range(24))
    )
    value["data"]["rows"] |= {"label": label, "keep": []}
    value |= {"variants": {}, "steps": {"task": {"kind": "downstream", "data": "rows", "learner": learner}}}
    step = plan_of(value, tmp_path).named("task")[0]
    data = step.inputs["data"]
    execute(StepTask("data", data.parameters.model_dump(), {}, tmp_path / "data"), lambda _done, _total: None)
    task = StepTask("downstream", step.parameters.model_dump(), {"data": tmp_path / "data"}, tmp_path / "out")
    reason = outcome(task, lambda _done, _total: None)
    assert reason is not None
    assert "label" in reason
    assert "Ada" not in reason


def test_a_process_that_dies_is_replaced(value: ExperimentFile, tmp_path: Path):
    killed = []

    def watch(status: Status) -> None:
        children = multiprocessing.active_children()
        if status.running and children and not killed:
            killed.append(children[0].pid)
            children[0].kill()

    plan = plan_of(value, tmp_path)
    status = run_plan(plan, tmp_path / "cache", only={"kept"}, watch=watch)
    assert killed
    assert status.failed == {}
    run_here(plan, tmp_path / "other", "kept")
    assert collect(plan, tmp_path / "cache").to_json() == collect(plan, tmp_path / "other").to_json()


def test_a_key_that_a_kill_left_behind_is_destroyed(value: ExperimentFile, tmp_path: Path):
    plan = plan_of(value, tmp_path)
    cache = tmp_path / "cache"
    run_here(plan, cache, "rewritten")
    left = folder_of(cache, plan.named("rewritten")[-1]) / KEY_FILE
    left.write_bytes(b"x" * 32)
    run_plan(plan, cache, only={"rewritten"})
    assert not left.exists()


def test_a_step_without_its_marker_is_run_again_from_the_beginning(value: ExperimentFile, tmp_path: Path):
    plan = plan_of(value, tmp_path)
    cache = tmp_path / "cache"
    run_here(plan, cache, "words")
    folder = folder_of(cache, plan.named("words")[0])
    whole = (folder / "words.jsonl").read_bytes()
    (folder / MARKER).unlink()
    (folder / "words.jsonl").write_bytes(whole[:20])
    (folder / "stray.txt").write_text("of an older attempt")
    run_here(plan, cache, "words")
    assert (folder / "words.jsonl").read_bytes() == whole
    assert not (folder / "stray.txt").exists()


def test_everything_is_on_the_disk_before_the_marker_and_the_marker_before_the_key_goes(
    value: ExperimentFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A power cut loses what was not written through, in any order."""
    folder = tmp_path / "cache" / "data" / "key"
    events: list[str] = []

    def run(_parameters: object, _inputs: object, where: Path, _progress: object) -> None:
        (where / "model").mkdir()
        np.save(where / "model" / "weights.npy", np.arange(3))
        (where / "copied.txt").write_text("as it was")
        (where / RUN_FOLDER).mkdir()
        (where / RUN_FOLDER / "checkpoint").write_text("of no use once it is finished")

    def note(name: str, then: Callable[..., None]) -> Callable[..., None]:
        def noted(path: Path, *rest: object) -> None:
            events.append(f"{name} {path.relative_to(tmp_path / 'cache')}")
            then(path, *rest)

        return noted

    monkeypatch.setitem(kinds(), "data", replace(kinds()["data"], run=run, score=lambda _folder: {}))
    monkeypatch.setattr(execution, "sync", note("sync", execution.sync))
    monkeypatch.setattr(execution, "sync_folder", note("sync", execution.sync_folder))
    monkeypatch.setattr(execution, "write_json", note("write", execution.write_json))
    monkeypatch.setattr(execution, "destroy_key", note("destroy", execution.destroy_key))
    data = plan_of(value, tmp_path).named("rows")[0]
    execute(StepTask("data", data.parameters.model_dump(), {}, folder), lambda _done, _total: None)
    marked = events.index(f"write data/key/{MARKER}")
    synced = {event.removeprefix("sync ") for event in events[:marked] if event.startswith("sync ")}
    assert {"data/key/model/weights.npy", "data/key/copied.txt", "data/key/model", "data/key", "data", "."} <= synced
    assert not any(RUN_FOLDER in place.split("/") for place in synced)
    assert events[marked + 1 :] == ["sync data/key", "destroy data/key"]


def test_scores_are_derived_from_raw_files(value: ExperimentFile, tmp_path: Path):
    plan = plan_of(value, tmp_path)
    cache = tmp_path / "cache"
    run_here(plan, cache, "words")
    step = plan.named("words")[0]
    (scores,) = (folder_of(cache, step) / "scores").iterdir()
    before = scores.read_bytes()
    scores.write_text("{}")
    rescore(step, cache)
    assert scores.read_bytes() == before == (folder_of(cache, step) / "scores.json").read_bytes()


def test_another_version_of_scoring_derives_the_scores_again_and_runs_nothing(
    value: ExperimentFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    plan = plan_of(value, tmp_path)
    cache = tmp_path / "cache"
    run_here(plan, cache, "kept")
    before = collect(plan, cache)
    raw = {path: when for path, when in times(cache).items() if "scores" not in str(path)}
    original = kinds()["similarity"]
    changed = replace(original, score=lambda folder: {**original.score(folder), "one more": 1.0})
    monkeypatch.setitem(kinds(), "similarity", changed)
    assert collect(plan, cache).to_json() == before.to_json()  # the version is the same
    monkeypatch.setitem(kinds(), "similarity", replace(changed, scoring=changed.scoring + 1))
    after = collect(plan, cache)
    assert all(cell.scores["one more"] == 1.0 for cell in after.of("kept"))
    assert {path: when for path, when in times(cache).items() if "scores" not in str(path)} == raw
    assert not run_plan(plan, cache, only={"kept"}).finished
    monkeypatch.undo()
    assert collect(plan, cache).to_json() == before.to_json()  # what the old code had made is still there


def test_raw_files_that_changed_code_cannot_read_are_a_problem_of_their_cell(
    value: ExperimentFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    plan = plan_of(value, tmp_path)
    run_here(plan, tmp_path / "cache", "words")
    statistics = kinds()["statistics"]
    monkeypatch.setitem(kinds(), "statistics", replace(statistics, scoring=statistics.scoring + 1))
    for path in (tmp_path / "cache").rglob("words.jsonl"):
        path.unlink()
    cells = collect(plan, tmp_path / "cache").of("words")
    assert all("its scores cannot be derived from its raw files" in cell.problem for cell in cells)


def test_no_workers(value: ExperimentFile, tmp_path: Path):
    with pytest.raises(BadParameterError, match="workers must be at least 1"):
        run_plan(plan_of(value, tmp_path), tmp_path / "cache", workers=0)


def test_a_process_goes_on_with_the_inputs_it_has_used(value: ExperimentFile, tmp_path: Path):
    """What it has loaded and computed of them is used again; without such a step the first one in the plan is next."""
    plan = plan_of(value, tmp_path)
    cells = plan.named("rewritten")
    others = [step for step in plan.steps if "texts" in step.inputs]
    made_from = {step.inputs["texts"].key: step for step in reversed(others)}
    chains = chains_of({step.key: step for step in plan.steps})
    assert next_for(None, [*others, *cells], chains) is others[0]
    assert next_for(cells[0], cells[1:], chains) is cells[1]
    assert next_for(cells[1], [*others, *cells[2:]], chains) is made_from[cells[1].key]
    taken = {others[0].inputs["texts"].key}  # what another process works with is left to it
    assert next_for(None, others, chains, taken).inputs["texts"].key not in taken
    assert next_for(None, others[:1], chains, taken) is others[0]


def test_what_a_long_chain_waits_for_comes_first(value: ExperimentFile, tmp_path: Path):
    """Data, release, score: the data first; then the length of a chain decides only where it is more than two."""
    plan = plan_of(value, tmp_path)
    chains = chains_of({step.key: step for step in plan.steps})
    cells = plan.named("rewritten")
    data = next(iter(cells[0].inputs.values()))
    others = [step for step in plan.steps if "texts" in step.inputs]
    assert chains[data.key] == 3
    assert {chains[step.key] for step in cells} == {2}
    assert {chains[step.key] for step in others} == {1}
    assert next_for(cells[0], [*others, data], chains) is data
    assert next_for(cells[0], [*others, *cells[1:]], {cells[-1].key: 3}) is cells[-1]
