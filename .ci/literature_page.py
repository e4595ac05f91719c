"""docs/literature.md from the table of papers; every number of a refutation is computed while the page is made.

python .ci/literature_page.py          writes the page
python .ci/literature_page.py --check  fails if the page is not what the table and the refutations say
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tacit.literature.papers import STATUS_MEANINGS, STATUSES, OpenQuestion, Paper, directions, papers, parts

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "literature.md"

HEADINGS: Final = {
    "pre-training": "Private pre-training",
    "fine-tuning": "Private fine-tuning",
    "selective": "Selective privacy",
    "federated": "Federated learning",
    "vectors, plain": "Noisy vectors, plain differential privacy",
    "vectors, metric": "Noisy vectors and words, metric differential privacy",
    "named only": "Named by the survey, not described",
}

BEGINNING: Final = """\
<!-- Made by .ci/literature_page.py from src/tacit/literature/survey.toml: change the table, then run the program. -->

# Literature

The survey "Differentially Private Natural Language Models: Recent Advances and Future Directions" lists {described}
methods in its table and text, and names {named} more. This page says what became of each: the command that runs it,
what does more in its place, or the number that refutes it.

{statuses}

| part of the survey | {columns} | rows |
|---|{rule}---|
{counts}

Commands are tried by a test on small files of these names, with small models. Numbers of refutations are computed by
the functions that the table names (`tacit.auditing.published`) when this page is made: *claims* is what the paper or
its code says, *spends* is a lower bound on what it really costs between the same neighbors. Unit and neighbors are
those of the claim. "Rests on" says what a row was checked against: the survey, the paper's abstract, its public code,
or a derivation made anew. `tacit mechanisms --paper "Yue et al. 2021"` finds a row on the command line.
"""


def summary(rows: tuple[Paper, ...]) -> str:
    """The first part of the page: what the statuses mean, and how often each occurs."""
    lines = []
    for part in parts():
        of_part = [paper for paper in rows if paper.part == part]
        counted = Counter(paper.status for paper in of_part)
        cells = " | ".join(str(counted[status] or "") for status in STATUSES)
        lines.append(f"| {HEADINGS[part]} | {cells} | {len(of_part)} |")
    total = Counter(paper.status for paper in rows)
    lines.append(f"| all | {' | '.join(str(total[status]) for status in STATUSES)} | {len(rows)} |")
    named = sum(paper.part == "named only" for paper in rows)
    return BEGINNING.format(
        described=len(rows) - named,
        named=named,
        statuses="\n".join(f"- **{status}**: {STATUS_MEANINGS[status]}" for status in STATUSES),
        columns=" | ".join(STATUSES),
        rule="---|" * len(STATUSES),
        counts="\n".join(lines),
    )


def entry(paper: Paper) -> str:
    """A paper with everything the table says about it."""
    lines = [
        f"### {paper.cite}: {paper.method} {{ #{paper.key} }}",
        "",
        f"{paper.authors}. *{paper.title}*. {paper.year}.",
        "",
        f"- **Status**: {paper.status}",
        f"- **Claims**: {paper.claims}. Unit: {paper.unit}; neighbors: {paper.neighbors}",
        f"- **In Tacit**: {paper.tacit}",
        *(f"- **Measured**: {sentence}" for sentence in paper.measured()),
        *([f"- **Superseded by**: {paper.superseded_by}"] if paper.superseded_by else []),
        *([f"- **Python**: {', '.join(map(dotted, paper.classes))}"] if paper.classes else []),
        f"- **Rests on**: {', '.join(paper.evidence)}",
        "",
        *commands(paper.commands),
    ]
    return "\n".join(lines)


def dotted(place: str) -> str:
    """A place `module:name` as Python writes it."""
    return f"`{place.replace(':', '.')}`"


def commands(lines: Iterable[str]) -> list[str]:
    """A block of commands, if there are any."""
    shown = list(lines)
    return ["```console", *shown, "```", ""] if shown else []


def direction(row: OpenQuestion) -> str:
    """A question that the survey leaves open."""
    return "\n".join(
        [
            f"### {row.name} {{ #direction-{row.key} }}",
            "",
            f"- **The survey**: {row.says}",
            f"- **Tacit**: {row.tacit}",
            "",
            *commands(row.commands),
        ]
    )


def page() -> str:
    """The text of docs/literature.md."""
    rows = papers()
    blocks = [summary(rows)]
    for part in parts():
        blocks.append(f"## {HEADINGS[part]}\n")
        blocks += [entry(paper) for paper in rows if paper.part == part]
    blocks.append("## Open questions of the survey\n")
    blocks += [direction(row) for row in directions()]
    return "\n".join(blocks).rstrip("\n") + "\n"


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        if PAGE.read_text(encoding="utf-8") == text:
            return 0
        print("docs/literature.md is not what the table says: run 'python .ci/literature_page.py'", file=sys.stderr)
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
