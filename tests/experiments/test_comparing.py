"""Several results beside each other: published numbers, verdicts, and a forest plot of each finding."""

from __future__ import annotations

import math

import pytest

from tacit.experiments.comparing import NamedResults, comparison_page, forest, forest_rows, published_rows, verdicts
from tacit.experiments.config import About, Published
from tacit.experiments.findings import ExperimentFinding, judge_all
from tacit.experiments.quantities import score
from tacit.experiments.report import comparison
from tacit.experiments.results import Results
from tacit.experiments.verdicts import not_testable
from tests.experiments.test_findings import cell

TABLE = Published(
    source="Somebody 2021, table 1",
    ours="task.score",
    axes=["data"],
    rows=[["sst2", 0.8], ["qnli", 0.7]],
    difference="x",
)
BETTER = ExperimentFinding(
    "SanText is better than noise", "Somebody 2021",
    lambda scores: scores.above(score("task.score", mechanism="santext"), score("task.score", mechanism="noise"),
                                each=["data"]),
)  # fmt: skip
GROWS = ExperimentFinding(
    "It grows",
    "Somebody 2021",
    lambda scores: scores.decreases(score("task.score", mechanism="santext"), along="epsilon"),
)
NOTHING = ExperimentFinding("Nobody can tell", "Somebody 2021", lambda _: not_testable("no data"))
FINDINGS = (BETTER, GROWS, NOTHING)


def run(off: float, *, datas: tuple[str, ...] = ("sst2", "qnli")) -> Results:
    cells = [
        cell(base + 0.1 * epsilon, off=off, data=data, mechanism=mechanism, epsilon=epsilon)
        for data in datas
        for mechanism, base in (("santext", 0.6), ("noise", 0.55))
        for epsilon in (1, 2)
    ]
    plain = Results(About(name="a", title="A"), "quick", "0", tuple(cells), {}, published=(TABLE,))
    return Results(About(name="a", title="A"), "quick", "0", tuple(cells), {}, published=(TABLE,),
                   verdicts=judge_all(FINDINGS, plain))  # fmt: skip


EVERY = (NamedResults("quick", run(0.2, datas=("sst2",))), NamedResults("medium", run(0.001)))


def test_published_numbers_stand_beside_each_run_and_what_was_not_run_is_left_open():
    table = published_rows(EVERY)
    assert table.columns == ["source", "row", "published", "quick", "quick ± 95 %", "medium", "medium ± 95 %"]
    (first, second) = table.rows
    assert first[:3] == ["Somebody 2021, table 1", "data=sst2", 0.8]
    assert first[3] == first[5] == pytest.approx(0.725)
    assert first[4] == pytest.approx(0.2 / 2)  # four questions with half a width of 0.2 each
    assert second[3:5] == [None, None]
    assert second[5] == pytest.approx(0.725)


def test_every_run_has_its_own_verdict():
    rows = {row[0]: row[2:] for row in verdicts(EVERY).rows}
    assert rows["SanText is better than noise"] == ["undecided", "agree"]
    assert rows["Nobody can tell"] == ["not testable", "not testable"]


def test_a_forest_has_a_row_for_each_group_and_run_with_the_difference_and_its_interval():
    comparison_of, rows = forest_rows(BETTER, EVERY)
    assert comparison_of is not None
    assert [(row.group, row.run) for row in rows] == [("sst2", 0), ("sst2", 1), ("qnli", 1)]
    assert [row.difference.value for row in rows] == pytest.approx([0.05] * 3)
    wide, narrow = rows[0].difference, rows[1].difference
    assert wide.low < 0 < wide.high
    assert narrow.low > 0
    _, trend = forest_rows(GROWS, EVERY)
    assert [row.difference.value for row in trend] == pytest.approx([0.1, 0.1]), "last minus first, whatever is stated"
    assert not math.isnan(trend[0].difference.error)


def test_a_page_draws_the_findings_that_can_be_drawn():
    pytest.importorskip("matplotlib")
    drawing = forest(BETTER, EVERY)
    assert drawing is not None
    assert "qnli, medium: 0.050 (0.0" in drawing.description
    assert "right of the line" in drawing.svg
    falling = forest(GROWS, EVERY)
    assert falling is not None
    assert "left of the line" in falling.svg
    assert forest(NOTHING, EVERY) is None
    scores = comparison([named.results for named in EVERY], [named.name for named in EVERY])
    page = comparison_page(EVERY, FINDINGS, scores)
    assert sum(len(section.figures) for section in page.sections) == 2
    assert [len(section.figures) for section in comparison_page(EVERY, (), scores).sections] == [0, 0, 0]
    assert "SanText is better than noise" in page.to_html()
