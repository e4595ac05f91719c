"""Mechanisms, calibration, curve, audit, page and reports: all without private text."""

from __future__ import annotations

import pytest

from tacit.account.ledger import open_ledger
from tacit.catalog import build, mechanism_names
from tacit.serve import site
from tacit.serve.keys import Keys


def test_all_mechanisms_are_listed_with_a_range(client):
    answer = client.get("/v1/mechanisms").json()
    assert [entry["name"] for entry in answer["mechanisms"]] == mechanism_names()
    assert answer["default"]["word"] in mechanism_names("word")
    for entry in answer["mechanisms"]:
        assert 0 < entry["epsilon"]["low"] <= entry["epsilon"]["default"] <= entry["epsilon"]["high"]
        assert entry["available"] is (entry["why_not"] is None)
        assert "seed" not in {option["name"] for option in entry["options"]}


@pytest.mark.parametrize(("budget", "tokens"), [(20.0, 12), (1.0, 1), (500.0, 300), (0.001, 5)])
def test_calibration_keeps_the_budget_and_wastes_none(client, vectors, budget, tokens):
    body = {"mechanism": "santext", "options": {"vectors": vectors}, "document_epsilon": budget, "tokens": tokens}
    answer = client.post("/v1/calibrate", json=body).json()
    whole = build("santext", {"epsilon": answer["epsilon"], "vectors": vectors}).guarantee(secure=True)
    exponent = whole.for_document(tokens).over_diameter().exponent()
    assert exponent <= budget
    assert exponent == pytest.approx(budget, rel=1e-6)
    assert answer["guarantee"]["guarantee"]["unit"] == "document"


def test_a_budget_below_what_arithmetic_costs_is_refused(client, vectors):
    body = {"mechanism": "santext", "options": {"vectors": vectors}, "document_epsilon": 1e-9, "tokens": 50}
    answer = client.post("/v1/calibrate", json=body)
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "no_guarantee"


def test_calibration_refuses_where_no_conversion_is_proven(start, tmp_path, vectors):
    words = tmp_path / "sensitive.txt"
    words.write_text("w1\nw2\nw3\n")
    client = start(allowed=(("vectors", vectors), ("sensitive_list", str(words))))
    options = {"vectors": vectors, "sensitive_list": str(words), "sensitive_share": 0.0}
    answer = client.post("/v1/calibrate", json={"mechanism": "santext+", "options": options, "document_epsilon": 20})
    assert answer.status_code == 422
    assert answer.json()["error"]["code"] == "no_guarantee"


def test_the_curve_falls_with_epsilon_and_costs_nothing(client, default_table, tmp_path):
    body = {"mechanism": "custext", "epsilons": [1.0, 8.0, 30.0]}
    answer = client.post("/v1/curve", json=body).json()
    shares = [point["changed"] for point in answer["points"]]
    assert 1 > shares[0] > shares[1] > shares[2] > 0
    assert "by frequency" in answer["how"]
    with open_ledger(tmp_path / "state" / "ledger.sqlite") as ledger:
        assert ledger.releases() == []


def test_the_curve_is_the_exact_law(client, vectors):
    """Words of a made-up vocabulary have no public frequency, so all count alike: the average over the vocabulary."""
    import numpy as np

    body = {"mechanism": "santext", "options": {"vectors": vectors}, "epsilons": [2.0]}
    (point,) = client.post("/v1/curve", json=body).json()["points"]
    mechanism = build("santext", {"epsilon": 2.0, "vectors": vectors})
    stays = np.diag(mechanism.laws(np.arange(40)))
    assert 1 - stays.max() <= point["changed"] <= 1 - stays.min()


def test_the_curve_says_how_much_an_attacker_guesses(client, vectors):
    """Among all words of a small vocabulary: the vulnerability that `tacit audit text` reports."""
    from tacit.auditing.text.inversion import frequency_prior, posterior

    body = {"mechanism": "santext", "options": {"vectors": vectors}, "epsilons": [0.1, 2.0, 50.0]}
    answer = client.post("/v1/curve", json=body).json()
    guessed = [point["guessed"] for point in answer["points"]]
    for epsilon, share in zip(body["epsilons"], guessed, strict=True):
        mechanism = build("santext", {"epsilon": epsilon, "vectors": vectors})
        mechanism.prepare()
        prior = frequency_prior(mechanism.vocabulary)
        assert share == pytest.approx(posterior(mechanism, prior).vulnerability, abs=1e-6)
    assert answer["blind"] <= guessed[0] < guessed[1] < guessed[2]
    assert "one word by itself" in answer["guessed_how"]


def test_the_default_of_santext_leaves_an_attacker_little(client, default_table):
    entries = {entry["name"]: entry for entry in client.get("/v1/mechanisms").json()["mechanisms"]}
    default = entries["santext"]["epsilon"]["default"]
    assert default == 1.5
    answer = client.post("/v1/curve", json={"mechanism": "santext", "epsilons": [default, 4.0]}).json()
    at_default, at_four = (point["guessed"] for point in answer["points"])
    assert at_default < answer["blind"] + 0.05
    assert at_four > 0.5


def test_a_mechanism_without_a_law_is_sampled_and_says_so(client, vectors):
    body = {"mechanism": "laplace", "options": {"vectors": vectors}, "epsilons": [0.5, 500.0]}
    answer = client.post("/v1/curve", json=body).json()
    assert answer["points"][0]["changed"] > 0.5 > answer["points"][1]["changed"]
    assert "estimated from" in answer["how"]
    assert (answer["points"][0]["guessed"], answer["blind"], answer["guessed_how"]) == (None, None, None)


def test_no_curve_for_documents(client):
    answer = client.post("/v1/curve", json={"mechanism": "codebook", "epsilons": [1.0]})
    assert answer.status_code == 422


def test_an_exact_audit_is_a_report(client, vectors):
    body = {"mechanism": "santext", "epsilon": 2.0, "options": {"vectors": vectors}}
    report = client.post("/v1/audit/exact", json=body).json()
    assert report["title"] == "Audit of santext"
    assert not report["refuted"]
    assert report["sections"][0]["findings"][0]["light"] == "green"
    chosen = client.post("/v1/audit/exact", json={**body, "words": ["w1", "w2", "w5"]}).json()
    assert chosen["light"] == "green"
    assert client.post("/v1/audit/exact", json={**body, "words": ["w1", "W1"]}).status_code == 422
    assert client.post("/v1/audit/exact", json={**body, "mechanism": "laplace"}).status_code == 422
    assert client.post("/v1/audit/exact", json={**body, "mechanism": "codebook", "options": {}}).status_code == 422


# The page and the reports -------------------------------------------------------------------------------------------


def test_only_files_of_the_page_are_served(client):
    assert client.get("/").headers["content-type"].startswith("text/html")
    for name in ("../app.py", "%2e%2e/app.py", "..%2fapp.py", "", "/etc/passwd", "nothing.js"):
        assert client.get(f"/assets/{name}").status_code == 404
    for path in site.PAGE.rglob("*"):
        if path.is_file():
            assert client.get(f"/assets/{path.relative_to(site.PAGE)}").status_code == 200


@pytest.fixture
def reports(tmp_path):
    folder = tmp_path / "reports"
    folder.mkdir()
    (folder / "one.html").write_text("<!doctype html><title>Audit of santext</title><p>fine")
    (folder / "run.html").write_text("<!doctype html><title>Experiment on SST-2</title>")
    (folder / "secret.txt").write_text("no report")
    (folder / "link.html").symlink_to("/etc/passwd")
    return folder


def test_reports_of_a_folder(start, reports):
    client = start(reports=reports)
    listed = client.get("/v1/reports").json()["reports"]
    assert [(entry["name"], entry["kind"]) for entry in listed] == [("one.html", "audit"), ("run.html", "experiment")]
    page = client.get("/v1/reports/one.html")
    assert "fine" in page.text
    assert page.headers["content-security-policy"].startswith("sandbox")
    for name in ("secret.txt", "link.html", "..%2Fstate%2Fkeys.json", "nothing.html"):
        assert client.get(f"/v1/reports/{name}").status_code == 404


def test_a_ticket_opens_one_report_for_a_while(start, reports, tmp_path, monkeypatch):
    secret = Keys(tmp_path / "state").add("team", 600)
    client = start(reports=reports)
    headers = {"authorization": f"Bearer {secret}"}
    first, second = client.get("/v1/reports", headers=headers).json()["reports"]
    assert client.get("/v1/reports/one.html").status_code == 401
    assert client.get(first["url"]).status_code == 200
    assert client.get(second["url"].replace("run.html", "one.html")).status_code == 401
    assert client.get(first["url"][:-1]).status_code == 401
    now = site.time.time()
    monkeypatch.setattr(site.time, "time", lambda: now + site.TICKET_SECONDS + 1)
    assert client.get(first["url"]).status_code == 401
