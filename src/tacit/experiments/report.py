"""The files of an experiment's results: tables (CSV, Markdown), and one HTML page with figures, verdicts, examples,
cards and costs.

    results.json     all scores; what 'compare' and 'summary' read
    scores.csv       one line per cell and measure
    published.csv    the published value beside ours
    findings.csv     the verdicts
    tables.md        the same tables for reading
    costs.csv        seconds, memory and energy: the only file beside the page that differs between equal runs
    report.html      everything on one page, with texts: as private as the data, so only its owner may read it

The files without texts and times have the same bytes whenever the same noise was drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tacit.errors import TacitError
from tacit.evaluation.similarity import shortened
from tacit.experiments import figures
from tacit.experiments.collecting import Cost, costs
from tacit.experiments.declared import EPSILON, SEED, Value, shown
from tacit.experiments.execution import folder_of, is_finished
from tacit.experiments.expansion import Step
from tacit.experiments.plan import Plan
from tacit.experiments.raw import parts_of, read_part, read_released
from tacit.experiments.results import Results
from tacit.experiments.steps import kinds
from tacit.experiments.steps.perturb import read_words
from tacit.experiments.steps.rewrite import NONE
from tacit.experiments.tables import (
    LEANING,
    OWN,
    PUBLISHED,
    SHOWN_MEASURES,
    axes_text,
    axis_text,
    explained,
    findings_tables,
    markdown,
    problems_table,
    published_tables,
    score_tables,
    scores_csv,
    table_csv,
    wide_tables,
)
from tacit.experiments.verdicts import FindingVerdict, of_source, summary
from tacit.report import Finding, Light, Report, Section, Table
from tacit.report.parts import put

EXAMPLES = 3
MOST_EXAMPLES = 150
KEPT = ("results.json", "scores.csv", "published.csv", "findings.csv", "tables.md")


def write_files(results: Results, folder: Path) -> None:
    """Everything that is small and holds no text of the data."""
    put(folder / "results.json", results.to_json())
    put(folder / "scores.csv", scores_csv(results))
    put(folder / "published.csv", table_csv(published_tables(results)))
    put(folder / "findings.csv", table_csv(findings_tables(results.verdicts)))
    put(folder / "tables.md", markdown(results))


# The page ---------------------------------------------------------------------------------------------------------


def page(plan: Plan, results: Results, cache: Path) -> Report:
    """Everything on one page. It quotes texts of the data."""
    about, verdicts = results.about, results.verdicts
    sections = [_question(results)]
    if published := of_source(verdicts, ours=False):
        text = (
            "Each statement of the paper, checked against this run. A verdict is about its direction only, and it is "
            "left open where chance alone could have made the difference."
        )
        sections.append(Section(PUBLISHED, text, _findings(published), meaning=MEANING))
    if own := of_source(verdicts, ours=True):
        text = "Nobody has published these statements: they are ours, checked in the same way and counted apart."
        sections.append(Section(OWN, text, _findings(own), meaning=OWN_MEANING))
    if wide := wide_tables(results):
        sections.append(Section("Side by side", "Every system and every score in one table.", tables=wide))
    drawn = [drawing for rule in results.figures if (drawing := figures.draw(rule, results)) is not None]
    if drawn:
        text = (
            "Curves are means over seeds, if there are several; every figure is drawn from the scores in results.json."
        )
        sections.append(Section("Figures", text, figures=drawn))
    if results.published:
        text = (
            "The published number, ours, and the difference. Another model, other data or fewer rows move the level; "
            "what can be compared is mostly the order of the systems and the direction over epsilon."
        )
        sections.append(Section("Beside the published tables", text, tables=published_tables(results)))
    tables = score_tables(results)
    sections.append(Section("All scores", f"± is 95 % {results.spread}.", tables=tables))
    if examples := example_tables(plan, cache):
        text = "The first rows of each data set, released once for each cell shown."
        sections.append(Section("Examples of released text", text, tables=examples))
    if promises := promise_table(results):
        text = "What the privacy card of each release says. Several releases of the same texts add up."
        sections.append(Section("Privacy cards", text, tables=[promises]))
    sections.append(_cost(costs(plan, cache), about.watts, timing_tables(plan, cache)))
    problems = problems_table(results)
    facts = {
        "experiment": about.name, "paper": about.paper or None, "size": results.size, "cells": len(results.cells),
        "cells without a result": sum(not cell.finished for cell in results.cells), "digest": results.digest,
    }  # fmt: skip
    if results.test_seed is not None:
        facts["test seed"] = f"{results.test_seed} (public, so no release of this run has a guarantee)"
    if problems:
        sections.append(Section("What did not run", tables=[problems]))
    known: dict[str, object] = {name: value for name, value in facts.items() if value is not None}
    return Report(about.title, sections, known)


MEANING = {
    Light.GREEN: "the published statement holds here too",
    Light.AMBER: "it does not hold here, for the reason given",
    Light.RED: "it does not hold here, and we do not know why",
    Light.NONE: "it cannot be checked here, or the sample is too small to tell",
}


OWN_MEANING = {
    Light.GREEN: "what we say holds in this run",
    Light.AMBER: "what we say does not hold in this run, for the reason given",
    Light.RED: "what we say does not hold in this run, and we do not know why",
    Light.NONE: "what we say cannot be checked here, or the sample is too small to tell",
}


def _question(results: Results) -> Section:
    about, verdicts = results.about, results.verdicts
    rows = [[name, about_data] for name, about_data in results.data.items()]
    text = " ".join(part for part in (about.question, f"Source: {about.paper}." if about.paper else "") if part)
    if verdicts:
        text += f" {summary(verdicts)}."
    text = " ".join([text, *results.caveats])
    return Section("What was asked", text, tables=[Table("Data", ["data set", "what it is"], rows)] if rows else [])


def _findings(verdicts: Sequence[FindingVerdict]) -> list[Finding]:
    return [
        Finding(
            f"{v.statement} ({v.shown})",
            v.light,
            _measured(v),
            " ".join(part for part in (f"{v.source}.", f"Check: {v.check}." if v.check else "",
                     f"The means stand {LEANING[v.leaning]}." if v.leaning is not None else "") if part),
        )
        for v in verdicts
    ]  # fmt: skip


def _measured(verdict: FindingVerdict) -> str:
    """The measured values behind a verdict, and why they are not as published."""
    why = explained(verdict)
    if not why:
        return verdict.detail
    return f"{verdict.detail.rstrip('.')}. Why: {why[0].upper()}{why[1:].rstrip('.')}."


def example_tables(plan: Plan, cache: Path) -> list[Table]:
    """Some rows of each data set as each mechanism and epsilon released them (first seed only)."""
    finished = [s for s in plan.steps if s.kind in RELEASES and is_finished(folder_of(cache, s))]
    by_data: dict[str, list[tuple[Step, list[str]]]] = {}
    for step in finished:
        first = min(s.axes.get(SEED, 1) for s in finished if s.name == step.name)
        copied = getattr(step.parameters, "mechanism", NONE) == NONE
        if not copied and step.axes.get(SEED, 1) == first and (texts := _released(step, cache)):
            by_data.setdefault(step.inputs["data"].key, []).append((step, texts))
    return [_examples(releases, cache) for releases in by_data.values()]


def _released(step: Step, cache: Path) -> list[str]:
    """The first texts of the last part that a step released; none where it released noisy vectors, or where the
    vocabulary that its words are taken from is gone."""
    folder = folder_of(cache, step)
    try:
        return RELEASES[step.kind](folder, parts_of(folder)[-1])[:EXAMPLES]
    except TacitError:
        return []


def _examples(releases: Sequence[tuple[Step, list[str]]], cache: Path) -> Table:
    step = releases[0][0]
    part = parts_of(folder_of(cache, step))[-1]
    originals = read_part(folder_of(cache, step.inputs["data"]), part).joined[:EXAMPLES]
    rows: list[list[object]] = []
    for row, original in enumerate(originals[: max(1, MOST_EXAMPLES // len(releases))]):
        rows.append([row + 1, "original", "", shortened(original)])
        for step, texts in releases:
            other = [shown(v) for axis, v in step.axes.items() if axis not in ("data", EPSILON, SEED)]
            rows.append([row + 1, ", ".join(other), axis_text(step.axes.get(EPSILON)), shortened(texts[row])])
    name = releases[0][0].inputs["data"].name
    return Table(str(name), ["row", "released by", "epsilon", "text"], rows, private=True)


def _rewritten(folder: Path, part: str) -> list[str]:
    return [" ".join(texts) for texts in read_released(folder, part)]


RELEASES: Mapping[str, Callable[[Path, str], list[str]]] = {"rewrite": _rewritten, "perturb": read_words}
"""The kinds of steps that release text, and how to read what they released."""


def promise_table(results: Results) -> Table | None:
    """Each promise once, with the cells it holds for."""
    places_of: dict[str, list[str]] = {}
    for cell in results.cells:
        if cell.promise:
            axes = {axis: value for axis, value in cell.axes.items() if axis not in (SEED, "data")}
            places_of.setdefault(cell.promise, []).append(axes_text(axes))
    rows = [["; ".join(dict.fromkeys(places)), promise] for promise, places in places_of.items()]
    return Table("Promises", ["release", "promise"], rows) if rows else None


def _cost(paid: Sequence[Cost], watts: float, timings: Sequence[Table] = ()) -> Section:
    return Section(
        "Cost",
        "Processor time and peak memory of the processes that ran the steps. The energy is an estimate: processor "
        f"time x {watts:g} W for one busy core, a stated assumption and no measurement.",
        tables=[cost_table(paid, watts), *timings],
    )


def timing_tables(plan: Plan, cache: Path) -> list[Table]:
    """Tables about time beyond the cost of cells, from the kinds of steps that have any."""
    tables = []
    for name in plan.names:
        cells = [step for step in plan.named(name) if is_finished(folder_of(cache, step))]
        timing = kinds()[cells[0].kind].timing if cells else None
        if timing and (table := timing([(step.axes, folder_of(cache, step)) for step in cells])):
            tables.append(replace(table, title=f"{name}: {table.title}"))
    return tables


def cost_table(paid: Sequence[Cost], watts: float) -> Table:
    rows: list[list[object]] = [
        [c.step, c.cells, c.cpu_seconds, c.cpu_seconds * watts / 3600, c.peak_megabytes] for c in paid
    ]
    if paid:
        seconds = sum(c.cpu_seconds for c in paid)
        rows.append(["all", sum(c.cells for c in paid), seconds, seconds * watts / 3600,
                     max(c.peak_megabytes for c in paid)])  # fmt: skip
    return Table("Cost of each step", ["step", "cells", "CPU seconds", "watt-hours (estimate)", "peak MB"], rows)


# Two or more results ------------------------------------------------------------------------------------------------


def comparison(every: Sequence[Results], names: Sequence[str]) -> Table:
    """The main scores of all, cell by cell; cells that some do not have are left open. The difference is that of the
    last one to the first."""
    rows: list[list[object]] = []
    for step in dict.fromkeys(step for results in every for step in results.steps):
        groups: dict[tuple[tuple[str, Value], ...], None] = {}
        for results in every:
            for cell in results.of(step):
                groups[tuple((a, v) for a, v in cell.axes.items() if a != SEED)] = None
        measures = list(dict.fromkeys(name for results in every for name in results.measures(step)))[:SHOWN_MEASURES]
        for group in groups:
            for measure in measures:
                numbers = [results.number(step, measure, dict(group)) for results in every]
                if all(number is None for number in numbers):
                    continue
                values = [None if number is None else number.value for number in numbers]
                gap = None if values[0] is None or values[-1] is None else values[-1] - values[0]
                rows.append([step, axes_text(dict(group)), measure, *values, gap])
    return Table("Scores side by side", ["step", "cell", "measure", *names, "difference"], rows)
