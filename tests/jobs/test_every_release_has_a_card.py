"""Every public way to released texts, and the card that comes with them."""

from __future__ import annotations

import ast
import json
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit import integrations
from tacit.card import Card
from tacit.cli.main import run as run_command
from tacit.engines.job import RewriteJob
from tacit.engines.local import rewrite_file
from tacit.text.digest import output_digest
from tests.conftest import small_table
from tests.engines.test_ray_parts import in_process  # noqa: F401  # a fixture

EPSILON = 2.0
TEXTS = ["w1 w2 w3", "w4"]


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> str:
    table = small_table(words=40, dimension=3)
    path = tmp_path_factory.mktemp("vectors") / "small.txt"
    rows = zip(table.words, table.vectors.tolist(), strict=True)
    path.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows))
    return str(path)


@pytest.fixture
def folder(tmp_path: Path, vectors: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "in.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    (tmp_path / "vectors.txt").write_text(Path(vectors).read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TACIT_LEDGER_KEY", "a key for tests, nothing more")
    return tmp_path


def beside(output: str) -> Card:
    """The card beside an output, which must know its own file."""
    card = Card.from_json(Path(f"{output}.card.json").read_text())
    assert Path(f"{output}.card.md").read_text().startswith("# Privacy card")
    assert card.facts is not None
    assert card.facts.digest == output_digest(Path(output))
    assert card.facts.configuration["job"] == "rewrite"
    assert card.facts.configuration["epsilon"] == EPSILON
    return card


def by_command() -> Card:
    assert run_command(["rewrite", "in.txt", "--vectors", "vectors.txt", "-e", "2", "-o", "out.txt", "-q"]) == 0
    return beside("out.txt")


def by_command_to_standard_output() -> Card:
    arguments = ["rewrite", "in.txt", "--vectors", "vectors.txt", "-e", "2", "-q", "--card-file", "card.json"]
    assert run_command(arguments) == 0
    return Card.from_json(Path("card.json").read_text())


def by_file_of_options() -> Card:
    Path("options.toml").write_text(
        'job = "rewrite"\ninput = "in.txt"\noutput = "out.txt"\nepsilon = 2.0\nvectors = "vectors.txt"\n'
    )
    assert run_command(["run", "options.toml", "-q"]) == 0
    return beside("out.txt")


def by_python_on_a_file() -> Card:
    release = tacit.rewrite("in.txt", epsilon=EPSILON, vectors="vectors.txt", output="out.txt")
    assert release.card == beside("out.txt")
    return release.card


def by_python_in_memory() -> Card:
    release = tacit.rewrite(TEXTS, epsilon=EPSILON, vectors="vectors.txt")
    assert len(release.data) == len(TEXTS)
    return release.card


def by_engine() -> Card:
    """Nothing but the function of the engine."""
    mechanism = tacit.build("santext", {"epsilon": EPSILON, "vectors": "vectors.txt"})
    published = rewrite_file(RewriteJob(mechanism, "in.txt", "out.txt"))
    assert published.card == Card.from_json(Path("out.txt.card.json").read_text())
    assert set(published.card_files) == {"out.txt.card.json", "out.txt.card.md"}
    return published.card


def by_cluster() -> Card:
    arguments = ["rewrite", "in.txt", "--vectors", "vectors.txt", "-e", "2", "-o", "out", "-q", "--engine", "ray"]
    assert run_command(arguments) == 0
    return beside("out")


def _service() -> Iterator[Any]:
    pytest.importorskip("fastapi")
    from starlette.testclient import TestClient

    from tacit.serve.app import create_app
    from tacit.serve.settings import ServiceSettings

    settings = ServiceSettings(state=Path("state"), allowed=(("vectors", "vectors.txt"),))
    with TestClient(create_app(settings, jobs_apart=False), base_url="http://localhost") as client:
        yield client


SETTINGS = {"mechanism": "santext", "epsilon": EPSILON, "options": {"vectors": "vectors.txt"}}


def by_service_request() -> Card:
    for client in _service():
        answer = client.post("/v1/rewrite", json={**SETTINGS, "texts": TEXTS}).json()
        return Card.from_json(json.dumps(answer["guarantee"]))
    raise AssertionError


def by_service_job() -> Card:
    from tests.serve.waiting import finished

    for client in _service():
        form = {"files": {"file": ("in.txt", b"w1 w2\n")}, "data": {"settings": json.dumps(SETTINGS)}}
        job = client.post("/v1/jobs", **form).json()
        assert finished(client, job["id"])["state"] == "done"
        for kind in ("json", "md", "html"):
            assert client.get(f"/v1/jobs/{job['id']}/card.{kind}").status_code == 200
        card = Card.from_json(client.get(f"/v1/jobs/{job['id']}/card.json").text)
        assert card.facts is not None
        assert card.facts.configuration["mechanism"] == "santext"
        assert "state" not in json.dumps(card.facts.configuration), "no path of the service"
        return card
    raise AssertionError


def by_mechanism() -> Card:
    return tacit.build("santext", {"epsilon": EPSILON, "vectors": "vectors.txt"}).rewrite(TEXTS).card()


def by_pandas() -> Card:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("tacit.integrations.pandas")

    card: Card = pandas.Series(TEXTS).tacit.release("santext", epsilon=EPSILON, vectors="vectors.txt").card()
    return card


def by_datasets() -> Card:
    datasets = pytest.importorskip("datasets")
    from tacit.integrations.datasets import rewriter

    function = rewriter("santext", epsilon=EPSILON, column="text", units_column="words", vectors="vectors.txt")
    return function.card(datasets.Dataset.from_dict({"text": TEXTS}).map(function, batched=True))


def by_spacy() -> Card:
    spacy = pytest.importorskip("spacy")
    pytest.importorskip("tacit.integrations.spacy")

    nlp = spacy.blank("en")
    nlp.add_pipe("tacit_dp", config={"epsilon": EPSILON, "options": {"vectors": "vectors.txt"}})
    card: Card = nlp(TEXTS[0])._.privacy
    return card


def by_presidio() -> Card:
    pytest.importorskip("presidio_anonymizer")
    from presidio_anonymizer import AnonymizerEngine
    from presidio_anonymizer.entities import OperatorConfig, RecognizerResult

    from tacit.integrations.presidio import TacitDP, operator_card

    engine, settings = AnonymizerEngine(), {"epsilon": EPSILON, "options": {"vectors": "vectors.txt"}}
    engine.add_anonymizer(TacitDP)
    spans = [RecognizerResult("PERSON", 0, 5, 1.0)]
    engine.anonymize(TEXTS[0], spans, {"PERSON": OperatorConfig("tacit_dp", settings)})
    return operator_card(settings, TEXTS[0], spans)


WAYS: list[Callable[[], Card]] = [
    by_command, by_command_to_standard_output, by_file_of_options, by_python_on_a_file, by_python_in_memory, by_engine,
    by_cluster, by_service_request, by_service_job, by_mechanism, by_pandas, by_datasets, by_spacy, by_presidio,
]  # fmt: skip


def vectors_by_command() -> Card:
    assert run_command(["embed", "in.txt", "-e", "2", "-o", "out.parquet", "-q"]) == 0
    return Card.from_json(Path("out.parquet.card.json").read_text())


def vectors_by_python() -> Card:
    return tacit.embed(TEXTS, epsilon=EPSILON).card


def vectors_by_mechanism() -> Card:
    from tacit.embeddings.forward import Forward

    return Forward(epsilon=EPSILON).embed(TEXTS).card()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "way", [vectors_by_command, vectors_by_python, vectors_by_mechanism], ids=lambda way: way.__name__
)
def test_released_vectors_have_their_card(way: Callable[[], Card]) -> None:
    card = way()
    assert card.guarantee.is_private
    assert card.guarantee.epsilon == EPSILON


@pytest.mark.usefixtures("folder", "in_process")
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_release_has_its_card(way: Callable[[], Card]) -> None:
    card = way()
    assert card.guarantee.is_private
    assert card.guarantee.epsilon == EPSILON
    assert "santext" in card.guarantee.mechanism


def test_a_release_to_standard_output_has_its_card_on_standard_error(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tacit.rewrite("in.txt", epsilon=EPSILON, vectors="vectors.txt", output="-")
    out, err = capfd.readouterr()
    assert len(out.splitlines()) == len(TEXTS)
    assert err.startswith("# Privacy card")


def test_no_other_way_is_forgotten() -> None:
    """Where noise is drawn for texts in the package, and which of the ways above goes there; a new place is a new
    way."""
    known = {
        "auditing/claims/words.py": "draws from public texts to check a claim",
        "documents/depth.py": "calls its own base",
        "documents/latent.py": "calls its own base",
        "embeddings/base.py": "vectors: command, Python and mechanism",
        "engines/blocks.py": "command, Python, engine, cluster, service jobs",
        "integrations/datasets.py": "datasets",
        "integrations/presidio.py": "presidio",
        "integrations/spacy.py": "spacy",
        "mechanism.py": "mechanism and pandas",
        "serve/pool.py": "service requests",
        "training/tasks/sanitized.py": "a training, whose model has a card",
    }
    package = Path(tacit.__file__).parent
    places = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "rewrite_texts"
    }
    assert places == set(known)
    ways = {way.__name__.removeprefix("by_") for way in WAYS}
    assert {module.name for module in pkgutil.iter_modules(integrations.__path__)} - {"loading"} <= ways
