"""The card as an HTML page."""

from __future__ import annotations

import html

from tacit.card.content import Content
from tacit.card.strength import Verdict


def as_page(c: Content, worst: Verdict | None) -> str:
    """The card as one HTML page without anything to load."""
    e = html.escape
    body = [f"<h1>{e(c.title)}</h1>", f'<p class="sentence">{e(c.sentence)}</p>', _html_table(c.rows)]
    if c.totals:
        head = f"<tr><th>for</th><th>{e(c.heading)}</th><th>protection</th></tr>"
        cells = "".join(
            f'<tr><td>{e(what)}</td><td>{e(value)}</td><td class="{verdict}">{e(verdict.sentence)}</td></tr>'
            for what, value, verdict in c.totals
        )
        body.append(f"<h2>What it adds up to</h2><table>{head}{cells}</table>")
    for title, items in c.lists():
        listed = "".join(f"<li>{e(item)}</li>" for item in items)
        body.append(f"<h2>{e(title)}</h2><ul>{listed}</ul>")
    if c.release:
        body.append(f"<h2>Release</h2>{_html_table(c.release)}")
    body.append(f"<footer>{e(c.footer)}</footer>")
    kind = "void" if worst is None else worst
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{e(c.title)}</title><style>{_STYLE}</style></head><body class="{kind}"><main>'
        + "".join(body)
        + "</main></body></html>\n"
    )


def _html_table(rows: list[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><th>{html.escape(a)}</th><td>{html.escape(b)}</td></tr>" for a, b in rows)
    return f"<table>{cells}</table>"


_STYLE = (
    ":root{color-scheme:light dark;--ok:#1a7f37;--warn:#b54708;--bad:#b42318;--line:#8884}"
    "body{font:16px/1.5 system-ui,sans-serif;margin:0}main{max-width:52rem;margin:2rem auto;padding:0 1rem}"
    "h1{font-size:1.4rem;border-left:.4rem solid var(--ok);padding-left:.6rem}"
    ".weak h1{border-color:var(--warn)}.nominal h1,.void h1{border-color:var(--bad)}.void h1{color:var(--bad)}"
    "h2{font-size:1.05rem;margin-top:1.6rem}"
    ".sentence{font-size:1.1rem}table{border-collapse:collapse;width:100%}"
    "th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid var(--line)}"
    "th{font-weight:600;white-space:nowrap}td.strong,td.moderate{color:var(--ok)}"
    "td.weak{color:var(--warn)}td.nominal{color:var(--bad)}"
    "footer{margin-top:2rem;opacity:.7;font-size:.9rem}"
)
