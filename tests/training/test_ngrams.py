"""Phrases: the exact law of what is released over a small domain keeps the promise for all neighbors, published
variants do not, and candidates that nobody used are simulated with the law of noise on each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import chi2, kstest, norm

from tacit.cli.vocabulary import command
from tacit.errors import BadInputError, TacitWarning
from tacit.guarantee import Unit
from tacit.jobs.ngrams import ngrams
from tacit.noise.gaussian import gaussian_delta
from tacit.noise.rare import binomial, passing_zeros, upper_tail
from tacit.noise.source import Source
from tacit.training.vocabulary import ngrams as levels
from tacit.training.vocabulary.contribution import Contribution
from tacit.training.vocabulary.ngrams import (
    STEPS,
    Candidates,
    Phrase,
    PhraseTerms,
    bounded_counts,
    least_steps,
    next_level,
    phrase_terms,
    released_phrases,
    runs_of,
)
from tacit.training.vocabulary.word_noise import thresholded_delta

POINT = Fraction(128, 100)
Users = list[str]
Law = dict[tuple[frozenset[Phrase], frozenset[Phrase]], float]


def candidates_of(user: str, words: frozenset[Phrase]) -> list[Phrase]:
    run = user.split()
    pairs = [tuple(run[place : place + 2]) for place in range(len(run) - 1)]
    return [pair for pair in pairs if (pair[0],) in words and (pair[1],) in words]


def passing(users: Users, words: frozenset[Phrase], terms: PhraseTerms, variant: str) -> dict[Phrase, float]:
    """The probability that each candidate of the second level is released."""
    counts = bounded_counts([candidates_of(user, words) for user in users], terms.contribution)
    every = [(first[0], last[0]) for first in sorted(words) for last in sorted(words)]
    rho = (least_steps(terms, len(every), len(words)) - 0.5) * terms.step
    unused = float(ndtr(-rho / terms.noise.scale))
    made_up = {"ours": unused, "one-sided": unused / 2, "sampled M": unused * 0.4, "not released": unused}[variant]
    law: dict[Phrase, float] = {}
    for pair in every:
        used = float(ndtr((counts.get(pair, 0) / STEPS - rho) / terms.noise.scale))
        second_chance = variant == "not released" and pair in counts
        law[pair] = made_up if pair not in counts else used + (1 - used) * made_up if second_chance else used
    return law


def subsets(items: list[Phrase]) -> list[frozenset[Phrase]]:
    return [frozenset(c) for size in range(len(items) + 1) for c in itertools.combinations(items, size)]


def released_law(users: Users, terms: PhraseTerms, variant: str = "ours") -> Law:
    """The exact law of the released words and pairs, used and unused."""
    counts = bounded_counts([[(word,) for word in user.split()] for user in users], terms.contribution)
    assert terms.noise.threshold is not None
    passes = {
        word: float(ndtr((steps / STEPS - terms.noise.threshold) / terms.noise.scale)) for word, steps in counts.items()
    }
    law: Law = {}
    for words in subsets(sorted(passes)):
        of_words = math.prod(p if word in words else 1 - p for word, p in passes.items())
        pairs = passing(users, words, terms, variant) if words else {}
        for shown in subsets(sorted(pairs)):
            law[words, shown] = of_words * math.prod(p if pair in shown else 1 - p for pair, p in pairs.items())
    return law


def excess(first: Law, second: Law, epsilon: float) -> float:
    """The delta of two laws."""
    return sum(max(0.0, p - math.exp(epsilon) * second.get(outcome, 0.0)) for outcome, p in first.items())


NEIGHBORS = [
    (["a b"] * 3 + ["b c"], "a b"), (["a b"] * 2, "c c"), (["a b a"] * 40, "b a b"), ([], "a b c"), ([], "a"),
    (["a b c"] * 30, "c b a"), (["a b", "b c", "c a"] * 12, "a a"),
]  # fmt: skip


@pytest.mark.parametrize(("users", "more"), NEIGHBORS)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.02), (1.0, 0.05), (2.0, 0.001)])
def test_the_exact_law_keeps_the_promise(users: Users, more: str, epsilon: float, delta: float) -> None:
    terms = phrase_terms(epsilon=epsilon, delta=delta, longest=2, most_phrases=2)
    with_user, without = released_law([*users, more], terms), released_law(users, terms)
    assert sum(with_user.values()) == pytest.approx(1.0, abs=1e-9)
    assert excess(with_user, without, epsilon) <= delta
    assert excess(without, with_user, epsilon) <= delta


def test_a_word_of_one_user_nearly_spends_delta() -> None:
    """The promise is not idle: at a high epsilon most of delta is the chance that a user's own word is shown."""
    terms = phrase_terms(epsilon=8.0, delta=0.01, longest=2, most_phrases=1)
    assert excess(released_law(["a"], terms), released_law([], terms), 8.0) > 0.005


@pytest.mark.parametrize("variant", ["one-sided", "sampled M", "not released"])
def test_published_variants_are_refuted(variant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made-up pairs tested on one side, their number from a sample, and drawn among all that were not released."""
    monkeypatch.setattr(levels, "MADE_UP", 5.0)
    epsilon, delta = 0.1, 0.02
    terms = phrase_terms(epsilon=epsilon, delta=delta, longest=2, most_phrases=2)
    users = ["a b"] * 400
    losses = {}
    for each in ("ours", variant):
        with_user, without = released_law([*users, "b a"], terms, each), released_law(users, terms, each)
        losses[each] = max(excess(with_user, without, epsilon), excess(without, with_user, epsilon))
    assert losses["ours"] <= delta < 0.1 < losses[variant]


def test_exact_counts_are_refuted() -> None:
    """A pair that is shown with its exact count tells whether one more user wrote it, whenever it is shown."""
    terms = phrase_terms(epsilon=1.0, delta=1e-3, longest=2, most_phrases=2)
    users = ["a b"] * 400
    shown = passing([*users, "a b"], frozenset([("a",), ("b",)]), terms, "ours")["a", "b"]
    assert shown > 0.99 > 1e-3  # the count of 401 users cannot occur without the user: delta is this probability


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("longest", [1, 2, 5])
def test_the_short_bound_holds_too(epsilon: float, longest: int) -> None:
    """delta <= delta_1 + delta_G(epsilon + ln(1 - delta_1); sqrt(levels) / sigma), and ours is never above it."""
    delta = 1e-4
    terms = phrase_terms(epsilon=epsilon, delta=delta, longest=longest, most_phrases=20)
    sigma, tau = terms.noise.scale, terms.noise.threshold
    assert tau is not None
    first = max(-math.expm1(m * float(norm.logcdf((tau - m**-0.5) / sigma))) for m in range(1, 21))
    short = first + gaussian_delta(epsilon + math.log1p(-first), sigma, math.sqrt(longest))
    ours = thresholded_delta(epsilon, sigma, tau, Contribution(20), levels=longest)
    assert ours <= delta
    assert ours <= short * (1 + 1e-9)


# Candidates that nobody used ------------------------------------------------------------------------------------------


def test_the_number_of_candidates_is_exact() -> None:
    released = [tuple(each.split()) for each in ["a b", "b a", "b c", "c c", "a a"]]
    candidates = Candidates.of(released)
    every = {
        phrase for phrase in itertools.product("abc", repeat=3) if phrase[:2] in released and phrase[1:] in released
    }
    assert len(candidates) == len(every)
    assert all(phrase in candidates for phrase in every)
    drawn = candidates.drawn(len(every) - 2, {("a", "b", "a"), ("c", "c", "c")}.__contains__, Source.from_test_seed(1))
    assert set(drawn) == every - {("a", "b", "a"), ("c", "c", "c")}


def test_simulated_candidates_follow_the_law_of_noise_on_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 releases: chi-square of each candidate's frequency, and of how many unused pass (false alarm 1 in 500)."""
    monkeypatch.setattr(levels, "MADE_UP", 0.9)
    terms = phrase_terms(epsilon=1.0, delta=1e-3, longest=2, most_phrases=2)
    words = [("a",), ("b",), ("c",)]
    users = ["a b"] * 4 + ["b c"]
    law = passing(users, frozenset(words), terms, "ours")
    source, runs = Source.from_test_seed(7), 2_000
    passed = dict.fromkeys(law, 0)
    together = np.zeros(8, dtype=np.int64)
    unused = [pair for pair in law if pair not in {("a", "b"), ("b", "c")}]
    for _ in range(runs):
        shown = next_level([candidates_of(user, frozenset(words)) for user in users], words, terms, source)
        for pair in shown:
            passed[pair] += 1
        together[sum(pair in shown for pair in unused)] += 1
    statistic = sum((passed[pair] - runs * p) ** 2 / (runs * p * (1 - p)) for pair, p in law.items())
    assert statistic < chi2.ppf(0.999, len(law))
    p = law[unused[0]]
    expected = np.array([runs * math.comb(7, k) * p**k * (1 - p) ** (7 - k) for k in range(8)])
    kept = expected > 5
    assert ((together - expected)[kept] ** 2 / expected[kept]).sum() < chi2.ppf(0.999, kept.sum())


def test_values_of_made_up_candidates_are_those_of_noise_that_passed() -> None:
    """Kolmogorov-Smirnov of 3,000 values against the normal tail (false alarm 1 in 1,000), and none below."""
    values = passing_zeros(3_000_000, 1000.0, 3_100, Source.from_test_seed(2)) / 1000.0
    assert abs(len(values) - 3_000_000 * norm.sf(3.0995)) < 4 * math.sqrt(2_900)
    assert values.min() >= 3.1
    assert kstest(values, lambda x: 1 - norm.sf(x) / norm.sf(3.0995)).pvalue > 1e-3


def test_binomial_numbers_have_their_law() -> None:
    """2,000 draws of Binomial(40, .1): chi-square (false alarm 1 in 1,000)."""
    source = Source.from_test_seed(4)
    drawn = np.bincount([binomial(40, upper_tail(POINT), source) for _ in range(2_000)], minlength=41)
    p = float(upper_tail(POINT))
    expected = np.array([2_000 * math.comb(40, k) * p**k * (1 - p) ** (40 - k) for k in range(41)])
    kept = expected > 5
    assert ((drawn - expected)[kept] ** 2 / expected[kept]).sum() < chi2.ppf(0.999, kept.sum())
    assert binomial(0, upper_tail(POINT), source) == 0


@pytest.mark.parametrize("probability", ["0.1", "0.9"])
def test_pieces_of_a_binomial_number_add_up_to_its_law(monkeypatch: pytest.MonkeyPatch, probability: str) -> None:
    """2,000 draws of Binomial(40, .1) in pieces of 20 trials, and of its mirror image: chi-square (false alarm 1 in
    1,000 each)."""
    monkeypatch.setattr("tacit.noise.rare.MOST_EXPECTED", 2)
    source = Source.from_test_seed(6)
    drawn = np.bincount([binomial(40, Decimal(probability), source) for _ in range(2_000)], minlength=41)
    p = float(probability)
    expected = np.array([2_000 * math.comb(40, k) * p**k * (1 - p) ** (40 - k) for k in range(41)])
    kept = expected > 5
    assert ((drawn - expected)[kept] ** 2 / expected[kept]).sum() < chi2.ppf(0.999, kept.sum())


def test_a_binomial_number_of_very_many_trials_does_not_vanish() -> None:
    """(1 - p)^N is 10^-1,300,000 here, no number of the computer: sums would never reach the uniform number, and all
    trials would count as successes (within 6 standard deviations: false alarm 2e-9)."""
    trials, p = 3_000_000, 0.6321
    drawn = binomial(trials, Decimal(str(p)), Source.from_test_seed(7))
    assert abs(drawn - trials * p) < 6 * math.sqrt(trials * p * (1 - p))


# Units ----------------------------------------------------------------------------------------------------------------


@given(st.lists(st.lists(st.sampled_from(["a b", "b c", "c d", "d e", "e f"]), max_size=5), min_size=1, max_size=4))
@settings(deadline=None)
def test_a_unit_adds_a_vector_of_length_one_at_most(units: list[list[str]]) -> None:
    phrases = [[tuple(each.split()) for each in unit] for unit in units]
    every = bounded_counts(phrases, Contribution(3))
    for place in range(len(phrases)):
        rest = bounded_counts([*phrases[:place], *phrases[place + 1 :]], Contribution(3))
        moved: Mapping[Phrase, int] = {each: every.get(each, 0) - rest.get(each, 0) for each in {*every, *rest}}
        assert sum(step * step for step in moved.values()) <= STEPS * STEPS


def test_which_phrases_count_does_not_hang_on_other_users() -> None:
    """Numbers of words would: the words of others come first in the file."""
    mine = [(f"w{place}", "x") for place in range(30)]
    alone = bounded_counts([mine], Contribution(5))
    others = [[(f"o{place}", "y")] for place in range(50)]
    assert set(alone) == {phrase for phrase in bounded_counts([*others, mine], Contribution(5)) if phrase[1] == "x"}


def test_runs_end_at_marks() -> None:
    assert runs_of("I'd say: well done! (x_y)") == [["i'd", "say"], ["well", "done"], ["x"], ["y"]]


def test_phrases_that_everybody_writes_come_out() -> None:
    terms = phrase_terms(epsilon=2.0, delta=1e-6, longest=3, most_phrases=10, unit=Unit.USER)
    units = [[["thank", "you", "very", "much"]]] * 800 + [[["my", "secret", "name"]]]
    shown = released_phrases(units, terms, Source.from_test_seed(1))
    assert {("thank", "you"), ("thank", "you", "very"), ("you", "very", "much")} <= set(shown)
    assert not any("secret" in phrase for phrase in shown)
    assert shown["thank", "you"] == pytest.approx(800 / math.sqrt(3), abs=6 * terms.noise.scale)
    assert all(count / terms.step == round(count / terms.step) for count in shown.values())


# The command ----------------------------------------------------------------------------------------------------------


def test_the_command_writes_a_sorted_table_with_its_card(tmp_path: Path) -> None:
    data = tmp_path / "notes.csv"
    rows = [f"user {place},thank you very much" for place in range(900)]
    data.write_text("author,text\n" + "\n".join(rows) + "\nzeb,the secret of zeb\n")
    arguments = ["ngrams", str(data), "--user-column", "author", "-c", "text", "-e", "2", "--longest", "3",
                 "-o", str(tmp_path / "phrases.csv")]  # fmt: skip
    called = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert called.exit_code == 0, called.output
    lines = [line.split(",") for line in (tmp_path / "phrases.csv").read_text().splitlines()]
    assert lines[0] == ["phrase", "words", "noisy_count"]
    order = [(int(line[1]), -float(line[2])) for line in lines[1:]]
    assert order == sorted(order)  # by length: counts of different lengths do not compare
    assert {words for words, _ in order} == {1, 2, 3}
    assert any(line[0] == "thank you very" for line in lines)
    assert "zeb" not in (tmp_path / "phrases.csv").read_text()
    assert (tmp_path / "phrases.csv.card.json").exists()


def test_few_texts_give_no_phrase_and_a_remark(tmp_path: Path) -> None:
    with pytest.warns(TacitWarning, match="no word passed"):
        made = ngrams(["good day"], epsilon=1, delta=1e-9, output=tmp_path / "p.csv", longest=2)
    assert len(made) == 0
    assert made.guarantee.unit is Unit.RECORD
    with pytest.raises(BadInputError) as raised:
        ngrams([{"text": "x", "who": " "}], epsilon=1, user_column="who", output=tmp_path / "q.csv")
    assert raised.value.code == "no-user"
