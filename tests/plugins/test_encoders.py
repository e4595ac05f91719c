"""A sentence encoder that only a package has, named wherever an encoder is."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

import pytest

from tests.plugins.processes import call, tacit

WORDS = ("sun", "rain", "garden", "storm", "cloud", "roof", "morning", "night", "cold", "warm", "bright", "gray")
CARD_LINE = "toy-letters, of a plug-in"


def made_up(rows: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=6)) for _ in range(rows)]


@pytest.fixture
def private(tmp_path: Path) -> str:
    (tmp_path / "private.csv").write_text("text\n" + "\n".join(made_up(20, 1)) + "\n")
    return str(tmp_path / "private.csv")


def test_a_codebook_is_built_and_rewritten_with(tmp_path, private):
    pytest.importorskip("sklearn")
    (tmp_path / "public.txt").write_text("\n".join(made_up(80, 2)) + "\n")
    tacit("codebook", "build", str(tmp_path / "public.txt"), "--public", "weather", "--encoder", "toy-letters",
          "--sizes", "4,16", "-o", str(tmp_path / "book"), "-q")  # fmt: skip
    output = tmp_path / "out.csv"
    chosen = (
        "--mechanism",
        "codebook",
        "-e",
        "60",
        "--option",
        f"codebook={tmp_path / 'book'}",
        "--option",
        "symbols=1",
    )
    tacit("rewrite", private, *chosen, "-o", str(output), "-q")
    released = [row["text"] for row in csv.DictReader(output.read_text().splitlines())]
    assert len(released) == 20
    assert set(released) <= set((tmp_path / "public.txt").read_text().splitlines())
    assert CARD_LINE in output.with_name("out.csv.card.json").read_text()
    # With the encoder of another name the codebook is refused: its cells would be those of other texts.
    other = call("from tacit.cli.main import main; main()", "rewrite", private, *chosen, "--option", "encoder=static",
                 "-o", str(tmp_path / "other.csv"), "-q")  # fmt: skip
    assert other.returncode == 2
    assert "is not the one this codebook was built with ('toy-letters')" in other.stderr


def test_it_evaluates_and_attacks_a_release(private):
    written = tacit("evaluate", private, private, "--metrics", "cosine", "--encoder", "toy-letters", "--json")
    assert "sentence vectors of toy-letters" in written
    refused = call("from tacit.cli.main import main; main()", "evaluate", private, private, "--metrics", "bertscore",
                   "--encoder", "toy-letters")  # fmt: skip
    assert refused.returncode == 2
    assert "BERTScore needs an encoder with weights and word pieces" in refused.stderr
    pytest.importorskip("sklearn")
    audit = json.loads(tacit("audit", "text", private, private, "--attacks", "linkage", "--encoder", "toy-letters",
                             "--json", "-q"))  # fmt: skip
    assert "vectors (toy-letters)" in json.dumps(audit)


def test_a_sketch_is_made_of_its_vectors(tmp_path, private):
    output = tmp_path / "sketch.tacit"
    tacit("sketch", "build", private, "-e", "3", "--delta", "1e-5", "--topics", "2", "--encoder", "toy-letters",
          "--vocabulary", "0", "-o", str(output), "-q")  # fmt: skip
    assert CARD_LINE in tacit("sketch", "show", str(output))


def test_nothing_is_said_to_be_missing_that_a_plugin_does_not_need():
    code = """
import tacit.needs
tacit.needs.is_installed = lambda module: module not in ("torch", "transformers")
from tacit.encoders import encoder_needs
print([need.missing() for need in encoder_needs("toy-letters")], bool(encoder_needs("minilm")[0].missing()))
"""
    assert call(code).stdout.strip() == "[] True"


def test_an_encoder_under_another_name_than_its_own_is_refused(tmp_path, private):
    (tmp_path / "misnamed.py").write_text(
        "from tacit.encoders import ENCODERS\nfrom tacit_toy.letters import LetterEncoder\n"
        "ENCODERS.register('other-letters', LetterEncoder)\n"
    )
    done = call("from tacit.cli.main import main; main()", "--plugin", str(tmp_path / "misnamed.py"), "evaluate",
                private, private, "--metrics", "cosine", "--encoder", "other-letters")  # fmt: skip
    assert done.returncode == 2
    assert "its own name has to be 'other-letters'" in done.stderr
