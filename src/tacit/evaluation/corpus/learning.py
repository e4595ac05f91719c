"""Scores of learners on a synthetic corpus: trained on it, tested on originals that nobody trained on.

Beside each score stand that of the same learner trained on the originals, that of the best guess without any text, and,
where there is a public pool, that of rows which know nothing but the names of the labels. The score that counts is the
*worst* of the learners: a corpus made with the vectors of one of them may suit that one alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tacit.errors import BadInputError, BadParameterError
from tacit.evaluation import scores as score
from tacit.evaluation.downstream import Labeled, check_task
from tacit.evaluation.learners import Learner
from tacit.evaluation.learners.plain import LetterLearner, VectorLearner, WordLearner
from tacit.evaluation.scores import Floor, Interval
from tacit.evaluation.vectors import TextVectors
from tacit.progress import WorkProgress

WORDS, LETTERS, TRANSFORMER = "words", "letters", "transformer"
USUAL_LEARNERS = (WORDS, LETTERS, "static")
"""Names of views, of encoders, or 'transformer'."""
RESAMPLES = 200


@dataclass(frozen=True)
class TrainedScore:
    """The scores of a learner that was trained on some rows, on the test rows.

    macro_f1   with a bootstrap interval over test rows
    accuracy   the share of test rows that it labels right
    never      labels of the test rows that it never predicts
    """

    macro_f1: Interval
    accuracy: float
    never: tuple[str, ...] = ()


@dataclass(frozen=True)
class LearnerScore:
    """One learner, trained on the originals, on the release, and on public rows that know the labels' names only."""

    learner: str
    original: TrainedScore
    released: TrainedScore
    public: TrainedScore | None = None

    def share_kept(self, floor: float) -> float:
        """The share that is left between the score without any text (0) and that of the originals (1)."""
        room = self.original.macro_f1.value - floor
        return (self.released.macro_f1.value - floor) / room if room > 0 else float("nan")


@dataclass(frozen=True)
class CorpusScores:
    """The scores of all learners, and what can be had without looking at a text."""

    learners: tuple[LearnerScore, ...]
    floor: Floor
    trained_rows: int
    released_rows: int
    test_rows: int

    @property
    def worst(self) -> LearnerScore:
        """The learner whose score on the release is lowest."""
        return min(self.learners, key=lambda each: each.released.macro_f1.value)


def corpus_scores(
    original: Labeled,
    released: Labeled,
    test: Labeled,
    *,
    public: Labeled | None = None,
    learners: Sequence[str] = USUAL_LEARNERS,
    progress: WorkProgress | None = None,
) -> CorpusScores:
    """Scores of learners trained on the originals and on a release of them, on original test rows.

    public     rows that were labeled without any private row, such as `rows_by_name` gives
    learners   'words', 'letters', the name of a sentence encoder ('static', 'minilm', …), or 'transformer', which
               fine-tunes MiniLM

        scores = corpus_scores(Labeled(texts, labels), Labeled(synthetic, its_labels), Labeled(test, test_labels))
        scores.worst.released.macro_f1.value
    """
    check_task("classification", original, test)
    check_released(released)
    trained_on = {"original": original, "released": released}
    if public is not None and len(set(public.labels)) > 1:
        trained_on["public"] = public
    results = []
    for number, name in enumerate(learners):
        learner = learner_of(name, progress)
        arms: dict[str, TrainedScore] = {}
        for place, (arm, rows) in enumerate(trained_on.items()):
            if progress is not None:
                progress(f"learning from {arm} rows", number * len(trained_on) + place, len(learners) * len(trained_on))
            arms[arm] = trained_score(learner.fit(rows.texts, rows.labels), test)
        results.append(LearnerScore(learner.name, arms["original"], arms["released"], arms.get("public")))
    floor = score.classification_floor(original.labels, test.labels)
    return CorpusScores(tuple(results), floor, len(original), len(released), len(test))


def check_released(released: Labeled) -> None:
    """A corpus of which nothing can be learned is an error, not a score."""
    if len(set(released.labels)) < 2:
        raise BadInputError(
            "released-one-label",
            "all rows of the synthetic file have the same label, or there are none: learners need at least two "
            "different labels",
        )


def trained_score(learner: Learner, test: Labeled) -> TrainedScore:
    """Scores of a learner that was trained."""
    predicted = learner.predict(test.texts)
    details = score.classification_scores(test.labels, predicted)
    interval = score.bootstrap_interval(
        score.macro_f1_of_items(test.labels, [predicted]), len(test), resamples=RESAMPLES
    )
    return TrainedScore(interval, details.accuracy, tuple(str(label) for label in details.never_predicted))


def learner_of(name: str, progress: WorkProgress | None = None) -> Learner:
    """The learner of that name; encoders are known by their own names."""
    if name in _VIEWS:
        return _VIEWS[name]()
    if name == TRANSFORMER:
        from tacit.evaluation.learners.transformer import Transformer

        steps = None if progress is None else (lambda done, total: progress("fine-tuning", done, total))
        return Transformer("classification", "minilm", progress=steps)
    if not name:
        raise BadParameterError("no-learner", "name a learner: words, letters, an encoder, or transformer")
    return VectorLearner(TextVectors(name))


_VIEWS: dict[str, Callable[[], Learner]] = {WORDS: WordLearner, LETTERS: LetterLearner}
