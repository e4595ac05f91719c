"""The cluster engine without Ray: cuts, commits, crashes at every single write, and what may be published.

The workers' functions are called here in one process, with everything pickled as Ray would; `test_ray_engine.py` runs
the same jobs over Ray.
"""

from __future__ import annotations

import gzip
import json
import os
import pickle
import stat
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tacit.cli.main import run
from tacit.engines.cluster import crew, outcomes, parts, rewrite
from tacit.engines.cluster import run as dataset_run
from tacit.engines.cluster.dataset import ClusterDataSet, find_data_set
from tacit.engines.cluster.outcomes import FileRow
from tacit.engines.cluster.parts import PartWriter, part_characters, read_parts
from tacit.engines.cluster.rewrite import check_cluster_output, rewrite_dataset
from tacit.engines.cluster.session import Cluster, cluster
from tacit.engines.cluster.staging import Staging, staging_url
from tacit.engines.cluster.storage import Folder, local_path
from tacit.engines.job import RewriteJob
from tacit.engines.local import rewrite_file
from tacit.engines.output_errors import AlreadyCompleteError
from tacit.engines.users import UserRule
from tacit.errors import BadInputError, BadParameterError, MissingExtraError, StoppedError, TacitError
from tacit.labels import LabelRule
from tacit.noise.kept_key import NotPrivateError
from tacit.text.digest import output_digest
from tacit.text.files import OutputError
from tacit.text.files.formats import MISSING

from .bucket import bucket_url
from .fakes import NoiseShown, draws_by_text
from .test_users import Counted

SECRET = "ZANZIBAR"


def make_csv(path: Path, rows: int = 60, start: int = 0) -> Path:
    lines = ["id,text,stars"]
    lines += [f'{row},"text number {row}, with word and more",{row % 5}' for row in range(start, start + rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def make_folder(path: Path, files: int = 3, rows: int = 40) -> Path:
    path.mkdir()
    for number in range(files):
        make_csv(path / f"data-{number}.csv", rows, number * rows)
    return path


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers and writers called one after the other, with everything pickled in between."""

    def finished(_: Cluster, plan: parts.WorkerPlan, items: list[FileRow]) -> Iterator[outcomes.PartOutcome]:
        plan = pickle.loads(pickle.dumps(plan))
        writer = PartWriter(plan)
        for item in items:
            for row in read_parts({name: [value] for name, value in item.items()}, plan):
                yield from (outcomes.unpacked(outcome) for outcome in writer(row)["outcome"])

    def done_apart(_: Cluster, work: Callable[..., Any], items: list[tuple[Any, ...]]) -> None:
        for item in items:
            work(*item)

    monkeypatch.setattr(dataset_run, "outcomes", finished)
    monkeypatch.setattr(dataset_run, "done_apart", done_apart)
    monkeypatch.setattr(rewrite, "starting", lambda _, workers: nullcontext(lambda: Cluster(None, workers)))


@pytest.fixture
def job(tmp_path: Path, in_process: None) -> RewriteJob:
    return RewriteJob(
        mechanism=NoiseShown(log=str(tmp_path / "log")),
        input=str(make_folder(tmp_path / "in")),
        output=str(tmp_path / "out"),
        columns=("text",),
        keep=("stars",),
        seed=7,
    )


def planned(job: RewriteJob, data: ClusterDataSet) -> parts.WorkerPlan:
    return rewrite._planned(job, str(job.output), data, *rewrite._layout(job, str(job.output), data))


def content(output: str | Path) -> dict[str, bytes]:
    """Everything an output consists of, by name."""
    path = Path(output)
    if path.is_file():
        return {"": path.read_bytes()}
    return {file.name: file.read_bytes() for file in sorted(path.iterdir())}


# The bytes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.csv.gz", "out.parquet"])
def test_one_file_has_the_bytes_of_the_local_engine(job: RewriteJob, tmp_path: Path, name: str) -> None:
    source = str(make_csv(tmp_path / "one.csv"))
    (tmp_path / "local").mkdir()
    local = replace(job, input=source, output=str(tmp_path / "local" / name))
    own_job = replace(job, input=source, output=str(tmp_path / name))
    first, second = rewrite_file(local).facts, rewrite_dataset(own_job).facts
    assert content(own_job.output) == content(local.output)
    assert replace(first, created="") == replace(second, created="")
    assert second.digest == output_digest(own_job.output)


def test_a_folder_becomes_a_folder_with_one_file_for_each(job: RewriteJob) -> None:
    facts = rewrite_dataset(job).facts
    contents = content(job.output)
    assert list(contents) == ["part-000000.csv", "part-000001.csv", "part-000002.csv"]
    assert [data.count(b"\n") for data in contents.values()] == [41, 41, 41]
    assert all(data.startswith(b"text,stars\n") for data in contents.values())
    assert facts.rows == 120
    assert facts.digest == output_digest(job.output)
    assert not Path(staging_url(job.output)).exists()


def test_the_first_file_has_the_noise_of_the_local_engine_and_no_two_files_share_any(
    job: RewriteJob, tmp_path: Path
) -> None:
    text = (Path(job.input) / "data-0.csv").read_text()
    (Path(job.input) / "data-1.csv").write_text(text)  # the same texts again
    rewrite_dataset(job)
    local = replace(job, input=str(Path(job.input) / "data-0.csv"), output=str(tmp_path / "local.csv"))
    rewrite_file(local)
    contents = content(job.output)
    assert contents["part-000000.csv"] == Path(local.output).read_bytes()
    first, second = (set(contents[name].split(b"\n")[1:-1]) for name in ("part-000000.csv", "part-000001.csv"))
    assert not first & second


def test_parquet_keeps_types_and_jsonl_keeps_what_is_missing(job: RewriteJob, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    source = tmp_path / "typed"
    source.mkdir()
    for number in range(2):
        table = arrow.table(
            {"text": [f"a text {i}" for i in range(50)], "stars": arrow.array(range(50), arrow.int16())}
        )
        parquet.write_table(table, source / f"{number}.parquet")
    rewrite_dataset(replace(job, input=str(source), output=str(tmp_path / "typed-out")))
    released = parquet.read_table(tmp_path / "typed-out" / "part-000001.parquet")
    assert released.schema.field("stars").type == arrow.int16()
    assert released["stars"].to_pylist() == list(range(50))

    lines = tmp_path / "rows.jsonl"
    lines.write_text('{"text": "one word", "stars": 1}\n{"text": "two"}\n')
    rewrite_dataset(replace(job, input=str(lines), output=str(tmp_path / "rows-out.jsonl")))
    written = [json.loads(line) for line in (tmp_path / "rows-out.jsonl").read_text().splitlines()]
    assert [set(row) for row in written] == [{"text", "stars"}, {"text"}]
    assert pickle.loads(pickle.dumps(MISSING)) is MISSING


@pytest.mark.parametrize("kind", ["parquet", "csv.gz"])
def test_the_output_does_not_show_where_blocks_were_cut(tmp_path: Path, kind: str) -> None:
    """The cuts depend on the lengths of the original texts, which a release at the document level must hide."""
    outputs = []
    for length in (1, 90):
        source = tmp_path / f"{length}.txt"
        source.write_text("".join(f"{'x' * length}\n" for _ in range(200)))
        output = tmp_path / f"{length}.{kind}"
        rewrite_file(RewriteJob(mechanism=NoiseShown(), input=str(source), output=str(output), seed=1))
        outputs.append(output)
    if kind == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
        groups = [parquet.ParquetFile(path).metadata.num_row_groups for path in outputs]
        assert groups == [1, 1]
    else:
        for path in outputs:
            data = path.read_bytes()
            assert data.count(b"\x1f\x8b\x08\x00\x00\x00\x00\x00") == 1
            assert gzip.decompress(data).count(b"\n") == 201


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lengths=st.lists(st.integers(0, 900), min_size=1, max_size=60), characters=st.sampled_from([400, 1_000, 5_000]))
def test_parts_hold_every_row_once_in_order(tmp_path: Path, lengths: list[int], characters: int) -> None:
    source = tmp_path / "rows.txt"
    source.write_text("".join("y" * length + "\n" for length in lengths))
    data = find_data_set(str(source))
    plan = planned(RewriteJob(mechanism=NoiseShown(), input=str(source), output=str(tmp_path / "out")), data)
    cut = list(parts.cut_parts(replace(plan, characters=characters), 3, data.files[0], None))
    assert [len(text) for part in cut for block in part.blocks for text in block.texts] == lengths
    assert [part.number for part in cut] == list(range(len(cut)))
    indices = [block.index for part in cut for block in part.blocks]
    assert indices == [(3 << 32) + place for place in range(len(indices))]
    assert sum(part.bytes_read for part in cut) == source.stat().st_size


def test_large_data_sets_have_larger_parts_up_to_a_limit() -> None:
    assert part_characters(10_000, 250_000) == 250_000
    assert part_characters(10**9, 250_000) == 1_000_000
    assert part_characters(10**12, 250_000) == parts.BLOCKS_OF_A_PART * 250_000
    assert part_characters(10**12, 4_000_000) == parts.LARGEST_PART


def test_a_store_that_is_no_folder_of_this_machine(job: RewriteJob, tmp_path: Path) -> None:
    """Through fsspec alone, with no rename of folders: as in an object store."""
    rewrite_dataset(job)
    for name, pattern in (("stored", ""), ("stored.jsonl", "/*.csv")):
        remote = replace(job, input=bucket_url(job.input) + pattern, output=bucket_url(tmp_path / name))
        assert rewrite_dataset(remote).facts.rows == 120
        assert not (tmp_path / f"{name}.partial").exists()
        with pytest.raises(TacitError, match="exists: add force"):
            rewrite_dataset(remote)
    assert content(tmp_path / "stored") == content(job.output)
    assert len((tmp_path / "stored.jsonl").read_text().splitlines()) == 120


# Crashes ----------------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The end of the process: nothing that comes after it has any effect."""


class Death:
    """Every change of storage counts as one step; from step `after` on, none happens any more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
        self.left = after
        for name in ("make", "write", "take", "remove", "erase", "remove_all", "move_to", "give"):
            monkeypatch.setattr(Folder, name, self._mortal(getattr(Folder, name)))

    def _mortal(self, change: Callable[..., Any]) -> Callable[..., Any]:
        def changed(folder: Folder, *arguments: Any, **options: Any) -> Any:
            if self.left <= 0:
                raise Killed
            self.left -= 1
            return change(folder, *arguments, **options)

        return changed


def stopped(job: RewriteJob, after: int) -> bool:
    """Run until the storage has been changed `after` times; whether that was before the end."""
    with pytest.MonkeyPatch.context() as patch:
        Death(patch, after)
        try:
            rewrite_dataset(job)
        except Killed:
            return True
    return False


@pytest.mark.parametrize(
    ("name", "overwrite", "stored"),
    [("out", False, False), ("out.csv", False, False), ("out", True, False), ("out.csv", True, False),
     ("out", False, True), ("out.csv", False, True)],
)  # fmt: skip
def test_a_run_killed_at_any_write_goes_on_to_the_same_bytes(
    job: RewriteJob, tmp_path: Path, name: str, overwrite: bool, stored: bool
) -> None:
    """Exhaustive: one run for every single change of storage, resumed after it."""
    source = make_folder(tmp_path / "small", files=2, rows=14)
    job = replace(job, input=str(source), mechanism=NoiseShown(log=str(tmp_path / "draws")))
    undisturbed = replace(job, output=str(tmp_path / f"whole-{name}"))
    rewrite_dataset(undisturbed)
    wanted = content(undisturbed.output)
    step = 0
    while True:
        output = tmp_path / f"{step}-{name}"
        if overwrite:
            output.mkdir() if name == "out" else output.write_text("old")
        killed = replace(job, output=bucket_url(output) if stored else str(output), force=overwrite)
        if not stopped(killed, step):
            break
        again = replace(killed, resume=True, force=False)
        if overwrite and not Staging(staging_url(str(output))).exists() and content(output) != wanted:
            again = killed  # killed before it began: the same command again
        try:
            check_cluster_output(again)
            assert rewrite_dataset(again).facts.digest == output_digest(output)
        except AlreadyCompleteError:
            pass
        assert content(output) == wanted, step
        assert not Path(staging_url(str(output))).exists(), step
        step += 1
    assert step > 15
    draws = draws_by_text(tmp_path / "draws")
    assert len(draws) == 28
    assert all(len(each) == 1 for each in draws.values())  # one key, so one draw for each text in all these runs


def test_with_a_key_of_its_own_a_resumed_run_never_draws_twice(job: RewriteJob, tmp_path: Path) -> None:
    job = replace(job, seed=None, mechanism=NoiseShown(log=str(tmp_path / "draws")))
    assert stopped(job, 25)
    rewrite_dataset(replace(job, resume=True))
    draws = draws_by_text(tmp_path / "draws")
    assert len(draws) == 120
    assert all(len(each) == 1 for each in draws.values())


def test_ctrl_c_says_what_is_left_and_how_to_go_on(job: RewriteJob) -> None:
    def interrupted(progress: Any) -> None:
        if progress.rows > 30:
            raise KeyboardInterrupt

    with pytest.raises(StoppedError, match=r"rows are in out.partial; run the same command with resume"):
        rewrite_dataset(job, progress=interrupted)
    with pytest.raises(OutputError, match="an unfinished run"):
        rewrite_dataset(job)
    key = Path(staging_url(job.output)) / "job.json"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    rewrite_dataset(replace(job, resume=True))
    with pytest.raises(AlreadyCompleteError):
        rewrite_dataset(replace(job, resume=True))


# What somebody else can do to the staging folder -------------------------------------------------------------------


def half_done(job: RewriteJob) -> Path:
    assert stopped(job, 25)
    return Path(staging_url(job.output))


def test_a12_a_planted_staging_folder_is_refused(job: RewriteJob, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = half_done(job)
    mine = os.geteuid()
    for path, mode in ((folder, 0o777), (folder / "job.json", 0o666)):
        before = stat.S_IMODE(path.stat().st_mode)
        path.chmod(mode)
        with pytest.raises(NotPrivateError, match="others may read or write it"):
            rewrite_dataset(replace(job, resume=True))
        path.chmod(before)
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: mine + 1)
        with pytest.raises(NotPrivateError, match="another user"):
            rewrite_dataset(replace(job, resume=True))
        # A worker that reads the key looks for itself.
        with pytest.raises(NotPrivateError, match="another user"):
            Staging(str(folder)).load()
    # A folder that is there before the run, which cannot be removed: no key is put into it.
    rewrite_dataset(replace(job, resume=True))
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    with monkeypatch.context() as patch:
        patch.setattr(Folder, "remove_all", lambda self: None)
        with pytest.raises(NotPrivateError, match="mode 777"):
            rewrite_dataset(replace(job, force=True))
    assert not (folder / "job.json").exists()


def test_a12_a_link_to_another_folder_gets_no_key(job: RewriteJob, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    Path(staging_url(job.output)).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotPrivateError, match="is a link"):
        rewrite_dataset(job)
    assert not (tmp_path / "elsewhere" / "job.json").exists()


@pytest.mark.parametrize("stored", [False, True])
def test_a12_a_damaged_part_is_not_released_and_written_again(job: RewriteJob, tmp_path: Path, stored: bool) -> None:
    undisturbed = replace(job, output=str(tmp_path / "whole"))
    rewrite_dataset(undisturbed)
    place = tmp_path / "damaged"
    job = replace(job, output=bucket_url(place) if stored else str(place))
    assert stopped(job, 40)
    part = sorted((Path(staging_url(str(place))) / "parts").iterdir())[0]
    data = bytearray(part.read_bytes())
    data[-3] ^= 1
    part.write_bytes(data)
    with pytest.raises(OutputError, match="was damaged in the staging folder"):
        rewrite_dataset(replace(job, resume=True))
    assert not place.exists()
    rewrite_dataset(replace(job, resume=True))
    assert content(place) == content(undisturbed.output)
    assert all(len(each) == 1 for each in draws_by_text(tmp_path / "log").values())


def test_a12_a_file_that_is_damaged_before_it_gets_its_name_is_made_again(job: RewriteJob, tmp_path: Path) -> None:
    undisturbed = replace(job, output=str(tmp_path / "whole"))
    rewrite_dataset(undisturbed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Folder, "move_to", lambda self, other: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            rewrite_dataset(job)
    staging = Staging(staging_url(job.output))
    assert staging.is_publishing()
    file = sorted(Path(staging.release.url).iterdir())[1]
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(OutputError, match="1 files of the finished output were damaged"):
        rewrite_dataset(replace(job, resume=True))
    rewrite_dataset(replace(job, resume=True))
    assert content(job.output) == content(undisturbed.output)


def test_a12_the_key_of_a_finished_job_is_overwritten(job: RewriteJob, tmp_path: Path) -> None:
    folder = half_done(job)
    key = json.loads((folder / "job.json").read_text())["key"]
    os.link(folder / "job.json", tmp_path / "other name")
    rewrite_dataset(replace(job, resume=True))
    assert not folder.exists()
    assert key.encode() not in (tmp_path / "other name").read_bytes()


def test_a_delta_that_is_too_large_leaves_nothing_behind(job: RewriteJob) -> None:
    with pytest.raises(BadParameterError, match="choose it well below 1/rows") as refused:
        rewrite_dataset(replace(job, seed=None, mechanism=Counted(epsilon=1.0, delta=0.02)))
    assert not getattr(refused.value, "__notes__", ()), "there is nothing to go on with"
    assert not Path(staging_url(job.output)).exists()
    with pytest.raises(BadInputError, match="randomize needs engine=local"):
        rewrite_dataset(replace(job, labels=LabelRule(("a", "b"), 1.0, "stars")))


def test_a_changed_input_or_command_is_not_resumed(job: RewriteJob) -> None:
    assert stopped(job, 30)
    going_on = replace(job, resume=True)
    with pytest.raises(BadInputError, match=r"not the command that was stopped: epsilon was 1\.0 and is now 2.0"):
        rewrite_dataset(replace(going_on, mechanism=NoiseShown(**{**job.mechanism.get_params(), "epsilon": 2.0})))
    first = Path(job.input) / "data-0.csv"
    before = first.read_text()
    first.write_text(before.replace("number 3,", "number x,"))
    with pytest.raises(TacitError, match=r"data-0.csv: rows 1 to 13 of the file, which are finished, have changed"):
        rewrite_dataset(going_on)
    first.write_text(before)
    (Path(job.input) / "data-9.csv").write_text(before)
    with pytest.raises(BadInputError, match="the input has other files"):
        rewrite_dataset(going_on)
    (Path(job.input) / "data-9.csv").unlink()
    rewrite_dataset(going_on)


def test_a_part_that_takes_three_workers_with_it_stops_the_run(job: RewriteJob) -> None:
    class Dies(NoiseShown):
        def rewrite_texts(self, texts: Any, source: Any) -> Any:
            raise Killed

    data = find_data_set(job.input)
    plan = planned(job, data)
    attempt = dataset_run.DatasetRun(job, str(job.output), data, plan.selection, plan, Staging(plan.staging), 0.0, None)
    attempt.start({})
    plan = replace(plan, mechanism=Dies)
    row = next(read_parts({name: [value] for name, value in attempt.items()[0].items()}, plan))
    for _ in range(parts.MOST_ATTEMPTS):
        with pytest.raises(Killed):
            PartWriter(plan)(row)
    outcome = outcomes.unpacked(PartWriter(plan)(row)["outcome"][0])
    assert str(outcome).startswith("3 workers died one after the other on rows 1 to 13 of data-0.csv")
    attempt.staging.close()


# The ledger -------------------------------------------------------------------------------------------------------


def test_every_block_is_in_the_ledger_once_however_often_the_run_is_killed(
    job: RewriteJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledgers = pytest.importorskip("tacit.account.ledger")
    from tacit.engines.charging import Charging

    monkeypatch.setenv("TACIT_LEDGER_KEY", "00" * 32)
    monkeypatch.setattr(
        NoiseShown, "count_units", lambda _, texts: [len(text.split()) for text in texts], raising=False
    )
    place = str(tmp_path / "ledger.db")
    with ledgers.open_ledger(place) as ledger:
        charged = replace(job, charging=Charging(ledger, "reviews", place=place), seed=None)
        for step in (14, 9, 9, 9):
            with pytest.MonkeyPatch.context() as patch:
                Death(patch, step)
                with pytest.raises(Killed):
                    rewrite_dataset(charged)
            charged = replace(charged, resume=Staging(staging_url(job.output)).exists())
        facts = rewrite_dataset(charged).facts
        spent = ledger.spent(ledgers.Subject("document", "text number 17, with word and more"))
        assert spent.epsilon == pytest.approx(7 * 1.0)  # seven words, epsilon 1 each, once
        assert facts.rows == 120
        assert all(release.state == "committed" for release in ledger.releases())


def test_a_limit_stops_the_run_before_the_noise_of_the_part(
    job: RewriteJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledgers = pytest.importorskip("tacit.account.ledger")
    from tacit.engines.charging import Charging

    monkeypatch.setenv("TACIT_LEDGER_KEY", "00" * 32)
    monkeypatch.setattr(
        NoiseShown, "count_units", lambda _, texts: [len(text.split()) for text in texts], raising=False
    )
    job = replace(job, mechanism=NoiseShown(log=str(tmp_path / "draws")), seed=None)
    with ledgers.open_ledger(tmp_path / "ledger.db") as ledger:
        ledger.set_limit("document", epsilon=6.5)
        with pytest.raises(TacitError, match="limit"):
            rewrite_dataset(replace(job, charging=Charging(ledger, "reviews", place=str(tmp_path / "ledger.db"))))
    assert not (tmp_path / "draws").exists()


# Bad input --------------------------------------------------------------------------------------------------------


def refused(job: RewriteJob, sentence: str) -> None:
    with pytest.raises(TacitError, match=sentence) as caught:
        rewrite_dataset(job)
    assert caught.value.exit_code == 2
    assert SECRET not in str(caught.value)
    assert not Path(staging_url(job.output)).exists()
    assert not Path(job.output).exists()


def test_files_that_do_not_belong_together(job: RewriteJob, tmp_path: Path) -> None:
    other = Path(job.input) / "other.csv"
    other.write_text(f"id,words\n1,{SECRET}\n")
    refused(job, "'data-0.csv' and 'other.csv' do not have the same columns .*'text'")
    other.rename(other.with_suffix(".jsonl"))
    refused(job, r"'data-0.csv' is csv and 'other.jsonl' is jsonl: a data set has one format")
    other.with_suffix(".jsonl").rename(other.with_suffix(".dat"))
    refused(job, r"'other.dat' does not tell its format")
    other.with_suffix(".dat").rename(other.with_name("_notes.dat"))  # left out, as is usual
    rewrite_dataset(job)
    with pytest.raises(OutputError, match="exists: add force"):
        rewrite_dataset(job)


def test_b8_first_lines_that_differ_are_not_quoted(job: RewriteJob, tmp_path: Path) -> None:
    folder = tmp_path / "headerless"
    folder.mkdir()
    (folder / "a.csv").write_text("text,Anna Smith\n1,2\n")
    (folder / "b.csv").write_text("text,Bob Jones\n1,2\n")
    with pytest.raises(BadInputError, match="do not have the same columns") as error:
        rewrite_dataset(replace(job, input=str(folder), keep=()))
    assert not any(word in str(error.value) for word in ("Anna", "Bob"))


def test_places_that_do_not_work(job: RewriteJob, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    refused(replace(job, input=str(tmp_path / "empty")), "holds no files")
    refused(replace(job, input=str(tmp_path / "nothing")), "there is no file or folder")
    refused(replace(job, input="-"), "standard input")
    refused(replace(job, input="nonsense://bucket/x"), "fsspec does not know")
    refused(replace(job, input="memory://x"), "memory of one process")
    refused(replace(job, input="s3://bucket/x") if _missing("s3fs") else replace(job, input="s4://x"), "s3fs|s4")
    refused(replace(job, output=str(tmp_path / "no" / "out")), "does not exist: make it first")
    with pytest.raises(TacitError, match="lie in each other"):
        rewrite_dataset(replace(job, output=str(Path(job.input) / "out")))
    with pytest.raises(TacitError, match="give its name with output"):
        rewrite_dataset(replace(job, output="-"))


def _missing(library: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(library) is None


def test_a_broken_row_is_told_by_file_and_row_and_the_rest_is_kept(job: RewriteJob) -> None:
    broken = Path(job.input) / "data-2.csv"
    right = broken.read_text()
    broken.write_text(right + f"1,{SECRET},2,3\n")
    with pytest.raises(TacitError, match=r"data-2.csv: row 41 \(line 42\) has 4 fields") as caught:
        rewrite_dataset(job)
    assert SECRET not in str(caught.value)
    assert any("with resume" in note for note in caught.value.__notes__)
    broken.write_text(right)
    assert rewrite_dataset(replace(job, resume=True)).facts.rows == 120


def test_a_failing_mechanism_is_told_by_its_place_only(job: RewriteJob) -> None:
    failing = NoiseShown(mark="number 7,", deed="fail")
    with pytest.raises(TacitError, match=r"noise-shown failed on a block: KeyError in fakes.py") as caught:
        rewrite_dataset(replace(job, mechanism=failing))
    assert "secret" not in str(caught.value)


def test_a_promise_to_users_needs_all_rows_in_one_file(job: RewriteJob, tmp_path: Path) -> None:
    source = tmp_path / "users"
    source.mkdir()
    rows = "who,text\na,one\na,three\nb,seven\n"
    for name in ("1.csv", "2.csv"):
        (source / name).write_text(rows)
    promised = replace(job, mechanism=Counted(epsilon=1.0), keep=(), users=UserRule("who"), input=str(source))
    refused(promised, "user_column needs all rows of the data set in one file")
    (source / "2.csv").unlink()
    assert rewrite_dataset(promised).facts.rows == 2
    assert promised.users is not None
    assert promised.users.left_out == 1


def test_another_version_of_tacit_on_a_worker_is_refused(job: RewriteJob) -> None:
    data = find_data_set(job.input)
    plan = planned(job, data)
    row = next(read_parts({"file": [0], "url": ["x.csv"], "size": [1], "done": ["{}"]}, replace(plan, version="0.0.0")))
    assert "install one version on all machines" in str(outcomes.unpacked(row["payload"][0]))


def test_a_worker_builds_the_mechanism_on_the_device_of_the_job(job: RewriteJob) -> None:
    pytest.importorskip("torch")
    from tacit.documents.dp_mlm import DPMLM

    plan = pickle.loads(pickle.dumps(planned(job, find_data_set(job.input))))
    there = replace(plan, mechanism=DPMLM, parameters=DPMLM(epsilon=50.0, device="cuda:7").get_params(deep=False))
    with pytest.raises(BadParameterError, match="no device 'cuda:7' on this machine"):
        PartWriter(there)._prepared()


@pytest.mark.parametrize("device", ["cuda:7", "auto"])
def test_encoders_of_workers_compute_on_the_device_of_the_job(monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    """Of vectors and of measures; "auto" is the processor there, since machines of a cluster differ."""
    pytest.importorskip("torch")
    from tacit.devices import device_in_use
    from tacit.jobs import cluster as on_cluster

    def handed_out(_: Cluster, work: Callable[..., Any], items: list[tuple[Any, ...]]) -> Iterator[tuple[int, Any]]:
        for place, item in enumerate(items):
            seen.append(item[-1])
            yield place, work({}, *item)

    seen: list[str] = []
    monkeypatch.setattr(on_cluster, "TEXTS_AT_A_TIME", 2)
    monkeypatch.setattr(on_cluster, "handed_out", handed_out)
    monkeypatch.setattr(on_cluster, "device_in_use", lambda: device)
    together = on_cluster.cluster_encoder(Cluster(None, 2), "static")
    if device == "auto":
        assert together.encode(["a b", "c", "d"]).shape == (3, together.dimension)
        assert seen == ["cpu", "cpu"]
        assert device_in_use() == "cpu"
        return
    for work in (
        lambda: together.encode(["a", "b", "c"]),
        lambda: on_cluster._measured({}, ["a"], ["a"], "exact", "static", "", 5, on_cluster.device_of_workers()),
        lambda: on_cluster._with_vectors({}, (["a"], 1), encoder="static", device=on_cluster.device_of_workers()),
    ):
        with pytest.raises(BadParameterError, match="no device 'cuda:7' on this machine"):
            work()


def test_a_missing_ray_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setitem(sys.modules, "ray.data", None)
    with pytest.raises(
        MissingExtraError, match=r"the engine 'ray' needs the library 'ray': pip install 'tacit-dp\[ray\]'"
    ):
        cluster(None, 1).__enter__()
    with pytest.raises(BadParameterError, match="workers must be at least 1"):
        cluster(None, 0).__enter__()


def test_an_actor_tells_errors_without_texts() -> None:
    def careless(memory: dict[str, Any], text: str) -> None:
        raise KeyError(text)

    outcome = crew._Actor().do(3, careless, SECRET)
    place, result, problem = outcome.place, outcome.result, outcome.error
    assert (place, result) == (3, None)
    assert problem is not None
    assert "KeyError in test_ray_parts.py" in str(problem)
    assert SECRET not in str(problem)


def test_local_urls_are_local(tmp_path: Path) -> None:
    assert local_path(f"file://{tmp_path}/x") == tmp_path / "x"
    assert local_path("s3://bucket/x") is None


# The command ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--engine", "spark"], "--engine must be one of 'local' or 'ray', not 'spark'"),
        (["--address", "auto"], "--address belongs to --engine ray"),
        (["--engine", "ray"], "give its name with --output"),
        (["--engine", "ray", "-o", "out", "--diff"], "--diff needs --engine local"),
        (["--engine", "ray", "-o", "out", "--format", "xml"], "there is no format 'xml'"),
        (
            ["--engine", "ray", "-o", "out", "--randomize", "stars", "--label-epsilon", "1", "--labels", "0,1"],
            "--randomize needs --engine local",
        ),
    ],
)
def test_the_command_says_what_does_not_go_together(
    job: RewriteJob, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert run(["rewrite", job.input, "-c", "text", "-m", "random", "-e", "1", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_a_dry_run_on_a_folder_reads_a_header(job: RewriteJob, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["rewrite", job.input, "-c", "text", "--keep", "stars", "-e", "1", "--engine", "ray", "-o", job.output]
    assert run([*command, "--dry-run"]) == 0
    assert "NOT covered: stars" in capsys.readouterr().out
    assert not Path(job.output).exists()


def test_the_command_writes_one_card_for_the_data_set(job: RewriteJob) -> None:
    command = ["rewrite", job.input, "-c", "text", "-e", "1", "--engine", "ray", "-o", f"{job.output}/", "--quiet"]
    assert run(command) == 0
    card = json.loads(Path(f"{job.output}.card.json").read_text())
    assert card["release"]["rows"] == 120
    assert card["release"]["output"] == "out"
    assert "how many files there are, and how many rows each of them has" in card["guarantee"]["not_covered"]
    assert len(content(job.output)) == 3
