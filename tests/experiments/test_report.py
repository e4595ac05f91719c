"""Results as files and as a page."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tacit.errors import BadInputError
from tacit.experiments import figures
from tacit.experiments.collecting import collect
from tacit.experiments.config import About, FigureRule, Published, WideTable, load
from tacit.experiments.declared import Value
from tacit.experiments.evaluation import evaluate
from tacit.experiments.findings import ExperimentFinding, load_findings
from tacit.experiments.pages import results_pages
from tacit.experiments.plan import make_plan
from tacit.experiments.quantities import ScoreTerm, score, share
from tacit.experiments.report import KEPT, comparison, example_tables, page, write_files
from tacit.experiments.results import ONE_DRAW, OTHER_SIZE, Cell, Results, mean_of_cells
from tacit.experiments.steps.perturb import spaces
from tacit.experiments.tables import markdown, published_tables, score_tables, scores_csv, wide_tables, with_error
from tacit.experiments.validation import validate
from tacit.experiments.verdicts import FindingVerdict, Word, not_testable
from tests.experiments.small import WORDS, judged, plan_of, run_here, small
from tests.experiments.small import write_files as write_data

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def cell(value: float, problem: str = "", **axes: Value) -> Cell:
    scores = {} if problem else {"accuracy": value, "accuracy.low": value - 0.049, "accuracy.high": value + 0.049,
                                 "accuracy.floor": 0.5}  # fmt: skip
    promise = "" if problem else "It <promises> little."
    return Cell("task", "downstream", axes, scores, problem, promise, failed=bool(problem))


def results(**more: object) -> Results:
    cells = (
        cell(0.9, mechanism="none"),
        cell(0.6, mechanism="santext", epsilon=1, seed=1), cell(0.7, mechanism="santext", epsilon=1, seed=2),
        cell(0.8, mechanism="santext", epsilon=math.inf, seed=1), cell(0, "failed: <b>", mechanism="x", epsilon=1),
    )  # fmt: skip
    about = About(name="a", title="A & B", question="Why?", reference={"mechanism": "none"})
    return Results(about, "quick", "d", cells, {"rows": "some <rows>"}, **more)


def pages_text(result: Sequence[Results], command: str) -> str:
    """The page that sums up and those of all experiments below it."""
    return "\n".join(results_pages(result, command, Path("results.md")).values())


PUBLISHED = Published(
    source="table 1", ours="task.accuracy", axes=["mechanism", "epsilon"], difference="smaller | model",
    rows=[["none", "", 0.95], ["santext", 1, 0.5], ["laplace", 1, 0.4]],
)  # fmt: skip


def test_results_survive_their_file():
    without_noise = PUBLISHED.model_copy(update={"rows": [["santext", math.inf, 0.9]]})
    outcome = results(published=(PUBLISHED, without_noise),
                    verdicts=(FindingVerdict(statement="s", source="t", word=Word.NOT_TESTABLE, detail="u"),),
                    figures=(FigureRule(title="f", value="task.accuracy", where={"epsilon": math.inf}),))  # fmt: skip
    again = Results.from_json(outcome.to_json(), "file")
    assert again == outcome
    assert again.to_json() == outcome.to_json()
    assert published_tables(again)[1].rows[0][3] == pytest.approx(0.8)


def test_infinity_survives_the_file_wherever_an_axis_value_stands():
    """As the reference of the experiment, and among others in a list."""
    cells = (cell(0.8, mechanism="a", epsilon=5), cell(0.9, mechanism="a", epsilon=math.inf))
    finding = ExperimentFinding(
        statement="s", source="t", judge=lambda scores: scores.above(share(score("task.accuracy", epsilon=5)), 0.5)
    )
    both: dict[str, list[float]] = {"epsilon": [5, math.inf]}
    outcome = Results(
        About(name="a", title="A", reference={"epsilon": math.inf}), "quick", "d", cells, {},
        figures=(FigureRule(title="f", value="task.accuracy", where=both),),
        tables=(WideTable(title="w", values=["task.accuracy"], where=both),),
    )  # fmt: skip
    again = Results.from_json(outcome.to_json(), "file")
    assert again == outcome
    assert [verdict.word for verdict in judged(again, finding).verdicts] == ["agree"]
    assert wide_tables(again)[0].columns == ["mechanism", "5", "∞"]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"results_version": 2, "cells": 3}'])
def test_a_file_that_holds_no_results(text: str):
    with pytest.raises(BadInputError, match=r"x.json is no results file"):
        Results.from_json(text, "x.json")


def test_results_of_an_older_format_say_how_to_write_them_again():
    with pytest.raises(BadInputError, match="tacit experiment report") as refused:
        Results.from_json('{"results_version": 1}', "x.json")
    assert refused.value.code == "results-of-another-version"


def test_the_error_of_a_mean_by_hand():
    mean = mean_of_cells([cell(0.6, mechanism="a")], "accuracy")
    assert mean.error == pytest.approx(0.049 / 1.96)
    seeds = mean_of_cells([cell(0.6, mechanism="a", seed=1), cell(0.7, mechanism="a", seed=2)], "accuracy")
    student = 12.706 * 0.0707107 / math.sqrt(2) / 1.96  # t quantile with one degree of freedom
    assert seeds.value == pytest.approx(0.65)
    assert seeds.error == pytest.approx(math.hypot(student, 0.025), rel=1e-3)
    apart = mean_of_cells([cell(0.6, mechanism="a"), cell(0.7, mechanism="b")], "accuracy")
    assert apart.error == pytest.approx(0.025 / math.sqrt(2))


def test_the_published_value_stands_beside_ours():
    (table,) = published_tables(results(published=(PUBLISHED,)))
    assert [[*row[:3], row[4]] for row in table.rows] == [
        ["none", "", 0.95, pytest.approx(0.049)], ["santext", "1", 0.5, table.rows[1][4]], ["laplace", "1", 0.4, None]
    ]  # fmt: skip
    assert [row[3] for row in table.rows] == [0.9, pytest.approx(0.65), None]
    assert table.rows[1][5] == pytest.approx(0.15)
    assert "smaller | model" in table.note


def changes() -> Results:
    """Ours: -0.2, -0.1, 0.1, 0.05; the first is outside the domain of its mechanism."""
    cells = [cell(value, mechanism="gumbel", epsilon=e) for e, value in ((1, -0.2), (2, -0.1), (3, 0.1), (4, 0.05))]
    cells[0] = replace(cells[0], outside=True)
    rows = [["gumbel", 1, -0.4], ["gumbel", 2, 0.1], ["gumbel", 3, 0.2], ["gumbel", 4, 0.0], ["gumbel", 5, 0.3]]
    table = PUBLISHED.model_copy(update={"rows": rows})
    return Results(About(name="a", title="A"), "quick", "d", tuple(cells), {}, published=(table,))


def test_signs_and_order_of_published_changes():
    (table,) = published_tables(changes())
    place = list(table.columns).index("sign")
    assert [row[place] for row in table.rows] == ["agrees", "differs", "agrees", "", ""]
    assert "2 of 3 signs agree." in table.note
    # published -0.4 0.1 0.2 0.0, ours -0.2 -0.1 0.1 0.05: ranks 1 3 4 2 and 1 2 4 3
    assert "Rank correlation of the published numbers and ours: 0.80 over 4 common rows." in table.note
    text = pages_text([changes()], "command")
    assert "2 of 3 signs agree. Rank correlation" in text
    (levels,) = published_tables(results(published=(PUBLISHED,)))
    assert "sign" not in levels.columns
    assert "Rank" not in levels.note  # two rows in common are too few
    (result,) = published_tables(results(published=(PUBLISHED.model_copy(update={"signed": True}),)))
    assert "2 of 2 signs agree" in result.note


def test_cells_outside_the_domain_are_marked_in_every_table():
    result = changes()
    assert Results.from_json(result.to_json(), "file") == result
    (published,) = published_tables(result)
    assert [row[-1] for row in published.rows] == ["† outside", "", "", "", ""]
    (scores,) = score_tables(result)
    assert [row[-1].endswith(" †") for row in scores.rows] == [True, False, False, False]
    rule = WideTable(title="All", values=["task.accuracy"])
    (wide,) = wide_tables(replace(result, tables=(rule,)))
    assert [text.endswith(" †") for text in wide.rows[0][1:]] == [True, False, False, False]
    for table in (published, scores, wide):
        assert "† Outside the domain in which the mechanism is defined" in table.note
    assert [line["domain"] for line in csv.DictReader(io.StringIO(scores_csv(result)))] == ["outside", "", "", ""]


def test_what_was_made_outside_the_domain_is_outside_as_well(tmp_path: Path):
    write_data(tmp_path)
    value = small(tmp_path)
    del value["variants"]["mechanism"]
    value["steps"] = {
        "noisy": {"kind": "perturb", "data": "rows", "mechanism": "truncated-gumbel", "outside": "real-part",
                  "vectors": str(tmp_path / "vectors.txt"), "over": {"epsilon": [0.1, 10000]}},
        "task": {"kind": "perturbed_task", "vectors": "noisy"},
    }  # fmt: skip
    value["experiment"]["reference"] = {}
    plan = plan_of(value, tmp_path)
    run_here(plan, tmp_path / "cache", "task")
    collected = collect(plan, tmp_path / "cache")
    assert [(c.step, c.outside) for c in collected.cells] == [
        ("noisy", True), ("noisy", False), ("task", True), ("task", False)
    ]  # fmt: skip


def test_a_number_has_the_digits_that_its_error_leaves():
    assert with_error(0.00667, 0.022 / 1.96) == "0.007 ±\u00a00.022"
    assert with_error(28.676, 2.41 / 1.96) == "28.7 ±\u00a02.4"
    assert with_error(0.5, math.nan) == "0.5"
    assert with_error(0.12345, 0.0) == "0.123"


def test_a_failed_cell_is_in_every_table():
    outcome = results()
    assert any("failed" in row for table in score_tables(outcome) for row in table.rows)
    assert "failed: <b>" in scores_csv(outcome)
    assert "## Cells without a result" in markdown(outcome)


def test_a_mean_over_fewer_seeds_says_so():
    cells = (cell(0.9, mechanism="none"), cell(0.6, mechanism="a", seed=1), cell(0.7, mechanism="a", seed=2),
             cell(0.8, mechanism="b", seed=1), cell(0, "failed: x", mechanism="b", seed=2))  # fmt: skip
    (table,) = score_tables(Results(About(name="a", title="A"), "quick", "d", cells, {}))
    assert "Means over 1 to 2 seeds." in table.note
    none, both, first = (row[1] for row in table.rows)
    assert first == "0.800 ±\u00a00.049 (1 of 2 seeds)"
    assert "seeds" not in none + both


def test_the_csv_has_a_line_for_each_score():
    lines = list(csv.DictReader(io.StringIO(scores_csv(results()))))
    values = [(line["mechanism"], line["epsilon"], line["value"], line["floor"]) for line in lines if line["value"]]
    assert values[1] == ("santext", "1", "0.6", "0.5")
    assert ("santext", "inf", "0.8", "0.5") in values


@pytest.mark.parametrize("kind", ["curve", "heatmap", "bars"])
def test_figures(kind: str):
    rule = FigureRule(title="F", kind=kind, value="task.accuracy", label="accuracy")
    drawn = figures.draw(rule, results())
    assert drawn is not None
    assert drawn.svg.startswith("<svg")
    assert "santext" in drawn.svg
    assert figures.draw(rule, results()) == drawn
    assert figures.draw(FigureRule(title="F", value="task.nothing"), results()) is None


def drawn_areas(rule: FigureRule, result: Results, monkeypatch: pytest.MonkeyPatch) -> tuple[Figure, list[Axes]]:
    """The drawing before it becomes text: canvas and panels."""
    kept: list[Figure] = []
    monkeypatch.setattr(figures, "figure", lambda canvas, *_: kept.append(canvas))
    figures.draw(rule, result)
    return kept[0], [area for area in kept[0].axes if area.get_visible()]


def two_panels() -> Results:
    """The second data set lacks the first mechanism, and has one of its own."""
    places = [("snips", "adept"), ("snips", "pr"), ("few", "pr"), ("few", "narrow")]
    cells = tuple(
        cell(score, data=data, mechanism=mechanism, epsilon=epsilon)
        for data, mechanism in places
        for epsilon, score in ((500, 0.5), (1000, 0.6), (math.inf, 0.9))
    )
    return Results(About(name="a", title="A"), "quick", "d", cells, {})


@pytest.mark.parametrize("kind", ["curve", "bars"])
def test_one_legend_is_right_for_all_panels(kind: str, monkeypatch: pytest.MonkeyPatch):
    rule = FigureRule(title="F", kind=kind, value="task.accuracy", panels="data")
    canvas, areas = drawn_areas(rule, two_panels(), monkeypatch)
    looks: dict[str, set[object]] = {}
    for area in areas:
        for handle, label in zip(*area.get_legend_handles_labels(), strict=True):
            color = handle.get_color() if kind == "curve" else handle.patches[0].get_facecolor()
            looks.setdefault(label, set()).add(color)
    assert all(len(colors) == 1 for colors in looks.values())
    assert len({next(iter(looks[name])) for name in ("adept", "pr", "narrow")}) == 3
    (legend,) = canvas.legends
    assert [text.get_text() for text in legend.get_texts()][:3] == ["adept", "pr", "narrow"]


def test_the_cell_without_noise_is_drawn_behind_a_gap(monkeypatch: pytest.MonkeyPatch):
    rule = FigureRule(title="F", value="task.accuracy", where={"data": "snips"})
    _, (area,) = drawn_areas(rule, two_panels(), monkeypatch)
    names = {text.get_text(): place for text, place in zip(area.get_xticklabels(), area.get_xticks(), strict=True)}
    assert "∞" in names
    assert names["∞"] > names["1000"] > names["500"]
    ceiling = [(x, y) for line in area.get_lines() for x, y in line.get_xydata() if x == names["∞"]]
    assert (names["∞"], 0.9) in ceiling


def test_panels_of_a_heat_map_have_the_same_rows_and_colors(monkeypatch: pytest.MonkeyPatch):
    middle = ScoreTerm(score="task.accuracy", where={"epsilon": 1000}, times=-1)
    rule = FigureRule(title="F", kind="heatmap", value=[ScoreTerm(score="task.accuracy"), middle], panels="data")
    _, areas = drawn_areas(rule, two_panels(), monkeypatch)
    assert [text.get_text() for text in areas[0].get_yticklabels()] == ["adept", "pr", "narrow"]
    assert all(area.get_images()[0].get_array().shape == (3, 3) for area in areas)
    assert len({area.get_images()[0].get_clim() for area in areas}) == 1
    assert len({area.get_images()[0].get_cmap().name for area in areas}) == 1


def with_seeds(*seeds: int) -> Results:
    cells = tuple(cell(0.6, mechanism="a", epsilon=1, seed=seed) for seed in seeds)
    rules = {"tables": (WideTable(title="w", values=["task.accuracy"]),)}
    return Results(About(name="a", title="A"), "quick", "d", cells, {}, **rules)


@pytest.mark.parametrize(
    ("seeds", "said", "spread"),
    [((1,), True, "over test items"), ((1, 2), False, "over test items and, where there are several, seeds")],
)
def test_one_draw_of_the_noise_is_told(seeds: tuple[int, ...], said: bool, spread: str):
    result = with_seeds(*seeds)
    for text in (markdown(result), pages_text([result], "command")):
        assert (ONE_DRAW in text) == said
        assert f"± is 95 % {spread}." in text
    curve = figures.draw(FigureRule(title="F", value="task.accuracy"), result)
    assert curve is not None
    assert f"Shaded: 95 % {spread};" in curve.description


@pytest.mark.parametrize(("size", "said"), [("quick", False), ("full", True)])
def test_explanations_of_the_quick_size_are_called_so_in_another(size: str, said: bool):
    finding = ExperimentFinding(
        statement="s",
        source="p",
        judge=lambda scores: scores.above(score("task.accuracy", mechanism="a"), 0.9),
        explanation="few rows",
    )
    judgments = judged(replace(with_seeds(1), size=size), finding)
    for text in (markdown(judgments), pages_text([judgments], "command")):
        assert (OTHER_SIZE in text) == said


def test_a_step_with_one_draw_beside_one_with_several_says_so():
    result = with_seeds(1, 2)
    once = replace(cell(0.7, mechanism="a"), step="other")
    notes = {table.title: table.note for table in score_tables(replace(result, cells=(*result.cells, once)))}
    assert ONE_DRAW in notes["other (downstream)"]
    assert ONE_DRAW not in notes["task (downstream)"]


def test_what_has_no_interval_is_exact_and_tells_of_no_draw():
    """A number from an accountant adds no error to that of a score, and takes none away."""
    exact = Cell("spent", "accounting", {"seed": 1}, {"epsilon": 0.55})
    assert not Results(About(name="a", title="A"), "quick", "d", (exact,), {}).one_draw()
    outcome = Results(About(name="a", title="A"), "quick", "d", (cell(0.57, seed=1), exact), {})
    number = evaluate(score("task.accuracy") - score("spent.epsilon"), outcome, {})
    assert number.error == pytest.approx(0.049 / 1.96)
    check = ExperimentFinding(
        statement="s", source="t", judge=lambda scores: scores.above(score("task.accuracy"), score("spent.epsilon"))
    )
    assert judged(outcome, check).verdicts[0].word == "undecided"
    clear = ExperimentFinding(
        statement="s", source="t", judge=lambda scores: scores.above(score("spent.epsilon"), 0.54)
    )
    assert judged(outcome, clear).verdicts[0].word == "agree"


def test_the_caption_of_a_heat_map_counts_what_is_drawn():
    drawn = figures.draw(FigureRule(title="F", kind="heatmap", value="task.accuracy"), results())
    assert drawn is not None
    # the run without privacy has no epsilon, and so no place
    assert drawn.description.endswith("; 2 cells.")


def test_why_epsilons_were_mixed_is_told():
    finding = ExperimentFinding(
        statement="s",
        source="t",
        judge=lambda scores: scores.above(score("task.accuracy", mechanism="none"), 0.8),
        mixed="the paper does so",
    )
    judgments = judged(results(published=(PUBLISHED.model_copy(update={"mixed": "one table."}),)), finding)
    text = markdown(judgments)
    assert "Epsilons that mean different things: the paper does so" in text
    assert "Epsilons that mean different things: one table. Why ours differs" in text


def test_names_of_ticks_do_not_run_into_each_other(monkeypatch: pytest.MonkeyPatch):
    epsilons = [10, 50, 100, 250, 500, 750, 1000, 2500, math.inf]
    cells = tuple(cell(0.5, data=data, mechanism="a", epsilon=epsilon) for data in "abcd" for epsilon in epsilons)
    outcome = Results(About(name="a", title="A"), "quick", "d", cells, {})
    canvas, areas = drawn_areas(FigureRule(title="F", value="task.accuracy", panels="data"), outcome, monkeypatch)
    canvas.canvas.draw()
    for area in areas:
        boxes = [text.get_window_extent() for text in area.get_xticklabels() if text.get_text()]
        assert len(boxes) >= 5
        assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_two_results_side_by_side():
    first, second = results(), results()
    table = comparison([first, second], ("one", "two"))
    assert all(row[-1] == 0 for row in table.rows)
    fewer = Results(first.about, "quick", "d", first.cells[:1], {})
    assert [row[-1] for row in comparison([fewer, first], ("one", "two")).rows] == [0.0, None, None]


def test_the_page_of_several_experiments():
    findings = (
        ExperimentFinding(
            statement="It works",
            source="t",
            judge=lambda scores: scores.above(score("task.accuracy", mechanism="none"), 0.8),
        ),
    )
    text = pages_text([judged(results(published=(PUBLISHED,)), *findings)], "tacit experiment summary x")
    assert "1 of 1 testable published findings agree (100%)" in text
    assert "| agree |  | It works (t) |" in text
    assert "tacit experiment run experiments/a.toml --size quick" in text


def test_one_wide_table_of_all_systems():
    rule = WideTable(title="All", values=["task.accuracy", "task.accuracy.floor"], labels=["right", "blind"])
    outcome = results(tables=(rule,))
    (table,) = wide_tables(outcome)
    assert table.groups == [("", 1), ("right", 3), ("blind", 3)]
    assert table.columns == ["mechanism", *["1", "∞", "–"] * 2]
    rows = {row[0]: row[1:] for row in table.rows}
    assert list(rows) == ["none", "santext"]  # what failed has no score to show
    assert rows["none"] == ["", "", "0.90 ±\u00a00.05", "", "", "0.5"]
    assert rows["santext"][1] == "0.80 ±\u00a00.05"
    for text in (markdown(outcome), pages_text([outcome], "command")):
        assert "| mechanism | right: 1 | right: ∞ | right: – | blind: 1 |" in text
    assert Results.from_json(outcome.to_json(), "file") == outcome


def test_a_wide_table_on_the_page(tmp_path: Path):
    write_data(tmp_path)
    value = small(tmp_path)
    value["tables"] = [{"title": "Both <of> them", "values": ["kept.words changed", "rewritten.documents"]}]
    plan = plan_of(value, tmp_path)
    validate(plan)
    run_here(plan, tmp_path / "cache", "kept")
    html = page(plan, collect(plan, tmp_path / "cache"), tmp_path / "cache").to_html()
    assert "Both &lt;of&gt; them" in html
    assert "<th colspan='3' class='group'>kept.words changed</th>" in html


OWN_AND_PUBLISHED = (
    ExperimentFinding(
        statement="A paper says so",
        source="t",
        judge=lambda scores: scores.above(score("task.accuracy", mechanism="none"), 0.8),
    ),
    ExperimentFinding(
        statement="We say so",
        source="docs",
        ours=True,
        judge=lambda scores: scores.above(score("task.accuracy", mechanism="none"), 0.8),
    ),
    ExperimentFinding(
        statement="We were wrong",
        source="docs",
        ours=True,
        judge=lambda scores: scores.above(score("task.accuracy", mechanism="none"), 0.99),
    ),
)


def test_findings_of_our_own_stand_apart_in_every_file(tmp_path: Path):
    judgments = judged(results(), *OWN_AND_PUBLISHED)
    for text in (markdown(judgments), pages_text([judgments], "command")):
        published, own = text.split("Findings of our own\n", 1)
        assert "A paper says so" in published
        assert "We say so" not in published
        assert "| holds |  | We say so" in own
        assert "| does not hold |  | We were wrong" in own
        assert "Nobody has published them" in own
    write_files(judgments, tmp_path)
    rows = list(csv.reader(io.StringIO((tmp_path / "findings.csv").read_text())))
    assert [row[0] for row in rows] == ["table", "Published findings", "table", *["Findings of our own"] * 2]


def test_findings_of_our_own_stand_apart_on_the_page(tmp_path: Path):
    write_data(tmp_path)
    value = small(tmp_path)
    findings = [
        ExperimentFinding("A paper says so", "t", lambda _: not_testable("u")),
        ExperimentFinding("We say so", "docs", lambda scores: scores.above(score("words.word stays"), 0), ours=True),
    ]
    plan = plan_of(value, tmp_path, findings=findings)
    run_here(plan, tmp_path / "cache", "words")
    html = page(plan, collect(plan, tmp_path / "cache"), tmp_path / "cache").to_html()
    summary, rest = html.split("<h2>What was asked</h2>")
    assert summary.index("<h3>Published findings</h3>") < summary.index("it cannot be checked here")
    assert summary.index("it cannot be checked here") < summary.index("<h3>Findings of our own</h3>")
    assert summary.index("<h3>Findings of our own</h3>") < summary.index("We say so (holds)")
    assert "what we say holds in this run" in summary
    assert rest.index("<h2>Published findings</h2>") < rest.index("<h2>Findings of our own</h2>")


def test_examples_of_perturbed_words(tmp_path: Path):
    write_data(tmp_path)
    value = small(tmp_path)
    vectors = {"over": {"epsilon": [1, 100]}}
    words = {**vectors, "mechanism": "laplace", "mapping": "nearest"}
    value["variants"]["mechanism"] = {"laplace": vectors, "laplace+nn": words, "none": {}}
    value["steps"] = {"noisy": {"kind": "perturb", "data": "rows", "vectors": str(tmp_path / "vectors.txt"),
                                "over": {"mechanism": ["none", "laplace", "laplace+nn"]}}}  # fmt: skip
    plan = plan_of(value, tmp_path)
    run_here(plan, tmp_path / "cache", "noisy")
    (examples,) = example_tables(plan, tmp_path / "cache")
    assert examples.private
    # noisy vectors are no text, and a copy is no release
    assert [row[1:3] for row in examples.rows[:3]] == [["original", ""], ["laplace+nn", "1"], ["laplace+nn", "100"]]
    assert len(examples.rows) == 9
    assert all(set(row[3].split()) <= set(WORDS) for row in examples.rows)
    (tmp_path / "vectors.txt").unlink()  # a page can be written where the vectors are gone
    spaces.cache_clear()
    assert example_tables(plan, tmp_path / "cache") == []


def test_an_experiment_that_does_not_count_is_left_out_of_the_total():
    findings = (
        ExperimentFinding(
            statement="It works",
            source="t",
            judge=lambda scores: scores.above(score("task.accuracy", mechanism="none"), 0.8),
        ),
    )
    report = judged(results(), *findings)
    other = replace(report, about=report.about.model_copy(update={"count": False, "title": "Smoke", "name": "smoke"}))
    text = pages_text([report, other], "command")
    assert "Over all experiments, 1 of 1 testable published findings agree" in text
    assert "Not counted: Smoke." in text
    assert text.count("| agree |  | It works (t) |") == 2


def test_page_and_files_of_a_run(tmp_path: Path):
    write_data(tmp_path)
    value = small(tmp_path)
    value["figures"] = [{"title": "Kept", "value": "kept.words changed"}]
    finding = ExperimentFinding(
        "<More> is kept",
        "t",
        lambda scores: scores.decreases(score("kept.words changed", mechanism="santext"), along="epsilon"),
    )
    plan = plan_of(value, tmp_path, findings=[finding])
    run_here(plan, tmp_path / "cache", "kept")
    collected = collect(plan, tmp_path / "cache")
    html = page(plan, collected, tmp_path / "cache").to_html()
    shown = (
        "&lt;More&gt; is kept",
        "<svg",
        "Examples of released text",
        "quotes the original text",
        "peak MB",
        "not run",
        ONE_DRAW,
        "± is 95 % over test items.",
    )
    for part in shown:
        assert part in html, part
    assert "http://" not in html.replace("http://www.w3.org", "").replace("http://purl", "").replace(
        "http://creativecommons", ""
    )
    write_files(collected, tmp_path)
    assert all((tmp_path / name).is_file() for name in KEPT)
    assert "w1" not in (tmp_path / "results.json").read_text()


def test_the_smoke_experiment(tmp_path: Path):
    file = Path(__file__).parent.parent.parent / "experiments" / "smoke.toml"
    plan = make_plan(load(file), "quick", [file.parent], test_seed=1).judged_by(load_findings(file))
    validate(plan)
    run_here(plan, tmp_path, *plan.experiment.steps)
    collected = collect(plan, tmp_path)
    assert all(cell.finished for cell in collected.cells)
    assert [v.word for v in collected.verdicts] == ["agree", "agree", "not testable"]
    assert all(figures.draw(rule, collected) is not None for rule in collected.figures)
