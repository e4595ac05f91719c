"""Checks of published statements: reading them, and their verdicts."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import BadInputError
from tacit.experiments.chance import rank_correlation
from tacit.experiments.config import About
from tacit.experiments.declared import Value
from tacit.experiments.evaluation import evaluate
from tacit.experiments.findings import Judge, load_findings
from tacit.experiments.quantities import LARGEST, SMALLEST, Quantity, score, share
from tacit.experiments.results import Cell, Results
from tacit.experiments.verdicts import not_testable, summary
from tacit.report import Light
from tests.experiments.small import verdict_on


def cell(value: float, problem: str = "", off: float = 0.02, **axes: Value) -> Cell:
    scores = {} if problem else {"score": value, "score.low": value - off, "score.high": value + off,
                                 "score.floor": 0.5, "macro-F1": value / 2}  # fmt: skip
    return Cell("task", "downstream", axes, scores, problem)


def results(*cells: Cell) -> Results:
    return Results(About(name="a", title="A", reference={"mechanism": "none"}), "quick", "0", cells, {})


def sure(value: float, **axes: Value) -> Cell:
    return cell(value, off=0.0001, **axes)


GRID = results(
    sure(0.90, data="sst2", mechanism="none"),
    sure(0.80, data="qnli", mechanism="none"),
    *(sure(0.5 + 0.1 * e, data="sst2", mechanism="santext", epsilon=e) for e in (1, 2, 3)),
    *(sure(0.5 + 0.05 * e, data="qnli", mechanism="santext", epsilon=e) for e in (1, 2, 3)),
    *(sure(0.70, data="sst2", mechanism="santext+", epsilon=e) for e in (1, 2, 3)),
    *(sure(0.60, data="qnli", mechanism="santext+", epsilon=e) for e in (1, 2)),
    cell(0, "failed: it did", data="qnli", mechanism="santext+", epsilon=3),
)


def verdict(check: Judge, where: Results = GRID) -> str:
    return verdict_on(check, where).word


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (
            lambda scores: scores.increases(score("task.score", mechanism="santext"), along="epsilon", each=["data"]),
            "agree",
        ),
        (lambda scores: scores.decreases(score("task.score", mechanism="santext"), along="epsilon"), "disagree"),
        (
            lambda scores: scores.increases(score("task.score", mechanism="santext+", data="sst2"), along="epsilon"),
            "undecided",
        ),
        (
            lambda scores: scores.is_flat(
                score("task.score", mechanism="santext+", data="sst2"), along="epsilon", within=0.01
            ),
            "agree",
        ),
        (
            lambda scores: scores.is_flat(score("task.score", mechanism="santext"), along="epsilon", within=0.1),
            "disagree",
        ),
        (
            lambda scores: scores.above(
                score("task.score", mechanism="santext", epsilon=LARGEST),
                score("task.score", mechanism="santext+", epsilon=SMALLEST),
                each=["data"],
            ),
            "agree",
        ),
        (
            lambda scores: scores.above(
                score("task.score", mechanism="santext", epsilon=2),
                score("task.score", mechanism="santext+", epsilon=2),
                each=["data"],
            ),
            "undecided",
        ),
        (
            lambda scores: scores.at_least(
                score("task.score", mechanism="santext", epsilon=2.0),
                score("task.score", mechanism="santext+", epsilon=2),
                each=["data"],
            ),
            "undecided",
        ),
        (
            lambda scores: scores.above(
                score("task.score", mechanism="none"),
                score("task.score", mechanism="santext"),
                each=["data", "epsilon"],
            ),
            "agree",
        ),
        (
            lambda scores: scores.above(score("task.score", mechanism="santext", data="sst2"), 0.65, each=["epsilon"]),
            "disagree",
        ),
        (
            lambda scores: scores.above(score("task.score", mechanism="santext", data="sst2"), 0.65, most=["epsilon"]),
            "agree",
        ),
        (
            lambda scores: scores.near(
                score("task.score", mechanism="none"),
                score("task.score", mechanism="santext", epsilon=3),
                within=0.1,
                each=["data"],
            ),
            "disagree",
        ),
        (
            lambda scores: scores.near(
                score("task.score", mechanism="none", data="sst2"),
                score("task.score", mechanism="santext", epsilon=3, data="sst2"),
                within=0.11,
            ),
            "agree",
        ),
        (
            lambda scores: scores.below(
                score("task.score", mechanism="none", data="sst2") - score("task.score", mechanism="none", data="qnli"),
                0.11,
            ),
            "agree",
        ),
        (
            lambda scores: scores.below(
                score("task.macro-F1", mechanism="none"), score("task.score", mechanism="none"), each=["data"]
            ),
            "agree",
        ),
        (
            lambda scores: scores.near(
                share(score("task.score", mechanism="santext", epsilon=3, data="sst2")), 0.75, within=0.001
            ),
            "agree",
        ),
    ],
)
def test_verdicts(check: Judge, expected: str):
    assert verdict(check) == expected


@pytest.mark.parametrize(
    ("check", "why"),
    [
        (
            lambda scores: scores.above(score("task.score", mechanism="santext+", epsilon=3), 0.5, each=["data"]),
            "1 of 1 cells",
        ),
        (lambda scores: scores.above(score("task.score", mechanism="santext+"), 0.5), "1 of 6 cells"),
        (lambda scores: scores.above(score("task.score", mechanism="laplace"), 0.5), "was not part of this run"),
        (lambda scores: scores.above(score("task.bleu", mechanism="none"), 0.5), "has no 'bleu'"),
        (
            lambda scores: scores.increases(score("task.score", mechanism="none"), along="epsilon"),
            "at least two values of 'epsilon'",
        ),
        (
            lambda scores: scores.above(share(score("task.macro-F1", mechanism="santext", data="sst2", epsilon=1)), 0),
            "no floor and ceiling",
        ),
    ],
)
def test_what_cannot_be_tested_says_why(check: Judge, why: str):
    judgment = verdict_on(check, GRID)
    assert judgment.word == "not testable"
    assert why in judgment.detail
    assert judgment.light is Light.NONE


def test_a_statement_without_a_check_keeps_its_reason():
    judgment = verdict_on(lambda _: not_testable("no GPU."), GRID)
    assert (judgment.word, judgment.detail) == ("not testable", "no GPU.")


def test_a_disagreement_is_red_without_an_explanation_and_amber_with_one():
    def check(scores):
        return scores.below(score("task.score", mechanism="none"), 0.1)

    assert verdict_on(check, GRID).light is Light.RED
    assert verdict_on(check, GRID, explanation="x").light is Light.AMBER


def judged(check, where):
    judgment = verdict_on(check, where)
    return judgment.word, judgment.leaning


def test_two_scores_at_their_floor_decide_nothing():
    floor = results(cell(0.0, off=0.0, mechanism="a"), cell(0.0, off=0.0, mechanism="b"))
    assert judged(
        lambda scores: scores.above(score("task.score", mechanism="a"), score("task.score", mechanism="b")), floor
    ) == ("undecided", False)


# each value is off by at most 0.02, so a difference of 0.1 is clear and one of 0.01 is not
NEAR = results(cell(0.60, mechanism="a"), cell(0.61, mechanism="b"), cell(0.71, mechanism="c"))


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        (
            lambda scores: scores.above(score("task.score", mechanism="c"), score("task.score", mechanism="a")),
            ("agree", None),
        ),
        (
            lambda scores: scores.below(score("task.score", mechanism="c"), score("task.score", mechanism="a")),
            ("disagree", None),
        ),
        (
            lambda scores: scores.above(score("task.score", mechanism="b"), score("task.score", mechanism="a")),
            ("undecided", True),
        ),
        (
            lambda scores: scores.below(score("task.score", mechanism="b"), score("task.score", mechanism="a")),
            ("undecided", False),
        ),
        (
            lambda scores: scores.near(
                score("task.score", mechanism="c"), score("task.score", mechanism="a"), within=0.3
            ),
            ("agree", None),
        ),
        (
            lambda scores: scores.near(
                score("task.score", mechanism="c"), score("task.score", mechanism="a"), within=0.1
            ),
            ("undecided", False),
        ),
        # over groups: b (0.61) and c (0.71) against numbers
        (
            lambda scores: scores.above(score("task.score", mechanism=("b", "c")), 0.5, each=["mechanism"]),
            ("agree", None),
        ),
        (
            lambda scores: scores.above(score("task.score", mechanism=("b", "c")), 0.6, each=["mechanism"]),
            ("undecided", True),
        ),
        (
            lambda scores: scores.above(score("task.score", mechanism=("b", "c")), 0.62, each=["mechanism"]),
            ("undecided", False),
        ),
        (
            lambda scores: scores.above(score("task.score", mechanism=("b", "c")), 0.66, each=["mechanism"]),
            ("disagree", None),
        ),
        (
            lambda scores: scores.above(score("task.score", mechanism=("a", "b", "c")), 0.66, most=["mechanism"]),
            ("disagree", None),
        ),
        (
            lambda scores: scores.above(score("task.score", mechanism=("a", "b", "c")), 0.605, most=["mechanism"]),
            ("undecided", True),
        ),
        (
            lambda scores: scores.above(score("task.score", mechanism=("a", "b", "c")), 0.5, most=["mechanism"]),
            ("agree", None),
        ),
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
    judgments = judged(lambda s: s.above(score("task.score"), 0.5, **{scope: ["mechanism"]}), results(*cells))[0]
    assert judgments == expected, (groups, scope, failing)


def test_with_sixty_groups_that_all_stand_as_published_a_disagreement_is_rare():
    """Two-sided at 5 % over all groups of a finding; true differences of 0, where a group fails half of the time."""
    rng = np.random.default_rng(4)
    wrong = 0
    for _ in range(200):
        cells = [cell(0.5 + rng.normal(0, 0.01), off=1.96 * 0.01, mechanism=f"m{i}") for i in range(60)]
        wrong += (
            judged(lambda scores: scores.at_least(score("task.score"), 0.5, each=["mechanism"]), results(*cells))[0]
            == "disagree"
        )
    assert wrong / 200 < 0.07  # 2.5 % expected: the chance of 14 or more of 200 is below 1e-3


def test_a_trend_that_only_wavers_decides_nothing():
    """The ends stand as stated, the order between them does not."""
    values = [0.50, 0.40, 0.35, 0.30, 0.60]
    cells = [cell(value, mechanism="a", epsilon=float(i)) for i, value in enumerate(values)]
    assert judged(lambda scores: scores.increases(score("task.score"), along="epsilon"), results(*cells)) == (
        "undecided",
        False,
    )
    assert judged(lambda scores: scores.decreases(score("task.score"), along="epsilon"), results(*cells)) == (
        "disagree",
        None,
    )


def test_how_flat_a_line_is_hangs_on_its_extremes():
    cells = [cell(value, off=off, mechanism="a", epsilon=float(i))
             for i, (value, off) in enumerate([(0.5, 0.001), (0.62, 0.1), (0.5, 0.001)])]  # fmt: skip
    assert judged(lambda scores: scores.is_flat(score("task.score"), along="epsilon", within=0.1), results(*cells)) == (
        "undecided",
        False,
    )


def test_the_summary_tells_what_chance_could_have_done():
    checks = [
        lambda scores: scores.above(score("task.score", mechanism="b"), score("task.score", mechanism="a")),
        lambda scores: scores.below(score("task.score", mechanism="b"), score("task.score", mechanism="a")),
        lambda scores: scores.above(score("task.score", mechanism="c"), score("task.score", mechanism="a")),
    ]
    verdicts = [verdict_on(check, NEAR) for check in checks]
    agreed = "1 of 1 testable published findings agree (100%)"
    chance = "2 undecided (chance could have made the difference; 1 lean this way)"
    assert summary(verdicts) == f"{agreed}, {chance}, 0 not testable"


def test_seeds_are_averaged():
    outcome = results(*(cell(score, mechanism="a", seed=seed) for seed, score in enumerate((0.6, 0.8))))
    assert evaluate(score("task.score", mechanism="a"), outcome, {}).value == pytest.approx(0.7)


def test_what_a_check_adds_is_told_beside_what_was_measured():
    outcome = results(cell(0.9, mechanism="a"), cell(0.5, mechanism="b"))
    first, second = score("task.score", mechanism="a"), score("task.score", mechanism="b")
    assert verdict_on(lambda s: s.above(first, second + 0.3), outcome).detail == "0.900 and 0.500 + 0.3"
    assert verdict_on(lambda s: s.below(second, 0.6), outcome).detail == "0.500 and 0.600"


def test_the_summary_counts_only_what_can_be_tested():
    checks = [
        lambda scores: scores.above(score("task.score", mechanism="none"), 0.1),
        lambda scores: scores.below(score("task.score", mechanism="none"), 0.1),
        lambda scores: scores.above(score("task.score", mechanism="x"), 0),
    ]
    verdicts = [verdict_on(check, GRID) for check in checks]
    assert summary(verdicts) == "1 of 2 testable published findings agree (50%), 1 not testable"


def test_findings_of_our_own_are_counted_apart():
    verdicts = [
        verdict_on(lambda scores: scores.above(score("task.score", mechanism="none"), 0.1), GRID, ours=ours)
        for ours in (False, True, True)
    ]
    assert summary(verdicts) == (
        "1 of 1 testable published findings agree (100%), 0 not testable; "
        "2 of 2 testable findings of our own hold (100%), 0 not testable"
    )
    assert summary(verdicts[1:]) == "2 of 2 testable findings of our own hold (100%), 0 not testable"


@settings(max_examples=50)
@given(st.lists(st.floats(0, 1, allow_nan=False), min_size=2, max_size=6))
def test_nothing_increases_and_decreases_at_once(values: list[float]):
    line = results(*(cell(v, off=0.0, mechanism="a", epsilon=e) for e, v in enumerate(values)))
    up = verdict(lambda s: s.increases(score("task.score"), along="epsilon"), line)
    down = verdict(lambda s: s.decreases(score("task.score"), along="epsilon"), line)
    assert not (up == down == "agree")
    if all(b - a > 1e-9 for a, b in pairwise(values)):
        assert up == "agree"


@settings(max_examples=50)
@given(st.lists(st.integers(-5, 5), min_size=2, max_size=8))
def test_rank_correlation_agrees_with_scipy(values: list[int]):
    from scipy.stats import spearmanr

    if len(set(values)) == 1:
        assert rank_correlation(values) == 0
        return
    assert math.isclose(rank_correlation(values), spearmanr(range(len(values)), values).statistic, abs_tol=1e-12)


def test_a_quantity_says_what_it_is():
    total = share(score("task.macro-F1", mechanism="santext+", epsilon=(1, 2))) - score("attack.rate of static") + 0.5
    assert str(total) == "share(task.macro-F1[mechanism=santext+, epsilon=1|2]) - attack.rate of static + 0.5"
    first, second = total.scores
    assert (first.step, first.measure, first.share, first.times) == ("task", "macro-F1", True, 1)
    assert first.where == {"mechanism": "santext+", "epsilon": [1, 2]}
    assert (second.step, second.measure, second.times) == ("attack", "rate of static", -1)
    assert str(Quantity(added=0.5)) == "0.5"


def test_a_verdict_says_what_was_compared():
    outcome = verdict_on(lambda s: s.near(score("task.score", mechanism="none"), 0.8, within=0.15, most=["data"]), GRID)
    assert outcome.check == "task.score[mechanism=none] within 0.15 of 0.8 for most data"


def test_a_score_without_a_step_is_refused():
    with pytest.raises(ValueError, match="pattern"):
        score("accuracy")


# The frame ----------------------------------------------------------------------------------------------------------


def test_the_frame_has_a_row_for_each_score_of_each_cell():
    frame = GRID.frame
    rows = frame[(frame["mechanism"] == "santext") & (frame["data"] == "sst2") & (frame["measure"] == "score")]
    assert rows["value"].tolist() == pytest.approx([0.6, 0.7, 0.8])
    assert rows["epsilon"].tolist() == [1, 2, 3]
    assert rows["high"].tolist() == pytest.approx([0.6001, 0.7001, 0.8001])
    assert set(frame["measure"]) == {"score", "macro-F1"}
    assert frame[frame["mechanism"] == "none"]["epsilon"].isna().all()


def test_a_finding_may_compute_with_the_frame_itself():
    def judge(scores):
        best = scores.frame.groupby("mechanism")["value"].max()
        return not_testable(f"{best['none']:.2f}")

    assert verdict_on(judge, GRID).detail == "0.90"


# The file -----------------------------------------------------------------------------------------------------------


def test_findings_stand_in_a_python_file_beside_the_experiment(tmp_path):
    assert load_findings(tmp_path / "mine.toml") == []
    (tmp_path / "mine_findings.py").write_text(
        "from tacit.experiments.findings import Findings\n"
        "from tacit.experiments.quantities import score\n"
        "findings = Findings()\n"
        "findings.not_testable('later', source='us', reason='no data.', ours=True)\n"
        "@findings.says('it works', source='a paper')\n"
        "def works(scores):\n"
        "    return scores.above(score('task.score', mechanism='none'), 0.7, each=['data'])\n",
        encoding="utf-8",
    )
    first, second = load_findings(tmp_path / "mine.toml")
    assert (first.statement, first.ours) == ("later", True)
    assert verdict_on(first.judge, GRID).detail == "no data."
    assert verdict_on(second.judge, GRID).word == "agree"


@pytest.mark.parametrize(("text", "code"), [("1 / 0", "findings-fail"), ("found = []", "no-findings")])
def test_a_file_of_findings_that_cannot_be_used_is_one_sentence(tmp_path, text: str, code: str):
    (tmp_path / "mine_findings.py").write_text(text, encoding="utf-8")
    with pytest.raises(BadInputError) as refused:
        load_findings(tmp_path / "mine.toml")
    assert refused.value.code == code
