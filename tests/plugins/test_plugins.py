"""A mechanism, an autoencoder, a data set, a measure, an encoder and a task that only a package of this folder has, and
which Tacit finds by its entry points alone. Each test runs in a process of its own: what a plug-in registers stays."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.plugins.processes import PACKAGE, call, tacit

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin" / "src" / "tacit_chebyshev"


@pytest.fixture
def vectors(tmp_path: Path) -> str:
    words = ["a", "good", "bad", "film", "long", "short", "the", "so", "and", "year", "actors", "best", "worst", "of"]
    rows = [f"{word} {i % 4} {i % 3} {i}" for i, word in enumerate(words)]
    (tmp_path / "vectors.txt").write_text("\n".join(rows) + "\n")
    return str(tmp_path / "vectors.txt")


@pytest.fixture
def texts(tmp_path: Path) -> str:
    (tmp_path / "texts.csv").write_text("text\na good film\nso bad and so long\n")
    return str(tmp_path / "texts.csv")


def test_a_mechanism_is_listed_and_explained():
    listed = {entry["name"]: entry for entry in json.loads(tacit("mechanisms", "--json"))}
    assert listed["toy-response"]["title"] == "Toy response"
    mood = next(item for item in listed["toy-response"]["parameters"] if item["name"] == "mood")
    assert (mood["choices"], mood["meaning"]) == (["calm", "wild"], "changes nothing")
    assert "toy-response" not in {entry["name"] for entry in json.loads(tacit("mechanisms", "--json", package=None))}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_mechanism_rewrites_in_this_process_and_in_others(tmp_path, texts, vectors, workers):
    output = tmp_path / "private.csv"
    tacit("rewrite", texts, "--mechanism", "toy-response", "-e", "5", "--vectors", vectors, "-o", str(output),
          "--workers", workers, "-q")  # fmt: skip
    assert len(list(csv.DictReader(output.read_text().splitlines()))) == 2
    card = json.loads(output.with_name("private.csv.card.json").read_text())
    assert card["guarantee"]["mechanism"].startswith("Toy response (toy-response")


def test_a_mechanism_is_audited_exactly(vectors):
    written = tacit("audit", "mechanism", "toy-response", "-e", "3", "--vectors", vectors, "--json", "-q")
    findings = [finding for section in json.loads(written)["sections"] for finding in section["findings"]]
    assert {finding["name"]: finding["light"] for finding in findings}["Claim against the exact law"] == "green"


SERVED = """
import sys, json
from pathlib import Path
from starlette.testclient import TestClient
from tacit.serve.app import create_app
from tacit.serve.settings import ServiceSettings
state, vectors = sys.argv[1:]
app = create_app(ServiceSettings(state=Path(state), allowed=(("vectors", vectors),)))
with TestClient(app, base_url="http://localhost") as client:
    listed = {entry["name"]: entry for entry in client.get("/v1/mechanisms").json()["mechanisms"]}
    body = {"mechanism": "toy-response", "epsilon": 4, "options": {"vectors": vectors, "mood": "wild"}}
    done = client.post("/v1/rewrite", json={**body, "texts": ["a good film"]})
    refused = client.post("/v1/rewrite", json={**body, "options": {"mood": "sad"}, "texts": ["a"]})
    audit = client.post("/v1/audit/exact", json=body)
    print(json.dumps([listed["toy-response"], done.status_code, refused.status_code, done.json(), audit.json()]))
"""


def test_a_mechanism_is_served_with_a_slider(tmp_path, vectors):
    pytest.importorskip("fastapi")
    done = call(SERVED, str(tmp_path / "state"), vectors)
    assert done.returncode == 0, done.stderr
    entry, status, refused, why, audit = json.loads(done.stdout.splitlines()[-1])
    assert entry["epsilon"] == {"default": 7.0, "low": 0.25, "high": 13.0}
    assert {"name": "mood", "default": "calm", "help": "changes nothing", "choices": ["calm", "wild"], "low": None,
            "high": None} in entry["options"]  # fmt: skip
    assert (status, refused) == (200, 422), why
    assert audit["sections"][0]["findings"][0]["light"] == "green"


def test_an_autoencoder_is_listed_and_rewritten_with(tmp_path, texts):
    pytest.importorskip("torch")
    code = "import sys; from pathlib import Path; from tacit_toy.bag import save; save(Path(sys.argv[1]))"
    assert call(code, str(tmp_path / "bag")).returncode == 0
    listed = call("from tacit.documents.autoencoders import AUTOENCODERS; print(*AUTOENCODERS)").stdout.split()
    assert listed == ["bart", "narrow", "bottleneck", "adept", "toy-bag"]
    output = tmp_path / "private.csv"
    tacit("rewrite", texts, "--mechanism", "adept", "-e", "100000", "--option", f"model={tmp_path / 'bag'}", "-o",
          str(output), "-q")  # fmt: skip
    assert [row["text"] for row in csv.DictReader(output.read_text().splitlines())] == ["good film", "bad long"]
    # The mechanism audits a model of any kind, by samples of its latents.
    written = tacit("audit", "mechanism", "adept", "-e", "2", "--option", f"model={tmp_path / 'bag'}", "--json", "-q")
    assert json.loads(written)["sections"]
    gone = call("from tacit.cli.main import main; main()", "rewrite", texts, "--mechanism", "adept", "-e", "1",
                "--option", f"model={tmp_path / 'bag'}", "-o", str(tmp_path / "other.csv"), package=None)  # fmt: skip
    assert gone.returncode == 2
    assert "of the kind 'toy-bag'" in gone.stderr
    assert "--plugin" in gone.stderr


EXPERIMENT = """
[experiment]
name = "toy"
title = "A toy"
paper = "none"
question = "Does it run?"
count = false

[data.films]
about = "made-up opinions"
task = "classification"
text = "text"
label = "label"
parts.train = { file = "toy-films/train.csv" }
parts.test = { file = "toy-films/test.csv" }

[variants.mechanism.none]

[variants.mechanism.toy-response]
over.epsilon = [1, 8]
options = { limit = 500 }

[steps.rewritten]
kind = "rewrite"
data = "films"
over = { mechanism = ["none", "toy-response"] }

[steps.kept]
kind = "similarity"
texts = "rewritten"
measures = ["kept-words", "toy-overlap", "cosine"]
encoder = "toy-letters"

[steps.learned]
kind = "downstream"
data = "films"
texts = "rewritten"
encoder = "toy-letters"
"""


def test_a_data_set_is_listed_and_used_in_an_experiment_with_a_mechanism_a_measure_and_an_encoder(tmp_path):
    data = json.loads(tacit("data", "--json"))
    assert data["toy-films"]["files"] == {"test.csv": "there", "train.csv": "there"}
    tacit("data", "fetch", "toy-films", TACIT_DATA=str(tmp_path / "data"))
    assert (tmp_path / "data" / "toy-films" / "train.csv").is_file()
    (tmp_path / "toy.toml").write_text(EXPERIMENT)
    tacit("experiment", "run", str(tmp_path / "toy.toml"), "-o", str(tmp_path / "results"), "--cache",
          str(tmp_path / "cache"), TACIT_DATA=str(tmp_path / "elsewhere"))  # fmt: skip
    results = json.loads((tmp_path / "results" / "results.json").read_text())
    scores = {
        (cell["axes"].get("mechanism"), cell["axes"].get("epsilon")): cell["scores"]
        for cell in results["cells"]
        if cell["step"] == "kept"
    }
    assert scores["none", None]["toy-overlap"] == 1.0
    assert scores["none", None]["cosine"] == pytest.approx(1.0)
    assert scores["toy-response", 1]["cosine"] < 1.0
    assert sum(cell["step"] == "learned" for cell in results["cells"]) == 3
    assert scores["toy-response", 1]["toy-overlap"] < scores["toy-response", 8]["toy-overlap"] < 1.0


def test_a_measure_is_found():
    code = """
from tacit.evaluation.similarity import measure_similarity
print(measure_similarity(["a b", "c d"], ["a b", "c x"], ["toy-overlap"])["toy-overlap"].value)
"""
    done = call(code)
    assert done.stdout.strip() == "0.75", done.stderr


def test_a_file_beside_the_data_is_a_plugin_too(tmp_path, texts, vectors):
    plugin = tmp_path / "beside_the_data.py"
    plugin.write_text((PACKAGE / "tacit_toy" / "response.py").read_text().replace("toy-response", "beside"))
    chosen = ["--mechanism", "beside", "-e", "5", "--vectors", vectors, "--workers", "2", "-q"]
    tacit("--plugin", str(plugin), "rewrite", texts, *chosen, "-o", str(tmp_path / "one.csv"), package=None)
    tacit("rewrite", texts, *chosen, "-o", str(tmp_path / "two.csv"), package=None, TACIT_PLUGINS=str(plugin))
    assert (tmp_path / "one.csv").is_file()
    assert (tmp_path / "two.csv").is_file()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere_to_be_found", "there is no module 'nowhere_to_be_found' for --plugin"),
        ("nowhere.py", "there is no file"),
        ("with-a-dash.py", "letters, digits and _"),
        ("json.py", "rename the file"),
        ("santext_again.py", "give it another name"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_refused_in_a_sentence(tmp_path, name, said):
    if name != "nowhere.py" and name.endswith(".py"):
        text = (PACKAGE / "tacit_toy" / "response.py").read_text().replace("toy-response", "santext")
        (tmp_path / name).write_text(text)
    given = str(tmp_path / name) if name.endswith(".py") else name
    if name == "santext_again.py":
        # In Python, where Tacit's own are there already. A command would refuse Tacit's own mechanism instead.
        done = call(f"import tacit; tacit.SanText; tacit.plugins.use({given!r})", package=None)
    else:
        done = call("from tacit.cli.main import main; main()", "--plugin", given, "mechanisms", package=None)
        assert done.returncode == 2
    assert said in done.stderr


def test_the_example_package_keeps_its_promise(tmp_path, texts):
    """Its law follows the metric that only it knows, over all words; its measure and its data set are there."""
    plugin = ("--plugin", str(EXAMPLE))
    chosen = ["--mechanism", "chebyshev", "-e", "30", "--option", "limit=300", "-q"]
    tacit(*plugin, "rewrite", texts, *chosen, "-o", str(tmp_path / "private.csv"), package=None)
    card = json.loads((tmp_path / "private.csv.card.json").read_text())
    assert card["guarantee"]["metric"]["kind"] == "other"
    audited = ["audit", "mechanism", "chebyshev", "-e", "30", "--option", "limit=60", "--json", "-q"]
    findings = [f for s in json.loads(tacit(*plugin, *audited, package=None))["sections"] for f in s["findings"]]
    assert {f["name"]: f["light"] for f in findings} == {
        "Claim against the exact law": "green",
        "Unknown words": "green",
    }
    written = tacit(*plugin, "evaluate", texts, str(tmp_path / "private.csv"), "--metrics", "same-length,cosine",
                    "--encoder", "trigrams", "--json", package=None)  # fmt: skip
    assert "same-length" in written
    assert "sentence vectors of trigrams" in written
    assert json.loads(tacit(*plugin, "data", "--json", package=None))["weather"]["files"] == {"weather.csv": "there"}


def test_a_broken_package_takes_nothing_else_away(tmp_path):
    (tmp_path / "broken-1.0.dist-info").mkdir()
    (tmp_path / "broken-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    points = "[tacit.mechanisms]\nbroken = broken_module:Broken\nsantext = second_santext:ToyResponse\n"
    (tmp_path / "broken-1.0.dist-info" / "entry_points.txt").write_text(points)
    second = (PACKAGE / "tacit_toy" / "response.py").read_text().replace("toy-response", "santext")
    (tmp_path / "second_santext.py").write_text(second)
    done = call("from tacit.cli.main import main; main()", "mechanisms", "santext", package=tmp_path)
    assert done.returncode == 0
    assert "SanText (santext)" in done.stdout
    assert "the plug-in 'broken' (broken_module:Broken) of the package broken cannot be loaded" in done.stderr
    assert "the plug-in 'santext'" in done.stderr


def test_results_of_other_code_are_not_taken_for_those_of_a_plugin(tmp_path):
    code = """
import sys
from tacit import plugins
from tacit.experiments.steps.rewrite import Rewrite, content
plugins.use(sys.argv[1])
print(content(Rewrite(mechanism="beside", epsilon=1.0)), "plugin" in content(Rewrite(mechanism="santext", epsilon=1.0)))
"""
    plugin = tmp_path / "beside_the_data.py"
    text = (PACKAGE / "tacit_toy" / "response.py").read_text().replace("toy-response", "beside")
    keys = []
    for version in (text, text + "# changed\n"):
        plugin.write_text(version)
        done = call(code, str(plugin), package=None)
        assert done.stdout.strip().endswith("False"), done.stderr
        keys.append(done.stdout)
    assert keys[0] != keys[1]
