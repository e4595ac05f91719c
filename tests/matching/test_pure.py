"""Epsilon without delta: what a row adds, the exact law of the release on a small domain, users, merging, the jobs."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit.cli.main import run as run_command
from tacit.errors import BadInputError, BadParameterError
from tacit.guarantee import Notion, Unit
from tacit.matching import pure
from tacit.matching.artifact import read_sketch, save_sketch
from tacit.matching.features import default_map
from tacit.matching.labels import ListedLabels
from tacit.matching.maps import map_from
from tacit.matching.merging import merge_sketches
from tacit.matching.pool import load_pool
from tacit.matching.pure import PureMap, projected, public_directions, pure_map
from tacit.matching.pure_noise import laplace_steps, laplace_totals, laplace_variance
from tacit.matching.sketch import build_sketch
from tacit.matching.sums import exact_sums, rows_in_memory
from tacit.matching.whole_numbers import GRID
from tacit.noise.source import Source

SENTENCES = load_pool().sentences
LABELS = ListedLabels(("a", "b"))
USUAL = pure_map()
HOSTILE = st.sampled_from([*SENTENCES[::9_000], "", " ", "🙂", "\ud800", "the " * 9_000]) | st.text(max_size=40)


def rows(count: int = 400) -> Any:
    return rows_in_memory(list(SENTENCES[:count]), [("a", "b")[place % 2] for place in range(count)])


def totals(texts: list[str], labels: list[str], users: list[str] | None = None) -> np.ndarray:
    if not texts:
        return np.zeros((2, USUAL.dimension + 1), dtype=np.int64)
    return exact_sums(rows_in_memory(texts, labels, users), LABELS, USUAL, by_user=users is not None).totals


# What a row adds ----------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.lists(st.tuples(HOSTILE, st.sampled_from(["a", "b", "z"])), min_size=1, max_size=6), st.data())
def test_neighbors_differ_by_at_most_one_in_absolute_values(given_rows: list[tuple[str, str]], data: Any) -> None:
    left_out = data.draw(st.integers(0, len(given_rows) - 1))
    others = [row for place, row in enumerate(given_rows) if place != left_out]
    everything, without = (totals([t for t, _ in part], [c for _, c in part]) for part in (given_rows, others))
    assert int(np.abs(everything - without).sum()) <= GRID


@settings(max_examples=40)
@given(st.lists(st.tuples(HOSTILE, st.sampled_from(["a", "b"]), st.sampled_from(["u", " u", "v"])), max_size=12))
def test_a_user_with_all_rows_moves_the_sums_by_at_most_one(given_rows: list[tuple[str, str, str]]) -> None:
    def of(part: list[tuple[str, str, str]]) -> np.ndarray:
        return totals([t for t, _, _ in part], [c for _, c, _ in part], [u for _, _, u in part])

    without = [row for row in given_rows if row[2].strip() != "u"]
    assert int(np.abs(of(given_rows) - of(without)).sum()) <= GRID


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(-GRID, GRID), min_size=3, max_size=3), min_size=1, max_size=5), st.integers(1, 4))
def test_projections_keep_their_bound_and_forget_all_but_the_largest(vectors: list[list[int]], kept: int) -> None:
    matrix = np.array([[5, -3, 0, 7], [1, 1, 1, 1], [0, 2, -9, 4]])
    steps = projected(np.array(vectors, dtype=np.int32), matrix, kept, 1000)
    assert np.abs(steps).sum(axis=1).max() <= 1000
    assert (steps != 0).sum(axis=1).max() <= kept
    whole = np.array(vectors) @ matrix
    assert (np.sign(steps) * np.sign(whole) >= 0).all()


def test_a_row_does_not_depend_on_the_rows_beside_it() -> None:
    texts = [*SENTENCES[:30], "", "🙂"]
    together = USUAL.features(texts, alone=True).dense
    assert (together == np.concatenate([USUAL.features([text], alone=True).dense for text in texts])).all()
    assert not together[-2].any()
    assert np.abs(together[:30]).sum(axis=1).min() > 0.95 * USUAL.feature_steps, "the room is used"


def test_the_directions_of_the_static_encoder_come_with_tacit() -> None:
    matrix = public_directions(pure.blocks_digest(USUAL.blocks), 256, USUAL.directions)
    assert np.abs(matrix).max() > 1, "not the random signs of unknown encoders"
    cosines = matrix.T @ matrix / 2.0**24
    assert np.abs(cosines - np.eye(len(cosines))).max() < 0.01
    signs = public_directions("unknown", 10, 4)
    assert set(np.unique(signs).tolist()) == {-1, 1}


def test_maps_survive_being_written_and_other_tables_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert map_from(json.loads(json.dumps(USUAL.to_dict()))) == USUAL
    assert map_from(default_map().to_dict()) == default_map()
    changed = map_from({**USUAL.to_dict(), "projection": {"directions": 96, "kept": 16, "matrix": "other"}})
    with pytest.raises(BadInputError, match="table of public directions"):
        changed.features(["a"])
    with pytest.raises(BadParameterError):
        pure_map(kept=0)
    with pytest.raises(BadParameterError):
        PureMap(default_map(words=10).blocks, 0.1)


# The law ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 3.7, 100.0, 1e6])
def test_the_scale_is_the_least_that_keeps_epsilon(epsilon: float) -> None:
    scale = laplace_steps(epsilon)
    assert Fraction(GRID, scale) <= Fraction(epsilon)
    assert scale == 1 or Fraction(GRID, scale - 1) > Fraction(epsilon)


def test_every_outcome_of_a_small_domain_keeps_the_ratio_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A world of four texts and two labels, with all data sets of at most two rows: for all neighbors, the logarithm of
    the ratio of every outcome is at most epsilon. Outcomes are integer vectors; that of each number depends on its own
    sum alone, so the largest logarithm is the sum over numbers of |difference| / t, reached far out on one side. It is
    computed as an exact fraction, and for a coarse grid also by listing the law."""
    texts = ["play a song", "it rains", "", SENTENCES[77]]
    world = list(itertools.product(texts, ("a", "b")))
    data_sets = [[], *([row] for row in world), *(list(pair) for pair in itertools.combinations(world, 2))]
    sums = {tuple(data): totals([t for t, _ in data], [c for _, c in data]) for data in map(tuple, data_sets)}
    epsilon = 0.7
    scale = laplace_steps(epsilon)
    pairs = 0
    for larger in data_sets:
        for left_out in larger:
            smaller = tuple(row for row in larger if row is not left_out)
            distance = int(np.abs(sums[tuple(larger)] - sums[smaller]).sum())
            assert Fraction(distance, scale) <= Fraction(epsilon)
            pairs += 1
    assert pairs == 8 + 2 * 28

    def law(total: int) -> np.ndarray:
        values = np.exp(-np.abs(np.arange(-400, 401) - total) / 5)
        return np.asarray(values * math.tanh(1 / 10))

    for difference in (1, 3, 7):
        ratio = law(difference) / law(0)
        assert ratio.max() <= math.exp(difference / 5) * (1 + 1e-12)
        assert ratio.max() >= math.exp(difference / 5) * (1 - 1e-12), "the bound is reached: no budget is wasted"
        coarse = law(difference)[:800].reshape(-1, 8).sum(axis=1) / law(0)[:800].reshape(-1, 8).sum(axis=1)
        assert coarse.max() <= ratio.max() * (1 + 1e-12), "rounding only takes away"


@pytest.mark.parametrize(("total", "scale", "step"), [(7, 3, 1), (1003, 40, 8), (-777, 25, 4)])
def test_the_law_of_a_released_number_is_the_rounded_discrete_laplace(total: int, scale: int, step: int) -> None:
    draws = laplace_totals(np.full(40_000, total, dtype=np.int64), scale, step, Source.from_test_seed(5))
    values = np.arange(total - 60 * scale, total + 60 * scale + 1)
    probabilities = np.exp(-np.abs(values - total) / scale) * math.tanh(1 / (2 * scale))
    rounded = (values + step // 2) // step
    center = round(total / step)
    cells = range(center - 3 * scale // step, center + 3 * scale // step + 1)
    expected = [float(probabilities[rounded == cell].sum()) for cell in cells]
    seen = [int((draws == cell).sum()) for cell in cells]
    expected.append(1 - sum(expected))
    seen.append(len(draws) - sum(seen))
    chi = sum((s - 40_000 * e) ** 2 / (40_000 * e) for s, e in zip(seen, expected, strict=True))
    degrees = len(seen) - 1
    assert chi < degrees + 4.5 * math.sqrt(2 * degrees)
    exact = float((probabilities * (values - total) ** 2).sum())
    assert laplace_variance(scale) * GRID**2 == pytest.approx(exact, rel=1e-9)


def test_noise_of_a_sketch_has_the_stated_variance() -> None:
    exact = exact_sums(rows(), LABELS, USUAL).totals
    drawn = [build_sketch(rows(), LABELS, USUAL, epsilon=1.0, seed=seed).sketch for seed in range(20)]
    noise = np.stack([made.totals * made.step - exact for made in drawn]) / GRID
    assert abs(noise.std() / drawn[0].noise_deviation - 1) < 4.5 * math.sqrt(5 / (4 * noise.size))
    assert drawn[0].noise_deviation == pytest.approx(math.sqrt(2), rel=1e-3)
    assert abs(noise.mean()) < 4.5 * drawn[0].noise_deviation / math.sqrt(noise.size)


# The promise --------------------------------------------------------------------------------------------------------


def test_the_promise_is_epsilon_alone_and_says_nothing_about_the_number_of_rows(tmp_path: Path) -> None:
    made = save_sketch(build_sketch(rows(), LABELS, USUAL, epsilon=1.0).sketch, tmp_path / "s.tacit")
    assert (made.guarantee.notion, made.guarantee.delta, made.guarantee.slack) == (Notion.PURE, 0.0, 0.0)
    assert not any("number of" in line for line in made.guarantee.assumptions)
    assert "discrete Laplace" in str(made.guarantee.parameters["noise"])
    again = read_sketch(tmp_path / "s.tacit")
    assert again.feature_map == USUAL
    assert again.guarantee == made.guarantee
    assert (again.totals == made.totals).all()
    with pytest.raises(BadParameterError, match="epsilon alone"):
        build_sketch(rows(), LABELS, USUAL, epsilon=1.0, delta=1e-6)


def test_merged_sketches_add_their_epsilons_or_keep_the_largest() -> None:
    parts = [build_sketch(rows(200), LABELS, USUAL, epsilon=epsilon).sketch for epsilon in (0.5, 1.0, 2.0)]
    composed = merge_sketches(parts)
    assert (composed.guarantee.notion, composed.guarantee.epsilon, composed.guarantee.delta) == (Notion.PURE, 3.5, 0.0)
    assert merge_sketches(parts, disjoint=True).guarantee.epsilon == 2.0
    assert composed.noise_variance == pytest.approx(sum(part.noise_variance for part in parts))
    twice = merge_sketches([composed, build_sketch(rows(200), LABELS, USUAL, epsilon=1.0).sketch])
    assert twice.guarantee.epsilon == 4.5
    gaussian = build_sketch(rows(200), LABELS, default_map(), epsilon=1.0).sketch
    with pytest.raises(BadInputError, match="different features"):
        merge_sketches([parts[0], gaussian])


def test_the_command_promises_epsilon_alone(tmp_path: Path, small_pool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sentences = {"weather": "Will it rain in Paris tomorrow?", "music": "Play a song by Bach."}
    lines = [json.dumps({"text": text, "intent": label, "who": f"u{n}"}) for label, text in sentences.items()
             for n in range(200)]  # fmt: skip
    Path("rows.jsonl").write_text("\n".join(lines))
    usual = ("rows.jsonl", "--column", "text", "--label-column", "intent", "--labels", "weather,music", "-e", "2")
    assert (
        run_command(["synthesize", *usual, "--pure", "--pool", str(small_pool), "-n", "200", "-o", "out.csv", "-q"])
        == 0
    )
    card = json.loads(Path("out.csv.card.json").read_text())
    assert card["guarantee"]["notion"] == Notion.PURE.value
    users = tacit.sketch("rows.jsonl", column="text", label_column="intent", labels=list(sentences), epsilon=1,
                         pure=True, user_column="who")  # fmt: skip
    assert (users.guarantee.unit, users.guarantee.notion) == (Unit.USER, Notion.PURE)
    assert run_command(["synthesize", *usual, "--pure", "--delta", "1e-6", "-o", "no.csv"]) == 2
    assert run_command(["sketch", "build", *usual, "--pure", "--vocabulary", "9", "-o", "no.tacit"]) == 2
    made = tacit.synthesize(from_sketch=Path("out-sketch.tacit"), rows=100, output=Path("more.csv"),
                            pools=[str(small_pool)], sample_seed=1)  # fmt: skip
    rainy = [text for text, label in zip(made.texts, made.columns["intent"], strict=True) if label == "weather"]
    songs = [text for text, label in zip(made.texts, made.columns["intent"], strict=True) if label == "music"]
    assert sum("rain" in text.lower() for text in rainy) > sum("rain" in text.lower() for text in songs)
