"""Results of several experiments as documentation: one page that sums them up, and one page for each experiment.

results.md              what came out: counts of verdicts, and every statement that does not hold here
results/santext.md      all verdicts and all tables of one experiment
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tacit.errors import BadInputError
from tacit.experiments.results import Results
from tacit.experiments.tables import (
    findings_tables,
    markdown_table,
    published_counts,
    published_tables,
    wide_tables,
)
from tacit.experiments.verdicts import FindingVerdict, Word, of_source, summary
from tacit.report import Table

WHAT_A_VERDICT_IS = (
    "A verdict looks at the direction of a published statement, not at its size: our models are smaller and our "
    "data are parts of the papers' data, as each table says. Where chance alone could have made the difference "
    "(at 5 %, over all groups of a finding), whichever way it points, the finding is undecided. Chance "
    "is that of the test items and, where cells were run with several seeds, that of the noise; an experiment with "
    "one draw of the noise says so. [Experiments](experiments.md) tells how to run them."
)


def results_pages(every: Sequence[Results], command: str, output: Path) -> dict[Path, str]:
    """The text of each page by its path: `output` sums up, the folder named like it has a page per experiment.

    No verdict and no table of any of the results is left out: each is on the page of its experiment.
    """
    folder = output.with_suffix("")
    places = [folder / f"{name}.md" for name in page_names(every)]
    pages = {output: _summary_page(every, [f"{folder.name}/{place.name}" for place in places], command)}
    for results, place in zip(every, places, strict=True):
        pages[place] = _experiment_page(results, f"../{output.name}")
    return pages


def page_names(every: Sequence[Results]) -> list[str]:
    """The name of each page: that of the experiment, with its size where there are results of several sizes."""
    times = Counter(results.about.name for results in every)
    names = [r.about.name if times[r.about.name] == 1 else f"{r.about.name}-{r.size}" for r in every]
    for name, number in Counter(names).items():
        if number > 1:
            raise BadInputError(
                "results-twice",
                "{number} of the results are of the experiment '{name}', and a summary has one page for each: give "
                "one of them, or look at them side by side with 'tacit experiment compare'",
                number=number,
                name=name,
            )
    return names


# The page that sums up --------------------------------------------------------------------------------------------


def _summary_page(every: Sequence[Results], links: Sequence[str], command: str) -> str:
    everything = [verdict for results in every if results.about.count for verdict in results.verdicts]
    left_out = [results.about.title for results in every if not results.about.count]
    names = [f"[{results.about.title}]({link})" for results, link in zip(every, links, strict=True)]
    ours, published = map(sum, zip(*map(published_counts, every), strict=True))
    lines = [
        "# Results", "",
        "Our results beside the published ones, summed up; each experiment has a page with all its verdicts and "
        "tables, and says why it differs from the paper, as far as we know.", "",
        f"Over all experiments, {summary(everything)}." if everything else "",
        f"Not counted: {', '.join(left_out)}." if left_out else "", "",
        f"{ours:,} of {published:,} numbers of published tables have one of ours beside them." if published else "", "",
        WHAT_A_VERDICT_IS, "",
        *markdown_table(_counts_table(every, names)),
    ]  # fmt: skip
    titles = {False: "Published statements that do not hold here", True: "Statements of our own that do not hold"}
    for ours, title in titles.items():
        if listed := _not_holding(names, every, ours=ours):
            lines += ["", f"## {title}", "", *listed]
    lines += ["", "These pages are made from the result files by", "", f"    {command}"]
    return "\n".join(lines).rstrip() + "\n"


def _not_holding(names: Sequence[str], every: Sequence[Results], *, ours: bool) -> list[str]:
    """A list of the experiments and, below each, of its statements that were refuted."""
    lines = []
    for name, results in zip(names, every, strict=True):
        refuted = [v for v in of_source(results.verdicts, ours=ours) if v.word is Word.DISAGREE]
        if refuted:
            lines += [f"- {name}", *(f"    - {verdict.statement} ({verdict.source})" for verdict in refuted)]
    return lines


def _counts_table(every: Sequence[Results], names: Sequence[str]) -> Table:
    rows = [
        [
            name, results.about.paper, results.size, *_counts(of_source(results.verdicts, ours=False)),
            *_counts(of_source(results.verdicts, ours=True)), *published_counts(results),
        ]
        for results, name in zip(every, names, strict=True)
    ]  # fmt: skip
    columns = ["experiment", "source", "size", "agree", "disagree", "undecided", "not testable", "hold", "do not hold",
               "undecided", "not testable", "with ours", "all"]  # fmt: skip
    groups = [("", 3), ("published", 4), ("our own", 4), ("published numbers", 2)]
    return Table("Verdicts", columns, rows, groups=groups)


def _counts(verdicts: Sequence[FindingVerdict]) -> list[int]:
    """How often each word is the verdict, in the order of the words."""
    times = Counter(verdict.word for verdict in verdicts)
    return [times[word] for word in Word]


# The page of one experiment ---------------------------------------------------------------------------------------


def _experiment_page(results: Results, summary_link: str) -> str:
    about, verdicts = results.about, results.verdicts
    lines = [f"# {about.title}", ""]
    lines += [about.question, ""] if about.question else []
    lines += [f"Source: {about.paper}.", ""] if about.paper else []
    lines += [f"{summary(verdicts)}.", ""] if verdicts else []
    lines += [f"What a verdict is, and the other experiments: [results]({summary_link}). This one is run by", "",
              f"    tacit experiment run experiments/{about.name}.toml --size {results.size}", "",
              *(f"- {name}: {about_data}" for name, about_data in results.data.items() if about_data),
              *(line for caveat in results.caveats for line in ("", caveat))]  # fmt: skip
    for table in findings_tables(verdicts):
        short = Table(table.title, ["verdict", "means", "finding", "what we measured", "explanation"],
                      [[r[0], r[1], f"{r[2]} ({r[3]})", r[4], r[6]] for r in table.rows], table.note)  # fmt: skip
        lines += ["", *markdown_table(short)]
    for table in (*wide_tables(results), *published_tables(results)):
        lines += ["", *markdown_table(table)]
    return "\n".join(lines).rstrip() + "\n"
