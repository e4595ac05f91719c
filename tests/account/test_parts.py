"""Two parts of a budget are never more than the whole."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import example, given
from hypothesis import strategies as st

from tacit.account.parts import in_two_parts


@given(st.floats(1e-9, 1e6), st.floats(0.01, 0.99))
@example(2.85, 0.2)
@example(0.054, 0.2)
def test_the_parts_of_a_budget_add_up_to_no_more_than_the_whole(whole: float, share: float) -> None:
    first, rest = in_two_parts(whole, share)
    assert first == share * whole
    assert Fraction(first) + Fraction(rest) <= Fraction(whole)
    assert whole * (1 - 1e-15) <= first + rest <= whole
