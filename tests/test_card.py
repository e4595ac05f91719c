from __future__ import annotations

import json
import math
from dataclasses import replace

import jsonschema
import pytest

from tacit.card import Card, ReleaseFacts, json_schema, odds, plain_sentence, strength, totals
from tacit.catalog import build, mechanism_names
from tacit.errors import BadInputError
from tests.conftest import small_table
from tests.test_guarantee import approximate, metric, optimized, pure

FACTS = ReleaseFacts(
    rows=3, documents=6, units=60, longest_document=12, longest_row=20, columns=("text", "title"),
    kept_columns=("label|x",), dropped_columns=1, output="private.csv",
    command="tacit rewrite --epsilon 2", created="2026-01-01T00:00:00+00:00",
)  # fmt: skip
GUARANTEES = [pure(), approximate(), metric(), optimized(), pure().voided("it was drawn with a test seed")]


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("facts", [None, FACTS])
def test_json_is_valid_and_comes_back(guarantee, facts):
    card = Card(guarantee, facts)
    jsonschema.validate(json.loads(card.to_json()), json_schema())
    assert Card.from_json(card.to_json()) == card


def test_the_card_of_every_mechanism_is_valid():
    for name in mechanism_names("word"):
        options = {"mode": "real-part"} if name == "truncated-gumbel" else {}
        guarantee = build(name, {"epsilon": 1.0, "vectors": small_table(), **options}).guarantee()
        jsonschema.validate(json.loads(Card(guarantee).to_json()), json_schema())
        assert guarantee.not_covered, "every word mechanism leaves the length visible and says so"
        assert guarantee.provenance
        assert str(guarantee)


def test_a_card_that_claims_too_much_is_refused():
    data = json.loads(Card(pure().voided("a test")).to_json())
    data["guarantee"]["epsilon"] = 1.0
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, json_schema())


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"card_version": 99}', "not json"])
def test_other_files_are_not_cards(text):
    with pytest.raises(BadInputError):
        Card.from_json(text)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_all_renderings_say_the_same(guarantee):
    card = Card(guarantee, FACTS)
    for text in (card.to_markdown(), card.to_html(), card.to_text()):
        assert guarantee.notion.label in text
        assert guarantee.adjacency.value in text
        assert ("NO GUARANTEE" in text) == (not guarantee.is_private)
    assert "label\\|x" in card.to_markdown()
    assert "<script" not in card.to_html()


def test_html_escapes_what_comes_from_outside():
    facts = ReleaseFacts(rows=0, documents=0, units=0, longest_document=0, longest_row=0, output="<script>x</script>")
    assert "<script>" not in Card(pure(), facts).to_html()


def test_plain_sentences():
    assert "at most 2.72" in plain_sentence(pure(1.0))
    assert "plus 1e-06 on every probability" in plain_sentence(approximate())
    assert "e^(2 x distance): 2,981 at the typical distance 4" in plain_sentence(metric(2.0))
    assert "knows that it stood there" in plain_sentence(optimized())
    assert "no privacy guarantee: it was drawn with a test seed" in plain_sentence(GUARANTEES[-1])


def test_odds_stay_readable():
    assert odds(0.0) == "1"
    assert odds(1e-9) == "1.0001"
    assert odds(2763.0) == "10^1200"
    assert odds(math.inf) == "any factor"


def test_strength_has_stated_thresholds():
    assert [strength(x).split(":")[0] for x in (0.5, math.log(3), 2, 4, 7, 10, 11)] == [
        "strong", "strong", "moderate", "moderate", "weak", "weak", "nominal",
    ]  # fmt: skip


def test_totals_show_what_a_per_token_epsilon_hides():
    by_what = {what: exponent for what, exponent, _ in totals(pure(2.0), FACTS)}
    assert by_what["one word"] == 2.0
    assert by_what["the longest row here, 20 words"] == 40.0
    spread = {what: exponent for what, exponent, _ in totals(metric(2.0), FACTS)}
    assert spread["the longest row here, 20 words, largest distances"] == pytest.approx(2.0 * 10 * 20)
    assert list(totals(GUARANTEES[-1], FACTS)) == []


def test_a_card_without_a_digest_is_read():
    """Earlier ones have none."""
    data = json.loads(Card(pure(), FACTS).to_json())
    del data["release"]["digest"]
    facts = Card.from_json(json.dumps(data)).facts
    assert facts is not None
    assert facts.digest == ""


def test_the_digest_is_shown():
    facts = replace(FACTS, digest="0f" * 32)
    jsonschema.validate(json.loads(Card(pure(), facts).to_json()), json_schema())
    assert "0f0f" in Card(pure(), facts).to_markdown()


# What (epsilon, delta) means (item A4) ---------------------------------------------------------------------------


def gaussian_losses(epsilon: float, delta: float):
    """Chances that the privacy loss of Gaussian noise with exactly this delta exceeds a number, under either input.

    With mu = sensitivity / sigma the loss is normal with mean mu^2 / 2 and variance mu^2 under the true input, and with
    mean -mu^2 / 2 under the other."""
    from scipy.stats import norm

    from tacit.noise.gaussian import analytic_gaussian_sigma

    mu = 1.0 / analytic_gaussian_sigma(epsilon, delta, 1.0)
    return (
        lambda bound: float(norm.sf(bound, loc=mu * mu / 2, scale=mu)),
        lambda bound: float(norm.sf(bound, loc=-mu * mu / 2, scale=mu)),
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9])
def test_a4_the_odds_of_gaussian_noise_keep_to_what_the_card_says(epsilon, delta):
    """Exact: the odds move by more than e^epsilon more often than delta, by more than the card's factor less often than
    the card's probability."""
    import re

    truth, other = gaussian_losses(epsilon, delta)
    assert truth(epsilon) > 1.5 * delta, "so 'except with probability delta' was false"
    sentence = plain_sentence(approximate(epsilon, delta=delta))
    match = re.search(r"by at most ([\d.,]+|10\^\d+), except with probability ([\d.e-]+);", sentence)
    factor = 10.0 ** int(match[1][3:]) if match[1].startswith("10^") else float(match[1].replace(",", ""))
    moved = truth(math.log(factor)) + other(math.log(factor))
    assert moved <= float(match[2])
    assert f"plus {delta:g} on every probability" in sentence


def test_a4_the_number_of_the_review():
    truth, _ = gaussian_losses(1.0, 1e-6)
    assert truth(1.0) == pytest.approx(2e-5, rel=0.15)


@pytest.mark.parametrize("delta", [0.0, 0.01, 0.2, 0.4])
def test_a4_the_odds_bound_holds_for_the_worst_mechanism_there_is(delta):
    """Any (epsilon, delta) mechanism between two inputs is a post-processing of one with four outputs (Kairouz, Oh &
    Viswanath 2015); the bound is checked on it, and on it split so that ratios lie just above and below 2 e^epsilon."""
    from tacit.card import ODDS_MARGIN, TAIL

    epsilon = 1.3
    e = math.exp(epsilon)
    rest = (1 - delta) / (1 + e)
    p = [delta, rest * e, rest, 0.0]
    q = [0.0, rest, rest * e, delta]
    for share in (0.0, 0.2, 0.5, 0.9, 1.0):
        # The output that gives x away is joined with a part of the one in the middle, as far as the ratio allows.
        joined = [p[0] + share * p[1], (1 - share) * p[1], p[2] + share * p[3], (1 - share) * p[3]]
        others = [q[0] + share * q[1], (1 - share) * q[1], q[2] + share * q[3], (1 - share) * q[3]]
        moved = sum(
            a
            for a, b in zip(joined, others, strict=True)
            if a > 0 and (b == 0 or abs(math.log(a / b)) > epsilon + ODDS_MARGIN + 1e-12)
        )
        assert moved <= TAIL * delta + 1e-12


def test_a4_no_text_of_ours_says_except_with_probability_delta():
    """(epsilon, delta) is not probabilistic differential privacy; only a public random draw may fail with a delta."""
    from tests.conftest import ROOT

    places = [*ROOT.glob("docs/*.md"), *ROOT.glob("*.md"), *ROOT.glob("src/**/*.py"), *ROOT.glob("src/**/*.js")]
    assert len(places) > 100
    wrong = [
        path.name
        for path in places
        for line in path.read_text(encoding="utf-8").splitlines()
        if "except with probability delta" in line.lower().replace("δ", "delta") and "public" not in line
    ]
    assert not wrong, wrong
    for guarantee in GUARANTEES:
        card = Card(guarantee)
        for text in (card.to_text(), card.to_markdown(), card.to_html(), card.to_json()):
            assert "except with probability 1e-06" not in text
