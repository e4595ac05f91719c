"""Checks of published statements: reading them, and their verdicts."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import BadInputError
from tacit.experiments.config import About, Finding, Value
from tacit.experiments.findings import (
    evaluate,
    judge,
    parse_check,
    parse_expression,
    rank_correlation,
    summary,
)
from tacit.experiments.results import Cell, Results
from tacit.report import Light


def cell(score: float, problem: str = "", off: float = 0.02, **axes: Value) -> Cell:
    scores = {} if problem else {"score": score, "score.low": score - off, "score.high": score + off,
                                 "score.floor": 0.5, "macro-F1": score / 2}  # fmt: skip
    return Cell("task", "downstream", axes, scores, problem)


def results(*cells: Cell) -> Results:
    return Results(About(name="a", title="A", reference={"mechanism": "none"}), "quick", "0", cells, {})


def sure(score: float, **axes: Value) -> Cell:
    return cell(score, off=0.0001, **axes)


GRID = results(
    sure(0.90, data="sst2", mechanism="none"),
    sure(0.80, data="qnli", mechanism="none"),
    *(sure(0.5 + 0.1 * e, data="sst2", mechanism="santext", epsilon=e) for e in (1, 2, 3)),
    *(sure(0.5 + 0.05 * e, data="qnli", mechanism="santext", epsilon=e) for e in (1, 2, 3)),
    *(sure(0.70, data="sst2", mechanism="santext+", epsilon=e) for e in (1, 2, 3)),
    *(sure(0.60, data="qnli", mechanism="santext+", epsilon=e) for e in (1, 2)),
    cell(0, "failed: it did", data="qnli", mechanism="santext+", epsilon=3),
)


def verdict(check: str, where: Results = GRID, **more: str) -> str:
    return judge(Finding(statement="s", source="t", check=check, **more), where).word


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ("task.score[mechanism=santext] increases with epsilon for each data", "agree"),
        ("task.score[mechanism=santext] decreases with epsilon", "disagree"),
        ("task.score[mechanism=santext+, data=sst2] increases with epsilon", "undecided"),
        ("task.score[mechanism=santext+, data=sst2] is flat with epsilon within 0.01", "agree"),
        ("task.score[mechanism=santext] is flat with epsilon within 0.1", "disagree"),
        ("task.score[mechanism=santext, epsilon=max] > task.score[mechanism=santext+, epsilon=min] for each data",
         "agree"),
        ("task.score[mechanism=santext, epsilon=2] > task.score[mechanism=santext+, epsilon=2] for each data",
         "undecided"),
        ("task.score[mechanism=santext, epsilon=2.0] >= task.score[mechanism=santext+, epsilon=2] for each data",
         "undecided"),
        ("task.score[mechanism=none] > task.score[mechanism=santext] for each data, epsilon", "agree"),
        ("task.score[mechanism=santext, data=sst2] > 0.65 for each epsilon", "disagree"),
        ("task.score[mechanism=santext, data=sst2] > 0.65 for most epsilon", "agree"),
        ("task.score[mechanism=none] within 0.1 of task.score[mechanism=santext, epsilon=3] for each data", "disagree"),
        ("task.score[mechanism=none, data=sst2] within 0.11 of task.score[mechanism=santext, epsilon=3, data=sst2]",
         "agree"),
        ("task.score[mechanism=none, data=sst2] - task.score[mechanism=none, data=qnli] < 0.11", "agree"),
        ("task.macro-F1[mechanism=none] < task.score[mechanism=none] for each data", "agree"),
        ("share(task.score[mechanism=santext, epsilon=3, data=sst2]) within 0.001 of 0.75", "agree"),
    ],
)  # fmt: skip
def test_verdicts(check: str, expected: str):
    assert verdict(check) == expected


@pytest.mark.parametrize(
    ("check", "why"),
    [
        ("task.score[mechanism=santext+, epsilon=3] > 0.5 for each data", "1 of 1 cells"),
        ("task.score[mechanism=santext+] > 0.5", "1 of 6 cells"),
        ("task.score[mechanism=laplace] > 0.5", "was not part of this run"),
        ("task.bleu[mechanism=none] > 0.5", "has no 'bleu'"),
        ("task.score[mechanism=none] increases with epsilon", "at least two values of 'epsilon'"),
        ("share(task.macro-F1[mechanism=santext, data=sst2, epsilon=1]) > 0", "no floor and ceiling"),
    ],
)
def test_what_cannot_be_tested_says_why(check: str, why: str):
    found = judge(Finding(statement="s", source="t", check=check), GRID)
    assert found.word == "not testable"
    assert why in found.detail
    assert found.light is Light.NONE


def test_a_statement_without_a_check_keeps_its_reason():
    found = judge(Finding(statement="s", source="t", untestable="no GPU."), GRID)
    assert (found.word, found.detail) == ("not testable", "no GPU.")


def test_a_disagreement_is_red_without_an_explanation_and_amber_with_one():
    check = "task.score[mechanism=none] < 0.1"
    assert judge(Finding(statement="s", source="t", check=check), GRID).light is Light.RED
    assert judge(Finding(statement="s", source="t", check=check, explanation="x"), GRID).light is Light.AMBER


def judged(check, where):
    found = judge(Finding(statement="s", source="t", check=check), where)
    return found.word, found.leaning


def test_two_scores_at_their_floor_decide_nothing():
    floor = results(cell(0.0, off=0.0, mechanism="a"), cell(0.0, off=0.0, mechanism="b"))
    assert judged("task.score[mechanism=a] > task.score[mechanism=b]", floor) == ("undecided", False)


# each value is off by at most 0.02, so a difference of 0.1 is clear and one of 0.01 is not
NEAR = results(cell(0.60, mechanism="a"), cell(0.61, mechanism="b"), cell(0.71, mechanism="c"))


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ("task.score[mechanism=c] > task.score[mechanism=a]", ("agree", None)),
        ("task.score[mechanism=c] < task.score[mechanism=a]", ("disagree", None)),
        ("task.score[mechanism=b] > task.score[mechanism=a]", ("undecided", True)),
        ("task.score[mechanism=b] < task.score[mechanism=a]", ("undecided", False)),
        ("task.score[mechanism=c] within 0.3 of task.score[mechanism=a]", ("agree", None)),
        ("task.score[mechanism=c] within 0.1 of task.score[mechanism=a]", ("undecided", False)),
        # over groups: b (0.61) and c (0.71) against numbers
        ("task.score[mechanism=b|c] > 0.5 for each mechanism", ("agree", None)),
        ("task.score[mechanism=b|c] > 0.6 for each mechanism", ("undecided", True)),
        ("task.score[mechanism=b|c] > 0.62 for each mechanism", ("undecided", False)),
        ("task.score[mechanism=b|c] > 0.66 for each mechanism", ("disagree", None)),
        ("task.score[mechanism=a|b|c] > 0.66 for most mechanism", ("disagree", None)),
        ("task.score[mechanism=a|b|c] > 0.605 for most mechanism", ("undecided", True)),
        ("task.score[mechanism=a|b|c] > 0.5 for most mechanism", ("agree", None)),
    ],
)
def test_a_verdict_needs_more_than_chance_on_either_side(check, expected):
    assert judged(check, NEAR) == expected


@pytest.mark.parametrize(
    ("groups", "scope", "failing", "expected"),
    [
        (1, "each", 1, "disagree"),
        (12, "each", 1, "undecided"),  # one of a dozen by 2.2 standard errors: chance does that
        (12, "most", 7, "undecided"),  # just more than half, and each only just
        (12, "most", 11, "disagree"),
        (12, "each", 0, "agree"),  # that all of them hold by 2.2 is no chance
        (12, "most", 0, "agree"),
    ],
)
def test_the_more_groups_could_have_failed_the_clearer_a_failure_has_to_be(groups, scope, failing, expected):
    error = 0.02 / 1.96
    off = 2.2 * error
    cells = [cell(0.5 + (-off if i < failing else off), off=0.02, mechanism=f"m{i}") for i in range(groups)]
    check = f"task.score > 0.5 for {scope} mechanism"
    found = judged(check, results(*cells))[0]
    assert found == expected, (groups, scope, failing)


def test_with_sixty_groups_that_all_stand_as_published_a_disagreement_is_rare():
    """Two-sided at 5 % over all groups of a finding; true differences of 0, where a group fails half of the time."""
    rng = np.random.default_rng(4)
    wrong = 0
    for _ in range(200):
        cells = [cell(0.5 + rng.normal(0, 0.01), off=1.96 * 0.01, mechanism=f"m{i}") for i in range(60)]
        wrong += judged("task.score >= 0.5 for each mechanism", results(*cells))[0] == "disagree"
    assert wrong / 200 < 0.07  # 2.5 % expected: the chance of 14 or more of 200 is below 1e-3


def test_a_trend_that_only_wavers_decides_nothing():
    """The ends stand as stated, the order between them does not."""
    values = [0.50, 0.40, 0.35, 0.30, 0.60]
    cells = [cell(value, mechanism="a", epsilon=float(i)) for i, value in enumerate(values)]
    assert judged("task.score increases with epsilon", results(*cells)) == ("undecided", False)
    assert judged("task.score decreases with epsilon", results(*cells)) == ("disagree", None)


def test_how_flat_a_line_is_hangs_on_its_extremes():
    cells = [cell(value, off=off, mechanism="a", epsilon=float(i))
             for i, (value, off) in enumerate([(0.5, 0.001), (0.62, 0.1), (0.5, 0.001)])]  # fmt: skip
    assert judged("task.score is flat with epsilon within 0.1", results(*cells)) == ("undecided", False)


def test_the_summary_tells_what_chance_could_have_done():
    checks = ["task.score[mechanism=b] > task.score[mechanism=a]", "task.score[mechanism=b] < task.score[mechanism=a]",
              "task.score[mechanism=c] > task.score[mechanism=a]"]  # fmt: skip
    found = [judge(Finding(statement="s", source="t", check=check), NEAR) for check in checks]
    agreed = "1 of 1 testable published findings agree (100%)"
    chance = "2 undecided (chance could have made the difference; 1 lean this way)"
    assert summary(found) == f"{agreed}, {chance}, 0 not testable"


def test_seeds_are_averaged():
    found = results(*(cell(score, mechanism="a", seed=seed) for seed, score in enumerate((0.6, 0.8))))
    assert evaluate(parse_expression("task.score[mechanism=a]"), found, {}).value == pytest.approx(0.7)


def test_what_a_check_adds_is_told_beside_what_was_measured():
    found = results(cell(0.9, mechanism="a"), cell(0.5, mechanism="b"))
    check = "task.score[mechanism=a] > task.score[mechanism=b] + 0.3"
    assert judge(Finding(statement="s", source="t", check=check), found).detail == "0.900 and 0.500 + 0.3"
    check = "task.score[mechanism=b] < 0.6"
    assert judge(Finding(statement="s", source="t", check=check), found).detail == "0.500 and 0.600"


def test_the_summary_counts_only_what_can_be_tested():
    checks = ["task.score[mechanism=none] > 0.1", "task.score[mechanism=none] < 0.1", "task.score[mechanism=x] > 0"]
    found = [judge(Finding(statement="s", source="t", check=check), GRID) for check in checks]
    assert summary(found) == "1 of 2 testable published findings agree (50%), 1 not testable"


def test_findings_of_our_own_are_counted_apart():
    found = [
        judge(Finding(statement="s", source="t", check="task.score[mechanism=none] > 0.1", ours=ours), GRID)
        for ours in (False, True, True)
    ]
    assert summary(found) == (
        "1 of 1 testable published findings agree (100%), 0 not testable; "
        "2 of 2 testable findings of our own hold (100%), 0 not testable"
    )
    assert summary(found[1:]) == "2 of 2 testable findings of our own hold (100%), 0 not testable"


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(0, 1, allow_nan=False), min_size=2, max_size=6))
def test_nothing_increases_and_decreases_at_once(values: list[float]):
    line = results(*(cell(v, off=0.0, mechanism="a", epsilon=e) for e, v in enumerate(values)))
    up, down = (verdict(f"task.score {how} with epsilon", line) for how in ("increases", "decreases"))
    assert not (up == down == "agree")
    if all(b - a > 1e-9 for a, b in pairwise(values)):
        assert up == "agree"


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(-5, 5), min_size=2, max_size=8))
def test_rank_correlation_agrees_with_scipy(values: list[int]):
    from scipy.stats import spearmanr

    if len(set(values)) == 1:
        assert rank_correlation(values) == 0
        return
    assert math.isclose(rank_correlation(values), spearmanr(range(len(values)), values).statistic, abs_tol=1e-12)


def test_an_expression_is_read_term_by_term():
    found = parse_expression("share(task.macro-F1[mechanism=santext+, epsilon=1|2]) - attack.rate of static + 0.5")
    assert [sign for sign, _ in found.terms] == [1.0, -1.0, 1.0]
    first, second = found.selections
    assert (first.step, first.measure, first.share) == ("task", "macro-F1", True)
    assert first.where == {"mechanism": ("santext+",), "epsilon": ("1", "2")}
    assert (second.step, second.measure) == ("attack", "rate of static")


@pytest.mark.parametrize(
    "text",
    ["task.score > ", "task.score is flat with epsilon", "task.score increases with epsilon within 0.1", "nonsense",
     "task.score[mechanism] > 1"],
)  # fmt: skip
def test_checks_that_are_not_understood(text: str):
    with pytest.raises(BadInputError):
        parse_check(text)


@pytest.mark.parametrize("text", ["task.score within 0.0.5 of 1", "task.score is flat with epsilon within ."])
def test_a_distance_that_is_no_number_is_named(text: str):
    with pytest.raises(BadInputError, match=r"after 'within', which is no number"):
        parse_check(text)
