"""Results as tables: scores, published values beside ours, wide tables, verdicts; as CSV and as Markdown."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence

from tacit.experiments.chance import REACH, Number, rank_correlation
from tacit.experiments.config import Published, WideTable
from tacit.experiments.declared import SEED, Value, shown
from tacit.experiments.evaluation import Grid, NotTestableError, evaluate, grid, in_order
from tacit.experiments.measures import ENDS
from tacit.experiments.quantities import Quantity, quantity_of
from tacit.experiments.results import ONE_DRAW, Cell, Results, is_end, mean_of_cells
from tacit.experiments.verdicts import FindingVerdict, Word, of_source, summary
from tacit.report import Table
from tacit.report.parts import cell_text

SHOWN_MEASURES = 6


def score_tables(results: Results) -> list[Table]:
    """One table per step: its axes without the seed, and its main scores as means over the seeds; a mean over fewer
    seeds than were to run says so."""
    tables = []
    for step in results.steps:
        measures = results.measures(step)[:SHOWN_MEASURES] or ["result"]
        axes = [axis for axis in results.axes(step) if axis != SEED]
        groups = dict.fromkeys(tuple(cell.axes.get(axis) for axis in axes) for cell in results.of(step))
        rows = [
            [*(axis_text(value) for value in group), *_scores(results, step, measures, axes, group)] for group in groups
        ]
        notes = _seeds_note([len(_group_cells(results, step, axes, group)) for group in groups])
        # Where the whole experiment has one draw, the head of the page says so.
        notes += [ONE_DRAW] if results.repeated() and results.one_draw(step) else []
        notes += [OUTSIDE_NOTE] if any(cell.outside for cell in results.of(step)) else []
        tables.append(Table(f"{step} ({results.of(step)[0].kind})", [*axes, *measures], rows, " ".join(notes)))
    return tables


def axis_text(value: Value | None) -> str:
    return "" if value is None else shown(value)


def _group_cells(results: Results, step: str, axes: Sequence[str], group: Sequence[Value | None]) -> list[Cell]:
    return [c for c in results.of(step) if tuple(c.axes.get(axis) for axis in axes) == tuple(group)]


def _seeds_note(repetitions: Sequence[int]) -> list[str]:
    """How many cells each row is the mean of; what does not vary with the seed is run once."""
    least, most = min(repetitions), max(repetitions)
    return [f"Means over {most if least == most else f'{least} to {most}'} seeds."] if most > 1 else []


def _scores(
    results: Results, step: str, measures: Sequence[str], axes: Sequence[str], group: Sequence[Value | None]
) -> list[str]:
    cells = _group_cells(results, step, axes, group)
    finished = [cell for cell in cells if cell.finished]
    if not finished:
        return ["failed" if cells[0].failed else "no result", *[""] * (len(measures) - 1)]
    texts = []
    for measure in measures:
        having = [cell for cell in finished if measure in cell.scores]
        fewer = f" ({len(having)} of {len(cells)} seeds)" if len(having) < len(cells) else ""
        texts.append(f"{score_text(mean_of_cells(having, measure))}{fewer}" if having else "")
    return texts


def score_text(number: Number, most: int = 9) -> str:
    """A mean, how far it can be off, and a mark where it is not covered by the mechanism's definition."""
    return with_error(number.value, number.error, most) + (f" {MARK}" if number.outside else "")


def with_error(value: float, error: float, most: int = 9) -> str:
    """A mean and how far it can be off at 95 %, both with the digits that the error leaves, or fewer."""
    if math.isnan(error) or error <= 1e-9 * abs(value):
        return cell_text(value)
    reach = REACH * error
    digits = min(most, max(0, 1 - math.floor(math.log10(reach))))
    return f"{value:,.{digits}f} ±\u00a0{reach:.{digits}f}"


def published_tables(results: Results) -> list[Table]:
    """Each published table, with our value and the difference beside every number."""
    return [_beside(results, table) for table in results.published]


def published_counts(results: Results) -> tuple[int, int]:
    """How many numbers of the published tables have one of ours beside them, and how many there are."""
    ours = [number for table in results.published for _, number in _pairs(results, table)]
    return sum(number is not None for number in ours), len(ours)


def _pairs(results: Results, table: Published) -> list[tuple[float, Number | None]]:
    """Each published number and ours, if the cells that it needs were run."""
    quantity = quantity_of(table.ours)
    pairs: list[tuple[float, Number | None]] = []
    for *place, value in table.rows:
        at = {axis: v for axis, v in zip(table.axes, place, strict=True) if v != ""}
        try:
            pairs.append((float(value), evaluate(quantity, results, at)))
        except NotTestableError:
            pairs.append((float(value), None))
    return pairs


def _beside(results: Results, table: Published) -> Table:
    quantity = quantity_of(table.ours)
    pairs = _pairs(results, table)
    rows = [
        [*(shown(value) for value in place), *_compared(number, ours)]
        for (*place, _), (number, ours) in zip(table.rows, pairs, strict=True)
    ]
    columns = [*table.axes, "published", "ours", "± 95 %", "difference"]
    notes = []
    if _is_signed(table, quantity):
        signs = [_sign(number, ours) for number, ours in pairs]
        columns, rows = [*columns, "sign"], [[*row, sign] for row, sign in zip(rows, signs, strict=True)]
        known = [sign for sign in signs if sign]
        notes += [f"{known.count(AGREES)} of {len(known)} signs agree."] if known else []
    notes += _trend_agreement(pairs)
    if any(ours is not None and ours.outside for _, ours in pairs):
        columns = [*columns, "domain"]
        rows = [[*row, OUTSIDE if ours is not None and ours.outside else ""]
                for row, (_, ours) in zip(rows, pairs, strict=True)]  # fmt: skip
        notes.append(OUTSIDE_NOTE)
    unit = f" ({table.unit})" if table.unit else ""
    notes += [f"Epsilons that mean different things: {table.mixed.rstrip('.')}."] if table.mixed else []
    note = " ".join([*notes, f"Why ours differs: {table.difference}"])
    return Table(f"{table.source}{unit}", columns, rows, note)


def _compared(number: float, ours: Number | None) -> list[float | None]:
    if ours is None:
        return [number, None, None, None]
    return [number, ours.value, None if math.isnan(ours.error) else REACH * ours.error, ours.value - number]


AGREES = "agrees"
MARK = "†"
OUTSIDE = f"{MARK} outside"
OUTSIDE_NOTE = f"{MARK} Outside the domain in which the mechanism is defined: what ran there has no guarantee."
CHANGES = ("change", "privacy gain")
LEAST_ROWS = 4
WIDE_DIGITS = 2


def _is_signed(table: Published, quantity: Quantity) -> bool:
    if table.signed is not None:
        return table.signed
    difference = len(quantity.scores) > 1 and any(score.times < 0 for score in quantity.scores)
    change = any(score.measure in CHANGES for score in quantity.scores)
    return difference or change or any(float(row[-1]) < 0 for row in table.rows)


def _sign(number: float, ours: Number | None) -> str:
    """Whether both are above or below zero; a published zero has no sign."""
    if ours is None or number == 0:
        return ""
    return AGREES if number * ours.value > 0 else "differs"


def _trend_agreement(pairs: Sequence[tuple[float, Number | None]]) -> list[str]:
    common = [(number, ours.value) for number, ours in pairs if ours is not None]
    published, own = ([pair[side] for pair in common] for side in (0, 1))
    if len(common) < LEAST_ROWS or len(set(published)) < 2 or len(set(own)) < 2:
        return []
    correlation = f"Rank correlation of the published numbers and ours: {rank_correlation(published, own):.2f}"
    return [f"{correlation} over {len(common)} common rows."]


def wide_tables(results: Results) -> list[Table]:
    """The tables of the file: several scores, each over two axes."""
    return [table for rule in results.tables if (table := _wide(rule, results)) is not None]


def _wide(rule: WideTable, results: Results) -> Table | None:
    quantities = [quantity_of(value) for value in rule.values]
    parts = {
        label: grid(value, results, rule.rows, rule.columns, rule.where)
        for value, label in zip(quantities, rule.labels or map(str, quantities), strict=True)
    }
    parts = {label: scores for label, scores in parts.items() if scores}
    lines = list(dict.fromkeys(line for scores in parts.values() for line in scores))
    if not lines:
        return None
    places = {label: _places(scores) for label, scores in parts.items()}
    columns = [_column(place) for label in parts for place in places[label]]
    rows = [
        [shown(line), *(_score_at(scores.get(line, {}), place) for label, scores in parts.items()
                        for place in places[label])]
        for line in lines
    ]  # fmt: skip
    groups = [("", 1), *((label, len(places[label])) for label in parts)]
    outside = any(
        number.outside for scores in parts.values() for points in scores.values() for number in points.values()
    )
    without = f" (–: without {rule.columns})" if any(None in places[label] for label in parts) else ""
    notes = (
        f"Columns: {rule.columns}{without}.",
        f"± is 95 % {results.spread}.",
        rule.note,
        OUTSIDE_NOTE if outside else "",
    )
    note = " ".join(part for part in notes if part)
    return Table(rule.title, [rule.rows, *columns], rows, note, groups=groups)


def _places(scores: Grid) -> list[Value | None]:
    """The columns of one score; last the one for lines that do not have this axis."""
    known = {place for points in scores.values() for place in points}
    last = [None] if None in known else []
    return [*sorted((place for place in known if place is not None), key=in_order), *last]


def _column(place: Value | None) -> str:
    return "–" if place is None else "∞" if place == math.inf else shown(place)


def _score_at(points: Mapping[Value | None, Number], place: Value | None) -> str:
    return score_text(points[place], WIDE_DIGITS) if place in points else ""


LEANING = {True: "as stated", False: "the other way", None: ""}
OWN = "Findings of our own"
PUBLISHED = "Published findings"


def findings_tables(verdicts: Sequence[FindingVerdict]) -> list[Table]:
    """The verdicts on published statements, and apart from them those on what only we say."""
    split = {PUBLISHED: of_source(verdicts, ours=False), OWN: of_source(verdicts, ours=True)}
    return [_findings_table(title, those) for title, those in split.items() if those]


def _findings_table(title: str, verdicts: Sequence[FindingVerdict]) -> Table:
    rows = [[v.shown, LEANING[v.leaning], v.statement, v.source, v.detail, v.check, explained(v)] for v in verdicts]
    columns = ["verdict", "means", "finding", "source", "what we measured", "check", "explanation"]
    nobody = " Nobody has published them: they are no agreement with a paper." if title == OWN else ""
    return Table(title, columns, rows, f"{summary(verdicts)}.{nobody}")


def explained(verdict: FindingVerdict) -> str:
    """Why we do not agree, and why epsilons that mean different things were compared."""
    mixed = f"Epsilons that mean different things: {verdict.mixed}" if verdict.mixed else ""
    against = verdict.word is Word.DISAGREE or verdict.leaning is False
    why = verdict.explanation if against else ""
    return ". ".join(part.rstrip(".") for part in (why, mixed) if part)


def problems_table(results: Results) -> Table | None:
    rows = [[c.step, axes_text(c.axes), c.problem] for c in results.cells if not c.finished]
    return Table("Cells without a result", ["step", "cell", "why"], rows) if rows else None


def axes_text(axes: Mapping[str, Value]) -> str:
    return ", ".join(f"{axis} {shown(value)}" for axis, value in axes.items())


def scores_csv(results: Results) -> str:
    axes = list(dict.fromkeys(axis for cell in results.cells for axis in cell.axes))
    lines: list[list[object]] = [["step", "kind", *axes, "measure", "value", *ENDS, "problem", "domain"]]
    for cell in results.cells:
        start = [cell.step, cell.kind, *(axis_text(cell.axes.get(axis)) for axis in axes)]
        if not cell.finished:
            lines.append([*start, "", "", *[""] * len(ENDS), cell.problem, ""])
        for name, value in cell.scores.items():
            if not is_end(name):
                ends = [_exact(cell.scores.get(f"{name}.{end}")) for end in ENDS]
                lines.append([*start, name, _exact(value), *ends, "", "outside" if cell.outside else ""])
    return csv_text(lines)


def _exact(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(value)
    return "" if value is None else str(value)


def table_csv(tables: Iterable[Table]) -> str:
    """Tables below each other, each with its title in front of its rows."""
    lines: list[list[object]] = []
    for table in tables:
        lines.append(["table", *table.headings])
        lines.extend([table.title, *(_exact(cell) for cell in row)] for row in table.rows)
    return csv_text(lines)


def csv_text(lines: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(lines)
    return text.getvalue()


def markdown(results: Results) -> str:
    """All tables of one experiment, for reading."""
    about, verdicts = results.about, results.verdicts
    parts = [f"# {about.title}", "", *([about.question, ""] if about.question else []), f"Size: {results.size}. "
             f"{summary(verdicts)}." if verdicts else f"Size: {results.size}.", ""]  # fmt: skip
    parts += [line for caveat in results.caveats for line in (caveat, "")]
    parts += [f"- {name}: {about_data}" for name, about_data in results.data.items() if about_data]
    tables = [*wide_tables(results), *published_tables(results), *findings_tables(verdicts), *score_tables(results)]
    problems = problems_table(results)
    for table in [*tables, *([problems] if problems else [])]:
        parts += ["", *markdown_table(table)]
    return "\n".join(parts) + "\n"


def markdown_table(table: Table, heading: str = "##") -> list[str]:
    lines = [
        f"{heading} {table.title}",
        "",
        "| " + " | ".join(table.headings) + " |",
        "|" + "---|" * len(table.columns),
    ]
    lines += ["| " + " | ".join(_inside(cell) for cell in row) + " |" for row in table.rows]
    return [*lines, *(["", table.note] if table.note else [])]


def _inside(cell: object) -> str:
    return cell_text(cell).replace("|", "\\|").replace("\n", " ") if cell is not None else ""
