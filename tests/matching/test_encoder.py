"""The static encoder: a function of the text alone, bit for bit."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.documents.encoder import load_encoder as load_of_documents
from tacit.encoders import ENCODERS, encoder_provenance, is_batch_independent, load_encoder
from tacit.errors import BadInputError
from tacit.matching.encoder import (
    ASSETS,
    LARGEST_EXACT,
    LARGEST_NUMBER,
    LARGEST_SHIFT,
    LONGEST_CHARACTERS,
    StaticEncoder,
)
from tacit.matching.encoder_folder import quantized, save
from tacit.matching.pieces import WordPieces
from tacit.matching.pool import load_pool
from tacit.needs import needs_of_encoder

TEXTS = [
    *load_pool().sentences[::1500],
    "",
    "   ",
    "🙂🙂",
    "a" * 300,
    "[UNK] [PAD]",
    "half of a pair: \ud83d",
    "\0 zero",
    "une phrase française à côté",
    "word " * 2_000,
]


@pytest.fixture(scope="module")
def encoder() -> StaticEncoder:
    return StaticEncoder()


def test_the_vector_of_a_text_is_the_same_bit_for_bit_in_every_batch(encoder: StaticEncoder) -> None:
    alone = np.stack([encoder.encode_alone(text) for text in TEXTS])
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 7, 31, len(TEXTS), 3 * len(TEXTS)):
        order = rng.integers(0, len(TEXTS), size=200)
        for start in range(0, len(order), size):
            part = order[start : start + size]
            vectors = encoder.encode([TEXTS[place] for place in part])
            assert vectors.tobytes() == alone[part].tobytes()


@settings(max_examples=60)
@given(st.lists(st.text(max_size=80), min_size=1, max_size=12), st.randoms())
def test_no_text_changes_the_vector_of_another(texts: list[str], random: object) -> None:
    encoder = StaticEncoder()
    together = encoder.encode(texts)
    for text, vector in zip(texts, together, strict=True):
        assert vector.tobytes() == encoder.encode_alone(text).tobytes()
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6) or not vector.any()


def test_texts_without_a_known_piece_have_the_vector_zero(encoder: StaticEncoder) -> None:
    assert not encoder.encode(["", "  \t ", "🙂"]).any()


def test_a_long_text_counts_up_to_512_pieces_and_20000_characters(encoder: StaticEncoder) -> None:
    beginning = "river " * encoder.pieces
    assert (encoder.encode_alone(beginning) == encoder.encode_alone(beginning + "volcano " * 99_000)).all()
    shorter = "river " * (encoder.pieces - 1)
    assert (encoder.encode_alone(shorter) != encoder.encode_alone(shorter + "volcano")).any()
    padded = "river" + " " * LONGEST_CHARACTERS
    assert (encoder.encode_alone("river") == encoder.encode_alone(padded + "volcano")).all()


def test_it_tells_meanings_apart(encoder: StaticEncoder) -> None:
    cat, kitten, bank = encoder.encode(["the cat sleeps on the sofa", "a kitten naps on a couch", "transfer the money"])
    assert cat @ kitten > 0.4 > 0.2 > cat @ bank


def test_one_registry_serves_all_rooms() -> None:
    assert "static" in ENCODERS
    assert load_of_documents("static").name == load_encoder("static").name == "static"
    assert is_batch_independent(load_encoder("static"))
    assert needs_of_encoder("static") == []
    assert "all-MiniLM-L6-v2" in encoder_provenance("static").source


def test_it_needs_neither_torch_nor_transformers() -> None:
    code = (
        "from tacit.encoders import load_encoder; load_encoder('static').encode(['a cat']); "
        "import sys; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "transformers", "tokenizers", "sklearn", "pandas"} & set(done.stdout.split())


def test_quantization_keeps_the_direction_of_sentences() -> None:
    rng = np.random.default_rng(1)
    vectors = (rng.standard_normal((500, 48)) * np.exp(rng.standard_normal((500, 1)))).astype(np.float32)
    small, shifts, scales = quantized(vectors)
    again = np.ldexp(small.astype(np.float64), shifts[:, None].astype(int)) * scales
    cosines = []
    for _ in range(200):
        rows = rng.integers(0, 500, size=9)
        first, second = vectors[rows].sum(axis=0), again[rows].sum(axis=0)
        cosines.append(first @ second / np.linalg.norm(first) / np.linalg.norm(second))
    assert min(cosines) > 0.97
    assert np.mean(cosines) > 0.99


def test_the_pieces_are_those_of_the_library() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    library = tokenizers.Tokenizer.from_file(str(ASSETS / "tokenizer.json"))
    vocabulary = json.loads((ASSETS / "tokenizer.json").read_text())["model"]["vocab"]
    mine, unknown = WordPieces(vocabulary), vocabulary["[UNK]"]
    texts = [*load_pool().sentences, "Où est l'Hôtel ? 東京 100%", "a\tb\r\nc\x07d", "_x_ naïve—dash", "ÀÉÎ ß Straße"]
    for text, pieces in zip(texts, library.encode_batch_fast(texts, add_special_tokens=False), strict=True):
        assert mine.ids(text) == [piece for piece in pieces.ids if piece != unknown]


@pytest.fixture(scope="module")
def with_pairs(tmp_path_factory: pytest.TempPathFactory) -> StaticEncoder:
    """An encoder in which a pair says something that its pieces do not."""
    folder = tmp_path_factory.mktemp("pairs")
    tokenizer = (ASSETS / "tokenizer.json").read_text()
    vocabulary = json.loads(tokenizer)["model"]["vocab"]
    words = len(vocabulary)
    vectors = np.zeros((words + 2, 3), dtype=np.float32)
    vectors[vocabulary["not"]] = vectors[vocabulary["good"]] = vectors[vocabulary["bad"]] = [1, 0, 0]
    vectors[words], vectors[words + 1] = [0, 1, 0], [0, 0, 1]
    pairs = np.array([[vocabulary["not"], vocabulary["good"]], [vocabulary["bad"], vocabulary["not"]]], dtype=np.int32)
    save(vectors, tokenizer, folder, pairs)
    return StaticEncoder(folder)


def test_a_pair_counts_where_its_pieces_are_neighbors_in_this_order_in_one_text(with_pairs: StaticEncoder) -> None:
    def sums(*texts: str) -> list[list[float]]:
        vectors = with_pairs.encode(texts).astype(np.float64)
        return [[round(float(part), 4) for part in vector] for vector in vectors]

    root = 5**-0.5
    assert sums("not good") == [[round(2 * root, 4), round(root, 4), 0]]
    assert sums("good not", "bad good") == [[1, 0, 0]] * 2
    assert sums("not", "good", "bad", "not") == [[1, 0, 0]] * 4, "the end of a text and the beginning of the next"
    assert sums("bad not good")[0] == [round(3 / 11**0.5, 4), round(11**-0.5, 4), round(11**-0.5, 4)]
    assert sums("not good not good") == [[round(4 / 20**0.5, 4), round(2 / 20**0.5, 4), 0]]


def test_the_longest_sum_is_exact() -> None:
    """All pieces and pairs of the longest text with the largest number that a table may hold."""
    assert (2 * StaticEncoder().pieces - 1) * (LARGEST_NUMBER << LARGEST_SHIFT) < LARGEST_EXACT


def test_other_pairs_are_another_encoder(with_pairs: StaticEncoder, tmp_path: Path) -> None:
    tokenizer = (ASSETS / "tokenizer.json").read_text()
    vectors = np.random.default_rng(0).standard_normal((len(json.loads(tokenizer)["model"]["vocab"]) + 1, 4))
    digests = set()
    for second in (2_000, 2_001):
        save(vectors.astype(np.float32), tokenizer, tmp_path / "one", np.array([[1_000, second]], dtype=np.int32))
        digests.add(json.loads((tmp_path / "one" / "encoder.json").read_text())["digest"])
    assert len(digests) == 2


def test_weights_of_any_dimension_are_read_and_changed_ones_refused(tmp_path: Path) -> None:
    tokenizer = (ASSETS / "tokenizer.json").read_text()
    words = len(json.loads(tokenizer)["model"]["vocab"])
    vectors = np.random.default_rng(0).standard_normal((words, 12)).astype(np.float32)
    save(vectors, tokenizer, tmp_path / "mine")
    mine = StaticEncoder(tmp_path / "mine")
    assert mine.encode(["a cat", ""]).shape == (2, 12)
    assert mine.digest != StaticEncoder().digest
    shutil.copytree(tmp_path / "mine", tmp_path / "changed")
    facts = json.loads((tmp_path / "changed" / "encoder.json").read_text())
    (tmp_path / "changed" / "encoder.json").write_text(json.dumps({**facts, "digest": "0" * 32}))
    with pytest.raises(BadInputError, match="was changed"):
        StaticEncoder(tmp_path / "changed").encode(["a"])
    with pytest.raises(BadInputError, match="no static encoder"):
        StaticEncoder(tmp_path / "nowhere").encode(["a"])
