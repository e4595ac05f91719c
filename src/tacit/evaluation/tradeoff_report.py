"""The trade-off of privacy and utility as a section of a report."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tacit.evaluation.scores import (
    Interval,
)
from tacit.evaluation.tradeoff import RESAMPLES, Axis, Point, Tradeoff, pareto_front, promise
from tacit.report import Figure, Finding, Light, Section, Table
from tacit.report.plot import axes, figure


def tradeoff_section(tradeoff: Tradeoff, title: str = "Privacy against utility", weight: float = 0.5) -> Section:
    figures = [_figure(tradeoff.metric, axis, group) for axis, group in tradeoff.groups]
    private = tuple(p for p in tradeoff.points if p.guarantee.is_private)
    if tradeoff.together is not None:
        figures.append(_figure(tradeoff.metric, tradeoff.together, private))
    findings = []
    if tradeoff.why_apart:
        findings.append(
            Finding(
                "Different kinds of promises", Light.NONE,
                f"these releases promise different kinds of things and are drawn apart: {tradeoff.why_apart}",
            )
        )  # fmt: skip
    if void := [p for p in tradeoff.points if not p.guarantee.is_private]:
        findings.append(
            Finding(
                "Without a guarantee", Light.AMBER,
                f"{', '.join(p.name for p in void)}: no guarantee ({void[0].guarantee.void}), so on no axis of privacy",
            )
        )  # fmt: skip
    tables = [_points_table(tradeoff, weight)]
    if tradeoff.comparisons:
        tables.append(_comparisons_table(tradeoff))
    return Section(
        title,
        "Each release with what it promises and what it is still good for. An epsilon per token, one per document, and "
        "one per unit of distance mean different things and never share an axis unless they were converted by a proof; "
        "the label then says so.",
        findings,
        tables,
        figures,
    )


def _points_table(tradeoff: Tradeoff, weight: float) -> Table:
    front = {
        group[i].name
        for axis, group in tradeoff.groups
        for i in pareto_front(axis.values, [p.utility.value for p in group])
    }
    attacked = any(p.attack is not None for p in tradeoff.points)
    columns = ["release", "promise", tradeoff.metric, "from", "to", "gap kept", "on its Pareto front"]
    extra = ["attacker hidden", f"weighted ({weight:g} utility)", "plain trade-off"] if attacked else []
    rows = []
    for p in tradeoff.points:
        row: list[object] = [p.name, promise(p.guarantee), p.utility.value, p.utility.low, p.utility.high, p.normalized,
                          p.name in front if p.guarantee.is_private else None]  # fmt: skip
        rows.append(row + ([p.hidden, p.weighted(weight), p.plain_tradeoff] if attacked else []))
    return Table(
        "Releases",
        columns + extra,
        rows,
        "Pareto front: no other release with the same kind of promise is both at least as private and more useful. It "
        "takes the scores at face value; the comparisons say which differences are real.",
    )


def _comparisons_table(tradeoff: Tradeoff) -> Table:
    rows = [
        [c.first, c.second, c.difference, c.low, c.high, c.p, c.p_corrected, c.significant]
        for c in tradeoff.comparisons
    ]
    return Table(
        f"Differences in {tradeoff.metric}",
        ["first", "second", "difference", "from", "to", "p", "p (Holm)", "real at 5 %"],
        rows,
        f"Paired bootstrap over test items, at least {RESAMPLES:,} resamples; p corrected for {len(rows)} tests.",
    )


def _figure(metric: str, axis: Axis, points: Sequence[Point]) -> Figure:
    canvas, area = axes()
    families: dict[str, list[tuple[float, Point]]] = {}
    for value, point in zip(axis.values, points, strict=True):
        families.setdefault(point.guarantee.mechanism, []).append((value, point))
    for name, members in families.items():
        members.sort(key=lambda member: member[0])
        x, y = [value for value, _ in members], [p.utility.value for _, p in members]
        reach = np.array([[_reach(p.utility, -1) for _, p in members], [_reach(p.utility, 1) for _, p in members]])
        area.errorbar(x, y, yerr=reach, marker="o", capsize=3, label=name)
    front = sorted(pareto_front(axis.values, [p.utility.value for p in points]), key=lambda i: axis.values[i])
    if len(families) > 1 and len(front) > 1:
        area.plot([axis.values[i] for i in front], [points[i].utility.value for i in front], color="black",
                  linewidth=0.8, linestyle=":", label="Pareto front")  # fmt: skip
    area.axhline(
        max(p.ceiling for p in points), color="#2e7d4f", linestyle="--", linewidth=1, label="ceiling (original)"
    )
    area.axhline(max(p.floor for p in points), color="#b3261e", linestyle="--", linewidth=1, label="floor (no text)")
    if all(value > 0 for value in axis.values) and max(axis.values) > 4 * min(axis.values):
        area.set_xscale("log")
    area.set_xlabel(axis.label, fontsize=8, wrap=True)
    area.set_ylabel(metric)
    area.legend(fontsize=8)
    kind = "Converted: " if axis.converted else ""
    return figure(
        canvas,
        f"{kind}{metric} against {axis.label.partition(',')[0]}",
        f"{len(points)} releases; bars are 95 % intervals over test items. The dashed lines are the ceiling (trained "
        f"on the originals) and the floor (no text needed). Axis: {axis.label}.",
    )


def _reach(interval: Interval, side: int) -> float:
    end = interval.low if side < 0 else interval.high
    return 0.0 if math.isnan(end) else max(0.0, side * (end - interval.value))
