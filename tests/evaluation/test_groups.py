"""Scores by group: the same numbers as for all rows, gaps that are there and gaps that are not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import BadInputError, BadParameterError
from tacit.evaluation.groups import (
    Answers,
    GroupReport,
    RowGroups,
    WantedGroups,
    group_sections,
    groups_of_column,
    scores_by_class,
    scores_by_group,
    wanted_groups,
)
from tacit.evaluation.groups.measures import measures_of
from tacit.evaluation.predictions import prediction_section
from tacit.report import Light, Report

LABELS = st.sampled_from(["a", "b", "c"])
ROWS = st.lists(st.tuples(LABELS, LABELS), min_size=1, max_size=30)


def numbers_of_all(task: str, truth: list[str], predicted: list[str]) -> dict[str, float]:
    section = prediction_section(task, truth, predicted)
    return {name: float(str(value)) for f in section.findings for name, value in f.numbers.items()}


def counted(task: str, truth: list[str], predicted: list[str]) -> dict[str, float]:
    whole = {m.name: m.score(np.asarray(m.counts.sum(axis=0))[None]) for m in measures_of(task, truth, predicted)}
    return {name: float(values[0]) for name, values in whole.items()}


@settings(deadline=None)
@given(ROWS)
def test_sums_give_the_scores_of_predictions(rows: list[tuple[str, str]]) -> None:
    truth, predicted = [t for t, _ in rows], [p for _, p in rows]
    expected, measured = numbers_of_all("classify", truth, predicted), counted("classify", truth, predicted)
    assert measured["macro-F1"] == pytest.approx(expected["macro-F1"])
    assert measured["accuracy"] == pytest.approx(expected["accuracy"])


@pytest.mark.parametrize(
    ("task", "truth", "predicted", "same"),
    [
        ("tag", ["B-PER I-PER O", "O O"], ["B-PER I-PER O", "B-PER O"], ("entity F1", "macro-F1")),
        ("tag", ["NOUN VERB", "VERB"], ["NOUN NOUN", "VERB"], ("macro-F1",)),
        ("answer", ["the red car", ""], ["red car", "no"], ("word F1", "exact match")),
        ("regress", ["1", "2", "4", "3"], ["1.5", "2", "3", "3.5"], ("mean absolute error", "Pearson")),
        ("write", ["10", "20"], ["10", "20"], ("perplexity",)),
        ("fill", ["0.5", "1"], ["0.5", "1"], ("masked pieces guessed",)),
        ("exact", ["a", "b"], ["a", "c"], ("exact match",)),
    ],
)
def test_every_task_has_the_measures_of_its_scores(
    task: str, truth: list[str], predicted: list[str], same: tuple[str, ...]
) -> None:
    expected, measured = numbers_of_all(task, truth, predicted), counted(task, truth, predicted)
    for name in same:
        assert measured[name] == pytest.approx(expected[name]), name


def made_up(accuracy: dict[str, float], sizes: dict[str, int], seed: int) -> tuple[list[str], list[str], list[str]]:
    """Truth, predictions and groups; each group is right as often as said."""
    generator = np.random.default_rng(seed)
    groups = [name for name, size in sizes.items() for _ in range(size)]
    truth = generator.choice(["a", "b"], len(groups)).tolist()
    right = generator.random(len(groups)) < [accuracy[name] for name in groups]
    predicted = [t if hit else {"a": "b", "b": "a"}[t] for t, hit in zip(truth, right, strict=True)]
    return truth, predicted, groups


def compared(truth: list[str], model: list[str], groups: list[str], beside: list[str] | None = None) -> GroupReport:
    other = None if beside is None else Answers("without privacy", [beside])
    measured = groups_of_column("dialect", groups)
    return scores_by_group("classify", truth, Answers("private", [model]), measured, beside=other, resamples=200)


SIZES = {"north": 400, "south": 300, "west": 100}


def test_a_gap_that_is_there_is_shown_with_who_pays_for_privacy() -> None:
    truth, private, groups = made_up({"north": 0.92, "south": 0.65, "west": 0.9}, SIZES, 1)
    _, plain, _ = made_up({"north": 0.95, "south": 0.94, "west": 0.95}, SIZES, 1)
    report = compared(truth, private, groups, plain)
    assert [measure.name for measure in report.measures] == ["macro-F1", "accuracy"]
    for measure in report.measures:
        gap, paid = measure.models[0].gap, measure.paid
        assert gap is not None
        assert paid is not None
        assert paid.gap is not None
        assert report.names[gap.low] == "south"
        assert 0 < gap.at_least < gap.value < gap.at_most
        assert report.names[paid.gap.high] == "south"
        assert paid.gap.at_least > 0
        south = report.names.index("south")
        assert measure.models[0].p[south] < 0.01
        assert paid.p[south] < 0.01
    (section,) = group_sections([report])
    lights = {finding.name: finding.light for finding in section.findings}
    assert lights["Largest gap in accuracy of private"] is Light.AMBER
    assert lights["Who pays for privacy in accuracy"] is Light.AMBER
    assert lights["Largest gap in accuracy of without privacy"] is Light.NONE
    assert "must not be private" in section.text
    written = Report("groups", [section])
    assert "south" in written.to_json()
    assert "south" in written.to_html()


@pytest.mark.parametrize("accuracy", [0.8, 0.97])
def test_intervals_of_the_largest_of_many_gaps_hold(accuracy: float) -> None:
    """Six groups without any difference: 95 % intervals may miss 0 in 5 % of the tests, so in 6 of 25 or more once in
    800 runs; the unadjusted interval of the largest gap misses it nearly always."""
    sizes = {f"group {i}": size for i, size in enumerate((60, 80, 120, 200, 300, 400))}
    missed = 0
    for seed in range(25):
        truth, predicted, groups = made_up(dict.fromkeys(sizes, accuracy), sizes, 100 + seed)
        gap = compared(truth, predicted, groups).measures[1].models[0].gap
        assert gap is not None
        assert gap.pairs == 15
        missed += gap.at_least > 0
    assert missed < 6


def test_small_groups_are_named_and_take_part_in_no_gap() -> None:
    sizes = {**SIZES, "rare": 12}
    truth, predicted, groups = made_up({"north": 0.9, "south": 0.9, "west": 0.9, "rare": 0.0}, sizes, 3)
    report = compared(truth, predicted, groups)
    rare = report.names.index("rare")
    assert report.small[rare]
    gap = report.measures[1].models[0].gap
    assert gap is not None
    assert rare not in (gap.high, gap.low)
    assert gap.pairs == 3
    assert np.isnan(report.measures[1].models[0].p[rare])
    interval = report.measures[1].models[0].scores[rare]
    assert interval.value == 0.0
    assert interval.high > 0.2, "12 wrong rows do not show that all are wrong"
    (section,) = group_sections([report])
    small = next(finding for finding in section.findings if finding.name == "Small groups")
    assert "'rare' (12)" in small.sentence


def test_no_gap_is_stated_where_too_few_groups_are_large() -> None:
    truth, predicted, groups = made_up({"many": 0.9, "few": 0.1}, {"many": 100, "few": 20}, 4)
    report = compared(truth, predicted, groups)
    assert report.measures[0].models[0].gap is None
    (section,) = group_sections([report])
    assert "no gap is stated" in section.findings[0].sentence


def test_rows_of_a_user_are_drawn_together() -> None:
    """Ten equal rows of each user are one observation, not ten."""
    truth, predicted, groups = made_up({"north": 0.8, "south": 0.8}, {"north": 60, "south": 60}, 5)
    repeated = [[value for value in column for _ in range(10)] for column in (truth, predicted, groups)]
    users = [str(i) for i in range(120) for _ in range(10)]
    alone = compared(*repeated)
    together = scores_by_group(
        "classify", repeated[0], Answers("m", [repeated[1]]), groups_of_column("dialect", repeated[2], users),
        resamples=200,
    )  # fmt: skip
    assert together.users == (60, 60)
    assert alone.users is None
    for place in range(2):
        widths = [
            report.measures[1].models[0].scores[place].high - report.measures[1].models[0].scores[place].low
            for report in (alone, together)
        ]
        assert widths[1] > 2 * widths[0]


def test_few_users_are_a_small_group_however_many_rows_they_have() -> None:
    truth, predicted, groups = made_up({"north": 0.8, "south": 0.8}, {"north": 100, "south": 100}, 6)
    users = [f"{group} {i % (30 if group == 'north' else 5)}" for i, group in enumerate(groups)]
    measured = groups_of_column("dialect", groups, users)
    report = scores_by_group("classify", truth, Answers("m", [predicted]), measured, resamples=50)
    assert dict(zip(report.names, report.small, strict=True)) == {"north": False, "south": True}


def test_classes_are_groups_too() -> None:
    generator = np.random.default_rng(7)
    truth = generator.choice(["often", "also", "rare"], 1000, p=[0.6, 0.32, 0.08]).tolist()
    predicted = [t if t != "rare" or generator.random() < 0.4 else "often" for t in truth]
    report = scores_by_class("classify", truth, Answers("m", [predicted]), resamples=100)
    assert set(report.names) == {"often", "also", "rare"}
    rare = report.names.index("rare")
    assert report.rows[rare] == truth.count("rare")
    measured = report.measures[1]
    assert measured.name == "share found"
    assert measured.models[0].scores[rare].value == pytest.approx(
        sum(p == "rare" for p in predicted) / truth.count("rare")
    )
    gap = report.measures[0].models[0].gap
    assert gap is not None
    assert gap.low == rare
    assert gap.at_least > 0
    tags = scores_by_class("tag", ["NOUN VERB"] * 60, Answers("m", [["NOUN NOUN"] * 60]), resamples=20)
    assert tags.rows == (60, 60)
    assert tags.measures[1].models[0].scores[tags.names.index("VERB")].value == 0.0


def test_several_runs_are_averaged() -> None:
    truth, first, groups = made_up({"north": 0.9, "south": 0.9}, {"north": 80, "south": 80}, 8)
    measured = groups_of_column("dialect", groups)
    both = scores_by_group("classify", truth, Answers("m", [first, truth]), measured, resamples=50)
    alone = scores_by_group("classify", truth, Answers("m", [first]), measured, resamples=50)
    for place in range(2):
        first_score = alone.measures[1].models[0].scores[place].value
        assert both.measures[1].models[0].scores[place].value == pytest.approx((first_score + 1) / 2)


def test_less_error_is_better() -> None:
    truth = [str(i % 5) for i in range(200)]
    groups = ["near" if i < 100 else "far" for i in range(200)]
    predicted = [str(float(t) + (0.1 if g == "near" else 1.0)) for t, g in zip(truth, groups, strict=True)]
    report = scores_by_group("regress", truth, Answers("m", [predicted]), groups_of_column("place", groups))
    sentence = group_sections([report])[0].findings[0].sentence
    assert "best for 'near' (0.100), worst for 'far' (1.000)" in sentence


def test_bad_groups_are_refused() -> None:
    with pytest.raises(BadInputError, match="at least two") as refused:
        groups_of_column("dialect", ["a"] * 5)
    assert refused.value.code == "one-group"
    with pytest.raises(BadInputError, match="at most 100") as refused:
        groups_of_column("text", [f"row {i}" for i in range(200)])
    assert "row 1" not in str(refused.value), "a column of texts may have been named by mistake"
    with pytest.raises(BadParameterError, match="not for the task 'regress'"):
        scores_by_class("regress", ["1"], Answers("m", [["1"]]))
    with pytest.raises(BadInputError, match="2 true values and 1 predictions"):
        compared(["a", "b"], ["a"], ["x", "y"])
    assert groups_of_column("dialect", ["a", " ", ""]).names == ("(empty)", "a")
    assert not wanted_groups(lambda column: [], None, by_class=False)
    assert WantedGroups(RowGroups("dialect", ("a",), np.array([0])))
