from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tacit.errors import BadParameterError
from tacit.vectors import VectorTable, bounding, vocabulary_sensitivity
from tacit.vectors.bounding import BOUNDINGS, Bounding
from tacit.vectors.bounding_maps import ClipToRange, MinusOneToOne, ObservedRange, UnitNorm, diameter_bounds
from tacit.vectors.projection import JohnsonLindenstrauss, projection_dimension

# Constants printed in the thesis: smallest distance, coordinate range, dimensions.
SMALLEST, LOW, HIGH, DIMENSION = 0.7890, -3.0639, 2.6668, 300

MAPS: list[tuple[str, dict[str, object]]] = [
    ("none", {}),
    ("unit", {}),
    ("unit", {"bound": "vocabulary"}),
    ("adapted-unit", {}),
    ("minus-one-to-one", {}),
    ("minus-one-to-one", {"bound": "lipschitz"}),
    ("observed-range", {}),
    ("observed-range", {"bound": "lipschitz"}),
    ("observed-range", {"low": -1.0, "high": 3.0, "bound": "lipschitz"}),
    ("clip", {}),
    ("clip", {"low": -0.5, "high": 0.25}),
    ("jl", {"dimension": 3}),
    ("jl", {"dimension": 3, "normalize": "adapted"}),
    ("jl", {"dimension": 3, "bound": "vocabulary"}),
]
values = st.floats(-10, 10, width=32).map(lambda x: 0.0 if abs(x) < 1e-3 else x)
public_tables = hnp.arrays(np.float32, st.tuples(st.integers(2, 25), st.just(6)), elements=values).filter(
    lambda rows: bool((np.ptp(rows, axis=1) > 0).any())
)
any_pair = hnp.arrays(np.float64, (2, 6), elements=st.floats(-50, 50).map(lambda x: round(x, 6)))


def random_rows(n: int, d: int, seed: int = 0) -> np.ndarray:  # type: ignore[type-arg]
    return np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)


def ratios(f: Bounding, X: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    mapped, wide = f.transform(X).astype(np.float64), X.astype(np.float64)
    i, j = np.triu_indices(len(X), 1)
    above = np.linalg.norm(mapped[i] - mapped[j], axis=1)
    below = np.linalg.norm(wide[i] - wide[j], axis=1)
    return above[below > 0] / below[below > 0]


@pytest.mark.parametrize(("name", "options"), MAPS)
@settings(max_examples=40)
@given(public=public_tables)
def test_no_pair_of_the_vocabulary_is_stretched_by_more_than_is_said(
    name: str,
    options: dict[str, object],
    public: np.ndarray,  # type: ignore[type-arg]
) -> None:
    f = bounding(name, **options).fit(public)
    said = f.sensitivity()
    ratios_of_pairs = ratios(f, public)
    assert (ratios_of_pairs <= said.value * (1 + 1e-9)).all()
    if said.kind == "exact over this vocabulary" and ratios_of_pairs.size:
        assert ratios_of_pairs.max() == pytest.approx(said.value, rel=1e-9)


PROVEN = [
    (name, options)
    for name, options in MAPS
    if bounding(name, **options).fit(np.eye(6, dtype=np.float32)).sensitivity().kind == "proven"
]


@pytest.mark.parametrize(("name", "options"), PROVEN)
@settings(max_examples=40)
@given(public=public_tables, pair=any_pair)
def test_a_proven_constant_holds_for_any_two_vectors(
    name: str,
    options: dict[str, object],
    public: np.ndarray,
    pair: np.ndarray,  # type: ignore[type-arg]
) -> None:
    f = bounding(name, **options).fit(public)
    said = f.sensitivity()
    assert said.kind == "proven"
    assert said.delta == 0.0
    assert said.how
    assert (ratios(f, pair) <= said.value * (1 + 1e-6)).all()


def test_min_max_lipschitz_constant_is_nearly_reached() -> None:
    # All coordinates but one at the bottom; moving the largest and smallest moves everything: sqrt(d - 1) for large d.
    d = 400
    x = np.full(d, 0.0)
    x[0], x[1], x[2:] = 1.0, 0.0, 0.5
    f = MinusOneToOne(bound="lipschitz").fit(x[None])
    step = np.zeros(d)
    step[0] = step[1] = 1e-6 / math.sqrt(2)
    ratio = np.linalg.norm(np.diff(f.transform(np.stack([x, x + step])), axis=0)) / 1e-6
    assert ratio <= f.sensitivity().value
    assert ratio >= 0.7 * f.sensitivity().value


# --- known answers from the thesis ---


def test_the_table_of_bounding_functions() -> None:
    table = diameter_bounds(DIMENSION, SMALLEST, LOW, HIGH)
    assert table == pytest.approx(
        {
            "none": 1,
            "unit": 2.5349,
            "adapted-unit": 1,
            "minus-one-to-one": 43.9050,
            "observed-range": 125.8031,
            "clip": 1,
            "jl": 4.816,
        },
        abs=5e-4,
    )
    assert table["observed-range"] / table["minus-one-to-one"] == pytest.approx(2.8653, abs=1e-4)
    assert set(table) == set(BOUNDINGS)


@pytest.mark.parametrize("points", [72_600, 75_378])
def test_projection_dimension_of_both_data_sets(points: int) -> None:
    assert projection_dimension(points, 0.9, 1e-6) == 89


def test_observed_range_is_an_affine_image_of_minus_one_to_one() -> None:
    public = random_rows(50, 300)
    plain, stretched = MinusOneToOne().fit(public), ObservedRange(LOW, HIGH).fit(public)
    factor = (HIGH - LOW) / 2
    assert factor == pytest.approx(2.8653, abs=1e-4)
    assert np.allclose(stretched.transform(public), (LOW + HIGH) / 2 + factor * plain.transform(public))
    assert stretched.sensitivity().value == pytest.approx(factor * plain.sensitivity().value)
    lipschitz = ObservedRange(LOW, HIGH, bound="lipschitz").fit(public).sensitivity().value
    assert lipschitz == pytest.approx(factor * MinusOneToOne(bound="lipschitz").fit(public).sensitivity().value)


# --- what each map does ---


def test_norms_and_ranges() -> None:
    public = random_rows(100, 20)
    assert np.allclose(np.linalg.norm(bounding("unit").fit(public).transform(public), axis=1), 1)
    short = public * np.float32(0.1)
    adapted = bounding("adapted-unit").fit(public)
    assert np.array_equal(adapted.transform(short), short)
    assert np.allclose(np.linalg.norm(adapted.transform(public), axis=1), 1)
    mapped = bounding("minus-one-to-one").fit(public).transform(public)
    assert (mapped.min(axis=1) == -1).all()
    assert (mapped.max(axis=1) == 1).all()
    observed = bounding("observed-range").fit(public)
    assert observed.transform(public).min() == pytest.approx(public.min())
    assert observed.transform(public).max() == pytest.approx(public.max())
    clipped = ClipToRange(-0.5, 0.5).fit(public).transform(public)
    assert (clipped.min(), clipped.max()) == (-0.5, 0.5)


def test_clip_and_none_change_no_bit_of_the_vocabulary() -> None:
    public = random_rows(100, 20)
    for name in ("none", "clip"):
        mapped = bounding(name).fit(public).transform(public)
        assert mapped.dtype == public.dtype
        assert np.array_equal(mapped, public)


def test_zero_constant_and_short_vectors_have_a_rule() -> None:
    public = np.array([[3.0, 4.0], [0.0, 2.0]])
    unit = UnitNorm().fit(public)
    assert unit.smallest_norm == 2.0
    assert unit.sensitivity().value == 0.5
    assert unit.transform(np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 9.0]])).tolist() == [[0, 0], [0, 0.5], [0, 1]]
    constant = np.array([[5.0, 5.0]])
    assert MinusOneToOne().fit(public).transform(constant).tolist() == [[0, 0]]
    assert ObservedRange(1, 3).fit(public).transform(constant).tolist() == [[2, 2]]
    assert bounding("adapted-unit").fit(public).transform(np.zeros((1, 2))).tolist() == [[0, 0]]
    with pytest.raises(BadParameterError, match="all public vectors are zero"):
        UnitNorm().fit(np.zeros((2, 2)))
    with pytest.raises(BadParameterError, match="all public vectors are constant"):
        MinusOneToOne().fit(np.ones((2, 2)))


def test_johnson_lindenstrauss() -> None:
    public = random_rows(400, 300)
    f = JohnsonLindenstrauss(beta=0.9).fit(public)
    m = projection_dimension(400, 0.9, 1e-6)
    assert f.matrix.shape == (300, m)
    assert f.matrix.std() == pytest.approx(1 / math.sqrt(m), rel=0.02)
    assert np.array_equal(f.matrix, JohnsonLindenstrauss().fit(public).matrix)  # one public draw
    assert not np.array_equal(f.matrix, JohnsonLindenstrauss(seed=1).fit(public).matrix)

    inner = UnitNorm().fit(public).sensitivity().value
    spectral = f.sensitivity()
    assert (spectral.kind, spectral.delta) == ("proven", 0.0)
    assert spectral.value == pytest.approx(np.linalg.norm(f.matrix, 2) * inner)

    claim = JohnsonLindenstrauss(bound="probabilistic").fit(public).sensitivity()
    assert claim.kind == "probabilistic"
    assert 0 < claim.delta < 1e-6, "a union bound over all pairs, below what the dimension was chosen for"
    assert claim.value == pytest.approx(1.9 * inner)
    assert ratios(f, public).max() <= claim.value

    adapted = JohnsonLindenstrauss(normalize="adapted", bound="probabilistic").fit(public).sensitivity()
    assert adapted.value == pytest.approx(1.9)
    exact = JohnsonLindenstrauss(bound="vocabulary").fit(public).sensitivity()
    assert exact.kind == "exact over this vocabulary"
    assert exact.value <= min(spectral.value, claim.value)


def test_spectral_norm_of_the_thesis_shape() -> None:
    f = JohnsonLindenstrauss(normalize="adapted", dimension=89).fit(random_rows(10, 300))
    assert f.sensitivity().value == pytest.approx(1 + math.sqrt(300 / 89), abs=0.15)


def test_vocabulary_sensitivity_of_any_function() -> None:
    said = vocabulary_sensitivity(lambda x: 3 * x[:, :1], random_rows(30, 2))
    assert said.kind == "exact over this vocabulary"
    assert 2.9 < said.value <= 3
    assert "30 public vectors" in said.how


def test_wrong_use() -> None:
    with pytest.raises(BadParameterError, match="unknown bounding map 'x': the maps are none, unit, adapted-unit"):
        bounding("x")
    with pytest.raises(BadParameterError, match="'unit' does not take these options"):
        bounding("unit", beta=1)
    with pytest.raises(BadParameterError, match="'unit' is not fitted: call fit"):
        bounding("unit").transform(np.ones((1, 2)))
    with pytest.raises(BadParameterError, match="is not fitted"):
        bounding("unit").sensitivity()
    with pytest.raises(BadParameterError, match="fitted on 2 dimensions"):
        bounding("unit").fit(np.ones((3, 2))).transform(np.ones((1, 3)))
    with pytest.raises(BadParameterError, match="'lipschitz' or 'vocabulary'"):
        bounding("unit", bound="guess")
    for options in ({"low": 1.0}, {"low": 2.0, "high": 1.0}):
        with pytest.raises(BadParameterError, match="both ends"):
            bounding("clip", **options)
    for options, message in [
        ({"beta": 0}, "beta must be above 0"),
        ({"delta": 1}, "delta between 0 and 1"),
        ({"normalize": "x"}, "normalize must be"),
        ({"bound": "x"}, "bound must be"),
        ({"dimension": 0}, "at least 1 dimension"),
        ({"dimension": 2, "bound": "probabilistic"}, "leave one of the two out"),
    ]:
        with pytest.raises(BadParameterError, match=message):
            bounding("jl", **options)
    with pytest.raises(BadParameterError, match="no fewer than the 50 of the vectors: give a larger beta"):
        bounding("jl").fit(random_rows(100, 50))


def test_default_vectors_known_sensitivities(default_table: VectorTable) -> None:
    table = default_table.head(4000)
    unit = UnitNorm().fit(table)
    assert unit.sensitivity().value == pytest.approx(1 / np.linalg.norm(table.vectors, axis=1).min(), rel=1e-6)
    exact = UnitNorm(bound="vocabulary").fit(table).sensitivity()
    assert 0.9 * unit.sensitivity().value < exact.value <= unit.sensitivity().value
    plain = MinusOneToOne().fit(table).sensitivity()
    assert plain.value < MinusOneToOne(bound="lipschitz").fit(table).sensitivity().value / 3


def test_options_can_be_written_behind_the_name():
    written = bounding("jl:dimension=2,normalize=adapted")
    assert (written.dimension, written.normalize) == (2, "adapted")
    assert bounding("clip:low=-1,high=1.5").high == 1.5
    for wrong in ("jl:dimension", "jl:size=3", "jl:beta=none"):
        with pytest.raises(BadParameterError):
            bounding(wrong)
