"""Upper bounds are rounded up and lower bounds down, wherever they are shown (item A10)."""

from __future__ import annotations

import math
import re
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.account.ledger.amounts import Spent
from tacit.account.ledger.charges import Charge
from tacit.account.ledger.limits import Limit, shown
from tacit.auditing.claims.claim import Claim
from tacit.card import Card, odds, plain_sentence
from tacit.card_words import AT_LEAST, AT_MOST, setting_line
from tacit.cli.rewrite import shown_command
from tacit.jobs.rewrite_config import RewriteConfig, shown_options
from tacit.report import AtLeast, AtMost
from tacit.report.parts import cell_text
from tacit.rounding import exponential_up, power_of_ten_up, rounded_down, rounded_up
from tacit.vectors.bounding import bounding
from tests.test_guarantee import approximate, metric, pure

finite = st.floats(min_value=-1e300, max_value=1e300)
losses = st.floats(min_value=0, max_value=1e9, allow_nan=False)


def value_of(text: str) -> float:
    return float(text.replace(",", ""))


@given(finite, st.integers(1, 12))
def test_a10_rounding_never_crosses_the_value_and_stays_near(value, digits):
    above, below = value_of(rounded_up(value, digits)), value_of(rounded_down(value, digits))
    assert below <= value <= above
    if above == below:
        assert above == value
    else:
        # One unit of the last of so many digits at most; whole units are always shown.
        unit = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1) if value else 0.0
        if 1 <= abs(value) < 1e15:
            unit = min(unit, 1.0)
        assert above - below <= max(10 * unit, 5e-324) * (1 + 1e-9)
    assert rounded_up(-value, digits).replace("-", "") == rounded_down(value, digits).replace("-", "")


@given(st.floats(min_value=0, max_value=800), st.integers(1, 6))
def test_a10_odds_are_never_below_their_bound(exponent, digits):
    with localcontext() as context:
        context.prec = 500
        exact = Decimal(exponent).exp()
        assert Decimal(exponential_up(exponent, digits).replace(",", "")) >= exact
        assert Decimal(10) ** int(power_of_ten_up(exponent).removeprefix("10^")) >= exact
        shown = odds(exponent)
        number = Decimal(10) ** int(shown[3:]) if shown.startswith("10^") else Decimal(shown.replace(",", ""))
        assert number >= exact
        assert number <= exact * (10 if exponent >= 20 else Decimal("1.02"))


def test_a10_known_values():
    """The cases of the review: 148 for 148.41, 10^9 for 2.9e9, a slack cut to one digit."""
    assert odds(5.0) == "149"
    assert odds(math.log(2.9e9)) == "10^10"
    assert rounded_up(4.44e-10, 2) == "4.5e-10"
    assert (rounded_up(0.1), rounded_up(1e-6), rounded_up(0.0)) == ("0.1", "1e-06", "0")
    assert (rounded_up(math.inf), rounded_down(-math.inf)) == ("infinite", "-infinite")
    assert (rounded_up(1234.2, 3), rounded_down(1234.8, 3)) == ("1,235", "1,234")


@given(losses, st.floats(min_value=1e-12, max_value=1e-3))
def test_a10_every_number_on_a_card_is_at_least_the_bound(epsilon, delta):
    for guarantee in (
        pure(epsilon, slack=1.2345678e-9),
        approximate(epsilon, delta=delta, slack=4.56789e-10),
        metric(epsilon, slack=1.2345678e-9),
    ):
        content = Card(guarantee).content()
        rows = dict(content.rows)
        assert value_of(rows["epsilon"].split()[0]) >= guarantee.epsilon
        assert value_of(rows["computer arithmetic"].split()[3]) >= guarantee.slack
        if guarantee.delta:
            assert value_of(rows["delta"]) >= guarantee.delta
        for (_, text, _), total in zip(content.totals, Card(guarantee).to_dict()["totals"], strict=True):
            assert value_of(re.match(r"e\^([\d.,e+-]+) =", text)[1]) >= total["exponent"]
        sentence = plain_sentence(guarantee)
        if guarantee.metric is not None:
            inside = re.search(r"e\^\(([\d.,e+-]+) x distance \+ ([\d.,e+-]+)\)", sentence)
            assert value_of(inside[1]) >= epsilon
            assert value_of(inside[2]) >= guarantee.slack


@given(losses, st.floats(min_value=1e-12, max_value=1e-3))
def test_a10_ledger_and_audit_round_to_the_safe_side(epsilon, delta):
    for text in (
        shown(Charge(epsilon, 0.0, delta)),
        str(Spent(epsilon, delta, 1)),
        str(Limit("user", "", None, epsilon, delta)),
        str(Claim(epsilon, delta=delta)),
    ):
        results = [value_of(part) for part in re.findall(r"(?:epsilon|delta) ([\d.,e+-]*\d)", text)]
        assert results[0] >= epsilon
        assert results[1] >= delta
    assert value_of(cell_text(AtMost(epsilon))) >= epsilon
    assert value_of(cell_text(AtLeast(epsilon))) <= epsilon


@given(losses)
def test_a10_settings_that_a_promise_rests_on_are_on_the_safe_side(value):
    """A card said that two texts differ by at most 61.9677 where it was 61.96773353931867."""
    for name in AT_MOST:
        assert value_of(re.search(r"[\d.,e+-]*\d", setting_line(name, value)[1])[0]) >= value
    for name in AT_LEAST:
        assert value_of(re.search(r"[\d.,e+-]*\d", setting_line(name, value)[1])[0]) <= value


@pytest.mark.parametrize("seed", range(5))
def test_a10_the_derivation_of_a_sensitivity_gives_no_less_than_the_sensitivity(seed):
    """The numbers behind the colon, multiplied, as a reader of the card would."""
    vectors = np.random.default_rng(seed).standard_normal((40, 12)).astype(np.float32)
    for chosen, shape in (
        (bounding("jl", dimension=5, seed=seed), r"norm ([\d.,e+-]+) of the drawn matrix, times ([\d.,e+-]+)"),
        (bounding("observed-range", bound="lipschitz"), r"^([\d.,e+-]+) times"),
    ):
        result = chosen.fit(vectors).sensitivity()
        factors = [value_of(text) for text in re.search(shape, result.how).groups()]
        if below := re.search(r"2 sqrt\(12 - 1\) / ([\d.,e+-]+\d)", result.how):
            factors.append(2 * math.sqrt(11) / value_of(below[1]))
        assert math.prod(factors) >= result.value * (1 - 1e-15)


@given(st.floats(min_value=1e-6, max_value=1e6))
def test_a10_the_command_on_a_card_has_the_budget_that_was_given(value):
    """It was cut to six digits: 148.4131591 as --epsilon 148.413."""
    config = RewriteConfig(
        input="in.csv", columns=("text",), mechanism="santext", epsilon=value, randomize="stars", label_epsilon=value,
        labels=("a", "b"),
    )  # fmt: skip
    words = shown_command("rewrite", shown_options(config)).split()
    assert float(words[words.index("--epsilon") + 1]) == value
    assert float(words[words.index("--label-epsilon") + 1]) == value


def test_a10_calibration_is_safe_to_copy(capsys):
    """Noise is never shown smaller than it must be, nor the truth more often than it may be told."""
    from click.testing import CliRunner

    from tacit.cli.main import app

    for arguments, name, side in (
        (["gaussian", "--epsilon", "0.7", "--delta", "1e-7"], "sigma", 1),
        (["gaussian", "--sigma", "2.3", "--delta", "1e-7"], "epsilon", 1),
        (["laplace", "--epsilon", "0.7"], "scale", 1),
        (["response", "--epsilon", "0.77"], "truth_probability", -1),
    ):
        import json

        exact = json.loads(CliRunner().invoke(app, ["calibrate", *arguments, "--json"]).output)[name]
        table = CliRunner().invoke(app, ["calibrate", *arguments]).output
        row = next(line for line in table.splitlines() if line.strip("│ ").startswith(name.replace("_", " ")))
        copied = value_of(row.strip("│ ").split()[-1])
        assert side * (copied - exact) >= 0
        assert copied == pytest.approx(exact, rel=1e-4)
