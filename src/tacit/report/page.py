"""A report as one HTML page that needs nothing else: no scripts, no fonts, no network."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence

from tacit.report.parts import Figure, Finding, Light, Report, Section, Table, cell_text

_STYLE = """
:root { --ink:#1c2733; --soft:#5b6875; --line:#dde3e8; --paper:#fff; --green:#2e7d4f; --amber:#b7791f; --red:#b3261e;
        --none:#4a6fa5; }
* { box-sizing:border-box }
body { font:16px/1.55 system-ui,-apple-system,"Segoe UI",sans-serif; color:var(--ink); background:#f4f6f8; margin:0 }
main { max-width:960px; margin:0 auto; padding:2rem 1.5rem 4rem }
h1 { font-size:1.7rem; margin:.2rem 0 } h2 { font-size:1.25rem; margin:0 0 .6rem }
  h3 { font-size:1rem; margin:1.4rem 0 .4rem }
section { background:var(--paper); border:1px solid var(--line); border-radius:10px; padding:1.3rem 1.5rem;
  margin:1.2rem 0 }
p { margin:.4rem 0 } .soft, figcaption, .note { color:var(--soft); font-size:.9rem }
.finding { border-left:5px solid var(--none); padding:.35rem .9rem; margin:.7rem 0; background:#fafbfc }
.finding.green { border-color:var(--green) } .finding.amber { border-color:var(--amber) }
  .finding.red { border-color:var(--red) }
.light { display:inline-block; min-width:3.2em; padding:.05em .6em; border-radius:1em; color:#fff; font-size:.8rem;
         text-align:center; background:var(--none); margin-right:.4rem }
.light.green { background:var(--green) } .light.amber { background:var(--amber) } .light.red { background:var(--red) }
.scroll { overflow-x:auto } table { border-collapse:collapse; font-size:.9rem; margin:.4rem 0 }
th,td { text-align:left; padding:.3rem .8rem .3rem 0; border-bottom:1px solid var(--line); vertical-align:top }
td.number, th.number { text-align:right; font-variant-numeric:tabular-nums }
section:has(table.wide) { width:min(96vw,1500px); position:relative; left:50%; transform:translateX(-50%) }
table.wide { font-size:.76rem } table.wide th, table.wide td { padding:.2rem .3rem } table.wide tbody td:first-child {
  position:sticky; left:0; background:var(--paper); white-space:nowrap } th.group { text-align:center;
  border-left:1px solid var(--line) }
.private { background:#fff4e5; border:1px solid #f0c987; border-radius:8px; padding:.6rem 1rem; margin:1rem 0 }
figure { margin:1rem 0 } figure svg { max-width:100%; height:auto }
dl { display:grid; grid-template-columns:max-content 1fr; gap:.15rem 1rem; font-size:.9rem; margin:.4rem 0 }
  dt { color:var(--soft) }
dd { margin:0; overflow-wrap:anywhere }
@media (prefers-color-scheme:dark) { :root { --ink:#e6ebf0; --soft:#9aa7b4; --line:#324150; --paper:#1b2631 }
  body { background:#121a22 } .finding { background:#202d3a } .private { background:#3a2c14; border-color:#7a5a20 }
  figure svg { background:#fff; border-radius:6px } }
@media print { body { background:#fff } section { break-inside:avoid-page } }
"""

_MEANING = {
    Light.GREEN: "no problem found at the thresholds named below; that is not a proof of safety",
    Light.AMBER: "read it before deciding",
    Light.RED: "a problem at the thresholds named below",
    Light.NONE: "a number without a verdict",
}


def page(report: Report) -> str:
    return "\n".join(_parts(report)) + "\n"


def _parts(report: Report) -> Iterator[str]:
    title = html.escape(report.title)
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>"
    if report.private:
        warning = "<strong>This page quotes the original text.</strong> It is as private as the data."
        yield f'<p class="private">{warning}</p>'
    if report.findings:
        yield from _summary(report)
    for section in report.sections:
        yield from _section(section)
    if report.facts:
        yield "<section><h2>Circumstances</h2><dl>"
        for name, value in report.facts.items():
            yield f"<dt>{html.escape(str(name))}</dt><dd>{html.escape(cell_text(value))}</dd>"
        yield "</dl></section>"
    yield f'<p class="soft">Tacit {html.escape(report.version)}</p>\n</main>\n</body>\n</html>'


def _summary(report: Report) -> Iterator[str]:
    """All findings at a glance with the meaning of their lights; sections with a meaning of their own stand apart."""
    yield "<section><h2>Summary</h2>"
    shared = [finding for section in report.sections if not section.meaning for finding in section.findings]
    apart = [section for section in report.sections if section.meaning and section.findings]
    if shared:
        yield from _lights(shared, report.meaning)
    for section in apart:
        yield f"<h3>{html.escape(section.title)}</h3>"
        yield from _lights(section.findings, section.meaning)
    yield "</section>"


def _lights(findings: Sequence[Finding], meaning: Mapping[Light, str]) -> Iterator[str]:
    for finding in findings:
        yield f"<p>{_light(finding.light)} <strong>{html.escape(finding.name)}</strong></p>"
    used = [light for light in _MEANING if any(f.light is light for f in findings)]
    meanings = "; ".join(f"<em>{light.word}</em>: {html.escape(meaning.get(light, _MEANING[light]))}" for light in used)
    yield f'<p class="soft">{meanings}.</p>'


def _section(section: Section) -> Iterator[str]:
    yield f"<section><h2>{html.escape(section.title)}</h2>"
    if section.text:
        yield f"<p>{html.escape(section.text)}</p>"
    for finding in section.findings:
        yield _finding(finding)
    for figure in section.figures:
        yield _figure(figure)
    for table in section.tables:
        yield from _table(table)
    yield "</section>"


def _light(light: Light) -> str:
    return f'<span class="light {light.value}">{light.word}</span>'


def _finding(finding: Finding) -> str:
    why = f'<p class="soft">{html.escape(finding.why)}</p>' if finding.why else ""
    return (
        f'<div class="finding {finding.light.value}"><p>{_light(finding.light)} '
        f"<strong>{html.escape(finding.name)}</strong></p><p>{html.escape(finding.sentence)}</p>{why}</div>"
    )


def _figure(figure: Figure) -> str:
    caption = f"<strong>{html.escape(figure.title)}.</strong> {html.escape(figure.description)}"
    return f"<figure>{figure.svg}<figcaption>{caption}</figcaption></figure>"


def _table(table: Table) -> Iterator[str]:
    marked = " (quotes the original text)" if table.private else ""
    wide = " class='wide'" if table.groups else ""
    yield f"<h3>{html.escape(table.title)}{marked}</h3><div class='scroll'><table{wide}><thead>"
    if table.groups:
        above = (f"<th colspan='{count}' class='group'>{html.escape(name)}</th>" for name, count in table.groups)
        yield f"<tr>{''.join(above)}</tr>"
    yield "<tr>"
    kinds = [" class='number'" if _is_numeric(table, i) else "" for i in range(len(table.columns))]
    yield "".join(f"<th{kind}>{html.escape(name)}</th>" for name, kind in zip(table.columns, kinds, strict=True))
    yield "</tr></thead><tbody>"
    for row in table.rows:
        cells = (f"<td{kind}>{html.escape(cell_text(cell))}</td>" for cell, kind in zip(row, kinds, strict=True))
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"
    if table.note:
        yield f'<p class="note">{html.escape(table.note)}</p>'


def _is_numeric(table: Table, column: int) -> bool:
    values: list[object] = [row[column] for row in table.rows if row[column] is not None]
    return bool(values) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
