"""Scores by group as a section of a report."""

from __future__ import annotations

from collections.abc import Sequence

from tacit.evaluation.groups.gaps import GroupGap
from tacit.evaluation.groups.scores import FEWEST_ROWS, FEWEST_USERS, GroupedMeasure, GroupReport, ModelScores, Paid
from tacit.report import Finding, Light, Section, Table

NOT_PRIVATE = (
    "These rows are read as they are, without noise, and so are their groups: they must not be private, because no "
    "card covers a score of private rows."
)
NAMED = 10


def group_sections(reports: Sequence[GroupReport]) -> list[Section]:
    """A section for each way to group the rows."""
    return [_section(report) for report in reports]


def _section(report: GroupReport) -> Section:
    findings = [finding for measure in report.measures for finding in _findings(report, measure)]
    if small := _small(report):
        findings.append(small)
    units = "rows" if report.users is None else "users"
    return Section(
        report.title,
        f"{len(report.names):,} groups. Intervals have {report.confidence:.0%} confidence and come from drawing "
        f"{units} again; those of gaps hold for all pairs of groups at once. {NOT_PRIVATE}",
        findings,
        [_table(report, measure) for measure in report.measures],
    )


def _findings(report: GroupReport, measure: GroupedMeasure) -> list[Finding]:
    findings = []
    for model in measure.models:
        name = f"Largest gap in {measure.name}" + (f" of {model.name}" if len(measure.models) > 1 else "")
        if model.gap is None:
            findings.append(Finding(name, Light.NONE, _too_few(report)))
        else:
            findings.append(_gap_finding(name, report, measure, model, model.gap))
    if measure.paid is not None and measure.paid.gap is not None:
        findings.append(_paid_finding(report, measure, measure.paid, measure.paid.gap))
    return findings


def _gap_finding(name: str, report: GroupReport, measure: GroupedMeasure, model: ModelScores, gap: GroupGap) -> Finding:
    best, worst = (gap.high, gap.low) if measure.better > 0 else (gap.low, gap.high)
    sentence = (
        f"best for '{report.names[best]}' ({model.scores[best].value:.3f}), worst for '{report.names[worst]}' "
        f"({model.scores[worst].value:.3f}): {gap.value:.3f} apart; {_range(gap, report)}"
    )
    return Finding(name, Light.AMBER if gap.at_least > 0 else Light.NONE, sentence, _why(gap), numbers={
        "gap": gap.value, "gap.low": gap.at_least, "gap.high": gap.at_most, "pairs": gap.pairs,
        "best": report.names[best], "worst": report.names[worst],
    })  # fmt: skip


def _paid_finding(report: GroupReport, measure: GroupedMeasure, paid: Paid, gap: GroupGap) -> Finding:
    most, least = gap.high, gap.low
    sentence = (
        f"'{report.names[most]}' loses {paid.costs[most].value:.3f} and '{report.names[least]}' "
        f"{paid.costs[least].value:.3f}: {gap.value:.3f} apart; {_range(gap, report)}"
    )
    return Finding(
        f"Who pays for privacy in {measure.name}", Light.AMBER if gap.at_least > 0 else Light.NONE, sentence, _why(gap),
        numbers={
            "difference": gap.value, "difference.low": gap.at_least, "difference.high": gap.at_most,
            "pairs": gap.pairs, "pays most": report.names[most], "pays least": report.names[least],
        },
    )  # fmt: skip


def _range(gap: GroupGap, report: GroupReport) -> str:
    return (
        f"the largest true difference lies between {gap.at_least:.3f} and {gap.at_most:.3f} ({report.confidence:.0%} "
        f"confidence, {gap.pairs:,} {'pair' if gap.pairs == 1 else 'pairs'})"
    )


def _why(gap: GroupGap) -> str:
    return (
        "Look: a difference is shown, that is, its interval for all pairs at once stays above 0. Without a light: none "
        "is shown on these rows, which does not show that there is none. The largest of several differences is larger "
        "than the true one on average."
        if gap.pairs > 1
        else "Look: a difference is shown, that is, its interval stays above 0. Without a light: none is shown on "
        "these rows, which does not show that there is none."
    )


def _too_few(report: GroupReport) -> str:
    users = "" if report.users is None else f" of {FEWEST_USERS} users or more"
    return f"fewer than two groups have {FEWEST_ROWS} rows{users} and a score, so no gap is stated"


def _small(report: GroupReport) -> Finding | None:
    names = [f"'{name}' ({rows:,})" for name, rows, small in zip(report.names, report.rows, report.small, strict=True)
             if small]  # fmt: skip
    if not names:
        return None
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    users = "" if report.users is None else f", or fewer than {FEWEST_USERS} users"
    return Finding(
        "Small groups",
        Light.AMBER,
        f"{', '.join(names[:NAMED])}{more}: fewer than {FEWEST_ROWS} rows{users}. Their scores are shown and say "
        "little; they take part in no gap. Gather more test rows of them before calling a model fair",
        "Look: with so few rows, even a large difference would not show.",
        numbers={"groups": len(names)},
    )


def _table(report: GroupReport, measure: GroupedMeasure) -> Table:
    """Groups from worst to best, with the columns of each model and what was paid."""
    sizes = ["rows"] if report.users is None else ["rows", "users"]
    columns, groups = ["group", *sizes], [("", 1 + len(sizes))]
    for model in measure.models:
        columns += ["score", "from", "to", "rest", "p (Holm)"]
        groups.append((model.name, 5))
    if measure.paid is not None:
        columns += ["lost", "from", "to", "p (Holm)"]
        groups.append(("paid for privacy", 4))
    rows = []
    first = measure.models[0]
    order = sorted(
        range(len(report.names)),
        key=lambda g: (first.scores[g].value != first.scores[g].value, measure.better * first.scores[g].value),
    )
    for g in order:
        name = f"{report.names[g]} (small)" if report.small[g] else report.names[g]
        row: list[object] = [name, report.rows[g], *([] if report.users is None else [report.users[g]])]
        for model in measure.models:
            row += [model.scores[g].value, model.scores[g].low, model.scores[g].high, model.rest[g], model.p[g]]
        if measure.paid is not None:
            cost = measure.paid.costs[g]
            row += [cost.value, cost.low, cost.high, measure.paid.p[g]]
        rows.append(row)
    note = "rest: the score of all other rows; p (Holm): of the difference to the rest, corrected for all groups" + (
        "; less is better" if measure.better < 0 else ""
    )
    return Table(measure.name, columns, rows, note=note, groups=groups)
