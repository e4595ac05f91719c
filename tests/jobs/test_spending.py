"""Every job that spends budget: set aside before the noise, spent when the release is there, charged once."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from transformers import PreTrainedTokenizerBase

import tacit
from tacit.account.ledger import BudgetExceededError, Reservation, open_ledger
from tacit.account.ledger.amounts import ReleaseRecord
from tacit.errors import BadParameterError
from tacit.guarantee import Guarantee, Unit
from tacit.jobs import graph, selective, vocabulary
from tacit.jobs.registry import config_class, job_names
from tacit.jobs.training.result import TrainingProgress
from tacit.training.run import StepReport
from tacit.training.tasks import Classification
from tests.jobs.test_graph import tables
from tests.training.test_run import rows, tiny, tokenizer  # noqa: F401
from tests.training.test_synthesis import PLACES, small_model, small_rows, small_tokenizer

EPSILON = 8.0
Options = Mapping[str, Any]


def written(path: Path, table: Sequence[Mapping[str, object]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)


@pytest.fixture(scope="module")
def data(tokenizer: PreTrainedTokenizerBase, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    place = tmp_path_factory.mktemp("spending")
    tiny(tokenizer, Classification(labels=["neg", "pos"])).save_pretrained(place / "reader")
    tokenizer.save_pretrained(place / "reader")
    words = small_tokenizer()
    small_model(words).save_pretrained(place / "writer")
    words.save_pretrained(place / "writer")
    written(place / "reviews.csv", [{**row, "user": f"u{i % 30}"} for i, row in enumerate(rows(120))])
    written(place / "requests.csv", small_rows(120))
    (place / "places.txt").write_text("\n".join(PLACES))
    nodes, links, _ = tables()
    written(place / "nodes.csv", nodes)
    written(place / "links.csv", links)
    vectors = [{"vector": [float(i % 2), 1.0], "label": "ab"[i % 2]} for i in range(80)]
    (place / "vectors.jsonl").write_text("".join(json.dumps(row) + "\n" for row in vectors))
    return place


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TACIT_LEDGER_KEY", "a key for tests, nothing more")
    with open_ledger(tmp_path / "ledger.db"):
        return tmp_path / "ledger.db"


def releases(ledger: Path) -> list[ReleaseRecord]:
    with open_ledger(ledger) as opened:
        return list(opened.releases())


def train(data: Path, output: Path, **more: Any) -> Guarantee:
    shared = {"model": str(data / "reader"), "strategy": "head", "batch": 40, "epochs": 1, "length": 16}
    return tacit.train("classify", data / "reviews.csv", output=output, epsilon=EPSILON, **shared, **more).guarantee


def train_on_vectors(data: Path, output: Path, **more: Any) -> Guarantee:
    options = {"vectors": str(data / "vectors.jsonl"), "labels": "a,b"}
    return tacit.train("classify", output=output, epsilon=EPSILON, **options, **more).guarantee


def federate(data: Path, output: Path, **more: Any) -> Guarantee:
    shared = {"model": str(data / "reader"), "cohort": 10, "epochs": 1, "length": 16, "user_column": "user"}
    made = tacit.federate("classify", data / "reviews.csv", output=output, epsilon=EPSILON, **shared, **more)
    return made.guarantee


def train_selectively(data: Path, output: Path, **more: Any) -> Guarantee:
    shared = {"model": str(data / "writer"), "strategy": "full", "length": 12, "batch": 40, "epochs": 1,
              "sensitive": str(data / "places.txt"), "first": "private", "first_epsilon": EPSILON}  # fmt: skip
    return selective.train(data / "requests.csv", output=output, epsilon=EPSILON, **shared, **more).guarantee


def synthesize(data: Path, output: Path, **more: Any) -> Guarantee:
    shared = {"model": str(data / "writer"), "strategy": "full", "length": 16, "batch": 40, "epochs": 1, "rows": 2,
              "label_columns": "intent", "output": output.with_suffix(".csv"), "keep_model": output,
              "keep_duplicates": True, "sample_seed": 1}  # fmt: skip
    made = tacit.synthesize(data / "requests.csv", by="training", epsilon=EPSILON, **shared, **more)
    return made.card.guarantee


def train_graph(data: Path, output: Path, **more: Any) -> Guarantee:
    shared = {"method": "words", "epsilon": EPSILON}
    return graph.train(data / "nodes.csv", data / "links.csv", output=output, **shared, **more).guarantee


def build_vocabulary(data: Path, output: Path, **more: Any) -> Guarantee:
    options = {"kind": "words", "epsilon": EPSILON}
    return vocabulary.build(data / "reviews.csv", output=output, **options, **more).guarantee


@dataclass(frozen=True)
class Way:
    """A job, the data set that is charged, its unit, and whether a stopped run can go on."""

    run: Callable[..., Guarantee]
    dataset: str
    unit: Unit = Unit.RECORD
    resumes: bool = True


WAYS = [
    Way(train, "reviews.csv"),
    Way(train_on_vectors, "vectors.jsonl", resumes=False),
    Way(federate, "reviews.csv", Unit.USER),
    Way(train_selectively, "requests.csv"),
    Way(synthesize, "requests.csv"),
    Way(train_graph, "nodes.csv", Unit.NODE, resumes=False),
    Way(build_vocabulary, "reviews.csv", resumes=False),
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.run.__name__)
def test_budget_is_refused_before_the_noise_or_spent_once(
    way: Way, data: Path, ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out"
    before = sorted(tmp_path.iterdir())
    with open_ledger(ledger) as opened:
        opened.set_limit("dataset", epsilon=EPSILON / 2, delta=0.1)
    with pytest.raises(BudgetExceededError, match="is left, and this release adds") as refused:
        way.run(data, output, ledger=str(ledger))
    assert refused.value.code == "limit-broken"
    assert sorted(tmp_path.iterdir()) == before, "a refused run leaves nothing behind"
    assert releases(ledger) == []

    with open_ledger(ledger) as opened:
        opened.set_limit("dataset", epsilon=3 * EPSILON, delta=0.1)
    whole = Reservation.commit

    def power_cut(reservation: Reservation) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Reservation, "commit", power_cut)
    with pytest.raises(KeyboardInterrupt):
        way.run(data, output, ledger=str(ledger))
    (record,) = releases(ledger)
    assert record.state == "reserved", "what was set aside counts as spent"

    monkeypatch.setattr(Reservation, "commit", whole)
    more: Options = {"resume": True} if way.resumes else {}
    promised = way.run(data, output if way.resumes else tmp_path / "again", ledger=str(ledger), **more)
    charged = releases(ledger)
    assert len(charged) == (1 if way.resumes else 2), "a run that goes on is charged once"
    assert {record.state for record in charged} == ({"committed"} if way.resumes else {"committed", "reserved"})
    for record in charged:
        assert (record.dataset, record.guarantee.unit) == (way.dataset, way.unit)
        assert record.guarantee.epsilon == pytest.approx(promised.epsilon)
        assert record.guarantee.delta == pytest.approx(promised.delta)


def test_a_run_that_is_stopped_between_steps_is_charged_once(data: Path, ledger: Path, tmp_path: Path) -> None:
    class Stopped(TrainingProgress):
        def stepped(self, now: StepReport) -> None:
            raise KeyboardInterrupt

    options: Options = {"ledger": str(ledger), "dataset": "the reviews"}
    with pytest.raises(KeyboardInterrupt):
        train(data, tmp_path / "m", progress=Stopped(), **options)
    assert [record.state for record in releases(ledger)] == ["reserved"]
    kept = tmp_path / "m.private" / "charge.json"
    assert kept.stat().st_mode & 0o077 == 0
    train(data, tmp_path / "m", resume=True, **options)
    assert [(record.state, record.dataset) for record in releases(ledger)] == [("committed", "the reviews")]
    assert json.loads(kept.read_text())["token"] not in (tmp_path / "m" / "card.json").read_text()
    assert "the reviews" not in (tmp_path / "m" / "card.json").read_text()


def test_a_ledger_is_refused_where_nothing_is_spent(data: Path, ledger: Path, tmp_path: Path) -> None:
    texts = rows(20)
    with pytest.raises(BadParameterError, match="nothing is spent"):
        tacit.train("classify", texts, output=tmp_path / "m", public="film reviews", ledger=str(ledger))
    with pytest.raises(BadParameterError, match="no name for the ledger"):
        tacit.train("classify", texts, output=tmp_path / "m", epsilon=1, ledger=str(ledger))
    with pytest.raises(BadParameterError, match="is for a ledger"):
        train(data, tmp_path / "m", dataset="reviews")
    with pytest.raises(BadParameterError, match="nothing is spent"):
        tacit.synthesize(by="training", from_model=tmp_path, output=tmp_path / "r.csv", ledger=str(ledger))


SPENDING = (
    "train ", "federate ", "synthesize", "graph train", "vocabulary", "sketch", "topics", "rewrite", "embed", "answer",
)  # fmt: skip
FREE = {"train check", "sketch merge", "train ensemble"}


def test_every_job_that_spends_has_a_ledger() -> None:
    spending = [job for job in job_names() if job.startswith(SPENDING) and job not in FREE]
    assert len(spending) > 20
    assert [job for job in spending if not {"ledger", "dataset"} <= set(config_class(job).model_fields)] == []
