"""The function for `Dataset.map`: hashes, the cache, processes, cards."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tacit.errors import BadInputError, BadParameterError

datasets = pytest.importorskip("datasets", reason="datasets is not installed: pip install 'tacit-dp[datasets]'")

from datasets.fingerprint import Hasher  # noqa: E402

from tacit.integrations import datasets as integration  # noqa: E402
from tacit.integrations.datasets import SecondDrawWarning, rewriter  # noqa: E402

LINE = "w1 w2 w3 w4 w5 w6 w7 w8"


@pytest.fixture(autouse=True)
def _fresh_memory():
    integration._drawn.clear()
    datasets.disable_progress_bars()


@pytest.fixture
def function(vectors):
    return rewriter("santext", epsilon=1, column="text", units_column="tokens", vectors=vectors)


@pytest.fixture
def stored(tmp_path):
    """A data set with files behind it, so that `map` has a place for its cache."""
    rows = {"text": [f"{LINE} w{i}" for i in range(20)], "label": list(range(20))}
    datasets.Dataset.from_dict(rows).save_to_disk(tmp_path / "stored")
    return datasets.load_from_disk(str(tmp_path / "stored"))


def test_map_rewrites_one_column(function, stored):
    private = stored.map(function, batched=True)
    assert private["label"] == stored["label"]
    assert list(private["tokens"]) == [9] * 20
    assert not set(private["text"]) & set(stored["text"])
    card = function.card(private)
    assert card.facts.rows == 20
    assert card.facts.kept_columns == ("label",)
    assert any("longest row here, 9 words" in total["what"] for total in card.to_dict()["totals"])
    assert any("all other columns" in item for item in card.guarantee.not_covered)


def test_running_again_finds_the_release_that_was_made(function, stored, vectors):
    first = stored.map(function, batched=True)
    drawn = len(integration._drawn)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same_settings = rewriter("santext", epsilon=1, column="text", units_column="tokens", vectors=vectors)
        again = stored.map(same_settings, batched=True)
        in_two = stored.map(same_settings, batched=True, num_proc=2)
    assert list(again["text"]) == list(first["text"]) == list(in_two["text"])
    assert len(integration._drawn) == drawn


def test_other_settings_are_another_release(function, stored, vectors):
    first = stored.map(function, batched=True)
    weaker = rewriter("santext", epsilon=2, column="text", units_column="tokens", vectors=vectors)
    assert list(stored.map(weaker, batched=True)["text"]) != list(first["text"])


def test_the_hash_is_the_same_in_every_process_and_after_use(function, vectors):
    before = Hasher.hash(function)
    function({"text": [LINE]})
    assert Hasher.hash(function) == before
    assert Hasher.hash(pickle.loads(pickle.dumps(function))) == before
    code = (
        "from datasets.fingerprint import Hasher; from tacit.integrations.datasets import rewriter; "
        f"print(Hasher.hash(rewriter('santext', vectors={vectors!r}, units_column='tokens', epsilon=1)))"
    )
    environment = os.environ | {"PYTHONHASHSEED": "123"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip() == before


def test_other_vectors_under_the_same_name_are_another_function(tmp_path, vectors):
    path = tmp_path / "mine.vec"
    lines = Path(vectors).read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(lines), encoding="utf-8")
    first = Hasher.hash(rewriter("santext", epsilon=1, vectors=str(path)))
    path.write_text("\n".join(lines[:30]), encoding="utf-8")
    integration.loaded_from.cache_clear()
    assert Hasher.hash(rewriter("santext", epsilon=1, vectors=str(path))) != first


def test_a_second_draw_is_said(function):
    in_memory = datasets.Dataset.from_dict({"text": [LINE] * 5})
    first = in_memory.map(function, batched=True)
    with pytest.warns(SecondDrawWarning, match="5 texts of column 'text' were rewritten before"):
        second = in_memory.map(function, batched=True)
    assert list(first["text"]) != list(second["text"])


def test_a_second_pass_over_a_stream_is_said(function):
    stream = datasets.Dataset.from_dict({"text": [LINE] * 5}).to_iterable_dataset().map(function, batched=True)
    list(stream)
    with pytest.warns(SecondDrawWarning):
        list(stream)


def test_processes_draw_their_own_noise(function, tmp_path):
    """Four equal batches in two processes: with a copied stream two would be equal. False alarm below 1e-40."""
    datasets.Dataset.from_dict({"text": [LINE] * 40}).save_to_disk(tmp_path / "equal")
    equal = datasets.load_from_disk(str(tmp_path / "equal"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecondDrawWarning)
        private = equal.map(function, batched=True, batch_size=10, num_proc=2)["text"]
    assert len({tuple(private[start : start + 10]) for start in range(0, 40, 10)}) == 4


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        ({"body": ["w1"]}, {"batched": True}, "no column 'text'"),
        ({"text": ["w1"]}, {}, "batched=True"),
        ({"text": ["w1", None]}, {"batched": True}, "NoneType where a text should be"),
    ],
)
def test_bad_data_is_one_sentence(function, rows, options, said):
    with pytest.raises(BadInputError, match=said):
        datasets.Dataset.from_dict(rows).map(function, **options)


def test_bad_settings_are_one_sentence(vectors):
    with pytest.raises(BadParameterError, match="Give an epsilon"):
        rewriter("santext", vectors=vectors)
    with pytest.raises(BadParameterError, match="another column"):
        rewriter("santext", epsilon=1, column="text", units_column="text", vectors=vectors)
    with pytest.raises(BadParameterError, match="units_column"):
        rewriter("santext", epsilon=1, vectors=vectors).card(datasets.Dataset.from_dict({"text": ["w1"]}))
