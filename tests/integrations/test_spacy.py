"""The component `tacit_dp` in real spaCy pipelines."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest

from tacit.errors import BadParameterError
from tacit.text.tokens import split
from tests.conftest import ROOT

spacy = pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'tacit-dp[spacy]'")

from spacy.tokens import Doc, DocBin  # noqa: E402

import tacit.integrations.spacy  # noqa: E402, F401

TEXTS = ["w1 w2 w3", "", "w4 unknown words", "w5"]


@pytest.fixture
def nlp(vectors):
    pipeline = spacy.blank("en")
    settings = {"mechanism": "santext", "epsilon": 1.0, "options": {"vectors": vectors}}
    pipeline.add_pipe("tacit_dp", config=settings)
    return pipeline


def test_a_document_gets_a_private_text_and_a_card(nlp):
    doc = nlp("w1 w2 w3")
    assert doc.text == "w1 w2 w3"
    assert len(split(doc._.private_text)) == 3
    card = doc._.privacy
    assert card.facts.units == 3
    assert any("longest row here, 3 words" in total["what"] for total in card.to_dict()["totals"])
    assert any("the original" in item for item in card.guarantee.not_covered)
    assert spacy.blank("en")("untouched")._.privacy is None


def test_batches_keep_the_order_and_the_lengths(nlp):
    docs = list(nlp.pipe(TEXTS, batch_size=3))
    assert [doc.text for doc in docs] == TEXTS
    assert [len(split(doc._.private_text)) for doc in docs] == [3, 0, 3, 1]


def test_processes_draw_their_own_noise(nlp):
    """Four equal batches in two processes; with a copied stream two would be equal. False alarm below 1e-40."""
    docs = list(nlp.pipe(["w1 w2 w3 w4 w5 w6 w7 w8 w9"] * 40, batch_size=10, n_process=2))
    batches = [tuple(doc._.private_text for doc in docs[start : start + 10]) for start in range(0, 40, 10)]
    assert len(set(batches)) == 4


def test_pipelines_and_documents_survive_saving(nlp, tmp_path):
    nlp.to_disk(tmp_path / "pipeline")
    loaded = spacy.load(tmp_path / "pipeline")
    doc = loaded("w1 w2")
    assert doc._.privacy.guarantee == nlp("w1")._.privacy.guarantee
    assert spacy.blank("en").from_bytes(nlp.to_bytes(), exclude=["tacit_dp"]) is not None
    again = Doc(loaded.vocab).from_bytes(doc.to_bytes())
    assert again._.private_text == doc._.private_text
    assert again._.privacy.to_json() == doc._.privacy.to_json()
    stored = DocBin(docs=[doc], store_user_data=True).to_bytes()
    (third,) = DocBin(store_user_data=True).from_bytes(stored).get_docs(loaded.vocab)
    assert third._.private_text == doc._.private_text


def test_no_budget_is_assumed():
    with pytest.raises(BadParameterError, match="Give an epsilon"):
        spacy.blank("en").add_pipe("tacit_dp")


def test_saved_pipelines_load_without_an_import(nlp, tmp_path):
    """The entry point of pyproject.toml, as an installation writes it, is all that spaCy needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (name, target), *_ = project["entry-points"]["spacy_factories"].items()
    installed = tmp_path / "site" / "made_up-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 1.0\n", encoding="utf-8")
    (installed / "entry_points.txt").write_text(f"[spacy_factories]\n{name} = {target}\n", encoding="utf-8")
    nlp.to_disk(tmp_path / "pipeline")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n"
        f"import spacy; print(len(spacy.load({str(tmp_path / 'pipeline')!r})('w1 w2')._.private_text.split()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "2", done.stderr
