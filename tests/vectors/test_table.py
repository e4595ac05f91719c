from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

from tacit.errors import BadInputError, BadParameterError
from tacit.vectors import VectorTable
from tacit.vectors.table import MappedRows


def table(words: list[str], rows: object, **more: object) -> VectorTable:
    return VectorTable(words, np.array(rows, dtype=np.float32), "toy", "a test", **more)  # type: ignore[arg-type]


def test_words_rows_and_index() -> None:
    toy = table(["a", "b", "c"], [[1, 0], [0, 1], [1, 1]])
    assert len(toy) == 3
    assert toy.dimension == 2
    assert toy.index == {"a": 0, "b": 1, "c": 2}
    assert toy.notes == ()
    assert "3 words, 2 dimensions" in toy.describe()


def test_a_duplicate_keeps_its_first_vector_and_is_counted() -> None:
    toy = table(["a", "b", "a", "a"], [[1, 0], [0, 1], [5, 5], [6, 6]])
    assert toy.words == ["a", "b"]
    assert toy.vectors.tolist() == [[1, 0], [0, 1]]
    assert toy.notes == ("2 repeated words (the first occurrence stays) dropped",)


def test_zero_rows_and_empty_words_are_dropped_and_counted() -> None:
    toy = table(["a", "z", "", "y"], [[1, 0], [0, 0], [3, 3], [-0.0, 0]])
    assert toy.words == ["a"]
    assert toy.notes == ("2 all-zero vectors dropped", "1 empty words dropped")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_names_word_and_row(value: float) -> None:
    with pytest.raises(BadInputError, match=r"'b' \(row 1\).*not a finite"):
        table(["a", "b"], [[1, 0], [value, 1]])


def test_a_float64_too_large_for_float32_is_reported_with_its_word() -> None:
    with pytest.raises(BadInputError, match="'b'"):
        VectorTable(["a", "b"], np.array([[1.0], [1e300]]), "toy", "a test")  # type: ignore[arg-type]


def test_shape_mismatch_wrong_rank_and_emptiness() -> None:
    with pytest.raises(BadInputError, match="2 words but 1 vectors"):
        table(["a", "b"], [[1, 0]])
    with pytest.raises(BadInputError, match=r"shape \(3,\)"):
        table(["a"], [1, 2, 3])
    with pytest.raises(BadInputError, match="no word with a usable vector"):
        table(["a"], [[0, 0]])


def test_the_table_does_not_change_with_the_array_it_was_made_from() -> None:
    rows = np.ones((2, 2), dtype=np.float32)
    toy = VectorTable(["a", "b"], rows, "toy", "a test")
    rows[0, 0] = 7
    assert toy.vectors[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        toy.vectors[0, 0] = 3
    rows[0, 0] = 8  # the caller's own array stays writable


def test_head_and_subset() -> None:
    toy = table(["a", "b", "c"], [[1, 0], [0, 1], [1, 1]])
    assert toy.head(2).words == ["a", "b"]
    assert toy.head(9) is toy
    assert toy.subset(["c", "a"]).vectors.tolist() == [[1, 1], [1, 0]]
    assert toy.subset(np.array([2, 1])).words == ["c", "b"]
    assert toy.subset([0]).notes == ("1 words chosen out of 3",)
    with pytest.raises(BadInputError, match="no vector for 1 of these words \\('x'\\)"):
        toy.subset(["a", "x"])
    with pytest.raises(BadParameterError, match="from 0 to 2"):
        toy.subset([3])
    with pytest.raises(BadParameterError, match="is empty"):
        toy.subset([])
    with pytest.raises(BadParameterError, match="at least 1"):
        toy.head(0)


def test_fingerprint_depends_on_content_only() -> None:
    first = table(["a", "b"], [[1, 0], [0, 1]])
    same = VectorTable(["a", "b"], np.array([[1, 0], [0, 1]], dtype=np.float64), "other", "x")  # type: ignore[arg-type]
    assert first.fingerprint == same.fingerprint
    assert len(first.fingerprint) == 16
    assert first.fingerprint != table(["a", "c"], [[1, 0], [0, 1]]).fingerprint
    assert first.fingerprint != table(["a", "b"], [[1, 0], [0, 2]]).fingerprint


def test_pickle_in_memory() -> None:
    toy = table(["a", "b"], [[1, 0], [0, 1]])
    back = pickle.loads(pickle.dumps(toy))
    assert back.words == toy.words
    assert np.array_equal(back.vectors, toy.vectors)
    assert back.fingerprint == toy.fingerprint
    assert not back.vectors.flags.writeable


def test_a_mapped_table_pickles_as_its_place(tmp_path) -> None:  # type: ignore[no-untyped-def]
    rows = np.random.default_rng(0).standard_normal((500, 64)).astype(np.float32)
    np.save(tmp_path / "v.npy", rows)
    place = MappedRows(str(tmp_path / "v.npy"), 128, 500, 64)
    toy = VectorTable([f"w{i}" for i in range(500)], place.open(), "toy", "a test", (), place)
    bytes_ = pickle.dumps(toy.head(400))
    assert len(bytes_) < rows.nbytes / 10
    back = pickle.loads(bytes_)
    assert np.array_equal(back.vectors, rows[:400])
    (tmp_path / "v.npy").unlink()
    with pytest.raises(BadInputError, match="load the vectors again"):
        pickle.loads(bytes_)


def test_import_is_light() -> None:
    heavy = "pyarrow, faiss, wordfreq, scipy, torch, pandas"
    code = f"import sys, tacit.vectors; print([m for m in '{heavy}'.split(', ') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
