"""Exact calibration: the largest scale that keeps epsilon over a public vocabulary, on the law that is really drawn."""

from __future__ import annotations

import json
import math
from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import build
from tacit.auditing.claims import radial
from tacit.auditing.claims.claim import claim_of
from tacit.auditing.claims.exact.result import ClaimVerdict
from tacit.errors import BadInputError, BadParameterError
from tacit.noise.choice import exponent_cap
from tacit.noise.source import Source
from tacit.progress import listening
from tacit.vectors import VectorTable
from tacit.words import scales, scales_build, tight
from tacit.words.optimal import as_integers, verified_excess
from tacit.words.tight_sets import exact_factors, losses
from tests.conftest import small_table
from tests.words.exactness import euclidean, log_ratios, worst_excess
from tests.words.test_exact import assert_follows, promised_bound, with_list

ALL = np.arange(40)


def worst_loss_per_distance(mechanism) -> float:
    """max over all triples of ln(P(y | x) / P(y | x')) / d(x, x'), from the integer law."""
    ratios, distances = log_ratios(mechanism.laws(np.arange(len(mechanism.table)))), euclidean(mechanism.table.vectors)
    np.fill_diagonal(distances, np.inf)
    return float((ratios / distances).max())


@pytest.mark.parametrize("dimension", [1, 2, 50])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 2.0])
@pytest.mark.parametrize(("name", "options"), [("santext", {}), ("tem", {}), ("tem", {"beta": 1e-5})])
def test_all_triples_use_epsilon_and_no_more(name, options, epsilon, dimension):
    table = small_table(40, dimension, seed=dimension)
    mechanism = build(name, {"epsilon": epsilon, "vectors": table, **options})
    if mechanism.scale * euclidean(table.vectors).max() > 0.8 * mechanism.cap:
        pytest.skip("the cap on exponents hides most pairs here")
    assert 0.999 * epsilon < worst_loss_per_distance(mechanism) <= epsilon
    assert mechanism.scale > epsilon / 2
    # A scale a thousandth above it breaks the bound.
    larger = build(name, {"epsilon": epsilon, "vectors": table, **options})
    certificate = tight.Certificate(*astuple(mechanism.certificate))
    larger.__dict__["certificate"] = tight.Certificate(certificate.scale * 1.001, *astuple(certificate)[1:])
    assert worst_loss_per_distance(larger) > epsilon


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300])
def test_an_epsilon_too_small_to_search_for_keeps_the_textbooks_factor(epsilon):
    assert build("santext", {"epsilon": epsilon, "vectors": small_table()}).guarantee().epsilon == epsilon


def test_two_words_alone_need_no_normalizer():
    table = small_table(2, 3)
    assert build("santext", {"epsilon": 1.7, "vectors": table}).scale == pytest.approx(1.7, rel=1e-3)


def test_words_with_equal_vectors_have_equal_laws_and_cost_nothing():
    vectors = np.repeat(np.random.default_rng(3).standard_normal((20, 4)).astype(np.float32), 2, axis=0)
    table = VectorTable([f"w{i}" for i in range(40)], vectors, name="twins", source="test")
    mechanism = build("santext", {"epsilon": 1.5, "vectors": table})
    assert mechanism.scale > 0.75
    law = mechanism.laws(ALL)
    assert worst_excess(law, promised_bound(mechanism, euclidean(vectors))) <= 1e-9
    np.testing.assert_allclose(law[0::2], law[1::2], rtol=1e-5)


def test_words_that_nearly_coincide_are_counted_with_their_rounding():
    rng = np.random.default_rng(8)
    vectors = rng.standard_normal((20, 4))
    vectors = np.concatenate([vectors, vectors + 1e-5 * rng.standard_normal((20, 4))]).astype(np.float32)
    table = VectorTable([f"w{i}" for i in range(40)], vectors, name="near twins", source="test")
    for epsilon in (0.5, 5.0):
        mechanism = build("santext", {"epsilon": epsilon, "vectors": table})
        assert worst_excess(mechanism.laws(ALL), promised_bound(mechanism, euclidean(vectors))) <= 1e-9


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    words=st.integers(2, 14),
    dimension=st.integers(1, 40),
    spread=st.floats(0.01, 30.0),
    epsilon=st.floats(1e-3, 50.0),
    name=st.sampled_from(["santext", "tem", "custext", "two-budgets", "santext+"]),
    twins=st.booleans(),
)
def test_every_calibrated_mechanism_keeps_its_promise_on_random_vocabularies(
    seed, words, dimension, spread, epsilon, name, twins
):
    rng = np.random.default_rng(seed)
    vectors = (spread * rng.standard_normal((words, dimension))).astype(np.float32)
    if twins:
        vectors[-1] = vectors[0]
    table = VectorTable([f"w{i}" for i in range(words)], vectors, name="drawn", source="test")
    options = {"sensitive_share": 1.0} if name in ("santext+", "two-budgets") else {}
    mechanism = build(name, {"epsilon": epsilon, "vectors": table, **options})
    if name in ("santext+", "two-budgets"):
        sensitive = rng.random(words) < 0.6
        sensitive[:2] = True
        mechanism.__dict__["sensitive"] = sensitive
    law = mechanism.laws(np.arange(words))
    bound = promised_bound(mechanism, euclidean(table.vectors))
    if name == "custext":
        bound = np.where(mechanism.set_of[:, None] == mechanism.set_of, bound, np.inf)
    outputs = mechanism.sensitive if name == "santext+" and not mechanism.sensitive.all() else None
    if name == "santext+":
        law, bound = np.concatenate([law, mechanism.laws(np.arange(words) + words)]), np.tile(bound, (2, 2))
    assert worst_excess(law, bound, outputs) <= 1e-9


@pytest.mark.parametrize("common_epsilon", [1.5, 2.0, 9.0])
def test_two_budgets_never_promise_less_than_the_textbook(common_epsilon, tmp_path):
    options = with_list({"sensitive_list": "LIST", "sensitive_share": 0.0}, tmp_path)
    options |= {"epsilon": 1.0, "common_epsilon": common_epsilon, "vectors": small_table(40, 3)}
    exact, textbook = (build("two-budgets", {**options, "calibration": kind}) for kind in ("exact", "textbook"))
    assert exact.guarantee().offset <= textbook.guarantee().offset + 1e-12
    assert exact.guarantee().epsilon == textbook.guarantee().epsilon
    marked = exact.laws(np.concatenate([ALL, ALL + 40]))
    bound = promised_bound(exact, euclidean(exact.table.vectors))
    assert worst_excess(marked, np.tile(bound, (2, 2))) <= 1e-9, "a marked word is as sensitive as a listed one"
    # The stronger promise of a sensitive word, against every other one.
    sensitive = exact.sensitive
    stronger = 1.0 * euclidean(exact.table.vectors) + exact.guarantee().offset + exact.guarantee().slack
    one_side = np.where(sensitive[:, None] | sensitive, stronger, np.inf)
    assert worst_excess(exact.laws(ALL), one_side) <= 1e-9


@pytest.mark.parametrize("epsilon", [0.3, 4.0, 30.0])
def test_custext_uses_epsilon_in_every_set(epsilon):
    mechanism = build("custext", {"epsilon": epsilon, "vectors": small_table(40, 5), "set_size": 8})
    with np.errstate(divide="ignore"):
        logs = np.log(mechanism.laws(ALL))
    for number in range(len(mechanism.sets)):
        members = np.flatnonzero(mechanism.set_of == number)
        inside = logs[np.ix_(members, members)]
        loss = float((inside.max(axis=0) - inside.min(axis=0)).max())
        assert loss <= epsilon
        assert loss > 0.999 * epsilon or mechanism.factors[number] == epsilon


def test_a_set_whose_loss_would_exceed_epsilon_keeps_the_textbooks_factor():
    scores = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    members = np.ones((1, 2), dtype=bool)
    assert exact_factors(lambda block: scores[block], members, 2.0)[0] == pytest.approx(2.0, rel=1e-4)
    assert losses(scores, members, np.array([3.0]))[0] > 2.0


def test_the_share_on_the_card_is_the_best_attackers():
    """Bayes-optimal guess over uniform words, from the exact law: sum over y of max over x of P(y | x) / n."""
    for name in ("santext", "tem"):
        mechanism = build(name, {"epsilon": 1.0, "vectors": small_table(40, 3)})
        law = mechanism.laws(ALL)
        assert mechanism.certificate.stays == pytest.approx(law.max(axis=0).sum() / 40, rel=1e-5)
        assert mechanism.certificate.stays == pytest.approx(np.diag(law).mean(), rel=1e-5)
    sets = build("custext", {"epsilon": 4.0, "vectors": small_table(40, 3), "set_size": 8})
    assert sets.guessed == pytest.approx(sets.laws(ALL).max(axis=0).sum() / 40)
    shown = build("santext", {"epsilon": 1.0, "vectors": small_table(40, 3)}).guarantee().parameters
    assert shown["calibration"] == "exact"
    assert shown["best guess"].endswith("of the words of the vocabulary")
    assert (
        "best guess"
        not in build("santext", {"epsilon": 1.0, "vectors": small_table(), "calibration": "textbook"})
        .guarantee()
        .parameters
    )


def test_the_audit_of_all_pairs_confirms_the_bound_and_finds_it_tight():
    mechanism = build("santext", {"epsilon": 1.0, "vectors": small_table(60, 3)})
    claim = claim_of(mechanism)
    result = radial.check_vocabulary(mechanism, claim)
    assert result.verdict is ClaimVerdict.HOLDS
    assert result.steepest > 0.999
    mechanism.__dict__["certificate"] = tight.Certificate(mechanism.scale * 1.01, *astuple(mechanism.certificate)[1:])
    assert radial.check_vocabulary(mechanism, claim).verdict is ClaimVerdict.REFUTED


# Passes over all pairs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outputs", [None, np.arange(0, 700, 3)])
def test_single_precision_bounds_what_double_precision_computes(outputs):
    table = small_table(700, 20, scale=2.0)
    mechanism = build("santext", {"epsilon": 1.0, "vectors": table})
    if outputs is not None:
        mechanism.__dict__["distances"] = mechanism._rows(outputs)
    geometry = mechanism.geometry()
    chosen = np.arange(700) if outputs is None else outputs
    geometry = tight.WordSpace(700, geometry.between, geometry.outputs, chosen)
    distances = euclidean(table.vectors)
    for scale in (0.4, 1.3):
        coarse, fine = (tight.certify(geometry, [scale], math.inf, single=single)[0] for single in (True, False))
        exponents = np.minimum(scale * distances, exponent_cap(len(chosen)))
        logs = np.log(np.exp(-exponents[:, chosen]).sum(axis=1))
        slopes = exponents + np.abs(logs[:, None] - logs)
        true = (slopes[np.triu_indices(700, 1)] / distances[np.triu_indices(700, 1)]).max()
        rounding = 4 * geometry.error  # what the proof grants for the distances, as slack
        assert true - rounding <= fine.needs <= true + rounding
        assert fine.needs <= coarse.needs <= true * 1.001
        assert coarse.low <= fine.low <= logs.min() + rounding
        assert logs.max() - rounding <= fine.high <= coarse.high
        assert coarse.stays == pytest.approx(np.exp(-logs[chosen]).mean(), rel=1e-4)


def test_the_table_of_a_grid_is_never_below_what_is_true(monkeypatch):
    monkeypatch.setattr(scales_build, "pieces", lambda: [(0.5, 0.005), (2.0, 0.02)])
    mechanism = build("santext", {"epsilon": 1.0, "vectors": small_table(300, 10)})
    *_, table = scales_build.build(mechanism, [])
    rows = np.array(table["certificates"])
    capped = scales.capped(scales.ScaleTable(rows, table["smallest_distance"]), 300, 8.0).certificates
    for number in (0, 23, 24, 47):
        for cap, row in ((math.inf, rows[number]), (8.0, capped[number])):
            true = tight.certify(mechanism.geometry(), [float(row[0])], cap, single=False)[0]
            assert true.needs <= row[1] <= (1.002 if cap > 8 else 1.2) * true.needs
            assert row[2] <= true.low
            assert true.high <= row[3] + 1e-12
            assert true.stays <= row[4]


def test_certificates_come_from_the_table_then_from_the_cache_then_from_a_search(monkeypatch):
    table = small_table(50, 3)
    monkeypatch.setattr(scales, "KEEP_FROM_WORDS", 10)
    searched = []

    def counted(*arguments, **more):
        searched.append(arguments[1])
        return tight.calibrate(*arguments, **more)

    monkeypatch.setattr(scales, "calibrate", counted)
    reported = []
    with listening(lambda work, done, total: reported.append((done, total))):
        first = build("santext", {"epsilon": 1.0, "vectors": table}).certificate
    assert searched == [1.0]
    assert reported[-1] == (1, 1)
    again = build("santext", {"epsilon": 1.0, "vectors": table}).certificate
    assert (again, searched) == (first, [1.0]), "what is kept is not searched again"
    build("santext", {"epsilon": 1.2, "vectors": table}).prepare()
    assert searched == [1.0, 1.2]
    mechanism = build("santext", {"epsilon": 3.0, "vectors": table})
    key = scales.vocabulary_key(table, "euclidean", mechanism.outputs, scales.ANY_CAP)
    rows = np.array([[2.0, 2.9, 0.0, 1.0, 0.5], [2.01, 3.1, 0.0, 1.0, 0.5], [2.5, 3.5, 0.0, 1.0, 0.5]])
    monkeypatch.setattr(scales, "bundled_scales", lambda: {key: scales.ScaleTable(rows, 0.1)})
    assert mechanism.certificate.scale == 2.0, "the largest scale that needs no more than epsilon"
    assert searched == [1.0, 1.2]
    build("santext", {"epsilon": 3.2, "vectors": table}).prepare()
    assert searched == [1.0, 1.2, 3.2], "a gap of the table is searched"
    rows = np.array([[1.49, 2.98, 0.0, 1.0, 0.5], [1.505, 3.01, -0.1, 0.9, 0.6]])
    half = scales.best_of(scales.ScaleTable(rows, 0.1), 3.0)
    assert half == tight.Certificate(1.5, 3.0, -0.1, 1.0, 0.6), "the textbook's scale is proven without a table"


@pytest.mark.parametrize("square", [True, False])
@pytest.mark.parametrize("epsilon", [3.1, 5.0, 9.0, 40.0, 1000.0])
def test_an_epsilon_above_the_table_is_proven_without_a_search(epsilon, square):
    """All pairs of a small vocabulary, at each of the three scales that a table ends with."""
    table = small_table(60, 3)
    mechanism = build("santext", {"epsilon": 1.0, "vectors": table})
    outputs = np.arange(60) if square else np.arange(0, 60, 2)
    if not square:
        mechanism.__dict__["distances"] = mechanism._rows(outputs)
    geometry = mechanism.geometry()
    geometry = tight.WordSpace(60, geometry.between, geometry.outputs, outputs)
    cap = exponent_cap(len(outputs))
    end = tight.certify(geometry, [2.0], cap)[0]
    distances = euclidean(table.vectors)
    smallest = float(distances[distances > 0].min())
    ended = scales.ScaleTable(np.array([astuple(end)]), smallest)
    assert scales.above_table(ended, end.needs * 0.99, len(outputs), cap, 60 if square else None) is None
    epsilon = max(epsilon, end.needs)
    made = scales.above_table(ended, epsilon, len(outputs), cap, 60 if square else None)
    true = tight.certify(geometry, [made.scale], cap)[0]
    assert made.scale >= epsilon / 2
    assert true.needs <= made.needs * (1 + 1e-6)
    assert made.needs <= epsilon
    assert made.low <= true.low + made.scale * 2 * geometry.error + 1e-6
    assert true.high <= made.high + 1e-6
    assert true.stays <= made.stays
    if square and epsilon == 1000.0:
        assert made.scale > 0.999 * epsilon


def test_the_tables_that_come_with_tacit_are_whole():
    for table in scales.bundled_scales().values():
        rows = table.certificates
        assert rows.shape[1] == len(tight.Certificate.__dataclass_fields__)
        assert (np.diff(rows[:, 0]) > 0).all()
        assert ((rows[:, 0] < rows[:, 1]) & (rows[:, 1] <= 2 * rows[:, 0] + 0.01)).all()
    assert json.loads(scales.ASSET.read_text()), "made by python -m tacit.words.scales_build"


def test_the_default_vectors_need_no_search(monkeypatch):
    def refused(*arguments, **more):
        raise AssertionError("a search")

    monkeypatch.setattr(scales, "calibrate", refused)
    kept = {}
    for name, epsilon in (("santext", 2.0), ("tem", 2.0), ("santext", 4.0), ("santext+", 0.2), ("santext+", 1.1)):
        mechanism = build(name, {"epsilon": epsilon})
        assert 0.98 * epsilon < mechanism.certificate.needs <= epsilon
        kept[name, epsilon] = mechanism.certificate
    for name in ("santext", "santext+", "tem", "two-budgets"):
        for epsilon in (0.2, 0.5, 1.0, 12.0, 20.0, 1000.0):
            certificate = build(name, {"epsilon": epsilon}).certificate
            assert certificate.scale >= epsilon / 2
            assert certificate.needs <= epsilon
    assert kept["santext", 2.0].scale == pytest.approx(1.40, abs=0.015)
    assert kept["santext", 2.0].stays == pytest.approx(0.17, abs=0.01)


# Other distances and laws ---------------------------------------------------------------------------------------------


def ball(words: int = 40, dimension: int = 3, radius: float = 0.9) -> VectorTable:
    rng = np.random.default_rng(4)
    points = rng.standard_normal((words, dimension))
    points *= radius * rng.random((words, 1)) ** 0.5 / np.linalg.norm(points, axis=1, keepdims=True)
    return VectorTable([f"w{i}" for i in range(words)], points.astype(np.float32), name="ball", source="test")


def poincare(vectors):
    points = np.asarray(vectors, dtype=np.float64)
    factors = 1 - (points**2).sum(axis=1)
    return np.arccosh(1 + 2 * euclidean(vectors) ** 2 / (factors[:, None] * factors))


@pytest.mark.parametrize("name", ["santext", "tem", "two-budgets"])
@pytest.mark.parametrize("calibration", ["exact", "textbook"])
def test_hyperbolic_distance(name, calibration):
    table = ball()
    options = {"sensitive_share": 1.0} if name == "two-budgets" else {}
    mechanism = build(
        name, {"epsilon": 1.0, "vectors": table, "metric": "hyperbolic", "calibration": calibration, **options}
    )
    distances = poincare(table.vectors)
    np.testing.assert_allclose(mechanism.distances.rows(ALL), distances, atol=mechanism.distances.error_bound + 1e-7)
    assert worst_excess(mechanism.laws(ALL), promised_bound(mechanism, distances)) <= 1e-9
    assert mechanism.guarantee().metric.diameter >= distances.max() - 1e-9
    if name == "santext" and calibration == "exact":
        np.fill_diagonal(distances, np.inf)
        assert 0.999 < (log_ratios(mechanism.laws(ALL)) / distances).max() <= 1.0
        pairs = mechanism.distance().closest(3)
        i, j = np.unravel_index(distances.argmin(), distances.shape)
        assert sorted(pairs[0]) == sorted([i, j])


def test_hyperbolic_distance_needs_the_ball():
    with pytest.raises(BadInputError, match="inside the unit ball"):
        build("santext", {"epsilon": 1.0, "vectors": small_table(), "metric": "hyperbolic"}).prepare()


def test_the_optimal_law_is_verified_and_exact_calibration_comes_close():
    table = small_table(40, 50, seed=5, scale=0.4)
    epsilon = 2.0
    optimal = build("optimal", {"epsilon": epsilon, "vectors": table})
    exact, textbook = (
        build("santext", {"epsilon": epsilon, "vectors": table, "calibration": kind}) for kind in ("exact", "textbook")
    )
    distances = euclidean(table.vectors)
    best, close, far = (float((m.laws(ALL) * distances).sum(axis=1).mean()) for m in (optimal, exact, textbook))
    assert best <= close < far
    assert close - best <= 0.01 * (far - best), "exact calibration wins nearly all that can be won"
    assert worst_excess(optimal.laws(ALL), promised_bound(optimal, distances)) <= 1e-9
    assert optimal.guarantee().slack < 1e-6
    drawn = optimal.draw(np.full(50_000, 7), Source.from_test_seed(3))
    assert_follows(np.bincount(drawn, minlength=40), optimal.laws(np.array([7]))[0])  # false-alarm rate 1e-6


def test_a_law_that_breaks_epsilon_is_not_used():
    distances = np.array([[0.0, 1.0], [1.0, 0.0]])
    weights = as_integers(np.array([[0.9, 0.1], [0.1, 0.9]]))
    assert verified_excess(weights, distances, 1.0) == pytest.approx(math.log(9) - 1.0, abs=1e-5)
    mechanism = build("optimal", {"epsilon": 1.0, "vectors": small_table(2, 1)})
    mechanism.__dict__["weights"] = as_integers(np.array([[0.99999, 1e-5], [1e-5, 0.99999]]))
    with pytest.raises(Exception, match="breaks epsilon"):
        mechanism.guarantee()
    with pytest.raises(BadParameterError, match="up to 100 words"):
        build("optimal", {"epsilon": 1.0, "vectors": small_table(101, 2)}).prepare()
