"""`tacit evaluate`: what released texts are still good for, beside floors, ceilings and the promise on their cards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.engine import ADDRESS_HELP, ENGINE_HELP, LOCAL, WORKERS_HELP, cluster_of
from tacit.cli.reports import Told, deliver, progress_bars
from tacit.errors import BadInputError, BadParameterError, MissingExtraError

if TYPE_CHECKING:
    from tacit.card import Card
    from tacit.cli.on_cluster import Found
    from tacit.engines.cluster.session import Cluster
    from tacit.evaluate.downstream import Downstream, Labeled
    from tacit.evaluate.learners import Task
    from tacit.evaluate.rows import Rows
    from tacit.evaluate.similarity import Measure, Similarity
    from tacit.evaluate.vectors import TextVectors
    from tacit.report import Finding, Report, Section


app = typer.Typer(pretty_exceptions_enable=False, add_completion=False)


@app.command()
def evaluate(
    original: Annotated[str, typer.Argument(metavar="ORIGINAL", help="The private file (txt, csv, tsv, jsonl …).")],
    private: Annotated[
        list[str], typer.Argument(metavar="PRIVATE...", help="One or more files that were made from it, row by row.")
    ],
    column: Annotated[
        list[str] | None,
        typer.Option(
            "-c", "--column", help="The column of texts; twice for pairs. By default the only one, or 'text'."
        ),
    ] = None,
    private_column: Annotated[
        list[str] | None, typer.Option("--private-column", help="The same in PRIVATE, if it is called otherwise.")
    ] = None,
    label_column: Annotated[
        str | None, typer.Option("-l", "--label-column", help="The column of labels: measures a downstream task.")
    ] = None,
    test: Annotated[
        str | None,
        typer.Option("--test", help="Original test texts with labels; by default a fifth of the rows is set aside."),
    ] = None,
    private_test: Annotated[
        list[str] | None,
        typer.Option("--private-test", help="The rewritten test texts, one file per PRIVATE, in the same order."),
    ] = None,
    task: Annotated[str, typer.Option(help="classification, pairs, similarity or tagging.")] = "classification",
    learner: Annotated[str, typer.Option(help="probe (fast), tfidf, lstm or transformer.")] = "probe",
    encoder: Annotated[
        str, typer.Option(help="Encoder of probe, transformer, cosine and BERTScore: 'minilm', a folder, a hub name.")
    ] = "minilm",
    language_model: Annotated[
        str, typer.Option("--language-model", help="Public language model of the perplexity: 'smollm2', a folder …")
    ] = "smollm2",
    seeds: Annotated[int, typer.Option(help="How many times a learner with randomness is trained.")] = 3,
    metrics: Annotated[
        str,
        typer.Option(help="Of: bleu, chrf, bertscore, cosine, kept-words, length, perplexity; or all, none, default."),
    ] = "default",
    sample: Annotated[
        int, typer.Option(help="At most this many texts for the measures that need a neural model.")
    ] = 2000,
    format: Annotated[
        str | None, typer.Option(help="Format of ORIGINAL and --test, if the name does not tell.")
    ] = None,
    private_format: Annotated[
        str | None, typer.Option("--private-format", help="Format of PRIVATE and --private-test.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write one page with tables and plots. It quotes the texts.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    json_file: Annotated[Path | None, typer.Option("--json-file", help="Write the JSON object to a file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace existing report files.")] = False,
    engine: Annotated[str, typer.Option(help=ENGINE_HELP)] = LOCAL,
    address: Annotated[str | None, typer.Option(help=ADDRESS_HELP)] = None,
    workers: Annotated[int, typer.Option("-w", "--workers", help=WORKERS_HELP)] = 1,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress bar.")] = False,
) -> None:
    """Measure what is left of the utility of released texts.

    How similar they are to the originals, and how well a model trained on them works on original text, always beside
    the floor (chance) and the ceiling (the originals themselves). Several files give a trade-off with the privacy that
    their cards promise.

    Example: tacit evaluate reviews.csv private.csv --label-column rating --html report.html
    """
    from tacit.evaluate.learners import LEARNERS, TASKS
    from tacit.evaluate.similarity import DEFAULT_METRICS, check_metrics
    from tacit.report.parts import refuse_existing

    if task not in TASKS:
        raise BadParameterError(f"there is no task '{task}': choose from {', '.join(TASKS)}")
    if learner not in LEARNERS:
        raise BadParameterError(f"there is no learner '{learner}': choose from {', '.join(LEARNERS)}")
    if seeds < 1 or sample < 2:
        raise BadParameterError("--seeds must be at least 1 and --sample at least 2")
    for path in (html, json_file):
        if path is not None:
            refuse_existing(path, force=force)
    if json_file is not None and json_file.suffix != ".json":
        raise BadParameterError(f"a report for machines ends in .json: name it {json_file.with_suffix('.json').name}")
    if label_column is None and (test or private_test):
        raise BadParameterError("test files measure a downstream task: say where its labels are, with --label-column")
    if private_test and not test:
        raise BadParameterError("--private-test needs --test, the original texts that it was made from")
    if private_test and len(private_test) != len(private):
        raise BadParameterError(f"give --private-test once for each of the {len(private)} private files")
    wanted = DEFAULT_METRICS if metrics == "default" else check_metrics(metrics.split(","))
    with cluster_of(engine, address, workers) as cluster:
        work = _read(original, private, column or [], private_column or [], label_column, test, private_test or [],
                     format, private_format, task, cluster)  # fmt: skip
        with progress_bars(shown=not quiet) as told:
            report = _evaluated(
                work, wanted, strict=metrics != "default", learner=learner, encoder=encoder,
                language_model=language_model, seeds=seeds, sample=sample, told=told, cluster=cluster,
            )  # fmt: skip
    deliver(report, html, json_file, as_json=as_json, force=force)


# Reading ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Work:
    """Everything that was read, before anything is measured."""

    task: Task
    label_column: str | None
    original: Rows
    releases: dict[str, Rows]
    test: Rows | None
    released_tests: dict[str, Rows]
    cards: dict[str, Card]


def _read(
    original: str,
    private: Sequence[str],
    columns: Sequence[str],
    private_columns: Sequence[str],
    label_column: str | None,
    test: str | None,
    private_tests: Sequence[str],
    format: str | None,
    private_format: str | None,
    task: Task,
    cluster: Cluster | None,
) -> Work:
    from tacit.evaluate.rows import align, card_beside

    read_rows = _reader(cluster)
    rows = read_rows(original, columns, label_column, format)
    if label_column is not None and rows.labels is None:
        raise BadInputError(f"{rows.name} has no column '{label_column}': name the column of labels in it")
    names = _names(private)
    theirs = private_columns or columns
    releases = {
        name: align(rows, read_rows(path, theirs, label_column, private_format))
        for name, path in zip(names, private, strict=True)
    }
    tested = read_rows(test, columns, label_column, format) if test else None
    released_tests = {
        name: align(tested, read_rows(path, theirs, label_column, private_format))
        for name, path in zip(names, private_tests, strict=False)
        if tested is not None
    }
    cards = {
        name: card
        for name, path in zip(names, private, strict=True)
        if (card := card_beside(path.rstrip("/"))) is not None
    }
    return Work(task, label_column, rows, releases, tested, released_tests, cards)


def _reader(cluster: Cluster | None) -> Callable[..., Rows]:
    """What reads a file, or with a cluster also a folder of files."""
    if cluster is None:
        from tacit.evaluate.rows import read_rows

        return read_rows
    from functools import partial

    from tacit.cli.on_cluster import read_data_set

    return partial(read_data_set, cluster)


def _names(paths: Sequence[str]) -> list[str]:
    """File names, with as much of the folder as it takes to tell them apart."""
    paths = [path.rstrip("/") for path in paths]
    if len(set(paths)) < len(paths):
        raise BadInputError("the same private file is given twice: name each file once")
    short = [Path(path).name for path in paths]
    return short if len(set(short)) == len(short) else list(paths)


# Measuring --------------------------------------------------------------------------------------------------------


def _evaluated(
    work: Work,
    metrics: Sequence[str],
    *,
    strict: bool,
    learner: str,
    encoder: str,
    language_model: str,
    seeds: int,
    sample: int,
    told: Told | None,
    cluster: Cluster | None,
) -> Report:
    from tacit.card import plain_sentence
    from tacit.evaluate.downstream import downstream_section
    from tacit.evaluate.vectors import TextVectors
    from tacit.report import Report

    splits = None if work.label_column is None else _splits(work, work.label_column)
    if cluster is None:
        vectors = TextVectors(encoder)
        measured = None
    else:
        from tacit.cli.on_cluster import ClusterEncoder, measure_releases

        vectors = TextVectors(ClusterEncoder(cluster, encoder))
        measured = measure_releases(
            cluster, work.original.all_texts, {name: rows.all_texts for name, rows in work.releases.items()}, metrics,
            encoder=encoder, language_model=language_model, limit=sample, told=told,
        )  # fmt: skip
    report = Report("How useful the released texts are")
    similar: dict[str, Similarity] = {}
    for name, released in work.releases.items():
        section, found = _similarity(
            work, name, released, metrics, strict, vectors, language_model, sample, told, measured
        )
        report.sections.append(section)
        similar[name] = found
    task = None
    if splits is not None:
        task = _downstream(work, splits, learner, vectors, seeds, told)
        report.sections.append(_with_findings(downstream_section(task), splits.remarks))
    if len(work.releases) > 1 and work.cards:
        report.sections.append(_tradeoff(work, task, similar))
    report.facts = {
        "original": work.original.name,
        "rows": len(work.original),
        **{f"promise of {name}": plain_sentence(card.guarantee) for name, card in work.cards.items()},
        **{f"promise of {name}": "no privacy card beside it" for name in work.releases if name not in work.cards},
        "test texts": work.test.name if work.test is not None else "a fifth of the rows, split by a fixed public seed",
        "task": work.task if work.label_column is not None else "none (no --label-column)",
        "encoder": encoder,
    }
    return report


def _similarity(
    work: Work,
    name: str,
    released: Rows,
    metrics: Sequence[str],
    strict: bool,
    vectors: TextVectors,
    language_model: str,
    sample: int,
    told: Told | None,
    measured: dict[tuple[str, str], Found] | None,
) -> tuple[Section, Similarity]:
    """Similarity of one release, and what is wrong with its texts. Default measures whose library is missing are left
    out and named; measures that were asked for are not."""
    from tacit.evaluate.collapse import text_flags
    from tacit.evaluate.similarity import Similarity, measure_similarity, similarity_section
    from tacit.report import Finding, Light

    before, after = work.original.all_texts, released.all_texts
    measures: list[Measure] = []
    remarks = [flag.finding(name) for flag in text_flags(before, after)]
    for metric in metrics:
        if told is not None:
            told(f"{metric} of {name}", 0, 1)
        try:
            if measured is not None:
                found_there, missing = measured[name, metric]
                if missing is not None:
                    raise MissingExtraError(missing)
                measures += found_there
                continue
            found = measure_similarity(
                before, after, (metric,), vectors=vectors, language_model=language_model, limit=sample,
                perplexity_limit=min(sample, 200), progress=told,
            )  # fmt: skip
        except MissingExtraError as error:
            if strict:
                raise
            remarks.append(Finding(f"{metric} was left out", Light.NONE, str(error)))
            continue
        measures += found.measures
    similar = Similarity(tuple(measures), before, after)
    return _with_findings(similarity_section(similar, name), remarks), similar


@dataclass(frozen=True)
class Splits:
    """What is trained on and tested on, checked before anything slow begins."""

    train: Labeled
    test: Labeled
    releases: dict[str, Labeled]
    released_tests: dict[str, Labeled]
    remarks: list[Finding]


def _splits(work: Work, label: str) -> Splits:
    from tacit.evaluate.downstream import check_task, split_rows
    from tacit.evaluate.rows import labeled

    everything = labeled(work.task, work.original, label)
    remarks: list[Finding] = []
    tests: dict[str, Labeled] = {}
    if work.test is not None:
        train, test = everything, labeled(work.task, work.test, label)
        chosen = list(range(len(everything)))
        for name, rows in work.released_tests.items():
            tests[name], found = _released(work.task, name, rows, label, range(len(rows)))
            remarks += found
    else:
        chosen, held = split_rows(work.task, everything.labels)
        train, test = everything.at(chosen), everything.at(held)
        tests = {name: _released(work.task, name, rows, label, held)[0] for name, rows in work.releases.items()}
    check_task(work.task, train, test)
    releases: dict[str, Labeled] = {}
    for name, rows in work.releases.items():
        releases[name], found = _released(work.task, name, rows, label, chosen)
        remarks += [*found, *_changed_labels(work, name, rows)]
        check_task(work.task, releases[name], test)
    return Splits(train, test, releases, tests, remarks)


def _downstream(
    work: Work, splits: Splits, learner: str, vectors: TextVectors, seeds: int, told: Told | None
) -> Downstream:
    from tacit.evaluate.downstream import evaluate_downstream
    from tacit.evaluate.learners import make_learner

    made = make_learner(learner, work.task, vectors, progress=None if told is None else _steps(told))
    return evaluate_downstream(
        work.task, made, splits.train, splits.releases, splits.test, splits.released_tests,
        seeds=range(1, seeds + 1), progress=told,
    )  # fmt: skip


def _released(task: Task, name: str, rows: Rows, label: str, places: Sequence[int]) -> tuple[Labeled, list[Finding]]:
    """The rows of a release at these places; for tagging, those that still have one token per tag."""
    from tacit.evaluate.rows import labeled, released_tags
    from tacit.report import Finding, Light

    if task != "tagging":
        return labeled(task, rows, label).at(places), []
    found = released_tags(rows, label)
    at = {place: i for i, place in enumerate(found.places)}
    kept = found.rows.at([at[place] for place in places if place in at])
    if not found.unaligned:
        return kept, []
    remark = Finding(
        f"Tags of {name}", Light.AMBER,
        f"{len(found.unaligned):,} of {len(rows):,} rows do not have one released token per tag (the first is row "
        f"{found.unaligned[0]}) and were left out",
        numbers={"unaligned": len(found.unaligned)},
    )  # fmt: skip
    return kept, [remark]


def _changed_labels(work: Work, name: str, rows: Rows) -> list[Finding]:
    from tacit.report import Finding, Light

    if rows.labels is None or work.original.labels is None:
        return []
    changed = sum(a != b for a, b in zip(rows.labels, work.original.labels, strict=True))
    if not changed:
        return []
    share = changed / len(rows)
    sentence = f"{share:.1%} of the labels differ from the originals; training uses the released ones"
    return [Finding(f"Labels of {name}", Light.NONE, sentence, numbers={"changed": changed, "share": share})]


def _steps(told: Told) -> Callable[[int, int], None]:
    return lambda done, total: told("training steps", done, total)


def _tradeoff(work: Work, task: Downstream | None, similar: dict[str, Similarity]) -> Section:
    from tacit.evaluate.similarity import LIT
    from tacit.evaluate.tradeoff import Point, compare_arms, measure_tradeoff, points_of, tradeoff_section
    from tacit.report import Finding, Light

    guarantees = {name: card.guarantee for name, card in work.cards.items()}
    tokens = {name: card.facts.longest_document if card.facts else None for name, card in work.cards.items()}
    if task is not None:
        metric, points, comparisons = task.metric, points_of(task, guarantees, tokens), compare_arms(task)
    else:
        known = [m.name for found in similar.values() for m in found.measures]
        metric = next((name for name in (*LIT, *known) if name in known), "")
        comparisons = []
        points = [
            Point(name, guarantees[name], found[metric].interval, found[metric].floor, found[metric].ceiling,
                  tokens=tokens[name])
            for name, found in similar.items()
            if name in guarantees and metric
        ]  # fmt: skip
    section = tradeoff_section(measure_tradeoff(metric, points, comparisons))
    missing = [name for name in work.releases if name not in guarantees]
    if not missing:
        return section
    sentence = f"{', '.join(missing)}: no FILE.card.json beside it, so nothing is known about its privacy"
    return _with_findings(section, [Finding("Without a card", Light.AMBER, sentence)])


def _with_findings(section: Section, more: Sequence[Finding]) -> Section:
    from dataclasses import replace

    return replace(section, findings=(*section.findings, *more))
