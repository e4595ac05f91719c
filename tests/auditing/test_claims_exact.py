"""Exact checks: right on known laws, equal to brute force, and every published mistake is refuted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit import build
from tacit.auditing.claims.claim import Claim, TableDistance, VectorDistance, claim_of
from tacit.auditing.claims.exact import (
    ClaimVerdict,
    check_all,
    check_pairs,
    exact_section,
    hockey_stick,
    smallest_epsilon,
    words_of,
)
from tacit.auditing.claims.laws import MatrixLaw, MechanismLaw, law_of, load_stranger, matrix_law, read_matrix
from tacit.auditing.claims.mechanisms import audit_mechanism
from tacit.auditing.claims.radial import check_vocabulary, measure_form
from tacit.auditing.claims.settings import ClaimAuditSettings
from tacit.auditing.claims.words import exact_words, word_law_of
from tacit.errors import BadInputError, BadParameterError
from tacit.noise.choice import rounding_slack
from tacit.noise.response import response_matrix
from tacit.report import Light
from tacit.words.santext import SanText
from tests.conftest import small_table
from tests.words.exactness import euclidean, log_ratios
from tests.words.test_exact import in_domain, with_list
from tests.words.test_known_wrong import tem_with_a_quotient

LIST = {"sensitive_list": "LIST", "sensitive_share": 0.0}


def random_law(rows: int, columns: int, seed: int) -> MatrixLaw:
    return matrix_law(np.random.default_rng(seed).dirichlet(np.full(columns, 0.5), size=rows))


# Known answers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 5])
def test_randomized_response_is_as_tight_as_it_claims(k):
    outcome = check_all(matrix_law(response_matrix(1.5, k)), Claim(1.5))
    assert outcome.tightest == pytest.approx(1.5, abs=1e-12)
    assert outcome.verdict is ClaimVerdict.HOLDS
    assert check_all(matrix_law(response_matrix(1.5, k)), Claim(1.49)).verdict is ClaimVerdict.REFUTED


def test_no_privacy_is_infinite_and_pure_noise_is_zero():
    nothing = check_all(matrix_law(np.eye(4)), Claim(1e6))
    assert nothing.tightest == math.inf
    assert nothing.verdict is ClaimVerdict.REFUTED
    assert nothing.worst.left == nothing.worst.output.replace("output", "input")
    noise = check_all(matrix_law(np.full((4, 7), 1 / 7)), Claim(0.0))
    assert noise.tightest == 0.0
    assert noise.verdict is ClaimVerdict.HOLDS


def test_the_smallest_delta_and_the_smallest_epsilon_are_inverse():
    p, q = random_law(2, 30, 3).matrix
    for delta in (0.001, 0.05, 0.3):
        epsilon = smallest_epsilon(p, q, delta)
        assert hockey_stick(p, q, epsilon) <= delta + 1e-12
        if epsilon > 0:
            assert hockey_stick(p, q, epsilon * 0.999) > delta
    # delta at epsilon 0 is the total variation distance.
    assert hockey_stick(p, q, 0.0) == pytest.approx(np.abs(p - q).sum() / 2)
    assert smallest_epsilon(p, q, 0.0) == pytest.approx(np.log(p / q).max())


def test_a_delta_claim_counts_what_the_ratio_cannot():
    """With probability 1 % everything is told: no epsilon at delta 0, epsilon ln 3 at delta 0.01."""
    law = np.zeros((2, 4))
    law[:, :2] = 0.99 * np.array([[0.75, 0.25], [0.25, 0.75]])
    law[0, 2] = law[1, 3] = 0.01
    outcome = check_all(matrix_law(law), Claim(math.log(3), delta=0.01))
    assert outcome.verdict is ClaimVerdict.HOLDS
    assert outcome.worst.delta == pytest.approx(0.01)
    assert outcome.tightest == pytest.approx(math.log(3), abs=1e-9)
    assert check_all(matrix_law(law), Claim(math.log(3), delta=0.0099)).verdict is ClaimVerdict.REFUTED
    assert check_all(matrix_law(law), Claim(100.0)).tightest == math.inf


@pytest.mark.parametrize("seed", range(3))
def test_the_ways_agree_with_brute_force(seed):
    law = random_law(12, 9, seed)
    distances = euclidean(np.random.default_rng(seed).standard_normal((12, 3)).astype(np.float32))
    ratios = log_ratios(law.matrix)
    np.fill_diagonal(ratios, -np.inf)
    assert check_all(law, Claim(1.0)).tightest == pytest.approx(ratios.max())
    metric = Claim(2.0, offset=0.3, slack=0.01, distance=TableDistance(distances))
    pairs = np.stack(np.triu_indices(12, 1), axis=1)
    for each in (check_all(law, metric), check_pairs(law, metric, pairs)):
        assert each.tightest == pytest.approx(ratios.max())
        assert each.excess == pytest.approx((ratios - 2.0 * distances - 0.31).max())
        off = ~np.eye(12, dtype=bool)
        assert each.steepest == pytest.approx(((ratios[off] - 0.3) / distances[off]).max())
        w = each.worst
        i, j = words_of(law, [w.left, w.right])
        column = list(law.outputs).index(w.output)
        assert w.loss == pytest.approx(np.log(law.matrix[i, column] / law.matrix[j, column])), "the witness is real"


def test_pairs_about_which_nothing_is_claimed_prove_nothing():
    claim = Claim(0.1, sets=np.array([0, 0, 1, 1]))
    law = matrix_law(np.eye(4)[[0, 0, 1, 1]])
    with pytest.raises(BadInputError, match="nothing is claimed"):
        check_pairs(law, claim, np.array([[0, 2], [1, 3]]))
    outcome = check_pairs(law, claim, np.array([[0, 1], [0, 2]]))
    assert outcome.pairs == 1
    assert outcome.verdict is ClaimVerdict.HOLDS
    assert "1 of them" in outcome.scope
    assert check_all(law, claim).verdict is ClaimVerdict.HOLDS


# The whole vocabulary -------------------------------------------------------------------------------------------------

RADIAL = [("santext", {}), ("tem", {"beta": 0.4}), ("two-budgets", LIST), ("santext+", LIST)]


@pytest.mark.parametrize("epsilon", [0.5, 6.0])
@pytest.mark.parametrize(("name", "options"), RADIAL)
def test_the_bound_by_distances_gives_what_every_triple_gives(name, options, epsilon, tmp_path):
    table = small_table(120, 4, seed=7)
    mechanism = build(name, {"epsilon": epsilon, "vectors": table, **with_list(options, tmp_path)})
    claim = claim_of(mechanism)
    fast, slow = check_vocabulary(mechanism, claim), check_all(MechanismLaw(mechanism), claim)
    assert fast.verdict is slow.verdict is ClaimVerdict.HOLDS
    for low, high, exact in (
        (fast.excess, fast.excess_at_most, slow.excess),
        (fast.tightest, fast.tightest_at_most, slow.tightest),
        (fast.steepest, fast.steepest_at_most, slow.steepest),
    ):
        assert low - 1e-9 <= exact <= high + 1e-9
    if name in ("santext", "tem"):
        assert fast.tightest_at_most == pytest.approx(slow.tightest, abs=1e-6), "attained at y = x: no interval is left"
    assert fast.pairs == slow.pairs == 120 * 119 // 2


def test_the_form_is_measured_on_the_law_that_is_used():
    mechanism = SanText(epsilon=3.0, vectors=small_table(200, 5))
    form, shared = measure_form(mechanism, claim_of(mechanism))
    assert 0 < form.deviation <= rounding_slack(200)
    assert shared is None


class WithoutTheHalf(SanText):
    def scales(self, ids):
        return self.epsilon


class Sneaky(SanText):
    """The right law, but for one word that one other word gives away."""

    def laws(self, ids):
        law = super().laws(ids)
        law[ids == 17, 42] += 0.5
        return law / law.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("kind", [WithoutTheHalf, Sneaky])
def test_a_law_that_is_not_what_the_code_says_is_refuted(kind):
    mechanism = kind(epsilon=3.0, vectors=small_table(150, 2))
    outcome = check_vocabulary(mechanism, claim_of(mechanism))
    assert outcome.verdict is ClaimVerdict.REFUTED
    slow = check_all(MechanismLaw(mechanism), claim_of(mechanism))
    assert outcome.excess <= slow.excess + 1e-9 <= outcome.excess_at_most + 2e-9
    if kind is Sneaky:
        assert (outcome.worst.left, outcome.worst.output) == ("w17", "w42")


class NotALaw(SanText):
    def laws(self, ids):
        return super().laws(ids) * self.factor


@pytest.mark.parametrize("factor", [1.001, math.nan, -1.0])
def test_a_law_that_does_not_add_up_gets_no_verdict(factor):
    mechanism = NotALaw(epsilon=3.0, vectors=small_table(30, 2))
    mechanism.__dict__["factor"] = factor
    for check in (
        lambda: check_vocabulary(mechanism, claim_of(mechanism)),
        lambda: check_all(MechanismLaw(mechanism), claim_of(mechanism)),
    ):
        with pytest.raises(BadInputError, match="no probability distribution"):
            check()


def test_an_unprotected_output_of_two_inputs_is_refuted(tmp_path):
    options = with_list(LIST, tmp_path)
    mechanism = build("santext+", {"epsilon": 2.0, "vectors": small_table(40, 3), **options})
    claim = claim_of(mechanism)
    law = mechanism.laws(np.arange(40))
    assert check_all(MatrixLaw(law, mechanism.vocabulary, mechanism.vocabulary), claim).verdict is ClaimVerdict.HOLDS
    common = np.flatnonzero(~mechanism.sensitive)
    law[common[0], common[1]] = 0.001
    law[common[0]] /= law[common[0]].sum()
    outcome = check_all(MatrixLaw(law, mechanism.vocabulary, mechanism.vocabulary), claim)
    assert outcome.verdict is ClaimVerdict.REFUTED
    assert outcome.shared_output.output == f"w{common[1]}"


# Our own, and the published mistakes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options"), [*RADIAL, ("custext", {"set_size": 7}), ("brr", {"bits": 8}), ("random", {})]
)
def test_our_own_are_not_accused(name, options, tmp_path):
    mechanism = build(name, {"epsilon": 2.0, "vectors": small_table(60, 3), **with_list(options, tmp_path)})
    words = "60" if name == "brr" else None
    sections = audit_mechanism(mechanism, ClaimAuditSettings(words=words, seed=1))
    lights = {finding.name: finding.light for section in sections for finding in section.findings}
    assert lights == {"Claim against the exact law": Light.GREEN, "Unknown words": Light.GREEN}


def test_anchored_gumbel_holds_and_the_published_one_is_refuted():
    table = small_table(20, 50, seed=1)
    anchored = in_domain(table, 1.01, "anchored")
    assert (
        exact_words(
            anchored, word_law_of(anchored), claim_of(anchored), ClaimAuditSettings(words="20", tolerance=1e-6)
        ).verdict
        is ClaimVerdict.HOLDS
    )
    published = in_domain(table, 1.01, "published")
    with pytest.raises(BadParameterError, match="promises nothing"):
        claim_of(published)
    claim = Claim(published.epsilon, distance=VectorDistance(table.vectors))
    assert check_all(MechanismLaw(published), claim).verdict is ClaimVerdict.REFUTED
    (section,) = audit_mechanism(published)
    assert section.findings[0].light is Light.AMBER


def test_tem_with_a_quotient_underflow_and_unknown_words_passed_through():
    table = small_table(40, 2, seed=2)
    distance = VectorDistance(table.vectors)
    wrong = matrix_law(tem_with_a_quotient(euclidean(table.vectors), 8.0, 1.5))
    outcome = check_all(wrong, Claim(8.0, distance=distance))
    assert outcome.verdict is ClaimVerdict.REFUTED
    assert outcome.steepest > 1.05 * 8.0, "the ratio to the claim that the survey of such code reports"
    far = euclidean(small_table(40, 2, scale=20.0).vectors).astype(np.float32)
    weights = np.exp(np.float32(-5.0) * far).astype(np.float64)
    law = matrix_law(weights / weights.sum(axis=1, keepdims=True))
    assert check_all(law, Claim(10.0, distance=TableDistance(far.astype(float)))).excess == math.inf
    passed = np.eye(45)
    passed[:40, :40] = build("santext", {"epsilon": 1.0, "vectors": table}).laws(np.arange(40))
    assert check_all(matrix_law(passed), Claim(1e6)).verdict is ClaimVerdict.REFUTED


def test_the_closest_pairs_of_the_real_vocabulary(default_table):
    mechanism = build("tem", {"epsilon": 6.0, "vectors": default_table})
    outcome = exact_words(
        mechanism, word_law_of(mechanism), claim_of(mechanism), ClaimAuditSettings(words="closest:50")
    )
    assert outcome.pairs == 50
    assert outcome.verdict is ClaimVerdict.HOLDS


# What comes from outside ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.5, 0.6], [0.5, 0.5]], "add up to 1.1"),
        ([[0.5, math.nan], [0.5, 0.5]], "no probability"),
        ([[-0.1, 1.1], [0.5, 0.5]], "no probability"),
        ([[1.0, 0.0]], "one row"),
        ([["a", "b"], [1, 2]], "numbers only"),
        ([0.5, 0.5], "one row per input"),
    ],
)
def test_what_is_no_law_is_refused_in_one_sentence(matrix, message):
    with pytest.raises(BadInputError, match=message):
        matrix_law(matrix)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,a,b\none,0.5,0.5\ntwo,0.5\n", "row 3 .* has 2 cells"),
        ("x,a,b\none,0.5,0.5\ntwo,0.5,half\n", "'half' is no number"),
        ("x,a,b\none,0.5,0.5\none,0.5,0.5\n", "two rows named 'one'"),
        ("x,a,a\none,0.5,0.5\ntwo,0.5,0.5\n", "two columns named 'a'"),
        ("x\n", "needs a header"),
        ("x,a,b\none,nan,0.5\ntwo,0.5,0.5\n", "no probability"),
    ],
)
def test_a_csv_that_is_no_law_is_refused(tmp_path, text, message):
    path = tmp_path / "law.csv"
    path.write_text(text)
    with pytest.raises(BadInputError, match=message):
        read_matrix(path)
    with pytest.raises(BadInputError, match="cannot read"):
        read_matrix(tmp_path / "none.csv")


def test_functions_somebody_else_wrote(tmp_path):
    path = tmp_path / "theirs.py"
    path.write_text(
        "def good(word):\n    return {'a': 0.75, 'b': 0.25} if word == 'a' else {'b': 0.75, 'a': 0.25}\n"
        "def raises(word):\n    raise KeyError(word)\n"
        "def wrong(word):\n    return {'a': 2.0}\n"
        "def short(word):\n    return [1.0] * len(word)\n"
        "def nothing(word):\n    return None\n"
        "def sampler(word, count):\n    return [word] * count\n"
    )
    law = law_of(load_stranger(f"{path}:good"), ["a", "b"])
    assert check_all(law, Claim(math.log(3))).tightest == pytest.approx(math.log(3))
    assert load_stranger(f"{path}:sampler").samples
    for name, message in (
        ("raises", "failed for 'a' with KeyError"),
        ("wrong", "no probability"),
        ("short", "equally long|add up"),
        ("nothing", "must return probabilities"),
        ("missing", "has no function"),
    ):
        with pytest.raises(BadInputError, match=message):
            law_of(load_stranger(f"{path}:{name}"), ["a", "bb"])
    with pytest.raises(BadParameterError, match="module:function"):
        load_stranger("nothing")
    with pytest.raises(BadInputError, match="cannot be loaded"):
        load_stranger("no_such_module_here:f")


def test_the_section_says_what_was_found_and_no_more():
    section = exact_section(check_all(matrix_law(np.eye(3)), Claim(2.0)))
    (finding,) = section.findings
    assert finding.refuted
    assert finding.light is Light.RED
    assert "infinite" in finding.sentence
    assert finding.numbers["tightest_epsilon"] == math.inf
    fine = exact_section(check_all(matrix_law(response_matrix(1.0)), Claim(1.0))).findings[0]
    assert fine.light is Light.GREEN
    assert "all 1 pairs of 2 inputs" in fine.sentence
    assert "nothing is said about others" in fine.why
