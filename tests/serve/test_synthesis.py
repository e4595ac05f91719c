"""Corpora in place of uploaded rows: what comes out, who may fetch it, and that a sketch is paid for exactly once."""

from __future__ import annotations

import csv
import io
import json
import stat

import pytest

from tacit.account.ledger import Subject, open_ledger
from tacit.card import Card
from tacit.jobs import sketch as building
from tacit.matching.artifact import read_sketch
from tacit.matching.pool import load_pool, write_pool
from tacit.matching.subjects import without_subjects
from tacit.serve import synthesis
from tacit.serve.answers import CorpusView
from tacit.serve.keys import KeyBudget, Keys
from tests.serve.waiting import finished

SENTENCES = {
    "weather": ["Will it rain in Paris tomorrow?", "It is snowing again.", "How warm is it in Rome?"],
    "music": ["Play a song by Bach.", "Turn the volume up.", "I like this guitar solo."],
}
SECRET = "zanzibarquux"
PAID = 4.0
"""The ledger counts changing a record, which is removing it and adding another: twice epsilon 2."""
SETTINGS = {"epsilon": 2.0, "column": "text", "label_column": "intent", "labels": ["weather", "music"], "rows": 200}


@pytest.fixture(scope="module")
def few_sentences(tmp_path_factory):
    """A small public pool, which takes a tenth of a second to read."""
    path, pool = tmp_path_factory.mktemp("pool") / "few.tacit", load_pool("general")
    write_pool(path, "few", pool.sources, [(sentence, 0, "") for sentence in pool.sentences[:2_000]])
    return path


@pytest.fixture(autouse=True)
def _small_pool(few_sentences, monkeypatch):
    monkeypatch.setattr(synthesis, "USUAL_POOLS", (str(few_sentences),))


def private_file(rows: int = 600) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["text", "intent", "who"])
    lines = [(f"{words} {SECRET}", label) for label, texts in SENTENCES.items() for words in texts]
    for number in range(rows):
        writer.writerow([*lines[number % len(lines)], f"user {number % 50}"])
    return text.getvalue().encode()


def form(content: bytes | None = None, name: str = "mail.csv", **changes):
    settings = {name: value for name, value in {**SETTINGS, **changes}.items() if value is not None}
    content = private_file() if content is None else content
    return {"files": {"file": (name, content)}, "data": {"settings": json.dumps(settings)}}


def sent(client, **changes):
    answer = client.post("/v1/jobs/synthesize", **form(**changes))
    assert answer.status_code == 202, answer.text
    return answer.json()


def spent(client) -> float:
    return client.get("/v1/ledger").json()["key"]["spent"]["epsilon"]


def test_a_file_becomes_a_corpus_with_everything_beside_it(client, tmp_path):
    job = sent(client, sentences=1)  # noisy lengths now and then give a text of several
    assert (job["kind"], job["state"]) == ("synthesize", "queued")
    done = finished(client, job["id"], 120)
    assert (done["state"], done["error"]) == ("done", None)
    assert abs(done["rows"] - 200) <= 2
    place = f"/v1/jobs/{job['id']}"
    corpus = client.get(f"{place}/result")
    assert 'filename="corpus.csv"' in corpus.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(corpus.text)))
    assert set(rows[0]) == {"text", "intent"}
    assert {row["intent"] for row in rows} == set(SENTENCES)
    public = set(load_pool("general").sentences)
    assert set(without_subjects([row["text"] for row in rows], list(SENTENCES))) <= public
    card = Card.from_json(client.get(f"{place}/card.json").text)
    assert (card.guarantee.epsilon, card.guarantee.unit.value, card.facts.rows) == (2.0, "record", len(rows))
    assert client.get(f"{place}/card.md").text.startswith("# Privacy card")
    assert client.get(f"{place}/card.html").headers["content-security-policy"].startswith("sandbox")
    view = CorpusView.model_validate(client.get(f"{place}/view").json())
    assert {label.name for label in view.labels} == set(SENTENCES)
    assert all(set(label.rows) <= {row["text"] for row in rows} for label in view.labels)
    report = client.get(f"{place}/report")
    assert report.headers["content-security-policy"].startswith("sandbox")
    assert "Tatoeba" in client.get(f"{place}/attribution").text
    assert SECRET not in corpus.text + report.text + client.get(f"{place}/view").text
    (tmp_path / "s.tacit").write_bytes(client.get(f"{place}/sketch").content)
    assert read_sketch(tmp_path / "s.tacit").labels == ("weather", "music")
    folder = tmp_path / "state" / "jobs" / job["id"]
    assert not (folder / "input.csv").exists()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_labels_of_several_columns_stay_together_and_sentences_are_varied_at_no_cost(client):
    """What a row is about decides how it is rated here; the corpus has both columns, and they fit each other."""
    rows = [
        f"{words},{label},{'good' if label == 'music' else 'bad'}"
        for label, texts in SENTENCES.items() for words in texts for _ in range(200)
    ]  # fmt: skip
    content = "\n".join(["text,intent,rating", *(row.replace("?", "") for row in rows)]).encode()
    both = {"label_columns": ["intent", "rating"], "labels_of": {"intent": list(SENTENCES), "rating": ["good", "bad"]}}
    wrong = client.post(
        "/v1/jobs/synthesize", **form(content, label_column=None, labels=None, label_columns=["intent"])
    )
    assert wrong.status_code == 422
    job = sent(client, content=content, label_column=None, labels=None, evolve=1, epsilon=8.0, **both)
    done = finished(client, job["id"], 180)
    assert (done["state"], done["error"]) == ("done", None)
    place = f"/v1/jobs/{job['id']}"
    corpus = list(csv.DictReader(io.StringIO(client.get(f"{place}/result").text)))
    assert set(corpus[0]) == {"text", "intent", "rating"}
    fitting = sum((row["intent"] == "music") == (row["rating"] == "good") for row in corpus)
    assert fitting > 0.9 * len(corpus)
    view = CorpusView.model_validate(client.get(f"{place}/view").json())
    assert {label.name for label in view.labels} == set(SENTENCES)
    assert "1 rounds against the released sketch" in client.get(f"{place}/card.md").text
    assert spent(client) == 16.0


def test_a_sketch_is_charged_to_the_key_and_to_everybody_in_the_data_set(client, tmp_path):
    assert finished(client, sent(client, dataset="mail")["id"], 120)["state"] == "done"
    assert spent(client) == PAID
    with open_ledger(str(tmp_path / "state" / "ledger.sqlite")) as ledger:
        assert ledger.spent(Subject("dataset", "mail")).epsilon == 2.0  # where presence is what counts
        ledger.set_limit("document", epsilon=1.5 * PAID, delta=0.5)
    refused = finished(client, sent(client, dataset="mail")["id"], 120)
    assert refused["state"] == "failed"
    assert "per document" in refused["error"]
    assert spent(client) == PAID


def test_a_retried_job_pays_once_and_gives_out_one_sketch(client, monkeypatch):
    """Killed after the sketch was saved, before anything else: the next attempt draws from the sketch that is there."""
    built, attempts = [], []
    original = synthesis.released_sketch
    monkeypatch.setattr(synthesis, "released_sketch", lambda *given: built.append(1) or original(*given))

    def fails_once(*given, **options):
        attempts.append(1)
        if len(attempts) == 1:
            raise OSError("the process died")
        return drawn(*given, **options)

    drawn = synthesis._drawn
    monkeypatch.setattr(synthesis, "_drawn", fails_once)
    job = sent(client)
    failed = finished(client, job["id"], 120)
    assert (failed["state"], failed["resumable"]) == ("failed", True)
    assert spent(client) == PAID
    assert client.get(f"/v1/jobs/{job['id']}/sketch").status_code == 409
    assert client.post(f"/v1/jobs/{job['id']}/resume").status_code == 202
    assert finished(client, job["id"], 120)["state"] == "done"
    assert (len(built), len(attempts)) == (1, 2)
    assert spent(client) == PAID


def test_a_job_that_dies_between_paying_and_saving_pays_once(client, monkeypatch):
    saved, deaths = building.save_sketch, []

    def dies_once(*given, **options):
        if not deaths:
            deaths.append(1)
            raise OSError("the process died")
        return saved(*given, **options)

    monkeypatch.setattr(building, "save_sketch", dies_once)
    job = sent(client)
    failed = finished(client, job["id"], 120)
    assert (failed["state"], failed["resumable"]) == ("failed", True)
    assert spent(client) == PAID
    client.post(f"/v1/jobs/{job['id']}/resume")
    assert finished(client, job["id"], 120)["state"] == "done"
    assert spent(client) == PAID


def test_two_jobs_on_the_same_file_pay_twice(client):
    for _ in range(2):
        assert finished(client, sent(client)["id"], 120)["state"] == "done"
    assert spent(client) == 2 * PAID


def test_a_key_without_enough_budget_gets_nothing_and_pays_nothing(start, tmp_path):
    from tacit.serve.budget import add_key
    from tacit.serve.keys import NO_OPTIONS
    from tacit.serve.settings import ServicePlace

    place = ServicePlace(state=tmp_path / "state")
    secret, _ = add_key(place, "ward", 600, KeyBudget(3.0, 1e-3), NO_OPTIONS)
    other, _ = add_key(place, "other", 600, None, NO_OPTIONS)
    client = start()
    headers = {"authorization": f"Bearer {secret}"}
    answer = client.post("/v1/jobs/synthesize", **form(), headers=headers)
    failed = finished(client, answer.json()["id"], 120, headers=headers)
    assert failed["state"] == "failed"
    assert "epsilon" in failed["error"]
    assert client.get("/v1/ledger", headers=headers).json()["key"]["spent"]["epsilon"] == 0.0
    again = client.post("/v1/jobs/synthesize", **form(epsilon=1.0), headers=headers).json()
    assert finished(client, again["id"], 120, headers=headers)["state"] == "done"
    assert client.get("/v1/ledger", headers=headers).json()["key"]["spent"]["epsilon"] == 2.0
    strange = {"authorization": f"Bearer {other}"}
    for part in ("", "/result", "/sketch", "/view", "/report", "/attribution"):
        assert client.get(f"/v1/jobs/{again['id']}{part}", headers=strange).status_code == 404
    assert Keys(place.state).named("ward") is not None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"labels": None}, "'labels'"),
        ({"declare_labels_public": True}, "'labels'"),
        ({"label_column": None}, "'label_column'"),
        ({"labels": None, "label_column": "topic", "declare_labels_public": True}, "no column 'topic'"),
        ({"epsilon": 0}, "epsilon"),
        ({"labels": ["a", "a"]}, "twice"),
        ({"topics": 5}, "'topics'"),
        ({"seed": 1}, "not known"),
        ({"name": "mail.docx"}, "format"),
    ],
)
def test_what_is_wrong_is_said_at_once(client, changes, words):
    answer = client.post("/v1/jobs/synthesize", **form(**changes))
    assert answer.status_code == 422, answer.text
    assert words in answer.json()["error"]["message"]
    assert client.get("/v1/jobs").json()["jobs"] == []


def test_a_file_without_rows_or_with_too_much_text_costs_nothing(start):
    client = start(unpacked=5_000)
    for content, words in ((b"text,intent,who\n", "no rows"), (None, "unpacks")):
        job = sent(client, content=content)
        failed = finished(client, job["id"], 120)
        assert failed["state"] == "failed"
        assert words in failed["error"]
    assert spent(client) == 0.0


def test_topics_of_a_text_file_and_labels_that_are_declared(client):
    lines = b"\n".join(words.encode() for texts in SENTENCES.values() for words in texts * 50)
    topics = sent(client, content=lines, name="diary.txt", column=None, label_column=None, labels=None, topics=4)
    declared = sent(client, labels=None, declare_labels_public=True)
    assert finished(client, topics["id"], 120)["state"] == "done"
    assert finished(client, declared["id"], 120)["state"] == "done"
    card = client.get(f"/v1/jobs/{declared['id']}/card.json").json()
    assert any("declared public" in line for line in card["guarantee"]["assumptions"])


def test_a_rewritten_file_has_no_sketch(client, job_form):
    job = client.post("/v1/jobs", **job_form(columns=["text"])).json()
    assert (job["kind"], finished(client, job["id"])["state"]) == ("rewrite", "done")
    for part in ("sketch", "view", "report", "attribution"):
        assert client.get(f"/v1/jobs/{job['id']}/{part}").status_code == 404


def test_a_service_that_refuses_nominal_releases_refuses_these_as_well(start):
    client = start(refuse_nominal=True)
    failed = finished(client, sent(client, epsilon=40.0)["id"], 120)
    assert failed["state"] == "failed"
    assert "nominal" in failed["error"]
    assert spent(client) == 0.0


def test_a_worker_process_makes_the_corpus_within_its_memory(start):
    client = start(jobs_apart=True)
    assert finished(client, sent(client)["id"], 120)["state"] == "done"
