"""A tiny experiment on made-up words, as a dictionary that tests change before they use it."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tacit.experiments.config import of_dict
from tacit.experiments.execution import StepTask, execute, folder_of
from tacit.experiments.findings import ExperimentFinding, Judge, MeasuredScores, judge_all
from tacit.experiments.plan import Plan, make_plan
from tacit.experiments.results import Results
from tacit.experiments.verdicts import FindingVerdict

WORDS = [f"w{i}" for i in range(30)]

ExperimentFile = dict[str, Any]
"""The content of a TOML file, which tests change at any depth."""


def write_files(folder: Path, rows: int = 24) -> None:
    rng = np.random.default_rng(0)
    lines = [f"{word} {' '.join(f'{x:.4f}' for x in rng.standard_normal(3))}" for word in WORDS]
    (folder / "vectors.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label", "writer"])
        for i in range(rows):
            words = rng.choice(WORDS[:10] if i % 2 else WORDS[10:20], size=6)
            writer.writerow([" ".join(words), "odd" if i % 2 else "even", f"a{i % 4}"])


def small(folder: Path) -> ExperimentFile:
    """Two mechanisms and an original, each rewritten, compared and counted."""
    options = {"vectors": str(folder / "vectors.txt")}
    return {
        "experiment": {"name": "small", "title": "Small", "reference": {"mechanism": "none"}},
        "data": {
            "rows": {
                "task": "classification", "text": "text", "label": "label", "keep": ["writer"],
                "parts": {"train": {"file": "rows.csv", "rows": 16},
                          "test": {"file": "rows.csv", "rows": 8, "skip": 16}},
            }
        },
        "variants": {
            "mechanism": {
                "none": {},
                "random": {"options": options},
                "santext": {"options": options, "over": {"epsilon": [1, 4]}},
            }
        },
        "steps": {
            "rewritten": {"kind": "rewrite", "data": "rows", "over": {"mechanism": ["none", "random", "santext"]}},
            "kept": {"kind": "similarity", "texts": "rewritten", "measures": ["kept-words"]},
            "words": {"kind": "statistics", "over": {"mechanism": ["santext"]}, "words": 10},
        },
    }  # fmt: skip


def run_here(plan: Plan, cache: Path, *names: str) -> None:
    """Run steps and what they need in this process, which starts no other."""
    for step in (step for name in names for step in plan.named(name)):
        for cell in (*reversed(list(step.ancestors())), step):
            inputs = {name: folder_of(cache, behind) for name, behind in cell.inputs.items()}
            execute(
                StepTask(cell.kind, cell.parameters.model_dump(), inputs, folder_of(cache, cell)), lambda _, __: None
            )


def plan_of(
    value: ExperimentFile, folder: Path, *, test_seed: int | None = 1, size: str = "quick",
    findings: Sequence[ExperimentFinding] = (),
) -> Plan:  # fmt: skip
    return make_plan(of_dict(value, size), size, [folder], test_seed=test_seed).judged_by(findings)


def judged(results: Results, *findings: ExperimentFinding) -> Results:
    """The results with the verdicts on some findings."""
    return replace(results, verdicts=judge_all(findings, results))


def verdict_on(judge: Judge, results: Results, **more: str) -> FindingVerdict:
    """The verdict of a function on some results."""
    return ExperimentFinding("s", "t", judge, **more).verdict(MeasuredScores(results))
