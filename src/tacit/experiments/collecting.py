"""Results and costs of an experiment from what the cache holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tacit.card import Card, plain_sentence
from tacit.errors import place_of
from tacit.experiments.execution import failure_of, folder_of, is_finished, scores_in
from tacit.experiments.expansion import Step
from tacit.experiments.findings import judge_all
from tacit.experiments.plan import Plan
from tacit.experiments.raw import read_json
from tacit.experiments.results import Cell, Results
from tacit.experiments.steps.data import KIND as DATA
from tacit.experiments.steps.data import row_counts

DOMAIN: Final = "inside the domain"


def collect(plan: Plan, cache: Path) -> Results:
    """The finished cells of a plan as the cache holds them, with the verdicts. Data sets are described in words and are
    not cells."""
    experiment = plan.experiment
    results = Results(
        about=experiment.experiment,
        size=plan.size,
        digest=plan.digest,
        cells=tuple(_cell(step, cache) for step in plan.steps if step.kind != DATA.name),
        data={step.name: _about_data(step, plan, cache) for step in plan.steps if step.kind == DATA.name},
        published=tuple(experiment.published),
        figures=tuple(experiment.figures),
        tables=tuple(experiment.tables),
        test_seed=plan.test_seed,
    )
    return replace(results, verdicts=judge_all(plan.findings, results))


def _cell(step: Step, cache: Path) -> Cell:
    folder = folder_of(cache, step)
    cell = Cell(step=step.name, kind=step.kind, axes=step.axes, scores={})
    if is_finished(folder):
        try:
            outside = any(_scores(behind, cache).get(DOMAIN) == 0 for behind in (step, *step.ancestors()))
            scores = _scores(step, cache)
        except Exception as error:
            # The code that scores has changed, and the raw files are not what it expects.
            problem = f"failed: its scores cannot be derived from its raw files ({place_of(error)}): remove its folder"
            problem += f" {step.kind}/{step.key} from the cache"
            return replace(cell, problem=problem, failed=True)
        return replace(cell, scores=scores, promise=_promise(folder), outside=outside)
    for behind in (step, *step.ancestors()):
        reason = failure_of(folder_of(cache, behind))
        if reason is not None and not is_finished(folder_of(cache, behind)):
            own = behind is step
            problem = f"failed: {reason}" if own else f"left out, because its input '{behind.label}' failed"
            return replace(cell, problem=problem, failed=own)
    return replace(cell, problem="not run")


def _scores(step: Step, cache: Path) -> dict[str, float]:
    folder = folder_of(cache, step)
    return scores_in(step.kind, folder) if is_finished(folder) else {}


def _promise(folder: Path) -> str:
    if not (folder / "card.json").is_file():
        return ""
    return plain_sentence(card_in(folder).guarantee)


def card_in(folder: Path) -> Card:
    """The card of a step that has one."""
    return Card.of_file(folder / "card.json")


def _about_data(step: Step, plan: Plan, cache: Path) -> str:
    folder = folder_of(cache, step)
    about = plan.experiment.data[step.name].about
    if not is_finished(folder):
        return about
    counted = ", ".join(f"{count:,} {part} rows" for part, count in row_counts(scores_in(step.kind, folder)).items())
    return "; ".join(part for part in (about, counted) if part)


@dataclass(frozen=True)
class Cost:
    """The cost of the cells of a step; each cell counts once, also when a run took it from the cache."""

    step: str
    cells: int
    cpu_seconds: float
    peak_megabytes: float


def costs(plan: Plan, cache: Path) -> list[Cost]:
    """The cost of each step that has finished cells."""
    paid = []
    for name in plan.names:
        folders = {folder_of(cache, step) for step in plan.named(name)}
        spent = [read_json(folder / "costs.json") for folder in sorted(folders) if is_finished(folder)]
        if spent:
            seconds, peaks = ([cell[key] for cell in spent] for key in ("cpu_seconds", "peak_megabytes"))
            paid.append(Cost(name, len(spent), sum(seconds), max(peaks)))
    return paid
