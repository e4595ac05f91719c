"""Sentences are for people: with every sentence replaced by "x" the package behaves as before.

Each behavior below is run twice, as it is and with silent errors, warnings, guarantees and findings, and has to give
the same facts: codes, statuses, released bytes, kinds of provenance, verdicts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.card import Card
from tacit.cli.main import run as run_command
from tacit.engines.job import RewriteJob
from tacit.engines.local import rewrite_file
from tacit.errors import TacitError, TacitWarning
from tacit.guarantee import (
    Adjacency,
    Exclusion,
    Guarantee,
    Metric,
    Model,
    Notion,
    Provenance,
    Unit,
    VoidReason,
)
from tacit.lineage import lineage_of
from tacit.report.parts import Finding, Report, Section
from tests.conftest import small_table

TEXTS = ["w1 w2 w3", "w4", "w5 w6", "w7 w8 w9 w10"]
Facts = list[Any]


# Without sentences --------------------------------------------------------------------------------------------------


def silence(patch: pytest.MonkeyPatch) -> None:
    """From now on all sentences of errors, warnings, guarantees and reports are "x"."""
    make_error, check_guarantee, check_finding = TacitError.__init__, Guarantee.__post_init__, Finding.__post_init__

    def error(self: TacitError, code: str, sentence: str, /, **fields: Any) -> None:
        make_error(self, code, "x", **fields)

    def remark(self: TacitError, sentence: str, **fields: Any) -> None:
        self.add_note("x")

    def guarantee(self: Guarantee) -> None:
        check_guarantee(self)
        covered = tuple(Exclusion(_silent(line), Exclusion.kind_of(line)) for line in self.not_covered)
        sources = tuple(_silent_provenance(item) for item in self.provenance)
        set_field(self, "not_covered", covered)
        set_field(self, "assumptions", tuple(map(_silent, self.assumptions)))
        set_field(self, "history", tuple(map(_silent, self.history)))
        set_field(self, "provenance", sources)
        set_field(self, "void", self.void and "x")
        set_field(self, "metric", None if self.metric is None else replace(self.metric, name="x"))

    def finding(self: Finding) -> None:
        check_finding(self)
        for name in ("name", "sentence", "why"):
            set_field(self, name, "x")

    def warning(self: TacitWarning, *_: Any) -> None:
        Warning.__init__(self, "x")
        self.args = ("x",)

    patch.setattr(TacitError, "__init__", error)
    patch.setattr(TacitError, "add_remark", remark)
    patch.setattr(TacitWarning, "__init__", warning)
    patch.setattr(Guarantee, "__post_init__", guarantee)
    patch.setattr(Finding, "__post_init__", finding)


def set_field(thing: object, name: str, value: object) -> None:
    object.__setattr__(thing, name, value)


def _silent_provenance(item: Provenance) -> Provenance:
    return replace(item, name=_silent(item.name), source=_silent(item.source), paid_by=item.paid_by and "x")


SPOKEN: dict[str, str] = {}


def _silent(line: str) -> str:
    """ "x", "xx" and so on: a card keeps equal lines once, so different ones stay different."""
    return line if not line.strip("x") else SPOKEN.setdefault(line, "x" * (len(SPOKEN) + 1))


def test_silence_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    silence(monkeypatch)
    assert str(TacitError("no-rows", "there are {rows} rows", rows=3)) == "x"
    assert str(TacitWarning("look out")) == "x"
    promise = Guarantee(
        notion=Notion.METRIC, epsilon=1.0, unit=Unit.TOKEN, adjacency=Adjacency.ANY_TWO, mechanism="m",
        metric=Metric("Euclidean distance", 2.0), assumptions=("a",), not_covered=("b",),
        provenance=(Provenance("vectors", "GloVe"),),
    )  # fmt: skip
    assert not "".join((*promise.assumptions, *promise.not_covered, promise.provenance[0].source)).strip("x")
    assert promise.metric is not None
    assert promise.metric.name == "x"
    assert Report("r", [Section("s", findings=[Finding("n", tacit_light(), "s")])]).findings[0].sentence == "x"


def tacit_light() -> Any:
    from tacit.report.parts import Light

    return Light.NONE


# Behaviors ----------------------------------------------------------------------------------------------------------


def code_of(action: Callable[[], object]) -> str:
    """The code of the error that an action ends with, or "done"."""
    try:
        action()
    except TacitError as error:
        return error.code
    return "done"


def promise_facts(g: Guarantee) -> Facts:
    """What code may know of a guarantee."""
    kind = None if g.metric is None else (g.metric.kind, g.metric.diameter, g.metric.typical)
    return [
        g.notion, g.epsilon, g.delta, g.slack, g.unit, g.adjacency, g.model, kind, g.void_reason,
        [(item.kind, item.public) for item in g.provenance], [Exclusion.kind_of(line) for line in g.not_covered],
    ]  # fmt: skip


def rewriting(folder: Path) -> Facts:
    """Releases with a test seed, what their cards promise, and refusals."""
    facts: Facts = []
    for mechanism in ("santext", "santext+", "laplace", "tem", "custext"):
        release = tacit.rewrite(TEXTS, mechanism, epsilon=2.0, vectors="vectors.txt", seed=3)
        facts.append((mechanism, list(release.data), promise_facts(release.card.guarantee), release.card.verdict))
    mechanism = tacit.build("santext", {"epsilon": 1.0, "vectors": "vectors.txt"})
    whole = mechanism.guarantee(secure=True).for_document(3).over_diameter()
    facts.append((promise_facts(whole), Card(whole).is_nominal))
    facts.append(code_of(lambda: whole.then(mechanism.guarantee(secure=True))))
    facts.append(code_of(lambda: tacit.rewrite("in.csv", "santext", epsilon=2.0, vectors="vectors.txt", columns="z")))
    facts.append(code_of(lambda: tacit.rewrite("in.csv", "nothing", epsilon=2.0)))
    facts.append(code_of(lambda: tacit.rewrite(TEXTS, "santext", epsilon=-1.0, vectors="vectors.txt")))
    return facts


def commands(folder: Path) -> Facts:
    """Exit codes of the command line, and what is there afterwards."""
    common = ["rewrite", "in.csv", "--vectors", "vectors.txt", "-e", "2", "--seed", "3", "-o", "out.csv", "-q"]
    codes = [
        run_command([*common, "--column", "text"]),
        run_command([*common, "--column", "text"]),  # it exists
        run_command([*common, "--column", "text", "--force"]),
        run_command([*common, "--column", "nothing", "--force"]),
        run_command(["rewrite", "in.csv", "-e", "2", "-o", "other.csv", "--column", "text", "--refuse-nominal", "-q",
                     "--vectors", "vectors.txt"]),
        run_command(["audit", "mechanism", "santext", "-e", "2", "--vectors", "vectors.txt", "--words", "10"]),
    ]  # fmt: skip
    return [codes, Path("out.csv").read_text(), sorted(path.name for path in folder.glob("*.csv*"))]


def resuming(folder: Path) -> Facts:
    """A run that is stopped and goes on, and what it refuses meanwhile."""
    mechanism = tacit.build("santext", {"epsilon": 2.0, "vectors": "vectors.txt"})
    job = RewriteJob(mechanism=mechanism, input="long.csv", output="resumed.csv", columns=("text",), seed=5,
                     block_characters=200)  # fmt: skip
    rewrite_file(replace(job, output="whole.csv"))
    blocks = iter(range(3))

    def stop(originals: object, released: object) -> None:
        if next(blocks, None) is None:
            raise KeyboardInterrupt

    facts: Facts = [code_of(lambda: rewrite_file(job, on_block=stop)), Path("resumed.csv").exists()]
    facts.append(code_of(lambda: rewrite_file(job)))
    facts.append(code_of(lambda: rewrite_file(replace(job, resume=True, columns=("id",)))))
    facts.append(code_of(lambda: rewrite_file(replace(job, resume=True))))
    facts.append(Path("resumed.csv").read_bytes() == Path("whole.csv").read_bytes())
    facts.append(code_of(lambda: rewrite_file(replace(job, resume=True))))
    return facts


def requests(folder: Path) -> Facts:
    """Statuses and codes of the service, and how its jobs end."""
    pytest.importorskip("fastapi")
    from starlette.testclient import TestClient

    from tacit.serve.app import create_app
    from tacit.serve.settings import ServiceSettings
    from tests.serve.waiting import finished

    settings = {"mechanism": "santext", "epsilon": 2.0, "options": {"vectors": "vectors.txt"}}
    service = ServiceSettings(state=folder / "state", allowed=(("vectors", "vectors.txt"),))
    facts: Facts = []
    with TestClient(create_app(service, jobs_apart=False), base_url="http://localhost") as client:
        for body in (
            {**settings, "texts": TEXTS},
            {**settings, "texts": TEXTS, "epsilon": -1},
            {**settings, "texts": TEXTS, "mechanism": "nothing"},
            {**settings, "texts": TEXTS, "options": {"vectors": "/etc/passwd"}},
            {**settings, "texts": TEXTS, "options": {"seed": 1}},
            {**settings, "texts": TEXTS, "options": {"nothing": 1}},
            {"texts": 3},
        ):
            answer = client.post("/v1/rewrite", json=body)
            error = answer.json().get("error", {})
            facts.append((answer.status_code, error.get("code"), error.get("cause"), sorted(error.get("fields") or {})))
        for name, content, more in (
            ("in.txt", b"w1 w2\n", {}),
            ("in.csv", b"text,more\nw1 w2,a\n", {"columns": ["text"]}),
            ("in.csv", b"text,more\nw1 w2,a\n", {"columns": ["nothing"]}),
            ("in.csv", b"text,more\nw1 w2,a\nw1\n", {"columns": ["text"]}),
            ("in.csv", b"", {"columns": ["text"]}),
        ):
            form = {"files": {"file": (name, content)}, "data": {"settings": json.dumps({**settings, **more})}}
            sent = client.post("/v1/jobs", **form)
            job = finished(client, sent.json()["id"]) if sent.status_code < 300 else {}
            facts.append((sent.status_code, job.get("state"), job.get("resumable"), job.get("error") is not None))
    return facts


PAID = {
    "notion": Notion.APPROXIMATE, "epsilon": 2.0, "delta": 1e-6, "model": Model.CENTRAL, "unit": Unit.RECORD,
    "adjacency": Adjacency.ADD_REMOVE, "mechanism": "DP-SGD",
}  # fmt: skip


def training_lineage(folder: Path) -> Facts:
    """Which weights count as public or paid, after training on all kinds of text and weights."""
    from tacit.training.origin import Origin, released_text

    paid = Guarantee(**PAID)
    void = paid.voided("it was trained without noise", VoidReason.NO_NOISE)
    facts: Facts = []
    for number, origin in enumerate(
        (
            Origin(),
            Origin(public="Tatoeba"),
            Origin(start=paid),
            Origin(start=paid, public="Tatoeba"),
            Origin(start=void),
            Origin(start=void, start_public="Tatoeba"),
            Origin(from_scratch=True),
            Origin(start=void, public="Tatoeba"),
            Origin(vocabulary=paid),
            Origin(released=paid),
        )
    ):
        for own in (paid, void):
            promise = origin.with_training(own, "m")
            place = folder / f"model-{number}-{own.is_private}"
            place.mkdir()
            (place / "card.json").write_text(Card(promise).to_json())
            (place / "task.json").write_text(json.dumps({"public": origin.public} if origin.public else {}))
            lineage = lineage_of(place)
            facts.append((promise_facts(promise), lineage.public, lineage.unpaid is None, lineage.paid is None))
            facts.append(code_of(lambda: lineage.provenance("weights", "m")))  # noqa: B023
    tacit.rewrite("in.csv", "santext", epsilon=2.0, vectors="vectors.txt", columns="text", output="released.csv")
    card = Path("released.csv.card.json")
    for path, data, rows, read in (
        (card, "released.csv", 4, ["text"]), (card, "in.csv", 4, ["text"]), (card, "released.csv", 5, ["text"]),
        (card, "released.csv", 4, ["id"]), (Path("missing.json"), "released.csv", 4, ["text"]),
    ):  # fmt: skip
        facts.append(code_of(lambda: released_text(path, data, rows, read)))  # noqa: B023
    return facts


def audits(folder: Path) -> Facts:
    """Verdicts of audits: exact checks of mechanisms, of matrices, and a refuted claim."""
    facts: Facts = []
    for report in (
        tacit.audit("santext", epsilon=2.0, vectors="vectors.txt", words="12"),
        tacit.audit("custext", epsilon=2.0, vectors="vectors.txt", words="12"),
        tacit.audit(matrix=[[0.75, 0.25], [0.25, 0.75]], epsilon=math.log(3) + 0.01),
        tacit.audit(matrix=[[0.75, 0.25], [0.25, 0.75]], epsilon=1.0),
    ):
        facts.append((report.refuted, report.light, [(finding.light, finding.refuted) for finding in report.findings]))
    facts.append(code_of(lambda: tacit.audit(matrix=[[0.75, 0.2], [0.25, 0.75]], epsilon=1.0)))
    facts.append(code_of(lambda: tacit.audit("santext", vectors="vectors.txt", metric="hamming", epsilon=1.0)))
    return facts


BEHAVIORS = (rewriting, commands, resuming, requests, training_lineage, audits)


@contextmanager
def work_folder(path: Path) -> Iterator[Path]:
    """A folder with a small table of word vectors and files to rewrite, as the working directory."""
    table = small_table(words=40, dimension=3)
    rows = zip(table.words, table.vectors.tolist(), strict=True)
    path.mkdir()
    (path / "vectors.txt").write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows))
    (path / "in.csv").write_text("id,text\n" + "".join(f"{i},{text}\n" for i, text in enumerate(TEXTS)))
    (path / "long.csv").write_text("id,text\n" + "".join(f"{i},{TEXTS[i % 4]}\n" for i in range(400)))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        patch.setenv("TACIT_LEDGER_KEY", "a key for tests, nothing more")
        yield path


@pytest.mark.filterwarnings("ignore::tacit.errors.TacitWarning")
@pytest.mark.parametrize("behavior", BEHAVIORS, ids=lambda behavior: behavior.__name__)
def test_behavior_does_not_depend_on_sentences(behavior: Callable[[Path], Facts], tmp_path: Path) -> None:
    with work_folder(tmp_path / "spoken") as folder:
        spoken = behavior(folder)
    with work_folder(tmp_path / "silent") as folder, pytest.MonkeyPatch.context() as patch:
        silence(patch)
        silent = behavior(folder)
    assert silent == spoken
