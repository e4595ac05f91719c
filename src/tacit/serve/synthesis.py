"""A job that releases a corpus in place of the rows of a file, by the same functions as `tacit synthesize`.

The sketch is the only private step, and it is paid for once. Proof obligation: of one job at most one sketch ever
leaves the service, and its promise is written down in the ledger before its noise is drawn.

* `reserve` has a token made of the number of the job. A job that is killed and tried again finds its reservation by it,
  and is counted once.
* A sketch that was saved is never built again. Noise that was drawn in a process that died before it saved the sketch
  is lost with the process: nothing of it can be fetched, since only a job that is done gives out anything. So drawing
  again releases no second sketch of the same rows.

Everything after the sketch (corpus, report, view) is post-processing, and may be repeated as often as necessary.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from tacit.account.ledger import Reservation, Subject
from tacit.account.release_charge import ReleaseCharge
from tacit.card import Card
from tacit.engines.job import RewriteProgress
from tacit.engines.nominal import refuse_nominal
from tacit.guarantee import Guarantee
from tacit.jobs.fields import USUAL_POOLS
from tacit.jobs.release_report import ReleaseView, page_of, public_release, release_view
from tacit.jobs.sketch import released_sketch
from tacit.jobs.sketch_input import row_source
from tacit.jobs.sketched_rows import SketchConfig
from tacit.jobs.synthesize import MatchedRows, MatchingConfig, run
from tacit.matching.artifact import read_sketch
from tacit.matching.joint_corpus import column_view
from tacit.matching.marginals import JointLabels
from tacit.matching.pool import load_pool
from tacit.report.parts import Figure
from tacit.serve.answers import CorpusView, FigureFacts, LabelFacts
from tacit.serve.binding import LOCAL
from tacit.serve.errors import unpacks_too_large
from tacit.serve.jobs import JobFolder
from tacit.serve.messages import SynthesisSettings
from tacit.serve.settings import write_private

SHARES: Final = {"reading the rows": (0.0, 0.5), "reading the pool": (0.5, 0.9)}
"""Which part of the work a step is, for a bar that moves."""
Reserve = Callable[[Guarantee, list[Subject]], Reservation]


@dataclass(frozen=True)
class SynthesisTask:
    """A corpus to be made.

    owner            whom the sketch is charged to
    dataset          the data set whose releases add up
    unpacked         most characters of text that the file may hold
    refuse_nominal   whether a promise that no longer protects is refused
    """

    files: JobFolder
    settings: SynthesisSettings
    owner: str | None
    dataset: str
    unpacked: int
    refuse_nominal: bool


def synthesize_file(
    task: SynthesisTask,
    reserve: Reserve,
    tell: Callable[[RewriteProgress], None],
    check: Callable[[], None],
) -> int:
    """The number of rows of the corpus, whose files lie in the folder of the job.

    reserve   the budget of the sketch; asked again, by another attempt, it is the same reservation
    check     raises when the work must stop
    """

    size = task.files.input.stat().st_size

    def progress(step: str, done: int, total: int) -> None:
        check()
        start, end = SHARES.get(step, (0.9, 0.9))
        tell(RewriteProgress(int((start + (end - start) * done / max(1, total)) * size), size, 0, 0))

    check()
    if not task.files.sketch.exists():
        _build(task, reserve, progress, check)
    made = _drawn(task, progress)
    _described(task, made)
    return len(made)


def _build(
    task: SynthesisTask,
    reserve: Reserve,
    progress: Callable[[str, int, int], None],
    check: Callable[[], None],
) -> None:
    config = task.settings.sketch_config(task.files.input, task.files.sketch)
    _check_size(config, task.unpacked, check)
    done: list[Reservation] = []

    def reserve_sketch(promised: Guarantee) -> None:
        if task.refuse_nominal:
            refuse_nominal(Card(promised))
        done.append(reserve(promised, charged(task.owner, task.dataset)))

    def commit() -> None:
        for reservation in done:
            reservation.commit()

    reading = partial(progress, "reading the rows")
    released_sketch(config, config.output, reading, ReleaseCharge(reserve_sketch, commit))


def _check_size(config: SketchConfig, most: int, check: Callable[[], None]) -> None:
    """Read the file once before anything is charged for it."""
    total = rows = 0
    for block in row_source(config)():
        total += sum(map(len, block.texts)) + sum(map(len, block.users))
        rows += len(block.texts)
        if total > most:
            raise unpacks_too_large(most, rows)
        check()


def charged(owner: str | None, dataset: str) -> list[Subject]:
    """Whom a sketch is charged to: the key, and the data set, which the ledger takes as everybody in it."""
    return [Subject("key", owner or LOCAL, 1), Subject("dataset", dataset, 1)]


def _drawn(task: SynthesisTask, progress: Callable[[str, int, int], None]) -> MatchedRows:
    settings, files = task.settings, task.files
    # Columns are called as in the upload, so that programs find those they know; several are named in the sketch.
    columns = () if settings.label_column is None else (settings.label_column,)
    labels = read_sketch(files.sketch).labels if columns else ()
    config = MatchingConfig(
        from_sketch=files.sketch, output=files.output, column=settings.column, label_columns=columns,
        labels=labels, rows=settings.rows, sentences=settings.sentences, pools=USUAL_POOLS, evolve=settings.evolve,
        force=True,
    )  # fmt: skip
    return run(config, progress)


def _described(task: SynthesisTask, made: MatchedRows) -> None:
    """Report, view and the card as a page, all made of what was released."""
    sketch = read_sketch(task.files.sketch)
    labels = next(list(values) for name, values in made.columns.items() if name != made.text_column)
    if isinstance(sketch.rule, JointLabels):  # the view shows one label of a row: that of the first column
        sketch = column_view(sketch, 0)
    release = public_release(sketch, [load_pool(name) for name in USUAL_POOLS], made.texts, labels, made.card)
    view = release_view(release)
    write_private(task.files.report, page_of(view).encode())
    write_private(task.files.card("html"), made.card.to_html().encode())
    write_private(task.files.view, corpus_view(view).model_dump_json().encode())


def corpus_view(view: ReleaseView) -> CorpusView:
    """The parts of a report, for the page."""
    return CorpusView(
        summary=view.summary,
        card=list(view.card_lines),
        labels=[
            LabelFacts(name=label, color=color, rows=list(view.examples.get(label, ())))
            for label, color in view.kinds.items()
        ],
        map=_figure(view.map),
        proportions=_figure(view.proportions),
        curve=None if view.curve is None else _figure(view.curve),
    )


def _figure(figure: Figure) -> FigureFacts:
    return FigureFacts(svg=figure.svg, description=figure.description)
