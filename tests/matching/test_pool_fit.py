"""Which pools fit a sketch: judged by the release alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tacit.cli.main import run as run_command
from tacit.matching.artifact import save_sketch
from tacit.matching.features import default_map
from tacit.matching.labels import ListedLabels
from tacit.matching.pool import PoolSource, SentencePool, load_pool, write_pool
from tacit.matching.pool_fit import fitted_pools, halves_of, mixes_of
from tacit.matching.sketch import Sketch, build_sketch
from tacit.matching.sums import rows_in_memory

KITCHEN = ("Boil the pasta for ten minutes.", "Add salt and pepper to the soup.", "Bake the bread until it is brown.",
           "Chop the onions and fry them in butter.", "Stir the sauce with a wooden spoon.")  # fmt: skip
TRAVEL = ("Our flight to Rome was delayed.", "The hotel was close to the beach.", "We took the night train to Vienna.",
          "I need a visa for the trip.", "The bus leaves the station at noon.")  # fmt: skip
FACTORY = ("The quarterly audit covers depreciation.", "Amortized liabilities are reported annually.",
           "The committee approved the regulation.", "Statute of limitations applies to the claim.",
           "The resistor limits the current in the circuit.")  # fmt: skip


@pytest.fixture(scope="module")
def sketch() -> Sketch:
    texts = [*KITCHEN * 300, *TRAVEL * 300]
    labels = ["kitchen"] * 1_500 + ["travel"] * 1_500
    rows = rows_in_memory(texts, labels)
    return build_sketch(
        rows, ListedLabels(("kitchen", "travel")), default_map(), epsilon=2.0, delta=1e-6, seed=1
    ).sketch


def pool_of(name: str, sentences: list[str]) -> SentencePool:
    return SentencePool(
        name,
        sentences,
        (PoolSource(name, "CC0"),),
        np.zeros(len(sentences), dtype=np.int64),
        [""] * len(sentences),
        name,
    )


@pytest.fixture(scope="module")
def pools() -> list[SentencePool]:
    general = list(load_pool().sentences)
    words = [("cook", "bake", "soup", "kitchen", "bread", "recipe"), ("train", "flight", "hotel", "travel", "trip")]
    near = [text for text in general if any(word in text for group in words for word in group)][:2_500]
    far = [f"{text} Case {number}." for number, text in enumerate(FACTORY * 300)]
    return [pool_of("near", near), pool_of("far", far)]


def test_noise_of_the_halves_is_independent_and_their_mean_is_the_sketch(sketch: Sketch) -> None:
    first, second = halves_of(sketch)
    assert np.allclose((first.dense_sums + second.dense_sums) / 2, sketch.dense_sums)
    assert np.allclose((first.counts + second.counts) / 2, sketch.counts)
    apart = (first.dense_sums - second.dense_sums).ravel() / 2
    assert apart.std() == pytest.approx(sketch.noise_deviation, rel=0.1)
    assert first.noise_variance == 2 * sketch.noise_variance


def test_the_pool_that_speaks_of_the_same_things_explains_more(sketch: Sketch, pools: list[SentencePool]) -> None:
    fit = fitted_pools(sketch, pools, rows=1_000)
    explained = {fit.named(mix): mix.explained for mix in fit.mixes}
    assert set(explained) == {("near",), ("far",), ("near", "far")}
    assert explained[("near",)] > explained[("far",)] + 0.2
    assert list(explained.values()) == sorted(explained.values(), reverse=True)
    assert "near" in fit.named(fit.recommended)
    both = next(mix for mix in fit.mixes if len(mix.pools) == 2)
    assert sum(both.shares) == pytest.approx(1)
    assert both.shares[0] > 0.9
    assert fit == fitted_pools(sketch, pools, rows=1_000)


def test_the_judgment_has_no_bias_for_rows_that_are_the_private_ones(sketch: Sketch) -> None:
    fit = fitted_pools(sketch, [pool_of("same", [*KITCHEN * 300, *TRAVEL * 300])], rows=1_000)
    assert fit.mixes[0].explained == pytest.approx(1, abs=0.1)


def test_all_mixes_of_few_pools_and_some_of_many() -> None:
    assert len(mixes_of(3)) == 7
    assert len(mixes_of(6)) == 6 + 6 + 1


def test_the_command_prints_a_table_and_a_recommendation(
    sketch: Sketch, pools: list[SentencePool], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_sketch(sketch, tmp_path / "s.tacit")
    for pool in pools:
        entries = ((text, 0, "") for text in pool.sentences)
        write_pool(tmp_path / f"{pool.name}.tacit", pool.name, pool.sources, entries)
    arguments = ["pool", "fit", str(tmp_path / "s.tacit"), "--rows", "500", "-q"]
    for pool in pools:
        arguments += ["--pool", str(tmp_path / f"{pool.name}.tacit")]
    assert run_command(arguments) == 0
    printed = capsys.readouterr().out
    assert "explained" in printed
    assert printed.splitlines()[-1].startswith("recommended: near")
    assert run_command([*arguments, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["mixes"]) == 3
