"""The cluster engine over a real Ray, started once for this module: two workers on this machine.

What Ray must not change is tested in `test_ray_parts.py`; here it is shown that it does not: the same bytes as the
local engine, a worker killed in the middle, a command killed in the middle, nothing private in Ray's logs.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.engines.cluster.rewrite import rewrite_dataset
from tacit.engines.cluster.session import Cluster, cluster
from tacit.engines.cluster.staging import staging_url
from tacit.engines.job import RewriteJob
from tacit.engines.local import rewrite_file
from tacit.errors import BadInputError, MissingExtraError, TacitError

from .fakes import NoiseShown, draws_by_text, processes
from .test_ray_parts import content, make_csv, make_folder

ROOT = Path(__file__).parent.parent.parent

# Ray Data's own settings and Ray's subprocesses; none of it is about our code.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`use_push_based_shuffle` is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::UserWarning:ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    context = cluster(None, 2)
    try:
        result = context.__enter__()
    except MissingExtraError as error:
        pytest.skip(str(error))
    yield result
    context.__exit__(None, None, None)


@pytest.fixture
def job(tmp_path: Path, two_workers: Cluster) -> RewriteJob:
    return RewriteJob(
        mechanism=NoiseShown(log=str(tmp_path / "log")),
        input=str(make_folder(tmp_path / "in")),
        output=str(tmp_path / "out"),
        columns=("text",),
        keep=("stars",),
        workers=2,
        seed=7,
    )


def test_one_file_has_the_bytes_of_the_local_engine_and_two_workers_make_them(job: RewriteJob, tmp_path: Path) -> None:
    job = replace(job, input=str(make_csv(tmp_path / "one.csv", 120)), output=str(tmp_path / "out.csv"))
    slow = replace(job, mechanism=NoiseShown(log=str(tmp_path / "log"), pause=0.2))
    rewrite_dataset(slow)
    local = replace(slow, output=str(tmp_path / "local.csv"), workers=1)
    own_processes = processes(tmp_path / "log")
    rewrite_file(local)
    assert content(job.output) == content(local.output)
    assert len(own_processes) == 2
    assert os.getpid() not in own_processes


def test_a_worker_that_is_killed_changes_nothing_and_rays_files_hold_neither_texts_nor_the_key(
    job: RewriteJob, tmp_path: Path, two_workers: Cluster
) -> None:
    killing = {"log": str(tmp_path / "log"), "mark": "number 50,", "deed": "kill", "times": 1}
    keys: list[str] = []

    def seen(_: Any) -> None:
        keys.append(json.loads((Path(staging_url(job.output)) / "job.json").read_text())["key"])

    facts = rewrite_dataset(replace(job, seed=None, mechanism=NoiseShown(**killing)), progress=seen).facts
    assert (tmp_path / "log.deaths").stat().st_size == 1
    assert facts.rows == 120
    draws = draws_by_text(tmp_path / "log")
    assert len(draws) == 120
    assert all(len(each) == 1 for each in draws.values())
    log = _logged(two_workers)
    assert b"PartWriter" in log
    for secret in (b"number 50", keys[0].encode(), bytes.fromhex(keys[0])):
        assert secret not in log


def test_an_error_on_a_worker_is_one_sentence_and_no_text_is_logged(job: RewriteJob, two_workers: Cluster) -> None:
    failing = NoiseShown(mark="number 77,", deed="fail")
    with pytest.raises(TacitError, match=r"failed on a block: KeyError in fakes\.py") as caught:
        rewrite_dataset(replace(job, mechanism=failing))
    assert caught.value.exit_code == 2
    log = _logged(two_workers)
    assert b"number 77" not in log
    assert b"the secret" not in log


def _logged(result: Cluster) -> bytes:
    """Everything that Ray has written into its folder."""
    folder = Path(result.ray._private.worker._global_node.get_session_dir_path())
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_sentence_vectors_are_those_of_one_process(two_workers: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from tacit.documents.encoder import BATCH_ERROR, SentenceEncoder
    from tacit.jobs import cluster as on_cluster

    monkeypatch.setattr(on_cluster, "TEXTS_AT_A_TIME", 20)
    texts = [f"text number {number} is {'very ' * (number % 7)}short" for number in range(50)]
    try:
        alone = SentenceEncoder().encode(texts)
    except (MissingExtraError, BadInputError) as error:
        pytest.skip(str(error))
    seen: list[tuple[int, int]] = []
    together = on_cluster.ClusterEncoder(two_workers).encode(texts, lambda done, total: seen.append((done, total)))
    assert np.abs(together - alone).max() <= BATCH_ERROR
    assert seen[-1] == (50, 50)


def test_a_registered_encoder_works_on_a_cluster_too(two_workers: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.encoders import load_encoder
    from tacit.jobs import cluster as on_cluster

    monkeypatch.setattr(on_cluster, "TEXTS_AT_A_TIME", 20)
    texts = [f"text number {number} is {'very ' * (number % 7)}short" for number in range(50)]
    alone, together = load_encoder("static"), on_cluster.cluster_encoder(two_workers, "static")
    assert (together.name, together.dimension) == ("static", alone.dimension)
    assert np.array_equal(together.encode(texts), alone.encode(texts))
    assert np.array_equal(together.encode_alone(texts[0]), alone.encode_alone(texts[0]))


def test_a_codebook_gets_the_texts_of_a_folder_and_the_vectors_of_one_process(
    two_workers: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from tacit.documents.codebook_build import public_form
    from tacit.documents.encoder import BATCH_ERROR, SentenceEncoder
    from tacit.evaluation.rows import read_rows
    from tacit.jobs import cluster as on_cluster

    monkeypatch.setattr(on_cluster, "TEXTS_AT_A_TIME", 20)
    folder = make_folder(tmp_path / "in")
    wanted = [text for path in sorted(folder.iterdir()) for text in read_rows(str(path), ("text",)).texts[0]]
    try:
        alone = SentenceEncoder().encode([public_form(text) for text in wanted])
    except (MissingExtraError, BadInputError) as error:
        pytest.skip(str(error))
    seen: list[tuple[int, int]] = []
    texts, vectors = on_cluster.encoded_texts(
        two_workers, str(folder), "text", progress=lambda done, total: seen.append((done, total))
    )
    assert texts == wanted
    assert np.abs(vectors - alone).max() <= BATCH_ERROR
    assert seen[-1][0] == seen[-1][1] > 0


def test_an_evaluation_reads_a_folder_as_if_it_were_one_file(two_workers: Cluster, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    from tacit.evaluation.rows import read_rows
    from tacit.jobs.cluster import read_data_set

    folder = make_folder(tmp_path / "in")
    parts = [read_rows(str(path), ("text",), "stars") for path in sorted(folder.iterdir())]
    rows = read_data_set(two_workers, str(folder), ("text",), "stars")
    assert list(rows.texts[0]) == [text for part in parts for text in part.texts[0]]
    assert list(rows.labels or ()) == [label for part in parts for label in part.labels or ()]
    with pytest.raises(TacitError, match="there is no column 'words'"):
        read_data_set(two_workers, str(folder), ("words",))


SCRIPT = """
import sys
from pathlib import Path
from tacit.engines.job import RewriteJob
from tacit.engines.cluster.rewrite import rewrite_dataset
from tests.engines.fakes import NoiseShown
folder = Path(sys.argv[1])
rewrite_dataset(RewriteJob(
    mechanism=NoiseShown(log=str(folder / "log"), pause=0.5), input=str(folder / "in"), output=str(folder / "out"),
    columns=("text",), keep=("stars",), workers=1,
))
"""


def test_a_command_that_is_killed_goes_on_with_the_same_noise(tmp_path: Path, two_workers: Cluster) -> None:
    """A process with a Ray of its own, killed with everything it started, and resumed here on another Ray."""
    make_folder(tmp_path / "in")
    process = subprocess.Popen(  # with the same PYTHONPATH as the workers here, so that both are the same Tacit
        [sys.executable, "-c", SCRIPT, str(tmp_path)], start_new_session=True, stderr=subprocess.PIPE
    )
    records = tmp_path / "out.partial" / "done"
    deadline = time.monotonic() + 120
    try:
        while not records.is_dir() or len(list(records.glob("*.json"))) < 2:
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.skip("a second Ray did not start on this machine in time")
            time.sleep(0.1)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert not (tmp_path / "out").exists()
    job = RewriteJob(
        mechanism=NoiseShown(log=str(tmp_path / "log"), pause=0.5), input=str(tmp_path / "in"),
        output=str(tmp_path / "out"), columns=("text",), keep=("stars",), workers=2, resume=True,
    )  # fmt: skip
    assert rewrite_dataset(job).facts.rows == 120
    draws = draws_by_text(tmp_path / "log")
    assert len(draws) == 120
    assert all(len(each) == 1 for each in draws.values())
    written = b"".join(content(tmp_path / "out").values()).decode()
    released = {line.rpartition(",")[0] for line in written.splitlines()} - {"text"}
    assert released == {" ".join(map(str, draw)) for each in draws.values() for draw in each}


def test_an_address_where_nobody_answers(monkeypatch: pytest.MonkeyPatch, two_workers: Cluster) -> None:
    monkeypatch.setattr(two_workers.ray, "is_initialized", lambda: False)
    with pytest.raises(BadInputError, match="does not use the Ray client"), cluster("ray://nowhere:1", 1):
        pass
    monkeypatch.setattr(two_workers.ray, "init", _nobody)
    with pytest.raises(BadInputError, match="no Ray cluster answers at 'nowhere:1'"), cluster("nowhere:1", 1):
        pass


def _nobody(**_: Any) -> None:
    raise ConnectionError("Could not find any running Ray instance.")


def test_what_is_wrong_with_the_plan_ends_a_start_in_a_thread(monkeypatch):
    """The cluster is left again, whenever it came up, and an error of the start reaches whoever waits for it."""
    from tacit.engines.cluster import session

    events: list[str] = []

    @contextlib.contextmanager
    def slow(_address, workers):
        time.sleep(0.2)
        if workers == 2:
            raise TacitError("cluster-not-started", "no Ray here")
        events.append("up")
        yield Cluster(None, workers)
        events.append("down")

    monkeypatch.setattr(session, "cluster", slow)
    with session.starting(None, 1) as ready:
        assert ready().workers == 1
        assert events == ["up"]
    assert events == ["up", "down"]
    with session.starting(None, 1):
        pass
    assert events == ["up", "down", "up", "down"]
    with pytest.raises(TacitError, match="no Ray here"), session.starting(None, 2) as ready:
        ready()
